"""Gauss's method: three directions, one plane, an eighth-degree polynomial, and its refinement.

The three heliocentric positions lie in a plane, ``c1 r1 - r2 + c3 r3 = 0``, with the ratios c1, c3
of the areas between them given by Lagrange's coefficients. Their series in the time intervals,
``c = A + B mu / r^3``, leaves one scalar equation for the middle range (Milani & Gronchi 2010,
sec. 9.2; Vallado 2013, algorithm 52), all of whose positive roots are kept.

The refinement replaces the series by the exact coefficients of the orbit found so far. What the
series missed, ``epsilon = c - A - B mu / r^3``, changes little from one iterate to the next, so it
is held fixed while the equation is solved again: the strong dependence on r stays inside the
equation and the iteration contracts where plain substitution of c1 and c3 diverges. Light time
enters the same loop through the intervals between the epochs of emission.

The compiled functions work on one object at a time, with the symbols of the literature: L1, L2, L3
are its directions, R1, R2, R3 where it was seen from, tau1 and tau3 the times of the outer
emissions from the middle one.
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy as np

from neoranging.constants import C_AU_PER_DAY, GM_SUN
from neoranging.core.answers import Answers, Roots
from neoranging.core.arcs import Arcs, Observations
from neoranging.core.attributable import Attributables
from neoranging.core.candidates import ClassicalRoots, Thresholds, solve
from neoranging.core.compiled import announced, compiled, inlined, plain
from neoranging.core.kepler import lagrange_of
from neoranging.core.noise import LEAST_USUAL_SHARE, ErrorLaw
from neoranging.core.prediction import range_rate_along
from neoranging.core.range_equation import (
    MOST_ROOTS,
    RangeEquation,
    polished_range,
    positive_roots,
)
from neoranging.core.triples import (
    Triple,
    axes3,
    combined3,
    cross3,
    dot3,
    length3,
    minus3,
    plus3,
    row,
    scaled3,
)
from neoranging.typing import BoolArray, FloatArray, IntArray

_TOLERANCE: Final = 1.0e-11
"""Relative change of the middle range at which an orbit has settled."""

_EPS: Final = float(np.finfo(np.float64).eps)


class Triplets(NamedTuple):
    """Three sightings of each of M objects; the second axis is the observation."""

    t: FloatArray
    """Epochs of reception, shape (M, 3) [d]."""
    direction: FloatArray
    """Unit vectors, shape (M, 3, 3)."""
    position: FloatArray
    """Positions of the observer about the attracting body, shape (M, 3, 3)."""


class GaussOrbits(NamedTuple):
    """Orbits through three sightings: K of them, flat, ordered by object."""

    arc: IntArray
    """Row of the object in the triplets, shape (K,)."""
    ranges: FloatArray
    """Ranges at the three sightings, shape (K, 3)."""
    r: FloatArray
    """Position at the middle emission, shape (K, 3)."""
    v: FloatArray
    """Velocity at the middle emission, shape (K, 3)."""
    converged: BoolArray
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
    m = len(triplets.t)
    rows = np.arange(3 * m).reshape(m, 3)
    direction, position = (plain(vector.reshape(-1, 3)) for vector in triplets[1:])
    # without errors every bend is one
    nothing = np.zeros(3 * m)
    columns = plain(triplets.t.reshape(-1)), nothing, nothing, nothing, nothing, position, position
    observations = Observations(rows[:, 0].copy(), *columns)
    roots, ranges, _ = _solved(rows, observations, direction, mu, light_speed, max_iterations, 0.0)
    return GaussOrbits(roots.arc, ranges, roots.r, roots.v, roots.converged)


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
    # the law of the errors waits for the orbits, about which the observations scatter
    least_bend = LEAST_USUAL_SHARE * exclusion
    columns = arcs.triplet, arcs.plain, arcs.direction
    roots, ranges, equation = _solved(*columns, GM_SUN, C_AU_PER_DAY, max_iterations, least_bend)

    def errors(law: ErrorLaw) -> tuple[FloatArray, FloatArray]:
        """Variance of the equation of each arc (M, 3), and covariance of each root."""
        return _linear_errors(*columns, roots, ranges, law)

    return ClassicalRoots(roots, equation, errors)


def solved(arcs: Arcs, attributables: Attributables, thresholds: Thresholds) -> Answers:
    """Answers of Gauss's method to M arcs of at least three distinct epochs, with their verdicts.

    Parameters
    ----------
    arcs : Arcs
        Observers known.
    attributables : Attributables
        Of the same arcs.
    thresholds : Thresholds
        When a solution counts as determined.
    """
    return solve(arcs, attributables, gauss(arcs, exclusion=thresholds.exclusion), thresholds)


def _solved(*arguments: Any) -> tuple[Roots, FloatArray, RangeEquation]:
    """Roots, their ranges at the three sightings (K, 3), and the equation they solve."""
    n, room, ranges, equation = _solve(*arguments)
    return first_roots(room, n), ranges[:n].copy(), equation


def first_roots(room: Roots, n: int) -> Roots:
    """First n of roots; most arcs have one where three have room, and copies let go of the rest."""
    return Roots._make(column[:n].copy() for column in room)


class _Sightings(NamedTuple):
    """Three sightings of one object, as compiled code holds them."""

    before: float
    """Time from the middle reception to the first [d], negative."""
    after: float
    """Time from the middle reception to the last [d]."""
    L1: Triple
    L2: Triple
    L3: Triple
    """Unit vectors."""
    R1: Triple
    R2: Triple
    R3: Triple
    """Positions of the observer about the attracting body."""
    normal: Triple
    """Cross product of the outer directions."""
    volume: float
    """Triple product of the directions: how far the arc bends off its great circle."""


class _Series(NamedTuple):
    """Area ratios ``c = A + B u``, u = mu/r^3, of the outer sightings."""

    A1: float
    A3: float
    B1: float
    B3: float


class _Orbit(NamedTuple):
    """Ranges at three sightings with position and velocity at the middle one."""

    rho1: float
    rho2: float
    rho3: float
    r: Triple
    v: Triple


@compiled
def _sightings(
    rows: IntArray, t: FloatArray, direction: FloatArray, position: FloatArray
) -> _Sightings:
    """Sightings of one object, in rows ``rows`` of the columns."""
    first, middle, last = rows[0], rows[1], rows[2]
    L1, L2, L3 = row(direction, first), row(direction, middle), row(direction, last)
    return _Sightings(
        # differences first: an epoch near MJD 60000 has a rounding error of a microsecond
        t[first] - t[middle],
        t[last] - t[middle],
        L1,
        L2,
        L3,
        row(position, first),
        row(position, middle),
        row(position, last),
        cross3(L1, L3),
        # by differences, which short arcs keep exact while the directions themselves cancel
        dot3(L2, cross3(minus3(L1, L2), minus3(L3, L2))),
    )


@compiled
def _series(tau1: float, tau3: float) -> _Series:
    """Series of the area ratios for times of the outer emissions from the middle one."""
    total = tau3 - tau1
    A1, A3 = tau3 / total, -tau1 / total
    square = total * total
    return _Series(A1, A3, A1 * (square - tau3 * tau3) / 6.0, A3 * (square - tau1 * tau1) / 6.0)


@compiled
def _equation(
    s: _Sightings, series: _Series, epsilon1: float, epsilon3: float
) -> tuple[float, float]:
    """P and Q of the scalar equation of the middle range for area ratios ``A + B u + epsilon``."""
    # A1 + A3 = 1, so only differences of the observer's positions enter and do not cancel
    bend = combined3(series.A1, minus3(s.R1, s.R2), series.A3, minus3(s.R3, s.R2))
    bend = plus3(plus3(bend, epsilon1, s.R1), epsilon3, s.R3)
    pull = combined3(series.B1, s.R1, series.B3, s.R3)
    return dot3(s.normal, bend) / s.volume, dot3(s.normal, pull) / s.volume


@compiled
def _orbit(
    s: _Sightings, rho: float, c1: float, c3: float, f1: float, g1: float, f3: float, g3: float
) -> _Orbit:
    """Ranges, position and velocity from the middle range, area ratios and Lagrange's f, g."""
    r2 = plus3(s.R2, rho, s.L2)
    # c1 rho1 L1 + c3 rho3 L3 = a given vector, resolved in the plane of L1 and L3
    target = plus3(plus3(r2, -c1, s.R1), -c3, s.R3)
    size = dot3(s.normal, s.normal)
    rho1 = dot3(cross3(target, s.L3), s.normal) / (size * c1)
    rho3 = dot3(cross3(s.L1, target), s.normal) / (size * c3)
    determinant = f1 * g3 - f3 * g1
    r1, r3 = plus3(s.R1, rho1, s.L1), plus3(s.R3, rho3, s.L3)
    return _Orbit(rho1, rho, rho3, r2, combined3(f1 / determinant, r3, -f3 / determinant, r1))


