"""Derivative of a function along a direction, by the dual numbers of torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor
from torch.autograd import forward_ad


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
