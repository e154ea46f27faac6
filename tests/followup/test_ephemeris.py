"""Clouds of tomorrow: shapes, units, what falls, and what an observer asks of them."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from astropy import units as u
from astropy.coordinates import AltAz, EarthLocation, SkyCoord, get_sun
from astropy.table import QTable
from astropy.time import Time

import neoranging as nr
from neoranging.core.pointings import in_field
from neoranging.exceptions import (
    EphemerisError,
    EstimationError,
    NeoRangingWarning,
    TrackletError,
    UnknownStationError,
)
from neoranging.followup import Ephemeris
from neoranging.observations.observatories import observatory

N = 300


@pytest.fixture(scope="module")
def estimate():
    """Five nights of 2024 YR4."""
    return nr.read_tracklets(nr.sample("2024YR4")).estimate(method="systematic")


@pytest.fixture(scope="module")
def impactors():
    return nr.read_tracklets(nr.sample("impactors")).estimate(method="systematic")


@pytest.fixture(scope="module")
def times(estimate):
    return estimate.epoch[-1] + [1.0, 0.25] * u.d


@pytest.fixture(scope="module")
def many(estimate, times):
    return estimate.ephemeris(times, "G96", n=N)


@pytest.fixture(scope="module")
def one(estimate, times):
    """The last night, at the second instant."""
    return estimate[4].ephemeris(times[0], "G96", n=N)


class TestShapes:
    @pytest.mark.parametrize("name", ["center", "area", "altitude", "sun_altitude", "fallen"])
    def test_are_of_tracklets_and_instants(self, estimate, many, times, name):
        def of(ephemeris):
            value = getattr(ephemeris, name)
            return np.shape(value() if callable(value) else value)

        assert of(many) == (5, 2)
        assert of(many[1]) == (2,)
        assert of(many[1:3]) == (2, 2)
        assert of(estimate.ephemeris(times[0], "G96", n=20)) == (5,)
        assert of(estimate[0].ephemeris(times[0], "G96", n=20)) == ()

    def test_of_ellipses_and_flags(self, many, one):
        assert [axis.shape for axis in many.ellipse(0.95)] == [(5, 2)] * 3
        assert many.contains(many.center).shape == (5, 2)
        assert many.contains(many.center[0, 0]).shape == (5, 2)
        assert isinstance(one.contains(one.center), bool)
        assert isinstance(one.fallen, float)

    def test_parts_are_what_the_whole_has(self, many):
        assert u.allclose(many[3].area(0.95), many.area(0.95)[3])
        assert u.allclose(many[[3, 1]].altitude, many.altitude[[3, 1]])
        assert [part.center.ra[0].deg for part in many] == pytest.approx(many.center.ra[:, 0].deg)

    @pytest.mark.parametrize("number", [0, 1, 4])
    def test_alone_or_among_many_there_is_one_answer(self, estimate, many, times, number):
        for some in (estimate[number], estimate[[number]]):
            alone = some.ephemeris(times, "G96", n=N)
            assert np.all(np.ravel(alone.coord.ra) == np.ravel(many[number].coord.ra))
            assert np.all(np.ravel(alone.magnitude) == np.ravel(many[number].magnitude))

    def test_of_no_tracklet_there_is_an_empty_one(self, estimate, times):
        none = estimate[:0]
        assert none.ephemeris(times, "G96", n=10).coord.shape == (0, 2, 10)
        assert len(none.ephemeris(times, "G96", n=10).to_table()) == 0
        assert len(none.priority(times, "G96", n=10)) == 0

    def test_want_a_row_of_times_and_an_orbit(self, estimate, times):
        for wrong in (times[:0], times.reshape(2, 1), times.mjd):
            with pytest.raises(EstimationError, match="times must be"):
                estimate.ephemeris(wrong, "G96", n=10)
        with pytest.raises(EstimationError, match="from 1 on, got 0"):
            estimate.ephemeris(times, "G96", n=0)

    def test_survive_a_pickle(self, one):
        again = pickle.loads(pickle.dumps(one))
        assert again.area(0.95) == one.area(0.95)


class TestRegions:
    def test_hold_their_share_of_other_draws(self, estimate, times):
        mine = estimate[1].ephemeris(times[0], "G96", n=1000, rng=1)
        others = estimate[1].ephemeris(times[0], "G96", n=400, rng=2).coord
        for level in (0.68, 0.95):
            inside = np.mean([mine.contains(place, level) for place in others])
            assert inside == pytest.approx(level, abs=4.0 * np.sqrt(0.25 / 400))

    def test_grow_with_the_level_and_the_time(self, many):
        assert np.all(many.area(0.95) > many.area(0.68))
        assert many.area().unit == u.arcmin**2
        assert np.all(many.area(0.95)[:, 0] > many.area(0.95)[:, 1])

    def test_outline_is_where_the_region_ends(self, one):
        (line,) = one.outline(0.68)
        radius = one.center.separation(line)
        angle = one.center.position_angle(line)
        for share, inside in ((0.8, True), (1.2, False)):
            points = one.center.directional_offset_by(angle, share * radius)
            flags = [one.contains(point, 0.68) for point in points[::10]]
            assert np.mean(flags) == pytest.approx(float(inside), abs=0.25)

    def test_ellipse_is_larger_than_the_region(self, one):
        major, minor, angle = one.ellipse(0.95)
        assert major > minor > 0.0 * u.arcmin
        assert np.pi * major * minor > one.area(0.95)
        assert 0.0 * u.deg <= angle < 180.0 * u.deg

    @pytest.mark.parametrize("level", [0.0, 1.0, 95.0, "most"])
    def test_want_a_level(self, one, level):
        for ask in (one.area, one.ellipse, one.outline):
            with pytest.raises(EstimationError, match=r"^level must"):
                ask(level)

    def test_outline_is_of_one_cloud(self, many):
        with pytest.raises(EstimationError, match=r"of 5 tracklets at 2 instants: index"):
            many.outline()


class TestSky:
    def test_altitudes_are_those_of_astropy(self, many, times):
        frame = AltAz(obstime=times, location=observatory("G96").location)
        expected = many.center[2].transform_to(frame).alt
        # astropy has the aberration, which is 20 arcsec
        assert many.altitude[2].to_value(u.deg) == pytest.approx(expected.deg, abs=0.01)
        sun = get_sun(times).transform_to(frame).alt
        assert many.sun_altitude[2].to_value(u.deg) == pytest.approx(sun.deg, abs=0.01)

    def test_altitude_is_of_each_station(self, estimate, times):
        both = estimate[4].ephemeris(times, ["G96", "568"], n=20)
        alone = estimate[4].ephemeris(times[1], "568", n=20)
        assert u.isclose(both.altitude[1], alone.altitude)

    def test_a_place_is_as_good_as_its_code(self, estimate, times, one):
        place = observatory("G96").location
        assert isinstance(place, EarthLocation)
        same = estimate[4].ephemeris(times[0], place, n=N)
        assert same.altitude.to_value(u.deg) == pytest.approx(one.altitude.to_value(u.deg))

    @pytest.mark.parametrize("station", [None, "500"])
    def test_the_centre_of_the_earth_has_no_horizon(self, estimate, times, station):
        ephemeris = estimate.ephemeris(times, station, n=20)
        assert np.isnan(ephemeris.altitude).all()
        assert np.isnan(ephemeris.sun_altitude).all()

    def test_stations_without_a_place_are_refused(self, estimate, times):
        with pytest.raises(UnknownStationError, match="C51"):
            estimate.ephemeris(times, "C51", n=20)
        with pytest.raises(UnknownStationError, match="near it"):
            estimate.ephemeris(times, "G9X", n=20)

    def test_times_outside_the_ephemeris_are_refused(self, estimate):
        with pytest.raises(EphemerisError, match="MJD"):
            estimate.ephemeris(Time("2300-01-01", scale="tdb"), n=20)


class TestFalls:
    def test_are_told_and_left_out(self, impactors):
        """2008 TC3 from G96, hours before and after it fell."""
        times = Time(["2008-10-07T01:00", "2008-10-07T07:00"])
        ephemeris = impactors[1].ephemeris(times, n=N)
        assert ephemeris.fallen == pytest.approx([0.0, 1.0], abs=1e-9)
        assert np.isfinite(ephemeris.center.ra.deg).tolist() == [True, False]
        assert np.isfinite(ephemeris.area()).tolist() == [True, False]
        assert not ephemeris.contains(ephemeris.coord[0, 0])[1]
        table = ephemeris.to_table()
        for name in ("ra", "position_angle", "semi_major"):
            assert np.isnan(table[name].value).tolist() == [False, True], name
        gone = impactors[1].ephemeris(times[1], n=N)
        with pytest.raises(EstimationError, match=r"0 of 300 are left"):
            gone.pointings(1.0 * u.deg)

    def test_some_leave_the_others(self, impactors):
        time = Time("2008-10-07T04:00")
        ephemeris = impactors[1].ephemeris(time, n=N)
        left = np.isfinite(ephemeris.coord.distance.value)
        assert 0.1 < ephemeris.fallen < 0.9
        assert ephemeris.fallen == pytest.approx(1.0 - left.mean())


class TestMisfits:
    def test_have_no_numbers_among_others(self, estimate, times, many):
        samples = many._samples[:]
        samples.r[2] = samples.v[2] = np.nan
        ephemeris = Ephemeris(samples, times, "G96")
        for value in (ephemeris.area(), ephemeris.altitude, ephemeris.fallen, ephemeris.center.ra):
            assert np.isnan(np.asarray(value)).tolist() == [[k == 2] * 2 for k in range(5)]
        assert u.allclose(ephemeris.area(0.95)[1], many.area(0.95)[1])

    def test_say_so_in_notebooks(self, estimate, times):
        samples = estimate.samples(20, 0)
        samples.r[2] = samples.v[2] = np.nan
        text = Ephemeris(samples, times[0], "G96")[2]._repr_html_()
        assert "no ephemeris" in text
        assert "nan" not in text

    def test_have_the_reason_where_no_station_is_known(self):
        t = Time("2024-12-27T05:42") + [0.0, 30.0] * u.min
        place = SkyCoord([134.1, 134.0], [-0.27, -0.11], unit="deg")
        with pytest.warns(NeoRangingWarning, match="XYZ"):
            night = nr.Tracklet(t, place, station="XYZ", sigma=1.0 * u.arcsec)
        estimate = night.estimate(method="systematic")
        with pytest.raises(EstimationError, match="status UNKNOWN_OBSERVER"):
            estimate.ephemeris(t[0], "G96")


class TestArguments:
    @pytest.mark.parametrize(
        ("times", "words"),
        [
            ("2024-12-28", "must be an astropy Time, got str"),
            (60_000.0, "must be an astropy Time, got float"),
            (Time("2024-12-28", scale="local"), "'local'"),
            (Time([], format="mjd"), r"shape \(0,\)"),
            (Time([[60_000.0]], format="mjd"), r"shape \(1, 1\)"),
        ],
    )
    def test_times_are_instants(self, estimate, times, words):
        with pytest.raises(EstimationError, match=words):
            estimate[1].ephemeris(times, n=5)

    @pytest.mark.parametrize("n", [0, -1, 1.5, "10", True])
    def test_counts_are_whole(self, estimate, times, n):
        with pytest.raises(EstimationError, match="n must be a whole number from 1 on"):
            estimate[1].ephemeris(times, n=n)

    def test_stations_are_one_or_one_for_each_instant(self, estimate, times):
        with pytest.raises(EstimationError, match="3 were given for 2 instants"):
            estimate[1].ephemeris(times, ["G96", "703", "W68"], n=5)
        both = estimate[1].ephemeris(times, ["G96", "703"], n=20)
        alone = estimate[1].ephemeris(times[1], "703", n=20)
        assert u.allclose(both.altitude[1], alone.altitude)

    def test_a_place_in_numbers_is_refused(self, estimate, times):
        with pytest.raises(TrackletError, match=r"EarthLocation\.from_geodetic"):
            estimate[1].ephemeris(times, (-110.0, 32.0, 2000.0), n=5)

    def test_positions_are_of_any_frame_and_fit_the_clouds(self, one, many):
        for frame in ("fk5", "galactic", "gcrs"):
            assert one.contains(one.center.transform_to(frame), 0.95)
        with pytest.raises(EstimationError, match="must be a SkyCoord, got tuple"):
            one.contains((128.0, 4.0))
        for shape in ((3,), (5,), (2, 5), (2, 5, 2)):
            places = SkyCoord(np.zeros(shape), 0.0, unit="deg")
            with pytest.raises(EstimationError, match="coord has the shape"):
                many.contains(places)
        assert many.contains(SkyCoord([[0.0]], 0.0, unit="deg")).shape == (5, 2)


class TestPointings:
    def test_hold_what_they_say(self, one):
        fields = one.pointings(20.0 * u.arcmin, coverage=0.9)
        assert fields.colnames == ["ra", "dec", "probability", "cumulative"]
        assert fields.meta["is_covered"]
        assert fields["cumulative"][-1] >= 0.9 - 1e-9
        middles = SkyCoord(fields["ra"], fields["dec"]).cartesian.xyz.value.T
        draws = one.coord.icrs.represent_as("unitspherical").to_cartesian().xyz.value.T
        inside = np.any([in_field(m, draws, np.radians(1 / 3)) for m in middles], axis=0)
        assert inside.mean() == pytest.approx(fields["cumulative"][-1], abs=0.06)

    def test_say_when_the_cloud_is_too_wide(self, estimate, times):
        wide = estimate[0].ephemeris(times[0], "G96", n=N)
        fields = wide.pointings(1.0 * u.arcmin)
        assert not fields.meta["is_covered"]
        assert fields["probability"].sum() < 0.5

    @pytest.mark.parametrize("field", [0.0 * u.deg, 90.0 * u.deg, [1, 2] * u.deg, np.nan * u.deg])
    def test_want_one_angle(self, one, field):
        with pytest.raises(EstimationError, match="field must be one value between 0 and 90 deg"):
            one.pointings(field)

    @pytest.mark.parametrize("coverage", [0.0, 95.0, "most"])
    def test_want_a_share(self, one, coverage):
        with pytest.raises(EstimationError, match=r"^coverage must"):
            one.pointings(1.0 * u.deg, coverage)

    def test_want_a_unit(self, one):
        with pytest.raises(EstimationError, match=r"write `field \* u.deg`"):
            one.pointings(0.5)


class TestTable:
    def test_has_a_row_for_each_tracklet_and_instant(self, many):
        table = QTable(many)
        assert len(table) == 10
        assert table["tracklet"].tolist() == [label for label in "01234" for _ in range(2)]
        assert u.allclose(table["area_95"].reshape(5, 2), many.area(0.95))
        assert table["time"].scale == "utc"
        assert u.allclose(table["ra"].reshape(5, 2), many.center.ra)
        assert np.all(table["magnitude_low"] < table["magnitude"])
        assert np.all(table["magnitude"] < table["magnitude_high"])

    def test_motion_is_that_of_the_center(self, estimate, times):
        pair = estimate[4].ephemeris(times[1] + [0.0, 1.0] * u.hr, n=N)
        (before, after), row = pair.center, pair.to_table()[0]
        rate = before.separation(after) / u.hr
        assert row["proper_motion"].to_value(u.deg / u.d) == pytest.approx(
            rate.to_value(u.deg / u.d), rel=0.02
        )
        assert before.position_angle(after).deg == pytest.approx(
            row["position_angle"].value, abs=1.0
        )

    def test_without_a_magnitude_has_none(self, estimate, times):
        samples = estimate.samples(N, 0)
        samples.absolute_magnitude[1] = np.nan * u.mag
        table = Ephemeris(samples, times[:1], "G96").to_table()
        for name in ("magnitude", "magnitude_low", "magnitude_high"):
            assert np.isnan(table[name].value).tolist() == [False, True, False, False, False]
        assert np.isfinite(table["area_95"].value).all()

    def test_weights_count_in_all_of_it(self, estimate, times):
        """The draws of one half alone are those of weight zero in the other."""
        samples = estimate.samples(N, 0)
        weights = np.where(np.arange(N) < N // 2, 2.0 / N, 0.0) * np.ones((5, 1))
        flat = {name: getattr(samples, name)[:, : N // 2] for name in ("r", "v", "epoch")}
        half = replace(
            samples,
            range=samples.range[:, : N // 2],
            range_rate=samples.range_rate[:, : N // 2],
            absolute_magnitude=samples.absolute_magnitude[:, : N // 2],
            weights=np.full((5, N // 2), 2.0 / N),
            **flat,
        )
        weighed = Ephemeris(replace(samples, weights=weights), times, "G96")
        alone = Ephemeris(half, times, "G96")
        assert weighed.center.ra.deg == pytest.approx(alone.center.ra.deg, abs=0.02)
        assert weighed.to_table()["magnitude"].value == pytest.approx(
            alone.to_table()["magnitude"].value, abs=0.02
        )
        assert weighed.area(0.68).value == pytest.approx(alone.area(0.68).value, rel=0.3)

    def test_shows_itself(self, many, one):
        assert repr(many) == f"<Ephemeris: 5 tracklets, 2 instants, {N} orbits>"
        assert "1 tracklet" in repr(one)
        assert "G96" in one._repr_html_()
        assert "area_95" in many._repr_html_()
