"""The loop that fits a network, and goes on exactly where a killed run stopped.

All chance of an epoch (order, which arcs show two epochs) comes from a generator seeded by
the run's seed and the number of the epoch, so what is saved at the end of an epoch is all there is:
weights, their running mean, the best so far, and the moments of the optimiser.
"""

from __future__ import annotations

import copy
import io
import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor

from neoranging._version import __version__
from neoranging.estimators.learned import LearnedEstimator
from neoranging.exceptions import NotTrainedError, TrainingError
from neoranging.files import TEMPORARY, FolderLock, replacing
from neoranging.lab.sets.progress import progress_bar
from neoranging.lab.training.config import TrainingConfig
from neoranging.lab.training.data import TrainingArcs, load_arcs
from neoranging.lab.training.log import RunLog
from neoranging.lab.training.objective import Objective, metrics
from neoranging.nn import checkpoint
from neoranging.nn.features import FEATURES
from neoranging.nn.modules import RangingNetwork, RangingState
from neoranging.nn.scaling import Scaling

CONFIG: Final = "config.json"
STATE: Final = "state.pt"
WEIGHTS: Final = "network.safetensors"
"""Name of the file of weights in the folder of a run."""

_VALIDATION_BATCH: Final = 8192


@dataclass(frozen=True)
class FitResult:
    """What a training gave.

    Attributes
    ----------
    network : RangingNetwork
        Of the epoch with the least validation loss, on the CPU.
    card : dict
        Model card: data, recipe, epochs, metrics, domain.
    history : list of dict
        One row per epoch: learning rate, seconds, terms of the loss, metrics.
    """

    network: RangingNetwork
    card: dict[str, Any]
    history: list[dict[str, float]]


def pick_device(name: str = "auto") -> torch.device:
    """Device of a name; with ``"auto"`` the first there is of cuda, mps, cpu.

    Raises
    ------
    TrainingError
        If there is no such device here.
    """
    there = {
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
        "cpu": True,
    }
    if name == "auto":
        return torch.device(next(kind for kind, present in there.items() if present))
    try:
        device = torch.device(name)
    except RuntimeError:
        raise TrainingError(f"no device {name!r}: choose auto, cuda, mps or cpu") from None
    if not there.get(device.type, False):
        raise TrainingError(f"this machine has no device {name!r}; choose auto or cpu")
    return device


def fit(
    config: TrainingConfig,
    train: TrainingArcs,
    validation: TrainingArcs,
    folder: str | Path,
    *,
    resume: bool = False,
    overwrite: bool = False,
    device: str = "auto",
    threads: int | None = None,
    notes: Mapping[str, Any] | None = None,
    on_epoch: Callable[[dict[str, float]], object] | None = None,
) -> FitResult:
    """Fit a network and leave it in a folder.

    Parameters
    ----------
    config : TrainingConfig
    train, validation : TrainingArcs
        With ranges from the origin of the representation.
    folder : path-like
        Gets ``config.json``, ``log.csv``, a file of events for TensorBoard, ``state.pt`` to go on
        from, and the best network so far as ``network.safetensors`` with its card
        ``network.json``.
    resume : bool
        Go on with the run in the folder, or begin if there is none.
    overwrite : bool
        Begin anew whatever the folder holds.
    device : {"auto", "cuda", "mps", "cpu"}
        On the CPU the same configuration, data and number of threads give the same weights.
    threads : int, optional
        Of the CPU; torch's own choice by default.
    notes : mapping, optional
        Further entries of the model card, plain data.
    on_epoch : callable, optional
        Called with each row of the history.

    Returns
    -------
    FitResult

    Raises
    ------
    TrainingError
        If the folder holds a run that is not to be gone on with, or one of another configuration
        or other data, or if the loss is not finite.
    BusyFolderError
        If another process trains in the folder.
    """
    place = Path(folder)
    run = _Run(config, train, validation, pick_device(device))
    steps = config.epochs * run.steps_per_epoch
    with FolderLock(place), _threads(threads):
        _begin(run, place, resume=resume, overwrite=overwrite)
        with (
            RunLog(place, run.state.history) as log,
            progress_bar(steps, config.model, "step", run.epoch * run.steps_per_epoch) as bar,
        ):
            while not run.finished:
                row = run.do_epoch(lambda: bar.update(1))
                _write_state(run.to_state(), place / STATE)
                log.add(row)
                bar.set_postfix_str(f"validation {row['val_total']:.4g}")
                if run.improved:
                    run.export(place / WEIGHTS, notes)
                if on_epoch is not None:
                    on_epoch(row)
        best, card = run.export(place / WEIGHTS, notes)
    return FitResult(best, card, list(run.state.history))


