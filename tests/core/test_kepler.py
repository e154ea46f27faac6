"""Two-body motion on every conic, against 40-digit arithmetic and against itself."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from reference import kepler as reference

from neoranging.constants import GM_SUN
from neoranging.core.elements import elements_to_state
from neoranging.core.kepler import (
    lagrange_coefficients,
    mean_anomaly,
    propagate,
    stumpff,
    true_anomaly,
)

ECCENTRICITIES = [0.0, 0.5, 0.985, 0.99, 0.99095023, 0.999999, 1.0, 1.000001, 1.5, 5.0]


def exact_true_anomaly(mean, ecc):
    """Solve Kepler's equation of the conic by bisection in 40 digits."""
    with mpmath.workdps(40):
        m, e = abs(mpmath.mpf(mean)), mpmath.mpf(ecc)
        if e == 1:
            d = mpmath.findroot(lambda d: d + d**3 / 3 - m, mpmath.cbrt(3 * m) + 1)
            return float(mpmath.sign(mean) * 2 * mpmath.atan(d))
        if e < 1:
            kepler, low, high = lambda x: x - e * mpmath.sin(x) - m, mpmath.mpf(0), mpmath.pi
        else:
            high = 2 * mpmath.log(m + 10 + mpmath.cbrt(6 * m))
            kepler, low = lambda x: e * mpmath.sinh(x) - x - m, mpmath.mpf(0)
        for _ in range(130):
            middle = (low + high) / 2
            low, high = (middle, high) if kepler(middle) < 0 else (low, middle)
        tangent = mpmath.tan(low / 2) if e < 1 else mpmath.tanh(low / 2)
        half = mpmath.atan(mpmath.sqrt((1 + e) / abs(1 - e)) * tangent)
        return float(mpmath.sign(mean) * 2 * half)


def orbit(ecc, nu, q=0.9):
    return elements_to_state(q, ecc, 0.3, 1.0, 2.0, nu)


@pytest.mark.parametrize(
    "z", [-400.0, -30.0, -1.0001, -0.9999, -1e-3, 0.0, 2e-4, 0.5, 1.1, 9.0, 39.5]
)
def test_stumpff_functions_against_mpmath(z):
    with mpmath.workdps(40):
        c2 = mpmath.nsum(lambda k: (-mpmath.mpf(z)) ** k / mpmath.factorial(2 * k + 2), [0, 100])
        c3 = mpmath.nsum(lambda k: (-mpmath.mpf(z)) ** k / mpmath.factorial(2 * k + 3), [0, 100])
    got = stumpff(z)
    # Near z = (2 pi)^2 c2 has a double zero: an absolute floor.
    np.testing.assert_allclose(got, [float(c2), float(c3)], rtol=4e-15, atol=1e-17)


def test_mean_anomaly_is_not_true_anomaly():
    # https://github.com/poliastro/poliastro/issues/1011
    assert np.degrees(true_anomaly(np.radians(90.0), 0.4)) == pytest.approx(131.82824, abs=5e-6)


@pytest.mark.parametrize("ecc", ECCENTRICITIES)
@pytest.mark.parametrize("mean", [-3.1, -0.5, -1e-4, 1e-9, 1e-3, 0.2, 1.0, 2.5, 3.14159, 40.0])
def test_true_anomaly_against_exact_arithmetic(ecc, mean):
    if ecc < 1.0 and mean > np.pi:
        pytest.skip("the oracle takes no whole revolutions")
    want = exact_true_anomaly(mean, ecc)
    assert true_anomaly(mean, ecc) == pytest.approx(want, rel=2e-13, abs=1e-300)
    assert mean_anomaly(want, ecc) == pytest.approx(mean, rel=1e-11)


def test_anomalies_at_the_turning_points_and_beyond_a_turn():
    ecc = np.array([0.0, 0.3, 0.999])
    np.testing.assert_allclose(np.abs(true_anomaly(np.full(3, np.pi), ecc)), np.pi, rtol=1e-15)
    np.testing.assert_array_equal(true_anomaly(np.zeros(5), [0.0, 0.5, 1.0, 1.5, 3.0]), 0.0)
    np.testing.assert_allclose(
        true_anomaly(0.4 + 2.0 * np.pi * np.arange(-3, 4), 0.5), true_anomaly(0.4, 0.5), rtol=1e-13
    )


