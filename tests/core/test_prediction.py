"""States, sightings and residuals, with light time."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import prediction as reference

from neoranging.constants import C_AU_PER_DAY, GM_SUN
from neoranging.core.geometry import dot, line_of_sight, norm, radec, sky_basis
from neoranging.core.kepler import propagate
from neoranging.core.prediction import object_state, sight, sky_residuals

EARTH = np.array([[0.9, 0.4, 0.17]]), np.array([[-0.0075, 0.0142, 0.0061]])


def one(*values):
    return [np.array([value]) for value in values]


@settings(max_examples=200, deadline=None)
@given(
    st.floats(0.0, 6.28),
    st.floats(-1.55, 1.55),
    st.floats(-0.03, 0.03),
    st.floats(-0.03, 0.03),
    st.floats(0.001, 3.0),
    st.floats(-0.02, 0.02),
)
def test_a_state_is_seen_where_its_attributable_says(ra, dec, ra_rate, dec_rate, rho, rho_dot):
    sky = one(ra, dec, ra_rate, dec_rate)
    r, v = object_state(*sky, *EARTH, *one(rho, rho_dot))
    if norm(r)[0] < 0.1:
        return  # inside the corona the object turns within the light time
    t = np.zeros(1)
    seen = sight(r, v, t - rho / C_AU_PER_DAY, t, *EARTH)
    blur = 1e-15 / rho  # positions of order 1 au, rounded
    assert seen.rho[0] == pytest.approx(rho, rel=1e-12 + blur)
    assert seen.rho_dot[0] == pytest.approx(rho_dot, abs=1e-13 + 0.1 * blur)
    np.testing.assert_allclose(seen.direction, line_of_sight(*sky[:2]), atol=1e-13 + blur)


@settings(max_examples=50, deadline=None)
@given(st.floats(0.05, 2.0), st.floats(-0.01, 0.01), st.floats(-0.01, 0.01))
def test_rates_are_derivatives_by_time_of_reception(rho, rho_dot, rate):
    h = 1e-3
    sky = one(1.0, 0.3, rate, -0.5 * rate)
    r, v = object_state(*sky, *EARTH, *one(rho, rho_dot))
    epoch = np.array([-rho / C_AU_PER_DAY])
    steps = np.array([-h, h])
    observers = EARTH[0] + steps[:, None] * EARTH[1]
    states = (np.repeat(x, 2, axis=0) for x in (r, v, epoch))
    seen = sight(*states, steps, observers, np.repeat(EARTH[1], 2, axis=0))
    gravity = GM_SUN / norm(r)[0] ** 2
    assert np.diff(seen.rho)[0] / (2.0 * h) == pytest.approx(
        rho_dot, abs=1e-11 + 10.0 * gravity * h**2
    )
    measured = np.diff(radec(seen.direction)[0])[0] / (2.0 * h)
    assert measured == pytest.approx(rate, abs=1e-10 + 10.0 * gravity * h**2 / rho)


@pytest.mark.parametrize("span", [1.0, 30.0, 100.0])
def test_light_time_is_that_of_the_path(span):
    """The object stands where it was a light time ago, for states given at any epoch."""
    rng = np.random.default_rng(4)
    r = np.array([1.4, 0.2, 0.1]) + 0.2 * rng.standard_normal((50, 3))
    v = np.array([-0.002, 0.013, 0.002]) + 0.002 * rng.standard_normal((50, 3))
    epoch, t = rng.uniform(0.0, span, (2, 50))
    observer = np.repeat(EARTH[0], 50, axis=0), np.repeat(EARTH[1], 50, axis=0)
    seen = sight(r, v, epoch, t, *observer)
    then, velocity = propagate(r, v, t - seen.rho / C_AU_PER_DAY - epoch)
    np.testing.assert_allclose(
        then, observer[0] + seen.rho[:, None] * seen.direction, rtol=1e-12, atol=1e-13
    )
    along = dot(velocity, seen.direction)
    expected = along * (1.0 - seen.rho_dot / C_AU_PER_DAY) - dot(observer[1], seen.direction)
    np.testing.assert_allclose(seen.rho_dot, expected, atol=1e-14)


def test_the_perspective_denominator_is_kept():
    """Along the line of sight a motion is no motion, across it the range divides it."""
    sky = one(0.7, 0.2, 0.01, 0.0)
    for rho in (0.01, 0.1, 1.0):
        r, v = object_state(*sky, *EARTH, *one(rho, 0.003))
        direction = line_of_sight(*sky[:2])
        relative = v[0] * (1.0 - 0.003 / C_AU_PER_DAY) - EARTH[1][0]
        across = relative - dot(relative, direction[0]) * direction[0]
        assert norm(across) / rho == pytest.approx(0.01 * np.cos(0.2), rel=1e-12)
        np.testing.assert_allclose(r[0] - EARTH[0][0], rho * direction[0], atol=1e-15)


def test_compiled_sightings_are_those_of_numpy(simulate):
    s = simulate(300, 3.0, seed=7)
    rng, owner = np.random.default_rng(7), s.arcs.owner
    r = s.r[owner] * (1.0 + 0.1 * rng.standard_normal((len(owner), 1)))
    epoch = s.epoch[owner] + rng.uniform(-300.0, 300.0, len(owner))
    r[::50], epoch[::49] = np.nan, np.inf
    arguments = r, s.v[owner], epoch, s.arcs.t, s.arcs.position, s.arcs.velocity
    for found, expected in zip(sight(*arguments), reference.sight(*arguments), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


class TestResiduals:
    def test_vanish_for_the_orbit_observed(self, simulate):
        s = simulate(100, 5.0, seed=8)
        assert np.abs(sky_residuals(s.arcs, s.r, s.v, s.epoch)).max() < 1e-12

    def test_are_offsets_to_the_east_and_north(self, simulate):
        s = simulate(40, 0.5, seed=9)
        east, north = sky_basis(s.arcs.ra, s.arcs.dec)
        shift = np.array([3.0e-6, -2.0e-6])
        moved = s.arcs.direction + shift[0] * east + shift[1] * north
        residuals = sky_residuals(s._with(*radec(moved)).arcs, s.r, s.v, s.epoch)
        np.testing.assert_allclose(residuals, np.tile(shift, (len(residuals), 1)), atol=2e-10)

    def test_do_not_see_the_origin_of_right_ascension(self, simulate):
        s = simulate(5, 0.5, seed=10)
        ra = s.arcs.ra + 2.0 * np.pi * np.sign(np.pi - s.arcs.ra)
        turned = sky_residuals(s._with(ra, s.arcs.dec).arcs, s.r, s.v, s.epoch)
        assert np.abs(turned).max() < 1e-12

    def test_are_those_of_numpy(self, simulate):
        s = simulate(200, 0.5, seed=11)
        state = 1.01 * s.r, s.v, s.epoch
        expected = reference.sky_residuals(s.arcs, *state)
        np.testing.assert_allclose(sky_residuals(s.arcs, *state), expected, atol=1e-13)

    def test_shape(self, simulate):
        s = simulate(7, 0.5, seed=10)
        assert sky_residuals(s.arcs, s.r, s.v, s.epoch).shape == (len(s.arcs.t), 2)
