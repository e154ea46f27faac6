"""Random damage to observation files: nothing may escape the readers, nothing may be lost.

    python benchmarks/soak_readers.py [--records 100000] [--seed 1] [--format mpc.obs80] [FILE ...]

Lines of the built-in samples, or of the files given, are mutated (bytes replaced, removed or
inserted, lines cut or joined) and read in batches, until so many records have been read. A reader
may refuse a batch with ObservationFormatError; any other exception, an account that does not
balance, or a value that is none, ends the soak. Each format is one entry of SAMPLES.
"""

from __future__ import annotations

import argparse
import re
import warnings
from pathlib import Path

import numpy as np
from astropy import units as u
from astropy.table import QTable

import neoranging.observations  # noqa: F401  (registers the formats)
from neoranging.exceptions import NeoRangingWarning, ObservationFormatError

OBS80_SAMPLE = """\
     K14A00A* C2014 01 01.26257 05 32 35.55 +13 59 45.0          19.1 Vq~0yn5G96
     K24Y04R  C2024 12 27.24033408 56 36.905-00 15 27.90         15.80oV~8ZuSW68
00004         A1917 09 15.033   00 47.0     -07 40                6.5   JO002008
03200J83T00B  A1983 10 11.14027 17 29.29    +59 27.6                    M8192500
0141P      h 9C2015 08 26.21431 07 21 26.39 +26 33 00.1          18.7 Tq95367G40
    CJ96B020   1996 01 01.83364 14 06 00.31 -23 57 29.6          13.3 T 26606862
~0000         A1801 01 01.82630 03 38 23.07 +16 17 25.5                 MC004535
     A10TlFw  C2023 03 07.39538117 06 15.890-19 00 27.68         14.26VV     G96
00433         E1975 01 24.01889007 44 23.906+24 23 59.87                v4566244
00203         S2003 01 29.08280406 09 11.417+27 37 29.22               X~7lvr275
00203         s2003 01 29.0828041 + 2202.0220 - 1177.3210 + 2416.8700   ~7lvr275
    CJ96X040 3S1996 12 06.38895 16 45 09.4  -21 37 15                   55913249
    CJ96X040 3s1996 12 06.38895 2 -0.00266005 -0.00945127 -0.00507492   55913249
03200         V2002 01 05.08792 01 50 06.42 +23 53 49.5          17.0  di1635247
03200         v2002 01 05.08792 1 282.1385   +39.0796     527          di1635247
01862         R1980 11 13.910417               -     1144100   2380 251 JPLRS251
01862         r1980 11 13.910417S                        2000       251 JPLRS251
03666J38W00Q* X1938 11 28.972   04 50.1     +19 48               14.7   BZ020024
COD G96
OBS Nobody
""".splitlines()

