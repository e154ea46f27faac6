"""The second output of networks: the size of their errors."""

import math

import numpy as np
import pytest
import torch

from neoranging.lab.training.losses import error_size_loss
from neoranging.lab.training.network import TrainableNetwork
from neoranging.lab.training.tangents import with_tangent
from neoranging.nn.network import NetworkConfig
from neoranging.nn.outputs import LogOutput, MinMaxOutput


@pytest.fixture
def network(night_inputs, night_truth):
    torch.manual_seed(0)
    network = TrainableNetwork(NetworkConfig(width=16, blocks=1, second_output=True))
    return network.fit(night_inputs, *night_truth).view()


def test_estimates_come_with_errors_or_without(network, night_inputs, night_truth):
    state, log_error = network.estimate(night_inputs)
    assert log_error.shape == (len(night_inputs.dt1), 2)
    torch.testing.assert_close(network(night_inputs), state)
    tangents = with_tangent(network, night_inputs)
    torch.testing.assert_close(tangents[0].rho, state.rho, rtol=1e-5, atol=1e-7)
    torch.testing.assert_close(tangents[2], log_error, rtol=1e-4, atol=1e-5)
    plain = TrainableNetwork(NetworkConfig(width=16, blocks=1))
    plain = plain.fit(night_inputs, *night_truth).view()
    assert plain.estimate(night_inputs)[1] is None


def test_the_loss_is_least_at_the_mean_absolute_error():
    error = torch.tensor([[0.1, -0.4], [-0.3, 0.2]], dtype=torch.float64, requires_grad=True)
    log_error = torch.full((2, 2), math.log(0.25), dtype=torch.float64, requires_grad=True)
    loss = error_size_loss(error, log_error)
    loss.backward()
    assert error.grad is None  # estimates feel nothing of it
    assert log_error.grad.sum().abs() < 1e-12
    for other in (0.2, 0.3):
        assert error_size_loss(error, torch.full((2, 2), math.log(other))) > loss


def test_deviations_are_those_of_the_law_in_physical_units():
    rho, log_error = torch.tensor([0.1, 2.0]), torch.log(torch.tensor([[0.5, 0.1], [1.0, 0.2]]))
    for output, of_range in ((LogOutput("topocenter"), rho), (MinMaxOutput("geocenter"), 1.0)):
        output.scaling.scale = np.array([0.3, 0.01])
        deviation = output.deviations(log_error, rho)
        root = math.sqrt(2.0)
        expected = root * 0.3 * torch.tensor([0.5, 1.0]) * of_range
        torch.testing.assert_close(deviation[:, 0], expected)
        torch.testing.assert_close(deviation[:, 1], root * 0.01 * torch.tensor([0.1, 0.2]))
