"""From observations, in whatever form, to tracklets."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
from astropy import units as u
from astropy.table import QTable

from neoranging.arguments import unmasked, values_in
from neoranging.constants import AU_KM
from neoranging.exceptions import ObservationFormatError
from neoranging.grouping import Observations, group_by_identity
from neoranging.observations import observatories
from neoranging.observations.columns import Columns
from neoranging.observations.reading import read_observations, separate_sources
from neoranging.tracklet import TrackletSet
from neoranging.typing import AnyArray

KINDS = ("ground", "roving", "space")
GROUPS = ("night", "station")


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
        datetime or MJD), ``ra``, ``dec`` [deg], ``station``, ``designation`` or
        ``tracklet`` (an id of your own), and optionally ``sigma_ra``, ``sigma_dec`` [arcsec],
        ``mag``, ``band``. The names that ADES and the surveys use are known as well.
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
        What belongs together besides the object, or the tracklet id where there is one; the
        ``trkSub`` of ADES stands for an object that has no other name. A night
        runs from local noon to noon; observers without a local noon (spacecraft, unknown places)
        have runs of observations instead, divided at pauses of more than 12 hours. Nights are
        always kept apart, so that ``"station"`` alone means both. Keeping stations apart is the
        default: their timing errors and parallax differ.
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
        If a file is no observation file, a table lacks a column, an option is unknown, or no
        observation says which object it is of.
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
    return TrackletSet(*group_by_identity(_join(parts), reports, group_by, kinds, selected_only))


def _checked(name: str, values: str | Collection[str], allowed: tuple[str, ...]) -> tuple[str, ...]:
    values = (values,) if isinstance(values, str) else tuple(values)
    wrong = set(values) - set(allowed)
    if wrong or not values:
        raise ObservationFormatError(f"{name} takes {allowed}, got {values}")
    return values


def _plain(table: QTable) -> Observations:
    """Strip one observation table."""
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

    station = column("station", "").astype(np.str_)
    itrf = quantity("observer_itrf", u.m, (3,))
    fixed = np.isnan(itrf[:, 0])
    itrf = np.where(fixed[:, None], observatories.itrf_positions(station), itrf)
    gcrs = quantity("observer_gcrs", u.km, (3,)) / AU_KM
    itrf[np.isfinite(gcrs[:, 0])] = np.nan
    utc = table["obstime"].utc
    columns = Columns(
        np.asarray(utc.jd1),
        np.asarray(utc.jd2),
        quantity("ra", u.rad),
        quantity("dec", u.rad),
        np.stack([quantity(name, u.rad) for name in ("sigma_ra", "sigma_dec")], axis=1),
        station,
        itrf,
        gcrs,
        unmasked(table["mag"]) if "mag" in table.colnames else np.full(n, np.nan),
        column("band", "").astype(np.str_),
        column("note2", "").astype(np.str_),
    )
    return Observations(
        columns,
        column("designation", "").astype(np.str_),
        column("tracklet", "").astype(np.str_),
        column("trkSub", "").astype(np.str_),
        column("kind", "ground").astype(np.str_),
        column("selected", True).astype(bool),
    )


def _join(parts: list[Observations]) -> Observations:
    if len(parts) == 1:
        return parts[0]
    columns = zip(*(part.columns for part in parts), strict=True)
    return Observations(
        Columns(*map(np.concatenate, columns)),
        *(
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("designation", "tracklet", "submission", "kind", "selected")
        ),
    )
