"""Distributions of a set beside those of the literature.

The published figures are those of the set of NEODyS of the paper; the limits within which a set
like it shall lie are our own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from neoranging.lab.sets.schema import ArcTable
from neoranging.tables import text_table


class Published(NamedTuple):
    """A figure of the set of the literature, and the limits for a set like it."""

    quantity: str
    value: float
    least: float
    most: float


def _near(quantity: str, value: float, tolerance: float) -> Published:
    return Published(quantity, value, value * (1.0 - tolerance), value * (1.0 + tolerance))


PUBLISHED: Final[Mapping[str, Published]] = {
    "n_arcs": _near("arcs", 568_127.0, 0.03),
    "n_objects": _near("objects", 39_031.0, 0.03),
    "eta_tercile_1_rad_d": _near("proper motion, lower tercile [rad/d]", 9.79e-3, 0.15),
    "eta_tercile_2_rad_d": _near("proper motion, upper tercile [rad/d]", 2.27e-2, 0.15),
    "rho_tercile_1_au": _near("range, lower tercile [au]", 0.191, 0.10),
    "rho_median_au": _near("range, median [au]", 0.310, 0.10),
    "rho_tercile_2_au": _near("range, upper tercile [au]", 0.484, 0.10),
    "observations_per_arc": _near("observations of an arc", 7.8, 0.10),
    "pseudo_admissible_percent": Published("true range admissible [%]", 99.4, 99.0, 100.0),
}
"""The set of NEODyS as published: its size, and the distributions of its held-out arcs."""

COLUMNS_NEEDED: Final = (
    "designation",
    "proper_motion_rad_d",
    "rho_geo_au",
    "pseudo_admissible",
    "n_obs",
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
        "observations_per_arc": float(np.mean(table["n_obs"][own])),
        "pseudo_admissible_percent": 100.0 * float(np.mean(table["pseudo_admissible"][own])),
    }


def compare(figures: Mapping[str, float]) -> list[dict[str, Any]]:
    """Rows of figures beside the published ones and the limits for a set like the published one."""
    rows = []
    for key, published in PUBLISHED.items():
        if key in figures:
            rows.append(
                {
                    "quantity": published.quantity,
                    "published": published.value,
                    "here": figures[key],
                    "ratio": round(figures[key] / published.value, 4),
                    "least": published.least,
                    "most": published.most,
                    "within": bool(published.least <= figures[key] <= published.most),
                }
            )
    return rows


def as_text(rows: list[dict[str, Any]]) -> str:
    """Rows of `compare` as a table to read."""
    marks = [
        "" if row["within"] else f"not within {row['least']:.4g} to {row['most']:.4g}"
        for row in rows
    ]
    columns = {
        "": [row["quantity"] for row in rows],
        "published": [f"{row['published']:.6g}" for row in rows],
        "here": [f"{row['here']:.6g}" for row in rows],
        "ratio": [f"{row['ratio']:.3f}" for row in rows],
        " ": marks,
    }
    return text_table(columns, align="<>>><")
