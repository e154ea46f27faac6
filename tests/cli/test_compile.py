"""The command ``compile``: nothing is left to compile, and where the code is kept is said."""

import os
import subprocess
import sys

COVERED = """
import importlib, pkgutil, warnings
import neoranging
from neoranging.cli.compile import calculations
from neoranging.core.compiled import REGISTER

for module in pkgutil.walk_packages(neoranging.__path__, "neoranging."):
    if module.name.startswith(("neoranging.core.", "neoranging.nn.")):
        importlib.import_module(module.name)
warnings.simplefilter("ignore")
for _, calculation in calculations():
    calculation()

pending, ready = [kernel for kernel in REGISTER if kernel.signatures], []
while pending:
    kernel = pending.pop()
    if not any(kernel is other for other in ready):
        ready.append(kernel)
        code = kernel.py_func
        named = [code.__globals__.get(name) for name in code.__code__.co_names]
        pending += [value for value in named if any(value is other for other in REGISTER)]
for kernel in REGISTER:
    if not any(kernel is other for other in ready):
        print(kernel.__module__, kernel.__name__)
print(len(ready))
"""

COMMAND = """
import numpy as np
from neoranging.cli import compile, main

def positions():
    from neoranging.ephemeris.states import earth_state
    earth_state(np.array([60000.0]))

compile.calculations = lambda: [("the Earth", positions)]
main(["compile"])
"""


def run(code, **environment):
    cleared = {"NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "NUMBA_DISABLE_JIT"}
    inherited = {k: v for k, v in os.environ.items() if not environment or k not in cleared}
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env=inherited | environment,
        check=False,
    )


def test_every_compiled_function_of_the_package_is_reached():
    done = run(COVERED)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.splitlines()[-1]) > 50
    assert done.stdout.count("\n") == 1, done.stdout


def test_it_says_what_was_compiled_and_where_it_is_kept(tmp_path):
    named = str(tmp_path / "kept")
    first = run(COMMAND, NUMBA_CACHE_DIR=named)
    assert first.returncode == 0, first.stderr
    assert "the Earth ..." in first.stderr
    assert "the series of the ephemerides with rates" in first.stdout
    assert "1 kernel, made in " in first.stdout
    assert f", kept in\n  {named}" in first.stdout
    second = run(COMMAND, NUMBA_CACHE_DIR=named)
    assert second.stdout.startswith(f"1 kernel, there already, kept in\n  {named}")


def test_without_a_folder_it_is_an_error():
    refuse = """
from neoranging.core import compiled
def refuse(*_):
    raise RuntimeError("cannot cache function: no locator available")
compiled._Cache.__init__ = refuse
"""
    done = run(refuse + COMMAND)
    assert done.returncode == 1
    assert "nothing is kept: let NUMBA_CACHE_DIR name one" in done.stderr
