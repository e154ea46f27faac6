import numpy as np
import pytest
import torch
from torch import nn

from neoranging.nn.modules import (
    _ACTIVATIONS,
    FactorizedLinear,
    NetworkConfig,
    PaperTrunk,
    RangingNetwork,
    ResidualTrunk,
    _StackedActivation,
)
from neoranging.nn.physics import jerks

CONFIGS = {
    "paper": NetworkConfig.paper(),
    "log": NetworkConfig(width=48, blocks=2),
    "admissible": NetworkConfig(width=48, blocks=2, output="admissible"),
    "tanh": NetworkConfig(width=48, blocks=1, activation="tanh"),
}


@pytest.fixture(params=sorted(CONFIGS))
def network(request, night_inputs, night_truth):
    torch.manual_seed(1)
    made = RangingNetwork(CONFIGS[request.param])
    made.fit(night_inputs, *night_truth)
    return made


def test_random_weight_factorization_starts_as_published():
    torch.manual_seed(0)
    layer = FactorizedLinear(400, 300)
    assert layer.log_scale.mean().item() == pytest.approx(1.0, abs=0.03)
    assert layer.log_scale.std().item() == pytest.approx(0.1, rel=0.15)
    # the product is Glorot's, whatever the factors
    assert layer.weight.mean().item() == pytest.approx(0.0, abs=1e-3)
    assert layer.weight.std().item() == pytest.approx((2.0 / 700.0) ** 0.5, rel=0.02)
    assert not layer.bias.any()
    rows = layer.weight.std(dim=1)
    assert rows.std() < 0.05 * rows.mean()
    torch.testing.assert_close(
        layer.weight, torch.diag(torch.exp(layer.log_scale)) @ layer.direction
    )


def test_factorized_layer_is_a_linear_layer():
    layer, x = FactorizedLinear(5, 3), torch.randn(7, 5)
    nn.init.normal_(layer.bias)
    torch.testing.assert_close(layer(x), x @ layer.weight.T + layer.bias)
    torch.testing.assert_close(layer.product(x), x @ layer.weight.T)


@pytest.mark.parametrize("name", sorted(_ACTIVATIONS))
def test_slopes_are_derivatives(name):
    x = torch.linspace(-4, 4, 41, dtype=torch.float64, requires_grad=True)
    activation = _ACTIVATIONS[name]
    value = torch.empty_like(x)
    first, second = activation.slopes(x.detach(), value)
    torch.testing.assert_close(value, activation.value(x))
    (slope,) = torch.autograd.grad(activation.value(x).sum(), x, create_graph=True)
    torch.testing.assert_close(first, slope)
    torch.testing.assert_close(second, torch.autograd.grad(slope.sum(), x)[0])


@pytest.mark.parametrize("name", sorted(_ACTIVATIONS))
def test_gradient_of_the_stacked_activation(name):
    stacked = torch.randn(6, 4, dtype=torch.float64, requires_grad=True)
    bias = torch.randn(4, dtype=torch.float64, requires_grad=True)
    torch.autograd.gradcheck(
        lambda *x: _StackedActivation.apply(*x, _ACTIVATIONS[name]), (stacked, bias)
    )


@pytest.mark.parametrize("trunk", [PaperTrunk(11), ResidualTrunk(11, 64, 3), PaperTrunk(11, (9,))])
def test_stacked_pass_is_value_and_derivative(trunk):
    trunk = trunk.double()
    for parameter in trunk.parameters():
        if parameter.dim() == 1:
            nn.init.normal_(parameter, std=0.3)
    x, x_dot = torch.randn(2, 13, 11, dtype=torch.float64)
    value, rate = trunk.stacked(torch.cat([x, x_dot])).chunk(2)
    expected = torch.autograd.functional.jvp(trunk, x, x_dot)
    torch.testing.assert_close(value, expected[0])
    torch.testing.assert_close(rate, expected[1])
    assert value.shape == (13, trunk.n_out)


def test_the_trunk_of_the_paper():
    trunk = PaperTrunk(11)
    assert [layer.direction.shape for layer in trunk.layers] == [
        (512, 11),
        (256, 512),
        (128, 256),
        (64, 128),
        (32, 64),
    ]


def test_output_is_double_and_parameters_are_float(network, night_inputs):
    state = network(night_inputs)
    assert state.rho.dtype == state.rho_dot.dtype == torch.float64
    assert state.rho.shape == state.rho_dot.shape == (500,)
    assert all(p.dtype == torch.float32 for p in network.parameters())
    assert all(b.dtype == torch.float64 for b in network.buffers())


def test_features_made_beforehand_give_the_same(network, night_inputs):
    made = network.features(night_inputs)
    assert torch.equal(network(night_inputs, made).rho, network(night_inputs).rho)


