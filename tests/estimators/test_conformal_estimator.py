"""Any estimator with calibrated intervals, and the calibrations that come with the package."""

import dataclasses

import numpy as np
import pytest
from astropy import units as u

import neoranging as nr
from neoranging import calibration as conformal
from neoranging.calibration import Calibration
from neoranging.core.answers import Answers
from neoranging.estimators import base as estimator_base
from neoranging.estimators.conformal import ConformalEstimator
from neoranging.estimators.gauss import GaussEstimator
from neoranging.estimators.laplace import LaplaceEstimator
from neoranging.estimators.mlp import MLPEstimator
from neoranging.exceptions import ConformalError, EstimationError, NotTrainedError
from neoranging.nn import checkpoint


class Constant(nr.RangingEstimator):
    """The same range for everything, and OK with it; a tenth of the arcs get no answer."""

    name = "constant"
    min_observations = 2

    def __init__(self, rho=0.2, **options):
        super().__init__(**options)
        self.rho = rho

    @property
    def identity(self):
        return {**super().identity, "rho": self.rho}

    def _estimate(self, arcs, attributables):
        silent = np.modf(np.abs(attributables.ra) * 1e4)[0] < 0.1
        rho = np.where(silent, np.nan, self.rho)
        status = np.where(silent, nr.RangeStatus.NO_ROOT.code, nr.RangeStatus.OK.code)
        return Answers.of(attributables, rho, 0.0 * rho, status)


@pytest.fixture(scope="module")
def known(simulate):
    return simulate(1_500, 0.1, seed=801)


@pytest.fixture(scope="module")
def new(simulate):
    return simulate(1_500, 0.1, seed=802)


RATE = u.au / u.d


def calibrated(estimator, s, **options):
    made = ConformalEstimator(estimator, **options)
    return made.calibrate(s.tracklets(), s.rho * u.au, s.rho_dot * RATE)


