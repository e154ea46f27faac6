"""Sets of real arcs: any table of observations, any table of orbits."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from neoranging.lab.sets.arcs import form_arcs
from neoranging.lab.sets.schema import ArcTable
from neoranging.lab.sets.store import ArcWriter
from neoranging.lab.sets.truth import GATE_ARCSEC, label_arcs
from neoranging.orbits.catalogue import load_catalogue, read_orbits
from neoranging.records import Account
from neoranging.typing import FloatArray

MAX_U: Final = 3
"""Largest uncertainty parameter of an orbit that labels arcs. U = 3 lets the place in the orbit
run off by 87" in ten years; the gate judges what matters of it in an arc."""

_ARCS_PER_PART: Final = 50_000
"""Arcs in one part of a stored set."""

_QUANTILES: Final = {"10 %": 0.1, "median": 0.5, "90 %": 0.9, "largest": 1.0}


@dataclass(frozen=True)
class RealSummary:
    """Quality of the labels of a set.

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

    @classmethod
    def of(cls, table: ArcTable) -> RealSummary:
        """Quality of the labels of a table of arcs."""
        import pandas as pd

        residual = table["truth_residual_arcsec"]
        objects = pd.Series(residual).groupby(table["designation"])
        sizes = objects.size().sort_values(ascending=False, kind="stable")
        return cls(
            n_arcs=len(table),
            n_objects=len(sizes),
            residual=_quantiles(residual),
            residual_by_object=float(objects.median().median()) if len(table) else None,
            largest={str(name): int(n) for name, n in sizes.head(5).items()},
            rho_au=_quantiles(table["rho_geo_au"]),
            pseudo_admissible=float(table["pseudo_admissible"].mean()) if len(table) else None,
        )

    def __str__(self) -> str:
        lines = [f"{self.n_arcs} arcs of {self.n_objects} objects"]
        if self.pseudo_admissible is not None:
            owners = ", ".join(f"{name} {count}" for name, count in self.largest.items())
            residual = ", ".join(f"{name} {value:.2f}" for name, value in self.residual.items())
            rho = ", ".join(f"{name} {value:.4f}" for name, value in self.rho_au.items())
            lines += [
                f"  most arcs: {owners}",
                f"  residual of the labels [arcsec]: {residual}",
                f"  median over objects of their median: {self.residual_by_object:.2f}",
                f"  geocentric range [au]: {rho}",
                f"  pseudo-truth admissible: {100 * self.pseudo_admissible:.2f} %",
            ]
        return "\n".join(lines)


def _quantiles(values: FloatArray) -> dict[str, float]:
    levels = _QUANTILES if len(values) else {}
    return {name: float(np.quantile(values, level)) for name, level in levels.items()}


def make_real_set(
    observations: Sequence[str | os.PathLike[str]],
    orbits: str | os.PathLike[str] | None,
    folder: str | os.PathLike[str],
    *,
    dynamics: str = "nbody",
    max_u: int | None = MAX_U,
    gate: float = GATE_ARCSEC,
    group_by: str | Collection[str] = ("night", "station"),
    overwrite: bool = False,
    progress: Callable[[int], object] | None = None,
) -> tuple[RealSummary, Account]:
    """Make a set of labelled arcs from real observations.

    Parameters
    ----------
    observations : sequence of path-like
        Files of any format that `neoranging.read_tracklets` knows: tables need the column
        ``designation``, by which an orbit is found, and may have ``selected`` (0 or false: rejected
        from the orbit) and ``note2`` (as in the 80-column format).
    orbits : path-like, optional
        See `neoranging.orbits.read_orbits`; the catalogue of the package by default.
    folder : path-like
        Where the set goes.
    dynamics : {"nbody", "kepler"}
        See `neoranging.lab.sets.label_arcs`. Real observations reach back years, over which
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

    Raises
    ------
    ObservationFormatError
        If a file is no table of observations or of orbits.
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
        catalogue = load_catalogue() if orbits is None else read_orbits(orbits)
        formed, account = form_arcs(list(observations), group_by=group_by)
        labelled, labels = label_arcs(
            formed, catalogue, dynamics=dynamics, gate=gate, max_u=max_u, progress=progress
        )
        account = Account({**account.counts, "arcs": account.counts["arcs"].then(labels)})
        summary = RealSummary.of(labelled)
        # parts after those that an interrupted run left; the first has the account
        for k in range(writer.n_parts, max(1, -(-len(labelled) // _ARCS_PER_PART))):
            part = labelled.take(slice(k * _ARCS_PER_PART, (k + 1) * _ARCS_PER_PART))
            writer.write(part, account if k == 0 else None)
        writer.describe(labels=vars(summary))
    return summary, account
