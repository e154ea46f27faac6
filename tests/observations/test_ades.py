"""ADES: PSV and XML read alike, checked against the IAU's own tools and the MPC's own numbers."""

import importlib.resources
import io
import subprocess
import sys

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
from neoranging.observations.ades.read import read_ades_psv, read_ades_xml
from neoranging.observations.ades.scan import looks_like_psv, looks_like_xml
from neoranging.observations.ades.write import format_ades_psv, write_ades_psv
from neoranging.observations.mpc_codes import PROGRAM_CODES
from neoranging.observations.obs80.read import read_obs80
from neoranging.observations.report import Reason
from neoranging.observations.source import read_text

# Counted by hand: records, used, set aside for which reason.
COUNTS = {
    "2023MQ5.psv": (2, 2, {}),
    "ades_sample.xml": (3, 3, {}),
    "flat_ades.xml": (42, 41, {Reason.REPLACED: 1}),
    "goodades1.xml.psv": (8, 7, {Reason.OFFSET: 1}),
    "goodradec2.xml.psv": (1, 1, {}),
    "goodsatellites.xml.psv": (37, 37, {}),
    "goodutf8.xml.psv": (10, 10, {}),
    "sample_ades.psv": (4, 4, {}),
}
NAMES = "provID|mode|stn|obsTime|ra|dec|rmsRA|rmsDec|astCat|mag|band|remarks"
RECORD = "2024 YR4|CCD|W68|2024-12-27T05:42:49.52Z|134.1707|-0.26998|0.197|0.161|Gaia2|16.54|o|"


def psv(*lines, names=NAMES):
    return "\n".join(["# version=2022", names, *lines]) + "\n"


def one(names, values):
    """Read a single record of the given fields beside those every record needs."""
    base = {"provID": "2024 YR4", "mode": "CCD", "obsTime": "2024-12-27T05:42:49.52Z"}
    base |= {"stn": "W68", "ra": "134.1707", "dec": "-0.26998", "astCat": "Gaia2"}
    fields = base | dict(zip(names.split("|"), values.split("|"), strict=True))
    return read_ades_psv(psv("|".join(fields.values()), names="|".join(fields)))


def read(path):
    return (read_ades_xml if path.suffix == ".xml" else read_ades_psv)(path)


def same(a, b, *, but=()):
    assert set(a.colnames) - set(but) == set(b.colnames) - set(but)
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
def test_every_record_of_the_samples_is_accounted_for(shared, name):
    n_records, n_used, reasons = COUNTS[name]
    table = read(shared / "data" / "ades" / name)
    report = table.meta["report"]
    assert (report.n_read, report.n_used, len(table)) == (n_records, n_used, n_used)
    assert report.reasons == reasons
    assert report.notes == ()


@pytest.mark.parametrize("name", COUNTS)
def test_reading_and_writing_again_changes_no_column(shared, name):
    table = read(shared / "data" / "ades" / name)
    again = read_ades_psv(format_ades_psv(table))
    assert same(table, again, but={"line", "observer_gcrs"}) == []
    # ADES gives positions 14 characters; those in au come back in km.
    np.testing.assert_allclose(
        again["observer_gcrs"].value, table["observer_gcrs"].value, rtol=0, atol=1e-6
    )
    assert again.meta["ades_headers"] == table.meta["ades_headers"]
    assert same(again, read_ades_psv(format_ades_psv(again))) == []


def test_a_record_by_hand(shared):
    table = read_ades_psv(shared / "data" / "ades" / "2023MQ5.psv")
    row = table[0]
    assert row["designation"] == "2023 MQ5"
    assert abs(row["obstime"] - Time("2023-07-06T00:17:43.77", scale="utc")) < 1 * u.us
    assert (row["ra"], row["dec"]) == (273.13141 * u.deg, 40.61177 * u.deg)
    assert (row["sigma_ra"], row["sigma_dec"]) == (0.11 * u.arcsec, 0.12 * u.arcsec)
    assert (row["mag"], row["band"], row["rmsMag"]) == (20.2, "G", 0.14)
    assert (row["station"], row["catalog"], row["note2"]) == ("J95", "Gaia2", "C")
    assert (row["notes"], row["exp"], row["line"]) == ("K", 658, 20)
    assert np.isnan(table["mag"][1])
    assert "permID" not in table.colnames  # empty throughout
    assert table.meta["ades_version"] == "2017"
    assert table.meta["ades_headers"][0][1] == "! mpcCode J95"


