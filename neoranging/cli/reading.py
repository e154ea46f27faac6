"""Observation files given on the command line: options, reading, and the account of it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from neoranging.cli.errors import NoTrackletError, UnreadableError, echo
from neoranging.cli.options import Number
from neoranging.exceptions import NeoRangingError
from neoranging.observations.field_names import SCALES
from neoranging.observations.formats import FORMATS, TABLE_FORMATS
from neoranging.records import many

if TYPE_CHECKING:
    from neoranging.observations.columns import Observations
    from neoranging.tracklet import TrackletSet


GROUPINGS = {"station": ("night", "station"), "night": ("night",)}


class Reading(NamedTuple):
    """How files are to be read."""

    files: tuple[str, ...]
    input_format: str | None
    scale: str | None
    station: str | None
    group_by: str
    sigma: float | None
    report: bool
    quiet: bool


def input_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the argument FILE and the options of reading to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def group_by_option(what: str) -> Callable[..., Any]:
    """Option that says which stations ``what`` joins; its values are the keys of `GROUPINGS`."""
    return click.option(
        "--group-by",
        type=click.Choice(list(GROUPINGS)),
        default="station",
        show_default=True,
        help=f"{what} is one object in one night, of one station or of all together.",
    )


_OPTIONS = (
    click.argument(
        "files", metavar="FILE...", nargs=-1, required=True, type=click.Path(allow_dash=True)
    ),
    click.option(
        "--input-format",
        type=click.Choice([*FORMATS, *TABLE_FORMATS]),
        help="Format of the files.  [default: recognised by their content]",
    ),
    click.option(
        "--scale",
        type=click.Choice(SCALES),
        help="Time scale of epochs in tables, where the name of the column does not say it.",
    ),
    click.option(
        "--station",
        metavar="CODE",
        help="MPC code of all rows of tables without a column of stations.",
    ),
    group_by_option("A tracklet"),
    click.option(
        "--sigma",
        type=Number(min=0.0, min_open=True),
        metavar="ARCSEC",
        help="Error of positions that carry none.  [default: by station and catalogue]",
    ),
    click.option("--report", is_flag=True, help="Account for every record that was set aside."),
    click.option("-q", "--quiet", is_flag=True, help="No account of the reading at all."),
)


def read_files(reading: Reading) -> TrackletSet:
    """Read files into tracklets and tell the account on standard error.

    Raises
    ------
    UnreadableError
        If a file cannot be read.
    NoTrackletError
        If no two observations belong together.
    """
    from neoranging.read import read_tracklets

    parts = [_read(name, reading) for name in reading.files]
    tracklets = read_tracklets(parts, group_by=GROUPINGS[reading.group_by])
    if not reading.quiet:
        echo(str(tracklets.report) if reading.report else _summary(tracklets), err=True)
    if not len(tracklets):
        raise NoTrackletError(
            "no tracklet: it takes two observations of one object in one night"
            + ("" if reading.report else "; --report shows what became of each record")
        )
    return tracklets


def _read(name: str, reading: Reading) -> Observations:
    from neoranging.observations.reading import parse_observations

    if name == "-" and sys.stdin is None:
        raise _unreadable(name, "is closed")
    options: dict[str, Any] = {} if reading.sigma is None else {"default_sigma": reading.sigma}
    try:
        return parse_observations(
            Path(name) if name != "-" else sys.stdin.buffer,
            format=reading.input_format,
            scale=reading.scale,
            station=reading.station,
            **options,
        )
    except OSError as error:
        raise _unreadable(name, error.strerror or str(error)) from error
    except (NeoRangingError, ValueError) as error:
        raise _unreadable(name, str(error)) from error


def _unreadable(name: str, reason: str) -> UnreadableError:
    shown = _shown(name)
    return UnreadableError(reason if reason.startswith(shown) else f"{shown}: {reason}")


def _shown(name: str) -> str:
    return "standard input" if name == "-" else click.format_filename(name)


def _summary(tracklets: TrackletSet) -> str:
    """One line per file, and one for what was formed."""
    report = tracklets.report
    if report is None:  # never of tracklets that were read
        return ""
    lines = [
        f"{'' if one.source else 'standard input: '}{one.headline(reasons=True)}"
        for one in report.reading
    ]
    lost = report.n_set_aside
    set_aside = f", {lost} set aside" if lost else ""
    details = any(one.n_set_aside or one.notes for one in report.reading) or report.notes
    hint = "; --report for details" if lost or details else ""
    formed = f"{many(report.n_tracklets, 'tracklet')} of {many(report.n_used, 'observation')}"
    lines.append(formed + set_aside + hint)
    return "\n".join(lines)
