"""The admissible region of an attributable: where the two unseen numbers of an orbit may lie.

One night gives direction and angular rate; range ``rho`` and range-rate ``rho_dot`` stay free. The
region asks them to make an orbit bound to the Sun, not bound to the Earth, outside the Earth
(Milani et al. 2004, Celest. Mech. Dyn. Astr. 90, 59; Milani & Gronchi 2010, sec. 8.1).

All that the attributable and the observer contribute are six numbers ``c = (c0, ..., c5)``,
shape ``(..., 6)``. Every function broadcasts ``c[..., i]`` against ``rho`` and ``rho_dot``, so many
ranges for each of N attributables are written ``c[:, None, :]`` against ``(N, M)``.

Units: au, day, radian. States are heliocentric, ICRS equatorial axes.

Notes
-----
Twice the energy is a square in ``rho_dot``: ``(rho_dot + c1/2)^2 + g(rho)``, so an orbit is bound
within ``sqrt(-g)`` of ``-c1/2``, where

    g(rho) = P(rho) - 2 mu / sqrt(S(rho)),
    P = c2 rho^2 + c3 rho + c4 - c1^2/4,    S = rho^2 + c5 rho + c0.

The ends of the region in range are the zeros of ``f = P sqrt(S) - 2 mu``. The usual way squares f
to a sextic, solves a companion matrix and discards what squaring added. Here f stays as it is: the
sign of its derivative is that of the *cubic* ``2 P' S + P S'``, whose closed-form roots cut the
axis into at most four pieces on which f is monotonic and a safeguarded Newton iteration cannot
fail. The same cubic proves the theorem of Milani et al.: f has at most four zeros, grows at both
ends, and so is negative on at most two intervals, whatever the limit on the energy.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from neoranging.constants import GM_EARTH, GM_SUN, R_EARTH
from neoranging.core.geometry import dot, line_of_sight, line_of_sight_rate
from neoranging.typing import BoolArray, FloatArray

_EPS = float(np.finfo(np.float64).eps)
_MAX_ITERATIONS = 80
_STRIP_GRID = 65  # ranges among which the widest strip is looked for, thrice
_CHUNK = 32_768  # rows per pass of the root finder: its temporaries stay in the cache


def energy_coefficients(
    ra: npt.ArrayLike,
    dec: npt.ArrayLike,
    ra_rate: npt.ArrayLike,
    dec_rate: npt.ArrayLike,
    observer_position: FloatArray,
    observer_velocity: FloatArray,
) -> FloatArray:
    """Coefficients c0..c5 of the heliocentric energy as a function of range and range-rate.

    Parameters
    ----------
    ra, dec : array_like, shape (...)
        Direction [rad].
    ra_rate, dec_rate : array_like, shape (...)
        Its coordinate rates [rad/d], ``ra_rate`` without cos(dec).
    observer_position, observer_velocity : ndarray, shape (..., 3)
        Heliocentric state of the observer [au, au/d].

    Returns
    -------
    ndarray, shape (..., 6)
        ``|r|^2, 2 v.u, |du/dt|^2, 2 v.du/dt, |v|^2, 2 r.u`` for the line of sight u
        (Milani & Gronchi 2010, sec. 8.1).
    """
    ra, dec, ra_rate, dec_rate = (
        np.asarray(angle, dtype=np.float64) for angle in (ra, dec, ra_rate, dec_rate)
    )
    position = np.asarray(observer_position, dtype=np.float64)
    velocity = np.asarray(observer_velocity, dtype=np.float64)
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


def heliocentric_distance(c: FloatArray, rho: npt.ArrayLike) -> FloatArray:
    """Distance from the Sun [au] at range ``rho`` [au]."""
    rho = np.asarray(rho, dtype=np.float64)
    # Rounding may carry the square below zero for a line of sight through the Sun.
    return np.sqrt(np.maximum((rho + c[..., 5]) * rho + c[..., 0], 0.0))


def sun_energy(
    c: FloatArray, rho: npt.ArrayLike, rho_dot: npt.ArrayLike, mu: float = GM_SUN
) -> FloatArray:
    """Heliocentric two-body energy per mass [au^2/d^2] (Milani & Gronchi 2010, sec. 8.1)."""
    rho = np.asarray(rho, dtype=np.float64)
    rho_dot = np.asarray(rho_dot, dtype=np.float64)
    kinetic = (rho_dot + c[..., 1]) * rho_dot + (c[..., 2] * rho + c[..., 3]) * rho + c[..., 4]
    return 0.5 * kinetic - mu / heliocentric_distance(c, rho)


def earth_energy(
    c: FloatArray, rho: npt.ArrayLike, rho_dot: npt.ArrayLike, mu: float = GM_EARTH
) -> FloatArray:
    """Geocentric two-body energy per mass [au^2/d^2], the observer standing for the geocentre.

    ``2 E = rho_dot^2 + eta^2 rho^2 - 2 mu / rho`` with ``eta^2 = c2``; ``rho`` must be positive.
    """
    rho = np.asarray(rho, dtype=np.float64)
    rho_dot = np.asarray(rho_dot, dtype=np.float64)
    return 0.5 * (rho_dot * rho_dot + c[..., 2] * rho * rho) - mu / rho


def is_admissible(
    c: FloatArray,
    rho: npt.ArrayLike,
    rho_dot: npt.ArrayLike,
    energy: npt.ArrayLike | None = None,
) -> BoolArray:
    """Points (rho, rho_dot) bound to the Sun, not to the Earth, and outside the Earth.

    Non-finite input is not admissible.

    Parameters
    ----------
    c : ndarray, shape (..., 6)
        Coefficients of the energy.
    rho, rho_dot : array_like, shape (...)
        Range [au] and range-rate [au/d].
    energy : array_like, shape (...), optional
        Heliocentric energy of the orbit that stands behind a point, which has to be bound too: an
        orbit through the observations moves slightly otherwise than the fitted attributable, which
        decides near the parabola.
    """
    rho = np.asarray(rho, dtype=np.float64)
    outside = rho > R_EARTH
    safe = np.where(outside, rho, 1.0)
    inside = outside & (sun_energy(c, safe, rho_dot) <= 0.0)
    inside &= earth_energy(c, safe, rho_dot) >= 0.0
    return inside if energy is None else inside & (np.asarray(energy) <= 0.0)


def limit_semimajor_axis(c: FloatArray, a_max: npt.ArrayLike, mu: float = GM_SUN) -> FloatArray:
    """Coefficients whose zero-energy line is the orbit of semimajor axis ``a_max`` [au].

    ``E <= -mu / (2 a_max)`` is ``E <= 0`` with ``c4 + mu / a_max`` in the place of c4, so every
    function of this module serves the narrower region unchanged. An infinite ``a_max`` is no limit.
    """
    limited = np.array(c, dtype=np.float64)
    limited[..., 4] += mu / np.asarray(a_max, dtype=np.float64)
    return limited


def range_rate_interval(
    c: FloatArray, rho: npt.ArrayLike, mu: float = GM_SUN
) -> tuple[FloatArray, FloatArray]:
    """Lowest and highest range-rate [au/d] bound to the Sun at range ``rho``; NaN where none is."""
    square = 2.0 * mu / heliocentric_distance(c, rho) - _transverse_square(c, rho)
    half_width = np.sqrt(np.where(square >= 0.0, square, np.nan))
    centre = -0.5 * c[..., 1]
    return centre - half_width, centre + half_width


def widest_strip(c: FloatArray, limits: FloatArray, mu: float = GM_SUN) -> FloatArray:
    """Lowest and highest range-rate [au/d] bound to the Sun at any range between two limits.

    Parameters
    ----------
    c : ndarray, shape (M, 6)
        Energy coefficients.
    limits : ndarray, shape (M, 2)
        Least and greatest range [au]; NaN where there is none.
    mu : float
        Gravitational parameter of the Sun [au^3/d^2].

    Returns
    -------
    ndarray, shape (M, 2)
    """
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


def escape_rate(c: FloatArray, rho: npt.ArrayLike, mu: float = GM_EARTH) -> FloatArray:
    """Least ``|rho_dot|`` [au/d] not bound to the Earth at range ``rho``; zero where all escape."""
    rho = np.asarray(rho, dtype=np.float64)
    rate = np.sqrt(np.maximum(2.0 * mu / rho - c[..., 2] * rho * rho, 0.0))
    # At the end of the bound ranges the root would make 1e-8 of a rounding error of 1e-16.
    return np.where(rho >= earth_bound_range(c, mu), 0.0, rate)


def earth_bound_range(c: FloatArray, mu: float = GM_EARTH) -> FloatArray:
    """Range [au] beyond which no range-rate is bound to the Earth, ``(2 mu / eta^2)^(1/3)``."""
    with np.errstate(divide="ignore"):
        return np.cbrt(2.0 * mu / c[..., 2])


def range_roots(c: FloatArray, mu: float = GM_SUN) -> FloatArray:
    """Positive ranges [au] where the strip of bound range-rates opens or closes.

    Parameters
    ----------
    c : ndarray, shape (..., 6)
        Energy coefficients.
    mu : float
        Gravitational parameter of the Sun [au^3/d^2].

    Returns
    -------
    ndarray, shape (..., 4)
        In ascending order, padded with NaN. An observer who is bound to the Sun has one or three;
        four can occur with a limit on the semimajor axis. A root is infinite if the attributable
        leaves the range unlimited (no angular rate and no transverse velocity).
    """
    c = np.asarray(c, dtype=np.float64)
    rows = c.reshape(-1, 6)
    roots = np.empty((len(rows), 4))
    for start in range(0, len(rows), _CHUNK):
        part = slice(start, start + _CHUNK)
        roots[part] = _range_roots(rows[part], mu)
    return roots.reshape(*c.shape[:-1], 4)


def range_intervals(
    c: FloatArray, rho_min: npt.ArrayLike = R_EARTH, mu: float = GM_SUN
) -> FloatArray:
    """The one or two intervals of range beyond ``rho_min`` [au] that hold orbits bound to the Sun.

    Parameters
    ----------
    c : ndarray, shape (..., 6)
        Energy coefficients.
    rho_min : array_like, shape (...)
        Least range [au].
    mu : float
        Gravitational parameter of the Sun [au^3/d^2].

    Returns
    -------
    ndarray, shape (..., 2, 2)
        (component, (near end, far end)) [au], NaN where there is no such component. The Earth-bound
        orbits, ``|rho_dot| < escape_rate``, are cut out of the strip over these intervals but never
        shorten them unless a limit on the semimajor axis has made the strip narrower than that cut.
    """
    c = np.asarray(c, dtype=np.float64)
    rho_min = np.broadcast_to(np.asarray(rho_min, dtype=np.float64), c.shape[:-1])
    roots = range_roots(c, mu)
    start = np.where(_closure(c, rho_min, mu)[0] <= 0.0, rho_min, np.nan)
    beyond = np.where(roots > rho_min[..., None], roots, np.nan)
    # Past the start the roots close and open the strip in turn: sorting pairs them.
    ends = np.sort(np.concatenate([start[..., None], beyond], axis=-1), axis=-1)[..., :4]
    intervals = ends.reshape(*c.shape[:-1], 2, 2)
    return np.where(np.isnan(intervals[..., 1:]), np.nan, intervals)


def absolute_magnitude(
    c: FloatArray, rho: npt.ArrayLike, mag: npt.ArrayLike, slope: float = 0.15
) -> FloatArray:
    """Absolute magnitude H of an object seen at magnitude ``mag`` at range ``rho`` [au].

    By `phase_magnitude`; the phase angle follows from range and line of sight alone,
    ``cos(phase) = (2 rho + c5) / (2 r)``.
    """
    rho = np.asarray(rho, dtype=np.float64)
    distance = heliocentric_distance(c, rho)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        cos_phase = np.clip((rho + 0.5 * c[..., 5]) / distance, -1.0, 1.0)
        return np.asarray(mag) - 5.0 * np.log10(rho * distance) - phase_magnitude(cos_phase, slope)


def phase_magnitude(cos_phase: FloatArray, slope: float = 0.15) -> FloatArray:
    """Magnitudes by which an object is fainter at a phase angle than at opposition.

    The two-parameter H-G system (Bowell et al. 1989, in Asteroids II, eqs. A4).
    """
    tan_half = np.sqrt((1.0 - cos_phase) / (1.0 + cos_phase))
    bright = (1.0 - slope) * np.exp(-3.33 * tan_half**0.63)
    bright += slope * np.exp(-1.87 * tan_half**1.22)
    return -2.5 * np.log10(bright)


def _transverse_square(c: FloatArray, rho: npt.ArrayLike) -> FloatArray:
    """P(rho): square of the heliocentric velocity across the line of sight [au^2/d^2]."""
    rho = np.asarray(rho, dtype=np.float64)
    return (c[..., 2] * rho + c[..., 3]) * rho + (c[..., 4] - 0.25 * c[..., 1] ** 2)


def _closure(c: FloatArray, rho: FloatArray, mu: float) -> tuple[FloatArray, FloatArray]:
    """``f = P sqrt(S) - 2 mu``, negative where the strip is open, and its derivative by range."""
    distance = heliocentric_distance(c, rho)
    transverse = _transverse_square(c, rho)
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = (2.0 * c[..., 2] * rho + c[..., 3]) * distance
        slope += transverse * (rho + 0.5 * c[..., 5]) / distance
    return transverse * distance - 2.0 * mu, slope


def _range_roots(c: FloatArray, mu: float) -> FloatArray:
    """The roots for one chunk of rows, shape (N, 6) -> (N, 4)."""
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


def _root_bound(c: FloatArray, mu: float) -> FloatArray:
    """A range [au] beyond all roots.

    Past ``2 |r|`` the distance from the Sun exceeds rho/2; past twice the range at which the
    observer's transverse velocity is matched, P exceeds ``(eta rho / 2)^2``; and P is nowhere below
    its minimum.
    """
    transverse = np.maximum(c[:, 4] - 0.25 * c[:, 1] ** 2, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        by_rate = np.fmax(2.0 * np.sqrt(transverse / c[:, 2]), np.cbrt(16.0 * mu / c[:, 2]))
        least = transverse - np.where(c[:, 2] > 0.0, c[:, 3] ** 2 / (4.0 * c[:, 2]), 0.0)
        by_velocity = 4.0 * mu / np.maximum(least, 0.0)
    bound = np.maximum(2.0 * np.sqrt(c[:, 0]), np.minimum(by_rate, by_velocity))
    return bound * (1.0 + 1e-6)


def _critical_ranges(c: FloatArray) -> FloatArray:
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


def _cubic_roots(b: FloatArray, d: FloatArray, e: FloatArray) -> FloatArray:
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


def _solve_monotonic(
    c: FloatArray, low: FloatArray, high: FloatArray, rising: BoolArray, mu: float
) -> FloatArray:
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