class TestEstimator:
    @pytest.mark.parametrize("level", [0.68, 0.95])
    @pytest.mark.parametrize("score", ["log", "absolute", None])
    def test_intervals_of_a_method_that_knows_nothing_hold(self, known, new, level, score):
        made = calibrated(Constant(), known, score=score)
        estimate = new.tracklets().estimate(made)
        low, high = estimate.interval(level).value.T
        inside = (low <= new.rho) & (new.rho <= high)
        n = estimate.ok.sum()
        bound = 5.0 * np.sqrt(2.0 * level * (1.0 - level) / n)  # of two samples of n
        assert abs(inside[estimate.ok].mean() - level) < bound
        silent = ~estimate.ok
        assert silent.sum() > 100
        assert inside[silent].mean() > 0.99
        region = estimate[int(np.argmax(silent))].attributable.admissible_region()
        np.testing.assert_allclose(
            estimate.interval(level)[np.argmax(silent)].value, region.range_limits.value
        )

    @pytest.mark.parametrize("level", [0.68, 0.95])
    @pytest.mark.parametrize(
        "options", [{}, {"score": "absolute", "cells": "motion deciles"}], ids=["package", "paper"]
    )
    def test_intervals_of_its_range_rate_hold(self, known, new, level, options):
        estimate = new.tracklets().estimate(calibrated(Constant(), known, **options))
        low, high = estimate.interval(level, of="range_rate").to_value(RATE).T
        inside, ok = (low <= new.rho_dot) & (new.rho_dot <= high), estimate.ok
        bound = 5.0 * np.sqrt(2.0 * level * (1.0 - level) / ok.sum())
        assert abs(inside[ok].mean() - level) < bound
        assert inside[~ok].mean() > 0.99  # all that is admissible

    def test_the_construction_of_the_paper(self, known, new):
        made = calibrated(Constant(), known, score="absolute", cells="motion deciles")
        assert (made.calibration.score, made.calibration.cells) == ("absolute", "motion deciles")
        few = new.tracklets()
        estimate = few.estimate(made)
        eta = few.attributable().proper_motion
        # a symmetric interval, of one width within a decile, where nothing cuts it
        half = made.calibration.half_width(eta, few.arc_length, True, 0.5)
        assert len(np.unique(half)) == 10
        low, high = estimate.interval(0.5).value.T
        limits = estimate.attributable._arrays.range_limits
        free = estimate.ok & (low > limits[:, 0]) & (high < limits[:, 1])
        assert free.sum() > 50
        np.testing.assert_allclose((high - low)[free], 2.0 * half[free])

    def test_without_true_range_rates(self, known, new):
        made = ConformalEstimator(Constant()).calibrate(known.tracklets(), known.rho * u.au)
        assert made.calibration.quantities == ("range",)
        estimate = new.tracklets().estimate(made)
        assert (estimate.interval(0.68)[:, 0] >= 0.0).all()
        with pytest.raises(ConformalError, match="calibrate anew with true range-rates"):
            estimate.interval(0.68, of="range_rate")

    def test_is_the_base_but_for_its_intervals(self, known, new):
        base = GaussEstimator(origin="geocenter")
        made = calibrated(base, known)
        assert (made.name, made.origin, made.min_observations) == ("gauss", "geocenter", 3)
        assert made.identity == base.identity
        assert repr(base) in repr(made)
        plain, other = (new.tracklets().estimate(x) for x in (base, made))
        np.testing.assert_array_equal(plain.range, other.range)
        np.testing.assert_array_equal(plain.status, other.status)
        assert other.method == "gauss"
        assert other.origin == "geocenter"
        assert plain.calibration is None
        assert other.calibration is made.calibration
        one = new.tracklets()[3].estimate(made)
        assert one.calibration is made.calibration
        assert one.interval(0.5).shape == (2,)

    def test_arrays_for_those_who_ask_the_core(self, known, new):
        made = calibrated(Constant(), known)
        arcs = new.tracklets()[:50].arcs()
        wrapped, base = made._solve(arcs, arcs), made.base._solve(arcs, arcs)
        np.testing.assert_array_equal(wrapped.rho, base.rho)

    def test_failures_carry_it_too(self, known, new):
        made = calibrated(Constant(), known)
        with pytest.raises(EstimationError) as caught:
            new.tracklets().estimate(made, on_failure="raise")
        assert caught.value.estimate.calibration is made.calibration

    def test_without_a_calibration(self, new):
        with pytest.raises(NotTrainedError, match=r"not calibrated: call \.calibrate"):
            new.tracklets().estimate(ConformalEstimator(Constant()))

    def test_a_calibration_made_before(self, known, new):
        first = calibrated(Constant(), known)
        again = ConformalEstimator(Constant(), first.calibration)
        np.testing.assert_array_equal(
            *(new.tracklets().estimate(x).interval(0.9) for x in (first, again))
        )
        for other in (Constant(rho=0.3), Constant(origin="geocenter"), GaussEstimator()):
            with pytest.raises(ConformalError, match="was made for"):
                ConformalEstimator(other, first.calibration)

    def test_a_base_that_changed(self, known, new):
        made = calibrated(Constant(), known)
        made.base.rho = 0.5
        with pytest.raises(NotTrainedError, match="calibrate it again"):
            new.tracklets().estimate(made)

    def test_what_it_was_made_of(self, known):
        made = ConformalEstimator(Constant())
        pairs = np.arange(len(known)) // 2
        made.calibrate(
            known.tracklets(), known.rho * u.au, objects=pairs, description={"night": "made up"}
        )
        told = made.calibration.description
        assert told["n_arcs"] == 1_500
        assert told["n_objects"] == 750
        assert told["night"] == "made up"
        assert calibrated(Constant(), known).calibration.description["n_objects"] == 1_500

    def test_refuses_what_it_cannot_use(self, known):
        made, tracklets = ConformalEstimator(Constant()), known.tracklets()
        rho = known.rho * u.au
        with pytest.raises(ConformalError, match="base must be an estimator"):
            ConformalEstimator("gauss")
        with pytest.raises(ConformalError, match="needs a TrackletSet"):
            made.calibrate(tracklets[0], rho[:1])
        with pytest.raises(ConformalError, match="one entry for each of 1500"):
            made.calibrate(tracklets, rho[:-1])
        with pytest.raises(ConformalError, match="one entry for each of 1500"):
            made.calibrate(tracklets, rho, objects=["a"])
        with pytest.raises(ConformalError, match="true_range must be a Quantity"):
            made.calibrate(tracklets, known.rho)
        with pytest.raises(ConformalError, match=r"1500 tracklets.*of true_range_rate"):
            made.calibrate(tracklets, rho, known.rho_dot[:-1] * RATE)
        with pytest.raises(ConformalError, match="true_range_rate must be a Quantity"):
            made.calibrate(tracklets, rho, known.rho_dot)
        with pytest.raises(ConformalError, match="true range-rates are no numbers"):
            made.calibrate(tracklets, rho, np.nan * known.rho_dot * RATE)
        with pytest.raises(ConformalError, match="true ranges are no positive"):
            made.calibrate(tracklets, -rho)

    def test_units_are_converted(self, known):
        made = ConformalEstimator(Constant()).calibrate(
            known.tracklets(), known.rho * u.au.to(u.km) * u.km
        )
        widths = [
            x.calibration.half_width(0.01 * u.rad / u.d, 1.0 * u.h, True, 0.9)
            for x in (made, calibrated(Constant(), known))
        ]
        np.testing.assert_allclose(*widths, rtol=1e-5)


