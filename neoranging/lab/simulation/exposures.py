"""Records of a station that visits an object: exposures, directions with errors, rounding.

Numbers and gaps of exposures are our own figures, chosen so that simulated arcs have as many
observations, over as long a time, as real ones; sigmas are those that
`neoranging.observations.uncertainty` gives real observations of the station.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
from astropy.time import Time

from neoranging.constants import ARCSEC
from neoranging.core import columns
from neoranging.core.arcs import Arcs
from neoranging.core.geometry import radec
from neoranging.core.kepler import propagate
from neoranging.core.prediction import sight
from neoranging.ephemeris.states import observer_state, tdb_mjd
from neoranging.lab.sets.arcs import make_arcs
from neoranging.lab.sets.motion import near_earth_states
from neoranging.lab.sets.schema import ArcTable
from neoranging.lab.sets.truth import NEAR_EARTH, label_arcs
from neoranging.lab.simulation.astrometric_errors import Errors, displaced
from neoranging.lab.simulation.survey import Survey, year_of
from neoranging.observations.uncertainty import ROUNDING, default_sigma
from neoranging.orbits.catalogue import Catalogue
from neoranging.records import RecordCount
from neoranging.typing import BoolArray, FloatArray, IntArray

Motion = Callable[[IntArray, FloatArray], tuple[FloatArray, FloatArray]]
"""Heliocentric states (n, 3) of objects (n,), rows of their catalogue, at epochs (n,) [MJD TDB]."""

MAGNITUDE_ERROR_MAG: Final = 0.15
"""Standard error of the magnitude of a single exposure [mag]."""

MOST_EXPOSURES: Final = 20
"""Largest number of exposures in one tracklet."""

LONGEST_TRAIL_RAD: Final = 0.1
"""Longest path on the sky of one tracklet [rad]; fast objects are observed in quick succession."""

SHORTEST_SPAN_D: Final = 1.3e-3
"""Shortest time from first to last exposure of a tracklet, whatever the speed [d]."""

LONG_SEQUENCE_SHARE: Final = 0.10
"""Share of the tracklets with many exposures."""

SECOND_VISIT_SHARE: Final = 0.07
"""Share of the tracklets that are taken up again in the same night."""

_MINUTE: Final = 1.0 / 1440.0


class Visits(NamedTuple):
    """M visits of stations to objects that move on two-body orbits meanwhile."""

    owner: IntArray
    """Rows of the objects in their catalogue, shape (M,)."""
    possible: BoolArray
    """Mask of the visits whose station sees the object in the dark."""
    r: FloatArray
    """Heliocentric position at ``epoch``, ICRS axes, shape (M, 3) [au]."""
    v: FloatArray
    """Heliocentric velocity at ``epoch`` [au/d]."""
    epoch: FloatArray
    """Epoch of the state [MJD TDB]."""
    station: IntArray
    """Number of the station in the survey."""
    middle: FloatArray
    """Middle of the visit [MJD UTC]."""
    magnitude: FloatArray
    """Apparent magnitude."""
    n_exposures: IntArray
    """Number of exposures."""
    offset: FloatArray
    """Times of the exposures from the middle, shape (M, ``MOST_EXPOSURES``) [d]; meaningless beyond
    their number."""

    def take(self, index: IntArray) -> Visits:
        """Visits ``index``, in that order."""
        return columns.take(self, index)

    def fill(self, index: IntArray, other: Visits) -> None:
        """Put other visits in the place of the visits ``index`` of this table."""
        for column, values in zip(self, other, strict=True):
            column[index] = values


def draw_cadence(
    survey: Survey, station: IntArray, rate: FloatArray, rng: np.random.Generator
) -> tuple[IntArray, FloatArray]:
    """Number and offsets of the exposures of visits to objects that move at ``rate`` [rad/d]."""
    m = len(station)
    mean, gap = survey.columns.exposures[station], survey.columns.gap_min[station]
    count = 3 + rng.poisson(mean - 3.0)
    count += np.where(rng.random(m) < LONG_SEQUENCE_SHARE, rng.poisson(6.0, m), 0)
    count = np.minimum(count, MOST_EXPOSURES)
    pace = gap * np.exp(0.3 * rng.standard_normal(m))
    gaps = pace[:, None] * np.exp(0.15 * rng.standard_normal((m, MOST_EXPOSURES))) * _MINUTE
    again = np.where(rng.random(m) < SECOND_VISIT_SHARE, 1 + (rng.random(m) * (count - 1)), 0)
    rows = np.flatnonzero(again)
    gaps[rows, again[rows].astype(np.int64)] += rng.uniform(0.03, 0.2, len(rows))
    gaps[:, 0] = 0.0
    offset = np.cumsum(gaps, axis=1)
    span = np.take_along_axis(offset, count[:, None] - 1, axis=1)[:, 0]
    longest = np.maximum(LONGEST_TRAIL_RAD / np.maximum(rate, 1e-9), SHORTEST_SPAN_D)
    offset *= np.minimum(longest / span, 1.0)[:, None]
    span = np.minimum(span, longest)
    return count, offset - 0.5 * span[:, None]


def observe(
    visits: Visits,
    orbits: Catalogue,
    survey: Survey,
    errors: Errors,
    rng: np.random.Generator,
    *,
    dynamics: str = NEAR_EARTH,
    motion: Motion | None = None,
    by_night: bool = False,
) -> tuple[ArcTable, RecordCount]:
    """Labelled arcs that stations report of visits to the objects of a catalogue.

    Parameters
    ----------
    visits, orbits, survey, errors, rng
    dynamics : {"near-earth", "kepler", "nbody"}
        Motion of the objects, as for `neoranging.lab.sets.truth.label_arcs`.
    motion : Motion, optional
        That of "nbody"; the others go on from ``visits`` by two-body motion.
    by_night : bool
        Join the visits to an object in one night; by default each is an arc of its own.

    Returns
    -------
    table : ArcTable
        Arcs that pass the quality filter. An arc bears the night of the first of its visits.
    counts : RecordCount
        Of arcs.
    """
    # the arc that each visit belongs to, and the first visit of each arc
    arc = first = np.arange(len(visits.epoch))
    night = survey.night(visits.station, visits.middle)
    if by_night:
        _, first, arc = np.unique(
            np.stack([visits.owner, night]), axis=1, return_index=True, return_inverse=True
        )
    visit = np.repeat(np.arange(len(arc)), visits.n_exposures)
    within = np.arange(MOST_EXPOSURES) < visits.n_exposures[:, None]
    utc = (visits.middle[:, None] + visits.offset)[within]
    # a constant over the arc: no leap second strikes within, TDB - UTC drifts by microseconds
    tdb_utc = (tdb_mjd(Time(visits.middle, format="mjd", scale="utc")) - visits.middle)[visit]
    t, station = utc + tdb_utc, visits.station[visit]
    fine = year_of(utc) >= survey.columns.fine_since[station]
    if errors.size > 0.0:
        utc = _round(utc, time_steps(fine))
    t_reported = utc + tdb_utc
    order = np.lexsort((t_reported, arc[visit]))
    counts_of_arcs = np.bincount(arc, visits.n_exposures).astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(counts_of_arcs)])
    if motion is None:
        states = visits.r[visit], visits.v[visit], visits.epoch[visit]
        if dynamics == NEAR_EARTH:
            arcs = offsets, order, t_reported[order]
            _pull_off_ellipses(states, orbits, visits.owner[first], arcs, t)
    else:
        states = *motion(visits.owner[visit], t), t
    sighting = sight(*states, t, *observer_state(survey.itrf[station], t))
    ra, dec, sigma_ra, sigma_dec = _report(
        sighting.direction, utc, fine, survey, station, visit, errors, rng
    )
    scatter = errors.size * MAGNITUDE_ERROR_MAG
    magnitude = visits.magnitude[visit] + scatter * rng.standard_normal(len(utc))
    table, counts = make_arcs(
        offsets,
        t_reported[order],
        ra[order],
        dec[order],
        sigma_ra=sigma_ra[order],
        sigma_dec=sigma_dec[order],
        stations=survey.columns.code[station[order]],
        designation=np.arange(len(first)).astype(np.str_),
        night=night[first],
        mag=(np.round(magnitude, 1) if errors.size else magnitude)[order],
        band=np.full(len(utc), "V"),
    )
    row = visits.owner[first[table["designation"].astype(np.int64)]]
    named = table.with_columns(designation=orbits.designation[row], is_simulated=True)
    labelled, labels = label_arcs(named, orbits, row=row, dynamics=dynamics, gate=np.inf)
    return labelled, counts.then(labels)


def _pull_off_ellipses(
    states: tuple[FloatArray, FloatArray, FloatArray],
    orbits: Catalogue,
    row: IntArray,
    arcs: tuple[IntArray, IntArray, FloatArray],
    t: FloatArray,
) -> None:
    """Put objects near the Earth, in ``states`` of n exposures, where the Earth has moved them.

    ``arcs`` are offsets, exposures in the order of the arcs, and times as these report them: at the
    reference epoch, which is a reported time, the object of an arc is on its ellipse, the orbit
    ``row``. ``t`` are the true times of the exposures.
    """
    offsets, order, reported = arcs
    nothing, nowhere = np.empty(len(t)), np.empty((len(t), 3))
    table = Arcs(offsets, reported, nothing, nothing, nothing, nothing, nowhere, nowhere)
    t2 = reported[table.triplet[:, 1]]
    few = orbits.take(row)
    r2, v2 = propagate(*few.states(), t2 - few.epoch_mjd_tdb)
    near, r, v = near_earth_states(r2, v2, t2, table.owner, t[order])
    # an object that falls on the Earth before an exposure stays as it is: its label is refused
    above = np.isfinite(r[:, 0])
    for column, values in zip(states, (r, v, t[order][near]), strict=True):
        column[order[near[above]]] = values[above]


def _report(
    direction: FloatArray,
    utc: FloatArray,
    fine: BoolArray,
    survey: Survey,
    station: IntArray,
    visit: IntArray,
    errors: Errors,
    rng: np.random.Generator,
) -> tuple[FloatArray, ...]:
    """Directions with errors and their sigmas [rad], rounded to the digits of the formats.

    ``fine`` are the observations whose station gives one digit more.
    """
    code, year = survey.columns.code[station], year_of(utc)
    catalog = np.where(year >= 2018.0, "V", "")
    sigma = default_sigma(code, np.full(len(code), "C"), catalog, year)
    ra, dec = radec(direction)
    step_ra, step_dec = _direction_steps(fine)
    sigma_ra = np.maximum(sigma, ROUNDING * step_ra * np.cos(dec)) * ARCSEC
    sigma_dec = np.maximum(sigma, ROUNDING * step_dec) * ARCSEC
    error = errors.draw(np.stack([sigma_ra, sigma_dec]), visit, rng)
    if errors.size > 0.0:
        ra, dec = rounded(*displaced(direction, error), fine)
    return ra, dec, sigma_ra, sigma_dec


def time_steps(fine: BoolArray) -> FloatArray:
    """Last digits of the times of records [d], ``fine`` those of stations that give one more."""
    return np.where(fine, 1e-6, 1e-5)


def rounded(ra: FloatArray, dec: FloatArray, fine: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Directions [rad] with the digits of the formats."""
    step_ra, step_dec = _direction_steps(fine)
    ra = np.mod(_round(ra, step_ra * ARCSEC), 2.0 * np.pi)
    return ra, _round(dec, step_dec * ARCSEC)


def _direction_steps(fine: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Last digits of right ascensions and declinations [arcsec]."""
    step_dec = np.where(fine, 0.01, 0.1)
    return 1.5 * step_dec, step_dec


def _round(values: FloatArray, step: FloatArray) -> FloatArray:
    return np.rint(values / step) * step
