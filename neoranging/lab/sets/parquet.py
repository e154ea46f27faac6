"""One part of a set: an `ArcTable` and its account as a Parquet file."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import numpy as np

from neoranging.display import spreadsheet_cell
from neoranging.exceptions import DatasetError, MissingDependencyError
from neoranging.files import parse_json, replacing
from neoranging.lab.sets.schema import COLUMNS, ArcTable, Column
from neoranging.records import Account

ACCOUNT_KEY: Final = b"neoranging.account"

_TEXTS: Final = [name for name, c in COLUMNS.items() if c.dtype == "str" and not c.per_observation]


def _arrow() -> ModuleType:
    try:
        import pyarrow as pa
        from pyarrow import csv, parquet  # noqa: F401 (reached as attributes)
    except ImportError as error:
        raise MissingDependencyError.of("stored sets of arcs", "pyarrow", "data") from error
    return pa


def write_part(path: Path, table: ArcTable, account: Account) -> None:
    """Write a table with every column of the schema, whole or not at all."""
    pa = _arrow()
    arrays = [_to_arrow(pa, table, name, column) for name, column in COLUMNS.items()]
    fields = [
        pa.field(name, array.type, metadata={"unit": column.unit, "meaning": column.meaning})
        for array, (name, column) in zip(arrays, COLUMNS.items(), strict=True)
    ]
    schema = pa.schema(fields, metadata={ACCOUNT_KEY: json.dumps(account.to_json())})
    with replacing(path) as temporary:
        pa.parquet.write_table(
            pa.Table.from_arrays(arrays, schema=schema),
            temporary,
            compression="zstd",
            use_dictionary=_TEXTS,
            write_page_checksum=True,
        )


def _to_arrow(pa: ModuleType, table: ArcTable, name: str, column: Column) -> Any:
    values = table[name] if name in table or name != "stations" else None
    if not column.per_observation:
        return pa.array(values, type=_arrow_type(pa, column))
    if name != "stations":
        offsets = pa.array(table.offsets, type=pa.int32())
        return pa.ListArray.from_arrays(offsets, pa.array(values))
    # one code for the whole arc stands in `station`
    mixed = table["station"] == ""
    counts = table.counts * mixed
    codes = [] if values is None else values[np.repeat(mixed, table.counts)]
    if values is None and mixed.any():
        raise DatasetError("arcs without a code in 'station' need the column 'stations'")
    return pa.ListArray.from_arrays(
        pa.array(np.concatenate([[0], np.cumsum(counts)]), type=pa.int32()),
        pa.array(codes, type=pa.string()),
        mask=pa.array(~mixed),
    )


def _arrow_type(pa: ModuleType, column: Column) -> Any:
    if column.dtype == "str":
        return pa.string()
    return pa.from_numpy_dtype(np.dtype(column.dtype))


def read_part(path: Path, names: Collection[str]) -> ArcTable:
    """Read some columns of a part."""
    pa = _arrow()
    ragged = [name for name in names if COLUMNS[name].per_observation]
    needed = {*names, "n_obs", *(("station",) if "stations" in ragged else ())}
    try:
        stored = pa.parquet.read_table(
            path,
            columns=[n for n in COLUMNS if n in needed],
            read_dictionary=_TEXTS,
            page_checksum_verification=True,
        )
    except (OSError, ValueError, pa.ArrowException) as error:
        raise DatasetError(f"{path} cannot be read: {error}; make the set anew") from error
    if missing := needed - set(stored.column_names):
        raise DatasetError(f"{path} lacks the column(s) {', '.join(sorted(missing))}")
    plain = {
        name: _to_numpy(stored.column(name), column)
        for name, column in COLUMNS.items()
        if name in needed and name != "stations"
    }
    counts = plain["n_obs"].astype(np.int64)
    table = ArcTable(np.concatenate([[0], np.cumsum(counts)]), plain)
    if "stations" in ragged:
        table = _with_stations(table, stored.column("stations"))
    kept = {name: table.columns[name] for name in names if name in table}
    return ArcTable(table.offsets, kept)


def _to_numpy(stored: Any, column: Column) -> Any:
    if column.per_observation:
        return stored.combine_chunks().flatten().to_numpy()
    if column.dtype == "str":
        # few different texts: spread them by their codes instead of making each anew
        coded = stored.combine_chunks()
        texts = np.array(coded.dictionary.to_pylist() or [""], dtype=np.str_)
        return texts[coded.indices.to_numpy()]
    return stored.to_numpy()


def _with_stations(table: ArcTable, stored: Any) -> ArcTable:
    mixed = table["station"] == ""
    if not mixed.any():
        return table
    codes = table["stations"].astype("U8")
    flat = stored.combine_chunks().flatten().to_numpy(zero_copy_only=False)
    codes[np.repeat(mixed, table.counts)] = flat.astype(np.str_)
    return table.with_columns(stations=codes)


def read_part_account(path: Path) -> tuple[int, Account]:
    """Number of arcs of a part and the account it carries."""
    pa = _arrow()
    try:
        metadata = pa.parquet.read_metadata(path)
        plain = parse_json((metadata.metadata or {}).get(ACCOUNT_KEY, b"{}"))
    except (OSError, ValueError, pa.ArrowException) as error:
        raise DatasetError(f"{path} cannot be read: {error}; delete it and go on") from error
    return metadata.num_rows, Account.from_json(plain)


def append_csv(file: Any, table: ArcTable, names: Collection[str], *, header: bool) -> None:
    """Write columns by arc of a table as CSV, numbers with all their digits, NaN as nothing.

    Text that a spreadsheet takes for a formula has an apostrophe before it, see
    `neoranging.display.spreadsheet_cell`.

    Parameters
    ----------
    file : binary file
    table : ArcTable
    names : collection of str
    header : bool
        Whether the names stand above.
    """
    pa = _arrow()
    arrays = [
        pa.array(_csv_values(table[name]), type=_arrow_type(pa, COLUMNS[name]), from_pandas=True)
        for name in names
    ]
    options = pa.csv.WriteOptions(include_header=header, quoting_style="needed")
    pa.csv.write_csv(pa.Table.from_arrays(arrays, names=list(names)), file, options)


def _csv_values(values: Any) -> Any:
    if values.dtype.kind != "U":
        return values
    texts, where = np.unique(values, return_inverse=True)
    return np.array([spreadsheet_cell(text) for text in texts.tolist()], dtype=np.str_)[where]
