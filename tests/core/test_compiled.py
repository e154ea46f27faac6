"""Compiled code: kept on disk, fresh, announced; each case in processes of its own."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import neoranging

PROGRAM = '''
"""Two functions, of which Python calls one."""
import sys
from neoranging.constants import GM_SUN
from neoranging.core.compiled import announced, compiled
from scale import SCALE

@compiled
def inner(x):
    return SCALE * x

@announced("a sum", 7)
@compiled
def outer(x):
    return inner(x) + 1.0 / (x - 1.0)
'''
CALL = """
import sys, program
value = program.outer(float(sys.argv[1])), program.outer(3.0)
stats = getattr(program.outer, "stats", None)
hits = sum(stats.cache_hits.values()) if stats else 0
misses = sum(stats.cache_misses.values()) if stats else 0
print(value[0], hits, misses, stats and stats.cache_path)
"""


@pytest.fixture
def folder(tmp_path):
    """A copy of the package with a program beside it: sources to change, folders to lock."""
    package = Path(neoranging.__file__).parent
    copy = tmp_path / "site" / "neoranging"
    for name in ("__init__.py", "__init__.pyi", "constants.py", "_version.py"):
        copy.mkdir(parents=True, exist_ok=True)
        shutil.copy(package / name, copy / name)
    core = copy / "core"
    core.mkdir()
    for name in ("__init__.py", "__init__.pyi", "compiled.py"):
        shutil.copy(package / "core" / name, core / name)
    (tmp_path / "site" / "program.py").write_text(PROGRAM)
    (tmp_path / "site" / "scale.py").write_text("SCALE = 2.0\n")
    (tmp_path / "home").mkdir()
    return tmp_path


def run(folder, argument="2.0", code=CALL, **environment):
    """Outputs of a fresh process: value, hits, misses, cache folder; and its standard error."""
    cleared = {"NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "NUMBA_DISABLE_JIT"}
    inherited = {k: v for k, v in os.environ.items() if k not in cleared}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, argument],
        capture_output=True,
        text=True,
        check=True,
        cwd=folder / "site",
        env={
            **inherited,
            "PYTHONPATH": f"{folder / 'site'}{os.pathsep}{sysconfig.get_path('purelib')}",
            "HOME": str(folder / "home"),
            **environment,
        },
    )
    value, hits, misses, path = done.stdout.split(maxsplit=3)
    return float(value), int(hits), int(misses), path.strip(), done.stderr


def lock(folder):
    """Let no cache be written beside the program, for the superuser neither."""
    (folder / "site" / "__pycache__").write_text("no folder")


def test_a_second_process_takes_it_from_the_disk_and_is_silent(folder):
    value, hits, misses, path, said = run(folder)
    assert (value, hits, misses) == (5.0, 0, 1)
    assert Path(path) == folder / "site" / "__pycache__"
    assert said == f"neoranging: compiling a sum, about 7 s; once, it is kept in {path}\n"
    assert run(folder) == (5.0, 1, 0, path, "")


def test_division_by_zero_is_an_infinity(folder):
    assert run(folder, "1.0")[0] == float("inf")


def test_a_change_in_a_module_that_it_imports_compiles_anew(folder):
    run(folder)
    constants = folder / "site" / "neoranging" / "constants.py"
    constants.write_text(constants.read_text() + "\n# changed\n")
    assert run(folder)[1:3] == (0, 1)
    assert run(folder)[1:3] == (1, 0)
    # one that it knows nothing of does not, but its import by a module between does
    other = folder / "site" / "neoranging" / "core" / "other.py"
    other.write_text("PI = 3.0\n")
    assert run(folder)[1:3] == (1, 0)
    by_name = "\nfrom neoranging.core.other import (\n    PI,\n)\n"
    constants.write_text(constants.read_text() + by_name)
    assert run(folder)[1:3] == (0, 1)
    other.write_text("PI = 3.1\n")
    assert run(folder)[1:3] == (0, 1)
    assert run(folder)[1:3] == (1, 0)


def test_a_read_only_package_is_kept_in_the_home(folder):
    lock(folder)
    *_, path, said = run(folder)
    assert Path(path).is_relative_to(folder / "home")
    assert path in said
    assert run(folder) == (5.0, 1, 0, path, "")


def test_without_any_folder_it_compiles_in_every_process(folder):
    lock(folder)
    for _ in range(2):
        value, hits, _, path, said = run(folder, HOME="/dev/null")
        assert (value, hits, path) == (5.0, 0, "None")
        assert said.count("neoranging: compiling a sum, about 7 s; in every process") == 1
        assert "NUMBA_CACHE_DIR" in said


def test_the_folder_can_be_named(folder):
    named = str(folder / "named")
    *_, path, _ = run(folder, NUMBA_CACHE_DIR=named)
    assert Path(path).is_relative_to(named)
    assert run(folder, NUMBA_CACHE_DIR=named) == (5.0, 1, 0, path, "")


def test_a_full_disk_stops_nothing(folder):
    full = """
import program, numba.core.caching as caching
def save(*_):
    raise OSError(28, "No space left on device")
caching.IndexDataCacheFile.save = save
"""
    value, hits, _, _, said = run(folder, code=full + CALL)
    assert (value, hits) == (5.0, 0)
    assert said.count("\n") == 1


def test_a_program_with_logging_finds_it_in_the_log(folder):
    logging = "import logging; logging.basicConfig(level='INFO', format='%(name)s|%(message)s')\n"
    said = run(folder, code=logging + CALL)[-1]
    assert said.startswith("neoranging|compiling a sum, about 7 s; once")
    assert said.count("\n") == 1


def test_it_runs_as_plain_python_for_a_debugger(folder):
    assert run(folder, NUMBA_DISABLE_JIT="1") == (5.0, 0, 0, "None", "")
