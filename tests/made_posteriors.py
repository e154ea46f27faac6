"""Posteriors whose answers are known: densities in (ln rho, rho_dot) put on grids of nodes."""

import numpy as np
from scipy.stats import norm, skewnorm

from neoranging.core.posterior import Posterior

SHAPES = ("normal", "leaning", "skewed", "lobes", "strip")
X, S = np.log(0.05), 0.2
RATE, SIGMA = 0.002, 0.001


def on_grid(log_density, x, rate, step, rate_step):
    """Posterior of one arc: ``log_density`` of (ln rho, rho_dot) on the nodes of a grid."""
    log_rho, rho_dot = (a.ravel() for a in np.broadcast_arrays(x[:, None], rate))
    with np.errstate(divide="ignore"):
        value = log_density(log_rho, rho_dot)
    width, rate_width = np.full(len(log_rho), step), np.full(len(log_rho), rate_step)
    offsets = np.array([0, len(log_rho)])
    # the prior over (rho, rho_dot) of a density in ln rho
    return Posterior(offsets, np.exp(log_rho), rho_dot, width, rate_width, value, -log_rho)


def marginal(shape):
    """Distribution of ln rho, as scipy has it."""
    if shape == "skewed":
        return skewnorm(4.0, X, S)
    return norm(X, S)


def posterior(shape, h=0.2):
    """One of the shapes on a grid of steps of ``h`` standard deviations.

    ``"normal"`` is a normal distribution in (ln rho, rho_dot), ``"leaning"`` one of a correlation
    of 0.95 on columns that follow it, ``"skewed"`` skew in ln rho, ``"lobes"`` two normal ones at
    0.02 and 0.3 au that hold a third and two, ``"strip"`` uniform from 0.01 to 1 au.
    """
    t = np.arange(-6.0, 6.0 + h / 2.0, h)
    rate = RATE + SIGMA * t[None]
    if shape == "leaning":
        small = np.sqrt(1.0 - 0.95**2)
        z = t[:, None]
        return on_grid(
            lambda x, r: (
                norm.logpdf(x, X, S)
                + norm.logpdf(r, RATE + 0.95 * SIGMA * (x - X) / S, small * SIGMA)
            ),
            X + S * t,
            RATE + 0.95 * SIGMA * z + small * SIGMA * t[None],
            h * S,
            h * small * SIGMA,
        )
    if shape == "lobes":
        return on_grid(
            lambda x, r: (
                np.logaddexp(
                    np.log(1 / 3) + norm.logpdf(x, np.log(0.02), S),
                    np.log(2 / 3) + norm.logpdf(x, np.log(0.3), S),
                )
                + norm.logpdf(r, RATE, SIGMA)
            ),
            np.arange(np.log(0.02) - 6 * S, np.log(0.3) + 6 * S, h * S),
            rate,
            h * S,
            h * SIGMA,
        )
    if shape == "strip":
        edges = np.linspace(np.log(0.01), 0.0, 41)
        ends = np.linspace(-0.01, 0.01, 41)
        x, r = 0.5 * (edges[1:] + edges[:-1]), 0.5 * (ends[1:] + ends[:-1])
        level = -np.log(np.log(100.0) * 0.02)
        return on_grid(
            lambda x, r: np.full(x.shape, level), x, r[None], edges[1] - edges[0], ends[1] - ends[0]
        )
    law = marginal(shape)
    return on_grid(
        lambda x, r: law.logpdf(x) + norm.logpdf(r, RATE, SIGMA), X + S * t, rate, h * S, h * SIGMA
    )
