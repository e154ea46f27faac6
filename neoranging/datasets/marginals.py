"""Distributions of a set beside those of the literature."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from neoranging.datasets.schema import ArcTable
from neoranging.datasets.store import read_arcs

__all__ = ["COLUMNS_NEEDED", "PUBLISHED", "as_text", "compare", "marginals", "marginals_of_set"]

PUBLISHED: Final[Mapping[str, tuple[str, float, float]]] = {
    "n_arcs": ("arcs", 568_127.0, 0.03),
    "n_objects": ("objects", 39_031.0, 0.03),
    "eta_tercile_1_rad_d": ("proper motion, lower tercile [rad/d]", 9.79e-3, 0.15),
    "eta_tercile_2_rad_d": ("proper motion, upper tercile [rad/d]", 2.27e-2, 0.15),
    "rho_tercile_1_au": ("range, lower tercile [au]", 0.191, 0.10),
    "rho_median_au": ("range, median [au]", 0.310, 0.10),
    "rho_tercile_2_au": ("range, upper tercile [au]", 0.484, 0.10),
    "pseudo_admissible_percent": ("true range admissible [%]", 99.4, 0.006),
}
"""Name, value in the literature, and relative tolerance of a set that shall be like it.

The values are those of the held-out arcs of the set of NEODyS (568,127 arcs of 39,031 objects)."""

COLUMNS_NEEDED: Final = (
    "designation",
    "proper_motion_rad_d",
    "rho_geo_au",
    "pseudo_admissible",
    "is_close",
)
"""Columns that `marginals` looks at."""


def marginals(table: ArcTable) -> dict[str, float]:
    """Figures of `PUBLISHED` for the arcs of a table; resampled close passages left aside."""
    own = ~table["is_close"]
    eta, rho = table["proper_motion_rad_d"][own], table["rho_geo_au"][own]
    if not len(eta):
        return {"n_arcs": 0.0, "n_objects": 0.0}
    return {
        "n_arcs": float(len(eta)),
        "n_objects": float(len(np.unique(table["designation"][own]))),
        "eta_tercile_1_rad_d": float(np.quantile(eta, 1 / 3)),
        "eta_tercile_2_rad_d": float(np.quantile(eta, 2 / 3)),
        "rho_tercile_1_au": float(np.quantile(rho, 1 / 3)),
        "rho_median_au": float(np.median(rho)),
        "rho_tercile_2_au": float(np.quantile(rho, 2 / 3)),
        "pseudo_admissible_percent": 100.0 * float(np.mean(table["pseudo_admissible"][own])),
    }


def marginals_of_set(
    folder: str | os.PathLike[str], *, partial: bool = False
) -> dict[str, float]:
    """Figures of a stored set; ``partial`` takes an unfinished one as well."""
    return marginals(read_arcs(os.fspath(folder), COLUMNS_NEEDED, partial=partial))


def compare(figures: Mapping[str, float]) -> list[dict[str, Any]]:
    """Put figures beside the published ones.

    Returns
    -------
    list of dict
        ``quantity``, ``published``, ``here``, ``ratio``, ``tolerance``, ``within``.
    """
    rows = []
    for key, (name, published, tolerance) in PUBLISHED.items():
        if key in figures:
            ratio = figures[key] / published
            rows.append(
                {
                    "quantity": name,
                    "published": published,
                    "here": figures[key],
                    "ratio": round(ratio, 4),
                    "tolerance": tolerance,
                    "within": bool(abs(ratio - 1.0) <= tolerance),
                }
            )
    return rows


def as_text(rows: list[dict[str, Any]]) -> str:
    """The comparison as lines of text."""
    lines = [f"{'':38s} {'published':>10s} {'here':>10s} {'ratio':>7s}"]
    for row in rows:
        mark = "" if row["within"] else f"  beyond {row['tolerance']:.0%}"
        values = f"{row['published']:>10.6g} {row['here']:>10.6g} {row['ratio']:>7.3f}"
        lines.append(f"{row['quantity']:38s} {values}{mark}")
    return "\n".join(lines)
