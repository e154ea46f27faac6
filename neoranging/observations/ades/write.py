"""Writer of ADES in its pipe-separated form."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from functools import lru_cache
from math import isnan
from typing import IO, Any, Final

import erfa
import numpy as np
from astropy import units as u
from astropy.table import QTable

from neoranging.constants import DAY_S
from neoranging.exceptions import ObservationFormatError
from neoranging.observations.designation import pack
from neoranging.observations.mpc_codes import CATALOG_NAMES, MODES, PROGRAM_NAMES
from neoranging.observations.output import angles, numbers, require_columns, texts, write_text
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
    """Return an observation table as ADES PSV text; see `write_ades_psv`.

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
        chosen = {
            name: [column[row] for row in rows]
            for name, column in columns.items()
            if any(column[row] for row in rows)
        }
        lines += _aligned(chosen)
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


def _aligned(columns: dict[str, list[str]]) -> list[str]:
    """A line of names and the records below it, in columns of equal width."""
    widths = {name: max(len(name), *map(len, column)) for name, column in columns.items()}
    padded = [
        [text.ljust(widths[name]) for text in (name, *column)] for name, column in columns.items()
    ]
    return ["|".join(row).rstrip() for row in zip(*padded, strict=True)]


def _columns(table: QTable) -> dict[str, list[str]]:
    """Text of every ADES field that the table has something for, in the order of the standard."""
    ra, dec = angles(table)
    columns = {
        **_identifiers(table),
        "mode": _mode(table),
        "stn": _text(table, "station"),
        **_place(table),
        "prog": _program(table),
        "obsTime": _obstime(table),
        "ra": _decimals(ra, ANGLE_DECIMALS),
        "dec": _decimals(dec, ANGLE_DECIMALS),
        **_sigmas(table),
        "astCat": [CATALOG_NAMES.get(name, name) or "UNK" for name in _text(table, "catalog")],
        **_photometry(table),
        **_precisions(table),
        "disc": ["*" if flag == "True" else "" for flag in _text(table, "discovery")],
    }
    known = {name: columns[name] for name in ORDER if name in columns}
    for name in table.colnames:
        if name in ORDER and name not in _DERIVED:
            known[name] = _plain(table, name)
    return {name: known[name] for name in ORDER if name in known}


def _identifiers(table: QTable) -> dict[str, list[str]]:
    """The identifiers a table has, and for records without one what its designation is."""
    columns = {name: _text(table, name) for name in ("permID", "provID", "artSat", "trkSub")}
    for row, designation in enumerate(_text(table, "designation")):
        if not any(column[row] for column in columns.values()):
            name, text = _identifier(designation)
            columns[name][row] = text
    return columns


@lru_cache(maxsize=4096)
def _identifier(designation: str) -> tuple[str, str]:
    """Which field holds a designation, and how it is spelled there."""
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


def _mode(table: QTable) -> list[str]:
    pairs = zip(_text(table, "mode"), _text(table, "note2"), strict=True)
    return [mode or MODES.get(code, "UNK") for mode, code in pairs]


def _program(table: QTable) -> list[str]:
    """Codes of programmes, of two characters in ADES."""
    return [
        code if len(code) != 1 else PROGRAM_NAMES.get(code, "")
        for code in texts(table, "program").tolist()
    ]


def _precisions(table: QTable) -> dict[str, list[str]]:
    """Units of the last digits written, where the table knows them.

    The standard has them in 1e-6 d, in seconds of right ascension and in arcseconds.
    """
    units = {
        "precTime": numbers(table, "time_resolution", u.s) / DAY_S * _MICRO,
        "precRA": numbers(table, "ra_resolution", u.arcsec) / 15.0,
        "precDec": numbers(table, "dec_resolution", u.arcsec),
    }
    return {
        name: ["" if isnan(value) else f"{value:.10g}" for value in column.tolist()]
        for name, column in units.items()
    }


def _place(table: QTable) -> dict[str, list[str]]:
    """The location group of spacecraft (ICRF_KM) and roving observers (WGS84)."""
    kind = texts(table, "kind", "ground")
    systems = {"space": "ICRF_KM", "roving": "WGS84"}
    columns = {
        "sys": [systems.get(text, "") for text in kind.tolist()],
        "ctr": ["399" if text in systems else "" for text in kind.tolist()],
    }
    position = np.full((len(table), 3), np.nan)
    space, roving = (kind == wanted for wanted in systems)
    if space.any():
        position[space] = numbers(table[space], "observer_gcrs", u.km)
    if roving.any():
        itrf = numbers(table[roving], "observer_itrf", u.m)
        longitude, latitude, altitude = erfa.gc2gd(1, itrf)
        degrees = np.degrees(longitude) % 360.0, np.degrees(latitude)
        position[roving] = np.stack([*degrees, np.round(altitude, 3)], axis=1)
    decimals = np.where(roving, ANGLE_DECIMALS, _KM_DECIMALS)
    for axis in range(3):
        columns[f"pos{axis + 1}"] = [
            _fitting(value, _POSITION_WIDTH, places)
            for value, places in zip(position[:, axis].tolist(), decimals.tolist(), strict=True)
        ]
    return columns


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


def _sigmas(table: QTable) -> dict[str, list[str]]:
    """Sigmas that came from a file; those are the observer's or an error model's."""
    known = texts(table, "sigma_source", "file") == "file"
    columns = {}
    for field, name in (("rmsRA", "sigma_ra"), ("rmsDec", "sigma_dec")):
        values = np.where(known, numbers(table, name, u.arcsec), np.nan)
        columns[field] = [_fitting(value, _SIGMA_WIDTH, 5) for value in values.tolist()]
    return columns


def _photometry(table: QTable) -> dict[str, list[str]]:
    """Magnitude and band, which the standard wants together."""
    mag = [_fitting(value, _MAG_WIDTH, 5) for value in numbers(table, "mag").tolist()]
    bands = zip(mag, _text(table, "band"), strict=True)
    return {"mag": mag, "band": [(band or "UNK") if text else "" for text, band in bands]}


def _fitting(value: float, width: int, decimals: int) -> str:
    """Shortest text of a number, rounded until it fits; blank for NaN."""
    if isnan(value):
        return ""
    for places in range(decimals, -1, -1):
        text = _shortest(round(value, places), places)
        if len(text) <= width:
            return text
    msg = f"{value!r} does not fit the {width} characters that ADES gives it"
    raise ObservationFormatError(msg)


def _shortest(value: float, decimals: int) -> str:
    text = repr(value + 0.0)  # no negative zero
    if "e" in text:
        text = f"{value:.{decimals}f}".rstrip("0")
    return text.removesuffix(".0").removesuffix(".") or "0"


def _decimals(values: FloatArray, decimals: int) -> list[str]:
    rounded = np.round(np.asarray(values, dtype=np.float64), decimals).tolist()
    return [_shortest(value, decimals) for value in rounded]


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
