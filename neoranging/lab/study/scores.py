"""Answers beside the truth: errors and distances of orbits, arc by arc.

The truth of an arc is the label that counts from where the method's ranges count. Two orbits stand
for it. The *catalogue* orbit is what the object moves on. The *pseudo-true* orbit is the observed
attributable completed with the true range and range-rate: what a method without error in these two
numbers would give, errors of the observed rates included. The attributable is that by the weighted
fit of all observations, seen from the method's origin; with three observations from the geocentre
it is, but for the plane it is fitted in, that of the literature.

References
----------
- Gneiting, T., Raftery, A. E. 2007, J. Am. Stat. Assoc. 102, 359: the interval score.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from neoranging.core import columns
from neoranging.core.answers import Answers
from neoranging.core.arcs import Arcs
from neoranging.core.attributable import Attributables, Completion, from_fit
from neoranging.core.dcriteria import d_sh_of_ellipses
from neoranging.core.elements import state_to_elements
from neoranging.core.geometry import equatorial_to_ecliptic
from neoranging.exceptions import EvaluationError
from neoranging.lab.sets.arcs import OBSERVED, to_core
from neoranging.lab.sets.schema import TRUE_COLUMNS, ArcTable
from neoranging.typing import BoolArray, FloatArray, IntArray, StrArray

_CATALOGUE: Final = ("q_au", "ecc", "inc_rad", "raan_rad", "argp_rad")

COLUMNS_NEEDED: Final = (
    *OBSERVED,
    *(name for names in TRUE_COLUMNS.values() for name in names),
    *_CATALOGUE,
    "designation",
)
"""Columns of a set that methods are asked with and judged by."""

INTERVAL_LEVEL: Final = 0.68
"""Of the intervals that are drawn."""

TABLE_LEVELS: Final = (0.68, 0.95)
"""Of tables."""

STUDY_LEVELS: Final = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.68, 0.8, 0.9, 0.95, 0.99)
"""Of reliability diagrams."""

DISTRIBUTIONS: Final = (
    *("low", "high"),
    *(
        f"{name}_{100 * level:g}"
        for name in ("inside", "ratio", "interval_score")
        for level in TABLE_LEVELS
    ),
    *("rho_median", "pit", "depth", "crps", "density", "nodes_admissible"),
)
"""Columns of scores that answers alone do not fill."""

_SAME = 1e-9
"""Relative difference of proper motions up to which answers belong to an arc."""


@dataclass(frozen=True, eq=False, repr=False)
class ArcTruth:
    """Truth of M arcs from one origin; made once, it serves every method of that origin.

    Attributes
    ----------
    origin : {"topocenter", "geocenter"}
    attributables : Attributables
        By the weighted fit of all observations, seen from the origin.
    limits : ndarray, shape (M, 2)
        Least and greatest admissible range of the attributables [au].
    rho, rho_dot : ndarray, shape (M,)
        True range [au] and range-rate [au/d].
    catalogue : ndarray, shape (M, 5)
        Catalogue orbit ``q, ecc, inc, raan, argp`` [au, -, rad, rad, rad], ecliptic J2000.
    span : ndarray, shape (M,)
        From the first to the last observation [d].
    designation : ndarray of str, shape (M,)
        Object of each arc.
    """

    origin: str
    attributables: Attributables
    limits: FloatArray
    rho: FloatArray
    rho_dot: FloatArray
    catalogue: FloatArray
    span: FloatArray
    designation: StrArray

    @classmethod
    def of(cls, table: ArcTable, origin: str = "topocenter", arcs: Arcs | None = None) -> Self:
        """Truth of labelled arcs.

        Parameters
        ----------
        table : ArcTable
            With `COLUMNS_NEEDED`.
        origin : {"topocenter", "geocenter"}
        arcs : Arcs, optional
            ``to_core(table, origin)``, where it is at hand.

        Raises
        ------
        DatasetError
            If a column is missing or the origin is unknown.
        EvaluationError
            If an arc has no true range.
        """
        if not len(table):
            raise EvaluationError("there are no arcs to score: is it the right split?")
        arcs = to_core(table, origin) if arcs is None else arcs
        rho, rho_dot = (table[name] for name in TRUE_COLUMNS[origin])
        unlabelled = int(np.sum(~np.isfinite(rho)))
        if unlabelled:
            raise EvaluationError(
                f"{unlabelled} of {len(table)} arcs have no true range: only labelled arcs can be "
                "scored; take the others out of the table"
            )
        attributables = from_fit(arcs)
        catalogue = np.stack([table[name] for name in _CATALOGUE], axis=1)
        limits, names = attributables.range_limits, table["designation"]
        return cls(origin, attributables, limits, rho, rho_dot, catalogue, arcs.span, names)

    def __len__(self) -> int:
        return len(self.rho)

    def take(self, rows: npt.NDArray) -> Self:
        """Truth of some of the arcs: indices or a mask."""
        return columns.take(self, rows)

    @cached_property
    def _completion(self) -> Completion:
        return self.attributables.complete(self.rho, self.rho_dot)

    @cached_property
    def pseudo(self) -> FloatArray:
        """Pseudo-true orbits ``q, ecc, inc, raan, argp``, as those of the catalogue, (M, 5)."""
        return _five_elements(self._completion.r, self._completion.v)

    @property
    def admissible(self) -> BoolArray:
        """Flags of true ranges in the admissible region of the attributable, shape (M,)."""
        return self._completion.admissible

    @cached_property
    def objects(self) -> tuple[StrArray, IntArray]:
        """Objects in alphabetical order, shape (K,), and the number of each arc's, shape (M,)."""
        names, number = np.unique(self.designation, return_inverse=True)
        return names, number.astype(np.int64)


