"""Observations of one tracklet: identity, nights, stations, exposures, full accounting."""

import numpy as np
import pandas as pd
import pytest
from astropy import units as u
from astropy.coordinates import SkyCoord
from astropy.table import MaskedColumn, join, vstack
from astropy.utils.masked import Masked
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from observation_tables import table_of

import neoranging as nr
from neoranging.exceptions import NeoRangingWarning, ObservationFormatError
from neoranging.grouping import UNNAMED
from neoranging.observations.exposures import written_resolution
from neoranging.observations.reading import parse_observations
from neoranging.tracklet import TrackletSet

STATIONS = ("G96", "703", "500", "F51", "C51")


def flown(mjd, station="C51", **columns):
    place = np.stack([7000.0 + 0.0 * mjd, 100.0 * (mjd - mjd[0]), 0.0 * mjd], axis=1)
    return table_of(mjd, station=station, kind=["space"] * len(mjd), observer_gcrs=place * u.km)


def read(source, **options):
    tracklets = nr.read_tracklets(source, **options)
    report = tracklets.report
    assert report.n_read == report.n_used + report.n_set_aside
    assert report.n_used == tracklets.counts.sum() == len(tracklets._columns.ra)
    assert report.n_tracklets == len(tracklets)
    assert all(count > 0 for count in report.reasons.values())
    return tracklets


class TestNights:
    def test_run_from_local_noon_to_local_noon(self):
        """At G96, 110.8 W, noon is at 19.4 h UTC: 0.808 of a day."""
        noon = 60_000.0 + 0.5 + 110.789 / 360.0
        times = noon + np.array([-0.2, -0.01, 0.01, 0.2])
        assert list(read(table_of(times)).counts) == [2, 2]

    def test_are_not_cut_at_midnight_utc(self):
        assert list(read(table_of([60_000.9, 60_000.99, 60_001.01, 60_001.1])).counts) == [4]

    def test_at_an_eastern_station(self):
        """Q63 Siding Spring, 149 E: noon at 2 h UTC."""
        noon = 60_000.5 - 149.07 / 360.0
        times = noon + np.array([-0.2, -0.01, 0.01, 0.2])
        assert list(read(table_of(times, station="Q63")).counts) == [2, 2]

    @pytest.mark.filterwarnings("ignore:.*no list of observatories has 'ZZZ'")
    @pytest.mark.parametrize("station", ["500", "ZZZ"])
    def test_without_a_longitude_end_at_a_pause(self, station):
        noon = 60_000.5 + np.array([-0.2, -0.01, 0.01, 0.2])
        assert list(read(table_of(noon, station=station)).counts) == [4]
        later = np.concatenate([noon, noon + 0.95])  # a pause of 13 h
        assert list(read(table_of(later, station=station)).counts) == [4, 4]

    def test_of_a_spacecraft_around_the_clock(self):
        """Four days of an observation every hour are tracklets of no more than a day."""
        tracklets = read(flown(60_000.3 + np.arange(97) / 24.0))
        assert tracklets.counts.sum() == 97
        assert list(tracklets.counts) == [24, 24, 24, 25]
        assert tracklets.arc_length.max() <= 1.0001 * u.d

    def test_of_a_spacecraft_over_noon(self):
        """Orbits of 95 minutes, from 10 h to 15 h UTC."""
        times = 60_000.4166 + np.arange(4) * 95.0 / 1440.0
        for group_by in ("night", "station"):
            assert list(read(flown(times), group_by=group_by).counts) == [4]

    def test_of_a_spacecraft_are_those_of_its_object(self):
        times = np.repeat(60_000.45 + np.arange(4) * 0.066, 2) + np.tile([0.0, 0.01], 4)
        table = flown(times)
        table["designation"] = ["a", "b"] * 4
        assert list(read(table).counts) == [4, 4]

    def test_of_a_spacecraft_beside_a_station(self):
        """By night, a run counts where its middle lies; noon does not divide it."""
        craft = flown(60_000.45 + np.arange(4) * 0.066)
        ground = table_of(60_000.6 + 0.01 * np.arange(3), station="M22")
        assert list(read([craft, ground], group_by="night").counts) == [7]
        assert sorted(read([craft, ground]).counts) == [3, 4]

    def test_of_a_roving_observer_are_local_too(self):
        place = np.array([0.0, 6.378e6, 0.0])  # 90 E, noon at 6 h UTC
        times = 60_000.25 + np.array([-0.2, -0.01, 0.01, 0.2])
        table = table_of(
            times,
            station="247",
            kind=["roving"] * 4,
            observer_itrf=np.tile(place, (4, 1)) << u.m,
        )
        tracklets = read(table)
        assert list(tracklets.counts) == [2, 2]
        again = read(tracklets.to_table())
        np.testing.assert_allclose(again._columns.itrf, np.tile(place, (4, 1)))


