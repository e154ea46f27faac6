"""Station codes as they come, from text, numbers or gaps, turned into those of the MPC."""

from __future__ import annotations

import difflib
import re
import warnings
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from astropy import units as u

from neoranging.exceptions import NeoRangingWarning, TrackletError, UnknownStationError
from neoranging.observations import observatories
from neoranging.observations.cells import cell_text
from neoranging.observations.report import Note, Reason
from neoranging.records import Rejections, many
from neoranging.typing import BoolArray, IntArray, StrArray

if TYPE_CHECKING:
    from neoranging.observations.columns import Columns


UNKNOWN_STATION: Final = "unknown station"
"""Beginning of the notes on stations of which readers have warned."""

ROVING_CODES: Final = ("247", "270")
"""MPC codes of observers without a fixed place on the ground; the others are spacecraft."""

_NUMBER: Final = re.compile(r"\d{1,3}")

_CELLS: Final = frozenset({"str", "int", "float", "NoneType", "NAType", "NaTType", "str_"})
"""Types of the cells of a column of codes with gaps."""


def station_codes(station: Any) -> StrArray:
    """Codes of the MPC, "" where there is none.

    Blanks around a code are stripped, numbers get their zeros back (33 is "033", 703.0 is "703"),
    and a code in lower case becomes the one in capitals if only that is known.

    Parameters
    ----------
    station : str, number, None or array_like of these

    Raises
    ------
    TrackletError
        If these are coordinates, or no codes at all.

    Warns
    -----
    NeoRangingWarning
        If codes had to be put in capitals.
    """
    parts = station if isinstance(station, (tuple, list)) else [station]
    are_coordinates = any(isinstance(x, u.Quantity) for x in parts)
    if isinstance(station, tuple):
        are_coordinates |= any(isinstance(x, (int, float)) for x in station)
    elif not are_coordinates and np.asarray(station).dtype.kind == "f":
        numbers = np.asarray(station)
        fractions = np.isfinite(numbers) & (numbers % 1.0 != 0.0)
        triple = numbers.shape == (3,) and len(set(numbers.tolist())) == 3
        are_coordinates = bool(fractions.any()) or triple
    if are_coordinates:
        raise TrackletError(
            f"station must be an MPC code or an EarthLocation, got coordinates {station}: write "
            "station=EarthLocation.from_geodetic(longitude * u.deg, latitude * u.deg, "
            "height * u.m), and codes as text"
        )
    values = np.asarray(station)
    if isinstance(mask := getattr(station, "mask", None), np.ndarray):
        values = np.where(mask, "", values.astype(np.str_))
    if values.dtype.kind == "S":
        values = np.char.decode(values, "ascii", "replace")
    cells = values.ravel().tolist() if values.dtype == object else []
    if values.dtype.kind not in "OUTif" or not all(type(x).__name__ in _CELLS for x in cells):
        raise TrackletError(
            f"station must be an MPC code (text such as 'G96') or an EarthLocation, got "
            f"{type(station).__name__}"
        )
    texts, row = np.unique(values.astype(np.str_), return_inverse=True)
    texts = np.strings.strip(texts)
    codes = np.array([_code(text) for text in texts.tolist()], dtype=np.str_)
    capitals = [
        f"{old!r} is taken for {new!r}"
        for old, new in zip(texts.tolist(), codes.tolist(), strict=True)
        if old != new and old.upper() == new
    ]
    if capitals:
        warnings.warn(
            f"station {', '.join(capitals)}: codes of the MPC have capitals",
            NeoRangingWarning,
            stacklevel=5,
        )
    return codes[row].reshape(values.shape)


def require_codes(station: Any) -> StrArray:
    """Codes of the MPC, all of them in a list; see `station_codes`.

    Raises
    ------
    TrackletError
        If a station is missing.
    UnknownStationError
        If a code is in no list.

    Warns
    -----
    NeoRangingWarning
        If codes had to be put in capitals.
    """
    codes = np.atleast_1d(station_codes(station))
    if (codes == "").any():
        raise TrackletError(
            f"no station is given ({int((codes == '').sum())} of {codes.size}): give an MPC code, "
            "an EarthLocation, or '500' for the geocentre"
        )
    for code in np.unique(codes[~observatories.is_known(codes)]).tolist():
        raise UnknownStationError(missing_place(code), code=code)
    return codes.reshape(np.shape(station))


