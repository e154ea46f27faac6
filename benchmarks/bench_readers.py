"""Speed of the observation readers: records per second on one core, the table included.

    OMP_NUM_THREADS=1 python benchmarks/bench_readers.py [--records 100000] [--format mpc.obs80]

Each format is one entry of CASES: a function that makes the bytes of a file with N records.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from astropy.table import QTable

import neoranging.observations  # noqa: F401  (registers the formats)


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


CASES: dict[str, Callable[[int], bytes]] = {
    "mpc.obs80": obs80_content,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--format", choices=sorted(CASES), action="append")
    options = parser.parse_args()
    for name in options.format or CASES:
        content = CASES[name](options.records)
        seconds = []
        for _ in range(options.repeat):
            start = time.perf_counter()
            table = QTable.read(content, format=name)
            seconds.append(time.perf_counter() - start)
        best = min(seconds)
        report = table.meta["report"]
        print(
            f"{name}: {report.n_used} of {report.n_records} records used, {best:.3f} s, "
            f"{report.n_records / best:,.0f} records/s"
        )


if __name__ == "__main__":
    main()
