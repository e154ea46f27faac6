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
from neoranging.exceptions import EvaluationError
from neoranging.lab.sets.arcs import to_core
from neoranging.lab.study.figures import style as study_style
from neoranging.plotting import style
from neoranging.typing import FloatArray

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from neoranging.core.answers import Answers
    from neoranging.lab.sets.schema import ArcTable


class _Body(NamedTuple):
    name: str
    color: str
    line: Any
    marker: str
    size: float


_BODIES: Final = (
    _Body("Earth", style.GREY, (0, (1, 1)), "P", 6.0),
    _Body("pseudo-true orbit", style.BLACK, "solid", "o", 8.0),
    _Body("estimated orbit", style.VERMILION, (0, (4, 1.5)), "s", 4.5),
)

_NEAR: Final = 1.0
"""True anomaly up to which a path is drawn boldly on either side of the body [rad]."""

_FARTHEST: Final = 4.5
"""Half the edge of the largest view [au]; orbits may leave it."""

_SIDE: Final = 0.35
"""Height of the view from the side, in that of the view from the north."""


def plot_orbits(
    table: ArcTable,
    scored: Sequence[pd.DataFrame],
    predictions: Sequence[Answers],
    fig: Figure | None = None,
) -> Figure:
    """Draw the median and the best orbit of each method by its D from the pseudo-truth.

    Parameters
    ----------
    table : ArcTable
        The M arcs, with what `neoranging.lab.study.scores.score` needs and ``t2_mjd_tdb``.
    scored : sequence of DataFrame
        Methods on these arcs, a row each.
    predictions : sequence of Answers
        Of the same methods in the same order: the states that the orbits come from.
    fig : matplotlib.figure.Figure, optional
        Where to draw; a new one by default.

    Returns
    -------
    matplotlib.figure.Figure
        Each panel shows the ecliptic from its north, the Sun in the middle, and below it from the
        side; marks are where the bodies were. The heading tells D, object, epoch and length of arc.

    Raises
    ------
    EvaluationError
        If scores and predictions do not belong together, or a method has no elliptic orbit.
    MissingDependencyError
        If matplotlib is not installed.
    """
    _check(table, scored, predictions)
    with study_style.print_size():
        fig = study_style.figure_or_new(fig, study_style.TWO_COLUMNS, 0.4 + 4.4 * len(scored))
        ratios = [1.0, _SIDE] * len(scored)
        axes = fig.subplots(2 * len(scored), 2, height_ratios=ratios, squeeze=False)
        for k, (each, found) in enumerate(zip(scored, predictions, strict=True)):
            for column, (name, arc) in enumerate(_ranked(each).items()):
                pair = axes[2 * k, column], axes[2 * k + 1, column]
                _draw_arc(pair, _states(table, each, found, arc))
                pair[0].set_title(_words(table, each, name, arc))
        handles, labels = axes[0, 0].get_legend_handles_labels()
        fig.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    return fig


def _check(table: ArcTable, scored: Sequence[pd.DataFrame], predictions: Sequence[Answers]) -> None:
    judged, asked = [s.attrs["method"] for s in scored], [p.method for p in predictions]
    lengths = {len(table), *map(len, scored), *map(len, predictions)}
    if not judged or judged != asked or len(lengths) > 1:
        raise EvaluationError(
            f"scores are of {judged}, predictions of {asked}, for a table of {len(table)} "
            "arcs: give both of the same methods and arcs, in the same order"
        )