def missing_place(code: str) -> str:
    """Reason why a code has no place, and what to do."""
    if observatories.is_known(code):
        return (
            f"{code} ({observatories.names()[code]}) has no fixed one. Give it with each "
            "observation, in the column observer_gcrs (spacecraft) or observer_itrf of a table"
        )
    return (
        f"no list of observatories has {code!r}{nearest(code)}. Correct the code, pass an "
        "EarthLocation instead, or add the place with neoranging.register_observatory or a newer "
        "list with neoranging.load_obscodes"
    )


def _code(text: str) -> str:
    text = cell_text(text)
    if not text or observatories.is_known(text):
        return text
    if _NUMBER.fullmatch(text):
        return text.zfill(3)
    return text.upper() if observatories.is_known(text.upper()) else text


def with_places(c: Columns, reader_notes: Collection[str] = ()) -> tuple[Columns, tuple[str, ...]]:
    """Columns with codes of the MPC and the places of observatories, and notes on codes without.

    ``reader_notes`` name the unknown stations of which readers have warned already.

    Warns
    -----
    NeoRangingWarning
        If codes without a place come without the position of the observer.
    """
    names, row = np.unique(c.station, return_inverse=True)
    codes = station_codes(names)
    in_space = np.isfinite(c.gcrs[:, :1])
    itrf = np.where(np.isnan(c.itrf[:, :1]), observatories.itrf_positions(codes)[row], c.itrf)
    c = c._replace(station=codes[row], itrf=np.where(in_space, np.nan, itrf))
    placeless = np.isnan(c.itrf[:, 0]) & np.isnan(c.gcrs[:, 0]) & (c.station != "")
    names, count = np.unique(c.station[placeless], return_counts=True)
    notes = tuple(
        f"{many(n, 'observation')} without the place of the observer: {missing_place(code)}"
        for code, n in zip(names.tolist(), count.tolist(), strict=True)
        if not any(note.startswith(f"{UNKNOWN_STATION} {code!r} ") for note in reader_notes)
    )
    for note in notes:
        warnings.warn(note, NeoRangingWarning, stacklevel=5)
    return c, notes


def nearest(code: str) -> str:
    """Known codes in brackets near a mistyped one or part of a name, "" if there are none."""
    names = observatories.names()
    if len(code) > 3:
        codes = [listed for listed, name in names.items() if code.lower() in name.lower()]
    else:
        codes = difflib.get_close_matches(code.upper(), list(names), n=3, cutoff=0.6)
    near = ", ".join(f"{listed} {names[listed]}" for listed in codes[:3])
    return f" (near it: {near})" if near else ""


def check_stations(station: StrArray, kind: StrArray, rejections: Rejections) -> BoolArray:
    """Set aside records of codes without a fixed place that brought no position of their own.

    Returns
    -------
    ndarray of bool
        Ground-based records of codes that are in no list, (N,).
    """
    if not len(station):
        return np.zeros(0, dtype=bool)
    codes, row = np.unique(station, return_inverse=True)
    is_listed = observatories.is_known(codes)
    placeless = np.isnan(observatories.itrf_positions(codes)[:, 0])
    nowhere = (is_listed & placeless)[row] & (kind == "ground")
    rejections.reject(
        nowhere & np.isin(station, ROVING_CODES), Reason.ROVING_WITHOUT_POSITION, "no fixed place"
    )
    rejections.reject(nowhere, Reason.SPACE_WITHOUT_POSITION, "no fixed place")
    unknown: BoolArray = ~is_listed[row] & (kind == "ground")
    return unknown


def station_notes(station: StrArray, line: IntArray, unknown: BoolArray) -> list[Note]:
    """Note each unknown station once, with its first line, and warn of all of them together.

    Warns
    -----
    NeoRangingWarning
        If any record comes from a station in no list.
    """
    codes, first, count = np.unique(station[unknown], return_index=True, return_counts=True)
    if len(codes):
        message = (
            f"no list of observatories has {', '.join(codes.tolist())}: "
            f"{many(int(count.sum()), 'observation')} without the place of the observer. Give it "
            "with neoranging.register_observatory, or a newer list with neoranging.load_obscodes "
            "or in the environment variable NEORANGING_OBSCODES"
        )
        warnings.warn(message, NeoRangingWarning, stacklevel=2)
    return [
        Note(int(line[unknown][row]), f"{UNKNOWN_STATION} {code!r} ({many(n, 'observation')})")
        for code, row, n in zip(codes.tolist(), first.tolist(), count.tolist(), strict=True)
    ]
