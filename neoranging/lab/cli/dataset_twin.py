"""``neoranging dataset twin``: a simulated set with the distributions of the real one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from neoranging.cli.errors import echo
from neoranging.cli.options import (
    COUNT,
    Number,
    dynamics_option,
    folder_option,
    group_by_option,
    overwrite_option,
    seed_option,
)
from neoranging.lab.cli.dataset import echo_account


@click.command("twin")
@folder_option("Folder of the set.", required=True)
@seed_option()
@click.option(
    "--objects",
    type=COUNT,
    metavar="N",
    help="So many objects, drawn at random, instead of all 39,000.",
)
@click.option(
    "--close-fraction",
    type=Number(min=0.0),
    default=0.0,
    show_default=True,
    metavar="F",
    help="Add, for each visit, F arcs of orbits turned to pass the Earth between 0.0001 and "
    "0.1 au; they bear the label is_close.",
)
@click.option(
    "--errors",
    type=click.Choice(["measured", "claimed"]),
    default="measured",
    show_default=True,
    help="Errors of observations as real ones have them, less than claimed and partly common to a "
    "visit, or as claimed and each on its own.",
)
@click.option(
    "--noise",
    type=Number(min=0.0),
    default=1.0,
    show_default=True,
    metavar="F",
    help="Factor by which the errors of the stations are taken; 0 for exact directions and times.",
)
@click.option(
    "--limiting-magnitude",
    type=Number(),
    default=22.0,
    show_default=True,
    metavar="MAG",
    help="At which half of the objects are found in 2022; other years move along.",
)
@click.option(
    "--stations",
    metavar="CODES",
    default="",
    help="MPC codes with commas between.  [default: all 40 that are simulated]",
)
@click.option(
    "--from",
    "first_date",
    metavar="DATE",
    default="1985-01-01",
    show_default=True,
    help="First night.",
)
@click.option(
    "--to",
    "last_date",
    metavar="DATE",
    default="2025-08-16",
    show_default=True,
    help="Day after the last night. Objects designated later are left out.",
)
@dynamics_option(
    "kepler",
    "Motion of the objects: on fixed ellipses, or under the planets as well (six times as long; "
    "needs the extra nbody).",
)
@group_by_option("An arc", default="night")
@click.option(
    "--workers",
    type=COUNT,
    metavar="N",
    help="Processes; the set does not depend on it.  [default: one per core]",
)
@overwrite_option("Begin anew whatever DIR holds.")
def command(out: Path, stations: str, workers: int | None, overwrite: bool, **options: Any) -> None:
    """Simulate a set: real orbits, observed as surveys and followers did since 1985.

    Every object has as many visits of stations as it has real observations / 4.55, in as many
    apparitions as it has oppositions, where it was bright enough, above the horizon and in the
    dark; an arc is what all stations saw of it in one night. The set comes
    with a comparison of its distributions with the published ones of the set of NEODyS, which it
    is not. Give the same command once more to go on with an interrupted one.

    \b
    Examples:
      neoranging dataset twin --objects 300 --out small
      neoranging dataset twin --seed 0 --close-fraction 0.06 --out twin
    """  # noqa: D301 (the character by which click keeps lines apart)
    from neoranging.lab.sets.store import read_account
    from neoranging.lab.simulation.marginals import as_text
    from neoranging.lab.simulation.twin import Twin, make_twin

    codes = tuple(code.strip() for code in stations.split(",") if code.strip())
    rows = make_twin(out, Twin(stations=codes, **options), workers=workers, overwrite=overwrite)
    echo_account(read_account(out))
    echo(as_text(rows))
