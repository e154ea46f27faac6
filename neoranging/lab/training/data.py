"""Labelled arcs in memory as tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from neoranging.ephemeris.states import planet_position
from neoranging.estimators.network_inputs import arc_inputs
from neoranging.exceptions import DatasetError
from neoranging.lab.sets.arcs import OBSERVED, to_core
from neoranging.lab.sets.schema import ArcTable
from neoranging.lab.sets.splits import check_division, digest_of, division_of
from neoranging.lab.sets.store import iterate_arcs, read_manifest
from neoranging.lab.simulation.astrometric_errors import Errors
from neoranging.lab.training.noise import ORBIT, noise_free, redrawn
from neoranging.nn.inputs import ArcInputs

_TRUTH = {
    "geocenter": ("rho_geo_au", "rho_dot_geo_au_d"),
    "topocenter": ("rho_topo_au", "rho_dot_topo_au_d"),
}
_NEEDED = (
    *OBSERVED,
    *("mag", "band"),
    *("designation", "is_simulated", "is_close"),
    *("rho_geo_au", "rho_dot_geo_au_d", "rho_topo_au", "rho_dot_topo_au_d"),
    *ORBIT,
    "truth_dynamics",
)


@dataclass(frozen=True)
class TrainingArcs:
    """Labelled arcs as tensors, all on one device.

    Attributes
    ----------
    inputs : ArcInputs
        Inputs of B arcs as observed.
    rho, rho_dot : Tensor, shape (B,)
        True range [au] and range-rate [au/d].
    drawings : tuple of ArcInputs
        The same arcs with other errors of their observations.
    facts : dict
        Entries for the model card: set, division, numbers of arcs and objects.
    planets : dict of Tensor
        Heliocentric positions of planets at the reference epoch, by name, each (B, 3) [au]. They
        serve the equation of motion; no network is shown them.
    """

    inputs: ArcInputs
    rho: Tensor
    rho_dot: Tensor
    drawings: tuple[ArcInputs, ...] = ()
    facts: dict[str, Any] = field(default_factory=dict)
    planets: dict[str, Tensor] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.rho)

    def map(self, function: Callable[[Tensor], Tensor]) -> Self:
        """Apply a function to every column, as in ``arcs.map(lambda x: x[rows])``."""
        drawings = tuple(inputs.map(function) for inputs in self.drawings)
        truth = function(self.rho), function(self.rho_dot)
        planets = {name: function(position) for name, position in self.planets.items()}
        return type(self)(self.inputs.map(function), *truth, drawings, self.facts, planets)

    def drawn(self, number: int) -> Self:
        """Arcs with the errors for an epoch, counted from 0."""
        inputs = (self.inputs, *self.drawings)[number % (1 + len(self.drawings))]
        return replace(self, inputs=inputs, drawings=())

    def as_two_epochs(self, rows: Tensor) -> Self:
        """Arcs without curvature in the rows of a mask (B,), as if they had two epochs."""
        factor = 1.0 - rows.to(self.rho.dtype)
        inputs = self.inputs._replace(
            curved=self.inputs.curved * factor,
            sky_acc=self.inputs.sky_acc * factor[:, None],
            observer_acc=self.inputs.observer_acc * factor[:, None],
            parallax=self.inputs.parallax * factor,
            root=self.inputs.root * factor,
            root_rate=self.inputs.root_rate * factor,
            has_root=self.inputs.has_root * factor,
        )
        return replace(self, inputs=inputs, drawings=())

    def without_magnitude(self, rows: Tensor) -> Self:
        """Arcs without their magnitude in the rows of a mask (B,)."""
        factor = 1.0 - rows.to(self.rho.dtype)
        inputs = self.inputs._replace(
            magnitude=self.inputs.magnitude * factor,
            has_magnitude=self.inputs.has_magnitude * factor,
        )
        return replace(self, inputs=inputs, drawings=())

    @classmethod
    def concatenate(cls, parts: Iterable[TrainingArcs]) -> Self:
        """Arcs one after the other."""
        parts = list(parts)
        inputs, *drawings = (
            ArcInputs(*map(torch.cat, zip(*variants, strict=True)))
            for variants in zip(*((part.inputs, *part.drawings) for part in parts), strict=True)
        )
        rho, rho_dot = (torch.cat([getattr(p, name) for p in parts]) for name in ("rho", "rho_dot"))
        names = parts[0].planets
        planets = {name: torch.cat([part.planets[name] for part in parts]) for name in names}
        return cls(inputs, rho, rho_dot, tuple(drawings), planets=planets)


def make_training_arcs(
    table: ArcTable,
    origin: str = "topocenter",
    *,
    root: bool = False,
    drawings: int = 0,
    errors: Errors | None = None,
    rng: np.random.Generator | None = None,
    planets: Sequence[str] = (),
) -> TrainingArcs:
    """Inputs and truth of labelled arcs.

    Parameters
    ----------
    table : ArcTable
        M arcs with their truth.
    origin : {"topocenter", "geocenter"}
        Origin of the ranges.
    root : bool
        Solve for the root of Gauss's method, for networks that are shown it.
    drawings : int
        Number of times to draw the errors of simulated arcs anew. Real arcs stay as they are.
    errors : Errors, optional
        Kind of errors to draw; by default as large as measured on real arcs.
    rng : numpy.random.Generator, optional
        Source of the drawings; seeded by 0 by default.
    planets : sequence of str
        Names of the planets whose positions the equation of motion is to have.

    Raises
    ------
    DatasetError
        If there are no arcs, some have no truth, or an input is not finite.
    """
    if not len(table):
        raise DatasetError("no arcs to learn from; divide the set, or take another part of it")
    arcs = to_core(table, origin)
    rho, rho_dot = (torch.from_numpy(table[name]) for name in _TRUTH[origin])
    variants = [arc_inputs(arcs, root=root).map(torch.from_numpy)]
    if drawings:
        rng = np.random.default_rng(0) if rng is None else rng
        # an orbit explains directions from where the observers stood, whatever the origin
        clean, exact = noise_free(table, arcs if origin == "topocenter" else to_core(table))
        noisy = exact & table["is_simulated"]
        rows = noisy[arcs.owner]
        ra, dec = (np.where(rows, *pair) for pair in ((clean.ra, arcs.ra), (clean.dec, arcs.dec)))
        clean, errors = replace(arcs, ra=ra, dec=dec), errors or Errors()
        drawn = (redrawn(clean, noisy, errors, rng) for _ in range(drawings))
        variants += [arc_inputs(one, root=root).map(torch.from_numpy) for one in drawn]
    columns = {"rho": rho, "rho_dot": rho_dot}
    for number, inputs in enumerate(variants):
        suffix = f" of drawing {number}" if number else ""
        columns |= {name + suffix: column for name, column in inputs._asdict().items()}
    wrong = {name: int((~column.isfinite()).sum()) for name, column in columns.items()}
    listed = ", ".join(f"{name} ({n})" for name, n in wrong.items() if n)
    if listed:
        raise DatasetError(
            f"values that are not finite in {listed} of {len(arcs)} arcs; leave arcs without truth "
            "or without a known observer out of the set"
        )
    t2 = arcs.t[arcs.triplet[:, 1]]
    places = {name: torch.from_numpy(planet_position(name, t2)) for name in planets}
    return TrainingArcs(variants[0], rho, rho_dot, tuple(variants[1:]), planets=places)


def load_arcs(
    folder: str | Path,
    split: str,
    origin: str = "topocenter",
    *,
    root: bool = False,
    drawings: int = 0,
    seed: int = 0,
    close_passages: bool = True,
    planets: Sequence[str] = (),
) -> TrainingArcs:
    """Labelled arcs of one part of a stored set.

    Parameters
    ----------
    folder : path-like
        Folder of a set that is complete and divided.
    split : {"train", "val", "test", "unseen"}
    origin : {"topocenter", "geocenter"}
    root : bool
        As for `make_training_arcs`.
    drawings : int
        As for `make_training_arcs`.
    seed : int
        Seed of the drawings.
    close_passages : bool
        Take arcs labelled ``is_close`` as well.
    planets : sequence of str
        As for `make_training_arcs`.

    Raises
    ------
    DatasetError
        If the set is not finished, was not divided or not as it says, or the part has no arcs.
    """
    check_division(folder)
    manifest = read_manifest(folder)
    errors = Errors.of(manifest.get("settings", {}))
    parts, objects = [], set()
    for number, table in enumerate(labelled_tables(folder, split, close_passages)):
        rng = np.random.default_rng((seed, number))
        arcs = make_training_arcs(
            table,
            origin,
            root=root,
            drawings=drawings,
            errors=errors,
            rng=rng,
            planets=planets,
        )
        parts.append(arcs)
        objects.update(np.unique(table["designation"]).tolist())
    joined = TrainingArcs.concatenate(parts)
    return replace(joined, facts=card_facts(folder, len(joined), objects, close_passages))


def labelled_tables(
    folder: str | Path, split: str, close_passages: bool = True
) -> Iterator[ArcTable]:
    """Arcs of one part of a stored set, file by file, with the columns that training needs.

    The parameters, and what is raised, are those of `load_arcs`.
    """
    empty = True
    for part in iterate_arcs(folder, _NEEDED, split):
        table = part if close_passages else part.take(~part["is_close"])
        if len(table):
            empty = False
            yield table
    if empty:
        raise DatasetError(
            f"the set in {folder} has no arcs marked {split!r}: divide it with "
            "'neoranging dataset split'"
        )


def card_facts(
    folder: str | Path, n_arcs: int, objects: set[str], close_passages: bool
) -> dict[str, Any]:
    """Entries for the model card about one part of a stored set."""
    manifest = read_manifest(folder)
    return {
        "set": Path(folder).name,
        "settings": manifest.get("settings", {}),
        "division": division_of(manifest),
        "n_arcs": n_arcs,
        "n_objects": len(objects),
        "objects_sha256": digest_of(objects),
        "close_passages": close_passages,
    }
