"""The network that also learnt the equation of motion, as an estimator."""

from __future__ import annotations

from typing import ClassVar

from neoranging.estimators.learned import LearnedEstimator


class PINNEstimator(LearnedEstimator):
    """A network trained, besides on errors, to obey the range equation along the arc.

    Its loss also holds the distribution of its answers to that of the truth; the terms stand in
    ``neoranging.nn.physics`` and ``neoranging.nn.losses``, options in `LearnedEstimator`.
    """

    name: ClassVar[str] = "pinn"
