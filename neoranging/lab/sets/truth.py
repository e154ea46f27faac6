"""What the range was: labels for arcs from known orbits, each with the proof that it belongs there.

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
from neoranging.core.admissible import energy_coefficients, is_admissible
from neoranging.core.arcs import Arcs
from neoranging.core.elements import Elements, state_to_elements
from neoranging.core.geometry import equatorial_to_ecliptic, norm
from neoranging.core.kepler import propagate
from neoranging.core.prediction import Sighting, object_state, sight
from neoranging.exceptions import DatasetError
from neoranging.lab.sets.arcs import to_core
from neoranging.lab.sets.schema import ArcTable
from neoranging.orbits.catalogue import Catalogue
from neoranging.orbits.nbody import NBodyIntegrator, nbody_states
from neoranging.records import RecordCount, Rejections
from neoranging.typing import BoolArray, FloatArray, IntArray

DYNAMICS: Final = ("kepler", "nbody")
"""Two-body motion about the Sun, or also the planets and the Moon."""

GATE: Final = 10.0
"""Residual up to which a label is believed [arcsec]."""

_CHUNK: Final = 20_000
"""Arcs labelled at once: some hundred megabytes."""


class Truth(NamedTuple):
    """Labels of M arcs at the epoch t2 of reception; NaN where the orbit predicts nothing."""

    rho_geo: FloatArray
    """Light path to the centre of the Earth [au]."""
    rho_dot_geo: FloatArray
    """Its derivative by time of reception [au/d]."""
    rho_topo: FloatArray
    """Light path to the observer [au]."""
    rho_dot_topo: FloatArray
    residual: FloatArray
    """Largest distance between predicted and observed direction over the arc [arcsec]."""
    position: FloatArray
    """Heliocentric state at t2, shape (M, 3) [au, au/d]."""
    velocity: FloatArray

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
    """Labels of arcs by the orbits of their objects.

    Parameters
    ----------
    arcs : Arcs
        M arcs with the state of the observer where he stood.
    orbits : Catalogue
    row : ndarray of int, shape (M,)
        Orbit of each arc; see `Catalogue.find`.
    dynamics : {"kepler", "nbody"}
        Two-body motion from the epoch of the elements, as the literature has it, or an integration
        that includes the planets and the Moon, which needs the extra ``nbody``.
    integrator : NBodyIntegrator, optional
        One to go on with.

    Returns
    -------
    Truth

    Raises
    ------
    DatasetError
        If ``dynamics`` is something else.
    MissingDependencyError, EphemerisError
        See `neoranging.orbits.nbody.nbody_states`.
    """
    _checked(dynamics)
    middle = arcs.triplet[:, 1]
    t2 = arcs.t[middle]
    rows, which = np.unique(row, return_inverse=True)
    few = orbits.take(rows)
    r, v = few.states()
    if dynamics == "kepler":
        r2, v2 = propagate(r[which], v[which], t2 - few.epoch_mjd_tdb[which])
        # from t2 on, all of an arc is so short that the propagation is a series
        of_each = r2[arcs.owner], v2[arcs.owner], t2[arcs.owner]
    else:
        owner = which[arcs.owner]
        r_all, v_all = nbody_states(r, v, few.epoch_mjd_tdb, owner, arcs.t, integrator=integrator)
        # the planets do nothing to speak of within a light time
        of_each = r_all, v_all, arcs.t
        r2, v2 = r_all[middle], v_all[middle]
    seen = sight(*of_each, arcs.t, arcs.position, arcs.velocity)
    geocentric = sight(r2, v2, t2, t2, *ephemeris.earth_state(t2))
    return Truth(
        geocentric.rho,
        geocentric.rho_dot,
        seen.rho[middle],
        seen.rho_dot[middle],
        _largest_residual(arcs, seen),
        r2,
        v2,
    )


def _largest_residual(arcs: Arcs, seen: Sighting) -> FloatArray:
    chord = norm(seen.direction - arcs.direction)
    largest = np.maximum.reduceat(chord, arcs.offsets[:-1]) if len(arcs) else chord
    return 2.0 * np.arcsin(np.minimum(0.5 * largest, 1.0)) / ARCSEC


def _checked(dynamics: str) -> None:
    if dynamics not in DYNAMICS:
        raise DatasetError(f"dynamics must be one of {', '.join(DYNAMICS)}, got {dynamics!r}")


def label_arcs(
    table: ArcTable,
    orbits: Catalogue,
    *,
    dynamics: str = "kepler",
    gate: float = GATE,
    max_u: int | None = None,
    progress: Callable[[int], object] | None = None,
) -> tuple[ArcTable, RecordCount]:
    """Give arcs their labels, and drop those whose label cannot be believed.

    Parameters
    ----------
    table : ArcTable
        Arcs of `neoranging.lab.sets.arcs.form_arcs`.
    orbits : Catalogue
        Where it has several orbits of an object, the one nearest in time is taken.
    dynamics : {"kepler", "nbody"}
        See ``truth``.
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
        See `neoranging.orbits.nbody.nbody_states`.
    """
    _checked(dynamics)
    row = orbits.find(table["designation"], table["t2_mjd_tdb"])
    rejections = Rejections(len(table))
    rejections.reject(row < 0, "no orbit of that object")
    if max_u is not None:
        _drop_uncertain(rejections, orbits, row, max_u)
    kept = np.flatnonzero(rejections.usable)
    found = _in_chunks(table.take(kept), orbits, row[kept], dynamics, progress)
    residual = np.full(len(table), np.nan)
    residual[kept] = found.residual
    rejections.reject(~np.isfinite(residual), "an orbit that predicts nothing")
    rejections.reject(~(residual <= gate), f'label more than {gate:g}" from an observation')
    passed = rejections.usable[kept]
    labels = Truth._make(column[passed] for column in found)
    labelled = _with_labels(
        table.take(rejections.usable), orbits, row[rejections.usable], labels, dynamics
    )
    return labelled, rejections.count


def _drop_uncertain(rejections: Rejections, orbits: Catalogue, row: IntArray, max_u: int) -> None:
    known = orbits.U >= 0
    if len(orbits) and not known.any():
        raise DatasetError(
            "max_u cannot be asked of this table of orbits: it has no column U; leave max_u out, "
            "the gate judges each label anyway"
        )
    rejections.reject(~known[row], "orbit without uncertainty parameter U")
    rejections.reject(orbits.U[row] > max_u, f"orbit of U above {max_u}")


def _in_chunks(
    table: ArcTable,
    orbits: Catalogue,
    row: IntArray,
    dynamics: str,
    progress: Callable[[int], object] | None,
) -> Truth:
    """Labels of all arcs, worked out object by object."""
    m = len(table)
    found = Truth(*(np.full(m, np.nan) for _ in range(5)), *np.full((2, m, 3), np.nan))
    integrator = NBodyIntegrator() if dynamics == "nbody" and m else None
    order = np.argsort(row, kind="stable")
    for start in range(0, m, _CHUNK):
        part = order[start : start + _CHUNK]
        arcs = to_core(table.take(part))
        labels = truth(arcs, orbits, row[part], dynamics=dynamics, integrator=integrator)
        for column, values in zip(found, labels, strict=True):
            column[part] = values
        if progress is not None:
            progress(len(part))
    return found


def _with_labels(
    table: ArcTable, orbits: Catalogue, row: IntArray, labels: Truth, dynamics: str
) -> ArcTable:
    elements = labels.elements
    labelled = table.with_columns(
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
    return labelled.with_columns(pseudo_admissible=_pseudo_admissible(labelled))


class _Attributable(NamedTuple):
    """What the literature knows of an arc: direction and rates at t2, from the Earth's centre."""

    ra: FloatArray
    dec: FloatArray
    ra_rate: FloatArray
    dec_rate: FloatArray
    position: FloatArray
    velocity: FloatArray

    @classmethod
    def of(cls, table: ArcTable) -> _Attributable:
        names = ("ra2_rad", "dec2_rad", "ra_rate_rad_d", "dec_rate_rad_d")
        earth = ephemeris.earth_state(table["t2_mjd_tdb"])
        return cls._make((*(table[name] for name in names), *earth))


def _pseudo_admissible(table: ArcTable) -> BoolArray:
    c = energy_coefficients(*_Attributable.of(table))
    return is_admissible(c, table["rho_geo_au"], table["rho_dot_geo_au_d"])


def pseudo_true_elements(table: ArcTable) -> Elements:
    """Orbits that observed attributables imply with their true ranges.

    What a method would give that found range and range-rate without error; geocentric, with the
    three-point rates, as the literature has it. It differs from the true orbit by the error of the
    rates and by the parallax.

    Parameters
    ----------
    table : ArcTable
        M labelled arcs.

    Returns
    -------
    Elements
        Ecliptic J2000, arrays of shape (M,).
    """
    attributable = _Attributable.of(table)
    r, v = object_state(*attributable, table["rho_geo_au"], table["rho_dot_geo_au_d"])
    return state_to_elements(equatorial_to_ecliptic(r), equatorial_to_ecliptic(v))
