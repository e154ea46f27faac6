"""The 80-column format: every kind of record, full accounting, round trips and damage."""

import gzip
import io
import subprocess
import sys
import warnings

import numpy as np
import pytest
from astropy import units as u
from astropy.coordinates import EarthLocation
from astropy.table import QTable, Table
from astropy.time import Time
from hypothesis import given, settings
from hypothesis import strategies as st

from neoranging.constants import AU_KM
from neoranging.exceptions import NeoRangingWarning, ObservationFormatError
from neoranging.observations.obs80.lines import looks_like_obs80
from neoranging.observations.obs80.read import read_obs80
from neoranging.observations.obs80.write import format_obs80
from neoranging.observations.report import Reason

# Records of the Minor Planet Center.
GROUND = "     K14A00A* C2014 01 01.26257 05 32 35.55 +13 59 45.0          19.1 Vq~0yn5G96"
PRECISE = "     K24Y04R  C2024 12 27.24033408 56 36.905-00 15 27.90         15.80oV~8ZuSW68"
MINUTES = "00004         A1917 09 15.033   00 47.0     -07 40                6.5   JO002008"
NO_MAG = "03200J83T00B  A1983 10 11.14027 17 29.29    +59 27.6                    M8192500"
OCCULTATION = "00433         E1975 01 24.01889007 44 23.906+24 23 59.87                v4566244"
REPLACED = "03666J38W00Q* X1938 11 28.972   04 50.1     +19 48               14.7   BZ020024"
REPLACED_SPACE = "j4767K10F61M* x2010 03 26.92800 06 54 29.05 +42 58 36.4                L~0FofC51"
HIPPARCOS = "00004         H1990 07 12.48305502 58 26.165+10 15 59.29                HTCDR248"
SPACE = [
    "00203         S2003 01 29.08280406 09 11.417+27 37 29.22               X~7lvr275",
    "00203         s2003 01 29.0828041 + 2202.0220 - 1177.3210 + 2416.8700   ~7lvr275",
]
SPACE_AU = [
    "    CJ96X040 3S1996 12 06.38895 16 45 09.4  -21 37 15                   55913249",
    "    CJ96X040 3s1996 12 06.38895 2 -0.00266005 -0.00945127 -0.00507492   55913249",
]
JWST = [
    "     K24Y04R 0S2025 03 08.91451708 13 06.665+13 41 28.40         24.3 HW~8nm6274",
    "     K24Y04R  s2025 03 08.9145171 -1089716.00 +416635.428 +442533.982   ~8nm6274",
]
ROVING = [
    "03200         V2002 01 05.08792 01 50 06.42 +23 53 49.5          17.0  di1635247",
    "03200         v2002 01 05.08792 1 282.1385   +39.0796     527          di1635247",
]
RADAR = [
    "01862         R1980 11 13.910417               -     1144100   2380 251 JPLRS251",
    "01862         r1980 11 13.910417S                        2000       251 JPLRS251",
]
EVERYTHING = [
    *(GROUND, PRECISE, MINUTES, NO_MAG, OCCULTATION, REPLACED, REPLACED_SPACE, HIPPARCOS),
    *(*SPACE, *SPACE_AU, *JWST, *ROVING, *RADAR),
]


def read(*lines, **kwargs):
    return QTable.read(list(lines), format="mpc.obs80", **kwargs)


def set_aside(table):
    return [(entry.line, entry.reason) for entry in table.meta["report"].set_aside]


def days_between(first, second):
    # Not a difference of times: that would go through TAI, which old dates do not have.
    return (first.jd1 - second.jd1) + (first.jd2 - second.jd2)


def assert_same(first, second):
    for name in first.colnames:
        if name == "line":
            continue
        left, right = first[name], second[name]
        if name == "obstime":
            assert (days_between(left, right) == 0).all()
        elif np.asarray(left).dtype.kind == "f":
            np.testing.assert_array_equal(u.Quantity(left).value, u.Quantity(right).value, name)
        else:
            assert np.asarray(left).tolist() == np.asarray(right).tolist(), name


