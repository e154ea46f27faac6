"""Observations as plain columns: what tracklets are made of, checked once on the way in."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from astropy import units as u
from astropy.coordinates import BaseCoordinateFrame, EarthLocation, SkyCoord
from astropy.table import QTable
from astropy.time import Time

from neoranging.arguments import require_time, unmasked, values_in
from neoranging.constants import ARCSEC, AU_KM
from neoranging.core.geometry import beyond_poles
from neoranging.exceptions import TrackletError
from neoranging.observations import observatories
from neoranging.observations.mpc_codes import NOTE2_OF_MODE
from neoranging.observations.stations import station_codes
from neoranging.observations.uncertainty import (
    COARSE_SIGMA,
    INCREDIBLE_SIGMA,
    PRECISE_CODES,
    ZERO_WEIGHT,
)
from neoranging.records import many
from neoranging.typing import AnyArray, BoolArray, FloatArray, StrArray

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
    station: StrArray
    itrf: FloatArray
    """Earth-fixed place, shape (n, 3) [m]; NaN for spacecraft and unknown codes."""
    gcrs: FloatArray
    """Geocentric place of a spacecraft, shape (n, 3) [au]; NaN for all others."""
    mag: FloatArray
    band: StrArray
    technique: StrArray
    """Code of column 15 of the 80-column format, "E" for an occultation, "" where not given."""

    def take(self, rows: Any) -> Columns:
        """Some rows."""
        return Columns._make(column[rows] for column in self)

    def to_table(self, designation: StrArray, tracklet: StrArray) -> QTable:
        """Observation table with the designation and the tracklet id of each row."""
        space = np.isfinite(self.gcrs[:, 0])
        fixed = np.isfinite(observatories.itrf_positions(self.station)[:, 0])
        roving = np.isfinite(self.itrf[:, 0]) & ~fixed
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
                "note2": self.technique,
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
    """Strip n observations of their units.

    Parameters are those of `neoranging.TrackletSet.from_arrays`. Single values may be bad: `faults`
    tells which.

    Raises
    ------
    TrackletError
        If a column has another length than ``obstime`` or no unit, or holds values of another kind.
    """
    n = require_time("obstime", obstime).size
    if not n:
        raise TrackletError("a tracklet needs at least two observations, got none")
    with warnings.catch_warnings():
        # of old dates the package warns itself, where they matter
        warnings.filterwarnings("ignore", message="ERFA function .*dubious year")
        utc = obstime.utc if obstime.scale != "utc" else obstime
    gaps = np.broadcast_to(obstime.mask if obstime.masked else False, obstime.shape).reshape(n)
    codes, itrf = _places(station, n)
    angles = [values_in(*named, u.rad).reshape(-1) for named in (("ra", ra), ("dec", dec))]
    for name, column in zip(("ra", "dec"), angles, strict=True):
        if len(column) != n:
            raise TrackletError(f"{name} has {len(column)} values for {n} epochs")
    return Columns(
        np.where(gaps, np.nan, np.asarray(utc.jd1, dtype=float).reshape(n)),
        np.where(gaps, np.nan, np.asarray(utc.jd2, dtype=float).reshape(n)),
        angles[0],
        angles[1],
        _sigmas(sigma, n),
        codes,
        itrf,
        np.full((n, 3), np.nan),
        _spread("mag", _magnitudes(mag), n),
        _spread("band", _bands(band), n),
        np.full(n, ""),
    )


def icrs_directions(coord: Any) -> SkyCoord:
    """Directions in ICRS."""
    if not isinstance(coord, (SkyCoord, BaseCoordinateFrame)):
        raise TrackletError(
            f"coord must be an astropy SkyCoord, got {type(coord).__name__}: write "
            "SkyCoord(ra, dec, unit='deg')"
        )
    try:
        return SkyCoord(coord).icrs
    except (TypeError, ValueError, AttributeError) as error:
        raise TrackletError(
            f"coord in the frame {coord.name!r} cannot be turned into ICRS ({error}): give the "
            "frame what it depends on, as obstime= and location= of AltAz, or give ra and dec"
        ) from error


def labels(name: str, given: Any, n: int) -> AnyArray:
    """Names or ids of n observations, all text or all whole numbers."""
    values = np.asarray(given)
    if values.shape == () and name == "designation":
        values = np.broadcast_to(values, n)
    if values.shape != (n,):
        raise TrackletError(
            f"{name} must have one value for each of {n} observations, got shape {values.shape}"
        )
    kinds = {type(x) for x in values.tolist()} if values.dtype.kind == "O" else set()
    whole = values.dtype.kind == "f" and bool((values % 1.0 == 0.0).all())
    if values.dtype.kind in "SUiu" or whole or (kinds in ({str}, {int})):
        return values.astype(np.str_) if values.dtype.kind in "OS" else values
    raise TrackletError(
        f"{name} must be all text or all whole numbers, none of them missing, got "
        f"{', '.join(sorted(kind.__name__ for kind in kinds)) or values.dtype}: drop or name the "
        "rows without one"
    )


class Fault(NamedTuple):
    """Observations that cannot stand in a tracklet."""

    rows: BoolArray
    reason: str
    remedy: str

    @property
    def message(self) -> str:
        """The fault as the text of an error."""
        return f"{self.remedy} ({many(int(self.rows.sum()), 'observation')} {self.reason})"


def faults(c: Columns) -> tuple[Fault, ...]:
    """Observations without epoch, station, position or weight."""
    nowhere = (c.station == "") & np.isnan(c.itrf[:, 0]) & np.isnan(c.gcrs[:, 0])
    beyond = beyond_poles(c.dec)
    worst = np.degrees(max(c.dec[beyond].tolist(), key=abs, default=0.0))
    weightless = ~(np.isfinite(c.sigma) & (c.sigma > 0.0)).all(axis=1)
    weightless |= (np.abs(c.sigma / (ZERO_WEIGHT * ARCSEC) - 1.0) < 1e-9).any(axis=1)
    return (
        Fault(np.asarray(~np.isfinite(c.jd1 + c.jd2)), "without epoch", "drop these rows"),
        Fault(
            nowhere,
            "without station",
            "no station is given; give an MPC code, an EarthLocation or, for positions as seen "
            "from the centre of the Earth, '500'",
        ),
        Fault(
            ~(np.isfinite(c.ra) & np.isfinite(c.dec)),
            "without position: ra or dec no number",
            "ra and dec must be finite; drop these rows",
        ),
        Fault(
            beyond,
            "without position: dec beyond a pole",
            f"dec must lie between -90 and 90 deg, got {worst:.6g}: see its unit",
        ),
        Fault(
            np.asarray(weightless),
            "without weight: sigma not positive",
            "sigma must be positive and finite; drop observations of no weight",
        ),
    )


def with_credible_sigmas(c: Columns, used: BoolArray) -> tuple[Columns, tuple[str, ...]]:
    """Columns with the default for sigmas that no technique reaches, and notes on odd sigmas.

    Occultations and spacecraft reach microarcseconds, and no telescope stands at the geocentre.

    Parameters
    ----------
    c : Columns
    used : ndarray of bool, shape (n,)
        Rows to look at.
    """
    codes, row = np.unique(c.station, return_inverse=True)
    floating = observatories.is_known(codes) & np.isnan(observatories.itrf_positions(codes)[:, 0])
    precise = np.isfinite(c.gcrs[:, 0]) | (floating | np.isin(codes, PRECISE_CODES))[row]
    precise |= c.technique == NOTE2_OF_MODE["OCC"]
    limit = INCREDIBLE_SIGMA * ARCSEC
    wrong = (c.sigma < limit).any(axis=1) & ~precise & used
    coarse = (c.sigma > COARSE_SIGMA * ARCSEC).any(axis=1) & used
    notes = []
    if wrong.any():
        default = DEFAULT_SIGMA.to_value(u.rad)
        c = c._replace(sigma=np.where(wrong[:, None], default, c.sigma))
        notes.append(
            f"{many(int(wrong.sum()), 'observation')} from the ground with a sigma below "
            f"{INCREDIBLE_SIGMA * 1e3:g} mas, probably in wrong units: {DEFAULT_SIGMA:g} is used "
            "instead"
        )
    if coarse.any():
        notes.append(
            f"{many(int(coarse.sum()), 'observation')} with a sigma above {COARSE_SIGMA:g} arcsec, "
            f"up to {c.sigma[coarse].max() / ARCSEC:.4g}: see that its unit is meant"
        )
    return c, tuple(notes)


def _spread(name: str, values: AnyArray, n: int) -> AnyArray:
    if values.shape not in {(), (1,), (n,)}:
        raise TrackletError(f"{name} must be one value or {n} of them, got shape {values.shape}")
    return np.broadcast_to(values, n).copy()


def _magnitudes(mag: npt.ArrayLike | None) -> FloatArray:
    try:
        return unmasked(np.nan if mag is None else mag)
    except (TypeError, ValueError) as error:
        example = next(iter(np.ravel(np.asarray(mag, dtype=object)).tolist()), mag)
        raise TrackletError(
            f"mag must hold numbers, NaN where there is none, got {example!r}: bands go into band="
        ) from error


def _bands(band: npt.ArrayLike | None) -> StrArray:
    values = np.ravel(np.asarray("" if band is None else band, dtype=object))
    missing = [x is None or (isinstance(x, float) and np.isnan(x)) for x in values.tolist()]
    values = np.where(missing, "", values)
    wrong = [x for x in values.tolist() if not isinstance(x, str)]
    if wrong:
        raise TrackletError(f"band must hold text such as 'G' or 'V', got {wrong[0]!r}")
    return values.astype(np.str_).reshape(np.shape("" if band is None else band))


def _sigmas(sigma: u.Quantity, n: int) -> FloatArray:
    values = values_in("sigma", sigma, u.arcsec) * ARCSEC
    if values.ndim == 1:
        values = values[:, None]
    try:
        return np.broadcast_to(values, (n, 2)).copy()
    except ValueError as error:
        raise TrackletError(
            f"sigma must be a scalar or of shape ({n},) or ({n}, 2), got {np.shape(sigma)}"
        ) from error


def _places(given: Any, n: int) -> tuple[StrArray, FloatArray]:
    """Codes and Earth-fixed places of n observations."""
    if isinstance(given, EarthLocation):
        itrf = np.stack([x.to_value(u.m) for x in given.geocentric], axis=-1)
        if itrf.shape not in {(3,), (1, 3), (n, 3)}:
            raise TrackletError(
                f"station must be one EarthLocation or {n} of them, got shape {given.shape}"
            )
        return np.full(n, ""), np.broadcast_to(itrf, (n, 3)).copy()
    codes = station_codes(given)
    if codes.shape not in {(), (1,), (n,)}:
        raise TrackletError(f"station must be one MPC code or {n} of them, got {codes.shape}")
    codes = np.broadcast_to(codes, n).copy()
    return codes, observatories.itrf_positions(codes)
