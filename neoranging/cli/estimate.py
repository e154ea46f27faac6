"""``neoranging estimate``: ranges of the tracklets in files of observations."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from neoranging.cli.errors import EXIT_CODES, CommandError, ExitCode, echo
from neoranging.cli.listing import (
    TRACK_ALIGN,
    advice_on,
    deliver,
    in_parentheses,
    texts,
    track_rows,
    track_texts,
)
from neoranging.cli.options import (
    FILE,
    Number,
    input_options,
    method_option,
    output_options,
)
from neoranging.cli.reading import read_files
from neoranging.exceptions import NeoRangingError
from neoranging.tables import text_table

if TYPE_CHECKING:
    from astropy.table import QTable

    from neoranging.estimators.base import RangingEstimator


@click.command(epilog=EXIT_CODES)
@input_options
@method_option(default="gauss", show_default=True)
@click.option(
    "--origin",
    type=click.Choice(["topocenter", "geocenter"]),
    show_default="topocenter",
    help="Where the observer is taken to stand: at the station or at the centre of the Earth.",
)
@click.option(
    "--calibration",
    type=FILE,
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
    standard output or --out, the account of the reading to standard error.

    Look at the status first. OK means that the observations determine the range, POPULATION that
    the answer rests on where objects that move like this mostly are; every number but those with OK
    stands in parentheses. The interval of a posterior holds this share of its probability. That of
    another method is the one that held for this share of calibration arcs, OK or not; without
    calibration it is that of the observations' errors where the status is OK, and
    the whole range of orbits bound to the Sun elsewhere.

    \b
    Examples:
      neoranging estimate night.obs80
      neoranging estimate night.obs80 --report --method laplace
      neoranging estimate night.obs80 --method systematic --level 0.95
      neoranging estimate night.obs80 --method systematic@log-uniform
      neoranging estimate night.obs80 --method run/network.safetensors --calibration mine.json
      neoranging estimate *.psv --out ranges.csv
      neoranging estimate night.parquet --out ranges.parquet
      gunzip -c night.obs80.gz | neoranging estimate - --format json
    """  # noqa: D301 (the character by which click keeps lines apart)
    estimator = _estimator(method, origin, calibration)  # before the files: they may be large
    tracklets = read_files(**reading)
    result = tracklets.estimate(estimator)
    low, high = result.interval(level).T
    columns = {
        "range": result.range,
        "range_error": result.range_error,
        "range_rate": result.range_rate,
        "range_rate_error": result.range_rate_error,
        "range_low": low,
        "range_high": high,
        "status": [status.name for status in result.status],
    }
    meta = {"method": result.method, "origin": result.origin, "confidence_level": level}
    deliver(track_rows(tracklets, result.epoch, columns, meta), form, out, _as_text)
    if form != "table" and not reading["quiet"]:
        echo(advice_on(result.status), err=True, nl=False)
    if strict and not result.ok.all():
        failed = int((~result.ok).sum())
        text = f"{failed} of {len(tracklets)} tracklets have another status than OK"
        raise CommandError(text, ExitCode.NOT_OK)


def _estimator(method: str, origin: str | None, calibration: Path | None) -> RangingEstimator:
    """Estimator of the options, with the calibration around it if one was given."""
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


def _as_text(rows: QTable) -> str:
    from neoranging.core.status import RangeStatus

    statuses = [RangeStatus[name] for name in rows["status"]]
    ok = [status is RangeStatus.OK for status in statuses]
    bounds = zip(texts(rows, "range_low", 3), texts(rows, "range_high", 3), strict=True)
    table = text_table(
        {
            **track_texts(rows),
            ("range", "au"): in_parentheses(texts(rows, "range"), ok),
            ("error", "au"): in_parentheses(texts(rows, "range_error", 2), ok),
            ("range rate", "au/d"): in_parentheses(texts(rows, "range_rate", sign="+"), ok),
            (f"{100 * rows.meta['confidence_level']:g} % interval", "au"): [
                "-" if low == "-" else f"{low:>8} to {high}" for low, high in bounds
            ],
            "status": rows["status"].tolist(),
        },
        align=TRACK_ALIGN + ">>><<",
    )
    advice = advice_on(statuses)
    return f"{table}\n\n{advice}" if advice else table
