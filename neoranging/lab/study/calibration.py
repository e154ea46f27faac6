"""Calibrations of stored sets, and whether intervals hold on arcs that they were not made of.

A calibration for new arcs is made of all arcs held out. Whether it holds cannot be seen on these
same arcs, so a set judges itself crosswise: its objects are dealt into folds, and the intervals of
each fold come from the arcs of all others. Arcs resampled to pass near the Earth are in no night's
sample and are left out.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple, get_args

import numpy as np
import pandas as pd

from neoranging.calibration import CELLS, Calibration, default_calibration
from neoranging.core import columns
from neoranging.core import conformal as core
from neoranging.core.answers import Answers
from neoranging.core.status import RangeStatus
from neoranging.estimators.base import RangingEstimator
from neoranging.estimators.registry import get_estimator
from neoranging.exceptions import ConformalError, NotTrainedError
from neoranging.lab.sets.arcs import OBSERVED, to_core
from neoranging.lab.sets.learnt import check_learnt
from neoranging.lab.sets.schema import TRUE_COLUMNS, ArcTable
from neoranging.lab.sets.splits import division_of
from neoranging.lab.sets.store import iterate_arcs, read_arcs, read_manifest
from neoranging.lab.study.bootstrap import capped
from neoranging.lab.study.posteriors import PosteriorScores
from neoranging.lab.study.predictions import ask_arcs
from neoranging.lab.study.scores import STUDY_LEVELS, TABLE_LEVELS, ArcTruth
from neoranging.lab.study.strata import AXES
from neoranging.typing import AnyArray, BoolArray, FloatArray

LEVELS: Final = (0.5, 0.68, 0.9, 0.95)

COLUMNS_NEEDED: Final = (
    *OBSERVED,
    *(name for names in TRUE_COLUMNS.values() for name in names),
    *("designation", "is_close", "mag", "band"),
)
"""Columns of a set that a calibration looks at."""

ARCS_OF_OBJECT: Final = 20
"""Most arcs of an object that count in a calibration, drawn at random.

