"""A study: several methods asked for the same labelled arcs, and everything that is said of them.

The methods answer first, which is kept; `judge` works everything else out of the answers. What a
study finds is a `Study`; ``neoranging.lab.study.figures.draw`` draws its figures,
``neoranging.lab.study.report`` makes a page of all, and ``neoranging.lab.study.folder`` writes it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from neoranging._version import __version__
from neoranging.core.answers import Answers
from neoranging.lab.sets.arcs import to_core
from neoranging.lab.sets.progress import NoBar
from neoranging.lab.sets.schema import ArcTable
from neoranging.lab.study.calibration import (
    INTERVAL_LEVEL,
    HeldOut,
    MethodIntervals,
    without_verdicts,
)
from neoranging.lab.study.cases import CaseArcs, Cases, case_rows, draw_cases
from neoranging.lab.study.checks import Remark, check_answers, check_labels, check_twins
from neoranging.lab.study.methods import Contender, ask, contenders
from neoranging.lab.study.predictions import predict
from neoranging.lab.study.scores import ArcTruth, score, select
from neoranging.lab.study.selection import Selection, describe, is_same_part
from neoranging.lab.study.strata import Strata
from neoranging.lab.study.tables import study_tables
from neoranging.typing import FloatArray, IntArray

Bar = Callable[..., Any]
"""Makes a progress bar of a total, a description and a unit; see `progress_bar`."""


def no_bar(*_: Any, **__: Any) -> NoBar:
    """Progress that nobody sees."""
    return NoBar()


@dataclass(frozen=True, eq=False, repr=False)
class Study:
    """What was found of several methods on the same arcs.

    Attributes
    ----------
    data : dict
        Which arcs: ``neoranging.lab.study.selection.describe``.
    settings : dict
        How they were judged.
    table : ArcTable
        The M arcs.
    contenders : tuple of Contender
        The methods, in the order of the tables.
    twins : tuple of Contender
        The classical ones among them with the observers in the centre of the Earth.
    answers : dict of str to Answers
        By label, of both.
    scored : dict of str to DataFrame
        The same beside the truth; those of ``contenders`` with crosswise intervals.
    coverage : dict of str to DataFrame
        By label: `neoranging.lab.study.calibration.coverage`.
    cases : Cases, optional
        Single objects with intervals.
    remarks : list of Remark
        What is suspicious.
    tables : dict of str to DataFrame
        Every figure, by name of the table.
    """

    data: dict[str, Any]
    settings: dict[str, Any]
    table: ArcTable
    contenders: tuple[Contender, ...]
    twins: tuple[Contender, ...]
    answers: dict[str, Answers]
    scored: dict[str, pd.DataFrame]
    coverage: dict[str, pd.DataFrame]
    cases: Cases | None
    remarks: list[Remark]
    tables: dict[str, pd.DataFrame]

    @property
    def labels(self) -> list[str]:
        """Of the methods, without the geocentric twins."""
        return [each.label for each in self.contenders]

    @property
    def judged(self) -> list[pd.DataFrame]:
        """Scores of the methods, without the geocentric twins."""
        return [self.scored[label] for label in self.labels]

    @property
    def classical(self) -> list[pd.DataFrame]:
        """Scores of the classical methods and their geocentric twins."""
        known = (*(c for c in self.contenders if c.is_classical), *self.twins)
        return [self.scored[each.label] for each in known]

    @property
    def learned(self) -> list[pd.DataFrame]:
        """Scores of the methods that are not classical."""
        return [self.scored[each.label] for each in self.contenders if not each.is_classical]

    def __repr__(self) -> str:
        return f"<Study of {', '.join(self.labels)} on {len(self.table)} {self.data['kind']} arcs>"


def run_study(
    folder: str | os.PathLike[str],
    methods: Sequence[Any],
    *,
    selection: Selection | None = None,
    kept: Path | None = None,
    geocentric: bool = True,
    n_boot: int = 200,
    folds: int = 10,
    bar: Bar = no_bar,
) -> Study:
    """Ask methods for arcs of a stored set, and judge the answers.

    Parameters
    ----------
    folder : path-like
        Of the set.
    methods : sequence of str, RangingEstimator or Contender
        See `Contender.of`.
    selection : Selection, optional
        Which arcs; those of the split ``"test"`` by default.
    kept : Path, optional
        Folder of predictions; those found there are not made again.
    geocentric : bool
        Ask classical methods from the centre of the Earth as well.
    n_boot : int
        Resamples of the bootstrap by object.
    folds : int
        Of the crosswise intervals.
    bar : callable
        Makes progress bars; ``neoranging.lab.sets.progress.progress_bar``.

    Returns
    -------
    Study

    Raises
    ------
    DatasetError
        If the folder holds no finished set.
    EvaluationError
        If there is no arc or no method, or two methods have one label.
    """
    chosen = contenders(methods)
    twins = [twin for each in chosen if geocentric and (twin := each.from_geocenter())]
    both = contenders([*chosen, *twins])
    selection = selection or Selection()
    table = selection.read(folder)
    data = describe(folder, selection, table)
    # what no method changes, once for each origin; labels are checked by the topocentre
    origins = dict.fromkeys(["topocenter", *(each.estimator.origin for each in both)])
    arcs = {origin: to_core(table, origin) for origin in origins}
    truths = {origin: ArcTruth.of(table, origin, arcs[origin]) for origin in origins}
    cases = draw_cases(folder, selection, table)
    with bar(len(both) * len(table), "asking", "arc") as shown:
        answers = {c.label: ask(c, table, truths, arcs, kept, shown.update) for c in both}
    unseen = {}
    if cases is not None and cases.rows is None:
        unseen = {c.label: predict(c.estimator, cases.table, label=c.label) for c in chosen}
    with bar(len(both) + len(chosen) + 6, "judging", "step") as shown:
        return judge(
            answers,
            truths,
            table,
            chosen,
            twins,
            data,
            cases=cases,
            unseen=unseen,
            n_boot=n_boot,
            folds=folds,
            progress=shown.update,
        )


def judge(
    answers: Mapping[str, Answers],
    truths: Mapping[str, ArcTruth],
    table: ArcTable,
    methods: Sequence[Contender],
    twins: Sequence[Contender],
    data: dict[str, Any],
    *,
    cases: CaseArcs | None = None,
    unseen: Mapping[str, Answers] | None = None,
    n_boot: int = 200,
    folds: int = 10,
    progress: Callable[[int], object] = lambda _: None,
) -> Study:
    """Study of answers that methods gave to the same labelled arcs.

    Parameters
    ----------
    answers : mapping of str to Answers
        By label, of the methods and their twins.
    truths : mapping of str to ArcTruth
        By origin; that from the topocentre among them.
    table : ArcTable
        The M arcs.
    methods, twins : sequence of Contender
    data : dict
        `neoranging.lab.study.selection.describe`.
    cases : CaseArcs, optional
        Arcs of single objects.
    unseen : mapping of str to Answers, optional
        Answers to these arcs, by label, where they are not among those of the study.
    n_boot, folds : int
        As for `run_study`.
    progress : callable
        Called with the number of steps done since it was last called.
    """
    scored, intervals = {}, {}
    for label, each in answers.items():
        scored[label] = score(table, each, truth=truths[each.origin])
        progress(1)
    usual = np.flatnonzero(~table["is_close"])
    for method in methods:
        label, truth = method.label, truths[method.estimator.origin]
        held = HeldOut(method.estimator.identity, answers[label], truth).take(usual)
        own = intervals[label] = _intervals(method, held, scored[label], usual, data, folds)
        if own.bounds is not None:
            bounds = np.full((len(table), 2), np.nan)
            bounds[usual] = own.bounds
            scored[label] = _with_bounds(scored[label], bounds)
        progress(1)
    shown = None if cases is None else _judge_cases(cases, unseen or {}, methods, scored, intervals)
    progress(1)
    seed = data["selection"]["seed"]
    tables = study_tables(methods, twins, scored, n_boot=n_boot, rng=seed, done=progress)
    tables["coverage"] = _covered(intervals)
    tables["cases"] = pd.DataFrame() if shown is None else shown.rows
    remarks = [
        *check_labels(table, truths["topocenter"], data),
        *check_twins([scored[each.label] for each in methods]),
        *(remark for each in methods for remark in check_answers(scored[each.label])),
        *(Remark(label, False, own.why) for label, own in intervals.items() if own.why),
    ]
    return Study(
        data=data,
        settings={
            "neoranging": __version__,
            "methods": {each.label: each.estimator.identity for each in (*methods, *twins)},
            "n_boot": n_boot,
            "folds": folds,
        },
        table=table,
        contenders=tuple(methods),
        twins=tuple(twins),
        answers=dict(answers),
        scored=scored,
        coverage={
            label: own.coverage for label, own in intervals.items() if own.coverage is not None
        },
        cases=shown,
        remarks=sorted(remarks, key=lambda remark: not remark.is_alarm),
        tables=tables,
    )


def _intervals(
    method: Contender,
    held: HeldOut,
    scored: pd.DataFrame,
    rows: IntArray,
    data: Mapping[str, Any],
    folds: int,
) -> MethodIntervals:
    """Intervals of a method on some rows, with the terciles of all arcs as strata."""
    calibration = method.estimator.calibration
    if calibration is not None and is_same_part(calibration.description, data):
        calibration = None  # judged by the arcs it was made of, it would look too good
    strata = {axis: Strata.of(scored, axis) for axis in ("eta", "rho")}
    terciles = {
        f"{axis} tercile": np.array([*cells.names, "unknown"])[cells.cell[rows]]
        for axis, cells in strata.items()
    }
    return MethodIntervals.of(held, terciles, calibration, folds)


def _covered(intervals: Mapping[str, MethodIntervals]) -> pd.DataFrame:
    """Coverage of the intervals of all methods that have some."""
    tables = {label: own.rows for label, own in intervals.items() if own.rows is not None}
    if not tables:
        return pd.DataFrame()
    table = pd.concat(tables, names=["method", None])
    return table.reset_index("method").reset_index(drop=True)


def _with_bounds(scored: pd.DataFrame, bounds: FloatArray) -> pd.DataFrame:
    """Scores with the intervals of arcs that have an answer."""
    bounds = np.where(scored.answered.to_numpy()[:, None], bounds, np.nan)
    return scored.assign(low=bounds[:, 0], high=bounds[:, 1])


def _judge_cases(
    cases: CaseArcs,
    unseen: Mapping[str, Answers],
    methods: Sequence[Contender],
    scored: Mapping[str, pd.DataFrame],
    intervals: Mapping[str, MethodIntervals],
) -> Cases:
    """Scores of single objects: unseen ones with intervals from all arcs of the study."""
    judged = []
    for each in methods:
        if cases.rows is not None:
            judged.append(select(scored[each.label], cases.rows))
            continue
        answers, of_study = unseen[each.label], intervals[each.label].held
        truth = ArcTruth.of(cases.table, answers.origin)
        scores = score(cases.table, answers, truth=truth)
        if of_study is not None:
            held = HeldOut(of_study.identity, answers, truth)
            if not of_study.answers.usable.any():  # verdicts that did not count there do not here
                held = without_verdicts(held)
            calibration = of_study.calibration()
            bounds = held.intervals(calibration, INTERVAL_LEVEL, too_few="limits")
            scores = _with_bounds(scores, bounds)
        judged.append(scores)
    rows = pd.concat([case_rows(cases.table, scores) for scores in judged], ignore_index=True)
    return Cases(cases.table, judged, cases.objects, cases.rows is None, rows)
