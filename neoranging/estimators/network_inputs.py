"""Inputs of networks from arcs, for training and for estimates alike."""

from __future__ import annotations

import numpy as np

from neoranging import ephemeris
from neoranging.core.arcs import Arcs
from neoranging.core.attributable import from_fit, tangent_fit
from neoranging.core.candidates import Thresholds
from neoranging.core.gauss import solved
from neoranging.core.geometry import radec, sky_basis
from neoranging.core.noise import SHARE_OF_CLAIM
from neoranging.core.parallax import parallax
from neoranging.nn.inputs import ArcInputs
from neoranging.typing import FloatArray

_THRESHOLDS = Thresholds()

_LOG_ROOT = (-8.0, 3.0)
"""Limits of the logarithm of a root in au, beyond which it is noise."""

_LARGEST_ROOT_RATE = 30.0
"""Limit of the derivative of that logarithm [1/d]."""

_ROOT_ERROR = (1.0e-4, 10.0)
"""Limits of the relative error of a root: what light time moves it by, and that of no use."""

_WEIGHT_OF_USUAL = 2.0
"""Number of squared residuals that the usual share of the claimed errors counts as, beside those
of the arc itself."""


def arc_inputs(arcs: Arcs, *, root: bool = False) -> ArcInputs:
    """Inputs of arcs: the triplet, and the fit of all observations.

    Parameters
    ----------
    arcs : Arcs
        M arcs of two epochs or more, with observers at the origin of the ranges.
    root : bool
        Solve for the root of Gauss's method, which networks that are not shown it do without.

    Returns
    -------
    ArcInputs
        Double precision, M arcs. With two epochs accelerations and the logarithms of their errors
        are zero; parallaxes that are not determined, magnitudes and roots that are absent, are
        zero. Errors are those claimed, scaled by how the arc itself scatters and, the fewer
        observations it has the more, by the usual share of what is claimed
        (`neoranging.core.noise`): three observations show nothing.
    """
    rows = arcs.triplet
    middle = rows[:, 1]
    t, fit = arcs.t[rows], tangent_fit(arcs)
    earth, earth_rate = ephemeris.earth_state(t[:, 1])
    ra, dec = radec(fit.line_of_sight)
    plane = np.stack(sky_basis(ra, dec), axis=1)
    curved, path = arcs.n_epochs >= 3, parallax(arcs)
    has_mag = np.isfinite(arcs.mean_mag)
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
        *(np.where(has_mag, arcs.mean_mag, 0.0), has_mag),
        *(_root(arcs) if root else np.zeros((4, len(arcs)))),
    )
    return ArcInputs(*(np.asarray(column, dtype=np.float64) for column in columns))


@np.errstate(all="ignore")
def _root(arcs: Arcs) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Logarithm, rate, log error and presence of the root that Gauss's method chooses, (M,) each.

    Of every arc that has one, determined or not: how far it is to be trusted its error says.
    """
    log_rho, rate, log_error, has = np.zeros((4, len(arcs)))
    bent = np.flatnonzero(arcs.n_epochs >= 3)
    if len(bent):
        part = arcs if len(bent) == len(arcs) else arcs.take(bent)
        answers = solved(part, from_fit(part), _THRESHOLDS)
        rho = answers.rho
        present = np.isfinite(rho) & (rho > 0.0)
        rows, rho = bent[present], rho[present]
        has[rows] = 1.0
        log_rho[rows] = np.clip(np.log(rho), *_LOG_ROOT)
        rate[rows] = np.clip(
            answers.rho_dot[present] / rho, -_LARGEST_ROOT_RATE, _LARGEST_ROOT_RATE
        )
        error = np.sqrt(answers.covariance[present, 0, 0]) / rho
        error = np.where(np.isfinite(error), error, _ROOT_ERROR[1])
        log_error[rows] = np.log(np.clip(error, *_ROOT_ERROR))
    return log_rho, rate, log_error, has
