"""Our own methods, asked by ``run.py`` as the other programs are.

    python ours.py gauss|nights|calls N

``gauss`` has N simulated nights of three observations, ``nights`` the real nights and N copies of
them in a batch, ``calls`` N single tracklets of five observations.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from nights import REAL, fresh, real, simulated
from page import METHODS
from serve import serve

import neoranging as nr
from neoranging.core.gauss import gauss as gauss_method

sys.path.append(str(Path(__file__).resolve().parents[1]))
from timing import python_loop

POSTERIORS = "posterior", "systematic"
DRAWS = 1000
SINGLES = 40
REPEATS = 4
LOOPS = 20

Cases = dict[str, Callable[[], int]]


def loops() -> int:
    for _ in range(LOOPS):
        python_loop()
    return LOOPS


def each(tracklets: list[nr.Tracklet], action: Callable[[nr.Tracklet], Any]) -> int:
    for tracklet in tracklets:
        action(tracklet)
    return len(tracklets)


def gauss(n: int) -> Cases:
    """Gauss's method in a batch, where observers are and are not known, and one by one."""
    simulation = simulated(n)
    placed = simulation.tracklets()
    arcs = placed.arcs()
    singles = [placed[k] for k in range(SINGLES)]

    def whole() -> int:
        fresh(placed).estimate("gauss")
        return n

    def interval() -> int:
        fresh(placed).estimate("gauss").interval(0.68)
        return n

    def known() -> int:
        placed.estimate("gauss")
        return n

    def orbits() -> int:
        gauss_method(arcs)
        return n

    return {
        "orbits": orbits,
        "whole": whole,
        "interval": interval,
        "known": known,
        "single": lambda: each(singles, lambda one: one.estimate("gauss")),
    }


def nights(copies: int) -> Cases:
    """Posteriors of the real nights, one by one and in a batch, and what is asked of them."""
    then: dict[str, Callable[[nr.RangeEstimate], Any]] = {
        "answer": lambda estimate: estimate,
        "draws": lambda estimate: estimate.samples(DRAWS, rng=1),
        "neo": lambda estimate: estimate.probability("neo"),
    }

    def one(tracklet: nr.Tracklet, method: str, what: str) -> int:
        return each([tracklet] * REPEATS, lambda night: then[what](night.estimate(method)))

    def many(batch: nr.TrackletSet, method: str, what: str) -> int:
        then[what](fresh(batch).estimate(method))
        return copies

    cases: Cases = {}
    for n in REAL:
        tracklet = real(n)
        batch = nr.TrackletSet.from_tracklets([tracklet] * copies)
        for method in POSTERIORS:
            for what in then:
                cases[f"{method} one {what} {n}"] = partial(one, tracklet, method, what)
                cases[f"{method} many {what} {n}"] = partial(many, batch, method, what)
    return cases


def calls(n: int) -> Cases:
    """One tracklet by every method: made of astropy objects and asked once, and asked again."""
    cases: Cases = {}
    tracklets = simulated(n, n_observations=5, seed=3).tracklets()
    singles = [tracklets[k] for k in range(n)]
    columns = [(one.obstime, one.coord, one.station[0], one.sigma) for one in singles]

    def made(method: str) -> int:
        for obstime, coord, station, sigma in columns:
            nr.Tracklet(obstime, coord, station=station, sigma=sigma).estimate(method)
        return n

    for method in METHODS:
        cases[f"{method} made"] = partial(made, method)
        cases[f"{method} again"] = partial(each, singles, lambda one, m=method: one.estimate(m))
    return cases


def main() -> None:
    families = {"gauss": gauss, "nights": nights, "calls": calls}
    cases = families[sys.argv[1]](int(sys.argv[2]))
    serve({"loop": loops, **cases})


if __name__ == "__main__":
    main()
