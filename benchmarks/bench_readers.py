"""Speed of the observation readers: records per CPU second, the table included.

    OMP_NUM_THREADS=1 python benchmarks/bench_readers.py [--records 100000] [--format mpc.obs80]

Each format is one entry of CASES: a function that makes the bytes of a file with N records.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial

import numpy as np
from astropy import units as u
from astropy.table import QTable
from astropy.time import Time
from timing import alternate

import neoranging.observations  # noqa: F401  (registers the formats)
from neoranging.observations.ades.write import format_ades_psv
from neoranging.observations.rwo.write import format_rwo


def obs80_content(n: int) -> bytes:
    """N ground-based records of a survey night, four to a tracklet."""
    rng = np.random.default_rng(1)
    ra = rng.integers(0, 86_400_00, n)
    dec = rng.integers(0, 80 * 36_000, n)
    day = np.sort(rng.integers(20_000_000, 29_000_000, n))
    names = [f"K{20 + k // 9000:02d}A{k // 10 % 100:02d}{'ABCDEFGHJK'[k % 10]}" for k in range(n)]
    lines = [
        f"     {names[k // 4]}  C2024 12 {day[k] / 1e6:09.6f}"
        f"{ra[k] // 360_000:02d} {ra[k] // 6000 % 60:02d} {ra[k] % 6000 / 100:06.3f}"
        f"{'+-'[k % 2]}{dec[k] // 36_000:02d} {dec[k] // 600 % 60:02d} {dec[k] % 600 / 10:05.2f}"
        f"         {19 + k % 30 / 10:4.1f} GV     {('G96', 'F51', '703', 'W68')[k // 100 % 4]}"
        for k in range(n)
    ]
    return "\n".join(lines).encode()


def rwo_content(n: int) -> bytes:
    """N records of one object as a fit leaves them, one in ten from a spacecraft."""
    return format_rwo(_night(n)).encode()


def ades_content(n: int) -> bytes:
    """N records of one object as an ADES submission."""
    return format_ades_psv(_night(n)).encode()


def _night(n: int) -> QTable:
    rng = np.random.default_rng(1)
    space = np.arange(n) % 10 == 0
    gcrs = np.where(space[:, None], rng.uniform(-7e3, 7e3, (n, 3)).round(4), np.nan)
    return QTable(
        {
            "designation": np.repeat("2024 YR4", n),
            "obstime": Time(60_000 + np.sort(rng.uniform(0, 900, n)).round(6), format="mjd"),
            "ra": rng.uniform(0, 360, n) * u.deg,
            "dec": rng.uniform(-90, 90, n) * u.deg,
            "sigma_ra": rng.uniform(0.1, 2, n) * u.arcsec,
            "sigma_dec": rng.uniform(0.1, 2, n) * u.arcsec,
            "mag": rng.uniform(15, 23, n).round(1),
            "band": np.repeat("G", n),
            "station": np.where(space, "C51", rng.choice(["G96", "F51", "703", "W68"], n)),
            "kind": np.where(space, "space", "ground"),
            "observer_gcrs": gcrs * u.km,
            "note2": np.repeat("C", n),
            "catalog": np.repeat("V", n),
            "chi": rng.uniform(0, 3, n),
        }
    )


CASES: dict[str, Callable[[int], bytes]] = {
    "mpc.obs80": obs80_content,
    "orbfit.rwo": rwo_content,
    "ades.psv": ades_content,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--format", choices=sorted(CASES), action="append")
    options = parser.parse_args()
    contents = {name: CASES[name](options.records) for name in options.format or CASES}
    seconds = alternate(
        {name: partial(QTable.read, content, format=name) for name, content in contents.items()},
        options.repeat,
    )
    for name, values in seconds.items():
        best, report = values.min(), QTable.read(contents[name], format=name).meta["report"]
        print(
            f"{name}: {report.n_used} of {report.n_read} records used, {best:.3f} s of CPU, "
            f"{report.n_read / best:,.0f} records/s"
        )


if __name__ == "__main__":
    main()
