"""Time of the admissible region, compiled and by numpy: for many attributables at once and for one.

Processor time; numpy is the reference of the tests, or companion matrices as usual, in one run.

Run ``OMP_NUM_THREADS=1 python benchmarks/bench_admissible.py [N]``.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from neoranging.constants import GM_SUN
from neoranging.core import admissible

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from reference import admissible as reference

REPEATS = 7
"""Measurements of each case, of which the least counts; single calls are measured in hundreds."""


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
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    print(f"{'us':22s} {n:>9d} rows {'numpy':>9s} {'ratio':>6s} {'one row':>9s} {'numpy':>9s}")
    many, one = cases(attributables(n)), cases(attributables(1))
    for name, (compiled, by_numpy) in many.items():
        rows = [1e6 * best(call) / n for call in (compiled, by_numpy)]
        single = [1e6 * best(call, 100) for call in one[name]]
        ratio = rows[1] / rows[0]
        print(f"{name:22s} {rows[0]:14.3f} {rows[1]:9.3f} {ratio:6.1f} {single[0]:9.1f} ", end="")
        print(f"{single[1]:9.1f}")


def cases(arguments: tuple[np.ndarray, ...]) -> dict[str, tuple[Callable[[], Any], ...]]:
    """Compiled function and the same by numpy, of the same attributables."""
    c = admissible.energy_coefficients(*arguments)
    limits = admissible.range_limits(c)
    return {
        "energy_coefficients": (
            lambda: admissible.energy_coefficients(*arguments),
            lambda: reference.energy_coefficients(*arguments),
        ),
        "range_intervals": (
            lambda: admissible.range_intervals(c),
            lambda: reference.range_intervals(c),
        ),
        "widest_strip": (
            lambda: admissible.widest_strip(c, limits),
            lambda: reference.widest_strip(c, limits),
        ),
        "companion matrices": (lambda: admissible.range_roots(c), lambda: companion_roots(c)),
    }


def best(call: Callable[[], Any], calls: int = 1) -> float:
    """Least processor time of a call [s]."""
    call()
    seconds = []
    for _ in range(REPEATS):
        start = time.process_time()
        for _ in range(calls):
            call()
        seconds.append((time.process_time() - start) / calls)
    return min(seconds)


def companion_roots(c: np.ndarray) -> np.ndarray:
    """The squared equation by stacked companion matrices, as usual."""
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
