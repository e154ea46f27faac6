"""Time of calibrated intervals for many answers at once, beside sorting as many numbers.

Run ``OMP_NUM_THREADS=1 python benchmarks/bench_intervals.py [N]``.
"""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
from timing import alternate

from neoranging import Calibration, RangeStatus
from neoranging.core import Answers, Attributables


def answers(n: int, seed: int) -> tuple[Answers, np.ndarray, np.ndarray]:
    """Answers whose errors grow with motion, three in ten of them OK; spans and true ranges."""
    rng = np.random.default_rng(seed)
    eta, span, truth = 0.01 * rng.lognormal(size=n), 0.05 * rng.lognormal(size=n), rng.random(n)
    ok = rng.random(n) < 0.3
    error = np.where(ok, rng.uniform(0.001, 0.02, n), np.nan)
    rho = (0.1 + truth) * np.exp(10.0 * eta * rng.standard_normal(n))
    shapes = (column.shape[1:] for column in Attributables.none())
    motion = Attributables._make(np.zeros((n, *shape)) for shape in shapes)._replace(ra_rate=eta)
    status = np.where(ok, RangeStatus.OK.code, RangeStatus.UNDETERMINED.code)
    result = replace(Answers.unsolved(motion, status), rho=rho)
    result.covariance[:, 0, 0] = error**2
    return result, span, 0.1 + truth


def main() -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    calibration = Calibration.fit(*answers(5000, seed=1))
    new, span, _ = answers(n, seed=2)
    limits = np.broadcast_to([1e-5, 1e5], (n, 2))
    seconds = alternate(
        {
            "bounds": lambda: calibration.bounds(new, span, limits, 0.68),
            "sort": lambda: np.sort(new.rho),
        }
    )
    bounds, ratio = seconds["bounds"].min(), np.median(seconds["bounds"] / seconds["sort"])
    print(f"{n} intervals: {1e6 * bounds / n:.3f} us of CPU each, {ratio:.1f} times a sort")


if __name__ == "__main__":
    main()
