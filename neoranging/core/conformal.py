"""Intervals that hold by counting: split conformal prediction on arcs that were held back.

A method answers arcs whose range is known and that it never saw. How far off it was, the score, is
put in order, and an interval reaches as far as the k-th smallest of n scores,

    k = ceil((n + 1) * level).

If one more arc is exchangeable with those n, its truth lies in its own interval with a probability
of at least ``level``, whatever the method and whatever its errors look like (Vovk, Gammerman &
Shafer 2005, Algorithmic Learning in a Random World, prop. 2.3; Lei et al. 2018, J. Am. Stat. Assoc.
113, 1094, theorem 2.2). Done by category, it holds within each (Mondrian, Vovk et al., sec. 4.5).

Arcs of one object are alike, and objects, not arcs, are exchangeable: whatever is divided is
divided by object, and coverage is told both ways.

Ranges in au, proper motions in radian per day, lengths of arcs in days.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from neoranging.core.admissible import range_intervals
from neoranging.core.answers import Solutions
from neoranging.core.attributable import Attributables
from neoranging.core.status import is_usable
from neoranging.exceptions import ConformalError
from neoranging.typing import BoolArray, FloatArray, IntArray

SCORES: Final = ("log", "absolute", "standard")
"""What is counted: ``|ln rho - ln truth|``; ``|rho - truth|`` [au]; or that difference in standard
errors where an answer is usable and has one, and the logarithmic score elsewhere."""


class Answers(NamedTuple):
    """What a method says of M arcs, as far as intervals depend on it."""

    rho: FloatArray
    """Range [au]; NaN without an answer."""
    error: FloatArray
    """Its standard error [au]; NaN where the method gives none."""
    usable: BoolArray
    """Status OK or POPULATION: the method stands by the answer."""
    eta: FloatArray
    """Proper motion of the fit to all observations [rad/d]."""
    span: FloatArray
    """Time from the first to the last observation [d]."""

    @classmethod
    def of(cls, attributables: Attributables, solutions: Solutions, span: FloatArray) -> Answers:
        """Answers of an estimator to arcs of that ``span`` [d], shape (M,)."""
        a, s = attributables, solutions
        eta = a.proper_motion
        error = np.sqrt(s.covariance[:, 0, 0])
        return cls(s.rho, error, is_usable(s.status), eta, span)

    @classmethod
    def join(cls, parts: list[Answers]) -> Answers:
        """Answers to consecutive runs of arcs as one."""
        return cls._make(np.concatenate(column) for column in zip(*parts, strict=True))

    def take(self, rows: npt.NDArray) -> Answers:
        """Answers to some arcs."""
        return Answers._make(column[rows] for column in self)

    @property
    def given(self) -> BoolArray:
        """Whether there is a range at all: finite and in front of the observer, shape (M,)."""
        return np.isfinite(self.rho) & (self.rho > 0.0)

    def determined(self, score: str) -> BoolArray:
        """True if the answer is of the first of two categories, shape (M,).

        Usable answers are; for standard scores they need a standard error as well.
        """
        if score != "standard":
            return self.usable
        return self.usable & np.isfinite(self.error) & (self.error > 0.0)


class Coverage(NamedTuple):
    """How often the truth was inside."""

    per_arc: float
    """Share of the arcs; NaN of none."""
    per_object: float
    """Mean over the objects of the share of their arcs."""
    n_arcs: int
    n_objects: int


# ---------------------------------------------------------------------- ranks


def checked_level(level: float) -> Fraction:
    """Confidence level as the decimal number that was meant.

    In binary 0.07 * 100 is more than 7, and its ceiling 8; as a fraction it is 7.

    Raises
    ------
    ConformalError
        If it does not lie between 0 and 1.
    """
    if not 0.0 < level < 1.0:
        raise ConformalError(f"a confidence level must lie between 0 and 1, got {level}")
    return Fraction(repr(float(level)))


def rank(n: int, level: float) -> int:
    """Which of n scores in ascending order bounds an interval, from 1; more than n if none does."""
    return ceil((int(n) + 1) * checked_level(level))


def arcs_needed(level: float) -> int:
    """Least number of scores that a level can be told from."""
    exact = checked_level(level)
    return ceil(exact / (1 - exact))


def too_few(n: int, level: float, which: str = "") -> ConformalError:
    """Error of a level that n scores cannot tell."""
    needed = arcs_needed(level)
    return ConformalError(
        f"the level {level} needs {needed} calibration arcs{which}, there are {n}: ask for a "
        "lower level, or calibrate on more arcs",
        needed=needed,
        available=n,
    )


def quantile(scores: FloatArray, level: float) -> float:
    """Score that one more arc stays below with a probability of at least ``level``.

    Parameters
    ----------
    scores : ndarray, shape (n,)
    level : float
        Between 0 and 1.

    Raises
    ------
    ConformalError
        If there are too few scores for the level, or one is NaN.
    """
    scores = _checked_scores(scores)
    k = rank(len(scores), level)
    if k > len(scores):
        raise too_few(len(scores), level)
    return float(np.partition(scores, k - 1)[k - 1])


def quantiles(
    scores: FloatArray, category: IntArray, n_categories: int, levels: FloatArray
) -> tuple[IntArray, FloatArray]:
    """`quantile` of every category at every level.

    Parameters
    ----------
    scores : ndarray, shape (n,)
    category : ndarray of int, shape (n,)
        From 0 to ``n_categories - 1``.
    n_categories : int
    levels : ndarray, shape (L,)

    Returns
    -------
    counts : ndarray of int, shape (n_categories,)
        Scores of each category.
    table : ndarray, shape (n_categories, L)
        Infinite where a category has too few for the level.

    Raises
    ------
    ConformalError
        If a score is NaN.
    """
    scores = _checked_scores(scores)
    ordered = np.append(scores[np.lexsort((scores, category))], np.inf)
    counts = np.bincount(category, minlength=n_categories)
    ranks = np.array([[rank(n, level) for level in levels.tolist()] for n in counts.tolist()])
    first = (np.cumsum(counts) - counts)[:, None]
    rows = np.where(ranks <= counts[:, None], first + ranks - 1, len(scores))
    return counts, ordered[rows]


def _checked_scores(scores: FloatArray) -> FloatArray:
    scores = np.asarray(scores, dtype=np.float64)
    if wrong := int(np.isnan(scores).sum()):
        raise ConformalError(
            f"{wrong} of {len(scores)} scores are NaN: leave out arcs without an answer or truth"
        )
    return scores


# ---------------------------------------------------------------------- scores and bounds


def scores(answers: Answers, truth: FloatArray, score: str) -> FloatArray:
    """How far off answers are, shape (M,).

    Parameters
    ----------
    answers : Answers
        Of M arcs, all of them given.
    truth : ndarray, shape (M,)
        True range [au] from the same origin.
    score : {"log", "absolute", "standard"}

    Raises
    ------
    ConformalError
        If a true range is not a positive number, or an answer is missing.
    """
    _require_positive("true ranges", truth)
    _require_positive("estimated ranges", answers.rho)
    unit = _unit(answers, score)
    off = np.abs(answers.rho - truth) / unit
    return np.where(np.isnan(unit), np.abs(np.log(answers.rho / truth)), off)


def bounds(answers: Answers, half_width: FloatArray, score: str) -> FloatArray:
    """Ranges whose score is at most ``half_width``, shape (M, 2) [au]; NaN without an answer.

    Parameters
    ----------
    answers : Answers
    half_width : ndarray, shape (M,)
        In the unit of the score; infinite for everything.
    score : {"log", "absolute", "standard"}
    """
    unit = _unit(answers, score)
    rho = np.where(answers.given, answers.rho, np.nan)
    with np.errstate(over="ignore"):
        factor, reach = np.exp(half_width), half_width * unit
    logarithmic = np.isnan(unit)
    return np.stack(
        [
            np.where(logarithmic, rho / factor, np.maximum(rho - reach, 0.0)),
            np.where(logarithmic, rho * factor, rho + reach),
        ],
        axis=1,
    )


def _unit(answers: Answers, score: str) -> FloatArray:
    """Unit of differences of ranges [au], NaN where those of their logarithms count."""
    if score == "absolute":
        return np.ones(len(answers.rho))
    if score == "standard":
        return np.where(answers.determined(score), answers.error, np.nan)
    if score == "log":
        return np.full(len(answers.rho), np.nan)
    raise ConformalError(f"score must be one of {SCORES}, got {score!r}")


def _require_positive(what: str, values: FloatArray) -> None:
    wrong = int((~(np.isfinite(values) & (values > 0.0))).sum())
    if wrong:
        raise ConformalError(
            f"{wrong} of {len(values)} {what} are no positive numbers: leave those arcs out"
        )


def admissible_limits(attributables: Attributables) -> FloatArray:
    """Least and greatest admissible range, shape (M, 2) [au]; NaN where none is."""
    limits = range_intervals(attributables.energy_coefficients)
    return np.stack(
        [np.fmin.reduce(limits[..., 0], axis=1), np.fmax.reduce(limits[..., 1], axis=1)], axis=1
    )


def clipped(interval: FloatArray, limits: FloatArray) -> FloatArray:
    """Intervals without what is not admissible, never empty; shapes (M, 2).

    Where nothing would remain, or there is no finite interval, it is the whole of the limits; where
    there are no limits, the interval as it is.
    """
    low = np.fmax(interval[:, 0], limits[:, 0])
    high = np.fmin(interval[:, 1], limits[:, 1])
    something = np.isfinite(interval).all(axis=1) & (low <= high)
    return np.where(something[:, None], np.stack([low, high], axis=1), limits)


# ---------------------------------------------------------------------- categories and folds


def quantile_edges(values: FloatArray, n_bins: int) -> FloatArray:
    """Inner edges of bins of equal numbers, at most ``n_bins - 1``; none of the bins is empty.

    A value belongs to the first bin whose edge is not below it, so `bin_of` puts what lies outside
    of all values into the nearest bin.
    """
    if not len(values):
        return np.zeros(0)
    edges = np.quantile(values, np.arange(1, n_bins) / n_bins, method="inverted_cdf")
    edges = np.unique(edges)
    return edges[edges < values.max()]


def bin_of(edges: FloatArray, values: FloatArray) -> IntArray:
    """Number of the bin of each value, from 0 to ``len(edges)``."""
    return np.searchsorted(edges, values, side="left")


def folds(objects: npt.NDArray, k: int, rng: np.random.Generator) -> IntArray:
    """Divide arcs into k folds of whole objects.

    Parameters
    ----------
    objects : ndarray, shape (M,)
        Name or number of the object of each arc.
    k : int
        Number of folds, 2 or more.
    rng : `numpy.random.Generator`
        Deals the objects out.

    Returns
    -------
    ndarray of int, shape (M,)
        Fold of each arc; all folds have the same number of objects, to one.

    Raises
    ------
    ConformalError
        If there are fewer objects than folds.
    """
    names, owner = np.unique(objects, return_inverse=True)
    if not 2 <= k <= len(names):
        raise ConformalError(
            f"{k} folds of {len(names)} objects cannot be: take 2 folds or more, and no more than "
            "there are objects"
        )
    return rng.permutation(np.arange(len(names)) % k)[owner]


def coverage(inside: BoolArray, objects: npt.NDArray) -> Coverage:
    """Coverage of arcs, and of objects whatever the number of their arcs.

    Parameters
    ----------
    inside : ndarray of bool, shape (M,)
        Whether the truth of each arc lies in its interval.
    objects : ndarray, shape (M,)
        Name or number of its object.
    """
    if not len(inside):
        return Coverage(np.nan, np.nan, 0, 0)
    _, owner, counts = np.unique(objects, return_inverse=True, return_counts=True)
    shares = np.bincount(owner, weights=inside) / counts
    return Coverage(float(np.mean(inside)), float(shares.mean()), len(inside), len(counts))