def test_remarks_keep_their_letters(shared):
    table = read_ades_psv(shared / "data" / "ades" / "goodutf8.xml.psv")
    assert table["remarks"][7] == "Min svävare är full med ål"


def test_blocks_keep_their_headers(shared):
    table = read_ades_psv(shared / "data" / "ades" / "sample_ades.psv")
    assert table["block"].tolist() == [0, 1, 2, 2]
    codes = [header[1] for header in table.meta["ades_headers"]]
    assert codes == ["! mpcCode 695", "! mpcCode V00", "! mpcCode W84"]
    assert table["sigma_source"].tolist() == ["default", "default", "file", "file"]


def test_the_same_observations_as_80_columns_and_as_ades(shared):
    """The MPC's database holds each observation in both forms; so do our readers."""
    lines = (shared / "data" / "tricky" / "mpc_db_ades_vs_obs80.psv").read_text().splitlines()
    names, *rows = (line.split("|") for line in lines)
    fields = [dict(zip(names, row, strict=True)) for row in rows]
    ades_names = {"stn": "stn", "obstime": "obsTime", "ra": "ra", "dec": "dec", "rmsra": "rmsRA"}
    ades_names |= {"rmsdec": "rmsDec", "rmscorr": "rmsCorr", "mag": "mag", "band": "band"}
    ades_names |= {"mode": "mode", "prog": "prog", "astcat": "astCat"}
    records = [
        "|".join(row[name].replace(" ", "T").replace("+00:00", "Z") for name in ades_names)
        for row in fields
    ]
    head = "provID|" + "|".join(ades_names.values())
    ades = read_ades_psv(psv(*[f"2024 YR4|{record}" for record in records], names=head))
    old = read_obs80("\n".join(row["obs80"] for row in fields) + "\n")
    assert len(ades) == len(old) == 23
    for name in ("designation", "station", "note2", "kind"):
        assert (ades[name] == old[name]).all()
    programs = [PROGRAM_CODES.get(name, " ") for name in ades["program"].tolist()]
    assert [code or " " for code in old["program"].tolist()] == programs
    # Half of the last digits of either form.
    assert (abs(ades["ra"] - old["ra"]) < 0.55 * old["ra_resolution"].max()).all()
    fine = abs(ades["ra"] - old["ra"]) <= 0.6 * old["ra_resolution"] + 5.1e-6 * u.deg
    assert fine.all()
    assert (abs(ades["dec"] - old["dec"]) <= 0.6 * old["dec_resolution"] + 5.1e-6 * u.deg).all()
    assert (abs(ades["obstime"] - old["obstime"]) <= 0.6 * old["time_resolution"]).all()
    assert abs(ades["mag"] - old["mag"]).max() < 0.006
    assert ades["sigma_ra"][0] == 0.197 * u.arcsec
    assert ades["sigma_source"][3] == "default"
    # A default is the same whatever the format.
    default = ades["sigma_source"] == "default"
    assert (abs(ades["sigma_ra"] - old["sigma_ra"])[default] < 0.2 * u.arcsec).all()


def test_spacecraft_positions(shared):
    table = read_ades_xml(shared / "data" / "ades" / "ades_sample.xml")
    assert table["kind"].tolist() == ["ground", "ground", "space"]
    np.testing.assert_array_equal(
        table["observer_gcrs"][2].to_value(u.km), [-4588.997, 4208.695, 3008.595]
    )
    assert table["designation"][2] == "2014 XX"  # packed in the file
    (row,) = one("stn|sys|ctr|pos1|pos2|pos3", "274|ICRF_AU|399|0.01|-0.002|0.0003")
    np.testing.assert_allclose(
        row["observer_gcrs"].to_value(u.au), [0.01, -0.002, 0.0003], rtol=1e-15
    )


def test_roving_positions():
    place = EarthLocation.from_geodetic(237.818 * u.deg, 37.8191 * u.deg, 470 * u.m)
    xyz = u.Quantity(place.geocentric).to_value(u.m)
    (geodetic,) = one("stn|sys|ctr|pos1|pos2|pos3", "247|WGS84|399|237.818|37.8191|470")
    np.testing.assert_allclose(geodetic["observer_itrf"].to_value(u.m), xyz, atol=1e-6)
    axis = np.hypot(xyz[0], xyz[1]) / 1e3
    cylinder = f"247|ITRF|399|237.818|{axis:.6f}|{xyz[2] / 1e3:.6f}"
    (cylindrical,) = one("stn|sys|ctr|pos1|pos2|pos3", cylinder)
    np.testing.assert_allclose(cylindrical["observer_itrf"].to_value(u.m), xyz, atol=2e-3)
    assert geodetic["kind"] == cylindrical["kind"] == "roving"


