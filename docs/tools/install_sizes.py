"""Size of an installation without extras, and of what each extra adds: the table of the README.

    python docs/tools/install_sizes.py [EXTRA...]

Every one is installed into an environment of its own, in a temporary folder. The sizes are those of
the files in site-packages, pip's own and this package aside: as they come, and in parentheses with
the bytecode that pip compiles.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
FOR_DEVELOPERS = ("test", "lint", "dev", "docs")
OWN = ("pip", "setuptools", "pkg_resources", "_distutils_hack", "distutils-precedence")
"""Beginnings of what every environment holds."""

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


def install(environment: Path, extra: str = "") -> dict[str, Size]:
    """Install with an extra; size of each folder and file in site-packages, pip's own aside."""
    python = environment / "bin" / "python"
    wanted = f".[{extra}]" if extra else "."
    command = f"{python} -m pip install --quiet --compile -c constraints-cpu.txt -e".split()
    subprocess.run([*command, wanted], check=True, cwd=ROOT)
    (packages,) = environment.glob("lib/python*/site-packages")
    return {path.name: size(path) for path in packages.iterdir() if not path.name.startswith(OWN)}


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


def rows(extras: list[str], folder: Path) -> Iterator[str]:
    """Lines of the tables, each as soon as it is measured."""
    bare = folder / "base"
    subprocess.run([sys.executable, "-m", "venv", bare], check=True)
    base = install(bare)
    yield "| package of the base | MB |"
    yield "|---|---|"
    largest = sorted(base.items(), key=lambda item: -sum(item[1]))[:LARGEST]
    yield from (f"| {name} | {one} |" for name, one in largest)
    yield "\n| extra | MB beyond the base |"
    yield "|---|---|"
    yield f"| none | {total(base)} |"
    for extra in extras:
        shutil.copytree(bare, folder / extra, symlinks=True)
        yield f"| `{extra}` | {total(install(folder / extra, extra)).less(total(base))} |"
        shutil.rmtree(folder / extra)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("extras", nargs="*", help="extras to measure; all for users by default")
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = [e for e in declared["optional-dependencies"] if e not in FOR_DEVELOPERS]
    with tempfile.TemporaryDirectory() as folder:
        for line in rows(parser.parse_args().extras or extras, Path(folder)):
            print(line, flush=True)


if __name__ == "__main__":
    main()
