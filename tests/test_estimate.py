"""`RangeEstimate`: numbers with units, intervals, candidates, orbits, tables."""

import pickle
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from astropy import units as u
from astropy.coordinates import SkyCoord
from astropy.table import QTable
from astropy.time import Time

import neoranging as nr
from neoranging.constants import ARCSEC
from neoranging.core.prediction import sky_residuals
from neoranging.exceptions import EstimationError

AU_D = u.au / u.d


@pytest.fixture(scope="module")
def truth(simulate):
    return simulate(40, 1.0, seed=400, n_observations=5).with_noise(np.random.default_rng(4))


@pytest.fixture(scope="module")
def estimate(truth):
    return truth.tracklets().estimate("gauss")


@pytest.fixture(scope="module")
def one(estimate):
    return estimate[int(np.nonzero(estimate.ok)[0][0])]


@pytest.fixture
def nothing():
    """Two observations, from which Gauss's method makes nothing."""
    return nr.Tracklet(
        Time([60_000.1, 60_000.2], format="mjd"),
        SkyCoord([10.0, 10.1], [5.0, 5.0], unit="deg"),
        station="500",
    ).estimate("gauss")


class TestInterval:
    def test_of_an_ok_estimate_has_longer_tails_than_a_normal_law(self, one):
        """The size of the errors is uncertain: many are smaller than their root mean square."""
        half = {}
        for level in (0.6827, 0.95, 0.9973):
            low, high = one.interval(level, calibrated=False)
            assert u.isclose((low + high) / 2.0, one.range, rtol=1e-9)
            half[level] = ((high - low) / 2.0 / one.range_error).to_value(u.one)
        assert 0.5 < half[0.6827] < 1.0 < half[0.95]
        assert half[0.9973] > 3.0

    def test_is_normal_where_the_size_of_the_errors_is_certain(self, one):
        certain = nr.RangeEstimate(
            replace(one._answers, error_scales=None), one._tracklets, scalar=True
        )
        low, high = certain.interval(0.6827)
        half = ((high - low) / 2.0).to_value(u.au)
        assert half == pytest.approx(one.range_error.to_value(u.au), rel=1e-3)

    def test_grows_with_the_level(self, estimate):
        intervals = [estimate.interval(level, calibrated=False) for level in (0.1, 0.5, 0.9)]
        widths = [np.diff(interval.value, axis=1) for interval in intervals]
        ok = estimate.ok
        assert (widths[0] < widths[1])[ok].all()
        assert (widths[1] < widths[2])[ok].all()
        for width in widths[1:]:
            np.testing.assert_array_equal(width[~ok], widths[0][~ok])

    def test_never_leaves_the_admissible_range(self, estimate):
        limits = estimate.interval(1.0 - 1e-15, calibrated=False)
        for k in range(0, len(estimate), 5):
            region = estimate[k].attributable.admissible_region()
            if not region.is_empty:
                low, high = region.range_limits
                assert limits[k, 0] >= low * (1.0 - 1e-12)
                assert limits[k, 1] <= high * (1.0 + 1e-12)

    @pytest.mark.parametrize("level", [0.0, 1.0, -0.1, 68.0, np.nan])
    def test_levels_that_are_none(self, one, level):
        with pytest.raises(EstimationError, match="between 0 and 1"):
            one.interval(level)


class TestCandidates:
    def test_columns_carry_units(self, estimate):
        c = estimate.candidates
        assert c["range"].unit == u.au
        assert c["range_rate"].unit == AU_D
        assert c["residual"].unit == u.arcsec
        assert c["semimajor_axis"].unit == u.au
        assert (c["range"] > 0 * u.au).all()

    def test_the_chosen_one_is_the_estimate(self, estimate):
        c = estimate.candidates
        chosen = c[c["chosen"]]
        np.testing.assert_array_equal(estimate.range[chosen["tracklet"]], chosen["range"])
        np.testing.assert_array_equal(estimate.range_rate[chosen["tracklet"]], chosen["range_rate"])

    def test_follow_an_index(self, estimate):
        whole = estimate.candidates
        for index in ([3, 1, 3], [39], list(range(39, -1, -2))):
            part = estimate[np.array(index)].candidates
            rows = [whole[whole["tracklet"] == k] for k in index]
            np.testing.assert_array_equal(
                part["range"], np.concatenate([row["range"] for row in rows])
            )
            expected = np.repeat(np.arange(len(index)), [len(row) for row in rows])
            np.testing.assert_array_equal(part["tracklet"], expected)

    def test_of_nothing(self, nothing):
        assert len(nothing.candidates) == 0

    def test_of_a_method_without_them_have_the_same_columns(self, estimate):
        answers = replace(estimate._answers, candidates=None)
        bare = nr.RangeEstimate(answers, estimate._tracklets).candidates
        assert len(bare) == 0
        assert bare.colnames == estimate.candidates.colnames
        for name in bare.colnames:
            assert bare[name].unit == estimate.candidates[name].unit
            assert bare[name].dtype == estimate.candidates[name].dtype


