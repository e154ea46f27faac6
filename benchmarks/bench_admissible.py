"""Time of the admissible region for many attributables at once.

Run ``OMP_NUM_THREADS=1 python benchmarks/bench_admissible.py [N]``.
"""

from __future__ import annotations

import sys
import timeit

import numpy as np

from neoranging.constants import GM_SUN
from neoranging.core import admissible


def attributables(n: int, seed: int = 0) -> tuple[np.ndarray, ...]:
    """Directions, rates and observer states such as surveys meet."""
    rng = np.random.default_rng(seed)
    longitude = rng.uniform(0.0, 2.0 * np.pi, n)
    zero = np.zeros(n)
    position = np.stack([np.cos(longitude), np.sin(longitude), zero], axis=-1)
    velocity = np.sqrt(GM_SUN) * np.stack([-np.sin(longitude), np.cos(longitude), zero], axis=-1)
    rate, turn = 10.0 ** rng.uniform(-4.0, -0.5, n), rng.uniform(0.0, 2.0 * np.pi, n)
    dec = np.arcsin(rng.uniform(-0.9, 0.9, n))
    ra = rng.uniform(0.0, 2.0 * np.pi, n)
    return ra, dec, rate * np.cos(turn) / np.cos(dec), rate * np.sin(turn), position, velocity


def main() -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    arguments = attributables(n)
    c = admissible.energy_coefficients(*arguments)
    rho = np.geomspace(1e-3, 1.0, n)
    few = c[:2000]
    cases = {
        "energy_coefficients": (n, lambda: admissible.energy_coefficients(*arguments)),
        "is_admissible": (n, lambda: admissible.is_admissible(c, rho, 0.0)),
        "range_roots": (n, lambda: admissible.range_roots(c)),
        "range_intervals": (n, lambda: admissible.range_intervals(c)),
        "companion matrices": (len(few), lambda: companion_roots(few)),
    }
    for name, (count, call) in cases.items():
        seconds = min(timeit.repeat(call, number=1, repeat=3))
        print(f"{name:22s} {count:9d} rows {seconds:8.3f} s {1e6 * seconds / count:8.3f} us/row")


def companion_roots(c: np.ndarray) -> np.ndarray:
    """The squared equation by stacked companion matrices, for comparison."""
    c0, c1, c2, c3, c4, c5 = c.T
    p = c4 - 0.25 * c1 * c1
    square = [c2 * c2, 2.0 * c2 * c3, 2.0 * c2 * p + c3 * c3, 2.0 * c3 * p, p * p]
    sextic = np.zeros((len(c), 7))
    for degree, factor in enumerate((1.0, c5, c0)):
        for i, term in enumerate(square):
            sextic[:, i + degree] += factor * term
    sextic[:, 6] -= 4.0 * GM_SUN**2
    matrix = np.zeros((len(c), 6, 6))
    matrix[:, 0] = -sextic[:, 1:] / sextic[:, :1]
    matrix[:, np.arange(1, 6), np.arange(5)] = 1.0
    return np.linalg.eigvals(matrix)


if __name__ == "__main__":
    main()
