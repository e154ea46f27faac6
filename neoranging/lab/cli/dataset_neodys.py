"""``neoranging dataset neodys``: a set of the observations and orbits of NEODyS-2."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from neoranging.cli.errors import CommandError, echo
from neoranging.cli.options import (
    GROUPINGS,
    NEW_FOLDER,
    POSITIVE,
    dynamics_option,
    folder_option,
    gate_option,
    group_by_option,
    overwrite_option,
)
from neoranging.exceptions import NeoRangingError
from neoranging.lab.cli.dataset import echo_account

if TYPE_CHECKING:
    from neoranging.lab.archive import NeodysClient


@click.command("neodys")
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
@overwrite_option("Replace the set in the folder.")
def command(
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
    echo(str(report))
    if out is None:
        return
    if report.n_failed and not options["partial"]:
        raise CommandError(
            f"{report.n_failed} files did not arrive; give the command once more to try them "
            "again, or --partial to go without them"
        )
    with progress_bar(len(plan.designations), "arcs", "object") as bar:
        account = plan.make(client, out, overwrite=options["overwrite"], on_step=bar.update)
    echo_account(account)
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
