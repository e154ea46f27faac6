"""The posterior that a network begins, beside that of systematic ranging which knows no network."""

import numpy as np
import pytest
import torch
from astropy import units as u
from scipy.stats import binom

import neoranging as nr
from neoranging.arguments import check_count
from neoranging.core.status import RangeStatus
from neoranging.estimators import PosteriorEstimator, SystematicRangingEstimator, get_estimator
from neoranging.estimators.network_inputs import arc_inputs
from neoranging.exceptions import NeoRangingError, NotTrainedError
from neoranging.lab.training.network import TrainableNetwork
from neoranging.nn import checkpoint
from neoranging.nn.network import NetworkConfig

SMALL = NetworkConfig(width=16, blocks=1, root=True, output="mixture", components=4)
LEVELS = np.linspace(0.01, 0.99, 99)


@pytest.fixture(scope="module")
def nights(simulate):
    """Tracklets of one to two hours, from two observations on."""
    s = simulate(60, 0.06, seed=17, n_observations=(2, 7))
    return s.with_noise(np.random.default_rng(17), 0.3)


@pytest.fixture(scope="module")
def weights(nights, tmp_path_factory):
    """Files of networks that were never trained: one about the truth, others about nonsense."""
    folder = tmp_path_factory.mktemp("densities")
    files = {}
    for name, factor in (("fair", 1.0), ("near", 1e-2), ("sharp", 30.0)):
        torch.manual_seed(1)
        network = TrainableNetwork(SMALL)
        inputs = arc_inputs(nights.tracklets().arcs("topocenter"), root=True)
        narrow = factor if factor < 1.0 else 1.0
        network.fit(inputs, narrow * nights.rho, nights.rho_dot)
        if name == "sharp":
            with torch.no_grad():  # all components as narrow as they come, and beside the truth
                bias = network.get_parameter("heads.0.bias")
                k = SMALL.components
                bias[k : 3 * k], bias[3 * k : 5 * k] = 2.5, -7.0
        files[name] = folder / f"{name}.safetensors"
        card = {"model": "posterior", "representation": "invariant"}
        checkpoint.save(network.exported(), files[name], card)
    return files


def distance(one, other):
    """Kolmogorov distances between marginals of the range, by arc."""
    a, b = np.log(one.quantile(LEVELS)), np.log(other.quantile(LEVELS))
    inside = [np.interp(x, y, LEVELS, left=0.0, right=1.0) for x, y in zip(a, b, strict=True)]
    return np.abs(np.array(inside) - LEVELS).max(axis=1)


def posteriors(estimator, nights):
    return estimator.estimate(nights.tracklets())._posterior


class TestExact:
    @pytest.mark.parametrize("prior", ["population", "log-uniform"])
    @pytest.mark.parametrize("name", ["fair", "near", "sharp"])
    def test_whatever_the_network_says(self, nights, weights, name, prior):
        estimator = PosteriorEstimator(prior, weights=weights[name])
        expected = posteriors(SystematicRangingEstimator(prior), nights)
        off = distance(posteriors(estimator, nights), expected)
        assert np.quantile(off, 0.8) < 0.06
        assert off.max() < 0.3

    def test_it_is_less_work(self, nights, weights):
        estimator = PosteriorEstimator("catalogue", weights=weights["fair"])
        full = posteriors(SystematicRangingEstimator("catalogue"), nights)
        assert len(posteriors(estimator, nights).rho) < 0.75 * len(full.rho)

    def test_the_status_is_that_of_the_posterior(self, nights, weights):
        tracklets = nights.tracklets()
        own = PosteriorEstimator(weights=weights["fair"]).estimate(tracklets)
        full = SystematicRangingEstimator().estimate(tracklets)
        assert np.mean(own.status == full.status) > 0.9
        assert (own.method, own.origin) == ("posterior", "topocenter")
        low, high = own.interval(0.9).T
        assert ((low < own.range) & (own.range < high)).all()

    def test_intervals_hold_the_truth(self, simulate, weights):
        s = simulate(300, 0.06, seed=23, n_observations=(3, 7))
        night = s.with_noise(np.random.default_rng(23), 0.3).tracklets()
        estimate = PosteriorEstimator("catalogue", weights=weights["fair"]).estimate(night)
        reference = SystematicRangingEstimator("catalogue").estimate(night)
        counts = []
        for one in (estimate, reference):
            low, high = one.interval(0.9).to_value(u.au).T
            counts.append(int(np.sum((low < s.rho) & (s.rho < high))))
        # of the simulated population the prior is a guess: both are as right as each other
        spread = binom.ppf([0.001, 0.999], 300, counts[1] / 300)
        assert spread[0] <= counts[0] <= spread[1]

    def test_a_night_is_not_changed_by_another(self, nights, weights):
        tracklets = nights.tracklets()
        estimator = PosteriorEstimator(weights=weights["fair"])
        together = estimator.estimate(tracklets).range
        alone = [estimator.estimate(tracklets[k]).range.value for k in (0, 7, 31)]
        np.testing.assert_allclose(together[[0, 7, 31]].value, alone, rtol=1e-6)

    def test_where_the_proposal_is_of_no_use_systematic_ranging_takes_over(
        self, nights, weights, monkeypatch
    ):
        monkeypatch.setattr("neoranging.estimators.posterior._LEAST_NODES", 1e9)
        estimator = PosteriorEstimator(weights=weights["fair"])
        estimate = estimator.estimate(nights.tracklets())
        full = SystematicRangingEstimator().estimate(nights.tracklets())
        np.testing.assert_array_equal(estimate.range, full.range)
        assert all("systematic ranging took over" in text for text in estimate.diagnostics)

    def test_arcs_are_handed_over_one_by_one(self, nights, weights, monkeypatch):
        tracklets = nights.tracklets()
        estimator = PosteriorEstimator(weights=weights["fair"])
        before = posteriors(estimator, nights)
        bound = np.median(before.effective_nodes)
        monkeypatch.setattr("neoranging.estimators.posterior._LEAST_NODES", bound)
        estimate = estimator.estimate(tracklets)
        full = SystematicRangingEstimator().estimate(tracklets)
        poor = before.effective_nodes < bound
        assert 0 < poor.sum() < len(poor)
        np.testing.assert_allclose(estimate.range[poor], full.range[poor], rtol=1e-9)
        expected = before.quantile(0.5)[~poor]
        np.testing.assert_allclose(estimate.range[~poor].value, expected, rtol=1e-12)
        np.testing.assert_array_equal(estimate.diagnostics != "", poor)

    def test_a_function_as_prior_has_the_columns_of_systematic_ranging(self, nights, weights):
        def inner(orbits):
            return 1.0 * (orbits.q < 0.9 * u.au)

        ours = posteriors(PosteriorEstimator(inner, weights=weights["sharp"]), nights)
        theirs = posteriors(SystematicRangingEstimator(inner), nights)
        np.testing.assert_array_equal(ours.rho, theirs.rho)
        np.testing.assert_allclose(ours.weights, theirs.weights, rtol=1e-9)


