"""Figures of the paper's networks on our arcs, brought step by step to the conditions of the paper.

The networks are those of the form of the paper; the arcs are of a divided twin, of which objects
that they have not learnt from are judged::

    python docs/tools/paper_values.py twin --real real-night --output docs/guide/paper_values.inc \
        --mlp mlp@paper runs/mlp-paper-[02]/network.safetensors \
        --pinn pinn@paper runs/pinn-paper-[12]/network.safetensors

Without ``--mlp`` and ``--pinn`` the networks are those of the package. The steps change the arcs
that are judged, and how, not the networks:

1. the twin as it is, with the attributables by three observations that the paper has;
2. its arcs drawn so that thirds of them lie between the published cut points of proper motion and
   of true range;
3. its arcs drawn so that their solar elongations are, too, those of the real nights of ``--real``
   when these are drawn as in step 2;
4. the real nights, drawn as in step 2;
5. step 2 with all ranges that a network answers moved alike, so that their median is to the true
   one as published.

Drawing is by *raking*: weights of arcs are scaled by one category after the other until the shares
of all are as wanted (Deming and Stephan 1940, Annals of Mathematical Statistics 11, 427). Of
several networks (seeds) of a kind the table has the mean, and as interval the union of theirs.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from study_tables import HEADLINE

from neoranging.core.answers import Answers
from neoranging.core.attributable import Attributables, from_three_points
from neoranging.core.geometry import dot, line_of_sight, norm
from neoranging.core.status import RangeStatus
from neoranging.exceptions import EvaluationError
from neoranging.lab.sets import ArcTable
from neoranging.lab.sets.arcs import to_core
from neoranging.lab.study import Selection, StudyMethod, score, summarise
from neoranging.lab.study.predictions import ask_arcs
from neoranging.lab.study.published import PUBLISHED, SOLVED, TERCILES
from neoranging.lab.study.scores import ArcTruth, select
from neoranging.tables import number
from neoranging.typing import FloatArray, IntArray

FIGURES = {
    name: HEADLINE[name]
    for name in (
        *("mae_rho", "medae_rho", "corr_rho", "spread_rho"),
        *("mae_rho_dot", "medae_rho_dot", "corr_rho_dot", "spread_rho_dot"),
        *("p_ar", "p_ar_truth", "d_sh_pseudo", "d_sh_pseudo_below"),
    )
}
ELONGATIONS_DEG = (60.0, 75.0, 90.0, 105.0, 120.0, 135.0, 150.0, 165.0)
"""Edges of the categories of solar elongation."""

DRAWN = "drawn by motion and range"

_ROUNDS = 1000
_SAME = 1e-6
"""Share of arcs by which categories may still be off after raking."""


class Nights(NamedTuple):
    """Arcs of a set, and what networks answer to them."""

    title: str
    table: ArcTable
    truth: ArcTruth
    """With attributables by three observations, seen from the geocentre."""
    scored: dict[str, list[pd.DataFrame]]
    """By kind of network, scores of each."""
    weights: dict[str, list[str]]
    """By kind of network, first digits of the SHA-256 of the weights of each."""

    @classmethod
    def of(cls, title: str, table: ArcTable, networks: Mapping[str, Sequence[str]]) -> Nights:
        """Answers of networks by kind, with attributables by three observations."""
        arcs, topocentric = to_core(table, "geocenter"), to_core(table)
        attributables = from_three_points(arcs)
        truth = replace(
            ArcTruth.of(table, "geocenter", arcs),
            attributables=attributables,
            limits=attributables.range_limits,
        )
        nights = cls(title, table, truth, {}, {})
        for kind, descriptions in networks.items():
            nights.scored[kind], nights.weights[kind] = [], []
            for description in descriptions:
                method = StudyMethod.of(f"{kind}={description}").estimator
                if method.origin != "geocenter":
                    raise EvaluationError(
                        f"{description} is no network of the form of the paper: its ranges count "
                        "from the topocentre"
                    )
                answers, _ = ask_arcs(method, arcs, topocentric, kind)
                nights.scored[kind].append(nights.score(kind, answers.rho, answers.rho_dot))
                nights.weights[kind].append(method.identity["weights_sha256"][:8])
                print(f"{title}: {description}")
        return nights

    def score(self, kind: str, rho: npt.ArrayLike, rho_dot: npt.ArrayLike) -> pd.DataFrame:
        """Scores of ranges and range-rates of the arcs."""
        pair = (np.asarray(x, dtype=np.float64) for x in (rho, rho_dot))
        answers = Answers.of(self.truth.attributables, *pair, RangeStatus.POPULATION)
        answers = replace(answers, method=kind, origin=self.truth.origin)
        return score(self.table, answers, truth=self.truth)

    @property
    def thirds(self) -> list[IntArray]:
        """Published third of proper motion, and of true range, that each arc is in."""
        values = {"eta": self.truth.attributables.proper_motion, "rho": self.truth.rho}
        return [np.digitize(values[axis], cuts) for axis, cuts in TERCILES.items()]

    @property
    def elongation(self) -> IntArray:
        """Category of the solar elongation of each arc."""
        return np.digitize(elongation_deg(self.truth.attributables), ELONGATIONS_DEG)


def elongation_deg(attributables: Attributables) -> FloatArray:
    """Solar elongations [deg]."""
    sun = -attributables.position
    sight = line_of_sight(attributables.ra, attributables.dec)
    return np.degrees(np.arccos(np.clip(dot(sight, sun) / norm(sun), -1.0, 1.0)))


def raked(categories: Sequence[IntArray], shares: Sequence[FloatArray]) -> FloatArray:
    """Weights of arcs, with mean 1, that give every category its share.

    Parameters
    ----------
    categories : sequence of ndarray of int, shape (M,)
        Category of each arc, one array for each of several divisions.
    shares : sequence of ndarray
        Wanted shares of their categories.

    Raises
    ------
    EvaluationError
        If a wanted category has no arc, or no weights give all shares.
    """
    n = len(categories[0])
    weights = np.ones(n)
    off = np.inf
    for _ in range(_ROUNDS):
        held = [
            np.bincount(c, weights, len(s)) / n for c, s in zip(categories, shares, strict=True)
        ]
        if any((np.equal(h, 0.0) & (s > 0.0)).any() for h, s in zip(held, shares, strict=True)):
            raise EvaluationError("a category has a share and no arcs: take fewer categories")
        off = max(np.abs(h - s).max() for h, s in zip(held, shares, strict=True))
        if off < _SAME:
            return weights
        for category, share in zip(categories, shares, strict=True):
            has = np.bincount(category, weights, len(share)) / n
            weights *= np.divide(share, has, out=np.zeros(len(share)), where=has > 0.0)[category]
    raise EvaluationError(f"shares are still off by {off:.2g} after {_ROUNDS} rounds of raking")


def drawn(weights: FloatArray) -> IntArray:
    """Indices of as many arcs, each as often as its weight says, to one more or less."""
    ends = np.cumsum(weights) / weights.sum()
    return np.searchsorted(ends, (np.arange(len(weights)) + 0.5) / len(weights))


def figures_of(
    scored: Sequence[pd.DataFrame], rows: IntArray, n_boot: int
) -> dict[str, tuple[float, float, float]]:
    """Figures of networks of one kind: mean of the values, lowest and highest end of intervals."""
    tables = [
        summarise(select(each, rows), metrics=list(FIGURES), n_boot=n_boot).set_index("metric")
        for each in scored
    ]
    return {
        name: (
            float(np.mean([table.at[name, "value"] for table in tables])),
            float(np.min([table.at[name, "low"] for table in tables])),
            float(np.max([table.at[name, "high"] for table in tables])),
        )
        for name in FIGURES
    }


def steps(twin: Nights, real: Nights | None) -> dict[str, tuple[Nights, IntArray]]:
    """Arcs and rows of each step, by its title."""
    third = np.full(3, 1.0 / 3.0)
    found = {
        twin.title: (twin, np.arange(len(twin.table))),
        DRAWN: (twin, drawn(raked(twin.thirds, [third, third]))),
    }
    if real is not None:
        weights = raked(real.thirds, [third, third])
        wanted = np.bincount(real.elongation, weights, 1 + len(ELONGATIONS_DEG)) / len(weights)
        like_real = raked([*twin.thirds, twin.elongation], [third, third, wanted])
        found["and by elongation"] = twin, drawn(like_real)
        found[f"{real.title}, {DRAWN}"] = real, drawn(weights)
    return found


def describe(nights: Nights) -> str:
    """Paragraph on the arcs and the weights of the networks."""
    counts = f"{len(nights.table):,} arcs of {nights.scored['mlp'][0].object.nunique():,} objects"
    digests = (
        f"{kind} {', '.join(f'``{digest}``' for digest in of_kind)}"
        for kind, of_kind in nights.weights.items()
    )
    return f"**{nights.title.capitalize()}**: {counts}. Weights: {'; '.join(digests)}.\n"


def farther(nights: Nights, rows: IntArray, kind: str) -> list[pd.DataFrame]:
    """Scores of all answers moved alike, to the published median relative to the true one."""
    (paper,) = (
        each.values for each in PUBLISHED if each.subset == SOLVED and each.method.lower() == kind
    )
    wanted = paper["median_rho"] / paper["median_rho_true"] * np.median(nights.truth.rho[rows])
    moved = []
    for each in nights.scored[kind]:
        rho = each.rho.to_numpy()
        moved.append(nights.score(kind, rho + wanted - np.median(rho[rows]), each.rho_dot))
    return moved


def as_table(kind: str, arcs: Mapping[str, tuple[Nights, IntArray]], n_boot: int) -> str:
    """Table in reStructuredText: a row for each figure, a column for each step."""
    (paper,) = (
        each.values for each in PUBLISHED if each.subset == "all" and each.method.lower() == kind
    )
    columns = {
        title: figures_of(nights.scored[kind], rows, n_boot)
        for title, (nights, rows) in arcs.items()
    }
    columns[f"{DRAWN}, median answer as published"] = figures_of(
        farther(*arcs[DRAWN], kind), arcs[DRAWN][1], n_boot
    )
    lines = [["", "published", *columns]]
    for name, label in FIGURES.items():
        cells = [label, number(paper[name])]
        for figures in columns.values():
            value, low, high = figures[name]
            digits = 4 if value > 99.0 else 3  # 99.4 and 99.98 are to be told apart
            bounds = " – ".join(number(end, digits) for end in (low, high))
            inside = " ✓" if low <= paper[name] <= high else ""
            cells.append(f"| {number(value, digits)}{inside}\n   | {bounds}")
        lines.append(cells)
    n = len(arcs[DRAWN][0].scored[kind])
    title = f"{kind.upper()} in the form of the paper, {n} network{'s' * (n > 1)}"
    body = "\n".join("   " + ", ".join(f'"{cell}"' for cell in line) for line in lines)
    return f".. csv-table:: {title}\n   :header-rows: 1\n   :class: numbers\n\n{body}\n"


def main() -> None:
    """Write the table, or print it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("twin", type=Path, help="A divided twin.")
    parser.add_argument("--split", default="test", help="Its part to judge on.")
    parser.add_argument("--real", type=Path, help="A set of real nights.")
    parser.add_argument("--mlp", nargs="+", default=["mlp@paper"], help="Networks, or files.")
    parser.add_argument("--pinn", nargs="+", default=["pinn@paper"], help="Networks, or files.")
    parser.add_argument("--max-arcs", type=int, help="At most so many arcs, for a quick look.")
    parser.add_argument("--resamples", type=int, default=200, help="Of the bootstrap by object.")
    parser.add_argument("--output", type=Path, help="Page part to write.")
    options = parser.parse_args()
    networks = {"mlp": options.mlp, "pinn": options.pinn}
    selection = Selection(split=options.split, max_arcs=options.max_arcs)
    twin = Nights.of("the twin", selection.read(options.twin), networks)
    real = None
    if options.real is not None:
        nights = Selection(split=None, max_arcs=options.max_arcs).read(options.real)
        real = Nights.of("real nights", nights, networks)
    arcs = steps(twin, real)
    about = [describe(nights) for nights in (twin, real) if nights is not None]
    tables = [as_table(kind, arcs, options.resamples) for kind in networks]
    text = "\n".join([*about, *tables])
    if options.output is None:
        print(text)
        return
    head = ".. made by docs/tools/paper_values.py; do not edit\n\n"
    options.output.write_text(head + text, encoding="utf-8")


if __name__ == "__main__":
    main()