@pytest.mark.parametrize(
    ("names", "values", "reason"),
    [
        ("deprecated", "X", Reason.REPLACED),
        ("obsCenter|deltaRA|deltaDec", "Jupiter|1|2", Reason.OFFSET),
        ("trx|rcv|delay", "253|253|12.3", Reason.RADAR),
        ("obsTime", "2024-12-27 05:42:49Z", Reason.MALFORMED),
        ("obsTime", "2024-02-30T05:42:49Z", Reason.MALFORMED),
        ("obsTime", "2024-12-27T24:00:00Z", Reason.MALFORMED),
        ("obsTime", "2024-12-27T23:59:60.5Z", Reason.MALFORMED),
        ("obsTime", "2024-12-27T05:42:49+01:00", Reason.MALFORMED),
        ("obsTime", "", Reason.MALFORMED),
        ("ra", "", Reason.MALFORMED),
        ("ra", "nan", Reason.MALFORMED),
        ("ra", "1_0", Reason.MALFORMED),
        ("ra", "360.1", Reason.MALFORMED),
        ("dec", "-90.1", Reason.MALFORMED),
        ("stn", "", Reason.MALFORMED),
        ("provID", "", Reason.MALFORMED),
        ("sys|ctr|pos1|pos2|pos3", "ICRF_KM|10|1|2|3", Reason.UNSUPPORTED_FRAME),
        ("sys|ctr|pos1|pos2|pos3", "IAU|399|1|2|3", Reason.UNSUPPORTED_FRAME),
        ("sys|ctr|pos1|pos2|pos3", "ICRF_KM|399|1||3", Reason.SPACE_WITHOUT_POSITION),
        ("sys|ctr|pos1|pos2|pos3", "ITRF|399|1|2|3", Reason.ROVING_WITHOUT_POSITION),
        ("sys|ctr|pos1|pos2|pos3", "WGS84|399|1|91|3", Reason.ROVING_WITHOUT_POSITION),
        ("stn", "C51", Reason.SPACE_WITHOUT_POSITION),
        ("stn", "247", Reason.ROVING_WITHOUT_POSITION),
    ],
)
def test_reasons(names, values, reason):
    report = one(names, values).meta["report"]
    assert report.reasons == {reason: 1}
    assert report.set_aside[0].line == 3
    assert "CCD" in report.set_aside[0].text


def test_occultations_become_positions():
    star = "raStar|decStar|deltaRA|deltaDec|ra|dec"
    (row,) = one(star, "10.5|60|0.36|-0.72||")
    assert row["ra"].to_value(u.deg) == pytest.approx(10.5 + 0.0001 / 0.5, abs=1e-12)
    assert row["dec"].to_value(u.deg) == pytest.approx(60 - 0.0002, abs=1e-12)
    (polar,) = one("raStar|decStar|dist|pa|ra|dec", "10.5|60|0.36|90||")
    assert polar["ra"].to_value(u.deg) == pytest.approx(10.5 + 0.0001 / 0.5, abs=1e-12)
    assert polar["dec"].to_value(u.deg) == pytest.approx(60, abs=1e-12)


def test_leap_second():
    (row,) = one("obsTime", "2016-12-31T23:59:60.5Z")
    assert abs(row["obstime"] - Time("2016-12-31T23:59:60.5", scale="utc")) < 1 * u.us
    table = one("obsTime", "2016-12-31T12:00:00.25Z")
    assert abs(table["obstime"][0] - Time("2016-12-31T12:00:00.25", scale="utc")) < 1 * u.us
    for stamp in ("2016-12-31T23:59:60.5Z", "2016-12-31T12:00:00.25Z", "2017-01-01T00:00:00Z"):
        assert stamp in format_ades_psv(one("obsTime", stamp))


def test_discovery_unknown_columns_and_own_names():
    (row,) = one("disc|observerMood|kind|remarks", "*|cheerful|blue|a b")
    assert row["discovery"]
    assert row["observerMood"] == "cheerful"
    assert (row["kind"], row["ades_kind"]) == ("ground", "blue")


