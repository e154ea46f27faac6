"""One-character codes of the 80-column and ``.rwo`` formats and their names in ADES.

Source: Minor Planet Center, "Catalog codes", "Note 2" and program code lists
(https://www.minorplanetcenter.net/iau/info/CatalogueCodes.html, .../OpticalObs.html,
https://www.minorplanetcenter.net/iau/lists/ProgramCodes.txt).
"""

from __future__ import annotations

import string
from types import MappingProxyType

__all__ = [
    "CATALOG_CODES",
    "CATALOG_NAMES",
    "MODES",
    "NOTE2_OF_MODE",
    "PROGRAM_CODES",
    "PROGRAM_NAMES",
]

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
"""ADES mode by observation type; space-based and roving records do not tell theirs."""
