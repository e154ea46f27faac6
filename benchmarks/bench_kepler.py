"""Cost of two-body motion and elements per orbit: `OMP_NUM_THREADS=1 python bench_kepler.py`.

The states are near-Earth ones of every conic; the best of several repeats is printed, with the
error of going there and back as a reminder that speed is not bought with digits.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

from neoranging.core.elements import elements_to_state, state_to_elements
from neoranging.core.kepler import lagrange_coefficients, propagate, true_anomaly


def best_time(action: Callable[[], object], repeats: int = 3) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-n", type=int, default=300_000, help="number of orbits")
    n = parser.parse_args().n
    rng = np.random.default_rng(1)
    q, ecc = rng.uniform(0.3, 1.3, n), rng.uniform(0.0, 1.2, n)
    inc, raan, argp = rng.uniform(0, 1, n), rng.uniform(0, 6.28, n), rng.uniform(0, 6.28, n)
    r, v = elements_to_state(q, ecc, inc, raan, argp, rng.uniform(-1.8, 1.8, n))
    print(f"{n} orbits; microseconds per orbit")
    print(f"{'':24}{'f and g':>10}{'propagate':>11}{'and back: median, worst':>28}")
    for span in (0.05, 1.0, 30.0, 1000.0):
        dt = rng.uniform(-span, span, n)
        coefficients = best_time(lambda dt=dt: lagrange_coefficients(r, v, dt)) / n * 1e6
        states = best_time(lambda dt=dt: propagate(r, v, dt)) / n * 1e6
        back, _ = propagate(*propagate(r, v, dt), -dt)
        error = np.linalg.norm(back - r, axis=1) / np.linalg.norm(r, axis=1)
        label = f"within {span:g} d"
        print(
            f"{label:24}{coefficients:10.3f}{states:11.3f}{np.median(error):16.1e}{error.max():12.1e}"
        )
    e = state_to_elements(r, v)
    for name, action in {
        "state_to_elements": lambda: state_to_elements(r, v),
        "elements_to_state": lambda: elements_to_state(*e[:6]),
        "true_anomaly": lambda: true_anomaly(e.nu, e.ecc),
    }.items():
        print(f"{name:24}{best_time(action) / n * 1e6:10.3f}")


if __name__ == "__main__":
    main()