@inlined
def _classical_orbit(s: _Sightings, rho: float, mu: float) -> _Orbit:
    """Orbit by the series of the area ratios, as textbooks have it."""
    series = _series(s.before, s.after)
    u = mu / length3(plus3(s.R2, rho, s.L2)) ** 3
    f1, f3 = 1.0 - 0.5 * u * s.before**2, 1.0 - 0.5 * u * s.after**2
    g1, g3 = s.before - u * s.before**3 / 6.0, s.after - u * s.after**3 / 6.0
    return _orbit(s, rho, series.A1 + series.B1 * u, series.A3 + series.B3 * u, f1, g1, f3, g3)


@inlined
def _tolerance(s: _Sightings, rho: float) -> float:
    """Relative change at which a range has settled.

    Rounding of the directions blurs the range of a nearly straight arc, rounding of the observer's
    positions that of an object near the observer.
    """
    blur = _EPS * length3(s.normal) / abs(s.volume)
    nearness = length3(s.R2) / rho
    return min(_TOLERANCE + 4.0 * blur * max(nearness, 1.0), 1.0e-6)


@inlined
def _refined(
    s: _Sightings, first: _Orbit, mu: float, light_speed: float, max_iterations: int
) -> tuple[bool, _Orbit]:
    """Orbit iterated with exact Lagrange coefficients until its range settles, or the first one."""
    orbit, rho = first, first.rho2
    tolerance = _tolerance(s, rho)
    E, R = dot3(s.R2, s.L2), length3(s.R2)
    earlier, earlier_mapped = math.nan, math.nan
    for _ in range(max_iterations):
        tau1 = s.before - (orbit.rho1 - orbit.rho2) / light_speed
        tau3 = s.after - (orbit.rho3 - orbit.rho2) / light_speed
        r0, eta = length3(orbit.r), dot3(orbit.r, orbit.v)
        beta = 2.0 * mu / r0 - dot3(orbit.v, orbit.v)
        f1, g1, _, _ = lagrange_of(r0, eta, beta, tau1, mu)
        f3, g3, _, _ = lagrange_of(r0, eta, beta, tau3, mu)
        determinant = f1 * g3 - f3 * g1
        series, u = _series(tau1, tau3), mu / r0**3
        epsilon1 = g3 / determinant - series.A1 - series.B1 * u
        epsilon3 = -g1 / determinant - series.A3 - series.B3 * u
        P, Q = _equation(s, series, epsilon1, epsilon3)
        mapped = polished_range(polished_range(rho, P, Q, E, R, mu), P, Q, E, R, mu)
        secant = _secant(rho, mapped, earlier, earlier_mapped)
        # where the iteration contracts slowly the secant is far off and the change deceives
        change = np.fmax(abs(mapped - rho), abs(secant - rho))
        earlier, earlier_mapped = rho, mapped
        rho = secant if 0.5 * rho < secant < 2.0 * rho else mapped
        u = mu / length3(plus3(s.R2, rho, s.L2)) ** 3
        c1 = series.A1 + series.B1 * u + epsilon1
        c3 = series.A3 + series.B3 * u + epsilon3
        orbit = _orbit(s, rho, c1, c3, f1, g1, f3, g3)
        if not (math.isfinite(orbit.rho1 + orbit.rho2 + orbit.rho3) and mapped > 0.0):
            break
        if change <= tolerance * mapped:
            # ranges behind the observer are no sighting, however well they solve the equations
            if orbit.rho1 > 0.0 and orbit.rho2 > 0.0 and orbit.rho3 > 0.0:
                return True, orbit
            break
    return False, first


