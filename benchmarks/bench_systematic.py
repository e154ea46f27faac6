"""Time of systematic ranging, per tracklet and core, and of its first answer.

Run ``OMP_NUM_THREADS=1 python benchmarks/bench_systematic.py [--arcs N] [--cold]``. The kernel is
timed on simulated nights of two to ten observations one by one, and then all of them are asked in
one call, which adds what Python does; in CPU time. Beside them, in the same run, stands a fixed
loop of Python, so that machines can be compared, and the method "posterior": its whole call, and
100 draws from its density for each arc. ``--cold`` also times a process that has to compile the
kernel, and one that finds it kept.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from simulated_arcs import simulate

import neoranging as nr
from neoranging.core.attributable import from_fit
from neoranging.core.sightings import nights
from neoranging.core.systematic import systematic
from neoranging.ephemeris.states import attractors
from neoranging.orbits.population import load_prior

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


def main() -> None:
    """Print medians and 95 % points by number of observations."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--arcs", type=int, default=60)
    parser.add_argument("--cold", action="store_true")
    options = parser.parse_args()
    method, table = nr.get_estimator("systematic"), load_prior("population")
    step, every, whole = python_loop(), [], []
    print(f"a million steps of Python: {step:.1f} ms")
    for n in (2, 3, 4, 6, 8, 10):
        rng = np.random.default_rng(n)
        arcs = simulate(options.arcs, 0.05, seed=n, n_observations=n).with_noise(rng, 0.3).arcs
        a, no_magnitude = from_fit(arcs), np.full(1, np.nan)
        paths = attractors(a.epoch, arcs.span)
        times = []
        for k in range(options.arcs):
            one = np.array([k])
            night = nights(arcs.take(one), a.take(one), paths[one])
            begin = time.process_time()
            systematic(night, no_magnitude, table)
            times.append(1e3 * (time.process_time() - begin))
        begin = time.process_time()
        method._solve(arcs, arcs)
        whole.append(1e3 * (time.process_time() - begin) / options.arcs)
        every += times[1:]  # the first may have compiled
        print(
            f"{n:3d} observations: kernel median {np.median(times):5.1f} ms, 95 % below "
            f"{np.quantile(times, 0.95):5.1f} ms; one call of all {whole[-1]:5.1f} ms each"
        )
    print(
        f"all: kernel median {np.median(every):.1f} ms, 95 % below {np.quantile(every, 0.95):.1f} "
        f"ms, or {np.median(every) / step:.2f} and {np.quantile(every, 0.95) / step:.2f} million "
        f"steps of Python; one call {np.median(whole):.1f} ms each"
    )
    amortised(options.arcs, step)
    if options.cold:
        cold()


if __name__ == "__main__":
    main()
