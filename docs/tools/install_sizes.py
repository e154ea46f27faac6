"""Size of an installation without extras, and of what each extra adds: the table of the README.

    python docs/tools/install_sizes.py [EXTRA...]

Every one is installed into an environment of its own, made in a temporary folder and removed. The
sizes are those of the files in site-packages, pip and the package itself aside: as they come, and
in parentheses with the bytecode that pip compiles.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
FOR_DEVELOPERS = ("test", "lint", "dev", "docs")
LARGEST = 12
"""Packages of the base that are listed one by one."""


class Size(NamedTuple):
    """Bytes of files."""

    files: int = 0
    bytecode: int = 0

    def __str__(self) -> str:
        return f"{self.files / 1e6:.0f} ({sum(self) / 1e6:.0f})"

    def less(self, other: Size) -> Size:
        """Difference to another size."""
        return Size(self.files - other.files, self.bytecode - other.bytecode)


def installed(extra: str) -> dict[str, Size]:
    """Size of each folder and file in site-packages after an installation with an extra."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        (packages,) = Path(folder).glob("lib/python*/site-packages")
        present = {path.name for path in packages.iterdir()}
        wanted = f".[{extra}]" if extra else "."
        constraint = ("-c", "constraints-cpu.txt")
        python = str(Path(folder) / "bin" / "python")
        subprocess.run(
            [python, "-m", "pip", "install", "--quiet", "--compile", *constraint, "-e", wanted],
            check=True,
            cwd=ROOT,
        )
        return {path.name: size(path) for path in packages.iterdir() if path.name not in present}


def size(path: Path) -> Size:
    """Size of a file, or of all files of a folder."""
    files = bytecode = 0
    for one in path.rglob("*") if path.is_dir() else [path]:
        if one.is_file():
            if one.suffix == ".pyc":
                bytecode += one.stat().st_size
            else:
                files += one.stat().st_size
    return Size(files, bytecode)


def total(sizes: dict[str, Size]) -> Size:
    """Sum of sizes."""
    return Size(*map(sum, zip(*sizes.values(), strict=True)))


def rows(extras: list[str]) -> Iterator[str]:
    """Lines of the tables, each as soon as it is measured."""
    base = installed("")
    yield "| package of the base | MB |"
    yield "|---|---|"
    largest = sorted(base.items(), key=lambda item: -sum(item[1]))[:LARGEST]
    yield from (f"| {name} | {one} |" for name, one in largest)
    yield "\n| extra | MB beyond the base |"
    yield "|---|---|"
    yield f"| none | {total(base)} |"
    for extra in extras:
        yield f"| `{extra}` | {total(installed(extra)).less(total(base))} |"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("extras", nargs="*", help="extras to measure; all for users by default")
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = [e for e in declared["optional-dependencies"] if e not in FOR_DEVELOPERS]
    for line in rows(parser.parse_args().extras or extras):
        print(line, flush=True)


if __name__ == "__main__":
    main()
