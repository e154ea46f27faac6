"""Packed and unpacked designations of the Minor Planet Center.

The 80-column format packs the names of minor planets, comets and natural satellites into its first
twelve columns: a permanent number in columns 1-5, a provisional or temporary designation in 6-12.

References
----------
Minor Planet Center, "Packed Provisional and Permanent Designations",
https://www.minorplanetcenter.net/iau/info/PackedDes.html.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt

from neoranging.exceptions import ObservationFormatError
from neoranging.observations.cells import cell_text
from neoranging.typing import StrArray

BASE62: Final = string.digits + string.ascii_uppercase + string.ascii_lowercase
LETTERS: Final = "ABCDEFGHJKLMNOPQRSTUVWXYZ"  # no I: the second letter of a designation
FIRST_TILDE: Final = 620_000  # the first number that a letter and four digits cannot hold
FIRST_EXTENDED_CYCLE: Final = 620  # likewise for the cycle count of a half-month
LAST_NUMBER: Final = FIRST_TILDE + 62**4 - 1
PRE_1925: Final = 1925  # older years are written with an A for their first digit
PLANETS: Final = {
    "J": "Jupiter",
    "S": "Saturn",
    "U": "Uranus",
    "N": "Neptune",
    "M": "Mars",
    "E": "Earth",
    "P": "Pluto",
}
PLANET_LETTERS: Final = {name: letter for letter, name in PLANETS.items()}
ROMAN: Final = (
    *((100, "C"), (90, "XC"), (50, "L"), (40, "XL"), (10, "X")),
    *((9, "IX"), (5, "V"), (4, "IV"), (1, "I")),
)


def unpack_fields(fields: StrArray) -> StrArray:
    """Unpack columns 1-12 of many records, (N,); see `unpack_field`."""
    names = {field: unpack_field(field) for field in dict.fromkeys(fields.tolist())}
    return np.array([names[field] for field in fields.tolist()], dtype=np.str_)


def pack_fields(designations: StrArray) -> StrArray:
    """Pack many designations into columns 1-12, (N,); see `pack_field`."""
    packed = {name: pack_field(name) for name in dict.fromkeys(designations.tolist())}
    return np.array([packed[name] for name in designations.tolist()], dtype="U12")


def canonical(designations: npt.ArrayLike) -> StrArray:
    """Designations in one spelling, "" where there is none.

    ``K08T03C``, ``2008TC3`` and ``2008 tc3`` are 2008 TC3, ``99942.0`` (from a table with gaps) and
    ``(99942)`` are 99942. A name that has no exact reading as a provisional designation stays as
    it is, capitals included.
    """
    return _each(designations, lambda text: _spelled(cell_text(text)))


def cleaned(names: npt.ArrayLike) -> StrArray:
    """Names without blanks around them, whole numbers without a fraction, "" where missing."""
    return _each(names, cell_text)


def _each(values: npt.ArrayLike, function: Callable[[str], str]) -> StrArray:
    import pandas as pd

    texts = np.asarray(values).astype(np.str_)
    row, names = pd.factorize(texts.ravel())
    changed = np.array([function(str(name)) for name in names], dtype=np.str_)
    return changed[row].reshape(texts.shape) if changed.size else texts


def _spelled(name: str) -> str:
    """Return a provisional designation with one blank and capitals, other names as they are."""
    if match := _BRACKETED.fullmatch(name):
        return match[1]
    if len(name) == 7 and (unpacked := _unpack_provisional(name)):
        return unpacked
    # without a blank, small letters are as likely those of a name that an observer gave
    match = _LOOSE.fullmatch(name.upper() if " " in name else name)
    return f"{match[1]} {match[2]}{match[3] or ''}" if match else name


def unpack_field(field: str) -> str:
    """Unpack columns 1-12 of an 80-column record.

    Parameters
    ----------
    field : str
        Twelve columns; shorter text counts as padded with blanks.

    Returns
    -------
    str
        "2024 YR4", "99942", "73P-B", "C/1996 B2", "1I", "Jupiter XIII"; the number wins where a
        record gives a provisional designation too. Names that fit no pattern, such as those that
        observers give their candidates, come back as they are.
    """
    field = field.ljust(12)
    number, rest = field[:5], field[5:]
    return (
        _unpack_number(number, rest)
        or (_unpack_provisional(rest) if number == "     " else "")
        or (_unpack_comet(number[4] + rest) if number[:4] == "    " else "")
        or field.strip()
    )


def unpack(packed: str) -> str:
    """Unpack a designation that stands alone: "K24Y04R", "~0000", "0073Paz", "CJ96B020"."""
    packed = packed.strip()
    if match := re.fullmatch(r"(\d{4}[PCDXAI])([a-z]{0,2})", packed):
        return unpack_field(match[1] + match[2].rjust(7))
    if len(packed) in (5, 12):
        return unpack_field(packed)
    return unpack_field(packed.rjust(12)) if len(packed) in (7, 8) else packed


def pack(designation: str) -> str:
    """Pack a designation that stands alone; the inverse of `unpack`."""
    return pack_field(designation).replace(" ", "")


def pack_field(designation: str) -> str:
    """Pack a designation into columns 1-12 of an 80-column record.

    Parameters
    ----------
    designation : str
        As `unpack_field` gives it; packed and temporary names stay as they are.

    Returns
    -------
    str
        Twelve columns.

    Raises
    ------
    ObservationFormatError
        If the name has no packed form and is too long for the twelve columns.
    """
    name = designation.strip()
    for pattern, packer in _PACKERS:
        if (match := pattern.fullmatch(name)) and (field := packer(match)):
            return field
    if not name or len(name) > 12 or not name.isascii():
        raise ObservationFormatError(
            f"{designation!r} is no designation that the 80-column format can hold: got a name of "
            f"{len(name)} characters without a packed form, needed at most 12 ASCII characters; "
            "rename the object, or write ADES"
        )
    return f"     {name:7}" if len(name) <= 7 else f"{name:>12}"


# Permanent numbers, columns 1-5 -------------------------------------------------------------------

_MINOR_PLANET = re.compile(r"[0-9A-Za-z]\d{4}")
_EXTENDED_NUMBER = re.compile(r"~[0-9A-Za-z]{4}")
_NUMBERED_COMET = re.compile(r"(\d{4})([PCDXAI])")
_SATELLITE = re.compile(rf"([{''.join(PLANETS)}])(\d{{3}})S")


def _unpack_number(number: str, rest: str) -> str:
    """Return the unpacked permanent designation, "" if there is none."""
    if _MINOR_PLANET.fullmatch(number):
        return str(BASE62.index(number[0]) * 10_000 + int(number[1:]))
    if _EXTENDED_NUMBER.fullmatch(number):
        return str(FIRST_TILDE + _from_base62(number[1:]))
    if match := _NUMBERED_COMET.fullmatch(number):
        return f"{int(match[1])}{match[2]}{_fragment(rest)}"
    if match := _SATELLITE.fullmatch(number):
        return f"{PLANETS[match[1]]} {_to_roman(int(match[2]))}"
    return ""


def _fragment(rest: str) -> str:
    """Return "-B" for the fragment letters in the last columns of a comet's field."""
    letters = rest[5:].strip() if rest[:5] == "     " else rest[6:]
    return f"-{letters.upper()}" if re.fullmatch("[a-z]{1,2}", letters) else ""


