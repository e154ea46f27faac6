"""Two-body motion on every conic: universal variables, safeguarded and compiled.

One equation serves ellipse, parabola and hyperbola, so nothing here branches on the eccentricity
and nothing degrades near e = 1, where ranging grids put many of their orbits. With the variable s
defined by ``ds = dt / r``, the functions ``G_k = s^k c_k(beta s^2)`` of Stumpff and
``beta = 2 mu / r - v^2``, Kepler's equation and the distance are ::

    dt = r0 G1 + (r0 . v0) G2 + mu G3
    r  = r0 G0 + (r0 . v0) G1 + mu G2  =  d(dt)/ds  >  0

The root is unique, because r is positive. Short arcs converge in one step from a series; the rest
goes through Laguerre's iteration kept inside a proven bracket, so no input can make it hang.

The functions of one orbit are compiled, and what compiled code elsewhere needs of two-body motion
calls them; those of arrays, at the end, run them over all orbits.

References
----------
Danby, J. M. A. 1992, Fundamentals of Celestial Mechanics, 2nd ed., sections 6.9-6.10.
Conway, B. A. 1986, Celestial Mechanics 39, 199 (Laguerre's iteration).
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import numpy.typing as npt

from neoranging.constants import GM_SUN
from neoranging.core.compiled import compiled, inlined
from neoranging.core.geometry import dot, norm
from neoranging.typing import FloatArray

_MAX_ITERATIONS: Final = 60
"""Far above what the safeguarded iteration needs; it only promises an end."""

_SHORT_STEP: Final = 1e-6
"""A cubically convergent step this small, relative to s, leaves an error below rounding."""

_SHORT_REACH: Final = 0.3
"""Relative change of the distance over an arc up to which its series is a start worth trusting."""

_EPS: Final = float(np.finfo(np.float64).eps)

_C2_SERIES: Final = np.array([(-1.0) ** k / math.factorial(2 * k + 2) for k in range(10)])
_C3_SERIES: Final = np.array([(-1.0) ** k / math.factorial(2 * k + 3) for k in range(10)])


def orbital_energy(r: FloatArray, v: FloatArray) -> FloatArray:
    """Heliocentric two-body energy of states (..., 3) [au^2/d^2]."""
    return 0.5 * dot(v, v) - GM_SUN / norm(r)


@compiled
def stumpff(z: float) -> tuple[float, float]:
    """Stumpff functions c2 and c3 of any real argument.

    Parameters
    ----------
    z : float
        ``beta s^2``: positive on ellipses, zero on parabolas, negative on hyperbolas.

    Returns
    -------
    c2, c3 : float
        ``(1 - cos sqrt z) / z`` and ``(sqrt z - sin sqrt z) / sqrt(z)^3``; ``c1 = 1 - z c3`` and
        ``c0 = 1 - z c2`` follow.
    """
    if abs(z) > 1.0:
        x = math.sqrt(abs(z))
        # the squared sine of the half angle keeps 1 - cos from cancelling
        if z > 0.0:
            return 2.0 * (math.sin(0.5 * x) / x) ** 2, (x - math.sin(x)) / (x * x * x)
        return 2.0 * (math.sinh(0.5 * x) / x) ** 2, (math.sinh(x) - x) / (x * x * x)
    c2 = c3 = 0.0
    for k in range(3 if abs(z) < 1e-3 else 9, -1, -1):
        c2 = c2 * z + _C2_SERIES[k]
        c3 = c3 * z + _C3_SERIES[k]
    return c2, c3


@compiled
def g_functions(s: float, beta: float) -> tuple[float, float, float, float]:
    """G0, G1, G2, G3 at the universal anomaly s."""
    s2 = s * s
    z = beta * s2
    c2, c3 = stumpff(z)
    return 1.0 - z * c2, s * (1.0 - z * c3), s2 * c2, s2 * s * c3


@compiled
def _laguerre_step(
    s: float, r0: float, eta: float, beta: float, dt: float, mu: float
) -> tuple[float, float, float]:
    """Residual of Kepler's equation at s [d], its rounding level, and Laguerre's correction."""
    g0, g1, g2, g3 = g_functions(s, beta)
    first, second, third = r0 * g1, eta * g2, mu * g3
    residual = first + second + third - dt
    rounding = _EPS * (abs(first) + abs(second) + abs(third) + abs(dt))
    slope = r0 * g0 + eta * g1 + mu * g2
    bend = eta * g0 + (mu - beta * r0) * g1
    root = math.sqrt(abs(16.0 * slope * slope - 20.0 * residual * bend))
    return residual, rounding, -5.0 * residual / (slope + root)


@inlined
def _bracket(beta: float, dt: float, mu: float) -> float:
    """Bound on the size of s on any orbit, given that ellipses go no further than half a turn.

    The largest s in a given time is that of an arc centred on perihelion, of which each half takes
    at least ``mu G3``; ``c3 >= 1 / pi^2`` on half an ellipse and ``1 / 6`` beyond. On a hyperbola
    ``sinh y - y <= m`` moreover gives the logarithmic bound that keeps sinh from overflowing.
    """
    bound = 2.0 * np.cbrt(0.5 * math.pi**2 * abs(dt) / mu)
    if beta < 0.0:
        root = math.sqrt(-beta)
        m = abs(dt) * root**3 / (2.0 * mu)
        log_bound = 2.0 * math.asinh(m + np.cbrt(6.0 * m)) / root
        bound = min(bound, log_bound)
    return 1.000001 * bound


@inlined
def _bracketed_anomaly(r0: float, eta: float, beta: float, dt: float, mu: float) -> float:
    """Universal anomaly by bracketed Laguerre iteration."""
    bound = math.copysign(_bracket(beta, dt, mu), dt)
    low, high = min(0.0, bound), max(0.0, bound)
    s = min(max(dt / r0, low), high)
    for _ in range(_MAX_ITERATIONS):
        residual, rounding, step = _laguerre_step(s, r0, eta, beta, dt, mu)
        if residual < 0.0:
            low = s
        elif residual > 0.0:
            high = s
        here = s
        s = here + step
        if not low <= s <= high:
            s = 0.5 * (low + high)
        if abs(s - here) <= 1e-10 * abs(s) or abs(residual) <= rounding:
            break
    return s


@compiled
def universal_anomaly(
    r0: float, eta: float, beta: float, dt: float, mu: float
) -> tuple[float, float]:
    """Universal anomaly after a time, and that time less whole revolutions [d].

    Parameters
    ----------
    r0, eta, beta : float
        Distance, ``r0 . v0`` and ``2 mu / r0 - v0^2`` of the state.
    dt : float
        Time from it [d].
    mu : float
        Gravitational parameter.
    """
    u = dt / r0
    a, b, c = u * eta / r0, u * u * (mu / r0 - beta), u * u * mu / r0
    s = u * (1.0 - 0.5 * a + 0.5 * a * a - b / 6.0)
    step = _laguerre_step(s, r0, eta, beta, dt, mu)[2]
    s = s + step
    # a far start can look settled: a step is small beside an s that is absurd
    reach = abs(a) + abs(b) + c
    if abs(step) <= _SHORT_STEP * abs(s) and reach < _SHORT_REACH:
        return s, dt
    if not (math.isfinite(reach) and math.isfinite(beta)):
        return math.nan, dt
    if beta > 0.0:
        period = 2.0 * math.pi * mu / beta**1.5
        if math.isfinite(period):
            dt = dt - period * np.round(dt / period)
    return _bracketed_anomaly(r0, eta, beta, dt, mu), dt


@compiled
def lagrange_of(
    r0: float, eta: float, beta: float, dt: float, mu: float
) -> tuple[float, float, float, float]:
    """Lagrange's f, g and their rates of one orbit; see `lagrange_coefficients`.

    The arguments are those of `universal_anomaly`.
    """
    s, dt = universal_anomaly(r0, eta, beta, dt, mu)
    g0, g1, g2, g3 = g_functions(s, beta)
    r = r0 * g0 + eta * g1 + mu * g2
    return 1.0 - mu * g2 / r0, dt - mu * g3, -mu * g1 / (r * r0), 1.0 - mu * g2 / r


@compiled
def _half_turn(angle: float) -> float:
    """Reduce to [-pi, pi] without touching an angle that is there already, however small."""
    return angle - 2.0 * math.pi * float(np.round(angle / (2.0 * math.pi)))


@inlined
def _true_anomaly_of(mean: float, ecc: float) -> float:
    """True anomaly of one orbit, of unit perihelion distance and unit mu, timed from there."""
    beta = 1.0 - ecc if ecc >= 0.0 else math.nan
    if ecc < 1.0:
        mean = _half_turn(mean)
    dt = math.sqrt(2.0) * mean if ecc == 1.0 else mean / abs(beta) ** 1.5
    s, _ = universal_anomaly(1.0, 0.0, beta, dt, 1.0)
    g0, g1, _, _ = g_functions(0.5 * s, beta)
    return 2.0 * math.atan2(math.sqrt(1.0 + ecc) * g1, g0)


@inlined
def _mean_anomaly_of(true: float, ecc: float) -> float:
    """Mean anomaly of one orbit; ``M = E - e sin E`` without cancellation."""
    half = 0.5 * _half_turn(true)
    if ecc == 1.0:
        d = math.tan(half)
        return d + d**3 / 3.0
    gap = 1.0 - ecc if ecc >= 0.0 else math.nan
    y, x = math.sqrt(abs(gap)) * math.sin(half), math.sqrt(1.0 + ecc) * math.cos(half)
    # eccentric anomaly, or its hyperbolic counterpart
    anomaly = 2.0 * (math.atan2(y, x) if gap > 0.0 else math.atanh(y / x))
    _, c3 = stumpff(math.copysign(anomaly * anomaly, gap))
    return abs(gap) * anomaly + ecc * anomaly**3 * c3


@compiled
def _lagrange_all(
    r0: FloatArray, eta: FloatArray, beta: FloatArray, dt: FloatArray, mu: float, out: FloatArray
) -> None:
    for k in range(len(r0)):
        out[0, k], out[1, k], out[2, k], out[3, k] = lagrange_of(r0[k], eta[k], beta[k], dt[k], mu)


@compiled
def _true_anomalies(mean: FloatArray, ecc: FloatArray, out: FloatArray) -> None:
    for k in range(len(mean)):
        out[k] = _true_anomaly_of(mean[k], ecc[k])


@compiled
def _mean_anomalies(true: FloatArray, ecc: FloatArray, out: FloatArray) -> None:
    for k in range(len(true)):
        out[k] = _mean_anomaly_of(true[k], ecc[k])


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
    out = np.empty((4, inputs[0].size))
    r0, eta, beta, dt = (np.ravel(x) for x in inputs)
    _lagrange_all(r0, eta, beta, dt, mu, out)
    f, g, fdot, gdot = out.reshape(4, *shape)
    return f, g, fdot, gdot


def _combine(a: FloatArray, r: FloatArray, b: FloatArray, v: FloatArray) -> FloatArray:
    # By component: numpy's inner loop over a last axis of three costs several times more.
    out = np.empty((*a.shape, 3))
    for i in range(3):
        np.multiply(a, r[..., i], out=out[..., i])
        out[..., i] += b * v[..., i]
    return out


def propagate(
    r: npt.ArrayLike, v: npt.ArrayLike, dt: npt.ArrayLike, mu: float = GM_SUN
) -> tuple[FloatArray, FloatArray]:
    """Two-body state after a time; see `lagrange_coefficients` for shapes and units.

    Returns
    -------
    r, v : ndarray, shape (..., 3)
        Positions [au] and velocities [au/d] in the axes of the input; NaN where an input is NaN.
    """
    r, v = np.asarray(r, dtype=np.float64), np.asarray(v, dtype=np.float64)
    f, g, fdot, gdot = lagrange_coefficients(r, v, dt, mu)
    return _combine(f, r, g, v), _combine(fdot, r, gdot, v)


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
    true = np.empty(mean.shape)
    _true_anomalies(mean.ravel(), ecc.ravel(), true.reshape(-1))
    return true


def mean_anomaly(true: npt.ArrayLike, ecc: npt.ArrayLike) -> FloatArray:
    """Mean anomaly from the true anomaly, on every conic; the inverse of `true_anomaly`.

    Parameters
    ----------
    true : array_like
        True anomaly [rad].
    ecc : array_like
        Eccentricity, broadcast against ``true``.

    Returns
    -------
    ndarray
        Mean anomaly [rad], in [-pi, pi] on ellipses; for ``ecc == 1`` exactly Barker's
        ``D + D^3 / 3`` with ``D = tan(true / 2)``. NaN where a hyperbola does not reach that true
        anomaly, an input is not finite or ``ecc < 0``.
    """
    true, ecc = np.broadcast_arrays(
        np.asarray(true, dtype=np.float64), np.asarray(ecc, dtype=np.float64)
    )
    mean = np.empty(true.shape)
    _mean_anomalies(true.ravel(), ecc.ravel(), mean.reshape(-1))
    return mean
