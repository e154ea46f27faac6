"""Column 14 holds codes of programmes and notes, and they survive the way through every format."""

from __future__ import annotations

import io

import numpy as np
import pytest
from astropy.table import QTable

import neoranging as nr
from neoranging.exceptions import NeoRangingWarning
from neoranging.observations.mpc_codes import divide_note1, join_note1
from neoranging.observations.obs80.write import format_obs80

STACKED = "     K24Y04R KC2024 12 27.23807308 56 40.968-00 16 11.93         16.54oV     G96"


@pytest.mark.parametrize(
    ("code", "station", "program", "notes"),
    [
        ("K", "G96", "", "K"),  # a station with programmes, of which none has a letter
        ("K", "Z80", "", "K"),
        ("2", "G96", "2", ""),
        ("2", "Z80", "2", ""),
        ("!", "W88", "!", ""),
        ("v", "Q62", "v", ""),
        ("K", "568", "K", ""),
        ("B", "249", "B", ""),
        ("", "G96", "", ""),
    ],
)
def test_programmes_and_notes_are_told_apart(code, station, program, notes):
    divided = divide_note1(np.array([code]), np.array([station]))
    assert [column.tolist() for column in divided] == [[program], [notes]]
    assert join_note1([program], [notes], [station]) == [code or " "]


@pytest.mark.parametrize(
    ("program", "notes", "station", "held", "loss"),
    [
        ("02", "", "703", "2", ""),
        ("0A", "", "W88", "!", ""),
        ("1R", "", "Q62", "v", ""),
        ("1R", "", "G96", " ", "programme '1R' of G96 \\(1\\)"),
        ("zz", "", "G96", " ", "programme 'zz'"),
        ("2", "K", "G96", "2", "notes 'K' beside a programme"),
        ("", "Kt", "G96", "K", "notes 't' after the first"),
        ("", "K", "H06", " ", "read as a programme"),
        ("", "3", "G96", " ", "read as a programme"),
    ],
)
def test_what_the_column_cannot_hold_is_told(program, notes, station, held, loss):
    if not loss:
        assert join_note1([program], [notes], [station]) == [held]
        return
    with pytest.warns(NeoRangingWarning, match=loss):
        assert join_note1([program], [notes], [station]) == [held]


def through(lines, *formats):
    table = QTable.read(lines)
    for form in formats:
        stream = io.StringIO()
        table.write(stream, format=form)
        table = QTable.read(stream.getvalue().splitlines(), format=form)
    return format_obs80(table)


def test_the_same_lines_again():
    """Programmes, notes, and the digits that were written."""
    lines = [
        *nr.sample("2024YR4").read_text().splitlines(),
        STACKED,
        STACKED.replace("G96", "H06"),
        STACKED.replace("K24Y04R K", "K24Y04R !").replace("G96", "W88"),
        "     K24Y04R vB2024 12 27.70500 08 45 59.51 +01 49 28.0          17.4 VZ     Q62",
        "     K24Y04R 0C2024 12 28.5236  08 34 21.0  +04 04 36            17.33GV     T12",
        f"{'00433         P1917 09 15.033   00 47.0     -07 40':77}008",
    ]
    assert through(lines, "ades.psv") == lines
    assert through(lines, "ades.psv", "ades.psv") == lines
    rwo = through(lines, "orbfit.rwo")
    assert [line[13] for line in rwo] == [line[13] for line in lines]


def test_precision_stands_in_the_fields_of_the_standard():
    from neoranging.observations.ades.write import format_ades_psv

    text = format_ades_psv(QTable.read([STACKED.replace("08 56 40.968", "08 56 40.9  ")]))
    names, values = (line.split("|") for line in text.splitlines()[1:3])
    row = {name.strip(): value.strip() for name, value in zip(names, values, strict=True)}
    assert (row["precTime"], row["precRA"], row["precDec"]) == ("1", "0.1", "0.01")
    assert (row["notes"], row.get("prog", "")) == ("K", "")


def test_a_note_does_not_divide_a_night():
    sample = nr.sample("impactors").read_text().splitlines()
    lines = [line for line in sample if line.endswith("G96") and "K08T03C" in line]
    marked = [line[:13] + "K" + line[14:] for line in lines[4:]]
    assert len(nr.read_tracklets([*lines[:4], *marked])) == 1
