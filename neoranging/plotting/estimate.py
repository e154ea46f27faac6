"""An estimate among its rivals, inside the region that bounds them all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import astropy.units as u
import numpy as np

from neoranging.plotting import style
from neoranging.plotting.admissible_region import plot_admissible_region

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_RATE = u.au / u.day


class _EstimateLike(Protocol):
    """What the figure needs of an estimate."""

    method: str
    status: Any
    range: Any
    range_rate: Any
    attributable: Any


def plot_estimate(
    estimate: _EstimateLike, ax: Axes | None = None, *, log: bool = True, legend: bool = True
) -> Axes:
    """Draw the admissible region with every candidate and the chosen solution.

    Parameters
    ----------
    estimate : RangeEstimate
        The estimate of one tracklet. Its candidates and its uncertainty are drawn where it has
        them; one that failed is drawn as the region alone.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.
    log : bool
        Logarithmic range axis.
    legend : bool
        Draw the legend: below the axes of a new figure, inside axes that were given.

    Returns
    -------
    matplotlib.axes.Axes
        Its title names the method and the status.

    Raises
    ------
    MissingDependencyError
        If matplotlib is not installed.
    """
    own = ax is None
    region = estimate.attributable.admissible_region()
    ax = plot_admissible_region(region, ax=ax, log=log, legend=False)
    _draw_candidates(getattr(estimate, "candidates", None), ax)
    _draw_solution(estimate, ax)
    ax.set_title(_title(estimate))
    if legend:
        style.legend(ax, below=own)
    return ax


def _draw_candidates(candidates: Any, ax: Axes) -> None:
    """Mark the solutions that were not chosen: filled if admissible, hollow if not."""
    if candidates is None or not len(candidates):
        return
    rho = u.Quantity(candidates["range"]).to_value(u.au)
    rho_dot = u.Quantity(candidates["range_rate"]).to_value(_RATE)
    inside = np.asarray(candidates["admissible"], dtype=bool)
    rival = ~np.asarray(candidates["chosen"], dtype=bool)
    for mask, face, label in (
        (rival & inside, style.ORANGE, "candidate, admissible"),
        (rival & ~inside, "white", "candidate, not admissible"),
    ):
        if mask.any():
            ax.plot(
                rho[mask],
                rho_dot[mask],
                linestyle="none",
                marker="D",
                markersize=7,
                markerfacecolor=face,
                markeredgecolor=style.BLACK,
                label=label,
                zorder=4,
            )


def _draw_solution(estimate: _EstimateLike, ax: Axes) -> None:
    """Mark the chosen solution with its standard errors."""
    rho = u.Quantity(estimate.range).to_value(u.au)
    rho_dot = u.Quantity(estimate.range_rate).to_value(_RATE)
    if not np.isfinite([rho, rho_dot]).all():
        return
    errors = getattr(estimate, "uncertainty", None)
    bars = {}
    if errors is not None:
        bars = {
            "xerr": _error(errors.range, u.au),
            "yerr": _error(errors.range_rate, _RATE),
        }
    if bars.get("xerr") is not None and ax.get_xscale() == "log":
        # A bar through zero has no end on a logarithmic axis: stop it just inside the drawing.
        floor = 0.98 * rho
        bars["xerr"] = np.array([[min(bars["xerr"], floor)], [bars["xerr"]]])
    limits = ax.get_xlim(), ax.get_ylim()
    ax.errorbar(
        rho,
        rho_dot,
        **bars,
        color=style.VERMILION,
        marker="*",
        markersize=14,
        markeredgecolor=style.BLACK,
        capsize=3,
        linestyle="none",
        label="solution, 1 sigma" if bars else "solution",
        zorder=5,
    )
    _keep_in_view(ax, rho, rho_dot, limits)


def _keep_in_view(ax: Axes, rho: float, rho_dot: float, limits: Any) -> None:
    """Let the region and the solution, not a long error bar, set the limits of the axes."""
    (left, right), (bottom, top) = limits
    ax.set_xlim(min(left, 0.7 * rho), max(right, 1.4 * rho))
    margin = 0.05 * (top - bottom)
    ax.set_ylim(min(bottom, rho_dot - margin), max(top, rho_dot + margin))


def _error(value: Any, unit: u.UnitBase) -> Any:
    """A standard error as a number, or None if it is missing or infinite."""
    if value is None:
        return None
    number = float(u.Quantity(value).to_value(unit))
    return number if np.isfinite(number) else None


def _title(estimate: _EstimateLike) -> str:
    name = getattr(estimate.status, "name", str(estimate.status))
    return f"{estimate.method}: {name.replace('_', ' ').lower() if name != 'OK' else name}"