def test_numbers_that_are_none_are_noted():
    table = one("mag|band|rmsRA|rmsDec|rmsCorr", "bright|G|x|0.1|1e400")
    assert np.isnan(table["mag"][0])
    assert table["sigma_source"][0] == "default"
    assert len(table.meta["report"].notes) == 3


def test_default_sigma_can_be_chosen():
    table = read_ades_psv(psv(RECORD.replace("0.197|0.161", "|")), default_sigma=0.7 * u.arcsec)
    assert table["sigma_ra"][0] == 0.7 * u.arcsec


def test_rows_of_odd_width():
    short, closed, long = RECORD.rstrip("|"), RECORD + "|  |", RECORD + "x|y"
    report = read_ades_psv(psv(RECORD, short, closed, long)).meta["report"]
    assert (report.n_read, report.n_used) == (4, 3)
    assert report.set_aside[0].line == 6
    assert "more fields" in report.set_aside[0].detail


def test_line_ends_and_byte_order_mark_do_not_matter():
    plain = psv(RECORD, RECORD)
    variants = [plain.replace("\n", "\r\n"), "\ufeff" + plain, plain.replace("\n", "\n\n")]
    for variant in variants:
        assert same(read_ades_psv(plain), read_ades_psv(variant), but={"line"}) == []


XML = """<?xml version="1.0" encoding="UTF-8"?>
<ades version="2022"><obsBlock>
<obsContext><observatory><mpcCode>W68</mpcCode></observatory>
<comment><line>a  b</line></comment></obsContext>
<obsData>
<optical><dec>-0.26998</dec><ra>134.1707</ra><provID>2024 YR4</provID><mode>CCD</mode>
<stn>W68</stn><obsTime>2024-12-27T05:42:49.52Z</obsTime><astCat>Gaia2</astCat>
<localUse><ra>1</ra><mag>3</mag></localUse><remarks>x|y &lt; z</remarks></optical>
<radar><permID>1</permID><trx>253</trx><rcv>253</rcv><obsTime>2024-12-27T05:42:49Z</obsTime>
<delay>1.5</delay></radar>
<offset><permID>1</permID><stn>W68</stn><obsTime>2024-12-27T05:42:49Z</obsTime></offset>
</obsData></obsBlock></ades>
"""


def test_structured_xml():
    table = read_ades_xml(XML)
    row = table[0]
    assert (row["ra"], row["dec"]) == (134.1707 * u.deg, -0.26998 * u.deg)
    assert (row["remarks"], row["line"], row["block"]) == ("x|y < z", 6, 0)
    assert np.isnan(row["mag"])
    assert table.meta["ades_headers"] == (
        ("# observatory", "! mpcCode W68", "# comment", "! line a b"),
    )
    assert table.meta["report"].reasons == {Reason.RADAR: 1, Reason.OFFSET: 1}
    assert "x/y < z" in format_ades_psv(table)


@pytest.mark.parametrize("encoding", ["utf-16", "iso-8859-1"])
def test_xml_in_other_encodings(encoding):
    table = read_ades_xml(XML.replace("UTF-8", encoding).replace("x|y", "å").encode(encoding))
    assert table["remarks"][0] == "å < z"


@pytest.mark.parametrize(
    "content",
    [
        '<!DOCTYPE ades [<!ENTITY a "b">]><ades version="2022"><optical/></ades>',
        '<!DOCTYPE ades SYSTEM "file:///etc/passwd"><ades version="2022"/>',
        '<ades version="2022"><optical>&a;</optical></ades>',
        '<ades version="2022"><optical>',
        "<html></html>",
        "plain text\n",
        b"\0\1\2\n",
    ],
)
def test_hostile_and_foreign_xml_is_refused(content):
    with pytest.raises(ObservationFormatError):
        read_ades_xml(content.encode() if isinstance(content, str) else content)


@pytest.mark.parametrize(
    "content",
    [
        "\n",
        "plain text\n",
        "a|b\n1|2\n",
        "# version=2022\n1|2|3\n",
        psv(RECORD, names=NAMES + "|ra"),
    ],
)
def test_foreign_psv_is_refused(content):
    with pytest.raises(ObservationFormatError):
        read_ades_psv(content)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("obsTime", "obsTyme", "lacks obsTime.* is 'obsTyme' misspelt"),
        ("stn", "stnn", "lacks stn.* is 'stnn' misspelt"),
        ("|obsTime", "", r"lacks obsTime: .* of every record\.$"),
    ],
)
def test_a_misspelt_line_of_names_is_told_as_one(old, new, told):
    text = psv(RECORD, names=NAMES.replace(old, new))
    assert looks_like_psv(text.partition("\n")[2].encode())
    with pytest.raises(ObservationFormatError, match=rf"line \d+ names columns but {told}"):
        read_ades_psv(text)
    with pytest.raises(ObservationFormatError, match="names columns"):  # not data of the one above
        read_ades_psv(psv(RECORD) + "# observatory\n" + text.partition("\n")[2])


