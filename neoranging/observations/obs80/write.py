"""Writer of the 80-column format of the Minor Planet Center.

Spacecraft and roving observers get their second line. The format holds 1e-6 d, 0.001 s of right
ascension and 0.01 arcsec of declination; coarser records are written with the digits they had where
the table tells (`time_resolution`, `ra_resolution`, `dec_resolution`). It holds no uncertainties.
"""

from __future__ import annotations

import os
from typing import IO, Any, Final

import numpy as np
from astropy import units as u
from astropy.table import Table

from neoranging.constants import AU_KM, DAY_S
from neoranging.exceptions import ObservationFormatError
from neoranging.observations.cells import translated
from neoranging.observations.designation import pack_field
from neoranging.observations.mpc_codes import join_note1
from neoranging.observations.obs80.lines import WIDTH
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
from neoranging.observations.utc import utc_days
from neoranging.typing import FloatArray, IntArray, StrArray

MAX_DECIMALS: Final = {"time": 6, "ra": 3, "dec": 2}
MINUTES_DECIMALS: Final = 5
AXIS_WIDTH: Final = 10  # of a coordinate of a spacecraft, its sign apart


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
    """Lines of an observation table in the 80-column format; see `write_obs80`."""
    require_columns(table)
    ra, dec = angles(table)
    kind, places = observers(table)
    types = record_types(table, kind)
    # Observations of Hipparcos reduced to the geocentre are the one kind without a position.
    types[(texts(table, "note2") == "H") & (kind == "space") & (places == 0.0).all(axis=1)] = "H"
    day, fraction = utc_days(table["obstime"])
    decimals = _decimals(numbers(table, "time_resolution", u.s), DAY_S, MAX_DECIMALS["time"])
    right_ascensions = _angles(
        ra / 15.0, numbers(table, "ra_resolution", u.arcsec) / 15.0, MAX_DECIMALS["ra"], 24
    )
    declinations = _angles(
        np.abs(dec), numbers(table, "dec_resolution", u.arcsec), MAX_DECIMALS["dec"]
    )
    fields = (
        translated(texts(table, "designation"), pack_field).tolist(),
        np.where(flags(table, "discovery"), "*", " ").tolist(),
        join_note1(*(texts(table, name).tolist() for name in ("program", "notes", "station"))),
        types.tolist(),
        [f"{date:17}" for date in decimal_dates(day, fraction, decimals)],
        [f"{angle:12}" for angle in right_ascensions],
        np.where(np.signbit(dec), "-", "+").tolist(),
        [f"{angle:20}" for angle in declinations],
        [_magnitude(mag) for mag in numbers(table, "mag").tolist()],
        band_letters(table),
        catalog_letters(table),
        [f"{reference[:5]:5}" for reference in texts(table, "reference").tolist()],
        station_codes(table),
    )
    lines = []
    seconds = _second_lines(kind, types, places)
    for line, second in zip(map("".join, zip(*fields, strict=True)), seconds, strict=True):
        lines.append(line)
        if second:
            # The second line repeats all but the asterisk, its type in lower case.
            start = f"{line[:12]} {line[13]}{line[14].lower()}{line[15:32]}"
            lines.append(f"{start}{second}{line[72:]}")
    for line in lines:
        if len(line) != WIDTH or not line.isascii():
            raise ObservationFormatError(
                f"{line!r} is no line of {WIDTH} ASCII characters: needed are a year of four "
                "digits and codes of one character; correct the row or write ADES"
            )
    return lines


def _decimals(resolution: FloatArray, unit: float, most: int) -> IntArray:
    """Decimals of a quantity whose last digit stands for ``resolution / unit``; most if unknown."""
    with np.errstate(invalid="ignore", divide="ignore"):
        decimals = np.ceil(-np.log10(resolution / unit) - 1e-6)
    return np.clip(np.where(np.isfinite(decimals), decimals, most), 0, most).astype(np.int64)


def _angles(
    value: FloatArray, resolution: FloatArray, most: int, full_turn: int | None = None
) -> list[str]:
    """Sexagesimal angles with the digits that the resolution [s or arcsec] allows."""
    # A resolution of 6 or 0.6 is a decimal of a minute.
    with np.errstate(invalid="ignore", divide="ignore"):
        power = np.log10(resolution / 60.0)
        is_power_of_ten = np.isfinite(power) & (np.abs(power - np.rint(power)) < 1e-6)
    in_minutes = (resolution > 1.5) | is_power_of_ten
    decimals = np.where(
        in_minutes,
        _decimals(resolution, 60.0, MINUTES_DECIMALS),
        _decimals(resolution, 1.0, most),
    )
    return sexagesimal(value, decimals, in_minutes=in_minutes, full_turn=full_turn)


def _magnitude(mag: float) -> str:
    """Columns 66-70."""
    if not np.isfinite(mag):
        return "     "
    text = f"{mag:4.1f}" if round(mag, 1) == mag else f"{mag:5.2f}"
    text = text if len(text) <= 5 else f"{mag:5.1f}"
    if len(text) > 5:
        raise ObservationFormatError(f"magnitude {mag} does not fit into five columns; correct it")
    return text.ljust(5)


def _second_lines(kind: StrArray, types: StrArray, places: FloatArray) -> list[str]:
    """Columns 33-72 of the second lines, "" where there is none."""
    lines = [""] * len(kind)
    for row in np.flatnonzero(types == "S").tolist():
        lines[row] = _spacecraft(places[row])
    for row in np.flatnonzero(kind == "roving").tolist():
        longitude, latitude, altitude = places[row].tolist()
        # As many decimals of the altitude as it has and as fit.
        shortest, *longer = (f"{altitude:.{n}f}" for n in range(3))
        heights = [shortest, *(text for text in longer if len(text) <= 5)]
        exact = (text for text in heights if abs(float(text) - altitude) < 1e-6)
        height = next(exact, heights[-1])
        lines[row] = f"1 {longitude:<10.6f} {latitude:<+10.6f} {height:>5}           "
    return lines


def _spacecraft(position: FloatArray) -> str:
    """Kilometres, or astronomical units where these alone give the position back exactly."""
    km = [_axis(x, most=4) for x in position.tolist()]
    au = [_axis(x, most=8) for x in (position / AU_KM).tolist()]
    from_km, from_au = (
        [float(axis.replace(" ", "")) * unit for axis in axes]
        for axes, unit in ((km, 1.0), (au, AU_KM))
    )
    if from_au == position.tolist() != from_km:
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
