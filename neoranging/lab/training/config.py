"""Training configuration, stored with each run."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Self

from neoranging.constants import GM_PLANETS
from neoranging.exceptions import DatasetError, TrainingError
from neoranging.files import read_json, write_json
from neoranging.lab.training.losses import DATA_LOSSES, LossWeights
from neoranging.nn.network import NetworkConfig

MODELS: Final = ("mlp", "pinn", "posterior")
REPRESENTATIONS: Final = ("paper", "invariant")


@dataclass(frozen=True)
class TrainingConfig:
    """Recipe of one network.

    `paper` and `invariant` give the two that the package's own networks are trained by.

    Attributes
    ----------
    model : {"mlp", "pinn", "posterior"}
        The MLP learns from errors alone, the posterior the density of range and range-rate. The
        PINN's loss adds what its estimate leaves of the range equation, and how its estimates of a
        batch are distributed.
    network : NetworkConfig
    seed : int
        Seed of initial weights, order of arcs, and noise.
    epochs, batch_size : int
    learning_rate : float
        Learning rate after ``warmup_epochs``, from where it falls as a cosine.
    final_fraction : float
        Fraction of the learning rate that is left at the end.
    warmup_epochs : float
        Epochs over which the learning rate rises linearly from zero.
    weight_decay : float
        Weight decay of AdamW (amsgrad).
    clip_norm : float
        Greatest norm of a gradient; larger ones are scaled down.
    patience : int
        Epochs without a better validation loss after which training stops.
    data_loss : str
        Loss of errors in the normalised space; a name of
        ``neoranging.lab.training.losses.DATA_LOSSES``.
    weights : LossWeights
        Weights of the terms of the PINN's loss.
    error_size_weight : float
        Weight of the loss of the second output, for networks that have one.
    drawings : int
        Number of times that the errors of simulated observations are drawn anew; epochs use the set
        and its drawings in turn.
    fresh_nights : bool
        Draw the errors of simulated observations anew in every epoch, in place of ``drawings``, and
        cut some arcs short; see ``neoranging.lab.training.nights``.
    two_epoch_fraction : float
        Share of arcs, another one in each epoch, that lose their curvature as if they had two
        epochs.
    no_magnitude_fraction : float
        Share of arcs, another one in each epoch, that lose their magnitude, for networks that are
        shown one.
    planets : tuple of str
        Planets that pull the object in the equation of motion of the PINN, beside Sun and Earth:
        names of ``neoranging.constants.GM_PLANETS``, and none by default.
    close_passages : bool
        Train and validate on resampled close approaches as well, where the set has some.
    averaging : float
        Decay by step of the running mean of the weights that is validated and kept; 0 for none.
    """

    model: str = "mlp"
    network: NetworkConfig = field(default_factory=NetworkConfig)
    seed: int = 0
    epochs: int = 40
    batch_size: int = 2048
    learning_rate: float = 1e-3
    final_fraction: float = 0.01
    warmup_epochs: float = 1.0
    weight_decay: float = 1e-4
    clip_norm: float = 1.0
    patience: int = 40
    data_loss: str = "l1"
    weights: LossWeights = field(default_factory=LossWeights)
    error_size_weight: float = 0.1
    drawings: int = 3
    two_epoch_fraction: float = 0.1
    averaging: float = 0.999
    close_passages: bool = True
    no_magnitude_fraction: float = 0.2
    planets: tuple[str, ...] = ()
    fresh_nights: bool = False

    def __post_init__(self) -> None:
        def require(names: str, needed: str, is_good: Callable[[Any], bool]) -> None:
            for name in names.split():
                if not is_good(getattr(self, name)):
                    raise TrainingError(f"{name} must be {needed}, got {getattr(self, name)!r}")

        require("model", f"one of {MODELS}", lambda x: x in MODELS)
        network = self.network
        if network.representation == "paper" and (network.magnitude or network.root):
            raise TrainingError(
                "magnitude and root are shown to networks of the representation 'invariant' alone: "
                "the paper's has eleven inputs"
            )
        mixture = network.output == "mixture"
        if mixture != (self.model == "posterior"):
            raise TrainingError(
                f"the model {self.model!r} does not go with the output {network.output!r}: a "
                "posterior needs 'mixture', and nothing else takes it"
            )
        require("data_loss", f"one of {(*DATA_LOSSES,)}", lambda x: x in DATA_LOSSES)
        require("epochs batch_size patience", "at least 1", lambda x: x >= 1)
        require(
            "learning_rate clip_norm error_size_weight",
            "greater than 0 and finite",
            lambda x: 0.0 < x < math.inf,
        )
        require(
            "weights",
            "at least 0 and finite, each of the four",
            lambda weights: all(0.0 <= x < math.inf for x in weights),
        )
        require("seed warmup_epochs weight_decay drawings", "at least 0", lambda x: x >= 0)
        if self.fresh_nights and network.representation == "paper":
            raise TrainingError(
                "fresh nights are for the representation 'invariant': the paper's needs three "
                "observations, seen from the centre of the Earth"
            )
        if self.fresh_nights and self.drawings:
            raise TrainingError(
                f"drawings must be 0 with fresh nights, which draw errors in every epoch, got "
                f"{self.drawings!r}"
            )
        fractions = "final_fraction two_epoch_fraction no_magnitude_fraction"
        require(fractions, "between 0 and 1", lambda x: 0.0 <= x <= 1.0)
        require(
            "planets",
            f"different ones of {(*GM_PLANETS,)}, in a tuple",
            lambda names: (
                isinstance(names, tuple) and sorted(set(names) & {*GM_PLANETS}) == sorted(names)
            ),
        )
        if self.planets and self.model != "pinn":
            raise TrainingError(
                f"planets pull in the equation of motion, of which a {self.model!r} learns "
                "nothing: train a 'pinn', or leave them out"
            )
        if self.planets and self.fresh_nights:
            raise TrainingError("planets are placed at the nights of a set: leave out fresh nights")
        require("averaging", "in [0, 1)", lambda x: 0.0 <= x < 1.0)

    @classmethod
    def paper(cls, model: str = "mlp", **changes: Any) -> Self:
        """Recipe of the paper (its table of hyperparameters).

        Parameters
        ----------
        model : {"mlp", "pinn"}
        **changes
            Attributes that differ.
        """
        return cls(
            **{
                "model": model,
                "network": NetworkConfig.paper(),
                "epochs": 400,
                "batch_size": 512,
                "learning_rate": 2e-4,
                "final_fraction": 0.1,
                "warmup_epochs": 0.0,
                "clip_norm": 10.0,
                "patience": 100,
                "data_loss": "mse" if model == "mlp" else "log_cosh",
                "drawings": 0,
                "two_epoch_fraction": 0.0,
                "averaging": 0.0,
                "close_passages": False,
                **changes,
            }
        )

    @classmethod
    def invariant(cls, model: str = "mlp", **changes: Any) -> Self:
        """Recipe for the invariant representation: log range, several drawings, averaged weights.

        The physics weighs a thousandth of what it does in the paper. Features that show the
        curvature of an arc turn over within hours, so an error of its range that two instants do
        not share counts as a velocity far above that of anything in the solar system; at the
        paper's weights a network does best by looking at nothing.

        Magnitudes are not shown: they help on objects like those of the training part, and mislead
        on brighter ones, whose sizes are others.

        A density is learnt from fresh nights: one that has seen the same errors twice is too narrow
        on those of others.
        """
        recipe: dict[str, Any] = {
            "model": model,
            "network": NetworkConfig(root=True, second_output=True),
            "weights": LossWeights(motion=3.0e-4, kinematic=2.0e-4),
        }
        if model == "posterior":
            recipe |= {
                "network": NetworkConfig(root=True, output="mixture"),
                "fresh_nights": True,
                "drawings": 0,
                "two_epoch_fraction": 0.0,
                "epochs": 15,
            }
        return cls(**{**recipe, **changes})

    @classmethod
    def default(cls, model: str, representation: str = "invariant", **changes: Any) -> Self:
        """Recipe of a representation by its name."""
        if representation not in REPRESENTATIONS:
            raise TrainingError(
                f"representation must be one of {REPRESENTATIONS}, got {representation!r}"
            )
        recipe = cls.paper if representation == "paper" else cls.invariant
        return recipe(**{"model": model, **changes})

    def to_json(self) -> dict[str, Any]:
        """Recipe as plain data."""
        plain = {**asdict(self), "weights": self.weights._asdict()}
        # tuples become lists, so that what is written equals what is read
        return dict(json.loads(json.dumps(plain)))

    def save(self, path: str | Path) -> None:
        """Write as JSON."""
        write_json(Path(path), self.to_json())

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what `save` wrote.

        Raises
        ------
        TrainingError
            If the file is not there or is something else.
        """
        try:
            plain = read_json(Path(path))
            network = {**plain["network"], "widths": tuple(plain["network"]["widths"])}
            parts = {
                "network": NetworkConfig(**network),
                "weights": LossWeights(**plain["weights"]),
                "planets": tuple(plain.get("planets", ())),
            }
            return cls(**{**plain, **parts})
        except (DatasetError, KeyError, TypeError) as error:
            raise TrainingError(f"{path} is no training configuration ({error})") from error
