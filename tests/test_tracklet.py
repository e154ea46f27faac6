"""`Tracklet` and `TrackletSet`: what goes in, what is refused, what comes out."""

import pickle

import numpy as np
import pytest
from astropy import units as u
from astropy.coordinates import EarthLocation, SkyCoord
from astropy.table import QTable
from astropy.time import Time

import neoranging as nr
from neoranging.constants import ARCSEC
from neoranging.exceptions import TrackletError
from neoranging.tracklet import TrackletSet

TIMES = Time([60_000.10, 60_000.12, 60_000.15, 60_000.17], format="mjd", scale="utc")
COORD = SkyCoord([12.0, 12.02, 12.05, 12.07], [5.0, 5.01, 5.025, 5.034], unit="deg")


def make(obstime=TIMES, coord=COORD, station="G96", **options):
    return nr.Tracklet(obstime, coord, station=station, **options)


@pytest.fixture(scope="module")
def night(simulate):
    return simulate(20, 0.2, seed=300).tracklets()


class TestConstruction:
    def test_holds_what_was_given(self):
        t = make(
            sigma=0.3 * u.arcsec, mag=[20.1, np.nan, 20.3, 20.2], band="G", designation="2024 YR4"
        )
        assert len(t) == 4
        assert t.designation == "2024 YR4"
        np.testing.assert_allclose(t.obstime.mjd, TIMES.mjd, rtol=0, atol=1e-11)
        assert t.obstime.scale == "utc"
        assert t.coord.separation(COORD).max() < 1e-9 * u.arcsec
        np.testing.assert_allclose(t.sigma.to_value(u.arcsec), 0.3)
        assert t.sigma.shape == (4, 2)
        np.testing.assert_array_equal(t.mag, [20.1, np.nan, 20.3, 20.2])
        assert set(t.band) == {"G"}
        assert set(t.station) == {"G96"}
        assert t.arc_length.to_value(u.h) == pytest.approx(0.07 * 24)

    def test_the_default_sigma_is_an_arcsecond(self):
        np.testing.assert_allclose(make().sigma.to_value(u.arcsec), 1.0)

    def test_observations_are_put_in_order_of_time(self):
        order = np.array([2, 0, 3, 1])
        t = make(TIMES[order], COORD[order], sigma=np.array([3.0, 1.0, 4.0, 2.0]) * u.arcsec)
        assert (np.diff(t.obstime.mjd) > 0.0).all()
        assert t.coord.separation(COORD).max() < 1e-9 * u.arcsec
        np.testing.assert_allclose(t.sigma[:, 0].to_value(u.arcsec), [1.0, 2.0, 3.0, 4.0])

    def test_epochs_of_any_scale_are_the_same_instants(self):
        for scale in ("tdb", "tt", "tai"):
            t = make(getattr(TIMES, scale))
            assert np.abs((t.obstime - TIMES).to_value(u.s)).max() < 1e-5
            assert t._set._tdb == pytest.approx(make()._set._tdb, abs=1e-10)

    def test_other_frames_are_turned_into_icrs(self):
        t = make(coord=COORD.galactic)
        assert t.coord.separation(COORD).max() < 1e-6 * u.arcsec

    def test_sigma_in_two_columns(self):
        sigma = np.array([[0.1, 0.2]] * 4) * u.arcsec
        np.testing.assert_allclose(make(sigma=sigma).sigma.to_value(u.arcsec), sigma.value)
        arcs = make(sigma=sigma)._set.arcs()
        np.testing.assert_allclose(arcs.sigma_ra, 0.1 * ARCSEC)
        np.testing.assert_allclose(arcs.sigma_dec, 0.2 * ARCSEC)

    def test_a_code_and_its_place_are_the_same_observer(self):
        from neoranging.observations.observatories import location

        by_code, by_place = make(), make(station=location("G96"))
        np.testing.assert_allclose(
            by_place._set.arcs().position, by_code._set.arcs().position, rtol=0, atol=1e-15
        )
        assert set(by_place.station) == {""}
        assert "a given place" in repr(by_place)

    def test_places_of_each_observation(self):
        place = EarthLocation.from_geodetic([0, 10, 20, 30] * u.deg, 40 * u.deg, 0 * u.m)
        t = make(station=place)
        np.testing.assert_allclose(t.location.lon.deg, [0, 10, 20, 30], atol=1e-9)

    def test_several_codes(self):
        t = make(station=["G96", "703", "G96", "703"])
        assert list(t.station) == ["G96", "703", "G96", "703"]
        assert "G96, 703" in repr(t)

    def test_numpy_angles_need_units(self):
        with pytest.raises(TrackletError, match=r"`ra \* u.deg`"):
            TrackletSet.from_arrays(TIMES, np.zeros(4), np.zeros(4), station="500")
        with pytest.raises(TrackletError, match=r"`sigma \* u.arcsec`"):
            make(sigma=0.3)

    @pytest.mark.parametrize("obstime", [TIMES.mjd, TIMES.isot.tolist()])
    def test_epochs_need_a_time(self, obstime):
        with pytest.raises(TrackletError, match=r"Time\(obstime, format='mjd', scale='utc'\)"):
            make(obstime=obstime)
        with pytest.raises(TrackletError, match="obstime must be an astropy Time"):
            TrackletSet.from_arrays(obstime, COORD.ra, COORD.dec, station="500")

    def test_directions_need_a_sky_coord(self):
        with pytest.raises(TrackletError, match="coord must be an astropy SkyCoord, got tuple"):
            make(coord=(COORD.ra, COORD.dec))


