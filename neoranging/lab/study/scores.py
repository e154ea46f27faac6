"""Predictions beside the truth: errors and distances of orbits, arc by arc.

The truth of an arc is the label that counts from where the method's ranges count. Two orbits stand
for it. The *catalogue* orbit is what the object moves on. The *pseudo-true* orbit is the observed
attributable completed with the true range and range-rate: what a method without error in these two
numbers would give, errors of the observed rates included. The attributable is that by the weighted
fit of all observations, seen from the method's origin; with three observations from the geocentre
it is, but for the plane it is fitted in, that of the literature.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from neoranging.core.attributable import Attributables, from_fit
from neoranging.core.conformal import admissible_limits
from neoranging.core.dcriteria import d_sh
from neoranging.core.elements import state_to_elements
from neoranging.core.geometry import equatorial_to_ecliptic
from neoranging.core.prediction import object_state
from neoranging.exceptions import EvaluationError
from neoranging.lab.sets.arcs import OBSERVED, to_core
from neoranging.lab.sets.schema import TRUE_COLUMNS, ArcTable
from neoranging.lab.study.predictions import Predictions
from neoranging.typing import BoolArray, FloatArray, IntArray, StrArray

_CATALOGUE: Final = ("q_au", "ecc", "inc_rad", "raan_rad", "argp_rad")

COLUMNS_NEEDED: Final = (
    *OBSERVED,
    *(name for names in TRUE_COLUMNS.values() for name in names),
    *_CATALOGUE,
    *("designation", "span_d"),
)
"""Columns of a set that methods are asked with and judged by."""

_SAME = 1e-9
"""Relative difference of proper motions up to which predictions belong to an arc."""


@dataclass(frozen=True, eq=False, repr=False)
class ArcTruth:
    """Truth of M arcs from one origin; made once, it serves every method of that origin.

    Attributes
    ----------
    origin : {"topocenter", "geocenter"}
    attributables : Attributables
        By the weighted fit of all observations, seen from the origin.
    limits : ndarray, shape (M, 2)
        Least and greatest admissible range of the attributables [au].
    rho, rho_dot : ndarray, shape (M,)
        True range [au] and range-rate [au/d].
    pseudo : ndarray, shape (5, M)
        Pseudo-true orbit ``q, ecc, inc, raan, argp`` [au, -, rad, rad, rad], ecliptic J2000.
    catalogue : ndarray, shape (5, M)
        The same of the catalogue.
    admissible : ndarray of bool, shape (M,)
        The true range lies in the admissible region of the observed attributable.
    eta : ndarray, shape (M,)
        Proper motion of the attributables [rad/d].
    span : ndarray, shape (M,)
        From the first to the last observation [d].
    object : ndarray of int, shape (M,)
        Number of the object of each arc in ``designations``.
    designations : ndarray of str, shape (K,)
        The objects, in alphabetical order.
    """

    origin: str
    attributables: Attributables
    limits: FloatArray
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
        rho, rho_dot = (table[name] for name in TRUE_COLUMNS[origin])
        unlabelled = int(np.sum(~(np.isfinite(rho) & np.isfinite(rho_dot))))
        if unlabelled:
            raise EvaluationError(
                f"{unlabelled} of {len(table)} arcs have no true range: only labelled arcs can be "
                "scored; take the others out of the table"
            )
        r, v = object_state(
            a.ra, a.dec, a.ra_rate, a.dec_rate, a.position, a.velocity, rho, rho_dot
        )
        designations, number = np.unique(table["designation"], return_inverse=True)
        return cls(
            origin=origin,
            attributables=a,
            limits=admissible_limits(a),
            rho=rho,
            rho_dot=rho_dot,
            pseudo=_five_elements(r, v),
            catalogue=np.stack([table[name] for name in _CATALOGUE]),
            admissible=a.complete(rho, rho_dot).admissible,
            eta=a.proper_motion,
            span=table["span_d"],
            object=number.astype(np.int64),
            designations=designations,
        )

    def __len__(self) -> int:
        return len(self.rho)


def score(
    table: ArcTable, predictions: Predictions, *, truth: ArcTruth | None = None
) -> pd.DataFrame:
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
    pandas.DataFrame
        One row for each of the M arcs; ``method``, ``origin`` and ``seconds`` (wall time for all of
        them) stand in ``.attrs``. NaN marks what does not exist: errors where there is no answer, D
        where an orbit is not elliptic.

        ``rho``, ``rho_dot``, ``rho_true``, ``rho_dot_true``
            Predicted and true range [au] and range-rate [au/d].
        ``low``, ``high``
            Bounds of an interval of the range [au]; NaN where none was made.
        ``status``, ``answered``, ``ok``
            `RangeStatus.code`; there is a range, whatever the status; the status is OK.
        ``relative_error``, ``log10_error``
            ``|rho - rho_true| / rho_true``, and ``|log10(rho / rho_true)|`` [dex], which is
            infinite for an answer that is not positive.
        ``d_sh_pseudo``, ``d_sh_catalogue``, ``elliptic_pseudo``, ``elliptic_catalogue``
            Distance D of Southworth and Hawkins of the orbit of the answer from the pseudo-true
            orbit and from that of the catalogue, and whether both orbits are elliptic.
        ``admissible``, ``pseudo_admissible``
            The answer, and the true range, lie in the admissible region of the attributable.
        ``eta``, ``inc``, ``span``
            Proper motion [rad/d], true inclination [rad], length of the arc [d].
        ``object``, ``designation``
            Number of the object in alphabetical order, and its name.

    Raises
    ------
    EvaluationError
        If an arc has no label, or the predictions are those of other arcs.
    DatasetError
        If the table lacks a column.
    """
    true = ArcTruth.of(table, predictions.origin) if truth is None else truth
    p = predictions
    _check_same_arcs(true, p)
    ratio = p.rho / true.rho
    with np.errstate(divide="ignore", invalid="ignore"):
        dex = np.where(ratio > 0.0, np.abs(np.log10(ratio)), np.where(ratio <= 0, np.inf, np.nan))
    orbit = _five_elements(p.r, p.v)
    d_sh_pseudo, elliptic_pseudo = _distance(orbit, true.pseudo)
    d_sh_catalogue, elliptic_catalogue = _distance(orbit, true.catalogue)
    columns = {
        "rho": p.rho,
        "rho_dot": p.rho_dot,
        "rho_true": true.rho,
        "rho_dot_true": true.rho_dot,
        "low": np.nan if p.low is None else p.low,
        "high": np.nan if p.high is None else p.high,
        "status": p.status,
        "answered": p.answered,
        "ok": p.ok,
        "relative_error": np.abs(ratio - 1.0),
        "log10_error": dex,
        "d_sh_pseudo": d_sh_pseudo,
        "d_sh_catalogue": d_sh_catalogue,
        "elliptic_pseudo": elliptic_pseudo,
        "elliptic_catalogue": elliptic_catalogue,
        "admissible": p.admissible,
        "pseudo_admissible": true.admissible,
        "eta": true.eta,
        "inc": true.catalogue[2],
        "span": true.span,
        "object": true.object,
        "designation": pd.Categorical.from_codes(true.object, true.designations),
    }
    scores = pd.DataFrame(columns)
    scores.attrs = {"method": p.method, "origin": p.origin, "seconds": p.seconds}
    return scores


def select(scores: pd.DataFrame, rows: slice | npt.ArrayLike) -> pd.DataFrame:
    """Scores of some arcs, numbered anew from 0: a slice, indices in any order, or a mask."""
    if not isinstance(rows, slice):
        rows = np.asarray(rows)
        rows = rows if rows.dtype == bool else rows.astype(np.intp)
    return scores.iloc[rows].reset_index(drop=True)


def _five_elements(r: FloatArray, v: FloatArray) -> FloatArray:
    """Elements q, ecc, inc, raan, argp of equatorial states, shape (5, M)."""
    elements = state_to_elements(equatorial_to_ecliptic(r), equatorial_to_ecliptic(v))
    return np.stack(elements[:5])


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
