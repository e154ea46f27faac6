"""Predictions beside the truth: errors and distances of orbits, arc by arc.

The truth of an arc is the label that counts from where the method's ranges count. Two orbits stand
for it. The *catalogue* orbit is what the object moves on. The *pseudo-true* orbit is the observed
attributable completed with the true range and range-rate: what a method without error in these two
numbers would give, errors of the observed rates included. The attributable is that by the weighted
fit of all observations, seen from the method's origin; with three observations from the geocentre
it is, but for the plane it is fitted in, that of the literature.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt

from neoranging.core.admissible import is_admissible
from neoranging.core.attributable import from_fit
from neoranging.core.dcriteria import d_sh
from neoranging.core.elements import state_to_elements
from neoranging.core.geometry import equatorial_to_ecliptic
from neoranging.core.kepler import orbital_energy
from neoranging.core.prediction import object_state
from neoranging.exceptions import EvaluationError
from neoranging.lab.sets.arcs import OBSERVED, to_core
from neoranging.lab.sets.schema import ArcTable
from neoranging.lab.study.predictions import Predictions, rows_of
from neoranging.typing import BoolArray, CodeArray, FloatArray, IntArray, StrArray

_LABEL: Final = {
    "geocenter": ("rho_geo_au", "rho_dot_geo_au_d"),
    "topocenter": ("rho_topo_au", "rho_dot_topo_au_d"),
}
_CATALOGUE: Final = ("q_au", "ecc", "inc_rad", "raan_rad", "argp_rad")

COLUMNS_NEEDED: Final = (
    *OBSERVED,
    *(name for names in _LABEL.values() for name in names),
    *_CATALOGUE,
    *("designation", "span_d"),
)
"""Columns of a set that methods are asked with and judged by."""

_SAME = 1e-9
"""Relative difference of proper motions up to which predictions belong to an arc."""


@dataclass(frozen=True, eq=False, repr=False)
class ArcTruth:
    """What is true of M arcs, from one origin; made once, it serves every method of that origin.

    Attributes
    ----------
    origin : {"topocenter", "geocenter"}
    rho, rho_dot : ndarray, shape (M,)
        True range [au] and range-rate [au/d].
    pseudo : ndarray, shape (5, M)
        Pseudo-true orbit ``q, ecc, inc, raan, argp`` [au, -, rad, rad, rad], ecliptic J2000.
    catalogue : ndarray, shape (5, M)
        The same of the catalogue.
    admissible : ndarray of bool, shape (M,)
        The true range lies in the admissible region of the observed attributable.
    eta : ndarray, shape (M,)
        Proper motion by the weighted fit of all observations [rad/d].
    span : ndarray, shape (M,)
        From the first to the last observation [d].
    object : ndarray of int, shape (M,)
        Number of the object of each arc in ``designations``.
    designations : ndarray of str, shape (K,)
        The objects, in alphabetical order.
    """

    origin: str
    rho: FloatArray
    rho_dot: FloatArray
    pseudo: FloatArray
    catalogue: FloatArray
    admissible: BoolArray
    eta: FloatArray
    span: FloatArray
    object: IntArray
    designations: StrArray

    @classmethod
    def of(cls, table: ArcTable, origin: str = "topocenter") -> Self:
        """Truth of labelled arcs.

        Parameters
        ----------
        table : ArcTable
            With `COLUMNS_NEEDED`.
        origin : {"topocenter", "geocenter"}

        Raises
        ------
        DatasetError
            If a column is missing or the origin is unknown.
        EvaluationError
            If an arc has no label.
        """
        if not len(table):
            raise EvaluationError("there are no arcs to score: is it the right split?")
        a = from_fit(to_core(table, origin))
        rho, rho_dot = (table[name] for name in _LABEL[origin])
        unlabelled = int(np.sum(~(np.isfinite(rho) & np.isfinite(rho_dot))))
        if unlabelled:
            raise EvaluationError(
                f"{unlabelled} of {len(table)} arcs have no true range: only labelled arcs can be "
                "scored; take the others out of the table"
            )
        r, v = object_state(
            a.ra, a.dec, a.ra_rate, a.dec_rate, a.position, a.velocity, rho, rho_dot
        )
        inside = is_admissible(a.energy_coefficients, rho, rho_dot, orbital_energy(r, v))
        designations, number = np.unique(table["designation"], return_inverse=True)
        return cls(
            origin,
            rho,
            rho_dot,
            _five_elements(r, v),
            np.stack([table[name] for name in _CATALOGUE]),
            inside,
            a.proper_motion,
            table["span_d"],
            number.astype(np.int64),
            designations,
        )

    def __len__(self) -> int:
        return len(self.rho)


def _five_elements(r: FloatArray, v: FloatArray) -> FloatArray:
    """Elements q, ecc, inc, raan, argp of equatorial states, shape (5, M)."""
    elements = state_to_elements(equatorial_to_ecliptic(r), equatorial_to_ecliptic(v))
    return np.stack(elements[:5])


@dataclass(frozen=True, eq=False, repr=False)
class ScoredArcs:
    """Predictions of one method for M arcs, beside the truth of its own origin.

    NaN marks what does not exist: errors where there is no answer, D where an orbit is not
    elliptic. It is for the statistic to say how many there were.

    Attributes
    ----------
    method, origin : str
        As in `Predictions`.
    rho, rho_dot : ndarray, shape (M,)
        Predicted range [au] and range-rate [au/d].
    rho_true, rho_dot_true : ndarray, shape (M,)
    status : ndarray of int8, shape (M,)
    ok : ndarray of bool, shape (M,)
        Status OK.
    relative_error : ndarray, shape (M,)
        ``|rho - rho_true| / rho_true``.
    log10_error : ndarray, shape (M,)
        ``|log10(rho / rho_true)|`` [dex]; infinite for an answer that is not positive.
    d_sh_pseudo, d_sh_catalogue : ndarray, shape (M,)
        Distance D of Southworth and Hawkins of the orbit of the answer from the pseudo-true orbit
        and from that of the catalogue; NaN unless both orbits are elliptic.
    elliptic_pseudo, elliptic_catalogue : ndarray of bool, shape (M,)
        Both orbits of that comparison are elliptic.
    admissible, pseudo_admissible : ndarray of bool, shape (M,)
        The answer, and the true range, lie in the admissible region of the observed attributable.
    eta, inc, span : ndarray, shape (M,)
        Proper motion [rad/d], true inclination [rad], length of the arc [d].
    object : ndarray of int, shape (M,)
        Number of the object of each arc in ``designations``.
    designations : ndarray of str, shape (K,)
    low, high : ndarray, shape (M,), optional
        Bounds of the interval of the range [au].
    seconds : float
        Wall time of the method, for all the arcs it was asked.
    """

    method: str
    origin: str
    rho: FloatArray
    rho_dot: FloatArray
    rho_true: FloatArray
    rho_dot_true: FloatArray
    status: CodeArray
    ok: BoolArray
    relative_error: FloatArray
    log10_error: FloatArray
    d_sh_pseudo: FloatArray
    d_sh_catalogue: FloatArray
    elliptic_pseudo: BoolArray
    elliptic_catalogue: BoolArray
    admissible: BoolArray
    pseudo_admissible: BoolArray
    eta: FloatArray
    inc: FloatArray
    span: FloatArray
    object: IntArray
    designations: StrArray
    low: FloatArray | None = None
    high: FloatArray | None = None
    seconds: float = float("nan")

    def __len__(self) -> int:
        return len(self.rho)

    @property
    def answered(self) -> BoolArray:
        """Arcs with a range, whatever their status, shape (M,)."""
        return np.isfinite(self.rho)

    @property
    def n_objects(self) -> int:
        """Objects that have an arc here."""
        return len(np.unique(self.object))

    def take(self, rows: slice | npt.ArrayLike) -> Self:
        """Some arcs: a slice, indices, or a mask; objects keep their numbers."""
        index = rows_of(len(self), rows)
        values: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        taken = {
            name: value[index]
            for name, value in values.items()
            if isinstance(value, np.ndarray) and name != "designations"
        }
        return type(self)(**values | taken)

    def __repr__(self) -> str:
        return (
            f"<ScoredArcs: {self.method}, {len(self)} arcs of {self.n_objects} objects, "
            f"{int(self.answered.sum())} answered>"
        )


def score(
    table: ArcTable, predictions: Predictions, *, truth: ArcTruth | None = None
) -> ScoredArcs:
    """Hold predictions against the truth.

    Parameters
    ----------
    table : ArcTable
        The M arcs that the method was asked for, labelled, in the same order.
    predictions : Predictions
    truth : ArcTruth, optional
        ``ArcTruth.of(table, predictions.origin)``, where several methods share it.

    Returns
    -------
    ScoredArcs
        Of M rows.

    Raises
    ------
    EvaluationError
        If an arc has no label, or the predictions are those of other arcs.
    DatasetError
        If the table lacks a column.
    """
    known = ArcTruth.of(table, predictions.origin) if truth is None else truth
    p = predictions
    _check_same_arcs(known, p)
    ratio = p.rho / known.rho
    with np.errstate(divide="ignore", invalid="ignore"):
        dex = np.where(ratio > 0.0, np.abs(np.log10(ratio)), np.where(ratio <= 0, np.inf, np.nan))
    orbit = _five_elements(p.r, p.v)
    d_sh_pseudo, elliptic_pseudo = _distance(orbit, known.pseudo)
    d_sh_catalogue, elliptic_catalogue = _distance(orbit, known.catalogue)
    return ScoredArcs(
        method=p.method,
        origin=p.origin,
        rho=p.rho,
        rho_dot=p.rho_dot,
        rho_true=known.rho,
        rho_dot_true=known.rho_dot,
        status=p.status,
        ok=p.ok,
        relative_error=np.abs(ratio - 1.0),
        log10_error=dex,
        d_sh_pseudo=d_sh_pseudo,
        d_sh_catalogue=d_sh_catalogue,
        elliptic_pseudo=elliptic_pseudo,
        elliptic_catalogue=elliptic_catalogue,
        admissible=p.admissible,
        pseudo_admissible=known.admissible,
        eta=known.eta,
        inc=known.catalogue[2],
        span=known.span,
        object=known.object,
        designations=known.designations,
        low=p.low,
        high=p.high,
        seconds=p.seconds,
    )


def _check_same_arcs(truth: ArcTruth, predictions: Predictions) -> None:
    p = predictions
    if truth.origin != p.origin:
        raise EvaluationError(
            f"the ranges of {p.method!r} count from the {p.origin}, the truth from the "
            f"{truth.origin}: make ArcTruth.of(table, {p.origin!r})"
        )
    if len(p) != len(truth):
        raise EvaluationError(f"{p.method!r} has {len(p)} predictions for {len(truth)} arcs")
    # the motion on the sky of an arc is as good as its name
    other = ~(np.abs(p.eta - truth.eta) <= _SAME * truth.eta)
    if other.any():
        raise EvaluationError(
            f"predictions of {p.method!r} belong to other arcs, or to these in another order: "
            f"{int(other.sum())} of {len(p)} proper motions differ; ask the method again"
        )


def _distance(orbit: FloatArray, reference: FloatArray) -> tuple[FloatArray, BoolArray]:
    """D between orbits (5, M), NaN where one is no ellipse, and where both are."""
    both = (orbit[1] < 1.0) & (reference[1] < 1.0)
    # a straight fall into the Sun has no plane: comparable with nothing, like the unbound
    both &= np.isfinite(orbit).all(axis=0) & np.isfinite(reference).all(axis=0)
    distance = np.full(len(both), np.nan)
    distance[both] = d_sh(tuple(orbit[:, both]), tuple(reference[:, both]))
    return distance, both
