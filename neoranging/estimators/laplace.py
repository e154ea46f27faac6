"""Laplace's method as an estimator."""

from __future__ import annotations

from typing import ClassVar

from neoranging.core.arcs import Arcs
from neoranging.core.candidates import ClassicalRoots
from neoranging.core.laplace import laplace
from neoranging.estimators.classical import ClassicalEstimator


class LaplaceEstimator(ClassicalEstimator):
    """Laplace's method on the parabola through all observations of each tracklet.

    All positive roots of the eighth-degree polynomial are kept as candidates, refined to orbits
    whose own parabola is the observed one, and judged by all observations. The method stands in
    ``neoranging.core.laplace``, the rule of choice in ``neoranging.core.candidates``, the options
    in `ClassicalEstimator`.
    """

    name: ClassVar[str] = "laplace"

    def _find(self, arcs: Arcs, exclusion: float, **limit: int) -> ClassicalRoots:
        return laplace(arcs, exclusion=exclusion, **limit)