def test_an_empty_submission_is_an_empty_table():
    table = read_ades_psv("# version=2022\n# observatory\n! mpcCode W68\n" + NAMES + "\n")
    assert len(table) == 0
    assert table.meta["report"].n_read == 0
    assert read_ades_psv(format_ades_psv(table)).meta["ades_version"] == "2022"


def test_unknown_station_warns():
    with pytest.warns(NeoRangingWarning, match="ZZZZ"):
        table = one("stn", "ZZZZ")
    assert len(table) == 1


def test_unified_read_and_write(tmp_path):
    (tmp_path / "night.txt").write_text(psv(RECORD))
    (tmp_path / "night.xml").write_text(XML)
    table = QTable.read(tmp_path / "night.txt")
    assert len(QTable.read(tmp_path / "night.xml")) == 1
    table.write(tmp_path / "again.psv")
    assert same(table, QTable.read(tmp_path / "again.psv")) == []
    stream = io.StringIO()
    write_ades_psv(table, stream)
    assert stream.getvalue() == (tmp_path / "again.psv").read_text()


def test_sniffers():
    assert looks_like_psv(psv(RECORD).encode())
    assert looks_like_psv(psv(RECORD).partition("\n")[2].encode())
    assert looks_like_xml(XML.encode())
    assert looks_like_xml(read_text(XML.replace("UTF-8", "UTF-16").encode("utf-16")).content)
    assert not looks_like_psv(b"     K24Y04R* C2024 12 27.23807308 56 40.968-00 16 11.93\n")
    assert not looks_like_psv(b"a|b|c\n")
    assert not looks_like_xml(b"<html>")


def test_tables_of_other_formats_can_be_written():
    table = QTable(
        {
            "designation": ["99942", "1P", "A904 OA", "C/1996 B2", "A10TlFw", "Jupiter XIII"],
            "obstime": Time(60_000 + np.arange(6) / 7, format="mjd", scale="utc"),
            "ra": np.arange(6) * u.hourangle,
            "dec": np.arange(6) * u.deg,
            "sigma_ra": np.full(6, 0.5) * u.arcsec,
            "sigma_dec": np.full(6, 0.5) * u.arcsec,
            "sigma_source": ["default", "file"] * 3,
            "mag": [20.125, np.nan, 1, 2, 3, 4],
            "band": ["V", "", "", "G", "G", "G"],
            "station": ["W68"] * 6,
            "note2": ["C", "", "n", "B", "P", "e"],
            "catalog": ["V", "", "U", "W", "Gaia2", "V"],
        }
    )
    again = read_ades_psv(format_ades_psv(table))
    assert again["permID"].tolist() == ["99942", "1P", "", "", "", "Jupiter 13"]
    assert again["provID"].tolist() == ["", "", "1904 OA", "C/1996 B2", "", ""]
    assert again["trkSub"].tolist() == ["", "", "", "", "A10TlFw", ""]
    assert again["mode"].tolist() == ["CCD", "PHO", "VID", "CMO", "PHO", "ENC"]
    assert again["catalog"].tolist() == ["Gaia2", "", "Gaia1", "Gaia3", "Gaia2", "Gaia2"]
    assert again["sigma_source"].tolist() == ["default", "file"] * 3
    assert again["band"].tolist() == ["V", "", "", "G", "G", "G"]
    assert abs(again["obstime"] - table["obstime"]).max() <= 0.51 * u.us
    table["designation"] = ["far too long a name"] * 6
    with pytest.raises(ObservationFormatError, match="no ADES identifier"):
        format_ades_psv(table)


