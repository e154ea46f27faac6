"""Scores by digest2 of tracklets in a table; run by ``neo_score.py`` with the Python that has it.

    python digest2_score.py OBSERVATIONS.csv OBSCODES SCORES.csv

One row of the first table is an observation: arc, MJD UTC, direction [deg], magnitude V and
station. One row of the second is an arc: its scores of the class NEO, of all objects and of those
that are not known, from 0 to 100, and the time. Errors are those that digest2 has for each station.
"""

from __future__ import annotations

import argparse
import csv
import time
from itertools import groupby
from pathlib import Path
from typing import Any


def read_observations(path: Path) -> dict[str, list[Any]]:
    """Observations of the arcs of a table, as digest2 takes them."""
    from digest2 import Observation

    with path.open() as file:
        rows = list(csv.DictReader(file))
    return {
        arc: [
            Observation(
                mjd=float(row["mjd_utc"]),
                ra=float(row["ra_deg"]),
                dec=float(row["dec_deg"]),
                mag=float(row["mag"]),
                band="V",
                obscode=row["station"],
            )
            for row in own
        ]
        for arc, own in groupby(rows, key=lambda row: row["arc"])
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("observations", type=Path)
    parser.add_argument("obscodes", type=Path)
    parser.add_argument("scores", type=Path)
    options = parser.parse_args()
    from digest2 import Digest2

    with (
        Digest2(obscodes_path=str(options.obscodes)) as digest2,
        options.scores.open("w", newline="") as file,
    ):
        writer = csv.writer(file)
        writer.writerow(["arc", "raw", "noid", "cpu_ms"])
        for arc, observations in read_observations(options.observations).items():
            begin = time.process_time()
            result = digest2.classify_tracklet(observations, classes=["NEO"])
            cpu = 1e3 * (time.process_time() - begin)
            writer.writerow([arc, result.raw.NEO, result.noid.NEO, cpu])


if __name__ == "__main__":
    main()
