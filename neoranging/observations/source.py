"""Bytes of a text source, whatever form it comes in."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any, Final

from neoranging.exceptions import ObservationFormatError

__all__ = ["TextSource", "read_source"]

TextSource = str | os.PathLike[str] | bytes | IO[Any] | Iterable[str]
"""A path, an open file, the text itself (with a line end in it), its bytes or its lines."""

_DECOMPRESS: Final = {
    b"\x1f\x8b": gzip.decompress,
    b"BZh": bz2.decompress,
    b"\xfd7zXZ": lzma.decompress,
}


def read_source(source: TextSource) -> tuple[bytes, str]:
    """Return the content of a source and its name.

    Parameters
    ----------
    source : str, path-like, bytes, file object or iterable of str
        A string with a line end is text, another one a path. Files compressed with gzip, bzip2
        or xz are unpacked.

    Returns
    -------
    content : bytes
        The text.
    name : str
        File name, "" for text that came from no file.

    Raises
    ------
    ObservationFormatError
        If a compressed file is damaged or the source is none of the above.
    OSError
        If a file cannot be opened.
    """
    if isinstance(source, str | bytes):
        if isinstance(source, bytes) or "\n" in source or "\r" in source:
            return _unpacked(_encoded(source), ""), ""
        return _read_file(Path(source))
    if isinstance(source, os.PathLike):
        return _read_file(Path(source))
    if hasattr(source, "read"):
        name = os.path.basename(str(getattr(source, "name", "")))
        return _unpacked(_encoded(source.read()), name), name
    if isinstance(source, Iterable):
        return _encoded("\n".join(str(line).rstrip("\r\n") for line in source)), ""
    raise ObservationFormatError(
        f"observations cannot be read from a {type(source).__name__}: give a path, an open file, "
        "the text or its lines"
    )


def _read_file(path: Path) -> tuple[bytes, str]:
    return _unpacked(path.expanduser().read_bytes(), path.name), path.name


def _encoded(text: str | bytes) -> bytes:
    return text.encode("utf-8", "replace") if isinstance(text, str) else bytes(text)


def _unpacked(content: bytes, name: str) -> bytes:
    for magic, decompress in _DECOMPRESS.items():
        if content.startswith(magic):
            try:
                return decompress(content)
            except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError) as error:
                raise ObservationFormatError(
                    f"the compressed file {name or 'given'} is damaged ({error}); fetch it again"
                ) from error
    return content
