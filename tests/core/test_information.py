"""Expected gain of information, against clouds whose mutual information is known."""

import numpy as np
import pytest

from neoranging.constants import ARCSEC
from neoranging.core.information import RESOLUTION, expected_gain


def on_sky(x, y):
    """Unit vectors at offsets [arcsec] from a direction near the pole."""
    line = np.column_stack([x * ARCSEC, y * ARCSEC, np.ones(len(x))])
    return line / np.linalg.norm(line, axis=1, keepdims=True)


@pytest.mark.parametrize("n", [300, 1000])
@pytest.mark.parametrize(
    ("slope", "width", "sigma"),
    [(0.1, 0.1, 3.0), (1.0, 1.0, 1.0), (10.0, 1.0, 0.1), (1000.0, 500.0, 0.3), (1e3, 0.01, 0.3)],
)
def test_of_a_joint_normal_distribution_is_its_mutual_information(n, slope, width, sigma):
    rng = np.random.default_rng(1)
    spread = 0.5
    gains = []
    for _ in range(10):
        x, a, b = rng.normal(size=(3, n))
        cloud = on_sky(slope * spread * x + width * a, slope * spread * x + width * b)
        gains.append(expected_gain(spread * x, cloud, sigma * ARCSEC))
    noise = width**2 + sigma**2
    after = 1.0 / (1.0 / spread**2 + 2.0 * slope**2 / noise)
    true = 0.5 * np.log2((spread**2 + RESOLUTION**2) / (after + RESOLUTION**2))
    assert np.mean(gains) == pytest.approx(true, abs=0.12)


def test_of_a_curve_is_nearly_what_the_resolution_leaves():
    """ln(1 / s) on a line: the observation determines it at every point."""
    rng = np.random.default_rng(2)
    x = 0.7 * rng.normal(size=1000)
    gain = expected_gain(x, on_sky(1000.0 * np.exp(-x), np.zeros(1000)), 0.3 * ARCSEC)
    assert np.log2(0.7 / RESOLUTION) - 0.6 < gain < np.log2(0.7 / RESOLUTION) + 0.1


def test_of_two_lobes_told_apart_is_one_bit():
    rng = np.random.default_rng(3)
    lobe = rng.random(1000) < 0.5
    x = 5.0 * lobe + 0.1 * rng.normal(size=1000)
    # nothing is learnt within a lobe
    cloud = on_sky(3600.0 * lobe, rng.normal(size=1000))
    assert expected_gain(x, cloud, 0.3 * ARCSEC) == pytest.approx(1.0, abs=0.12)


def test_is_none_where_range_and_direction_are_independent():
    x, a, b = np.random.default_rng(4).normal(size=(3, 1000))
    assert expected_gain(x, on_sky(100.0 * a, 100.0 * b), 0.3 * ARCSEC) < 0.1


def test_is_none_below_the_resolution():
    x = 1e-3 * np.random.default_rng(5).normal(size=300)
    assert expected_gain(x, on_sky(1e6 * x, x), 0.3 * ARCSEC) < 0.02


def test_draws_that_cannot_be_seen_do_not_count():
    rng = np.random.default_rng(6)
    x = rng.normal(size=300)
    cloud = on_sky(100.0 * x, rng.normal(size=300))
    gain = expected_gain(x, cloud, 0.3 * ARCSEC)
    lost = np.full((100, 3), np.nan)
    more = np.concatenate([cloud, lost])
    assert expected_gain(np.concatenate([x, x[:100]]), more, 0.3 * ARCSEC) == gain
    assert np.isnan(expected_gain(x, np.concatenate([cloud[:19], np.full((281, 3), np.nan)]), 1e-6))


def test_equal_draws_are_no_information_and_no_error():
    cloud = on_sky(np.zeros(300), np.zeros(300))
    assert expected_gain(np.zeros(300), cloud, 0.3 * ARCSEC) == pytest.approx(0.0, abs=1e-9)


def test_draws_on_the_other_side_of_the_sky_are_far():
    """Two lobes a half turn apart, which a projection would put on one place."""
    rng = np.random.default_rng(7)
    lobe = rng.random(600) < 0.5
    cloud = on_sky(0.0 * lobe, rng.normal(size=600)) * np.where(lobe, -1.0, 1.0)[:, None]
    x = 5.0 * lobe + 0.1 * rng.normal(size=600)
    assert expected_gain(x, cloud, 0.3 * ARCSEC) == pytest.approx(1.0, abs=0.1)
