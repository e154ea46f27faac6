"""Estimates against the truth: densities for each method, and the populations beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from neoranging.exceptions import EvaluationError
from neoranging.plotting import study_style, style

if TYPE_CHECKING:
    import numpy.typing as npt
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from neoranging.evaluation.scores import ScoredArcs

    Array = npt.NDArray[np.float64]

__all__ = ["draw_row", "plot_estimates"]


class Quantity(NamedTuple):
    """What is estimated."""

    name: str
    symbol: str
    unit: str
    log: bool


RHO: Final = Quantity("rho", study_style.RHO, "au", True)
RHO_DOT: Final = Quantity("rho_dot", study_style.RHO_DOT, "au/d", False)

_CELLS: Final = 42
"""Of a density along an axis."""


def plot_estimates(scored: Sequence[ScoredArcs], fig: Figure | None = None) -> Figure:
    """Draw the estimates of methods against the truth, and the distributions of both.

    Parameters
    ----------
    scored : sequence of ScoredArcs
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
    width = max(study_style.TWO_COLUMNS, 1.35 * (len(scored) + 1))
    with study_style.print_size():
        fig = study_style.figure_or_new(fig, width, 4.3)
        lines = fig.subfigures(2, 1)
        for line, quantity in zip(lines, (RHO, RHO_DOT), strict=True):
            draw_row(line, scored, quantity)
    return fig


def draw_row(
    fig: Any,
    scored: Sequence[ScoredArcs],
    quantity: Quantity,
    *,
    titles: Mapping[str, str] | None = None,
) -> list[Axes]:
    """Draw a row: the density of each method, then the distributions.

    Parameters
    ----------
    fig : matplotlib.figure.Figure or SubFigure
    scored : sequence of ScoredArcs
    quantity : Quantity
        `RHO` or `RHO_DOT`.
    titles : mapping, optional
        Heading of each method; its label and arcs by default.
    """
    view = _view(scored, quantity)
    n = len(scored)
    axes = fig.subplots(1, n + 1, sharey=True, width_ratios=[*[1.0] * n, 0.8])
    cells = None
    for ax, each in zip(axes, scored, strict=False):
        shown = _density(ax, each, quantity, view) or cells
        cells = shown
        heading = study_style.count(int(each.answered.sum()))
        ax.set_title((titles or {}).get(each.method, f"{each.method}, {heading}"))
    axes[0].set_ylabel(f"estimated {quantity.symbol} [{quantity.unit}]")
    _populations(axes[-1], scored, quantity, view)
    if cells is not None:
        bar = fig.colorbar(cells, ax=axes[:-1].tolist(), pad=0.01, aspect=25, fraction=0.05)
        bar.set_label("arcs per cell", fontsize=study_style.SMALL)
        bar.ax.tick_params(labelsize=study_style.SMALL)
    return list(axes)


def _columns(scored: ScoredArcs, quantity: Quantity) -> tuple[Array, Array]:
    """Truth and estimate of the answered arcs; of positive numbers where the axis needs them."""
    truth, found = getattr(scored, f"{quantity.name}_true"), getattr(scored, quantity.name)
    known = np.isfinite(found) & ((found > 0.0) | (not quantity.log))
    return truth[known], found[known]


def _view(scored: Sequence[ScoredArcs], quantity: Quantity) -> tuple[Array, Array]:
    """Limits of both axes: those of the truth for rates, which classical methods exceed at will."""
    truth = np.concatenate([_columns(each, quantity)[0] for each in scored])
    found = np.concatenate([_columns(each, quantity)[1] for each in scored])
    if quantity.log:
        both = [10.0 ** np.array(study_style.limits(np.log10(x), 0.001)) for x in (truth, found)]
        return both[0], np.array([min(both[0][0], both[1][0]), max(both[0][1], both[1][1])])
    across = np.array(study_style.limits(truth, 0.001))
    return across, 1.4 * across


def _density(ax: Axes, scored: ScoredArcs, quantity: Quantity, view: tuple[Array, Array]) -> Any:
    """Cells of one method; None where it has no answer in view."""
    truth, found = _columns(scored, quantity)
    across, upward = view
    inside = (upward[0] <= found) & (found <= upward[1])
    scale = "log" if quantity.log else "linear"
    ax.set(xscale=scale, yscale=scale, xlim=across, ylim=upward)
    extent = np.concatenate([np.log10(across), np.log10(upward)] if quantity.log else view)
    shown = None
    if inside.any():
        shown = ax.hexbin(
            truth[inside],
            found[inside],
            gridsize=_CELLS,
            extent=tuple(extent),
            xscale=scale,
            yscale=scale,
            bins="log",
            mincnt=1,
            cmap=study_style.DENSITY,
            linewidths=0.1,
            rasterized=True,
        )
    ax.plot(across, across, color=style.BLACK, linewidth=0.8, linestyle="--")
    out = int((~inside).sum())
    if out:
        share = f"{100 * out / len(found):.2g} % out of view"
        ax.annotate(share, (0.04, 0.03), xycoords="axes fraction", fontsize=study_style.SMALL - 1)
    ax.set(xlim=across, ylim=upward)
    ax.set_xlabel(f"true {quantity.symbol} [{quantity.unit}]")
    study_style.dress(ax)
    return shown


def _populations(
    ax: Axes, scored: Sequence[ScoredArcs], quantity: Quantity, view: tuple[Array, Array]
) -> None:
    """Distributions along the axis that the densities share."""
    edges = (np.geomspace if quantity.log else np.linspace)(*view[1], 60)
    truth = _columns(scored[0], quantity)[0]
    options: dict[str, Any] = {"bins": edges, "orientation": "horizontal"}
    ax.hist(truth, weights=_share(truth), color=study_style.TRUTH, label="truth", **options)
    for method, mark in study_style.marks([each.method for each in scored]).items():
        found = _columns(next(each for each in scored if each.method == method), quantity)[1]
        ax.hist(
            found,
            weights=_share(found),
            histtype="step",
            color=mark.color,
            linestyle=mark.line,
            linewidth=1.1,
            label=method,
            **options,
        )
    ax.set_xlabel("share of arcs [%]")
    ax.legend(loc="best", frameon=False, handlelength=1.6)
    study_style.dress(ax)


def _share(values: Array) -> Array:
    return np.full(len(values), 100.0 / max(len(values), 1))
