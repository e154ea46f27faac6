"""What is suspicious about answers or labels, told in words before anybody reads a figure.

Wrong units, shifted rows, a constant: each leaves a trace that a table of medians hides from a
reader in haste. The checks look for these traces. An alarm says that something is probably broken;
a remark says what the figures of a method must be read with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd

from neoranging.lab.sets.schema import ArcTable
from neoranging.lab.study.metrics import COLLAPSED
from neoranging.lab.study.scores import ArcTruth, distances, select
from neoranging.typing import BoolArray, FloatArray

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


# ---------------------------------------------------------------------- answers


def check_answers(scored: pd.DataFrame) -> list[Remark]:
    """What is suspicious about the answers of a method, alarms first.

    Parameters
    ----------
    scored : pd.DataFrame
    """
    given = scored.answered
    found = [Remark(scored.attrs["method"], *each) for each in _unanswered(given)]
    if given.sum() >= ENOUGH:
        some = select(scored, given)
        found += [
            Remark(scored.attrs["method"], *each) for check in _CHECKS for each in check(some)
        ]
    return sorted(found, key=lambda remark: not remark.is_alarm)


def check_twins(scored: Sequence[pd.DataFrame]) -> list[Remark]:
    """Methods that answer nearly all arcs alike, to the last digit: one method under two names.

    Parameters
    ----------
    scored : sequence of pd.DataFrame
        Of the same arcs.
    """
    found = []
    for first, second in combinations(scored, 2):
        answered = first.answered & second.answered
        n = int((first.rho[answered] == second.rho[answered]).sum())
        if answered.sum() >= ENOUGH and n > 0.5 * answered.sum():
            share = f"{n:,} of {int(answered.sum()):,} arcs"
            one, other = first.attrs["method"], second.attrs["method"]
            text = f"gives the very ranges of {one} on {share}: is it the same method?"
            found.append(Remark(other, True, text))
    return found


_Told = Iterator[tuple[bool, str]]


def _unanswered(given: BoolArray) -> _Told:
    n = int(given.sum())
    if n < 0.95 * len(given):
        share = f"{n:,} of {len(given):,} arcs ({100.0 * n / len(given):.1f} %)"
        yield n < 0.01 * len(given), f"answers {share}; its errors are of these alone"


def _constant(s: pd.DataFrame) -> _Told:
    for name, answer, truth, unit in _pairs(s):
        (low, high), (least, most) = (np.quantile(x, (0.05, 0.95)) for x in (answer, truth))
        if high - low < 0.02 * (most - least) and not _collapsed(s) > 0.5:
            yield (
                True,
                f"nearly constant {name}: nine in ten lie between {low:.4g} and {high:.4g} {unit}, "
                f"of the truth between {least:.3g} and {most:.3g}",
            )


def _pairs(s: pd.DataFrame) -> Iterator[tuple[str, FloatArray, FloatArray, str]]:
    yield "ranges", s.rho, s.rho_true, "au"
    yield "range-rates", s.rho_dot, s.rho_dot_true, "au/d"


def _collapsed(s: pd.DataFrame) -> float:
    return float(np.mean(s.rho < COLLAPSED))


def _scale(s: pd.DataFrame) -> _Told:
    for name, answer, truth, _ in _pairs(s):
        ratio = _ratio(answer, truth)
        middle = float(np.median(ratio)) if len(ratio) >= ENOUGH else 1.0
        usual = 2.0 if name == "ranges" else 4.0
        if 1.0 / usual <= middle <= usual:
            continue
        unit = _unit_of(ratio, middle, UNITS if name == "ranges" else RATE_UNITS)
        told = f"{name} are typically {middle:.3g} times the truth"
        yield unit != "" or not 0.1 <= middle <= 10.0, told + (f": {unit}" if unit else "")


def _ratio(answer: FloatArray, truth: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.abs(answer / truth)
    return ratio[np.isfinite(ratio) & (ratio > 0.0)]


def _unit_of(ratio: FloatArray, middle: float, units: dict[float, str]) -> str:
    """Which unit was taken for which, if the factor tells; "" if it does not."""
    low, high = np.quantile(ratio, (0.25, 0.75))
    if high > 4.0 * low:  # a factor that is none
        return ""
    for factor, name in units.items():
        if 0.8 < middle / factor < 1.25:
            return f"units look swapped ({name})"
        if 0.8 < middle * factor < 1.25:
            return f"units look swapped (taken for {name}, and converted)"
    return ""


def _exchanged(s: pd.DataFrame) -> _Told:
    own = _rank_correlation(s.rho, s.rho_true), _rank_correlation(s.rho_dot, s.rho_dot_true)
    other = _rank_correlation(s.rho, s.rho_dot_true), _rank_correlation(s.rho_dot, s.rho_true)
    if other[0] > own[0] + 0.2 and other[1] > own[1] + 0.2:
        yield True, "ranges and range-rates look exchanged: each goes with the truth of the other"


def _wrong_sign(s: pd.DataFrame) -> _Told:
    together = _rank_correlation(s.rho_dot, s.rho_dot_true)
    if together < -0.3:
        yield True, f"range-rates look of the wrong sign (rank correlation {together:.2f})"


def _uninformative(s: pd.DataFrame) -> _Told:
    together = _rank_correlation(s.rho, s.rho_true)
    if together >= 0.1:
        return
    # a method that says which of its answers are worth something is not broken for the others
    vouched = _rank_correlation(s.rho[s.ok], s.rho_true[s.ok]) if s.ok.sum() >= ENOUGH else 0.0
    if not s.ok.all() and vouched > 0.5:
        text = "only ranges with status OK tell of the true ones (rank correlation"
        yield False, f"{text} {vouched:.2f}, all together {together:.2f})"
        return
    yield (
        True,
        f"ranges tell nothing of the true ones (rank correlation {together:.2f}): broken, "
        "degenerate, or scored on the labels of other arcs",
    )


def _shifted(s: pd.DataFrame) -> _Told:
    """Neighbours in a set are of one object and alike, so a shift leaves much correlation.

    It leaves still more where it is undone, and no sound method answers for the next row.
    """
    here = _rank_correlation(s.rho, s.rho_true)
    # of the arcs with an answer, not of all rows; enough where most are answered
    shifts = {k: _rank_correlation(np.roll(s.rho, k), s.rho_true) for k in (-3, -2, -1, 1, 2, 3)}
    k = max(shifts, key=lambda shift: shifts[shift])
    if shifts[k] > here + max(0.03, 4.0 / np.sqrt(len(s))):
        where = f"{abs(k)} row{'s' if abs(k) > 1 else ''} {'further' if k > 0 else 'back'}"
        yield (
            True,
            f"answers fit the arcs {where} better (rank correlation {shifts[k]:.2f}, here "
            f"{here:.2f}): labels or answers are shifted",
        )


def _collapse(s: pd.DataFrame) -> _Told:
    share = _collapsed(s)
    if share > 0.05:
        where = f"within {COLLAPSED:g} au of the observer"
        yield share > 0.5, f"{100.0 * share:.1f} % of its answers lie {where}: degenerate roots"


def _too_good(s: pd.DataFrame) -> _Told:
    middle = float(np.median(s.relative_error))
    if middle < 1e-6:
        yield True, f"the median relative error is {middle:.1e}: does it see the truth?"


def _shrunk(s: pd.DataFrame) -> _Told:
    spread = [np.subtract(*np.quantile(x, (0.95, 0.05))) for x in (s.rho, s.rho_true)]
    if 0.02 * spread[1] <= spread[0] < 0.5 * spread[1]:
        ratio = spread[0] / spread[1]
        yield False, f"ranges spread {ratio:.2f} times as wide as the truth: drawn to the middle"


def _inadmissible(s: pd.DataFrame) -> _Told:
    share = 100.0 * float(np.mean(s.admissible))
    if share < 80.0:
        yield False, f"{share:.1f} % of its answers are admissible"


_CHECKS: Final[Sequence[Callable[[pd.DataFrame], _Told]]] = (
    _constant,
    _scale,
    _exchanged,
    _wrong_sign,
    _shifted,
    _uninformative,
    _too_good,
    _collapse,
    _shrunk,
    _inadmissible,
)


def _rank_correlation(x: FloatArray, y: FloatArray) -> float:
    """Spearman's correlation; zero where a column is constant."""
    from scipy.stats import rankdata

    ranks = np.stack([rankdata(x), rankdata(y)])
    ranks -= ranks.mean(axis=1, keepdims=True)
    scale = np.sqrt(np.prod(np.sum(ranks**2, axis=1)))
    return float(np.sum(ranks[0] * ranks[1]) / scale) if scale > 0.0 else 0.0


