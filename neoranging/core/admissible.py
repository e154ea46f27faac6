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

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from neoranging.constants import GM_EARTH, GM_SUN, R_EARTH
from neoranging.core.compiled import compiled, formula, plain
from neoranging.core.triples import Triple, combined3, dot3
from neoranging.typing import BoolArray, FloatArray

_EPS = float(np.finfo(np.float64).eps)
_MAX_ITERATIONS = 80
_STRIP_GRID = 65  # ranges among which the widest strip is looked for, thrice
_BEYOND_ALL = float(np.finfo(np.float64).max) ** 0.25  # range in the place of an infinite one


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
    position, velocity = np.asarray(observer_position), np.asarray(observer_velocity)
    angles = ra, dec, ra_rate, dec_rate
    shape = np.broadcast(*angles, position[..., 0], velocity[..., 0]).shape
    rows = np.empty((*shape, 10))
    for column, angle in enumerate(angles):
        rows[..., column] = angle
    rows[..., 4:7], rows[..., 7:] = position, velocity
    return _coefficients_of_rows(rows.reshape(-1, 10)).reshape(*shape, 6)


def heliocentric_distance(c: FloatArray, rho: npt.ArrayLike) -> FloatArray:
    """Distance from the Sun [au] at range ``rho`` [au]."""
    rho = np.asarray(rho, dtype=np.float64)
    return _distance(_by_column(c), rho)


def sun_energy(
    c: FloatArray, rho: npt.ArrayLike, rho_dot: npt.ArrayLike, mu: float = GM_SUN
) -> FloatArray:
    """Heliocentric two-body energy per mass [au^2/d^2] (Milani & Gronchi 2010, sec. 8.1)."""
    rho = np.asarray(rho, dtype=np.float64)
    rho_dot = np.asarray(rho_dot, dtype=np.float64)
    return _sun_energy(_by_column(c), rho, rho_dot, mu)


def earth_energy(
    c: FloatArray, rho: npt.ArrayLike, rho_dot: npt.ArrayLike, mu: float = GM_EARTH
) -> FloatArray:
    """Geocentric two-body energy per mass [au^2/d^2], the observer standing for the geocentre.

    ``2 E = rho_dot^2 + eta^2 rho^2 - 2 mu / rho`` with ``eta^2 = c2``; ``rho`` must be positive.
    """
    rho = np.asarray(rho, dtype=np.float64)
    rho_dot = np.asarray(rho_dot, dtype=np.float64)
    return _earth_energy(_by_column(c), rho, rho_dot, mu)


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
    rho = np.asarray(rho, dtype=np.float64)
    square = _strip_square(_by_column(c), rho, mu)
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
    return _widest_of_rows(plain(c), plain(limits), mu)


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
    return _open_ranges(c, R_EARTH, mu)[..., :4]


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
    ranges = _open_ranges(c, rho_min, mu)
    return ranges[..., 4:8].reshape(*ranges.shape[:-1], 2, 2)


def range_limits(c: FloatArray) -> FloatArray:
    """Least and greatest range [au] of the admissible region, (..., 6) to (..., 2).

    NaN where there is none.
    """
    return _open_ranges(c, R_EARTH, GM_SUN)[..., 8:]


def closing_ranges(c: FloatArray) -> FloatArray:
    """Ranges [au] at which the strip closes, opens again and closes for good, (..., 6) to (..., 3).

    All lie outside the Earth; with one component the three are equal.
    """
    ends = _open_ranges(c, R_EARTH, GM_SUN)[..., 5:8]
    return np.where(np.isnan(ends), ends[..., :1], ends)


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


def _by_column(c: FloatArray) -> tuple[FloatArray, ...]:
    """The six coefficients as the formulae below index them; a row of them serves as it is."""
    return tuple(c[..., i] for i in range(6))


@formula
def _distance(c: Any, rho: Any) -> Any:
    """``sqrt(S(rho))``: distance from the Sun [au]."""
    # rounding may carry the square below zero for a line of sight through the Sun
    return np.sqrt(np.maximum((rho + c[5]) * rho + c[0], 0.0))


