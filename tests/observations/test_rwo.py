"""OrbFit .rwo: every layout read, every record accounted for, and written back the same."""

import gzip
import io
import re

import erfa
import numpy as np
import pytest
from astropy import units as u
from astropy.coordinates import EarthLocation
from astropy.table import QTable
from astropy.time import Time
from hypothesis import given, settings
from hypothesis import strategies as st

import neoranging.observations  # noqa: F401  (registers the formats)
from neoranging.exceptions import NeoRangingWarning, ObservationFormatError
from neoranging.observations.report import Reason
from neoranging.observations.rwo.layout import looks_like_rwo
from neoranging.observations.rwo.read import read_rwo
from neoranging.observations.rwo.write import format_rwo, write_rwo

# Lines counted with awk by their kind: records, used, radar, replaced.
COUNTS = {
    "rwo/1685.rwo": (4477, 4467, 9, 1),
    "rwo/1862_v2.rwo": (1408, 1390, 17, 1),
    "rwo/1979XB_v3.rwo": (18, 18, 0, 0),
    "rwo/2005ED224_v1.rwo": (11, 11, 0, 0),
    "rwo/2009BD_v2.rwo": (190, 190, 0, 0),
    "rwo/2016YC8.rwo": (88, 86, 2, 0),
    "rwo/2020BX12_v2.rwo": (155, 153, 2, 0),
    "rwo/2020BX12_v3.rwo": (166, 164, 2, 0),
    "rwo/410777.rwo": (292, 291, 1, 0),
    "rwo/433.rwo.gz": (13686, 13679, 6, 1),
    "tricky/rwo_dec_minus_zero.rwo": (4, 4, 0, 0),
    "tricky/rwo_tracklet_crossing_0h.rwo": (6, 6, 0, 0),
    "tricky/rwo_v1_sample.rwo": (6, 6, 0, 0),
    "tricky/rwo_v2_mag_missing.rwo": (4, 4, 0, 0),
    "tricky/rwo_v2_no_residuals.rwo": (4, 4, 0, 0),
    "tricky/rwo_v2_radar_section.rwo": (7, 1, 6, 0),
    "tricky/rwo_v2_sample.rwo": (6, 5, 0, 1),
    "tricky/rwo_v3_radar_section.rwo": (7, 1, 6, 0),
    "tricky/rwo_v3_roving_O_V.rwo": (2, 2, 0, 0),
    "tricky/rwo_v3_sample.rwo": (6, 6, 0, 0),
    "tricky/rwo_v3_satellite_S.rwo": (3, 3, 0, 0),
}
# Their text cannot come back: no column lines of their own, or old narrow columns for spacecraft.
NO_COLUMN_LINES = {"tricky/rwo_v2_radar_section.rwo", "tricky/rwo_v3_radar_section.rwo"}

HEADER = """\
version =   3
errmod  = 'vfcc17'
RMSast  =   3.56997E-01
RMSmag  =   4.17766E-01
END_OF_HEADER
"""
GROUND = (
    " 2024YR4   O C K 2024 12 27.238073      1.000E-06 08 56 40.968  1.500E-02    0.500 T   -0.012"
    "    0.123 -00 16 11.93  1.000E-02    0.400 F    0.034   -0.456 16.54o  0.50   0.31   V W68"
    "      1.23 1 0"
)
SPACE = (
    " 1685      S S   2010 02 11.490128      1.000E-06 15 06 37.600  1.316E-01    1.000 F    0.098"
    "    0.099 -28 39 41.90  1.000E-01    1.000 F    0.063   -0.239                       L C51"
    "      0.26 1 0\n"
    " 1685      S s   2010 02 11.49012 1      -4336.226400000000      -4288.288000000000"
    "      -3256.894200000000 C51"
)
ROVING = (
    " 1685      O V   2008 02 14.30053       1.000E-05 05 13 06.230  1.500E-01    1.000 F   -0.107"
    "    0.420 -00 34 40.90  1.000E-01    1.000 F    0.073   -0.299 13.8 V  0.70  -0.10   o 247"
    "      0.52 1 1\n"
    " 1685      O v   2008 02 14.30053 237.818000  37.819100    470.0 247"
)
REPLACED = GROUND.replace("O C K", "O X K")
RADAR = (
    " 1862      R s   1980 11 15 23:48:00   9069165.69723   2.99792   2.99792 F     0.00000"
    "     0.63701 251 251      0.28 1"
)


