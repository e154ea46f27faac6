"""Position and motion on the sky at one epoch, from the observations of an arc.

Two ways. `three_point` is the derivative of the parabola through three observations, in right
ascension and declination, as the literature on very short arcs has it. `fit` is the weighted
least-squares parabola through all of them on the tangent plane, with the covariance of what it
finds; with three observations it passes through all of them.

The tangent plane is that of the reference observation with the azimuthal equidistant map (the
logarithm of the sphere), under which a great circle run at constant speed has no acceleration: what
is left in the second derivative is curvature in the sense of Milani & Gronchi (2010, sec. 9.1).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from neoranging.constants import C_AU_PER_DAY
from neoranging.core import columns
from neoranging.core.admissible import (
    energy_coefficients,
    is_admissible,
    range_limits,
    widest_strip,
)
from neoranging.core.arcs import Arcs
from neoranging.core.geometry import (
    dot,
    line_of_sight,
    line_of_sight_rate,
    norm,
    radec,
    sky_basis,
    wrap_angle,
)
from neoranging.core.kepler import orbital_energy
from neoranging.core.prediction import object_state
from neoranging.typing import BoolArray, FloatArray, IntArray


class SkyMotion(NamedTuple):
    """Three-point motion of M arcs at the middle epoch; coordinate rates, no cos(dec)."""

    ra_rate: FloatArray
    dec_rate: FloatArray
    ra_acc: FloatArray
    dec_acc: FloatArray


def three_point(t: FloatArray, ra: FloatArray, dec: FloatArray) -> SkyMotion:
    """Rates and accelerations at the middle of three observations.

    Parameters
    ----------
    t : ndarray, shape (M, 3)
        Distinct epochs in order [d].
    ra, dec : ndarray, shape (M, 3)
        Directions [rad]; differences of right ascension are wrapped.

    Returns
    -------
    SkyMotion
        Rates [rad/d] by the Lagrange three-point derivative and accelerations [rad/d^2] by the
        matching second difference.
    """
    h1, h2 = t[:, 1] - t[:, 0], t[:, 2] - t[:, 1]
    h = h1 + h2
    motion = []
    for angle in (ra, dec):
        step = wrap_angle(np.diff(angle, axis=1))
        before, after = step[:, 0] / h1, step[:, 1] / h2
        motion.append(((before * h2 + after * h1) / h, 2.0 * (after - before) / h))
    (ra_rate, ra_acc), (dec_rate, dec_acc) = motion
    return SkyMotion(ra_rate, dec_rate, ra_acc, dec_acc)


class TangentFit(NamedTuple):
    """Weighted parabolas of M arcs on their tangent planes.

    The derivatives are ``(value, rate, acceleration)`` along the last axis; the middle axis, where
    there is one, is (east, north). Units are radian and day.
    """

    epoch: FloatArray
    """Reference epoch, MJD TDB, shape (M,)."""
    east: FloatArray
    """Unit vector of the tangent plane, shape (M, 3)."""
    north: FloatArray
    """Unit vector of the tangent plane, shape (M, 3)."""
    pole: FloatArray
    """Direction where the plane touches the sphere, shape (M, 3)."""
    sky: FloatArray
    """Derivatives of the plane coordinates, shape (M, 2, 3)."""
    observer: FloatArray
    """Derivatives of the observer's position under the same weights, shape (M, 3 axes, 3)."""
    covariance: FloatArray
    """Covariance of the derivatives, shape (M, 2, 3, 3); infinite where undetermined."""

    @property
    def line_of_sight(self) -> FloatArray:
        """Fitted direction at the epoch, shape (M, 3)."""
        return exponential(self.pole, self.east, self.north, self.sky[:, :, 0])

    @property
    def rate(self) -> FloatArray:
        """Derivative of the line of sight [rad/d], shape (M, 3)."""
        return self.motion()[1]

    @property
    def acceleration(self) -> FloatArray:
        """Second derivative of the line of sight [rad/d^2], shape (M, 3)."""
        return self.motion()[2]

    def motion(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Line of sight and its two derivatives at the epoch, each of shape (M, 3)."""
        direction = self.line_of_sight
        half = (self.pole + direction) / (1.0 + dot(self.pole, direction))[:, None]

        def turned(components: FloatArray) -> FloatArray:
            """Vector of plane components, carried from the pole to the fitted direction."""
            vector = components[:, :1] * self.east + components[:, 1:] * self.north
            return vector - dot(vector, direction)[:, None] * half

        rate = self.sky[:, :, 1]
        centripetal = dot(rate, rate)[:, None] * direction
        return direction, turned(rate), turned(self.sky[:, :, 2]) - centripetal

    @property
    def curvature_significance(self) -> FloatArray:
        """Size of the acceleration in units of its error, both components together, shape (M,)."""
        variance = self.covariance[:, :, 2, 2]
        with np.errstate(invalid="ignore", divide="ignore"):
            chi2 = np.sum(self.sky[:, :, 2] ** 2 / variance, axis=1)
        return np.sqrt(np.where(np.isfinite(chi2), chi2, 0.0))


def logarithm(
    pole: FloatArray, east: FloatArray, north: FloatArray, direction: FloatArray
) -> FloatArray:
    """Tangent-plane coordinates (east, north) [rad] of directions, shape (n, 2)."""
    x, y, z = dot(direction, east), dot(direction, north), dot(direction, pole)
    sine = np.hypot(x, y)
    angle = np.arctan2(sine, z)
    scale = np.divide(angle, sine, out=np.ones_like(sine), where=sine > 0.0)
    return np.stack([x * scale, y * scale], axis=-1)


def exponential(
    pole: FloatArray, east: FloatArray, north: FloatArray, plane: FloatArray
) -> FloatArray:
    """Directions at tangent-plane coordinates, the inverse of `logarithm`, shape (n, 3)."""
    angle = np.hypot(plane[..., 0], plane[..., 1])
    scale = np.sinc(angle / np.pi)[..., None]
    offset = plane[..., :1] * east + plane[..., 1:] * north
    return np.cos(angle)[..., None] * pole + scale * offset


# normal matrix of the basis (1, x, x^2 / 2) from the moments of x
_MOMENT = np.array([[0, 1, 2], [1, 2, 3], [2, 3, 4]])
_FACTOR = np.array([[1.0, 1.0, 0.5], [1.0, 1.0, 0.5], [0.5, 0.5, 0.25]])

# the six different entries of a symmetric matrix, and where each stands
_ROW, _COLUMN = np.triu_indices(3)
_PAIR = np.array([[0, 1, 2], [1, 3, 4], [2, 4, 5]])


class ParabolaFit:
    """The linear operator that turns values along arcs into their derivatives at the epoch.

    It depends on epochs and weights only, so the same operator serves the sky coordinates, the
    observer's positions and any prediction: what it smooths away in one it smooths away in all.
    The derivatives of an arc with two epochs are those of a straight line, acceleration zero.
    """

    def __init__(self, arcs: Arcs) -> None:
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

    def derivatives(self, values: FloatArray) -> FloatArray:
        """Value, rate and acceleration at the epoch: (n, c) -> (M, c, 3)."""
        return self.arcs.sum(values[:, :, None] * self._operator[:, None, :])

    def plane(self, direction: FloatArray) -> FloatArray:
        """Tangent-plane coordinates of one direction for each observation, shape (n, 2)."""
        owner = self.arcs.owner
        return logarithm(self.pole[owner], self.east[owner], self.north[owner], direction)

    def covariance(self) -> FloatArray:
        """Covariance of the derivatives of east and north, shape (M, 2, 3, 3)."""
        arcs = self.arcs
        variance = np.stack([arcs.sigma_ra**2, arcs.sigma_dec**2], axis=1)
        pairs = self._operator[:, _ROW] * self._operator[:, _COLUMN]
        covariance = arcs.sum(variance[:, :, None] * pairs[:, None, :])[:, :, _PAIR]
        covariance[~self._curved, :, 2, 2] = np.inf
        covariance[~self._moving, :, 1, 1] = np.inf
        return covariance

    def fit(self) -> TangentFit:
        """Fit the observations themselves."""
        return self.fit_and_path()[0]

    def fit_and_path(self) -> tuple[TangentFit, PathFit]:
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

    def along(self, derivatives: FloatArray) -> FloatArray:
        """Values of parabolas at each observation: (M, c, 3) -> (n, c)."""
        owner = self.arcs.owner
        powers = self._scale[:, None] ** np.arange(3.0)
        return np.einsum("nk,nck->nc", self._basis * powers[owner], derivatives[owner])

    def residuals(self, sky: FloatArray) -> FloatArray:
        """Observed minus fitted plane coordinates [rad], shape (n, 2)."""
        return self.plane(self.arcs.direction) - self.along(sky)


class PathFit(NamedTuple):
    """Parabolas of M arcs as an operator: what they leave of the n values that they are fitted to.

    In arrays alone, so that the arcs can keep it.
    """

    basis: FloatArray
    """Powers of the time since the epoch, in units of the arc, shape (n, 3)."""
    operator: FloatArray
    """Weights of each value in the three coefficients, shape (n, 3)."""
    scale: FloatArray
    """Unit of time of each arc [d], shape (M,)."""
    rest: FloatArray
    """Residuals of the observations on the plane, east and north [rad], shape (n, 2)."""

    @property
    def independence(self) -> FloatArray:
        """Part of each value that the fit of its arc leaves free, shape (n,)."""
        return np.maximum(1.0 - np.einsum("nk,nk->n", self.basis, self.operator), 0.0)

    def beyond(self, arcs: Arcs, values: FloatArray) -> FloatArray:
        """Values without the parabolas fitted to them, shape (n, c)."""
        coefficients = arcs.sum(values[:, :, None] * self.operator[:, None, :])
        return values - np.einsum("nk,nck->nc", self.basis, coefficients[arcs.owner])

    def covariance(self, arcs: Arcs, variance: FloatArray) -> FloatArray:
        """Covariance of (value, rate, acceleration) of independent values, (M, c, 3, 3).

        ``variance``, of shape (n, c), is that of the values.
        """
        pairs = self.operator[:, _ROW] * self.operator[:, _COLUMN]
        covariance = arcs.sum(variance[:, :, None] * pairs[:, None, :])[:, :, _PAIR]
        return covariance / self._powers

    def covariance_of_shared(self, arcs: Arcs, error: FloatArray, visit: IntArray) -> FloatArray:
        """Covariance of (value, rate, acceleration) of values that err alike, (M, c, 3, 3).

        ``error``, of shape (n, c), is what one cause, of its own for each ``visit``, adds to each.
        """
        effect = error[:, :, None] * self.operator[:, None, :]
        if visit is arcs.owner:
            together = arcs.sum(effect)
            return together[:, :, :, None] * together[:, :, None, :] / self._powers
        first = np.unique(visit, return_index=True)[1]
        flat = effect.reshape(len(visit), -1).T
        together = np.stack([np.bincount(visit, column) for column in flat], axis=1)
        together = together.reshape(len(first), *effect.shape[1:])
        square = together[:, :, :, None] * together[:, :, None, :]
        covariance = np.zeros((len(arcs), *square.shape[1:]))
        np.add.at(covariance, arcs.owner[first], square)
        return covariance / self._powers

    @property
    def _powers(self) -> FloatArray:
        """Units of the entries of a covariance, shape (M, 1, 3, 3)."""
        power = self.scale[:, None] ** np.arange(3.0)
        return power[:, None, :, None] * power[:, None, None, :]


@np.errstate(all="ignore")
def tangent_fit(arcs: Arcs) -> TangentFit:
    """Fit of all observations, made once for the arcs: attributables and methods share it."""
    if "_tangent_fit" not in arcs.__dict__:
        # beside the other cached columns of the frozen object; not the operator, which holds the
        # arcs themselves: a cycle that only the collector would free
        parabola = ParabolaFit(arcs)
        arcs.__dict__["_tangent_fit"], arcs.__dict__["_path_fit"] = parabola.fit_and_path()
    fit: TangentFit = arcs.__dict__["_tangent_fit"]
    return fit


def path_fit(arcs: Arcs) -> PathFit:
    """Parabolas behind `tangent_fit`, as an operator."""
    tangent_fit(arcs)
    path: PathFit = arcs.__dict__["_path_fit"]
    return path


def _inverse_normal(normal: FloatArray, moving: np.ndarray, curved: np.ndarray) -> FloatArray:
    """Inverse of 3x3 normal matrices whose undetermined rows and columns stay zero."""
    padded = normal.copy()
    for k, determined in ((1, moving), (2, curved)):
        padded[~determined, k, :] = padded[~determined, :, k] = 0.0
        padded[~determined, k, k] = 1.0
    inverse = _inverse_symmetric(padded)
    for k, determined in ((1, moving), (2, curved)):
        inverse[~determined, k, :] = inverse[~determined, :, k] = 0.0
    return inverse


def _inverse_symmetric(m: FloatArray) -> FloatArray:
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


class Completion(NamedTuple):
    """Orbits of M attributables that were completed by a range and a range-rate."""

    r: FloatArray
    """Heliocentric position at the emission epoch, shape (M, 3) [au]."""
    v: FloatArray
    """Heliocentric velocity, shape (M, 3) [au/d]."""
    epoch: FloatArray
    """Emission epoch [MJD TDB]."""
    admissible: BoolArray
    """The point lies in the admissible region, and the orbit is bound to the Sun."""


class Attributables(NamedTuple):
    """Attributables of M arcs with what was measured beside them."""

    epoch: FloatArray
    """Reference epoch, that of the middle observation [MJD TDB]."""
    ra: FloatArray
    """Right ascension at the epoch [rad]."""
    dec: FloatArray
    """Declination at the epoch [rad]."""
    ra_rate: FloatArray
    """Coordinate rate of right ascension, no cos(dec) [rad/d]."""
    dec_rate: FloatArray
    """Rate of declination [rad/d]."""
    covariance: FloatArray
    """Covariance of (ra, dec, ra_rate, dec_rate), shape (M, 4, 4) [rad, rad/d]."""
    curvature: FloatArray
    """Acceleration along and across the motion [rad/d^2], shape (M, 2); NaN with two epochs."""
    curvature_covariance: FloatArray
    """Covariance of the two components, shape (M, 2, 2) [rad^2/d^4]."""
    curvature_significance: FloatArray
    """Acceleration in units of its error, shape (M,)."""
    position: FloatArray
    """Heliocentric position of the observer at the epoch, shape (M, 3) [au]."""
    velocity: FloatArray
    """Heliocentric velocity of the observer at the epoch, shape (M, 3) [au/d]."""

    @property
    def proper_motion(self) -> FloatArray:
        """Speed on the sky, eta [rad/d], shape (M,)."""
        return np.hypot(self.ra_rate * np.cos(self.dec), self.dec_rate)

    @property
    def energy_coefficients(self) -> FloatArray:
        """Coefficients c0..c5 of the heliocentric energy, shape (M, 6)."""
        angles = self.ra, self.dec, self.ra_rate, self.dec_rate
        return energy_coefficients(*angles, self.position, self.velocity)

    @property
    def range_limits(self) -> FloatArray:
        """Least and greatest admissible range [au], shape (M, 2); NaN where none is."""
        return range_limits(self.energy_coefficients)

    @property
    def rate_limits(self) -> FloatArray:
        """Lowest and highest range-rate of admissible orbits [au/d], (M, 2); NaN where none is."""
        c = self.energy_coefficients
        return widest_strip(c, range_limits(c))

    def corrected(self, change: FloatArray) -> Attributables:
        """Attributables moved on their tangent planes; covariances and curvature stay.

        Parameters
        ----------
        change : ndarray, shape (M, 4)
            Offset to the east and to the north [rad], and that of the rates [rad/d].
        """
        direction = line_of_sight(self.ra, self.dec)
        east, north = sky_basis(self.ra, self.dec)
        x, y, x_rate, y_rate = change.T[..., None]
        rate = line_of_sight_rate(self.ra, self.dec, self.ra_rate, self.dec_rate)
        rate = rate + x_rate * east + y_rate * north
        ra, dec = radec(direction + x * east + y * north)
        east, north = sky_basis(ra, dec)
        return self._replace(
            ra=ra, dec=dec, ra_rate=dot(rate, east) / np.cos(dec), dec_rate=dot(rate, north)
        )

    def complete(self, rho: FloatArray, rho_dot: FloatArray) -> Completion:
        """Orbits that a range [au] and range-rate [au/d] of each arc, (M,), complete these to."""
        angles = self.ra, self.dec, self.ra_rate, self.dec_rate
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            r, v = object_state(*angles, self.position, self.velocity, rho, rho_dot)
            energy = orbital_energy(r, v)
            admissible = is_admissible(self.energy_coefficients, rho, rho_dot, energy)
        return Completion(r, v, self.epoch - rho / C_AU_PER_DAY, admissible)

    def take(self, index: np.ndarray) -> Attributables:
        """Attributables of some arcs."""
        return columns.take(self, index)

    @classmethod
    def none(cls) -> Attributables:
        """Attributables of no arcs."""
        shapes = ((), (), (), (), (), (4, 4), (2,), (2, 2), (), (3,), (3,))
        return cls._make(np.empty((0, *shape)) for shape in shapes)


# weights of errors beyond all measure overflow; what comes of them is not finite
@np.errstate(all="ignore")
def from_fit(arcs: Arcs) -> Attributables:
    """Attributables by the weighted fit of all observations, at the middle observation's epoch."""
    fit = tangent_fit(arcs)
    middle = arcs.triplet[:, 1]
    direction, rate, _ = fit.motion()
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
        fit.curvature_significance,
        arcs.position[middle],
        arcs.velocity[middle],
    )


