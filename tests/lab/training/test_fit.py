"""The loop: it learns, it repeats itself, it goes on after a kill, it says when it is lost."""

import csv
import dataclasses
import json
import signal
import subprocess
import sys

import numpy as np
import pytest
import torch

from neoranging.estimators.mlp import MLPEstimator
from neoranging.exceptions import DatasetError, TrainingError
from neoranging.lab.training.config import TrainingConfig
from neoranging.lab.training.data import load_arcs
from neoranging.lab.training.fit import fit_network, train
from neoranging.lab.training.network import TrainableNetwork
from neoranging.lab.training.objective import Objective
from neoranging.lab.training.processes import pick_device
from neoranging.nn import checkpoint
from neoranging.nn.network import NetworkConfig
from neoranging.nn.scaling import Scaling

SMALL = NetworkConfig(width=16, blocks=1)
PAPER = dataclasses.replace(NetworkConfig.paper(), widths=(16, 8))


def recipe(model="mlp", representation="invariant", **changes):
    network = PAPER if representation == "paper" else SMALL
    options = {"epochs": 4, "batch_size": 64, "network": network, "drawings": 1, **changes}
    return TrainingConfig.default(model, representation, **options)


@pytest.fixture(scope="module")
def parts(arc_set):
    """Training and validation arcs by origin."""
    return {
        origin: (
            load_arcs(arc_set, "train", origin, drawings=1),
            load_arcs(arc_set, "val", origin),
        )
        for origin in ("topocenter", "geocenter")
    }


def assert_same_weights(one, other):
    for name, array in one.arrays.items():
        np.testing.assert_array_equal(array, other.arrays[name], name)


class StoppedError(Exception):
    pass


def stop_after(epoch):
    def on_epoch(row):
        if row["epoch"] == epoch:
            raise StoppedError

    return on_epoch