def test_anomalies_that_do_not_exist_are_nan():
    assert np.isnan(mean_anomaly(np.radians(140.0), 1.5))  # the asymptote is at 131.8 deg
    assert np.isnan(true_anomaly(1.0, -0.1))
    assert np.isnan(mean_anomaly(1.0, -0.1))
    assert np.isnan(true_anomaly([np.nan, np.inf, 1.0], [0.1, 1.2, np.nan])).all()


@pytest.mark.parametrize("ecc", ECCENTRICITIES)
def test_no_conic_hangs_or_turns_nan(ecc):
    """The grid of https://github.com/poliastro/poliastro/issues/475, 907 and 1296."""
    nu = np.radians(np.arange(-179.0, 180.0))
    nu = nu[1.0 + ecc * np.cos(nu) > 1e-3]
    r, v = orbit(ecc, nu)
    dt = np.array([-3e5, -400.0, -1.0, 0.0, 1e-3, 1.0, 30.0, 1000.0, 1e6])
    r1, v1 = propagate(r[:, None], v[:, None], dt)
    assert np.isfinite(r1).all()
    assert np.isfinite(v1).all()
    # The invariants hold, whatever the arc.
    energy = 0.5 * np.sum(v1**2, -1) - GM_SUN / np.linalg.norm(r1, axis=-1)
    kinetic = 0.5 * np.sum(v1**2, -1)
    want = 0.5 * GM_SUN * (ecc - 1.0) / 0.9
    np.testing.assert_array_less(np.abs(energy - want), 2e-11 * (1 + kinetic / GM_SUN) * GM_SUN)


@pytest.mark.parametrize("ecc", ECCENTRICITIES)
def test_propagation_against_exact_anomalies(ecc):
    q, dt = 0.9, 77.0
    rate = (
        np.sqrt(GM_SUN / 2.0 / q**3) if ecc == 1.0 else np.sqrt(GM_SUN * abs(1 - ecc) ** 3 / q**3)
    )
    nu0 = -1.2
    nu1 = exact_true_anomaly(float(mean_anomaly(nu0, ecc)) + rate * dt, ecc)
    r, v = propagate(*orbit(ecc, nu0, q), dt)
    want = orbit(ecc, nu1, q)
    # 1 - e itself carries only ten digits at e = 0.999999.
    tolerance = 1e-12 if abs(ecc - 1.0) > 1e-3 or ecc == 1.0 else 1e-9
    np.testing.assert_allclose(r, want[0], rtol=tolerance)
    np.testing.assert_allclose(v, want[1], rtol=tolerance)


def test_earth_hyperbola_that_gave_nan():
    # https://github.com/poliastro/poliastro/issues/1296, in km and seconds
    r, v = np.array([-500.0, 1500.0, 4012.09]), np.array([5021.38, -2900.7, 1000.354])
    dt = np.array([0.0, 100.0, 1e4, 1e7])
    r1, v1 = propagate(r, v, dt, mu=398600.4418)
    assert np.isfinite(r1).all()
    back = propagate(r1, v1, -dt, mu=398600.4418)[0]
    np.testing.assert_allclose(back[:3], np.broadcast_to(r, (3, 3)), rtol=1e-4)
    np.testing.assert_allclose(r1[-1] / dt[-1], v1[-1], rtol=1e-3)


def test_short_arc_against_its_taylor_series():
    r, v, dt = np.array([0.9, 0.5, -0.1]), np.array([-0.008, 0.014, 0.003]), 0.02
    r0 = np.linalg.norm(r)
    sigma, psi = r @ v / r0**2, v @ v / r0**2
    u = GM_SUN / r0**3
    f, g, *_ = lagrange_coefficients(r, v, dt)
    # The remainder of order dt^4 (dt^5 for g) is far below the tolerance.
    assert f - 1 == pytest.approx(-u * dt**2 / 2 + u * sigma * dt**3 / 2, rel=1e-6)
    assert g - dt == pytest.approx(-u * dt**3 / 6 + u * sigma * dt**4 / 4, rel=1e-6)
    assert psi > 0


