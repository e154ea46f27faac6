"""Gauss's method in numpy: what the compiled method of one arc after the other has to reproduce.

See `neoranging.core.gauss` for the method. All arcs are worked on together, one call of numpy for
each step; those whose orbits have settled drop out of the iteration.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from reference.kepler import lagrange_coefficients
from reference.range_equation import RangeEquation, polish, positive_ranges

from neoranging.constants import C_AU_PER_DAY, GM_SUN
from neoranging.core.answers import Roots
from neoranging.core.arcs import Arcs
from neoranging.core.candidates import ClassicalRoots
from neoranging.core.columns import take
from neoranging.core.geometry import cross, dot, norm, sky_basis
from neoranging.core.noise import LEAST_USUAL_SHARE, ErrorLaw
from neoranging.typing import FloatArray

_TOLERANCE = 1.0e-11  # relative change of the middle range at which an orbit has settled


class Triplets(NamedTuple):
    """Three sightings of each of M objects; the second axis is the observation."""

    t: FloatArray
    """Epochs of reception, shape (M, 3) [d]."""
    direction: FloatArray
    """Unit vectors, shape (M, 3, 3)."""
    position: FloatArray
    """Positions of the observer about the attracting body, shape (M, 3, 3)."""
    normal: FloatArray
    """Cross product of the outer directions, shape (M, 3)."""
    volume: FloatArray
    """Triple product of the directions: how far the arc bends off its great circle, (M,)."""

    @classmethod
    def of(cls, t: FloatArray, direction: FloatArray, position: FloatArray) -> Triplets:
        """Complete sightings with their plane."""
        first, middle, last = (direction[:, k] for k in range(3))
        # by differences, which short arcs keep exact while the directions themselves cancel
        volume = dot(middle, cross(first - middle, last - middle))
        return cls(t, direction, position, cross(first, last), volume)


class GaussOrbits(NamedTuple):
    """Orbits through three sightings: K of them, flat, ordered by object."""

    arc: np.ndarray
    """Row of the object in the triplets, shape (K,)."""
    ranges: FloatArray
    """Ranges at the three sightings, shape (K, 3)."""
    r: FloatArray
    """Position at the middle emission, shape (K, 3)."""
    v: FloatArray
    """Velocity at the middle emission, shape (K, 3)."""
    converged: np.ndarray
    """Flags of the orbits whose ranges have settled, shape (K,)."""


def gauss_orbits(
    triplets: Triplets,
    mu: float = GM_SUN,
    light_speed: float = C_AU_PER_DAY,
    max_iterations: int = 50,
) -> GaussOrbits:
    """All orbits of Gauss's equation through three sightings.

    Parameters
    ----------
    triplets : Triplets
        Sightings in any consistent units of length and time.
    mu : float
        Gravitational parameter of the attracting body in those units.
    light_speed : float
        In those units; ``numpy.inf`` for none.
    max_iterations : int
        Refinements at most; zero leaves the classical series.

    Returns
    -------
    GaussOrbits
        ``converged`` is false where the refinement did not settle; such a root keeps the values of
        the series, so that it can still be looked at.
    """
    return _solve(triplets, mu, light_speed, max_iterations)[0]


def _solve(
    triplets: Triplets,
    mu: float,
    light_speed: float,
    max_iterations: int,
    worthwhile: np.ndarray | None = None,
) -> tuple[GaussOrbits, RangeEquation]:
    """Orbits and the equation they solve; only ``worthwhile`` triplets are refined."""
    tau = _intervals(triplets.t, np.zeros_like(triplets.t), light_speed)
    with np.errstate(divide="ignore", invalid="ignore"):
        equation = _equation(triplets, tau, mu)
    rho, arc = positive_ranges(equation)
    triplets, tau = take(triplets, arc), tau[arc]
    radius = norm(triplets.position[:, 1] + rho[:, None] * triplets.direction[:, 1])
    u = mu / radius**3
    series = _series(tau)
    c = series.A + series.B * u[:, None]
    f = 1.0 - 0.5 * u[:, None] * tau**2
    g = tau - u[:, None] * tau**3 / 6.0
    classical = np.full(len(arc), max_iterations == 0)
    first = GaussOrbits(arc, *_orbit(triplets, rho, c, f, g), classical)
    if max_iterations == 0:
        return first, equation
    open_ = np.arange(len(arc)) if worthwhile is None else np.nonzero(worthwhile[arc])[0]
    return _refine(triplets, first, open_, mu, light_speed, max_iterations), equation


class _Series(NamedTuple):
    """Area ratios ``c = A + B u``, u = mu/r^3, of the outer sightings; each of shape (M, 2)."""

    A: FloatArray
    B: FloatArray


def _intervals(t: FloatArray, ranges: FloatArray, light_speed: float) -> FloatArray:
    """Times of the outer emissions from the middle one, shape (M, 2)."""
    # differences first: an epoch near MJD 60000 has a rounding error of a microsecond
    delay = ranges / light_speed
    return (t[:, [0, 2]] - t[:, 1:2]) - (delay[:, [0, 2]] - delay[:, 1:2])


def _series(tau: FloatArray) -> _Series:
    total = tau[:, 1] - tau[:, 0]
    A = np.stack([tau[:, 1], -tau[:, 0]], axis=1) / total[:, None]
    B = A * (total[:, None] ** 2 - tau[:, ::-1] ** 2) / 6.0
    return _Series(A, B)


def _equation(
    triplets: Triplets, tau: FloatArray, mu: float, epsilon: FloatArray | None = None
) -> RangeEquation:
    """Scalar equation of the middle range for area ratios ``A + B u + epsilon``."""
    normal, volume, position = triplets.normal, triplets.volume, triplets.position
    middle = position[:, 1]
    outer = position[:, [0, 2]]
    series = _series(tau)
    # A1 + A3 = 1, so only differences of the observer's positions enter and do not cancel
    bend = np.einsum("ms,msi->mi", series.A, outer - middle[:, None])
    if epsilon is not None:
        bend = bend + np.einsum("ms,msi->mi", epsilon, outer)
    pull = np.einsum("ms,msi->mi", series.B, outer)
    return RangeEquation(
        dot(normal, bend) / volume,
        dot(normal, pull) / volume,
        dot(middle, triplets.direction[:, 1]),
        norm(middle),
        mu,
    )


def _orbit(
    triplets: Triplets, rho: FloatArray, c: FloatArray, f: FloatArray, g: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Ranges, position and velocity from the middle range, area ratios and Lagrange's f, g."""
    L, R = triplets.direction, triplets.position
    normal = triplets.normal
    r2 = R[:, 1] + rho[:, None] * L[:, 1]
    # c1 rho1 L1 + c3 rho3 L3 = a given vector, resolved in the plane of L1 and L3
    target = r2 - np.einsum("ms,msi->mi", c, R[:, [0, 2]])
    size = dot(normal, normal)
    rho1 = dot(cross(target, L[:, 2]), normal) / (size * c[:, 0])
    rho3 = dot(cross(L[:, 0], target), normal) / (size * c[:, 1])
    ranges = np.stack([rho1, rho, rho3], axis=1)
    r = R + ranges[:, :, None] * L
    determinant = f[:, 0] * g[:, 1] - f[:, 1] * g[:, 0]
    v2 = (f[:, :1] * r[:, 2] - f[:, 1:] * r[:, 0]) / determinant[:, None]
    return ranges, r2, v2


