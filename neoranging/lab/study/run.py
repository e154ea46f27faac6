"""A study: several methods asked for the same labelled arcs, and everything that is said of them.

The methods answer first, which is kept; `judge` works everything else out of the answers. What a
study finds is a `Study`; ``neoranging.lab.study.figures.draw`` draws its figures,
``neoranging.lab.study.report`` makes a page of all, and ``neoranging.lab.study.folder`` writes it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from neoranging._version import __version__
from neoranging.core.answers import Answers
from neoranging.core.arcs import Arcs
from neoranging.exceptions import ConformalError
from neoranging.lab.sets.arcs import to_core
from neoranging.lab.sets.progress import NoBar
from neoranging.lab.sets.schema import ArcTable
from neoranging.lab.study.calibration import (
    CalibrationSample,
    MethodIntervals,
    without_verdicts,
)
from neoranging.lab.study.cases import CaseArcs, Cases, case_rows, draw_cases
from neoranging.lab.study.checks import (
    Remark,
    check_answers,
    check_copies,
    check_labels,
)
from neoranging.lab.study.half_widths import half_widths
from neoranging.lab.study.methods import StudyMethod, ask, learnt_remarks, study_methods
from neoranging.lab.study.posteriors import PosteriorScores, with_posteriors
from neoranging.lab.study.scores import INTERVAL_LEVEL, ArcTruth, score, select, with_intervals
from neoranging.lab.study.selection import Selection, describe, is_same_part
from neoranging.lab.study.strata import Strata
from neoranging.lab.study.tables import study_tables
from neoranging.typing import IntArray

Asked = tuple[Answers, PosteriorScores | None]
"""What a method answers, and its posteriors beside the truth if it gives some."""

Bar = Callable[..., Any]
"""Makes a progress bar of a total, a description and a unit; see `progress_bar`."""


def no_bar(*_: Any, **__: Any) -> NoBar:
    """Progress that nobody sees."""
    return NoBar()


@dataclass(frozen=True, eq=False, repr=False)
class Study:
    """Answers of several methods to the same arcs, and every figure that follows from them.

    Attributes
    ----------
    data : dict
        Which arcs: ``neoranging.lab.study.selection.describe``.
    settings : dict
        How they were judged.
    table : ArcTable
        The M arcs.
    methods : tuple of StudyMethod
        The methods, in the order of the tables.
    geocentric : tuple of StudyMethod
        The classical ones among them with the observers in the centre of the Earth.
    answers : dict of str to Answers
        By label, of both.
    posteriors : dict of str to PosteriorScores
        By label, of the methods that give posteriors.
    scored : dict of str to DataFrame
        The same beside the truth; those of ``methods`` with intervals, crosswise or of posteriors.
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
    methods: tuple[StudyMethod, ...]
    geocentric: tuple[StudyMethod, ...]
    answers: dict[str, Answers]
    posteriors: dict[str, PosteriorScores]
    scored: dict[str, pd.DataFrame]
    coverage: dict[str, pd.DataFrame]
    cases: Cases | None
    remarks: list[Remark]
    tables: dict[str, pd.DataFrame]

    @property
    def labels(self) -> list[str]:
        """Labels of the methods, without those asked from the geocentre."""
        return [method.label for method in self.methods]

    @property
    def judged(self) -> list[pd.DataFrame]:
        """Scores of the methods, without those asked from the geocentre."""
        return [self.scored[label] for label in self.labels]

    @property
    def classical(self) -> list[pd.DataFrame]:
        """Scores of the classical methods, from their own origin and from the geocentre."""
        methods = (*(m for m in self.methods if m.is_classical), *self.geocentric)
        return [self.scored[method.label] for method in methods]

    @property
    def learned(self) -> list[pd.DataFrame]:
        """Scores of the methods that are not classical."""
        return [self.scored[m.label] for m in self.methods if not m.is_classical]

    def __repr__(self) -> str:
        return f"<Study of {', '.join(self.labels)} on {len(self.table)} {self.data['kind']} arcs>"


