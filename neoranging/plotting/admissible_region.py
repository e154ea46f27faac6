"""The admissible region in the plane of range and range-rate."""

from __future__ import annotations

from typing import TYPE_CHECKING

import astropy.units as u
import numpy as np

from neoranging.core.admissible import earth_bound_range, escape_rate
from neoranging.plotting import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from neoranging.admissible_region import AdmissibleRegion

_RATE = u.au / u.day


def plot_admissible_region(
    region: AdmissibleRegion,
    ax: Axes | None = None,
    *,
    log: bool = True,
    n: int = 300,
    color: str = style.SKY_BLUE,
    label: str | None = "admissible region",
    show_earth_bound: bool = True,
    legend: bool = True,
) -> Axes:
    """Draw an admissible region, filled and outlined.

    Parameters
    ----------
    region : AdmissibleRegion
        The region; an empty one is drawn as text.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.
    log : bool
        Logarithmic range axis.
    n : int
        Points along each stretch of the boundary.
    color : str
        Colour of the filling.
    label : str, optional
        Name in the legend.
    show_earth_bound : bool
        Hatch the orbits bound to the Earth, which the region leaves out.
    legend : bool
        Draw the legend: below the axes of a new figure, inside axes that were given.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    MissingDependencyError
        If matplotlib is not installed.
    """
    own = ax is None
    ax = style.axes_or_new(ax)
    style.range_plane(ax, log=log)
    if region.is_empty:
        ax.text(0.5, 0.5, "the admissible region is empty", ha="center", transform=ax.transAxes)
        return ax
    for curve in region.boundary(n):
        rho, rho_dot = curve.range.to_value(u.au), curve.range_rate.to_value(_RATE)
        ax.fill(rho, rho_dot, facecolor=color, alpha=0.35, edgecolor="none", label=label)
        ax.plot(rho, rho_dot, color=style.BLUE, linewidth=1.2)
        label = None
    if show_earth_bound:
        _hatch_earth_bound(region, ax, n)
    if legend:
        style.legend(ax, below=own)
    return ax


def _hatch_earth_bound(region: AdmissibleRegion, ax: Axes, n: int) -> None:
    """Hatch what the Earth's gravity takes out of the strip bound to the Sun."""
    c = region.coefficients
    label: str | None = "bound to the Earth"
    for near, far in region.components.to_value(u.au):
        end = min(float(earth_bound_range(c)), far)
        if end <= near:
            continue
        rho = np.geomspace(near, end, n)
        rho[-1] = end
        low, high = (edge.to_value(_RATE) for edge in region.range_rate_limits(rho * u.au))
        escape = escape_rate(c, rho)
        lower, upper = np.fmax(low, -escape), np.fmin(high, escape)
        ax.fill_between(
            rho,
            lower,
            upper,
            where=upper >= lower,
            facecolor="none",
            edgecolor=style.GREY,
            hatch="////",
            linewidth=0.0,
            label=label,
        )
        label = None
