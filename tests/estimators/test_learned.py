"""Learned estimators on networks that have learnt nothing: all but the numbers matters here."""

import dataclasses
import json

import numpy as np
import pytest
import torch
from astropy import units as u

import neoranging as nr
from neoranging.core.admissible import is_admissible
from neoranging.estimators.learned import default_weights
from neoranging.estimators.mlp import MLPEstimator
from neoranging.estimators.network_inputs import arc_inputs
from neoranging.estimators.pinn import PINNEstimator
from neoranging.exceptions import (
    CheckpointError,
    EstimationError,
    NotTrainedError,
    TrackletError,
)
from neoranging.lab.training.network import TrainableNetwork
from neoranging.nn import checkpoint
from neoranging.nn.domain import Domain
from neoranging.nn.network import NetworkConfig
from neoranging.tracklet import TrackletSet

Status = nr.RangeStatus
SMALL = {
    "invariant": NetworkConfig(width=16, blocks=1),
    "paper": dataclasses.replace(NetworkConfig.paper(), widths=(16, 8)),
    "admissible": NetworkConfig(width=16, blocks=1, output="admissible"),
    "root": NetworkConfig(width=16, blocks=1, root=True, second_output=True),
}
CARD = {"model": "mlp", "metrics": {"validation": {"total": 0.5}}}


