"""Files in pieces: every record in one of them, every tracklet whole."""

from __future__ import annotations

import gzip

import numpy as np
import pandas as pd
import pytest

import neoranging as nr
from neoranging.exceptions import ObservationFormatError
from neoranging.observations.pieces import pieces_of
from neoranging.samples import sample

feather = pytest.importorskip("pyarrow.feather")


@pytest.fixture(scope="module")
def whole():
    return nr.read_tracklets([sample("2024YR4"), sample("impactors")])


@pytest.fixture(scope="module")
def frame(whole):
    table = whole.to_table()
    return pd.DataFrame(
        {
            "obstime": table["obstime"].isot,
            "ra": table["ra"].value,
            "dec": table["dec"].value,
            "station": np.asarray(table["station"]),
            "tracklet": [f"t{k}" for k in table["tracklet_number"]],
            "mag": np.asarray(table["mag"]),
        }
    )


def xml_of(whole):
    """The observations in two blocks of ADES XML."""
    rows = whole.to_table()
    records = [
        f"<optical><provID>{row['designation']}</provID><mode>CCD</mode>"
        f"<stn>{row['station']}</stn><obsTime>{row['obstime'].isot}Z</obsTime>"
        f"<ra>{row['ra'].value:.6f}</ra>\n<dec>{row['dec'].value:.6f}</dec>"
        "<astCat>Gaia2</astCat></optical>\n"
        for row in rows
    ]
    context = "<obsContext><observatory><mpcCode>G96</mpcCode></observatory></obsContext>"
    half = len(records) // 2
    blocks = "".join(
        f"<obsBlock>{context}\n<obsData>\n{''.join(part)}</obsData>\n</obsBlock>\n"
        for part in (records[:half], records[half:])
    )
    return f'<?xml version="1.0"?>\n<ades version="2017">\n{blocks}</ades>\n'