def from_three_points(arcs: Arcs) -> Attributables:
    """Attributables of the first, middle and last observation, with the three-point rates.

    Curvature and covariance are those of the same three observations. Arcs with two epochs have no
    three-point rates; they get the straight line through the same observations.
    """
    rows = arcs.triplet
    # of two observations one stands twice in the triplet, each time with half its weight
    repeats = np.sum(rows[:, :, None] == rows[:, None, :], axis=2)
    triplets = Arcs(
        np.arange(0, 3 * len(arcs) + 1, 3),
        *(getattr(arcs, name)[rows].reshape(-1) for name in ("t", "ra", "dec")),
        *((s[rows] * np.sqrt(repeats)).reshape(-1) for s in (arcs.sigma_ra, arcs.sigma_dec)),
        *(getattr(arcs, name)[rows].reshape(-1, 3) for name in ("position", "velocity")),
    )
    fitted = from_fit(triplets)
    with np.errstate(invalid="ignore", divide="ignore"):
        motion = three_point(arcs.t[rows], arcs.ra[rows], arcs.dec[rows])
    straight = arcs.n_epochs < 3
    middle = rows[:, 1]
    return fitted._replace(
        ra=np.where(straight, fitted.ra, arcs.ra[middle]),
        dec=np.where(straight, fitted.dec, arcs.dec[middle]),
        ra_rate=np.where(straight, fitted.ra_rate, motion.ra_rate),
        dec_rate=np.where(straight, fitted.dec_rate, motion.dec_rate),
    )


def _coordinate_covariance(
    plane: FloatArray, dec: FloatArray, ra_rate: FloatArray, dec_rate: FloatArray
) -> FloatArray:
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
