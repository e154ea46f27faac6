"""Print figures of the arcs of stored sets: observations, stations, length, elongation.

Run ``python docs/tools/set_profile.py DIR ...``; resampled close passages are left aside.
Elongations are of at most 20 arcs of an object.
"""

from __future__ import annotations

import argparse
from itertools import pairwise
from pathlib import Path

import numpy as np

from neoranging.core.geometry import dot, line_of_sight, norm
from neoranging.ephemeris import earth_state
from neoranging.lab.sets import ArcTable
from neoranging.lab.sets.store import iterate_arcs
from neoranging.lab.study import Selection

COLUMNS = (
    *("n_obs", "span_d", "station", "stations", "is_close"),
    *("t2_mjd_tdb", "ra2_rad", "dec2_rad", "H_mag", "designation"),
)
SIZES = (13.0, 17.0, 19.0, 21.0, 24.0)
LEVELS = (0.05, 0.25, 0.5, 0.75)


def elongations(table: ArcTable) -> None:
    """Print quantiles of the elongation by absolute magnitude."""
    table = Selection(None, cap=20).of(table)
    earth, _ = earth_state(table["t2_mjd_tdb"])
    sight = line_of_sight(table["ra2_rad"], table["dec2_rad"])
    elongation = np.degrees(np.arccos(np.clip(-dot(sight, earth) / norm(earth), -1.0, 1.0)))
    for low, high in pairwise(SIZES):
        rows = (table["H_mag"] >= low) & (table["H_mag"] < high)
        quantiles = np.quantile(elongation[rows], LEVELS).round() if rows.any() else "no arcs"
        print(f"  elongation [deg] of H {low:g} to {high:g}, quantiles {LEVELS}: {quantiles}")


def main() -> None:
    """Print one paragraph for each set."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="+", type=Path)
    for folder in parser.parse_args().sets:
        parts = [part.take(~part["is_close"]) for part in iterate_arcs(folder, COLUMNS, None)]
        n_obs, span = (np.concatenate([p[name] for p in parts]) for name in ("n_obs", "span_d"))
        stations = np.concatenate(
            [[len(np.unique(codes)) for codes in np.split(p["stations"], p.offsets[1:-1])]
             for p in parts]
        )  # fmt: skip
        alone = stations == 1
        print(f"{folder.name}: {len(n_obs)} arcs")
        print(f"  observations: mean {n_obs.mean():.2f}, median {np.median(n_obs):.0f}")
        print(f"  of arcs of one station: mean {n_obs[alone].mean():.2f}")
        shares = ", ".join(f"{k}: {100 * np.mean(stations == k):.1f} %" for k in (1, 2, 3))
        print(f"  stations: {shares}, most {stations.max()}")
        print(f"  length [min]: quartiles {np.quantile(span, (0.25, 0.5, 0.75)) * 1440.0}")
        elongations(ArcTable.concatenate(parts))


if __name__ == "__main__":
    main()
