"""Pack the Minor Planet Center's table of near-Earth objects for the package.

The source is a comma-separated copy of ``nea_extended`` with the columns that
`neoranging.orbits.catalogue.read_orbits` knows::

    python docs/tools/make_catalogue.py neo_orbits.csv.gz

Numbers become integers numbers in units of their last printed decimal, which keeps every digit; the
script checks that loading gives back exactly the numbers of the source.
"""

from __future__ import annotations

import argparse
import hashlib
from pathlib import Path

import numpy as np
import pandas as pd

from neoranging.orbits import load_catalogue, read_orbits
from neoranging.orbits.catalogue import CATALOGUE_FILE, DECIMALS, MISSING, _columns

TEXTS = ("designation", "principal_designation")


def packed(source: Path) -> dict[str, np.ndarray]:
    """Columns of the file."""
    columns = _columns(pd.read_csv(source, dtype=str, keep_default_na=False), str(source))
    orbits = read_orbits(source)
    result = {name: np.char.encode(columns[name], "ascii") for name in TEXTS}
    for name, decimals in DECIMALS.items():
        scaled = columns[name] * 10.0**decimals
        integers = np.where(np.isnan(scaled), MISSING, np.rint(scaled)).astype(np.int64)
        back = np.where(integers == MISSING, np.nan, integers / 10.0**decimals)
        if not np.array_equal(back, columns[name], equal_nan=True):
            raise SystemExit(f"{name} has more than {decimals} decimals: raise DECIMALS")
        result[name] = integers.astype(np.int32) if integers.max() < 2**31 else integers
    result |= {"n_obs": orbits.n_obs, "n_opp": orbits.n_opp.astype(np.int16), "U": orbits.U}
    return result


def main() -> None:
    """Write the file, check it, and print its size and checksum."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("source", type=Path)
    parser.add_argument("--output", type=Path, default=CATALOGUE_FILE)
    arguments = parser.parse_args()
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(arguments.output, **packed(arguments.source))
    content = arguments.output.read_bytes()
    print(f"{load_catalogue(arguments.output)}: {len(content)} bytes")
    print(f"sha256 {hashlib.sha256(content).hexdigest()}")


if __name__ == "__main__":
    main()
