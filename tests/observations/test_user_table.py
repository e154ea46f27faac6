"""Cells, names and epochs of foreign tables."""

import datetime as dt

import numpy as np
import pandas as pd
import pytest
from astropy import units as u
from astropy.table import QTable, Table
from astropy.time import Time
from astropy.utils.masked import Masked

import neoranging as nr
from neoranging.exceptions import NeoRangingWarning, ObservationFormatError
from neoranging.observations.field_names import name_columns
from neoranging.observations.reading import parse_observations

HEADER = "designation,mjd_utc,ra_deg,dec_deg,station"
ROW = "433,60000.123456789,359.5,-12.25,G96"
MJD = 60_000.1 + 0.01 * np.arange(4)


def as_table(columns):
    return Table(pd.DataFrame(columns).to_records(index=False))


CONTAINERS = pytest.mark.parametrize("container", [dict, pd.DataFrame, as_table])


def columns(**changed):
    everything = {
        "obstime": MJD,
        "ra": [10.0, 10.01, 10.02, 10.03],
        "dec": [5.0, 5.01, 5.02, 5.03],
        "station": "G96",
        "designation": "x",
        **changed,
    }
    return {name: values for name, values in everything.items() if values is not None}


def notes(tracklets):
    return " ".join(str(note) for report in tracklets.report.reading for note in report.notes)


def refused(match, container=dict, **changed):
    with pytest.raises(ObservationFormatError, match=match):
        nr.read_tracklets(container(columns(**changed)))


@CONTAINERS
class TestCells:
    def test_decimal_text_is_a_number_and_empty_cells_are_gaps(self, container):
        table = container(
            columns(
                ra=["10.0", "10.01", "", "10.03"],
                sigma_ra=["0.1", "", "0.2", "0.3"],
                sigma_dec=["0.1", "0.1", "0.1", "nan"],
                mag=["18.5", None, "18.7", "--"],
            )
        )
        (tracklet,) = nr.read_tracklets(table)
        np.testing.assert_allclose(tracklet.coord.ra.deg, [10.0, 10.01, 10.03], rtol=1e-12)
        np.testing.assert_allclose(
            tracklet.sigma.to_value(u.arcsec), [[0.1, 0.1], [0.5, 0.1], [0.3, 0.5]]
        )
        np.testing.assert_array_equal(tracklet.mag, [18.5, np.nan, np.nan])

    @pytest.mark.parametrize(
        ("name", "cell", "advice"),
        [
            ("ra", "00:40:00.1", r"Angle\(t\['ra'\], 'hourangle'\)"),
            ("ra", "00 40 00.1", r"Angle\(t\['ra'\], 'hourangle'\)"),
            ("dec", "+05:00:00.1", r"Angle\(t\['dec'\], 'deg'\)"),
            ("dec", "-05d00m00.1s", r"Angle\(t\['dec'\], 'deg'\)"),
            ("ra", "10,01", "decimal point"),
            ("ra", "east", r"numbers \[deg\], got 'east'"),
        ],
    )
    def test_text_that_is_no_number(self, container, name, cell, advice):
        refused(advice, container, **{name: [cell] * 4})

    def test_a_magnitude_with_its_band_is_a_gap_that_is_told(self, container):
        tracklets = nr.read_tracklets(container(columns(mag=["18.1", "18.2 V", "18.3", ""])))
        assert "1 cell of mag hold no number" in notes(tracklets)
        np.testing.assert_array_equal(tracklets[0].mag, [18.1, np.nan, 18.3, np.nan])

    def test_numbers_that_stand_for_names(self, container):
        table = container(
            columns(
                designation=[99942.0, 99942.0, np.nan, 99942.0],
                trkSub=[7.0, 7.0, 7.0, 7.0],
                station=[33.0, 33.0, 33.0, 33.0],
            )
        )
        (tracklet,) = nr.read_tracklets(table)
        assert (tracklet.designation, tracklet.tracklet_id) == ("99942", "7")
        assert set(tracklet.station) == {"033"}

    def test_fluxes_of_rubin(self, container):
        nanojansky = 3.631e12 * 10.0 ** (-0.4 * 20.0)
        table = container(columns(psfFlux=[nanojansky, nanojansky, -3.0, np.nan]))
        np.testing.assert_allclose(
            nr.read_tracklets(table)[0].mag, [20.0, 20.0, np.nan, np.nan], atol=1e-3
        )

    def test_a_moving_observer_of_ades(self, container):
        table = container(
            columns(station="C57", sys="ICRF_KM", ctr=399, pos1=1e5, pos2=2e5, pos3=3e5)
        )
        (tracklet,) = nr.read_tracklets(table)
        np.testing.assert_allclose(
            tracklet.to_table()["observer_gcrs"][0].to_value(u.km), [1e5, 2e5, 3e5]
        )
        with pytest.warns(NeoRangingWarning, match="C57"):
            nr.read_tracklets(container(columns(station="C57")))


