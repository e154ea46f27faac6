"""One night in every layout: the same positions mean the same, whatever holds them."""

import gzip
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


@pytest.fixture(scope="module")
def night():
    """2008 TC3 from G96, of the sample of the package, with its sigmas as the reader gives them."""
    table = QTable.read(nr.sample("impactors"))
    return table[(table["station"] == "G96") & (table["designation"] == "2008 TC3")]


@pytest.fixture(scope="module")
def frame(night):
    return pd.DataFrame(
        {
            "obstime": [f"{text}Z" for text in night["obstime"].isot],
            "ra": night["ra"].value,
            "dec": night["dec"].value,
            "station": "G96",
            "designation": "2008 TC3",
        }
    )


def as_bytes(write):
    buffer = io.BytesIO()
    write(buffer)
    return buffer.getvalue()


def mjd(frame, scale):
    return getattr(Time([t.rstrip("Z") for t in frame["obstime"]], scale="utc"), scale).mjd


def ades(frame):
    return frame.rename(
        columns={"obstime": "obsTime", "station": "stn", "designation": "provID"}
    ).assign(mode="CCD", astCat="UNK", trkSub="tc3")


def rubin(frame):
    return pd.DataFrame(
        {
            "diaSourceId": 170_000_000_000_000_000 + np.arange(len(frame)),
            "ssObjectId": 9_007_199_254_740_993,  # no float holds it
            "midpointMjdTai": mjd(frame, "tai"),
            "ra": frame["ra"],
            "dec": frame["dec"],
            "band": "r",
            "obscode": "G96",
        }
    )


def plain(frame, **columns):
    return frame.drop(columns="obstime").assign(**columns)


def qtable(frame, units=True):
    table = QTable.from_pandas(frame.drop(columns="obstime"))
    table["obstime"] = Time([t.rstrip("Z") for t in frame["obstime"]], scale="utc")
    if units:
        table["ra"].unit = table["dec"].unit = "deg"
        table["ra"], table["dec"] = table["ra"] << u.deg, table["dec"] << u.deg
    return table


def numeric(frame):
    """Columns that any binary format holds."""
    return Table.from_pandas(plain(frame, mjd_utc=mjd(frame, "utc")))


def parquet(frame):
    pytest.importorskip("pyarrow")
    return as_bytes(lambda file: frame.to_parquet(file, index=False))


def arrow(frame):
    pa = pytest.importorskip("pyarrow")
    return pa.Table.from_pandas(frame)


def adam_core(frame):
    pa = pytest.importorskip("pyarrow")
    days = mjd(frame, "utc")
    time = pa.StructArray.from_arrays(
        [
            pa.array(np.floor(days).astype(np.int64)),
            pa.array(np.round((days % 1.0) * 86_400e9).astype(np.int64)),
        ],
        names=["days", "nanos"],
    )
    table = pa.table(
        {
            "id": [str(i) for i in range(len(frame))],
            "time": time,
            "ra": frame["ra"],
            "dec": frame["dec"],
            "observatory_code": frame["station"],
            "object_id": frame["designation"],
        }
    )
    from pyarrow import parquet as pq

    return as_bytes(lambda file: pq.write_table(table, file))


def obs80(frame):
    """Lines of 80 columns, as the sample of the package has them."""
    del frame  # the sample itself is the source of both
    lines = nr.sample("impactors").read_text().splitlines()
    return [line for line in lines if line.startswith("     K08T03C") and line.endswith("G96")]


class Foreign:
    """Frame of another maker that hands its columns out by Arrow's protocol."""

    def __init__(self, frame):
        self._table = arrow(frame)

    def __arrow_c_stream__(self, schema=None):
        return self._table.__arrow_c_stream__(schema)


class Polars:
    """Frame with columns by name and a way to pandas."""

    def __init__(self, frame):
        self._frame = frame
        self.columns = list(frame.columns)

    def to_pandas(self):
        return self._frame

    def to_numpy(self):
        return self._frame.to_numpy()


