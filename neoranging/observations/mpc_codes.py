"""One-character codes of the 80-column and ``.rwo`` formats and their names in ADES.

Column 14 has two meanings: at some stations it is the code of an observing programme, elsewhere an
alphabetic note on the observation ("K" for stacked images). Digits and signs are programmes
everywhere. Letters are notes, but for stations that have given all digits and signs away.

Source: Minor Planet Center, "Catalog codes", "Note 2" and program code lists
(https://www.minorplanetcenter.net/iau/info/CatalogueCodes.html, .../OpticalObs.html,
.../ObsNote.html, https://www.minorplanetcenter.net/iau/lists/ProgramCodes.txt).
"""

from __future__ import annotations

import string
import warnings
from collections import Counter
from collections.abc import Iterable
from types import MappingProxyType

import numpy as np

from neoranging.exceptions import NeoRangingWarning
from neoranging.typing import StrArray

_LETTERED = (
    "a USNOA1 b USNOSA1 c USNOA2 d USNOSA2 e UCAC1 f Tyc1 g Tyc2 h GSC1.0 i GSC1.1 j GSC1.2 "
    "k GSC2.2 l ACT m GSCACT n SDSS8 o USNOB1 p PPM q UCAC4 r UCAC2 s USNOB2 t PPMXL u UCAC3 "
    "v NOMAD w CMC14 x Hip2 y Hip1 z GSC A AC B SAO1984 C SAO D AGK3 E FK4 F ACRS G LickGas "
    "H Ida93 I Perth70 J COSMOS K Yale L 2MASS M GSC2.3 N SDSS7 O SSTRC1 P MPOSC3 Q CMC15 "
    "R SSTRC4 S URAT1 T URAT2 U Gaia1 V Gaia2 W Gaia3 X Gaia3E Y UCAC5 Z ATLAS2 0 IHW "
    "1 PS1_DR1 2 PS1_DR2 3 Gaia_Int 4 GZ 5 UBSC 6 Gaia_2016"
)
_WORDS = _LETTERED.split()

CATALOG_NAMES = MappingProxyType(dict(zip(_WORDS[::2], _WORDS[1::2], strict=True)))
"""ADES name of a star catalogue by its MPC letter; "UNK" stands for a blank."""

CATALOG_CODES = MappingProxyType({name: code for code, name in CATALOG_NAMES.items()})
"""MPC letter of a star catalogue by its ADES name."""

_BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase
_PROGRAMS = "0123456789!\"#$%&'()*+,-./[\\]^_`{|}~:;<=>?@" + string.ascii_letters.swapcase()

PROGRAM_NAMES = MappingProxyType(
    {code: _BASE62[number // 62] + _BASE62[number % 62] for number, code in enumerate(_PROGRAMS)}
)
"""Two-character program code of ADES by the one of column 14."""

PROGRAM_CODES = MappingProxyType({name: code for code, name in PROGRAM_NAMES.items()})
"""One-character program code by that of ADES."""

NOTE2_OF_MODE = MappingProxyType(
    {
        "CCD": "C", "CMO": "B", "VID": "n", "PHO": "P", "ENC": "e", "MIC": "M", "MER": "T",
        "OCC": "E", "OFF": "O", "PMT": "H", "NOR": "N",
    }
)  # fmt: skip
"""Observation type in column 15 by ADES mode; modes not listed have none."""

MODES = MappingProxyType(
    {code: mode for mode, code in NOTE2_OF_MODE.items()}
    | {"": "PHO", "A": "PHO", "c": "CCD", "S": "CCD", "V": "CCD"}
)
"""ADES mode by observation type; space-based and roving records have none here."""


LETTERED_STATIONS = frozenset(
    "568 675 695 807 809 950 H06 I89 Q62 U69 U94 249 C49 C50".split()  # noqa: SIM905
)
"""Stations whose programmes have letters too; those of 249, C49 and C50 are instruments."""


def divide_note1(code: StrArray, station: StrArray) -> tuple[StrArray, StrArray]:
    """Programmes and notes in column 14, of which a record has one and "" for the other, (N,)."""
    is_note = np.strings.isalpha(code) & ~np.isin(station, list(LETTERED_STATIONS))
    return np.where(is_note, "", code), np.where(is_note, code, "")


def join_note1(program: Iterable[str], notes: Iterable[str], station: Iterable[str]) -> list[str]:
    """Characters for column 14, a blank where there is nothing that it can hold.

    Parameters
    ----------
    program, notes, station : iterable of str
        Code of the programme, of one character or the two of ADES; notes, a letter each; station.

    Warns
    -----
    NeoRangingWarning
        If a code or a note cannot be held, with the number of observations.
    """
    keys = list(zip(program, notes, station, strict=True))
    note1 = {key: _note1(*key) for key in dict.fromkeys(keys)}
    counts = Counter(loss for key in keys if (loss := note1[key][1]))
    if counts:
        losses = "; ".join(f"{loss} ({n})" for loss, n in counts.most_common())
        warnings.warn(
            f"column 14 cannot hold everything: {losses}", NeoRangingWarning, stacklevel=3
        )
    return [note1[key][0] for key in keys]


def _note1(program: str, notes: str, station: str) -> tuple[str, str]:
    """Character for column 14, and the part of the codes that it leaves out."""
    lettered = station in LETTERED_STATIONS
    code = program if len(program) <= 1 else PROGRAM_CODES.get(program, "")
    if program and not (code and code in PROGRAM_NAMES and (lettered or not code.isalpha())):
        return " ", f"programme {program!r} of {station}"
    if code:
        return code, f"notes {notes!r} beside a programme" if notes else ""
    if notes and (lettered or not notes[0].isalpha()):
        return " ", f"notes {notes!r} of {station}, where they would be read as a programme"
    return notes[:1] or " ", f"notes {notes[1:]!r} after the first" if notes[1:] else ""
