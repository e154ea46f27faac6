"""Nodes of a posterior at the quantiles of a density that somebody proposes.

The proposal is a mixture of normal distributions in a plane, one for each arc. Columns stand at
quantiles of its marginal, nodes at quantiles of its conditional there, so each stands for an equal
share of the proposal, and its cell reaches to the quantiles half way to its neighbours. The exact
posterior on such nodes is importance sampling with one sample to a stratum: weights are the ratio
of the posterior to the proposal, but for the midpoint rule in the place of a random point.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.special import logsumexp, ndtr

from neoranging.typing import FloatArray

_REACH: Final = 9.0
"""Standard deviations beyond the outermost component at which the plane ends."""

_HALVINGS: Final = 40
"""Halvings of an interval in the search of a quantile: to a part in 1e12."""


@dataclass(frozen=True)
class PlaneMixture:
    """Normal distributions in a plane, K for each of M arcs.

    Attributes
    ----------
    log_weight : ndarray, shape (M, K)
        Logarithms of the weights, which add up to one.
    mean : ndarray, shape (M, K, 2)
    width : ndarray, shape (M, K, 2)
        Standard deviations of x, and of y given x.
    slope : ndarray, shape (M, K)
        Derivative of the mean of y by x.
    """

    log_weight: FloatArray
    mean: FloatArray
    width: FloatArray
    slope: FloatArray

    def with_floor(self, share: float, width: float) -> PlaneMixture:
        """The same with a broad component about the origin that has a share of the weight."""
        m = len(self.log_weight)
        one = np.ones((m, 1))
        return PlaneMixture(
            np.concatenate([self.log_weight + np.log1p(-share), one * np.log(share)], axis=1),
            np.concatenate([self.mean, np.zeros((m, 1, 2))], axis=1),
            np.concatenate([self.width, np.full((m, 1, 2), width)], axis=1),
            np.concatenate([self.slope, 0.0 * one], axis=1),
        )

    def cells(self, n_columns: int, n_rows: int) -> tuple[FloatArray, FloatArray]:
        """Bounds and centres of the columns, and of the cells of each column.

        Returns
        -------
        x : ndarray, shape (M, 2 C + 1)
            Bounds at even places, quantiles in the middle of the probability between at odd ones.
        y : ndarray, shape (M, C, 2 R + 1)
            The same for the conditional at the centre of each column.
        """
        weight = np.exp(self.log_weight)
        x = _quantiles(weight, self.mean[..., 0], self.width[..., 0], 2 * n_columns)
        center = x[:, 1::2, None]
        away = (center - self.mean[:, None, :, 0]) / self.width[:, None, :, 0]
        log_share = self.log_weight[:, None] - 0.5 * away**2 - np.log(self.width[:, None, :, 0])
        share = np.exp(log_share - logsumexp(log_share, axis=2, keepdims=True))
        mean = self.mean[:, None, :, 1] + self.slope[:, None] * (center - self.mean[:, None, :, 0])
        width = np.broadcast_to(self.width[:, None, :, 1], mean.shape)
        return x, _quantiles(share, mean, width, 2 * n_rows)


def _quantiles(weight: FloatArray, mean: FloatArray, width: FloatArray, n: int) -> FloatArray:
    """Quantiles k / n of mixtures (..., K) in one dimension, k from 0 to n: (..., n + 1)."""
    low = (mean - _REACH * width).min(axis=-1, keepdims=True)
    high = (mean + _REACH * width).max(axis=-1, keepdims=True)
    level = np.arange(1, n) / n
    left = np.broadcast_to(low, (*low.shape[:-1], n - 1)).copy()
    right = np.broadcast_to(high, left.shape).copy()
    for _ in range(_HALVINGS):
        middle = 0.5 * (left + right)
        away = (middle[..., None] - mean[..., None, :]) / width[..., None, :]
        below = (weight[..., None, :] * ndtr(away)).sum(axis=-1) < level
        left, right = np.where(below, middle, left), np.where(below, right, middle)
    return np.concatenate([low, 0.5 * (left + right), high], axis=-1)
