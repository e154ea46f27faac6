"""Files of observations in pieces that hold whole tracklets, for files that no memory holds.

A piece can be read as if it were a file. It ends between two records that nothing joins: they have
different tracklet ids, or different objects. So the records of a tracklet have to stand beside each
other; whoever reads the pieces sees if they do not. Text in UTF-8 (80 columns, ADES, ``.rwo`` and
CSV), also compressed, and Parquet are read in pieces; a file of another format is one piece.
"""

from __future__ import annotations

import csv
import io
import re
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

from neoranging.exceptions import ObservationFormatError, extra
from neoranging.observations.ades.scan import RECORD_TAGS, is_column_line
from neoranging.observations.cells import cell_text
from neoranging.observations.containers import binary_format, csv_header, file_format
from neoranging.observations.field_names import name_columns
from neoranging.observations.obs80.lines import WIDTH
from neoranging.observations.reading import WINDOW, recognise
from neoranging.observations.rwo.layout import RECORD
from neoranging.observations.source import OPENERS, is_html, is_json, read_source

RECORDS: Final = 100_000
"""Records of a piece, about."""

_LARGEST: Final = 16
"""Times the usual size within which a piece has to end."""

_ASTROPY: Final = b"table_meta_yaml"
"""Entry of a file of Parquet by which astropy stores units and times."""


@dataclass(frozen=True)
class Piece:
    """Part of a file that can be read on its own.

    Attributes
    ----------
    content : bytes
    form : str or None
        Format, None if it is to be recognised.
    source : str
        Name of the file.
    shift : int
        Lines to add to those of the content for lines of the file.
    number : int
        Place among all pieces, from 0.
    share : float
        Share of the file, or of all of them, that ends with it.
    """

    content: bytes
    form: str | None
    source: str
    shift: int = 0
    number: int = 0
    share: float = 1.0

    def __str__(self) -> str:
        return f"piece {self.number} of the input ({self.source}, from line {self.shift + 1} on)"

    def open(self) -> IO[bytes]:
        """Content as an open file of that name."""
        file = io.BytesIO(self.content)
        file.name = self.source
        return file


class Labels(NamedTuple):
    """Names by which a record may belong to the one beside it."""

    tracklet: str = ""
    submission: str = ""
    names: frozenset[str] = frozenset()
    """Of its object."""

    def joins(self, other: Labels) -> bool:
        """True if two records may be of one tracklet."""
        return bool(
            (self.tracklet and self.tracklet == other.tracklet)
            or (self.submission and self.submission == other.submission)
            or (self.names & other.names and not (self.tracklet and other.tracklet))
        )


def pieces_of(
    paths: Sequence[Path], form: str | None = None, size: int = RECORDS
) -> Iterator[Piece]:
    """Pieces of files, one file after the other.

    Parameters
    ----------
    paths : sequence of Path
    form : str, optional
        Format of them, one of ``neoranging.observations.reading.ALL_FORMATS``; that of the content
        by default.
    size : int
        Records of a piece, about; what is longer without a place to end makes it longer.

    Raises
    ------
    ObservationFormatError
        If a file has no place for a piece to end, or is larger than what is read at once.
    MissingDependencyError
        If a package that reads this format is not installed.
    OSError
        If a file cannot be read.
    """
    number, before, sizes = 0, 0, [path.stat().st_size for path in paths]
    for path, of_file in zip(paths, sizes, strict=True):
        for piece in _pieces_of_one(path, form, size):
            share = (before + piece.share * of_file) / max(1, sum(sizes))
            yield replace(piece, number=number, share=share)
            number += 1
        before += of_file


def _pieces_of_one(path: Path, form: str | None, size: int) -> Iterator[Piece]:
    size_of_file = path.stat().st_size
    with _unpacked(path) as (stream, file):
        head = stream.read(WINDOW)
        form = form or binary_format(head) or recognise(head) or file_format(head, path.name)
        is_plain = not (b"\0" in head or is_html(head) or is_json(head))
        if form in _CUTTERS and is_plain:
            for piece in _CUTTERS[form](head, size).pieces(stream, path.name, form):
                yield replace(piece, share=min(1.0, file.tell() / max(1, size_of_file)))
            return
    if form == "parquet":
        yield from _of_parquet(path, size)
    else:
        yield Piece(read_source(path).content, form or None, path.name)


@contextmanager
def _unpacked(path: Path) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """Bytes of a file, unpacked if it is compressed, and the file."""
    with path.open("rb") as file:
        magic = file.read(8)
        file.seek(0)
        opener = next((one for start, one in OPENERS.items() if magic.startswith(start)), None)
        if opener is None:
            yield file, file
            return
        with opener(file) as stream:
            yield stream, file