def test_a_ground_record_by_hand():
    row = read(GROUND)[0]
    assert row["designation"] == "2014 AA"
    assert row["obstime"].scale == "utc"
    assert abs((row["obstime"] - Time("2014-01-01T06:18:06.048", scale="utc")).sec) < 1e-6
    assert row["ra"].to_value(u.deg) == pytest.approx(83.148125, abs=1e-13)
    assert row["dec"].to_value(u.deg) == pytest.approx(13.995833333333332, abs=1e-14)
    assert (row["mag"], row["band"], row["catalog"], row["station"]) == (19.1, "V", "q", "G96")
    assert (row["note2"], row["program"], row["kind"], row["line"]) == ("C", "", "ground", 1)
    assert row["discovery"]
    assert row["reference"] == "~0yn5"
    assert np.isnan(row["observer_itrf"]).all()
    assert np.isnan(row["observer_gcrs"]).all()
    assert row["sigma_ra"] == 0.5 * u.arcsec
    assert row["sigma_source"] == "default"
    assert row["time_resolution"].to_value(u.s) == pytest.approx(0.864)
    assert row["ra_resolution"].to_value(u.arcsec) == pytest.approx(0.15)


def test_precise_record_without_gaps_and_minus_zero_declination():
    row = read(PRECISE)[0]
    assert row["ra"].to_value(u.deg) == pytest.approx(134.15377083333333, abs=1e-12)
    assert row["dec"].to_value(u.deg) == pytest.approx(-0.25775, abs=1e-14)
    assert row["obstime"].mjd == pytest.approx(60671.240334, abs=1e-10)
    assert row["mag"] == 15.8
    assert row["band"] == "o"


def test_records_in_decimal_minutes():
    table = read(MINUTES, NO_MAG)
    np.testing.assert_allclose(table["ra"].value, [11.75, (17 + 29.29 / 60) * 15], rtol=1e-15)
    np.testing.assert_allclose(table["dec"].value, [-(7 + 40 / 60), 59 + 27.6 / 60], rtol=1e-15)
    np.testing.assert_allclose(table["ra_resolution"].value, [90.0, 9.0])
    np.testing.assert_allclose(table["dec_resolution"].value, [60.0, 6.0])
    assert table["mag"][0] == 6.5
    assert np.isnan(table["mag"][1])
    # The rounding to whole minutes outweighs the plate: 60 arcsec / sqrt(12).
    assert table["sigma_dec"][0].value == pytest.approx(60 / np.sqrt(12))
    assert table["sigma_dec"][1].value == pytest.approx(2.5)


def test_spacecraft_in_kilometres_and_au():
    table = read(*SPACE, *SPACE_AU, *JWST)
    assert table["kind"].tolist() == ["space"] * 3
    expected = [
        [2202.022, -1177.321, 2416.87],
        [-0.00266005 * AU_KM, -0.00945127 * AU_KM, -0.00507492 * AU_KM],
        [-1089716.0, 416635.428, 442533.982],
    ]
    np.testing.assert_array_equal(table["observer_gcrs"].to_value(u.km), expected)
    assert np.isnan(table["observer_itrf"]).all()
    assert table["line"].tolist() == [1, 3, 5]
    assert table.meta["report"].n_read == 3


def test_roving_observer():
    row = read(*ROVING)[0]
    place = EarthLocation.from_geodetic(282.1385 * u.deg, 39.0796 * u.deg, 527 * u.m)
    expected = u.Quantity(place.geocentric).to_value(u.m)
    np.testing.assert_allclose(row["observer_itrf"].to_value(u.m), expected, atol=1e-6)
    assert row["kind"] == "roving"


def test_hipparcos_is_at_the_geocentre():
    row = read(HIPPARCOS)[0]
    assert row["kind"] == "space"
    assert (row["observer_gcrs"].value == 0).all()


def test_one_odd_record_does_not_lose_the_file():
    table = read(GROUND, *RADAR, REPLACED, REPLACED_SPACE, SPACE[1], SPACE[0], ROVING[0], PRECISE)
    assert len(table) == 2
    assert set_aside(table) == [
        (2, Reason.RADAR),
        (4, Reason.REPLACED),
        (5, Reason.REPLACED),
        (6, Reason.ORPHAN_SECOND_LINE),
        (7, Reason.SPACE_WITHOUT_POSITION),
        (8, Reason.ROVING_WITHOUT_POSITION),
    ]


