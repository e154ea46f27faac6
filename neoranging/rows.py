"""Rows of tracklets as files hold them: plain columns with units in their names.

In CSV, JSON and Parquet the units stand in the names (``range_au``), and numbers have `DIGITS`
significant digits.
"""

from __future__ import annotations

import io
import json
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neoranging._version import __version__
from neoranging.core.status import RangeStatus
from neoranging.exceptions import ConformalError, NeoRangingWarning, extra
from neoranging.typing import AnyArray, FloatArray, StrArray

if TYPE_CHECKING:
    from astropy.table import QTable, Table
    from astropy.time import Time

    from neoranging.estimate import RangeEstimate
    from neoranging.tracklet import TrackletSet

DIGITS: Final = 10
"""Significant digits in files, beyond what any observation gives."""

_STATUSES: Final = np.array([status.name for status in RangeStatus])
"""Names of the statuses by their codes."""

_EXACT: Final = 22
"""Largest power of ten that a double holds exactly."""


def track_rows(
    tracklets: TrackletSet,
    epoch: Time,
    columns: dict[str, Any],
    meta: dict[str, Any],
    *,
    with_ids: bool | None = None,
) -> QTable:
    """Rows that begin with what identifies each tracklet.

    Parameters
    ----------
    tracklets : TrackletSet
    epoch : Time
        Of each row.
    columns : dict
        Further columns, one value for each tracklet.
    meta : dict
        Plain values that say how the rows were made.
    with_ids : bool, optional
        The column ``tracklet``; by default it is there if any tracklet has an id.

    Returns
    -------
    QTable
        ``tracklet`` (the ids of the observations), ``designation``, ``stations``
        (codes with commas), ``epoch`` in UTC, ``n_observations``, ``arc`` [h], and ``columns``.
    """
    from astropy import units as u
    from astropy.table import QTable
    from astropy.time import Time

    ids = tracklets.tracklet_id
    if with_ids is None:
        with_ids = bool((ids != "").any())
    identity: dict[str, Any] = {"tracklet": ids} if with_ids else {}
    identity |= {
        "designation": tracklets.designation,
        "stations": tracklets.stations,
        "epoch": Time(_isot(epoch.utc), format="isot", scale="utc", precision=3),
        "n_observations": tracklets.counts,
        "arc": tracklets.arc_length.to(u.h),
    }
    return QTable(identity | columns, meta={"neoranging": __version__, **meta})


def estimate_rows(
    tracklets: TrackletSet, result: RangeEstimate, level: float, *, with_ids: bool | None = None
) -> QTable:
    """Rows of the estimates of tracklets, with intervals at a level.

    Warns
    -----
    NeoRangingWarning
        If the calibration is one of a former version, which knows nothing of range-rates.
    """
    low, high = result.interval(level).T
    try:
        rate_low, rate_high = result.interval(level, of="range_rate").T
    except ConformalError as error:
        warnings.warn(
            f"range_rate_low and range_rate_high stay empty: {error}",
            NeoRangingWarning,
            stacklevel=2,
        )
        rate_low = rate_high = float("nan") * result.range_rate
    columns = {
        "range": result.range,
        "range_error": result.range_error,
        "range_rate": result.range_rate,
        "range_rate_error": result.range_rate_error,
        "range_low": low,
        "range_high": high,
        "range_rate_low": rate_low,
        "range_rate_high": rate_high,
        "status": _STATUSES[result._answers.status],
    }
    meta = {"method": result.method, "origin": result.origin, "confidence_level": level}
    # the epoch of an estimate is that of its middle observation, which is in UTC already
    middle = tracklets.arcs("geocenter").triplet[:, 1]
    return track_rows(tracklets, tracklets.obstime[middle], columns, meta, with_ids=with_ids)


def without_mixins(rows: QTable) -> Table:
    """Table of numbers with units, and of text; times as text with the scale in the name."""
    from astropy.table import Table
    from astropy.time import Time

    table = Table(meta=dict(rows.meta))
    for name in rows.colnames:
        column = rows[name]
        if isinstance(column, Time):
            table[f"{name}_{column.scale}"] = _isot(column)
        else:
            table[name] = getattr(column, "value", column)
            table[name].unit = getattr(column, "unit", None)
    return table


def _isot(time: Time) -> StrArray:
    """Times as ISO text to the millisecond; what `Time.isot` gives, ten times as fast."""
    import erfa

    year, month, day, clock = erfa.d2dtf(time.scale.upper(), 3, time.jd1, time.jd2)
    months = (year - 1970).astype("datetime64[Y]").astype("datetime64[M]") + (month - 1)
    days = months.astype("datetime64[D]") + (day - 1)
    seconds = clock["h"] * 3600 + clock["m"] * 60 + np.minimum(clock["s"], 59)
    instant = days.astype("datetime64[ms]") + (seconds * 1000 + clock["f"])
    text = np.datetime_as_string(instant)
    leap = np.flatnonzero(clock["s"] == 60)  # seconds that datetimes do not have
    for k in leap.tolist():
        text[k] = text[k][:17] + "60" + text[k][19:]
    return text


def plain_columns(rows: QTable) -> dict[str, AnyArray]:
    """Columns as plain arrays, with the unit in the name."""
    columns: dict[str, AnyArray] = {}
    for name, column in without_mixins(rows).columns.items():
        values, suffix = np.asarray(column), ""
        if values.dtype.kind == "f":
            values = rounded(values)
            if column.unit:
                suffix = "_" + column.unit.to_string("generic").replace(" / ", "_").lower()
        columns[name + suffix] = values
    return columns


def rounded(values: FloatArray) -> FloatArray:
    """Numbers rounded to `DIGITS` significant digits: the nearest to what these digits say."""
    with np.errstate(all="ignore"):
        place = DIGITS - 1 - np.floor(np.log10(np.abs(values)))
        inside = np.abs(place) <= _EXACT
        power = 10.0 ** np.where(inside, np.abs(place), 0.0)
        # one operation on exact numbers rounds once
        up, down = np.rint(values * power) / power, np.rint(values / power) * power
    result = np.where(inside, np.where(place >= 0, up, down), values)
    for k in np.flatnonzero(~inside & np.isfinite(values) & (values != 0.0)).tolist():
        result[k] = float(f"{values[k]:.{DIGITS}g}")
    return result


def arrow_of(columns: Mapping[str, AnyArray], meta: Mapping[str, Any]) -> Any:
    """Table of Arrow of plain columns; ``meta`` as JSON in its schema.

    Raises
    ------
    MissingDependencyError
        Without pyarrow, of the extra ``data``.
    """
    with extra("data", "files of Parquet", "take another format"):
        import pyarrow as pa
    texts = {name: json.dumps(value) for name, value in meta.items()}
    return pa.table(dict(columns)).replace_schema_metadata(texts)


def parquet_of(rows: QTable) -> bytes:
    """Rows as the content of a file of Parquet."""
    table = arrow_of(plain_columns(rows), rows.meta)
    from pyarrow import parquet

    file = io.BytesIO()
    parquet.write_table(table, file)
    return file.getvalue()
