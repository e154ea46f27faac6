"""The density of a cloud of directions on the sky, and the regions where it is highest.

A cloud of draws may be round, in two lobes, or a strand tens of degrees long and arcseconds wide
that follows a curve. It is laid out by Lambert's azimuthal equal-area projection about its spatial
median, where areas are right however large it is, and each draw becomes a kernel with the
covariance of its nearest neighbours, which is long along a strand and thin across it:

    f(x) = sum_j w_j K(x - x_j; S_j + floor^2),

where K is (1 - d^2 / 10)^3 up to where that is zero, d being the distance in standard deviations:
it has this covariance, ends, and costs no exponential function.

The region of a level holds the directions of at least a density t, and t is a quantile of the
densities at the draws, each of them computed as if it had not been drawn. To a draw that is left
out a new draw is alike, so the region holds its share of new draws whatever the estimate does; a
poor estimate makes the region larger, not wrong. It is to hold observations, so the draws are
blurred by their errors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.spatial import KDTree

from neoranging.constants import ARCSEC
from neoranging.core.compiled import announced, compiled
from neoranging.core.geometry import equal_area, frame_about, from_equal_area, norm
from neoranging.typing import BoolArray, FloatArray, IntArray

FLOOR: Final = 0.2 * ARCSEC
"""Standard error of an observation: what is seen of a cloud is blurred by as much [rad]."""

FEWEST: Final = 10
"""Draws that a density takes at least."""

_NEIGHBOURS: Final = (2.0, 1.0, 0.5)
"""Numbers of neighbours to choose from, in square roots of the number of draws.

