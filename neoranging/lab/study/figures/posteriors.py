"""Posteriors and the truth: its ranks, how often regions hold it, and interval scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.stats import binom

from neoranging.exceptions import EvaluationError
from neoranging.plotting import style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LEVELS: Final = np.linspace(0.02, 0.98, 49)
"""Of the curves of coverage."""


@style.print_size()
def plot_pit(pit: pd.DataFrame, scored: Sequence[pd.DataFrame]) -> Figure:
    """Draw where true ranges fall in their posteriors, a row of panels for each method.

    Parameters
    ----------
    pit : DataFrame
        Rows of `neoranging.lab.study.tables.pit_deciles` of the methods.
    scored : sequence of DataFrame
        Their scores, with the columns of posteriors.

    Returns
    -------
    matplotlib.figure.Figure
        Left the histogram of the probability integral transform: level within the band if the
        posteriors are calibrated, a valley if they are too narrow, a hill if they are too wide.
        Right how much more often than they claim intervals and regions hold the truth.

    Raises
    ------
    EvaluationError
        If there is no posterior.
    """
    if not scored:
        raise EvaluationError("no method gives posteriors: there is nothing to draw")
    fig = style.new_figure(style.TWO_COLUMNS, 0.3 + 2.1 * len(scored))
    axes = fig.subplots(len(scored), 2, squeeze=False)
    marks = style.marks([scores.attrs["method"] for scores in scored])
    for (left, right), scores in zip(axes, scored, strict=True):
        method = scores.attrs["method"]
        _draw_deciles(left, pit[pit["method"] == method], marks[method])
        _draw_excess(right, scores[scores["pit"].notna()], marks[method])
        style.dress(left, ylabel="arcs [%]", title=method)
        style.dress(right, ylabel="inside, less the level [%]")
    style.dress(axes[-1, 0], xlabel="decile of the posterior that holds the true range")
    style.dress(axes[-1, 1], xlabel="level [%]")
    return fig


def _draw_deciles(ax: Axes, rows: pd.DataFrame, mark: style.Mark) -> None:
    first = rows.iloc[0]
    ax.axhspan(first["band_low"], first["band_high"], color=style.GREY, alpha=0.25, linewidth=0)
    ax.axhline(10.0, color=style.BLACK, linewidth=0.8)
    value = rows["percent"].to_numpy()
    reach = np.maximum([value - rows["low"], rows["high"] - value], 0.0)
    ax.bar(
        rows["decile"],
        value,
        0.86,
        color=mark.color,
        alpha=0.8,
        yerr=np.nan_to_num(reach),  # no bar where there is no interval
        error_kw={"elinewidth": 0.7, "capsize": 1.5, "ecolor": style.BLACK},
    )
    top = 1.12 * np.nanmax([20.0, *value, *rows["high"]])
    ax.set(xticks=range(1, 11), xlim=(0.4, 10.6), ylim=(0.0, top))
    style.note(ax, f"{style.count(first['n_arcs'])}; grey: 95 % of calibrated ones", (0.03, 0.92))


def _draw_excess(ax: Axes, scores: pd.DataFrame, mark: style.Mark) -> None:
    """Share of the arcs within intervals and regions, less their level, by level."""
    n, level = len(scores), 100.0 * _LEVELS
    low, high = (100.0 * binom.ppf(tail, n, _LEVELS) / n - level for tail in (0.025, 0.975))
    ax.fill_between(level, low, high, color=style.GREY, alpha=0.25, linewidth=0)
    ax.axhline(0.0, color=style.BLACK, linewidth=0.8)
    needed = {
        "equal tails": np.abs(2.0 * scores["pit"].to_numpy() - 1.0),
        "highest density": scores["depth"].to_numpy(),
    }
    for (name, depth), line in zip(needed.items(), ("-", ":"), strict=True):
        inside = 100.0 * np.searchsorted(np.sort(depth), _LEVELS, side="right") / n
        ax.plot(level, inside - level, line, color=mark.color, linewidth=1.2, label=name)
    reach = max(5.0, 1.1 * np.abs(ax.get_ylim()).max())
    ax.set(xlim=(0, 100), ylim=(-reach, reach))
    ax.legend(loc="best", frameon=False)


@style.print_size()
def plot_interval_scores(scores: pd.DataFrame) -> Figure:
    """Draw the interval scores of methods, at each level, best first.

    Parameters
    ----------
    scores : DataFrame
        Rows of `neoranging.lab.study.metrics.summarise` of several methods.

    Returns
    -------
    matplotlib.figure.Figure
        Marks with 95 % intervals of a bootstrap by object: left at 68 %, right at 95 %.

    Raises
    ------
    EvaluationError
        If there are no interval scores.
    """
    titles = {f"interval_score_{level}": f"{level} % intervals" for level in ("68", "95")}
    rows = scores[scores["metric"].isin(titles) & scores["value"].notna()]
    if rows.empty:
        raise EvaluationError("there are no interval scores: no arc has an admissible range")
    by_metric: Mapping[str, pd.DataFrame] = {
        name: rows[rows["metric"] == name].set_index("method") for name in titles
    }
    order = by_metric["interval_score_95"]["value"].sort_values(ascending=False).index.tolist()
    marks = style.marks(scores["method"].unique().tolist())
    fig = style.new_figure(style.TWO_COLUMNS, 0.7 + 0.24 * len(order))
    axes = fig.subplots(1, 2, sharey=True)
    for ax, (name, title) in zip(axes, titles.items(), strict=True):
        for place, method in enumerate(order):
            value, low, high = by_metric[name].loc[method, ["value", "low", "high"]]
            reach = np.nan_to_num([[value - low], [high - value]])
            look = {"color": marks[method].color, "marker": marks[method].marker}
            ax.errorbar(value, place, xerr=np.maximum(reach, 0.0), capsize=2, markersize=5, **look)
        ax.set_yticks(range(len(order)), order)
        style.dress(ax, xlabel=rf"interval score of $\log_{{10}}$ {style.RHO} [dex]", title=title)
        ax.set_xlim(left=0.0)
    return fig
