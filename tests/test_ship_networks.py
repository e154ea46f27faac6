"""Of the seeds of a network the best is shipped, with its history and what the others reach."""

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import ship_networks
from ship_networks import Run, grouped, portable

from neoranging.estimators.mlp import MLPEstimator
from neoranging.lab.sets.splits import split_set
from neoranging.lab.sets.store import ArcWriter, read_arcs
from neoranging.lab.training import TrainingConfig, train
from neoranging.nn import checkpoint
from neoranging.nn.domain import Domain
from neoranging.nn.network import NetworkConfig

SEEDS = (3, 4, 5)


@pytest.fixture(scope="module")
def twin(simulate, tmp_path_factory):
    """Folder of a small set, divided."""
    pytest.importorskip("pyarrow")
    table = simulate(300, 0.08, seed=21).with_noise(np.random.default_rng(22)).labelled()
    folder = tmp_path_factory.mktemp("sets") / "small-twin"
    with ArcWriter(folder, settings={"kind": "twin"}) as writer:
        writer.write(table)
    split_set(folder, never_train=np.unique(table["designation"])[:20].tolist())
    return folder


@pytest.fixture(scope="module")
def runs(twin, tmp_path_factory):
    """Folders of three runs that differ in their seed."""
    place = tmp_path_factory.mktemp("runs")
    for seed in SEEDS:
        network = NetworkConfig(width=8, blocks=1)
        recipe = TrainingConfig(network=network, epochs=2, seed=seed, batch_size=64, drawings=0)
        command = f"neoranging train --model mlp --data {twin} --out {place / str(seed)}"
        train(
            MLPEstimator(),
            twin,
            place / str(seed),
            recipe=recipe,
            device="cpu",
            notes={"command": command},
        )
    return [place / str(seed) for seed in SEEDS]


def shipped(monkeypatch, tmp_path, *words):
    """Folder of weights that the tool filled."""
    monkeypatch.setattr(ship_networks, "DATA", tmp_path)
    (tmp_path / "weights").mkdir()
    monkeypatch.setattr("sys.argv", ["ship_networks.py", *map(str, words)])
    ship_networks.main()
    return tmp_path / "weights"


def test_the_seed_of_least_validation_loss_is_shipped(runs, twin, monkeypatch, tmp_path):
    cards = [Run.read(folder).card for folder in runs]
    losses = [card["metrics"]["validation"]["total"] for card in cards]
    best = int(np.argmin(losses))
    weights = shipped(monkeypatch, tmp_path, *runs, "--twin", twin, "--no-calibrate")
    network, card = checkpoint.load(weights / "mlp-invariant.safetensors")
    assert card["config"]["seed"] == SEEDS[best]
    assert network.domain.is_fitted
    assert set(card["seeds"]) == set(map(str, SEEDS))
    for seed, loss in zip(SEEDS, losses, strict=True):
        assert card["seeds"][str(seed)]["validation_loss"] == pytest.approx(loss, rel=1e-5)
    # the shipped one has the same figures in both places
    figures = card["metrics"]["twin, test"]["value, low, high"]
    own = card["seeds"][str(SEEDS[best])]["twin, test"]
    assert own == {name: value for name, (value, *_) in figures.items()}
    with (weights / "mlp-invariant.csv").open() as file:
        history = list(csv.DictReader(file))
    assert [row["epoch"] for row in history] == ["1", "2"]
    assert min(float(row["val_total"]) for row in history) == pytest.approx(min(losses), rel=1e-5)
    assert str(Path(twin).parent) not in json.dumps(card)


def test_a_network_without_a_domain_gets_one_and_its_run_stays(runs, twin, monkeypatch, tmp_path):
    folder = tmp_path / "old"
    folder.mkdir()
    for name in ("log.csv", "network.json"):
        (folder / name).write_bytes((runs[0] / name).read_bytes())
    network, card = checkpoint.load(runs[0] / "network.safetensors")
    network.domain = Domain()
    checkpoint.save(network, folder / "network.safetensors", card)
    before = (folder / "network.safetensors").read_bytes()
    weights = shipped(monkeypatch, tmp_path, folder, "--twin", twin, "--no-calibrate")
    assert checkpoint.load(weights / "mlp-invariant.safetensors")[0].domain.is_fitted
    assert (folder / "network.safetensors").read_bytes() == before


def test_of_a_density_the_validation_loss_alone_is_told(runs, twin, monkeypatch, tmp_path):
    network, card = checkpoint.load(runs[0] / "network.safetensors")
    (tmp_path / "density").mkdir()
    path = tmp_path / "density" / "network.safetensors"
    checkpoint.save(network, path, {**card, "model": "posterior"})
    shutil.copy(runs[0] / "log.csv", path.with_name("log.csv"))
    weights = shipped(monkeypatch, tmp_path, path.parent, "--twin", twin, "--no-calibrate")
    _, made = checkpoint.load(weights / "posterior-invariant.safetensors")
    loss = card["metrics"]["validation"]["total"]
    assert made["metrics"] == {"validation": {"negative_log_density": loss}}
    assert set(made["seeds"]["3"]) == {"best_epoch", "validation_loss"}
    assert (weights / "posterior-invariant.csv").exists()


def test_a_set_divided_in_another_way_is_refused(runs, twin, monkeypatch, tmp_path):
    other = shutil.copytree(twin, tmp_path / "other")
    split_set(other, seed=7, never_train=read_arcs(twin, ("designation",), "unseen")["designation"])
    with pytest.raises(SystemExit, match="divided in another way"):
        shipped(monkeypatch, tmp_path, runs[0], "--twin", other, "--no-calibrate")


def test_runs_of_one_group_differ_in_their_seed_alone(runs):
    one, two, _ = map(Run.read, runs)
    with pytest.raises(SystemExit, match="same seed"):
        grouped([one, one])
    odd = two._replace(card={**two.card, "config": {**two.card["config"], "width": 9}})
    with pytest.raises(SystemExit, match="more than their seed"):
        grouped([one, odd])


def test_a_run_that_has_not_ended_is_refused(runs, tmp_path):
    network, card = checkpoint.load(runs[0] / "network.safetensors")
    card["config"]["epochs"] = 9
    checkpoint.save(network, tmp_path / "network.safetensors", card)
    with pytest.raises(SystemExit, match="has done 2 of 9 epochs"):
        Run.read(tmp_path)


@pytest.mark.parametrize("data", ["--data /a/b/set", "--data=/a/b/set"])
def test_a_card_names_no_folders(data):
    part = {"set": "mine", "settings": {"kind": "twin"}}
    command = f"neoranging train --model mlp {data} --out /tmp/x/run --seed 1"
    card = portable({"train": part, "validation": part, "command": command})
    assert card["command"] == "neoranging train --model mlp --data twin --out run --seed 1"
    assert card["train"]["set"] == card["validation"]["set"] == "twin"
