"""``neoranging dataset``: sets of labelled arcs; those that make one stand in ``dataset_*.py``."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from neoranging.cli.errors import echo
from neoranging.cli.lazy import LazyGroup
from neoranging.cli.options import COUNT_OR_NONE, FILE, FOLDER, Number, seed_option
from neoranging.tables import text_table

if TYPE_CHECKING:
    from collections.abc import Callable


MAKERS = [
    EntryPoint(name, f"neoranging.lab.cli.dataset_{name}:command", "neoranging.commands.dataset")
    for name in ("neodys", "real", "twin")
]
"""Commands that make a set."""


@click.group(cls=LazyGroup, entry_points=MAKERS)
def dataset() -> None:
    """Make, divide and look at sets of labelled arcs.

    A set is a folder: the arcs as Parquet files, and a manifest that says how they were made and
    what became of everything that was read. A command that was interrupted goes on where it
    stopped when it is given once more.

    \b
    First steps:
      neoranging dataset twin --seed 0 --objects 300 --out twin
      neoranging dataset split twin
      neoranging dataset info twin
    """  # noqa: D301 (the character by which click keeps lines apart)


def set_argument(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the argument SET, the folder of a set, to a command."""
    return click.argument("folder", metavar="SET", type=FOLDER)(command)


def echo_account(account: Any) -> None:
    """Tell on standard output what was read, used and dropped."""
    echo(str(account))


@dataset.command()
@set_argument
def info(folder: Path) -> None:
    """Tell what the set in the folder SET holds and how it was made."""
    from neoranging.lab.sets.store import read_account, read_manifest

    manifest = read_manifest(folder)
    echo(f"{manifest['n_arcs']} arcs of {manifest['n_objects']} objects")
    for name, value in manifest["settings"].items():
        echo(f"  {name}: {value}")
    echo_account(read_account(folder))
    for part in manifest.get("splits", {}).get("parts", []):
        echo("{split}: {n_arcs} arcs of {n_objects} objects".format(**part))


@dataset.command()
@set_argument
@seed_option("Of the random order.")
@click.option(
    "--ratios",
    type=(Number(), Number(), Number()),
    default=(0.7, 0.2, 0.1),
    show_default=True,
    help="Shares of the arcs: training, validation, test.",
)
@click.option(
    "--never-train",
    type=FILE,
    metavar="CSV",
    help="Objects to keep out of training (a column 'designation'); they become 'unseen'.",
)
@click.option(
    "--unseen",
    type=COUNT_OR_NONE,
    default=0,
    show_default=True,
    help="Further objects, drawn at random, to keep as 'unseen'.",
)
def split(
    folder: Path,
    seed: int,
    ratios: tuple[float, float, float],
    never_train: Path | None,
    unseen: int,
) -> None:
    """Divide the set in the folder SET by objects.

    All arcs of an object fall into one part. May be repeated; the last division counts.
    """
    from neoranging.lab.sets.splits import listed, read_designations, split_set

    held_back = [] if never_train is None else read_designations(never_train)
    division = split_set(folder, ratios=ratios, seed=seed, never_train=held_back, unseen=unseen)
    echo(str(division))
    if held_back:
        n_listed = int(listed(division.designation, held_back).sum())
        echo(f"{n_listed} of the {len(held_back)} objects never to train on are in the set")


@dataset.command()
@set_argument
def csv(folder: Path) -> None:
    """Write observations.csv and ground_truth.csv into the folder SET.

    One row per arc in both, with the common key arc_id.
    """
    from neoranging.lab.sets.store import write_csv

    for path in write_csv(folder):
        echo(str(path))


@dataset.command()
def columns() -> None:
    """List the columns of a set, with types and units.

    Those with brackets hold one value per observation of the arc.
    """
    from neoranging.lab.sets.schema import COLUMNS

    described = COLUMNS.values()
    columns = {
        "column": list(COLUMNS),
        "type": [c.dtype + "[]" * c.per_observation for c in described],
        "unit": [c.unit for c in described],
        "meaning": [c.meaning for c in described],
    }
    echo(text_table(columns))
