"""Cost of two-body motion and elements per orbit: `OMP_NUM_THREADS=1 python bench_kepler.py`.

The states are near-Earth ones of every conic; the least CPU time of several rounds is printed, with
the error of going there and back as a reminder that speed is not bought with digits.
"""

from __future__ import annotations

import argparse

import numpy as np
from timing import alternate

from neoranging.core.elements import elements_to_state, state_to_elements
from neoranging.core.kepler import lagrange_coefficients, propagate, true_anomaly


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
        seconds = alternate(
            {
                "f and g": lambda dt=dt: lagrange_coefficients(r, v, dt),
                "propagate": lambda dt=dt: propagate(r, v, dt),
            }
        )
        coefficients, states = (1e6 * values.min() / n for values in seconds.values())
        back, _ = propagate(*propagate(r, v, dt), -dt)
        error = np.linalg.norm(back - r, axis=1) / np.linalg.norm(r, axis=1)
        label = f"within {span:g} d"
        print(
            f"{label:24}{coefficients:10.3f}{states:11.3f}{np.median(error):16.1e}{error.max():12.1e}"
        )
    e = state_to_elements(r, v)
    seconds = alternate(
        {
            "state_to_elements": lambda: state_to_elements(r, v),
            "elements_to_state": lambda: elements_to_state(*e[:6]),
            "true_anomaly": lambda: true_anomaly(e.nu, e.ecc),
        }
    )
    for name, values in seconds.items():
        print(f"{name:24}{1e6 * values.min() / n:10.3f}")


if __name__ == "__main__":
    main()
