"""Answers of a method to every arc of a table, asked once and kept in a file.

To ask is what takes time; everything that is said about a method afterwards is worked out of its
answers. There is one for each arc whatever became of it: an arc without a range has NaN and a
status that says why.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any, Final

import numpy as np

from neoranging.core.answers import Answers
from neoranging.core.arcs import Arcs
from neoranging.core.attributable import Attributables
from neoranging.estimators.base import RangingEstimator
from neoranging.estimators.registry import get_estimator
from neoranging.exceptions import EvaluationError
from neoranging.files import replacing
from neoranging.lab.sets.arcs import to_core
from neoranging.lab.sets.schema import ArcTable
from neoranging.tracklet import ORIGINS

_CHUNK: Final = 32_768
"""Arcs asked for at once: a step of the progress, and some hundred megabytes."""

_COLUMNS: Final = ("rho", "rho_dot", "covariance", "r", "v", "epoch", "status")
_LABELS: Final = ("method", "origin", "seconds")


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
        Of M rows in the order of the table, with the time they took; without candidates.

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
    return ask_arcs(method, arcs, topocentric, label, progress=progress)


def ask_arcs(
    method: RangingEstimator,
    arcs: Arcs,
    topocentric: Arcs,
    label: str | None = None,
    *,
    progress: Callable[[int], object] | None = None,
) -> Answers:
    """Answers to arcs seen from the origin of the method, with the time they took.

    Parameters
    ----------
    method : RangingEstimator
    arcs, topocentric : Arcs
        M arcs seen from the origin, and the same from where the observers stood.
    label : str, optional
        Name to give the method; its own by default.
    progress : callable, optional
        Called with the number of arcs done since it was last called.
    """
    parts = []
    begin = perf_counter()
    for start in range(0, max(len(arcs), 1), _CHUNK):
        stop = min(start + _CHUNK, len(arcs))
        answers = method._solve(arcs.chunk(start, stop), topocentric.chunk(start, stop))
        parts.append(replace(answers, candidates=None, remarks=None))
        if progress is not None:
            progress(stop - start)
    name = method.name if label is None else label
    return replace(Answers.join(parts), method=name, seconds=perf_counter() - begin)


def save_answers(answers: Answers, path: str | os.PathLike[str]) -> None:
    """Write answers to an ``.npz`` file, whole or not at all.

    Parameters
    ----------
    answers : Answers
        Their candidates, remarks and attributables are not kept.
    path : path-like
        Taken as it is; an existing file is replaced.
    """
    values: dict[str, Any] = {name: getattr(answers, name) for name in (*_LABELS, *_COLUMNS)}
    with replacing(Path(path)) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, **values)


def load_answers(path: str | os.PathLike[str], attributables: Attributables) -> Answers:
    """Answers that `save_answers` wrote.

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
    expected = Answers.unsolved(attributables, np.zeros(len(attributables.epoch)))
    try:
        # of a damaged archive numpy would leave the file open
        with Path(path).open("rb") as file, np.load(file, allow_pickle=False) as stored:
            columns = {name: stored[name] for name in _COLUMNS}
            labels = {name: stored[name].item() for name in _LABELS}
        for name, column in columns.items():
            like = getattr(expected, name)
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
    return Answers(attributables, **columns, **labels)
