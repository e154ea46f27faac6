"""From observations to arcs: selection, triplet, rates, quality filter; every drop counted."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

import numpy as np

from neoranging import ephemeris
from neoranging.constants import ARCSEC, MJD_JD
from neoranging.core.arcs import Arcs, visits
from neoranging.core.attributable import three_point
from neoranging.exceptions import DatasetError
from neoranging.lab.sets.schema import ArcTable
from neoranging.observations import observatories
from neoranging.observations.bands import visual
from neoranging.read import read_tracklets
from neoranging.records import Account, RecordCount, Rejections
from neoranging.tracklet import TrackletSet
from neoranging.typing import FloatArray, IntArray, StrArray

LEAST_MOTION_RAD_D: Final = 1e-4
"""Speed on the sky that an arc has to exceed [rad/d]; 0.0057 deg/d, as in the paper."""

LEAST_SPAN_D: Final = 1e-3
"""Time from first to last observation that an arc has to exceed [d]; 1.44 minutes, as in the
paper."""

_CORE_COLUMNS: Final = ("t_mjd_tdb", "ra_rad", "dec_rad", "sigma_ra_rad", "sigma_dec_rad")

OBSERVED: Final = (*_CORE_COLUMNS, "station", "stations")
"""Columns that `to_core` needs: directions, times, and the stations they were observed from."""


def form_arcs(
    source: Any,
    *,
    group_by: str | Collection[str] = ("night", "station"),
    least_motion: float = LEAST_MOTION_RAD_D,
    least_span: float = LEAST_SPAN_D,
    **options: Any,
) -> tuple[ArcTable, Account]:
    """Arcs of observations in whatever form.

    Optical observations from the ground are taken, without those that the source marks as replaced
    or as rejected from the orbit.

    Parameters
    ----------
    source : TrackletSet, path-like, Table, DataFrame, or a list of paths or tables
        Anything that `neoranging.read_tracklets` reads, or tracklets formed already.
    group_by : {"night", "station"} or ("night", "station")
        What belongs together besides the object; see `neoranging.read_tracklets`. The literature on
        this catalogue joins the stations of a night.
    least_motion, least_span : float
        Speed on the sky [rad/d] and length [d] that an arc has to exceed.
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
    table, counts = ArcTable.empty(), RecordCount()
    if len(tracklets):
        columns, offsets = tracklets._columns, tracklets._offsets
        first = offsets[:-1]
        mjd_utc = (columns.jd1[first] - MJD_JD) + columns.jd2[first]
        table, counts = make_arcs(
            offsets,
            tracklets._tdb,
            np.radians(columns.ra),
            np.radians(columns.dec),
            sigma_ra=columns.sigma[:, 0] * ARCSEC,
            sigma_dec=columns.sigma[:, 1] * ARCSEC,
            stations=columns.station,
            designation=tracklets.designation,
            night=local_night(mjd_utc, columns.station[first]),
            mag=columns.mag,
            band=columns.band,
            least_motion=least_motion,
            least_span=least_span,
        )
    account = {"arcs": counts}
    if (report := tracklets.report) is not None:
        account = {"observations": RecordCount() + report, **account}
        if report.reading:
            account = {"records": sum(report.reading, RecordCount()), **account}
    return table, Account(account)


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
    least_motion: float = LEAST_MOTION_RAD_D,
    least_span: float = LEAST_SPAN_D,
) -> tuple[ArcTable, RecordCount]:
    """Arcs of plain columns, with triplet and rates, those of poor quality dropped.

    Parameters
    ----------
    offsets : ndarray of int, shape (M + 1,)
        Arc ``k`` owns the observations ``offsets[k]:offsets[k + 1]``, at least one, in order of
        time.
    t, ra, dec, sigma_ra, sigma_dec, stations, mag, band : ndarray, shape (n,)
        Columns of `neoranging.lab.sets.schema.COLUMNS`, one value for each observation; NaN for a
        magnitude that is absent.
    designation, night : ndarray, shape (M,)
        Object, and number of the local night.
    least_motion, least_span : float
        See `form_arcs`.

    Returns
    -------
    table : ArcTable
        The arcs that are used, in the order of ``offsets``.
    counts : RecordCount
        Numbers of arcs that are used, and that are not, by reason.
    """
    median, median_band = _median_magnitude(offsets, mag, band)
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
        mag=median,
        band=median_band,
    )
    m = len(table)
    rejections = Rejections(m)
    rejections.reject(table.counts < 3, "fewer than three observations")
    placeless = ~np.isfinite(observatories.itrf_positions(stations)[:, 0])
    owner = np.repeat(np.arange(m), table.counts)
    rejections.reject(
        np.bincount(owner, placeless, m) > 0, "an observer without a known place on the ground"
    )
    rows = np.flatnonzero(rejections.usable)
    formed = _with_triplet(table.take(rows))
    t1, t2, t3 = (formed[f"t{k}_mjd_tdb"] for k in (1, 2, 3))
    for reason, good in (
        ("two of the three epochs coincide", np.minimum(t2 - t1, t3 - t2) > 0.0),
        (f"no longer than {least_span:g} d", formed["span_d"] > least_span),
        (f"no faster than {least_motion:g} rad/d", formed["proper_motion_rad_d"] > least_motion),
    ):
        bad = np.zeros(m, dtype=bool)
        bad[rows] = ~good
        rejections.reject(bad, reason)
    return formed.take(rejections.usable[rows]), rejections.count


