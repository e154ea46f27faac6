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

import erfa
import numpy as np
from astropy import units as u
from astropy.table import QTable

from neoranging.constants import AU_KM, DAY_S
from neoranging.observations.designation import unpack_fields
from neoranging.observations.fixed_width import (
    BLANK,
    calendar_to_mjd,
    field_strings,
    is_blank,
    parse_float,
    parse_int,
    parse_sexagesimal,
    split_lines,
)
from neoranging.observations.mpc_codes import divide_note1
from neoranging.observations.obs80.lines import WIDTH, Records, find_records
from neoranging.observations.report import Note, ReadReport, Reason
from neoranging.observations.source import TextSource
from neoranging.observations.stations import check_stations, station_notes
from neoranging.observations.table import ObservationColumns, observation_table
from neoranging.observations.uncertainty import sigma_columns
from neoranging.observations.wrapping import read_text
from neoranging.records import Rejections, many
from neoranging.typing import BoolArray, ByteArray, IntArray

OBSERVATION_TYPES: Final = b" ABCcDEeHMNnOPSTVXxRZ"
"""Codes of column 15 that begin a record; s, v and r begin a second line."""

HIPPARCOS: Final = "248"
KM_PER_UNIT: Final = {"1": 1.0, "2": AU_KM}
"""Unit flag in column 33 of the second line of a spacecraft."""

WGS84: Final = 1  # ERFA's number of the ellipsoid
ALTITUDE_LIMITS_M: Final = (-1e3, 1e5)


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
    content, name = read_text(source)
    records, n_ignored = find_records(split_lines(content), name)
    rejections = Rejections(len(records.line))
    site = _Site(records, rejections)
    sky = _Sky(records, rejections)
    rejections.reject(is_blank(records.first[:, :12]), Reason.MALFORMED, "no designation")
    rejections.reject(
        np.strings.str_len(site.station) < 3, Reason.MALFORMED, "no station in columns 78-80"
    )
    used = np.flatnonzero(rejections.usable)
    report = ReadReport.of(
        rejections,
        records.line,
        records.text,
        _notes(records, sky, site, used),
        n_ignored_lines=n_ignored,
        source=name,
    )
    return observation_table(_columns(records, sky, site, used, default_sigma), report)


# What the records hold --------------------------------------------------------------------------


class _Site:
    """From where the N records were made; rejects those of unknown place."""

    def __init__(self, records: Records, rejections: Rejections) -> None:
        n = len(records.line)
        self.station = field_strings(records.first[:, 77:80])
        self.note2 = field_strings(records.first[:, 14:15])
        self.itrf = np.full((n, 3), np.nan)
        self.gcrs = np.full((n, 3), np.nan)
        second_type = np.where(records.has_second, records.second[:, 14], BLANK)
        self._reject_by_type(second_type, rejections)
        self._place_spacecraft(records, second_type == ord("s"), rejections)
        self._place_rovers(records, second_type == ord("v"), rejections)
        space, roving = ~np.isnan(self.gcrs[:, 0]), ~np.isnan(self.itrf[:, 0])
        self.kind = np.where(space, "space", np.where(roving, "roving", "ground"))
        self.unknown = check_stations(self.station, self.kind, rejections)

    def _reject_by_type(self, second_type: ByteArray, rejections: Rejections) -> None:
        radar = (self.note2 == "R") | (second_type == ord("r"))
        space = (self.note2 == "S") & (second_type != ord("s"))
        roving = (self.note2 == "V") & (second_type != ord("v"))
        rejections.reject(radar, Reason.RADAR)
        rejections.reject(np.isin(self.note2, ("X", "x")), Reason.REPLACED)
        rejections.reject(np.isin(self.note2, ("s", "v", "r")), Reason.ORPHAN_SECOND_LINE)
        rejections.reject(space, Reason.SPACE_WITHOUT_POSITION, "no second line")
        rejections.reject(roving, Reason.ROVING_WITHOUT_POSITION, "no second line")

    def _place_spacecraft(self, records: Records, mask: BoolArray, rejections: Rejections) -> None:
        second = records.second[mask]
        flags = [second[:, 32] == ord(flag) for flag in KM_PER_UNIT]
        unit = np.select(flags, list(KM_PER_UNIT.values()), np.nan)
        axes = [parse_float(second[:, begin : begin + 12]).value for begin in (34, 46, 58)]
        self.gcrs[mask] = np.stack(axes, axis=1) * unit[:, None]
        bad = mask & np.isnan(self.gcrs).any(axis=1)
        rejections.reject(bad, Reason.SPACE_WITHOUT_POSITION, "its second line cannot be read")
        self.gcrs[bad] = np.nan
        # Type H: observations of Hipparcos that the MPC holds reduced to the geocentre.
        self.gcrs[(self.note2 == "H") & (self.station == HIPPARCOS)] = 0.0

    def _place_rovers(self, records: Records, mask: BoolArray, rejections: Rejections) -> None:
        row = np.flatnonzero(mask)
        second = records.second[row]
        longitude, latitude, altitude = (
            parse_float(second[:, begin:end]).value for begin, end in ((33, 45), (45, 56), (56, 66))
        )
        valid = (np.abs(longitude) <= 360.0) & (np.abs(latitude) <= 90.0)
        valid &= (altitude > ALTITUDE_LIMITS_M[0]) & (altitude < ALTITUDE_LIMITS_M[1])
        self.itrf[row[valid]] = erfa.gd2gc(
            WGS84, np.radians(longitude[valid]), np.radians(latitude[valid]), altitude[valid]
        )
        bad = mask & np.isnan(self.itrf[:, 0])
        rejections.reject(bad, Reason.ROVING_WITHOUT_POSITION, "its second line cannot be read")


