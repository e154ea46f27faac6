"""An estimate among its rivals, inside the region that bounds them all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import astropy.units as u
import numpy as np

from neoranging.core.status import RangeStatus
from neoranging.exceptions import EstimationError
from neoranging.plotting import style
from neoranging.plotting.admissible_region import plot_admissible_region

if TYPE_CHECKING:
    from astropy.table import QTable
    from matplotlib.axes import Axes

    from neoranging.estimate import RangeEstimate

_RATE = u.au / u.day


def plot_estimate(
    estimate: RangeEstimate, ax: Axes | None = None, *, log: bool = True, legend: bool = True
) -> Axes:
    """Draw the admissible region with every candidate and the chosen solution.

    Parameters
    ----------
    estimate : RangeEstimate
        The estimate of one tracklet. Its candidates and its standard errors are drawn where it
        has them; one without a number is drawn as the region alone.
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
    EstimationError
        If the estimate is of many tracklets.
    MissingDependencyError
        If matplotlib is not installed.
    """
    if estimate.range.shape:
        msg = f"one figure shows one estimate, got {len(estimate)}: index it first, estimate[0]"
        raise EstimationError(msg, estimate)
    own = ax is None
    region = estimate.attributable.admissible_region()
    ax = plot_admissible_region(region, ax=ax, log=log, legend=False)
    _draw_candidates(estimate.candidates, ax)
    _draw_solution(estimate, ax)
    status = estimate.status
    verdict = "OK" if status is RangeStatus.OK else status.name.replace("_", " ").lower()
    ax.set_title(f"{estimate.method}, {estimate.origin}: {verdict}")
    if legend:
        style.legend(ax, below=own)
    return ax


def _draw_candidates(candidates: QTable, ax: Axes) -> None:
    """Mark the solutions that were not chosen: filled if admissible, hollow if not."""
    if not len(candidates):
        return
    rho = candidates["range"].to_value(u.au)
    rho_dot = candidates["range_rate"].to_value(_RATE)
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


def _draw_solution(estimate: RangeEstimate, ax: Axes) -> None:
    """Mark the chosen solution with its standard errors."""
    rho, rho_dot = estimate.range.to_value(u.au), estimate.range_rate.to_value(_RATE)
    if not np.isfinite([rho, rho_dot]).all():
        return
    errors = {
        "xerr": np.full((2, 1), estimate.range_error.to_value(u.au)),
        "yerr": np.full((2, 1), estimate.range_rate_error.to_value(_RATE)),
    }
    bars: dict[str, Any] = {k: error for k, error in errors.items() if np.isfinite(error).all()}
    if "xerr" in bars and ax.get_xscale() == "log":
        # A bar through zero has no end on a logarithmic axis: let it run far out of view.
        bars["xerr"][0] = np.minimum(bars["xerr"][0], (1.0 - 1e-9) * rho)
    (near, far), (lowest, highest) = ax.get_xlim(), ax.get_ylim()
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
    # The region and the marks, not a long error bar, set the limits of the axes.
    ax.set_xlim(min(near, 0.7 * rho), max(far, 1.4 * rho))
    margin = 0.05 * (highest - lowest)
    ax.set_ylim(min(lowest, rho_dot - margin), max(highest, rho_dot + margin))
