"""``neoranging dataset real``: a set of real arcs with n-body truth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from neoranging.cli.errors import echo
from neoranging.cli.options import Number
from neoranging.cli.reading import GROUPINGS, group_by_option
from neoranging.lab.cli.dataset import echo_account

_TABLE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command("real")
@click.option(
    "--observations",
    type=_TABLE,
    metavar="TABLE",
    multiple=True,
    required=True,
    help="Observations: comma-separated with named columns (.csv, .csv.gz), MPC 80-column, ADES "
    "or .rwo. May be given several times.",
)
@click.option(
    "--orbits",
    type=_TABLE,
    metavar="TABLE",
    help="Orbital elements, comma-separated with named columns.  [default: the catalogue of the "
    "package]",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    required=True,
    help="Folder of the set.",
)
@click.option(
    "--dynamics",
    type=click.Choice(["nbody", "kepler"]),
    default="nbody",
    show_default=True,
    help="Motion of the truth: with the planets, or two bodies as the literature has it.",
)
@click.option(
    "--max-u",
    type=click.IntRange(0, 9),
    default=3,
    show_default=True,
    help="Largest uncertainty parameter U of an orbit.",
)
@click.option("--any-u", is_flag=True, help="Take orbits of any U, or without one.")
@click.option(
    "--gate",
    type=Number(min=0.0, min_open=True, infinite=True),
    default=10.0,
    show_default=True,
    metavar="ARCSEC",
    help="Labels further than this from an observation are dropped; inf keeps all.",
)
@group_by_option("An arc")
@click.option("--overwrite", is_flag=True, help="Replace the set in the folder.")
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
