"""Influence of single observations: what an arc would look like without each of them.

A polynomial in time is fitted to the arc on its tangent plane; leaving out observation i changes
the fit by what linear least squares has in closed form: with residual e and leverage h, the others
put it ``e / (1 - h)`` away from where it was observed, and their sum of squares is smaller by
``w e^2 / (1 - h)`` (Cook & Weisberg 1982, section 2.2).
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from neoranging.core.arcs import Arcs
from neoranging.core.attributable import logarithm
from neoranging.core.geometry import norm, sky_basis
from neoranging.typing import FloatArray, IntArray

_N_CURVED: Final = 6
"""Observations from which on a parabola leaves enough to tell which of them is off."""

_N_FEW: Final = 4
"""Observations up to which one that is wrong leaves too few others to show it."""


class Deletion(NamedTuple):
    """Leaving out each of n observations in turn."""

    offset: FloatArray
    """Distance from where the other observations of its arc put it [rad], shape (n,)."""
    rest: FloatArray
    """Sum of squares that the others leave, in units of their errors, shape (n,)."""


def deletion(arcs: Arcs, degree: int) -> Deletion:
    """Fits of polynomials to all but one observation of each arc.

    Parameters
    ----------
    arcs : Arcs
        M arcs of n observations; those with too few for the degree get an offset of NaN.
    degree : int
        1 for straight lines, 2 for parabolas in time.
    """
    owner, middle = arcs.owner, arcs.triplet[:, 1]
    east, north = sky_basis(arcs.ra[middle], arcs.dec[middle])
    plane = logarithm(arcs.direction[middle][owner], east[owner], north[owner], arcs.direction)
    # time in units of the arc keeps the normal matrix well conditioned
    x = (arcs.t - arcs.t[middle][owner]) / np.where(arcs.span > 0.0, arcs.span, 1.0)[owner]
    basis = np.stack([x**k for k in range(degree + 1)], axis=1)
    # errors in units of the least of the arc: of any size, they make no number overflow
    sigma = np.hypot(arcs.sigma_ra, arcs.sigma_dec) * np.sqrt(0.5)
    unit = np.minimum.reduceat(sigma, arcs.offsets[:-1])[owner]
    weight = (unit / sigma) ** 2
    weighted = weight[:, None] * basis
    normal = arcs.sum((weighted[:, :, None] * basis[:, None, :]).reshape(len(x), -1))
    inverse = np.linalg.pinv(normal.reshape(-1, degree + 1, degree + 1), hermitian=True)
    moments = arcs.sum((weighted[:, :, None] * plane[:, None, :]).reshape(len(x), -1))
    fit = inverse @ moments.reshape(-1, degree + 1, 2)
    off = plane - np.einsum("nk,nkc->nc", basis, fit[owner])
    independence = 1.0 - np.einsum("nj,njk,nk->n", weighted, inverse[owner], basis)
    square = weight * np.sum(off * off, axis=1)
    # an observation that the others say nothing of has a leverage of one
    free = independence > 1.0e-9
    independence = np.where(free, independence, np.nan)
    rest = arcs.sum(square)[owner] - square / independence
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        return Deletion(norm(off) / independence, rest / unit**2)


def bend_of_one(arcs: Arcs, significance: float) -> FloatArray:
    """Error of one observation that would make the bend of each arc by itself.

    Parameters
    ----------
    arcs : Arcs
        M arcs of three observations or more.
    significance : float
        Standard errors by which the others must bend to bend at all.

    Returns
    -------
    ndarray, shape (M,)
        The least distance of an observation from the straight line of the others [rad], where
        these lie on one; infinite where the others bend whichever is left out. Of four observations
        and fewer the largest distance, for those left lie on some orbit whatever they are.
    """
    one = deletion(arcs, 1)
    first = arcs.offsets[:-1]
    straight = one.rest <= significance**2
    least = np.minimum.reduceat(np.where(straight, one.offset, np.inf), first)
    return np.where(arcs.counts <= _N_FEW, np.fmax.reduceat(one.offset, first), least)


def worst_observation(arcs: Arcs) -> tuple[IntArray, FloatArray]:
    """The observation of each arc without which the others agree best.

    Returns
    -------
    row : ndarray of int, shape (M,)
        Row of the observation, -1 for arcs of fewer than four: of three any one may be wrong.
    offset : ndarray, shape (M,)
        Its distance [rad] from where the others put it.
    """
    line, parabola = deletion(arcs, 1), deletion(arcs, 2)
    curved = (arcs.counts >= _N_CURVED)[arcs.owner]
    rest = np.where(curved, parabola.rest, line.rest)
    offset = np.where(curved, parabola.offset, line.offset)
    rest = np.where(np.isfinite(rest), rest, np.inf)
    least = np.minimum.reduceat(rest, arcs.offsets[:-1])
    at = np.flatnonzero(rest == least[arcs.owner])
    row = at[np.searchsorted(arcs.owner[at], np.arange(len(arcs)))]
    return np.where(arcs.counts > 3, row, -1), offset[row]
