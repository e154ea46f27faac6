"""Whether a body that a server sent is the file it should be, checked before it is kept.

Error pages arrive with the status 200, and connections break without a word where the server gives
no length. A file cut at the end of a line, by a server that gives no length, is the one damage that
cannot be told. The reasons are few words each, fit for counting.
"""

from __future__ import annotations

from typing import Final

from neoranging.exceptions import CorruptFileError

_HEAD: Final = 2048  # bytes in which a web page shows itself


def check_rwo(content: bytes) -> None:
    """Check that a body is a whole ``.rwo`` file.

    Raises
    ------
    CorruptFileError
        With the reason in few words, fit for counting.
    """
    _refuse_foreign(content)
    header, end, body = content.partition(b"END_OF_HEADER")
    if not end:
        raise CorruptFileError("no END_OF_HEADER: cut short, or no .rwo file")
    if b"version" not in header:
        raise CorruptFileError("no version in the header: no .rwo file")
    if not content.endswith(b"\n"):
        raise CorruptFileError("last line without its end: cut short")
    records = [line for line in body.splitlines()[1:] if line.strip() and line[:1] != b"!"]
    if not records:
        raise CorruptFileError("no observation record")


def check_orbit(content: bytes) -> None:
    """Check that a body is a whole file of orbital elements, of one object or of many.

    Raises
    ------
    CorruptFileError
        With the reason in few words.
    """
    from neoranging.exceptions import OrbitFormatError
    from neoranging.lab.archive.oef import looks_like_catalogue, read_catalogue, read_orbit

    _refuse_foreign(content)
    if not content.endswith(b"\n"):
        raise CorruptFileError("last line without its end: cut short")
    try:
        if not looks_like_catalogue(content):
            read_orbit(content)
        elif not len(read_catalogue(content)):
            raise CorruptFileError("a catalogue without objects")
    except OrbitFormatError as error:
        raise CorruptFileError(f"no readable orbit: {error}") from error


def _refuse_foreign(content: bytes) -> None:
    head = content[:_HEAD].lstrip().lower()
    if not head:
        raise CorruptFileError("an empty file")
    if head.startswith(b"<") or b"<html" in head or b"<!doctype" in head:
        raise CorruptFileError("a web page instead of the file")
    if b"\0" in content:
        raise CorruptFileError("binary data instead of text")
