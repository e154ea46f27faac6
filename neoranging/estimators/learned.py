"""What the learned estimators share: weights, inputs, domain, verdict."""

from __future__ import annotations

import copy
import hashlib
import math
import os
import stat
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from importlib.resources import files
from itertools import compress
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, Self, get_args

import numpy as np
import numpy.typing as npt

from neoranging.core.answers import Answers
from neoranging.core.arcs import Arcs
from neoranging.core.attributable import Attributables
from neoranging.core.status import RangeStatus
from neoranging.estimators.base import RangingEstimator
from neoranging.estimators.network_inputs import arc_inputs
from neoranging.exceptions import CheckpointError, NotTrainedError, TrackletError
from neoranging.nn import checkpoint
from neoranging.nn.domain import LEAST_LEVEL, MOST_LEVEL
from neoranging.nn.features import FEATURES
from neoranging.nn.network import RangingNetwork
from neoranging.typing import BoolArray, FloatArray

Representation = Literal["invariant", "paper"]

_TRIPLET = 3  # epochs that the paper's representation is made of


@lru_cache
def default_weights(model: str, representation: str) -> Path:
    """File of the weights that come with the package.

    Raises
    ------
    NotTrainedError
        If none come for that model and representation.
    """
    name = f"{model}-{representation}.safetensors"
    path = Path(str(files("neoranging").joinpath("data", "weights", name)))
    if not path.exists():
        raise NotTrainedError(
            f"no weights {name} come with this installation: give weights=<path>, or train your "
            f"own with 'neoranging train --model {model} --representation {representation}'"
        )
    return path


class Trained(NamedTuple):
    """A network and its model card."""

    network: RangingNetwork
    card: dict[str, Any]
    digest: str
    """SHA-256 of the file of weights."""


def read_card(weights: str | os.PathLike[str]) -> dict[str, Any]:
    """Model card of a file of weights; it names the model and its representation.

    Raises
    ------
    NotTrainedError
        If there is no such file.
    CheckpointError
        If the file or its card is damaged or something else.
    """
    return copy.deepcopy(load_trained(Path(weights)).card)


def load_trained(path: Path) -> Trained:
    """Network of a file; a file that has changed since, or its card, is read anew."""
    try:
        state = path.stat()
    except OSError as error:
        raise NotTrainedError(
            f"no weights at {path} ({error.strerror}): give the file that 'neoranging train' wrote"
        ) from error
    if stat.S_ISDIR(state.st_mode):
        raise NotTrainedError(
            f"{path} is a folder: give the file in it, such as the network.safetensors that "
            "'neoranging train' wrote"
        )
    card = checkpoint.card_path(path)
    card_time = card.stat().st_mtime_ns if card.exists() else 0
    return _load_once(path, state.st_mtime_ns, state.st_size, card_time)


@lru_cache(maxsize=8)
def _load_once(path: Path, *_state: int) -> Trained:
    network, card = checkpoint.load(path)
    held = network.config.representation
    if not isinstance(card.get("model"), str) or card.get("representation", held) != held:
        raise CheckpointError(
            f"{checkpoint.card_path(path)} is not the model card of {path.name}, a network of the "
            f"representation {held!r}: it names {card.get('model')!r}, "
            f"{card.get('representation')!r}; copy the card from beside the weights"
        )
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return Trained(network, card, digest)


def trained_for(
    estimator: type[RangingEstimator], weights: str | os.PathLike[str], representation: str
) -> Trained:
    """Network of a class of estimators: that of the package ("default"), or one of a file.

    Raises
    ------
    CheckpointError
        If the weights are damaged or are none.
    NotTrainedError
        If no weights come with the package, or they are of another method or representation.
    """
    path = default_weights(estimator.name, representation) if weights == "default" else weights
    trained = load_trained(Path(path))
    model = trained.card["model"]
    if model not in {vars(base).get("name") for base in estimator.__mro__}:
        raise NotTrainedError(
            f"{path} was trained as {model!r}, and {estimator.__name__} is {estimator.name!r}: "
            "take the estimator of that name"
        )
    held = trained.network.config.representation
    if held != representation:
        raise NotTrainedError(
            f"{path} holds a network of the representation {held!r}, not {representation!r}; "
            f"{estimator.__name__}.from_pretrained takes either"
        )
    return trained


