"""Writer of ADES in its pipe-separated form."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from functools import lru_cache
from math import isnan
from typing import IO, Any, Final

import numpy as np
from astropy import units as u
from astropy.table import QTable

from neoranging.constants import DAY_S
from neoranging.exceptions import ObservationFormatError
from neoranging.observations.designation import pack
from neoranging.observations.mpc_codes import CATALOG_NAMES, MODES, PROGRAM_NAMES
from neoranging.observations.output import (
    angles,
    flags,
    numbers,
    observers,
    require_columns,
    texts,
    write_text,
)
from neoranging.observations.utc import MJD_1970, seconds_in_day, utc_days
from neoranging.typing import FloatArray

DEFAULT_VERSION: Final = "2022"
ANGLE_DECIMALS: Final = 9
"""The most that ADES allows for right ascension and declination [deg]."""

ORDER: Final = tuple(
    name
    for names in (
        "permID provID artSat trkSub obsID obsSubID trkID trkMPC mode stn sys ctr pos1 pos2 pos3",
        "vel1 vel2 vel3 posCov11 posCov12 posCov13 posCov22 posCov23 posCov33 prog obsTime rmsTime",
        "ra dec rmsRA rmsDec rmsCorr astCat mag rmsMag band fltr photCat photAp nucMag logSNR",
        "seeing exp rmsFit nStars com ref disc subFrm subFmt precTime precRA precDec uncTime notes",
        "remarks",
    )
    for name in names.split()
)
"""ADES fields of an optical record in the order of the standard."""

_DERIVED: Final = frozenset(
    {"mag", "band", "ra", "dec", "mode", "permID", "provID", "artSat", "trkSub"}
)
"""Fields that are made from the common columns, or already taken from the table."""

_NUMBERED: Final = re.compile(r"\d+(?:[IPD](?:-[A-Z]{1,2})?)?")
_PROVISIONAL: Final = re.compile(
    r"[A12]\d{3} [A-HJ-Y][A-HJ-Z]\d*|\d{4} [PT]-[L123]|[PCDXAI]/[12]\d{3} [A-HJ-Y].*"
)
_SATELLITE: Final = re.compile(r"(Mars|Jupiter|Saturn|Uranus|Neptune) [CLXVI]+")
_MAX_TRKSUB: Final = 8
_POSITION_WIDTH: Final = 14
_KM_DECIMALS: Final = 6
_MICRO: Final = 1_000_000
_SIGMA_WIDTH: Final = 7
_MAG_WIDTH: Final = 7


def write_ades_psv(
    table: QTable,
    output: str | os.PathLike[str] | IO[Any],
    *,
    version: str | None = None,
    header: Sequence[str] = (),
    overwrite: bool = False,
) -> None:
    """Write an observation table as ADES PSV.

    Parameters
    ----------
    table : QTable
        Observation table. Columns that bear the name of an ADES field are written as they are;
        the identifiers come from ``designation`` where ``permID``, ``provID`` and ``trkSub`` are
        missing. Sigmas are written only where they came from a file: a default is no statement
        of the observer.
    output : str, path-like or file object
        Where to write.
    version : str, optional
        Version of the standard; by default that of ``table.meta["ades_version"]``, else 2022.
    header : sequence of str, optional
        ``#`` and ``!`` lines (observatory, submitter ...) to stand above the records, which are
        then one block. By default the headers of ``table.meta["ades_headers"]``, block by block.
    overwrite : bool
        Replace an existing file.

    Raises
    ------
    ObservationFormatError
        If a value has no place in the format.
    OSError
        If the file exists and `overwrite` is False, or cannot be written.
    """
    text = format_ades_psv(table, version=version, header=header)
    write_text(text, output, overwrite=overwrite, encoding="utf-8")


def format_ades_psv(
    table: QTable, *, version: str | None = None, header: Sequence[str] = ()
) -> str:
    """ADES PSV text of an observation table; see `write_ades_psv`.

    Notes
    -----
    Angles keep 1e-9 deg, times 1 microsecond, places 1 mm; more is rounded.
    """
    require_columns(table)
    version = version or table.meta.get("ades_version") or DEFAULT_VERSION
    columns = {name: column for name, column in _columns(table).items() if any(column)}
    lines = [f"# version={version}"]
    for block, rows in _blocks(table, header):
        lines += block
        # A line of names and the records below it, in columns of equal width.
        padded = []
        for name, column in columns.items():
            cells = [column[row] for row in rows]
            if any(cells):
                width = max(len(name), *map(len, cells))
                padded.append([text.ljust(width) for text in (name, *cells)])
        lines += ["|".join(row).rstrip() for row in zip(*padded, strict=True)]
    return "\n".join(lines) + "\n"


def _blocks(table: QTable, header: Sequence[str]) -> list[tuple[Sequence[str], list[int]]]:
    """Header lines with the rows that stand under them, in the order of the table."""
    headers = table.meta.get("ades_headers", ())
    if header or not headers or "block" not in table.colnames:
        return [(header, list(range(len(table))))] if len(table) else []
    block = np.asarray(table["block"])
    edges = np.flatnonzero(np.diff(block)) + 1
    return [
        (headers[int(block[rows[0]])] if block[rows[0]] >= 0 else (), rows.tolist())
        for rows in np.split(np.arange(len(block)), edges)
        if len(rows)
    ]


def _columns(table: QTable) -> dict[str, list[str]]:
    """Text of every ADES field that the table has something for, in the order of the standard."""
    ra, dec = angles(table)
    kind, places = observers(table)
    space, roving = kind == "space", kind == "roving"
    places[roving, 2] = places[roving, 2].round(3)  # altitudes to the millimetre
    sigma_known = texts(table, "sigma_source", "file") == "file"
    mag = _fitting(numbers(table, "mag"), _MAG_WIDTH, 5)
    columns = {
        **_identifiers(table),
        "mode": [
            mode or MODES.get(code, "UNK")
            for mode, code in zip(_text(table, "mode"), _text(table, "note2"), strict=True)
        ],
        "stn": _text(table, "station"),
        "sys": np.select([space, roving], ["ICRF_KM", "WGS84"], "").tolist(),
        "ctr": np.where(space | roving, "399", "").tolist(),
        **{
            f"pos{axis + 1}": np.where(
                space,
                _fitting(np.where(space, place, np.nan), _POSITION_WIDTH, _KM_DECIMALS),
                _fitting(np.where(roving, place, np.nan), _POSITION_WIDTH, ANGLE_DECIMALS),
            ).tolist()
            for axis, place in enumerate(places.T)
        },
        # Codes of programmes have two characters in ADES.
        "prog": [
            code if len(code) != 1 else PROGRAM_NAMES.get(code, "")
            for code in texts(table, "program").tolist()
        ],
        "obsTime": _obstime(table),
        "ra": [_shortest(angle, ANGLE_DECIMALS) for angle in ra.round(ANGLE_DECIMALS).tolist()],
        "dec": [_shortest(angle, ANGLE_DECIMALS) for angle in dec.round(ANGLE_DECIMALS).tolist()],
        # Sigmas that came from no file are not the observer's.
        **{
            field: _fitting(
                np.where(sigma_known, numbers(table, name, u.arcsec), np.nan), _SIGMA_WIDTH, 5
            )
            for field, name in (("rmsRA", "sigma_ra"), ("rmsDec", "sigma_dec"))
        },
        "astCat": [CATALOG_NAMES.get(name, name) or "UNK" for name in _text(table, "catalog")],
        # The standard wants magnitude and band together.
        "mag": mag,
        "band": [
            (band or "UNK") if value else ""
            for value, band in zip(mag, _text(table, "band"), strict=True)
        ],
        # Units of the last digits: 1e-6 d, seconds of right ascension and arcseconds.
        **{
            field: ["" if isnan(unit) else f"{unit:.10g}" for unit in column.tolist()]
            for field, column in (
                ("precTime", numbers(table, "time_resolution", u.s) / DAY_S * _MICRO),
                ("precRA", numbers(table, "ra_resolution", u.arcsec) / 15.0),
                ("precDec", numbers(table, "dec_resolution", u.arcsec)),
            )
        },
        "disc": np.where(flags(table, "discovery"), "*", "").tolist(),
    }
    for name in table.colnames:
        if name in ORDER and name not in _DERIVED:
            columns[name] = _plain(table, name)
    return {name: columns[name] for name in ORDER if name in columns}


def _identifiers(table: QTable) -> dict[str, list[str]]:
    """Identifiers of the table, and of records without one what their designation is."""
    columns = {name: _text(table, name) for name in ("permID", "provID", "artSat", "trkSub")}
    for row, designation in enumerate(_text(table, "designation")):
        if not any(column[row] for column in columns.values()):
            name, text = _identifier(designation)
            columns[name][row] = text
    return columns


@lru_cache(maxsize=4096)
def _identifier(designation: str) -> tuple[str, str]:
    """Name of the field that holds a designation, and its spelling there."""
    if _NUMBERED.fullmatch(designation):
        return "permID", designation
    if _PROVISIONAL.fullmatch(designation):
        # ADES writes all years out; the MPC's A for the 1 of years before 1925 is of its packing.
        return "provID", re.sub(r"^A(?=\d{3} )", "1", designation)
    if match := _SATELLITE.fullmatch(designation):
        return "permID", f"{match[1]} {int(pack(designation)[1:4])}"
    if 0 < len(designation) <= _MAX_TRKSUB and " " not in designation:
        return "trkSub", designation
    msg = (
        f"{designation!r} fits no ADES identifier: it is neither a number, a provisional "
        f"designation nor a tracklet name of at most {_MAX_TRKSUB} characters; give a permID, "
        "provID or trkSub column"
    )
    raise ObservationFormatError(msg)


def _obstime(table: QTable) -> list[str]:
    """UTC to the microsecond, without closing zeros; a leap second is second 60."""
    day, fraction = utc_days(table["obstime"])
    length = (seconds_in_day(day) * _MICRO).astype(np.int64)
    clock = np.rint(fraction * length).astype(np.int64)
    day, clock = day + (clock >= length), np.where(clock >= length, 0, clock)
    seconds, micro = np.divmod(clock, _MICRO)
    hour = np.minimum(seconds // 3600, 23)
    minute = np.minimum((seconds - hour * 3600) // 60, 59)
    second = seconds - hour * 3600 - minute * 60
    date = np.datetime_as_string((day - MJD_1970).astype("datetime64[D]")).tolist()
    parts = zip(date, *(x.tolist() for x in (hour, minute, second, micro)), strict=True)
    stamps = (f"{d}T{h:02d}:{m:02d}:{s:02d}.{us:06d}" for d, h, m, s, us in parts)
    return [text.rstrip("0").rstrip(".") + "Z" for text in stamps]


def _fitting(values: FloatArray, width: int, decimals: int) -> list[str]:
    """Shortest texts of numbers, rounded until they fit; blank for NaN."""
    fitting = []
    for value in values.tolist():
        text, places = "", decimals
        if not isnan(value):
            text = _shortest(round(value, places), places)
            while len(text) > width and places:
                places -= 1
                text = _shortest(round(value, places), places)
        if len(text) > width:
            msg = f"{value!r} does not fit the {width} characters that ADES gives it"
            raise ObservationFormatError(msg)
        fitting.append(text)
    return fitting


def _shortest(value: float, decimals: int) -> str:
    """Text of a rounded number without exponent and closing zeros."""
    text = repr(value + 0.0)  # no negative zero
    if "e" in text:
        text = f"{value:.{decimals}f}".rstrip("0")
    return text.removesuffix(".0").removesuffix(".") or "0"


def _plain(table: QTable, name: str) -> list[str]:
    """A column that bears an ADES name, as it is."""
    column = np.asarray(table[name])
    if column.dtype.kind == "f":
        return [
            "" if isnan(value) else f"{value!r}".removesuffix(".0") for value in column.tolist()
        ]
    return _text(table, name)


def _text(table: QTable, name: str) -> list[str]:
    """Texts without what would end a field or a record; a pipe becomes a slash."""
    return [
        text if text.isalnum() else " ".join(text.replace("|", "/").split())
        for text in texts(table, name).tolist()
    ]
