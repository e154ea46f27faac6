"""Columns of a table, whatever holds it: in memory or in a file."""

from __future__ import annotations

import io
import itertools
import json
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from neoranging.exceptions import MissingDependencyError, ObservationFormatError
from neoranging.observations.field_names import name_columns
from neoranging.observations.wrapping import API_ANSWERS

__all__ = ["Container", "binary_format", "file_format", "from_bytes", "from_memory", "is_table"]

_SEPARATORS: Final = (",", ";", "\t", "|")
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
    kinds = ("colnames", "to_pandas", "__arrow_c_stream__")
    return any(hasattr(source, name) for name in kinds) or (
        hasattr(source, "columns") and hasattr(source, "to_numpy")
    )


def is_records(source: Sequence[Any]) -> bool:
    """True if a sequence holds rows (mappings of names to single values), not tables."""
    return bool(source) and all(
        isinstance(one, Mapping) and all(np.ndim(value) == 0 for value in one.values())
        for one in source
    )


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
    if hasattr(source, "colnames"):
        return Container({name: source[name] for name in source.colnames})
    if isinstance(source, np.ndarray):
        return Container({name: source[name] for name in source.dtype.names or ()})
    if isinstance(source, Mapping):
        return Container(_equal_lengths(source))
    return Container(_of_frame(_as_frame(source)))


def _as_frame(source: Any) -> Any:
    """DataFrame of pandas."""
    import pandas as pd

    if isinstance(source, pd.DataFrame):
        return source
    if isinstance(source, list | tuple):
        return pd.DataFrame.from_records([dict(row) for row in source])
    if hasattr(source, "__arrow_c_stream__"):
        import pyarrow as pa

        # structures become columns with dotted names, and whole numbers keep all digits
        return pa.table(source).flatten().to_pandas(integer_object_nulls=True)
    if hasattr(source, "to_pandas"):
        return source.to_pandas()
    return pd.DataFrame({name: source[name] for name in source.columns})


def _of_frame(frame: Any) -> dict[str, Any]:
    index = [name for name in frame.index.names if name is not None and name not in frame.columns]
    if name_columns([str(name) for name in index]).columns:
        frame = frame.reset_index()
    return {str(name): frame[name] for name in frame.columns}


def _equal_lengths(source: Mapping[Any, Any]) -> dict[str, Any]:
    """Columns of a mapping; single values stand for all rows."""
    columns = {
        str(name): values
        if hasattr(values, "shape") or hasattr(values, "dtype")
        else _array(values)
        for name, values in source.items()
    }
    lengths = {name: len(values) for name, values in columns.items() if np.ndim(values)}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise ObservationFormatError(
            f"the columns of a table must be equally long, got {listed} values"
        )
    n = next(iter(lengths.values()), 1)
    return {
        name: values if np.ndim(values) else np.repeat(np.atleast_1d(values), n)
        for name, values in columns.items()
    }


