"""Cells of foreign columns as text and numbers; what is missing is a gap, not a value."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from astropy import units as u
from astropy.table import Column
from astropy.time import Time

from neoranging.exceptions import ObservationFormatError
from neoranging.typing import AnyArray, BoolArray, FloatArray, StrArray

NO_VALUE: Final = frozenset({"", "nan", "none", "null", "nat", "<na>", "--", "n/a"})
"""Words for a missing value, in lower case."""

_WHOLE: Final = re.compile(r"\d+\.0*")
_SEXAGESIMAL: Final = re.compile(r"[+-]?\d+\s*[:hd°]\s*\d+|[+-]?\d+\s+\d+\s+\d")
_DECIMAL_COMMA: Final = re.compile(r"[+-]?\d+,\d+")


def unit_of(values: Any) -> u.UnitBase | None:
    """Unit that a column carries, None without one."""
    unit = getattr(values, "unit", None)
    if isinstance(unit, u.UnitBase):
        return unit
    return None


def gaps(values: Any) -> BoolArray:
    """Cells that are masked or missing, (N,)."""
    mask = getattr(values, "mask", False)
    if callable(mask):  # a method of a Series
        mask = False
    mask = np.broadcast_to(np.asarray(mask, dtype=bool), (len(values),)).copy()
    if isinstance(values, Time | u.Quantity):
        return mask
    import pandas as pd

    missing: BoolArray = mask | np.asarray(pd.isna(_plain(values)), dtype=bool)
    return missing


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
        import pandas as pd

        row, words = pd.factorize(array.astype(object), use_na_sentinel=False)
        return np.where(missing, "", np.array([cell_text(_as_text(word)) for word in words])[row])
    if array.dtype.kind == "f":
        whole = np.isfinite(array) & (array == np.round(array))
        integers = np.where(whole, array, 0.0).astype(np.int64).astype(np.str_)
        return np.where(missing, "", np.where(whole, integers, array.astype(np.str_)))
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
    own = unit_of(values)
    array = _plain(values)
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
            _refuse(name, text[unreadable].tolist(), unit)
    else:
        raise ObservationFormatError(
            f"the column {name} must hold numbers{_in(unit)}, got {array.dtype}"
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


def _in(unit: str) -> str:
    return f" [{unit}]" if unit else ""


def _refuse(name: str, cells: Sequence[str], unit: str) -> None:
    """Raise an error for text that is meant to be a number of this unit, if it is one."""
    example = cells[0]
    if _SEXAGESIMAL.match(example):
        hours = "hourangle" if unit == "hourangle" or "ra" in name.lower() else "deg"
        raise ObservationFormatError(
            f"the column {name} must hold numbers{_in(unit)}, got {example!r}: sexagesimal text "
            f"becomes degrees with astropy.coordinates.Angle(t[{name!r}], '{hours}').deg"
        )
    if _DECIMAL_COMMA.fullmatch(example):
        raise ObservationFormatError(
            f"the column {name} must hold numbers{_in(unit)} with a decimal point, got {example!r}"
        )
    raise ObservationFormatError(f"the column {name} must hold numbers{_in(unit)}, got {example!r}")
