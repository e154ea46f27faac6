"""Laplace's method: the derivatives of the line of sight at one epoch, and their refinement.

Equation of motion of a point seen at range rho along L from an observer at R,

    R'' + rho'' L + 2 rho' L' + rho L'' = -mu r / r^3,

projected on ``L x L'`` gives the scalar equation of the range that Gauss's method also leads to;
projected on L' it gives the range-rate (Milani & Gronchi 2010, sec. 9.1).

Two departures from the textbook, both for real arcs. The derivatives come from a weighted parabola
through *all* observations; and those of the observer come from its positions by the same linear
operator, not from its instantaneous acceleration: the diurnal motion of a station is no parabola
over hours, and what the operator does to it in L it must do in R. That also serves arcs of several
stations.

The refinement asks which orbit has the observed parabola. An orbit found is turned into directions
at the epochs observed, with light time, and the same operator applied; what it yields more or less
than observed corrects the derivatives used. Noise-free arcs then give back their orbit.

The compiled functions work on one arc at a time.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from neoranging.constants import C_AU_PER_DAY, GM_SUN
from neoranging.core.answers import Roots
from neoranging.core.arcs import Arcs, Observations
from neoranging.core.attributable import (
    PathFit,
    TangentFit,
    motion_along,
    path_fit,
    plane_point,
    tangent_fit,
)
from neoranging.core.candidates import ClassicalRoots
from neoranging.core.compiled import announced, compiled, inlined
from neoranging.core.gauss import first_roots, room_for_roots
from neoranging.core.noise import INDEPENDENT, LEAST_USUAL_SHARE, ErrorLaw
from neoranging.core.prediction import light_path, range_rate_along
from neoranging.core.range_equation import (
    MOST_ROOTS,
    RangeEquation,
    polished_range,
    positive_roots,
)
from neoranging.core.triples import (
    Triple,
    combined3,
    cross3,
    dot3,
    length3,
    plus3,
    row,
    scaled3,
)
from neoranging.typing import FloatArray

_TOLERANCE: Final = 1.0e-9
"""Relative change of the range at which a root has converged."""

_DRIFT_ORDERS: Final = 6
"""Terms of the series of the drift of an offset; enough for two of the time in which it changes."""


class _Problem(NamedTuple):
    """Laplace's equations of one arc for one set of derivatives; P, Q, E, R of `RangeEquation`."""

    P: float
    Q: float
    E: float
    R: float
    direction: Triple
    rate: Triple
    acceleration: Triple
    position: Triple
    """Position of the observer, and its two derivatives."""
    velocity: Triple
    pull: Triple


class _Orbit(NamedTuple):
    """Heliocentric state at the epoch of emission, which counts from that of the arc."""

    r: Triple
    v: Triple
    epoch: float


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
    fit, path = tangent_fit(arcs), path_fit(arcs)
    # the law of the errors waits for the orbits, about which the observations scatter
    least_bend = LEAST_USUAL_SHARE * exclusion
    n, room, equation = _solve(arcs.plain, fit, path, max_iterations, least_bend)
    roots = first_roots(room, n)

    def errors(law: ErrorLaw) -> tuple[FloatArray, FloatArray]:
        """Variance of the equation of each arc (M, 3), and covariance of each root."""
        return _linear_errors(arcs.plain, fit, path, roots, law)

    return ClassicalRoots(roots, equation, errors)


