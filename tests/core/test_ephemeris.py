from __future__ import annotations

import threading

import erfa
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neoranging.constants import AU_M, DAY_S
from neoranging.core.ephemeris import (
    Interpolant,
    Pieces,
    PiecewiseSeries,
    earth_rotation_angle,
    powers,
)
from neoranging.core.ephemeris_kernel import turn_sites
from neoranging.exceptions import EphemerisError


def wave(epoch):
    return np.stack([np.sin(epoch / 3.0), np.cos(epoch / 5.0)], axis=-1)


def series(function=wave):
    grid = {"start": 100.0, "step": 4.0, "degree": 12}
    source = Interpolant(function, **grid)
    return PiecewiseSeries(source, n_cells=50, n_components=2, name="the wave", **grid)


@given(st.lists(st.floats(100.0, 300.0), min_size=1, max_size=20))
def test_values_and_rates_are_those_of_the_function(epochs):
    epoch = np.array(epochs)
    values, rates = series().with_rate(epoch)
    np.testing.assert_allclose(values, wave(epoch), rtol=0, atol=1e-13)
    exact = np.stack([np.cos(epoch / 3.0) / 3.0, -np.sin(epoch / 5.0) / 5.0], axis=-1)
    np.testing.assert_allclose(rates, exact, rtol=0, atol=1e-11)
    np.testing.assert_array_equal(series()(epoch), values)


def test_long_and_empty_arrays():
    epoch = np.linspace(100.0, 300.0, 20_001)
    values, _ = series().with_rate(epoch)
    assert values.shape == (20_001, 2)
    np.testing.assert_allclose(values, wave(epoch), rtol=0, atol=1e-13)
    assert series()(np.empty(0)).shape == (0, 2)


def test_only_visited_cells_are_computed():
    asked = []

    def watched(epoch):
        asked.append(epoch)
        return wave(epoch)

    item = series(watched)
    item(np.array([101.0, 102.0, 203.9]))
    item(np.array([103.0]))
    assert len(asked) == 1
    np.testing.assert_array_equal(item.filled_cells, [0, 25])
    assert all(((e > 100) & (e < 104) | (e > 200) & (e < 204)).all() for e in asked)


def test_order_of_filling_does_not_change_a_bit():
    epoch = np.random.default_rng(7).uniform(100.0, 300.0, 500)
    at_once, one_by_one = series(), series()
    for value in epoch[::-1]:
        one_by_one(np.array([value]))
    np.testing.assert_array_equal(at_once(epoch), one_by_one(epoch))


def test_threads_agree():
    epoch = np.random.default_rng(8).uniform(100.0, 300.0, 30_000)
    item, results = series(), {}
    start = threading.Barrier(4)

    def work(k):
        start.wait()
        results[k] = item(epoch if k % 2 else epoch[::-1])

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k in range(4):
        np.testing.assert_array_equal(results[k][:: 1 if k % 2 else -1], series()(epoch))


@pytest.mark.parametrize("epoch", [99.9, 300.1, np.nan, np.inf])
def test_epochs_outside_are_refused(epoch):
    with pytest.raises(EphemerisError, match=r"the wave is known from MJD 100 to 300.*1 epochs"):
        series()(np.array([150.0, epoch]))


def test_shape_is_checked():
    with pytest.raises(EphemerisError, match=r"shape \(N,\)"):
        series()(np.zeros((2, 2)))


def test_read_only_epochs_and_those_with_gaps_between_them():
    epoch = np.linspace(100.0, 300.0, 20)
    expected = series()(epoch)
    epoch.flags.writeable = False
    np.testing.assert_array_equal(series()(epoch), expected)
    np.testing.assert_array_equal(series()(epoch[::2]), expected[::2])
    np.testing.assert_array_equal(series().with_rate(epoch[::2])[0], expected[::2])


def test_pieces_in_use_stay_as_they_are():
    item = series()
    item(np.array([101.0]))
    before = item.pieces
    copy = before.rows.copy(), before.coefficients.copy()
    item(np.array([201.0]))
    for then, now in zip(copy, (before.rows, before.coefficients), strict=True):
        np.testing.assert_array_equal(then, now)


def test_powers_of_chebyshev_series():
    terms = np.random.default_rng(6).normal(size=(3, 9, 2))
    x = np.linspace(-1.0, 1.0, 11)
    for ours, series_of_cell in zip(powers(terms), terms, strict=True):
        expected = np.polynomial.chebyshev.chebval(x, series_of_cell)
        np.testing.assert_allclose(np.polynomial.polynomial.polyval(x, ours), expected, atol=1e-13)


def test_restore_takes_over_coefficients():
    source, target = series(), series(lambda epoch: np.full((epoch.size, 2), np.nan))
    epoch = np.array([120.0, 250.0])
    source(epoch)
    target.restore(source.filled_cells, source.coefficients(source.filled_cells))
    np.testing.assert_array_equal(target(epoch), source(epoch))


