"""Seconds that the page of a night takes by tracklet: ``python benchmarks/bench_night.py FILE...``.

Files of observations as ``neoranging report`` takes them; a few hundred tracklets give the figure.
Compilation is done before on the first eight.
"""

import sys
import time

import neoranging as nr
from neoranging.night import NightPage


def main(paths):
    tracklets = nr.read_tracklets(paths)
    _ = NightPage(tracklets[:8]).html
    wall, cpu = time.perf_counter(), time.process_time()
    page = NightPage(tracklets).html
    wall, cpu, n = time.perf_counter() - wall, time.process_time() - cpu, len(tracklets)
    print(f"{n} tracklets: {wall:.1f} s, {cpu:.1f} s of processor, {len(page) / 1e6:.1f} MB")
    print(f"a thousand take {1e3 * cpu / n:.0f} s of processor, {len(page) / n / 1e3:.1f} kB each")


if __name__ == "__main__":
    main(sys.argv[1:] or [nr.sample(name) for name in ("impactors", "2024YR4")])