@CONTAINERS
class TestEpochs:
    @pytest.mark.parametrize(
        ("name", "values", "advice"),
        [
            ("obstime", MJD + 2_400_000.5, "subtract 2400000.5"),
            ("obstime", MJD * 86_400.0, "seconds since 1970"),
            ("jd_utc", MJD, "look like modified Julian dates"),
            ("mjd_utc", MJD + 2_400_000.5, "subtract 2400000.5"),
            ("mjd", MJD, r'scale="utc".*name the column mjd_utc.*format=\'mjd\''),
            ("JD", MJD + 2_400_000.5, r'scale="utc".*name the column jd_utc.*format=\'jd\''),
            ("obstime", ["tonight"] * 4, "begins with 'tonight'"),
            ("obsdate", MJD, "start of exposures"),
            ("DATE-OBS", ["2023-02-25T02:57:46"] * 4, "start of exposures"),
        ],
    )
    def test_that_cannot_be_meant(self, container, name, values, advice):
        refused(advice, container, **{"obstime": None, name: values})

    def test_of_text_in_many_forms(self, container):
        text = ["2023-02-25T02:57:46", "2023-02-25 03:57:46.5Z", "2023/02/25 04:57", "nonsense"]
        tracklets = nr.read_tracklets(container(columns(obstime=text)))
        expected = Time(["2023-02-25T02:57:46", "2023-02-25T03:57:46.5", "2023-02-25T04:57:00"])
        np.testing.assert_allclose(
            (tracklets[0].obstime - expected).sec, np.zeros(3), rtol=0, atol=1e-5
        )
        (entry,) = tracklets.report.reading[0].set_aside
        assert (entry.line, entry.detail) == (4, "no time")

    def test_of_text_with_a_zone(self, container):
        text = ["2023-02-25T12:00:00+09:00", "2023-02-25T03:10:00Z", "2023-02-25T04:20:00+0100"]
        tracklets = nr.read_tracklets(container(columns(obstime=[*text, "2023-02-25T03:30:00"])))
        minutes = (tracklets[0].obstime - Time("2023-02-25T03:00:00")).sec / 60.0
        np.testing.assert_allclose(minutes, [0.0, 10.0, 20.0, 30.0], atol=1e-6)

    def test_in_a_leap_second(self, container):
        text = ["2016-12-31T23:59:50Z", "2016-12-31T23:59:60.5Z", "2017-01-01T00:00:30Z"]
        tracklets = nr.read_tracklets(container(columns(obstime=[*text, ""])))
        seconds = (tracklets[0].obstime - Time("2016-12-31T23:59:50")).sec
        np.testing.assert_allclose(seconds, [0.0, 10.5, 41.0], atol=1e-5)

    def test_of_datetimes(self, container):
        zone = dt.timezone(dt.timedelta(hours=-7))
        moments = [dt.datetime(2023, 2, 25, 3, m, tzinfo=zone) for m in (1, 2, 3)]
        tracklets = nr.read_tracklets(container(columns(obstime=[*moments, None])))
        minutes = (tracklets[0].obstime - Time("2023-02-25T10:00:00")).sec / 60.0
        np.testing.assert_allclose(minutes, [1.0, 2.0, 3.0], atol=1e-6)

    def test_with_a_scale_against_their_name(self, container):
        with pytest.raises(ObservationFormatError, match="says TAI, and scale='utc'"):
            nr.read_tracklets(container(columns(obstime=None, mjd_tai=MJD)), scale="utc")
        with pytest.raises(ObservationFormatError, match="scale must be one of utc, tai, tt, tdb"):
            nr.read_tracklets(container(columns()), scale="gps")


