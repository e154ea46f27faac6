"""Every term against a slow version in numpy that shares no code with it, and by hand."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from neoranging.lab.training import losses
from neoranging.lab.training.physics import Residuals

SIZES = [1, 7, 16, 33, 512]


def batch(n, seed=0):
    rng = np.random.default_rng(seed)
    estimate, truth = rng.uniform(-1, 1, (2, n, 2)) * [0.5, 1.0]
    return estimate, truth, 10.0 ** rng.uniform(-6, -2, n), rng.uniform(-1, 1, n)


def tensors(*arrays):
    return [torch.from_numpy(np.asarray(a, dtype=float)) for a in arrays]


def slow_quantile(values, q):
    ordered = sorted(values)
    place = q * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def slow_global(estimate, truth):
    distance = moments = tails = 0.0
    for c in range(2):
        e, t = list(estimate[:, c]), list(truth[:, c])
        distance += (
            sum(abs(slow_quantile(e, j / 50) - slow_quantile(t, j / 50)) for j in range(51)) / 51
        )
        mean = [sum(x) / len(x) for x in (e, t)]
        sigma = [
            math.sqrt(sum((v - m) ** 2 for v in x) / len(x))
            for x, m in zip((e, t), mean, strict=True)
        ]
        moments += 0.5 * (sigma[0] - sigma[1]) ** 2 + 0.5 * (mean[0] - mean[1]) ** 2
        tails += max(0.0, slow_quantile(e, 0.1) - slow_quantile(t, 0.1)) ** 2
        tails += max(0.0, slow_quantile(t, 0.9) - slow_quantile(e, 0.9)) ** 2
    return distance, moments, tails


def slow_conditioned(estimate, truth, eta2, dec):
    middle = slow_quantile(eta2, 0.5)
    total = weight = 0.0
    for fast in (True, False):
        for north in (True, False):
            rows = [
                i for i in range(len(dec)) if (eta2[i] >= middle) == fast and (dec[i] >= 0) == north
            ]
            if len(rows) < 8:
                continue
            pairs = zip(
                sorted(estimate[i] for i in rows), sorted(truth[i] for i in rows), strict=True
            )
            total += sum(abs(a - b) for a, b in pairs)
            weight += len(rows)
    bins = total / weight if weight else 0.0
    groups = [[estimate[i] for i in range(len(dec)) if (eta2[i] >= middle) == f] for f in (1, 0)]
    order = 0.0
    if min(map(len, groups)) >= 8:
        fast_mean, slow_mean = (sum(g) / len(g) for g in groups)
        order = max(0.0, fast_mean - slow_mean) ** 2
    return bins, order


@pytest.mark.parametrize("n", SIZES)
def test_global_transport_equals_the_slow_version(n):
    estimate, truth, *_ = batch(n, seed=n)
    found = losses.global_transport(*tensors(estimate, truth))
    assert [x.item() for x in found] == pytest.approx(slow_global(estimate, truth), abs=1e-14)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("north", [0.5, 0.95])
def test_conditioned_transport_equals_the_slow_version(n, north):
    estimate, truth, eta2, dec = batch(n, seed=n)
    dec = dec + 2.0 * (north - 0.5)
    found = losses.conditioned_transport(*tensors(estimate[:, 0], truth[:, 0], eta2, dec))
    expected = slow_conditioned(estimate[:, 0], truth[:, 0], eta2, dec)
    assert [x.item() for x in found] == pytest.approx(expected, abs=1e-14)


def test_transport_is_both_components():
    estimate, truth, eta2, dec = batch(64)
    found = losses.transport_loss(*tensors(estimate, truth, eta2, dec))
    expected = (
        *slow_global(estimate, truth),
        *slow_conditioned(estimate[:, 0], truth[:, 0], eta2, dec),
    )
    assert [x.item() for x in found] == pytest.approx(expected)


def test_hand_computed_global_transport():
    """A sample of two against one twice as wide and shifted: quantile functions are lines."""
    estimate = torch.tensor([[0.0, 0.0], [1.0, 0.0]], dtype=torch.float64)
    truth = torch.tensor([[1.0, 0.0], [3.0, 0.0]], dtype=torch.float64)
    distance, moments, tails = losses.global_transport(estimate, truth)
    # |q - (1 + 2 q)| = 1 + q has the mean 3/2; deviations 1/2 and 1, means 1/2 and 2
    assert distance.item() == pytest.approx(1.5)
    assert moments.item() == pytest.approx(0.5 * 0.5**2 + 0.5 * 1.5**2)
    # at 10 %: 0.1 lies below 1.2, outside the band; at 90 %: 0.9 lies inside of 2.8
    assert tails.item() == pytest.approx(1.9**2)


def test_tails_leave_a_wider_sample_alone_and_pull_a_narrower_one():
    truth = torch.linspace(-1, 1, 101, dtype=torch.float64)[:, None].expand(-1, 2)
    assert losses.global_transport(2.0 * truth, truth)[2].item() == 0.0
    # both percentiles of both channels fall short by 0.4
    assert losses.global_transport(0.5 * truth, truth)[2].item() == pytest.approx(4 * 0.4**2)


def test_hand_computed_bins_and_order():
    n = 16
    eta2 = torch.arange(n, dtype=torch.float64)
    dec = torch.ones(n, dtype=torch.float64)
    truth = torch.zeros(n, dtype=torch.float64)
    # the slow half at 0.25, the fast half at 0.75: farther than the slow
    estimate = torch.tensor([0.25] * 8 + [0.75] * 8, dtype=torch.float64)
    bins, order = losses.conditioned_transport(estimate, truth, eta2, dec)
    assert bins.item() == pytest.approx(0.5)
    assert order.item() == pytest.approx(0.25)
    _, order = losses.conditioned_transport(estimate.flip(0), truth, eta2, dec)
    assert order.item() == 0.0
    # one less in either half says nothing
    bins, order = losses.conditioned_transport(estimate[1:-1], truth[1:-1], eta2[1:-1], dec[1:-1])
    assert bins.item() == order.item() == 0.0


def test_equal_samples_in_another_order_have_no_distance():
    _, truth, eta2, dec = batch(512)
    same = losses.transport_loss(*tensors(truth, truth, eta2, dec))
    assert all(x.item() == pytest.approx(0.0, abs=1e-15) for x in same[:4])
    shuffled = np.random.default_rng(1).permutation(truth)
    found = losses.global_transport(*tensors(shuffled, truth))
    assert all(x.item() == pytest.approx(0.0, abs=1e-15) for x in found)


def test_gradients_of_the_transport():
    """Where it is smooth: samples in general position."""
    estimate, truth, eta2, dec = tensors(*batch(40, seed=9))
    estimate.requires_grad_()
    assert torch.autograd.gradcheck(
        lambda e: sum(losses.transport_loss(e, truth, eta2, dec)), (estimate,), atol=1e-6
    )


def test_truth_is_not_differentiated():
    estimate, truth, eta2, dec = tensors(*batch(40))
    truth.requires_grad_()
    total = sum(losses.transport_loss(estimate.requires_grad_(), truth, eta2, dec))
    total.backward()
    assert truth.grad is None


@given(st.floats(-1e300, 1e300))
def test_log_cosh(d):
    found = losses.log_cosh(torch.tensor(d, dtype=torch.float64)).item()
    size = abs(d)
    if size < 1e-3:
        expected = size**2 / 2 - size**4 / 12
        assert found == pytest.approx(expected, rel=1e-6, abs=1e-18)
    elif size > 30:
        assert found == pytest.approx(size - math.log(2.0))
    else:
        assert found == pytest.approx(math.log(math.cosh(d)), rel=1e-9)


def test_slope_of_log_cosh_is_the_hyperbolic_tangent():
    d = torch.tensor([-1e4, -2.0, -1e-5, 0.0, 1e-5, 0.7, 1e4], dtype=torch.float64)
    d.requires_grad_()
    losses.log_cosh(d).sum().backward()
    torch.testing.assert_close(d.grad, torch.tanh(d.detach()), atol=1e-15, rtol=1e-9)


def test_residual_loss_is_the_mean_of_both_channels():
    estimate, truth, *_ = batch(33)
    d = estimate - truth
    expected = 0.5 * sum(sum(math.log(math.cosh(x)) for x in d[:, c]) / 33 for c in range(2))
    assert losses.residual_loss(*tensors(estimate, truth)).item() == pytest.approx(expected)
    one, zero = tensors([[1.0, 0.0]], [[0.0, 0.0]])
    assert losses.residual_loss(one, zero).item() == pytest.approx(0.5 * 0.4337808304830271)


def test_data_losses():
    estimate, truth = tensors([[0.5, -2.0]], [[0.0, 0.0]])
    found = {name: loss(estimate, truth).item() for name, loss in losses.DATA_LOSSES.items()}
    assert found == pytest.approx(
        {
            "mse": (0.25 + 4.0) / 2,
            "l1": 1.25,
            "smooth_l1": (0.125 + 1.5) / 2,
            "log_cosh": (math.log(math.cosh(0.5)) + math.log(math.cosh(2.0))) / 2,
        }
    )


def test_physics_loss_is_the_mean_of_either_residual():
    rng = np.random.default_rng(2)
    left = rng.standard_normal((2, 50)) * 10
    found = losses.physics_loss(Residuals(*tensors(*left)))
    expected = [sum(math.log(math.cosh(x)) for x in row) / 50 for row in left]
    assert [x.item() for x in found] == pytest.approx(expected)


def test_weights_of_the_paper():
    assert losses.LossWeights() == (1.0, 0.30, 0.21, 0.05)
