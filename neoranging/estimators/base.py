"""The interface of an estimator: one method to write, everything else done once here."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt

from neoranging.calibration import Calibration, default_calibration
from neoranging.constants import ARCSEC
from neoranging.core.answers import Answers
from neoranging.core.arcs import Arcs
from neoranging.core.attributable import Attributables, from_fit
from neoranging.core.influence import worst_observation
from neoranging.core.posterior import Posterior
from neoranging.core.status import RangeStatus
from neoranging.core.verdict import judged
from neoranging.estimate import RangeEstimate
from neoranging.exceptions import EstimationError, NeoRangingError, TrackletError
from neoranging.observations.stations import missing_place
from neoranging.tracklet import ORIGINS, Tracklet, TrackletSet
from neoranging.typing import AnyArray, BoolArray

_NEAR_LEVEL = 0.95
"""Of the interval in which ranges are near an answer: all but one of twenty truths."""

_CODES: Final = frozenset(status.code for status in RangeStatus)


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
    gives_posterior : bool
        Its `Answers` have a posterior, from which ephemerides and impacts follow.
    representations : tuple of str
        Words that its option ``representation`` takes, if it has one; the first is the default.
        They may follow its name, as in ``"mlp@paper"``.
    priors : tuple of str
        Words that its option ``prior`` takes, if it has one, as in ``"systematic@catalogue"``.
    chunk_size : int
        Arcs that `_estimate` sees at once: enough to bury the cost of a call, few enough to cache.
    """

    name: ClassVar[str]
    min_observations: ClassVar[int] = 2
    is_learned: ClassVar[bool] = False
    gives_posterior: ClassVar[bool] = False
    representations: ClassVar[tuple[str, ...]] = ()
    priors: ClassVar[tuple[str, ...]] = ()
    chunk_size: ClassVar[int] = 16384

    def __init__(self, *, origin: str = "topocenter") -> None:
        if origin not in ORIGINS:
            raise TrackletError(f"origin must be one of {ORIGINS}, got {origin!r}")
        self.origin = origin

    @abstractmethod
    def _estimate(self, arcs: Arcs, attributables: Attributables) -> Answers:
        """Estimate arcs that have enough epochs and known observers.

        Parameters
        ----------
        arcs : Arcs
            M arcs, au-day-radian-TDB.
        attributables : Attributables
            Of the same arcs, by the weighted fit of all observations.

        Returns
        -------
        Answers
            One for each arc, with a status; `Answers.of` makes them of ranges and range-rates.
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
        """Everything its answers depend on, as plain data: class, origin, options and weights.

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
        """Calibration that its intervals come from; None if it was never calibrated.

        That of the package, if one comes with it for this method, its options and weights.
        """
        name = self._calibration_name
        default = None if name is None else default_calibration(name)
        return default if default is not None and default.matches(self.identity) else None

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
        answers = self._solved(len(one_set), partial(_arcs_of, one_set, self.origin))
        if (remarks := _with_missing_places(one_set, answers)) is not answers.remarks:
            answers = replace(answers, remarks=remarks)
        estimate = RangeEstimate(answers, one_set, calibration, scalar=scalar)
        failed = np.flatnonzero(~answers.ok)
        if on_failure == "raise" and len(failed):
            first = RangeStatus.from_code(answers.status[failed[0]])
            remark = np.atleast_1d(estimate.diagnostics)[failed[0]]
            raise EstimationError(
                f"{self.name}: {len(failed)} of {len(answers)} estimates failed, the first as "
                f"{first.name}: {first.advice}" + (f" ({remark})" if remark else ""),
                estimate,
            )
        return estimate

    def _solve(self, arcs: Arcs, topocentric: Arcs) -> Answers:
        """Answers for arcs seen from the origin.

        ``topocentric`` are the same arcs from where the observers stood: those that learned methods
        are judged on.
        """
        return self._solved(
            len(arcs), lambda start, stop: (arcs.chunk(start, stop), topocentric.chunk(start, stop))
        )

    def _solved(self, n: int, chunk: Callable[[int, int], tuple[Arcs, Arcs]]) -> Answers:
        """Answers for n arcs, of which ``chunk`` makes some: they never exist all at once."""
        size = self.chunk_size
        if n == 0:
            answers = Answers.unsolved(Attributables.none(), [])
        elif n <= size:
            answers = self._solve_chunk(chunk(0, n))
        else:  # numpy and compiled functions let go of the interpreter lock, so threads do
            starts = range(0, n, size)

            def solved(start: int) -> Answers:
                return self._solve_chunk(chunk(start, min(start + size, n)))

            with ThreadPoolExecutor(os.cpu_count()) as pool:
                answers = Answers.join(pool.map(solved, starts), n)
        return replace(answers, method=self.name, origin=self.origin)

    def _conditions(self, arcs: Arcs) -> tuple[BoolArray, BoolArray]:
        """Flags of arcs with enough epochs, and of those with placed observers, (M,) each."""
        placed = arcs.sum(~np.isfinite(arcs.position[:, 0]) + 0) == 0
        # of velocities only that at the reference epoch matters: the range-rate counts from it
        placed &= np.isfinite(arcs.velocity[arcs.triplet[:, 1], 0])
        return arcs.n_epochs >= self.min_observations, placed

    # arcs that are none overflow on the way to the status that says so
    @np.errstate(all="ignore")
    def _solve_chunk(self, both: tuple[Arcs, Arcs]) -> Answers:
        arcs, topocentric = both
        attributables = from_fit(arcs)
        enough, placed = self._conditions(arcs)
        usable = np.nonzero(enough & placed)[0]
        if len(usable) == len(arcs):
            return self._checked_estimate(arcs, attributables, topocentric)
        status = np.where(
            enough, RangeStatus.UNKNOWN_OBSERVER.code, RangeStatus.TOO_FEW_OBSERVATIONS.code
        )
        if not len(usable):
            unsolved = Answers.unsolved(attributables, status)
            # a night of which no tracklet can be used is no method without a posterior
            none = Posterior.none(len(arcs)) if self.gives_posterior else None
            return replace(unsolved, posterior=none)
        part = self._checked_estimate(
            arcs.take(usable), attributables.take(usable), topocentric.take(usable)
        )
        return part.spread(usable, attributables, status)

    def _checked_estimate(
        self, arcs: Arcs, attributables: Attributables, topocentric: Arcs
    ) -> Answers:
        """Answers of the method, one for each arc, with their verdicts and remarks."""
        name = f"{type(self).__name__}._estimate"
        try:
            answers = self._estimate(arcs, attributables)
        except NeoRangingError:
            raise
        except Exception as error:  # of whoever wrote the method
            raise EstimationError(
                f"{name} failed ({type(error).__name__}: {error}): that is a fault of the method "
                f"{self.name!r}, for whoever maintains it"
            ) from error
        if not isinstance(answers, Answers):
            raise EstimationError(f"{name} must return Answers, got {type(answers).__name__}")
        lengths = {
            len(column) for column in vars(answers).values() if isinstance(column, np.ndarray)
        }
        if lengths != {len(arcs)}:
            raise EstimationError(
                f"{name} must return one answer for each of {len(arcs)} arcs, got columns of "
                f"{', '.join(map(str, sorted(lengths)))} rows"
            )
        if not _CODES.issuperset(answers.status.tolist()):
            raise EstimationError(f"{name} must give each arc the code of a RangeStatus")
        bad = answers.ok & ~(np.isfinite(answers.rho) & np.isfinite(answers.rho_dot))
        if bad.any():
            raise EstimationError(
                f"{name} says OK of {int(bad.sum())} arcs without a finite range and range-rate: "
                "give them the status that says why"
            )
        if answers.attributables is not attributables:
            answers = replace(answers, attributables=attributables)
        if self.is_learned:
            near, calibration = None, self.calibration
            if calibration is not None:
                near = calibration.bounds(
                    answers, arcs.span, answers.limits, _NEAR_LEVEL, too_few="limits"
                )
            answers = judged(topocentric, attributables, answers, near)
        remarks = _with_reasons(arcs, answers)
        return answers if remarks is answers.remarks else replace(answers, remarks=remarks)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(origin={self.origin!r})"


