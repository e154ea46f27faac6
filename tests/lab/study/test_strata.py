"""Cells that every arc is in once, the cross of two axes, and the tables that tell of them."""

import csv
import io

import numpy as np
import pytest

from neoranging.exceptions import EvaluationError
from neoranging.lab.study import tables
from neoranging.lab.study.metrics import METRICS, compare, summarise
from neoranging.lab.study.scores import select
from neoranging.lab.study.strata import AXES, CROSS_METRICS, Strata, cross, stratify


@pytest.fixture
def scored(made):
    rng = np.random.default_rng(1)
    true = rng.lognormal(-1.2, 0.8, 90)
    rho = np.where(rng.random(90) < 0.2, np.nan, true * rng.lognormal(0.0, 0.3, 90))
    columns = {
        "eta": rng.lognormal(-4.0, 1.0, 90),
        "inc": rng.uniform(0.0, 0.5, 90),
        "span": rng.uniform(0.01, 0.3, 90),
        "object": np.arange(90) // 3,
    }
    return made(rho, true, **columns)


@pytest.fixture
def other(made, scored):
    """Another method on the same arcs, which answers for all of them 20 % too far."""
    same = {name: getattr(scored, name) for name in ("eta", "inc", "span", "object")}
    return made(1.2 * scored.rho_true, scored.rho_true, method="other", **same)


@pytest.mark.parametrize("axis", AXES)
def test_terciles(scored, axis):
    strata = Strata.of(scored, axis)
    assert strata.cells == [0, 1, 2]
    values = AXES[axis].column(scored)
    for k in strata.cells:
        rows = strata.rows(k)
        assert len(rows) == 30
        where = strata.describe(k)
        assert (where["axis"], where["axis_unit"]) == (axis, AXES[axis].unit)
        assert where["lower"] <= values[rows].min() <= values[rows].max() <= where["upper"]
    assert strata.describe(0)["lower"] == values.min()
    assert strata.describe(2)["upper"] == values.max()


def test_units_of_the_axes(scored):
    assert Strata.of(scored, "inc").edges[-1] == pytest.approx(np.degrees(scored.inc.max()))
    assert Strata.of(scored, "span").edges[-1] == pytest.approx(24.0 * scored.span.max())
    assert Strata.of(scored, "eta").names == ("slow", "mid", "fast")
    assert Strata.of(scored, "rho", 4).names == ("1 of 4", "2 of 4", "3 of 4", "4 of 4")


def test_a_value_on_an_edge_is_in_one_cell(made):
    strata = Strata.of(made(np.ones(9), [1, 1, 1, 2, 2, 2, 3, 3, 3]), "rho", 2)
    np.testing.assert_array_equal(strata.edges, [1, 2, 3])
    np.testing.assert_array_equal(strata.cell, [0, 0, 0, 1, 1, 1, 1, 1, 1])


def test_cells_do_not_depend_on_answers(scored, other):
    for axis in AXES:
        np.testing.assert_array_equal(Strata.of(scored, axis).cell, Strata.of(other, axis).cell)


def test_unknown_values_are_a_stratum(made):
    inc = np.linspace(0.1, 0.9, 12)
    inc[[2, 7]] = np.nan
    scored = made(np.ones(12), np.ones(12), inc=inc)
    strata = Strata.of(scored, "inc")
    assert strata.cells == [0, 1, 2, -1]
    np.testing.assert_array_equal(strata.rows(-1), [2, 7])
    rows = stratify([scored], axes=["inc"], metrics=["solved"], n_boot=0)
    assert [row["stratum"] for row in rows] == ["low", "mid", "high", "unknown"]
    assert sum(row["n_arcs"] for row in rows) == 12
    with pytest.raises(EvaluationError, match="known inclination"):
        Strata.of(made([1.0], [1.0], inc=[np.nan]), "inc")


def test_stratify_summarises_the_cells(scored, other):
    rows = stratify([scored, other], axes=["eta", "span"], n_boot=20)
    assert len(rows) == 2 * 3 * 2 * len(METRICS)
    cell = Strata.of(scored, "span").rows(2)
    expected = summarise(other, rows=cell, n_boot=20)
    found = [
        row
        for row in rows
        if (row["axis"], row["stratum"], row["method"]) == ("span", "long", "other")
    ]
    for one, two in zip(found, expected, strict=True):
        assert {name: one[name] for name in two} == pytest.approx(two, nan_ok=True)
    solved = [row for row in rows if row["metric"] == "solved" and row["axis"] == "eta"]
    assert sum(row["n_arcs"] for row in solved) == 2 * 90


