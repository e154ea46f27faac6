"""Suspicious answers or labels, told in words before anybody reads a figure.

Wrong units, shifted rows, a constant: each leaves a trace that a table of medians hides from a
reader in haste. The checks look for these traces. An alarm says that something is probably broken;
a remark says what the figures of a method must be read with.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd

from neoranging.core.dcriteria import d_sh_of_ellipses
from neoranging.lab.sets.schema import ArcTable
from neoranging.lab.study.metrics import COLLAPSED, DENSITY_FLOOR
from neoranging.lab.study.scores import ArcTruth, select

ENOUGH: Final = 30
"""Arcs below which a trace is no evidence."""

UNITS: Final = {
    149_597_870.7: "kilometres",
    149_597_870_700.0: "metres",
    23_454.8: "Earth radii",
    389.17: "lunar distances",
    499.005: "light-seconds",
}
"""How many make an astronomical unit."""

RATE_UNITS: Final = {
    1_731.456_8: "kilometres per second",
    149_597_870.7: "kilometres per day",
    365.25: "au per year",
    1.0 / 86_400.0: "au per second",
}
"""How many make one au/d."""


class Remark(NamedTuple):
    """Something to know before the figures are read."""

    subject: str
    """Label of the method; "the labels" or "the arcs"."""
    is_alarm: bool
    """Something is probably broken."""
    text: str


Traces = Iterator[tuple[bool, str]]
"""Of each trace, whether it alarms, and the words for it."""


# ---------------------------------------------------------------------- answers


def check_answers(scored: pd.DataFrame) -> list[Remark]:
    """Remarks on the answers of a method, alarms first.

    Parameters
    ----------
    scored : DataFrame
        As of `neoranging.lab.study.scores.score`.
    """
    n, m = int(scored.answered.sum()), len(scored)
    traces = []
    if n < 0.95 * m:
        share = f"{n:,} of {m:,} arcs ({100.0 * n / m:.1f} %)"
        traces.append((n < 0.01 * m, f"answers {share}; its errors are of these alone"))
    if n >= ENOUGH:
        some = select(scored, scored.answered)
        traces += [*_distributions(some), *_correlations(some), *_qualities(some)]
    traces += _posteriors(select(scored, scored.pit.notna()))
    remarks = [Remark(scored.attrs["method"], *trace) for trace in traces]
    return sorted(remarks, key=lambda remark: not remark.is_alarm)


def check_copies(scored: Sequence[pd.DataFrame]) -> list[Remark]:
    """Remarks on methods that answer nearly all arcs alike: one method under two names.

    Parameters
    ----------
    scored : sequence of DataFrame
        Of the same arcs.
    """
    remarks = []
    for first, second in combinations(scored, 2):
        answered = first.answered & second.answered
        n = int((first.rho[answered] == second.rho[answered]).sum())
        if answered.sum() >= ENOUGH and n > 0.5 * answered.sum():
            other, share = first.attrs["method"], f"{n:,} of {int(answered.sum()):,} arcs"
            text = f"gives the very ranges of {other} on {share}: is it the same method?"
            remarks.append(Remark(second.attrs["method"], True, text))
    return remarks


def _distributions(s: pd.DataFrame) -> Traces:
    """Constants, and wrong units."""
    quantities = (
        ("ranges", s.rho, s.rho_true, "au", 2.0, UNITS),
        ("range-rates", s.rho_dot, s.rho_dot_true, "au/d", 4.0, RATE_UNITS),
    )
    for name, answer, truth, unit, *_ in quantities:
        (low, high), (least, most) = (np.quantile(x, (0.05, 0.95)) for x in (answer, truth))
        if high - low < 0.02 * (most - least) and not np.mean(s.rho < COLLAPSED) > 0.5:
            yield (
                True,
                f"nearly constant {name}: nine in ten lie between {low:.4g} and {high:.4g} {unit}, "
                f"of the truth between {least:.3g} and {most:.3g}",
            )
    for name, answer, truth, _, usual, units in quantities:
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.abs(answer / truth)
        ratio = ratio[np.isfinite(ratio) & (ratio > 0.0)]
        middle = float(np.median(ratio)) if len(ratio) >= ENOUGH else 1.0
        if 1.0 / usual <= middle <= usual:
            continue
        unit = ""
        low, high = np.quantile(ratio, (0.25, 0.75))
        for factor, word in units.items() if high <= 4.0 * low else ():  # else it is no factor
            if 0.8 < middle / factor < 1.25:
                unit = f": units look swapped ({word})"
            elif 0.8 < middle * factor < 1.25:
                unit = f": units look swapped (taken for {word}, and converted)"
            if unit:
                break
        text = f"{name} are typically {middle:.3g} times the truth"
        yield unit != "" or not 0.1 <= middle <= 10.0, text + unit


def _correlations(s: pd.DataFrame) -> Traces:
    """Columns exchanged, a wrong sign, rows shifted, and answers without information."""
    rho, rate = _rank_correlation(s.rho, s.rho_true), _rank_correlation(s.rho_dot, s.rho_dot_true)
    if (
        _rank_correlation(s.rho, s.rho_dot_true) > rho + 0.2
        and _rank_correlation(s.rho_dot, s.rho_true) > rate + 0.2
    ):
        yield True, "ranges and range-rates look exchanged: each goes with the truth of the other"
    if rate < -0.3:
        yield True, f"range-rates look of the wrong sign (rank correlation {rate:.2f})"
    # Neighbours in a set are of one object and alike, so a shift leaves much correlation. It leaves
    # still more where it is undone, and no sound method answers for the next row. This is of the
    # arcs with an answer, not of all rows; enough where most are answered.
    shifts = {k: _rank_correlation(np.roll(s.rho, k), s.rho_true) for k in (-3, -2, -1, 1, 2, 3)}
    k = max(shifts, key=lambda shift: shifts[shift])
    if shifts[k] > rho + max(0.03, 4.0 / np.sqrt(len(s))):
        where = f"{abs(k)} row{'s' if abs(k) > 1 else ''} {'further' if k > 0 else 'back'}"
        yield (
            True,
            f"answers fit the arcs {where} better (rank correlation {shifts[k]:.2f}, here "
            f"{rho:.2f}): labels or answers are shifted",
        )
    if rho >= 0.1:
        return
    # a method that says which of its answers are worth something is not broken for the others
    ok = _rank_correlation(s.rho[s.ok], s.rho_true[s.ok]) if s.ok.sum() >= ENOUGH else 0.0
    if not s.ok.all() and ok > 0.5:
        text = "only ranges with status OK tell of the true ones (rank correlation"
        yield False, f"{text} {ok:.2f}, all together {rho:.2f})"
    else:
        yield (
            True,
            f"ranges tell nothing of the true ones (rank correlation {rho:.2f}): broken, "
            "degenerate, or scored on the labels of other arcs",
        )


def _qualities(s: pd.DataFrame) -> Traces:
    """Answers that are too good, degenerate, drawn to the middle, or not admissible."""
    middle = float(np.median(s.relative_error))
    if middle < 1e-6:
        yield True, f"the median relative error is {middle:.1e}: does it see the truth?"
    share = float(np.mean(s.rho < COLLAPSED))
    if share > 0.05:
        where = f"within {COLLAPSED:g} au of the observer"
        yield share > 0.5, f"{100.0 * share:.1f} % of its answers lie {where}: degenerate roots"
    spread = [np.subtract(*np.quantile(x, (0.95, 0.05))) for x in (s.rho, s.rho_true)]
    if 0.02 * spread[1] <= spread[0] < 0.5 * spread[1]:
        ratio = spread[0] / spread[1]
        yield False, f"ranges spread {ratio:.2f} times as wide as the truth: drawn to the middle"
    percent = 100.0 * float(np.mean(s.admissible))
    if percent < 80.0:
        yield False, f"{percent:.1f} % of its answers are admissible"


def _posteriors(s: pd.DataFrame) -> Traces:
    """Probability of what cannot be, and truths that have none."""
    outside = 1.0 - s.nodes_admissible
    if n := int((outside > 1e-9).sum()):
        arcs = f"{n:,} of {len(s):,} arcs, {100.0 * outside.max():.3g} % at most"
        # a node is fitted to all observations, and may move over the border of the attributable
        is_alarm = bool(outside.max() > 0.01)
        yield is_alarm, f"gives probability to nodes that are not admissible on {arcs}"
    if n := int((s.density < DENSITY_FLOOR).sum()):
        off = f"the true range lies off the posterior on {n:,} of {len(s):,} arcs"
        yield False, f"{off}; their density counts as {DENSITY_FLOOR:g}"


def _rank_correlation(x: Any, y: Any) -> float:
    """Spearman's correlation; zero where a column is constant."""
    from scipy.stats import rankdata

    ranks = np.stack([rankdata(x), rankdata(y)])
    ranks -= ranks.mean(axis=1, keepdims=True)
    scale = np.sqrt(np.prod(np.sum(ranks**2, axis=1)))
    return float(np.sum(ranks[0] * ranks[1]) / scale) if scale > 0.0 else 0.0


