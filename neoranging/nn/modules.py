"""Trunks, heads and the network that joins features, trunk, heads and output.

The derivative of a network along the motion of its input costs one pass of twice the height: values
and tangents are stacked, ``[x; dx/dt]``, and go through the same matrix products together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, Literal, NamedTuple, Self

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from neoranging.exceptions import DatasetError
from neoranging.nn.density import MixtureOutput
from neoranging.nn.domain import Domain
from neoranging.nn.features import FEATURES
from neoranging.nn.inputs import ArcInputs
from neoranging.nn.outputs import OUTPUTS, Output


class FactorizedLinear(nn.Module):
    """Linear layer with Random Weight Factorization, ``W = diag(exp s) V``.

    Initially W has Glorot's normal distribution and ``s ~ N(mean, deviation)``
    (Wang et al. 2022, arXiv:2210.01274).

    Parameters
    ----------
    n_in, n_out : int
        Widths of input and output.
    mean, deviation : float
        Mean and deviation of the initial log scales.
    """

    def __init__(self, n_in: int, n_out: int, mean: float = 1.0, deviation: float = 0.1) -> None:
        super().__init__()
        weight = nn.init.xavier_normal_(torch.empty(n_out, n_in))
        log_scale = torch.normal(mean, deviation, (n_out,))
        self.log_scale = nn.Parameter(log_scale)
        self.direction = nn.Parameter(weight / torch.exp(log_scale)[:, None])
        self.bias = nn.Parameter(torch.zeros(n_out))
        self._merged: Tensor | None = None

    @property
    def weight(self) -> Tensor:
        """W, shape (n_out, n_in)."""
        if self._merged is not None:
            return self._merged
        return torch.exp(self.log_scale)[:, None] * self.direction

    def freeze(self) -> None:
        """Keep the product of the factors until `train` is called: for estimates only."""
        self._merged = None
        self._merged = self.weight.detach()

    def train(self, mode: bool = True) -> Self:
        """Set the mode of training, which undoes `freeze`."""
        self._merged = None
        return super().train(mode)

    def forward(self, x: Tensor) -> Tensor:
        """``x W^T + b``."""
        return functional.linear(x, self.weight, self.bias)

    def product(self, stacked: Tensor) -> Tensor:
        """``x W^T`` of stacked values and tangents, without the bias that only the former have."""
        return functional.linear(stacked, self.weight)


class _Tanh:
    @staticmethod
    def value(x: Tensor) -> Tensor:
        return torch.tanh(x)

    @staticmethod
    def slopes(x: Tensor, out: Tensor) -> tuple[Tensor, Tensor]:
        y = torch.tanh(x, out=out)
        first = torch.mul(y, y).neg_().add_(1.0)
        return first, torch.mul(y, first).mul_(-2.0)


class _Silu:
    @staticmethod
    def value(x: Tensor) -> Tensor:
        return functional.silu(x)

    @staticmethod
    def slopes(x: Tensor, out: Tensor) -> tuple[Tensor, Tensor]:
        s = torch.sigmoid(x)
        y = torch.mul(x, s, out=out)
        # with s' = s (1 - s): y' = s + y (1 - s), y'' = (1 - s) (y' + s - s y)
        complement = 1.0 - s
        second = torch.addcmul(s, s, y, value=-1.0)
        first = s.addcmul_(y, complement)
        return first, second.add_(first).mul_(complement)


_ACTIVATIONS: dict[str, type[_Tanh] | type[_Silu]] = {"tanh": _Tanh, "silu": _Silu}

_ROWS: Final = 1024
"""Rows evaluated at once in estimates, so that the activations fit in the cache."""


class _StackedActivation(torch.autograd.Function):
    """``[z; z'] -> [f(z + b); f'(z + b) z']`` and its gradient in a handful of passes."""

    @staticmethod
    def forward(ctx: Any, stacked: Tensor, bias: Tensor, activation: Any) -> Tensor:
        half = len(stacked) // 2
        out, rate = torch.empty_like(stacked), stacked[half:]
        first, second = activation.slopes(stacked[:half] + bias, out[:half])
        torch.mul(first, rate, out=out[half:])
        # their product instead of both: a third less to keep of each layer
        ctx.save_for_backward(first, second.mul_(rate))
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None]:
        first, bend = ctx.saved_tensors
        half = len(first)
        out = torch.empty_like(gradient)
        torch.mul(gradient[half:], first, out=out[half:])
        upper = torch.mul(gradient[half:], bend, out=out[:half])
        upper.addcmul_(gradient[:half], first)
        return out, upper.sum(dim=0), None


