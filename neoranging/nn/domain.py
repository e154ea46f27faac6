"""The domain of training: how probable an arc is among those that a network learnt from.

The range of each feature alone says little: an arc whose every feature is common may be one that
no training arc is like. So the domain is a density over all features together, a mixture of normal
distributions, and outside is what is less probable than all but a small share of the training arcs.
"""

from __future__ import annotations

import math
from typing import Any, Final, Self

import numpy as np
import torch
from scipy.cluster.vq import kmeans2
from torch import Tensor, nn

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
_LEVELS: Final = torch.logspace(-4.0, -1.0, 31, dtype=torch.float64)
_BUFFERS: Final = ("center", "spread", "log_weight", "mean", "covariance", "patterns", "quantiles")


class Domain(nn.Module):
    """Density of the training arcs over the columns of the features.

    A mixture of K normal distributions. Arcs that lack columns (two epochs have no curvature) are
    judged by the density of the columns that they have, and by its quantiles over the training arcs
    with the same columns.

    Empty before `fit`, and in networks of files that have none: then no arc is outside. Double
    precision on the CPU whatever the network is moved to, since only estimates ask for it.

    Attributes
    ----------
    center, spread : Tensor, shape (F,)
        Median of each column, and half of the interval that holds 68 % of the arcs.
    log_weight : Tensor, shape (K,)
    mean : Tensor, shape (K, F)
    covariance : Tensor, shape (K, F, F)
    patterns : Tensor, shape (P, F)
        Sets of columns that an arc may have, 1 where it has one.
    quantiles : Tensor, shape (P, Q)
        Logarithm of the density below which a share of the training arcs lies, for Q shares from
        0.0001 to 0.1.
    """

    center: Tensor
    spread: Tensor
    log_weight: Tensor | None
    mean: Tensor
    covariance: Tensor
    patterns: Tensor
    quantiles: Tensor

    def __init__(self) -> None:
        super().__init__()
        for name in _BUFFERS:
            self.register_buffer(name, None)
        self._factors: dict[int, tuple[Tensor, Tensor, Tensor]] = {}

    @property
    def is_fitted(self) -> bool:
        """Flag of a domain that knows training arcs."""
        return self.log_weight is not None

    def fit(self, values: Tensor, patterns: Tensor, seed: int = 0) -> None:
        """Fit the density and its quantiles; the same arcs give the same domain.

        Parameters
        ----------
        values : Tensor, shape (N, F)
            Columns, in their own units, of training arcs that have all of them.
        patterns : Tensor of bool, shape (P, F)
            Sets of columns that other arcs may have.
        seed : int
        """
        values = values.detach().to("cpu", torch.float64)
        low, self.center, high = _lower_quantiles(values, torch.tensor([0.16, 0.5, 0.84]))
        spread = 0.5 * (high - low)
        # columns of one value are told from it by their rounding errors alone
        least = 1e-9 * self.center.abs().clamp_min(1.0)
        self.spread = torch.where(spread > least, spread, 1.0)
        self.patterns = patterns.to("cpu", torch.float64)
        self._factors = {}
        rng = np.random.default_rng(seed)
        n = min(len(values), _ARCS_LOOKED_AT)
        rows = np.sort(rng.choice(len(values), n, replace=False))
        mixture = _mixture(self._coordinates(values[rows]), rng)
        self.log_weight, self.mean, self.covariance = mixture
        densities = [self._log_density(values, k) for k in range(len(patterns))]
        self.quantiles = torch.stack([_lower_quantiles(x, _LEVELS) for x in densities])

    def _coordinates(self, values: Tensor) -> Tensor:
        """Columns by their usual value and spread, linear about it and logarithmic far away.

        Some columns reach hundreds of their spreads, where a few arcs would be all that counts.
        """
        return torch.asinh((values - self.center) / self.spread)

    def log_density(self, values: Tensor, measured: Tensor) -> Tensor:
        """Logarithm of the density of the columns that each arc has, (B,).

        Parameters
        ----------
        values : Tensor, shape (B, F)
        measured : Tensor of bool, shape (B, F)
            Columns that the arcs have, in each row one of the patterns.
        """
        return self._by_pattern(values, measured, self._log_density, ())

    def outside(self, values: Tensor, measured: Tensor, level: float) -> Tensor:
        """Mask (B,) of the arcs less probable than all but a share ``level`` of those of training.

        Also of arcs with values that are not finite. Levels are at least 0.0001 and at most 0.1;
        at 0, and before `fit`, no arc is outside.
        """
        if not self.is_fitted or level == 0.0:
            return torch.zeros(len(values), dtype=torch.bool)
        log_levels, at = _LEVELS.log(), math.log(level)

        def beyond(part: Tensor, pattern: int) -> Tensor:
            limit = np.interp(at, log_levels.numpy(), self.quantiles[pattern].numpy())
            return ~(self._log_density(part, pattern) >= limit - _ROUNDING)

        return self._by_pattern(values, measured, beyond, (), torch.bool)

    def conflicts(self, values: Tensor, measured: Tensor) -> Tensor:
        """Squares by which each column adds to the distance from the training arcs, (B, F).

        They are those of the deviation of the column from what the others let expect, in units of
        its standard deviation, in the component that the arc most likely belongs to; zero for
        columns that an arc does not have.
        """
        return self._by_pattern(values, measured, self._conflicts, values.shape[1:])

    def _by_pattern(
        self,
        values: Tensor,
        measured: Tensor,
        function: Any,
        shape: tuple[int, ...],
        dtype: torch.dtype = torch.float64,
    ) -> Tensor:
        result = torch.zeros((len(values), *shape), dtype=dtype)
        if not len(values):
            return result
        for k, pattern in enumerate(self.patterns > 0.0):
            rows = torch.nonzero((measured == pattern).all(dim=1))[:, 0]
            if len(rows):
                result[rows] = function(values[rows].to(torch.float64), k)
        return result

    def _factor(self, pattern: int) -> tuple[Tensor, Tensor, Tensor]:
        """Inverse Cholesky factors (K, F, F), whitened means (K, F), log normalisations (K,)."""
        if pattern not in self._factors:
            assert self.log_weight is not None
            own = torch.nonzero(self.patterns[pattern])[:, 0]
            lower = torch.linalg.cholesky(self.covariance[:, own[:, None], own])
            identity = torch.eye(len(own), dtype=torch.float64)
            inverse = torch.zeros_like(self.covariance)
            inverse[:, own[:, None], own] = torch.linalg.solve_triangular(
                lower, identity.expand_as(lower), upper=False
            )
            log_scale = lower.diagonal(dim1=1, dim2=2).log().sum(dim=1)
            log_norm = self.log_weight - log_scale - 0.5 * len(own) * math.log(2.0 * math.pi)
            mean = torch.einsum("kij,kj->ki", inverse, self.mean)
            self._factors[pattern] = inverse, mean, log_norm
        return self._factors[pattern]

    def _by_component(self, values: Tensor, pattern: int) -> Tensor:
        """Logarithm of weight times density of every component, (B, K)."""
        inverse, mean, log_norm = self._factor(pattern)
        # columns that the pattern lacks may hold anything
        values = torch.where(self.patterns[pattern] > 0.0, self._coordinates(values), 0.0)
        square = torch.stack(
            [(values @ w.T - m).square_().sum(dim=1) for w, m in zip(inverse, mean, strict=True)],
            dim=1,
        )
        return log_norm - 0.5 * square

    def _log_density(self, values: Tensor, pattern: int) -> Tensor:
        return torch.logsumexp(self._by_component(values, pattern), dim=1)

    def _conflicts(self, values: Tensor, pattern: int) -> Tensor:
        inverse, mean, _ = self._factor(pattern)
        nearest = self._by_component(values, pattern).argmax(dim=1)
        values = torch.where(self.patterns[pattern] > 0.0, self._coordinates(values), 0.0)
        inverse, mean = inverse[nearest], mean[nearest]
        white = torch.einsum("bij,bj->bi", inverse, values) - mean
        pull = torch.einsum("bij,bi->bj", inverse, white)
        # the diagonal of the precision is one over the variance of a column given the others
        precision = inverse.square().sum(dim=1)
        return pull.square() / torch.where(precision > 0.0, precision, 1.0)

    def _apply(self, fn: Any, recurse: bool = True) -> Self:  # noqa: ARG002
        return self

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        # the sizes are those of the file, which may have no domain at all
        for name in _BUFFERS:
            tensor = state_dict.get(prefix + name)
            setattr(self, name, None if tensor is None else torch.empty_like(tensor, device="cpu"))
        self._factors = {}
        super()._load_from_state_dict(state_dict, prefix, *rest)


