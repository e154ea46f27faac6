"""What an estimate with a posterior says, with units: samples, regions, probabilities."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from astropy import units as u
from astropy.table import QTable
from made_posteriors import SHAPES, posterior

import neoranging as nr
from neoranging.constants import ARCSEC
from neoranging.core.admissible import absolute_magnitude, is_admissible
from neoranging.core.answers import Answers
from neoranging.core.posterior import Posterior
from neoranging.core.posterior_orbits import drawn
from neoranging.core.status import RangeStatus
from neoranging.exceptions import EstimationError, OrbitError

AU_D = u.au / u.d
LEVELS = np.array([0.1, 0.5, 0.9])


@pytest.fixture(scope="module")
def tracklets(simulate):
    """Six tracklets with a wide admissible region, of magnitude 20 but the last."""
    many = simulate(60, 1.0, seed=31, n_observations=4)
    eta = many.tracklets().estimate("gauss").attributable.proper_motion.to_value(u.deg / u.d)
    return many.tracklets()[np.argsort(eta)[20:26]]


@pytest.fixture(scope="module")
def estimate(tracklets):
    """One of each shape, and a last one without a posterior."""
    attributables = tracklets.estimate("gauss")._answers.attributables
    parts = [admissible_part(attributables, k, posterior(s)) for k, s in enumerate(SHAPES)]
    nights = Posterior.join([*parts, Posterior.none(1)])
    status = np.full(6, RangeStatus.POPULATION.code)
    status[5] = RangeStatus.TOO_FEW_OBSERVATIONS.code
    rho, rho_dot = nights.quantile(0.5), nights.mean[:, 1]
    answers = Answers.of(attributables, rho, rho_dot, status)
    answers = replace(answers, posterior=nights, method="synthetic")
    return nr.RangeEstimate(answers, tracklets)


def admissible_part(attributables, k, night):
    """The nodes of a posterior that are admissible for arc ``k``."""
    c = attributables.energy_coefficients[k]
    inside = is_admissible(c, night.rho, night.rho_dot)
    return night.with_log_prior(np.where(inside, night.log_prior, -np.inf))


@pytest.fixture(scope="module")
def one(estimate):
    return estimate[0]


class TestIntervals:
    def test_leave_the_same_out_on_both_sides(self, one):
        low, high = one.interval(0.9)
        assert one.cdf(low) == pytest.approx(0.05)
        assert one.cdf(high) == pytest.approx(0.95)
        assert u.isclose(one.quantile(0.05), low)

    def test_are_within_the_admissible_region(self, estimate):
        bounds, limits = estimate.interval(1.0 - 1e-12), estimate._answers.limits * u.au
        assert (bounds[:, 0] >= limits[:, 0]).all()
        assert (bounds[:, 1] <= limits[:, 1]).all()
        np.testing.assert_array_equal(bounds[5], limits[5])  # without a posterior

    def test_of_the_rate(self, estimate):
        bounds = estimate.interval(0.95, of="range_rate")
        assert bounds.unit == AU_D
        limits = estimate._answers.attributables.rate_limits
        np.testing.assert_array_equal(bounds[5].value, limits[5])
        assert (np.diff(bounds.value, axis=1)[:5] < np.diff(limits, axis=1)[:5]).all()

    def test_of_the_rate_with_a_calibration_of_the_range_alone(self, estimate):
        """The range is the calibration's, the range-rate stays that of the posterior."""
        m = len(estimate)
        answers = replace(estimate._answers, rho=np.full(m, 0.5))
        made = nr.Calibration.fit(answers, np.full(m, 0.05), np.full(m, 0.5))
        around = nr.RangeEstimate(estimate._answers, estimate._tracklets, made)
        rates = (each.interval(0.68, of="range_rate") for each in (around, estimate))
        np.testing.assert_array_equal(next(rates), next(rates))
        assert (around.interval(0.68) != estimate.interval(0.68)).any()

    def test_of_the_rate_without_a_posterior(self, tracklets):
        classical = tracklets.estimate("gauss")
        bounds = classical.interval(0.68, of="range_rate", calibrated=False)
        limits = classical._answers.rate_limits
        half = 0.994458 * classical.range_rate_error.value
        ok = classical.ok & np.isfinite(half)
        np.testing.assert_array_equal(bounds.value[~ok], limits[~ok])
        low = np.fmax(classical.range_rate.value - half, limits[:, 0])
        np.testing.assert_allclose(bounds.value[ok, 0], low[ok], rtol=1e-5)

    def test_admissible_rates_enclose_those_of_the_region(self, tracklets):
        attributable = tracklets.estimate("gauss").attributable
        limits = attributable._arrays.rate_limits
        for k in range(len(tracklets)):
            ends = attributable[k].admissible_region().range_rate_limits()
            np.testing.assert_allclose(limits[k], [end.to_value(AU_D) for end in ends], rtol=1e-6)

    @pytest.mark.parametrize("level", [0.0, 68, True])
    def test_levels_that_are_none(self, one, level):
        for method in (one.credible_region, one.interval):
            with pytest.raises(EstimationError, match="level must"):
                method(level)

    def test_regions(self, estimate):
        regions = estimate.credible_region(0.95)
        assert [len(region) for region in regions] == [1, 1, 1, 2, 1, 0]
        for k, region in enumerate(regions):
            np.testing.assert_array_equal(estimate[k].credible_region(0.95), region)
            held = sum(estimate[k].cdf(high) - estimate[k].cdf(low) for low, high in region)
            assert held >= (0.9499 if k < 5 else 0)

    def test_table_and_summary_have_the_interval(self, estimate):
        table = QTable(estimate)
        bounds = np.stack([table["range_low"], table["range_high"]], axis=1)
        np.testing.assert_array_equal(bounds, estimate.interval(0.68))
        low, high = estimate[0].interval(0.68).value
        assert f"{low:.4g} to {high:.4g} au" in estimate[0]._repr_html_()


