"""Which station observes which object when: all visits to a block of objects."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from neoranging.constants import GM_SUN
from neoranging.core.elements import elements_to_state
from neoranging.core.geometry import ecliptic_to_equatorial
from neoranging.core.kepler import true_anomaly
from neoranging.lab.simulation.apparitions import NightChart, chart_nights
from neoranging.lab.simulation.exposures import (
    Cadence,
    Motion,
    Visits,
    geocentric_aspect,
    plan_visits,
)
from neoranging.lab.simulation.survey import Survey
from neoranging.orbits.catalogue import Catalogue
from neoranging.orbits.nbody import NBodyIntegrator, nbody_states
from neoranging.typing import BoolArray, FloatArray, IntArray

OBSERVATIONS_PER_VISIT: Final = 4.55
"""Observations of the catalogue per visit of a station: what `draw_cadence` gives in the mean.

Real nights of one station have 4.50 (``docs/tools/set_profile.py`` on real arcs of 131 objects).
"""

ATTEMPTS: Final = 30
"""Nights and stations tried for a visit before it is given up."""


class Plan(NamedTuple):
    """M visits to the objects of a catalogue."""

    owner: IntArray
    """Rows of the catalogue, shape (M,)."""
    possible: BoolArray
    """Whether a station was found that sees the object in the dark."""
    visits: Visits
    cadence: Cadence

    def take(self, index: IntArray) -> Plan:
        """Visits ``index``, in that order."""
        return Plan(
            self.owner[index],
            self.possible[index],
            self.visits.take(index),
            self.cadence.take(index),
        )

    def fill(self, index: IntArray, other: Plan) -> None:
        """Put another plan in the place of the visits ``index`` of this one."""
        columns = zip((*self.visits, *self.cadence), (*other.visits, *other.cadence), strict=True)
        for mine, theirs in ((self.possible, other.possible), *columns):
            mine[index] = theirs

    @classmethod
    def concatenate(cls, plans: list[Plan]) -> Plan:
        """Plans one after the other."""
        owner, possible, visits, cadence = zip(*plans, strict=True)
        return cls(
            np.concatenate(owner),
            np.concatenate(possible),
            Visits._make(map(np.concatenate, zip(*visits, strict=True))),
            Cadence._make(map(np.concatenate, zip(*cadence, strict=True))),
        )


def schedule(
    orbits: Catalogue,
    discovery: FloatArray,
    survey: Survey,
    span: tuple[float, float],
    rng: np.random.Generator,
) -> Plan:
    """Visits to objects on two-body orbits, as many as their observations let expect.

    Parameters
    ----------
    orbits, discovery
        As `neoranging.lab.simulation.apparitions.redraw_anomalies` gives them.
    survey : Survey
    span : tuple of float
        First and last night, MJD.
    rng : numpy.random.Generator

    Returns
    -------
    Plan
        In order of object and time.
    """
    n_visits = np.maximum(1, np.rint(orbits.n_obs / OBSERVATIONS_PER_VISIT)).astype(np.int64)
    plans = []
    for rows, chart in chart_nights(orbits, discovery, survey, span, rng):
        # one night in every apparition, the others where the object was seen best
        each, dates = chart.draw_each(rng)
        rank = np.arange(len(each)) - np.searchsorted(each, each)
        given = rank < n_visits[rows[each]]
        each, dates = each[given], dates[given]
        left = n_visits[rows] - np.bincount(each, minlength=len(rows))
        others = np.repeat(np.arange(len(rows)), left)
        owner = np.concatenate([each, others])
        dates = np.concatenate([dates, chart.draw(others, rng)])
        plan = _place(orbits.take(rows), owner, dates, chart, survey, rng)
        plans.append(plan._replace(owner=rows[owner]))
    plan = Plan.concatenate(plans)
    return plan.take(np.lexsort((plan.visits.middle, plan.owner)))


def _place(
    orbits: Catalogue,
    owner: IntArray,
    date: FloatArray,
    chart: NightChart,
    survey: Survey,
    rng: np.random.Generator,
) -> Plan:
    """Try nights and stations until every visit is possible, or many times."""
    plan = _without_repeats(_attempt(orbits, owner, date, survey, rng), survey)
    for _ in range(ATTEMPTS - 1):
        missing = np.flatnonzero(~plan.possible)
        if not len(missing):
            break
        again = chart.draw(owner[missing], rng)
        plan.fill(missing, _attempt(orbits, owner[missing], again, survey, rng))
        plan = _without_repeats(plan, survey)
    return plan


def _without_repeats(plan: Plan, survey: Survey) -> Plan:
    """Leave one visit to an object to a station in a night: two would be one."""
    night = survey.night(plan.visits.station, plan.visits.middle)
    key = np.stack([plan.owner, plan.visits.station, night, ~plan.possible])
    first = np.unique(key, axis=1, return_index=True)[1]
    alone = np.zeros(len(night), dtype=bool)
    alone[first] = True
    return plan._replace(possible=plan.possible & alone)


def _attempt(
    orbits: Catalogue,
    owner: IntArray,
    date: FloatArray,
    survey: Survey,
    rng: np.random.Generator,
) -> Plan:
    known = np.isfinite(date)  # some objects have no night at all
    date = np.where(known, date, orbits.epoch_mjd_tdb[owner])
    r, v = _two_body(orbits, owner, date)
    plan = _at(orbits, owner, r, v, date, survey, rng)
    return plan._replace(possible=plan.possible & known)


def _at(
    orbits: Catalogue,
    owner: IntArray,
    r: FloatArray,
    v: FloatArray,
    date: FloatArray,
    survey: Survey,
    rng: np.random.Generator,
) -> Plan:
    """One station and time for objects in given states."""
    seen = geocentric_aspect(r, v, date, orbits.H_mag[owner], orbits.G[owner])
    return Plan(owner, *plan_visits(survey, r, v, date, seen, rng))


def _two_body(orbits: Catalogue, row: IntArray, t: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Heliocentric states at epochs [MJD TDB], ICRS axes."""
    ecc = orbits.ecc[row]
    motion = np.sqrt(GM_SUN / orbits.a_au[row] ** 3)
    mean = orbits.mean_anomaly_rad[row] + motion * (t - orbits.epoch_mjd_tdb[row])
    inc, raan, argp = (x[row] for x in (orbits.inc_rad, orbits.raan_rad, orbits.argp_rad))
    r, v = elements_to_state(orbits.q_au[row], ecc, inc, raan, argp, true_anomaly(mean, ecc))
    return ecliptic_to_equatorial(r), ecliptic_to_equatorial(v)


