"""The loop that fits a network, and goes on exactly where a killed run stopped.

All chance of an epoch (order, which arcs show two epochs, fresh errors) comes from generators
seeded by the run's seed and the number of the epoch, so what is saved at the end of an epoch is all
there is: weights, their running mean, the best so far, and the moments of the optimiser.

Several processes that ``torchrun`` starts train one network (`neoranging.lab.training.processes`).
"""

from __future__ import annotations

import copy
import io
import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
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
from neoranging.lab.sets.progress import NoBar, progress_bar
from neoranging.lab.training.config import TrainingConfig
from neoranging.lab.training.data import TrainingArcs, load_arcs
from neoranging.lab.training.log import RunLog, event_writer
from neoranging.lab.training.network import TrainableNetwork
from neoranging.lab.training.nights import Nights, load_nights
from neoranging.lab.training.objective import Objective, metrics
from neoranging.lab.training.processes import Processes, joined, pick_device
from neoranging.nn import checkpoint
from neoranging.nn.features import FEATURES
from neoranging.nn.network import RangingNetwork, RangingState
from neoranging.nn.scaling import Scaling

CONFIG: Final = "config.json"
STATE: Final = "state.pt"
WEIGHTS: Final = "network.safetensors"
"""Name of the file of weights in the folder of a run."""

_VALIDATION_BATCH: Final = 8192


@dataclass(frozen=True)
class FitResult:
    """Trained network, its model card, and the course of the training.

    Attributes
    ----------
    network : RangingNetwork
        Network of the epoch with the least validation loss, of numpy's arrays.
    card : dict
        Model card: data, recipe, epochs, metrics, domain.
    history : list of dict
        One row per epoch: learning rate, seconds, terms of the loss, metrics.
    """

    network: RangingNetwork
    card: dict[str, Any]
    history: list[dict[str, float]]


def train(
    estimator: LearnedEstimator,
    data: str | Path,
    out: str | Path,
    *,
    recipe: TrainingConfig | None = None,
    **options: Any,
) -> LearnedEstimator:
    """Estimator like another one, with a network trained on a set of labelled arcs.

    The network learns from the training part of the set and is judged by its validation part.

    Parameters
    ----------
    estimator : LearnedEstimator
        Its model and representation are trained, its options carry over.
    data : path-like
        Folder of a complete and divided set (:doc:`/guide/datasets`).
    out : path-like
        Folder of the run.
    recipe : TrainingConfig, optional
        Recipe for this model and representation; by default the one that the package's own
        networks are trained by.
    **options
        Options of ``fit_network``: ``resume``, ``overwrite``, ``device``, ``threads``,
        ``tensorboard``, ``notes``, ``on_epoch``.

    Returns
    -------
    LearnedEstimator
        Estimator of the same class, with the network of the best epoch.

    Raises
    ------
    NotTrainedError
        If the recipe is for another model or representation.
    DatasetError
        If the set is not finished or not divided, or an arc of it cannot be used.
    TrainingError
        See ``fit_network``.
    """
    kind = estimator.name, estimator.representation
    config = recipe or TrainingConfig.default(*kind)
    if (config.model, config.network.representation) != kind:
        raise NotTrainedError(
            f"the recipe is of {config.model!r}, {config.network.representation!r}; this "
            f"estimator is of {kind[0]!r}, {kind[1]!r}"
        )
    fit_on_set(config, data, out, **options)
    return type(estimator)(
        representation=estimator.representation,
        weights=Path(out) / WEIGHTS,
        origin=estimator.origin,
        slack=estimator.slack,
        level=estimator.level,
    )


def fit_on_set(
    config: TrainingConfig, data: str | Path, out: str | Path, **options: Any
) -> FitResult:
    """Fit a network on the training part of a stored set; for the rest see `train`."""
    origin = FEATURES[config.network.representation].origin
    root, close, planets = config.network.root, config.close_passages, config.planets
    validation = load_arcs(data, "val", origin, root=root, close_passages=close, planets=planets)
    chosen: dict[str, Any] = {"root": root, "close_passages": close, "seed": config.seed}
    if config.fresh_nights:
        nights = load_nights(data, "train", **chosen)
        return fit_network(config, nights.drawn(0), validation, out, nights=nights, **options)
    chosen["planets"] = planets
    arcs = load_arcs(data, "train", origin, drawings=config.drawings, **chosen)
    return fit_network(config, arcs, validation, out, **options)