class TestRefusals:
    @pytest.mark.parametrize(
        ("change", "match"),
        [
            ({"obstime": TIMES[:3]}, "one length"),
            ({"obstime": TIMES.reshape(2, 2), "coord": COORD.reshape(2, 2)}, "one-dimensional"),
            ({"obstime": TIMES[0], "coord": COORD[0]}, "one-dimensional"),
            ({"sigma": 0.0 * u.arcsec}, "sigma"),
            ({"sigma": -1.0 * u.arcsec}, "sigma"),
            ({"sigma": np.nan * u.arcsec}, "sigma"),
            ({"sigma": [1.0, 2.0, 3.0] * u.arcsec}, "sigma"),
            ({"station": ["G96", "703"]}, "station"),
            ({"obstime": TIMES[:1], "coord": COORD[:1]}, "two different epochs"),
            ({"obstime": TIMES[[1, 1, 1, 1]]}, "two different epochs"),
            ({"coord": SkyCoord([np.nan, 1, 2, 3], [0, 0, 0, 0], unit="deg")}, "finite"),
        ],
    )
    def test_say_what_is_wrong(self, change, match):
        with pytest.raises(TrackletError, match=match):
            make(**change)

    def test_are_value_errors(self):
        with pytest.raises(ValueError, match="sigma"):
            make(sigma=0.0 * u.arcsec)

    @pytest.mark.parametrize("name", ["mag", "band"])
    def test_magnitudes_and_bands_of_another_length(self, name):
        with pytest.raises(TrackletError, match=name):
            make(**{name: [1.0, 2.0] if name == "mag" else ["G", "V"]})

    def test_no_observations(self):
        with pytest.raises(TrackletError):
            make(TIMES[:0], COORD[:0])

    def test_the_observer_is_never_assumed(self):
        with pytest.raises(TypeError, match="station"):
            nr.Tracklet(TIMES, COORD)

    @pytest.mark.parametrize("origin", ["geocentre", "", None])
    def test_an_origin_that_is_none(self, origin):
        with pytest.raises(TrackletError, match="origin"):
            make().attributable(origin=origin)

    def test_a_method_that_is_none(self):
        with pytest.raises(TrackletError, match="three-point"):
            make().attributable(method="four-point")

    def test_masked_epochs(self):
        times = TIMES.copy()
        times[1] = np.ma.masked
        with pytest.raises((TrackletError, nr.exceptions.EphemerisError)):
            make(times).estimate("gauss")


class TestParts:
    def test_slices_keep_what_belongs_together(self):
        t = make(sigma=np.array([1.0, 2.0, 3.0, 4.0]) * u.arcsec, designation="x")
        part = t[1:]
        assert isinstance(part, nr.Tracklet)
        assert len(part) == 3
        assert part.designation == "x"
        np.testing.assert_allclose(part.sigma[:, 0].to_value(u.arcsec), [2.0, 3.0, 4.0])
        assert len(t[np.array([True, False, True, True])]) == 3

    def test_the_order_of_an_index_does_not_disorder_the_epochs(self):
        part = make()[::-1]
        assert (np.diff(part.obstime.mjd) > 0.0).all()

    def test_one_observation_is_no_tracklet(self):
        with pytest.raises(TrackletError, match="two different epochs"):
            make()[0]
        with pytest.raises(TrackletError):
            make()[:0]

    def test_the_triplet(self):
        triplet = make().triplet()
        assert len(triplet) == 3
        np.testing.assert_allclose(triplet.obstime.mjd, TIMES.mjd[[0, 1, 3]], atol=1e-10)
        with pytest.raises(TrackletError, match="three"):
            make()[:2].triplet()

    def test_fit_residuals_of_a_parabola_vanish(self):
        t = make(sigma=0.1 * u.arcsec)
        assert t.fit_residuals().shape == (4, 2)
        assert np.abs(t[:3].fit_residuals()).max() < 1e-6 * u.arcsec
        assert t.fit_residuals().unit == u.arcsec

    def test_columns_handed_out_are_copies(self):
        t = make(mag=[1.0, 2.0, 3.0, 4.0])
        t.mag[:] = 0.0
        t.station[:] = "703"
        assert t.mag[0] == 1.0
        assert t.station[0] == "G96"

    def test_the_attributable(self):
        a = make().attributable()
        assert a.ra.shape == ()
        assert abs(a.epoch.utc.mjd - 60_000.12) < 1e-8
        assert a.proper_motion.to_value(u.deg / u.d) == pytest.approx(1.1, abs=0.05)
        three = make().attributable(method="three-point")
        assert three.ra_rate.to_value(u.deg / u.d) == pytest.approx(1.0, rel=1e-9)

    def test_survives_pickling(self):
        t = make(designation="x")
        again = pickle.loads(pickle.dumps(t))
        assert repr(again) == repr(t)
        assert again.estimate("gauss").status is t.estimate("gauss").status