@pytest.fixture(scope="module", autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def seen(simulate):
    """300 tracklets of two hours: the domain."""
    return simulate(300, 0.08, seed=41).with_noise(np.random.default_rng(42))


@pytest.fixture(scope="module")
def night(seen):
    return seen.tracklets()


@pytest.fixture(scope="module")
def weights(seen, night, tmp_path_factory):
    """Files of untrained networks with scalings of these tracklets."""
    folder = tmp_path_factory.mktemp("weights")
    files = {}
    for name, config in SMALL.items():
        torch.manual_seed(1)
        network = TrainableNetwork(config)
        inputs = arc_inputs(night.arcs(network.view().origin), root=config.root)
        network.fit(inputs, seen.rho, seen.rho_dot)
        files[name] = folder / f"{name}.safetensors"
        checkpoint.save(network.exported(), files[name], CARD)
    return files


@pytest.fixture(params=["invariant", "paper"])
def estimator(request, weights):
    return MLPEstimator.from_pretrained(weights[request.param])


class TestNumbers:
    def test_they_are_those_of_the_network(self, estimator, night):
        estimate = night.estimate(estimator)
        network, _ = checkpoint.load(estimator.weights)
        rho, rho_dot = network(arc_inputs(night.arcs(network.origin)))
        np.testing.assert_array_equal(estimate.range.to_value(u.au), rho)
        np.testing.assert_array_equal(estimate.range_rate.to_value(u.au / u.d), rho_dot)
        assert estimate.origin == network.origin
        assert np.isnan(estimate.range_error).all()

    def test_one_by_one_and_all_at_once(self, estimator, night, monkeypatch):
        whole = night.estimate(estimator)
        monkeypatch.setattr(MLPEstimator, "chunk_size", 7)
        pieces = night.estimate(estimator)
        alone = night[17].estimate(estimator)
        for other, same in ((pieces, whole), (alone, whole[17])):
            np.testing.assert_array_equal(other.status, same.status)
            for name in ("range", "range_rate"):
                np.testing.assert_allclose(
                    getattr(other, name).value, getattr(same, name).value, rtol=1e-4, atol=1e-6
                )

    def test_states_and_residuals_belong_to_them(self, estimator, night):
        few = night[:40]
        estimate = few.estimate(estimator)
        position, _, epoch = estimate.state
        path = position - estimate.attributable.observer_position
        np.testing.assert_allclose(
            np.linalg.norm(path.value, axis=1), np.abs(estimate.range.value), rtol=1e-12
        )
        assert estimate.residuals().shape == (few.counts.sum(), 2)
        ok = estimate.ok
        elapsed = (estimate.epoch - epoch).to_value(u.d)
        np.testing.assert_allclose(elapsed[ok], estimate.range.value[ok] / 173.1446, rtol=1e-3)

    def test_errors_of_a_second_output_stand_beside_the_answer(self, weights, night):
        estimator = MLPEstimator.from_pretrained(weights["root"])
        estimate = night.estimate(estimator)
        arcs = night.arcs()
        state, log_error = estimator.network.estimate(arc_inputs(arcs, root=True))
        expected = estimator.network.output.deviations(log_error, state.rho)
        np.testing.assert_allclose(estimate.range_error.to_value("au"), expected[:, 0], rtol=1e-6)
        np.testing.assert_allclose(
            estimate.range_rate_error.to_value("au / d"), expected[:, 1], rtol=1e-6
        )
        plain = night.estimate(MLPEstimator.from_pretrained(weights["invariant"]))
        assert np.isnan(plain.range_error).all()

    def test_two_epochs(self, weights, night):
        two = night[3][[0, -1]]
        estimate = two.estimate(MLPEstimator.from_pretrained(weights["invariant"]))
        assert np.isfinite(estimate.range)
        assert estimate.status in (
            *(Status.POPULATION, Status.UNDETERMINED),
            *(Status.INADMISSIBLE, Status.OUTSIDE_TRAINING_DOMAIN),
        )
        estimate = two.estimate(MLPEstimator.from_pretrained(weights["paper"]))
        assert estimate.status is Status.TOO_FEW_OBSERVATIONS
        assert np.isnan(estimate.range)


class TestVerdicts:
    def test_ok_is_admissible(self, estimator, night):
        estimate = night.estimate(estimator)
        assert estimate.admissible[estimate.ok].all()
        inadmissible = estimate.status == Status.INADMISSIBLE
        assert not estimate.admissible[inadmissible].any()
        low, high = estimate.interval().T
        assert (low <= estimate.range)[estimate.ok].all()
        assert (estimate.range <= high)[estimate.ok].all()

    def test_what_was_seen_is_inside(self, estimator, night):
        assert (night.estimate(estimator).status != Status.OUTSIDE_TRAINING_DOMAIN).all()
        assert not any("domain" in said for said in night.estimate(estimator).diagnostics)

    def test_what_was_not_seen_is_outside_and_the_feature_named(self, weights, simulate):
        long = simulate(30, 0.9, seed=43).tracklets()
        invariant = MLPEstimator.from_pretrained(weights["invariant"])
        estimate = long.estimate(invariant)
        assert (estimate.status == Status.OUTSIDE_TRAINING_DOMAIN).all()
        assert np.isfinite(estimate.range).all()
        assert all("log_span" in said for said in estimate.diagnostics)
        assert "log_span" in estimate[0].diagnostics
        assert isinstance(long[0].estimate(invariant).diagnostics, str)
        paper = MLPEstimator.from_pretrained(weights["paper"])
        assert "dt" in long[0].estimate(paper).diagnostics
        with pytest.raises(EstimationError, match=r"classical method.*\(outside.*log_span"):
            long.estimate(invariant, on_failure="raise")

    def test_slack(self, weights, simulate):
        a_little_longer = simulate(30, 0.09, seed=44).tracklets()
        strict, lenient = (
            MLPEstimator.from_pretrained(weights["invariant"], slack=slack) for slack in (0.0, 1e9)
        )
        told = [a_little_longer.estimate(each).diagnostics for each in (strict, lenient)]
        assert all("log_span" in said for said in told[0])
        # all arcs that were seen are of one length, which no slack extends
        assert (told[1] == "outside the training domain in log_span").all()

    def test_a_combination_that_was_not_seen_is_named(self, weights, night, monkeypatch):
        estimator = MLPEstimator.from_pretrained(weights["invariant"])
        columns = estimator.network.features.columns
        names = list(estimator.network.features.scaling.names)
        two = [names.index(f"log_error_{side}") for side in ("along", "across")]

        def crossed(inputs):
            # the errors of both sides go together; each alone stays where it was seen
            values, arrow = columns(inputs)
            low, high = np.quantile(values[:, two], (0.02, 0.98), axis=0)
            values[0, two] = low[0], high[1]
            return values, arrow

        monkeypatch.setattr(estimator.network.features, "columns", crossed)
        estimate = night.estimate(estimator)
        assert estimate.status[0] == Status.OUTSIDE_TRAINING_DOMAIN
        assert "in the combination of log_error_" in estimate.diagnostics[0]
        lenient = MLPEstimator.from_pretrained(weights["invariant"], level=0.0)
        assert night.estimate(lenient).status[0] != Status.OUTSIDE_TRAINING_DOMAIN

    def test_a_motionless_point(self, estimator, night):
        times = night[0].obstime
        still = nr.Tracklet(times, night[0].coord[np.zeros(len(times), int)], station="G96")
        assert not still.estimate(estimator).ok

    def test_admissible_by_construction(self, weights, night):
        estimate = night.estimate(MLPEstimator.from_pretrained(weights["admissible"]))
        a = estimate.attributable._arrays
        inside = is_admissible(
            a.energy_coefficients, estimate.range.value, estimate.range_rate.value
        )
        assert inside.all()
        assert Status.OUTSIDE_TRAINING_DOMAIN not in set(estimate.status)

    @pytest.mark.filterwarnings("ignore::neoranging.exceptions.NeoRangingWarning")
    def test_an_unknown_observer(self, weights, night):
        lost = nr.Tracklet(night[0].obstime, night[0].coord, station="ZZZ")
        mixed = TrackletSet.from_tracklets([lost, night[1]])
        estimate = mixed.estimate(MLPEstimator.from_pretrained(weights["invariant"]))
        assert estimate.status[0] is Status.UNKNOWN_OBSERVER
        assert estimate.status[1] is not Status.UNKNOWN_OBSERVER
        assert "'ZZZ'" in estimate.diagnostics[0]
        assert "'ZZZ'" not in estimate.diagnostics[1]
        paper = MLPEstimator.from_pretrained(weights["paper"])
        assert lost.estimate(paper).status is not Status.UNKNOWN_OBSERVER


class TestOptions:
    def test_origins(self, weights, night):
        assert MLPEstimator(weights=weights["invariant"]).origin == "topocenter"
        assert MLPEstimator(weights=weights["paper"], representation="paper").origin == "geocenter"
        centre = MLPEstimator(weights=weights["invariant"], origin="geocenter")
        assert night[:5].estimate(centre).origin == "geocenter"
        with pytest.raises(TrackletError, match="representation='invariant'"):
            MLPEstimator(representation="paper", origin="topocenter")
        with pytest.raises(TrackletError, match="origin"):
            MLPEstimator(origin="heliocenter")

    def test_a_representation_that_is_none(self):
        with pytest.raises(TrackletError, match="representation"):
            MLPEstimator(representation="raw")

    def test_weights_of_another_representation(self, weights):
        with pytest.raises(NotTrainedError, match="from_pretrained"):
            _ = MLPEstimator(weights=weights["paper"]).network

    def test_weights_of_another_model(self, weights):
        with pytest.raises(NotTrainedError, match="was trained as 'mlp'"):
            _ = PINNEstimator(weights=weights["invariant"]).network

        class Own(MLPEstimator):
            name = "own"

        assert Own(weights=weights["invariant"]).network is not None

    @pytest.mark.parametrize("card", [{}, {"model": "mlp", "representation": "paper"}])
    def test_a_card_of_something_else(self, card, weights, tmp_path):
        network, _ = checkpoint.load(weights["invariant"])
        checkpoint.save(network, tmp_path / "network.safetensors", card)
        with pytest.raises(CheckpointError, match="not the model card of network"):
            MLPEstimator.from_pretrained(tmp_path / "network.safetensors")

    def test_a_folder(self, tmp_path):
        with pytest.raises(NotTrainedError, match="is a folder"):
            MLPEstimator.from_pretrained(tmp_path)

    @pytest.mark.parametrize("level", ["a", -1.0, np.nan, 1e-5, 0.2])
    def test_a_level_that_is_none(self, level):
        with pytest.raises(TrackletError, match="level must be"):
            MLPEstimator(level=level)

    @pytest.mark.parametrize("slack", ["a", -1.0, np.nan, np.inf])
    def test_a_slack_that_is_none(self, slack):
        with pytest.raises(TrackletError, match="slack must be"):
            MLPEstimator(slack=slack)

    def test_weights_that_are_not_there(self, tmp_path):
        with pytest.raises(NotTrainedError, match="neoranging train"):
            _ = MLPEstimator(weights=tmp_path / "none.safetensors").network
        with pytest.raises(NotTrainedError, match="neoranging train --model knn"):
            default_weights("knn", "invariant")

    def test_a_damaged_file(self, weights, tmp_path):
        content = bytearray(weights["paper"].read_bytes())
        content[-100] ^= 1
        path = tmp_path / "bad.safetensors"
        path.write_bytes(content)
        with pytest.raises(CheckpointError):
            MLPEstimator.from_pretrained(path)

    def test_a_file_that_was_replaced_is_read_again(self, weights, night, tmp_path):
        path = tmp_path / "network.safetensors"
        network, card = checkpoint.load(weights["invariant"])
        checkpoint.save(network, path, card)
        before = night[:3].estimate(MLPEstimator.from_pretrained(path))
        network.weights["heads.0.bias"] += 1.0
        checkpoint.save(network, path, {**card, "note": "a longer card"})
        after = night[:3].estimate(MLPEstimator.from_pretrained(path))
        assert (after.range > before.range).all()

    def test_the_level_counts_where_there_is_a_domain(self, weights, tmp_path):
        estimator = MLPEstimator.from_pretrained(weights["invariant"], level=0.01)
        assert estimator.identity["level"] == 0.01
        network, card = checkpoint.load(weights["invariant"])
        network.domain = Domain()
        checkpoint.save(network, tmp_path / "old.safetensors", card)
        assert "level" not in MLPEstimator.from_pretrained(tmp_path / "old.safetensors").identity

    def test_networks_are_shared(self, weights):
        one, other = (MLPEstimator.from_pretrained(weights["paper"]) for _ in range(2))
        assert one.network is other.network

    def test_save_and_card(self, estimator, night, tmp_path):
        estimator.save(tmp_path / "copy.safetensors")
        written = json.loads((tmp_path / "copy.json").read_text())
        assert written.pop("weights_sha256")
        assert written == CARD
        again = MLPEstimator.from_pretrained(tmp_path / "copy.safetensors")
        assert again.card == CARD
        again.card["model"] = "other"
        assert again.card == CARD
        np.testing.assert_array_equal(night.estimate(again).range, night.estimate(estimator).range)

    def test_what_the_classes_say(self, estimator):
        assert (MLPEstimator.name, PINNEstimator.name) == ("mlp", "pinn")
        assert MLPEstimator.is_learned
        assert estimator.representation in repr(estimator)


@pytest.mark.parametrize("model", ["mlp", "pinn"])
@pytest.mark.parametrize("representation", ["invariant", "paper"])
def test_what_ships_loads(model, representation):
    try:
        path = default_weights(model, representation)
    except NotTrainedError:
        pytest.skip("these weights do not ship yet")
    network, card = checkpoint.load(path)
    assert network.config.representation == representation
    assert card["model"] == model
    assert card["representation"] == representation
    assert card["train"]["n_arcs"] > 0
    assert card["metrics"]
