import numpy as np
import pytest
import torch

from neoranging.lab.training.network import TrainableNetwork, initial_weights
from neoranging.lab.training.physics import jerks
from neoranging.lab.training.tangents import SLOPES, STACKED, with_tangent
from neoranging.nn.network import NetworkConfig, RangingNetwork
from neoranging.nn.trunks import ACTIVATIONS, Layer, PaperTrunk, ResidualTrunk

CONFIGS = {
    "paper": NetworkConfig.paper(),
    "log": NetworkConfig(width=48, blocks=2),
    "admissible": NetworkConfig(width=48, blocks=2, output="admissible"),
    "tanh": NetworkConfig(width=48, blocks=1, activation="tanh"),
}


@pytest.fixture(params=sorted(CONFIGS))
def network(request, night_inputs, night_truth):
    torch.manual_seed(1)
    return TrainableNetwork(CONFIGS[request.param]).fit(night_inputs, *night_truth)


def test_random_weight_factorization_starts_as_published():
    torch.manual_seed(0)
    weights = initial_weights(NetworkConfig(width=400, blocks=1))
    scale, direction = (weights[f"trunk.inner.0.{name}"] for name in ("log_scale", "direction"))
    assert scale.mean().item() == pytest.approx(1.0, abs=0.03)
    assert scale.std().item() == pytest.approx(0.1, rel=0.15)
    # the product is Glorot's, whatever the factors
    weight = torch.diag(torch.exp(scale)) @ direction
    assert weight.mean().item() == pytest.approx(0.0, abs=1e-3)
    assert weight.std().item() == pytest.approx((2.0 / 800.0) ** 0.5, rel=0.02)
    assert not weights["trunk.inner.0.bias"].any()
    rows = weight.std(dim=1)
    assert rows.std() < 0.05 * rows.mean()
    torch.testing.assert_close(Layer.of(weights, "trunk.inner.0").weight, weight)


@pytest.mark.parametrize("name", sorted(ACTIVATIONS))
def test_slopes_are_derivatives(name):
    x = torch.linspace(-4, 4, 41, dtype=torch.float64, requires_grad=True)
    zero = torch.zeros(41, dtype=torch.float64)
    value = torch.empty_like(x)
    first, second = SLOPES[name](x.detach(), value)
    torch.testing.assert_close(value, ACTIVATIONS[name](x, zero))
    (slope,) = torch.autograd.grad(ACTIVATIONS[name](x, zero).sum(), x, create_graph=True)
    torch.testing.assert_close(first, slope)
    torch.testing.assert_close(second, torch.autograd.grad(slope.sum(), x)[0])


@pytest.mark.parametrize("name", sorted(ACTIVATIONS))
def test_gradient_of_the_stacked_activation(name):
    stacked = torch.randn(6, 4, dtype=torch.float64, requires_grad=True)
    bias = torch.randn(4, dtype=torch.float64, requires_grad=True)
    torch.autograd.gradcheck(STACKED[name], (stacked, bias))


@pytest.mark.parametrize("name", sorted(ACTIVATIONS))
def test_activations_in_single_precision(name):
    x = np.linspace(-40.0, 40.0, 20_001)
    expected = np.tanh(x) if name == "tanh" else x / (1.0 + np.exp(-x))
    bias = np.float32(0.25) * np.ones(1, dtype=np.float32)
    found = ACTIVATIONS[name]((x[:, None] - 0.25).astype(np.float32), bias)[:, 0]
    assert found.dtype == np.float32
    rounding = 4.0 * np.finfo(np.float32).eps
    np.testing.assert_allclose(found, expected, rtol=rounding, atol=rounding * np.abs(x).max())
    double = ACTIVATIONS[name](x[:, None], np.zeros(1))[:, 0]
    np.testing.assert_allclose(double, expected, rtol=1e-12, atol=1e-14)


def layer(n_in, n_out):
    return Layer(
        torch.randn(n_out, n_in, dtype=torch.float64) / n_in**0.5,
        0.3 * torch.randn(n_out, dtype=torch.float64),
    )


@pytest.mark.parametrize("name", sorted(ACTIVATIONS))
@pytest.mark.parametrize(
    "trunk",
    [
        PaperTrunk((layer(11, 20), layer(20, 9))),
        PaperTrunk((layer(11, 9),)),
        ResidualTrunk(layer(11, 16), (layer(16, 16),) * 2, (layer(16, 16), layer(16, 16))),
    ],
)
def test_stacked_pass_is_value_and_derivative(trunk, name):
    x, x_dot = torch.randn(2, 13, 11, dtype=torch.float64)
    value, rate = trunk(torch.cat([x, x_dot]), STACKED[name]).chunk(2)
    expected = torch.autograd.functional.jvp(lambda x: trunk(x, ACTIVATIONS[name]), x, x_dot)
    torch.testing.assert_close(value, expected[0])
    torch.testing.assert_close(rate, expected[1])


