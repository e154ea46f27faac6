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

import math
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
from neoranging.core.arcs import Arcs, Observations
from neoranging.core.compiled import announced, compiled, inlined
from neoranging.core.geometry import (
    dot,
    line_of_sight,
    line_of_sight_rate,
    radec,
    sky_basis,
    wrap_angle,
)
from neoranging.core.kepler import orbital_energy
from neoranging.core.prediction import object_state
from neoranging.core.triples import Triple, axes3, combined3, dot3, plus3, row
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
        return self.motion()[0]

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
        return _motions(self)


class PathFit(NamedTuple):
    """Parabolas of M arcs as an operator on n values, and what they leave of the observations."""

    basis: FloatArray
    """Powers of the time since the epoch, in units of the arc, shape (n, 3)."""
    operator: FloatArray
    """Weights of each value in the three coefficients, shape (n, 3)."""
    scale: FloatArray
    """Unit of time of each arc [d], shape (M,)."""
    rest: FloatArray
    """Residuals of the observations on the plane, east and north [rad], shape (n, 2)."""


def tangent_fit(arcs: Arcs) -> TangentFit:
    """Fit of all observations, made once for the arcs: attributables and methods share it."""
    return _fitted(arcs)[0]


def path_fit(arcs: Arcs) -> PathFit:
    """Parabolas behind `tangent_fit`, as an operator."""
    return _fitted(arcs)[1]


def from_fit(arcs: Arcs) -> Attributables:
    """Attributables by the weighted fit of all observations, at the middle observation's epoch."""
    return _fitted(arcs)[2]


def _fitted(arcs: Arcs) -> tuple[TangentFit, PathFit, Attributables]:
    """All that the fit of arcs gives, kept beside the other cached columns of the frozen object."""
    found: tuple[TangentFit, PathFit, Attributables] | None = arcs.__dict__.get("_fitted")
    if found is None:
        found = _fit_arcs(arcs.plain, arcs.direction, arcs.triplet, arcs.n_epochs)
        arcs.__dict__["_fitted"] = found
    return found


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


@announced("the fit of parabolas", 5)
@compiled
def _fit_arcs(
    o: Observations, direction: FloatArray, triplet: IntArray, n_epochs: IntArray
) -> tuple[TangentFit, PathFit, Attributables]:
    """Parabolas of all arcs, and the attributables that they give."""
    m, n = len(n_epochs), len(o.t)
    fit = TangentFit(
        np.empty(m),
        np.empty((m, 3)),
        np.empty((m, 3)),
        np.empty((m, 3)),
        np.empty((m, 2, 3)),
        np.empty((m, 3, 3)),
        np.empty((m, 2, 3, 3)),
    )
    path = PathFit(np.empty((n, 3)), np.empty((n, 3)), np.empty(m), np.empty((n, 2)))
    found = Attributables(
        fit.epoch,
        np.empty(m),
        np.empty(m),
        np.empty(m),
        np.empty(m),
        np.empty((m, 4, 4)),
        np.empty((m, 2)),
        np.empty((m, 2, 2)),
        np.empty(m),
        np.empty((m, 3)),
        np.empty((m, 3)),
    )
    for k in range(m):
        middle = triplet[k, 1]
        fit.epoch[k] = o.t[middle]
        for axis in range(3):
            fit.pole[k, axis] = direction[middle, axis]
            found.position[k, axis] = o.position[middle, axis]
            found.velocity[k, axis] = o.velocity[middle, axis]
        _weigh(o, k, n_epochs[k], fit, path)
        _fit_arc(o, direction, k, n_epochs[k], fit, path)
        _complete(fit, k, n_epochs[k] >= 3, found)
    return fit, path, found


@inlined
def _weigh(o: Observations, k: int, n_epochs: int, fit: TangentFit, path: PathFit) -> None:
    """Basis and operator of one arc: the inverse of its normal matrix times weighted powers."""
    begin, end = o.offsets[k], o.offsets[k + 1]
    span = o.t[end - 1] - o.t[begin]
    # dimensionless time keeps the normal matrix well conditioned for arcs of any length
    path.scale[k] = span if span > 0.0 else 1.0
    m0, m1, m2, m3, m4 = 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(begin, end):
        x = (o.t[i] - fit.epoch[k]) / path.scale[k]
        weight = 2.0 / (o.sigma_ra[i] ** 2 + o.sigma_dec[i] ** 2)
        path.basis[i, 0], path.basis[i, 1], path.basis[i, 2] = 1.0, x, 0.5 * x * x
        path.operator[i, 0] = weight
        m0, m1, m2 = m0 + weight, m1 + weight * x, m2 + weight * x * x
        m3, m4 = m3 + weight * x * x * x, m4 + weight * x * x * x * x
    # rows and columns that the epochs leave undetermined are zero in the inverse, by cofactors
    moving, curved = n_epochs >= 2 and span > 0.0, n_epochs >= 3
    a, b, c, d, e, f = m0, m1, 0.5 * m2, m2, 0.5 * m3, 0.25 * m4
    if not moving:
        b, d, e = 0.0, 1.0, 0.0
    if not curved:
        c, e, f = 0.0, 0.0, 1.0
    ia, ib, ic = d * f - e * e, c * e - b * f, b * e - c * d
    determinant = a * ia + b * ib + c * ic
    ia, ib, ic = ia / determinant, ib / determinant, ic / determinant
    id_ = (a * f - c * c) / determinant
    ie, if_ = (b * c - a * e) / determinant, (a * d - b * b) / determinant
    if not moving:
        ib, id_, ie = 0.0, 0.0, 0.0
    if not curved:
        ic, ie, if_ = 0.0, 0.0, 0.0
    for i in range(begin, end):
        weight, x, half = path.operator[i, 0], path.basis[i, 1], path.basis[i, 2]
        path.operator[i, 0] = weight * (ia + ib * x + ic * half)
        path.operator[i, 1] = weight * (ib + id_ * x + ie * half)
        path.operator[i, 2] = weight * (ic + ie * x + if_ * half)


