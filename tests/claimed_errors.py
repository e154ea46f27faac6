"""The law of errors that are as large as they claim, and each on its own."""

import numpy as np

from neoranging.core.noise import LEVEL_WEIGHTS, ErrorLaw


def claimed_law(arcs):
    """Errors of simulated arcs with `SimulatedArcs.with_noise`."""
    sigma = np.stack([arcs.sigma_ra, arcs.sigma_dec], axis=1)
    levels = np.ones((len(arcs), len(LEVEL_WEIGHTS)))
    each = np.arange(len(arcs.t))
    return ErrorLaw(sigma, 0.0 * sigma, 0.0 * sigma, np.ones(len(arcs)), each, levels)


def claimed_errors(arcs, found):
    """Standard error of the equation of each arc, and covariance of each root."""
    variance, covariance = found.errors(claimed_law(arcs))
    return np.sqrt(variance.sum(axis=1)), covariance.sum(axis=1)
