"""Intervals: whether they hold, how wide they are, and what they look like on single objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from astropy.time import Time

from neoranging.exceptions import EvaluationError
from neoranging.plotting import style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from neoranging.lab.sets.schema import ArcTable

    Coverage = Mapping[str, pd.DataFrame]


@style.print_size()
def plot_reliability(coverage: Coverage, *, stratum: str = "answered") -> Figure:
    """Draw how often intervals hold the truth against how often they claim to.

    Parameters
    ----------
    coverage : mapping of str to DataFrame
        By method, `neoranging.lab.study.calibration.coverage`.
    stratum : {"answered", "all"}
        Which rows: of the arcs with an answer, or of all.

    Returns
    -------
    matplotlib.figure.Figure
        Filled marks count arcs, hollow ones objects; the lower panel shows the differences.

    Raises
    ------
    EvaluationError
        If there are no such rows.
    """
    fig = style.new_figure(style.ONE_COLUMN, 4.2)
    top, below = fig.subplots(2, 1, sharex=True, height_ratios=(2.0, 1.0))
    top.plot([0, 100], [0, 100], color=style.BLACK, linewidth=0.8)
    below.axhline(0.0, color=style.BLACK, linewidth=0.8)
    for method, mark in style.marks(list(coverage)).items():
        rows = _of_stratum(coverage, method, stratum)
        label = f"{method}, {style.count(rows['n_arcs'].iloc[0])}"
        level = 100.0 * rows["level"]
        for column, face, line in (("per_arc", mark.color, "-"), ("per_object", "white", ":")):
            inside = 100.0 * rows[column]
            for ax, values in ((top, inside), (below, inside - level)):
                ax.plot(
                    level,
                    values,
                    marker=mark.marker,
                    markersize=4,
                    markerfacecolor=face,
                    color=mark.color,
                    linestyle=line,
                    linewidth=0.9,
                    label=label if column == "per_arc" else None,
                )
    for face, word in ((style.BLACK, "filled: per arc"), ("white", "hollow: per object")):
        top.plot([], [], "o", color=style.BLACK, markersize=4, markerfacecolor=face, label=word)
    style.dress(top, xlim=(0, 100), ylim=(0, 100), ylabel="truth within [%]")
    style.dress(below, xlabel="level of the interval [%]", ylabel="difference [%]")
    top.legend(loc="upper left", frameon=False)
    return fig


def _of_stratum(coverage: Coverage, method: str, stratum: str) -> pd.DataFrame:
    rows = coverage[method][coverage[method]["stratum"] == stratum]
    if rows.empty:
        raise EvaluationError(f"no rows of the stratum {stratum!r} for {method!r}")
    return rows


@style.print_size()
def plot_half_widths(coverage: Coverage, *, level: float = 0.68) -> Figure:
    """Draw half-widths of intervals by decile of proper motion, in au and as a factor.

    Parameters
    ----------
    coverage : mapping of str to DataFrame
        By method, `neoranging.lab.study.calibration.coverage`.
    level : float
        Confidence level, one of those of the rows.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    EvaluationError
        If there are no rows of that level.
    """
    fig = style.new_figure(style.TWO_COLUMNS, 2.6)
    in_au, as_factor = axes = fig.subplots(1, 2)
    for method, mark in style.marks(list(coverage)).items():
        deciles = _of_stratum(coverage, method, "eta decile")
        rows = deciles[deciles["level"] == level]
        if rows.empty:
            levels = ", ".join(f"{x:g}" for x in deciles["level"].unique())
            raise EvaluationError(f"no rows of level {level:g}; {method!r} has {levels}")
        look = {"color": mark.color, "linestyle": mark.line, "marker": mark.marker}
        decile = rows["bin"].astype(int)
        in_au.plot(decile, 0.5 * rows["median_width_au"], markersize=4, label=method, **look)
        as_factor.plot(decile, np.sqrt(rows["median_ratio"]), markersize=4, label=method, **look)
    for ax, unit in zip(axes, ("au", "factor"), strict=True):
        ax.set(yscale="log", xticks=range(1, 11))
        label = f"decile of {style.ETA}, slow to fast"
        style.dress(ax, xlabel=label, ylabel=f"median half-width [{unit}]")
    in_au.legend(title=f"{100 * level:g} % intervals", loc="best")
    return fig


@style.print_size()
def plot_unseen(
    table: ArcTable,
    scored: Sequence[pd.DataFrame],
    objects: Sequence[str],
    *,
    n_arcs: int = 16,
) -> Figure:
    """Draw estimates with their intervals over the arcs of single objects.

    Parameters
    ----------
    table : ArcTable
        M arcs with ``designation`` and ``t2_mjd_tdb``; those of the split ``unseen``, say.
    scored : sequence of DataFrame
        Scores of methods on the same arcs, with ``low`` and ``high`` where they have intervals.
    objects : sequence of str
        Their designations.
    n_arcs : int
        Most arcs of an object that are drawn, evenly spread over its epochs; the title tells.

    Returns
    -------
    matplotlib.figure.Figure
        A panel for each object: the true range and the estimates of its arcs in the order of their
        epochs; arcs that a method does not answer are without its mark.

    Raises
    ------
    EvaluationError
        If an object has no arc, or the methods are scored on other arcs than the table's.
    """
    if any(len(scores) != len(table) for scores in scored):
        raise EvaluationError(f"the table has {len(table)} arcs, the methods were scored on others")
    n_columns = min(3, len(objects))
    n_lines = -(-len(objects) // n_columns)
    fig = style.new_figure(style.TWO_COLUMNS, 0.5 + 1.9 * n_lines)
    axes = fig.subplots(n_lines, n_columns, squeeze=False)
    for ax, name in zip(axes.flat, objects, strict=False):
        _draw_object(ax, name, table, scored, n_arcs)
    for ax in axes.flat[len(objects) :]:
        ax.set_axis_off()
    for ax in axes[:, 0]:
        ax.set_ylabel(f"{style.RHO} [au]")
    for ax in axes[-1]:
        ax.set_xlabel("arcs in order of epoch")
    style.figure_legend(fig, axes[0, 0], "outside upper center")
    return fig


def _draw_object(
    ax: Axes, name: str, table: ArcTable, scored: Sequence[pd.DataFrame], n_arcs: int
) -> None:
    rows = np.flatnonzero(table["designation"] == name)
    if not len(rows):
        raise EvaluationError(f"{name!r} has no arc in the table")
    rows = rows[np.argsort(table["t2_mjd_tdb"][rows], kind="stable")]
    some = rows[np.unique(np.linspace(0, len(rows) - 1, n_arcs).round().astype(int))]
    place = np.arange(len(some))
    true = scored[0].rho_true.to_numpy()[some]
    ax.plot(place, true, color=style.BLACK, linewidth=1.1, label="truth", zorder=4)
    marks = style.marks([scores.attrs["method"] for scores in scored])
    for k, scores in enumerate(scored):
        method = scores.attrs["method"]
        rho, low, high = scores[["rho", "low", "high"]].to_numpy()[some].T
        ax.errorbar(
            place + 0.22 * (k - 0.5 * (len(scored) - 1)),
            rho,
            yerr=None if scores.low.isna().all() else np.maximum([rho - low, high - rho], 0.0),
            linestyle="none",
            marker=marks[method].marker,
            markersize=3.2,
            color=marks[method].color,
            elinewidth=0.8,
            capsize=1.5,
            label=method,
        )
    ends = [0, len(some) - 1] if len(some) > 1 else [0]
    dates = Time(table["t2_mjd_tdb"][some[ends]], format="mjd", scale="tdb").utc
    ax.set_xticks(ends, dates.strftime("%Y-%m-%d").tolist())
    ax.set_xticks(place, minor=True)
    for tick, end in zip(ax.get_xticklabels(), ends, strict=True):
        tick.set_horizontalalignment("right" if end else "left")
    of_all = "" if len(some) == len(rows) else f" of {len(rows):,}"
    style.dress(ax, yscale="log", title=f"{name}: {len(some)}{of_all} arcs")