class TestOrbit:
    def test_state_and_elements_agree_with_boinor(self, one):
        position, velocity, epoch = one.state
        orbit = one.orbit
        assert orbit.a.to_value(u.au) == pytest.approx(one.elements.a.to_value(u.au), rel=1e-6)
        assert abs((epoch - one.epoch).to_value(u.d)) == pytest.approx(
            one.range.to_value(u.au) / 173.1446, rel=1e-3
        )
        assert position.unit == u.au
        assert velocity.unit == AU_D

    def test_state_is_that_of_the_attributable(self, estimate):
        """To the order of the curvature that a fitted attributable smooths away."""
        k = int(np.nonzero(estimate.ok)[0][2])
        one = estimate[k]
        position, *_ = one.attributable.state(one.range, one.range_rate)
        np.testing.assert_allclose(position.value, one.state[0].value, atol=2e-4)

    def test_is_for_one_tracklet(self, estimate):
        with pytest.raises(EstimationError, match="index it"):
            _ = estimate.orbit
        assert estimate[estimate.ok].elements.shape == (estimate.ok.sum(),)

    def test_of_nothing(self, nothing):
        for name in ("orbit", "elements", "state"):
            with pytest.raises(EstimationError, match="no orbit: Fewer distinct epochs") as caught:
                getattr(nothing, name)
            assert caught.value.estimate is nothing

    def test_elements_of_a_set_with_gaps(self, estimate, nothing):
        """Tracklets without an answer must not cost the others theirs."""
        both = nr.TrackletSet.from_tracklets([nothing._tracklets[0], estimate._tracklets[5]])
        mixed = both.estimate("gauss")
        assert np.isnan(mixed.range[0])
        elements = mixed.elements
        assert np.isnan(elements.a[0])
        assert np.isfinite(elements.a[1])
        assert elements.epoch[0] == mixed.epoch[0]  # of reception
        assert elements.epoch[1] < mixed.epoch[1]  # of emission


class TestResiduals:
    def test_are_those_of_the_state(self, estimate, truth):
        residuals = estimate.residuals()
        s = estimate._answers
        expected = sky_residuals(truth.arcs, s.r, s.v, s.epoch) / ARCSEC
        np.testing.assert_allclose(residuals.value, expected, atol=1e-3)

    def test_of_ok_arcs_are_of_the_size_of_sigma(self, estimate, truth):
        residuals = estimate.residuals()[estimate.ok[truth.arcs.owner]]
        assert 0.05 < residuals.to_value(u.arcsec).std() < 0.4

    def test_geocentric_ones_use_the_geocentre(self, truth):
        centre = truth.tracklets().estimate("gauss", origin="geocenter")
        c = centre.candidates
        good = c["chosen"] & c["converged"]
        owner = truth.arcs.owner
        rms = np.array(
            [
                np.sqrt(np.mean(np.sum(centre.residuals()[owner == k].value ** 2, axis=1)))
                for k in c["tracklet"][good]
            ]
        )
        np.testing.assert_allclose(rms, c["residual"][good].value, rtol=1e-6, atol=1e-9)

    def test_of_nothing_are_nan(self, nothing):
        assert np.isnan(nothing.residuals()).all()


