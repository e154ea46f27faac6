"""Columns of a table, whatever holds it: in memory or in a file."""

from __future__ import annotations

import csv
import io
import itertools
import json
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import numpy as np
from astropy.table import Row, Table

from neoranging.exceptions import MissingDependencyError, ObservationFormatError
from neoranging.observations.field_names import SCALES, name_columns
from neoranging.observations.source import API_ANSWERS

_SEPARATORS: Final = (",", ";", "\t", "|")
_BLANKS: Final = " "
_HEADER_LINES: Final = 100
"""Lines within which a table of text must name its columns."""

_MAGIC: Final[Mapping[str, tuple[bytes, ...]]] = {
    "parquet": (b"PAR1",),
    "feather": (b"ARROW1", b"FEA1"),
    "fits": (b"SIMPLE  =",),
    "hdf5": (b"\x89HDF\r\n\x1a\n",),
    "ecsv": (b"# %ECSV",),
}


@dataclass(frozen=True)
class Container:
    """Columns of one table.

    Attributes
    ----------
    columns : dict
        Values by name: arrays, masked ones, quantities, times, series.
    source : str or None
        Name of the file, "" for text without one; None for a table in memory.
    first_line : int
        Line of the file (or row of the table) of the first row, counted from 1.
    """

    columns: Mapping[str, Any] = field(default_factory=dict)
    source: str | None = None
    first_line: int = 1


# In memory ---------------------------------------------------------------------------------------


def is_table(source: Any) -> bool:
    """True if an object in memory is a table of any kind."""
    if isinstance(source, Mapping):
        return True
    if isinstance(source, np.ndarray):
        return source.dtype.names is not None
    if isinstance(source, list | tuple):
        return is_records(source)
    if hasattr(source, "to_frame"):  # a Series, which is one column
        return False
    kinds = ("colnames", "to_pandas", "__arrow_c_stream__", "collect_schema")
    return any(hasattr(source, name) for name in kinds) or (
        hasattr(source, "columns") and hasattr(source, "to_numpy")
    )


def is_records(source: Sequence[Any]) -> bool:
    """True if a sequence holds rows (of names and single values), not tables."""
    rows = [_row(one) for one in source]
    return bool(rows) and all(
        row is not None and all(np.ndim(value) == 0 for value in row.values()) for row in rows
    )


def _row(one: Any) -> Mapping[str, Any] | None:
    """Row of a table as a mapping, None for what is no row."""
    if isinstance(one, Mapping):
        return one
    if hasattr(one, "_asdict"):  # a named tuple
        return dict(one._asdict())
    if isinstance(one, Row):
        return {name: one[name] for name in one.colnames}
    if hasattr(one, "to_frame") and hasattr(one, "index"):  # a row of a DataFrame
        return {str(name): value for name, value in one.items()}
    return None


def from_memory(source: Any) -> Container:
    """Columns of a table in memory.

    Parameters
    ----------
    source : Table, DataFrame, structured array, mapping of columns, or sequence of mappings
        DataFrames of other makers (Arrow, polars...) are taken through pandas.

    Raises
    ------
    ObservationFormatError
        If its columns differ in length.
    """
    if hasattr(source, "colnames") and not isinstance(source, Row):
        return Container({name: source[name] for name in source.colnames})
    if isinstance(source, np.ndarray):
        return Container({name: source[name] for name in source.dtype.names or ()})
    if isinstance(source, Mapping):
        return Container(_mapped_columns(source))
    import pandas as pd

    if isinstance(source, Row | list | tuple):
        rows = [source] if isinstance(source, Row) else source
        frame = pd.DataFrame.from_records([dict(_row(one) or {}) for one in rows])
    elif isinstance(source, pd.DataFrame):
        frame = source
    else:
        source = source.collect() if hasattr(source, "collect") else source  # of polars, lazy
        if hasattr(source, "__arrow_c_stream__"):
            frame = _arrow_frame(source)
        elif hasattr(source, "to_pandas"):
            frame = source.to_pandas()
        else:
            frame = pd.DataFrame({name: source[name] for name in source.columns})
    if frame.columns.nlevels > 1:  # one level names the columns
        levels = [frame.columns.get_level_values(i) for i in range(frame.columns.nlevels)]
        frame = frame.set_axis(max(levels, key=_n_recognised), axis="columns")
    index = [name for name in frame.index.names if name is not None and name not in frame.columns]
    if _n_recognised(index):
        frame = frame.reset_index()
    return Container({str(name): frame[name] for name in frame.columns})


def _n_recognised(header: Iterable[Any]) -> int:
    """Number of columns of an observation among names."""
    return len(name_columns([str(name) for name in header]).columns)


