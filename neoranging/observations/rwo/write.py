"""Writer of OrbFit ``.rwo`` files, versions 1 to 3."""

from __future__ import annotations

import os
from math import isnan
from typing import IO, Any, Final

import erfa
import numpy as np
import numpy.typing as npt
from astropy import units as u
from astropy.table import QTable

from neoranging.exceptions import ObservationFormatError
from neoranging.observations.mpc_codes import CATALOG_CODES, join_note1
from neoranging.observations.output import angles, numbers, require_columns, texts, write_text
from neoranging.observations.report import ReadReport, Reason
from neoranging.observations.rwo.layout import OBJECT_WIDTH
from neoranging.observations.utc import MJD_1970, utc_days
from neoranging.typing import BoolArray, FloatArray, IntArray, StrArray

VERSIONS: Final = (1, 2, 3)
WIDE_OBJECT: Final = 12
MAX_DAY_DECIMALS: Final = 10
RA_STEPS: Final = 24 * 3_600_000
"""Steps of 0.001 s, the last digit of right ascension, in a full turn."""

DEC_STEPS: Final = 360_000
"""Steps of 0.01 arcsec, the last digit of declination, in a degree."""

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
    """Return an observation table as the text of a ``.rwo`` file; see `write_rwo`.

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
    width = _object_width(table, names)
    names = np.strings.ljust(names, width)
    first = _first_lines(table, names, version)
    second = _second_lines(table, names)
    records = [f"{a}\n{b}" if b else a for a, b in zip(first, second, strict=True)]
    lines = [*_header(table, version), *_column_lines(version, width)]
    if set_aside:
        records = _with_set_aside(records, table, version)
    return "\n".join([*lines, *records]) + "\n"


def _object_width(table: QTable, names: StrArray) -> int:
    longest = max(map(len, names.tolist()), default=0)
    if longest > WIDE_OBJECT:
        msg = f"a designation of {longest} characters does not fit the {WIDE_OBJECT} of .rwo"
        raise ObservationFormatError(msg)
    usual = table.meta.get("object_width", OBJECT_WIDTH)
    return int(usual) if longest <= usual else WIDE_OBJECT


def _header(table: QTable, version: int) -> list[str]:
    lines = [f"version = {version:3d}", f"errmod  = '{table.meta.get('errmod') or ' '}'"]
    lines += [
        f"{key}  = {table.meta[key]:13.5E}" for key in ("RMSast", "RMSmag") if key in table.meta
    ]
    return [*lines, "END_OF_HEADER"]


def _column_lines(version: int, width: int) -> list[str]:
    pad = " " * (width - OBJECT_WIDTH)
    ast, cat = ("", "") if version == 1 else (" Ast", " Cat")
    return [line.format(pad=pad, ast=ast, cat=cat) for line in _OPTICAL_HEADER]


def _with_set_aside(records: list[str], table: QTable, version: int) -> list[str]:
    """Merge the records of the report by line; radar follows its own column lines."""
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


def _first_lines(table: QTable, names: StrArray, version: int) -> list[str]:
    """Format the optical records, field by field in the order of the columns."""
    time = _Dates(table)
    ra, dec = angles(table)
    codes = _codes(table, version)
    kind = np.where(texts(table, "kind", "ground") == "space", "S", "O")
    fields = [
        _joined(" %s %s %s %s ", names, kind, codes["technique"], codes["program"]),
        _joined("%s %-13s", time.month, time.day),
        _number(_accuracy(table, "time_accuracy", time.accuracy), "%11.3E"),
        *_coordinate(table, "ra", _sexagesimal_ra(ra), 0.015 * np.cos(np.radians(dec))),
        *_coordinate(table, "dec", _sexagesimal_dec(dec), np.full(len(table), 0.01)),
        _magnitude(table),
        codes["band"],
        _number(numbers(table, "sigma_mag"), "%6.2f"),
        _number(numbers(table, "mag_residual"), "%7.2f"),
        codes["observatory"],
        _number(numbers(table, "chi"), "%10.2f"),
        _selection(table),
    ]
    return list(map("".join, zip(*fields, strict=True)))


def _coordinate(table: QTable, name: str, angle: list[str], digit: FloatArray) -> list[list[str]]:
    """Return the six fields of one coordinate; ``digit`` is the unit of the last one written."""
    forced = _flags(table, f"{name}_forced", default=False)
    accuracy = _accuracy(table, f"{name}_accuracy", digit)
    has_bias = f"{name}_bias" in table.colnames
    bias = numbers(table, f"{name}_bias", u.arcsec) if has_bias else np.zeros(len(table))
    return [
        [f" {text}" for text in angle],
        _number(accuracy, "%11.3E"),
        _number(numbers(table, f"sigma_{name}", u.arcsec), "%9.3f"),
        [" T" if flag else " F" for flag in forced],
        _number(bias, "%9.3f"),
        _number(numbers(table, f"{name}_residual", u.arcsec), "%9.3f"),
    ]


def _second_lines(table: QTable, names: StrArray) -> list[str]:
    """Format the places of spacecraft and roving observers; "" for records of one line."""
    kind = texts(table, "kind", "ground")
    lines = np.full(len(table), "", dtype=object)
    if not (kind != "ground").any():
        return lines.tolist()
    time, station = _Dates(table), texts(table, "station")
    dates = _joined("%s %-8.8s", time.month, time.day)
    for row in np.flatnonzero(kind != "ground").tolist():
        mark = "S s" if kind[row] == "space" else "O v"
        place = _space(table, row) if kind[row] == "space" else _roving(table, row)
        lines[row] = f" {names[row]} {mark}   {dates[row]} {place} {station[row]}"
    return lines.tolist()


def _space(table: QTable, row: int) -> str:
    """Unit flag 1 (km) and the three coordinates."""
    return "1" + "".join(f"{x:24.12f}" for x in table["observer_gcrs"][row].to_value(u.km))


def _roving(table: QTable, row: int) -> str:
    """East longitude, latitude [deg] and altitude [m] on WGS 84."""
    longitude, latitude, altitude = erfa.gc2gd(1, table["observer_itrf"][row].to_value(u.m))
    return f"{np.degrees(longitude) % 360.0:10.6f}{np.degrees(latitude):11.6f}{altitude:9.1f}"


class _Dates:
    """Dates of a table as text, and the unit of the last digit shown [d]."""

    def __init__(self, table: QTable) -> None:
        whole, fraction = utc_days(table["obstime"])
        decimals = self._decimals(table, fraction)
        ticks = np.rint(fraction * 10.0**decimals)
        turned = ticks >= 10.0**decimals
        ticks[turned] = 0.0
        date = (whole + turned - MJD_1970).astype("datetime64[D]")
        days = np.datetime_as_string(date).tolist()
        self.month = [f"{text[:4]} {text[5:7]}" for text in days]
        self.day = [
            f"{text[8:]}.{int(tick):0{places}d}" if places else text[8:]
            for text, tick, places in zip(days, ticks, decimals.tolist(), strict=True)
        ]
        self.accuracy: FloatArray = 10.0 ** -decimals.astype(np.float64)

    @staticmethod
    def _decimals(table: QTable, fraction: FloatArray) -> IntArray:
        """As many as the accuracy says, or as the value needs, at most ten."""
        needed = np.full(len(fraction), MAX_DAY_DECIMALS)
        for places in reversed(range(MAX_DAY_DECIMALS)):
            scaled = fraction * 10.0**places
            fits = np.abs(scaled - np.rint(scaled)) < 10.0 ** (places - MAX_DAY_DECIMALS) / 2
            needed[fits] = places
        stated = -np.log10(_accuracy(table, "time_accuracy", np.ones(len(fraction))))
        stated = np.clip(np.rint(stated), 0, MAX_DAY_DECIMALS).astype(np.int64)
        return np.maximum(needed, stated)


def _sexagesimal_ra(ra: FloatArray) -> list[str]:
    ticks = np.rint(ra / 360.0 * RA_STEPS).astype(np.int64) % RA_STEPS
    seconds, milli = np.divmod(ticks, 1000)
    minutes, seconds = np.divmod(seconds, 60)
    return _joined("%02d %02d %02d.%03d", *np.divmod(minutes, 60), seconds, milli)


def _sexagesimal_dec(dec: FloatArray) -> list[str]:
    sign = np.where(np.signbit(dec), "-", "+")
    ticks = np.rint(np.abs(dec) * DEC_STEPS).astype(np.int64)
    seconds, centi = np.divmod(ticks, 100)
    minutes, seconds = np.divmod(seconds, 60)
    return _joined("%s%02d %02d %02d.%02d", sign, *np.divmod(minutes, 60), seconds, centi)


def _magnitude(table: QTable) -> list[str]:
    """Magnitudes with as many decimals as they were given, at the left of five columns."""
    mag = numbers(table, "mag")
    decimals = -np.log10(_accuracy(table, "mag_accuracy", np.where(mag * 10 % 1 < 1e-6, 0.1, 0.01)))
    decimals = np.clip(np.rint(np.nan_to_num(decimals)), 0, 2).astype(np.int64)
    return [
        " " * 6 if np.isnan(value) else f" {value:<5.{places}f}"
        for value, places in zip(mag.tolist(), decimals.tolist(), strict=True)
    ]


def _codes(table: QTable, version: int) -> dict[str, StrArray | list[str]]:
    """One-letter codes; those of other formats are translated, or blank if they have none."""
    catalog = [
        name if len(name) <= 1 else CATALOG_CODES.get(name, "")
        for name in texts(table, "catalog").tolist()
    ]
    technique = np.select(
        [texts(table, "kind", "ground") == "space", texts(table, "kind", "ground") == "roving"],
        ["S", "V"],
        texts(table, "note2"),
    )
    station = texts(table, "station")
    program = join_note1(
        texts(table, "program").tolist(), texts(table, "notes").tolist(), station.tolist()
    )
    if any(len(code) != 3 for code in station.tolist()):
        msg = ".rwo holds station codes of three characters; write ADES for longer ones"
        raise ObservationFormatError(msg)
    return {
        "technique": np.where(technique == "", " ", technique),
        "program": program,
        # Two-letter bands of ADES end in the letter that the 80-column format uses.
        "band": [band[-1:] or " " for band in texts(table, "band").tolist()],
        "observatory": (
            _joined(" %s", station) if version == 1 else _joined(" %3s %s", catalog, station)
        ),
    }


def _selection(table: QTable) -> list[str]:
    selected = _flags(table, "selected", default=True)
    with_mag = _flags(table, "mag_selected", default=False)
    return _joined(" %d %d", selected, with_mag)


def _joined(template: str, *columns: npt.ArrayLike) -> list[str]:
    return list(map(template.__mod__, zip(*(np.asarray(c).tolist() for c in columns), strict=True)))


def _number(values: FloatArray, template: str) -> list[str]:
    """Format numbers, blank for NaN; fixed-point ones of a thousand and more with an exponent."""
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


def _flags(table: QTable, name: str, *, default: bool) -> BoolArray:
    if name not in table.colnames:
        return np.full(len(table), default)
    return np.asarray(table[name], dtype=bool)