class _Sky:
    """Time, direction and brightness of the N records; rejects those that cannot be read."""

    def __init__(self, records: Records, rejections: Rejections) -> None:
        text = records.first
        self._read_date(text[:, 15:32], rejections)
        self._read_direction(text, rejections)
        mag_field = text[:, 65:70]
        self.mag = parse_float(mag_field)
        self.mag_unreadable = ~self.mag.ok & ~is_blank(mag_field)

    def _read_date(self, text: ByteArray, rejections: Rejections) -> None:
        year, year_ok = parse_int(text[:, :4])
        month, month_ok = parse_int(text[:, 5:7])
        day = parse_float(text[:, 8:])
        whole = np.where(day.ok, np.floor(day.value), 0.0)
        power = 10.0**day.decimals
        self.year = year.astype(float)
        self.mjd_day, date_ok = calendar_to_mjd(year, month, whole.astype(np.int64))
        self.mjd_fraction = np.rint((day.value - whole) * power) / power
        self.time_resolution = DAY_S / power
        separated = (text[:, 4] == BLANK) & (text[:, 7] == BLANK)
        signed = np.isin(text[:, 8:], (ord("+"), ord("-"))).any(axis=1)
        ok = year_ok & month_ok & day.ok & date_ok & separated & ~signed
        rejections.reject(~ok, Reason.MALFORMED, "date in columns 16-32 cannot be read")

    def _read_direction(self, text: ByteArray, rejections: Rejections) -> None:
        ra = parse_sexagesimal(text[:, 32:44])
        ok = ra.ok & (ra.value < 24.0)
        rejections.reject(~ok, Reason.MALFORMED, "right ascension in columns 33-44 cannot be read")
        dec = parse_sexagesimal(text[:, 45:56])
        ok = dec.ok & (dec.value <= 90.0) & np.isin(text[:, 44], list(b"+-"))
        rejections.reject(~ok, Reason.MALFORMED, "declination in columns 45-56 cannot be read")
        self.ra, self.ra_resolution = ra.value * 15.0, ra.resolution * 15.0
        self.dec = np.where(text[:, 44] == ord("-"), -dec.value, dec.value)
        self.dec_resolution = dec.resolution


# The table ----------------------------------------------------------------------------------------


def _columns(
    records: Records, sky: _Sky, site: _Site, used: IntArray, default_sigma: Any
) -> ObservationColumns:
    text = records.first[used]
    program, notes = divide_note1(field_strings(text[:, 13:14]), site.station[used])
    catalog = field_strings(text[:, 71:72])
    resolution = sky.ra_resolution[used], sky.dec_resolution[used]
    sigma_ra, sigma_dec = sigma_columns(
        default_sigma,
        station=site.station[used],
        note2=site.note2[used],
        catalog=catalog,
        year=sky.year[used],
        resolution=(resolution[0] * np.cos(np.radians(sky.dec[used])), resolution[1]),
    )
    return ObservationColumns(
        designation=unpack_fields(field_strings(text[:, :12], strip=False)),
        mjd_day=sky.mjd_day[used],
        mjd_fraction=sky.mjd_fraction[used],
        ra=sky.ra[used],
        dec=sky.dec[used],
        sigma_ra=sigma_ra,
        sigma_dec=sigma_dec,
        sigma_source=np.full(len(used), "default"),
        mag=sky.mag.value[used],
        band=field_strings(text[:, 70:71]),
        station=site.station[used],
        kind=site.kind[used],
        observer_itrf=site.itrf[used],
        observer_gcrs=site.gcrs[used],
        note2=site.note2[used],
        program=program,
        catalog=catalog,
        discovery=text[:, 12] == ord("*"),
        line=records.line[used],
        extra={
            "notes": notes,
            "reference": field_strings(text[:, 72:77]),
            "time_resolution": u.Quantity(sky.time_resolution[used], u.s, copy=False),
            "ra_resolution": u.Quantity(resolution[0], u.arcsec, copy=False),
            "dec_resolution": u.Quantity(resolution[1], u.arcsec, copy=False),
        },
    )


def _notes(records: Records, sky: _Sky, site: _Site, used: IntArray) -> tuple[Note, ...]:
    unreadable = used[sky.mag_unreadable[used]]
    odd_type = used[~np.isin(records.first[used, 14], list(OBSERVATION_TYPES))]
    notes = [
        *station_notes(site.station[used], records.line[used], site.unknown[used]),
        *(Note(int(records.line[k]), "unreadable magnitude in columns 66-70") for k in unreadable),
        *(Note(int(records.line[k]), f"unknown type {str(site.note2[k])!r}") for k in odd_type),
    ]
    if records.n_long:
        lines = many(records.n_long, "line")
        notes.append(Note(0, f"text beyond column {WIDTH} was not read on {lines}"))
    return tuple(notes)
