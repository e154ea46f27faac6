"""Attributables drawn from what a night leaves of them at a range and a range-rate: compiled.

The scale of the errors of a visit is not known, and with three observations hardly confined. An
attributable that fits at a node is therefore not normal about the best one: it has the long tails
of a mixture over the scales (`neoranging.core.likelihood`). A draw takes a scale for each visit
first, as probable as the residuals leave it, and then the four numbers as that scale has them.
"""

from __future__ import annotations

import numpy as np

from neoranging.core.compiled import announced, compiled
from neoranging.core.likelihood import average_weights, begin_arc, fit_node, solve_normal
from neoranging.core.sightings import N_SCALES, Nights, make_space
from neoranging.typing import FloatArray, IntArray


@announced("the draws of orbits of a night", 15)
@compiled
def _draw(
    night: Nights,
    arc: IntArray,
    nodes: FloatArray,
    chance: FloatArray,
    normal: FloatArray,
    longest: int,
    change: FloatArray,
) -> None:
    space, at = make_space(longest, longest), -1
    for k in range(len(arc)):
        if arc[k] != at:
            at = arc[k]
            begin_arc(night, at, space)
            for p in range(4):
                space.fit[p] = 0.0
        likelihood, _, _ = fit_node(night, at, nodes[k, 0], nodes[k, 1], np.int64(4), space)
        if likelihood == -np.inf:
            for p in range(4):
                space.fit[p] = 0.0
            continue
        for v in range(night.n_visits[at]):
            left, taken = chance[k, v], N_SCALES - 1
            for scale in range(N_SCALES):
                left -= space.mixture[v, scale]
                if left < 0.0:
                    taken = scale
                    break
            space.mixture[v, :] = 0.0
            space.mixture[v, taken] = 1.0
        average_weights(night, at, space)
        if solve_normal(night, at, np.int64(4), space):
            for p in range(4):
                change[k, p] = space.fit[p]
                for q in range(4):
                    # the fit is the best one for averaged weights: other weights move it
                    change[k, p] += space.inverse[p, q] * space.normal[q, 5]
                for q in range(p, 4):
                    change[k, p] += space.root[q, p] * normal[k, q]
        # the next fit begins with all scales, as the one before did
        begin_arc(night, at, space)


def drawn_corrections(
    night: Nights,
    arc: IntArray,
    rho: FloatArray,
    rho_dot: FloatArray,
    rng: np.random.Generator,
) -> FloatArray:
    """Corrections of attributables drawn at K nodes, one for each.

    Parameters
    ----------
    night : Nights
        Prepared observations.
    arc : ndarray of int, shape (K,)
        Arc that each node belongs to, those of one together.
    rho, rho_dot : ndarray, shape (K,)
        Range [au] and range-rate [au/d].
    rng : numpy.random.Generator

    Returns
    -------
    ndarray, shape (K, 4)
        Offset east and north [rad], their rates [rad/d]; NaN where no path is.
    """
    change = np.full((len(arc), 4), np.nan)
    most = int(night.n_visits.max(initial=1))
    chance, normal = rng.random((len(arc), most)), rng.standard_normal((len(arc), 4))
    nodes = np.stack([rho, rho_dot], axis=1)
    longest = int(np.diff(night.offsets).max(initial=0))
    rows = np.ascontiguousarray(arc, dtype=np.int64)
    _draw(night, rows, nodes, chance, normal, longest, change)
    return change
