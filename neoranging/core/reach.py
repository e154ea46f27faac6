"""Orbits that cannot meet the Earth within days: those whose straight lines stay clear of it.

An orbit that is followed costs twenty microseconds; most draws of a night are nowhere near.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from neoranging.constants import GM_EARTH
from neoranging.core.geometry import dot
from neoranging.typing import BoolArray, FloatArray

_MOST_BEND: Final = 1.5e-3
_BEND: Final = 1.8e-3
"""Difference of the pulls of the Sun on an object and on the Earth, at most [au/d^2], and by their
distance [1/d^2]: of objects no nearer to the Sun than half way."""

_NEAR_AU: Final = 0.01
"""Distance from the Earth below which her own pull counts, and with it all that is neglected."""

_STRAIGHT_STEP_D: Final = 0.5
"""Distance of the instants that are looked at [d]."""


def may_meet(line: FloatArray, speed: FloatArray, sun: FloatArray, days: float) -> BoolArray:
    """Flags of orbits that may meet the Earth within so many days; false excludes it.

    A path relative to the Earth leaves the straight line by no more than the difference of the
    pulls of the Sun lets it, which grows with the distance from the Earth. What begins nearer to
    the Sun than half way is not judged.

    Parameters
    ----------
    line, speed : ndarray, shape (n, 3)
        Geocentric states [au, au/d], good to some thousandths of an au.
    sun : ndarray, shape (n,)
        Distances from the Sun [au].
    days : float
    """
    time = np.arange(0.0, days + _STRAIGHT_STEP_D, _STRAIGHT_STEP_D)
    a, b, c = (dot(x, y)[:, None] for x, y in ((line, line), (line, speed), (speed, speed)))
    distance = np.sqrt(np.maximum(a + time * (2.0 * b + time * c), 0.0))
    farthest = 1.2 * distance.max(axis=1, keepdims=True) + _NEAR_AU
    bend = 0.5 * np.minimum(_BEND * farthest, _MOST_BEND) * (time + _STRAIGHT_STEP_D) ** 2
    near = distance < bend + 0.5 * _STRAIGHT_STEP_D * np.sqrt(c) + _NEAR_AU
    # what recedes at more than the speed of escape, half as much again, keeps half of its way
    recedes = (b > 0.0) & (c > 3.0 * GM_EARTH / np.sqrt(a))
    may = np.where(recedes, 0.5 * distance < bend, near)
    return np.asarray(may.any(axis=1) | (sun < 0.5))
