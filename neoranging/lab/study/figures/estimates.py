"""Estimates against the truth: densities for each method, and the populations beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from neoranging.exceptions import EvaluationError
from neoranging.plotting import style
from neoranging.typing import FloatArray

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    Limits = tuple[float, float]

_LEGEND, _HANDLE = 96, 9  # characters that fit beside each other, and what a line takes of them

BINS: Final = 60
"""Edges of the histograms of a distribution."""


class Quantity(NamedTuple):
    """A quantity that methods estimate."""

    name: str
    symbol: str
    unit: str
    scale: str


RHO: Final = Quantity("rho", style.RHO, "au", "log")
RHO_DOT: Final = Quantity("rho_dot", style.RHO_DOT, "au/d", "linear")


@style.print_size()
def plot_estimates(scored: Sequence[pd.DataFrame]) -> Figure:
    """Draw the estimates of methods against the truth, and the distributions of both.

    Parameters
    ----------
    scored : sequence of DataFrame
        Scores of each method, on the same arcs.

    Returns
    -------
    matplotlib.figure.Figure
        Ranges above (logarithmic), range-rates below. A panel for each method has the density of
        its answers, the line of no error, and the share of answers out of view; the last one has
        the distributions.

    Raises
    ------
    EvaluationError
        If there is no method, or none that answers.
    """
    if not scored:
        raise EvaluationError("there is no method to draw: give at least one")
    methods = [scores.attrs["method"] for scores in scored]
    counts = [style.count(int(scores.answered.sum())) for scores in scored]
    fig = style.new_figure(width_of(len(scored)), 4.1)
    draw_rows(fig, scored, [f"{m}\n{n}" for m, n in zip(methods, counts, strict=True)])
    draw_legend(fig, dict(zip(methods, methods, strict=True)))
    return fig


def width_of(n_methods: int) -> float:
    """Width [inch] in which labels of that many methods side by side keep apart."""
    least = style.TWO_COLUMNS if n_methods > 1 else 1.4 * style.ONE_COLUMN
    return max(least, 1.45 * (n_methods + 1))


def draw_legend(fig: Any, labels: Mapping[str, str], title: str = "") -> None:
    """Explain the lines of the distributions, above everything.

    Parameters
    ----------
    fig : matplotlib.figure.Figure or SubFigure
    labels : mapping of str to str
        Name of each method in the legend.
    title : str
        Heading of the whole figure.
    """
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Any] = [Patch(facecolor=style.LIGHT_GREY, label="truth")]
    for method, mark in style.marks(list(labels)).items():
        handles.append(Line2D([], [], color=mark.color, linestyle=mark.line, label=labels[method]))
    longest = max(map(len, labels.values()))
    fig.legend(
        handles=handles,
        loc="outside upper center",
        ncols=min(len(handles), max(1, _LEGEND // (longest + _HANDLE))),
        frameon=False,
        handlelength=2.4,
        columnspacing=1.4,
        title=title,
        title_fontproperties={"weight": "bold", "size": style.TEXT},
    )


def draw_rows(fig: Any, scored: Sequence[pd.DataFrame], titles: Sequence[str]) -> Any:
    """Draw a row of ranges and one of range-rates: the methods, then the distributions.

    Parameters
    ----------
    fig : matplotlib.figure.Figure or SubFigure
    scored : sequence of DataFrame
    titles : sequence of str
        Headings of the methods.

    Returns
    -------
    ndarray of matplotlib.axes.Axes, shape (2, n + 1)
    """
    n = len(scored)
    widths = [*[1.0] * n, 0.75]
    panels = fig.subplots(2, n + 1, sharey="row", width_ratios=widths, squeeze=False)
    for axes, quantity in zip(panels, (RHO, RHO_DOT), strict=True):
        _draw_row(fig, axes, scored, quantity)
    for ax, title in zip(panels[0], titles, strict=False):
        ax.set_title(title)
    return panels


def _draw_row(fig: Any, axes: Any, scored: Sequence[pd.DataFrame], quantity: Quantity) -> None:
    from matplotlib.colors import LogNorm

    columns = [_columns(scores, quantity) for scores in scored]
    truth, estimates = (np.concatenate(parts) for parts in zip(*columns, strict=True))
    view = _view(truth, estimates, quantity)
    cells = [_density(ax, *xy, quantity, view) for ax, xy in zip(axes, columns, strict=False)]
    most = max(float(np.max([2.0, *panel.get_array()])) for panel in cells)
    for panel in cells:  # densities of a row count alike
        panel.set_norm(LogNorm(1.0, most))
    axes[0].set_ylabel(f"estimated {quantity.symbol} [{quantity.unit}]")
    bar = fig.colorbar(cells[0], ax=list(axes), pad=0.01, aspect=22, fraction=0.05)
    bar.set_label("arcs per cell", fontsize=style.SMALL)
    bar.ax.tick_params(labelsize=style.SMALL)

    spaced = np.geomspace if quantity.scale == "log" else np.linspace
    edges = spaced(*view[1], BINS)
    _distribution(axes[-1], columns[0][0], edges, fill=True, color=style.LIGHT_GREY)
    methods = [scores.attrs["method"] for scores in scored]
    marks = style.marks(methods)
    for method, (_, estimates) in zip(methods, columns, strict=True):
        look = {"color": marks[method].color, "linestyle": marks[method].line, "linewidth": 1.1}
        _distribution(axes[-1], estimates, edges, **look)
    axes[-1].set_xlim(left=0.0)
    style.dress(axes[-1], xlabel="arcs per bin [%]")


def _columns(scored: pd.DataFrame, quantity: Quantity) -> tuple[FloatArray, FloatArray]:
    """Truth and estimate of the answered arcs; of positive numbers where the axis needs them."""
    truth, estimate = (scored[name].to_numpy() for name in (f"{quantity.name}_true", quantity.name))
    drawable = np.isfinite(estimate) & ((estimate > 0.0) | (quantity.scale != "log"))
    return truth[drawable], estimate[drawable]


def _view(truth: FloatArray, estimates: FloatArray, quantity: Quantity) -> tuple[Limits, Limits]:
    """Limits of both axes; rates, which classical methods exceed at will, by the truth alone."""
    if quantity.scale != "log":
        low, high = style.limits(truth, 0.001)
        return (low, high), (1.4 * low, 1.4 * high)
    across, upward = style.log_limits(truth), style.log_limits(estimates)
    return across, (min(across[0], upward[0]), max(across[1], upward[1]))


def _density(
    ax: Axes,
    truth: FloatArray,
    estimates: FloatArray,
    quantity: Quantity,
    view: tuple[Limits, Limits],
) -> Any:
    """Cells of one method."""
    across, upward = view
    inside = (upward[0] <= estimates) & (estimates <= upward[1])
    ax.set(xscale=quantity.scale, yscale=quantity.scale)
    if quantity.scale != "log":
        ax.locator_params(axis="x", nbins=5)  # or their labels run into one another
    points = truth[inside], estimates[inside]
    cells = style.density(ax, points, view, scale=quantity.scale)
    style.diagonal(ax, across)
    if not inside.all():
        style.note(ax, f"{100 * np.mean(~inside):.2g} %\nout of view")
    label = f"true {quantity.symbol} [{quantity.unit}]"
    style.dress(ax, xlim=across, ylim=upward, xlabel=label)
    return cells


def _distribution(ax: Axes, values: FloatArray, edges: FloatArray, **look: Any) -> None:
    shares = 100.0 * np.histogram(values, edges)[0] / max(len(values), 1)
    ax.stairs(shares, edges, orientation="horizontal", **look)
