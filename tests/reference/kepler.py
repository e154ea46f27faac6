"""Two-body motion in numpy: what the compiled functions of one orbit have to reproduce.

See `neoranging.core.kepler` for the formulae. Short arcs converge in one step from a series; the
others are worked on together until the last has settled.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from neoranging.constants import GM_SUN
from neoranging.core.geometry import dot
from neoranging.typing import FloatArray

_CHUNK = 4096
"""Orbits worked on at once: some twenty float64 temporaries then fit one core's L2 cache."""

_MAX_ITERATIONS = 60
"""Far above what the safeguarded iteration needs; it only promises an end."""

_SHORT_STEP = 1e-6
"""A cubically convergent step this small, relative to s, leaves an error below rounding."""

_SHORT_REACH = 0.3
"""Relative change of the distance over an arc up to which its series is a start worth trusting."""

_C2_SERIES = tuple((-1.0) ** k / math.factorial(2 * k + 2) for k in range(10))
_C3_SERIES = tuple((-1.0) ** k / math.factorial(2 * k + 3) for k in range(10))


def _horner(coefficients: tuple[float, ...], z: FloatArray) -> FloatArray:
    value = np.full_like(z, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        value *= z
        value += coefficient
    return value


def stumpff(z: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Stumpff functions c2 and c3 of any real argument.

    Parameters
    ----------
    z : array_like
        ``beta s^2``: positive on ellipses, zero on parabolas, negative on hyperbolas.

    Returns
    -------
    c2, c3 : ndarray
        ``(1 - cos sqrt z) / z`` and ``(sqrt z - sin sqrt z) / sqrt(z)^3``; ``c1 = 1 - z c3`` and
        ``c0 = 1 - z c2`` follow.
    """
    z = np.asarray(z, dtype=np.float64)
    size = np.abs(z)
    largest = np.fmax.reduce(size, axis=None, initial=0.0)
    n_terms = 4 if largest < 1e-3 else 10
    c2, c3 = _horner(_C2_SERIES[:n_terms], z), _horner(_C3_SERIES[:n_terms], z)
    if largest > 1.0:
        for far, sine in ((z > 1.0, np.sin), (z < -1.0, np.sinh)):
            sign = 1.0 if sine is np.sin else -1.0
            x = np.sqrt(size[far])
            # The squared sine of the half angle keeps 1 - cos from cancelling.
            c2[far] = 2.0 * np.square(sine(0.5 * x) / x)
            c3[far] = sign * (x - sine(x)) / (x * x * x)
    return c2, c3


def _g_functions(s: FloatArray, beta: FloatArray) -> tuple[FloatArray, ...]:
    """G0, G1, G2, G3 at the universal anomaly s."""
    s2 = s * s
    z = beta * s2
    c2, c3 = stumpff(z)
    return 1.0 - z * c2, s * (1.0 - z * c3), s2 * c2, s2 * s * c3


def _laguerre_step(
    s: FloatArray, r0: FloatArray, eta: FloatArray, beta: FloatArray, dt: FloatArray, mu: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Residual of Kepler's equation at s [d], its rounding level, and Laguerre's correction."""
    g0, g1, g2, g3 = _g_functions(s, beta)
    terms = r0 * g1, eta * g2, mu * g3
    residual = terms[0] + terms[1] + terms[2] - dt
    rounding = np.abs(terms[0]) + np.abs(terms[1]) + np.abs(terms[2]) + np.abs(dt)
    slope = r0 * g0 + eta * g1 + mu * g2
    bend = eta * g0 + (mu - beta * r0) * g1
    root = np.sqrt(np.abs(16.0 * slope * slope - 20.0 * residual * bend))
    return residual, np.finfo(float).eps * rounding, -5.0 * residual / (slope + root)


def _bracket(beta: FloatArray, dt: FloatArray, mu: float) -> FloatArray:
    """Bound on the size of s on any orbit, given that ellipses go no further than half a turn.

    The largest s in a given time is that of an arc centred on perihelion, of which each half takes
    at least ``mu G3``; ``c3 >= 1 / pi^2`` on half an ellipse and ``1 / 6`` beyond. On a hyperbola
    ``sinh y - y <= m`` moreover gives the logarithmic bound that keeps sinh from overflowing.
    """
    bound = 2.0 * np.cbrt(0.5 * np.pi**2 * np.abs(dt) / mu)
    root = np.sqrt(np.maximum(-beta, 0.0))
    m = np.abs(dt) * root**3 / (2.0 * mu)
    log_bound = 2.0 * np.arcsinh(m + np.cbrt(6.0 * m)) / root
    return 1.000001 * np.fmin(bound, log_bound)


def _solve_any(
    r0: FloatArray, eta: FloatArray, beta: FloatArray, dt: FloatArray, mu: float
) -> tuple[FloatArray, FloatArray]:
    """Universal anomaly by bracketed Laguerre iteration, and dt less whole revolutions."""
    period = 2.0 * np.pi * mu / np.where(beta > 0.0, beta, 0.0) ** 1.5
    dt = dt - np.where(np.isfinite(period), period * np.round(dt / period), 0.0)
    bound = _bracket(beta, dt, mu)
    low, high = np.minimum(0.0, np.copysign(bound, dt)), np.maximum(0.0, np.copysign(bound, dt))
    s = np.clip(dt / r0, low, high)
    active = np.arange(s.size)
    for _ in range(_MAX_ITERATIONS):
        residual, rounding, step = _laguerre_step(
            s[active], r0[active], eta[active], beta[active], dt[active], mu
        )
        here = s[active]
        low[active] = np.where(residual < 0.0, here, low[active])
        high[active] = np.where(residual > 0.0, here, high[active])
        there = here + step
        inside = (there >= low[active]) & (there <= high[active])
        there = np.where(inside, there, 0.5 * (low[active] + high[active]))
        s[active] = there
        settled = (np.abs(there - here) <= 1e-10 * np.abs(there)) | (np.abs(residual) <= rounding)
        active = active[~settled]
        if active.size == 0:
            break
    return s, dt


def _solve(
    r0: FloatArray, eta: FloatArray, beta: FloatArray, dt: FloatArray, mu: float
) -> tuple[FloatArray, FloatArray]:
    """Universal anomaly of one chunk: a series and one step if the arc is short."""
    u = dt / r0
    a, b, c = u * eta / r0, u * u * (mu / r0 - beta), u * u * mu / r0
    s = u * (1.0 - 0.5 * a + 0.5 * a * a - b / 6.0)
    step = _laguerre_step(s, r0, eta, beta, dt, mu)[2]
    s = s + step
    # A far start can look settled: a step is small beside an s that is absurd.
    reach = np.abs(a) + np.abs(b) + c
    long = ~((np.abs(step) <= _SHORT_STEP * np.abs(s)) & (reach < _SHORT_REACH))
    if long.any():
        s[long] = np.nan
        long &= np.isfinite(reach) & np.isfinite(beta)
        dt = dt.copy()
        s[long], dt[long] = _solve_any(r0[long], eta[long], beta[long], dt[long], mu)
    return s, dt


def _lagrange_chunk(
    r0: FloatArray, eta: FloatArray, beta: FloatArray, dt: FloatArray, mu: float
) -> tuple[FloatArray, ...]:
    s, dt = _solve(r0, eta, beta, dt, mu)
    g0, g1, g2, g3 = _g_functions(s, beta)
    r = r0 * g0 + eta * g1 + mu * g2
    return 1.0 - mu * g2 / r0, dt - mu * g3, -mu * g1 / (r * r0), 1.0 - mu * g2 / r


def lagrange_coefficients(
    r: npt.ArrayLike, v: npt.ArrayLike, dt: npt.ArrayLike, mu: float = GM_SUN
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Lagrange's f, g and their rates: ``r(dt) = f r + g v``, ``v(dt) = fdot r + gdot v``.

    Parameters
    ----------
    r : array_like, shape (..., 3)
        Positions about the attracting body [au], any inertial axes.
    v : array_like, shape (..., 3)
        Velocities [au/d].
    dt : array_like
        Times from the states [d], either sign, broadcast against ``r.shape[:-1]``. For K times of
        each of N orbits pass ``r[:, None]``, ``v[:, None]`` and ``dt`` of shape (K,) or (N, K).
    mu : float
        Gravitational parameter [au^3/d^2].

    Returns
    -------
    f, g, fdot, gdot : ndarray
        Dimensionless, [d], [1/d] and dimensionless; the broadcast shape. NaN where an input is not
        finite or the position is zero.

    Notes
    -----
    Whole revolutions are taken off first, so that ``g`` is that of the last, partial one. An orbit
    that falls into the centre (zero angular momentum) is continued as the limit of very eccentric
    ones: it bounces.

    Errors are of the order of rounding, magnified by the orbit itself: there and back within the
    planetary system the median is 1e-16 of the distance. A fast hyperbola followed from hundreds
    of au away through its perihelion loses up to nine digits: two terms of its equation cancel.
    """
    r, v = np.asarray(r, dtype=np.float64), np.asarray(v, dtype=np.float64)
    with np.errstate(all="ignore"):
        r0 = np.sqrt(dot(r, r))
        beta = 2.0 * mu / r0 - dot(v, v)
        inputs = np.broadcast_arrays(r0, dot(r, v), beta, np.asarray(dt, dtype=np.float64))
        shape = inputs[0].shape
        flat = [np.ravel(x) for x in inputs]
        out = np.empty((4, flat[0].size))
        for start in range(0, out.shape[1], _CHUNK):
            part = slice(start, start + _CHUNK)
            r0_, eta, beta_, dt_ = (x[part] for x in flat)
            out[:, part] = _lagrange_chunk(r0_, eta, beta_, dt_, mu)
    f, g, fdot, gdot = out.reshape(4, *shape)
    return f, g, fdot, gdot


def _half_turn(angle: FloatArray) -> FloatArray:
    """Reduce to [-pi, pi] without touching an angle that is there already, however small."""
    return angle - 2.0 * np.pi * np.round(angle / (2.0 * np.pi))


def true_anomaly(mean: npt.ArrayLike, ecc: npt.ArrayLike) -> FloatArray:
    """True anomaly from the mean anomaly, on every conic.

    Parameters
    ----------
    mean : array_like
        Mean anomaly [rad]: ``sqrt(mu / |a|^3) (t - T)``; for ``ecc == 1`` exactly, Barker's
        ``sqrt(mu / (2 q^3)) (t - T)``.
    ecc : array_like
        Eccentricity, broadcast against ``mean``.

    Returns
    -------
    ndarray
        True anomaly [rad] in [-pi, pi]. NaN where an input is not finite or ``ecc < 0``.
    """
    mean, ecc = np.broadcast_arrays(
        np.asarray(mean, dtype=np.float64), np.asarray(ecc, dtype=np.float64)
    )
    with np.errstate(all="ignore"):
        mean = np.where(ecc < 1.0, _half_turn(mean), mean)
        # An orbit of unit perihelion distance and unit mu, timed from its perihelion.
        beta = np.where(ecc >= 0.0, 1.0 - ecc, np.nan)
        dt = np.where(ecc == 1.0, math.sqrt(2.0) * mean, mean / np.abs(beta) ** 1.5)
        flat_beta, flat_dt = beta.ravel(), dt.ravel()
        one = np.ones_like(flat_dt)
        s = np.empty_like(flat_dt)
        for start in range(0, s.size, _CHUNK):
            part = slice(start, start + _CHUNK)
            s[part] = _solve(one[part], 0.0 * one[part], flat_beta[part], flat_dt[part], 1.0)[0]
        g0, g1, _, _ = _g_functions(0.5 * s.reshape(dt.shape), beta)
        return 2.0 * np.arctan2(np.sqrt(1.0 + ecc) * g1, g0)