LAYOUTS = {
    "csv": lambda f: f.to_csv(index=False).encode(),
    "csv with an index": lambda f: f.to_csv().encode(),
    "csv as text": lambda f: f.to_csv(index=False),
    "csv as lines": lambda f: f.to_csv(index=False).splitlines(),
    "csv, open": lambda f: io.StringIO(f.to_csv(index=False)),
    "csv, open as bytes": lambda f: io.BytesIO(f.to_csv(index=False).encode()),
    "csv, gzip": lambda f: gzip.compress(f.to_csv(index=False).encode()),
    "csv, UTF-16": lambda f: f.to_csv(index=False).encode("utf-16"),
    "csv, byte-order mark": lambda f: f.to_csv(index=False).encode("utf-8-sig"),
    "csv, semicolons": lambda f: f.to_csv(index=False, sep=";").encode(),
    "tsv": lambda f: f.to_csv(index=False, sep="\t").encode(),
    "csv behind comments": lambda f: (
        b"# tonight, clear\n# two, three\n" + f.to_csv(index=False).encode()
    ),
    "csv, header a comment": lambda f: b"#" + f.to_csv(index=False).encode(),
    "csv, CRLF": lambda f: f.to_csv(index=False, lineterminator="\r\n").encode(),
    "csv, ADES": lambda f: ades(f).to_csv(index=False).encode(),
    "csv, API": lambda f: ades(f).rename(columns=str.lower).to_csv().encode(),
    "csv, Rubin": lambda f: rubin(f).to_csv(index=False).encode(),
    "csv, mjd_tdb": lambda f: plain(f, mjd_tdb=mjd(f, "tdb")).to_csv(index=False).encode(),
    "csv, epoch_tt": lambda f: plain(f, epoch_tt=mjd(f, "tt")).to_csv(index=False).encode(),
    "csv, jd_utc": lambda f: (
        plain(f, jd_utc=mjd(f, "utc") + 2_400_000.5).to_csv(index=False).encode()
    ),
    "csv, days of the MPC": lambda f: (
        plain(
            f,
            obstime=[
                f"{t[:4]} {t[5:7]} {int(t[8:10]) + d % 1.0:011.8f}"
                for t, d in zip(f["obstime"], mjd(f, "utc"), strict=True)
            ],
        )
        .to_csv(index=False)
        .encode()
    ),
    "psv, lower case": lambda f: ades(f).rename(columns=str.lower).to_csv(sep="|").encode(),
    "ecsv": lambda f: as_text(qtable(f), "ascii.ecsv"),
    "parquet": parquet,
    "parquet, Rubin": lambda f: parquet(rubin(f)),
    "fits": lambda f: as_bytes(lambda file: numeric(f).write(file, format="fits")),
    "votable": lambda f: as_bytes(lambda file: numeric(f).write(file, format="votable")),
    "json, records": lambda f: f.to_json(orient="records").encode(),
    "json, columns": lambda f: f.to_json().encode(),
    "json, lists": lambda f: json.dumps(f.to_dict(orient="list")).encode(),
    "json, API of text": lambda f: json.dumps(
        [{"OBS80": "".join(f"{line}\n" for line in obs80(f))}]
    ).encode(),
    "json, API": lambda f: json.dumps(
        [{"ADES_DF": ades(f).rename(columns=str.lower).to_dict(orient="records")}]
    ).encode(),
    "DataFrame": lambda f: f,
    "DataFrame, datetimes": lambda f: f.assign(obstime=pd.to_datetime(f["obstime"])),
    "DataFrame, zone": lambda f: f.assign(
        obstime=pd.to_datetime(f["obstime"]).dt.tz_convert("Asia/Tokyo")
    ),
    "DataFrame, index": lambda f: f.assign(obstime=pd.to_datetime(f["obstime"])).set_index(
        "obstime"
    ),
    "DataFrame, text": lambda f: f.astype(str),
    "DataFrame, nullable": lambda f: f.convert_dtypes(),
    "DataFrame, category": lambda f: f.assign(station=f["station"].astype("category")),
    "DataFrame, ADES": ades,
    "DataFrame, Rubin": rubin,
    "QTable": qtable,
    "QTable without units": lambda f: qtable(f, units=False),
    "Table without units": Table.from_pandas,
    "Table in radians": lambda f: QTable(
        {
            **{n: qtable(f)[n] for n in ("obstime", "station", "designation")},
            "ra": np.radians(f["ra"].to_numpy()) * u.rad,
            "dec": f["dec"].to_numpy() * 60.0 * u.arcmin,
        }
    ),
    "Table of TDB": lambda f: QTable(
        {
            **{n: qtable(f)[n] for n in ("ra", "dec", "station", "designation")},
            "obstime": qtable(f)["obstime"].tdb,
        }
    ),
    "structured array": lambda f: numeric(f).as_array(),
    "record array": lambda f: plain(f, mjd_utc=mjd(f, "utc")).to_records(index=False),
    "dict of arrays": lambda f: {name: f[name].to_numpy() for name in f},
    "dict of lists": lambda f: f.to_dict(orient="list"),
    "dict with one station": lambda f: {**f.to_dict(orient="list"), "station": "G96"},
    "dict of series": lambda f: {name: f[name] for name in f},
    "list of dicts": lambda f: f.to_dict(orient="records"),
    "Arrow stream": Foreign,
    "polars": Polars,
    "arrow": arrow,
    "arrow, Rubin": lambda f: arrow(rubin(f)),
}


