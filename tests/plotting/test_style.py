"""Methods keep their marks, and texts and limits are what readers expect."""

import numpy as np
import pytest

from neoranging.exceptions import EvaluationError
from neoranging.plotting import style


def test_a_known_method_keeps_its_mark_in_any_company():
    alone = style.marks(["gauss"])["gauss"]
    assert style.marks(["mine", "pinn", "gauss"])["gauss"] == alone
    assert style.marks(["gauss (geocentre)"])["gauss (geocentre)"] == alone


def test_marks_differ_in_every_respect():
    methods = ["gauss", "gauss (geocentre)", "laplace", "mlp", "pinn", "mine"]
    marks = style.marks(methods)
    assert list(marks) == methods
    for respect in ("color", "marker", "line", "hatch"):
        assert len({getattr(mark, respect) for mark in marks.values()}) == len(methods)


def test_more_methods_than_marks_share_the_last():
    assert len(style.marks([f"m{k}" for k in range(12)])) == 12


def test_limits_leave_out_outliers():
    values = np.concatenate([np.linspace(0.0, 1.0, 1000), [1e9, np.nan, np.inf]])
    low, high = style.limits(values)
    assert -0.1 < low <= 0.0
    assert 0.99 < high < 1.1


def test_limits_of_one_value_are_an_interval():
    low, high = style.limits([3.0])
    assert low < 3.0 < high
    low, high = style.log_limits([1e-5])
    assert 0.0 < low < 1e-5 < high


def test_limits_of_nothing():
    with pytest.raises(EvaluationError, match="does the method answer"):
        style.limits([np.nan])
