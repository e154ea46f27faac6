"""Random damage to observation files: nothing may escape the readers, nothing may be lost.

    python benchmarks/soak_readers.py [--lines 100000] [--seed 1] [--format mpc.obs80] [FILE ...]

Lines of the built-in samples, or of the files given, are mutated (bytes replaced, removed or
inserted, lines cut or joined) and read in batches. A reader may refuse a batch with
ObservationFormatError; any other exception, or an account that does not balance, ends the soak.
Each format is one entry of SAMPLES.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
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

SAMPLES: dict[str, list[str]] = {
    "mpc.obs80": OBS80_SAMPLE,
}
COLUMNS = ("obstime", "ra", "dec", "sigma_ra", "sigma_dec")
BATCH = 500


def mutated(lines: list[bytes], n: int, rng: np.random.Generator) -> list[bytes]:
    """Draw runs of lines and damage about half of them."""
    drawn: list[bytes] = []
    while len(drawn) < n:
        start = int(rng.integers(len(lines)))
        drawn += lines[start : start + int(rng.integers(1, 6))]
    return [damaged(line, rng) if rng.random() < 0.5 else line for line in drawn[:n]]


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
    """Read one batch; return the records found and those used."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NeoRangingWarning)
            table = QTable.read(content, format=name)
    except ObservationFormatError:
        return 0, 0
    report = table.meta["report"]
    assert len(table) == report.n_used, "rows and report differ"
    assert report.n_records == report.n_used + len(report.set_aside), "records lost"
    for column in COLUMNS:
        values = table[column].mjd if column == "obstime" else table[column].value
        assert np.isfinite(values).all(), f"{column} is not finite"
    for kind, column in (("space", "observer_gcrs"), ("roving", "observer_itrf")):
        placed = np.isfinite(table[column].value).all(axis=1)
        assert (placed == (table["kind"] == kind)).all(), f"{column} does not fit kind"
    return report.n_records, report.n_used


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--format", choices=sorted(SAMPLES), default="mpc.obs80")
    parser.add_argument("files", nargs="*", type=Path)
    options = parser.parse_args()
    lines = [line.encode() for line in SAMPLES[options.format]]
    if options.files:
        lines = [line for path in options.files for line in path.read_bytes().splitlines()]
    rng = np.random.default_rng(options.seed)
    found = used = 0
    for done in range(0, options.lines, BATCH):
        content = b"\n".join(mutated(lines, min(BATCH, options.lines - done), rng))
        try:
            n_found, n_used = check(content, options.format)
        except Exception:
            Path("soak_failure.txt").write_bytes(content)
            print(f"failed in the batch after {done} lines; kept as soak_failure.txt")
            raise
        found, used = found + n_found, used + n_used
    print(
        f"{options.format}: {options.lines} lines, {found} records, {used} used, "
        f"{found - used} set aside, no untyped error"
    )


if __name__ == "__main__":
    main()
