"""Colours, labels and axes that the figures share.

Meaning never hangs on colour alone: every mark has its own shape, line style or hatch as well, so
figures survive grey print. Colours are those of Okabe & Ito (2008), told apart by colour-blind
readers too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from neoranging.exceptions import MissingDependencyError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BLACK: Final = "#000000"
ORANGE: Final = "#E69F00"
SKY_BLUE: Final = "#56B4E9"
GREEN: Final = "#009E73"
BLUE: Final = "#0072B2"
VERMILION: Final = "#D55E00"
GREY: Final = "#7F7F7F"

RANGE_LABEL: Final = "range [au]"
RANGE_RATE_LABEL: Final = "range-rate [au/d]"


def pyplot() -> Any:
    """``matplotlib.pyplot``, imported only when something is drawn.

    Raises
    ------
    MissingDependencyError
        If matplotlib is not installed.
    """
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise MissingDependencyError.of("plots", "matplotlib", "plot") from error
    return plt


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
    ax.set_xlabel(RANGE_LABEL)
    ax.set_ylabel(RANGE_RATE_LABEL)
    ax.grid(visible=True, color=GREY, alpha=0.25, linewidth=0.5)
    ax.set_axisbelow(True)


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