def test_the_residual_trunk_is_the_sum_of_its_blocks():
    f = torch.nn.functional.silu
    entry, *rest = layer(11, 16), *(layer(16, 16) for _ in range(4))
    x = torch.randn(13, 11, dtype=torch.float64)
    h = x @ entry.weight.T + entry.bias
    for inner, outer in (rest[:2], rest[2:]):
        h = h + f(f(h) @ inner.weight.T + inner.bias) @ outer.weight.T + outer.bias
    found = ResidualTrunk(entry, tuple(rest[::2]), tuple(rest[1::2]))(x, ACTIVATIONS["silu"])
    torch.testing.assert_close(found, f(h))


def test_the_trunk_of_the_paper():
    weights = initial_weights(NetworkConfig.paper())
    assert [tuple(layer.weight.shape) for layer in PaperTrunk.of(weights).layers] == [
        (512, 11),
        (256, 512),
        (128, 256),
        (64, 128),
        (32, 64),
    ]


def test_numpy_answers_as_torch_does(network, night_inputs):
    """To rounding in single precision, in pieces and whole."""
    exported = network.exported()
    assert all(isinstance(array, np.ndarray) for array in exported.arrays.values())
    for expected, found in zip(
        network(night_inputs), exported(night_inputs.map(np.asarray)), strict=True
    ):
        assert found.dtype == np.float64
        by_torch = expected.detach().numpy()
        np.testing.assert_allclose(found, by_torch, rtol=3e-5, atol=3e-6 * np.abs(by_torch).max())


def test_output_is_double_and_parameters_are_float(network, night_inputs):
    state = network(night_inputs)
    assert state.rho.dtype == state.rho_dot.dtype == torch.float64
    assert state.rho.shape == state.rho_dot.shape == (500,)
    assert all(p.dtype == torch.float32 for p in network.parameters())
    assert all(b.dtype == torch.float64 for b in network.buffers())


def test_features_made_beforehand_give_the_same(network, night_inputs):
    made = network.view().features.show(night_inputs)
    assert torch.equal(network.view()(night_inputs, made).rho, network(night_inputs).rho)


def test_value_beside_the_derivative_is_the_value(network, night_inputs):
    state, *_ = with_tangent(network.view(), night_inputs)
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
    network.fit(inputs, *truth)
    with torch.no_grad():
        _, rate, _ = with_tangent(network.view(), inputs, inputs.tangent(*jerks(inputs, *truth)))
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
        _, rate, _ = with_tangent(network.view(), night_inputs)
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
    state, rate, _ = with_tangent(network.view(), night_inputs.map(lambda x: x[:32]))
    (rate.rho.square().sum() + rate.rho_dot.square().sum() + state.rho.sum()).backward()
    for name, parameter in network.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
    assert next(network.parameters()).grad.any()


def test_gradient_of_the_derivative_is_right(night_inputs, night_truth):
    """Against autograd alone, through the double backward of a plain pass."""
    network = TrainableNetwork(NetworkConfig(width=16, blocks=1)).double()
    network.fit(night_inputs, *night_truth)
    inputs = night_inputs.map(lambda x: x[:10])
    tangent = inputs.tangent()
    _, rate, _ = with_tangent(network.view(), inputs, tangent)
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
        network = TrainableNetwork(NetworkConfig(width=32, blocks=1, output=output))
        network.fit(night_inputs, torch.rand(500).double() + 0.1, torch.randn(500).double() * 0.01)
        state, rate, _ = with_tangent(network.view(), pair)
        assert all(x.isfinite().all() for x in (*state, *rate))
        assert (state.rho > 0).all()


def test_names_and_order_of_the_tensors():
    names = [
        name for name, _ in TrainableNetwork(NetworkConfig(width=8, blocks=1)).named_parameters()
    ]
    layers = ("trunk.entry", "trunk.inner.0", "trunk.outer.0", "heads.0", "heads.1")
    factors = ("log_scale", "direction", "bias")
    # resumed runs know the moments of the optimiser by this order
    assert names == [f"{layer}.{factor}" for layer in layers for factor in factors]


@pytest.mark.parametrize("change", ["missing", "shape", "extra", "scaling"])
def test_arrays_that_do_not_fit(change, network):
    arrays = network.exported().arrays
    name = next(iter(network.exported().weights))
    if change == "missing":
        del arrays[name]
    elif change == "shape":
        arrays[name] = arrays[name][1:]
    elif change == "extra":
        arrays["trunk.more.bias"] = arrays[name]
    else:
        arrays["features.scaling.low"] = arrays["features.scaling.low"][1:]
    with pytest.raises((ValueError, KeyError)):
        RangingNetwork(network.config, arrays)


def test_origins():
    for config, origin in (
        (NetworkConfig.paper(), "geocenter"),
        (NetworkConfig(width=8, blocks=1), "topocenter"),
    ):
        assert TrainableNetwork(config).view().origin == origin


def test_same_seed_same_network():
    made = []
    for _ in range(2):
        torch.manual_seed(7)
        made.append(TrainableNetwork(NetworkConfig(width=8, blocks=1)).state_dict())
    assert all(np.array_equal(made[0][name], made[1][name]) for name in made[0])
