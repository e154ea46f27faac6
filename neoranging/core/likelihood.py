"""The likelihood of a range and a range-rate under the law of the errors of one night: compiled.

Given range and range-rate, the four numbers of the attributable are fitted again to all
observations of an arc, seen from where they were made, with light time, under the Sun and near the
Earth under Earth and Moon too. So a bend that the turning observer makes is no error, as it is to a
parabola, and what is left of the observations is judged by the law of `neoranging.core.noise`.

The law, on the axes along and across the motion: an observation of the visit v errs by ``s_v``
times its claimed sigma, and along the motion by its clock, about an offset that the visit shares.
For given scales all is Gaussian, and the integral over the four numbers is closed,

    |A^T A|^(1/2) |N|^(-1/2) prod |C_v|^(-1/2) exp(-chi2 / 2),    N = sum A_v^T C_v^(-1) A_v.

A are the derivatives of the directions by the four numbers. The first factor makes the integral one
over directions as they are seen, whatever the epoch that range and range-rate belong to: of an
object that passes by within the arc, rates at one instant mean little. A prior that is a density in
phase space takes the factor back.

The scales are integrated over visit by visit on a grid of ln s. Of one visit that is exact. Of
several, the determinant of N, which ties them, is taken as linear in the logarithms of the weights
about their means: its slopes are the leverages of the visits. Numbers of the scatter within a visit
and of its mean are kept apart, for the offset bounds what the mean can weigh.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from neoranging.constants import C_AU_PER_DAY, GM_EARTH, GM_SUN
from neoranging.core.arcs import Arcs
from neoranging.core.attributable import Attributables
from neoranging.core.compiled import compiled
from neoranging.core.ephemeris import ATTRACTOR_TERMS
from neoranging.core.geometry import cross, dot, line_of_sight, norm, sky_basis
from neoranging.core.motion import ORDER, advance, evaluate, expand, series_space, shifted
from neoranging.core.noise import (
    LARGEST_SHARE,
    LEAST_CLAIM_RAD,
    OFFSET,
    SHARE_OF_CLAIM,
    SHARE_SPREAD,
    TIMING_D,
    VISIT_TIMING_D,
)
from neoranging.typing import FloatArray, IntArray

N_SCALES: Final = 12
"""Nodes of the grid of ln s."""

_LOWEST_SCALE: Final = 3.0
"""Least ln s, in its own standard deviations below the median."""

_FAINT_PULL: Final = 1.0e-8
"""Angle [rad] by which the Earth may bend an arc and not be reckoned with: 2 mas."""

_STRONG_PULL: Final = 0.03
"""Bend from which partial derivatives feel it too, and are differences of whole paths."""

_MOON_RANGE: Final = 0.02
"""Range [au] below which the Moon pulls as well."""

_BRIEF_D: Final = 1.0
"""Time from the reference epoch [d] within which four powers of it hold the pull of the Sun."""

_LEAST_REACH_D: Final = 1.0e-5
"""Reach of a series below which the object has come down on the Earth."""

_SINGULAR: Final = 1.0e-13
"""Part of a diagonal element below which what is left of it is rounding."""

_NONLINEARITY: Final = 0.002
"""Error by second order that ends the rounds of a fit, in units of the claimed sigma."""

_FARTHEST_CHANGE: Final = 2.0
"""Square of the change of a logarithm of a weight up to which the second order is followed."""

_MOST_FITS: Final = 5
"""Rounds of Gauss and Newton at most."""


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
    logarithms of both and of the determinant; shape (visits, 2, 5, N_SCALES)."""
    mixture: FloatArray
    """Probability of each scale, shape (visits, N_SCALES)."""
    mean_weight: FloatArray
    """Inverse variances averaged over the scales, shape (n, 2)."""
    sums: FloatArray
    """Of visit and axis: sum of the mean weights, and weight of the mean, shape (visits, 2, 2)."""
    lever: FloatArray
    """Leverage of visit and axis, of the scatter and of the mean, and twice the factor of second
    order; shape (visits, 2, 3)."""
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
    gathered: FloatArray
    """Weighted sums of derivatives and residuals of a visit, shape (6,)."""
    by_scale: FloatArray
    """Weighted squares and means of the residuals, and the logarithm, shape (3, N_SCALES)."""
    fit: FloatArray
    """Corrections of the attributable, and of the range-rate, shape (5,)."""