def text(*records, header=HEADER):
    return header + "\n".join(records) + "\n"


def same(a, b, *, but=()):
    """Names of the columns in which two tables differ, to the last bit."""
    assert a.colnames == b.colnames
    differing = []
    for name in set(a.colnames) - set(but):
        left, right = a[name], b[name]
        if name == "obstime":
            equal = (left.jd1 == right.jd1).all() and (left.jd2 == right.jd2).all()
        else:
            left, right = (np.asarray(getattr(c, "value", c)) for c in (left, right))
            equal = np.array_equal(left, right, equal_nan=left.dtype.kind == "f")
        if not equal:
            differing.append(name)
    return differing


@pytest.mark.parametrize("name", COUNTS)
def test_every_record_of_real_files_is_accounted_for(shared, name):
    n_records, n_used, n_radar, n_replaced = COUNTS[name]
    table = read_rwo(shared / "data" / name)
    report = table.meta["report"]
    assert (report.n_read, report.n_used, len(table)) == (n_records, n_used, n_used)
    assert report.reasons.get(Reason.RADAR, 0) == n_radar
    assert report.reasons.get(Reason.REPLACED, 0) == n_replaced
    assert report.n_set_aside == n_radar + n_replaced
    assert report.notes == ()
    assert np.isfinite(table["ra"]).all()
    assert (table["sigma_source"] == "file").all()


@pytest.mark.parametrize("name", COUNTS)
def test_reading_and_writing_again_changes_no_column(shared, name):
    table = read_rwo(shared / "data" / name)
    again = read_rwo(format_rwo(table, set_aside=True))
    assert same(table, again, but={"line"} if name in NO_COLUMN_LINES else ()) == []
    assert {k: v for k, v in again.meta.items() if k != "report"} == {
        k: v for k, v in table.meta.items() if k != "report"
    }
    assert again.meta["report"].reasons == table.meta["report"].reasons
    plain = read_rwo(format_rwo(table))
    assert same(table, plain, but={"line"}) == []


@pytest.mark.parametrize("name", sorted(set(COUNTS) - NO_COLUMN_LINES))
def test_text_comes_back_as_it_was(shared, name):
    content = (shared / "data" / name).read_bytes()
    content = gzip.decompress(content) if name.endswith(".gz") else content
    before = [line.rstrip() for line in content.decode().splitlines() if line.strip()]
    after = format_rwo(read_rwo(content), set_aside=True).splitlines()
    assert len(before) == len(after)
    narrow_spacecraft = re.compile(r" S s .{18} [12].{36} C51$")
    changed = [
        (old, new)
        for old, new in zip(before, after, strict=True)
        if old != new and not narrow_spacecraft.search(old)
    ]
    # Seconds of 60 are the only other text without a twin: they become the next minute.
    assert all(re.search(r"\d\d 60\.0", old) for old, _ in changed)


