"""Packed and unpacked designations of the Minor Planet Center.

The 80-column format packs the names of minor planets, comets and natural satellites into its first
twelve columns: a permanent number in columns 1-5, a provisional or temporary designation in 6-12.
Observers name their candidates as they like in columns 6-12, so a name is unpacked only where it
has the form of its columns exactly.

References
----------
Minor Planet Center, "Packed Provisional and Permanent Designations",
https://www.minorplanetcenter.net/iau/info/PackedDes.html.
"""

from __future__ import annotations

import re
import string
from typing import Final

import numpy.typing as npt

from neoranging.exceptions import ObservationFormatError
from neoranging.observations.cells import cell_text, translated
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
ROMAN: Final = tuple(
    hundreds + tens + ones
    for hundreds in ("", "C", "CC", "CCC", "CD", "D", "DC", "DCC", "DCCC", "CM")
    for tens in ("", "X", "XX", "XXX", "XL", "L", "LX", "LXX", "LXXX", "XC")
    for ones in ("", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX")
)
"""Roman numerals of 0 to 999, by which satellites are numbered."""

# Forms in the columns of a record.
_NUMBER = re.compile(r"[0-9A-Za-z]\d{4}")
_EXTENDED_NUMBER = re.compile(r"~[0-9A-Za-z]{4}")
_COMET_NUMBER = re.compile(r"(\d{4})([PCDXAI])")
_SATELLITE_NUMBER = re.compile(rf"([{''.join(PLANETS)}])(?!000)(\d{{3}})S")
_PROVISIONAL = re.compile(r"([I-L]\d\d)([A-HJ-Y])([0-9A-Za-z]\d)([A-HJ-Z])")
_EXTENDED_PROVISIONAL = re.compile(r"_([0-9A-Za-z])([A-HJ-Y])([0-9A-Za-z]{4})")
_SURVEY = re.compile(r"(PL|T[123])S(\d{4})")
_COMET = re.compile(r"([PCDXAI])([A-L]\d\d)([A-HJ-Y])([0-9A-Za-z]\d)([0a-z])")
_SATELLITE = re.compile(rf"S([A-L]\d\d)([{''.join(PLANETS)}])([0-9A-Za-z]\d)0")

# Names as they are printed.
_YEAR = r"(1\d{3}|2[01]\d\d)"
_ASTEROID_YEAR = r"(A[89]\d\d|1[89]\d\d|2[01]\d\d)"
_ASTEROID_LETTERS = r"([A-HJ-Y])([A-HJ-Z])"
_NUMBER_NAME = re.compile(r"[1-9]\d{0,7}")
_COMET_NUMBER_NAME = re.compile(r"([1-9]\d{0,3})([PCDXAI])(?:-([A-Z]{1,2}))?")
_SATELLITE_NUMBER_NAME = re.compile(rf"({'|'.join(PLANET_LETTERS)}) ([CDLMXVI]+)")
_PROVISIONAL_NAME = re.compile(rf"{_ASTEROID_YEAR} {_ASTEROID_LETTERS}([1-9]\d{{0,4}})?")
_SURVEY_NAME = re.compile(r"(\d{4}) ([PT])-([L123])")
_COMET_NAME = re.compile(rf"([PCDXAI])/{_YEAR} ([A-HJ-Y])([1-9]\d{{0,2}})(?:-([A-Z]))?")
_ASTEROIDAL_COMET_NAME = re.compile(rf"([PCDXA])/{_YEAR} {_ASTEROID_LETTERS}([1-9]\d{{0,2}})?")
_SATELLITE_NAME = re.compile(rf"S/{_YEAR} ([{''.join(PLANETS)}]) ([1-9]\d{{0,2}})")

# Loose spellings.
_BRACKETED = re.compile(r"\((\d+)\)")
_LOOSE = re.compile(rf"{_ASTEROID_YEAR} *([A-HJ-Y][A-HJ-Z](?:[1-9]\d{{0,4}})?)")
_RUN_TOGETHER = re.compile(r"([A12]\d{3})([A-HJ-Y][A-HJ-Z]\d{0,4}|[PT]-[L123])")


def canonical(designations: npt.ArrayLike) -> StrArray:
    """Designations in one spelling, "" where there is none.

    ``K08T03C``, ``2008TC3`` and ``2008 tc3`` are 2008 TC3, ``99942.0`` (from a table with gaps) and
    ``(99942)`` are 99942. A name that has no exact reading as a provisional designation stays as
    it is, capitals included.
    """
    return translated(designations, lambda text: _one_spelling(cell_text(text)))


def _one_spelling(name: str) -> str:
    """Provisional designation with one blank and capitals; other names as they are."""
    if match := _BRACKETED.fullmatch(name):
        return match[1]
    if len(name) == 7 and (unpacked := _unpack_provisional(name)):
        return unpacked
    # without a blank, small letters are as likely those of a name that an observer gave
    match = _LOOSE.fullmatch(name.upper() if " " in name else name)
    return f"{match[1]} {match[2]}" if match else name


def spaced(name: str) -> str:
    """Designation with the blank that OrbFit leaves out: "2024YR4" is "2024 YR4"."""
    return _RUN_TOGETHER.sub(r"\1 \2", name)


def unpack(packed: str) -> str:
    """Designation that stands packed alone: "K24Y04R", "~0000", "0073Paz", "CJ96B020"."""
    packed = packed.strip()
    if match := re.fullmatch(r"(\d{4}[PCDXAI])([a-z]{0,2})", packed):
        return unpack_field(match[1] + match[2].rjust(7))
    if len(packed) in (5, 12):
        return unpack_field(packed)
    return unpack_field(packed.rjust(12)) if len(packed) in (7, 8) else packed


def pack(designation: str) -> str:
    """Packed form of a designation that stands alone; the inverse of `unpack`."""
    return pack_field(designation).replace(" ", "")


def unpack_field(field: str) -> str:
    """Designation in columns 1-12 of an 80-column record.

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
    name = ""
    if number == "     ":
        name = _unpack_provisional(rest)
    elif number[:4] == "    ":
        name = _unpack_comet(field[4:])
    elif _NUMBER.fullmatch(number):
        name = str(_count(number))
    elif _EXTENDED_NUMBER.fullmatch(number):
        name = str(FIRST_TILDE + _from_base62(number[1:]))
    elif match := _COMET_NUMBER.fullmatch(number):
        # One or two letters of a fragment close the field, beside a designation only one.
        letters = rest[5:].strip() if rest[:5] == "     " else rest[6:]
        fragment = f"-{letters.upper()}" if re.fullmatch("[a-z]{1,2}", letters) else ""
        name = f"{int(match[1])}{match[2]}{fragment}"
    elif match := _SATELLITE_NUMBER.fullmatch(number):
        name = f"{PLANETS[match[1]]} {ROMAN[int(match[2])]}"
    return name or field.strip()


def _unpack_provisional(packed: str) -> str:
    """Provisional designation of a minor planet in columns 6-12, "" if it is none."""
    if match := _PROVISIONAL.fullmatch(packed):
        year = str(_count(match[1]))
        if int(year) < PRE_1925:
            year = f"A{year[1:]}"
        return f"{year} {match[2]}{match[4]}{_count(match[3]) or ''}"
    if match := _SURVEY.fullmatch(packed):
        return f"{match[2]} {match[1][0]}-{match[1][1]}"
    if match := _EXTENDED_PROVISIONAL.fullmatch(packed):
        cycle, letter = divmod(_from_base62(match[3]), len(LETTERS))
        year = str(2000 + BASE62.index(match[1]))
        return f"{year} {match[2]}{LETTERS[letter]}{cycle + FIRST_EXTENDED_CYCLE}"
    return ""


def _unpack_comet(packed: str) -> str:
    """Designation of a comet or new satellite in columns 5-12, "" if it is neither."""
    if match := _COMET.fullmatch(packed):
        fragment = "" if match[5] == "0" else f"-{match[5].upper()}"
        return f"{match[1]}/{_count(match[2])} {match[3]}{_count(match[4])}{fragment}"
    if match := _SATELLITE.fullmatch(packed):
        return f"S/{_count(match[1])} {match[2]} {_count(match[3])}"
    if packed[0] in "PCDXA" and (match := _PROVISIONAL.fullmatch(packed[1:])):
        count = _count(match[3]) or ""
        return f"{packed[0]}/{_count(match[1])} {match[2]}{match[4]}{count}"
    return ""


def pack_field(designation: str) -> str:
    """Columns 1-12 of an 80-column record of a designation.

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
    if match := _PROVISIONAL_NAME.fullmatch(name):
        field = f"     {_pack_provisional(match)}"
    elif _NUMBER_NAME.fullmatch(name) and (number := int(name)) <= LAST_NUMBER:
        extended = number >= FIRST_TILDE
        field = f"~{_to_base62(number - FIRST_TILDE)}" if extended else _packed(number, 4)
    elif match := _SURVEY_NAME.fullmatch(name):
        field = f"     {match[2]}{match[3]}S{match[1]}"
    elif match := _COMET_NUMBER_NAME.fullmatch(name):
        field = f"{int(match[1]):04d}{match[2]}{(match[3] or '').lower():>7}"
    elif match := _COMET_NAME.fullmatch(name):
        year, count = _packed(int(match[2])), _packed(int(match[4]), 1)
        field = f"    {match[1]}{year}{match[3]}{count}{(match[5] or '0').lower()}"
    elif match := _ASTEROIDAL_COMET_NAME.fullmatch(name):
        year, count = _packed(int(match[2])), _packed(int(match[5] or 0), 1)
        field = f"    {match[1]}{year}{match[3]}{count}{match[4]}"
    elif match := _SATELLITE_NAME.fullmatch(name):
        field = f"    S{_packed(int(match[1]))}{match[2]}{_packed(int(match[3]), 1)}0"
    elif (match := _SATELLITE_NUMBER_NAME.fullmatch(name)) and match[2] in ROMAN:
        field = f"{PLANET_LETTERS[match[1]]}{ROMAN.index(match[2]):03d}S"
    elif name and len(name) <= 12 and name.isascii():
        field = f"     {name}" if len(name) <= 7 else f"{name:>12}"
    else:
        raise ObservationFormatError(
            f"{designation!r} is no designation that the 80-column format can hold: got a name of "
            f"{len(name)} characters without a packed form, needed at most 12 ASCII characters; "
            "rename the object, or write ADES"
        )
    return field.ljust(12)


def _pack_provisional(match: re.Match[str]) -> str:
    """Columns 6-12 of the name of a minor planet, matched by `_PROVISIONAL_NAME`."""
    year = int(match[1].replace("A", "1"))
    half_month, letter, cycle = match[2], match[3], int(match[4] or 0)
    if cycle < FIRST_EXTENDED_CYCLE:
        return f"{_packed(year)}{half_month}{_packed(cycle, 1)}{letter}"
    running = (cycle - FIRST_EXTENDED_CYCLE) * len(LETTERS) + LETTERS.index(letter)
    if not (2000 <= year < 2062 and running < 62**4):
        raise ObservationFormatError(
            f"{match[0]!r} has no packed form: cycle counts beyond {FIRST_EXTENDED_CYCLE - 1} can "
            "be packed for the years 2000 to 2061 only; check the designation"
        )
    return f"_{BASE62[year - 2000]}{half_month}{_to_base62(running)}"


# Numbers, years and counts share one packing: a digit in base 62 before decimal digits.


def _count(packed: str) -> int:
    """Number of a digit in base 62 and decimal digits: "K24" is 2024, "a0" 360."""
    return BASE62.index(packed[0]) * 10 ** (len(packed) - 1) + int(packed[1:])


def _packed(count: int, n_decimal: int = 2) -> str:
    """Digit in base 62 and decimal digits of a number; the inverse of `_count`."""
    first, rest = divmod(count, 10**n_decimal)
    if first >= len(BASE62):
        raise ObservationFormatError(
            f"a designation with the count {count} has no packed form: needed is at most "
            f"{FIRST_EXTENDED_CYCLE - 1}; check the designation"
        )
    return f"{BASE62[first]}{rest:0{n_decimal}d}"


def _from_base62(text: str) -> int:
    value = 0
    for character in text:
        value = value * 62 + BASE62.index(character)
    return value


def _to_base62(value: int) -> str:
    """Four digits in base 62."""
    return "".join(BASE62[value // 62**k % 62] for k in (3, 2, 1, 0))