def _arrow_frame(source: Any) -> Any:
    """DataFrame of an Arrow table: structures become columns with dotted names."""
    import pyarrow as pa

    table = pa.table(source)
    attributes = {
        key.decode(): value.decode() for key, value in (table.schema.metadata or {}).items()
    }
    frame = table.flatten().to_pandas(integer_object_nulls=True)  # whole numbers keep all digits
    scaled = {
        f"{column}.{part}": f"{column}_{scale}.{part}"
        for column in table.column_names
        if (scale := attributes.get(f"{column}.scale")) in SCALES  # tables of adam_core and THOR
        for part in ("days", "nanos")
    }
    return frame.rename(columns=scaled)


def _mapped_columns(source: Mapping[Any, Any]) -> dict[str, Any]:
    """Columns of a mapping, also in the layouts of ``DataFrame.to_dict`` and ``to_json``."""
    rows = list(source.values())
    if {"columns", "data"} <= set(source) <= {"columns", "index", "data"}:
        lists = map(list, zip(*source["data"], strict=True))
        source = dict(zip(source["columns"], lists, strict=True))
    elif rows and all(isinstance(row, Mapping) for row in rows):
        if _n_recognised(rows[0]) >= 2:  # rows by their index
            source = {name: [row.get(name) for row in rows] for name in rows[0]}
        else:  # columns, each by the index of its rows
            source = {name: list(column.values()) for name, column in source.items()}
    columns: dict[str, Any] = {}
    for name, values in source.items():
        if hasattr(values, "shape") or hasattr(values, "dtype"):
            columns[str(name)] = values
        elif isinstance(values, str) or not isinstance(values, Iterable):
            columns[str(name)] = np.asarray(values)
        else:  # numbers beside None stay numbers
            cells = list(values)
            columns[str(name)] = np.array(cells, dtype=object if None in cells else None)
    lengths = {name: len(values) for name, values in columns.items() if np.ndim(values)}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise ObservationFormatError(
            f"the columns of a table must be equally long, got {listed} values"
        )
    n = next(iter(lengths.values()), 1)
    return {  # single values stand for all rows
        name: values if np.ndim(values) else np.repeat(np.atleast_1d(values), n)
        for name, values in columns.items()
    }


# In a file ---------------------------------------------------------------------------------------


def binary_format(content: bytes) -> str:
    """Format of a table that the first bytes of a file tell, "" if they tell none."""
    return next((form for form, starts in _MAGIC.items() if content.startswith(starts)), "")


def file_format(content: bytes, name: str = "") -> str:
    """Format of the table in a file of that name, "" if it looks like none of TABLE_FORMATS."""
    if form := binary_format(content):
        return form
    head = content[:4096]
    if b"<VOTABLE" in head:
        return "votable"
    if head.lstrip()[:1] in (b"[", b"{"):
        return "json"
    if b"\0" in head:
        return ""
    header = csv_header(_decoded(content[:65_536]))
    named = header is not None and _n_recognised(header[1]) >= 2
    return "csv" if named or name.lower().endswith((".csv", ".tsv")) else ""


