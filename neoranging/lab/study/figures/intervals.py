"""Intervals: whether they hold, how wide they are, and what they look like on single objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from astropy.time import Time

from neoranging.exceptions import EvaluationError
from neoranging.lab.study.figures import style as study_style
from neoranging.plotting import style
from neoranging.typing import FloatArray, IntArray, StrArray

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from neoranging.lab.sets.schema import ArcTable


Coverage = Mapping[str, Sequence[Mapping[str, Any]]]
"""Rows of ``CrossConformal.coverage()`` by the label of the method."""

_FEW: Final = 4
"""Arcs that an object should have to be drawn."""


def plot_reliability(
    coverage: Coverage, fig: Figure | None = None, *, stratum: str = "answered"
) -> Figure:
    """Draw how often intervals hold the truth against how often they claim to.

    Parameters
    ----------
    coverage : mapping of str to sequence of mapping
        By method, rows of ``neoranging.lab.study.calibration.CrossConformal.coverage``.
    fig : matplotlib.figure.Figure, optional
        Where to draw; a new one by default.
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
    MissingDependencyError
        If matplotlib is not installed.
    """
    with study_style.print_size():
        fig = study_style.figure_or_new(fig, study_style.ONE_COLUMN, 4.2)
        top, below = fig.subplots(2, 1, sharex=True, height_ratios=(2.0, 1.0))
        top.plot([0, 100], [0, 100], color=style.BLACK, linewidth=0.8)
        below.axhline(0.0, color=style.BLACK, linewidth=0.8)
        for method, mark in study_style.marks(list(coverage)).items():
            rows = _of_stratum(coverage, method, stratum)
            _reliability(
                top, below, rows, f"{method}, {study_style.count(rows[0]['n_arcs'])}", mark
            )
        for face, word in ((style.BLACK, "filled: per arc"), ("white", "hollow: per object")):
            top.plot([], [], "o", color=style.BLACK, markersize=4, markerfacecolor=face, label=word)
        top.set(xlim=(0, 100), ylim=(0, 100))
        top.set_ylabel("truth within [%]")
        top.legend(loc="upper left", frameon=False)
        below.set_ylabel("difference [%]")
        below.set_xlabel("level of the interval [%]")
        for ax in (top, below):
            study_style.dress(ax)
    return fig


def _of_stratum(coverage: Coverage, method: str, stratum: str) -> list[Mapping[str, Any]]:
    rows = [row for row in coverage[method] if row["stratum"] == stratum]
    if not rows:
        raise EvaluationError(f"no rows of the stratum {stratum!r} for {method!r}")
    return rows


def _reliability(top: Axes, below: Axes, rows: Any, label: str, mark: Any) -> None:
    level = 100.0 * np.array([row["level"] for row in rows])
    for key, face, line in (("per_arc", mark.color, "-"), ("per_object", "white", ":")):
        found = 100.0 * np.array([row[key] for row in rows])
        named = label if key == "per_arc" else None
        for ax, values in ((top, found), (below, found - level)):
            ax.plot(
                level,
                values,
                marker=mark.marker,
                markersize=4,
                markerfacecolor=face,
                color=mark.color,
                linestyle=line,
                linewidth=0.9,
                label=named,
            )


def plot_half_widths(
    coverage: Coverage, fig: Figure | None = None, *, level: float = 0.68
) -> Figure:
    """Draw half-widths of intervals by decile of proper motion, in au and as a factor.

    Parameters
    ----------
    coverage : mapping of str to sequence of mapping
        By method, rows of ``neoranging.lab.study.calibration.CrossConformal.coverage``.
    fig : matplotlib.figure.Figure, optional
        Where to draw; a new one by default.
    level : float
        Confidence level, one of those of the rows.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    EvaluationError
        If there are no rows of that level.
    MissingDependencyError
        If matplotlib is not installed.
    """
    with study_style.print_size():
        fig = study_style.figure_or_new(fig, study_style.TWO_COLUMNS, 2.6)
        axes = fig.subplots(1, 2)
        for method, mark in study_style.marks(list(coverage)).items():
            every = _of_stratum(coverage, method, "eta decile")
            rows = [row for row in every if row["level"] == level]
            if not rows:
                levels = ", ".join(f"{x:g}" for x in dict.fromkeys(row["level"] for row in every))
                raise EvaluationError(f"no rows of level {level:g}; {method!r} has {levels}")
            decile = [row["bin"] for row in rows]
            widths = (
                [0.5 * row["median_width_au"] for row in rows],
                [np.sqrt(row["median_ratio"]) for row in rows],
            )
            for ax, values in zip(axes, widths, strict=True):
                ax.plot(
                    decile,
                    values,
                    color=mark.color,
                    linestyle=mark.line,
                    marker=mark.marker,
                    markersize=4,
                    label=method,
                )
        for ax, name in zip(axes, ("half-width [au]", "half-width [factor]"), strict=True):
            ax.set(yscale="log", xticks=range(1, 11))
            ax.set_xlabel(f"decile of {study_style.ETA}, slow to fast")
            ax.set_ylabel(f"median {name}")
            study_style.dress(ax)
        axes[0].legend(title=f"{100 * level:g} % intervals", loc="best")
    return fig


def plot_unseen(
    table: ArcTable,
    scored: Sequence[pd.DataFrame],
    fig: Figure | None = None,
    *,
    objects: Sequence[str] | None = None,
    n_objects: int = 6,
    n_arcs: int = 16,
    seed: int = 0,
    level: float | None = None,
) -> Figure:
    """Draw estimates with their intervals over the arcs of single objects.

    Parameters
    ----------
    table : ArcTable
        M arcs with ``designation`` and ``t2_mjd_tdb``; those of the split ``unseen``, say.
    scored : sequence of DataFrame
        Methods on the same arcs, with ``low`` and ``high`` where they have intervals.
    fig : matplotlib.figure.Figure, optional
        Where to draw; a new one by default.
    objects : sequence of str, optional
        Designations; by default ``n_objects`` drawn at random of those with 4 arcs or more.
    n_objects : int
    n_arcs : int
        Most arcs of an object that are drawn, evenly spread over its epochs; the title tells.
    seed : int
        Of the draw.
    level : float, optional
        Confidence level of the intervals, for the legend.

    Returns
    -------
    matplotlib.figure.Figure
        A panel for each object: the true range and the estimates of its arcs in the order of their
        epochs; arcs that a method does not answer are without its mark.

    Raises
    ------
    EvaluationError
        If an object has no arc, or the methods are scored on other arcs than the table's.
    MissingDependencyError
        If matplotlib is not installed.
    """
    if any(len(each) != len(table) for each in scored):
        raise EvaluationError(f"the table has {len(table)} arcs, the methods were scored on others")
    chosen = list(objects) if objects is not None else _drawn(table["designation"], n_objects, seed)
    with study_style.print_size():
        n_columns = min(3, len(chosen))
        n_lines = -(-len(chosen) // n_columns)
        fig = study_style.figure_or_new(fig, study_style.TWO_COLUMNS, 0.5 + 1.9 * n_lines)
        axes = fig.subplots(n_lines, n_columns, squeeze=False)
        for ax, name in zip(axes.flat, chosen, strict=False):
            _draw_object(ax, name, table, scored, n_arcs)
        for ax in axes.flat[len(chosen) :]:
            ax.set_axis_off()
        for ax in axes[:, 0]:
            ax.set_ylabel(f"{study_style.RHO} [au]")
        for ax in axes[-1]:
            ax.set_xlabel("arcs in order of epoch")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        bars = "" if level is None else f"bars: {100 * level:g} % intervals"
        fig.legend(
            handles,
            labels,
            loc="outside upper center",
            ncols=len(labels),
            frameon=False,
            title=bars,
        )
    return fig


def _drawn(designations: StrArray, n: int, seed: int) -> list[str]:
    """Objects with some arcs, at random."""
    names, counts = np.unique(designations, return_counts=True)
    names = names[counts >= _FEW]
    if not len(names):
        raise EvaluationError(f"no object has {_FEW} arcs or more: name some in objects")
    return np.random.default_rng(seed).permutation(names)[:n].tolist()


def _draw_object(
    ax: Axes, name: str, table: ArcTable, scored: Sequence[pd.DataFrame], n_arcs: int
) -> None:
    rows = np.flatnonzero(table["designation"] == name)
    if not len(rows):
        raise EvaluationError(f"{name!r} has no arc in the table")
    rows = rows[np.argsort(table["t2_mjd_tdb"][rows], kind="stable")]
    some = rows[np.unique(np.linspace(0, len(rows) - 1, n_arcs).round().astype(int))]
    place = np.arange(len(some))
    ax.plot(
        place, scored[0].rho_true[some], color=style.BLACK, linewidth=1.1, label="truth", zorder=4
    )
    methods = [each.attrs["method"] for each in scored]
    marks = study_style.marks(methods)
    for k, each in enumerate(scored):
        mark = marks[each.attrs["method"]]
        shift = 0.22 * (k - 0.5 * (len(scored) - 1))
        ax.errorbar(
            place + shift,
            each.rho[some],
            yerr=_bars(each, some),
            linestyle="none",
            marker=mark.marker,
            markersize=3.2,
            color=mark.color,
            elinewidth=0.8,
            capsize=1.5,
            label=each.attrs["method"],
        )
    ax.set_yscale("log")
    ends = [0, len(some) - 1] if len(some) > 1 else [0]
    ax.set_xticks(ends, _dates(table["t2_mjd_tdb"][some[ends]]))
    ax.set_xticks(place, minor=True)
    for tick, end in zip(ax.get_xticklabels(), ends, strict=True):
        tick.set_horizontalalignment("right" if end else "left")
    of_all = "" if len(some) == len(rows) else f" of {len(rows):,}"
    ax.set_title(f"{name}: {len(some)}{of_all} arcs")
    study_style.dress(ax)


def _dates(mjd_tdb: FloatArray) -> list[str]:
    return Time(mjd_tdb, format="mjd", scale="tdb").utc.strftime("%Y-%m-%d").tolist()


def _bars(scored: pd.DataFrame, rows: IntArray) -> Any:
    """Lengths of error bars, shape (2, n); None without intervals."""
    if scored.low.isna().all():
        return None
    found = scored.rho[rows]
    return np.maximum([found - scored.low[rows], scored.high[rows] - found], 0.0)
