"""From tables to tracklets: every kind of source, full accounting."""

import numpy as np
import pandas as pd
import pytest
from astropy import units as u
from astropy.table import Table, vstack
from astropy.time import Time
from observation_tables import table_of

import neoranging as nr
from neoranging.exceptions import ObservationFormatError
from neoranging.observations.report import ReadReport

STATIONS = ("G96", "703", "500", "F51", "ZZZ")


def read(source, **options):
    tracklets = nr.read_tracklets(source, **options)
    report = tracklets.report
    assert report.n_read == report.n_used + report.n_set_aside
    assert report.n_used == tracklets.counts.sum() == len(tracklets._columns.ra)
    assert report.n_tracklets == len(tracklets)
    assert all(count > 0 for count in report.reasons.values())
    return tracklets


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
        ).assign(designation="mine")
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
        ).assign(designation="mine")
        assert set(read(frame)[0].station) == {"703"}

    def test_numeric_station_codes_get_their_zeros_back(self):
        frame = pd.DataFrame(
            {"obstime": self.TIMES, "ra": [1.0, 1.001, 1.002], "dec": 1.0, "station": 10}
        ).assign(designation="mine")
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
        ).assign(designation="mine")
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
        ).assign(designation="x")
        tracklets = read(frame)
        assert list(tracklets.counts) == [3]
        (entry,) = tracklets.report.reading[0].set_aside
        assert (entry.line, entry.detail) == (4, "no time")

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
        with pytest.raises(
            ObservationFormatError, match=r"column ra must .* deg, got AU.*\.unit ="
        ):
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
        assert report.n_used == tracklets.report.n_read
        assert str(report.n_read) in str(tracklets.report)
        assert "7 used in 1 tracklet" in str(tracklets.report)

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
