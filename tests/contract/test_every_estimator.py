"""One exam that every registered estimator sits, whatever it is made of."""

import inspect

import numpy as np
import pytest
import simulated_arcs
from astropy import units as u
from astropy.coordinates import SkyCoord
from astropy.table import QTable
from astropy.time import Time

import neoranging as nr
from neoranging.core.geometry import wrap_angle
from neoranging.estimators.registry import available_methods, get_estimator
from neoranging.exceptions import (
    EstimationError,
    NeoRangingError,
    NeoRangingWarning,
    TrackletError,
)
from neoranging.tracklet import TrackletSet

METHODS = available_methods()
NUMBERS = ("range", "range_rate", "range_error", "range_rate_error")

pytestmark = pytest.mark.parametrize("method", METHODS)


def tracklet(times, ra, dec, station="G96", **options):
    coord = SkyCoord(ra, dec, unit="deg")
    return nr.Tracklet(Time(times, format="mjd"), coord, station=station, **options)


@pytest.fixture(scope="module")
def night(simulate):
    """Sixty tracklets of one night with noise, as a set, and their truth."""
    s = simulate(60, 0.35, seed=100).with_noise(np.random.default_rng(100))
    return s.tracklets(), s


def assert_same_estimates(one, other, rtol=1e-6):
    """Same verdicts; same numbers where they are determined, which rounding cannot move.

    Networks count in single precision, in another order for another number of arcs.
    """
    learned = get_estimator(one.method).is_learned
    rtol, atol = (1e-4, 1e-7) if learned else (rtol, 1e-12)
    np.testing.assert_array_equal(np.atleast_1d(one.status), np.atleast_1d(other.status))
    ok = np.atleast_1d(one.ok)
    for name in NUMBERS:
        a, b = (np.atleast_1d(getattr(x, name).value)[ok] for x in (one, other))
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)


class TestShapes:
    def test_a_tracklet_gives_scalars(self, method, night):
        estimate = night[0][0].estimate(method)
        for name in NUMBERS:
            assert getattr(estimate, name).shape == ()
        assert estimate.range.unit == u.au
        assert estimate.range_rate.unit == u.au / u.d
        assert isinstance(estimate.status, nr.RangeStatus)
        assert isinstance(estimate.ok, bool)
        assert isinstance(estimate.admissible, bool)
        assert estimate.epoch.shape == ()
        assert estimate.epoch.scale == "tdb"
        assert estimate.interval(0.9).shape == (2,)
        assert estimate.residuals().shape == (len(night[0][0]), 2)
        with pytest.raises(TypeError):
            len(estimate)
        with pytest.raises(TypeError):
            estimate[0]

    def test_a_set_gives_arrays(self, method, night):
        tracklets, _ = night
        m = len(tracklets)
        estimate = tracklets.estimate(method)
        assert len(estimate) == m
        for name in (*NUMBERS, "status", "ok", "admissible", "epoch"):
            assert getattr(estimate, name).shape == (m,)
        assert estimate.interval(0.9).shape == (m, 2)
        assert estimate.residuals().shape == (tracklets.counts.sum(), 2)
        position, velocity, epoch = estimate.state
        assert position.shape == velocity.shape == (m, 3)
        assert epoch.shape == (m,)

    def test_a_set_of_one_is_still_a_set(self, method, night):
        estimate = night[0][:1].estimate(method)
        assert estimate.range.shape == (1,)
        assert len(estimate) == 1

    def test_an_empty_set_gives_an_empty_estimate(self, method, night):
        estimate = night[0][:0].estimate(method)
        assert len(estimate) == 0
        assert len(estimate.to_table()) == 0
        assert len(estimate.candidates) == 0
        assert estimate.candidates.colnames == night[0].estimate(method).candidates.colnames
        assert repr(estimate).endswith(": 0 tracklets>")
        assert estimate.elements.shape == (0,)
        assert estimate.interval().shape == (0, 2)
        assert list(estimate) == []

    def test_indexing_and_iterating_agree_with_the_arrays(self, method, night):
        estimate = night[0].estimate(method)
        parts = list(estimate)
        assert [part.status for part in parts] == list(estimate.status)
        for k in (0, 7, -1):
            one = estimate[k]
            assert one.range.shape == ()
            assert one.range == estimate.range[k] or np.isnan(one.range)
            assert one.attributable.ra == estimate.attributable.ra[k]
        some = estimate[np.array([5, 2, 2])]
        np.testing.assert_array_equal(some.status, estimate.status[[5, 2, 2]])
        np.testing.assert_array_equal(estimate[10:20].status, estimate.status[10:20])
        np.testing.assert_array_equal(estimate[estimate.ok].ok, True)

    def test_tables(self, method, night):
        estimate = night[0].estimate(method)
        table = QTable(estimate)
        assert len(table) == len(estimate)
        assert table.meta["method"] == method
        assert list(table["status"]) == [status.name for status in estimate.status]
        np.testing.assert_array_equal(table["range"], estimate.range)
        assert repr(estimate)
        assert estimate[0]._repr_html_().startswith("<table")


