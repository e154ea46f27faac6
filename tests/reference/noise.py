"""The law of the errors in numpy: what the compiled one of one arc has to reproduce.

See `neoranging.core.noise` for the law. Visits of all arcs are worked on together; the arcs of one
call have one visit each, or several each.
"""

from __future__ import annotations

import numpy as np
from reference.attributable import independence
from scipy.special import erfc, ndtri

from neoranging.core.attributable import path_fit, tangent_fit
from neoranging.core.noise import (
    _LEVELS,
    _LOG_FREEDOM,
    _LOG_SCATTER,
    _NEWTON_STEPS,
    DRIFT_D,
    DRIFT_RAD,
    LARGEST_EXCESS,
    LARGEST_SHARE,
    LEAST_CLAIM_RAD,
    LEVEL_WEIGHTS,
    OFFSET,
    SHARE_OF_CLAIM,
    TIMING_D,
    VISIT_TIMING_D,
    ErrorLaw,
    _table,
    usual_scales,
)


def mixture(law, variance, index=slice(None)):
    """Standard errors at each level relative to the root mean square of all, shape (M, 10)."""
    part = variance[index]
    with np.errstate(invalid="ignore", divide="ignore"):
        part = part / part.sum(axis=1)[:, None]
    part = np.where(np.isfinite(part), part, np.array([1.0, 0.0, 0.0]))
    usual = usual_scales()
    offset = usual**2 / (usual**2 @ LEVEL_WEIGHTS)
    squares = part[:, :1] * law.scales[index] ** 2 + part[:, 1:2] * offset + part[:, 2:]
    return np.sqrt(squares)


def quantile(scales, probability):
    """Absolute error exceeded with a probability by mixtures of normal laws.

    Parameters
    ----------
    scales : ndarray, shape (M, 10)
        Standard deviations of the normal laws, which have the weights `LEVEL_WEIGHTS`.
    probability : float
        Between 0 and 1, of both tails together.

    Returns
    -------
    ndarray, shape (M,)
    """
    precision = 0.5 / scales**2
    # none of the laws alone may exceed it more often
    alone = ndtri(1.0 - 0.5 * np.minimum(probability / LEVEL_WEIGHTS, 1.0))
    # every scale in its place is at least as large as the least: a start for one law of weight 1
    least = np.maximum(np.max(scales * alone, axis=1), -ndtri(0.5 * probability) * scales[:, 0])
    square = least**2
    # as a function of the squared error the logarithm of the tail is convex: Newton's method
    # approaches from below and cannot overshoot
    for _ in range(_NEWTON_STEPS):
        argument = precision * square[:, None]
        root = np.sqrt(argument)
        tail = erfc(root) @ LEVEL_WEIGHTS
        slope = (np.exp(-argument) * precision / root) @ LEVEL_WEIGHTS / np.sqrt(np.pi)
        square = square + np.log(tail / probability) * tail / slope
    return np.sqrt(square)


def largest(arcs):
    """Standard deviations of the largest errors that the law has, east and north, shape (n, 2).

    In units of the claims: what observations that are no blunders may miss an orbit by.
    """
    owner, fit = arcs.owner, tangent_fit(arcs)
    rate = fit.sky[owner, :, 1] + (arcs.t - fit.epoch[owner])[:, None] * fit.sky[owner, :, 2]
    claim = np.stack([arcs.sigma_ra, arcs.sigma_dec], axis=1) ** 2 + LEAST_CLAIM_RAD**2
    return np.sqrt((LARGEST_SHARE**2 + OFFSET**2) * claim + (TIMING_D * rate) ** 2)


