"""Laplace's method: the textbook equation, exact orbits from all observations, errors."""

import dataclasses

import numpy as np
import pytest
import simulated_arcs
from claimed_errors import claimed_errors
from reference import laplace as reference
from reference.attributable import ParabolaFit

from neoranging.constants import GM_SUN
from neoranging.core.attributable import from_fit, tangent_fit
from neoranging.core.candidates import Thresholds, solve
from neoranging.core.geometry import cross, dot, norm
from neoranging.core.laplace import laplace
from neoranging.core.noise import error_law
from neoranging.core.prediction import sight
from neoranging.core.status import RangeStatus


@pytest.fixture(scope="module")
def five_days(simulate):
    return simulate(300, 5.0, seed=31)


def test_roots_of_the_series_satisfy_the_equation_of_motion(five_days):
    """R'' + rho'' L + 2 rho' L' + rho L'' + mu r / r^3 has no component along L x L' and L'."""
    fit = tangent_fit(five_days.arcs)
    found = laplace(five_days.arcs, max_iterations=0)
    k = found.roots.arc
    L, rate, bend = fit.line_of_sight[k], fit.rate[k], fit.acceleration[k]
    R, _, pull = np.moveaxis(fit.observer[k], -1, 0)
    rho, rho_dot = found.roots.rho[:, None], found.roots.rho_dot[:, None]
    r = R + rho * L
    force = pull + 2.0 * rho_dot * rate + rho * bend + GM_SUN * r / norm(r)[:, None] ** 3
    size = norm(pull) + norm(rho * bend) + GM_SUN / norm(r) ** 2
    assert np.abs(dot(force, cross(L, rate)) / norm(rate) / size).max() < 1e-9
    assert np.abs(dot(force, rate) / norm(rate) / size).max() < 1e-9
    assert np.abs(dot(rate, L)).max() < 1e-15
    np.testing.assert_allclose(found.roots.r, r, atol=1e-14)


@pytest.mark.parametrize("several", [False, True])
def test_roots_and_errors_are_those_of_numpy(simulate, several):
    s = simulate(300, 0.6, seed=36, n_observations=(3, 9)).with_noise(np.random.default_rng(6), 0.3)
    arcs = s.arcs
    if several:  # visits of three stations that take turns
        visit = np.random.default_rng(7).integers(0, 3, len(arcs.t))
        arcs = dataclasses.replace(arcs, visit=visit)
    found, expected = laplace(arcs), reference.laplace(arcs)
    np.testing.assert_array_equal(found.roots.arc, expected.roots.arc)
    same = found.roots.converged == expected.roots.converged
    assert same.mean() > 0.99
    for name in ("rho", "rho_dot", "r", "v"):
        values, others = getattr(found.roots, name)[same], getattr(expected.roots, name)[same]
        np.testing.assert_allclose(values, others, rtol=1e-7, atol=1e-9)
    law = error_law(arcs)
    (variance, covariance), (other, another) = found.errors(law), expected.errors(law)
    np.testing.assert_allclose(variance, other, rtol=1e-7)
    size = np.sqrt(np.einsum("kaii->ki", another)[:, None])
    np.testing.assert_allclose(
        (covariance / size[..., None] / size[..., None, :])[same],
        (another / size[..., None] / size[..., None, :])[same],
        rtol=1e-5,
        atol=1e-8,
    )


def test_a_converged_orbit_has_the_observed_parabola(five_days):
    arcs = five_days.arcs
    found = laplace(arcs).roots
    k = np.nonzero(found.converged)[0]
    assert len(k) > 0.5 * len(five_days)
    part = arcs.take(found.arc[k])
    fit, own = ParabolaFit(part), part.owner
    state = (column[k][own] for column in (found.r, found.v, found.epoch))
    seen = sight(*state, part.t, part.position, part.velocity)
    difference = fit.derivatives(fit.plane(seen.direction)) - tangent_fit(part).sky
    span = (part.t[part.triplet[:, 2]] - part.t[part.triplet[:, 0]])[:, None]
    for power in range(3):
        assert np.percentile(np.abs(difference[..., power]) * span**power, 99.0) < 1e-9