class TestNames:
    @CONTAINERS
    @pytest.mark.parametrize(
        ("changed", "told"),
        [
            ({"raErr": 0.1}, "raErr is not taken: nothing says whether it is in degrees"),
            ({"sigma_ra": 0.2, "sigma_dec": 0.2, "rmsRA": 0.9}, "rmsRA is not taken: sigma_ra"),
            ({"sigmaRA": 0.9}, "sigmaRA is not taken; is it sigma_ra misspelt"),
            ({"magnitud": 18.0}, "magnitud is not taken; is it magnitude .mag. misspelt"),
        ],
    )
    def test_that_look_like_known_ones_are_told(self, container, changed, told):
        tracklets = nr.read_tracklets(container(columns(**changed)))
        assert list(tracklets.counts) == [4]
        assert told.replace(".mag.", "(mag)") in notes(tracklets)

    def test_that_clash(self):
        refused(
            "stn and obscode all mean station: drop all but one",
            stn="G96",
            obscode="703",
            station=None,
        )
        refused("RA and Ra all mean ra", ra=None, RA=[1.0] * 4, Ra=[2.0] * 4)

    def test_of_what_is_missing_come_with_the_nearest(self):
        refused(
            "lacks the column.*obstime;.* obs_tme is not taken; is it", obstime=None, obs_tme=MJD
        )

    def test_of_a_family_say_what_they_alone_do_not(self):
        errors = {"ra_sigma": 1e-4, "dec_sigma": 1e-4}
        thor = columns(
            station=None, observatory_code="G96", **errors, dec=[60.0, 60.01, 60.02, 60.03]
        )
        sigma = nr.read_tracklets(thor)[0].sigma.to_value(u.arcsec)
        np.testing.assert_allclose(sigma, [[0.18, 0.36]] * 4, rtol=1e-2)  # cos 60 deg
        rubin = columns(obstime=None, midpointMjdTai=MJD + 37.0 / 86_400.0, raErr=1e-4, decErr=2e-4)
        (tracklet,) = nr.read_tracklets(rubin)
        np.testing.assert_allclose(tracklet.sigma.to_value(u.arcsec), [[0.36, 0.72]] * 4)
        np.testing.assert_allclose(tracklet.obstime.utc.mjd, MJD, rtol=0, atol=1e-9)

    def test_with_a_unit_of_their_own_need_none_by_name(self):
        table = QTable(columns(station=["G96"] * 4, designation=["x"] * 4))
        table["raErr"] = np.full(4, 1e-4) * u.deg
        table["decErr"] = np.full(4, 0.1) * u.arcsec
        sigma = nr.read_tracklets(table)[0].sigma.to_value(u.arcsec)
        np.testing.assert_allclose(sigma, [[0.36, 0.1]] * 4)

    def test_of_the_same_object_are_taken_row_by_row(self):
        table = columns(designation=None, permID=["433", "", "433", None], provID="1898 DQ")
        naming = name_columns(list(table))
        assert naming.columns["designation"] == ("permID", "provID")
        assert set(nr.read_tracklets(table).designation) <= {"433", "1898 DQ"}


def test_masked_cells_are_gaps():
    table = QTable(columns(station=["G96"] * 4, designation=["x"] * 4))
    table["ra"] = Masked(table["ra"] * u.deg, mask=[False, True, False, False])
    table["sigma_ra"] = table["sigma_dec"] = Masked(
        np.full(4, 0.1) * u.arcsec, mask=[False, False, True, False]
    )
    (tracklet,) = nr.read_tracklets(table)
    np.testing.assert_allclose(tracklet.coord.ra.deg, [10.0, 10.02, 10.03], rtol=1e-12)
    np.testing.assert_allclose(tracklet.sigma[:, 0].to_value(u.arcsec), [0.1, 0.5, 0.1])


def test_a_table_of_a_reader_keeps_its_account():
    table = QTable.read(nr.sample("impactors"))
    report = nr.read_tracklets(table).report
    assert report.reading == (table.meta["report"],)


def test_columns_of_different_length():
    refused("equally long, got .*ra 4.*dec 3", dec=[1.0, 2.0, 3.0])


