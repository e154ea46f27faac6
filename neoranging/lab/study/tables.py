"""Tables of figures as text, Markdown and CSV.

A table is a list of dictionaries, one for each row, as `neoranging.lab.study.metrics.summarise`
makes it. CSV keeps every column and digit; text and Markdown are for readers: a few columns, or one
row per figure and one column per method, each value with its interval.
"""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, Final

from neoranging.display import spreadsheet_cell, visible
from neoranging.exceptions import EvaluationError
from neoranging.files import replacing

Row = Mapping[str, Any]

DIGITS: Final = 3
"""Significant digits of values for readers."""


def _number(value: float) -> str:
    """Number for readers; a dash where there is none."""
    if math.isnan(value):
        return "–"
    if math.isinf(value) or value == 0.0:
        return f"{value:g}"
    if not 1e-3 <= abs(value) < 1e5:
        return f"{value:.{DIGITS - 1}e}"
    if round(abs(value)) >= 10**DIGITS:
        return f"{value:.0f}"
    return f"{value:#.{DIGITS}g}".rstrip(".")


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return _number(value) if isinstance(value, float) else visible(str(value), lines=False)


def with_interval(row: Row, value: str = "value") -> str:
    """Value of a row for readers, with its interval where it has one: ``0.208 [0.201, 0.215]``."""
    text = _number(row[value])
    low, high = row.get("low", math.nan), row.get("high", math.nan)
    if math.isnan(low) or math.isnan(high):
        return text
    return f"{text} [{_number(low)}, {_number(high)}]"


def pivot(
    rows: Sequence[Row],
    index: Sequence[str] = ("label", "unit"),
    columns: str = "method",
    value: Callable[[Row], str] = with_interval,
) -> list[dict[str, str]]:
    """One row for each figure, one column for each method.

    Parameters
    ----------
    rows : sequence of mapping
        As of `neoranging.lab.study.metrics.summarise`.
    index : sequence of str
        Columns that name a row of the result.
    columns : str
        Column whose values become columns, in the order they occur.
    value : callable
        Text of a row.

    Returns
    -------
    list of dict
        Of texts; empty where a method has no such figure.

    Raises
    ------
    EvaluationError
        If two rows claim the same place.
    """
    heads = dict.fromkeys(str(row[columns]) for row in rows)
    table: dict[tuple[str, ...], dict[str, str]] = {}
    for row in rows:
        key = tuple(_cell(row[name]) for name in index)
        made = table.setdefault(key, dict(zip(index, key, strict=True)) | dict.fromkeys(heads, ""))
        if made[str(row[columns])]:
            raise EvaluationError(
                f"several rows of {row[columns]!r} are {', '.join(key)}: add to the index what "
                "tells them apart"
            )
        made[str(row[columns])] = value(row)
    return list(table.values())


def _cells(rows: Sequence[Row], columns: Sequence[str] | None) -> list[list[str]]:
    """Heads and cells of a table."""
    heads = list(columns or dict.fromkeys(name for row in rows for name in row))
    return [heads, *([_cell(row.get(name)) for name in heads] for row in rows)]


def as_text(rows: Sequence[Row], columns: Sequence[str] | None = None) -> str:
    """Aligned columns to read.

    Parameters
    ----------
    rows : sequence of mapping
    columns : sequence of str, optional
        Which, in order; all by default.
    """
    cells = _cells(rows, columns)
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in cells]
    rule = "  ".join("-" * width for width in widths)
    return "\n".join([lines[0], rule, *lines[1:]]) + "\n"


def as_markdown(rows: Sequence[Row], columns: Sequence[str] | None = None) -> str:
    """Markdown table; parameters are those of `as_text`."""
    escaped = [[_escaped(cell) for cell in line] for line in _cells(rows, columns)]
    head, *body = ("| " + " | ".join(line) + " |" for line in escaped)
    return "\n".join([head, "|" + " --- |" * len(escaped[0]), *body]) + "\n"


def _escaped(cell: str) -> str:
    """Cell of a Markdown table, which is HTML where it looks like it."""
    return escape(cell, quote=False).replace("|", r"\|")


def as_csv(rows: Sequence[Row], columns: Sequence[str] | None = None) -> str:
    """CSV with a head, all digits, and nothing where there is no number.

    Text that a spreadsheet takes for a formula has an apostrophe before it, see
    `neoranging.display.spreadsheet_cell`.

    Parameters are those of `as_text`.
    """
    heads = list(columns or dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(heads)
    writer.writerows([_plain(row.get(name)) for name in heads] for row in rows)
    return text.getvalue()


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return spreadsheet_cell(value)
    return "" if value is None or (isinstance(value, float) and math.isnan(value)) else value


_WRITERS: Final[Mapping[str, Callable[..., str]]] = {
    ".csv": as_csv,
    ".md": as_markdown,
    ".txt": as_text,
}


def write_table(
    path: str | os.PathLike[str], rows: Sequence[Row], columns: Sequence[str] | None = None
) -> None:
    """Write a table as its ending says, whole or not at all.

    Parameters
    ----------
    path : path-like
        Ending in ``.csv``, ``.md`` or ``.txt``.
    rows, columns
        As for `as_text`.

    Raises
    ------
    EvaluationError
        If the ending is another.
    """
    target = Path(path)
    if target.suffix not in _WRITERS:
        raise EvaluationError(f"{target.name}: tables end in {', '.join(_WRITERS)}")
    with replacing(target) as temporary:
        temporary.write_text(_WRITERS[target.suffix](rows, columns), encoding="utf-8")
