"""Gauss's method as an estimator."""

from __future__ import annotations

from typing import ClassVar

from neoranging.core.arcs import Arcs
from neoranging.core.candidates import ClassicalRoots
from neoranging.core.gauss import gauss
from neoranging.estimators.classical import ClassicalEstimator


class GaussEstimator(ClassicalEstimator):
    """Gauss's method on the first, middle and last observation of each tracklet.

    All positive roots of the eighth-degree polynomial are kept as candidates, refined with exact
    Lagrange coefficients and light time to orbits through the three observations, and judged by
    all observations. The method stands in ``neoranging.core.gauss``, the rule of choice in
    ``neoranging.core.candidates``, the options in `ClassicalEstimator`.
    """

    name: ClassVar[str] = "gauss"

    def _find(self, arcs: Arcs, exclusion: float, **limit: int) -> ClassicalRoots:
        return gauss(arcs, exclusion=exclusion, **limit)
