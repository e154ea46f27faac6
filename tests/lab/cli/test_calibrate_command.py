"""``neoranging calibrate``: from a stored set to intervals of a method."""

import json

import numpy as np
import pytest
import torch
from click.testing import CliRunner

import neoranging as nr
from neoranging.calibration import Calibration
from neoranging.cli import main
from neoranging.estimators.conformal import ConformalEstimator
from neoranging.estimators.network_inputs import arc_inputs
from neoranging.estimators.pinn import PINNEstimator
from neoranging.lab.sets.splits import split_set
from neoranging.lab.simulation.twin import Twin, make_twin
from neoranging.lab.study.calibration import calibrate
from neoranging.lab.training.network import TrainableNetwork
from neoranging.nn import checkpoint
from neoranging.nn.network import NetworkConfig


@pytest.fixture(scope="module")
def twin(tmp_path_factory):
    """A small simulated set, divided."""
    folder = tmp_path_factory.mktemp("twin") / "set"
    make_twin(folder, Twin(objects=40), workers=1)
    split_set(folder, ratios=(0.3, 0.1, 0.6), seed=0, never_train=[f"S{k}" for k in range(8)])
    return folder


@pytest.fixture(scope="module")
def weights(simulate, tmp_path_factory):
    """A network that was never trained."""
    seen = simulate(300, 0.08, seed=41).with_noise(np.random.default_rng(42))
    torch.manual_seed(1)
    network = TrainableNetwork(NetworkConfig(width=16, blocks=1, output="admissible"))
    inputs = arc_inputs(seen.tracklets().arcs("topocenter"))
    network.fit(inputs, seen.rho, seen.rho_dot)
    path = tmp_path_factory.mktemp("weights") / "network.safetensors"
    checkpoint.save(network.exported(), path, {"model": "pinn", "metrics": {}})
    return path


def run(*arguments):
    return CliRunner().invoke(main, [str(each) for each in arguments])


def test_it_writes_the_calibration_and_says_whether_it_holds(twin, tmp_path):
    out = tmp_path / "new" / "gauss.json"
    done = run("calibrate", "--method", "gauss@geocenter", "--data", twin, "--out", out)
    assert done.exit_code == 0, done.output
    assert "<Calibration of gauss:" in done.output
    assert done.output.splitlines()[-1] == str(out)
    expected = calibrate("gauss", twin, origin="geocenter")
    assert Calibration.read(out).to_json() == expected.to_json()


def test_arcs_judge_their_own_intervals(twin, weights, tmp_path):
    out = tmp_path / "network.json"
    done = run("calibrate", "--method", weights, "--data", twin, "--out", out, "--score", "log")
    assert done.exit_code == 0, done.output
    if "too few to judge" not in done.output:
        assert "inside, per arc [%]" in done.output
        assert "95 %" in done.output
    assert Calibration.read(out).score == "log"


def test_the_construction_of_the_paper_stands_beside_what_is_published(twin, tmp_path):
    out = tmp_path / "paper.json"
    common = ("calibrate", "--method", "gauss", "--data", twin, "--out", out)
    done = run(*common, "--construction", "paper")
    assert done.exit_code == 0, done.output
    made = Calibration.read(out)
    assert (made.score, made.cells) == ("absolute", "motion deciles")
    assert made.quantities == ("range", "range_rate")
    slow = next(line for line in done.output.splitlines() if "68 %   slow" in line)
    assert slow.endswith("PINN 0.56, MLP 0.49")
    assert "a network 0.0061" in done.output
    assert "published" not in run(*common, "--overwrite").output


def test_estimates_take_the_file(twin, weights, tmp_path):
    out = tmp_path / "network.json"
    assert run("calibrate", "--method", weights, "--data", twin, "--out", out).exit_code == 0
    night = nr.sample("impactors")
    common = ("estimate", night, "--method", weights, "--format", "json", "--level", 0.5)
    done = run(*common, "--calibration", out)
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)["tracklets"]
    mine = ConformalEstimator(PINNEstimator.from_pretrained(weights), Calibration.read(out))
    low, high = nr.read_tracklets(night).estimate(mine).interval(0.5).T.value
    np.testing.assert_allclose([row["range_low_au"] for row in rows], low, rtol=1e-8)
    np.testing.assert_allclose([row["range_high_au"] for row in rows], high, rtol=1e-8)
    rates = nr.read_tracklets(night).estimate(mine).interval(0.5, of="range_rate").value
    ends = [[row[f"range_rate_{end}_au_d"] for end in ("low", "high")] for row in rows]
    np.testing.assert_allclose(ends, rates, rtol=1e-8)
    # a calibration is of one method
    refused = run("estimate", night, "--method", "gauss", "--calibration", out)
    assert refused.exit_code == 1
    assert "the calibration was made for" in refused.output


def test_the_observer_is_that_of_the_weights_unless_given(weights):
    night = nr.sample("impactors")
    for options, origin in (((), "topocenter"), (("--origin", "geocenter"), "geocenter")):
        done = run("estimate", night, "--method", weights, "--format", "json", *options)
        assert json.loads(done.stdout)["origin"] == origin


def test_a_file_that_is_there_is_kept(twin, tmp_path):
    out = tmp_path / "mine.json"
    out.write_text("mine")
    common = ("calibrate", "--method", "gauss", "--data", twin, "--out", out)
    refused = run(*common)
    assert refused.exit_code == 1
    assert "--overwrite replaces it" in refused.output
    assert out.read_text() == "mine"
    assert run(*common, "--overwrite").exit_code == 0
    assert Calibration.read(out).identity["method"] == "gauss"


@pytest.mark.parametrize(
    ("method", "code", "text"),
    [("kepler", 2, "no method 'kepler'"), ("none.safetensors", 1, "no weights at")],
)
def test_what_cannot_be_is_told_in_a_line(twin, tmp_path, method, code, text):
    out = tmp_path / "mine.json"
    done = run("calibrate", "--method", method, "--data", twin, "--out", out)
    assert done.exit_code == code
    assert text in done.output
    assert "Traceback" not in done.output
    assert not out.exists()
