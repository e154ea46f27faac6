"""Systematic ranging: the posterior of one night on an adaptive grid over the admissible region.

At every node (rho, rho_dot) the attributable is fitted again and the likelihood worked out
(`neoranging.core.likelihood`); the prior makes it a posterior (Chesley 2005, IAU Coll. 197, 255;
Farnocchia, Chesley & Micheli 2015, Icarus 258, 18; Spoto et al. 2018, A&A 614, A27). The grid is
one of columns. A column is a range; its nodes are range-rates bound to the Sun, as densely as the
likelihood needs them: evenly where it is flat, by the hyperbolic sine of the distance from its
maximum, in its own standard errors, where it is sharp.

Columns begin a third of a unit of ln rho apart, from the surface of the Earth to where no orbit is
bound. The best likelihood of each is a smooth function of the range however sharp it is, so a
maximum between two columns shows in its neighbours, and is halved into. Then columns are set
between columns until the mass of neighbours differs little under each of three priors (that asked
for, uniform, and uniform in ln rho), and the spacing resolves what a population may show. Columns
that somebody proposes (`neoranging.estimators.posterior`) begin where they are proposed, and the
prior asked for alone has a say, beyond the outermost of them too.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from neoranging.constants import C_AU_PER_DAY, GM_EARTH, GM_SUN, OBLIQUITY_J2000, R_EARTH
from neoranging.core.compiled import announced, compiled, inlined, inner
from neoranging.core.likelihood import begin_arc, fit_node, largest_errors
from neoranging.core.posterior import Posterior
from neoranging.core.priors import PriorTable, log_density
from neoranging.core.sightings import Nights, Space, magnitude_shift, make_space, node_state
from neoranging.typing import FloatArray, IntArray

N_RATES: Final = 20
N_RATES_PROPOSED: Final = 14
"""Nodes of a column, and of one of a posterior whose columns somebody proposes."""

_MOST_COLUMNS: Final = 200
"""Columns of an arc at most."""

_FIRST_STEP: Final = 0.36
"""Distance of the first columns in ln rho."""

_NEAREST_AU: Final = 1.01 * R_EARTH
_FARTHEST_AU: Final = 200.0
"""Least range, and that beyond which nothing moves as fast as an arc has to."""

_FINEST_STEP: Final = 1.0e-5
"""Distance of columns in ln rho that is never halved."""

_DEPTH: Final = 40.0
_DEPTH_PROPOSED: Final = 20.0
"""Logarithm of the likelihood below its maximum at which a column counts for nothing; the second
where columns are proposed and only the prior asked for has to be served."""

_RESOLVED: Final = 1.0
"""Difference of the best likelihoods of neighbours from which a maximum is halved into."""

_CUSP: Final = 10.0
"""What an observation may add to a maximum beyond the lines of `needs_between`: twice the logarithm
of the ratio of the largest scale of its errors to the least. With known scales they are bounds."""

_HOPELESS: Final = 1000.0
"""Logarithm of the likelihood below all that counts from which a fit need not settle."""

_EDGE_DEPTH: Final = 7.0
"""Logarithm of the mass of the outermost column, below the largest, at which a posterior ends."""

_MASS_DEPTH: Final = 9.0
"""Logarithm of the mass of a column, below the largest of a prior, that is worth neighbours."""

_MASS_STEP: Final = 1.0
"""Difference of the logarithms of the masses of neighbours that gets a column in between."""

_MASS_BEND: Final = 1.0
"""Eight times the same difference of the middle from the mean of two neighbours."""

_CORE_DEPTH: Final = 5.0
"""Logarithm of the mass below the largest from which all of this may be thrice as coarse."""

_COARSEST_STEP: Final = 0.18
"""Distance in ln rho of columns with mass under the prior asked for: what populations show."""

_SPARING: Final = 1.5
"""How much coarser columns are that somebody proposed: they stand where the mass is."""

_CORE_SIGMAS: Final = 2.0
"""Standard errors within which nodes are spread evenly."""

_REACH_SIGMAS: Final = 80.0
"""Standard errors of the range-rate to which nodes go: the heavy tails of unknown scales."""

_MOST_TRIES: Final = 8
_GOLDEN: Final = 0.618034
"""Range-rates tried for a column without a best one, and their distance in widths of the strip."""

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
    """Corrections of the attributable there, and the standard error of the rate, (columns, 5)."""
    edge: FloatArray
    """Least and largest range-rate bound to the Sun, shape (columns, 2)."""
    mass: FloatArray
    """Logarithm of the mass per unit of ln rho: likelihood alone, and under the prior asked for."""
    nodes: FloatArray
    """Range-rate, width, log likelihood and log prior, shape (columns, rates, 4)."""
    filled: IntArray
    """1 where the nodes are worked out."""
    order: IntArray
    """Columns by range."""
    planned: FloatArray
    """Logarithms of the ranges of columns to be made, and the column each is fitted from."""
    near: IntArray
    tops: FloatArray
    """Largest mass under each of three priors, and the least height of a maximum that counts, see
    `needs_between`; shape (4,)."""


@compiled
def make_columns(n_rates: int) -> Columns:
    """Empty columns of so many nodes."""
    return Columns(
        np.zeros(_MOST_COLUMNS),
        np.zeros(_MOST_COLUMNS),
        np.zeros(_MOST_COLUMNS),
        np.zeros((_MOST_COLUMNS, 5)),
        np.zeros((_MOST_COLUMNS, 2)),
        np.zeros((_MOST_COLUMNS, 2)),
        np.zeros((_MOST_COLUMNS, n_rates, 4)),
        np.zeros(_MOST_COLUMNS, dtype=np.int64),
        np.zeros(_MOST_COLUMNS, dtype=np.int64),
        np.zeros(_MOST_COLUMNS),
        np.zeros(_MOST_COLUMNS, dtype=np.int64),
        np.zeros(4),
    )


@inlined
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


@inlined
def log_prior(
    rho: float, rho_dot: float, size: float, least: float, prior: PriorTable, space: Space
) -> float:
    """Logarithm of the prior density over (rho, rho_dot), minus infinity if not admissible.

    ``size`` is the absolute magnitude, NaN if unknown, and ``least`` that of the faintest
    object that could have been seen. A table with one node stands for a `simple_prior`.
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
    # the likelihood is one of directions, phase space is measured by attributables
    in_phase_space = 4.0 * math.log(rho) - space.fit[4]
    if prior.log_density.size == 1:
        return prior.start[0] * math.log(rho) + prior.start[1] * in_phase_space
    hx, hy, hz = y * vz - z * vy, z * vx - x * vz, x * vy - y * vx
    h2 = hx * hx + hy * hy + hz * hz
    slr = h2 / GM_SUN
    ecc = math.sqrt(max(1.0 + 2.0 * energy * slr / GM_SUN, 0.0))
    inc = math.acos(min(max((_COS * hz - _SIN * hy) / math.sqrt(h2), -1.0), 1.0))
    orbit = slr / (1.0 + ecc), ecc, inc
    if math.isnan(size):
        density = log_density(prior.log_cumulative, prior.start, prior.step, *orbit, least)
    else:
        density = log_density(prior.log_density, prior.start, prior.step, *orbit, size)
    return density + in_phase_space