class TestDefaults:
    """Calibrations of the package: used for the method they were made for and no other."""

    @pytest.fixture
    def shipped(self, known, monkeypatch):
        """A calibration of Gauss's method in the place of that of the package."""
        found = calibrated(GaussEstimator(), known).calibration
        monkeypatch.setattr(
            estimator_base,
            "default_calibration",
            lambda name: found if name in {"gauss", "mlp-invariant"} else None,
        )
        return found

    def test_is_attached(self, shipped, new):
        few = new.tracklets()[:5]
        assert few.estimate("gauss").calibration is shipped
        assert few[0].estimate("gauss").calibration is shipped
        assert few.estimate(GaussEstimator(refine=True, origin="topocenter")).calibration

    @pytest.mark.parametrize(
        "options", [{"origin": "geocenter"}, {"refine": False}, {"exclusion": 4.0}]
    )
    def test_is_for_the_default_options_alone(self, shipped, new, options):
        assert new.tracklets()[:5].estimate("gauss", **options).calibration is None

    def test_is_for_its_method_alone(self, shipped, new, monkeypatch):
        class Mine(GaussEstimator):
            """Another method under the same name."""

        few = new.tracklets()[:5]
        assert few.estimate(Mine).calibration is None
        assert few.estimate("laplace").calibration is None
        assert few.estimate(Constant).calibration is None
        monkeypatch.setattr(estimator_base, "default_calibration", lambda _: shipped)
        assert few.estimate(LaplaceEstimator).calibration is None

    def test_where_there_is_none_all_is_as_before(self, new, monkeypatch):
        monkeypatch.setattr(estimator_base, "default_calibration", lambda _: None)
        estimate = new.tracklets()[:200].estimate("gauss")
        assert estimate.calibration is None
        whole = estimate.attributable._arrays.range_limits
        np.testing.assert_array_equal(estimate.interval().value[~estimate.ok], whole[~estimate.ok])

    def test_is_read_from_the_package_once(self, shipped, tmp_path, monkeypatch):
        folder = tmp_path / "data" / "calibration"
        folder.mkdir(parents=True)
        shipped.write(folder / "gauss.json")
        monkeypatch.setattr(conformal, "files", lambda _: tmp_path)
        conformal.default_calibration.cache_clear()
        try:
            found = conformal.default_calibration("gauss")
            assert found.to_json() == shipped.to_json()
            assert conformal.default_calibration("gauss") is found
            assert conformal.default_calibration("laplace") is None
        finally:
            conformal.default_calibration.cache_clear()


class TestWeights:
    @pytest.fixture(params=["invariant", "paper"])
    def estimator(self, request, known, tmp_path):
        torch = pytest.importorskip("torch")
        from neoranging.estimators.network_inputs import arc_inputs
        from neoranging.lab.training.network import TrainableNetwork
        from neoranging.nn.network import NetworkConfig

        small = {
            "invariant": NetworkConfig(width=16, blocks=1),
            "paper": dataclasses.replace(NetworkConfig.paper(), widths=(16, 8)),
        }
        torch.manual_seed(1)
        network = TrainableNetwork(small[request.param])
        arcs = known.tracklets().arcs(network.view().origin)
        network.fit(arc_inputs(arcs), known.rho, known.rho_dot)
        checkpoint.save(network.exported(), tmp_path / "network.safetensors", {"model": "mlp"})
        return MLPEstimator.from_pretrained(tmp_path / "network.safetensors")

    def test_a_network_gets_that_of_its_very_weights(self, estimator, known, tmp_path, monkeypatch):
        made = calibrated(estimator, known)
        shipped = made.calibration
        assert shipped.score == "log"
        assert len(shipped.identity["weights_sha256"]) == 64
        named = f"mlp-{estimator.representation}"
        monkeypatch.setattr(
            estimator_base, "default_calibration", lambda name: shipped if name == named else None
        )
        few = known.tracklets()[:20]
        estimate = few.estimate(estimator)
        assert estimate.calibration is shipped
        np.testing.assert_array_equal(estimate.interval(0.9), few.estimate(made).interval(0.9))
        changed, card = checkpoint.load(tmp_path / "network.safetensors")
        changed.weights["heads.0.bias"] += 1e-3
        checkpoint.save(changed, tmp_path / "other.safetensors", card)
        other = MLPEstimator.from_pretrained(tmp_path / "other.safetensors")
        assert few.estimate(other).calibration is None
        looser = MLPEstimator.from_pretrained(tmp_path / "network.safetensors", slack=0.5)
        assert few.estimate(looser).calibration is None

    def test_intervals_hold(self, estimator, known, new):
        estimate = new.tracklets().estimate(calibrated(estimator, known))
        answered = np.isfinite(estimate.range.value) & (estimate.range.value > 0.0)
        low, high = estimate.interval(0.68).value[answered].T
        truth = new.rho[answered]
        n = answered.sum()
        assert abs(((low <= truth) & (truth <= high)).mean() - 0.68) < 5.0 * np.sqrt(0.44 / n)


def test_a_calibration_is_plain_data(known):
    made = calibrated(GaussEstimator(), known).calibration
    again = Calibration.from_json(made.to_json())
    assert again.matches(GaussEstimator().identity)