def test_80_columns_to_ades_and_back(shared):
    old = read_obs80(shared / "data" / "tricky" / "satellite_Ss_two_line.obs80")
    new = read_ades_psv(format_ades_psv(old))
    assert len(new) == len(old) == 8
    np.testing.assert_allclose(
        new["observer_gcrs"].value, old["observer_gcrs"].value, rtol=0, atol=1e-6
    )
    assert abs(new["ra"] - old["ra"]).max() < 0.51e-9 * u.deg
    roving = read_obs80(shared / "data" / "tricky" / "roving_Vv_two_line.obs80")
    new = read_ades_psv(format_ades_psv(roving))
    assert (abs(new["observer_itrf"] - roving["observer_itrf"]).max()) < 1 * u.mm


def official(tool, *paths):
    pytest.importorskip("ades")
    command = [sys.executable, "-m", f"ades.{tool}", *map(str, paths)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.mark.parametrize("name", ["2023MQ5.psv", "goodradec2.xml.psv", "goodsatellites.xml.psv"])
def test_the_official_converter_takes_what_we_write(shared, tmp_path, name):
    table = read_ades_psv(shared / "data" / "ades" / name)
    write_ades_psv(table, tmp_path / "ours.psv")
    official("psvtoxml", tmp_path / "ours.psv", tmp_path / "theirs.xml")
    xml = read_ades_xml(tmp_path / "theirs.xml")
    assert same(table, xml, but={"line"}) == []
    official("xmltopsv", tmp_path / "theirs.xml", tmp_path / "theirs.psv")
    assert same(table, read_ades_psv(tmp_path / "theirs.psv"), but={"line"}) == []


def test_the_official_schema_accepts_what_we_write(shared, tmp_path):
    pytest.importorskip("ades")
    etree = pytest.importorskip("lxml.etree")
    folder = shared / "data" / "tricky"
    names = ("satellite_Ss_two_line", "roving_Vv_two_line", "dec_minus_zero", "time_6_decimals")
    schema = importlib.resources.files("ades") / "data" / "xsd" / "general.xsd"
    for name in names:
        path = tmp_path / f"{name}.psv"
        read_obs80(folder / f"{name}.obs80").write(path)
        official("psvtoxml", path, path.with_suffix(".xml"))
        validator = etree.XMLSchema(etree.parse(str(schema)))
        document = etree.parse(str(path.with_suffix(".xml")))
        assert validator.validate(document), validator.error_log


FIELDS = "permID|provID|stn|sys|ctr|pos1|pos2|pos3|obsTime|ra|dec|rmsRA|rmsDec|mag|band|deprecated"
DAMAGED = (
    "1||W68||||||2024-12-27T05:42:49.52Z|134.1707|-0.26998|0.1|0.2|16.5|o|",
    "|2024 YR4|C51|ICRF_KM|399|-4588.9|4208.6|3008.5|2016-12-31T23:59:60.5Z|1|-2|||||",
    "|K24Y04R|247|WGS84|399|237.8|37.8|470|1893-12-27T05:42:49Z|1|-2|||||X",
)
BYTES = st.sampled_from([*"0123456789 .+-eE_|ZTXn\tåé", "||", "# ", "! "])


@st.composite
def damaged_records(draw):
    lines = list(draw(st.lists(st.sampled_from(DAMAGED), min_size=1, max_size=6)))
    for _ in range(draw(st.integers(0, 10))):
        index = draw(st.integers(0, len(lines) - 1))
        at, skip = draw(st.integers(0, len(lines[index]))), draw(st.integers(0, 2))
        lines[index] = lines[index][:at] + draw(BYTES) + lines[index][at + skip :]
    return lines


@pytest.mark.filterwarnings("ignore::neoranging.exceptions.NeoRangingWarning")
@settings(max_examples=150, deadline=None)
@given(damaged_records())
def test_damage_raises_nothing_and_loses_nothing(lines):
    table = read_ades_psv(psv(*lines, names=FIELDS))
    report = table.meta["report"]
    expected = sum(
        bool(line.strip())
        and (line.strip()[0] not in "#!" or 2 * line.count("|") >= FIELDS.count("|"))
        for line in lines
    )
    assert report.n_read == expected
    assert np.isfinite(table["ra"]).all()
    assert (table["sigma_ra"] > 0).all()


@pytest.mark.filterwarnings("ignore::neoranging.exceptions.NeoRangingWarning")
@settings(max_examples=100, deadline=None)
@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=200))
def test_any_text_is_read_or_refused(text):
    for reader in (read_ades_psv, read_ades_xml):
        try:
            reader(text.encode())
        except ObservationFormatError:
            continue


