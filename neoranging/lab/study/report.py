"""The report of a study: a page of HTML that needs nothing else, tables, every number as JSON.

What a reader must see first stands first: which arcs these are, what is suspicious, and the table
of all methods. The page is plain HTML with its figures inside; it prints as it reads.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Final, NamedTuple

from neoranging.files import replacing, write_json
from neoranging.lab.study import report_opening as opening
from neoranging.lab.study import report_sections as sections
from neoranging.lab.study.page import STYLE, markup
from neoranging.lab.study.run import Study
from neoranging.lab.study.tables import pivot, write_table


class Picture(NamedTuple):
    """A figure of a report."""

    name: str
    """Of its files, without ending."""
    section: str
    """Key in `SECTIONS`."""
    caption: str
    path: Path | None
    """PNG file; None where it could not be drawn, for the reason that the caption tells."""


SECTIONS: Final[Mapping[str, str]] = {
    "arcs": "The arcs",
    "estimates": "Estimates against the truth",
    "orbits": "Orbits",
    "strata": "Where a method is good",
    "classical": "Classical methods",
    "intervals": "Intervals",
    "cases": "Single objects",
    "figures": "All figures of merit",
    "made": "How this was made",
}
"""Sections of the page, in order."""


# ---------------------------------------------------------------------- files


def write_tables(study: Study, folder: Path) -> list[Path]:
    """Write every table as CSV, with all digits, and as Markdown, to read.

    Parameters
    ----------
    study : Study
    folder : Path
        Made if need be.
    """
    written = []
    for name, rows in study.tables.items():
        if rows:
            for ending in (".csv", ".md"):
                path = folder / f"{name}{ending}"
                shown = pivot(rows) if (name, ending) == ("figures", ".md") else rows
                write_table(path, shown)
                written.append(path)
    return written


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
    with replacing(page) as temporary:
        temporary.write_text(render(study, pictures, published=published), encoding="utf-8")
    content = {
        "data": study.data,
        "settings": study.settings,
        "remarks": [remark._asdict() for remark in study.remarks],
        "tables": study.tables,
        "figures": [
            {"name": each.name, "section": each.section, "caption": each.caption}
            for each in pictures
        ],
    }
    write_json(folder / "study.json", content)
    return page


# ---------------------------------------------------------------------- the page


def render(study: Study, pictures: Sequence[Picture] = (), *, published: bool = True) -> str:
    """Page of a study as text.

    Parameters
    ----------
    study : Study
    pictures : sequence of Picture
    published : bool
        Show the figures of the literature below the methods.
    """
    body = {
        "arcs": sections.arcs(study),
        "strata": sections.strata(study),
        "classical": sections.classical(study),
        "intervals": sections.intervals(study),
        "cases": sections.cases(study),
        "figures": sections.figures(study),
        "made": sections.made(study),
    }
    drawn = {name: [p for p in pictures if p.section == name] for name in SECTIONS}
    present = [name for name in SECTIONS if body.get(name) or drawn[name]]
    title = f"Ranging study: {', '.join(study.labels)}"
    links = " ".join(f'<a href="#{name}">{escape(SECTIONS[name])}</a>' for name in present)
    parts = "\n".join(
        f'<section id="{name}"><h2>{escape(SECTIONS[name])}</h2>\n'
        f"{''.join(map(_picture, drawn[name]))}{body.get(name, '')}</section>"
        for name in present
    )
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>{STYLE}</style>
</head>
<body>
<header><h1>{escape(title)}</h1>
{opening.what(study)}</header>
<main>
{opening.remarks(study)}
{opening.headline(study, published)}
<nav>{links}</nav>
{parts}
</main>
<footer>{escape(_signature(study))}</footer>
</body>
</html>
"""


def _signature(study: Study) -> str:
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return f"neoranging {study.settings['neoranging']}, {now}"


def _picture(picture: Picture) -> str:
    if picture.path is None:
        return f'<p class="missing">{markup(picture.caption)}</p>\n'
    inside = base64.b64encode(picture.path.read_bytes()).decode("ascii")
    return (
        f'<figure><img alt="{escape(picture.name)}" src="data:image/png;base64,{inside}">'
        f"<figcaption>{markup(picture.caption)}</figcaption></figure>\n"
    )