def test_a_record_by_hand():
    table = read_rwo(text(GROUND))
    row = table[0]
    assert row["designation"] == "2024 YR4"
    assert abs(row["obstime"] - Time("2024-12-27T05:42:49.5072", scale="utc")) < 1 * u.us
    assert row["ra"].to_value(u.deg) == pytest.approx(15 * (8 + 56 / 60 + 40.968 / 3600), abs=1e-13)
    assert row["dec"].to_value(u.deg) == pytest.approx(-(16 / 60 + 11.93 / 3600), abs=1e-15)
    assert (row["sigma_ra"], row["sigma_dec"]) == (0.5 * u.arcsec, 0.4 * u.arcsec)
    assert (row["time_accuracy"], row["ra_accuracy"]) == (1e-6 * u.day, 0.015 * u.arcsec)
    assert (row["ra_bias"], row["dec_bias"]) == (-0.012 * u.arcsec, 0.034 * u.arcsec)
    assert (row["ra_residual"], row["dec_residual"]) == (0.123 * u.arcsec, -0.456 * u.arcsec)
    assert (row["ra_forced"], row["dec_forced"]) == (True, False)
    assert (row["mag"], row["band"], row["mag_accuracy"]) == (16.54, "o", 0.01)
    assert (row["sigma_mag"], row["mag_residual"], row["chi"]) == (0.5, 0.31, 1.23)
    assert (row["station"], row["catalog"], row["notes"]) == ("W68", "V", "K")
    assert (row["note2"], row["kind"], row["line"]) == ("C", "ground", 6)
    assert (row["selected"], row["mag_selected"]) == (True, False)
    assert table.meta["errmod"] == "vfcc17"
    assert table.meta["RMSast"] == 0.356997


def test_spacecraft_brings_its_place():
    (row,) = read_rwo(text(SPACE))
    assert row["kind"] == "space"
    np.testing.assert_array_equal(
        row["observer_gcrs"].to_value(u.km), [-4336.2264, -4288.288, -3256.8942]
    )
    assert np.isnan(row["observer_itrf"]).all()
    assert np.isnan(row["mag"])


def test_spacecraft_in_astronomical_units():
    first, _, second = SPACE.partition("\n")
    xyz = "".join(f"{x:24.12f}" for x in (0.01, -0.002, 0.0003))
    (row,) = read_rwo(text(first, f"{second[:34]}2{xyz} C51"))
    expected = 149_597_870.7 * np.array([0.01, -0.002, 0.0003])
    np.testing.assert_allclose(row["observer_gcrs"].to_value(u.km), expected, rtol=1e-15)


def test_roving_observer_brings_its_place():
    (row,) = read_rwo(text(ROVING))
    place = EarthLocation.from_geodetic(237.818 * u.deg, 37.8191 * u.deg, 470 * u.m)
    expected = u.Quantity(place.geocentric).to_value(u.m)
    assert row["kind"] == "roving"
    np.testing.assert_allclose(row["observer_itrf"].to_value(u.m), expected, atol=1e-6)


@pytest.mark.parametrize(
    ("records", "reason", "n_used"),
    [
        ((GROUND, SPACE.partition("\n")[0]), Reason.SPACE_WITHOUT_POSITION, 1),
        ((GROUND, ROVING.partition("\n")[0]), Reason.ROVING_WITHOUT_POSITION, 1),
        ((GROUND, SPACE.split("\n")[1]), Reason.ORPHAN_SECOND_LINE, 1),
        ((GROUND, REPLACED), Reason.REPLACED, 1),
        ((GROUND, RADAR), Reason.RADAR, 1),
        ((GROUND, GROUND.replace("O C K", "Q C K")), Reason.MALFORMED, 1),
        ((GROUND, GROUND.replace("08 56", "24 56")), Reason.MALFORMED, 1),
        ((GROUND, GROUND.replace("-00 16", "-91 16")), Reason.MALFORMED, 1),
        ((GROUND, GROUND.replace("2024 12", "2024 13")), Reason.MALFORMED, 1),
        ((GROUND, GROUND.replace("W68", "   ")), Reason.MALFORMED, 1),
        ((GROUND, GROUND.replace("W68", "C51")), Reason.SPACE_WITHOUT_POSITION, 1),
        ((GROUND, GROUND.replace("W68", "247")), Reason.ROVING_WITHOUT_POSITION, 1),
        ((GROUND, GROUND[:100]), Reason.MALFORMED, 1),
    ],
)
def test_reasons(records, reason, n_used):
    report = read_rwo(text(*records)).meta["report"]
    assert report.reasons == {reason: 1}
    assert report.n_used == n_used
    assert report.set_aside[0].text == records[1]