def fit_network(
    config: TrainingConfig,
    train: TrainingArcs,
    validation: TrainingArcs,
    folder: str | Path,
    *,
    nights: Nights | None = None,
    resume: bool = False,
    overwrite: bool = False,
    device: str = "auto",
    threads: int | None = None,
    tensorboard: bool = False,
    notes: Mapping[str, Any] | None = None,
    on_epoch: Callable[[dict[str, float]], object] | None = None,
) -> FitResult:
    """Fit a network and leave it in a folder.

    Parameters
    ----------
    config : TrainingConfig
    train, validation : TrainingArcs
        Arcs with ranges from the origin of the representation.
    nights : Nights, optional
        Other nights of the training arcs, for a recipe with fresh ones; ``train`` then serves for
        the scaling alone.
    folder : path-like
        Gets ``config.json``, ``log.csv``, ``state.pt`` to go on from, and the best network so far
        as ``network.safetensors`` with its card ``network.json``.
    resume : bool
        Go on with the run in the folder, or begin if there is none.
    overwrite : bool
        Begin anew whatever the folder holds.
    device : {"auto", "cuda", "mps", "cpu"}
        On the CPU the same configuration, data and number of threads give the same weights. Of
        several processes that ``torchrun`` started on a machine each takes a GPU of its own, and
        the first alone writes and calls ``on_epoch``.
    threads : int, optional
        Threads of the CPU; torch's own choice by default.
    tensorboard : bool
        Also write a file of events for TensorBoard.
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
    MissingDependencyError
        If a file of events is wanted and tensorboardX is not installed.
    """
    place, where = Path(folder), pick_device(device)
    open_events = event_writer() if tensorboard else None
    with joined(where) as processes, _threads(threads), ExitStack() as held:
        run = _Run(config, train, validation, where, nights, processes)

        def earlier_state() -> bytes | None:
            held.enter_context(FolderLock(place))
            if overwrite or not (place / STATE).exists():
                return None
            if not resume:
                raise TrainingError(f"{place} holds a run already; resume it, or overwrite it")
            return (place / STATE).read_bytes()

        state = processes.shared(earlier_state)
        if state is not None:
            run.restore(state, place / STATE)
        # the first process writes for all
        log, bar = None, NoBar()
        if processes.is_first:
            _clear(place, overwrite)
            config.save(place / CONFIG)
            log = held.enter_context(RunLog(place, run.history, open_events))
            steps = [epochs * run.steps_per_epoch for epochs in (config.epochs, run.epoch)]
            bar = held.enter_context(progress_bar(steps[0], config.model, "step", steps[1]))
        while not run.is_finished:
            row = run.do_epoch(lambda: bar.update(1))
            if log is None:
                continue
            run.save(place / STATE)
            log.add(row)
            bar.set_postfix_str(f"validation {row['val_total']:.4g}")
            if run.best_epoch == run.epoch:
                run.export(place / WEIGHTS, notes)
            if on_epoch is not None:
                on_epoch(row)
        best, card = run.export(place / WEIGHTS, notes)
        processes.shared(lambda: None)  # no process goes on before the file is there
    return FitResult(best, card, list(run.history))


def _clear(folder: Path, overwrite: bool) -> None:
    """Remove what a killed run left unfinished, and a whole run that is to be overwritten."""
    for unfinished in folder.glob(f".*{TEMPORARY}"):
        unfinished.unlink()
    if overwrite:  # else a kill before the first epoch would leave a mixture of two runs
        for path in (folder / STATE, folder / WEIGHTS, checkpoint.card_path(folder / WEIGHTS)):
            path.unlink(missing_ok=True)


