"""Values of ADES records: times, directions and places from columns of strings.

Right ascension and declination of ADES are ICRF degrees, places kilometres or astronomical units
on ICRS axes, geodetic (WGS84) or cylindrical (ITRF); see the ADES definition,
https://github.com/IAU-ADES/ADES-Master.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from neoranging.constants import AU_KM, DAY_S
from neoranging.observations.ades.scan import AdesRecords
from neoranging.observations.fixed_width import (
    BLANK,
    ascii_matrix,
    calendar_to_mjd,
    float_or_nan,
    parse_float,
    parse_int,
)
from neoranging.observations.places import geodetic_to_itrf
from neoranging.observations.report import Reason
from neoranging.observations.utc import seconds_in_day
from neoranging.records import Rejections
from neoranging.typing import AnyArray, BoolArray, FloatArray, StrArray

EARTH_SURFACE_KM: Final = (6300.0, 6500.0)
"""Distances from the geocentre at which a roving observer can stand or fly."""

_TIME_WIDTH: Final = 31  # seconds with ten decimals
_TIME_DIGITS: Final = [0, 1, 2, 3, 5, 6, 8, 9, 11, 12, 14, 15, 17, 18]


class Fields:
    """Typed access to the string columns of N records."""

    def __init__(self, records: AdesRecords) -> None:
        self.columns = records.columns
        self.n = len(records)
        self.unreadable: dict[str, BoolArray] = {}
        self._given: dict[str, BoolArray] = {}
        self._numbers: dict[str, FloatArray] = {}

    def text(self, name: str) -> StrArray:
        """Strings, ``""`` where absent, (N,)."""
        if name not in self.columns:
            return np.full(self.n, "", dtype="U1")
        return np.array(self.columns[name], dtype=np.str_)

    def given(self, *names: str) -> BoolArray:
        """True for records that carry any of the fields, (N,)."""
        carried = np.zeros(self.n, dtype=bool)
        for name in names:
            if name in self.columns:
                if name not in self._given:
                    self._given[name] = np.fromiter(map(bool, self.columns[name]), bool, self.n)
                carried |= self._given[name]
        return carried

    def number(self, name: str) -> FloatArray:
        """Finite numbers, NaN where absent or unreadable (then also marked so), (N,)."""
        if name not in self.columns:
            return np.full(self.n, np.nan)
        if name not in self._numbers:
            value = _floats(self.columns[name])
            bad = ~np.isfinite(value) & self.given(name)
            if bad.any():
                value[bad] = np.nan
                self.unreadable[name] = bad
            value.flags.writeable = False
            self._numbers[name] = value
        return self._numbers[name]


def _floats(texts: list[str]) -> FloatArray:
    """Numbers of texts, NaN where a text is empty or no number."""
    together = "".join(texts)
    # float() takes Python's "1_000" and the digits of every script, ADES does not
    if together.isascii() and "_" not in together:
        try:
            return np.array([float(text) if text else np.nan for text in texts])
        except ValueError:
            pass  # some text is no number
    # nor does it have the exponent of Fortran, which the fixed-width formats know
    return np.array(
        [np.nan if "D" in t else float_or_nan(t.encode("ascii", "replace")) for t in texts]
    )


def read_obstime(fields: Fields, rejections: Rejections) -> dict[str, AnyArray]:
    """Times ``YYYY-MM-DDThh:mm:ss[.s...]Z`` (UTC).

    A second of 60 is a leap second where there was one, elsewhere the next minute: programs that
    round seconds write it so.

    Returns
    -------
    dict of str to ndarray
        ``mjd_day``, ``mjd_fraction``, ``year`` and ``is_rounded``, True for times with a second 60
        in a minute that has none.
    """
    texts = fields.columns.get("obsTime", [""] * fields.n)
    matrix = ascii_matrix(texts, _TIME_WIDTH)
    # Every digit and mark in its place, the Z behind the decimals and nothing after it.
    digit = (matrix >= ord("0")) & (matrix <= ord("9"))
    ok = digit[:, _TIME_DIGITS].all(axis=1)
    ok &= (matrix[:, [4, 7, 10, 13, 16]] == np.frombuffer(b"--T::", dtype=np.uint8)).all(axis=1)
    end = (matrix == ord("Z")).argmax(axis=1)  # 0 where there is none
    ok &= (end == 19) | ((end > 20) & (matrix[:, 19] == ord(".")))
    column = np.arange(_TIME_WIDTH)
    ok &= (digit | ~((column > 19) & (column < end[:, None]))).all(axis=1)
    ok &= np.fromiter(map(len, texts), np.int64, fields.n) == end + 1

    seconds = matrix[:, 17:-1].copy()
    seconds[seconds == ord("Z")] = BLANK
    second = parse_float(seconds)
    year, month, day, hour, minute = (
        parse_int(matrix[:, a:b])[0] for a, b in ((0, 4), (5, 7), (8, 10), (11, 13), (14, 16))
    )
    mjd, date_ok = calendar_to_mjd(year, month, day)
    clock = hour * 3600.0 + minute * 60.0 + second.value
    sixty = second.value >= 60.0
    leap = sixty & (clock >= DAY_S) & (clock < seconds_in_day(mjd))
    rounded = (second.value == 60.0) & ~leap
    ok &= date_ok & second.ok & (hour < 24) & (minute < 60) & (~sixty | leap | rounded)
    next_day = rounded & (clock >= DAY_S)
    mjd = mjd + next_day
    clock = np.where(next_day, 0.0, clock)
    rejections.reject(~ok, Reason.MALFORMED, "obsTime is no UTC time YYYY-MM-DDThh:mm:ss.sZ")
    return {
        "mjd_day": mjd,
        "mjd_fraction": np.where(ok, clock / seconds_in_day(mjd), 0.0),
        "year": year.astype(np.float64),
        "is_rounded": rounded & ok,
    }


def read_place(fields: Fields, rejections: Rejections) -> dict[str, AnyArray]:
    """Places of the location group: system, centre and three coordinates.

    Returns
    -------
    dict of str to ndarray
        ``kind``, ``observer_itrf`` [m] and ``observer_gcrs`` [km], NaN where there is no place.
    """
    system = fields.text("sys")
    position = np.stack([fields.number(f"pos{axis}") for axis in (1, 2, 3)], axis=1)
    complete = np.isfinite(position).all(axis=1)
    space = np.isin(system, ("ICRF_KM", "ICRF_AU"))
    roving = np.isin(system, ("WGS84", "ITRF"))
    centre = fields.text("ctr")
    rejections.reject(
        fields.given("sys") & ~space & ~roving,
        Reason.UNSUPPORTED_FRAME,
        "sys is none of ICRF_KM, ICRF_AU, WGS84, ITRF",
    )
    rejections.reject(
        (space | roving) & (centre != "") & (centre != "399"),
        Reason.UNSUPPORTED_FRAME,
        "the position refers to another centre than the geocentre (ctr 399)",
    )
    rejections.reject(space & ~complete, Reason.SPACE_WITHOUT_POSITION)
    rejections.reject(roving & ~complete, Reason.ROVING_WITHOUT_POSITION)
    gcrs, itrf = np.full((2, fields.n, 3), np.nan)
    gcrs[space] = position[space]
    gcrs[system == "ICRF_AU"] *= AU_KM
    geodetic, cylindrical = system == "WGS84", system == "ITRF"
    itrf[geodetic] = geodetic_to_itrf(position[geodetic])
    # East longitude [deg], distances from the axis and the equator [km].
    longitude, axis_distance, height = position[cylindrical].T
    angle = np.radians(longitude)
    xyz = (axis_distance * np.cos(angle), axis_distance * np.sin(angle), height)
    itrf[cylindrical] = 1e3 * np.stack(xyz, axis=1)
    distance = np.linalg.norm(itrf, axis=1) / 1e3
    low, high = EARTH_SURFACE_KM
    rejections.reject(
        roving & ~((distance > low) & (distance < high)),
        Reason.ROVING_WITHOUT_POSITION,
        "the place is not near the surface of the Earth",
    )
    kind = np.select([space, roving], ["space", "roving"], "ground")
    return {"kind": kind, "observer_itrf": itrf, "observer_gcrs": gcrs}


def read_direction(fields: Fields, rejections: Rejections) -> dict[str, AnyArray]:
    """ICRF positions ``ra`` and ``dec`` [deg]: measured, or a star and the offset from it."""
    ra, dec = fields.number("ra"), fields.number("dec")
    star = fields.given("raStar", "decStar")
    if star.any():
        # Occultations: the offset [arcsec, with cos(dec)] may be given as distance and angle.
        polar = fields.given("dist")
        distance, angle = fields.number("dist"), np.radians(fields.number("pa"))
        delta_ra = np.where(polar, distance * np.sin(angle), fields.number("deltaRA"))
        delta_dec = np.where(polar, distance * np.cos(angle), fields.number("deltaDec"))
        star_ra, star_dec = fields.number("raStar"), fields.number("decStar")
        star_ra = star_ra + delta_ra / 3600.0 / np.cos(np.radians(star_dec))
        ra = np.where(star, star_ra % 360.0, ra)
        dec = np.where(star, star_dec + delta_dec / 3600.0, dec)
    ok = (ra >= 0.0) & (ra <= 360.0) & (np.abs(dec) <= 90.0)
    rejections.reject(~ok, Reason.MALFORMED, "no right ascension and declination within range")
    return {"ra": ra % 360.0, "dec": dec}
