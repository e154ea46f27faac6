import operator

import pytest
import torch
from torch.nn import functional

from neoranging.nn.forward_mode import jvp

UNARY = {
    "exp": torch.exp,
    "log": torch.log,
    "sqrt": torch.sqrt,
    "sin": torch.sin,
    "cos": torch.cos,
    "tanh": torch.tanh,
    "asinh": torch.asinh,
    "negative": operator.neg,
    "square": lambda x: x.square() + x**2 + x**3,
    "clamp_min": lambda x: x.clamp_min(1.0),
    "remainder": lambda x: torch.remainder(3.0 * x, 0.7),
    "softplus": lambda x: functional.softplus(x - 1.0, beta=30.0),
    "scalars on the right": lambda x: (x + 2.0) * 3.0 / 7.0 - 1.0,
    "scalars on the left": lambda x: 1.0 - 2.0 / (1.0 + 3.0 * x),
    "columns": lambda x: torch.stack([x[..., 0], 2.0 * x[..., 1]], dim=-1).sum(dim=-1),
    "unbind": lambda x: torch.cat([x[..., :1], *x[..., None].unbind(1)[1:]], dim=-1),
    "diff": lambda x: torch.diff(x, dim=-1),
    "constant": lambda x: torch.ones_like(x) + x.detach() * x,
    "precision": lambda x: x.to(torch.float64) * torch.ones((), dtype=x.dtype, device=x.device),
}
BINARY = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "maximum": torch.maximum,
    "minimum": torch.minimum,
    "where": lambda a, b: torch.where(a < b, a * b, 1.0) + torch.where(b > a, 0.0, b),
    "masks": lambda a, b: torch.where((a >= b) | (a == b) | ((a <= b) & (a != b)), a, b),
    "cross": lambda a, b: torch.linalg.cross(a, b, dim=-1),
    "stack": lambda a, b: torch.stack([a, b], dim=-1),
    "broadcast": lambda a, b: a[..., None, :] + b[..., None],
}


def numbers(count):
    generator = torch.Generator().manual_seed(1)
    return [
        (0.1 + 2.0 * torch.rand(20, 3, generator=generator, dtype=torch.float64)).requires_grad_()
        for _ in range(count)
    ]


def check(function, primals, tangents):
    """Value, derivative and the gradient of the derivative, against torch's double backward."""
    found = jvp(function, primals, tangents)
    expected = torch.autograd.functional.jvp(function, primals, tangents, create_graph=True)
    torch.testing.assert_close(found, expected)
    live = [x for x in (*primals, *tangents) if x.requires_grad]
    weight = torch.rand_like(expected[1])
    gradients = (
        torch.autograd.grad((weight * (value + rate)).sum(), live, materialize_grads=True)
        for value, rate in (found, expected)
    )
    torch.testing.assert_close(*gradients)


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_number(name):
    primal, tangent = numbers(2)
    check(UNARY[name], (primal,), (tangent,))


@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_numbers(name):
    a, b, a_rate, b_rate = numbers(4)
    check(BINARY[name], (a, b), (a_rate, b_rate))
    constant = b.detach()
    check(lambda x: BINARY[name](x, constant), (a,), (a_rate,))
    check(lambda x: BINARY[name](constant, x), (a,), (a_rate,))


def test_what_does_not_change_has_no_derivative():
    primal, tangent = numbers(2)
    (value, same), (zero, rate) = jvp(lambda x: (x.detach(), x), (primal,), (tangent,))
    torch.testing.assert_close(value, same)
    assert not zero.any()
    assert rate is tangent


def test_what_has_no_rule_is_refused():
    primal, tangent = numbers(2)
    with pytest.raises(TypeError, match="atan"):
        jvp(torch.atan, (primal,), (tangent,))
    with pytest.raises(AttributeError, match="cumsum"):
        jvp(lambda x: x.cumsum(-1), (primal,), (tangent,))


def test_what_is_not_a_number_is_not_hidden():
    nan = torch.tensor([torch.nan, 1.0], dtype=torch.float64)
    for function in (
        lambda x: x.clamp_min(0.5),
        lambda x: torch.maximum(x, torch.zeros_like(x)),
        lambda x: torch.minimum(torch.ones(2, dtype=torch.float64), x),
    ):
        value, _ = jvp(function, (nan,), (torch.ones_like(nan),))
        assert value.isnan().tolist() == [True, False]
