"""The store of observations: plain columns that readers fill, and tracklets keep.

Units are those of files (degrees, arcseconds, kilometres of spacecraft, metres on the ground), so
that a decimal number comes out of a table as it went in. `Columns` hold what an arc is made of;
`Observations` add names and all that a source has besides, and become a table at the border.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from astropy import units as u
from astropy.table import QTable
from astropy.time import Time

from neoranging.arguments import require_time, unmasked, values_in
from neoranging.core.columns import take
from neoranging.exceptions import ObservationFormatError, TrackletError
from neoranging.observations import observatories
from neoranging.observations.mpc_codes import NOTE2_OF_MODE
from neoranging.observations.report import ReadReport
from neoranging.observations.stations import station_codes
from neoranging.observations.uncertainty import (
    COARSE_SIGMA,
    INCREDIBLE_SIGMA,
    PRECISE_CODES,
    ZERO_WEIGHT,
)
from neoranging.records import many
from neoranging.typing import AnyArray, BoolArray, FloatArray, StrArray

if TYPE_CHECKING:
    from astropy.coordinates import SkyCoord

DEFAULT_SIGMA = 1.0 * u.arcsec
"""Standard deviation of a position whose observer states none."""

LAYOUT: Final = (
    *("designation", "obstime", "ra", "dec", "sigma_ra", "sigma_dec", "sigma_source", "mag"),
    *("band", "station", "kind", "observer_itrf", "observer_gcrs", "note2", "program", "catalog"),
    *("discovery", "line"),
)
"""Order of the common columns of an observation table; those of a format follow."""


class Columns(NamedTuple):
    """Observations one after the other, as plain columns of length n."""

    jd1: FloatArray
    """UTC as a two-part Julian date."""
    jd2: FloatArray
    ra: FloatArray
    """ICRS [deg]."""
    dec: FloatArray
    sigma: FloatArray
    """Shape (n, 2) [arcsec]: right ascension with cos(dec), declination."""
    station: StrArray
    """MPC code, "" where a place was given instead."""
    itrf: FloatArray
    """Earth-fixed place, shape (n, 3) [m]; NaN for spacecraft and unknown codes.

    Readers give that of roving observers alone; `neoranging.grouping` adds those of observatories.
    """
    gcrs: FloatArray
    """Geocentric place of a spacecraft on ICRS axes, shape (n, 3) [km]; NaN for all others."""
    mag: FloatArray
    band: StrArray
    note2: StrArray
    """Technique as in column 15 of the 80-column format, "E" for an occultation, "" if unknown."""

    def take(self, rows: Any) -> Columns:
        """Some rows."""
        return take(self, rows)

    @classmethod
    def concatenate(cls, parts: Iterable[Columns]) -> Columns:
        """Columns one after the other."""
        return cls(*map(np.concatenate, zip(*parts, strict=True)))


@dataclass(frozen=True, kw_only=True)
class Observations:
    """Rows of a file or a table.

    Attributes
    ----------
    columns : Columns
    designation : ndarray of str
        Name of the object as the source has it, "" where there is none.
    kind : ndarray of str
        ``"ground"``, ``"roving"`` or ``"space"``.
    extra : mapping of str to column
        Further columns of the table, by name. Those that tracklets ask for are ``tracklet`` (id of
        the user), ``trkSub`` (id of a submission) and ``selected`` (False for rows that the source
        rejects from its orbit).
    meta : mapping
        Of the table: ``report``, and what the header of a format says.
    """

    columns: Columns
    designation: StrArray
    kind: StrArray
    extra: Mapping[str, Any] = field(default_factory=dict)
    meta: Mapping[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.designation)

    def to_table(self) -> QTable:
        """Observation table, with units and time scale."""
        c = self.columns
        obstime = Time(c.jd1, c.jd2, format="jd", scale="utc")
        obstime.format = "mjd"
        data = {
            "designation": self.designation,
            "obstime": obstime,
            "ra": u.Quantity(c.ra, u.deg, copy=False),
            "dec": u.Quantity(c.dec, u.deg, copy=False),
            "sigma_ra": c.sigma[:, 0] << u.arcsec,
            "sigma_dec": c.sigma[:, 1] << u.arcsec,
            "mag": c.mag,
            "band": c.band,
            "station": c.station,
            "kind": self.kind,
            "observer_itrf": u.Quantity(c.itrf, u.m, copy=False),
            "observer_gcrs": u.Quantity(c.gcrs, u.km, copy=False),
            "note2": c.note2,
            **self.extra,
        }
        common = {name: data.pop(name) for name in LAYOUT if name in data}
        _let_reports_be_stored()
        return QTable(common | data, copy=False, meta=dict(self.meta))

    @classmethod
    def from_reader(cls, parsed: Mapping[str, Any], meta: Mapping[str, Any]) -> Observations:
        """Rows of the columns that the reader of a format has parsed.

        Parameters
        ----------
        parsed : mapping of str to column
            ``mjd_day``, ``mjd_fraction`` (UTC) and the common columns of an observation table, in
            the units of `Columns`; all others become further columns of the table.
        meta : mapping
            As for the class.
        """
        extra = dict(parsed)
        day, fraction = extra.pop("mjd_day"), extra.pop("mjd_fraction")
        utc = Time(day.astype(float), fraction, format="mjd", scale="utc")
        sigma = [extra.pop(name) for name in ("sigma_ra", "sigma_dec")]
        return cls(
            columns=Columns(
                utc.jd1,
                utc.jd2,
                sigma=np.stack(sigma, axis=1),
                itrf=extra.pop("observer_itrf"),
                gcrs=extra.pop("observer_gcrs"),
                **{n: extra.pop(n) for n in ("ra", "dec", "station", "mag", "band", "note2")},
            ),
            designation=extra.pop("designation"),
            kind=extra.pop("kind"),
            extra=extra,
            meta=meta,
        )

    @classmethod
    def from_table(cls, table: QTable) -> Observations:
        """Rows of an observation table, as readers and `to_table` leave it."""
        n = len(table)

        def column(name: str, fill: Any) -> AnyArray:
            if name not in table.colnames:
                return np.full(n, fill)
            values = table[name]
            return np.where(getattr(values, "mask", False), fill, np.asarray(values))

        def quantity(name: str, unit: u.UnitBase, shape: tuple[int, ...] = ()) -> Any:
            if name not in table.colnames:
                return np.full((n, *shape), np.nan)
            return values_in(f"the column {name}", table[name], unit, ObservationFormatError)

        utc = table["obstime"].utc
        sigma = [quantity(name, u.arcsec) for name in ("sigma_ra", "sigma_dec")]
        columns = Columns(
            np.asarray(utc.jd1),
            np.asarray(utc.jd2),
            quantity("ra", u.deg),
            quantity("dec", u.deg),
            np.stack(sigma, axis=1),
            column("station", "").astype(np.str_),
            quantity("observer_itrf", u.m, (3,)),
            quantity("observer_gcrs", u.km, (3,)),
            unmasked(table["mag"]) if "mag" in table.colnames else np.full(n, np.nan),
            column("band", "").astype(np.str_),
            column("note2", "").astype(np.str_),
        )
        fills = {"tracklet": "", "trkSub": "", "selected": True}
        return cls(
            columns=columns,
            designation=column("designation", "").astype(np.str_),
            kind=column("kind", "ground").astype(np.str_),
            extra={name: column(name, fill) for name, fill in fills.items()},
            meta=table.meta,
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
    angles = [values_in(*named, u.deg).reshape(-1) for named in (("ra", ra), ("dec", dec))]
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


@cache
def _let_reports_be_stored() -> None:
    """Let a table with its report be stored as ECSV: there the report becomes its printed text."""
    from astropy.io.misc.yaml import AstropyDumper

    AstropyDumper.add_representer(
        ReadReport, lambda dumper, report: dumper.represent_str(str(report))
    )


def icrs_directions(coord: Any) -> SkyCoord:
    """Directions in ICRS."""
    from astropy.coordinates import BaseCoordinateFrame, SkyCoord

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


def labels(name: str, column: Any, n: int) -> AnyArray:
    """Names or ids of n observations, all text or all whole numbers."""
    values = np.asarray(column)
    if values.shape == () and name == "designation":
        values = np.broadcast_to(values, n)
    if values.shape != (n,):
        raise TrackletError(
            f"{name} must have one value for each of {n} observations, got shape {values.shape}"
        )
    kinds = {type(x) for x in values.tolist()} if values.dtype.kind == "O" else set()
    are_integers = values.dtype.kind == "f" and bool((values % 1.0 == 0.0).all())
    if values.dtype.kind in "SUiu" or are_integers or (kinds in ({str}, {int})):
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
    beyond = np.abs(c.dec) > 90.0 * (1.0 + 1e-12)  # but for a rounding at the poles
    worst = max(c.dec[beyond].tolist(), key=abs, default=0.0)
    weightless = ~(np.isfinite(c.sigma) & (c.sigma > 0.0)).all(axis=1)
    weightless |= (np.abs(c.sigma / ZERO_WEIGHT - 1.0) < 1e-9).any(axis=1)
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
    Only ``used`` rows are looked at.
    """
    codes, row = np.unique(c.station, return_inverse=True)
    floating = observatories.is_known(codes) & np.isnan(observatories.itrf_positions(codes)[:, 0])
    precise = np.isfinite(c.gcrs[:, 0]) | (floating | np.isin(codes, PRECISE_CODES))[row]
    precise |= c.note2 == NOTE2_OF_MODE["OCC"]
    wrong = (c.sigma < INCREDIBLE_SIGMA).any(axis=1) & ~precise & used
    coarse = (c.sigma > COARSE_SIGMA).any(axis=1) & used
    notes = []
    if wrong.any():
        c = c._replace(sigma=np.where(wrong[:, None], DEFAULT_SIGMA.value, c.sigma))
        notes.append(
            f"{many(int(wrong.sum()), 'observation')} from the ground with a sigma below "
            f"{INCREDIBLE_SIGMA * 1e3:g} mas, probably in wrong units: {DEFAULT_SIGMA:g} is used "
            "instead"
        )
    if coarse.any():
        notes.append(
            f"{many(int(coarse.sum()), 'observation')} with a sigma above {COARSE_SIGMA:g} arcsec, "
            f"up to {c.sigma[coarse].max():.4g}: see that its unit is meant"
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
    values = values_in("sigma", sigma, u.arcsec)
    if values.ndim == 1:
        values = values[:, None]
    try:
        return np.broadcast_to(values, (n, 2)).copy()
    except ValueError as error:
        raise TrackletError(
            f"sigma must be a scalar or of shape ({n},) or ({n}, 2), got {np.shape(sigma)}"
        ) from error


def _places(station: Any, n: int) -> tuple[StrArray, FloatArray]:
    """Codes of n observations, or their Earth-fixed places."""
    if hasattr(station, "geocentric"):  # an EarthLocation
        itrf = np.stack([x.to_value(u.m) for x in station.geocentric], axis=-1)
        if itrf.shape not in {(3,), (1, 3), (n, 3)}:
            raise TrackletError(
                f"station must be one EarthLocation or {n} of them, got shape {station.shape}"
            )
        return np.full(n, ""), np.broadcast_to(itrf, (n, 3)).copy()
    codes = station_codes(station)
    if codes.shape not in {(), (1,), (n,)}:
        raise TrackletError(f"station must be one MPC code or {n} of them, got {codes.shape}")
    return np.broadcast_to(codes, n).copy(), np.full((n, 3), np.nan)
