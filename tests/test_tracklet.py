"""`Tracklet` and `TrackletSet`: what goes in, what is refused, what comes out."""

import copy
import pickle

import numpy as np
import pytest
from astropy import units as u
from astropy.coordinates import EarthLocation, SkyCoord
from astropy.table import QTable
from astropy.time import Time

import neoranging as nr
from neoranging.constants import ARCSEC
from neoranging.exceptions import NeoRangingWarning, TrackletError
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
        from neoranging.observations.observatories import observatory

        by_code, by_place = make(), make(station=observatory("G96").location)
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


class TestStations:
    @pytest.mark.parametrize(
        ("given", "codes"),
        [
            (33, "033"),
            (95, "095"),
            ("95", "095"),
            (703.0, "703"),
            (" G96 ", "G96"),
            (b"G96", "G96"),
            (np.array([703, 703, 33, 33]), "703,033"),
            ([703.0, 703.0, 33.0, 33.0], "703,033"),
        ],
    )
    def test_numbers_and_blanks(self, given, codes):
        assert ",".join(dict.fromkeys(make(station=given).station)) == codes

    def test_small_letters(self):
        with pytest.warns(NeoRangingWarning, match="'g96' is taken for 'G96'"):
            assert make(station="g96") == make()

    @pytest.mark.parametrize("given", [None, np.nan, "", "nan", ["G96", None, "G96", "G96"]])
    def test_none_is_told_as_missing(self, given):
        with pytest.raises(TrackletError, match="no station is given"):
            make(station=given)

    @pytest.mark.parametrize(
        "given",
        [(10.0, 50.0, 100.0), [10.0, 50.0, 100.0], (10 * u.deg, 50 * u.deg, 1 * u.m), 10.5],
    )
    def test_coordinates_are_no_code(self, given):
        with pytest.raises(TrackletError, match=r"EarthLocation\.from_geodetic"):
            make(station=given)
        with pytest.raises(TrackletError, match=r"EarthLocation\.from_geodetic"):
            nr.ephemeris.observer_posvel(TIMES, given)

    @pytest.mark.parametrize("given", [True, {"code": "G96"}, object()])
    def test_other_things_are_no_code(self, given):
        with pytest.raises(TrackletError, match="station must be an MPC code"):
            make(station=given)

    def test_unknown_ones_are_kept_with_a_warning(self):
        with pytest.warns(NeoRangingWarning, match="'Catalina' .near it: .*703"):
            t = make(station="Catalina")
        assert t.estimate("gauss").status is nr.RangeStatus.UNKNOWN_OBSERVER

    def test_places_of_another_number(self):
        place = EarthLocation.from_geodetic([0, 10] * u.deg, 40 * u.deg, 0 * u.m)
        with pytest.raises(TrackletError, match="one EarthLocation or 4"):
            make(station=place)

    def test_of_an_attributable(self):
        options = {"epoch": TIMES[0], "ra": 1 * u.deg, "dec": 1 * u.deg}
        options |= {"ra_rate": 1 * u.deg / u.d, "dec_rate": 1 * u.deg / u.d}
        place = nr.Attributable(station="703", **options).observer_position
        for given in (703, 703.0, " 703 "):
            again = nr.Attributable(station=given, **options)
            np.testing.assert_array_equal(again.observer_position, place)
        with pytest.raises(nr.exceptions.UnknownStationError, match=r"'70X' \(near it"):
            nr.Attributable(station="70X", **options)
        with pytest.raises(TrackletError, match="no station"):
            nr.Attributable(station="", **options)


class TestSigmas:
    def test_that_no_telescope_reaches_are_replaced(self):
        with pytest.warns(NeoRangingWarning, match="below 1 mas"):
            t = make(sigma=0.3 * u.mas)
        assert t == make()

    def test_of_degrees_are_told(self):
        with pytest.warns(NeoRangingWarning, match="above 300 arcsec, up to 1080"):
            make(sigma=0.3 * u.deg)

    @pytest.mark.filterwarnings("ignore:.*without the place of the observer")
    @pytest.mark.parametrize("station", ["258", "275", "500"])
    def test_of_gaia_and_occultations_stay(self, station):
        t = make(sigma=0.3 * u.mas, station=station)
        np.testing.assert_allclose(t.sigma.to_value(u.mas), 0.3)

    @pytest.mark.parametrize("sigma", ["0.3", ["a"] * 4, None, 0.3 * u.km])
    def test_of_no_angle(self, sigma):
        with pytest.raises(TrackletError, match="sigma must be a Quantity"):
            make(sigma=sigma)


