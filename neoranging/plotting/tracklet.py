"""The arc of a tracklet on the sky, and what a parabola leaves of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import astropy.units as u
import numpy as np

from neoranging.constants import ARCSEC
from neoranging.core.attributable import logarithm
from neoranging.core.geometry import line_of_sight, sky_basis
from neoranging.plotting import style

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt
    from astropy.coordinates import SkyCoord
    from astropy.time import Time
    from matplotlib.axes import Axes

    FloatArray = npt.NDArray[np.float64]


class _TrackletLike(Protocol):
    """What the figure needs of a tracklet."""

    obstime: Time
    coord: SkyCoord
    sigma: u.Quantity
    designation: str


def plot_tracklet(tracklet: _TrackletLike, axes: Sequence[Axes] | None = None) -> tuple[Axes, Axes]:
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
        The sky (right ascension grows to the left, as one sees it) and the residuals, observed
        minus fitted. The parabola, weighted by the observations' errors, is fitted to offsets from
        the middle observation; two epochs leave a straight line.

    Raises
    ------
    MissingDependencyError
        If matplotlib is not installed.
    """
    if axes is None:
        _, axes = style.pyplot().subplots(1, 2, figsize=(10.0, 4.4), layout="constrained")
    sky, below = axes
    days, offsets, sigma = _offsets(tracklet)
    fits = _parabolas(days, offsets, sigma)
    _draw_arc(sky, tracklet, days, offsets, fits)
    _draw_residuals(below, days, offsets, sigma, fits)
    return sky, below


def _offsets(tracklet: _TrackletLike) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Days from the middle observation, offsets (east, north) and errors [arcsec], in order."""
    order = np.argsort(tracklet.obstime.mjd)
    coord, time = tracklet.coord[order], tracklet.obstime[order]
    ra, dec = coord.ra.to_value(u.rad), coord.dec.to_value(u.rad)
    middle = int(np.argmin(np.abs(time.mjd - 0.5 * (time.mjd[0] + time.mjd[-1]))))
    days = (time - time[middle]).to_value(u.day)
    pole = line_of_sight(ra[middle], dec[middle])
    east, north = sky_basis(ra[middle], dec[middle])
    offsets = logarithm(pole, east, north, line_of_sight(ra, dec)) / ARCSEC
    sigma = u.Quantity(tracklet.sigma).to_value(u.arcsec)[order]
    return days, offsets, sigma


def _parabolas(days: FloatArray, offsets: FloatArray, sigma: FloatArray) -> list[Any]:
    """Weighted polynomial in time for each coordinate, at most of second degree."""
    degree = min(2, len(np.unique(days)) - 1)
    span = [float(days[0]), float(days[-1])] if days[-1] > days[0] else None
    return [
        np.polynomial.Polynomial.fit(days, offsets[:, k], degree, domain=span, w=1.0 / sigma[:, k])
        for k in (0, 1)
    ]


def _draw_arc(
    ax: Axes, tracklet: _TrackletLike, days: FloatArray, offsets: FloatArray, fits: list[Any]
) -> None:
    fine = np.linspace(days[0], days[-1], 200)
    name = "fitted parabola" if fits[0].degree() == 2 else "fitted line"
    ax.plot(fits[0](fine), fits[1](fine), color=style.BLUE, linewidth=1.2, label=name, zorder=1)
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
    start = tracklet.obstime[int(np.argmin(tracklet.obstime.mjd))]
    ax.set_title(f"{tracklet.designation}, from {start.utc.strftime('%Y-%m-%d %H:%M')} UTC")
    ax.grid(visible=True, color=style.GREY, alpha=0.25, linewidth=0.5)
    ax.legend(loc="best")


def _draw_residuals(
    ax: Axes, days: FloatArray, offsets: FloatArray, sigma: FloatArray, fits: list[Any]
) -> None:
    scale, unit = (24.0, "h") if np.ptp(days) > 0.125 else (1440.0, "min")
    # A small shift in time keeps the two error bars of an exposure apart.
    shift = 0.006 * np.ptp(days) * scale
    marks = (("east", "o", style.BLUE, -shift), ("north", "s", style.VERMILION, shift))
    for k, (name, marker, color, offset) in enumerate(marks):
        ax.errorbar(
            days * scale + offset,
            offsets[:, k] - fits[k](days),
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
