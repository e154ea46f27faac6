"""One row per tracklet, as text to read or as a table in many formats to compute with.

In csv, json and parquet the units stand in the names (``range_au``); missing numbers are ``nan``,
null in json.
"""

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

from neoranging._version import __version__
from neoranging.cli.errors import CommandError, echo, in_options
from neoranging.exceptions import extra
from neoranging.files import plain, replacing
from neoranging.tables import csv_table, significant

if TYPE_CHECKING:
    from astropy.table import QTable, Table
    from astropy.time import Time

    from neoranging.core.status import RangeStatus
    from neoranging.tracklet import TrackletSet


DIGITS: Final = 10
"""Significant digits in files, beyond what any observation gives."""

TRACK_ALIGN: Final = "<<<>>"
"""Alignment of `track_texts`, as `neoranging.tables.text_table` takes it."""


def track_rows(
    tracklets: TrackletSet, epoch: Time, columns: dict[str, Any], meta: dict[str, Any]
) -> QTable:
    """Rows that begin with what identifies each tracklet.

    Parameters
    ----------
    tracklets : TrackletSet
    epoch : Time
        Of each row.
    columns : dict
        Further columns, one value for each tracklet.
    meta : dict
        Plain values that say how the rows were made.

    Returns
    -------
    QTable
        ``tracklet`` (the ids of the observations, if any have one), ``designation``, ``stations``
        (codes with commas), ``epoch`` in UTC, ``n_observations``, ``arc`` [h], and ``columns``.
    """
    from astropy import units as u
    from astropy.table import QTable
    from astropy.time import Time

    arcs = tracklets.arcs("geocenter")
    days = arcs.t[arcs.offsets[1:] - 1] - arcs.t[arcs.offsets[:-1]]
    ids = tracklets.tracklet_id
    identity: dict[str, Any] = {"tracklet": ids} if (ids != "").any() else {}
    identity |= {
        "designation": tracklets.designation,
        "stations": tracklets.stations,
        "epoch": Time(epoch.utc.isot, format="isot", scale="utc", precision=3),
        "n_observations": tracklets.counts,
        "arc": days * 24.0 * u.h,
    }
    return QTable(identity | columns, meta={"neoranging": __version__, **meta})


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
            return csv_table(_plain(rows), missing="nan")
        case "json":
            columns = _plain(rows)
            cells = zip(*columns.values(), strict=True)
            records = [dict(zip(columns, row, strict=True)) for row in cells]
            everything = plain({**rows.meta, "tracklets": records})
            return json.dumps(everything, indent=2, allow_nan=False)
        case "parquet":
            return _parquet(rows)
        case "ecsv":
            text = io.StringIO()
            rows.write(text, format="ascii.ecsv")
            return text.getvalue()
    file, table = io.BytesIO(), _without_mixins(rows)
    if form == "fits":  # its keywords have eight characters: the columns say what counts
        table.meta.clear()
    table.write(file, format=form)
    return file.getvalue()


def _without_mixins(rows: QTable) -> Table:
    """Table of numbers with units, and of text; times as text with the scale in the name."""
    from astropy.table import Table
    from astropy.time import Time

    table = Table(meta=dict(rows.meta))
    for name in rows.colnames:
        column = rows[name]
        if isinstance(column, Time):
            table[f"{name}_{column.scale}"] = column.isot
        else:
            table[name] = getattr(column, "value", column)
            table[name].unit = getattr(column, "unit", None)
    return table


def _plain(rows: QTable) -> dict[str, list[Any]]:
    """Columns as plain values, with the unit in the name."""
    columns: dict[str, list[Any]] = {}
    for name, column in _without_mixins(rows).columns.items():
        values, suffix = column.tolist(), ""
        if column.dtype.kind == "f":
            values = [float(f"{value:.{DIGITS}g}") for value in values]
            if column.unit:
                suffix = "_" + column.unit.to_string("generic").replace(" / ", "_").lower()
        columns[name + suffix] = values
    return columns


def _parquet(rows: QTable) -> bytes:
    with extra("data", "files of Parquet", "take another format"):
        import pyarrow as pa
        from pyarrow import parquet
    meta = {name: json.dumps(value) for name, value in rows.meta.items()}
    file = io.BytesIO()
    parquet.write_table(pa.table(_plain(rows)).replace_schema_metadata(meta), file)
    return file.getvalue()
