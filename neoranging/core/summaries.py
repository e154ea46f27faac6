"""Quantiles and moments of many posteriors in one go: compiled.

What an estimate and its status need of each posterior, under the prior asked for and under others.
`neoranging.core.posterior` and `neoranging.core.densities` have the same quantities array by array,
and everything else.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from neoranging.core.compiled import announced, compiled, inner
from neoranging.core.densities import LEVEL_RISE, STEEPEST
from neoranging.core.posterior import REACH, Posterior
from neoranging.typing import FloatArray

_FALL: Final = STEEPEST[0]
_RISE: Final = STEEPEST[1]


class Summaries(NamedTuple):
    """Figures of M posteriors; NaN where there is none."""

    quantiles: FloatArray
    """Logarithms of ranges [au], shape (M, priors, levels); the first prior is that asked for."""
    rate: FloatArray
    """Mean range-rate [au/d] in the column next to the median, shape (M,)."""
    covariance: FloatArray
    """Covariance of (rho, rho_dot), shape (M, 2, 2)."""


class _Work(NamedTuple):
    """Columns of one posterior, and the segments of its density in ln rho."""

    rest: FloatArray
    """Logarithms of the weights of the nodes without prior."""
    mass: FloatArray
    moment: FloatArray
    """Mass times mean range-rate."""
    x: FloatArray
    width: FloatArray
    log_density: FloatArray
    slope: FloatArray
    """Slope of the logarithm from a column to the next, NaN where that is no neighbour."""
    start: FloatArray
    stop: FloatArray
    log_start: FloatArray
    log_stop: FloatArray
    below: FloatArray
    """Probability below each segment, and the whole."""


@inner
def _gather(
    rows: tuple[FloatArray, ...], first: int, last: int, power: float, weight: FloatArray, w: _Work
) -> int:
    """Weights of the nodes of an arc and masses of its columns; the number of those that have any.

    ``power`` of the range makes the prior; NaN stands for that of the nodes.
    """
    rho, rho_dot, log_width, rate_width, log_likelihood, log_prior = rows
    highest, log_rho = -np.inf, 0.0
    for k in range(first, last):
        if k == first or rho[k] != rho[k - 1]:
            log_rho = math.log(rho[k])
        if math.isnan(power):  # the first prior: the rest of the weight is the same of all
            w.rest[k - first] = log_likelihood[k] + math.log(rho[k] * log_width[k] * rate_width[k])
        value = w.rest[k - first] + (log_prior[k] if math.isnan(power) else power * log_rho)
        weight[k - first] = value
        highest = max(highest, value)
    if not abs(highest) < np.inf:
        return 0
    total = 0.0
    for k in range(last - first):
        weight[k] = math.exp(weight[k] - highest)
        total += weight[k]
    n, k = 0, first
    while k < last:
        begin = k
        w.mass[n] = w.moment[n] = 0.0
        while k < last and rho[k] == rho[begin]:
            weight[k - first] /= total
            w.mass[n] += weight[k - first]
            w.moment[n] += weight[k - first] * rho_dot[k]
            k += 1
        if w.mass[n] > 0.0:
            w.x[n], w.width[n] = math.log(rho[begin]), log_width[begin]
            w.log_density[n] = math.log(w.mass[n] / w.width[n])
            n += 1
    return n


@inner
def _least_bend(w: _Work, k: int, n: int) -> float:
    """Second derivative between the columns k and k + 1: the lesser of both sides, or none."""
    bends = (0.0, 0.0)
    if k > 0 and k + 2 < n:
        bends = (
            2.0 * (w.slope[k] - w.slope[k - 1]) / (w.x[k + 1] - w.x[k - 1]),
            2.0 * (w.slope[k + 1] - w.slope[k]) / (w.x[k + 2] - w.x[k]),
        )
    # NaN, where a neighbour is missing, is no product above zero
    if not bends[0] * bends[1] > 0.0:
        return 0.0
    return bends[1] if abs(bends[1]) < abs(bends[0]) else bends[0]


@inner
def _lay_segments(w: _Work, n: int) -> None:
    """Density in ln rho, two segments to a column; see `neoranging.core.densities.through_points`.

    Their integral stands in ``below`` then.
    """
    x, width, value = w.x, w.width, w.log_density
    for k in range(n):
        near = k + 1 < n and x[k + 1] - x[k] < REACH * (width[k + 1] + width[k])
        w.slope[k] = (value[k + 1] - value[k]) / (x[k + 1] - x[k]) if near else np.nan
    for k in range(n):
        w.start[2 * k + 1] = w.stop[2 * k] = x[k]
        w.log_start[2 * k + 1] = w.log_stop[2 * k] = value[k]
        if k == 0 or math.isnan(w.slope[k - 1]):
            slope = 0.0 if math.isnan(w.slope[k]) else w.slope[k]
            w.start[2 * k] = x[k] - 0.5 * width[k]
            w.log_start[2 * k] = value[k] - min(max(0.5 * width[k] * slope, -_RISE), _FALL)
        slope = w.slope[k]
        if math.isnan(slope):
            slope = 0.0 if k == 0 or math.isnan(w.slope[k - 1]) else w.slope[k - 1]
            w.stop[2 * k + 1] = x[k] + 0.5 * width[k]
            w.log_stop[2 * k + 1] = value[k] + min(max(0.5 * width[k] * slope, -_FALL), _RISE)
        else:
            edge = 0.5 * (x[k] + 0.5 * width[k] + x[k + 1] - 0.5 * width[k + 1])
            edge = min(max(edge, x[k]), x[k + 1])
            bend = 0.5 * _least_bend(w, k, n) * (edge - x[k + 1])
            w.stop[2 * k + 1] = w.start[2 * k + 2] = edge
            at_edge = value[k] + (edge - x[k]) * (slope + bend)
            w.log_stop[2 * k + 1] = w.log_start[2 * k + 2] = at_edge
    total, w.below[0] = 0.0, 0.0
    for k in range(2 * n):
        rise = w.log_stop[k] - w.log_start[k]
        mean = 1.0 if abs(rise) < LEVEL_RISE else math.expm1(rise) / rise
        total += (w.stop[k] - w.start[k]) * math.exp(w.log_start[k]) * mean
        w.below[k + 1] = total


@inner
def _quantile(w: _Work, n: int, level: float) -> float:
    """Logarithm of the range below which a share of the probability lies."""
    wanted, k = level * w.below[2 * n], 0
    while k < 2 * n - 1 and w.below[k + 1] <= wanted:
        k += 1
    part = w.below[k + 1] - w.below[k]
    share = min(max((wanted - w.below[k]) / part, 0.0), 1.0) if part > 0.0 else 0.0
    rise = w.log_stop[k] - w.log_start[k]
    if abs(rise) > LEVEL_RISE:
        share = min(max(math.log1p(share * math.expm1(rise)) / rise, 0.0), 1.0)
    return w.start[k] + share * (w.stop[k] - w.start[k])


@inner
def _mean_rate(w: _Work, n: int, at: float) -> float:
    """Mean range-rate of the column next to a range: the strip of bound rates is convex there."""
    nearest = np.inf
    for k in range(n):
        nearest = min(nearest, abs(w.x[k] - at))
    mass, moment = 0.0, 0.0
    for k in range(n):
        if abs(w.x[k] - at) <= nearest * (1.0 + 1e-9):
            mass += w.mass[k]
            moment += w.moment[k]
    return moment / mass


@inner
def _covary(
    rows: tuple[FloatArray, ...], first: int, last: int, weight: FloatArray, covariance: FloatArray
) -> None:
    """Covariance of ranges and range-rates."""
    for i in range(2):
        for j in range(i + 1):
            mean_i, mean_j, product = 0.0, 0.0, 0.0
            for k in range(first, last):
                mean_i += weight[k - first] * rows[i][k]
                mean_j += weight[k - first] * rows[j][k]
            for k in range(first, last):
                product += weight[k - first] * (rows[i][k] - mean_i) * (rows[j][k] - mean_j)
            covariance[i, j] = covariance[j, i] = product


@announced("the quantiles of posteriors", 10)
@compiled
def _summarise(
    offsets: npt.NDArray[np.int64],
    rows: tuple[FloatArray, ...],
    powers: FloatArray,
    levels: FloatArray,
    median: int,
    longest: int,
    out: Summaries,
) -> None:
    weight, wide, twice = np.empty(longest), longest + 1, 2 * longest + 1
    w = _Work(
        np.empty(longest),
        np.empty(wide),
        np.empty(wide),
        np.empty(wide),
        np.empty(wide),
        np.empty(wide),
        np.empty(wide),
        np.empty(twice),
        np.empty(twice),
        np.empty(twice),
        np.empty(twice),
        np.empty(twice),
    )
    for arc in range(len(offsets) - 1):
        first, last = offsets[arc], offsets[arc + 1]
        for which in range(len(powers)):
            n = _gather(rows, first, last, powers[which], weight, w)
            if n == 0:
                continue
            _lay_segments(w, n)
            for j in range(len(levels)):
                out.quantiles[arc, which, j] = _quantile(w, n, levels[j])
            if which == 0:
                out.rate[arc] = _mean_rate(w, n, out.quantiles[arc, 0, median])
                _covary(rows, first, last, weight, out.covariance[arc])


def summarise(posterior: Posterior, powers: list[float], levels: list[float]) -> Summaries:
    """Figures of posteriors, and quantiles under other priors.

    Parameters
    ----------
    posterior : Posterior
        Of M arcs.
    powers : list of float
        Powers of the range that the other priors go with.
    levels : list of float
        Of the quantiles; 0.5 is among them.
    """
    m, n = len(posterior), 1 + len(powers)
    shapes = (m, n, len(levels)), (m,), (m, 2, 2)
    out = Summaries(*(np.full(shape, np.nan) for shape in shapes))
    p = posterior
    rows = p.rho, p.rho_dot, p.log_width, p.rate_width, p.log_likelihood, p.log_prior
    longest = int(np.diff(p.offsets).max(initial=0))
    _summarise(
        p.offsets,
        rows,
        np.array([np.nan, *powers]),
        np.array(levels),
        levels.index(0.5),
        longest,
        out,
    )
    return out
