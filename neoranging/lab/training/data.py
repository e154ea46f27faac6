"""Labelled arcs in memory as tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from neoranging.core.arcs import Arcs
from neoranging.estimators.network_inputs import arc_inputs
from neoranging.exceptions import DatasetError
from neoranging.lab.sets.arcs import OBSERVED, to_core
from neoranging.lab.sets.schema import ArcTable
from neoranging.lab.sets.splits import division_of
from neoranging.lab.sets.store import iterate_arcs, read_manifest
from neoranging.lab.simulation.astrometric_errors import Errors
from neoranging.lab.training.noise import ORBIT, noise_free, redrawn, visits
from neoranging.nn.inputs import ArcInputs
from neoranging.typing import BoolArray

_TRUTH = {
    "geocenter": ("rho_geo_au", "rho_dot_geo_au_d"),
    "topocenter": ("rho_topo_au", "rho_dot_topo_au_d"),
}
_NEEDED = (
    *OBSERVED,
    *("designation", "is_simulated", "is_close"),
    *("rho_geo_au", "rho_dot_geo_au_d", "rho_topo_au", "rho_dot_topo_au_d"),
    *ORBIT,
)


@dataclass(frozen=True)
class TrainingArcs:
    """B arcs with their truth, all on one device.

    Attributes
    ----------
    inputs : ArcInputs
        As observed.
    rho, rho_dot : Tensor, shape (B,)
        True range [au] and range-rate [au/d].
    drawings : tuple of ArcInputs
        The same arcs with other errors of their observations.
    facts : dict
        What a model card tells of them.
    """

    inputs: ArcInputs
    rho: Tensor
    rho_dot: Tensor
    drawings: tuple[ArcInputs, ...] = ()
    facts: dict[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.rho)

    def map(self, function: Callable[[Tensor], Tensor]) -> Self:
        """Apply a function to every column, as in ``arcs.map(lambda x: x[rows])``."""
        drawings = tuple(inputs.map(function) for inputs in self.drawings)
        truth = function(self.rho), function(self.rho_dot)
        return type(self)(self.inputs.map(function), *truth, drawings, self.facts)

    def drawn(self, number: int) -> Self:
        """Arcs with the errors that are due in an epoch, counted from 0."""
        inputs = (self.inputs, *self.drawings)[number % (1 + len(self.drawings))]
        return type(self)(inputs, self.rho, self.rho_dot, (), self.facts)

    def as_two_epochs(self, rows: Tensor) -> Self:
        """Arcs of which those of a mask (B,) show no curvature, as with two epochs."""
        kept = 1.0 - rows.to(self.rho.dtype)
        inputs = self.inputs._replace(
            curved=self.inputs.curved * kept,
            sky_acc=self.inputs.sky_acc * kept[:, None],
            observer_acc=self.inputs.observer_acc * kept[:, None],
            parallax=self.inputs.parallax * kept,
        )
        return type(self)(inputs, self.rho, self.rho_dot, (), self.facts)

    @classmethod
    def concatenate(cls, parts: Iterable[TrainingArcs]) -> Self:
        """Arcs one after the other."""
        whole = list(parts)
        inputs, *drawings = (
            ArcInputs(*map(torch.cat, zip(*variants, strict=True)))
            for variants in zip(*((part.inputs, *part.drawings) for part in whole), strict=True)
        )
        rho, rho_dot = (torch.cat([getattr(p, name) for p in whole]) for name in ("rho", "rho_dot"))
        return cls(inputs, rho, rho_dot, tuple(drawings))


def make_training_arcs(
    table: ArcTable,
    origin: str = "topocenter",
    *,
    drawings: int = 0,
    errors: Errors | None = None,
    rng: np.random.Generator | None = None,
) -> TrainingArcs:
    """Inputs and truth of labelled arcs.

    Parameters
    ----------
    table : ArcTable
        M arcs with their truth.
    origin : {"topocenter", "geocenter"}
        Where the ranges count from.
    drawings : int
        How many more times to draw the errors of simulated arcs. Real arcs stay as they are.
    errors : Errors, optional
        Of which kind drawings are; as real ones where nothing is said.
    rng : numpy.random.Generator, optional
        Of the drawings; seeded by 0 where none is given.

    Raises
    ------
    DatasetError
        If there are no arcs, some have no truth, or an input is not finite.
    """
    if not len(table):
        raise DatasetError("no arcs to learn from; divide the set, or take another part of it")
    arcs = to_core(table, origin)
    rho, rho_dot = (torch.from_numpy(table[name]) for name in _TRUTH[origin])
    made = TrainingArcs(arc_inputs(arcs), rho, rho_dot)
    if drawings:
        rng = np.random.default_rng(0) if rng is None else rng
        place = arcs if origin == "topocenter" else to_core(table)
        bare, noisy = _without_errors(table, arcs, place)
        visit, errors = visits(bare, table["stations"]), errors or Errors()
        again = (redrawn(bare, visit, noisy, errors, rng) for _ in range(drawings))
        made = replace(made, drawings=tuple(map(arc_inputs, again)))
    _require_finite(made)
    return made


def _without_errors(table: ArcTable, arcs: Arcs, place: Arcs) -> tuple[Arcs, BoolArray]:
    """Simulated arcs rid of their errors, and which these are; ``place`` are the same as seen."""
    clean, exact = noise_free(table, place)
    noisy = exact & table["is_simulated"]
    rows = noisy[arcs.owner]
    ra, dec = (np.where(rows, *pair) for pair in ((clean.ra, arcs.ra), (clean.dec, arcs.dec)))
    return replace(arcs, ra=ra, dec=dec), noisy


def _require_finite(arcs: TrainingArcs) -> None:
    columns = {**arcs.inputs._asdict(), "rho": arcs.rho, "rho_dot": arcs.rho_dot}
    for number, drawing in enumerate(arcs.drawings, 1):
        columns |= {f"{name} of drawing {number}": x for name, x in drawing._asdict().items()}
    wrong = {name: int((~column.isfinite()).sum()) for name, column in columns.items()}
    listed = ", ".join(f"{name} ({n})" for name, n in wrong.items() if n)
    if listed:
        raise DatasetError(
            f"values that are not finite in {listed} of {len(arcs)} arcs; leave arcs without truth "
            "or without a known observer out of the set"
        )


def load_arcs(
    folder: str | Path,
    split: str,
    origin: str = "topocenter",
    *,
    drawings: int = 0,
    seed: int = 0,
    close_passages: bool = True,
) -> TrainingArcs:
    """Labelled arcs of one part of a stored set.

    Parameters
    ----------
    folder : path-like
        Of a set that is complete and divided.
    split : {"train", "val", "test", "unseen"}
    origin : {"topocenter", "geocenter"}
    drawings : int
        As for `make_training_arcs`.
    seed : int
        Of the drawings.
    close_passages : bool
        Whether to take arcs labelled ``is_close`` as well.

    Raises
    ------
    DatasetError
        If the set is not finished, was not divided, or the part has no arcs.
    """
    manifest = read_manifest(folder)
    errors = Errors.of(manifest.get("settings", {}))
    parts, objects = [], set()
    for number, part in enumerate(iterate_arcs(folder, _NEEDED, split)):
        table = part if close_passages else part.take(~part["is_close"])
        if not len(table):
            continue
        rng = np.random.default_rng((seed, number))
        made = make_training_arcs(table, origin, drawings=drawings, errors=errors, rng=rng)
        parts.append(made)
        objects.update(np.unique(table["designation"]).tolist())
    if not parts:
        raise DatasetError(
            f"the set in {folder} has no arcs marked {split!r}: divide it with "
            "'neoranging dataset split'"
        )
    whole = TrainingArcs.concatenate(parts)
    facts = {
        "set": Path(folder).name,
        "settings": manifest.get("settings", {}),
        "division": division_of(manifest),
        "n_arcs": len(whole),
        "n_objects": len(objects),
        "close_passages": close_passages,
    }
    return replace(whole, facts=facts)