state = arrays(np.int64, (2, 3), elements=st.integers(-2000, 2000))


@settings(deadline=None, max_examples=300)
@given(state=state, dt=st.floats(-2000.0, 2000.0))
def test_determinant_and_return(state, dt):
    r, v = state[0] / 1e3, state[1] / 1e5
    h = np.linalg.norm(np.cross(r, v))
    f, g, fdot, gdot = lagrange_coefficients(r, v, dt)
    if np.linalg.norm(r) == 0.0:
        assert np.isnan(f)
        return
    assert np.isfinite([f, g, fdot, gdot]).all()
    if h < 1e-4:
        return  # nearly through the Sun: ill-conditioned by nature
    scale = 1.0 + abs(f * gdot) + abs(fdot * g)
    assert f * gdot - fdot * g == pytest.approx(1.0, abs=1e-9 * scale)
    there = propagate(r, v, dt)
    back = propagate(*there, -dt)[0]
    speed = np.linalg.norm(there[1])
    assert np.linalg.norm(back - r) < 1e-6 * (np.linalg.norm(r) + abs(dt) * speed)


def test_bad_input_is_nan_without_warning_and_leaves_neighbours_alone():
    r = np.tile([1.0, 0.2, 0.1], (9000, 1))
    v = np.tile([0.001, 0.017, 0.0], (9000, 1))
    dt = np.linspace(0.0, 1.0, 9000)
    want = propagate(r, v, dt)[0]
    r[17], v[4097], dt[8000], r[3] = np.nan, np.inf, np.nan, 0.0
    got = propagate(r, v, dt)[0]
    bad = [3, 17, 4097, 8000]
    assert np.isnan(got[bad]).all()
    np.testing.assert_array_equal(np.delete(got, bad, 0), np.delete(want, bad, 0))


def test_shapes():
    r, v = np.array([1.0, 0.0, 0.0]), np.array([0.0, 0.017, 0.0])
    assert propagate(r, v, 1.0)[0].shape == (3,)
    assert lagrange_coefficients(r, v, 1.0)[0].shape == ()
    assert propagate(np.tile(r, (4, 1)), np.tile(v, (4, 1)), 1.0)[0].shape == (4, 3)
    many = propagate(np.tile(r, (4, 1))[:, None], np.tile(v, (4, 1))[:, None], np.arange(5.0))
    assert many[1].shape == (4, 5, 3)
    assert propagate(np.empty((0, 3)), np.empty((0, 3)), np.empty(0))[0].shape == (0, 3)
    assert true_anomaly(0.1, 0.1).shape == ()


def test_a_radial_fall_bounces_and_ends():
    r, v = propagate(np.array([1.0, 0.0, 0.0]), np.zeros(3), np.array([10.0, 64.0, 65.0, 80.0]))
    assert np.isfinite(r).all()
    assert np.isfinite(v).all()
    assert (r[:, 0] > 0).all()


@pytest.mark.parametrize("span", [0.05, 3.0, 100.0, 3000.0])
def test_compiled_motion_is_that_of_numpy(span):
    rng = np.random.default_rng(8)
    r, v = rng.standard_normal((2, 2000, 3)) * np.array([1.0, 0.012])[:, None, None]
    dt = rng.uniform(-span, span, len(r))
    expected = np.array(reference.lagrange_coefficients(r, v, dt))
    scale = np.array([1.0, span, 1.0 / span, 1.0])[:, None]
    found = np.array(lagrange_coefficients(r, v, dt))
    assert np.percentile(np.abs(found - expected) / scale, 99.0) < 1e-12
    np.testing.assert_allclose(found / scale, expected / scale, rtol=1e-7, atol=1e-7)
    mean, ecc = rng.uniform(-6.0, 6.0, 2000), rng.uniform(0.0, 3.0, 2000)
    np.testing.assert_allclose(
        true_anomaly(mean, ecc), reference.true_anomaly(mean, ecc), rtol=1e-10, atol=1e-10
    )