class TestCurves:
    def test_density_integrates_to_the_distribution(self, one):
        rho = np.geomspace(0.01, 0.2, 20_001) * u.au
        pdf = one.pdf(rho)
        assert pdf.unit == 1 / u.au
        total = np.trapezoid(pdf, rho).to_value(u.one)
        assert total == pytest.approx(one.cdf(0.2 * u.au) - one.cdf(0.01 * u.au), abs=1e-6)

    def test_shapes(self, one, estimate):
        assert one.quantile(0.5).shape == ()
        assert one.quantile(LEVELS).shape == (3,)
        assert estimate.quantile(0.5).shape == (6,)
        assert estimate.quantile(LEVELS).shape == (6, 3)
        assert one.pdf(np.ones((2, 3)) * u.au).shape == (2, 3)
        assert estimate.cdf(1e5 * u.km).shape == (6,)
        assert estimate.pdf(np.ones((6, 3)) * u.au).shape == (6, 3)
        with pytest.raises(EstimationError, match="a row for each"):
            estimate.pdf(np.ones(4) * u.au)
        with pytest.raises(EstimationError, match="unit"):
            estimate.pdf(0.1)
        with pytest.raises(EstimationError, match="between 0 and 1"):
            one.quantile(95)

    def test_many_are_each_alone(self, estimate):
        rho = estimate.range
        for k in range(6):
            alone = estimate[k]
            np.testing.assert_array_equal(alone.cdf(rho[k]), estimate.cdf(rho)[k])
            np.testing.assert_array_equal(alone.quantile(LEVELS), estimate.quantile(LEVELS)[k])
            np.testing.assert_array_equal(alone.interval(), estimate.interval()[k])
            rates = (each.interval(of="range_rate").value for each in (alone, estimate))
            np.testing.assert_allclose(next(rates), next(rates)[k], atol=1e-12)
            np.testing.assert_array_equal(alone.evidence, estimate.evidence[k])
            np.testing.assert_array_equal(alone.mode[0], estimate.mode[0][k])
            np.testing.assert_array_equal(alone.absolute_magnitude, estimate.absolute_magnitude[k])
            np.testing.assert_allclose(alone.probability("neo"), estimate.probability("neo")[k])

    def test_survive_an_index_and_pickling(self, estimate):
        again = pickle.loads(pickle.dumps(estimate[[3, 5, 0]]))
        np.testing.assert_array_equal(again.quantile(0.9), estimate.quantile(0.9)[[3, 5, 0]])


