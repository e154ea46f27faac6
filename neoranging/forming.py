"""From observations, in whatever form, to tracklets: the reading of files and tables."""

from __future__ import annotations

import io
import os
from collections.abc import Collection
from typing import Any

import numpy as np
import numpy.typing as npt
from astropy import units as u
from astropy.io.registry import IORegistryError
from astropy.table import QTable, Table
from astropy.time import Time

from neoranging.arguments import unmasked, values_in
from neoranging.constants import AU_KM, MJD_JD
from neoranging.exceptions import ObservationFormatError
from neoranging.grouping import Observations, group_by_identity
from neoranging.observations import observatories
from neoranging.observations.columns import DEFAULT_SIGMA, Columns
from neoranging.observations.formats import FORMATS
from neoranging.tracklet import TrackletSet

__all__ = ["read_tracklets"]

KINDS = ("ground", "roving", "space")
GROUPS = ("night", "station")
FIRST_JD = 1e6  # as MJD in the year 4596, as Julian date long before any astrometry


def read_tracklets(
    source: Any,
    *,
    format: str | None = None,  # noqa: A002 (the name astropy's readers use)
    group_by: str | Collection[str] = ("night", "station"),
    kinds: Collection[str] = KINDS,
    selected_only: bool = True,
    **options: Any,
) -> TrackletSet:
    """Form the tracklets of a file or a table.

    Parameters
    ----------
    source : path-like, open file, str, Table, DataFrame, or a list of them
        Observation files (MPC 80-column, ADES PSV or XML, OrbFit ``.rwo``; plain or gzipped) or
        the text of one, tables with the columns of the observation table, or a `pandas.DataFrame`
        with plain columns ``obstime`` (UTC; ISO text, datetime or MJD), ``ra``, ``dec`` [deg],
        ``station``, ``designation`` or ``tracklet`` (an id of your own), and optionally
        ``sigma_ra``, ``sigma_dec`` [arcsec], ``mag``, ``band``.
    format : str, optional
        One of ``mpc.obs80``, ``ades.psv``, ``ades.xml``, ``orbfit.rwo``; recognised when left out.
    group_by : {"night", "station"} or ("night", "station")
        What belongs together besides the object, or the tracklet id where there is one. A night
        runs from local noon to noon; observers without a local noon (spacecraft, unknown places)
        have runs of observations instead, divided at pauses of more than 12 hours. Nights are
        always kept apart, so that ``"station"`` alone means both. Keeping stations apart is the
        default: their timing errors and parallax differ.
    kinds : collection of {"ground", "roving", "space"}
        Observers to take.
    selected_only : bool
        Leave out observations that an ``.rwo`` file marks as rejected from its orbit.
    **options
        For the reader of files: ``default_sigma``; tables have columns instead.

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
    sources = source if isinstance(source, (list, tuple)) else [source]
    if not sources:
        raise ObservationFormatError("expected at least one file or table, got an empty list")
    tables = [_table(one, format, options) for one in sources]
    reports = tuple(t.meta["report"] for t in tables if "report" in t.meta)
    parts = [_plain(table) for table in tables]
    return TrackletSet(*group_by_identity(_join(parts), reports, group_by, kinds, selected_only))


def _checked(name: str, values: str | Collection[str], allowed: tuple[str, ...]) -> tuple[str, ...]:
    values = (values,) if isinstance(values, str) else tuple(values)
    wrong = set(values) - set(allowed)
    if wrong or not values:
        raise ObservationFormatError(f"{name} takes {allowed}, got {values}")
    return values


def _table(source: Any, format_: str | None, options: dict[str, Any]) -> Table:
    is_table = isinstance(source, Table)
    is_frame = hasattr(source, "columns") and hasattr(source, "to_numpy")
    if not is_table and (isinstance(source, (str, os.PathLike)) or hasattr(source, "read")):
        return _from_file(source, format_, options)
    if not (is_table or is_frame):
        raise ObservationFormatError(
            f"expected a path, an open file, an astropy Table or a pandas DataFrame, got "
            f"{type(source).__name__}"
        )
    if options:
        raise ObservationFormatError(
            f"{', '.join(options)}: an option for files, and a {type(source).__name__} was given; "
            "put the uncertainties into its columns sigma_ra and sigma_dec [arcsec]"
        )
    return _from_frame(source) if is_frame else source


def _from_file(source: Any, format_: str | None, options: dict[str, Any]) -> QTable:
    if format_ not in (None, *FORMATS):
        raise ObservationFormatError(
            f"format must be one of {', '.join(FORMATS)}, or left out, got {format_!r}"
        )
    if isinstance(source, io.TextIOBase):
        source = source.read()
    if isinstance(source, str) and "\n" in source:  # not a path; all identifiers take bytes
        source = io.BytesIO(source.encode())
    elif isinstance(source, (str, os.PathLike)) and os.path.isdir(source):
        raise ObservationFormatError(f"{source} is a folder; give a list of the files in it")
    try:
        return QTable.read(source, format=format_, **options)
    except IORegistryError as error:
        raise ObservationFormatError(
            f"{source} is no observation file of a known format: see that it is MPC 80-column, "
            f"ADES or .rwo, or name its format= ({', '.join(FORMATS)})"
        ) from error
    except TypeError as error:
        unknown = [name for name in options if repr(name) in str(error)]
        if not unknown:
            raise
        raise ObservationFormatError(
            f"the readers of observation files have no option {', '.join(unknown)}; what they take "
            "is default_sigma, the error of positions that carry none [arcsec]"
        ) from error


def _from_frame(frame: Any) -> QTable:
    """Observation table of a DataFrame with plain columns."""
    _require(frame.columns, ("obstime", "ra", "dec", "station"), "DataFrame")
    units = {"ra": u.deg, "dec": u.deg, "sigma_ra": u.arcsec, "sigma_dec": u.arcsec}
    for name in frame.columns.intersection(list(units)):
        if frame[name].dtype.kind not in "fiu":
            raise ObservationFormatError(
                f"the column {name} must hold numbers [{units[name]}], got {frame[name].iloc[0]!r}:"
                " sexagesimal text becomes degrees with astropy.coordinates.Angle"
            )
    table = QTable({"obstime": _epochs(frame["obstime"])})
    for name in frame.columns.drop("obstime"):
        column = frame[name].to_numpy()
        if name == "station" and column.dtype.kind in "iu":
            # a column of numeric codes lost its leading zeros on the way into the frame
            column = np.strings.zfill(column.astype(np.str_), 3)
        elif column.dtype.kind in "OSUT":
            column = frame[name].fillna("").to_numpy().astype(np.str_)
        table[name] = column << units[name] if name in units else column
    return table


def _epochs(obstime: Any) -> Time:
    """Epochs of a column of a DataFrame: MJD, datetimes of any zone, or text."""
    if hasattr(obstime.dtype, "tz"):
        obstime = obstime.dt.tz_convert("UTC").dt.tz_localize(None)
    values = obstime.to_numpy()
    gaps = int(obstime.isna().sum())
    if gaps:
        raise ObservationFormatError(
            f"{gaps} of {len(values)} epochs in the column obstime are missing: drop these rows"
        )
    if np.issubdtype(values.dtype, np.number):
        if (values > FIRST_JD).any():
            raise ObservationFormatError(
                "the column obstime must hold MJD where it holds numbers, got "
                f"{values.max():.10g}: from a Julian date subtract {MJD_JD}"
            )
        return Time(values.astype(float), format="mjd", scale="utc")
    if np.issubdtype(values.dtype, np.datetime64):
        return Time(values.astype("datetime64[ns]"), format="datetime64", scale="utc")
    try:
        return Time(values.astype(np.str_), scale="utc")
    except ValueError as error:
        raise ObservationFormatError(
            "the column obstime must hold UTC as MJD, datetimes or text all of one form like "
            f"2024-12-27T05:46:00, got text that begins with {values[0]!r}"
        ) from error


def _require(present: Any, needed: tuple[str, ...], what: str) -> None:
    missing = [name for name in needed if name not in present]
    if missing:
        raise ObservationFormatError(
            f"the {what} lacks the column(s) {', '.join(missing)}; it needs at least "
            f"{', '.join(needed)} and has {', '.join(map(str, present))}: rename its columns"
        )


def _plain(table: Table) -> Observations:
    """Strip one observation table."""
    _require(table.colnames, ("obstime", "ra", "dec", "station"), "table")
    n = len(table)
    obstime = table["obstime"]
    if not isinstance(obstime, Time):
        raise ObservationFormatError(
            f"the column obstime must be an astropy Time, got {type(obstime).__name__}"
        )
    if obstime.masked and np.any(obstime.mask):
        raise ObservationFormatError(
            f"{np.sum(obstime.mask)} of {n} epochs in obstime are masked: remove these rows"
        )

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
    return Observations(
        columns,
        column("designation", "").astype(np.str_),
        column("tracklet", "").astype(np.str_),
        column("note2", "").astype(np.str_),
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
            for name in ("designation", "tracklet", "technique", "kind", "selected")
        ),
    )
