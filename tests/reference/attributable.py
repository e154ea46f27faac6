"""The fit of parabolas in numpy: what the compiled fit of one arc after the other has to reproduce.

See `neoranging.core.attributable` for the formulae. All arcs are worked on together, one call of
numpy for each step.
"""

from __future__ import annotations

import numpy as np

from neoranging.core.attributable import Attributables, PathFit, TangentFit
from neoranging.core.geometry import dot, norm, radec, sky_basis

# normal matrix of the basis (1, x, x^2 / 2) from the moments of x
_MOMENT = np.array([[0, 1, 2], [1, 2, 3], [2, 3, 4]])
_FACTOR = np.array([[1.0, 1.0, 0.5], [1.0, 1.0, 0.5], [0.5, 0.5, 0.25]])

# the six different entries of a symmetric matrix, and where each stands
_ROW, _COLUMN = np.triu_indices(3)
_PAIR = np.array([[0, 1, 2], [1, 3, 4], [2, 4, 5]])


def logarithm(pole, east, north, direction):
    """Tangent-plane coordinates (east, north) of directions, shape (n, 2)."""
    x, y, z = dot(direction, east), dot(direction, north), dot(direction, pole)
    sine = np.hypot(x, y)
    angle = np.arctan2(sine, z)
    scale = np.divide(angle, sine, out=np.ones_like(sine), where=sine > 0.0)
    return np.stack([x * scale, y * scale], axis=-1)


def exponential(pole, east, north, plane):
    """Directions at tangent-plane coordinates, the inverse of `logarithm`, shape (n, 3)."""
    angle = np.hypot(plane[..., 0], plane[..., 1])
    scale = np.sinc(angle / np.pi)[..., None]
    offset = plane[..., :1] * east + plane[..., 1:] * north
    return np.cos(angle)[..., None] * pole + scale * offset


def motion(fit):
    """Line of sight and its two derivatives at the epoch, each of shape (M, 3)."""
    direction = exponential(fit.pole, fit.east, fit.north, fit.sky[:, :, 0])
    half = (fit.pole + direction) / (1.0 + dot(fit.pole, direction))[:, None]

    def turned(components):
        """Vector of plane components, carried from the pole to the fitted direction."""
        vector = components[:, :1] * fit.east + components[:, 1:] * fit.north
        return vector - dot(vector, direction)[:, None] * half

    rate = fit.sky[:, :, 1]
    centripetal = dot(rate, rate)[:, None] * direction
    return direction, turned(rate), turned(fit.sky[:, :, 2]) - centripetal


def curvature_significance(fit):
    """Size of the acceleration in units of its error, both components together, shape (M,)."""
    variance = fit.covariance[:, :, 2, 2]
    with np.errstate(invalid="ignore", divide="ignore"):
        chi2 = np.sum(fit.sky[:, :, 2] ** 2 / variance, axis=1)
    return np.sqrt(np.where(np.isfinite(chi2), chi2, 0.0))