class TestGroups:
    def test_stations_are_kept_apart_by_default_and_joined_on_request(self):
        times = 60_000.1 + 0.01 * np.arange(6)
        table = table_of(times, station=["G96", "703"] * 3)
        assert sorted(read(table).counts) == [3, 3]
        joined = read(table, group_by="night")
        assert list(joined.counts) == [6]
        assert set(joined[0].station) == {"G96", "703"}
        for group_by in (("night", "station"), "station", ["station"]):
            assert list(read(table, group_by=group_by).counts) == [3, 3]

    @pytest.mark.parametrize("group_by", ["night", "station"])
    def test_nights_are_always_apart(self, group_by):
        assert list(
            read(table_of([60_000.1, 60_000.2, 60_001.1, 60_001.2]), group_by=group_by).counts
        ) == [2, 2]

    @pytest.mark.parametrize("group_by", ["night", "station"])
    def test_programmes_and_notes_divide_nothing(self, group_by):
        times = 60_000.1 + 0.01 * np.arange(4)
        for codes in (["1", "2", "1", "2"], ["", "", "K", "K"]):
            assert list(read(table_of(times, program=codes), group_by=group_by).counts) == [4]

    def test_objects_are_always_apart(self):
        times = 60_000.1 + 0.01 * np.arange(4)
        tracklets = read(table_of(times, designation=["a", "b", "a", "b"]), group_by="night")
        assert list(tracklets.designation) == ["a", "b"]

    def test_come_in_order_of_their_first_observation(self):
        times = [60_002.1, 60_002.2, 60_000.1, 60_000.2, 60_001.1, 60_001.2]
        tracklets = read(table_of(times, designation=["late"] * 2 + ["early"] * 2 + ["mid"] * 2))
        assert list(tracklets.designation) == ["early", "mid", "late"]

    @pytest.mark.parametrize("group_by", ["month", (), ("night", "object"), None])
    def test_that_make_no_sense(self, group_by):
        with pytest.raises((ObservationFormatError, TypeError)):
            nr.read_tracklets(table_of([60_000.1, 60_000.2]), group_by=group_by)


