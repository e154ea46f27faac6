"""Training of a density."""

import numpy as np
import pytest

from neoranging.exceptions import TrainingError
from neoranging.lab.training import TrainingConfig
from neoranging.lab.training.data import load_arcs
from neoranging.lab.training.fit import fit_network
from neoranging.nn.network import NetworkConfig


def test_the_density_at_the_truth_grows(arc_set, tmp_path):
    network = NetworkConfig(width=16, blocks=1, root=True, output="mixture", components=3)
    config = TrainingConfig.invariant(
        "posterior",
        network=network,
        epochs=8,
        batch_size=32,
        fresh_nights=False,
        learning_rate=3e-3,
    )
    train, validation = (load_arcs(arc_set, part, root=True) for part in ("train", "val"))
    result = fit_network(config, train, validation, tmp_path / "run", device="cpu", threads=1)
    losses = [row["val_total"] for row in result.history]
    assert losses[-1] < losses[0] - 0.5
    columns = (
        validation.inputs.map(np.asarray),
        *map(np.asarray, (validation.rho, validation.rho_dot)),
    )
    own = result.network.log_density(*columns)
    assert -float(own.mean()) == pytest.approx(min(losses), rel=1e-3)


def test_a_posterior_needs_a_mixture():
    with pytest.raises(TrainingError, match="mixture"):
        TrainingConfig(model="posterior")
    with pytest.raises(TrainingError, match="mixture"):
        TrainingConfig(network=NetworkConfig(output="mixture"))