@pytest.mark.parametrize(
    ("sigma", "used", "counts"),
    [("0", 2, [2]), ("1e-7", 0, []), ("2e4", 0, []), ("-1", 0, []), ("999", 2, [])],
)
def test_odd_sigmas_mean_the_same_in_ades_and_in_a_table(sigma, used, counts):
    """Zero is not stated, 999 is no weight, and others are beyond all measure."""
    rows = [f"2024 YR4|G96|2024-12-27T05:{k}:00Z|134.{k}|10.0|{sigma}|0.2" for k in (10, 20)]
    text = "\n".join(["provID|stn|obsTime|ra|dec|rmsRA|rmsDec", *rows]) + "\n"
    for form in (text, text.replace("|", ",")):
        tracklets = nr.read_tracklets(form)
        assert tracklets.report.reading[0].n_used == used
        assert list(tracklets.counts) == counts


def write(path, *lines):
    path.write_text("\n".join(lines) + "\n")
    return path


class TestFiles:
    def test_columns_and_defaults(self, tmp_path):
        table = parse_observations(write(tmp_path / "o.csv", HEADER, ROW)).to_table()
        assert table["designation"][0] == "433"
        assert table["obstime"][0].utc.mjd == pytest.approx(60_000.123456789, abs=1e-11)
        assert (table["ra"][0].value, table["dec"][0].value) == (359.5, -12.25)
        assert table["sigma_source"][0] == "default"
        assert table["sigma_ra"][0].value == 0.5  # G96
        assert table["selected"].all()

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("jd_utc", "2460000.623456789"),
            ("obstime", "2023-02-25T02:57:46.667"),
            ("obsTime", "2023-02-25T02:57:46.667Z"),
        ],
    )
    def test_other_times(self, tmp_path, name, value):
        header, row = HEADER.replace("mjd_utc", name), ROW.replace("60000.123456789", value)
        table = parse_observations(write(tmp_path / "o.csv", header, row)).to_table()
        assert table["obstime"][0].utc.mjd == pytest.approx(60_000.123456789, abs=1e-8)

    def test_every_row_is_accounted_for(self, tmp_path):
        header = f"{HEADER},note2,selected_flag,sigma_ra_arcsec,sigma_dec_arcsec"
        good = f"{ROW},C,1.0,0.2,0.3"
        rows = [
            good,
            good.replace("359.5", ""),
            good.replace("60000.123456789", "yesterday"),
            good.replace("-12.25", "-95.0"),
            good.replace("433", ""),
            good.replace(",C,", ",X,"),
            good.replace(",C,", ",S,"),
            good.replace(",C,", ",R,"),
            good.replace("G96", "C51"),
            good.replace(",1.0,", ",0.0,"),
        ]
        table = parse_observations(write(tmp_path / "o.csv", header, *rows)).to_table()
        report = table.meta["report"]
        assert (report.n_read, report.n_used, report.n_set_aside) == (10, 3, 7)
        assert [entry.line for entry in report.set_aside] == [3, 4, 5, *range(7, 11)]
        assert table["selected"].tolist() == [True, True, False]
        assert (table["sigma_ra"][0].value, table["sigma_dec"][0].value) == (0.2, 0.3)

    def test_no_weight(self, tmp_path):
        header = f"{HEADER},sigma_ra_arcsec,sigma_dec_arcsec"
        table = parse_observations(
            write(tmp_path / "o.csv", header, f"{ROW},999.0,999.0")
        ).to_table()
        assert np.isinf(table["sigma_ra"][0].value)

    def test_what_is_missing_is_named(self, tmp_path):
        ours = ("obstime", "ra", "dec", "station")
        for name, column in zip(HEADER.split(",")[1:], ours, strict=True):
            header = HEADER.replace(name, "something")
            with pytest.raises(ObservationFormatError, match=rf"lacks .* {column};.*something"):
                parse_observations(write(tmp_path / "o.csv", header, ROW)).to_table()

    def test_what_is_no_table(self, tmp_path):
        with pytest.raises(ObservationFormatError, match="no comma-separated table"):
            parse_observations(write(tmp_path / "o.csv", "a,b", "1,2,3,4", "1,2,3,4,5")).to_table()
