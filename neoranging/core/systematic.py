"""Systematic ranging: the posterior of one night on an adaptive grid over the admissible region.

At every node (rho, rho_dot) the attributable is fitted again and the likelihood worked out
(`neoranging.core.likelihood`); the prior makes it a posterior (Chesley 2005, IAU Coll. 197, 255;
Farnocchia, Chesley & Micheli 2015, Icarus 258, 18; Spoto et al. 2018, A&A 614, A27). The grid is one
of columns. A column is a range; its nodes are range-rates that are bound to the Sun, as densely as
the likelihood needs them: evenly where it is flat, by the hyperbolic sine of the distance from its
maximum, in its own standard errors, where it is sharp.

Columns begin a third of a unit of ln rho apart, from the surface of the Earth to where no orbit is
bound. The best likelihood of each is a smooth function of the range however sharp it is, so a
maximum between two columns shows in its neighbours, and is halved into. Then columns are set
between columns until the mass of neighbours differs little under each of three priors (that asked
for, uniform, and uniform in ln rho), and the spacing resolves what a population may show.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from neoranging.constants import C_AU_PER_DAY, GM_EARTH, GM_SUN, OBLIQUITY_J2000, R_EARTH
from neoranging.core.arcs import Arcs
from neoranging.core.attributable import Attributables
from neoranging.core.compiled import announced, compiled
from neoranging.core.likelihood import (
    Nights,
    Space,
    begin_arc,
    fit_node,
    make_space,
    nights,
    node_state,
)
from neoranging.core.posterior import Posterior
from neoranging.core.priors import PriorTable, log_density
from neoranging.typing import FloatArray, IntArray

N_RATES: Final = 24
"""Nodes of a column."""

_MOST_COLUMNS: Final = 200
"""Columns of an arc at most."""

_FIRST_STEP: Final = 0.35
"""Distance of the first columns in ln rho."""

_FARTHEST_AU: Final = 200.0
"""Range beyond which nothing moves as fast as an arc has to."""

_FINEST_STEP: Final = 1.0e-5
"""Distance of columns in ln rho that is never halved."""

_DEPTH: Final = 40.0
"""Logarithm of the likelihood below its maximum at which a column counts for nothing."""

_RESOLVED: Final = 1.0
"""Difference of the best likelihoods of neighbours from which a maximum is halved into."""

_MASS_DEPTH: Final = 9.0
"""Logarithm of the mass of a column below the largest, under any prior, that is worth neighbours."""

_MASS_STEP: Final = 0.7
"""Difference of the logarithms of the masses of neighbours that gets a column in between."""

_COARSEST_STEP: Final = 0.1
"""Distance in ln rho of columns with mass: what populations show."""

_CORE_SIGMAS: Final = 2.0
"""Standard errors within which nodes are spread evenly."""

_REACH_SIGMAS: Final = 80.0
"""Standard errors of the range-rate to which nodes go: the heavy tails of unknown scales."""

_LIMITING_MAGNITUDE: Final = 21.5
"""Magnitude that objects without one could have had at most."""

_COS, _SIN = math.cos(OBLIQUITY_J2000), math.sin(OBLIQUITY_J2000)


class Columns(NamedTuple):
    """Columns of one arc as they are made, in order of making."""

    log_rho: FloatArray
    best: FloatArray
    """Logarithm of the best likelihood."""
    rate: FloatArray
    """Range-rate of it [au/d]."""
    fit: FloatArray
    """Corrections of the attributable there, shape (columns, 5)."""
    mass: FloatArray
    """Logarithm of the mass per unit of ln rho: likelihood alone, and under the prior asked for."""
    nodes: FloatArray
    """Range-rate, width, log likelihood and log prior, shape (columns, N_RATES, 4)."""
    filled: IntArray
    """1 where the nodes are worked out."""


@compiled
def make_columns() -> Columns:
    """Empty columns."""
    return Columns(
        np.zeros(_MOST_COLUMNS),
        np.zeros(_MOST_COLUMNS),
        np.zeros(_MOST_COLUMNS),
        np.zeros((_MOST_COLUMNS, 5)),
        np.zeros((_MOST_COLUMNS, 2)),
        np.zeros((_MOST_COLUMNS, N_RATES, 4)),
        np.zeros(_MOST_COLUMNS, dtype=np.int64),
    )


@compiled
def strip(night: Nights, arc: int, rho: float, space: Space) -> tuple[float, float]:
    """Least and largest range-rate bound to the Sun, for the fitted attributable; NaN if none is.

    `node_state` has put direction and rate into ``space.state``.
    """
    state, place = space.state, night.place
    square, along, distance = 0.0, 0.0, 0.0
    for axis in range(3):
        transverse = place[arc, 1, axis] + rho * state[3, axis]
        square += transverse * transverse
        along += transverse * state[2, axis]
        distance += (place[arc, 0, axis] + rho * state[2, axis]) ** 2
    free = along * along - square + 2.0 * GM_SUN / math.sqrt(distance)
    half = math.sqrt(free) if free > 0.0 else np.nan
    return -along - half, -along + half


@compiled
def best_of_column(
    night: Nights, arc: int, log_rho: float, rate: float, space: Space
) -> tuple[float, float, float, float, float]:
    """Best log likelihood of a range, its range-rate, the standard error of that, and the strip.

    Fits begin with the corrections in ``space.fit`` and the range-rate given.
    """
    rho = math.exp(log_rho)
    node_state(night, arc, rho, 0.0, space)
    low, high = strip(night, arc, rho, space)
    if not low < high:
        return -np.inf, 0.0, np.inf, low, high
    rate = min(max(rate, low), high)
    best, optimum = fit_node(night, arc, rho, rate, 5, space)
    error = np.inf
    if best > -np.inf and abs(optimum) < C_AU_PER_DAY:
        error = math.sqrt(space.inverse[4, 4])
        low, high = strip(night, arc, rho, space)
        if not low < high:
            return -np.inf, 0.0, np.inf, low, high
    if not low <= optimum <= high or error == np.inf:
        optimum = min(max(optimum, low), high) if error < np.inf else 0.5 * (low + high)
        best, _ = fit_node(night, arc, rho, optimum, 4, space)
    else:
        best, _ = fit_node(night, arc, rho, optimum, 4, space)
    return best, optimum, error, low, high


@compiled
def log_prior(
    night: Nights, arc: int, rho: float, rho_dot: float, size: float, prior: PriorTable, space: Space
) -> float:
    """Logarithm of the prior density over (rho, rho_dot), minus infinity if not admissible.

    ``size`` is the absolute magnitude. A table with one node stands for the simple priors: a
    density constant in range and range-rate, or divided by the range.
    """
    state = space.state
    x, y, z = state[0, 0], state[0, 1], state[0, 2]
    vx, vy, vz = state[1, 0], state[1, 1], state[1, 2]
    distance = math.sqrt(x * x + y * y + z * z)
    speed2 = vx * vx + vy * vy + vz * vz
    energy = 0.5 * speed2 - GM_SUN / distance
    across = 0.0
    for axis in range(3):
        across += state[3, axis] ** 2
    of_earth = 0.5 * (rho_dot * rho_dot + across * rho * rho) - GM_EARTH / rho
    if energy > 0.0 or of_earth < 0.0:
        return -np.inf
    if prior.log_density.size == 1:
        return -prior.start[0] * math.log(rho)
    hx, hy, hz = y * vz - z * vy, z * vx - x * vz, x * vy - y * vx
    h2 = hx * hx + hy * hy + hz * hz
    slr = h2 / GM_SUN
    ecc = math.sqrt(max(1.0 + 2.0 * energy * slr / GM_SUN, 0.0))
    inc = math.acos(min(max((_COS * hz - _SIN * hy) / math.sqrt(h2), -1.0), 1.0))
    table = prior.log_density
    if math.isnan(size):
        table = prior.log_cumulative
        size = _LIMITING_MAGNITUDE - night_magnitude_shift(night, arc, rho, space)
    return log_density(table, prior.start, prior.step, slr / (1.0 + ecc), ecc, inc, size) + 4.0 * (
        math.log(rho)
    )


@compiled
def night_magnitude_shift(night: Nights, arc: int, rho: float, space: Space) -> float:
    """Apparent minus absolute magnitude of a node, by the H-G system with the slope 0.15."""
    state, place = space.state, night.place
    distance, toward = 0.0, 0.0
    for axis in range(3):
        r = place[arc, 0, axis] + rho * state[2, axis]
        distance += r * r
        toward += r * state[2, axis]
    distance = math.sqrt(distance)
    cos_phase = min(max(toward / distance, -1.0), 1.0)
    tan_half = math.sqrt((1.0 - cos_phase) / (1.0 + cos_phase + 1.0e-15))
    bright = 0.85 * math.exp(-3.33 * tan_half**0.63) + 0.15 * math.exp(-1.87 * tan_half**1.22)
    return 5.0 * math.log10(rho * distance) - 2.5 * math.log10(bright)