def test_replaced_discovery_does_not_take_the_next_line():
    line = " r0871K10A85R* x2010 01 07.86121 21 48 04.53 +63 48 59.2                L~0I1lC51"[1:]
    table = read(line, GROUND)
    assert set_aside(table) == [(1, Reason.REPLACED)]
    assert table["designation"].tolist() == ["2014 AA"]


@pytest.mark.parametrize("column", [32, 40, 52, 60])
def test_spoilt_second_line(column):
    second = SPACE[1][:column] + "x" + SPACE[1][column + 1 :]
    table = read(SPACE[0], second, GROUND)
    assert set_aside(table) == [(1, Reason.SPACE_WITHOUT_POSITION)]


def test_second_line_of_another_exposure_is_not_taken():
    table = read(SPACE[0], SPACE_AU[1], GROUND)
    assert [reason for _, reason in set_aside(table)] == [
        Reason.SPACE_WITHOUT_POSITION,
        Reason.ORPHAN_SECOND_LINE,
    ]


def test_lines_of_160_columns():
    joined = read(*(a + b for a, b in (SPACE, SPACE_AU, ROVING, RADAR)), GROUND)
    apart = read(*SPACE, *SPACE_AU, *ROVING, *RADAR, GROUND)
    assert_same(joined, apart)
    assert joined["line"].tolist() == [1, 2, 3, 5]
    assert set_aside(joined) == [(4, Reason.RADAR)]
    assert not joined.meta["report"].notes


def test_spacecraft_code_without_second_line():
    survey = SPACE[0].replace("S2003", "C2003").replace("275", "C51")
    rover = ROVING[0].replace("V2002", "C2002")
    table = read(survey, rover, OCCULTATION)
    assert [reason for _, reason in set_aside(table)] == [
        Reason.SPACE_WITHOUT_POSITION,
        Reason.ROVING_WITHOUT_POSITION,
    ]
    assert table["kind"].tolist() == ["ground"]


def test_headers_comments_and_blank_lines_are_counted():
    header = [
        "COD G96",
        "OBS A. Observer",
        "NET Gaia2",
        "ACK 2014 01 01.5 of tonight",
        "",
        "# note",
    ]
    table = read(*header, GROUND, "", "     ")
    report = table.meta["report"]
    assert (len(table), report.n_read, report.n_ignored_lines) == (1, 1, 8)
    assert table["line"].tolist() == [7]


@pytest.mark.parametrize(
    ("spoilt", "detail"),
    [
        (GROUND.replace("2014 01 01", "2014 02 30"), "date"),
        (GROUND.replace("2014 01", "2O14 01"), "date"),
        (GROUND.replace("2014 01 01", "2014-01-01"), "date"),
        (GROUND.replace("05 32", "25 32"), "right ascension"),
        (GROUND.replace("05 32", "05 6x"), "right ascension"),
        (GROUND.replace("+13", "+93"), "declination"),
        (GROUND.replace("+13", " 13"), "declination"),
        (GROUND[:77], "station"),
        (GROUND[:40], "declination"),
        (" " * 12 + GROUND[12:], "designation"),
        (GROUND[5:], "date"),
    ],
)
def test_malformed_records_are_set_aside_with_the_reason(spoilt, detail):
    table = read(PRECISE, spoilt)
    (entry,) = table.meta["report"].set_aside
    assert (entry.line, entry.reason) == (2, Reason.MALFORMED)
    assert detail in entry.detail


def test_unknown_station_is_kept_noted_and_warned_of():
    line = "     A10TlFw  C2023 03 07.39538117 06 15.890-19 00 27.68         14.26VV     XXX"
    with pytest.warns(NeoRangingWarning, match=r"no list of observatories has XXX: ") as caught:
        table = read(line, line)
    assert len(caught) == 1
    assert len(table) == 2
    assert [str(note) for note in table.meta["report"].notes] == [
        "line 1: unknown station 'XXX' (2 observations)"
    ]


def test_unreadable_magnitude_and_unknown_type_are_noted():
    table = read(GROUND.replace("19.1 ", "1x.1 "), GROUND.replace("C2014", "#2014"))
    assert np.isnan(table["mag"][0])
    assert [note.line for note in table.meta["report"].notes] == [1, 2]


def test_text_beyond_column_80_is_noted():
    table = read(GROUND + "  reduced by hand")
    assert "beyond column 80" in str(table.meta["report"])
    assert table["station"].tolist() == ["G96"]


