"""From observations, in whatever form, to tracklets: grouped by object, night and station."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from astropy import units as u
from astropy.table import QTable

from neoranging.arguments import unmasked, values_in
from neoranging.constants import AU_KM, MJD_JD
from neoranging.exceptions import ObservationFormatError
from neoranging.observations import observatories
from neoranging.observations.columns import DEFAULT_SIGMA, Columns, within_poles
from neoranging.observations.reading import read_observations, separate_sources
from neoranging.observations.report import ReadReport, many
from neoranging.tracklet import TrackletSet

__all__ = ["TrackletReport", "read_tracklets"]

KINDS = ("ground", "roving", "space")
GROUPS = ("night", "station")

INCREDIBLE_SIGMA = 1.0 * u.mas
"""Smaller errors than this no ground-based telescope reaches; reports state them in wrong units."""


@dataclass(frozen=True)
class TrackletReport:
    """What became of every observation that went into tracklets.

    Attributes
    ----------
    n_observations, n_used : int
        Rows of the table, and those that stand in a tracklet.
    dropped : dict of str to int
        Observations left out, by reason; ``n_observations == n_used + sum(dropped.values())``.
    n_tracklets : int
    reading : tuple of ReadReport
        The account of each file that was read before.
    notes : tuple of str
        What was mended in observations that are used.
    """

    n_observations: int
    n_used: int
    n_tracklets: int
    dropped: dict[str, int] = field(default_factory=dict)
    reading: tuple[ReadReport, ...] = ()
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [str(report) for report in self.reading]
        lines.append(
            f"{many(self.n_observations, 'observation')}: {self.n_used} in "
            f"{many(self.n_tracklets, 'tracklet')}"
        )
        lines += [f"  {count:6d} left out: {reason}" for reason, count in self.dropped.items()]
        lines += [f"  note: {note}" for note in self.notes]
        return "\n".join(lines)


def read_tracklets(
    source: Any,
    *,
    format: str | None = None,  # noqa: A002 (the name astropy's readers use)
    scale: str | None = None,
    station: str | None = None,
    group_by: str | Collection[str] = ("night", "station"),
    kinds: Collection[str] = KINDS,
    selected_only: bool = True,
    **options: Any,
) -> TrackletSet:
    """Form the tracklets of a file or a table.

    Parameters
    ----------
    source : path-like, open file, str, bytes, table, or a list of these
        Observation files (MPC 80-column, ADES PSV or XML, OrbFit ``.rwo``; plain or compressed),
        or the text of one; or a table: a file (CSV, ECSV, Parquet, Feather, FITS, VOTable, HDF5,
        JSON), a `~astropy.table.Table`, a DataFrame, a structured array, a dict of columns or a
        list of records. Its columns are ``obstime`` (UTC; `~astropy.time.Time`, ISO text,
        datetime or MJD), ``ra``, ``dec`` [deg], ``station``, and optionally ``sigma_ra``,
        ``sigma_dec`` [arcsec], ``mag``, ``band``, ``designation``, ``tracklet``. The names that
        ADES and the surveys use are known as well.
    format : str, optional
        Of files: ``mpc.obs80``, ``ades.psv``, ``ades.xml``, ``orbfit.rwo``, ``csv``, ``ecsv``,
        ``parquet``, ``feather``, ``fits``, ``votable``, ``hdf5`` or ``json``; recognised when
        left out.
    scale : {"utc", "tai", "tt", "tdb"}, optional
        Time scale of the epochs of a table, where neither a Time nor the name of the column
        (``mjd_tdb``) says it.
    station : str, optional
        MPC code of all rows of a table without a column of stations.
    group_by : {"night", "station"} or ("night", "station")
        What belongs together besides the object. A night runs from local noon to noon; nights are
        always kept apart, so that ``"station"`` alone means both. Keeping stations apart is the
        default: their timing errors and parallax differ. Observations of
        different programme codes of one station are kept apart as well, because the same exposures
        are at times reported under two.
    kinds : collection of {"ground", "roving", "space"}
        Observers to take.
    selected_only : bool
        Leave out observations that an ``.rwo`` file marks as rejected from its orbit.
    **options
        ``default_sigma``, the error of positions that carry none [arcsec].

    Returns
    -------
    TrackletSet
        Ordered by first observation; ``.report`` accounts for every observation.

    Raises
    ------
    ObservationFormatError
        If a file is no observation file, a table lacks a column, or an option is unknown.
    """
    group_by = _checked("group_by", group_by, GROUPS)
    kinds = _checked("kinds", kinds, KINDS)
    sources = separate_sources(source)
    if not sources:
        raise ObservationFormatError("expected at least one file or table, got an empty list")
    tables = [
        read_observations(one, format=format, scale=scale, station=station, **options)
        for one in sources
    ]
    reports = tuple(t.meta["report"] for t in tables if "report" in t.meta)
    parts = [_plain(table) for table in tables]
    return _form(_join(parts), reports, group_by, kinds, selected_only)


@dataclass(frozen=True)
class _Observations:
    """Rows of all sources as plain columns."""

    columns: Columns
    designation: npt.NDArray[np.str_]
    tracklet: npt.NDArray[np.str_]
    """The user's own name of the tracklet, "" where there is none."""
    program: npt.NDArray[np.str_]
    kind: npt.NDArray[np.str_]
    selected: npt.NDArray[np.bool_]


