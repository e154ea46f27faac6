"""Estimates of tables that are spread over a cluster, as tables of Dask.

`neoranging.streaming.Estimation` does the work of a partition as it does that of a piece of a file.
Neighbouring partitions hand each other the rows of a tracklet that lies across their border.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

from neoranging.arguments import check_level
from neoranging.estimators.registry import get_estimator
from neoranging.exceptions import ObservationFormatError, extra
from neoranging.observations.pieces import columns_needed, first_row_cut
from neoranging.read import GROUPS, checked_words
from neoranging.streaming import Estimation

if TYPE_CHECKING:
    from collections.abc import Collection

    from dask.dataframe import DataFrame
    from pandas import DataFrame as Frame


def estimate_partitions(
    observations: Any,
    method: Any = "gauss",
    *,
    level: float = 0.68,
    scale: str | None = None,
    station: str | None = None,
    group_by: str | Collection[str] = GROUPS,
    default_sigma: Any = None,
    **options: Any,
) -> DataFrame:
    """Estimate the tracklets of a table of Dask, lazily.

    Parameters
    ----------
    observations : dask.dataframe.DataFrame or path-like
        Rows with the columns that `neoranging.read_tracklets` takes of a table, those of a tracklet
        beside each other: in one partition, or at the end of one and the beginning of the next. A
        path is of Parquet: a file, a folder, or a pattern. Rows in another order are brought
        together by ``observations.shuffle("tracklet")`` before.
    method : str, RangingEstimator or type
        As for `neoranging.get_estimator`.
    level : float
        Confidence level of the intervals.
    scale, station, group_by, default_sigma
        As for `neoranging.read_tracklets`.
    **options
        For the estimator, for example ``origin="geocenter"``.

    Returns
    -------
    dask.dataframe.DataFrame
        One row per tracklet in as many partitions, in the order of the input, with the columns that
        ``neoranging estimate --out ranges.parquet`` writes: ``tracklet``, ``designation``,
        ``stations``, ``epoch_utc``, ``n_observations``, ``arc_h``, ``range_au`` and so on to
        ``status``. Nothing is read before it is computed or written.

    Raises
    ------
    MissingDependencyError
        Without the extra ``dask``.
    ObservationFormatError
        If it is no table of Dask; or, when computed, if a partition is empty or holds rows of one
        object alone, so that its neighbours cannot tell where a tracklet ends.

    Examples
    --------
    ::

        from distributed import Client

        with Client("tcp://10.0.0.1:8786"):
            ranges = nr.estimate_partitions("observations/*.parquet", method="gauss")
            ranges.to_parquet("ranges")
    """
    with extra("dask", "tables of Dask"):
        import dask.dataframe as dd
        from dask import delayed
    check_level("confidence_level", level)
    if isinstance(observations, str | os.PathLike):
        observations = dd.read_parquet(os.fspath(observations))
    if not hasattr(observations, "to_delayed"):
        raise ObservationFormatError(
            "observations must be a DataFrame of Dask or a path of Parquet, got "
            f"{type(observations).__name__}: neoranging.read_tracklets takes tables in memory"
        )
    estimation = Estimation(
        get_estimator(method, **options),
        level,
        scale,
        station,
        checked_words("group_by", group_by, GROUPS),
        default_sigma,
    )
    if observations.index.name is not None and columns_needed([observations.index.name]):
        observations = observations.reset_index()
    observations = observations[columns_needed(list(observations.columns))]
    parts = observations.to_delayed()
    last, head, estimate = (delayed(f, pure=False) for f in (_last_row, _head, _estimate))
    ends = [None, *(last(part) for part in parts[:-1])]
    heads = [head(part, end, part is parts[-1]) for part, end in zip(parts, ends, strict=True)]
    shared = delayed(estimation, pure=False)  # a node of its own: it may hold a network
    answers = [
        estimate(shared, number, part, own, following)
        for number, (part, own, following) in enumerate(
            zip(parts, heads, [*heads[1:], None], strict=True)
        )
    ]
    return dd.from_delayed(answers, meta=_answer(estimation, observations._meta))


class _Head(NamedTuple):
    """Rows at the beginning of a partition that belong to the one before."""

    rows: Frame
    is_known: bool
    """False after an empty partition."""
    is_all: bool
    """True if no other row shows that they end here."""


def _last_row(part: Frame) -> Frame:
    return part.iloc[-1:]


def _head(part: Frame, end: Frame | None, is_last: bool) -> _Head:
    """Rows at the beginning of a partition that the last row of the one before joins."""
    import pandas as pd

    if end is None:
        return _Head(part.iloc[:0], True, False)
    if not len(end):
        return _Head(part.iloc[:0], not len(part), False)
    rows = pd.concat([end, part])
    cut = first_row_cut(list(rows.columns), len(rows), lambda row, k: rows.iat[row, k])
    return _Head(rows.iloc[1:cut], True, cut == len(rows) and not is_last)


def _estimate(
    estimation: Estimation, number: int, part: Frame, own: _Head, following: _Head | None
) -> Frame:
    """Estimates of the tracklets that begin in a partition."""
    import pandas as pd

    goes_on = following is not None and following.is_all and len(part)
    if goes_on or not own.is_known:
        other = number + 1 if goes_on else number - 1
        raise ObservationFormatError(
            f"partition {other} is empty, or of one object alone, so that nothing shows where a "
            "tracklet of its neighbours ends: give fewer partitions, as by "
            "observations.repartition(npartitions=...)"
        )
    rows = part.iloc[len(own.rows) :]
    if following is not None:
        rows = pd.concat([rows, following.rows])
    return _answer(estimation, rows)


def _answer(estimation: Estimation, rows: Frame) -> Frame:
    """Estimates of the tracklets of rows; of no rows the columns alone."""
    import pandas as pd

    tracklets, _ = estimation.tracklets(rows)
    return pd.DataFrame(estimation.columns(tracklets)[0])