def test_default_sigma_can_be_overruled():
    lines = (GROUND, PRECISE)
    assert read(*lines)["sigma_ra"].value.tolist() == [0.5, 0.6]
    assert read(*lines, default_sigma=0.3)["sigma_dec"].value.tolist() == [0.3, 0.3]
    milli = read(*lines, default_sigma=200 * u.mas)
    assert milli["sigma_ra"].unit == u.arcsec
    np.testing.assert_allclose(milli["sigma_ra"].value, 0.2)
    assert read(*lines, default_sigma={"W68": 0.1})["sigma_ra"].value.tolist() == [0.5, 0.1]
    for wrong in (-1.0, 0.2 * u.km, "one", np.nan):
        with pytest.raises(ObservationFormatError, match="positive angle"):
            read(*lines, default_sigma=wrong)


def test_sigma_of_ra_is_on_the_sky():
    """Rounding to 1 s of right ascension is 15 arcsec at the equator, half of it at 60 degrees."""
    line = "03200         P1950 01 05.08792 01 50 06    +60 00 00            17.0        G96"
    table = read(line, default_sigma=None)
    assert table["sigma_ra"][0].value == pytest.approx(max(2.5, 7.5 / np.sqrt(12)))
    coarse = "03200         P1950 01 05.08792 01 50       +60 00 00            17.0        G96"
    assert read(coarse)["sigma_ra"][0].value == pytest.approx(450 / np.sqrt(12))


@pytest.mark.parametrize(
    "text", ["", "\n", "hello\n", "K14A00A* C2014 01 01.26257 05 32 35.55 +13 59 45.0\n", "\0" * 99]
)
def test_a_file_of_another_kind_is_refused(text):
    with pytest.raises(ObservationFormatError, match="not the 80-column format"):
        read_obs80(text.encode())


def test_shifted_file_is_told_where_its_date_is():
    with pytest.raises(ObservationFormatError, match="Put 5 blanks back in front"):
        read_obs80([GROUND.lstrip()])


def test_all_ways_in(tmp_path):
    text = "\r\n".join([GROUND, *SPACE]) + "\r\n"
    path = tmp_path / "night.dat"
    path.write_bytes(text.encode())
    packed = tmp_path / "night.obs80.gz"
    packed.write_bytes(gzip.compress(text.encode()))
    expected = read(GROUND, *SPACE)
    named = {"format": "mpc.obs80"}
    with path.open("rb") as binary, path.open() as characters:
        tables = [
            QTable.read(path),
            QTable.read(str(path)),
            QTable.read(packed),
            QTable.read(packed, **named),
            QTable.read(binary),
            QTable.read(characters, **named),
            QTable.read(text, **named),
            QTable.read(text.encode(), **named),
            QTable.read(io.StringIO(text), **named),
            QTable.read(text.splitlines()),
        ]
    for table in tables:
        assert_same(expected, table)
    assert tables[0].meta["report"].source == "night.dat"
    plain = Table.read(path)
    assert type(plain) is Table
    assert plain["ra"].unit == u.deg


def test_damaged_archive_and_missing_file(tmp_path):
    path = tmp_path / "cut.gz"
    path.write_bytes(gzip.compress(GROUND.encode() * 99)[:-20])
    with pytest.raises(ObservationFormatError, match="damaged"):
        QTable.read(path, format="mpc.obs80")
    with pytest.raises(FileNotFoundError):
        QTable.read(tmp_path / "absent.obs80", format="mpc.obs80")
    with pytest.raises(ObservationFormatError, match="cannot be read from a int"):
        QTable.read(3, format="mpc.obs80")


def test_recognition_by_content():
    assert looks_like_obs80(GROUND.encode())
    assert looks_like_obs80(b"COD G96\n\n" + MINUTES.encode() + b"\r\n")
    assert not looks_like_obs80(b"a,b,c\n1,2,3\n")
    assert not looks_like_obs80(GROUND[5:].encode())
    assert looks_like_obs80((GROUND + "  # text behind the last column").encode())
    assert not looks_like_obs80(b"# " + GROUND[2:].encode())