def _checked(name: str, values: str | Collection[str], allowed: tuple[str, ...]) -> tuple[str, ...]:
    values = (values,) if isinstance(values, str) else tuple(values)
    wrong = set(values) - set(allowed)
    if wrong or not values:
        raise ObservationFormatError(f"{name} takes {allowed}, got {values}")
    return values


def _plain(table: QTable) -> _Observations:
    """Strip one observation table."""
    n = len(table)
    obstime = table["obstime"]

    def column(name: str, fill: Any) -> npt.NDArray[Any]:
        return np.asarray(table[name]) if name in table.colnames else np.full(n, fill)

    def quantity(
        name: str, unit: u.UnitBase, shape: tuple[int, ...] = (), fill: Any = np.nan
    ) -> Any:
        if name not in table.colnames:
            return np.full((n, *shape), fill)
        return values_in(f"the column {name}", table[name], unit, ObservationFormatError)

    default = DEFAULT_SIGMA.to_value(u.rad)
    station = column("station", "").astype(np.str_)
    itrf = quantity("observer_itrf", u.m, (3,))
    fixed = np.isnan(itrf[:, 0])
    itrf = np.where(fixed[:, None], observatories.itrf_positions(station), itrf)
    gcrs = quantity("observer_gcrs", u.km, (3,)) / AU_KM
    itrf[np.isfinite(gcrs[:, 0])] = np.nan
    utc = obstime.utc
    columns = Columns(
        np.asarray(utc.jd1),
        np.asarray(utc.jd2),
        quantity("ra", u.rad),
        quantity("dec", u.rad),
        np.stack(
            [quantity(name, u.rad, fill=default) for name in ("sigma_ra", "sigma_dec")], axis=1
        ),
        station,
        itrf,
        gcrs,
        unmasked(table["mag"]) if "mag" in table.colnames else np.full(n, np.nan),
        column("band", "").astype(np.str_),
    )
    return _Observations(
        columns,
        column("designation", "").astype(np.str_),
        column("tracklet", "").astype(np.str_),
        column("program", "").astype(np.str_),
        column("kind", "ground").astype(np.str_),
        column("selected", True).astype(bool),
    )


def _join(parts: list[_Observations]) -> _Observations:
    if len(parts) == 1:
        return parts[0]
    columns = zip(*(part.columns for part in parts), strict=True)
    return _Observations(
        Columns(*map(np.concatenate, columns)),
        *(
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("designation", "tracklet", "program", "kind", "selected")
        ),
    )


