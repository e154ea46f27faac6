"""Readers of ADES, the IAU standard for astrometry, in its PSV and XML forms.

References
----------
Chesley, S. R., Hockney, G. M., Holman, M. J. 2017, "Introducing ADES", IAU Commission X2;
https://github.com/IAU-ADES/ADES-Master.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import numpy as np
from astropy import units as u
from astropy.table import QTable

from neoranging.constants import DAY_S
from neoranging.exceptions import ObservationFormatError
from neoranging.observations.ades.fields import (
    Fields,
    read_direction,
    read_obstime,
    read_place,
)
from neoranging.observations.ades.scan import TAG, AdesRecords, scan_psv, scan_xml
from neoranging.observations.cells import translated
from neoranging.observations.columns import LAYOUT, Observations
from neoranging.observations.designation import unpack
from neoranging.observations.field_names import ADES_NAMES, FIELDS, name_columns
from neoranging.observations.mpc_codes import CATALOG_CODES, NOTE2_OF_MODE
from neoranging.observations.report import Note, ReadReport, Reason, SetAside
from neoranging.observations.source import TextSource, read_text
from neoranging.observations.stations import check_stations, station_notes
from neoranging.observations.uncertainty import fill_sigmas, outside_limits
from neoranging.records import Rejections
from neoranging.typing import BoolArray, IntArray, StrArray

IDENTIFIERS: Final = ("permID", "provID", "trkSub", "artSat")
"""Fields that can name the object, the best first."""

CONSUMED: Final = frozenset(
    {
        *("stn", "obsTime", "ra", "dec", "rmsRA", "rmsDec", "mag", "band", "prog", "astCat"),
        *("disc", "deprecated", "sys", "ctr", "pos1", "pos2", "pos3", TAG),
        *("precTime", "precRA", "precDec"),
        *("raStar", "decStar", "deltaRA", "deltaDec", "dist", "pa"),
    }
)
"""Fields that live on in the common columns; all others become columns of their own name."""

NUMERIC: Final = frozenset(
    {
        *("rmsTime", "rmsCorr", "rmsMag", "rmsDist", "rmsPA", "photAp", "logSNR", "seeing", "exp"),
        *("rmsFit", "nStars", "vel1", "vel2", "vel3", "posCov11", "posCov12", "posCov13"),
        *("posCov22", "posCov23", "posCov33", "uncTime"),
        *("resRA", "resDec", "sigRA", "sigDec", "sigCorr", "sigTime", "biasRA", "biasDec"),
        *("biasTime", "resMag", "sigMag", "biasMag"),
    }
)
"""Further fields that hold numbers; NaN where a record has none."""

_COMMON: Final = {*LAYOUT, "block"}


def read_ades_psv(source: TextSource, *, default_sigma: Any = None) -> QTable:
    """Read ADES observations in the pipe-separated form.

    Parameters
    ----------
    source : str, path-like, bytes or file object
        File or text, also compressed; UTF-8.
    default_sigma : float, Quantity or mapping, optional
        Uncertainty for records without ``rmsRA`` and ``rmsDec``, see
        ``neoranging.observations.uncertainty.sigma_columns``.

    Returns
    -------
    QTable
        One row per optical observation; occultations are turned into positions with the measured
        offset from the star. Fields beyond the common columns keep their ADES names (``permID``,
        ``provID``, ``trkSub``, ``mode``, ``rmsCorr``, ``remarks`` ...): the known numbers as
        float, all others, unknown ones too, as text; columns empty throughout are left out, and
        a name that a common column bears gets the prefix ``ades_``. Names are taken in any case.
        ``precTime``, ``precRA`` and ``precDec`` become ``time_resolution`` [s],
        ``ra_resolution`` (without cos(dec)) and ``dec_resolution`` [arcsec]. ``note2`` is the
        80-column code of the mode. ``block`` tells which of ``meta["ades_headers"]`` a record stood
        under;
        ``meta["ades_version"]`` is the version, ``meta["report"]`` accounts for every record.

    Raises
    ------
    ObservationFormatError
        If the text is not ADES PSV; odd records never raise.
    """
    return parse_ades_psv(source, default_sigma=default_sigma).to_table()


def parse_ades_psv(source: TextSource, *, default_sigma: Any = None) -> Observations:
    """Observations of a text in the pipe-separated form; see `read_ades_psv`."""
    content, name = read_text(source)
    text = content.decode("utf-8", "replace")
    records = scan_psv(text.replace("\r\n", "\n").replace("\r", "\n"))
    return _observations(records, name, default_sigma)


def read_ades_xml(source: TextSource, *, default_sigma: Any = None) -> QTable:
    """Read ADES observations in the XML form.

    Parameters
    ----------
    source : str, path-like, bytes or file object
        File or text, also compressed. Document types and entities are refused.
    default_sigma : float, Quantity or mapping, optional
        As for `read_ades_psv`.

    Returns
    -------
    QTable
        As for `read_ades_psv`.

    Raises
    ------
    ObservationFormatError
        If the text is no well-formed ADES XML; odd records never raise.
    """
    return parse_ades_xml(source, default_sigma=default_sigma).to_table()


def parse_ades_xml(source: TextSource, *, default_sigma: Any = None) -> Observations:
    """Observations of a text in the XML form; see `read_ades_xml`."""
    content, name = read_text(source)
    return _observations(scan_xml(content), name, default_sigma)


def _observations(records: AdesRecords, source: str, default_sigma: Any) -> Observations:
    """Observations of records as they stand in the file."""
    if not records.columns and not records.headers and not records.version:
        msg = (
            "this is no ADES: got neither a '# version' line, a line of column names such as "
            "'provID|mode|stn|obsTime|ra|dec|astCat', nor an <ades> element; give another format"
        )
        raise ObservationFormatError(msg)
    fields = Fields(records)
    rejections = Rejections(len(records))
    _screen(fields, rejections)
    columns: dict[str, Any] = {
        **read_obstime(fields, rejections),
        **read_direction(fields, rejections),
        **read_place(fields, rejections),
        "line": np.array(records.line, dtype=np.int64),
        "station": fields.text("stn"),
        "mag": fields.number("mag"),
        "note2": translated(fields.text("mode"), lambda mode: NOTE2_OF_MODE.get(mode, "")),
        "program": fields.text("prog"),
        "discovery": fields.given("disc"),
        "sigma_ra": fields.number("rmsRA"),
        "sigma_dec": fields.number("rmsDec"),
    }
    for name, field in (("band", "band"), ("catalog", "astCat")):
        # UNK is the standard's word for a required field that nobody knows.
        columns[name] = translated(fields.text(field), lambda text: "" if text == "UNK" else text)
    columns["is_unknown"] = check_stations(columns["station"], columns["kind"], rejections)
    keep = rejections.usable
    # All numbers are read before the notes on those that are none.
    precision = _precision(fields, keep)
    extra = _extras(fields, keep, records)
    extra |= {name: unit for name, unit in precision.items() if np.isfinite(unit).any()}
    line = columns["line"]
    notes = _notes(fields, records, line, keep, columns.pop("is_rounded"))
    notes += station_notes(columns["station"], line, keep & columns.pop("is_unknown"))
    report = ReadReport.of(
        rejections,
        line,
        records.text,
        notes,
        unreadable=[
            SetAside(number, Reason.MALFORMED, text, detail)
            for number, text, detail in records.broken
        ],
        n_ignored_lines=records.n_ignored_lines,
        source=source,
    )
    columns = {name: column[keep] for name, column in columns.items()}
    columns["designation"] = _designation(fields)[keep]
    catalog = columns["catalog"]
    columns["catalog"] = translated(catalog, lambda name: CATALOG_CODES.get(name, ""))
    # Without a stated precision decimal degrees resolve far below any sigma.
    fill_sigmas(
        columns,
        default_sigma,
        year=columns.pop("year"),
        ra_unit=np.nan_to_num(precision["ra_resolution"].to_value(u.arcsec)),
        dec_unit=np.nan_to_num(precision["dec_resolution"].to_value(u.arcsec)),
    )
    columns["catalog"] = catalog
    headers = {"ades_version": records.version, "ades_headers": tuple(records.headers)}
    return Observations.from_reader(columns | extra, {"report": report, **headers})


def _screen(fields: Fields, rejections: Rejections) -> None:
    """Set aside what is no optical position of its own, before any number is looked at."""
    tag = np.strings.lower(fields.text(TAG))
    radar = (tag == "radar") | fields.given("trx", "rcv", "delay", "doppler")
    rejections.reject(radar, Reason.RADAR)
    rejections.reject(fields.given("deprecated"), Reason.REPLACED, "marked deprecated")
    occultation = (tag == "occultation") | fields.given("raStar")
    offset = (tag == "offset") | fields.given("obsCenter")
    rejections.reject(offset & ~occultation, Reason.OFFSET)
    rejections.reject(~fields.given("stn"), Reason.MALFORMED, "no station (stn)")
    for name in ("rmsRA", "rmsDec"):
        bad = outside_limits(fields.number(name))
        rejections.reject(bad, Reason.MALFORMED, f"{name} beyond all measure")
    rejections.reject(~fields.given(*IDENTIFIERS), Reason.MALFORMED, "no permID, provID or trkSub")


def _notes(
    fields: Fields, records: AdesRecords, line: IntArray, keep: BoolArray, is_rounded: BoolArray
) -> list[Note]:
    """Notes on fields of the kept records, and on columns of the file."""
    absent = [
        Note(int(line[row]), f"{name} {fields.columns[name][row]!r} is no number; taken as absent")
        for name, bad in fields.unreadable.items()
        for row in np.flatnonzero(bad & keep)
    ]
    rounded = [
        Note(int(line[row]), "second 60 of obsTime is read as the next minute")
        for row in np.flatnonzero(is_rounded & keep)
    ]
    remarks = [Note(0, remark) for name in records.columns for remark in _remarks(name)]
    return absent + rounded + remarks


def _designation(fields: Fields) -> StrArray:
    """Best identifier of each record, provisional ones unpacked where they are packed."""
    names = fields.text(IDENTIFIERS[0])
    for identifier in IDENTIFIERS[1:]:
        texts = fields.text(identifier)
        if identifier == "provID":
            texts = translated(
                texts,
                lambda name: unpack(name) if len(name) in (7, 8) and " " not in name else name,
            )
        names = np.where(names == "", texts, names)
    return names


def _precision(fields: Fields, keep: BoolArray) -> dict[str, u.Quantity]:
    """Units of the last digits that the observers wrote, NaN where unknown."""
    second, arcsec = DAY_S * 1e-6 * u.s, u.arcsec
    units = {
        "time_resolution": ("precTime", second),
        "ra_resolution": ("precRA", 15.0 * arcsec),
        "dec_resolution": ("precDec", arcsec),
    }
    return {name: fields.number(key)[keep] * unit for name, (key, unit) in units.items()}


def _extras(fields: Fields, keep: BoolArray, records: AdesRecords) -> dict[str, Any]:
    """Further fields under their own names: numbers as float, all others as text."""
    extras: dict[str, Any] = {}
    for name in records.columns:
        if not name or name in CONSUMED or not fields.given(name)[keep].any():
            continue
        column = fields.number(name) if name in NUMERIC else fields.text(name)
        extras[f"ades_{name}" if name in _COMMON else name] = column[keep]
    if records.headers:
        extras["block"] = np.array(records.block, dtype=np.int64)[keep]
    return extras


@cache
def _remarks(name: str) -> tuple[str, ...]:
    """Remarks on a column that looks like a field of the standard and is not taken for it."""
    if name == TAG or name in NUMERIC or name.lower() in ADES_NAMES:
        return ()
    field = FIELDS.get(name.lower())
    if field is None:
        return name_columns([name]).remarks
    keys = (key for key, other in FIELDS.items() if other.column == field.column)
    meant = next((ADES_NAMES[key] for key in keys if key in ADES_NAMES), "")
    return (f"the column {name} is not taken; it looks like {meant}",) if meant else ()
