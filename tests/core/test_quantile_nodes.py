"""Nodes at the quantiles of a mixture."""

import numpy as np
import pytest

from neoranging.core.quantile_nodes import PlaneMixture


def normal(mean=(0.0, 0.0), width=(1.0, 1.0), slope=0.0):
    one = np.ones((1, 1))
    return PlaneMixture(
        0.0 * one, np.array([[mean]], float), np.array([[width]], float), slope * one
    )


def test_columns_and_cells_of_a_normal_distribution_are_its_quantiles():
    from scipy.stats import norm

    x, y = normal((0.5, -1.0), (2.0, 0.1), slope=3.0).cells(5, 4)
    assert x.shape == (1, 11)
    assert y.shape == (1, 5, 9)
    np.testing.assert_allclose(x[0, 1:-1], norm.ppf(np.arange(1, 10) / 10, 0.5, 2.0), atol=1e-9)
    middle = -1.0 + 3.0 * (x[0, 1::2] - 0.5)
    expected = norm.ppf(np.arange(1, 8)[None] / 8, middle[:, None], 0.1)
    np.testing.assert_allclose(y[0, :, 1:-1], expected, atol=1e-9)


def test_sums_over_the_cells_are_integrals_of_the_mixture():
    rng = np.random.default_rng(0)
    k = 5
    mixture = PlaneMixture(
        np.log(rng.dirichlet(np.ones(k), 1)),
        rng.normal(size=(1, k, 2)),
        rng.uniform(0.05, 0.8, (1, k, 2)),
        rng.normal(size=(1, k)),
    )
    x, y = mixture.cells(80, 60)
    points = np.repeat(x[0, 1::2, None], 60, axis=1), y[0, :, 1::2]
    weight = np.exp(mixture.log_weight[0])
    # each cell has the same share of the mixture
    assert points[0].mean() == pytest.approx(weight @ mixture.mean[0, :, 0], abs=0.01)
    assert points[1].mean() == pytest.approx(weight @ mixture.mean[0, :, 1], abs=0.02)
    between = mixture.mean[0, :, 0] - weight @ mixture.mean[0, :, 0]
    variance = weight @ (mixture.width[0, :, 0] ** 2 + between**2)
    assert points[0].var() == pytest.approx(variance, rel=0.02)


def test_the_floor_keeps_cells_where_the_proposal_has_nothing():
    narrow = normal(width=(1e-3, 1e-3))
    x, _ = narrow.with_floor(0.1, 2.0).cells(40, 4)
    centers = x[0, 1::2]
    assert (np.abs(centers) < 0.01).sum() > 30
    assert centers.min() < -1.5
    assert centers.max() > 1.5
