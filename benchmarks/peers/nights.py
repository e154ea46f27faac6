"""Tracklets that all programs are given, and the forms in which each of them reads them."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from astropy import units as u
from astropy.time import Time

import neoranging as nr
from neoranging.constants import R_EARTH_M
from neoranging.core.arcs import Arcs
from neoranging.lab.sets import ArcTable
from neoranging.observations import observatories

sys.path.append(str(Path(__file__).resolve().parents[2] / "tests"))
from simulated_arcs import SimulatedArcs, simulate

SPAN = 0.1
"""Length of the simulated nights [d]."""

REAL = {3: ("2024YR4", "2024 YR4", "W68"), 7: ("impactors", "2014 AA", "G96")}
REAL[8] = ("impactors", "2008 TC3", "G96")
"""Sample file, designation and station of a real night, by its number of observations."""


def simulated(n: int, n_observations: int | tuple[int, int] = 3, seed: int = 1) -> SimulatedArcs:
    """Nights of near-Earth objects from five stations, with errors of 0.2 arcsec."""
    arcs = simulate(n, SPAN, seed=seed, n_observations=n_observations)
    return arcs.with_noise(np.random.default_rng(seed + 1))


def real(n_observations: int) -> nr.Tracklet:
    """A real night of the samples that come with the package."""
    file, designation, station = REAL[n_observations]
    for tracklet in nr.read_tracklets(nr.sample(file)):
        if (tracklet.designation, tracklet.station[0]) == (designation, station):
            assert len(tracklet) == n_observations
            return tracklet
    raise ValueError(f"no night of {designation} from {station} in the sample {file}")


def fresh(tracklets: nr.TrackletSet) -> nr.TrackletSet:
    """Copy of a set with nothing worked out yet, not even where its observers were."""
    return tracklets[np.arange(len(tracklets))]


def write_states(arcs: Arcs, names: np.ndarray, path: Path) -> None:
    """Directions and errors [rad] with states of the observers, for kete, layup and adam_core."""
    table = pd.DataFrame({"arc": names[arcs.owner], "t_mjd_tdb": arcs.t})
    for name in ("ra", "dec", "sigma_ra", "sigma_dec"):
        table[name] = getattr(arcs, name)
    for columns, vectors in ((["x", "y", "z"], arcs.position), (["vx", "vy", "vz"], arcs.velocity)):
        table[columns] = vectors
    table.to_csv(path, index=False, float_format="%.17g")


def write_sky(tracklets: nr.TrackletSet, names: np.ndarray, folder: Path) -> tuple[Path, Path]:
    """Directions [deg], magnitudes and stations, and where the stations are, for digest2."""
    folder.mkdir(parents=True, exist_ok=True)
    table = pd.DataFrame(
        {
            "arc": np.repeat(names, tracklets.counts),
            "mjd_utc": tracklets.obstime.utc.mjd,
            "ra_deg": tracklets.coord.ra.deg,
            "dec_deg": tracklets.coord.dec.deg,
            "mag": tracklets.mag,
            "station": tracklets.station,
        }
    )
    files = folder / "observations.csv", folder / "obscodes"
    table.to_csv(files[0], index=False, float_format="%.12g")
    lines = ["Code  Long.   cos      sin    Name"]
    for code in np.unique(tracklets.station):
        x, y, z = observatories.itrf_positions(code) / R_EARTH_M
        longitude = np.degrees(np.arctan2(y, x)) % 360.0
        lines.append(f"{code} {longitude:9.5f}{np.hypot(x, y):8.6f}{z:+9.6f}{code}")
    files[1].write_text("\n".join(lines) + "\n")
    return files


def write_obs80(tracklet: nr.Tracklet, copies: int, path: Path) -> None:
    """Lines of 80 columns for find_orb, of as many objects that were seen alike."""
    from astropy.table import vstack

    parts = []
    for k in range(copies):
        table = tracklet.to_table()
        table["designation"] = f"NR{k:05d}"
        parts.append(table)
    vstack(parts, metadata_conflicts="silent").write(path, format="mpc.obs80", overwrite=True)


def tracklets_of(table: ArcTable) -> nr.TrackletSet:
    """The arcs of a table with their magnitudes, named by their rows."""
    owner = np.repeat(np.arange(len(table)), table["n_obs"])
    sigma = np.stack([table["sigma_ra_rad"], table["sigma_dec_rad"]], axis=1)
    return nr.TrackletSet.from_arrays(
        Time(table["t_mjd_tdb"], format="mjd", scale="tdb"),
        table["ra_rad"] << u.rad,
        table["dec_rad"] << u.rad,
        station=table["stations"],
        tracklet=owner,
        sigma=sigma << u.rad,
        designation=table["designation"][owner],
        mag=table["mag"][owner],
        band=np.full(len(owner), "V"),
    )
