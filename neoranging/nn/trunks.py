"""Layers and trunks: from features to what the heads read.

Biases run beside the products and join them in the activations, so one pass through a layer is a
matrix product and one activation. What an activation does is up to the caller: training puts values
and their derivatives along the motion, ``[x; dx/dt]``, through the same products.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count
from typing import Final, NamedTuple, Self

import numpy as np

from neoranging.core.compiled import compiled
from neoranging.nn.arrays import Array, namespace_of

Activation = Callable[[Array, Array], Array]
"""Function of products ``(B, n)`` without their bias, and of that, ``(n,)``, to ``(B, n)``."""


class Layer(NamedTuple):
    """Weights of a linear layer, ``x W^T + b``."""

    weight: Array
    """W, (n_out, n_in)."""
    bias: Array
    """b, (n_out,)."""

    @classmethod
    def of(cls, arrays: Mapping[str, Array], name: str) -> Self:
        """Layer of its factors, ``W = diag(exp log_scale) direction``.

        That is Random Weight Factorization (Wang et al. 2022, arXiv:2210.01274).
        """
        scale = arrays[f"{name}.log_scale"]
        weight = namespace_of(scale).exp(scale)[:, None] * arrays[f"{name}.direction"]
        return cls(weight, arrays[f"{name}.bias"])

    @classmethod
    def numbered(cls, arrays: Mapping[str, Array], name: str) -> tuple[Self, ...]:
        """Layers ``name.0``, ``name.1`` and so on, as many as there are."""
        rows = (f"{name}.{k}" for k in count())
        own = []
        for row in rows:
            if f"{row}.bias" not in arrays:
                break
            own.append(cls.of(arrays, row))
        return tuple(own)


class PaperTrunk(NamedTuple):
    """Fully connected layers of falling width (paper: 512-256-128-64-32, tanh)."""

    layers: tuple[Layer, ...]

    @classmethod
    def of(cls, arrays: Mapping[str, Array]) -> PaperTrunk:
        """Trunk of the arrays of a network."""
        return cls(Layer.numbered(arrays, "trunk.layers"))

    def __call__(self, x: Array, activation: Activation) -> Array:
        """(B, n_in) -> (B, n_out)."""
        for layer in self.layers:
            x = activation(x @ layer.weight.T, layer.bias)
        return x


class ResidualTrunk(NamedTuple):
    """Blocks ``h + B f(A f(h))`` of one width."""

    entry: Layer
    inner: tuple[Layer, ...]
    outer: tuple[Layer, ...]

    @classmethod
    def of(cls, arrays: Mapping[str, Array]) -> ResidualTrunk:
        """Trunk of the arrays of a network."""
        sides = (Layer.numbered(arrays, f"trunk.{side}") for side in ("inner", "outer"))
        return cls(Layer.of(arrays, "trunk.entry"), *sides)

    def __call__(self, x: Array, activation: Activation) -> Array:
        """(B, n_in) -> (B, width)."""
        h, bias = x @ self.entry.weight.T, self.entry.bias
        for inner, outer in zip(self.inner, self.outer, strict=True):
            bent = activation(activation(h, bias) @ inner.weight.T, inner.bias)
            h, bias = h + bent @ outer.weight.T, bias + outer.bias
        return activation(h, bias)


# ---------------------------------------------------------------------- activations


def tanh(product: Array, bias: Array) -> Array:
    """``tanh x`` of ``x = product + bias``."""
    if _is_single(product):
        return _tanh(product, bias, np.empty_like(product))
    return namespace_of(product).tanh(product + bias)


def silu(product: Array, bias: Array) -> Array:
    """``x / (1 + exp(-x))`` of ``x = product + bias``."""
    if _is_single(product):
        return _silu(product, bias, np.empty_like(product))
    half = 0.5 * (product + bias)
    return half + half * namespace_of(product).tanh(half)


ACTIVATIONS: Final[dict[str, Activation]] = {"tanh": tanh, "silu": silu}
"""Activations by name."""


def _is_single(product: Array) -> bool:
    return type(product) is np.ndarray and product.dtype == np.float32


_TOP: Final = np.float32(7.905311)
"""Argument at which the hyperbolic tangent is 1 in single precision."""

_P1, _P3, _P5, _P7, _P9, _P11, _P13 = (
    np.float32(x)
    for x in (
        4.89352455891786e-03,
        6.37261928875436e-04,
        1.48572235717979e-05,
        5.12229709037114e-08,
        -8.60467152213735e-11,
        2.00018790482477e-13,
        -2.76076847742355e-16,
    )
)
_Q0, _Q2, _Q4, _Q6 = (
    np.float32(x)
    for x in (
        4.89352518554385e-03,
        2.26843463243900e-03,
        1.18534705686654e-04,
        1.19825839466702e-06,
    )
)
"""Coefficients of the rational function by which Eigen and XLA evaluate the hyperbolic tangent in
single precision, right to a few units of the last digit: without a branch or a table, so that the
compiler makes vector instructions of it, five times as fast as one of the C library."""


@compiled
def _tanh_of(x):  # type: ignore[no-untyped-def]
    x = min(max(x, -_TOP), _TOP)
    s = x * x
    p = _P1 + s * (_P3 + s * (_P5 + s * (_P7 + s * (_P9 + s * (_P11 + s * _P13)))))
    return x * p / (_Q0 + s * (_Q2 + s * (_Q4 + s * _Q6)))


@compiled
def _tanh(product, bias, out):  # type: ignore[no-untyped-def]
    for i in range(product.shape[0]):
        for j in range(product.shape[1]):
            out[i, j] = _tanh_of(product[i, j] + bias[j])
    return out


@compiled
def _silu(product, bias, out):  # type: ignore[no-untyped-def]
    for i in range(product.shape[0]):
        for j in range(product.shape[1]):
            half = np.float32(0.5) * (product[i, j] + bias[j])
            out[i, j] = half + half * _tanh_of(half)
    return out