def _ranked(scored: pd.DataFrame) -> dict[str, int]:
    """Arcs with the median and the least D."""
    known = np.flatnonzero(np.isfinite(scored.d_sh_pseudo))
    if not len(known):
        raise EvaluationError(f"{scored.attrs['method']!r} has no elliptic orbit to draw")
    order = known[np.argsort(scored.d_sh_pseudo[known], kind="stable")]
    return {"median": int(order[len(order) // 2]), "best": int(order[0])}


def _states(
    table: ArcTable, scored: pd.DataFrame, found: Answers, arc: int
) -> list[tuple[FloatArray, FloatArray]]:
    """Ecliptic states of the Earth, the pseudo-truth and the estimate, each of shape (1, 3)."""
    rows = [arc]
    a = from_fit(to_core(table.take(rows), scored.attrs["origin"]))
    true = object_state(
        a.ra,
        a.dec,
        a.ra_rate,
        a.dec_rate,
        a.position,
        a.velocity,
        scored.rho_true[rows].to_numpy(),
        scored.rho_dot_true[rows].to_numpy(),
    )
    states = ephemeris.earth_state(table["t2_mjd_tdb"][rows]), true, (found.r[rows], found.v[rows])
    return [(equatorial_to_ecliptic(r), equatorial_to_ecliptic(v)) for r, v in states]


def _draw_arc(pair: tuple[Axes, Axes], states: Sequence[tuple[FloatArray, FloatArray]]) -> None:
    """Paths of the bodies from the north and from the side."""
    extent = []
    for body, (r, v) in zip(_BODIES, states, strict=True):
        near, whole = _paths(r, v)
        extent.append(whole)
        for ax, axis in zip(pair, (1, 2), strict=True):
            line = {"color": body.color, "linestyle": body.line}
            ax.plot(whole[:, 0], whole[:, axis], linewidth=0.5, alpha=0.7, **line)
            ax.plot(near[:, 0], near[:, axis], linewidth=1.5, **line)
            ax.plot(
                r[0, 0],
                r[0, axis],
                marker=body.marker,
                markersize=body.size,
                markeredgecolor="white",
                markeredgewidth=0.5,
                linewidth=1.5,
                label=body.name,
                zorder=5,
                **line,
            )
    _finish(pair, np.concatenate(extent))


def _paths(r: FloatArray, v: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Points of an ellipse about the body and all around, each of shape (n, 3)."""
    q, ecc, inc, raan, argp, nu, _ = state_to_elements(r, v)
    near, _ = elements_to_state(q, ecc, inc, raan, argp, nu + np.linspace(-_NEAR, _NEAR, 121))
    whole, _ = elements_to_state(q, ecc, inc, raan, argp, np.linspace(-np.pi, np.pi, 361))
    return near, whole


def _words(table: ArcTable, scored: pd.DataFrame, name: str, arc: int) -> str:
    utc = Time(table["t2_mjd_tdb"][arc], format="mjd", scale="tdb").utc
    return (
        f"{scored.attrs['method']}, {name}: {study_style.D_SH} = {scored.d_sh_pseudo[arc]:.2g}\n"
        f"{table['designation'][arc]}, {utc.strftime('%Y-%m-%d %H:%M')} UTC, "
        f"arc {24.0 * scored.span[arc]:.2f} h"
    )


def _finish(pair: tuple[Axes, Axes], points: FloatArray) -> None:
    """Give both views the same scale, as wide as the orbits are."""
    low, high = points.min(axis=0), points.max(axis=0)
    half = min(0.54 * float((high - low)[:2].max()), _FARTHEST)
    centre = 0.5 * (low + high)
    centre[:2] = np.clip(centre[:2], 1.1 - half, half - 1.1)  # the orbit of the Earth stays in view
    centre[2] = np.clip(centre[2], -0.8 * _SIDE * half, 0.8 * _SIDE * half)
    for ax, axis, height in zip(pair, (1, 2), (half, _SIDE * half), strict=True):
        ax.plot(
            0.0,
            0.0,
            marker="*",
            markersize=9,
            color=style.ORANGE,
            markeredgecolor=style.BLACK,
            markeredgewidth=0.4,
            linestyle="none",
            label="Sun",
            zorder=4,
        )
        ax.set_aspect("equal", adjustable="box")
        ax.set_xlim(centre[0] - half, centre[0] + half)
        ax.set_ylim(centre[axis] - height, centre[axis] + height)
        ax.set_ylabel(f"${'xyz'[axis]}$ [au]")
        study_style.dress(ax)
    pair[0].tick_params(labelbottom=False)
    pair[1].set_xlabel("$x$ [au]")
