"""Figures of one tracklet as SVG that stands in a page: short paths, no library behind them.

Coordinates are rounded to the half pixels of a telephone, and each point of a path counts from the
one before it, so that a figure has a few kilobytes and a page of a thousand tracklets opens.
Colours and lines are classes of the template. What lies outside the axes is cut off by the inner
``svg``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np
from markupsafe import Markup

from neoranging.constants import AU_KM
from neoranging.typing import FloatArray

WIDTH: Final = 680
HEIGHT: Final = 520
"""Size of a figure in its own units, two to a pixel of a telephone."""

_LEFT, _RIGHT, _TOP, _BOTTOM = 96, 16, 16, 78
LUNAR_AU: Final = 384_400.0 / AU_KM
_SPECK: Final = 26
"""Size below which what is drawn would be a speck and gets a ring around it."""

LEVELS: Final = (0.95, 0.68)
"""Shares of the probability within outlines and shaded parts."""


class Cloud(NamedTuple):
    """Points of a plane, and how dense the probability is about them."""

    x: FloatArray
    y: FloatArray
    rank: FloatArray
    """Share of the probability where it is denser than at the point, shape (n,)."""


class Axes:
    """Rectangle of a figure with limits in x and y, and the way from numbers to its units.

    Parameters
    ----------
    x, y : tuple of float
        Limits, left to right and bottom to top; those in x descend where it grows to the left.
    """

    def __init__(self, x: Sequence[float], y: Sequence[float]) -> None:
        self.x, self.y = (float(x[0]), float(x[1])), (float(y[0]), float(y[1]))
        self.width, self.height = WIDTH - _LEFT - _RIGHT, HEIGHT - _TOP - _BOTTOM
        self._inside: list[str] = []
        self._outside: list[str] = []

    def across(self, x: FloatArray | float) -> FloatArray:
        """Units from the left side."""
        return (np.asarray(x) - self.x[0]) / (self.x[1] - self.x[0]) * self.width

    def down(self, y: FloatArray | float) -> FloatArray:
        """Units from the upper side."""
        return (self.y[1] - np.asarray(y)) / (self.y[1] - self.y[0]) * self.height

    def _pixels(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """Whole units, far ones brought near, shape (n, 2); without those that are no numbers."""
        points = np.stack([self.across(x), self.down(y)], axis=-1)
        points = points[np.isfinite(points).all(axis=1)]
        return np.rint(np.clip(points, -2 * WIDTH, 3 * WIDTH)).astype(np.int64)

    def line(self, x: FloatArray, y: FloatArray, look: str, *, closed: bool = False) -> None:
        """Draw a line through points, or the area that they enclose."""
        points = self._pixels(x, y)
        if len(points):
            steps = np.diff(points, axis=0)
            steps = steps[(steps != 0).any(axis=1)]
            path = f"M{points[0, 0]} {points[0, 1]}l{_numbers(steps)}"
            self._inside.append(f'<path class="{look}" d="{path}{"z" if closed else ""}"/>')

    def dots(self, x: FloatArray, y: FloatArray, look: str) -> None:
        """Draw points, of those that fall on one unit only the first."""
        points = self._pixels(x, y)
        inside = ((points >= 0) & (points <= [self.width, self.height])).all(axis=1)
        points = np.unique(points[inside], axis=0)
        if len(points):
            steps = np.diff(points, axis=0, prepend=np.zeros((1, 2), dtype=np.int64))
            path = "".join(f"m{a} {b}h0" for a, b in steps.tolist()).replace(" -", "-")
            self._inside.append(f'<path class="{look}" d="{path}"/>')

    def cloud(self, cloud: Cloud) -> None:
        """Draw points by the part of the probability that they belong to, and ring a speck."""
        edges = (0.0, *LEVELS[::-1], 1.0 + 1e-9)
        for low, high, look in zip(edges[-2::-1], edges[:0:-1], ("r", "q", "p"), strict=True):
            part = (cloud.rank >= low) & (cloud.rank < high)
            self.dots(cloud.x[part], cloud.y[part], look)
        points = self._pixels(*(x[cloud.rank < LEVELS[0]] for x in (cloud.x, cloud.y)))
        if len(points) and (size := np.ptp(points, axis=0).max()) < _SPECK:
            x, y = np.rint(points.mean(axis=0)).astype(int)
            self._inside.append(f'<circle class="ring" cx="{x}" cy="{y}" r="{18 + size // 2}"/>')

    def mark(self, x: float, text: str) -> None:
        """Draw an upright line with a name, where it lies within the limits."""
        if min(self.x) < x < max(self.x):
            at = round(float(self.across(x)))
            self._inside.append(
                f'<path class="mark" d="M{at} 0v{self.height}"/>'
                f'<text class="mark" x="{at + 6}" y="22">{text}</text>'
            )

    def square(self, x: float, y: float, side: float, look: str) -> None:
        """Draw a square about a middle."""
        half = 0.5 * side
        across, up = np.array([half, -half, -half, half]), np.array([half, half, -half, -half])
        self.line(x + across, y + up, look, closed=True)

    def ticks(self, x: Iterable[tuple[float, str]], y: Iterable[tuple[float, str]]) -> None:
        """Draw a grid with numbers below and at the left."""
        grid = []
        for value, text in x:
            at = round(float(self.across(value)))
            grid.append(f"M{at} 0v{self.height}")
            self._outside.append(f'<text x="{_LEFT + at}" y="{HEIGHT - 50}">{text}</text>')
        for value, text in y:
            at = round(float(self.down(value)))
            grid.append(f"M0 {at}h{self.width}")
            self._outside.append(
                f'<text class="e" x="{_LEFT - 8}" y="{_TOP + at + 7}">{text}</text>'
            )
        self._inside.insert(0, f'<path class="grid" d="{"".join(grid)}"/>')

    def figure(self, title: str, x: str, y: str = "") -> Markup:
        """Figure with the names of its axes."""
        middle, side = _LEFT + self.width // 2, _TOP + self.height // 2
        names = f'<text x="{middle}" y="{HEIGHT - 14}">{x}</text>'
        if y:
            names += f'<text transform="translate(22 {side})rotate(-90)">{y}</text>'
        return Markup(
            f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{title}">'
            f"{''.join(self._outside)}{names}"
            f'<svg x="{_LEFT}" y="{_TOP}" width="{self.width}" height="{self.height}">'
            f"{''.join(self._inside)}</svg>"
            f'<rect class="frame" x="{_LEFT}" y="{_TOP}" width="{self.width}" '
            f'height="{self.height}"/></svg>'
        )


def _numbers(steps: FloatArray) -> str:
    """Pairs of whole numbers as the data of a path."""
    return " ".join(map(str, steps.ravel().tolist())).replace(" -", "-") or "0 0"


def plane(outlines: Sequence[tuple[FloatArray, FloatArray]], cloud: Cloud | None) -> Markup:
    """Posterior over the admissible region, in the plane of range and range-rate.

    Parameters
    ----------
    outlines : sequence of tuple of 2 ndarray
        Closed curves around the region: ranges [au] and range-rates [au/d].
    cloud : Cloud, optional
        Draws of the posterior: ln of the range [au], range-rate [au/d].
    """
    x = np.concatenate([np.log(rho) for rho, _ in outlines])
    y = np.concatenate([rate for _, rate in outlines])
    low, high = (f(x) for f in (np.min, np.max))
    margin_x, margin_y = 0.03 * (high - low), 0.06 * float(np.ptp(y))
    axes = Axes((low - margin_x, high + margin_x), (y.min() - margin_y, y.max() + margin_y))
    axes.ticks(_decades(*axes.x), _steps(*axes.y))
    for rho, rate in outlines:
        axes.line(np.log(rho), rate, "region", closed=True)
    if cloud is not None:
        axes.cloud(cloud)
    return axes.figure("posterior over the admissible region", "range [au]", "range-rate [au/d]")


def range_curve(x: FloatArray, density: FloatArray, regions: dict[float, FloatArray]) -> Markup:
    """Density in the logarithm of the range, the densest parts of it shaded.

    Parameters
    ----------
    x, density : ndarray, shape (n,)
        ln of the range [au], and the density in it.
    regions : dict
        Intervals of ln of the range by the share that they hold, shape (k, 2).
    """
    axes = Axes((x[0], x[-1]), (0.0, 1.12 * float(density.max())))
    axes.ticks(_decades(*axes.x), ())
    for level, look in zip(LEVELS, ("low", "high"), strict=True):
        for start, stop in regions[level]:
            within = (x > start) & (x < stop)
            at = np.concatenate([[start, start], x[within], [stop, stop]])
            ends = np.interp([start, stop], x, density)
            height = np.concatenate([[0.0, ends[0]], density[within], [ends[1], 0.0]])
            axes.line(at, height, look, closed=True)
    axes.line(x, density, "curve")
    axes.mark(math.log(LUNAR_AU), "Moon")
    return axes.figure("density of the range", "range [au]", "density in log range")


def sky(
    cloud: Cloud,
    outlines: Sequence[tuple[FloatArray, FloatArray]],
    field: float,
    pointings: Sequence[tuple[float, float]],
) -> Markup:
    """Cloud of directions in the plane of the sky, north up and east left.

    Parameters
    ----------
    cloud : Cloud
        Draws: offsets to the east and to the north [arcmin].
    outlines : sequence of tuple of 2 ndarray
        Curves around the regions that hold a share of the probability.
    field : float
        Side of the field of view [arcmin].
    pointings : sequence of tuple of 2 float
        Middles of the fields, the first one first.
    """
    bulk = cloud.rank < 0.99
    drawn = [(cloud.x[bulk], cloud.y[bulk]), *outlines]
    points = np.concatenate([np.stack(part, axis=1) for part in drawn])
    low, high = points.min(axis=0), points.max(axis=0)
    if pointings:
        low = np.minimum(low, np.array(pointings[0]) - 0.55 * field)
        high = np.maximum(high, np.array(pointings[0]) + 0.55 * field)
    middle, shape = 0.5 * (low + high), np.array([WIDTH - _LEFT - _RIGHT, HEIGHT - _TOP - _BOTTOM])
    half = 0.53 * float(((high - low) / shape).max()) * shape
    axes = Axes(
        (middle[0] + half[0], middle[0] - half[0]), (middle[1] - half[1], middle[1] + half[1])
    )
    axes.ticks(_steps(*axes.x), _steps(*axes.y))
    for east, north in outlines:
        axes.line(east, north, "sky", closed=True)
    axes.cloud(cloud)
    for number, middle_of_field in enumerate(pointings):
        axes.square(*middle_of_field, field, "other" if number else "field")
    return axes.figure("cloud on the sky", "east [arcmin]", "north [arcmin]")


def _decades(low: float, high: float) -> list[tuple[float, str]]:
    """Ticks of a logarithmic axis between logarithms: decades, or finer ones in few of them."""
    ends = math.exp(low), math.exp(high)
    for parts in ((1.0,), (1.0, 3.0), (1.0, 2.0, 5.0)):
        values = [
            part * 10.0**power
            for power in range(math.floor(math.log10(ends[0])), math.ceil(math.log10(ends[1])) + 1)
            for part in parts
        ]
        values = [value for value in values if ends[0] <= value <= ends[1]]
        if len(values) >= 3:
            return [(math.log(value), f"{value:g}") for value in values]
    return [(math.log(value), text) for value, text in _steps(*ends, most=4)]


def _steps(low: float, high: float, most: int = 5) -> list[tuple[float, str]]:
    """Ticks of a linear axis at even steps of 1, 2 or 5 times a power of ten."""
    low, high = min(low, high), max(low, high)
    least = (high - low) / most
    power = 10.0 ** math.floor(math.log10(least))
    step = next(part * power for part in (1.0, 2.0, 5.0, 10.0) if part * power >= least)
    first, last = math.ceil(low / step), math.floor(high / step)
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    return [(k * step, f"{k * step:.{digits}f}".replace("-", "−")) for k in range(first, last + 1)]


def ranks(density: FloatArray) -> FloatArray:
    """Shares of the draws that are at denser places than each, shape (n,)."""
    order = np.argsort(-density, kind="stable")
    rank = np.empty(len(density))
    rank[order] = np.arange(len(density)) / len(density)
    return rank
