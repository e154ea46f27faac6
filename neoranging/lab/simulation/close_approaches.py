"""Close passages of the Earth: real orbits turned until they lead past it.

A catalogue holds few objects at the time they are close. Here the shape and the inclination of an
orbit, and the size of the object, are those of a real one; node, argument of perihelion and
anomaly are such that the orbit leads through a given point near the Earth. Passages are drawn
log-uniform in the distance from the centre of the Earth at the middle of the arc. The limits
are our own; how often an orbit comes by a place follows Opik (1951).
"""

from __future__ import annotations

import dataclasses
from typing import Final

import numpy as np
from astropy.time import Time

from neoranging.constants import C_AU_PER_DAY
from neoranging.core.elements import Elements, elements_to_state
from neoranging.core.geometry import dot, ecliptic_to_equatorial, equatorial_to_ecliptic, norm
from neoranging.core.kepler import mean_anomaly
from neoranging.ephemeris.states import earth_state, site_state, tdb_mjd
from neoranging.lab.simulation.exposures import Visits, draw_cadence
from neoranging.lab.simulation.survey import Survey, geocentric_aspect, year_of
from neoranging.orbits.catalogue import Catalogue
from neoranging.typing import BoolArray, FloatArray, IntArray

CLOSEST_AU, FARTHEST_AU = 1e-4, 0.1
"""Limits of the distance from the centre of the Earth [au]."""

LEAST_ELONGATION_DEG: Final = 60.0
"""Least angle from the Sun; nearer to it than the bulk of the searches look."""

_PASSAGES_DRAWN: Final = 4
"""Passages drawn for each that is wanted: some fall on daylight."""

_DIRECTIONS_DRAWN: Final = 64
"""Directions drawn for each passage, to find one above the horizon."""

_ORBITS_DRAWN: Final = 48
"""Orbits drawn for each passage, to find one that leads there."""


def close_passages(
    orbits: Catalogue, survey: Survey, m: int, span: tuple[float, float], rng: np.random.Generator
) -> tuple[Catalogue, Visits]:
    """Visits to objects near the Earth.

    At most m, between the first and the last night of ``span`` [MJD]; shapes, inclinations and
    absolute magnitudes are taken from ``orbits``.

    Returns
    -------
    orbits : Catalogue
        Orbit of each visit, at its epoch; named after the object whose shape it has.
    visits : Visits
    """
    n = _PASSAGES_DRAWN * m
    station, utc = _stations_at_work(survey, n, span, rng)
    t = tdb_mjd(Time(utc, format="mjd", scale="utc"))
    earth, _ = earth_state(t)
    site, _ = site_state(survey.itrf[station], t)
    direction, free = _free_direction(survey, earth, site, rng)
    distance = CLOSEST_AU * (FARTHEST_AU / CLOSEST_AU) ** rng.random(n)
    along = dot(site, direction)
    rho = np.sqrt(distance**2 - dot(site, site) + along**2) - along
    place = earth + site + rho[:, None] * direction
    # of the donors that can come by, one that is likely to, and bright enough
    donors = rng.integers(0, len(orbits), (n, _ORBITS_DRAWN))
    log_weight = _log_rate(orbits, donors, equatorial_to_ecliptic(place))
    magnitude = geocentric_aspect(
        np.repeat(place, _ORBITS_DRAWN, axis=0),
        np.zeros((n * _ORBITS_DRAWN, 3)),
        np.repeat(t, _ORBITS_DRAWN),
        orbits.H_mag[donors].ravel(),
        orbits.G[donors].ravel(),
    ).magnitude.reshape(n, _ORBITS_DRAWN)
    excess = (survey.limit(t) + survey.follow_up_depth)[:, None] - magnitude
    log_weight += -np.logaddexp(0.0, -excess / survey.softness)
    choice = np.argmax(log_weight + rng.gumbel(size=log_weight.shape), axis=1)
    rows = np.arange(n)
    donor = orbits.take(donors[rows, choice])
    elements = orbits_through(donor, equatorial_to_ecliptic(place), rng)
    r, v = (ecliptic_to_equatorial(x) for x in elements_to_state(*elements[:6]))
    # the Sun at the middle of the visit
    earth_utc, _ = earth_state(utc)
    dark = dot(survey.zenith(station, utc), -earth_utc) < norm(earth_utc) * np.sin(
        np.radians(survey.sun_altitude_deg)
    )
    possible = dark & free & np.isfinite(log_weight[rows, choice]) & np.isfinite(r[:, 0])
    epoch = t - rho / C_AU_PER_DAY
    rate = geocentric_aspect(r, v, t, donor.H_mag, donor.G).rate
    orbits = dataclasses.replace(
        donor,
        epoch_mjd_tdb=epoch,
        raan_rad=elements.raan,
        argp_rad=elements.argp,
        mean_anomaly_rad=mean_anomaly(elements.nu, elements.ecc),
    )
    index = np.flatnonzero(possible)[:m]
    visits = Visits(
        np.arange(len(index)),
        possible[index],
        r[index],
        v[index],
        epoch[index],
        station[index],
        utc[index],
        magnitude[rows, choice][index],
        *draw_cadence(survey, station[index], rate[index], rng),
    )
    return orbits.take(index), visits


