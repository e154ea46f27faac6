"""Put trained networks into the package: weights, judged model cards, calibrations.

Run ``python docs/tools/ship_networks.py RUNS --twin DIR --claimed DIR [--real DIR ...]``, where
RUNS are folders that ``neoranging train`` wrote and the twin is the divided set that they learnt
from. The card of each network gets the figures that it reaches on objects it has never seen: those
of the twin's test part, those never to train on (``unseen``), and those of real sets with at most
20 arcs an object. The calibrations of all methods of the package are made anew: those of networks
from the test part of the twin, those of classical methods from that of a twin whose errors are as
large as claimed.
"""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import Any

import torch

from neoranging import RangingEstimator
from neoranging.estimators import MLPEstimator, PINNEstimator
from neoranging.lab.study import Selection, predict, score, summarise
from neoranging.lab.study.calibration import calibrate_defaults
from neoranging.lab.training.fit import WEIGHTS
from neoranging.nn import checkpoint

DATA = Path(__file__).parents[2] / "neoranging" / "data"
METHODS: dict[str, type[RangingEstimator]] = {"mlp": MLPEstimator, "pinn": PINNEstimator}
CAP = 20
FIGURES = (
    *("medae_rho", "median_rho_true", "median_relative_error", "median_log10_error"),
    *("corr_rho", "spread_rho"),
    *("medae_rho_dot", "p_ar", "d_sh_pseudo", "d_sh_pseudo_below"),
    *("d_sh_catalogue", "d_sh_catalogue_below", "median_relative_error_by_object"),
)


def judged(path: Path, model: str, folder: Path, selection: Selection) -> dict[str, Any]:
    """Figures of a network on arcs of a set, with 95 % intervals by object."""
    table = selection.read(folder)
    estimator = METHODS[model].from_pretrained(path)  # type: ignore[attr-defined]
    figures = summarise(score(table, predict(estimator, table)), metrics=FIGURES)
    values = {
        row.metric: [float(f"{x:.4g}") for x in (row.value, row.low, row.high)]
        for row in figures.itertuples()
    }
    n_objects = int(figures["n_objects"].iloc[0])
    counts = {"n_arcs": len(table), "n_objects": n_objects, "cap": selection.cap}
    return {**counts, "value, low, high": values}


def portable(card: dict[str, Any]) -> dict[str, Any]:
    """The card with the names of things in the place of folders of this machine."""
    words = [Path(word).name for word in shlex.split(card["command"])]
    words[words.index("--data") + 1] = card["train"]["settings"]["kind"]
    for part in ("train", "validation"):
        card[part]["set"] = card[part]["settings"]["kind"]
    return {**card, "command": shlex.join(words)}


def main() -> None:
    """Judge, ship, calibrate."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--twin", required=True, type=Path)
    parser.add_argument("--claimed", required=True, type=Path)
    parser.add_argument("--real", nargs="*", default=[], type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    for run in options.runs:
        network, card = checkpoint.load(run / WEIGHTS)
        card = portable(card)
        model, representation = card["model"], card["representation"]
        sets = {f"twin, {split}": (options.twin, Selection(split)) for split in ("test", "unseen")}
        sets |= {f"{real.name}": (real, Selection(None, cap=CAP)) for real in options.real}
        for name, (folder, selection) in sets.items():
            card["metrics"][name] = judged(run / WEIGHTS, model, folder, selection)
            print(model, representation, name, card["metrics"][name], flush=True)
        checkpoint.save(network, DATA / "weights" / f"{model}-{representation}.safetensors", card)
    for path in calibrate_defaults(
        options.twin, "test", DATA / "calibration", claimed=options.claimed
    ):
        print(path.name, path.stat().st_size)


if __name__ == "__main__":
    main()
