"""Laplace's method in numpy: what the compiled functions of one arc must reproduce."""

from __future__ import annotations

from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np
from reference.attributable import ParabolaFit, motion
from reference.prediction import sight
from reference.range_equation import RangeEquation, polish, positive_ranges, radius

from neoranging.constants import C_AU_PER_DAY, GM_SUN
from neoranging.core import columns
from neoranging.core.answers import Roots
from neoranging.core.arcs import Arcs
from neoranging.core.attributable import TangentFit, path_fit, tangent_fit
from neoranging.core.candidates import ClassicalRoots
from neoranging.core.geometry import cross, dot, norm
from neoranging.core.noise import INDEPENDENT, LEAST_USUAL_SHARE, ErrorLaw
from neoranging.typing import FloatArray

_TOLERANCE = 1.0e-9  # relative change of the range at which a root has converged


class _Problem(NamedTuple):
    """Laplace's equations of M arcs for one set of derivatives."""

    equation: RangeEquation
    direction: FloatArray
    rate: FloatArray
    acceleration: FloatArray
    observer: FloatArray
    """Position, velocity and acceleration of the observer on the last axis, shape (M, 3, 3)."""

    def range_rate(self, rho: FloatArray) -> FloatArray:
        """Range-rate at a root, from the projection on the motion."""
        pull = self.equation.mu / radius(self.equation, rho) ** 3
        force = (
            self.observer[..., 2]
            + rho[:, None] * self.acceleration
            + pull[:, None] * self.observer[..., 0]
        )
        return -0.5 * dot(self.rate, force) / dot(self.rate, self.rate)

    def orbit(self, rho: FloatArray, rho_dot: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Heliocentric state at the epoch of emission."""
        r = self.observer[..., 0] + rho[:, None] * self.direction
        v = self.observer[..., 1] + rho_dot[:, None] * self.direction + rho[:, None] * self.rate
        return r, v / (1.0 - rho_dot / C_AU_PER_DAY)[:, None]


def _problem(fit: TangentFit) -> _Problem:
    direction, rate, acceleration = motion(fit)
    R, _, bend = (fit.observer[..., k] for k in range(3))
    normal = cross(direction, rate)
    with np.errstate(divide="ignore", invalid="ignore"):
        volume = dot(normal, acceleration)
        equation = RangeEquation(
            -dot(normal, bend) / volume,
            -dot(normal, R) / volume,
            dot(R, direction),
            norm(R),
            GM_SUN,
        )
    return _Problem(equation, direction, rate, acceleration, fit.observer)


# without motion the equations have no coefficients
@np.errstate(all="ignore")
def laplace(arcs: Arcs, max_iterations: int = 50, exclusion: float = 3.0) -> ClassicalRoots:
    """Laplace's method on all observations of each arc, with its errors.

    Parameters
    ----------
    arcs : Arcs
        M arcs of at least three distinct epochs, observers known.
    max_iterations : int
        Refinements at most; zero gives the classical method.
    exclusion : float
        Arcs that bend by fewer standard errors are not refined: their roots are noise.

    Returns
    -------
    ClassicalRoots
        All positive roots of all arcs, and the equation they solve. Roots whose refinement did not
        settle keep the classical values and say so.
    """
    fit = tangent_fit(arcs)
    problem = _problem(fit)
    equation = problem.equation
    across, normal = _axes(fit)[:, 1], cross(problem.direction, problem.rate)
    noise = np.sqrt(np.sum(across**2 * fit.covariance[:, :, 2, 2], axis=1))
    # the law of the errors waits for the orbits, about which the observations scatter
    bend = np.abs(dot(normal, problem.acceleration))
    bent = noise * (LEAST_USUAL_SHARE * exclusion) < bend
    rho, arc = positive_ranges(equation)
    of_arcs, problem = problem, columns.take(problem, arc)
    rho_dot = problem.range_rate(rho)
    r, v = problem.orbit(rho, rho_dot)
    epoch = fit.epoch[arc] - rho / C_AU_PER_DAY
    converged = np.full(len(arc), max_iterations == 0)
    open_ = np.nonzero(bent[arc])[0]
    if max_iterations and len(open_):
        refined = _refine(arcs, fit, arc[open_], rho[open_], max_iterations)
        settled = refined.converged
        k = open_[settled]
        r[k], v[k], epoch[k] = refined.r[settled], refined.v[settled], refined.epoch[settled]
        middle = arcs.triplet[arc[k], 1]
        sighting = sight(
            r[k], v[k], epoch[k], arcs.t[middle], arcs.position[middle], arcs.velocity[middle]
        )
        rho[k], rho_dot[k], converged[k] = sighting.rho, sighting.rho_dot, True
    covariance = np.full((len(arc), 2, 2), np.nan)
    roots = Roots(arc, rho, rho_dot, covariance, r, v, epoch, converged)

    @np.errstate(all="ignore")
    def errors(law: ErrorLaw) -> tuple[FloatArray, FloatArray]:
        """Variance of the equation of each arc (M, 3), and covariance of each root."""
        sky = _variances(arcs, law)
        covariance = _covariance(problem, sky[arc], _axes(fit)[arc], rho)
        return _noise(of_arcs, fit, sky), covariance

    return ClassicalRoots(roots, equation, errors)


_DRIFT_ORDERS: Final = 6
"""Terms of the series of the drift of an offset; enough for two of the time in which it changes."""


def _variances(arcs: Arcs, law: ErrorLaw) -> FloatArray:
    """Covariance of (value, rate, acceleration) of each arc by each kind of error.

    Shape (M, 5, 3, 3): scatter east and north, offset east and north, and along by errors of time.
    """
    path = path_fit(arcs)
    # exp(-(x - y)^2 / 2) as a sum of products: each term is a drift that a visit has as a whole
    x = (arcs.t - tangent_fit(arcs).epoch[arcs.owner]) / law.drift[arcs.owner]
    term = np.exp(-0.5 * x * x)
    offset, rest = np.zeros((len(arcs), 2, 3, 3)), np.ones_like(x)
    for order in range(_DRIFT_ORDERS):
        if order:
            term = term * x / np.sqrt(order)
        offset += _covariance_of_shared(path, arcs, law.offset * term[:, None], law.visit)
        rest -= term**2
    many = np.maximum(np.bincount(law.visit) / INDEPENDENT, 1.0)[law.visit][:, None]
    timing = np.sum(law.timing**2, axis=1)
    # what the series leaves of the offsets each observation has by itself
    left = law.offset**2 * np.maximum(rest, 0.0)[:, None]
    own = _covariance_of_own(path, arcs, np.column_stack([law.scatter**2, left, timing]) * many)
    own[:, 2:4] += offset
    return own


# the six different entries of a symmetric matrix, and where each stands
_ROW, _COLUMN = np.triu_indices(3)
_PAIR = np.array([[0, 1, 2], [1, 3, 4], [2, 4, 5]])


def _covariance_of_own(path, arcs, variance):
    """Covariance of (value, rate, acceleration) of independent values, (M, c, 3, 3)."""
    pairs = path.operator[:, _ROW] * path.operator[:, _COLUMN]
    covariance = arcs.sum(variance[:, :, None] * pairs[:, None, :])[:, :, _PAIR]
    return covariance / _powers(path)


def _covariance_of_shared(path, arcs, error, visit):
    """Covariance of (value, rate, acceleration) of values that err alike, (M, c, 3, 3)."""
    effect = error[:, :, None] * path.operator[:, None, :]
    first = np.unique(visit, return_index=True)[1]
    flat = effect.reshape(len(visit), -1).T
    together = np.stack([np.bincount(visit, column) for column in flat], axis=1)
    together = together.reshape(len(first), *effect.shape[1:])
    square = together[:, :, :, None] * together[:, :, None, :]
    covariance = np.zeros((len(arcs), *square.shape[1:]))
    np.add.at(covariance, arcs.owner[first], square)
    return covariance / _powers(path)


def _powers(path):
    """Units of the entries of a covariance, shape (M, 1, 3, 3)."""
    power = path.scale[:, None] ** np.arange(3.0)
    return power[:, None, :, None] * power[:, None, None, :]


def _noise(problem: _Problem, fit: TangentFit, sky: FloatArray) -> FloatArray:
    """Variance of the acceleration across the motion as a part of it, (M, 3).

    By scatter, offsets and errors of time; these are along the motion.
    """
    across = _axes(fit)[:, 1]
    normal = cross(problem.direction, problem.rate)
    acceleration = sky[:, :4, 2, 2].reshape(-1, 2, 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = np.einsum("mc,mpc->mp", across**2, acceleration)
        variance /= dot(normal, problem.acceleration)[:, None] ** 2
    return np.column_stack([variance, np.zeros(len(variance))])


class _Refined(NamedTuple):
    r: FloatArray
    v: FloatArray
    epoch: FloatArray
    converged: np.ndarray


def _refine(
    arcs: Arcs, fit: TangentFit, arc: np.ndarray, rho: FloatArray, max_iterations: int
) -> _Refined:
    """Correct the derivatives until the orbit's own parabola is the observed one."""
    n = len(arc)
    result = _Refined(np.zeros((n, 3)), np.zeros((n, 3)), np.zeros(n), np.zeros(n, dtype=bool))
    open_ = np.arange(n)
    # time from each arc's epoch: near MJD 60000 rounding alone would move an object by centimetres
    arcs = arcs.take(arc)
    arcs = replace(arcs, t=arcs.t - fit.epoch[arc][arcs.owner])
    observed = columns.take(fit, arc)._replace(epoch=np.zeros(n))
    derivatives = observed.sky
    parabola = ParabolaFit(arcs)
    with np.errstate(all="ignore"):
        for iteration in range(max_iterations):
            if not len(open_):
                break
            problem = _problem(observed._replace(sky=derivatives))
            new = polish(problem.equation, rho)
            r, v = problem.orbit(new, problem.range_rate(new))
            epoch = observed.epoch - new / C_AU_PER_DAY
            moving, k = parabola.arcs, parabola.arcs.owner
            sighting = sight(r[k], v[k], epoch[k], moving.t, moving.position, moving.velocity)
            excess = observed.sky - parabola.derivatives(parabola.plane(sighting.direction))
            derivatives = derivatives + excess
            # the first pass starts from the root itself and has nothing to compare
            settled = (np.abs(new - rho) <= _TOLERANCE * new) & (iteration > 0)
            alive = np.isfinite(new) & (new > 0.0) & np.isfinite(derivatives).all(axis=(1, 2))
            done = settled & alive
            for target, value in zip(result, (r, v, epoch, done), strict=True):
                target[open_[done]] = value[done]
            keep = np.nonzero(alive & ~settled)[0]
            if len(keep) < len(open_):
                parabola = ParabolaFit(parabola.arcs.take(keep))
                observed = columns.take(observed, keep)
            open_, derivatives, rho = open_[keep], derivatives[keep], new[keep]
    return result._replace(epoch=result.epoch + fit.epoch[arc])


def _axes(fit: TangentFit) -> FloatArray:
    """Motion and its normal as rows over (east, north), shape (M, 2, 2); lengths those of L'."""
    along = fit.sky[:, :, 1]
    across = np.stack([-along[:, 1], along[:, 0]], axis=1)
    return np.stack([along, across], axis=1)


def _covariance(
    problem: _Problem, sky: FloatArray, axes: FloatArray, rho: FloatArray
) -> FloatArray:
    """Covariance of (rho, rho_dot) from that of the rates and accelerations.

    By scatter, offsets and errors of time, shape (K, 3, 2, 2).

    The two projected equations, linearised in L' and L'': with p the motion or its normal,
    ``dF/drho drho + G drho_dot + rho p . dL'' + 2 rho_dot p . dL' = 0`` where G is zero across the
    motion and twice its square along it.
    """
    equation = problem.equation
    rho_dot = problem.range_rate(rho)
    distance = radius(equation, rho)
    pull = -3.0 * equation.mu * (rho + equation.E) / distance**5
    position = problem.observer[..., 0]
    normal = cross(problem.direction, problem.rate)
    slope_along, slope_across = (
        dot(p, problem.acceleration) + pull * dot(p, position) for p in (problem.rate, normal)
    )
    # rows of p . (2 rho_dot dL' + rho dL''), per component of the plane
    weights = np.zeros((len(rho), 3))
    weights[:, 1], weights[:, 2] = 2.0 * rho_dot, rho
    # rounding takes it below zero where the errors of an arc differ by hundreds of decades
    variance = np.maximum(np.einsum("kaij,ki,kj->ka", sky, weights, weights), 0.0)
    along, across = axes[:, 0], axes[:, 1]
    with np.errstate(divide="ignore", invalid="ignore"):
        of_rho = -across / slope_across[:, None]
        double = 2.0 * dot(problem.rate, problem.rate)
        of_rate = -(along + slope_along[:, None] * of_rho) / double[:, None]
    unit = along / norm(along)[:, None]
    jacobian = np.stack([of_rho, of_rate], axis=1)
    by_time = np.einsum("kia,ka->ki", jacobian, unit)
    parts = [
        np.einsum("kia,ka,kja->kij", jacobian, variance[:, kind], jacobian)
        for kind in (slice(0, 2), slice(2, 4))
    ]
    timing = by_time[:, :, None] * by_time[:, None, :] * variance[:, 4, None, None]
    return np.stack([*parts, timing], axis=1)
