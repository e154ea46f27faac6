"""Colours, sizes, marks and axes that all figures share.

Meaning never hangs on colour alone: every mark has its own shape, line style or hatch as well, so
figures survive grey print. Colours are those of Okabe & Ito (2008), told apart by colour-blind
readers too. A method has its own colour, marker, line and hatch, the same in every figure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from neoranging.exceptions import EvaluationError, extra

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLACK: Final = "#000000"
ORANGE: Final = "#E69F00"
SKY_BLUE: Final = "#56B4E9"
GREEN: Final = "#009E73"
BLUE: Final = "#0072B2"
VERMILION: Final = "#D55E00"
PURPLE: Final = "#CC79A7"
GREY: Final = "#7F7F7F"
LIGHT_GREY: Final = "#BDBDBD"

RHO: Final = r"$\rho$"
RHO_DOT: Final = r"$\dot\rho$"
ETA: Final = r"$\eta$"
D_SH: Final = r"$D_\mathrm{SH}$"

ONE_COLUMN: Final = 3.5
TWO_COLUMNS: Final = 7.2
"""Widths of figures for print [inch]."""

TEXT: Final = 8.0
SMALL: Final = 7.0
"""Sizes of text in print [point], at the width of one or two columns of a journal."""

_PRINT: Final = {
    "font.size": TEXT,
    "axes.titlesize": TEXT,
    "axes.labelsize": TEXT,
    "legend.fontsize": SMALL,
    "axes.linewidth": 0.6,
    "hatch.linewidth": 0.5,
    "savefig.dpi": 300,
}


def pyplot() -> Any:
    """``matplotlib.pyplot``, imported only when something is drawn.

    Raises
    ------
    MissingDependencyError
        If matplotlib is not installed.
    """
    with extra("plot", "plots"):
        import matplotlib.pyplot as plt
    return plt


# ---------------------------------------------------------------------- figures of one tracklet


def axes_or_new(ax: Axes | None) -> Axes:
    """The axes given, or those of a new figure."""
    if ax is not None:
        return ax
    _, new = pyplot().subplots(figsize=(7.0, 4.6), layout="constrained")
    return new


def range_plane(ax: Axes, *, log: bool) -> None:
    """Label axes as range against range-rate, the range logarithmic if asked for."""
    if log:
        ax.set_xscale("log")
    ax.set(xlabel="range [au]", ylabel="range-rate [au/d]")
    grid(ax)
    ax.set_axisbelow(True)


def grid(ax: Axes, linewidth: float = 0.5) -> None:
    """Draw a faint grid."""
    ax.grid(visible=True, color=GREY, alpha=0.25, linewidth=linewidth)


def legend(ax: Axes, *, below: bool) -> None:
    """Put the legend below the axes, where it hides nothing, or inside where there is most room.

    Below needs a figure whose layout makes room for it: one of `axes_or_new`.
    """
    if below:
        columns = min(3, len(ax.get_legend_handles_labels()[1]))
        anchor = (0.5, -0.14)
        ax.legend(loc="upper center", bbox_to_anchor=anchor, ncols=columns, frameon=False)
    else:
        ax.legend(loc="best")


# ---------------------------------------------------------------------- figures for print


class Mark(NamedTuple):
    """Appearance of a method."""

    color: str
    marker: str
    line: Any
    hatch: str


_MARKS: Final = {
    "gauss": Mark(VERMILION, "s", (0, (5, 1.5)), "////"),
    "laplace": Mark(ORANGE, "D", (0, (1, 1)), "...."),
    "mlp": Mark(BLUE, "o", "solid", ""),
    "pinn": Mark(GREEN, "^", (0, (5, 1, 1, 1)), "\\\\\\\\"),
}
_MORE_MARKS: Final = (
    Mark(PURPLE, "v", (0, (3, 1, 1, 1, 1, 1)), "xxxx"),
    Mark(SKY_BLUE, "P", (0, (8, 1.5)), "++++"),
    Mark(BLACK, "X", (0, (2, 2)), "oooo"),
)


def marks(methods: Sequence[str]) -> dict[str, Mark]:
    """Mark of each method: one of the package keeps its own in every figure.

    Parameters
    ----------
    methods : sequence of str
        Labels; ``"gauss (geocentre)"`` counts as Gauss's method unless that is there as well.
    """
    assigned: dict[str, Mark] = {}
    free = [*_MORE_MARKS, *_MARKS.values()]
    for method in sorted(dict.fromkeys(methods), key=len):
        own = next((mark for name, mark in _MARKS.items() if method.lower().startswith(name)), None)
        mark = own if own in free else next(iter(free), _MORE_MARKS[-1])
        assigned[method] = mark
        if mark in free:
            free.remove(mark)
    return {method: assigned[method] for method in methods}


@contextmanager
def print_size() -> Iterator[None]:
    """Texts and lines as they should be in print, within the context or the decorated function."""
    with pyplot().rc_context(_PRINT):
        yield


def new_figure(width: float, height: float) -> Figure:
    """Figure of that size [inch] which lays itself out."""
    figure: Figure = pyplot().figure(figsize=(width, height), layout="constrained")
    return figure


def dress(ax: Axes, *, has_grid: bool = True, **properties: Any) -> Axes:
    """Set properties of axes, and give them small ticks and a faint grid behind everything."""
    ax.set(**properties)
    ax.tick_params(labelsize=SMALL, width=0.6, length=2.5)
    ax.tick_params(which="minor", width=0.4, length=1.5, labelsize=SMALL)
    if has_grid:
        grid(ax, linewidth=0.4)
    ax.set_axisbelow(True)
    return ax


def density(
    ax: Axes,
    points: tuple[Any, Any],
    view: tuple[tuple[float, float], tuple[float, float]],
    *,
    scale: str = "linear",
    gridsize: Any = 42,
) -> Any:
    """Draw the logarithmic density of points: cells that darken evenly from few to many.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
    points : tuple of 2 ndarray, shape (M,)
    view : tuple of 2 tuple
        Limits in x and in y.
    scale : {"linear", "log"}
        Of both axes.
    gridsize : int or tuple of int
        Number of cells.
    """
    from matplotlib.colors import ListedColormap

    extent = np.concatenate(view)
    axes: Any = ax  # the scale is a text, not one of two literals
    return axes.hexbin(
        *points,
        extent=tuple(np.log10(extent) if scale == "log" else extent),
        xscale=scale,
        yscale=scale,
        gridsize=gridsize,
        bins="log",
        mincnt=1,
        linewidths=0.1,
        cmap=ListedColormap(pyplot().get_cmap("Blues")(np.linspace(0.22, 1.0, 256))),
        rasterized=True,
    )


def diagonal(ax: Axes, ends: tuple[float, float]) -> None:
    """Draw the line on which both axes are equal."""
    ax.plot(ends, ends, color=BLACK, linewidth=0.8, linestyle="--")


def note(ax: Axes, text: str, place: tuple[float, float] = (0.04, 0.04)) -> None:
    """Write on a light ground, at a place in fractions of the axes."""
    ground = {"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.8}
    ax.annotate(text, place, xycoords="axes fraction", fontsize=SMALL, bbox=ground, zorder=8)


def figure_legend(fig: Any, ax: Axes, loc: str, **options: Any) -> None:
    """Explain the marks of some axes in one line outside all of them."""
    handles, labels = ax.get_legend_handles_labels()
    fig.legend(handles, labels, loc=loc, ncols=len(labels), frameon=False, **options)


def count(n: int, noun: str = "arcs") -> str:
    """``46,716 arcs``."""
    return f"{n:,} {noun}"


def limits(values: Any, share: float = 0.002, margin: float = 0.06) -> tuple[float, float]:
    """Limits of an axis that leave out a share of finite values on either side.

    Raises
    ------
    EvaluationError
        If none is finite.
    """
    finite = np.asarray(values)[np.isfinite(values)]
    if not len(finite):
        raise EvaluationError("there is no number to draw: does the method answer at all?")
    low, high = np.quantile(finite, [share, 1.0 - share])
    step = margin * (high - low) or 0.5 * abs(high) or 0.5
    return float(low - step), float(high + step)


def log_limits(values: Any, share: float = 0.001) -> tuple[float, float]:
    """Limits, as `limits` gives them, of positive values on a logarithmic axis."""
    numbers = np.asarray(values)
    low, high = limits(np.log10(numbers[numbers > 0.0]), share)
    return float(10.0**low), float(10.0**high)
