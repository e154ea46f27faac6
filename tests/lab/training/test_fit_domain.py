"""Domains of networks that were trained before networks had one."""

import numpy as np
import pytest

from neoranging.exceptions import TrainingError
from neoranging.lab.training.data import load_arcs
from neoranging.lab.training.domain import fit_domain
from neoranging.lab.training.network import TrainableNetwork
from neoranging.nn import checkpoint
from neoranging.nn.domain import Domain
from neoranging.nn.network import NetworkConfig


@pytest.fixture
def old(arc_set, tmp_path):
    """File of a network without a domain, and the arcs that it learnt from."""
    arcs = load_arcs(arc_set, "train", root=True)
    network = TrainableNetwork(NetworkConfig(width=8, blocks=1, root=True))
    network.fit(arcs.inputs, arcs.rho, arcs.rho_dot)
    network.domain = Domain()
    path = tmp_path / "network.safetensors"
    checkpoint.save(network.exported(), path, {"model": "mlp", "train": arcs.facts})
    return path, arcs


def test_a_domain_is_added_and_the_answers_stay(old, arc_set):
    path, arcs = old
    before, _ = checkpoint.load(path)
    assert not before.domain.is_fitted
    fit_domain(path, arc_set)
    after, card = checkpoint.load(path)
    assert after.domain.is_fitted
    assert card["train"]["objects_sha256"] == arcs.facts["objects_sha256"]
    inputs = arcs.inputs.map(np.asarray)
    np.testing.assert_array_equal(after(inputs).rho, before(inputs).rho)


def test_a_set_that_the_network_did_not_learn_from_is_refused(old, arc_set):
    path, _ = old
    network, card = checkpoint.load(path)
    card["train"]["objects_sha256"] = "0" * 64
    checkpoint.save(network, path, card)
    with pytest.raises(TrainingError, match="learnt from another set"):
        fit_domain(path, arc_set)
    assert not checkpoint.load(path)[0].domain.is_fitted
