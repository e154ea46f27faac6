"""From tables to tracklets: nights, stations, every kind of source, full accounting."""

import numpy as np
import pandas as pd
import pytest
from astropy import units as u
from astropy.table import QTable, Table, vstack
from astropy.time import Time
from astropy.utils.masked import Masked
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import neoranging as nr
from neoranging.exceptions import ObservationFormatError
from neoranging.observations.report import ReadReport

STATIONS = ("G96", "703", "500", "F51", "ZZZ")


def table_of(mjd, designation="x", station="G96", **columns):
    n = len(mjd)
    table = QTable(
        {
            "designation": np.broadcast_to(np.asarray(designation, dtype=np.str_), n),
            "obstime": Time(np.asarray(mjd, dtype=float), format="mjd", scale="utc"),
            "ra": np.linspace(10.0, 10.1, n) << u.deg,
            "dec": np.linspace(5.0, 5.1, n) << u.deg,
            "station": np.broadcast_to(np.asarray(station, dtype=np.str_), n),
        }
    )
    for name, values in columns.items():
        table[name] = values
    return table


def read(source, **options):
    tracklets = nr.read_tracklets(source, **options)
    report = tracklets.report
    assert report.n_observations == report.n_used + sum(report.dropped.values())
    assert report.n_used == tracklets.counts.sum() == len(tracklets._columns.ra)
    assert report.n_tracklets == len(tracklets)
    assert all(count > 0 for count in report.dropped.values())
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

    @pytest.mark.parametrize("station", ["500", "ZZZ"])
    def test_without_a_longitude_are_those_of_greenwich(self, station):
        times = 60_000.5 + np.array([-0.2, -0.01, 0.01, 0.2])
        assert list(read(table_of(times, station=station)).counts) == [2, 2]

    def test_of_a_roving_observer_are_local_too(self):
        place = np.array([0.0, 6.378e6, 0.0])  # 90 E, noon at 6 h UTC
        times = 60_000.25 + np.array([-0.2, -0.01, 0.01, 0.2])
        table = table_of(
            times,
            station="247",
            kind=["roving"] * 4,
            observer_itrf=np.tile(place, (4, 1)) << u.m,
        )
        assert list(read(table).counts) == [2, 2]


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

    def test_programmes_of_one_station_are_kept_apart(self):
        times = 60_000.1 + 0.01 * np.arange(4)
        table = table_of(times, program=["1", "2", "1", "2"])
        assert list(read(table).counts) == [2, 2]
        assert list(read(table, group_by="night").counts) == [4]

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


class TestAccounting:
    def test_lone_observations_are_counted(self):
        tracklets = read(table_of([60_000.1, 60_000.12, 60_005.1, 60_007.1, 60_007.1]))
        assert list(tracklets.counts) == [2]
        (reason, count), *rest = tracklets.report.dropped.items()
        assert not rest
        assert "alone" in reason
        assert count == 3

    @pytest.mark.parametrize("group_by", ["night", ("night", "station")])
    def test_an_observation_counts_once_however_often_it_stands_there(self, group_by):
        once = table_of([60_000.1, 60_000.12, 60_000.15])
        tracklets = read([once, once[1:], once], group_by=group_by)
        assert list(tracklets.counts) == [3]
        assert tracklets.report.dropped == {"the same observation again": 5}

    def test_what_one_value_tells_apart_is_no_repetition(self):
        once = table_of([60_000.1, 60_000.12])
        again = once.copy()
        again["ra"] += 0.1 * u.arcsec
        assert list(read([once, again]).counts) == [4]

    def test_a_repetition_of_an_observation_left_out_is_used(self):
        table = table_of([60_000.1, 60_000.1, 60_000.2], selected=[False, True, True])
        table["ra"], table["dec"] = [1.0, 1.0, 1.1] * u.deg, [5.0, 5.0, 5.1] * u.deg
        assert list(read(table).counts) == [2]

    def test_one_of_a_kind_is_told_in_the_singular(self):
        assert "\n1 observation: 0 in 0 tracklets" in f"\n{read(table_of([60_000.1])).report}"
        assert "in 1 tracklet\n" in f"{read(table_of([60_000.1, 60_000.2])).report}\n"

    def test_kinds_can_be_left_out(self):
        table = table_of(60_000.1 + 0.01 * np.arange(4), kind=["ground", "space"] * 2)
        assert list(read(table).counts) in ([2, 2], [4])
        ground = read(table, kinds="ground")
        assert list(ground.counts) == [2]
        assert sum(ground.report.dropped.values()) == 2
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
        assert any("sigma" in reason for reason in tracklets.report.dropped)

    def test_positions_that_are_no_numbers(self):
        """They cannot be estimated from; they must not turn into NaN with a verdict."""
        ra = np.array([10.0, np.nan, 10.02, 10.04]) << u.deg
        tracklets = read(table_of(60_000.1 + 0.01 * np.arange(4), ra=ra))
        assert list(tracklets.counts) == [3]

    def test_declinations_beyond_a_pole(self):
        dec = np.array([5.0, 95.0, 5.1, 5.2]) << u.deg
        tracklets = read(table_of(60_000.1 + 0.01 * np.arange(4), dec=dec))
        assert list(tracklets.counts) == [3]
        assert "declination beyond a pole" in str(tracklets.report)

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


