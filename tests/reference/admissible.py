"""The admissible region in numpy: what the compiled functions of one row have to reproduce.

See `neoranging.core.admissible` for the formulae. Rows are worked on together, one call of numpy
for each step.
"""

from __future__ import annotations

import numpy as np

from neoranging.constants import GM_SUN, R_EARTH
from neoranging.core.admissible import heliocentric_distance, range_rate_interval
from neoranging.core.geometry import dot, line_of_sight, line_of_sight_rate

_EPS = float(np.finfo(np.float64).eps)
_MAX_ITERATIONS = 80
_STRIP_GRID = 65


def energy_coefficients(ra, dec, ra_rate, dec_rate, position, velocity):
    """Coefficients c0..c5 of the heliocentric energy as a function of range and range-rate."""
    sight = line_of_sight(ra, dec)
    sight_rate = line_of_sight_rate(ra, dec, ra_rate, dec_rate)
    coefficients = (
        dot(position, position),
        2.0 * dot(velocity, sight),
        dot(sight_rate, sight_rate),
        2.0 * dot(velocity, sight_rate),
        dot(velocity, velocity),
        2.0 * dot(position, sight),
    )
    return np.stack(np.broadcast_arrays(*coefficients), axis=-1)


def widest_strip(c, limits, mu=GM_SUN):
    """Lowest and highest range-rate [au/d] bound to the Sun at any range between two limits."""
    c, part = c[:, None], np.linspace(0.0, 1.0, _STRIP_GRID)
    near, far = limits[:, :1], limits[:, 1:]
    with np.errstate(invalid="ignore"):
        # a line of sight that passes the Sun has a sharp peak at its nearest point
        peak = np.clip(-0.5 * c[..., 5], near, far)
        rho = np.concatenate([near * (far / near) ** part, peak], axis=1)
        rho.sort(axis=1)
        for _ in range(3):  # the width is smooth: zoom in on its greatest value
            low, high = range_rate_interval(c, rho, mu)
            best = np.argmax(np.nan_to_num(high - low, nan=-1.0), axis=1)[:, None]
            widest = np.concatenate([np.take_along_axis(x, best, 1) for x in (low, high)], axis=1)
            ends = [np.clip(best + side, 0, rho.shape[1] - 1) for side in (-1, 1)]
            start, stop = (np.take_along_axis(rho, end, 1) for end in ends)
            rho = start + (stop - start) * part
    return widest


def range_roots(c, mu=GM_SUN):
    """Positive ranges where the strip opens or closes, (N, 6) to (N, 4)."""
    upper = _root_bound(c, mu)[:, None]
    inner = np.clip(np.sort(_critical_ranges(c), axis=-1), 0.0, upper)
    edges = np.concatenate([np.zeros_like(upper), inner, upper], axis=-1)
    finite = np.where(np.isfinite(edges), edges, np.finfo(np.float64).max ** 0.25)
    negative = _closure(c[:, None, :], finite, mu)[0] < 0.0
    row, piece = np.nonzero(negative[:, :-1] != negative[:, 1:])
    roots = np.full((len(c), 4), np.nan)
    rising = negative[row, piece]
    roots[row, piece] = _solve_monotonic(
        c[row], finite[row, piece], finite[row, piece + 1], rising, mu
    )
    unlimited = np.isinf(upper[:, 0]) & negative[:, -1]
    roots[unlimited, 3] = np.inf
    return np.sort(roots, axis=-1)


def range_intervals(c, rho_min=R_EARTH, mu=GM_SUN):
    """The one or two intervals of range beyond ``rho_min`` that hold orbits bound to the Sun."""
    c = np.asarray(c, dtype=np.float64)
    rho_min = np.broadcast_to(np.asarray(rho_min, dtype=np.float64), c.shape[:-1])
    roots = range_roots(c, mu)
    start = np.where(_closure(c, rho_min, mu)[0] <= 0.0, rho_min, np.nan)
    beyond = np.where(roots > rho_min[..., None], roots, np.nan)
    # Past the start the roots close and open the strip in turn: sorting pairs them.
    ends = np.sort(np.concatenate([start[..., None], beyond], axis=-1), axis=-1)[..., :4]
    intervals = ends.reshape(*c.shape[:-1], 2, 2)
    return np.where(np.isnan(intervals[..., 1:]), np.nan, intervals)


def _transverse_square(c, rho):
    """P(rho): square of the heliocentric velocity across the line of sight [au^2/d^2]."""
    rho = np.asarray(rho, dtype=np.float64)
    return (c[..., 2] * rho + c[..., 3]) * rho + (c[..., 4] - 0.25 * c[..., 1] ** 2)


