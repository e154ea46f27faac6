"""Places of spacecraft and roving observers from the second lines of ``.rwo`` records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import erfa
import numpy as np

from neoranging.constants import AU_KM
from neoranging.observations.fixed_width import Lines, float_or_nan, parse_float
from neoranging.observations.rwo.layout import RwoRecords
from neoranging.typing import BoolArray, ByteArray, FloatArray, IntArray, StrArray

_FLAG: Final = 34  # column of the unit of a spacecraft's position: 1 for km, 2 for au
_BEFORE: Final = 35
_AFTER: Final = 4  # a blank and the station
_ROVING: Final = (slice(34, 45), slice(45, 56), slice(56, 64))


@dataclass(frozen=True)
class Places:
    """Where N records were made.

    Attributes
    ----------
    kind : ndarray of str, shape (N,)
        ``"ground"``, ``"roving"`` or ``"space"``.
    itrf, gcrs : ndarray, shape (N, 3)
        Earth-fixed place [m] and geocentric place on ICRS axes [km]; NaN where not given.
    found : ndarray of bool, shape (N,)
        False where the record needs a second line and has none that can be read.
    """

    kind: StrArray
    itrf: FloatArray
    gcrs: FloatArray
    found: BoolArray


def read_places(lines: Lines, records: RwoRecords) -> Places:
    """Read the second lines that belong to the records."""
    n = len(records)
    gcrs, itrf = np.full((2, n, 3), np.nan)
    kind = np.full(n, "ground", dtype="U6")
    kind[records.space], kind[records.roving] = "space", "roving"
    paired = records.second >= 0
    for rows, place, parse in (
        (records.space & paired, gcrs, _parse_space),
        (records.roving & paired, itrf, _parse_roving),
    ):
        for shift in np.unique(records.shift[rows]).tolist():
            here = np.flatnonzero(rows & (records.shift == shift))
            place[here] = parse(lines, records.second[here], shift)
    found = np.isfinite(np.where((kind == "space")[:, None], gcrs, itrf)).all(axis=1)
    return Places(kind, itrf, gcrs, found | (kind == "ground"))


def _parse_space(lines: Lines, rows: IntArray, shift: int) -> FloatArray:
    """Geocentric kilometres; the three numbers share the columns between unit and station."""
    length = lines.length[rows] - shift
    position = np.full((len(rows), 3), np.nan)
    for size in np.unique(length).tolist():
        width, rest = divmod(size - _BEFORE - _AFTER, 3)
        if rest or not 6 <= width <= 30:
            continue  # not readable: the record is reported as without position
        here = np.flatnonzero(length == size)
        matrix = lines.matrix(size, rows[here], shift)
        columns = [_BEFORE + axis * width for axis in range(3)]
        xyz = np.stack([_long_float(matrix[:, c : c + width]) for c in columns], axis=1)
        unit = matrix[:, _FLAG, None]
        scale = np.where(unit == ord("1"), 1.0, np.where(unit == ord("2"), AU_KM, np.nan))
        position[here] = xyz * scale
    return position


def _long_float(field: ByteArray) -> FloatArray:
    """Read numbers of more digits than a 64-bit integer holds."""
    texts = np.ascontiguousarray(field).view(f"S{field.shape[1]}")[:, 0]
    try:
        return texts.astype(float)
    except ValueError:
        return np.array([float_or_nan(text) for text in texts.tolist()])


def _parse_roving(lines: Lines, rows: IntArray, shift: int) -> FloatArray:
    """East longitude, latitude [deg] and altitude [m] on WGS 84 to Earth-fixed metres."""
    matrix = lines.matrix(_ROVING[-1].stop, rows, shift)
    longitude, latitude, altitude = (parse_float(matrix[:, field]).value for field in _ROVING)
    ok = (np.abs(longitude) <= 360.0) & (np.abs(latitude) <= 90.0) & np.isfinite(altitude)
    itrf = np.full((len(rows), 3), np.nan)
    itrf[ok] = erfa.gd2gc(1, np.radians(longitude[ok]), np.radians(latitude[ok]), altitude[ok])
    return itrf