@contextmanager
def _threads(number: int | None) -> Iterator[None]:
    """Context in which torch uses that many threads of the CPU; None leaves them alone."""
    before = torch.get_num_threads()
    if number is not None:
        torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class _Run:
    """A training between two epochs."""

    def __init__(
        self,
        config: TrainingConfig,
        train: TrainingArcs,
        validation: TrainingArcs,
        device: torch.device,
        nights: Nights | None,
        processes: Processes,
    ) -> None:
        if config.fresh_nights != (nights is not None):
            raise TrainingError(
                "nights go with a recipe that has fresh ones, and with no other: "
                f"fresh_nights is {config.fresh_nights}"
            )
        if len(train.drawings) != config.drawings:
            raise TrainingError(
                f"the recipe asks for {config.drawings} drawings of the errors and the arcs have "
                f"{len(train.drawings)}: give both the same number"
            )
        for arcs in (train, validation):
            if missing := sorted({*config.planets} - {*arcs.planets}):
                raise TrainingError(
                    f"the recipe has planets that the arcs have no positions of "
                    f"({', '.join(missing)}): load the arcs with planets={config.planets}"
                )
        self.config, self.device, self.nights, self.processes = config, device, nights, processes
        self.epoch, self.best_epoch, self.best_loss = 0, 0, math.inf
        self.history: list[dict[str, float]] = []
        # a resumed run recognises its data by these, on any device
        self.facts = {
            name: [len(arcs), float(arcs.rho.sum()), arcs.facts.get("set", "")]
            for name, arcs in (("train", train), ("validation", validation))
        }
        # mps knows no double precision; elsewhere features are double
        self.dtype = dtype = torch.float32 if device.type == "mps" else torch.float64
        self.train, self.validation = (
            arcs.map(lambda x: x.to(device, dtype)) for arcs in (train, validation)
        )
        self.batch = processes.require_batch(min(config.batch_size, len(train)))
        self.steps_per_epoch = len(train) // self.batch
        # on the CPU whatever the device, so that the initial weights do not depend on it
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(config.seed)
            self.network = TrainableNetwork(config.network)
        self.network.fit(train.inputs, train.rho, train.rho_dot)
        if device.type == "mps":
            self.network.float()
        self.network.to(device)
        self.average = copy.deepcopy(self.network)
        self.best = _copied(self.network.state_dict())
        population = Scaling(("rho", "rho_dot"))
        population.fit_range(torch.stack([train.rho, train.rho_dot], dim=-1))
        self.objective = Objective(config, population, processes)
        self.optimizer = torch.optim.AdamW(
            self.network.parameters(),
            lr=config.learning_rate,
            weight_decay=config.weight_decay,
            amsgrad=True,
            fused=device.type in {"cpu", "cuda"},
        )

    @property
    def is_finished(self) -> bool:
        waited = self.epoch - self.best_epoch
        return self.epoch >= self.config.epochs or waited >= self.config.patience

    # ------------------------------------------------------------------ one epoch

    def do_epoch(self, tick: Callable[[], object]) -> dict[str, float]:
        """Train for one epoch, validate, and return the row of the history."""
        began = time.perf_counter()
        terms = self._train(tick)
        network = self.average if self.config.averaging > 0.0 else self.network
        verdict = self.processes.shared(lambda: self._validate(network.eval()))
        # a last step may ruin a network without a loss that shows it
        if not math.isfinite(verdict["total"]):
            raise TrainingError(
                f"the validation of epoch {self.epoch + 1} is not finite (total "
                f"{verdict['total']:.4g}): lower the learning rate. The last whole epoch is kept."
            )
        self.epoch += 1
        row: dict[str, float] = {
            "epoch": self.epoch,
            "learning_rate": self.optimizer.param_groups[0]["lr"],
            "seconds": time.perf_counter() - began,
            **{f"train_{name}": value for name, value in terms.items()},
            **{f"val_{name}": value for name, value in verdict.items()},
        }
        if verdict["total"] < self.best_loss:
            self.best_loss, self.best_epoch = verdict["total"], self.epoch
            self.best = _copied(network.state_dict())
        self.history.append(row)
        return row

    def _train(self, tick: Callable[[], object]) -> dict[str, float]:
        """Mean terms of the loss over the steps of an epoch."""
        words = np.random.SeedSequence([self.config.seed, self.epoch + 1]).generate_state(2)
        seed = int(words[0]) << 31 | int(words[1]) >> 1
        generator = torch.Generator(self.device).manual_seed(seed)
        order = torch.randperm(len(self.train), generator=generator, device=self.device)
        sums: dict[str, Tensor] = {}
        share = self.config.two_epoch_fraction
        # the night of number 0 is that of the scaling
        shown = self.nights.drawn(self.epoch + 1) if self.nights else self.train.drawn(self.epoch)
        train = shown.map(lambda x: x.to(self.device, self.dtype))
        self.network.train()
        for k in range(self.steps_per_epoch):
            rows = order[k * self.batch : (k + 1) * self.batch]
            part = self.processes.part(rows)
            arcs = train.map(lambda x: x[part])  # noqa: B023
            if share > 0.0:
                chance = torch.rand(len(rows), generator=generator, device=self.device)
                arcs = arcs.as_two_epochs(self.processes.part(chance) < share)
            if self.config.network.magnitude:
                chance = torch.rand(len(rows), generator=generator, device=self.device)
                lost = self.processes.part(chance) < self.config.no_magnitude_fraction
                arcs = arcs.without_magnitude(lost)
            terms = self._step(arcs, self.epoch * self.steps_per_epoch + k)
            for name, term in terms.items():
                sums[name] = sums.get(name, torch.zeros_like(term)) + term
            tick()
        return {name: float(term) / self.steps_per_epoch for name, term in sums.items()}

    def _step(self, arcs: TrainingArcs, step: int) -> dict[str, Tensor]:
        """Terms of the loss on a batch, after which the weights have moved."""
        for group in self.optimizer.param_groups:
            group["lr"] = self._learning_rate(step)
        self.optimizer.zero_grad(set_to_none=True)
        terms, _ = self.objective(self.network, arcs)
        terms["total"].backward()
        terms = self.processes.summed(self.network, terms, len(arcs) / self.batch)
        norm = torch.nn.utils.clip_grad_norm_(self.network.parameters(), self.config.clip_norm)
        terms = {name: term.detach() for name, term in terms.items()}
        if not bool(torch.isfinite(norm)):
            values = ", ".join(f"{name} {float(term):.4g}" for name, term in terms.items())
            raise TrainingError(
                f"the loss or its gradient is not finite at step {step} of epoch {self.epoch + 1} "
                f"({values}; norm of the gradient {float(norm):.4g}): lower the learning rate, or "
                "look for arcs with impossible values. The last whole epoch is kept."
            )
        self.optimizer.step()
        if self.config.averaging > 0.0:
            # at first a plain mean of the weights, or it would remember the start
            decay = min(self.config.averaging, (1.0 + step) / (10.0 + step))
            pairs = zip(self.average.parameters(), self.network.parameters(), strict=True)
            with torch.no_grad():
                for mean, weight in pairs:
                    mean.lerp_(weight, 1.0 - decay)
        return terms

    def _learning_rate(self, step: int) -> float:
        """Linear rise, then half a cosine down to the final fraction."""
        config = self.config
        rise = config.warmup_epochs * self.steps_per_epoch
        if step < rise:
            return config.learning_rate * (step + 1) / rise
        total = config.epochs * self.steps_per_epoch
        progress = (step - rise) / max(total - rise, 1.0)
        fall = 0.5 * (1.0 + math.cos(math.pi * progress))
        return config.learning_rate * (config.final_fraction + (1 - config.final_fraction) * fall)

    @torch.no_grad()
    def _validate(self, network: TrainableNetwork) -> dict[str, float]:
        """Terms of the loss and metrics over the validation arcs."""
        n, states = len(self.validation), []
        sums: dict[str, float] = {}
        for start in range(0, n, _VALIDATION_BATCH):
            arcs = self.validation.map(lambda x: x[start : start + _VALIDATION_BATCH])  # noqa: B023
            terms, state = self.objective(network, arcs)
            states.append(state)
            for name, term in terms.items():
                sums[name] = sums.get(name, 0.0) + float(term) * len(arcs) / n
        joined = RangingState(*(torch.cat(column) for column in zip(*states, strict=True)))
        return {**sums, **metrics(network.view(), joined, self.validation)}

    # ------------------------------------------------------------------ files

    def export(
        self, path: Path, notes: Mapping[str, Any] | None
    ) -> tuple[RangingNetwork, dict[str, Any]]:
        """Network of the best epoch so far with its model card; the first process writes both."""
        network = self.network.exported(self.best)
        row = self.history[self.best_epoch - 1] if self.best_epoch else {}
        scaling = network.features.scaling
        domain = zip(scaling.names, scaling.low.tolist(), scaling.high.tolist(), strict=True)
        card = {
            "model": self.config.model,
            "representation": self.config.network.representation,
            "origin": network.origin,
            "neoranging": __version__,
            "torch": torch.__version__,
            "device": self.device.type,
            "processes": self.processes.count,
            "config": self.config.to_json(),
            "train": self.train.facts,
            "validation": self.validation.facts,
            "epochs_done": self.epoch,
            "best_epoch": self.best_epoch,
            "metrics": {
                part: {k.removeprefix(prefix): v for k, v in row.items() if k.startswith(prefix)}
                for part, prefix in (("validation", "val_"), ("train", "train_"))
            },
            "seconds": round(sum(r["seconds"] for r in self.history), 1),
            "domain": {name: [low, high] for name, low, high in domain},
            "finished": datetime.now(UTC).isoformat(timespec="seconds"),
            **(notes or {}),
        }
        if self.processes.is_first:
            checkpoint.save(network, path, card)
        return network, card

    def save(self, path: Path) -> None:
        """Write what a resumed run needs: tensors and plain data."""
        progress = ("epoch", "best_loss", "best_epoch", "history")
        state = {
            "config": self.config.to_json(),
            "facts": self.facts,
            "state": {name: getattr(self, name) for name in progress},
            "network": self.network.state_dict(),
            "average": self.average.state_dict(),
            "best": self.best,
            "optimizer": self.optimizer.state_dict(),
        }
        _write_state(state, path)

    def restore(self, content: bytes, path: Path) -> None:
        """Become the run whose state, the content of a file, is given.

        Raises
        ------
        TrainingError
            If the file is damaged or something else, or of another run.
        """
        try:
            # tensors and plain data only: nothing in the file is executed
            saved = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
            # a run from before an option was there is one with its default
            saved["config"] = {**TrainingConfig().to_json(), **saved["config"]}
            for part, own in (("config", self.config.to_json()), ("facts", self.facts)):
                differing = sorted(k for k in own if saved[part].get(k) != own[k])
                if saved[part] != own:
                    raise TrainingError(
                        f"the run to be resumed differs in {', '.join(differing)}: give the same "
                        "options and data, or another folder"
                    )
            progress = saved["state"]
            self.epoch, self.history = progress["epoch"], progress["history"]
            self.best_loss, self.best_epoch = progress["best_loss"], progress["best_epoch"]
            self.network.load_state_dict(saved["network"])
            self.average.load_state_dict(saved["average"])
            self.best = _copied(saved["best"])
            self.optimizer.load_state_dict(saved["optimizer"])
        except TrainingError:
            raise
        except Exception as error:  # damaged files fail in as many ways as there are readers
            raise TrainingError(
                f"cannot go on from {path}, which is damaged or no state of a run ({error}); "
                "overwrite the run to begin anew"
            ) from error


def _write_state(state: dict[str, Any], path: Path) -> None:
    content = io.BytesIO()  # on a full disk torch raises RuntimeError, and the system says why
    torch.save(state, content)
    with replacing(path) as temporary:
        temporary.write_bytes(content.getbuffer())


def _copied(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.detach().cpu().clone() for name, tensor in tensors.items()}