@inlined
def fill_column(
    night: Nights,
    arc: int,
    column: int,
    magnitude: float,
    prior: PriorTable,
    columns: Columns,
    space: Space,
) -> None:
    """Work out the nodes of a column about its best range-rate."""
    log_rho, rate = columns.log_rho[column], columns.rate[column]
    rho, nodes, fit = math.exp(log_rho), columns.nodes, space.fit
    n_rates = nodes.shape[1]
    for p in range(4):
        fit[p] = columns.fit[column, p]
    error, low, high = columns.fit[column, 4], columns.edge[column, 0], columns.edge[column, 1]
    unit = _CORE_SIGMAS * error
    first = math.asinh(max((low - rate) / unit, -_REACH_SIGMAS)) if unit < np.inf else low
    last = math.asinh(min((high - rate) / unit, _REACH_SIGMAS)) if unit < np.inf else high
    step = (last - first) / n_rates
    nearest = min(max(int(-first / step), 0), n_rates - 1) if unit < np.inf else n_rates // 2
    # sizes are those of the range, whatever its rate
    node_state(night, arc, rho, rate, space)
    shift = magnitude_shift(night, arc, rho, space)
    # from the node of the best fit outwards, each fit beginning at that of its neighbour
    for direction in (1, -1):
        for p in range(4):
            fit[p] = columns.fit[column, p]
        k = nearest if direction > 0 else nearest - 1
        while 0 <= k < n_rates:
            left, right = first + k * step, first + (k + 1) * step
            if unit < np.inf:
                left, right = rate + unit * math.sinh(left), rate + unit * math.sinh(right)
            rho_dot = 0.5 * (left + right)
            likelihood, _, _ = fit_node(night, arc, rho, rho_dot, np.int64(4), space)
            nodes[column, k, 0] = rho_dot
            nodes[column, k, 1] = right - left
            nodes[column, k, 2] = likelihood
            nodes[column, k, 3] = log_prior(
                rho, rho_dot, magnitude - shift, _LIMITING_MAGNITUDE - shift, prior, space
            )
            if likelihood == -np.inf:
                for p in range(4):
                    fit[p] = columns.fit[column, p]
            k += direction
    for which in range(2):
        highest = -np.inf
        for k in range(n_rates):
            highest = max(highest, _log_weight(nodes, column, k, which))
        total = 0.0
        for k in range(n_rates):
            if highest > -np.inf:
                total += math.exp(_log_weight(nodes, column, k, which) - highest)
        columns.mass[column, which] = highest + math.log(total) if total > 0.0 else -np.inf
    columns.mass[column, 1] += log_rho
    columns.filled[column] = 1


