"""Intervals that hold by counting: split conformal prediction on arcs that were held back.

A method answers arcs whose range is known and that it never saw. How far off it was, the score, is
put in order, and an interval reaches as far as the k-th smallest of n scores,

    k = ceil((n + 1) * level).

If one more arc is exchangeable with those n, its truth lies in its own interval with a probability
of at least ``level``, whatever the method and whatever its errors look like (Vovk, Gammerman &
Shafer 2005, Algorithmic Learning in a Random World, prop. 2.3; Lei et al. 2018, J. Am. Stat. Assoc.
113, 1094, theorem 2.2). Done by category, it holds within each (Mondrian, Vovk et al., sec. 4.5).

Arcs of one object are alike, and objects, not arcs, are exchangeable: whatever is divided is
divided by object, and coverage is counted both ways.

Ranges in au, range-rates in au per day, proper motions in radian per day, lengths of arcs in days.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from typing import Final, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from neoranging.core.answers import Answers
from neoranging.exceptions import ConformalError
from neoranging.typing import BoolArray, FloatArray, IntArray

SCORES: Final = ("log", "absolute", "standard", "log-standard")
"""What is counted of the range: ``|ln rho - ln truth|``; ``|rho - truth|`` [au]; that difference in
standard errors; or the logarithmic one in units of the relative standard error. The last two where
an answer is usable and has an error, and the logarithmic score elsewhere.

Of the range-rate, which may be zero, the difference is counted: in standard errors under the last
two scores, where there are some, and in au/d otherwise."""

IN_ERRORS: Final = ("standard", "log-standard")
"""Scores that look at standard errors."""

QUANTITIES: Final = ("range", "range_rate")
"""Numbers of an answer that have intervals."""


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
    """Rank, from 1, of the score that bounds an interval among n ascending ones; n + 1 for none."""
    return ceil((int(n) + 1) * checked_level(level))


def arcs_needed(level: float) -> int:
    """Least number of scores that a level can be told from."""
    exact = checked_level(level)
    return ceil(exact / (1 - exact))


def quantiles(
    scores: FloatArray, category: IntArray, n_categories: int, levels: FloatArray
) -> tuple[IntArray, FloatArray]:
    """Scores that one more arc of a category stays below, with a probability of the level or more.

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
    if wrong := int(np.isnan(scores).sum()):
        raise ConformalError(
            f"{wrong} of {len(scores)} scores are NaN: leave out arcs without an answer or truth"
        )
    ordered = np.append(scores[np.lexsort((scores, category))], np.inf)
    counts = np.bincount(category, minlength=n_categories)
    ranks = np.array([[rank(n, level) for level in levels.tolist()] for n in counts.tolist()])
    first = (np.cumsum(counts) - counts)[:, None]
    rows = np.where(ranks <= counts[:, None], first + ranks - 1, len(scores))
    return counts, ordered[rows]


# ---------------------------------------------------------------------- scores and bounds


def answered(answers: Answers) -> BoolArray:
    """Flags of answers with a range: finite and in front of the observer, shape (M,)."""
    return np.isfinite(answers.rho) & (answers.rho > 0.0)


def determined(answers: Answers, score: str) -> BoolArray:
    """Flags of answers of the first of two categories, shape (M,).

    Usable answers are; for scores in standard errors they need an error of the range as well.
    """
    return answers.usable & (score not in IN_ERRORS or _is_positive(answers.rho_error))


def _is_positive(values: FloatArray) -> BoolArray:
    return np.isfinite(values) & (values > 0.0)


def scores(answers: Answers, truth: FloatArray, score: str, of: str = "range") -> FloatArray:
    """Errors of answers as a score counts them, shape (M,).

    Parameters
    ----------
    answers : Answers
        Of M arcs, all with a range.
    truth : ndarray, shape (M,)
        True range [au] or range-rate [au/d] from the same origin.
    score : {"log", "absolute", "standard", "log-standard"}
    of : {"range", "range_rate"}
        An answer with a range and no range-rate is infinitely far off.

    Raises
    ------
    ConformalError
        If a true range is not a positive number, a true range-rate not a number, or a range is
        missing.
    """
    value, error = numbers_of(answers, of)
    columns = {"true range-rates": np.isfinite(truth)}
    if of == "range":
        columns = {"true ranges": _is_positive(truth), "estimated ranges": _is_positive(value)}
    for name, good in columns.items():
        if wrong := int((~good).sum()):
            raise ConformalError(
                f"{wrong} of {len(good)} {name} are no {'positive ' * (of == 'range')}numbers: "
                "leave those arcs out"
            )
    scale = Scale.of(value, error, determined(answers, score), score, of)
    with np.errstate(divide="ignore", invalid="ignore"):
        off = np.where(scale.is_log, np.log(value / truth), value - truth)
    return np.where(np.isnan(value), np.inf, np.abs(off) / scale.unit)


def numbers_of(answers: Answers, of: str) -> tuple[FloatArray, FloatArray]:
    """Ranges [au] or range-rates [au/d] of answers, and their standard errors, shape (M,) each."""
    if of == "range":
        return answers.rho, answers.rho_error
    if of == "range_rate":
        return answers.rho_dot, np.sqrt(answers.covariance[:, 1, 1])
    raise ConformalError(f"of must be one of {QUANTITIES}, got {of!r}")


