from __future__ import annotations

import threading

import erfa
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neoranging.constants import AU_M, DAY_S
from neoranging.core.ephemeris import PiecewiseSeries, earth_rotation_angle, site_state
from neoranging.exceptions import EphemerisError


def wave(epoch):
    return np.stack([np.sin(epoch / 3.0), np.cos(epoch / 5.0)], axis=-1)


def series(function=wave, **changes):
    options = {"start": 100.0, "step": 4.0, "n_cells": 50, "degree": 12, "n_components": 2}
    return PiecewiseSeries(function, name="the wave", **options | changes)


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


def test_site_state_against_erfa_matrices():
    rng = np.random.default_rng(10)
    n = 200
    itrf = rng.normal(size=(n, 3))
    itrf *= 6.37e6 / np.linalg.norm(itrf, axis=1, keepdims=True)
    rotation = rng.uniform(0.0, 2 * np.pi, n)
    pole = np.stack([rng.normal(0, 2e-3, n), rng.normal(0, 1e-4, n), rng.normal(0, 1e-7, n)], -1)
    polar_motion = rng.normal(0, 1.5e-6, (n, 2))
    position, velocity = site_state(itrf, rotation, pole, polar_motion)
    terrestrial = erfa.c2tcio(
        erfa.c2ixys(*pole.T), rotation, erfa.pom00(polar_motion[:, 0], polar_motion[:, 1], 0.0)
    )
    expected = np.einsum("nji,nj->ni", terrestrial, itrf)
    assert np.abs(position * AU_M - expected).max() < 1e-3
    axis = erfa.c2ixys(*pole.T)[:, 2]
    spin = np.cross(axis * 7.292_115_146_706_98e-5, expected)
    assert np.abs(velocity * AU_M / DAY_S - spin).max() < 1e-6
