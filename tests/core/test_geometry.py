"""Directions, their rates, and planes."""

import numpy as np
import pytest
from astropy import units as u
from astropy.coordinates import SkyCoord
from hypothesis import given
from hypothesis import strategies as st

from neoranging.core import geometry
from neoranging.core.geometry import (
    cross,
    dot,
    ecliptic_to_equatorial,
    equal_area,
    equatorial_to_ecliptic,
    frame_about,
    from_equal_area,
    line_of_sight,
    line_of_sight_rate,
    norm,
    radec,
    sky_basis,
    wrap_angle,
)

angles = st.floats(-10.0, 10.0)
right_ascensions = st.floats(0.0, 2.0 * np.pi, exclude_max=True)
declinations = st.floats(-np.pi / 2, np.pi / 2)

POLE = np.array([-0.3, 0.2, 0.9])


def test_products_are_numpys():
    a, b = np.random.default_rng(0).standard_normal((2, 5, 4, 3))
    np.testing.assert_allclose(cross(a, b), np.cross(a, b), atol=1e-15)
    np.testing.assert_allclose(dot(a, b), np.sum(a * b, axis=-1), atol=1e-15)
    np.testing.assert_allclose(norm(a), np.linalg.norm(a, axis=-1))
    np.testing.assert_allclose(cross(a, b[:1, :1]), np.cross(a, b[:1, :1]), atol=1e-15)


@given(angles)
def test_wrapped_angles_lie_in_one_turn_and_point_the_same_way(angle):
    wrapped = wrap_angle(np.array(angle))
    assert -np.pi <= wrapped < np.pi
    assert np.exp(1j * wrapped) == pytest.approx(np.exp(1j * angle), abs=1e-14)


@pytest.mark.parametrize(
    ("angle", "expected"), [(np.pi, -np.pi), (-np.pi, -np.pi), (0.0, 0.0), (2.0 * np.pi, 0.0)]
)
def test_wrapping_at_the_edges(angle, expected):
    assert wrap_angle(np.array(angle)) == expected


@given(right_ascensions, declinations, st.floats(1e-8, 1e8))
def test_radec_inverts_line_of_sight_at_any_length(ra, dec, length):
    back = radec(length * line_of_sight(np.array(ra), np.array(dec)))
    assert 0.0 <= back[0] < 2.0 * np.pi
    assert back[1] == pytest.approx(dec, abs=2e-15)
    assert wrap_angle(back[0] - ra) * np.cos(dec) == pytest.approx(0.0, abs=1e-14)


def test_radec_keeps_the_last_digit_near_the_poles():
    dec = np.pi / 2 - np.array([1e-3, 1e-6, 1e-9])
    assert radec(line_of_sight(np.full(3, 1.0), dec))[1] == pytest.approx(dec, abs=2e-16, rel=0)


def test_right_ascension_never_reaches_a_full_turn():
    """A hair west of 0 h rounds to a full turn when reduced naively."""
    ra, _ = radec(np.array([[1.0, -1e-18, 0.0], [1.0, -1e-300, 0.5], [1.0, -0.0, 0.0]]))
    assert (ra >= 0.0).all()
    assert (ra < 2.0 * np.pi).all()


def test_what_has_no_direction_has_no_right_ascension():
    ra, dec = radec(np.array([[np.nan, np.nan, np.nan], [0.0, 1.0, 0.0]]))
    np.testing.assert_array_equal(ra, [np.nan, np.pi / 2])
    np.testing.assert_array_equal(dec, [np.nan, 0.0])


@given(right_ascensions, declinations)
def test_the_sky_basis_is_right_handed_and_orthonormal(ra, dec):
    ra, dec = np.array(ra), np.array(dec)
    east, north = sky_basis(ra, dec)
    frame = np.stack([east, north, line_of_sight(ra, dec)])
    np.testing.assert_allclose(frame @ frame.T, np.eye(3), atol=3e-16)
    np.testing.assert_allclose(np.cross(east, north), frame[2], atol=3e-16)


