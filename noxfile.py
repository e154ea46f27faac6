"""Tests on every Python, on the oldest and newest dependencies, and the release, each by itself.

``nox -s tests-3.12``, ``nox -s base-3.12``, ``nox -s oldest``, ``nox -s newest``,
``nox -s coverage``, ``nox -s lint``, ``nox -s docs``, ``nox -s changelog``, ``nox -s dist``; what
follows ``--`` goes to pytest. The Pythons are those on the path. For daily work ``make`` does in
one environment what ``lint``, ``docs`` and ``coverage`` do here.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import nox

nox.needs_version = ">=2024.4.15"
nox.options.default_venv_backend = "uv|virtualenv"

PYTHONS = ["3.11", "3.12", "3.13"]
OLDEST, NEWEST = PYTHONS[0], PYTHONS[-1]
CPU = ("-c", "constraints-cpu.txt")
PARALLEL = ("-n", "auto", "--dist", "worksteal")
# The tests begin many processes, and without bytecode each would compile the package anew.
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "MPLBACKEND": "agg", "PYTHONDONTWRITEBYTECODE": ""}


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """Tests and examples on one version of Python."""
    session.install(*CPU, "-e", ".[test]")
    session.run("python", "-m", "pytest", *PARALLEL, *session.posargs, env=ENVIRONMENT)


@nox.session(python=PYTHONS)
def base(session: nox.Session) -> None:
    """All methods, where nothing is installed but what the package needs."""
    session.install("-e", ".")
    session.run("python", "tests/base_install.py", env={"MPLBACKEND": "agg"})


@nox.session(python=OLDEST)
def oldest(session: nox.Session) -> None:
    """Tests on the lowest versions that pyproject.toml allows."""
    session.install("uv")
    python = shutil.which("python", path=session.bin)
    lowest = ("--resolution", "lowest-direct", "-e", ".[test]")
    session.run("uv", "pip", "install", "--python", str(python), *lowest)
    session.run("python", "-m", "pytest", *PARALLEL, *session.posargs, env=ENVIRONMENT)


@nox.session(python=NEWEST)
def newest(session: nox.Session) -> None:
    """Tests on the newest versions of all dependencies, torch's pinned version set aside."""
    session.install("--upgrade", "-e", ".[test]")
    session.run("python", "-m", "pytest", *PARALLEL, *session.posargs, env=ENVIRONMENT)


@nox.session(python=OLDEST)
def coverage(session: nox.Session) -> None:
    """Share of the lines that the tests run, with the floor of pyproject.toml; all tests."""
    session.install(*CPU, "-e", ".[test]")
    session.run("python", "-m", "pytest", *PARALLEL, "--cov", *session.posargs, env=ENVIRONMENT)


@nox.session(python=OLDEST)
def changelog(session: nox.Session) -> None:
    """Section of the changelog that the fragments in changes/ make; nothing is written."""
    session.install(*CPU, "-e", ".", "towncrier")
    session.run("towncrier", "build", "--draft", *session.posargs)


@nox.session(python=OLDEST)
def lint(session: nox.Session) -> None:
    """Style, spelling, types and import contracts."""
    session.install(*CPU, "-e", ".[lint]")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("codespell")
    session.run("mypy")
    session.run("lint-imports")


@nox.session(python=OLDEST)
def docs(session: nox.Session) -> None:
    """Pages of the documentation, warnings as errors."""
    session.install(*CPU, "-e", ".[docs]")
    session.run("sphinx-build", "-W", "--keep-going", "-b", "html", "docs", "docs/_build/html")


@nox.session(python=OLDEST)
def dist(session: nox.Session) -> None:
    """Source release and wheel: built, checked, installed, and tested away from this folder.

    The wheel is built from the source release, and the tests are those of the source release.
    """
    session.install("build", "check-wheel-contents", "twine")
    shutil.rmtree("dist", ignore_errors=True)
    session.run("python", "-m", "build")
    (wheel,), (source,) = Path("dist").glob("*.whl"), Path("dist").glob("*.tar.gz")
    session.run("twine", "check", "--strict", str(wheel), str(source))
    session.run("check-wheel-contents", str(wheel))

    session.install(*CPU, f"{wheel}[test]")
    elsewhere = Path(session.create_tmp()).resolve()
    shutil.rmtree(elsewhere)
    shutil.unpack_archive(source, elsewhere)
    session.chdir(elsewhere)
    session.run("neoranging", "demo")
    session.chdir(source.name.removesuffix(".tar.gz"))
    # The script, unlike `python -m pytest`, does not put this folder before what is installed.
    session.run("pytest", *PARALLEL, "tests", *session.posargs, env=ENVIRONMENT)
