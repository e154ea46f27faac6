"""The shape of OrbFit's ``.rwo`` files: header, columns by version, kinds of lines.

Versions differ in few columns: 1 has no star catalogue, so that all behind it stands three or four
columns earlier; some files of version 3 have an object field three columns wider. The ``! Design``
line tells; a body without one is measured.

References
----------
OrbFit consortium, http://adams.dm.unipi.it/orbfit/; files of NEODyS and of ESA's NEO Coordination
Centre.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from neoranging.exceptions import ObservationFormatError
from neoranging.observations.fixed_width import BLANK, Lines, split_lines
from neoranging.typing import BoolArray, ByteArray, IntArray

OBJECT_WIDTH: Final = 9
"""Columns of the object name in the usual layout."""

OPTICAL_WIDTH: Final = 197
"""Columns of an optical record of versions 2 and 3 with the usual object field."""

FIRST_VERSION_SHIFT: Final = 4
"""Columns by which version 1 records are shorter."""

_KIND: Final = 11  # columns in the usual layout, from 0
_DATE: Final = slice(17, 33)
_CATALOG: Final = 176
_CASE: Final = ord("s") - ord("S")
_N_SNIFFED: Final = 200  # records that suffice to tell the layout
_OPTICAL_LENGTHS: Final = (OPTICAL_WIDTH, OPTICAL_WIDTH - FIRST_VERSION_SHIFT)
_END_OF_HEADER: Final = "END_OF_HEADER"
_HEADER_TYPES: Final[dict[str, Callable[[str], Any]]] = {
    "version": int,
    "errmod": lambda text: text.strip("'").strip(),
    "RMSast": float,
    "RMSmag": float,
}
RECORD: Final = re.compile(r" (.{9,12}?) [OSRV] . . [12]\d{3} [01]\d [0-3]\d")
_ANYWHERE: Final = re.compile(rb" [OSRV] . . [12]\d{3} [01]\d [0-3]\d[. ]")


@dataclass(frozen=True)
class Layout:
    """Where the fields of a record stand.

    Attributes
    ----------
    shift : int
        Columns by which the object field is wider than usual.
    has_catalog : bool
        True with a column for the star catalogue (versions 2 and 3).
    """

    shift: int = 0
    has_catalog: bool = True


def looks_like_rwo(content: bytes) -> bool:
    """True if the content has a header of the format, its column lines, or a record to begin with.

    A line ``version = 3`` alone is no sign of the format, though its reader passes over it.
    """
    lines = split_lines(content)
    comment = lines.matrix(1)[:, 0] == ord("!")
    if _END_OF_HEADER.encode() in content or _designs(lines, np.flatnonzero(comment)):
        return True
    return _sniff(lines, np.flatnonzero((lines.length > 0) & ~comment)) is not None


def count_like_rwo(content: bytes) -> int:
    """Number of places that look like type and date of a record, in any column."""
    return len(_ANYWHERE.findall(content))


class RwoRecords:
    """The N records of a file in one column layout, with the second lines of those that have one.

    Parameters
    ----------
    lines : Lines
        The whole file.
    rows : ndarray of int, shape (M,)
        Index of each line that is no header and no comment; M is N plus the paired second lines.
    layouts : list of Layout
    layout : ndarray of int, shape (M,)
        Index into `layouts`.

    Attributes
    ----------
    matrix : ndarray of uint8, shape (N, 197)
        Records in the columns of version 3 with the usual object field.
    name : ndarray of uint8, shape (N, W)
        Object fields.
    line : ndarray of int, shape (N,)
        First line of each record, counted from 1.
    shift : ndarray of int, shape (N,)
        Columns by which the object field is wider than usual.
    second : ndarray of int, shape (N,)
        Index of the second line, -1 where there is none.
    optical, radar, orphan : ndarray of bool, shape (N,)
        Kind of the record; an orphan is a second line without its first.
    space, roving : ndarray of bool, shape (N,)
        Optical records that need a second line.
    """

    def __init__(
        self, lines: Lines, rows: IntArray, layouts: list[Layout], layout: IntArray
    ) -> None:
        self._lines = lines
        self.n_lines = len(rows)
        name, matrix = _in_one_layout(lines, rows, layouts, layout)
        kind, technique = matrix[:, _KIND], matrix[:, _KIND + 2]
        is_optical = np.isin(kind, list(b"OS"))
        is_second = is_optical & np.isin(technique, list(b"sv"))
        follows = np.zeros(len(rows), dtype=bool)
        follows[1:] = is_second[1:] & (technique[:-1] == technique[1:] - _CASE)
        follows[1:] &= is_optical[:-1] & (name[:-1] == name[1:]).all(axis=1)
        # Second lines show five decimals of the date at most.
        date, next_date = matrix[:-1, _DATE], matrix[1:, _DATE]
        same = (date == next_date) | (date == BLANK) | (next_date == BLANK)
        follows[1:] &= same.all(axis=1)
        first = np.flatnonzero(~follows)
        self.matrix = np.asfortranarray(matrix[first])  # the parsers walk along columns
        self.name, self.line = name[first], rows[first] + 1
        self.shift = np.array([item.shift for item in layouts], dtype=np.int64)[layout[first]]
        has_second = np.append(follows, False)[first + 1]
        self.second = np.where(has_second, np.append(rows, -1)[first + 1], -1)
        self.radar = np.isin(kind[first], list(b"RV"))
        self.orphan = is_second[first]
        self.optical = is_optical[first] & ~self.orphan
        self.space = self.optical & (technique[first] == ord("S"))
        self.roving = self.optical & (technique[first] == ord("V"))

    def __len__(self) -> int:
        return len(self.line)

    def text(self, row: int) -> str:
        """Lines of one record as they stand in the file."""
        text = self._lines.text(int(self.line[row]) - 1)
        second = int(self.second[row])
        return text if second < 0 else f"{text}\n{self._lines.text(second)}"


def _in_one_layout(
    lines: Lines, rows: IntArray, layouts: list[Layout], layout: IntArray
) -> tuple[ByteArray, ByteArray]:
    """Object fields and records, the columns of each record moved to those of version 3."""
    name_width = OBJECT_WIDTH + max(item.shift for item in layouts)
    name = np.full((len(rows), name_width), BLANK, dtype=np.uint8)
    matrix = np.full((len(rows), OPTICAL_WIDTH), BLANK, dtype=np.uint8)
    for index, item in enumerate(layouts):
        here = np.flatnonzero(layout == index)
        width = OBJECT_WIDTH + item.shift
        name[here, :width] = lines.matrix(width, rows[here], 1)
        text = lines.matrix(OPTICAL_WIDTH, rows[here], item.shift)
        if not item.has_catalog:
            text[:, _CATALOG + FIRST_VERSION_SHIFT :] = text[
                :, _CATALOG:-FIRST_VERSION_SHIFT
            ].copy()
            text[:, _CATALOG : _CATALOG + FIRST_VERSION_SHIFT] = BLANK
        matrix[here] = text
    return name, matrix


def scan_rwo(lines: Lines) -> tuple[dict[str, Any], list[str], RwoRecords]:
    """Header and records of a file.

    Returns
    -------
    header : dict
        ``version``, ``errmod`` (the error model that gave the a-priori sigmas), ``RMSast`` and
        ``RMSmag`` (of the weighted residuals and of the magnitudes), as far as the file has them.
    unreadable : list of str
        Names of numbers of the header that are none.
    records : RwoRecords

    Raises
    ------
    ObservationFormatError
        If nothing in the file looks like ``.rwo``.
    """
    comment = lines.matrix(1)[:, 0] == ord("!")
    header, unreadable, is_header = _read_header(lines, comment)
    rows = np.flatnonzero((lines.length > 0) & ~comment & ~is_header)
    designs = _designs(lines, np.flatnonzero(comment))
    sniffed = _sniff(lines, rows[rows < designs[0][0]] if designs else rows)
    if sniffed is None and not designs and not is_header.any():
        msg = (
            "nothing here looks like an OrbFit .rwo file: got no END_OF_HEADER, no '! Design' line "
            "and no record such as ' 99942     O C   2004 03 15.10789 ...'; give another format"
        )
        raise ObservationFormatError(msg)
    layouts = [sniffed or Layout(), *(layout for _, layout in designs)]
    layout = np.searchsorted([row for row, _ in designs], rows)
    return header, unreadable, RwoRecords(lines, rows, layouts, layout)


def _read_header(lines: Lines, comment: BoolArray) -> tuple[dict[str, Any], list[str], BoolArray]:
    """Values of ``name = value`` lines; of files strung together the first header counts."""
    candidate = lines.matrix(1)[:, 0] == ord("E")
    equals = np.flatnonzero(lines.data == ord("="))
    candidate[np.searchsorted(lines.start, equals, side="right") - 1] = True
    is_header = np.zeros(len(lines.start), dtype=bool)
    texts: dict[str, str] = {}
    for row in np.flatnonzero(candidate & ~comment).tolist():
        text = lines.text(row)
        name, equals_sign, value = (part.strip() for part in text.partition("="))
        is_named = bool(equals_sign) and name in _HEADER_TYPES
        if is_named:
            texts.setdefault(name, value)
        is_header[row] = is_named or text.startswith(_END_OF_HEADER)
    header: dict[str, Any] = {}
    unreadable = []
    for name, convert in _HEADER_TYPES.items():
        try:
            if name in texts:
                header[name] = convert(texts[name])
        except ValueError:
            unreadable.append(name)
    return header, unreadable, is_header


def _designs(lines: Lines, comments: IntArray) -> list[tuple[int, Layout]]:
    """Layouts by ``! Design`` line; those of radar sections say nothing about optical records."""
    designs = []
    for row in comments.tolist():
        text = lines.text(row)
        column = text.find(" K T N ")
        if column >= _KIND - 1 and "HH MM SS" in text:
            designs.append((row, Layout(column + 1 - _KIND, " Cat " in text)))
    return designs


def _sniff(lines: Lines, rows: IntArray) -> Layout | None:
    """Layout measured on the records themselves; None if no line looks like one."""
    layouts: Counter[Layout] = Counter()
    for row in rows[:_N_SNIFFED].tolist():
        text = lines.text(row)
        if match := RECORD.match(text):
            shift = len(match[1]) - OBJECT_WIDTH
            length = len(text) - shift
            if length in _OPTICAL_LENGTHS:
                layouts[Layout(shift, length == OPTICAL_WIDTH)] += 1
            else:
                layouts[Layout(shift)] += 0
    return layouts.most_common(1)[0][0] if layouts else None
