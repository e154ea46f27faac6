"""Instants, observatories, fields and methods of the commands that say where to point."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import click

from neoranging.cli.options import Decorator
from neoranging.exceptions import ObserverError, TrackletError, UnknownStationError

if TYPE_CHECKING:
    from astropy.time import Time

    from neoranging.estimators import RangingEstimator

_AFTER: Final = re.compile(r"([+-])\s*(\d+(?:\.\d*)?|\.\d+)\s*(min|m|h|d)")
_DAYS: Final = {"min": 1.0 / 1440.0, "m": 1.0 / 1440.0, "h": 1.0 / 24.0, "d": 1.0}


class Instant(click.ParamType):
    """A time in UTC, or one so many minutes, hours or days after the last observation."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Time, or the days after the last observation."""
        from astropy.time import Time

        text = str(value).strip()
        if after := _AFTER.fullmatch(text):
            sign, number, unit = after.groups()
            return float(sign + number) * _DAYS[unit]
        if text == "now":
            return Time.now()
        try:
            return Time(text.removesuffix("Z"), scale="utc")
        except ValueError:
            self.fail(
                f"{value!r} is no time: write it in UTC as 2026-01-31T06:30, or as +24h, +90min or "
                "+2d after the last observation of each tracklet, or now",
                param,
                ctx,
            )


class Angle(click.ParamType):
    """An angle with its unit, in degrees without."""

    name = "angle"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Quantity of an angle between 0 and 90 deg."""
        from astropy import units as u

        try:
            angle = u.Quantity(str(value))
            angle = angle * u.deg if angle.unit == u.one else angle
            if not 0.0 < angle.to_value(u.deg) < 90.0:
                raise ValueError
        except (TypeError, ValueError, u.UnitsError):
            text = "is no angle between 0 and 90 deg: write 0.5deg or 30arcmin"
            self.fail(f"{value!r} {text}", param, ctx)
        return angle


at_option: Final = click.option(
    "--at",
    "instant",
    type=Instant(),
    metavar="TIME",
    default="+24h",
    show_default=True,
    help="When to observe: UTC as 2026-01-31T06:30, or after the last observation: +24h, +2d; now.",
)

observer_option: Final = click.option(
    "--station",
    "observer",
    metavar="CODE",
    help="MPC code of the observatory to observe from.  [default: that of each tracklet]",
)


def field_option(end: str, **attributes: Any) -> Decorator:
    """Option ``--field``; ``end`` ends the sentence that explains it."""
    text = f"Side of a square field of view, as 0.5deg or 30arcmin{end}"
    return click.option("--field", type=Angle(), metavar="ANGLE", help=text, **attributes)


def posterior_estimator(method: str) -> RangingEstimator:
    """Estimator of a name, or an error of usage where it gives no posterior."""
    from neoranging.estimators.registry import get_estimator

    estimator = get_estimator(method)
    if not estimator.gives_posterior:
        text = f"{method} gives one range and no orbits to follow: take systematic"
        raise click.BadParameter(text, param_hint="'--method'")
    return estimator


def require_in_ephemeris(instant: Time) -> None:
    """Raise an error of usage for a time outside the ephemeris."""
    from neoranging.ephemeris import tdb_mjd
    from neoranging.exceptions import EphemerisError

    try:
        tdb_mjd(instant)
    except EphemerisError as error:
        text = f"{instant.iso[:10]} is outside the ephemeris, which reaches from 1800 to 2200"
        raise click.BadParameter(text, param_hint="'--at'") from error


def known_observatory(code: str) -> str:
    """Code of an observatory that has a place, or an error of usage."""
    from neoranging.observations import observatories
    from neoranging.observations.stations import require_codes

    try:
        (listed,) = require_codes([code]).tolist()
        if listed != "500":
            _ = observatories.observatory(listed).location
    except UnknownStationError as error:
        text = f"{error}; or 500, for the centre of the Earth"
        raise click.BadParameter(text, param_hint="'--station'") from error
    except (ObserverError, TrackletError) as error:
        raise click.BadParameter(str(error), param_hint="'--station'") from error
    return str(listed)