@announced("Laplace's method", 8)
@compiled
def _solve(
    o: Observations, fit: TangentFit, path: PathFit, max_iterations: int, least_bend: float
) -> tuple[int, Roots, RangeEquation]:
    """Number of the roots of all arcs, room that begins with them, and the equation they solve.

    Arcs that bend by no more than ``least_bend`` claimed standard errors are not refined.
    """
    m = len(fit.epoch)
    equation = RangeEquation(np.empty(m), np.empty(m), np.empty(m), np.empty(m), GM_SUN)
    roots, n = room_for_roots(MOST_ROOTS * m), 0
    rho, sky = np.empty(MOST_ROOTS), np.empty((2, 3))
    for k in range(m):
        first = _problem(fit, k, fit.sky[k])
        equation.P[k], equation.Q[k], equation.E[k], equation.R[k] = (
            first.P,
            first.Q,
            first.E,
            first.R,
        )
        along, covariance = fit.sky[k, :, 1], fit.covariance[k]
        noise = along[1] ** 2 * covariance[0, 2, 2] + along[0] ** 2 * covariance[1, 2, 2]
        bend = abs(dot3(cross3(first.direction, first.rate), first.acceleration))
        bent = math.sqrt(noise) * least_bend < bend
        for root in range(positive_roots(first.P, first.Q, first.E, first.R, GM_SUN, rho)):
            size, rate, settled = rho[root], _range_rate(first, rho[root]), max_iterations == 0
            orbit = _orbit(first, size, rate)
            if bent and max_iterations:
                settled, refined = _refined(o, fit, path, k, size, max_iterations, sky)
                if settled:
                    orbit = refined
                    size, rate = _seen(o, fit, k, orbit)
            roots.arc[n], roots.rho[n], roots.rho_dot[n] = k, size, rate
            roots.r[n, 0], roots.r[n, 1], roots.r[n, 2] = orbit.r
            roots.v[n, 0], roots.v[n, 1], roots.v[n, 2] = orbit.v
            roots.epoch[n], roots.converged[n] = fit.epoch[k] + orbit.epoch, settled
            n += 1
    return n, roots, equation


@compiled
def _problem(fit: TangentFit, k: int, sky: FloatArray) -> _Problem:
    """Equations of an arc whose plane coordinates have the derivatives ``sky``, shape (2, 3)."""
    direction, rate, acceleration = motion_along(fit, k, sky)
    observer = fit.observer[k].T
    position, velocity, pull = row(observer, 0), row(observer, 1), row(observer, 2)
    normal = cross3(direction, rate)
    volume = dot3(normal, acceleration)
    P, Q = -dot3(normal, pull) / volume, -dot3(normal, position) / volume
    E, R = dot3(position, direction), length3(position)
    return _Problem(P, Q, E, R, direction, rate, acceleration, position, velocity, pull)


@compiled
def _range_rate(p: _Problem, rho: float) -> float:
    """Range-rate at a root, from the projection on the motion."""
    attraction = GM_SUN / math.sqrt(rho * (rho + 2.0 * p.E) + p.R * p.R) ** 3
    force = plus3(combined3(1.0, p.pull, rho, p.acceleration), attraction, p.position)
    return -0.5 * dot3(p.rate, force) / dot3(p.rate, p.rate)


@compiled
def _orbit(p: _Problem, rho: float, rho_dot: float) -> _Orbit:
    r = plus3(p.position, rho, p.direction)
    apparent = plus3(p.velocity, 1.0, combined3(rho_dot, p.direction, rho, p.rate))
    return _Orbit(r, scaled3(1.0 / (1.0 - rho_dot / C_AU_PER_DAY), apparent), -rho / C_AU_PER_DAY)


@inlined
def _refined(
    o: Observations,
    fit: TangentFit,
    path: PathFit,
    k: int,
    rho: float,
    max_iterations: int,
    sky: FloatArray,
) -> tuple[bool, _Orbit]:
    """Correct the derivatives until the parabola of the orbit itself is the observed one.

    From the range ``rho`` on; ``sky`` is room for the derivatives, shape (2, 3).
    """
    for axis in range(2):
        for power in range(3):
            sky[axis, power] = fit.sky[k, axis, power]
    p = _problem(fit, k, sky)
    orbit = _orbit(p, rho, 0.0)
    for iteration in range(max_iterations):
        if iteration:
            p = _problem(fit, k, sky)
        new = rho
        for _ in range(2):
            new = polished_range(new, p.P, p.Q, p.E, p.R, GM_SUN)
        orbit = _orbit(p, new, _range_rate(p, new))
        total = _correct(o, fit, path, k, orbit, sky)
        if not (math.isfinite(total) and math.isfinite(new) and new > 0.0):
            break
        # the first pass starts from the root itself and has nothing to compare
        if iteration and abs(new - rho) <= _TOLERANCE * new:
            return True, orbit
        rho = new
    return False, orbit


