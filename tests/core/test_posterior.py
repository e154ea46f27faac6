"""Posteriors on nodes against distributions in closed form."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_posteriors import RATE, SHAPES, SIGMA, S, X, marginal, posterior
from scipy.stats import multivariate_normal, norm

from neoranging.core.posterior import Posterior

LEVELS = np.array([0.005, 0.025, 0.16, 0.5, 0.84, 0.975, 0.995])


@pytest.fixture(scope="module")
def several():
    """Arcs of all shapes, the third without a posterior."""
    parts = [posterior(shape) for shape in SHAPES]
    return Posterior.join([*parts[:2], Posterior.none(1), *parts[2:]])


class TestRange:
    @pytest.mark.parametrize("shape", ["normal", "leaning", "skewed"])
    def test_quantiles_are_good_to_a_thousandth_of_the_width(self, shape):
        p = posterior(shape, h=0.1 if shape == "skewed" else 0.25)
        error = np.log(p.quantile(LEVELS)[0]) - marginal(shape).ppf(LEVELS)
        assert np.abs(error).max() < 1e-3 * S

    def test_quantiles_of_a_strip_are_even(self):
        np.testing.assert_allclose(
            np.log(posterior("strip").quantile(LEVELS)[0]), np.log(0.01) * (1.0 - LEVELS)
        )

    @pytest.mark.parametrize("shape", ["normal", "leaning", "skewed"])
    def test_cdf(self, shape):
        x = X + S * np.linspace(-3.0, 3.0, 23)[None]
        np.testing.assert_allclose(
            posterior(shape, h=0.1).cdf(np.exp(x)), marginal(shape).cdf(x), atol=1e-3
        )

    def test_cdf_between_lobes_is_the_share_of_the_near_one(self):
        assert posterior("lobes").cdf(np.array([0.08])) == pytest.approx(1 / 3, abs=1e-5)

    @pytest.mark.parametrize("shape", SHAPES)
    def test_cdf_undoes_quantiles(self, shape):
        p = posterior(shape)
        np.testing.assert_allclose(p.cdf(p.quantile(LEVELS)), LEVELS[None], atol=1e-9)

    @pytest.mark.parametrize("shape", ["normal", "leaning", "skewed"])
    def test_log_pdf(self, shape):
        x = X + S * np.linspace(-0.5, 3.0, 23)[None]
        expected = marginal(shape).logpdf(x)
        np.testing.assert_allclose(posterior(shape).log_pdf(np.exp(x)), expected, atol=0.02)

    def test_outside_the_grid(self):
        p = posterior("strip")
        rho = np.array([[1e-4, 2.0, np.nan]])
        np.testing.assert_allclose(p.cdf(rho), [[0.0, 1.0, np.nan]], rtol=1e-12)
        np.testing.assert_array_equal(p.log_pdf(rho), [[-np.inf, -np.inf, np.nan]])

    def test_a_step_in_the_prior_makes_no_overshoot(self):
        p = posterior("strip")
        p = p.with_log_prior(np.where(p.rho < 0.1, p.log_prior, p.log_prior - 12.0))
        rho = np.geomspace(0.011, 0.09, 300)[None]
        np.testing.assert_allclose(p.log_pdf(rho), np.log(1.0 / np.log(10.0)), atol=0.06)


class TestRegion:
    @pytest.mark.parametrize("level", [0.1, 0.68, 0.95])
    def test_of_a_normal_one_is_central(self, level):
        arc, bounds = posterior("normal").region(level)
        np.testing.assert_array_equal(arc, [0])
        half = norm.ppf(0.5 + level / 2.0)
        np.testing.assert_allclose((np.log(bounds[0]) - X) / S, [-half, half], atol=1e-3)

    @pytest.mark.parametrize("shape", ["normal", "leaning", "skewed", "lobes"])
    @pytest.mark.parametrize("level", [0.3, 0.68, 0.95])
    def test_holds_its_share_above_all_that_is_outside(self, shape, level):
        p = posterior(shape)
        _, bounds = p.region(level)
        mass = p.cdf(bounds.reshape(1, -1)).reshape(-1, 2)
        assert np.diff(mass, axis=1).sum() == pytest.approx(level, abs=1e-4)
        at_ends = p.log_pdf(bounds.reshape(1, -1))
        np.testing.assert_allclose(at_ends, at_ends[0, 0], atol=1e-6)

    def test_of_two_lobes_is_in_two_pieces(self):
        p = posterior("lobes")
        assert len(p.region(0.95)[0]) == 2
        # two lobes of one width and 1 to 2: the near one begins to show above half the far top
        top = (2 * norm.cdf(np.sqrt(2 * np.log(2))) - 1) * 2 / 3
        assert len(p.region(top - 0.02)[0]) == 1
        assert len(p.region(top + 0.02)[0]) == 2
        near, far = p.region(0.95)[1]
        assert near[0] < 0.02 < near[1] < far[0] < 0.3 < far[1]

    def test_gaps_narrower_than_a_column_are_closed(self):
        p = posterior("normal")
        column = np.unique(p.rho)[30]
        p = p.with_log_prior(np.where(p.rho == column, -np.inf, p.log_prior))
        assert len(p.region(0.68)[0]) == 1


class TestRate:
    @pytest.mark.parametrize("shape", ["normal", "leaning", "skewed"])
    def test_quantiles(self, shape):
        expected = norm.ppf(LEVELS, RATE, SIGMA)
        error = posterior(shape, h=0.1).rate_quantile(LEVELS)[0] - expected
        assert np.abs(error).max() < 2e-3 * SIGMA

    def test_of_a_strip(self):
        found = posterior("strip").rate_quantile(LEVELS)[0]
        np.testing.assert_allclose(found, -0.01 + 0.02 * LEVELS, atol=1e-6)

    def test_joint_density(self):
        p = posterior("leaning")
        z = np.random.default_rng(3).normal(size=(2, 50))
        x = X + S * z[0]
        rate = RATE + SIGMA * (0.95 * z[0] + np.sqrt(1 - 0.95**2) * z[1])
        both = 0.95 * S * SIGMA
        law = multivariate_normal([X, RATE], [[S**2, both], [both, SIGMA**2]])
        found = p.log_pdf(np.exp(x)[None], rate[None])[0]
        np.testing.assert_allclose(found, law.logpdf(np.stack([x, rate], axis=1)), atol=0.02)
        assert p.log_pdf(np.exp(x[:1])[None], rate[:1][None] + 1.0) == -np.inf


class TestSums:
    def test_weights_add_up_to_one(self, several):
        total = np.bincount(several.arc, several.weights, len(several))
        np.testing.assert_allclose(total, [1, 1, 0, 1, 1, 1])

    @pytest.mark.parametrize("shape", SHAPES)
    def test_evidence_of_a_density_is_one(self, shape):
        assert posterior(shape).log_evidence == pytest.approx(0.0, abs=1e-5)

    def test_moments(self):
        p = posterior("leaning")
        mean, variance = np.exp(X + S**2 / 2), (np.exp(S**2) - 1) * np.exp(2 * X + S**2)
        np.testing.assert_allclose(p.mean, [[mean, RATE]], rtol=1e-6)
        np.testing.assert_allclose(p.covariance[0, 0, 0], variance, rtol=1e-5)
        np.testing.assert_allclose(p.covariance[0, 1, 1], SIGMA**2, rtol=1e-5)
        # of a normal z, cov(exp(S z), z) = S mean
        np.testing.assert_allclose(p.covariance[0, 0, 1], 0.95 * SIGMA * S * mean, rtol=1e-4)

    def test_mode_is_the_summit_in_range_and_rate(self):
        """Of the density in rho, not ln rho: one factor less of rho."""
        for h in (0.2, 0.37):
            rho, rate = posterior("normal", h).mode[0]
            assert np.log(rho) == pytest.approx(X - S**2, abs=1e-3 * S)
            assert rate == pytest.approx(RATE, abs=1e-3 * SIGMA)

    def test_average_of_flags_is_their_probability(self):
        p = posterior("lobes")
        assert p.average(p.rho < 0.08) == pytest.approx(1 / 3, abs=1e-6)

    def test_effective_nodes(self):
        # of weights exp(-t^2 / 2) in two dimensions, 4 pi in units of the cells
        assert posterior("normal", 0.2).effective_nodes == pytest.approx(4 * np.pi / 0.04)
        assert posterior("strip").effective_nodes == pytest.approx(1600)

    def test_another_prior_is_another_posterior(self):
        p = posterior("normal")
        tilted = p.with_log_prior(p.log_prior + 2.0 * np.log(p.rho))
        # a normal law tilted by exp(2 x) is shifted by twice its variance
        assert np.log(tilted.quantile(0.5)) == pytest.approx(X + 2 * S**2, abs=1e-3 * S)
        expected = 2 * X + 2 * S**2
        assert tilted.log_evidence - p.log_evidence == pytest.approx(expected, abs=1e-6)

    def test_a_prior_that_rules_all_out_leaves_none(self, several):
        p = several.with_log_prior(np.where(several.arc == 1, -np.inf, several.log_prior))
        assert np.isnan(p.quantile(0.5)[[1, 2]]).all()
        assert np.isnan(p.mean[[1, 2]]).all()
        assert np.isnan(p.draw(3, np.random.default_rng(0))[0][[1, 2]]).all()
        np.testing.assert_array_equal(p.quantile(0.5)[3:], several.quantile(0.5)[3:])


class TestDraws:
    @pytest.mark.parametrize("shape", ["normal", "leaning", "skewed", "lobes"])
    def test_follow_the_posterior(self, shape):
        p, n = posterior(shape), 20_000
        rho, rate = p.draw(n, np.random.default_rng(5))
        ranks = np.sort(p.cdf(rho)[0])
        assert np.abs(ranks - (np.arange(n) + 0.5) / n).max() < 1.63 / np.sqrt(n)
        z = np.sort(rate[0])
        assert np.abs(norm.cdf(z, RATE, SIGMA) - (np.arange(n) + 0.5) / n).max() < 2.0 / np.sqrt(n)

    def test_lean_with_their_columns(self):
        rho, rate = posterior("leaning", 0.5).draw(50_000, np.random.default_rng(6))
        correlation = np.corrcoef(np.log(rho[0]), rate[0])[0, 1]
        assert correlation == pytest.approx(0.95, abs=0.003)

    def test_none(self, several):
        assert several.draw(0, np.random.default_rng(0))[0].shape == (6, 0)


class TestArcs:
    @pytest.mark.parametrize("index", [[0], [2], [5, 5, 2, 0], [], [4, 3, 2, 1, 0]])
    def test_many_are_each_alone(self, several, index):
        some = several.take(np.array(index, dtype=np.int64))
        for name in ("log_evidence", "mean", "covariance", "mode", "effective_nodes"):
            expected = getattr(several, name)[index]
            np.testing.assert_allclose(getattr(some, name), expected, rtol=1e-12, atol=1e-300)
        np.testing.assert_allclose(some.quantile(LEVELS), several.quantile(LEVELS)[index])
        np.testing.assert_allclose(
            some.rate_quantile(LEVELS), several.rate_quantile(LEVELS)[index], atol=1e-12
        )
        assert some.quantile(0.5).shape == (len(index),)
        assert some.rate_quantile(0.5).shape == (len(index),)
        arc, bounds = several.region(0.95)
        pieces = [bounds[arc == k] for k in index]
        np.testing.assert_allclose(some.region(0.95)[1], np.concatenate([*pieces, bounds[:0]]))

    def test_spread_and_join(self, several):
        wide = several.spread(np.array([7, 1, 3, 0, 2, 5]), 8)
        np.testing.assert_array_equal(np.isnan(wide.mean[:, 0]), np.isin(np.arange(8), [3, 4, 6]))
        np.testing.assert_array_equal(wide.mean[[7, 1, 3, 0, 2, 5]], several.mean)
        twice = Posterior.join([several, several])
        np.testing.assert_allclose(twice.mean, np.tile(several.mean, (2, 1)), rtol=1e-12)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(-30.0, 5.0), min_size=1, max_size=25),
    st.integers(0, 2**31),
    st.floats(0.01, 0.99),
)
def test_holds_of_any_grid(values, seed, level):
    """Columns of any widths, with gaps, and steps of the density by any factor."""
    rng = np.random.default_rng(seed)
    n = len(values)
    width = rng.uniform(0.01, 0.3, n)
    x = -4.0 + np.cumsum(width + np.where(rng.random(n) < 0.2, 0.5, 0.0)) - 0.5 * width
    p = Posterior(
        np.array([0, n]),
        np.exp(x),
        rng.normal(size=n),
        width,
        np.full(n, 0.1),
        np.array(values),
        -x,
    )
    rho = p.quantile(LEVELS)
    assert (np.diff(rho) >= 0.0).all()
    np.testing.assert_allclose(p.cdf(rho), LEVELS[None], atol=1e-6)
    _, bounds = p.region(level)
    assert (bounds[:, 0] <= bounds[:, 1]).all()
    assert (bounds[1:, 0] > bounds[:-1, 1]).all()
    held = np.diff(p.cdf(bounds.reshape(1, -1)).reshape(-1, 2), axis=1).sum()
    assert held >= level - 1e-6
    drawn = p.draw(50, rng)[0]
    assert ((drawn >= np.exp(x[0] - width[0])) & (drawn <= np.exp(x[-1] + width[-1]))).all()
