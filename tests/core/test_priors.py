"""Prior densities in phase space: interpolation, continuation, and the calibration of ranges."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from scipy.interpolate import RegularGridInterpolator
from scipy.stats import kstest

from neoranging.constants import GM_SUN
from neoranging.core.admissible import absolute_magnitude, energy_coefficients, range_rate_interval
from neoranging.core.elements import state_to_elements
from neoranging.core.geometry import (
    dot,
    equatorial_to_ecliptic,
    line_of_sight,
    line_of_sight_rate,
)
from neoranging.core.priors import FAINT_SLOPE, cumulative, log_density

START = np.array([-1.0, 0.05, 0.1, 15.0])
STEP = np.array([0.25, 0.2, 0.3, 1.0])


@numba.njit
def evaluate_all(table, start, step, q, ecc, inc, H):
    result = np.empty(len(q))
    for k in range(len(q)):
        result[k] = log_density(table, start, step, q[k], ecc[k], inc[k], H[k])
    return result


def evaluate(table, q, ecc, inc, H, start=START, step=STEP):
    columns = np.broadcast_arrays(*(np.asarray(x, dtype=float) for x in (q, ecc, inc, H)))
    flat = [np.ascontiguousarray(x.ravel()) for x in columns]
    return evaluate_all(table, start, step, *flat).reshape(columns[0].shape)


@pytest.fixture(scope="module")
def table():
    return np.random.default_rng(1).normal(20.0, 3.0, (7, 5, 6, 8)).astype(np.float32)


@pytest.fixture(scope="module")
def orbits():
    rng = np.random.default_rng(2)
    return (
        np.exp(rng.uniform(-2.0, 1.5, 2000)),
        rng.uniform(0.0, 1.0, 2000),
        rng.uniform(0.0, np.pi, 2000),
        rng.uniform(10.0, 22.0, 2000),
    )


def test_it_is_linear_between_the_nodes_and_the_edge_beyond(table, orbits):
    axes = [s + d * np.arange(n) for s, d, n in zip(START, STEP, table.shape, strict=True)]
    q, ecc, inc, H = orbits
    points = np.stack([np.log(q), ecc, np.sqrt(inc), H], axis=1)
    inside = np.clip(points, [a[0] for a in axes], [a[-1] for a in axes])
    expected = RegularGridInterpolator(axes, table.astype(np.float64))(inside)
    assert np.mean(np.any(points != inside, axis=1)) > 0.3  # many lie beyond an edge
    np.testing.assert_allclose(evaluate(table, *orbits), expected, rtol=1e-12)


def test_nodes_have_their_values(table):
    q, ecc, inc, H = np.exp(START[0] + 6 * STEP[0]), 0.05, 0.1**2, 22.0
    assert evaluate(table, q, ecc, inc, H) == pytest.approx(float(table[6, 0, 0, 7]), rel=1e-6)


def test_the_faint_end_goes_on_with_its_slope(table):
    last = evaluate(table, 1.0, 0.4, 0.2, 22.0)
    beyond = evaluate(table, 1.0, 0.4, 0.2, np.array([22.5, 24.0, 30.0]))
    np.testing.assert_allclose(beyond - last, FAINT_SLOPE * np.array([0.5, 2.0, 8.0]))
    assert pytest.approx(0.6 * np.log(10.0)) == FAINT_SLOPE


def test_the_bright_end_does_not(table):
    assert evaluate(table, 1.0, 0.4, 0.2, 5.0) == evaluate(table, 1.0, 0.4, 0.2, 15.0)


def test_radial_and_hyperbolic_orbits_have_the_density_of_the_edge(table):
    edge = evaluate(table, 1e-3, 0.85, 0.2, 20.0)
    assert evaluate(table, 0.0, 1.3, 0.2, 20.0) == pytest.approx(edge)


@pytest.mark.parametrize("place", range(4))
def test_what_is_no_number_has_no_density(table, place):
    orbit = [1.0, 0.4, 0.2, 20.0]
    orbit[place] = np.nan
    assert np.isnan(evaluate(table, *orbit))


def test_all_brighter_ones_are_the_sum_of_the_magnitudes(table):
    column = table[3:4, 2, 1].astype(np.float64)
    brighter = cumulative(column, 1.0)[0]
    fine = np.linspace(0.0, 7.0, 700_001)
    density = np.exp(np.interp(fine, np.arange(8), column[0]))
    steps = 0.5 * (density[1:] + density[:-1]) * (fine[1] - fine[0])
    first = np.exp(column[0, 0]) / FAINT_SLOPE
    total = first + np.concatenate([[0.0], np.cumsum(steps)])[::100_000]
    np.testing.assert_allclose(np.exp(brighter), total, rtol=1e-6)


def test_an_even_law_adds_up(table):
    flat = np.zeros((1, 5))
    expected = 1.0 / FAINT_SLOPE + 0.5 * np.arange(5)
    np.testing.assert_allclose(np.exp(cumulative(flat, 0.5))[0], expected)


# Ranges of a population that the test makes: the density must say where they lie ----------------

EARTH, EARTH_VELOCITY = np.array([1.0, 0.0, 0.0]), np.array([0.0, np.sqrt(GM_SUN), 0.0])
LIMIT_MAG = 21.0
GRID_START, GRID_STEP = np.array([-1.6, 0.05, 0.1, 15.0]), np.array([0.2, 0.1, 0.15, 1.0])


@pytest.fixture(scope="module")
def population():
    """Table of a population about inclined, eccentric orbits, the more the smaller."""
    log_q, ecc, root = (
        GRID_START[k] + GRID_STEP[k] * np.arange(n) for k, n in enumerate((11, 10, 12))
    )
    shape = (
        -0.5 * ((log_q[:, None, None] + 0.1) / 0.3) ** 2
        - 0.5 * ((ecc[:, None] - 0.5) / 0.25) ** 2
        - 0.5 * ((root - 0.6) / 0.3) ** 2
    )
    H = GRID_START[3] + np.arange(13)
    # a density of sizes that bends: with one slope the magnitude would tell nothing
    law = np.where(H < 21.0, 0.7, 0.3) * (H - 21.0) * np.log(10.0)
    return (shape[..., None] + law).astype(np.float32)


def density_of_states(table, x, v, H):
    elements = state_to_elements(x, v)
    value = evaluate(table, elements.q, elements.ecc, elements.inc, H, GRID_START, GRID_STEP)
    return np.where((elements.ecc < 1.0) & (H > 15.0) & (H < 27.0), np.exp(value), 0.0)


@pytest.fixture(scope="module")
def sightings(population):
    """States of objects drawn from phase space, as many as the density says, and detected ones."""
    rng, n = np.random.default_rng(4), 2_000_000
    rho = np.exp(rng.uniform(np.log(0.003), np.log(1.5), n))
    sight = rng.standard_normal((n, 3))
    sight /= np.linalg.norm(sight, axis=1)[:, None]
    v = rng.uniform(-1.5, 1.5, (n, 3)) * np.sqrt(GM_SUN)
    H = rng.uniform(15.0, 27.0, n)
    mag = H - absolute_magnitude(coefficients(sight, np.zeros((n, 3))), rho, 0.0)
    # the survey has a limit of magnitude; every other proposal stands for rho^3 of space
    rows = np.flatnonzero(mag < LIMIT_MAG)
    rho, sight, v, H, mag = rho[rows], sight[rows], v[rows], H[rows], mag[rows]
    x = EARTH + rho[:, None] * sight
    weight = density_of_states(population, x, v, H) * rho**3
    rows = np.flatnonzero(rng.random(len(rho)) < weight / weight.max())
    return rho[rows], sight[rows], v[rows], mag[rows]


def coefficients(sight, drift):
    """Energy coefficients of directions and the transverse part of the motion along them."""
    ra, dec = np.arctan2(sight[:, 1], sight[:, 0]), np.arcsin(sight[:, 2])
    east = line_of_sight_rate(ra, dec, 1.0, 0.0)
    north = line_of_sight_rate(ra, dec, 0.0, 1.0)
    ra_rate, dec_rate = dot(drift, east) / np.cos(dec) ** 2, dot(drift, north)
    return energy_coefficients(ra, dec, ra_rate, dec_rate, EARTH, EARTH_VELOCITY)


def truth_in_posterior(population, sightings, power):
    """Share of the density over (rho, rho_dot) that lies nearer than the truth."""
    rho, sight, v, mag = sightings
    drift = (v - EARTH_VELOCITY) / rho[:, None]
    drift = drift - dot(drift, sight)[:, None] * sight
    c = coefficients(sight, drift)[:, None]
    edges = np.geomspace(0.003, 1.5, 161)
    middle = np.sqrt(edges[1:] * edges[:-1])
    low, high = range_rate_interval(c, middle)
    H = absolute_magnitude(c, middle, mag[:, None])
    share = np.zeros(H.shape)
    for part in (np.arange(40) + 0.5) / 40:
        rho_dot = low + part * (high - low)
        x = EARTH + middle[:, None] * sight[:, None]
        ahead = rho_dot[..., None] * sight[:, None] + middle[:, None] * drift[:, None]
        density = density_of_states(population, x, EARTH_VELOCITY + ahead, H)
        share += np.nan_to_num(density * (high - low)) * middle ** (power + 1)
    before = np.concatenate([np.zeros((len(rho), 1)), np.cumsum(share, axis=1)], axis=1)
    return np.array(
        [np.interp(np.log(r), np.log(edges), b / b[-1]) for r, b in zip(rho, before, strict=True)]
    )


def test_ranges_lie_where_the_density_says(population, sightings):
    assert len(sightings[0]) > 250
    assert kstest(truth_in_posterior(population, sightings, 4), "uniform").pvalue > 0.02


def test_they_do_not_without_the_power_of_the_range(population, sightings):
    assert kstest(truth_in_posterior(population, sightings, 2), "uniform").pvalue < 1e-6


def test_directions_of_the_ecliptic_are_meant():
    """The populations above need no turn; a table is asked for ecliptic inclinations."""
    x, v = np.array([1.0, 0.0, 0.0]), np.sqrt(GM_SUN) * np.array([0.0, 1.0, 0.0])
    assert state_to_elements(x, v).inc == 0.0
    assert state_to_elements(equatorial_to_ecliptic(x), equatorial_to_ecliptic(v)).inc > 0.4
    assert dot(line_of_sight(0.0, 0.0), x) == 1.0
