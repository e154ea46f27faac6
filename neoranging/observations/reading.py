"""Observations from any source: files of every format, and tables in memory."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
from astropy import units as u
from astropy.table import QTable
from astropy.time import Time

from neoranging.exceptions import MissingDependencyError, ObservationFormatError
from neoranging.observations.containers import (
    API_ANSWERS,
    binary_format,
    file_format,
    from_bytes,
    is_table,
)
from neoranging.observations.formats import FORMATS, TABLE_FORMATS, load
from neoranging.observations.recognition import recognise, refuse
from neoranging.observations.report import ReadReport
from neoranging.observations.source import Text, is_text
from neoranging.observations.user_table import user_table
from neoranging.observations.wrapping import JSON_ADVICE, read_text

ALL_FORMATS: Final = (*FORMATS, *TABLE_FORMATS)
"""Names of the formats of files that can be read."""


_OF_READERS: Final = ("obstime", "ra", "dec", "sigma_ra", "sigma_dec", "station", "designation")


def separate_sources(source: Any) -> list[Any]:
    """The sources in what may be one or a list of them.

    A list of records (mappings of names to values) is one table, and a list of lines one text.
    """
    if isinstance(source, Iterator) and not hasattr(source, "read"):
        source = list(source)
    elif isinstance(source, memoryview):
        source = bytes(source)
    elif hasattr(source, "tolist") and np.ndim(source) == 1 and not is_table(source):
        source = source.tolist()  # an array or a Series of lines
    if not isinstance(source, list | tuple) or hasattr(source, "_fields") or is_table(source):
        return [source]
    if (
        source
        and all(isinstance(one, bytes) for one in source)
        and b"\n" not in b"".join(one.rstrip(b"\r\n") for one in source[:10])
    ):
        source = [one.decode("utf-8", "replace") for one in source]
    if _are_lines(source):
        return ["\n".join(line.rstrip("\r\n") for line in source) + "\n"]
    return list(source)


def _are_lines(source: Sequence[Any]) -> bool:
    if not source or not all(isinstance(one, str) for one in source):
        return False
    if any(is_text(one) for one in source[:10]):  # never a path, whatever its format
        return not any(_is_whole(one) for one in source)
    if any(os.path.exists(one) for one in source[:10]):
        return False
    content = "\n".join(source).encode("utf-8", "replace")
    return bool(recognise(content) or file_format(content))


def _is_whole(text: str) -> bool:
    """True for a text of its own: a string with a line end that does not close it."""
    return "\n" in text.rstrip("\r\n") or "\r" in text.rstrip("\r\n")


def read_observations(
    source: Any,
    *,
    format: str | None = None,  # noqa: A002 (the name astropy's readers use)
    scale: str | None = None,
    station: str | None = None,
    **options: Any,
) -> QTable:
    """Read the observations of one source.

    Parameters
    ----------
    source : path-like, open file, str, bytes, or table
        A file, its text or its bytes, or a table of any kind.
    format : str, optional
        One of `ALL_FORMATS`, of files; recognised by the content when left out.
    scale, station
        Of tables; see `neoranging.observations.user_table.user_table`.
    **options
        ``default_sigma``, the error of positions that carry none.

    Returns
    -------
    QTable
        Observation table, with the account of the reading in ``meta["report"]``.

    Raises
    ------
    ObservationFormatError
        If it holds no observations, or does not say what they mean; names the file.
    MissingDependencyError
        If a package that reads this format is not installed.
    OSError
        If a file cannot be read.
    """
    unknown = [name for name in options if name != "default_sigma"]
    if unknown:
        raise ObservationFormatError(
            f"the readers of observations have no option {', '.join(unknown)}; what they take "
            "is default_sigma, the error of positions that carry none [arcsec]"
        )
    if format not in (None, *ALL_FORMATS):
        raise ObservationFormatError(
            f"format must be one of {', '.join(ALL_FORMATS)}, or left out, got {format!r}"
        )
    of_tables: dict[str, Any] = {"scale": scale, "station": station}
    if _is_read(source):
        return source
    if _is_answer(source):
        source = json.dumps(source, default=str).encode()
    if not _is_file(source):
        return user_table(source, **of_tables, **options)
    content, name = read_text(source)
    origin = os.fspath(source) if isinstance(source, os.PathLike) or _is_path(source) else name
    try:
        return _from_content(content, name, format, of_tables, options)
    except (ObservationFormatError, MissingDependencyError) as error:
        if not origin or str(origin) in str(error):
            raise
        raise type(error)(f"{origin}: {error}") from error


def _is_read(source: Any) -> bool:
    """True for a table as a reader leaves it, with all its columns."""
    return (
        isinstance(source, QTable)
        and isinstance(source.meta.get("report"), ReadReport)
        and set(_OF_READERS) <= set(source.colnames)
        and isinstance(source["obstime"], Time)
        and not source["obstime"].masked
        and all(type(source[name]) is u.Quantity for name in _OF_READERS[1:5])
    )


def _is_answer(source: Any) -> bool:
    """Whether a value is JSON that has been loaded, with a text or a list of records in it."""
    answer = source[0] if isinstance(source, list | tuple) and len(source) == 1 else source
    return isinstance(answer, Mapping) and (
        not set(API_ANSWERS).isdisjoint(answer)
        or (
            bool(answer) and all(isinstance(one, list) and is_table(one) for one in answer.values())
        )
    )


def _is_file(source: Any) -> bool:
    if is_table(source):
        return False
    if isinstance(source, str | bytes | bytearray | os.PathLike) or hasattr(source, "read"):
        return True
    raise ObservationFormatError(
        "expected a path, an open file, text or bytes of one, an astropy Table, a pandas "
        "DataFrame, a structured array, a dict of columns or a list of records, got "
        f"{type(source).__name__}"
    )


def _is_path(source: Any) -> bool:
    return isinstance(source, str) and bool(source.strip()) and not is_text(source)


def _from_content(
    content: bytes,
    name: str,
    form: str | None,
    of_tables: Mapping[str, Any],
    options: Mapping[str, Any],
) -> QTable:
    form = form or binary_format(content) or recognise(content) or file_format(content, name)
    if not form:
        refuse(Text(content, name), ALL_FORMATS)
    if form in TABLE_FORMATS:
        return _from_table_file(content, form, name, of_tables, options)
    for option, value in of_tables.items():
        if value is not None:
            raise ObservationFormatError(
                f"{option} is an option for tables, and records of {form} say it themselves"
            )
    table: QTable = load(FORMATS[form].reader)(Text(content, name), **options)
    return table


def _from_table_file(
    content: bytes, form: str, name: str, of_tables: Mapping[str, Any], options: Mapping[str, Any]
) -> QTable:
    try:
        return user_table(from_bytes(content, form, name), **of_tables, **options)
    except ObservationFormatError as error:
        if form != "json":
            raise
        raise ObservationFormatError(f"{error}. {JSON_ADVICE}") from error
