import pytest
import torch
from torch.nn import functional

from neoranging.lab.training.tangents import jvp
from neoranging.nn.inputs import ArcInputs

# the operations of features and outputs, two arguments each
FUNCTIONS = {
    "curves": lambda a, b: torch.asinh(a) * torch.log(b) + torch.sqrt(a) / torch.tanh(b),
    "choices": lambda a, b: torch.maximum(a, b) + torch.where(a < b, a * b, 1.0).clamp_min(0.5),
    "cross": lambda a, b: torch.linalg.cross(a, torch.stack(b.unbind(-1), dim=-1), dim=-1),
    "angles": lambda a, b: torch.remainder(3.0 * torch.diff(a, dim=-1), 0.7) * b[..., :2],
    "softplus": lambda a, b: functional.softplus(a - b, beta=30.0),
    "constants": lambda a, b: a.detach() * b + torch.ones_like(a),
}


def numbers(count):
    generator = torch.Generator().manual_seed(1)
    return [
        (0.1 + 2.0 * torch.rand(20, 3, generator=generator, dtype=torch.float64)).requires_grad_()
        for _ in range(count)
    ]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_value_derivative_and_gradient_of_the_derivative(name):
    """Against the double backward of torch."""
    primals, tangents = numbers(4)[:2], numbers(4)[2:]
    primals, tangents = tuple(primals), tuple(tangents)
    found = jvp(FUNCTIONS[name], primals, tangents)
    expected = torch.autograd.functional.jvp(FUNCTIONS[name], primals, tangents, create_graph=True)
    torch.testing.assert_close(tuple(found), expected)
    weight = torch.rand_like(expected[1])
    gradients = (
        torch.autograd.grad(
            (weight * (value + rate)).sum(), (*primals, *tangents), materialize_grads=True
        )
        for value, rate in (found, expected)
    )
    torch.testing.assert_close(*gradients)


def test_columns_of_arcs_and_several_results(night_inputs):
    tangent = ArcInputs(*(torch.full_like(column, 2.0) for column in night_inputs))
    (span, earth), (span_rate, earth_rate) = jvp(
        lambda x: (torch.exp(x.log_span), 3.0 * x.earth), (night_inputs,), (tangent,)
    )
    torch.testing.assert_close(span_rate, 2.0 * span)
    torch.testing.assert_close(earth, 3.0 * night_inputs.earth)
    assert (earth_rate == 6.0).all()
