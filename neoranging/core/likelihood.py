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
from typing import Final

import numpy as np

from neoranging.constants import GM_EARTH
from neoranging.core.compiled import inlined, inner
from neoranging.core.noise import LARGEST_SHARE, SHARE_OF_CLAIM, SHARE_SPREAD
from neoranging.core.sightings import (
    BRIEF_D,
    N_SCALES,
    Nights,
    Space,
    differentiate,
    differentiate_paths,
    node_state,
    predict_by_sun,
    predict_in_steps,
)
from neoranging.typing import FloatArray

_LOWEST_SCALE: Final = 3.0
"""Least ln s, in its own standard deviations below the median."""

_FAINT_PULL: Final = 3.0e-8
"""Angle [rad] by which the Earth may bend an arc and not be reckoned with: 3 mas at most."""

_STRONG_PULL: Final = 0.03
"""Bend from which partial derivatives feel it too, and are differences of whole paths."""

_MOON_RANGE: Final = 0.02
"""Range [au] below which the Moon pulls as well."""


_SINGULAR: Final = 1.0e-13
"""Part of a diagonal element below which what is left of it is rounding."""

_NONLINEARITY: Final = 0.002
"""Error by second order that ends the rounds of a fit, in units of the claimed sigma."""

_FARTHEST_CHANGE: Final = 2.0
"""Square of the change of a logarithm of a weight up to which the second order is followed."""

_MOST_FITS: Final = 5
"""Paths at most that a fit by Gauss and Newton predicts."""

_STEADY: Final = 0.05
"""Relative change of a weight, by new probabilities of the scales, that no fit is made anew for."""


def _scale_grid() -> tuple[FloatArray, FloatArray]:
    """Nodes of ln s by Gauss and Legendre, and the logarithms of their probabilities."""
    low = math.log(SHARE_OF_CLAIM) - _LOWEST_SCALE * SHARE_SPREAD
    high = math.log(LARGEST_SHARE)
    x, weight = np.polynomial.legendre.leggauss(N_SCALES)
    log_s = 0.5 * (low + high) + 0.5 * (high - low) * x
    return log_s, np.log(weight) - 0.5 * ((log_s - math.log(SHARE_OF_CLAIM)) / SHARE_SPREAD) ** 2


# the nodes crowd at the largest errors, which decide on nodes that fit badly
LOG_SCALES, LOG_PRIOR_OF_SCALES = _scale_grid()


@inner
def begin_arc(night: Nights, arc: int, space: Space) -> None:
    """Tabulate what the law says of the observations of an arc for each scale."""
    first, n = night.offsets[arc], night.offsets[arc + 1] - night.offsets[arc]
    weight, scale, mixture = space.weight, space.scale, space.mixture
    norm_ = 0.0
    for k in range(N_SCALES):
        norm_ += math.exp(LOG_PRIOR_OF_SCALES[k])
    for v in range(night.n_visits[arc]):
        for k in range(N_SCALES):
            mixture[v, k] = math.exp(LOG_PRIOR_OF_SCALES[k]) / norm_
            share = math.exp(2.0 * LOG_SCALES[k])
            for axis in range(2):
                total, determinant, offset = 0.0, 0.0, 0.0
                for i in range(n):
                    row = first + i
                    if night.visit[row] != v:
                        continue
                    variance = share * night.sigma[row, axis] ** 2 + night.clock[row, axis] ** 2
                    weight[i, axis, k] = 1.0 / variance
                    total += 1.0 / variance
                    determinant += math.log(variance)
                    offset = night.offset[row, axis]
                spread = 1.0 + offset * total
                scale[v, axis, 0, k] = total
                scale[v, axis, 1, k] = total / spread
                scale[v, axis, 2, k] = math.log(total)
                scale[v, axis, 3, k] = math.log(total / spread)
                scale[v, axis, 4, k] = determinant + math.log(spread)
                scale[v, axis, 5, k] = (1.0 - 1.0 / spread) / total
    # of one visit without errors of clocks: four numbers, two on each axis
    for axis in range(2):
        space.lever[0, axis, 0] = space.lever[0, axis, 1] = 1.0
        space.lever[0, axis, 2] = 0.0
    average_weights(night, arc, space)


