"""ADES text to columns of strings: the pipe-separated (PSV) and the XML form meet here.

Nothing is interpreted yet. ADES is the IAU standard for astrometry (Chesley, Hockney and Holman
2017; https://github.com/IAU-ADES/ADES-Master); its field names are kept as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import repeat
from xml.parsers import expat

from neoranging.exceptions import ObservationFormatError

__all__ = ["AdesRecords", "scan_psv", "scan_xml"]

RECORD_TAGS = frozenset({"optical", "offset", "occultation", "radar"})
"""The four XML elements that hold one observation."""

_STATION_FIELDS = frozenset({"stn", "trx"})
_USUAL_FIELDS = _STATION_FIELDS | {
    *("permID", "provID", "trkSub", "mode", "obsTime", "ra", "dec", "rmsRA", "rmsDec", "mag"),
    *("band", "astCat", "remarks"),
}
_ENOUGH_FIELDS = 3  # of the usual names make a line one of names, whatever it lacks
_SNIFF_LENGTH = 4096


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
    broken : list of (int, str)
        Line and text of records whose shape cannot be read.
    version : str
        The ADES version the file declares.
    n_ignored_lines : int
        Lines that are no records.
    """

    columns: dict[str, list[str]] = field(default_factory=dict)
    line: list[int] = field(default_factory=list)
    block: list[int] = field(default_factory=list)
    headers: list[tuple[str, ...]] = field(default_factory=list)
    broken: list[tuple[int, str]] = field(default_factory=list)
    version: str = ""
    n_ignored_lines: int = 0

    def __len__(self) -> int:
        return len(self.line)

    def append(self, names: Sequence[str], cells: Sequence[str]) -> None:
        """Add the cells of whole rows, row by row; fields new to either side become ``""``."""
        before, width = len(self), len(names)
        after = before + len(cells) // width
        for index, name in enumerate(names):
            column = self.columns.setdefault(name, [""] * before)
            column.extend(map(str.strip, cells[index::width]))
        for column in self.columns.values():
            column.extend(repeat("", after - len(column)))

    def text(self, row: int) -> str:
        """The fields of one record, as a report quotes them."""
        return "|".join(column[row] for column in self.columns.values() if column[row])


def is_column_line(fields: Sequence[str]) -> bool:
    """Whether these fields name columns: a line of names holds a time and a station field."""
    return "obsTime" in fields and not _STATION_FIELDS.isdisjoint(fields)


def _means_columns(fields: Sequence[str]) -> bool:
    """Whether these fields are names of columns, be they the needed ones or not."""
    return len(_USUAL_FIELDS.intersection(fields)) >= _ENOUGH_FIELDS


