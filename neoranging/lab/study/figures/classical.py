"""Classical methods beside others on the arcs that they solve, and what makes them collapse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neoranging.constants import R_EARTH
from neoranging.exceptions import EvaluationError
from neoranging.lab.study.classical import mutually_solved
from neoranging.lab.study.figures.estimates import draw_legend, draw_rows, width_of
from neoranging.lab.study.metrics import COLLAPSED
from neoranging.lab.study.scores import select
from neoranging.plotting import style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from neoranging.lab.study.diurnal import DiurnalSignal


_FEW: Final = 20
"""Answers below which a share is not drawn."""


@style.print_size()
def plot_classical(
    classical: Sequence[pd.DataFrame], others: Sequence[pd.DataFrame] = ()
) -> Figure:
    """Draw methods against the truth on the arcs that the classical ones of an origin all solve.

    Parameters
    ----------
    classical : sequence of DataFrame
        Scores of classical methods, of one origin or of both, all on the same arcs.
    others : sequence of DataFrame
        Scores of other methods on the same arcs, drawn beside; each is judged by the truth of its
        own origin.

    Returns
    -------
    matplotlib.figure.Figure
        For each origin a row of ranges and one of range-rates; the legend gives the solve rate on
        all arcs. The dotted line is the range below which an answer counts as collapsed.

    Raises
    ------
    EvaluationError
        If methods are scored on different arcs, there is no classical one, or no arc is solved
        alike.
    """
    mutually_solved([*classical, *others])  # of the same arcs, or an error
    by_origin: dict[str, list[pd.DataFrame]] = {}
    for scores in classical:
        by_origin.setdefault(scores.attrs["origin"], []).append(scores)
    width = width_of(len(others) + max(map(len, by_origin.values())))
    fig = style.new_figure(width, 4.2 * len(by_origin))
    blocks = fig.subfigures(len(by_origin), 1, squeeze=False)[:, 0]
    for block, (origin, methods) in zip(blocks, by_origin.items(), strict=True):
        _draw_origin(block, origin, methods, others)
    return fig


def _draw_origin(
    fig: Any, origin: str, classical: Sequence[pd.DataFrame], others: Sequence[pd.DataFrame]
) -> None:
    solved = mutually_solved(classical)
    if not solved.any():
        raise EvaluationError(f"no arc is solved by all classical methods from the {origin}")
    everyone = {scores.attrs["method"]: scores for scores in (*classical, *others)}
    alike = [select(scores, solved) for scores in everyone.values()]
    for ax in draw_rows(fig, alike, list(everyone))[0]:
        ax.axhline(COLLAPSED, color=style.VERMILION, linewidth=0.8, linestyle=":")
    labels = {
        method: f"{method} ({100 * scores.answered.mean():.1f} % solved)"
        for method, scores in everyone.items()
    }
    arcs, share = style.count(int(solved.sum())), f"{100 * solved.mean():.1f} %"
    title = f"From the {origin}: {arcs} solved by all classical methods ({share} of all)"
    draw_legend(fig, labels, title)


@style.print_size()
def plot_collapse(
    geocentric: pd.DataFrame, topocentric: pd.DataFrame, signal: DiurnalSignal | None = None
) -> Figure:
    """Draw what becomes of a classical method when it takes the observer for the Earth's centre.

    Parameters
    ----------
    geocentric, topocentric : DataFrame
        Scores of one method, Gauss's say, on the same M arcs with the observer at the centre of
        the Earth and where it stood.
    signal : neoranging.lab.study.diurnal.DiurnalSignal, optional
        ``diurnal_signal(table)`` of the same arcs, for the panels that tell why.

    Returns
    -------
    matplotlib.figure.Figure
        Geocentric against topocentric ranges; and with a signal the share of collapsed answers by
        the significance of the diurnal motion, and the collapsed ranges against the topocentric
        ones times the pull of the Moon over the acceleration of the station. On that line the root
        is made by the missing diurnal motion and by nothing else.

    Raises
    ------
    EvaluationError
        If the answers are to different arcs, or no arc is answered both ways.
    """
    both = mutually_solved([geocentric, topocentric])
    if not both.any():
        raise EvaluationError("no arc is solved both from the centre of the Earth and the station")
    near, far = geocentric.rho.to_numpy()[both], topocentric.rho.to_numpy()[both]
    fig = style.new_figure(style.ONE_COLUMN if signal is None else style.TWO_COLUMNS, 2.75)
    axes = fig.subplots(1, 1 if signal is None else 3, squeeze=False)[0]
    _draw_pair(axes[0], far, near, topocentric.attrs["method"])
    if signal is not None:
        _draw_shares(axes[1], geocentric, topocentric, signal)
        _draw_roots(axes[2], signal.shrinkage[both] * far, near)
    return fig


def _draw_pair(ax: Axes, x: Any, y: Any, method: str) -> None:
    """Geocentric against topocentric ranges."""
    positive = (x > 0.0) & (y > 0.0)
    view = style.log_limits(x[positive]), style.log_limits(y[positive])
    style.density(ax, (x[positive], y[positive]), view, scale="log")
    style.diagonal(ax, view[0])
    for value, color, line, name in (
        (COLLAPSED, style.VERMILION, ":", "collapsed below"),
        (R_EARTH, style.GREEN, "-", "radius of the Earth"),
    ):
        ax.axhline(value, color=color, linewidth=1.0, linestyle=line, label=name)
    ax.set_title(f"(a) {method}, {style.count(len(x))}", loc="left")
    ax.legend(loc="upper left", handlelength=1.4)
    labels = {"xlabel": f"topocentric {style.RHO} [au]", "ylabel": f"geocentric {style.RHO} [au]"}
    ax.set(**labels)
    style.dress(ax, xlim=view[0], ylim=view[1])


def _draw_shares(
    ax: Axes, geocentric: pd.DataFrame, topocentric: pd.DataFrame, signal: DiurnalSignal
) -> None:
    """Share of answers that collapse, by bins of the significance."""
    edges = np.geomspace(1e-3, 1e3, 13)
    middle = np.sqrt(edges[1:] * edges[:-1])
    for scored, color, mark, name in (
        (geocentric, style.VERMILION, "s", "geocentric"),
        (topocentric, style.BLUE, "o", "topocentric"),
    ):
        total, collapsed = (
            np.histogram(signal.significance[rows], edges)[0]
            for rows in (scored.answered, scored.answered & (scored.rho < COLLAPSED))
        )
        enough = total >= _FEW
        share = 100.0 * collapsed[enough] / total[enough]
        ax.plot(middle[enough], share, color=color, marker=mark, markersize=3.5, label=name)
    ax.set(xscale="log", xlim=(edges[0], edges[-1]), ylim=(-4.0, 104.0))
    ax.set_title("(b) collapse", loc="left")
    ax.legend(loc="center right")
    label = f"answers below {COLLAPSED:g} au [%]"
    style.dress(ax, xlabel="diurnal curvature / noise", ylabel=label)


def _draw_roots(ax: Axes, x: Any, y: Any) -> None:
    """Collapsed ranges against topocentric ones, shrunk by the signal of the station."""
    collapsed = (y < COLLAPSED) & (x > 0.0) & (y > 0.0)
    x, y = x[collapsed], y[collapsed]
    if len(x):
        ends = style.log_limits(np.concatenate([x, y]))
        style.density(ax, (x, y), (ends, ends), scale="log")
        style.diagonal(ax, ends)
        ax.set(xlim=ends, ylim=ends)
    ax.set_title(f"(c) its cause, {style.count(len(x))}", loc="left")
    style.dress(
        ax,
        xlabel=r"$\rho_\mathrm{topocentric}\;a_\mathrm{Moon} / a_\mathrm{station}$ [au]",
        ylabel=f"collapsed geocentric {style.RHO} [au]",
    )