def _refine(
    triplets: Triplets,
    first: GaussOrbits,
    open_: np.ndarray,
    mu: float,
    light_speed: float,
    max_iterations: int,
) -> GaussOrbits:
    """Iterate the ``open_`` orbits with exact Lagrange coefficients until each range settles."""
    result = (first.ranges.copy(), first.r.copy(), first.v.copy())
    converged = np.zeros(len(first.arc), dtype=bool)
    triplets = take(triplets, open_)
    ranges, r, v = (column[open_] for column in result)
    state = _Iterate(
        open_,
        ranges,
        r,
        v,
        rho=ranges[:, 1],
        previous=np.full((len(open_), 2), np.nan),
        tolerance=_tolerance(triplets, ranges[:, 1]),
    )
    with np.errstate(all="ignore"):
        for _ in range(max_iterations):
            if not len(state.orbit):
                break
            new, mapped, secant = _step(triplets, state, mu, light_speed)
            # where the iteration contracts slowly the secant is far off and the change deceives
            change = np.fmax(np.abs(mapped - state.rho), np.abs(secant - state.rho))
            settled = change <= state.tolerance * mapped
            alive = np.isfinite(new.ranges).all(axis=1) & (mapped > 0.0)
            done = settled & alive
            for target, value in zip(result, (new.ranges, new.r, new.v), strict=True):
                target[new.orbit[done]] = value[done]
            converged[new.orbit[done]] = True
            keep = alive & ~settled
            state = _Iterate(*(column[keep] for column in new))
            triplets = take(triplets, keep)
    # ranges behind the observer are no sighting, however well they solve the equations
    behind = converged & (result[0].min(axis=1) <= 0.0)
    for target, value in zip(result, (first.ranges, first.r, first.v), strict=True):
        target[behind] = value[behind]
    return GaussOrbits(first.arc, *result, converged & ~behind)


