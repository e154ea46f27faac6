"""A study: several methods asked for the same labelled arcs, and everything that is said of them.

The methods answer first, which is kept; `judge` works everything else out of the answers. What a
study finds is a `Study`; ``write_tables`` puts its numbers into a folder, the figures are drawn by
``neoranging.lab.study.figures.draw``, and ``neoranging.lab.study.report`` makes one page of all.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from neoranging._version import __version__
from neoranging.core.answers import Answers
from neoranging.core.status import RangeStatus
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
from neoranging.lab.study.classical import classical_comparison
from neoranging.lab.study.methods import Contender, ask, contenders
from neoranging.lab.study.metrics import summarise
from neoranging.lab.study.predictions import predict
from neoranging.lab.study.published import PUBLISHED, SOURCE
from neoranging.lab.study.scores import ArcTruth, score, select
from neoranging.lab.study.selection import Selection, describe, is_same_part
from neoranging.lab.study.strata import Strata, cross, stratify
from neoranging.typing import FloatArray, IntArray

HEADLINE: Final = (
    *("solved", "ok", "medae_rho", "median_relative_error", "median_relative_error_by_object"),
    *("median_log10_error", "corr_rho", "spread_rho", "medae_rho_dot", "p_ar", "p_ar_truth"),
    *("elliptic_pseudo", "d_sh_pseudo", "d_sh_pseudo_below", "collapsed"),
)
"""Figures of merit of the first table."""

STRATA_METRICS: Final = (
    *("solved", "medae_rho", "median_relative_error", "median_log10_error", "medae_rho_dot"),
    *("p_ar", "d_sh_pseudo", "d_sh_pseudo_associated"),
)
"""Figures of merit by stratum."""

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
    coverage : dict of str to list of dict
        By label: rows of `neoranging.lab.study.calibration.coverage`.
    cases : Cases, optional
        Single objects with intervals.
    remarks : list of Remark
        What is suspicious.
    tables : dict of str to list of dict
        Every figure, by name of the table.
    """

    data: dict[str, Any]
    settings: dict[str, Any]
    table: ArcTable
    contenders: tuple[Contender, ...]
    twins: tuple[Contender, ...]
    answers: dict[str, Answers]
    scored: dict[str, pd.DataFrame]
    coverage: dict[str, list[dict[str, Any]]]
    cases: Cases | None
    remarks: list[Remark]
    tables: dict[str, list[dict[str, Any]]]

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
    tables = _tables(methods, twins, scored, n_boot, data["selection"]["seed"], progress)
    tables["coverage"] = [
        {"method": label, **row} for label, own in intervals.items() for row in own.rows
    ]
    tables["cases"] = [] if shown is None else shown.rows
    main = [scored[each.label] for each in methods]
    remarks = [
        *check_labels(table, truths["topocenter"], data),
        *check_twins(main),
        *(remark for each in main for remark in check_answers(each)),
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
        coverage={label: list(own.coverage) for label, own in intervals.items() if own.coverage},
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
    rows = [row for scores in judged for row in case_rows(cases.table, scores)]
    return Cases(cases.table, judged, cases.objects, cases.rows is None, rows)


def _tables(
    chosen: Sequence[Contender],
    twins: Sequence[Contender],
    scored: Mapping[str, pd.DataFrame],
    n_boot: int,
    seed: int,
    done: Callable[[int], object],
) -> dict[str, list[dict[str, Any]]]:
    options: dict[str, Any] = {"n_boot": n_boot, "rng": seed}
    main = [scored[each.label] for each in chosen]
    tables: dict[str, list[dict[str, Any]]] = {}
    tables["figures"] = [row for each in main for row in summarise(each, **options)]
    done(1)
    tables["headline"] = _headline(tables["figures"], main, options)
    tables["published"] = [
        {"method": each.method, "origin": "geocenter", "source": SOURCE, "n_arcs": each.n_arcs}
        | dict(each.values)
        for each in PUBLISHED
    ]
    tables["status"] = [row for each in scored.values() for row in _statuses(each)]
    tables["strata"] = stratify(main, metrics=STRATA_METRICS, **options)
    done(1)
    for later, earlier in _pairs(chosen):
        rows = cross(scored[later], scored[earlier], **options)
        tables.setdefault("cross", []).extend(rows)
    done(1)
    classical = [scored[c.label] for c in (*chosen, *twins) if c.is_classical]
    if classical:
        others = [scored[c.label] for c in chosen if not c.is_classical]
        tables["classical"] = classical_comparison(classical, others, **options)
    done(2)
    return tables


def _pairs(chosen: Sequence[Contender]) -> list[tuple[str, str]]:
    """Which differences are shown, later minus earlier: all of learned methods, or ends of all."""
    learned = [each.label for each in chosen if not each.is_classical]
    if len(learned) >= 2:
        return [(b, a) for k, a in enumerate(learned) for b in learned[k + 1 :]]
    labels = [each.label for each in chosen]
    if learned and len(labels) >= 2:
        return [(learned[0], a) for a in labels if a != learned[0]]
    return [(labels[-1], labels[0])] if len(labels) >= 2 else []


def _headline(
    figures: Sequence[Mapping[str, Any]], scored: Sequence[pd.DataFrame], options: dict[str, Any]
) -> list[dict[str, Any]]:
    """One row for each method, a value with bounds and number of arcs for each figure.

    A method that stands by a part of its answers has a second row, of these.
    """
    rows = []
    for each in scored:
        method = each.attrs["method"]
        own = [row for row in figures if row["method"] == method]
        parts: list[tuple[str, pd.DataFrame, Sequence[Mapping[str, Any]]]] = [("all", each, own)]
        if 0 < each.ok.sum() < 0.95 * each.answered.sum():
            some = select(each, each.ok)
            parts.append(("OK", some, summarise(some, metrics=HEADLINE, **options)))
        for answers, some, values in parts:
            row = {
                "method": method,
                "answers": answers,
                "origin": each.attrs["origin"],
                "source": "this study",
                "n_arcs": len(some),
                "n_answered": int(some.answered.sum()),
                "n_objects": some.object.nunique(),
                "seconds": each.attrs["seconds"],
            }
            by_name = {value["metric"]: value for value in values}
            for name in HEADLINE:
                row[name] = by_name[name]["value"]
                row |= {f"{name}_{end}": by_name[name][end] for end in ("low", "high", "n_arcs")}
            rows.append(row)
    return rows


def _statuses(scored: pd.DataFrame) -> list[dict[str, Any]]:
    """One row for each status that a method gives."""
    counts = scored.groupby("status").answered.agg(["size", "sum"])
    return [
        {
            "method": scored.attrs["method"],
            "status": RangeStatus.from_code(code).name,
            "n_arcs": int(n),
            "percent": 100.0 * int(n) / len(scored),
            "n_answered": int(n_answered),
            "meaning": RangeStatus.from_code(code).advice,
        }
        for code, n, n_answered in counts.itertuples()
    ]
