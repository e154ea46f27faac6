"""Orbits by least squares through all observations of an arc, between bounds of the range.

Of a method that answers without solving equations of motion, such as a network, they tell whether
any orbit near its answer fits the observations. The six parameters are the direction and its motion
at the reference epoch, the logarithm of the range and the range-rate; the range stays between its
bounds, and the range-rate within what is bound to the Sun. The path is that of two bodies, seen
from where each observer stood, with light time, so that neither the diurnal parallax nor the strong
bend of a near object is taken for an error, as it would be by a parabola. Levenberg's and
Marquardt's rule damps the steps (Press et al. 2007, section 15.5.2).
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from neoranging.constants import C_AU_PER_DAY, GM_SUN
from neoranging.core.admissible import set_coefficients, strip
from neoranging.core.arcs import Arcs, Observations
from neoranging.core.attributable import Attributables
from neoranging.core.compiled import announced, compiled, inlined, plain
from neoranging.core.prediction import light_path, sky_offset
from neoranging.core.triples import Triple, combined3, length3, plus3, row
from neoranging.typing import FloatArray, IntArray

_MAX_STEPS: Final = 12
"""Steps at most; those that fit are done after one or two."""

_DERIVATIVE_STEP: Final = 1.0e-5
"""Step of the numerical derivatives, in units of what each parameter is measured by."""

_LEAST_DECREASE: Final = 1.0e-3
"""Relative decrease of chi-square below which a fit has come to rest."""


class NearestOrbits(NamedTuple):
    """The best orbit of each of M arcs."""

    rho: FloatArray
    """Range [au] at the reference epoch, by time of reception."""
    chi2: FloatArray
    """Sum of squared residuals of all observations in units of their errors."""


class _Frame(NamedTuple):
    """Axes of the parameters of one arc, and the state of its observer in the middle."""

    direction: Triple
    """Direction of the attributable."""
    east: Triple
    """Unit vector of increasing right ascension there."""
    north: Triple
    """Unit vector of increasing declination there."""
    rate: Triple
    """Rate of the direction [rad/d]."""
    position: Triple
    velocity: Triple
    epoch: float
    """Time of reception of the middle observation [MJD TDB]."""


class _Space(NamedTuple):
    """Room to work in: for arcs of up to n observations."""

    x: FloatArray
    """Parameters: those reached, those tried, and the unit of each, shape (3, 6)."""
    off: FloatArray
    """Residuals of those reached, of those tried, and of shifted ones, shape (3, n, 2)."""
    slope: FloatArray
    """Derivatives of the predictions by the parameters, shape (6, n, 2)."""
    normal: FloatArray
    """Normal matrix and right-hand side, and what elimination makes of both, shape (2, 6, 7)."""
    coefficients: FloatArray
    """Coefficients c0..c5 of the heliocentric energy, shape (6,)."""


def nearest_orbits(
    arcs: Arcs,
    attributables: Attributables,
    rho: FloatArray,
    rho_dot: FloatArray,
    *,
    errors: FloatArray,
    bounds: FloatArray,
    enough: FloatArray,
) -> NearestOrbits:
    """Best orbits of M arcs with their ranges between bounds.

    Parameters
    ----------
    arcs : Arcs
        M arcs of known observers.
    attributables : Attributables
        Of the same arcs: the motion to start from.
    rho, rho_dot : ndarray, shape (M,)
        Range [au] and range-rate [au/d] to start from.
    errors : ndarray, shape (n, 2)
        Standard deviations of the observations, east and north [rad].
    bounds : ndarray, shape (M, 2)
        Least and largest range [au]; positive.
    enough : ndarray, shape (M,)
        Chi-square at which an orbit fits and is improved no further.

    Returns
    -------
    NearestOrbits
        Where a start is no number, chi-square is infinite.
    """
    a = attributables
    start = np.stack([a.ra, a.dec, a.ra_rate, a.dec_rate, rho, rho_dot, *bounds.T, enough], axis=1)
    return NearestOrbits(*_fit_all(arcs.plain, arcs.direction, plain(errors), arcs.triplet, start))


@announced("the fit of orbits near an answer", 8)
@compiled
def _fit_all(
    o: Observations, direction: FloatArray, errors: FloatArray, triplet: IntArray, start: FloatArray
) -> FloatArray:
    """Range and chi-square of the best orbits of all arcs, shape (2, M)."""
    longest = 0
    for k in range(len(triplet)):
        longest = max(longest, o.offsets[k + 1] - o.offsets[k])
    space = _Space(
        np.empty((3, 6)),
        np.empty((3, longest, 2)),
        np.empty((6, longest, 2)),
        np.empty((2, 6, 7)),
        np.empty(6),
    )
    best = np.empty((2, len(triplet)))
    for k in range(len(triplet)):
        rows = o.offsets[k], o.offsets[k + 1]
        best[0, k], best[1, k] = fit_arc(o, direction, errors, rows, triplet[k, 1], start[k], space)
    return best


@compiled
def fit_arc(
    o: Observations,
    direction: FloatArray,
    errors: FloatArray,
    rows: tuple[int, int],
    middle: int,
    start: FloatArray,
    space: _Space,
) -> tuple[float, float]:
    """Range and chi-square of the best orbit of the arc of the observations in ``rows``.

    ``start`` are the attributable, range, range-rate, both bounds of the range and `enough`.
    """
    frame = _frame(o, middle, start, space)
    x, tried, unit = space.x[0], space.x[1], space.x[2]
    off, new, bounds = space.off[0], space.off[1], (math.log(start[6]), math.log(start[7]))
    span = max(o.t[rows[1] - 1] - o.t[rows[0]], 1.0e-6)
    for p in range(4):
        x[p], unit[p] = 0.0, 1.0e-2 if p < 2 else 1.0e-2 / span
    x[4], unit[4], x[5], unit[5] = math.log(start[4]), 1.0, start[5], 1.0e-2
    _keep_within(x, bounds, space.coefficients)
    chi2 = _miss(o, direction, errors, rows, frame, x, off)
    damping, is_better = 1.0e-3, True
    for _ in range(_MAX_STEPS):
        if not (chi2 > start[8] and math.isfinite(chi2)):
            break
        if is_better:
            _set_normal(o, direction, errors, rows, frame, bounds, space)
        _step(damping, space)
        _keep_within(tried, bounds, space.coefficients)
        new_chi2 = _miss(o, direction, errors, rows, frame, tried, new)
        is_better = new_chi2 < chi2
        rests = damping > 1e6
        if is_better:
            rests = rests or chi2 - new_chi2 < _LEAST_DECREASE * chi2
            chi2 = new_chi2
            for p in range(6):
                x[p] = tried[p]
            for i in range(rows[1] - rows[0]):
                off[i, 0], off[i, 1] = new[i, 0], new[i, 1]
        if rests:
            break
        damping *= 0.1 if is_better else 10.0
    return math.exp(x[4]), chi2


@inlined
def _frame(o: Observations, middle: int, start: FloatArray, space: _Space) -> _Frame:
    """Frame of the attributable at the ``start``, whose energy it puts into ``space``."""
    ra, dec, ra_rate, dec_rate = start[0], start[1], start[2], start[3]
    sin_ra, cos_ra, sin_dec, cos_dec = math.sin(ra), math.cos(ra), math.sin(dec), math.cos(dec)
    east, north = (-sin_ra, cos_ra, 0.0), (-sin_dec * cos_ra, -sin_dec * sin_ra, cos_dec)
    rate = combined3(ra_rate * cos_dec, east, dec_rate, north)
    position, velocity = row(o.position, middle), row(o.velocity, middle)
    set_coefficients(ra, dec, ra_rate, dec_rate, position, velocity, space.coefficients)
    direction = cos_dec * cos_ra, cos_dec * sin_ra, sin_dec
    return _Frame(direction, east, north, rate, position, velocity, o.t[middle])


@compiled
def _keep_within(x: FloatArray, bounds: tuple[float, float], coefficients: FloatArray) -> None:
    """Move parameters to the nearest bound where they lie beyond one."""
    x[4] = np.minimum(np.maximum(x[4], bounds[0]), bounds[1])
    low, high = strip(coefficients, math.exp(x[4]), GM_SUN)
    if math.isfinite(low):
        x[5] = np.minimum(np.maximum(x[5], low), high)


@compiled
def _miss(
    o: Observations,
    direction: FloatArray,
    errors: FloatArray,
    rows: tuple[int, int],
    frame: _Frame,
    x: FloatArray,
    off: FloatArray,
) -> float:
    """Sum of squares of the residuals in units of their errors, which go to ``off``."""
    sight = plus3(frame.direction, 1.0, combined3(x[0], frame.east, x[1], frame.north))
    sight = plus3((0.0, 0.0, 0.0), 1.0 / length3(sight), sight)
    rate = plus3(frame.rate, 1.0, combined3(x[2], frame.east, x[3], frame.north))
    rho, rho_dot = math.exp(x[4]), x[5]
    r = plus3(frame.position, rho, sight)
    apparent = plus3(frame.velocity, 1.0, combined3(rho_dot, sight, rho, rate))
    v = plus3((0.0, 0.0, 0.0), 1.0 / (1.0 - rho_dot / C_AU_PER_DAY), apparent)
    epoch, chi2 = frame.epoch - rho / C_AU_PER_DAY, 0.0
    for i in range(rows[0], rows[1]):
        path, _ = light_path(r, v, o.t[i] - epoch, row(o.position, i), GM_SUN)
        east, north = sky_offset(row(direction, i), path)
        east, north = east / errors[i, 0], north / errors[i, 1]
        off[i - rows[0], 0], off[i - rows[0], 1] = east, north
        chi2 += east * east + north * north
    return chi2 if math.isfinite(chi2) else np.inf


@inlined
def _set_normal(
    o: Observations,
    direction: FloatArray,
    errors: FloatArray,
    rows: tuple[int, int],
    frame: _Frame,
    bounds: tuple[float, float],
    space: _Space,
) -> None:
    """Normal matrix of the parameters reached; one pushed against its bound is held there."""
    x, shifted, unit = space.x[0], space.x[1], space.x[2]
    off, moved, n = space.off[0], space.off[2], rows[1] - rows[0]
    for p in range(6):
        for q in range(6):
            shifted[q] = x[q]
        shifted[p] += _DERIVATIVE_STEP * unit[p]
        _miss(o, direction, errors, rows, frame, shifted, moved)
        for i in range(n):
            for axis in range(2):
                space.slope[p, i, axis] = (off[i, axis] - moved[i, axis]) / _DERIVATIVE_STEP
    normal = space.normal[0]
    for p in range(6):
        for q in range(7):
            other = space.slope[q] if q < 6 else off
            normal[p, q] = 0.0
            for i in range(n):
                normal[p, q] += space.slope[p, i, 0] * other[i, 0]
                normal[p, q] += space.slope[p, i, 1] * other[i, 1]
    low, high = strip(space.coefficients, math.exp(x[4]), GM_SUN)
    for p, least, most in ((4, bounds[0], bounds[1]), (5, low, high)):
        pull = normal[p, 6]
        if (x[p] <= least and pull < 0.0) or (x[p] >= most and pull > 0.0):
            for q in range(6):
                normal[p, q] = normal[q, p] = 0.0
            normal[p, 6] = 0.0


@inlined
def _step(damping: float, space: _Space) -> None:
    """Put what a damped step leads to into the parameters to be tried."""
    x, tried, unit, normal = space.x[0], space.x[1], space.x[2], space.normal[1]
    largest = 0.0
    for p in range(6):
        for q in range(7):
            normal[p, q] = space.normal[0, p, q]
        largest = np.maximum(largest, normal[p, p])
    for p in range(6):
        # a parameter that is held, or that nothing depends on, is left where it is
        is_held = normal[p, p] == 0.0
        normal[p, p] += damping * normal[p, p] + 1e-12 * largest + 1e-300
        if is_held:
            normal[p, p], normal[p, 6] = 1.0, 0.0
    # Gauss's elimination, rows exchanged for the largest pivot
    for p in range(6):
        pivot = p
        for q in range(p + 1, 6):
            if abs(normal[q, p]) > abs(normal[pivot, p]):
                pivot = q
        for j in range(p, 7):
            normal[p, j], normal[pivot, j] = normal[pivot, j], normal[p, j]
        for q in range(p + 1, 6):
            share = normal[q, p] / normal[p, p]
            for j in range(p, 7):
                normal[q, j] -= share * normal[p, j]
    for p in range(5, -1, -1):
        for q in range(p + 1, 6):
            normal[p, 6] -= normal[p, q] * normal[q, 6]
        normal[p, 6] /= normal[p, p]
        tried[p] = x[p] + normal[p, 6] * unit[p]
