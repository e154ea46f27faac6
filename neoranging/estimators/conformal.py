"""Any estimator with intervals that hold: calibrated on tracklets whose range is known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from astropy import units as u

from neoranging.arguments import values_in
from neoranging.calibration import CELLS, Calibration
from neoranging.core.answers import Answers
from neoranging.core.arcs import Arcs
from neoranging.core.attributable import Attributables
from neoranging.estimate import RangeEstimate
from neoranging.estimators.base import RangingEstimator
from neoranging.exceptions import ConformalError, NotTrainedError
from neoranging.tracklet import Tracklet, TrackletSet


class ConformalEstimator(RangingEstimator):
    """Another estimator, and a calibration of it: same numbers, intervals from its own errors.

    The intervals hold for any method, however wrong, as long as new tracklets are like those of the
    calibration: a share ``level`` of the truths lies in ``interval(level)``, at every decile of
    proper motion, among short arcs and among long ones. Tracklets that the method was trained on
    are not like new ones, and neither are many of one object: count few of each.

    Parameters
    ----------
    base : RangingEstimator
        Gives the answers; it keeps its name and origin.
    calibration : Calibration, optional
        Made earlier of the same method with the same options and weights; or call `calibrate`.
    score : {"log", "absolute", "standard", "log-standard"}, optional
        For `calibrate`: what is counted, see `Calibration`. By default ``"log"``, unless the method
        gives a standard error with every usable answer: then ``"log-standard"`` for learned ones
        and ``"standard"`` for others.
    cells : {"motion, length and verdict", "motion deciles"}
        For `calibrate`: which arcs are counted together. The latter with the score ``"absolute"``
        is the construction of the literature.

    Raises
    ------
    ConformalError
        If the calibration was made for another method, or other options or weights.

    Examples
    --------
    ::

        gauss = ConformalEstimator(GaussEstimator())
        gauss.calibrate(known, true_range, true_range_rate)
        tracklets.estimate(gauss).interval(0.95)
        tracklets.estimate(gauss).interval(0.95, of="range_rate")
    """

    name: ClassVar[str] = "conformal"

    def __init__(
        self,
        base: RangingEstimator,
        calibration: Calibration | None = None,
        *,
        score: str | None = None,
        cells: str = CELLS[0],
    ) -> None:
        if not isinstance(base, RangingEstimator):
            raise ConformalError(
                f"base must be an estimator, got {base!r}: neoranging.get_estimator makes one of "
                "a name"
            )
        super().__init__(origin=base.origin)
        # what the class of another estimator says of it, this one says of itself
        shared = ("name", "min_observations", "is_learned", "gives_posterior", "chunk_size")
        vars(self).update({name: getattr(base, name) for name in shared})
        self.base, self.score, self.cells, self._calibration = base, score, cells, calibration
        if calibration is not None and not calibration.matches(base.identity):
            raise ConformalError(
                f"the calibration was made for {dict(calibration.identity)}, not for "
                f"{base.identity}: calibrate this one"
            )

    @property
    def identity(self) -> dict[str, Any]:
        """Identity of the base, since the answers are its."""
        return self.base.identity

    @property
    def calibration(self) -> Calibration | None:
        """The calibration that estimates get; None if there is none."""
        return self._calibration

    def calibrate(
        self,
        tracklets: TrackletSet,
        true_range: u.Quantity,
        true_range_rate: u.Quantity | None = None,
        *,
        objects: Any = None,
        description: Mapping[str, Any] | None = None,
    ) -> Self:
        """Learn from tracklets whose range is known how far off the base is.

        Parameters
        ----------
        tracklets : TrackletSet
            M tracklets, none of an object that the base was trained on.
        true_range : Quantity, shape (M,)
            From the same origin, at the epochs of ``tracklets.attributable()``.
        true_range_rate : Quantity, shape (M,), optional
            Its derivative by the time of reception. Without it there are no calibrated intervals of
            the range-rate.
        objects : array_like, shape (M,), optional
            Which object each is of, by default its designation. Many tracklets of few objects say
            less than their number promises; both are kept in the description.
        description : mapping, optional
            Which data these are, as plain data.

        Returns
        -------
        ConformalEstimator
            This one.

        Raises
        ------
        ConformalError
            If the shapes differ, a true range is not positive, a true range-rate not a number, or
            the base answers none.
        """
        if not isinstance(tracklets, TrackletSet):
            raise ConformalError(
                f"a calibration needs a TrackletSet, got {type(tracklets).__name__}"
            )
        truth = values_in("true_range", true_range, u.au, ConformalError)
        rates = None
        if true_range_rate is not None:
            rates = values_in("true_range_rate", true_range_rate, u.au / u.d, ConformalError)
        names = np.asarray(tracklets.designation if objects is None else objects)
        given = {"true_range": truth, "true_range_rate": rates, "objects": names}
        shapes = {name: x.shape for name, x in given.items() if x is not None}
        if set(shapes.values()) != {(len(tracklets),)}:
            raise ConformalError(
                f"one entry for each of {len(tracklets)} tracklets is needed, got the shapes "
                f"{', '.join(f'{shape} of {name}' for name, shape in shapes.items())}"
            )
        arcs = tracklets.arcs(self.origin)
        self._calibration = Calibration.fit(
            self._solve(arcs, tracklets.arcs()),
            arcs.span,
            truth,
            true_rate=rates,
            score=self.score,
            cells=self.cells,
            is_learned=self.is_learned,
            identity=self.identity,
            description={"n_objects": len(np.unique(names)), **(description or {})},
        )
        return self

    def estimate(
        self, tracklets: Tracklet | TrackletSet, *, on_failure: str = "return"
    ) -> RangeEstimate:
        """Estimates of the base, with the calibration attached; see `RangingEstimator.estimate`.

        Raises
        ------
        NotTrainedError
            If it is not calibrated.
        EstimationError
            With ``on_failure="raise"``.
        """
        if self._calibration is None:
            raise NotTrainedError(
                f"{self!r} is not calibrated: call .calibrate(tracklets, true_range) with "
                "tracklets whose range is known, or give a calibration"
            )
        if not self._calibration.matches(self.identity):
            raise NotTrainedError(
                f"{self!r} answers otherwise than when it was calibrated: calibrate it again"
            )
        return self.base._answer(tracklets, on_failure, self._calibration)

    def _solve(self, arcs: Arcs, topocentric: Arcs) -> Answers:
        return self.base._solve(arcs, topocentric)

    def _estimate(self, arcs: Arcs, attributables: Attributables) -> Answers:
        return self.base._estimate(arcs, attributables)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base!r})"
