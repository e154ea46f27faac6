"""Default uncertainties of astrometric positions whose format carries none.

Values in arcseconds follow Veres et al. (2017, Icarus 296, 139, tables 2 to 4) as the NEO services
apply them: by station where it is well observed, else by technique and star catalogue. They are
meant for one observation; no factor for crowded nights is applied.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from neoranging.exceptions import ObservationFormatError
from neoranging.typing import BoolArray, FloatArray, StrArray

SIGMA_LIMITS: Final = (1e-6, 1e4)
"""Limits of what a file can mean as the error of a position, whatever the technique [arcsec]."""

ZERO_WEIGHT: Final = 999.0
"""OrbFit's sigma of an observation that is not to be used [arcsec]."""

CCD_SIGMA: Final = 1.0
"""An electronic detector of an unlisted station, and whatever is not listed at all."""

GAIA_SIGMA: Final = 0.6
"""The same, reduced with a Gaia catalogue."""

GAIA_CATALOGS: Final = ("U", "V", "W", "X", "3", "6")

STATION_SIGMA: Final[Mapping[str, float]] = MappingProxyType(
    {
        **dict.fromkeys(("F51", "F52"), 0.2),
        **dict.fromkeys(("645", "673", "H01", "Y28", "G83", "309"), 0.3),
        **dict.fromkeys(("644", "J04", "F65", "E10", "W84", "W85", "W86", "W87"), 0.4),
        **dict.fromkeys(("K91", "K92", "K93", "Q63", "Q64", "V37"), 0.4),
        **dict.fromkeys(("691", "689", "950", "G96", "568"), 0.5),
        **dict.fromkeys(("G45", "608"), 0.6),
        **dict.fromkeys(("E12", "D29"), 0.75),
        **dict.fromkeys(("699", "703", "T05", "T08"), 0.8),
        **dict.fromkeys(("704", "C51", "J75"), 1.0),
    }
)
"""Electronic detectors of the surveys and the most active follow-up stations [arcsec]."""

CHANGED_STATIONS: Final = (("703", 2014, 1.0), ("644", 2003, 0.6), ("691", 2003, 0.6))
"""Stations that got better: code, first year of the value above, value before it [arcsec]."""

TECHNIQUE_SIGMA: Final[Mapping[str, float]] = MappingProxyType(
    {"T": 0.5, "e": 0.75, "M": 3.0, "E": 0.2, "H": 0.2, "S": 1.5, "n": 1.0, "N": 3.0, "O": 1.0}
)
"""Other techniques by their code in column 15 of the 80-column format [arcsec]."""

PHOTOGRAPHIC_CODES: Final = ("", "A", "P", "Z", "X", "x")
PHOTOGRAPHIC_SIGMA: Final = ((1890, 10.0), (1950, 5.0), (9999, 2.5))
"""Photographs: the year before which a value holds, the value [arcsec]."""

FIRST_CCD_YEAR: Final = 1990
"""A blank technique means a photograph before this year, an electronic detector after it."""

INCREDIBLE_SIGMA: Final = 1e-3
"""No telescope on the ground reaches less, but for occultations: it is in wrong units [arcsec]."""

COARSE_SIGMA: Final = 300.0
"""No astrometry states more (records without weight: 100): it is in wrong units [arcsec]."""

PRECISE_CODES: Final = ("244", "275", "500")
"""Codes of occultations (seen from the geocentre or the ground), and of the geocentre."""

ROUNDING: Final = 12**-0.5
"""Standard deviation of a uniform rounding error, in units of the last digit."""


def outside_limits(sigma: FloatArray) -> BoolArray:
    """True for stated errors that mean nothing: negative or outside `SIGMA_LIMITS`, (N,).

    Zero and NaN stand for an error that is not stated.
    """
    low, high = SIGMA_LIMITS
    stated = np.isfinite(sigma) & (sigma != 0.0)
    return np.asarray(stated & ~((sigma >= low) & (sigma <= high)))