class TestIdentity:
    TIMES = 60_000.1 + 0.01 * np.arange(6)

    def test_rows_of_one_id_are_one_tracklet(self):
        table = table_of(self.TIMES, tracklet=["b", "a"] * 3)
        tracklets = read(table)
        assert list(tracklets.tracklet_id) == ["b", "a"]
        assert list(tracklets.designation) == ["x", "x"]
        assert [t.tracklet_id for t in tracklets] == ["b", "a"]

    def test_ids_come_back_for_a_join(self):
        table = table_of(self.TIMES, designation="", tracklet=["t7"] * 3 + ["t3"] * 3)
        tracklets = read(table)
        assert list(tracklets.to_table()["tracklet"]) == ["t7"] * 3 + ["t3"] * 3
        estimates = tracklets.estimate("gauss").to_table()
        joined = join(table, estimates["tracklet", "range", "status"], keys="tracklet")
        assert len(joined) == 6
        assert "t7" in repr(tracklets[0])
        again = read(tracklets.to_table())
        assert list(again.tracklet_id) == ["t7", "t3"]
        assert again[1] == tracklets[1]

    def test_numbers_stand_in_where_there_is_no_id(self):
        tracklets = read(table_of(self.TIMES, designation=["a", "b"] * 3))
        assert list(tracklets.tracklet_id) == ["", ""]
        assert list(tracklets.estimate("gauss").to_table()["tracklet"]) == ["0", "1"]

    def test_an_id_is_divided_by_night_and_station_as_asked(self):
        times = np.concatenate([self.TIMES, self.TIMES + 1.0])
        station = ["G96", "703"] * 6
        table = table_of(times, designation="", station=station, tracklet=["t"] * 12)
        assert list(read(table).tracklet_id) == ["t"] * 4
        assert list(read(table, group_by="night").counts) == [6, 6]

    def test_rows_without_an_id_take_the_only_one_of_their_object_and_night(self):
        table = table_of(self.TIMES, tracklet=["t", "", "", "", "t", "t"])
        assert list(read(table).counts) == [6]
        table["tracklet"] = ["t", "t", "", "", "u", "u"]
        assert sorted(read(table).tracklet_id) == ["", "t", "u"]

    def test_ids_of_submissions_do_not_divide_an_object(self):
        """A station may report what it saw in the evening and in the morning apart."""
        tracklets = read(table_of(self.TIMES, trkSub=["A1"] * 3 + ["B2"] * 3))
        assert list(tracklets.counts) == [6]
        assert list(tracklets.tracklet_id) == ["A1"]

    def test_ids_of_submissions_do_not_join_objects(self):
        table = table_of(self.TIMES, designation=["x", "y"] * 3, trkSub=["A1"] * 6)
        tracklets = read(table)
        assert list(tracklets.designation) == ["x", "y"]
        assert list(read(tracklets.to_table()).designation) == ["x", "y"]

    @pytest.mark.parametrize("unnamed", ["", "A1"])
    def test_ids_of_submissions_lead_to_the_object(self, unnamed):
        names = ["x", unnamed, unnamed, "x", "x", unnamed]
        tracklets = read(table_of(self.TIMES, designation=names, trkSub=["A1"] * 6))
        assert (list(tracklets.designation), list(tracklets.counts)) == (["x"], [6])

    def test_ids_of_submissions_lead_nowhere_if_two_objects_have_them(self):
        names = ["x", "y", "", "x", "y", ""]
        tracklets = read(table_of(self.TIMES, designation=names, trkSub=["A1"] * 6))
        assert list(tracklets.designation) == ["x", "y", ""]

    def test_objects_known_by_the_id_of_a_submission_alone(self):
        tracklets = read(table_of(self.TIMES, designation="", trkSub=["A1", "B2"] * 3))
        assert list(tracklets.tracklet_id) == ["A1", "B2"]

    def test_the_same_in_ades_and_in_a_table(self):
        rows = [
            f"2024 YR4|{name}|G96|2024-12-27T0{hour}:{minute}:00Z|134.{hour}{minute}|10.0"
            for name, hour in (("A1", 5), ("B2", 8))
            for minute in (10, 20)
        ]
        text = "\n".join(["provID|trkSub|stn|obsTime|ra|dec", *rows]) + "\n"
        ades = read(text)
        table = read(text.replace("|", ","))
        assert list(ades.counts) == list(table.counts) == [4]
        assert list(ades.tracklet_id) == list(table.tracklet_id) == ["A1"]

    def test_masked_cells_are_no_names(self):
        table = parse_observations(nr.sample("2024YR4")).to_table()
        table["designation"] = MaskedColumn(table["designation"], mask=np.arange(len(table)) > 3)
        with pytest.warns(NeoRangingWarning, match="neither designation nor"):
            tracklets = read(table)
        assert tracklets.report.reasons[UNNAMED] == len(table) - 4

    @pytest.mark.parametrize("unnamed", ["", "nan", "None", " ", "<NA>"])
    def test_unnamed_rows_are_never_one_object(self, unnamed):
        table = table_of(self.TIMES, designation=unnamed)
        with pytest.raises(ObservationFormatError, match=r"none of 6 .*'tracklet'.*'designation'"):
            nr.read_tracklets(table)
        table = table_of(self.TIMES, designation=["x"] * 3 + [unnamed] * 3)
        with pytest.warns(NeoRangingWarning, match="3 observations with neither"):
            tracklets = read(table)
        assert list(tracklets.counts) == [3]
        assert tracklets.report.reasons == {UNNAMED: 3}

    def test_detections_of_the_whole_sky_become_no_tracklets(self):
        rng = np.random.default_rng(1)
        frame = pd.DataFrame(
            {
                "obstime": np.sort(60_000.1 + 0.2 * rng.random(1000)),
                "ra": rng.uniform(0.0, 360.0, 1000),
                "dec": rng.uniform(-60.0, 60.0, 1000),
                "station": "W68",
            }
        )
        with pytest.raises(ObservationFormatError, match="never joined on a guess"):
            nr.read_tracklets(frame)
        tracklets = read(frame.assign(designation=[f"d{k // 4}" for k in range(1000)]))
        assert len(tracklets) == 250

    @pytest.mark.parametrize(
        "spellings",
        [
            ("2008 TC3", "2008TC3", "2008 tc3", " 2008 TC3", "K08T03C", "2008  TC3"),
            ("99942", "99942.0", "(99942)", " 99942"),
            ("2006 VD133", "2006VD133", "K06VD3D", "2006 vd133"),
        ],
    )
    def test_spellings_of_one_designation(self, spellings):
        tracklets = read(table_of(self.TIMES[: len(spellings)], designation=spellings))
        assert list(tracklets.designation) == [spellings[0]]

    @pytest.mark.parametrize(
        "names",
        [
            ("K08T03C1", "K08T03C2"),
            ("abcd1234", "ABCD1234"),
            ("2021ab12", "2021 AB12"),
            ("CK20F030", "C/2020 F3"),
            ("0433", "433"),
        ],
    )
    def test_names_that_only_look_alike_stay_two(self, names):
        tracklets = read(table_of(self.TIMES, designation=[names[0]] * 3 + [names[1]] * 3))
        assert list(tracklets.designation) == list(names)

    def test_lost_ids_are_told_with_their_reason(self):
        dec = np.array([5.0, 5.1, 5.2, np.nan, np.nan, 5.3]) << u.deg
        table = table_of(self.TIMES, dec=dec, tracklet=["a", "a", "a", "b", "b", "c"])
        lost = read(table).report.lost
        assert set(lost) == {"b", "c"}
        assert "no number" in lost["b"]
        assert "alone" in lost["c"]