@pytest.mark.parametrize("model", ["mlp", "pinn"])
@pytest.mark.parametrize("representation", ["invariant", "paper"])
def test_a_run_and_what_it_leaves(model, representation, parts, tmp_path):
    config = recipe(model, representation)
    origin = "topocenter" if representation == "invariant" else "geocenter"
    arcs, validation = parts[origin]
    result = fit_network(
        config, arcs, validation, tmp_path / "run", device="cpu", notes={"why": "test"}
    )
    assert len(result.history) == 4
    assert TrainingConfig.load(tmp_path / "run" / "config.json") == config
    loaded, card = checkpoint.load(tmp_path / "run" / "network.safetensors")
    assert_same_weights(loaded, result.network)
    assert card == json.loads(json.dumps(result.card))
    assert card["model"] == model
    assert card["why"] == "test"
    assert card["train"]["n_arcs"] == len(arcs)
    assert card["best_epoch"] == 1 + int(np.argmin([row["val_total"] for row in result.history]))
    assert card["metrics"]["validation"]["total"] == min(r["val_total"] for r in result.history)
    assert set(card["domain"]) == set(loaded.features.scaling.names)
    with (tmp_path / "run" / "log.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [float(row["val_total"]) for row in rows] == [r["val_total"] for r in result.history]
    terms = {"residual", "motion", "kinematic", "transport"} if model == "pinn" else set()
    assert {f"train_{term}" for term in {"total", *terms}} <= set(rows[0])


def test_the_total_is_the_weighted_sum(parts, tmp_path):
    config = recipe("pinn", epochs=1)
    (row,) = fit_network(config, *parts["topocenter"], tmp_path, device="cpu").history
    for part in ("train", "val"):
        weighted = sum(w * row[f"{part}_{name}"] for name, w in config.weights._asdict().items())
        assert row[f"{part}_total"] == pytest.approx(weighted, rel=1e-5)


def test_it_learns(parts, tmp_path):
    config = recipe(epochs=40, learning_rate=3e-3, two_epoch_fraction=0.0)
    history = fit_network(config, *parts["topocenter"], tmp_path, device="cpu").history
    assert history[-1]["train_total"] < 0.6 * history[0]["train_total"]
    assert history[-1]["val_total"] < 0.8 * history[0]["val_total"]
    assert history[-1]["val_correlation_rho"] > 0.5


@pytest.mark.parametrize("model", ["mlp", "pinn"])
def test_the_same_seed_gives_the_same_weights(model, parts, tmp_path):
    arcs = parts["topocenter"]
    first, again, other = (
        fit_network(
            recipe(model, seed=seed, epochs=2), *arcs, tmp_path / str(k), device="cpu"
        ).network
        for k, seed in enumerate((1, 1, 2))
    )
    assert_same_weights(first, again)
    assert not np.array_equal(first.heads.weight, other.heads.weight)


def test_a_run_leaves_the_global_state_alone(parts, tmp_path):
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    fit_network(recipe(epochs=1), *parts["topocenter"], tmp_path, device="cpu", threads=1)
    assert torch.equal(torch.rand(3), expected)
    assert torch.get_num_threads() == 1


@pytest.mark.parametrize("model", ["mlp", "pinn"])
@pytest.mark.parametrize("representation", ["invariant", "paper"])
def test_it_goes_on_where_it_stopped(model, representation, parts, tmp_path):
    arcs = parts["topocenter" if representation == "invariant" else "geocenter"]
    config = recipe(model, representation)
    straight = fit_network(config, *arcs, tmp_path / "straight", device="cpu")
    folder = tmp_path / "stopped"
    for epoch in (1, 3):
        with pytest.raises(StoppedError):
            fit_network(
                config, *arcs, folder, resume=True, device="cpu", on_epoch=stop_after(epoch)
            )
    resumed = fit_network(config, *arcs, folder, resume=True, device="cpu")
    assert_same_weights(straight.network, resumed.network)
    for one, other in zip(straight.history, resumed.history, strict=True):
        assert {**one, "seconds": 0.0} == {**other, "seconds": 0.0}
    epochs = [line.split(",")[0] for line in (folder / "log.csv").read_text().splitlines()[1:]]
    assert epochs == ["1", "2", "3", "4"]


KILLED = """
import os, signal, sys
from pathlib import Path
import torch
from neoranging.lab.training.config import TrainingConfig
from neoranging.estimators.mlp import MLPEstimator
from neoranging.lab.training.fit import train

def die():
    os.kill(os.getpid(), signal.SIGKILL)

write, step = Path.write_bytes, torch.nn.utils.clip_grad_norm_
steps = states = 0

def half_a_state(path, content):
    global states
    states += "state" in path.name
    if states < 3:
        return write(path, content)
    write(path, bytes(content[:100]))
    die()

def a_step_of_the_third_epoch(*arguments):
    global steps
    steps += 1
    return step(*arguments) if steps < int(sys.argv[4]) else die()

if sys.argv[1] == "writing":
    Path.write_bytes = half_a_state
else:
    torch.nn.utils.clip_grad_norm_ = a_step_of_the_third_epoch
config = TrainingConfig.load(sys.argv[2])
train(MLPEstimator(), sys.argv[3], sys.argv[5], recipe=config, device="cpu", threads=1)
"""


@pytest.mark.parametrize("instant", ["learning", "writing"])
def test_it_survives_a_kill(instant, arc_set, tmp_path):
    """Killed by the system in the midst of an epoch, or of what it leaves; and given once more."""
    config, folder = recipe(batch_size=32), tmp_path / "killed"
    config.save(tmp_path / "recipe.json")
    options = {"recipe": config, "device": "cpu", "threads": 1}
    straight = train(MLPEstimator(), arc_set, tmp_path / "straight", **options)
    steps = len(load_arcs(arc_set, "train")) // config.batch_size
    arguments = (tmp_path / "recipe.json", arc_set, 2 * steps + steps // 2, folder)
    victim = subprocess.run(
        [sys.executable, "-c", KILLED, instant, *map(str, arguments)], check=False
    )
    assert victim.returncode == -signal.SIGKILL
    assert torch.load(folder / "state.pt", weights_only=True)["state"]["epoch"] == 2
    again = train(MLPEstimator(), arc_set, folder, resume=True, **options)
    assert_same_weights(straight.network, again.network)


def test_a_finished_run_is_not_run_again(parts, tmp_path):
    config = recipe(epochs=2)
    first = fit_network(config, *parts["topocenter"], tmp_path, device="cpu")
    again = fit_network(config, *parts["topocenter"], tmp_path, device="cpu", resume=True)
    assert again.history == first.history
    assert_same_weights(first.network, again.network)


def test_a_folder_that_holds_a_run(parts, tmp_path):
    train, validation = parts["topocenter"]
    config = recipe(epochs=1)
    fit_network(config, train, validation, tmp_path, device="cpu")
    with pytest.raises(TrainingError, match="holds a run already"):
        fit_network(config, train, validation, tmp_path, device="cpu")
    with pytest.raises(TrainingError, match="differs in epochs, seed"):
        fit_network(
            recipe(epochs=2, seed=9), train, validation, tmp_path, device="cpu", resume=True
        )
    with pytest.raises(TrainingError, match="differs in train"):
        fit_network(
            config, train.map(lambda x: x[1:]), validation, tmp_path, device="cpu", resume=True
        )
    fit_network(recipe(epochs=2), train, validation, tmp_path, device="cpu", overwrite=True)


@pytest.mark.parametrize("content", [b"", b"nonsense", b"PK\x03\x04" + bytes(200)])
def test_a_damaged_state(content, parts, tmp_path):
    (tmp_path / "state.pt").write_bytes(content)
    with pytest.raises(TrainingError, match=r"overwrite"):
        fit_network(recipe(epochs=1), *parts["topocenter"], tmp_path, device="cpu", resume=True)


def test_a_state_that_would_run_code_is_refused(parts, tmp_path):
    class Harm:
        def __reduce__(self):
            return (print, ("harm",))

    torch.save({"config": Harm()}, tmp_path / "state.pt")
    with pytest.raises(TrainingError, match="cannot go on"):
        fit_network(recipe(epochs=1), *parts["topocenter"], tmp_path, device="cpu", resume=True)


def test_it_stops_when_nothing_gets_better(parts, tmp_path):
    config = recipe(epochs=50, patience=3, learning_rate=1e-12, averaging=0.0, warmup_epochs=0.0)
    result = fit_network(config, *parts["topocenter"], tmp_path, device="cpu")
    assert result.card["epochs_done"] < 50
    assert result.card["epochs_done"] == result.card["best_epoch"] + 3


def test_values_that_are_not_finite(parts, tmp_path):
    train, validation = parts["topocenter"]
    rho = train.rho.clone()
    rho[::2] = -1.0  # of which there is no logarithm
    broken = dataclasses.replace(train, rho=rho)
    with pytest.raises(DatasetError, match="log_rho"):
        fit_network(recipe(), broken, validation, tmp_path / "labels", device="cpu")
    wild = recipe(learning_rate=1e12, warmup_epochs=0.0, clip_norm=1e9)
    with pytest.raises(TrainingError, match="lower the learning rate"):
        fit_network(wild, train, validation, tmp_path / "rate", device="cpu")
    # one step, whose loss is that of the network before it
    wild = dataclasses.replace(wild, learning_rate=1e30, epochs=1, batch_size=len(train))
    with pytest.raises(TrainingError, match="validation of epoch 1 is not finite"):
        fit_network(wild, train, validation, tmp_path / "last", device="cpu")


def test_drawings_of_arcs_and_recipe_are_the_same(parts, tmp_path):
    with pytest.raises(TrainingError, match=r"asks for 3 drawings .* have 1"):
        fit_network(recipe(drawings=3), *parts["topocenter"], tmp_path, device="cpu")


def test_planets_enter_the_loss_of_the_motion(arc_set, tmp_path):
    """By the size of Jupiter's pull at this weight, and the card says that they do."""
    config = recipe("pinn", "paper", epochs=1, drawings=0, planets=("jupiter",))
    arcs, validation = (
        load_arcs(arc_set, split, "geocenter", planets=config.planets) for split in ("train", "val")
    )
    pulled = fit_network(config, arcs, validation, tmp_path / "jupiter", device="cpu")
    plain = dataclasses.replace(config, planets=())
    alone = fit_network(plain, arcs, validation, tmp_path / "alone", device="cpu")
    assert pulled.card["config"]["planets"] == ["jupiter"]
    assert alone.card["config"]["planets"] == []
    motions = [result.history[0]["val_motion"] for result in (pulled, alone)]
    assert 0.0 < abs(motions[0] / motions[1] - 1.0) < 1e-2
    bare = dataclasses.replace(arcs, planets={})
    with pytest.raises(TrainingError, match=r"no positions of \(jupiter\)"):
        fit_network(config, bare, validation, tmp_path / "bare", device="cpu")
    # runs of before planets could be asked for go on without
    state = torch.load(tmp_path / "alone" / "state.pt", weights_only=True)
    del state["config"]["planets"]
    torch.save(state, tmp_path / "alone" / "state.pt")
    again = fit_network(plain, bare, validation, tmp_path / "alone", resume=True, device="cpu")
    assert_same_weights(again.network, alone.network)
    torch.save(state, tmp_path / "jupiter" / "state.pt")
    with pytest.raises(TrainingError, match="differs in planets"):
        fit_network(config, arcs, validation, tmp_path / "jupiter", resume=True, device="cpu")


def test_learning_rates(parts, tmp_path):
    config = recipe(epochs=10, warmup_epochs=2.0, learning_rate=1e-3, final_fraction=0.1)
    rates = [
        r["learning_rate"] for r in fit_network(config, *parts["topocenter"], tmp_path).history
    ]
    assert rates[1] == pytest.approx(1e-3)
    assert rates[0] == pytest.approx(5e-4)
    assert np.all(np.diff(rates[1:]) < 0)
    assert 1e-4 < rates[-1] < 1.2e-4


def test_a_learning_rate_that_does_not_fall(parts, tmp_path):
    config = recipe(epochs=3, warmup_epochs=0.0, learning_rate=1e-3, final_fraction=1.0)
    rates = [
        r["learning_rate"] for r in fit_network(config, *parts["topocenter"], tmp_path).history
    ]
    assert rates == pytest.approx([1e-3] * 3, rel=1e-12)


def test_the_best_epoch_is_that_of_the_validation_arcs(parts, tmp_path):
    """Its errors are those of the network that was kept, on them and on no others."""
    train, validation = parts["topocenter"]
    config = recipe(epochs=2, averaging=0.0)
    result = fit_network(config, train, validation, tmp_path, device="cpu")
    objective = Objective(config, Scaling(("rho", "rho_dot")))
    told = result.card["metrics"]["validation"]["total"]
    with torch.no_grad():
        of_validation, of_training = (
            float(
                objective(TrainableNetwork(result.network), arcs.map(lambda x: x.double()))[0][
                    "total"
                ]
            )
            for arcs in (validation, train)
        )
    assert told == pytest.approx(of_validation, rel=1e-5)
    assert abs(of_training - of_validation) > 1e-3 * of_validation


def test_the_optimizer_is_that_of_the_recipe(parts, tmp_path):
    """AdamW with amsgrad and decay; after one step its mean is a tenth of the gradient."""
    train, validation = parts["topocenter"]
    norms = {}
    for clip_norm in (1e-3, 1e9):
        config = recipe(
            epochs=1, batch_size=len(train), clip_norm=clip_norm, weight_decay=0.02, averaging=0.0
        )
        folder = tmp_path / str(clip_norm)
        fit_network(config, train, validation, folder, device="cpu")
        saved = torch.load(folder / "state.pt", weights_only=True)["optimizer"]
        (group,) = saved["param_groups"]
        assert group["amsgrad"] is True
        assert group["weight_decay"] == 0.02
        assert all("max_exp_avg_sq" in each for each in saved["state"].values())
        means = [each["exp_avg"].double().flatten() for each in saved["state"].values()]
        norms[clip_norm] = float(torch.cat(means).norm())
    assert norms[1e-3] == pytest.approx(1e-4, rel=1e-3)
    assert norms[1e9] > 1e-3


def test_devices():
    assert pick_device("cpu").type == "cpu"
    assert pick_device("auto").type in {"cuda", "mps", "cpu"}
    with pytest.raises(TrainingError, match="choose"):
        pick_device("abacus")
    if not torch.cuda.is_available():
        with pytest.raises(TrainingError, match="no device"):
            pick_device("cuda")


def test_straight_from_a_stored_set(arc_set, tmp_path):
    estimator = train(MLPEstimator(), arc_set, tmp_path, recipe=recipe(epochs=1), device="cpu")
    assert estimator.card["train"]["set"] == "small"
    assert estimator.card["validation"]["n_objects"] > 0