@inlined
def _secant(rho: float, mapped: float, earlier: float, earlier_mapped: float) -> float:
    """Next middle range by the secant through the last two steps (Wegstein 1958).

    The iteration is very nearly one-dimensional; the secant makes slow contractions fast and turns
    most divergences into convergence. Steps beyond a factor of two are left to the plain iteration.
    """
    slope = (mapped - earlier_mapped) / (rho - earlier)
    return rho + (mapped - rho) / (1.0 - slope)


@inlined
def _claimed_noise(s: _Sightings, rows: IntArray, o: Observations) -> float:
    """Standard error of the bend by the claimed errors of the three sightings."""
    square = 0.0
    total = s.after - s.before
    sights = (s.after / total, s.L1), (-1.0, s.L2), (-s.before / total, s.L3)
    for k, (weight, direction) in enumerate(sights):
        east, north = axes3(direction)
        by_east = weight * dot3(east, s.normal) * o.sigma_ra[rows[k]]
        by_north = weight * dot3(north, s.normal) * o.sigma_dec[rows[k]]
        square += by_east * by_east + by_north * by_north
    return math.sqrt(square)


@announced("Gauss's method", 6)
@compiled
def _solve(
    triplet: IntArray,
    o: Observations,
    direction: FloatArray,
    mu: float,
    light_speed: float,
    max_iterations: int,
    least_bend: float,
) -> tuple[int, Roots, FloatArray, RangeEquation]:
    """Number of the roots, room that begins with them, and the equation they solve; see `_solved`.

    Arcs that bend by no more than ``least_bend`` claimed standard errors are not refined.
    """
    m = len(triplet)
    equation = RangeEquation(np.empty(m), np.empty(m), np.empty(m), np.empty(m), mu)
    roots, ranges = room_for_roots(MOST_ROOTS * m), np.empty((MOST_ROOTS * m, 3))
    rho, n = np.empty(MOST_ROOTS), 0
    for k in range(m):
        middle = triplet[k, 1]
        s = _sightings(triplet[k], o.t, direction, o.position)
        P, Q = _equation(s, _series(s.before, s.after), 0.0, 0.0)
        E, R = dot3(s.R2, s.L2), length3(s.R2)
        equation.P[k], equation.Q[k], equation.E[k], equation.R[k] = P, Q, E, R
        bent = _claimed_noise(s, triplet[k], o) * least_bend < abs(s.volume)
        for root in range(positive_roots(P, Q, E, R, mu, rho)):
            orbit = _classical_orbit(s, rho[root], mu)
            settled = max_iterations == 0
            if bent and not settled:
                settled, orbit = _refined(s, orbit, mu, light_speed, max_iterations)
            ranges[n, 0], ranges[n, 1], ranges[n, 2] = orbit.rho1, orbit.rho2, orbit.rho3
            roots.arc[n], roots.rho[n], roots.converged[n] = k, orbit.rho2, settled
            along, of_observer = dot3(s.L2, orbit.v), dot3(s.L2, row(o.velocity, middle))
            roots.rho_dot[n] = range_rate_along(along, of_observer)
            roots.epoch[n] = o.t[middle] - orbit.rho2 / light_speed
            roots.r[n, 0], roots.r[n, 1], roots.r[n, 2] = orbit.r
            roots.v[n, 0], roots.v[n, 1], roots.v[n, 2] = orbit.v
            n += 1
    return n, roots, ranges, equation


