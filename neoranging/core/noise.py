r"""The law of the errors of one night: smaller than they claim, and those of one visit alike.

The sigmas that stations claim serve the fit of orbits over years, where the errors of a catalogue
and of a clock count. Within a visit, that is one station in one night, directions scatter by a
fraction of them that differs from visit to visit, about an offset which they share. The figures are
our own measurements of real arcs, made with ``docs/tools/noise_profile.py``.

How large the errors of one arc are, its own scatter says, and the law where it cannot. The scale s
of a visit is lognormal before it is seen; f squared residuals of sum Q about the path, in units of
the claims, turn that into

.. math::  p(s \mid Q, f) \propto p(s)\, s^{-f} e^{-Q / 2 s^2} .

With three observations f is zero and the law alone decides. An error is then normal with a scale
that is itself uncertain: a mixture with longer tails than a normal law has. It is kept as the
scales at some levels of their distribution, `Scales.levels`, and its quantiles are found from them.
In an arc of several visits the scales are taken to be large or small together, which makes the
tails of a sum of their errors no shorter than they are.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from neoranging.constants import ARCSEC
from neoranging.core.arcs import Arcs, Observations
from neoranging.core.attributable import PathFit, TangentFit, path_fit, tangent_fit
from neoranging.core.compiled import announced, compiled, formula, inlined, plain
from neoranging.typing import FloatArray, IntArray

SHARE_OF_CLAIM: Final = 0.25
"""Scatter of the observations of a visit, as a fraction of the standard deviation that services
assign to them: the median of real arcs of magnitude 20 and fainter."""

SHARE_SPREAD: Final = 0.85
"""Scatter of the natural logarithm of the share `SHARE_OF_CLAIM` from visit to visit."""

LARGEST_SHARE: Final = 1.5
"""Largest share; with more a tracklet would not have been reported, or would have been removed."""

LARGEST_EXCESS: Final = 3.2
"""Ratio to `LARGEST_SHARE` up to which a larger scatter is believed."""

OFFSET: Final = 0.25
"""Standard deviation of the offset of a visit, in units of the claimed sigma: the median. Offsets
differ from visit to visit as scatters do."""

DRIFT_D: Final = 0.25
"""Time in which the offset of a visit becomes another [d]: over hours the object is seen through
other air."""

DRIFT_RAD: Final = math.radians(1.0)
"""Way of an object in which the offset becomes another: it is seen against other stars."""

LEAST_CLAIM_RAD: Final = 0.08 * ARCSEC
"""Error that is added to every claim: a smaller one leaves out the catalogue, the atmosphere and
the last digit of the record."""

TIMING_D: Final = 0.8e-5
"""Standard deviation of the times within a visit [d], which displaces an object along its track.
Records of 80 columns alone round to 1e-5 d, which is 0.3e-5 of it."""

VISIT_TIMING_D: Final = 1.0e-5
"""Standard deviation of the clock of a visit [d], common to its observations."""

INDEPENDENT: Final = 4.0
"""Observations of a visit up to which errors average out; a mean of more is no better than of so
many (Veres et al. 2017, Icarus 296, 139, weight them alike)."""

LEAST_USUAL_SHARE: Final = 0.35
"""Share by which an arc has to bend beyond its claims for its orbits to be looked for."""

_EDGES: Final = np.array([0.0, 0.15, 0.4, 0.6, 0.75, 0.86, 0.93, 0.97, 0.99, 0.998, 1.0])
LEVEL_WEIGHTS: Final = np.diff(_EDGES)
"""Probabilities of the scales that a mixture is kept as, in order of size; shape (10,)."""

# beyond the middle of each: the mean square of the scales is larger than that of their middle
_LEVELS: Final = 0.7 * _EDGES[1:] + 0.3 * _EDGES[:-1]
N_LEVELS: Final = len(_LEVELS)


class ErrorLaw(NamedTuple):
    """Errors of the n observations of M arcs.

    Scatter and errors of time are of each observation. The offset is shared by those of a visit and
    drifts within hours.
    """

    scatter: FloatArray
    """Root mean square scatter east and north [rad], shape (n, 2)."""
    timing: FloatArray
    """Displacement by the errors of time, east and north [rad], shape (n, 2)."""
    offset: FloatArray
    """Root mean square offset of visits, east and north [rad], shape (n, 2)."""
    drift: FloatArray
    """Time in which an offset becomes another [d], shape (M,)."""
    visit: IntArray
    """Number of the visit among all of all arcs, shape (n,)."""
    scales: FloatArray
    """Scatter at each level of its scale relative to its root mean square, shape (M, 10)."""


def quantile(scales: FloatArray, probability: float) -> FloatArray:
    """Absolute error exceeded with a probability by mixtures of normal laws.

    Parameters
    ----------
    scales : ndarray, shape (M, 10)
        Standard deviations of the normal laws, which have the weights `LEVEL_WEIGHTS`.
    probability : float
        Between 0 and 1, of both tails together.

    Returns
    -------
    ndarray, shape (M,)
    """
    return _quantiles(plain(scales), probability, tail_of_one(probability))


@cache
def tail_of_one(probability: float) -> FloatArray:
    """Starts of `quantile_of`, shape (11,): in standard errors, the least that may be.

    Of each law by itself, which may not exceed it more often, and of one of the whole weight.
    """
    alone = ndtri(1.0 - 0.5 * np.minimum(probability / LEVEL_WEIGHTS, 1.0))
    return np.append(alone, -ndtri(0.5 * probability))


@compiled
def _quantiles(scales: FloatArray, probability: float, starts: FloatArray) -> FloatArray:
    """`quantile` of all mixtures."""
    found = np.empty(len(scales))
    for k in range(len(scales)):
        found[k] = quantile_of(scales[k], probability, starts)
    return found


@compiled
def quantile_of(scales: FloatArray, probability: float, starts: FloatArray) -> float:
    """`quantile` of one mixture, its scales in order of size; ``starts`` are by `tail_of_one`."""
    # every scale in its place is at least as large as the least: a start for one law of weight 1
    least = starts[N_LEVELS] * scales[0]
    for level in range(N_LEVELS):
        least = np.maximum(least, scales[level] * starts[level])
    square = least * least
    # as a function of the squared error the logarithm of the tail is convex: Newton's method
    # approaches from below and cannot overshoot
    for _ in range(_NEWTON_STEPS):
        tail, slope = 0.0, 0.0
        for level in range(N_LEVELS):
            precision = 0.5 / (scales[level] * scales[level])
            argument = precision * square
            root = math.sqrt(argument)
            tail += math.erfc(root) * LEVEL_WEIGHTS[level]
            slope += math.exp(-argument) * precision / root * LEVEL_WEIGHTS[level]
        step = math.log(tail / probability) * tail / slope * math.sqrt(math.pi)
        square += step
        if step <= _LAST_STEP * square:
            break
    return math.sqrt(square)


_NEWTON_STEPS: Final = 5

_LAST_STEP: Final = 1.0e-9
"""Relative step after which, as it converges quadratically, none changes a digit."""


@compiled
def mix(
    scatter: float,
    offset: float,
    timing: float,
    scales: FloatArray,
    squares: FloatArray,
    mixture: FloatArray,
) -> None:
    """Standard errors of one number at each level relative to the root mean square of all, (10,).

    Parameters
    ----------
    scatter, offset, timing : float
        Variance of the number by the scatter, by offsets and by all other errors.
    scales : ndarray, shape (10,)
        Those of the arc, `ErrorLaw.scales`.
    squares : ndarray, shape (10,)
        Those of offsets, `squares_of_offsets`.
    mixture : ndarray, shape (10,)
        Takes the standard errors.
    """
    total = scatter + offset + timing
    scatter, offset, timing = scatter / total, offset / total, timing / total
    # an error that no number is has the scales of the scatter
    scatter = scatter if math.isfinite(scatter) else 1.0
    offset = offset if math.isfinite(offset) else 0.0
    timing = timing if math.isfinite(timing) else 0.0
    for level in range(N_LEVELS):
        square = scatter * scales[level] * scales[level] + offset * squares[level] + timing
        mixture[level] = math.sqrt(square)


@compiled
def _mean_square(scales: FloatArray) -> float:
    total = 0.0
    for level in range(N_LEVELS):
        total += scales[level] * scales[level] * LEVEL_WEIGHTS[level]
    return total


@formula
def _claim(sigma: Any) -> Any:
    """Variance that an observation claims [rad^2]."""
    return sigma * sigma + LEAST_CLAIM_RAD**2


@formula
def largest_variance(sigma: Any, rate: Any) -> Any:
    """Variance of the largest error that the law has of one coordinate [rad^2]; see `largest`.

    By the claimed standard deviation and the rate of the coordinate.
    """
    share = LARGEST_SHARE**2 + OFFSET**2
    return share * _claim(sigma) + (TIMING_D * rate) ** 2


@inlined
def rate_at(fit: TangentFit, k: int, axis: int, t: float) -> float:
    """Rate of a plane coordinate of arc k at an epoch [rad/d]."""
    return fit.sky[k, axis, 1] + (t - fit.epoch[k]) * fit.sky[k, axis, 2]


def largest(arcs: Arcs) -> FloatArray:
    """Standard deviations of the largest errors that the law has, east and north, shape (n, 2).

    In units of the claims: what observations that are no blunders may miss an orbit by.
    """
    return _largest(arcs.plain, tangent_fit(arcs))


@compiled
def _largest(o: Observations, fit: TangentFit) -> FloatArray:
    """`largest` of all arcs."""
    found = np.empty((len(o.t), 2))
    for k in range(len(fit.epoch)):
        for i in range(o.offsets[k], o.offsets[k + 1]):
            for axis, sigma in enumerate((o.sigma_ra[i], o.sigma_dec[i])):
                rate = rate_at(fit, k, axis, o.t[i])
                found[i, axis] = math.sqrt(largest_variance(sigma, rate))
    return found


def error_law(arcs: Arcs, rest: FloatArray | None = None) -> ErrorLaw:
    """Errors of observations, by their scatter about a path.

    Parameters
    ----------
    arcs : Arcs
        M arcs of three epochs or more.
    rest : ndarray, shape (n, 2), optional
        Residuals about an orbit, east and north [rad], beyond what a parabola through them takes;
        where they are no numbers, and by default, those about the parabola of the arc count.
    """
    if rest is None:
        rest = np.full((len(arcs.t), 2), np.nan)
    columns = arcs.plain, plain(arcs.visit_number, np.int64), tangent_fit(arcs), path_fit(arcs)
    return _laws(*columns, plain(rest), _table(), usual_scales())


@announced("the law of the errors", 3)
@compiled
def _laws(
    o: Observations,
    visit: IntArray,
    fit: TangentFit,
    path: PathFit,
    rest: FloatArray,
    table: FloatArray,
    usual: FloatArray,
) -> ErrorLaw:
    """`error_law` of all arcs."""
    m, n = len(fit.epoch), len(o.t)
    vectors = np.empty((n, 2)), np.empty((n, 2)), np.empty((n, 2))
    law = ErrorLaw(*vectors, np.empty(m), visit, np.empty((m, N_LEVELS)))
    scale, of_offset = np.empty(N_LEVELS), (OFFSET / SHARE_OF_CLAIM) ** 2 * _mean_square(usual)
    for k in range(m):
        begin, end = o.offsets[k], o.offsets[k + 1]
        speed = math.hypot(fit.sky[k, 0, 1], fit.sky[k, 1, 1])
        law.drift[k] = 1.0 / math.hypot(1.0 / DRIFT_D, speed / DRIFT_RAD)
        for level in range(N_LEVELS):
            law.scales[k, level] = 0.0
        weight, is_one = 0.0, True
        for i in range(begin, end):
            if _is_first(visit, begin, i):
                is_one = is_one and i == begin
                share = _set_visit(o, k, i, fit, path, rest, table, of_offset, law, scale)
                weight += share * _mean_square(scale)
                for level in range(N_LEVELS):
                    law.scales[k, level] += share * scale[level] * scale[level]
        if is_one:
            mean = _mean_square(scale)
            for level in range(N_LEVELS):
                law.scales[k, level] = scale[level] / math.sqrt(mean)
        else:
            for level in range(N_LEVELS):
                law.scales[k, level] = math.sqrt(law.scales[k, level] / weight)
    return law


@inlined
def _is_first(visit: IntArray, begin: int, i: int) -> bool:
    """Flag of the first observation of its visit in an arc that begins at a row."""
    other = i - 1
    while other >= begin and visit[other] != visit[i]:
        other -= 1
    return other < begin


@inlined
def _set_visit(
    o: Observations,
    k: int,
    first: int,
    fit: TangentFit,
    path: PathFit,
    rest: FloatArray,
    table: FloatArray,
    of_offset: float,
    law: ErrorLaw,
    scale: FloatArray,
) -> float:
    """Sum of the variances claimed in the visit that begins at a row, and into the law its errors.

    ``scale`` takes the levels of its scale; ``of_offset`` is the mean square of offsets in units
    of the claims.
    """
    begin, end, visit = o.offsets[k], o.offsets[k + 1], law.visit
    size, east, north = 0, 0.0, 0.0
    for i in range(first, end):
        if visit[i] == visit[first]:
            size += 1
            east += rest[i, 0] if math.isfinite(rest[i, 0]) else path.rest[i, 0]
            north += rest[i, 1] if math.isfinite(rest[i, 1]) else path.rest[i, 1]
    # to one visit a wrong clock is a wrong epoch, to several a displacement of each
    is_one = size == end - begin
    east, north = (0.0, 0.0) if is_one else (east / size, north / size)
    clock = TIMING_D if is_one else math.hypot(TIMING_D, VISIT_TIMING_D)
    square, freedom, total, is_about_orbit = 0.0, 0.0, 0.0, False
    for i in range(first, end):
        if visit[i] == visit[first]:
            x = rest[i, 0] if math.isfinite(rest[i, 0]) else path.rest[i, 0]
            y = rest[i, 1] if math.isfinite(rest[i, 1]) else path.rest[i, 1]
            is_about_orbit = is_about_orbit or math.isfinite(rest[i, 0])
            rate = rate_at(fit, k, 0, o.t[i]), rate_at(fit, k, 1, o.t[i])
            claim = _claim(o.sigma_ra[i]), _claim(o.sigma_dec[i])
            one, telling = _about_the_path(x - east, y - north, rate, claim)
            half = path.operator[i, 0] + path.basis[i, 1] * path.operator[i, 1]
            independence = 1.0 - half - path.basis[i, 2] * path.operator[i, 2]
            square += one
            freedom += max(independence, 0.0) * (1.0 + telling)
            total += claim[0] + claim[1]
            for axis in range(2):
                law.timing[i, axis] = clock * rate[axis]
                law.offset[i, axis] = math.sqrt(claim[axis] * of_offset)
                law.scatter[i, axis] = math.sqrt(claim[axis])
    if not freedom > 1.0e-6:
        freedom = 0.0
    if not is_one:
        freedom *= 1.0 - 1.0 / size
    set_scale(freedom, square, table, scale)
    # a visit that scatters more about an orbit than the law has it is taken at its word
    excess = math.sqrt(square / (freedom + 1.0)) / LARGEST_SHARE
    # more is a blunder, of which no law of errors tells
    if is_about_orbit and 1.0 < excess < LARGEST_EXCESS:
        for level in range(N_LEVELS):
            scale[level] *= excess
    mean = math.sqrt(_mean_square(scale))
    for i in range(first, end):
        if visit[i] == visit[first]:
            law.scatter[i, 0] *= mean
            law.scatter[i, 1] *= mean
    return total


@inlined
def _about_the_path(
    x: float, y: float, rate: tuple[float, float], claim: tuple[float, float]
) -> tuple[float, float]:
    """Squared residual in units of the claims, and how much its part along the track tells.

    Errors of time stand along the track, where residuals tell so much less of the scatter.
    """
    speed2 = rate[0] * rate[0] + rate[1] * rate[1]
    along, along_claim = 0.0, claim[0]
    if speed2 > 0.0:
        along = (x * rate[0] + y * rate[1]) ** 2 / speed2
        along_claim = (claim[0] * rate[0] * rate[0] + claim[1] * rate[1] * rate[1]) / speed2
    across, across_claim = x * x + y * y - along, claim[0] + claim[1] - along_claim
    with_timing = along_claim + speed2 * (TIMING_D / SHARE_OF_CLAIM) ** 2
    telling = along_claim / with_timing
    return across / across_claim + telling * along / with_timing, telling


_LOG_FREEDOM: Final = np.linspace(0.0, np.log1p(400.0), 16)
_LOG_SCATTER: Final = np.linspace(np.log(0.01), np.log(4.0), 32)


@cache
def _table() -> FloatArray:
    """Logarithm of the scale by degrees of freedom, scatter and level, shape (16, 32, 10)."""
    log_s = np.linspace(np.log(0.01), np.log(LARGEST_SHARE), 200)
    edges = np.append(0.5 * (log_s[1:] + log_s[:-1]), np.inf)
    below = ndtr((edges - np.log(SHARE_OF_CLAIM)) / SHARE_SPREAD)
    freedom = np.expm1(_LOG_FREEDOM)[:, None, None]
    square = freedom * np.exp(2.0 * _LOG_SCATTER)[:, None]
    log_p = np.log(np.diff(below, prepend=0.0)) - freedom * log_s
    log_p = log_p - 0.5 * square * np.exp(-2.0 * log_s)
    p = np.exp(log_p - log_p.max(axis=2, keepdims=True))
    # in the middle of its cell each scale has half of its own probability below
    cdf = (np.cumsum(p, axis=2) - 0.5 * p) / p.sum(axis=2, keepdims=True)
    return np.apply_along_axis(lambda column: np.interp(_LEVELS, column, log_s), 2, cdf)


@cache
def usual_scales() -> FloatArray:
    """Scales of a visit that nothing is seen of, at their levels, shape (10,)."""
    return np.exp(_table()[0, 0])


@cache
def squares_of_offsets() -> FloatArray:
    """Squares of the scales of offsets, which nothing is seen of, relative to their mean, (10,)."""
    usual = usual_scales() ** 2
    return usual / (usual @ LEVEL_WEIGHTS)


@compiled
def set_scale(freedom: float, square: float, table: FloatArray, scale: FloatArray) -> None:
    """Scale of a visit at the levels of its distribution, written to ``scale`` (10,).

    Parameters
    ----------
    freedom, square : float
        Degrees of freedom of its residuals, and the sum of their squares in units of the claims.
    table : ndarray
        Of the law.
    """
    scatter = 0.5 * math.log(square / freedom) if freedom > 0.0 else 0.0
    i, down = _cell(math.log1p(freedom), _LOG_FREEDOM)
    j, right = _cell(scatter, _LOG_SCATTER)
    for level in range(N_LEVELS):
        low = table[i, j, level] + right * (table[i, j + 1, level] - table[i, j, level])
        high = table[i + 1, j, level]
        high += right * (table[i + 1, j + 1, level] - table[i + 1, j, level])
        scale[level] = math.exp(low + down * (high - low))


@compiled
def _cell(value: float, grid: FloatArray) -> tuple[int, float]:
    """Cell of an even grid that a value lies in, and the share of the cell before it."""
    if math.isnan(value):
        value = 0.0
    last = len(grid) - 1
    at = (min(max(value, grid[0]), grid[last]) - grid[0]) / (grid[1] - grid[0])
    cell = min(int(at), last - 1)
    return cell, at - cell