@inlined
def _fit_arc(
    o: Observations,
    direction: FloatArray,
    k: int,
    n_epochs: int,
    fit: TangentFit,
    path: PathFit,
) -> None:
    """Derivatives of one arc and of its observers, their covariance, and what is left."""
    begin, end = o.offsets[k], o.offsets[k + 1]
    pole = row(fit.pole, k)
    east, north = axes3(pole)
    fit.east[k, 0], fit.east[k, 1], fit.east[k, 2] = east
    fit.north[k, 0], fit.north[k, 1], fit.north[k, 2] = north
    for i in range(begin, end):
        path.rest[i, 0], path.rest[i, 1] = plane_point(pole, east, north, row(direction, i))
    scale, unit = path.scale[k], 1.0
    for power in range(3):
        x, y, z, east_value, north_value = 0.0, 0.0, 0.0, 0.0, 0.0
        for i in range(begin, end):
            share = path.operator[i, power]
            x, y = x + share * o.position[i, 0], y + share * o.position[i, 1]
            z += share * o.position[i, 2]
            east_value += share * path.rest[i, 0]
            north_value += share * path.rest[i, 1]
        fit.observer[k, 0, power], fit.observer[k, 1, power] = x / unit, y / unit
        fit.observer[k, 2, power] = z / unit
        fit.sky[k, 0, power], fit.sky[k, 1, power] = east_value / unit, north_value / unit
        both = unit * unit
        for other in range(power, 3):
            of_east, of_north = 0.0, 0.0
            for i in range(begin, end):
                share = path.operator[i, power] * path.operator[i, other]
                of_east += o.sigma_ra[i] ** 2 * share
                of_north += o.sigma_dec[i] ** 2 * share
            covariance = fit.covariance[k]
            covariance[0, power, other] = covariance[0, other, power] = of_east / both
            covariance[1, power, other] = covariance[1, other, power] = of_north / both
            both *= scale
        unit *= scale
    for axis in range(2):
        if n_epochs < 3:
            fit.covariance[k, axis, 2, 2] = np.inf
        if n_epochs < 2 or not o.t[end - 1] > o.t[begin]:
            fit.covariance[k, axis, 1, 1] = np.inf
        value, rate, bend = fit.sky[k, axis, 0], fit.sky[k, axis, 1], fit.sky[k, axis, 2]
        for i in range(begin, end):
            path.rest[i, axis] -= (
                value + path.basis[i, 1] * scale * rate + path.basis[i, 2] * scale * scale * bend
            )


@compiled
def plane_point(
    pole: Triple, east: Triple, north: Triple, direction: Triple
) -> tuple[float, float]:
    """Tangent-plane coordinates (east, north) [rad] of one direction: the map of this module."""
    x, y, z = dot3(direction, east), dot3(direction, north), dot3(direction, pole)
    sine = math.sqrt(x * x + y * y)
    scale = math.atan2(sine, z) / sine if sine > 0.0 else 1.0
    return x * scale, y * scale


@compiled
def _motions(fit: TangentFit) -> tuple[FloatArray, FloatArray, FloatArray]:
    """`fitted_motion` of all arcs."""
    m = len(fit.epoch)
    direction, rate, acceleration = np.empty((m, 3)), np.empty((m, 3)), np.empty((m, 3))
    for k in range(m):
        first, second, third = fitted_motion(fit, k)
        direction[k, 0], direction[k, 1], direction[k, 2] = first
        rate[k, 0], rate[k, 1], rate[k, 2] = second
        acceleration[k, 0], acceleration[k, 1], acceleration[k, 2] = third
    return direction, rate, acceleration


@compiled
def fitted_motion(fit: TangentFit, k: int) -> tuple[Triple, Triple, Triple]:
    """Line of sight of one arc and its two derivatives at the epoch; see `TangentFit.motion`."""
    return motion_along(fit, k, fit.sky[k])


