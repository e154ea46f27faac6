"""Writer of the 80-column format of the Minor Planet Center.

Spacecraft and roving observers get their second line. The format holds 1e-6 d, 0.001 s of right
ascension and 0.01 arcsec of declination; coarser records are written with the digits they had where
the table tells (`time_resolution`, `ra_resolution`, `dec_resolution`). It holds no uncertainties.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import repeat
from typing import IO, Any, Final

import erfa
import numpy as np
from astropy import units as u
from astropy.table import Table

from neoranging.constants import AU_KM, DAY_S
from neoranging.exceptions import ObservationFormatError
from neoranging.observations.designation import pack_fields
from neoranging.observations.mpc_codes import CATALOG_CODES, join_note1
from neoranging.observations.obs80.lines import WIDTH
from neoranging.observations.output import angles, numbers, require_columns, texts, write_text
from neoranging.observations.utc import MJD_1970, utc_days
from neoranging.typing import BoolArray, FloatArray, IntArray

TWO_LINE_KINDS: Final = {"space": "S", "roving": "V"}
RESERVED_TYPES: Final = frozenset("SVRXsvrx")
"""Types that a record from a fixed place cannot have: it would not be read as an observation."""

MAX_DECIMALS: Final = {"time": 6, "ra": 3, "dec": 2}
MINUTES_DECIMALS: Final = 5
AXIS_WIDTH: Final = 10  # of a coordinate of a spacecraft, its sign apart
WGS84: Final = 1  # ERFA's number of the ellipsoid


def write_obs80(
    table: Table, output: str | os.PathLike[str] | IO[Any], *, overwrite: bool = False
) -> None:
    """Write an observation table in the MPC 80-column format.

    Parameters
    ----------
    table : Table
        Needed are designation, obstime, ra, dec and station; the other columns of an observation
        table are used where present.
    output : str, path-like or file object
        Where to write.
    overwrite : bool
        Replace an existing file.

    Raises
    ------
    ObservationFormatError
        If a column is missing or a row cannot be expressed in the format.
    OSError
        If the file exists and `overwrite` is False.

    Warns
    -----
    NeoRangingWarning
        If column 14 cannot hold a programme or note.
    """
    text = "".join(f"{line}\n" for line in format_obs80(table))
    write_text(text, output, overwrite=overwrite, encoding="ascii")


def format_obs80(table: Table) -> list[str]:
    """Return the lines of an observation table in the 80-column format; see `write_obs80`."""
    require_columns(table)
    ra, dec = angles(table)
    kind = texts(table, "kind", "ground").tolist()
    types = _types(table, kind)
    starts = [
        f"{name}{'*' if discovery else ' '}{program}{note2}{date}"
        for name, discovery, program, note2, date in zip(
            pack_fields(texts(table, "designation")).tolist(),
            _discovery(table),
            join_note1(*(texts(table, name).tolist() for name in ("program", "notes", "station"))),
            types,
            _dates(table),
            strict=True,
        )
    ]
    ends = [
        f"{reference[:5]:5}{station}"
        for reference, station in zip(
            texts(table, "reference").tolist(), _stations(table), strict=True
        )
    ]
    sky = zip(
        _right_ascensions(table, ra), _declinations(table, dec), _brightness(table), strict=True
    )
    lines = []
    for start, place, end, second in zip(
        starts, sky, ends, _second_lines(table, kind, types), strict=True
    ):
        alpha, delta, brightness = place
        lines.append(f"{start}{alpha}{delta}         {brightness}{end}")
        if second:
            # The second line repeats all but the asterisk, its type in lower case.
            lines.append(f"{start[:12]} {start[13]}{start[14].lower()}{start[15:]}{second}{end}")
    _require_80_columns(lines)
    return lines


def _require_80_columns(lines: list[str]) -> None:
    for line in lines:
        if len(line) != WIDTH or not line.isascii():
            raise ObservationFormatError(
                f"{line!r} is no line of {WIDTH} ASCII characters: needed are a year of four "
                "digits and codes of one character; correct the row or write ADES"
            )


def _discovery(table: Table) -> Iterable[bool]:
    return (
        table["discovery"].tolist() if "discovery" in table.colnames else repeat(False, len(table))
    )


def _one_column(texts: Iterable[str]) -> Iterator[str]:
    return (text if len(text) == 1 else " " for text in texts)


def _stations(table: Table) -> list[str]:
    codes = texts(table, "station").tolist()
    if odd := sorted({code for code in codes if len(code) != 3 or not code.isascii()}):
        raise ObservationFormatError(
            f"station codes {', '.join(map(repr, odd))} cannot be written: the format has three "
            "columns for them; give MPC codes"
        )
    return codes


def _types(table: Table, kind: list[str]) -> list[str]:
    """Column 15; spacecraft and roving observers are S and V whatever the source had."""
    types = list(_one_column(texts(table, "note2").tolist()))
    geocentric = (_places(table, "observer_gcrs", u.km) == 0.0).all(axis=1).tolist()
    for row, place in enumerate(kind):
        # Observations of Hipparcos reduced to the geocentre are the one kind without a position.
        if place in TWO_LINE_KINDS and not (types[row] == "H" and geocentric[row]):
            types[row] = TWO_LINE_KINDS[place]
        elif types[row] in RESERVED_TYPES:
            raise ObservationFormatError(
                f"row {row} has type {types[row]!r} but kind {place!r}: a record of this type "
                "would not be read as an observation from the ground; correct note2 or kind"
            )
    return types


def _places(table: Table, name: str, unit: u.UnitBase) -> FloatArray:
    """Positions of observers, (N, 3), NaN throughout if the table lacks them."""
    column = numbers(table, name, unit)
    return column if column.ndim == 2 else np.full((len(table), 3), np.nan)


# Fields -------------------------------------------------------------------------------------------


def _decimals(resolution: FloatArray, unit: float, most: int) -> IntArray:
    """Decimals of a quantity whose last digit stands for ``resolution / unit``; most if unknown."""
    with np.errstate(invalid="ignore", divide="ignore"):
        decimals = np.ceil(-np.log10(resolution / unit) - 1e-6)
    return np.clip(np.where(np.isfinite(decimals), decimals, most), 0, most).astype(np.int64)


def _dates(table: Table) -> list[str]:
    """Columns 16-32."""
    whole, fraction = utc_days(table["obstime"])
    decimals = _decimals(numbers(table, "time_resolution", u.s), DAY_S, MAX_DECIMALS["time"])
    ticks = np.rint(fraction * 10.0**decimals).astype(np.int64)
    carry, ticks = np.divmod(ticks, 10**decimals)
    calendar = (whole + carry - MJD_1970).astype("datetime64[D]").astype(str)
    return [
        f"{date.replace('-', ' ')}{_fraction(tick, n)}".ljust(17)
        for date, tick, n in zip(calendar.tolist(), ticks.tolist(), decimals.tolist(), strict=True)
    ]


def _fraction(ticks: int, decimals: int) -> str:
    return f".{ticks:0{decimals}d}" if decimals else ""


def _right_ascensions(table: Table, ra: FloatArray) -> list[str]:
    """Columns 33-44."""
    resolution = numbers(table, "ra_resolution", u.arcsec) / 15.0
    return _sexagesimal(ra / 15.0, resolution, MAX_DECIMALS["ra"], 12, full_turn=24)


def _declinations(table: Table, dec: FloatArray) -> list[str]:
    """Columns 45-56."""
    resolution = numbers(table, "dec_resolution", u.arcsec)
    texts = _sexagesimal(np.abs(dec), resolution, MAX_DECIMALS["dec"], 11)
    return [("-" if minus else "+") + t for minus, t in zip(np.signbit(dec), texts, strict=True)]


def _sexagesimal(
    value: FloatArray, resolution: FloatArray, most: int, width: int, full_turn: int | None = None
) -> list[str]:
    """Angles as ``DD MM SS.s``, or ``DD MM.m`` where the last digit is a decimal of a minute."""
    in_minutes = (resolution > 1.5) | _is_power_of_ten(resolution / 60.0)
    seconds = _decimals(resolution, 1.0, most)
    minutes = _decimals(resolution, 60.0, MINUTES_DECIMALS)
    decimals = np.where(in_minutes, minutes, seconds)
    per_whole = np.where(in_minutes, 60, 3600) * 10**decimals
    ticks = np.rint(value * per_whole).astype(np.int64)
    if full_turn:
        ticks %= full_turn * per_whole
    return [
        (_in_minutes(tick, n) if short else _in_seconds(tick, n)).ljust(width)
        for tick, n, short in zip(
            ticks.tolist(), decimals.tolist(), in_minutes.tolist(), strict=True
        )
    ]


def _is_power_of_ten(value: FloatArray) -> BoolArray:
    with np.errstate(invalid="ignore", divide="ignore"):
        power = np.log10(value)
    return np.isfinite(power) & (np.abs(power - np.rint(power)) < 1e-6)


def _in_minutes(ticks: int, decimals: int) -> str:
    minutes, rest = divmod(ticks, 10**decimals)
    return f"{minutes // 60:02d} {minutes % 60:02d}{_fraction(rest, decimals)}"


def _in_seconds(ticks: int, decimals: int) -> str:
    seconds, rest = divmod(ticks, 10**decimals)
    minutes = seconds // 60
    return f"{minutes // 60:02d} {minutes % 60:02d} {seconds % 60:02d}{_fraction(rest, decimals)}"


def _brightness(table: Table) -> list[str]:
    """Columns 66-72: magnitude, band, star catalogue."""
    bands = [_band_letter(band) for band in texts(table, "band").tolist()]
    catalogs = _one_column(CATALOG_CODES.get(c, c) for c in texts(table, "catalog").tolist())
    mags = numbers(table, "mag").tolist()
    return [
        f"{_magnitude(mag)}{band}{catalog}"
        for mag, band, catalog in zip(mags, bands, catalogs, strict=True)
    ]


def _band_letter(band: str) -> str:
    """The one letter of a band: of "Sg", "Pg", "Ao" the second, of "Vj", "Rc" the first."""
    if len(band) < 2:
        return band or " "
    return band[1] if band[0] in "SPA" else band[0]


def _magnitude(mag: float) -> str:
    if not np.isfinite(mag):
        return "     "
    text = f"{mag:4.1f}" if round(mag, 1) == mag else f"{mag:5.2f}"
    text = text if len(text) <= 5 else f"{mag:5.1f}"
    if len(text) > 5:
        raise ObservationFormatError(f"magnitude {mag} does not fit into five columns; correct it")
    return text.ljust(5)


# Second lines -------------------------------------------------------------------------------------


def _second_lines(table: Table, kind: list[str], types: list[str]) -> list[str]:
    """Columns 33-72 of the second lines, "" where there is none."""
    seconds = [""] * len(kind)
    places = np.array(kind, dtype=object)
    spacecraft = np.flatnonzero(places == "space")
    rovers = np.flatnonzero(places == "roving")
    if len(spacecraft):
        gcrs = _places(table, "observer_gcrs", u.km)[spacecraft]
        for row, place in zip(spacecraft.tolist(), gcrs, strict=True):
            geocentric = types[row] not in TWO_LINE_KINDS.values()
            seconds[row] = "" if geocentric else _spacecraft_place(place, row)
    if len(rovers):
        itrf = _places(table, "observer_itrf", u.m)[rovers]
        for row, place in zip(rovers.tolist(), _geodetic(itrf), strict=True):
            seconds[row] = _rover_place(place, row)
    return seconds


def _spacecraft_place(position: FloatArray, row: int) -> str:
    """Kilometres, or astronomical units where these alone give the position back exactly."""
    _require_place(position, row)
    km = [_axis(x, most=4) for x in position.tolist()]
    au = [_axis(x, most=8) for x in (position / AU_KM).tolist()]
    if _read(au, AU_KM) == position.tolist() != _read(km, 1.0):
        return f"2 {''.join(au)}  "
    return f"1 {''.join(km)}  "


def _axis(value: float, most: int) -> str:
    """A sign and ten columns, with as many decimals as fit, and a blank."""
    for decimals in range(most, -1, -1):
        digits = f"{abs(value):{AXIS_WIDTH}.{decimals}f}"
        if len(digits) <= AXIS_WIDTH:
            return f"{'-' if value < 0 else '+'}{digits} "
    raise ObservationFormatError(
        f"a spacecraft at {value:.4g} from the geocentre does not fit into {AXIS_WIDTH} columns; "
        "write ADES"
    )


def _read(axes: list[str], unit: float) -> list[float]:
    return [float(axis.replace(" ", "")) * unit for axis in axes]


def _geodetic(itrf: FloatArray) -> FloatArray:
    """Longitude [deg, 0 to 360), latitude [deg], altitude [m], (n, 3)."""
    longitude, latitude, altitude = erfa.gc2gd(WGS84, np.nan_to_num(itrf))
    place = np.stack((np.degrees(longitude) % 360.0, np.degrees(latitude), altitude), axis=1)
    return np.where(np.isfinite(itrf).all(axis=1, keepdims=True), place, np.nan)


def _rover_place(place: FloatArray, row: int) -> str:
    _require_place(place, row)
    longitude, latitude, altitude = place.tolist()
    for text in (f"{altitude:.0f}", f"{altitude:.1f}", f"{altitude:.2f}"):
        if len(text) > 5:
            break
        height = text
        if abs(float(text) - altitude) < 1e-6:
            break
    return f"1 {longitude:<10.6f} {latitude:<+10.6f} {height:>5}           "


def _require_place(place: FloatArray, row: int) -> None:
    if not np.isfinite(place).all():
        raise ObservationFormatError(
            f"row {row} has no finite place of its observer, which its kind needs; fill "
            "observer_gcrs (space) or observer_itrf (roving), or drop the row"
        )