def _scale_grid() -> tuple[FloatArray, FloatArray]:
    """Nodes of ln s by Gauss and Legendre, and the logarithms of their probabilities."""
    low = math.log(SHARE_OF_CLAIM) - _LOWEST_SCALE * SHARE_SPREAD
    high = math.log(LARGEST_SHARE)
    x, weight = np.polynomial.legendre.leggauss(N_SCALES)
    log_s = 0.5 * (low + high) + 0.5 * (high - low) * x
    return log_s, np.log(weight) - 0.5 * ((log_s - math.log(SHARE_OF_CLAIM)) / SHARE_SPREAD) ** 2


# the nodes crowd at the largest errors, which decide on nodes that fit badly
LOG_SCALES, LOG_PRIOR_OF_SCALES = _scale_grid()


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
    a, owner, middle = attributables, arcs.owner, arcs.triplet[:, 1]
    u, (east, north) = line_of_sight(a.ra, a.dec), sky_basis(a.ra, a.dec)
    rate = (a.ra_rate * np.cos(a.dec))[:, None] * east + a.dec_rate[:, None] * north
    time = arcs.t - arcs.t[middle][owner]
    direction, motion = arcs.direction, _motion(a, u, rate)
    motion = motion[0][owner] + time[:, None] * motion[1][owner]
    motion -= dot(motion, direction)[:, None] * direction
    speed = norm(motion)
    along = np.where(speed[:, None] > 0.0, motion, east[owner])
    along /= norm(along)[:, None]
    axes = np.stack([along, cross(direction, along)], axis=1)
    here = np.stack(sky_basis(arcs.ra, arcs.dec), axis=1)
    turn = np.einsum("nai,nbi->nab", axes, here)
    variance = np.stack([arcs.sigma_ra**2, arcs.sigma_dec**2], axis=1) + LEAST_CLAIM_RAD**2
    sigma = np.sqrt(np.einsum("nab,nb->na", turn**2, variance))
    clock = np.stack([TIMING_D * speed, np.zeros_like(speed)], axis=1)
    n = len(owner) + 1
    ranks = np.unique(arcs.visit, return_inverse=True)[1]
    labels, visit = np.unique(owner * n + ranks, return_inverse=True)
    shared = (OFFSET * sigma) ** 2
    shared[:, 0] += (VISIT_TIMING_D * speed) ** 2
    offset = np.stack([np.bincount(visit, s) / np.bincount(visit) for s in shared.T], axis=1)
    begins = np.searchsorted(labels, np.arange(len(arcs) + 1) * n)
    return Nights(
        arcs.offsets,
        np.ascontiguousarray(middle),
        time,
        np.ascontiguousarray(arcs.position),
        direction,
        axes,
        sigma,
        clock,
        offset[visit],
        visit - begins[:-1][owner],
        np.diff(begins),
        np.stack([u, rate, east, north], axis=1),
        np.stack([arcs.position[middle], arcs.velocity[middle]], axis=1),
        np.ascontiguousarray(attractors),
    )


