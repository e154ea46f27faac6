"""Write a page part: the posterior that a network begins beside that of systematic ranging.

One command makes the committed table anew::

    python docs/tools/amortised.py TWIN [--real DIR] [--weights FILE] [--arcs N]

TWIN is the divided set that the network learnt from; one arc of each object of its test part, of at
most N objects, is judged, and with ``--real`` all objects of a set of real nights.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from next_night import table

from neoranging.core.answers import Answers
from neoranging.core.arcs import Arcs
from neoranging.core.attributable import from_fit
from neoranging.estimators import PosteriorEstimator, SystematicRangingEstimator
from neoranging.lab.sets.arcs import to_core
from neoranging.lab.sets.schema import ArcTable
from neoranging.lab.study import Selection
from neoranging.typing import FloatArray

OUTPUT: Final = Path(__file__).resolve().parents[2] / "docs" / "guide" / "amortised.inc"
PRIORS: Final = ("catalogue", "population", "log-uniform")
LEVELS: Final = np.linspace(0.01, 0.99, 99)
CLOSE: Final = 0.05
"""Kolmogorov distance up to which two posteriors count as the same."""

RUN: Final = 100
"""Arcs that one method is asked before the other takes its turn."""

HEADER: Final = (
    *("arcs", "prior", "distance, median", "90 % below", "below 0.05 [%]", "handed over [%]"),
    *("same status [%]", "68 % holds [%]", "95 % holds [%]", "systematic: 68 %", "95 %", "time"),
)


class Comparison(NamedTuple):
    """Answers of both methods to the same arcs, and their CPU times [s]."""

    begun: Answers
    full: Answers
    seconds: tuple[float, float]


def compared(arcs: Arcs, prior: str, weights: str) -> Comparison:
    """Both methods in turns, so that what else the machine does is the same for both."""
    methods = PosteriorEstimator(prior, weights=weights), SystematicRangingEstimator(prior)
    parts: tuple[list[Answers], list[Answers]] = ([], [])
    seconds = [0.0, 0.0]
    for method in methods:  # compile
        method._estimate(arcs.take(np.arange(2)), from_fit(arcs.take(np.arange(2))))
    for part in arcs.chunks(RUN):
        attributables = from_fit(part)
        for k, method in enumerate(methods):
            begin = time.process_time()
            parts[k].append(method._estimate(part, attributables))
            seconds[k] += time.process_time() - begin
    begun, full = (Answers.join(answers, len(arcs)) for answers in parts)
    return Comparison(begun, full, (seconds[0], seconds[1]))


def distances(begun: Answers, full: Answers) -> FloatArray:
    """Kolmogorov distances between the marginals of the range; NaN without posteriors."""
    assert begun.posterior is not None
    assert full.posterior is not None
    ours, theirs = (np.log(one.posterior.quantile(LEVELS)) for one in (begun, full))  # type: ignore[union-attr]
    inside = [
        np.interp(x, y, LEVELS, left=0.0, right=1.0) for x, y in zip(theirs, ours, strict=True)
    ]
    return np.abs(np.array(inside) - LEVELS).max(axis=1)


def held(answers: Answers, rho: FloatArray, level: float) -> str:
    """Share of the true ranges in equal-tailed intervals, in percent."""
    assert answers.posterior is not None
    low, high = answers.posterior.quantile([0.5 - level / 2, 0.5 + level / 2]).T
    return f"{100.0 * np.mean((low < rho) & (rho < high)):.1f}"


def row(name: str, arcs: ArcTable, prior: str, weights: str) -> Iterator[str]:
    """Cells of a set under a prior."""
    begun, full, seconds = compared(to_core(arcs), prior, weights)
    rho = arcs["rho_topo_au"]
    off = distances(begun, full)
    assert begun.remarks is not None
    yield from (f"{len(arcs)} {name}", f"``{prior}``")
    yield from (f"{np.nanmedian(off):.3f}", f"{np.nanquantile(off, 0.9):.3f}")
    for share in (off < CLOSE, begun.remarks != "", begun.status == full.status):
        yield f"{100.0 * np.mean(share):.1f}"
    for answers in (begun, full):
        yield from (held(answers, rho, level) for level in (0.68, 0.95))
    yield f"{seconds[0] / seconds[1]:.2f}"


def one_of_each(selection: Selection, folder: Path, n: int) -> ArcTable:
    """An arc of each of N objects of a set, those not close to the Earth for the set's sake."""
    arcs = selection.read(folder)
    rows = np.random.default_rng(0).permutation(len(arcs))[:n]
    return arcs.take(np.sort(rows))


def main() -> None:
    """Compare, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("twin", type=Path)
    parser.add_argument("--real", type=Path)
    parser.add_argument("--weights", default="default")
    parser.add_argument("--arcs", type=int, default=2000)
    options = parser.parse_args()
    sets = {"simulated": (Selection("test", cap=1), options.twin)}
    if options.real:
        sets["real"] = (Selection(None, cap=1), options.real)
    rows = []
    for name, (selection, folder) in sets.items():
        arcs = one_of_each(selection, folder, options.arcs)
        for prior in PRIORS:
            rows.append(tuple(row(name, arcs, prior, options.weights)))
            print(*rows[-1], sep="; ", flush=True)
    title = "The posterior that a network begins, and systematic ranging"
    OUTPUT.write_text(
        ".. made by docs/tools/amortised.py; do not edit\n\n" + table(title, HEADER, rows)
    )


if __name__ == "__main__":
    main()