@pytest.mark.parametrize("span", [1.0, 3.0, 10.0, 30.0])
def test_noise_free_arcs_give_back_their_range_or_say_why_not(simulate, span):
    s = simulate(1000, span, seed=32, n_observations=(4, 9))
    solved = solve(s.arcs, from_fit(s.arcs), laplace(s.arcs), Thresholds())
    ok = solved.status == RangeStatus.OK.code
    assert ok.mean() > 0.3
    error = np.abs(solved.rho / s.rho - 1.0)[ok]
    assert (error > 1e-6).mean() <= (0.002 if span <= 3.0 else 0.01)
    assert np.percentile(error, 90.0) < 1e-9


@pytest.mark.parametrize(("rho", "span"), [(0.01, 0.15), (0.1, 0.5), (1.0, 8.0)])
def test_covariance_is_the_scatter_of_noisy_ranges(rho, span):
    position, velocity = simulated_arcs.ephemeris.observer_state(
        simulated_arcs.observatories.itrf_positions(np.array(["F51"])), np.array([59_400.4])
    )
    outward = position[0] / norm(position[0])
    direction = outward + 0.5 * np.cross(outward, [0.0, 0.0, 1.0]) + np.array([0.0, 0.0, 0.25])
    r = position + rho * direction / norm(direction)
    v = velocity * np.array([0.97, 1.01, 0.9]) + np.array([0.002, 0.001, 0.0015])
    v *= np.sqrt(norm(position) / norm(r))[:, None]
    m = 400
    repeat = [np.repeat(x, m, axis=0) for x in (r, v, np.array([59_400.4]))]
    times = [59_400.4 + span * np.array([-0.5, -0.2, 0.05, 0.3, 0.5])] * m
    exact = simulated_arcs.observe(*repeat, times, "F51", 0.1)
    noisy = exact.with_noise(np.random.default_rng(int(1000 * rho))).arcs
    classical = laplace(noisy)
    found = classical.roots._replace(covariance=claimed_errors(noisy, classical)[1])
    near = (np.abs(found.rho / exact.rho[0] - 1.0) < 0.5) & found.converged
    assert near.sum() > 0.85 * m
    offsets = np.stack([found.rho - exact.rho[0], found.rho_dot - exact.rho_dot[0]])[:, near]
    claimed = np.median(found.covariance[near], axis=0)
    spread = np.sqrt(np.diag(claimed))
    assert spread[0] < 0.12 * exact.rho[0]
    sample = np.mean(offsets[:, None] * offsets[None], axis=-1)
    # four sigma of a variance from 400 draws
    assert np.abs((sample - claimed) / np.outer(spread, spread)).max() < 0.3


def test_more_observations_make_smaller_errors(simulate):
    """All observations count, not three of them."""
    few = simulate(200, 1.0, seed=33, n_observations=3)
    many = simulate(200, 1.0, seed=33, n_observations=12)
    medians = [
        np.median(claimed_errors(s.arcs, laplace(s.arcs, max_iterations=0))[0]) for s in (few, many)
    ]
    assert medians[1] < 0.75 * medians[0]


def test_the_diurnal_circle_of_the_station_is_no_parabola(simulate):
    """Over half a day the instantaneous acceleration of a station would mislead by factors."""
    s = simulate(400, 0.4, seed=34, station="F51")
    found = laplace(s.arcs)
    k = found.roots.converged
    error = np.full(len(s), np.inf)
    np.minimum.at(
        error, found.roots.arc[k], np.abs(found.roots.rho / s.rho[found.roots.arc] - 1.0)[k]
    )
    fair = claimed_errors(s.arcs, found)[0] < 1.0 / 3.0
    assert (error[fair] < 1e-6).mean() > 0.9


def test_several_stations_in_one_arc(simulate):
    s = simulate(200, 0.6, seed=35, n_observations=6, station="500")
    rng = np.random.default_rng(3)
    codes = rng.choice(["G96", "F51", "W68", "I41"], len(s.arcs.t))
    times = np.split(s.arcs.t, s.arcs.offsets[1:-1])
    mixed = simulated_arcs.observe(s.r, s.v, s.epoch, times, codes)
    solved = solve(mixed.arcs, from_fit(mixed.arcs), laplace(mixed.arcs), Thresholds())
    ok = solved.status == RangeStatus.OK.code
    assert ok.mean() > 0.4
    assert (np.abs(solved.rho / mixed.rho - 1.0)[ok] > 1e-6).mean() < 0.01