@inlined
def _log_weight(nodes: FloatArray, column: int, k: int, which: int) -> float:
    """Logarithm of the weight of a node in its column, by the likelihood or with the prior."""
    value = nodes[column, k, 2] + math.log(nodes[column, k, 1])
    if nodes[column, k, 3] == -np.inf:
        return -np.inf
    return value + nodes[column, k, 3] if which else value


@inlined
def add_column(
    night: Nights, arc: int, column: int, log_rho: float, near: int, columns: Columns, space: Space
) -> None:
    """Begin a column with the best range-rate of its range, from that of the column ``near``."""
    rho, rate, error, best = math.exp(log_rho), columns.rate[near], np.inf, -np.inf
    for p in range(4):
        space.fit[p] = columns.fit[near, p]
    node_state(night, arc, rho, 0.0, space)
    low, high = strip(night, arc, rho, space)
    # the best range-rate of all, then the fit at the nearest one that is bound to the Sun; where
    # there is no best one, the middle, and if that leads into the Earth others
    for round_ in range(2 + _MOST_TRIES):
        if not low < high or (round_ > 1 and best > -np.inf):
            break
        if round_ > 1:
            rate = low + (high - low) * ((_GOLDEN * round_) % 1.0)
        rate = min(max(rate, low), high)
        n_free = 5 if round_ == 0 else 4
        best, optimum, is_settled = fit_node(night, arc, rho, rate, n_free, space)
        if round_ == 0 and best > -np.inf and abs(optimum) < C_AU_PER_DAY:
            rate, error = optimum, math.sqrt(space.inverse[4, 4])
            low, high = strip(night, arc, rho, space)
            if is_settled and low < rate < high:
                break
            # next to the Earth it takes many long fits to learn by how much they all fail
            if not is_settled and best < columns.tops[3] - _HOPELESS:
                break
        elif round_ == 0:
            rate = 0.5 * (low + high)
        if error == np.inf and (round_ == 0 or best == -np.inf):
            for p in range(4):
                space.fit[p] = columns.fit[near, p]
    if not low < high:
        best = -np.inf
    columns.log_rho[column], columns.best[column], columns.rate[column] = log_rho, best, rate
    columns.edge[column, 0], columns.edge[column, 1] = low, high
    for p in range(4):
        columns.fit[column, p] = space.fit[p]
    columns.fit[column, 4] = error
    columns.mass[column, 0] = columns.mass[column, 1] = -np.inf
    columns.filled[column] = 0


