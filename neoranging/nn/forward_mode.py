"""Jacobian-vector products by forward-mode differentiation."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import torch


def jvp(function: Callable[..., Any], primals: tuple, tangents: tuple) -> tuple[Any, Any]:
    """Value of a function and its derivative in a direction, as `torch.func.jvp`.

    Parameters
    ----------
    function : callable
        Of tensors or trees of tensors.
    primals, tangents : tuple
        Its arguments, and the direction in the same shape.
    """
    _first_use()
    return torch.func.jvp(function, primals, tangents)


@functools.cache
def _first_use() -> None:
    """Let torch compile its own rules once, without its own warnings of deprecation."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        one = torch.ones(())
        torch.func.jvp(torch.sin, (one,), (one,))
