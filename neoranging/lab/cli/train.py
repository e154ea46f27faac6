"""``neoranging train``: fit a network on a set of labelled arcs."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any, Literal

import click

from neoranging.cli.errors import echo
from neoranging.cli.options import (
    COUNT,
    COUNT_OR_NONE,
    FILE,
    POSITIVE,
    Number,
    data_option,
    folder_option,
    seed_option,
)
from neoranging.constants import GM_PLANETS

_NETWORK = (
    *("trunk", "width", "blocks", "activation", "output"),
    *("magnitude", "root", "second_output"),
)


@click.command()
@click.option("--model", type=click.Choice(["mlp", "pinn", "posterior"]), required=True)
@click.option(
    "--representation",
    type=click.Choice(["invariant", "paper"]),
    default="invariant",
    show_default=True,
    help="Inputs of the network; each has its own recipe.",
)
@data_option("A divided set; see 'neoranging dataset'.")
@folder_option("Folder of the run: weights, model card, log, state.", required=True)
@seed_option()
@click.option("--epochs", type=COUNT)
@click.option("--batch-size", type=COUNT, metavar="N", help="Arcs per step.")
@click.option("--learning-rate", type=POSITIVE)
@click.option("--patience", type=COUNT, help="Epochs to wait for a better one.")
@click.option("--data-loss", type=click.Choice(["mse", "l1", "smooth_l1", "log_cosh"]))
@click.option(
    "--weights",
    type=(Number(), Number(), Number(), Number()),
    metavar="RES EOM KIN W",
    help="Weights of the PINN's loss: errors, motion, kinematics, distribution.",
)
@click.option(
    "--drawings",
    type=COUNT_OR_NONE,
    metavar="N",
    help="Draw the errors of simulated observations N more times; epochs take turns.",
)
@click.option(
    "--fresh-nights/--no-fresh-nights",
    default=None,
    help="Draw these errors in every epoch, and cut some arcs short.",
)
@click.option(
    "--two-epoch-fraction",
    type=Number(min=0.0, max=1.0),
    metavar="F",
    help="Share of arcs trained on without their curvature.",
)
@click.option(
    "--close-passages/--no-close-passages",
    default=None,
    help="Learn from resampled close approaches as well, where the set has some.",
)
@click.option(
    "--planets",
    multiple=True,
    type=click.Choice([*GM_PLANETS]),
    help="Let a planet pull in the PINN's equation of motion as well. May be given several times.",
)
@click.option("--averaging", type=Number(min=0.0, max=1.0, max_open=True), metavar="F")
@click.option("--trunk", type=click.Choice(["paper", "residual"]))
@click.option("--width", type=COUNT, help="Width of the residual trunk.")
@click.option("--blocks", type=COUNT_OR_NONE, help="Blocks of the residual trunk.")
@click.option("--activation", type=click.Choice(["tanh", "silu"]))
@click.option(
    "--magnitude/--no-magnitude",
    default=None,
    help="Show the apparent magnitude to the invariant network.",
)
@click.option("--root/--no-root", default=None, help="Show it the range by Gauss's method as well.")
@click.option(
    "--second-output/--no-second-output",
    default=None,
    help="Let the network estimate the size of its errors.",
)
@click.option("--output", type=click.Choice(["minmax", "log", "admissible"]))
@click.option(
    "--device",
    type=click.Choice(["auto", "cuda", "mps", "cpu"]),
    default="auto",
    show_default=True,
)
@click.option("--threads", type=COUNT, help="Threads of the CPU.")
@click.option(
    "--ephemeris-cache",
    type=FILE,
    metavar="FILE",
    help="States of the Earth and its rotation from a .pth file, which "
    "neoranging.ephemeris.save_cache writes; without it they are computed.",
)
@click.option(
    "--tensorboard", is_flag=True, help="Also write events for TensorBoard; needs tensorboardX."
)
@click.option("--resume", is_flag=True, help="Go on with the run in the folder, if there is one.")
@click.option("--overwrite", is_flag=True, help="Begin anew whatever the folder holds.")
def train(
    model: str,
    representation: Literal["invariant", "paper"],
    data: Path,
    out: Path,
    device: str,
    threads: int | None,
    resume: bool,
    overwrite: bool,
    tensorboard: bool,
    ephemeris_cache: Path | None,
    **recipe: Any,
) -> None:
    """Train a network on the training part of a set, judged by its validation part.

    Options left out are those of the recipe of the representation. A run that was killed goes on
    from its last whole epoch with --resume, and ends with the same weights. Started by torchrun,
    several processes share each batch.

    \b
    Examples:
      neoranging train --model mlp --data twin --out run --epochs 5
      neoranging train --model pinn --representation paper --data twin --out run --tensorboard
      neoranging train --model posterior --data twin --out run
      tensorboard --logdir run
      torchrun --standalone --nproc-per-node 2 -m neoranging train --model mlp --data twin --out run
    """  # noqa: D301 (the character by which click keeps lines apart)
    from dataclasses import replace

    from neoranging.ephemeris import load_cache
    from neoranging.lab.training import TrainingConfig
    from neoranging.lab.training.fit import WEIGHTS, fit_on_set
    from neoranging.lab.training.losses import LossWeights
    from neoranging.lab.training.memory import keep_freed_memory
    from neoranging.lab.training.processes import is_first

    options = {name: value for name, value in recipe.items() if value is not None}
    if "weights" in options:
        options["weights"] = LossWeights(*options["weights"])
    shape = {name: options.pop(name) for name in _NETWORK if name in options}
    config = TrainingConfig.default(model, representation, **options)
    config = replace(config, network=replace(config.network, **shape))
    if ephemeris_cache is not None:
        load_cache(ephemeris_cache)  # before arcs are read: what is computed already stays
    keep_freed_memory()  # of the whole process, which is that of this command
    result = fit_on_set(
        config,
        data,
        out,
        resume=resume,
        overwrite=overwrite,
        device=device,
        threads=threads,
        tensorboard=tensorboard,
        notes={"command": shlex.join(["neoranging", *sys.argv[1:]])},
    )
    if not is_first():
        return
    card = result.card
    echo(f"{card['epochs_done']} epochs, the best {card['best_epoch']}: {out / WEIGHTS}")
    for name, value in card["metrics"]["validation"].items():
        echo(f"  {name}: {value:.4g}")
