"""One row per tracklet, as text to read or as a table in many formats to compute with.

In csv, json and parquet the units stand in the names (``range_au``); missing numbers are ``nan``,
null in json.
Text that a spreadsheet takes for a formula has an apostrophe before it in csv alone.
"""

from __future__ import annotations

import csv
import errno
import io
import json
import math
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from neoranging.cli.errors import CommandError, echo
from neoranging.display import spreadsheet_cell, visible
from neoranging.exceptions import MissingDependencyError
from neoranging.files import plain, replacing

if TYPE_CHECKING:
    from astropy.table import QTable, Table
    from astropy.time import Time

    from neoranging.tracklet import TrackletSet


FORMATS: Final = ("table", "csv", "ecsv", "json", "parquet", "votable", "fits")
ENDINGS: Final = {
    "": "table",
    ".txt": "table",
    ".csv": "csv",
    ".ecsv": "ecsv",
    ".json": "json",
    ".parquet": "parquet",
    ".vot": "votable",
    ".votable": "votable",
    ".xml": "votable",
    ".fits": "fits",
}
DIGITS: Final = 10
"""Significant digits in files, beyond what any observation gives."""


class TextColumn(NamedTuple):
    """A column of a table to read."""

    head: str
    unit: str
    cells: list[str]
    align: str = ">"