def test_a_second_line_of_another_time_is_no_partner():
    first, second = SPACE.split("\n")
    report = read_rwo(text(first, second.replace("11.49012", "11.59012"))).meta["report"]
    assert report.reasons == {Reason.SPACE_WITHOUT_POSITION: 1, Reason.ORPHAN_SECOND_LINE: 1}


def test_layouts_are_measured_without_a_header(shared):
    for name in ("rwo_v1_sample", "rwo_v2_no_residuals", "rwo_v3_sample", "rwo_v3_roving_O_V"):
        path = shared / "data" / "tricky" / f"{name}.rwo"
        body = path.read_text().partition("END_OF_HEADER\n")[2]
        body = "".join(line for line in body.splitlines(True) if not line.startswith("!"))
        assert same(read_rwo(path), read_rwo(body), but={"line"}) == []


def test_files_of_different_layouts_strung_together(shared):
    names = ("rwo_v1_sample", "rwo_v3_sample", "rwo_v2_sample", "rwo_v3_satellite_S")
    paths = [shared / "data" / "tricky" / f"{name}.rwo" for name in names]
    table = read_rwo("".join(path.read_text() for path in paths))
    parts = [read_rwo(path) for path in paths]
    for name in ("designation", "ra", "station", "chi", "observer_gcrs"):
        np.testing.assert_array_equal(table[name], np.concatenate([part[name] for part in parts]))


def test_blank_sigmas_get_defaults():
    blank = GROUND.replace("    0.500 T", "          F")
    (row,) = read_rwo(text(blank))
    assert row["sigma_source"] == "default"
    assert 0.1 * u.arcsec < row["sigma_ra"] < 10 * u.arcsec
    (row,) = read_rwo(text(blank), default_sigma=2.5)
    assert row["sigma_ra"] == row["sigma_dec"] == 2.5 * u.arcsec


def test_zero_weight_and_overflowing_residual_are_kept():
    record = GROUND.replace("    0.500 T", "  999.000 T").replace("    0.123", "  3.7E+03")
    table = read_rwo(text(record))
    assert table["sigma_ra"][0] == 999 * u.arcsec
    assert table["ra_residual"][0] == 3700 * u.arcsec
    assert record in format_rwo(table)


def test_an_unreadable_field_is_noted():
    table = read_rwo(text(GROUND, GROUND.replace("16.54o", "1x.54o")))
    assert np.isnan(table["mag"][1])
    assert [note.line for note in table.meta["report"].notes] == [7]


def test_unknown_station_warns_once_and_is_kept():
    with pytest.warns(NeoRangingWarning, match="no list of observatories has @@@: 2 observations"):
        table = read_rwo(text(GROUND, *[GROUND.replace("W68", "@@@")] * 2))
    assert len(table) == 3
    assert len(table.meta["report"].notes) == 1


@pytest.mark.parametrize(
    "content",
    ["", "\n\n", "no observations here\n", "a,b,c\n1,2,3\n", '{"optical_list": []}', "\0\1\2\n"],
)
def test_other_files_are_refused(content):
    with pytest.raises(ObservationFormatError):
        read_rwo(content.encode())


def test_json_is_named(shared):
    with pytest.raises(ObservationFormatError, match="JSON"):
        read_rwo(shared / "data" / "tricky" / "rwo_as_json.rwo")