def as_text(table, form):
    text = io.StringIO()
    table.write(text, format=form)
    return text.getvalue().encode()


def check(tracklets, frame):
    assert list(tracklets.counts) == [8]
    tracklet = tracklets[0]
    np.testing.assert_allclose(tracklet.obstime.utc.mjd, mjd(frame, "utc"), rtol=0, atol=2e-8)
    np.testing.assert_allclose(tracklet.coord.ra.deg, frame["ra"], rtol=0, atol=1e-9)
    np.testing.assert_allclose(tracklet.coord.dec.deg, frame["dec"], rtol=0, atol=1e-9)
    assert set(tracklet.station) == {"G96"}
    estimate = tracklet.estimate("gauss")
    assert estimate.status is nr.RangeStatus.OK
    assert estimate.range.to_value(u.au) == pytest.approx(0.00311, abs=1e-5)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_means_the_same(layout, frame, night):
    tracklets = nr.read_tracklets(LAYOUTS[layout](frame))
    check(tracklets, frame)
    np.testing.assert_allclose(tracklets[0].sigma.to_value(u.arcsec), 0.5)  # default of G96
    if "Rubin" in layout:
        assert tracklets[0].designation == "9007199254740993"
    else:
        assert tracklets[0].designation == "2008 TC3"


@pytest.mark.parametrize("form", ["mpc.obs80", "ades.psv", "orbfit.rwo"])
def test_of_observers_means_the_same(form, frame, night, tmp_path):
    path = tmp_path / "night"
    night.write(path, format=form)
    check(nr.read_tracklets(path), frame)
    for content in (path.read_bytes(), path.read_text(), path.read_text().splitlines()):
        check(nr.read_tracklets(content), frame)


def test_with_a_scale_of_the_user(frame):
    for scale in ("utc", "tai", "tt", "tdb"):
        for name, zero in (
            ("mjd", 0.0),
            ("jd", 2_400_000.5),
            ("time", 0.0),
            ("epoch", 2_400_000.5),
        ):
            table = plain(frame, **{name: mjd(frame, scale) + zero})
            with pytest.raises(ObservationFormatError, match=rf"column {name} .*scale=\"utc\""):
                nr.read_tracklets(table)
            check(nr.read_tracklets(table, scale=scale), frame)


def test_adam_core_needs_the_scale_that_it_does_not_store(frame):
    content = adam_core(frame)
    with pytest.raises(ObservationFormatError, match=r"scale"):
        nr.read_tracklets(content)
    check(nr.read_tracklets(content, scale="utc"), frame)


def test_starts_of_exposures_are_moved_to_the_middle_or_refused(frame):
    start = mjd(frame, "utc") - 15.0 / 86_400.0
    for name in ("exposure_start", "MJD-OBS", "expstart"):
        table = plain(frame, **{name: start})
        with pytest.raises(ObservationFormatError, match=f"{name} gives the start"):
            nr.read_tracklets(table)
        tracklets = nr.read_tracklets(table.assign(exptime=30.0))
        check(tracklets, frame)
        assert "moved by half the exposure" in str(tracklets.report)
    ztf = plain(frame, jd=start + 2_400_000.5, fid=1, ssnamenr="2008 TC3")
    with pytest.raises(ObservationFormatError, match="jd gives the start"):
        nr.read_tracklets(ztf)


def test_the_station_may_be_given(frame):
    table = frame.drop(columns="station")
    with pytest.raises(ObservationFormatError, match=r"station; .*station=\"G96\""):
        nr.read_tracklets(table)
    check(nr.read_tracklets(table, station="G96"), frame)
    with pytest.raises(ObservationFormatError, match=r"station=\"X05\""):
        nr.read_tracklets(rubin(frame).drop(columns="obscode"))


def test_astroquery(frame):
    table = QTable(
        {
            "number": np.ma.MaskedArray(np.zeros(8, dtype=int), mask=True),
            "desig": ["2008 TC3"] * 8,
            "discovery": ["*"] + [""] * 7,
            "note1": [""] * 8,
            "note2": ["C"] * 8,
            "epoch": (mjd(frame, "utc") + 2_400_000.5) * u.d,
            "RA": frame["ra"].to_numpy() * u.deg,
            "DEC": frame["dec"].to_numpy() * u.deg,
            "mag": np.full(8, 18.9) * u.mag,
            "band": ["V"] * 8,
            "observatory": ["G96"] * 8,
        }
    )
    tracklets = nr.read_tracklets(table)
    check(tracklets, frame)
    assert tracklets[0].designation == "2008 TC3"
    np.testing.assert_allclose(tracklets[0].mag, 18.9)