class _Iterate(NamedTuple):
    """Orbits still being refined."""

    orbit: np.ndarray
    ranges: FloatArray
    r: FloatArray
    v: FloatArray
    rho: FloatArray
    """Middle range that the next step starts from."""
    previous: FloatArray
    """Middle range before, and what the step made of it, shape (K, 2)."""
    tolerance: FloatArray


def _tolerance(triplets: Triplets, rho: FloatArray) -> FloatArray:
    """Relative change at which a range has settled.

    Rounding of the directions blurs the range of a nearly straight arc, rounding of the observer's
    positions that of an object near the observer.
    """
    with np.errstate(divide="ignore"):
        blur = np.finfo(float).eps * norm(triplets.normal) / np.abs(triplets.volume)
    nearness = norm(triplets.position[:, 1]) / rho
    return np.minimum(_TOLERANCE + 4.0 * blur * np.maximum(nearness, 1.0), 1.0e-6)


def _step(
    triplets: Triplets, state: _Iterate, mu: float, light_speed: float
) -> tuple[_Iterate, FloatArray, FloatArray]:
    """One refinement of orbits found so far, the range it maps theirs to, and the secant's."""
    tau = _intervals(triplets.t, state.ranges, light_speed)
    f, g, _, _ = lagrange_coefficients(state.r[:, None], state.v[:, None], tau, mu)
    determinant = f[:, 0] * g[:, 1] - f[:, 1] * g[:, 0]
    exact = np.stack([g[:, 1], -g[:, 0]], axis=1) / determinant[:, None]
    series = _series(tau)
    epsilon = exact - series.A - series.B * (mu / norm(state.r) ** 3)[:, None]
    mapped = polish(_equation(triplets, tau, mu, epsilon), state.rho)
    secant = _secant(state, mapped)
    trusted = (secant > 0.5 * state.rho) & (secant < 2.0 * state.rho)
    rho = np.where(trusted, secant, mapped)
    u = mu / norm(triplets.position[:, 1] + rho[:, None] * triplets.direction[:, 1]) ** 3
    c = series.A + series.B * u[:, None] + epsilon
    orbit = _orbit(triplets, rho, c, f, g)
    previous = np.stack([state.rho, mapped], axis=1)
    return _Iterate(state.orbit, *orbit, rho, previous, state.tolerance), mapped, secant


def _secant(state: _Iterate, mapped: FloatArray) -> FloatArray:
    """Next middle range by the secant through the last two steps (Wegstein 1958).

    The iteration is very nearly one-dimensional; the secant makes slow contractions fast and turns
    most divergences into convergence. Steps beyond a factor of two are left to the plain iteration.
    """
    slope = (mapped - state.previous[:, 1]) / (state.rho - state.previous[:, 0])
    return state.rho + (mapped - state.rho) / (1.0 - slope)


