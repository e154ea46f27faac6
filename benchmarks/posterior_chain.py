"""Brute-force grid and Markov chain of the posterior of a night, on the nights of the tests.

Run ``OMP_NUM_THREADS=1 python benchmarks/posterior_chain.py [--steps N] [names ...]``. For each
night and prior it prints the largest difference of five quantiles of ln rho and of rho_dot, in
percent of the width of the 90 % interval, beside the Monte Carlo error of the chain: the chain
samples what the grid integrates in closed form.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from reference_posterior import (
    CASES,
    PRIORS,
    PROBABILITIES,
    BruteForce,
    first_walkers,
    markov_chain,
)

BLOCKS = 6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--walkers", type=int, default=400)
    options = parser.parse_args()
    print(f"{'':32s} {'':11s}{'ln rho':>8s}{'error':>8s}{'rho_dot':>9s}{'error':>8s}")
    for name in options.names or CASES:
        force = BruteForce(CASES[name].night()).run()
        for prior in ("log-uniform", "phase space"):
            rng = np.random.default_rng(7)
            walkers = first_walkers(force, prior, options.walkers, rng)
            chain = markov_chain(force.night, walkers, PRIORS[prior], options.steps, rng)
            chain = chain[len(chain) // 5 :]
            line = f"{name:32s} {prior:11s}"
            for column, expected in zip((4, 5), force.quantiles(prior), strict=True):
                blocks = [
                    np.quantile(block[..., column], PROBABILITIES)
                    for block in np.array_split(chain, BLOCKS)
                ]
                error = np.std(blocks, axis=0, ddof=1) / np.sqrt(BLOCKS)
                found = np.quantile(chain[..., column], PROBABILITIES)
                unit = 100.0 / np.ptp(expected)
                line += f"{unit * np.abs(found - expected).max():8.2f}{unit * error.max():8.2f} "
            print(line, flush=True)


if __name__ == "__main__":
    main()
