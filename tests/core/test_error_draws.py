"""Attributables drawn at the true range: the true ones have to be among them as the law says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import simulated_arcs
from compiled_nights import prepared
from scipy.stats import kstest

from neoranging.core.error_draws import drawn_corrections
from neoranging.core.geometry import norm
from neoranging.core.noise import LARGEST_SHARE, SHARE_OF_CLAIM, SHARE_SPREAD
from neoranging.core.systematic import complete

N_DRAWS = 199


def with_errors_of_the_law(night, rng):
    """The same observations with errors as the likelihood takes them for granted."""
    owner = np.repeat(np.arange(len(night.first)), np.diff(night.offsets))
    visit = np.unique(np.stack([owner, night.visit]), axis=1, return_inverse=True)[1]
    share = np.full(visit.max() + 1, np.inf)
    while (out := share > LARGEST_SHARE).any():
        share[out] = SHARE_OF_CLAIM * np.exp(SHARE_SPREAD * rng.standard_normal(out.sum()))
    error = share[visit][:, None] * night.sigma * rng.standard_normal((len(owner), 2))
    error += night.clock * rng.standard_normal((len(owner), 2))
    error += np.sqrt(night.offset) * rng.standard_normal((len(share), 2))[visit]
    direction = night.direction + np.einsum("na,nai->ni", error, night.axes)
    return night._replace(direction=direction / norm(direction)[:, None])


def ranks(made, seed):
    """Shares of the draws below the true corrections, shape (M, 4)."""
    rng = np.random.default_rng(seed)
    m = len(made)
    night, _ = prepared(made.arcs)
    true = complete(night, np.arange(m), made.rho, made.rho_dot).fit
    rows = np.repeat(np.arange(m), N_DRAWS)
    observed = with_errors_of_the_law(night, rng)
    draws = drawn_corrections(observed, rows, made.rho[rows], made.rho_dot[rows], rng)
    return np.mean(draws.reshape(m, N_DRAWS, 4) < true[:, None], axis=1)


@pytest.mark.parametrize("n", [2, 3, 6])
def test_the_truth_is_a_draw_like_the_others(n):
    made = simulated_arcs.simulate(600, 0.03, seed=n, n_observations=n, sigma=0.5)
    for rank in ranks(made, n).T:
        assert kstest(rank, "uniform").pvalue > 1e-3
        # as often in the tails as the law says, which no normal law can be
        assert np.mean(np.abs(rank - 0.5) > 0.475) == pytest.approx(0.05, abs=0.027)


def test_of_several_visits():
    made = simulated_arcs.simulate(400, 0.06, seed=1, n_observations=6, sigma=0.5)
    arcs = replace(made.arcs, visit=np.tile([0, 0, 0, 1, 1, 1], 400))
    for rank in ranks(replace(made, arcs=arcs), 1).T:
        assert kstest(rank, "uniform").pvalue > 1e-3


def test_same_generator_same_draws():
    made = simulated_arcs.simulate(2, 0.03, seed=4, n_observations=3)
    night, _ = prepared(made.arcs)
    rows = np.repeat([0, 1], 5)
    points = night, rows, made.rho[rows], made.rho_dot[rows]
    first, again = (drawn_corrections(*points, np.random.default_rng(2)) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert len(np.unique(first[:, 0])) == 10


def test_nowhere_inside_the_earth():
    made = simulated_arcs.simulate(1, 0.03, seed=4, n_observations=3)
    night, _ = prepared(made.arcs)
    inside = np.array([1.0e-5]), np.array([-0.01])
    change = drawn_corrections(night, np.array([0]), *inside, np.random.default_rng(2))
    assert np.isnan(change).all()
