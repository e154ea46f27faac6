"""``neoranging region``: the admissible ranges of the tracklets in files of observations."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from neoranging.cli.errors import EXIT_CODES, echo
from neoranging.cli.listing import TRACK_ALIGN, deliver, texts, track_texts
from neoranging.cli.options import POSITIVE, input_options, output_options
from neoranging.cli.reading import read_files
from neoranging.rows import track_rows
from neoranging.tables import text_table

if TYPE_CHECKING:
    from astropy.table import QTable


@click.command(epilog=EXIT_CODES)
@input_options
@click.option(
    "--a-max",
    type=POSITIVE,
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
    import numpy as np
    from astropy import units as u

    tracklets = read_files(**reading)
    attributables = tracklets.attributable()
    limits = np.array([_limits(attributables[k], a_max) for k in range(len(tracklets))])
    rate = u.au / u.d
    columns = {
        "proper_motion": attributables.proper_motion.to(u.deg / u.d),
        "range_low": limits[:, 0] * u.au,
        "range_high": limits[:, 1] * u.au,
        "range_rate_low": limits[:, 2] * rate,
        "range_rate_high": limits[:, 3] * rate,
    }
    rows = track_rows(tracklets, attributables.epoch, columns, {"a_max_au": a_max})
    deliver(rows, form, out, _as_text)


def _limits(attributable: Any, a_max: float | None) -> tuple[float, ...]:
    """Least and greatest range, lowest and highest range-rate; NaN, after a warning, for none."""
    from astropy import units as u

    from neoranging.admissible_region import AdmissibleRegion
    from neoranging.exceptions import AdmissibleRegionError

    try:
        limit = None if a_max is None else a_max * u.au
        admissible = AdmissibleRegion(attributable, a_max=limit)
        rates = admissible.range_rate_limits()
        return (*admissible.range_limits.value, *(edge.value for edge in rates))
    except AdmissibleRegionError as error:
        echo(f"Warning: {attributable.epoch.utc.isot}: {error}", err=True)
        return (float("nan"),) * 4


def _as_text(rows: QTable) -> str:
    return text_table(
        {
            **track_texts(rows),
            ("motion", "deg/d"): texts(rows, "proper_motion", 3),
            ("range", "from"): texts(rows, "range_low", 3),
            ("range", "to au"): texts(rows, "range_high", 3),
            ("range rate", "from"): texts(rows, "range_rate_low", 3, "+"),
            ("range rate", "to au/d"): texts(rows, "range_rate_high", 3, "+"),
        },
        align=TRACK_ALIGN + ">>>>>",
    )
