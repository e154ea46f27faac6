"""Ranging by kete of arcs in a table; run by ``ranging.py`` with the Python that has kete.

    python kete_ranging.py OBSERVATIONS.csv FOLDER --kernels FOLDER --temperature 10

One row of the table is an observation: arc, MJD TDB, direction and errors [rad], heliocentric state
of the observer in ICRS axes [au, au/d]. Each arc leaves a file of its draws in FOLDER, heliocentric
positions and velocities in ICRS axes as kete gives them; arcs that have one are not asked again,
and the rest comes in an order by chance.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

ARCSEC = np.degrees(3600.0)


def import_kete(kernels: Path) -> Any:
    """kete with the kernels of a folder, on one core."""
    os.environ["KETE_CACHE_DIR"] = str(kernels)
    os.environ.setdefault("RAYON_NUM_THREADS", "1")  # CPU times of one core are what is compared
    with mock.patch("time.sleep"):  # kernels that it cannot download it asks for many times
        import kete
        import kete.orbit_fitting

    return kete


def read_observations(path: Path, kete: Any) -> dict[int, list[Any]]:
    """Observations of the arcs of a table, as kete takes them."""
    table = np.genfromtxt(path, delimiter=",", names=True)
    arcs: dict[int, list[Any]] = {int(arc): [] for arc in np.unique(table["arc"])}
    for row in table:
        state = kete.State(
            "observer",
            row["t_mjd_tdb"] + 2_400_000.5,
            [row[name] for name in ("x", "y", "z")],
            [row[name] for name in ("vx", "vy", "vz")],
            frame=kete.Frames.Equatorial,
            center_id=10,
        )
        direction = np.degrees([row["ra"], row["dec"]])
        sigma = ARCSEC * row["sigma_ra"], ARCSEC * row["sigma_dec"]
        observation = kete.orbit_fitting.Observation.optical(state, *direction, *sigma)
        arcs[int(row["arc"])].append(observation)
    return arcs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("observations", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kernels", type=Path, required=True)
    parser.add_argument("--temperature", type=float, default=10.0)
    parser.add_argument("--draws", type=int, default=1000)
    options = parser.parse_args()
    kete = import_kete(options.kernels)
    arcs = read_observations(options.observations, kete)
    options.folder.mkdir(parents=True, exist_ok=True)
    # by chance, so that what is there after an interruption is a sample of all
    for arc in np.random.default_rng(0).permutation(sorted(arcs)):
        path = options.folder / f"{arc}.npz"
        if path.exists():
            continue
        begin = time.process_time()
        try:
            samples = kete.orbit_fitting.fit_orbit_ranging(
                arcs[arc], options.draws, options.temperature
            )
        except ValueError as problem:  # no cell of its grid survives: an answer too
            draws, epoch, warning = np.empty((0, 6)), np.nan, str(problem)
        else:
            states = [state.as_equatorial for state in samples.draws]
            draws = np.array([[*state.pos, *state.vel] for state in states])
            epoch, warning = samples.epoch - 2_400_000.5, samples.convergence_warning or ""
        seconds = time.process_time() - begin
        part = path.with_suffix(".part.npz")
        np.savez(part, draws=draws, epoch=epoch, warning=warning, seconds=seconds)
        part.rename(path)


if __name__ == "__main__":
    main()