Many make the density smooth, few let a thin strand bend: the draws left out choose.
"""

_JUDGES: Final = 256
"""Draws at most by which that is chosen."""

_BETTER: Final = 0.01
"""Mean logarithm of the density by which fewer neighbours must be better."""

_POINTS: Final = 1024
"""Points at which an area is measured: 2 % of it."""

_REACH: Final = 10.0
"""Square of the distance in standard deviations beyond which a kernel is zero."""

_PEAK: Final = 4.0 / (_REACH * math.pi)
"""Density in the middle of a kernel whose covariance is one."""

_NOTHING: Final = 1e-300
"""Density below which there is none: a region never holds the whole sky."""

_ROUNDS: Final = 12
"""Steps towards the middle of a cloud and its principal axes."""

_CELLS: Final = 100, 600
"""Fewest and most cells of an outline along each axis."""


@announced("the density of clouds on the sky", 5)
@compiled
def _shape(
    neighbours: IntArray,
    place: FloatArray,
    weights: FloatArray,
    n_near: int,
    floor: FloatArray,
    precision: FloatArray,
    height: FloatArray,
    change: FloatArray,
) -> None:
    """Kernels of draws, and by how much the densities at draws change without these draws.

    A draw that is left out is no neighbour either: those that have it take their next one.
    """
    sums, other = np.empty(5), np.empty(3)
    for j in range(len(place)):
        sums[:] = 0.0
        for m in range(1, n_near + 1):
            _add(1.0, place[neighbours[j, m]], place[j], sums)
        height[j] = _kernel(sums, n_near, floor, weights[j], precision[j])
        _add(1.0, place[neighbours[j, n_near + 1]], place[j], sums)
        for m in range(1, n_near + 1):
            i = neighbours[j, m]
            _add(-1.0, place[i], place[j], sums)
            top = _kernel(sums, n_near, floor, weights[j], other)
            _add(1.0, place[i], place[j], sums)
            x, y = place[i, 0] - place[j, 0], place[i, 1] - place[j, 1]
            change[i] += top * _fall(other, x, y) - height[j] * _fall(precision[j], x, y)


@compiled
def _add(sign: float, place: FloatArray, middle: FloatArray, sums: FloatArray) -> None:
    x, y = place[0] - middle[0], place[1] - middle[1]
    sums[0] += sign * x
    sums[1] += sign * y
    sums[2] += sign * x * x
    sums[3] += sign * x * y
    sums[4] += sign * y * y


@compiled
def _kernel(
    sums: FloatArray, n_near: int, floor: FloatArray, weight: float, precision: FloatArray
) -> float:
    """Inverse covariance of a kernel, from sums over the neighbours; returns its height."""
    x, y = sums[0] / n_near, sums[1] / n_near
    xx = sums[2] / n_near - x * x + floor[0]
    xy = sums[3] / n_near - x * y + floor[1]
    yy = sums[4] / n_near - y * y + floor[2]
    determinant = xx * yy - xy * xy
    precision[0] = yy / determinant
    precision[1] = -xy / determinant
    precision[2] = xx / determinant
    return _PEAK * weight / math.sqrt(determinant)


@compiled
def _fall(precision: FloatArray, x: float, y: float) -> float:
    """Density of a kernel at a place relative to its middle, as a share of that in the middle."""
    rest = 1.0 - (precision[0] * x * x + 2.0 * precision[1] * x * y + precision[2] * y * y) / _REACH
    return rest * rest * rest if rest > 0.0 else 0.0


@compiled
def _sum(
    points: FloatArray,
    own: IntArray,
    place: FloatArray,
    precision: FloatArray,
    height: FloatArray,
    share: FloatArray,
    density: FloatArray,
    proposal: FloatArray,
) -> None:
    """Densities at points, without the kernel ``own``, and with kernels of other shares."""
    for i in range(len(points)):
        total, other = 0.0, 0.0
        for j in range(len(place)):
            fall = _fall(precision[j], points[i, 0] - place[j, 0], points[i, 1] - place[j, 1])
            if fall > 0.0 and j != own[i]:
                value = height[j] * fall
                total += value
                other += value * share[j]
        density[i] = total
        proposal[i] = other


@compiled
def _spread(
    x: FloatArray,
    y: FloatArray,
    place: FloatArray,
    precision: FloatArray,
    height: FloatArray,
    density: FloatArray,
) -> None:
    """Densities on a grid (len(y), len(x)), to which each kernel adds where it is not zero."""
    step_x, step_y = x[1] - x[0], y[1] - y[0]
    for j in range(len(place)):
        determinant = precision[j, 0] * precision[j, 2] - precision[j, 1] ** 2
        reach_x = math.sqrt(_REACH * precision[j, 2] / determinant)
        reach_y = math.sqrt(_REACH * precision[j, 0] / determinant)
        first_x = max(int((place[j, 0] - reach_x - x[0]) / step_x), 0)
        last_x = min(int((place[j, 0] + reach_x - x[0]) / step_x) + 1, len(x) - 1)
        first_y = max(int((place[j, 1] - reach_y - y[0]) / step_y), 0)
        last_y = min(int((place[j, 1] + reach_y - y[0]) / step_y) + 1, len(y) - 1)
        for row in range(first_y, last_y + 1):
            for column in range(first_x, last_x + 1):
                fall = _fall(precision[j], x[column] - place[j, 0], y[row] - place[j, 1])
                density[row, column] += height[j] * fall


@dataclass(frozen=True, eq=False)
class SkyDensity:
    """Density of one cloud of n draws, in coordinates in which its bulk is round.

    Attributes
    ----------
    frame : ndarray, shape (3, 3)
        Unit vectors to the middle of the cloud, and there to the east and to the north.
    axes : ndarray, shape (2, 2)
        Turns the coordinates into those of the equal-area plane, east and north [rad].
    place : ndarray, shape (n, 2)
        Draws.
    weights : ndarray, shape (n,)
        Probabilities of the draws, adding up to one.
    precision : ndarray, shape (n, 3)
        Inverse covariances of the kernels: xx, xy, yy.
    height : ndarray, shape (n,)
        Densities of the kernels in their middles.
    left_out : ndarray, shape (n,)
        Densities at the draws, each computed without that draw.
    """

    frame: FloatArray
    axes: FloatArray
    place: FloatArray
    weights: FloatArray
    precision: FloatArray
    height: FloatArray
    left_out: FloatArray

    @classmethod
    def of_cloud(
        cls, direction: FloatArray, weights: FloatArray | None = None, floor: float = FLOOR
    ) -> SkyDensity:
        """Density of draws.

        Parameters
        ----------
        direction : ndarray, shape (n, 3)
            Unit vectors, at least `FEWEST`, none NaN.
        weights : ndarray, shape (n,), optional
            Probabilities of the draws up to a factor; equal by default.
        floor : float
            Standard error of an observation, by which the draws are blurred [rad].
        """
        n = len(direction)
        weights = np.ones(n) if weights is None else weights
        weights = weights / weights.sum()
        frame = frame_about(spatial_median(direction, weights))
        plane = equal_area(frame, direction)
        # the region is to hold what will be observed, also of an object whose place is certain
        plane += floor * np.random.default_rng(0).standard_normal(plane.shape)
        axes = _principal_axes(plane, weights, floor)
        to_place = np.linalg.inv(axes)
        place = np.ascontiguousarray(plane @ to_place.T)
        least = floor**2 * (to_place @ to_place.T)
        least = np.array([least[0, 0], least[0, 1], least[1, 1]])
        counts = [min(max(round(c * math.sqrt(n)), 4), n - 2) for c in _NEIGHBOURS]
        neighbours = np.asarray(KDTree(place).query(place, max(counts) + 2)[1], dtype=np.int64)

        judges = np.arange(0, n, max(n // _JUDGES, 1))
        best = -np.inf
        kernels: list[FloatArray] = []
        for n_near in dict.fromkeys(counts):
            precision, height, change = np.empty((n, 3)), np.empty(n), np.zeros(n)
            _shape(neighbours, place, weights, n_near, least, precision, height, change)
            left_out = _without_own(judges, place, weights, precision, height, change)
            # outliers say nothing of how a region fits
            inner = np.sort(left_out)[len(judges) // 20 :]
            score = float(np.mean(np.log(np.maximum(inner, _NOTHING))))
            if score > best + _BETTER:
                best, kernels = score, [precision, height, change]
        precision, height, change = kernels
        left_out = _without_own(np.arange(n), place, weights, precision, height, change)
        return cls(frame, axes, place, weights, precision, height, left_out)

    def threshold(self, level: float) -> float:
        """Density above which a draw lies with a probability, by the draws left out."""
        order = np.argsort(self.left_out)
        below = np.cumsum(self.weights[order])
        row = min(int(np.searchsorted(below, 1.0 - level - 1e-9)), len(order) - 1)
        return float(self.left_out[order[row]])

    def contains(self, direction: FloatArray, level: float) -> BoolArray:
        """Flags of directions (K, 3) in the region of a level."""
        place = equal_area(self.frame, direction) @ np.linalg.inv(self.axes).T
        density = self._at(place, np.ones(len(self.place)))[0]
        return np.asarray(density >= max(self.threshold(level), _NOTHING))

    def area(self, level: float) -> float:
        """Area of the region of a level [sr].

        By importance sampling, always with the same points.
        """
        threshold = self.threshold(level)
        # kernels in inverse proportion to the density cover the region evenly
        least = 0.3 * threshold
        # of few draws the threshold may be zero: the region is then all that kernels reach
        height = np.maximum(self.left_out, max(least, 1e-6 * float(self.height.max())))
        share = np.where(self.left_out >= least, 1.0 / height, 0.0)
        share /= (share * self.weights).sum()
        counts = np.cumsum(share * self.weights)
        step = np.arange(_POINTS)
        own = np.searchsorted(counts, (step + 0.5) / _POINTS * counts[-1])
        # the sequence of Roberts (2018) fills the square evenly
        radius = np.sqrt(_REACH * (1.0 - ((0.5 + 0.7548776662466927 * step) % 1.0) ** 0.25))
        angle = 2.0 * np.pi * ((0.5 + 0.5698402909980532 * step) % 1.0)
        xx, xy, yy = self.precision[own].T
        # transposed inverse of the Cholesky factor of the precision
        low = np.sqrt(xx)
        high = np.sqrt(yy - xy * xy / xx)
        y = radius * np.sin(angle) / high
        x = (radius * np.cos(angle) - xy / low * y) / low
        density, proposal = self._at(self.place[own] + np.stack([x, y], axis=1), share)
        with np.errstate(divide="ignore"):
            inverse = np.where(density >= max(threshold, _NOTHING), 1.0 / proposal, 0.0)
        return float(np.mean(inverse) * abs(np.linalg.det(self.axes)))

    def ellipse(self, level: float) -> tuple[float, float, float]:
        """Ellipse about the middle that holds a share of the draws.

        Its axes are those of the draws in the region of the level.

        Returns
        -------
        semi_major, semi_minor, position_angle : float
            In rad; the angle of the major axis from north to east, below pi.
        """
        plane = self.place @ self.axes.T
        inside = self.left_out >= self.threshold(level)
        moment = (plane[inside].T * self.weights[inside]) @ plane[inside]
        # of a region without width, as of equal draws, the floor of the kernels is left
        values, vectors = np.linalg.eigh(moment + FLOOR**2 * 1e-6 * np.eye(2))
        square = np.sum((plane @ vectors) ** 2 / values, axis=1)
        order = np.argsort(square)
        within = np.cumsum(self.weights[order])
        row = min(int(np.searchsorted(within, level - 1e-9)), len(order) - 1)
        minor, major = vectors.T * np.sqrt(values * square[order[row]])[:, None]
        lengths = (2.0 * math.asin(min(0.5 * float(norm(axis)), 1.0)) for axis in (major, minor))
        return *lengths, math.atan2(major[0], major[1]) % math.pi  # type: ignore[return-value]

    def outline(self, level: float) -> list[FloatArray]:
        """Closed lines around the region of a level, unit vectors, each of shape (K, 3).

        A strand that is thinner than the cells of the grid is drawn as thin as these.
        """
        import contourpy

        inside = self.left_out >= self.threshold(level)
        xx, xy, yy = self.precision[inside].T
        variance = np.stack([yy, xx], axis=1) / (xx * yy - xy * xy)[:, None]
        reach = 4.0 * np.sqrt(variance)
        low = (self.place[inside] - reach).min(axis=0)
        high = (self.place[inside] + reach).max(axis=0)
        # the smallest width that a kernel has in any direction
        trace = 0.5 * (xx + yy)
        width = 1.0 / np.sqrt(trace + np.sqrt((trace**2 - xx * yy + xy * xy).clip(0.0)))
        cells = np.clip(3.0 * (high - low) / np.quantile(width, 0.05), *_CELLS)
        x = np.linspace(low[0], high[0], int(cells[0]))
        y = np.linspace(low[1], high[1], int(cells[1]))
        blurred = self._blurred((x[1] - x[0], y[1] - y[0]))
        density = np.zeros((len(y), len(x)))
        _spread(x, y, self.place, blurred.precision, blurred.height, density)
        # of few draws that lie far apart none is near another: their threshold is zero
        least = max(blurred.threshold(level), 1e-9 * float(density.max()))
        height = np.log(np.maximum(density / least, 1e-6))
        lines = contourpy.contour_generator(x, y, height).lines(0.0)
        return [from_equal_area(self.frame, np.asarray(line) @ self.axes.T) for line in lines]

    def _at(self, place: FloatArray, share: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Densities at places, and with kernels of other shares."""
        density, proposal = np.empty((2, len(place)))
        own = np.full(len(place), -1)
        place = np.ascontiguousarray(place)
        _sum(place, own, self.place, self.precision, self.height, share, density, proposal)
        return density, proposal

    def _blurred(self, width: tuple[float, float]) -> SkyDensity:
        """Density whose kernels are at least as wide as cells, in the coordinates of the cloud."""
        xx, xy, yy = self.precision.T
        determinant = xx * yy - xy * xy
        wide_x = yy / determinant + width[0] ** 2
        wide_y = xx / determinant + width[1] ** 2
        joint = -xy / determinant
        determinant = wide_x * wide_y - joint * joint
        precision = np.stack([wide_y, -joint, wide_x], axis=1) / determinant[:, None]
        height = _PEAK * self.weights / np.sqrt(determinant)
        none, everyone = np.zeros(len(height)), np.arange(len(height))
        left_out = _without_own(everyone, self.place, self.weights, precision, height, none)
        return SkyDensity(
            self.frame, self.axes, self.place, self.weights, precision, height, left_out
        )


