"""What the classical estimators share: options, refinement, verdict."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import asdict, fields
from typing import Any, ClassVar

from neoranging.core.answers import Answers
from neoranging.core.arcs import Arcs
from neoranging.core.attributable import Attributables
from neoranging.core.candidates import ClassicalRoots, Thresholds, solve
from neoranging.estimators.base import RangingEstimator
from neoranging.exceptions import TrackletError


class ClassicalEstimator(RangingEstimator):
    """A method that finds the roots of the eighth-degree polynomial and judges them.

    Parameters
    ----------
    origin : {"topocenter", "geocenter"}
        The observers where they stood, or the centre of the Earth. The latter reads the diurnal
        parallax of a night as orbital motion and then mostly finds a root near the observer.
    refine : bool
        False leaves the truncated series of the textbooks.
    **thresholds
        Fields of `neoranging.core.candidates.Thresholds`: when a solution counts as determined.

    Raises
    ------
    TypeError
        If there is no such option.
    TrackletError
        If a threshold is not a positive number.
    """

    min_observations: ClassVar[int] = 3

    def __init__(
        self, *, origin: str = "topocenter", refine: bool = True, **thresholds: Any
    ) -> None:
        super().__init__(origin=origin)
        _check_thresholds(self.name, thresholds)
        self.refine, self.thresholds = refine, Thresholds(**thresholds)

    @property
    def identity(self) -> dict[str, Any]:
        """Class, origin and all options, on which its answers depend."""
        return {**super().identity, "refine": self.refine, **asdict(self.thresholds)}

    @property
    def _calibration_name(self) -> str:
        return self.name

    @abstractmethod
    def _find(self, arcs: Arcs, exclusion: float, **limit: int) -> ClassicalRoots:
        """All roots; ``limit`` may hold ``max_iterations``."""

    def _estimate(self, arcs: Arcs, attributables: Attributables) -> Answers:
        limit = {} if self.refine else {"max_iterations": 0}
        classical = self._find(arcs, self.thresholds.exclusion, **limit)
        return solve(arcs, attributables, classical, self.thresholds)


def _check_thresholds(method: str, options: dict[str, Any]) -> None:
    names = [field.name for field in fields(Thresholds)]
    for name, value in options.items():
        if name not in names:
            raise TypeError(
                f"{method} has no option {name!r}: choose from origin, refine, {', '.join(names)}"
            )
        if not (isinstance(value, (int, float)) and value > 0):
            raise TrackletError(f"the option {name} must be a positive number, got {value!r}")