class ParabolaFit:
    """The linear operator that turns values along arcs into their derivatives at the epoch.

    It depends on epochs and weights only, so the same operator serves the sky coordinates, the
    observer's positions and any prediction: what it smooths away in one it smooths away in all.
    The derivatives of an arc with two epochs are those of a straight line, acceleration zero.
    """

    def __init__(self, arcs):
        self.arcs = arcs
        middle = arcs.triplet[:, 1]
        self.epoch = arcs.t[middle]
        self.pole = arcs.direction[middle]
        self.east, self.north = sky_basis(arcs.ra[middle], arcs.dec[middle])
        tau = arcs.t - self.epoch[arcs.owner]
        span = arcs.span
        # dimensionless time keeps the normal matrix well conditioned for arcs of any length
        self._scale = np.where(span > 0.0, span, 1.0)
        x = tau / self._scale[arcs.owner]
        self._basis = np.stack([np.ones_like(x), x, 0.5 * x * x], axis=1)
        self.weight = weight = 2.0 / (arcs.sigma_ra**2 + arcs.sigma_dec**2)
        terms = [weight]
        for _ in range(4):
            terms.append(terms[-1] * x)
        moments = arcs.sum(np.stack(terms, axis=1))
        normal = moments[:, _MOMENT] * _FACTOR
        self._curved = arcs.n_epochs >= 3
        self._moving = (arcs.n_epochs >= 2) & (span > 0.0)
        self._inverse = _inverse_normal(normal, self._moving, self._curved)
        # row i of the operator: derivative = sum over observations of operator * value
        inverse = self._inverse / (self._scale[:, None] ** np.arange(3))[:, :, None]
        self._operator = np.einsum("nij,nj->ni", inverse[arcs.owner], self._basis)
        self._operator *= weight[:, None]

    def derivatives(self, values):
        """Value, rate and acceleration at the epoch: (n, c) -> (M, c, 3)."""
        return self.arcs.sum(values[:, :, None] * self._operator[:, None, :])

    def plane(self, direction):
        """Tangent-plane coordinates of one direction for each observation, shape (n, 2)."""
        owner = self.arcs.owner
        return logarithm(self.pole[owner], self.east[owner], self.north[owner], direction)

    def covariance(self):
        """Covariance of the derivatives of east and north, shape (M, 2, 3, 3)."""
        arcs = self.arcs
        variance = np.stack([arcs.sigma_ra**2, arcs.sigma_dec**2], axis=1)
        pairs = self._operator[:, _ROW] * self._operator[:, _COLUMN]
        covariance = arcs.sum(variance[:, :, None] * pairs[:, None, :])[:, :, _PAIR]
        covariance[~self._curved, :, 2, 2] = np.inf
        covariance[~self._moving, :, 1, 1] = np.inf
        return covariance

    def fit(self):
        """Fit the observations themselves."""
        return self.fit_and_path()[0]

    def fit_and_path(self):
        """Fit of the observations themselves, and what it leaves of them."""
        plane = self.plane(self.arcs.direction)
        sky = self.derivatives(plane)
        fit = TangentFit(
            self.epoch,
            self.east,
            self.north,
            self.pole,
            sky,
            self.derivatives(self.arcs.position),
            self.covariance(),
        )
        powers = self._scale[self.arcs.owner, None] ** np.arange(3.0)
        path = PathFit(self._basis, self._operator * powers, self._scale, plane - self.along(sky))
        return fit, path

    def along(self, derivatives):
        """Values of parabolas at each observation: (M, c, 3) -> (n, c)."""
        owner = self.arcs.owner
        powers = self._scale[:, None] ** np.arange(3.0)
        return np.einsum("nk,nck->nc", self._basis * powers[owner], derivatives[owner])


def _inverse_normal(normal, moving, curved):
    """Inverse of 3x3 normal matrices whose undetermined rows and columns stay zero."""
    padded = normal.copy()
    for k, determined in ((1, moving), (2, curved)):
        padded[~determined, k, :] = padded[~determined, :, k] = 0.0
        padded[~determined, k, k] = 1.0
    inverse = _inverse_symmetric(padded)
    for k, determined in ((1, moving), (2, curved)):
        inverse[~determined, k, :] = inverse[~determined, :, k] = 0.0
    return inverse


def _inverse_symmetric(m):
    """Inverse of symmetric 3x3 matrices by cofactors; several times faster than LAPACK's loop."""
    a, b, c, d, e, f = m[:, 0, 0], m[:, 0, 1], m[:, 0, 2], m[:, 1, 1], m[:, 1, 2], m[:, 2, 2]
    inverse = np.empty_like(m)
    inverse[:, 0, 0] = d * f - e * e
    inverse[:, 0, 1] = inverse[:, 1, 0] = c * e - b * f
    inverse[:, 0, 2] = inverse[:, 2, 0] = b * e - c * d
    inverse[:, 1, 1] = a * f - c * c
    inverse[:, 1, 2] = inverse[:, 2, 1] = b * c - a * e
    inverse[:, 2, 2] = a * d - b * b
    determinant = a * inverse[:, 0, 0] + b * inverse[:, 0, 1] + c * inverse[:, 0, 2]
    return inverse / determinant[:, None, None]