def _motion(
    attributables: Attributables, direction: FloatArray, rate: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Motion on the sky and its change, along which clocks displace an object, each (M, 3)."""
    speed = norm(rate)
    with np.errstate(invalid="ignore", divide="ignore"):
        along = rate / speed[:, None]
    bend = attributables.curvature
    change = bend[:, :1] * along + bend[:, 1:] * cross(direction, along)
    return rate, np.where(np.isfinite(change), change, 0.0)


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
        np.zeros((n_visits, 2, 5, N_SCALES)),
        np.zeros((n_visits, N_SCALES)),
        np.zeros((n, 2)),
        np.zeros((n_visits, 2, 2)),
        np.zeros((n_visits, 2, 3)),
        np.zeros((4, 5)),
        np.zeros((4, 4)),
        np.zeros((5, 6)),
        np.zeros((5, 5)),
        np.zeros((5, 5)),
        np.zeros(6),
        np.zeros((3, N_SCALES)),
        np.zeros(5),
    )


@compiled
def begin_arc(night: Nights, arc: int, space: Space) -> None:
    """Tabulate what the law says of the observations of an arc for each scale."""
    first, n = night.offsets[arc], night.offsets[arc + 1] - night.offsets[arc]
    weight, scale, mixture = space.weight, space.scale, space.mixture
    scale[:] = 0.0
    for i in range(n):
        row = first + i
        v = night.visit[row]
        for axis in range(2):
            claim, clock = night.sigma[row, axis] ** 2, night.clock[row, axis] ** 2
            for k in range(N_SCALES):
                variance = math.exp(2.0 * LOG_SCALES[k]) * claim + clock
                weight[i, axis, k] = 1.0 / variance
                scale[v, axis, 0, k] += 1.0 / variance
                scale[v, axis, 1, k] = night.offset[row, axis]
                scale[v, axis, 4, k] += math.log(variance)
    for v in range(night.n_visits[arc]):
        for axis in range(2):
            for k in range(N_SCALES):
                total = scale[v, axis, 0, k]
                spread = 1.0 + scale[v, axis, 1, k] * total
                scale[v, axis, 1, k] = total / spread
                scale[v, axis, 2, k] = math.log(total)
                scale[v, axis, 3, k] = math.log(total / spread)
                scale[v, axis, 4, k] += math.log(spread)
        norm_ = 0.0
        for k in range(N_SCALES):
            mixture[v, k] = math.exp(LOG_PRIOR_OF_SCALES[k])
            norm_ += mixture[v, k]
        for k in range(N_SCALES):
            mixture[v, k] /= norm_
    average_weights(night, arc, space)


@compiled
def average_weights(night: Nights, arc: int, space: Space) -> None:
    """Weights averaged over the scales as probable as they are now."""
    first, n = night.offsets[arc], night.offsets[arc + 1] - night.offsets[arc]
    weight, scale, mixture, sums = space.weight, space.scale, space.mixture, space.sums
    mean_weight = space.mean_weight
    for v in range(night.n_visits[arc]):
        for axis in range(2):
            total, mean = 0.0, 0.0
            for k in range(N_SCALES):
                total += mixture[v, k] * scale[v, axis, 0, k]
                mean += mixture[v, k] * scale[v, axis, 1, k]
            sums[v, axis, 0], sums[v, axis, 1] = total, mean
    for i in range(n):
        v = night.visit[first + i]
        for axis in range(2):
            total = 0.0
            for k in range(N_SCALES):
                total += mixture[v, k] * weight[i, axis, k]
            mean_weight[i, axis] = total


@compiled
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


@compiled
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


@compiled
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
    for sign in (1, -1):
        if sign > 0 or begun != start:
            begun = start
            for axis in range(3):
                path[0, axis], path[1, axis] = state[0, axis], state[1, axis]
            shifted(attractors, start, local)
            reach = expand(path, local, n_bodies, ORDER, space.series)
        i = middle if sign > 0 else middle - 1
        while 0 <= i < n:
            time = night.time[first + i]
            guess = max(rho + rho_dot * time, 0.0)
            emitted = time - guess / C_AU_PER_DAY
            while abs(emitted - begun) > reach:
                step = math.copysign(reach, emitted - begun)
                begun += step
                reach = advance(path, attractors, begun, n_bodies, step, local, space.series)
                if reach < _LEAST_REACH_D:
                    return False
            evaluate(path, ORDER, emitted - begun, position, velocity)
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


@compiled
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


@compiled
def differentiate_paths(
    night: Nights, arc: int, rho: float, rho_dot: float, n_bodies: int, space: Space
) -> None:
    """Partial derivatives by differences of whole paths, where the Earth bends them strongly."""
    first, n = night.offsets[arc], night.offsets[arc + 1] - night.offsets[arc]
    axes, sight, slope = night.axes, space.sight, space.slope
    space.base[:n] = sight[:n]
    span = max(night.time[first + n - 1] - night.time[first], 1.0e-3)
    for p in range(5):
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
                    change += axes[first + i, axis, j] * (sight[i, j] - space.base[i, j])
                slope[i, axis, p] = change / step


@compiled
def solve_normal(night: Nights, arc: int, n_free: int | np.int64, space: Space) -> bool:
    """Normal matrix of the first ``n_free`` numbers and its inverse; False if it is singular."""
    first, n = night.offsets[arc], night.offsets[arc + 1] - night.offsets[arc]
    normal, gathered, sums = space.normal, space.gathered, space.sums
    mean_weight, slope, miss = space.mean_weight, space.slope, space.miss
    normal[:] = 0.0
    for v in range(night.n_visits[arc]):
        for axis in range(2):
            gathered[:] = 0.0
            for i in range(n):
                if night.visit[first + i] != v:
                    continue
                w = mean_weight[i, axis]
                for p in range(n_free):
                    weighted = w * slope[i, axis, p]
                    gathered[p] += weighted
                    for q in range(p + 1):
                        normal[p, q] += weighted * slope[i, axis, q]
                    normal[p, 5] += weighted * miss[i, axis]
                gathered[5] += w * miss[i, axis]
            total, mean = sums[v, axis, 0], sums[v, axis, 1]
            # the mean of a visit weighs less than its observations do, for the offset they share
            excess = (1.0 - mean / total) / total
            for p in range(n_free):
                for q in range(p + 1):
                    normal[p, q] -= excess * gathered[p] * gathered[q]
                normal[p, 5] -= excess * gathered[p] * gathered[5]
    return invert(normal, space.root, space.inverse, n_free)


@compiled
def invert(normal: FloatArray, root: FloatArray, inverse: FloatArray, size: int | np.int64) -> bool:
    """Inverse of a symmetric matrix of which the lower triangle is given; False if singular.

    That triangle becomes Cholesky's factor, and ``root`` the inverse of the factor.
    """
    for p in range(size):
        for q in range(p + 1):
            value = normal[p, q]
            for j in range(q):
                value -= normal[p, j] * normal[q, j]
            if p > q:
                normal[p, q] = value / normal[q, q]
            elif value > _SINGULAR * normal[p, p]:
                normal[p, p] = math.sqrt(value)
            else:
                return False
    for p in range(size):
        root[p, p] = 1.0 / normal[p, p]
        for q in range(p):
            value = 0.0
            for j in range(q, p):
                value -= normal[p, j] * root[j, q]
            root[p, q] = value * root[p, p]
    for p in range(size):
        for q in range(p + 1):
            value = 0.0
            for j in range(p, size):
                value += root[j, p] * root[j, q]
            inverse[p, q] = inverse[q, p] = value
    return True


@compiled
def take_step(night: Nights, arc: int, n_free: int | np.int64, space: Space) -> float:
    """Correct the fit by its step and the residuals by the slopes; the largest shift [rad]."""
    n = night.offsets[arc + 1] - night.offsets[arc]
    step, inverse, normal, fit = space.gathered, space.inverse, space.normal, space.fit
    slope, miss = space.slope, space.miss
    for p in range(n_free):
        step[p] = 0.0
        for q in range(n_free):
            step[p] += inverse[p, q] * normal[q, 5]
        fit[p] += step[p]
    largest = 0.0
    for i in range(n):
        for axis in range(2):
            shift = 0.0
            for p in range(n_free):
                shift += slope[i, axis, p] * step[p]
            miss[i, axis] -= shift
            largest = max(largest, abs(shift))
    return largest


@compiled
def find_leverages(night: Nights, arc: int, space: Space) -> None:
    """Leverages of each visit and axis upon the attributable, and what is beyond them.

    To second order in the logarithm of a weight the integral over the attributable has the factor
    ``t / 2 - (h - g) / 4``: t is the square of what the visit pulls the fit by, h and g are the
    traces of its part of the normal matrix over the whole, and of the square of that.
    """
    first, n = night.offsets[arc], night.offsets[arc + 1] - night.offsets[arc]
    inverse, gathered, slope, miss = space.inverse, space.gathered, space.slope, space.miss
    mean_weight, lever, part, share = space.mean_weight, space.lever, space.part, space.share
    for v in range(night.n_visits[arc]):
        for axis in range(2):
            gathered[:] = 0.0
            part[:] = 0.0
            for i in range(n):
                if night.visit[first + i] != v:
                    continue
                w = mean_weight[i, axis]
                for p in range(4):
                    weighted = w * slope[i, axis, p]
                    gathered[p] += weighted
                    for q in range(4):
                        part[p, q] += weighted * slope[i, axis, q]
                    part[p, 4] += weighted * miss[i, axis]
                gathered[5] += w * miss[i, axis]
            total, of_mean = space.sums[v, axis, 0], space.sums[v, axis, 1]
            spread, mean = 0.0, 0.0
            # the weight of a mean grows the less with those of its observations, the more they are
            lost = (1.0 - (of_mean / total) ** 2) / total
            for p in range(4):
                for q in range(4):
                    spread += inverse[p, q] * part[p, q]
                    mean += inverse[p, q] * gathered[p] * gathered[q]
                    part[p, q] -= lost * gathered[p] * gathered[q]
                part[p, 4] -= lost * gathered[p] * gathered[5]
            pull, trace, trace2 = 0.0, 0.0, 0.0
            for p in range(4):
                for q in range(4):
                    pull += part[p, 4] * inverse[p, q] * part[q, 4]
                    share[p, q] = 0.0
                    for j in range(4):
                        share[p, q] += inverse[p, j] * part[j, q]
                trace += share[p, p]
            for p in range(4):
                for q in range(4):
                    trace2 += share[p, q] * share[q, p]
            lever[v, axis, 0] = spread - mean / total
            lever[v, axis, 1] = mean * of_mean / total**2
            lever[v, axis, 2] = pull - 0.5 * (trace - trace2)


@compiled
def weigh_scales(night: Nights, arc: int, space: Space) -> float:
    """Logarithm of the likelihood of the residuals, the scales integrated over.

    The probabilities of the scales become those that the residuals leave.
    """
    first, n = night.offsets[arc], night.offsets[arc + 1] - night.offsets[arc]
    weight, scale, mixture, miss = space.weight, space.scale, space.mixture, space.miss
    sums, lever, by_scale = space.sums, space.lever, space.by_scale
    log_likelihood = 0.0
    for v in range(night.n_visits[arc]):
        for k in range(N_SCALES):
            by_scale[2, k] = 2.0 * LOG_PRIOR_OF_SCALES[k]
        for axis in range(2):
            for k in range(N_SCALES):
                by_scale[0, k] = by_scale[1, k] = 0.0
            for i in range(n):
                if night.visit[first + i] == v:
                    off = miss[i, axis]
                    for k in range(N_SCALES):
                        weighted = weight[i, axis, k] * off
                        by_scale[0, k] += weighted * off
                        by_scale[1, k] += weighted
            scatter, mean = lever[v, axis, 0], lever[v, axis, 1]
            log_total, second = math.log(sums[v, axis, 0]), lever[v, axis, 2]
            constant = scatter * log_total + mean * math.log(sums[v, axis, 1])
            for k in range(N_SCALES):
                total = scale[v, axis, 0, k]
                shared = by_scale[1, k] * by_scale[1, k] * (total - scale[v, axis, 1, k])
                change = min((scale[v, axis, 2, k] - log_total) ** 2, _FARTHEST_CHANGE)
                by_scale[2, k] += (
                    constant
                    + second * change
                    - by_scale[0, k]
                    + shared / (total * total)
                    - scatter * scale[v, axis, 2, k]
                    - mean * scale[v, axis, 3, k]
                    - scale[v, axis, 4, k]
                )
        highest = -np.inf
        for k in range(N_SCALES):
            highest = max(highest, by_scale[2, k])
        total = 0.0
        for k in range(N_SCALES):
            mixture[v, k] = math.exp(0.5 * (by_scale[2, k] - highest))
            total += mixture[v, k]
        for k in range(N_SCALES):
            mixture[v, k] /= total
        log_likelihood += 0.5 * highest + math.log(total)
    return log_likelihood


@compiled
def fit_node(
    night: Nights, arc: int, rho: float, rho_dot: float, n_free: int | np.int64, space: Space
) -> tuple[float, float]:
    """Fit the attributable at a node, from the corrections in ``space.fit`` on.

    Parameters
    ----------
    rho, rho_dot : float
        Range [au] and range-rate [au/d].
    n_free : int
        4, or 5 to fit the range-rate as well.

    Returns
    -------
    log_likelihood, rho_dot : float
        Minus infinity where no path is. ``space.fit[4]`` is then `log_sky_measure`.
    """
    first, n = night.offsets[arc], night.offsets[arc + 1] - night.offsets[arc]
    half = max(night.time[first + n - 1], -night.time[first])
    pull = GM_EARTH * half * half / rho**3
    n_bodies = 1 if pull < _FAINT_PULL else (3 if rho < _MOON_RANGE else 2)
    enough = math.sqrt(_NONLINEARITY * night.sigma[first, 0])
    log_likelihood = -np.inf
    space.fit[4] = 0.0
    for _ in range(_MOST_FITS):
        node_state(night, arc, rho, rho_dot, space)
        if n_bodies == 1 and half < _BRIEF_D:
            predict_by_sun(night, arc, rho, rho_dot, space)
        elif not predict_in_steps(night, arc, rho, rho_dot, n_bodies, space):
            return -np.inf, rho_dot
        differentiate(night, arc, rho, rho_dot, space)
        if pull > _STRONG_PULL:
            differentiate_paths(night, arc, rho, rho_dot, n_bodies, space)
        shift = 0.0
        # weights and fit depend on each other: together they settle once the path has
        for again in range(2):
            if again > 0 and (shift > enough or n == 2):
                break
            if not solve_normal(night, arc, n_free, space):
                return -np.inf, rho_dot
            shift = max(shift, take_step(night, arc, n_free, space))
            find_leverages(night, arc, space)
            log_likelihood = weigh_scales(night, arc, space)
            for p in range(n_free):
                log_likelihood -= math.log(space.normal[p, p])
            average_weights(night, arc, space)
        rho_dot += space.fit[4]
        space.fit[4] = 0.0
        if shift < enough:
            break
    node_state(night, arc, rho, rho_dot, space)
    space.fit[4] = log_sky_measure(n, space)
    return log_likelihood + space.fit[4], rho_dot


@compiled
def log_sky_measure(n: int, space: Space) -> float:
    """Logarithm of the volume of directions per volume of attributables, ``|A^T A|^(1/2)``."""
    normal, slope = space.normal, space.slope
    for p in range(4):
        for q in range(p + 1):
            normal[p, q] = 0.0
    for i in range(n):
        for axis in range(2):
            for p in range(4):
                for q in range(p + 1):
                    normal[p, q] += slope[i, axis, p] * slope[i, axis, q]
    measure = 0.0
    for p in range(4):
        for q in range(p + 1):
            for j in range(q):
                normal[p, q] -= normal[p, j] * normal[q, j]
            if p > q:
                normal[p, q] /= normal[q, q]
            else:
                normal[p, p] = math.sqrt(normal[p, p])
                measure += math.log(normal[p, p])
    return measure


@compiled
def largest_errors(night: Nights, arc: int, space: Space) -> float:
    """Chi-square of the residuals of the last fit, with the largest errors that the law knows."""
    first, n = night.offsets[arc], night.offsets[arc + 1] - night.offsets[arc]
    largest, total = N_SCALES - 1, 0.0
    for v in range(night.n_visits[arc]):
        for axis in range(2):
            square, mean = 0.0, 0.0
            for i in range(n):
                if night.visit[first + i] == v:
                    weighted = space.weight[i, axis, largest] * space.miss[i, axis]
                    square += weighted * space.miss[i, axis]
                    mean += weighted
            weight, of_mean = (
                space.scale[v, axis, 0, largest],
                space.scale[v, axis, 1, largest],
            )
            total += square - mean * mean * (1.0 - of_mean / weight) / weight
    return total
