"""The judging of classical roots in numpy: what the compiled verdict on one arc has to reproduce.

See `neoranging.core.candidates` for the rules. All roots are worked on together, one call of numpy
for each step.
"""

from __future__ import annotations

import numpy as np
from reference import range_equation
from reference.attributable import beyond
from reference.influence import bend_of_one
from reference.noise import error_law, largest, mixture, quantile
from reference.prediction import sky_residuals
from scipy.special import ndtr

from neoranging.constants import ARCSEC, GM_EARTH, GM_SUN, R_EARTH
from neoranging.core import admissible, columns
from neoranging.core.answers import Answers, Candidates, Roots
from neoranging.core.arcs import Arcs
from neoranging.core.attributable import Attributables, path_fit
from neoranging.core.candidates import (
    _SERIES_REACH,
    _SMALLEST_BLUNDER_RAD,
    ClassicalRoots,
    Thresholds,
)
from neoranging.core.geometry import norm
from neoranging.core.kepler import orbital_energy
from neoranging.core.noise import ErrorLaw
from neoranging.core.range_equation import RangeEquation
from neoranging.core.status import RangeStatus
from neoranging.typing import BoolArray, CodeArray, FloatArray, IntArray, StrArray

_RIVAL_STEP = np.log(1.2)
_RIVAL_RANGES_AU = 0.01 * np.exp(_RIVAL_STEP * np.arange(52))
"""Ranges asked for their fit [au]: from the Earth's Hill sphere to beyond the planets."""


def solve(
    arcs: Arcs, attributables: Attributables, classical: ClassicalRoots, thresholds: Thresholds
) -> Answers:
    """Judge the roots of each arc, choose one and say how far to trust it."""
    coefficients = attributables.energy_coefficients
    candidates, residuals = _judge(arcs, coefficients, classical.roots, thresholds)
    m = len(arcs)
    pick = np.full(m, -1)
    pick[classical.roots.arc[candidates.chosen]] = np.nonzero(candidates.chosen)[0]
    about = _about_chosen(arcs, classical.roots, pick, residuals)
    law = error_law(arcs, _beyond_parabola(arcs, about))
    variance, parts = classical.errors(law)
    parts[:, 2] += parts[:, 0] * _earth_pull(arcs, classical.roots, law)[:, None, None]
    roots = classical.roots._replace(covariance=parts.sum(axis=1))
    candidates = candidates._replace(roots=roots)
    picked = pick >= 0
    values = []
    for column in (roots.rho, roots.rho_dot, roots.covariance, roots.r, roots.v, roots.epoch):
        value = np.full((m, *column.shape[1:]), np.nan)
        value[picked] = column[pick[picked]]
        values.append(value)
    of_range = np.zeros((m, 3))
    of_range[picked] = parts[pick[picked], :, 0, 0]
    noise, tail = np.sqrt(variance.sum(axis=1)), np.ones(m)
    # the tail of a mixture is longer: what its root mean square does not determine it does not
    least = np.sqrt(values[2][:, 0, 0]) <= thresholds.relative_error * values[0]
    bent = np.flatnonzero(least & (noise * thresholds.exclusion < 1.0))
    rare = 2.0 * float(ndtr(-thresholds.exclusion))
    tail[bent] = quantile(mixture(law, variance, bent), rare) / thresholds.exclusion
    noise *= tail
    scales = mixture(law, of_range)
    misses = arcs.sum(np.sum((about / largest(arcs)) ** 2, axis=1))
    status = _verdict(
        arcs, coefficients, classical.equation, (noise, tail, misses), candidates, pick, thresholds
    )
    status, remarks = _redundant(arcs, status, thresholds)
    rho, rho_dot, covariance, r, v, epoch = values
    return Answers(
        attributables,
        rho,
        rho_dot,
        covariance,
        r,
        v,
        epoch,
        status,
        candidates,
        remarks,
        error_scales=scales,
    )


def _about_chosen(arcs: Arcs, roots: Roots, pick: IntArray, residuals: FloatArray) -> FloatArray:
    """Residuals of all observations about the orbit chosen for their arc, (n, 2); NaN without."""
    begin = np.concatenate([[0], np.cumsum(arcs.counts[roots.arc])])
    about = np.full((len(arcs.t), 2), np.nan)
    k = np.flatnonzero(pick >= 0)
    about[arcs.rows_of(k)] = residuals[columns.ragged_rows(begin[pick[k]], arcs.counts[k])]
    lost = np.ones(len(arcs), dtype=bool)
    lost[k] = ~roots.converged[pick[k]]
    about[lost[arcs.owner]] = np.nan
    return about


