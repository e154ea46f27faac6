"""The law of the errors of a night."""

import numpy as np
import pytest
from scipy.stats import norm as normal

from neoranging.core.noise import (
    LARGEST_SHARE,
    LEVEL_WEIGHTS,
    SHARE_OF_CLAIM,
    SHARE_SPREAD,
    _scales,
    error_law,
    quantile,
)


def test_quantiles_of_one_normal_law():
    for level in (0.5, 0.68, 0.95, 0.99, 0.9999):
        found = quantile(np.full((1, len(LEVEL_WEIGHTS)), 2.0), 1.0 - level)
        np.testing.assert_allclose(found, 2.0 * normal.ppf(0.5 + 0.5 * level), rtol=1e-4)


@pytest.mark.parametrize("probability", [0.32, 0.05, 0.01, 1e-3, 1e-5])
def test_quantiles_of_mixtures_are_exceeded_as_often(probability):
    scales = np.sort(np.exp(np.random.default_rng(1).normal(0.0, 1.0, (50, 10))), axis=1)
    x = quantile(scales, probability)[:, None]
    np.testing.assert_allclose(2.0 * normal.sf(x / scales) @ LEVEL_WEIGHTS, probability, rtol=0.02)


def test_without_residuals_the_law_alone_decides():
    rng = np.random.default_rng(2)
    share = np.minimum(SHARE_OF_CLAIM * np.exp(SHARE_SPREAD * rng.standard_normal(400_000)), 1.5)
    error = np.abs(share * rng.standard_normal(len(share)))
    scales = _scales(np.zeros(1), np.zeros(1))
    for level in (0.68, 0.95, 0.99, 0.999):
        found = quantile(scales, 1.0 - level)[0]
        # at most a tenth more, and no less
        assert 0.99 < found / np.quantile(error, level) < 1.12


def test_many_residuals_decide_it():
    for share in (0.05, 0.3, 1.0):
        scales = _scales(np.array([200.0]), np.array([200.0 * share**2]))
        np.testing.assert_allclose(scales, share, rtol=0.25)
    assert _scales(np.array([200.0]), np.array([5000.0])).max() <= LARGEST_SHARE * (1 + 1e-9)


def test_arcs_that_scatter_more_have_larger_errors(simulate):
    s = simulate(300, 0.05, seed=750, n_observations=8)
    sizes = []
    for size in (0.1, 0.3, 1.0):
        law = error_law(s.with_noise(np.random.default_rng(3), size).arcs)
        sizes.append(np.median(law.scatter / np.stack([s.arcs.sigma_ra, s.arcs.sigma_dec], axis=1)))
        assert np.abs(np.log(sizes[-1] / size)) < 0.5
    assert sizes[0] < sizes[1] < sizes[2]
