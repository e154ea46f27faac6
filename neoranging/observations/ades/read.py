"""Readers of ADES, the IAU standard for astrometry, in its PSV and XML forms.

References
----------
Chesley, S. R., Hockney, G. M., Holman, M. J. 2017, "Introducing ADES", IAU Commission X2;
https://github.com/IAU-ADES/ADES-Master.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields as dataclass_fields
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
from neoranging.observations.designation import unpack
from neoranging.observations.field_names import ADES_NAMES, FIELDS, name_columns
from neoranging.observations.mpc_codes import CATALOG_CODES, NOTE2_OF_MODE
from neoranging.observations.report import Note, ReadReport, Reason, SetAside
from neoranging.observations.source import TextSource
from neoranging.observations.stations import check_stations, station_notes
from neoranging.observations.table import ObservationColumns, observation_table
from neoranging.observations.uncertainty import outside_limits, sigma_columns
from neoranging.observations.wrapping import read_text
from neoranging.records import Rejections
from neoranging.typing import AnyArray, BoolArray, FloatArray, IntArray, StrArray

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

_COMMON: Final = {item.name for item in dataclass_fields(ObservationColumns)} | {"obstime", "block"}


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
    content, name = read_text(source)
    text = content.decode("utf-8", "replace")
    records = scan_psv(text.replace("\r\n", "\n").replace("\r", "\n"))
    return _table(records, name, default_sigma)


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
    content, name = read_text(source)
    return _table(scan_xml(content), name, default_sigma)


def _table(records: AdesRecords, source: str, default_sigma: Any) -> QTable:
    """Interpret scanned records."""
    if not records.columns and not records.headers and not records.version:
        msg = (
            "this is no ADES: got neither a '# version' line, a line of column names such as "
            "'provID|mode|stn|obsTime|ra|dec|astCat', nor an <ades> element; give another format"
        )
        raise ObservationFormatError(msg)
    fields = Fields(records)
    rejections = Rejections(len(records))
    _screen(fields, rejections)
    instants = read_obstime(fields, rejections)
    ra, dec = read_direction(fields, rejections)
    place = read_place(fields, rejections)
    station = fields.text("stn")
    unknown = check_stations(station, place.kind, rejections)
    keep = rejections.usable
    line = np.array(records.line, dtype=np.int64)
    columns: dict[str, Any] = {
        "designation": _designation(fields),
        "mjd_day": instants.day,
        "mjd_fraction": instants.fraction,
        "ra": ra,
        "dec": dec,
        "station": station,
        "line": line,
        "mag": fields.number("mag"),
        "band": _known(fields.text("band")),
        "kind": place.kind,
        "observer_itrf": place.itrf,
        "observer_gcrs": place.gcrs,
        "note2": _translated(fields.text("mode"), NOTE2_OF_MODE),
        "program": fields.text("prog"),
        "catalog": _known(fields.text("astCat")),
        "discovery": fields.given("disc"),
    }
    columns = {name: column[keep] for name, column in columns.items()}
    precision = _precision(fields, keep)
    columns |= _sigmas(fields, keep, columns, instants.year[keep], default_sigma, precision)
    columns["extra"] = _extras(fields, keep, records) | {
        name: column for name, column in precision.items() if np.isfinite(column).any()
    }
    notes = [
        *_notes(fields, line, keep),
        *(
            Note(int(line[row]), "second 60 of obsTime is read as the next minute")
            for row in np.flatnonzero(instants.rounded & keep)
        ),
        *(Note(0, remark) for name in records.columns for remark in _remarks(name)),
        *station_notes(station, line, keep & unknown),
    ]
    table = observation_table(
        ObservationColumns(**columns),
        ReadReport.of(
            rejections,
            line,
            records.text,
            notes,
            unreadable=[
                SetAside(line, Reason.MALFORMED, text, detail)
                for line, text, detail in records.broken
            ],
            n_ignored_lines=records.n_ignored_lines,
            source=source,
        ),
    )
    table.meta |= {"ades_version": records.version, "ades_headers": tuple(records.headers)}
    return table


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


def _designation(fields: Fields) -> StrArray:
    """The best identifier of each record, provisional ones unpacked where they are packed."""
    name = fields.text(IDENTIFIERS[0])
    for identifier in IDENTIFIERS[1:]:
        text = fields.text(identifier)
        if identifier == "provID":
            text = _unpacked(text)
        name = np.where(name == "", text, name)
    return name


def _unpacked(provisional: StrArray) -> StrArray:
    packed = np.isin(np.strings.str_len(provisional), (7, 8)) & (
        np.strings.find(provisional, " ") < 0
    )
    if not packed.any():
        return provisional
    names = {text: unpack(text) for text in dict.fromkeys(provisional[packed].tolist())}
    return _translated(provisional, names, keep=True)


def _known(texts: StrArray) -> StrArray:
    """UNK is the standard's word for a required field that nobody knows."""
    return np.where(texts == "UNK", "", texts)


