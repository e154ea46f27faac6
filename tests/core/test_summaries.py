"""Compiled figures of posteriors beside the array code of `Posterior`."""

import numpy as np
import pytest
import simulated_arcs
from compiled_nights import prepared

from neoranging.core.posterior import Posterior
from neoranging.core.priors import simple_prior
from neoranging.core.summaries import summarise
from neoranging.core.systematic import systematic

LEVELS = [0.005, 0.25, 0.5, 0.9, 0.995]
POWERS = [0.0, -1.0, 3.0]


@pytest.fixture(scope="module")
def posteriors():
    """Ordinary ones, one of a single node, one with two far islands, and some that are none."""
    arcs = simulated_arcs.simulate(12, 0.05, seed=5, n_observations=(2, 7))
    arcs = arcs.with_noise(np.random.default_rng(5), 0.3).arcs
    many = systematic(prepared(arcs)[0], np.full(len(arcs), np.nan), simple_prior("log-uniform"))
    first, last = many.offsets[3:5]
    far = np.abs(np.log(many.rho / np.median(many.rho[first:last]))) > 1.0
    log_prior = many.log_prior.copy()
    log_prior[first:last][~far[first:last]] = -np.inf
    log_prior[many.arc == 7] = -np.inf
    column = [np.array([x]) for x in (0.3, 0.01, 0.2, 0.001, -3.0, 1.0)]
    single = Posterior(np.array([0, 1]), *column)
    return Posterior.join([Posterior.none(1), many.with_log_prior(log_prior), single])


@pytest.fixture(scope="module")
def summaries(posteriors):
    return summarise(posteriors, POWERS, LEVELS)


def test_quantiles_are_those_of_the_densities(posteriors, summaries):
    priors = posteriors, *(posteriors.under_power(power) for power in POWERS)
    for k, one in enumerate(priors):
        expected = np.log(one.quantile(LEVELS))
        np.testing.assert_allclose(summaries.quantiles[:, k], expected, rtol=0, atol=1e-11)
    assert np.isnan(summaries.quantiles[0]).all()
    assert np.isnan(summaries.quantiles[8, 0]).all()
    assert np.isfinite(summaries.quantiles[8, 1:]).all()


def test_moments_are_those_of_the_nodes(posteriors, summaries):
    expected = posteriors.covariance
    np.testing.assert_array_equal(np.isnan(summaries.covariance), np.isnan(expected))
    np.testing.assert_array_equal(summaries.covariance[-1], 0.0)  # of a single node
    some = np.isfinite(expected[:-1, 0, 0]).nonzero()[0]
    scale = np.sqrt(expected[some][:, [0, 1], [0, 1]])
    off = (summaries.covariance - expected)[some] / (scale[:, :, None] * scale[:, None, :])
    assert np.abs(off).max() < 1e-10


def test_rate_is_that_of_the_column_next_to_the_median(posteriors, summaries):
    columns, median = posteriors.columns, np.log(posteriors.quantile(0.5))
    for arc in range(len(posteriors)):
        rows = np.flatnonzero(columns.arc == arc)
        if not len(rows):
            assert np.isnan(summaries.rate[arc])
            continue
        nearest = rows[np.argmin(np.abs(columns.log_rho[rows] - median[arc]))]
        assert summaries.rate[arc] == pytest.approx(columns.rate[nearest], rel=1e-12)


def test_none_have_none():
    summaries = summarise(Posterior.none(0), POWERS, LEVELS)
    assert summaries.quantiles.shape == (0, 4, 5)