@pytest.fixture(scope="module")
def files(whole, frame, tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    table = whole.to_table()
    for name, form in {"a.obs80": "mpc.obs80", "a.psv": "ades.psv", "a.rwo": "orbfit.rwo"}.items():
        table.write(folder / name, format=form)
    table[:34].write(folder / "first.psv", format="ades.psv")
    psv = (folder / "first.psv").read_text()
    moved = "# version=2017\nstn|obsTime|provID|ra|dec|astCat\n" + "".join(
        f"{r['station']}|{r['obstime'].isot}Z|{r['designation']}|{r['ra'].value}|{r['dec'].value}|"
        "Gaia2\n"
        for r in table[34:]
    )
    (folder / "blocks.psv").write_text(psv + moved)
    (folder / "a.xml").write_text(xml_of(whole))
    frame.to_csv(folder / "a.csv", index=False)
    (folder / "a.obs80.gz").write_bytes(gzip.compress((folder / "a.obs80").read_bytes()))
    frame.drop(columns="mag").to_csv(folder / "blanks.txt", index=False, sep=" ")
    text = "# made by nobody\n" + frame.to_csv(index=False, lineterminator="\r\n")
    (folder / "commented.csv").write_bytes(b"\xef\xbb\xbf" + text.encode())
    frame.to_parquet(folder / "a.parquet", row_group_size=7)
    frame.to_feather(folder / "a.feather")
    table.write(folder / "astropy.parquet")
    return folder


NAMES = [
    *("a.obs80", "a.obs80.gz", "a.psv", "blocks.psv", "a.xml", "a.rwo"),
    *("a.csv", "blanks.txt", "commented.csv", "a.parquet", "astropy.parquet"),
]


@pytest.mark.parametrize("size", [3, 8, 10_000])
@pytest.mark.parametrize("name", NAMES)
def test_pieces_hold_every_record_once_and_tracklets_whole(files, name, size):
    whole = nr.read_tracklets(files / name)
    pieces = list(pieces_of([files / name], size=size))
    assert len(pieces) > 1 if size < 10_000 else len(pieces) == 1
    assert [piece.number for piece in pieces] == list(range(len(pieces)))
    parts = [nr.read_tracklets(piece.open(), format=piece.form) for piece in pieces]
    accounts = [part.report.reading[0] for part in parts]
    assert sum(account.n_read for account in accounts) == whole.report.reading[0].n_read
    assert sum(account.n_used for account in accounts) == whole.report.reading[0].n_used
    assert {account.source for account in accounts} == {piece.source for piece in pieces}
    joined = nr.TrackletSet.from_tracklets(one for part in parts for one in part)
    order = np.argsort(joined.obstime[joined._offsets[:-1]].jd, kind="stable")
    ends = joined.obstime[joined._offsets[:-1]].jd[order], joined.counts[order]
    assert np.array_equal(ends[0], whole.obstime[whole._offsets[:-1]].jd)
    assert np.array_equal(ends[1], whole.counts)


@pytest.mark.parametrize("name", ["a.obs80", "blocks.psv", "a.xml", "commented.csv", "a.rwo"])
def test_lines_are_those_of_the_file(files, tmp_path, name):
    """A record without a readable place is named by the line at which it stands in the file."""
    text = (files / name).read_bytes().decode("utf-8-sig")
    place = max(text.rfind("2024 12"), text.rfind("2024-12"))
    text = f"{text[:place]}x{text[place + 1 :]}"
    path = tmp_path / name
    path.write_bytes(text.encode())
    told = [
        entry.line + piece.shift
        for piece in pieces_of([path], size=3)
        for entry in nr.read_tracklets(piece.open(), format=piece.form).report.reading[0].set_aside
    ]
    whole = [entry.line for entry in nr.read_tracklets(path).report.reading[0].set_aside]
    assert len(told) == 1
    assert told == whole


def test_shares_of_several_files_rise_to_one(files):
    paths = [files / "a.csv", files / "a.parquet", files / "a.obs80"]
    pieces = list(pieces_of(paths, size=3))
    shares = [piece.share for piece in pieces]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert [piece.number for piece in pieces] == list(range(len(pieces)))
    assert "a.parquet, from line" in str(pieces[12])


def test_files_of_other_formats_are_one_piece(files):
    (piece,) = pieces_of([files / "a.feather"], size=3)
    assert len(nr.read_tracklets(piece.open())) == len(nr.read_tracklets(files / "a.feather"))


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_file_without_a_place_to_cut_is_refused(frame, tmp_path, form):
    path = tmp_path / f"one.{form}"
    one = pd.concat([frame.assign(tracklet="t")] * 20)
    one.to_csv(path, index=False) if form == "csv" else one.to_parquet(path)
    with pytest.raises(ObservationFormatError, match="Sort it by tracklet"):
        list(pieces_of([path], size=5))


def test_rows_of_one_object_without_ids_are_not_divided(frame, tmp_path):
    """A row without a tracklet id may belong to that of its object."""
    path = tmp_path / "mixed.csv"
    rows = frame.iloc[:8].assign(
        designation="mine", tracklet=["a", "a", "", "a", "b", "", "b", "b"]
    )
    pd.concat([rows, frame.iloc[20:30].assign(designation="other")]).to_csv(path, index=False)
    first, *_ = pieces_of([path], size=1)
    assert first.content.count(b"mine") in (4, 8)
    assert b"a,,mine" not in first.content


def test_columns_of_no_use_are_left_in_the_file(frame, tmp_path):
    path = tmp_path / "wide.parquet"
    wide = frame.assign(**{f"flag{k}": 0 for k in range(50)}, raErr=0.1)
    wide.to_parquet(path)
    pieces = list(pieces_of([path], size=10))
    with pieces[0].open() as file:
        assert not any("flag" in name for name in feather.read_table(file).column_names)
    notes = nr.read_tracklets(pieces[0].open(), format=pieces[0].form).report.reading[0].notes
    whole = nr.read_tracklets(path).report.reading[0].notes
    assert [note.text for note in notes] == [note.text for note in whole]
    assert any("raErr" in note.text for note in notes)