@compiled
def room_for_roots(n: int) -> Roots:
    """Room for roots, their covariances not known yet."""
    return Roots(
        np.empty(n, dtype=np.int64),
        np.empty(n),
        np.empty(n),
        np.full((n, 2, 2), np.nan),
        np.empty((n, 3)),
        np.empty((n, 3)),
        np.empty(n),
        np.empty(n, dtype=np.bool_),
    )


N_KINDS: Final = 5
"""Kinds of displacements of a sighting: by the scatter east and north, by errors of time, by the
offset of the visit east and north."""

_SHARE_OF_KIND: Final = (0, 0, 2, 1, 1)
"""Column of a variance that each kind adds to: scatter, offsets or errors of time."""


@announced("the errors of Gauss's method", 4)
@compiled
def _linear_errors(
    triplet: IntArray,
    o: Observations,
    direction: FloatArray,
    roots: Roots,
    ranges: FloatArray,
    law: ErrorLaw,
) -> tuple[FloatArray, FloatArray]:
    """Variance of the equation of each arc (M, 3), and covariance of each root (K, 3, 2, 2)."""
    m, n = len(triplet), len(ranges)
    variance, covariance = np.zeros((m, 3)), np.zeros((n, 3, 2, 2))
    shift, together = np.empty((N_KINDS, 3, 3)), np.empty((3, 3))
    effect, change = np.empty((3, 2, 3)), np.empty((3, 2))
    root = 0
    for k in range(m):
        s = _sightings(triplet[k], o.t, direction, o.position)
        _displace(s, triplet[k], k, o.t, law, shift, together)
        _add_noise(s, shift, together, variance[k])
        while root < n and roots.arc[root] == k:
            velocity = row(o.velocity, triplet[k, 1])
            _find_effects(
                s, row(ranges, root), row(roots.r, root), row(roots.v, root), velocity, effect
            )
            for kind in range(N_KINDS):
                for j in range(3):
                    place = row(shift[kind], j)
                    change[j, 0] = dot3(row(effect[j], 0), place)
                    change[j, 1] = dot3(row(effect[j], 1), place)
                part = covariance[root, _SHARE_OF_KIND[kind]]
                for a in range(2):
                    for b in range(2):
                        part[a, b] += _square(change[:, a], change[:, b], together, kind > 2)
            root += 1
    return variance, covariance


