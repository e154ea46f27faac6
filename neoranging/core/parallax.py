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
from neoranging.core.attributable import logarithm, tangent_fit
from neoranging.core.geometry import dot
from neoranging.typing import FloatArray, IntArray

LARGEST_ERROR: Final = 1.0e4
"""Error [1/au] beyond which nothing is learnt: the inverse of twice the radius of the Earth."""


class Parallax(NamedTuple):
    """Inverse ranges of M arcs."""

    inverse_range: FloatArray
    """Least-squares value of ``1 / rho`` [1/au], shape (M,); zero where undetermined."""
    error: FloatArray
    """Standard error of that [1/au], shape (M,); `LARGEST_ERROR` where undetermined."""
    misfit: FloatArray
    """Chi-square of the residuals, with the errors that the observations claim, shape (M,)."""
    expected_misfit: FloatArray
    """Mean of `misfit` if the errors are as large as claimed (degrees of freedom), shape (M,)."""

    @property
    def is_determined(self) -> np.ndarray:
        """Flags of arcs whose observers left their parabola, shape (M,)."""
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
    path, residual = _beyond_the_parabola(arcs)
    variance = np.stack([arcs.sigma_ra**2, arcs.sigma_dec**2], axis=1)
    weight = 2.0 / variance.sum(axis=1)
    weighted = weight[:, None] * path
    information, square, product, spread = arcs.sum(
        np.stack(
            [
                np.sum(weighted * path, axis=1),
                weight * np.sum(residual * residual, axis=1),
                np.sum(weighted * residual, axis=1),
                np.sum(weighted * weighted * variance, axis=1),
            ],
            axis=1,
        )
    ).T
    with np.errstate(divide="ignore", invalid="ignore"):
        value, error = product / information, np.sqrt(spread) / information
        # squares that the parallax explains; 1 if sigmas are equal
        explained = np.where(information > 0.0, spread / information, 0.0)
    determined = (arcs.n_epochs > 3) & (error < LARGEST_ERROR)
    value = np.where(determined, value, 0.0)
    return Parallax(
        value,
        np.where(determined, error, LARGEST_ERROR),
        np.maximum(square - value * value * information, 0.0),
        2.0 * (arcs.counts - np.minimum(arcs.n_epochs, 3)) - determined * explained,
    )


def _beyond_the_parabola(arcs: Arcs) -> tuple[FloatArray, FloatArray]:
    """Residuals of the observers' paths on the plane [au] and of the observations [rad].

    Each of shape (n, 2). The fit is linear, so what it makes of a projected path is the projection
    of what it made of the path.
    """
    fit, owner, middle = tangent_fit(arcs), arcs.owner, arcs.triplet[:, 1]
    axes = np.stack([fit.east, fit.north], axis=1)
    tau = arcs.t - fit.epoch[owner]
    # relative to the middle one, where rounding is that of a path on Earth, not of its orbit
    place, smooth = arcs.position - arcs.position[middle][owner], fit.observer.copy()
    smooth[:, :, 0] -= arcs.position[middle]
    path = np.stack([dot(place, axis[owner]) for axis in (fit.east, fit.north)], axis=1)
    sky = logarithm(fit.pole[owner], fit.east[owner], fit.north[owner], arcs.direction)
    shift = _along(tau, owner, axes @ smooth) - path
    return shift, sky - _along(tau, owner, fit.sky)


def _along(tau: FloatArray, owner: IntArray, derivatives: FloatArray) -> FloatArray:
    """Values of parabolas at times since their epochs: (M, c, 3) -> (n, c)."""
    value, rate, acceleration = np.moveaxis(derivatives[owner], -1, 0)
    return value + tau[:, None] * (rate + 0.5 * tau[:, None] * acceleration)
