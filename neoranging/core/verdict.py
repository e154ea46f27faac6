"""The verdict on answers that were not solved for, such as those of a network.

A network answers everything, so its verdict has to come from the observations:

- an arc whose motion is not larger than its errors shows no object that moves: ``UNDETERMINED``;
- an arc that no orbit with a range near the answer fits is of no object there: ``MISFIT``. Near is
  the interval that held the truth in nineteen of twenty cases, or a factor without one;
- where Gauss's method, on the same observations from where they were made, finds a determined range
  that is near the answer and a quarter off it at most, the observations exclude all other ranges:
  ``OK``;
- every other answer rests on what the network has learnt of the population: ``POPULATION``. Where
  the observations determine another range, a remark says so.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

import numpy as np
from scipy.special import ndtr

from neoranging.constants import GM_SUN
from neoranging.core.answers import Answers
from neoranging.core.arcs import Arcs, Observations
from neoranging.core.attributable import Attributables
from neoranging.core.candidates import Thresholds
from neoranging.core.compiled import announced, compiled, plain
from neoranging.core.gauss import solved
from neoranging.core.noise import LEAST_USUAL_SHARE, error_law, largest, quantile
from neoranging.core.orbit_fit import nearest_orbits
from neoranging.core.prediction import light_path, range_rate_along
from neoranging.core.status import RangeStatus
from neoranging.core.triples import dot3, length3, row
from neoranging.typing import AnyArray, BoolArray, FloatArray, IntArray

_LEAST_MOTION_SIGMAS: Final = 4.0
"""Standard errors of its motion by which an object has to move: normal ones, as rare as errors of
that size are by the law of the errors."""

_NEAR_FACTOR: Final = 4.0
"""Factor within which the truth is near an answer of a method without calibrated intervals."""

_AGREEMENT_FACTOR: Final = 1.25
"""Ratio to the determined range up to which an answer agrees with it."""

_THRESHOLDS: Final = Thresholds()


def judged(
    arcs: Arcs, attributables: Attributables, answers: Answers, near: FloatArray | None = None
) -> Answers:
    """Answers that call themselves OK with the verdict of the observations.

    Parameters
    ----------
    arcs : Arcs
        M arcs seen from where the observers stood, whatever origin the ranges count from.
    attributables : Attributables
        Of the same observations.
    answers : Answers
        Of M arcs; every other status than OK is kept.
    near : ndarray, shape (M, 2), optional
        Bounds of the range [au] beyond which the answer is wrong; by default a factor of four.
    """
    k = np.flatnonzero(answers.status == RangeStatus.OK.code)
    if not len(k):
        return answers
    if near is None:
        near = answers.rho[:, None] * np.array([1.0 / _NEAR_FACTOR, _NEAR_FACTOR])
    part, motion, near = arcs, attributables, near[k]
    if len(k) < len(arcs):  # copies lack the fits that arcs keep
        part, motion = arcs.take(k), attributables.take(k)
    middle = part.triplet[:, 1]
    motion = motion._replace(position=part.position[middle], velocity=part.velocity[middle])
    law = error_law(part)
    tail = quantile(law.scales, 2.0 * float(ndtr(-_LEAST_MOTION_SIGMAS)))
    orbit = plain(answers.r[k]), plain(answers.v[k]), plain(answers.epoch[k])
    errors = plain(motion.covariance), plain(law.scatter), tail
    speed = plain(motion.ra_rate), plain(motion.dec_rate)
    still, fitted, rho, rho_dot = _starts(
        part.plain, part.triplet, part.n_epochs, speed, errors, orbit
    )
    enough = _THRESHOLDS.misfit * np.maximum(2.0 * part.counts - 6.0, 1.0)
    limits = {"errors": largest(part), "bounds": near, "enough": enough}
    orbits = nearest_orbits(part, motion, rho, rho_dot, **limits)
    determined = _determined_ranges(part, motion, fitted)
    with np.errstate(invalid="ignore"):
        agrees = (determined >= near[:, 0]) & (determined <= near[:, 1])
        agrees &= np.abs(np.log(determined / rho)) <= np.log(_AGREEMENT_FACTOR)
    status = np.full(len(k), RangeStatus.POPULATION.code, dtype=np.int8)
    status[agrees] = RangeStatus.OK.code
    status[fitted & (orbits.chi2 > enough)] = RangeStatus.MISFIT.code
    status[still] = RangeStatus.UNDETERMINED.code
    verdicts = answers.status.copy()
    verdicts[k] = status
    elsewhere = np.isfinite(determined) & (status != RangeStatus.OK.code)
    remarks = _with_other_ranges(answers, k[elsewhere], determined[elsewhere])
    return replace(answers, status=verdicts, remarks=remarks)


@announced("the verdict on answers", 4)
@compiled
def _starts(
    o: Observations,
    triplet: IntArray,
    n_epochs: IntArray,
    speed: tuple[FloatArray, FloatArray],
    errors: tuple[FloatArray, FloatArray, FloatArray],
    orbit: tuple[FloatArray, FloatArray, FloatArray],
) -> tuple[BoolArray, BoolArray, FloatArray, FloatArray]:
    """Flags of arcs that show no motion, of those to be fitted, and range and range-rate to fit.

    ``errors`` are covariance of the attributable, scatter of the observations, and the standard
    errors by which the motion has to be one; ``orbit`` is that of the answer, position, velocity
    and epoch. Range and range-rate of what is not to be fitted are no numbers.
    """
    m = len(triplet)
    is_still, is_fitted = np.zeros(m, dtype=np.bool_), np.zeros(m, dtype=np.bool_)
    start = np.full((2, m), np.nan)
    covariance, scatter, tail = errors
    r, v, epoch = orbit
    for k in range(m):
        claims, scatters, is_placed, middle = 0.0, 0.0, n_epochs[k] >= 3, triplet[k, 1]
        for i in range(o.offsets[k], o.offsets[k + 1]):
            claims += o.sigma_ra[i] ** 2 + o.sigma_dec[i] ** 2
            scatters += scatter[i, 0] ** 2 + scatter[i, 1] ** 2
            is_placed = is_placed and math.isfinite(o.position[i, 0])
        # the rate that observations of one visit show has the errors of its scatter
        size, x, y = math.sqrt(scatters) / math.sqrt(claims), speed[0][k], speed[1][k]
        a, b, d = covariance[k, 2, 2], covariance[k, 2, 3], covariance[k, 3, 3]
        square = ((d * x - 2.0 * b * y) * x + a * y * y) / (a * d - b * b)
        is_still[k] = (math.sqrt(square) if square > 0.0 else 0.0) < size * tail[k]
        # two observations fit every orbit, and from an unknown place nothing can be fitted
        is_fitted[k] = is_placed and math.isfinite(o.velocity[middle, 0]) and not is_still[k]
        if is_fitted[k]:
            place = row(o.position, middle)
            path, velocity = light_path(row(r, k), row(v, k), o.t[middle] - epoch[k], place, GM_SUN)
            rho = length3(path)
            along = dot3(path, velocity) / rho, dot3(path, row(o.velocity, middle)) / rho
            start[0, k], start[1, k] = rho, range_rate_along(along[0], along[1])
    return is_still, is_fitted, start[0], start[1]


def _determined_ranges(arcs: Arcs, motion: Attributables, fitted: BoolArray) -> FloatArray:
    """Ranges that the observations of arcs determine by Gauss's method, NaN where they do not."""
    determined = np.full(len(arcs), np.nan)
    least_bend = LEAST_USUAL_SHARE * _THRESHOLDS.exclusion
    bent = np.flatnonzero(fitted & (motion.curvature_significance >= least_bend))
    if len(bent):
        if len(bent) < len(arcs):
            arcs, motion = arcs.take(bent), motion.take(bent)
        gaussian = solved(arcs, motion, _THRESHOLDS)
        ok = gaussian.status == RangeStatus.OK.code
        determined[bent[ok]] = gaussian.rho[ok]
    return determined


def _with_other_ranges(answers: Answers, rows: IntArray, determined: FloatArray) -> AnyArray | None:
    """Remarks, those of ``rows`` naming the range that the observations determine instead."""
    if not len(rows):
        return answers.remarks
    remarks = np.full(len(answers.rho), "", dtype=object)
    if answers.remarks is not None:
        remarks[:] = answers.remarks
    for k, rho in zip(rows.tolist(), determined.tolist(), strict=True):
        remarks[k] = f"the observations determine {rho:.4g} au instead: see method='gauss'"
    return remarks.astype(np.str_)
