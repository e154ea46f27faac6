"""Recipes: the paper's, their way through JSON, what is refused."""

import json
import math
from dataclasses import replace

import pytest

from neoranging.exceptions import TrainingError
from neoranging.lab.training.config import TrainingConfig
from neoranging.lab.training.losses import LossWeights
from neoranging.nn.network import NetworkConfig


def test_the_hyperparameters_of_the_paper():
    """Its table of hyperparameters and eq:total_loss."""
    config = TrainingConfig.paper("pinn")
    assert config.network.widths == (512, 256, 128, 64, 32)
    assert config.network.activation == "tanh"
    assert config.network.output == "minmax"
    assert (config.learning_rate, config.final_fraction) == (2e-4, 0.1)
    assert (config.epochs, config.batch_size, config.patience) == (400, 512, 100)
    assert (config.weight_decay, config.clip_norm) == (1e-4, 10.0)
    assert config.weights == LossWeights(1.0, 0.30, 0.21, 0.05)
    assert config.data_loss == "log_cosh"
    assert config.drawings == 0
    assert TrainingConfig.paper("mlp").data_loss == "mse"


def test_the_physics_of_the_invariant_recipe_weighs_a_thousandth():
    paper, own = (TrainingConfig.default("pinn", name).weights for name in ("paper", "invariant"))
    assert (own.residual, own.transport) == (paper.residual, paper.transport) == (1.0, 0.05)
    assert (own.motion, own.kinematic) == (3.0e-4, 2.0e-4)


@pytest.mark.parametrize("model", ["mlp", "pinn"])
@pytest.mark.parametrize("representation", ["paper", "invariant"])
def test_round_trip(model, representation, tmp_path):
    config = TrainingConfig.default(model, representation, epochs=7, seed=3)
    config.save(tmp_path / "config.json")
    assert TrainingConfig.load(tmp_path / "config.json") == config
    assert config.network.representation == representation
    written = json.loads((tmp_path / "config.json").read_text())
    assert written["weights"] == config.weights._asdict()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("model", "cnn"),
        ("data_loss", "huber"),
        ("epochs", 0),
        ("batch_size", 0),
        ("learning_rate", 0.0),
        ("learning_rate", math.inf),
        ("final_fraction", 1.5),
        ("averaging", 1.0),
        ("two_epoch_fraction", -0.1),
        ("seed", -1),
    ],
)
def test_what_is_out_of_range(name, value):
    with pytest.raises(TrainingError, match=rf"{name} must be .* got {value!r}"):
        TrainingConfig(**{name: value})


@pytest.mark.parametrize("weight", [math.nan, math.inf, -1.0])
def test_weights_out_of_range(weight):
    with pytest.raises(TrainingError, match="weights must be at least 0 and finite"):
        TrainingConfig(weights=LossWeights(motion=weight))


def test_a_representation_that_is_none():
    with pytest.raises(TrainingError, match="representation"):
        TrainingConfig.default("mlp", "raw")


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"model": "mlp"}'])
def test_files_that_are_no_recipe(content, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(content)
    with pytest.raises(TrainingError):
        TrainingConfig.load(path)
    with pytest.raises(TrainingError):
        TrainingConfig.load(tmp_path / "absent.json")


@pytest.mark.parametrize("shown", ["magnitude", "root"])
def test_the_paper_has_no_such_inputs(shown):
    network = replace(NetworkConfig.paper(), **{shown: True})
    with pytest.raises(TrainingError, match="eleven inputs"):
        TrainingConfig.paper(network=network)


def test_planets(tmp_path):
    """Named, for a PINN alone; files of before they could be are those of recipes without."""
    config = TrainingConfig.paper("pinn", planets=("jupiter", "saturn"))
    path = tmp_path / "config.json"
    config.save(path)
    assert TrainingConfig.load(path) == config
    older = TrainingConfig.paper("pinn")
    assert older.planets == ()
    plain = older.to_json()
    del plain["planets"]
    path.write_text(json.dumps(plain))
    assert TrainingConfig.load(path) == older
    with pytest.raises(TrainingError, match="train a 'pinn'"):
        TrainingConfig.paper("mlp", planets=("jupiter",))
    with pytest.raises(TrainingError, match="leave out fresh nights"):
        TrainingConfig.invariant("pinn", planets=("jupiter",), fresh_nights=True, drawings=0)


@pytest.mark.parametrize(
    "planets", [("earth",), ("jupiter", "jupiter"), "jupiter", ["jupiter"], ("pluto", "mars")]
)
def test_planets_that_are_none(planets):
    with pytest.raises(TrainingError, match="planets must be different ones of"):
        TrainingConfig.paper("pinn", planets=planets)
