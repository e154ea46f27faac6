"""The formats of observations and their registration with astropy's unified table I/O.

Readers and writers are named as text and loaded at their first use.
"""

from __future__ import annotations

import importlib.abc
import importlib.util
import pkgutil
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Final, NamedTuple

from neoranging.exceptions import NeoRangingError

TABLE_MODULE: Final = "astropy.table"
ANY_FORMAT: Final = "neoranging"
"""Name in astropy's registry under which the format is found out by the content."""

_WINDOW: Final = 1 << 18


class Format(NamedTuple):
    """Where the functions of a format live, as ``"module:function"`` in this package."""

    reader: str  # (source, *, default_sigma) -> Observations
    recogniser: str  # (content: bytes) -> bool
    likeness: str  # (content: bytes) -> int, places that look like records
    writer: str = ""
    extension: str = ""  # by which a file to be written is recognised


FORMATS: Final = {
    "mpc.obs80": Format(
        "obs80.read:parse_obs80",
        "obs80.lines:looks_like_obs80",
        "obs80.lines:count_like_obs80",
        "obs80.write:write_obs80",
        ".obs80",
    ),
    "ades.psv": Format(
        "ades.read:parse_ades_psv",
        "ades.scan:looks_like_psv",
        "ades.scan:count_like_psv",
        "ades.write:write_ades_psv",
        ".psv",
    ),
    "ades.xml": Format(
        "ades.read:parse_ades_xml", "ades.scan:looks_like_xml", "ades.scan:count_like_xml"
    ),
    "orbfit.rwo": Format(
        "rwo.read:parse_rwo",
        "rwo.layout:looks_like_rwo",
        "rwo.layout:count_like_rwo",
        "rwo.write:write_rwo",
        ".rwo",
    ),
}
"""Formats by their name for ``QTable.read(..., format=...)``."""

TABLE_FORMATS: Final = ("csv", "ecsv", "parquet", "feather", "fits", "votable", "hdf5", "json")
"""Formats of tables with plain columns."""


def register_formats() -> None:
    """Make the formats known to `astropy.table`, now or as soon as it is imported.

    Loading astropy's tables takes most of a second, so importing neoranging does not force it;
    whoever asks for a table afterwards finds the formats in place. Calling this again is harmless.
    """
    if TABLE_MODULE in sys.modules:
        _register()
    elif not any(isinstance(finder, _TableImport) for finder in sys.meta_path):
        sys.meta_path.insert(0, _TableImport())


class _TableImport(importlib.abc.MetaPathFinder):
    """Registers the formats right after the first import of astropy's tables."""

    def find_spec(self, fullname: str, *_: Any) -> ModuleSpec | None:
        """Find the table module as if this finder were not there, and hook its execution."""
        if fullname != TABLE_MODULE:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_register(module: ModuleType) -> None:
                execute(module)
                _register()

            spec.loader.exec_module = execute_and_register  # type: ignore[method-assign]
        return spec


def _register() -> None:
    from astropy.io import registry
    from astropy.table import Table

    for name, entry in FORMATS.items():
        registry.register_reader(name, Table, _table_reader(entry.reader), force=True)
        if entry.writer:
            registry.register_writer(name, Table, _table_writer(entry.writer), force=True)
            registry.register_identifier(name, Table, _has_extension(entry), force=True)
    # One entry finds out the format: four would read every undecided file four times.
    any_reader = _table_reader("reading:parse_recognised")
    registry.register_reader(ANY_FORMAT, Table, any_reader, force=True)
    registry.register_identifier(ANY_FORMAT, Table, _is_recognised, force=True)


def load(function: str) -> Callable[..., Any]:
    """Return a function of this package by its name, ``"module:function"``."""
    loaded: Callable[..., Any] = pkgutil.resolve_name(f"neoranging.observations.{function}")
    return loaded


def _table_reader(function: str) -> Callable[..., Any]:
    def read(*args: Any, **kwargs: Any) -> Any:
        """See the function ``read_...`` of `neoranging.observations`."""
        return load(function)(*args, **kwargs).to_table()

    return read


def _table_writer(function: str) -> Callable[..., Any]:
    def write(*args: Any, **kwargs: Any) -> Any:
        """See the function ``write_...`` of `neoranging.observations`."""
        return load(function)(*args, **kwargs)

    return write


def _has_extension(entry: Format) -> Callable[..., bool]:
    def identify(origin: str, path: str | None, *_: Any, **__: Any) -> bool:
        return bool(origin == "write" and path and path.lower().endswith(entry.extension))

    return identify


def _is_recognised(origin: str, path: Any, fileobj: Any, *args: Any, **_: Any) -> bool:
    """True if a source to be read has a format, by its content alone; it is not consumed."""
    if origin != "read":
        return False
    if fileobj is None:
        source = args[0] if args else path
        lines = isinstance(source, list | tuple) and all(isinstance(line, str) for line in source)
        return (lines or isinstance(source, bytes)) and _recognise(source)
    if not (hasattr(fileobj, "seekable") and fileobj.seekable()):
        return False
    position = fileobj.tell()
    try:
        head = fileobj.read(_WINDOW)
        # The first record may stand further down, but not in a file that is no text.
        further = len(head) == _WINDOW and isinstance(head, bytes) and b"\0" not in head
        return _recognise(head) or (further and _recognise(head + fileobj.read()))
    except NeoRangingError:
        return False  # an archive, say
    except (EOFError, OSError, ValueError):
        return True  # a damaged compressed file: the reader says what is wrong
    finally:
        fileobj.seek(position)


def _recognise(source: Any) -> bool:
    if isinstance(source, str):  # of a file opened as text
        source = source.encode("utf-8", "replace")
    content = load("source:read_text")(source).content
    return load("reading:recognise")(content) is not None
