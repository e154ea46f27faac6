"""Influence of single observations: what an arc would look like without each of them.

A polynomial in time is fitted to the arc on its tangent plane; leaving out observation i changes
the fit by what linear least squares has in closed form: with residual e and leverage h, the others
put it ``e / (1 - h)`` away from where it was observed, and their sum of squares is smaller by
``w e^2 / (1 - h)`` (Cook & Weisberg 1982, section 2.2). The powers of time are made orthogonal over
the observations (Gram & Schmidt), so that leverages are sums of squares.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from neoranging.core.arcs import Arcs, Observations
from neoranging.core.attributable import plane_point
from neoranging.core.compiled import compiled
from neoranging.core.triples import axes3, row
from neoranging.typing import FloatArray, IntArray

_N_CURVED: Final = 6
"""Observations from which on a parabola leaves enough to tell which of them is off."""

_N_FEW: Final = 4
"""Observations up to which one that is wrong leaves too few others to show it."""


class Deletion(NamedTuple):
    """Leaving out each of n observations in turn."""

    offset: FloatArray
    """Distance from where the other observations of its arc put it [rad], shape (n,)."""
    rest: FloatArray
    """Sum of squares that the others leave, in units of their errors, shape (n,)."""


def deletion(arcs: Arcs, degree: int) -> Deletion:
    """Fits of polynomials to all but one observation of each arc.

    Parameters
    ----------
    arcs : Arcs
        M arcs of n observations; those with too few for the degree get an offset of NaN.
    degree : int
        1 for straight lines, 2 for parabolas in time.
    """
    rows = _delete_all(arcs.plain, arcs.direction, arcs.triplet, degree)
    return Deletion(rows[:, 0], rows[:, 1])


@compiled
def _delete_all(
    o: Observations, direction: FloatArray, triplet: IntArray, degree: int
) -> FloatArray:
    rows = np.empty((len(o.t), 2))
    for k in range(len(triplet)):
        part = rows[o.offsets[k] : o.offsets[k + 1]]
        delete_each(o, direction, o.offsets[k], triplet[k, 1], degree, part)
    return rows


@compiled
def delete_each(
    o: Observations, direction: FloatArray, begin: int, middle: int, degree: int, rows: FloatArray
) -> None:
    """`deletion` of one arc, offset and rest of its observations from ``begin`` on to ``rows``.

    ``middle`` is that in the middle.
    """
    n, last = len(rows), begin + len(rows) - 1
    # errors in units of the least of the arc: of any size, they make no number overflow
    unit = np.inf
    for i in range(n):
        rows[i, 0] = math.hypot(o.sigma_ra[begin + i], o.sigma_dec[begin + i]) * math.sqrt(0.5)
        unit = min(unit, rows[i, 0])
    pole = row(direction, middle)
    east, north = axes3(pole)
    # time in units of the arc keeps its powers apart
    span = o.t[last] - o.t[begin] if o.t[last] > o.t[begin] else 1.0
    # powers of time, then both coordinates, each times the root of its weight
    values = np.empty((degree + 3, n))
    for i in range(n):
        x, value = (o.t[begin + i] - o.t[middle]) / span, unit / rows[i, 0]
        plane = plane_point(pole, east, north, row(direction, begin + i))
        values[degree + 1, i], values[degree + 2, i] = plane[0] * value, plane[1] * value
        for power in range(degree + 1):
            values[power, i] = value
            value *= x
    _orthogonalise(values, degree + 1)
    total = 0.0
    for i in range(n):
        rows[i, 1] = values[degree + 1, i] ** 2 + values[degree + 2, i] ** 2
        total += rows[i, 1]
    for i in range(n):
        independence = 1.0
        for power in range(degree + 1):
            independence -= values[power, i] ** 2
        # an observation that the others say nothing of has a leverage of one
        independence = independence if independence > 1.0e-9 else np.nan
        rows[i, 0] *= math.sqrt(rows[i, 1]) / unit / independence
        rows[i, 1] = (total - rows[i, 1] / independence) / unit**2


@compiled
def _orthogonalise(rows: FloatArray, n_powers: int) -> None:
    """Make the first rows unit vectors orthogonal to one another, and the others to all of them.

    A row that those before it span becomes zero.
    """
    for k in range(len(rows)):
        whole = _product(rows[k], rows[k])
        for j in range(min(k, n_powers)):
            share = _product(rows[j], rows[k])
            for i in range(rows.shape[1]):
                rows[k, i] -= share * rows[j, i]
        if k < n_powers:
            left = _product(rows[k], rows[k])
            size = 1.0 / math.sqrt(left) if left > 1.0e-15 * whole else 0.0
            for i in range(rows.shape[1]):
                rows[k, i] *= size


@compiled
def _product(a: FloatArray, b: FloatArray) -> float:
    total = 0.0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


@compiled
def bend_of_arc(
    o: Observations, direction: FloatArray, begin: int, end: int, middle: int, significance: float
) -> float:
    """Error of one observation that would make the bend of its arc by itself.

    The least distance of an observation from the straight line of the others [rad], where these lie
    on one; infinite where the others bend whichever is left out. Of four observations and fewer the
    largest distance, for those left lie on some orbit whatever they are.

    Parameters
    ----------
    o : Observations
        Of all arcs; those of this one stand from ``begin`` to ``end``, of three or more.
    direction : ndarray, shape (n, 3)
        Unit vectors towards the object.
    begin, end, middle : int
        Bounds of the rows of the arc, and the row of its middle observation.
    significance : float
        Standard errors by which the others must bend to bend at all.
    """
    rows = np.empty((end - begin, 2))
    delete_each(o, direction, begin, middle, 1, rows)
    largest, least = np.nan, np.inf
    for i in range(len(rows)):
        largest = np.fmax(largest, rows[i, 0])
        if rows[i, 1] <= significance**2:
            least = min(least, rows[i, 0])
    return largest if len(rows) <= _N_FEW else least


def worst_observation(arcs: Arcs) -> tuple[IntArray, FloatArray]:
    """The observation of each arc without which the others agree best.

    Returns
    -------
    row : ndarray of int, shape (M,)
        Row of the observation, -1 for arcs of fewer than four: of three any one may be wrong.
    offset : ndarray, shape (M,)
        Its distance [rad] from where the others put it.
    """
    line, parabola = deletion(arcs, 1), deletion(arcs, 2)
    curved = (arcs.counts >= _N_CURVED)[arcs.owner]
    rest = np.where(curved, parabola.rest, line.rest)
    offset = np.where(curved, parabola.offset, line.offset)
    rest = np.where(np.isfinite(rest), rest, np.inf)
    least = np.minimum.reduceat(rest, arcs.offsets[:-1])
    at = np.flatnonzero(rest == least[arcs.owner])
    row = at[np.searchsorted(arcs.owner[at], np.arange(len(arcs)))]
    return np.where(arcs.counts > 3, row, -1), offset[row]