class TestDraws:
    def test_are_of_the_density(self, nights, weights):
        estimator = PosteriorEstimator(weights=weights["fair"])
        tracklets = nights.tracklets()
        rho, rho_dot = estimator.draw(tracklets, 4000, rng=1)
        assert rho.shape == rho_dot.shape == (len(tracklets), 4000)
        assert rho.unit == u.au
        assert rho_dot.unit == u.au / u.d
        # columns of the posterior stand at quantiles of the same density: shares that lie nearer
        columns = estimator._columns(tracklets.arcs("topocenter"))
        levels = np.mean(np.log(rho.value)[:, :, None] < columns[:, None], axis=1)
        expected = np.sort(levels, axis=1)[:, ::-1]
        np.testing.assert_allclose(levels, expected)  # from far to near
        median = np.abs(levels - 0.5).min(axis=1)
        assert (median < 0.04).all()  # 5 standard deviations of 4000 draws

    def test_repeat_with_their_seed(self, nights, weights):
        estimator = PosteriorEstimator(weights=weights["fair"])
        one = nights.tracklets()[0]
        (a, _), (b, _), (c, _) = (estimator.draw(one, 5, rng=seed) for seed in (1, 1, 2))
        assert a.shape == (5,)
        np.testing.assert_array_equal(a, b)
        assert (a != c).all()

    @pytest.mark.filterwarnings("ignore::neoranging.exceptions.NeoRangingWarning")
    def test_of_what_cannot_be_ranged_are_none(self, nights, weights):
        tracklets = nights.tracklets()
        one = tracklets[0]
        bare = nr.Tracklet(one.obstime, one.coord, station="250")  # a spacecraft, at no place
        both = nr.TrackletSet.from_tracklets([bare, one])
        estimator = PosteriorEstimator(weights=weights["fair"])
        rho, _ = estimator.draw(both, 3, rng=1)
        answer = estimator.estimate(both)
        assert np.isnan(rho[0]).all()
        assert (rho[1] > 0.0 * u.au).all()
        assert answer.status[0] == RangeStatus.UNKNOWN_OBSERVER

    def test_a_count_that_is_none(self, nights, weights):
        with pytest.raises(NeoRangingError) as expected:
            check_count("n", 0)
        with pytest.raises(NeoRangingError, match=str(expected.value)):
            PosteriorEstimator(weights=weights["fair"]).draw(nights.tracklets(), 0, rng=1)


class TestOptions:
    def test_by_a_file_and_words(self, weights):
        estimator = get_estimator(f"{weights['fair']}@catalogue")
        assert isinstance(estimator, PosteriorEstimator)
        assert estimator.prior == "catalogue"
        assert estimator.card["model"] == "posterior"
        other = PosteriorEstimator("catalogue", weights=weights["near"])
        assert estimator.identity != other.identity

    def test_the_centre_of_the_earth(self, nights, weights):
        tracklets, options = nights.tracklets(), {"origin": "geocenter"}
        begun = PosteriorEstimator(weights=weights["fair"], **options).estimate(tracklets)
        full = SystematicRangingEstimator(**options).estimate(tracklets)
        assert begun.origin == "geocenter"
        assert np.median(distance(begun._posterior, full._posterior)) < 0.06

    def test_weights_of_another_method(self, weights, tmp_path):
        network, card = checkpoint.load(weights["fair"])
        checkpoint.save(network, tmp_path / "other.safetensors", {**card, "model": "mlp"})
        with pytest.raises(NotTrainedError, match="was trained as 'mlp'"):
            _ = PosteriorEstimator(weights=tmp_path / "other.safetensors").card

    def test_no_such_file(self, tmp_path):
        with pytest.raises(NotTrainedError, match="no weights at"):
            _ = PosteriorEstimator(weights=tmp_path / "none.safetensors").identity