def _begin(run: _Run, place: Path, *, resume: bool, overwrite: bool) -> None:
    """Make the folder of a run ready, and the run what it was when it stopped."""
    if (place / STATE).exists() and not overwrite:
        if not resume:
            raise TrainingError(f"{place} holds a run already; resume it, or overwrite it")
        _restore(run, place / STATE)
    for left_over in place.glob(f".*{TEMPORARY}"):
        left_over.unlink()
    if overwrite:  # else a kill before the first epoch would leave a mixture of two runs
        for path in (place / STATE, place / WEIGHTS, checkpoint.card_path(place / WEIGHTS)):
            path.unlink(missing_ok=True)
    run.config.save(place / CONFIG)


def _restore(run: _Run, path: Path) -> None:
    saved = _read_state(path)
    try:
        run.restore(saved)
    except TrainingError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError, RuntimeError) as error:
        raise TrainingError(
            f"cannot go on from {path}, which is damaged ({error}); overwrite the run to begin anew"
        ) from error


def fit_set(
    config: TrainingConfig, data: str | Path, folder: str | Path, **options: Any
) -> FitResult:
    """Fit a network on the training part of a stored set, judged by its validation part.

    Parameters
    ----------
    config : TrainingConfig
    data : path-like
        Folder of the set, complete and divided.
    folder : path-like
        Of the run.
    **options
        Of `fit`.

    Raises
    ------
    DatasetError
        If the set is not finished or not divided, or an arc of it cannot be used.
    TrainingError
        See `fit`.
    """
    origin = FEATURES[config.network.representation].origin
    train, validation = (
        load_arcs(
            data,
            split,
            origin,
            drawings=drawings,
            seed=config.seed,
            close_passages=config.close_passages,
        )
        for split, drawings in (("train", config.drawings), ("val", 0))
    )
    return fit(config, train, validation, folder, **options)


def train(
    estimator: LearnedEstimator,
    data: str | Path,
    out: str | Path,
    *,
    recipe: TrainingConfig | None = None,
    **options: Any,
) -> LearnedEstimator:
    """Estimator like another one, with a network trained on a set of labelled arcs.

    Parameters
    ----------
    estimator : LearnedEstimator
        Its model and representation are trained, its options carry over.
    data : path-like
        Folder of a divided set (:doc:`/guide/datasets`).
    out : path-like
        Folder of the run.
    recipe : TrainingConfig, optional
        Of this model and representation; by default the one that the package's own networks are
        trained by.
    **options
        Of `fit`: ``resume``, ``overwrite``, ``device``, ``threads``.

    Returns
    -------
    LearnedEstimator
        Of the same class, with the network of the best epoch.

    Raises
    ------
    NotTrainedError
        If the recipe is of another model or representation.
    """
    mine = estimator.name, estimator.representation
    config = recipe or TrainingConfig.default(*mine)
    if (config.model, config.network.representation) != mine:
        raise NotTrainedError(
            f"the recipe is of {config.model!r}, {config.network.representation!r}; this "
            f"estimator is of {mine[0]!r}, {mine[1]!r}"
        )
    fit_set(config, Path(data), Path(out), **options)
    return type(estimator)(
        representation=estimator.representation,
        weights=Path(out) / WEIGHTS,
        origin=estimator.origin,
        slack=estimator.slack,
    )


