"""Cells of foreign columns as text, numbers and epochs; what is missing is a gap, not a value."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from astropy import units as u
from astropy.table import Column
from astropy.time import Time

from neoranging.constants import DAY_S, MJD_JD
from neoranging.exceptions import ObservationFormatError
from neoranging.observations.field_names import SCALES, Field
from neoranging.observations.fixed_width import calendar_to_mjd
from neoranging.observations.utc import seconds_in_day
from neoranging.typing import AnyArray, BoolArray, FloatArray, StrArray

NO_VALUE: Final = frozenset({"", "nan", "none", "null", "nat", "<na>", "--", "n/a"})
"""Words for a missing value, in lower case."""

_WHOLE: Final = re.compile(r"\d+\.0*")
_SEXAGESIMAL: Final = re.compile(r"[+-]?\d+\s*[:hd°]\s*\d+|[+-]?\d+\s+\d+\s+\d")
_DECIMAL_COMMA: Final = re.compile(r"[+-]?\d+,\d+")


def unit_of(values: Any) -> u.UnitBase | None:
    """Unit that a column carries, None without one."""
    unit = getattr(values, "unit", None)
    return unit if isinstance(unit, u.UnitBase) else None


def gaps(values: Any) -> BoolArray:
    """Cells that are masked or missing, (N,)."""
    mask = getattr(values, "mask", False)
    if callable(mask):  # a method of a Series
        mask = False
    mask = np.broadcast_to(np.asarray(mask, dtype=bool), (len(values),)).copy()
    if isinstance(values, Time | u.Quantity):
        return mask
    array = _plain(values)
    if array.dtype.kind == "f":
        mask |= np.isnan(array)
    elif array.dtype.kind in "mM":
        mask |= np.isnat(array)
    elif array.dtype.kind in ("O", "T"):  # objects that pandas takes for missing, its own too
        import pandas as pd

        mask |= np.asarray(pd.isna(array), dtype=bool)
    return mask


def _plain(values: Any) -> AnyArray:
    """Array of a column without mask and unit."""
    if hasattr(values, "to_numpy"):
        array = values.to_numpy()
    else:
        array = np.asarray(
            getattr(values, "data", values) if isinstance(values, Column) else values
        )
    return np.asarray(array.filled() if isinstance(array, np.ma.MaskedArray) else array)


def is_text(values: Any) -> bool:
    """True for a column of text, or of objects that may be text."""
    return _plain(values).dtype.kind in "OSUT"


def texts(values: Any) -> StrArray:
    """Cells as text without blanks around, "" where they are missing.

    Numbers that stand for names lose nothing: 703.0, as pandas makes of 703 in a column with a
    gap, is "703".
    """
    missing = gaps(values)
    array = _plain(values)
    if not len(array):
        return np.zeros(0, dtype="U1")
    if array.dtype.kind == "S":
        array = np.strings.decode(array, "utf-8", "replace")
    if array.dtype.kind in "OU":
        cells = array.tolist()
        words = {cell: cell_text(_as_text(cell)) for cell in dict.fromkeys(cells)}
        return np.where(missing, "", np.array([words[cell] for cell in cells]))
    if array.dtype.kind == "f":
        is_integer = np.isfinite(array) & (array == np.round(array))
        integers = np.where(is_integer, array, 0.0).astype(np.int64).astype(np.str_)
        return np.where(missing, "", np.where(is_integer, integers, array.astype(np.str_)))
    return np.where(missing, "", array.astype(np.str_))


def _as_text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def cell_text(text: str) -> str:
    """Text of a cell without blanks around it, whole numbers without a fraction, "" if missing."""
    text = text.strip()
    if text.lower() in NO_VALUE:
        return ""
    # a whole number comes out of a column of numbers with gaps
    return text.partition(".")[0] if "." in text and _WHOLE.fullmatch(text) else text


def translated(texts: npt.ArrayLike, translate: Callable[[str], str]) -> StrArray:
    """Texts with a function applied to each distinct one, in the shape that they have."""
    array = np.asarray(texts).astype(np.str_)
    if array.size and (array == array.flat[0]).all():  # as the columns of a file often are
        return np.full(array.shape, translate(str(array.flat[0])))
    words = array.ravel().tolist()
    translation = {word: translate(word) for word in dict.fromkeys(words)}
    return np.array([translation[word] for word in words], dtype=np.str_).reshape(array.shape)


def numbers(name: str, values: Any, unit: str, sexagesimal: bool = False) -> tuple[FloatArray, int]:
    """Numbers of a column in a unit, NaN where there is none.

    Parameters
    ----------
    name : str
        What the user calls the column.
    values : column
        With a unit of its own or without one.
    unit : str
        Unit of the result, and of a column without one; "" for plain numbers.
    sexagesimal : bool
        Whether angles in hours or degrees and minutes are to be expected: then half of the cells
        is enough for an error.

    Returns
    -------
    values : ndarray
        (N,)
    n_unreadable : int
        Cells that hold something, and no number.

    Raises
    ------
    ObservationFormatError
        If the unit is of another kind, or (nearly) none of the cells holds a number.
    """
    missing = gaps(values)
    own, array = unit_of(values), _plain(values)
    in_unit = f" [{unit}]" if unit else ""
    if array.dtype.kind in "fiu":
        result = np.where(missing, np.nan, array.astype(np.float64))
        unreadable = np.zeros(len(result), dtype=bool)
    elif array.dtype.kind == "O" or array.dtype.kind in "SUT":
        import pandas as pd

        if array.dtype.kind == "S":
            array = np.strings.decode(array, "utf-8", "replace")
        cells = pd.Series(array.astype(object))
        result = np.array(pd.to_numeric(cells, errors="coerce"), dtype=np.float64)
        result[missing] = np.nan
        rest = np.flatnonzero(np.isnan(result))
        text = np.full(len(result), " ", dtype=object)  # what is read already is not empty
        text[rest] = texts(array[rest])
        unreadable = np.isnan(result) & (text != "") & ~missing
        share = 0.5 if sexagesimal else 1.0
        if unreadable.any() and unreadable.sum() >= share * (text != "").sum():
            example, advice = text[unreadable][0], ""
            if _SEXAGESIMAL.match(example):
                hours = "hourangle" if unit == "hourangle" or "ra" in name.lower() else "deg"
                advice = (
                    ": sexagesimal text becomes degrees with "
                    f"astropy.coordinates.Angle(t[{name!r}], '{hours}').deg"
                )
            point = " with a decimal point" if _DECIMAL_COMMA.fullmatch(example) else ""
            raise ObservationFormatError(
                f"the column {name} must hold numbers{in_unit}{point}, got {example!r}{advice}"
            )
    else:
        raise ObservationFormatError(
            f"the column {name} must hold numbers{in_unit}, got {array.dtype}"
        )
    if own is not None and unit:
        try:
            result = u.Quantity(result, own).to_value(u.Unit(unit))
        except u.UnitConversionError as error:
            raise ObservationFormatError(
                f"the column {name} must have a unit like {unit}, got {own}: "
                f"set t[{name!r}].unit = {unit!r}"
            ) from error
    return result, int(unreadable.sum())


# Epochs ------------------------------------------------------------------------------------------

MJD_RANGE: Final = (-52_000.0, 150_000.0)
"""Numbers that can be modified Julian dates of astrometry, from 1716 to 2269."""

JD_RANGE: Final = (2_348_000.0, 2_550_000.0)
"""The same of Julian dates."""

_LOOKED_AT: Final = 1000
"""Cells that show whether a column of text holds numbers."""

_DATE: Final = (
    r"(?P<year>\d{4})[- /](?P<month>\d\d)[- /](?P<day>\d\d)"
    r"(?:(?P<fraction>\.\d+)|[T ](?P<hour>\d\d):(?P<minute>\d\d)(?::(?P<second>\d\d(?:\.\d*)?))?)?"
    r"(?P<zone>[Zz]|[+-]\d\d:?\d\d)?$"
)
"""ISO 8601 with or without a zone, or a date with a decimal day."""


@dataclass(frozen=True)
class Epochs:
    """Times of N rows.

    Attributes
    ----------
    time : Time
        UTC, of all rows; where there is none, some date.
    ok : ndarray of bool
        True for rows with a time.
    remarks : tuple of str
        Sentences for the user on how they were taken.
    """

    time: Time
    ok: BoolArray
    remarks: tuple[str, ...] = ()


def read_epochs(
    name: str, values: Any, field: Field, scale: str | None = None, exposure: Any = None
) -> Epochs:
    """Epochs of a column.

    Parameters
    ----------
    name : str
        Name of the column in the table of the user.
    values : column
        Times, datetimes of any zone, text, or numbers (Julian dates, modified or not).
    field : Field
        Meaning of that name.
    scale : {"utc", "tai", "tt", "tdb"}, optional
        Time scale that the user gave.
    exposure : ndarray, optional
        Exposure times [s], by whose half the start of an exposure is moved to its middle.

    Raises
    ------
    ObservationFormatError
        If they can be meant in more than one way, or in none.
    """
    if field.scale in SCALES and scale not in (None, field.scale) and name.lower() != "obstime":
        raise ObservationFormatError(
            f"the name of the column {name} says {field.scale.upper()}, and scale={scale!r} was "
            "given: rename it or leave scale out"
        )
    fixed = scale or (field.scale if field.scale in SCALES else None)
    start = field.scale == "start"
    if start and exposure is None:
        raise ObservationFormatError(
            f"the column {name} gives the start of exposures, and what counts is their middle: add "
            "a column exptime [s], or one obstime that holds the middle, as "
            f"t['obstime'] = Time(t['{name}'], format=..., scale='utc') + exposure / 2"
        )
    dtype = getattr(values, "dtype", None)
    if isinstance(values, Time):
        epochs = _of_times(name, values)
    elif is_text(values) and not _holds_numbers(values):
        epochs = _of_text(name, values, fixed or "utc")
    elif hasattr(dtype, "tz") or getattr(dtype, "kind", "") == "M":
        epochs = _of_datetimes(values, fixed or "utc")
    else:
        epochs = _of_numbers(name, values, field, fixed if fixed or not start else "utc")
    if not start:
        return epochs
    lacking = ~np.isfinite(exposure) | (exposure < 0.0)
    half = np.where(lacking, 0.0, exposure) / 2.0 / DAY_S
    note = f"{name} is the start of exposures: moved by half the exposure time to their middle"
    time = Time(epochs.time.jd1, epochs.time.jd2 + half, format="jd", scale="utc")
    return Epochs(time, epochs.ok & ~lacking, (*epochs.remarks, note))


def _holds_numbers(values: Any) -> bool:
    """True if most cells of text are decimal numbers; those that are none are gaps."""
    import pandas as pd

    text = pd.Series(texts(values[:_LOOKED_AT]))
    text = text[text != ""]
    return bool(len(text)) and bool(pd.to_numeric(text, errors="coerce").notna().mean() >= 0.5)


def _of_times(name: str, time: Time) -> Epochs:
    if time.scale == "local":
        raise ObservationFormatError(
            f"the times in {name} have the scale 'local', which no longitude turns into UTC: give "
            f"Time({name}, scale='utc')"
        )
    ok = ~np.broadcast_to(gaps(time), time.shape)
    utc = time.utc
    jd1, jd2 = (np.asarray(getattr(part, "unmasked", part)) for part in (utc.jd1, utc.jd2))
    jd1, jd2 = np.where(ok, jd1, MJD_JD), np.where(ok, jd2, 0.0)
    return Epochs(Time(jd1, jd2, format="jd", scale="utc"), ok)


def _of_datetimes(values: Any, scale: str) -> Epochs:
    import pandas as pd

    series = pd.Series(values)
    if hasattr(series.dtype, "tz"):
        series = series.dt.tz_convert("UTC").dt.tz_localize(None)
    ok = ~series.isna().to_numpy()
    stamps = series.to_numpy().astype("datetime64[ns]")
    stamps = np.where(ok, stamps, np.datetime64("2000-01-01", "ns"))
    return Epochs(Time(stamps, format="datetime64", scale=scale).utc, ok)


def _of_numbers(name: str, values: Any, field: Field, scale: str | None) -> Epochs:
    numeric, _ = numbers(name, values, "d")
    ok = np.isfinite(numeric)

    def all_within(limits: tuple[float, float]) -> bool:
        return bool(((numeric[ok] > limits[0]) & (numeric[ok] < limits[1])).all())

    unit = field.unit
    if unit not in {"mjd", "jd"}:  # the name does not say it, the values may
        unit = "jd" if all_within(JD_RANGE) and not all_within(MJD_RANGE) else "mjd"
    if scale is None:
        raise ObservationFormatError(
            f"the column {name} holds numbers and nothing says in which time scale (UTC and TDB "
            "are 69 s apart, in which a near object moves by minutes of arc): give "
            'scale="utc" ("tai", "tt", "tdb") to read_tracklets, --scale on the command line, name '
            f"the column {unit}_utc, or convert it: t['obstime'] = Time(t['{name}'], "
            f"format='{unit}', scale='utc')"
        )
    if not all_within(JD_RANGE if unit == "jd" else MJD_RANGE):
        worst = numeric[ok][np.argmax(np.abs(numeric[ok]))]
        if unit == "mjd" and all_within(JD_RANGE):
            advice = f"from a Julian date subtract {MJD_JD}"
        elif unit == "jd" and all_within(MJD_RANGE):
            advice = f"these look like modified Julian dates, which want {MJD_JD} added"
        elif (numeric[ok] > 1e8).all():
            advice = "seconds since 1970 become a Time with format='unix'"
        else:
            advice = "give modified Julian dates, datetimes or text like 2024-12-27T05:46:00"
        held = "Julian dates" if unit == "jd" else "MJD where it holds numbers"
        raise ObservationFormatError(
            f"the column {name} must hold {held}, got {worst:.10g}: {advice}"
        )
    zero = 0.0 if unit == "jd" else MJD_JD
    numeric = np.where(ok, numeric, MJD_JD - zero)
    day = np.floor(numeric)
    return Epochs(Time(day + zero, numeric - day, format="jd", scale=scale).utc, ok)


def _of_text(name: str, values: Any, scale: str) -> Epochs:
    """Times of ISO text, with or without a zone, and dates with a decimal day."""
    import pandas as pd

    text = pd.Series(texts(values), dtype=object)
    parts = text.str.extract(_DATE)
    ok = np.array(parts["year"].notna())

    def part(column: str) -> FloatArray:
        return np.asarray(parts[column].astype(float).fillna(0.0), dtype=np.float64)

    date = (part(column).astype(np.int64) for column in ("year", "month", "day"))
    mjd, is_date = calendar_to_mjd(*date)
    zone = parts["zone"].fillna("").str.upper().str.replace(":", "").replace("Z", "+0000")
    is_utc = (zone != "").to_numpy() | (scale == "utc")
    ahead = pd.to_numeric(zone.where(zone != "", "+0000")).to_numpy()  # as hours * 100 + minutes
    offset = np.sign(ahead) * (np.abs(ahead) // 100 * 60 + np.abs(ahead) % 100) * 60.0
    length = np.where(is_utc, seconds_in_day(mjd), DAY_S)
    clock = part("hour") * 3600.0 + part("minute") * 60.0 + part("second")
    leap = (part("second") >= 60.0) & (clock >= DAY_S) & (clock < length)
    ok &= is_date & (part("hour") < 24) & (part("minute") < 60) & ((part("second") < 60) | leap)
    filled = (text != "").to_numpy()
    if filled.any() and not ok.any():
        raise ObservationFormatError(
            f"the column {name} must hold UTC as MJD, datetimes or text like "
            f"2024-12-27T05:46:00, got text that begins with {text[filled].iloc[0]!r}"
        )
    mjd = np.where(ok, mjd, 0)
    fraction = np.where(ok, part("fraction") + (clock - offset) / length, 0.0)
    time = Time(mjd.astype(float), fraction, format="mjd", scale="utc")
    if not is_utc.all():
        other = Time(mjd.astype(float), fraction, format="mjd", scale=scale).utc
        jd1, jd2 = (
            np.where(is_utc, getattr(time, jd), getattr(other, jd)) for jd in ("jd1", "jd2")
        )
        time = Time(jd1, jd2, format="jd", scale="utc")
    return Epochs(time, ok)
