"""Answers of a method to every arc of a table, asked once and kept in a file.

To ask is what takes time; everything that is said about a method afterwards is worked out of its
answers. There is one for each arc whatever became of it: an arc without a range has NaN and a
status that says why.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, Final, NamedTuple

import numpy as np

from neoranging.core import columns
from neoranging.core.answers import Answers
from neoranging.core.arcs import Arcs
from neoranging.core.attributable import Attributables
from neoranging.estimators.base import RangingEstimator
from neoranging.estimators.registry import get_estimator
from neoranging.exceptions import EvaluationError
from neoranging.files import replacing
from neoranging.lab.sets.arcs import to_core
from neoranging.lab.sets.schema import ArcTable
from neoranging.lab.study.posteriors import PosteriorScores
from neoranging.processes import deal
from neoranging.tracklet import ORIGINS
from neoranging.typing import FloatArray

_CHUNK: Final = 32_768
"""Arcs asked for at once: a step of the progress, and some hundred megabytes."""

_SENT: Final = 8192
"""The same where they are sent to a cluster."""

_POSTERIORS: Final = 128
"""The same of a method with posteriors, of which each has thousands of nodes."""

_COLUMNS: Final = ("rho", "rho_dot", "covariance", "r", "v", "epoch", "status")
_LABELS: Final = ("method", "origin", "seconds")
_PREFIX: Final = "posterior_"
"""Before the names of scores of posteriors."""


def predict(
    estimator: str | type[RangingEstimator] | RangingEstimator,
    table: ArcTable,
    *,
    label: str | None = None,
    progress: Callable[[int], object] | None = None,
    **options: Any,
) -> Answers:
    """Ask a method for every arc of a table.

    Parameters
    ----------
    estimator : str, type or RangingEstimator
        Name of a registered method, its class, or one that is made already.
    table : ArcTable
        M arcs with at least ``neoranging.lab.sets.arcs.OBSERVED``; labels are not looked at.
    label : str, optional
        Name to give it; that of the method by default.
    progress : callable, optional
        Called with the number of arcs done since it was last called.
    **options
        For the constructor, where a name or a class is given.

    Returns
    -------
    Answers
        Of M rows in the order of the table, with the time they took; without candidates and
        posteriors.

    Raises
    ------
    UnknownMethodError
        If no such method is registered.
    DatasetError
        If the table lacks a column.
    EstimationError
        If the method answers for another number of arcs than it was asked, or says OK without a
        number.

    Examples
    --------
    ::

        table = read_arcs("twin", split="test")
        predict("gauss", table, origin="geocenter", label="gauss (geocentric)")
    """
    method = get_estimator(estimator, **options)
    arcs = to_core(table, method.origin)
    topocentric = arcs if method.origin == "topocenter" else to_core(table)
    return ask_arcs(method, arcs, topocentric, label, progress=progress)[0]


def ask_arcs(
    method: RangingEstimator,
    arcs: Arcs,
    topocentric: Arcs,
    label: str | None = None,
    *,
    rho: FloatArray | None = None,
    progress: Callable[[int], object] | None = None,
    scheduler: str | None = None,
) -> tuple[Answers, PosteriorScores | None]:
    """Answers to arcs seen from the origin of the method, with the time they took.

    Parameters
    ----------
    method : RangingEstimator
    arcs, topocentric : Arcs
        M arcs seen from the origin, and the same from where the observers stood.
    label : str, optional
        Name to give the method; its own by default.
    rho : ndarray, shape (M,), optional
        True ranges [au], which posteriors are held against before they are let go.
    progress : callable, optional
        Called with the number of arcs done since it was last called.
    scheduler : str, optional
        Address of a scheduler of Dask, whose workers do it.

    Returns
    -------
    answers : Answers
    scores : PosteriorScores or None
        None without ``rho``, or of a method that gives no posterior.
    """

    def part(start: int, stop: int) -> tuple[Arcs, Arcs, FloatArray | None]:
        truth = None if rho is None else rho[start:stop]
        return arcs.chunk(start, stop), topocentric.chunk(start, stop), truth

    # the first answers show if the method gives posteriors, of which many arcs at once would fill
    # the memory
    first = min(_POSTERIORS, _CHUNK, len(arcs))
    solved = [_solve(method, part(0, first))]
    if progress is not None:
        progress(first)
    size = _CHUNK if scheduler is None else _SENT
    if solved[0].has_posterior or not solved[0].answers.answered.any():
        size = _POSTERIORS
    starts = range(first, len(arcs), size)
    items = (part(start, min(start + size, len(arcs))) for start in starts)
    for one in deal(partial(_solve, method), items, scheduler=scheduler):
        solved.append(one)
        if progress is not None:
            progress(len(one.answers))
    scores = [one.scores for one in solved]
    parts = [one.answers for one in solved]
    seconds = sum(one.seconds for one in solved)
    name = method.name if label is None else label
    joined = replace(Answers.join(parts, len(arcs)), method=name, seconds=seconds)
    if all(of_part is None for of_part in scores):
        return joined, None
    filled = [
        PosteriorScores.none(len(part)) if of_part is None else of_part
        for part, of_part in zip(parts, scores, strict=True)
    ]
    return joined, columns.join(filled)


class _Solved(NamedTuple):
    """Answers to some of the arcs."""

    answers: Answers
    scores: PosteriorScores | None
    seconds: float
    has_posterior: bool


def _solve(method: RangingEstimator, part: tuple[Arcs, Arcs, FloatArray | None]) -> _Solved:
    """Answers to arcs seen from the origin and from where the observers stood, and the time."""
    arcs, topocentric, rho = part
    begin = perf_counter()
    answers = method._solve(arcs, topocentric)
    seconds = perf_counter() - begin
    scores = None if rho is None else PosteriorScores.of(answers, rho)
    kept = replace(answers, candidates=None, remarks=None, posterior=None)
    return _Solved(kept, scores, seconds, answers.posterior is not None)


def save_answers(
    answers: Answers, path: str | os.PathLike[str], scores: PosteriorScores | None = None
) -> None:
    """Write answers to an ``.npz`` file, whole or not at all.

    Parameters
    ----------
    answers : Answers
        Their candidates, remarks, posteriors and attributables are not kept.
    path : path-like
        Taken as it is; an existing file is replaced.
    scores : PosteriorScores, optional
        Of the same arcs.
    """
    values: dict[str, Any] = {name: getattr(answers, name) for name in (*_LABELS, *_COLUMNS)}
    if scores is not None:
        values |= {
            f"{_PREFIX}{field.name}": getattr(scores, field.name) for field in fields(scores)
        }
    with replacing(Path(path)) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, **values)


def load_answers(
    path: str | os.PathLike[str], attributables: Attributables
) -> tuple[Answers, PosteriorScores | None]:
    """Answers that `save_answers` wrote, and the scores of posteriors if there are some.

    Parameters
    ----------
    path : path-like
    attributables : Attributables
        Of the arcs that the method was asked for, seen from its origin.

    Raises
    ------
    EvaluationError
        If the file is not there, is none of `save_answers`, or is of another number of arcs.
    """
    m = len(attributables.epoch)
    expected: dict[str, FloatArray] = vars(Answers.unsolved(attributables, np.zeros(m)))
    of_posteriors = {f"{_PREFIX}{k}": v for k, v in vars(PosteriorScores.none(m)).items()}
    try:
        # of a damaged archive numpy would leave the file open
        with Path(path).open("rb") as file, np.load(file, allow_pickle=False) as stored:
            has_posteriors = any(name.startswith(_PREFIX) for name in stored)
            names = (*_COLUMNS, *(of_posteriors if has_posteriors else ()))
            values = {name: stored[name] for name in names}
            labels = {name: stored[name].item() for name in _LABELS}
        for name, column in values.items():
            like = (expected | of_posteriors)[name]
            if column.shape != like.shape or column.dtype != like.dtype:
                raise ValueError(f"column {name!r} has the shape {column.shape}")
        if labels["origin"] not in ORIGINS:
            raise ValueError(f"origin {labels['origin']!r}")
    except FileNotFoundError:
        raise EvaluationError(f"there are no answers at {path}") from None
    except Exception as error:  # a damaged archive fails in many ways
        raise EvaluationError(
            f"{path} holds no answers to these arcs ({type(error).__name__}: {error}): delete it "
            "and ask the method again"
        ) from error
    answers = Answers(attributables, **{name: values[name] for name in _COLUMNS}, **labels)
    if not has_posteriors:
        return answers, None
    return answers, PosteriorScores(
        **{name.removeprefix(_PREFIX): values[name] for name in of_posteriors}
    )
