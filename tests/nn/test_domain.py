import dataclasses

import numpy as np
import pytest
import torch

from neoranging.lab.training.network import TrainableNetwork
from neoranging.nn import checkpoint
from neoranging.nn.domain import Domain
from neoranging.nn.features import InvariantFeatures
from neoranging.nn.network import NetworkConfig, RangingNetwork

ALL = np.array([[True, True, True]])
PATTERNS = np.array([[True, True, True], [True, True, False]])


def arcs(n, seed):
    """Arcs whose first two columns are nearly equal, and the third has a long tail."""
    x = np.random.default_rng(seed).standard_normal((n, 3))
    x[:, 1] = x[:, 0] + 0.1 * x[:, 1]
    x[:, 2] = 1e3 * np.sinh(2.0 * x[:, 2])
    return x


@pytest.fixture(scope="module")
def domain():
    made = Domain()
    made.fit(arcs(20_000, 1), PATTERNS)
    return made


def test_a_combination_that_no_feature_shows(domain):
    common = np.array([[1.0, 1.0, 0.0], [-1.0, -1.0, 0.0], [1.0, -1.0, 0.0]])
    measured = ALL.repeat(3, axis=0)
    assert domain.outside(common, measured, 0.001).tolist() == [False, False, True]
    conflicts = domain.conflicts(common, measured)
    assert set(np.argsort(conflicts[2])[1:].tolist()) == {0, 1}
    assert conflicts[2, 2] < 1.0


@pytest.mark.parametrize("level", [0.001, 0.01, 0.1])
@pytest.mark.parametrize("pattern", [0, 1])
def test_false_alarms_are_as_many_as_stated(domain, level, pattern):
    n = 40_000
    outside = domain.outside(arcs(n, 2), np.tile(PATTERNS[pattern], (n, 1)), level)
    # five standard deviations of the count here and of the rank among the arcs of training
    bound = 5.0 * (level * (n + n * n / 20_000)) ** 0.5
    assert abs(int(outside.sum()) - level * n) < bound


def test_a_lacking_column_may_hold_anything(domain):
    x = np.array([[1.0, 1.0, np.nan], [1.0, -1.0, 0.0]])
    measured = np.tile(PATTERNS[1], (2, 1))
    assert domain.outside(x, measured, 0.001).tolist() == [False, True]
    assert domain.outside(x, ALL.repeat(2, axis=0), 0.001).tolist() == [True, True]
    assert not domain.conflicts(x, measured)[:, 2].any()


def test_without_a_level_or_arcs_nothing_is_outside(domain):
    far = np.full((1, 3), 1e9)
    assert domain.outside(far, ALL, 1e-4).all()
    assert not domain.outside(far, ALL, 0.0).any()
    assert not Domain().outside(far, ALL, 0.001).any()


def test_same_arcs_same_domain(domain):
    again = Domain()
    again.fit(arcs(20_000, 1), PATTERNS)
    assert all(np.array_equal(again.arrays[name], x) for name, x in domain.arrays.items())


@pytest.fixture(scope="module")
def network(night_inputs, night_truth):
    torch.manual_seed(1)
    made = TrainableNetwork(NetworkConfig(width=8, blocks=1))
    return made.fit(night_inputs, *night_truth).exported()


def judged(network, inputs):
    """Columns and the flags of those that arcs have, as arrays of numpy."""
    features = network.features
    raw, present = features.columns(inputs)[0], features.present(inputs) > 0.0
    return np.asarray(raw), np.asarray(present)


def test_through_files(network, night_inputs, tmp_path):
    checkpoint.save(network, tmp_path / "a.safetensors", {})
    loaded, _ = checkpoint.load(tmp_path / "a.safetensors")
    expected = network.domain.log_density(*judged(network, night_inputs))
    assert np.array_equal(loaded.domain.log_density(*judged(network, night_inputs)), expected)
    assert not loaded.domain.outside(*judged(network, night_inputs), 0.001).any()


def test_files_without_one_load(network, tmp_path):
    arrays = {name: x for name, x in network.arrays.items() if not name.startswith("domain.")}
    checkpoint.save(RangingNetwork(network.config, arrays), tmp_path / "old.safetensors", {})
    loaded, _ = checkpoint.load(tmp_path / "old.safetensors")
    assert not loaded.domain.is_fitted
    assert set(loaded.arrays) == set(arrays)


def test_arcs_without_curvature_or_magnitude(night_inputs, night_truth):
    n = len(night_inputs.dt1)
    generator = torch.Generator().manual_seed(3)
    inputs = night_inputs._replace(
        magnitude=20.0 + torch.randn(n, generator=generator, dtype=torch.float64),
        has_magnitude=torch.ones(n, dtype=torch.float64),
    )
    network = TrainableNetwork(
        dataclasses.replace(NetworkConfig(width=8, blocks=1), magnitude=True)
    )
    network = network.fit(inputs, *night_truth).exported()
    assert len(network.domain.patterns) == 4
    zero = torch.zeros(n, dtype=torch.float64)
    for columns in (
        {"magnitude": zero, "has_magnitude": zero},
        {"curved": zero, "sky_acc": torch.zeros_like(inputs.sky_acc)},
        {"magnitude": zero, "has_magnitude": zero, "curved": zero},
    ):
        poor = inputs._replace(**columns)
        assert not network.domain.outside(*judged(network, poor), 0.001).any()
    faint = inputs._replace(magnitude=zero + 40.0)
    usual = network.domain.log_density(*judged(network, inputs))
    assert (network.domain.log_density(*judged(network, faint)) < usual).all()


def test_patterns_begin_with_all_columns():
    assert InvariantFeatures().patterns.sum(axis=1).tolist() == [20.0, 8.0]
    assert InvariantFeatures(magnitude=True).patterns.sum(axis=1).tolist() == [21, 20, 9, 8]
