"""``neoranging dataset``: sets of labelled arcs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from neoranging.cli.errors import CommandError, echo
from neoranging.cli.options import (
    COUNT,
    FILE,
    FOLDER,
    GROUPINGS,
    NEW_FOLDER,
    POSITIVE,
    Number,
    dynamics_option,
    folder_option,
    gate_option,
    group_by_option,
    scheduler_option,
    seed_option,
)
from neoranging.exceptions import NeoRangingError
from neoranging.tables import text_table

if TYPE_CHECKING:
    from neoranging.lab.archive import NeodysClient


@click.group()
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


# Those that make a set ----------------------------------------------------------------------------


@dataset.command()
@folder_option("Folder of the set.")
@click.option("--all", "everything", is_flag=True, help="All objects of the catalogue.")
@click.option(
    "--objects",
    metavar="NAMES",
    help="Objects instead: names with commas between, or @FILE with one in each line.",
)
@click.option(
    "--orbits",
    type=click.Choice(["middle", "present", "catalogue"]),
    default="middle",
    show_default=True,
    help="Orbits of the truth: one file per object, with its epoch in the middle of the observed "
    "arc or near the present, or the one catalogue near the present.",
)
@dynamics_option(
    "kepler", "Motion of the truth: two bodies, as the literature has it, or with the planets."
)
@gate_option
@group_by_option("An arc")
@click.option(
    "--base-url",
    metavar="URL",
    envvar="NEORANGING_NEODYS_URL",
    show_envvar=True,
    help="Another address of the portal, such as a mirror.",
)
@click.option(
    "--cache",
    type=NEW_FOLDER,
    metavar="DIR",
    help="Folder of the downloads.  [default: neodys in $NEORANGING_CACHE, or in the cache folder "
    "of the user]",
)
@click.option(
    "--rate",
    type=POSITIVE,
    default=4.0,
    show_default=True,
    metavar="N",
    help="Requests per second at most.",
)
@click.option(
    "--concurrency",
    type=click.IntRange(1, 8),
    default=2,
    show_default=True,
    help="Requests under way at a time.",
)
@click.option("--refresh", is_flag=True, help="Ask for newer versions of what is at hand.")
@click.option("--again", is_flag=True, help="Ask again for what was missing or corrupt before.")
@click.option("--partial", is_flag=True, help="Make the set even if files did not arrive.")
@click.option("--download-only", is_flag=True, help="Fetch the files, and make no set.")
@click.option("--overwrite", is_flag=True, help="Replace the set in the folder.")
def neodys(
    out: Path | None, everything: bool, objects: str | None, download_only: bool, **options: Any
) -> None:
    """Make a set of the observations and orbits of NEODyS-2.

    Fetches the observation file and the orbit of each object, forms the arcs, gives them their true
    ranges and drops those whose truth does not fit the observations. Files are fetched once and
    kept; a command that was interrupted goes on where it stopped when it is given once more.

    All objects are some 80,000 files: at the default rate about six hours. Two-body truth holds for
    days to months around the epoch of an orbit; where the extra nbody is installed, take
    --dynamics nbody, which needs no file of its own per object with --orbits catalogue.

    \b
    Examples:
      neoranging dataset neodys --objects "433,99942,2024 YR4" --out few
      neoranging dataset neodys --all --out neodys
      neoranging dataset neodys --all --orbits catalogue --dynamics nbody --out neodys
    """  # noqa: D301 (the character by which click keeps lines apart)
    if everything == bool(objects):
        raise click.UsageError("name the objects with --objects, or take --all of them")
    if out is None and not download_only:
        raise click.UsageError("give the folder of the set with --out, or --download-only")
    from neoranging.lab.archive import NeodysClient, Politeness

    politeness = Politeness(requests_per_second=options["rate"], concurrency=options["concurrency"])
    with NeodysClient(
        options["cache"], portal=options["base_url"], politeness=politeness
    ) as client:
        try:
            _fetch_and_make(client, None if download_only else out, objects, options)
        except NeoRangingError:
            raise  # some of them are errors of the system as well
        except OSError as error:
            raise CommandError(f"{error}; all that came is kept, give the command again") from error


def _fetch_and_make(
    client: NeodysClient, out: Path | None, objects: str | None, options: dict[str, Any]
) -> None:
    from neoranging.lab.sets.from_neodys import NeodysSet
    from neoranging.lab.sets.progress import progress_bar

    if objects is None or options["orbits"] == "catalogue":
        table = client.catalogue(refresh=options["refresh"])
        listed = list(table["designation"])
        record = client.store.records.get(client.portal.catalogue)
        date = f" of {record.time[:10]}" if record else ""
        echo(f"catalogue{date}: {table.meta['report']}")
    plan = NeodysSet(
        designations=_named(objects) if objects else listed,
        orbits=options["orbits"],
        dynamics=options["dynamics"],
        gate=options["gate"],
        group_by=GROUPINGS[options["group_by"]],
    )
    files = plan.files(client)
    with progress_bar(len(files), "files", "file") as bar:
        report = client.download(
            files, refresh=options["refresh"], again=options["again"], on_step=bar.update
        )
    echo(report)
    if out is None:
        return
    if report.n_failed and not options["partial"]:
        raise CommandError(
            f"{report.n_failed} files did not arrive; give the command once more to try them "
            "again, or --partial to go without them"
        )
    with progress_bar(len(plan.designations), "arcs", "object") as bar:
        account = plan.make(client, out, overwrite=options["overwrite"], on_step=bar.update)
    echo(account)
    echo(f"{account.counts['labels'].n_used} labelled arcs in {out}")


def _named(text: str) -> list[str]:
    """Names of the option --objects."""
    if not text.startswith("@"):
        names = text.split(",")
    else:
        try:
            names = Path(text[1:]).read_text(encoding="utf-8").splitlines()
        except OSError as error:
            raise click.UsageError(f"--objects: {text[1:]}: {error.strerror or error}") from error
    objects = [name.strip() for name in names if name.strip() and not name.startswith("#")]
    if not objects:
        raise click.UsageError("--objects names no object")
    return list(dict.fromkeys(objects))


@dataset.command()
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
@click.option("--overwrite", is_flag=True, help="Replace the set in the folder.")
def real(
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
    echo(account)
    echo(summary)


@dataset.command()
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
    "near-earth",
    "Motion of the objects: on ellipses, and under the Earth and the Moon while these are near; on "
    "ellipses throughout; or under the planets as well (six times as long; needs the extra nbody).",
    "near-earth",
)
@group_by_option("An arc", default="night")
@click.option(
    "--workers",
    type=COUNT,
    metavar="N",
    help="Processes; the set does not depend on it.  [default: one per core]",
)
@scheduler_option
@click.option("--overwrite", is_flag=True, help="Begin anew whatever DIR holds.")
def twin(
    out: Path,
    stations: str,
    workers: int | None,
    scheduler: str | None,
    overwrite: bool,
    **options: Any,
) -> None:
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
    settings = Twin(stations=codes, **options)
    rows = make_twin(out, settings, workers=workers, scheduler=scheduler, overwrite=overwrite)
    echo(read_account(out))
    echo(as_text(rows))


# Those that look at one ---------------------------------------------------------------------------

set_argument = click.argument("folder", metavar="SET", type=FOLDER)


@dataset.command()
@set_argument
def info(folder: Path) -> None:
    """Tell what the set in the folder SET holds and how it was made."""
    from neoranging.lab.sets.store import read_account, read_manifest

    manifest = read_manifest(folder)
    echo(f"{manifest['n_arcs']} arcs of {manifest['n_objects']} objects")
    for name, value in manifest["settings"].items():
        echo(f"  {name}: {value}")
    echo(read_account(folder))
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
def split(
    folder: Path,
    seed: int,
    ratios: tuple[float, float, float],
    never_train: Path | None,
) -> None:
    """Divide the set in the folder SET by objects.

    All arcs of an object fall into one part, which its name and the seed decide: sets with other
    arcs or objects have the same objects in their parts. May be repeated; the last division counts.
    """
    from neoranging.lab.sets.splits import listed, read_designations, split_set

    held_back = [] if never_train is None else read_designations(never_train)
    division = split_set(folder, ratios=ratios, seed=seed, never_train=held_back)
    echo(division)
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
        echo(path)


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
