"""Errors that networks are told: by what an arc shows of its own."""

from dataclasses import replace

import numpy as np
import pytest

from neoranging.core.attributable import tangent_fit
from neoranging.core.noise import SHARE_OF_CLAIM
from neoranging.estimators import network_inputs
from neoranging.estimators.gauss import GaussEstimator
from neoranging.estimators.network_inputs import arc_inputs


def errors(night, size, seed=5):
    """Standard errors told, over those that the observations claim; (M, 2)."""
    arcs = night.with_noise(np.random.default_rng(seed), size).arcs
    claimed = np.sqrt(tangent_fit(arcs).covariance[:, :, 2, 2])
    return np.exp(arc_inputs(arcs).log_sigma_acc) / claimed


@pytest.mark.parametrize("size", [0.1, 0.5, 1.0, 3.0])
def test_arcs_of_many_observations_tell_their_scatter(simulate, size):
    night = simulate(100, 0.06, seed=31, n_observations=30)
    found = errors(night, size)
    expected = np.sqrt((2.0 * SHARE_OF_CLAIM**2 + 54.0 * size**2) / 56.0)
    assert np.median(found) == pytest.approx(expected, rel=0.03)


def test_three_observations_tell_nothing_of_their_scatter(simulate):
    triplets = simulate(50, 0.06, seed=32, n_observations=3)
    np.testing.assert_allclose(errors(triplets, 3.0), SHARE_OF_CLAIM, rtol=1e-6)


def test_the_parallax_is_told_with_the_same_scatter(simulate):
    night = simulate(100, 0.25, seed=33, n_observations=12)
    arcs = night.with_noise(np.random.default_rng(6), 2.0).arcs
    plain = night.with_noise(np.random.default_rng(6), 1.0).arcs
    ratio = np.exp(arc_inputs(arcs).log_sigma_parallax - arc_inputs(plain).log_sigma_parallax)
    assert np.median(ratio) == pytest.approx(2.0, rel=0.05)


def test_the_magnitude_is_the_mean_of_those_that_an_arc_has(simulate):
    arcs = simulate(3, 0.06, seed=34, n_observations=3).arcs
    mag = np.array([20.0, 21.0, np.nan, *[np.nan] * 3, 18.0, 18.5, 19.0])
    inputs = arc_inputs(replace(arcs, mag=mag))
    assert inputs.magnitude.tolist() == [20.5, 0.0, 18.5]
    assert inputs.has_magnitude.tolist() == [1.0, 0.0, 1.0]


def test_the_root_is_the_answer_of_gauss_with_its_error(simulate):
    arcs = (
        simulate(40, 0.3, seed=3, n_observations=4).with_noise(np.random.default_rng(3), 0.3).arcs
    )
    inputs, gauss = arc_inputs(arcs, root=True), GaussEstimator()._solve(arcs, arcs)
    has = np.isfinite(gauss.rho)
    assert has.sum() > 10
    np.testing.assert_array_equal(inputs.has_root > 0.0, has)
    inside = has & (gauss.rho > np.exp(-8.0)) & (gauss.rho < np.exp(3.0))
    np.testing.assert_allclose(np.exp(inputs.root)[inside], gauss.rho[inside])
    error = gauss.rho_error / gauss.rho
    usual = inside & (error > 1.0e-4) & (error < 10.0)
    np.testing.assert_allclose(
        np.exp(inputs.log_error_root)[usual],
        (np.sqrt(gauss.covariance[:, 0, 0]) / gauss.rho)[usual],
    )
    assert (inputs.root[~has] == 0.0).all()


def test_two_epochs_have_no_root(simulate):
    arcs = simulate(3, 0.06, seed=34, n_observations=2).arcs
    assert (arc_inputs(arcs, root=True).has_root == 0.0).all()


def test_networks_that_are_not_shown_the_root_do_not_wait_for_it(simulate, monkeypatch):
    arcs = simulate(3, 0.06, seed=34, n_observations=4).arcs
    monkeypatch.setattr(network_inputs, "solve", None)
    assert (arc_inputs(arcs).has_root == 0.0).all()
    with pytest.raises(TypeError):
        arc_inputs(arcs, root=True)
