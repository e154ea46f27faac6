"""Tables as text, Markdown and CSV: what is right and what is left, and no digit lost."""

import csv
import io

import numpy as np
import pandas as pd
import pytest

from neoranging.tables import csv_table, markdown_table, number, significant, text_table


@pytest.fixture
def table():
    columns = {
        "method": ["gauss", "gauss", "a|b"],
        "value": [0.2081234, 5.1e-5, np.nan],
        "n_arcs": [7, 7, 7],
    }
    return pd.DataFrame(columns)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *((0.0, "0"), (100.0, "100"), (99.98, "100"), (45.0, "45.0"), (0.05, "0.0500")),
        *((1234.4, "1234"), (999.7, "1000"), (-0.12345, "-0.123"), (5.1e-5, "5.10e-05")),
        *((2.5e7, "2.50e+07"), (np.inf, "inf"), (np.nan, "–"), (12345.6, "12346")),
    ],
)
def test_numbers_for_readers(value, text):
    assert number(value) == text


def test_bounds_have_fewer_digits():
    assert [number(x, 2) for x in (0.0503, 0.1, 12.34, 100.0)] == ["0.05", "0.1", "12", "100"]
    assert [number(x, 2) for x in (-1.0, 1e-10, -0.0153)] == ["-1", "1.00e-10", "-0.015"]


def test_significant_digits():
    assert [significant(x) for x in (0.02, 1.5, 12345.0, np.nan)] == [
        *("0.02000", "1.500", "1.234e+04", "-")
    ]
    assert significant(0.5, 2, "+") == "+0.50"


def test_numbers_stand_right_and_words_left(table):
    assert text_table(table).splitlines() == [
        "method     value  n_arcs",
        "gauss      0.208       7",
        "gauss   5.10e-05       7",
        "a|b            –       7",
    ]


def test_heads_of_several_lines_are_shared():
    columns = {"name": ["x"], ("range", "from"): ["1"], ("range", "to au"): ["22222"]}
    assert text_table(columns, align="<>>").splitlines() == [
        "name  range",
        "       from  to au",
        "x         1  22222",
    ]


def test_markdown(table):
    assert markdown_table(table[2:].assign(none=None)).splitlines() == [
        "| method | value | n_arcs | none |",
        "| --- | --- | --- | --- |",
        r"| a\|b | – | 7 |  |",
    ]


def test_csv_keeps_all_digits(table):
    rows = list(csv.DictReader(io.StringIO(csv_table(table))))
    assert list(rows[0]) == list(table)
    assert [row["method"] for row in rows] == ["gauss", "gauss", "a|b"]
    assert [row["value"] for row in rows] == ["0.2081234", "5.1e-05", ""]
    assert csv_table(table, missing="nan").splitlines()[-1] == "a|b,nan,7"


def test_no_rows_no_lines(table):
    assert text_table(table[:0]) == "method  value  n_arcs"
    assert markdown_table(table[:0]).splitlines() == [
        "| method | value | n_arcs |",
        "| --- | --- | --- |",
    ]
