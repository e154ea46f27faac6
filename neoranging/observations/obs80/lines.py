"""Lines of the 80-column format: which are records, and which two belong together."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

import numpy as np

from neoranging.exceptions import ObservationFormatError
from neoranging.observations.fixed_width import BLANK, Lines, split_lines
from neoranging.records import many
from neoranging.typing import BoolArray, ByteArray, IntArray

WIDTH: Final = 80
HEAD_WIDTH: Final = 32  # columns that tell a record: designation and date

HEADER_WORDS: Final = frozenset(
    "COD CON OBS MEA TEL NET BND COM NUM ACK AC2 TYP STD LON LAT ALT LOC".split()  # noqa: SIM905
)
"""First words of the header lines of a report to the MPC."""

_DATE_ANYWHERE = re.compile(r"[12]\d{3} [ 01]\d [ 0-3]\d\.\d")
_SHIFTED = re.compile(rb"[12]\d{3} [ 01]\d [ 0-3]\d\.\d[\d ]*\d\d[ .]\d\d")
_DATE_COLUMN: Final = 15  # counted from 0
_QUOTE_MARKS: Final = (">", "|", "#", "!", ":", ";")


def looks_like_obs80(content: bytes) -> bool:
    """True if any line of the content is a record of the 80-column format, as its reader sees it.

    Lines of any length count, and whatever stands around the records.
    """
    lines = split_lines(content)
    head = lines.matrix(HEAD_WIDTH)
    dated = _has_date(head)
    return bool((dated & ~_is_commented(lines, head, dated)).any())


def count_like_obs80(content: bytes) -> int:
    """Number of places that look like date and right ascension of the format, in any column."""
    return len(_SHIFTED.findall(split_lines(content).data.tobytes()))


class Records(NamedTuple):
    """The N records of a file, one or two lines each."""

    first: ByteArray  # (N, 80)
    second: ByteArray  # (N, 80), blank without a second line
    has_second: BoolArray
    line: IntArray  # of the first line, from 1
    n_long: int  # lines with text beyond the last column

    def text(self, row: int) -> str:
        """First line of a record."""
        return self.first[row].tobytes().decode("ascii")


def find_records(lines: Lines, name: str) -> tuple[Records, int]:
    """Records of a file, lines of those that take two paired, and the number of other lines."""
    head = lines.matrix(HEAD_WIDTH)
    dated = _has_date(head)
    is_record = _is_record(lines, head, dated)
    if not (is_record & dated).any():
        raise ObservationFormatError(_not_this_format(lines, is_record, name))
    row = np.flatnonzero(is_record)
    matrix, line = lines.matrix(WIDTH, row), row + 1
    tail = lines.matrix(WIDTH, row, offset=WIDTH)
    double = _has_date(tail) & _is_second(tail)
    n_long = int(np.count_nonzero((lines.length[row] > WIDTH) & ~double))
    if double.any():  # 160 columns: cut into two lines, kept side by side
        order = np.argsort(
            np.concatenate((np.arange(len(row)), np.flatnonzero(double))), kind="stable"
        )
        matrix = np.concatenate((matrix, tail[double]))[order]
        line = np.concatenate((line, line[double]))[order]
    return _pair(matrix, line, n_long), len(lines.start) - len(row)


def _has_date(matrix: ByteArray) -> BoolArray:
    """True for lines with ``YYYY MM DD`` in columns 16-25, (N,)."""
    digit = (matrix >= ord("0")) & (matrix <= ord("9"))
    blank = matrix == BLANK
    return np.asarray(
        digit[:, 15:19].all(axis=1)
        & digit[:, [21, 24]].all(axis=1)
        & blank[:, [19, 22]].all(axis=1)
        & (digit | blank)[:, [20, 23]].all(axis=1)
    )


def _is_record(lines: Lines, head: ByteArray, dated: BoolArray) -> BoolArray:
    """True for lines that are meant as records, readable or not, (n_lines,)."""
    is_record = dated.copy()
    for row in np.flatnonzero(~dated & (lines.length > 24)).tolist():
        is_record[row] = _is_broken_record(lines.text(row))
    return is_record & ~_is_commented(lines, head, is_record)


def _is_commented(lines: Lines, head: ByteArray, among: BoolArray) -> BoolArray:
    """True for lines that are comments, or headers ``among`` the lines to look at, (n_lines,)."""
    commented: BoolArray = (head[:, 0] == ord("#")) | (head[:, 0] == ord("!"))
    for row in np.flatnonzero(among & (head[:, 3] == BLANK) & (head[:, 0] != BLANK)).tolist():
        commented[row] |= lines.text(row)[:3] in HEADER_WORDS
    return commented


def _is_broken_record(text: str) -> bool:
    """True if a line without a date in its place was a record once: a date elsewhere, or nearly."""
    if text[:4].rstrip() in HEADER_WORDS:
        return False
    if _DATE_ANYWHERE.search(text):
        return True
    right = sum(text[k].isdigit() for k in (15, 16, 17, 18, 21, 24))
    right += text[19].isspace() + text[22].isspace()
    return right >= 6 and len(text) >= 77


def _is_second(matrix: ByteArray) -> BoolArray:
    return np.asarray(np.isin(matrix[:, 14], list(b"svr")))


def _pair(matrix: ByteArray, line: IntArray, n_long: int) -> Records:
    """Records of lines, each second line joined to the record before it."""
    second = _is_second(matrix)
    # Both lines have the same date, station, and either number or provisional designation.
    same = matrix[:-1] == matrix[1:]
    same_exposure = same[:, 15:32].all(axis=1) & same[:, 77:80].all(axis=1)
    same_exposure &= same[:, :5].all(axis=1) | same[:, 5:12].all(axis=1)
    joined = np.zeros(len(matrix), dtype=bool)
    joined[1:] = second[1:] & ~second[:-1] & same_exposure
    first = np.flatnonzero(~joined)
    has_second = np.append(joined, False)[first + 1]
    partner = np.full((len(first), WIDTH), BLANK, dtype=np.uint8)
    partner[has_second] = matrix[first[has_second] + 1]
    # Columns become contiguous: every parser walks along them.
    return Records(np.asfortranarray(matrix[first]), partner, has_second, line[first], n_long)


def _not_this_format(lines: Lines, is_record: BoolArray, name: str) -> str:
    where = f"{name} holds" if name else "the text holds"
    got = f"{where} {many(len(lines.start), 'line')} and none with a date in columns 16-32"
    advice = "Check that no leading blanks were lost"
    rows = np.flatnonzero(is_record)
    if len(rows):
        text = lines.text(int(rows[0]))
        got += f", though line {rows[0] + 1} has one elsewhere: {text[:WIDTH]!r}"
        advice = _advice(text) or advice
    return (
        f"not the 80-column format: {got}; needed are lines such as "
        "'     K24Y04R  C2024 12 27.23807 08 56 40.97 -00 16 11.9 ...' with the station in columns "
        f"78-80. {advice}, or name another format ('ades.psv', 'ades.xml', 'orbfit.rwo')"
    )


def _advice(text: str) -> str:
    """Advice on a record whose date stands in the wrong columns."""
    date = _DATE_ANYWHERE.search(text)
    if date is None or date.start() == _DATE_COLUMN:
        return ""
    shift = date.start() - _DATE_COLUMN
    mark = text.lstrip()[:1]
    if mark in _QUOTE_MARKS:
        return f"Remove the marks {mark!r} of quoted mail in front of the lines"
    if shift > 0:
        return f"Remove {many(shift, 'blank')} in front of the lines"
    return (
        f"Put {many(-shift, 'blank')} back in front of the lines: they were lost, or a TAB stands "
        "for them"
    )