# ---------------------------------------------------------------------- labels


def check_labels(table: ArcTable, truth: ArcTruth, description: dict[str, Any]) -> list[Remark]:
    """Remarks on the arcs and their true ranges, whatever methods answer.

    Also on networks that learnt from objects of these arcs.

    The true range completes the observed attributable to an orbit, which has to be nearly that of
    the catalogue: labels of other arcs, or in other units, give another one.

    Parameters
    ----------
    table : ArcTable
    truth : ArcTruth
        From the topocentre.
    description : dict
        `neoranging.lab.study.selection.describe`, and ``learnt`` of `run_study`.
    """
    remarks = [Remark("the labels", *trace) for trace in _label_traces(truth)]
    n, largest = len(table), description["n_largest"]
    if largest > max(0.02 * n, 20) and description["selection"]["cap"] is None:
        share = f"{largest:,} of {n:,} arcs ({100.0 * largest / n:.1f} %)"
        text = f"{description['largest']} alone has {share}: consider a cap by object"
        remarks.append(Remark("the arcs", False, text))
    learnt = description.get("learnt", {})
    return [*remarks, *(Remark(label, False, text) for label, text in learnt.items())]


def _label_traces(truth: ArcTruth) -> Traces:
    middle = float(np.median(truth.rho))
    if not 1e-4 < middle < 10.0:
        yield True, f"the median true range is {middle:.3g} au: are labels in astronomical units?"
    share = 100.0 * float(np.mean(truth.admissible))
    if share < 95.0:
        yield True, f"only {share:.1f} % of the true ranges are admissible"
    distance, elliptic = d_sh_of_ellipses(truth.pseudo, truth.catalogue)
    if not elliptic.any():
        yield True, "not one true range gives an elliptic orbit"
    elif (middle := float(np.median(distance[elliptic]))) > 0.15:
        yield (
            True,
            f"the orbits of the true ranges are off those of the catalogue (median D_SH "
            f"{middle:.2f}): labels are shifted, or of other arcs or units",
        )
