"""Cells that every arc is in once, and the cross of two axes."""

import numpy as np
import pandas as pd
import pytest

from neoranging.exceptions import EvaluationError
from neoranging.lab.study.metrics import METRICS, compare, summarise
from neoranging.lab.study.scores import select
from neoranging.lab.study.strata import (
    AXES,
    CROSS_METRICS,
    EVERY,
    TRUE_AXES,
    Strata,
    cross,
    stratify,
)


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


@pytest.mark.parametrize("axis", TRUE_AXES)
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
    for axis in TRUE_AXES:
        np.testing.assert_array_equal(Strata.of(scored, axis).cell, Strata.of(other, axis).cell)


def test_unknown_values_are_a_stratum(made):
    inc = np.linspace(0.1, 0.9, 12)
    inc[[2, 7]] = np.nan
    scored = made(np.ones(12), np.ones(12), inc=inc)
    strata = Strata.of(scored, "inc")
    assert strata.cells == [0, 1, 2, -1]
    np.testing.assert_array_equal(strata.rows(-1), [2, 7])
    rows = stratify([scored], axes=["inc"], metrics=["solved"], n_boot=0)
    assert rows["stratum"].tolist() == ["low", "mid", "high", "unknown"]
    assert rows["n_arcs"].sum() == 12
    with pytest.raises(EvaluationError, match="known inclination"):
        Strata.of(made([1.0], [1.0], inc=[np.nan]), "inc")


def test_stratify_summarises_the_cells(scored, other):
    rows = stratify([scored, other], axes=["eta", "span"], n_boot=20)
    assert len(rows) == 2 * 3 * 2 * len(METRICS)
    cell = Strata.of(scored, "span").rows(2)
    expected = summarise(other, rows=cell, n_boot=20)
    found = rows.query("axis == 'span' and stratum == 'long' and method == 'other'")
    pd.testing.assert_frame_equal(found[expected.columns].reset_index(drop=True), expected)
    assert rows.query("metric == 'solved' and axis == 'eta'")["n_arcs"].sum() == 2 * 90


def test_cross(scored, other):
    rows = cross(scored, other, n_boot=20)
    assert len(rows) == 9 * len(CROSS_METRICS)
    of_one = rows[rows["metric"] == "medae_rho"]
    assert of_one["n_cell"].sum() == 90
    assert (rows["n_arcs"] + rows["n_without"] == rows["n_cell"]).all()
    assert of_one["n_arcs"].sum() == scored.answered.sum()
    eta, rho = Strata.of(scored, "eta"), Strata.of(scored, "rho")
    in_cell = np.flatnonzero((eta.cell == 2) & (rho.cell == 0))
    expected = compare(scored, other, rows=in_cell, metrics=["medae_rho"], n_boot=20)
    found = of_one.query("eta == 'fast' and rho == 'close'")
    pd.testing.assert_frame_equal(found[expected.columns].reset_index(drop=True), expected)


def test_margins_of_a_cross(scored, other):
    whole = cross(scored, other, metrics=["medae_rho"], margins=True, n_boot=20)
    cells = cross(scored, other, metrics=["medae_rho"], n_boot=20)
    of_cells = whole[(whole["eta"] != EVERY) & (whole["rho"] != EVERY)]
    pd.testing.assert_frame_equal(of_cells.reset_index(drop=True), cells)
    assert len(whole) == 16
    fast = Strata.of(scored, "eta").rows(2)
    expected = compare(scored, other, rows=fast, metrics=["medae_rho"], n_boot=20)
    found = whole.query("eta == 'fast' and rho == 'all'")
    pd.testing.assert_frame_equal(found[expected.columns].reset_index(drop=True), expected)
    assert whole.query("eta == 'all' and rho == 'all'")["n_cell"].tolist() == [90]


def test_empty_cells_have_their_rows(made):
    steps = np.arange(1.0, 10.0)
    scored = made(steps, steps, eta=steps)
    rows = cross(scored, scored, metrics=["mae_rho"], n_boot=10)
    assert rows["n_cell"].tolist() == [3, 0, 0, 0, 3, 0, 0, 0, 3]
    assert np.isnan(rows["difference"][1])


def test_errors(scored, other):
    with pytest.raises(EvaluationError, match="no axis 'colour'; there are eta, rho"):
        Strata.of(scored, "colour")
    with pytest.raises(EvaluationError, match="different arcs"):
        stratify([scored, select(other, slice(0, 50))])
    with pytest.raises(EvaluationError, match="at least one"):
        stratify([])
