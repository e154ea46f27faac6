"""Orbits behind the nodes and the draws of a posterior.

A range and a range-rate complete an attributable to an orbit. Near the Earth each of them predicts
another parallax, so that the attributable has to be fitted to the observations anew: a method that
does so gives a `Refit`, and a draw then also has the errors that are left to direction and motion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np

from neoranging.core.answers import Answers
from neoranging.core.attributable import Completion
from neoranging.core.posterior import Posterior
from neoranging.typing import AnyArray, FloatArray, IntArray

Refit: TypeAlias = Callable[
    [IntArray, FloatArray, FloatArray, np.random.Generator | None], FloatArray
]
"""Function of K points: numbers of their arcs, those of one together, ranges [au] and range-rates
[au/d]. It gives what has to be added to their attributables, as `Attributables.corrected` takes it,
shape (K, 4): for the best fit, or, with a generator, drawn from what the observations leave."""

_ROUNDS = 100
"""Rounds in which draws that are not admissible are drawn again; most are after the first."""

_NODES_AT_ONCE = 200_000
_NEGLIGIBLE = 1e-7
"""Weight, relative to the greatest, below which the orbit of a node changes no probability."""


def completed(
    answers: Answers,
    row: IntArray,
    rho: FloatArray,
    rho_dot: FloatArray,
    refit: Refit | None = None,
    rng: np.random.Generator | None = None,
) -> Completion:
    """Orbits of K points, shape (K,): arcs ``row``, ranges [au] and range-rates [au/d].

    Parameters
    ----------
    answers : Answers
        Of the arcs: their attributables.
    row : ndarray of int, shape (K,)
    rho, rho_dot : ndarray, shape (K,)
    refit : callable, optional
        `Refit` of the method; the attributables as they are without it.
    rng : numpy.random.Generator, optional
        Draws what is added; by default it is the fitted one.
    """
    attributables = answers.attributables.take(row)
    if refit is not None:
        # where no path is there are no numbers, and the orbit is not admissible
        attributables = attributables.corrected(refit(row, rho, rho_dot, rng))
    return attributables.complete(rho, rho_dot)


def drawn(
    answers: Answers,
    posterior: Posterior,
    n: int,
    rng: np.random.Generator,
    refit: Refit | None = None,
) -> tuple[FloatArray, FloatArray, Completion]:
    """Draws from posteriors and their orbits, all of them admissible.

    Returns
    -------
    rho, rho_dot : ndarray, shape (M, n)
        NaN of arcs without a posterior, or of one that has next to no admissible orbit.
    orbits : Completion
        Columns of shape (M * n, ...), in the same order.
    """
    rho, rho_dot = (draws.ravel() for draws in posterior.draw(n, rng))
    row = np.repeat(np.arange(len(posterior)), n)
    orbits = completed(answers, row, rho, rho_dot, refit, rng)
    for _ in range(_ROUNDS):
        place = np.flatnonzero(~orbits.admissible & np.isfinite(rho))
        if not len(place):
            break
        # all draws of these arcs once more, of which those in place of the bad ones are taken
        some, line = np.unique(row[place], return_inverse=True)
        again = posterior.take(some).draw(n, rng)
        rho[place], rho_dot[place] = (values[line, place % n] for values in again)
        part = completed(answers, row[place], rho[place], rho_dot[place], refit, rng)
        columns: list[AnyArray] = list(orbits)
        for column, values in zip(columns, part, strict=True):
            column[place] = values
    for number in (rho, rho_dot, orbits.r, orbits.v, orbits.epoch):
        number[~orbits.admissible] = np.nan
    return rho.reshape(len(posterior), n), rho_dot.reshape(len(posterior), n), orbits


def orbits_of_nodes(
    answers: Answers, posterior: Posterior, refit: Refit | None = None
) -> Iterator[tuple[IntArray, Completion]]:
    """Nodes whose weight counts, some at a time, and their orbits."""
    heaviest = np.zeros(len(posterior))
    np.maximum.at(heaviest, posterior.arc, posterior.weights)
    nodes = np.flatnonzero(posterior.weights > _NEGLIGIBLE * heaviest[posterior.arc])
    for start in range(0, len(nodes), _NODES_AT_ONCE):
        rows = nodes[start : start + _NODES_AT_ONCE]
        points = posterior.rho[rows], posterior.rho_dot[rows]
        yield rows, completed(answers, posterior.arc[rows], *points, refit)