def from_bytes(content: bytes, form: str, source: str = "") -> Container:
    """Columns of a table in a file of one of `neoranging.observations.formats.TABLE_FORMATS`.

    Raises
    ------
    ObservationFormatError
        If it is no such file.
    MissingDependencyError
        If a package that reads this format is not installed.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of unusual units and keywords in foreign columns
            result = _READERS[form](content)
    except (ObservationFormatError, MissingDependencyError):
        raise
    except ImportError as error:
        package = (error.name or str(error)).partition(".")[0]
        other = {"h5py": {"instead": "store the table as Parquet"}, "pyarrow": {"extra": "data"}}
        raise MissingDependencyError.of(
            f"files of {form}", package, **other.get(package, {})
        ) from error
    except RecursionError as error:
        raise ObservationFormatError(f"no {form} that is nested within reason") from error
    except (ValueError, OSError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise ObservationFormatError(f"no readable {form} file: {error}") from error
    return Container(result.columns, source, result.first_line)


def _read_csv(content: bytes) -> Container:
    """Text with separators, as text; the line that names columns may follow comments."""
    import pandas as pd

    text = _decoded(content)
    header = csv_header(text)
    if header is None:
        raise ObservationFormatError("no line of column names with separators")
    line, names, separator = header
    if separator == _BLANKS:
        text = _comma_separated(text, line, len(names))
        separator = ","
    try:
        frame = pd.read_csv(
            io.StringIO(text),
            sep=separator,
            names=names,
            skiprows=line,
            dtype=str,
            keep_default_na=False,
            skipinitialspace=True,
            skip_blank_lines=False,
            index_col=False,
            comment=None,
        )
    except (pd.errors.ParserError, pd.errors.EmptyDataError, ValueError) as error:
        reason = str(error).strip()
        raise ObservationFormatError(f"no comma-separated table: {reason}") from error
    frame = frame.fillna("")
    filled = (frame != "").any(axis=1) & ~frame[names[0]].str.startswith("#")
    columns = {name: frame[name].str.strip() for name in names}
    if not filled.all():
        columns = {name: column[filled] for name, column in columns.items()}
        lines = np.flatnonzero(filled.to_numpy()) + line + 1
        return Container({**columns, "line": lines}, first_line=line + 1)
    return Container(columns, first_line=line + 1)


def _comma_separated(text: str, line: int, n: int) -> str:
    """The same table, whose cells were divided by blanks, with commas."""
    lines = io.StringIO(text, newline=None)
    rows = [
        next(csv.reader([text.strip()], delimiter=" ", skipinitialspace=True), [])
        if number > line
        else []
        for number, text in enumerate(lines, 1)
    ]
    if all(not row or (len(row) == n + 1 and row[0].isdigit()) for row in rows):  # with an index
        rows = [row[1:] for row in rows]
    for number, row in enumerate(rows, 1):
        if len(row) not in (0, n) and not row[0].startswith("#"):
            raise ObservationFormatError(
                f"line {number} holds {len(row)} values divided by blanks, and line {line} names "
                f"{n} columns: put values with blanks in them into quotes, or divide all by commas"
            )
    result = io.StringIO()
    csv.writer(result).writerows(rows)
    return result.getvalue()


def csv_header(text: str) -> tuple[int, list[str], str] | None:
    """Lines up to the data, names of columns and the separator."""
    best: tuple[int, list[str], str] | None = None
    lines = io.StringIO(text, newline=None)  # any line end
    for number, line in enumerate(itertools.islice(lines, _HEADER_LINES), 1):
        stripped = line.lstrip("#").rstrip("\n")
        for separator in _SEPARATORS:
            cells = enumerate(stripped.split(separator))
            names = [_unquoted(name) or f"unnamed {i}" for i, name in cells]
            if len(names) < 2 or len(set(names)) < len(names):
                continue
            if _n_recognised(names) >= 3:
                return number, names, separator
            if best is None and not line.startswith("#"):
                best = number, names, separator
        names = [_unquoted(name) for name in stripped.split()]
        if len(set(names)) == len(names) and {"obstime", "ra", "dec"} <= set(
            name_columns(names).columns
        ):
            return number, names, _BLANKS
    return best


def _unquoted(name: str) -> str:
    return name.strip().strip('"').strip()


def _decoded(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content.decode("latin-1")


def _read_json(content: bytes) -> Container:
    """Records, columns, or records in an answer of the Observations API."""
    text = _decoded(content)
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        lines = [line for line in text.splitlines() if line.strip()]
        if len(lines) < 2 or not error.msg.startswith("Extra data"):
            raise
        value = [json.loads(line) for line in lines]  # every line a value of its own
    answer = value[0] if isinstance(value, list) and len(value) == 1 else value
    if isinstance(answer, Mapping):
        value = next((answer[key] for key in API_ANSWERS if key in answer), value)
    if isinstance(value, Mapping):
        inner = [one for one in value.values() if isinstance(one, list) and is_records(one)]
        if len(inner) == 1:  # {"observations": [{...}, ...]}
            value = inner[0]
    if isinstance(value, list) and not value:
        return Container()
    if not is_table(value):
        raise ObservationFormatError(
            "its JSON holds neither a list of records nor columns; take out the part that does"
        )
    return from_memory(value)


def _read_parquet(content: bytes) -> Container:
    from pyarrow import parquet

    table = parquet.read_table(io.BytesIO(content))
    if b"table_meta_yaml" in (table.schema.metadata or {}):  # written by astropy, units and times
        return _read_astropy(content, "parquet")
    return from_memory(table)


def _read_feather(content: bytes) -> Container:
    from pyarrow import feather

    return from_memory(feather.read_table(io.BytesIO(content)))


def _read_fits(content: bytes) -> Container:
    from astropy.io import fits

    with fits.open(io.BytesIO(content)) as hdus:
        tables = [
            i for i, hdu in enumerate(hdus) if isinstance(hdu, fits.BinTableHDU | fits.TableHDU)
        ]
        if not tables:
            raise ObservationFormatError("its FITS extensions hold no table")
        return from_memory(Table.read(hdus, hdu=tables[0], format="fits", astropy_native=True))


def _read_astropy(content: bytes, form: str) -> Container:
    return from_memory(Table.read(io.BytesIO(content), format=form))


def _read_hdf5(content: bytes) -> Container:
    """The first table, as astropy or layup (by h5py) or as pandas (by PyTables) writes it."""
    import h5py

    with h5py.File(io.BytesIO(content), "r") as file:
        table = file.visititems(
            lambda _, item: (
                item[()] if isinstance(item, h5py.Dataset) and item.dtype.names else None
            )
        )
    if table is None:
        raise ObservationFormatError("its HDF5 groups hold no table (structured data set)")
    return from_memory(table)


_READERS: Final[Mapping[str, Callable[[bytes], Container]]] = {
    "csv": _read_csv,
    "ecsv": partial(_read_astropy, form="ascii.ecsv"),
    "parquet": _read_parquet,
    "feather": _read_feather,
    "fits": _read_fits,
    "votable": partial(_read_astropy, form="votable"),
    "hdf5": _read_hdf5,
    "json": _read_json,
}