@inlined
def average_weights(night: Nights, arc: int, space: Space) -> float:
    """Weights averaged over the scales as probable as they are now.

    Returns the largest change of the weight of a visit along an axis, as a part of it.
    """
    first, n = night.offsets[arc], night.offsets[arc + 1] - night.offsets[arc]
    weight, scale, mixture, sums = space.weight, space.scale, space.mixture, space.sums
    mean_weight, visit = space.mean_weight, night.visit
    largest = 0.0
    for v in range(night.n_visits[arc]):
        for axis in range(2):
            total, mean = 0.0, 0.0
            for k in range(N_SCALES):
                total += mixture[v, k] * scale[v, axis, 0, k]
                mean += mixture[v, k] * scale[v, axis, 1, k]
            largest = max(largest, abs(total - sums[v, axis, 0]) / total)
            sums[v, axis, 0], sums[v, axis, 1] = total, mean
    for i in range(n):
        v = visit[first + i]
        for axis in range(2):
            total = 0.0
            for k in range(N_SCALES):
                total += mixture[v, k] * weight[i, axis, k]
            mean_weight[i, axis] = total
    return largest


@inlined
def multiply(night: Nights, arc: int, n_free: int | np.int64, space: Space) -> None:
    """Weighted products of derivatives and residuals of each visit and axis."""
    first, n = night.offsets[arc], night.offsets[arc + 1] - night.offsets[arc]
    visit, product = night.visit, space.product
    mean_weight, slope, miss = space.mean_weight, space.slope, space.miss
    for v in range(night.n_visits[arc]):
        for axis in range(2):
            for p in range(7):
                for q in range(6):
                    product[v, axis, p, q] = 0.0
    for i in range(n):
        v = visit[first + i]
        for axis in range(2):
            w, off = mean_weight[i, axis], miss[i, axis]
            for p in range(n_free):
                weighted = w * slope[i, axis, p]
                for q in range(p + 1):
                    product[v, axis, p, q] += weighted * slope[i, axis, q]
                product[v, axis, 5, p] += weighted * off
                product[v, axis, 6, p] += weighted
            product[v, axis, 6, 5] += w * off


@inlined
def solve_normal(night: Nights, arc: int, n_free: int | np.int64, space: Space) -> bool:
    """Normal matrix of the first ``n_free`` numbers and its inverse; False if it is singular."""
    normal, product, sums = space.normal, space.product, space.sums
    multiply(night, arc, n_free, space)
    for p in range(5):
        for q in range(6):
            normal[p, q] = 0.0
    for v in range(night.n_visits[arc]):
        for axis in range(2):
            total, mean = sums[v, axis, 0], sums[v, axis, 1]
            # the mean of a visit weighs less than its observations do, for the offset they share
            excess = (1.0 - mean / total) / total
            for p in range(n_free):
                lost = excess * product[v, axis, 6, p]
                for q in range(p + 1):
                    normal[p, q] += product[v, axis, p, q] - lost * product[v, axis, 6, q]
                normal[p, 5] += product[v, axis, 5, p] - lost * product[v, axis, 6, 5]
    return invert(normal, space.root, space.inverse, n_free)


@inner
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
                normal[p, q] = value * root[q, q]
            elif value > _SINGULAR * normal[p, p]:
                normal[p, p] = math.sqrt(value)
                root[p, p] = 1.0 / normal[p, p]
            else:
                return False
    for p in range(size):
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


@inlined
def take_step(night: Nights, arc: int, n_free: int | np.int64, space: Space) -> float:
    """Correct the fit by its step and the residuals by the slopes; the largest shift [rad]."""
    n = night.offsets[arc + 1] - night.offsets[arc]
    step, inverse, normal, fit = space.step, space.inverse, space.normal, space.fit
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


