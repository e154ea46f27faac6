"""Estimator by a network trained on errors alone."""

from __future__ import annotations

from typing import ClassVar

from neoranging.estimators.learned import LearnedEstimator


class MLPEstimator(LearnedEstimator):
    """A network trained to make its errors of range and range-rate small.

    The baseline of the physics-informed one; options stand in `LearnedEstimator`.
    """

    name: ClassVar[str] = "mlp"