def test_formats_are_known_to_tables_imported_before_or_after():
    code = (
        "import sys, {first}, {second}\n"
        "from astropy.table import QTable\n"
        f"print(len(QTable.read([{GROUND!r}])))"
    )
    for first, second in (
        ("astropy.table", "neoranging.observations"),
        ("neoranging.observations", "astropy.table"),
    ):
        script = code.format(first=first, second=second)
        result = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True
        )
        assert result.stdout.strip() == "1"


def test_importing_observations_does_not_load_tables():
    script = "import sys, neoranging.observations; print('astropy.table' in sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "False"


def test_table_can_be_stored_with_its_report(tmp_path):
    path = tmp_path / "night.ecsv"
    read(GROUND, REPLACED).write(path)
    assert "1 REPLACED" in QTable.read(path).meta["report"]


# Writing ------------------------------------------------------------------------------------------


def test_written_lines_are_those_read():
    kept = [GROUND, PRECISE.replace("15.80", "15.83"), OCCULTATION, HIPPARCOS, *SPACE]
    assert format_obs80(read(*kept)) == kept


def test_everything_survives_a_round_trip(tmp_path):
    table = read(*EVERYTHING)
    path = tmp_path / "night.obs80"
    table.write(path)
    again = QTable.read(path)
    assert_same(table, again)
    assert again.meta["report"].n_set_aside == 0
    with pytest.raises(OSError, match="overwrite"):
        table.write(path)
    table.write(path, overwrite=True, format="mpc.obs80")
    buffer = io.StringIO()
    table.write(buffer, format="mpc.obs80")
    assert buffer.getvalue() == path.read_text()


def test_a_minimal_table_is_written_in_full_precision():
    table = QTable(
        {
            "designation": ["2024 YR4", "620000", "C/1996 B2"],
            "obstime": Time(["2024-12-27T23:59:59.99", "1999-01-01", "2016-11-30T12:00:00"]),
            "ra": [359.9999999, 0.0, 123.4567891] * u.deg,
            "dec": [-0.001, 89.9999999, -12.3456789] * u.deg,
            "station": ["W68", "G96", "703"],
        }
    )
    assert format_obs80(table) == [
        "     K24Y04R   2024 12 28.00000000 00 00.000-00 00 03.60                     W68",
        "~0000          1999 01 01.00000000 00 00.000+90 00 00.00                     G96",
        "    CJ96B020   2016 11 30.50000008 13 49.629-12 20 44.44                     703",
    ]


def test_names_of_bands_and_catalogues_of_ades():
    table = read(GROUND, GROUND, GROUND)
    table["band"] = ["Vj", "Sg", "Ao"]
    table["catalog"] = ["Gaia2", "UCAC4", "unheard"]
    assert [line[70:72] for line in format_obs80(table)] == ["VV", "gq", "o "]


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("station", "G9", "three columns"),
        ("note2", "S", "correct note2 or kind"),
        ("kind", "space", "no finite place"),
        ("kind", "roving", "no finite place"),
        ("mag", 123456.0, "does not fit"),
        ("ra", np.nan * u.deg, "no direction"),
        ("designation", "much too long a name", "cannot|can hold"),
    ],
)
def test_what_cannot_be_written_says_so(column, value, message):
    table = read(GROUND)
    table[column] = u.Quantity([value]) if isinstance(value, u.Quantity) else [value]
    with pytest.raises(ObservationFormatError, match=message):
        format_obs80(table)


@pytest.mark.parametrize("line", [HIPPARCOS, SPACE, ROVING])
def test_observers_without_the_column_of_their_place(line):
    table = read(line) if isinstance(line, str) else read(*line)
    table.remove_columns(["observer_gcrs", "observer_itrf"])
    with pytest.raises(ObservationFormatError, match="no finite place"):
        format_obs80(table)


def test_lines_that_would_not_have_80_columns():
    table = read(GROUND)
    table["obstime"] = Time([60_000_000.0], format="mjd")
    with pytest.raises(ObservationFormatError, match="80 ASCII"):
        format_obs80(table)


def test_plain_tables_are_written_too():
    table = read(*EVERYTHING)
    assert format_obs80(Table(table)) == format_obs80(table)
    assert format_obs80(table[:0]) == []


def test_missing_columns_are_named():
    with pytest.raises(ObservationFormatError, match="lacks ra, dec"):
        format_obs80(read(GROUND)["designation", "obstime", "station"])


