"""Time of systematic ranging, per tracklet and core, of its parts, and of its first answer.

Run ``OMP_NUM_THREADS=1 python benchmarks/bench_systematic.py [--arcs N] [--cold]``. Simulated
nights of two to ten observations, some of two visits, are asked one by one, warm, and all in one
call, in CPU time; then the parts of a call stand by themselves: nights prepared, the kernel, the
quantiles, and the orbits of the answers. How many columns, fits and paths the kernel makes of an
arc depends on no machine. Beside all, in the same run, stands a fixed loop of Python, so that
machines can be compared, and the method "posterior": its whole call, and 100 draws from its density
for each arc. ``--cold`` also times a process that has to compile the kernel, and one that finds it
kept.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from simulated_arcs import simulate

import neoranging as nr
from neoranging.core.arcs import Arcs
from neoranging.core.attributable import from_fit
from neoranging.core.sightings import make_space, nights
from neoranging.core.summaries import summarise
from neoranging.core.systematic import N_RATES, complete, make_columns, range_arc, systematic
from neoranging.ephemeris.states import attractors
from neoranging.orbits.population import load_prior
from neoranging.typing import FloatArray

FIRST = """
import time, numpy as np
from astropy import units as u
from astropy.coordinates import SkyCoord
from astropy.time import Time
start = time.perf_counter()
import neoranging as nr
tracklet = nr.Tracklet(
    Time([58487.10, 58487.12, 58487.15], format="mjd", scale="utc"),
    SkyCoord([12.0, 12.02, 12.05], [5.0, 5.01, 5.025], unit="deg"), station="G96",
    sigma=0.3 * u.arcsec)
tracklet.estimate(method="systematic")
print(time.perf_counter() - start)
"""


def python_loop() -> float:
    """CPU time of a million steps of plain Python [ms]."""
    begin = time.process_time()
    total = 0.0
    for k in range(1_000_000):
        total += k * 0.5
    return 1e3 * (time.process_time() - begin)


def cold() -> None:
    """Print the time of the first answer of a process, with nothing kept and with the kernel."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "NUMBA_CACHE_DIR": folder}
        for what in ("compiled", "kept"):
            run = [sys.executable, "-c", FIRST]
            out = subprocess.run(run, env=environment, capture_output=True, text=True, check=True)
            print(f"first answer of a process, kernel {what}: {float(out.stdout):.1f} s")


def amortised(n: int, step: float) -> None:
    """Print times of the method "posterior", alternating with systematic ranging."""
    nights_ = simulate(20 * n, 0.05, seed=1, n_observations=(3, 7))
    tracklets = nights_.with_noise(np.random.default_rng(1), 0.3).tracklets()
    methods = nr.get_estimator("posterior"), nr.get_estimator("systematic")
    few, single, times = tracklets[:n], tracklets[0], np.zeros((3, 4))
    for k in range(-1, len(times)):  # the first round may compile
        calls = (
            *(lambda method=method: method.estimate(few) for method in methods),
            lambda: [methods[0].estimate(single) for _ in range(20)],
            lambda: methods[0].draw(tracklets, 100, 1),
        )
        for j, call in enumerate(calls):
            begin = time.process_time()
            call()
            times[k, j] = 1e3 * (time.process_time() - begin)
    each = np.median(times, axis=0) / (n, n, 20, 20 * n)
    print(
        f"posterior: {each[0]:.2f} ms each in one call, {each[0] / each[1]:.2f} of systematic; "
        f"{each[2]:.1f} ms or {each[2] / step:.2f} million steps for one alone; "
        f"{1e3 / each[3]:.0f} arcs with 100 draws in a second, {each[3] / step:.5f} million steps "
        "of Python each"
    )


def made(n: int, visits: int, m: int) -> Arcs:
    """M arcs of n observations in so many visits."""
    span = 0.05 if visits == 1 else 0.2
    arcs = simulate(m, span, seed=n, n_observations=n).with_noise(np.random.default_rng(n), 0.3)
    return replace(arcs.arcs, visit=np.tile(np.arange(n) * visits // n, m))


def parts(arcs: Arcs) -> tuple[FloatArray, FloatArray]:
    """CPU times [ms per arc] of the parts of a call, and counts of the kernel by arc."""
    a, table, times = from_fit(arcs), load_prior("population"), []
    times.append(time.process_time())
    paths = attractors(a.epoch, arcs.span)
    times.append(time.process_time())
    night = nights(arcs, a, paths)
    times.append(time.process_time())
    posterior = systematic(night, arcs.mean_mag, table)
    times.append(time.process_time())
    summary = summarise(posterior, [0.0, -1.0], [0.5, 0.005, 0.995])
    times.append(time.process_time())
    some = np.flatnonzero(np.isfinite(summary.rate))
    complete(night, some, np.exp(summary.quantiles[some, 0, 0]), summary.rate[some])
    times.append(time.process_time())
    longest = int(arcs.counts.max())
    space, columns = make_space(longest, longest), make_columns(N_RATES)
    counts = np.empty((len(arcs), 4))
    for k in range(len(arcs)):
        space.counts[:] = 0
        n = range_arc(night, k, arcs.mean_mag[k], table, np.empty(0), columns, space)
        counts[k] = n, columns.filled[:n].sum(), *space.counts
    return 1e3 * np.diff(times) / len(arcs), counts


def main() -> None:
    """Print medians by number of observations and visits."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--arcs", type=int, default=60)
    parser.add_argument("--cold", action="store_true")
    options = parser.parse_args()
    method, step = nr.get_estimator("systematic"), python_loop()
    print(f"a million steps of Python: {step:.1f} ms; all other times in ms of CPU for an arc")
    print("observations, visits: alone (95 % below, million steps), in one call; ", end="")
    print("attractors, nights, kernel, quantiles, orbits; columns, filled, fits, paths")
    first = made(3, 1, 2)
    parts(first)  # compile
    for n, visits in ((2, 1), (3, 1), (4, 1), (5, 1), (8, 1), (5, 2), (8, 2)):
        arcs, alone = made(n, visits, options.arcs), []
        for k in range(options.arcs):
            one = arcs.take(np.array([k]))
            method._solve(one, one)
            begin = time.process_time()
            method._solve(one, one)
            alone.append(1e3 * (time.process_time() - begin))
        begin = time.process_time()
        method._solve(arcs, arcs)
        whole = 1e3 * (time.process_time() - begin) / options.arcs
        shares, counts = parts(arcs)
        print(
            f"{n:2d}, {visits}: {np.median(alone):5.2f} ({np.quantile(alone, 0.95):5.2f}, "
            f"{np.median(alone) / step:.3f}), {whole:5.2f}; "
            + ", ".join(f"{x:.3f}" for x in shares)
            + "; "
            + ", ".join(f"{x:.0f}" for x in np.median(counts, axis=0))
        )
    amortised(options.arcs, step)
    if options.cold:
        cold()


if __name__ == "__main__":
    main()
