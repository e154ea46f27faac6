"""Classical methods: solve rates of all arcs, errors on the arcs that all of them solve."""

import numpy as np
import pytest

from neoranging.exceptions import EvaluationError
from neoranging.lab.study.classical import (
    MUTUAL_METRICS,
    WHOLE_METRICS,
    classical_comparison,
    mutually_solved,
)
from neoranging.lab.study.predictions import predict
from neoranging.lab.study.scores import score, select

NAN = np.nan


@pytest.fixture
def four(made):
    true = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    return [
        made([1e-5, 0.2, NAN, 0.8, NAN, 1.2], true, method="gauss", origin="geocenter"),
        made([1e-5, NAN, NAN, 0.6, 0.5, 0.6], true, method="laplace", origin="geocenter"),
        made([0.1, 0.2, 0.4, NAN, NAN, 0.6], true, method="gauss topo"),
        made(np.full(6, 0.35), true, method="network"),
    ]


def pick(table, subset, metric):
    rows = table[(table["subset"] == subset) & (table["metric"] == metric)]
    return {row["method"]: row for row in rows.to_dict("records")}


def test_by_hand(four):
    np.testing.assert_array_equal(np.flatnonzero(mutually_solved(four[:2])), [0, 3, 5])
    rows = classical_comparison(four[:3], four[3:], n_boot=20)
    solved = pick(rows, "all", "solved")
    rates = {name: row["value"] for name, row in solved.items()}
    expected = {"gauss": 400 / 6, "laplace": 400 / 6, "gauss topo": 400 / 6, "network": 100.0}
    assert rates == pytest.approx(expected)
    assert all(row["n_arcs"] == 6 for row in solved.values())
    collapsed = {name: row["value"] for name, row in pick(rows, "all", "collapsed").items()}
    expected = {"gauss": 25.0, "laplace": 25.0, "gauss topo": 0.0, "network": 0.0}
    assert collapsed == pytest.approx(expected)
    alike = pick(rows, "solved from the geocenter", "medae_rho")
    assert {name: row["value"] for name, row in alike.items()} == pytest.approx(
        {"gauss": 0.4, "laplace": 0.1, "network": 0.25}, abs=2e-5
    )
    assert all(row["n_arcs"] == 3 for row in alike.values())
    alike = pick(rows, "solved from the topocenter", "mae_rho")
    assert {name: row["value"] for name, row in alike.items()} == pytest.approx(
        {"gauss topo": 0.025, "network": (0.25 + 0.15 + 0.05 + 0.25) / 4}
    )
    # whole: 4 methods; geocentre: 3; topocentre: 2
    assert len(rows) == 4 * len(WHOLE_METRICS) + 5 * len(MUTUAL_METRICS)


def test_nothing_is_solved_alike(made):
    never = [made([0.1, NAN], [0.1, 0.2], method="a"), made([NAN, 0.2], [0.1, 0.2], method="b")]
    rows = classical_comparison(never)
    for row in pick(rows, "solved from the topocenter", "mae_rho").values():
        assert row["n_arcs"] == 0
        assert np.isnan(row["value"])


def test_errors(four):
    with pytest.raises(EvaluationError, match="no classical method"):
        mutually_solved([])
    with pytest.raises(EvaluationError, match="'network' are scored on different arcs"):
        classical_comparison(four[:1], [select(four[3], [1, 0, 2, 3, 4, 5])])


def test_from_the_geocentre_roots_collapse(table):
    """The literature's finding, and that the observer's true place undoes it."""
    scored = [
        score(table, predict(method, table, origin=origin, label=f"{method} {origin}"))
        for origin in ("geocenter", "topocenter")
        for method in ("gauss", "laplace")
    ]
    rows = classical_comparison(scored, n_boot=0)
    collapsed = {name: row["value"] for name, row in pick(rows, "all", "collapsed").items()}
    assert min(collapsed["gauss geocenter"], collapsed["laplace geocenter"]) > 60.0
    assert max(collapsed["gauss topocenter"], collapsed["laplace topocenter"]) < 20.0
    median = pick(rows, "solved from the geocenter", "median_rho")
    assert max(row["value"] for row in median.values()) < 1e-3