def test_value_beside_the_derivative_is_the_value(network, night_inputs):
    state, *_ = network.with_tangent(night_inputs)
    for ours, alone in zip(state, network(night_inputs), strict=True):
        torch.testing.assert_close(ours, alone, rtol=1e-4, atol=1e-6)


def doubled(network):
    """Network with double parameters, whose differences are smooth."""
    return network.double()


def test_derivative_of_features_and_network_along_a_true_orbit(network, simulate, slide, to_inputs):
    simulated = simulate(150, 0.005, seed=21)
    inputs = to_inputs(simulated.arcs)
    truth = torch.from_numpy(simulated.rho), torch.from_numpy(simulated.rho_dot)
    network = doubled(network)
    network.features.fit(inputs)
    with torch.no_grad():
        _, rate, _ = network.with_tangent(inputs, inputs.tangent(*jerks(inputs, *truth)))
        h = 0.001
        late, early = (network(to_inputs(slide(simulated, s * h).arcs)) for s in (1, -1))
    near = ((inputs.ra - torch.pi).abs() < 3.0).all(dim=1)
    for found, after, before in zip(rate, late, early, strict=True):
        expected = ((after - before) / (2 * h))[near]
        error = (found[near] - expected).abs().quantile(0.9)
        assert error < 0.05 * expected.abs().median()


def test_derivative_by_differences_of_the_inputs(network, night_inputs):
    network, tangent = doubled(network), night_inputs.tangent()
    h = 1e-5
    with torch.no_grad():
        _, rate, _ = network.with_tangent(night_inputs)
        sides = [
            network(
                type(tangent)(*(a + s * h * b for a, b in zip(night_inputs, tangent, strict=True)))
            )
            for s in (1, -1)
        ]
    for found, late, early in zip(rate, *sides, strict=True):
        expected = (late - early) / (2 * h)
        error = (found - expected).abs() / (expected.abs() + 1e-3 * expected.abs().median())
        assert error.quantile(0.99) < 1e-3


def test_the_derivative_has_a_gradient(network, night_inputs):
    state, rate, _ = network.with_tangent(night_inputs.map(lambda x: x[:32]))
    (rate.rho.square().sum() + rate.rho_dot.square().sum() + state.rho.sum()).backward()
    for name, parameter in network.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
    assert network.trunk.parameters().__next__().grad.any()


def test_gradient_of_the_derivative_is_right(night_inputs, night_truth):
    """Against autograd alone, through the double backward of a plain pass."""
    network = RangingNetwork(NetworkConfig(width=16, blocks=1)).double()
    network.fit(night_inputs, *night_truth)
    inputs = night_inputs.map(lambda x: x[:10])
    tangent = inputs.tangent()
    _, rate, _ = network.with_tangent(inputs, tangent)
    weight = network.trunk.entry.direction
    (found,) = torch.autograd.grad(rate.rho.sum(), weight)
    live = inputs.map(lambda x: x.clone().requires_grad_())
    state = network(live)
    partial = torch.autograd.grad(state.rho.sum(), live, create_graph=True, allow_unused=True)
    along = sum((p * t).sum() for p, t in zip(partial, tangent, strict=True) if p is not None)
    (expected,) = torch.autograd.grad(along, weight)
    torch.testing.assert_close(found, expected, rtol=1e-8, atol=1e-10)


def test_two_observations_are_enough_for_the_invariant_form(simulate, to_inputs, night_inputs):
    pair = to_inputs(simulate(30, 0.04, seed=2, n_observations=2).arcs)
    for output in ("log", "admissible"):
        network = RangingNetwork(NetworkConfig(width=32, blocks=1, output=output))
        network.fit(night_inputs, torch.rand(500).double() + 0.1, torch.randn(500).double() * 0.01)
        state, rate, _ = network.with_tangent(pair)
        assert all(x.isfinite().all() for x in (*state, *rate))
        assert (state.rho > 0).all()


def test_frozen_network_is_the_same_until_it_is_trained_again(network, night_inputs):
    before = network(night_inputs)
    frozen = network.freeze()(night_inputs)
    assert all(torch.equal(a, b) for a, b in zip(before, frozen, strict=True))
    assert not network.training
    with torch.no_grad():
        network.trunk.parameters().__next__().add_(1.0)
    assert torch.equal(network(night_inputs).rho, before.rho)
    assert not torch.equal(network.train()(night_inputs).rho, before.rho)


def test_origins():
    assert RangingNetwork(NetworkConfig.paper()).origin == "geocenter"
    assert RangingNetwork(NetworkConfig(width=8, blocks=1)).origin == "topocenter"


def test_same_seed_same_network():
    made = []
    for _ in range(2):
        torch.manual_seed(7)
        made.append(RangingNetwork(NetworkConfig(width=8, blocks=1)).state_dict())
    assert all(np.array_equal(made[0][name], made[1][name]) for name in made[0])
