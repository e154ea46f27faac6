"""Roots of the range equation in numpy: what the compiled ones of one arc have to reproduce.

See `neoranging.core.range_equation` for the equation. All brackets are worked on together, and
those that have closed drop out.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from neoranging.core import columns
from neoranging.core.range_equation import RangeEquation
from neoranging.typing import FloatArray

_MAX_ITERATIONS = 200  # bisection alone needs about 60; Newton makes it 5 to 10


def radius(equation: RangeEquation, rho: FloatArray) -> FloatArray:
    """Heliocentric distance at range ``rho``."""
    return np.sqrt(rho * (rho + 2.0 * equation.E) + equation.R * equation.R)


def slope(equation: RangeEquation, rho: FloatArray) -> FloatArray:
    """Derivative by rho of ``rho - P - Q mu / r^3``; near zero two roots merge."""
    r = radius(equation, rho)
    return 1.0 + 3.0 * equation.Q * equation.mu * (rho + equation.E) / r**5


def misfit(equation: RangeEquation, rho: FloatArray) -> FloatArray:
    """By how much the equation fails at ranges ``rho`` (..., M), as a part of the range."""
    return (rho - equation.P - equation.Q * equation.mu / radius(equation, rho) ** 3) / rho


def polish(equation: RangeEquation, rho: FloatArray, steps: int = 2) -> FloatArray:
    """Newton steps on the range itself, from a neighbouring root."""
    for _ in range(steps):
        rho = rho - rho * misfit(equation, rho) / slope(equation, rho)
    return rho


# without motion the coefficients overflow, and there are no roots
@np.errstate(all="ignore")
def positive_ranges(equation: RangeEquation) -> tuple[FloatArray, np.ndarray]:
    """All positive ranges that satisfy the equation.

    Returns
    -------
    rho : ndarray, shape (K,)
        Ranges [au], K <= 3 M, ordered by arc and then by heliocentric distance.
    arc : ndarray of int, shape (K,)
        The arc that each belongs to.
    """
    P, Q, E, R, mu = equation
    # in units of R the coefficients are of order one for every centre and unit system
    a = (P * P + 2.0 * P * E) / R**2 + 1.0
    b = 2.0 * mu * Q * (P + E) / R**5
    c = (mu * Q) ** 2 / R**8
    distance = _positive_roots(a, b, c) * R[:, None]
    rho = P[:, None] + Q[:, None] * mu / distance**3
    arc, slot = np.nonzero(np.isfinite(rho) & (rho > 0.0))
    rho = rho[arc, slot]
    # the difference that gives a range far smaller than P loses digits, which a step restores
    polished = polish(columns.take(equation, arc), rho, steps=1)
    return np.where(np.abs(polished - rho) < 1.0e-3 * rho, polished, rho), arc


def _positive_roots(a: FloatArray, b: FloatArray, c: FloatArray) -> FloatArray:
    """Positive roots of ``s^8 - a s^6 - b s^3 - c`` (c >= 0), shape (M, 3), NaN padded."""
    usable = np.isfinite(a) & np.isfinite(b) & np.isfinite(c)
    a, b, c = (np.where(usable, x, 0.0) for x in (a, b, c))
    upper = 1.001 * np.max(
        [
            np.sqrt(3.0 * np.maximum(a, 0.0)),
            (3.0 * np.maximum(b, 0.0)) ** 0.2,
            (3.0 * c) ** 0.125,
        ],
        axis=0,
    )
    zero = np.zeros_like(a)

    def quintic(s: FloatArray, k: np.ndarray) -> tuple[FloatArray, FloatArray]:
        s2 = s * s
        return (
            (8.0 * s2 - 6.0 * a[k]) * s2 * s - 3.0 * b[k],
            (40.0 * s2 - 18.0 * a[k]) * s2,
        )

    def octic(s: FloatArray, k: np.ndarray) -> tuple[FloatArray, FloatArray]:
        s2 = s * s
        s3 = s2 * s
        value = ((s2 - a[k]) * s3 - b[k]) * s3 - c[k]
        return value, ((8.0 * s2 - 6.0 * a[k]) * s3 - 3.0 * b[k]) * s2

    turn = np.sqrt(0.45 * np.maximum(a, 0.0))
    low, high = _bracketed_roots(quintic, np.stack([zero, turn, upper]))
    # a missing stationary point leaves an empty piece, which has no root
    low = np.where(np.isnan(low), 0.0, low)
    high = np.where(np.isnan(high), low, high)
    roots = _bracketed_roots(octic, np.stack([zero, low, high, upper]))
    roots[:, ~usable] = np.nan
    return roots.T


def _bracketed_roots(
    function: Callable[[FloatArray, np.ndarray], tuple[FloatArray, FloatArray]],
    edges: FloatArray,
) -> FloatArray:
    """Root of each of M functions between consecutive edges (n + 1, M), NaN where there is none.

    Each function must be monotone there; ``function(s, k)`` gives value and slope of functions k.
    Newton's method that falls back to bisection whenever it leaves the bracket or stops halving
    its step; only the brackets still open are evaluated.
    """
    n, m = len(edges) - 1, edges.shape[1]
    low, high = edges[:-1].ravel(), edges[1:].ravel()
    which = np.tile(np.arange(m), n)
    f_low, f_high = function(low, which)[0], function(high, which)[0]
    root = np.full(n * m, np.nan)
    index = np.nonzero((low < high) & (f_low * f_high <= 0.0) & (f_low != f_high))[0]
    rising = f_high[index] > f_low[index]
    lo, hi = low[index], high[index]
    x = 0.5 * (lo + hi)
    previous = hi - lo
    for _ in range(_MAX_ITERATIONS):
        if not len(index):
            break
        value, slope = function(x, which[index])
        above = (value > 0.0) == rising
        lo, hi = np.where(above, lo, x), np.where(above, x, hi)
        newton = x - value / slope
        step = np.abs(newton - x)
        # a last step of rounding size may point out of the bracket: ask for its size first
        done = (value == 0.0) | (step <= 4.0e-16 * x)
        root[index[done]] = x[done]
        trusted = (newton > lo) & (newton < hi) & (step < 0.5 * previous)
        new = np.where(trusted, newton, 0.5 * (lo + hi))
        previous = np.abs(new - x)
        done |= previous <= 4.0e-16 * new
        root[index[done]] = x[done]
        keep = ~done
        index, rising = index[keep], rising[keep]
        lo, hi, x, previous = lo[keep], hi[keep], new[keep], previous[keep]
    root[index] = x
    return root.reshape(n, m)