def _translated(texts: StrArray, names: Mapping[str, str], *, keep: bool = False) -> StrArray:
    """Replace texts by their names; those without one stay, or become ``""``."""
    found, row = np.unique(texts, return_inverse=True)
    new = [names.get(text, text if keep else "") for text in found.tolist()]
    return np.array(new, dtype=np.str_)[row] if new else texts


def _precision(fields: Fields, keep: BoolArray) -> dict[str, u.Quantity]:
    """Units of the last digits that the observers wrote, NaN where unknown."""
    second, arcsec = DAY_S * 1e-6 * u.s, u.arcsec
    units = {
        "time_resolution": ("precTime", second),
        "ra_resolution": ("precRA", 15.0 * arcsec),
        "dec_resolution": ("precDec", arcsec),
    }
    return {name: fields.number(key)[keep] * unit for name, (key, unit) in units.items()}


def _sigmas(
    fields: Fields,
    keep: BoolArray,
    columns: Mapping[str, Any],
    year: FloatArray,
    default_sigma: Any,
    precision: Mapping[str, u.Quantity],
) -> dict[str, AnyArray]:
    """Uncertainties of the kept records: the observer's where given for both coordinates."""
    ra, dec = fields.number("rmsRA")[keep], fields.number("rmsDec")[keep]
    given = (ra > 0.0) & (dec > 0.0)
    rows = ~given
    if rows.any():
        # Without a stated precision decimal degrees resolve far below any sigma.
        unit_ra, unit_dec = (
            np.nan_to_num(precision[name][rows].to_value(u.arcsec))
            for name in ("ra_resolution", "dec_resolution")
        )
        ra[rows], dec[rows] = sigma_columns(
            default_sigma,
            station=columns["station"][rows],
            note2=columns["note2"][rows],
            catalog=_translated(columns["catalog"][rows], CATALOG_CODES),
            year=year[rows],
            resolution=(unit_ra * np.cos(np.radians(columns["dec"][rows])), unit_dec),
        )
    source = np.where(given, "file", "default")
    return {"sigma_ra": ra, "sigma_dec": dec, "sigma_source": source}


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


def _notes(fields: Fields, line: IntArray, keep: BoolArray) -> list[Note]:
    return [
        Note(int(line[row]), f"{name} {fields.columns[name][row]!r} is no number; taken as absent")
        for name, bad in fields.unreadable.items()
        for row in np.flatnonzero(bad & keep).tolist()
    ]


@cache
def _remarks(name: str) -> tuple[str, ...]:
    """Remarks on a column that looks like a field of the standard and is not taken for it."""
    if name == TAG or name in NUMERIC or name.lower() in ADES_NAMES:
        return ()
    field = FIELDS.get(name.lower())
    if field is None:
        return name_columns([name]).remarks
    meant = next((ADES_NAMES[key] for key in _keys_of(field.column) if key in ADES_NAMES), "")
    return (f"the column {name} is not taken; it looks like {meant}",) if meant else ()


def _keys_of(column: str) -> list[str]:
    return [key for key, field in FIELDS.items() if field.column == column]
