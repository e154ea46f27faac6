"""Figures of merit by stratum: bars along one axis, heat maps on the cross of two."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from neoranging.exceptions import EvaluationError
from neoranging.lab.study.strata import EVERY
from neoranging.plotting import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_AXES: Final = {
    "eta": f"proper motion {style.ETA} [rad/d]",
    "rho": rf"true range {style.RHO} [au]",
    "inc": "inclination $i$ [deg]",
    "span": r"length of arc $\Delta t$ [h]",
}
_SHORT: Final = {
    "eta": style.ETA,
    "rho": f"true {style.RHO}",
    "inc": "$i$",
    "span": r"$\Delta t$",
}
_METRICS: Final = {
    "p_ar": r"$P_\mathrm{AR}$",
    "d_sh_pseudo": f"median {style.D_SH}",
    "d_sh_catalogue": f"median {style.D_SH} (catalogue)",
    "medae_rho": f"medAE {style.RHO}",
    "medae_rho_dot": f"medAE {style.RHO_DOT}",
    "mae_rho": f"MAE {style.RHO}",
    "median_log10_error": r"median $|\Delta\log_{10}\rho|$",
    "median_relative_error": r"median $|\Delta\rho|/\rho$",
    "solved": "solved",
    "ok": "status OK",
    "collapsed": "collapsed",
}
"""Symbols of figures; others are called by their label."""

_HATCH: Final = "////"


def _name(rows: pd.DataFrame) -> str:
    """Symbol and unit of the figure of some rows."""
    row = rows.iloc[0]
    unit = f" [{row['unit']}]" if row["unit"] else ""
    return _METRICS.get(row["metric"], row["label"]) + unit


@style.print_size()
def plot_strata(
    figures: pd.DataFrame, *, metrics: Collection[str] = ("p_ar", "d_sh_pseudo")
) -> Figure:
    """Draw figures of merit by tercile: a row of panels for each figure, a column for each axis.

    Parameters
    ----------
    figures : DataFrame
        As of `neoranging.lab.study.strata.stratify`; other figures are left out, and so are arcs
        whose stratum is not known.
    metrics : collection of str
        Names of `neoranging.lab.study.metrics.METRICS`, from top to bottom.

    Returns
    -------
    matplotlib.figure.Figure
        Ticks tell name, bounds and arcs of a stratum; bars carry the interval of the bootstrap by
        object where the rows have one.

    Raises
    ------
    EvaluationError
        If there are no such rows.
    """
    if len(figures):
        figures = figures[(figures["stratum"] != "unknown") & figures["metric"].isin(metrics)]
    if figures.empty:
        raise EvaluationError(
            f"no rows of {', '.join(metrics)}: stratify(..., metrics={tuple(metrics)!r})"
        )
    names = [metric for metric in metrics if (figures["metric"] == metric).any()]
    along = figures["axis"].unique()
    fig = style.new_figure(style.TWO_COLUMNS, 0.7 + 1.75 * len(names))
    axes = fig.subplots(len(names), len(along), sharey="row", sharex="col", squeeze=False)
    for line, metric in zip(axes, names, strict=True):
        of_metric = figures[figures["metric"] == metric]
        for ax, axis in zip(line, along, strict=True):
            _draw_bars(ax, of_metric[of_metric["axis"] == axis])
        line[0].set_ylabel(_name(of_metric))
    for ax, axis in zip(axes[-1], along, strict=True):
        ax.set_xlabel(_AXES.get(axis, axis))
    style.figure_legend(fig, axes[0, 0], "outside upper center")
    return fig


def _draw_bars(ax: Axes, figures: pd.DataFrame) -> None:
    """Bars of one figure along one axis."""
    strata = figures.drop_duplicates("stratum").set_index("stratum")
    marks = style.marks(figures["method"].unique().tolist())
    width = 0.8 / max(len(marks), 1)
    for k, (method, mark) in enumerate(marks.items()):
        rows = figures[figures["method"] == method]
        value = rows["value"].to_numpy()
        reach = np.maximum([value - rows["low"], rows["high"] - value], 0.0)
        place = strata.index.get_indexer(pd.Index(rows["stratum"]))
        ax.bar(
            place + (k - 0.5 * (len(marks) - 1)) * width,
            value,
            width,
            color=mark.color,
            hatch=mark.hatch,
            edgecolor=style.BLACK if mark.hatch else "white",
            linewidth=0.4,
            label=method,
            yerr=np.nan_to_num(reach),  # no bar where there is no interval
            error_kw={"elinewidth": 0.7, "capsize": 1.5, "ecolor": style.BLACK},
        )
    ticks = []
    row: Any
    for k, row in enumerate(strata.itertuples()):
        # the extremes of all arcs are no bounds
        if k == 0:
            bounds = f"< {row.upper:.3g}\n"
        elif k == len(strata) - 1:
            bounds = rf"$\geq$ {row.lower:.3g}" + "\n"
        else:
            bounds = f"{row.lower:.3g}\nto {row.upper:.3g}"
        ticks.append(f"{row.Index}\n{bounds}\n{row.n_arcs + row.n_without:,}")
    ax.set_xticks(range(len(strata)), ticks)
    style.dress(ax)
    ax.xaxis.grid(visible=False)


@style.print_size()
def plot_cross(differences: pd.DataFrame) -> Figure:
    """Draw the differences of two methods on the cross of two axes, a heat map for each figure.

    Parameters
    ----------
    differences : DataFrame
        As of `neoranging.lab.study.strata.cross`.

    Returns
    -------
    matplotlib.figure.Figure
        Cells tell the difference, first minus second, and its arcs. Blue is for an advantage of
        the second method, hatched red for one of the first; a difference whose interval leaves out
        zero is in bold.

    Raises
    ------
    EvaluationError
        If there are no rows.
    """
    from matplotlib.patches import Patch

    if len(differences):
        is_cell = ~differences.iloc[:, :2].isin(["unknown", EVERY])
        differences = differences[is_cell.all(axis=1)]
    if differences.empty:
        raise EvaluationError("there are no cells to draw: give the rows of cross(first, second)")
    down, right = differences.columns[:2]
    by_metric = [rows for _, rows in differences.groupby("metric", sort=False)]
    fig = style.new_figure(style.TWO_COLUMNS, 2.9)
    axes = fig.subplots(1, len(by_metric), sharey=True, squeeze=False)[0]
    for ax, rows in zip(axes, by_metric, strict=True):
        _draw_heat_map(ax, rows, down, right)
    axes[0].set_ylabel(_SHORT.get(down, down))
    names = differences[["second", "first"]].iloc[0]
    handles = [
        Patch(facecolor=color, hatch=hatch, edgecolor=style.GREY, label=f"{name} better")
        for name, color, hatch in zip(names, ("#92C5DE", "#F4A582"), ("", _HATCH), strict=True)
    ]
    handles.append(Patch(visible=False, label="bold: interval without zero; below: arcs"))
    fig.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False)
    return fig


def _draw_heat_map(ax: Axes, rows: pd.DataFrame, down: str, right: str) -> None:
    from matplotlib.patches import Rectangle

    lines, columns = (rows[axis].unique().tolist() for axis in (down, right))
    gain = np.full((len(lines), len(columns)), np.nan)
    for row in rows.to_dict("records"):
        y, x = lines.index(row[down]), columns.index(row[right])
        difference, n_arcs = row["difference"], f"{row['n_arcs']:,}"
        gain[y, x] = difference * (-1.0 if row["better"] == "high" else 1.0)
        if gain[y, x] < 0.0:
            edges: dict[str, Any] = {"hatch": _HATCH, "edgecolor": style.GREY, "linewidth": 0.0}
            ax.add_patch(Rectangle((x - 0.5, y - 0.5), 1.0, 1.0, fill=False, **edges))
        text = f"{difference:+.2g}".replace("-", "\u2212") if np.isfinite(difference) else "\u2013"
        weight = "bold" if row["low"] > 0.0 or row["high"] < 0.0 else "normal"
        ax.text(x, y + 0.06, text, ha="center", fontweight=weight)
        ax.text(x, y - 0.06, n_arcs, ha="center", va="top", fontsize=style.SMALL)
    # never so dark that black on it cannot be read
    largest = 1.7 * (np.nanmax(np.abs(gain), initial=0.0) or 1.0)
    ax.imshow(gain, cmap="RdBu", vmin=-largest, vmax=largest, origin="lower", aspect="auto")
    ax.set_xticks(range(len(columns)), columns)
    ax.set_yticks(range(len(lines)), lines)
    first = rows.iloc[0]
    title = f"{_name(rows)}\n{first['first']} \u2212 {first['second']}"
    style.dress(ax, has_grid=False, xlabel=_SHORT.get(right, right), title=title)