@st.composite
def tables(draw):
    """Observation tables with every digit that the format holds."""
    n = draw(st.integers(1, 8))

    def column(strategy):
        return draw(st.lists(strategy, min_size=n, max_size=n))

    kind = np.array(column(st.sampled_from(["ground", "space", "roving"])))
    itrf, gcrs = np.full((2, n, 3), np.nan)
    for k in range(n):
        if kind[k] == "space":
            km = st.integers(-(10**9), 10**9).map(lambda x: x / 1000)
            gcrs[k] = [draw(km) for _ in range(3)]
        elif kind[k] == "roving":
            longitude = draw(st.integers(0, 359_999_999)) / 1e6
            latitude = draw(st.integers(-89_999_999, 89_999_999)) / 1e6
            height = draw(st.integers(-400, 9000))
            place = EarthLocation.from_geodetic(longitude * u.deg, latitude * u.deg, height * u.m)
            itrf[k] = u.Quantity(place.geocentric).to_value(u.m)
    ra = np.array(column(st.integers(0, 86_399_999)))
    dec = np.array(column(st.integers(-32_400_000, 32_400_000)))
    program = column(st.sampled_from(["", "0", "~"]))
    types = {"ground": st.sampled_from("CBAPMcTEeNn "), "space": st.just("S")}
    return QTable(
        {
            "designation": column(st.sampled_from(["2024 YR4", "99942", "1P", "A10TlFw", "1I"])),
            "obstime": Time(
                np.array(column(st.integers(-94_000, 88_000)), dtype=float),
                np.array(column(st.integers(0, 999_999))) / 1e6,
                format="mjd",
                scale="utc",
            ),
            "ra": (ra / 3.6e6 * 15.0) * u.deg,
            "dec": (dec / 3.6e5) * u.deg,
            "mag": column(st.integers(-999, 2999).map(lambda x: x / 100) | st.just(np.nan)),
            "band": column(st.sampled_from(["", "V", "G", "w"])),
            "station": column(st.sampled_from(["G96", "F51", "703", "500"])),
            "kind": kind,
            "observer_itrf": itrf * u.m,
            "observer_gcrs": gcrs * u.km,
            "note2": [draw(types.get(k, st.just("V"))).strip() for k in kind],
            "program": program,
            "notes": ["" if code else draw(st.sampled_from(["", "K", "t"])) for code in program],
            "catalog": column(st.sampled_from(["", "V", "q"])),
            "discovery": column(st.booleans()),
            "reference": column(st.sampled_from(["", "~8ZuS", "M8192", "12"])),
        }
    )


@settings(max_examples=150, deadline=None)
@given(tables())
def test_table_to_lines_to_table(table):
    lines = format_obs80(table)
    assert all(len(line) == 80 for line in lines)
    again = read_obs80(lines)
    assert len(again) == len(table)
    assert np.abs(days_between(again["obstime"], table["obstime"])).max() < 1e-9
    for name, tolerance in (("ra", 1e-12), ("dec", 1e-13)):
        assert np.abs(again[name] - table[name]).to_value(u.deg).max() < tolerance
    np.testing.assert_allclose(
        again["observer_gcrs"].value, table["observer_gcrs"].value, atol=6e-4
    )
    np.testing.assert_allclose(
        again["observer_itrf"].value, table["observer_itrf"].value, atol=1e-3
    )
    np.testing.assert_allclose(again["mag"], table["mag"], atol=0.0501)
    for name in ("designation", "band", "station", "kind", "note2", "program", "notes", "catalog"):
        assert again[name].tolist() == table[name].tolist()
    assert again["discovery"].tolist() == table["discovery"].tolist()
    assert_same(again, read_obs80(format_obs80(again)))


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(EVERYTHING),
            st.integers(0, 79),
            st.text(alphabet=st.characters(max_codepoint=300), max_size=3),
            st.integers(0, 3),
        ),
        min_size=1,
        max_size=12,
    )
)
def test_damage_is_accounted_for(injuries):
    lines = [line[:at] + new + line[at + cut :] for line, at, new, cut in injuries]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NeoRangingWarning)
        try:
            table = read_obs80(lines)
        except ObservationFormatError:
            return
    report = table.meta["report"]
    assert report.n_used == len(table)
    for name in ("ra", "dec", "sigma_ra", "sigma_dec"):
        assert np.isfinite(table[name].value).all()
    assert np.isfinite(table["obstime"].mjd).all()
    assert (np.isfinite(table["observer_gcrs"].value[:, 0]) == (table["kind"] == "space")).all()


