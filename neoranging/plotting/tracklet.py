"""The arc of a tracklet on the sky, and what a parabola leaves of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import astropy.units as u
import numpy as np

from neoranging.constants import ARCSEC
from neoranging.core.attributable import plane_point
from neoranging.core.geometry import line_of_sight, sky_basis
from neoranging.plotting import style
from neoranging.typing import FloatArray

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from neoranging.tracklet import Tracklet


def plot_tracklet(tracklet: Tracklet, axes: Sequence[Axes] | None = None) -> tuple[Axes, Axes]:
    """Draw the arc on the tangent plane with the fitted parabola, and the residuals beside it.

    Parameters
    ----------
    tracklet : Tracklet
        Two or more observations of one object.
    axes : sequence of two matplotlib.axes.Axes, optional
        Where to draw arc and residuals; a new figure by default.

    Returns
    -------
    tuple of matplotlib.axes.Axes
        The sky (right ascension grows to the left, as one sees it), as offsets from the middle
        observation, and the residuals, observed minus fitted. The fit is that of
        `Tracklet.attributable`; with two epochs it is a straight line.

    Raises
    ------
    MissingDependencyError
        If matplotlib is not installed.
    """
    if axes is None:
        _, axes = style.pyplot().subplots(1, 2, figsize=(10.0, 4.4), layout="constrained")
    sky, below = axes
    days, offsets = _offsets(tracklet)
    residuals = tracklet.fit_residuals().to_value(u.arcsec)
    _draw_arc(sky, tracklet, days, offsets, offsets - residuals)
    _draw_residuals(below, days, residuals, tracklet.sigma.to_value(u.arcsec))
    return sky, below


def _offsets(tracklet: Tracklet) -> tuple[FloatArray, FloatArray]:
    """Days and offsets (east, north) [arcsec] from the middle observation."""
    ra, dec = tracklet.coord.ra.to_value(u.rad), tracklet.coord.dec.to_value(u.rad)
    days = (tracklet.obstime - tracklet.obstime[0]).to_value(u.day)
    middle = int(np.argmin(np.abs(days - 0.5 * days[-1])))
    east, north = sky_basis(ra[middle], dec[middle])
    pole = line_of_sight(ra[middle], dec[middle])
    frame = tuple(pole), tuple(east), tuple(north)
    offsets = np.array([plane_point(*frame, tuple(one)) for one in line_of_sight(ra, dec)])
    return days - days[middle], offsets / ARCSEC


def _draw_arc(
    ax: Axes, tracklet: Tracklet, days: FloatArray, offsets: FloatArray, fitted: FloatArray
) -> None:
    fine = np.linspace(days[0], days[-1], 200)
    # the fitted points lie on a parabola of this degree: with two epochs it is a line
    degree = min(2, len(np.unique(days)) - 1)
    east, north = (np.polynomial.Polynomial.fit(days, fitted[:, k], degree) for k in (0, 1))
    name = "fitted parabola" if degree == 2 else "fitted line"
    ax.plot(east(fine), north(fine), color=style.BLUE, linewidth=1.2, label=name, zorder=1)
    ax.plot(
        offsets[:, 0],
        offsets[:, 1],
        linestyle="none",
        marker="o",
        markersize=6,
        markerfacecolor=style.ORANGE,
        markeredgecolor=style.BLACK,
        label="observation",
    )
    ax.plot(
        *offsets[0],
        linestyle="none",
        marker="s",
        markersize=11,
        markerfacecolor="none",
        markeredgecolor=style.BLACK,
        label="first",
    )
    ax.set_aspect("equal", adjustable="datalim")
    ax.xaxis.set_inverted(True)
    ax.margins(0.12)
    ax.set_xlabel("east offset, RA cos(Dec) [arcsec]")
    ax.set_ylabel("north offset, Dec [arcsec]")
    start = tracklet.obstime[0].utc.strftime("%Y-%m-%d %H:%M UTC")
    ax.set_title(f"{tracklet.designation}, from {start}" if tracklet.designation else start)
    ax.grid(visible=True, color=style.GREY, alpha=0.25, linewidth=0.5)
    ax.legend(loc="best")


def _draw_residuals(ax: Axes, days: FloatArray, residuals: FloatArray, sigma: FloatArray) -> None:
    scale, unit = (24.0, "h") if np.ptp(days) > 0.125 else (1440.0, "min")
    # A small shift in time keeps the two error bars of an exposure apart.
    shift = 0.006 * np.ptp(days) * scale
    marks = (("east", "o", style.BLUE, -shift), ("north", "s", style.VERMILION, shift))
    for k, (name, marker, color, offset) in enumerate(marks):
        ax.errorbar(
            days * scale + offset,
            residuals[:, k],
            yerr=sigma[:, k],
            linestyle="none",
            marker=marker,
            markersize=6,
            color=color,
            markerfacecolor=color if k == 0 else "white",
            capsize=3,
            label=name,
        )
    ax.axhline(0.0, color=style.BLACK, linewidth=0.8)
    ax.set_xlabel(f"time from the middle observation [{unit}]")
    ax.set_ylabel("observed - fitted [arcsec]")
    ax.set_title("residuals, 1 sigma bars")
    ax.grid(visible=True, color=style.GREY, alpha=0.25, linewidth=0.5)
    ax.legend(loc="best")
