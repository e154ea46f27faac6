r"""Information about the range in a position that has not been observed yet.

Of an object there are n draws of its range and of its direction at a later instant. The expected
drop of the entropy of :math:`x = \ln \rho` by observing that direction is the mutual information
of the two,

.. math::

    I = H(x) - \left\langle H(x \mid y) \right\rangle , \qquad y = s + e ,

with the direction s of a draw and the error e of the observation.

- H(x) is estimated from the spacings of the sorted draws.
- H(x | y) is that of a normal distribution around each of up to 128 draws: the covariance of range
  and direction of the draws near it, weighted by a normal kernel, is updated by the observation as
  in a Kalman filter. The kernel is as wide as the error and the distance h of the sixth neighbour
  together, :math:`\sigma^2 + h^2`; by weighting, :math:`1 / (\sigma^2 + h^2)` of the information
  :math:`1 / \sigma^2` of the observation is in the covariance already, so that the update has the
  variance :math:`\sigma^2 (\sigma^2 + h^2) / h^2`. Where draws lie denser than the error this is
  importance sampling, where they lie thinner it is a regression, and for a joint normal
  distribution it is exact.

Nearest-neighbour estimators of mutual information (Kraskov et al. 2004, Phys. Rev. E 69, 066138)
are more general and cannot resolve what a narrow strip of draws says: they count neighbours, of
which some hundred draws leave too few.
"""

from __future__ import annotations

import numpy as np
from scipy.special import digamma

from neoranging.core.geometry import dot, equal_area, frame_about
from neoranging.typing import FloatArray

RESOLUTION = 0.01
"""Relative error of a range below which more digits count for nothing: no decision of an observer
rests on them, and a thousand draws do not resolve them."""

FEWEST = 20
"""Draws that an estimate takes at least."""

_NEIGHBOUR = 6
_SPACING = 3
_AROUND = 128
"""Draws around which the entropy after the observation is taken."""


def expected_gain(
    log_rho: FloatArray, direction: FloatArray, sigma: float, resolution: float = RESOLUTION
) -> float:
    """Bits by which an observed direction is expected to lower the entropy of the range.

    Parameters
    ----------
    log_rho : ndarray, shape (n,)
        Logarithms of the ranges of draws.
    direction : ndarray, shape (n, 3)
        Unit vectors towards them at the instant of the observation; NaN of draws that cannot be
        seen then, which count for nothing.
    sigma : float
        Standard error of the observation in each coordinate [rad].
    resolution : float
        Error of ``log_rho`` that counts as none.

    Returns
    -------
    float
        Zero or positive; NaN if fewer than 20 draws are left.
    """
    some = np.isfinite(direction[:, 0]) & np.isfinite(log_rho)
    x, line = log_rho[some], direction[some]
    n = len(x)
    if n < FEWEST:
        return np.nan
    x = x - x.mean()
    gaps = np.sort(x)[_SPACING:] - np.sort(x)[:-_SPACING]
    before = np.log(gaps + 1e-300).mean() + digamma(n + 1) - digamma(_SPACING)

    around = frame_about(line[:: -(-n // _AROUND)])
    east, north = np.moveaxis(equal_area(around, line), -1, 0)
    distance2 = east**2 + north**2
    # the draw itself is its nearest neighbour
    h2 = np.partition(distance2, _NEIGHBOUR, axis=1)[:, _NEIGHBOUR] + 1e-30
    kernel = sigma**2 + h2
    weight = np.exp(-0.5 * distance2 / kernel[:, None])
    weight /= weight.sum(axis=1, keepdims=True)

    mean_x, mean_e, mean_n = weight @ x, dot(weight, east), dot(weight, north)
    we, wn = weight * east, weight * north
    xe, xn = we @ x - mean_x * mean_e, wn @ x - mean_x * mean_n
    update = sigma**2 * kernel / h2
    ee = dot(we, east) - mean_e**2 + update
    nn = dot(wn, north) - mean_n**2 + update
    en = dot(we, north) - mean_e * mean_n
    explained = (xe**2 * nn - 2.0 * xe * xn * en + xn**2 * ee) / (ee * nn - en**2)
    n_effective = 1.0 / dot(weight, weight)
    # three numbers are fitted to the draws near by
    spare = n_effective / np.maximum(n_effective - 3.0, 1.0)
    variance = np.maximum(weight @ x**2 - mean_x**2 - explained, 0.0) * spare

    normal = np.log(2.0 * np.pi * np.e)
    after = 0.5 * (normal + np.log(variance + resolution**2)).mean()
    # a normal error of the size of the resolution added to x, by the powers of their entropies
    before = 0.5 * np.logaddexp(2.0 * before, normal + 2.0 * np.log(resolution))
    return float(max(before - after, 0.0) / np.log(2.0))