RWO_SAMPLE = """\
 2024YR4   O C K 2024 12 27.238073      1.000E-06 08 56 40.968  1.500E-02    0.500 T   -0.012\
    0.123 -00 16 11.93  1.000E-02    0.400 F    0.034   -0.456 16.54o  0.50   0.31   V W68\
      1.23 1 0
 433       O A   1893 10 29.4132        1.000E-04 06 08 59.320  8.890E-02  999.000 F    0.000\
  3.7E+03 +53 39 04.20  1.000E-01    5.000 F    0.000    0.983                         802\
      0.21 1 0
 1685      S S   2010 02 11.490128      1.000E-06 15 06 37.600  1.316E-01    1.000 F    0.098\
    0.099 -28 39 41.90  1.000E-01    1.000 F    0.063   -0.239                       L C51\
      0.26 1 0
 1685      S s   2010 02 11.49012 1      -4336.226400000000      -4288.288000000000\
      -3256.894200000000 C51
 1685      O V   2008 02 14.30053       1.000E-05 05 13 06.230  1.500E-01    1.000 F   -0.107\
    0.420 -00 34 40.90  1.000E-01    1.000 F    0.073   -0.299 13.8 V  0.70  -0.10   o 247\
      0.52 1 1
 1685      O v   2008 02 14.30053 237.818000  37.819100    470.0 247
 1862      R s   1980 11 15 23:48:00   9069165.69723   2.99792   2.99792 F     0.00000\
     0.63701 251 251      0.28 1
END_OF_HEADER
version =   3
""".splitlines()
ADES_HEADER = (
    "# version=2022\n"
    "permID|provID|trkSub|mode|stn|sys|ctr|pos1|pos2|pos3|prog|obsTime|ra|dec|rmsRA|rmsDec|astCat|"
    "mag|band|disc|deprecated|raStar|decStar|deltaRA|deltaDec|remarks\n"
)
ADES_SAMPLE = """\
433|||CCD|W68|||||||2024-12-27T05:42:49.52Z|134.1707|-0.26998|0.197|0.161|Gaia2|16.54|o||||||| å
|2024 YR4||CCD|C51|ICRF_KM|399|-4588.9|4208.6|3008.5||2016-12-31T23:59:60.5Z|1|-2||||||*||||||
||A10TlFw|CCD|247|WGS84|399|237.818|37.8191|470|1R|1893-12-27T05:42:49Z|1|-2|0.1|0.1|||||||||
|K24Y04R||OCC|275|ITRF|399|237.8|5049.1|3890||2024-12-27T05:42:49Z|||||||||X|10.1|-20.2|0.1|-0.2|
""".splitlines()

ADES_NAMES = ADES_HEADER.splitlines()[1].split("|")


def as_xml(record: str) -> str:
    """One record of the PSV sample as an element."""
    fields = zip(ADES_NAMES, record.split("|"), strict=False)
    inner = "".join(f"<{name}>{value}</{name}>" for name, value in fields if value)
    return f"<optical>{inner}</optical>"


SAMPLES: dict[str, list[str]] = {
    "mpc.obs80": OBS80_SAMPLE,
    "orbfit.rwo": RWO_SAMPLE,
    "ades.psv": ADES_SAMPLE,
    "ades.xml": list(map(as_xml, ADES_SAMPLE)),
}
ENDS = {
    "mpc.obs80": (b"", b""),
    "orbfit.rwo": (b"END_OF_HEADER\n", b""),
    "ades.psv": (ADES_HEADER.encode(), b""),
    "ades.xml": (b'<ades version="2022"><obsBlock><obsData>\n', b"</obsData></obsBlock></ades>"),
}
"""Bytes before and behind the records of a file."""

COLUMNS = ("obstime", "ra", "dec", "sigma_ra", "sigma_dec")
BATCH = 500


def mutated(lines: list[bytes], n: int, rng: np.random.Generator) -> list[bytes]:
    """Draw runs of lines and damage about half of them."""
    injure = damaged_element if lines[0].startswith(b"<") else damaged
    sample: list[bytes] = []
    while len(sample) < n:
        start = int(rng.integers(len(lines)))
        sample += lines[start : start + int(rng.integers(1, 6))]
    return [injure(line, rng) if rng.random() < 0.5 else line for line in sample[:n]]


def damaged_element(line: bytes, rng: np.random.Generator) -> bytes:
    """Damage text, names or presence of fields of an XML element, which stays well formed."""
    parts = re.findall(rb"<(\w+)>([^<]*)</\1>", line)
    at = int(rng.integers(len(parts)))
    name, text = parts[at]
    injury = int(rng.integers(8))
    if injury == 0:
        del parts[at]
    elif injury == 1:
        parts.append(parts[at])
    elif injury == 2:
        parts[at] = name.swapcase(), text
    elif injury == 3:
        parts[at] = name + b"x", text
    else:
        hurt = re.sub(rb"[^ -%'-;=?-~]", b"?", damaged(text or b" ", rng))
        parts[at] = name, hurt
    tag = b"optical" if rng.random() < 0.95 else b"optacle"
    inner = b"".join(b"<%s>%s</%s>" % (name, text, name) for name, text in parts)
    return b"<%s>%s</%s>" % (tag, inner, tag)


