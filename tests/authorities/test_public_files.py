"""Files of public bug reports: every observer's file is recognised and read right.

They lie in the folder of outside data. Where a file holds the eight positions of 2008 TC3 a right
reading gives one tracklet, and Gauss 0.00311 au.
"""

from __future__ import annotations

import io

import pytest
from astropy import units as u
from astropy.table import QTable
from click.testing import CliRunner

import neoranging as nr
from neoranging.cli import main
from neoranging.exceptions import ObservationFormatError
from neoranging.observations import observatories

IMPACTOR = (
    "02_text_behind_column_80.txt",
    "05a_utf16.txt",
    "05b_utf16.psv",
    "07a_api_saved_as_psv.psv",
    "07b_lower_case.psv",
    "08_errors_in_lower_case.psv",
    "11_api_obs80.json",
    "16_second_60.psv",
    "25_lines.txt",
    "28_notes_in_column_14.txt",
)


@pytest.fixture(scope="module")
def folder(shared):
    if not (shared / "cases2").is_dir():
        pytest.skip("the files of public bug reports are not here")
    return shared / "cases2"


@pytest.mark.parametrize("name", IMPACTOR)
def test_eight_positions_of_the_impactor(folder, name):
    tracklets = nr.read_tracklets(folder / name)
    estimate = tracklets.estimate("gauss")
    assert (len(tracklets), tracklets.report.n_used) == (1, 8)
    assert estimate.range[0].to_value(u.au) == pytest.approx(0.00311, abs=5e-6)
    assert [status.name for status in estimate.status] == ["OK"]
    assert len(QTable.read(folder / name)) == 8


def test_records_of_160_columns(folder):
    table = QTable.read(folder / "01_all_160_columns.txt")
    assert table["kind"].tolist() == ["space", "space"]
    assert table["observer_gcrs"][0].to_value(u.km).tolist() == [6685.9881, 1699.4342, 381.8352]


def test_text_behind_column_80_is_told(folder):
    (report,) = nr.read_tracklets(folder / "02_text_behind_column_80.txt").report.reading
    assert [str(note) for note in report.notes] == ["text beyond column 80 was not read on 8 lines"]


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("04a_quoted_mail.txt", "marks '>' of quoted mail"),
        ("04b_one_blank_too_many.txt", "Remove 1 blank"),
        ("04c_tab.txt", "Put 4 blanks back"),
    ],
)
def test_shifted_columns(folder, name, advice):
    with pytest.raises(ObservationFormatError, match=advice):
        nr.read_tracklets(folder / name)
    result = CliRunner().invoke(main, ["estimate", str(folder / name)])
    assert result.exit_code == 3
    assert advice in result.output
    assert "line 1" in result.output


def test_columns_of_the_explorer(folder):
    table = QTable.read(folder / "07c_explorer_columns.psv")
    assert table["station"].tolist() == ["Q63", "Q63"]
    assert table["sigma_ra"].to_value(u.arcsec).tolist() == [0.080, 0.098]
    assert table["designation"].tolist() == ["259P", "259P"]


def test_stated_errors_are_taken(folder):
    table = QTable.read(folder / "08_errors_in_lower_case.psv")
    assert set(table["sigma_ra"].to_value(u.arcsec)) == {0.30}
    assert set(table["sigma_source"]) == {"file"}


def test_second_60(folder):
    table = QTable.read(folder / "16_second_60.psv")
    assert table["obstime"][0].isot == "2008-10-06T06:40:00.000"
    assert any("next minute" in note.text for note in table.meta["report"].notes)


def test_programme_codes_survive(folder):
    path = folder / "19_programme_codes.obs80"
    ades, again = io.StringIO(), io.StringIO()
    QTable.read(path).write(ades, format="ades.psv")
    QTable.read(ades.getvalue().splitlines()).write(again, format="mpc.obs80")
    assert again.getvalue() == path.read_text()


@pytest.mark.parametrize("name", ["22a_one_code.json", "22b_list.json"])
def test_lists_of_observatories(folder, name, monkeypatch):
    monkeypatch.setattr(observatories, "_STATE", {})
    assert observatories.load_obscodes(folder / name) == 1
    place = observatories.observatory("X05").location.geodetic
    assert place.lat.to_value(u.deg) == pytest.approx(-30.24, abs=0.01)


def test_lines_bytes_and_one_line(folder):
    path = folder / "25_lines.txt"
    text = path.read_text()
    for source in (text.splitlines(), path.read_bytes(), text):
        assert nr.read_tracklets(source).report.n_used == 8
    assert nr.read_tracklets(text.splitlines()[0]).report.n_read == 1


def test_deleted_records_two_lines_and_radar(shared):
    """Odd records never cost the file."""
    counts = {"deleted_Xx": 0, "radar_Rr_two_line": 0, "satellite_Ss_two_line": 1}
    counts["roving_Vv_two_line"] = 1
    for name, some in counts.items():
        table = QTable.read(shared / "data" / "tricky" / f"{name}.obs80", format="mpc.obs80")
        assert (len(table) > 0) >= bool(some)
        assert table.meta["report"].n_read > 0
