"""One row per tracklet, as text to read or as a table in many formats to compute with."""

from __future__ import annotations

import errno
import io
import json
import sys
import textwrap
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from neoranging.cli.errors import CommandError, echo, in_options
from neoranging.files import plain, replacing
from neoranging.rows import parquet_of, plain_columns, without_mixins
from neoranging.tables import csv_table, significant

if TYPE_CHECKING:
    from astropy.table import QTable

    from neoranging.core.status import RangeStatus


TRACK_ALIGN: Final = "<<<>>"
"""Alignment of `track_texts`, as `neoranging.tables.text_table` takes it."""


def track_texts(rows: QTable) -> dict[Any, list[Any]]:
    """The first columns of `track_rows` to read, by their heads."""
    return {
        "designation": rows["designation"].tolist(),
        "station": rows["stations"].tolist(),
        ("epoch", "UTC"): [text[:19].replace("T", " ") for text in rows["epoch"].isot],
        "n": rows["n_observations"].tolist(),
        ("arc", "h"): [f"{arc:.2f}" for arc in rows["arc"].value],
    }


def texts(rows: QTable, name: str, digits: int = 4, sign: str = "-") -> list[str]:
    """Cells of a column of quantities; see `neoranging.tables.significant`."""
    return [significant(value, digits, sign) for value in rows[name].value.tolist()]


def in_parentheses(cells: Iterable[str], ok: Iterable[bool]) -> list[str]:
    """Cells in parentheses where the status is not OK, but for those without a number."""
    pairs = zip(cells, ok, strict=True)
    return [cell if is_ok or cell == "-" else f"({cell})" for cell, is_ok in pairs]


def advice_on(statuses: Iterable[RangeStatus]) -> str:
    """Advice on each status that occurs, other than OK."""
    lines = [
        in_options(f"{status.name}: {status.advice}")
        for status in dict.fromkeys(statuses)
        if status.name != "OK"
    ]
    return "".join(textwrap.fill(line, 98, subsequent_indent="  ") + "\n" for line in lines)


def deliver(rows: QTable, form: str, out: Path | None, as_text: Callable[[QTable], str]) -> None:
    """Write rows to a file or to standard output.

    Parameters
    ----------
    rows : QTable
        As of `track_rows`.
    form : str
        One of `neoranging.cli.options.OUTPUT_FORMATS`.
    out : Path or None
        File to replace; standard output if None.
    as_text : callable
        Makes the text to read.
    """
    content = _content(rows, form, as_text)
    if isinstance(content, str) and not content.endswith("\n"):
        content += "\n"
    if out is not None:
        try:
            if not out.parent.is_dir():
                raise FileNotFoundError(errno.ENOENT, "no such folder")
            with replacing(out) as part:
                part.write_bytes(content.encode() if isinstance(content, str) else content)
        except OSError as error:
            raise CommandError(f"{out} cannot be written: {error.strerror or error}") from error
    elif sys.stdout is None:
        raise CommandError("standard output is closed: name a file with --out")
    elif isinstance(content, bytes) and sys.stdout.isatty():
        raise CommandError(f"{form} is nothing for a terminal: name a file with --out")
    elif isinstance(content, str) and (form == "table" or sys.stdout.isatty()):
        echo(content, nl=False)
    else:
        click.echo(content, nl=False)


def _content(rows: QTable, form: str, as_text: Callable[[QTable], str]) -> str | bytes:
    match form:
        case "table":
            return as_text(rows)
        case "csv":
            return csv_table(plain_columns(rows), missing="nan")
        case "json":
            columns = {name: column.tolist() for name, column in plain_columns(rows).items()}
            cells = zip(*columns.values(), strict=True)
            records = [dict(zip(columns, row, strict=True)) for row in cells]
            everything = plain({**rows.meta, "tracklets": records})
            return json.dumps(everything, indent=2, allow_nan=False)
        case "parquet":
            return parquet_of(rows)
        case "ecsv":
            text = io.StringIO()
            rows.write(text, format="ascii.ecsv")
            return text.getvalue()
    file, table = io.BytesIO(), without_mixins(rows)
    if form == "fits":  # its keywords have eight characters: the columns say what counts
        table.meta.clear()
    table.write(file, format=form)
    return file.getvalue()
