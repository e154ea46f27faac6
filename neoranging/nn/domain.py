"""The domain of training: how probable an arc is among those that a network learnt from.

The range of each feature alone says little: an arc whose every feature is common may be one that
no training arc is like. So the domain is a density over all features together, a mixture of normal
distributions, and outside is what is less probable than all but a small share of the training arcs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import numpy as np

from neoranging.core.compiled import announced, compiled
from neoranging.nn.arrays import log_sum_exp
from neoranging.typing import BoolArray, FloatArray, IntArray

_COMPONENTS: Final = 24
"""Most components of a mixture: with 20 features 90 kB and some four microseconds an arc."""
_ARCS_PER_COMPONENT: Final = 250
"""Arcs for each component, about as many as its covariance has entries."""
_ARCS_LOOKED_AT: Final = 32_768
"""Arcs that the mixture is fitted to, drawn from all."""
_ITERATIONS: Final = 60
_LEAST_GAIN: Final = 1e-3
"""Gain of the mean log-likelihood [nat] below which an iteration is the last."""
_TOLERANCE: Final = 0.2
"""Difference, in usual spreads of a column, that is none: features may be functions of one another
in simulated arcs, as the errors along and across are, and only nearly so in real ones."""
_ROUNDING: Final = 1e-6
"""Difference of log-densities [nat] that is rounding: one arc alone or among thousands."""
LEAST_LEVEL: Final = 1e-4
MOST_LEVEL: Final = 0.1
"""Limits of the share of training arcs that is called outside."""
_LEVELS: Final = np.logspace(-4.0, -1.0, 31)
_LOG_LEVELS: Final = np.log(_LEVELS)
ARRAYS: Final = ("center", "spread", "log_weight", "mean", "covariance", "patterns", "quantiles")
"""Names of the numbers of a domain in files of weights."""


class Domain:
    """Density of the training arcs over the columns of the features.

    A mixture of K normal distributions. Arcs that lack columns (two epochs have no curvature) are
    judged by the density of the columns that they have, and by its quantiles over the training arcs
    with the same columns.

    Empty before `fit`, and in networks of files that have none: then no arc is outside. Arrays of
    numpy whatever the network is made of, since only estimates ask for it.

    Attributes
    ----------
    center, spread : ndarray, shape (F,)
        Median of each column, and half of the interval that holds 68 % of the arcs.
    log_weight : ndarray, shape (K,)
    mean : ndarray, shape (K, F)
    covariance : ndarray, shape (K, F, F)
    patterns : ndarray, shape (P, F)
        Sets of columns that an arc may have, 1 where it has one.
    quantiles : ndarray, shape (P, Q)
        Logarithm of the density below which a share of the training arcs lies, for Q shares from
        0.0001 to 0.1.
    """

    center: FloatArray
    spread: FloatArray
    log_weight: FloatArray
    mean: FloatArray
    covariance: FloatArray
    patterns: FloatArray
    quantiles: FloatArray

    def __init__(self, arrays: Mapping[str, FloatArray] | None = None) -> None:
        self._factors: dict[int, _Factor] = {}
        if arrays:
            vars(self).update({name: arrays[name] for name in ARRAYS})

    @property
    def is_fitted(self) -> bool:
        """Flag of a domain that knows training arcs."""
        return "quantiles" in vars(self)

    @property
    def arrays(self) -> dict[str, FloatArray]:
        """All numbers by name; none before `fit`."""
        return {name: getattr(self, name) for name in ARRAYS} if self.is_fitted else {}

    def fit(self, values: FloatArray, patterns: FloatArray, seed: int = 0) -> None:
        """Fit the density and its quantiles; the same arcs give the same domain.

        Parameters
        ----------
        values : ndarray, shape (N, F)
            Columns, in their own units, of training arcs that have all of them.
        patterns : ndarray, shape (P, F)
            Sets of columns that other arcs may have, 1 where they have one.
        seed : int
        """
        low, self.center, high = _lower_quantiles(values, np.array([0.16, 0.5, 0.84]))
        spread = 0.5 * (high - low)
        # columns of one value are told from it by their rounding errors alone
        least = 1e-9 * np.maximum(np.abs(self.center), 1.0)
        self.spread = np.where(spread > least, spread, 1.0)
        self.patterns, self._factors = np.asarray(patterns, dtype=np.float64), {}
        rng = np.random.default_rng(seed)
        n = min(len(values), _ARCS_LOOKED_AT)
        rows = np.sort(rng.choice(len(values), n, replace=False))
        few = np.arcsinh((values[rows] - self.center) / self.spread)
        self.log_weight, self.mean, self.covariance = _mixture(few, rng)
        densities = [self._log_density(values, k) for k in range(len(patterns))]
        self.quantiles = np.stack([_lower_quantiles(x, _LEVELS) for x in densities])

    def log_density(self, values: FloatArray, measured: BoolArray) -> FloatArray:
        """Logarithm of the density of the columns that each arc has, (B,).

        Parameters
        ----------
        values : ndarray, shape (B, F)
        measured : ndarray of bool, shape (B, F)
            Columns that the arcs have, in each row one of the patterns.
        """
        result = np.zeros(len(values))
        for pattern, rows in self._patterns_of(measured):
            result[rows] = self._log_density(values[rows], pattern)
        return result

    def outside(self, values: FloatArray, measured: BoolArray, level: float) -> BoolArray:
        """Mask (B,) of the arcs less probable than all but a share ``level`` of those of training.

        Also of arcs with values that are not finite. Levels are at least 0.0001 and at most 0.1;
        at 0, and before `fit`, no arc is outside.
        """
        result = np.zeros(len(values), dtype=bool)
        if not self.is_fitted or level == 0.0:
            return result
        for pattern, rows in self._patterns_of(measured):
            limit = np.interp(math.log(level), _LOG_LEVELS, self.quantiles[pattern])
            result[rows] = ~(self._log_density(values[rows], pattern) >= limit - _ROUNDING)
        return result

    def conflicts(self, values: FloatArray, measured: BoolArray) -> FloatArray:
        """Squares by which each column adds to the distance from the training arcs, (B, F).

        They are those of the deviation of the column from what the others let expect, in units of
        its standard deviation, in the component that the arc most likely belongs to; zero for
        columns that an arc does not have.
        """
        result = np.zeros(values.shape)
        for pattern, rows in self._patterns_of(measured):
            own, packed, mean, _ = self._factor(pattern)
            x = self._coordinates(values[rows], own)
            nearest = np.argmax(self._by_component(values[rows], pattern), axis=1)
            inverse = np.moveaxis(packed, 2, 0)[nearest]
            white = np.einsum("bij,bj->bi", inverse, x) - mean.T[nearest]
            pull = np.einsum("bij,bi->bj", inverse, white)
            # the diagonal of the precision is one over the variance of a column given the others
            squares = np.zeros((len(x), values.shape[1]))
            squares[:, own] = pull**2 / np.sum(inverse**2, axis=1)
            result[rows] = squares
        return result

    def _patterns_of(self, measured: BoolArray) -> Iterator[tuple[int, IntArray | slice]]:
        """Patterns that occur, and the rows of each."""
        for pattern, columns in enumerate(self.patterns > 0.0):
            here = np.all(measured == columns, axis=1)
            if here.all():
                yield pattern, slice(None)
                return
            if here.any():
                yield pattern, np.flatnonzero(here)

    def _factor(self, pattern: int) -> _Factor:
        if pattern not in self._factors:
            own = np.flatnonzero(self.patterns[pattern])
            lower = np.linalg.cholesky(self.covariance[:, own[:, None], own])
            inverse = np.tril(np.linalg.inv(lower))
            log_scale = np.sum(np.log(np.diagonal(lower, axis1=1, axis2=2)), axis=1)
            self._factors[pattern] = _Factor(
                own,
                np.ascontiguousarray(np.moveaxis(inverse, 0, 2)),
                np.ascontiguousarray(np.einsum("kij,kj->ik", inverse, self.mean[:, own])),
                self.log_weight - log_scale - 0.5 * len(own) * math.log(2.0 * math.pi),
            )
        return self._factors[pattern]

    def _coordinates(self, values: FloatArray, own: IntArray) -> FloatArray:
        """Columns by their usual value and spread, linear about it and logarithmic far away.

        Some columns reach hundreds of their spreads, where a few arcs would be all that counts.
        """
        return np.arcsinh((values[:, own] - self.center[own]) / self.spread[own])

    def _by_component(self, values: FloatArray, pattern: int) -> FloatArray:
        """Logarithm of weight times density of every component, (B, K)."""
        own, inverse, mean, log_norm = self._factor(pattern)
        return _log_normals(self._coordinates(values, own), inverse, mean, log_norm)

    def _log_density(self, values: FloatArray, pattern: int) -> FloatArray:
        return log_sum_exp(self._by_component(values, pattern))


class _Factor(NamedTuple):
    """A mixture over the f columns of a pattern, ready to be evaluated."""

    own: IntArray
    """The columns, (f,)."""
    inverse: FloatArray
    """Inverses of the Cholesky factors of the covariances, lower triangles, (f, f, K)."""
    mean: FloatArray
    """Means times these, (f, K)."""
    log_norm: FloatArray
    """Logarithms of the weights and normalisations, (K,)."""


@announced("the density of training arcs", 1)
@compiled
def _log_normals(
    x: FloatArray, inverse: FloatArray, mean: FloatArray, log_norm: FloatArray
) -> FloatArray:
    """Logarithms (B, K) of normal densities at x (B, f); components lie side by side in memory."""
    n, size, k = len(x), len(mean), len(log_norm)
    result, white, total = np.empty((n, k)), np.empty(k), np.empty(k)
    for b in range(n):
        for c in range(k):
            total[c] = log_norm[c]
        for i in range(size):
            for c in range(k):
                white[c] = -mean[i, c]
            for j in range(i + 1):
                column = x[b, j]
                for c in range(k):
                    white[c] += column * inverse[i, j, c]
            for c in range(k):
                total[c] -= 0.5 * white[c] * white[c]
        for c in range(k):
            result[b, c] = total[c]
    return result


def _lower_quantiles(values: FloatArray, levels: FloatArray) -> FloatArray:
    """Values, column by column, that at most a share of all lies below, for each level."""
    return np.sort(values, axis=0)[(levels * (len(values) - 1)).astype(np.int64)]


def _mixture(x: FloatArray, rng: np.random.Generator) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Weights (K,), means and covariances of normal distributions, fitted to x (N, F) by EM.

    Starts from the groups of k-means. No component is narrower than the tolerance.
    """
    from scipy.cluster.vq import kmeans2
    from scipy.linalg import solve_triangular

    n, size = x.shape
    k = min(max(n // _ARCS_PER_COMPONENT, 1), _COMPONENTS)
    _, label = kmeans2(x, k, iter=20, minit="++", seed=rng)
    share = np.eye(k)[label]
    blur = _TOLERANCE**2 * np.eye(size)
    before = -math.inf
    for _ in range(_ITERATIONS):
        counts = np.maximum(share.sum(axis=0), 1.0)
        mean = share.T @ x / counts[:, None]
        scatter = [((x - m) * s[:, None]).T @ (x - m) for m, s in zip(mean, share.T, strict=True)]
        covariance = np.stack(scatter) / counts[:, None, None] + blur
        log_weight = np.log(counts / counts.sum())
        lower = np.linalg.cholesky(covariance)
        square = [
            np.sum(solve_triangular(w, (x - m).T, lower=True) ** 2, axis=0)
            for w, m in zip(lower, mean, strict=True)
        ]
        log_p = log_weight - np.sum(np.log(np.diagonal(lower, axis1=1, axis2=2)), axis=1)
        log_p = log_p - 0.5 * np.stack(square, axis=1)
        total = log_sum_exp(log_p)
        share = np.exp(log_p - total[:, None])
        if float(total.mean()) - before < _LEAST_GAIN:
            break
        before = float(total.mean())
    return log_weight, mean, covariance