def _with_triplet(table: ArcTable) -> ArcTable:
    """Arcs of three observations or more with their triplets and three-point rates."""
    nowhere = np.empty((int(table.offsets[-1]), 3))
    columns = [*(table[name] for name in _CORE_COLUMNS), nowhere, nowhere]
    arcs = Arcs(table.offsets, *columns)
    t, ra, dec = arcs.t[arcs.triplet], arcs.ra[arcs.triplet], arcs.dec[arcs.triplet]
    with np.errstate(divide="ignore", invalid="ignore"):
        motion = three_point(t, ra, dec)
    triplet = {f"t{k + 1}_mjd_tdb": t[:, k] for k in range(3)}
    triplet |= {f"ra{k + 1}_rad": ra[:, k] for k in range(3)}
    triplet |= {f"dec{k + 1}_rad": dec[:, k] for k in range(3)}
    return table.with_columns(
        **triplet,
        ra_rate_rad_d=motion.ra_rate,
        dec_rate_rad_d=motion.dec_rate,
        proper_motion_rad_d=np.hypot(motion.ra_rate * np.cos(dec[:, 1]), motion.dec_rate),
        span_d=t[:, 2] - t[:, 0],
    )


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
    n_magnitudes = np.bincount(owner, np.isfinite(mag), m).astype(np.int64)
    median = order[offsets[:-1] + np.maximum(n_magnitudes - 1, 0) // 2]
    bands = "" if band is None else np.where(n_magnitudes > 0, band[median], "")
    return mag[median], bands


def local_night(mjd_utc: FloatArray, station: StrArray) -> IntArray:
    """Number of the night, from local noon to noon, that an epoch [MJD UTC] falls in.

    It is ``floor(mjd_utc + east / 360 - 1/2)`` with the east longitude in [-180, 180) deg, the
    modified Julian date of the evening; that of Greenwich where the place is not known.
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
        Place of the observer: the station, or the centre of the Earth instead.

    Raises
    ------
    DatasetError
        If ``origin`` is another, or a column is missing.
    """
    if origin not in {"topocenter", "geocenter"}:
        raise DatasetError(f"origin must be 'topocenter' or 'geocenter', got {origin!r}")
    t = table["t_mjd_tdb"]
    if origin == "topocenter":
        state = ephemeris.observer_state(observatories.itrf_positions(table["stations"]), t)
    else:
        state = ephemeris.earth_state(t)
    columns = [*(table[name] for name in _CORE_COLUMNS), *state]
    columns.append(visits(table.offsets, t, table["stations"]))
    columns.append(np.repeat(visual(table["mag"].astype(np.float64), table["band"]), table.counts))
    return Arcs(table.offsets, *columns)