Arcs of one object err alike. If all counted, intervals would be those of the few objects with
hundreds of arcs, and too narrow for new ones; a single one of each would waste what arcs of one
object do not share.
"""

CONSTRUCTIONS: Final = ("package", "paper")
"""Ways to count intervals of the same answers: that of the package; and that of the literature,
absolute residuals of all arcs, whatever their number, by decile of proper motion alone."""


@dataclass(frozen=True, eq=False, repr=False)
class CalibrationSample:
    """Answers to M arcs that the method was not trained on, with their truth.

    Attributes
    ----------
    identity : mapping
        Of the method; `RangingEstimator.identity`.
    answers : Answers
    truth : ArcTruth
        From the origin of the method.
    is_learned : bool
        ``RangingEstimator.is_learned`` of the method.
    """

    identity: Mapping[str, Any]
    answers: Answers
    truth: ArcTruth
    is_learned: bool = False

    @classmethod
    def of(cls, estimator: RangingEstimator, tables: Iterable[ArcTable]) -> CalibrationSample:
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
        parts = []
        for table in tables:
            if len(table):
                arcs = to_core(table, estimator.origin)
                topocentric = arcs if estimator.origin == "topocenter" else to_core(table)
                answers, _ = ask_arcs(estimator, arcs, topocentric)
                truth = ArcTruth.of(table, estimator.origin, arcs)
                parts.append(cls(estimator.identity, answers, truth, estimator.is_learned))
        if not parts:
            raise ConformalError("there are no arcs to calibrate on: choose another split or set")
        return columns.join(parts)

    @classmethod
    def read(
        cls,
        estimator: RangingEstimator,
        folder: str | os.PathLike[str],
        split: str = "test",
        *,
        allow_learnt: bool = False,
    ) -> CalibrationSample:
        """Ask an estimator for the arcs of a split of a stored set, without resampled ones.

        Parameters
        ----------
        estimator : RangingEstimator
        folder : path-like
        split : str
        allow_learnt : bool
            Take objects that a network learnt from as well.

        Raises
        ------
        ConformalError
            If there is not one arc.
        EvaluationError
            If a network learnt from these objects or was chosen by them.
        """
        learnt_remark(estimator, folder, split, allow=allow_learnt)
        parts = iterate_arcs(Path(folder), COLUMNS_NEEDED, split)
        return cls.of(estimator, (table.take(~table["is_close"]) for table in parts))

    def __len__(self) -> int:
        return len(self.truth)

    def take(self, rows: AnyArray) -> CalibrationSample:
        """Some of the arcs: indices or a mask."""
        return replace(self, answers=self.answers.take(rows), truth=self.truth.take(rows))

    def calibration(
        self,
        score: str | None = None,
        description: Mapping[str, Any] | None = None,
        *,
        construction: str = CONSTRUCTIONS[0],
    ) -> Calibration:
        """Calibration of range and range-rate for new arcs.

        Parameters
        ----------
        score : str, optional
            See `Calibration.fit`; ``"absolute"`` in the construction of the paper.
        description : mapping, optional
            Which data these are, as plain data.
        construction : {"package", "paper"}
            That of the package counts at most ``ARCS_OF_OBJECT`` arcs of each object.

        Raises
        ------
        ConformalError
            If there is no such construction, or as in `Calibration.fit`.
        """
        if construction not in CONSTRUCTIONS:
            raise ConformalError(
                f"construction must be one of {CONSTRUCTIONS}, got {construction!r}"
            )
        objects, number = self.truth.objects
        some, most, cells = self, None, CELLS[1]
        if construction == "package":
            most, cells = ARCS_OF_OBJECT, CELLS[0]
            some = self.take(capped(number, most))
        elif score is None:
            score = "absolute"
        rates = some.truth.rho_dot
        return Calibration.fit(
            some.answers,
            some.truth.span,
            some.truth.rho,
            # sets that were made without range-rates have none
            true_rate=rates if np.isfinite(rates).any() else None,
            score=score,
            cells=cells,
            is_learned=self.is_learned,
            identity=self.identity,
            description={
                "n_objects": len(objects),
                "n_held_out": len(number),
                "most_of_an_object": most,
                **(description or {}),
            },
        )

    def intervals(
        self, calibration: Calibration, level: float, *, of: str = "range", too_few: str = "raise"
    ) -> FloatArray:
        """Intervals that a calibration gives these answers, shape (M, 2) [au] or [au/d]."""
        truth = self.truth
        limits = truth.limits if of == "range" else truth.attributables.rate_limits
        return calibration.bounds(self.answers, truth.span, limits, level, of=of, too_few=too_few)

    def inside(self, bounds: FloatArray, of: str = "range") -> BoolArray:
        """Flags of truths that lie in intervals, shape (M,)."""
        true = self.truth.rho if of == "range" else self.truth.rho_dot
        return (bounds[:, 0] <= true) & (true <= bounds[:, 1])

    def __repr__(self) -> str:
        name, n = self.identity.get("method"), len(self.truth.objects[0])
        return f"<CalibrationSample: {name} on {len(self)} arcs of {n} objects>"


def cross_conformal(
    sample: CalibrationSample,
    *,
    levels: Sequence[float] = LEVELS,
    folds: int = 10,
    seed: int = 0,
    score: str | None = None,
    construction: str = CONSTRUCTIONS[0],
    of: str = "range",
) -> dict[float, FloatArray]:
    """Intervals of every arc from the arcs of other objects.

    Parameters
    ----------
    sample : CalibrationSample
        M arcs.
    levels : sequence of float
    folds : int
        Into which the objects are dealt; each is calibrated on all others.
    seed : int
        Of the deal.
    score, construction
        As of `CalibrationSample.calibration`.
    of : {"range", "range_rate"}

    Returns
    -------
    dict of float to ndarray
        By level, the intervals within the admissible limits, shape (M, 2) [au] or [au/d].

    Raises
    ------
    ConformalError
        If there are fewer objects than folds, or too few arcs for a level.
    """
    fold = core.folds(sample.truth.designation, folds, np.random.default_rng(seed))
    intervals = {level: np.empty((len(fold), 2)) for level in levels}
    for k in range(folds):
        rows = fold == k
        others, part = sample.take(np.flatnonzero(~rows)), sample.take(rows)
        calibration = others.calibration(score, construction=construction)
        for level in levels:
            intervals[level][rows] = part.intervals(calibration, level, of=of)
    return intervals


def coverage(
    sample: CalibrationSample,
    intervals: Mapping[float, FloatArray],
    strata: Mapping[str, AnyArray] | None = None,
) -> pd.DataFrame:
    """Coverage of all arcs, by verdict, motion, length of arc, and by strata.

    Parameters
    ----------
    sample : CalibrationSample
        M arcs.
    intervals : mapping of float to ndarray
        By level, shape (M, 2) [au]; as of `cross_conformal`.
    strata : mapping of str to ndarray, optional
        Label of each arc, shape (M,), by the name of the division.

    Returns
    -------
    DataFrame
        A row for each level and bin: ``level``, ``stratum``, ``bin``, ``n_arcs``, ``n_objects``,
        ``per_arc``, ``per_object``, ``median_width_au`` and ``median_ratio`` (upper by lower
        bound). Arcs without an answer have the whole admissible range; they count under ``all``
        and ``verdict`` alone.
    """
    answers, truth = sample.answers, sample.truth
    answered, every = core.answered(answers), np.ones(len(answers), dtype=bool)
    verdict = np.where(answered, np.where(answers.usable, "usable", "not usable"), "no answer")
    decile, tercile = (
        core.bin_of(core.quantile_edges(values[answered], n), values)
        for values, n in ((answers.eta, 10), (truth.span, 3))
    )
    divisions = {
        "all": (np.full(len(answers), "all"), every),
        "answered": (np.full(len(answers), "answered"), answered),
        "verdict": (verdict, every),
        "eta decile": (decile + 1, answered),
        "span tercile": (np.array(AXES["span"].names)[tercile], answered),
    }
    divisions |= {name: (np.asarray(label), answered) for name, label in (strata or {}).items()}
    rows = []
    for level, bounds in intervals.items():
        low, high = bounds.T
        inside = sample.inside(bounds)
        for name, (labels, counted) in divisions.items():
            for label in np.unique(labels[counted]).tolist():
                k = (labels == label) & counted
                shares = core.coverage(inside[k], truth.designation[k])
                finite = k & np.isfinite(low)
                middle = [
                    float(np.median(x[finite])) if finite.any() else np.nan
                    for x in (high - low, high / low)
                ]
                rows.append(
                    {"level": level, "stratum": name, "bin": label}
                    | shares._asdict()
                    | {"median_width_au": middle[0], "median_ratio": middle[1]}
                )
    return pd.DataFrame(rows)


# ---------------------------------------------------------------------- methods of a study


class MethodIntervals(NamedTuple):
    """Intervals of one method of a study, and how often they hold."""

    sample: CalibrationSample | None = None
    """Answers that they were calibrated on; None where there are none."""
    bounds: Mapping[float, FloatArray] = MappingProxyType({})
    """Intervals of the arcs by level, where possible: crosswise, or of the posteriors."""
    coverage: pd.DataFrame | None = None
    """Table of `coverage` at all levels."""
    rows: pd.DataFrame | None = None
    """Table of ``source`` and `coverage` at `TABLE_LEVELS`: "posterior"; or "crosswise", and "of
    the method" by the calibration that comes with it."""
    why: str = ""
    """Why there are none, or how they were made otherwise; "" for nothing."""

    @classmethod
    def of(
        cls,
        sample: CalibrationSample,
        strata: Mapping[str, AnyArray],
        calibration: Calibration | None = None,
        folds: int = 10,
    ) -> MethodIntervals:
        """Intervals of answers from the answers to other objects.

        Parameters
        ----------
        sample : CalibrationSample
            M arcs.
        strata : mapping of str to ndarray
            Label of each arc, by the name of the division.
        calibration : Calibration, optional
            One that comes with the method, to be judged as well.
        folds : int
        """
        folds = min(folds, len(sample.truth.objects[0]))
        if folds < 2:
            return cls(why="no intervals: all arcs are of one object")
        usable = core.answered(sample.answers) & sample.answers.usable
        n_usable, some, why = int(usable.sum()), sample, ""
        # a fold is calibrated on the others, and one object may own most of the usable answers
        fold = core.folds(sample.truth.designation, folds, np.random.default_rng(0))
        least = n_usable - int(np.bincount(fold[usable], minlength=1).max())
        if n_usable and least < core.arcs_needed(max(TABLE_LEVELS)):
            why = (
                f"only {n_usable} answers are usable: its intervals are calibrated on all together"
            )
            some, n_usable = without_verdicts(sample), 0
        # bins hold hundreds of arcs unless there are fewer in all; folds of objects are uneven
        of_bin = 0.5 * min(n_usable or len(sample), 400)
        levels = [x for x in STUDY_LEVELS if x <= 0.95 or core.arcs_needed(x) <= of_bin]
        try:
            intervals = cross_conformal(some, levels=levels, folds=folds)
        except ConformalError as error:
            return cls(why=f"no intervals: {error}")
        covered = coverage(some, intervals, strata)
        tables = {"crosswise": covered[covered["level"].isin(TABLE_LEVELS)]}
        if calibration is not None:
            own = {x: sample.intervals(calibration, x, too_few="limits") for x in TABLE_LEVELS}
            tables["of the method"] = coverage(sample, own, strata)
        rows = pd.concat(tables, names=["source", None]).reset_index("source")
        return cls(some, intervals, covered, rows, why)

    @classmethod
    def of_posteriors(
        cls,
        sample: CalibrationSample,
        posteriors: PosteriorScores,
        strata: Mapping[str, AnyArray],
    ) -> MethodIntervals:
        """Equal-tailed intervals of posteriors, quoted as they are: nothing is calibrated."""
        intervals = posteriors.intervals(sample.truth.limits)
        covered = coverage(sample, intervals, strata)
        rows = covered[covered["level"].isin(TABLE_LEVELS)].assign(source="posterior")
        return cls(None, intervals, covered, rows)