def output_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of the output to a command, which gets to know its format at once."""

    @wraps(command)
    def with_format(*, form: str | None, out: Path | None, **rest: Any) -> Any:
        return command(form=form or _format_of(out), out=out, **rest)

    form = click.option(
        "--format",
        "form",
        type=click.Choice(FORMATS),
        help="How to write the rows.  [default: by the ending of --out; table without one]",
    )
    out = click.option(
        "--out",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Where to write them; an existing file is replaced once all is done.",
    )
    return form(out(with_format))


def deliver(rows: QTable, form: str, out: Path | None, as_text: Callable[[QTable], str]) -> None:
    """Write rows to a file or to standard output.

    Parameters
    ----------
    rows : QTable
        One row per tracklet; ``meta`` holds plain values that say how they were made.
    form : str
        One of `FORMATS`.
    out : Path or None
        File to replace; standard output if None.
    as_text : callable
        Makes the text to read.
    """
    writers: dict[str, Callable[[QTable], str | bytes]] = {
        "table": as_text,
        "csv": _as_csv,
        "ecsv": _as_ecsv,
        "json": _as_json,
        "parquet": _as_parquet,
        "votable": _as_votable,
        "fits": _as_fits,
    }
    content = writers[form](rows)
    if isinstance(content, str) and not content.endswith("\n"):
        content += "\n"
    if out is not None:
        _write(out, content)
    elif sys.stdout is None:
        raise CommandError("standard output is closed: name a file with --out")
    elif isinstance(content, bytes):
        if sys.stdout.isatty():
            raise CommandError(f"{form} is nothing for a terminal: name a file with --out")
        click.echo(content, nl=False)
    elif form == "table" or sys.stdout.isatty():
        echo(content, nl=False)
    else:
        click.echo(content, nl=False)


def _format_of(out: Path | None) -> str:
    ending = out.suffix.lower() if out else ""
    if ending not in ENDINGS:
        known = ", ".join(filter(None, ENDINGS))
        raise click.UsageError(
            f"--out {out}: no format has the ending {ending}; take {known}, or say --format"
        )
    return ENDINGS[ending]


def _write(path: Path, content: str | bytes) -> None:
    """Put content into a file, which takes the place of another only if all could be written."""
    try:
        if not path.parent.is_dir():
            raise FileNotFoundError(errno.ENOENT, "no such folder")
        with replacing(path) as part:
            part.write_bytes(content.encode() if isinstance(content, str) else content)
    except OSError as error:
        reason = error.strerror or error
        raise CommandError(f"{path} cannot be written: {reason}") from error


# What all listings begin with --------------------------------------------------------------------


def tracks(tracklets: TrackletSet) -> dict[str, Any]:
    """Columns that say which tracklets these are.

    Returns
    -------
    dict
        ``tracklet`` (the ids of the observations, if any have one), ``designation``, ``stations``
        (codes with commas), ``n_observations``, ``arc`` [h].
    """
    from astropy import units as u

    arcs = tracklets.arcs("geocenter")
    days = arcs.t[arcs.offsets[1:] - 1] - arcs.t[arcs.offsets[:-1]]
    ids = tracklets.tracklet_id
    named = {"tracklet": ids} if (ids != "").any() else {}
    return {
        **named,
        "designation": tracklets.designation,
        "stations": tracklets.stations,
        "n_observations": tracklets.counts,
        "arc": days * 24.0 * u.h,
    }


def utc(epoch: Time) -> Time:
    """Epochs in UTC, in a form to read."""
    from astropy.time import Time

    return Time(epoch.utc.isot, format="isot", scale="utc", precision=3)


# To compute with ---------------------------------------------------------------------------------


def _plain(rows: QTable) -> dict[str, list[Any]]:
    """Columns as plain values, with the unit in the name."""
    from astropy.time import Time

    columns: dict[str, list[Any]] = {}
    for name in rows.colnames:
        column = rows[name]
        if isinstance(column, Time):
            columns[f"{name}_{column.scale}"] = column.isot.tolist()
        elif column.dtype.kind == "f":
            unit = getattr(column, "unit", None)
            suffix = "_" + unit.to_string("generic").replace(" / ", "_").lower() if unit else ""
            values = getattr(column, "value", column).tolist()
            columns[name + suffix] = [float(f"{value:.{DIGITS}g}") for value in values]
        else:
            columns[name] = column.tolist()
    return columns


def _as_csv(rows: QTable) -> str:
    columns = {
        name: [spreadsheet_cell(x) if isinstance(x, str) else x for x in values]
        for name, values in _plain(rows).items()
    }
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return text.getvalue()


def _as_ecsv(rows: QTable) -> str:
    text = io.StringIO()
    rows.write(text, format="ascii.ecsv")
    return text.getvalue()


def _as_json(rows: QTable) -> str:
    columns = _plain(rows)
    records = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return json.dumps(plain({**rows.meta, "tracklets": records}), indent=2, allow_nan=False)


def _as_parquet(rows: QTable) -> bytes:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise MissingDependencyError.of(
            "files of Parquet", "pyarrow", "data", "take another format"
        ) from error
    table = pa.table(_plain(rows))
    meta = {name: json.dumps(value) for name, value in rows.meta.items()}
    file = io.BytesIO()
    parquet.write_table(table.replace_schema_metadata(meta), file)
    return file.getvalue()


def _as_votable(rows: QTable) -> bytes:
    file = io.BytesIO()
    _without_mixins(rows).write(file, format="votable")
    return file.getvalue()


def _as_fits(rows: QTable) -> bytes:
    file = io.BytesIO()
    table = _without_mixins(rows)
    table.meta = {}  # keywords of FITS have eight characters: the columns say what counts
    table.write(file, format="fits")
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


# To read -----------------------------------------------------------------------------------------


def text_table(columns: list[TextColumn]) -> str:
    """Columns side by side under their heads and units."""
    shown = []
    for column in columns:
        cells = [visible(cell, lines=False) for cell in (column.head, column.unit, *column.cells)]
        width = max(map(len, cells))
        shown.append([f"{cell:{column.align}{width}}" for cell in cells])
    return "\n".join("  ".join(row).rstrip() for row in zip(*shown, strict=True))


def track_columns(rows: QTable) -> list[TextColumn]:
    """Columns of `tracks` and the epoch, to read."""
    return [
        TextColumn("designation", "", rows["designation"].tolist(), "<"),
        TextColumn("station", "", rows["stations"].tolist(), "<"),
        TextColumn(
            "epoch", "UTC", [f"{day} {time[:8]}" for day, time in _split(rows["epoch"])], "<"
        ),
        TextColumn("n", "", [str(n) for n in rows["n_observations"]]),
        TextColumn("arc", "h", [f"{arc:.2f}" for arc in rows["arc"].value]),
    ]


def _split(epoch: Time) -> list[list[str]]:
    return [text.split("T") for text in epoch.isot]


def numbers(rows: QTable, name: str, digits: int = 4, sign: str = "-") -> list[str]:
    """Cells of a column of quantities; see `number`."""
    return [number(value, digits, sign) for value in rows[name].value.tolist()]


def number(value: float, digits: int = 4, sign: str = "-") -> str:
    """Number to read; a dash for NaN.

    Parameters
    ----------
    value : float
    digits : int
        Significant digits.
    sign : {"-", "+"}
        Whether positive numbers get a sign as well.
    """
    return "-" if math.isnan(value) else f"{value:{sign}#.{digits}g}".rstrip(".")
