"""The simulated surveys of four decades: stations, brightness, limits, darkness.

The figures of the stations and of the search are our own: round numbers, chosen so that a simulated
set has the distributions of the real one. They describe how the sky was searched, not what one
telescope can do. Magnitudes follow the H, G system of the IAU, losses by trailing those of the
simulations of the Rubin Observatory (Jones et al. 2018).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from neoranging.core.columns import take
from neoranging.core.ephemeris import earth_rotation_angle
from neoranging.ephemeris.states import earth_state
from neoranging.exceptions import UnknownStationError
from neoranging.observations import observatories
from neoranging.typing import AnyArray, BoolArray, FloatArray, IntArray, StrArray

State = tuple[tuple[AnyArray, ...], tuple[AnyArray, ...]]
"""Components x, y, z of position [au] and velocity [au/d], ICRS axes."""


class Stations(NamedTuple):
    """Observing habits of stations, one array for each."""

    code: StrArray
    """MPC codes."""
    weight: FloatArray
    """Share of the tracklets while the station works, relative to the others."""
    limit: FloatArray
    """Magnitude at which half of the objects are measured."""
    first_year: FloatArray
    """Year in which the station begins to observe."""
    last_year: FloatArray
    """Year in which it ends."""
    exposures: FloatArray
    """Mean number of exposures in a tracklet; three at least."""
    gap_min: FloatArray
    """Typical time between exposures [min]."""
    fine_since: FloatArray
    """Year since which the station reports 0.001 s, 0.01 arcsec and 1e-6 d; before that 0.01 s,
    0.1 arcsec and 1e-5 d."""


_ALWAYS, _NEVER = 1900.0, 2100.0

_STATION_ROWS: Final = (
    # searching: four or five exposures, in one sweep over a field
    ("691", 5.0, 21.3, _ALWAYS, _NEVER, 3.3, 25.0, 2018.0),
    ("566", 6.0, 19.4, 1995.9, 1999.2, 3.2, 15.0, _NEVER),
    ("608", 8.0, 19.6, 2000.0, 2002.6, 3.2, 17.0, _NEVER),
    ("644", 10.0, 20.3, 2001.3, 2007.3, 3.2, 15.0, _NEVER),
    ("704", 60.0, 19.4, 1998.2, 2013.4, 4.6, 20.0, _NEVER),
    ("699", 9.0, 19.4, 1998.2, 2008.2, 4.2, 15.0, _NEVER),
    ("703", 26.0, 19.9, 1998.4, _NEVER, 4.1, 9.0, 2019.0),
    ("E12", 12.0, 19.6, 2004.3, 2013.5, 4.1, 10.0, _NEVER),
    ("G96", 55.0, 21.7, 2004.8, _NEVER, 4.1, 7.5, 2016.0),
    ("D29", 5.0, 20.6, 2007.0, _NEVER, 4.3, 12.0, _NEVER),
    ("F51", 55.0, 22.0, 2010.5, _NEVER, 3.9, 16.0, 2010.5),
    ("F52", 38.0, 22.0, 2017.6, _NEVER, 3.9, 16.0, 2017.6),
    ("T05", 20.0, 19.5, 2015.9, _NEVER, 4.0, 12.0, 2017.0),
    ("T08", 20.0, 19.5, 2017.1, _NEVER, 4.0, 12.0, 2017.1),
    ("I41", 14.0, 20.3, 2018.2, _NEVER, 3.4, 20.0, 2018.2),
    ("M22", 8.0, 19.5, 2022.1, _NEVER, 4.0, 12.0, 2022.1),
    ("W68", 8.0, 19.5, 2022.1, _NEVER, 4.0, 12.0, 2022.1),
    ("V00", 12.0, 22.2, 2019.0, _NEVER, 4.0, 8.0, 2019.0),
    # following up: three exposures or more of one object
    ("675", 4.0, 19.0, _ALWAYS, 1995.9, 3.1, 25.0, _NEVER),
    ("474", 3.0, 20.8, _ALWAYS, _NEVER, 3.5, 6.0, 2018.0),
    ("568", 7.0, 23.2, _ALWAYS, _NEVER, 3.5, 6.0, 2012.0),
    ("950", 3.0, 22.0, _ALWAYS, _NEVER, 4.0, 5.0, _NEVER),
    ("246", 5.0, 20.5, 1994.0, _NEVER, 3.8, 7.0, 2018.0),
    ("673", 3.0, 20.3, 1998.0, _NEVER, 4.5, 8.0, 2018.0),
    ("926", 5.0, 20.6, 2000.0, _NEVER, 3.6, 9.0, _NEVER),
    ("204", 3.0, 20.2, 1999.0, _NEVER, 3.6, 7.0, _NEVER),
    ("291", 13.0, 22.2, 2001.8, _NEVER, 3.6, 8.0, 2018.0),
    ("H21", 8.0, 21.3, 2002.0, _NEVER, 4.0, 11.0, _NEVER),
    ("J95", 6.0, 20.2, 2004.0, _NEVER, 4.6, 10.0, 2019.0),
    ("H01", 6.0, 21.8, 2008.5, _NEVER, 4.0, 4.0, 2018.0),
    ("J04", 6.0, 21.8, 2009.0, _NEVER, 4.0, 5.0, 2018.0),
    ("L01", 3.0, 20.8, 2011.0, _NEVER, 4.2, 5.0, 2019.0),
    ("W84", 3.0, 23.0, 2013.5, _NEVER, 4.5, 5.0, 2013.5),
    ("I52", 14.0, 21.6, 2014.0, _NEVER, 4.0, 5.0, 2018.0),
    ("V06", 6.0, 21.6, 2015.5, _NEVER, 4.0, 5.0, 2018.0),
    ("K92", 4.0, 21.2, 2014.5, _NEVER, 5.0, 4.0, 2018.0),
    ("Q63", 4.0, 21.2, 2014.5, _NEVER, 5.0, 4.0, 2018.0),
    ("W85", 4.0, 21.2, 2014.5, _NEVER, 5.0, 4.0, 2018.0),
    ("V37", 4.0, 21.2, 2014.5, _NEVER, 5.0, 4.0, 2018.0),
    ("Q62", 3.0, 20.3, 2012.0, _NEVER, 4.0, 5.0, 2019.0),
)

STATIONS: Final = Stations._make(map(np.array, zip(*_STATION_ROWS, strict=True)))
"""Surveys and follow-up stations that stand for all the others."""

# Depth of the search at half efficiency, and what the weights of the stations at work are brought
# to: observations per year relative to 2020.
_YEARS = np.array([1985.0, 1995.0, 1998.0, 2002.0, 2006.0, 2010.0, 2014.0, 2018.0, 2022.0, 2026.0])
_LIMIT = np.array([18.3, 18.8, 19.3, 20.0, 20.8, 21.2, 21.6, 21.9, 22.0, 22.1])
_ACTIVITY = np.array([0.01, 0.03, 0.10, 0.22, 0.33, 0.42, 0.62, 0.85, 1.10, 1.25])
_LIMIT_TODAY_MAG: Final = 22.0
"""Depth of the search in 2022 [mag], which `Survey.limiting_magnitude` moves."""

_FAR_BEYOND: Final = 5.0
"""Scales of the efficiency beyond the limit at which a station measures nothing any more: less
than one object in a hundred."""

_LN10 = np.log(10.0)

_EFFORT_STEP: Final = (0.25, 0.05)
_EFFORT_YEARS = np.arange(1980.0, 2031.0, _EFFORT_STEP[0])
_EFFORT_MAGNITUDES = np.arange(10.0, 30.0, _EFFORT_STEP[1])


def is_fine(code: StrArray, mjd: npt.ArrayLike) -> BoolArray:
    """Flags of the observations whose stations report one digit more by then.

    Stations that are not simulated never do.
    """
    order = np.argsort(STATIONS.code)
    row = order[np.searchsorted(STATIONS.code, code, sorter=order) % len(order)]
    since = np.where(STATIONS.code[row] == code, STATIONS.fine_since[row], _NEVER)
    return year_of(mjd) >= since


def year_of(mjd: npt.ArrayLike) -> FloatArray:
    """Julian year of a modified Julian date."""
    return 2000.0 + (np.asarray(mjd, dtype=np.float64) - 51_544.5) / 365.25


class Aspect(NamedTuple):
    """Brightness, place and motion of objects seen from the centre of the Earth."""

    magnitude: AnyArray
    """Apparent magnitude in the band of the absolute magnitude."""
    elongation: AnyArray
    """Angle from the Sun [rad]."""
    rate: AnyArray
    """Speed on the sky [rad/d]."""
    sin_dec: AnyArray
    """Sine of the declination."""


def hg_magnitude(
    H: AnyArray, G: AnyArray, sun: AnyArray, earth: AnyArray, cos_phase: AnyArray
) -> AnyArray:
    """Apparent magnitude in the H, G system (Bowell et al. 1989, in Asteroids II, 524).

    Distances are from the Sun and the Earth [au], the phase is the angle at the object.
    """
    half = np.sqrt(np.maximum(1.0 - cos_phase, 0.0) / np.maximum(1.0 + cos_phase, 1e-6))
    phi1 = np.exp(-3.33 * half**0.63)
    phi2 = np.exp(-1.87 * half**1.22)
    shine = np.maximum((1.0 - G) * phi1 + G * phi2, 1e-12)
    return H + 5.0 * np.log10(sun * earth) - 2.5 * np.log10(shine)


def aspect(objects: State, earth: State, H: AnyArray, G: AnyArray) -> Aspect:
    """Aspect of objects seen from the centre of the Earth, both by their heliocentric states."""
    (r, v), (earth_r, earth_v) = objects, earth
    path = [a - b for a, b in zip(r, earth_r, strict=True)]
    drift = [a - b for a, b in zip(v, earth_v, strict=True)]
    distance = np.sqrt(sum(x * x for x in path))
    sun = np.sqrt(sum(x * x for x in r))
    cos_phase = sum(a * b for a, b in zip(r, path, strict=True)) / (sun * distance)
    away = sum(a * b for a, b in zip(earth_r, path, strict=True))
    cos_elongation = -away / (distance * np.sqrt(sum(x * x for x in earth_r)))
    radial = sum(a * b for a, b in zip(path, drift, strict=True)) / distance
    across = np.sqrt(np.maximum(sum(x * x for x in drift) - radial * radial, 0.0))
    return Aspect(
        hg_magnitude(H, G, sun, distance, cos_phase),
        np.arccos(np.clip(cos_elongation, -1.0, 1.0)),
        across / distance,
        path[2] / distance,
    )


def geocentric_aspect(
    r: FloatArray, v: FloatArray, mjd: FloatArray, H: FloatArray, G: FloatArray
) -> Aspect:
    """Aspect of states of shape (M, 3), each at its epoch [MJD TDB]."""
    earth_r, earth_v = earth_state(mjd)
    earth = tuple(earth_r.T), tuple(earth_v.T)
    return aspect((tuple(r.T), tuple(v.T)), earth, H, G)


def _log_logistic(x: AnyArray) -> AnyArray:
    """Logarithm of 1 / (1 + exp(-x)), without overflow."""
    return -np.logaddexp(np.zeros((), dtype=x.dtype), -x)


def _trailing_loss(
    rate: AnyArray, exposure_s: float = 90.0, seeing_arcsec: float = 2.0
) -> AnyArray:
    """Magnitudes lost as the light of a fast object is spread over a trail.

    The form and constants are those of Jones et al. (2018, Icarus 303, 181) for the signal to
    noise ratio of a trailed source.
    """
    x = np.degrees(rate) * exposure_s / (24.0 * seeing_arcsec)
    return 1.25 * np.log10(1.0 + 0.761 * x * x / (1.0 + 1.162 * x))


@dataclass(frozen=True)
class Survey:
    """Stations, depth of the search, and limits of darkness and altitude.

    Attributes
    ----------
    limiting_magnitude : float
        Magnitude at which half of the objects are found in 2022; earlier years are shallower by
        the same table whatever the value.
    softness : float
        Scale of the logistic efficiency [mag].
    follow_up_depth : float
        How much fainter known objects are measured than unknown ones are found [mag].
    appeal : float
        Growth of the number of tracklets per magnitude that an object is brighter, for the many
        small telescopes that are not simulated one by one [dex/mag].
    half_elongation_deg, elongation_softness_deg : float
        Angle from the Sun at which half of the effort is left, and the scale of the decline.
    least_altitude_deg, sun_altitude_deg : float
        Least altitude of an object, and largest of the Sun.
    codes : collection of str
        The stations taken; all of `STATIONS` by default.
    """

    limiting_magnitude: float = _LIMIT_TODAY_MAG
    softness: float = 0.4
    follow_up_depth: float = 0.8
    appeal: float = 0.88
    half_elongation_deg: float = 75.0
    elongation_softness_deg: float = 12.0
    least_altitude_deg: float = 25.0
    sun_altitude_deg: float = -14.0
    codes: Collection[str] = ()

    def __post_init__(self) -> None:
        for code in self.codes:
            if code not in STATIONS.code:
                raise UnknownStationError(
                    f"station {code!r} is not simulated; "
                    f"take some of {', '.join(sorted(STATIONS.code.tolist()))}",
                    code=code,
                )

    @cached_property
    def columns(self) -> Stations:
        """The stations taken, in order of `STATIONS`."""
        rows = np.isin(STATIONS.code, list(self.codes or STATIONS.code))
        return take(STATIONS, rows)

    @cached_property
    def itrf(self) -> FloatArray:
        """Earth-fixed places of the stations, shape (n_stations, 3) [m]."""
        return observatories.itrf_positions(self.columns.code)

    @cached_property
    def longitude(self) -> FloatArray:
        """East longitudes of the stations in [-1/2, 1/2), shape (n_stations,) [turns]."""
        return (observatories.east_longitude(self.columns.code) / 360.0 + 0.5) % 1.0 - 0.5

    def limit(self, mjd: npt.ArrayLike) -> FloatArray:
        """Magnitude at which half of the unknown objects are found."""
        offset = self.limiting_magnitude - _LIMIT_TODAY_MAG
        return np.interp(year_of(mjd), _YEARS, _LIMIT) + offset

    def activity(self, mjd: npt.ArrayLike) -> FloatArray:
        """Observations per night relative to 2020."""
        return np.interp(year_of(mjd), _YEARS, _ACTIVITY)

    def log_detection(self, view: Aspect, mjd: AnyArray, depth: float = 0.0) -> AnyArray:
        """Logarithm of the chance that objects are measured on a night, darkness left aside."""
        dtype = view.magnitude.dtype
        limit = (self.limit(mjd) + depth).astype(dtype)
        faintness = view.magnitude + _trailing_loss(view.rate).astype(dtype)
        bright = _log_logistic((limit - faintness) / np.asarray(self.softness, dtype))
        return bright + self._log_sky(view)

    def _log_sky(self, view: Aspect) -> AnyArray:
        """Logarithm of the effort by place on the sky.

        It falls towards the Sun, and to the south: two thirds of the telescopes are in the north.
        """
        dtype = view.magnitude.dtype
        away = np.degrees(view.elongation) - self.half_elongation_deg
        dec = np.degrees(np.arcsin(np.clip(view.sin_dec, -1.0, 1.0)))
        north = np.log(0.15 + 0.85 / (1.0 + np.exp(-(dec + 35.0) / 6.0)))
        return (_log_logistic(away / self.elongation_softness_deg) + north).astype(dtype)

    def log_effort(self, view: Aspect, mjd: AnyArray) -> AnyArray:
        """Logarithm of the number of tracklets that all stations take of objects on a night.

        Relative to objects that all can see in 2020. What many small telescopes can measure is
        measured more often than what few large ones can.
        """
        year = ((year_of(mjd) - _EFFORT_YEARS[0]) / _EFFORT_STEP[0] + 0.5).astype(np.int64)
        faintness = view.magnitude + _trailing_loss(view.rate)
        magnitude = ((faintness - _EFFORT_MAGNITUDES[0]) / _EFFORT_STEP[1] + 0.5).astype(np.int64)
        table = self._effort
        row = np.clip(year, 0, table.shape[0] - 1)
        column = np.clip(magnitude, 0, table.shape[1] - 1)
        return table[row, column].astype(view.magnitude.dtype) + self._log_sky(view)

    @cached_property
    def _effort(self) -> FloatArray:
        """Effort by year and magnitude, shape (n_years, n_magnitudes)."""
        log_rate = self._log_rate(_EFFORT_YEARS[:, None], _EFFORT_MAGNITUDES)
        total = np.logaddexp.reduce(log_rate, axis=-1)
        total -= _LN10 * self.appeal * _EFFORT_MAGNITUDES
        activity = np.log(np.interp(_EFFORT_YEARS, _YEARS, _ACTIVITY))
        with np.errstate(invalid="ignore"):
            scaled = total - total[:, :1] + activity[:, None]
        return np.where(np.isfinite(total), scaled, -np.inf)

    def _log_rate(self, year: FloatArray, faintness: FloatArray) -> FloatArray:
        """Logarithm of the tracklets of each station; stations along a new last axis."""
        station = self.columns
        year, faintness = year[..., None], faintness[..., None]
        at_work = (year >= station.first_year) & (year < station.last_year)
        limit = station.limit + (self.limiting_magnitude - _LIMIT_TODAY_MAG)
        bright = _log_logistic((limit - faintness) / self.softness)
        return np.where(at_work, np.log(station.weight) + bright, -np.inf)

    def log_choice(self, view: Aspect, mjd: FloatArray) -> FloatArray:
        """Logarithm of how willingly each station takes objects, shape (M, n_stations)."""
        return self._log_rate(year_of(mjd), view.magnitude + _trailing_loss(view.rate))

    def is_measurable(self, view: Aspect, station: IntArray) -> BoolArray:
        """Mask of the objects not far beyond the limit of their station, one for each."""
        limit = self.columns.limit[station] + (self.limiting_magnitude - _LIMIT_TODAY_MAG)
        faintness = view.magnitude + _trailing_loss(view.rate)
        return faintness < limit + _FAR_BEYOND * self.softness

    def night(self, station: IntArray, mjd_utc: FloatArray) -> IntArray:
        """Number of the night at the stations, from local noon to noon."""
        return np.floor(mjd_utc + self.longitude[station] - 0.5).astype(np.int64)

    def zenith(self, station: IntArray, mjd_utc: FloatArray) -> FloatArray:
        """Directions away from the centre of the Earth, shape (..., 3), to a tenth of a degree."""
        x, y, z = (self.itrf / np.linalg.norm(self.itrf, axis=1)[:, None]).T
        angle = earth_rotation_angle(mjd_utc) + np.arctan2(y, x)[station]
        across = np.hypot(x, y)[station]
        level = np.broadcast_to(z[station], angle.shape)
        return np.stack([across * np.cos(angle), across * np.sin(angle), level], axis=-1)