class TestExposures:
    TIMES = 60_000.1 + 0.01 * np.arange(4)

    def test_of_several_apertures_count_once(self):
        """Six positions of each exposure, some milliarcseconds apart."""
        rows = np.repeat(np.arange(4), 6)
        table = table_of(self.TIMES)[rows]
        table["ra"] += np.tile(np.arange(6), 4) * 3.0 * u.mas
        one, six = read(table_of(self.TIMES)), read(table)
        assert list(six.counts) == [4]
        assert six.report.reasons == {"another record of the same exposure": 20}
        error = [np.sqrt(np.diag(s[0].attributable().covariance)) for s in (one, six)]
        np.testing.assert_allclose(error[1], error[0], rtol=1e-6)

    def test_of_two_programmes_count_once(self):
        """The epochs of one have six digits of a day, those of the other five."""
        fine = np.array([0.174861, 0.179676, 0.184504, 0.189321])
        parts = [
            table_of(60_000.0 + epochs, program=[code] * 4)
            for epochs, code in ((fine, "1"), (np.round(fine, 5), "2"))
        ]
        parts[1]["ra"] += 0.2 * u.arcsec
        tracklets = read(parts)
        np.testing.assert_allclose(tracklets.obstime.mjd - 60_000.0, fine, atol=1e-9)

    @pytest.mark.parametrize("digits", [5, 6])
    def test_of_two_formats_count_once(self, digits):
        """Seconds with a decimal beside a decimal day."""
        seconds = np.array([8640.4, 9507.9, 10369.1, 11232.8])
        parts = [
            table_of(60_000.0 + np.round(seconds / 86_400.0, digits)),
            table_of(60_000.0 + seconds / 86_400.0),
        ]
        for sources in (parts, parts[::-1]):
            assert list(read(sources).counts) == [4]

    def test_one_in_the_last_digit_apart_are_one(self):
        epochs = 60_000.0 + np.array([0.10001, 0.10002, 0.12000, 0.14000])
        assert list(read(table_of(epochs)).counts) == [3]

    @pytest.mark.parametrize("step", [0.5, 1.0, 2.0])
    def test_of_a_fast_series_are_many(self, step):
        """A film of an impactor: milliseconds are written, or whole seconds."""
        seconds = 8640.137 * (step != 1.0) + step * np.arange(40)
        assert list(read(table_of(60_000.0 + seconds / 86_400.0)).counts) == [40]

    def test_of_a_fast_series_with_five_digits_are_many(self):
        days = np.round((8640.0 + np.arange(40)) / 86_400.0, 5)
        assert list(read(table_of(60_000.0 + days)).counts) == [40]

    def test_of_other_stations_and_places_are_others(self):
        times = np.repeat(self.TIMES, 2)
        assert sorted(read(table_of(times, station=["G96", "703"] * 4)).counts) == [4, 4]
        joined = read(table_of(times, station=["G96", "703"] * 4), group_by="night")
        assert list(joined.counts) == [8]
        places = np.array([[4.0e6, 0.0, 5.0e6], [0.0, 4.0e6, 5.0e6]])
        table = table_of(times, station="247", kind=["roving"] * 8)
        table["observer_itrf"] = np.tile(places, (4, 1)) << u.m
        assert read(table, group_by="night").counts.sum() == 8

    def test_the_best_record_stands_for_the_exposure(self):
        table = vstack([table_of(self.TIMES, mag=[k] * 4) for k in (1.0, 2.0, 3.0)])
        sigma = np.repeat([0.5, 0.2, 0.3], 4) << u.arcsec
        table["sigma_ra"], table["sigma_dec"] = sigma, sigma
        order = np.random.default_rng(3).permutation(12)
        for rows in (slice(None), order):
            tracklet = read(table[rows])[0]
            np.testing.assert_array_equal(tracklet.mag, 2.0)
            np.testing.assert_allclose(tracklet.sigma.to_value(u.arcsec), 0.2)

    def test_of_tracklets_by_hand_count_once_too(self):
        table = table_of(np.repeat(self.TIMES, 2))
        columns = (table["obstime"], table["ra"], table["dec"])
        with pytest.warns(NeoRangingWarning, match="4 another record of the same exposure"):
            tracklets = TrackletSet.from_arrays(*columns, station="G96", designation="x")
        assert list(tracklets.counts) == [4]
        with pytest.warns(NeoRangingWarning, match="same exposure"):
            assert len(nr.Tracklet(columns[0], SkyCoord(*columns[1:]), station="G96")) == 4

    @pytest.mark.parametrize(
        ("days", "unit"),
        [
            (0.12345, 1e-5),
            (0.123456, 1e-6),
            (3661.0 / 86_400.0, 1.0 / 86_400.0),
            (3661.25 / 86_400.0, 0.01 / 86_400.0),
            (1.0 / 3.0 + 1.23e-9, 0.0),
        ],
    )
    @pytest.mark.parametrize("day", [2_400_000.5, 2_460_000.5])
    def test_the_last_digit_of_an_epoch(self, days, unit, day):
        for jd1, jd2 in ((day, days), (day + 1.0, days - 1.0)):
            found = written_resolution(np.array([jd1 + 0.5]), np.array([jd2 - 0.5]))
            np.testing.assert_allclose(found, unit, rtol=1e-6)


