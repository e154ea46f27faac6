"""Draw the reference frame of the ranging problem, for ``docs/guide/ranging_problem.rst``.

``python docs/tools/frame_figure.py [FILE]`` writes ``docs/guide/frame.svg``: the sphere of
directions about the observer, right ascension and declination on it, and the triangle of Sun,
observer and object that the range completes.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from neoranging.typing import FloatArray

FILE = Path(__file__).resolve().parents[1] / "guide" / "frame.svg"

RA, DEC = np.radians([62.0, 42.0])
SUN = np.array([1.15, -1.55, -0.62])
"""Place of the Sun from the observer, in radii of the sphere; not to scale."""

VIEW = np.radians([28.0, 20.0])
"""Longitude and latitude from which the sphere is seen."""

GREY, BLUE, RED, GREEN, ORANGE, VIOLET = (
    *("#7a7a7a", "#0072B2", "#C0392B", "#00795C"),
    *("#C76B00", "#7A3E9D"),
)


def direction(ra: FloatArray | float, dec: FloatArray | float) -> FloatArray:
    """Unit vectors, shape (..., 3)."""
    ra, dec = np.broadcast_arrays(ra, dec)
    return np.stack([np.cos(dec) * np.cos(ra), np.cos(dec) * np.sin(ra), np.sin(dec)], axis=-1)


def seen(points: FloatArray) -> FloatArray:
    """Places on the page and depth towards the eye of points in space, shape (..., 3)."""
    lon, lat = VIEW
    right = np.array([-np.sin(lon), np.cos(lon), 0.0])
    up = direction(lon + np.pi, 0.5 * np.pi - lat)
    return np.asarray(points) @ np.stack([right, up, direction(lon, lat)]).T


def curve(ax: Axes, points: FloatArray, color: str, **look: object) -> None:
    """Draw a curve; where the sphere hides it, thin and dotted."""
    x, y, depth = seen(points).T
    for part, style, width in ((depth >= 0.0, "-", 1.1), (depth < 0.0, ":", 0.8)):
        usual = {"linestyle": style, "linewidth": width}
        ax.plot(*(np.where(part, z, np.nan) for z in (x, y)), color=color, **(usual | look))


def arrow(ax: Axes, start: FloatArray, end: FloatArray, color: str) -> None:
    """Draw a vector."""
    tail, head = (seen(point)[:2] for point in (start, end))
    look = {"arrowstyle": "-|>", "color": color, "linewidth": 1.6, "shrinkA": 0, "shrinkB": 3}
    ax.annotate("", head, tail, arrowprops=look)


def label(ax: Axes, point: FloatArray, text: str, color: str, shift: tuple[float, float]) -> None:
    """Write beside a point, shifted by points on the page."""
    ax.annotate(
        text, seen(point)[:2], shift, textcoords="offset points", color=color,
        ha="center", va="center", fontsize=11,
    )  # fmt: skip


def draw(ax: Axes) -> None:
    """Draw sphere, angles and vectors."""
    turn = np.linspace(0.0, 2.0 * np.pi, 400)
    ax.add_patch(plt.Circle((0.0, 0.0), 1.0, facecolor="#F4F7FB", edgecolor=GREY, linewidth=0.8))
    curve(ax, direction(turn, 0.0), GREY)
    curve(ax, direction(RA, turn), GREY, linewidth=0.7)
    origin, sight = np.zeros(3), direction(RA, DEC)
    foot = direction(RA, 0.0)
    for axis, name, shift in (
        (np.array([1.3, 0.0, 0.0]), "vernal equinox", (-8, -10)),
        (np.array([0.0, 0.0, 1.3]), "north pole", (0, 9)),
    ):
        arrow(ax, origin, axis, GREY)
        label(ax, axis, name, GREY, shift)
    curve(ax, np.linspace(origin, foot, 2), GREY, linestyle="--", linewidth=0.8)
    curve(ax, 0.5 * direction(np.linspace(0.0, RA, 50), 0.0), RED, linewidth=1.8)
    label(ax, 0.5 * direction(0.5 * RA, 0.0), r"$\alpha$", RED, (0, -10))
    curve(ax, 0.5 * direction(RA, np.linspace(0.0, DEC, 50)), GREEN, linewidth=1.8)
    label(ax, 0.5 * direction(RA, 0.5 * DEC), r"$\delta$", GREEN, (11, 2))
    target = 1.75 * sight
    arrow(ax, origin, target, BLUE)
    label(ax, 0.78 * sight, r"$\rho$", BLUE, (-9, 5))
    label(ax, sight, r"$\mathbf{L}$", "black", (12, -6))
    arrow(ax, SUN, origin, ORANGE)
    label(ax, 0.72 * SUN, r"$\mathbf{R}$", ORANGE, (4, -13))
    arrow(ax, SUN, target, VIOLET)
    label(
        ax, 0.5 * (SUN + target), r"$\mathbf{r} = \mathbf{R} + \rho\,\mathbf{L}$", VIOLET, (-30, 16)
    )
    for k, (axis, name, shift) in enumerate(
        (
            (np.array([-np.sin(RA), np.cos(RA), 0.0]), r"$\dot\alpha\,\cos\delta$", (22, -2)),
            (direction(RA, DEC + 0.5 * np.pi), r"$\dot\delta$", (-8, 5)),
        )
    ):
        arrow(ax, sight, sight + 0.32 * axis, (RED, GREEN)[k])
        label(ax, sight + 0.32 * axis, name, (RED, GREEN)[k], shift)
    for point, name, color, size, shift in (
        (origin, "observer", BLUE, 60, (-30, 8)),
        (SUN, "Sun", ORANGE, 160, (0, -18)),
        (target, "object", "black", 36, (0, 13)),
        (sight, "", "black", 14, (0, 0)),
    ):
        ax.scatter(*seen(point)[:2], s=size, color=color, zorder=5)
        label(ax, point, name, color, shift)


def main(file: Path = FILE) -> None:
    """Write the figure; the same bytes every time."""
    mpl.rcParams["svg.hashsalt"] = "frame"
    fig, ax = plt.subplots(figsize=(6.4, 4.6), layout="constrained")
    ax.set_aspect("equal")
    ax.set(xlim=(-2.05, 1.1), ylim=(-1.08, 1.4))  # what lies outside is not drawn
    ax.set_axis_off()
    draw(ax)
    fig.savefig(file, metadata={"Date": None, "Creator": None})
    plt.close(fig)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
