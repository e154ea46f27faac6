import copy
import dataclasses

import pytest
import torch

from neoranging.nn import checkpoint
from neoranging.nn.domain import Domain
from neoranging.nn.features import InvariantFeatures
from neoranging.nn.modules import NetworkConfig, RangingNetwork

ALL = torch.tensor([[True, True, True]])
PATTERNS = torch.tensor([[True, True, True], [True, True, False]])


def arcs(n, seed):
    """Arcs whose first two columns are nearly equal, and the third has a long tail."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn((n, 3), generator=generator, dtype=torch.float64)
    x[:, 1] = x[:, 0] + 0.1 * x[:, 1]
    x[:, 2] = 1e3 * torch.sinh(2.0 * x[:, 2])
    return x


@pytest.fixture(scope="module")
def domain():
    made = Domain()
    made.fit(arcs(20_000, 1), PATTERNS)
    return made


def test_a_combination_that_no_feature_shows(domain):
    common = torch.tensor([[1.0, 1.0, 0.0], [-1.0, -1.0, 0.0], [1.0, -1.0, 0.0]]).double()
    measured = ALL.expand(3, -1)
    assert domain.outside(common, measured, 0.001).tolist() == [False, False, True]
    conflicts = domain.conflicts(common, measured)
    assert set(conflicts[2].topk(2).indices.tolist()) == {0, 1}
    assert conflicts[2, 2] < 1.0


@pytest.mark.parametrize("level", [0.001, 0.01, 0.1])
@pytest.mark.parametrize("pattern", [0, 1])
def test_false_alarms_are_as_many_as_stated(domain, level, pattern):
    n = 40_000
    outside = domain.outside(arcs(n, 2), PATTERNS[pattern].expand(n, -1), level)
    # five standard deviations of the count here and of the rank among the arcs of training
    bound = 5.0 * (level * (n + n * n / 20_000)) ** 0.5
    assert abs(int(outside.sum()) - level * n) < bound


def test_a_lacking_column_may_hold_anything(domain):
    x = torch.tensor([[1.0, 1.0, torch.nan], [1.0, -1.0, 0.0]]).double()
    measured = PATTERNS[1].expand(2, -1)
    assert domain.outside(x, measured, 0.001).tolist() == [False, True]
    assert domain.outside(x, ALL.expand(2, -1), 0.001).tolist() == [True, True]
    assert not domain.conflicts(x, measured)[:, 2].any()


def test_without_a_level_or_arcs_nothing_is_outside(domain):
    far = torch.full((1, 3), 1e9, dtype=torch.float64)
    assert domain.outside(far, ALL, 1e-4).all()
    assert not domain.outside(far, ALL, 0.0).any()
    assert not Domain().outside(far, ALL, 0.001).any()


def test_same_arcs_same_domain(domain):
    again = Domain()
    again.fit(arcs(20_000, 1), PATTERNS)
    assert all(torch.equal(a, b) for a, b in zip(again.buffers(), domain.buffers(), strict=True))


@pytest.fixture(scope="module")
def network(night_inputs, night_truth):
    torch.manual_seed(1)
    made = RangingNetwork(NetworkConfig(width=8, blocks=1))
    made.fit(night_inputs, *night_truth)
    return made


def test_through_files(network, night_inputs, tmp_path):
    checkpoint.save(network, tmp_path / "a.safetensors", {})
    loaded, _ = checkpoint.load(tmp_path / "a.safetensors")
    columns = network.features.raw(night_inputs)
    measured = network.features.present(night_inputs) > 0.0
    expected = network.domain.log_density(columns, measured)
    assert torch.equal(loaded.domain.log_density(columns, measured), expected)
    assert not loaded.domain.outside(columns, measured, 0.001).any()


def test_files_without_one_load(network, night_inputs, tmp_path):
    old = copy.deepcopy(network)
    old.domain = Domain()
    checkpoint.save(old, tmp_path / "old.safetensors", {})
    loaded, _ = checkpoint.load(tmp_path / "old.safetensors")
    assert not loaded.domain.is_fitted
    assert torch.equal(loaded(night_inputs).rho, network.eval()(night_inputs).rho)


def test_it_stays_double(network):
    single = copy.deepcopy(network).float()
    assert all(x.dtype == torch.float64 for x in single.domain.buffers())


def test_arcs_without_curvature_or_magnitude(night_inputs, night_truth):
    n = len(night_inputs.dt1)
    generator = torch.Generator().manual_seed(3)
    inputs = night_inputs._replace(
        magnitude=20.0 + torch.randn(n, generator=generator, dtype=torch.float64),
        has_magnitude=torch.ones(n, dtype=torch.float64),
    )
    network = RangingNetwork(dataclasses.replace(NetworkConfig(width=8, blocks=1), magnitude=True))
    network.fit(inputs, *night_truth)
    assert len(network.domain.patterns) == 4
    zero = torch.zeros(n, dtype=torch.float64)
    for columns in (
        {"magnitude": zero, "has_magnitude": zero},
        {"curved": zero, "sky_acc": torch.zeros_like(inputs.sky_acc)},
        {"magnitude": zero, "has_magnitude": zero, "curved": zero},
    ):
        poor = inputs._replace(**columns)
        raw, present = network.features.raw(poor), network.features.present(poor) > 0.0
        assert not network.domain.outside(raw, present, 0.001).any()
    faint = inputs._replace(magnitude=zero + 40.0)
    raw, present = network.features.raw(faint), network.features.present(faint) > 0.0
    usual = network.domain.log_density(network.features.raw(inputs), present)
    assert (network.domain.log_density(raw, present) < usual).all()


def test_patterns_begin_with_all_columns():
    assert InvariantFeatures().patterns.sum(dim=1).tolist() == [20.0, 8.0]
    assert InvariantFeatures(magnitude=True).patterns.sum(dim=1).tolist() == [21, 20, 9, 8]