@formula
def _transverse_square(c: Any, rho: Any) -> Any:
    """P(rho): square of the heliocentric velocity across the line of sight [au^2/d^2]."""
    return (c[2] * rho + c[3]) * rho + (c[4] - 0.25 * c[1] * c[1])


@formula
def _sun_energy(c: Any, rho: Any, rho_dot: Any, mu: float) -> Any:
    kinetic = (rho_dot + c[1]) * rho_dot + (c[2] * rho + c[3]) * rho + c[4]
    return 0.5 * kinetic - mu / _distance(c, rho)


@formula
def _earth_energy(c: Any, rho: Any, rho_dot: Any, mu: float) -> Any:
    return 0.5 * (rho_dot * rho_dot + c[2] * rho * rho) - mu / rho


@compiled
def is_inside(c: FloatArray, rho: float, rho_dot: float, energy: float) -> bool:
    """`is_admissible` for one row of coefficients (6,)."""
    return (
        rho > R_EARTH
        and _sun_energy(c, rho, rho_dot, GM_SUN) <= 0.0
        and _earth_energy(c, rho, rho_dot, GM_EARTH) >= 0.0
        and energy <= 0.0
    )


@formula
def _strip_square(c: Any, rho: Any, mu: float) -> Any:
    """Square of half the width of the strip of bound range-rates; negative where it is closed."""
    return 2.0 * mu / _distance(c, rho) - _transverse_square(c, rho)


@compiled
def _coefficients_of_rows(rows: FloatArray) -> FloatArray:
    """Coefficients for rows of ra, dec, their rates and the state of the observer, (M, 10)."""
    c = np.empty((len(rows), 6))
    for k in range(len(rows)):
        angles, place = rows[k, :4], rows[k, 4:]
        state = (place[0], place[1], place[2]), (place[3], place[4], place[5])
        set_coefficients(angles[0], angles[1], angles[2], angles[3], state[0], state[1], c[k])
    return c


@compiled
def set_coefficients(
    ra: float,
    dec: float,
    ra_rate: float,
    dec_rate: float,
    position: Triple,
    velocity: Triple,
    c: FloatArray,
) -> None:
    """`energy_coefficients` of one attributable, written to ``c`` (6,)."""
    sin_ra, cos_ra, sin_dec, cos_dec = math.sin(ra), math.cos(ra), math.sin(dec), math.cos(dec)
    sight = cos_dec * cos_ra, cos_dec * sin_ra, sin_dec
    east, north = (-sin_ra, cos_ra, 0.0), (-sin_dec * cos_ra, -sin_dec * sin_ra, cos_dec)
    sight_rate = combined3(ra_rate * cos_dec, east, dec_rate, north)
    c[0] = dot3(position, position)
    c[1] = 2.0 * dot3(velocity, sight)
    c[2] = dot3(sight_rate, sight_rate)
    c[3] = 2.0 * dot3(velocity, sight_rate)
    c[4] = dot3(velocity, velocity)
    c[5] = 2.0 * dot3(position, sight)


def _open_ranges(c: FloatArray, rho_min: npt.ArrayLike, mu: float) -> FloatArray:
    """Four `range_roots`, the four ends of `range_intervals`, and both limits, shape (..., 10)."""
    c = np.asarray(c, dtype=np.float64)
    least = np.empty(c.shape[:-1])
    least[...] = rho_min
    return _open_ranges_of_rows(plain(c.reshape(-1, 6)), least.ravel(), mu).reshape(
        *least.shape, 10
    )


@compiled
def _open_ranges_of_rows(c: FloatArray, rho_min: FloatArray, mu: float) -> FloatArray:
    """`_open_ranges` of all rows."""
    ranges = np.empty((len(c), 10))
    for k in range(len(c)):
        ends = ranges[k, 4:8]
        open_ranges(c[k], rho_min[k], mu, ranges[k, :4], ends)
        ranges[k, 8] = ends[0]
        ranges[k, 9] = ends[1] if math.isnan(ends[3]) else ends[3]
    return ranges


