"""Vectors, angles and three-point rates of any array library, equal to those in the numeric core.

Vectors are rows, shape ``(..., 3)``, ICRS equatorial axes.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from neoranging.nn.arrays import Array, joined, namespace_of

_STILL_RAD_D: Final = 1.0e-12
"""Motion [rad/d] below which there is no direction."""


def dot(a: Array, b: Array) -> Array:
    """Scalar product along the last axis, of two or three components."""
    # a sum along an axis so short takes three times as long
    product = a * b
    two = product[..., 0] + product[..., 1]
    return two if product.shape[-1] == 2 else two + product[..., 2]


class Axes(NamedTuple):
    """Unit vectors at directions on the sky; each ``(..., 3)``."""

    sight: Array
    east: Array
    north: Array

    @classmethod
    def at(cls, sky: Array) -> Axes:
        """Axes at directions (ra, dec) [rad], ``(..., 2)``."""
        xp = namespace_of(sky)
        sines, cosines = xp.sin(sky), xp.cos(sky)
        sin_ra, sin_dec = sines[..., 0], sines[..., 1]
        cos_ra, cos_dec = cosines[..., 0], cosines[..., 1]
        return cls(
            joined(cos_dec * cos_ra, cos_dec * sin_ra, sin_dec),
            joined(-sin_ra, cos_ra, xp.zeros_like(sin_ra)),
            joined(-sin_dec * cos_ra, -sin_dec * sin_ra, cos_dec),
        )

    def tangential(self, components: Array) -> Array:
        """Vectors with the components (east, north), ``(..., 2) -> (..., 3)``."""
        return components[..., :1] * self.east + components[..., 1:] * self.north


def speed(rate: Array) -> Array:
    """Length of motions on the sky [rad/d], shape ``(..., 2)`` -> ``(...)``; never quite zero."""
    xp = namespace_of(rate)
    return xp.sqrt(xp.maximum(dot(rate, rate), _STILL_RAD_D**2))


def in_frame(sky: Array, heading: Array, *vectors: Array) -> Array:
    """Components of vectors (B, 3) in the frame of the motion, (B, axes, vectors).

    The right-handed axes are those of sight, along the motion and across it; ``heading`` (B, 2) are
    the components of the second to east and north.
    """
    xp, axes = namespace_of(sky), Axes.at(sky)
    # the vector product of sight and motion, by the axes of the sky
    across = axes.tangential(joined(-heading[..., 1], heading[..., 0]))
    frame = (axes.sight, axes.tangential(heading), across)
    rows = xp.concat([axis[..., None, :] for axis in frame], axis=-2)
    return rows @ joined(*vectors)


class TripletMotion(NamedTuple):
    """Three-point motion at the middle epoch: coordinate rates and accelerations, each (B,)."""

    ra_rate: Array
    dec_rate: Array
    ra_acc: Array
    dec_acc: Array


def three_point(dt1: Array, dt3: Array, ra: Array, dec: Array) -> TripletMotion:
    """Rates and accelerations at the middle of three observations (paper, eq:attr_rates).

    Parameters
    ----------
    dt1, dt3 : Array, shape (B,)
        First and last epoch minus the middle one [d].
    ra, dec : Array, shape (B, 3)
        Directions [rad]; differences of right ascension are wrapped.

    Returns
    -------
    TripletMotion
        [rad/d] and [rad/d^2], no cos(dec); where two epochs coincide, the straight line through
        the other two.
    """
    xp = namespace_of(dt1)
    missing1, missing3 = dt1 == 0.0, dt3 == 0.0
    h1 = xp.where(missing1, xp.ones_like(dt1), -dt1)
    h3 = xp.where(missing3, xp.ones_like(dt3), dt3)
    straight = missing1 | missing3
    motion = []
    for angle in (ra, dec):
        # differences of angles in [-pi, pi)
        step = xp.remainder(angle[..., 1:] - angle[..., :-1] + math.pi, 2.0 * math.pi) - math.pi
        before, after = step[..., 0] / h1, step[..., 1] / h3
        before = xp.where(missing1, after, before)
        after = xp.where(missing3, before, after)
        rate = (before * h3 + after * h1) / (h1 + h3)
        acc = 2.0 * (after - before) / (h1 + h3)
        motion.append((rate, xp.where(straight, xp.zeros_like(acc), acc)))
    (ra_rate, ra_acc), (dec_rate, dec_acc) = motion
    return TripletMotion(ra_rate, dec_rate, ra_acc, dec_acc)