def test_unified_read_and_write(shared, tmp_path):
    path = shared / "data" / "rwo" / "2016YC8.rwo"
    table = QTable.read(path)
    assert len(table) == 86
    table.write(tmp_path / "again.rwo")
    again = QTable.read(tmp_path / "again.rwo")
    assert same(table, again, but={"line"}) == []
    with pytest.raises(OSError, match="overwrite"):
        table.write(tmp_path / "again.rwo")
    table.write(tmp_path / "again.rwo", overwrite=True, version=2, set_aside=True)
    assert len(QTable.read(tmp_path / "again.rwo").meta["report"].set_aside) == 2


def test_write_to_open_files():
    table = read_rwo(text(GROUND))
    binary, plain = io.BytesIO(), io.StringIO()
    write_rwo(table, binary)
    write_rwo(table, plain)
    assert binary.getvalue().decode() == plain.getvalue() == format_rwo(table)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_every_version_can_be_written(version):
    table = read_rwo(text(GROUND, SPACE, ROVING))
    again = read_rwo(format_rwo(table, version=version))
    assert again.meta["version"] == version
    assert same(table, again, but={"line"} | ({"catalog"} if version == 1 else set())) == []


def test_long_names_get_the_wide_layout():
    table = read_rwo(text(GROUND))
    table["designation"] = ["2024 AA12345"]
    again = read_rwo(format_rwo(table))
    assert again["designation"][0] == "2024 AA12345"
    assert again.meta["object_width"] == 12
    table["designation"] = ["a name that is far too long"]
    with pytest.raises(ObservationFormatError, match="does not fit"):
        format_rwo(table)


def test_a_bare_table_can_be_written():
    table = QTable(
        {
            "designation": ["433", "2024 YR4"],
            "obstime": Time([12765, 60671], [0.4132, 1 - 1e-12], format="mjd", scale="utc"),
            "ra": [359.9999999, 12.5] * u.deg,
            "dec": [-0.00001, 89.9999999] * u.deg,
            "station": ["802", "W68"],
        }
    )
    again = read_rwo(format_rwo(table))
    assert again["ra"][0] == 0 * u.deg
    assert np.signbit(again["dec"][0].value)
    np.testing.assert_allclose(again["obstime"].mjd, table["obstime"].mjd, rtol=0, atol=1e-10)
    assert again["selected"].all()
    with pytest.raises(ObservationFormatError, match="lacks station"):
        format_rwo(table["designation", "obstime", "ra", "dec"])
    table["dec"][0] = np.nan * u.deg
    with pytest.raises(ObservationFormatError, match="no direction"):
        format_rwo(table)


def test_sigmas_are_arcseconds():
    """Noise of 1 arcsec read with sigma 1 arcsec has chi-square 1 per degree of freedom."""
    rng, n = np.random.default_rng(5), 2000
    table = QTable(
        {
            "designation": ["433"] * n,
            "obstime": Time(60_000 + np.arange(n) / 1e3, format="mjd"),
            "ra": 100 * u.deg + rng.normal(size=n) / np.cos(np.radians(60)) * u.arcsec,
            "dec": 60 * u.deg + rng.normal(size=n) * u.arcsec,
            "sigma_ra": np.ones(n) * u.arcsec,
            "sigma_dec": np.ones(n) * u.arcsec,
            "station": ["W68"] * n,
        }
    )
    read = read_rwo(format_rwo(table))
    pull_ra = (read["ra"] - 100 * u.deg) * np.cos(np.radians(60)) / read["sigma_ra"]
    pull_dec = (read["dec"] - 60 * u.deg) / read["sigma_dec"]
    for pull in (pull_ra, pull_dec):
        assert np.mean(pull.to_value(u.one) ** 2) == pytest.approx(1.0, abs=0.15)


def test_dates_before_utc_do_not_warn():
    table = read_rwo(text(GROUND.replace("2024 12", "1893 12")))
    assert table["obstime"].scale == "utc"
    assert erfa.jd2cal(table["obstime"].jd1, table["obstime"].jd2)[0] == 1893
    format_rwo(table)


