r"""The law of the errors of one night: smaller than they claim, and those of one visit alike.

The sigmas that stations claim serve the fit of orbits over years, where the errors of a catalogue
and of a clock count. Within a visit, that is one station in one night, directions scatter by a
fraction of them that differs from visit to visit, about an offset which they share. The figures are
our own measurements of real arcs, made with ``docs/tools/noise_profile.py``.

How large the errors of one arc are, its own scatter says, and the law where it cannot. The scale s
of a visit is lognormal before it is seen; f squared residuals of sum Q about the path, in units of
the claims, turn that into

.. math::  p(s \mid Q, f) \propto p(s)\, s^{-f} e^{-Q / 2 s^2} .

With three observations f is zero and the law alone decides. An error is then normal with a scale
that is itself uncertain: a mixture with longer tails than a normal law has. It is kept as the
scales at some levels of their distribution, `Scales.levels`, and its quantiles are found from them.
In an arc of several visits the scales are taken to be large or small together, which makes the
tails of a sum of their errors no shorter than they are.
"""

from __future__ import annotations

from functools import cache
from typing import Final, NamedTuple

import numpy as np
from scipy.special import erfc, ndtr, ndtri

from neoranging.constants import ARCSEC
from neoranging.core.arcs import Arcs
from neoranging.core.attributable import path_fit, tangent_fit
from neoranging.typing import FloatArray, IntArray

SHARE_OF_CLAIM: Final = 0.25
"""Scatter of the observations of a visit, as a fraction of the standard deviation that services
assign to them: the median of real arcs of magnitude 20 and fainter."""

SHARE_SPREAD: Final = 0.85
"""Scatter of the natural logarithm of the share `SHARE_OF_CLAIM` from visit to visit."""

LARGEST_SHARE: Final = 1.5
"""Largest share; with more a tracklet would not have been reported, or would have been removed."""

LARGEST_EXCESS: Final = 3.2
"""Ratio to `LARGEST_SHARE` up to which a larger scatter is believed."""

OFFSET: Final = 0.25
"""Standard deviation of the offset of a visit, in units of the claimed sigma: the median. Offsets
differ from visit to visit as scatters do."""

DRIFT_D: Final = 0.25
"""Time in which the offset of a visit becomes another [d]: over hours the object is seen through
other air."""

DRIFT_RAD: Final = np.radians(1.0)
"""Way of an object in which the offset becomes another: it is seen against other stars."""

LEAST_CLAIM_RAD: Final = 0.08 * ARCSEC
"""Error that is added to every claim: a smaller one leaves out the catalogue, the atmosphere and
the last digit of the record."""

TIMING_D: Final = 0.8e-5
"""Standard deviation of the times within a visit [d], which displaces an object along its track.
Records of 80 columns alone round to 1e-5 d, which is 0.3e-5 of it."""

VISIT_TIMING_D: Final = 1.0e-5
"""Standard deviation of the clock of a visit [d], common to its observations."""

INDEPENDENT: Final = 4.0
"""Observations of a visit up to which errors average out; a mean of more is no better than of so
many (Veres et al. 2017, Icarus 296, 139, weight them alike)."""

LEAST_USUAL_SHARE: Final = 0.35
"""Share by which an arc has to bend beyond its claims for its orbits to be looked for."""

_EDGES: Final = np.array([0.0, 0.15, 0.4, 0.6, 0.75, 0.86, 0.93, 0.97, 0.99, 0.998, 1.0])
LEVEL_WEIGHTS: Final = np.diff(_EDGES)
"""Probabilities of the scales that a mixture is kept as, in order of size; shape (10,)."""

# beyond the middle of each: the mean square of the scales is larger than that of their middle
_LEVELS: Final = 0.7 * _EDGES[1:] + 0.3 * _EDGES[:-1]


