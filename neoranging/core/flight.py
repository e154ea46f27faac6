"""Flights of objects over days or weeks: how observers see them, and whether they meet the Earth.

The path is that of `neoranging.core.motion`, under Sun, Earth and Moon, a Taylor series at a time.
Earth and Moon come from an almanac, one polynomial for each day, so that a flight may be long. Far
from the Earth the planets are what is missing: they move an object by 0.01" in three days and by
some 0.5" in a month, more where it passes one of them. The series itself errs by less, but for an
object within 0.2 au of the Sun, 1" in a month.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np

from neoranging.constants import C_AU_PER_DAY, R_EARTH
from neoranging.core.compiled import announced, compiled
from neoranging.core.ephemeris import ATTRACTOR_TERMS
from neoranging.core.geometry import norm
from neoranging.core.motion import ORDER, advance, evaluate, expand, series_space, shifted
from neoranging.typing import BoolArray, FloatArray

_LONGEST_STEP_D: Final = 1.0
"""Reach of a series near the Earth: beyond it the polynomial of the Moon is no longer hers [d]."""

_FAR_AU: Final = 0.03
_LONGEST_FAR_STEP_D: Final = 3.0
"""Distance from the Earth from which on that matters little, and the reach there [d].

The polynomials are then off by 20 km and 300 km: a hundred-thousandth of the pull.
"""

_MOST_STEPS: Final = 400
"""Steps of a flight at most, beside one for each day; a passage of the Earth takes some fifty."""

_FASTEST: Final = 0.045
"""Speed beyond which nothing bound to the Sun approaches the Earth [au/d]."""

_DRAWN_IN_AU: Final = 0.01
"""Distance from the Earth below which her own pull makes it faster."""

_LIGHT_TIME_ROUNDS: Final = 4
_HALVINGS: Final = 40


class Almanac(NamedTuple):
    """Paths of Earth and Moon as one polynomial in time for each day.

    See `neoranging.ephemeris.states.almanac`.
    """

    start: float
    """Beginning of the first day [MJD TDB]."""
    paths: FloatArray
    """Heliocentric coefficients about the middle of each day, (days, 2, 3, ATTRACTOR_TERMS)."""


class Views(NamedTuple):
    """Objects as observers see them at T instants, leading shape (K, T); NaN once they fell."""

    line: FloatArray
    """From the observer at reception to the object at emission, shape (K, T, 3) [au]."""
    velocity: FloatArray
    """Heliocentric velocity at emission, shape (K, T, 3) [au/d]."""


class Approaches(NamedTuple):
    """Nearest approaches of K objects to the centre of the Earth, and their falls."""

    time: FloatArray
    """Instants of the least distance, or of the fall, shape (K,) [MJD TDB]."""
    distance: FloatArray
    """Least distance of the flight, shape (K,) [au]; `R_EARTH` of those that fall."""
    falls: BoolArray
    """Flags of those that come within the equatorial radius of the Earth, shape (K,)."""
    position: FloatArray
    """Geocentric position there, ICRS axes, shape (K, 3) [au]."""
    velocity: FloatArray
    """Geocentric velocity there, shape (K, 3) [au/d]."""
    is_followed: BoolArray
    """Flags of flights followed to their end or their fall, shape (K,).

    Of one that took too many steps the other columns are of its part that was followed; of one
    without a state, or that begins after the end, they are NaN.
    """


@compiled
def _longest(path: FloatArray, local: FloatArray) -> float:
    """Reach that the polynomials of Earth and Moon allow a series which begins here [d]."""
    square = 0.0
    for axis in range(3):
        square += (path[0, axis] - local[0, axis, 0]) ** 2
    return _LONGEST_STEP_D if square < _FAR_AU * _FAR_AU else _LONGEST_FAR_STEP_D


@compiled
def _begin(
    r: FloatArray,
    v: FloatArray,
    time: float,
    paths: FloatArray,
    path: FloatArray,
    local: FloatArray,
    space: FloatArray,
) -> float:
    """Series of a path from a state at ``time`` of the almanac; returns its reach [d]."""
    for axis in range(3):
        path[0, axis] = r[axis]
        path[1, axis] = v[axis]
    day = min(max(int(time), 0), len(paths) - 1)
    shifted(paths[day], time - (day + 0.5), local)
    return min(expand(path, local, 3, ORDER, space), _longest(path, local))


@compiled
def _go_on(
    step: float,
    time: float,
    paths: FloatArray,
    path: FloatArray,
    local: FloatArray,
    space: FloatArray,
) -> float:
    """Series begun anew ``step`` later, at ``time`` of the almanac; returns its reach [d]."""
    day = min(max(int(time), 0), len(paths) - 1)
    reach = advance(path, paths[day], time - (day + 0.5), 3, step, local, space)
    return min(reach, _longest(path, local))


@compiled
def _light_time(place: FloatArray, observer: FloatArray) -> float:
    square = 0.0
    for axis in range(3):
        square += (place[axis] - observer[axis]) ** 2
    return math.sqrt(square) / C_AU_PER_DAY


@announced("the flight of objects over days", 10)
@compiled
def _view(
    r: FloatArray,
    v: FloatArray,
    epoch: FloatArray,
    paths: FloatArray,
    times: FloatArray,
    observers: FloatArray,
    line: FloatArray,
    velocity: FloatArray,
) -> None:
    space, path, local = series_space(), np.zeros((ORDER + 1, 3)), np.empty((2, 3, ATTRACTOR_TERMS))
    place, speed = np.empty(3), np.empty(3)
    most = _MOST_STEPS + len(paths)
    for k in range(len(r)):
        for sign in (1.0, -1.0):
            moment, steps = epoch[k], 0
            reach = _begin(r[k], v[k], moment, paths, path, local, space)
            for i in range(len(times)):
                row = i if sign > 0.0 else len(times) - 1 - i
                light = _light_time(r[k], observers[row])
                if (times[row] - light >= epoch[k]) != (sign > 0.0):
                    continue
                target = times[row] - _light_time(path[0], observers[row])
                while abs(target - moment) > reach > 0.0 and steps < most:
                    step = sign * reach
                    moment += step
                    steps += 1
                    reach = _go_on(step, moment, paths, path, local, space)
                    target = times[row] - _light_time(path[0], observers[row])
                if not reach > 0.0 or steps >= most:
                    break
                for _ in range(_LIGHT_TIME_ROUNDS):
                    evaluate(path, ORDER, target - moment, place, speed)
                    target = times[row] - _light_time(place, observers[row])
                for axis in range(3):
                    line[k, row, axis] = place[axis] - observers[row, axis]
                    velocity[k, row, axis] = speed[axis]


def views(
    r: FloatArray,
    v: FloatArray,
    epoch: FloatArray,
    almanac: Almanac,
    times: FloatArray,
    observers: FloatArray,
) -> Views:
    """K objects as observers see them at T instants of reception, until they fall.

    Parameters
    ----------
    r, v : ndarray, shape (K, 3)
        Heliocentric states [au, au/d]; NaN give NaN.
    epoch : ndarray, shape (K,)
        Their epochs [MJD TDB].
    almanac : Almanac
        Of all days from the epochs to the instants.
    times : ndarray, shape (T,)
        Instants in ascending order [MJD TDB].
    observers : ndarray, shape (T, 3)
        Heliocentric positions of the observers at these [au].
    """
    line, velocity = np.full((2, len(r), len(times), 3), np.nan)
    start = almanac.start
    place, speed, since, observers = (
        np.ascontiguousarray(x, dtype=np.float64) for x in (r, v, epoch - start, observers)
    )
    _view(place, speed, since, almanac.paths, times - start, observers, line, velocity)
    gone = has_fallen(r, v, epoch, almanac, times, approaches)
    line[gone] = velocity[gone] = np.nan
    return Views(line, velocity)


def has_fallen(
    r: FloatArray,
    v: FloatArray,
    epoch: FloatArray,
    almanac: Almanac,
    times: FloatArray,
    follow: Callable[..., Approaches],
) -> BoolArray:
    """Flags of objects that have met the Earth since their epochs, shape (K, T).

    The arguments are those of `views`; ``follow`` is `approaches` or a function like it.
    """
    later = times[-1] - epoch
    since = np.nan_to_num(epoch - almanac.start)
    day = np.clip(since.astype(int), 0, len(almanac.paths) - 1)
    powers = (since - day - 0.5)[:, None] ** np.arange(ATTRACTOR_TERMS)
    earth = np.einsum("kij,kj->ki", almanac.paths[day, 0], powers)
    # what is too far to reach the Earth in time need not be followed
    near = (later > 0.0) & (norm(r - earth) < _DRAWN_IN_AU + _FASTEST * later)
    fall = np.full(len(r), np.inf)
    if near.any():
        ends = follow(r[near], v[near], epoch[near], almanac, float(times[-1]))
        fall[near] = np.where(ends.falls, ends.time, np.inf)
    return np.asarray(fall[:, None] <= times)


@compiled
def _geocentric(
    path: FloatArray, local: FloatArray, time: float, place: FloatArray, speed: FloatArray
) -> float:
    """Geocentric state at ``time`` of a series; returns position times velocity."""
    evaluate(path, ORDER, time, place, speed)
    rise = 0.0
    for axis in range(3):
        value, slope = local[0, axis, ATTRACTOR_TERMS - 1], 0.0
        for power in range(ATTRACTOR_TERMS - 2, -1, -1):
            slope = slope * time + value
            value = value * time + local[0, axis, power]
        place[axis] -= value
        speed[axis] -= slope
        rise += place[axis] * speed[axis]
    return rise


@compiled
def _square(place: FloatArray) -> float:
    return place[0] * place[0] + place[1] * place[1] + place[2] * place[2]


@compiled
def _nearest_within(
    path: FloatArray, local: FloatArray, step: float, place: FloatArray, speed: FloatArray
) -> float:
    """Time of the least distance within a step at whose beginning it falls, at whose end it rises.

    A step is a fraction of the time in which the geometry changes: there is one minimum at most.
    """
    low, high = 0.0, step
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if _geocentric(path, local, middle, place, speed) < 0.0:
            low = middle
        else:
            high = middle
    return high


@compiled
def _entry_before(
    path: FloatArray, local: FloatArray, inside: float, place: FloatArray, speed: FloatArray
) -> float:
    """Time at which the surface is passed before ``inside``, when the object is below it."""
    low, high = 0.0, inside
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        _geocentric(path, local, middle, place, speed)
        if _square(place) < R_EARTH * R_EARTH:
            high = middle
        else:
            low = middle
    return high


@announced("the approaches of objects to the Earth", 10)
@compiled
def _approach(
    r: FloatArray,
    v: FloatArray,
    epoch: FloatArray,
    paths: FloatArray,
    end: float,
    time: FloatArray,
    distance: FloatArray,
    falls: BoolArray,
    position: FloatArray,
    velocity: FloatArray,
    is_followed: BoolArray,
) -> None:
    space, path, local = series_space(), np.zeros((ORDER + 1, 3)), np.empty((2, 3, ATTRACTOR_TERMS))
    place, speed = np.empty(3), np.empty(3)
    most = _MOST_STEPS + len(paths)
    for k in range(len(r)):
        moment, steps = epoch[k], 0
        reach = _begin(r[k], v[k], moment, paths, path, local, space)
        rise = _geocentric(path, local, 0.0, place, speed)
        if not (reach > 0.0 and moment <= end and math.isfinite(rise)):
            continue
        least = _square(place)
        time[k], position[k], velocity[k] = moment, place, speed
        falls[k] = least < R_EARTH * R_EARTH
        while reach > 0.0 and moment < end and steps < most and not falls[k]:
            step = min(reach, end - moment)
            last, later = step, _geocentric(path, local, step, place, speed)
            if rise < 0.0 < later:
                last = _nearest_within(path, local, step, place, speed)
                _geocentric(path, local, last, place, speed)
            if _square(place) < R_EARTH * R_EARTH:
                last, falls[k] = _entry_before(path, local, last, place, speed), True
                _geocentric(path, local, last, place, speed)
            if _square(place) < least:
                least = _square(place)
                time[k], position[k], velocity[k] = moment + last, place, speed
            # the end is met exactly, or rounding would leave a step of no length
            moment = end if step < reach else moment + step
            steps += 1
            rise = later
            reach = _go_on(step, moment, paths, path, local, space)
        distance[k] = R_EARTH if falls[k] else math.sqrt(least)
        is_followed[k] = falls[k] or moment >= end


def approaches(
    r: FloatArray, v: FloatArray, epoch: FloatArray, almanac: Almanac, end: float
) -> Approaches:
    """Nearest approaches of K objects to the Earth from their epochs to an instant.

    The Earth is a sphere of its equatorial radius, without atmosphere.

    Parameters
    ----------
    r, v : ndarray, shape (K, 3)
        Heliocentric states [au, au/d]; of NaN nothing is followed.
    epoch : ndarray, shape (K,)
        Their epochs [MJD TDB].
    almanac : Almanac
        Of all days from the epochs to the end.
    end : float
        End of the flights [MJD TDB].
    """
    n, start = len(r), almanac.start
    r, v, epoch = (np.ascontiguousarray(x, dtype=np.float64) for x in (r, v, epoch - start))
    result = Approaches(
        np.full(n, np.nan),
        np.full(n, np.nan),
        np.zeros(n, dtype=bool),
        np.full((n, 3), np.nan),
        np.full((n, 3), np.nan),
        np.zeros(n, dtype=bool),
    )
    _approach(r, v, epoch, almanac.paths, end - start, *result)
    return result._replace(time=result.time + start)