@inlined
def find_leverages(night: Nights, arc: int, n_free: int | np.int64, space: Space) -> None:
    """Leverages of each visit and axis upon the attributable, and what is beyond them.

    To second order in the logarithm of a weight the integral over the attributable has the factor
    ``t / 2 - (h - g) / 4``: t is the square of what the visit pulls the fit by, h and g are the
    traces of its part of the normal matrix over the whole, and of the square of that.
    """
    product, step, part = space.product, space.step, space.part
    lever, sums = space.lever, space.sums
    # the inverse of the part of the attributable, whether or not the range-rate was fitted as well
    inverse, root = space.alone, space.root
    for p in range(4):
        for q in range(p + 1):
            value = space.inverse[p, q]
            if n_free > 4:
                value -= root[4, p] * root[4, q]
            inverse[p, q] = inverse[q, p] = value
    for v in range(night.n_visits[arc]):
        for axis in range(2):
            total, of_mean = sums[v, axis, 0], sums[v, axis, 1]
            # the weight of a mean grows the less with those of its observations, the more they are
            lost = (1.0 - (of_mean / total) ** 2) / total
            # what is left of the residuals by the step that was taken
            left = product[v, axis, 6, 5]
            for q in range(n_free):
                left -= product[v, axis, 6, q] * step[q]
            spread, mean = 0.0, 0.0
            for p in range(4):
                gathered = product[v, axis, 6, p]
                pull = product[v, axis, 5, p] - lost * gathered * left
                for q in range(n_free):
                    pull -= product[v, axis, max(p, q), min(p, q)] * step[q]
                part[p, 4] = pull
                for q in range(p + 1):
                    both = gathered * product[v, axis, 6, q]
                    part[p, q] = part[q, p] = product[v, axis, p, q] - lost * both
                    # the matrices are symmetric, and only half of each is gone through
                    times = inverse[p, q] if p == q else 2.0 * inverse[p, q]
                    spread += times * product[v, axis, p, q]
                    mean += times * both
            lever[v, axis, 0] = spread - mean / total
            lever[v, axis, 1] = mean * of_mean / total**2
            lever[v, axis, 2] = second_order(inverse, part, space.share)


@inner
def second_order(inverse: FloatArray, part: FloatArray, share: FloatArray) -> float:
    """Twice the factor of second order of a visit and axis, as `find_leverages` explains it."""
    pull, trace, trace2 = 0.0, 0.0, 0.0
    for p in range(4):
        for q in range(4):
            pull += part[p, 4] * inverse[p, q] * part[q, 4]
            value = 0.0
            for j in range(4):
                value += inverse[p, j] * part[j, q]
            share[p, q] = value
        trace += share[p, p]
    for p in range(4):
        for q in range(4):
            trace2 += share[p, q] * share[q, p]
    return pull - 0.5 * (trace - trace2)


