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

import math
from typing import Final, NamedTuple

import numpy as np

from neoranging.core.arcs import Arcs, Observations
from neoranging.core.attributable import TangentFit, path_fit, tangent_fit
from neoranging.core.compiled import compiled, inlined
from neoranging.core.triples import dot3, minus3, plus3, row
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
    fit, rest = tangent_fit(arcs), path_fit(arcs).rest
    return Parallax(*_parallaxes(arcs.plain, fit, rest, arcs.triplet, arcs.n_epochs))


@compiled
def _parallaxes(
    o: Observations, fit: TangentFit, rest: FloatArray, triplet: IntArray, n_epochs: IntArray
) -> FloatArray:
    """Columns of `Parallax` for all arcs, shape (4, M)."""
    found = np.empty((4, len(triplet)))
    for k in range(len(triplet)):
        information, square, product, spread = _sums(o, fit, rest, k, triplet[k, 1])
        value, error = product / information, math.sqrt(spread) / information
        # squares that the parallax explains; 1 if sigmas are equal
        explained = spread / information if information > 0.0 else 0.0
        if not (n_epochs[k] > 3 and error < LARGEST_ERROR):
            value, error, explained = 0.0, LARGEST_ERROR, 0.0
        freedom = 2.0 * (o.offsets[k + 1] - o.offsets[k] - min(n_epochs[k], 3))
        found[0, k], found[1, k] = value, error
        found[2, k] = np.maximum(square - value * value * information, 0.0)
        found[3, k] = freedom - explained
    return found


@inlined
def _sums(
    o: Observations, fit: TangentFit, rest: FloatArray, k: int, middle: int
) -> tuple[float, float, float, float]:
    """Weighted squares of g, of the residuals, their product, and the spread of that, of one arc.

    The fit is linear, so what it makes of a projected path is the projection of what it made of
    the path.
    """
    east, north = row(fit.east, k), row(fit.north, k)
    observer, at = fit.observer[k].T, row(o.position, middle)
    value, rate, bend = row(observer, 0), row(observer, 1), row(observer, 2)
    # relative to the middle one, where rounding is that of a path on Earth, not of its orbit
    value = minus3(value, at)
    information, square, product, spread = 0.0, 0.0, 0.0, 0.0
    for i in range(o.offsets[k], o.offsets[k + 1]):
        tau = o.t[i] - fit.epoch[k]
        smooth = plus3(value, tau, plus3(rate, 0.5 * tau, bend))
        path = minus3(smooth, minus3(row(o.position, i), at))
        to_east, to_north = dot3(path, east), dot3(path, north)
        of_east, of_north = o.sigma_ra[i] ** 2, o.sigma_dec[i] ** 2
        weight = 2.0 / (of_east + of_north)
        information += weight * (to_east**2 + to_north**2)
        square += weight * (rest[i, 0] ** 2 + rest[i, 1] ** 2)
        product += weight * (to_east * rest[i, 0] + to_north * rest[i, 1])
        spread += weight**2 * (to_east**2 * of_east + to_north**2 * of_north)
    return information, square, product, spread