def error_law(arcs, rest=None):
    """Errors of observations, by their scatter about a path.

    Parameters
    ----------
    arcs
        M arcs of three epochs or more.
    rest : ndarray, shape (n, 2), optional
        Residuals about an orbit, east and north [rad], as `PathFit.beyond` leaves them; where they
        are no numbers, and by default, those about the parabola count.
    """
    owner = arcs.owner
    fit, path = tangent_fit(arcs), path_fit(arcs)
    rate = fit.sky[owner, :, 1] + (arcs.t - fit.epoch[owner])[:, None] * fit.sky[owner, :, 2]
    claim = np.stack([arcs.sigma_ra, arcs.sigma_dec], axis=1) ** 2 + LEAST_CLAIM_RAD**2
    residual = path.rest if rest is None else np.where(np.isfinite(rest), rest, path.rest)
    visit = arcs.visit_number
    size = np.bincount(visit)
    several = len(size) > len(arcs)
    # to one visit a wrong clock is a wrong epoch, to several a displacement of each
    others = (size[visit] < arcs.counts[owner])[:, None]
    timing = np.where(others, np.hypot(TIMING_D, VISIT_TIMING_D), TIMING_D) * rate
    if several:
        mean = np.stack([np.bincount(visit, axis) for axis in residual.T], axis=1) / size[:, None]
        residual = residual - mean[visit]
    # errors of time stand along the track, where residuals tell so much less of the scatter
    square, freedom = (
        np.bincount(visit, column).astype(np.float64, copy=False)
        for column in _about_the_path(residual, rate, claim, independence(path))
    )
    freedom = np.where(freedom > 1.0e-6, freedom, 0.0)
    if several:
        freedom = freedom * (1.0 - 1.0 / size)
    scale = _scales(freedom, square)
    if rest is not None:
        # a visit that scatters more about an orbit than the law has it is taken at its word
        about_orbit = np.bincount(visit, np.isfinite(rest[:, 0])) > 0
        excess = np.sqrt(square / (freedom + 1.0)) / LARGEST_SHARE
        # more is a blunder, of which no law of errors tells
        about_orbit &= excess < LARGEST_EXCESS
        scale *= np.where(about_orbit, np.maximum(excess, 1.0), 1.0)[:, None]
    mean2 = scale**2 @ LEVEL_WEIGHTS
    if several:
        total = claim.sum(axis=1)
        squares = arcs.sum(total[:, None] * scale[visit] ** 2)
        scales = np.sqrt(squares / arcs.sum(total * mean2[visit])[:, None])
    else:
        scales = scale / np.sqrt(mean2)[:, None]
    scatter = np.sqrt(claim * mean2[visit][:, None])
    usual = usual_scales()
    offset = np.sqrt(claim * (usual**2 @ LEVEL_WEIGHTS)) * (OFFSET / SHARE_OF_CLAIM)
    drift = 1.0 / np.hypot(1.0 / DRIFT_D, np.hypot(*fit.sky[:, :, 1].T) / DRIFT_RAD)
    return ErrorLaw(scatter, timing, offset, drift, visit, scales)


def _about_the_path(residual, rate, claim, independence):
    """Squared residuals in units of the claims and their degrees of freedom, each of shape (n,)."""
    speed2 = np.sum(rate**2, axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        along = np.sum(residual * rate, axis=1) ** 2 / speed2
        along_claim = np.sum(claim * rate**2, axis=1) / speed2
    still = ~(speed2 > 0.0)
    along, along_claim = np.where(still, 0.0, along), np.where(still, claim[:, 0], along_claim)
    across, across_claim = np.sum(residual**2, axis=1) - along, claim.sum(axis=1) - along_claim
    with_timing = along_claim + speed2 * (TIMING_D / SHARE_OF_CLAIM) ** 2
    telling = along_claim / with_timing
    square = across / across_claim + telling * along / with_timing
    return square, independence * (1.0 + telling)


def _scales(freedom, square):
    """Scales of V visits at the levels of their distribution, shape (V, 10)."""
    with np.errstate(invalid="ignore", divide="ignore"):
        scatter = np.where(freedom > 0.0, 0.5 * np.log(square / freedom), 0.0)
    first, share = [], []
    for value, grid in ((np.log1p(freedom), _LOG_FREEDOM), (scatter, _LOG_SCATTER)):
        at = (np.clip(np.nan_to_num(value), grid[0], grid[-1]) - grid[0]) / (grid[1] - grid[0])
        first.append(np.minimum(at.astype(np.int64), len(grid) - 2))
        share.append((at - first[-1])[:, None])
    table = _table().reshape(-1, len(_LEVELS))
    width = len(_LOG_SCATTER)
    corner = first[0] * width + first[1]
    low, high = (
        table[begin] + share[1] * (table[begin + 1] - table[begin])
        for begin in (corner, corner + width)
    )
    return np.exp(low + share[0] * (high - low))
