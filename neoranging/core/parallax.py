"""Diurnal parallax: the inverse range that the turn of the Earth shows beyond a parabola.

Stations that see an object in one night are carried thousands of kilometres, along no parabola. In
the direction of a nearby object their path stands mirrored, smaller by the range, beside a motion
of the object itself that a parabola describes well:

    plane coordinates = parabola + p g,    g = -(observer . east, observer . north),

with ``p = 1 / rho``. Here p is the weighted least-squares value of that model. By the theorem of
Frisch, Waugh and Lovell it is the regression of what the parabola leaves of the observations on
what it leaves of g, so that it and the parabola of `neoranging.core.attributable` share no error.

What neither explains is the scatter of the observations, hence the true size of their errors, and
for fast objects over hours whatever of the motion no parabola describes.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from neoranging.core.arcs import Arcs
from neoranging.core.attributable import ParabolaFit
from neoranging.core.geometry import FloatArray, dot

__all__ = ["LARGEST_ERROR", "Parallax", "parallax"]

LARGEST_ERROR: Final = 1.0e4
"""Error [1/au] beyond which nothing is learnt: the inverse of twice the radius of the Earth."""


class Parallax(NamedTuple):
    """Inverse ranges of M arcs."""

    inverse_range: FloatArray
    """Least-squares value of ``1 / rho`` [1/au], shape (M,); zero where undetermined."""
    error: FloatArray
    """Its standard error [1/au], shape (M,); `LARGEST_ERROR` where undetermined."""
    misfit: FloatArray
    """Sum of squares of what is left, in units of what the observations claim, shape (M,)."""
    freedom: FloatArray
    """What it would be in the mean if the observations erred as they claim, shape (M,)."""

    @property
    def is_determined(self) -> np.ndarray:
        """Whether the observers moved off their parabola at all, bool (M,)."""
        return self.error < LARGEST_ERROR


def parallax(arcs: Arcs) -> Parallax:
    """Inverse ranges by diurnal parallax alone.

    Parameters
    ----------
    arcs : Arcs
        M arcs. Those with three observations or fewer leave nothing beyond their parabola and are
        undetermined. Seen from the centre of the Earth there is no parallax: what is left of the
        orbit of the Earth beyond a parabola tells next to nothing.

    Returns
    -------
    Parallax
    """
    parabola = ParabolaFit(arcs)
    moved = _beyond(parabola, -_projected(parabola))
    left = _beyond(parabola, parabola.plane(arcs.direction))
    weight = parabola.weight
    information = arcs.sum(weight * np.sum(moved * moved, axis=1))
    variance = np.stack([arcs.sigma_ra**2, arcs.sigma_dec**2], axis=1)
    spread = arcs.sum(weight**2 * np.sum(moved * moved * variance, axis=1))
    with np.errstate(divide="ignore", invalid="ignore"):
        value = arcs.sum(weight * np.sum(moved * left, axis=1)) / information
        error = np.sqrt(spread) / information
        # squares that the parallax explains; 1 if sigmas are equal
        taken = np.where(information > 0.0, spread / information, 0.0)
    determined = (arcs.n_epochs > 3) & (error < LARGEST_ERROR)
    value = np.where(determined, value, 0.0)
    left = left - value[arcs.owner, None] * moved
    return Parallax(
        value,
        np.where(determined, error, LARGEST_ERROR),
        arcs.sum(weight * np.sum(left * left, axis=1)),
        2.0 * (arcs.counts - np.minimum(arcs.n_epochs, 3)) - determined * taken,
    )


def _projected(parabola: ParabolaFit) -> FloatArray:
    """Observers on the axes of the tangent planes, relative to their reference, (n, 2) [au]."""
    arcs, owner = parabola.arcs, parabola.arcs.owner
    offset = arcs.position - arcs.position[arcs.triplet[:, 1]][owner]
    return np.stack([dot(offset, axis[owner]) for axis in (parabola.east, parabola.north)], axis=1)


def _beyond(parabola: ParabolaFit, values: FloatArray) -> FloatArray:
    """What the parabola leaves of values of each observation, (n, c)."""
    return values - parabola.along(parabola.derivatives(values))