def _pack_number(match: re.Match[str]) -> str:
    number = int(match[0])
    if number > LAST_NUMBER:
        return ""  # a temporary name of digits
    if number >= FIRST_TILDE:
        return f"~{_to_base62(number - FIRST_TILDE, 4)}".ljust(12)
    return f"{BASE62[number // 10_000]}{number % 10_000:04d}".ljust(12)


def _pack_numbered_comet(match: re.Match[str]) -> str:
    return f"{int(match[1]):04d}{match[2]}{(match[3] or '').lower():>7}"


def _pack_satellite(match: re.Match[str]) -> str:
    return f"{PLANET_LETTERS[match[1]]}{_from_roman(match[2]):03d}S".ljust(12)


# Provisional designations, columns 6-12 (comets and satellites 5-12) ------------------------------

_PROVISIONAL = re.compile(r"([I-L]\d\d)([A-HJ-Y])([0-9A-Za-z]\d)([A-HJ-Z])")
_EXTENDED_PROVISIONAL = re.compile(r"_([0-9A-Za-z])([A-HJ-Y])([0-9A-Za-z]{4})")
_BRACKETED = re.compile(r"\((\d+)\)")
_LOOSE = re.compile(r"(A[89]\d\d|1[89]\d\d|2[01]\d\d) *([A-HJ-Y][A-HJ-Z])([1-9]\d{0,4})?")
_SURVEY = re.compile(r"(PL|T[123])S(\d{4})")
_COMET = re.compile(r"([PCDXAI])([A-L]\d\d)([A-HJ-Y])([0-9A-Za-z]\d)([0a-z])")
_NEW_SATELLITE = re.compile(rf"S([A-L]\d\d)([{''.join(PLANETS)}])([0-9A-Za-z]\d)0")


def _unpack_provisional(packed: str) -> str:
    """Return the unpacked designation of a minor planet, "" if it is none."""
    if match := _PROVISIONAL.fullmatch(packed):
        return f"{_asteroid_year(match[1])} {match[2]}{match[4]}{_count(match[3])}"
    if match := _SURVEY.fullmatch(packed):
        return f"{match[2]} {match[1][0]}-{match[1][1]}"
    if match := _EXTENDED_PROVISIONAL.fullmatch(packed):
        cycle, letter = divmod(_from_base62(match[3]), len(LETTERS))
        year = 2000 + BASE62.index(match[1])
        return f"{year} {match[2]}{LETTERS[letter]}{cycle + FIRST_EXTENDED_CYCLE}"
    return ""