@inlined
def needs_between(columns: Columns, n: int, j: int, proposed: bool) -> bool:
    """Flag of a pair of neighbours of n, by range the j-th and the next, that needs one between.

    Where the columns were ``proposed`` the prior asked for alone has a say.
    """
    order, tops = columns.order, columns.tops
    a, b = order[j], order[j + 1]
    before, after = order[max(j - 1, 0)], order[min(j + 2, n - 1)]
    x, best = columns.log_rho, columns.best
    step = x[b] - x[a]
    if step < 2.0 * _FINEST_STEP:
        return False
    if abs(best[a] - best[b]) > _RESOLVED and (
        (best[a] > best[b] and (j == 0 or best[a] >= best[before]))
        or (best[b] > best[a] and (j == n - 2 or best[b] >= best[after]))
    ):
        # a maximum in between lies below the lines that lead to it from either side
        height = np.inf
        if j > 0 and best[a] > -np.inf:
            height = best[a] + max(best[a] - best[before], 0.0) * step / (x[a] - x[before])
        if j < n - 2 and best[b] > -np.inf:
            rise = max(best[b] - best[after], 0.0) * step / (x[after] - x[b])
            height = min(height, best[b] + rise)
        # and where one side is the end of the region, it has to show at the other
        at_end = min(best[a], best[b]) == -np.inf
        if height > tops[3] and not (at_end and height < max(best[a], best[b]) + _RESOLVED):
            return True
    for which in range(1, 2) if proposed else range(3):
        # the third prior is uniform in range: a power of rho more than the likelihood alone
        tilt, mass, side = 1.0 if which == 2 else 0.0, columns.mass, which % 2
        low, high = mass[a, side] + tilt * x[a], mass[b, side] + tilt * x[b]
        depth = tops[which] - max(low, high)
        if depth > _MASS_DEPTH:
            continue
        # the priors that were not asked for only have to show whether they would answer otherwise
        core, sparing = depth < _CORE_DEPTH, _SPARING if proposed else 1.0
        coarseness = sparing if which == 1 and core else 3.0
        fine = which == 1 and (core or not proposed)
        coarsest = sparing * _COARSEST_STEP if fine else _FIRST_STEP
        # at the end of the region, where nothing is bound, the edge itself is not sought
        if step > coarsest or (min(low, high) == -np.inf and step > 0.2 * coarsest):
            return True
        if min(low, high) > -np.inf and abs(low - high) > coarseness * _MASS_STEP:
            return True
        # by how much the neighbours' slopes let the middle differ from the mean of the two
        bend = 0.0
        if j > 0 and mass[before, side] > -np.inf and mass[a, side] > -np.inf:
            bend += (mass[a, side] - mass[before, side]) / (x[a] - x[before])
        if j < n - 2 and mass[after, side] > -np.inf and mass[b, side] > -np.inf:
            bend -= (mass[after, side] - mass[b, side]) / (x[after] - x[b])
        if abs(bend) * step > coarseness * _MASS_BEND:
            return True
    return False


@inlined
def first_columns(
    starts: FloatArray, far: float, close: float, planned: FloatArray, near: IntArray
) -> int:
    """Logarithms of the first ranges and the column each is fitted from; their number returned.

    Inwards, for far away the fitted attributable is right, and parallax grows from there on.
    """
    n, n_even = 0, int((far - close) / _FIRST_STEP) + 2
    for k in range(len(starts) if len(starts) else n_even):
        at = starts[k] if len(starts) else far - k * (far - close) / (n_even - 1)
        at = min(max(at, close), far)
        if k == 0 or at < planned[n - 1] - _FINEST_STEP:
            planned[n], near[n] = at, max(n - 1, 0)
            n += 1
    return n