class TestSet:
    def test_is_a_sequence(self, night):
        assert len(night) == 20
        assert isinstance(night[3], nr.Tracklet)
        assert night[-1].designation == "S000019"
        assert [t.designation for t in night] == list(night.designation)
        assert isinstance(night[2:4], TrackletSet)
        assert list(night[[5, 5, 1]].designation) == ["S000005", "S000005", "S000001"]
        assert len(night[night.counts > 4]) == (night.counts > 4).sum()
        for outside in (20, -21):
            with pytest.raises(IndexError, match=f"no tracklet {outside} in a set of 20"):
                night[outside]
        with pytest.raises(IndexError, match="designation == 'S000005'"):
            night["S000005"]
        assert "20 tracklets" in repr(night)

    def test_arc_lengths_are_those_of_each(self, night):
        each = [t.arc_length.to_value(u.h) for t in night]
        np.testing.assert_array_equal(night.arc_length.to_value(u.h), each)
        np.testing.assert_array_equal(night.arcs().span * 24.0, each)
        np.testing.assert_array_equal(night[[5, 2]].arc_length, night.arc_length[[5, 2]])

    def test_joining_what_was_taken_apart(self, night):
        joined = TrackletSet.from_tracklets(list(night))
        np.testing.assert_array_equal(joined.counts, night.counts)
        np.testing.assert_array_equal(joined.designation, night.designation)
        for one, other in zip(joined._columns, night._columns, strict=True):
            np.testing.assert_array_equal(one, other)
        with pytest.raises(TrackletError, match="at least one"):
            TrackletSet.from_tracklets([])

    def test_names_and_codes_of_different_lengths_are_not_cut(self):
        joined = TrackletSet.from_tracklets(
            [make(designation="A"), make(designation="A very long designation")]
        )
        assert list(joined.designation) == ["A", "A very long designation"]

    def test_from_arrays_groups_by_tracklet(self):
        rows = np.array([0, 2, 1, 3])
        s = TrackletSet.from_arrays(
            TIMES[rows],
            COORD.ra[rows],
            COORD.dec[rows],
            station="G96",
            tracklet=np.array(["b", "a", "b", "a"]),
            designation=np.array(["second", "first", "second", "first"]),
        )
        assert list(s.designation) == ["first", "second"]
        assert list(s.counts) == [2, 2]
        np.testing.assert_allclose(s[1].obstime.mjd, TIMES.mjd[[0, 1]], atol=1e-10)

    def test_declinations_end_at_the_poles(self):
        options = {"obstime": TIMES[:2], "ra": [1.0, 1.1] * u.deg, "station": "G96"}
        TrackletSet.from_arrays(dec=[324_000.0, 323_900.0] * u.arcsec, **options)
        with pytest.raises(TrackletError, match=r"between -90 and 90 deg, got -95"):
            TrackletSet.from_arrays(dec=[-94.0, -95.0] * u.deg, **options)

    def test_stations_are_told_once_in_order_of_time(self):
        codes = np.array(["703", "G96", "703", "F51", "500", "500"])
        s = TrackletSet.from_arrays(
            TIMES[[0, 1, 2, 3, 0, 1]],
            COORD.ra[[0, 1, 2, 3, 0, 1]],
            COORD.dec[[0, 1, 2, 3, 0, 1]],
            station=codes,
            tracklet=[0, 0, 0, 0, 1, 1],
        )
        assert list(s.stations) == ["703,G96,F51", "500"]
        assert list(s[1:].stations) == ["500"]
        assert s[:0].stations.shape == (0,)

    def test_a_tracklet_of_one_epoch_is_named(self):
        with pytest.raises(TrackletError, match="lone"):
            TrackletSet.from_arrays(
                TIMES,
                COORD.ra,
                COORD.dec,
                station="G96",
                tracklet=[0, 0, 0, 1],
                designation=["x", "x", "x", "lone"],
            )

    @pytest.mark.parametrize("name", ["tracklet", "designation"])
    def test_columns_of_another_length(self, name):
        with pytest.raises(TrackletError, match=name):
            TrackletSet.from_arrays(TIMES, COORD.ra, COORD.dec, station="G96", **{name: ["a", "b"]})

    def test_tables_go_back_to_tracklets(self, night):
        table = night.to_table()
        assert isinstance(table, QTable)
        assert len(table) == night.counts.sum()
        again = nr.read_tracklets(table)
        whole = np.isin(night.designation, again.designation[again.counts > 2])
        assert whole.mean() > 0.8  # some of these simulated nights last past noon
        compared = 0
        for tracklet in again:
            k = int(np.nonzero(night.designation == tracklet.designation)[0][0])
            if len(tracklet) == night.counts[k]:
                one, other = tracklet.estimate("gauss"), night[k].estimate("gauss")
                assert one.status is other.status
                assert not one.ok or one.range.value == pytest.approx(other.range.value, rel=1e-6)
                compared += 1
        assert compared > 15

    def test_attributables_of_all(self, night):
        a = night.attributable()
        assert len(a) == 20
        assert a.ra_rate.shape == (20,)
        for k in (0, 11):
            alone = night[k].attributable()
            assert alone.ra_rate.value == pytest.approx(a.ra_rate[k].value, rel=1e-10)

    def test_survives_pickling(self, night):
        again = pickle.loads(pickle.dumps(night))
        np.testing.assert_array_equal(again.estimate("gauss").status, night.estimate().status)