def score(table: ArcTable, answers: Answers, *, truth: ArcTruth | None = None) -> pd.DataFrame:
    """Hold answers against the truth.

    Parameters
    ----------
    table : ArcTable
        The M arcs that the method was asked for, labelled, in the same order.
    answers : Answers
    truth : ArcTruth, optional
        ``ArcTruth.of(table, answers.origin)``, where several methods share it.

    Returns
    -------
    pandas.DataFrame
        One row for each of the M arcs; ``method``, ``origin`` and ``seconds`` (wall time for all of
        them) stand in ``.attrs``. NaN marks what does not exist: errors where there is no answer, D
        where an orbit is not elliptic.

        ``rho``, ``rho_dot``, ``rho_true``, ``rho_dot_true``
            Answered and true range [au] and range-rate [au/d].
        ``low``, ``high``
            Bounds of a 68 % interval of the range [au]; NaN where none was made.
        ``inside_68``, ``ratio_68``, ``interval_score_68``, and the same with ``95``
            The truth is in the interval, its upper by its lower bound, and its interval score
            [dex]; of arcs without an interval, those of the admissible range. `run_study` fills
            them, and the next ones.
        ``rho_median``, ``pit``, ``depth``, ``crps``, ``density``, ``nodes_admissible``
            Of methods with a posterior: median range [au], probability of ranges below the true one
            and of more probable ones, continuous ranked probability score of log10 rho [dex],
            density of ln rho at the truth, and probability of admissible nodes.
        ``status``, ``answered``, ``ok``
            `RangeStatus.code`; there is a range, whatever the status; the status is OK.
        ``relative_error``, ``log10_error``
            ``|rho - rho_true| / rho_true``, and ``|log10(rho / rho_true)|`` [dex], which is
            infinite for an answer that is not positive.
        ``d_sh_pseudo``, ``d_sh_catalogue``, ``elliptic_pseudo``, ``elliptic_catalogue``
            Distance D of Southworth and Hawkins of the orbit of the answer from the pseudo-true
            orbit and from that of the catalogue, and whether both orbits are elliptic.
        ``admissible``, ``pseudo_admissible``
            The answer, and the true range, lie in the admissible region of the attributable.
        ``eta``, ``inc``, ``span``
            Proper motion [rad/d], true inclination [rad], length of the arc [d].
        ``object``, ``designation``
            Number of the object in alphabetical order, and its name.

    Raises
    ------
    EvaluationError
        If an arc has no label, or the answers are to other arcs.
    DatasetError
        If the table lacks a column.
    """
    if truth is None:
        truth = ArcTruth.of(table, answers.origin)
    _check_same_arcs(truth, answers)
    answered = answers.answered
    rho, rho_dot = (np.where(answered, x, np.nan) for x in (answers.rho, answers.rho_dot))
    ratio = rho / truth.rho
    with np.errstate(divide="ignore", invalid="ignore"):
        dex = np.where(ratio > 0.0, np.abs(np.log10(ratio)), np.where(ratio <= 0, np.inf, np.nan))
    r, v = (np.where(answered[:, None], x, np.nan) for x in (answers.r, answers.v))
    orbit = _five_elements(r, v)
    d_sh_pseudo, elliptic_pseudo = d_sh_of_ellipses(orbit, truth.pseudo)
    d_sh_catalogue, elliptic_catalogue = d_sh_of_ellipses(orbit, truth.catalogue)
    names, number = truth.objects
    values = {
        "rho": rho,
        "rho_dot": rho_dot,
        "rho_true": truth.rho,
        "rho_dot_true": truth.rho_dot,
        **dict.fromkeys(DISTRIBUTIONS, np.nan),
        "status": answers.status,
        "answered": answered,
        "ok": answers.ok,
        "relative_error": np.abs(ratio - 1.0),
        "log10_error": dex,
        "d_sh_pseudo": d_sh_pseudo,
        "d_sh_catalogue": d_sh_catalogue,
        "elliptic_pseudo": elliptic_pseudo,
        "elliptic_catalogue": elliptic_catalogue,
        "admissible": answered & answers.admissible,
        "pseudo_admissible": truth.admissible,
        "eta": truth.attributables.proper_motion,
        "inc": truth.catalogue[:, 2],
        "span": truth.span,
        "object": number,
        "designation": pd.Categorical.from_codes(number, pd.Index(names)),
    }
    scores = pd.DataFrame(values)
    scores.attrs = {name: getattr(answers, name) for name in ("method", "origin", "seconds")}
    return scores


