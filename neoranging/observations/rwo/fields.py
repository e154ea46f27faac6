"""Fields of ``.rwo`` records: bytes of the columns to arrays, and the places on second lines."""

from __future__ import annotations

from typing import Final

import numpy as np

from neoranging.constants import AU_KM
from neoranging.observations.fixed_width import (
    BLANK,
    Lines,
    field_strings,
    float_or_nan,
    is_blank,
    parse_dates,
    parse_directions,
    parse_float,
    parse_scientific,
)
from neoranging.observations.places import geodetic_to_itrf
from neoranging.observations.rwo.layout import RwoRecords
from neoranging.typing import AnyArray, ByteArray, FloatArray, IntArray

CHUNK: Final = 16_384
"""Records parsed at a time, so that the columns at work stay in the cache of the processor."""

_NUMBERS: Final = {
    "sigma_ra": slice(73, 82),
    "ra_bias": slice(84, 93),
    "ra_residual": slice(93, 102),
    "sigma_dec": slice(126, 135),
    "dec_bias": slice(137, 146),
    "dec_residual": slice(146, 155),
    "mag": slice(156, 161),
    "sigma_mag": slice(163, 168),
    "mag_residual": slice(168, 175),
    "chi": slice(183, 193),
}
_ACCURACIES: Final = {
    "time_accuracy": slice(39, 49),
    "ra_accuracy": slice(63, 73),
    "dec_accuracy": slice(116, 126),
}
_TEXTS: Final = {"note2": 13, "program": 15, "band": 161, "catalog": 178}
_STATION: Final = slice(180, 183)
_UNIT: Final = 34  # column of the unit of a spacecraft's position: 1 for km, 2 for au
_AFTER: Final = 4  # columns behind the position: a blank and the station
_ROVING: Final = (slice(34, 45), slice(45, 56), slice(56, 64))


def parse_fields(matrix: ByteArray) -> dict[str, AnyArray]:
    """Columns of N records in the layout of version 3, NaN or ``""`` where a field is blank.

    Returns
    -------
    dict of str to ndarray
        Columns by their names in the table; besides ``year``, the units of the last digits
        ``ra_resolution`` and ``dec_resolution`` [arcsec], and the flags ``time_ok``, ``sky_ok`` and
        ``is_unreadable`` (some number is none).
    """
    starts = range(0, max(len(matrix), 1), CHUNK)
    chunks = [_parse_chunk(matrix[start : start + CHUNK]) for start in starts]
    return {name: np.concatenate([chunk[name] for chunk in chunks]) for name in chunks[0]}


def _parse_chunk(m: ByteArray) -> dict[str, AnyArray]:
    date = parse_dates(m[:, 17:39])
    sky = parse_directions(m[:, 50:63], m[:, 103], m[:, 104:116])
    columns: dict[str, AnyArray] = {
        "year": date.year,
        "mjd_day": date.mjd,
        "mjd_fraction": date.fraction,
        "time_ok": date.ok,
        "ra": sky.ra,
        "dec": sky.dec,
        "sky_ok": sky.ra_ok & sky.dec_ok,
        "ra_resolution": sky.ra_resolution,
        "dec_resolution": sky.dec_resolution,
        **{name: field_strings(m[:, [column]]) for name, column in _TEXTS.items()},
        "station": field_strings(m[:, _STATION]),
        "selected": m[:, 194] != ord("0"),
        "mag_selected": (m[:, 196] != ord("0")) & (m[:, 196] != BLANK),
        "ra_forced": m[:, 83] == ord("T"),
        "dec_forced": m[:, 136] == ord("T"),
        "is_unreadable": np.zeros(len(m), dtype=bool),
    }
    for name, columns_of_field in (_NUMBERS | _ACCURACIES).items():
        field = m[:, columns_of_field]
        parse = parse_scientific if name in _ACCURACIES else parse_float
        value, ok, decimals = parse(field)
        rest = np.flatnonzero(~ok)
        for row in rest[~is_blank(field[rest])].tolist():
            # A number too large for its columns is written with an exponent.
            value[row] = float_or_nan(field[row].tobytes())
            columns["is_unreadable"][row] |= np.isnan(value[row])
        columns[name] = value
        if name == "mag":
            columns["mag_accuracy"] = np.where(np.isnan(value), np.nan, 10.0**-decimals)
    return columns


def parse_places(lines: Lines, records: RwoRecords) -> dict[str, AnyArray]:
    """Kinds and places of the observers of N records from their second lines.

    Returns
    -------
    dict of str to ndarray
        ``kind``; ``observer_itrf`` [m] and ``observer_gcrs`` [km], NaN where not given.
    """
    gcrs, itrf = np.full((2, len(records), 3), np.nan)
    paired = records.second >= 0
    for rows, places, parse in (
        (records.space & paired, gcrs, _parse_space),
        (records.roving & paired, itrf, _parse_roving),
    ):
        for shift in np.unique(records.shift[rows]).tolist():
            here = np.flatnonzero(rows & (records.shift == shift))
            places[here] = parse(lines, records.second[here], shift)
    kind = np.select([records.space, records.roving], ["space", "roving"], "ground")
    return {"kind": kind, "observer_itrf": itrf, "observer_gcrs": gcrs}


def _parse_space(lines: Lines, rows: IntArray, shift: int) -> FloatArray:
    """Geocentric kilometres; the three numbers share the columns between unit and station."""
    length = lines.length[rows] - shift
    position = np.full((len(rows), 3), np.nan)
    for size in np.unique(length).tolist():
        width, rest = divmod(size - _UNIT - 1 - _AFTER, 3)
        if rest or not 6 <= width <= 30:
            continue  # not readable: the record is reported as without position
        here = np.flatnonzero(length == size)
        matrix = lines.matrix(size, rows[here], shift)
        # Numbers of more digits than a 64-bit integer holds, of which few are damaged.
        texts = np.ascontiguousarray(matrix[:, _UNIT + 1 : -_AFTER]).view(f"S{width}")
        try:
            xyz = texts.astype(float)
        except ValueError:
            xyz = np.array([[float_or_nan(text) for text in row] for row in texts.tolist()])
        unit = matrix[:, [_UNIT]]
        position[here] = xyz * np.select([unit == ord("1"), unit == ord("2")], [1.0, AU_KM], np.nan)
    return position


def _parse_roving(lines: Lines, rows: IntArray, shift: int) -> FloatArray:
    """Earth-fixed metres of east longitude, latitude [deg] and altitude [m] on WGS 84."""
    matrix = lines.matrix(_ROVING[-1].stop, rows, shift)
    return geodetic_to_itrf(
        np.stack([parse_float(matrix[:, field]).value for field in _ROVING], axis=1)
    )