class TestVerdicts:
    def test_numbers_are_never_nan_under_ok(self, method, night, simulate):
        sets = [night[0]]
        for seed, span in enumerate((0.02, 1.0, 20.0)):
            s = simulate(100, span, seed=110 + seed).with_noise(np.random.default_rng(seed))
            sets.append(s.tracklets())
        for tracklets in sets:
            estimate = tracklets.estimate(method)
            ok = estimate.ok
            for name in NUMBERS[:2]:
                assert np.isfinite(getattr(estimate, name)[ok]).all()
            assert (estimate.range[ok] > 0.0 * u.au).all()
            assert estimate.admissible[ok].all()
            low, high = estimate.interval(0.68)[ok].T
            assert ((low <= estimate.range[ok]) & (estimate.range[ok] <= high)).all()
            position, velocity, _ = estimate.state
            assert np.isfinite(position[ok]).all()
            assert np.isfinite(velocity[ok]).all()

    def test_missing_numbers_have_a_reason(self, method, night):
        estimate = night[0].estimate(method)
        missing = ~np.isfinite(estimate.range)
        assert not estimate.ok[missing].any()
        assert all(status.advice for status in estimate.status)

    def test_too_few_observations(self, method, night):
        two = night[0][0][[0, -1]]
        estimate = two.estimate(method)
        needed = type(get_estimator(method)).min_observations
        if needed > 2:
            assert estimate.status is nr.RangeStatus.TOO_FEW_OBSERVATIONS
            assert np.isnan(estimate.range)
        else:
            assert estimate.status is not nr.RangeStatus.TOO_FEW_OBSERVATIONS

    def test_a_repeated_exposure_is_no_new_epoch(self, method, night):
        columns = [60_000.0, 60_000.0, 60_000.1], [10.0, 10.0, 10.1], [5.0, 5.0, 5.02]
        with pytest.warns(NeoRangingWarning, match="another record of the same exposure"):
            doubled = tracklet(*columns)
        if type(get_estimator(method)).min_observations > 2:
            assert doubled.estimate(method).status is nr.RangeStatus.TOO_FEW_OBSERVATIONS

    @pytest.mark.filterwarnings("ignore::neoranging.exceptions.NeoRangingWarning")
    @pytest.mark.parametrize(
        ("code", "words"),
        [("w6", "near it: W"), ("C57", "column observer_gcrs"), ("247", "observer_itrf")],
    )
    def test_an_unknown_observer_is_named_with_a_remedy(self, method, code, words):
        lost = tracklet([60_000.0, 60_000.05, 60_000.1], [10, 10.1, 10.2], [5, 5, 5], station=code)
        estimate = lost.estimate(method)
        if estimate.status is nr.RangeStatus.UNKNOWN_OBSERVER:  # not for one of the geocentre
            assert code in estimate.diagnostics
            assert words in estimate.diagnostics
            assert "geocenter" not in estimate.status.advice + estimate.diagnostics

    @pytest.mark.parametrize("size", [60.0, 600.0])
    def test_a_stray_position_is_never_ok(self, method, size):
        """A straight run of five positions, each in turn moved off it."""
        times = 60_000.0 + np.array([0.0, 0.02, 0.05, 0.07, 0.1])
        for k in range(5):
            dec = 5.0 + 0.3 * (times - times[0])
            dec[k] += size / 3600.0
            ra = 10.0 + 1.0 * (times - times[0])
            estimate = tracklet(times, ra, dec, sigma=0.5 * u.arcsec).estimate(method)
            assert not estimate.ok
            if estimate.status is nr.RangeStatus.MISFIT and k in (1, 2, 3):
                assert f"observation {k + 1} of 5" in estimate.diagnostics

    @pytest.mark.filterwarnings("ignore::neoranging.exceptions.NeoRangingWarning")
    @pytest.mark.parametrize("code", ["ZZZ", "250"])
    def test_unknown_observers(self, method, night, code):
        columns = [60_000.0, 60_000.05, 60_000.1], [10.0, 10.05, 10.1], [5.0, 5.01, 5.03]
        lost = tracklet(*columns, station=code)
        estimate = lost.estimate(method)
        assert estimate.status is nr.RangeStatus.UNKNOWN_OBSERVER
        assert np.isnan(estimate.range)
        partly = tracklet(*columns, station=["G96", code, "G96"]).estimate(method)
        assert partly.status is nr.RangeStatus.UNKNOWN_OBSERVER
        by_centre = lost.estimate(method, origin="geocenter")
        assert by_centre.status is not nr.RangeStatus.UNKNOWN_OBSERVER
        mixed = TrackletSet.from_tracklets([lost, *night[0][:5]]).estimate(method)
        assert mixed.status[0] is nr.RangeStatus.UNKNOWN_OBSERVER
        assert_same_estimates(mixed[1:], night[0][:5].estimate(method))

    @pytest.mark.filterwarnings("ignore::neoranging.exceptions.NeoRangingWarning")
    def test_nothing_but_hopeless_tracklets(self, method, night):
        columns = [60_000.0, 60_000.05, 60_000.1], [10.0, 10.05, 10.1], [5.0, 5.01, 5.03]
        estimate = TrackletSet.from_tracklets([tracklet(*columns, station="ZZZ")] * 2).estimate(
            method
        )
        assert (estimate.status == nr.RangeStatus.UNKNOWN_OBSERVER).all()
        assert np.isnan(estimate.interval()).all()
        estimate.to_table()
        estimate.residuals()

    def test_raise_on_failure(self, method, night):
        tracklets, _ = night
        estimate = tracklets.estimate(method)
        if estimate.ok.all():
            pytest.skip("this method has an answer to everything here")
        with pytest.raises(EstimationError) as caught:
            tracklets.estimate(method, on_failure="raise")
        assert_same_estimates(caught.value.estimate, estimate)
        first = estimate.status[~estimate.ok][0]
        assert first.name in str(caught.value)
        assert first.advice in str(caught.value)
        if estimate.ok.any():
            tracklets[estimate.ok].estimate(method, on_failure="raise")

    def test_on_failure_takes_two_words(self, method, night):
        with pytest.raises(NeoRangingError, match="on_failure"):
            night[0].estimate(method, on_failure="ignore")


