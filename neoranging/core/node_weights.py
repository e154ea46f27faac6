"""Exact likelihood and prior at given nodes, wherever they come from."""

from __future__ import annotations

import numpy as np

from neoranging.core.compiled import announced, compiled
from neoranging.core.likelihood import begin_arc, fit_node
from neoranging.core.priors import PriorTable
from neoranging.core.sightings import Nights, make_space, node_state
from neoranging.core.systematic import LIMITING_MAGNITUDE, log_prior, magnitude_shift
from neoranging.typing import FloatArray, IntArray


@announced("the likelihood of given ranges", 20)
@compiled
def _weigh_all(
    night: Nights,
    magnitudes: FloatArray,
    prior: PriorTable,
    arc: IntArray,
    nodes: FloatArray,
    longest: int,
    result: FloatArray,
) -> None:
    """Work out log likelihood and log prior of nodes (K, 2), those of an arc one after another."""
    space, at = make_space(longest, longest), -1
    before, shift = -1.0, 0.0
    for k in range(len(arc)):
        if arc[k] != at:
            at, before = arc[k], -1.0
            begin_arc(night, at, space)
            for p in range(4):
                space.fit[p] = 0.0
        rho, rho_dot = nodes[k, 0], nodes[k, 1]
        likelihood, _ = fit_node(night, at, rho, rho_dot, np.int64(4), space)
        if likelihood == -np.inf:
            # a fit that left the neighbourhood is no start for the next one
            for p in range(4):
                space.fit[p] = 0.0
            result[k, 0] = result[k, 1] = -np.inf
            continue
        if rho != before:
            node_state(night, at, rho, rho_dot, space)
            shift, before = magnitude_shift(night, at, rho, space), rho
        result[k, 0] = likelihood
        result[k, 1] = log_prior(
            rho, rho_dot, magnitudes[at] - shift, LIMITING_MAGNITUDE - shift, prior, space
        )


def weigh(
    night: Nights,
    magnitude: FloatArray,
    prior: PriorTable,
    arc: IntArray,
    rho: FloatArray,
    rho_dot: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Logarithms of likelihood and prior density over (rho, rho_dot) at K nodes.

    Parameters
    ----------
    night : Nights
        Prepared observations.
    magnitude : ndarray, shape (M,)
        Apparent magnitude of each arc in the band V; NaN where there is none.
    prior : PriorTable
    arc : ndarray of int, shape (K,)
        Arc that each node belongs to, in ascending order; nodes of one range side by side.
    rho, rho_dot : ndarray, shape (K,)
        Range [au] and range-rate [au/d].

    Returns
    -------
    log_likelihood, log_prior : ndarray, shape (K,)
        Minus infinity where no path is, or none that is admissible.
    """
    result = np.empty((len(arc), 2))
    nodes = np.stack([rho, rho_dot], axis=1)
    longest = int(np.diff(night.offsets).max(initial=0))
    owner = np.ascontiguousarray(arc, dtype=np.int64)
    _weigh_all(night, magnitude, prior, owner, nodes, longest, result)
    return result[:, 0], result[:, 1]
