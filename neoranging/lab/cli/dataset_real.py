"""``neoranging dataset real``: a set of real arcs with n-body truth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from neoranging.cli.errors import echo
from neoranging.cli.options import (
    FILE,
    GROUPINGS,
    dynamics_option,
    folder_option,
    gate_option,
    group_by_option,
    overwrite_option,
)
from neoranging.lab.cli.dataset import echo_account


@click.command("real")
@click.option(
    "--observations",
    type=FILE,
    metavar="TABLE",
    multiple=True,
    required=True,
    help="Observations: comma-separated with named columns (.csv, .csv.gz), MPC 80-column, ADES "
    "or .rwo. May be given several times.",
)
@click.option(
    "--orbits",
    type=FILE,
    metavar="TABLE",
    help="Orbital elements, comma-separated with named columns.  [default: the catalogue of the "
    "package]",
)
@folder_option("Folder of the set.", required=True)
@dynamics_option(
    "nbody", "Motion of the truth: with the planets, or two bodies as the literature has it."
)
@click.option(
    "--max-u",
    type=click.IntRange(0, 9),
    default=3,
    show_default=True,
    help="Largest uncertainty parameter U of an orbit.",
)
@click.option("--any-u", is_flag=True, help="Take orbits of any U, or without one.")
@gate_option
@group_by_option("An arc")
@overwrite_option("Replace the set in the folder.")
def command(
    observations: tuple[Path, ...],
    out: Path,
    max_u: int,
    any_u: bool,
    group_by: str,
    **options: Any,
) -> None:
    """Make a set of real arcs, each with the range that its object's orbit gives.

    The orbit is followed from the epoch of its elements to every observation, and has to agree with
    all of them: arcs that a prediction misses by more than the gate are dropped, and counted.

    \b
    Tables need these columns (more, and other names for them, are in the guide):
      observations  designation, mjd_utc, ra_deg, dec_deg, station
      orbits        designation, a_au, ecc, inc_deg, raan_deg, argp_deg, mean_anomaly_deg,
                    epoch_mjd_tdb

    \b
    Examples:
      neoranging dataset real --observations observations.csv.gz --out real
      neoranging dataset real --observations 99942.rwo --orbits mine.csv --any-u --out apophis
    """  # noqa: D301 (the character by which click keeps lines apart)
    from neoranging.lab.sets.from_observations import make_real_set
    from neoranging.lab.sets.progress import progress_bar

    with progress_bar(0, "truth") as bar:
        summary, account = make_real_set(
            observations,
            folder=out,
            max_u=None if any_u else max_u,
            group_by=GROUPINGS[group_by],
            progress=bar.update,
            **options,
        )
    echo_account(account)
    echo(str(summary))