def perturbed_motion(orbits: Catalogue, owner: IntArray) -> Motion:
    """Motion of the objects of visits under the Sun, the planets and the Moon.

    Parameters
    ----------
    orbits : Catalogue
    owner : ndarray of int, shape (M,)
        Orbits of the visits.

    Returns
    -------
    callable
        Takes visits (n,) and epochs (n,) and returns states (n, 3); needs the extra ``nbody``.
    """
    integrator, (r, v) = NBodyIntegrator(), orbits.states()

    def motion(visit: IntArray, t: FloatArray) -> tuple[FloatArray, FloatArray]:
        return nbody_states(r, v, orbits.epoch_mjd_tdb, owner[visit], t, integrator=integrator)

    return motion


def replan(
    plan: Plan, orbits: Catalogue, motion: Motion, survey: Survey, rng: np.random.Generator
) -> Plan:
    """Keep the nights of a plan, with stations and times for where the objects really are.

    Parameters
    ----------
    plan : Plan
        Made for two-body motion.
    orbits : Catalogue
    motion : callable
        Of the objects of the plan.
    survey : Survey
    rng : numpy.random.Generator

    Returns
    -------
    Plan
        Of the same visits; some are not possible any more.
    """
    date = plan.visits.epoch
    r, v = motion(np.arange(len(date)), date)
    finite = np.isfinite(r[:, 0])
    r, v = np.where(finite[:, None], r, plan.visits.r), np.where(finite[:, None], v, plan.visits.v)
    new = _at(orbits, plan.owner, r, v, date, survey, rng)
    for _ in range(ATTEMPTS - 1):
        missing = np.flatnonzero(~new.possible)
        if not len(missing):
            break
        again = _at(orbits, plan.owner[missing], r[missing], v[missing], date[missing], survey, rng)
        new.fill(missing, again)
    new = new._replace(possible=new.possible & plan.possible & finite)
    return _without_repeats(new, survey)
