"""Intervals: coverage by arc and by object, widths by decile, single objects by epoch."""

import numpy as np
import pytest

from neoranging.exceptions import EvaluationError
from neoranging.lab.study.figures.intervals import plot_half_widths, plot_reliability, plot_unseen


def test_reliability_by_arc_and_by_object(coverage, drawn):
    fig = plot_reliability({"mlp": coverage(), "gauss": coverage()})
    top, below = fig.axes
    by_arc = next(line for line in top.lines if line.get_label() == "mlp, 1,000 arcs")
    np.testing.assert_allclose(by_arc.get_xydata(), np.column_stack([[50, 68, 95]] * 2))
    lowest = min(line.get_ydata()[-1] for line in below.lines if len(line.get_xdata()) == 3)
    assert lowest == pytest.approx(-2.0)
    assert {"filled: per arc", "hollow: per object"} <= set(drawn(fig))


def test_reliability_of_an_unknown_stratum(coverage):
    with pytest.raises(EvaluationError, match="no rows of the stratum 'all'"):
        plot_reliability({"mlp": coverage()}, stratum="all")


def test_half_widths(coverage, drawn):
    fig = plot_half_widths({"mlp": coverage(), "gauss": coverage(4.0)})
    texts = drawn(fig)
    assert {"68 % intervals", "median half-width [au]", "median half-width [factor]"} <= set(texts)
    left, right = fig.axes
    assert left.lines[1].get_ydata() == pytest.approx([0.4] * 10)
    assert right.lines[1].get_ydata() == pytest.approx([4.0] * 10)


def test_half_widths_of_another_level(coverage):
    with pytest.raises(EvaluationError, match=r"'mlp' has 0\.5, 0\.68, 0\.95"):
        plot_half_widths({"mlp": coverage()}, level=0.9)


def with_bars(scored):
    return scored.assign(low=0.8 * scored.rho, high=1.5 * scored.rho)


def test_unseen_objects_by_epoch(made, table, drawn):
    scored = with_bars(made("mlp", m=len(table)))
    fig = plot_unseen(table, [scored], ["S3"])
    texts = drawn(fig)
    rows = np.flatnonzero(table["designation"] == "S3")
    assert f"S3: {len(rows)} arcs" in texts
    ordered = rows[np.argsort(table["t2_mjd_tdb"][rows])]
    truth = next(line for line in fig.axes[0].lines if line.get_label() == "truth")
    np.testing.assert_array_equal(truth.get_ydata(), scored.rho_true[ordered])
    bars = fig.axes[0].collections[0].get_segments()
    ends = np.array([bar[:, 1] for bar in bars])
    np.testing.assert_allclose(ends, np.column_stack([scored.low, scored.high])[ordered])


def test_some_of_many_arcs_are_told(made, table, drawn):
    fig = plot_unseen(table, [made(m=len(table))], ["S3"], n_arcs=3)
    assert "S3: 3 of 5 arcs" in drawn(fig)


def test_unanswered_arcs_and_no_intervals(made, table, drawn):
    drawn(plot_unseen(table, [made("gauss", m=len(table), failing=40)], ["S0", "S11"]))


def test_objects_that_are_not_there(made, table):
    with pytest.raises(EvaluationError, match="'X' has no arc"):
        plot_unseen(table, [made(m=len(table))], ["X"])


def test_scores_of_other_arcs(made, table):
    with pytest.raises(EvaluationError, match="scored on others"):
        plot_unseen(table, [made(m=8)], ["S3"])
