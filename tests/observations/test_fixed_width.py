"""Fixed-width parsing agrees with Python's own number readers and never raises."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neoranging.observations.fixed_width import (
    ascii_matrix,
    calendar_to_mjd,
    field_strings,
    parse_dates,
    parse_float,
    parse_int,
    parse_sexagesimal,
    split_lines,
)

FIELD = st.text(alphabet="0123456789+-. Ee_\t", max_size=9)


@given(st.lists(FIELD, min_size=1, max_size=20))
def test_floats_are_those_of_python(fields):
    numbers = parse_float(ascii_matrix([f.replace("\t", " ") for f in fields], 9))
    for field, value, ok in zip(fields, numbers.value, numbers.ok, strict=True):
        text = field.replace("\t", " ").strip()
        valid = re.fullmatch(r"[+-]? *(\d+\.?\d*|\.\d+)", text) is not None
        assert ok == valid
        if valid:
            assert value == float(text.replace(" ", ""))
        else:
            assert np.isnan(value)


@pytest.mark.parametrize(
    ("text", "value", "decimals"),
    [
        ("  12.50 ", 12.5, 2),
        ("+ 2202.0220", 2202.022, 4),
        ("-0.00266005", -0.00266005, 8),
        ("5.", 5.0, 0),
        (".25", 0.25, 2),
        ("- 0.0", -0.0, 1),
    ],
)
def test_float_values(text, value, decimals):
    numbers = parse_float(ascii_matrix([text], 12))
    assert numbers.ok.all()
    assert numbers.value[0] == value
    assert np.signbit(numbers.value[0]) == np.signbit(value)
    assert numbers.decimals[0] == decimals


@given(st.lists(st.text(alphabet="0123456789 -", max_size=4), min_size=1))
def test_ints_allow_blanks_before_only(fields):
    value, ok = parse_int(ascii_matrix(fields, 4))
    for field, v, good in zip(fields, value, ok, strict=True):
        valid = re.fullmatch(r" *\d+", field.ljust(4)) is not None
        assert good == valid
        assert v == (int(field) if valid else 0)


@pytest.mark.parametrize(
    ("text", "value", "resolution"),
    [
        ("23 59 34.88 ", 23 + 59 / 60 + 34.88 / 3600, 0.01),
        ("09 44 29.658", 9 + 44 / 60 + 29.658 / 3600, 0.001),
        (" 9 13 32", 9 + 13 / 60 + 32 / 3600, 1.0),
        ("02 29.3", 2 + 29.3 / 60, 6.0),
        ("17 27.55", 17 + 27.55 / 60, 0.6),
        ("19 48", 19.8, 60.0),
        ("11 59 60.0", 12.0, 0.1),
    ],
)
def test_sexagesimal_forms(text, value, resolution):
    angle = parse_sexagesimal(ascii_matrix([text], 12))
    assert angle.ok.all()
    assert angle.value[0] == pytest.approx(value, rel=1e-15)
    assert angle.resolution[0] == pytest.approx(resolution)


@pytest.mark.parametrize("text", ["", "12", "12 60 00", "12 3x 00", "12 30 -1", "12-30 00", "1230"])
def test_sexagesimal_that_is_none(text):
    angle = parse_sexagesimal(ascii_matrix([text], 12))
    assert not angle.ok.any()
    assert np.isnan(angle.value).all()


def test_calendar():
    year = np.array([2000, 1858, 2024, 2023, 1582, 2000, 1900])
    month = np.array([1, 11, 2, 2, 12, 13, 2])
    day = np.array([1, 17, 29, 29, 31, 1, 29])
    mjd, ok = calendar_to_mjd(year, month, day)
    assert ok.tolist() == [True, True, True, False, False, False, False]
    assert mjd[:3].tolist() == [51544, 0, 60369]


def test_dates():
    texts = ["2024 12 27.238073", "2000 02 29", "2000-02 29.5", "2000 02 30.5", "2000 02 -1.5"]
    dates = parse_dates(ascii_matrix(texts, 18))
    assert dates.ok.tolist() == [True, True, False, False, False]
    assert dates.mjd[:2].tolist() == [60671, 51603]
    assert dates.fraction[:2].tolist() == [0.238073, 0.0]
    assert dates.decimals[:2].tolist() == [6, 0]


def test_lines_survive_odd_bytes():
    lines = split_lines(b"\xef\xbb\xbfabc \r\n\n\xe9\tx\x00y\rlast")
    assert [lines.text(k) for k in range(len(lines.start))] == ["abc", "", "? x y", "last"]
    assert field_strings(lines.matrix(3)).tolist() == ["abc", "", "? x", "las"]
    assert field_strings(lines.matrix(3, offset=3)).tolist() == ["", "", "y", "t"]


@given(st.binary(max_size=200))
def test_any_bytes_make_lines(content):
    lines = split_lines(content)
    matrix = lines.matrix(20)
    assert matrix.shape == (len(lines.start), 20)
    assert ((matrix >= 32) & (matrix < 127)).all()
    assert all(len(lines.text(k)) == n for k, n in enumerate(lines.length.tolist()))


def test_nothing_gives_no_lines():
    assert split_lines(b"").matrix(80).shape == (0, 80)


def test_lines_that_end_in_very_many_blanks():
    lines = split_lines(b"a" + b" " * 2_000_000 + b"\nb \n" + b" " * 300)
    assert lines.length.tolist() == [1, 1, 0]
