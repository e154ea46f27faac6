"""Days of UTC, which a leap second makes longer.

A fraction of a day is one of the whole day, leap second included, as in SOFA's quasi-Julian dates
and therefore in `astropy.time.Time`.
"""

from __future__ import annotations

from functools import cache
from typing import Final

import erfa
import numpy as np
from astropy.time import Time

from neoranging.constants import DAY_S
from neoranging.observations.fixed_width import calendar_to_mjd
from neoranging.typing import FloatArray, IntArray

MJD_1970: Final = 40_587
"""Modified Julian date of 1970 January 1, day zero of numpy's dates."""

_FIRST_LEAP_YEAR: Final = 1972
_MJD_ZERO: Final = 2_400_000.5


def utc_days(time: Time) -> tuple[IntArray, FloatArray]:
    """Split times into whole modified Julian dates (UTC) and fractions in [0, 1), (N,) each."""
    utc = time.utc
    start = np.atleast_1d(utc.jd1) - _MJD_ZERO
    day = np.floor(start)
    rest = (start - day) + np.atleast_1d(utc.jd2)
    carry = np.floor(rest)
    return (day + carry).astype(np.int64), rest - carry


def seconds_in_day(mjd: IntArray) -> FloatArray:
    """Length of UTC days by their modified Julian dates, 86401 with a leap second, (N,) [s]."""
    return np.where(np.isin(mjd, _long_days()), DAY_S + 1.0, DAY_S)


@cache
def _long_days() -> IntArray:
    """Modified Julian dates of the days that end with a leap second."""
    steps = erfa.leap_seconds.get()
    # The first entry of 1972 sets TAI - UTC to 10 s; all later ones are leap seconds.
    late = steps[steps["year"] >= _FIRST_LEAP_YEAR][1:]
    year, month = late["year"].astype(np.int64), late["month"].astype(np.int64)
    return calendar_to_mjd(year, month, np.ones_like(year))[0] - 1
