"""Diurnal parallax in numpy: what the compiled sums over one arc must reproduce."""

from __future__ import annotations

import numpy as np
from reference.attributable import logarithm

from neoranging.core.arcs import Arcs
from neoranging.core.attributable import tangent_fit
from neoranging.core.geometry import dot
from neoranging.core.parallax import LARGEST_ERROR, Parallax
from neoranging.typing import FloatArray, IntArray


def parallax(arcs: Arcs) -> Parallax:
    """Inverse ranges by diurnal parallax alone."""
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
