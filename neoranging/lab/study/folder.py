"""The folder of a study: what is in it, and how it is begun."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

from neoranging.exceptions import EvaluationError
from neoranging.files import TEMPORARY

_MADE: Final = ("study.json", "report.html", "tables", "figures", "predictions")
"""What a study writes; ``study.json`` comes last, so that a folder with it is whole."""


def begin(folder: Path, *, resume: bool = False, overwrite: bool = False) -> None:
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
    there = [folder / name for name in _MADE if (folder / name).exists()]
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