def _beyond_parabola(arcs: Arcs, about: FloatArray) -> FloatArray:
    """Residuals about orbits as a fit to all observations would leave them, shape (n, 2).

    An orbit near the chosen one differs from it by little more than a parabola on the sky. NaN
    where a parabola fits better, or no orbit was reached.
    """
    path = path_fit(arcs)
    rest = beyond(path, arcs, about)
    better = arcs.sum(np.sum(rest**2, axis=1)) < arcs.sum(np.sum(path.rest**2, axis=1))
    return np.where(better[arcs.owner][:, None], rest, np.nan)


def _redundant(
    arcs: Arcs, status: CodeArray, thresholds: Thresholds
) -> tuple[CodeArray, StrArray | None]:
    """Verdicts without determined ranges that one wrong position could have made, and why."""
    ok = np.flatnonzero(status == RangeStatus.OK.code)
    if not len(ok):
        return status, None
    offset = bend_of_one(arcs.take(ok), thresholds.exclusion)
    # the Sun bends the path of any object that much: an object at half an au, by GM t^2 / 4
    usual = 0.25 * GM_SUN * arcs.span[ok] ** 2
    alone = np.isfinite(offset) & (offset > _SMALLEST_BLUNDER_RAD + usual)
    if not alone.any():
        return status, None
    remarks = np.full(len(arcs), "", dtype=object)
    for k, arcsec in zip(ok[alone].tolist(), offset[alone] / ARCSEC, strict=True):
        remarks[k] = (
            f"the bend rests on one observation, {arcsec:.3g} arcsec off the line of the others: "
            "if that one is wrong so is the range"
        )
    status[ok[alone]] = RangeStatus.UNDETERMINED.code
    return status, remarks.astype(np.str_)


def _earth_pull(arcs: Arcs, roots: Roots, law: ErrorLaw) -> FloatArray:
    """Mean square of what the Earth's pull, left out, does to arcs, in that of their errors, (K,).

    The pull GM/rho^2 points at the centre of the Earth and bends the path seen from its surface
    where the two directions part, by R_EARTH/rho. Over half the arc that displaces the object on
    the sky by so many standard errors of an observation.
    """
    k = roots.arc
    reach = 0.5 * arcs.span[k]
    shift = 0.5 * GM_EARTH * R_EARTH * reach**2 / roots.rho**4
    variance = arcs.sum(np.sum(law.scatter**2, axis=1))[k] / (2.0 * arcs.counts[k])
    return shift**2 / variance


def _judge(
    arcs: Arcs, coefficients: FloatArray, roots: Roots, thresholds: Thresholds
) -> tuple[Candidates, FloatArray]:
    """Candidates that the roots are, and the residuals of the observations about each [rad]."""
    k = roots.arc
    energy = orbital_energy(roots.r, roots.v)
    inside = admissible.is_admissible(coefficients[k], roots.rho, roots.rho_dot, energy)
    chi2, residual, residuals = _misfit(arcs, roots)
    best = np.full(len(arcs), np.inf)
    trusted = roots.converged & np.isfinite(chi2)
    np.minimum.at(best, k[trusted], chi2[trusted])
    excess = np.where(trusted, chi2 - best[k], np.inf)
    fits = excess <= thresholds.chi2_excess
    fit_class = np.minimum(np.floor(excess), thresholds.chi2_excess + 1.0)
    # lexsort's last key is the first to count: arc, converged, fitting, admissible, fit, distance
    order = np.lexsort((-roots.rho, fit_class, ~inside, ~fits, ~roots.converged, k))
    chosen = np.zeros(len(k), dtype=bool)
    first = np.ones(len(k), dtype=bool)
    first[1:] = np.diff(k[order]) > 0
    chosen[order[first]] = True
    found = Candidates(roots, energy, inside, chi2, residual, fits & inside, chosen)
    return found, residuals


