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
from neoranging.plotting import style
from neoranging.typing import FloatArray

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from neoranging.core.answers import Answers
    from neoranging.lab.sets.schema import ArcTable

    State = tuple[FloatArray, FloatArray]


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


@style.print_size()
def plot_orbits(
    table: ArcTable, scored: Sequence[pd.DataFrame], answers: Sequence[Answers]
) -> Figure:
    """Draw the median and the best orbit of each method by its D from the pseudo-truth.

    Parameters
    ----------
    table : ArcTable
        The M arcs, with what `neoranging.lab.study.scores.score` needs and ``t2_mjd_tdb``.
    scored : sequence of DataFrame
        Scores of methods on these arcs, a row of panels each.
    answers : sequence of Answers
        Of the same methods in the same order: the states that the orbits come from.

    Returns
    -------
    matplotlib.figure.Figure
        Each panel shows the ecliptic from its north, the Sun in the middle, and below it from the
        side; marks are where the bodies were. The heading tells D, object, epoch and length of arc.

    Raises
    ------
    EvaluationError
        If scores and answers do not belong together, or a method has no elliptic orbit.
    """
    of_scores, of_answers = [s.attrs["method"] for s in scored], [a.method for a in answers]
    lengths = {len(table), *map(len, scored), *map(len, answers)}
    if not of_scores or of_scores != of_answers or len(lengths) > 1:
        raise EvaluationError(
            f"scores are of {of_scores}, answers of {of_answers}, for a table of {len(table)} "
            "arcs: give both of the same methods and arcs, in the same order"
        )
    fig = style.new_figure(style.TWO_COLUMNS, 0.4 + 4.4 * len(scored))
    ratios = [1.0, _SIDE] * len(scored)
    axes = fig.subplots(2 * len(scored), 2, height_ratios=ratios, squeeze=False)
    for k, (scores, solved) in enumerate(zip(scored, answers, strict=True)):
        for column, (name, arc) in enumerate(_ranked(scores).items()):
            views = axes[2 * k, column], axes[2 * k + 1, column]
            _draw_arc(views, _states(table, scores, solved, arc))
            utc = Time(table["t2_mjd_tdb"][arc], format="mjd", scale="tdb").utc
            views[0].set_title(
                f"{scores.attrs['method']}, {name}: {style.D_SH} = {scores.d_sh_pseudo[arc]:.2g}\n"
                f"{table['designation'][arc]}, {utc.strftime('%Y-%m-%d %H:%M')} UTC, "
                f"arc {24.0 * scores.span[arc]:.2f} h"
            )
    style.figure_legend(fig, axes[0, 0], "outside lower center")
    return fig


def _ranked(scored: pd.DataFrame) -> dict[str, int]:
    """Arcs with the median and the least D."""
    distance = scored.d_sh_pseudo.to_numpy()
    elliptic = np.flatnonzero(np.isfinite(distance))
    if not len(elliptic):
        raise EvaluationError(f"{scored.attrs['method']!r} has no elliptic orbit to draw")
    order = elliptic[np.argsort(distance[elliptic], kind="stable")]
    return {"median": int(order[len(order) // 2]), "best": int(order[0])}


def _states(table: ArcTable, scored: pd.DataFrame, answers: Answers, arc: int) -> list[State]:
    """Ecliptic states of the Earth, the pseudo-truth and the estimate, each of shape (1, 3)."""
    a = from_fit(to_core(table.take([arc]), scored.attrs["origin"]))
    rho, rho_dot = (scored[name].to_numpy()[[arc]] for name in ("rho_true", "rho_dot_true"))
    states = (
        ephemeris.earth_state(table["t2_mjd_tdb"][[arc]]),
        object_state(a.ra, a.dec, a.ra_rate, a.dec_rate, a.position, a.velocity, rho, rho_dot),
        (answers.r[[arc]], answers.v[[arc]]),
    )
    return [(equatorial_to_ecliptic(r), equatorial_to_ecliptic(v)) for r, v in states]


def _draw_arc(views: tuple[Axes, Axes], states: Sequence[State]) -> None:
    """Draw paths of the bodies from the north and from the side, both at the same scale."""
    paths = []
    for body, (r, v) in zip(_BODIES, states, strict=True):
        q, ecc, inc, raan, argp, nu, _ = state_to_elements(r, v)
        about_body, all_round = (
            nu + np.linspace(-_NEAR, _NEAR, 121),
            np.linspace(-np.pi, np.pi, 361),
        )
        near, ellipse = (
            elements_to_state(q, ecc, inc, raan, argp, anomaly)[0]
            for anomaly in (about_body, all_round)
        )
        paths.append(ellipse)
        for ax, axis in zip(views, (1, 2), strict=True):
            line = {"color": body.color, "linestyle": body.line}
            ax.plot(ellipse[:, 0], ellipse[:, axis], linewidth=0.5, alpha=0.7, **line)
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
    points = np.concatenate(paths)
    low, high = points.min(axis=0), points.max(axis=0)
    half = min(0.54 * float((high - low)[:2].max()), _FARTHEST)
    centre = 0.5 * (low + high)
    centre[:2] = np.clip(centre[:2], 1.1 - half, half - 1.1)  # the orbit of the Earth stays in view
    centre[2] = np.clip(centre[2], -0.8 * _SIDE * half, 0.8 * _SIDE * half)
    for ax, axis, height in zip(views, (1, 2), (half, _SIDE * half), strict=True):
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
        style.dress(
            ax,
            xlim=(centre[0] - half, centre[0] + half),
            ylim=(centre[axis] - height, centre[axis] + height),
            ylabel=f"${'xyz'[axis]}$ [au]",
        )
    views[0].tick_params(labelbottom=False)
    views[1].set_xlabel("$x$ [au]")