class LearnedEstimator(RangingEstimator):
    """A network that was trained on labelled arcs.

    It answers for every tracklet at once, in milliseconds, and where the observations do not
    determine the range its answer is what objects that move like this mostly are. So ``OK`` says
    that the tracklet is of the kind the network was trained on and that the answer is admissible,
    no more. The standard errors beside the answer, of networks with a second output, are the
    network's own estimate of how far it is off: what the observations leave open and what it has
    not learnt, not the errors of the observations alone. How far answers were off on objects never
    trained on stands in the model `card`.

    Parameters
    ----------
    representation : {"invariant", "paper"}
        What the network sees. ``"invariant"``: all observations and the observer where he stood, in
        the frame of the motion; two epochs are enough. ``"paper"``: three directions and the centre
        of the Earth, from which its range counts.
    weights : "default" or path-like
        Those of the package, or a file that `save` or ``neoranging train`` wrote.
    origin : {"topocenter", "geocenter"}, optional
        Origin of the estimate; by default, and for ``"paper"`` always, that of the representation.
        A network that has learnt the parallax of stations is misled by a geocentre in their place.
    slack : float
        Part of the extent of a feature by which it may leave the range seen in training before the
        status says ``OUTSIDE_TRAINING_DOMAIN``; ``estimate.diagnostics`` names the feature.
    level : float
        Share of arcs like those of training that are called ``OUTSIDE_TRAINING_DOMAIN``, those of
        the least probable combinations of features, from 0.0001 to 0.1; at 0 features are judged
        one by one alone, as they are with files of weights that hold no domain.

    Raises
    ------
    CheckpointError
        If the weights are damaged or are none.
    NotTrainedError
        If no weights come with the package, or they are of another representation.
    """

    is_learned: ClassVar[bool] = True
    representations: ClassVar[tuple[str, ...]] = get_args(Representation)
    chunk_size: ClassVar[int] = 8192

    def __init__(
        self,
        *,
        representation: Representation = "invariant",
        weights: str | os.PathLike[str] = "default",
        origin: str | None = None,
        slack: float = 0.05,
        level: float = 0.001,
    ) -> None:
        if representation not in FEATURES:
            raise TrackletError(
                f"representation must be one of {tuple(FEATURES)}, got {representation!r}"
            )
        native = FEATURES[representation].origin
        super().__init__(origin=native if origin is None else origin)
        if native == "geocenter" and self.origin != native:
            raise TrackletError(
                "the paper's representation knows the centre of the Earth only: leave origin "
                "out, or take representation='invariant'"
            )
        if not (isinstance(slack, int | float | np.number) and 0.0 <= slack < math.inf):
            raise TrackletError(f"slack must be a number of at least 0 and finite, got {slack!r}")
        is_number = isinstance(level, int | float | np.number)
        if not (is_number and (level == 0.0 or LEAST_LEVEL <= level <= MOST_LEVEL)):
            raise TrackletError(
                f"level must be 0 or from {LEAST_LEVEL} to {MOST_LEVEL}, got {level!r}"
            )
        if representation == "paper":
            vars(self)["min_observations"] = _TRIPLET
        self.representation, self.slack, self.level = representation, slack, level
        self.weights = weights

    @classmethod
    def from_pretrained(cls, weights: str | os.PathLike[str], **options: Any) -> Self:
        """Estimator of a file of weights, whatever its representation.

        Parameters
        ----------
        weights : path-like
        **options
            ``origin``, ``slack``, ``level``.
        """
        network = load_trained(Path(weights)).network
        return cls(representation=network.config.representation, weights=weights, **options)

    @property
    def network(self) -> RangingNetwork:
        """The network; loaded when first asked for, and shared."""
        return self._trained.network

    @property
    def card(self) -> dict[str, Any]:
        """Model card: what trained the network, on which data, with what result."""
        return copy.deepcopy(self._trained.card)

    @property
    def identity(self) -> dict[str, Any]:
        """Everything its answers depend on: class, origin, options, and the very weights."""
        # without a domain there is no level: calibrations of such weights stay valid
        level = {"level": self.level} if self.network.domain.is_fitted else {}
        return {
            **super().identity,
            "representation": self.representation,
            "slack": self.slack,
            **level,
            "weights_sha256": self._trained.digest,
        }

    @property
    def _calibration_name(self) -> str:
        return f"{self.name}-{self.representation}"

    @cached_property
    def _trained(self) -> Trained:
        return trained_for(type(self), self.weights, self.representation)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the network and its model card; see ``neoranging.nn.checkpoint.save``."""
        checkpoint.save(self.network, path, self.card)

    def _estimate(self, arcs: Arcs, attributables: Attributables) -> Answers:
        network = self.network
        inputs = arc_inputs(arcs, root=network.config.root)
        features = network.features
        shown = features.show(inputs)
        (rho, rho_dot), log_error = network.estimate(inputs, shown)
        outside = features.outside(shown, self.slack)
        beyond = outside.any(axis=1)
        compared, present = features.compared(shown.raw), shown.present > 0.0
        unlike = network.domain.outside(compared, present, self.level)
        short = arcs.n_epochs < (_TRIPLET if self.representation == "paper" else 2)
        missing = short | ~(np.isfinite(rho) & np.isfinite(rho_dot))
        rho[missing] = rho_dot[missing] = np.nan
        answers = Answers.of(attributables, rho, rho_dot, RangeStatus.OK)
        if log_error is not None:
            covariance = answers.covariance
            covariance[:, (0, 1), (0, 1)] = network.output.deviations(log_error, rho) ** 2
            covariance[:, (0, 1), (1, 0)] = np.where(missing, np.nan, 0.0)[:, None]
        status = answers.status
        status[~answers.admissible] = RangeStatus.INADMISSIBLE.code
        status[beyond | unlike | missing] = RangeStatus.OUTSIDE_TRAINING_DOMAIN.code
        status[short] = RangeStatus.TOO_FEW_OBSERVATIONS.code
        if (beyond | unlike).any():
            rows, names = unlike & ~beyond, features.scaling.names
            texts = _outside_domain(outside, names)
            conflicts = network.domain.conflicts(compared[rows], present[rows])
            texts[rows] = _unlike_training(conflicts, names)
            answers = replace(answers, remarks=texts.astype(np.str_))
        return answers

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(representation={self.representation!r}, "
            f"weights={str(self.weights)!r}, origin={self.origin!r})"
        )


def _outside_domain(outside: BoolArray, names: Sequence[str]) -> npt.NDArray[np.object_]:
    """Remarks that name the features beyond their range in training, ``(M, F) -> (M,)``."""
    remarks = np.full(len(outside), "", dtype=object)
    rows = np.flatnonzero(outside.any(axis=1))
    if not len(rows):
        return remarks
    # few combinations occur, and a name for each is quickly made
    kinds, which = np.unique(outside[rows], axis=0, return_inverse=True)
    for k, kind in enumerate(kinds.tolist()):
        named = ", ".join(compress(names, kind))
        remarks[rows[which.reshape(-1) == k]] = f"outside the training domain in {named}"
    return remarks


def _unlike_training(conflicts: FloatArray, names: Sequence[str]) -> npt.NDArray[np.object_]:
    """Remarks that name the two features with the largest conflicts, ``(M, F) -> (M,)``."""
    first, second = np.argsort(-conflicts, axis=1)[:, :2].T
    words = np.array(names, dtype=object)
    prefix = "outside the training domain in the combination of "
    return prefix + words[first] + " and " + words[second]
