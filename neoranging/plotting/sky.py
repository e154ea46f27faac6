"""A cloud of directions on the sky, to scale with the field of a telescope."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from astropy import units as u
from astropy.coordinates import SkyCoord

from neoranging.arguments import check_field
from neoranging.core.geometry import equal_area, frame_about, line_of_sight
from neoranging.core.pointings import outline_of_field
from neoranging.exceptions import EstimationError
from neoranging.plotting import style
from neoranging.typing import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from neoranging.followup import Ephemeris

_LINES: Final = {0.68: "-", 0.95: (0, (4, 1.5))}
"""Line of the region of each level."""

_MARGIN: Final = 0.12
"""Room around all that is drawn, as a share of it."""

_WIDE: Final = 300.0
"""Extent from which the axes are in degrees [arcmin]."""


def plot_sky(
    ephemeris: Ephemeris,
    field: u.Quantity | None = None,
    *,
    pointings: bool = False,
    observed: SkyCoord | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the cloud of one tracklet at one instant, with the regions that hold 68 and 95 %.

    North is up and east to the left. The plane is that of the equal-area projection about the
    middle of the cloud. Draws that are far from the others lie outside.

    Parameters
    ----------
    ephemeris : Ephemeris
        Of one tracklet at one instant.
    field : Quantity, optional
        Side of a square field of view, drawn to scale about the middle.
    pointings : bool
        Draw the fields that cover 95 % instead, numbered in their order.
    observed : SkyCoord, optional
        Position at which the object was found.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    EstimationError
        If the ephemeris is of many tracklets or instants, has too few draws, or pointings are asked
        for without a field.
    MissingDependencyError
        If matplotlib is not installed.
    """
    frame = frame_about(_directions(ephemeris.center)[0])

    def plane(coord: SkyCoord | FloatArray) -> FloatArray:
        """Offsets from the middle to the east and to the north [arcmin], shape (K, 2)."""
        direction = _directions(coord) if isinstance(coord, SkyCoord) else coord
        return np.degrees(equal_area(frame, direction)) * 60.0

    lines = {level: [plane(line) for line in ephemeris.outline(level)] for level in _LINES}
    squares = [plane(line) for line in _fields(ephemeris, field, pointings)]
    star = np.empty((0, 2)) if observed is None else plane(observed)
    everything = np.concatenate([*lines[0.95], *squares, star])
    low, high = everything.min(axis=0), everything.max(axis=0)
    middle, half = 0.5 * (low + high), (0.5 + _MARGIN) * max(high - low)
    unit, name = (60.0, "deg") if 2.0 * half > _WIDE else (1.0, "arcmin")

    axes = style.axes_or_new(ax)
    x, y = plane(ephemeris.coord).T / unit
    axes.plot(x, y, ".", color=style.SKY_BLUE, markersize=2.5, alpha=0.6, label="orbits drawn")
    for level, pieces in lines.items():
        label: str | None = f"{level:.0%} of the probability"
        for piece in pieces:
            look: dict[str, Any] = {"color": style.BLACK, "linestyle": _LINES[level]}
            axes.plot(*piece.T / unit, linewidth=1.2, label=label, **look)
            label = None
    label = f"field of {field}"
    for number, square in enumerate(squares, start=1):
        axes.plot(*square.T / unit, color=style.VERMILION, linewidth=1.0, label=label)
        label = None
        if pointings:
            corner, inward = square.max(axis=0) / unit, (3.0, -3.0)
            look = {"va": "top", "color": style.VERMILION, "fontsize": style.TEXT}
            axes.annotate(str(number), corner, inward, textcoords="offset points", **look)
    if observed is not None:
        look = {"color": style.ORANGE, "markeredgecolor": style.BLACK, "linestyle": ""}
        axes.plot(*star.T / unit, marker="*", markersize=12, label="observed", **look)
    axes.set_xlim((middle[0] + half) / unit, (middle[0] - half) / unit)
    axes.set_ylim((middle[1] - half) / unit, (middle[1] + half) / unit)
    axes.set_aspect("equal")
    text = ephemeris.center.reshape(-1)[0].to_string("hmsdms", precision=0, sep=":")
    when = ephemeris.times.utc.reshape(-1)[0].to_value("iso", subfmt="date_hm")
    axes.set(xlabel=f"east [{name}]", ylabel=f"north [{name}]", title=f"{when} UTC, about {text}")
    style.grid(axes)
    style.legend(axes, below=True)
    return axes


def _directions(coord: SkyCoord) -> FloatArray:
    """Unit vectors of positions, shape (K, 3)."""
    coord = coord.icrs.reshape(-1)
    return line_of_sight(coord.ra.to_value(u.rad), coord.dec.to_value(u.rad))


def _fields(ephemeris: Ephemeris, field: u.Quantity | None, pointings: bool) -> list[FloatArray]:
    """Lines around the fields to draw: none, one in the middle, or those that cover the cloud."""
    if pointings and field is None:
        raise EstimationError("pointings need a field: give its side, as field=0.5 * u.deg")
    if field is None:
        return []
    middles = ephemeris.center
    if pointings:
        table = ephemeris.pointings(field)
        middles = SkyCoord(table["ra"], table["dec"])
    side = check_field(field)
    return [outline_of_field(middle, side) for middle in _directions(middles)]
