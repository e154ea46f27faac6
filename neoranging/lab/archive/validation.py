"""Checks that a body that a server sent is the file it should be, before it is kept.

Error pages arrive with the status 200, and connections break without a word where the server gives
no length. A file cut at the end of a line, by a server that gives no length, is the one damage that
cannot be told. The errors are few words each, fit for counting.
"""

from __future__ import annotations

from neoranging.exceptions import CorruptFileError, OrbitFormatError
from neoranging.lab.archive.oef import looks_like_catalogue, read_catalogue, read_orbit


def check_rwo(content: bytes) -> None:
    """Check that a body is a whole ``.rwo`` file.

    Raises
    ------
    CorruptFileError
        With the reason in few words.
    """
    _check_text(content)
    header, end, body = content.partition(b"END_OF_HEADER")
    if not end:
        raise CorruptFileError("no END_OF_HEADER: cut short, or no .rwo file")
    if b"version" not in header:
        raise CorruptFileError("no version in the header: no .rwo file")
    if not any(line.strip() and line[:1] != b"!" for line in body.splitlines()[1:]):
        raise CorruptFileError("no observation record")


def check_orbit(content: bytes) -> None:
    """Check that a body is a whole file of orbital elements, of one object or of many.

    Raises
    ------
    CorruptFileError
        With the reason in few words.
    """
    _check_text(content)
    try:
        if not looks_like_catalogue(content):
            read_orbit(content)
        elif not len(read_catalogue(content)):
            raise CorruptFileError("a catalogue without objects")
    except OrbitFormatError as error:
        raise CorruptFileError(f"no readable orbit: {error}") from error


def _check_text(content: bytes) -> None:
    """Check that a body is text of whole lines, and no web page."""
    head = content[:2048].lstrip().lower()  # a web page shows itself there
    if not head:
        raise CorruptFileError("an empty file")
    if head.startswith(b"<") or b"<html" in head or b"<!doctype" in head:
        raise CorruptFileError("a web page instead of the file")
    if b"\0" in content:
        raise CorruptFileError("binary data instead of text")
    if not content.endswith(b"\n"):
        raise CorruptFileError("last line without its end: cut short")
