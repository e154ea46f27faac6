"""``neoranging estimate``: ranges of the tracklets in files of observations."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from neoranging._version import __version__
from neoranging.cli.errors import EXIT_CODES, CommandError, NotOkError, echo, in_options
from neoranging.cli.listing import (
    TextColumn,
    deliver,
    numbers,
    output_options,
    text_table,
    track_columns,
    tracks,
    utc,
)
from neoranging.cli.options import Number
from neoranging.cli.reading import Reading, input_options, read_files
from neoranging.exceptions import NeoRangingError

if TYPE_CHECKING:
    from astropy.table import QTable

    from neoranging.estimate import RangeEstimate
    from neoranging.estimators.base import RangingEstimator
    from neoranging.tracklet import TrackletSet


@click.command(epilog=EXIT_CODES)
@input_options
@click.option(
    "--method",
    default="gauss",
    show_default=True,
    metavar="NAME",
    help="Method, as listed by 'neoranging methods': NAME[@REPRESENTATION][@ORIGIN], or a file of "
    "weights (.safetensors).",
)
@click.option(
    "--origin",
    type=click.Choice(["topocenter", "geocenter"]),
    show_default="topocenter",
    help="Where the observer is taken to stand: at the station or at the centre of the Earth.",
)
@click.option(
    "--calibration",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Where intervals come from, as of 'neoranging calibrate'; else that of the method.",
)
@click.option(
    "--level",
    type=Number(min=0.0, max=1.0, min_open=True, max_open=True),
    default=0.68,
    show_default=True,
    help="Confidence level of the interval.",
)
@output_options
@click.option("--strict", is_flag=True, help="Exit with code 5 unless every status is OK.")
def estimate(
    method: str,
    origin: str | None,
    calibration: Path | None,
    level: float,
    form: str,
    out: Path | None,
    strict: bool,
    **reading: Any,
) -> None:
    """Estimate range and range-rate of every tracklet in FILE...

    Reads MPC 80-column, ADES (PSV, XML) and OrbFit .rwo files, and tables with columns obstime
    (UTC), ra, dec [deg], station, as ADES and the surveys name them too (CSV, ECSV, Parquet, FITS,
    VOTable, JSON); plain or compressed, and "-" is standard input. One row per tracklet goes to
    standard output or --out, the account of the reading to
    standard error.

    Look at the status first. OK means that the observations determine the range, POPULATION that a
    network tells where objects that move like this mostly are; every number but those with OK
    stands in parentheses. The interval is the one that held for this share of calibration arcs, OK
    or not; of a method without calibration it is that of the observations' errors where the status
    is OK, and the whole range of orbits bound to the Sun elsewhere.

    \b
    Examples:
      neoranging estimate night.obs80
      neoranging estimate night.obs80 --report --method laplace
      neoranging estimate night.obs80 --method run/network.safetensors --calibration mine.json
      neoranging estimate *.psv --out ranges.csv
      neoranging estimate night.parquet --out ranges.parquet
      gunzip -c night.obs80.gz | neoranging estimate - --format json
    """  # noqa: D301 (the character by which click keeps lines apart)
    estimator = _estimator(method, origin, calibration)  # before the files: they may be large
    tracklets = read_files(Reading(**reading))
    result = tracklets.estimate(estimator)
    deliver(_rows(tracklets, result, level), form, out, _as_text)
    if form != "table" and not reading["quiet"]:
        echo(_legend(result.status), err=True, nl=False)
    if strict and not result.ok.all():
        failed = int((~result.ok).sum())
        raise NotOkError(f"{failed} of {len(tracklets)} tracklets have another status than OK")


def _estimator(method: str, origin: str | None, calibration: Path | None) -> RangingEstimator:
    from neoranging.calibration import Calibration
    from neoranging.estimators.conformal import ConformalEstimator
    from neoranging.estimators.registry import get_estimator

    options = {} if origin is None else {"origin": origin}
    try:
        estimator = get_estimator(method, **options)
    except NeoRangingError:
        raise
    except Exception as error:  # of whoever wrote the method
        raise CommandError(
            f"the method {method!r} cannot be made ({type(error).__name__}: {error})"
        ) from error
    if calibration is None:
        return estimator
    return ConformalEstimator(estimator, Calibration.read(calibration))


def _rows(tracklets: TrackletSet, result: RangeEstimate, level: float) -> QTable:
    from astropy.table import QTable

    interval = result.interval(level)
    track = tracks(tracklets)
    names = ("tracklet", "designation", "stations")
    identity: dict[str, Any] = {name: track.pop(name) for name in names if name in track}
    return QTable(
        {
            **identity,
            "epoch": utc(result.epoch),
            **track,
            "range": result.range,
            "range_error": result.range_error,
            "range_rate": result.range_rate,
            "range_rate_error": result.range_rate_error,
            "range_low": interval[:, 0],
            "range_high": interval[:, 1],
            "status": [status.name for status in result.status],
        },
        meta={
            "neoranging": __version__,
            "method": result.method,
            "origin": result.origin,
            "confidence_level": level,
        },
    )


def _as_text(rows: QTable) -> str:
    from neoranging.estimate import RangeStatus

    ok = [status == "OK" for status in rows["status"]]

    def doubtful(texts: list[str]) -> list[str]:
        pairs = zip(texts, ok, strict=True)
        return [text if good or text == "-" else f"({text})" for text, good in pairs]

    bounds = zip(numbers(rows, "range_low", 3), numbers(rows, "range_high", 3), strict=True)
    interval = ["-" if low == "-" else f"{low:>8} to {high}" for low, high in bounds]
    text = text_table(
        [
            *track_columns(rows),
            TextColumn("range", "au", doubtful(numbers(rows, "range"))),
            TextColumn("error", "au", doubtful(numbers(rows, "range_error", 2))),
            TextColumn("range rate", "au/d", doubtful(numbers(rows, "range_rate", sign="+"))),
            TextColumn(f"{100 * rows.meta['confidence_level']:g} % interval", "au", interval, "<"),
            TextColumn("status", "", rows["status"].tolist(), "<"),
        ]
    )
    legend = _legend([RangeStatus[name] for name in rows["status"]])
    return f"{text}\n\n{legend}" if legend else text


def _legend(statuses: Any) -> str:
    """What to do about each status that occurs, other than OK."""
    told = [
        in_options(f"{status.name}: {status.advice}")
        for status in dict.fromkeys(statuses)
        if status.name != "OK"
    ]
    return "".join(textwrap.fill(text, 98, subsequent_indent="  ") + "\n" for text in told)
