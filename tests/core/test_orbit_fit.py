"""Orbits through all observations: they reach the truth, keep to their bounds, and refuse noise."""

import numpy as np
import pytest
from reference import orbit_fit as reference

from neoranging.constants import ARCSEC
from neoranging.core.attributable import from_fit
from neoranging.core.orbit_fit import nearest_orbits


def fitted(s, rho, rho_dot, factor=4.0, enough=0.0):
    bounds = np.stack([rho / factor, rho * factor], axis=1)
    limit = np.full(len(s), enough)
    start = s.arcs, from_fit(s.arcs), rho, rho_dot
    return nearest_orbits(*start, errors=claims(s), bounds=bounds, enough=limit), bounds


def claims(s):
    return np.stack([s.arcs.sigma_ra, s.arcs.sigma_dec], axis=1)


def test_the_truth_is_reached_from_afar(simulate):
    s = simulate(100, 0.35, seed=500, n_observations=(6, 10))
    orbits, _ = fitted(s, s.rho * 1.5, s.rho_dot, enough=1e-3)
    # to a part of the errors, though the arcs of far objects hardly tell their range
    assert np.mean(orbits.chi2 < 0.5) > 0.95
    near = s.rho < 0.05
    assert near.sum() >= 5
    # one comes to rest in a minimum of its own
    assert np.mean(np.abs(orbits.rho / s.rho - 1.0)[near] < 0.05) > 0.8


def test_a_start_that_fits_is_left_alone(simulate):
    s = simulate(50, 0.2, seed=501)
    orbits, _ = fitted(s, s.rho, s.rho_dot, enough=1e9)
    np.testing.assert_allclose(orbits.rho, s.rho)


def test_ranges_keep_to_their_bounds(simulate):
    s = simulate(100, 0.35, seed=502).with_noise(np.random.default_rng(1))
    orbits, bounds = fitted(s, 6.0 * s.rho, s.rho_dot, factor=2.0)
    assert (orbits.rho >= bounds[:, 0] * (1 - 1e-12)).all()
    assert (orbits.rho <= bounds[:, 1] * (1 + 1e-12)).all()


def test_no_orbit_passes_through_unrelated_positions(simulate):
    s = simulate(100, 0.2, seed=503, n_observations=(5, 8))
    moved = s.with_noise(np.random.default_rng(2), size=1000.0)  # 200 arcsec
    orbits, _ = fitted(moved, s.rho, s.rho_dot)
    dof = 2.0 * s.arcs.counts - 6.0
    assert np.mean(orbits.chi2 > 100.0 * dof) > 0.98


def test_a_strong_bend_near_the_earth_is_an_orbit(simulate):
    """A parabola misses these arcs by many times their errors; the orbit does not."""
    s = simulate(4000, 0.15, seed=92, n_observations=(6, 9))
    s = s.take(np.flatnonzero(s.rho < 0.01))
    assert len(s) >= 10
    orbits, _ = fitted(s, 1.3 * s.rho, s.rho_dot, enough=1e-3)
    assert np.mean(orbits.chi2 < 1.0) > 0.8


def test_a_start_that_is_no_number_fits_nothing(simulate):
    s = simulate(3, 0.2, seed=504)
    orbits, _ = fitted(s, np.full(3, np.nan), s.rho_dot)
    assert np.isinf(orbits.chi2).all()


@pytest.mark.parametrize("sigma", [1e-9, 1e9])
def test_errors_of_any_size_give_no_warning(simulate, sigma):
    s = simulate(5, 0.2, seed=505, sigma=sigma)
    orbits, _ = fitted(s, s.rho, s.rho_dot)
    assert (orbits.chi2 * (sigma * ARCSEC) ** 2 < 1.0).all()


@pytest.mark.parametrize(("size", "factor"), [(0.3, 4.0), (1.0, 1.1), (1000.0, 2.0)])
def test_orbits_are_those_of_numpy(simulate, size, factor):
    s = simulate(200, 0.3, seed=506, n_observations=(4, 8))
    s = s.with_noise(np.random.default_rng(3), size)
    rho = 1.5 * s.rho
    rho[0] = np.nan
    orbits, bounds = fitted(s, rho, s.rho_dot, factor)
    expected = reference.nearest_orbits(
        s.arcs, from_fit(s.arcs), rho, s.rho_dot, bounds=bounds, enough=np.zeros(len(s))
    )
    # where the valley is flat, rounding decides at which step it is left
    same = np.isclose(orbits.chi2, expected.chi2, rtol=1e-4, atol=1e-3)
    assert same.mean() > 0.98
    np.testing.assert_allclose(orbits.chi2, expected.chi2, rtol=0.6, atol=1e-3)
    np.testing.assert_allclose(orbits.rho[same], expected.rho[same], rtol=0.02)
