"""An estimate with its posterior and its rivals, inside the region that bounds them all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import astropy.units as u
import numpy as np

from neoranging.core.status import RangeStatus
from neoranging.exceptions import EstimationError
from neoranging.plotting import style
from neoranging.plotting.admissible_region import plot_admissible_region
from neoranging.plotting.posterior import (
    draw_marginals,
    draw_posterior,
    follow,
    plane_with_marginals,
)

if TYPE_CHECKING:
    from astropy.table import QTable
    from matplotlib.axes import Axes

    from neoranging.estimate import RangeEstimate

_RATE = u.au / u.day


def plot_estimate(
    estimate: RangeEstimate,
    ax: Axes | None = None,
    *,
    log: bool = True,
    legend: bool = True,
    truth: tuple[u.Quantity, u.Quantity] | None = None,
    zoom: bool | None = None,
) -> Axes:
    """Draw the admissible region with the posterior, every candidate and the chosen solution.

    Parameters
    ----------
    estimate : RangeEstimate
        The estimate of one tracklet. Its posterior, or its candidates and its standard errors, are
        drawn where it has them; one without a number is drawn as the region alone.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.
    log : bool
        Logarithmic range axis.
    legend : bool
        Draw the legend: below the axes of a new figure, inside axes that were given.
    truth : tuple of 2 Quantity, optional
        Range and range-rate that are known from elsewhere, to be marked.
    zoom : bool, optional
        Show the posterior only, not the whole region: by default where it would be a speck.

    Returns
    -------
    matplotlib.axes.Axes
        The plane. A new figure of a posterior has two more axes that share its own: above it the
        density in ln rho and beside it that in range-rate, with the parts of highest density
        shaded that hold 68 and 95 %. The title names the method and the status.

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
    own, top = ax is None, ax
    region = estimate.attributable.admissible_region()
    posterior = estimate._answers.posterior
    if posterior is not None and not posterior.has_any[0]:
        posterior = None
    if own and posterior is not None:
        ax, top, beside = plane_with_marginals()
        draw_marginals(posterior, top, beside)
    ax = plot_admissible_region(region, ax=ax, log=log, legend=False)
    if posterior is not None:
        draw_posterior(posterior, ax)
    _draw_candidates(estimate.candidates, ax)
    _draw_solution(estimate, ax, bars=posterior is None)
    if truth is not None:
        ax.plot(
            truth[0].to_value(u.au),
            truth[1].to_value(_RATE),
            color=style.GREEN,
            marker="X",
            markersize=11,
            markeredgecolor=style.BLACK,
            linestyle="none",
            label="truth",
            zorder=6,
        )
    if posterior is not None:
        follow(posterior, ax, zoom)
    status = estimate.status
    verdict = "OK" if status is RangeStatus.OK else status.name.replace("_", " ").lower()
    (top or ax).set_title(f"{estimate.method}, {estimate.origin}: {verdict}")
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


def _draw_solution(estimate: RangeEstimate, ax: Axes, bars: bool) -> None:
    """Mark the chosen solution, with its standard errors if asked for."""
    rho, rho_dot = estimate.range.to_value(u.au), estimate.range_rate.to_value(_RATE)
    if not np.isfinite([rho, rho_dot]).all():
        return
    errors = {
        "xerr": np.full((2, 1), estimate.range_error.to_value(u.au)),
        "yerr": np.full((2, 1), estimate.range_rate_error.to_value(_RATE)),
    }
    ends: dict[str, Any] = {k: x for k, x in errors.items() if bars and np.isfinite(x).all()}
    if "xerr" in ends and ax.get_xscale() == "log":
        # A bar through zero has no end on a logarithmic axis: let it run far out of view.
        ends["xerr"][0] = np.minimum(ends["xerr"][0], (1.0 - 1e-9) * rho)
    (near, far), (lowest, highest) = ax.get_xlim(), ax.get_ylim()
    ax.errorbar(
        rho,
        rho_dot,
        **ends,
        color=style.VERMILION,
        marker="*",
        markersize=14,
        markeredgecolor=style.BLACK,
        capsize=3,
        linestyle="none",
        label="solution, 1 sigma" if ends else "solution",
        zorder=5,
    )
    # The region and the marks, not a long error bar, set the limits of the axes.
    ax.set_xlim(min(near, 0.7 * rho), max(far, 1.4 * rho))
    margin = 0.05 * (highest - lowest)
    ax.set_ylim(min(lowest, rho_dot - margin), max(highest, rho_dot + margin))
