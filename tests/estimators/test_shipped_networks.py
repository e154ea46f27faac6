"""The networks that come with the package: what they are, and that they do what their cards say."""

import csv

import numpy as np
import pytest
from astropy import units as u

import neoranging as nr
from neoranging.estimators.learned import default_weights
from neoranging.estimators.mlp import MLPEstimator
from neoranging.estimators.pinn import PINNEstimator
from neoranging.lab.sets.splits import read_designations

ESTIMATORS = {"mlp": MLPEstimator, "pinn": PINNEstimator}
REPRESENTATIONS = ("paper", "invariant")
ALL = pytest.mark.parametrize(
    ("model", "representation"), [(m, r) for m in ESTIMATORS for r in REPRESENTATIONS]
)


@pytest.fixture(scope="module")
def night(simulate):
    """500 simulated near-Earth objects in nights of two hours, and their truth."""
    s = simulate(500, 0.08, seed=31).with_noise(np.random.default_rng(32))
    return s.tracklets(), s


def made(model, representation):
    return ESTIMATORS[model](representation=representation)


@ALL
def test_the_card_tells_data_recipe_metrics_and_domain(model, representation):
    estimator = made(model, representation)
    card = estimator.card
    assert (card["model"], card["representation"]) == (model, representation)
    assert card["train"]["settings"]["kind"] == "twin"
    assert card["train"]["division"]["never_train_found"] == 703
    assert card["command"].startswith(f"neoranging train --model {model}")
    assert "/" not in card["command"]
    assert set(card["domain"]) == set(estimator.network.features.scaling.names)
    for name in ("twin, test", "twin, unseen"):
        metrics = card["metrics"][name]
        assert metrics["n_arcs"] > 40_000
        value, low, high = metrics["value, low, high"]["medae_rho"]
        assert low <= value <= high
    assert any(name.startswith("real") for name in card["metrics"])


@ALL
def test_the_history_and_the_other_seeds_are_those_of_the_card(model, representation):
    card = made(model, representation).card
    with default_weights(model, representation).with_suffix(".csv").open() as file:
        losses = [float(row["val_total"]) for row in csv.DictReader(file)]
    assert len(losses) == card["epochs_done"]
    assert min(losses) == losses[card["best_epoch"] - 1]
    own = card["seeds"][str(card["config"]["seed"])]
    assert own["validation_loss"] == pytest.approx(min(losses), rel=1e-5)
    assert own["validation_loss"] == min(x["validation_loss"] for x in card["seeds"].values())
    assert len(card["seeds"]) == 3


@ALL
def test_it_answers_every_tracklet(model, representation, night):
    estimate = night[0].estimate(made(model, representation))
    assert np.isfinite(estimate.range).all()
    assert np.isfinite(estimate.range_rate).all()
    low, high = estimate.interval(0.68).T
    assert (low < high).all()


@pytest.mark.parametrize("model", sorted(ESTIMATORS))
def test_invariant_answers_are_admissible_and_right_to_a_third(model, night):
    tracklets, truth = night
    estimate = tracklets.estimate(model)
    assert estimate.admissible.all()
    error = np.abs(estimate.range.to_value(u.au) / truth.rho - 1.0)
    assert np.median(error) < 0.35


def test_two_observations_are_enough(night):
    tracklet = night[0][0][[0, -1]]
    assert tracklet.estimate("pinn").status is nr.RangeStatus.POPULATION
    with_centre = tracklet.estimate("pinn", representation="paper")
    assert with_centre.status is nr.RangeStatus.TOO_FEW_OBSERVATIONS


def test_all_together_are_a_few_megabytes():
    sizes = [
        default_weights(model, representation).stat().st_size
        for model in ESTIMATORS
        for representation in REPRESENTATIONS
    ]
    assert sum(sizes) < 8e6


@ALL
def test_calibrations_belong_to_the_weights(model, representation):
    calibration = made(model, representation).calibration
    assert calibration is not None
    assert calibration.to_json()["description"]["split"] == "test"


def test_list_of_objects_never_learnt_from_is_that_of_the_cards():
    names = read_designations(default_weights("mlp", "invariant").with_name("never_learnt.csv"))
    assert len(set(names)) == len(names)
    assert {"2024 YR4", "2008 TC3", "2014 AA", "2008 EK68"} <= set(names)
    for name in ("mlp", "mlp@paper", "pinn", "pinn@paper"):
        card = nr.get_estimator(name).card
        assert card["train"]["division"]["never_train_listed"] == len(names)