def _form(
    observations: _Observations,
    reports: tuple[ReadReport, ...],
    group_by: tuple[str, ...],
    kinds: tuple[str, ...],
    selected_only: bool,
) -> TrackletSet:
    c = observations.columns
    n = len(c.ra)
    dropped: dict[str, int] = {}
    keep = np.ones(n, dtype=bool)

    def drop(reason: str, bad: Any) -> None:
        count = int(np.sum(bad & keep))
        if count:
            dropped[reason] = count
        keep[bad] = False

    drop("observer not of the kinds asked for", ~np.isin(observations.kind, kinds))
    if selected_only:
        drop("rejected from its orbit by the file", ~observations.selected)
    weightless = ~(np.isfinite(c.sigma).all(axis=1) & (c.sigma > 0.0).all(axis=1))
    drop("without position: ra or dec no number", ~(np.isfinite(c.ra) & np.isfinite(c.dec)))
    drop("without position: dec beyond a pole", ~within_poles(c.dec))
    drop("without weight: sigma not positive", weightless)
    c, notes = _with_credible_sigmas(c, observations.kind, keep)
    key = _keys(observations, group_by)
    drop("the same observation again", _repeated(c, key, keep))
    order = np.lexsort((c.jd2, c.jd1, key))
    order = order[keep[order]]
    jd, key = c.jd1[order] + c.jd2[order], key[order]
    starts = np.concatenate([[0], np.nonzero(np.diff(key))[0] + 1, [len(key)]])
    starts = np.unique(starts)
    moving = jd[starts[1:] - 1] > jd[starts[:-1]] if len(key) else np.zeros(0, dtype=bool)
    counts = np.diff(starts)
    lone = np.repeat(~moving, counts)
    if lone.any():
        dropped["alone: no second epoch of that object in that night"] = int(lone.sum())
    order, counts = order[~lone], counts[moving]
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    report = TrackletReport(n, len(order), len(counts), dropped, reports, notes)
    names = observations.designation[order][offsets[:-1]]
    formed = TrackletSet(c.take(order), offsets, names)
    first = formed._columns.jd1 + formed._columns.jd2
    by_time = np.argsort(first[offsets[:-1]], kind="stable") if len(counts) else offsets[:0]
    result = formed._take(by_time)
    result.report = report
    return result


def _repeated(
    c: Columns, key: npt.NDArray[np.int64], used: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_]:
    """Whether a used observation of the same group stands before with the same values.

    Files that overlap bring them; counted twice they would make errors too small.
    """
    import pandas as pd

    rows = np.nonzero(used)[0]
    same = {name: getattr(c, name)[rows] for name in ("station", "jd1", "jd2", "ra", "dec")}
    repeated = np.zeros(len(used), dtype=bool)
    repeated[rows] = pd.DataFrame({"key": key[rows], **same}).duplicated()
    return repeated


def _with_credible_sigmas(
    c: Columns, kind: npt.NDArray[np.str_], used: npt.NDArray[np.bool_]
) -> tuple[Columns, tuple[str, ...]]:
    """Replace sigmas that cannot be meant by the default, and say so."""
    limit = INCREDIBLE_SIGMA.to_value(u.rad)
    wrong = (c.sigma < limit).any(axis=1) & (kind != "space") & used
    if not wrong.any():
        return c, ()
    sigma = np.where(wrong[:, None], DEFAULT_SIGMA.to_value(u.rad), c.sigma)
    note = (
        f"{int(wrong.sum())} observations from the ground state a sigma below "
        f"{INCREDIBLE_SIGMA:g}, probably in wrong units: {DEFAULT_SIGMA:g} is used instead"
    )
    return c._replace(sigma=sigma), (note,)


def _keys(observations: _Observations, group_by: tuple[str, ...]) -> npt.NDArray[np.int64]:
    """Number of the group that each observation belongs to."""
    import pandas as pd

    c = observations.columns
    longitude = observatories.east_longitude(c.station)
    roving = np.isfinite(c.itrf[:, 0])
    longitude = np.where(roving, np.degrees(np.arctan2(c.itrf[:, 1], c.itrf[:, 0])), longitude)
    # spacecraft and unknown places: the night of Greenwich
    longitude = np.where(np.isfinite(longitude), longitude, 0.0)
    longitude = (longitude + 180.0) % 360.0 - 180.0
    mjd = (c.jd1 - MJD_JD) + c.jd2
    night = np.floor(mjd + longitude / 360.0 - 0.5).astype(np.int64)
    columns = [observations.designation, night]
    if "station" in group_by:
        columns += [c.station, observations.program]
    key = np.zeros(len(night), dtype=np.int64)
    for column in columns:
        codes, uniques = pd.factorize(column)
        key = pd.factorize(key * (len(uniques) + 1) + codes)[0].astype(np.int64)
    return key
