"""Posteriors of ranges and range-rates: weighted nodes of a grid over the admissible region.

Sums over the nodes are sums by the midpoint rule, exact to all orders where a smooth density falls
off within the grid. What needs a density between the nodes, quantiles and regions, takes it from
`Densities`: the marginal of ln rho has its knots at the centres of the columns and at the edges
between them, where the logarithm is interpolated with the lesser curvature of both sides, so that a
step in a prior makes no overshoot.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neoranging.core import columns
from neoranging.core.densities import Densities, last_not_above, mean_exp
from neoranging.typing import BoolArray, FloatArray, IntArray

_TOUCHING = 0.25
"""Gap between cells, in widths of the narrower, up to which they are neighbours."""

_STEEPEST = 20.0, 0.5
"""Greatest fall and rise of the logarithm from the last column to the end of the grid."""

_STEEPEST_TILT = 2.0
"""Greatest change of the logarithm from the middle of a cell to its side."""

_RATE_STEPS = 512
"""Steps of the density in range-rate between the ends of what has a weight."""

_NODES_AT_ONCE = 1_000_000
"""Nodes from which the density in range-rate is made at once."""

_NEGLIGIBLE = 1e-9
"""Weight, relative to the greatest, that no figure shows."""


class Columns(NamedTuple):
    """Columns of nodes, C of them, that have a weight."""

    arc: IntArray
    """Arc that each belongs to."""
    first: IntArray
    """First node, and one beyond the last; shape (C, 2)."""
    log_rho: FloatArray
    log_width: FloatArray
    log_density: FloatArray
    """Natural logarithm of the density in ln rho, normalised over the arc."""
    rate: FloatArray
    """Mean range-rate of the nodes [au/d]."""
    slope: FloatArray
    """Its derivative by ln rho [au/d], from the columns beside."""
    joined: BoolArray
    """The next column is its neighbour; shape (C - 1,)."""


@dataclass(frozen=True, eq=False)
class Posterior:
    """Posteriors of M arcs on K nodes, flat, in order of arc, then range, then range-rate.

    The nodes of one range are a column: they share ``rho`` and ``log_width``. A node stands for a
    cell of the plane (ln rho, rho_dot), and its weight is

        exp(log_likelihood + log_prior) rho log_width rate_width.

    Attributes
    ----------
    offsets : ndarray of int, shape (M + 1,)
        Arc ``k`` owns the nodes ``offsets[k]:offsets[k + 1]``; an arc without a posterior has none.
    rho, rho_dot : ndarray, shape (K,)
        Range [au] and range-rate [au/d] by time of reception.
    log_width : ndarray, shape (K,)
        Width of the cell in the natural logarithm of the range.
    rate_width : ndarray, shape (K,)
        Width of the cell in range-rate [au/d].
    log_likelihood : ndarray, shape (K,)
        Natural logarithm of the likelihood of range and range-rate, the direction, its motion and
        the size of the errors integrated over; up to a constant of the arc.
    log_prior : ndarray, shape (K,)
        Natural logarithm of the prior density over (rho, rho_dot), up to a constant of the arc.
    """

    offsets: IntArray
    rho: FloatArray
    rho_dot: FloatArray
    log_width: FloatArray
    rate_width: FloatArray
    log_likelihood: FloatArray
    log_prior: FloatArray

    def __len__(self) -> int:
        return len(self.offsets) - 1

    # ------------------------------------------------------------------ made of others

    @classmethod
    def none(cls, m: int) -> Posterior:
        """Posterior of M arcs that have none."""
        return cls(np.zeros(m + 1, dtype=np.int64), *(np.zeros(0) for _ in range(6)))

    def take(self, index: IntArray) -> Posterior:
        """Posteriors of the arcs ``index``, in that order, repeats allowed."""
        counts = np.diff(self.offsets)[index]
        rows = columns.ragged_rows(self.offsets[:-1][index], counts)
        return self._rows(counts, rows)

    def spread(self, index: IntArray, m: int) -> Posterior:
        """These as arcs ``index`` among M of which the others have none."""
        counts = np.zeros(m, dtype=np.int64)
        counts[index] = np.diff(self.offsets)
        order = np.argsort(index, kind="stable")
        rows = columns.ragged_rows(self.offsets[:-1][order], np.diff(self.offsets)[order])
        return self._rows(counts, rows)

    @classmethod
    def join(cls, parts: Sequence[Posterior]) -> Posterior:
        """Posteriors of consecutive runs of arcs as one."""
        counts = np.concatenate([np.diff(part.offsets) for part in parts])
        return replace(columns.join(parts), offsets=np.concatenate([[0], np.cumsum(counts)]))

    def _rows(self, counts: IntArray, rows: IntArray) -> Posterior:
        nodes = (getattr(self, column.name)[rows] for column in fields(self)[1:])
        return Posterior(np.concatenate([[0], np.cumsum(counts)]), *nodes)

    def with_log_prior(self, log_prior: FloatArray) -> Posterior:
        """The same likelihood under another prior, given by its logarithm at the nodes, (K,)."""
        return replace(self, log_prior=np.asarray(log_prior, dtype=np.float64))

    # ------------------------------------------------------------------ sums over nodes

    @cached_property
    def arc(self) -> IntArray:
        """Arc that each node belongs to, shape (K,)."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    @cached_property
    def _log_weights(self) -> FloatArray:
        """Logarithm of the weights, shape (K,)."""
        with np.errstate(divide="ignore"):
            size = np.log(self.rho * self.log_width * self.rate_width)
        return self.log_likelihood + self.log_prior + size

    @cached_property
    def log_evidence(self) -> FloatArray:
        """Natural logarithm of the sum of the weights, (M,); NaN of arcs without a posterior.

        With likelihoods and priors that are normalised it is the probability density of the
        observations; between priors of one arc its differences count.
        """
        peak = self._per_arc(np.maximum, self._log_weights)
        with np.errstate(divide="ignore", invalid="ignore"):
            total = self._per_arc(np.add, np.exp(self._log_weights - peak[self.arc]))
            return peak + np.log(total)

    @cached_property
    def weights(self) -> FloatArray:
        """Probabilities of the cells, shape (K,); those of an arc add up to one.

        Zero where a prior rules all nodes of an arc out, which then has no posterior.
        """
        with np.errstate(invalid="ignore"):
            weights = np.exp(self._log_weights - self.log_evidence[self.arc])
        return np.where(self.has_any[self.arc], weights, 0.0)

    @cached_property
    def has_any(self) -> BoolArray:
        """Flags of the arcs that have a posterior, shape (M,)."""
        return np.isfinite(self.log_evidence)

    def average(self, values: npt.ArrayLike) -> FloatArray:
        """Posterior mean of values at the nodes, (K, ...) -> (M, ...).

        Of flags it is the probability of what they say.
        """
        values = np.asarray(values, dtype=np.float64)
        # nodes without weight may have values that are no numbers
        weights = self.weights.reshape(-1, *(1,) * (values.ndim - 1))
        mean = self._per_arc(np.add, np.where(weights > 0.0, weights * values, 0.0))
        mean[~self.has_any] = np.nan
        return mean

    @property
    def effective_nodes(self) -> FloatArray:
        """Number of nodes of equal weight that would be as many, shape (M,)."""
        return 1.0 / self.average(self.weights)

    @cached_property
    def mean(self) -> FloatArray:
        """Mean range [au] and range-rate [au/d], shape (M, 2)."""
        return self.average(np.stack([self.rho, self.rho_dot], axis=1))

    @cached_property
    def covariance(self) -> FloatArray:
        """Covariance of (rho, rho_dot), shape (M, 2, 2)."""
        rho, rho_dot = self.rho - self.mean[self.arc, 0], self.rho_dot - self.mean[self.arc, 1]
        both = self.average(rho * rho_dot)
        rows = (self.average(rho**2), both), (both, self.average(rho_dot**2))
        return np.moveaxis(np.array(rows), 2, 0)

    def _per_arc(self, reduce: np.ufunc, values: npt.NDArray) -> npt.NDArray:
        """Sum, maximum... of values (K, ...) over each arc, (M, ...); NaN where there is none."""
        return _reduced(reduce, values, self.arc, len(self))

    # ------------------------------------------------------------------ marginals

    @cached_property
    def columns(self) -> Columns:
        """Columns that have a weight."""
        new = np.ones(len(self.rho), dtype=bool)
        new[1:] = (np.diff(self.rho) != 0.0) | (np.diff(self.arc) != 0)
        first = np.flatnonzero(new)
        mass = np.add.reduceat(self.weights, first) if len(first) else np.zeros(0)
        bounds = np.stack([first, np.append(first[1:], len(new))[: len(first)]], axis=1)
        has = mass > 0.0
        moment = np.add.reduceat(self.weights * self.rho_dot, first) if len(first) else mass
        first, bounds, mass, rate = first[has], bounds[has], mass[has], moment[has] / mass[has]
        arc, x, width = self.arc[first], np.log(self.rho[first]), self.log_width[first]
        gap = np.diff(x) - 0.5 * (width[1:] + width[:-1])
        joined = (gap < _TOUCHING * np.minimum(width[1:], width[:-1])) & (np.diff(arc) == 0)
        # mean derivative of the pairs that a column is part of
        pair = np.where(joined, np.diff(rate) / np.where(joined, np.diff(x), 1.0), 0.0)
        pairs = np.zeros(len(x))
        slope = np.zeros(len(x))
        for side in (slice(None, -1), slice(1, None)):
            slope[side] += pair
            pairs[side] += joined
        slope /= np.maximum(pairs, 1.0)
        return Columns(arc, bounds, x, width, np.log(mass / width), rate, slope, joined)

    @cached_property
    def marginal(self) -> Densities:
        """Density in ln rho: two segments to a column, left and right of its centre."""
        c = self.columns
        if not len(c.arc):
            nothing = np.zeros(0)
            return Densities(np.zeros(len(self) + 1, dtype=np.int64), *(nothing for _ in range(4)))
        x, value, step = c.log_rho, c.log_density, np.diff(c.log_rho)
        left, right = x - 0.5 * c.log_width, x + 0.5 * c.log_width
        edge = np.clip(0.5 * (left[1:] + right[:-1]), x[:-1], x[1:])
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = np.where(c.joined, np.diff(value) / step, 0.0)
        bend = np.zeros(len(x))  # second derivative at the columns that have two neighbours
        inner = np.flatnonzero(c.joined[1:] & c.joined[:-1]) + 1
        bend[inner] = 2.0 * (slope[inner] - slope[inner - 1]) / (x[inner + 1] - x[inner - 1])
        same = bend[1:] * bend[:-1] > 0.0
        least = np.where(np.abs(bend[1:]) < np.abs(bend[:-1]), bend[1:], bend[:-1])
        at_edge = value[:-1] + slope * (edge - x[:-1])
        at_edge += np.where(same, 0.5 * least * (edge - x[:-1]) * (edge - x[1:]), 0.0)
        # beyond the last column of a run the line to its neighbour goes on
        lone = np.zeros(1, dtype=bool)
        before, after = np.concatenate([lone, c.joined]), np.concatenate([c.joined, lone])
        run_in, run_out = (np.concatenate(pair) for pair in ((slope, [0.0]), ([0.0], slope)))
        fall, rise = _STEEPEST
        half = 0.5 * c.log_width
        log_left = value + np.clip(-run_in[: len(x)] * half, -fall, rise)
        log_right = value + np.clip(run_out[: len(x)] * half, -fall, rise)
        left[before], right[after] = edge[c.joined], edge[c.joined]
        log_left[before], log_right[after] = at_edge[c.joined], at_edge[c.joined]
        counts = 2 * np.bincount(c.arc, minlength=len(self))
        return Densities(
            np.concatenate([[0], np.cumsum(counts)]),
            *(
                np.stack(pair, axis=1).ravel()
                for pair in ((left, x), (x, right), (log_left, value), (value, log_right))
            ),
        )

    @property
    def rate_marginal(self) -> Densities:
        """Density in range-rate, in level steps: the cells of all columns on top of one another.

        Each cell is two halves, between which the logarithm of the density tilts as it does
        between the nodes beside. Made anew each time: it is large.
        """
        peak = self._per_arc(np.maximum, self.weights)
        rows = np.flatnonzero(self.weights > _NEGLIGIBLE * peak[self.arc])
        column, arc = self._column_of_nodes[rows], self.arc[rows]
        rate, width = self.rho_dot[rows], self.rate_width[rows]
        value = (self.log_likelihood + self.log_prior)[rows]
        gap, step = np.diff(rows), np.diff(rate)
        beside = (gap == 1) & (np.diff(column) == 0)
        pair = np.where(beside, np.diff(value) / np.where(beside, step, 1.0), 0.0)
        zero = np.zeros(1)
        pairs = np.append(zero, beside) + np.append(beside, zero)
        tilt = (np.append(zero, pair) + np.append(pair, zero)) / np.maximum(pairs, 1.0)
        tilt = np.clip(0.5 * tilt * width, -_STEEPEST_TILT, _STEEPEST_TILT)
        # halves of an exponential hold expm1(tilt) / tilt of what a level one does
        weight = 0.5 * self.weights[rows] * np.stack([mean_exp(-tilt), mean_exp(tilt)])
        # A column that leans spreads its cells: each is laid down twice, at the two ranges in its
        # width that have the mean and the variance of all. So neighbours never overlap.
        lean = np.abs(self.columns.slope[column]) * self.log_width[rows] / np.sqrt(12.0)
        width = 0.5 * width
        least = _reduced(np.minimum, rate - width - lean, arc, len(self))
        step = (_reduced(np.maximum, rate + width + lean, arc, len(self)) - least) / _RATE_STEPS
        # The density rises where a cell begins and falls where it ends. Such a change, shared
        # between the points beside it, leaves the integral exact at every point of an even grid.
        height, total = 0.5 * weight / width, np.zeros(len(self) * (_RATE_STEPS + 2))
        changes = (-1, height[0]), (0, height[1] - height[0]), (1, -height[1])
        for side, (edge, change) in itertools.product((-1, 1), changes):
            place = (rate + edge * width + side * lean - least[arc]) / step[arc]
            point = np.clip(place.astype(np.int64), 0, _RATE_STEPS)
            share = place - point
            at = arc * (_RATE_STEPS + 2) + point
            total += np.bincount(at, change * (1.0 - share), len(total))
            total += np.bincount(at + 1, change * share, len(total))
        density = np.cumsum(total.reshape(len(self), -1), axis=1)[:, :_RATE_STEPS]
        # what rounding leaves of a sum that should vanish is no density
        row, cell = np.nonzero(density > _NEGLIGIBLE * density.max(axis=1, initial=0.0)[:, None])
        level, start = np.log(density[row, cell]), least[row] + cell * step[row]
        offsets = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(self)))])
        return Densities(offsets, start, start + step[row], level, level)

    @cached_property
    def _column_of_nodes(self) -> IntArray:
        """Column of each node that has a weight, shape (K,)."""
        column = np.searchsorted(self.columns.first[:, 0], np.arange(len(self.rho)), side="right")
        return np.maximum(column - 1, 0)

    def quantile(self, level: npt.ArrayLike) -> FloatArray:
        """Ranges [au] below which a share of the probability lies, shape (M, ...)."""
        return np.exp(self.marginal.quantile(level))

    def rate_quantile(self, level: npt.ArrayLike) -> FloatArray:
        """Range-rates [au/d] below which a share of the probability lies, shape (M, ...)."""
        level = np.asarray(level, dtype=np.float64)
        out = np.full((len(self), *level.shape), np.nan)
        # a few arcs at a time, which keeps the memory flat
        runs = np.flatnonzero(np.diff(self.offsets[:-1] // _NODES_AT_ONCE, prepend=-1))
        for start, stop in itertools.pairwise([*runs.tolist(), len(self)]):
            out[start:stop] = self.take(np.arange(start, stop)).rate_marginal.quantile(level)
        return out

    def cdf(self, rho: FloatArray) -> FloatArray:
        """Probability of a range below ``rho`` [au], shape (M, ...): of the true one, the PIT."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.marginal.cdf(np.log(rho))

    def region(self, level: float) -> tuple[IntArray, FloatArray]:
        """Ranges [au] of highest density in ln rho that hold a share of the probability.

        The density in the logarithm is the same in every unit; one in the range itself favours the
        near end. Gaps narrower than a column are closed.

        Returns
        -------
        arc : ndarray of int, shape (P,)
            Arc that each interval belongs to; of two lobes there are two.
        bounds : ndarray, shape (P, 2)
        """
        arc, bounds = self.marginal.region(level, merge=2.0)
        return arc, np.exp(bounds)

    def log_pdf(self, rho: FloatArray, rho_dot: FloatArray | None = None) -> FloatArray:
        """Natural logarithm of the density in ln rho, or in (ln rho, rho_dot), at given points.

        Parameters
        ----------
        rho, rho_dot : ndarray, shape (M, ...)
            Range [au] and range-rate [au/d]; of each arc its row.

        Returns
        -------
        ndarray, shape (M, ...)
            -inf outside the grid; NaN of arcs without a posterior.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            x = np.log(rho)
        out = self.marginal.log_pdf(x)
        if rho_dot is None:
            return out
        row = np.broadcast_to(np.arange(len(self)).reshape(-1, *(1,) * (out.ndim - 1)), out.shape)
        inside = np.isfinite(out)
        x, rate, arc = x[inside], rho_dot[inside], row[inside]
        column = self._columns_at(arc, x)
        out[inside] += self._log_conditional(column, x, rate)
        return out

    def _columns_at(self, arc: IntArray, x: FloatArray) -> IntArray:
        """Column of an arc in which a ln rho lies."""
        low, high = self.marginal.offsets[arc], self.marginal.offsets[arc + 1]
        return last_not_above(self.marginal.start, low, high, x) // 2

    def _log_conditional(self, column: IntArray, x: FloatArray, rate: FloatArray) -> FloatArray:
        """Logarithm of the density in range-rate at a ln rho; columns lean as their means do."""
        c = self.columns
        upright = rate - c.slope[column] * (x - c.log_rho[column])
        low, high = c.first[column].T
        lower_edge = self.rho_dot - 0.5 * self.rate_width
        node = last_not_above(lower_edge, low, high, upright)
        offset = upright - self.rho_dot[node]
        # the next node on the side of the point, where it touches
        other = np.clip(node + np.where(offset > 0.0, 1, -1), low, high - 1)
        step = self.rho_dot[other] - self.rho_dot[node]
        reach = 0.5 * (self.rate_width[other] + self.rate_width[node])
        beside = (other != node) & (np.abs(step) < (1.0 + _TOUCHING) * reach)
        log_density = self.log_likelihood + self.log_prior
        value, next_value = log_density[node], log_density[other]
        beside &= np.isfinite(next_value)
        with np.errstate(divide="ignore", invalid="ignore"):
            value = value + np.where(beside, (next_value - value) * offset / step, 0.0)
        # mass of a column is exp(value) rho rate_width log_width / evidence, summed over its nodes
        log_mass = c.log_density[column] + self.log_evidence[c.arc[column]] - c.log_rho[column]
        within = np.abs(offset) <= 0.5 * self.rate_width[node] * (1.0 + 1e-9)
        within &= np.isfinite(log_density[node])
        return np.where(within, value - log_mass, -np.inf)

    @cached_property
    def mode(self) -> FloatArray:
        """Range and range-rate of the highest density in (rho, rho_dot), shape (M, 2).

        The summit of parabolas through the highest node of a column and its neighbours, and
        through the highest column and its neighbours.
        """
        out = np.full((len(self), 2), np.nan)
        c = self.columns
        if not len(c.arc):
            return out
        value = np.where(self.weights > 0.0, self.log_likelihood + self.log_prior, -np.inf)
        node = _highest(value, c.first[:, 0])
        rate, height = _summit(self.rho_dot, value, node, c.first[:, 0], c.first[:, 1] - 1)
        peak = _highest(height, np.flatnonzero(np.diff(c.arc, prepend=-1)))
        arc = c.arc[peak]
        bounds = np.searchsorted(c.arc, arc), np.searchsorted(c.arc, arc, side="right") - 1
        x, _ = _summit(c.log_rho, height, peak, *bounds)
        beside = np.clip(peak + np.sign(x - c.log_rho[peak]).astype(int), *bounds)
        step = c.log_rho[beside] - c.log_rho[peak]
        share = np.divide(x - c.log_rho[peak], step, out=np.zeros_like(x), where=step != 0.0)
        out[arc] = np.stack([np.exp(x), rate[peak] + share * (rate[beside] - rate[peak])], axis=1)
        return out

    # ------------------------------------------------------------------ draws

    def draw(self, n: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Points drawn from the posteriors, not only nodes: evenly spread within their cells.

        Returns
        -------
        rho, rho_dot : ndarray, shape (M, n)
            Independent draws [au, au/d]; NaN of arcs without a posterior.
        """
        u, v, w = rng.random((3, len(self), n))
        x = self.marginal.quantile(u) if n else u
        rate = np.full(x.shape, np.nan)
        inside = np.isfinite(x)
        arc = np.nonzero(inside)[0]
        c = self.columns
        column = self._columns_at(arc, x[inside])
        low, high = c.first[column].T
        running = np.cumsum(self.weights)
        before = np.where(low > 0, running[low - 1], 0.0)
        wanted = before + v[inside] * (running[high - 1] - before)
        node = last_not_above(running - self.weights, low, high, wanted)
        jitter = (w[inside] - 0.5) * self.rate_width[node]
        lean = c.slope[column] * (x[inside] - c.log_rho[column])
        rate[inside] = self.rho_dot[node] + jitter + lean
        return np.exp(x), rate


def _reduced(reduce: np.ufunc, values: npt.NDArray, arc: IntArray, m: int) -> npt.NDArray:
    """Sum, maximum... over the rows of each of M arcs, which ascend; NaN where there is none."""
    out = np.full((m, *values.shape[1:]), np.nan)
    starts = np.flatnonzero(np.diff(arc, prepend=-1))
    if len(starts):
        out[arc[starts]] = reduce.reduceat(values, starts, axis=0)
    return out


def _highest(value: FloatArray, starts: IntArray) -> IntArray:
    """First row of the greatest value of each run; runs begin at ``starts``."""
    run = np.searchsorted(starts, np.arange(len(value)), side="right") - 1
    top = np.maximum.reduceat(value, starts)
    rows = np.flatnonzero((run >= 0) & (value == top[run]))
    return rows[np.flatnonzero(np.diff(run[rows], prepend=-1))]


def _summit(
    x: FloatArray, value: FloatArray, row: IntArray, low: IntArray, high: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Place and height of the summit of parabolas through a row and its neighbours.

    Where there are not two in ``low`` to ``high``, or none is lower, the row itself.
    """
    left, right = np.maximum(row - 1, low), np.minimum(row + 1, high)
    a, b = x[left] - x[row], x[right] - x[row]
    with np.errstate(divide="ignore", invalid="ignore"):
        down, up = (value[left] - value[row]) / a, (value[right] - value[row]) / b
        bend = (up - down) / (b - a)
        shift = -0.5 * (down - bend * a) / bend
        height = value[row] - 0.25 * (down - bend * a) ** 2 / bend
    good = np.isfinite(shift) & np.isfinite(height) & (bend < 0.0) & (shift >= a) & (shift <= b)
    return x[row] + np.where(good, shift, 0.0), np.where(good, height, value[row])