def _stations_at_work(
    survey: Survey, m: int, span: tuple[float, float], rng: np.random.Generator
) -> tuple[IntArray, FloatArray]:
    """Stations and times around their midnights, as often as they observed over the years."""
    nights = np.arange(span[0], span[1])
    cumulated = np.cumsum(survey.activity(nights))
    night = nights[np.searchsorted(cumulated, rng.random(m) * cumulated[-1])]
    station = survey.columns
    year = year_of(night)[:, None]
    at_work = (year >= station.first_year) & (year < station.last_year)
    weight = np.where(at_work, np.log(station.weight), -np.inf)
    number = np.argmax(weight + rng.gumbel(size=weight.shape), axis=1)
    return number, night + 1.0 - survey.longitude[number] + rng.uniform(-0.4, 0.4, m)


def _free_direction(
    survey: Survey, earth: FloatArray, site: FloatArray, rng: np.random.Generator
) -> tuple[FloatArray, BoolArray]:
    """Directions above the horizon and away from the Sun, uniform on that part of the sky."""
    directions = rng.standard_normal((len(site), _DIRECTIONS_DRAWN, 3))
    directions /= norm(directions)[..., None]
    high = dot(directions, site[:, None, :]) > norm(site)[:, None] * np.sin(
        np.radians(survey.least_altitude_deg)
    )
    away = dot(directions, -earth[:, None, :]) < norm(earth)[:, None] * np.cos(
        np.radians(LEAST_ELONGATION_DEG)
    )
    free = high & away
    return directions[np.arange(len(site)), np.argmax(free, axis=1)], free.any(axis=1)


def _log_rate(orbits: Catalogue, row: IntArray, place: FloatArray) -> FloatArray:
    """Logarithm of how often orbits, turned at random, come by a place; shape of ``row``.

    The time spent near a distance from the Sun goes with one over the radial speed, that near a
    latitude with one over the speed of the latitude (Opik 1951). Of the integrable peaks at the
    turning points no more than a factor of ten is kept.
    """
    distance = norm(place)[:, None]
    sin_latitude = place[:, 2, None] / distance
    a, ecc = orbits.a_au[row], orbits.ecc[row]
    q, sin_inc = orbits.q_au[row], np.sin(orbits.inc_rad[row])
    far = a * (1.0 + ecc)
    radial = (distance - q) * (far - distance) / (a * distance) ** 2
    across = sin_inc**2 - sin_latitude**2
    possible = (radial > 0.0) & (across > 0.0)
    radial, across = np.maximum(radial, 1e-2 * ecc**2), np.maximum(across, 1e-2 * sin_inc**2)
    with np.errstate(divide="ignore"):
        log_rate = -0.5 * np.log(radial) - 0.5 * np.log(across) - 1.5 * np.log(a) - np.log(distance)
    return np.where(possible, log_rate, -np.inf)


def orbits_through(orbits: Catalogue, place: FloatArray, rng: np.random.Generator) -> Elements:
    """Ellipses turned such that each leads through its place (N, 3), ecliptic J2000 [au].

    North- or southbound, inbound or outbound is drawn. NaN where an orbit does not reach the
    distance or the latitude of its place.
    """
    north, outbound = rng.random((2, len(place))) < 0.5
    distance = norm(place)
    q, ecc, inc = orbits.q_au, orbits.ecc, orbits.inc_rad
    with np.errstate(invalid="ignore", divide="ignore"):
        latitude = np.arcsin(place[:, 2] / distance / np.sin(inc))
        nu = np.arccos((q * (1.0 + ecc) / distance - 1.0) / ecc)
    latitude = np.where(north, latitude, np.pi - latitude)
    nu = np.where(outbound, nu, -nu)
    longitude = np.arctan2(place[:, 1], place[:, 0])
    raan = longitude - np.arctan2(np.cos(inc) * np.sin(latitude), np.cos(latitude))
    turn = 2.0 * np.pi
    argp = np.mod(latitude - nu, turn)
    return Elements(q, ecc, inc, np.mod(raan, turn), argp, nu, q / (1.0 - ecc))
