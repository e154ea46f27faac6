"""Records of columns, a row for each arc: rows of all columns taken, or joined, at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from neoranging.typing import IntArray

_Record = TypeVar("_Record")


def take(record: _Record, rows: slice | npt.NDArray) -> _Record:
    """Rows of a named tuple or a dataclass of arrays; what is no column stays as it is."""
    columns = {name: getattr(record, name) for name in _names(record)}
    return _replaced(
        record,
        {
            name: column[rows] if isinstance(column, np.ndarray) else take(column, rows)
            for name, column in columns.items()
            if isinstance(column, np.ndarray) or _names(column)
        },
    )


def join(records: Sequence[_Record]) -> _Record:
    """Rows of several records, one after the other; what is no column is that of the first."""
    columns = {name: [getattr(each, name) for each in records] for name in _names(records[0])}
    return _replaced(
        records[0],
        {
            name: np.concatenate(parts) if isinstance(parts[0], np.ndarray) else join(parts)
            for name, parts in columns.items()
            if isinstance(parts[0], np.ndarray) or _names(parts[0])
        },
    )


def gather(records: Iterable[_Record], n: int) -> _Record:
    """Rows of consecutive records, n in all, copied as they come: few are held at a time.

    What is no column is that of the first record.
    """
    total, begin = None, 0
    for record in records:
        if total is None:
            total = _room(record, n)
        begin += _copy(record, total, begin)
    if total is None:
        raise ValueError("no records to gather: even of no rows there has to be one")
    return total


def _room(record: _Record, n: int) -> _Record:
    """Record of the same columns with n rows, of no values yet."""
    room = {}
    for name in _names(record):
        column = getattr(record, name)
        if isinstance(column, np.ndarray):
            room[name] = np.empty((n, *column.shape[1:]), dtype=column.dtype)
        elif _names(column):
            room[name] = _room(column, n)
    return _replaced(record, room)


def _copy(record: Any, total: Any, begin: int) -> int:
    """Number of rows copied from a record into those of ``total`` from ``begin`` on."""
    n = 0
    for name in _names(record):
        column = getattr(record, name)
        if isinstance(column, np.ndarray):
            n = len(column)
            getattr(total, name)[begin : begin + n] = column
        elif _names(column):
            n = _copy(column, getattr(total, name), begin)
    return n


def ragged_rows(starts: IntArray, counts: IntArray) -> IntArray:
    """Rows of runs that begin at ``starts`` and are ``counts`` long, one run after the other."""
    return np.arange(counts.sum()) + np.repeat(starts - np.cumsum(counts) + counts, counts)


def _names(record: Any) -> tuple[str, ...]:
    """Fields of a record; none of anything else."""
    if is_dataclass(record):
        return tuple(field.name for field in fields(record))
    return getattr(record, "_fields", ())


def _replaced(record: Any, columns: dict[str, Any]) -> Any:
    if hasattr(record, "_replace"):
        return record._replace(**columns)
    return replace(record, **columns)
