"""Flights over days against n-body motion, as docs/tools/flight_accuracy.py measures them."""

from __future__ import annotations

import numpy as np
import pytest
from documentation_tools import load


@pytest.fixture(scope="module")
def tool():
    return load("flight_accuracy")


def test_rows_are_by_distance(tool):
    nearest = np.full((3, 4), 0.3)
    nearest[0], nearest[2, 3] = 0.001, np.nan
    apart = np.array([[1.0], [2.0], [4.0]]) * [1.0, 10.0, 100.0, 1000.0]
    rows = {row[0]: row[1:] for row in tool.rows_of(apart, nearest)}
    assert rows["0.0005 to 0.002"][1] == "10 / 10 / 10 (1)"
    assert rows["0.2 to 1"][0] == "3 / 4 / 4 (2)"
    assert rows["0.2 to 1"][3] == "2000 / 2000 / 2000 (1)"
    assert rows["beyond 1"] == ("", "", "", "")


def test_three_days_cost_less_than_an_arcsecond(tool):
    pytest.importorskip("assist")
    apart, nearest = tool.differences(tool.drawn_states(8, seed=2))
    three = tool.ELAPSED.index(3.0)
    far = nearest[:, three] > 0.05
    assert far.sum() >= 8
    assert apart[far, three].max() < 1.0