class TestStations:
    TIMES = 60_000.1 + 0.01 * np.arange(3)

    @pytest.mark.parametrize(
        ("given", "code"),
        [(" G96 ", "G96"), ("703.0", "703"), ("33", "033"), ("95", "095"), ("95.", "095")],
    )
    def test_codes_as_tables_bring_them(self, given, code):
        tracklets = read(table_of(self.TIMES, station=given))
        assert set(tracklets.station) == {code}
        assert np.isfinite(tracklets._columns.itrf).all()

    def test_a_column_of_codes_with_a_gap(self):
        frame = (
            table_of(self.TIMES)
            .to_pandas()
            .assign(obstime=self.TIMES, station=[703.0, np.nan, 703.0])
        )
        tracklets = read(frame)
        assert list(tracklets.station) == ["703", "703"]
        assert tracklets.report.reasons == {"without station": 1}

    def test_codes_in_small_letters(self):
        with pytest.warns(NeoRangingWarning, match="'g96' is taken for 'G96'"):
            assert set(read(table_of(self.TIMES, station="g96")).station) == {"G96"}

    def test_unknown_codes_are_named_with_their_neighbours(self):
        with pytest.warns(NeoRangingWarning, match=r"has 'G9X' \(near it: .*G9\d"):
            read(table_of(self.TIMES, station="G9X"))

    def test_readers_have_warned_of_unknown_codes_already(self):
        line = "     K08T03C  C2008 10 06.{}  23 17 00.78 +07 49 22.7          18.9 Vr     ZZ9"
        text = "\n".join(line.format(f"{k}767") for k in (2, 3, 4)) + "\n"
        with pytest.warns(NeoRangingWarning) as caught:
            nr.read_tracklets(text)
        assert len(caught) == 1

    def test_codes_that_move_ask_for_their_positions(self):
        with pytest.warns(NeoRangingWarning, match="C57 .TESS. has no fixed one.*observer_gcrs"):
            read(table_of(self.TIMES, station="C57"))