def run_study(
    folder: str | os.PathLike[str],
    methods: Sequence[Any],
    *,
    selection: Selection | None = None,
    predictions: Path | None = None,
    geocentric: bool = True,
    allow_learnt: bool = False,
    n_boot: int = 200,
    folds: int = 10,
    scheduler: str | None = None,
    bar: Bar = no_bar,
) -> Study:
    """Ask methods for arcs of a stored set, and judge the answers.

    Parameters
    ----------
    folder : path-like
        Of the set.
    methods : sequence of str, RangingEstimator or StudyMethod
        See `StudyMethod.of`.
    selection : Selection, optional
        Which arcs; those of the split ``"test"`` by default.
    predictions : Path, optional
        Folder of answers; those found there are not made again.
    geocentric : bool
        Ask classical methods from the centre of the Earth as well.
    allow_learnt : bool
        Judge networks on objects that they learnt from as well, which the report remarks.
    n_boot : int
        Resamples of the bootstrap by object.
    folds : int
        Of the crosswise intervals.
    scheduler : str, optional
        Address of a scheduler of Dask, whose workers ask the methods.
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
        If there is no arc or no method, two methods have one label, or a network learnt from
        these objects.
    """
    chosen = study_methods(methods)
    moved = [method.from_geocenter() for method in chosen] if geocentric else []
    from_centre = [method for method in moved if method is not None]
    both = study_methods([*chosen, *from_centre])
    selection = selection or Selection()
    table = selection.read(folder)
    data = describe(folder, selection, table)
    data["learnt"] = learnt_remarks(chosen, table, data["division"], allow=allow_learnt)
    cases = draw_cases(folder, selection, table)
    if cases is not None:
        learnt_remarks(chosen, cases.table, data["division"], allow=allow_learnt)
    # what no method changes, once for each origin; labels are checked by the topocentre
    origins = dict.fromkeys(["topocenter", *(method.estimator.origin for method in both)])
    arcs, truths = _seen_from(origins, table)
    with bar(len(both) * len(table), "asking", "arc") as progress:
        asked = {
            m.label: ask(m, table, truths, arcs, predictions, progress.update, scheduler)
            for m in both
        }
    unseen = {}
    if cases is not None and cases.rows is None:
        case_arcs, case_truths = _seen_from(origins, cases.table)
        unseen = {m.label: ask(m, cases.table, case_truths, case_arcs) for m in chosen}
    with bar(len(both) + len(chosen) + 6, "judging", "step") as progress:
        return judge(
            asked,
            truths,
            table,
            chosen,
            from_centre,
            data,
            cases=cases,
            unseen=unseen,
            n_boot=n_boot,
            folds=folds,
            progress=progress.update,
        )


def _seen_from(
    origins: Iterable[str], table: ArcTable
) -> tuple[dict[str, Arcs], dict[str, ArcTruth]]:
    """Arcs of a table, and their truth, by origin."""
    arcs = {origin: to_core(table, origin) for origin in origins}
    return arcs, {origin: ArcTruth.of(table, origin, arcs[origin]) for origin in arcs}


def judge(
    asked: Mapping[str, Asked],
    truths: Mapping[str, ArcTruth],
    table: ArcTable,
    methods: Sequence[StudyMethod],
    geocentric: Sequence[StudyMethod],
    data: dict[str, Any],
    *,
    cases: CaseArcs | None = None,
    unseen: Mapping[str, Asked] | None = None,
    n_boot: int = 200,
    folds: int = 10,
    progress: Callable[[int], object] = lambda _: None,
) -> Study:
    """Study of answers that methods gave to the same labelled arcs.

    Parameters
    ----------
    asked : mapping of str to tuple
        By label, of all methods: answers, and scores of posteriors or None.
    truths : mapping of str to ArcTruth
        By origin; that from the topocentre among them.
    table : ArcTable
        The M arcs.
    methods, geocentric : sequence of StudyMethod
        The methods, and the classical ones among them asked from the centre of the Earth.
    data : dict
        `neoranging.lab.study.selection.describe`.
    cases : CaseArcs, optional
        Arcs of single objects.
    unseen : mapping of str to tuple, optional
        The same of these arcs, where they are not among those of the study.
    n_boot, folds : int
        As for `run_study`.
    progress : callable
        Called with the number of steps done since it was last called.
    """
    answers = {label: of_method for label, (of_method, _) in asked.items()}
    posteriors = {label: scores for label, (_, scores) in asked.items() if scores is not None}
    scored, intervals = {}, {}
    for label, of_method in answers.items():
        scored[label] = score(table, of_method, truth=truths[of_method.origin])
        progress(1)
    usual = np.flatnonzero(~table["is_close"])
    for method in methods:
        label, truth = method.label, truths[method.estimator.origin]
        sample = _sample(method, answers[label], truth).take(usual)
        own = intervals[label] = _intervals(method, sample, scored, usual, posteriors, data, folds)
        scored[label] = with_intervals(scored[label], usual, own.bounds, sample.truth.limits)
        if label in posteriors:
            scored[label] = with_posteriors(scored[label], usual, posteriors[label])
        progress(1)
    judged_cases = cases and _judge_cases(cases, unseen or {}, methods, scored, intervals)
    progress(1)
    seed = data["selection"]["seed"]
    tables = study_tables(methods, geocentric, scored, n_boot=n_boot, rng=seed, done=progress)
    tables["coverage"], tables["half_widths"], reasons = _interval_tables(intervals, folds)
    tables["cases"] = pd.DataFrame() if judged_cases is None else judged_cases.rows
    remarks = [
        *check_labels(table, truths["topocenter"], data),
        *check_copies([scored[method.label] for method in methods]),
        *(remark for method in methods for remark in check_answers(scored[method.label])),
        *reasons,
    ]
    return Study(
        data=data,
        settings={
            "neoranging": __version__,
            "methods": {m.label: m.estimator.identity for m in (*methods, *geocentric)},
            "n_boot": n_boot,
            "folds": folds,
        },
        table=table,
        methods=tuple(methods),
        geocentric=tuple(geocentric),
        answers=answers,
        posteriors=posteriors,
        scored=scored,
        coverage={k: own.coverage for k, own in intervals.items() if own.coverage is not None},
        cases=judged_cases,
        remarks=sorted(remarks, key=lambda remark: not remark.is_alarm),
        tables=tables,
    )


