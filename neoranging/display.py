"""Text from files on its way to a terminal, a table or a spreadsheet: shown, and never obeyed.

A designation, a label or the name of a file may hold anything, also what a terminal takes for an
order (escape sequences), what turns the direction of writing, and what a spreadsheet takes for a
formula. Files of data keep such text as it is, but for CSV, which spreadsheets open.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import escape
from typing import Final

_CONTROL: Final = re.compile(
    # C0 and C1 but for the ends of lines, marks and overrides of direction, other ends of lines,
    # characters without width, halves of surrogate pairs
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"
)
_FORMULA: Final = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
"""Beginnings that spreadsheets take for a formula, in both widths of the characters."""


def visible(text: str, *, lines: bool = True) -> str:
    r"""Text in which control characters are shown as their escapes, such as ``\x1b``.

    Parameters
    ----------
    text : str
    lines : bool
        Keep the ends of lines; False for the cells of a table.
    """
    text = _CONTROL.sub(lambda match: ascii(match[0])[1:-1], text)
    return text if lines else text.replace("\n", r"\n")


def spreadsheet_cell(text: str) -> str:
    """Text for a cell of CSV that no spreadsheet takes for a formula.

    An apostrophe stands before text that begins with ``=``, ``+``, ``-``, ``@``, a tabulator or the
    end of a line; control characters are shown as their escapes.
    """
    mark = "'" if text.startswith(_FORMULA) else ""
    return mark + visible(text, lines=False)


def html_table(rows: Mapping[str, str]) -> str:
    """Names and values as a table of two columns, for notebooks."""
    cells = "".join(
        f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in rows.items()
    )
    return f"<table>{cells}</table>"
