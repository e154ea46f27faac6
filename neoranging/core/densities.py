"""Probability densities of one variable, one for each arc: exponentials from knot to knot.

A density that is known at knots is taken as linear in its logarithm between them: it stays positive
where it falls by powers of ten from one knot to the next, and every integral has a closed form.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from neoranging.typing import BoolArray, FloatArray, IntArray

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
        _, part, below = self._below
        out = np.full(level.shape, np.nan)
        at, wanted = self._segments_at(below, level)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.clip((wanted - below[at]) / part[at], 0.0, 1.0)
            share = np.where(part[at] > 0.0, share, 0.0)
            rise = (self.log_stop - self.log_start)[at]
            curved = np.log1p(share * np.expm1(rise)) / rise
        # where all but nothing of a segment is below, 1 + share expm1(rise) loses its digits
        along = np.where(np.abs(rise) > 1e-9, np.clip(curved, 0.0, 1.0), share)
        out[self.has_any] = self.start[at] + along * (self.stop - self.start)[at]
        return out

    def cdf(self, x: FloatArray) -> FloatArray:
        """Probability below ``x``, shape (M, ...), of each arc its row."""
        _, part, below = self._below
        out = np.full(np.shape(x), np.nan)
        at, wanted = self._segments_at(self.start, x)
        along = np.clip((wanted - self.start[at]) / (self.stop - self.start)[at], 0.0, 1.0)
        rise = (self.log_stop - self.log_start)[at]
        out[self.has_any] = below[at] + part[at] * along * mean_exp(along * rise) / mean_exp(rise)
        out[np.isnan(x)] = np.nan
        return out

    def log_pdf(self, x: FloatArray) -> FloatArray:
        """Natural logarithm of the density at ``x``, shape (M, ...); -inf outside."""
        out = np.full(np.shape(x), np.nan)
        at, wanted = self._segments_at(self.start, x)
        along = (wanted - self.start[at]) / (self.stop - self.start)[at]
        value = self.log_start[at] + along * (self.log_stop - self.log_start)[at]
        value -= self._below[0][self.arc[at]]
        inside = (along >= 0.0) & (along <= 1.0)
        out[self.has_any] = np.where(inside, value, -np.inf)
        out[np.isnan(x)] = np.nan
        return out

    def _segments_at(
        self, ascending: FloatArray, wanted: FloatArray
    ) -> tuple[IntArray, FloatArray]:
        """Last segments of which a column is not above ``wanted``, the first if all are.

        Returns
        -------
        at : ndarray of int, shape (arcs that have a density, ...)
        wanted : ndarray, the same shape
            What was asked for of these arcs.
        """
        wanted = np.asarray(wanted, dtype=np.float64)[self.has_any]
        shape = (-1, *(1,) * (wanted.ndim - 1))
        low = np.broadcast_to(self.offsets[:-1][self.has_any].reshape(shape), wanted.shape)
        high = np.broadcast_to(self.offsets[1:][self.has_any].reshape(shape), wanted.shape)
        return last_not_above(ascending, low, high, wanted), wanted

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
    small = np.abs(rise) < 1e-9
    return np.where(small, 1.0, np.expm1(rise) / np.where(small, 1.0, rise))