@inlined
def _correct(
    o: Observations, fit: TangentFit, path: PathFit, k: int, orbit: _Orbit, sky: FloatArray
) -> float:
    """Add what the observed derivatives have more than those of an orbit; returns their sum."""
    pole, east, north = row(fit.pole, k), row(fit.east, k), row(fit.north, k)
    x0, x1, x2, y0, y1, y2 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(o.offsets[k], o.offsets[k + 1]):
        # time from the epoch of the arc: near MJD 60000 rounding alone would move an object by
        # centimetres
        elapsed = o.t[i] - fit.epoch[k] - orbit.epoch
        line, _ = light_path(orbit.r, orbit.v, elapsed, row(o.position, i), GM_SUN)
        x, y = plane_point(pole, east, north, scaled3(1.0 / length3(line), line))
        value, rate, bend = row(path.operator, i)
        x0, x1, x2 = x0 + value * x, x1 + rate * x, x2 + bend * x
        y0, y1, y2 = y0 + value * y, y1 + rate * y, y2 + bend * y
    unit, total = 1.0, 0.0
    for power, predicted in enumerate(((x0, y0), (x1, y1), (x2, y2))):
        for axis in range(2):
            sky[axis, power] += fit.sky[k, axis, power] - predicted[axis] / unit
            total += sky[axis, power]
        unit *= path.scale[k]
    return total


@inlined
def _seen(o: Observations, fit: TangentFit, k: int, orbit: _Orbit) -> tuple[float, float]:
    """Range and range-rate of an orbit at the reference epoch."""
    middle = o.offsets[k]
    while o.t[middle] != fit.epoch[k]:
        middle += 1
    line, v = light_path(orbit.r, orbit.v, -orbit.epoch, row(o.position, middle), GM_SUN)
    rho = length3(line)
    velocity = row(o.velocity, middle)
    return rho, range_rate_along(dot3(line, v) / rho, dot3(line, velocity) / rho)


@announced("the errors of Laplace's method", 4)
@compiled
def _linear_errors(
    o: Observations, fit: TangentFit, path: PathFit, roots: Roots, law: ErrorLaw
) -> tuple[FloatArray, FloatArray]:
    """Variance of the equation of each arc (M, 3), and covariance of each root (K, 3, 2, 2)."""
    m, n = len(fit.epoch), len(roots.arc)
    variance, covariance = np.zeros((m, 3)), np.zeros((n, 3, 2, 2))
    longest = 0
    for k in range(m):
        longest = max(longest, o.offsets[k + 1] - o.offsets[k])
    room = _Room(np.empty((longest, 5)), np.empty((longest, 5)))
    sky, root = np.empty((5, 3)), 0
    for k in range(m):
        p = _problem(fit, k, fit.sky[k])
        east, north = fit.sky[k, 0, 1], fit.sky[k, 1, 1]
        _find_variances(o, fit, path, k, law, sky, room)
        normal = cross3(p.direction, p.rate)
        volume = dot3(normal, p.acceleration)
        for kind in range(2):
            across = north * north * sky[2 * kind, 2] + east * east * sky[2 * kind + 1, 2]
            variance[k, kind] = across / volume**2
        while root < n and roots.arc[root] == k:
            _cover(p, (east, north), roots.rho[root], sky, covariance[root])
            root += 1
    return variance, covariance


