"""Put trained networks into the package: weights, histories, judged model cards, calibrations.

Run ``python docs/tools/ship_networks.py RUNS --twin DIR --claimed DIR [--real DIR ...]``, where
RUNS are folders that ``neoranging train`` wrote and the twin is the divided set that they learnt
from. Runs of one model and representation differ in their seed alone: the one of least validation
loss is shipped, with the course of its training as CSV beside the weights, and its card tells what
the other seeds reach.

The card gets the figures that the network reaches on objects it has never seen: those of the twin's
test part, those never to train on (``unseen``), and those of real sets with at most 20 arcs an
object. Densities (model ``posterior``) get their validation loss alone, the mean negative logarithm
of the density at the truth: what they reach beyond hangs on the likelihood that reweights them.

Afterwards the calibrations of all methods of the package are made anew: those of networks from the
test part of the twin, those of classical methods from that of a twin whose errors are as large as
claimed. ``--no-calibrate`` leaves them, which then belong to other weights; without RUNS nothing
else is made.
"""

from __future__ import annotations

import argparse
import shlex
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import pandas as pd
import torch

from neoranging import RangingEstimator
from neoranging.estimators import MLPEstimator, PINNEstimator
from neoranging.lab.sets.schema import ArcTable
from neoranging.lab.sets.splits import division_of
from neoranging.lab.sets.store import read_manifest
from neoranging.lab.study import Selection, predict, score, summarise
from neoranging.lab.study.calibration import calibrate_defaults
from neoranging.lab.training.domain import fit_domain
from neoranging.lab.training.fit import WEIGHTS
from neoranging.nn import checkpoint

DATA: Final = Path(__file__).parents[2] / "neoranging" / "data"
METHODS: Final[dict[str, type[RangingEstimator]]] = {"mlp": MLPEstimator, "pinn": PINNEstimator}
"""Models with one answer, whose errors can be counted."""

CAP: Final = 20
TEST: Final = "twin, test"
FIGURES: Final = (
    *("medae_rho", "median_rho_true", "median_relative_error", "median_log10_error"),
    *("corr_rho", "spread_rho"),
    *("medae_rho_dot", "p_ar", "d_sh_pseudo", "d_sh_pseudo_below"),
    *("d_sh_catalogue", "d_sh_catalogue_below", "median_relative_error_by_object"),
)


class Run(NamedTuple):
    """A finished training: its folder and the card of its best epoch."""

    folder: Path
    card: dict[str, Any]

    @property
    def name(self) -> str:
        """Name of its weights in the package."""
        return f"{self.card['model']}-{self.card['representation']}"

    @property
    def seed(self) -> int:
        """Seed of the training."""
        return int(self.card["config"]["seed"])

    @property
    def loss(self) -> float:
        """Validation loss of the best epoch, which is what made it the best."""
        return float(self.card["metrics"]["validation"]["total"])

    @property
    def recipe(self) -> dict[str, Any]:
        """All that runs of one group have in common."""
        config = {name: value for name, value in self.card["config"].items() if name != "seed"}
        return {"config": config} | {part: self.card[part] for part in ("train", "validation")}

    @classmethod
    def read(cls, folder: Path) -> Run:
        """Run of a folder that ``neoranging train`` wrote, refused unless it came to its end."""
        _, card = checkpoint.load(folder / WEIGHTS)
        done, config = card["epochs_done"], card["config"]
        if done < config["epochs"] and done - card["best_epoch"] < config["patience"]:
            raise SystemExit(
                f"{folder} has done {done} of {config['epochs']} epochs: go on with it "
                "(neoranging train --resume) before its best epoch is shipped"
            )
        return cls(folder, card)


