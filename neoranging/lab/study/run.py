"""A study: several methods asked for the same labelled arcs, and everything that is said of them.

The methods answer first, which is kept; tables, intervals and remarks follow from the answers. What
a study finds is a `Study`; the figures are drawn by ``neoranging.lab.study.figures.draw``,
`neoranging.lab.study.report` makes one page of all, and `neoranging.lab.study.folder` writes it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from neoranging._version import __version__
from neoranging.lab.sets.progress import NoBar
from neoranging.lab.sets.schema import ArcTable
from neoranging.lab.study.checks import Remark, check_answers, check_labels, check_twins
from neoranging.lab.study.intervals import Cases, Intervals, case_studies
from neoranging.lab.study.methods import Contender, ask, contenders
from neoranging.lab.study.predictions import Predictions
from neoranging.lab.study.scores import ArcTruth, score
from neoranging.lab.study.selection import Selection, describe
from neoranging.lab.study.tables import study_tables

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
        Which arcs: `neoranging.lab.study.selection.describe`.
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
    scored : dict of str to DataFrame
        The same beside the truth; those of ``contenders`` with crosswise intervals.
    coverage : dict of str to DataFrame
        By label: `CrossConformal.coverage`.
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
    predictions: dict[str, Predictions]
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
        Makes progress bars; `neoranging.lab.sets.progress.progress_bar`.

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
        tables = study_tables(
            chosen, twins, scored, n_boot=n_boot, rng=selection.seed, done=shown.update
        )
    coverage = [made.rows for made in intervals.values() if len(made.rows)]
    tables["coverage"] = pd.concat(coverage, ignore_index=True) if coverage else pd.DataFrame()
    tables["cases"] = pd.DataFrame() if cases is None else cases.rows
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
        coverage={label: made.coverage for label, made in intervals.items() if len(made.coverage)},
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
) -> tuple[dict[str, pd.DataFrame], dict[str, Intervals]]:
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
    labels: list[Remark], scored: Sequence[pd.DataFrame], intervals: Mapping[str, Intervals]
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