@inner
def range_arc(
    night: Nights,
    arc: int,
    magnitude: float,
    prior: PriorTable,
    starts: FloatArray,
    columns: Columns,
    space: Space,
) -> int:
    """Columns of one arc, their number returned.

    They begin at ``starts``, logarithms of ranges from far to near, evenly where there are none.
    """
    begin_arc(night, arc, space)
    tops, planned, near, order = columns.tops, columns.planned, columns.near, columns.order
    for p in range(4):
        columns.fit[0, p] = columns.rate[0] = 0.0
    far, close = math.log(_FARTHEST_AU), math.log(_NEAREST_AU)
    proposed = len(starts) > 0
    depth = _DEPTH_PROPOSED if proposed else _DEPTH
    margin = depth + _CUSP * (night.offsets[arc + 1] - night.offsets[arc])
    n_planned = first_columns(starts, far, close, planned, near)
    n, top, tops[3] = 0, -np.inf, -np.inf
    while n_planned > 0:
        for k in range(n_planned):
            add_column(night, arc, n + k, planned[k], near[k], columns, space)
            # in order of range: few columns are new, and most of these fall in line
            j = n + k
            while j > 0 and columns.log_rho[order[j - 1]] > planned[k]:
                order[j] = order[j - 1]
                j -= 1
            order[j] = n + k
            top = max(top, columns.best[n + k])
            tops[3] = top - margin
        n += n_planned
        for k in range(n):
            if columns.filled[k] == 0 and columns.best[k] > top - depth:
                fill_column(night, arc, k, magnitude, prior, columns, space)
        tops[0] = tops[1] = tops[2] = -np.inf
        for k in range(n):
            tops[0] = max(tops[0], columns.mass[k, 0])
            tops[1] = max(tops[1], columns.mass[k, 1])
            tops[2] = max(tops[2], columns.mass[k, 0] + columns.log_rho[k])
        n_planned = 0
        for j in range(n - 1):
            if n + n_planned < _MOST_COLUMNS - 2 and needs_between(columns, n, j, proposed):
                a, b = order[j], order[j + 1]
                planned[n_planned] = 0.5 * (columns.log_rho[a] + columns.log_rho[b])
                near[n_planned] = a if columns.best[a] > columns.best[b] else b
                n_planned += 1
        # proposals may miss where the posterior ends
        for side in (0, 1):
            edge = order[0] if side == 0 else order[n - 1]
            step = -_FIRST_STEP if side == 0 else _FIRST_STEP
            beyond = min(max(columns.log_rho[edge] + step, close), far)
            if (
                proposed
                and n + n_planned < _MOST_COLUMNS
                and columns.mass[edge, 1] > tops[1] - _EDGE_DEPTH
                and beyond != columns.log_rho[edge]
            ):
                planned[n_planned], near[n_planned] = beyond, edge
                n_planned += 1
    return n