class TestOddColumns:
    def test_magnitudes_with_their_band(self):
        with pytest.raises(TrackletError, match=r"mag must hold numbers.*'18.1 V'.*band="):
            make(mag=["18.1 V"] * 4)

    def test_bands(self):
        assert list(make(band=["G", None, np.nan, "V"]).band) == ["G", "", "", "V"]
        with pytest.raises(TrackletError, match="band must hold text"):
            make(band=[1, 2, 3, 4])

    def test_frames_that_lack_what_they_depend_on(self):
        coord = SkyCoord([12.0] * 4, [5.0] * 4, unit="deg", frame="altaz")
        with pytest.raises(TrackletError, match=r"frame 'altaz' .* obstime= and location="):
            make(coord=coord)

    def test_local_time(self):
        with pytest.raises(TrackletError, match="scale 'local'"):
            make(Time(TIMES.isot, scale="local"))

    def test_designations_of_other_kinds(self):
        assert make(designation=None).designation == ""
        assert make(designation=99942).designation == "99942"
        assert make(designation="K08T03C").designation == "2008 TC3"


class TestAsAstropyDoes:
    def test_iterating_gives_observations(self):
        t = make(mag=[1.0, 2.0, 3.0, 4.0])
        rows = list(t)
        assert [row["mag"] for row in rows] == [1.0, 2.0, 3.0, 4.0]
        assert rows[2]["obstime"].isclose(TIMES[2])

    def test_tables_take_them(self, night):
        assert len(QTable(make())) == 4
        assert len(QTable(night)) == night.counts.sum()

    def test_notebooks_show_them(self, night):
        assert "4 observations" in make()._repr_html_()
        assert "20 tracklets" in night._repr_html_()

    def test_equal_by_value(self, night):
        assert make() == make()
        assert hash(make()) == hash(make())
        assert make() != make(mag=[1.0, 2.0, 3.0, 4.0])
        assert make() != make(designation="x")
        assert make() != "x"
        assert night == night[:]
        assert night != night[:5]
        assert night[3] == night[3]

    def test_columns_of_all_observations(self, night):
        assert night.coord.shape == night.station.shape == (night.counts.sum(),)
        assert set(night.station) == set(",".join(night.stations).split(","))

    def test_a_part_keeps_the_report(self):
        tracklets = nr.read_tracklets(nr.sample("2024YR4"))
        assert tracklets[1:3].report is tracklets.report


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

    @pytest.mark.parametrize("name", ["mag", "band", "station"])
    def test_columns_handed_out_cannot_be_written(self, name):
        t = make(mag=[1.0, 2.0, 3.0, 4.0])
        for column in (getattr(t, name), t._set.designation, t._set.counts, t._set.station):
            with pytest.raises(ValueError, match="read-only"):
                column[0] = column[-1]

    def test_copies_cannot_be_written_either(self):
        for again in (pickle.loads(pickle.dumps(make())), copy.deepcopy(make())):
            assert again == make()
            with pytest.raises(ValueError, match="read-only"):
                again.station[0] = "703"

    def test_what_is_handed_out_is_not_what_is_kept(self):
        t = make()
        t.coord.ra[:] = 0.0 * u.deg
        t.obstime[0] = TIMES[3]
        t.sigma[:] = 0.0 * u.arcsec
        assert t == make()

    def test_what_was_given_can_still_be_written(self):
        mag, sigma = np.array([1.0, 2.0, 3.0, 4.0]), np.ones(4) * u.arcsec
        codes, times = np.array(["G96"] * 4), TIMES.copy()
        t = make(times, mag=mag, sigma=sigma, station=codes)
        mag[0], sigma[0], codes[0], times[0] = 9.0, 9.0 * u.arcsec, "703", times[1]
        assert t == make(mag=[1.0, 2.0, 3.0, 4.0])

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
        options |= {"designation": "x", "on_bad": "raise"}
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

    ROWS = np.array([0, 1, 2, 3, 0, 1])

    def from_arrays(self, tracklet, **options):
        options = {"ra": COORD.ra[self.ROWS], "dec": COORD.dec[self.ROWS], **options}
        return TrackletSet.from_arrays(
            TIMES[self.ROWS], tracklet=tracklet, station=options.pop("station", "G96"), **options
        )

    def test_ids_are_kept(self):
        s = self.from_arrays(["t10", "t10", "t2", "t2", "t1", "t1"])
        assert list(s.tracklet_id) == ["t1", "t10", "t2"]
        assert list(self.from_arrays([10, 10, 2, 2, 1, 1]).tracklet_id) == ["1", "2", "10"]
        assert list(s[1:].tracklet_id) == ["t10", "t2"]
        assert TrackletSet.from_tracklets(list(s)) == s

    @pytest.mark.parametrize(
        ("bad", "reason"),
        [
            ({"ra": [1.0, 1.1, 1.2, np.nan, 1.3, 1.4] * u.deg}, "no number"),
            ({"dec": [1.0, 1.1, 1.2, 91.0, 1.3, 1.4] * u.deg}, "pole"),
            ({"sigma": [1.0, 1.0, 1.0, np.nan, 1.0, 1.0] * u.arcsec}, "without weight"),
            ({"sigma": [1.0, 1.0, 1.0, 0.0, 1.0, 1.0] * u.arcsec}, "without weight"),
            ({"station": ["G96", "G96", "G96", None, "G96", "G96"]}, "without station"),
        ],
    )
    def test_one_bad_observation_does_not_cost_the_set(self, bad, reason):
        ids = ["a", "a", "lost", "lost", "b", "b"]
        with pytest.warns(NeoRangingWarning, match=f"{reason}.*1 tracklet lost: lost"):
            s = self.from_arrays(ids, **bad)
        assert list(s.tracklet_id) == ["a", "b"]
        assert list(s.report.lost) == ["lost"]
        assert s.report.n_read == s.report.n_used + sum(s.report.reasons.values())
        with pytest.raises(TrackletError):
            self.from_arrays(ids, on_bad="raise", **bad)

    def test_one_epoch_does_not_cost_the_set(self):
        ids = ["a", "a", "a", "one", "b", "b"]
        with pytest.warns(NeoRangingWarning, match="1 tracklet lost: one"):
            s = self.from_arrays(ids)
        assert s.report.lost == {"one": "alone: no second epoch of that tracklet"}
        with pytest.raises(TrackletError, match=r"lost: one; .*two different epochs"):
            self.from_arrays(ids, on_bad="raise")
        with pytest.raises(TrackletError, match="two different epochs"):
            self.from_arrays(["a", "b", "c", "d", "e", "f"])

    def test_masked_epochs_do_not_cost_the_set(self):
        times = TIMES.copy()
        times[1] = np.ma.masked
        with pytest.warns(NeoRangingWarning, match="1 without epoch"):
            s = TrackletSet.from_arrays(
                times, COORD.ra, COORD.dec, station="G96", tracklet=[1, 1, 1, 1]
            )
        assert list(s.counts) == [3]

    def test_designations_are_labels_too(self):
        names = ["2008 TC3", "K08T03C", "2008TC3", "x", "x", "x"]
        s = self.from_arrays(None, designation=names)
        assert list(s.designation) == ["2008 TC3", "x"]
        assert list(s.tracklet_id) == ["", ""]

    def test_labels_that_differ_by_blanks_are_one(self):
        s = self.from_arrays(["b ", "b", " b", "a", "a", "a"])
        assert list(zip(s.tracklet_id, s.counts, strict=True)) == [("a", 3), ("b", 3)]
        assert list(self.from_arrays([10, 10, 10, 9, 9, 9]).tracklet_id) == ["9", "10"]

    def test_labels_are_asked_for(self):
        with pytest.raises(TrackletError, match=r"tracklet= .* designation=.*Tracklet\("):
            self.from_arrays(None)
        with pytest.raises(TrackletError, match="never joined on a guess"):
            self.from_arrays(None, designation="")
        with pytest.warns(NeoRangingWarning, match="3 without identity"):
            s = self.from_arrays(None, designation=["x", "x", "x", "", "nan", ""])
        assert list(s.designation) == ["x"]
        with pytest.warns(NeoRangingWarning, match="3 without identity"):
            assert list(self.from_arrays(["a", "a", "a", "", "", ""]).tracklet_id) == ["a"]
        with pytest.raises(TrackletError, match="on_bad must be"):
            self.from_arrays([1, 1, 1, 2, 2, 2], on_bad="ignore")

    @pytest.mark.parametrize(
        "ids",
        [
            ["a", 1, None, "b", "b", "b"],
            ["a", "a", None, "b", "b", "b"],
            [1.0, 1.0, np.nan, 2.0, 2.0, 2.0],
            [1.5, 1.5, 1.5, 2.0, 2.0, 2.0],
        ],
    )
    def test_ids_of_mixed_kinds(self, ids):
        with pytest.raises(TrackletError, match="tracklet must be all text or all whole numbers"):
            self.from_arrays(np.array(ids, dtype=object) if "a" in ids else ids)

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