@compiled
def motion_along(fit: TangentFit, k: int, sky: FloatArray) -> tuple[Triple, Triple, Triple]:
    """`fitted_motion` where the plane coordinates have other derivatives, shape (2, 3)."""
    pole, east, north = row(fit.pole, k), row(fit.east, k), row(fit.north, k)
    x, y = sky[0, 0], sky[1, 0]
    angle = math.sqrt(x * x + y * y)
    sinc = math.sin(angle) / angle if angle > 0.0 else 1.0
    offset = combined3(sinc * x, east, sinc * y, north)
    direction = plus3(offset, math.cos(angle), pole)
    half = combined3(1.0, pole, 1.0, direction)
    share = 1.0 / (1.0 + dot3(pole, direction))
    # vectors of the plane, carried from the pole to the fitted direction
    x, y = sky[0, 1], sky[1, 1]
    rate = combined3(x, east, y, north)
    rate = plus3(rate, -share * dot3(rate, direction), half)
    bend = combined3(sky[0, 2], east, sky[1, 2], north)
    bend = plus3(bend, -share * dot3(bend, direction), half)
    return direction, rate, plus3(bend, -(x * x + y * y), direction)


@inlined
def _complete(fit: TangentFit, k: int, curved: bool, found: Attributables) -> None:
    """Attributable of one arc from its parabola."""
    direction, rate, _ = fitted_motion(fit, k)
    ra = math.atan2(direction[1], direction[0]) % (2.0 * math.pi)
    # a hair west of 0 h the remainder rounds to a full turn
    ra = 0.0 if ra >= 2.0 * math.pi else ra
    dec = math.atan2(direction[2], math.hypot(direction[0], direction[1]))
    sin_ra, cos_ra, sin_dec, cos_dec = math.sin(ra), math.cos(ra), math.sin(dec), math.cos(dec)
    ra_rate = (cos_ra * rate[1] - sin_ra * rate[0]) / cos_dec
    dec_rate = cos_dec * rate[2] - sin_dec * (cos_ra * rate[0] + sin_ra * rate[1])
    found.ra[k], found.dec[k], found.ra_rate[k], found.dec_rate[k] = ra, dec, ra_rate, dec_rate
    _cover(fit.covariance[k], sin_dec, cos_dec, ra_rate, dec_rate, found.covariance[k])
    # curvature along and across the motion
    x, y = fit.sky[k, 0, 1], fit.sky[k, 1, 1]
    speed = math.sqrt(x * x + y * y)
    x, y = x / speed, y / speed
    east, north = fit.sky[k, 0, 2], fit.sky[k, 1, 2]
    of_east, of_north = fit.covariance[k, 0, 2, 2], fit.covariance[k, 1, 2, 2]
    square = east * east / of_east + north * north / of_north
    found.curvature_significance[k] = math.sqrt(square) if math.isfinite(square) else 0.0
    if not curved:
        x, y = math.nan, math.nan
    found.curvature[k, 0], found.curvature[k, 1] = x * east + y * north, x * north - y * east
    found.curvature_covariance[k, 0, 0] = x * x * of_east + y * y * of_north
    found.curvature_covariance[k, 1, 1] = y * y * of_east + x * x * of_north
    mixed = x * y * of_north - x * y * of_east
    found.curvature_covariance[k, 0, 1] = found.curvature_covariance[k, 1, 0] = mixed


@inlined
def _cover(
    plane: FloatArray,
    sin_dec: float,
    cos_dec: float,
    ra_rate: float,
    dec_rate: float,
    covariance: FloatArray,
) -> None:
    """Covariance of (ra, dec, ra_rate, dec_rate) from that of the tangent-plane derivatives.

    The plane's east component is cos(dec) d(ra). A shift of the position also turns the meridian
    and changes cos(dec), which couples the rates to the position by the tangent of declination.
    """
    u, p, a = plane[0, 0, 0], plane[0, 0, 1], plane[0, 1, 1]
    v, q, b = plane[1, 0, 0], plane[1, 0, 1], plane[1, 1, 1]
    # of one epoch nothing is known of the motion, to which the position is coupled
    if not (math.isfinite(a) and math.isfinite(b)):
        u = v = p = q = math.nan
    # changes of ra, ra_rate by the eastward offset and rate, and of the rates by both offsets
    turn, stretch = 1.0 / cos_dec, dec_rate * sin_dec / cos_dec**2
    slide, lift = ra_rate * sin_dec / cos_dec, -ra_rate * sin_dec
    mixed = stretch * u + turn * p
    covariance[0, 0], covariance[0, 1], covariance[0, 2] = turn * turn * u, 0.0 * u, turn * mixed
    covariance[0, 3] = turn * lift * u
    covariance[1, 1], covariance[1, 2], covariance[1, 3] = v, slide * v, q
    covariance[2, 2] = stretch * (mixed + turn * p) + turn * turn * a + slide * slide * v
    covariance[2, 3] = lift * mixed + slide * q
    covariance[3, 3] = lift * lift * u + b
    for i in range(1, 4):
        for j in range(i):
            covariance[i, j] = covariance[j, i]