def _no_place(name: str, what: str) -> ObservationFormatError:
    return ObservationFormatError(
        f"{name} cannot be read in pieces: {what} stand without a place at which no tracklet is "
        "cut. Sort it by tracklet, or by object and time; or read it as a whole"
    )


# Text ---------------------------------------------------------------------------------------------


class _Cutter(ABC):
    """Finds the places at which a text may be cut.

    Parameters
    ----------
    beginning : bytes
        Of the file.
    size : int
        Records of a piece, about.
    """

    record_size = WIDTH + 1
    """Bytes of a record, about."""

    def __init__(self, beginning: bytes, size: int) -> None:
        self.beginning = beginning.removeprefix(b"\xef\xbb\xbf")
        self.size = size
        self.head = b""
        """What stands before the records of a piece so that it can be read."""
        self.tail = b""
        """What stands behind them."""

    @abstractmethod
    def last_cut(self, text: bytes) -> int:
        """Offset of the last record that may begin a piece; 0 if none may."""

    def head_behind(self, text: bytes) -> bytes:  # noqa: ARG002 (of those whose heads change)
        """Head of the records behind a text that is cut off."""
        return self.head

    def pieces(self, stream: IO[bytes], name: str, form: str) -> Iterator[Piece]:
        """Pieces of the text that begins with `beginning` and goes on in a stream."""
        step = reach = self.size * self.record_size
        text, head, line, ended = self.beginning, b"", 0, False
        while True:
            while len(text) <= reach and not ended:
                more = stream.read(reach + 1 - len(text))
                text, ended = text + more, not more
            if len(text) <= reach:
                yield Piece(head + text, form, name, line - head.count(b"\n"))
                return
            if cut := self.last_cut(text[:reach]):
                out, text, reach = text[:cut], text[cut:], step
                content = head + out + self.tail
                yield Piece(content, form, name, line - head.count(b"\n"))
                line += out.count(b"\n")
                head = self.head_behind(out)
            elif reach < _LARGEST * step:
                reach += step
            else:
                raise _no_place(name, f"{reach} bytes from line {line + 1} on")


class _LineCutter(_Cutter):
    """Cuts text of one record a line."""

    def last_cut(self, text: bytes) -> int:
        end = text.rfind(b"\n") + 1  # the line behind it may go on
        after, place = None, 0
        while end > 0:
            begin = text.rfind(b"\n", 0, end - 1) + 1
            before = self.labels(text[begin:end])
            if before is not None:
                if after is not None and not before.joins(after):
                    return place
                after, place = before, begin
            end = begin
        return 0

    @abstractmethod
    def labels(self, line: bytes) -> Labels | None:
        """Labels of a line; None if it is no record."""


class _Obs80Cutter(_LineCutter):
    """Cuts the 80-column format: number and provisional designation name the object."""

    _dated = re.compile(rb".{15}[12]\d{3} [ 01]\d [ 0-3]\d")

    def labels(self, line: bytes) -> Labels | None:
        if not self._dated.match(line):
            return None
        fields = (line[:5].decode("latin-1").strip(), line[5:12].decode("latin-1").strip())
        names = frozenset(f"{k} {field}" for k, field in enumerate(fields) if field)
        return Labels(names=names)


class _RwoCutter(_LineCutter):
    """Cuts ``.rwo`` files."""

    record_size = 198

    def __init__(self, beginning: bytes, size: int) -> None:
        super().__init__(beginning, size)
        lines = self.beginning.splitlines(keepends=True)
        first = next((k for k, line in enumerate(lines) if self.labels(line)), len(lines))
        self.head = b"".join(lines[:first])

    def labels(self, line: bytes) -> Labels | None:
        match = RECORD.match(line.decode("latin-1"))
        return None if match is None else Labels(names=frozenset({match[1].strip()}))


