"""Plain columns of rows: numbers and epochs as their texts have them."""

from __future__ import annotations

import numpy as np
import pytest
from astropy import units as u
from astropy.table import QTable
from astropy.time import Time
from hypothesis import given
from hypothesis import strategies as st

import neoranging as nr
from neoranging.rows import DIGITS, estimate_rows, plain_columns, rounded
from neoranging.samples import sample


@given(st.lists(st.floats(), max_size=50))
def test_rounded_numbers_are_those_of_their_texts(values):
    array = np.array(values, dtype=float)
    texts = np.array([float(f"{value:.{DIGITS}g}") for value in values], dtype=float)
    # where the number lies between two texts, multiplication may have decided
    with np.errstate(invalid="ignore"):
        near = np.abs(rounded(array) - texts) <= 1.1e-9 * np.abs(texts)
    assert (near | (rounded(array) == texts) | np.isnan(array)).all()
    assert np.array_equal(np.isnan(rounded(array)), np.isnan(array))


def test_rounded_numbers_of_estimates_have_few_digits():
    values = np.random.default_rng(1).lognormal(sigma=5.0, size=5000)
    values[::2] *= -1.0
    assert all(float(f"{value:.{DIGITS}g}") == value for value in rounded(values).tolist())


@pytest.mark.parametrize(
    "instant",
    [
        "2016-12-31T23:59:60.500",  # a leap second
        "2016-12-31T23:59:59.9996",
        "2017-01-01T00:00:00.000",
        "1963-02-28T12:00:00.123",
        "2026-06-15T23:59:59.99951",
    ],
)
def test_epochs_are_those_of_astropy(instant):
    time = Time([instant, "2020-01-01T00:00:00"], scale="utc", precision=3)
    columns = plain_columns(QTable({"epoch": time}))
    assert columns["epoch_utc"].tolist() == time.isot.tolist()


def test_units_stand_in_names():
    rows = QTable({"range": [1.0 / 3.0] * u.au, "speed": [2.0] * u.au / u.d, "n": [3]})
    columns = plain_columns(rows)
    assert list(columns) == ["range_au", "speed_au_d", "n"]
    assert columns["range_au"][0] == 0.3333333333


def test_epochs_of_estimates_are_those_of_the_middle_observations():
    tracklets = nr.read_tracklets(sample("impactors"))
    estimate = tracklets.estimate("gauss")
    rows = estimate_rows(tracklets, estimate, 0.68)
    assert np.abs((rows["epoch"] - estimate.epoch).to_value(u.s)).max() < 1e-3
