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

from dataclasses import replace
from typing import Final

import numpy as np
from scipy.special import ndtr

from neoranging.core.answers import Answers
from neoranging.core.arcs import Arcs
from neoranging.core.attributable import Attributables
from neoranging.core.candidates import Thresholds, solve
from neoranging.core.gauss import gauss
from neoranging.core.noise import LEAST_USUAL_SHARE, error_law, largest, quantile
from neoranging.core.orbit_fit import nearest_orbits
from neoranging.core.prediction import sight
from neoranging.core.status import RangeStatus
from neoranging.typing import AnyArray, CodeArray, FloatArray, IntArray

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
    part = arcs.take(k)
    middle = part.triplet[:, 1]
    place = {"position": part.position[middle], "velocity": part.velocity[middle]}
    motion = attributables.take(k)._replace(**place)
    status = np.full(len(k), RangeStatus.POPULATION.code, dtype=np.int8)
    # the rate that observations of one visit show has the errors of its scatter
    law = error_law(part)
    claim = np.sqrt(part.sum(part.sigma_ra**2 + part.sigma_dec**2))
    size = np.sqrt(part.sum(np.sum(law.scatter**2, axis=1))) / claim
    tail = quantile(law.scales, 2.0 * float(ndtr(-_LEAST_MOTION_SIGMAS)))
    still = _motion_significance(motion) < size * tail
    # two observations fit every orbit, and from an unknown place nothing can be fitted
    fitted = part.n_epochs >= 3
    fitted &= part.sum(~np.isfinite(part.position[:, 0]) + 0) == 0
    fitted &= np.isfinite(motion.velocity[:, 0])
    rows = np.flatnonzero(fitted & ~still)
    if near is None:
        near = answers.rho[:, None] * np.array([1.0 / _NEAR_FACTOR, _NEAR_FACTOR])
    status[rows], determined = _fit_verdict(
        part.take(rows), motion.take(rows), answers.take(k[rows]), near[k[rows]]
    )
    status[still] = RangeStatus.UNDETERMINED.code
    verdicts = answers.status.copy()
    verdicts[k] = status
    elsewhere = np.isfinite(determined) & (status[rows] != RangeStatus.OK.code)
    remarks = _with_other_ranges(answers, k[rows[elsewhere]], determined[elsewhere])
    return replace(answers, status=verdicts, remarks=remarks)


def _with_other_ranges(answers: Answers, rows: IntArray, determined: FloatArray) -> AnyArray | None:
    """Remarks, those of ``rows`` naming the range that the observations determine instead."""
    if not len(rows):
        return answers.remarks
    remarks = np.full(len(answers.rho), "", dtype=object)
    if answers.remarks is not None:
        remarks[:] = answers.remarks
    for row, rho in zip(rows.tolist(), determined.tolist(), strict=True):
        remarks[row] = f"the observations determine {rho:.4g} au instead: see method='gauss'"
    return remarks.astype(np.str_)


def _motion_significance(motion: Attributables) -> FloatArray:
    """Motion in units of its standard error, shape (M,)."""
    rates = np.stack([motion.ra_rate, motion.dec_rate], axis=1)
    (a, b), (_, d) = np.moveaxis(motion.covariance[:, 2:, 2:], 0, -1)
    with np.errstate(all="ignore"):
        square = (d * rates[:, 0] - 2.0 * b * rates[:, 1]) * rates[:, 0] + a * rates[:, 1] ** 2
        square /= a * d - b * b
    return np.sqrt(np.where(square > 0.0, square, 0.0))


def _fit_verdict(
    arcs: Arcs, motion: Attributables, answers: Answers, near: FloatArray
) -> tuple[CodeArray, FloatArray]:
    """Verdict on answers to M arcs of three epochs and more, and ranges that are determined."""
    verdict = np.full(len(arcs), RangeStatus.POPULATION.code, dtype=np.int8)
    determined = np.full(len(arcs), np.nan)
    if not len(arcs):
        return verdict, determined
    place = motion.epoch, motion.position, motion.velocity
    start = sight(answers.r, answers.v, answers.epoch, *place)
    enough = _THRESHOLDS.misfit * np.maximum(2.0 * arcs.counts - 6.0, 1.0)
    errors = dict(zip(("sigma_ra", "sigma_dec"), largest(arcs).T, strict=True))
    orbits = nearest_orbits(
        replace(arcs, **errors), motion, start.rho, start.rho_dot, bounds=near, enough=enough
    )
    least_bend = LEAST_USUAL_SHARE * _THRESHOLDS.exclusion
    bent = np.flatnonzero(motion.curvature_significance >= least_bend)
    if len(bent):
        part = arcs.take(bent)
        roots = gauss(part, exclusion=_THRESHOLDS.exclusion)
        gaussian = solve(part, motion.take(bent), roots, _THRESHOLDS)
        ok = gaussian.status == RangeStatus.OK.code
        determined[bent[ok]] = gaussian.rho[ok]
    agrees = (determined >= near[:, 0]) & (determined <= near[:, 1])
    agrees &= np.abs(np.log(determined / start.rho)) <= np.log(_AGREEMENT_FACTOR)
    verdict[agrees] = RangeStatus.OK.code
    verdict[orbits.chi2 > enough] = RangeStatus.MISFIT.code
    return verdict, determined
