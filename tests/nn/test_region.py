import numpy as np
import pytest
import torch

from neoranging.constants import GM_EARTH, R_EARTH
from neoranging.core import admissible
from neoranging.core.attributable import from_fit, from_three_points
from neoranging.lab.training.tangents import jvp
from neoranging.nn import region


@pytest.fixture(scope="module")
def numpy_coefficients(night):
    a = from_fit(night.arcs)
    return admissible.energy_coefficients(
        a.ra, a.dec, a.ra_rate, a.dec_rate, night_position(night), a.velocity
    )


def night_position(night):
    from neoranging.core.attributable import tangent_fit

    return tangent_fit(night.arcs).observer[:, :, 0]


@pytest.fixture(scope="module")
def c(numpy_coefficients):
    return torch.from_numpy(numpy_coefficients)


def test_topocentric_coefficients_are_those_of_the_numeric_core(night_inputs, numpy_coefficients):
    found = region.energy_coefficients(night_inputs, "topocenter").numpy()
    scale = np.abs(numpy_coefficients).max(axis=0)
    np.testing.assert_allclose(found, numpy_coefficients, rtol=1e-12, atol=1e-12 * scale.min())


def test_geocentric_coefficients_are_those_of_the_numeric_core(night, night_inputs):
    a = from_three_points(night.arcs)
    expected = admissible.energy_coefficients(
        a.ra,
        a.dec,
        a.ra_rate,
        a.dec_rate,
        night_inputs.earth.numpy(),
        night_inputs.earth_rate.numpy(),
    )
    found = region.energy_coefficients(night_inputs, "geocenter").numpy()
    # rates differ by the last bit of an MJD, 1e-11 d in arcs of an hour
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("rho", [R_EARTH, 0.002, 0.3, 5.0])
def test_energies_and_rates_equal_the_numeric_core(rho, c, numpy_coefficients):
    rho_dot = np.linspace(-0.03, 0.03, len(numpy_coefficients))
    pairs = [
        (region.sun_energy, admissible.sun_energy),
        (region.earth_energy, admissible.earth_energy),
    ]
    distance = torch.full((len(c),), rho, dtype=torch.float64)
    inside = region.is_admissible(c, distance, torch.from_numpy(rho_dot)).numpy()
    assert np.array_equal(inside, admissible.is_admissible(numpy_coefficients, rho, rho_dot))
    for ours, theirs in pairs:
        found = ours(c, distance, torch.from_numpy(rho_dot)).numpy()
        expected = theirs(numpy_coefficients, rho, rho_dot)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-16)
    found = region.escape_rate(c, distance).numpy()
    expected = admissible.escape_rate(numpy_coefficients, rho)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
    found = region.heliocentric_distance(c, distance).numpy()
    expected = admissible.heliocentric_distance(numpy_coefficients, rho)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    low, high = admissible.range_rate_interval(numpy_coefficients, rho)
    square = region.strip_square(c, distance).numpy()
    open_ = np.isfinite(low)
    assert np.array_equal(square >= 0.0, open_)
    np.testing.assert_allclose(
        np.sqrt(square[open_]), 0.5 * (high - low)[open_], rtol=1e-11, atol=1e-12
    )


def wide_coefficients(n=4000):
    """Motions from far slower to far faster than any survey meets, at all elongations."""
    rng = np.random.default_rng(5)
    longitude, turn, ra = rng.uniform(0.0, 2.0 * np.pi, (3, n))
    rate, dec = 10.0 ** rng.uniform(-4.0, 0.5, n), np.arcsin(rng.uniform(-0.95, 0.95, n))
    zero = np.zeros(n)
    position = np.stack([np.cos(longitude), np.sin(longitude), zero], axis=1)
    position *= rng.uniform(0.983, 1.017, n)[:, None]
    velocity = 0.0172 * np.stack([-np.sin(longitude), np.cos(longitude), zero], axis=1)
    return admissible.energy_coefficients(
        ra, dec, rate * np.cos(turn) / np.cos(dec), rate * np.sin(turn), position, velocity
    )


def test_limits_are_the_roots_of_the_numeric_core():
    c = wide_coefficients()
    limits = region.range_limits(torch.from_numpy(c)).unbind(-1)
    limits = [limit.numpy() for limit in limits]
    intervals = admissible.range_intervals(c)
    single = np.isnan(intervals[:, 1, 0])
    assert 0 < (~single).sum() < len(c)
    np.testing.assert_allclose(limits[0][single], intervals[single, 0, 1], rtol=1e-9)
    assert np.array_equal(limits[0][single], limits[1][single])
    assert np.array_equal(limits[0][single], limits[2][single])
    double = ~single
    found = np.stack([x[double] for x in limits], axis=1)
    expected = intervals[double].reshape(-1, 4)[:, 1:]
    agree = np.isclose(found, expected, rtol=1e-7).all(axis=1)
    merged = np.isclose(found, expected[:, [2, 2, 2]], rtol=1e-7).all(axis=1)
    first_only = np.isclose(found, expected[:, [0, 0, 0]], rtol=1e-7).all(axis=1)
    assert (agree | merged | first_only).all()
    assert agree.mean() > 0.9


def test_limits_have_the_slope_of_the_roots():
    c = torch.from_numpy(wide_coefficients(300))
    direction = torch.randn(c.shape, dtype=c.dtype) * c.abs() * 1e-3
    _, slope = jvp(lambda x: region.range_limits(x)[:, 2], (c,), (direction,))
    h = 1e-3
    late, early = (region.range_limits(c + s * h * direction)[:, 2] for s in (1, -1))
    expected = (late - early) / (2 * h)
    error = (slope - expected).abs() / (expected.abs() + 1e-9)
    assert error.quantile(0.95) < 1e-4


def test_escape_rate_is_zero_with_zero_slope_where_all_escape():
    c = torch.tensor([[1.0, 0.0, 0.04, 0.0, 3e-4, 0.0]], dtype=torch.float64)
    rho = torch.tensor([0.5], dtype=torch.float64, requires_grad=True)
    rate = region.escape_rate(c, rho)
    rate.sum().backward()
    assert rate.item() == rho.grad.item() == 0.0
    near = torch.tensor([R_EARTH], dtype=torch.float64)
    expected = (2 * GM_EARTH / R_EARTH) ** 0.5
    assert region.escape_rate(c, near).item() == pytest.approx(expected, rel=1e-6)
