"""Classical methods beside others on the arcs that they solve, and what makes them collapse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neoranging.constants import R_EARTH
from neoranging.exceptions import EvaluationError
from neoranging.lab.study.classical import mutually_solved
from neoranging.lab.study.figures import style as study_style
from neoranging.lab.study.figures.estimates import (
    RHO,
    RHO_DOT,
    draw_legend,
    draw_row,
    panels,
    width_of,
)
from neoranging.lab.study.metrics import COLLAPSED
from neoranging.lab.study.scores import select
from neoranging.plotting import style
from neoranging.typing import FloatArray

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from neoranging.lab.study.diurnal import DiurnalSignal

    Array = FloatArray
    Limits = tuple[float, float]


_FEW: Final = 20
"""Answers below which a share is not drawn."""


def plot_classical(
    classical: Sequence[pd.DataFrame],
    others: Sequence[pd.DataFrame] = (),
    fig: Figure | None = None,
) -> Figure:
    """Draw methods against the truth on the arcs that the classical ones of an origin all solve.

    Parameters
    ----------
    classical : sequence of DataFrame
        Answers of classical methods, of one origin or of both, all on the same arcs.
    others : sequence of DataFrame
        Answers of other methods to the same arcs, drawn beside; each is judged by the truth of
        its own origin.
    fig : matplotlib.figure.Figure, optional
        Where to draw; a new one by default.

    Returns
    -------
    matplotlib.figure.Figure
        For each origin a row of ranges and one of range-rates; the legend tells the solve rate on
        all arcs. The dotted line is the range below which an answer counts as collapsed.

    Raises
    ------
    EvaluationError
        If methods are scored on different arcs, there is no classical one, or no arc is solved
        alike.
    MissingDependencyError
        If matplotlib is not installed.
    """
    mutually_solved([*classical, *others])  # of the same arcs, or an error
    origins = list(dict.fromkeys(each.attrs["origin"] for each in classical))
    alike = [[each for each in classical if each.attrs["origin"] == origin] for origin in origins]
    with study_style.print_size():
        width = width_of(len(others) + max(len(each) for each in alike))
        fig = study_style.figure_or_new(fig, width, 4.2 * len(origins))
        blocks = fig.subfigures(len(origins), 1, squeeze=False)[:, 0]
        for block, origin, methods in zip(blocks, origins, alike, strict=True):
            _draw_origin(block, origin, methods, others)
    return fig


def _draw_origin(
    fig: Any, origin: str, classical: Sequence[pd.DataFrame], others: Sequence[pd.DataFrame]
) -> None:
    rows = np.flatnonzero(mutually_solved(classical))
    if not len(rows):
        raise EvaluationError(f"no arc is solved by all classical methods from the {origin}")
    everyone = [*classical, *others]
    taken = [select(each, rows) for each in everyone]
    lines = panels(fig, 2, len(taken))
    draw_row(fig, lines[0], taken, RHO, titles=[each.attrs["method"] for each in taken])
    draw_row(fig, lines[1], taken, RHO_DOT)
    for ax in lines[0]:
        ax.axhline(COLLAPSED, color=style.VERMILION, linewidth=0.8, linestyle=":")
    solved = {
        s.attrs["method"]: f"{s.attrs['method']} ({100 * s.answered.mean():.1f} % solved)"
        for s in everyone
    }
    share = f"{100 * len(rows) / len(classical[0]):.1f} %"
    title = f"From the {origin}: {study_style.count(len(rows))} solved by all classical methods"
    draw_legend(fig, solved, title=f"{title} ({share} of all)")


def plot_collapse(
    geocentric: pd.DataFrame,
    topocentric: pd.DataFrame,
    signal: DiurnalSignal | None = None,
    fig: Figure | None = None,
) -> Figure:
    """Draw what becomes of a classical method when it takes the observer for the Earth's centre.

    Parameters
    ----------
    geocentric, topocentric : DataFrame
        Answers of one method, Gauss's say, to the same M arcs with the observer at the centre of
        the Earth and where it stood.
    signal : neoranging.lab.study.diurnal.DiurnalSignal, optional
        ``diurnal_signal(table)`` of the same arcs, for the panels that tell why.
    fig : matplotlib.figure.Figure, optional
        Where to draw; a new one by default.

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
    MissingDependencyError
        If matplotlib is not installed.
    """
    both = np.flatnonzero(mutually_solved([geocentric, topocentric]))
    if not len(both):
        raise EvaluationError("no arc is solved both from the centre of the Earth and the station")
    n_panels = 1 if signal is None else 3
    with study_style.print_size():
        width = study_style.ONE_COLUMN if n_panels == 1 else study_style.TWO_COLUMNS
        fig = study_style.figure_or_new(fig, width, 2.75)
        axes = fig.subplots(1, n_panels, squeeze=False)[0]
        pair = select(geocentric, both), select(topocentric, both)
        _draw_pair(axes[0], *pair)
        if signal is not None:
            _draw_shares(axes[1], (geocentric, topocentric), signal)
            _draw_roots(axes[2], *pair, type(signal)(*(x[both] for x in signal)))
    return fig


def _draw_pair(ax: Axes, geocentric: pd.DataFrame, topocentric: pd.DataFrame) -> None:
    x, y = topocentric.rho.to_numpy(), geocentric.rho.to_numpy()
    kept = (x > 0.0) & (y > 0.0)
    across, upward = study_style.log_limits(x[kept]), study_style.log_limits(y[kept])
    _density(ax, x[kept], y[kept], across, upward)
    ax.plot(across, across, color=style.BLACK, linewidth=0.8, linestyle="--")
    for value, color, line, name in (
        (COLLAPSED, style.VERMILION, ":", "collapsed below"),
        (R_EARTH, style.GREEN, "-", "radius of the Earth"),
    ):
        ax.axhline(value, color=color, linewidth=1.0, linestyle=line, label=name)
    ax.set(xlim=across, ylim=upward)
    ax.set_xlabel(rf"topocentric {study_style.RHO} [au]")
    ax.set_ylabel(rf"geocentric {study_style.RHO} [au]")
    ax.set_title(f"(a) {topocentric.attrs['method']}, {study_style.count(len(x))}", loc="left")
    ax.legend(loc="upper left", handlelength=1.4)
    study_style.dress(ax)


def _density(ax: Axes, x: Array, y: Array, across: Limits, upward: Limits) -> None:
    extent = tuple(np.log10([*across, *upward]))
    study_style.density(ax, x, y, extent=extent, xscale="log", yscale="log")


def _draw_shares(ax: Axes, pair: Sequence[pd.DataFrame], signal: DiurnalSignal) -> None:
    """Share of answers that collapse, by bins of the significance."""
    edges = np.geomspace(1e-3, 1e3, 13)
    for scored, color, mark, name in zip(
        pair, (style.VERMILION, style.BLUE), "so", ("geocentric", "topocentric"), strict=True
    ):
        total, collapsed = (
            np.histogram(signal.significance[rows], edges)[0]
            for rows in (scored.answered, scored.answered & (scored.rho < COLLAPSED))
        )
        middle = np.sqrt(edges[1:] * edges[:-1])
        enough = total >= _FEW
        share = 100.0 * collapsed[enough] / total[enough]
        ax.plot(middle[enough], share, color=color, marker=mark, markersize=3.5, label=name)
    ax.set(xscale="log", xlim=(edges[0], edges[-1]), ylim=(-4.0, 104.0))
    ax.set_xlabel("diurnal curvature / noise")
    ax.set_ylabel(f"answers below {COLLAPSED:g} au [%]")
    ax.set_title("(b) collapse", loc="left")
    ax.legend(loc="center right")
    study_style.dress(ax)


def _draw_roots(
    ax: Axes, geocentric: pd.DataFrame, topocentric: pd.DataFrame, signal: DiurnalSignal
) -> None:
    """Collapsed ranges against topocentric ones, shrunk by what is known of the station."""
    x = signal.shrinkage * topocentric.rho
    kept = (geocentric.rho < COLLAPSED) & (x > 0.0) & (geocentric.rho > 0.0)
    x, y = x[kept], geocentric.rho[kept]
    if len(x):
        view = study_style.log_limits(np.concatenate([x, y]))
        _density(ax, x, y, view, view)
        ax.plot(view, view, color=style.BLACK, linewidth=0.8, linestyle="--")
        ax.set(xlim=view, ylim=view)
    ax.set_xlabel(r"$\rho_\mathrm{topocentric}\;a_\mathrm{Moon} / a_\mathrm{station}$ [au]")
    ax.set_ylabel(rf"collapsed geocentric {study_style.RHO} [au]")
    ax.set_title(f"(c) its cause, {study_style.count(len(x))}", loc="left")
    study_style.dress(ax)