def _without_own(
    rows: IntArray,
    place: FloatArray,
    weights: FloatArray,
    precision: FloatArray,
    height: FloatArray,
    change: FloatArray,
) -> FloatArray:
    """Densities at some draws, each as if that one had not been drawn."""
    density, proposal = np.empty((2, len(rows)))
    _sum(place[rows], rows, place, precision, height, weights, density, proposal)
    return np.maximum(density + change[rows], 0.0) / (1.0 - weights[rows])


def spatial_median(direction: FloatArray, weights: FloatArray) -> FloatArray:
    """Direction from which draws are least far on average; few that are far do not move it.

    Parameters
    ----------
    direction : ndarray, shape (n, 3)
        Unit vectors.
    weights : ndarray, shape (n,)
    """
    middle = np.median(direction[weights > 0.0], axis=0)
    nearest = 1e-3 * FLOOR
    for _ in range(_ROUNDS):  # of Weiszfeld
        pull = weights / np.maximum(norm(direction - middle), nearest)
        middle = pull @ direction / pull.sum()
    return middle / norm(middle)


def _principal_axes(plane: FloatArray, weights: FloatArray, floor: float) -> FloatArray:
    """Principal axes of the bulk of a cloud as columns, as long as its standard deviations.

    The maximum-likelihood scatter of a Cauchy law: few draws that are far do not stretch it.
    """
    rest = floor**2 * np.eye(2)
    scatter = (plane.T * weights) @ plane + rest
    for _ in range(_ROUNDS):
        square = np.sum(plane @ np.linalg.inv(scatter) * plane, axis=1)
        scatter = (plane.T * (weights * 3.0 / (1.0 + square))) @ plane + rest
    values, vectors = np.linalg.eigh(scatter)
    return np.asarray(vectors * np.sqrt(values))