def interval_score(rho: FloatArray, bounds: FloatArray, level: float) -> FloatArray:
    """Interval scores of log10 rho [dex]; Gneiting & Raftery (2007), equation 43.

    The width, and 2 / (1 - level) times what the truth is outside: who is too narrow pays for what
    is missed, who is too wide for the width, and the true quantiles do best.

    Parameters
    ----------
    rho : ndarray, shape (M,)
        True ranges [au].
    bounds : ndarray, shape (M, 2)
        Intervals [au].
    level : float
    """
    low, high = np.log10(bounds).T
    true = np.log10(rho)
    outside = np.maximum(low - true, 0.0) + np.maximum(true - high, 0.0)
    return np.asarray(high - low + 2.0 / (1.0 - level) * outside)


def with_intervals(
    scored: pd.DataFrame, rows: IntArray, intervals: Mapping[float, FloatArray], limits: FloatArray
) -> pd.DataFrame:
    """Scores with the intervals of some rows.

    Parameters
    ----------
    scored : DataFrame
        M arcs.
    rows : ndarray of int, shape (N,)
        Arcs that are judged; the others keep NaN.
    intervals : mapping of float to ndarray
        By level, bounds of the range, shape (N, 2) [au].
    limits : ndarray, shape (N, 2)
        Admissible ranges [au], which stand for an interval of a level that there is none of.
    """
    true = scored["rho_true"].to_numpy()[rows]
    values: dict[str, FloatArray] = {}
    for level in TABLE_LEVELS:
        bounds, name = intervals.get(level, limits), f"{100 * level:g}"
        low, high = bounds.T
        inside = np.where(np.isnan(low), np.nan, (low <= true) & (true <= high))
        values |= {
            f"inside_{name}": inside,
            f"ratio_{name}": high / low,
            f"interval_score_{name}": interval_score(true, bounds, level),
        }
    if INTERVAL_LEVEL in intervals:
        # drawn around an answer, so only where there is one
        answered = scored["answered"].to_numpy()[rows, None]
        low, high = np.where(answered, intervals[INTERVAL_LEVEL], np.nan).T
        values |= {"low": low, "high": high}
    columns_of_all = {}
    for name, value in values.items():
        columns_of_all[name] = np.full(len(scored), np.nan)
        columns_of_all[name][rows] = value
    return scored.assign(**columns_of_all)


def select(scores: pd.DataFrame, rows: slice | npt.ArrayLike) -> pd.DataFrame:
    """Scores of some arcs, numbered anew from 0: a slice, indices in any order, or a mask."""
    if not isinstance(rows, slice):
        rows = np.asarray(rows)
        rows = rows if rows.dtype == bool else rows.astype(np.intp)
    return scores.iloc[rows].reset_index(drop=True)


def _five_elements(r: FloatArray, v: FloatArray) -> FloatArray:
    """Elements q, ecc, inc, raan, argp of equatorial states, shape (M, 5)."""
    elements = state_to_elements(equatorial_to_ecliptic(r), equatorial_to_ecliptic(v))
    return np.stack(elements[:5], axis=1)


def _check_same_arcs(truth: ArcTruth, answers: Answers) -> None:
    name = answers.method
    if truth.origin != answers.origin:
        raise EvaluationError(
            f"the ranges of {name!r} count from the {answers.origin}, the truth from the "
            f"{truth.origin}: make ArcTruth.of(table, {answers.origin!r})"
        )
    if len(answers) != len(truth):
        raise EvaluationError(f"{name!r} has {len(answers)} answers for {len(truth)} arcs")
    # the motion on the sky of an arc is as good as its name
    eta = truth.attributables.proper_motion
    other = ~(np.abs(answers.eta - eta) <= _SAME * eta)
    if other.any():
        raise EvaluationError(
            f"answers of {name!r} belong to other arcs, or to these in another order: "
            f"{int(other.sum())} of {len(answers)} proper motions differ; ask the method again"
        )