def test_cross(scored, other):
    rows = cross(scored, other, n_boot=20)
    assert len(rows) == 9 * len(CROSS_METRICS)
    of_one = [row for row in rows if row["metric"] == "medae_rho"]
    assert sum(row["n_cell"] for row in of_one) == 90
    assert all(row["n_arcs"] + row["n_without"] == row["n_cell"] for row in rows)
    assert sum(row["n_arcs"] for row in of_one) == scored.answered.sum()
    eta, rho = Strata.of(scored, "eta"), Strata.of(scored, "rho")
    in_cell = np.flatnonzero((eta.cell == 2) & (rho.cell == 0))
    expected = compare(scored, other, rows=in_cell, metrics=["medae_rho"], n_boot=20)[0]
    found = next(row for row in of_one if (row["eta"], row["rho"]) == ("fast", "close"))
    assert {name: found[name] for name in expected} == pytest.approx(expected, nan_ok=True)


def test_empty_cells_have_their_rows(made):
    steps = np.arange(1.0, 10.0)
    scored = made(steps, steps, eta=steps)
    rows = cross(scored, scored, metrics=["mae_rho"], n_boot=10)
    assert [row["n_cell"] for row in rows] == [3, 0, 0, 0, 3, 0, 0, 0, 3]
    assert np.isnan(rows[1]["difference"])


def test_errors(scored, other):
    with pytest.raises(EvaluationError, match="no axis 'colour'; there are eta, rho"):
        Strata.of(scored, "colour")
    with pytest.raises(EvaluationError, match="different arcs"):
        stratify([scored, select(other, slice(0, 50))])
    with pytest.raises(EvaluationError, match="at least one"):
        stratify([])


# ---- tables --------------------------------------------------------------------------------------


@pytest.fixture
def rows():
    def row(method, metric, value, low=np.nan, high=np.nan, unit="au"):
        numbers = {"value": value, "low": low, "high": high, "n_arcs": 7}
        return {"method": method, "metric": metric, "unit": unit, **numbers}

    return [
        row("gauss", "mae", 0.2081234, 0.2, 0.2154),
        row("gauss", "median", 5.1e-5),
        row("a|b", "mae", np.nan),
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *((0.0, "0"), (100.0, "100"), (99.98, "100"), (45.0, "45.0"), (0.05, "0.0500")),
        *((1234.4, "1234"), (999.7, "1000"), (-0.12345, "-0.123"), (5.1e-5, "5.10e-05")),
        *((2.5e7, "2.50e+07"), (np.inf, "inf"), (np.nan, "–")),
    ],
)
def test_numbers_for_readers(value, text):
    assert tables.with_interval({"value": value}) == text


def test_pivot(rows):
    found = tables.pivot(rows, index=("metric", "unit"))
    assert found == [
        {"metric": "mae", "unit": "au", "gauss": "0.208 [0.200, 0.215]", "a|b": "–"},
        {"metric": "median", "unit": "au", "gauss": "5.10e-05", "a|b": ""},
    ]
    with pytest.raises(EvaluationError, match="several rows of 'gauss'"):
        tables.pivot(rows, index=("unit",))


def test_text(rows):
    assert tables.as_text(rows, ["method", "value", "n_arcs"]).splitlines() == [
        "method  value     n_arcs",
        "------  --------  ------",
        "gauss   0.208     7",
        "gauss   5.10e-05  7",
        "a|b     –         7",
    ]


def test_markdown(rows):
    assert tables.as_markdown(rows[2:], ["method", "value", "none"]).splitlines() == [
        "| method | value | none |",
        "| --- | --- | --- |",
        r"| a\|b | – |  |",
    ]


def test_csv_keeps_all_digits(rows):
    read = list(csv.DictReader(io.StringIO(tables.as_csv(rows))))
    assert [row["method"] for row in read] == ["gauss", "gauss", "a|b"]
    assert float(read[0]["value"]) == 0.2081234
    assert read[2]["value"] == ""
    assert list(read[0]) == list(rows[0])


def test_files_are_written_as_they_end(rows, tmp_path):
    for ending, written in ((".csv", tables.as_csv), (".md", tables.as_markdown)):
        path = tmp_path / f"table{ending}"
        tables.write_table(path, rows)
        assert path.read_text(encoding="utf-8") == written(rows)
    with pytest.raises(EvaluationError, match=r"end in \.csv, \.md, \.txt"):
        tables.write_table(tmp_path / "table.xlsx", rows)


def test_no_rows_no_lines():
    assert tables.as_text([], ["method"]).splitlines() == ["method", "------"]
    assert tables.pivot([]) == []