def _misfit(arcs: Arcs, roots: Roots) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Chi-square and root mean square residual [rad] of each root over its arc, and all of them."""
    if not len(roots.arc):
        return np.empty(0), np.empty(0), np.empty((0, 2))
    fitted = arcs.take(roots.arc)
    residuals = sky_residuals(fitted, roots.r, roots.v, roots.epoch)
    sigma = np.stack([fitted.sigma_ra, fitted.sigma_dec], axis=1)
    chi2 = fitted.sum(np.sum((residuals / sigma) ** 2, axis=1))
    mean = fitted.sum(np.sum(residuals**2, axis=1)) / fitted.counts
    return chi2, np.sqrt(mean), residuals


def _verdict(
    arcs: Arcs,
    coefficients: FloatArray,
    equation: RangeEquation,
    errors: tuple[FloatArray, FloatArray, FloatArray],
    candidates: Candidates,
    pick: IntArray,
    thresholds: Thresholds,
) -> CodeArray:
    noise, tail, misses = errors
    roots = candidates.roots
    status = np.full(len(arcs), RangeStatus.NO_ROOT.code, dtype=np.int8)
    # also where the noise is no number: an object that does not move
    straight = ~(noise * thresholds.exclusion <= 1.0)
    status[straight] = RangeStatus.UNDETERMINED.code
    k = np.nonzero(pick >= 0)[0]
    if not len(k):
        return status
    chosen = pick[k]
    determined = _is_determined(
        coefficients[k],
        columns.take(equation, k),
        noise[k],
        tail[k],
        columns.take(roots, chosen),
        _at_roots(roots, len(arcs))[:, k],
        thresholds,
    )
    spare = 2.0 * arcs.counts[k] - 6.0
    misfit = misses[k] > thresholds.misfit * np.maximum(spare, 1.0)
    lost, rivals = (
        np.bincount(roots.arc, weights=flag, minlength=len(arcs))[k]
        for flag in (~roots.converged, candidates.plausible)
    )
    reach = GM_SUN * (0.5 * arcs.span[k]) ** 2 / norm(roots.r[chosen]) ** 3
    # three observations cannot tell whether a root that was lost is the true one
    rivalled = (rivals > 1) | ((spare == 0) & ((lost > 0) | (reach > _SERIES_REACH)))
    # the first condition that holds decides; np.select keeps that order
    conditions = {
        RangeStatus.UNDETERMINED: straight[k],
        RangeStatus.NOT_CONVERGED: ~roots.converged[chosen],
        RangeStatus.MISFIT: misfit & determined,
        RangeStatus.INADMISSIBLE: ~candidates.admissible[chosen] & determined,
        RangeStatus.MULTIPLE_ROOTS: rivalled & determined,
        RangeStatus.OK: determined,
    }
    status[k] = np.select(
        list(conditions.values()),
        [member.code for member in conditions],
        RangeStatus.UNDETERMINED.code,
    )
    return status


def _is_determined(
    coefficients: FloatArray,
    equation: RangeEquation,
    noise: FloatArray,
    tail: FloatArray,
    chosen: Roots,
    at_roots: BoolArray,
    thresholds: Thresholds,
) -> BoolArray:
    """Flags of the chosen roots that the errors leave no rival, one for each arc, shape (M,)."""
    rho = chosen.rho
    rival = _RIVAL_RANGES_AU[:, None]
    beyond = (rival > rho * thresholds.factor) | (rival < rho / thresholds.factor)
    beyond &= ~at_roots
    with np.errstate(invalid="ignore", divide="ignore"):
        sigmas = np.abs(range_equation.misfit(equation, rival)) / noise
        excluded = np.all(~beyond | (sigmas > thresholds.exclusion), axis=0)
        sigma = np.sqrt(np.einsum("mii->mi", chosen.covariance)) * tail[:, None]
        low, high = admissible.range_rate_interval(coefficients, rho)
        # a range-rate known no better than boundness alone would have it was not measured
        measured = ~(sigma[:, 1] > 0.5 * (high - low))
    return excluded & measured & (sigma[:, 0] <= thresholds.relative_error * rho)


def _at_roots(roots: Roots, m: int) -> BoolArray:
    """Flags of the rival ranges that stand next to a root of each of m arcs, (n_ranges, m)."""
    nearest = np.rint(np.log(roots.rho / _RIVAL_RANGES_AU[0]) / _RIVAL_STEP)
    inside = (nearest >= 0) & (nearest < len(_RIVAL_RANGES_AU))
    near_root = np.zeros((len(_RIVAL_RANGES_AU), m), dtype=bool)
    near_root[nearest[inside].astype(np.int64), roots.arc[inside]] = True
    return near_root