@given(st.floats(0.5, 5.5), st.floats(-1.5, 1.5), st.floats(-0.5, 0.5), st.floats(-0.5, 0.5))
def test_rates_are_derivatives(ra, dec, ra_rate, dec_rate):
    h = 1e-6
    before, after = (
        line_of_sight(np.array(ra + s * ra_rate), np.array(dec + s * dec_rate)) for s in (-h, h)
    )
    rate = line_of_sight_rate(*map(np.array, (ra, dec, ra_rate, dec_rate)))
    np.testing.assert_allclose(rate, (after - before) / (2.0 * h), atol=1e-9)
    speed = np.hypot(ra_rate * np.cos(dec), dec_rate)
    assert norm(rate) == pytest.approx(speed, abs=1e-15)


def test_the_ecliptic_is_that_of_astropy_at_j2000():
    ra, dec = np.radians([[10.0, 120.0, 250.0], [-60.0, 0.0, 80.0]])
    # so far away that the Sun's place does not matter
    sky = SkyCoord(ra << u.rad, dec << u.rad, 1e9 * u.au, frame="icrs").heliocentriceclipticiau76
    ours = equatorial_to_ecliptic(line_of_sight(ra, dec))
    theirs = line_of_sight(sky.lon.rad, sky.lat.rad)
    # astropy adds the frame bias of the ICRS, 0.02 arcsec
    np.testing.assert_allclose(ours, theirs, atol=2e-7)


@given(st.lists(st.floats(-5.0, 5.0), min_size=3, max_size=3))
def test_turning_there_and_back(vector):
    vector = np.array(vector)
    back = ecliptic_to_equatorial(equatorial_to_ecliptic(vector))
    np.testing.assert_allclose(back, vector, atol=3e-15)


def test_every_shape_passes():
    for shape in ((), (4,), (2, 5)):
        ra, dec = np.full(shape, 1.0), np.full(shape, 0.5)
        assert geometry.line_of_sight(ra, dec).shape == (*shape, 3)
        assert geometry.radec(geometry.line_of_sight(ra, dec))[0].shape == shape
        assert geometry.line_of_sight_rate(ra, dec, ra, dec).shape == (*shape, 3)


class TestProjection:
    def test_goes_there_and_back_up_to_the_other_side(self):
        rng = np.random.default_rng(1)
        direction = rng.standard_normal((500, 3))
        direction /= np.linalg.norm(direction, axis=1)[:, None]
        frame = frame_about(POLE)
        assert frame @ frame.T == pytest.approx(np.eye(3), abs=1e-15)
        assert from_equal_area(frame, equal_area(frame, direction)) == pytest.approx(direction)

    def test_keeps_areas(self):
        """A uniform sphere is a uniform disk of radius 2."""
        rng = np.random.default_rng(2)
        direction = rng.standard_normal((20_000, 3))
        direction /= np.linalg.norm(direction, axis=1)[:, None]
        square = np.sum(equal_area(frame_about(POLE), direction) ** 2, axis=1)
        assert np.quantile(square, [0.1, 0.5, 0.9]) == pytest.approx([0.4, 2.0, 3.6], abs=0.05)

    def test_has_east_and_north(self):
        frame = frame_about(np.array([1.0, 0.0, 0.0]))
        ra, dec = 2e-4, 1e-4
        direction = np.array([np.cos(dec) * np.cos(ra), np.cos(dec) * np.sin(ra), np.sin(dec)])
        assert equal_area(frame, direction) == pytest.approx([ra, dec], rel=1e-6)

    def test_takes_many_frames_at_once(self):
        middles, direction = np.random.default_rng(3).standard_normal((2, 4, 3))
        direction /= np.linalg.norm(direction, axis=1)[:, None]
        every = equal_area(frame_about(middles), direction)
        assert every.shape == (4, 4, 2)
        for middle, plane in zip(middles, every, strict=True):
            assert plane == pytest.approx(equal_area(frame_about(middle), direction))