def _array(values: Any) -> Any:
    """Array of a list that may have gaps; numbers beside ``None`` stay numbers."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        return np.asarray(values)
    values = list(values)
    return np.array(values, dtype=object) if None in values else np.asarray(values)


# In a file ---------------------------------------------------------------------------------------


def binary_format(content: bytes) -> str:
    """Format of a table that the first bytes of a file tell, "" if they tell none."""
    return next((form for form, starts in _MAGIC.items() if content.startswith(starts)), "")


def file_format(content: bytes, name: str = "") -> str:
    """Format of the table that a file holds.

    Parameters
    ----------
    content : bytes
        As `neoranging.observations.source.read_source` returns it.
    name : str
        Name of the file.

    Returns
    -------
    str
        One of `neoranging.observations.formats.TABLE_FORMATS`, "" if it looks like none.
    """
    if form := binary_format(content):
        return form
    head = content[:4096]
    if b"<VOTABLE" in head:
        return "votable"
    if head.lstrip()[:1] in (b"[", b"{"):
        return "json"
    if b"\0" in head:
        return ""
    header = _header(_decoded(content[:65_536]))
    named = header is not None and _known(header[1]) >= 2
    return "csv" if named or name.lower().endswith((".csv", ".tsv")) else ""


def from_bytes(content: bytes, form: str, source: str = "") -> Container:
    """Columns of a table in a file.

    Parameters
    ----------
    content : bytes
        As `neoranging.observations.source.read_source` returns it.
    form : str
        One of `neoranging.observations.formats.TABLE_FORMATS`.
    source : str
        Name of the file.

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
        raise MissingDependencyError.of(f"files of {form}", error.name or str(error)) from error
    except RecursionError as error:
        raise ObservationFormatError(f"no {form} that is nested within reason") from error
    except (ValueError, OSError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise ObservationFormatError(f"no readable {form} file: {error}") from error
    return Container(result.columns, source, result.first_line)


def _read_csv(content: bytes) -> Container:
    """Text with separators, as text; the line that names columns may follow comments."""
    import pandas as pd

    text = _decoded(content)
    header = _header(text)
    if header is None:
        raise ObservationFormatError("no line of column names with separators")
    line, names, separator = header
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


def _header(text: str) -> tuple[int, list[str], str] | None:
    """Lines up to the data, names of columns and the separator."""
    best: tuple[int, list[str], str] | None = None
    for number, line in enumerate(itertools.islice(io.StringIO(text), _HEADER_LINES), 1):
        stripped = line.lstrip("#").rstrip("\r\n")
        for separator in _SEPARATORS:
            names = [_unquoted(name) for name in stripped.split(separator)]
            if len(names) < 2 or len(set(names)) < len(names):
                continue
            if _known(names) >= 3:
                return number, names, separator
            if best is None and not line.startswith("#"):
                best = number, names, separator
    return best


def _known(header: Any) -> int:
    """Number of columns of an observation among names."""
    return len(name_columns(header).columns)


def _unquoted(name: str) -> str:
    return name.strip().strip('"').strip()


def _decoded(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content.decode("latin-1")


def _read_json(content: bytes) -> Container:
    """Records, columns, or records in an answer of the Observations API."""
    value = json.loads(_decoded(content))
    answer = value[0] if isinstance(value, list) and len(value) == 1 else value
    if isinstance(answer, Mapping):
        value = next((answer[key] for key in API_ANSWERS if key in answer), value)
    if isinstance(value, Mapping):
        inner = [one for one in value.values() if isinstance(one, list) and is_records(one)]
        if len(inner) == 1:  # {"observations": [{...}, ...]}
            value = inner[0]
        elif all(isinstance(one, Mapping) for one in value.values()):  # pandas' to_json
            value = {name: list(one.values()) for name, one in value.items()}
    if isinstance(value, list) and not value:
        return Container()
    if not is_table(value):
        raise ObservationFormatError(
            "its JSON holds neither a list of records nor columns; take out the part that does"
        )
    return from_memory(value)


def _read_parquet(content: bytes) -> Container:
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise MissingDependencyError.of("files of Parquet", "pyarrow", "data") from error
    return from_memory(parquet.read_table(io.BytesIO(content)))


def _read_feather(content: bytes) -> Container:
    try:
        from pyarrow import feather
    except ImportError as error:
        raise MissingDependencyError.of("files of Feather", "pyarrow", "data") from error
    return from_memory(feather.read_table(io.BytesIO(content)))


def _read_fits(content: bytes) -> Container:
    from astropy.io import fits
    from astropy.table import Table

    with fits.open(io.BytesIO(content)) as hdus:
        tables = [
            i for i, hdu in enumerate(hdus) if isinstance(hdu, fits.BinTableHDU | fits.TableHDU)
        ]
        if not tables:
            raise ObservationFormatError("its FITS extensions hold no table")
        return from_memory(Table.read(hdus, hdu=tables[0], format="fits"))


def _read_astropy(form: str) -> Callable[[bytes], Container]:
    def read(content: bytes) -> Container:
        from astropy.table import Table

        return from_memory(Table.read(io.BytesIO(content), format=form))

    return read


def _read_hdf5(content: bytes) -> Container:
    """The first table, as astropy or layup (by h5py) or as pandas (by PyTables) writes it."""
    try:
        import h5py
    except ImportError as error:
        raise MissingDependencyError.of(
            "files of HDF5", "h5py", instead="store the table as Parquet"
        ) from error
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
    "ecsv": _read_astropy("ascii.ecsv"),
    "parquet": _read_parquet,
    "feather": _read_feather,
    "fits": _read_fits,
    "votable": _read_astropy("votable"),
    "hdf5": _read_hdf5,
    "json": _read_json,
}
