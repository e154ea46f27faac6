"""Motion under the Sun, the Earth and the Moon: compiled Taylor series.

An object near the Earth leaves its ellipse within an hour. Its path over a night is short enough
for a power series in time about one epoch, or a few of them: the coefficients of the position obey
``(n + 1)(n + 2) r_{n+2} = a_n``, and those of each pull ``-GM d / |d|^3`` follow by the rules for
products and powers of series (Jorba & Zou 2005, Exp. Math. 14, 99, sec. 2). A series is used as far
as a fifth of the shortest time in which its geometry changes and begun anew beyond.

The attractors come as polynomials in time about the epoch of the object, heliocentric, shape
``(2, 3, ATTRACTOR_TERMS)``: the Earth, then the Moon. What all other bodies do to an object near
the Earth, and all to the Sun, is what they do to the barycentre of Earth and Moon, and stands in
its path; it comes to 300 m in a day, 0.1" at 0.003 au. The oblateness of the Earth is left out.

Units are au and day, axes those of the ICRS.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from neoranging.constants import GM_EARTH, GM_MOON, GM_SUN, R_EARTH
from neoranging.core.compiled import announced, compiled, inner
from neoranging.core.ephemeris import ATTRACTOR_TERMS
from neoranging.typing import FloatArray, IntArray

ORDER: Final = 8
"""Highest power of time in the series of a path."""

_STEP: Final = 0.2
"""Reach of a series as a part of the shortest time in which its geometry changes."""

_MOST_STEPS: Final = 200
"""Series in one direction of time; an object that needs more is lost on the Earth."""

_TERMS: Final = ORDER + 1

_GM: Final = (GM_SUN, GM_EARTH, GM_MOON)

_EARTH_SHARE: Final = GM_EARTH / (GM_EARTH + GM_MOON)
_MOON_SHARE: Final = GM_MOON / (GM_EARTH + GM_MOON)


@compiled
def series_space() -> FloatArray:
    """Space that `expand` works in: for three bodies the series of separation, square, pull."""
    return np.zeros((3, _TERMS, 5))


@inner
def shifted(attractors: FloatArray, time: float, out: FloatArray) -> None:
    """Polynomials of the attractors about another instant ``time``, written to ``out``."""
    for body in range(2):
        for axis in range(3):
            for power in range(ATTRACTOR_TERMS):
                out[body, axis, power] = attractors[body, axis, power]
            # Horner's scheme, once for each power
            for first in range(ATTRACTOR_TERMS - 1):
                for power in range(ATTRACTOR_TERMS - 2, first - 1, -1):
                    out[body, axis, power] += time * out[body, axis, power + 1]


@inner
def planets_pull(attractors: FloatArray) -> tuple[float, float, float]:
    """Acceleration of what is near the Earth by all but Sun, Earth and Moon, less that of the Sun.

    It is what remains of the acceleration of the barycentre of Earth and Moon without the Sun's.
    """
    x, y, z = (
        _EARTH_SHARE * attractors[0, 0, 0] + _MOON_SHARE * attractors[1, 0, 0],
        _EARTH_SHARE * attractors[0, 1, 0] + _MOON_SHARE * attractors[1, 1, 0],
        _EARTH_SHARE * attractors[0, 2, 0] + _MOON_SHARE * attractors[1, 2, 0],
    )
    sun = GM_SUN / (x * x + y * y + z * z) ** 1.5
    return (
        sun * x + 2.0 * (_EARTH_SHARE * attractors[0, 0, 2] + _MOON_SHARE * attractors[1, 0, 2]),
        sun * y + 2.0 * (_EARTH_SHARE * attractors[0, 1, 2] + _MOON_SHARE * attractors[1, 1, 2]),
        sun * z + 2.0 * (_EARTH_SHARE * attractors[0, 2, 2] + _MOON_SHARE * attractors[1, 2, 2]),
    )


@inner
def expand(
    path: FloatArray, attractors: FloatArray, n_bodies: int, order: int, space: FloatArray
) -> float:
    """Complete the series of a path from its first two terms, and return how far it reaches [d].

    Parameters
    ----------
    path : ndarray, shape (ORDER + 1, 3)
        Coefficients of the heliocentric position; the first two are position and velocity.
    attractors : ndarray, shape (2, 3, ATTRACTOR_TERMS)
        Polynomials of Earth and Moon about the same instant.
    n_bodies : int
        1 for the Sun alone, 2 with the Earth, 3 with the Moon.
    order : int
        Highest power to go to, at most ``ORDER``.
    space : ndarray
        Of `series_space`.
    """
    reach = np.inf
    for n in range(order - 1):
        ax, ay, az = 0.0, 0.0, 0.0
        for body in range(n_bodies):
            work = space[body]
            for axis in range(3):
                value = path[n, axis]
                if body > 0 and n < ATTRACTOR_TERMS:
                    value -= attractors[body - 1, axis, n]
                work[n, axis] = value
            square = 0.0
            for j in range(n + 1):
                k = n - j
                square += (
                    work[j, 0] * work[k, 0] + work[j, 1] * work[k, 1] + work[j, 2] * work[k, 2]
                )
            work[n, 3] = square
            gm = _GM[body]
            if n == 0:
                if square == 0.0:
                    return 0.0
                work[0, 4] = 1.0 / (square * math.sqrt(square))
                vx, vy, vz = path[1, 0], path[1, 1], path[1, 2]
                if body > 0:
                    vx -= attractors[body - 1, 0, 1]
                    vy -= attractors[body - 1, 1, 1]
                    vz -= attractors[body - 1, 2, 1]
                # of all times the shortest: to fall to the body, or to pass it
                rate2 = (vx * vx + vy * vy + vz * vz) / square
                reach = min(reach, 1.0 / math.sqrt(rate2 + gm * work[0, 4]))
            else:
                total = 0.0
                for j in range(1, n + 1):
                    total += (-1.5 * j - (n - j)) * work[j, 3] * work[n - j, 4]
                work[n, 4] = total / (n * work[0, 3])
            for j in range(n + 1):
                pull = gm * work[n - j, 4]
                ax -= pull * work[j, 0]
                ay -= pull * work[j, 1]
                az -= pull * work[j, 2]
        if n == 0 and n_bodies > 1:
            tide_x, tide_y, tide_z = planets_pull(attractors)
            ax, ay, az = ax + tide_x, ay + tide_y, az + tide_z
        scale = 1.0 / ((n + 1) * (n + 2))
        path[n + 2, 0] = ax * scale
        path[n + 2, 1] = ay * scale
        path[n + 2, 2] = az * scale
    return _STEP * reach


@inner
def evaluate(
    path: FloatArray, order: int, time: float, position: FloatArray, velocity: FloatArray
) -> None:
    """Position and velocity of a series at ``time``, written to two vectors."""
    for axis in range(3):
        value, slope = path[order, axis], 0.0
        for power in range(order - 1, -1, -1):
            slope = slope * time + value
            value = value * time + path[power, axis]
        position[axis] = value
        velocity[axis] = slope


@inner
def advance(
    path: FloatArray,
    attractors: FloatArray,
    moment: float,
    n_bodies: int,
    step: float,
    local: FloatArray,
    space: FloatArray,
) -> float:
    """Begin a series anew ``step`` later, and return its reach [d]; 0 inside the Earth.

    ``moment`` is the new instant in the time of the polynomials ``attractors``; ``local`` takes
    those about it.
    """
    # in place, for a term of a position is read before it is written
    evaluate(path, ORDER, step, path[0], path[1])
    shifted(attractors, moment, local)
    if n_bodies > 1:
        square = 0.0
        for axis in range(3):
            square += (path[0, axis] - local[0, axis, 0]) ** 2
        if square < R_EARTH * R_EARTH:
            return 0.0
    return expand(path, local, n_bodies, ORDER, space)


@announced("the motion of objects near the Earth", 10)
@compiled
def _move(
    r: FloatArray,
    v: FloatArray,
    owner: IntArray,
    dt: FloatArray,
    attractors: FloatArray,
    positions: FloatArray,
    velocities: FloatArray,
) -> None:
    space, path, local = series_space(), np.zeros((_TERMS, 3)), np.empty((2, 3, ATTRACTOR_TERMS))
    n = len(dt)
    for sign in (1.0, -1.0):
        at = -1
        moment = reach = 0.0
        for row in range(n) if sign > 0.0 else range(n - 1, -1, -1):
            if dt[row] * sign < 0.0 or (sign < 0.0 and dt[row] == 0.0):
                continue
            k = owner[row]
            if k != at:
                at, moment = k, 0.0
                path[0], path[1] = r[k], v[k]
                local[:] = attractors[k]
                reach = expand(path, local, 3, ORDER, space)
            steps = 0
            while abs(dt[row] - moment) > reach > 0.0 and steps < _MOST_STEPS:
                step = sign * reach
                moment += step
                steps += 1
                reach = advance(path, attractors[k], moment, 3, step, local, space)
            if reach > 0.0 and steps < _MOST_STEPS:
                evaluate(path, ORDER, dt[row] - moment, positions[row], velocities[row])


def move_near_earth(
    r: FloatArray, v: FloatArray, owner: IntArray, dt: FloatArray, attractors: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """States of M objects at n times under the Sun, the Earth and the Moon.

    Parameters
    ----------
    r, v : ndarray, shape (M, 3)
        Heliocentric states at the epoch of each object [au, au/d].
    owner : ndarray of int, shape (n,)
        Object that each time belongs to, in ascending order.
    dt : ndarray, shape (n,)
        Times since its epoch [d], in order for each object.
    attractors : ndarray, shape (M, 2, 3, ATTRACTOR_TERMS)
        Polynomials of Earth and Moon about the epoch of each object; see
        `neoranging.ephemeris.states.attractors`.

    Returns
    -------
    positions, velocities : ndarray, shape (n, 3)
        NaN where the path has led into the Earth.
    """
    positions, velocities = np.full((len(dt), 3), np.nan), np.full((len(dt), 3), np.nan)
    r, v, dt, attractors = (
        np.ascontiguousarray(x, dtype=np.float64) for x in (r, v, dt, attractors)
    )
    _move(r, v, np.ascontiguousarray(owner, dtype=np.int64), dt, attractors, positions, velocities)
    return positions, velocities
