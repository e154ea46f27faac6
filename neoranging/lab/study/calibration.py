"""Calibrations of stored sets, and whether intervals hold on arcs that they were not made of.

A calibration for new arcs is made of all arcs held out. Whether it holds cannot be seen on these
same arcs, so a set judges itself crosswise: its objects are dealt into folds, and the intervals of
each fold come from the arcs of all others. Arcs resampled to pass near the Earth are in no night's
sample and are left out.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self, get_args

import numpy as np

from neoranging.calibration import Calibration, default_calibration
from neoranging.core import conformal as core
from neoranging.core.conformal import Answers
from neoranging.estimators.base import RangingEstimator
from neoranging.estimators.registry import get_estimator
from neoranging.exceptions import ConformalError, NotTrainedError
from neoranging.lab.sets.arcs import OBSERVED, to_core
from neoranging.lab.sets.schema import ArcTable
from neoranging.lab.sets.splits import division_of
from neoranging.lab.sets.store import iterate_arcs, read_manifest
from neoranging.lab.study.bootstrap import capped
from neoranging.lab.study.strata import AXES
from neoranging.typing import AnyArray, BoolArray, FloatArray, IntArray, StrArray

LEVELS: Final = (0.5, 0.68, 0.9, 0.95)

COLUMNS_NEEDED: Final = (
    *OBSERVED,
    *("designation", "rho_geo_au", "rho_topo_au", "is_close"),
)
"""Columns of a set that a calibration looks at."""

ARCS_OF_OBJECT: Final = 20
"""Most arcs of an object that count in a calibration, drawn at random.

