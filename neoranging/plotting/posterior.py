"""A posterior in the plane of range and range-rate: its shading, its contours, its marginals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neoranging.core.posterior import Posterior
from neoranging.plotting import style
from neoranging.typing import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEVELS: Final = (0.95, 0.68)
"""Shares of the probability within the contours and in the shaded parts of the marginals."""

_LINES: Final = {0.95: ":", 0.68: "-"}
_SHADES: Final = {0.95: 0.25, 0.68: 0.6}

_PIXELS: Final = 220
_LEFT_OUT: Final = 5e-4
"""Share of the probability beyond each side of what is drawn."""

_SMALL: Final = 0.08
"""Part of an axis below which a posterior would be a speck: the view follows it."""


def extent(posterior: Posterior) -> tuple[FloatArray, FloatArray]:
    """Ends in ln rho and in range-rate of nearly all of the posterior of one arc."""
    shares = np.array([_LEFT_OUT, 1.0 - _LEFT_OUT])
    ends = np.log(posterior.quantile(shares)[0]), posterior.rate_quantile(shares)[0]
    margin = np.array([-0.15, 0.15])
    return ends[0] + margin * np.diff(ends[0]), ends[1] + margin * np.diff(ends[1])


def draw_posterior(posterior: Posterior, ax: Axes) -> None:
    """Shade the density in (ln rho, rho_dot) and draw its contours, each with its own line."""
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.lines import Line2D

    x, rate = (np.linspace(low, high, _PIXELS + 1) for low, high in extent(posterior))
    middle, height = 0.5 * (x[1:] + x[:-1]), 0.5 * (rate[1:] + rate[:-1])
    log_rho, rho_dot = np.meshgrid(middle, height)
    density = np.exp(posterior.log_pdf(np.exp(log_rho)[None], rho_dot[None])[0])
    shades = LinearSegmentedColormap.from_list("shades", [f"{style.BLUE}00", style.BLUE])
    ax.pcolormesh(np.exp(x), rate, density, cmap=shades, vmin=0.0, rasterized=True, zorder=2)
    heights = np.sort(density.ravel())[::-1]
    held = np.cumsum(heights) / heights.sum()
    levels = [float(heights[np.searchsorted(held, share)]) for share in LEVELS]
    if levels[0] < levels[1]:  # a level density has no contours
        lines = [_LINES[share] for share in LEVELS]
        ax.contour(
            np.exp(middle), height, density, levels, colors=style.BLACK, linestyles=lines, zorder=3
        )
        for share in LEVELS[::-1]:
            label = f"{share:.0%} of the posterior"
            ax.add_line(Line2D([], [], color=style.BLACK, linestyle=_LINES[share], label=label))


def plane_with_marginals() -> tuple[Axes, Axes, Axes]:
    """Axes of a new figure: the plane, those above it and those beside it, which share its axes."""
    shares = {"width_ratios": (4.0, 0.8), "height_ratios": (0.9, 3.4)}
    _, axes = style.pyplot().subplots(
        2, 2, figsize=(7.0, 5.4), layout="constrained", sharex="col", sharey="row", **shares
    )
    axes[0, 1].remove()
    return axes[1, 0], axes[0, 0], axes[1, 1]


def draw_marginals(posterior: Posterior, above: Axes, beside: Axes) -> None:
    """Draw the densities in ln rho and in range-rate, their highest-density regions shaded."""
    x, rate = (np.linspace(low, high, 4 * _PIXELS) for low, high in extent(posterior))
    in_range = np.exp(posterior.marginal.log_pdf(x[None])[0])
    marginal = posterior.rate_marginal
    in_rate = np.exp(marginal.log_pdf(rate[None])[0])
    above.plot(np.exp(x), in_range, color=style.BLUE, linewidth=1.2)
    beside.plot(in_rate, rate, color=style.BLUE, linewidth=1.2)
    for share in LEVELS:
        look: dict[str, Any] = {"color": style.SKY_BLUE, "alpha": _SHADES[share], "linewidth": 0.0}
        inside = _inside(posterior.region(share)[1], np.exp(x))
        above.fill_between(np.exp(x), in_range, where=inside, **look)
        inside = _inside(marginal.region(share, merge=4.0)[1], rate)
        beside.fill_betweenx(rate, in_rate, where=inside, **look)
    above.set(ylabel=r"$p(\ln\rho)$", ylim=(0.0, None), yticks=[])
    beside.set(xlabel=r"$p(\dot\rho)$", xlim=(0.0, None), xticks=[])
    for axes in (above, beside):
        style.grid(axes)
        axes.set_axisbelow(True)


def _inside(intervals: FloatArray, x: FloatArray) -> Any:
    """Flags of values that lie in one of some intervals."""
    return ((x >= intervals[:, :1]) & (x <= intervals[:, 1:])).any(axis=0)


def follow(posterior: Posterior, ax: Axes, zoom: bool | None) -> None:
    """Set the limits of the axes to the posterior, by default where it would be a speck."""
    log_rho, rate = extent(posterior)
    near, far = ax.get_xlim()
    span = np.log(far / max(near, 1e-9)) if ax.get_xscale() == "log" else (far - near) / far
    if zoom or (zoom is None and np.diff(log_rho) < _SMALL * span):
        grow = np.array([-0.3, 0.3])
        rho = np.exp(log_rho + grow * np.diff(log_rho))
        if rho[1] < 2.0 * rho[0]:  # too short for the ticks of a logarithmic axis
            ax.set_xscale("linear")
        ax.set_xlim(*rho)
        ax.set_ylim(*(rate + grow * np.diff(rate)))