# weights of errors beyond all measure overflow; what comes of them is not finite
@np.errstate(all="ignore")
def from_fit(arcs):
    """Attributables by the weighted fit of all observations, at the middle observation's epoch."""
    fit = ParabolaFit(arcs).fit()
    middle = arcs.triplet[:, 1]
    direction, rate, _ = motion(fit)
    ra, dec = radec(direction)
    east, north = sky_basis(ra, dec)
    ra_rate, dec_rate = dot(rate, east) / np.cos(dec), dot(rate, north)
    along = fit.sky[:, :, 1]
    speed = norm(along)
    with np.errstate(invalid="ignore", divide="ignore"):
        unit = along / speed[:, None]
    turn = np.stack([unit, np.stack([-unit[:, 1], unit[:, 0]], axis=1)], axis=1)
    acceleration_covariance = np.zeros((len(arcs), 2, 2))
    acceleration_covariance[:, 0, 0] = fit.covariance[:, 0, 2, 2]
    acceleration_covariance[:, 1, 1] = fit.covariance[:, 1, 2, 2]
    curved = arcs.n_epochs >= 3
    curvature = np.einsum("mij,mj->mi", turn, fit.sky[:, :, 2])
    curvature[~curved] = np.nan
    acceleration_covariance[~curved] = np.nan
    return Attributables(
        fit.epoch,
        ra,
        dec,
        ra_rate,
        dec_rate,
        _coordinate_covariance(fit.covariance, dec, ra_rate, dec_rate),
        curvature,
        turn @ acceleration_covariance @ np.swapaxes(turn, 1, 2),
        curvature_significance(fit),
        arcs.position[middle],
        arcs.velocity[middle],
    )


def _coordinate_covariance(plane, dec, ra_rate, dec_rate):
    """Covariance of (ra, dec, ra_rate, dec_rate) from that of the tangent-plane derivatives.

    The plane's east component is cos(dec) d(ra). A shift of the position also turns the meridian
    and changes cos(dec), which couples the rates to the position by the tangent of declination.
    """
    m = len(dec)
    cos_dec, sin_dec = np.cos(dec), np.sin(dec)
    source = np.zeros((m, 4, 4))
    for axis, (value, rate) in enumerate(((0, 2), (1, 3))):
        source[:, value, value] = plane[:, axis, 0, 0]
        source[:, value, rate] = source[:, rate, value] = plane[:, axis, 0, 1]
        source[:, rate, rate] = plane[:, axis, 1, 1]
    jacobian = np.zeros((m, 4, 4))
    jacobian[:, 0, 0] = 1.0 / cos_dec
    jacobian[:, 1, 1] = 1.0
    jacobian[:, 2, 2] = 1.0 / cos_dec
    jacobian[:, 2, 0] = dec_rate * sin_dec / cos_dec**2
    jacobian[:, 2, 1] = ra_rate * sin_dec / cos_dec
    jacobian[:, 3, 3] = 1.0
    jacobian[:, 3, 0] = -ra_rate * sin_dec
    with np.errstate(invalid="ignore"):
        return jacobian @ source @ np.swapaxes(jacobian, 1, 2)


def independence(path):
    """Part of each value that the fit of its arc leaves free, shape (n,)."""
    return np.maximum(1.0 - np.einsum("nk,nk->n", path.basis, path.operator), 0.0)


def beyond(path, arcs, values):
    """Values without the parabolas fitted to them, shape (n, c)."""
    coefficients = arcs.sum(values[:, :, None] * path.operator[:, None, :])
    return values - np.einsum("nk,nck->nc", path.basis, coefficients[arcs.owner])
