"""States of the Earth and of observers, offline, cached and vectorised.

Every public function comes as a pair: one that takes `~astropy.time.Time` and returns
`~astropy.units.Quantity`, and a twin over plain arrays, epochs as MJD TDB, lengths in au.

Sources
-------
Earth
    Heliocentric, from the excerpt of JPL DE440 in the package (1950-2060), else from astropy's
    built-in series (ERFA ``epv00``). Sun and Earth always come from the same source.
Planets
    Heliocentric, from ERFA's series ``plan94`` (Simon et al. 1994, A&A 282, 663): they only have to
    attract.
Rotation of the Earth
    IAU 2006/2000A pole, as ERFA has it (``xys06a``), from a table in the package; UT1 and polar
    motion from the IERS tables that astropy brings along. There is no download, and neither
    astropy's configuration nor its caches are touched.
Time
    UTC to TT by ERFA's leap seconds, TDB - TT for the geocentre by its series (``dtdb``), from the
    same table in the package.
    Before 1960 there is no UTC: a time marked ``utc`` is then taken to be UT, and, as in astropy,
    TT = UT + 32.184 s.

Interpolation adds less than 0.1 m and 1e-4 m/s to the Earth, 0.7 mm to a site.
"""

from __future__ import annotations

import functools
import itertools
import os
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import astropy.units as u
import erfa
import numpy as np
from astropy.time import Time
from astropy.utils import iers
from jplephem.spk import SPK
from numpy.typing import ArrayLike

from neoranging.constants import ARCSEC, AU_KM, AU_M, DAY_S, GM_PLANETS, MJD_JD, TT_TAI_S
from neoranging.core import ephemeris as core
from neoranging.core.ephemeris import ATTRACTOR_TERMS
from neoranging.exceptions import EphemerisError, NeoRangingWarning
from neoranging.typing import AnyArray, FloatArray, IntArray, StrArray

if TYPE_CHECKING:
    from astropy.coordinates import EarthLocation

    from neoranging.core.flight import Almanac

KERNEL: Final = Path(__file__).parents[1] / "data" / "ephemeris" / "de440_1950_2060.bsp"
"""The excerpt of DE440: an SPK file that astropy and jplephem read as well."""

SERIES: Final = KERNEL.with_name("erfa_1800_2200.npz")
"""The celestial pole and TDB - TT, tabulated by ``docs/tools/make_erfa_series.py``."""

_PLANETS: Final = dict(zip(GM_PLANETS, (1, 2, 4, 5, 6, 7, 8), strict=True))
"""Numbers of the planets in ERFA's series; its third is the barycentre of Earth and Moon."""

# One grid for all series, from 1800 to 2200; the limits of DE440 lie on its cell edges, so that no
# cell, and hence no state, mixes two sources.
START, STEP, CELLS = -21_504.0, 8.0, 18_263

EPHEMERIS_SPAN: Final = (START, START + CELLS * STEP)
"""First and last epoch served [MJD TDB]: 1800-01-01 to 2200-01-08."""

DE440_SPAN: Final = (33_280.0, 73_464.0)
"""First and last epoch of the DE440 excerpt as used here [MJD TDB]: 1949-12-30 to 2060-01-06."""


def _earth(mjd_tdb: FloatArray) -> FloatArray:
    """Heliocentric Earth ``(M, 3)`` [au] from the best source of each epoch."""
    position = np.empty((mjd_tdb.size, 3))
    inside = (mjd_tdb >= DE440_SPAN[0]) & (mjd_tdb <= DE440_SPAN[1])
    if inside.any():
        # Opened anew for each batch of cells: nothing stays open to be inherited by a fork.
        with SPK.open(KERNEL) as kernel:
            epoch = MJD_JD, mjd_tdb[inside]
            barycentre, earth, sun = (
                kernel[pair].compute(*epoch) for pair in ((0, 3), (3, 399), (0, 10))
            )
        position[inside] = (barycentre + earth - sun).T / AU_KM
    if not inside.all():
        # The bare ufuncs of ERFA return their status instead of warning of a "dubious year".
        heliocentric, _, _ = erfa.ufunc.epv00(MJD_JD, mjd_tdb[~inside])
        position[~inside] = heliocentric["p"]
    return position