@inlined
def _cover(
    p: _Problem,
    motion: tuple[float, float],
    rho: float,
    sky: FloatArray,
    covariance: FloatArray,
) -> None:
    """Add up the covariance of (rho, rho_dot) of one root, shape (3, 2, 2).

    The two projected equations, linearised in L' and L'': with p the motion or its normal,
    ``dF/drho drho + G drho_dot + rho p . dL'' + 2 rho_dot p . dL' = 0`` where G is zero across the
    motion and twice its square along it.
    """
    (east, north), normal = motion, cross3(p.direction, p.rate)
    radius = math.sqrt(rho * (rho + 2.0 * p.E) + p.R * p.R)
    pull, double = -3.0 * GM_SUN * (rho + p.E) / radius**5, 2.0 * dot3(p.rate, p.rate)
    slope_along = dot3(p.rate, p.acceleration) + pull * dot3(p.rate, p.position)
    slope_across = dot3(normal, p.acceleration) + pull * dot3(normal, p.position)
    # changes of (rho, rho_dot) by an error of 2 rho_dot L' + rho L'' to the east and to the north
    by_east = north / slope_across, -(east + slope_along * north / slope_across) / double
    by_north = -east / slope_across, -(north - slope_along * east / slope_across) / double
    # errors of time stand along the motion
    x, y = east / math.hypot(east, north), north / math.hypot(east, north)
    by_time = x * by_east[0] + y * by_north[0], x * by_east[1] + y * by_north[1]
    effects = by_east, by_north, by_east, by_north, by_time
    a, b = 2.0 * _range_rate(p, rho), rho
    for kind in range(5):
        variance = a * a * sky[kind, 0] + 2.0 * a * b * sky[kind, 1] + b * b * sky[kind, 2]
        # rounding takes it below zero where the errors of an arc differ by hundreds of decades
        variance, change = np.maximum(variance, 0.0), effects[kind]
        for q in range(2):
            for other in range(2):
                covariance[kind // 2, q, other] += variance * change[q] * change[other]


class _Room(NamedTuple):
    """Room for what the errors of one arc need, of up to n observations in as many visits."""

    terms: FloatArray
    """Of each observation: time in units of the drift, term of its series, and what the terms leave
    of one; weight in rate and in acceleration. Shape (n, 5)."""
    sums: FloatArray
    """Of each visit: sums over both weights of offsets east and north, and its observations."""


@inlined
def _find_variances(
    o: Observations,
    fit: TangentFit,
    path: PathFit,
    k: int,
    law: ErrorLaw,
    sky: FloatArray,
    room: _Room,
) -> None:
    """Variance of the rate, covariance, and variance of the acceleration by each kind of error.

    Shape (5, 3): scatter east and north, offset east and north, and along by errors of time.
    """
    rows, terms, scale = (o.offsets[k], o.offsets[k + 1]), room.terms, path.scale[k]
    for kind in range(5):
        sky[kind, 0] = sky[kind, 1] = sky[kind, 2] = 0.0
    first, last = law.visit[rows[0]], law.visit[rows[0]]
    for i in range(*rows):
        first, last = min(first, law.visit[i]), max(last, law.visit[i])
    visits = first, last + 1
    for visit in range(last + 1 - first):
        room.sums[visit, 4] = 0.0
    for j, i in enumerate(range(*rows)):
        x = (o.t[i] - fit.epoch[k]) / law.drift[k]
        terms[j, 0], terms[j, 1], terms[j, 2] = x, math.exp(-0.5 * x * x), 1.0
        terms[j, 3], terms[j, 4] = path.operator[i, 1] / scale, path.operator[i, 2] / scale**2
        room.sums[law.visit[i] - first, 4] += 1.0
    # exp(-(x - y)^2 / 2) as a sum of products: each term is a drift that a visit has as a whole
    for order in range(_DRIFT_ORDERS):
        _add_shared(order, rows, visits, law, sky, room)
    for j, i in enumerate(range(*rows)):
        # what the series leaves of the offsets each observation has by itself
        rest = max(terms[j, 2], 0.0)
        variances = (
            law.scatter[i, 0] ** 2,
            law.scatter[i, 1] ** 2,
            law.offset[i, 0] ** 2 * rest,
            law.offset[i, 1] ** 2 * rest,
            law.timing[i, 0] ** 2 + law.timing[i, 1] ** 2,
        )
        many = max(room.sums[law.visit[i] - first, 4] / INDEPENDENT, 1.0)
        for kind in range(5):
            _add_square(sky[kind], many * variances[kind], terms[j, 3], terms[j, 4])


@inlined
def _add_shared(
    order: int,
    rows: tuple[int, int],
    visits: tuple[int, int],
    law: ErrorLaw,
    sky: FloatArray,
    room: _Room,
) -> None:
    """Add the errors by offsets that visits share, by one term of the series of their drift."""
    terms, sums = room.terms, room.sums
    for visit in range(visits[1] - visits[0]):
        for column in range(4):
            sums[visit, column] = 0.0
    for j, i in enumerate(range(*rows)):
        if order:
            terms[j, 1] *= terms[j, 0] / math.sqrt(order)
        terms[j, 2] -= terms[j, 1] ** 2
        visit = law.visit[i] - visits[0]
        for axis in range(2):
            error = law.offset[i, axis] * terms[j, 1]
            sums[visit, 2 * axis] += error * terms[j, 3]
            sums[visit, 2 * axis + 1] += error * terms[j, 4]
    for visit in range(visits[1] - visits[0]):
        for axis in range(2):
            _add_square(sky[2 + axis], 1.0, sums[visit, 2 * axis], sums[visit, 2 * axis + 1])


@compiled
def _add_square(part: FloatArray, variance: float, rate: float, bend: float) -> None:
    part[0] += variance * rate * rate
    part[1] += variance * rate * bend
    part[2] += variance * bend * bend
