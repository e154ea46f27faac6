"""Statistics of all resamples of a bootstrap at once, by the weights of the objects drawn.

The arcs of one object share its orbit and come out well or badly together, and a few objects own
many of the arcs. So a resample draws *objects* with replacement, all arcs of an object at once. It
is not made but weighed: an object that is drawn twice counts twice, which turns means and moments
of all resamples into one matrix product, and medians into one sort and a cumulative sum for each.

Every statistic takes columns (k, n) without NaN, the objects of the n arcs as numbers below K, and
weights (B, K) of the objects in B resamples; it gives B values, NaN where none of its arcs was
drawn. The sample itself is the resample in which every object counts once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from neoranging.exceptions import EvaluationError
from neoranging.typing import FloatArray, IntArray

Statistic = Callable[[FloatArray, IntArray, IntArray], FloatArray]

_ROUNDING: Final = 1e-13
"""Variance relative to the mean square that is nothing but rounding."""


def as_it_is(objects: IntArray) -> tuple[IntArray, IntArray]:
    """Objects (n,) numbered without gaps, and the weights (1, K) of the sample itself."""
    named, unit = np.unique(objects, return_inverse=True)
    return unit, np.ones((1, len(named)), dtype=np.int64)


def resamples(
    objects: IntArray, n_boot: int, rng: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """Objects (n,) numbered without gaps, and weights (1 + B, K): the sample, then B resamples."""
    unit, once = as_it_is(objects)
    n = once.shape[1]
    if n == 0:
        return unit, np.ones((1 + n_boot, 0), dtype=np.int64)
    cells = rng.integers(n, size=(n_boot, n)) + n * np.arange(n_boot)[:, None]
    counts = np.bincount(cells.reshape(-1), minlength=n_boot * n).reshape(n_boot, n)
    return unit, np.concatenate([once, counts])


def percentiles(values: FloatArray, level: float) -> tuple[float, float]:
    """Central interval of the values that are not NaN, rounded outwards; infinities are values."""
    ordered = np.sort(values[~np.isnan(values)])
    if not len(ordered):
        return np.nan, np.nan
    tail = int(0.5 * (1.0 - level) * (len(ordered) - 1))
    return float(ordered[tail]), float(ordered[len(ordered) - 1 - tail])


def capped(objects: IntArray, cap: int, rng: np.random.Generator | int = 0) -> IntArray:
    """Indices of at most ``cap`` arcs of each object, drawn at random, in order.

    Parameters
    ----------
    objects : ndarray of int, shape (M,)
        Object of each arc.
    cap : int
    rng : Generator or int
    """
    if cap < 1:
        raise EvaluationError(f"at least one arc of an object has to count, got cap={cap}")
    shuffled = np.random.default_rng(rng).permutation(len(objects))
    order = shuffled[np.argsort(objects[shuffled], kind="stable")]
    _, first, count = np.unique(objects[order], return_index=True, return_counts=True)
    rank = np.arange(len(order)) - np.repeat(first, count)
    return np.sort(order[rank < cap])


def _means(columns: FloatArray, unit: IntArray, weights: IntArray) -> FloatArray:
    """Weighted means of columns, shape (k, B)."""
    n = weights.shape[1]
    by_object = [np.bincount(unit, column, n) for column in (*columns, np.ones(len(unit)))]
    *sums, count = np.stack(by_object) @ weights.T.astype(np.float64)
    return np.stack(sums) / np.where(count > 0.0, count, np.nan)


def mean(columns: FloatArray, unit: IntArray, weights: IntArray) -> FloatArray:
    """Mean of a column."""
    return np.asarray(_means(columns, unit, weights)[0])


def percent(columns: FloatArray, unit: IntArray, weights: IntArray) -> FloatArray:
    """Mean of a column of truth values, in percent."""
    return 100.0 * mean(columns, unit, weights)


def _moments(columns: FloatArray, unit: IntArray, weights: IntArray) -> FloatArray:
    """Variances of two columns, NaN where they are constant, and their covariance, (3, B)."""
    # about the median: near the mean of every resample, whatever the outliers in some of them
    x, y = columns - np.median(columns, axis=1, keepdims=True)
    mx, my, xx, yy, xy = _means(np.stack([x, y, x * x, y * y, x * y]), unit, weights)
    variances = (
        np.where(square - m * m > _ROUNDING * square, square - m * m, np.nan)
        for m, square in ((mx, xx), (my, yy))
    )
    return np.stack([*variances, xy - mx * my])


def correlation(columns: FloatArray, unit: IntArray, weights: IntArray) -> FloatArray:
    """Pearson's correlation of two columns; NaN where one is constant."""
    xx, yy, xy = _moments(columns, unit, weights)
    return np.clip(xy / np.sqrt(xx * yy), -1.0, 1.0)


def spread_ratio(columns: FloatArray, unit: IntArray, weights: IntArray) -> FloatArray:
    """Standard deviation of the first column over that of the second; NaN if that is constant."""
    xx, yy, _ = _moments(columns, unit, weights)
    return np.sqrt(np.nan_to_num(xx) / yy)


def median(columns: FloatArray, unit: IntArray, weights: IntArray) -> FloatArray:
    """Median of a column; the mean of the two in the middle of an even number."""
    order = np.argsort(columns[0])
    values, owner = columns[0][order], unit[order]
    medians = np.full(len(weights), np.nan)
    for k, weight in enumerate(weights):
        rank = np.cumsum(weight[owner])
        if total := int(rank[-1]):
            lower, upper = np.searchsorted(rank, [(total - 1) // 2, total // 2], side="right")
            medians[k] = 0.5 * (values[lower] + values[upper])
    return medians


def median_by_object(columns: FloatArray, unit: IntArray, weights: IntArray) -> FloatArray:
    """Median over objects of the median over the arcs of each."""
    order = np.lexsort((columns[0], unit))
    values = columns[0][order]
    objects, first, count = np.unique(unit[order], return_index=True, return_counts=True)
    middle = 0.5 * (values[first + (count - 1) // 2] + values[first + count // 2])
    return median(middle[None], objects, weights)
