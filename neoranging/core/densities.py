"""Probability densities of one variable, one for each arc: exponentials from knot to knot.

A density that is known at knots is taken as linear in its logarithm between them: it stays positive
where it falls by powers of ten from one knot to the next, and every integral has a closed form.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from neoranging.typing import BoolArray, FloatArray, IntArray

STEEPEST = 20.0, 0.5
"""Greatest fall and rise of the logarithm from the last point of a run to the end of its cell."""

LEVEL_RISE = 1e-9
"""Rise of the logarithm along a segment up to which the density counts as constant."""

_STEPS = 48
"""Bisections of a threshold, whose logarithm lies within some hundreds: to rounding."""


@dataclass(frozen=True, eq=False)
class Densities:
    """Densities of M arcs on S segments, flat, ascending within each arc; gaps are allowed.

    They are normalised by their own integral. An arc without segments has none: NaN is returned.

    Attributes
    ----------
    offsets : ndarray of int, shape (M + 1,)
        Arc ``k`` owns the segments ``offsets[k]:offsets[k + 1]``.
    start, stop : ndarray, shape (S,)
        Ends of the segments.
    log_start, log_stop : ndarray, shape (S,)
        Natural logarithm of the density at the ends, up to a constant of the arc.
    """

    offsets: IntArray
    start: FloatArray
    stop: FloatArray
    log_start: FloatArray
    log_stop: FloatArray

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @cached_property
    def has_any(self) -> BoolArray:
        """Flags of the arcs that have a density, shape (M,)."""
        return np.diff(self.offsets) > 0

    @cached_property
    def arc(self) -> IntArray:
        """Arc that each segment belongs to, shape (S,)."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    @cached_property
    def _below(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Logarithm of the integral (M,), probability in and below each segment (S,)."""
        peak = self.per_arc(np.maximum, np.maximum(self.log_start, self.log_stop))
        height = np.exp(self.log_start - peak[self.arc])
        part = (self.stop - self.start) * height * mean_exp(self.log_stop - self.log_start)
        total = self.per_arc(np.add, part)
        part = part / total[self.arc]
        below = np.empty(len(part))
        # one by one: a sum over all arcs would round that of each by those before it
        for first, last in itertools.pairwise(self.offsets.tolist()):
            np.cumsum(part[first:last], out=below[first:last])
        below -= part
        return peak + np.log(total), part, below

    def per_arc(self, reduce: np.ufunc, values: npt.NDArray) -> npt.NDArray:
        """Sum, maximum... of values of the segments over each arc, (M,); NaN where it has none."""
        out = np.full(len(self), np.nan)
        if len(values):
            out[self.has_any] = reduce.reduceat(values, self.offsets[:-1][self.has_any])
        return out

    def quantile(self, level: npt.ArrayLike) -> FloatArray:
        """Values below which a share of the probability lies.

        Parameters
        ----------
        level : array_like, shape (...) or (M, ...)
            Between 0 and 1. The same for all arcs, or if its first axis is as long as there are
            arcs and it has another, those of each.

        Returns
        -------
        ndarray, shape (M, ...)
        """
        level = np.asarray(level, dtype=np.float64)
        if level.ndim < 2 or len(level) != len(self):
            level = np.broadcast_to(level, (len(self), *level.shape))
        return self._of_rows(self.quantile_of, level)

    def cdf(self, x: FloatArray) -> FloatArray:
        """Probability below ``x``, shape (M, ...), of each arc its row."""
        return self._of_rows(self.cdf_of, x)

    def log_pdf(self, x: FloatArray) -> FloatArray:
        """Natural logarithm of the density at ``x``, shape (M, ...); -inf outside."""
        return self._of_rows(self.log_pdf_of, x)

    def quantile_of(self, arc: IntArray, level: FloatArray) -> FloatArray:
        """Quantiles of the densities ``arc``, (Q,), at a level of each, (Q,)."""
        _, part, below = self._below
        at = last_not_above(below, self.offsets[arc], self.offsets[arc + 1], level)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(part[at] > 0.0, (level - below[at]) / part[at], 0.0)
            share = np.clip(share, 0.0, 1.0)
            rise = (self.log_stop - self.log_start)[at]
            curved = np.log1p(share * np.expm1(rise)) / rise
        along = np.where(np.abs(rise) > LEVEL_RISE, np.clip(curved, 0.0, 1.0), share)
        return self.start[at] + along * (self.stop - self.start)[at]

    def cdf_of(self, arc: IntArray, x: FloatArray) -> FloatArray:
        """Probability below ``x``, (Q,), of the densities ``arc``, (Q,)."""
        _, part, below = self._below
        at = last_not_above(self.start, self.offsets[arc], self.offsets[arc + 1], x)
        along = np.clip((x - self.start[at]) / (self.stop - self.start)[at], 0.0, 1.0)
        rise = (self.log_stop - self.log_start)[at]
        return below[at] + part[at] * along * mean_exp(along * rise) / mean_exp(rise)

    def log_pdf_of(self, arc: IntArray, x: FloatArray) -> FloatArray:
        """Logarithm of the densities ``arc``, (Q,), at ``x``, (Q,)."""
        at = last_not_above(self.start, self.offsets[arc], self.offsets[arc + 1], x)
        along = (x - self.start[at]) / (self.stop - self.start)[at]
        value = self.log_start[at] + along * (self.log_stop - self.log_start)[at]
        inside = (along >= 0.0) & (along <= 1.0)
        return np.where(inside, value - self._below[0][arc], -np.inf)

    def _of_rows(
        self, function: Callable[[IntArray, FloatArray], FloatArray], x: npt.ArrayLike
    ) -> FloatArray:
        """A function of arcs and numbers, of each arc its row; NaN where either is missing."""
        x = np.asarray(x, dtype=np.float64)
        out = np.full(x.shape, np.nan)
        arc = np.broadcast_to(np.arange(len(self)).reshape(-1, *(1,) * (x.ndim - 1)), x.shape)
        asked = ~np.isnan(x) & self.has_any[arc]
        out[asked] = function(arc[asked], x[asked])
        return out

    def halved(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Halves of the segments as level steps of the same mass: start, stop, probability.

        Returns
        -------
        start, stop, probability : ndarray, shape (2, S)
        """
        middle = 0.5 * (self.start + self.stop)
        part = self._below[1]
        rise = self.log_stop - self.log_start
        first = part * 0.5 * mean_exp(0.5 * rise) / mean_exp(rise)
        return (
            np.stack([self.start, middle]),
            np.stack([middle, self.stop]),
            np.stack([first, part - first]),
        )

    # ------------------------------------------------------------------ regions

    def threshold(self, level: float) -> FloatArray:
        """Logarithm of the density above which a share of the probability lies, shape (M,)."""
        ends = np.stack([self.log_start, self.log_stop]) - self._below[0][self.arc]
        high = self.per_arc(np.maximum, ends.max(axis=0))
        low = self.per_arc(np.minimum, ends.min(axis=0))
        for _ in range(_STEPS):
            middle = 0.5 * (high + low)
            enough = self.above(middle) >= level
            low, high = np.where(enough, middle, low), np.where(enough, high, middle)
        return low - 1e-9  # of equal densities none is lost to rounding

    def above(self, log_density: FloatArray) -> FloatArray:
        """Probability of densities of at least ``exp(log_density)``, (M,) to (M,)."""
        ends = np.stack([self.log_start, self.log_stop]) - self._below[0][self.arc]
        top, bottom, wanted = ends.max(axis=0), ends.min(axis=0), log_density[self.arc]
        fall = np.maximum(top - np.maximum(bottom, wanted), 0.0)
        slope = np.maximum(top - bottom, 1e-300)
        # of a level segment all or nothing lies above
        share = np.where(top - bottom > 1e-12, fall / slope, top >= wanted)
        width = self.stop - self.start
        return self.per_arc(np.add, width * share * np.exp(top) * mean_exp(-fall))

    def region(self, level: float, merge: float = 0.0) -> tuple[IntArray, FloatArray]:
        """Intervals where the density is highest and which hold a share of the probability.

        Parameters
        ----------
        level : float
            Share, between 0 and 1.
        merge : float
            Gaps that are shorter than so many of the segments beside them are closed.

        Returns
        -------
        arc : ndarray of int, shape (P,)
            Arc of each interval, ascending.
        bounds : ndarray, shape (P, 2)
        """
        threshold = (self.threshold(level) + self._below[0])[self.arc]
        rows = np.flatnonzero(np.maximum(self.log_start, self.log_stop) >= threshold)
        start, stop = self.start[rows], self.stop[rows]
        first, last = self.log_start[rows], self.log_stop[rows]
        with np.errstate(divide="ignore", invalid="ignore"):
            crossing = start + (threshold[rows] - first) / (last - first) * (stop - start)
        if not len(rows):
            return rows, np.zeros((0, 2))
        left = np.where(first < threshold[rows], crossing, start)
        right = np.where(last < threshold[rows], crossing, stop)
        arc = self.arc[rows]
        length = stop - start
        near = 1e-6 + merge
        apart = left[1:] - right[:-1] > near * np.maximum(length[1:], length[:-1])
        new = np.concatenate([[True], apart | (arc[1:] != arc[:-1])])
        begins = np.flatnonzero(new)
        ends = np.append(begins[1:], len(rows)) - 1
        return arc[begins], np.stack([left[begins], right[ends]], axis=1)


def through_points(
    owner: IntArray, m: int, x: FloatArray, width: FloatArray, value: FloatArray, joined: BoolArray
) -> Densities:
    """Densities of M owners through the logarithms of their values at points.

    Between neighbours there is a knot more, where the logarithm is interpolated with the lesser
    curvature of both sides: exact of a normal law, and without overshoot at a step.

    Parameters
    ----------
    owner : ndarray of int, shape (P,)
        Ascending, and the points within each owner too.
    m : int
        Number of owners.
    x, width : ndarray, shape (P,)
        Points, and widths of the cells that they stand for: where a point has no neighbour the
        density goes half a width on.
    value : ndarray, shape (P,)
        Logarithm of the density; finite.
    joined : ndarray of bool, shape (P - 1,)
        The next point is a neighbour.
    """
    if not len(x):
        return Densities(np.zeros(m + 1, dtype=np.int64), *(np.zeros(0) for _ in range(4)))
    left, right = x - 0.5 * width, x + 0.5 * width
    edge = np.clip(0.5 * (left[1:] + right[:-1]), x[:-1], x[1:])
    step = np.where(joined, np.diff(x), 1.0)
    slope = np.where(joined, np.diff(value) / step, 0.0)
    bend = np.zeros(len(x))  # second derivative at points that have two neighbours
    inner = np.flatnonzero(joined[1:] & joined[:-1]) + 1
    bend[inner] = 2.0 * (slope[inner] - slope[inner - 1]) / (x[inner + 1] - x[inner - 1])
    least = np.where(np.abs(bend[1:]) < np.abs(bend[:-1]), bend[1:], bend[:-1])
    least = np.where(bend[1:] * bend[:-1] > 0.0, least, 0.0)
    at_edge = value[:-1] + (edge - x[:-1]) * (slope + 0.5 * least * (edge - x[1:]))
    # beyond the last point of a run the line to its neighbour goes on
    end, (fall, rise) = np.zeros(1), STEEPEST
    log_left = value - np.clip(0.5 * width * np.append(slope, end), -rise, fall)
    log_right = value + np.clip(0.5 * width * np.append(end, slope), -fall, rise)
    before, after = np.append(False, joined), np.append(joined, False)
    left[before], right[after] = edge[joined], edge[joined]
    log_left[before], log_right[after] = at_edge[joined], at_edge[joined]
    pairs = (left, x), (x, right), (log_left, value), (value, log_right)
    offsets = np.concatenate([[0], np.cumsum(2 * np.bincount(owner, minlength=m))])
    return Densities(offsets, *(np.stack(pair, axis=1).ravel() for pair in pairs))


def last_not_above(
    ascending: FloatArray, low: IntArray, high: IntArray, wanted: FloatArray
) -> IntArray:
    """Last rows in ``low:high`` of which a column is not above ``wanted``; ``low`` if all are.

    Bisection of many slices at once, each ascending in itself; all arguments but the first share
    one shape.
    """
    low, high = low.copy(), high.copy()
    while (high - low > 1).any():
        middle = (low + high) // 2
        right = ascending[np.minimum(middle, len(ascending) - 1)] <= wanted
        open_ = high - low > 1
        low = np.where(open_ & right, middle, low)
        high = np.where(open_ & ~right, middle, high)
    return low


def mean_exp(rise: FloatArray) -> FloatArray:
    """Mean of ``exp`` from 0 to ``rise``: ``expm1(rise) / rise``."""
    small = np.abs(rise) < LEVEL_RISE
    return np.where(small, 1.0, np.expm1(rise) / np.where(small, 1.0, rise))
