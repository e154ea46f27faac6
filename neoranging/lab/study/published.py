"""Figures of the literature, to stand beside one's own; never to be mixed with them.

They are of 56,773 arcs of 3,865 objects of the real set of NEODyS, none of which need be in the set
that a study judges. Ranges count from the centre of the Earth.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

SOURCE: Final = "published, NEODyS"
"""Label of the figures wherever they are shown."""


class Published(NamedTuple):
    """Figures of a method as they are published."""

    method: str
    n_arcs: int
    """On which the errors stand."""
    values: Mapping[str, float]
    """By name of `neoranging.lab.study.metrics.METRICS`."""


def _classical(solved: float, mae: float, corr: float, spread: float, near: float) -> dict:
    # median |error| of both: 0.309 au; errors of the 23,298 arcs that both solve
    return {
        "solved": solved,
        "mae_rho": mae,
        "medae_rho": 0.309,
        "corr_rho": corr,
        "spread_rho": spread,
        "collapsed": near,
    }


PUBLISHED: Final = (
    Published(
        "MLP",
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
    Published("Gauss", 23_298, _classical(45.0, 0.442, 0.015, 0.174, 92.3)),
    Published("Laplace", 23_298, _classical(47.3, 0.441, 0.010, 0.154, 88.9)),
)
"""Two networks, and the classical methods; the latter from the centre of the Earth."""