@settings(max_examples=100, deadline=None)
@given(
    day=st.integers(-60_000, 90_000),
    fraction=st.floats(0, 1, exclude_max=True),
    ra=st.floats(0, 360, exclude_max=True),
    dec=st.floats(-90, 90),
    sigma=st.floats(0.001, 99),
    mag=st.one_of(st.just(np.nan), st.floats(-5, 35)),
    remarks=st.text(max_size=30),
)
def test_any_observation_survives_to_the_resolution_of_the_format(
    day, fraction, ra, dec, sigma, mag, remarks
):
    table = QTable(
        {
            "designation": ["433"],
            "obstime": Time([day], [fraction], format="mjd", scale="utc"),
            "ra": [ra] * u.deg,
            "dec": [dec] * u.deg,
            "sigma_ra": [sigma] * u.arcsec,
            "sigma_dec": [sigma] * u.arcsec,
            "mag": [mag],
            "station": ["W68"],
            "remarks": [remarks],
        }
    )
    once = read_ades_psv(format_ades_psv(table))
    assert abs((once["ra"][0].value - ra + 180) % 360 - 180) <= 0.51e-9
    assert abs(once["dec"][0].value - dec) <= 0.51e-9
    np.testing.assert_allclose(once["obstime"].mjd, table["obstime"].mjd, rtol=0, atol=2.2e-11)
    assert once["sigma_ra"][0].value == pytest.approx(sigma, rel=1e-2, abs=6e-6)
    assert once["mag"][0] == pytest.approx(mag, abs=1e-4, nan_ok=True)
    assert same(once, read_ades_psv(format_ades_psv(once))) == []


@pytest.mark.parametrize(
    "time",
    [
        "2024-12-27T05:42:49.52",
        "2024-12-27T05:42:+9Z",
        "2024-12-27T05:42:9Z",
        "2024-12-27T 5:42:09Z",
        "2024-12-27T5:42:09Z",
        "2024-12-27T05:42:49ZZZ",
        "2024-12-27T05:42:49.Z",
        "2024-12-27T05:42:49.5.2Z",
        "2024-12-27T05:42:49.52Z Z",
        "2024-12-27T05:42:49.52Z" + " " * 20 + "x",
        "2024-12-27T05:42Z",
        "2024-12-27 05:42:49Z",
        "2024-12-27T05:42:\N{ARABIC-INDIC DIGIT FOUR}9Z",
        "2024-12-27T24:00:00Z",
        "2024-12-27T05:42:60.1Z",
        "2024-12-27T05:60:00Z",
    ],
)
def test_times_of_another_shape_are_set_aside(time):
    report = one("obsTime", time).meta["report"]
    assert report.reasons == {Reason.MALFORMED: 1}
    assert "obsTime" in report.set_aside[0].detail


@pytest.mark.parametrize(
    ("time", "expected", "rounded"),
    [
        ("2024-12-27T05:42:60.000Z", "2024-12-27T05:43:00.000", True),
        ("2024-12-31T23:59:60Z", "2025-01-01T00:00:00.000", True),
        ("2016-12-31T12:59:60.0Z", "2016-12-31T13:00:00.000", True),
        ("2016-12-31T23:58:60Z", "2016-12-31T23:59:00.000", True),
        ("2016-12-31T23:59:60.000Z", "2016-12-31T23:59:60.000", False),  # there was one
        ("2016-12-31T23:59:60.500Z", "2016-12-31T23:59:60.500", False),
        ("2016-12-31T23:59:59.999Z", "2016-12-31T23:59:59.999", False),
    ],
)
def test_second_60_is_the_next_minute_or_a_leap_second(time, expected, rounded):
    table = one("obsTime", time)
    assert table["obstime"].isot.tolist() == [expected]
    notes = [note.text for note in table.meta["report"].notes]
    assert any("next minute" in text for text in notes) == rounded


@pytest.mark.parametrize(
    ("names", "values"),
    [
        ("rmsRA|rmsDec", "1e32|0.1"),
        ("rmsRA|rmsDec", "0.1|1e-300"),
        ("rmsRA|rmsDec", "-0.1|0.1"),
        ("ra", "\N{FULLWIDTH DIGIT ONE}\N{FULLWIDTH DIGIT TWO}"),
        ("dec", "\N{ARABIC-INDIC DIGIT FOUR}"),
        ("ra", "1_0"),
        ("dec", "-95"),
    ],
)
def test_numbers_beyond_all_measure_are_set_aside(names, values):
    assert one(names, values).meta["report"].reasons == {Reason.MALFORMED: 1}