class TestSpacecraft:
    """Observers given by where they flew, as in space-based records."""

    def test_position_and_mean_velocity(self):
        gcrs = np.array([[7000.0, 0, 0], [6900.0, 1000.0, 0], [6700.0, 1900.0, 100.0]]) * u.km
        table = QTable(
            {
                "designation": ["x"] * 3,
                "obstime": TIMES[:3],
                "ra": COORD.ra[:3],
                "dec": COORD.dec[:3],
                "station": ["250"] * 3,
                "kind": ["space"] * 3,
                "observer_gcrs": gcrs,
            }
        )
        t = nr.read_tracklets(table)[0]
        centre, flown = t._set.arcs("geocenter"), t._set.arcs()
        np.testing.assert_allclose(
            (flown.position - centre.position) * u.au.to(u.km), gcrs.value, atol=1e-3
        )
        span = (t.obstime[-1] - t.obstime[0]).to_value(u.d)
        mean = (gcrs[-1] - gcrs[0]).to_value(u.au) / span
        np.testing.assert_allclose(
            flown.velocity - centre.velocity, np.tile(mean, (3, 1)), rtol=1e-6
        )
        assert t.estimate("gauss").status is not nr.RangeStatus.UNKNOWN_OBSERVER
        again = nr.read_tracklets(t.to_table())[0]
        np.testing.assert_allclose(again._set.arcs().position, flown.position, atol=1e-15)

    @pytest.mark.parametrize(
        ("station", "known"),
        [
            (["G96", "250", "250", "G96"], [True] * 4),
            (["250", "250", "C51", "C51"], [True] * 4),
            (["G96", "250", "G96", "C51"], [True, False, True, False]),
        ],
    )
    def test_velocity_of_each_spacecraft_among_other_observers(self, station, known):
        place = {"250": [7000.0, 0, 0], "C51": [0, 0, 9000.0], "G96": [np.nan] * 3}
        station, hours = np.array(station), 24.0 * (TIMES[:4] - TIMES[0]).to_value(u.d)
        # 1000 km/h along y, and a standing start
        gcrs = np.array([place[code] for code in station]) + np.outer(1000.0 * hours, [0, 1, 0])
        table = QTable(
            {
                "designation": ["x"] * 4,
                "obstime": TIMES[:4],
                "ra": COORD.ra[:4],
                "dec": COORD.dec[:4],
                "station": station,
                "kind": np.where(station == "G96", "ground", "space"),
                "observer_gcrs": gcrs * u.km,
            }
        )
        found = nr.read_tracklets(table, group_by="night")
        velocity = found.arcs().velocity - found.arcs("geocenter").velocity
        np.testing.assert_array_equal(np.isfinite(velocity[:, 0]), known)
        flown = np.array(known) & (station != "G96")
        expected = np.tile([0, 24_000.0 / 149_597_870.7, 0], (flown.sum(), 1))
        np.testing.assert_allclose(velocity[flown], expected, rtol=1e-6, atol=1e-12)
        middle = found.arcs().triplet[0, 1]
        for method in ("gauss", "laplace"):
            estimate = found.estimate(method)
            lost = estimate.status[0] is nr.RangeStatus.UNKNOWN_OBSERVER
            assert lost is not known[middle]
            assert lost or np.isfinite(estimate.range_rate[0]) == np.isfinite(estimate.range[0])
