"""What a method answers for every arc of a table, in a form that can be kept.

A method is asked once, which is what takes time; everything that is said about it afterwards is
worked out of its `Predictions`. There is one row for each arc whatever became of it: an arc without
an answer has NaN and a status that says why.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from time import perf_counter
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt

from neoranging.core.admissible import is_admissible
from neoranging.core.answers import Solutions
from neoranging.core.attributable import Attributables
from neoranging.core.kepler import orbital_energy
from neoranging.core.status import RangeStatus
from neoranging.estimators.base import RangingEstimator
from neoranging.estimators.registry import get_estimator
from neoranging.exceptions import EvaluationError
from neoranging.files import replacing
from neoranging.lab.sets.arcs import to_core
from neoranging.lab.sets.schema import ArcTable
from neoranging.tracklet import ORIGINS
from neoranging.typing import AnyArray, BoolArray, CodeArray, FloatArray, IntArray

_CHUNK: Final = 32_768
"""Arcs asked for at once: a step of the progress, and some hundred megabytes."""

_LABELS: Final = ("method", "origin", "seconds")
_VECTORS: Final = ("r", "v")


@dataclass(frozen=True, eq=False, repr=False)
class Predictions:
    """Answers of one method for M arcs.

    Attributes
    ----------
    method : str
        Label, unique within a study; the name of the method unless it was given another.
    origin : {"topocenter", "geocenter"}
        Where the ranges count from.
    rho, rho_dot : ndarray, shape (M,)
        Range [au] and range-rate [au/d]; NaN where there is no answer.
    status : ndarray of int8, shape (M,)
        `RangeStatus.code` of each arc.
    admissible : ndarray of bool, shape (M,)
        The answer lies in the admissible region of its arc; False without an answer.
    r, v : ndarray, shape (M, 3)
        Heliocentric state at the emission epoch, ICRS axes [au, au/d]; NaN without an answer.
    eta : ndarray, shape (M,)
        Proper motion by the weighted fit of all observations [rad/d].
    low, high : ndarray, shape (M,), optional
        Bounds of an interval of the range [au]; both or neither.
    rho_error : ndarray, shape (M,), optional
        Standard error of the range [au]; NaN where the method gives none.
    seconds : float
        Wall time the method took for all arcs, NaN where nobody looked at the clock.

    Raises
    ------
    EvaluationError
        If the columns are of different lengths, or the origin is unknown.
    """

    method: str
    origin: str
    rho: FloatArray
    rho_dot: FloatArray
    status: CodeArray
    admissible: BoolArray
    r: FloatArray
    v: FloatArray
    eta: FloatArray
    low: FloatArray | None = None
    high: FloatArray | None = None
    rho_error: FloatArray | None = None
    seconds: float = float("nan")

    def __post_init__(self) -> None:
        if self.origin not in ORIGINS:
            raise EvaluationError(f"origin must be one of {ORIGINS}, got {self.origin!r}")
        if (self.low is None) != (self.high is None):
            raise EvaluationError("an interval has two bounds: give both low and high, or neither")
        for name, column in self._columns().items():
            shape = (len(self), 3) if name in _VECTORS else (len(self),)
            if column.shape != shape:
                raise EvaluationError(
                    f"predictions of {self.method!r}: column {name!r} needs the shape {shape}, "
                    f"got {column.shape}"
                )

    def _columns(self) -> dict[str, AnyArray]:
        values = ((field.name, getattr(self, field.name)) for field in fields(self))
        return {name: value for name, value in values if isinstance(value, np.ndarray)}

    def __len__(self) -> int:
        return len(self.rho)

    @property
    def answered(self) -> BoolArray:
        """Arcs with a range, whatever their status, shape (M,)."""
        return np.isfinite(self.rho)

    @property
    def ok(self) -> BoolArray:
        """Arcs whose answer the method itself calls OK, shape (M,)."""
        return self.status == RangeStatus.OK.code

    def take(self, rows: slice | npt.ArrayLike) -> Self:
        """Predictions of some arcs: a slice, indices, or a mask; ``seconds`` stays that of all."""
        index = rows_of(len(self), rows)
        taken: dict[str, Any] = {name: each[index] for name, each in self._columns().items()}
        return replace(self, **taken)

    def with_interval(self, low: FloatArray, high: FloatArray) -> Self:
        """The same with bounds of the range [au], each of shape (M,)."""
        return replace(self, low=low, high=high)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to an ``.npz`` file, whole or not at all.

        Parameters
        ----------
        path : path-like
            Taken as it is; an existing file is replaced.
        """
        values: dict[str, Any] = {name: getattr(self, name) for name in _LABELS} | self._columns()
        with replacing(Path(path)) as temporary, temporary.open("wb") as file:
            np.savez_compressed(file, **values)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote.

        Raises
        ------
        EvaluationError
            If the file is not there, or is none of `save`.
        """
        try:
            # of a damaged archive numpy would leave the file open
            with Path(path).open("rb") as file, np.load(file, allow_pickle=False) as stored:
                values: dict[str, Any] = {name: stored[name] for name in stored.files}
            method, origin, seconds = (values.pop(name).item() for name in _LABELS)
            return cls(method, origin, seconds=seconds, **values)
        except EvaluationError:
            raise
        except FileNotFoundError:
            raise EvaluationError(f"there are no predictions at {path}") from None
        except Exception as error:  # a damaged archive fails in many ways
            raise EvaluationError(
                f"{path} holds no predictions ({type(error).__name__}: {error}): delete it and "
                "ask the method again"
            ) from error

    @classmethod
    def of_solutions(
        cls, method: str, origin: str, attributables: Attributables, solutions: Solutions
    ) -> Self:
        """Predictions of what an estimator found for M arcs.

        Parameters
        ----------
        method, origin : str
        attributables : Attributables
            Of the arcs, seen from the origin.
        solutions : Solutions
        """
        answered = np.isfinite(solutions.rho)
        rho, rho_dot, r, v = (
            np.where(answered.reshape(-1, *[1] * (x.ndim - 1)), x, np.nan)
            for x in (solutions.rho, solutions.rho_dot, solutions.r, solutions.v)
        )
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            energy = orbital_energy(r, v)
            inside = is_admissible(attributables.energy_coefficients, rho, rho_dot, energy)
            error = np.sqrt(solutions.covariance[:, 0, 0])
        return cls(
            method,
            origin,
            rho,
            rho_dot,
            solutions.status.astype(np.int8, copy=False),
            inside,
            r,
            v,
            attributables.proper_motion,
            rho_error=np.where(answered, error, np.nan),
        )

    @classmethod
    def join(cls, parts: list[Self]) -> Self:
        """Predictions of one method for consecutive parts of a table; times add up."""
        columns = {name: [getattr(part, name) for part in parts] for name in parts[0]._columns()}
        joined: dict[str, Any] = {name: np.concatenate(each) for name, each in columns.items()}
        return replace(parts[0], **joined, seconds=sum(part.seconds for part in parts))

    def __repr__(self) -> str:
        return (
            f"<Predictions: {self.method}, {len(self)} arcs, {int(self.answered.sum())} answered, "
            f"{int(self.ok.sum())} OK, from the {self.origin}>"
        )


def rows_of(m: int, rows: slice | npt.ArrayLike) -> IntArray:
    """Indices of some of m arcs, given as a slice, indices in any order, or a mask."""
    if isinstance(rows, slice):
        return np.arange(m)[rows]
    wanted = np.asarray(rows)
    return np.arange(m)[wanted if wanted.size else []]


def proper_motion(attributables: Attributables) -> FloatArray:
    """Speed on the sky [rad/d], shape (M,)."""
    a = attributables
    return np.hypot(a.ra_rate * np.cos(a.dec), a.dec_rate)


def predict(
    estimator: str | type[RangingEstimator] | RangingEstimator,
    table: ArcTable,
    *,
    label: str | None = None,
    chunk: int = _CHUNK,
    progress: Callable[[int], object] | None = None,
    **options: Any,
) -> Predictions:
    """Ask a method for every arc of a table.

    Parameters
    ----------
    estimator : str, type or RangingEstimator
        Name of a registered method, its class, or one that is made already.
    table : ArcTable
        M arcs with at least ``neoranging.lab.sets.arcs.OBSERVED``; labels are not looked at.
    label : str, optional
        What to call it; the name of the method by default.
    chunk : int
        Arcs asked for at once.
    progress : callable, optional
        Called with the number of arcs done since it was last called.
    **options
        For the constructor, where a name or a class is given.

    Returns
    -------
    Predictions
        Of M rows in the order of the table.

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
    name = method.name if label is None else label
    parts = []
    for start in range(0, max(len(table), 1), chunk):
        part = table.take(slice(start, start + chunk))
        parts.append(_predict_part(method, name, part))
        if progress is not None:
            progress(len(part))
    return Predictions.join(parts)


def _predict_part(method: RangingEstimator, label: str, table: ArcTable) -> Predictions:
    arcs = to_core(table, method.origin)
    topocentric = arcs if method.origin == "topocenter" else to_core(table)
    begin = perf_counter()
    attributables, solutions = method._solve(arcs, topocentric)
    seconds = perf_counter() - begin
    found = Predictions.of_solutions(label, method.origin, attributables, solutions)
    return replace(found, seconds=seconds)
