"""True ranges: labels for arcs from known orbits, each with the proof that it belongs there.

A label is only as good as the orbit behind it at the time of the observations. So the orbit has to
predict *all* observations of its arc, from where the observer stood: the largest distance on the
sky between an observed and a predicted direction is the self-consistency residual of the label, and
labels beyond a limit are refused. The largest distance, not the mean: one stray observation spoils
the triplet that a method is fed with as surely as a wrong orbit does.

Ranges follow the emission-epoch convention (`neoranging.core.prediction`): they are light paths.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np

from neoranging import ephemeris
from neoranging.constants import ARCSEC
from neoranging.core import columns
from neoranging.core.admissible import energy_coefficients, is_admissible
from neoranging.core.arcs import Arcs
from neoranging.core.elements import Elements, state_to_elements
from neoranging.core.geometry import equatorial_to_ecliptic, norm
from neoranging.core.kepler import propagate
from neoranging.core.prediction import sight
from neoranging.exceptions import DatasetError
from neoranging.lab.sets.arcs import to_core
from neoranging.lab.sets.motion import near_earth_states
from neoranging.lab.sets.schema import ArcTable
from neoranging.orbits.catalogue import Catalogue
from neoranging.orbits.nbody import NBodyIntegrator, nbody_states
from neoranging.records import RecordCount, Rejections
from neoranging.typing import FloatArray, IntArray

NEAR_EARTH: Final = "near-earth"
"""Two-body motion, from the reference epoch of an arc on under the Earth where that is near."""

DYNAMICS: Final = (NEAR_EARTH, "kepler", "nbody")
"""Motions of a truth: `NEAR_EARTH`, two-body about the Sun throughout, the planets and the Moon."""

GATE_ARCSEC: Final = 10.0
"""Residual up to which a label is believed [arcsec]."""

_ARCS_PER_CHUNK: Final = 20_000
"""Arcs labelled at once: some hundred megabytes."""


class Truth(NamedTuple):
    """Labels of M arcs at the epoch t2 of reception; NaN where the orbit predicts nothing."""

    rho_geo: FloatArray
    """Light path to the centre of the Earth [au]."""
    rho_dot_geo: FloatArray
    """Derivative of ``rho_geo`` by time of reception [au/d]."""
    rho_topo: FloatArray
    """Light path to the observer [au]."""
    rho_dot_topo: FloatArray
    """Derivative of ``rho_topo`` by time of reception [au/d]."""
    residual: FloatArray
    """Largest distance between predicted and observed direction over the arc [arcsec]."""
    position: FloatArray
    """Heliocentric position at t2, shape (M, 3) [au]."""
    velocity: FloatArray
    """Heliocentric velocity at t2, shape (M, 3) [au/d]."""

    @property
    def elements(self) -> Elements:
        """Elements osculating at t2, ecliptic J2000."""
        return state_to_elements(
            equatorial_to_ecliptic(self.position), equatorial_to_ecliptic(self.velocity)
        )


def truth(
    arcs: Arcs,
    orbits: Catalogue,
    row: IntArray,
    *,
    dynamics: str = "kepler",
    integrator: NBodyIntegrator | None = None,
) -> Truth:
    """Labels of topocentric arcs by orbits, the rows ``row`` (M,) of a catalogue.

    ``dynamics`` and errors are those of `label_arcs`.
    """
    middle = arcs.triplet[:, 1]
    t2 = arcs.t[middle]
    rows, which = np.unique(row, return_inverse=True)
    few = orbits.take(rows)
    r, v = few.states()
    if dynamics != "nbody":
        r2, v2 = propagate(r[which], v[which], t2 - few.epoch_mjd_tdb[which])
        # from t2 on, all of an arc is so short that the propagation is a series
        states = r2[arcs.owner], v2[arcs.owner], t2[arcs.owner]
        if dynamics == NEAR_EARTH:
            rows, r_near, v_near = near_earth_states(r2, v2, t2, arcs.owner, arcs.t)
            for column, values in zip(states, (r_near, v_near, arcs.t[rows]), strict=True):
                column[rows] = values
    else:
        owner = which[arcs.owner]
        r_all, v_all = nbody_states(r, v, few.epoch_mjd_tdb, owner, arcs.t, integrator=integrator)
        # the planets do nothing to speak of within a light time
        states = r_all, v_all, arcs.t
        r2, v2 = r_all[middle], v_all[middle]
    topocentric = sight(*states, arcs.t, arcs.position, arcs.velocity)
    geocentric = sight(r2, v2, t2, t2, *ephemeris.earth_state(t2))
    chord = norm(topocentric.direction - arcs.direction)
    largest = np.maximum.reduceat(chord, arcs.offsets[:-1]) if len(arcs) else chord
    return Truth(
        geocentric.rho,
        geocentric.rho_dot,
        topocentric.rho[middle],
        topocentric.rho_dot[middle],
        2.0 * np.arcsin(np.minimum(0.5 * largest, 1.0)) / ARCSEC,
        r2,
        v2,
    )


def label_arcs(
    table: ArcTable,
    orbits: Catalogue,
    *,
    row: IntArray | None = None,
    dynamics: str = "kepler",
    gate: float = GATE_ARCSEC,
    max_u: int | None = None,
    progress: Callable[[int], object] | None = None,
) -> tuple[ArcTable, RecordCount]:
    """Give arcs their labels, and drop those whose label cannot be believed.

    Parameters
    ----------
    table : ArcTable
        Arcs of `form_arcs`.
    orbits : Catalogue
    row : ndarray of int, shape (M,), optional
        Orbit of each arc; by default it is found by designation, and of several orbits of an object
        the one nearest in time is taken.
    dynamics : {"kepler", "near-earth", "nbody"}
        Two-body motion from the epoch of the elements, as the literature has it; the same to the
        reference epoch of each arc, and from there under the Earth and the Moon where they are
        near; or an integration that includes the planets, which needs the extra ``nbody``.
    gate : float
        Largest residual of a label that is believed [arcsec].
    max_u : int, optional
        Largest uncertainty parameter U of an orbit that is believed; orbits without U are dropped
        too. Not to be used with tables that have no U at all.
    progress : callable, optional
        Called with the number of arcs done since it was last called.

    Returns
    -------
    table : ArcTable
        The labelled arcs: all columns of the truth, of the orbit, and ``pseudo_admissible``.
    counts : RecordCount
        Arcs labelled, and those dropped, by reason.

    Raises
    ------
    DatasetError
        If ``dynamics`` is unknown, or ``max_u`` is asked of orbits without U.
    MissingDependencyError, EphemerisError
        See `neoranging.orbits.nbody_states`.
    """
    if dynamics not in DYNAMICS:
        raise DatasetError(f"dynamics must be one of {', '.join(DYNAMICS)}, got {dynamics!r}")
    if row is None:
        row = orbits.find(table["designation"], table["t2_mjd_tdb"])
    rejections = Rejections(len(table))
    rejections.reject(row < 0, "no orbit of that object")
    if max_u is not None:
        if len(orbits) and not (orbits.U >= 0).any():
            raise DatasetError(
                "max_u cannot be asked of this table of orbits: it has no column U; leave max_u "
                "out, the gate judges each label anyway"
            )
        rejections.reject(orbits.U[row] < 0, "orbit without uncertainty parameter U")
        rejections.reject(orbits.U[row] > max_u, f"orbit of U above {max_u}")
    rows = np.flatnonzero(rejections.usable)
    labels = _truth_in_chunks(table.take(rows), orbits, row[rows], dynamics, progress)
    residual = np.full(len(table), np.nan)
    residual[rows] = labels.residual
    rejections.reject(~np.isfinite(residual), "an orbit that predicts nothing")
    rejections.reject(~(residual <= gate), f'label more than {gate:g}" from an observation')
    usable = rejections.usable
    labels = columns.take(labels, usable[rows])
    row = row[usable]
    elements = labels.elements
    labelled = table.take(usable).with_columns(
        rho_geo_au=labels.rho_geo,
        rho_dot_geo_au_d=labels.rho_dot_geo,
        rho_topo_au=labels.rho_topo,
        rho_dot_topo_au_d=labels.rho_dot_topo,
        truth_residual_arcsec=labels.residual,
        truth_dynamics=dynamics,
        q_au=elements.q,
        ecc=elements.ecc,
        inc_rad=elements.inc,
        raan_rad=elements.raan,
        argp_rad=elements.argp,
        H_mag=orbits.H_mag[row],
        U=orbits.U[row],
    )
    # direction and rates as the literature has them: at t2, seen from the centre of the Earth
    names = ("ra2_rad", "dec2_rad", "ra_rate_rad_d", "dec_rate_rad_d")
    earth = ephemeris.earth_state(labelled["t2_mjd_tdb"])
    attributable = [*(labelled[name] for name in names), *earth]
    admissible = is_admissible(
        energy_coefficients(*attributable), labels.rho_geo, labels.rho_dot_geo
    )
    return labelled.with_columns(pseudo_admissible=admissible), rejections.count


def _truth_in_chunks(
    table: ArcTable,
    orbits: Catalogue,
    row: IntArray,
    dynamics: str,
    progress: Callable[[int], object] | None,
) -> Truth:
    """Labels of all arcs, worked out object by object."""
    m = len(table)
    labels = Truth(*(np.full(m, np.nan) for _ in range(5)), *np.full((2, m, 3), np.nan))
    integrator = NBodyIntegrator() if dynamics == "nbody" and m else None
    order = np.argsort(row, kind="stable")
    for start in range(0, m, _ARCS_PER_CHUNK):
        chunk = order[start : start + _ARCS_PER_CHUNK]
        arcs = to_core(table.take(chunk))
        chunk_labels = truth(arcs, orbits, row[chunk], dynamics=dynamics, integrator=integrator)
        for column, values in zip(labels, chunk_labels, strict=True):
            column[chunk] = values
        if progress is not None:
            progress(len(chunk))
    return labels
