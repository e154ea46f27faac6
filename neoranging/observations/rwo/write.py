"""Writer of OrbFit ``.rwo`` files, versions 1 to 3."""

from __future__ import annotations

import os
from math import isnan
from typing import IO, Any, Final

import numpy as np
import numpy.typing as npt
from astropy import units as u
from astropy.table import QTable

from neoranging.exceptions import ObservationFormatError
from neoranging.observations.mpc_codes import join_note1
from neoranging.observations.output import (
    angles,
    band_letters,
    catalog_letters,
    decimal_dates,
    flags,
    numbers,
    observers,
    record_types,
    require_columns,
    sexagesimal,
    station_codes,
    texts,
    write_text,
)
from neoranging.observations.report import ReadReport, Reason
from neoranging.observations.rwo.layout import OBJECT_WIDTH
from neoranging.observations.utc import utc_days
from neoranging.typing import FloatArray, IntArray

VERSIONS: Final = (1, 2, 3)
WIDE_OBJECT: Final = 12
MAX_DAY_DECIMALS: Final = 10
RA_DECIMALS: Final = 3  # of seconds
DEC_DECIMALS: Final = 2

_OPTICAL_HEADER: Final = (
    "! Object{pad}   Obser ============= Date ============= ================== Right Ascension "
    "=================  ================= Declination ===================== ==== Magnitude ===="
    "{ast} Obs  Residual SEL",
    "! Design{pad}   K T N YYYY MM DD.dddddddddd   Accuracy HH MM SS.sss  Accuracy      RMS  F     "
    "Bias    Resid sDD MM SS.ss  Accuracy      RMS  F     Bias    Resid Val  B   RMS  Resid"
    "{cat} Cod       Chi A M",
)

_RADAR_HEADER: Final = (
    [
        "! Object   Obser ====== Date =======  ============ Radar range/range rate (km or km/d) "
        "============= Station    Residual",
        "! Design   K T N YYYY MM DD hh:mm:ss        Measure     Accuracy    rms    F      Bias"
        "       Resid   TRX RCX     Chi   S",
    ],
    [
        "! Object   Obser ====== Date =======  ============ Radar range/range rate (km or km/d) "
        "=============  Station  ====  Residual",
        "! Design   K T N YYYY MM DD hh:mm:ss         Measure  Accuracy       rms F        Bias"
        "       Resid    TRX  RCX        Chi   S",
    ],
)
"""Column lines of the radar section, before version 3 and from it on."""


def write_rwo(
    table: QTable,
    output: str | os.PathLike[str] | IO[Any],
    *,
    version: int | None = None,
    set_aside: bool = False,
    overwrite: bool = False,
) -> None:
    """Write an observation table as an OrbFit ``.rwo`` file.

    Parameters
    ----------
    table : QTable
        Observation table; columns of `read_rwo` that it lacks are left blank.
    output : str, path-like or file object
        Where to write.
    version : int, optional
        1, 2 or 3; by default that of ``table.meta["version"]``, else 3.
    set_aside : bool
        Put the records that the reader set aside (radar, replaced) back in their places, so that
        a file which was only read is written whole. By default the table is what is written.
    overwrite : bool
        Replace an existing file.

    Raises
    ------
    ObservationFormatError
        If a value has no place in the format.
    OSError
        If the file exists and `overwrite` is False, or cannot be written.
    """
    text = format_rwo(table, version=version, set_aside=set_aside)
    write_text(text, output, overwrite=overwrite, encoding="ascii")


def format_rwo(table: QTable, *, version: int | None = None, set_aside: bool = False) -> str:
    """Text of a ``.rwo`` file of an observation table; see `write_rwo`.

    Notes
    -----
    The format keeps 0.001 s of right ascension, 0.01 arcsec of declination, 1e-10 d of time and
    0.001 arcsec of sigmas, biases and residuals; more is rounded.
    """
    require_columns(table)
    version = int(table.meta.get("version", 3) if version is None else version)
    if version not in VERSIONS:
        msg = f"version {version} of .rwo is not known; give one of {VERSIONS}"
        raise ObservationFormatError(msg)
    names = np.strings.replace(np.asarray(table["designation"], dtype=np.str_), " ", "")
    longest = max(map(len, names.tolist()), default=0)
    if longest > WIDE_OBJECT:
        msg = f"a designation of {longest} characters does not fit the {WIDE_OBJECT} of .rwo"
        raise ObservationFormatError(msg)
    usual = int(table.meta.get("object_width", OBJECT_WIDTH))
    width = usual if longest <= usual else WIDE_OBJECT
    records = _records(table, np.strings.ljust(names, width).tolist(), version)
    if set_aside:
        records = _with_set_aside(records, table, version)
    pad = " " * (width - OBJECT_WIDTH)
    ast, cat = ("", "") if version == 1 else (" Ast", " Cat")
    lines = [
        f"version = {version:3d}",
        f"errmod  = '{table.meta.get('errmod') or ' '}'",
        *(f"{key}  = {table.meta[key]:13.5E}" for key in ("RMSast", "RMSmag") if key in table.meta),
        "END_OF_HEADER",
        *(line.format(pad=pad, ast=ast, cat=cat) for line in _OPTICAL_HEADER),
        *records,
    ]
    return "\n".join(lines) + "\n"


def _with_set_aside(records: list[str], table: QTable, version: int) -> list[str]:
    """Records merged with those of the report by line; radar follows its own column lines."""
    report = table.meta.get("report")
    if not isinstance(report, ReadReport):
        return records
    placed = list(zip(np.asarray(table["line"]).tolist(), records, strict=True))
    placed += [(entry.line, entry.text) for entry in report.set_aside]
    lines = [text for _, text in sorted(placed, key=lambda item: item[0])]
    radar = {entry.text for entry in report.set_aside if entry.reason is Reason.RADAR}
    first = next((k for k, text in enumerate(lines) if text in radar), len(lines))
    if radar:
        lines[first:first] = _RADAR_HEADER[version == VERSIONS[-1]]
    return lines


