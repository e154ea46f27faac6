"""Derivatives of a network along the motion of its input, with gradients.

They cost one pass of twice the height: values and tangents are stacked, ``[x; dx/dt]``, and go
through the same matrix products together; features and output are differentiated by the dual
numbers of torch.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.autograd.function import once_differentiable

from neoranging.nn.features import Features
from neoranging.nn.inputs import ArcInputs
from neoranging.nn.network import RangingNetwork, RangingState


def jvp(
    function: Callable[..., Tensor | tuple[Tensor, ...]],
    primals: tuple[Any, ...],
    tangents: tuple[Any, ...],
) -> tuple[Any, Any]:
    """Value of a function and its derivative in a direction; both have gradients.

    `torch.func.jvp` gives the same numbers and costs a twentieth of a training step more: it wraps
    every operation once again so that derivatives can be nested, and none are here.

    Parameters
    ----------
    function : callable
        Of tensors and named tuples of tensors, to a tensor or a tuple of tensors.
    primals, tangents : tuple
        Its arguments, and the direction in the same form.

    Returns
    -------
    value, derivative
        A tensor or a tuple of tensors, as the function returns.
    """
    with forward_ad.dual_level():
        result = function(*map(_dual, primals, tangents))
        if isinstance(result, Tensor):
            return tuple(forward_ad.unpack_dual(result))
        values, rates = zip(*map(forward_ad.unpack_dual, result), strict=True)
        return values, rates


def _dual(primal: Any, tangent: Any) -> Any:
    if isinstance(primal, Tensor):
        return forward_ad.make_dual(primal, tangent)
    return type(primal)(*map(_dual, primal, tangent))


def features_with_tangent(
    features: Features, inputs: ArcInputs, tangent: ArcInputs | None = None
) -> tuple[Tensor, Tensor]:
    """Scaled features and their derivative by time [1/d], each (B, F).

    ``inputs`` and ``tangent`` are those of `with_tangent`.
    """
    tangent = inputs.tangent() if tangent is None else tangent
    raw, rate = jvp(lambda x: features.columns(x)[0], (inputs,), (tangent,))
    scaled = features.finish(raw, features.present(inputs), inputs)
    return scaled, features.finish_rate(rate, inputs)


def heads_with_tangent(
    network: RangingNetwork, features: Tensor, rate: Tensor
) -> tuple[Tensor, Tensor]:
    """Values of all heads, as `RangingNetwork.raw` has them, and their derivatives by time."""
    stacked = torch.cat([features, rate]).to(network.heads.bias.dtype)
    hidden = network.trunk(stacked, STACKED[network.config.activation])
    value, value_rate = (hidden @ network.heads.weight.T).chunk(2)
    return (value + network.heads.bias).to(rate.dtype), value_rate.to(rate.dtype)


def with_tangent(
    network: RangingNetwork, inputs: ArcInputs, tangent: ArcInputs | None = None
) -> tuple[RangingState, RangingState, Tensor | None]:
    """Range and range-rate, the derivatives of both along the motion of the arc, and errors.

    Parameters
    ----------
    network : RangingNetwork
        Made of tensors.
    inputs : ArcInputs
    tangent : ArcInputs, optional
        Derivative of the inputs; `ArcInputs.tangent` where none is given.

    Returns
    -------
    state, rate : RangingState
    log_error : Tensor, shape (B, 2), or None
        As of `RangingNetwork.estimate`.
    """
    tangent = inputs.tangent() if tangent is None else tangent
    features = features_with_tangent(network.features, inputs, tangent)
    value, rate = heads_with_tangent(network, *features)
    heads = torch.stack([value[..., :2], rate[..., :2]])
    pair = network.output.turned(heads, network.features.columns(inputs)[1])
    state, state_rate = jvp(network.output, (pair[0], inputs), (pair[1], tangent))
    log_error = value[..., 2:] if network.config.second_output else None
    return RangingState(*state), RangingState(*state_rate), log_error


# ---------------------------------------------------------------------- values and tangents


def _tanh_slopes(x: Tensor, out: Tensor) -> tuple[Tensor, Tensor]:
    y = torch.tanh(x, out=out)
    first = torch.mul(y, y).neg_().add_(1.0)
    return first, torch.mul(y, first).mul_(-2.0)


def _silu_slopes(x: Tensor, out: Tensor) -> tuple[Tensor, Tensor]:
    s = torch.sigmoid(x)
    y = torch.mul(x, s, out=out)
    # with s' = s (1 - s): y' = s + y (1 - s), y'' = (1 - s) (y' + s - s y)
    complement = 1.0 - s
    second = torch.addcmul(s, s, y, value=-1.0)
    first = s.addcmul_(y, complement)
    return first, second.add_(first).mul_(complement)


SLOPES: Final[dict[str, Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]]] = {
    "tanh": _tanh_slopes,
    "silu": _silu_slopes,
}
"""First and second derivatives of the activations, which write the value into ``out``."""


class _Stacked(torch.autograd.Function):
    """``[z; z'] -> [f(z + b); f'(z + b) z']`` and its gradient in a handful of passes."""

    @staticmethod
    def forward(ctx: Any, stacked: Tensor, bias: Tensor, slopes: Any) -> Tensor:
        half = len(stacked) // 2
        out, rate = torch.empty_like(stacked), stacked[half:]
        first, second = slopes(stacked[:half] + bias, out[:half])
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


def _stacked(slopes: Any, product: Tensor, bias: Tensor) -> Tensor:
    return _Stacked.apply(product, bias, slopes)


STACKED: Final = {name: partial(_stacked, slopes) for name, slopes in SLOPES.items()}
"""Activations of stacked values and tangents, for the trunks of ``neoranging.nn``."""
