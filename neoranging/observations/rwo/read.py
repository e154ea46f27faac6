"""OrbFit and NEODyS ``.rwo`` files: observations with weights, biases and residuals.

Every record carries the accuracy of its fields, the a-priori sigma that the error model gives, the
bias of the star catalogue (not applied to the position), the residual of the orbit fit and whether
the fit used it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from typing import Any, Final

import numpy as np
from astropy import units as u
from astropy.table import QTable

from neoranging.exceptions import ObservationFormatError
from neoranging.observations.fixed_width import (
    BLANK,
    calendar_to_mjd,
    field_strings,
    float_or_nan,
    is_blank,
    parse_float,
    parse_int,
    parse_scientific,
    parse_sexagesimal,
    split_lines,
)
from neoranging.observations.mpc_codes import divide_note1
from neoranging.observations.report import Note, ReadReport, Reason
from neoranging.observations.rwo.layout import OBJECT_WIDTH, RwoRecords, scan_rwo
from neoranging.observations.rwo.places import Places, read_places
from neoranging.observations.source import TextSource
from neoranging.observations.stations import check_stations, station_notes
from neoranging.observations.table import ObservationColumns, observation_table
from neoranging.observations.uncertainty import outside_limits, sigma_columns
from neoranging.observations.wrapping import JSON_ADVICE, is_json, read_text
from neoranging.records import Rejections
from neoranging.typing import AnyArray, BoolArray, ByteArray, FloatArray, IntArray, StrArray

CHUNK: Final = 16_384
"""Records parsed at a time, so that the columns at work stay in the cache of the processor."""

_PROVISIONAL: Final = re.compile(r"([A12]\d{3})([A-HJ-Y][A-HJ-Z]\d{0,4}|[PT]-[L123])")

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
_UNITS: Final = {
    "time_accuracy": u.day,
    "ra_accuracy": u.arcsec,
    "ra_bias": u.arcsec,
    "ra_residual": u.arcsec,
    "dec_accuracy": u.arcsec,
    "dec_bias": u.arcsec,
    "dec_residual": u.arcsec,
}


def read_rwo(source: TextSource, *, default_sigma: Any = None) -> QTable:
    """Read an OrbFit ``.rwo`` file.

    Parameters
    ----------
    source : str, path-like, bytes or file object
        File or text of version 1, 2 or 3, also compressed; a body without header is measured.
    default_sigma : float, Quantity or mapping, optional
        Uncertainty for records whose RMS fields are blank or zero, see
        ``neoranging.observations.uncertainty.sigma_columns``.

    Returns
    -------
    QTable
        One row per optical observation. Beyond the common columns: ``time_accuracy`` [d],
        ``ra_accuracy``, ``ra_bias``, ``ra_residual`` and the same for ``dec`` [arcsec], with
        cos(dec) in those of right ascension as OrbFit has it; ``ra_forced``, ``dec_forced`` (the
        sigma was set by hand); ``sigma_mag``, ``mag_residual``, ``mag_accuracy`` [mag]; ``chi``;
        ``selected`` and ``mag_selected``, whether the fit of the orbit and of the magnitude used
        the record. Blank fields are NaN. ``meta`` holds the header under its own names
        (``version``, ``errmod``, ``RMSast``, ``RMSmag``) and the ``report``.

    Raises
    ------
    ObservationFormatError
        If the file is no ``.rwo`` file.

    Notes
    -----
    Rejected observations are kept, with ``selected`` False: choose with
    ``table[table["selected"]]``. A sigma of 999 arcsec marks zero weight. Catalogue biases are not
    applied. Times are taken as UTC throughout, also before 1960 when they were universal time.
    Positions of spacecraft are geocentric on the equatorial axes of J2000, taken as ICRS.
    Radar records are set aside.
    """
    content, name = read_text(source)
    if is_json(content):
        raise ObservationFormatError(JSON_ADVICE)
    lines = split_lines(content)
    header, records = scan_rwo(lines)
    rejections = Rejections(len(records))
    columns = _parse(records.matrix)
    places = read_places(lines, records)
    _judge(columns, records, places, rejections)
    unknown = check_stations(columns.station, places.kind, rejections)
    keep = rejections.usable
    report = ReadReport.of(
        rejections,
        records.line,
        records.text,
        (
            *(Note(0, f"{name} of the header is no number") for name in header.unreadable),
            *_notes(columns, records.line, keep, unknown),
        ),
        n_ignored_lines=len(lines.start) - records.n_lines,
        source=name,
    )
    table = observation_table(
        _observation_columns(columns, places, records, keep, default_sigma), report
    )
    table.meta |= header.meta()
    if records.name.shape[1] > OBJECT_WIDTH:
        table.meta["object_width"] = records.name.shape[1]
    return table


@dataclass(frozen=True, kw_only=True)
class _Columns:
    """All fields of N records as they stand, NaN or ``""`` where blank."""

    day: IntArray
    fraction: FloatArray
    time_ok: BoolArray
    ra: FloatArray
    dec: FloatArray
    position_ok: BoolArray
    year: IntArray
    technique: StrArray
    program: StrArray
    band: StrArray
    catalog: StrArray
    station: StrArray
    selected: BoolArray
    mag_selected: BoolArray
    ra_forced: BoolArray
    dec_forced: BoolArray
    mag_accuracy: FloatArray
    resolution: FloatArray
    unreadable: BoolArray
    sigma_ra: FloatArray
    ra_bias: FloatArray
    ra_residual: FloatArray
    sigma_dec: FloatArray
    dec_bias: FloatArray
    dec_residual: FloatArray
    mag: FloatArray
    sigma_mag: FloatArray
    mag_residual: FloatArray
    chi: FloatArray
    time_accuracy: FloatArray
    ra_accuracy: FloatArray
    dec_accuracy: FloatArray


def _parse(matrix: ByteArray) -> _Columns:
    """Parse records in the column layout of version 3, (N, 197)."""
    chunks = [_parse_chunk(matrix[i : i + CHUNK]) for i in range(0, max(len(matrix), 1), CHUNK)]
    return _Columns(**{name: np.concatenate([c[name] for c in chunks]) for name in chunks[0]})


def _parse_chunk(m: ByteArray) -> dict[str, AnyArray]:
    columns = _parse_time(m) | _parse_position(m) | _parse_codes(m)
    unreadable = np.zeros(len(m), dtype=bool)
    for name, field in (_NUMBERS | _ACCURACIES).items():
        value, decimals, bad = _optional_number(m[:, field], name in _ACCURACIES)
        columns[name] = value
        unreadable |= bad
        if name == "mag":
            columns["mag_accuracy"] = np.where(np.isnan(value), np.nan, 10.0**-decimals)
    columns["unreadable"] = unreadable
    return columns


def _optional_number(field: ByteArray, scientific: bool) -> tuple[FloatArray, IntArray, BoolArray]:
    """Read a field that may be blank (NaN) or, too large for its columns, hold an exponent."""
    value, ok, decimals = parse_scientific(field) if scientific else parse_float(field)
    rest = np.flatnonzero(~ok)
    bad = np.zeros(len(field), dtype=bool)
    bad[rest] = ~is_blank(field[rest])
    for row in np.flatnonzero(bad):
        value[row] = float_or_nan(field[row].tobytes())
        bad[row] = np.isnan(value[row])
    return value, decimals, bad


def _parse_time(m: ByteArray) -> dict[str, AnyArray]:
    year, ok = parse_int(m[:, 17:21])
    month, month_ok = parse_int(m[:, 22:24])
    day, day_ok = parse_int(m[:, 25:27])
    mjd, date_ok = calendar_to_mjd(year, month, day)
    fraction = parse_float(m[:, 27:39])
    whole = is_blank(m[:, 27:39])
    return {
        "year": year,
        "day": mjd,
        "fraction": np.where(whole, 0.0, fraction.value),
        "time_ok": ok & month_ok & day_ok & date_ok & (whole | _is_fraction(fraction.value)),
    }


def _is_fraction(value: FloatArray) -> BoolArray:
    mask: BoolArray = (value >= 0.0) & (value < 1.0)
    return mask


def _parse_position(m: ByteArray) -> dict[str, AnyArray]:
    ra = parse_sexagesimal(m[:, 50:63])
    dec = parse_sexagesimal(m[:, 104:116])
    sign = m[:, 103]
    signed = (sign == ord("+")) | (sign == ord("-")) | (sign == BLANK)
    in_range = (ra.value < 24.0) & (dec.value <= 90.0)
    return {
        "ra": ra.value * 15.0,
        "dec": np.where(sign == ord("-"), -dec.value, dec.value),
        "position_ok": ra.ok & dec.ok & signed & in_range,
        "resolution": np.stack([15.0 * ra.resolution, dec.resolution], axis=1),
    }


def _parse_codes(m: ByteArray) -> dict[str, AnyArray]:
    return {
        "technique": field_strings(m[:, 13:14]),
        "program": field_strings(m[:, 15:16]),
        "band": field_strings(m[:, 161:162]),
        "catalog": field_strings(m[:, 178:179]),
        "station": field_strings(m[:, 180:183]),
        "selected": m[:, 194] != ord("0"),
        "mag_selected": (m[:, 196] != ord("0")) & (m[:, 196] != BLANK),
        "ra_forced": m[:, 83] == ord("T"),
        "dec_forced": m[:, 136] == ord("T"),
    }


def _judge(columns: _Columns, records: RwoRecords, places: Places, rejections: Rejections) -> None:
    rejections.reject(records.radar, Reason.RADAR)
    rejections.reject(records.orphan, Reason.ORPHAN_SECOND_LINE)
    rejections.reject(~records.optical, Reason.MALFORMED, "kind of record is none of O, S, R, V")
    replaced = np.isin(columns.technique, ("X", "x"))
    rejections.reject(replaced, Reason.REPLACED, "type of observation X")
    rejections.reject(~columns.time_ok, Reason.MALFORMED, "no valid date")
    rejections.reject(
        ~columns.position_ok, Reason.MALFORMED, "no valid right ascension, declination"
    )
    rejections.reject(columns.station == "", Reason.MALFORMED, "no station")
    outside = outside_limits(columns.sigma_ra) | outside_limits(columns.sigma_dec)
    rejections.reject(outside, Reason.MALFORMED, "a sigma beyond all measure")
    nowhere = ~places.found
    rejections.reject(nowhere & (places.kind == "space"), Reason.SPACE_WITHOUT_POSITION)
    rejections.reject(nowhere & (places.kind == "roving"), Reason.ROVING_WITHOUT_POSITION)


def _notes(columns: _Columns, line: IntArray, keep: BoolArray, unknown: BoolArray) -> list[Note]:
    notes = [
        Note(int(line[row]), "a field that is no number was taken as blank")
        for row in np.flatnonzero(keep & columns.unreadable)
    ]
    return notes + station_notes(columns.station, line, keep & unknown)


def _observation_columns(
    columns: _Columns, places: Places, records: RwoRecords, keep: BoolArray, default_sigma: Any
) -> ObservationColumns:
    kept = {f.name: getattr(columns, f.name)[keep] for f in fields(columns)}
    given = (kept["sigma_ra"] > 0.0) & (kept["sigma_dec"] > 0.0)
    if not given.all():
        _fill_sigmas(kept, ~given, default_sigma)
    extra = {name: u.Quantity(kept[name], unit, copy=False) for name, unit in _UNITS.items()}
    names = (
        *("ra_forced", "dec_forced", "sigma_mag", "mag_residual", "mag_accuracy", "chi"),
        *("selected", "mag_selected"),
    )
    program, notes = divide_note1(kept["program"], kept["station"])
    return ObservationColumns(
        designation=_designations(records.name[keep]),
        mjd_day=kept["day"],
        mjd_fraction=kept["fraction"],
        ra=kept["ra"],
        dec=kept["dec"],
        sigma_ra=kept["sigma_ra"],
        sigma_dec=kept["sigma_dec"],
        sigma_source=np.where(given, "file", "default"),
        station=kept["station"],
        line=records.line[keep],
        mag=kept["mag"],
        band=kept["band"],
        kind=places.kind[keep],
        observer_itrf=places.itrf[keep],
        observer_gcrs=places.gcrs[keep],
        note2=kept["technique"],
        program=program,
        catalog=kept["catalog"],
        extra=extra | {"notes": notes} | {name: kept[name] for name in names},
    )


def _fill_sigmas(kept: dict[str, AnyArray], rows: BoolArray, default_sigma: Any) -> None:
    """Put defaults where the RMS of a coordinate is blank or zero."""
    unit_ra, unit_dec = kept["resolution"][rows].T
    kept["sigma_ra"][rows], kept["sigma_dec"][rows] = sigma_columns(
        default_sigma,
        station=kept["station"][rows],
        note2=kept["technique"][rows],
        catalog=kept["catalog"][rows],
        year=kept["year"][rows].astype(float),
        resolution=(unit_ra * np.cos(np.radians(kept["dec"][rows])), unit_dec),
    )


def _designations(field: ByteArray) -> StrArray:
    """Object names with the blank that the format leaves out: "2024YR4" is "2024 YR4"."""
    if len(field) and (field == field[0]).all():  # one object per file is the rule
        return np.repeat(_spelled(field_strings(field[:1])), len(field))
    names, row = np.unique(field_strings(field), return_inverse=True)
    return _spelled(names)[row]


def _spelled(names: StrArray) -> StrArray:
    spelled = [_PROVISIONAL.sub(r"\1 \2", name) for name in names.tolist()]
    return np.array(spelled, dtype=np.str_)
