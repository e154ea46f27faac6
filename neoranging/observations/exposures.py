"""Records of one exposure: the same moment seen from one place, however often it is reported.

A night comes twice where files overlap, where the same images are measured under two programme
codes or in several apertures, and where one file gives the epochs with fewer digits than another.
Each of these is one observation; counted as several they make errors too small.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from neoranging.constants import DAY_S
from neoranging.observations.columns import Columns
from neoranging.typing import BoolArray, FloatArray, IntArray

UNITS: Final = tuple(
    sorted(
        [*(10.0**-k for k in (5, 6, 7, 8)), *(10.0**-k / DAY_S for k in (0, 1, 2, 3))],
        reverse=True,
    )
)
"""Last digits in which epochs are written, of a day or of a second, from a second on [d]."""

NOISE: Final = 2e-11
"""Rounding error of an epoch as a modified Julian date in double precision [d]."""

EQUAL: Final = 1e-3
"""Difference of epochs that counts as none [s]."""

SAME_PLACE: Final = 1000.0
"""Distance within which two places of a roving observer are one [m]."""


def written_resolution(jd1: FloatArray, jd2: FloatArray) -> FloatArray:
    """Unit of the last digit with which epochs were written, at most a second, (n,) [d].

    Found from the values: epochs that are whole multiples of a unit are taken to be written with
    it. Zero for epochs that are multiples of none, such as those of a simulation.
    """
    fraction = ((jd1 - np.floor(jd1)) + jd2) % 1.0
    resolution = np.zeros(len(fraction))
    rest = np.arange(len(fraction))
    for unit in UNITS:
        digits = fraction[rest] / unit
        is_multiple = np.abs(digits - np.rint(digits)) * unit < NOISE
        resolution[rest[is_multiple]] = unit
        rest = rest[~is_multiple]
    return resolution


def repeated_exposures(c: Columns, key: IntArray, used: BoolArray) -> BoolArray:
    """True for records of an exposure that another record represents.

    Records of one group and station are of one exposure if their epochs differ by no more than the
    last digit written, and by less than a second; in a series of exposures as fast as that, if
    their epochs are equal. The one with the most digits in its epoch, then with the smallest sigma,
    represents the exposure; it stays as it is, with its own error. ``key`` is the number of the
    group of each row, and only ``used`` rows are looked at.
    """
    repeated = np.zeros(len(key), dtype=bool)
    rows = np.flatnonzero(used)
    if not len(rows):
        return repeated
    station = number_of_value(c.station[rows])
    by_time = np.lexsort((c.jd2[rows], c.jd1[rows], station, key[rows]))
    order, station = rows[by_time], station[by_time]
    seconds = (np.diff(c.jd1[order]) + np.diff(c.jd2[order])) * DAY_S
    moved = np.linalg.norm(np.diff(c.itrf[order], axis=0), axis=1)
    near = (np.diff(key[order]) == 0) & (np.diff(station) == 0)
    near &= (seconds < 1.0 - EQUAL) & ~(moved > SAME_PLACE)  # NaN for spacecraft
    if not near.any():
        return repeated
    unit = written_resolution(c.jd1[order], c.jd2[order])
    exposure = _exposures(near, seconds, unit * DAY_S)
    shared = np.flatnonzero(np.bincount(exposure)[exposure] > 1)
    order, unit, exposure = order[shared], unit[shared], exposure[shared]
    measured = (c.dec[order], c.ra[order], c.sigma[order].sum(axis=1))
    best = np.lexsort((*measured, unit, exposure))
    repeated[order[best[1:]]] = np.diff(exposure[best]) == 0
    return repeated


def _exposures(near: BoolArray, seconds: FloatArray, unit: FloatArray) -> IntArray:
    """Number of the exposure of each record in order of time; ``near`` pairs may be joined."""
    digit = np.maximum(unit[1:], unit[:-1])
    joined = near & (seconds <= 1.01 * digit + EQUAL)
    number = running_number(~joined)
    starts = np.flatnonzero(np.diff(number, prepend=-1))
    ends = np.append(starts[1:], len(number)) - 1
    elapsed = np.concatenate([[0.0], np.cumsum(seconds)])
    long = elapsed[ends] - elapsed[starts] > 1.01 * np.maximum.reduceat(unit, starts) + EQUAL
    # in a fast series of exposures the neighbours are as near as two roundings of one
    fast = long[number][1:]
    return running_number(~(joined & (~fast | (seconds <= EQUAL))))


def running_number(new: BoolArray) -> IntArray:
    """Number from 0 that rises at every True between neighbours, (n + 1,) for n pairs of them."""
    return np.concatenate([[0], np.cumsum(new)]).astype(np.int64)


def number_of_value(values: npt.NDArray[np.generic]) -> IntArray:
    """Number of each distinct value, counted from 0 in the order in which they first appear."""
    _, first, number = np.unique(values, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[number]
