"""The outline, area and random points of one admissible region, in plain numbers.

Over each interval of range the region is the strip of range-rates bound to the Sun, less a notch
about zero range-rate at its near end: the orbits bound to the Earth. :class:`RegionShape` cuts the
interval into cells on which both edges are smooth, and builds everything from those.

Units: au, day. See :mod:`neoranging.core.admissible` for the coefficients.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq

from neoranging.core import admissible
from neoranging.typing import BoolArray, FloatArray

Curve = tuple[FloatArray, FloatArray]

_N_SCAN = 513  # ranges looked at when a crossing is searched before it is refined
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(48)


class Cell(NamedTuple):
    """A stretch of range over which the region is one strip.

    ``side`` is 1 above and -1 below the Earth-bound orbits, 0 beyond them.
    """

    start: float
    end: float
    side: int


@dataclasses.dataclass(frozen=True, slots=True)
class RegionShape:
    """One region: where its strip of range-rates lies over which ranges.

    Parameters
    ----------
    c : ndarray, shape (6,)
        Energy coefficients whose zero line bounds the strip, a limit on the semimajor axis included
        (:func:`neoranging.core.admissible.limit_semimajor_axis`).
    intervals : ndarray, shape (n, 2)
        Intervals of range [au], ascending.
    """

    c: FloatArray
    intervals: FloatArray

    @classmethod
    def of(cls, c: FloatArray, rho_min: float) -> RegionShape:
        """The region beyond ``rho_min`` [au], without intervals that are bound to the Earth."""
        intervals = admissible.range_intervals(c, rho_min)
        shape = cls(c, intervals[np.isfinite(intervals[:, 0])])
        nonempty = [bool(shape.cells(near, far)) for near, far in shape.intervals]
        return cls(c, shape.intervals[nonempty])

    def contains(self, rho: FloatArray, rho_dot: FloatArray) -> BoolArray:
        """Flags of the points that lie in the region."""
        near = self.intervals[0, 0] if len(self.intervals) else math.inf
        return (rho >= near) & admissible.is_admissible(self.c, rho, rho_dot)

    def strip(self, rho: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Edges of the Sun-bound strip; where rounding shuts it at an end, its middle."""
        low, high = admissible.range_rate_interval(self.c, rho)
        shut, middle = np.isnan(low), -0.5 * self.c[1]
        return np.where(shut, middle, low), np.where(shut, middle, high)

    def edges(self, rho: npt.ArrayLike, side: int) -> tuple[FloatArray, FloatArray]:
        """Edges of the region on one side of the Earth-bound orbits, or beyond them."""
        low, high = self.strip(rho)
        if side > 0:
            low = np.maximum(low, admissible.escape_rate(self.c, rho))
        elif side < 0:
            high = np.minimum(high, -admissible.escape_rate(self.c, rho))
        return low, high

    def rate_bounds(self) -> tuple[float, float]:
        """Range-rates that enclose the strip at every range of the region."""
        widest = 0.0
        for near, far in self.intervals:
            rho = self._spread(near, far, _N_SCAN)
            for _ in range(3):  # the width is smooth: zoom in on its greatest value
                low, high = self.strip(rho)
                best = int(np.argmax(high - low))
                widest = max(widest, float(high[best] - low[best]))
                rho = np.linspace(rho[max(best - 1, 0)], rho[min(best + 1, len(rho) - 1)], _N_SCAN)
        middle = -0.5 * float(self.c[1])
        return middle - 0.5 * widest, middle + 0.5 * widest

    def cells(self, near: float, far: float) -> list[Cell]:
        """Cut one interval of range where the Earth-bound orbits end or meet the strip's edge."""
        escape = min(max(float(admissible.earth_bound_range(self.c)), near), far)
        cuts = {near, escape}
        if escape > near:
            for sign in (1.0, -1.0):
                cuts.update(zeros_of(partial(self._rim_energy, sign=sign), near, escape))
        cells = [
            Cell(start, end, side)
            for start, end in pairwise(sorted(cuts))
            for side in (1, -1)
            if np.less(*self.edges(0.5 * (start + end), side))
        ]
        return [*cells, Cell(escape, far, 0)] if escape < far else cells

    def area(self) -> float:
        """Area [au^2/d]."""
        # sin^2 takes the square-root ends of the strip out of the integrand.
        angle = 0.25 * np.pi * (_NODES + 1.0)
        total = 0.0
        for cell in (cell for near, far in self.intervals for cell in self.cells(near, far)):
            for start, end in pairwise(self._stretches(cell.start, cell.end)):
                low, high = self.edges(start + (end - start) * np.sin(angle) ** 2, cell.side)
                jacobian = 0.25 * np.pi * (end - start) * np.sin(2.0 * angle)
                total += float(np.sum(_WEIGHTS * jacobian * (high - low)))
        return total

    def sample(self, n: int, rng: np.random.Generator, *, log: bool) -> FloatArray:
        """Draw points (range, range-rate), shape (n, 2), uniform in range or in its logarithm."""
        ends = np.array([self.intervals[0, 0], self.intervals[-1, 1]])
        near, far = np.log(ends) if log else ends
        lowest, highest = self.rate_bounds()
        accepted = [np.empty((0, 2))]
        missing = n
        while missing > 0:
            points = rng.uniform((near, lowest), (far, highest), (2 * missing + 64, 2))
            if log:
                points[:, 0] = np.exp(points[:, 0])
            accepted.append(points[self.contains(points[:, 0], points[:, 1])][:missing])
            missing -= len(accepted[-1])
        return np.concatenate(accepted)

    def outlines(self, n: int) -> list[Curve]:
        """Closed curves round the region, ``n`` ranges to each side of a stretch."""
        curves: list[Curve] = []
        for near, far in self.intervals:
            cells = _join(self.cells(near, far))
            bodies = [cell for cell in cells if cell.side == 0]
            fingers = [cell for cell in cells if bodies and cell.end == bodies[0].start]
            curves.extend(self._outline(body, fingers, n) for body in bodies)
            loose = [cell for cell in cells if cell.side != 0 and cell not in fingers]
            curves.extend(self._outline(cell, [], n) for cell in loose)
        return sorted(curves, key=lambda curve: float(curve[0].min()))

    def _rim_energy(self, rho: npt.ArrayLike, sign: float) -> FloatArray:
        """Energy against the strip's limit of the orbits that just escape the Earth."""
        return admissible.sun_energy(self.c, rho, sign * admissible.escape_rate(self.c, rho))

    def _outline(self, body: Cell, fingers: list[Cell], n: int) -> Curve:
        """Go once round a body and the fingers attached to its near end."""
        out, home = self._sides(body, n)
        path = [out, home]
        for finger in sorted(fingers, key=lambda cell: cell.side):
            top, bottom = self._sides(finger, n)
            # The lower finger follows the body, the upper one frames it: out along the top before
            # the body, home along the notch.
            path = [top, *path, bottom] if finger.side > 0 else [*path, bottom, top]
        rho, rate = (np.concatenate(part) for part in zip(*path, strict=True))
        return np.append(rho, rho[0]), np.append(rate, rate[0])

    def _sides(self, cell: Cell, n: int) -> tuple[Curve, Curve]:
        """The upper side of a cell going out and its lower side coming home."""
        rho = self._spread(cell.start, cell.end, n)
        low, high = self.edges(rho, cell.side)
        return (rho, high), (rho[::-1], low[::-1])

    def _stretches(self, start: float, end: float) -> list[float]:
        """Two ranges and, if it lies between them, the one nearest to the Sun.

        There a line of sight that passes close to the Sun has a sharp peak of bound range-rates.
        """
        nearest = -0.5 * float(self.c[5])
        return [start, nearest, end] if start < nearest < end else [start, end]

    def _spread(self, start: float, end: float, n: int) -> FloatArray:
        """Ranges even in the logarithm, but crowded at the ends of stretches, where sides turn."""
        part = 0.5 - 0.5 * np.cos(np.linspace(0.0, np.pi, n))
        pieces = [a * (b / a) ** part for a, b in pairwise(self._stretches(start, end))]
        rho = np.concatenate([pieces[0], *(piece[1:] for piece in pieces[1:])])
        rho[0], rho[-1] = start, end
        return rho


def zeros_of(function: Callable[[Any], Any], start: float, end: float) -> list[float]:
    """Zeros of a smooth function of range between two ranges, ascending."""
    rho = np.geomspace(start, end, _N_SCAN)
    positive = function(rho) > 0.0
    changes = np.flatnonzero(positive[:-1] != positive[1:])
    return [float(brentq(function, rho[i], rho[i + 1], xtol=1e-15)) for i in changes]


def _join(cells: list[Cell]) -> list[Cell]:
    """Make one of neighbours on the same side."""
    joined: list[Cell] = []
    for cell in sorted(cells, key=lambda cell: (cell.side, cell.start)):
        if joined and joined[-1].side == cell.side and joined[-1].end == cell.start:
            joined[-1] = Cell(joined[-1].start, cell.end, cell.side)
        else:
            joined.append(cell)
    return joined