@compiled
def _square(a: FloatArray, b: FloatArray, together: FloatArray, are_shared: bool) -> float:
    """Mean product of two sums over the sightings, whose errors are shared or each their own."""
    total = 0.0
    for j in range(3):
        total += a[j] * b[j]
        if are_shared:
            for i in range(3):
                if i != j:
                    total += a[j] * together[j, i] * b[i]
    return total


@inlined
def _displace(
    s: _Sightings,
    rows: IntArray,
    k: int,
    t: FloatArray,
    law: ErrorLaw,
    shift: FloatArray,
    together: FloatArray,
) -> None:
    """Displacements of the sightings by one standard error of each kind, (N_KINDS, 3, 3).

    ``together`` takes the correlation of the offsets of two sightings, shape (3, 3).
    """
    of_middle = axes3(s.L2)
    for j, direction in enumerate((s.L1, s.L2, s.L3)):
        i, (east, north) = rows[j], axes3(direction)
        # the motion counts on the plane that touches the sphere at the middle sighting
        by_time = combined3(law.timing[i, 0], of_middle[0], law.timing[i, 1], of_middle[1])
        for axis in range(3):
            shift[0, j, axis] = law.scatter[i, 0] * east[axis]
            shift[1, j, axis] = law.scatter[i, 1] * north[axis]
            shift[2, j, axis] = by_time[axis]
            shift[3, j, axis] = law.offset[i, 0] * east[axis]
            shift[4, j, axis] = law.offset[i, 1] * north[axis]
        for other in range(3):
            apart = (t[i] - t[rows[other]]) / law.drift[k]
            is_same = law.visit[i] == law.visit[rows[other]]
            together[j, other] = math.exp(-0.5 * apart * apart) if is_same else 0.0


