"""Directions on the celestial sphere, their rates, and the two planes the field uses.

Vectors are rows: shape ``(..., 3)``, ICRS equatorial axes unless a name says ecliptic.
"""

from __future__ import annotations

import math

import numpy as np

from neoranging.constants import OBLIQUITY_J2000
from neoranging.typing import BoolArray, FloatArray

_COS_EPS = math.cos(OBLIQUITY_J2000)
_SIN_EPS = math.sin(OBLIQUITY_J2000)


def dot(a: FloatArray, b: FloatArray) -> FloatArray:
    """Scalar product along the last axis."""
    return np.einsum("...i,...i->...", a, b)


def cross(a: FloatArray, b: FloatArray) -> FloatArray:
    """Vector product along the last axis; `numpy.cross` is five times slower on single vectors."""
    a1, a2, a3 = a[..., 0], a[..., 1], a[..., 2]
    b1, b2, b3 = b[..., 0], b[..., 1], b[..., 2]
    return np.stack([a2 * b3 - a3 * b2, a3 * b1 - a1 * b3, a1 * b2 - a2 * b1], axis=-1)


def norm(a: FloatArray) -> FloatArray:
    """Euclidean length along the last axis."""
    return np.sqrt(dot(a, a))


def wrap_angle(angle: FloatArray) -> FloatArray:
    """Reduce an angle difference [rad] to [-pi, pi)."""
    return (angle + np.pi) % (2.0 * np.pi) - np.pi


def beyond_poles(dec: FloatArray) -> BoolArray:
    """Declinations [rad] that are none, but for a rounding at the poles."""
    return np.abs(dec) > 0.5 * np.pi * (1.0 + 1e-12)


def line_of_sight(ra: FloatArray, dec: FloatArray) -> FloatArray:
    """Unit vector towards (ra, dec) [rad]; shape ``(..., 3)``."""
    cos_dec = np.cos(dec)
    return np.stack([cos_dec * np.cos(ra), cos_dec * np.sin(ra), np.sin(dec)], axis=-1)


def sky_basis(ra: FloatArray, dec: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Unit vectors towards increasing right ascension (east) and declination (north).

    The first is the derivative of the line of sight by ra divided by cos(dec), the second its
    derivative by dec.
    """
    sin_ra, cos_ra = np.sin(ra), np.cos(ra)
    sin_dec, cos_dec = np.sin(dec), np.cos(dec)
    east = np.stack([-sin_ra, cos_ra, np.zeros_like(sin_ra)], axis=-1)
    north = np.stack([-sin_dec * cos_ra, -sin_dec * sin_ra, cos_dec], axis=-1)
    return east, north


def line_of_sight_rate(
    ra: FloatArray, dec: FloatArray, ra_rate: FloatArray, dec_rate: FloatArray
) -> FloatArray:
    """Time derivative of the line of sight [1/d]; ``ra_rate`` is without cos(dec)."""
    east, north = sky_basis(ra, dec)
    return (ra_rate * np.cos(dec))[..., None] * east + np.asarray(dec_rate)[..., None] * north


def radec(vector: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Right ascension in [0, 2 pi) and declination [rad] of vectors of any length."""
    x, y, z = vector[..., 0], vector[..., 1], vector[..., 2]
    ra = np.arctan2(y, x) % (2.0 * np.pi)
    # a hair west of 0 h the remainder rounds to a full turn
    return np.where(ra >= 2.0 * np.pi, 0.0, ra), np.arctan2(z, np.hypot(x, y))


def frame_about(direction: FloatArray) -> FloatArray:
    """Unit vectors along directions, and there to the east and to the north, shape (..., 3, 3)."""
    unit = direction / norm(direction)[..., None]
    return np.stack([unit, *sky_basis(*radec(direction))], axis=-2)


def equal_area(frame: FloatArray, direction: FloatArray) -> FloatArray:
    """Lambert's azimuthal projection of n directions about the middles of frames.

    Areas are right however far a direction is; one opposite to the middle, which lies all around,
    is put on the circle that it is.

    Parameters
    ----------
    frame : ndarray, shape (..., 3, 3)
        Of `frame_about`.
    direction : ndarray, shape (n, 3)
        Unit vectors.

    Returns
    -------
    ndarray, shape (..., n, 2)
        Offsets to the east and to the north [rad].
    """
    # three products, whose numbers lie together, are faster than one
    along, east, north = (frame[..., axis, :] @ direction.T for axis in range(3))
    scale = np.sqrt(2.0 / np.maximum(1.0 + along, 1e-12))
    return np.moveaxis(np.stack([scale * east, scale * north]), 0, -1)


def from_equal_area(frame: FloatArray, plane: FloatArray) -> FloatArray:
    """Directions of points of the plane of one frame, (..., 2) to (..., 3)."""
    square = np.minimum(np.sum(plane**2, axis=-1, keepdims=True), 4.0)
    across = plane * np.sqrt(1.0 - 0.25 * square)
    return np.concatenate([1.0 - 0.5 * square, across], axis=-1) @ frame


def equatorial_to_ecliptic(vector: FloatArray) -> FloatArray:
    """Turn ICRS equatorial axes into ecliptic J2000 axes (about x, obliquity 84381.448 arcsec)."""
    x, y, z = vector[..., 0], vector[..., 1], vector[..., 2]
    return np.stack([x, _COS_EPS * y + _SIN_EPS * z, _COS_EPS * z - _SIN_EPS * y], axis=-1)


def ecliptic_to_equatorial(vector: FloatArray) -> FloatArray:
    """Turn ecliptic J2000 axes into ICRS equatorial axes."""
    x, y, z = vector[..., 0], vector[..., 1], vector[..., 2]
    return np.stack([x, _COS_EPS * y - _SIN_EPS * z, _COS_EPS * z + _SIN_EPS * y], axis=-1)
