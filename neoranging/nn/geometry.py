"""Vectors, angles and three-point rates in torch, equal to those in ``neoranging.core``.

Vectors are rows, shape ``(..., 3)``, ICRS equatorial axes.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

_STILL_RAD_D = 1.0e-12  # rad/d; a slower motion has no direction


def dot(a: Tensor, b: Tensor) -> Tensor:
    """Scalar product along the last axis, of two or three components."""
    # a sum along an axis so short takes torch three times as long
    first, *rest = (a * b).unbind(-1)
    return sum(rest, start=first)


def cross(a: Tensor, b: Tensor) -> Tensor:
    """Vector product along the last axis."""
    return torch.linalg.cross(a, b, dim=-1)


def line_of_sight(ra: Tensor, dec: Tensor) -> Tensor:
    """Unit vector towards (ra, dec) [rad], shape ``(..., 3)``."""
    cos_dec = torch.cos(dec)
    return torch.stack([cos_dec * torch.cos(ra), cos_dec * torch.sin(ra), torch.sin(dec)], dim=-1)


def sky_basis(ra: Tensor, dec: Tensor) -> tuple[Tensor, Tensor]:
    """Unit vectors towards east and north at (ra, dec) [rad]."""
    sin_ra, cos_ra, sin_dec = torch.sin(ra), torch.cos(ra), torch.sin(dec)
    east = torch.stack([-sin_ra, cos_ra, torch.zeros_like(sin_ra)], dim=-1)
    north = torch.stack([-sin_dec * cos_ra, -sin_dec * sin_ra, torch.cos(dec)], dim=-1)
    return east, north


def speed(rate: Tensor) -> Tensor:
    """Length of motions on the sky [rad/d], shape ``(..., 2)`` -> ``(...)``; never quite zero."""
    return torch.sqrt(dot(rate, rate).clamp_min(_STILL_RAD_D**2))


class MotionFrame(NamedTuple):
    """Right-handed axes of the motion on the sky; each ``(..., 3)``."""

    sight: Tensor
    along: Tensor
    across: Tensor

    @classmethod
    def of(cls, sky: Tensor, sky_rate: Tensor) -> MotionFrame:
        """Frame of the direction (ra, dec) and its (east, north) rate, each ``(..., 2)``."""
        ra, dec = sky.unbind(-1)
        east, north = sky_basis(ra, dec)
        heading = sky_rate / speed(sky_rate)[..., None]
        along = heading[..., :1] * east + heading[..., 1:] * north
        sight = line_of_sight(ra, dec)
        return cls(sight, along, cross(sight, along))

    def components(self, vector: Tensor) -> Tensor:
        """Components of vectors along the three axes."""
        return torch.stack([dot(vector, axis) for axis in self], dim=-1)


class TripletMotion(NamedTuple):
    """Three-point motion at the middle epoch: coordinate rates and accelerations, each (B,)."""

    ra_rate: Tensor
    dec_rate: Tensor
    ra_acc: Tensor
    dec_acc: Tensor


def three_point(dt1: Tensor, dt3: Tensor, ra: Tensor, dec: Tensor) -> TripletMotion:
    """Rates and accelerations at the middle of three observations (paper, eq:attr_rates).

    Parameters
    ----------
    dt1, dt3 : Tensor, shape (B,)
        First and last epoch minus the middle one [d].
    ra, dec : Tensor, shape (B, 3)
        Directions [rad]; differences of right ascension are wrapped.

    Returns
    -------
    TripletMotion
        [rad/d] and [rad/d^2], no cos(dec); where two epochs coincide, the straight line through
        the other two.
    """
    missing1, missing3 = dt1 == 0.0, dt3 == 0.0
    h1 = torch.where(missing1, torch.ones_like(dt1), -dt1)
    h3 = torch.where(missing3, torch.ones_like(dt3), dt3)
    straight = missing1 | missing3
    motion = []
    for angle in (ra, dec):
        # differences of angles in [-pi, pi)
        step = torch.remainder(torch.diff(angle, dim=-1) + torch.pi, 2.0 * torch.pi) - torch.pi
        before, after = step[..., 0] / h1, step[..., 1] / h3
        before = torch.where(missing1, after, before)
        after = torch.where(missing3, before, after)
        rate = (before * h3 + after * h1) / (h1 + h3)
        acc = 2.0 * (after - before) / (h1 + h3)
        motion.append((rate, torch.where(straight, torch.zeros_like(acc), acc)))
    (ra_rate, ra_acc), (dec_rate, dec_acc) = motion
    return TripletMotion(ra_rate, dec_rate, ra_acc, dec_acc)
