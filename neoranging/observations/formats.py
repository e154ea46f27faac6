"""The formats of observations and their registration with astropy's unified table I/O.

Readers and writers are named as text and loaded at their first use.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.util
import os
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Final, NamedTuple

__all__ = ["FORMATS", "TABLE_FORMATS", "Format", "recognise", "register_formats"]

SNIFFED_BYTES: Final = 16_384
TABLE_MODULE: Final = "astropy.table"


class Format(NamedTuple):
    """Where the functions of a format live, as ``"module:function"`` in this package."""

    reader: str
    sniffer: str  # (head: bytes) -> bool
    writer: str = ""
    extension: str = ""  # by which a file to be written is recognised


FORMATS: Final = {
    "mpc.obs80": Format(
        "obs80:read_obs80", "obs80_lines:looks_like_obs80", "obs80_writer:write_obs80", ".obs80"
    ),
    "ades.psv": Format(
        "ades:read_ades_psv", "ades_scan:looks_like_psv", "ades_writer:write_ades_psv", ".psv"
    ),
    "ades.xml": Format("ades:read_ades_xml", "ades_scan:looks_like_xml"),
    "orbfit.rwo": Format(
        "rwo:read_rwo", "rwo_layout:looks_like_rwo", "rwo_writer:write_rwo", ".rwo"
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
        registry.register_reader(name, Table, _deferred(entry.reader), force=True)
        registry.register_identifier(name, Table, _identifier(entry), force=True)
        if entry.writer:
            registry.register_writer(name, Table, _deferred(entry.writer), force=True)


def recognise(content: bytes) -> str:
    """Name of the format that some content is of, "" if of none."""
    head = content[:SNIFFED_BYTES]
    return next((name for name, entry in FORMATS.items() if _load(entry.sniffer)(head)), "")


def _load(function: str) -> Callable[..., Any]:
    module, name = function.split(":")
    found: Callable[..., Any] = getattr(
        importlib.import_module(f"neoranging.observations.{module}"), name
    )
    return found


def _deferred(function: str) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        return _load(function)(*args, **kwargs)

    call.__doc__ = f"See ``neoranging.observations.{function.replace(':', '.')}``."
    return call


def _identifier(entry: Format) -> Callable[..., bool]:
    """Recognise files to read by content alone, files to write by extension."""

    def identify(origin: str, path: str | None, fileobj: Any, *args: Any, **_: Any) -> bool:
        if origin == "write":
            return bool(entry.writer and path and path.lower().endswith(entry.extension))
        head = _head(fileobj, args[0] if args else None)
        return bool(head) and bool(_load(entry.sniffer)(head))

    return identify


def _head(fileobj: Any, source: Any) -> bytes:
    """Return the first bytes of a source without consuming it; nothing if that cannot be done."""
    if fileobj is not None:
        if not (hasattr(fileobj, "seekable") and fileobj.seekable()):
            return b""
        position = fileobj.tell()
        head = fileobj.read(SNIFFED_BYTES)
        fileobj.seek(position)
    elif isinstance(source, list | tuple) and all(isinstance(line, str) for line in source):
        head = "\n".join(line.rstrip("\r\n") for line in source[:200])
    else:
        head = source
    if isinstance(head, str) and not os.path.exists(head):
        head = head.encode("utf-8", "replace")
    return bytes(head[:SNIFFED_BYTES]) if isinstance(head, bytes) else b""