class TestSamples:
    def test_of_one(self, one):
        samples = one.samples(500, 1)
        assert samples.shape == (500,)
        assert samples.r.shape == (500, 3)
        assert samples.epoch.shape == (500,)
        assert samples.weights.sum() == pytest.approx(1.0)
        assert samples.elements.is_elliptic.all()
        delay = (one.epoch - samples.epoch).to_value(u.d) * 173.1446
        np.testing.assert_allclose(delay, samples.range.value, rtol=1e-4)
        assert repr(samples) == "<OrbitSamples: 500 orbits>"

    def test_of_many(self, estimate):
        samples = estimate.samples(20, np.random.default_rng(3))
        assert samples.shape == (6, 20)
        assert samples[2].shape == (20,)
        assert samples[:, :5].r.shape == (6, 5, 3)
        assert samples[2, 7].shape == ()
        assert "elliptic" in repr(samples[2, 7]) or "OrbitalElements a=" in repr(samples[2, 7])
        np.testing.assert_array_equal(samples[2].r, samples.r[2])
        assert np.isfinite(samples.r[:5]).all()
        assert np.isnan(samples.r[5]).all()
        assert len(QTable(samples)) == 120
        assert repr(samples) == "<OrbitSamples: 20 orbits of each of 6 tracklets>"

    def test_all_are_admissible(self, estimate):
        samples = estimate.samples(400, 5)
        for k in range(5):
            region = estimate[k].attributable.admissible_region()
            assert region.contains(samples.range[k], samples.range_rate[k]).all()

    def test_follow_the_posterior(self, one):
        ranks = np.sort(one.cdf(one.samples(4000, 2).range))
        assert np.abs(ranks - (np.arange(4000) + 0.5) / 4000).max() < 1.9 / np.sqrt(4000)

    def test_same_seed_same_orbits(self, one):
        np.testing.assert_array_equal(one.samples(9, 4).r, one.samples(9, 4).r)

    def test_none(self, estimate):
        assert estimate.samples(0, 1).shape == (6, 0)

    def test_state_is_that_of_the_attributable(self, one):
        samples = one.samples(5, 1)
        position, velocity, epoch = one.attributable.state(samples.range, samples.range_rate)
        np.testing.assert_allclose(samples.r.value, position.value, atol=1e-12)
        np.testing.assert_allclose(samples.v.value, velocity.value, atol=1e-12)
        assert (samples.epoch - epoch).to_value(u.s) == pytest.approx(0.0, abs=1e-6)

    def test_take_the_fit_to_the_observations_and_its_errors(self, estimate):
        """A refit that moves all by 5 arcsec to the east, give or take one."""

        def refit(row, rho, rho_dot, rng):
            change = np.zeros((len(row), 4))
            change[:, 0] = rng.normal(5 * ARCSEC, ARCSEC, len(row))
            return change

        s = estimate._answers
        rng = np.random.default_rng(8)
        rho, _, orbits = drawn(s, s.posterior, 3000, rng, refit)
        a = s.attributables
        sight = (orbits.r[:3000] - a.position[0]) / rho[0][:, None]
        east = np.array([-np.sin(a.ra[0]), np.cos(a.ra[0]), 0.0])
        offset = sight @ east / ARCSEC
        assert offset.mean() == pytest.approx(5.0, abs=0.08)
        assert offset.std() == pytest.approx(1.0, abs=0.05)