def _intervals(
    method: StudyMethod,
    sample: CalibrationSample,
    scored: Mapping[str, pd.DataFrame],
    rows: IntArray,
    posteriors: Mapping[str, PosteriorScores],
    data: Mapping[str, Any],
    folds: int,
) -> MethodIntervals:
    """Intervals of a method on some rows, with the terciles of all arcs as strata."""
    strata = {axis: Strata.of(scored[method.label], axis) for axis in ("eta", "rho")}
    terciles = {
        f"{axis} tercile": np.array([*cells.names, "unknown"])[cells.cell[rows]]
        for axis, cells in strata.items()
    }
    if (of_method := posteriors.get(method.label)) is not None:
        return MethodIntervals.of_posteriors(sample, of_method.take(rows), terciles)
    calibration = method.estimator.calibration
    if calibration is not None and is_same_part(calibration.description, data):
        calibration = None  # judged by the arcs it was made of, it would look too good
    return MethodIntervals.of(sample, terciles, calibration, folds)


def _interval_tables(
    intervals: Mapping[str, MethodIntervals], folds: int
) -> tuple[pd.DataFrame, pd.DataFrame, list[Remark]]:
    """Coverage and half widths of the methods that have intervals; why others have none."""
    covered, widths = [], []
    reasons = [Remark(label, False, own.why) for label, own in intervals.items() if own.why]
    for label, own in intervals.items():
        if own.rows is not None:
            covered.append(pd.DataFrame({"method": label, **own.rows}))
        if own.sample is not None:
            n = min(folds, len(own.sample.truth.objects[0]))
            try:
                rows = half_widths(own.sample, folds=n)
            except ConformalError as error:
                reasons.append(Remark(label, False, f"no half widths by motion: {error}"))
            else:
                widths.append(pd.DataFrame({"method": label, "source": "this study", **rows}))
    tables = [
        pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
        for parts in (covered, widths)
    ]
    return tables[0], tables[1], reasons


def _sample(method: StudyMethod, answers: Answers, truth: ArcTruth) -> CalibrationSample:
    """Answers of a method beside the truth, to calibrate it by or to be given intervals."""
    estimator = method.estimator
    return CalibrationSample(estimator.identity, answers, truth, estimator.is_learned)


def _judge_cases(
    cases: CaseArcs,
    unseen: Mapping[str, Asked],
    methods: Sequence[StudyMethod],
    scored: Mapping[str, pd.DataFrame],
    intervals: Mapping[str, MethodIntervals],
) -> Cases:
    """Scores of single objects: unseen ones with intervals from all arcs of the study."""
    judged = []
    for method in methods:
        if cases.rows is not None:
            judged.append(select(scored[method.label], cases.rows))
            continue
        (answers, posteriors), own = unseen[method.label], intervals[method.label]
        truth = ArcTruth.of(cases.table, answers.origin)
        scores, bounds = score(cases.table, answers, truth=truth), {}
        if posteriors is not None:
            bounds = posteriors.intervals(truth.limits)
        elif own.sample is not None:
            sample = _sample(method, answers, truth)
            if not own.sample.answers.usable.any():  # verdicts that did not count there do not here
                sample = without_verdicts(sample)
            calibration = own.sample.calibration()
            found = sample.intervals(calibration, INTERVAL_LEVEL, too_few="limits")
            bounds = {INTERVAL_LEVEL: found}
        scores = with_intervals(scores, np.arange(len(scores)), bounds, truth.limits)
        judged.append(scores)
    rows = pd.concat([case_rows(cases.table, scores) for scores in judged], ignore_index=True)
    return Cases(cases.table, judged, cases.objects, cases.rows is None, rows)