class TestShows:
    def test_repr(self, one, estimate, nothing):
        assert "gauss, topocenter" in repr(one)
        assert "OK" in repr(one)
        assert f"{len(estimate)} tracklets" in repr(estimate)
        assert f"OK {estimate.ok.sum()}" in repr(estimate)
        assert "TOO_FEW_OBSERVATIONS" in repr(nothing)

    def test_html(self, one, estimate):
        assert "determine the range" in one._repr_html_()
        assert "<table" in estimate._repr_html_()

    def test_table(self, estimate, truth):
        table = estimate.to_table()
        assert isinstance(table, QTable)
        assert table["range"].unit == u.au
        assert table.meta == {"method": "gauss", "origin": "topocenter"}
        np.testing.assert_array_equal(table["n_observations"], truth.arcs.counts)
        assert list(table["designation"]) == [f"S{k:06d}" for k in range(len(truth))]
        assert table["epoch"].scale == "tdb"
        assert set(table["station"]) == set(truth.tracklets().stations)
        bounds = np.stack([table["range_low"], table["range_high"]], axis=1)
        np.testing.assert_array_equal(bounds, estimate.interval(0.68))

    def test_table_of_one(self, one):
        table = one.to_table()
        assert len(table) == 1
        assert table["range"][0] == one.range
        assert table["range_low"][0] == one.interval()[0]

    def test_table_survives_ecsv(self, estimate, tmp_path):
        path = tmp_path / "night.ecsv"
        estimate.to_table().write(path)
        again = QTable.read(path)
        np.testing.assert_allclose(again["range"].value, estimate.range.value)
        assert list(again["status"]) == [status.name for status in estimate.status]

    def test_nothing_has_numbers_that_are_nan(self, nothing):
        assert np.isnan(nothing.range)
        assert np.isnan(nothing.range_error)
        assert not nothing.ok
        assert not nothing.admissible
        assert np.isfinite(nothing.interval()).all()  # the admissible range still holds
        nothing._repr_html_()

    def test_survives_pickling(self, estimate):
        again = pickle.loads(pickle.dumps(estimate))
        np.testing.assert_array_equal(again.range, estimate.range)
        np.testing.assert_array_equal(again.status, estimate.status)


def test_properties_cannot_be_overwritten(one):
    for name in ("range", "range_rate", "status", "epoch"):
        with pytest.raises(AttributeError):
            setattr(one, name, None)


def test_numbers_handed_out_do_not_reach_back(estimate, truth):
    own = truth.tracklets().estimate("gauss")
    before = own.range.copy()
    with suppress(ValueError):  # read-only is as good as a copy
        own.range[:] = 0.0 * u.au
    np.testing.assert_array_equal(own.range, before)


class TestManners:
    """Immutable objects that tables, notebooks and frames of astropy take."""

    def test_attributes_cannot_be_replaced(self, one):
        for name in ("method", "origin", "attributable", "calibration"):
            with pytest.raises(AttributeError):
                setattr(one, name, "mine")

    def test_what_is_written_into_copies_stays_there(self, one, estimate):
        one.attributable.covariance[0, 0] = 9.0
        assert one.attributable.covariance[0, 0] < 1e-6
        estimate.admissible[:] = False
        assert estimate.admissible.any()

    def test_a_direction_with_its_distance(self, one, estimate):
        assert one.coord.distance == one.range
        assert one.coord.separation(one.attributable.coord) < 1e-6 * u.arcsec
        assert one.coord.obstime == one.epoch
        assert estimate.coord.shape == (len(estimate),)
        assert u.isclose(one.attributable.coord.pm_dec, one.attributable.dec_rate)

    def test_tables(self, one, estimate):
        for attributable, rows in ((one.attributable, 1), (estimate.attributable, len(estimate))):
            table = QTable(attributable)
            assert len(table) == rows
            assert table["ra"].unit == u.deg
            assert table["observer_position"].shape == (rows, 3)

    def test_notebooks(self, one, estimate):
        shown = (
            *(one, estimate, one.attributable, estimate.attributable),
            *(one.elements, estimate.elements, one.attributable.admissible_region()),
        )
        for each in shown:
            assert each._repr_html_().startswith(("<table", "<div"))

    @pytest.mark.parametrize(
        ("level", "words"),
        [("0.68", "a number between 0 and 1"), (True, "a number"), (68, "write 0.68"), (0.0, "0")],
    )
    def test_levels_that_are_none(self, one, level, words):
        with pytest.raises(EstimationError, match=words):
            one.interval(level)
