"""``neoranging train``, and estimators that are fitted from a script."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from neoranging.cli import main
from neoranging.ephemeris import save_cache, states
from neoranging.estimators.mlp import MLPEstimator
from neoranging.estimators.pinn import PINNEstimator
from neoranging.exceptions import NotTrainedError
from neoranging.lab.sets import read_arcs
from neoranging.lab.sets.arcs import to_core
from neoranging.lab.training import TrainingConfig, train
from neoranging.nn.network import NetworkConfig


def run(*arguments):
    return CliRunner().invoke(main, ["train", *map(str, arguments)])


def test_the_command(arc_set, simulate, tmp_path):
    common = (
        "--model",
        "pinn",
        "--data",
        arc_set,
        "--out",
        tmp_path,
        "--device",
        "cpu",
    )
    options = ("--epochs", 2, "--batch-size", 64, "--width", 8, "--blocks", 1, "--seed", 5)
    done = run(*common, *options)
    assert done.exit_code == 0, done.output
    assert "2 epochs" in done.output
    assert "median_relative_error" in done.output
    config = TrainingConfig.load(tmp_path / "config.json")
    assert (config.model, config.seed, config.epochs) == ("pinn", 5, 2)
    assert (config.network.width, config.network.blocks) == (8, 1)
    card = json.loads((tmp_path / "network.json").read_text())
    assert card["command"].startswith("neoranging")
    estimator = PINNEstimator.from_pretrained(tmp_path / "network.safetensors")
    estimate = simulate(20, 0.08, seed=2).tracklets().estimate(estimator)
    assert np.isfinite(estimate.range).all()
    again = run(*common, *options)
    assert again.exit_code == 1
    assert "resume it, or overwrite it" in again.output
    assert run(*common, *options, "--resume").exit_code == 0


@pytest.fixture
def empty_series(monkeypatch):
    """Series of the ephemeris as in a new process, which refuse to compute a cell."""

    def refuse(*_):
        raise AssertionError("a cached cell was computed again")

    empty = states._series(refuse, degree=11, n_components=3, name="the Earth")
    monkeypatch.setattr(states, "_EARTH", empty)


@pytest.fixture
def cache(arc_set, tmp_path):
    """File of the states that the arcs of the set need."""
    to_core(read_arcs(arc_set))
    path = tmp_path / "ephemeris.pth"
    save_cache(path)
    return path


def test_states_come_from_the_ephemeris_cache(cache, arc_set, tmp_path, empty_series):
    shape = ("--epochs", 1, "--batch-size", 64, "--width", 8, "--blocks", 1, "--drawings", 0)
    options = ("--model", "mlp", "--data", arc_set, "--device", "cpu", *shape)
    done = run(*options, "--out", tmp_path / "read", "--ephemeris-cache", cache)
    assert done.exit_code == 0, done.output
    assert (tmp_path / "read" / "network.safetensors").exists()


def test_without_the_cache_states_are_computed(cache, arc_set, tmp_path, empty_series):
    done = run("--model", "mlp", "--data", arc_set, "--out", tmp_path / "run", "--device", "cpu")
    assert "a cached cell was computed again" in repr(done.exception)


@pytest.mark.parametrize(
    ("content", "code", "words"),
    [
        (None, 2, "does not exist"),
        (b"not a cache", 1, "is damaged or no ephemeris cache; delete"),
    ],
)
def test_an_ephemeris_cache_that_is_none(arc_set, tmp_path, content, code, words):
    path, out = tmp_path / "ephemeris.pth", tmp_path / "run"
    if content is not None:
        path.write_bytes(content)
    done = run("--model", "mlp", "--data", arc_set, "--out", out, "--ephemeris-cache", path)
    assert done.exit_code == code
    assert words in " ".join(done.output.split())
    assert not out.exists()


def test_the_density_of_fresh_nights(arc_set, tmp_path):
    options = ("--epochs", 1, "--batch-size", 64, "--width", 8, "--blocks", 1)
    done = run(
        "--model", "posterior", "--data", arc_set, "--out", tmp_path, "--device", "cpu", *options
    )
    assert done.exit_code == 0, done.output
    config = TrainingConfig.load(tmp_path / "config.json")
    assert (config.fresh_nights, config.drawings) == (True, 0)
    assert (config.network.output, config.network.root) == ("mixture", True)
    assert not config.network.magnitude
    card = json.loads((tmp_path / "network.json").read_text())
    assert card["model"] == "posterior"
    assert card["train"]["training_prior"]["drawn_share"] > 0.9
    refused = run("--model", "posterior", "--data", arc_set, "--out", tmp_path, "--drawings", 2)
    assert refused.exit_code == 1
    assert "drawings must be 0" in refused.output


def test_a_set_that_is_none(tmp_path):
    done = run("--model", "mlp", "--data", tmp_path, "--out", tmp_path / "run")
    assert done.exit_code == 1
    assert "manifest.json" in done.output
    assert not (tmp_path / "run").exists()


def test_fit_of_an_estimator(arc_set, simulate, tmp_path):
    recipe = TrainingConfig.invariant(
        epochs=1, batch_size=64, network=NetworkConfig(width=8, blocks=1)
    )
    estimator = train(MLPEstimator(), arc_set, tmp_path, recipe=recipe, device="cpu")
    assert estimator.card["epochs_done"] == 1
    tracklets = simulate(20, 0.08, seed=2).tracklets()
    again = MLPEstimator.from_pretrained(tmp_path / "network.safetensors")
    np.testing.assert_array_equal(
        tracklets.estimate(again).range, tracklets.estimate(estimator).range
    )
    with pytest.raises(NotTrainedError, match="the recipe is of 'mlp'"):
        train(PINNEstimator(), arc_set, tmp_path, recipe=recipe)


def test_planets_by_the_command(arc_set, tmp_path):
    common = ("--data", arc_set, "--epochs", 1, "--width", 8, "--blocks", 1, "--device", "cpu")
    planets = ("--planets", "jupiter", "--planets", "venus")
    done = run("--model", "pinn", *common, "--out", tmp_path / "pinn", *planets)
    assert done.exit_code == 0, done.output
    card = json.loads((tmp_path / "pinn" / "network.json").read_text())
    assert card["config"]["planets"] == ["jupiter", "venus"]
    done = run("--model", "mlp", *common, "--out", tmp_path / "mlp", *planets)
    assert done.exit_code == 1
    assert "train a 'pinn'" in done.output
    assert not (tmp_path / "mlp").exists()
    done = run("--model", "pinn", *common, "--out", tmp_path / "none", "--planets", "earth")
    assert done.exit_code == 2