@compiled
def open_ranges(
    c: FloatArray, rho_min: float, mu: float, roots: FloatArray, ends: FloatArray
) -> None:
    """Roots (4,) of one attributable, and the ends (4,) of its one or two intervals of range.

    The compiled form of `range_roots` and `range_intervals`: for one row of coefficients (6,), into
    ``roots`` and ``ends``.
    """
    upper = _root_bound(c, mu)
    first, second, third = _critical_ranges(c)
    n, low, negative = 0, 0.0, _closure(c, 0.0, mu)[0] < 0.0
    for edge in (first, second, third, upper):
        high = np.minimum(np.maximum(edge, 0.0), upper)
        if not math.isfinite(high):
            high = _BEYOND_ALL
        before, negative = negative, _closure(c, high, mu)[0] < 0.0
        if before != negative:
            roots[n] = _zero_between(c, low, high, before, mu)
            n += 1
        low = high
    if upper == np.inf and negative:
        roots[n] = np.inf
        n += 1
    for i in range(n, 4):
        roots[i] = np.nan
    # past the start the roots close and open the strip in turn
    n = 0
    if _closure(c, rho_min, mu)[0] <= 0.0:
        ends[0], n = rho_min, 1
    for i in range(4):
        if roots[i] > rho_min and n < 4:
            ends[n] = roots[i]
            n += 1
    if n % 2:  # an interval that nothing closes is none
        n -= 1
    for i in range(n, 4):
        ends[i] = np.nan


@compiled
def _closure(c: FloatArray, rho: float, mu: float) -> tuple[float, float]:
    """``f = P sqrt(S) - 2 mu``, negative where the strip is open, and its derivative by range."""
    distance = _distance(c, rho)
    transverse = _transverse_square(c, rho)
    slope = (2.0 * c[2] * rho + c[3]) * distance + transverse * (rho + 0.5 * c[5]) / distance
    return transverse * distance - 2.0 * mu, slope


@compiled
def _root_bound(c: FloatArray, mu: float) -> float:
    """A range [au] beyond all roots.

    Past ``2 |r|`` the distance from the Sun exceeds rho/2; past twice the range at which the
    observer's transverse velocity is matched, P exceeds ``(eta rho / 2)^2``; and P is nowhere below
    its minimum.
    """
    transverse = np.maximum(c[4] - 0.25 * c[1] ** 2, 0.0)
    by_rate = np.fmax(2.0 * np.sqrt(transverse / c[2]), np.cbrt(16.0 * mu / c[2]))
    least = transverse - (c[3] ** 2 / (4.0 * c[2]) if c[2] > 0.0 else 0.0)
    by_velocity = 4.0 * mu / np.maximum(least, 0.0)
    bound = np.maximum(2.0 * np.sqrt(c[0]), np.minimum(by_rate, by_velocity))
    return bound * (1.0 + 1e-6)


@compiled
def _critical_ranges(c: FloatArray) -> tuple[float, float, float]:
    """Real roots of the cubic ``2 P' S + P S'``, ascending; a lone root stands three times."""
    transverse = c[4] - 0.25 * c[1] * c[1]
    lead = 6.0 * np.maximum(c[2], 1e-30)  # a vanishing rate leaves one root, found all the same
    b = (5.0 * c[2] * c[5] + 4.0 * c[3]) / lead
    d = (4.0 * c[0] * c[2] + 3.0 * c[3] * c[5] + 2.0 * transverse) / lead
    e = (2.0 * c[3] * c[0] + transverse * c[5]) / lead
    low, middle, high = _cubic_roots(b, d, e)
    low, middle, high = (
        _restored(low, b, d, e),
        _restored(middle, b, d, e),
        _restored(high, b, d, e),
    )
    # rounding may have exchanged neighbours
    low, middle = (middle, low) if low > middle else (low, middle)
    middle, high = (high, middle) if middle > high else (middle, high)
    low, middle = (middle, low) if low > middle else (low, middle)
    return low, middle, high