@inlined
def _add_noise(
    s: _Sightings, shift: FloatArray, together: FloatArray, variance: FloatArray
) -> None:
    """Variance of the bend as a part of it: by scatter, offsets and errors of time, (3,)."""
    total = s.after - s.before
    part = np.empty(3)
    for kind in range(N_KINDS):
        part[0] = dot3(row(shift[kind], 0), s.normal) * s.after / total
        part[1] = -dot3(row(shift[kind], 1), s.normal)
        part[2] = -dot3(row(shift[kind], 2), s.normal) * s.before / total
        square = _square(part, part, together, kind > 2)
        variance[_SHARE_OF_KIND[kind]] += square / (s.volume * s.volume)


@inlined
def _find_effects(
    s: _Sightings, ranges: Triple, r: Triple, v: Triple, velocity: Triple, effect: FloatArray
) -> None:
    """Change of (rho, rho_dot) of one root by a displacement of each sighting, shape (3, 2, 3).

    The plane condition, linearised: with ``dc = -3 B u (r . dr) / r^2`` it is three linear
    equations for the changes of the three ranges under a change of the three directions. Those of
    the outer positions change the velocity through Lagrange's coefficients, and it the range-rate.
    """
    tau1 = s.before - (ranges[0] - ranges[1]) / C_AU_PER_DAY
    tau3 = s.after - (ranges[2] - ranges[1]) / C_AU_PER_DAY
    series, radius = _series(tau1, tau3), length3(r)
    u = GM_SUN / radius**3
    c1, c3 = series.A1 + series.B1 * u, series.A3 + series.B3 * u
    r1, r3 = plus3(s.R1, ranges[0], s.L1), plus3(s.R3, ranges[2], s.L3)
    # moving the middle position by dr changes the condition by weight (r . dr) - dr
    bend = -3.0 * u / (radius * radius)
    weight = combined3(bend * series.B1, r1, bend * series.B3, r3)
    first, last = scaled3(c1, s.L1), scaled3(c3, s.L3)
    middle = combined3(dot3(r, s.L2), weight, -1.0, s.L2)
    of_rho1, of_rho2, of_rho3 = cross3(middle, last), cross3(last, first), cross3(first, middle)
    determinant = dot3(first, of_rho1)
    # by how much the range-rate follows a shift of each sighting and a change of its range
    pull1, pull3 = _velocity_weights(tau1, tau3, u)
    motion = minus3(v, velocity)
    by_rho1, by_rho3 = pull1 * dot3(s.L2, s.L1), pull3 * dot3(s.L2, s.L3)
    rate = combined3(-by_rho1 / determinant, of_rho1, -by_rho3 / determinant, of_rho3)
    for axis in range(3):
        pair = -of_rho2[axis] / determinant, rate[axis]
        lever = pull1 * s.L2[axis], motion[axis] / ranges[1], pull3 * s.L2[axis]
        for q in range(2):
            effect[0, q, axis], effect[2, q, axis] = c1 * pair[q], c3 * pair[q]
            effect[1, q, axis] = -pair[q]
        for j in range(3):
            effect[j, 1, axis] += lever[j]
    along = -dot3(of_rho2, weight) / determinant, dot3(rate, weight)
    for q in range(2):
        for axis in range(3):
            effect[1, q, axis] += along[q] * r[axis]
            for j in range(3):
                effect[j, q, axis] *= ranges[j]


@inlined
def _velocity_weights(tau1: float, tau3: float, u: float) -> tuple[float, float]:
    """Weights of the outer positions in the velocity of the middle one [1/d]."""
    f1, f3 = 1.0 - 0.5 * u * tau1**2, 1.0 - 0.5 * u * tau3**2
    g1, g3 = tau1 - u * tau1**3 / 6.0, tau3 - u * tau3**3 / 6.0
    determinant = f1 * g3 - f3 * g1
    return -f3 / determinant, f1 / determinant