class Scale(NamedTuple):
    """How the errors of M answers are counted."""

    unit: FloatArray
    """Shape (M,): 1, or the standard error that errors are divided by."""
    is_log: BoolArray
    """Flags of errors that are differences of logarithms, shape (M,)."""

    @classmethod
    def of(
        cls, value: FloatArray, error: FloatArray, in_errors: BoolArray, score: str, of: str
    ) -> Self:
        """Scale of a score.

        Parameters
        ----------
        value, error : ndarray, shape (M,)
            Ranges [au] or range-rates [au/d] and their standard errors.
        in_errors : ndarray of bool, shape (M,)
            Answers whose error counts, if the score looks at errors: `determined`.
        score : {"log", "absolute", "standard", "log-standard"}
        of : {"range", "range_rate"}

        Raises
        ------
        ConformalError
            If there is no such score.
        """
        if score not in SCORES:
            raise ConformalError(f"score must be one of {SCORES}, got {score!r}")
        in_errors = in_errors & (score in IN_ERRORS) & _is_positive(error)
        if of == "range_rate":  # which has a sign, and so no logarithm
            return cls(np.where(in_errors, error, 1.0), np.zeros(len(value), dtype=bool))
        if score == "log-standard":
            with np.errstate(divide="ignore", invalid="ignore"):
                return cls(np.where(in_errors, error / value, 1.0), np.ones(len(value), dtype=bool))
        return cls(np.where(in_errors, error, 1.0), ~in_errors & (score != "absolute"))

    def around(self, value: FloatArray, half_width: FloatArray, of: str) -> FloatArray:
        """Intervals around values, shape (M, 2); half widths in units of the score, shape (M,)."""
        with np.errstate(over="ignore"):
            reach = half_width * self.unit
            factor = np.exp(reach)
            ends = (value / factor, value * factor), (value - reach, value + reach)
        low, high = (np.where(self.is_log, *pair) for pair in zip(*ends, strict=True))
        # no object is behind the observer
        return np.stack([np.maximum(low, 0.0) if of == "range" else low, high], axis=1)


def bounds(answers: Answers, half_width: FloatArray, score: str, of: str = "range") -> FloatArray:
    """Values whose score is at most ``half_width``, shape (M, 2); NaN without an answer.

    Parameters
    ----------
    answers : Answers
    half_width : ndarray, shape (M,)
        In the unit of the score; infinite for everything.
    score : {"log", "absolute", "standard", "log-standard"}
    of : {"range", "range_rate"}
        Bounds in au, or in au/d.
    """
    value, error = numbers_of(answers, of)
    scale = Scale.of(value, error, determined(answers, score), score, of)
    return scale.around(np.where(answered(answers), value, np.nan), half_width, of)


def clipped(interval: FloatArray, limits: FloatArray) -> FloatArray:
    """Intervals without what is not admissible, never empty; shapes (M, 2).

    Where nothing would remain, or there is no finite interval, it is the whole of the limits; where
    there are no limits, the interval as it is.
    """
    low = np.fmax(interval[:, 0], limits[:, 0])
    high = np.fmin(interval[:, 1], limits[:, 1])
    something = np.isfinite(interval).all(axis=1) & (low <= high)
    return np.where(something[:, None], np.stack([low, high], axis=1), limits)


# ---------------------------------------------------------------------- bins


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


class NestedBins(NamedTuple):
    """Cells of the plane: B bins of a first value, each with bins of a second one of its own.

    The second value is cut within each bin of the first, so cells hold equal numbers even where the
    two go together. Cells are numbered bin by bin of the first value, from low to high.
    """

    outer: FloatArray
    """Inner edges of the bins of the first value, ascending, shape (B - 1,); see `bin_of`."""
    inner: list[FloatArray]
    """Those of the second value in each of the B bins."""

    @classmethod
    def fit(
        cls, first: FloatArray, second: FloatArray, n_bins: tuple[int, int], least: int
    ) -> Self:
        """Bins of n points, at most ``n_bins`` along each axis, with ``least`` points or more each.

        Fewer bins are made rather than smaller ones; of less points in all there is one bin.
        """

        def edges(values: FloatArray, most: int) -> FloatArray:
            return quantile_edges(values, int(np.clip(len(values) // least, 1, most)))

        outer = edges(first, n_bins[0])
        row = bin_of(outer, first)
        return cls(outer, [edges(second[row == k], n_bins[1]) for k in range(len(outer) + 1)])

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return sum(len(edges) + 1 for edges in self.inner)

    def cell_of(self, first: FloatArray, second: FloatArray) -> IntArray:
        """Number of the cell of each point, shape (n,); outside of all of them, the nearest."""
        row = bin_of(self.outer, first)
        starts = np.cumsum([0, *(len(edges) + 1 for edges in self.inner)])
        cell = np.empty(len(row), dtype=np.int64)
        for k in np.unique(row).tolist():
            rows = row == k
            cell[rows] = starts[k] + bin_of(self.inner[k], second[rows])
        return cell


# ---------------------------------------------------------------------- objects


class Coverage(NamedTuple):
    """Shares of truths inside of their intervals."""

    n_arcs: int
    n_objects: int
    per_arc: float
    """Share of the arcs; NaN of none."""
    per_object: float
    """Mean over the objects of the share of their arcs."""


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
        return Coverage(0, 0, np.nan, np.nan)
    _, owner, counts = np.unique(objects, return_inverse=True, return_counts=True)
    shares = np.bincount(owner, weights=inside) / counts
    return Coverage(len(inside), len(counts), float(np.mean(inside)), float(shares.mean()))