class PaperTrunk(nn.Module):
    """Fully connected layers of falling width (paper: 512-256-128-64-32, tanh).

    Parameters
    ----------
    n_in : int
        Number of features.
    widths : sequence of int
    activation : {"tanh", "silu"}
    """

    def __init__(
        self,
        n_in: int,
        widths: Sequence[int] = (512, 256, 128, 64, 32),
        activation: str = "tanh",
    ) -> None:
        super().__init__()
        self.activation = _ACTIVATIONS[activation]
        sizes = [n_in, *widths]
        self.layers = nn.ModuleList(FactorizedLinear(a, b) for a, b in pairwise(sizes))
        self.n_out = sizes[-1]

    def forward(self, x: Tensor) -> Tensor:
        """(B, n_in) -> (B, n_out)."""
        for layer in self.layers:
            x = self.activation.value(layer(x))
        return x

    def stacked(self, x: Tensor) -> Tensor:
        """Values and tangents of ``[x; dx/dt]``: (2B, n_in) -> (2B, n_out)."""
        for layer in self.layers:
            x = _StackedActivation.apply(layer.product(x), layer.bias, self.activation)
        return x


class ResidualTrunk(nn.Module):
    """Blocks ``h + B f(A f(h))`` of one width, the second matrix of each starting small.

    Parameters
    ----------
    n_in : int
        Number of features.
    width, blocks : int
    activation : {"silu", "tanh"}
    """

    def __init__(
        self, n_in: int, width: int = 256, blocks: int = 3, activation: str = "silu"
    ) -> None:
        super().__init__()
        self.activation = _ACTIVATIONS[activation]
        self.entry = FactorizedLinear(n_in, width)
        self.inner = nn.ModuleList(FactorizedLinear(width, width) for _ in range(blocks))
        self.outer = nn.ModuleList(FactorizedLinear(width, width) for _ in range(blocks))
        # Every block adds to the variance of the sum; together they are to add about one.
        with torch.no_grad():
            for layer in self.outer:
                layer.direction.mul_(1.0 / math.sqrt(max(blocks, 1)))
        self.n_out = width

    def forward(self, x: Tensor) -> Tensor:
        """(B, n_in) -> (B, width)."""
        f = self.activation.value
        h = self.entry(x)
        for inner, outer in zip(self.inner, self.outer, strict=True):
            h = h + outer(f(inner(f(h))))
        return f(h)

    def stacked(self, x: Tensor) -> Tensor:
        """Values and tangents of ``[x; dx/dt]``: (2B, n_in) -> (2B, width)."""
        f, act = _StackedActivation.apply, self.activation
        # biases belong to the values alone: they run beside the sum and join in the activations
        h, bias = self.entry.product(x), self.entry.bias
        for inner, outer in zip(self.inner, self.outer, strict=True):
            bent = f(inner.product(f(h, bias, act)), inner.bias, act)
            h, bias = torch.addmm(h, bent, outer.weight.T), bias + outer.bias
        return f(h, bias, act)


