"""Worth of each part of the invariant recipe, by short trainings that leave one out.

Run ``OMP_NUM_THREADS=1 python benchmarks/ablations.py TWIN [--arcs N] [--epochs N] [names ...]`` on
a divided set. Every variant learns from the same N arcs and is judged by the same N / 3 validation
arcs of other objects; one line each, beside the recipe as it is. Short trainings rank the variants;
they do not reach what the shipped networks do.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np
import torch

from neoranging.core.parallax import LARGEST_ERROR
from neoranging.estimators import network_inputs
from neoranging.lab.sets.store import read_arcs, read_manifest
from neoranging.lab.simulation.astrometric_errors import Errors
from neoranging.lab.training import TrainingConfig, physics
from neoranging.lab.training.data import TrainingArcs, make_training_arcs
from neoranging.lab.training.fit import fit_network
from neoranging.lab.training.losses import LossWeights
from neoranging.nn import features
from neoranging.nn.inputs import ArcInputs

Change = Callable[[TrainingConfig], TrainingConfig]
METRICS = (
    *("medae_rho_au", "median_relative_error", "correlation_rho"),
    *("medae_rho_dot_au_d", "admissible"),
)


def network(**changes: object) -> Change:
    return lambda config: replace(config, network=replace(config.network, **changes))


def recipe(**changes: object) -> Change:
    return lambda config: replace(config, **changes)


RECIPES: dict[str, Change] = {
    "the recipe": recipe(),
    "log output": network(output="log"),
    "errors drawn once": recipe(drawings=0),
    "no running mean": recipe(averaging=0.0),
    "squared errors": recipe(data_loss="mse"),
    "no arcs of two epochs": recipe(two_epoch_fraction=0.0),
    "no root of Gauss's method": network(root=False),
    "the magnitude as well": network(magnitude=True),
    "no second output": network(second_output=False),
    "no blocks": network(blocks=0),
    "384 x 4": network(width=384, blocks=4),
    "pinn": recipe(model="pinn"),
    "pinn, weights of the paper": recipe(model="pinn", weights=LossWeights()),
    "pinn, no distributions": recipe(
        model="pinn", weights=LossWeights(motion=3e-4, kinematic=2e-4, transport=0.0)
    ),
    "pinn, drawn by Jupiter too": recipe(model="pinn", planets=("jupiter",)),
}
EARTHLESS = "pinn, not drawn by the Earth"
RECIPES[EARTHLESS] = RECIPES["pinn"]


def without_parallax(inputs: ArcInputs) -> ArcInputs:
    return inputs._replace(
        parallax=torch.zeros_like(inputs.parallax),
        log_sigma_parallax=torch.full_like(inputs.parallax, math.log(LARGEST_ERROR)),
    )


def without_curvature(inputs: ArcInputs) -> ArcInputs:
    none, observer = torch.zeros_like(inputs.sky_acc), torch.zeros_like(inputs.observer_acc)
    inputs = without_parallax(inputs)
    return inputs._replace(sky_acc=none, log_sigma_acc=none, observer_acc=observer)


BLIND = "no root either"
INPUTS: dict[str, Callable[[ArcInputs], ArcInputs]] = {
    "no parallax beyond the parabola": without_parallax,
    "no curvature either": without_curvature,
    BLIND: without_curvature,
}
SYMMETRY = "left, right, past and future told apart"
SCATTER = "errors as usual, whatever an arc shows"


def changed(arcs: TrainingArcs, change: Callable[[ArcInputs], ArcInputs]) -> TrainingArcs:
    drawings = tuple(change(inputs) for inputs in arcs.drawings)
    return replace(arcs, inputs=change(arcs.inputs), drawings=drawings)


def judged(config: TrainingConfig, train: TrainingArcs, validation: TrainingArcs) -> str:
    if not config.drawings:
        train = replace(train, drawings=())
    with tempfile.TemporaryDirectory() as folder:
        result = fit_network(config, train, validation, folder, device="cpu", threads=1)
    best = result.history[-1]
    seconds = sum(row["seconds"] for row in result.history) / len(result.history)
    figures = "  ".join(f"{best[f'val_{name}']:9.4g}" for name in METRICS)
    return f"{figures}  {seconds:7.1f}"


def page_part(title: str, rows: list[list[str]]) -> str:
    heads = "medAE ρ [au]", "median rel. error", "corr ρ", "medAE rate [au/d]", "admissible"
    lines = [
        ".. made by benchmarks/ablations.py; do not edit",
        "",
        f".. csv-table:: {title}",
        "   :header-rows: 1",
        "   :class: numbers",
        "",
    ]
    cells = [["", *heads], *(row[:-1] for row in rows)]  # seconds depend on the machine
    lines += ["   " + ", ".join(f'"{cell}"' for cell in row) for row in cells]
    return "\n".join([*lines, ""])


def loaded(twin: str, n_arcs: int, config: TrainingConfig) -> tuple[TrainingArcs, TrainingArcs]:
    rng = np.random.default_rng(config.seed)
    errors = Errors.of(read_manifest(twin)["settings"])

    def part(split: str, most: int, drawings: int) -> TrainingArcs:
        table = read_arcs(twin, split=split)
        # chosen first: the root of each arc and drawing takes most of the time
        table = table.take(np.sort(rng.permutation(len(table))[:most]))
        return make_training_arcs(
            table, root=True, drawings=drawings, errors=errors, rng=rng, planets=("jupiter",)
        )

    return part("train", n_arcs, config.drawings), part("val", n_arcs // 3, 0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("twin")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--arcs", type=int, default=100_000)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--table", type=Path, help="also write a part of a page")
    options = parser.parse_args()
    base = TrainingConfig.invariant("mlp", epochs=options.epochs, seed=options.seed)
    parts = loaded(options.twin, options.arcs, base)
    heads = ("medAE/au", "rel. err.", "corr", "medAE au/d", "P_AR", "s/epoch")
    title = f"{len(parts[0])} arcs, {options.epochs} epochs"
    print(title)
    print(f"{'':40s}{''.join(f'{head:>11s}' for head in heads)}", flush=True)
    rows = []
    for name in options.names or [*RECIPES, *INPUTS, SYMMETRY, SCATTER]:
        # the root is made of curvature and parallax, and would show both
        shown = "no root of Gauss's method" if name == BLIND else name
        config = RECIPES.get(shown, RECIPES["the recipe"])(base)
        change = INPUTS.get(name, lambda inputs: inputs)
        arcs = parts
        if name == SCATTER:
            with mock.patch.object(network_inputs, "_WEIGHT_OF_USUAL", 1e9):
                arcs = loaded(options.twin, options.arcs, base)
        signs = torch.ones_like if name == SYMMETRY else features._sign
        earth = 0.0 if name == EARTHLESS else physics.GM_EARTH
        with (
            mock.patch.object(features, "_sign", signs),
            mock.patch.object(physics, "GM_EARTH", earth),
        ):
            rows.append([name, *judged(config, *(changed(part, change) for part in arcs)).split()])
        print(f"{name:40s}{''.join(f'{figure:>11s}' for figure in rows[-1][1:])}", flush=True)
        if options.table:
            options.table.write_text(page_part(title, rows))


if __name__ == "__main__":
    main()
