"""Intervals of the methods of a study: crosswise on its arcs, and on single unseen objects."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
import pandas as pd

from neoranging.core import conformal as core
from neoranging.core.attributable import from_fit
from neoranging.core.conformal import Answers
from neoranging.core.status import is_usable
from neoranging.exceptions import ConformalError
from neoranging.lab.sets.arcs import to_core
from neoranging.lab.sets.schema import ArcTable
from neoranging.lab.sets.store import read_manifest
from neoranging.lab.study.calibration import CrossConformal, HeldOut, cross_conformal
from neoranging.lab.study.methods import Contender, ask
from neoranging.lab.study.predictions import Predictions
from neoranging.lab.study.scores import ArcTruth, score, select
from neoranging.lab.study.selection import Selection, plain_settings
from neoranging.lab.study.strata import Strata
from neoranging.typing import FloatArray, IntArray

LEVEL: Final = 0.68
"""Of the intervals that are drawn, and of those that scores carry."""

TABLE_LEVELS: Final = (0.68, 0.95)
"""Of tables."""

LEVELS: Final = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.68, 0.8, 0.9, 0.95, 0.99)
"""Of reliability diagrams; those that the arcs are too few for are left out."""


@dataclass(frozen=True, eq=False, repr=False)
class Intervals:
    """What is known of the intervals of one method.

    Attributes
    ----------
    held : HeldOut, optional
        Its answers, without those to resampled arcs; None where it has none.
    rows_held : ndarray of int
        Where these arcs stand among those of the study.
    crosswise : CrossConformal, optional
        Intervals of each from other objects.
    coverage : DataFrame
        ``crosswise.coverage()`` at all levels.
    rows : DataFrame
        For the table of all methods: ``method``, ``source`` and the columns of ``coverage`` at
        `TABLE_LEVELS`, crosswise and of the calibration that comes with the method.
    why : str
        Why there are none, or what is special about them; "" for nothing.
    """

    held: HeldOut | None
    rows_held: IntArray
    crosswise: CrossConformal | None
    coverage: pd.DataFrame
    rows: pd.DataFrame
    why: str = ""

    @classmethod
    def of(
        cls,
        contender: Contender,
        table: ArcTable,
        predictions: Predictions,
        scored: pd.DataFrame,
        *,
        folds: int = 10,
        data: Mapping[str, Any] | None = None,
    ) -> Self:
        """Intervals of a method on the arcs of a study.

        Parameters
        ----------
        contender : Contender
        table : ArcTable
            M arcs.
        predictions, scored : Predictions, DataFrame
            Of these arcs.
        folds : int
        data : mapping, optional
            What `neoranging.lab.study.selection.describe` says of them. The calibration that a
            method carries is not judged by the arcs it was made of.
        """
        rows = np.flatnonzero(~table["is_close"])
        mine = _held(contender, table, predictions, scored).take(rows)
        folds = min(folds, len(np.unique(mine.objects)))
        if folds < 2:
            return cls._without(rows, "no intervals: all arcs are of one object")
        held, why = _together_if_few(mine, folds)
        try:
            crosswise = cross_conformal(held, levels=_possible(held), folds=folds)
        except ConformalError as error:
            return cls._without(rows, f"no intervals: {error}")
        strata = {f"{axis} tercile": _terciles(scored, axis)[rows] for axis in ("eta", "rho")}
        coverage = crosswise.coverage(strata)
        told = _table(contender.label, "crosswise", coverage)
        if (package := _of_package(contender, mine, data or {})) is not None:
            own = _table(contender.label, "of the method", package.coverage(strata))
            told = pd.concat([told, own], ignore_index=True)
        return cls(held, rows, crosswise, coverage, told, why)

    @classmethod
    def _without(cls, rows: IntArray, why: str) -> Self:
        """No intervals."""
        return cls(None, rows, None, pd.DataFrame(), pd.DataFrame(), why)

    def dress(self, scored: pd.DataFrame) -> pd.DataFrame:
        """Scores with the crosswise intervals at `LEVEL`."""
        if self.crosswise is None or LEVEL not in self.crosswise.levels:
            return scored
        bounds = np.full((len(scored), 2), np.nan)
        bounds[self.rows_held] = self.crosswise.interval(LEVEL)
        return _with_bounds(scored, bounds)


def _with_bounds(scored: pd.DataFrame, bounds: FloatArray) -> pd.DataFrame:
    bounds = np.where(scored.answered.to_numpy()[:, None], bounds, np.nan)
    return scored.assign(low=bounds[:, 0], high=bounds[:, 1])


def _held(
    contender: Contender, table: ArcTable, predictions: Predictions, scored: pd.DataFrame
) -> HeldOut:
    arcs = to_core(table, predictions.origin)
    return HeldOut(
        contender.estimator.identity,
        _answers(predictions, arcs.span),
        core.admissible_limits(from_fit(arcs)),
        scored.rho_true.to_numpy(),
        table["designation"],
    )


def _answers(predictions: Predictions, span: FloatArray) -> Answers:
    p = predictions
    error = np.full(len(p), np.nan) if p.rho_error is None else p.rho_error
    return Answers(p.rho, error, is_usable(p.status), p.eta, span)


def _together_if_few(held: HeldOut, folds: int) -> tuple[HeldOut, str]:
    """Answers whose verdict does not count where too few are usable to be calibrated apart."""
    usable = held.answers.given & held.answers.usable
    # a fold is calibrated on the others, and one object may own most of the answers that are OK
    fold = core.folds(held.objects, folds, np.random.default_rng(0))
    left = int(usable.sum()) - int(np.bincount(fold[usable], minlength=1).max())
    if not usable.any() or left >= core.arcs_needed(max(TABLE_LEVELS)):
        return held, ""
    together = held.answers._replace(usable=np.zeros(len(held), dtype=bool))
    return (
        replace(held, answers=together),
        f"only {usable.sum()} answers are usable: its intervals are calibrated on all together",
    )


def _possible(held: HeldOut) -> list[float]:
    """Levels that the usable answers suffice for in every bin of every fold."""
    n_usable = int((held.answers.given & held.answers.usable).sum())
    # bins hold hundreds of arcs unless there are fewer in all; folds of objects are uneven
    least = 0.5 * min(n_usable or len(held), 400)
    return [level for level in LEVELS if level <= 0.95 or core.arcs_needed(level) <= least]


def _terciles(scored: pd.DataFrame, axis: str) -> Any:
    strata = Strata.of(scored, axis)
    return np.array([*strata.names, "unknown"])[strata.cell]


def _of_package(
    contender: Contender, held: HeldOut, data: Mapping[str, Any]
) -> CrossConformal | None:
    """Intervals of the calibration that a method carries.

    None if it has none, or if that was made of the same part of the same set: it would look better
    than it is.
    """
    calibration = contender.estimator.calibration
    if calibration is None or _made_of(calibration.description, data):
        return None
    bounds = [
        calibration.bounds(held.answers, held.limits, level, too_few="limits")
        for level in TABLE_LEVELS
    ]
    return CrossConformal(held, TABLE_LEVELS, np.stack(bounds), np.zeros(len(held), dtype=int))


def _made_of(description: Mapping[str, Any], data: Mapping[str, Any]) -> bool:
    """Whether a calibration and a study look at the same part of the same set."""
    if not data or "split" not in description:
        return False
    same_part = description["split"] == data["selection"]["split"]
    return same_part and plain_settings(description.get("set", {})) == data["settings"]


def _table(label: str, source: str, coverage: pd.DataFrame) -> pd.DataFrame:
    rows = coverage[coverage["level"].isin(TABLE_LEVELS)].reset_index(drop=True)
    rows.insert(0, "method", label)
    rows.insert(1, "source", source)
    return rows


# ---------------------------------------------------------------------- single objects


@dataclass(frozen=True, eq=False, repr=False)
class Cases:
    """Single objects, with intervals of every method.

    Attributes
    ----------
    table : ArcTable
        Their arcs.
    scored : list of DataFrame
        Of each method, with bounds.
    objects : list of str
    are_unseen : bool
        Whether they belong to no part that is judged or trained on.
    rows : DataFrame
        Every number of them.
    """

    table: ArcTable
    scored: list[pd.DataFrame]
    objects: list[str]
    are_unseen: bool
    rows: pd.DataFrame


def case_studies(
    folder: str | os.PathLike[str],
    selection: Selection,
    table: ArcTable,
    chosen: Sequence[Contender],
    scored: Mapping[str, pd.DataFrame],
    intervals: Mapping[str, Intervals],
    *,
    n_objects: int = 6,
    least: int = 5,
) -> Cases | None:
    """Objects drawn at random, with the intervals of every method at `LEVEL`.

    Those of the split ``"unseen"`` if the set has it, with calibrations of all arcs of the study;
    else objects of the study itself, with its crosswise intervals.

    Parameters
    ----------
    folder : path-like
        Of the set.
    selection : Selection
    table : ArcTable
        The arcs of the study.
    chosen : sequence of Contender
    scored, intervals : mapping
        By label, of these arcs.
    n_objects, least : int
        How many objects, and how many arcs each has at least.

    Returns
    -------
    Cases or None
        None where no object has enough arcs.
    """
    parts = read_manifest(Path(folder)).get("splits", {}).get("parts", [])
    unseen = selection.split not in (None, "unseen") and any(
        part["split"] == "unseen" and part["n_arcs"] for part in parts
    )
    pool = Selection(split="unseen").read(folder) if unseen else table
    objects = _drawn(pool, n_objects, least, selection.seed)
    if not objects:
        return None
    rows = np.flatnonzero(np.isin(pool["designation"], objects))
    rows = rows[np.lexsort((pool["t2_mjd_tdb"][rows], pool["designation"][rows]))]
    arcs = pool.take(rows)
    if unseen:
        judged = [_of_unseen(each, arcs, intervals[each.label]) for each in chosen]
    else:
        judged = [select(scored[each.label], rows) for each in chosen]
    numbers = pd.concat([_case_rows(arcs, scores) for scores in judged], ignore_index=True)
    return Cases(arcs, judged, objects, unseen, numbers)


def _drawn(table: ArcTable, n: int, least: int, seed: int) -> list[str]:
    names, counts = np.unique(table["designation"], return_counts=True)
    order = np.random.default_rng(seed).permutation(np.flatnonzero(counts >= least))
    return sorted(names[order[:n]].tolist())


def _of_unseen(contender: Contender, arcs: ArcTable, intervals: Intervals) -> pd.DataFrame:
    found = ask(contender, arcs)
    scored = score(arcs, found, truth=ArcTruth.of(arcs, found.origin))
    if intervals.held is None:
        return scored
    mine = _held(contender, arcs, found, scored)
    if not intervals.held.answers.usable.any():  # verdicts that did not count there do not here
        none = np.zeros(len(arcs), dtype=bool)
        mine = replace(mine, answers=mine.answers._replace(usable=none))
    calibration = intervals.held.calibration()
    bounds = calibration.bounds(mine.answers, mine.limits, LEVEL, too_few="limits")
    return _with_bounds(scored, bounds)


def _case_rows(arcs: ArcTable, scored: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "method": scored.attrs["method"],
            "origin": scored.attrs["origin"],
            "level": LEVEL,
            "designation": arcs["designation"],
            "t2_mjd_tdb": arcs["t2_mjd_tdb"],
            "span_d": scored.span,
            "eta_rad_d": scored.eta,
            "rho_true_au": scored.rho_true,
            "rho_au": scored.rho,
            "low_au": scored.low,
            "high_au": scored.high,
            "inside": scored.rho_true.between(scored.low, scored.high),
        }
    )