@dataclass(frozen=True)
class NetworkConfig:
    """Architecture of a network; stored with its weights.

    Attributes
    ----------
    representation : {"paper", "invariant"}
    trunk : {"paper", "residual"}
    widths : tuple of int
        Widths of the layers of the paper's trunk.
    width, blocks : int
        Size of the residual trunk; each block has two square matrices. An estimate costs two
        operations per entry: half a million entries are 50,000 estimates a second on a core.
    activation : {"tanh", "silu"}
    output : {"minmax", "log", "admissible", "mixture"}
        All but the last answer with a range and a range-rate; that with a density of both.
    components : int
        Normal distributions of a mixture.
    magnitude, root : bool
        Show the apparent magnitude, and the range by Gauss's method, to a network of the invariant
        representation.
    second_output : bool
        Estimate the size of the errors as well.
    """

    representation: Literal["paper", "invariant"] = "invariant"
    trunk: Literal["paper", "residual"] = "residual"
    widths: tuple[int, ...] = (512, 256, 128, 64, 32)
    width: int = 256
    blocks: int = 3
    activation: Literal["tanh", "silu"] = "silu"
    output: Literal["minmax", "log", "admissible", "mixture"] = "admissible"
    components: int = 12
    magnitude: bool = False
    root: bool = False
    second_output: bool = False

    @classmethod
    def paper(cls) -> NetworkConfig:
        """The network of the paper."""
        return cls("paper", "paper", activation="tanh", output="minmax")


class RangingState(NamedTuple):
    """Range [au] and range-rate [au/d], or their derivatives by time, each (B,)."""

    rho: Tensor
    rho_dot: Tensor


