"""``neoranging estimate``: ranges of the tracklets in files of observations."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping
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
    track_texts,
)
from neoranging.cli.options import (
    COUNT,
    FILE,
    GROUPINGS,
    Number,
    input_options,
    method_option,
    output_options,
)
from neoranging.cli.progress import progress_line
from neoranging.cli.reading import none_formed, read_files, unreadable
from neoranging.exceptions import (
    BusyFolderError,
    MissingDependencyError,
    NeoRangingError,
    NeoRangingWarning,
    ObservationFormatError,
)
from neoranging.records import many
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
@click.option(
    "--jobs",
    type=COUNT,
    metavar="N",
    help="Read in pieces, and deal these to N processes: memory does not grow with the files. "
    "Needs --out, CSV or Parquet.",
)
@click.option(
    "--chunk",
    type=COUNT,
    default=100_000,
    show_default=True,
    metavar="N",
    help="Records of a piece, with --jobs.",
)
def estimate(
    method: str,
    origin: str | None,
    calibration: Path | None,
    level: float,
    form: str,
    out: Path | None,
    strict: bool,
    jobs: int | None,
    chunk: int,
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

    With --jobs the files may be larger than the memory. The records of a tracklet have to stand
    beside each other in them, and rows come in that order. A run that ended early goes on when the
    same command is given once more.

    \b
    Examples:
      neoranging estimate night.obs80
      neoranging estimate night.obs80 --report --method laplace
      neoranging estimate night.obs80 --method systematic --level 0.95
      neoranging estimate night.obs80 --method systematic@log-uniform
      neoranging estimate night.obs80 --method run/network.safetensors --calibration mine.json
      neoranging estimate *.psv --out ranges.csv
      neoranging estimate night.parquet --out ranges.parquet
      neoranging estimate survey.parquet --out ranges.parquet --jobs 8
      gunzip -c night.obs80.gz | neoranging estimate - --format json
    """  # noqa: D301 (the character by which click keeps lines apart)
    estimator = _estimator(method, origin, calibration)  # before the files: they may be large
    if jobs is not None:
        statuses = _in_pieces(estimator, level, form, out, jobs, chunk, **reading)
    else:
        from neoranging.rows import estimate_rows

        tracklets = read_files(**reading)
        result = tracklets.estimate(estimator)
        with warnings.catch_warnings():
            if reading["quiet"]:
                warnings.simplefilter("ignore", NeoRangingWarning)
            rows = estimate_rows(tracklets, result, level)
        deliver(rows, form, out, _as_text)
        statuses = Counter(rows["status"].tolist())
    if form != "table" and not reading["quiet"]:
        echo(_advice(statuses), err=True, nl=False)
    n, n_ok = sum(statuses.values()), statuses["OK"]
    if strict and n_ok < n:
        text = f"{n - n_ok} of {n} tracklets have another status than OK"
        raise CommandError(text, ExitCode.NOT_OK)


def _in_pieces(
    estimator: RangingEstimator,
    level: float,
    form: str,
    out: Path | None,
    jobs: int,
    chunk: int,
    *,
    files: tuple[str, ...],
    input_format: str | None,
    scale: str | None,
    station: str | None,
    group_by: str,
    sigma: float | None,
    report: bool,
    quiet: bool,
) -> Counter[str]:
    """Estimate files piece by piece, and say what became of their records; tracklets by status."""
    from neoranging.streaming import FORMATS, Estimation, estimate_files

    if out is None or form not in FORMATS:
        raise click.UsageError("--jobs writes to a file of CSV or Parquet: name it with --out")
    if "-" in files:
        raise click.UsageError("--jobs reads files, which it can go back to: give no '-'")
    if not out.parent.is_dir():
        raise CommandError(f"{out} cannot be written: no such folder")
    line = progress_line()

    def show(share: float, n: int) -> None:
        line(share, f"{share:4.0%} of the input, {many(n, 'tracklet')}")

    estimation = Estimation(
        estimator, level, scale, station, GROUPINGS[group_by], default_sigma=sigma, form=form
    )
    paths = [Path(name) for name in files]
    try:
        with warnings.catch_warnings():
            if quiet:
                warnings.simplefilter("ignore", NeoRangingWarning)
            tally = estimate_files(
                paths,
                out,
                estimation,
                form=input_format,
                jobs=jobs,
                size=chunk,
                **({} if quiet else {"progress": show}),
            )
    except BusyFolderError:
        raise
    except (ObservationFormatError, MissingDependencyError, OSError) as error:
        raise unreadable(error) from error
    if not quiet:
        echo(str(tally) if report else tally.headline(), err=True)
    if not tally.n_tracklets:
        raise none_formed(report)
    return Counter(tally.statuses)


def _advice(statuses: Mapping[str, int]) -> str:
    """Advice on the statuses of tracklets, by their names."""
    from neoranging.core.status import RangeStatus

    return advice_on(RangeStatus[name] for name in statuses)


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
