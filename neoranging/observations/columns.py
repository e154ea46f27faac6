"""Observations as plain columns: what tracklets are made of, checked once on the way in."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from astropy import units as u
from astropy.coordinates import EarthLocation
from astropy.table import QTable
from astropy.time import Time

from neoranging.arguments import require_time, unmasked, values_in
from neoranging.constants import ARCSEC, AU_KM
from neoranging.core.geometry import FloatArray
from neoranging.exceptions import TrackletError
from neoranging.observations import observatories

__all__ = ["DEFAULT_SIGMA", "Columns", "plain_columns", "within_poles"]

DEFAULT_SIGMA = 1.0 * u.arcsec
"""Standard deviation of a position whose observer states none."""


class Columns(NamedTuple):
    """Observations one after the other, as plain columns of length n."""

    jd1: FloatArray
    """UTC as a two-part Julian date."""
    jd2: FloatArray
    ra: FloatArray
    dec: FloatArray
    sigma: FloatArray
    """Shape (n, 2) [rad]: right ascension with cos(dec), declination."""
    station: npt.NDArray[np.str_]
    itrf: FloatArray
    """Earth-fixed place, shape (n, 3) [m]; NaN for spacecraft and unknown codes."""
    gcrs: FloatArray
    """Geocentric place of a spacecraft, shape (n, 3) [au]; NaN for all others."""
    mag: FloatArray
    band: npt.NDArray[np.str_]

    def take(self, rows: Any) -> Columns:
        """Some rows."""
        return Columns._make(column[rows] for column in self)

    def to_table(
        self, designation: npt.NDArray[np.str_], tracklet: npt.NDArray[np.int64]
    ) -> QTable:
        """Observation table with the designation and the tracklet of each row."""
        space = np.isfinite(self.gcrs[:, 0])
        roving = np.isfinite(self.itrf[:, 0]) & ~observatories.is_known(self.station)
        sigma = (self.sigma << u.rad).to(u.arcsec)
        return QTable(
            {
                "designation": designation,
                "obstime": Time(self.jd1, self.jd2, format="jd", scale="utc"),
                "ra": (self.ra << u.rad).to(u.deg),
                "dec": (self.dec << u.rad).to(u.deg),
                "sigma_ra": sigma[:, 0],
                "sigma_dec": sigma[:, 1],
                "mag": self.mag,
                "band": self.band,
                "station": self.station,
                "kind": np.select([space, roving], ["space", "roving"], "ground"),
                "observer_itrf": np.where(roving[:, None], self.itrf, np.nan) << u.m,
                "observer_gcrs": self.gcrs * AU_KM << u.km,
                "tracklet": tracklet,
            }
        )


def plain_columns(
    obstime: Time,
    ra: u.Quantity,
    dec: u.Quantity,
    station: Any,
    sigma: u.Quantity,
    mag: npt.ArrayLike | None,
    band: npt.ArrayLike | None,
) -> Columns:
    """Check n observations and strip their units.

    Parameters are those of `neoranging.TrackletSet.from_arrays`.

    Raises
    ------
    TrackletError
        If a column has another length than ``obstime`` or no unit, or holds values that are not
        finite or lie beyond the poles.
    """
    n = require_time("obstime", obstime).size
    if obstime.masked and np.any(obstime.mask):
        raise TrackletError(f"{np.sum(obstime.mask)} of {n} epochs are masked: drop them first")
    with warnings.catch_warnings():
        # of old dates the package warns itself, where they matter
        warnings.filterwarnings("ignore", message="ERFA function .*dubious year")
        utc = obstime.utc if obstime.scale != "utc" else obstime
    codes, itrf, gcrs = _places(station, n)
    angles = [values_in(*named, u.rad).reshape(-1) for named in (("ra", ra), ("dec", dec))]
    for name, column in zip(("ra", "dec"), angles, strict=True):
        if len(column) != n:
            raise TrackletError(f"{name} has {len(column)} values for {n} epochs")
        if not np.isfinite(column).all():
            raise TrackletError(f"{name} holds values that are not finite: drop them first")
    if not within_poles(angles[1]).all():
        worst = np.degrees(angles[1][np.argmax(np.abs(angles[1]))])
        raise TrackletError(f"dec must lie between -90 and 90 deg, got {worst:.6g}: see its unit")
    return Columns(
        np.asarray(utc.jd1, dtype=float).reshape(n),
        np.asarray(utc.jd2, dtype=float).reshape(n),
        angles[0],
        angles[1],
        _sigmas(sigma, n),
        codes,
        itrf,
        gcrs,
        _spread("mag", unmasked(np.nan if mag is None else mag), n),
        _spread("band", np.asarray("" if band is None else band, dtype=np.str_), n),
    )


def within_poles(dec: FloatArray) -> npt.NDArray[np.bool_]:
    """Whether declinations [rad] are ones, give or take a rounding at the poles."""
    return np.abs(dec) <= 0.5 * np.pi * (1.0 + 1e-12)


def _spread(name: str, values: npt.NDArray[Any], n: int) -> npt.NDArray[Any]:
    if values.shape not in {(), (1,), (n,)}:
        raise TrackletError(f"{name} must be one value or {n} of them, got shape {values.shape}")
    return np.broadcast_to(values, n).copy()


def _sigmas(sigma: u.Quantity, n: int) -> FloatArray:
    values = values_in("sigma", sigma, u.arcsec) * ARCSEC
    if values.ndim == 1:
        values = values[:, None]
    try:
        values = np.broadcast_to(values, (n, 2)).copy()
    except ValueError as error:
        raise TrackletError(
            f"sigma must be a scalar or of shape ({n},) or ({n}, 2), got {sigma.shape}"
        ) from error
    if not (np.isfinite(values).all() and (values > 0.0).all()):
        raise TrackletError("sigma must be positive and finite; drop observations of no weight")
    return values


def _places(given: Any, n: int) -> tuple[npt.NDArray[np.str_], FloatArray, FloatArray]:
    """Codes, Earth-fixed places and (no) spacecraft places of n observations."""
    nowhere = np.full((n, 3), np.nan)
    if isinstance(given, EarthLocation):
        itrf = np.stack([x.to_value(u.m) for x in given.geocentric], axis=-1)
        return np.full(n, ""), np.broadcast_to(itrf, (n, 3)).copy(), nowhere
    try:
        station = np.broadcast_to(np.asarray(given, dtype=np.str_), n).copy()
    except ValueError as error:
        raise TrackletError(
            f"station must be one MPC code or {n} of them, got {np.shape(given)}"
        ) from error
    return station, observatories.itrf_positions(station), nowhere