class TestInvariance:
    def test_the_same_question_has_the_same_answer(self, method, night):
        first, second = (night[0].estimate(method) for _ in range(2))
        for name in NUMBERS:
            np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
        np.testing.assert_array_equal(first.status, second.status)

    def test_a_set_is_its_tracklets(self, method, night):
        tracklets, _ = night
        together = tracklets.estimate(method)
        assert_same_estimates(
            TrackletSet.from_tracklets(list(tracklets)).estimate(method), together
        )
        for k in range(0, len(tracklets), 7):
            alone = tracklets[k].estimate(method)
            assert_same_estimates(alone, together[k])
            rows = together.candidates[together.candidates["tracklet"] == k]
            assert len(alone.candidates) == len(rows)

    def test_chunks_do_not_show(self, method, night, monkeypatch):
        whole = night[0].estimate(method)
        monkeypatch.setattr(type(get_estimator(method)), "chunk_size", 7)
        pieces = night[0].estimate(method)
        assert_same_estimates(pieces, whole)
        for name in ("tracklet", "chosen"):
            np.testing.assert_array_equal(pieces.candidates[name], whole.candidates[name])

    def test_the_order_of_observations_does_not_matter(self, method, night):
        _, s = night
        order = np.random.default_rng(3).permutation(len(s.arcs.t))
        assert_same_estimates(s.tracklets(order).estimate(method), s.tracklets().estimate(method))

    def test_the_order_of_tracklets_does_not_matter(self, method, night):
        tracklets, _ = night
        order = np.random.default_rng(4).permutation(len(tracklets))
        assert_same_estimates(tracklets[order].estimate(method), tracklets.estimate(method)[order])

    def test_right_ascension_may_pass_zero_hours(self, method, simulate):
        """Objects next to the meridian of 0 h: wrapped or negative, the same answer."""
        s = simulate(4000, 0.3, seed=120, station="G96")
        across = [
            k
            for k in range(len(s))
            if np.ptp(s.arcs.ra[s.arcs.offsets[k] : s.arcs.offsets[k + 1]]) > 3.0
        ]
        s = s.take(np.array(across)).with_noise(np.random.default_rng(5))
        assert len(s) >= 5
        inside = s.tracklets().estimate(method)
        assert (np.abs(wrap_angle(inside.attributable.ra.to_value(u.rad))) < 0.5).all()
        unwrapped = s._with(wrap_angle(s.arcs.ra), s.arcs.dec).tracklets().estimate(method)
        assert_same_estimates(unwrapped, inside)
        if inside.ok.any():
            error = np.abs(inside.range.value / s.rho - 1.0)[inside.ok]
            assert np.median(error) < 0.5

    def test_the_poles_are_places_like_others(self, method, simulate):
        s = simulate(400, 0.3, seed=121, station="500", n_observations=4)
        moved = poleward(s)
        dec = np.abs(np.degrees(moved.arcs.dec))
        assert dec.max() > 89.9
        estimate = moved.tracklets().estimate(method)
        elsewhere = s.tracklets().estimate(method)
        assert abs(estimate.ok.mean() - elsewhere.ok.mean()) < 0.2
        if estimate.ok.any():
            assert np.median(np.abs(estimate.range.value / moved.rho - 1.0)[estimate.ok]) < 0.5


