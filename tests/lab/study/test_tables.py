"""Figures of several methods side by side."""

import numpy as np
import pandas as pd
import pytest

from neoranging.exceptions import EvaluationError
from neoranging.lab.study.tables import side_by_side


@pytest.fixture
def figures():
    columns = {
        "method": ["gauss", "gauss", "a"],
        "metric": ["median", "mae", "mae"],
        "unit": ["", "au", "au"],
        "value": [5.1e-5, 0.2081234, np.nan],
        "low": [np.nan, 0.2, np.nan],
        "high": [np.nan, 0.2154, np.nan],
    }
    return pd.DataFrame(columns)


def test_rows_and_columns_keep_their_order(figures):
    table = side_by_side(figures, index=("metric", "unit"))
    assert table.to_dict("records") == [
        {"metric": "median", "unit": "", "gauss": "5.10e-05", "a": ""},
        {"metric": "mae", "unit": "au", "gauss": "0.208 [0.200, 0.215]", "a": "–"},
    ]


def test_two_figures_for_one_place(figures):
    with pytest.raises(EvaluationError, match="several rows of 'gauss' are au"):
        side_by_side(figures.assign(unit="au"), index=("unit",))


def test_nothing_side_by_side(figures):
    assert side_by_side(figures[:0], index=("metric",)).empty
