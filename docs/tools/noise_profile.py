"""Print the scatter of the observations of a real set, in units of their sigmas.

Run ``python docs/tools/noise_profile.py STATIONS NIGHTS``: two sets of the same observations, made
without and with ``--group-by night``. The arcs are held against their orbits, shifted to the middle
observation. Scatter is that of an arc of one station about its mean; the offset follows from the
difference of the means of two stations in one night.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import numpy.typing as npt

from neoranging.core import Arcs
from neoranging.core.geometry import wrap_angle
from neoranging.lab.sets import ArcTable, read_arcs, to_core
from neoranging.lab.study import Selection
from neoranging.lab.training.noise import noise_free

CAP = 60
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
FAINT = 20.0
Floats = npt.NDArray[np.float64]


def errors(folder: Path) -> tuple[ArcTable, Arcs, Floats, npt.NDArray[np.bool_]]:
    """Observed minus true directions, (2, n) in units of the sigmas; arcs that have them."""
    table = Selection(None, cap=CAP).of(read_arcs(folder))
    arcs = to_core(table)
    clean, exact = noise_free(table, arcs)
    east = wrap_angle(arcs.ra - clean.ra) * np.cos(arcs.dec) / arcs.sigma_ra
    return table, arcs, np.stack([east, (arcs.dec - clean.dec) / arcs.sigma_dec]), exact


def shares(folder: Path) -> None:
    """Scatter of arcs of one station about their mean."""
    table, arcs, error, exact = errors(folder)
    mean = np.stack([arcs.sum(axis) / arcs.counts for axis in error])
    scatter = error - mean[:, arcs.owner]
    freedom = 2.0 * (arcs.counts - 1.0)
    share = np.sqrt(arcs.sum(np.sum(scatter**2, axis=0)) / freedom)
    faint, half = table["mag"] >= FAINT, halves(table)
    parts = {
        "all": exact,
        "one half of the objects": exact & half,
        "the other half": exact & ~half,
        f"magnitude {FAINT:g} or fainter": exact & faint,
    }
    for name, rows in parts.items():
        print(f"{name}: {rows.sum()} arcs of {len(np.unique(table['designation'][rows]))} objects")
        print(
            f"  scatter / claimed, quantiles {LEVELS}: {np.quantile(share[rows], LEVELS).round(3)}"
        )
        # a logarithm of a root mean square of f squares scatters by 1 / sqrt(2 f) of its own
        all_, own = np.var(np.log(share[rows])), np.mean(0.5 / freedom[rows])
        print(
            f"  spread of its logarithm: {np.sqrt(all_):.2f}, {np.sqrt(all_ - own):.2f} of visits"
        )


def halves(table: ArcTable) -> npt.NDArray[np.bool_]:
    """Mask of the arcs of one half of the objects, drawn at random."""
    names, row = np.unique(table["designation"], return_inverse=True)
    return np.random.default_rng(0).permutation(len(names))[row] < len(names) // 2


def offsets(folder: Path) -> None:
    """Differences between the means of stations in one night."""
    table, arcs, error, exact = errors(folder)
    stations = np.unique(table["stations"], return_inverse=True)[1]
    (owner, _), row = np.unique(np.stack([arcs.owner, stations]), axis=1, return_inverse=True)
    mean = np.stack([np.bincount(row, axis) / np.bincount(row) for axis in error])
    same = (owner[1:] == owner[:-1]) & exact[owner[1:]]
    off = np.diff(mean, axis=1) / np.sqrt(2.0)
    half = halves(table)[owner[1:]]
    parts = {"all": same, "one half of the objects": same & half, "the other half": same & ~half}
    for name, rows in parts.items():
        size = np.abs(off[:, rows])
        robust = 1.4826 * np.median(size)
        # as long in its tails as the scatter is: offsets differ in size from visit to visit
        print(f"  quantiles (0.68, 0.95, 0.99): {np.quantile(size, (0.68, 0.95, 0.99)).round(2)}")
        print(
            f"offset / claimed by the median, {name}, {rows.sum()} pairs of stations: {robust:.2f}"
        )


def main() -> None:
    """Print both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stations", type=Path)
    parser.add_argument("nights", type=Path)
    options = parser.parse_args()
    shares(options.stations)
    offsets(options.nights)


if __name__ == "__main__":
    main()