class RangingNetwork(nn.Module):
    """Inputs of arcs to range and range-rate in physical units.

    Parameters are float32; inputs, scalings and what comes out are double.

    Parameters
    ----------
    config : NetworkConfig

    Attributes
    ----------
    features, trunk, heads, output : `torch.nn.Module`
        In order of use.
    error_heads : `torch.nn.ModuleList`
        Heads of the second output; empty without.
    domain : Domain
        Density of the training arcs; networks of older files have an empty one.
    """

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.config = config
        shown = {name: True for name in ("magnitude", "root") if getattr(config, name)}
        self.features = FEATURES[config.representation](**shown)
        size = self.features.size
        self.trunk: PaperTrunk | ResidualTrunk
        if config.trunk == "paper":
            self.trunk = PaperTrunk(size, config.widths, config.activation)
        else:
            self.trunk = ResidualTrunk(size, config.width, config.blocks, config.activation)
        self.output: Output
        if config.output == "mixture":
            self.output = MixtureOutput(self.features.origin, config.components)
            sizes = [self.output.n_heads]
        else:
            self.output = OUTPUTS[config.output](self.features.origin)
            sizes = [1] * self.output.n_heads
        self.heads = nn.ModuleList(FactorizedLinear(self.trunk.n_out, size) for size in sizes)
        n_errors = 2 if config.second_output else 0
        self.error_heads = nn.ModuleList(
            FactorizedLinear(self.trunk.n_out, 1) for _ in range(n_errors)
        )
        self.domain = Domain()

    @property
    def origin(self) -> Literal["geocenter", "topocenter"]:
        """Origin of the range."""
        return self.features.origin

    def fit(self, inputs: ArcInputs, rho: Tensor, rho_dot: Tensor) -> None:
        """Fit the scalings of features and output, and the domain, on the training arcs.

        Parameters
        ----------
        inputs : ArcInputs
            Inputs of N arcs.
        rho, rho_dot : Tensor, shape (N,)
            Their true range [au] and range-rate [au/d], from `origin`.
        """
        self.features.fit(inputs)
        self.output.fit(inputs, rho, rho_dot)
        self.fit_domain(inputs)

    def fit_domain(self, inputs: ArcInputs) -> None:
        """Fit the domain on the training arcs, without a change to the answers."""
        features = self.features
        whole = inputs.map(lambda x: x[(features.present(inputs) > 0.0).all(dim=1)])
        if not len(whole.dt1):
            raise DatasetError(
                f"none of {len(inputs.dt1)} arcs has all features that the network is shown: add "
                "such arcs, or show it fewer"
            )
        self.domain.fit(features.compared(features.raw(whole)), features.patterns > 0.0)

    def freeze(self) -> Self:
        """Make ready for estimates: evaluation mode, factors of weights multiplied out.

        Call it again after the parameters have changed or moved; `train` undoes it.
        """
        self.eval()
        for module in self.modules():
            if isinstance(module, FactorizedLinear):
                module.freeze()
        return self

    def forward(self, inputs: ArcInputs, features: Tensor | None = None) -> RangingState:
        """Range and range-rate; parameters are those of `estimate`."""
        return self.estimate(inputs, features)[0]

    def estimate(
        self, inputs: ArcInputs, features: Tensor | None = None
    ) -> tuple[RangingState, Tensor | None]:
        """Range and range-rate, and the logarithms of the mean absolute errors expected.

        Parameters
        ----------
        inputs : ArcInputs
        features : Tensor, shape (B, F), optional
            ``self.features(inputs)`` if computed already; features have no parameters.

        Returns
        -------
        state : RangingState
        log_error : Tensor, shape (B, 2), or None
            In the normalised space of the output; None without the second output.
        """
        features = self.features(inputs) if features is None else features
        raw, n = self.raw(features), self.output.n_heads
        heads = self.output.turned(raw[..., :n], self.features.arrow(inputs))
        state = RangingState(*self.output(heads, inputs))
        return state, raw[..., n:] if self.config.second_output else None

    def log_density(self, inputs: ArcInputs, rho: Tensor, rho_dot: Tensor) -> Tensor:
        """Logarithm of the density over (ln rho, rho_dot) [d/au] at a point of each arc, (B,).

        Of a network with the output "mixture".
        """
        assert isinstance(self.output, MixtureOutput)
        heads = self.output.turned(self.raw(self.features(inputs)), self.features.arrow(inputs))
        return self.output.log_density(heads, inputs, rho, rho_dot)

    def with_tangent(
        self,
        inputs: ArcInputs,
        tangent: ArcInputs | None = None,
    ) -> tuple[RangingState, RangingState, Tensor | None]:
        """Range and range-rate, the derivatives of both along the motion of the arc, and errors.

        Parameters
        ----------
        inputs : ArcInputs
        tangent : ArcInputs, optional
            Derivative of the inputs; `ArcInputs.tangent` where none is given.

        Returns
        -------
        state, rate : RangingState
        log_error : Tensor, shape (B, 2), or None
            As of `estimate`.
        """
        tangent = inputs.tangent() if tangent is None else tangent
        features = self.features.with_tangent(inputs, tangent)
        raw, raw_rate = self.raw_with_tangent(*features)
        heads = torch.stack([raw[..., :2], raw_rate[..., :2]])
        y, y_dot = self.output.turned(heads, self.features.arrow(inputs))
        state, rate = self.output.with_tangent(y, y_dot, inputs, tangent)
        log_error = raw[..., 2:] if self.config.second_output else None
        return RangingState(*state), RangingState(*rate), log_error

    def raw(self, features: Tensor) -> Tensor:
        """Values of the heads, and of the second output if there is one; precision as features."""
        plain = features.to(self._dtype)
        # gradients keep all layers anyhow; without them a few rows at a time stay in the cache
        parts = (plain,) if torch.is_grad_enabled() else plain.split(_ROWS)
        heads = (*self.heads, *self.error_heads)
        values = [torch.cat([h(x) for h in heads], -1) for x in map(self.trunk, parts)]
        return torch.cat(values).to(features.dtype)

    def raw_with_tangent(self, features: Tensor, rate: Tensor) -> tuple[Tensor, Tensor]:
        """Values of the heads as of `raw`, and their derivatives."""
        hidden = self.trunk.stacked(torch.cat([features, rate]).to(self._dtype))
        heads = (*self.heads, *self.error_heads)
        stacked = torch.cat([head.product(hidden) for head in heads], dim=-1)
        value, value_rate = stacked.chunk(2)
        bias = torch.cat([head.bias for head in heads])
        return (value + bias).to(features.dtype), value_rate.to(features.dtype)

    @property
    def _dtype(self) -> torch.dtype:
        return self.heads[0].bias.dtype
