"""Classical methods beside others on the arcs that they solve, and what makes them collapse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neoranging.constants import R_EARTH
from neoranging.evaluation.classical import mutually_solved
from neoranging.evaluation.metrics import COLLAPSED
from neoranging.exceptions import EvaluationError
from neoranging.plotting import study_style, style
from neoranging.plotting.study_estimates import RHO, RHO_DOT, draw_row

if TYPE_CHECKING:
    import numpy.typing as npt
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from neoranging.evaluation.collapse import DiurnalSignal
    from neoranging.evaluation.scores import ScoredArcs

    Array = npt.NDArray[np.float64]

__all__ = ["plot_classical", "plot_collapse"]

_CLEAR: Final = 3.0
"""Significance from which the diurnal motion is seen in an arc."""


def plot_classical(
    classical: Sequence[ScoredArcs],
    others: Sequence[ScoredArcs] = (),
    fig: Figure | None = None,
) -> Figure:
    """Draw methods against the truth on the arcs that the classical ones of an origin all solve.

    Parameters
    ----------
    classical : sequence of ScoredArcs
        Answers of classical methods, of one origin or of both, all on the same arcs.
    others : sequence of ScoredArcs
        Answers of other methods to the same arcs, drawn beside; each is judged by the truth of
        its own origin.
    fig : matplotlib.figure.Figure, optional
        Where to draw; a new one by default.

    Returns
    -------
    matplotlib.figure.Figure
        For each origin a row of ranges and one of range-rates; headings tell the solve rate on
        all arcs. The dashed line across is the range below which an answer counts as collapsed.

    Raises
    ------
    EvaluationError
        If methods are scored on different arcs, there is no classical one, or no arc is solved
        alike.
    MissingDependencyError
        If matplotlib is not installed.
    """
    mutually_solved([*classical, *others])  # of the same arcs, or an error
    origins = list(dict.fromkeys(each.origin for each in classical))
    with study_style.print_size():
        fig = study_style.figure_or_new(fig, study_style.TWO_COLUMNS, 4.2 * len(origins))
        blocks = fig.subfigures(len(origins), 1, squeeze=False)[:, 0]
        for block, origin in zip(blocks, origins, strict=True):
            alike = [each for each in classical if each.origin == origin]
            _draw_origin(block, origin, alike, others)
    return fig


def _draw_origin(
    fig: Any, origin: str, classical: Sequence[ScoredArcs], others: Sequence[ScoredArcs]
) -> None:
    rows = np.flatnonzero(mutually_solved(classical))
    if not len(rows):
        raise EvaluationError(f"no arc is solved by all classical methods from the {origin}")
    everyone = [*classical, *others]
    titles = {
        each.method: f"{each.method}\n{100 * each.answered.mean():.1f} % solved"
        for each in everyone
    }
    share = 100 * len(rows) / len(classical[0])
    fig.suptitle(
        f"classical methods from the {origin}: {study_style.count(len(rows))} solved by all of "
        f"them ({share:.1f} %)",
        fontsize=study_style.TEXT,
        fontweight="bold",
    )
    taken = [each.take(rows) for each in everyone]
    for line, quantity in zip(fig.subfigures(2, 1), (RHO, RHO_DOT), strict=True):
        axes = draw_row(line, taken, quantity, titles=titles)
        if quantity is RHO:
            for ax in axes:
                ax.axhline(COLLAPSED, color=style.VERMILION, linewidth=0.8, linestyle=":")


def plot_collapse(
    geocentric: ScoredArcs,
    topocentric: ScoredArcs,
    signal: DiurnalSignal | None = None,
    fig: Figure | None = None,
) -> Figure:
    """Draw what becomes of a classical method when it takes the observer for the Earth's centre.

    Parameters
    ----------
    geocentric, topocentric : ScoredArcs
        Answers of one method, Gauss's say, to the same M arcs with the observer at the centre of
        the Earth and where it stood.
    signal : neoranging.evaluation.collapse.DiurnalSignal, optional
        ``diurnal_signal(table)`` of the same arcs, for the panels that tell why.
    fig : matplotlib.figure.Figure, optional
        Where to draw; a new one by default.

    Returns
    -------
    matplotlib.figure.Figure
        Geocentric against topocentric ranges; the share of collapsed answers by the significance
        of the diurnal motion; and the collapsed ranges against the root that the diurnal motion
        makes where it is clear.

    Raises
    ------
    EvaluationError
        If the answers are to different arcs, or no arc is answered both ways.
    MissingDependencyError
        If matplotlib is not installed.
    """
    both = np.flatnonzero(mutually_solved([geocentric, topocentric]))
    if not len(both):
        raise EvaluationError("no arc is solved both from the centre of the Earth and the station")
    panels = 1 if signal is None else 3
    with study_style.print_size():
        width = study_style.ONE_COLUMN if panels == 1 else study_style.TWO_COLUMNS
        fig = study_style.figure_or_new(fig, width, 3.0)
        axes = fig.subplots(1, panels, squeeze=False)[0]
        _draw_pair(axes[0], geocentric.take(both), topocentric.take(both))
        if signal is not None:
            _draw_shares(axes[1], (geocentric, topocentric), signal)
            _draw_roots(axes[2], geocentric, signal)
            study_style.letter(axes)
    return fig


def _cells(ax: Axes, x: Array, y: Array) -> None:
    ax.hexbin(
        x,
        y,
        gridsize=45,
        xscale="log",
        yscale="log",
        bins="log",
        mincnt=1,
        cmap=study_style.DENSITY,
        linewidths=0.1,
        rasterized=True,
    )


def _draw_pair(ax: Axes, geocentric: ScoredArcs, topocentric: ScoredArcs) -> None:
    x, y = topocentric.rho, geocentric.rho
    _cells(ax, x, y)
    ends = np.array([min(x.min(), y.min()), max(x.max(), y.max())])
    ax.plot(ends, ends, color=style.BLACK, linewidth=0.8, linestyle="--")
    ax.axhline(COLLAPSED, color=style.VERMILION, linewidth=0.9, linestyle=":")
    ax.axhline(R_EARTH, color=style.BLUE, linewidth=0.9)
    ax.set_xlabel(rf"topocentric {study_style.RHO} [au]")
    ax.set_ylabel(rf"geocentric {study_style.RHO} [au]")
    ax.set_title(f"{geocentric.method}: {study_style.count(len(x))}")
    study_style.dress(ax)


def _draw_shares(ax: Axes, pair: Sequence[ScoredArcs], signal: DiurnalSignal) -> None:
    """Share of answers that collapse, by bins of the significance."""
    edges = np.geomspace(1e-3, 1e3, 13)
    for scored, color, marker, line in zip(
        pair, (style.VERMILION, style.BLUE), "so", ("--", "-"), strict=True
    ):
        known = scored.answered & np.isfinite(signal.significance)
        total, collapsed = (
            np.histogram(signal.significance[rows], edges)[0]
            for rows in (known, known & (scored.rho < COLLAPSED))
        )
        enough = total >= 20
        middle = np.sqrt(edges[1:] * edges[:-1])[enough]
        share = 100 * collapsed[enough] / total[enough]
        ax.plot(
            middle,
            share,
            color=color,
            marker=marker,
            markersize=3.5,
            linestyle=line,
            label=f"from the {scored.origin}",
        )
    ax.set_xscale("log")
    ax.set_xlabel("diurnal curvature / its standard error")
    ax.set_ylabel("collapsed, of answers [%]")
    ax.legend(loc="center right")
    study_style.dress(ax)


def _draw_roots(ax: Axes, geocentric: ScoredArcs, signal: DiurnalSignal) -> None:
    clear = geocentric.answered & (geocentric.rho < COLLAPSED)
    clear &= (signal.significance > _CLEAR) & (signal.root > 0.0)
    x, y = signal.root[clear], geocentric.rho[clear]
    if len(x):
        _cells(ax, x, y)
    ax.plot([1e-7, COLLAPSED], [1e-7, COLLAPSED], color=style.BLACK, linewidth=0.8, linestyle="--")
    ax.set(xlim=(1e-7, 1e-2), ylim=(1e-7, COLLAPSED))
    ax.set_xlabel("root made by the diurnal motion [au]")
    ax.set_ylabel(rf"collapsed {study_style.RHO} [au]")
    ax.set_title(f"{study_style.count(len(x))}")
    study_style.dress(ax)