class _PsvCutter(_LineCutter):
    """Cuts ADES PSV, in which a line of names rules over the records below it."""

    record_size = 160

    def __init__(self, beginning: bytes, size: int) -> None:
        super().__init__(beginning, size)
        self._names: list[str] = []

    def last_cut(self, text: bytes) -> int:
        # behind the last line of names, where only these rule
        begin, line = self._line_of_names(text)
        start = begin + len(line)
        self._names = _cells((line or self.head).lower())
        place = super().last_cut(text[start:])
        return place and start + place

    def _line_of_names(self, text: bytes) -> tuple[int, bytes]:
        """The last line of names in a text, and its offset; 0 and nothing if there is none."""
        place = len(text)
        lower = text.lower()
        while (place := lower.rfind(b"obstime", 0, place)) >= 0:
            begin = text.rfind(b"\n", 0, place) + 1
            line = text[begin : text.find(b"\n", place) + 1]
            if line[:1] not in b"#!" and is_column_line(_cells(line)):
                return begin, line
        return 0, b""

    def head_behind(self, text: bytes) -> bytes:
        self.head = self._line_of_names(text)[1] or self.head
        return self.head

    def labels(self, line: bytes) -> Labels | None:
        if not line.strip() or line.lstrip()[:1] in b"#!":
            return None
        fields = dict(zip(self._names, _cells(line), strict=False))
        objects = ((key, fields.get(key)) for key in ("permid", "provid", "artsat"))
        names = frozenset(f"{key} {name}" for key, name in objects if name)
        return Labels("", fields.get("trksub", ""), names)


def _cells(line: bytes) -> list[str]:
    return [cell.strip() for cell in line.decode("utf-8", "replace").split("|")]


class _CsvCutter(_LineCutter):
    """Cuts tables of text, whose first lines name the columns."""

    record_size = 100

    def __init__(self, beginning: bytes, size: int) -> None:
        super().__init__(beginning, size)
        header = csv_header(self.beginning.decode("utf-8", "replace"))
        if header is None:
            raise ObservationFormatError("no line of column names with separators")
        line, names, self._separator = header
        self.head = b"".join(self.beginning.splitlines(keepends=True)[:line])
        self._n = len(names)
        self._columns = _label_columns(names)

    def labels(self, line: bytes) -> Labels | None:
        text = line.decode("utf-8", "replace").strip()
        if self.head.endswith(line) or text.startswith("#"):
            return None
        cells = next(csv.reader([text], delimiter=self._separator, skipinitialspace=True), [])
        if len(cells) == self._n + 1 and self._separator == " ":  # with an index
            cells = cells[1:]
        if len(cells) != self._n:  # part of a cell with line ends, say
            return None
        return _labels(cells.__getitem__, self._columns)


class _XmlCutter(_Cutter):
    """Cuts ADES XML between two elements that are records of one list."""

    record_size = 700

    _tags = rb"(?:[\w.-]+:)?(?:" + b"|".join(tag.encode() for tag in sorted(RECORD_TAGS)) + rb")"
    _begin = re.compile(rb"(?i)<" + _tags + rb"\s*>")
    _between = re.compile(rb"(?i)</" + _tags + rb"\s*>\s*(?=<" + _tags + rb"\s*>)")
    _end = re.compile(rb"(?i)</" + _tags + rb"\s*>")
    _holders = re.compile(rb"(?i)<(/?)((?:[\w.-]+:)?(?:ades|obsBlock|obsData))\b[^>]*>")
    _field = re.compile(rb"(?i)<(?:[\w.-]+:)?(permID|provID|artSat|trkSub)\b[^>]*>\s*([^<]*?)\s*</")

    def __init__(self, beginning: bytes, size: int) -> None:
        super().__init__(beginning, size)
        first = self._begin.search(self.beginning)
        self.head = self.beginning[: first.start()] if first else self.beginning
        holders: list[bytes] = []
        for match in self._holders.finditer(self.head):
            if match[1]:
                holders.pop()
            else:
                holders.append(match[2])
        self.tail = b"".join(b"</" + name + b">" for name in reversed(holders))

    def last_cut(self, text: bytes) -> int:
        places = [match.end() for match in self._between.finditer(text)]
        starts = [match.start() for match in self._begin.finditer(text)]
        for place in reversed(places):
            end = self._end.search(text, place)
            if end is None:
                continue
            before = text[starts[bisect_right(starts, place - 1) - 1] : place]
            if not self._labels(before).joins(self._labels(text[place : end.start()])):
                return place
        return 0

    def _labels(self, record: bytes) -> Labels:
        fields = {
            key.decode().lower(): value.decode("utf-8", "replace")
            for key, value in self._field.findall(record)
            if value
        }
        submission = fields.pop("trksub", "")
        return Labels("", submission, frozenset(f"{k} {v}" for k, v in fields.items()))


_CUTTERS: Final[dict[str, type[_Cutter]]] = {
    "mpc.obs80": _Obs80Cutter,
    "ades.psv": _PsvCutter,
    "ades.xml": _XmlCutter,
    "orbfit.rwo": _RwoCutter,
    "csv": _CsvCutter,
}


# Tables -------------------------------------------------------------------------------------------