def _moon(mjd_tdb: FloatArray) -> FloatArray:
    """Geocentric Moon ``(M, 3)`` [au], good to some ten kilometres: it only has to attract."""
    return np.asarray(erfa.ufunc.moon98(MJD_JD, mjd_tdb)["p"])


@functools.cache
def _shipped() -> dict[str, AnyArray]:
    """Tables of the package."""
    with np.load(SERIES) as file:
        return dict(file)


def _tabulated(name: str, cells: IntArray) -> FloatArray:
    """Coefficients of cells of a table of the package."""
    table = _shipped()
    return core.powers(np.moveaxis(table[name][..., cells], -1, 0) * table[f"{name}_unit"])


def _interpolated(
    function: Callable[[FloatArray], FloatArray], name: str, degree: int = 11
) -> core.PiecewiseSeries:
    source = core.Interpolant(function, start=START, step=STEP, degree=degree)
    return _series(source, degree=degree, n_components=3, name=name)


_series = functools.partial(core.PiecewiseSeries, start=START, step=STEP, n_cells=CELLS)
_EARTH: Final = _interpolated(_earth, "the Earth")
_MOON: Final = _interpolated(_moon, "the Moon")
# X, Y of the celestial intermediate pole and s + XY / 2, s the locator of the origin [rad]
_POLE: Final = _series(
    functools.partial(_tabulated, "pole"), degree=8, n_components=3, name="the celestial pole"
)
# at the geocentre [s]
_TDB_TT: Final = _series(
    functools.partial(_tabulated, "tdb_tt"), degree=4, n_components=1, name="TDB - TT"
)


# instants through which `attractors` lays polynomials, in units of the reach
_NODES: Final = np.linspace(-1.0, 1.0, ATTRACTOR_TERMS)
_THROUGH_NODES: Final = np.linalg.inv(np.vander(_NODES, increasing=True))


class _Orientation(NamedTuple):
    """Measured rotation of the Earth, by day."""

    epoch: FloatArray  # MJD TT
    values: FloatArray  # (M, 3): UT1 - TT [d], unlike UT1 - UTC free of leaps; x_p, y_p [rad]
    measured: tuple[float, float]  # first and last MJD of the tables


@functools.cache
def _orientation() -> _Orientation:
    """The IERS tables of astropy: the long series C04, then the predictions of Bulletin A.

    Before the tables begin in 1962 UT1 equals what a time calls UTC, by definition before 1960.
    """
    table = np.loadtxt(iers.IERS_B_FILE, usecols=(4, 5, 6, 7))
    table = np.vstack([table, _bulletin_a(after=table[-1, 0])])
    measured = table[0, 0], table[-1, 0]
    # Two days of 1959 show the step from UT to the first UTC.
    early = np.zeros((int(measured[0]) - 36_932, 4))
    early[:, 0] = np.arange(36_932.0, measured[0])
    early[:, 1:3] = table[0, 1:3]
    mjd, xp, yp, ut1_utc = np.vstack([early, table]).T
    tai_utc, _ = erfa.ufunc.dat(*erfa.ufunc.jd2cal(MJD_JD, mjd)[:4])
    tt_utc = tai_utc + TT_TAI_S
    values = np.stack([(ut1_utc - tt_utc) / DAY_S, xp * ARCSEC, yp * ARCSEC], axis=-1)
    return _Orientation(mjd + tt_utc / DAY_S, values, measured)