# Real files ---------------------------------------------------------------------------------------

REAL = {
    "obs80/2005TM173.txt": (6, {}),
    "obs80/2008EK68.txt": (10, {}),
    "obs80/2008TC3.txt": (883, {}),
    "obs80/2014AA.txt": (7, {}),
    "obs80/2023DW.txt": (123, {}),
    "obs80/99942.txt": (7818, {Reason.REPLACED: 1}),
    "tricky/dec_minus_zero.obs80": (12, {}),
    "tricky/dec_plus_zero.obs80": (4, {}),
    "tricky/deleted_Xx.obs80": (0, {Reason.REPLACED: 8}),
    "tricky/discovery_asterisk.obs80": (5, {Reason.REPLACED: 1}),
    "tricky/mag_without_band.obs80": (6, {}),
    "tricky/missing_mag.obs80": (8, {}),
    "tricky/night_crossing_0h_UT.obs80": (8, {}),
    "tricky/note2_types.obs80": (14, {Reason.REPLACED: 2, Reason.RADAR: 1}),
    "tricky/occultation_E.obs80": (8, {}),
    "tricky/packed_designations.obs80": (
        26,
        {Reason.SPACE_WITHOUT_POSITION: 2, Reason.REPLACED: 1},
    ),
    "tricky/ra_near_0h_24h.obs80": (13, {Reason.MALFORMED: 1}),  # one line of 81 columns
    "tricky/radar_Rr_two_line.obs80": (0, {Reason.RADAR: 8}),
    "tricky/radec_decimal_minutes.obs80": (8, {}),
    "tricky/radec_high_precision_no_gap.obs80": (8, {}),
    "tricky/roving_Vv_two_line.obs80": (6, {}),
    "tricky/satellite_Ss_two_line.obs80": (8, {}),
    "tricky/time_6_decimals.obs80": (10, {}),
    "tricky/time_low_precision.obs80": (7, {Reason.REPLACED: 1}),
    "tricky/tracklet_crossing_0h.obs80": (13, {}),
}


@pytest.mark.parametrize("name", REAL)
def test_real_files_are_read_in_full_and_written_back(shared, name):
    n_used, counts = REAL[name]
    table = QTable.read(shared / "data" / name)
    assert len(table) == n_used
    assert table.meta["report"].reasons == counts
    assert table.meta["report"].n_ignored_lines == 0
    if n_used:
        assert_same(table, read_obs80(format_obs80(table)))


def test_real_tracklets_agree_with_their_decimals(shared):
    import json

    truth = json.loads((shared / "cases" / "truth_tracklets.json").read_text())
    n = 0
    for entry in truth.values():
        for tracklet in entry["tracklets"]:
            table = read_obs80(tracklet["lines"])
            times = {time.isot[:19]: k for k, time in enumerate(table["obstime"])}
            for observation in tracklet["obs"]:
                row = table[times[observation["utc"][:19]]]
                assert row["ra"].value == pytest.approx(observation["ra"], abs=1e-9)
                assert row["dec"].value == pytest.approx(observation["dec"], abs=1e-9)
                n += 1
    assert n > 20


def test_a_signed_day_is_no_day():
    signed = GROUND.replace("01.26257 ", "+1.26257 ")
    assert signed != GROUND
    assert read(GROUND, signed).meta["report"].reasons == {Reason.MALFORMED: 1}


def test_decimal_hours_and_degrees():
    line = f"{'     K24Y04R  C2024 12 27.23807 08.944716   -00.26998':77}W68"
    table = read(line)
    assert table["ra"][0].to_value(u.deg) == pytest.approx(15 * 8.944716, abs=1e-12)
    assert table["dec"][0].to_value(u.deg) == pytest.approx(-0.26998, abs=1e-14)
    assert table["ra_resolution"][0].to_value(u.arcsec) == pytest.approx(15 * 3.6e-3)
    beyond = line.replace("08.944716", "28.944716")
    assert read(line, beyond).meta["report"].reasons == {Reason.MALFORMED: 1}
