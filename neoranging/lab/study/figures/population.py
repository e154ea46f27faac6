"""The objects of a set: their orbits, in space and in the planes of elements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neoranging.core.elements import elements_to_state
from neoranging.exceptions import EvaluationError
from neoranging.plotting import style
from neoranging.typing import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from neoranging.lab.sets.schema import ArcTable


COLUMNS_NEEDED: Final = ("designation", "q_au", "ecc", "inc_rad", "raan_rad", "argp_rad")
"""Columns of a set that the figure shows."""

_REACH: Final = 2.4
"""Half the edge of the box of orbits [au]."""

_FARTHEST: Final = 4.2
"""End of the axis of semimajor axes [au]: beyond it are few near-Earth objects."""


@style.print_size()
def plot_population(table: ArcTable, *, n_orbits: int = 100, seed: int = 0) -> Figure:
    """Draw the orbits of the objects of a set.

    Parameters
    ----------
    table : ArcTable
        M arcs with `COLUMNS_NEEDED`; each object counts once, with the orbit of its first arc.
    n_orbits : int
        Objects, drawn at random, whose orbits are shown in space.
    seed : int
        Of the draw.

    Returns
    -------
    matplotlib.figure.Figure
        Orbits about the Sun, ecliptic axes; eccentricity against semimajor axis, with the orbits
        that touch that of the Earth; the inclinations.

    Raises
    ------
    EvaluationError
        If no arc has an orbit.
    DatasetError
        If a column is missing.
    """
    _, first = np.unique(table["designation"], return_index=True)
    orbits = np.stack([table[name][first] for name in COLUMNS_NEEDED[1:]])
    elliptic = np.isfinite(orbits).all(axis=0) & (orbits[1] < 1.0)
    if not elliptic.any():
        raise EvaluationError("no arc has an elliptic orbit: the set carries no catalogue")
    orbits = orbits[:, elliptic]
    fig = style.new_figure(style.TWO_COLUMNS, 2.7)
    grid = fig.add_gridspec(1, 3, width_ratios=(1.45, 1.2, 1.0))
    _draw_space(fig.add_subplot(grid[0], projection="3d"), orbits, n_orbits, seed)
    _draw_shapes(fig.add_subplot(grid[1]), orbits)
    _draw_inclinations(fig.add_subplot(grid[2]), orbits[2])
    return fig


def _draw_space(ax: Any, orbits: FloatArray, n: int, seed: int) -> None:
    """Orbits in a box about the Sun."""
    nu = np.linspace(-np.pi, np.pi, 181)
    chosen = np.random.default_rng(seed).permutation(orbits.shape[1])[:n]
    for q, ecc, inc, raan, argp in orbits[:, chosen].T:
        path, _ = elements_to_state(q, ecc, inc, raan, argp, nu)
        outside = np.abs(path).max(axis=1) > _REACH
        path[outside] = np.nan
        ax.plot(*path.T, color=style.BLUE, linewidth=0.3, alpha=0.45)
    ax.plot(np.cos(nu), np.sin(nu), 0.0, color=style.BLACK, linewidth=1.3, zorder=5)
    ax.plot([0.0], [0.0], [0.0], marker="o", markersize=4, color=style.ORANGE, zorder=6)
    ends = (-_REACH, _REACH)
    ax.set(xlim=ends, ylim=ends, zlim=(-0.6 * _REACH, 0.6 * _REACH))
    ax.set_box_aspect((1, 1, 0.6), zoom=0.92)
    ax.view_init(elev=28, azim=-60)
    ax.tick_params(labelsize=style.SMALL - 1, pad=-3)
    for axis, name in ((ax.xaxis, "x"), (ax.yaxis, "y"), (ax.zaxis, "z")):
        axis.set_major_locator(style.pyplot().MultipleLocator(2.0))
        axis.set_pane_color((1.0, 1.0, 1.0, 0.0))
        axis.labelpad = -9
        axis.set_label_text(f"${name}$ [au]")
    ax.set_title(f"{len(chosen)} of {style.count(orbits.shape[1], 'objects')}")


def _draw_shapes(ax: Axes, orbits: FloatArray) -> None:
    """Eccentricity against semimajor axis."""
    q, ecc = orbits[:2]
    a = q / (1.0 - ecc)
    inside = a < _FARTHEST
    view = (0.4, _FARTHEST), (0.0, 1.0)
    style.density(ax, (a[inside], ecc[inside]), view, gridsize=(48, 28))
    beyond, within = np.linspace(1.0, _FARTHEST, 200), np.linspace(0.5, 1.0, 100)
    far = np.linspace(1.3, _FARTHEST, 200)
    for x, y, line, name in (
        (beyond, 1.0 - 1.0 / beyond, "-", "$q$ = 1 au"),
        (within, 1.0 / within - 1.0, "--", "$Q$ = 1 au"),
        (far, 1.0 - 1.3 / far, ":", "$q$ = 1.3 au"),
    ):
        ax.plot(x, y, color=style.BLACK, linewidth=1.0, linestyle=line, label=name)
    ax.plot(
        1.0,
        0.0167,
        marker="P",
        markersize=6,
        color=style.VERMILION,
        markeredgecolor="white",
        markeredgewidth=0.5,
        linestyle="none",
        label="Earth",
        zorder=6,
    )
    ax.legend(loc="lower right", frameon=True, framealpha=0.85)
    style.dress(
        ax,
        xlim=view[0],
        ylim=view[1],
        xlabel="semimajor axis $a$ [au]",
        ylabel="eccentricity $e$",
        title=style.count(int(inside.sum()), f"with $a$ < {_FARTHEST:g} au"),
    )


def _draw_inclinations(ax: Axes, inc: FloatArray) -> None:
    degrees = np.degrees(inc)
    bins = np.arange(0.0, max(60.0, degrees.max()) + 2.0, 2.0).tolist()
    ax.hist(degrees, bins=bins, color=style.SKY_BLUE, edgecolor=style.BLACK, linewidth=0.3)
    middle = float(np.median(degrees))
    label = f"median {middle:.1f} deg"
    ax.axvline(middle, color=style.BLACK, linestyle="--", linewidth=1.0, label=label)
    ax.legend(loc="upper right", frameon=False)
    style.dress(ax, yscale="log", xlabel="inclination $i$ [deg]", ylabel="objects per 2 deg")
