"""Pieces of the page of a report: style, cells, tables."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, Final, NamedTuple

from neoranging.lab.study.tables import with_interval

STYLE: Final = """
:root { --ink: #1c2430; --soft: #5b6675; --line: #d9dee5; --band: #f5f7f9; --blue: #0072b2; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1360px; padding: 18px 24px 40px; color: var(--ink);
  background: #fff; font: 15px/1.45 system-ui, "Segoe UI", "Helvetica Neue", Arial, sans-serif; }
h1 { font-size: 24px; margin: 0 0 6px; font-weight: 600; }
h2 { font-size: 19px; margin: 34px 0 10px; padding-top: 8px; border-top: 1px solid var(--line);
  font-weight: 600; }
h3 { font-size: 15px; margin: 18px 0 6px; }
p { margin: 6px 0; }
.what { font-size: 15px; }
.settings, .small, footer, figcaption { color: var(--soft); font-size: 12.5px; }
.badge { display: inline-block; padding: 1px 9px; border-radius: 3px; color: #fff;
  font-weight: 600; font-size: 12.5px; letter-spacing: .04em; margin-right: 6px; }
.badge.simulated { background: #7a4f9a; } .badge.real { background: #00724f; }
.alarm, .note, .fine { border-left: 5px solid; padding: 7px 12px; margin: 9px 0;
  font-size: 13.5px; }
.alarm { border-color: #c0392b; background: #fdeeec; }
.note { border-color: #c98a00; background: #fff9ea; }
.fine { border-color: #00806a; background: #eef8f5; }
.alarm ul, .note ul { margin: 3px 0 0; padding-left: 18px; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; margin: 8px 0; font-size: 13px; font-variant-numeric:
  tabular-nums; }
th, td { padding: 4px 7px; text-align: right; border-bottom: 1px solid var(--line);
  vertical-align: top; }
th { font-weight: 600; }
td.text, th.text, tbody th { text-align: left; }
thead th { border-bottom: 1.5px solid var(--ink); vertical-align: bottom; }
thead tr.groups th { text-align: center; border-bottom: 1px solid var(--line); color: var(--soft);
  font-weight: 500; }
thead tr.groups th + th { border-left: 1px solid var(--line); }
tbody tr:nth-child(even) { background: var(--band); }
table.headline { width: 100%; } table.headline td { font-size: 14px; white-space: nowrap; }
td small, th small { display: block; white-space: nowrap; color: var(--soft); font-weight: 400;
  font-size: 10.5px; }
tr.published td, tr.published th { color: #77808c; background: #fff; font-weight: 400; }
nav { margin: 16px 0 0; font-size: 13.5px; } nav a { margin-right: 14px; color: var(--blue);
  text-decoration: none; }
figure { margin: 12px 0 20px; } figure img { max-width: 100%; height: auto; display: block; }
figcaption { max-width: 900px; margin-top: 5px; }
details summary { cursor: pointer; color: var(--blue); font-size: 13.5px; margin: 6px 0; }
.missing { color: var(--soft); font-style: italic; }
footer { margin-top: 30px; border-top: 1px solid var(--line); padding-top: 8px; }
@media print {
  body { max-width: none; padding: 0; font-size: 11px; } nav { display: none; }
  table, table.headline td { font-size: 9px; } td small, th small { font-size: 7px; }
  .wide { overflow: visible; } th, td { padding: 2px 4px; }
  figure, tr { break-inside: avoid; } h2, h3 { break-after: avoid; }
}
"""

_SUBSCRIPTS: Final = re.compile(r"\b([DP])_(SH|AR)\b")


def markup(text: str) -> str:
    """Escaped text in which D_SH and P_AR have their subscripts."""
    return _SUBSCRIPTS.sub(r"\1<sub>\2</sub>", escape(text))


def number(value: float, digits: int = 3) -> str:
    """Number for readers, a dash where there is none; fewer digits without zeros at the end."""
    if digits < 3 and 1e-3 <= abs(value) < 10.0**digits:
        return f"{value:.{digits}g}"
    return with_interval({"value": float(value)})


class Cell(NamedTuple):
    """A cell with something small below."""

    text: str
    small: str = ""
    is_bold: bool = False

    def html(self, tag: str = "td") -> str:
        """Marked up."""
        text = markup(self.text)
        text = f"<b>{text}</b>" if self.is_bold else text
        lines = markup(self.small).replace("\n", "<br>")
        small = f"<small>{lines}</small>" if self.small else ""
        return f"<{tag}>{text}{small}</{tag}>"


def table_of(rows: Sequence[Mapping[str, Any]]) -> str:
    """Table of rows of text; columns that hold words are set left, second lines of cells small."""
    if not rows:
        return ""
    heads = list(rows[0])
    kinds = [" class=text" if _is_words(rows, head) else "" for head in heads]
    top = "".join(f"<th{kind}>{markup(h)}</th>" for h, kind in zip(heads, kinds, strict=True))
    body = "".join(
        "<tr>"
        + "".join(
            f"<td{kind}>{_marked(_text(row[head]))}</td>"
            for head, kind in zip(heads, kinds, strict=True)
        )
        + "</tr>"
        for row in rows
    )
    return (
        f'<div class="wide"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def _marked(text: str) -> str:
    """Cell of which lines after the first are small."""
    first, *small = markup(text).split("\n")
    return first + "".join(f"<small>{line}</small>" for line in small)


def _text(value: Any) -> str:
    if isinstance(value, float):
        return "–" if math.isnan(value) else number(value)
    return "" if value is None else str(value)


def _is_words(rows: Sequence[Mapping[str, Any]], head: str) -> bool:
    return any(_text(row[head])[:1].isalpha() for row in rows)
