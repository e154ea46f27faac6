"""Posteriors of ranges and range-rates: weighted nodes of a grid over the admissible region.

Sums over the nodes are sums by the midpoint rule, exact to all orders where a smooth density falls
off within the grid. What needs a density between the nodes, quantiles and regions, takes it from
`Densities`: the marginal of ln rho through the masses of the columns, and that of the range-rate at
each of them through its nodes. Between columns it moves along with their mean range-rates, so that
a ridge that is narrower than the columns are far apart stays one.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neoranging.core import columns
from neoranging.core.densities import Densities, last_not_above, through_points
from neoranging.typing import BoolArray, FloatArray, IntArray

RANGE_POWERS = {"uniform": 0.0, "log-uniform": -1.0}
"""Powers of the range that priors over (rho, rho_dot) go with, by their names."""

REACH = 1.0 - 1e-6
"""Sum of the widths of two cells, relative to the distance of their nodes, of which they touch."""

_RATE_STEPS = 512
"""Steps of the density in range-rate between the ends of what has a weight."""

_NODES_AT_ONCE = 100_000
"""Nodes from which the density in range-rate is made at once."""

_NEGLIGIBLE = 1e-6
"""Weight, relative to the greatest, that shows in no quantile of the range-rate."""


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

    def under_power(self, power: float) -> Posterior:
        """The same likelihood under a prior that goes with a power of the range."""
        return self.with_log_prior(power * np.log(self.rho))

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
        # a column reaches half way to its neighbours, wherever it stands between them
        joined = (np.diff(x) < REACH * (width[1:] + width[:-1])) & (np.diff(arc) == 0)
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
        return through_points(c.arc, len(self), c.log_rho, c.log_width, c.log_density, c.joined)

    @property
    def conditional(self) -> Densities:
        """Densities in range-rate at the centres of the columns, two segments to a node.

        Made anew each time, as it is twice as large as the posterior itself.
        """
        rows = np.flatnonzero(self.weights > 0.0)
        column = self._column_of_nodes[rows]
        rate, width = self.rho_dot[rows], self.rate_width[rows]
        value = (self.log_likelihood + self.log_prior)[rows]
        joined = (np.diff(rate) < REACH * (width[1:] + width[:-1])) & (np.diff(column) == 0)
        return through_points(column, len(self.columns.arc), rate, width, value, joined)

    @property
    def rate_marginal(self) -> Densities:
        """Density in range-rate, in even steps: the conditional ones of all columns together.

        A column that leans spreads its density: it is laid down twice, at the two ranges in its
        width that have the mean and the variance of all.
        """
        c, conditional = self.columns, self.conditional
        start, stop, share = conditional.halved()
        weight = share * np.exp(c.log_density + np.log(c.log_width))[conditional.arc]
        lean = (np.abs(c.slope) * c.log_width / np.sqrt(12.0))[conditional.arc]
        # segments are in order of arc, and so are those that count
        arc, whole = c.arc[conditional.arc], weight.sum(axis=0)
        peak = _reduced(np.maximum, whole, arc, len(self))
        counts = np.flatnonzero(whole > _NEGLIGIBLE * peak[arc])
        start, stop, weight = (x[:, counts] for x in (start, stop, weight))
        arc, lean = arc[counts], lean[counts]
        least = _reduced(np.minimum, start[0] - lean, arc, len(self))
        most = _reduced(np.maximum, stop[1] + lean, arc, len(self))
        step = (most - least) / _RATE_STEPS
        # The density rises where a piece begins and falls where it ends. Such a change, shared
        # between the points beside it, leaves the integral exact at every point of an even grid.
        height, total = weight / (stop - start), np.zeros(len(self) * (_RATE_STEPS + 2))
        for side, (edge, sign) in itertools.product((-1, 1), ((start, 1.0), (stop, -1.0))):
            place = (edge + side * lean - least[arc]) / step[arc]
            point = np.clip(place.astype(np.int64), 0, _RATE_STEPS)
            share = place - point
            change, at = sign * height, (arc * (_RATE_STEPS + 2) + point).ravel()
            total += np.bincount(at, (change * (1.0 - share)).ravel(), len(total))
            total += np.bincount(at + 1, (change * share).ravel(), len(total))
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
        for start, stop, part in self._runs():
            out[start:stop] = part.rate_marginal.quantile(level)
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
        x, rate, c = x[inside], rho_dot[inside], self.columns
        column = self._columns_at(row[inside], x)
        # columns lean as their means do
        upright = rate - c.slope[column] * (x - c.log_rho[column])
        out[inside] += self.conditional.log_pdf_of(column, upright)
        return out

    def _columns_at(self, arc: IntArray, x: FloatArray) -> IntArray:
        """Column of an arc in which a ln rho lies."""
        low, high = self.marginal.offsets[arc], self.marginal.offsets[arc + 1]
        return last_not_above(self.marginal.start, low, high, x) // 2

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
        u, v = rng.random((2, len(self), n))
        rho, rate = np.full(u.shape, np.nan), np.full(u.shape, np.nan)
        for start, stop, part in self._runs():
            c, has = part.columns, part.has_any
            x = part.marginal.quantile(u[start:stop]) if n else u[start:stop]
            column = part._columns_at(np.repeat(np.flatnonzero(has), n), x[has].ravel())
            upright = part.conditional.quantile_of(column, v[start:stop][has].ravel())
            lean = c.slope[column] * (x[has].ravel() - c.log_rho[column])
            rho[start:stop] = np.exp(x)
            rate[start:stop][has] = (upright + lean).reshape(int(has.sum()), n)
        return rho, rate

    def _runs(self) -> Iterator[tuple[int, int, Posterior]]:
        """Consecutive runs of arcs: what needs more than their nodes keeps the memory flat."""
        begins = np.flatnonzero(np.diff(self.offsets[:-1] // _NODES_AT_ONCE, prepend=-1))
        for start, stop in itertools.pairwise([*begins.tolist(), len(self)]):
            yield start, stop, self.take(np.arange(start, stop))


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