class ErrorLaw(NamedTuple):
    """Errors of the n observations of M arcs.

    Scatter and errors of time are of each observation. The offset is shared by those of a visit and
    drifts within hours.
    """

    scatter: FloatArray
    """Root mean square scatter east and north [rad], shape (n, 2)."""
    timing: FloatArray
    """Displacement by the errors of time, east and north [rad], shape (n, 2)."""
    offset: FloatArray
    """Root mean square offset of visits, east and north [rad], shape (n, 2)."""
    drift: FloatArray
    """Time in which an offset becomes another [d], shape (M,)."""
    visit: IntArray
    """Number of the visit among all of all arcs, shape (n,)."""
    scales: FloatArray
    """Scatter at each level of its scale relative to its root mean square, shape (M, 10)."""

    def mixture(self, variance: FloatArray, index: IntArray | slice = slice(None)) -> FloatArray:
        """Standard errors at each level relative to the root mean square of all, shape (M, 10).

        Parameters
        ----------
        variance : ndarray, shape (M, 3)
            Of one number for each arc: by the scatter, by offsets, by all other errors.
        index : ndarray of int or slice
            Arcs to take.
        """
        part = variance[index]
        with np.errstate(invalid="ignore", divide="ignore"):
            part = part / part.sum(axis=1)[:, None]
        part = np.where(np.isfinite(part), part, np.array([1.0, 0.0, 0.0]))
        usual = _usual_scales()
        offset = usual**2 / (usual**2 @ LEVEL_WEIGHTS)
        squares = part[:, :1] * self.scales[index] ** 2 + part[:, 1:2] * offset + part[:, 2:]
        return np.sqrt(squares)


def quantile(scales: FloatArray, probability: float) -> FloatArray:
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


_NEWTON_STEPS: Final = 5


def largest(arcs: Arcs) -> FloatArray:
    """Standard deviations of the largest errors that the law has, east and north, shape (n, 2).

    In units of the claims: what observations that are no blunders may miss an orbit by.
    """
    owner, fit = arcs.owner, tangent_fit(arcs)
    rate = fit.sky[owner, :, 1] + (arcs.t - fit.epoch[owner])[:, None] * fit.sky[owner, :, 2]
    claim = np.stack([arcs.sigma_ra, arcs.sigma_dec], axis=1) ** 2 + LEAST_CLAIM_RAD**2
    return np.sqrt((LARGEST_SHARE**2 + OFFSET**2) * claim + (TIMING_D * rate) ** 2)


def error_law(arcs: Arcs, rest: FloatArray | None = None) -> ErrorLaw:
    """Errors of observations, by their scatter about a path.

    Parameters
    ----------
    arcs : Arcs
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
        for column in _about_the_path(residual, rate, claim, path.independence)
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
    usual = _usual_scales()
    offset = np.sqrt(claim * (usual**2 @ LEVEL_WEIGHTS)) * (OFFSET / SHARE_OF_CLAIM)
    drift = 1.0 / np.hypot(1.0 / DRIFT_D, np.hypot(*fit.sky[:, :, 1].T) / DRIFT_RAD)
    return ErrorLaw(scatter, timing, offset, drift, visit, scales)


def _about_the_path(
    residual: FloatArray, rate: FloatArray, claim: FloatArray, independence: FloatArray
) -> tuple[FloatArray, FloatArray]:
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


_LOG_FREEDOM: Final = np.linspace(0.0, np.log1p(400.0), 16)
_LOG_SCATTER: Final = np.linspace(np.log(0.01), np.log(4.0), 32)


@cache
def _table() -> FloatArray:
    """Logarithm of the scale by degrees of freedom, scatter and level, shape (16, 32, 10)."""
    log_s = np.linspace(np.log(0.01), np.log(LARGEST_SHARE), 200)
    edges = np.append(0.5 * (log_s[1:] + log_s[:-1]), np.inf)
    below = ndtr((edges - np.log(SHARE_OF_CLAIM)) / SHARE_SPREAD)
    freedom = np.expm1(_LOG_FREEDOM)[:, None, None]
    square = freedom * np.exp(2.0 * _LOG_SCATTER)[:, None]
    log_p = np.log(np.diff(below, prepend=0.0)) - freedom * log_s
    log_p = log_p - 0.5 * square * np.exp(-2.0 * log_s)
    p = np.exp(log_p - log_p.max(axis=2, keepdims=True))
    # in the middle of its cell each scale has half of its own probability below
    cdf = (np.cumsum(p, axis=2) - 0.5 * p) / p.sum(axis=2, keepdims=True)
    return np.apply_along_axis(lambda column: np.interp(_LEVELS, column, log_s), 2, cdf)


@cache
def _usual_scales() -> FloatArray:
    """Scales of a visit that nothing is seen of, at their levels, shape (10,)."""
    return np.exp(_table()[0, 0])


def _scales(freedom: FloatArray, square: FloatArray) -> FloatArray:
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
