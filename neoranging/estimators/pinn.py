"""Estimator by a network trained on errors and on the equation of motion."""

from __future__ import annotations

from typing import ClassVar

from neoranging.estimators.learned import LearnedEstimator


class PINNEstimator(LearnedEstimator):
    """A network trained, besides on errors, to obey the range equation along the arc.

    Its loss also holds the distribution of its answers to that of the truth; the terms stand in
    ``neoranging.lab.training.physics`` and ``neoranging.lab.training.losses``, options in
    `LearnedEstimator`.
    """

    name: ClassVar[str] = "pinn"