Arcs of one object err alike. If all counted, intervals would be those of the few objects with
hundreds of arcs, and too narrow for new ones; a single one of each would waste what arcs of one
object do not share.
"""

_TRUTH: Final = {"geocenter": "rho_geo_au", "topocenter": "rho_topo_au"}


@dataclass(frozen=True, eq=False, repr=False)
class HeldOut:
    """Answers to M arcs that the method was not trained on, with their truths.

    Attributes
    ----------
    identity : mapping
        Of the method; `RangingEstimator.identity`.
    answers : Answers
    limits : ndarray, shape (M, 2)
        Least and greatest admissible range [au].
    truth : ndarray, shape (M,)
        True range [au] from the origin of the method.
    objects : ndarray of str, shape (M,)
        Object of each arc.
    """

    identity: Mapping[str, Any]
    answers: Answers
    limits: FloatArray
    truth: FloatArray
    objects: StrArray

    @classmethod
    def of(cls, estimator: RangingEstimator, tables: Iterable[ArcTable]) -> Self:
        """Ask an estimator for every arc of some tables, in their order.

        Parameters
        ----------
        estimator : RangingEstimator
        tables : iterable of ArcTable
            With ``COLUMNS_NEEDED``.

        Raises
        ------
        ConformalError
            If there is not one arc.
        """
        parts = [_ask(estimator, table) for table in tables if len(table)]
        if not parts:
            raise ConformalError("there are no arcs to calibrate on: choose another split or set")
        answers, limits, truth, objects = zip(*parts, strict=True)
        return cls(
            estimator.identity,
            Answers.join(list(answers)),
            *(np.concatenate(column) for column in (limits, truth, objects)),
        )

    @classmethod
    def read(
        cls, estimator: RangingEstimator, folder: str | os.PathLike[str], split: str = "test"
    ) -> Self:
        """Ask an estimator for the arcs of a split of a stored set, without resampled ones.

        Raises
        ------
        ConformalError
            If there is not one arc, or a network learnt from that part or was chosen by it.
        """
        _require_unseen(estimator, read_manifest(Path(folder)), split)
        parts = iterate_arcs(Path(folder), COLUMNS_NEEDED, split)
        return cls.of(estimator, (table.take(~table["is_close"]) for table in parts))

    def __len__(self) -> int:
        return len(self.truth)

    def take(self, rows: AnyArray) -> Self:
        """Some of the arcs."""
        columns: Any = (column[rows] for column in (self.limits, self.truth, self.objects))
        return type(self)(self.identity, self.answers.take(rows), *columns)

    def calibration(
        self, score: str | None = None, description: Mapping[str, Any] | None = None
    ) -> Calibration:
        """Calibration for new arcs, by at most ``ARCS_OF_OBJECT`` of each object.

        See `Calibration.fit`.
        """
        objects, number = np.unique(self.objects, return_inverse=True)
        some = self.take(capped(number, ARCS_OF_OBJECT))
        told = {
            "n_objects": len(objects),
            "n_held_out": len(self),
            "most_of_an_object": ARCS_OF_OBJECT,
            **(description or {}),
        }
        return Calibration.fit(
            some.answers, some.truth, score=score, identity=self.identity, description=told
        )

    def __repr__(self) -> str:
        name, n = self.identity.get("method"), len(np.unique(self.objects))
        return f"<HeldOut: {name} on {len(self)} arcs of {n} objects>"


def _ask(
    estimator: RangingEstimator, table: ArcTable
) -> tuple[Answers, FloatArray, FloatArray, StrArray]:
    arcs = to_core(table, estimator.origin)
    topocentric = arcs if estimator.origin == "topocenter" else to_core(table)
    attributables, solutions = estimator._solve(arcs, topocentric)
    return (
        Answers.of(attributables, solutions, arcs.span),
        core.admissible_limits(attributables),
        table[_TRUTH[estimator.origin]],
        table["designation"],
    )


@dataclass(frozen=True, eq=False, repr=False)
class CrossConformal:
    """Intervals of arcs from calibrations that saw none of their object.

    Attributes
    ----------
    held : HeldOut
        The M arcs.
    levels : tuple of float
        L confidence levels.
    intervals : ndarray, shape (L, M, 2)
        Range [au], within the admissible limits.
    fold : ndarray of int, shape (M,)
    """

    held: HeldOut
    levels: tuple[float, ...]
    intervals: FloatArray
    fold: IntArray

    def interval(self, level: float) -> FloatArray:
        """Intervals of one of the levels, shape (M, 2) [au]."""
        if level not in self.levels:
            raise ConformalError(f"level {level} was not asked for; there are {self.levels}")
        return np.array(self.intervals[self.levels.index(level)])

    def inside(self, level: float) -> BoolArray:
        """Whether the truth lies in the interval of one of the levels, shape (M,)."""
        low, high = self.interval(level).T
        return (low <= self.held.truth) & (self.held.truth <= high)

    def coverage(self, strata: Mapping[str, AnyArray] | None = None) -> list[dict[str, Any]]:
        """Coverage of all arcs, by verdict, motion, length of arc, and by strata.

        Parameters
        ----------
        strata : mapping of str to ndarray, optional
            Label of each arc, shape (M,), by the name of the division.

        Returns
        -------
        list of dict
            A row for each level and bin: ``level``, ``stratum``, ``bin``, ``n_arcs``,
            ``n_objects``, ``per_arc``, ``per_object``, ``median_width_au`` and ``median_ratio``
            (upper by lower bound). Arcs without an answer have the whole admissible range; they
            count under ``all`` and ``verdict`` alone.
        """
        divisions = {**self._own_strata(), **(strata or {})}
        rows = []
        for level in self.levels:
            for name, labels in divisions.items():
                whole = name in _WHOLE or self.held.answers.given
                rows += [
                    {"level": level, "stratum": name, "bin": label, **self._row(level, mine)}
                    for label, mine in _bins(np.asarray(labels), whole)
                ]
        return rows

    def _own_strata(self) -> dict[str, AnyArray]:
        answers = self.held.answers
        verdict = np.where(
            answers.given, np.where(answers.usable, "usable", "not usable"), "no answer"
        )
        decile = _quantile_of(answers.eta, 10, answers.given)
        tercile = _quantile_of(answers.span, 3, answers.given)
        return {
            "all": np.full(len(self.held), "all"),
            "answered": np.full(len(self.held), "answered"),
            "verdict": verdict,
            "eta decile": decile + 1,
            "span tercile": np.array(AXES["span"].names)[tercile],
        }

    def _row(self, level: float, mine: BoolArray) -> dict[str, Any]:
        told = core.coverage(self.inside(level)[mine], self.held.objects[mine])
        low, high = self.interval(level)[mine].T
        known = np.isfinite(low)
        low, high = low[known], high[known]
        median = [float(np.median(x)) if len(x) else np.nan for x in (high - low, high / low)]
        return {
            "n_arcs": told.n_arcs,
            "n_objects": told.n_objects,
            "per_arc": told.per_arc,
            "per_object": told.per_object,
            "median_width_au": median[0],
            "median_ratio": median[1],
        }


def _require_unseen(estimator: RangingEstimator, manifest: Mapping[str, Any], split: str) -> None:
    """Refuse arcs that a network says in its card it was trained on or chosen by."""
    if not (estimator.is_learned and split in ("train", "val")):
        return
    own = getattr(estimator, "card", {}).get("train", {})
    if (own.get("settings"), own.get("division")) == (
        manifest.get("settings"),
        division_of(manifest),
    ):
        raise ConformalError(
            f"{estimator!r} learnt from this set, and its part {split!r} was seen in training: its "
            "errors there are no measure of those on new arcs; take 'test' or 'unseen'"
        )


_WHOLE: Final = ("all", "verdict")
"""Divisions of all arcs; the others are of those with an answer."""


def _quantile_of(values: FloatArray, n: int, rows: BoolArray) -> IntArray:
    """Bin of each value, from 0; the bins hold equal numbers of ``rows``."""
    return core.bin_of(core.quantile_edges(values[rows], n), values)


def _bins(labels: AnyArray, rows: BoolArray | bool) -> Iterator[tuple[Any, BoolArray]]:
    for label in np.unique(labels[rows] if rows is not True else labels).tolist():
        yield label, (labels == label) & rows


def cross_conformal(
    held: HeldOut,
    *,
    levels: Sequence[float] = LEVELS,
    folds: int = 10,
    seed: int = 0,
    score: str | None = None,
) -> CrossConformal:
    """Intervals of every arc from the arcs of other objects.

    Parameters
    ----------
    held : HeldOut
        M arcs.
    levels : sequence of float
    folds : int
        Into which the objects are dealt; each is calibrated on all others.
    seed : int
        Of the deal.
    score : {"log", "absolute", "standard"}, optional
        See `Calibration`.

    Raises
    ------
    ConformalError
        If there are fewer objects than folds, or too few arcs for a level.
    """
    fold = core.folds(held.objects, folds, np.random.default_rng(seed))
    intervals = np.empty((len(levels), len(held), 2))
    for k in range(folds):
        mine = fold == k
        calibration, part = held.take(~mine).calibration(score), held.take(mine)
        for i, level in enumerate(levels):
            intervals[i, mine] = calibration.bounds(part.answers, part.limits, level)
    return CrossConformal(held, tuple(levels), intervals, fold)


def calibrate(
    estimator: Any,
    folder: str | os.PathLike[str],
    split: str = "test",
    *,
    score: str | None = None,
    **options: Any,
) -> Calibration:
    """Calibration of a method by a split of a stored set.

    Parameters
    ----------
    estimator : str, type or RangingEstimator
        Name of a registered method, its class, or one that is made already.
    folder : path-like
        Folder of a divided set.
    split : str
        Arcs that the method has not seen: networks are chosen by ``"val"``, which is seen too.
    score : {"log", "absolute", "standard"}, optional
        See `Calibration.fit`.
    **options
        For the constructor, where a name or a class is given.

    Raises
    ------
    ConformalError
        If there are no arcs, none that the method answers, or a network learnt from them.
    DatasetError
        If the folder holds no finished set, or there is no such split.
    """
    held = HeldOut.read(get_estimator(estimator, **options), folder, split)
    return held.calibration(score, provenance(folder, split))


def provenance(folder: str | os.PathLike[str], split: str) -> dict[str, Any]:
    """Which arcs a calibration was made of, for its description.

    Raises
    ------
    DatasetError
        If the folder holds no finished set.
    """
    manifest = read_manifest(Path(folder))
    return {
        "split": split,
        "set": manifest.get("settings", {}),
        "neoranging": manifest.get("neoranging", ""),
    }


def calibrate_defaults(
    folder: str | os.PathLike[str],
    split: str,
    out: str | os.PathLike[str],
    *,
    claimed: str | os.PathLike[str] | None = None,
) -> list[Path]:
    """Write the calibrations of the methods that come with the package, at their defaults.

    Parameters
    ----------
    folder : path-like
        Folder of a divided set.
    split : str
        Its arcs to calibrate on.
    out : path-like
        Folder to write to, made if need be; those of the package are in
        ``neoranging/data/calibration``.
    claimed : path-like, optional
        Folder of another set for the classical methods: one whose errors are as large as claimed.
        These methods believe what is claimed, and where it is the truth, intervals counted on arcs
        that err less would be too narrow.

    Returns
    -------
    list of Path
        ``gauss.json``, ``laplace.json``, and ``<model>-<representation>.json`` of all weights that
        come with the package.
    """
    target = Path(out)
    target.mkdir(parents=True, exist_ok=True)
    written = []
    for method in _default_methods():
        path = target / f"{method._calibration_name}.json"
        source = folder if claimed is None or method.is_learned else claimed
        calibrate(method, source, split).write(path)
        written.append(path)
    default_calibration.cache_clear()
    return written


def _default_methods() -> Iterator[RangingEstimator]:
    from neoranging.estimators.gauss import GaussEstimator
    from neoranging.estimators.laplace import LaplaceEstimator
    from neoranging.estimators.learned import Representation, default_weights
    from neoranging.estimators.mlp import MLPEstimator
    from neoranging.estimators.pinn import PINNEstimator

    yield from (GaussEstimator(), LaplaceEstimator())
    for network in (MLPEstimator, PINNEstimator):
        for representation in get_args(Representation):
            try:
                default_weights(network.name, representation)
            except NotTrainedError:
                continue
            yield network(representation=representation)
