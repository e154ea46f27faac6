"""Jacobian-vector products by dual numbers.

What `torch.func.jvp` does, for maps of a few hundred short operations on a batch. The dual numbers
of torch spend a tenth of a millisecond wherever one meets a constant, whose derivative they make
up; here a constant has none. The result can be differentiated again, backward.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final

import torch
from torch import Tensor
from torch.nn import functional

Function = Callable[..., Any]


def jvp(
    function: Callable[..., Tensor | tuple[Tensor, ...]],
    primals: tuple[Any, ...],
    tangents: tuple[Any, ...],
) -> tuple[Any, Any]:
    """Value of a function and its derivative in a direction.

    Parameters
    ----------
    function : callable
        Of tensors and named tuples of tensors, to a tensor or a tuple of tensors. It is called with
        `Dual` in place of the tensors.
    primals, tangents : tuple
        Its arguments, and the direction in the same form.

    Returns
    -------
    value, derivative
        A tensor or a tuple of tensors, as the function returns.

    Raises
    ------
    TypeError, AttributeError
        If the function does to its arguments what `Dual` has no rule for.
    """
    result: Any = function(*map(_dual, primals, tangents))
    if isinstance(result, Tensor | Dual):
        return _value(result), _rate(result)
    return tuple(map(_value, result)), tuple(map(_rate, result))


def _dual(primal: Any, tangent: Any) -> Any:
    if isinstance(primal, Tensor):
        return Dual(primal, tangent)
    return type(primal)(*map(_dual, primal, tangent))


def _value(x: Any) -> Any:
    """What is not dual is its own value; lists by element."""
    if isinstance(x, list | tuple):
        return [_value(each) for each in x]
    return x.value if isinstance(x, Dual) else x


def _rate(x: Any) -> Any:
    """Derivative, zero for a plain tensor; lists by element."""
    if isinstance(x, list | tuple):
        return [_rate(each) for each in x]
    return x.rate if isinstance(x, Dual) else torch.zeros_like(x)


# ---------------------------------------------------------------------- rules


def _plain(function: Function) -> Function:
    """Rule of a function whose result is constant."""

    def rule(*args: Any, **options: Any) -> Any:
        return function(*map(_value, args), **options)

    return rule


def _linear(function: Function) -> Function:
    """Rule of a function that is linear in its first argument."""

    def rule(x: Any, *args: Any, **options: Any) -> Any:
        value, rate = (function(part, *args, **options) for part in (_value(x), _rate(x)))
        if isinstance(value, Tensor):
            return Dual(value, rate)
        return tuple(map(Dual, value, rate))

    return rule


def _curve(function: Function, slope: Function) -> Function:
    """Rule of a function of one number, from its slope by argument and value."""

    def rule(x: Dual, *args: Any, **options: Any) -> Dual:
        y = function(x.value, *args, **options)
        return Dual(y, slope(x.value, y, *args, **options) * x.rate)

    return rule


def _add(a: Any, b: Any) -> Dual:
    if not isinstance(b, Dual):
        return Dual(a.value + b, a.rate)
    if not isinstance(a, Dual):
        return Dual(a + b.value, b.rate)
    return Dual(a.value + b.value, a.rate + b.rate)


def _sub(a: Any, b: Any) -> Dual:
    if not isinstance(b, Dual):
        return Dual(a.value - b, a.rate)
    if not isinstance(a, Dual):
        return Dual(a - b.value, -b.rate)
    return Dual(a.value - b.value, a.rate - b.rate)


def _product(function: Function) -> Function:
    """Rule of a function linear in each of two arguments."""

    def rule(a: Any, b: Any, **options: Any) -> Dual:
        x, y = _value(a), _value(b)
        parts = [function(a.rate, y, **options)] if isinstance(a, Dual) else []
        parts += [function(x, b.rate, **options)] if isinstance(b, Dual) else []
        return Dual(function(x, y, **options), sum(parts[1:], start=parts[0]))

    return rule


def _div(a: Any, b: Any) -> Dual:
    if not isinstance(b, Dual):
        return Dual(a.value / b, a.rate / b)
    value = _value(a) / b.value
    change = value * b.rate
    return Dual(value, (a.rate - change if isinstance(a, Dual) else -change) / b.value)


def _where(condition: Tensor, a: Any, b: Any) -> Dual:
    slopes = (x.rate if isinstance(x, Dual) else 0.0 for x in (a, b))
    return Dual(torch.where(condition, _value(a), _value(b)), torch.where(condition, *slopes))


def _choice(function: Function, better: Function) -> Function:
    """Rule of a function that takes one of two numbers; of two equal ones, the first."""

    def rule(a: Any, b: Any) -> Dual:
        x, y = _value(a), _value(b)
        # by the function itself, which lets pass what is not a number
        return Dual(function(x, y), _where(better(x, y), a, b).rate)

    return rule


def _softplus_slope(x: Tensor, _: Tensor, beta: float = 1.0) -> Tensor:
    # torch takes the straight line past 20, and so does its derivative backward
    return torch.where(beta * x > 20.0, 1.0, torch.sigmoid(beta * x))


class Dual:
    """A tensor and its derivative by the one variable along which a function is followed.

    Its operators and methods, and functions of torch, obey the chain rule as far as they have a
    rule here. Comparisons and ``detach`` give plain tensors: constants.
    """

    __slots__ = ("rate", "value")

    def __init__(self, value: Tensor, rate: Tensor) -> None:
        self.value = value
        # it is smaller where a number was added to a larger constant
        self.rate = rate if rate.shape == value.shape else rate.expand_as(value)

    @classmethod
    def __torch_function__(
        cls,
        function: Function,
        types: Any,
        args: Any = (),
        options: Any = None,
    ) -> Any:
        """Answer a function of torch or an operator of a tensor."""
        rule = _RULES.get(function.__name__)
        return NotImplemented if rule is None else rule(*args, **(options or {}))

    @property
    def dtype(self) -> torch.dtype:
        """Type of the numbers."""
        return self.value.dtype

    @property
    def device(self) -> torch.device:
        """Where they are."""
        return self.value.device

    def __rsub__(self, other: Any) -> Dual:
        return _sub(other, self)

    def __rtruediv__(self, other: Any) -> Dual:
        return _div(other, self)

    __add__ = __radd__ = _add
    __sub__ = _sub
    __mul__ = __rmul__ = _product(operator.mul)
    __truediv__ = _div
    __pow__ = _curve(operator.pow, lambda x, _, n: n * x ** (n - 1))
    __neg__, __getitem__ = _linear(operator.neg), _linear(operator.getitem)
    __lt__, __gt__ = _plain(operator.lt), _plain(operator.gt)
    __le__, __ge__ = _plain(operator.le), _plain(operator.ge)
    __eq__, __ne__ = _plain(operator.eq), _plain(operator.ne)
    sum, unbind, to = _linear(Tensor.sum), _linear(Tensor.unbind), _linear(Tensor.to)
    clamp_min = _choice(torch.clamp_min, operator.ge)
    square = _curve(torch.square, lambda x, _: 2.0 * x)
    detach = _plain(Tensor.detach)


_RULES: Final[dict[str, Function]] = {
    "add": _add,
    "sub": _sub,
    "mul": Dual.__mul__,
    "div": _div,
    "where": _where,
    "maximum": _choice(torch.maximum, operator.ge),
    "minimum": _choice(torch.minimum, operator.le),
    "linalg_cross": _product(torch.linalg.cross),
    "stack": _linear(torch.stack),
    "cat": _linear(torch.cat),
    "diff": _linear(torch.diff),
    "remainder": _curve(torch.remainder, lambda *_: 1.0),
    "zeros_like": _plain(torch.zeros_like),
    "ones_like": _plain(torch.ones_like),
    "exp": _curve(torch.exp, lambda _, y: y),
    "log": _curve(torch.log, lambda x, _: 1.0 / x),
    "sqrt": _curve(torch.sqrt, lambda _, y: 0.5 / y),
    "sin": _curve(torch.sin, lambda x, _: torch.cos(x)),
    "cos": _curve(torch.cos, lambda x, _: -torch.sin(x)),
    "tanh": _curve(torch.tanh, lambda _, y: 1.0 - y * y),
    "asinh": _curve(torch.asinh, lambda x, _: torch.rsqrt(x * x + 1.0)),
    "softplus": _curve(functional.softplus, _softplus_slope),
}
"""Rules of functions of torch by name."""