class TestProbabilities:
    def test_of_classes_add_up(self, estimate):
        parts = [estimate.probability(name) for name in ("atira", "aten", "apollo", "amor")]
        np.testing.assert_allclose(sum(parts), estimate.probability("neo"), atol=1e-12)
        assert np.isnan(estimate.probability("neo")[5])

    def test_agree_with_samples(self, one):
        samples = one.samples(4000, 11)
        for statement in ("aten", "apollo", "moid<0.05"):
            p = one.probability(statement)
            flags = {
                "aten": lambda e: (e.a < 1 * u.au) & (e.a * (1 + e.ecc) >= 0.983 * u.au),
                "apollo": lambda e: (e.a >= 1 * u.au) & (e.q < 1.017 * u.au),
                "moid<0.05": lambda e: e.earth_moid() < 0.05 * u.au,
            }[statement]
            share = np.mean(flags(samples.elements))
            assert p == pytest.approx(share, abs=4 * np.sqrt(0.25 / 4000))
            assert one.probability(flags) == pytest.approx(p, abs=1e-12)

    def test_of_what_is_always_true(self, one):
        assert one.probability(lambda elements: elements.is_elliptic) == pytest.approx(1.0)
        assert one.probability(lambda elements: 0.25) == pytest.approx(0.25)

    def test_statements_that_are_none(self, one):
        with pytest.raises(OrbitError, match="did you mean 'apollo'"):
            one.probability("apolo")
        with pytest.raises(EstimationError, match="a flag for each"):
            one.probability(lambda elements: np.ones(3))

    def test_absolute_magnitude(self, estimate, monkeypatch):
        """Of magnitudes 19 and 21 of the first tracklet, of no magnitudes of the others."""
        arcs = estimate._arcs
        mag = np.full(len(arcs.t), np.nan)
        mag[:2] = 19.0, 21.0
        known = replace(arcs, mag=mag)
        monkeypatch.setattr(type(estimate), "_arcs", property(lambda self: known))
        found = estimate.absolute_magnitude
        assert found.unit == u.mag
        np.testing.assert_array_equal(np.isfinite(found), np.arange(6) == 0)
        c = estimate._answers.attributables.energy_coefficients[0]
        at_median = absolute_magnitude(c, estimate.range[0].value, 20.0)
        assert found[0].value == pytest.approx(at_median, abs=0.02)
        drawn_ones = estimate.samples(4000, 1).absolute_magnitude
        assert np.median(drawn_ones[0].value) == pytest.approx(found[0].value, abs=0.1)
        assert np.isnan(drawn_ones[1:]).all()

    def test_absolute_magnitude_without_a_posterior_is_at_the_range(self):
        night = nr.read_tracklets(nr.sample("impactors"))[1].estimate("gauss")
        v = np.nanmean(night._tracklets.arcs().mag)
        c = night._answers.attributables.energy_coefficients[0]
        expected = absolute_magnitude(c, night.range.value, v)
        assert night.absolute_magnitude.value == pytest.approx(float(expected))

    def test_evidence_and_mode(self, estimate):
        assert estimate.evidence.shape == (6,)
        rho, rho_dot = estimate.mode
        assert rho.unit == u.au
        assert rho_dot.unit == AU_D


class TestOthers:
    @pytest.mark.parametrize(
        "ask",
        [
            lambda e: e.samples(3, 1),
            lambda e: e.credible_region(0.68),
            lambda e: e.pdf(0.1 * u.au),
            lambda e: e.cdf(0.1 * u.au),
            lambda e: e.quantile(0.5),
            lambda e: e.mode,
            lambda e: e.evidence,
            lambda e: e.probability("neo"),
        ],
    )
    def test_without_a_posterior_name_the_method_that_has_one(self, tracklets, ask):
        with pytest.raises(EstimationError, match='method="systematic"'):
            ask(tracklets.estimate("gauss"))