def _unpack_comet(packed: str) -> str:
    """Return the unpacked designation of a comet or new satellite, "" if it is neither."""
    if match := _COMET.fullmatch(packed):
        fragment = "" if match[5] == "0" else f"-{match[5].upper()}"
        return f"{match[1]}/{_year(match[2])} {match[3]}{_count(match[4]) or 0}{fragment}"
    if match := _NEW_SATELLITE.fullmatch(packed):
        return f"S/{_year(match[1])} {match[2]} {_count(match[3]) or 0}"
    if packed[0] in "PCDXA" and (match := _PROVISIONAL.fullmatch(packed[1:])):
        return f"{packed[0]}/{_year(match[1])} {match[2]}{match[4]}{_count(match[3])}"
    return ""


def _pack_provisional(match: re.Match[str]) -> str:
    year = int(match[1].replace("A", "1"))
    half_month, letter, cycle = match[2], match[3], int(match[4] or 0)
    if cycle < FIRST_EXTENDED_CYCLE:
        return f"     {_packed_year(year)}{half_month}{_packed_count(cycle)}{letter}"
    running = (cycle - FIRST_EXTENDED_CYCLE) * len(LETTERS) + LETTERS.index(letter)
    if not (2000 <= year < 2062 and running < 62**4):
        raise ObservationFormatError(
            f"{match[0]!r} has no packed form: cycle counts beyond {FIRST_EXTENDED_CYCLE - 1} can "
            "be packed for the years 2000 to 2061 only; check the designation"
        )
    return f"     _{BASE62[year - 2000]}{half_month}{_to_base62(running, 4)}"


def _pack_survey(match: re.Match[str]) -> str:
    return f"     {match[2]}{match[3]}S{match[1]}"


def _pack_comet(match: re.Match[str]) -> str:
    kind, year, half_month = match[1], _packed_year(int(match[2])), match[3]
    fragment = (match[5] or "0").lower()
    return f"    {kind}{year}{half_month}{_packed_count(int(match[4]))}{fragment}"


def _pack_comet_like_minor_planet(match: re.Match[str]) -> str:
    year = _packed_year(int(match[2]))
    return f"    {match[1]}{year}{match[3]}{_packed_count(int(match[5] or 0))}{match[4]}"


def _pack_new_satellite(match: re.Match[str]) -> str:
    return f"    S{_packed_year(int(match[1]))}{match[2]}{_packed_count(int(match[3]))}0"


# Years, counts, numerals --------------------------------------------------------------------------


def _year(packed: str) -> int:
    return (ord(packed[0]) - ord("A") + 10) * 100 + int(packed[1:])


def _asteroid_year(packed: str) -> str:
    year = str(_year(packed))
    return f"A{year[1:]}" if int(year) < PRE_1925 else year


def _packed_year(year: int) -> str:
    return f"{BASE62[year // 100]}{year % 100:02d}"


def _count(packed: str) -> str:
    count = BASE62.index(packed[0]) * 10 + int(packed[1])
    return str(count) if count else ""


def _packed_count(count: int) -> str:
    if count >= FIRST_EXTENDED_CYCLE:
        raise ObservationFormatError(
            f"a designation with the count {count} has no packed form: needed is at most "
            f"{FIRST_EXTENDED_CYCLE - 1}; check the designation"
        )
    return f"{BASE62[count // 10]}{count % 10}"


def _from_base62(text: str) -> int:
    value = 0
    for character in text:
        value = value * 62 + BASE62.index(character)
    return value


def _to_base62(value: int, width: int) -> str:
    digits = ""
    for _ in range(width):
        value, digit = divmod(value, 62)
        digits = BASE62[digit] + digits
    return digits


def _to_roman(value: int) -> str:
    text = ""
    for size, numeral in ROMAN:
        text += numeral * (value // size)
        value %= size
    return text


def _from_roman(text: str) -> int:
    value = 0
    for size, numeral in ROMAN:
        while text.startswith(numeral):
            value, text = value + size, text[len(numeral) :]
    return value


_YEAR = r"(1\d{3}|2[01]\d\d)"
_PACKERS: Final = tuple(
    (re.compile(pattern), packer)
    for pattern, packer in (
        (r"[1-9]\d{0,7}", _pack_number),
        (r"([1-9]\d{0,3})([PCDXAI])(?:-([A-Z]{1,2}))?", _pack_numbered_comet),
        (
            r"(A[89]\d\d|1[89]\d\d|2[01]\d\d) ([A-HJ-Y])([A-HJ-Z])([1-9]\d{0,4})?",
            _pack_provisional,
        ),
        (r"(\d{4}) ([PT])-([L123])", _pack_survey),
        (rf"([PCDXAI])/{_YEAR} ([A-HJ-Y])([1-9]\d{{0,2}})(?:-([A-Z]))?", _pack_comet),
        (
            rf"([PCDXA])/{_YEAR} ([A-HJ-Y])([A-HJ-Z])([1-9]\d{{0,2}})?",
            _pack_comet_like_minor_planet,
        ),
        (rf"S/{_YEAR} ([{''.join(PLANETS)}]) ([1-9]\d{{0,2}})", _pack_new_satellite),
        (rf"({'|'.join(PLANET_LETTERS)}) ([CLXVI]+)", _pack_satellite),
    )
)
