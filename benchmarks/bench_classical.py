"""Throughput of Gauss's and Laplace's methods: `OMP_NUM_THREADS=1 python bench_classical.py`.

Simulated one-night tracklets of near-Earth objects from five stations, three to seven observations
each, 0.2 arcsec of noise. Two costs: the method alone, observers' states known already, and all of
`TrackletSet.estimate` on a set just made. The first includes what its own threads do on all cores;
peak memory is that of the process, simulation and all before included.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from neoranging import TrackletSet
from neoranging.core.arcs import Arcs
from neoranging.core.attributable import from_fit
from neoranging.core.candidates import Thresholds, solve
from neoranging.core.gauss import gauss
from neoranging.core.noise import error_law
from neoranging.estimators import GaussEstimator, LaplaceEstimator

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
from reference import attributable as attributable_by_numpy
from reference import candidates as candidates_by_numpy
from reference import gauss as gauss_by_numpy
from reference import noise as noise_by_numpy
from simulated_arcs import SimulatedArcs, simulate

STEPPED = 8192  # arcs whose steps are timed one by one, half a chunk of an estimate
DISTINCT = 100_000  # simulated; more are repeats of these


def peak_gigabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def make(n: int, span: float) -> tuple[TrackletSet, SimulatedArcs]:
    few = simulate(min(n, DISTINCT), span, seed=1).with_noise(np.random.default_rng(2))
    tracklets = few.tracklets()
    if n > len(few):
        tracklets = tracklets[np.arange(n) % len(few)]
    return tracklets, few


def fresh(tracklets: TrackletSet) -> TrackletSet:
    """Copy of a set with nothing cached."""
    return TrackletSet(tracklets._columns, tracklets._offsets, tracklets.designation)


def timed(action: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = action()
    return time.perf_counter() - start, result


def cost(action: Callable[[], Any], n: int) -> tuple[str, Any]:
    """Rate by the wall, and processor time per tracklet, which a busy machine stretches less."""
    start = time.process_time()
    wall, result = timed(action)
    processor = time.process_time() - start
    return f"{n / wall:9,.0f}/s ({1e6 * processor / n:5.1f} us of processor time each)", result


def steps(n: int, span: float, repeats: int = 7) -> None:
    """Steps of Gauss's method, compiled and by numpy."""
    print(f"{'us per tracklet':26}{'compiled':>9}{'numpy':>8}{'ratio':>7}")
    for m, loops in ((n, 1), (1, 50)):
        arcs = simulate(m, span, seed=1).with_noise(np.random.default_rng(2)).arcs
        for name, (compiled, by_numpy) in cases(arcs).items():
            least = [np.inf, np.inf]
            for _ in range(repeats):
                for k, action in enumerate((compiled, by_numpy)):
                    start = time.process_time()
                    for _ in range(loops):
                        action()
                    least[k] = min(least[k], 1e6 * (time.process_time() - start) / (m * loops))
            label = f"{name}, {m} at once"
            print(f"{label:26}{least[0]:9.2f}{least[1]:8.2f}{least[1] / least[0]:7.1f}")


def cases(arcs: Arcs) -> dict[str, tuple[Callable[[], Any], Callable[[], Any]]]:
    """Steps of an estimate of the same arcs, compiled and by numpy."""
    fitted, roots, law = from_fit(arcs), gauss(arcs), error_law(arcs)
    its_roots = gauss_by_numpy.gauss(arcs)

    def anew() -> Arcs:
        """Arcs whose columns are made, and which are not fitted yet."""
        arcs.__dict__.pop("_fitted", None)
        return arcs

    def all_compiled() -> None:
        anew()
        solve(arcs, from_fit(arcs), gauss(arcs), Thresholds())

    def all_by_numpy() -> None:
        with np.errstate(all="ignore"):
            a = attributable_by_numpy.from_fit(arcs)
            candidates_by_numpy.solve(arcs, a, gauss_by_numpy.gauss(arcs), Thresholds())

    return {
        "fit": (lambda: from_fit(anew()), lambda: attributable_by_numpy.from_fit(arcs)),
        "roots": (lambda: gauss(arcs), lambda: gauss_by_numpy.gauss(arcs)),
        "law of errors": (lambda: error_law(arcs), lambda: noise_by_numpy.error_law(arcs)),
        "errors of roots": (
            lambda: roots.errors(law),
            lambda: its_roots.errors(law),
        ),
        "verdict": (
            lambda: solve(arcs, fitted, roots, Thresholds()),
            lambda: candidates_by_numpy.solve(arcs, fitted, roots, Thresholds()),
        ),
        "all": (all_compiled, all_by_numpy),
    }


def bulk(n: int, span: float) -> None:
    tracklets, truth = make(n, span)
    print(f"{n} tracklets of {24 * span:.1f} h, {tracklets.counts.sum()} observations")
    print(f"memory before: {peak_gigabytes():.2f} GB")
    for estimator in (GaussEstimator(), LaplaceEstimator()):
        estimator.estimate(tracklets[:1000])  # caches of code and ephemerides
        from_scratch, _ = cost(lambda e=estimator: e.estimate(fresh(tracklets)), n)
        placed = fresh(tracklets)
        placed.arcs()  # observers worked out, and cached
        alone, estimate = cost(lambda e=estimator, t=placed: e.estimate(t), n)
        first = estimate[: min(n, len(truth))]
        error = np.abs(first.range.value / truth.rho - 1.0)[first.ok]
        print(f"{estimator.name:8} method alone   {alone}")
        print(f"{'':8} with observers {from_scratch}")
        print(
            f"{'':8} {100 * estimate.ok.mean():.0f} % OK, their median error "
            f"{100 * np.median(error):.1f} %; peak memory {peak_gigabytes():.2f} GB"
        )


def single(repeats: int = 200) -> None:
    """One warm `tracklet.estimate`, and one on a tracklet just made from astropy objects."""
    import neoranging as nr

    one = simulate(1, 0.2, seed=3).tracklets()[0]
    columns = one.obstime, one.coord
    for method in ("gauss", "laplace"):
        one.estimate(method)
        warm = min(timed(lambda m=method: one.estimate(m))[0] for _ in range(repeats))
        cold = min(
            timed(lambda m=method: nr.Tracklet(*columns, station="G96").estimate(m))[0]
            for _ in range(repeats)
        )
        print(f"{method:8} warm, one tracklet: estimate {1e3 * warm:.2f} ms", end="")
        print(f", Tracklet(...).estimate {1e3 * cold:.2f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-n", type=int, default=1_000_000, help="number of tracklets")
    parser.add_argument("--hours", type=float, default=4.0, help="length of each")
    arguments = parser.parse_args()
    steps(min(arguments.n, STEPPED), arguments.hours / 24.0)
    single()
    bulk(arguments.n, arguments.hours / 24.0)


if __name__ == "__main__":
    main()