@pytest.mark.parametrize(
    ("cells", "coefficients"),
    [
        ([0], np.zeros((1, 13, 3))),
        ([0], np.full((1, 13, 2), np.nan)),
        ([50], np.zeros((1, 13, 2))),
        ([-1], np.zeros((1, 13, 2))),
    ],
)
def test_restore_refuses_what_does_not_fit(cells, coefficients):
    with pytest.raises(EphemerisError, match="save it anew"):
        series().restore(np.array(cells), coefficients)


def test_earth_rotation_angle_against_erfa():
    epoch = np.random.default_rng(9).uniform(-20_000.0, 120_000.0, 1000)
    difference = earth_rotation_angle(epoch) - erfa.era00(2_400_000.5, epoch)
    difference = np.angle(np.exp(1j * difference))
    assert np.abs(difference).max() < 1e-14 * 1e5


def constant(values):
    """Pieces of a series that has these values from MJD 50000 to 50010."""
    coefficients = np.zeros((1, len(values), 3))
    coefficients[0, :, 0] = values
    return Pieces(50_000.0, 10.0, np.zeros(1, dtype=np.int64), coefficients)


def turned(epoch, itrf, tdb_tt, pole, days, measured):
    position, velocity = np.empty_like(itrf), np.empty_like(itrf)
    pieces = constant([tdb_tt]), constant(pole)
    assert turn_sites(epoch, *pieces, days, measured, itrf, position, velocity) == len(epoch)
    return position, velocity


def test_site_state_against_erfa_matrices():
    rng = np.random.default_rng(10)
    n = 10
    for _ in range(20):
        itrf = rng.normal(size=(n, 3))
        itrf *= 6.37e6 / np.linalg.norm(itrf, axis=1, keepdims=True)
        epoch = rng.uniform(50_000.0, 50_010.0, n)
        x, y, s = rng.normal(0, 2e-3), rng.normal(0, 1e-4), rng.normal(0, 1e-7)
        tdb_tt, ut1_tt = 1.5e-3, -rng.uniform(30.0, 70.0) / DAY_S
        xp, yp = rng.normal(0, 1.5e-6, 2)
        days, measured = np.array([49_999.0, 50_011.0]), np.tile([ut1_tt, xp, yp], (2, 1))
        pole = [x, y, s + 0.5 * x * y]
        position, velocity = turned(epoch, itrf, tdb_tt, pole, days, measured)
        rotation = erfa.era00(2_400_000.5, epoch - tdb_tt / DAY_S + ut1_tt)
        to_cirs = erfa.c2ixys(x, y, s)
        terrestrial = erfa.c2tcio(to_cirs, rotation, erfa.pom00(xp, yp, 0.0))
        expected = np.einsum("nji,nj->ni", terrestrial, itrf)
        assert np.abs(position * AU_M - expected).max() < 1.5e-3
        spin = np.cross(to_cirs[2] * 7.292_115_146_706_98e-5, expected)
        assert np.abs(velocity * AU_M / DAY_S - spin).max() < 1e-6


def test_measured_rotation_is_interpolated_between_its_days():
    """Days that are not quite a day apart, as after a leap second; held outside the table."""
    days = np.array([50_001.0, 50_002.0, 50_003.0 + 1.0 / DAY_S, 50_004.0 + 1.0 / DAY_S])
    ut1_tt = np.array([0.0, 0.001, 0.0, 0.002])
    measured = np.stack([ut1_tt, np.zeros(4), np.zeros(4)], axis=-1)
    epoch = np.array([50_000.0, 50_001.0, 50_001.25, *days[1:], days[2] - 1e-6, 50_009.0])
    itrf = np.tile([6.0e6, 0.0, 0.0], (len(epoch), 1))
    position, _ = turned(epoch, itrf, 0.0, [0.0, 0.0, 0.0], days, measured)
    angle = earth_rotation_angle(epoch + np.interp(epoch, days, ut1_tt))
    expected = 6.0e6 / AU_M * np.stack([np.cos(angle), np.sin(angle), 0.0 * angle], axis=-1)
    np.testing.assert_allclose(position, expected, rtol=0.0, atol=1e-15)


def test_turning_stops_where_a_series_has_no_polynomial():
    item = np.zeros((3, 3))
    gap = constant([0.0, 0.0, 0.0])._replace(rows=np.array([-1]))
    epoch = np.array([50_001.0, 50_002.0, 49_000.0])
    days, measured = np.array([49_999.0, 50_011.0]), np.zeros((2, 3))
    tables = days, measured, item, item.copy(), item.copy()
    assert turn_sites(epoch, constant([0.0]), constant([0.0] * 3), *tables) == 2
    assert turn_sites(epoch, constant([0.0]), gap, *tables) == 0