def gauss(arcs: Arcs, max_iterations: int = 50, exclusion: float = 3.0) -> ClassicalRoots:
    """Gauss's method on the first, middle and last observation of each arc, with its errors.

    Parameters
    ----------
    arcs : Arcs
        M arcs of at least three distinct epochs, observers known.
    max_iterations : int
        Refinements at most; zero gives the classical series as textbooks have it.
    exclusion : float
        Arcs that bend by fewer standard errors are not refined: their roots are noise.

    Returns
    -------
    ClassicalRoots
        All positive roots of all arcs, and the equation they solve.
    """
    rows = arcs.triplet
    triplets = Triplets.of(arcs.t[rows], arcs.direction[rows], arcs.position[rows])
    axes = sky_basis(arcs.ra[rows], arcs.dec[rows])
    across = (dot(axis, triplets.normal[:, None]) for axis in axes)
    claims = arcs.sigma_ra[rows], arcs.sigma_dec[rows]
    weight = _weights(triplets)
    noise = norm(weight * np.hypot(*(a * s for a, s in zip(across, claims, strict=True))))
    # the law of the errors waits for the orbits, about which the observations scatter
    bent = noise * (LEAST_USUAL_SHARE * exclusion) < np.abs(triplets.volume)
    orbits, equation = _solve(triplets, GM_SUN, C_AU_PER_DAY, max_iterations, bent)
    middle = rows[orbits.arc, 1]
    along = dot(arcs.direction[middle], orbits.v)
    rho_dot = (along - dot(arcs.direction[middle], arcs.velocity[middle])) / (
        1.0 + along / C_AU_PER_DAY
    )
    rho = orbits.ranges[:, 1]
    roots = Roots(
        orbits.arc,
        rho,
        rho_dot,
        np.full((len(rho), 2, 2), np.nan),
        orbits.r,
        orbits.v,
        arcs.t[middle] - rho / C_AU_PER_DAY,
        orbits.converged,
    )
    return ClassicalRoots(roots, equation, partial(_linear_errors, arcs, triplets, orbits))


class _Errors(NamedTuple):
    """Displacements of the three sightings of each of M arcs, by errors of one standard error."""

    scatter: tuple[FloatArray, ...]
    """Those by the scatter, each of shape (M, 3, 3)."""
    timing: FloatArray
    """Those by errors of time, shape (M, 3, 3)."""
    offset: tuple[FloatArray, ...]
    """Those by the offset of the visit, each of shape (M, 3, 3)."""
    together: FloatArray
    """Correlation of the offsets of two sightings, shape (M, 3, 3)."""

    @classmethod
    def of(cls, arcs: Arcs, law: ErrorLaw) -> _Errors:
        """Displacements of the sightings of arcs."""
        rows = arcs.triplet
        axes = np.stack(sky_basis(arcs.ra[rows], arcs.dec[rows]))
        scatter, offset = (
            tuple(axes * np.moveaxis(size[rows], -1, 0)[..., None])
            for size in (law.scatter, law.offset)
        )
        # the motion counts on the plane that touches the sphere at the middle sighting
        timing = np.einsum("msc,cmi->msi", law.timing[rows], axes[:, :, 1])
        visit, t = law.visit[rows], arcs.t[rows] / law.drift[:, None]
        together = np.exp(-0.5 * (t[:, :, None] - t[:, None, :]) ** 2)
        together *= visit[:, :, None] == visit[:, None, :]
        return cls(scatter, timing, offset, together)


def _linear_errors(
    arcs: Arcs, triplets: Triplets, orbits: GaussOrbits, law: ErrorLaw
) -> tuple[FloatArray, FloatArray]:
    """Variance of the equation of each arc (M, 3), and covariance of each root (K, 3, 2, 2)."""
    errors = _Errors.of(arcs, law)
    return _noise(triplets, errors), _covariance(arcs, orbits, errors)


def _weights(triplets: Triplets) -> FloatArray:
    """Weights of the three sightings in the bend of each arc, shape (M, 3)."""
    A = _series(_intervals(triplets.t, np.zeros_like(triplets.t), np.inf)).A
    return np.stack([A[:, 0], np.full(len(A), -1.0), A[:, 1]], axis=1)


def _noise(triplets: Triplets, errors: _Errors) -> FloatArray:
    """Variance of the bend of each arc as a part of the bend, by each kind of error.

    Shape (M, 3): by scatter, offsets and errors of time.
    """
    normal, weight = triplets.normal[:, None], _weights(triplets)

    def parts(displacement: FloatArray) -> FloatArray:
        return weight * dot(displacement, normal)

    square = np.zeros((len(weight), 3))
    for displacement in errors.scatter:
        square[:, 0] += np.sum(parts(displacement) ** 2, axis=1)
    square[:, 2] = np.sum(parts(errors.timing) ** 2, axis=1)
    for displacement in errors.offset:
        part = parts(displacement)
        square[:, 1] += np.einsum("mj,mjk,mk->m", part, errors.together, part)
    with np.errstate(divide="ignore", invalid="ignore"):
        return square / triplets.volume[:, None] ** 2


