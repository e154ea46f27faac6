"""Text of observations from a file, a stream, bytes or lines.

`read_source` unpacks compressed files in steps and turns UTF-16 and UTF-32 into UTF-8; a file that
unpacks to more than the limit is refused before it fills the memory. `read_text` takes off what
services wrap around records as well: the Minor Planet Center shows them within ``<pre>`` of a page
of HTML, and its Observations API answers with a list of one object, whose value is the text of a
format (``OBS80``, ``XML``) or a list of records with the fields of ADES (``ADES_DF``).
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import html
import io
import json
import lzma
import os
import re
import tarfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from math import isnan
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

from neoranging.exceptions import ObservationFormatError

LIMIT_VARIABLE: Final = "NEORANGING_MAX_BYTES"
"""Environment variable with the largest size of an unpacked file [bytes]."""

DEFAULT_LIMIT: Final = 2 * 1024**3
STEP: Final = 1024**2

OPENERS: Final[dict[bytes, Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ": lzma.open,
}
"""Openers of compressed files by their first bytes."""

_FOREIGN: Final = {
    b"PK\x03\x04": "a zip archive",
    b"PK\x05\x06": "a zip archive",
    b"7z\xbc\xaf\x27\x1c": "a 7z archive",
    b"Rar!\x1a\x07": "a rar archive",
    b"\x28\xb5\x2f\xfd": "compressed by zstd",
    b"\x1f\x9d": "compressed by compress",
}
_DAMAGED: Final[tuple[type[Exception], ...]] = (
    EOFError,
    zlib.error,
    lzma.LZMAError,
    gzip.BadGzipFile,
)
_TAR_BLOCK: Final = 512

# The marks of UTF-32 begin with those of UTF-16.
_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    # XML needs no mark: its first character is known
    (b"<\0", "utf-16-le"),
    (b"\0<", "utf-16-be"),
)

_LOOKED_AT: Final = 400
_SHORTEST: Final = 80
_PRINTABLE: Final = frozenset(b"\t\n\r" + bytes(range(32, 127)))

_RECORD: Final = re.compile(
    r"^.{15}[12]\d{3} [ 01]\d [ 0-3]\d.{53}"  # 80 columns
    r"|[12]\d{3} [ 01]\d [ 0-3]\d\.\d[\d ]*\d\d[ .]\d\d"  # the same, its columns shifted
    r"| [OSRV] . . [12]\d{3} [01]\d [0-3]\d"  # .rwo
    r"|\|.*\|.*\|"  # PSV
    r"|^\s*(?:<[A-Za-z?!]|[\[{]\s*[\[{\"])"  # XML, HTML, JSON
)
"""Texts that no path looks like."""


class Text(NamedTuple):
    """Content of a source that has been read already."""

    content: bytes
    """UTF-8 or a superset of ASCII, without byte-order mark."""
    name: str = ""
    """File name, "" for text that came from no file."""


TextSource = str | os.PathLike[str] | bytes | Text | IO[Any] | Iterable[str]
"""A path, an open file, the text itself, its bytes or its lines."""


def is_text(source: str) -> bool:
    """True if a string is text rather than a path: it has a line end, or looks like a record."""
    return "\n" in source or "\r" in source or _RECORD.search(source) is not None


def read_source(source: TextSource) -> Text:
    """Return the content of a source and its name.

    Parameters
    ----------
    source : str, path-like, bytes, file object or iterable of str
        A string that is no text (`is_text`) is a path. Content compressed with gzip, bzip2 or xz is
        unpacked; a byte-order mark is believed and removed.

    Raises
    ------
    ObservationFormatError
        If a compressed file is damaged, if the content is an archive or larger than the limit
        (``NEORANGING_MAX_BYTES``, 2 GiB by default), or if the source is none of the above.
    OSError
        If a file cannot be opened.
    """
    if isinstance(source, Text):
        return source
    if isinstance(source, str) and (not source.strip() or is_text(source)):
        return _finished(_encoded(source), "")
    if isinstance(source, str | os.PathLike):
        path = Path(source).expanduser()
        if path.is_dir():
            raise ObservationFormatError(f"{path}: this is a folder; give a list of its files")
        with path.open("rb") as file:
            return _finished(_read_in_steps(file, path.name), path.name)
    if isinstance(source, bytes | bytearray | memoryview):
        return _finished(bytes(source), "")
    stream: Any = source
    if hasattr(stream, "read"):
        name = os.path.basename(str(getattr(stream, "name", "")))
        name = "" if name.startswith("<") else name  # <stdin> is no name of a file
        return _finished(_read_in_steps(stream, name), name)
    if isinstance(source, Iterable):
        lines = (line if isinstance(line, bytes) else _encoded(str(line)) for line in source)
        return _finished(b"\n".join(line.rstrip(b"\r\n") for line in lines), "")
    raise ObservationFormatError(
        f"observations cannot be read from a {type(source).__name__}: give a path, an open file, "
        "the text or its lines"
    )


def _encoded(text: str | bytes) -> bytes:
    return text.encode("utf-8", "replace") if isinstance(text, str) else bytes(text)


def _read_in_steps(stream: IO[Any], name: str, damaged: tuple[type[Exception], ...] = ()) -> bytes:
    """Read a stream to its end or to the limit, whichever comes first."""
    setting = os.environ.get(LIMIT_VARIABLE, "") or str(DEFAULT_LIMIT)
    if not (setting.isascii() and setting.isdigit()):
        raise ObservationFormatError(
            f"the environment variable {LIMIT_VARIABLE} must hold a number of bytes, "
            f"got {setting!r}"
        )
    limit = int(setting)
    parts: list[bytes] = []
    size = 0
    try:
        while part := stream.read(STEP):
            parts.append(_encoded(part))
            size += len(parts[-1])
            if size > limit:
                raise ObservationFormatError(
                    f"{name or 'the content'} is larger than {limit} bytes (unpacked); divide it, "
                    f"or set {LIMIT_VARIABLE} to a larger limit"
                )
            if len(parts) == 1 and size == STEP and not parts[0].strip(b"\0"):
                raise ObservationFormatError(
                    f"{name or 'the content'} begins with a megabyte of zero bytes: it is no text"
                )
    except ObservationFormatError:
        raise  # it is a ValueError as well
    except UnicodeDecodeError as error:
        raise ObservationFormatError(
            f"{name or 'the open file'} is not in the encoding it was opened with "
            f"({error.encoding}); open it in binary mode"
        ) from error
    except (*_DAMAGED, *damaged) as error:
        raise ObservationFormatError(
            f"the compressed file {name or 'given'} is damaged ({error}); fetch it again"
        ) from error
    return b"".join(parts)


def _finished(content: bytes, name: str) -> Text:
    """Unpack content, refuse archives, and turn it into UTF-8 without a mark."""
    for magic, opener in OPENERS.items():
        if content.startswith(magic):
            with opener(io.BytesIO(content)) as stream:
                # out of memory nothing but the content itself can be at fault
                content = _read_in_steps(stream, name, damaged=(OSError, ValueError))
            break
    kind = next((kind for magic, kind in _FOREIGN.items() if content.startswith(magic)), "")
    with suppress(tarfile.HeaderError):  # the header of a tar archive has a checksum
        tarfile.TarInfo.frombuf(content[:_TAR_BLOCK], "utf-8", "surrogateescape")
        kind = "a tar archive"
    if kind:
        raise ObservationFormatError(
            f"{name or 'the content'} is {kind}: unpack it and give the files in it"
        )
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return Text(content.decode(encoding, "replace").encode(), name)
    head = content[:_LOOKED_AT]
    for first, encoding in ((1, "utf-16-le"), (0, "utf-16-be")):
        # ASCII characters stand in two bytes each, of which every other is zero
        zeros, others = head[first::2], head[1 - first :: 2]
        if len(head) >= _SHORTEST and not any(zeros) and all(c in _PRINTABLE for c in others):
            return Text(content.decode(encoding, "replace").encode(), name)
    return Text(content, name)


# Records inside HTML and JSON ---------------------------------------------------------------------

JSON_ADVICE: Final = (
    "this is JSON without records of observations: needed is an answer of the MPC's Observations "
    "API (OBS80, XML or ADES_DF). Orbit tools make JSON of .rwo files, of which the original text "
    "is to be had from NEODyS or the NEO Coordination Centre"
)

_PRE: Final = re.compile(r"<(/?)pre\b[^<>]*>", re.IGNORECASE)
_TAG: Final = re.compile(r"</?[A-Za-z][^<>\n]*>")
_HTML: Final = re.compile(rb"<(?:!doctype\s+html|html|head|body|pre)\b", re.IGNORECASE)
_HEAD: Final = 4096
API_ANSWERS: Final = ("ADES_DF", "XML", "OBS80", "OBS_DF")
"""Names of the same observations in an answer of the Observations API, best first."""


def read_text(source: TextSource) -> Text:
    """Return the text of observations in a source and the name of the source.

    Parameters
    ----------
    source : TextSource
        As for `read_source`.

    Returns
    -------
    Text
        Content without the HTML or JSON around it. Lines of a page keep their numbers.
    """
    if isinstance(source, Text):
        return source
    text = read_source(source)
    records = ""
    if is_html(text.content):
        pieces = _PRE.split(text.content.decode("utf-8", "replace"))
        for mark, piece in zip(["/", *pieces[1::2]], pieces[::2], strict=True):
            if mark:  # outside of <pre> only the line ends count
                records += "\n" * piece.count("\n")
            else:
                plain = html.unescape(_TAG.sub("", piece))
                records += plain.replace("\N{NO-BREAK SPACE}", " ")
    elif is_json(text.content):
        # neither what is no JSON, nor what is nested beyond any answer, holds records
        with suppress(ValueError, RecursionError):
            records = "\n".join(_texts(json.loads(text.content)))
    return Text(records.encode("utf-8", "replace"), text.name) if records.strip() else text


def is_html(content: bytes) -> bool:
    """True if the content is a page of HTML."""
    head = content[:_HEAD].lstrip()
    return head.startswith(b"<") and _HTML.search(head) is not None


def is_json(content: bytes) -> bool:
    """True if the content begins as JSON does."""
    return content[:_HEAD].lstrip()[:1] in (b"{", b"[", b'"')


def _texts(answer: Any) -> Iterator[str]:
    """Texts in an answer: strings, lists of lines, and lists of records with fields of ADES."""
    if isinstance(answer, str):
        if is_text(answer):
            yield answer.rstrip("\n")
    elif isinstance(answer, Mapping):
        # one answer may hold the same observations in several formats
        same = [answer[key] for key in API_ANSWERS if answer.get(key)]
        for value in same[:1] or answer.values():
            yield from _texts(value)
    elif isinstance(answer, list):
        records = [item for item in answer if _is_record(item)]
        if records and len(records) == len(answer):
            names = list(dict.fromkeys(name for record in records for name in record))
            yield "|".join(map(_cell, names))
            for record in records:
                yield "|".join(_cell(record.get(name)) for name in names)
        else:
            for item in answer:
                yield from _texts(item)


def _is_record(item: Any) -> bool:
    """True if an item is a record of ADES: its fields, and the time as the standard writes it."""
    if not isinstance(item, Mapping):
        return False
    fields = {name.lower(): value for name, value in item.items()}
    time = fields.get("obstime")
    return "stn" in fields and isinstance(time, str) and time.endswith("Z")


def _cell(value: Any) -> str:
    if value is None or (isinstance(value, float) and isnan(value)):
        return ""
    return " ".join(str(value).replace("|", "/").split())
