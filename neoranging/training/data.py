"""Labelled arcs in memory as tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from neoranging.arc_inputs import arc_inputs
from neoranging.core.arcs import Arcs
from neoranging.datasets.arcs import to_core
from neoranging.datasets.schema import ArcTable
from neoranging.datasets.store import iterate_arcs, read_manifest
from neoranging.exceptions import DatasetError
from neoranging.nn.inputs import ArcInputs
from neoranging.training.noise import ORBIT, FreshNoise, noise_free

__all__ = ["ORIGINS", "TrainingArcs", "load_arcs", "make_training_arcs"]

ORIGINS = {"paper": "geocenter", "invariant": "topocenter"}
"""Where the ranges of a representation count from."""

_TRUTH = {
    "geocenter": ("rho_geo_au", "rho_dot_geo_au_d"),
    "topocenter": ("rho_topo_au", "rho_dot_topo_au_d"),
}
_NEEDED = (
    *("designation", "station", "stations", "is_simulated", "is_close"),
    *("t_mjd_tdb", "ra_rad", "dec_rad", "sigma_ra_rad", "sigma_dec_rad"),
    *("rho_geo_au", "rho_dot_geo_au_d", "rho_topo_au", "rho_dot_topo_au_d"),
    *ORBIT,
)


@dataclass(frozen=True)
class TrainingArcs:
    """B arcs with their truth, all on one device.

    Attributes
    ----------
    inputs : ArcInputs
        As observed; of noise-free observations where there is ``noise``.
    rho, rho_dot : Tensor, shape (B,)
        True range [au] and range-rate [au/d].
    noise : FreshNoise, optional
        To be added anew whenever an arc is seen.
    facts : dict
        What a model card tells of them.
    """

    inputs: ArcInputs
    rho: Tensor
    rho_dot: Tensor
    noise: FreshNoise | None = None
    facts: dict[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.rho)

    def map(self, function: Callable[[Tensor], Tensor]) -> Self:
        """Apply a function to every column, as in ``arcs.map(lambda x: x[rows])``."""
        noise = None if self.noise is None else self.noise.map(function)
        truth = function(self.rho), function(self.rho_dot)
        return type(self)(self.inputs.map(function), *truth, noise, self.facts)

    def observed(self, generator: torch.Generator, spread: float = 0.0) -> Self:
        """Arcs with noise drawn, see `FreshNoise.add`; themselves where there is none to draw."""
        if self.noise is None:
            return self
        inputs = self.noise.add(self.inputs, generator, spread)
        return type(self)(inputs, self.rho, self.rho_dot, None, self.facts)

    def as_two_epochs(self, rows: Tensor) -> Self:
        """Arcs of which those of a mask (B,) show no curvature, as with two epochs."""
        kept = 1.0 - rows.to(self.rho.dtype)
        inputs = self.inputs._replace(
            curved=self.inputs.curved * kept,
            sky_acc=self.inputs.sky_acc * kept[:, None],
            observer_acc=self.inputs.observer_acc * kept[:, None],
            parallax=self.inputs.parallax * kept,
        )
        return type(self)(inputs, self.rho, self.rho_dot, self.noise, self.facts)

    @classmethod
    def concatenate(cls, parts: Iterable[TrainingArcs]) -> Self:
        """Arcs one after the other."""
        columns = [part._columns() for part in parts]
        joined = [torch.cat(column) for column in zip(*columns, strict=True)]
        n = len(ArcInputs._fields)
        noise = FreshNoise(*joined[n + 2 :]) if len(joined) > n + 2 else None
        return cls(ArcInputs(*joined[:n]), joined[n], joined[n + 1], noise)

    def _columns(self) -> list[Tensor]:
        return [*self.inputs, self.rho, self.rho_dot, *(self.noise or ())]


def make_training_arcs(
    table: ArcTable, origin: str = "topocenter", *, fresh_noise: bool = False
) -> TrainingArcs:
    """Inputs and truth of labelled arcs.

    Parameters
    ----------
    table : ArcTable
        M arcs with their truth.
    origin : {"topocenter", "geocenter"}
        Where the ranges count from.
    fresh_noise : bool
        Take the noise off simulated arcs and keep what draws it anew. Real arcs stay as they are.

    Raises
    ------
    DatasetError
        If there are no arcs, some have no truth, or an input is not finite.
    """
    if not len(table):
        raise DatasetError("no arcs to learn from; divide the set, or take another part of it")
    place = to_core(table)
    noise = None
    if fresh_noise:
        place, exact = noise_free(table, place)
        noise = FreshNoise.of(place, exact & table["is_simulated"])
    arcs = place if origin == "topocenter" else _with_directions(to_core(table, origin), place)
    rho, rho_dot = (torch.from_numpy(table[name]) for name in _TRUTH[origin])
    made = TrainingArcs(arc_inputs(arcs), rho, rho_dot, noise)
    _require_finite(made)
    return made


def _with_directions(arcs: Arcs, other: Arcs) -> Arcs:
    sigma = arcs.sigma_ra, arcs.sigma_dec
    return Arcs(arcs.offsets, arcs.t, other.ra, other.dec, *sigma, arcs.position, arcs.velocity)


def _require_finite(arcs: TrainingArcs) -> None:
    columns = {**arcs.inputs._asdict(), "rho": arcs.rho, "rho_dot": arcs.rho_dot}
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
    fresh_noise: bool = False,
    close_passages: bool = True,
) -> TrainingArcs:
    """Labelled arcs of one part of a stored set.

    Parameters
    ----------
    folder : path-like
        Of a set that is complete and divided.
    split : {"train", "val", "test", "unseen"}
    origin : {"topocenter", "geocenter"}
    fresh_noise : bool
        As for `make_training_arcs`.
    close_passages : bool
        Whether to take arcs labelled ``is_close`` as well.

    Raises
    ------
    DatasetError
        If the set is not finished, was not divided, or the part has no arcs.
    """
    manifest = read_manifest(folder)
    parts, objects = [], set()
    for part in iterate_arcs(folder, _NEEDED, split):
        table = part if close_passages else part.take(~part["is_close"])
        if not len(table):
            continue
        parts.append(make_training_arcs(table, origin, fresh_noise=fresh_noise))
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
        "division": {k: v for k, v in manifest.get("splits", {}).items() if k != "parts"},
        "n_arcs": len(whole),
        "n_objects": len(objects),
        "close_passages": close_passages,
    }
    return TrainingArcs(whole.inputs, whole.rho, whole.rho_dot, whole.noise, facts)
