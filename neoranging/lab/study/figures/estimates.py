"""Estimates against the truth: densities for each method, and the populations beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from neoranging.exceptions import EvaluationError
from neoranging.lab.study.figures import style as study_style
from neoranging.plotting import style
from neoranging.typing import FloatArray

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    Array = FloatArray
    Limits = tuple[float, float]

_LEGEND, _HANDLE = 96, 9  # characters that fit beside each other, and what a line takes of them


class Quantity(NamedTuple):
    """What is estimated."""

    name: str
    symbol: str
    unit: str
    log: bool


RHO: Final = Quantity("rho", study_style.RHO, "au", True)
RHO_DOT: Final = Quantity("rho_dot", study_style.RHO_DOT, "au/d", False)

_BINS: Final = 60
"""Of a distribution."""


def plot_estimates(scored: Sequence[pd.DataFrame], fig: Figure | None = None) -> Figure:
    """Draw the estimates of methods against the truth, and the distributions of both.

    Parameters
    ----------
    scored : sequence of DataFrame
        One for each method, on the same arcs.
    fig : matplotlib.figure.Figure, optional
        Where to draw; a new one by default.

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
    MissingDependencyError
        If matplotlib is not installed.
    """
    if not scored:
        raise EvaluationError("there is no method to draw: give at least one")
    titles = [f"{s.attrs['method']}\n{study_style.count(int(s.answered.sum()))}" for s in scored]
    with study_style.print_size():
        fig = study_style.figure_or_new(fig, width_of(len(scored)), 4.1)
        lines = panels(fig, 2, len(scored))
        draw_row(fig, lines[0], scored, RHO, titles=titles)
        draw_row(fig, lines[1], scored, RHO_DOT)
        draw_legend(fig, {each.attrs["method"]: each.attrs["method"] for each in scored})
    return fig


def width_of(n_methods: int) -> float:
    """Width [inch] in which labels of that many methods side by side keep apart."""
    least = study_style.TWO_COLUMNS if n_methods > 1 else 1.4 * study_style.ONE_COLUMN
    return max(least, 1.45 * (n_methods + 1))


def panels(fig: Any, n_rows: int, n_methods: int) -> Any:
    """Axes of rows for `draw_row`, shape (n_rows, n_methods + 1)."""
    widths = [*[1.0] * n_methods, 0.75]
    return fig.subplots(n_rows, n_methods + 1, sharey="row", width_ratios=widths, squeeze=False)


def draw_legend(fig: Any, labels: Mapping[str, str], title: str = "") -> None:
    """Explain the lines of the distributions, above everything.

    Parameters
    ----------
    fig : matplotlib.figure.Figure or SubFigure
    labels : mapping of str to str
        What to call each method.
    title : str
        Heading of the whole figure.
    """
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Any] = [Patch(facecolor=study_style.TRUTH, label="truth")]
    for method, mark in study_style.marks(list(labels)).items():
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
        title_fontproperties={"weight": "bold", "size": study_style.TEXT},
    )


def draw_row(
    fig: Any,
    axes: Sequence[Axes],
    scored: Sequence[pd.DataFrame],
    quantity: Quantity,
    *,
    titles: Sequence[str] = (),
) -> None:
    """Draw a row: the density of each method, then the distributions.

    Parameters
    ----------
    fig : matplotlib.figure.Figure or SubFigure
    axes : sequence of matplotlib.axes.Axes
        One for each method, and one.
    scored : sequence of DataFrame
    quantity : Quantity
        `RHO` or `RHO_DOT`.
    titles : sequence of str
        Headings of the methods.
    """
    view = _view(scored, quantity)
    cells = [_density(ax, s, quantity, view) for ax, s in zip(axes, scored, strict=False)]
    _one_scale(cells)
    for ax, title in zip(axes, titles, strict=False):
        ax.set_title(title)
    axes[0].set_ylabel(f"estimated {quantity.symbol} [{quantity.unit}]")
    _populations(axes[-1], scored, quantity, view)
    bar = fig.colorbar(cells[0], ax=list(axes), pad=0.01, aspect=22, fraction=0.05)
    bar.set_label("arcs per cell", fontsize=study_style.SMALL)
    bar.ax.tick_params(labelsize=study_style.SMALL)


def _one_scale(cells: Sequence[Any]) -> None:
    """Let densities of a row count alike."""
    from matplotlib.colors import LogNorm

    most = max((float(np.max([2.0, *each.get_array()])) for each in cells), default=2.0)
    for each in cells:
        each.set_norm(LogNorm(1.0, most))


def _columns(scored: pd.DataFrame, quantity: Quantity) -> tuple[Array, Array]:
    """Truth and estimate of the answered arcs; of positive numbers where the axis needs them."""
    truth, found = (scored[name].to_numpy() for name in (f"{quantity.name}_true", quantity.name))
    known = np.isfinite(found) & ((found > 0.0) | (not quantity.log))
    return truth[known], found[known]


def _view(scored: Sequence[pd.DataFrame], quantity: Quantity) -> tuple[Limits, Limits]:
    """Limits of both axes; rates, which classical methods exceed at will, by the truth alone."""
    columns = [_columns(each, quantity) for each in scored]
    truth, found = (np.concatenate(each) for each in zip(*columns, strict=True))
    if not quantity.log:
        low, high = study_style.limits(truth, 0.001)
        return (low, high), (1.4 * low, 1.4 * high)
    across, upward = study_style.log_limits(truth), study_style.log_limits(found)
    return across, (min(across[0], upward[0]), max(across[1], upward[1]))


def _density(
    ax: Axes, scored: pd.DataFrame, quantity: Quantity, view: tuple[Limits, Limits]
) -> Any:
    """Cells of one method."""
    truth, found = _columns(scored, quantity)
    across, upward = view
    inside = (upward[0] <= found) & (found <= upward[1])
    scale = "log" if quantity.log else "linear"
    ax.set(xscale=scale, yscale=scale)
    if not quantity.log:
        ax.locator_params(axis="x", nbins=5)  # or their labels run into one another
    extent = np.concatenate([across, upward])
    cells = study_style.density(
        ax,
        truth[inside],
        found[inside],
        extent=tuple(np.log10(extent) if quantity.log else extent),
        xscale=scale,
        yscale=scale,
    )
    ax.plot(across, across, color=style.BLACK, linewidth=0.8, linestyle="--")
    out = int((~inside).sum())
    if out:
        study_style.note(ax, f"{100 * out / len(found):.2g} %\nout of view")
    ax.set(xlim=across, ylim=upward)
    ax.set_xlabel(f"true {quantity.symbol} [{quantity.unit}]")
    study_style.dress(ax)
    return cells


def _populations(
    ax: Axes, scored: Sequence[pd.DataFrame], quantity: Quantity, view: tuple[Limits, Limits]
) -> None:
    """Distributions along the axis that the densities share."""
    low, high = view[1]
    edges = np.geomspace(low, high, _BINS) if quantity.log else np.linspace(low, high, _BINS)
    truth, _ = _columns(scored[0], quantity)
    ax.stairs(
        _shares(truth, edges), edges, orientation="horizontal", fill=True, color=study_style.TRUTH
    )
    marks = study_style.marks([each.attrs["method"] for each in scored])
    for each in scored:
        mark = marks[each.attrs["method"]]
        ax.stairs(
            _shares(_columns(each, quantity)[1], edges),
            edges,
            orientation="horizontal",
            color=mark.color,
            linestyle=mark.line,
            linewidth=1.1,
        )
    ax.set_xlim(left=0.0)
    ax.set_xlabel("arcs per bin [%]")
    study_style.dress(ax)


def _shares(values: Array, edges: Array) -> Array:
    return np.asarray(100.0 * np.histogram(values, edges)[0] / max(len(values), 1))
