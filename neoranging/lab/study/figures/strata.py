"""Figures of merit by stratum: bars along one axis, heat maps on the cross of two."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neoranging.exceptions import EvaluationError
from neoranging.lab.study.figures import style as study_style
from neoranging.plotting import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


Row = Mapping[str, Any]

_AXES: Final = {
    "eta": f"proper motion {study_style.ETA} [rad/d]",
    "rho": rf"true range {study_style.RHO} [au]",
    "inc": "inclination $i$ [deg]",
    "span": r"length of arc $\Delta t$ [h]",
}
_SHORT: Final = {
    "eta": study_style.ETA,
    "rho": f"true {study_style.RHO}",
    "inc": "$i$",
    "span": r"$\Delta t$",
}
_METRICS: Final = {
    "p_ar": r"$P_\mathrm{AR}$",
    "d_sh_pseudo": f"median {study_style.D_SH}",
    "d_sh_catalogue": f"median {study_style.D_SH} (catalogue)",
    "medae_rho": f"medAE {study_style.RHO}",
    "medae_rho_dot": f"medAE {study_style.RHO_DOT}",
    "mae_rho": f"MAE {study_style.RHO}",
    "median_log10_error": r"median $|\Delta\log_{10}\rho|$",
    "median_relative_error": r"median $|\Delta\rho|/\rho$",
    "solved": "solved",
    "ok": "status OK",
    "collapsed": "collapsed",
}
"""Symbols of figures; others are called by their label."""

_HATCH: Final = "////"


def _name(row: Row, *, unit: bool = True) -> str:
    name = _METRICS.get(row["metric"], row["label"])
    return f"{name} [{row['unit']}]" if unit and row["unit"] else str(name)


def plot_strata(
    rows: Sequence[Row],
    fig: Figure | None = None,
    *,
    metrics: Collection[str] = ("p_ar", "d_sh_pseudo"),
) -> Figure:
    """Draw figures of merit by tercile: a row of panels for each figure, a column for each axis.

    Parameters
    ----------
    rows : sequence of mapping
        As of `neoranging.lab.study.strata.stratify`; rows of other figures are left out, and so
        are arcs whose stratum is not known.
    fig : matplotlib.figure.Figure, optional
        Where to draw; a new one by default.
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
    MissingDependencyError
        If matplotlib is not installed.
    """
    known = [row for row in rows if row["stratum"] != "unknown"]
    wanted = [m for m in metrics if any(row["metric"] == m for row in known)]
    if not wanted:
        raise EvaluationError(
            f"no rows of {', '.join(metrics)}: stratify(..., metrics={tuple(metrics)!r})"
        )
    along = list(dict.fromkeys(row["axis"] for row in known))
    with study_style.print_size():
        fig = study_style.figure_or_new(fig, study_style.TWO_COLUMNS, 0.7 + 1.75 * len(wanted))
        axes = fig.subplots(len(wanted), len(along), sharey="row", sharex="col", squeeze=False)
        for line, metric in zip(axes, wanted, strict=True):
            for ax, axis in zip(line, along, strict=True):
                chosen = [r for r in known if (r["metric"], r["axis"]) == (metric, axis)]
                _bars(ax, chosen)
            line[0].set_ylabel(_name(next(r for r in known if r["metric"] == metric)))
        for ax, axis in zip(axes[-1], along, strict=True):
            ax.set_xlabel(_AXES.get(axis, axis))
        handles, labels = axes[0, 0].get_legend_handles_labels()
        fig.legend(handles, labels, loc="outside upper center", ncols=len(labels), frameon=False)
    return fig


def _bars(ax: Axes, rows: Sequence[Row]) -> None:
    """Bars of one figure along one axis."""
    methods = list(dict.fromkeys(row["method"] for row in rows))
    strata = list(dict.fromkeys(row["stratum"] for row in rows))
    found = {(row["method"], row["stratum"]): row for row in rows}
    width = 0.8 / max(len(methods), 1)
    for k, (method, mark) in enumerate(study_style.marks(methods).items()):
        mine = [found[method, stratum] for stratum in strata if (method, stratum) in found]
        places = [
            strata.index(row["stratum"]) + (k - 0.5 * (len(methods) - 1)) * width for row in mine
        ]
        values = np.array([row["value"] for row in mine])
        ax.bar(
            places,
            values,
            width,
            color=mark.color,
            hatch=mark.hatch,
            edgecolor="white" if not mark.hatch else style.BLACK,
            linewidth=0.4,
            label=method,
            yerr=_reach(mine, values),
            error_kw={"elinewidth": 0.7, "capsize": 1.5, "ecolor": style.BLACK},
        )
    ax.set_xticks(range(len(strata)), [_tick(rows, stratum) for stratum in strata])
    study_style.dress(ax)
    ax.xaxis.grid(visible=False)


def _reach(rows: Sequence[Row], values: Any) -> Any:
    """Lengths of error bars, none where there is no interval."""
    ends = np.array([[row.get("low", math.nan), row.get("high", math.nan)] for row in rows]).T
    return np.nan_to_num(np.maximum([values - ends[0], ends[1] - values], 0.0))


def _tick(rows: Sequence[Row], stratum: str) -> str:
    """Name, bounds and arcs of a stratum; the extremes of all arcs are no bounds."""
    row = next(row for row in rows if row["stratum"] == stratum)
    if stratum == rows[0]["stratum"]:
        bounds = f"< {row['upper']:.3g}\n"
    elif stratum == rows[-1]["stratum"]:
        bounds = rf"$\geq$ {row['lower']:.3g}" + "\n"
    else:
        bounds = f"{row['lower']:.3g}\nto {row['upper']:.3g}"
    return f"{stratum}\n{bounds}\n{row['n_arcs'] + row['n_without']:,}"


def plot_cross(rows: Sequence[Row], fig: Figure | None = None) -> Figure:
    """Draw the differences of two methods on the cross of two axes, a heat map for each figure.

    Parameters
    ----------
    rows : sequence of mapping
        As of `neoranging.lab.study.strata.cross`.
    fig : matplotlib.figure.Figure, optional
        Where to draw; a new one by default.

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
    MissingDependencyError
        If matplotlib is not installed.
    """
    known = [row for row in rows if "unknown" not in row.values()]
    if not known:
        raise EvaluationError("there are no cells to draw: give the rows of cross(first, second)")
    down, right = list(known[0])[:2]
    names = list(dict.fromkeys(row["metric"] for row in known))
    with study_style.print_size():
        fig = study_style.figure_or_new(fig, study_style.TWO_COLUMNS, 2.9)
        axes = fig.subplots(1, len(names), sharey=True, squeeze=False)[0]
        for ax, name in zip(axes, names, strict=True):
            _heat_map(ax, [row for row in known if row["metric"] == name], down, right)
        axes[0].set_ylabel(_SHORT.get(down, down))
        _explain(fig, known[0])
    return fig


def _explain(fig: Any, row: Row) -> None:
    from matplotlib.patches import Patch

    handles = [
        Patch(facecolor=color, hatch=hatch, edgecolor=style.GREY, label=f"{row[name]} better")
        for name, color, hatch in (("second", "#92C5DE", ""), ("first", "#F4A582", _HATCH))
    ]
    told = Patch(visible=False, label="bold: interval without zero; below: arcs")
    fig.legend(
        handles=[*handles, told],
        loc="outside lower center",
        ncols=3,
        frameon=False,
    )


def _heat_map(ax: Axes, rows: Sequence[Row], down: str, right: str) -> None:
    lines, columns = (list(dict.fromkeys(row[axis] for row in rows)) for axis in (down, right))
    gain = np.full((len(lines), len(columns)), np.nan)
    for row in rows:
        place = lines.index(row[down]), columns.index(row[right])
        gain[place] = row["difference"] * (-1.0 if row["better"] == "high" else 1.0)
    # never so dark that black on it cannot be read
    largest = 1.7 * (np.nanmax(np.abs(gain), initial=0.0) or 1.0)
    ax.imshow(gain, cmap="RdBu", vmin=-largest, vmax=largest, origin="lower", aspect="auto")
    for y, x in np.argwhere(gain < 0.0):
        ax.add_patch(_hatched(x, y))
    for row in rows:
        _annotate(ax, row, columns.index(row[right]), lines.index(row[down]))
    ax.set_xticks(range(len(columns)), columns)
    ax.set_yticks(range(len(lines)), lines)
    ax.set_xlabel(_SHORT.get(right, right))
    ax.set_title(f"{_name(rows[0])}\n{rows[0]['first']} \u2212 {rows[0]['second']}")
    study_style.dress(ax, grid=False)


def _hatched(x: float, y: float) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle(
        (x - 0.5, y - 0.5), 1.0, 1.0, fill=False, hatch=_HATCH, edgecolor=style.GREY, linewidth=0.0
    )


def _annotate(ax: Axes, row: Row, x: int, y: int) -> None:
    clear = row["low"] > 0.0 or row["high"] < 0.0
    known = math.isfinite(row["difference"])
    difference = f"{row['difference']:+.2g}".replace("-", "\u2212") if known else "\u2013"
    ax.text(x, y + 0.06, difference, ha="center", fontweight="bold" if clear else "normal")
    ax.text(x, y - 0.06, f"{row['n_arcs']:,}", ha="center", va="top", fontsize=study_style.SMALL)