# ---------------------------------------------------------------------- labels


def check_labels(table: ArcTable, truth: ArcTruth, description: dict[str, Any]) -> list[Remark]:
    """What is suspicious about the arcs and their true ranges, whatever methods answer.

    The true range completes the observed attributable to an orbit, which has to be nearly that of
    the catalogue: labels of other arcs, or in other units, give another one.

    Parameters
    ----------
    table : ArcTable
    truth : ArcTruth
        From the topocentre.
    description : dict
        `neoranging.lab.study.selection.describe`.
    """
    found = [*_units_of_labels(truth), *_orbits_of_labels(truth)]
    remarks = [Remark("the labels", *each) for each in found]
    return [*remarks, *(Remark("the arcs", *each) for each in _odd_arcs(table, description))]


def _units_of_labels(truth: ArcTruth) -> _Told:
    middle = float(np.median(truth.rho))
    if not 1e-4 < middle < 10.0:
        yield True, f"the median true range is {middle:.3g} au: are labels in astronomical units?"
    share = 100.0 * float(np.mean(truth.admissible))
    if share < 95.0:
        yield True, f"only {share:.1f} % of the true ranges are admissible"


def _orbits_of_labels(truth: ArcTruth) -> _Told:
    distance, elliptic = distances(truth.pseudo, truth.catalogue)
    if not elliptic.any():
        yield True, "not one true range gives an elliptic orbit"
        return
    middle = float(np.median(distance[elliptic]))
    if middle > 0.15:
        yield (
            True,
            f"the orbits of the true ranges are off those of the catalogue (median D_SH "
            f"{middle:.2f}): labels are shifted, or of other arcs or units",
        )


def _odd_arcs(table: ArcTable, description: dict[str, Any]) -> _Told:
    n, largest = len(table), description["n_largest"]
    if largest > max(0.02 * n, 20) and description["selection"]["cap"] is None:
        share = f"{largest:,} of {n:,} arcs ({100.0 * largest / n:.1f} %)"
        yield False, f"{description['largest']} alone has {share}: consider a cap by object"
    if set(np.unique(table["split"])) & {"train", "val"}:
        yield False, "some of the arcs may have been seen in the training of a network"
