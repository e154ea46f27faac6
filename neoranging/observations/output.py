"""Columns of an observation table as the writers of all formats need them.

A table may lack any column beyond those of `NEEDED`; codes of other formats are translated.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO, Any, Final

import numpy as np
from astropy import units as u
from astropy.table import Table

from neoranging.exceptions import ObservationFormatError
from neoranging.observations.mpc_codes import CATALOG_CODES
from neoranging.observations.places import itrf_to_geodetic
from neoranging.observations.utc import MJD_1970
from neoranging.typing import BoolArray, FloatArray, IntArray, StrArray

NEEDED: Final = ("designation", "obstime", "ra", "dec", "station")
"""Columns without which there is no observation to write."""

TWO_LINE_TYPES: Final = {"space": "S", "roving": "V"}
"""Types in column 15 by the kind of observers whose place takes a second line."""

RESERVED_TYPES: Final = tuple("SVRXsvrx")
"""Types that a record from a fixed place cannot have: it would not be read as an observation."""


def require_columns(table: Table) -> None:
    """Raise `ObservationFormatError` if a table lacks what makes an observation."""
    if missing := [name for name in NEEDED if name not in table.colnames]:
        raise ObservationFormatError(
            f"the table lacks {', '.join(missing)}: needed are {', '.join(NEEDED)}; "
            f"it has {', '.join(table.colnames) or 'no columns'}"
        )


def texts(table: Table, name: str, fill: str = "") -> StrArray:
    """Column of text, ``fill`` throughout if the table lacks it, (N,)."""
    if name not in table.colnames:
        return np.full(len(table), fill)
    return np.asarray(table[name], dtype=np.str_)


def numbers(table: Table, name: str, unit: u.UnitBase | None = None) -> FloatArray:
    """Column of numbers in a unit, NaN throughout if the table lacks it, (N,)."""
    if name not in table.colnames:
        return np.full(len(table), np.nan)
    column = table[name]
    if unit is not None and getattr(column, "unit", None) is not None:
        return np.asarray(u.Quantity(column).to_value(unit), dtype=np.float64)
    return np.asarray(getattr(column, "value", column), dtype=np.float64)


def flags(table: Table, name: str, *, fill: bool = False) -> BoolArray:
    """Column of flags, ``fill`` throughout if the table lacks it, (N,)."""
    if name not in table.colnames:
        return np.full(len(table), fill)
    column = np.asarray(table[name])
    # Tables that went through text hold the words.
    return np.asarray(column == "True" if column.dtype.kind == "U" else column, dtype=bool)


def angles(table: Table) -> tuple[FloatArray, FloatArray]:
    """Right ascension in [0, 360) and declination [deg], (N,) each.

    Raises
    ------
    ObservationFormatError
        If a value is no direction.
    """
    ra, dec = numbers(table, "ra", u.deg), numbers(table, "dec", u.deg)
    bad = np.flatnonzero(~(np.isfinite(ra) & (np.abs(dec) <= 90.0)))
    if len(bad):
        raise ObservationFormatError(
            f"row {bad[0]} points to ra {ra[bad[0]]}, dec {dec[bad[0]]} deg, which is no "
            f"direction ({len(bad)} such rows); drop these rows"
        )
    return ra % 360.0, dec


def observers(table: Table) -> tuple[StrArray, FloatArray]:
    """Kinds of the observers, (N,), and their places as records give them, (N, 3).

    A place is geocentric on ICRS axes for a spacecraft [km], east longitude, latitude [deg] and
    altitude [m] for a roving observer, and NaN for a fixed station.

    Raises
    ------
    ObservationFormatError
        If a spacecraft or roving observer has no finite place.
    """
    kind = texts(table, "kind", "ground")
    space, roving = kind == "space", kind == "roving"
    places = np.full((len(table), 3), np.nan)
    for rows, name, unit in ((space, "observer_gcrs", u.km), (roving, "observer_itrf", u.m)):
        if rows.any() and name in table.colnames:
            places[rows] = numbers(table, name, unit)[rows]
    places[roving] = itrf_to_geodetic(places[roving])
    nowhere = np.flatnonzero((space | roving) & ~np.isfinite(places).all(axis=1))
    if len(nowhere):
        raise ObservationFormatError(
            f"row {nowhere[0]} has no finite place of its observer, which its kind needs; fill "
            "observer_gcrs (space) or observer_itrf (roving), or drop the row"
        )
    return kind, places


# Codes of one to three characters -----------------------------------------------------------------


def station_codes(table: Table) -> list[str]:
    """Station codes of three characters."""
    codes = texts(table, "station").tolist()
    if odd := sorted({code for code in codes if len(code) != 3 or not code.isascii()}):
        raise ObservationFormatError(
            f"station codes {', '.join(map(repr, odd))} cannot be written: the format has three "
            "columns for them; give MPC codes, or write ADES"
        )
    return codes


def record_types(table: Table, kind: StrArray) -> StrArray:
    """Types of column 15, blank where unknown; by the kind S of spacecraft and V of rovers."""
    types = texts(table, "note2")
    types = np.where(np.strings.str_len(types) == 1, types, " ")
    for name, code in TWO_LINE_TYPES.items():
        types[kind == name] = code
    wrong = np.flatnonzero(np.isin(types, RESERVED_TYPES) & ~np.isin(kind, list(TWO_LINE_TYPES)))
    if len(wrong):
        row = int(wrong[0])
        raise ObservationFormatError(
            f"row {row} has type {str(types[row])!r} but kind {str(kind[row])!r}: a record of this "
            "type would not be read as an observation from the ground; correct note2 or kind"
        )
    return types


def catalog_letters(table: Table) -> list[str]:
    """Letters of the star catalogues, a blank where there is none."""
    letters = (CATALOG_CODES.get(name, name) for name in texts(table, "catalog").tolist())
    return [letter if len(letter) == 1 else " " for letter in letters]


def band_letters(table: Table) -> list[str]:
    """Letters of the bands: of "Sg", "Pg", "Ao" the second, of "Vj", "Rc" the first."""
    return [
        band[1] if len(band) > 1 and band[0] in "SPA" else band[:1] or " "
        for band in texts(table, "band").tolist()
    ]


# Times and angles in decimals of days and in sexagesimal digits -----------------------------------


def decimal_dates(day: IntArray, fraction: FloatArray, decimals: IntArray) -> list[str]:
    """Dates ``YYYY MM DD.dddd`` of whole modified Julian dates and the rest, (N,) each."""
    ticks = np.rint(fraction * 10.0**decimals).astype(np.int64)
    carry, ticks = np.divmod(ticks, 10**decimals)
    dates = (day + carry - MJD_1970).astype("datetime64[D]").astype(str)
    columns = (dates.tolist(), ticks.tolist(), decimals.tolist())
    return [f"{date.replace('-', ' ')}{_point(t, n)}" for date, t, n in zip(*columns, strict=True)]


def sexagesimal(
    value: FloatArray,
    decimals: IntArray,
    *,
    in_minutes: BoolArray | None = None,
    full_turn: int | None = None,
) -> list[str]:
    """Angles ``DD MM SS.sss``, or ``DD MM.mmm`` where they are rounded to decimals of a minute.

    Parameters
    ----------
    value : ndarray, shape (N,)
        Angles in hours or degrees, not negative.
    decimals : ndarray of int, shape (N,)
        Decimals of the last field.
    in_minutes : ndarray of bool, shape (N,), optional
        Angles whose last field is that of the minutes; by default none.
    full_turn : int, optional
        Hours or degrees at which the angle begins anew.
    """
    if in_minutes is None:
        in_minutes = np.zeros(len(value), dtype=bool)
    scale = 10**decimals
    ticks_per_unit = np.where(in_minutes, 60, 3600) * scale
    ticks = np.rint(value * ticks_per_unit).astype(np.int64)
    if full_turn:
        ticks %= full_turn * ticks_per_unit
    last, ticks = np.divmod(ticks, scale)
    minutes = np.where(in_minutes, last, last // 60)
    columns = (minutes // 60, minutes % 60, last % 60, ticks, decimals, in_minutes)
    return [
        f"{d:02d} {m:02d}{'' if short else f' {s:02d}'}{_point(t, n)}"
        for d, m, s, t, n, short in zip(*(c.tolist() for c in columns), strict=True)
    ]


def _point(ticks: int, decimals: int) -> str:
    """Decimal point and decimals, "" without any."""
    return f".{ticks:0{decimals}d}" if decimals else ""


def write_text(
    text: str, output: str | os.PathLike[str] | IO[Any], *, overwrite: bool, encoding: str
) -> None:
    """Write text to a path or an open file, text or binary.

    Raises
    ------
    OSError
        If the file exists and `overwrite` is False, or cannot be written.
    """
    if not isinstance(output, str | os.PathLike):
        binary = "b" in getattr(output, "mode", "") or not hasattr(output, "encoding")
        output.write(text.encode(encoding) if binary else text)
        return
    path = Path(output).expanduser()
    if path.exists() and not overwrite:
        raise OSError(f"{path} exists already; give overwrite=True to replace it")
    path.write_text(text, encoding=encoding, newline="\n")
