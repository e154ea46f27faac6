"""The folder of a study: how it is begun, and what is written into it."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from neoranging.exceptions import EvaluationError
from neoranging.files import TEMPORARY, write_file, write_json
from neoranging.lab.study.report import Picture, render
from neoranging.lab.study.run import Study
from neoranging.lab.study.tables import side_by_side
from neoranging.tables import csv_table, markdown_table

_CONTENT: Final = ("study.json", "report.html", "tables", "figures", "predictions")
"""Files and folders of a study; ``study.json`` comes last, so that a folder with it is complete."""


def prepare(folder: Path, *, resume: bool = False, overwrite: bool = False) -> None:
    """Make a folder ready for a study.

    Parameters
    ----------
    folder : Path
        Made if need be. Nothing is touched in it but what a study writes.
    resume : bool
        Keep predictions, and replace what follows from them.
    overwrite : bool
        Remove all of a study that is there.

    Raises
    ------
    EvaluationError
        If there is one and neither is asked for.
    """
    there = [folder / name for name in _CONTENT if (folder / name).exists()]
    if there and not (resume or overwrite):
        raise EvaluationError(
            f"{folder} holds a study: resume it, which keeps predictions that still hold, "
            "overwrite it, or choose another folder"
        )
    for left_over in folder.rglob(f".*{TEMPORARY}"):
        left_over.unlink(missing_ok=True)
    for path in there:
        if path.name == "predictions" and not overwrite:
            continue
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    folder.mkdir(parents=True, exist_ok=True)


def write_tables(study: Study, folder: Path) -> list[Path]:
    """Write every table as CSV, with all digits, and as Markdown, to read.

    Parameters
    ----------
    study : Study
    folder : Path
        Made if need be.

    Returns
    -------
    list of Path
        The files; a table without rows has none.
    """
    paths = []
    for name, table in study.tables.items():
        if len(table):
            readable = side_by_side(table) if name == "figures" else table
            texts = {"csv": csv_table(table), "md": markdown_table(readable)}
            for ending, text in texts.items():
                paths.append(folder / f"{name}.{ending}")
                write_file(paths[-1], text)
    return paths


def write_report(
    study: Study, pictures: Sequence[Picture], folder: Path, *, published: bool = True
) -> Path:
    """Write ``report.html`` and ``study.json``.

    Parameters
    ----------
    study : Study
    pictures : sequence of Picture
        As of ``neoranging.lab.study.figures.draw.draw_study``.
    folder : Path
        Made if need be.
    published : bool
        Show the figures of the literature as well.

    Returns
    -------
    Path
        Of the page.
    """
    page = folder / "report.html"
    write_file(page, render(study, pictures, published=published))
    content = {
        "data": study.data,
        "settings": study.settings,
        "remarks": [remark._asdict() for remark in study.remarks],
        "tables": {name: table.to_dict("records") for name, table in study.tables.items()},
        "figures": [
            {"name": picture.name, "section": picture.section, "caption": picture.caption}
            for picture in pictures
        ],
    }
    write_json(folder / "study.json", content)
    return page