def scan_psv(text: str) -> AdesRecords:
    """Split ADES PSV text into columns.

    Parameters
    ----------
    text : str
        A whole file: blocks of ``#``/``!`` header lines, lines of column names, data lines.

    Returns
    -------
    AdesRecords

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
            _flush(records, names, lines, pending)
            if line.strip():
                header.append(line.strip())
        elif "obsTime" in line and is_column_line(fields := _split(line)):
            _flush(records, names, lines, pending)
            _open_block(records, header)
            names = _unique(fields, number)
        else:
            pending.append(number)
    _flush(records, names, lines, pending)
    _open_block(records, header)
    records.n_ignored_lines = len(lines) - len(records) - len(records.broken)
    return records


def _split(line: str) -> list[str]:
    return [part.strip() for part in line.split("|")]


def _unique(names: list[str], number: int) -> list[str]:
    """The column names, without the empty one that a closing pipe leaves."""
    while names and not names[-1]:
        names.pop()
    if len(set(names)) != len(names) or not all(names):
        msg = (
            f"line {number} names its columns {'|'.join(names)!r}: an ADES column line needs "
            "every name once and none empty. Correct that line."
        )
        raise ObservationFormatError(msg)
    return names


def _open_block(records: AdesRecords, header: list[str]) -> None:
    """File the header lines met since the last data, if any, as a new block."""
    if not header:
        return
    versions = [line for line in header if line[1:].lstrip().startswith("version")]
    for line in versions:
        records.version = records.version or line.partition("=")[2].strip()
    kept = tuple(line for line in header if line not in versions)
    if kept:
        records.headers.append(kept)
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
    fitted = [(number, _fitted(lines[number - 1], len(names))) for number in pending]
    records.broken += [(number, lines[number - 1].strip()) for number, row in fitted if row is None]
    rows = [row for _, row in fitted if row is not None]
    if rows:
        # One split of the whole text is twice as fast as one for each line.
        records.append(names, "|".join(rows).split("|"))
        _extend_places(records, (number for number, row in fitted if row is not None))
    pending.clear()


def _refuse_incomplete(fields: list[str], number: int) -> None:
    """Complain of a line that names columns, but not those every record needs."""
    if not _means_columns(fields):
        return
    missing = [] if "obsTime" in fields else ["obsTime"]
    if _STATION_FIELDS.isdisjoint(fields):
        missing.append("stn")
    unknown = [name for name in fields if name not in _USUAL_FIELDS]
    likely = [match for name in missing for match in get_close_matches(name, unknown, n=1)]
    hint = f"; is {' and '.join(map(repr, likely))} misspelt?" if likely else "."
    msg = (
        f"line {number} names columns but lacks {' and '.join(missing)}: ADES PSV needs the time "
        f"(obsTime) and the station (stn, of radar trx) of every record{hint}"
    )
    raise ObservationFormatError(msg)


def _fitted(line: str, width: int) -> str | None:
    """Return a line with exactly so many fields, None if it has text in more.

    The last fields of a record may be left out, and closing pipes may follow them.
    """
    missing = width - 1 - line.count("|")
    if missing >= 0:
        return line + "|" * missing
    cells = line.split("|")
    return None if "".join(cells[width:]).strip() else "|".join(cells[:width])


def _extend_places(records: AdesRecords, lines: Iterable[int]) -> None:
    records.line.extend(lines)
    records.block.extend(repeat(len(records.headers) - 1, len(records.line) - len(records.block)))


class _XmlScanner:
    """Expat handlers that gather one dictionary per record element.

    Nested elements below a field (``localUse``) are not fields and are passed over; the context
    of a block is turned into the header lines of its PSV twin.
    """

    def __init__(self) -> None:
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
        self.parser = expat.ParserCreate(namespace_separator="}")
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
            if tag != "ades":
                msg = f"the XML holds <{tag}>, not <ades>: this is no ADES file."
                raise ObservationFormatError(msg)
            self.version = attributes.get("version", "")
        if self.record is None and tag in RECORD_TAGS:
            self.record = {"": tag}
            self.depth = len(self.path)
            self.lines.append(self.parser.CurrentLineNumber)
            self.blocks.append(len(self.headers) - 1)
        elif tag == "obsContext":
            self.context = []
        elif self.context is not None:
            self.open_context(tag)
        self.path.append(tag)
        self.text.clear()

    def open_context(self, tag: str) -> None:
        assert self.context is not None
        mark = "#" if self.path[-1] == "obsContext" else "!"
        self.context.append(f"{mark} {tag}")

    def end(self, _name: str) -> None:
        tag = self.path.pop()
        depth = len(self.path)
        if self.record is not None:
            if depth == self.depth + 1:
                self.record[tag] = " ".join("".join(self.text).split())
            elif depth == self.depth:
                self.rows.append(self.record)
                self.record = None
        elif self.context is not None:
            self.close_context(tag)
        self.text.clear()

    def close_context(self, tag: str) -> None:
        assert self.context is not None
        if tag == "obsContext":
            self.headers.append(tuple(self.context))
            self.context = None
        elif value := " ".join("".join(self.text).split()):
            self.context[-1] += f" {value}"


def scan_xml(data: bytes) -> AdesRecords:
    """Split ADES XML into columns; the element name of each record is column ``""``.

    Both layouts are read, records straight under ``<ades>`` and records within
    ``<obsBlock><obsData>``, with fields in any order. Entities and document types are refused.

    Parameters
    ----------
    data : bytes
        The file; its XML declaration tells the encoding.

    Returns
    -------
    AdesRecords

    Raises
    ------
    ObservationFormatError
        If the XML is not well formed or is not ADES.
    """
    scanner = _XmlScanner()
    try:
        scanner.parser.Parse(data, True)
    except expat.ExpatError as error:
        msg = f"the XML is not well formed: {error}. Repair the file, or ask its sender for it."
        raise ObservationFormatError(msg) from error
    names = list(dict.fromkeys(name for row in scanner.rows for name in row))
    records = AdesRecords(headers=scanner.headers, version=scanner.version)
    if names:
        records.append(names, [row.get(name, "") for row in scanner.rows for name in names])
    records.line, records.block = scanner.lines, scanner.blocks
    return records


def looks_like_psv(head: bytes) -> bool:
    """Whether the first bytes of a file look like ADES PSV."""
    lines = head[:_SNIFF_LENGTH].decode("utf-8", "replace").splitlines()
    first = next((line.strip() for line in lines if line.strip()), "")
    if first.startswith("#"):
        return first[1:].lstrip().startswith("version")
    fields = _split(first)
    return is_column_line(fields) or _means_columns(fields)


def looks_like_xml(head: bytes) -> bool:
    """Whether the first bytes of a file look like ADES XML."""
    return b"<ades" in head[:_SNIFF_LENGTH].replace(b"\0", b"")