def _bulletin_a(after: float) -> FloatArray:
    """MJD, polar motion [arcsec], UT1 - UTC [s] of the days after one, ``(M, 4)``."""
    # fixed columns: `astropy.utils.iers` reads each table in a second, at the start of any command
    columns = (slice(7, 15), slice(18, 27), slice(37, 46), slice(58, 68))
    lines = Path(iers.IERS_A_FILE).read_text(encoding="ascii").splitlines()
    new = itertools.takewhile(lambda line: float(line[columns[0]]) > after, reversed(lines))
    # of the last days only the date is there
    rows = [
        [float(line[column]) for column in columns] for line in new if line[columns[-1]].strip()
    ]
    return np.array(rows[::-1]).reshape(-1, len(columns))


_WARNED: set[str] = set()


def _warn_once(message: str) -> None:
    """Warn of degraded accuracy, once per process and message."""
    if message not in _WARNED:
        warnings.warn(message, NeoRangingWarning, stacklevel=3)
        _WARNED.add(message)


def _outside(epoch: FloatArray, span: tuple[float, float]) -> bool:
    return epoch.size > 0 and bool(epoch.min() < span[0] or epoch.max() >= span[1])


def tdb_mjd(time: Time) -> FloatArray:
    """Epochs as MJD TDB, a hundred times faster than ``time.tdb.mjd`` for many epochs.

    Parameters
    ----------
    time : `~astropy.time.Time`
        Any scale and shape.

    Returns
    -------
    ndarray
        Same shape, MJD TDB at the geocentre (a `~astropy.time.Time` with a location differs by up
        to 2 microseconds). The last bit of an MJD is 0.6 microseconds.

    Raises
    ------
    EphemerisError
        If an epoch is masked, not finite or outside ``EPHEMERIS_SPAN``.
    """
    if time.masked:
        if np.any(time.mask):
            raise EphemerisError(f"{np.sum(time.mask)} epochs are masked; leave these rows out")
        time = time.unmasked
    if time.scale == "tdb":
        return np.asarray((time.jd1 - MJD_JD) + time.jd2)
    if time.scale not in {"utc", "tai", "tt", "ut1"}:
        time = time.tt
    return tdb_of(time.scale, time.jd1, time.jd2)


def tdb_of(scale: str, jd1: FloatArray, jd2: FloatArray) -> FloatArray:
    """MJD TDB of a two-part Julian date on a scale "utc", "tai", "tt" or "ut1", any shape.

    What `tdb_mjd` gives, without a `~astropy.time.Time`.
    """
    day, fraction = jd1, jd2
    if scale == "utc":
        day, fraction, _ = erfa.ufunc.utctai(day, fraction)
    day = np.asarray(day - MJD_JD)  # without loss
    if scale in {"utc", "tai"}:
        fraction = fraction + TT_TAI_S / DAY_S
    elif scale == "ut1":  # astropy would refuse it without recent tables
        table = _orientation()
        fraction = fraction - np.interp(day + fraction, table.epoch, table.values[:, 0])
    seconds = _TDB_TT(np.ravel(day + fraction)).reshape(day.shape)
    return np.asarray(day + (fraction + seconds / DAY_S))


def _epochs(time: Time | ArrayLike) -> FloatArray:
    return tdb_mjd(time) if isinstance(time, Time) else np.asarray(time, dtype=np.float64)


