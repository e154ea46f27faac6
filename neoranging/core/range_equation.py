r"""The scalar equation that Gauss's and Laplace's methods share, and all its roots.

Both reduce the ranging problem to a straight line against the inverse cube of the heliocentric
distance, closed by the triangle Sun-observer-object,

.. math::  \rho = P + Q \mu / r^3, \qquad r^2 = \rho^2 + 2 E \rho + R^2,

with :math:`E = \mathbf{R}\cdot\hat{\boldsymbol\rho}`. Eliminating the range gives the classical
eighth-degree polynomial

.. math::  r^8 - (P^2 + 2 P E + R^2)\, r^6 - 2 \mu Q (P + E)\, r^3 - \mu^2 Q^2 = 0

(e.g. Milani & Gronchi 2010, eq. 9.17; Vallado 2013, eq. 7-17). Descartes' rule allows at most three
positive roots. Instead of an eigenvalue solver, which would cost tens of microseconds an arc and
return roots one has to weed, the roots are bracketed exactly: the stationary points of the
polynomial solve a quintic that has at most one stationary point itself, so it falls into at most
three monotone pieces.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from neoranging.core.compiled import compiled
from neoranging.typing import FloatArray

MOST_ROOTS: Final = 3
"""Roots that one equation can have."""

_MAX_ITERATIONS: Final = 200
"""Of one root: bisection alone needs about 60; Newton makes it 5 to 10."""

_ROUNDING: Final = 4.0e-16
"""Relative step at which a root stands."""


class RangeEquation(NamedTuple):
    """Coefficients of ``rho = P + Q mu / r^3`` for M arcs, each of shape (M,)."""

    P: FloatArray
    Q: FloatArray
    E: FloatArray
    """Projection of the observer's heliocentric position on the line of sight [au]."""
    R: FloatArray
    """Heliocentric distance of the observer [au]."""
    mu: float


@compiled
def positive_roots(P: float, Q: float, E: float, R: float, mu: float, rho: FloatArray) -> int:
    """Positive ranges of one equation, written to ``rho`` in order of heliocentric distance.

    Parameters
    ----------
    P, Q, E, R, mu : float
        See `RangeEquation`; without motion they are not finite, and there are no roots.
    rho : ndarray, shape (MOST_ROOTS,)
        Takes the ranges.

    Returns
    -------
    int
        Number of the ranges.
    """
    # in units of R the coefficients are of order one for every centre and unit system
    a = (P * P + 2.0 * P * E) / R**2 + 1.0
    b = 2.0 * mu * Q * (P + E) / R**5
    c = (mu * Q) ** 2 / R**8
    if not (math.isfinite(a) and math.isfinite(b) and math.isfinite(c)):
        return 0
    upper = 1.001 * max(
        math.sqrt(3.0 * max(a, 0.0)), (3.0 * max(b, 0.0)) ** 0.2, (3.0 * c) ** 0.125
    )
    turn = math.sqrt(0.45 * max(a, 0.0))
    low = _root_between(a, b, c, True, 0.0, turn)
    high = _root_between(a, b, c, True, turn, upper)
    # a missing stationary point leaves an empty piece, which has no root
    low = 0.0 if math.isnan(low) else low
    high = low if math.isnan(high) else high
    n = 0
    for first, last in ((0.0, low), (low, high), (high, upper)):
        radius = _root_between(a, b, c, False, first, last) * R
        range_ = P + Q * mu / radius**3
        if math.isfinite(range_) and range_ > 0.0:
            # the difference that gives a range far smaller than P loses digits: a step restores
            polished = polished_range(range_, P, Q, E, R, mu)
            rho[n] = polished if abs(polished - range_) < 1.0e-3 * range_ else range_
            n += 1
    return n


@compiled
def polished_range(rho: float, P: float, Q: float, E: float, R: float, mu: float) -> float:
    """Range after a step of Newton's method from a neighbouring root; see `RangeEquation`."""
    r = math.sqrt(rho * (rho + 2.0 * E) + R * R)
    pull = Q * mu / r**3
    return rho - (rho - P - pull) / (1.0 + 3.0 * pull * (rho + E) / (r * r))


@compiled
def _root_between(a: float, b: float, c: float, of_slope: bool, first: float, last: float) -> float:
    """Root of ``s^8 - a s^6 - b s^3 - c`` (c >= 0), or of its slope, NaN where there is none.

    The polynomial must be monotone between the two edges. Newton's method that falls back to
    bisection whenever it leaves the bracket or stops halving its step.
    """
    f_low, _ = _value_and_slope(a, b, c, of_slope, first)
    f_high, _ = _value_and_slope(a, b, c, of_slope, last)
    if not (first < last and f_low * f_high <= 0.0 and f_low != f_high):
        return math.nan
    rising = f_high > f_low
    x, previous = 0.5 * (first + last), last - first
    for _ in range(_MAX_ITERATIONS):
        value, slope = _value_and_slope(a, b, c, of_slope, x)
        if (value > 0.0) == rising:
            last = x
        else:
            first = x
        newton = x - value / slope
        step = abs(newton - x)
        # a last step of rounding size may point out of the bracket: ask for its size first
        if value == 0.0 or step <= _ROUNDING * x:
            break
        trusted = first < newton < last and step < 0.5 * previous
        new = newton if trusted else 0.5 * (first + last)
        previous = abs(new - x)
        if previous <= _ROUNDING * new:
            break
        x = new
    return x


@compiled
def _value_and_slope(a: float, b: float, c: float, of_slope: bool, s: float) -> tuple[float, float]:
    """The octic, or the quintic that its slope is but for a factor s^2, with its own slope."""
    s2 = s * s
    s3 = s2 * s
    if of_slope:
        return (8.0 * s2 - 6.0 * a) * s3 - 3.0 * b, (40.0 * s2 - 18.0 * a) * s2
    value = ((s2 - a) * s3 - b) * s3 - c
    return value, ((8.0 * s2 - 6.0 * a) * s3 - 3.0 * b) * s2
