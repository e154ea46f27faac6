"""Cost of `neoranging estimate --jobs` by the size of the input: `python bench_stream.py 1e6 1e7`.

Tables of Parquet with three observations of each of N tracklets are made in a folder, piece by
piece, unless they are there. Each is estimated by the command, in a process of its own. Printed are
the time by the wall, processor time for each tracklet (of all processes), and peak memory of the
command and of its largest worker, which are not to grow with N.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
from simulated_arcs import simulate

DISTINCT = 50_000  # simulated; more are the same at other places of the file
ROW_GROUP = 300_000


def make(path: Path, n: int) -> None:
    """Write a table of n tracklets, ids rising."""
    few = simulate(min(n, DISTINCT), 0.1, n_observations=3, seed=1)
    few = few.with_noise(np.random.default_rng(2))
    columns = few.tracklets()._columns
    sky = {
        "mjd_utc": columns.jd1 - 2_400_000.5 + columns.jd2,
        "ra": columns.ra,
        "dec": columns.dec,
        "station": columns.station,
        "sigma_ra": columns.sigma[:, 0],
        "sigma_dec": columns.sigma[:, 1],
    }
    part = pa.table(sky)
    owner = np.repeat(np.arange(len(few)), np.diff(few.arcs.offsets))
    whole = path.with_suffix(".part")
    schema = pa.schema([("tracklet", pa.int64()), *part.schema])
    with parquet.ParquetWriter(whole, schema) as writer:
        for start in range(0, n, len(few)):
            rows = int(np.searchsorted(owner, n - start))
            table = part.slice(0, rows).add_column(0, "tracklet", pa.array(owner[:rows] + start))
            writer.write_table(table, row_group_size=ROW_GROUP)
    whole.rename(path)


def run(path: Path, out: Path, arguments: argparse.Namespace) -> tuple[float, float, float]:
    """Wall and processor time [s] of the command, and peak memory of a process [MB]."""
    command = [sys.executable, "-m", "neoranging", "estimate", str(path), "--out", str(out), "-q"]
    command += ["--method", arguments.method, "--chunk", str(arguments.chunk)]
    if arguments.jobs:
        command += ["--jobs", str(arguments.jobs)]
    # a process that measures its children's children
    script = (
        "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True); "
        "used = resource.getrusage(resource.RUSAGE_CHILDREN); "
        "print(used.ru_utime + used.ru_stime, used.ru_maxrss)"
    )
    begin = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", script, *command], stdout=subprocess.PIPE, text=True, check=True
    )
    processor, peak = map(float, done.stdout.split())
    return time.perf_counter() - begin, processor, peak / 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("n", nargs="*", type=float, default=[1e4, 1e5])
    parser.add_argument("--folder", type=Path, default=Path("stream"))
    parser.add_argument("--method", default="gauss")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="0: without --jobs")
    parser.add_argument("--chunk", type=int, default=100_000)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    print(f"{arguments.method}, {arguments.jobs} jobs, pieces of {arguments.chunk} records")
    print(f"{'tracklets':>12} {'wall':>9} {'CPU':>15} {'peak of a process':>18}")
    for number in arguments.n:
        n = int(number)
        path = arguments.folder / f"{n}.parquet"
        if not path.exists():
            make(path, n)
        out = arguments.folder / f"{n}.ranges.parquet"
        wall, processor, peak = run(path, out, arguments)
        rows = parquet.read_metadata(out).num_rows
        assert rows == n, f"{rows} rows of {n} tracklets"
        print(
            f"{n:12,} {wall:7.1f} s {1e6 * processor / n:9.1f} us each {peak:15.0f} MB", flush=True
        )


if __name__ == "__main__":
    main()
