"""Single objects of a study, with the intervals of every method."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from neoranging.lab.sets.schema import ArcTable
from neoranging.lab.sets.store import read_manifest
from neoranging.lab.study.scores import INTERVAL_LEVEL
from neoranging.lab.study.selection import Selection
from neoranging.typing import IntArray


class CaseArcs(NamedTuple):
    """Arcs of single objects, drawn at random."""

    table: ArcTable
    objects: list[str]
    rows: IntArray | None
    """Where they stand among the arcs of the study; None for unseen ones."""


class Cases(NamedTuple):
    """Single objects, with intervals of every method."""

    table: ArcTable
    """Their arcs."""
    scored: list[pd.DataFrame]
    """Scores of each method, with bounds."""
    objects: list[str]
    are_unseen: bool
    """They belong to no part that is judged or trained on."""
    rows: pd.DataFrame
    """Every number of them."""


def draw_cases(
    folder: str | os.PathLike[str],
    selection: Selection,
    table: ArcTable,
    *,
    n_objects: int = 6,
    least: int = 5,
) -> CaseArcs | None:
    """Arcs of objects drawn at random.

    Those of the split ``"unseen"`` if the set has it, else objects of the study itself.

    Parameters
    ----------
    folder : path-like
        Of the set.
    selection : Selection
    table : ArcTable
        The arcs of the study.
    n_objects, least : int
        How many objects, and how many arcs each has at least.

    Returns
    -------
    CaseArcs or None
        None where no object has enough arcs.
    """
    parts = read_manifest(Path(folder)).get("splits", {}).get("parts", [])
    unseen = "unseen" not in (selection.parts or ("unseen",)) and any(
        part["split"] == "unseen" and part["n_arcs"] for part in parts
    )
    pool = Selection(split="unseen").read(folder) if unseen else table
    names, counts = np.unique(pool["designation"], return_counts=True)
    draw = np.random.default_rng(selection.seed)
    order = draw.permutation(np.flatnonzero(counts >= least))
    objects = sorted(names[order[:n_objects]].tolist())
    if not objects:
        return None
    rows = np.flatnonzero(np.isin(pool["designation"], objects))
    rows = rows[np.lexsort((pool["t2_mjd_tdb"][rows], pool["designation"][rows]))]
    return CaseArcs(pool.take(rows), objects, None if unseen else rows)


def case_rows(table: ArcTable, scores: pd.DataFrame) -> pd.DataFrame:
    """Every number of one method on the arcs of single objects."""
    return pd.DataFrame(
        {
            "method": scores.attrs["method"],
            "origin": scores.attrs["origin"],
            "level": INTERVAL_LEVEL,
            "designation": table["designation"],
            "t2_mjd_tdb": table["t2_mjd_tdb"],
            "span_d": scores.span,
            "eta_rad_d": scores.eta,
            "rho_true_au": scores.rho_true,
            "rho_au": scores.rho,
            "low_au": scores.low,
            "high_au": scores.high,
            "inside": scores.rho_true.between(scores.low, scores.high),
        }
    )