def _closure(c, rho, mu):
    """``f = P sqrt(S) - 2 mu``, negative where the strip is open, and its derivative by range."""
    distance = heliocentric_distance(c, rho)
    transverse = _transverse_square(c, rho)
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = (2.0 * c[..., 2] * rho + c[..., 3]) * distance
        slope += transverse * (rho + 0.5 * c[..., 5]) / distance
    return transverse * distance - 2.0 * mu, slope


def _root_bound(c, mu):
    """A range [au] beyond all roots."""
    transverse = np.maximum(c[:, 4] - 0.25 * c[:, 1] ** 2, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        by_rate = np.fmax(2.0 * np.sqrt(transverse / c[:, 2]), np.cbrt(16.0 * mu / c[:, 2]))
        least = transverse - np.where(c[:, 2] > 0.0, c[:, 3] ** 2 / (4.0 * c[:, 2]), 0.0)
        by_velocity = 4.0 * mu / np.maximum(least, 0.0)
    bound = np.maximum(2.0 * np.sqrt(c[:, 0]), np.minimum(by_rate, by_velocity))
    return bound * (1.0 + 1e-6)


def _critical_ranges(c):
    """Real roots of the cubic ``2 P' S + P S'``, shape (N, 3); a lone root stands three times."""
    c0, c1, c2, c3, c4, c5 = c.T
    transverse = c4 - 0.25 * c1 * c1
    lead = 6.0 * np.maximum(c2, 1e-30)  # a vanishing rate leaves one root, found all the same
    quadratic = (5.0 * c2 * c5 + 4.0 * c3) / lead
    linear = (4.0 * c0 * c2 + 3.0 * c3 * c5 + 2.0 * transverse) / lead
    constant = (2.0 * c3 * c0 + transverse * c5) / lead
    x = _cubic_roots(quadratic, linear, constant)
    b, d, e = (value[:, None] for value in (quadratic, linear, constant))
    for _ in range(2):  # Newton restores the digits that the closed form cancels
        value = ((x + b) * x + d) * x + e
        slope = (3.0 * x + 2.0 * b) * x + d
        x = x - np.divide(value, slope, out=np.zeros_like(x), where=slope != 0.0)
    return x


def _cubic_roots(b, d, e):
    """Real roots of ``x^3 + b x^2 + d x + e`` by Viete's and the hyperbolic formulae, (N, 3)."""
    shift = -b / 3.0
    p = d - b * b / 3.0
    q = (2.0 * b * b / 27.0 - d / 3.0) * b + e
    scale = 2.0 * np.sqrt(np.abs(p) / 3.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = 4.0 * q / scale**3
    ratio = np.where(scale > 0.0, ratio, 0.0)
    three = (p < 0.0) & (np.abs(ratio) <= 1.0)
    angle = np.arccos(np.clip(-ratio, -1.0, 1.0)) / 3.0
    turns = np.array([0.0, 2.0, 4.0]) * np.pi / 3.0
    spread = scale[:, None] * np.cos(angle[:, None] - turns)
    magnitude = np.maximum(np.abs(ratio), 1.0)
    lone = np.where(
        p < 0.0,
        -np.sign(q) * scale * np.cosh(np.arccosh(magnitude) / 3.0),
        -scale * np.sinh(np.arcsinh(ratio) / 3.0),
    )
    lone = np.where(scale > 0.0, lone, -np.cbrt(q))
    return shift[:, None] + np.where(three[:, None], spread, lone[:, None])


def _solve_monotonic(c, low, high, rising, mu):
    """Zero of f in each bracket by Newton's method, bisecting where a step would leave it."""
    root = 0.5 * (low + high)
    active = np.arange(len(root))
    for _ in range(_MAX_ITERATIONS):
        if not active.size:
            break
        x = root[active]
        value, slope = _closure(c, x, mu)
        below = (value < 0.0) == rising
        low, high = np.where(below, x, low), np.where(below, high, x)
        with np.errstate(divide="ignore", invalid="ignore"):
            step = x - value / slope
        step = np.where((step >= low) & (step <= high), step, 0.5 * (low + high))
        root[active] = step
        moving = (np.abs(step - x) > 8.0 * _EPS * x) & (np.abs(value) > 8.0 * _EPS * mu)
        active = active[moving]
        c, low, high, rising = c[moving], low[moving], high[moving], rising[moving]
    return root