def _arcs_of(tracklets: TrackletSet, origin: str, start: int, stop: int) -> tuple[Arcs, Arcs]:
    """Arcs of some tracklets seen from an origin, and from where the observers stood."""
    part = tracklets if stop - start == len(tracklets) else tracklets._slice(start, stop)
    topocentric = part.arcs()
    return (topocentric if origin == "topocenter" else part.arcs(origin)), topocentric


def _remarks(answers: Answers) -> npt.NDArray[np.object_]:
    """Remarks of the method, to be added to."""
    remarks = np.full(len(answers), "", dtype=object)
    if answers.remarks is not None:
        remarks[:] = answers.remarks
    return remarks


def _with_missing_places(tracklets: TrackletSet, answers: Answers) -> AnyArray | None:
    """Remarks, and of each unknown observer the station and what it needs."""
    rows = np.flatnonzero(answers.status == RangeStatus.UNKNOWN_OBSERVER.code)
    if not len(rows):
        return answers.remarks
    remarks = _remarks(answers)
    remarks[rows] = "one observation does not show how the spacecraft of the middle one moved"
    c = tracklets._columns
    bare = np.isnan(c.itrf[:, 0]) & np.isnan(c.gcrs[:, 0])
    owner = np.repeat(np.arange(len(tracklets)), tracklets.counts)[bare]
    for code in np.unique(c.station[bare]).tolist():
        reason = missing_place(code) if code else "no station is given"
        remarks[np.intersect1d(owner[c.station[bare] == code], rows)] = reason
    return remarks.astype(np.str_)


def _with_reasons(arcs: Arcs, answers: Answers) -> AnyArray | None:
    """Remarks, and where there is none the worst observation of a misfit, or that no range is."""
    misfit = np.flatnonzero(answers.status == RangeStatus.MISFIT.code)
    without = (answers.status == RangeStatus.UNDETERMINED.code) & ~np.isfinite(answers.rho)
    if not (len(misfit) or without.any()):
        return answers.remarks
    remarks = _remarks(answers)
    remarks[without & (remarks == "")] = "no range: the arc shows no bend beyond its errors"
    if len(misfit):
        part = arcs.take(misfit)
        worst, offset = worst_observation(part)
        number = (worst - part.offsets[:-1] + 1).tolist()
        counts = part.counts.tolist()
        for row, one, n, off in zip(misfit.tolist(), number, counts, offset, strict=True):
            reason = (
                f"observation {one} of {n} is {off / ARCSEC:.4g} arcsec off the path of the others"
                if n > 3
                else "of three observations any one may be wrong"
            )
            remarks[row] = "; ".join(filter(None, (remarks[row], reason)))
    return remarks.astype(np.str_)
