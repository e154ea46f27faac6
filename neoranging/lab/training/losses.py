"""The terms of the loss, each a mean over a batch.

Errors and distributions are compared in a *normalised space*, (B, 2) per estimate: `normalise` of
the network's output. For the paper's output that is range and range-rate scaled to [-1, 1], for log
range it is standardised log range and range-rate: an error is then a fraction of the range, and the
second column stays a velocity.

The transport term compares the distribution of a batch with that of the truth, in au and
au/d: whatever the output, it takes ranges and range-rates scaled from their extremes
(`neoranging.nn.outputs.MinMaxOutput.normalise`), and its gradient reaches a log range by the chain
rule. Physics residuals are physical already (`neoranging.lab.training.physics`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from neoranging.lab.training.physics import Residuals
from neoranging.nn.outputs import LOG_ERROR_LIMITS

_LEVELS: Final = 51  # quantiles at 0, 2, ... 100 %
_TENTH: Final = 5  # place of the 10th percentile among them
_LEAST: Final = 8
"""Fewest samples of a bin whose distribution is compared (paper, appendix)."""


class LossWeights(NamedTuple):
    """Weights of the four terms (paper, eq:total_loss)."""

    residual: float = 1.0
    motion: float = 0.30
    kinematic: float = 0.21
    transport: float = 0.05


def log_cosh(d: Tensor) -> Tensor:
    """``log(cosh d)`` for any d, without overflow and without losing small ones."""
    size = torch.abs(d)
    return size + torch.log1p(0.5 * torch.expm1(-2.0 * size))


def residual_loss(estimate: Tensor, truth: Tensor) -> Tensor:
    """Mean log cosh of the errors in the normalised space (paper, eq:loss_res), (B, 2) each."""
    return log_cosh(estimate - truth).mean()


def error_size_loss(error: Tensor, log_error: Tensor) -> Tensor:
    """Mean negative log-likelihood of errors under Laplace's law of the sizes expected.

    Both (B, 2), up to a constant. The errors are data here: no gradient reaches the estimates by
    them.
    """
    log_error = log_error.clamp(*LOG_ERROR_LIMITS)
    return (error.detach().abs() * torch.exp(-log_error) + log_error).mean()


DATA_LOSSES: Final[dict[str, Callable[[Tensor, Tensor], Tensor]]] = {
    "mse": functional.mse_loss,
    "l1": functional.l1_loss,
    "smooth_l1": functional.smooth_l1_loss,
    "log_cosh": residual_loss,
}
"""Losses of errors alone, by name, of (B, 2) estimates and truths in the normalised space."""


def physics_loss(residuals: Residuals) -> Residuals:
    """Mean log cosh of either residual (paper, eq:losses_pde); scalars."""
    return Residuals._make(log_cosh(residual).mean() for residual in residuals)


class Transport(NamedTuple):
    """The parts of the Wasserstein term (paper, appendix); scalars."""

    quantiles: Tensor
    """Both channels' distance of quantile functions, eq:wass_quantile."""
    moments: Tensor
    """Half squared differences of deviations and of means, eq:wass_spread."""
    tails: Tensor
    """Hinges on the 10th and 90th percentiles, eq:wass_tail."""
    bins: Tensor
    """Distance within bins of proper motion and hemisphere, eq:wass_bin."""
    order: Tensor
    """Hinge on fast movers estimated farther than slow ones, eq:wass_order."""


def transport_loss(
    estimate: Tensor, truth: Tensor, proper_motion_square: Tensor, dec: Tensor
) -> Transport:
    """Both components of the Wasserstein term; their sum is eq:wass_total.

    Parameters
    ----------
    estimate, truth : Tensor, shape (B, 2)
        Ranges and range-rates in the normalised space; the truth is not differentiated.
    proper_motion_square : Tensor, shape (B,)
        [rad^2/d^2].
    dec : Tensor, shape (B,)
        Declination at t2 [rad].
    """
    truth = truth.detach()
    rho, rho_true = estimate[:, 0], truth[:, 0]
    return Transport(
        *global_transport(estimate, truth),
        *conditioned_transport(rho, rho_true, proper_motion_square, dec),
    )


def global_transport(estimate: Tensor, truth: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Distance of quantiles, moments and tails, summed over both channels (eq:wass_global).

    Notes
    -----
    Each tail hinge punishes an estimated percentile *inside* its true counterpart, as the paper's
    text says; its eq:wass_tail as printed has the sign of the 10th percentile the other way round.
    """
    levels = torch.linspace(0.0, 1.0, _LEVELS, dtype=truth.dtype, device=truth.device)
    quantile, target = (torch.quantile(x, levels, dim=0) for x in (estimate, truth))
    distance = (quantile - target).abs().mean(dim=0).sum()
    spread = estimate.std(dim=0, correction=0) - truth.std(dim=0, correction=0)
    shift = estimate.mean(dim=0) - truth.mean(dim=0)
    moments = 0.5 * (spread.square() + shift.square()).sum()
    low, high = _TENTH, _LEVELS - 1 - _TENTH
    inward = torch.stack([quantile[low] - target[low], target[high] - quantile[high]])
    return distance, moments, torch.relu(inward).square().sum()


def conditioned_transport(
    estimate: Tensor, truth: Tensor, proper_motion_square: Tensor, dec: Tensor
) -> tuple[Tensor, Tensor]:
    """Distance within four bins and the ordering hinge, for the range alone (eq:wass_order).

    Bins are fast or slow, split at the median of the batch, and north (including the equator) or
    south; those with fewer than 8 samples are left out. Each argument has shape (B,).
    """
    fast = proper_motion_square >= proper_motion_square.quantile(0.5)
    label = 2 * fast + (dec >= 0.0)
    count = torch.bincount(label, minlength=4)
    # sorted by bin and then by value, equal ranks of the two samples stand side by side
    order, target_order = _rank(estimate, label), _rank(truth, label)
    gap = (estimate[order] - truth[target_order]).abs()
    weight = (count >= _LEAST)[label[order]].to(gap.dtype)
    bins = (weight * gap).sum() / weight.sum().clamp_min(1.0)
    n_fast = fast.sum()
    fast_mean = torch.where(fast, estimate, 0.0).sum() / n_fast.clamp_min(1)
    slow_mean = torch.where(fast, 0.0, estimate).sum() / (len(fast) - n_fast).clamp_min(1)
    enough = (n_fast >= _LEAST) & (len(fast) - n_fast >= _LEAST)
    hinge = torch.relu(fast_mean - slow_mean).square()
    return bins, torch.where(enough, hinge, 0.0)


def _rank(values: Tensor, label: Tensor) -> Tensor:
    """Permutation that sorts by label, then by value."""
    order = torch.argsort(values.detach())
    return order[torch.argsort(label[order], stable=True)]
