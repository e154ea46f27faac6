"""What an estimator is: one method to write, everything else done once here."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar, Final, TypeVar

import numpy as np
import numpy.typing as npt

from neoranging.attributable import Attributable
from neoranging.calibration import Calibration, default_calibration
from neoranging.constants import ARCSEC
from neoranging.core.answers import Solutions
from neoranging.core.arcs import Arcs
from neoranging.core.attributable import Attributables, from_fit
from neoranging.core.conformal import Answers, admissible_limits
from neoranging.core.influence import worst_observation
from neoranging.core.status import RangeStatus
from neoranging.core.verdict import judged
from neoranging.estimate import RangeEstimate
from neoranging.exceptions import EstimationError, NeoRangingError, TrackletError
from neoranging.observations.stations import missing_place
from neoranging.tracklet import ORIGINS, Tracklet, TrackletSet
from neoranging.typing import CodeArray, FloatArray, StrArray

_NEAR_LEVEL = 0.95

_S = TypeVar("_S")
_T = TypeVar("_T")

_CODES: Final = [status.code for status in RangeStatus]


class RangingEstimator(ABC):
    """A method that completes attributables with range and range-rate.

    A subclass writes `_estimate` on plain arrays and states what it can do; validation, units,
    observers, chunks, threads and the dressing of the result are done here. Registered under the
    entry-point group ``neoranging.estimators`` it is available as
    ``tracklet.estimate(method="its name")``.

    Parameters
    ----------
    origin : {"topocenter", "geocenter"}
        Origin of the estimate: the observers where they stood, or the centre of the Earth.

    Attributes
    ----------
    name : str
        Name of the method.
    min_observations : int
        Distinct epochs that it needs; shorter arcs get ``TOO_FEW_OBSERVATIONS``.
    is_learned : bool
        Whether it was trained on data. Its answers that call themselves OK are then judged by the
        observations (``neoranging.core.verdict``): most become ``POPULATION``.
    representations : tuple of str
        Words that its option ``representation`` takes, if it has one; the first is the default.
        They may follow its name, as in ``"mlp@paper"``.
    chunk_size : int
        Arcs that `_estimate` sees at once: enough to bury the cost of a call, few enough to cache.
    """

    name: ClassVar[str]
    min_observations: ClassVar[int] = 2
    is_learned: ClassVar[bool] = False
    representations: ClassVar[tuple[str, ...]] = ()
    chunk_size: ClassVar[int] = 16384

    def __init__(self, *, origin: str = "topocenter") -> None:
        if origin not in ORIGINS:
            raise TrackletError(f"origin must be one of {ORIGINS}, got {origin!r}")
        self.origin = origin

    @abstractmethod
    def _estimate(self, arcs: Arcs, attributables: Attributables) -> Solutions:
        """Estimate arcs that have enough epochs and known observers.

        Parameters
        ----------
        arcs : Arcs
            M arcs, au-day-radian-TDB.
        attributables : Attributables
            Of the same arcs, by the weighted fit of all observations.

        Returns
        -------
        Solutions
            One answer per arc, each with a status; ``candidates`` may be None.
        """

    def estimate(
        self, tracklets: Tracklet | TrackletSet, *, on_failure: str = "return"
    ) -> RangeEstimate:
        """Estimate range and range-rate.

        Parameters
        ----------
        tracklets : Tracklet or TrackletSet
            One tracklet gives scalars, a set arrays.
        on_failure : {"return", "raise"}
            Whether any status but OK is left to the caller or raised.

        Raises
        ------
        EstimationError
            With ``on_failure="raise"``; carries the partial result as ``.estimate``.
        """
        return self._answer(tracklets, on_failure, self.calibration)

    @property
    def identity(self) -> dict[str, Any]:
        """What its answers depend on, as plain data: the class, the origin, options and weights.

        A calibration is of one identity and used for no other; a subclass with options of its own
        adds them.
        """
        cls = type(self)
        return {
            "method": self.name,
            "class": f"{cls.__module__}:{cls.__qualname__}",
            "origin": self.origin,
        }

    @property
    def calibration(self) -> Calibration | None:
        """What the intervals of its estimates come from; None if it was never calibrated.

        That of the package, if one comes with it for this method, its options and weights.
        """
        name = self._calibration_name
        found = None if name is None else default_calibration(name)
        return found if found is not None and found.matches(self.identity) else None

    @property
    def _calibration_name(self) -> str | None:
        """Name of the calibration that comes with the package."""
        return None

    def _answer(
        self,
        tracklets: Tracklet | TrackletSet,
        on_failure: str,
        calibration: Calibration | None,
    ) -> RangeEstimate:
        """The estimate, with a calibration attached."""
        if on_failure not in ("return", "raise"):
            raise TrackletError(f"on_failure must be 'return' or 'raise', got {on_failure!r}")
        scalar = isinstance(tracklets, Tracklet)
        one_set = tracklets._set if isinstance(tracklets, Tracklet) else tracklets
        if not isinstance(one_set, TrackletSet):
            raise TrackletError(
                f"expected a Tracklet or a TrackletSet, got {type(tracklets).__name__}; "
                "neoranging.read_tracklets makes them from files and tables"
            )
        attributables, solutions = self._solve(one_set.arcs(self.origin), one_set.arcs())
        solutions = solutions._replace(remarks=_with_missing_places(one_set, solutions))
        estimate = RangeEstimate(
            method=self.name,
            origin=self.origin,
            attributable=Attributable._from_arrays(attributables, scalar),
            solutions=solutions,
            tracklets=one_set,
            calibration=calibration,
        )
        if on_failure == "raise":
            _raise_first_failure(estimate, solutions.status)
        return estimate

    def _solve(self, arcs: Arcs, topocentric: Arcs) -> tuple[Attributables, Solutions]:
        """Attributables and answers for arcs from the origin.

        ``topocentric`` are the same arcs from where the observers stood: those that learned methods
        are judged on.
        """
        if not len(arcs):
            return Attributables.none(), Solutions.unsolved([])
        chunks = zip(*(each.chunks(self.chunk_size) for each in (arcs, topocentric)), strict=True)
        parts = _map_threaded(self._solve_chunk, list(chunks))
        columns = zip(*(attributables for attributables, _ in parts), strict=True)
        return (
            Attributables._make(np.concatenate(column) for column in columns),
            Solutions.join([solutions for _, solutions in parts]),
        )

    # arcs that are none overflow on the way to the status that says so
    @np.errstate(all="ignore")
    def _solve_chunk(self, both: tuple[Arcs, Arcs]) -> tuple[Attributables, Solutions]:
        arcs, topocentric = both
        attributables = from_fit(arcs)
        enough = arcs.n_epochs >= self.min_observations
        known = arcs.sum(~np.isfinite(arcs.position[:, 0]) + 0) == 0
        # of velocities only that at the reference epoch matters: the range-rate counts from it
        known &= np.isfinite(arcs.velocity[arcs.triplet[:, 1], 0])
        usable = np.nonzero(enough & known)[0]
        if len(usable) == len(arcs):
            return attributables, self._checked_estimate(arcs, attributables, topocentric)
        status = np.where(
            enough, RangeStatus.UNKNOWN_OBSERVER.code, RangeStatus.TOO_FEW_OBSERVATIONS.code
        )
        if not len(usable):
            return attributables, Solutions.unsolved(status)
        part = self._checked_estimate(
            arcs.take(usable), attributables.take(usable), topocentric.take(usable)
        )
        return attributables, part.spread(usable, status)

    def _checked_estimate(
        self, arcs: Arcs, attributables: Attributables, topocentric: Arcs
    ) -> Solutions:
        """Answers of the method, one for each arc, with their verdicts and remarks."""
        name = f"{type(self).__name__}._estimate"
        try:
            found = self._estimate(arcs, attributables)
        except NeoRangingError:
            raise
        except Exception as error:  # of whoever wrote the method
            raise EstimationError(
                f"{name} failed ({type(error).__name__}: {error}): that is a fault of the method "
                f"{self.name!r}, for whoever maintains it"
            ) from error
        if not isinstance(found, Solutions):
            raise EstimationError(f"{name} must return Solutions, got {type(found).__name__}")
        lengths = {len(column) for column in found._columns}
        if lengths != {len(arcs)}:
            raise EstimationError(
                f"{name} must return one answer for each of {len(arcs)} arcs, got columns of "
                f"{', '.join(map(str, sorted(lengths)))} rows"
            )
        if not np.isin(found.status, _CODES).all():
            raise EstimationError(f"{name} must give each arc the code of a RangeStatus")
        known = np.isfinite(found.rho) & np.isfinite(found.rho_dot)
        bad = (found.status == RangeStatus.OK.code) & ~known
        if bad.any():
            raise EstimationError(
                f"{name} says OK of {int(bad.sum())} arcs without a finite range and range-rate: "
                "give them the status that says why"
            )
        if self.is_learned:
            found = judged(
                topocentric, attributables, found, self._near(arcs, attributables, found)
            )
        return found._replace(remarks=_with_reasons(arcs, found))

    def _near(
        self, arcs: Arcs, attributables: Attributables, found: Solutions
    ) -> FloatArray | None:
        """Ranges near the answers [au], shape (M, 2): all but one of twenty truths; or None."""
        calibration = self.calibration
        if calibration is None:
            return None
        answers = Answers.of(attributables, found, arcs.span)
        limits = admissible_limits(attributables)
        return calibration.bounds(answers, limits, _NEAR_LEVEL, too_few="limits")

    def __repr__(self) -> str:
        return f"{type(self).__name__}(origin={self.origin!r})"


def _remarks(found: Solutions) -> npt.NDArray[np.object_]:
    """Remarks of the method, to be added to."""
    remarks = np.full(len(found.rho), "", dtype=object)
    if found.remarks is not None:
        remarks[:] = found.remarks
    return remarks


def _with_missing_places(tracklets: TrackletSet, found: Solutions) -> StrArray | None:
    """Remarks, and of each unknown observer the station and what it needs."""
    rows = np.flatnonzero(found.status == RangeStatus.UNKNOWN_OBSERVER.code)
    if not len(rows):
        return found.remarks
    remarks = _remarks(found)
    remarks[rows] = "one observation does not show how the spacecraft of the middle one moved"
    c = tracklets._columns
    bare = np.isnan(c.itrf[:, 0]) & np.isnan(c.gcrs[:, 0])
    owner = np.repeat(np.arange(len(tracklets)), tracklets.counts)[bare]
    for code in np.unique(c.station[bare]).tolist():
        reason = missing_place(code) if code else "no station is given"
        remarks[np.intersect1d(owner[c.station[bare] == code], rows)] = reason
    return remarks.astype(np.str_)


def _with_reasons(arcs: Arcs, found: Solutions) -> StrArray | None:
    """Remarks, and where there is none the worst observation of a misfit, or that no range is."""
    misfit = np.flatnonzero(found.status == RangeStatus.MISFIT.code)
    without = (found.status == RangeStatus.UNDETERMINED.code) & ~np.isfinite(found.rho)
    if not (len(misfit) or without.any()):
        return found.remarks
    remarks = _remarks(found)
    remarks[without & (remarks == "")] = "no range: the arc shows no bend beyond its errors"
    if len(misfit):
        part = arcs.take(misfit)
        worst, offset = worst_observation(part)
        number = (worst - part.offsets[:-1] + 1).tolist()
        counts = part.counts.tolist()
        for row, one, n, off in zip(misfit.tolist(), number, counts, offset, strict=True):
            remarks[row] = remarks[row] or (
                f"observation {one} of {n} is {off / ARCSEC:.4g} arcsec off the path of the others"
                if n > 3
                else "of three observations any one may be wrong"
            )
    return remarks.astype(np.str_)


def _map_threaded(function: Callable[[_S], _T], chunks: list[_S]) -> list[_T]:
    """Apply a function to chunks; numpy lets go of the interpreter lock, so threads do."""
    if len(chunks) == 1:
        return [function(chunks[0])]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(function, chunks))


def _raise_first_failure(estimate: RangeEstimate, status: CodeArray) -> None:
    failed = np.nonzero(status != RangeStatus.OK.code)[0]
    if len(failed):
        first = RangeStatus.from_code(status[failed[0]])
        remark = np.atleast_1d(estimate.diagnostics)[failed[0]]
        raise EstimationError(
            f"{estimate.method}: {len(failed)} of {len(status)} estimates failed, the first as "
            f"{first.name}: {first.advice}" + (f" ({remark})" if remark else ""),
            estimate,
        )
