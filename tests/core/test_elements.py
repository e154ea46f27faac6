"""Elements and states: round trips on every conic and every degenerate orientation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from neoranging.constants import GM_SUN
from neoranging.core.elements import elements_to_state, state_to_elements
from neoranging.core.kepler import mean_anomaly

CIRCULAR = np.sqrt(GM_SUN)


def assert_round_trip(r, v, mu=GM_SUN, rtol=1e-9):
    back_r, back_v = elements_to_state(*state_to_elements(r, v, mu)[:6], mu)
    assert np.linalg.norm(back_r - r) <= rtol * np.linalg.norm(r)
    assert np.linalg.norm(back_v - v) <= rtol * np.linalg.norm(v)


def test_equatorial_retrograde_orbit_of_the_earth():
    # https://github.com/poliastro/poliastro/issues/1276: poliastro returns x = -9999.9 km
    r, v, mu = np.array([9946.2, 1035.4, 0.0]), np.array([7.0, -0.1, 0.0]), 398600.4418
    elements = state_to_elements(r, v, mu)
    assert elements.inc == np.pi
    assert elements.ecc == pytest.approx(0.99341245, abs=1e-8)
    assert_round_trip(r, v, mu)


@pytest.mark.parametrize("angle", np.radians([0.0, 33.0, 90.0, 180.0, 200.0, 300.0]))
@pytest.mark.parametrize("speed", [-1.2, -1.0, 0.7, 1.0, np.sqrt(2.0), 1.8])
def test_motion_exactly_in_the_reference_plane(angle, speed):
    """Inclination 0 and 180 deg exactly, circular, elliptic, parabolic and hyperbolic."""
    r = np.array([np.cos(angle), np.sin(angle), 0.0])
    v = speed * CIRCULAR * np.array([-np.sin(angle), np.cos(angle), 0.0])
    elements = state_to_elements(r, v)
    assert elements.inc == (0.0 if speed > 0 else np.pi)
    assert elements.raan == 0.0
    assert_round_trip(r, v, rtol=1e-14)


@pytest.mark.parametrize("inc", np.radians([0.0, 1e-9, 20.0, 90.0, 179.0, 180.0]))
def test_exactly_circular_orbit(inc):
    latitude = np.radians(np.arange(0.0, 360.0, 15.0))
    r, v = elements_to_state(1.0, 0.0, inc, 0.0, 0.0, latitude)
    elements = state_to_elements(r, v)
    assert (elements.argp == 0.0).all()
    assert (elements.ecc < 1e-14).all()
    np.testing.assert_allclose(elements.a, 1.0, rtol=1e-14)
    back = elements_to_state(*elements[:6])
    np.testing.assert_allclose(back, [r, v], atol=5e-14)


def test_parabola_and_its_neighbours():
    r, v = elements_to_state(0.9, [1.0 - 1e-9, 1.0, 1.0 + 1e-9], 0.4, 1.0, 2.0, 1.5)
    elements = state_to_elements(r, v)
    np.testing.assert_allclose(elements.q, 0.9, rtol=1e-14)
    np.testing.assert_allclose(elements.ecc, 1.0, atol=2e-9)
    exact = state_to_elements([1.0, 0.0, 0.0], [0.0, np.sqrt(2.0), 0.0], mu=1.0)
    assert exact.q == pytest.approx(1.0)
    assert abs(exact.a) > 1e14


angle = st.floats(0.0, 2.0 * np.pi, exclude_max=True)


@settings(deadline=None, max_examples=400)
@given(
    q=st.floats(0.01, 30.0),
    ecc=st.one_of(st.floats(0.0, 0.999), st.floats(1.001, 8.0), st.just(1.0), st.just(0.0)),
    inc=st.one_of(st.floats(0.0, np.pi), st.just(0.0), st.just(np.pi)),
    raan=angle,
    argp=angle,
    nu=st.floats(-np.pi, np.pi),
)
def test_round_trip_of_elements(q, ecc, inc, raan, argp, nu):
    assume(1.0 + ecc * np.cos(nu) > 1e-3)
    r, v = elements_to_state(q, ecc, inc, raan, argp, nu)
    assert_round_trip(r, v)
    elements = state_to_elements(r, v)
    assert elements.q == pytest.approx(q, rel=1e-9)
    assert elements.ecc == pytest.approx(ecc, abs=1e-9)
    assert elements.inc == pytest.approx(inc, abs=1e-7)
    assert 0.0 <= elements.raan < 2.0 * np.pi
    assert 0.0 <= elements.argp < 2.0 * np.pi
    # The direction of perihelion in space, where it exists, whatever the node did.
    if ecc > 1e-3 and 1e-3 < inc < np.pi - 1e-3:
        assert np.cos(elements.raan - raan) == pytest.approx(1.0, abs=1e-9)
        assert np.cos(elements.argp - argp) == pytest.approx(1.0, abs=1e-9)
        assert np.cos(elements.nu - nu) == pytest.approx(1.0, abs=1e-9)


@settings(deadline=None, max_examples=300)
@given(
    r=st.tuples(*[st.floats(-3.0, 3.0)] * 3),
    v=st.tuples(*[st.floats(-0.03, 0.03)] * 3),
)
def test_round_trip_of_states(r, v):
    r, v = np.array(r), np.array(v)
    assume(np.linalg.norm(r) > 1e-2)
    # Nearly rectilinear orbits outgrow the digits of an eccentricity, see the module.
    assume(np.sum(np.cross(r, v) ** 2) > 1e-5 * GM_SUN * np.linalg.norm(r))
    assert_round_trip(r, v)


def test_semimajor_axis_and_perihelion_agree():
    r, v = elements_to_state(0.7, [0.0, 0.4, 0.95, 1.3], 0.2, 0.3, 0.4, 1.0)
    elements = state_to_elements(r, v)
    np.testing.assert_allclose(elements.a * (1.0 - elements.ecc), 0.7, rtol=1e-12)


def test_impossible_elements_and_states_are_nan():
    assert np.isnan(elements_to_state(-1.0, 0.5, 0, 0, 0, 0)).all()
    assert np.isnan(elements_to_state(1.0, -0.5, 0, 0, 0, 0)).all()
    assert np.isnan(elements_to_state(1.0, 1.5, 0, 0, 0, np.radians(140.0))).all()
    assert np.isnan(state_to_elements([np.nan, 0.0, 0.0], [0.0, 1.0, 0.0])).all()
    radial = state_to_elements([1.0, 0.5, 0.2], [0.01, 0.005, 0.002])
    assert radial.q == 0.0
    assert radial.ecc == 1.0
    assert np.isnan([radial.inc, radial.raan, radial.argp, radial.nu]).all()


def test_shapes_broadcast():
    r, v = elements_to_state(np.ones((4, 1)), np.linspace(0, 0.9, 3), 0.1, 0.2, 0.3, 0.4)
    assert r.shape == v.shape == (4, 3, 3)
    elements = state_to_elements(r, v)
    assert all(x.shape == (4, 3) for x in elements)
    assert mean_anomaly(elements.nu, elements.ecc).shape == (4, 3)
    assert state_to_elements(r[0, 0], v[0, 0]).q.shape == ()