def _records(table: QTable, names: list[str], version: int) -> list[str]:
    """Optical records, field by field in the order of the columns, with their second lines."""
    ra, dec = angles(table)
    kind, places = observers(table)
    types = record_types(table, kind)
    station = station_codes(table)
    day, fraction = utc_days(table["obstime"])
    decimals = _day_decimals(table, fraction)
    dates = decimal_dates(day, fraction, decimals)
    ra_text = sexagesimal(ra / 15.0, np.full(len(table), RA_DECIMALS), full_turn=24)
    dec_text = sexagesimal(np.abs(dec), np.full(len(table), DEC_DECIMALS))
    catalog = [""] * len(table) if version == 1 else _joined(" %3s", catalog_letters(table))
    program, notes = (texts(table, name).tolist() for name in ("program", "notes"))
    fields = [
        _joined(" %s %s", names, np.where(kind == "space", "S", "O")),
        _joined(" %s %s ", types, join_note1(program, notes, station)),
        _joined("%-21s", dates),
        _number(_accuracy(table, "time_accuracy", 10.0 ** -decimals.astype(float)), "%11.3E"),
        *_coordinate(table, "ra", _joined(" %s", ra_text), 0.015 * np.cos(np.radians(dec))),
        *_coordinate(
            table,
            "dec",
            _joined(" %s%s", np.where(np.signbit(dec), "-", "+"), dec_text),
            np.full(len(table), 0.01),
        ),
        _magnitude(table),
        band_letters(table),
        _number(numbers(table, "sigma_mag"), "%6.2f"),
        _number(numbers(table, "mag_residual"), "%7.2f"),
        catalog,
        _joined(" %s", station),
        _number(numbers(table, "chi"), "%10.2f"),
        _joined(" %d %d", flags(table, "selected", fill=True), flags(table, "mag_selected")),
    ]
    records = list(map("".join, zip(*fields, strict=True)))
    for row in np.flatnonzero(kind != "ground").tolist():
        # The second line holds five decimals of the day at most.
        date = f"{dates[row][:16]:16}"
        x, y, z = places[row].tolist()
        if kind[row] == "space":
            mark, place = "S s", f"1{x:24.12f}{y:24.12f}{z:24.12f}"
        else:
            mark, place = "O v", f"{x:10.6f}{y:11.6f}{z:9.1f}"
        records[row] += f"\n {names[row]} {mark}   {date} {place} {station[row]}"
    return records


def _coordinate(table: QTable, name: str, angle: list[str], digit: FloatArray) -> list[list[str]]:
    """Six fields of one coordinate; ``digit`` is the unit of the last one written [arcsec]."""
    has_bias = f"{name}_bias" in table.colnames
    bias = numbers(table, f"{name}_bias", u.arcsec) if has_bias else np.zeros(len(table))
    return [
        angle,
        _number(_accuracy(table, f"{name}_accuracy", digit), "%11.3E"),
        _number(numbers(table, f"sigma_{name}", u.arcsec), "%9.3f"),
        np.where(flags(table, f"{name}_forced"), " T", " F").tolist(),
        _number(bias, "%9.3f"),
        _number(numbers(table, f"{name}_residual", u.arcsec), "%9.3f"),
    ]


def _day_decimals(table: QTable, fraction: FloatArray) -> IntArray:
    """Decimals of the days that the accuracy tells or that the values need, at most ten."""
    needed = np.full(len(fraction), MAX_DAY_DECIMALS)
    for places in reversed(range(MAX_DAY_DECIMALS)):
        scaled = fraction * 10.0**places
        fits = np.abs(scaled - np.rint(scaled)) < 10.0 ** (places - MAX_DAY_DECIMALS) / 2
        needed[fits] = places
    stated = -np.log10(_accuracy(table, "time_accuracy", np.ones(len(fraction))))
    return np.maximum(needed, np.clip(np.rint(stated), 0, MAX_DAY_DECIMALS).astype(np.int64))


def _magnitude(table: QTable) -> list[str]:
    """Magnitudes with as many decimals as they were given, at the left of five columns."""
    mag = numbers(table, "mag")
    decimals = -np.log10(_accuracy(table, "mag_accuracy", np.where(mag * 10 % 1 < 1e-6, 0.1, 0.01)))
    decimals = np.clip(np.rint(np.nan_to_num(decimals)), 0, 2).astype(np.int64)
    return [
        " " * 6 if np.isnan(value) else f" {value:<5.{places}f}"
        for value, places in zip(mag.tolist(), decimals.tolist(), strict=True)
    ]


def _joined(template: str, *columns: npt.ArrayLike) -> list[str]:
    """Rows of columns put into a template of Python's ``%``."""
    return list(map(template.__mod__, zip(*(np.asarray(c).tolist() for c in columns), strict=True)))


def _number(values: FloatArray, template: str) -> list[str]:
    """Numbers as text, blank for NaN; fixed-point ones of a thousand and more with an exponent."""
    width = len(template % 0.0)
    short = f"%{width}.1E"
    limit = 1000.0 if template.endswith(".3f") else np.inf
    return [
        " " * width if isnan(value) else (template if abs(value) < limit else short) % value
        for value in values.tolist()
    ]


def _accuracy(table: QTable, name: str, fallback: FloatArray) -> FloatArray:
    """Unit of the last digit of a column, where the table tells it."""
    stated = numbers(table, name)
    return np.where(np.isfinite(stated), stated, fallback)
