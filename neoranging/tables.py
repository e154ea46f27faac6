"""Tables as text to read, as Markdown and as CSV.

A table is a DataFrame, or any mapping of heads to columns of equal length. Text in its cells may
come from files of observations: it is shown and never obeyed, see `neoranging.display`.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping
from html import escape
from numbers import Real
from typing import TYPE_CHECKING, Any

from neoranging.display import spreadsheet_cell, visible

if TYPE_CHECKING:
    from pandas import DataFrame

    Table = DataFrame | Mapping[Any, Iterable[Any]]


def number(value: float, digits: int = 3) -> str:
    """Number for readers of a table of figures; a dash where there is none.

    Parameters
    ----------
    value : float
    digits : int
        Significant digits. Fewer than three are those of bounds, without zeros at the end.
    """
    if math.isnan(value):
        return "–"
    if math.isinf(value) or value == 0.0:
        return f"{value:g}"
    if digits < 3 and 1e-3 <= abs(value) < 10.0**digits:
        return f"{value:.{digits}g}"
    digits = max(digits, 3)
    if not 1e-3 <= abs(value) < 1e5:
        return f"{value:.{digits - 1}e}"
    if round(abs(value)) >= 10**digits:
        return f"{value:.0f}"
    return f"{value:#.{digits}g}".rstrip(".")


def significant(value: float, digits: int = 4, sign: str = "-") -> str:
    """Number with all its significant digits; a hyphen for NaN.

    Parameters
    ----------
    value : float
    digits : int
    sign : {"-", "+"}
        ``"+"`` gives positive numbers a sign as well.
    """
    return "-" if math.isnan(value) else f"{value:{sign}#.{digits}g}".rstrip(".")


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return number(value) if isinstance(value, float) else visible(str(value), lines=False)


def text_table(table: Table, align: str = "") -> str:
    """Columns side by side below their heads, to read on a terminal.

    Parameters
    ----------
    table : DataFrame or mapping
        A head is a text, or a tuple of the lines it has. Columns beside each other whose first
        lines are the same share it.
    align : str
        ``<`` or ``>`` for each column; by default numbers stand right and text left.
    """
    heads = [head if isinstance(head, tuple) else (head,) for head in table]
    n_lines = max(map(len, heads), default=1)
    columns = []
    for k, (_, values) in enumerate(table.items()):
        cells = list(values)
        is_number = bool(cells) and all(isinstance(value, Real) for value in cells)
        side = align[k] if align else "<>"[is_number]
        head = [visible(str(line), lines=False) for line in heads[k]]
        if k and n_lines > 1 and heads[k][0] == heads[k - 1][0]:
            head[0] = ""
        column = [*head, *[""] * (n_lines - len(head)), *map(_cell, cells)]
        width = max(map(len, column))
        columns.append([f"{cell:{side}{width}}" for cell in column])
    return "\n".join("  ".join(line).rstrip() for line in zip(*columns, strict=True))


def markdown_table(table: Table) -> str:
    """Table in Markdown, whose cells are HTML where they look like it."""

    def line(cells: Iterable[Any]) -> str:
        texts = (escape(_cell(cell), quote=False).replace("|", r"\|") for cell in cells)
        return f"| {' | '.join(texts)} |\n"

    rows = zip(*(column for _, column in table.items()), strict=True)
    return line(table) + "|" + " --- |" * len(list(table)) + "\n" + "".join(map(line, rows))


def csv_table(table: Table, missing: str = "") -> str:
    """Table as comma-separated values: a head, all digits, and text that no spreadsheet obeys.

    Parameters
    ----------
    table : DataFrame or mapping
    missing : str
        Stands where there is no number.
    """
    columns = [
        column.tolist() if hasattr(column, "tolist") else column for _, column in table.items()
    ]
    cells = [[_plain_cell(cell, missing) for cell in column] for column in columns]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table)
    writer.writerows(zip(*cells, strict=True))
    return text.getvalue()


def _plain_cell(value: Any, missing: str) -> str:
    if isinstance(value, str):
        return spreadsheet_cell(value)
    is_missing = value is None or (isinstance(value, float) and math.isnan(value))
    return missing if is_missing else str(value)