@contextmanager
def _threads(number: int | None) -> Iterator[None]:
    before = torch.get_num_threads()
    if number is not None:
        torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@dataclass
class _State:
    """What a run has come to, besides its tensors."""

    epoch: int = 0
    best_loss: float = math.inf
    best_epoch: int = 0
    history: list[dict[str, float]] = field(default_factory=list)


class _Run:
    """A training between two epochs."""

    def __init__(
        self,
        config: TrainingConfig,
        train: TrainingArcs,
        validation: TrainingArcs,
        device: torch.device,
    ) -> None:
        if len(train.drawings) != config.drawings:
            raise TrainingError(
                f"the recipe asks for {config.drawings} drawings of the errors and the arcs have "
                f"{len(train.drawings)}: give both the same number"
            )
        self.config, self.device, self.state = config, device, _State()
        # by which data are known again, whatever the device
        self.facts = {
            name: [len(arcs), float(arcs.rho.sum()), arcs.facts.get("set", "")]
            for name, arcs in (("train", train), ("validation", validation))
        }
        # mps knows no double precision; elsewhere features are double
        dtype = torch.float32 if device.type == "mps" else torch.float64
        self.train, self.validation = (
            arcs.map(lambda x: x.to(device, dtype)) for arcs in (train, validation)
        )
        self.batch = min(config.batch_size, len(train))
        self.steps_per_epoch = len(train) // self.batch
        self.network = self._new_network(train)
        if device.type == "mps":
            self.network.float()
        self.network.to(device)
        self.average = copy.deepcopy(self.network)
        self.best = _copied(self.network)
        population = Scaling(("rho", "rho_dot"))
        population.fit_range(torch.stack([train.rho, train.rho_dot], dim=-1))
        self.objective = Objective(config, population.to(dtype).to(device))
        self.optimizer = torch.optim.AdamW(
            self.network.parameters(),
            lr=config.learning_rate,
            weight_decay=config.weight_decay,
            amsgrad=True,
            fused=device.type in {"cpu", "cuda"},
        )

    def _new_network(self, train: TrainingArcs) -> RangingNetwork:
        # made on the CPU whatever the device, so that the start does not depend on it
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.config.seed)
            network = RangingNetwork(self.config.network)
        network.fit(train.inputs, train.rho, train.rho_dot)
        return network

    @property
    def epoch(self) -> int:
        """Epochs done."""
        return self.state.epoch

    @property
    def finished(self) -> bool:
        waited = self.state.epoch - self.state.best_epoch
        return self.state.epoch >= self.config.epochs or waited >= self.config.patience

    @property
    def improved(self) -> bool:
        """Whether the last epoch was the best."""
        return self.state.epoch == self.state.best_epoch

    # ------------------------------------------------------------------ one epoch

    def do_epoch(self, tick: Callable[[], object]) -> dict[str, float]:
        """Train for one epoch, validate, and tell."""
        began = time.perf_counter()
        terms = self._train(tick)
        told = self._validate()
        self._require_finite(told)
        state = self.state
        state.epoch += 1
        row: dict[str, float] = {
            "epoch": state.epoch,
            "learning_rate": self.optimizer.param_groups[0]["lr"],
            "seconds": time.perf_counter() - began,
            **{f"train_{name}": value for name, value in terms.items()},
            **{f"val_{name}": value for name, value in told.items()},
        }
        if told["total"] < state.best_loss:
            state.best_loss, state.best_epoch = told["total"], state.epoch
            self.best = _copied(self._validated)
        state.history.append(row)
        return row

    def _require_finite(self, told: dict[str, float]) -> None:
        """A last step may ruin a network without a loss that shows it."""
        if not math.isfinite(told["total"]):
            raise TrainingError(
                f"the validation of epoch {self.epoch + 1} is not finite (total "
                f"{told['total']:.4g}): lower the learning rate. The last whole epoch is kept."
            )

    def _train(self, tick: Callable[[], object]) -> dict[str, float]:
        generator = _generator(self.config.seed, self.epoch + 1, self.device)
        order = torch.randperm(len(self.train), generator=generator, device=self.device)
        sums: dict[str, Tensor] = {}
        train = self.train.drawn(self.epoch)
        self.network.train()
        for k in range(self.steps_per_epoch):
            rows = order[k * self.batch : (k + 1) * self.batch]
            arcs = self._shown(train.map(lambda x: x[rows]), generator)  # noqa: B023
            terms = self._step(arcs, self.epoch * self.steps_per_epoch + k)
            for name, term in terms.items():
                sums[name] = sums.get(name, torch.zeros_like(term)) + term
            tick()
        return {name: float(term) / self.steps_per_epoch for name, term in sums.items()}

    def _shown(self, arcs: TrainingArcs, generator: torch.Generator) -> TrainingArcs:
        """Arcs as they are shown this time."""
        share = self.config.two_epoch_fraction
        if share > 0.0:
            drawn = torch.rand(len(arcs), generator=generator, device=self.device)
            arcs = arcs.as_two_epochs(drawn < share)
        return arcs

    def _step(self, arcs: TrainingArcs, step: int) -> dict[str, Tensor]:
        rate = self._learning_rate(step)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.zero_grad(set_to_none=True)
        terms, _ = self.objective(self.network, arcs)
        terms["total"].backward()
        norm = torch.nn.utils.clip_grad_norm_(self.network.parameters(), self.config.clip_norm)
        if not bool(torch.isfinite(norm)):
            self._give_up(terms, norm, step)
        self.optimizer.step()
        self._follow(step)
        return {name: term.detach() for name, term in terms.items()}

    def _give_up(self, terms: dict[str, Tensor], norm: Tensor, step: int) -> None:
        values = ", ".join(f"{name} {float(term.detach()):.4g}" for name, term in terms.items())
        raise TrainingError(
            f"the loss or its gradient is not finite at step {step} of epoch {self.epoch + 1} "
            f"({values}; norm of the gradient {float(norm):.4g}): lower the learning rate, or "
            "look for arcs with impossible values. The last whole epoch is kept."
        )

    def _learning_rate(self, step: int) -> float:
        """Linear rise, then half a cosine down to the final fraction."""
        config = self.config
        rise = config.warmup_epochs * self.steps_per_epoch
        if step < rise:
            return config.learning_rate * (step + 1) / rise
        total = config.epochs * self.steps_per_epoch
        done = (step - rise) / max(total - rise, 1.0)
        fall = 0.5 * (1.0 + math.cos(math.pi * done))
        return config.learning_rate * (config.final_fraction + (1 - config.final_fraction) * fall)

    @torch.no_grad()
    def _follow(self, step: int) -> None:
        """Move the running mean; at first it is a plain mean, or it would remember the start."""
        if self.config.averaging > 0.0:
            decay = min(self.config.averaging, (1.0 + step) / (10.0 + step))
            pairs = zip(self.average.parameters(), self.network.parameters(), strict=True)
            for mean, now in pairs:
                mean.lerp_(now, 1.0 - decay)

    @property
    def _validated(self) -> RangingNetwork:
        return self.average if self.config.averaging > 0.0 else self.network

    @torch.no_grad()
    def _validate(self) -> dict[str, float]:
        network, n = self._validated.eval(), len(self.validation)
        sums: dict[str, float] = {}
        states = []
        for start in range(0, n, _VALIDATION_BATCH):
            arcs = self.validation.map(lambda x: x[start : start + _VALIDATION_BATCH])  # noqa: B023
            terms, state = self.objective(network, arcs)
            states.append(state)
            for name, term in terms.items():
                sums[name] = sums.get(name, 0.0) + float(term) * len(arcs) / n
        joined = RangingState(*(torch.cat(column) for column in zip(*states, strict=True)))
        return {**sums, **metrics(network, joined, self.validation)}

    # ------------------------------------------------------------------ what is kept

    def export(
        self, path: Path, notes: Mapping[str, Any] | None
    ) -> tuple[RangingNetwork, dict[str, Any]]:
        """Write the network of the best epoch so far with its card; both, frozen."""
        network = copy.deepcopy(self.network).cpu()
        network.load_state_dict(self.best)
        card = {**self._card(), **(notes or {})}
        checkpoint.save(network, path, card)
        return network.freeze(), card

    def _card(self) -> dict[str, Any]:
        """Model card of the best network so far."""
        state, scaling = self.state, self.network.features.scaling
        row = state.history[state.best_epoch - 1] if state.best_epoch else {}
        domain = zip(scaling.names, scaling.low.tolist(), scaling.high.tolist(), strict=True)
        return {
            "model": self.config.model,
            "representation": self.config.network.representation,
            "origin": self.network.origin,
            "neoranging": __version__,
            "torch": torch.__version__,
            "device": self.device.type,
            "config": self.config.to_json(),
            "train": self.train.facts,
            "validation": self.validation.facts,
            "epochs_done": state.epoch,
            "best_epoch": state.best_epoch,
            "metrics": {"validation": _named(row, "val_"), "train": _named(row, "train_")},
            "seconds": round(sum(r["seconds"] for r in state.history), 1),
            "domain": {name: [low, high] for name, low, high in domain},
            "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        }

    def to_state(self) -> dict[str, Any]:
        """All that a resumed run needs, as tensors and plain data."""
        return {
            "config": self.config.to_json(),
            "facts": self.facts,
            "state": vars(self.state),
            "network": self.network.state_dict(),
            "average": self.average.state_dict(),
            "best": self.best,
            "optimizer": self.optimizer.state_dict(),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Become the run that was saved.

        Raises
        ------
        TrainingError
            If that was another run.
        """
        for what, mine in (("config", self.config.to_json()), ("facts", self.facts)):
            if saved[what] != mine:
                differing = sorted(k for k in mine if saved[what].get(k) != mine[k])
                raise TrainingError(
                    f"the run to be resumed differs in {', '.join(differing)}: give the same "
                    "options and data, or another folder"
                )
        self.state = _State(**saved["state"])
        self.network.load_state_dict(saved["network"])
        self.average.load_state_dict(saved["average"])
        self.best = _copied(saved["best"])
        self.optimizer.load_state_dict(saved["optimizer"])


def _named(row: dict[str, float], prefix: str) -> dict[str, float]:
    return {k.removeprefix(prefix): v for k, v in row.items() if k.startswith(prefix)}


def _copied(source: RangingNetwork | dict[str, Tensor]) -> dict[str, Tensor]:
    tensors = source if isinstance(source, dict) else source.state_dict()
    return {name: tensor.detach().cpu().clone() for name, tensor in tensors.items()}


def _generator(seed: int, epoch: int, device: torch.device) -> torch.Generator:
    """All chance of an epoch, counted from 1."""
    drawn = np.random.SeedSequence([seed, epoch]).generate_state(2, np.uint32)
    return torch.Generator(device).manual_seed(int(drawn[0]) << 31 | int(drawn[1]) >> 1)


def _write_state(state: dict[str, Any], path: Path) -> None:
    content = io.BytesIO()  # on a full disk torch raises RuntimeError, and the system says why
    torch.save(state, content)
    with replacing(path) as temporary:
        temporary.write_bytes(content.getbuffer())


def _read_state(path: Path) -> dict[str, Any]:
    try:
        # tensors and plain data only: nothing in the file is executed
        saved = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        raise TrainingError(
            f"cannot go on from {path}: {error}; overwrite the run to begin anew"
        ) from error
    if not isinstance(saved, dict) or not {"config", "state", "optimizer"} <= set(saved):
        raise TrainingError(f"{path} holds no run; overwrite it to begin anew")
    return saved