class TestSigmas:
    TIMES = 60_000.1 + 0.01 * np.arange(3)

    def read(self, milliarcsec, **columns):
        sigma = np.full(3, milliarcsec) * u.mas
        table = table_of(self.TIMES, **columns)
        table["sigma_ra"] = table["sigma_dec"] = sigma
        return read(table)

    def test_that_no_telescope_reaches_are_replaced(self):
        tracklets = self.read(0.3)
        np.testing.assert_allclose(tracklets[0].sigma.to_value(u.arcsec), 1.0)
        assert "below 1 mas" in str(tracklets.report)

    @pytest.mark.parametrize(
        "columns",
        [{"note2": ["E"] * 3}, {"station": "244"}, {"station": "275"}, {"station": "500"}],
    )
    @pytest.mark.filterwarnings("ignore:.*without the place of the observer")
    def test_of_occultations_stay(self, columns):
        tracklets = self.read(0.5, **columns)
        np.testing.assert_allclose(tracklets[0].sigma.to_value(u.mas), 0.5)
        assert not tracklets.report.reasons
        again = read(tracklets.to_table())
        np.testing.assert_allclose(again[0].sigma.to_value(u.mas), 0.5)

    def test_of_spacecraft_stay(self):
        table = flown(self.TIMES, station="258")
        table["sigma_ra"] = table["sigma_dec"] = np.full(3, 0.2) * u.mas
        np.testing.assert_allclose(read(table)[0].sigma.to_value(u.mas), 0.2)

    def test_of_degrees_are_told(self):
        tracklets = self.read(0.3 * 3.6e6)
        np.testing.assert_allclose(tracklets[0].sigma.to_value(u.deg), 0.3)
        assert "sigma above 300 arcsec, up to 1080" in str(tracklets.report)


