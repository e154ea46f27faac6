"""Figures of the source tree that the page on its plan quotes.

``python docs/tools/house_figures.py [FOLDER]`` prints, for the package in FOLDER (this one by
default): lines in all and by room, public names, private functions and how many of them are called
from one place. Only the text of the modules is read; nothing is imported.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).resolve().parents[2] / "neoranging"
Function = ast.FunctionDef | ast.AsyncFunctionDef


class House(NamedTuple):
    """Figures of a package."""

    lines: dict[str, int]
    """Lines by room, which is a folder; those of the laboratory are counted one by one."""
    public: list[str]
    """Names that users may import, each by its shortest path."""
    private: list[str]
    """Private functions and methods."""
    called_once: list[str]
    """Those of them that are mentioned in one place."""


def stubs(folder: Path) -> dict[str, list[str]]:
    """Names that the stub of each package lists, without submodules and version, root first."""
    return {
        ".".join(path.parent.relative_to(folder.parent).parts): [
            alias.name
            for node in ast.parse(path.read_text(encoding="utf-8")).body
            if isinstance(node, ast.ImportFrom) and node.module not in {None, "_version"}
            for alias in node.names
        ]
        for path in sorted(folder.rglob("__init__.pyi"), key=lambda path: (len(path.parts), path))
    }


def public_names(folder: Path) -> list[str]:
    """Public names by their shortest path, errors included; packages repeat some of the root."""
    shortest: dict[str, str] = {}
    for package, names in stubs(folder).items():
        for name in names:
            shortest.setdefault(name, f"{package}.{name}")
    errors = ast.parse((folder / "exceptions.py").read_text(encoding="utf-8")).body
    return sorted(
        [
            *shortest.values(),
            *(
                f"{folder.name}.exceptions.{node.name}"
                for node in errors
                if isinstance(node, ast.ClassDef)
            ),
        ]
    )


def survey(folder: Path = PACKAGE) -> House:
    """Count what stands in a package."""
    sources = {path: path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.py"))}
    lines: Counter[str] = Counter()
    uses: Counter[str] = Counter()
    private = []
    for path, source in sources.items():
        parts = path.relative_to(folder).parts[:-1]
        room = "/".join(parts[: 2 if parts[:1] == ("lab",) else 1]) or "(top)"
        lines[room] += len(source.splitlines())
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Name | ast.Attribute):
                uses[node.id if isinstance(node, ast.Name) else node.attr] += 1
            elif isinstance(node, Function) and node.name.startswith("_"):
                # parts of one compiled function, which its decorator says they are
                is_part = any(
                    isinstance(d, ast.Name) and d.id == "inlined" for d in node.decorator_list
                )
                private += [] if node.name.startswith("__") or is_part else [node.name]
    once = [name for name in private if uses[name] == 1]
    return House(dict(lines.most_common()), public_names(folder), private, once)


def report(house: House) -> str:
    """Figures as the lines that are printed."""
    laboratory = {room: n for room, n in house.lines.items() if room.startswith("lab")}
    rows = [("lines", sum(house.lines.values()))]
    for side, rooms in (
        ("instrument", {r: n for r, n in house.lines.items() if r not in laboratory}),
        ("laboratory", laboratory),
    ):
        rows += [(f"  {side}", sum(rooms.values()))]
        rows += [(f"    {room}", n) for room, n in rooms.items()]
    rows += [
        ("public names", len(house.public)),
        ("private functions", len(house.private)),
        ("  called from one place", len(house.called_once)),
    ]
    return "\n".join(f"{name:26}{n:7}" for name, n in rows)


if __name__ == "__main__":
    print(report(survey(*map(Path, sys.argv[1:2]))))
