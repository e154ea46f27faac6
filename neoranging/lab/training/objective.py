"""Loss of training, term by term, and metrics of the validation arcs."""

from __future__ import annotations

import torch
from torch import Tensor

from neoranging.lab.training.config import TrainingConfig
from neoranging.lab.training.data import TrainingArcs
from neoranging.lab.training.losses import (
    DATA_LOSSES,
    error_size_loss,
    physics_loss,
    transport_loss,
)
from neoranging.lab.training.network import TrainableNetwork
from neoranging.lab.training.physics import SightGeometry, jerks, residuals
from neoranging.lab.training.processes import Processes
from neoranging.lab.training.tangents import with_tangent
from neoranging.nn.network import RangingNetwork, RangingState
from neoranging.nn.region import energy_coefficients, is_admissible
from neoranging.nn.scaling import Scaling


class Objective:
    """Loss of a network on a batch of arcs.

    Parameters
    ----------
    config : TrainingConfig
    population : Scaling
        Scaling of range and range-rate to the space in which distributions are compared.
    processes : Processes, optional
        Processes that train together, each on its part of a batch; this one alone by default.
    """

    def __init__(
        self, config: TrainingConfig, population: Scaling, processes: Processes | None = None
    ) -> None:
        self.config, self.population = config, population
        self._processes = processes or Processes()
        self._data_loss = DATA_LOSSES[config.data_loss]

    def __call__(
        self, trained: TrainableNetwork, arcs: TrainingArcs
    ) -> tuple[dict[str, Tensor], RangingState]:
        """Terms of the loss, of which ``total`` is the weighted sum, and the estimates."""
        network = trained.view()
        if self.config.model == "posterior":
            return self._density(network, arcs, trained.training)
        if self.config.model == "mlp":
            state, log_error = network.estimate(arcs.inputs)
            return self._totalled(self._errors(network, state, log_error, arcs)), state
        # a triplet moves by its own parabola; third derivatives of the fit come from the truth
        third = () if network.origin == "geocenter" else jerks(arcs.inputs, arcs.rho, arcs.rho_dot)
        state, rate, log_error = with_tangent(network, arcs.inputs, arcs.inputs.tangent(*third))
        planets = {name: arcs.planets[name] for name in self.config.planets}
        geometry = SightGeometry.of(arcs.inputs, network.origin, planets)
        physics = physics_loss(residuals(geometry, state, rate))
        estimate, truth = (
            self.population(torch.stack(pair, dim=-1)) for pair in (state, (arcs.rho, arcs.rho_dot))
        )
        dec = torch.asin(geometry.direction[..., 2].clamp(-1.0, 1.0))
        compared = (estimate, truth, geometry.proper_motion_square, dec)
        if trained.training:  # distributions are those of the whole batch
            compared = tuple(self._processes.gathered(column) for column in compared)
        transport = transport_loss(*compared)
        terms = {
            **self._errors(network, state, log_error, arcs),
            "motion": physics.motion,
            "kinematic": physics.kinematic,
            "transport": sum(transport, start=torch.zeros_like(transport.order)),
        }
        return self._totalled(terms), state

    def _density(
        self, network: RangingNetwork, arcs: TrainingArcs, training: bool
    ) -> tuple[dict[str, Tensor], RangingState]:
        """Mean negative logarithm of the density at the truth, over (ln rho, rho_dot) [d/au]."""
        log_density = network.log_density(arcs.inputs, arcs.rho, arcs.rho_dot)
        if training:  # nobody looks at the estimates then
            return {"total": -log_density.mean()}, RangingState(arcs.rho, arcs.rho_dot)
        return {"total": -log_density.mean()}, network(arcs.inputs)

    def _totalled(self, terms: dict[str, Tensor]) -> dict[str, Tensor]:
        """Terms of the loss after their weighted sum; an MLP without second output has but that."""
        weights = {**self.config.weights._asdict(), "error_size": self.config.error_size_weight}
        total = sum(weights[name] * term for name, term in terms.items())
        plain = {} if set(terms) == {"residual"} else terms
        return {"total": torch.as_tensor(total), **plain}

    def _errors(
        self,
        network: RangingNetwork,
        state: RangingState,
        log_error: Tensor | None,
        arcs: TrainingArcs,
    ) -> dict[str, Tensor]:
        """Loss of the errors, and of the sizes that the network expects them to have."""
        space = network.output.normalise
        estimate, truth = space(*state), space(arcs.rho, arcs.rho_dot)
        terms = {"residual": self._data_loss(estimate, truth)}
        if log_error is not None:
            terms["error_size"] = error_size_loss(estimate - truth, log_error)
        return terms


def metrics(network: RangingNetwork, state: RangingState, arcs: TrainingArcs) -> dict[str, float]:
    """Errors of the estimates, their correlation with the truth, and the admissible share."""
    admissible = is_admissible(energy_coefficients(arcs.inputs, network.origin), *state)
    error = (state.rho - arcs.rho).abs()
    both = torch.stack([state.rho, arcs.rho])
    return {
        "medae_rho_au": float(error.median()),
        "median_relative_error": float((error / arcs.rho).median()),
        "correlation_rho": float(torch.corrcoef(both)[0, 1]) if len(arcs) > 1 else 0.0,
        "medae_rho_dot_au_d": float((state.rho_dot - arcs.rho_dot).abs().median()),
        "admissible": float(admissible.double().mean()),
    }
