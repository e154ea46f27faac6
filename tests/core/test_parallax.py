"""Inverse ranges by diurnal parallax, against the truth of simulated nights."""

import dataclasses
import weakref

import numpy as np
import pytest
from reference import parallax as reference
from reference.attributable import ParabolaFit

from neoranging import ephemeris
from neoranging.core.attributable import tangent_fit
from neoranging.core.parallax import LARGEST_ERROR, parallax


@pytest.fixture(scope="module")
def hours(simulate):
    """Nights of six hours, nine observations each."""
    return simulate(400, 0.25, seed=21, n_observations=9)


def test_exact_observations_give_the_range(hours):
    found = parallax(hours.arcs)
    assert found.is_determined.all()
    # what a parabola leaves of the object's own motion grows with the speed
    error = found.inverse_range * hours.rho - 1.0
    assert np.median(np.abs(error)) < 0.03


def test_errors_are_those_claimed(hours):
    """Scatter about the value without noise: standard normal, to the binomial error of 400."""
    exact = parallax(hours.arcs)
    noisy = parallax(hours.with_noise(np.random.default_rng(5)).arcs)
    z = (noisy.inverse_range - exact.inverse_range) / exact.error
    inside = np.mean(np.abs(z) < 1.0)
    assert abs(inside - 0.683) < 3.0 * np.sqrt(0.683 * 0.317 / 400)
    assert np.std(z) == pytest.approx(1.0, abs=0.12)


def test_it_is_the_parameter_of_the_joint_least_squares_fit(hours):
    """Against normal equations of parabola and parallax together, arc by arc."""
    arcs = hours.with_noise(np.random.default_rng(6)).arcs.chunk(0, 5)
    found, fit = parallax(arcs), ParabolaFit(arcs)
    for k in range(5):
        rows = slice(arcs.offsets[k], arcs.offsets[k + 1])
        x = (arcs.t[rows] - fit.epoch[k]) / arcs.span[k]
        basis = np.stack([np.ones_like(x), x, x * x], axis=1)
        offset = arcs.position[rows] - arcs.position[arcs.triplet[k, 1]]
        column = [-offset @ axis[k] for axis in (fit.east, fit.north)]
        zero = np.zeros_like(basis)
        design = np.block([[basis, zero, column[0][:, None]], [zero, basis, column[1][:, None]]])
        target = fit.plane(arcs.direction)[rows].T.ravel()
        weight = np.sqrt(np.tile(fit.weight[rows], 2))
        scale = np.abs(design).max(axis=0)
        solved = np.linalg.lstsq(design / scale * weight[:, None], target * weight, rcond=None)
        assert found.inverse_range[k] == pytest.approx(solved[0][-1] / scale[-1], rel=1e-5)


def test_sums_over_arcs_are_those_of_numpy(simulate):
    arcs = simulate(300, 0.3, seed=22, n_observations=(2, 9)).arcs
    position, sigma = arcs.position.copy(), 2.0 * arcs.sigma_ra
    position[:40] = np.nan
    arcs = dataclasses.replace(arcs, position=position, sigma_ra=sigma)
    for found, expected in zip(parallax(arcs), reference.parallax(arcs), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)


def test_three_observations_leave_nothing(simulate):
    found = parallax(simulate(20, 0.1, seed=2, n_observations=3).arcs)
    assert not found.is_determined.any()
    assert not found.inverse_range.any()
    assert (found.error == LARGEST_ERROR).all()


def test_from_the_centre_of_the_earth_next_to_nothing_is_learnt(hours):
    arcs = hours.arcs
    earth, velocity = ephemeris.earth_state(arcs.t)
    centre = parallax(dataclasses.replace(arcs, position=earth, velocity=velocity))
    assert np.median(centre.error) > 500.0 * np.median(parallax(arcs).error)
    still = dataclasses.replace(arcs, position=np.zeros_like(arcs.position))
    assert not parallax(still).is_determined.any()


def test_arcs_are_freed_without_the_collector(simulate):
    arcs = simulate(5, 0.1, seed=3).arcs
    tangent_fit(arcs), parallax(arcs)
    chunk = arcs.chunk(0, 3)
    tangent_fit(chunk), parallax(chunk)
    gone = weakref.ref(chunk)
    del chunk
    assert gone() is None


def test_what_is_left_of_noise_has_as_many_squares_as_it_says(simulate):
    night = simulate(600, 0.06, seed=23, n_observations=(3, 12))
    found = parallax(night.with_noise(np.random.default_rng(7)).arcs)
    few = night.arcs.counts == 3
    assert not found.expected_misfit[few].any()
    assert np.abs(found.misfit[few]).max() < 1e-6
    n = found.expected_misfit.sum()
    assert abs(found.misfit.sum() / n - 1.0) < 4.0 * np.sqrt(2.0 / n)


def test_errors_twice_as_large_leave_four_times_as_much(hours):
    one, two = (
        parallax(hours.with_noise(np.random.default_rng(8), size).arcs) for size in (1.0, 2.0)
    )
    assert np.median(two.misfit / one.misfit) == pytest.approx(4.0, rel=0.02)


def test_squares_are_counted_right_where_the_axes_differ(simulate):
    a = simulate(800, 0.25, seed=24, n_observations=4)
    wide = dataclasses.replace(a, arcs=dataclasses.replace(a.arcs, sigma_ra=3.0 * a.arcs.sigma_dec))
    found, exact = (
        parallax(wide.with_noise(np.random.default_rng(9), size).arcs) for size in (1.0, 0.0)
    )
    slow = found.is_determined & (exact.misfit < 0.01)
    assert slow.mean() > 0.5
    n = found.expected_misfit[slow].sum()
    assert found.misfit[slow].sum() / n == pytest.approx(1.0, abs=6.0 / np.sqrt(n))