@compiled
def _cubic_roots(b: float, d: float, e: float) -> tuple[float, float, float]:
    """Real roots of ``x^3 + b x^2 + d x + e`` by Viete's and the hyperbolic formulae."""
    shift = -b / 3.0
    p = d - b * b / 3.0
    q = (2.0 * b * b / 27.0 - d / 3.0) * b + e
    scale = 2.0 * math.sqrt(abs(p) / 3.0)
    ratio = 4.0 * q / scale**3 if scale > 0.0 else 0.0
    if p < 0.0 and abs(ratio) <= 1.0:
        angle = math.acos(min(max(-ratio, -1.0), 1.0)) / 3.0
        turn = 2.0 * math.pi / 3.0
        return (
            shift + scale * math.cos(angle - 2.0 * turn),
            shift + scale * math.cos(angle - turn),
            shift + scale * math.cos(angle),
        )
    if not scale > 0.0:
        lone = -np.cbrt(q)
    elif p < 0.0:
        lone = -np.sign(q) * scale * math.cosh(np.arccosh(max(abs(ratio), 1.0)) / 3.0)
    else:
        lone = -scale * math.sinh(np.arcsinh(ratio) / 3.0)
    return shift + lone, shift + lone, shift + lone


@compiled
def _restored(x: float, b: float, d: float, e: float) -> float:
    """Root of a cubic with the digits, by Newton's method, that the closed form cancels."""
    for _ in range(2):
        value, slope = ((x + b) * x + d) * x + e, (3.0 * x + 2.0 * b) * x + d
        if slope != 0.0:
            x -= value / slope
    return x


@compiled
def _zero_between(c: FloatArray, low: float, high: float, rising: bool, mu: float) -> float:
    """Zero of f in a bracket by Newton's method, bisecting where a step would leave it."""
    root = 0.5 * (low + high)
    for _ in range(_MAX_ITERATIONS):
        value, slope = _closure(c, root, mu)
        if (value < 0.0) == rising:
            low = root
        else:
            high = root
        before, root = root, root - value / slope
        if not low <= root <= high:
            root = 0.5 * (low + high)
        # not so if it moves on by more than rounding, and misses by more
        if not (abs(root - before) > 8.0 * _EPS * before and abs(value) > 8.0 * _EPS * mu):
            break
    return root


@compiled
def strip(c: FloatArray, rho: float, mu: float) -> tuple[float, float]:
    """Lowest and highest range-rate bound to the Sun: `range_rate_interval` of one attributable."""
    square = _strip_square(c, rho, mu)
    half_width = math.sqrt(square) if square >= 0.0 else np.nan
    return -0.5 * c[1] - half_width, -0.5 * c[1] + half_width


@compiled
def _widest_of_rows(c: FloatArray, limits: FloatArray, mu: float) -> FloatArray:
    """`widest_strip` of all rows."""
    widest, grid = np.empty((len(c), 2)), np.empty(_STRIP_GRID + 1)
    for k in range(len(c)):
        rho = _widest_range(c[k], limits[k, 0], limits[k, 1], mu, grid)
        widest[k, 0], widest[k, 1] = strip(c[k], rho, mu)
    return widest


@compiled
def _widest_range(c: FloatArray, near: float, far: float, mu: float, grid: FloatArray) -> float:
    """Range between two limits at which the strip is widest; ``grid`` is room for a grid."""
    # a line of sight that passes the Sun has a sharp peak at its nearest point
    peak, is_placed = min(max(-0.5 * c[5], near), far), False
    n, rho, factor = 0, near, (far / near) ** (1.0 / (_STRIP_GRID - 1))
    for i in range(_STRIP_GRID):
        rho = far if i == _STRIP_GRID - 1 else rho
        if not is_placed and peak <= rho:
            grid[n], is_placed = peak, True
            n += 1
        grid[n] = rho
        n += 1
        rho *= factor
    best = 0
    for zoom in range(3):  # the width is smooth: zoom in on its greatest value
        if zoom:
            start, stop = grid[max(best - 1, 0)], grid[min(best + 1, n - 1)]
            n = _STRIP_GRID
            for i in range(n):
                grid[i] = start + (stop - start) * (i / (n - 1))
        best, widest = 0, -np.inf
        for i in range(n):
            square = _strip_square(c, grid[i], mu)
            if square > widest:
                best, widest = i, square
    return grid[best]
