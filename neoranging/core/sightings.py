"""Observations of a night and the paths that a range and a range-rate predict for them: compiled.

Given range and range-rate, an attributable completes to an orbit, and that to directions at all
epochs, seen from where each observer stood, with light time. Near the Earth the path is that under
Sun, Earth and Moon (`neoranging.core.motion`), elsewhere the series of Lagrange's f and g. The
partial derivatives by the attributable come along.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from neoranging.constants import C_AU_PER_DAY, GM_EARTH, GM_SUN
from neoranging.core.arcs import Arcs
from neoranging.core.attributable import Attributables
from neoranging.core.compiled import compiled, inlined, inner
from neoranging.core.ephemeris import ATTRACTOR_TERMS
from neoranging.core.geometry import line_of_sight, sky_basis
from neoranging.core.motion import ORDER, advance, evaluate, expand, series_space, shifted
from neoranging.core.noise import (
    LEAST_CLAIM_RAD,
    OFFSET,
    SHARE_OF_CLAIM,
    TIMING_D,
    VISIT_TIMING_D,
)
from neoranging.typing import BoolArray, FloatArray, IntArray

BRIEF_D: Final = 1.0
"""Time from the reference epoch [d] within which four powers of it hold the pull of the Sun."""

_WEAK_PULL: Final = 1.0e-4
_WEAK_ORDER: Final = 5
"""Bend of a path by the Earth up to which a series of this order holds it."""

_FAINT_CLOCK: Final = 0.3 * SHARE_OF_CLAIM
"""Error by the clock, in claimed sigmas, that makes no weight differ by a tenth."""

_LEAST_REACH_D: Final = 1.0e-5
"""Reach of a series below which the object has come down on the Earth."""

N_SCALES: Final = 12
"""Nodes of the grid of ln s."""


class Nights(NamedTuple):
    """Observations of M arcs as the compiled functions take them; n rows in all."""

    offsets: IntArray
    """Bounds of the arcs, shape (M + 1,)."""
    first: IntArray
    """Row of the reference observation of each arc."""
    time: FloatArray
    """Times from the reference epoch [d], shape (n,)."""
    observer: FloatArray
    """Heliocentric positions of the observers, shape (n, 3) [au]."""
    direction: FloatArray
    """Observed unit vectors, shape (n, 3)."""
    axes: FloatArray
    """Unit vectors along and across the motion at each observation, shape (n, 2, 3)."""
    sigma: FloatArray
    """Claimed standard deviations on these axes [rad], shape (n, 2)."""
    clock: FloatArray
    """Error along the motion by the clock [rad], shape (n, 2); zero across it."""
    offset: FloatArray
    """Variance of the offset of the visit of each observation [rad^2], shape (n, 2)."""
    visit: IntArray
    """Visit of each observation, counted from 0 within its arc, shape (n,)."""
    n_visits: IntArray
    """Visits of each arc, shape (M,)."""
    is_plain: BoolArray
    """Flags of arcs whose weights are all one factor: of one visit, without errors of clocks."""
    frame: FloatArray
    """Direction, its rate, east and north of the attributables, shape (M, 4, 3)."""
    place: FloatArray
    """Heliocentric position and velocity of the observer at the reference, shape (M, 2, 3)."""
    attractors: FloatArray
    """Paths of Earth and Moon about the reference epoch, shape (M, 2, 3, ATTRACTOR_TERMS)."""


class Space(NamedTuple):
    """Arrays that the fit of one arc works in; those of n rows have room for the longest arc."""

    series: FloatArray
    path: FloatArray
    local: FloatArray
    state: FloatArray
    """Position and velocity of a node at emission, then those along a path, shape (4, 3)."""
    sight: FloatArray
    """Predicted unit vectors and distances, shape (n, 4)."""
    base: FloatArray
    """The same of the path that others are compared with."""
    slope: FloatArray
    """Partial derivatives of the residuals, shape (n, 2, 5)."""
    miss: FloatArray
    """Residuals along and across the motion [rad], shape (n, 2)."""
    weight: FloatArray
    """Inverse variances for each scale, shape (n, 2, N_SCALES)."""
    scale: FloatArray
    """Of visit and axis for each scale: the sum of the weights, the weight of the mean, the
    logarithms of both and of the determinant, and by how much less the square of the mean counts;
    shape (visits, 2, 6, N_SCALES)."""
    mixture: FloatArray
    """Probability of each scale, shape (visits, N_SCALES)."""
    mean_weight: FloatArray
    """Inverse variances averaged over the scales, shape (n, 2)."""
    sums: FloatArray
    """Of visit and axis: sum of the mean weights, and weight of the mean, shape (visits, 2, 2)."""
    lever: FloatArray
    """Leverage of visit and axis, of the scatter and of the mean, and twice the factor of second
    order; shape (visits, 2, 3)."""
    product: FloatArray
    """Weighted products of visit and axis: those of derivatives with each other, those with the
    residuals, and sums of derivatives and residuals; shape (visits, 2, 7, 6)."""
    part: FloatArray
    """Part of a visit and axis in the normal matrix and in its right-hand side, shape (4, 5)."""
    share: FloatArray
    """The same over the whole normal matrix, shape (4, 4)."""
    normal: FloatArray
    """Normal matrix, then its Cholesky factor, and the right-hand side, shape (5, 6)."""
    root: FloatArray
    """Inverse of that factor, shape (5, 5)."""
    inverse: FloatArray
    """Inverse of the normal matrix, shape (5, 5)."""
    alone: FloatArray
    """The same of its part of the attributable, shape (4, 4)."""
    step: FloatArray
    """Last change of the corrections, shape (5,)."""
    by_scale: FloatArray
    """Weighted squares and means of the residuals, and the logarithm, shape (3, N_SCALES)."""
    fit: FloatArray
    """Corrections of the attributable, and of the range-rate, shape (5,)."""
    counts: IntArray
    """Fits that were made, and paths that they predicted, shape (2,)."""


def nights(arcs: Arcs, attributables: Attributables, attractors: FloatArray) -> Nights:
    """Observations of arcs prepared for the compiled functions.

    Parameters
    ----------
    arcs : Arcs
        M arcs of known observers.
    attributables : Attributables
        Of the same arcs: where the fits start.
    attractors : ndarray, shape (M, 2, 3, ATTRACTOR_TERMS)
        Paths of Earth and Moon, by `neoranging.ephemeris.states.attractors`.
    """
    a, m, n, middle = attributables, len(arcs), len(arcs.t), arcs.triplet[:, 1]
    u, (east, north) = line_of_sight(a.ra, a.dec), sky_basis(a.ra, a.dec)
    rate = (a.ra_rate * np.cos(a.dec))[:, None] * east + a.dec_rate[:, None] * north
    night = Nights(
        arcs.offsets,
        np.ascontiguousarray(middle),
        np.empty(n),
        np.ascontiguousarray(arcs.position),
        arcs.direction,
        np.empty((n, 2, 3)),
        np.empty((n, 2)),
        np.empty((n, 2)),
        np.empty((n, 2)),
        np.empty(n, dtype=np.int64),
        np.empty(m, dtype=np.int64),
        np.empty(m, dtype=np.bool_),
        np.stack([u, rate, east, north], axis=1),
        np.stack([arcs.position[middle], arcs.velocity[middle]], axis=1),
        np.ascontiguousarray(attractors),
    )
    basis = np.stack(sky_basis(arcs.ra, arcs.dec), axis=1)
    claims = np.stack([arcs.sigma_ra, arcs.sigma_dec], axis=1)
    _prepare(night, arcs.t, basis, claims, arcs.visit_number, np.ascontiguousarray(a.curvature))
    return night


@compiled
def _prepare(
    night: Nights,
    t: FloatArray,
    basis: FloatArray,
    claims: FloatArray,
    visit: IntArray,
    bend: FloatArray,
) -> None:
    """Fill in times, visits, axes and errors; ``basis`` is east and north at each observation."""
    next_visit = 0
    for arc in range(len(night.first)):
        first, last = night.offsets[arc], night.offsets[arc + 1]
        begun, is_calm = next_visit, True
        for row in range(first, last):
            night.time[row] = t[row] - t[night.first[arc]]
            night.visit[row] = visit[row] - begun
            next_visit = max(next_visit, visit[row] + 1)
            speed = _set_axes(night, arc, row, bend)
            for axis in range(2):
                variance = 0.0
                for side in range(2):
                    turn = 0.0
                    for j in range(3):
                        turn += night.axes[row, axis, j] * basis[row, side, j]
                    variance += turn * turn * (claims[row, side] ** 2 + LEAST_CLAIM_RAD**2)
                night.sigma[row, axis] = math.sqrt(variance)
                night.offset[row, axis] = OFFSET**2 * variance
                night.clock[row, axis] = 0.0
            night.clock[row, 0] = TIMING_D * speed
            night.offset[row, 0] += (VISIT_TIMING_D * speed) ** 2
            is_calm = is_calm and not night.clock[row, 0] > _FAINT_CLOCK * night.sigma[row, 0]
        night.n_visits[arc] = next_visit - begun
        night.is_plain[arc] = is_calm and night.n_visits[arc] == 1
        for v in range(night.n_visits[arc]):
            for axis in range(2):
                total, count = 0.0, 0
                for row in range(first, last):
                    if night.visit[row] == v:
                        total += night.offset[row, axis]
                        count += 1
                for row in range(first, last):
                    if night.visit[row] == v:
                        night.offset[row, axis] = total / count


@inner
def _set_axes(night: Nights, arc: int, row: int, bend: FloatArray) -> float:
    """Axes along and across the motion of an observation, and its speed [rad/d].

    Clocks displace an object along its motion, which is another at each observation: ``bend`` has
    the curvatures of the arcs along and across it, NaN where they are not known.
    """
    frame, direction, along = night.frame[arc], night.direction[row], night.axes[row, 0]
    square, slant = 0.0, 0.0
    for j in range(3):
        square += frame[1, j] ** 2
    has_bend = square > 0.0 and math.isfinite(bend[arc, 0] + bend[arc, 1])
    factor = night.time[row] / math.sqrt(square) if has_bend else 0.0
    for j in range(3):
        along[j] = frame[1, j]
        if has_bend:
            k, i = (j + 1) % 3, (j + 2) % 3
            across = frame[0, k] * frame[1, i] - frame[0, i] * frame[1, k]
            along[j] += factor * (bend[arc, 0] * frame[1, j] + bend[arc, 1] * across)
        slant += along[j] * direction[j]
    square = 0.0
    for j in range(3):
        along[j] -= slant * direction[j]
        square += along[j] ** 2
    speed = math.sqrt(square)
    if not speed > 0.0:  # of an object that stands still any axes will do
        square = 0.0
        for j in range(3):
            along[j] = frame[2, j]
            square += along[j] ** 2
    for j in range(3):
        along[j] /= math.sqrt(square)
    for j in range(3):
        k, i = (j + 1) % 3, (j + 2) % 3
        night.axes[row, 1, j] = direction[k] * along[i] - direction[i] * along[k]
    return speed


@compiled
def make_space(n: int, n_visits: int) -> Space:
    """Space for arcs of at most n observations and visits."""
    return Space(
        series_space(),
        np.zeros((ORDER + 1, 3)),
        np.zeros((2, 3, ATTRACTOR_TERMS)),
        np.zeros((4, 3)),
        np.zeros((n, 4)),
        np.zeros((n, 4)),
        np.zeros((n, 2, 5)),
        np.zeros((n, 2)),
        np.zeros((n, 2, N_SCALES)),
        np.zeros((n_visits, 2, 6, N_SCALES)),
        np.zeros((n_visits, N_SCALES)),
        np.zeros((n, 2)),
        np.zeros((n_visits, 2, 2)),
        np.zeros((n_visits, 2, 3)),
        np.zeros((n_visits, 2, 7, 6)),
        np.zeros((4, 5)),
        np.zeros((4, 4)),
        np.zeros((5, 6)),
        np.zeros((5, 5)),
        np.zeros((5, 5)),
        np.zeros((4, 4)),
        np.zeros(5),
        np.zeros((3, N_SCALES)),
        np.zeros(5),
        np.zeros(2, dtype=np.int64),
    )


@inlined
def node_state(night: Nights, arc: int, rho: float, rho_dot: float, space: Space) -> None:
    """State at emission of a range, a range-rate and the corrected attributable."""
    frame, place, fit, state = night.frame, night.place, space.fit, space.state
    length, slant = 0.0, 0.0
    for axis in range(3):
        state[2, axis] = (
            frame[arc, 0, axis] + fit[0] * frame[arc, 2, axis] + fit[1] * frame[arc, 3, axis]
        )
        state[3, axis] = (
            frame[arc, 1, axis] + fit[2] * frame[arc, 2, axis] + fit[3] * frame[arc, 3, axis]
        )
        length += state[2, axis] ** 2
    length = 1.0 / math.sqrt(length)
    for axis in range(3):
        state[2, axis] *= length
        slant += state[2, axis] * state[3, axis]
    stretch = 1.0 / (1.0 - rho_dot / C_AU_PER_DAY)
    for axis in range(3):
        state[3, axis] -= slant * state[2, axis]
        state[0, axis] = place[arc, 0, axis] + rho * state[2, axis]
        apparent = place[arc, 1, axis] + rho_dot * state[2, axis] + rho * state[3, axis]
        state[1, axis] = apparent * stretch


@inlined
def magnitude_shift(night: Nights, arc: int, rho: float, space: Space) -> float:
    """Apparent minus absolute magnitude of a node, by the H-G system with the slope 0.15."""
    state, place = space.state, night.place
    distance, toward = 0.0, 0.0
    for axis in range(3):
        r = place[arc, 0, axis] + rho * state[2, axis]
        distance += r * r
        toward += r * state[2, axis]
    distance = math.sqrt(distance)
    cos_phase = min(max(toward / distance, -1.0), 1.0)
    tan_half = math.sqrt((1.0 - cos_phase) / (1.0 + cos_phase + 1.0e-15))
    bright = 0.85 * math.exp(-3.33 * tan_half**0.63) + 0.15 * math.exp(-1.87 * tan_half**1.22)
    return 5.0 * math.log10(rho * distance) - 2.5 * math.log10(bright)


@inlined
def predict_by_sun(night: Nights, arc: int, rho: float, rho_dot: float, space: Space) -> None:
    """Directions and distances of a node at all epochs of a short arc, under the Sun alone.

    Its state at emission stands in ``space.state``.
    """
    first, n = night.offsets[arc], night.offsets[arc + 1] - night.offsets[arc]
    state, observer, sight = space.state, night.observer, space.sight
    x, y, z = state[0, 0], state[0, 1], state[0, 2]
    vx, vy, vz = state[1, 0], state[1, 1], state[1, 2]
    # the series of Lagrange's f and g to the fourth power of time
    square = 1.0 / (x * x + y * y + z * z)
    u = GM_SUN * square * math.sqrt(square)
    s = (x * vx + y * vy + z * vz) * square
    f4 = u * (3.0 * (vx * vx + vy * vy + vz * vz) * square - 2.0 * u - 15.0 * s * s) / 24.0
    begun = rho / C_AU_PER_DAY
    for i in range(n):
        time = night.time[first + i]
        guess = max(rho + rho_dot * time, 0.0)
        t = time + begun - guess / C_AU_PER_DAY
        f = 1.0 + t * t * (-0.5 * u + t * (0.5 * u * s + t * f4))
        g = t * (1.0 + t * t * u * (-1.0 / 6.0 + 0.25 * t * s))
        dx = f * x + g * vx - observer[first + i, 0]
        dy = f * y + g * vy - observer[first + i, 1]
        dz = f * z + g * vz - observer[first + i, 2]
        # the light path differs from the guess: corrected once, by the velocity
        late = (guess - math.sqrt(dx * dx + dy * dy + dz * dz)) / C_AU_PER_DAY
        dx += late * vx
        dy += late * vy
        dz += late * vz
        distance = math.sqrt(dx * dx + dy * dy + dz * dz)
        sight[i, 0] = dx / distance
        sight[i, 1] = dy / distance
        sight[i, 2] = dz / distance
        sight[i, 3] = distance


@inner
def predict_in_steps(
    night: Nights, arc: int, rho: float, rho_dot: float, n_bodies: int, space: Space
) -> bool:
    """The same by Taylor series, begun anew as often as the path needs.

    False if the object comes down on the Earth.
    """
    first, n = night.offsets[arc], night.offsets[arc + 1] - night.offsets[arc]
    middle, attractors = night.first[arc] - first, night.attractors[arc]
    path, local, state, sight = space.path, space.local, space.state, space.sight
    position, velocity = state[2], state[3]
    start = begun = -rho / C_AU_PER_DAY
    reach = 0.0
    half = max(night.time[first + n - 1], -night.time[first])
    # the pull of the Earth on a path that it hardly bends has few terms that show
    order = ORDER if GM_EARTH * half * half > _WEAK_PULL * rho**3 or half > BRIEF_D else _WEAK_ORDER
    for sign in (1, -1):
        if sign > 0 or begun != start:
            begun = start
            for axis in range(3):
                path[0, axis], path[1, axis] = state[0, axis], state[1, axis]
            for power in range(order + 1, ORDER + 1):  # what another path has left
                path[power, 0] = path[power, 1] = path[power, 2] = 0.0
            shifted(attractors, start, local)
            reach = expand(path, local, n_bodies, order, space.series)
        i = middle if sign > 0 else middle - 1
        while 0 <= i < n:
            time = night.time[first + i]
            guess = max(rho + rho_dot * time, 0.0)
            emitted = time - guess / C_AU_PER_DAY
            while abs(emitted - begun) > reach:
                step = math.copysign(reach, emitted - begun)
                begun += step
                reach = advance(path, attractors, begun, n_bodies, step, local, space.series)
                order = ORDER
                if reach < _LEAST_REACH_D:
                    return False
            evaluate(path, order, emitted - begun, position, velocity)
            square = 0.0
            for axis in range(3):
                position[axis] -= night.observer[first + i, axis]
                square += position[axis] ** 2
            late = (guess - math.sqrt(square)) / C_AU_PER_DAY
            square = 0.0
            for axis in range(3):
                position[axis] += late * velocity[axis]
                square += position[axis] ** 2
            distance = math.sqrt(square)
            sight[i, 3] = distance
            for axis in range(3):
                sight[i, axis] = position[axis] / distance
            i += sign
    return True


@inlined
def differentiate(night: Nights, arc: int, rho: float, rho_dot: float, space: Space) -> None:
    """Residuals of the predicted path, and their partial derivatives by the five numbers of a fit.

    The derivatives are those of straight motion.
    """
    first, n = night.offsets[arc], night.offsets[arc + 1] - night.offsets[arc]
    frame, axes, direction = night.frame, night.axes, night.direction
    sight, slope, miss = space.sight, space.slope, space.miss
    stretch = 1.0 / (1.0 - rho_dot / C_AU_PER_DAY)
    # a rate stays across the direction when that is moved
    east_rate, north_rate = 0.0, 0.0
    for j in range(3):
        east_rate += frame[arc, 1, j] * frame[arc, 2, j]
        north_rate += frame[arc, 1, j] * frame[arc, 3, j]
    for i in range(n):
        row = first + i
        distance = sight[i, 3]
        drift = stretch * (night.time[row] + (rho - distance) / C_AU_PER_DAY)
        for axis in range(2):
            off, along = 0.0, 0.0
            for j in range(3):
                off += axes[row, axis, j] * (direction[row, j] - sight[i, j])
                along += axes[row, axis, j] * sight[i, j]
            radial, east, north = 0.0, 0.0, 0.0
            for j in range(3):
                across = (axes[row, axis, j] - along * sight[i, j]) / distance
                radial += across * frame[arc, 0, j]
                east += across * frame[arc, 2, j]
                north += across * frame[arc, 3, j]
            miss[i, axis] = off
            radial *= drift
            slope[i, axis, 0] = east * (rho + rho_dot * drift) - rho * east_rate * radial
            slope[i, axis, 1] = north * (rho + rho_dot * drift) - rho * north_rate * radial
            slope[i, axis, 2] = east * rho * drift
            slope[i, axis, 3] = north * rho * drift
            slope[i, axis, 4] = radial


@inner
def differentiate_paths(
    night: Nights,
    arc: int,
    rho: float,
    rho_dot: float,
    n_bodies: int,
    n_free: int | np.int64,
    space: Space,
) -> None:
    """Partial derivatives by differences of whole paths, where the Earth bends them strongly.

    They are those by the first ``n_free`` numbers of a fit.
    """
    first, n = night.offsets[arc], night.offsets[arc + 1] - night.offsets[arc]
    axes, sight, base, slope = night.axes, space.sight, space.base, space.slope
    for i in range(n):
        for j in range(4):
            base[i, j] = sight[i, j]
    span = max(night.time[first + n - 1] - night.time[first], 1.0e-3)
    for p in range(n_free):
        step = 1.0e-6 if p < 2 else 1.0e-6 / span
        rate = rho_dot
        if p < 4:
            space.fit[p] += step
        else:
            step *= rho
            rate += step
        node_state(night, arc, rho, rate, space)
        whole = predict_in_steps(night, arc, rho, rate, n_bodies, space)
        if p < 4:
            space.fit[p] -= step
        if not whole:
            continue
        for i in range(n):
            for axis in range(2):
                change = 0.0
                for j in range(3):
                    change += axes[first + i, axis, j] * (sight[i, j] - base[i, j])
                slope[i, axis, p] = change / step