def test_sniffer():
    assert looks_like_rwo(text(GROUND).encode())
    assert looks_like_rwo(GROUND.encode())
    assert not looks_like_rwo(b"     K24Y04R* C2024 12 27.23807308 56 40.968-00 16 11.93\n")
    assert not looks_like_rwo(b"# version=2022\n")


RECORDS = (GROUND, *SPACE.split("\n"), *ROVING.split("\n"), REPLACED, RADAR)
BYTES = st.sampled_from("0123456789 .+-*SsVvRXxOTFE\tz~")


@st.composite
def damaged_lines(draw):
    lines = list(draw(st.lists(st.sampled_from(RECORDS), min_size=1, max_size=8)))
    for _ in range(draw(st.integers(0, 12))):
        index = draw(st.integers(0, len(lines) - 1))
        at = draw(st.integers(0, len(lines[index])))
        skip = draw(st.integers(0, 2))
        lines[index] = lines[index][:at] + draw(BYTES) + lines[index][at + skip :]
    return lines


@pytest.mark.filterwarnings("ignore::neoranging.exceptions.NeoRangingWarning")
@settings(max_examples=150, deadline=None)
@given(damaged_lines())
def test_damage_raises_nothing_and_loses_nothing(lines):
    report = read_rwo(text(*lines)).meta["report"]
    accounted = report.n_used + report.n_set_aside
    n_second = sum(line[11:14] in ("S s", "O v") for line in lines)
    n_lines = sum(bool(line.strip()) for line in lines)
    assert report.n_read == accounted
    assert n_lines - n_second <= report.n_read <= n_lines


@settings(max_examples=100, deadline=None)
@given(
    mjd=st.integers(-30_000, 90_000),
    fraction=st.floats(0, 1, exclude_max=True),
    ra=st.floats(0, 360, exclude_max=True),
    dec=st.floats(-90, 90),
    sigma=st.floats(0.001, 999),
    mag=st.one_of(st.just(np.nan), st.floats(-5, 30)),
)
def test_any_observation_survives_to_the_resolution_of_the_format(
    mjd, fraction, ra, dec, sigma, mag
):
    table = QTable(
        {
            "designation": ["433"],
            "obstime": Time([mjd], [fraction], format="mjd", scale="utc"),
            "ra": [ra] * u.deg,
            "dec": [dec] * u.deg,
            "sigma_ra": [sigma] * u.arcsec,
            "sigma_dec": [sigma] * u.arcsec,
            "mag": [mag],
            "station": ["W68"],
        }
    )
    once = read_rwo(format_rwo(table))
    assert abs((once["ra"][0] - ra * u.deg).to_value(u.arcsec) + 180) % 360 - 180 < 0.00751
    assert abs(once["dec"][0].to_value(u.deg) - dec) <= 0.0051 / 3600
    read, written = once["obstime"][0], table["obstime"][0]
    assert abs((read.jd1 - written.jd1) + (read.jd2 - written.jd2)) <= 1e-10
    assert once["sigma_ra"][0].value == pytest.approx(sigma, abs=5.1e-4)
    assert once["mag"][0] == pytest.approx(mag, abs=5.1e-3, nan_ok=True)
    assert same(once, read_rwo(format_rwo(once))) == []


@pytest.mark.parametrize("fill", [" ", "\0", "=", "1"])
def test_a_header_line_of_any_length_takes_no_time(fill):
    long = f"RMSast = 3E-0{fill * 300_000}x\n" + text(GROUND)
    table = read_rwo(long.encode())
    assert len(table) == 1
    assert any("RMSast" in note.text for note in table.meta["report"].notes)
    assert "RMSast" not in table.meta


def test_a_sigma_beyond_all_measure_is_set_aside():
    report = read_rwo(text(GROUND.replace("    0.500 T", "  9.99E+8 T"))).meta["report"]
    assert report.reasons == {Reason.MALFORMED: 1}
    assert len(read_rwo(text(GROUND.replace("    0.500 T", "  999.000 T")))) == 1
