"""From an object in the sky to the records of a station: when it looks, what it reports."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
from astropy.time import Time

from neoranging.constants import ARCSEC
from neoranging.core.geometry import dot, norm, radec
from neoranging.core.prediction import Sighting, sight
from neoranging.ephemeris.states import earth_state, observer_state, tdb_mjd
from neoranging.lab.sets.arcs import make_arcs
from neoranging.lab.sets.schema import ArcTable
from neoranging.lab.simulation.astrometric_errors import Errors, displaced
from neoranging.lab.simulation.survey import Aspect, Survey, aspect, year_of
from neoranging.observations.uncertainty import ROUNDING, default_sigma
from neoranging.records import RecordCount
from neoranging.typing import BoolArray, FloatArray, IntArray

Motion = Callable[[IntArray, FloatArray], tuple[FloatArray, FloatArray]]

MAGNITUDE_ERROR: Final = 0.15
"""Of one measurement."""

MOST_EXPOSURES: Final = 20
"""In one tracklet."""

LONGEST_TRAIL: Final = 0.1
"""Path on the sky of one tracklet [rad]; fast objects are observed in quick succession."""

SHORTEST_SPAN: Final = 1.3e-3
"""Of a tracklet, whatever the speed [d]."""

LONG_SEQUENCE, SECOND_VISIT = 0.10, 0.07
"""Shares of the tracklets with many exposures, and of those taken up again in the same night."""

_MINUTE = 1.0 / 1440.0
_TRIALS = np.linspace(-0.45, 0.45, 25)  # of the middle of a visit, from local midnight [d]


class Visits(NamedTuple):
    """M visits of stations to objects that move on two-body orbits meanwhile."""

    r: FloatArray
    """Heliocentric position at ``epoch``, ICRS axes, shape (M, 3) [au]."""
    v: FloatArray
    epoch: FloatArray
    """MJD TDB."""
    station: IntArray
    """Number in the survey."""
    middle: FloatArray
    """MJD UTC of the middle of the visit."""
    magnitude: FloatArray
    """Apparent."""

    def take(self, index: IntArray) -> Visits:
        """Visits ``index``, in that order."""
        return Visits._make(column[index] for column in self)


class Cadence(NamedTuple):
    """Times of the exposures of M visits."""

    n_exposures: IntArray
    offset: FloatArray
    """From the middle, shape (M, ``MOST_EXPOSURES``) [d]; meaningless beyond their number."""

    def take(self, index: IntArray) -> Cadence:
        """Those of the visits ``index``."""
        return Cadence._make(column[index] for column in self)

    @property
    def span(self) -> FloatArray:
        """From the first exposure to the last [d]."""
        last = np.take_along_axis(self.offset, self.n_exposures[:, None] - 1, axis=1)[:, 0]
        return last - self.offset[:, 0]


def geocentric_aspect(
    r: FloatArray, v: FloatArray, mjd: FloatArray, H: FloatArray, G: FloatArray
) -> Aspect:
    """Aspect of states of shape (M, 3), each at its epoch [MJD TDB]."""
    earth_r, earth_v = earth_state(mjd)
    earth = tuple(earth_r.T), tuple(earth_v.T)
    return aspect((tuple(r.T), tuple(v.T)), earth, H, G)


def draw_cadence(
    survey: Survey, station: IntArray, rate: FloatArray, rng: np.random.Generator
) -> Cadence:
    """Exposures as the stations take them of objects that move at ``rate`` [rad/d]."""
    m = len(station)
    mean, gap = survey.columns.exposures[station], survey.columns.gap_min[station]
    count = 3 + rng.poisson(mean - 3.0)
    count += np.where(rng.random(m) < LONG_SEQUENCE, rng.poisson(6.0, m), 0)
    count = np.minimum(count, MOST_EXPOSURES)
    pace = gap * np.exp(0.3 * rng.standard_normal(m))
    gaps = pace[:, None] * np.exp(0.15 * rng.standard_normal((m, MOST_EXPOSURES))) * _MINUTE
    again = np.where(rng.random(m) < SECOND_VISIT, 1 + (rng.random(m) * (count - 1)), 0)
    rows = np.flatnonzero(again)
    gaps[rows, again[rows].astype(np.int64)] += rng.uniform(0.03, 0.2, len(rows))
    gaps[:, 0] = 0.0
    offset = np.cumsum(gaps, axis=1)
    span = np.take_along_axis(offset, count[:, None] - 1, axis=1)[:, 0]
    longest = np.maximum(LONGEST_TRAIL / np.maximum(rate, 1e-9), SHORTEST_SPAN)
    offset *= np.minimum(longest / span, 1.0)[:, None]
    span = np.minimum(span, longest)
    return Cadence(count, offset - 0.5 * span[:, None])


def plan_visits(
    survey: Survey,
    r: FloatArray,
    v: FloatArray,
    epoch: FloatArray,
    seen: Aspect,
    rng: np.random.Generator,
) -> tuple[BoolArray, Visits, Cadence]:
    """Find a station and a time of its night for objects, where that is possible.

    Parameters
    ----------
    survey : Survey
    r, v : ndarray, shape (M, 3)
        Heliocentric states [au, au/d].
    epoch : ndarray, shape (M,)
        Of the states, and the date meant [MJD TDB].
    seen : Aspect
        Of the states.
    rng : numpy.random.Generator

    Returns
    -------
    possible : ndarray of bool, shape (M,)
        Whether the station drawn sees the object in the dark of that night.
    visits : Visits
    cadence : Cadence
    """
    log_choice = survey.log_choice(seen, epoch)
    gumbel = -np.log(rng.standard_exponential(log_choice.shape))
    station = np.argmax(log_choice + gumbel, axis=1)
    cadence = draw_cadence(survey, station, seen.rate, rng)
    midnight = survey.night(station, epoch) + 1.0 - survey.longitude[station]
    jitter = rng.uniform(-0.5, 0.5, len(epoch)) * (_TRIALS[1] - _TRIALS[0])
    trial = midnight[:, None] + _TRIALS + jitter[:, None]
    half = 0.5 * cadence.span[:, None]
    earth = earth_state(epoch)
    path, drift = r - earth[0], v - earth[1]
    good = np.isfinite(log_choice.max(axis=1)) & survey.is_measurable(seen, station)
    good = good[:, None]
    height = np.zeros_like(trial)
    for time in (trial - half, trial + half):
        up = survey.zenith(station[:, None], time)
        height = _sine_of_altitude(path, drift, time - epoch[:, None], up)
        good = good & (height > np.sin(np.radians(survey.least_altitude_deg)))
        good &= dot(up, -earth[0][:, None, :]) < norm(earth[0])[:, None] * np.sin(
            np.radians(survey.sun_altitude_deg)
        )
    # the higher the likelier
    score = np.where(good, height * rng.random(trial.shape), -1.0)
    choice = np.argmax(score, axis=1)
    rows = np.arange(len(epoch))
    middle = trial[rows, choice]
    return score[rows, choice] > 0.0, Visits(r, v, epoch, station, middle, seen.magnitude), cadence


_EARTH_RADIUS_AU: Final = 4.26e-5


def _sine_of_altitude(
    path: FloatArray, drift: FloatArray, elapsed: FloatArray, up: FloatArray
) -> FloatArray:
    """Of objects at geocentric ``path + drift elapsed``, seen from the surface; shape (M, T)."""
    place = path[:, None, :] + elapsed[..., None] * drift[:, None, :] - _EARTH_RADIUS_AU * up
    return dot(place, up) / norm(place)


def observe(
    visits: Visits,
    cadence: Cadence,
    survey: Survey,
    errors: Errors,
    rng: np.random.Generator,
    motion: Motion | None = None,
    arc: IntArray | None = None,
) -> tuple[ArcTable, IntArray, RecordCount]:
    """Let the stations report what they see.

    Parameters
    ----------
    visits, cadence
        Of K visits.
    survey : Survey
    errors : Errors
    rng : numpy.random.Generator
    motion : callable, optional
        Gives the states (n, 3) of the objects of visits (n,) at epochs (n,) [MJD TDB]; by default
        they go on from ``visits`` by two-body motion.
    arc : ndarray of int, shape (K,), optional
        Which arc, from 0 on, the visits belong to; by default each is one.

    Returns
    -------
    table : ArcTable
        Arcs that pass the quality filter, in order, each with its number in the place of a
        designation. An arc bears the night of the first of its visits given.
    kept : ndarray of int
        These numbers of arcs.
    counts : RecordCount
        Of arcs.
    """
    arc = np.arange(len(visits.epoch)) if arc is None else arc
    owner = np.repeat(np.arange(len(arc)), cadence.n_exposures)
    within = np.arange(MOST_EXPOSURES) < cadence.n_exposures[:, None]
    utc = (visits.middle[:, None] + cadence.offset)[within]
    # a constant over the arc: no leap second strikes within, TDB - UTC drifts by microseconds
    tdb_utc = (tdb_mjd(Time(visits.middle, format="mjd", scale="utc")) - visits.middle)[owner]
    t, station = utc + tdb_utc, visits.station[owner]
    if motion is None:
        states = visits.r[owner], visits.v[owner], visits.epoch[owner]
    else:
        states = *motion(owner, t), t
    seen = sight(*states, t, *observer_state(survey.itrf[station], t))
    report = _report(seen, utc, survey, station, owner, errors, rng)
    scatter = errors.size * MAGNITUDE_ERROR
    magnitude = visits.magnitude[owner] + scatter * rng.standard_normal(len(utc))
    t = report.utc + tdb_utc
    order = np.lexsort((t, arc[owner]))
    first = np.unique(arc, return_index=True)[1]
    counts_of_arcs = np.bincount(arc, cadence.n_exposures).astype(np.int64)
    table, counts = make_arcs(
        np.concatenate([[0], np.cumsum(counts_of_arcs)]),
        t[order],
        report.ra[order],
        report.dec[order],
        sigma_ra=report.sigma_ra[order],
        sigma_dec=report.sigma_dec[order],
        stations=survey.columns.code[station[order]],
        designation=np.arange(len(first)).astype(np.str_),
        night=survey.night(visits.station[first], visits.middle[first]),
        mag=(np.round(magnitude, 1) if errors.size else magnitude)[order],
        band=np.full(len(utc), "V"),
    )
    return table.with_columns(is_simulated=True), table["designation"].astype(np.int64), counts


class _Report(NamedTuple):
    utc: FloatArray
    ra: FloatArray
    dec: FloatArray
    sigma_ra: FloatArray
    sigma_dec: FloatArray


def _report(
    seen: Sighting,
    utc: FloatArray,
    survey: Survey,
    station: IntArray,
    visit: IntArray,
    errors: Errors,
    rng: np.random.Generator,
) -> _Report:
    """Directions with errors, rounded with the times to what the formats hold."""
    code, year = survey.columns.code[station], year_of(utc)
    fine = year >= survey.columns.fine_since[station]
    catalog = np.where(year >= 2018.0, "V", "")
    sigma = default_sigma(code, np.full(len(code), "C"), catalog, year)
    ra, dec = radec(seen.direction)
    step_dec = np.where(fine, 0.01, 0.1)
    step_ra = 1.5 * step_dec
    sigma_ra = np.maximum(sigma, ROUNDING * step_ra * np.cos(dec)) * ARCSEC
    sigma_dec = np.maximum(sigma, ROUNDING * step_dec) * ARCSEC
    error = errors.draw(np.stack([sigma_ra, sigma_dec]), visit, rng)
    if errors.size > 0.0:
        ra, dec = displaced(seen.direction, error)
        ra = np.mod(_round(ra, step_ra * ARCSEC), 2.0 * np.pi)
        dec = _round(dec, step_dec * ARCSEC)
        utc = _round(utc, np.where(fine, 1e-6, 1e-5))
    return _Report(utc, ra, dec, sigma_ra, sigma_dec)


def _round(values: FloatArray, step: FloatArray) -> FloatArray:
    return np.rint(values / step) * step