def default_sigma(
    station: StrArray, note2: StrArray, catalog: StrArray, year: FloatArray
) -> FloatArray:
    """Uncertainty of one coordinate by codes of the 80-column format and year, (N,) [arcsec]."""
    sigma = np.where(np.isin(catalog, GAIA_CATALOGS), GAIA_SIGMA, CCD_SIGMA)
    codes, row = np.unique(station, return_inverse=True)
    listed = np.array([STATION_SIGMA.get(code, np.nan) for code in codes.tolist()])
    if len(codes):
        sigma = np.where(np.isnan(listed[row]), sigma, listed[row])
    for code, first_year, before in CHANGED_STATIONS:
        sigma[(station == code) & (year < first_year)] = before
    for technique, value in TECHNIQUE_SIGMA.items():
        sigma[(note2 == technique) & ((technique != "S") | (station != "C51"))] = value
    photograph = np.isin(note2, PHOTOGRAPHIC_CODES) & ((note2 != "") | (year < FIRST_CCD_YEAR))
    limits, values = zip(*PHOTOGRAPHIC_SIGMA, strict=True)
    row = np.minimum(np.searchsorted(limits, year, side="right"), len(values) - 1)
    return np.where(photograph, np.array(values)[row], sigma)


def sigma_columns(
    chosen: Any,
    *,
    station: StrArray,
    note2: StrArray,
    catalog: StrArray,
    year: FloatArray,
    resolution: tuple[FloatArray, FloatArray],
) -> tuple[FloatArray, FloatArray]:
    """Columns of uncertainty for records without one.

    Parameters
    ----------
    chosen : None, float, Quantity or mapping of str to float or Quantity
        What the caller asked for: None for `default_sigma`, one value for all (a float is in
        arcseconds), or values by station that overrule the table. Values asked for are taken as
        they are; those of the table are at least the rounding error of the record.
    station, note2, catalog : ndarray of str, shape (N,)
        Codes of the 80-column format.
    year : ndarray, shape (N,)
    resolution : tuple of ndarray
        Unit of the last digit of right ascension (with cos(dec)) and declination, (N,) [arcsec].

    Raises
    ------
    ObservationFormatError
        If a value is no positive angle.
    """
    if chosen is not None and not isinstance(chosen, Mapping):
        same = np.full(len(station), _arcsec(chosen))
        return same, same.copy()
    table = default_sigma(station, note2, catalog, year)
    ra, dec = (np.maximum(table, unit * ROUNDING) for unit in resolution)
    for code, value in (chosen or {}).items():
        ra[station == code] = dec[station == code] = _arcsec(value)
    return ra, dec


def fill_sigmas(
    columns: dict[str, Any],
    chosen: Any,
    *,
    year: FloatArray,
    ra_unit: FloatArray,
    dec_unit: FloatArray,
) -> None:
    """Fill in the uncertainties that N records do not state, and name the source of each.

    Parameters
    ----------
    columns : dict of str to ndarray
        ``sigma_ra`` and ``sigma_dec`` [arcsec] are filled in place where either is zero or NaN, and
        ``sigma_source`` is added; needed are ``station``, ``note2``, ``catalog`` and ``dec``.
    chosen
        As for `sigma_columns`.
    year : ndarray, shape (N,)
    ra_unit, dec_unit : ndarray, shape (N,)
        Units of the last digits written, that of right ascension without cos(dec) [arcsec].
    """
    stated = (columns["sigma_ra"] > 0.0) & (columns["sigma_dec"] > 0.0)
    rows = ~stated
    if rows.any():
        columns["sigma_ra"][rows], columns["sigma_dec"][rows] = sigma_columns(
            chosen,
            station=columns["station"][rows],
            note2=columns["note2"][rows],
            catalog=columns["catalog"][rows],
            year=year[rows],
            resolution=(
                ra_unit[rows] * np.cos(np.radians(columns["dec"][rows])),
                dec_unit[rows],
            ),
        )
    columns["sigma_source"] = np.where(stated, "file", "default")


def _arcsec(value: Any) -> float:
    from astropy import units as u

    try:
        arcsec = float(value.to_value(u.arcsec) if isinstance(value, u.Quantity) else value)
    except (TypeError, ValueError, u.UnitConversionError):
        arcsec = np.nan
    if not 0.0 < arcsec < np.inf:
        raise ObservationFormatError(
            f"default_sigma={value!r} is no uncertainty: needed is a positive angle (a plain "
            "number is arcseconds), or a mapping of station codes to such angles"
        )
    return arcsec
