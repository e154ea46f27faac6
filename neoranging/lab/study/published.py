"""Figures of the literature, to stand beside one's own; never to be mixed with them.

They are of 56,773 arcs of 3,865 objects of the real set of NEODyS, none of which need be in the set
that a study judges. Ranges count from the centre of the Earth.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from neoranging.lab.simulation.marginals import PUBLISHED as PUBLISHED_SET

SOURCE: Final = "published, NEODyS"
"""Label of the figures wherever they are shown."""

SOLVED: Final = "solved from the geocenter"
"""Subset of the arcs that both classical methods solve, as in tables of classical methods."""


class Published(NamedTuple):
    """Figures of a method as they are published."""

    method: str
    subset: str
    """``"all"`` arcs of the test set, or `SOLVED`."""
    n_arcs: int
    """On which the errors stand."""
    values: Mapping[str, float]
    """By name of `neoranging.lab.study.metrics.METRICS`."""


def _of_solved(
    method: str, mae: float, medae: float, corr: float, spread: float, median: float, **more: float
) -> Published:
    """A row of the table of the arcs that both classical methods solve."""
    errors = {"mae_rho": mae, "medae_rho": medae, "corr_rho": corr, "spread_rho": spread}
    values = {**errors, "median_rho": median, "median_rho_true": 0.310, **more}
    return Published(method, SOLVED, 23_298, values)


PUBLISHED: Final = (
    Published(
        "MLP",
        "all",
        56_773,
        {
            "solved": 100.0,
            "mae_rho": 0.286,
            "medae_rho": 0.219,
            "corr_rho": 0.391,
            "spread_rho": 0.40,
            "mae_rho_dot": 4.5e-3,
            "medae_rho_dot": 4.0e-3,
            "corr_rho_dot": 0.438,
            "spread_rho_dot": 0.46,
            "p_ar": 76.5,
            "p_ar_truth": 99.4,
            "elliptic_pseudo": 100.0 * 43_195 / 56_773,
            "d_sh_pseudo": 0.543,
            "d_sh_pseudo_below": 8.2,
        },
    ),
    Published(
        "PINN",
        "all",
        56_773,
        {
            "solved": 100.0,
            "mae_rho": 0.304,
            "medae_rho": 0.208,
            "corr_rho": 0.317,
            "spread_rho": 0.62,
            "mae_rho_dot": 4.7e-3,
            "medae_rho_dot": 4.2e-3,
            "corr_rho_dot": 0.411,
            "spread_rho_dot": 0.63,
            "p_ar": 85.1,
            "p_ar_truth": 99.4,
            "elliptic_pseudo": 100.0 * 48_105 / 56_773,
            "d_sh_pseudo": 0.550,
            "d_sh_pseudo_below": 7.9,
        },
    ),
    # of classical methods, solved and collapsed are of all arcs that each answers, or fails to
    _of_solved("Gauss", 0.442, 0.309, 0.015, 0.174, 5.1e-5, solved=45.0, collapsed=92.3),
    _of_solved("Laplace", 0.441, 0.309, 0.010, 0.154, 5.6e-5, solved=47.3, collapsed=88.9),
    _of_solved("MLP", 0.285, 0.219, 0.388, 0.400, 0.442, solved=100.0),
    _of_solved("PINN", 0.305, 0.213, 0.315, 0.635, 0.332, solved=100.0),
)
"""Networks and classical methods; the first row of a method is the one of its headline."""

TERCILES: Final[Mapping[str, tuple[float, float]]] = {
    axis: (
        PUBLISHED_SET[f"{axis}_tercile_1_{unit}"].value,
        PUBLISHED_SET[f"{axis}_tercile_2_{unit}"].value,
    )
    for axis, unit in (("eta", "rad_d"), ("rho", "au"))
}
"""Cut points of proper motion [rad/d] and true range [au] between equal thirds of the test set."""
