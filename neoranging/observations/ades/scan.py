"""ADES text to columns of strings: the pipe-separated (PSV) and the XML form meet here.

Nothing is interpreted yet. ADES is the IAU standard for astrometry (Chesley, Hockney and Holman
2017; https://github.com/IAU-ADES/ADES-Master); its field names are kept as they are.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import repeat
from typing import Final
from xml.parsers import expat

from neoranging.exceptions import ObservationFormatError
from neoranging.observations.field_names import ADES_NAMES, name_columns
from neoranging.records import many

TAG: Final = "Obstype"
"""Column for the kind of each record: the XML element, or what the MPC's service calls so."""

RECORD_TAGS = frozenset({"optical", "offset", "occultation", "radar"})
"""The four XML elements that hold one observation."""

_STATION_FIELDS = frozenset({"stn", "trx"})
_USUAL_FIELDS = _STATION_FIELDS | {
    *("permID", "provID", "trkSub", "mode", "obsTime", "ra", "dec", "rmsRA", "rmsDec", "mag"),
    *("band", "astCat", "remarks"),
}
_USUAL_KEYS = frozenset(name.lower() for name in _USUAL_FIELDS)
_ENOUGH_FIELDS = 3  # of the usual names make a line one of names, whatever it lacks
_MOST_NAMES = 500  # of columns in a file; the standard has about ninety fields
_LINE = re.compile(rb"[^\r\n]+")
_ADES_TAG = re.compile(rb"<(?:[\w.-]+:)?ades[\s/>]", re.IGNORECASE)
_WIDE_ENCODING = re.compile(
    rb"""\s*<\?xml[^>]{,80}encoding\s*=\s*["'](?:utf|ucs)-?(?:16|32)""", re.I
)


@dataclass
class AdesRecords:
    """Columns of strings, one row per record as it stands in the file.

    Attributes
    ----------
    columns : dict of list of str
        One list per ADES field that occurs; ``""`` where a record does not carry it.
    line : list of int
        1-based line of the record.
    block : list of int
        Index into `headers` of the block the record stands in; -1 before any header.
    headers : list of tuple of str
        The ``#`` and ``!`` lines of each observation block, version line excluded.
    broken : list of (int, str, str)
        Line and text of records whose shape cannot be read, and what is wrong with it.
    version : str
        The ADES version the file declares.
    n_ignored_lines : int
        Lines that are no records.
    """

    columns: dict[str, list[str]] = field(default_factory=dict)
    line: list[int] = field(default_factory=list)
    block: list[int] = field(default_factory=list)
    headers: list[tuple[str, ...]] = field(default_factory=list)
    broken: list[tuple[int, str, str]] = field(default_factory=list)
    version: str = ""
    n_ignored_lines: int = 0

    def __len__(self) -> int:
        return len(self.line)

    def append(self, names: Sequence[str], cells: Sequence[str]) -> None:
        """Add the cells of whole rows, row by row; columns without a name are passed over.

        Columns of other rows stay behind until `complete`.
        """
        before, width = len(self), len(names)
        for index, name in enumerate(names):
            if name:
                column = self.columns.setdefault(name, [])
                column.extend(repeat("", before - len(column)))
                column.extend(map(str.strip, cells[index::width]))
        if len(self.columns) > _MOST_NAMES:
            msg = (
                f"the file names {many(len(self.columns), 'column')}, more than the {_MOST_NAMES} "
                "that are read; take out the fields that are no ADES"
            )
            raise ObservationFormatError(msg)

    def complete(self) -> None:
        """Give every column one cell per record, ``""`` where a record does not carry it."""
        for column in self.columns.values():
            column.extend(repeat("", len(self) - len(column)))

    def text(self, row: int) -> str:
        """The fields of one record, as a report quotes them."""
        return "|".join(column[row] for column in self.columns.values() if column[row])


def _keys(fields: Sequence[str]) -> set[str]:
    """Names as they are compared: without regard to case."""
    return {name.lower() for name in fields}


def is_column_line(fields: Sequence[str]) -> bool:
    """True if these fields name columns: a line of names holds a time and a station field."""
    keys = _keys(fields)
    return "obstime" in keys and not _STATION_FIELDS.isdisjoint(keys)


def _means_columns(fields: Sequence[str]) -> bool:
    """True if these fields are names of columns, be they the needed ones or not."""
    return len(_USUAL_KEYS & _keys(fields)) >= _ENOUGH_FIELDS


def scan_psv(text: str) -> AdesRecords:
    """Split ADES PSV text into columns.

    A file has blocks of ``#`` and ``!`` header lines, a line of column names and data lines.

    Raises
    ------
    ObservationFormatError
        If a data line comes before any line of column names, or such a line lacks the time or the
        station.
    """
    records = AdesRecords()
    names: list[str] = []
    header: list[str] = []
    pending: list[int] = []
    lines = text.removesuffix("\n").split("\n")
    for number, line in enumerate(lines, 1):
        if line.lstrip()[:1] in "#!":  # also true of an empty line
            # A line that begins as headers do, with the fields of a record.
            enough = 0 < len(names) - 1 <= 2 * line.count("|")
            if names and enough and not _means_columns(_split(line)):
                detail = f"begins with {line.lstrip()[0]} as a header does"
                records.broken.append((number, line.strip(), detail))
                continue
            _flush(records, names, lines, pending)
            if line.strip():
                header.append(line.strip())
        elif "obstime" in line.lower() and is_column_line(fields := _split(line)):
            _flush(records, names, lines, pending)
            _open_block(records, header)
            names = _unique(fields, number)
        else:
            pending.append(number)
    _flush(records, names, lines, pending)
    _open_block(records, header)
    records.complete()
    records.n_ignored_lines = len(lines) - len(records) - len(records.broken)
    return records