def poleward(s):
    """The same objects, shifted onto lines of sight within a few degrees of the celestial poles."""
    rng = np.random.default_rng(6)
    middle = s.arcs.triplet[:, 1]
    offset = np.radians(3.0) * rng.random(len(s)) ** 2
    azimuth = rng.uniform(0.0, 6.28, len(s))
    pole = rng.choice([-1.0, 1.0], len(s))
    direction = np.stack(
        [np.sin(offset) * np.cos(azimuth), np.sin(offset) * np.sin(azimuth), pole * np.cos(offset)],
        axis=1,
    )
    r = s.arcs.position[middle] + s.rho[:, None] * direction
    times = np.split(s.arcs.t, s.arcs.offsets[1:-1])
    return simulated_arcs.observe(r, s.v, s.epoch, times, "500")


class TestHardInput:
    @pytest.mark.parametrize(
        ("ra", "dec"),
        [
            ([10.0, 10.0, 10.0], [5.0, 5.0, 5.0]),
            ([10.0, 10.01, 10.03], [0.0, 0.0, 0.0]),
            ([0.0, 0.0, 0.0], [0.0, 0.01, 0.02]),
            ([10.0, 10.01, 10.0], [5.0, 5.01, 5.0]),
            ([10.0, 100.0, 190.0], [90.0, 90.0, 90.0]),
            ([10.0, 100.0, 190.0], [89.999, 90.0, 89.999]),
            ([10.0, 100.0, 190.0], [0.0, 50.0, -80.0]),
            ([0.0, 90.0, 180.0], [0.0, 0.0, 0.0]),
            ([0.0, 180.0, 0.0], [0.0, 0.0, 0.0]),
        ],
        ids=[
            "still",
            "equator",
            "meridian",
            "back",
            "pole",
            "over-pole",
            "leaps",
            "quadrants",
            "antipodes",
        ],
    )
    @pytest.mark.parametrize("origin", ["topocenter", "geocenter"])
    def test_degenerate_motions_get_a_verdict_and_no_warning(self, method, ra, dec, origin):
        estimate = tracklet([60_000.0, 60_000.1, 60_000.2], ra, dec).estimate(method, origin=origin)
        if estimate.ok:
            assert np.isfinite(estimate.range)
        estimate.interval()
        estimate.to_table()
        estimate.residuals()
        repr(estimate)

    def test_a_motionless_point_is_not_determined(self, method):
        estimate = tracklet([60_000.0, 60_000.1, 60_000.2], [10.0] * 3, [5.0] * 3).estimate(method)
        assert not estimate.ok

    def test_exposures_a_second_apart(self, method):
        t = 60_000.0 + np.arange(4) / 86_400.0
        estimate = tracklet(t, 10.0 + 1e-5 * np.arange(4), 5.0 + 0 * t).estimate(method)
        assert not estimate.ok

    @pytest.mark.filterwarnings("ignore::neoranging.exceptions.NeoRangingWarning")
    @pytest.mark.parametrize("mjd", [15_000.0, 40_000.0, 80_000.0])
    def test_any_date(self, method, mjd):
        estimate = tracklet(mjd + np.array([0.0, 0.05, 0.1]), [10, 10.02, 10.05], [5, 5, 5.01])
        assert estimate.estimate(method).status is not nr.RangeStatus.UNKNOWN_OBSERVER


