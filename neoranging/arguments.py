"""Arguments as plain numbers, or as errors that name them: where units are taken off."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

import numpy as np
from astropy import units as u
from astropy.time import Time

from neoranging.exceptions import EstimationError, NeoRangingError, TrackletError
from neoranging.typing import FloatArray


def values_in(
    name: str, value: Any, unit: u.UnitBase, error: type[NeoRangingError] = TrackletError
) -> FloatArray:
    """Values of a Quantity in a unit, NaN where they are masked.

    Parameters
    ----------
    name : str
        What the caller calls the argument.
    value : Quantity
        Argument; a number or column without unit is refused.
    unit : Unit
        Unit of the result.
    error : type, optional
        What to raise if the unit is missing or of another kind.
    """
    try:
        return unmasked(u.Quantity(value, subok=True).to_value(unit))
    except (u.UnitsError, TypeError) as reason:
        own = getattr(value, "unit", None)
        got = str(own) if own else f"{type(value).__name__} without unit"
        if unit == u.one:
            raise error(f"{name} must be a number without unit, got {got}") from reason
        usual = unit.to_string().replace("rad", "deg").lower().split(" / ")
        code = " / ".join(f"u.{part}" for part in usual)
        raise error(
            f"{name} must be a Quantity with a unit like {' / '.join(usual)}, got {got}: "
            f"write `{name.rsplit(maxsplit=1)[-1]} * {code}` with u = astropy.units"
        ) from reason


def require_time(name: str, value: Any, error: type[NeoRangingError] = TrackletError) -> Time:
    """Return an epoch as it is, or an error that shows how to make a Time of it."""
    if isinstance(value, Time):
        if value.scale == "local":
            raise error(
                f"{name} has the scale 'local', which says not when it was: make it UTC with "
                f"Time({name}.value - offset, scale='utc'), offset being that of the time zone"
            )
        return value
    raise error(
        f"{name} must be an astropy Time, got {type(value).__name__}: numbers become one by "
        f"Time({name}, format='mjd', scale='utc'), text by Time({name}, scale='utc')"
    )


def value_in(
    name: str,
    value: Any,
    unit: u.UnitBase,
    *,
    between: tuple[float, float] = (-np.inf, np.inf),
) -> float:
    """Value of a Quantity in a unit, or an error for what is not one value between two bounds.

    Parameters
    ----------
    name : str
        What the caller calls the argument.
    value : Quantity
        Argument.
    unit : Unit
        Unit of the result and of the bounds.
    between : tuple of float
        Bounds that the value must not reach.
    """
    number = values_in(name, value, unit, EstimationError)
    low, high = between
    # NaN lies between no bounds
    if number.ndim or not low < number < high:
        bounds = f" between {low:g} and {high:g} {unit}" if np.isfinite(between).all() else ""
        raise EstimationError(f"{name} must be one value{bounds}, got {value}")
    return float(number)


def check_field(field: Any) -> float:
    """Side of a square field of view [rad], or an error for what is none."""
    return float(np.radians(value_in("field", field, u.deg, between=(0.0, 90.0))))


def check_count(name: str, count: Any) -> None:
    """Raise an error for what is no number of things, one at least."""
    if not isinstance(count, (int, np.integer)) or isinstance(count, bool) or count < 1:
        raise EstimationError(f"{name} must be a whole number from 1 on, got {count!r}")


def check_level(name: str, level: float) -> None:
    """Raise an error that names the argument for what is no share of a probability."""
    if not isinstance(level, (int, float, np.number)) or isinstance(level, bool):
        raise EstimationError(f"{name} must be a number between 0 and 1, got {level!r}")
    if not 0.0 < level < 1.0:
        percent = 1.0 < level < 100.0
        raise EstimationError(
            f"{name} must lie between 0 and 1, got {level}"
            + (f": write {level / 100:g} for that many percent" if percent else "")
        )


def unmasked(values: Any) -> FloatArray:
    """Numbers of any kind of column as a plain array, NaN where they are masked."""
    if hasattr(values, "mask"):
        values = np.where(values.mask, np.nan, getattr(values, "unmasked", values))
    return np.asarray(values, dtype=float)


def did_you_mean(name: str, choices: Iterable[str]) -> str:
    """Hint at the choice that is most like an unknown name; empty if none is."""
    names = {choice.casefold(): choice for choice in choices}
    close = get_close_matches(name.strip().casefold(), names, n=1)
    return f" (did you mean {names[close[0]]!r}?)" if close else ""
