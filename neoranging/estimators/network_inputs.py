"""Inputs of networks from arcs, for training and for estimates alike."""

from __future__ import annotations

import numpy as np
import torch

from neoranging import ephemeris
from neoranging.core.arcs import Arcs
from neoranging.core.attributable import tangent_fit
from neoranging.core.geometry import radec, sky_basis
from neoranging.core.noise import SHARE_OF_CLAIM
from neoranging.core.parallax import parallax
from neoranging.nn.inputs import ArcInputs

_WEIGHT_OF_USUAL = 2.0
"""Number of squared residuals that the usual share of the claimed errors counts as, beside those
of the arc itself."""


def arc_inputs(arcs: Arcs) -> ArcInputs:
    """Inputs of arcs: the triplet, and the fit of all observations.

    Parameters
    ----------
    arcs : Arcs
        M arcs of two epochs or more, with observers at the origin of the ranges.

    Returns
    -------
    ArcInputs
        Double precision, M arcs. With two epochs accelerations and the logarithms of their errors
        are zero; parallaxes that are not determined, and magnitudes that are absent, are zero. Errors are those claimed, scaled by
        how the arc itself scatters and, the fewer observations it has the more, by the usual share
        of what is claimed (`neoranging.core.noise`): three observations show nothing.
    """
    rows = arcs.triplet
    middle = rows[:, 1]
    t, fit = arcs.t[rows], tangent_fit(arcs)
    earth, earth_rate = ephemeris.earth_state(t[:, 1])
    ra, dec = radec(fit.line_of_sight)
    plane = np.stack(sky_basis(ra, dec), axis=1)
    curved, path = arcs.n_epochs >= 3, parallax(arcs)
    acceleration = np.where(curved[:, None], fit.acceleration, 0.0)
    usual = _WEIGHT_OF_USUAL * SHARE_OF_CLAIM**2
    square = (usual + path.misfit) / (_WEIGHT_OF_USUAL + path.expected_misfit)
    variance = fit.covariance[:, :, 2, 2] * square[:, None]
    columns = (
        *(t[:, 0] - t[:, 1], t[:, 2] - t[:, 1], arcs.ra[rows] % (2.0 * np.pi), arcs.dec[rows]),
        *(earth, earth_rate),
        np.stack([ra, dec], axis=1),
        *(np.einsum("mij,mj->mi", plane, vector) for vector in (fit.rate, acceleration)),
        np.log(t[:, 2] - t[:, 0]),
        0.5 * np.log(np.where(curved[:, None], variance, 1.0)),
        curved,
        *np.moveaxis(fit.observer, 2, 0),
        arcs.velocity[middle],
        path.inverse_range,
        np.log(np.where(path.is_determined, np.sqrt(square), 1.0) * path.error),
        *(np.nan_to_num(arcs.mean_mag), np.isfinite(arcs.mean_mag)),
    )
    return ArcInputs(*(torch.as_tensor(column, dtype=torch.float64) for column in columns))