def grouped(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """Runs by the name of their weights, those of least validation loss first.

    Refused if two of a group have the same seed, or differ in anything else.
    """
    groups: dict[str, list[Run]] = {}
    for run in sorted(runs, key=lambda run: run.loss):
        groups.setdefault(run.name, []).append(run)
    for name, group in groups.items():
        if len({run.seed for run in group}) < len(group):
            raise SystemExit(f"{name}: two runs have the same seed; leave out one of them")
        for run in group:
            if run.recipe != group[0].recipe:
                raise SystemExit(
                    f"{name}: {run.folder} and {group[0].folder} differ in more than their seed; "
                    "ship runs of one recipe and one set"
                )
    return groups


def judged(
    path: Path, model: str, table: ArcTable, cap: int | None, n_boot: int = 200
) -> dict[str, Any]:
    """Figures of a network on arcs of a set, with 95 % intervals by object."""
    estimator = METHODS[model].from_pretrained(path)  # type: ignore[attr-defined]
    scored = score(table, predict(estimator, table))
    figures = summarise(scored, metrics=FIGURES, n_boot=n_boot)
    values = {
        row.metric: [float(f"{x:.4g}") for x in (row.value, row.low, row.high)]
        for row in figures.itertuples()
    }
    n_objects = int(figures["n_objects"].iloc[0])
    return {"n_arcs": len(table), "n_objects": n_objects, "cap": cap, "value, low, high": values}


def seeds(group: Sequence[Run], table: ArcTable | None) -> dict[str, Any]:
    """Validation loss of every seed, and its figures on the test part of the twin if there are."""
    result: dict[str, Any] = {}
    for run in sorted(group, key=lambda run: run.seed):
        loss = float(f"{run.loss:.6g}")
        entry = {"best_epoch": run.card["best_epoch"], "validation_loss": loss}
        if table is not None:
            figures = judged(run.folder / WEIGHTS, run.card["model"], table, None, n_boot=0)
            values = figures["value, low, high"].items()
            entry[TEST] = {name: value for name, (value, *_) in values}
        result[str(run.seed)] = entry
    return result


def portable(card: Mapping[str, Any]) -> dict[str, Any]:
    """The card with the names of things in the place of folders of this machine."""
    parts = {
        part: {**card[part], "set": card[part]["settings"]["kind"]}
        for part in ("train", "validation")
    }
    if "command" not in card:  # trained from Python
        return {**card, **parts}
    # --data=DIR is --data DIR
    options = (
        word.split("=", 1) if word.startswith("--") else [word]
        for word in shlex.split(card["command"])
    )
    words = [Path(word).name for option in options for word in option]
    words[words.index("--data") + 1] = card["train"]["settings"]["kind"]
    return {**card, **parts, "command": shlex.join(words)}


def ship(group: Sequence[Run], twin: Path, sets: Mapping[str, tuple[ArcTable, int | None]]) -> None:
    """Put the best run of a group into the package."""
    best = group[0]
    if (division := division_of(read_manifest(twin))) != best.card["train"]["division"]:
        raise SystemExit(
            f"{best.folder} learnt from a set that was divided in another way than {twin} "
            f"({division}): give the set of its training, or its figures are of objects that it "
            "has seen"
        )
    model = best.card["model"]
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"{best.name}.safetensors"
        # the run stays as it is: a domain goes into the copy alone
        shutil.copy(best.folder / WEIGHTS, path)
        shutil.copy(checkpoint.card_path(best.folder / WEIGHTS), checkpoint.card_path(path))
        network, card = checkpoint.load(path)
        if not network.domain.is_fitted:
            fit_domain(path, twin)  # before anything is judged: verdicts hang on it
            network, card = checkpoint.load(path)
        if model in METHODS:
            card["seeds"] = seeds(group, sets[TEST][0])
            for name, (table, cap) in sets.items():
                card["metrics"][name] = judged(path, model, table, cap)
                print(best.name, name, card["metrics"][name], flush=True)
        else:
            card["seeds"] = seeds(group, None)
            card["metrics"] = {"validation": {"negative_log_density": best.loss}}
        checkpoint.save(network, path, portable(card))
        history = pd.read_csv(best.folder / "log.csv")
        history.to_csv(path.with_suffix(".csv"), index=False, float_format="%.8g")
        for file in sorted(Path(folder).iterdir()):
            shutil.move(file, DATA / "weights" / file.name)
            print(file.name, (DATA / "weights" / file.name).stat().st_size, flush=True)


def main() -> None:
    """Choose, judge, ship, calibrate."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="*", type=Path)
    parser.add_argument("--twin", required=True, type=Path)
    parser.add_argument("--claimed", type=Path)
    parser.add_argument("--real", nargs="*", default=[], type=Path)
    parser.add_argument("--max-arcs", type=int, help="judge on so many arcs of a set at most")
    parser.add_argument("--no-calibrate", action="store_true")
    options = parser.parse_args()
    if options.claimed is None and not options.no_calibrate:
        parser.error("calibrations need --claimed; or leave them out with --no-calibrate")
    torch.set_num_threads(1)
    groups = grouped([Run.read(folder) for folder in options.runs])
    sets: dict[str, tuple[ArcTable, int | None]] = {}
    if not METHODS.keys().isdisjoint(name.split("-")[0] for name in groups):
        for split in ("test", "unseen"):
            selection = Selection(split, max_arcs=options.max_arcs)
            sets[f"twin, {split}"] = selection.read(options.twin), None
        for real in options.real:
            selection = Selection(None, cap=CAP, max_arcs=options.max_arcs)
            sets[real.name] = selection.read(real), CAP
    for group in groups.values():
        ship(group, options.twin, sets)
    if not options.no_calibrate:
        folder = DATA / "calibration"
        for path in calibrate_defaults(options.twin, "test", folder, claimed=options.claimed):
            print(path.name, path.stat().st_size)


if __name__ == "__main__":
    main()
