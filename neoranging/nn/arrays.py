"""Array libraries: the namespace of an array, and small functions that the standard lacks."""

from __future__ import annotations

from typing import Any, TypeAlias

import array_api_compat.numpy
import numpy as np
from array_api_compat import array_namespace, device, is_torch_array

Array: TypeAlias = Any
"""An array of any library that follows the array API: of numpy, or a tensor of torch."""


def namespace_of(array: Array) -> Any:
    """Namespace of the functions for an array."""
    # most arrays are numpy's, and the question costs more than an operation on one arc
    if type(array) is np.ndarray:
        return array_api_compat.numpy
    return array_namespace(array)


def joined(*columns: Array) -> Array:
    """Columns of one shape side by side along a new last axis."""
    return namespace_of(columns[0]).concat([column[..., None] for column in columns], axis=-1)


def constant(array: Array) -> Array:
    """Array that is constant to all derivatives."""
    return array.detach() if is_torch_array(array) else array


def like(numbers: Array, values: Array) -> Array:
    """Numbers in the library and the precision of values, where these are."""
    if type(values) is np.ndarray:
        return np.asarray(numbers, dtype=values.dtype)
    return namespace_of(values).asarray(numbers, dtype=values.dtype, device=device(values))


def clipped(x: Array, low: float, high: float) -> Array:
    """Values moved into an interval."""
    xp = namespace_of(x)
    return xp.minimum(xp.maximum(x, low), high)


def smallest(x: Array) -> float:
    """Smallest normal number of the precision of an array."""
    return float(namespace_of(x).finfo(x.dtype).smallest_normal)


def sigmoid(x: Array) -> Array:
    """``1 / (1 + exp(-x))``."""
    return 1.0 / (1.0 + namespace_of(x).exp(-x))


def softplus(x: Array, sharpness: float = 1.0) -> Array:
    """``log(1 + exp(s x)) / s``: zero far below zero, x far above."""
    return namespace_of(x).logaddexp(sharpness * x, 0.0) / sharpness


def log_sum_exp(x: Array) -> Array:
    """Logarithm of the sum of exponentials along the last axis."""
    xp = namespace_of(x)
    most = xp.max(x, axis=-1, keepdims=True)
    return most[..., 0] + xp.log(xp.sum(xp.exp(x - most), axis=-1))
