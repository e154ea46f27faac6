"""From observations to arcs: selection, triplet, rates, quality filter; every drop counted."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final, NamedTuple

import numpy as np

from neoranging import ephemeris
from neoranging.constants import MJD_JD
from neoranging.core.arcs import Arcs
from neoranging.core.attributable import three_point
from neoranging.exceptions import DatasetError
from neoranging.lab.sets.schema import ArcTable
from neoranging.observations import observatories
from neoranging.read import read_tracklets
from neoranging.records import Account, RecordCount, Rejections
from neoranging.tracklet import TrackletSet
from neoranging.typing import BoolArray, FloatArray, IntArray, StrArray


class Quality(NamedTuple):
    """What an arc has to exceed to be used."""

    proper_motion: float
    """Speed on the sky [rad/d]."""
    span: float
    """Time from the first to the last observation [d]."""


QUALITY: Final = Quality(proper_motion=1e-4, span=1e-3)
"""Limits of the paper: 0.0057 deg/d and 1.44 minutes."""

_CORE_COLUMNS: Final = ("t_mjd_tdb", "ra_rad", "dec_rad", "sigma_ra_rad", "sigma_dec_rad")

OBSERVED: Final = (*_CORE_COLUMNS, "station", "stations")
"""Columns that `to_core` needs: what was observed, and from where."""


def form_arcs(
    source: Any,
    *,
    group_by: str | Collection[str] = ("night", "station"),
    quality: Quality = QUALITY,
    **options: Any,
) -> tuple[ArcTable, Account]:
    """Arcs of observations in whatever form.

    Optical observations from the ground are taken, without those that the source marks as replaced
    or as rejected from the orbit.

    Parameters
    ----------
    source : TrackletSet, path-like, Table, DataFrame, or a list of paths or tables
        What `neoranging.read_tracklets` reads, or tracklets formed already.
    group_by : {"night", "station"} or ("night", "station")
        What belongs together besides the object; see `neoranging.read_tracklets`. The literature on
        this catalogue joins the stations of a night.
    quality : Quality
        Limits below which arcs are dropped.
    **options
        For the reader.

    Returns
    -------
    table : ArcTable
        Arcs without truth, in order of time.
    account : Account
        Of ``"records"`` of files, ``"observations"`` and ``"arcs"``.
    """
    tracklets = source
    if not isinstance(source, TrackletSet):
        tracklets = read_tracklets(source, group_by=group_by, kinds=("ground",), **options)
    table, counts = _from_tracklets(tracklets, quality)
    account = {"arcs": counts}
    if (report := tracklets.report) is not None:
        account = {"observations": RecordCount() + report, **account}
        if report.reading:
            account = {"records": sum(report.reading, RecordCount()), **account}
    return table, Account(account)


def _from_tracklets(tracklets: TrackletSet, quality: Quality) -> tuple[ArcTable, RecordCount]:
    if not len(tracklets):
        return ArcTable.empty(), RecordCount()
    columns, offsets = tracklets._columns, tracklets._offsets
    first = offsets[:-1]
    mjd_utc = (columns.jd1[first] - MJD_JD) + columns.jd2[first]
    return make_arcs(
        offsets,
        tracklets._tdb,
        columns.ra,
        columns.dec,
        sigma_ra=columns.sigma[:, 0],
        sigma_dec=columns.sigma[:, 1],
        stations=columns.station,
        designation=tracklets.designation,
        night=local_night(mjd_utc, columns.station[first]),
        mag=columns.mag,
        band=columns.band,
        quality=quality,
    )


def make_arcs(
    offsets: IntArray,
    t: FloatArray,
    ra: FloatArray,
    dec: FloatArray,
    *,
    sigma_ra: FloatArray,
    sigma_dec: FloatArray,
    stations: StrArray,
    designation: StrArray,
    night: IntArray,
    mag: FloatArray | None = None,
    band: StrArray | None = None,
    quality: Quality = QUALITY,
) -> tuple[ArcTable, RecordCount]:
    """Arcs of plain columns, with triplet and rates, those of poor quality dropped.

    Parameters
    ----------
    offsets : ndarray of int, shape (M + 1,)
        Arc ``k`` owns the observations ``offsets[k]:offsets[k + 1]``, at least one, in order of
        time.
    t : ndarray, shape (n,)
        Epochs of reception, MJD TDB.
    ra, dec : ndarray, shape (n,)
        ICRS [rad].
    sigma_ra, sigma_dec : ndarray, shape (n,)
        On the sky [rad].
    stations : ndarray of str, shape (n,)
        MPC codes.
    designation, night : ndarray, shape (M,)
        Object, and number of the local night.
    mag : ndarray, shape (n,), optional
        Magnitudes, NaN where absent.
    band : ndarray of str, shape (n,), optional
    quality : Quality

    Returns
    -------
    table : ArcTable
        The arcs that are used, in the order given.
    counts : RecordCount
        How many of the M are used, and why the others are not.
    """
    middle, middle_band = _median_magnitude(offsets, mag, band)
    table = ArcTable.make(
        offsets,
        designation=designation,
        night=night,
        station=_common_station(offsets, stations),
        t_mjd_tdb=t,
        ra_rad=ra,
        dec_rad=dec,
        sigma_ra_rad=sigma_ra,
        sigma_dec_rad=sigma_dec,
        stations=stations,
        mag=middle,
        band=middle_band,
    )
    rejections = Rejections(len(table))
    rejections.reject(table.counts < 3, "fewer than three observations")
    placeless = ~np.isfinite(observatories.itrf_positions(stations)[:, 0])
    owner = np.repeat(np.arange(len(table)), table.counts)
    rejections.reject(
        np.bincount(owner, placeless, len(table)) > 0,
        "an observer without a known place on the ground",
    )
    return _with_quality(table.take(rejections.usable), rejections, quality)


def _with_quality(
    table: ArcTable, rejections: Rejections, quality: Quality
) -> tuple[ArcTable, RecordCount]:
    """Give the usable arcs their triplet, and set those of poor quality aside."""
    rows = _core(table, np.empty((int(table.offsets[-1]), 3))).triplet
    t, ra, dec = (table[name][rows] for name in ("t_mjd_tdb", "ra_rad", "dec_rad"))
    with np.errstate(divide="ignore", invalid="ignore"):
        motion = three_point(t, ra, dec)
    eta = np.hypot(motion.ra_rate * np.cos(dec[:, 1]), motion.dec_rate)
    span = t[:, 2] - t[:, 0]
    kept = np.flatnonzero(rejections.usable)

    def drop(reason: str, bad: BoolArray) -> None:
        everywhere = np.zeros(len(rejections.usable), dtype=bool)
        everywhere[kept[bad]] = True
        rejections.reject(everywhere, reason)

    drop("two of the three epochs coincide", ~(np.diff(t, axis=1).min(axis=1) > 0.0))
    drop(f"no longer than {quality.span:g} d", ~(span > quality.span))
    drop(f"no faster than {quality.proper_motion:g} rad/d", ~(eta > quality.proper_motion))
    triplet = {f"t{k + 1}_mjd_tdb": t[:, k] for k in range(3)}
    triplet |= {f"ra{k + 1}_rad": ra[:, k] for k in range(3)}
    triplet |= {f"dec{k + 1}_rad": dec[:, k] for k in range(3)}
    whole = table.with_columns(
        **triplet,
        ra_rate_rad_d=motion.ra_rate,
        dec_rate_rad_d=motion.dec_rate,
        proper_motion_rad_d=eta,
        span_d=span,
    )
    return whole.take(rejections.usable[kept]), rejections.count


def _common_station(offsets: IntArray, stations: StrArray) -> StrArray:
    """Code of each arc, empty where its observations have several."""
    if len(offsets) == 1:
        return stations[:0]
    first = stations[offsets[:-1]]
    other = stations != np.repeat(first, np.diff(offsets))
    return np.where(np.logical_or.reduceat(other, offsets[:-1]), "", first)


def _median_magnitude(
    offsets: IntArray, mag: FloatArray | None, band: StrArray | None
) -> tuple[Any, Any]:
    """Lower median of the magnitudes of each arc, and the band of that one."""
    if mag is None or len(offsets) == 1:
        return np.nan, ""
    m = len(offsets) - 1
    owner = np.repeat(np.arange(m), np.diff(offsets))
    order = np.lexsort((mag, owner))  # NaN last
    given = np.bincount(owner, np.isfinite(mag), m).astype(np.int64)
    chosen = order[offsets[:-1] + np.maximum(given - 1, 0) // 2]
    bands = "" if band is None else np.where(given > 0, band[chosen], "")
    return mag[chosen], bands


def local_night(mjd_utc: FloatArray, station: StrArray) -> IntArray:
    """Number of the night, from local noon to noon, that an epoch falls in.

    Parameters
    ----------
    mjd_utc : ndarray, shape (N,)
        Modified Julian dates, UTC.
    station : ndarray of str, shape (N,)
        MPC codes; the night of Greenwich where the place is not known.

    Returns
    -------
    ndarray of int64
        ``floor(mjd_utc + east / 360 - 1/2)`` with the east longitude in [-180, 180) deg; the
        evening of that modified Julian date.
    """
    east = np.nan_to_num(observatories.east_longitude(station))
    east = (east + 180.0) % 360.0 - 180.0
    return np.floor(mjd_utc + east / 360.0 - 0.5).astype(np.int64)


def to_core(table: ArcTable, origin: str = "topocenter") -> Arcs:
    """Columns for the numeric core, with the state of the observer at every observation.

    Parameters
    ----------
    table : ArcTable
        With the columns ``OBSERVED``.
    origin : {"topocenter", "geocenter"}
        Where the observer stood, or the centre of the Earth instead.

    Raises
    ------
    DatasetError
        If ``origin`` is another, or a column is missing.
    """
    if origin not in {"topocenter", "geocenter"}:
        raise DatasetError(f"origin must be 'topocenter' or 'geocenter', got {origin!r}")
    t = table["t_mjd_tdb"]
    position, velocity = ephemeris.earth_state(t)
    if origin == "topocenter":
        itrf = observatories.itrf_positions(table["stations"])
        site, site_velocity = ephemeris.site_state(itrf, t)
        position, velocity = position + site, velocity + site_velocity
    return _core(table, position, velocity)


def _core(table: ArcTable, position: FloatArray, velocity: FloatArray | None = None) -> Arcs:
    t, ra, dec, sigma_ra, sigma_dec = (table[name] for name in _CORE_COLUMNS)
    moving = position if velocity is None else velocity
    return Arcs(table.offsets, t, ra, dec, sigma_ra, sigma_dec, position, moving)
