"""Removal of the errors of simulated observations, and new drawings of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from neoranging.constants import C_AU_PER_DAY
from neoranging.core.arcs import Arcs
from neoranging.core.elements import elements_to_state
from neoranging.core.geometry import (
    dot,
    ecliptic_to_equatorial,
    equatorial_to_ecliptic,
    line_of_sight,
    norm,
    radec,
    wrap_angle,
)
from neoranging.core.kepler import propagate
from neoranging.core.prediction import Sighting, sight
from neoranging.lab.sets.motion import near_earth_states
from neoranging.lab.sets.schema import ArcTable
from neoranging.lab.sets.truth import NEAR_EARTH
from neoranging.lab.simulation.astrometric_errors import Errors, displaced
from neoranging.typing import BoolArray, FloatArray

ORBIT: Final = ("q_au", "ecc", "inc_rad", "raan_rad", "argp_rad")
"""Columns of the orbit; `sightings` needs them and ``truth_dynamics``."""

_BELIEVED_SIGMAS = 6.0
"""Largest error of an observation, in standard deviations, that noise can explain."""


def noise_free(table: ArcTable, arcs: Arcs) -> tuple[Arcs, BoolArray]:
    """Arcs as they would have been observed without errors, where the orbit is known.

    Parameters
    ----------
    table : ArcTable
        M simulated arcs with their truth.
    arcs : Arcs
        The same arcs with the observers where they stood.

    Returns
    -------
    arcs : Arcs
        The same with other directions.
    exact : ndarray of bool, shape (M,)
        Arcs whose orbit explains all observations by noise alone. The others keep the directions
        that were observed.
    """
    ra, dec = radec(sightings(table, arcs).direction)
    exact = explained(arcs, ra, dec)
    owner = arcs.owner
    ra, dec = (np.where(exact[owner], a, b) for a, b in ((ra, arcs.ra), (dec, arcs.dec)))
    return replace(arcs, ra=ra, dec=dec), exact


def sightings(table: ArcTable, arcs: Arcs) -> Sighting:
    """Objects as the observers of all n observations would see them by their orbits.

    The parameters are those of `noise_free`.

    Notes
    -----
    A set holds no anomaly, so the object is put on its orbit where the orbit meets the observed
    line of sight at the true range. That is off by the error of one observation at most, and along
    the orbit only: another instant of the same motion.
    """
    r, v, epoch = _states(table, arcs)
    owner = arcs.owner
    states = r[owner], v[owner], epoch[owner]
    # the Earth moves real objects as well as those of the sets that have it do so
    pulled = np.flatnonzero(np.isin(table["truth_dynamics"], (NEAR_EARTH, "nbody")))
    rows = arcs.rows_of(pulled)
    t2 = arcs.t[arcs.triplet[pulled, 1]]
    r2, v2 = propagate(r[pulled], v[pulled], t2 - epoch[pulled])
    which = np.repeat(np.arange(len(pulled)), arcs.counts[pulled])
    near, *moved = near_earth_states(r2, v2, t2, which, arcs.t[rows])
    for column, values in zip(states, (*moved, arcs.t[rows[near]]), strict=True):
        column[rows[near]] = values
    return sight(*states, arcs.t, arcs.position, arcs.velocity)


def explained(
    arcs: Arcs, ra: FloatArray, dec: FloatArray, late: FloatArray | float = 0.0
) -> BoolArray:
    """Flags of the arcs whose observations all lie where noise may move them from (ra, dec), (M,).

    ``late`` is how far an error of its time moves an observation at most [rad].
    """
    sigma_ra, sigma_dec = (s + late / _BELIEVED_SIGMAS for s in (arcs.sigma_ra, arcs.sigma_dec))
    east = wrap_angle(arcs.ra - ra) * np.cos(dec) / sigma_ra
    error = np.hypot(east, (arcs.dec - dec) / sigma_dec)
    with np.errstate(invalid="ignore"):
        wrong = ~(error < _BELIEVED_SIGMAS)
    return arcs.sum(wrong.astype(np.int64)) == 0


def redrawn(
    arcs: Arcs,
    noisy: BoolArray,
    errors: Errors,
    rng: np.random.Generator,
) -> Arcs:
    """Arcs as another night with the same weather would have given them.

    Parameters
    ----------
    arcs : Arcs
        M arcs without errors; observations of one visit share an offset.
    noisy : ndarray of bool, shape (M,)
        Arcs that are to have errors.
    errors : Errors
        Kind of the errors; they are not rounded to the digits of a format.
    rng : numpy.random.Generator
    """
    sigma = np.stack([arcs.sigma_ra, arcs.sigma_dec])
    ra, dec = displaced(arcs.direction, errors.draw(sigma, arcs.visit_number, rng))
    rows = noisy[arcs.owner]  # the others stay to the last bit
    return replace(arcs, ra=np.where(rows, ra, arcs.ra), dec=np.where(rows, dec, arcs.dec))


def _states(table: ArcTable, arcs: Arcs) -> tuple[FloatArray, FloatArray, FloatArray]:
    """States at emission of the orbits of the table where they meet the observed directions."""
    q, ecc, inc, raan, argp = (table[name] for name in ORBIT)
    rho, middle = table["rho_topo_au"], arcs.triplet[:, 1]
    sighted = rho[:, None] * line_of_sight(arcs.ra[middle], arcs.dec[middle])
    target = equatorial_to_ecliptic(arcs.position[middle] + sighted)
    # perihelion and the motion there span the plane of the orbit
    plane = elements_to_state(q, ecc, inc, raan, argp, np.zeros_like(q))
    x, y = (dot(target, axis) / norm(axis) for axis in plane)
    states = elements_to_state(q, ecc, inc, raan, argp, np.arctan2(y, x))
    r, v = (ecliptic_to_equatorial(vector) for vector in states)
    return r, v, arcs.t[middle] - rho / C_AU_PER_DAY