def without_verdicts(sample: CalibrationSample) -> CalibrationSample:
    """The same answers with no one usable, so that all are calibrated together."""
    status = np.full(len(sample), RangeStatus.UNDETERMINED.code, dtype=np.int8)
    return replace(sample, answers=replace(sample.answers, status=status))


# ---------------------------------------------------------------------- calibrations


def calibrate(
    estimator: Any,
    folder: str | os.PathLike[str],
    split: str = "test",
    *,
    score: str | None = None,
    construction: str = CONSTRUCTIONS[0],
    allow_learnt: bool = False,
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
    score, construction
        As of `CalibrationSample.calibration`.
    allow_learnt : bool
        Take objects that a network learnt from as well, which the description remarks.
    **options
        For the constructor, where a name or a class is given.

    Raises
    ------
    ConformalError
        If there are no arcs, or none that the method answers.
    DatasetError
        If the folder holds no finished set, or there is no such split.
    EvaluationError
        If a network learnt from these objects or was chosen by them.
    """
    method = get_estimator(estimator, **options)
    sample = CalibrationSample.read(method, folder, split, allow_learnt=allow_learnt)
    description = provenance(method, folder, split)
    return sample.calibration(score, description, construction=construction)


def learnt_remark(
    estimator: RangingEstimator,
    folder: str | os.PathLike[str],
    split: str,
    *,
    allow: bool = False,
) -> str:
    """Remark on objects of a split that a network learnt from; "" for none and other methods.

    Errors are those of `check_learnt`.
    """
    if not estimator.is_learned:
        return ""
    table = read_arcs(Path(folder), ("designation", "split", "is_simulated"), split)
    card, division = getattr(estimator, "card", {}), division_of(read_manifest(Path(folder)))
    return check_learnt(card, table, division, repr(estimator), allow=allow)


def provenance(
    estimator: RangingEstimator, folder: str | os.PathLike[str], split: str
) -> dict[str, Any]:
    """Arcs that a calibration was made of, for its description.

    Raises
    ------
    DatasetError
        If the folder holds no finished set.
    """
    manifest = read_manifest(Path(folder))
    remark = learnt_remark(estimator, folder, split, allow=True)
    return {
        "split": split,
        "set": manifest.get("settings", {}),
        "neoranging": manifest.get("neoranging", ""),
        **({"learnt": remark} if remark else {}),
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
        Where what is claimed is the truth, intervals counted on arcs that err less would be too
        narrow.

    Returns
    -------
    list of Path
        ``gauss.json``, ``laplace.json``, and ``<model>-<representation>.json`` of all weights that
        come with the package.
    """
    from neoranging.estimators.learned import Representation

    target = Path(out)
    target.mkdir(parents=True, exist_ok=True)
    networks = [f"{model}@{kind}" for model in ("mlp", "pinn") for kind in get_args(Representation)]
    written = []
    for name in ("gauss", "laplace", *networks):
        method = get_estimator(name)
        try:
            _ = method.identity
        except NotTrainedError:  # no weights come with this installation
            continue
        path = target / f"{method._calibration_name}.json"
        source = folder if claimed is None or method.is_learned else claimed
        calibrate(method, source, split).write(path)
        written.append(path)
    default_calibration.cache_clear()
    return written
