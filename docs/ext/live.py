"""Parts of pages that the package itself supplies, so that they cannot grow stale.

``.. command-output:: neoranging methods``
    The command and what it prints.
``.. range-statuses::``
    The members of `RangeStatus` with their advice.
``.. house-figures::``
    What ``docs/tools/house_figures.py`` prints.
``.. night-page:: impactors messy``
    The page of a night of samples, in a frame.

References of the text to Python names may leave out the module: ``Tracklet.estimate`` is found
wherever it is documented.
"""

from __future__ import annotations

import os
import re
import runpy
import shlex
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import neoranging


class CommandOutput(Directive):
    """Run a command of the package and show its output."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """Return the command and its output as a block."""
        from click.testing import CliRunner

        from neoranging.cli import main

        command = self.arguments[0]
        program, *arguments = shlex.split(command)
        width = {"terminal_width": 88, "max_content_width": 88}
        result = CliRunner().invoke(main, arguments, prog_name=program, **width)
        if result.exit_code != 0:
            raise self.error(f"{command!r} failed: {result.output}{result.exception!r}")
        text = f"$ {command}\n{_without_places(result.stdout.rstrip())}"
        return [nodes.literal_block(text, text, language="console")]


def _without_places(text: str) -> str:
    """Drop from paths what belongs to the machine that builds the pages."""
    package = Path(neoranging.__file__).parents[1]
    return re.sub(r"\S*bin/neoranging\b", "neoranging", text.replace(f"{package}{os.sep}", ""))


class RangeStatuses(SphinxDirective):
    """List the members of `RangeStatus` and what each advises."""

    def run(self) -> list[nodes.Node]:
        """Return the members as a definition list."""
        from neoranging import RangeStatus

        members = nodes.definition_list()
        for member in RangeStatus:
            term = nodes.term("", "", nodes.literal(text=member.name))
            advice = nodes.definition("", nodes.paragraph(text=member.advice))
            members += nodes.definition_list_item("", term, advice)
        return [members]


class HouseFigures(Directive):
    """Show the figures of the source tree."""

    def run(self) -> list[nodes.Node]:
        """Return the command and its output as a block."""
        tool = runpy.run_path(str(Path(__file__).parents[1] / "tools" / "house_figures.py"))
        figures = tool["report"](tool["survey"]())
        text = f"$ python docs/tools/house_figures.py\n{figures}"
        return [nodes.literal_block(text, text, language="console")]


class NightPageFrame(Directive):
    """Show the page of samples of the package."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """Return the page in a frame."""
        import warnings

        from neoranging.night import NightPage

        with warnings.catch_warnings():
            # a sample has an unknown station, which is part of the show
            warnings.simplefilter("ignore", neoranging.exceptions.NeoRangingWarning)
            paths = [neoranging.sample(name) for name in self.arguments[0].split()]
            page = NightPage(neoranging.read_tracklets(paths))
            return [nodes.raw("", page._repr_html_(), format="html")]


def _find_anywhere(app: Sphinx, env: Any, node: Any, content: Any) -> Any:
    """Resolve a Python name without its module; a public object comes before one of the core."""
    if node.get("refdomain") != "py":
        return None
    domain = env.get_domain("py")
    name = node["reftarget"].removeprefix("neoranging.")
    parts = name.split(".")
    # Docstrings name a class by the module that holds it, the reference by the package that lists
    # it: last parts decide, yet `core.candidates` is not the attribute `RangeEstimate.candidates`.
    for ending in (name, ".".join(parts[-2:]), parts[-1]):
        found = [
            full
            for full in domain.objects
            if full.endswith(f".{ending}")
            and (ending == name or "." in ending or full.rpartition(".")[0] not in domain.objects)
        ]
        if found:
            break
    else:
        return None
    node["reftarget"] = min(
        found, key=lambda full: (full.startswith("neoranging.core."), len(full))
    )
    return domain.resolve_xref(
        env, node["refdoc"], app.builder, node["reftype"], node["reftarget"], node, content
    )


def setup(app: Sphinx) -> dict[str, Any]:
    """Register directives and the search for unqualified names."""
    app.add_directive("command-output", CommandOutput)
    app.add_directive("range-statuses", RangeStatuses)
    app.add_directive("house-figures", HouseFigures)
    app.add_directive("night-page", NightPageFrame)
    app.connect("missing-reference", _find_anywhere)
    return {"version": "1.0", "parallel_read_safe": True, "parallel_write_safe": True}
