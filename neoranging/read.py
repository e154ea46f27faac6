"""From observations, in whatever form, to tracklets."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from neoranging.exceptions import ObservationFormatError
from neoranging.grouping import group_by_identity
from neoranging.observations.reading import parse_observations, separate_sources
from neoranging.tracklet import TrackletSet

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
    default_sigma: Any = None,
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
    default_sigma : float, Quantity or mapping, optional
        Error of positions that carry none [arcsec if a plain number], or one for each station.

    Returns
    -------
    TrackletSet
        Ordered by first observation; ``.report`` accounts for every observation.

    Raises
    ------
    ObservationFormatError
        If a file is no observation file, a table lacks a column, or no observation
        says which object it is of.
    """
    group_by = checked_words("group_by", group_by, GROUPS)
    kinds = checked_words("kinds", kinds, KINDS)
    sources = separate_sources(source)
    if not sources:
        raise ObservationFormatError("expected at least one file or table, got an empty list")
    parts = [
        parse_observations(
            one, format=format, scale=scale, station=station, default_sigma=default_sigma
        )
        for one in sources
    ]
    return TrackletSet(*group_by_identity(parts, group_by, kinds, selected_only)[0])


def checked_words(
    name: str, values: str | Collection[str], allowed: tuple[str, ...]
) -> tuple[str, ...]:
    """Words of an option, each of those that are allowed."""
    values = (values,) if isinstance(values, str) else tuple(values)
    wrong = set(values) - set(allowed)
    if wrong or not values:
        raise ObservationFormatError(f"{name} takes {allowed}, got {values}")
    return values
