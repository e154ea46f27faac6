"""Reader of the 80-column format of the Minor Planet Center.

All lines are parsed at once as a matrix of bytes. Spacecraft, roving and radar observations take
two lines (or one of 160 columns); the second line belongs to the record before it if station and
date agree. Positions in this format refer to J2000.0, read as ICRS; times are UTC, and before 1960
the Universal Time of the record is taken for UTC.

References
----------
Minor Planet Center, "Format for Optical Astrometric Observations of Comets, Minor Planets and
Natural Satellites", https://www.minorplanetcenter.net/iau/info/OpticalObs.html.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from astropy import units as u
from astropy.table import QTable

from neoranging.constants import AU_KM, DAY_S
from neoranging.observations.cells import translated
from neoranging.observations.columns import Observations
from neoranging.observations.designation import unpack_field
from neoranging.observations.fixed_width import (
    BLANK,
    field_strings,
    is_blank,
    parse_dates,
    parse_directions,
    parse_float,
    split_lines,
)
from neoranging.observations.mpc_codes import divide_note1
from neoranging.observations.obs80.lines import WIDTH, Records, find_records
from neoranging.observations.places import geodetic_to_itrf
from neoranging.observations.report import Note, ReadReport, Reason
from neoranging.observations.source import TextSource, read_text
from neoranging.observations.stations import check_stations, station_notes
from neoranging.observations.uncertainty import fill_sigmas
from neoranging.records import Rejections, many
from neoranging.typing import AnyArray, ByteArray, IntArray

OBSERVATION_TYPES: Final = b" ABCcDEeHMNnOPSTVXxRZ"
"""Codes of column 15 that begin a record; s, v and r begin a second line."""

HIPPARCOS: Final = "248"
KM_PER_UNIT: Final = {"1": 1.0, "2": AU_KM}
"""Unit flag in column 33 of the second line of a spacecraft."""

_UNITS: Final = {"time_resolution": u.s, "ra_resolution": u.arcsec, "dec_resolution": u.arcsec}
"""Further columns with a unit."""


def read_obs80(source: TextSource, *, default_sigma: Any = None) -> QTable:
    """Read observations in the MPC 80-column format.

    Parameters
    ----------
    source : str, path-like, file object, bytes or iterable of str
        A path (gzip, bzip2 and xz are unpacked), an open file, the text or its lines.
    default_sigma : float, Quantity or mapping, optional
        Uncertainty, which the format does not carry [arcsec if a plain number]: one for all, or
        one for each station of a mapping. By default the table of
        ``neoranging.observations.uncertainty``, not below the rounding of the record.

    Returns
    -------
    QTable
        One row per usable observation, in the order of the file. Beyond the common columns:
        ``notes`` (a letter in column 14 that is no programme), ``reference`` (columns 73-77) and
        the units of the last digits written, ``time_resolution``
        [s], ``ra_resolution`` (without cos(dec)) and ``dec_resolution`` [arcsec].
        ``meta["report"]`` accounts for every record.

    Raises
    ------
    ObservationFormatError
        If no line looks like a record of this format; odd records never raise.

    Warns
    -----
    NeoRangingWarning
        If station codes are not in the list of observatories.
    """
    return parse_obs80(source, default_sigma=default_sigma).to_table()


def parse_obs80(source: TextSource, *, default_sigma: Any = None) -> Observations:
    """Observations of a file in the MPC 80-column format; see `read_obs80`."""
    content, name = read_text(source)
    records, n_ignored = find_records(split_lines(content), name)
    rejections = Rejections(len(records.line))
    columns = _observers(records, rejections) | _sky(records.first, rejections)
    rejections.reject(is_blank(records.first[:, :12]), Reason.MALFORMED, "no designation")
    rejections.reject(
        np.strings.str_len(columns["station"]) < 3, Reason.MALFORMED, "no station in columns 78-80"
    )
    used = np.flatnonzero(rejections.usable)
    columns = {key: column[used] for key, column in columns.items()}
    report = ReadReport.of(
        rejections,
        records.line,
        records.text,
        _notes(records, columns, used),
        n_ignored_lines=n_ignored,
        source=name,
    )
    text = records.first[used]
    columns |= {
        "sigma_ra": np.full(len(used), np.nan),
        "sigma_dec": np.full(len(used), np.nan),
        "catalog": field_strings(text[:, 71:72]),
    }
    fill_sigmas(
        columns,
        default_sigma,
        year=columns.pop("year"),
        ra_unit=columns["ra_resolution"],
        dec_unit=columns["dec_resolution"],
    )
    program, notes = divide_note1(field_strings(text[:, 13:14]), columns["station"])
    del columns["is_unknown"], columns["mag_unreadable"]
    columns |= {
        "designation": translated(field_strings(text[:, :12], strip=False), unpack_field),
        "band": field_strings(text[:, 70:71]),
        "program": program,
        "discovery": text[:, 12] == ord("*"),
        "line": records.line[used],
        "notes": notes,
        "reference": field_strings(text[:, 72:77]),
    }
    for key, unit in _UNITS.items():
        columns[key] = u.Quantity(columns.pop(key), unit, copy=False)
    return Observations.from_reader(columns, {"report": report})


def _observers(records: Records, rejections: Rejections) -> dict[str, AnyArray]:
    """Stations, types and places of the N observers; rejects records of unknown place."""
    station = field_strings(records.first[:, 77:80])
    note2 = field_strings(records.first[:, 14:15])
    second_type = np.where(records.has_second, records.second[:, 14], BLANK)
    no_space = (note2 == "S") & (second_type != ord("s"))
    no_roving = (note2 == "V") & (second_type != ord("v"))
    rejections.reject((note2 == "R") | (second_type == ord("r")), Reason.RADAR)
    rejections.reject(np.isin(note2, ("X", "x")), Reason.REPLACED)
    rejections.reject(np.isin(note2, ("s", "v", "r")), Reason.ORPHAN_SECOND_LINE)
    rejections.reject(no_space, Reason.SPACE_WITHOUT_POSITION, "no second line")
    rejections.reject(no_roving, Reason.ROVING_WITHOUT_POSITION, "no second line")

    itrf, gcrs = np.full((2, len(station), 3), np.nan)
    is_space, is_roving = second_type == ord("s"), second_type == ord("v")
    second = records.second[is_space]
    unit = np.select(
        [second[:, 32] == ord(flag) for flag in KM_PER_UNIT], list(KM_PER_UNIT.values()), np.nan
    )
    axes = [parse_float(second[:, begin : begin + 12]).value for begin in (34, 46, 58)]
    gcrs[is_space] = np.stack(axes, axis=1) * unit[:, None]
    unreadable = is_space & np.isnan(gcrs).any(axis=1)
    detail = "its second line cannot be read"
    rejections.reject(unreadable, Reason.SPACE_WITHOUT_POSITION, detail)
    gcrs[unreadable] = np.nan
    # Type H: observations of Hipparcos that the MPC holds reduced to the geocentre.
    gcrs[(note2 == "H") & (station == HIPPARCOS)] = 0.0

    second = records.second[is_roving]
    fields = ((33, 45), (45, 56), (56, 66))
    geodetic = [parse_float(second[:, begin:end]).value for begin, end in fields]
    itrf[is_roving] = geodetic_to_itrf(np.stack(geodetic, axis=1))
    unreadable = is_roving & np.isnan(itrf[:, 0])
    rejections.reject(unreadable, Reason.ROVING_WITHOUT_POSITION, detail)
    kind = np.select([~np.isnan(gcrs[:, 0]), ~np.isnan(itrf[:, 0])], ["space", "roving"], "ground")
    return {
        "station": station,
        "note2": note2,
        "kind": kind,
        "observer_itrf": itrf,
        "observer_gcrs": gcrs,
        "is_unknown": check_stations(station, kind, rejections),
    }


def _sky(text: ByteArray, rejections: Rejections) -> dict[str, AnyArray]:
    """Times, directions and magnitudes of the N records; rejects those that cannot be read."""
    date = parse_dates(text[:, 15:32])
    sky = parse_directions(text[:, 32:44], text[:, 44], text[:, 45:56])
    mag = parse_float(text[:, 65:70])
    for unreadable, field in (
        (~date.ok, "date in columns 16-32"),
        (~sky.ra_ok, "right ascension in columns 33-44"),
        (~(sky.dec_ok & (text[:, 44] != BLANK)), "declination in columns 45-56"),
    ):
        rejections.reject(unreadable, Reason.MALFORMED, f"{field} cannot be read")
    return {
        "year": date.year.astype(float),
        "mjd_day": date.mjd,
        "mjd_fraction": date.fraction,
        "time_resolution": DAY_S / 10.0**date.decimals,
        "ra": sky.ra,
        "dec": sky.dec,
        "ra_resolution": sky.ra_resolution,
        "dec_resolution": sky.dec_resolution,
        "mag": mag.value,
        "mag_unreadable": ~mag.ok & ~is_blank(text[:, 65:70]),
    }


def _notes(records: Records, columns: dict[str, AnyArray], used: IntArray) -> list[Note]:
    """Remarks on the records in use."""
    line = records.line[used]
    is_odd = ~np.isin(records.first[used, 14], list(OBSERVATION_TYPES))
    notes = [
        *station_notes(columns["station"], line, columns["is_unknown"]),
        *(
            Note(row, "unreadable magnitude in columns 66-70")
            for row in line[columns["mag_unreadable"]].tolist()
        ),
        *(
            Note(row, f"unknown type {note2!r}")
            for row, note2 in zip(
                line[is_odd].tolist(), columns["note2"][is_odd].tolist(), strict=True
            )
        ),
    ]
    if records.n_long:
        lines = many(records.n_long, "line")
        notes.append(Note(0, f"text beyond column {WIDTH} was not read on {lines}"))
    return notes
