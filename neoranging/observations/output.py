"""What the writers share: columns that a table may lack, and destinations."""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO, Any, Final

import numpy as np
from astropy import units as u
from astropy.table import Table

from neoranging.exceptions import ObservationFormatError
from neoranging.typing import FloatArray, StrArray

NEEDED: Final = ("designation", "obstime", "ra", "dec", "station")
"""Columns without which there is no observation to write."""


def require_columns(table: Table) -> None:
    """Raise `ObservationFormatError` if a table lacks what makes an observation."""
    if missing := [name for name in NEEDED if name not in table.colnames]:
        raise ObservationFormatError(
            f"the table lacks {', '.join(missing)}: needed are {', '.join(NEEDED)}; "
            f"it has {', '.join(table.colnames) or 'no columns'}"
        )


def texts(table: Table, name: str, fill: str = "") -> StrArray:
    """Return a column of text, ``fill`` throughout if the table lacks it, (N,)."""
    if name not in table.colnames:
        return np.full(len(table), fill)
    return np.asarray(table[name], dtype=np.str_)


def numbers(table: Table, name: str, unit: u.UnitBase | None = None) -> FloatArray:
    """Return a column of numbers in a unit, NaN throughout if the table lacks it, (N,)."""
    if name not in table.colnames:
        return np.full(len(table), np.nan)
    column = table[name]
    if unit is not None and getattr(column, "unit", None) is not None:
        return np.asarray(u.Quantity(column).to_value(unit), dtype=np.float64)
    return np.asarray(getattr(column, "value", column), dtype=np.float64)


def angles(table: Table) -> tuple[FloatArray, FloatArray]:
    """Return right ascension in [0, 360) and declination [deg].

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
