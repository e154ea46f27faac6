"""Compiled evaluation of series of time, and the turning of sites with the Earth."""

from __future__ import annotations

import numpy as np

from neoranging.constants import AU_M, DAY_S, EARTH_ROTATION_RATE
from neoranging.core.compiled import announced, compiled
from neoranging.core.ephemeris import Pieces, earth_rotation_angle
from neoranging.typing import FloatArray

_rotation_angle = compiled(earth_rotation_angle)


@compiled
def _locate(epoch: float, pieces: Pieces) -> tuple[int, float]:
    """Row of the polynomial of an epoch, -1 where there is none, and the place in the cell."""
    place = (epoch - pieces.start) / pieces.step
    n_cells = pieces.rows.size
    if not 0.0 <= place <= n_cells:  # NaN too
        return -1, 0.0
    cell = min(int(place), n_cells - 1)
    return pieces.rows[cell], 2.0 * (place - cell) - 1.0


@compiled
def _polynomial(coefficients: FloatArray, x: float) -> float:
    value = coefficients[-1]
    for k in range(coefficients.size - 2, -1, -1):
        value = value * x + coefficients[k]
    return value


@announced("the series of the ephemerides", 1)
@compiled
def evaluate(epoch: FloatArray, pieces: Pieces, values: FloatArray) -> int:
    """Values of a series at epochs; the number of epochs done before one without a polynomial.

    Parameters
    ----------
    epoch : ndarray, shape (N,)
        Epochs [MJD].
    pieces : Pieces
        Polynomials of the series.
    values : ndarray, shape (N, n_components)
        Filled.
    """
    for i in range(epoch.size):
        row, x = _locate(epoch[i], pieces)
        if row < 0:
            return i
        for component in range(pieces.coefficients.shape[1]):
            values[i, component] = _polynomial(pieces.coefficients[row, component], x)
    return epoch.size


@announced("the series of the ephemerides with rates", 1)
@compiled
def evaluate_with_rate(
    epoch: FloatArray, pieces: Pieces, values: FloatArray, rates: FloatArray
) -> int:
    """Values and time derivatives [1/d] of a series; see `evaluate`."""
    for i in range(epoch.size):
        row, x = _locate(epoch[i], pieces)
        if row < 0:
            return i
        for component in range(pieces.coefficients.shape[1]):
            terms = pieces.coefficients[row, component]
            value, slope = terms[-1], 0.0
            for k in range(terms.size - 2, -1, -1):
                slope = slope * x + value
                value = value * x + terms[k]
            values[i, component] = value
            rates[i, component] = slope * (2.0 / pieces.step)
    return epoch.size


@compiled
def _tilt(x: float, y: float, z: float, cip_x: float, cip_y: float) -> tuple[float, float, float]:
    """Turn intermediate axes into celestial ones; IERS Conventions eq. 5.10."""
    sine2 = cip_x * cip_x + cip_y * cip_y
    a = 1.0 / (1.0 + np.sqrt(1.0 - sine2))
    along = cip_x * x + cip_y * y
    lifted = z - a * along
    return x + cip_x * lifted, y + cip_y * lifted, z - along - a * sine2 * z


@announced("the rotation of the Earth", 2)
@compiled
def turn_sites(
    epoch: FloatArray,
    tdb_tt: Pieces,
    pole: Pieces,
    days: FloatArray,
    measured: FloatArray,
    itrf: FloatArray,
    position: FloatArray,
    velocity: FloatArray,
) -> int:
    """Geocentric celestial states of Earth-fixed sites, each at its epoch.

    Parameters
    ----------
    epoch : ndarray, shape (N,)
        Epochs [MJD TDB].
    tdb_tt : Pieces
        Polynomials of TDB - TT [s].
    pole : Pieces
        Polynomials of the coordinates X, Y of the celestial intermediate pole and of s + XY / 2, s
        the locator of the origin [rad].
    days : ndarray, shape (D,)
        Epochs of the measured rotation [MJD TT], a day apart but for leap seconds.
    measured : ndarray, shape (D, 3)
        UT1 - TT [d] and the coordinates x_p, y_p of the pole [rad] at these epochs; held at the
        first and last value outside.
    itrf : ndarray, shape (N, 3)
        Earth-fixed positions [m].
    position, velocity : ndarray, shape (N, 3)
        Filled, GCRS axes (those of the ICRS) [au], [au/d].

    Returns
    -------
    int
        Number of epochs done before one without a polynomial.

    Notes
    -----
    IERS Conventions (2010), eqs. 5.1, 5.3 and 5.10. The polar motion is taken to first order and
    the locator s' is left out: together below 2 mm. The velocity is that of rigid rotation about
    the pole.
    """
    for i in range(epoch.size):
        row, place = _locate(epoch[i], tdb_tt)
        if row < 0:
            return i
        tt = epoch[i] - _polynomial(tdb_tt.coefficients[row, 0], place) / DAY_S
        row, place = _locate(epoch[i], pole)  # which does not move in the 2 ms from TDB to TT
        if row < 0:
            return i
        terms = pole.coefficients[row]
        cip_x, cip_y = _polynomial(terms[0], place), _polynomial(terms[1], place)
        locator = _polynomial(terms[2], place) - 0.5 * cip_x * cip_y
        day, part = _day(tt, days)
        ut1_tt = _between(measured[:, 0], day, part)
        xp, yp = _between(measured[:, 1], day, part), _between(measured[:, 2], day, part)
        x, y, z = itrf[i, 0] / AU_M, itrf[i, 1] / AU_M, itrf[i, 2] / AU_M
        # terrestrial intermediate frame, eq. 5.3
        x, y, z = x - xp * z, y + yp * z, z + xp * x - yp * y
        # one turn takes in both the rotation of the Earth and the locator of the origin
        angle = _rotation_angle(tt + ut1_tt) - locator
        cos, sin = np.cos(angle), np.sin(angle)
        x, y = cos * x - sin * y, sin * x + cos * y
        position[i, 0], position[i, 1], position[i, 2] = _tilt(x, y, z, cip_x, cip_y)
        vx, vy, vz = _tilt(-y, x, 0.0, cip_x, cip_y)
        velocity[i, 0] = EARTH_ROTATION_RATE * vx
        velocity[i, 1] = EARTH_ROTATION_RATE * vy
        velocity[i, 2] = EARTH_ROTATION_RATE * vz
    return epoch.size


@compiled
def _day(tt: float, days: FloatArray) -> tuple[int, float]:
    """Interval of the table that holds an epoch, and the part of it that is over, from 0 to 1."""
    last = days.size - 2
    day = min(max(int(tt - days[0]), 0), last)
    while day < last and tt >= days[day + 1]:
        day += 1
    while day > 0 and tt < days[day]:
        day -= 1
    return day, min(max((tt - days[day]) / (days[day + 1] - days[day]), 0.0), 1.0)


@compiled
def _between(column: FloatArray, day: int, part: float) -> float:
    return column[day] + part * (column[day + 1] - column[day])
