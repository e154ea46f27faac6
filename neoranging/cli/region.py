"""``neoranging region``: the admissible ranges of the tracklets in files of observations."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from neoranging._version import __version__
from neoranging.cli.errors import EXIT_CODES, echo
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

if TYPE_CHECKING:
    from astropy.table import QTable

    from neoranging.tracklet import TrackletSet


@click.command(epilog=EXIT_CODES)
@input_options
@click.option(
    "--a-max",
    type=Number(min=0.0, min_open=True),
    metavar="AU",
    help="Largest semimajor axis.  [default: any ellipse]",
)
@output_options
def region(a_max: float | None, form: str, out: Path | None, **reading: Any) -> None:
    """Limits of range and range-rate for every tracklet in FILE...

    Whatever its observations determine, an object bound to the Sun and not to the Earth lies in
    its admissible region: between these ranges, and between these range-rates. It takes two
    observations. Exit code 5 does not occur.

    \b
    Examples:
      neoranging region night.obs80
      neoranging region night.obs80 --a-max 4 --out limits.csv
    """  # noqa: D301 (the character by which click keeps lines apart)
    tracklets = read_files(Reading(**reading))
    deliver(_rows(tracklets, a_max), form, out, _as_text)


def _rows(tracklets: TrackletSet, a_max: float | None) -> QTable:
    import numpy as np
    from astropy import units as u
    from astropy.table import QTable

    attributables = tracklets.attributable()
    limits = np.array([_limits(attributables[k], a_max) for k in range(len(tracklets))])
    track = tracks(tracklets)
    names = ("tracklet", "designation", "stations")
    identity = {name: track.pop(name) for name in names if name in track}
    rate = u.au / u.d
    return QTable(
        {
            **identity,
            "epoch": utc(attributables.epoch),
            **track,
            "proper_motion": attributables.proper_motion.to(u.deg / u.d),
            "range_low": limits[:, 0] * u.au,
            "range_high": limits[:, 1] * u.au,
            "range_rate_low": limits[:, 2] * rate,
            "range_rate_high": limits[:, 3] * rate,
        },
        meta={"neoranging": __version__, "a_max_au": a_max},
    )


def _limits(attributable: Any, a_max: float | None) -> tuple[float, ...]:
    """Least and greatest range, lowest and highest range-rate; NaN with a word on why."""
    from astropy import units as u

    from neoranging.admissible_region import AdmissibleRegion
    from neoranging.exceptions import AdmissibleRegionError

    try:
        limit = None if a_max is None else a_max * u.au
        found = AdmissibleRegion(attributable, a_max=limit)
        return (*found.range_limits.value, *(edge.value for edge in found.range_rate_limits()))
    except AdmissibleRegionError as error:
        echo(f"Warning: {attributable.epoch.utc.isot}: {error}", err=True)
        return (float("nan"),) * 4


def _as_text(rows: QTable) -> str:
    return text_table(
        [
            *track_columns(rows),
            TextColumn("motion", "deg/d", numbers(rows, "proper_motion", 3)),
            TextColumn("range", "from", numbers(rows, "range_low", 3)),
            TextColumn("", "to au", numbers(rows, "range_high", 3)),
            TextColumn("range rate", "from", numbers(rows, "range_rate_low", 3, "+")),
            TextColumn("", "to au/d", numbers(rows, "range_rate_high", 3, "+")),
        ]
    )
