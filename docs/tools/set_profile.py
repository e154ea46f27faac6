"""Print how many observations and stations the arcs of stored sets have, and how long they are.

Run ``python docs/tools/set_profile.py DIR ...``; resampled close passages are left aside.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from neoranging.datasets.store import iterate_arcs

COLUMNS = ("n_obs", "span_d", "station", "stations", "is_close")


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


if __name__ == "__main__":
    main()
