"""``neoranging report``: a page for the tracklets in files of observations."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from neoranging.cli.errors import EXIT_CODES, CommandError, echo, reason
from neoranging.cli.options import (
    COUNT,
    NEW_FILE,
    Number,
    input_options_with,
    method_option,
    seed_option,
)
from neoranging.cli.pointing import (
    at_option,
    field_option,
    known_observatory,
    observer_option,
    posterior_estimator,
    require_in_ephemeris,
)
from neoranging.cli.progress import progress_line
from neoranging.cli.reading import read_files

if TYPE_CHECKING:
    from astropy.time import Time
    from astropy.units import Quantity


@click.command(epilog=EXIT_CODES)
@input_options_with("--observed-from")
@click.option(
    "--out",
    type=NEW_FILE,
    metavar="FILE",
    required=True,
    help="Page to write, such as night.html; an existing file is replaced once all is done.",
)
@at_option
@observer_option
@field_option(".", default="0.5deg", show_default=True)
@click.option("--limit", type=Number(), metavar="MAG", help="Magnitude limit, in the band V.")
@click.option(
    "--within",
    type=Number(min=0.0, min_open=True, max=366.0),
    metavar="DAYS",
    default=10.0,
    show_default=True,
    help="Time from the night within which an impact counts.",
)
@method_option(default="systematic", show_default=True)
@click.option(
    "--draws",
    type=COUNT,
    default=500,
    show_default=True,
    help="Orbits to draw for each tracklet and prior.",
)
@seed_option("Seed of the draws.")
def report(
    out: Path,
    instant: Time | float,
    observer: str | None,
    field: Quantity,
    limit: float | None,
    within: float,
    method: str,
    draws: int,
    seed: int,
    **reading: Any,
) -> None:
    """Write a page for the night: a row and a panel for every tracklet in FILE...

    The page is one file of HTML that needs nothing else. Its rows stand in the order in which
    tracklets are worth following up, possible impactors first. A panel has the posterior over the
    admissible region, the range, the chances that it is a near-Earth object and that it hits, and
    where to point: the cloud on the sky, its magnitude, and the fields of view that cover it.
    Records that were set aside, and tracklets from which nothing follows, are on the page with the
    reason. Exit code 5 does not occur.

    \b
    Examples:
      neoranging report night.obs80 --out night.html
      neoranging report night.obs80 --out night.html --at 2026-01-31T06:30 --station G96
      neoranging report *.psv --out night.html --field 20arcmin --limit 21.5
    """  # noqa: D301 (the character by which click keeps lines apart)
    from astropy import units as u

    from neoranging.night import NightPage

    # before the files: they may be large
    estimator = posterior_estimator(method)
    if observer is not None:
        observer = known_observatory(observer)
    if not isinstance(instant, float):
        require_in_ephemeris(instant)
    if not out.parent.is_dir():
        raise CommandError(f"{out} cannot be written: no such folder")
    tracklets = read_files(**reading)
    line = progress_line()

    def show(done: int, total: int) -> None:
        line(done / total, f"{done} of {total} tracklets")

    page = NightPage(
        tracklets,
        method=estimator,
        at=instant * u.d if isinstance(instant, float) else instant,
        station=observer,
        field=field,
        limit=None if limit is None else limit * u.mag,
        within=within * u.d,
        n=draws,
        rng=seed,
        progress=None if reading["quiet"] else show,
    )
    try:
        page.write(out)
    except OSError as error:
        raise CommandError(f"{out} cannot be written: {reason(error)}") from error
    if not reading["quiet"]:
        echo(f"{out}: {len(page.html) / 1e6:.1f} MB", err=True)