def damaged(line: bytes, rng: np.random.Generator) -> bytes:
    """Apply one to four random injuries to a line."""
    for _ in range(int(rng.integers(1, 5))):
        at = int(rng.integers(len(line) + 1))
        byte = bytes([_random_byte(rng)])
        injury = int(rng.integers(7))
        if injury <= 2:
            line = line[:at] + byte + line[at + 1 :]
        elif injury == 3:
            line = line[:at] + line[at + 1 :]
        elif injury == 4:
            line = line[:at] + byte + line[at:]
        elif injury == 5:
            line = line[:at]
        else:
            line = line + line[: at or None]
    return line


def _random_byte(rng: np.random.Generator) -> int:
    likely = b"0123456789 .+-*~_SsVvRrXxCAEZ\n\r\t\0\xe9\xff"
    return likely[rng.integers(len(likely))] if rng.random() < 0.7 else int(rng.integers(256))


def check(content: bytes, name: str) -> tuple[int, int]:
    """Read one batch; return the records read and those used, none if the batch is refused."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NeoRangingWarning)
            table = QTable.read(content, format=name)
    except ObservationFormatError:
        return 0, 0
    report = table.meta["report"]
    if name == "ades.xml":
        assert report.n_read == content.count(b"</opt"), "elements lost"
    assert len(table) == report.n_used, "rows and report differ"
    assert report.n_read == report.n_used + len(report.set_aside), "records lost"
    for column in COLUMNS:
        values = table[column].mjd if column == "obstime" else table[column].value
        assert np.isfinite(values).all(), f"{column} is not finite"
    assert (np.abs(table["dec"]) <= 90.0 * u.deg).all(), "dec beyond a pole"
    assert ((table["ra"] >= 0.0 * u.deg) & (table["ra"] <= 360.0 * u.deg)).all(), (
        "ra off the circle"
    )
    for column in ("sigma_ra", "sigma_dec"):
        sigma = table[column].to_value(u.arcsec)
        assert ((sigma >= 1e-6) & (sigma <= 1e4)).all(), f"{column} beyond all measure"
    for kind, column in (("space", "observer_gcrs"), ("roving", "observer_itrf")):
        placed = np.isfinite(table[column].value).all(axis=1)
        assert (placed == (table["kind"] == kind)).all(), f"{column} does not fit kind"
    return report.n_read, report.n_used


def soak(form: str, records: int, seed: int, lines: list[bytes] | None = None) -> str:
    """Read damaged files of a format until so many records have been read; return the account."""
    rng = np.random.default_rng(seed)
    lines = lines or [line.encode() for line in SAMPLES[form]]
    before, behind = ENDS[form]
    n_read = n_used = n_batches = refused = 0
    while n_read < records:
        content = before + b"\n".join(mutated(lines, BATCH, rng)) + b"\n" + behind
        try:
            batch_read, batch_used = check(content, form)
        except Exception:
            Path("soak_failure.txt").write_bytes(content)
            print(f"failed after {n_read} records; the batch is kept as soak_failure.txt")
            raise
        n_read, n_used = n_read + batch_read, n_used + batch_used
        n_batches, refused = n_batches + 1, refused + (batch_read == 0)
    return (
        f"{form}: {n_read} records read, {n_used} used, {n_read - n_used} set aside; "
        f"{refused} of {n_batches} batches refused, no untyped error"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--format", choices=sorted(SAMPLES), default="mpc.obs80")
    parser.add_argument("files", nargs="*", type=Path)
    options = parser.parse_args()
    lines = [line for path in options.files for line in path.read_bytes().splitlines()]
    print(soak(options.format, options.records, options.seed, lines))


if __name__ == "__main__":
    main()
