"""Cost of a start: from the process to the first answer, beside the parts of astropy it stands on.

Each start runs in fresh interpreters, all kinds in turn, after one of each has filled the caches of
bytecode and of compiled code. The CPU time of the process is counted, less that of an interpreter
alone: minimum and median of all runs, and the ratio of the minima to that of the import of
``astropy.coordinates`` and ``astropy.table``; importing the package may cost 1.3 times that.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys

ANSWER = """
import neoranging as nr
estimate = nr.read_tracklets(nr.sample("2024YR4"))[1].estimate(method="{}")
estimate.range, estimate.interval(0.68)
"""
COMMAND = """
import sys, neoranging as nr
from neoranging.__main__ import run
sys.argv[1:] = ["estimate", str(nr.sample("2024YR4")), "--quiet", "--method", "{}"]
run()
"""
BASE, OURS = "import astropy.coordinates, astropy.table", "import neoranging"
LIMIT = 1.3
METHODS = ("gauss", "laplace", "mlp", "pinn", "systematic")


def cpu_seconds(code: str) -> float:
    """CPU time of a fresh interpreter, all its threads."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-c", code], check=True, env=environment, stdout=subprocess.DEVNULL
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-n", type=int, default=7, help="runs of each")
    n = parser.parse_args().n
    starts = {BASE: BASE, "import numba": "import numba", OURS: OURS}
    starts |= {f"first answer by {method}": ANSWER.format(method) for method in METHODS}
    starts |= {
        f"neoranging estimate --method {method}": COMMAND.format(method)
        for method in ("gauss", "pinn")
    }
    for code in starts.values():
        cpu_seconds(code)
    runs = [[cpu_seconds("pass"), *map(cpu_seconds, starts.values())] for _ in range(n)]
    bare, *times = zip(*runs, strict=True)
    print(f"{'interpreter alone':42}{min(bare):6.2f} s")
    least = {name: min(column) - min(bare) for name, column in zip(starts, times, strict=True)}
    for name, column in zip(starts, times, strict=True):
        middle = statistics.median(column) - min(bare)
        ratio = least[name] / least[BASE]
        print(f"{name:42}{least[name]:6.2f} s min{middle:6.2f} s median{ratio:6.2f}")
    ratio = least[OURS] / least[BASE]
    print(f"ratio of the import {ratio:.2f} (limit {LIMIT})")
    return int(ratio > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
