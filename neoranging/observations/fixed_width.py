"""Vectorised reading of fixed-width text: columns of digits to arrays, without a loop over lines.

Text is a ``(N, width)`` matrix of bytes, one row per line. Every parser returns its values with a
mask of the rows that could be read; a bad row is marked, never raised.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from neoranging.typing import BoolArray, ByteArray, FloatArray, IntArray, StrArray

BLANK: Final = ord(" ")
MANY_BLANKS: Final = 80


class Lines(NamedTuple):
    """The lines of a file, as slices of its bytes."""

    data: ByteArray
    """All bytes (n_bytes,), printable ASCII and line feeds only."""
    start: IntArray
    """Offset of the first byte of each line (n_lines,)."""
    length: IntArray
    """Bytes in each line without trailing blanks (n_lines,)."""

    def matrix(
        self, width: int, rows: IntArray | BoolArray | None = None, offset: int = 0
    ) -> ByteArray:
        """``width`` columns from column ``offset`` on, padded with blanks, (n, width)."""
        start = self.start if rows is None else self.start[rows]
        length = self.length if rows is None else self.length[rows]
        padding = np.full(offset + width, BLANK, dtype=np.uint8)
        padded = np.concatenate([self.data, padding])
        # A view of every window of the text; taking rows of it copies whole lines at once.
        matrix = sliding_window_view(padded, width)[start + offset]
        for end in np.unique(length[length < offset + width]):  # few lengths occur in a file
            matrix[length == end, max(end - offset, 0) :] = BLANK
        return matrix

    def text(self, row: int) -> str:
        """One line as a string, ``row`` counted from 0."""
        begin = int(self.start[row])
        return self.data[begin : begin + int(self.length[row])].tobytes().decode("ascii")


class Numbers(NamedTuple):
    """Numbers read from a column of text."""

    value: FloatArray
    """(N,), NaN where unreadable."""
    ok: BoolArray
    """(N,) True where the field was a number."""
    decimals: IntArray
    """(N,) digits after the decimal point."""


def split_lines(content: bytes) -> Lines:
    r"""Cut the bytes of a file into lines.

    Line ends are ``\n``, ``\r\n`` or ``\r``; a byte-order mark is dropped; tabs, NULs and other
    control bytes become blanks and bytes beyond ASCII become ``?``, so that columns stay in place.
    The last line need not end with a line feed.
    """
    content = content.removeprefix(b"\xef\xbb\xbf")
    content = content.replace(b"\r\n", b"\n").replace(b"\r", b"\n").translate(_TO_PRINTABLE)
    data = np.frombuffer(content, dtype=np.uint8)
    ends = np.flatnonzero(data == ord("\n"))
    if len(data) and data[-1] != ord("\n"):
        ends = np.append(ends, len(data))
    start = np.concatenate(([0], ends[:-1] + 1))[: len(ends)].astype(np.int64)
    length: IntArray = ends - start
    # Blanks at the ends of lines are cut off column by column, of all lines at once.
    rows = np.flatnonzero(length > 0)
    for _ in range(MANY_BLANKS):
        rows = rows[(length[rows] > 0) & (data[start[rows] + length[rows] - 1] == BLANK)]
        if not len(rows):
            break
        length[rows] -= 1
    for row in rows.tolist():  # few lines end in so many blanks, and they may be very long
        length[row] = len(data[start[row] :][: length[row]].tobytes().rstrip())
    return Lines(data, start, length)


_TO_PRINTABLE: Final = bytes(
    b if 32 <= b < 127 or b == ord("\n") else (BLANK if b < 128 else ord("?")) for b in range(256)
)


def ascii_matrix(lines: list[str], width: int) -> ByteArray:
    """Strings as a (len(lines), width) byte matrix, cut or padded with blanks."""
    text = "".join(line.replace("\n", " ").replace("\r", " ") + "\n" for line in lines)
    return split_lines(text.encode("ascii", "replace")).matrix(width)


def field_strings(matrix: ByteArray, *, strip: bool = True) -> StrArray:
    """Column of text as strings, by default without surrounding blanks, (N,)."""
    width = matrix.shape[1]
    raw = np.ascontiguousarray(matrix).view(f"S{width}")[:, 0]
    return (np.strings.strip(raw) if strip else raw).astype(f"U{width}")


def is_blank(matrix: ByteArray) -> BoolArray:
    """Rows that hold blanks only, (N,)."""
    blank: BoolArray = (matrix == BLANK).all(axis=1)
    return blank


def parse_int(matrix: ByteArray) -> tuple[IntArray, BoolArray]:
    """Read unsigned integers, right-justified: blanks may stand before the digits only.

    Returns
    -------
    value, ok : ndarray
        (N,) int64, 0 where unreadable; (N,) bool.
    """
    value = np.zeros(len(matrix), dtype=np.int64)
    ok = np.ones(len(matrix), dtype=bool)
    begun = np.zeros(len(matrix), dtype=bool)
    for column in matrix.T:
        digit = column - np.uint8(ord("0"))  # wraps around for other bytes
        is_digit = digit < 10
        ok &= is_digit | (~begun & (column == BLANK))
        begun |= is_digit
        value = value * 10 + np.where(is_digit, digit, 0)
    ok &= begun
    return np.where(ok, value, 0), ok


# A number is read by an automaton: state x kind of byte -> state. Accepting are WHOLE, FRACTION
# (also "12.") and TAIL, the blanks after a number.
_LEAD, _SIGN, _POINT, _WHOLE, _FRACTION, _TAIL, _BAD = range(7)
_IS_BLANK, _IS_SIGN, _IS_DIGIT, _IS_POINT, _IS_OTHER = range(5)
_NEXT: Final = np.array(
    [  # blank, sign, digit, point, other
        [_LEAD, _SIGN, _WHOLE, _POINT, _BAD],
        [_SIGN, _BAD, _WHOLE, _POINT, _BAD],  # blanks after the sign are usual: "+ 2202.0220"
        [_BAD, _BAD, _FRACTION, _BAD, _BAD],
        [_TAIL, _BAD, _WHOLE, _FRACTION, _BAD],
        [_TAIL, _BAD, _FRACTION, _BAD, _BAD],
        [_TAIL, _BAD, _BAD, _BAD, _BAD],
        [_BAD, _BAD, _BAD, _BAD, _BAD],
    ],
    dtype=np.int8,
)
_KIND: Final = np.full(256, _IS_OTHER, dtype=np.int8)
_KIND[BLANK] = _IS_BLANK
_KIND[[ord("+"), ord("-")]] = _IS_SIGN
_KIND[ord("0") : ord("9") + 1] = _IS_DIGIT
_KIND[ord(".")] = _IS_POINT
# Exact powers, so that mantissa / power rounds as float() does.
_POWER: Final[FloatArray] = np.array([10.0**k for k in range(23)])


def parse_float(matrix: ByteArray) -> Numbers:
    """Read decimal numbers anywhere in a field of at most 18 columns; blank is not a number.

    Returns
    -------
    Numbers
        Values as ``float`` would give them (up to 15 digits), readable rows, decimals.
    """
    n = len(matrix)
    state = np.zeros(n, dtype=np.int8)
    mantissa = np.zeros(n, dtype=np.int64)
    decimals = np.zeros(n, dtype=np.int64)
    negative = np.zeros(n, dtype=bool)
    for column in matrix.T:
        kind = _KIND[column]
        state = _NEXT[state, kind]
        digit = kind == _IS_DIGIT
        mantissa = np.where(digit, mantissa * 10 + (column - np.uint8(ord("0"))), mantissa)
        decimals += digit & (state == _FRACTION)
        negative |= column == ord("-")
    ok = (state >= _WHOLE) & (state <= _TAIL)
    value = mantissa / _POWER[np.minimum(decimals, len(_POWER) - 1)]
    value = np.where(negative, -value, value)
    return Numbers(np.where(ok, value, np.nan), ok, np.where(ok, decimals, 0))


def parse_scientific(matrix: ByteArray) -> Numbers:
    """Read numbers with an exponent of two digits that end the field, ``1.446E-02``.

    Returns
    -------
    Numbers
        Values as ``float`` would give them; `decimals` are those of the mantissa.
    """
    mantissa = parse_float(matrix[:, :-4])
    exponent, ok = parse_int(matrix[:, -2:])
    sign = matrix[:, -3]
    ok &= mantissa.ok & (matrix[:, -4] == ord("E")) & np.isin(sign, (ord("+"), ord("-")))
    digits = np.rint(np.where(ok, mantissa.value, np.nan) * _POWER[mantissa.decimals])
    scale = np.where(sign == ord("-"), -exponent, exponent) - mantissa.decimals
    exact = ok & (np.abs(scale) < len(_POWER))  # one rounding only, as in float()
    power = _POWER[np.abs(np.where(exact, scale, 0))]
    value = np.where(scale < 0, digits / power, digits * power)
    return Numbers(np.where(exact, value, np.nan), exact, mantissa.decimals)


def float_or_nan(text: bytes) -> float:
    """Read one number of any form, the Fortran exponent ``D`` included; NaN if it is none."""
    try:
        value = float(text.replace(b"D", b"E").replace(b"_", b"?"))  # float() allows 1_000
    except ValueError:
        return float("nan")
    return value if np.isfinite(value) else float("nan")


class Sexagesimal(NamedTuple):
    """Angles read from ``DD MM SS.s``, ``DD MM.m`` or ``DD MM``, without their sign."""

    value: FloatArray
    """(N,) in the unit of the first field (hours or degrees), NaN where unreadable."""
    ok: BoolArray
    """(N,) True where readable and in range."""
    resolution: FloatArray
    """(N,) unit of the last digit written, in seconds of the first field (1/3600)."""


def parse_sexagesimal(matrix: ByteArray) -> Sexagesimal:
    """Read unsigned sexagesimal angles; the columns are ``DD MM SS.sss`` of any total width > 8.

    Old records stop at whole or decimal minutes, others hold a decimal number, ``DD.dddd``; seconds
    of exactly 60 occur and are accepted.
    """
    decimal = matrix[:, 2] == ord(".")
    if decimal.any():
        number = parse_float(matrix)
        value, ok = number.value, number.ok & ~np.isin(matrix, (ord("+"), ord("-"))).any(axis=1)
        resolution = 3600.0 / _POWER[np.minimum(number.decimals, len(_POWER) - 1)]
        rest = np.flatnonzero(~decimal)
        value[rest], ok[rest], resolution[rest] = parse_sexagesimal(matrix[rest])
        return Sexagesimal(np.where(ok, value, np.nan), ok, resolution)
    degrees, ok = parse_int(matrix[:, :2])
    ok &= matrix[:, 2] == BLANK
    full = (matrix[:, 5] == BLANK) & ~is_blank(matrix[:, 6:])
    minute, minute_ok = parse_int(matrix[:, 3:5])
    minutes = minute.astype(float)
    second = parse_float(matrix[:, 6:])
    seconds = np.where(full, second.value, 0.0)
    resolution = 1.0 / _POWER[second.decimals]
    short = np.flatnonzero(~full)
    if len(short):
        decimal_minutes = parse_float(matrix[short, 3:])
        minutes[short] = decimal_minutes.value
        minute_ok[short] = decimal_minutes.ok
        resolution[short] = 60.0 / _POWER[decimal_minutes.decimals]
    signed = (matrix == ord("-")).any(axis=1) | (matrix == ord("+")).any(axis=1)
    ok &= minute_ok & (minutes < 60.0) & (second.ok | ~full) & (seconds <= 60.0) & ~signed
    # Summed in seconds, so that 46 60.00 and 47 00.00 are the same number.
    value = (degrees * 3600.0 + minutes * 60.0 + seconds) / 3600.0
    return Sexagesimal(np.where(ok, value, np.nan), ok, resolution)


class Directions(NamedTuple):
    """Directions of N records [deg] with the units of their last digits [arcsec], (N,) each."""

    ra: FloatArray
    dec: FloatArray
    ra_ok: BoolArray
    dec_ok: BoolArray
    ra_resolution: FloatArray
    """Without cos(dec)."""
    dec_resolution: FloatArray


def parse_directions(ra: ByteArray, sign: ByteArray, dec: ByteArray) -> Directions:
    """Read sexagesimal right ascension [h] and declination; a blank is a sign as good as plus."""
    alpha, delta = parse_sexagesimal(ra), parse_sexagesimal(dec)
    return Directions(
        ra=alpha.value * 15.0,
        dec=np.where(sign == ord("-"), -delta.value, delta.value),
        ra_ok=alpha.ok & (alpha.value < 24.0),
        dec_ok=delta.ok & (delta.value <= 90.0) & np.isin(sign, list(b"+- ")),
        ra_resolution=alpha.resolution * 15.0,
        dec_resolution=delta.resolution,
    )


class Dates(NamedTuple):
    """Dates of N records, (N,) each."""

    year: IntArray
    mjd: IntArray
    """Whole modified Julian date."""
    fraction: FloatArray
    """Rest of the day."""
    decimals: IntArray
    """Decimals of the day."""
    ok: BoolArray


def parse_dates(matrix: ByteArray) -> Dates:
    """Read calendar dates ``YYYY MM DD.ddd`` with any decimals of the day or none."""
    year, ok = parse_int(matrix[:, :4])
    month, month_ok = parse_int(matrix[:, 5:7])
    day = parse_float(matrix[:, 8:])
    calendar_day = np.where(day.ok, np.floor(day.value), 0.0)
    mjd, date_ok = calendar_to_mjd(year, month, calendar_day.astype(np.int64))
    # The fraction as it is written: the difference alone has lost its last digits.
    power = _POWER[np.minimum(day.decimals, len(_POWER) - 1)]
    fraction = np.rint((day.value - calendar_day) * power) / power
    separated = (matrix[:, 4] == BLANK) & (matrix[:, 7] == BLANK)
    signed = np.isin(matrix[:, 8:], (ord("+"), ord("-"))).any(axis=1)
    ok &= month_ok & day.ok & date_ok & separated & ~signed
    return Dates(year, mjd, fraction, day.decimals, ok)


def calendar_to_mjd(year: IntArray, month: IntArray, day: IntArray) -> tuple[IntArray, BoolArray]:
    """Turn Gregorian dates into whole modified Julian dates.

    Returns
    -------
    mjd, ok : ndarray
        (N,) int64, 0 where the date does not exist or lies before the Gregorian calendar (1583).
    """
    ok = (year >= 1583) & (month >= 1) & (month <= 12) & (day >= 1)
    months = np.where(ok, (year - 1970) * 12 + month - 1, 0).astype("datetime64[M]")
    first, following = (
        start.astype("datetime64[D]").astype(np.int64)
        for start in (months, months + np.timedelta64(1, "M"))
    )
    ok &= day <= following - first
    return np.where(ok, first + 40_587 + day - 1, 0), ok