def _label_columns(names: Sequence[str]) -> tuple[list[int], ...]:
    """Places of the columns among names that tell tracklet, submission and object."""
    naming = name_columns(names)
    columns = (naming.columns.get(label, ()) for label in ("tracklet", "trkSub", "designation"))
    return tuple([names.index(name) for name in of_label] for of_label in columns)


def _labels(cell: Callable[[int], Any], columns: tuple[list[int], ...]) -> Labels:
    """Labels of a row by its cells in `_label_columns`; each is the first that is filled."""
    tracklet, submission, name = (
        next(filter(None, (_text(cell(k)) for k in of_label)), "") for of_label in columns
    )
    return Labels(tracklet, submission, frozenset({name} - {""}))


def _text(value: Any) -> str:
    return "" if value is None else cell_text(str(value))


def last_row_cut(names: Sequence[str], n: int, cell: Callable[[int, int], Any]) -> int:
    """Number of rows of a table before the last that may begin a piece; 0 if none may.

    Parameters
    ----------
    names : sequence of str
        Of the columns.
    n : int
        Rows.
    cell : callable
        Value of a column in a row, by the numbers of row and column.
    """
    columns = _label_columns(names)
    after: Labels | None = None
    for row in range(n - 1, -1, -1):
        before = _labels(partial(cell, row), columns)
        if after is not None and not before.joins(after):
            return row + 1
        after = before
    return 0


def first_row_cut(names: Sequence[str], n: int, cell: Callable[[int, int], Any]) -> int:
    """Number of rows before the first behind row 0 that may begin a piece; n if none may.

    Parameters are those of `last_row_cut`.
    """
    columns = _label_columns(names)
    labels = (_labels(partial(cell, row), columns) for row in range(n))
    return next((row for row, (a, b) in enumerate(pairwise(labels), 1) if not a.joins(b)), n)


def columns_needed(names: Sequence[str]) -> list[str]:
    """Columns of a table that mean something, and those that a remark is made on."""
    naming = name_columns(names)
    said = " ".join((*naming.remarks, *naming.clashes))
    return [name for name in names if name in naming.fields or name in said]


def _of_parquet(path: Path, size: int) -> Iterator[Piece]:
    """Pieces of a file of Parquet, as files of Arrow: columns of observations alone."""
    with extra("data", "files of Parquet"):
        import pyarrow as pa
        from pyarrow import parquet
    try:
        with parquet.ParquetFile(path, buffer_size=1 << 20) as file:
            of_astropy = _ASTROPY in (file.schema_arrow.metadata or {})
            flat = {
                part.name: column.name for column in file.schema_arrow for part in column.flatten()
            }
            structures = {top for name, top in flat.items() if name != top}
            needed = {flat[name] for name in columns_needed(list(flat))} | structures
            columns = None if of_astropy or not needed else sorted(needed)
            rows, first = None, 0
            # one group after the other: a pass over all of them keeps what it has read
            batches = (
                batch
                for group in range(file.num_row_groups)
                for batch in file.iter_batches(size, row_groups=[group], columns=columns)
            )
            for batch in batches:
                table = pa.Table.from_batches([batch])
                rows = table if rows is None else pa.concat_tables([rows, table])
                if len(rows) < size:
                    continue
                cut = last_row_cut(
                    rows.column_names,
                    len(rows),
                    lambda row, k, rows=rows: rows.column(k)[row].as_py(),  # type: ignore[misc]
                )
                if cut:
                    content = _as_file(rows.slice(0, cut), of_astropy)
                    share = (first + cut) / file.metadata.num_rows
                    yield Piece(*content, path.name, first, share=share)
                    rows, first = rows.slice(cut), first + cut
                elif len(rows) > _LARGEST * size:
                    raise _no_place(path.name, f"{len(rows)} rows from row {first + 1} on")
            if rows is not None:
                yield Piece(*_as_file(rows, of_astropy), path.name, first)
    except pa.ArrowInvalid as error:
        raise ObservationFormatError(f"{path.name}: no readable parquet file: {error}") from error


def _as_file(rows: Any, of_astropy: bool) -> tuple[bytes, str]:
    """Rows as the content of a file, and its format."""
    import pyarrow as pa
    from pyarrow import parquet

    sink = pa.BufferOutputStream()
    if of_astropy:
        parquet.write_table(rows, sink, compression="none", use_dictionary=False)
        return sink.getvalue().to_pybytes(), "parquet"
    with pa.ipc.new_file(sink, rows.schema) as writer:
        writer.write_table(rows)
    return sink.getvalue().to_pybytes(), "feather"