def _split(line: str) -> list[str]:
    return [part.strip() for part in line.split("|")]


def _unique(names: list[str], number: int) -> list[str]:
    """The column names as the standard spells them, without those that closing pipes leave.

    The first may be empty: tables are often saved with the number of each row in front.
    """
    while names and not names[-1]:
        names.pop()
    spelling = {TAG.lower(): TAG, **ADES_NAMES}
    names = [spelling.get(name.lower(), name) for name in names]
    if len(set(names)) != len(names) or not all(names[1:]):
        msg = (
            f"line {number} names its columns {'|'.join(names)!r}: an ADES column line needs "
            "every name once and none empty. Correct that line."
        )
        raise ObservationFormatError(msg)
    return names


def _open_block(records: AdesRecords, header: list[str]) -> None:
    """File the header lines met since the last data, if any, as a new block."""
    versions = [line for line in header if line[1:].lstrip().startswith("version")]
    for line in versions:
        records.version = records.version or line.partition("=")[2].strip()
    if others := tuple(line for line in header if line not in versions):
        records.headers.append(others)
    header.clear()


def _flush(records: AdesRecords, names: list[str], lines: list[str], pending: list[int]) -> None:
    """Move the data lines gathered under one line of column names into the columns."""
    if not pending:
        return
    # Taken for data, a misspelt line of names would leave its block to the names of the last one.
    _refuse_incomplete(_split(lines[pending[0] - 1]), pending[0])
    if not names:
        msg = (
            f"line {pending[0]} holds data before any line of column names; ADES PSV needs "
            "one such as 'provID|mode|stn|obsTime|ra|dec|astCat' first. Is this an ADES file?"
        )
        raise ObservationFormatError(msg)
    rows: list[str] = []
    fitting: list[int] = []
    for number in pending:
        line = lines[number - 1]
        # the last fields of a record may be left out, and closing pipes may follow them
        missing = len(names) - 1 - line.count("|")
        if missing < 0:
            cells = line.split("|")
            if "".join(cells[len(names) :]).strip():
                records.broken.append((number, line.strip(), "more fields than column names"))
                continue
            line = "|".join(cells[: len(names)])
        rows.append(line + "|" * missing)
        fitting.append(number)
    if rows:
        # A first column without a name may hold the numbers of the rows, nothing else.
        cells = [] if names[0] else [row.partition("|")[0].strip() for row in rows]
        if odd := next((cell for cell in cells if cell and not cell.isdigit()), ""):
            msg = (
                f"the first column of the records from line {pending[0]} on has no name and holds "
                f"{odd!r}, which is no running number; name it"
            )
            raise ObservationFormatError(msg)
        # One split of the whole text is twice as fast as one for each line.
        records.append(names, "|".join(rows).split("|"))
        records.line.extend(fitting)
        records.block.extend(repeat(len(records.headers) - 1, len(fitting)))
    pending.clear()


def _refuse_incomplete(fields: list[str], number: int) -> None:
    """Complain of a line that names columns, but not those every record needs."""
    if not _means_columns(fields):
        return
    keys = _keys(fields)
    missing = [] if "obstime" in keys else ["obsTime"]
    if _STATION_FIELDS.isdisjoint(keys):
        missing.append("stn")
    unknown = [name for name in fields if name.lower() not in _USUAL_KEYS]
    likely = [match for name in missing for match in get_close_matches(name, unknown, n=1)]
    hint = f"; is {' and '.join(map(repr, likely))} misspelt?" if likely else "."
    msg = (
        f"line {number} names columns but lacks {' and '.join(missing)}: ADES PSV needs the time "
        f"(obsTime) and the station (stn, of radar trx) of every record{hint}"
    )
    raise ObservationFormatError(msg)