def test_names_are_taken_in_any_case():
    expected = read_ades_psv(psv(RECORD))
    for change in (str.lower, str.upper, str.title):
        assert same(read_ades_psv(psv(RECORD, names=change(NAMES))), expected) == []
    for tag in ("provID", "obsTime", "rmsRA"):
        xml = XML.replace(f"{tag}>", f"{tag.upper()}>")
        assert same(read_ades_xml(xml.encode()), read_ades_xml(XML.encode())) == []


def test_a_first_column_of_running_numbers_is_passed_over():
    numbered = psv(f"0|{RECORD}", f"7|{RECORD}", f"|{RECORD}", names=f"|{NAMES}")
    table = read_ades_psv(numbered)
    assert len(table) == 3
    assert same(table[:1], read_ades_psv(psv(RECORD))[:1]) == []
    with pytest.raises(ObservationFormatError, match="no name and holds 'a'"):
        read_ades_psv(psv(f"a|{RECORD}", names=f"|{NAMES}"))
    with pytest.raises(ObservationFormatError, match="none empty"):
        read_ades_psv(psv(RECORD, names=NAMES.replace("mode", "")))


@pytest.mark.parametrize(
    ("name", "meant"), [("raErr", "rmsRA"), ("sigma_dec", "rmsDec"), ("filter", "band")]
)
def test_a_column_that_looks_like_a_field_is_named(name, meant):
    report = read_ades_psv(psv(f"{RECORD}|0.3", names=f"{NAMES}|{name}")).meta["report"]
    (note,) = [str(note) for note in report.notes]
    assert name in note
    assert meant in note


def test_fields_of_the_standard_and_of_nobody_get_no_remark():
    names = f"{NAMES}|resRA|sigRA|exp|myOwn"
    assert read_ades_psv(psv(f"{RECORD}|1|1|30|x", names=names)).meta["report"].notes == ()


def test_kinds_of_record_as_the_service_of_the_center_names_them():
    names = f"Obstype|{NAMES}|trx"
    table = read_ades_psv(psv(f"optical|{RECORD}|", f"radar|{RECORD}|251", names=names))
    assert table.meta["report"].reasons == {Reason.RADAR: 1}
    assert len(table) == 1


@pytest.mark.parametrize("mark", ["#", "! ", "#  "])
def test_a_record_behind_a_mark_is_set_aside(mark):
    table = read_ades_psv(psv(RECORD, mark + RECORD[1:], "# a comment", RECORD))
    report = table.meta["report"]
    assert (report.n_read, report.n_used) == (3, 2)
    assert (report.set_aside[0].line, report.set_aside[0].reason) == (4, Reason.MALFORMED)
    assert "as a header does" in report.set_aside[0].detail
    assert "block" in table.colnames  # the comment is a header still
    commented = read_ades_psv(psv(RECORD, f"# {NAMES}", RECORD))
    assert commented.meta["report"].n_read == 2


def test_elements_of_no_kind_are_set_aside():
    xml = '<ades version="2022"><obsBlock><obsData><optacle><stn>W68</stn></optacle></obsData>'
    report = read_ades_xml(f"{xml}</obsBlock></ades>".encode()).meta["report"]
    assert [str(entry)[:60] for entry in report.set_aside] == [
        "line 1: cannot be parsed (the element is none of occultation,"[:60]
    ]


@pytest.mark.parametrize("encoding", ["foo-bar", "hex", "rot13", "shift_jis", "utf-7", "big5"])
def test_encodings_that_expat_cannot_read_are_named(encoding):
    xml = f'<?xml version="1.0" encoding="{encoding}"?><ades version="2022"></ades>'
    with pytest.raises(ObservationFormatError, match="encoding"):
        read_ades_xml(xml.encode())


def test_new_columns_in_each_block_cost_no_more_than_the_blocks():
    names = "provID|stn|obsTime|ra|dec"
    record = "2024 YR4|W68|2024-12-27T05:42:49Z|1|2"
    blocks = [f"{names}|own{k % 400}\n{record}|{k}" for k in range(1200)]
    table = read_ades_psv("\n".join(blocks))
    assert len(table) == 1200
    assert table["own399"][[399, 400, 799]].tolist() == ["399", "", "799"]
    assert table["own0"][-1] == ""
    many = [f"{names}|own{k}\n{record}|{k}" for k in range(600)]
    with pytest.raises(ObservationFormatError, match="more than the 500"):
        read_ades_psv("\n".join(many))
