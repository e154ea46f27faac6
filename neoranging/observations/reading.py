"""Observations from any source: files of every format, and tables in memory.

A text is of a format if the reader of that format takes it: the recognisers look at lines as the
readers do, however far down the first record stands.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NoReturn

import numpy as np
from astropy import units as u
from astropy.table import QTable
from astropy.time import Time

from neoranging.exceptions import MissingDependencyError, ObservationFormatError
from neoranging.observations.columns import Observations
from neoranging.observations.containers import binary_format, file_format, from_bytes, is_table
from neoranging.observations.formats import FORMATS, TABLE_FORMATS, load
from neoranging.observations.report import ReadReport
from neoranging.observations.source import (
    API_ANSWERS,
    JSON_ADVICE,
    Text,
    TextSource,
    is_html,
    is_json,
    is_text,
    read_text,
)
from neoranging.observations.user_table import user_table

ALL_FORMATS: Final = (*FORMATS, *TABLE_FORMATS)
"""Names of the formats of files that can be read."""

WINDOW: Final = 1 << 18
"""Bytes that are looked at first; the rest only if they do not decide."""

_ORDER: Final = ("ades.xml", "ades.psv", "orbfit.rwo", "mpc.obs80")
"""Formats from the one that is hardest to mistake to the one that is easiest."""

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
    if source and all(isinstance(one, str) for one in source) and _are_lines(source):
        return ["\n".join(line.rstrip("\r\n") for line in source) + "\n"]
    return list(source)


def _are_lines(source: Sequence[str]) -> bool:
    """True for lines of one text, rather than paths or texts of their own."""
    if any(is_text(one) for one in source[:10]):  # never a path, whatever its format
        ends = (one.rstrip("\r\n") for one in source)
        return not any("\n" in one or "\r" in one for one in ends)
    if any(os.path.exists(one) for one in source[:10]):
        return False
    content = "\n".join(source).encode("utf-8", "replace")
    return bool(recognise(content) or file_format(content))


def parse_observations(
    source: Any,
    *,
    format: str | None = None,  # noqa: A002 (the name astropy's readers use)
    scale: str | None = None,
    station: str | None = None,
    default_sigma: Any = None,
) -> Observations:
    """Observations of one source.

    Parameters
    ----------
    source : path-like, open file, str, bytes, or table
        A file, its text or its bytes, or a table of any kind.
    format, scale, station, default_sigma
        As for `neoranging.read_tracklets`.

    Raises
    ------
    ObservationFormatError
        If it holds no observations, or does not say what they mean; names the file.
    MissingDependencyError
        If a package that reads this format is not installed.
    OSError
        If a file cannot be read.
    """
    of_tables = {"scale": scale, "station": station}
    if format not in (None, *ALL_FORMATS):
        raise ObservationFormatError(
            f"format must be one of {', '.join(ALL_FORMATS)}, or left out, got {format!r}"
        )
    if isinstance(source, Observations):
        return source
    if _is_read(source):
        return Observations.from_table(source)
    if _is_answer(source):
        source = json.dumps(source, default=str).encode()
    if is_table(source):
        return user_table(source, default_sigma=default_sigma, **of_tables)
    if not isinstance(source, str | bytes | bytearray | os.PathLike) and not hasattr(
        source, "read"
    ):
        raise ObservationFormatError(
            "expected a path, an open file, text or bytes of one, an astropy Table, a pandas "
            "DataFrame, a structured array, a dict of columns or a list of records, got "
            f"{type(source).__name__}"
        )
    text = read_text(source)
    is_path = isinstance(source, os.PathLike) or (
        isinstance(source, str) and bool(source.strip()) and not is_text(source)
    )
    origin = os.fspath(source) if is_path else text.name
    try:
        return _of_text(text, format, default_sigma, of_tables)
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
    """True for JSON that has been loaded, with a text or a list of records in it."""
    answer = source[0] if isinstance(source, list | tuple) and len(source) == 1 else source
    return isinstance(answer, Mapping) and (
        not set(API_ANSWERS).isdisjoint(answer)
        or (
            bool(answer) and all(isinstance(one, list) and is_table(one) for one in answer.values())
        )
    )


def _of_text(
    text: Text, form: str | None, default_sigma: Any, of_tables: Mapping[str, Any]
) -> Observations:
    content, name = text
    form = form or binary_format(content) or recognise(content) or file_format(content, name)
    if not form:
        refuse(text, ALL_FORMATS)
    if form not in TABLE_FORMATS:
        for option, value in of_tables.items():
            if value is not None:
                raise ObservationFormatError(
                    f"{option} is an option for tables, and records of {form} say it themselves"
                )
        return parse(text, form, default_sigma=default_sigma)
    try:
        container = from_bytes(content, form, name)
        return user_table(container, default_sigma=default_sigma, **of_tables)
    except ObservationFormatError as error:
        if form != "json":
            raise
        raise ObservationFormatError(f"{error}. {JSON_ADVICE}") from error


def parse(text: Text, form: str, **options: Any) -> Observations:
    """Observations of a text in one of `FORMATS`."""
    observations: Observations = load(FORMATS[form].reader)(text, **options)
    return observations


def recognise(content: bytes) -> str | None:
    """Name of the format whose reader takes a text, None if there is none."""
    windows = [content] if len(content) <= WINDOW else [content[:WINDOW], content]
    for window in windows:
        for name in _ORDER:
            if load(FORMATS[name].recogniser)(window):
                return name
    return None


def parse_recognised(source: TextSource, **options: Any) -> Observations:
    """Observations of a text in whichever format of `FORMATS` its content is of."""
    text = read_text(source)
    return parse(text, recognise(text.content) or refuse(text, FORMATS), **options)


def refuse(text: Text, formats: Iterable[str]) -> NoReturn:
    """Raise the error of the reader that comes nearest to taking a text that no recogniser takes.

    ``formats`` are those that it could have had, for the message.
    """
    content = text.content
    none = f"no format of observations is recognised ({', '.join(formats)})"
    if not content.strip():
        raise ObservationFormatError("the content is empty: give a file that holds observations")
    if is_json(content):
        raise ObservationFormatError(f"{none}: {JSON_ADVICE}")
    if is_html(content):
        raise ObservationFormatError(
            f"{none}: this is a page of HTML without records in <pre>; save the records as text"
        )
    if b"\0" in content[:WINDOW]:
        raise ObservationFormatError(f"{none}: it holds zero bytes, which no text does")
    likeness = {name: load(entry.likeness)(content) for name, entry in FORMATS.items()}
    nearest = max(likeness, key=lambda name: likeness[name])
    if likeness[nearest]:
        try:
            parse(Text(content), nearest)
        except ObservationFormatError as error:
            raise ObservationFormatError(f"{none}; nearest is {nearest}: {error}") from error
    first = content.lstrip().split(b"\n", 1)[0][:60].decode("utf-8", "replace")
    raise ObservationFormatError(
        f"{none}: no line looks like a record, the first is {first!r}. Give another file, "
        "name its format, or read it by pandas or astropy.table and give the table"
    )