@announced("the kernel of systematic ranging", 40)
@compiled
def _range_all(
    night: Nights,
    magnitudes: FloatArray,
    prior: PriorTable,
    starts: FloatArray,
    n_rates: int,
    longest: int,
    rows: FloatArray,
) -> IntArray:
    """Nodes of all arcs, written to ``rows`` one after the other; their numbers by arc."""
    m = len(night.first)
    counts = np.zeros(m, dtype=np.int64)
    space, columns = make_space(longest, longest), make_columns(n_rates)
    order, at = columns.order, 0
    for arc in range(m):
        n = range_arc(night, arc, magnitudes[arc], prior, starts[arc], columns, space)
        begin = at
        for j in range(n):
            k = order[j]
            if columns.filled[k] == 0:
                continue
            before = columns.log_rho[order[j - 1]] if j > 0 else columns.log_rho[k]
            after = columns.log_rho[order[j + 1]] if j + 1 < n else columns.log_rho[k]
            for i in range(n_rates):
                if columns.nodes[k, i, 3] > -np.inf and columns.nodes[k, i, 2] > -np.inf:
                    rows[at, 0] = math.exp(columns.log_rho[k])
                    rows[at, 1] = columns.nodes[k, i, 0]
                    rows[at, 2] = 0.5 * (after - before)
                    rows[at, 3] = columns.nodes[k, i, 1]
                    rows[at, 4] = columns.nodes[k, i, 2]
                    rows[at, 5] = columns.nodes[k, i, 3]
                    at += 1
        counts[arc] = at - begin
    return counts


class Completed(NamedTuple):
    """Attributables fitted again at K ranges and range-rates."""

    r: FloatArray
    """Heliocentric position at emission, shape (K, 3) [au]."""
    v: FloatArray
    """Heliocentric velocity there, shape (K, 3) [au/d]."""
    fit: FloatArray
    """Corrections of the attributable: offset east and north [rad], their rates [rad/d], (K, 4)."""
    excess: FloatArray
    """Chi-square of the observations with the largest errors that the law knows, shape (K,)."""


@announced("the fit of orbits to nights", 15)
@compiled
def _complete_all(
    night: Nights, arc: IntArray, nodes: FloatArray, longest: int, completed: Completed
) -> None:
    """Fit all nodes, those of one arc one after the other."""
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
        for axis in range(3):
            completed.r[k, axis], completed.v[k, axis] = space.state[0, axis], space.state[1, axis]
        for p in range(4):
            completed.fit[k, p] = space.fit[p]
        completed.excess[k] = largest_errors(night, at, space)


def complete(night: Nights, arc: IntArray, rho: FloatArray, rho_dot: FloatArray) -> Completed:
    """Orbits of K nodes, each with the attributable that fits all observations best there.

    Parameters
    ----------
    night : Nights
        Prepared observations.
    arc : ndarray of int, shape (K,)
        Arc that each node belongs to, in ascending order.
    rho, rho_dot : ndarray, shape (K,)
        Range [au] and range-rate [au/d].

    Returns
    -------
    Completed
        NaN where no path is.
    """
    shapes = (3,), (3,), (4,), ()
    completed = Completed(*(np.full((len(arc), *shape), np.nan) for shape in shapes))
    nodes = np.stack([rho, rho_dot], axis=1)
    longest = int(np.diff(night.offsets).max(initial=0))
    _complete_all(night, np.ascontiguousarray(arc, dtype=np.int64), nodes, longest, completed)
    return completed


def systematic(
    night: Nights,
    magnitude: FloatArray,
    prior: PriorTable,
    starts: FloatArray | None = None,
) -> Posterior:
    """Posteriors of M arcs.

    Parameters
    ----------
    night : Nights
        Prepared observations.
    magnitude : ndarray, shape (M,)
        Apparent magnitude of each arc in the band V; NaN where there is none.
    prior : PriorTable
        Density of objects; `simple_prior` gives those without a population.
    starts : ndarray, shape (M, C), optional
        Logarithms of ranges [au], descending, at which columns begin in the place of even ones.
        Columns are then set between and beyond them for ``prior`` alone.

    Returns
    -------
    Posterior
        Admissible nodes alone; an arc without any has none.
    """
    n_rates = N_RATES if starts is None else N_RATES_PROPOSED
    starts = np.empty((len(magnitude), 0)) if starts is None else np.ascontiguousarray(starts)
    rows = np.empty((len(magnitude) * _MOST_COLUMNS * n_rates, 6))
    longest = int(np.diff(night.offsets).max(initial=0))
    counts = _range_all(night, magnitude, prior, starts, n_rates, longest, rows)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    return Posterior(offsets, *rows[: offsets[-1]].T.copy())