class TestOptions:
    def test_both_observers(self, method, night):
        tracklets, _ = night
        centre = tracklets.estimate(method, origin="geocenter")
        place = tracklets.estimate(method)
        assert centre.origin == "geocenter"
        assert place.origin == "topocenter"
        distance = np.linalg.norm(
            (centre.attributable.observer_position - place.attributable.observer_position).to(u.km),
            axis=1,
        )
        assert (distance > 6_300 * u.km).all()
        assert (distance < 6_400 * u.km).all()

    def test_the_code_500_is_the_geocentre(self, method, simulate):
        s = simulate(30, 0.4, seed=130, station="500").with_noise(np.random.default_rng(1))
        tracklets = s.tracklets()
        place, centre = tracklets.estimate(method), tracklets.estimate(method, origin="geocenter")
        if get_estimator(method).is_learned:
            # its verdict also asks how wrong such answers mostly are, which depends on the origin
            np.testing.assert_allclose(centre.range, place.range, rtol=1e-4)
        else:
            assert_same_estimates(place, centre)

    def test_an_observer_that_is_none(self, method):
        with pytest.raises(TrackletError, match="topocenter"):
            get_estimator(method, origin="heliocenter")

    def test_something_that_is_no_tracklet(self, method):
        with pytest.raises(TrackletError, match="Tracklet"):
            get_estimator(method).estimate([1.0, 2.0])

    def test_the_class_says_what_it_is(self, method):
        cls = type(get_estimator(method))
        assert cls.name == method
        assert cls.min_observations >= 2
        assert isinstance(cls.is_learned, bool)
        assert inspect.getdoc(cls)
        assert "origin" in repr(get_estimator(method))
