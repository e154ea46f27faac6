"""Simulated tracklets as the table of a survey: plain columns, and ids."""

from __future__ import annotations

import numpy as np
import pandas as pd
from simulated_arcs import simulate

from neoranging.observations.observatories import itrf_positions


def survey_table(m: int, *, seed: int, names: np.ndarray | None = None) -> pd.DataFrame:
    """Observations of m tracklets, none of which a local noon divides.

    ``names`` are numbers for their ids, which rise by default.
    """
    arcs = simulate(2 * m, 0.1, seed=seed).with_noise(np.random.default_rng(seed + 1))
    x, y, _ = itrf_positions(arcs.station).T
    night = np.floor(arcs.arcs.t + np.arctan2(y, x) / (2.0 * np.pi) - 0.5)
    first, last = night[arcs.arcs.offsets[:-1]], night[arcs.arcs.offsets[1:] - 1]
    table = arcs.take(np.flatnonzero(first == last)[:m]).tracklets().to_table()
    names = np.arange(m) + 1000 if names is None else names
    return pd.DataFrame(
        {
            "obstime": table["obstime"].isot,
            "ra": table["ra"].value,
            "dec": table["dec"].value,
            "station": np.asarray(table["station"]),
            "tracklet": [f"t{names[k]}" for k in table["tracklet_number"]],
        }
    )