def _lower_quantiles(values: Tensor, levels: Tensor) -> Tensor:
    """Values, column by column, that at most a share of all lies below, for each level."""
    return values.sort(dim=0).values[(levels * (len(values) - 1)).to(torch.int64)]


def _mixture(x: Tensor, rng: np.random.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Weights (K,), means and covariances of normal distributions, fitted to x (N, F) by EM.

    Starts from the groups of k-means. No component is narrower than the tolerance.
    """
    n, size = x.shape
    k = min(max(n // _ARCS_PER_COMPONENT, 1), _COMPONENTS)
    _, label = kmeans2(x.numpy(), k, iter=20, minit="++", seed=rng)
    share = nn.functional.one_hot(torch.from_numpy(label).long(), k).to(x.dtype)
    blur = _TOLERANCE**2 * torch.eye(size, dtype=x.dtype)
    before = -math.inf
    for _ in range(_ITERATIONS):
        counts = share.sum(dim=0).clamp_min(1.0)
        mean = share.T @ x / counts[:, None]
        away = (x - m for m in mean)
        scatter = torch.stack([(d * s[:, None]).T @ d for d, s in zip(away, share.T, strict=True)])
        covariance = scatter / counts[:, None, None] + blur
        log_weight = (counts / counts.sum()).log()
        lower = torch.linalg.cholesky(covariance)
        square = [
            torch.linalg.solve_triangular(w, (x - m).T, upper=False).square().sum(dim=0)
            for w, m in zip(lower, mean, strict=True)
        ]
        log_p = log_weight - lower.diagonal(dim1=1, dim2=2).log().sum(dim=1)
        log_p = log_p - 0.5 * torch.stack(square, dim=1)
        total = torch.logsumexp(log_p, dim=1)
        share = torch.exp(log_p - total[:, None])
        if float(total.mean()) - before < _LEAST_GAIN:
            break
        before = float(total.mean())
    return log_weight, mean, covariance