def earth_state(mjd_tdb: Time | ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Heliocentric state of the Earth's centre.

    Parameters
    ----------
    mjd_tdb : array_like or `~astropy.time.Time`
        Epochs, any shape, MJD TDB.

    Returns
    -------
    position, velocity : ndarray
        ICRS axes, shape of the epochs + ``(3,)`` [au], [au/d].

    Raises
    ------
    EphemerisError
        If an epoch is not finite or outside ``EPHEMERIS_SPAN``.

    Warns
    -----
    NeoRangingWarning
        Once, for epochs outside ``DE440_SPAN``, where the error is up to 15 km and 5 mm/s.
    """
    epoch = _epochs(mjd_tdb)
    position, velocity = _EARTH.with_rate(epoch.ravel())
    if _outside(epoch, DE440_SPAN):
        _warn_once(
            "some epochs lie outside 1950-2060, the span of the DE440 excerpt: there the Earth "
            "comes from astropy's built-in series, in error by up to 15 km (0.02 arcsec at 1 au, "
            "2 arcsec at 0.01 au)"
        )
    shape = (*epoch.shape, 3)
    return position.reshape(shape), velocity.reshape(shape)


def earth_posvel(time: Time) -> tuple[u.Quantity, u.Quantity]:
    """Heliocentric state of the Earth's centre, with units.

    Parameters
    ----------
    time : `~astropy.time.Time`
        Any scale and shape.

    Returns
    -------
    position, velocity : `~astropy.units.Quantity`
        ICRS axes, shape of the times + ``(3,)``, au and au / d. See `earth_state`.
    """
    position, velocity = earth_state(time)
    return position << u.au, velocity << u.au / u.d


def attractors(mjd_tdb: ArrayLike, reach: ArrayLike) -> FloatArray:
    """Paths of Earth and Moon as polynomials in time, for `neoranging.core.motion`.

    Parameters
    ----------
    mjd_tdb : array_like, shape (M,)
        Epochs from which time counts [MJD TDB].
    reach : array_like, shape (M,)
        Largest time from the epoch that matters [d].

    Returns
    -------
    ndarray, shape (M, 2, 3, ATTRACTOR_TERMS)
        Coefficients of the heliocentric positions [au, d], ICRS axes: the Earth, then the Moon.
        They go through the positions at five instants within the reach, or a tenth of a day; half
        a day either side they keep the Earth to a metre and the Moon to 20 m of the series used,
        three days to 2 and 150 km.
    """
    epoch = np.atleast_1d(np.asarray(mjd_tdb, dtype=np.float64))
    unit = np.maximum(np.broadcast_to(np.asarray(reach, dtype=np.float64), epoch.shape), 0.1)
    instants = (epoch[:, None] + unit[:, None] * _NODES).ravel()
    paths = np.empty((len(epoch), ATTRACTOR_TERMS, 2, 3))
    earth = _EARTH(instants)
    paths[:, :, 0] = earth.reshape(-1, ATTRACTOR_TERMS, 3)
    paths[:, :, 1] = (earth + _MOON(instants)).reshape(-1, ATTRACTOR_TERMS, 3)
    coefficients = np.moveaxis(_THROUGH_NODES @ paths.reshape(-1, ATTRACTOR_TERMS, 6), 1, 2)
    coefficients /= (unit[:, None] ** np.arange(ATTRACTOR_TERMS))[:, None]
    return coefficients.reshape(-1, 2, 3, ATTRACTOR_TERMS)


def planet_position(name: str, mjd_tdb: ArrayLike) -> FloatArray:
    """Heliocentric positions of a planet other than the Earth, with its satellites.

    Parameters
    ----------
    name : str
        A name of ``neoranging.constants.GM_PLANETS``.
    mjd_tdb : array_like, shape (M,)
        Epochs [MJD TDB].

    Returns
    -------
    ndarray, shape (M, 3)
        ICRS axes [au]; wrong by 1.5 arcminutes and 3e-4 of the distance at most.

    Raises
    ------
    EphemerisError
        If there is no planet of that name, or it is the Earth.
    """
    if name not in _PLANETS:
        raise EphemerisError(f"no series of a planet {name!r}: choose from {', '.join(_PLANETS)}")
    epoch = np.asarray(mjd_tdb, dtype=np.float64)
    # the bare ufunc returns its status instead of warning of years that are far from ours
    state, _ = erfa.ufunc.plan94(MJD_JD, epoch, _PLANETS[name])
    return np.asarray(state["p"])


def almanac(first: float, last: float) -> Almanac:
    """Paths of Earth and Moon from one epoch to another [MJD TDB], for `neoranging.core.flight`.

    The polynomials keep the Earth to a metre and the Moon to 20 m of the series used.

    Raises
    ------
    EphemerisError
        If an epoch is not finite or outside ``EPHEMERIS_SPAN``.
    """
    from neoranging.core.flight import Almanac

    if not (EPHEMERIS_SPAN[0] <= first <= last < EPHEMERIS_SPAN[1]):
        raise EphemerisError(
            f"an object cannot be followed from MJD {first:.1f} to {last:.1f}: the ephemeris "
            f"reaches from {EPHEMERIS_SPAN[0]:.1f} to {EPHEMERIS_SPAN[1]:.1f} (1800 to 2200)"
        )
    days = np.arange(np.floor(first), np.floor(last) + 1.0)
    return Almanac(float(days[0]), attractors(days + 0.5, 0.5))


def site_state(itrf: ArrayLike, mjd_tdb: Time | ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Geocentric celestial state of Earth-fixed sites, each at its epoch.

    Parameters
    ----------
    itrf : array_like
        Earth-fixed positions, ``(N, 3)`` or one for all epochs ``(3,)`` [m]. A row of NaN (no
        fixed place) gives a row of NaN.
    mjd_tdb : array_like or `~astropy.time.Time`
        Epochs, ``(N,)`` or one for all sites ``()``, MJD TDB.

    Returns
    -------
    position, velocity : ndarray
        GCRS with the axes of the ICRS, ``(N, 3)`` [au], [au/d]; ``(3,)`` for one site and epoch.

    Raises
    ------
    EphemerisError
        If an epoch is not finite or outside ``EPHEMERIS_SPAN``.

    Warns
    -----
    NeoRangingWarning
        Once, for epochs outside the IERS tables: UT1 - UTC, by definition below 0.9 s since 1972,
        is held at its last value, or zero before 1962, which may displace a site by 420 m and
        more.

    Notes
    -----
    Equal to ``EarthLocation.get_gcrs_posvel`` within centimetres where the tables reach.
    """
    from neoranging.core.ephemeris_kernel import turn_sites

    place, epoch = np.asarray(itrf, dtype=np.float64), _epochs(mjd_tdb)
    shape = place.shape
    if shape != (*epoch.shape, 3):
        shape = np.broadcast_shapes(shape, (*epoch.shape, 3))
        place, epoch = np.broadcast_to(place, shape), np.broadcast_to(epoch, shape[:-1])
    # copies: compiled code is another for arrays that are read-only or in another order
    place, epoch = np.array(place, order="C").reshape(-1, 3), np.array(epoch).ravel()
    table = _orientation()
    if _outside(epoch, table.measured):
        first, last = Time(table.measured, format="mjd", scale="tt").to_value("iso", subfmt="date")
        _warn_once(
            f"some epochs lie outside {first} to {last}, the span of the IERS tables: there the "
            "rotation of the Earth is a guess, and a site may be displaced by 420 m or more "
            "(UT1 - UTC below 0.9 s); `pip install -U astropy-iers-data` brings newer tables"
        )
    position, velocity = np.empty_like(place), np.empty_like(place)
    arrays = table.epoch, table.values, place, position, velocity
    core.filling(turn_sites, epoch, (_TDB_TT, _POLE), *arrays)
    return position.reshape(shape), velocity.reshape(shape)


def observer_state(itrf: ArrayLike, mjd_tdb: Time | ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Heliocentric state of Earth-fixed sites, the sum of `earth_state` and `site_state`.

    Parameters
    ----------
    itrf : array_like
        Earth-fixed positions, ``(N, 3)`` or ``(3,)`` [m].
    mjd_tdb : array_like or `~astropy.time.Time`
        Epochs, ``(N,)`` or ``()``, MJD TDB.

    Returns
    -------
    position, velocity : ndarray
        ICRS axes, ``(N, 3)`` [au], [au/d].
    """
    epoch = _epochs(mjd_tdb)
    position, velocity = site_state(itrf, epoch)
    earth, earth_velocity = earth_state(epoch)
    position += earth
    velocity += earth_velocity
    return position, velocity


def observer_posvel(
    time: Time, location: EarthLocation | str | Sequence[str] | StrArray | None = None
) -> tuple[u.Quantity, u.Quantity]:
    """Heliocentric state of observers, with units.

    Parameters
    ----------
    time : `~astropy.time.Time`
        Epochs ``(N,)`` or one, any scale.
    location : `~astropy.coordinates.EarthLocation`, str, sequence of str, optional
        Place or MPC code, one or ``(N,)``; None is the geocentre.

    Returns
    -------
    position, velocity : `~astropy.units.Quantity`
        ICRS axes, ``(N, 3)``, au and au / d.

    Raises
    ------
    UnknownStationError
        If a code is unknown or has no fixed place.
    EphemerisError
        If an epoch is not finite or outside ``EPHEMERIS_SPAN``.
    """
    if location is None:
        return earth_posvel(time)
    position, velocity = observer_state(_itrf(location), time)
    return position << u.au, velocity << u.au / u.d


def _itrf(location: EarthLocation | str | Sequence[str] | StrArray) -> FloatArray:
    """Earth-fixed positions ``(..., 3)`` [m]."""
    if hasattr(location, "geocentric"):  # an EarthLocation
        return np.stack([axis.to_value(u.m) for axis in location.geocentric], axis=-1)
    from neoranging.observations import observatories
    from neoranging.observations.stations import require_codes

    codes = require_codes(location)
    itrf = observatories.itrf_positions(codes)
    for code in np.unique(codes[np.isnan(itrf).any(axis=-1)]):
        _ = observatories.observatory(code).location  # raises with the reason and the remedy
    return itrf


def zenith(
    time: Time, location: EarthLocation | str | Sequence[str] | StrArray | None = None
) -> FloatArray:
    """Unit vectors to the geodetic zenith of observers, ICRS axes, shape of the epochs + ``(3,)``.

    Takes what `observer_posvel` takes. NaN for the geocentre, which has none.
    """
    epoch = tdb_mjd(time)
    itrf = np.zeros(3) if location is None else _itrf(location)
    from astropy.coordinates import EarthLocation

    site = EarthLocation.from_geocentric(*np.moveaxis(itrf, -1, 0), unit=u.m)
    lon, lat = (angle.to_value(u.rad) for angle in (site.lon, site.lat))
    normal = np.stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)], axis=-1)
    normal = np.where(np.all(itrf == 0.0, axis=-1, keepdims=True), np.nan, normal)
    # the normal turns with the Earth as a site does that lies one au along it
    up, _ = site_state(normal * AU_M, epoch)
    return np.asarray(np.broadcast_to(up, (*np.shape(epoch), 3)))


def save_cache(path: str | os.PathLike[str]) -> None:
    """Write the series filled so far to a file that `load_cache` reads.

    Parameters
    ----------
    path : path-like
        The file, by custom ``.pth``: a dictionary of tensors, readable by
        ``torch.load(path, weights_only=True)``; replaced in one step if it exists.
    """
    from neoranging.ephemeris import cache

    cache.save(Path(path), [_EARTH], KERNEL.name)


def load_cache(path: str | os.PathLike[str]) -> int:
    """Take over the series of a file that `save_cache` wrote.

    Parameters
    ----------
    path : path-like
        The file. Nothing but tensors, numbers and text is accepted from it.

    Returns
    -------
    int
        Number of cells (of 8 days) in the file, over all series. What is filled already stays.

    Raises
    ------
    EphemerisError
        If the file is damaged, is something else, or belongs to another version.
    OSError
        If it cannot be opened.
    """
    from neoranging.ephemeris import cache

    return cache.load(Path(path), [_EARTH], KERNEL.name)