@inlined
def weigh_scales(night: Nights, arc: int, space: Space) -> float:
    """Logarithm of the likelihood of the residuals, the scales integrated over.

    The probabilities of the scales become those that the residuals leave.
    """
    first, n = night.offsets[arc], night.offsets[arc + 1] - night.offsets[arc]
    weight, scale, mixture, miss = space.weight, space.scale, space.mixture, space.miss
    sums, lever, by_scale, visit = space.sums, space.lever, space.by_scale, night.visit
    log_likelihood = 0.0
    for v in range(night.n_visits[arc]):
        for k in range(N_SCALES):
            by_scale[2, k] = 2.0 * LOG_PRIOR_OF_SCALES[k]
        for axis in range(2):
            for k in range(N_SCALES):
                by_scale[0, k] = by_scale[1, k] = 0.0
            for i in range(n):
                if visit[first + i] == v:
                    off = miss[i, axis]
                    for k in range(N_SCALES):
                        weighted = weight[i, axis, k] * off
                        by_scale[0, k] += weighted * off
                        by_scale[1, k] += weighted
            scatter, mean = lever[v, axis, 0], lever[v, axis, 1]
            log_total, second = math.log(sums[v, axis, 0]), lever[v, axis, 2]
            constant = scatter * log_total + mean * math.log(sums[v, axis, 1])
            for k in range(N_SCALES):
                change = min((scale[v, axis, 2, k] - log_total) ** 2, _FARTHEST_CHANGE)
                by_scale[2, k] += (
                    constant
                    + second * change
                    - by_scale[0, k]
                    + by_scale[1, k] * by_scale[1, k] * scale[v, axis, 5, k]
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


@inner
def fit_node(
    night: Nights, arc: int, rho: float, rho_dot: float, n_free: int | np.int64, space: Space
) -> tuple[float, float, bool]:
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
    is_settled : bool
        The last path moved by less than derivatives hold for.
    """
    first, n = night.offsets[arc], night.offsets[arc + 1] - night.offsets[arc]
    half = max(night.time[first + n - 1], -night.time[first])
    pull = GM_EARTH * half * half / rho**3
    n_bodies = 1 if pull < _FAINT_PULL else (3 if rho < _MOON_RANGE else 2)
    enough = math.sqrt(_NONLINEARITY * night.sigma[first, 0])
    is_plain, normal, fit = night.is_plain[arc], space.normal, space.fit
    fit[4] = 0.0
    log_likelihood, is_settled, n_paths = 0.0, False, 0
    while True:
        has_path = not is_settled and n_paths < _MOST_FITS
        if has_path:
            n_paths += 1
            node_state(night, arc, rho, rho_dot, space)
            if n_bodies == 1 and half < BRIEF_D:
                predict_by_sun(night, arc, rho, rho_dot, space)
            elif not predict_in_steps(night, arc, rho, rho_dot, n_bodies, space):
                return -np.inf, rho_dot, False
            differentiate(night, arc, rho, rho_dot, space)
            # two directions are met exactly, whatever the derivatives
            if pull > _STRONG_PULL and n > 2:
                differentiate_paths(night, arc, rho, rho_dot, n_bodies, n_free, space)
        if not solve_normal(night, arc, n_free, space):
            return -np.inf, rho_dot, False
        shift = take_step(night, arc, n_free, space)
        rho_dot += fit[4]
        fit[4] = 0.0
        if has_path:
            is_settled = shift < enough
        is_last = is_settled or n_paths == _MOST_FITS
        if is_plain:
            if is_last:
                log_likelihood = weigh_scales(night, arc, space)
                break
            continue
        # weights and fit depend on each other
        find_leverages(night, arc, n_free, space)
        log_likelihood = weigh_scales(night, arc, space)
        change = average_weights(night, arc, space)
        if is_last and (not has_path or change < _STEADY):
            break
    # the range-rate is not integrated over where it was fitted
    log_likelihood -= math.log(normal[0, 0] * normal[1, 1] * normal[2, 2] * normal[3, 3])
    node_state(night, arc, rho, rho_dot, space)
    fit[4] = log_sky_measure(n, space.normal, space.slope)
    space.counts[0] += 1
    space.counts[1] += n_paths
    return log_likelihood + fit[4], rho_dot, is_settled


@inner
def log_sky_measure(n: int, normal: FloatArray, slope: FloatArray) -> float:
    """Logarithm of the volume of directions per volume of attributables, ``|A^T A|^(1/2)``."""
    for p in range(4):
        for q in range(p + 1):
            normal[p, q] = 0.0
    for i in range(n):
        for axis in range(2):
            for p in range(4):
                for q in range(p + 1):
                    normal[p, q] += slope[i, axis, p] * slope[i, axis, q]
    measure = 1.0
    for p in range(4):
        for q in range(p + 1):
            for j in range(q):
                normal[p, q] -= normal[p, j] * normal[q, j]
            if p > q:
                normal[p, q] /= normal[q, q]
            else:
                normal[p, p] = math.sqrt(normal[p, p])
                measure *= normal[p, p]
    return math.log(measure)


@inner
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
