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

Ranges in au, proper motions in radian per day, lengths of arcs in days.
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

SCORES: Final = ("log", "absolute", "standard")
"""What is counted: ``|ln rho - ln truth|``; ``|rho - truth|`` [au]; or that difference in standard
errors where an answer is usable and has one, and the logarithmic score elsewhere."""


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

    Usable answers are; for standard scores they need a standard error as well.
    """
    if score != "standard":
        return answers.usable
    error = answers.rho_error
    return answers.usable & np.isfinite(error) & (error > 0.0)


def scores(answers: Answers, truth: FloatArray, score: str) -> FloatArray:
    """Errors of answers as a score counts them, shape (M,).

    Parameters
    ----------
    answers : Answers
        Of M arcs, all with a range.
    truth : ndarray, shape (M,)
        True range [au] from the same origin.
    score : {"log", "absolute", "standard"}

    Raises
    ------
    ConformalError
        If a true range is not a positive number, or an answer is missing.
    """
    for name, values in (("true ranges", truth), ("estimated ranges", answers.rho)):
        wrong = int((~(np.isfinite(values) & (values > 0.0))).sum())
        if wrong:
            raise ConformalError(
                f"{wrong} of {len(values)} {name} are no positive numbers: leave those arcs out"
            )
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
    rho = np.where(answered(answers), answers.rho, np.nan)
    return interval_around(rho, half_width, _unit(answers, score))


def interval_around(rho: FloatArray, half_width: FloatArray, unit: FloatArray) -> FloatArray:
    """Intervals around ranges, shape (M, 2) [au]; a unit of NaN is that of logarithms, (M,)."""
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
        return np.ones(len(answers))
    if score == "standard":
        return np.where(determined(answers, score), answers.rho_error, np.nan)
    if score == "log":
        return np.full(len(answers), np.nan)
    raise ConformalError(f"score must be one of {SCORES}, got {score!r}")


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
        cell, start = np.empty(len(row), dtype=np.int64), 0
        for k, edges in enumerate(self.inner):
            rows = row == k
            cell[rows] = start + bin_of(edges, second[rows])
            start += len(edges) + 1
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
