"""The command ``neoranging``; each subcommand stands in a module of its own."""

from __future__ import annotations

from importlib.metadata import entry_points

import click

from neoranging._version import __version__
from neoranging.cli.compile import compile_ahead
from neoranging.cli.demo import demo
from neoranging.cli.errors import CommandLine
from neoranging.cli.estimate import estimate
from neoranging.cli.follow_up import follow_up
from neoranging.cli.impact import impact
from neoranging.cli.methods import methods
from neoranging.cli.region import region
from neoranging.cli.report import report


@click.group(
    cls=CommandLine,
    entry_points=entry_points(group="neoranging.commands"),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Every command explains itself: neoranging COMMAND --help.",
)
@click.version_option(__version__, package_name="neoranging")
def main() -> None:
    """Range of a new near-Earth object from one night of astrometry, and what follows from it.

    \b
    First steps:
      neoranging demo                              see what it does, on real tracklets
      neoranging report night.obs80 --out n.html   one page for the tracklets of a night
      neoranging estimate night.obs80              ranges, by any method
      neoranging estimate --help                   formats, methods, exit codes
    """  # noqa: D301 (the character by which click keeps lines apart)


for command in (estimate, follow_up, impact, report, region, methods, compile_ahead, demo):
    main.add_command(command)
