"""Networks that learn: the arrays of a `RangingNetwork` as parameters of torch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Self

import torch
from torch import Tensor, nn

from neoranging.nn.arrays import Array
from neoranging.nn.inputs import ArcInputs
from neoranging.nn.network import NetworkConfig, RangingNetwork, RangingState, layer_sizes

_FACTORS = ("log_scale", "direction", "bias")


class TrainableNetwork(nn.Module):
    """A network whose weights are parameters, and whose scalings are buffers, of torch.

    It computes nothing itself: `view` is the network of its present tensors, and what that answers
    has gradients. Names of tensors are those of files of weights.

    Parameters
    ----------
    network : NetworkConfig or RangingNetwork
        An architecture, which gets initial weights, or a network to begin with.
    """

    def __init__(self, network: NetworkConfig | RangingNetwork) -> None:
        super().__init__()
        if isinstance(network, NetworkConfig):
            network = RangingNetwork(network, initial_weights(network))
        self.config = network.config
        for name, array in network.arrays.items():
            # the domain serves estimates alone, which numpy makes
            if not name.startswith("domain."):
                self._register(name, torch.as_tensor(array))
        # scalings that were never fitted are arrays of a network all the same
        self.domain = network.domain

    def _register(self, name: str, tensor: Tensor) -> None:
        *path, last = name.split(".")
        module: nn.Module = self
        for part in path:
            if part not in module._modules:
                module.add_module(part, nn.Module())
            module = module._modules[part]
        if last in _FACTORS:
            module.register_parameter(last, nn.Parameter(tensor.clone()))
        else:
            module.register_buffer(last, tensor.clone())

    def view(self) -> RangingNetwork:
        """Network of the present tensors; made anew after each step of an optimiser."""
        tensors = {**dict(self.named_parameters()), **dict(self.named_buffers())}
        domain = {f"domain.{name}": array for name, array in self.domain.arrays.items()}
        return RangingNetwork(self.config, {**tensors, **domain})

    def exported(self, tensors: Mapping[str, Tensor] | None = None) -> RangingNetwork:
        """Network of numpy's arrays: of the present tensors, or of others of the same names."""
        tensors = self.state_dict() if tensors is None else tensors
        arrays = {name: tensor.detach().cpu().numpy().copy() for name, tensor in tensors.items()}
        domain = {f"domain.{name}": array for name, array in self.domain.arrays.items()}
        return RangingNetwork(self.config, {**arrays, **domain})

    def fit(self, inputs: ArcInputs, rho: Array, rho_dot: Array) -> Self:
        """Fit scalings and domain on training arcs; see `RangingNetwork.fit`."""
        fitted = self.view()
        fitted.fit(inputs, rho, rho_dot)
        self.domain = fitted.domain
        arrays, own = fitted.arrays, dict(self.named_buffers())
        with torch.no_grad():
            for name, buffer in own.items():
                buffer.copy_(torch.as_tensor(arrays[name]))
        return self

    def forward(self, inputs: ArcInputs) -> RangingState:
        """Range and range-rate."""
        return self.view()(inputs)


def initial_weights(config: NetworkConfig) -> dict[str, Tensor]:
    """Weights to begin with, from torch's own generator.

    W has Glorot's normal distribution, and the logarithms of its scales have the mean 1 and the
    deviation 0.1 (Wang et al. 2022, arXiv:2210.01274). The second matrix of each residual block
    starts smaller: every block adds to the variance of the sum, and together they are to add about
    one.
    """
    weights: dict[str, Tensor] = {}
    for name, (n_in, n_out) in layer_sizes(config).items():
        weight = nn.init.xavier_normal_(torch.empty(n_out, n_in))
        log_scale = torch.normal(1.0, 0.1, (n_out,))
        direction = weight / torch.exp(log_scale)[:, None]
        if name.startswith("trunk.outer."):
            direction = direction * (1.0 / math.sqrt(max(config.blocks, 1)))
        factors = log_scale, direction, torch.zeros(n_out)
        weights |= {f"{name}.{factor}": x for factor, x in zip(_FACTORS, factors, strict=True)}
    return weights
