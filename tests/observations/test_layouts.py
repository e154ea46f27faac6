"""One night in the many layouts in which tables and texts travel: always the same tracklet."""

import collections
import io
import json

import numpy as np
import pandas as pd
import pytest
from astropy import units as u
from astropy.table import QTable, Table
from astropy.time import Time

import neoranging as nr
from neoranging.exceptions import ObservationFormatError

UTC = ["2008-10-06T06:39:50.688", "2008-10-06T07:23:05.280", "2008-10-06T08:37:01.056"]
RA = [349.253250, 349.176417, 349.059917]
DEC = [7.822972, 7.824639, 7.820917]
COLUMNS = {"obstime": UTC, "ra": RA, "dec": DEC, "station": "G96", "designation": "2008TC3"}
FRAME = pd.DataFrame(COLUMNS)
CSV = FRAME.to_csv(index=False)
OBS80 = """\
     K08T03C* C2008 10 06.27767 23 17 00.78 +07 49 22.7          18.9 Vr     G96
     K08T03C  C2008 10 06.30770 23 16 42.34 +07 49 28.7          19.1 Vr     G96
     K08T03C  C2008 10 06.35904 23 16 14.38 +07 49 15.3          18.8 Vr     G96
"""
Named = collections.namedtuple("Named", COLUMNS)


def _read(source, **options):
    tracklets = nr.read_tracklets(source, **options)
    assert [tracklet.designation for tracklet in tracklets] == ["2008 TC3"]
    (tracklet,) = tracklets
    assert tracklet.station.tolist() == ["G96"] * 3
    np.testing.assert_allclose(tracklet.coord.ra.deg, RA, atol=1e-5)
    np.testing.assert_allclose(tracklet.coord.dec.deg, DEC, atol=1e-5)
    off = tracklet.obstime - Time(UTC, scale="utc")
    np.testing.assert_allclose(off.to_value("s"), 0.0, atol=0.5)


def _levels(second):
    return FRAME.set_axis(pd.MultiIndex.from_arrays([FRAME.columns, second]), axis="columns")


IN_MEMORY = {
    "generator of records": lambda: (row for row in FRAME.to_dict("records")),
    "named tuples": lambda: [Named(*row) for row in FRAME.itertuples(index=False)],
    "rows of a Table": lambda: list(Table.from_pandas(FRAME)),
    "rows of a DataFrame": lambda: [row for _, row in FRAME.iterrows()],
    "columns by row": FRAME.to_dict,
    "rows by index": lambda: FRAME.to_dict("index"),
    "split": lambda: FRAME.to_dict("split"),
    "one list of records": lambda: {"observations": FRAME.to_dict("records")},
    "units below names": lambda: _levels(["utc", "deg", "deg", "", ""]),
    "names below a title": lambda: FRAME.set_axis(
        pd.MultiIndex.from_product([["night"], FRAME.columns]), axis="columns"
    ),
    "units behind names": lambda: FRAME.rename(
        columns={"obstime": "Time (UTC)", "ra": "RA [deg]", "dec": "Dec (deg)"}
    ),
    "answer of the API": lambda: [{"OBS80": OBS80}],
    "generator of lines": lambda: iter(OBS80.splitlines(keepends=True)),
    "lines of bytes": lambda: OBS80.encode().splitlines(),
    "array of lines": lambda: np.array(OBS80.splitlines()),
    "series of lines": lambda: pd.Series(OBS80.splitlines()),
    "view of bytes": lambda: memoryview(OBS80.encode()),
}


@pytest.mark.parametrize("layout", IN_MEMORY)
def test_values_in_memory(layout):
    _read(IN_MEMORY[layout]())


IN_TEXT = {
    "bars": CSV.replace(",", "|"),
    "bars at both ends": "".join(f"| {line} |\n" for line in CSV.replace(",", " | ").splitlines()),
    "blanks": CSV.replace(",", " "),
    "aligned": FRAME.to_string(index=False),
    "aligned, with index": FRAME.to_string(),
    "commented header": "# " + CSV.replace(",", "  "),
    "blanks and quotes": CSV.replace(",", " ").replace("2008TC3", '"2008 TC3"'),
    "carriage returns": CSV.replace("\n", "\r"),
    "json lines": FRAME.to_json(orient="records", lines=True),
    "json split": FRAME.to_json(orient="split"),
    "json by index": FRAME.to_json(orient="index"),
    "json of the API, UTF-16": json.dumps([{"OBS80": OBS80}]),
}


@pytest.mark.parametrize("layout", IN_TEXT)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-le", "utf-16-be"])
def test_text_in_any_encoding(layout, encoding):
    _read(IN_TEXT[layout].encode(encoding))


@pytest.mark.parametrize("form", ["fits", "parquet", "ascii.ecsv"])
def test_tables_that_astropy_writes_keep_their_times(form, tmp_path):
    if form == "parquet":
        pytest.importorskip("pyarrow")
    table = QTable(
        {**FRAME.to_dict("list"), "obstime": Time(UTC, scale="utc").tdb, "ra": RA * u.deg}
    )
    table.write(tmp_path / "night", format=form)
    _read(tmp_path / "night")


def test_the_scale_of_nested_times_in_arrow():
    pa = pytest.importorskip("pyarrow")
    tai = Time(UTC, scale="utc").tai.mjd
    days = [{"days": int(mjd), "nanos": round(mjd % 1 * 86_400e9)} for mjd in tai]
    table = pa.table({**FRAME.drop(columns="obstime"), "time": pa.array(days)})
    with pytest.raises(ObservationFormatError, match="time scale"):
        nr.read_tracklets(table)
    _read(table, scale="tai")
    _read(table.replace_schema_metadata({"time.scale": "tai"}))


@pytest.mark.parametrize("frames", ["DataFrame", "LazyFrame"])
def test_frames_of_polars(frames):
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(FRAME.to_dict("list"))
    _read(frame if frames == "DataFrame" else frame.lazy())


def test_one_cell_that_is_no_number_costs_one_row(tmp_path):
    path = tmp_path / "night.csv"
    path.write_text(CSV + "2008-10-06T08:50:00,deg,7.82,G96,2008TC3\n")
    tracklets = nr.read_tracklets(path)
    (report,) = tracklets.report.reading
    assert (report.n_read, report.n_used) == (4, 3)
    assert [(entry.line, entry.detail) for entry in report.set_aside] == [(5, "no right ascension")]


def test_a_column_of_decimal_commas_is_refused():
    text = FRAME.to_csv(index=False, sep=";", decimal=",")
    with pytest.raises(ObservationFormatError, match="decimal point, got '349,25325'"):
        nr.read_tracklets(text.encode())


def test_blanks_within_a_cell_are_refused_without_quotes():
    text = CSV.replace("2008TC3", "2008 TC3").replace(",", " ")
    with pytest.raises(ObservationFormatError, match=r"line 2 holds 6 values.*line 1 names 5"):
        nr.read_tracklets(text.encode())


def test_a_column_of_pairs_is_refused():
    table = Table({**FRAME.to_dict("list"), "ra": np.zeros((3, 2))})
    with pytest.raises(ObservationFormatError, match=r"ra must hold one value a row.*\(3, 2\)"):
        nr.read_tracklets(table)


def test_an_open_file_is_no_list_of_lines():
    _read(io.StringIO(OBS80))
