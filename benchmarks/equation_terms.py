"""Sizes of the pulls in the equation of motion of the PINN, at the true ranges of arcs.

Run ``OMP_NUM_THREADS=1 python benchmarks/equation_terms.py SET [--arcs N] [--table PATH]`` on a
divided set. Each line is what the residual of the motion changes by where one body is left out, in
the residual's own unit: the median over N validation arcs, and over the near and far ones of them.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from unittest import mock

import numpy as np
import torch

from neoranging.constants import GM_PLANETS, GM_SUN
from neoranging.lab.sets.store import read_arcs
from neoranging.lab.training.data import TrainingArcs, make_training_arcs
from neoranging.lab.training.physics import SightGeometry, range_acceleration
from neoranging.nn import physics
from neoranging.typing import FloatArray

NEAR, FAR = 0.05, 0.5
"""Limits of the true range of near and far arcs [au]."""
HEADS = ("all", f"below {NEAR} au", f"beyond {FAR} au")


def accelerations(arcs: TrainingArcs, origin: str, planet: str | None = None) -> FloatArray:
    """Right-hand sides of the range equation in the unit of the residual."""
    planets = {planet: arcs.planets[planet]} if planet else {}
    geometry = SightGeometry.of(arcs.inputs, origin, planets)
    scale = GM_SUN + geometry.proper_motion_square
    return (range_acceleration(geometry, arcs.rho) / scale).numpy()


def sizes(arcs: TrainingArcs, origin: str) -> dict[str, list[str]]:
    whole, rho = accelerations(arcs, origin), arcs.rho.numpy()
    with mock.patch.object(physics, "GM_EARTH", 0.0):
        changes = {"Earth": whole - accelerations(arcs, origin)}
    for planet in GM_PLANETS:
        changes[planet.capitalize()] = accelerations(arcs, origin, planet) - whole
    rows = np.ones(len(rho), dtype=bool), rho < NEAR, rho > FAR
    return {
        name: [f"{np.median(np.abs(change[few])):.1e}" for few in rows]
        for name, change in changes.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("set")
    parser.add_argument("--arcs", type=int, default=20_000)
    parser.add_argument("--table", type=Path, help="also write a part of a page")
    options = parser.parse_args()
    torch.set_num_threads(1)
    table = read_arcs(options.set, split="val")
    chosen = np.random.default_rng(0).permutation(len(table))[: options.arcs]
    table = table.take(np.sort(chosen))
    geocenter, topocenter = (
        sizes(make_training_arcs(table, origin, planets=(*GM_PLANETS,)), origin)
        for origin in ("geocenter", "topocenter")
    )
    rows = [[name, *geocenter[name], *topocenter[name]] for name in geocenter]
    heads = ["", *(f"{origin}: {head}" for origin in ("geocentre", "ground") for head in HEADS)]
    for row in (heads, *rows):
        print("".join(f"{cell:>24s}" for cell in row))
    if options.table:
        lines = [
            ".. made by benchmarks/equation_terms.py; do not edit",
            "",
            f".. csv-table:: {len(table)} arcs",
            "   :header-rows: 1",
            "   :class: numbers",
            "",
            *("   " + ", ".join(f'"{cell}"' for cell in row) for row in (heads, *rows)),
        ]
        options.table.write_text("\n".join([*lines, ""]))


if __name__ == "__main__":
    main()
