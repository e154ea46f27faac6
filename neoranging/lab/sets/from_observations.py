"""Sets of real arcs: any table of observations, any table of orbits."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from neoranging.lab.sets.arcs import form_arcs
from neoranging.lab.sets.plain_observations import read_observation_table
from neoranging.lab.sets.schema import ArcTable
from neoranging.lab.sets.store import ArcWriter
from neoranging.lab.sets.truth import GATE, label_arcs
from neoranging.orbits.catalogue import Catalogue, load_catalogue, read_orbits
from neoranging.records import Account

MAX_U: Final = 3
"""Largest uncertainty parameter of orbits that can tell the truth. U = 3 lets the place in the
orbit run off by 87" in ten years; what matters of it in an arc is judged by the gate."""

_PART: Final = 50_000
"""Arcs in one part of a stored set."""


@dataclass(frozen=True)
class RealSummary:
    """How good the labels of a set are.

    Attributes
    ----------
    n_arcs, n_objects : int
    residual : mapping of str to float
        Quantiles of ``truth_residual_arcsec`` over the arcs.
    residual_by_object : float or None
        Median over the objects of their medians: a few objects own most real arcs [arcsec].
    largest : mapping of str to int
        Arcs of the objects that have most.
    rho_au : mapping of str to float
        Quantiles of the geocentric range.
    pseudo_admissible : float or None
        Share of arcs whose attributable with the true range is admissible. None without arcs, as
        above.
    """

    n_arcs: int
    n_objects: int
    residual: Mapping[str, float]
    residual_by_object: float | None
    largest: Mapping[str, int]
    rho_au: Mapping[str, float]
    pseudo_admissible: float | None

    def __str__(self) -> str:
        lines = [f"{self.n_arcs} arcs of {self.n_objects} objects"]
        if self.pseudo_admissible is not None:
            owners = ", ".join(f"{name} {count}" for name, count in self.largest.items())
            lines += [
                f"  most arcs: {owners}",
                f"  residual of the labels [arcsec]: {_shown(self.residual, '.2f')}",
                f"  median over objects of their median: {self.residual_by_object:.2f}",
                f"  geocentric range [au]: {_shown(self.rho_au, '.4f')}",
                f"  pseudo-truth admissible: {100 * self.pseudo_admissible:.2f} %",
            ]
        return "\n".join(lines)


def _shown(quantiles: Mapping[str, float], form: str) -> str:
    return ", ".join(f"{name} {value:{form}}" for name, value in quantiles.items())


_QUANTILES: Final = {"10 %": 0.1, "median": 0.5, "90 %": 0.9, "largest": 1.0}


def summarise(table: ArcTable) -> RealSummary:
    """Quality of the labels of a set of arcs."""
    names, owner, counts = np.unique(table["designation"], return_inverse=True, return_counts=True)
    residual, rho = table["truth_residual_arcsec"], table["rho_geo_au"]
    by_object = [float(np.median(residual[owner == k])) for k in range(len(names))]
    most = np.argsort(-counts, kind="stable")[:5]
    return RealSummary(
        n_arcs=len(table),
        n_objects=len(names),
        residual=_quantiles(residual),
        residual_by_object=float(np.median(by_object)) if by_object else None,
        largest={str(names[k]): int(counts[k]) for k in most},
        rho_au=_quantiles(rho),
        pseudo_admissible=float(table["pseudo_admissible"].mean()) if len(table) else None,
    )


def _quantiles(values: Any) -> dict[str, float]:
    if not len(values):
        return {}
    return {name: float(np.quantile(values, level)) for name, level in _QUANTILES.items()}


def _source(path: str | os.PathLike[str]) -> Any:
    """Table of a comma-separated file; files of the known formats are left to their readers."""
    return read_observation_table(path) if ".csv" in Path(path).suffixes else path


def make_real_set(
    observations: Sequence[str | os.PathLike[str]],
    orbits: str | os.PathLike[str] | None,
    folder: str | os.PathLike[str],
    *,
    dynamics: str = "nbody",
    max_u: int | None = MAX_U,
    gate: float = GATE,
    group_by: str | Collection[str] = ("night", "station"),
    overwrite: bool = False,
    progress: Callable[[int], object] | None = None,
) -> tuple[RealSummary, Account]:
    """Make a set of labelled arcs from real observations.

    Parameters
    ----------
    observations : sequence of path-like
        Comma-separated tables (``.csv``, ``.csv.gz``; see
        `neoranging.lab.sets.plain_observations.read_observation_table`), or files of any format
        that `neoranging.read_tracklets` knows.
    orbits : path-like, optional
        See `neoranging.orbits.catalogue.read_orbits`; the catalogue of the package by default.
    folder : path-like
        Where the set goes.
    dynamics : {"nbody", "kepler"}
        See `neoranging.lab.sets.truth.truth`. Real observations reach back years, over which
        two-body motion is off by minutes of arc: the gate then leaves little.
    max_u : int, optional
        Largest uncertainty parameter of an orbit; None not to judge it.
    gate : float
        Largest residual of a label [arcsec]; infinite for no gate.
    group_by : {"night", "station"} or ("night", "station")
        What belongs together besides the object.
    overwrite : bool
        Replace a set that is there.
    progress : callable, optional
        Called with the number of arcs labelled since it was last called.

    Returns
    -------
    summary : RealSummary
    account : Account
        Of records, observations and arcs.
    """
    settings = {
        "command": "real",
        "observations": [Path(path).name for path in observations],
        "orbits": "package" if orbits is None else Path(orbits).name,
        "dynamics": dynamics,
        "max_u": max_u,
        "gate_arcsec": gate,
        "group_by": [group_by] if isinstance(group_by, str) else list(group_by),
    }
    # the writer first, so that a folder that is taken does not cost the work
    with ArcWriter(Path(folder), settings=settings, overwrite=overwrite) as writer:
        catalogue: Catalogue = load_catalogue() if orbits is None else read_orbits(orbits)
        formed, account = form_arcs([_source(path) for path in observations], group_by=group_by)
        labelled, labels = label_arcs(
            formed, catalogue, dynamics=dynamics, gate=gate, max_u=max_u, progress=progress
        )
        account = Account({**account.counts, "arcs": account.counts["arcs"].then(labels)})
        summary = summarise(labelled)
        _write(writer, labelled, account)
        writer.describe(labels=vars(summary))
    return summary, account


def _write(writer: ArcWriter, table: ArcTable, account: Account) -> None:
    """Parts of the set, after those that an interrupted run left; the first has the account."""
    starts = range(0, max(len(table), 1), _PART)
    for k in range(writer.n_parts, len(starts)):
        part = table.take(slice(starts[k], starts[k] + _PART))
        writer.write(part, account if k == 0 else None)
