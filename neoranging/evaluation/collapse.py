"""What the turn of the Earth does to a classical method that takes the observer for its centre.

Let n be the normal of the plane of the first and the last line of sight of a triplet, and L the
second divided difference over its epochs: that of a function is its acceleration. Since n is
normal to the outer lines of sight, the observed curvature times the range is, without noise,

    rho b (n . u2) = n . L[object - Earth - station],

with b the weight of the middle epoch in L and u2 its line of sight. Seen from the centre, the term
of the station is missing on the right, and a root near the Earth, where the object falls to the Sun
as a body at the Earth does, has instead

    rho' b (n . u2) = n . (g(Earth) - L[Earth]),    g the pull of the Sun.

The Earth is all but such a body itself: what stands on the right is the pull of the Moon. The
curvature of a near object is mostly that of the station's path, a thousand times as much, and so
the root lies a thousand times too near. That is the degenerate root.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from neoranging.constants import GM_SUN
from neoranging.core.geometry import FloatArray, cross, dot, norm
from neoranging.datasets.arcs import to_core
from neoranging.datasets.schema import ArcTable

__all__ = ["COLUMNS_NEEDED", "DiurnalSignal", "diurnal_signal"]

COLUMNS_NEEDED = (
    *("t_mjd_tdb", "ra_rad", "dec_rad", "sigma_ra_rad", "sigma_dec_rad"),
    *("station", "stations", "rho_topo_au"),
)
"""Columns of a set that are looked at."""


class DiurnalSignal(NamedTuple):
    """How the station's path shows in M arcs."""

    significance: FloatArray
    """Curvature of the line of sight by the station's path, in standard errors of the observed
    curvature, shape (M,)."""
    root: FloatArray
    """Range [au] of the degenerate root of a noiseless triplet seen from the centre of the Earth,
    shape (M,); negative where there is none."""


def diurnal_signal(table: ArcTable) -> DiurnalSignal:
    """Significance of the diurnal motion in arcs, and the degenerate root that it makes.

    Parameters
    ----------
    table : ArcTable
        M labelled arcs, with `COLUMNS_NEEDED`.

    Returns
    -------
    DiurnalSignal
        NaN for arcs of less than three epochs.

    Raises
    ------
    DatasetError
        If a column is missing.
    """
    arcs, central = to_core(table, "topocenter"), to_core(table, "geocenter")
    triplet = arcs.triplet
    u, earth = arcs.direction[triplet], central.position[triplet]
    station = arcs.position[triplet] - earth
    rho = table["rho_topo_au"]
    with np.errstate(divide="ignore", invalid="ignore"):
        weight = _second_difference(arcs.t[triplet])
        normal = cross(u[:, 0], u[:, 2])
        normal /= norm(normal)[:, None]
        swing = dot(normal, _apply(weight, station))
        fall = dot(normal, _apply(weight, earth))
        pull = dot(normal, _pull_of_sun(earth[:, 1]))
        target = earth[:, 1] + station[:, 1] + rho[:, None] * u[:, 1]
        curvature = dot(normal, _pull_of_sun(target)) - fall - swing
        sigma = np.hypot(arcs.sigma_ra, arcs.sigma_dec)[triplet] / np.sqrt(2.0)
        error = rho * norm(weight * sigma)
        return DiurnalSignal(np.abs(swing) / error, rho * (pull - fall) / curvature)


def _second_difference(t: FloatArray) -> FloatArray:
    """Weights of three epochs in the second derivative, shape (M, 3) [1/d^2]."""
    before, after = t[:, 0] - t[:, 1], t[:, 2] - t[:, 1]
    first = 2.0 / (before * (before - after))
    last = 2.0 / (after * (after - before))
    return np.stack([first, -(first + last), last], axis=1)


def _apply(weight: FloatArray, values: FloatArray) -> FloatArray:
    return np.einsum("mk,mki->mi", weight, values)


def _pull_of_sun(r: FloatArray) -> FloatArray:
    return -GM_SUN * r / norm(r)[:, None] ** 3