class _XmlScanner:
    """Expat handlers that gather one dictionary per record element.

    Nested elements below a field (``localUse``) are not fields and are passed over; the context
    of a block is turned into the header lines of its PSV twin.
    """

    def __init__(self, encoding: str | None = None) -> None:
        self.rows: list[dict[str, str]] = []
        self.lines: list[int] = []
        self.blocks: list[int] = []
        self.headers: list[tuple[str, ...]] = []
        self.version = ""
        self.path: list[str] = []
        self.text: list[str] = []
        self.record: dict[str, str] | None = None
        self.depth = 0
        self.context: list[str] | None = None
        self.unknown: list[tuple[int, str, str]] = []
        self.parser = expat.ParserCreate(encoding, namespace_separator="}")
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.CharacterDataHandler = self.text.append
        # ADES knows no document type: refusing one shuts out entity bombs and outside files.
        self.parser.StartDoctypeDeclHandler = self.refuse_doctype

    def refuse_doctype(self, name: str, *_: object) -> None:
        msg = (
            f"the XML declares a document type ({name!r}), which ADES does not have and this "
            "reader refuses for safety. Remove the DOCTYPE declaration."
        )
        raise ObservationFormatError(msg)

    def start(self, name: str, attributes: dict[str, str]) -> None:
        tag = name.rpartition("}")[2]
        if not self.path:
            if tag.lower() != "ades":
                msg = f"the XML holds <{tag}>, not <ades>: this is no ADES file."
                raise ObservationFormatError(msg)
            self.version = attributes.get("version", "")
        if self.record is None and tag.lower() in RECORD_TAGS:
            self.record = {TAG: tag.lower()}
            self.depth = len(self.path)
            self.lines.append(self.parser.CurrentLineNumber)
            self.blocks.append(len(self.headers) - 1)
        elif tag == "obsContext":
            self.context = []
        elif self.context is not None:
            mark = "#" if self.path[-1] == "obsContext" else "!"
            self.context.append(f"{mark} {tag}")
        elif self.record is None and self.path[-1:] == ["obsData"]:
            detail = f"the element is none of {', '.join(sorted(RECORD_TAGS))}"
            self.unknown.append((self.parser.CurrentLineNumber, f"<{tag}>", detail))
        self.path.append(tag)
        self.text.clear()

    def end(self, _name: str) -> None:
        tag = self.path.pop()
        depth = len(self.path)
        if self.record is not None:
            if depth == self.depth + 1:
                self.record[ADES_NAMES.get(tag.lower(), tag)] = " ".join("".join(self.text).split())
            elif depth == self.depth:
                self.rows.append(self.record)
                self.record = None
        elif self.context is not None and tag == "obsContext":
            self.headers.append(tuple(self.context))
            self.context = None
        elif self.context is not None and (value := " ".join("".join(self.text).split())):
            self.context[-1] += f" {value}"
        self.text.clear()


def scan_xml(data: bytes) -> AdesRecords:
    """Split ADES XML into columns; the element name of each record is column ``""``.

    Both layouts are read, records straight under ``<ades>`` and records within
    ``<obsBlock><obsData>``, with fields in any order. Entities and document types are refused.

    Raises
    ------
    ObservationFormatError
        If the XML is not well formed or is not ADES.
    """
    # A declaration of wide characters that can be read byte by byte is of text turned into UTF-8.
    scanner = _XmlScanner("utf-8" if _WIDE_ENCODING.match(data) else None)
    body = data.lstrip()
    try:
        scanner.parser.Parse(body, True)
    except expat.ExpatError as error:
        msg = f"the XML is not well formed: {error}. Repair the file, or ask its sender for it."
        raise ObservationFormatError(msg) from error
    except ObservationFormatError:
        raise
    except (LookupError, ValueError) as error:
        msg = f"the XML declares an encoding that cannot be read ({error}); save it as UTF-8"
        raise ObservationFormatError(msg) from error
    names = list(dict.fromkeys(name for row in scanner.rows for name in row))
    records = AdesRecords(headers=scanner.headers, version=scanner.version)
    if names:
        records.append(names, [row.get(name, "") for row in scanner.rows for name in names])
    skipped = data[: len(data) - len(body)].count(b"\n")
    records.line = [line + skipped for line in scanner.lines]
    records.block = scanner.blocks
    records.broken = [(line + skipped, text, detail) for line, text, detail in scanner.unknown]
    records.complete()
    return records


def looks_like_psv(content: bytes) -> bool:
    """True if the first line of the content that is no header names columns of ADES PSV."""
    declared = False
    for match in _LINE.finditer(content):
        line = match[0].strip()
        if line and line[:1] not in b"#!":
            fields = _split(line.decode("utf-8", "replace"))
            if is_column_line(fields) or not _means_columns(fields):
                return is_column_line(fields)
            # Bars divide the columns of a plain table as well as commas do.
            return not {"obstime", "ra", "dec", "station"} <= set(name_columns(fields).columns)
        declared |= _is_version(line)
    return declared


def count_like_psv(content: bytes) -> int:
    """Number of lines that look like records of ADES PSV; all of a file that declares a version."""
    lines = [match[0] for match in _LINE.finditer(content)]
    if any(_is_version(line.strip()) for line in lines if line.lstrip()[:1] == b"#"):
        return len(lines)
    return sum(line.count(b"|") >= _ENOUGH_FIELDS for line in lines)


def _is_version(line: bytes) -> bool:
    return line[:1] == b"#" and line[1:].lstrip().startswith(b"version")


def looks_like_xml(content: bytes) -> bool:
    """True if the content is XML with an ``<ades>`` element."""
    return content.lstrip()[:1] == b"<" and _ADES_TAG.search(content) is not None


def count_like_xml(content: bytes) -> int:
    """Number of elements, if the content begins as XML does."""
    return content.count(b"</") if content.lstrip()[:1] == b"<" else 0
