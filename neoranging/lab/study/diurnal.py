"""What the turn of the Earth does to a classical method that takes the observer for its centre.

Let n be the normal of the plane of the first and the last line of sight of a triplet, L the second
divided difference over its epochs (that of a function is its acceleration), u the middle line of
sight and b the weight of its epoch in L. Since n is normal to the outer lines of sight, a range
that the method accepts has::

    rho b (n . u) = n . (L[object] - L[Earth] - L[station]).

What stands on the left besides rho is observed, noise and all. On the right the station, carried
round by the Earth, outweighs the rest. Seen from the centre of the Earth its term is missing, and
near the Earth, where an object falls to the Sun as the Earth does, only::

    rho' b (n . u) = n . (g - L[Earth]),    g the pull of the Sun on the Earth,

is left: how the Earth itself differs from a body in free fall to the Sun, which is the pull of the
Moon. So whatever range an arc has from where it was observed, from the centre it has another root,
smaller by the ratio of these two accelerations, some thousand times: the degenerate one. It is the
diurnal parallax, read as the motion of an object beside the observer.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from neoranging.constants import GM_SUN
from neoranging.core.geometry import cross, dot, norm
from neoranging.lab.sets.arcs import OBSERVED, to_core
from neoranging.lab.sets.schema import ArcTable
from neoranging.typing import FloatArray

COLUMNS_NEEDED: Final = (*OBSERVED, "rho_topo_au")
"""Columns of a set that are looked at."""


class DiurnalSignal(NamedTuple):
    """Traces of the path of the station in M arcs; NaN where they have less than three epochs."""

    shrinkage: FloatArray
    """Ratio of the degenerate geocentric root to the topocentric range, shape (M,); negative where
    there is no such root."""
    significance: FloatArray
    """Curvature that the path of the station gives the line of sight to the true range, in standard
    errors of the observed curvature, shape (M,)."""


def diurnal_signal(table: ArcTable) -> DiurnalSignal:
    """Trace that the path of the station leaves in the triplets of arcs.

    Parameters
    ----------
    table : ArcTable
        M arcs with ``COLUMNS_NEEDED``; the true range serves the significance alone.

    Returns
    -------
    DiurnalSignal

    Raises
    ------
    DatasetError
        If a column is missing.
    """
    arcs, central = to_core(table, "topocenter"), to_core(table, "geocenter")
    triplet = arcs.triplet
    earth = central.position[triplet]
    station = arcs.position[triplet] - earth
    sigma = np.hypot(arcs.sigma_ra, arcs.sigma_dec)[triplet] / np.sqrt(2.0)
    t, sight = arcs.t[triplet], arcs.direction[triplet]
    before, after = t[:, 0] - t[:, 1], t[:, 2] - t[:, 1]
    with np.errstate(divide="ignore", invalid="ignore"):
        # weights of the three epochs in the second derivative [1/d^2]
        first = 2.0 / (before * (before - after))
        last = 2.0 / (after * (after - before))
        weight = np.stack([first, -(first + last), last], axis=1)
        normal = cross(sight[:, 0], sight[:, 2])
        normal = normal / norm(normal)[:, None]
        station_bend, earth_bend = (
            np.einsum("mk,mki->mi", weight, position) for position in (station, earth)
        )
        swing = dot(normal, station_bend)
        # at the mean of the epochs a third derivative leaves no trace in L
        free_fall = np.mean(-GM_SUN * earth / norm(earth)[..., None] ** 3, axis=1)
        rest = dot(normal, free_fall - earth_bend)
        error = table["rho_topo_au"] * norm(weight * sigma)
        return DiurnalSignal(-rest / swing, np.abs(swing) / error)