class TestSources:
    TIMES = 60_000.1 + 0.01 * np.arange(3)

    def test_a_frame_with_plain_columns(self):
        frame = pd.DataFrame(
            {
                "obstime": self.TIMES,
                "ra": [10.0, 10.01, 10.03],
                "dec": [5.0, 5.01, 5.02],
                "station": "G96",
                "sigma_ra": 0.2,
                "sigma_dec": 0.3,
                "mag": [20.1, np.nan, 20.2],
                "band": ["G", None, "G"],
                "designation": "x",
            }
        )
        tracklets = read(frame)
        t = tracklets[0]
        np.testing.assert_allclose(t.obstime.mjd, self.TIMES, rtol=0, atol=1e-10)
        np.testing.assert_allclose(t.coord.ra.deg, frame["ra"])
        np.testing.assert_allclose(t.sigma.to_value(u.arcsec), [[0.2, 0.3]] * 3)
        assert list(t.band) == ["G", "", "G"]
        assert t.designation == "x"
        for column in (
            Time(self.TIMES, format="mjd").isot,
            pd.to_datetime(Time(self.TIMES, format="mjd").isot),
        ):
            again = read(frame.assign(obstime=column))[0]
            np.testing.assert_allclose(again.obstime.mjd, self.TIMES, rtol=0, atol=2e-8)

    def test_a_frame_with_three_positions_and_nothing_else(self):
        frame = pd.DataFrame(
            {"obstime": self.TIMES, "ra": [10.0, 10.1, 10.2], "dec": [5.0] * 3, "station": "500"}
        )
        t = read(frame)[0]
        np.testing.assert_allclose(t.sigma.to_value(u.arcsec), 1.0)
        assert isinstance(t.estimate("gauss").status, nr.RangeStatus)

    def test_a_frame_keeps_designations_that_look_like_numbers(self):
        frame = pd.DataFrame(
            {
                "obstime": self.TIMES,
                "ra": 10.0,
                "dec": [5.0, 5.1, 5.2],
                "station": ["703"] * 3,
                "designation": ["0433"] * 3,
            }
        )
        assert read(frame)[0].designation == "0433"

    def test_a_frame_with_station_codes_read_as_numbers(self):
        """`pandas.read_csv` turns 703 into an integer, and 010 into 10."""
        frame = pd.DataFrame(
            {"obstime": self.TIMES, "ra": 10.0, "dec": [5.0, 5.1, 5.2], "station": [703] * 3}
        )
        assert set(read(frame)[0].station) == {"703"}

    def test_numeric_station_codes_get_their_zeros_back(self):
        frame = pd.DataFrame(
            {"obstime": self.TIMES, "ra": [1.0, 1.001, 1.002], "dec": 1.0, "station": 10}
        )
        assert set(read(frame)[0].station) == {"010"}

    @pytest.mark.parametrize("missing", ["obstime", "ra", "dec", "station"])
    def test_a_column_that_is_missing_is_named(self, missing):
        table = table_of(self.TIMES)
        frame = pd.DataFrame({"obstime": self.TIMES, "ra": 1.0, "dec": 1.0, "station": "500"})
        table.remove_column(missing)
        for source in (table, frame.drop(columns=missing)):
            with pytest.raises(ObservationFormatError, match=f"lacks the column.* {missing};"):
                nr.read_tracklets(source)

    def test_columns_that_are_there_are_named_too(self):
        frame = pd.DataFrame({"when": self.TIMES, "RA": 1.0, "Dec": 1.0, "obscode": "500"})
        with pytest.raises(ObservationFormatError, match="has when, RA, Dec, obscode: rename"):
            nr.read_tracklets(frame)

    def test_a_frame_with_epochs_of_a_time_zone(self):
        here = pd.to_datetime(Time(self.TIMES, format="mjd").isot).tz_localize("UTC")
        frame = pd.DataFrame(
            {"obstime": here.tz_convert("Asia/Tokyo"), "ra": 1.0, "dec": 1.0, "station": "500"}
        )
        np.testing.assert_allclose(read(frame)[0].obstime.mjd, self.TIMES, rtol=0, atol=1e-9)

    @pytest.mark.parametrize(
        ("column", "values", "advice"),
        [
            ("obstime", [2_460_000.5, 2_460_000.6], "subtract 2400000.5"),
            ("obstime", ["tonight", "later"], "begins with 'tonight'"),
            ("ra", ["00:48:00", "00:48:05"], r"numbers \[deg\], got '00:48:00'.*Angle"),
        ],
    )
    def test_values_of_a_frame_that_cannot_be_meant(self, column, values, advice):
        frame = pd.DataFrame(
            {"obstime": self.TIMES[:2], "ra": 1.0, "dec": 1.0, "station": "500"}
        ).assign(**{column: values})
        with pytest.raises(ObservationFormatError, match=advice):
            nr.read_tracklets(frame)

    def test_options_of_readers_hold_for_tables(self):
        for table in (table_of(self.TIMES), table_of(self.TIMES).to_pandas()):
            tracklets = nr.read_tracklets(table, default_sigma=0.3)
            np.testing.assert_allclose(tracklets[0].sigma.to_value(u.arcsec), 0.3)

    def test_rows_without_an_epoch_are_set_aside(self):
        frame = pd.DataFrame(
            {"obstime": [*self.TIMES, np.nan], "ra": 1.0, "dec": 1.0, "station": "500"}
        )
        tracklets = read(frame)
        assert list(tracklets.counts) == [3]
        (entry,) = tracklets.report.reading[0].set_aside
        assert (entry.line, entry.detail) == (4, "no time")

    @pytest.mark.parametrize("name", ["2024YR4", "impactors"])
    def test_unknown_options_are_named_with_those_that_exist(self, name):
        with pytest.raises(ObservationFormatError, match=r"no option sigma; .* default_sigma"):
            nr.read_tracklets(nr.sample(name), sigma=0.3)
        nr.read_tracklets(nr.sample(name), default_sigma=0.3)

    def test_plain_epochs_are_mjd_in_utc(self):
        table = table_of(self.TIMES)
        table["obstime"] = self.TIMES
        np.testing.assert_allclose(read(table)[0].obstime.utc.mjd, self.TIMES, rtol=0, atol=1e-10)

    def test_a_plain_table_with_units_is_as_good_as_a_qtable(self):
        table = Table(table_of(self.TIMES))
        np.testing.assert_allclose(read(table)[0].coord.dec.deg, [5.0, 5.05, 5.1])

    def test_angles_without_units_are_degrees(self):
        table = table_of(self.TIMES)
        table["ra"] = [10.0, 10.1, 10.2]
        np.testing.assert_allclose(read(table)[0].coord.ra.deg, [10.0, 10.1, 10.2])

    def test_angles_in_units_of_something_else_are_refused(self):
        table = table_of(self.TIMES)
        table["ra"] = [10.0, 10.1, 10.2] * u.au
        with pytest.raises(ObservationFormatError, match=r"column ra must .* deg, got AU.*\.unit ="):
            nr.read_tracklets(table)

    @pytest.mark.parametrize("source", [None, 3, np.zeros(3)])
    def test_what_is_no_source(self, source):
        with pytest.raises(ObservationFormatError, match="expected"):
            nr.read_tracklets(source)

    def test_several_tables_are_joined(self):
        parts = [table_of(self.TIMES[:2]), table_of(self.TIMES[2:], designation="x")]
        assert list(read(parts).counts) == [3]
        assert list(read(vstack(parts)).counts) == [3]
        with pytest.raises(ObservationFormatError):
            nr.read_tracklets([])

    def test_masked_magnitudes_become_nan(self):
        table = table_of(self.TIMES)
        table["mag"] = np.ma.array([20.0, 21.0, 22.0], mask=[False, True, False])
        np.testing.assert_array_equal(read(table)[0].mag, [20.0, np.nan, 22.0])

    def test_a_file_brings_its_report(self, shared):
        tracklets = read(shared / "data" / "obs80" / "2014AA.txt")
        (report,) = tracklets.report.reading
        assert isinstance(report, ReadReport)
        assert report.n_used == tracklets.report.n_observations
        assert str(report.n_records) in str(tracklets.report)
        assert "7 in 1 tracklet" in str(tracklets.report)

    @pytest.mark.filterwarnings("ignore::neoranging.exceptions.NeoRangingWarning")
    def test_every_real_file_is_accounted_for(self, shared):
        files = [*(shared / "data" / "obs80").iterdir(), *(shared / "data" / "rwo").iterdir()]
        for path in sorted(files):
            tracklets = read(path)
            assert len(tracklets) > 0
            estimate = tracklets[:200].estimate("gauss")
            assert np.isfinite(estimate.range[estimate.ok]).all()

    def test_a_file_that_is_none(self, tmp_path):
        path = tmp_path / "poem.txt"
        path.write_text("Tyger Tyger, burning bright,\n")
        with pytest.raises(ObservationFormatError):
            nr.read_tracklets(path)
        with pytest.raises(FileNotFoundError):
            nr.read_tracklets(tmp_path / "no_such_file.obs80")
        with pytest.raises(ObservationFormatError, match="is a folder"):
            nr.read_tracklets(tmp_path)
        with pytest.raises(ObservationFormatError, match=r"format must be one of mpc\.obs80"):
            nr.read_tracklets(nr.sample("impactors"), format="mpc")

    def test_text_and_files_opened_as_text_or_bytes(self):
        path = nr.sample("impactors")
        expected = nr.read_tracklets(path)
        with path.open() as as_text, path.open("rb") as as_bytes:
            for source in (path.read_text(), as_text, as_bytes):
                assert list(read(source).counts) == list(expected.counts)


def test_stations_of_unknown_place_keep_their_observations():
    tracklets = read(table_of([60_000.1, 60_000.12, 60_000.14], station="ZZZ"))
    estimate = tracklets[0].estimate("gauss")
    assert estimate.status is nr.RangeStatus.UNKNOWN_OBSERVER
