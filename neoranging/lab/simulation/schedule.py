"""The schedule of a block of objects: which station observes which object when.

An object gets as many visits as it has real observations, in as many apparitions as it has real
oppositions. The numbers of tries are our own.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from neoranging.core import columns
from neoranging.core.geometry import dot, norm
from neoranging.ephemeris.states import earth_state
from neoranging.lab.simulation.apparitions import NightChart, chart_nights
from neoranging.lab.simulation.exposures import Motion, Visits, draw_cadence
from neoranging.lab.simulation.survey import Survey, geocentric_aspect
from neoranging.orbits.catalogue import Catalogue
from neoranging.typing import FloatArray, IntArray

OBSERVATIONS_PER_VISIT: Final = 4.55
"""Observations of the catalogue per visit of a station: the mean that `draw_cadence` gives.

Real nights of one station have 4.50 (``docs/tools/set_profile.py`` on real arcs of 131 objects).
"""

ATTEMPTS: Final = 30
"""Nights and stations tried for a visit before it is given up."""

_TRIALS: Final = np.linspace(-0.45, 0.45, 25)
"""Middles tried for a visit, from local midnight [d]."""

_EARTH_RADIUS_AU: Final = 4.26e-5


def schedule(
    orbits: Catalogue,
    discovery: FloatArray,
    survey: Survey,
    span: tuple[float, float],
    rng: np.random.Generator,
) -> Visits:
    """Visits to objects on two-body orbits, as many as their observations let expect.

    Orbits and discovery are those of `neoranging.lab.simulation.apparitions.redraw_anomalies`, the
    span is of the first and the last night [MJD]. The visits are in order of object and time.
    """
    n_visits = np.maximum(1, np.rint(orbits.n_obs / OBSERVATIONS_PER_VISIT)).astype(np.int64)
    parts = []
    for rows, chart in chart_nights(orbits, discovery, survey, span, rng):
        # one night in every apparition, the others where the object was seen best
        first, dates = chart.draw_each(rng)
        rank = np.arange(len(first)) - np.searchsorted(first, first)
        few = rank < n_visits[rows[first]]
        first, dates = first[few], dates[few]
        others = np.repeat(
            np.arange(len(rows)), n_visits[rows] - np.bincount(first, minlength=len(rows))
        )
        owner = np.concatenate([first, others])
        dates = np.concatenate([dates, chart.draw(others, rng)])
        visits = _place(orbits.take(rows), owner, dates, chart, survey, rng)
        parts.append(visits._replace(owner=rows[owner]))
    joined = columns.join(parts)
    return joined.take(np.lexsort((joined.middle, joined.owner)))


def _place(
    orbits: Catalogue,
    owner: IntArray,
    date: FloatArray,
    chart: NightChart,
    survey: Survey,
    rng: np.random.Generator,
) -> Visits:
    """Try nights and stations until every visit is possible, or many times."""

    def attempt(rows: IntArray, night: FloatArray) -> Visits:
        has_night = np.isfinite(night)  # some objects have no night at all
        night = np.where(has_night, night, orbits.epoch_mjd_tdb[rows])
        r, v = orbits.take(rows).states(night)
        visits = plan_visits(orbits, rows, r, v, night, survey, rng)
        return visits._replace(possible=visits.possible & has_night)

    visits = _without_repeats(attempt(owner, date), survey)
    for _ in range(ATTEMPTS - 1):
        missing = np.flatnonzero(~visits.possible)
        if not len(missing):
            break
        visits.fill(missing, attempt(owner[missing], chart.draw(owner[missing], rng)))
        visits = _without_repeats(visits, survey)
    return visits


def _without_repeats(visits: Visits, survey: Survey) -> Visits:
    """Leave one visit to an object to a station in a night: two would be one."""
    night = survey.night(visits.station, visits.middle)
    key = np.stack([visits.owner, visits.station, night, ~visits.possible])
    first = np.zeros(len(night), dtype=bool)
    first[np.unique(key, axis=1, return_index=True)[1]] = True
    return visits._replace(possible=visits.possible & first)


def plan_visits(
    orbits: Catalogue,
    owner: IntArray,
    r: FloatArray,
    v: FloatArray,
    epoch: FloatArray,
    survey: Survey,
    rng: np.random.Generator,
) -> Visits:
    """Find a station and a time of its night for objects, where that is possible.

    The objects, rows ``owner`` (M,) of ``orbits``, have the heliocentric states ``r, v`` (M, 3) at
    ``epoch`` [MJD TDB], the date of the visit.
    """
    aspect = geocentric_aspect(r, v, epoch, orbits.H_mag[owner], orbits.G[owner])
    log_choice = survey.log_choice(aspect, epoch)
    gumbel = -np.log(rng.standard_exponential(log_choice.shape))
    station = np.argmax(log_choice + gumbel, axis=1)
    n_exposures, offset = draw_cadence(survey, station, aspect.rate, rng)
    midnight = survey.night(station, epoch) + 1.0 - survey.longitude[station]
    jitter = rng.uniform(-0.5, 0.5, len(epoch)) * (_TRIALS[1] - _TRIALS[0])
    trial = midnight[:, None] + _TRIALS + jitter[:, None]
    last = np.take_along_axis(offset, n_exposures[:, None] - 1, axis=1)
    half = 0.5 * (last - offset[:, :1])
    earth, earth_velocity = earth_state(epoch)
    path, drift = (r - earth)[:, None, :], (v - earth_velocity)[:, None, :]
    good = np.isfinite(log_choice.max(axis=1)) & survey.is_measurable(aspect, station)
    good = good[:, None]
    height = np.zeros_like(trial)
    for time in (trial - half, trial + half):
        up = survey.zenith(station[:, None], time)
        # the object as seen from the surface of the Earth, not from its centre
        place = path + (time - epoch[:, None])[..., None] * drift - _EARTH_RADIUS_AU * up
        height = dot(place, up) / norm(place)
        good = good & (height > np.sin(np.radians(survey.least_altitude_deg)))
        good &= dot(up, -earth[:, None, :]) < norm(earth)[:, None] * np.sin(
            np.radians(survey.sun_altitude_deg)
        )
    # the higher the likelier
    score = np.where(good, height * rng.random(trial.shape), -1.0)
    rows, choice = np.arange(len(epoch)), np.argmax(score, axis=1)
    possible, middle = score[rows, choice] > 0.0, trial[rows, choice]
    return Visits(
        owner, possible, r, v, epoch, station, middle, aspect.magnitude, n_exposures, offset
    )


def replan(
    visits: Visits, orbits: Catalogue, motion: Motion, survey: Survey, rng: np.random.Generator
) -> Visits:
    """Keep the nights of visits planned for two-body motion, with stations and times for another.

    Some of the visits are not possible any more.
    """
    owner, date = visits.owner, visits.epoch
    r, v = motion(owner, date)
    finite = np.isfinite(r[:, 0])
    r, v = np.where(finite[:, None], r, visits.r), np.where(finite[:, None], v, visits.v)
    new = plan_visits(orbits, owner, r, v, date, survey, rng)
    for _ in range(ATTEMPTS - 1):
        rows = np.flatnonzero(~new.possible)
        if not len(rows):
            break
        again = plan_visits(orbits, owner[rows], r[rows], v[rows], date[rows], survey, rng)
        new.fill(rows, again)
    new = new._replace(possible=new.possible & visits.possible & finite)
    return _without_repeats(new, survey)