class TestAccounting:
    def test_lone_observations_are_counted(self):
        tracklets = read(table_of([60_000.1, 60_000.12, 60_005.1, 60_007.1]))
        assert list(tracklets.counts) == [2]
        (reason, count), *rest = tracklets.report.reasons.items()
        assert not rest
        assert "alone" in reason
        assert count == 2

    @pytest.mark.parametrize("group_by", ["night", ("night", "station")])
    def test_an_observation_counts_once_however_often_it_stands_there(self, group_by):
        once = table_of([60_000.1, 60_000.12, 60_000.15])
        tracklets = read([once, once[1:], once], group_by=group_by)
        assert list(tracklets.counts) == [3]
        assert tracklets.report.reasons == {"another record of the same exposure": 5}

    def test_a_repetition_of_an_observation_left_out_is_used(self):
        table = table_of([60_000.1, 60_000.1, 60_000.2], selected=[False, True, True])
        table["ra"], table["dec"] = [1.0, 1.0, 1.1] * u.deg, [5.0, 5.0, 5.1] * u.deg
        assert list(read(table).counts) == [2]

    def test_one_of_a_kind_is_told_in_the_singular(self):
        assert "\n1 observation, 0 used in 0 tracklets" in f"\n{read(table_of([60_000.1])).report}"
        assert "in 1 tracklet," in f"{read(table_of([60_000.1, 60_000.2])).report}\n"

    def test_kinds_can_be_left_out(self):
        table = table_of(60_000.1 + 0.01 * np.arange(4), kind=["ground", "space"] * 2)
        assert list(read(table).counts) in ([2, 2], [4])
        ground = read(table, kinds="ground")
        assert list(ground.counts) == [2]
        assert sum(ground.report.reasons.values()) == 2
        with pytest.raises(ObservationFormatError, match="kinds"):
            nr.read_tracklets(table, kinds="lunar")

    def test_rejected_observations_can_be_asked_for(self):
        table = table_of(60_000.1 + 0.01 * np.arange(4), selected=[True, False, True, True])
        assert list(read(table).counts) == [3]
        assert list(read(table, selected_only=False).counts) == [4]

    def test_observations_without_weight(self):
        """A sigma of zero is none to divide by; one that is missing is that of the station."""
        sigma = np.array([0.3, np.nan, 0.3, 0.0]) << u.arcsec
        tracklets = read(
            table_of(60_000.1 + 0.01 * np.arange(4), sigma_ra=sigma, sigma_dec=abs(sigma))
        )
        assert list(tracklets.counts) == [3]
        np.testing.assert_allclose(tracklets[0].sigma[:, 0].to_value(u.arcsec), [0.3, 0.5, 0.3])
        assert any("sigma" in reason for reason in tracklets.report.reasons)

    def test_positions_that_are_no_numbers(self):
        """They cannot be estimated from; they must not turn into NaN with a verdict."""
        ra = np.array([10.0, np.nan, 10.02, 10.04]) << u.deg
        tracklets = read(table_of(60_000.1 + 0.01 * np.arange(4), ra=ra))
        assert list(tracklets.counts) == [3]

    def test_declinations_beyond_a_pole(self):
        dec = np.array([5.0, 95.0, 5.1, 5.2]) << u.deg
        tracklets = read(table_of(60_000.1 + 0.01 * np.arange(4), dec=dec))
        assert list(tracklets.counts) == [3]
        assert any("pole" in reason for reason in tracklets.report.reasons)

    def test_masked_positions(self):
        ra = np.ma.array([10.0, 0.0, 10.02, 10.04], mask=[False, True, False, False])
        table = table_of(60_000.1 + 0.01 * np.arange(4))
        table["ra"] = Masked(ra.data, mask=ra.mask) << u.deg
        assert list(read(table).counts) == [3]

    def test_an_empty_table(self):
        tracklets = read(table_of([]))
        assert len(tracklets) == 0
        assert len(tracklets.estimate("gauss")) == 0
        assert str(tracklets.report)

    def test_a_table_of_nothing_but_lone_observations(self):
        assert len(read(table_of([60_000.1]))) == 0

    @pytest.mark.filterwarnings("ignore:.*without the place of the observer")
    @settings(
        max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
    )
    @given(
        st.lists(
            st.tuples(
                st.sampled_from("abc"),
                st.integers(0, 40),
                st.sampled_from(STATIONS),
                st.sampled_from([0.3, 0.3, 0.3, 0.0, np.nan, -1.0, np.inf]),
                st.sampled_from(["ground", "ground", "space", "roving"]),
                st.booleans(),
            ),
            max_size=30,
        ),
        st.sampled_from(["night", ("night", "station")]),
        st.sampled_from([("ground", "roving", "space"), "ground"]),
    )
    def test_of_random_tables(self, rows, group_by, kinds):
        columns = list(zip(*rows, strict=True)) or [[]] * 6
        designation, steps, station, sigma, kind, selected = columns
        n = len(rows)
        table = table_of(
            60_000.0 + 0.11 * np.array(steps, dtype=float),
            designation=np.array(designation, dtype="U1"),
            station=np.array(station, dtype="U3"),
            sigma_ra=np.array(sigma, dtype=float) << u.arcsec,
            sigma_dec=np.full(n, 0.3) << u.arcsec,
            kind=np.array(kind, dtype="U6"),
            selected=np.array(selected, dtype=bool),
        )
        tracklets = read(table, group_by=group_by, kinds=kinds)
        for tracklet in tracklets:
            mjd = tracklet.obstime.mjd
            assert (np.diff(mjd) >= 0.0).all()
            assert mjd[-1] > mjd[0]
            # nights of two stations are each a day long and lie up to a day apart
            assert mjd[-1] - mjd[0] <= (1.0 if "station" in group_by else 2.0)
            if group_by != "night":
                assert len(set(tracklet.station)) == 1
        firsts = [tracklet.obstime.mjd[0] for tracklet in tracklets]
        assert firsts == sorted(firsts)

    def test_the_order_of_rows_does_not_matter(self):
        rng = np.random.default_rng(0)
        times = 60_000.0 + 3.0 * rng.random(40)
        table = table_of(times, designation=rng.choice(list("ab"), 40), station="G96")
        shuffled = table[rng.permutation(40)]
        one, other = read(table), read(shuffled)
        np.testing.assert_array_equal(one.counts, other.counts)
        np.testing.assert_allclose(one.obstime.mjd, other.obstime.mjd)


def test_stations_of_unknown_place_keep_their_observations():
    with pytest.warns(NeoRangingWarning, match="3 observations .* has 'ZZZ'"):
        tracklets = read(table_of([60_000.1, 60_000.12, 60_000.14], station="ZZZ"))
    estimate = tracklets[0].estimate("gauss")
    assert estimate.status is nr.RangeStatus.UNKNOWN_OBSERVER
