"""Sizes, marks and words that the figures of a study share.

Figures are made for print: text is 7 to 8 points at the width of one or two columns of a journal.
Each method has its own colour, marker, line and hatch, the same in every figure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from neoranging.exceptions import EvaluationError
from neoranging.plotting import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ONE_COLUMN: Final = 3.5
TWO_COLUMNS: Final = 7.2
"""Widths of figures [inch]."""

TEXT: Final = 8.0
SMALL: Final = 7.0
"""Sizes of text [point]."""

TRUTH: Final = "#BDBDBD"
"""Filling of what is true of a population."""

RHO: Final = r"$\rho$"
RHO_DOT: Final = r"$\dot\rho$"
ETA: Final = r"$\eta$"
D_SH: Final = r"$D_\mathrm{SH}$"

_SIZES: Final = {
    "font.size": TEXT,
    "axes.titlesize": TEXT,
    "axes.labelsize": TEXT,
    "legend.fontsize": SMALL,
    "axes.linewidth": 0.6,
    "hatch.linewidth": 0.5,
    "savefig.dpi": 300,
}


class Mark(NamedTuple):
    """How a method looks."""

    color: str
    marker: str
    line: Any
    hatch: str


_KNOWN: Final = {
    "gauss": Mark(style.VERMILION, "s", (0, (5, 1.5)), "////"),
    "laplace": Mark(style.ORANGE, "D", (0, (1, 1)), "...."),
    "mlp": Mark(style.BLUE, "o", "solid", ""),
    "pinn": Mark(style.GREEN, "^", (0, (5, 1, 1, 1)), "\\\\\\\\"),
}
_MORE: Final = (
    Mark("#CC79A7", "v", (0, (3, 1, 1, 1, 1, 1)), "xxxx"),
    Mark(style.SKY_BLUE, "P", (0, (8, 1.5)), "++++"),
    Mark(style.BLACK, "X", (0, (2, 2)), "oooo"),
)


def marks(methods: Sequence[str]) -> dict[str, Mark]:
    """Mark of each method: a known one keeps its own in every figure.

    Parameters
    ----------
    methods : sequence of str
        Labels; ``"gauss (geocentre)"`` counts as Gauss's method unless that is there as well.
    """
    found: dict[str, Mark] = {}
    free = [*_MORE, *_KNOWN.values()]
    for method in sorted(dict.fromkeys(methods), key=len):
        own = next((mark for name, mark in _KNOWN.items() if method.lower().startswith(name)), None)
        mark = own if own in free else next(iter(free), _MORE[-1])
        found[method] = mark
        if mark in free:
            free.remove(mark)
    return {method: found[method] for method in methods}


@contextmanager
def print_size() -> Iterator[Any]:
    """``matplotlib.pyplot`` with texts and lines as they should be in print."""
    plt = style.pyplot()
    with plt.rc_context(_SIZES):
        yield plt


def figure_or_new(fig: Figure | None, width: float, height: float) -> Figure:
    """The figure given, or a new one of that size [inch] which lays itself out."""
    if fig is not None:
        return fig
    made: Figure = style.pyplot().figure(figsize=(width, height), layout="constrained")
    return made


def dress(ax: Axes, *, grid: bool = True) -> Axes:
    """Give axes small ticks and a faint grid behind everything."""
    ax.tick_params(labelsize=SMALL, width=0.6, length=2.5)
    ax.tick_params(which="minor", width=0.4, length=1.5, labelsize=SMALL)
    if grid:
        ax.grid(visible=True, color=style.GREY, alpha=0.25, linewidth=0.4)
    ax.set_axisbelow(True)
    return ax


def density(ax: Axes, x: Any, y: Any, **options: Any) -> Any:
    """Draw the logarithmic density of points: cells that darken evenly from few to many.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
    x, y : ndarray, shape (M,)
    **options
        For ``Axes.hexbin``.
    """
    from matplotlib.colors import ListedColormap

    shades = style.pyplot().get_cmap("Blues")(np.linspace(0.22, 1.0, 256))
    defaults: dict[str, Any] = {"gridsize": 42, "bins": "log", "mincnt": 1, "linewidths": 0.1}
    colors = ListedColormap(shades)
    return ax.hexbin(x, y, cmap=colors, rasterized=True, **defaults | options)


def note(ax: Axes, text: str, place: tuple[float, float] = (0.04, 0.04), **options: Any) -> None:
    """Write on a light ground, at a place in fractions of the axes."""
    ax.annotate(
        text,
        place,
        xycoords="axes fraction",
        fontsize=SMALL,
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.8},
        zorder=8,
        **options,
    )


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
    known = np.asarray(values)[np.isfinite(values)]
    if not len(known):
        raise EvaluationError("there is no number to draw: does the method answer at all?")
    low, high = np.quantile(known, [share, 1.0 - share])
    step = margin * (high - low) or 0.5 * abs(high) or 0.5
    return float(low - step), float(high + step)


def log_limits(values: Any, share: float = 0.001) -> tuple[float, float]:
    """The same of positive values on a logarithmic axis."""
    known = np.asarray(values)
    low, high = limits(np.log10(known[known > 0.0]), share)
    return float(10.0**low), float(10.0**high)
