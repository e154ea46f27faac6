"""Orbits of estimates beside those of the truth: the best and the median of each method."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from astropy.time import Time

from neoranging import ephemeris
from neoranging.core.attributable import from_fit
from neoranging.core.elements import elements_to_state, state_to_elements
from neoranging.core.geometry import equatorial_to_ecliptic
from neoranging.core.prediction import object_state
from neoranging.datasets.arcs import to_core
from neoranging.exceptions import EvaluationError
from neoranging.plotting import study_style, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from neoranging.core.geometry import FloatArray
    from neoranging.datasets.schema import ArcTable
    from neoranging.evaluation.predictions import Predictions
    from neoranging.evaluation.scores import ScoredArcs

__all__ = ["plot_orbits"]


class _Body(NamedTuple):
    name: str
    color: str
    line: Any
    marker: str


_BODIES: Final = (
    _Body("Earth", style.GREY, (0, (1, 1)), "P"),
    _Body("pseudo-true orbit", style.BLACK, "solid", "o"),
    _Body("estimated orbit", style.VERMILION, (0, (4, 1.5)), "s"),
)

_SHOWN: Final = 0.3
"""Part of a period drawn boldly on either side of the body."""


def plot_orbits(
    table: ArcTable,
    scored: Sequence[ScoredArcs],
    predictions: Sequence[Predictions],
    fig: Figure | None = None,
) -> Figure:
    """Draw the median and the best orbit of each method by its D from the pseudo-truth.

    Parameters
    ----------
    table : ArcTable
        The M arcs, with what `neoranging.evaluation.scores.score` needs and ``t2_mjd_tdb``.
    scored : sequence of ScoredArcs
        Methods on these arcs, a row each.
    predictions : sequence of Predictions
        Of the same methods in the same order: the states that the orbits come from.
    fig : matplotlib.figure.Figure, optional
        Where to draw; a new one by default.

    Returns
    -------
    matplotlib.figure.Figure
        Each panel shows the ecliptic from its north, the Sun in the middle, and below it from the
        side; marks are where the bodies were. The box tells object, epoch, length of arc, D.

    Raises
    ------
    EvaluationError
        If scores and predictions do not belong together, or a method has no elliptic orbit.
    MissingDependencyError
        If matplotlib is not installed.
    """
    _check(table, scored, predictions)
    with study_style.print_size():
        fig = study_style.figure_or_new(fig, study_style.TWO_COLUMNS, 4.4 * len(scored))
        axes = fig.subplots(
            2 * len(scored), 2, height_ratios=[3.0, 1.0] * len(scored), squeeze=False
        )
        for k, (each, found) in enumerate(zip(scored, predictions, strict=True)):
            for column, (name, arc) in enumerate(_ranked(each).items()):
                pair = axes[2 * k, column], axes[2 * k + 1, column]
                _draw_arc(pair, table, each, found, arc)
                pair[0].set_title(f"{each.method}: {name} of {study_style.D_SH}")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        fig.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    return fig


def _check(
    table: ArcTable, scored: Sequence[ScoredArcs], predictions: Sequence[Predictions]
) -> None:
    labels = [[each.method for each in group] for group in (scored, predictions)]
    if labels[0] != labels[1] or any(len(x) != len(table) for x in (*scored, *predictions)):
        raise EvaluationError(
            f"scores are of {labels[0]}, predictions of {labels[1]}, for a table of {len(table)} "
            "arcs: give both of the same methods and arcs, in the same order"
        )


def _ranked(scored: ScoredArcs) -> dict[str, int]:
    """Arcs with the median and the least D."""
    known = np.flatnonzero(np.isfinite(scored.d_sh_pseudo))
    if not len(known):
        raise EvaluationError(f"{scored.method!r} has no elliptic orbit to draw")
    order = known[np.argsort(scored.d_sh_pseudo[known], kind="stable")]
    return {"median": int(order[len(order) // 2]), "best": int(order[0])}


def _states(
    table: ArcTable, scored: ScoredArcs, found: Predictions, arc: int
) -> list[tuple[FloatArray, FloatArray]]:
    """Ecliptic states of the Earth, the pseudo-truth and the estimate, each of shape (1, 3)."""
    rows = [arc]
    a = from_fit(to_core(table.take(rows), scored.origin))
    true = object_state(
        a.ra,
        a.dec,
        a.ra_rate,
        a.dec_rate,
        a.position,
        a.velocity,
        scored.rho_true[rows],
        scored.rho_dot_true[rows],
    )
    states = ephemeris.earth_state(table["t2_mjd_tdb"][rows]), true, (found.r[rows], found.v[rows])
    return [(equatorial_to_ecliptic(r), equatorial_to_ecliptic(v)) for r, v in states]


def _draw_arc(
    pair: tuple[Axes, Axes], table: ArcTable, scored: ScoredArcs, found: Predictions, arc: int
) -> None:
    for body, (r, v) in zip(_BODIES, _states(table, scored, found, arc), strict=True):
        near, whole = _paths(r, v)
        for ax, axis in zip(pair, (1, 2), strict=True):
            ax.plot(whole[:, 0], whole[:, axis], color=body.color, linewidth=0.4, alpha=0.6)
            ax.plot(near[:, 0], near[:, axis], color=body.color, linestyle=body.line, linewidth=1.3)
            ax.plot(
                r[0, 0],
                r[0, axis],
                color=body.color,
                marker=body.marker,
                markersize=5,
                markeredgecolor="white",
                markeredgewidth=0.4,
                linestyle=body.line,
                label=body.name,
                zorder=5,
            )
    _finish(pair, _words(table, scored, arc))


def _paths(r: FloatArray, v: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Points of an ellipse about the body and all around, each of shape (n, 3)."""
    *orbit, nu, _ = (x[0] for x in state_to_elements(r, v))
    turn = np.linspace(-np.pi, np.pi, 361)
    whole, _ = elements_to_state(*orbit, turn)
    near, _ = elements_to_state(*orbit, nu + 2.0 * _SHOWN * turn[90:271])
    return near, whole


def _words(table: ArcTable, scored: ScoredArcs, arc: int) -> str:
    utc = Time(table["t2_mjd_tdb"][arc], format="mjd", scale="tdb").utc
    return (
        f"{table['designation'][arc]}\n{utc.strftime('%Y-%m-%d %H:%M')} UTC\n"
        rf"arc {24.0 * scored.span[arc]:.2f} h\n{study_style.D_SH} = {scored.d_sh_pseudo[arc]:.2g}"
    )


def _finish(pair: tuple[Axes, Axes], words: str) -> None:
    for ax, name in zip(pair, "yz", strict=True):
        ax.plot(
            0.0,
            0.0,
            marker="*",
            markersize=9,
            color=style.ORANGE,
            markeredgecolor="black",
            markeredgewidth=0.4,
            linestyle="none",
            label="Sun",
        )
        ax.set_aspect("equal", adjustable="datalim")
        ax.set_ylabel(f"${name}$ [au]")
        study_style.dress(ax)
    pair[1].set_xlabel("$x$ [au]")
    pair[0].annotate(
        words,
        (0.03, 0.97),
        xycoords="axes fraction",
        va="top",
        fontsize=study_style.SMALL,
        bbox={"boxstyle": "round,pad=0.3", "facecolor": "white", "edgecolor": style.GREY},
    )
