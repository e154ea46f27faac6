"""Influence of single observations in numpy: what the compiled functions of one arc reproduce."""

from __future__ import annotations

from typing import Final

import numpy as np
from reference.attributable import logarithm

from neoranging.core.arcs import Arcs
from neoranging.core.geometry import norm, sky_basis
from neoranging.core.influence import Deletion
from neoranging.typing import FloatArray

_N_FEW: Final = 4
"""Observations up to which one that is wrong leaves too few others to show it."""


def deletion(arcs: Arcs, degree: int) -> Deletion:
    """Fits of polynomials to all but one observation of each arc."""
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
    """Error of one observation that would make the bend of each arc by itself."""
    one = deletion(arcs, 1)
    first = arcs.offsets[:-1]
    straight = one.rest <= significance**2
    least = np.minimum.reduceat(np.where(straight, one.offset, np.inf), first)
    return np.where(arcs.counts <= _N_FEW, np.fmax.reduceat(one.offset, first), least)
