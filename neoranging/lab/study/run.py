"""A study: several methods asked for the same labelled arcs, and everything that is said of them.

The methods answer first, which is kept; tables, intervals and remarks follow from the answers. What
a study finds is a `Study`; `write_tables` puts its numbers into a folder, the figures are drawn by
``neoranging.lab.study.figures.draw``, and `neoranging.lab.study.report` makes one page of all.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from neoranging._version import __version__
from neoranging.core.status import RangeStatus
from neoranging.lab.sets.progress import NoBar
from neoranging.lab.sets.schema import ArcTable
from neoranging.lab.study.checks import Remark, check_answers, check_labels, check_twins
from neoranging.lab.study.classical import classical_comparison
from neoranging.lab.study.intervals import Cases, Intervals, case_studies
from neoranging.lab.study.methods import Contender, ask, contenders
from neoranging.lab.study.metrics import summarise
from neoranging.lab.study.predictions import Predictions
from neoranging.lab.study.published import PUBLISHED, SOURCE
from neoranging.lab.study.scores import ArcTruth, ScoredArcs, score
from neoranging.lab.study.selection import Selection, describe
from neoranging.lab.study.strata import cross, stratify

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
    predictions : dict of str to Predictions
        By label, of both.
    scored : dict of str to ScoredArcs
        The same beside the truth; those of ``contenders`` with crosswise intervals.
    coverage : dict of str to list of dict
        By label: rows of ``CrossConformal.coverage``.
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
    predictions: dict[str, Predictions]
    scored: dict[str, ScoredArcs]
    coverage: dict[str, list[dict[str, Any]]]
    cases: Cases | None
    remarks: list[Remark]
    tables: dict[str, list[dict[str, Any]]]

    @property
    def labels(self) -> list[str]:
        """Of the methods, without the geocentric twins."""
        return [each.label for each in self.contenders]

    @property
    def judged(self) -> list[ScoredArcs]:
        """Scores of the methods, without the geocentric twins."""
        return [self.scored[label] for label in self.labels]

    @property
    def classical(self) -> list[ScoredArcs]:
        """Scores of the classical methods and their geocentric twins."""
        known = (*(c for c in self.contenders if c.is_classical), *self.twins)
        return [self.scored[each.label] for each in known]

    @property
    def learned(self) -> list[ScoredArcs]:
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
    with bar(len(both) * len(table), "asking", "arc") as shown:
        predictions = {c.label: ask(c, table, kept, shown.update) for c in both}
    with bar(len(both) + len(chosen) + 6, "judging", "step") as shown:
        truth = _truths(table, both)
        scored, intervals = _scored(table, chosen, predictions, truth, folds, data, shown.update)
        cases = case_studies(folder, selection, table, chosen, scored, intervals)
        shown.update(1)
        tables = _tables(chosen, twins, scored, n_boot, selection.seed, shown.update)
    tables["coverage"] = [row for made in intervals.values() for row in made.rows]
    tables["cases"] = [] if cases is None else cases.rows
    return Study(
        data=data,
        settings={
            "neoranging": __version__,
            "methods": {each.label: each.estimator.identity for each in both},
            "n_boot": n_boot,
            "folds": folds,
        },
        table=table,
        contenders=tuple(chosen),
        twins=tuple(twins),
        predictions=predictions,
        scored=scored,
        coverage={label: made.coverage for label, made in intervals.items() if made.coverage},
        cases=cases,
        remarks=_remarks(
            check_labels(table, truth["topocenter"], data),
            [scored[each.label] for each in chosen],
            intervals,
        ),
        tables=tables,
    )


def _scored(
    table: ArcTable,
    chosen: Sequence[Contender],
    predictions: Mapping[str, Predictions],
    truth: Mapping[str, ArcTruth],
    folds: int,
    data: Mapping[str, Any],
    done: Callable[[int], object],
) -> tuple[dict[str, ScoredArcs], dict[str, Intervals]]:
    """Scores of all predictions, and intervals of the methods, with which their scores come."""
    scored, intervals = {}, {}
    for label, found in predictions.items():
        scored[label] = score(table, found, truth=truth[found.origin])
        done(1)
    for each in chosen:
        label = each.label
        made = Intervals.of(each, table, predictions[label], scored[label], folds=folds, data=data)
        intervals[label], scored[label] = made, made.dress(scored[label])
        done(1)
    return scored, intervals


def _remarks(
    labels: list[Remark], scored: Sequence[ScoredArcs], intervals: Mapping[str, Intervals]
) -> list[Remark]:
    """All of them, alarms first."""
    found = [
        *labels,
        *check_twins(scored),
        *(remark for each in scored for remark in check_answers(each)),
        *(Remark(label, False, each.why) for label, each in intervals.items() if each.why),
    ]
    return sorted(found, key=lambda remark: not remark.is_alarm)


def _truths(table: ArcTable, chosen: Sequence[Contender]) -> dict[str, ArcTruth]:
    """By origin; that from the topocentre always, by which labels are checked."""
    origins = dict.fromkeys(["topocenter", *(each.estimator.origin for each in chosen)])
    return {origin: ArcTruth.of(table, origin) for origin in origins}


def _tables(
    chosen: Sequence[Contender],
    twins: Sequence[Contender],
    scored: Mapping[str, ScoredArcs],
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
    tables["published"] = _published()
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
    figures: Sequence[Mapping[str, Any]], scored: Sequence[ScoredArcs], options: dict[str, Any]
) -> list[dict[str, Any]]:
    """One row for each method, a value with bounds and number of arcs for each figure.

    A method that vouches for a part of its answers has a second row, of these.
    """
    rows = []
    for each in scored:
        mine = [figure for figure in figures if figure["method"] == each.method]
        rows.append(_headline_row(each, "all", mine))
        if 0 < each.ok.sum() < 0.95 * each.answered.sum():
            vouched = each.take(each.ok)
            found = summarise(vouched, metrics=HEADLINE, **options)
            rows.append(_headline_row(vouched, "OK", found))
    return rows


def _headline_row(
    scored: ScoredArcs, answers: str, figures: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    row: dict[str, Any] = {
        "method": scored.method,
        "answers": answers,
        "origin": scored.origin,
        "source": "this study",
        "n_arcs": len(scored),
        "n_answered": int(scored.answered.sum()),
        "n_objects": scored.n_objects,
        "seconds": scored.seconds,
    }
    by_name = {figure["metric"]: figure for figure in figures}
    for name in HEADLINE:
        row[name] = by_name[name]["value"]
        row |= {f"{name}_{end}": by_name[name][end] for end in ("low", "high", "n_arcs")}
    return row


def _published() -> list[dict[str, Any]]:
    return [
        {"method": each.method, "origin": "geocenter", "source": SOURCE, "n_arcs": each.n_arcs}
        | dict(each.values)
        for each in PUBLISHED
    ]


def _statuses(scored: ScoredArcs) -> list[dict[str, Any]]:
    codes, counts = np.unique(scored.status, return_counts=True)
    return [
        {
            "method": scored.method,
            "status": RangeStatus.from_code(code).name,
            "n_arcs": int(count),
            "percent": 100.0 * int(count) / len(scored),
            "n_answered": int((scored.answered & (scored.status == code)).sum()),
            "meaning": RangeStatus.from_code(code).advice,
        }
        for code, count in zip(codes, counts, strict=True)
    ]