def _covariance(arcs: Arcs, orbits: GaussOrbits, errors: _Errors) -> FloatArray:
    """Covariance of (rho, rho_dot) of each orbit by the errors of its three sightings.

    By their scatter, offsets and errors of time, shape (K, 3, 2, 2).

    The plane condition, linearised: with ``dc = -3 B u (r . dr) / r^2`` it is three linear
    equations for the changes of the three ranges under a change of the three directions. Those of
    the outer positions change the velocity through Lagrange's coefficients, and it the range-rate.
    """
    rows = arcs.triplet[orbits.arc]
    L = arcs.direction[rows]
    ranges = orbits.ranges
    r = arcs.position[rows] + ranges[:, :, None] * L
    tau = _intervals(arcs.t[rows], ranges, C_AU_PER_DAY)
    series = _series(tau)
    radius = norm(orbits.r)
    u = GM_SUN / radius**3
    c = series.A + series.B * u[:, None]
    weight = np.einsum("ms,msi->mi", series.B, r[:, [0, 2]]) * (-3.0 * u / radius**2)[:, None]

    def middle(vector: FloatArray) -> FloatArray:
        """Effect of moving the middle position by a vector on the plane condition."""
        return weight * dot(orbits.r, vector)[:, None] - vector

    columns = [c[:, :1] * L[:, 0], middle(L[:, 1]), c[:, 1:] * L[:, 2]]
    crosses = [cross(columns[i - 2], columns[i - 1]) for i in range(3)]
    with np.errstate(divide="ignore", invalid="ignore"):
        solve = np.stack(crosses, axis=1) / dot(columns[0], crosses[0])[:, None, None]
        pull = _velocity_weights(tau, u)
    # by how much the range-rate follows a shift of each sighting and a change of its range
    motion = (orbits.v - arcs.velocity[rows[:, 1]]) / ranges[:, 1:2]
    lever = [pull[:, :1] * L[:, 1], motion, pull[:, 1:] * L[:, 1]]
    first, last = (dot(lever[k], L[:, k])[:, None] * solve[:, k] for k in (0, 2))
    pair = -np.stack([solve[:, 1], first + last], axis=1)
    # rows of (rho, rho_dot) by the displacement of each sighting, shape (K, 3, 2, 3)
    effect = np.empty((len(rows), 3, 2, 3))
    effect[:, 0], effect[:, 2] = c[:, :1, None] * pair, c[:, 1:, None] * pair
    effect[:, 1] = dot(pair, weight[:, None])[:, :, None] * orbits.r[:, None] - pair
    effect[:, :, 1] += np.stack(lever, axis=1)
    effect *= ranges[:, :, None, None]

    def changes(displacement: FloatArray) -> FloatArray:
        """Changes of (rho, rho_dot) by the displacement of each sighting, shape (K, 3, 2)."""
        return np.einsum("kjai,kji->kja", effect, displacement[orbits.arc])

    covariance = np.zeros((len(rows), 3, 2, 2))
    for kind, displacements in ((0, errors.scatter), (2, (errors.timing,))):
        for displacement in displacements:
            change = changes(displacement)
            covariance[:, kind] += np.einsum("mka,mkb->mab", change, change)
    together = errors.together[orbits.arc]
    for displacement in errors.offset:
        change = changes(displacement)
        shared = np.einsum("mjk,mkb->mjb", together, change)
        covariance[:, 1] += np.einsum("mja,mjb->mab", change, shared)
    return covariance


def _velocity_weights(tau: FloatArray, u: FloatArray) -> FloatArray:
    """Weights of the outer positions in the velocity of the middle one, shape (M, 2) [1/d]."""
    f = 1.0 - 0.5 * u[:, None] * tau**2
    g = tau - u[:, None] * tau**3 / 6.0
    determinant = f[:, 0] * g[:, 1] - f[:, 1] * g[:, 0]
    return np.stack([-f[:, 1], f[:, 0]], axis=1) / determinant[:, None]
