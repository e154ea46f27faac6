"""Arcs of a stored set that a study judges, and their description."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from neoranging.exceptions import EvaluationError
from neoranging.lab.sets.schema import SPLITS, ArcTable
from neoranging.lab.sets.splits import division_of
from neoranging.lab.sets.store import iterate_arcs, read_manifest
from neoranging.lab.study.bootstrap import capped
from neoranging.lab.study.scores import COLUMNS_NEEDED as _JUDGED
from neoranging.typing import IntArray

COLUMNS_NEEDED: Final = (
    *_JUDGED,
    *("arc_id", "split", "is_close", "is_simulated", "t2_mjd_tdb", "mag", "band", "H_mag"),
)
"""Columns of a set that a study reads."""


@dataclass(frozen=True)
class Selection:
    """Arcs of a set.

    Attributes
    ----------
    split : str, optional
        ``"train"``, ``"val"``, ``"test"``, ``"unseen"``, or several with commas between:
        ``"test,unseen"`` are the objects that no network of this division learnt from. None for the
        arcs of all.
    cap : int, optional
        Most arcs of an object, drawn at random. A few numbered objects own many of the arcs of a
        real set.
    max_arcs : int, optional
        So many arcs at most, of whole objects drawn at random.
    close : bool
        Also take the arcs of orbits that were resampled to pass near the Earth; they are in no
        night's sample.
    seed : int
        Of what is drawn.

    Raises
    ------
    EvaluationError
        If a number is not positive, or there is no such split.
    """

    split: str | None = "test"
    cap: int | None = None
    max_arcs: int | None = None
    close: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("cap", "max_arcs"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise EvaluationError(f"{name} must be at least 1, got {value}")
        if unknown := [part for part in self.parts or () if part not in SPLITS]:
            raise EvaluationError(
                f"no split {', '.join(map(repr, unknown))}; there are {', '.join(SPLITS)}"
            )

    @property
    def parts(self) -> tuple[str, ...] | None:
        """Splits that the arcs are of; None for all."""
        return None if self.split is None else tuple(self.split.split(","))

    def read(self, folder: str | os.PathLike[str]) -> ArcTable:
        """Arcs of a stored set, in its order.

        Raises
        ------
        DatasetError
            If the folder holds no finished set.
        EvaluationError
            If no arc is left.
        """
        parts = iterate_arcs(Path(folder), COLUMNS_NEEDED, self.parts)
        table = ArcTable.concatenate(
            part if self.close else part.take(~part["is_close"]) for part in parts
        )
        if not len(table):
            which = "no arcs" if self.split is None else f"no arcs of the split {self.split!r}"
            raise EvaluationError(
                f"the set in {folder} has {which}: choose another split ('all' takes every arc), "
                "or divide the set with 'neoranging dataset split'"
            )
        return self.of(table)

    def of(self, table: ArcTable) -> ArcTable:
        """Rows of a table under the cap and the greatest number."""
        draw = np.random.default_rng(self.seed)
        _, number = np.unique(table["designation"], return_inverse=True)
        rows: IntArray = np.arange(len(table))
        if self.cap is not None:
            rows = capped(number, self.cap, draw)
        if self.max_arcs is not None and self.max_arcs < len(rows):
            # objects drawn until no more fit; part of the first one if it is larger
            counts = np.bincount(number[rows])
            order = draw.permutation(np.flatnonzero(counts))
            n = int(np.searchsorted(np.cumsum(counts[order]), self.max_arcs, side="right"))
            of_drawn = np.isin(number[rows], order[: max(n, 1)])
            rows = rows[np.flatnonzero(of_drawn)[: self.max_arcs]]
        return table if len(rows) == len(table) else table.take(rows)

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


def describe(
    folder: str | os.PathLike[str], selection: Selection, table: ArcTable
) -> dict[str, Any]:
    """Description of the arcs of a study, as plain data.

    Parameters
    ----------
    folder : path-like
        Of the set.
    selection : Selection
    table : ArcTable
        What it took.

    Returns
    -------
    dict
        ``kind`` ("simulated", "real" or "simulated and real"), ``set``, its ``settings`` and
        ``division``, ``selection``, ``n_arcs``, ``n_objects``, ``n_in_set``, ``first_night``,
        ``last_night`` [MJD], ``largest`` (the object with most arcs) and ``n_largest``.
    """
    manifest = read_manifest(Path(folder))
    simulated = table["is_simulated"]
    kinds = [
        name
        for name, present in (("simulated", simulated.any()), ("real", (~simulated).any()))
        if present
    ]
    objects, counts = np.unique(table["designation"], return_counts=True)
    epochs = table["t2_mjd_tdb"]
    return {
        "kind": " and ".join(kinds),
        "set": Path(folder).resolve().name,
        "settings": plain_settings(manifest.get("settings", {})),
        "division": division_of(manifest),
        "selection": selection.to_json(),
        "n_arcs": len(table),
        "n_objects": len(objects),
        "n_in_set": int(manifest["n_arcs"]),
        "n_close": int(table["is_close"].sum()),
        "first_night": float(epochs.min()),
        "last_night": float(epochs.max()),
        "largest": str(objects[np.argmax(counts)]),
        "n_largest": int(counts.max()),
    }


def plain_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings without those that say nothing."""
    return {name: value for name, value in settings.items() if value not in (None, [], "")}


def is_same_part(description: Mapping[str, Any], data: Mapping[str, Any]) -> bool:
    """Flag of a calibration made of a part of the set that a study, `describe`, looks at."""
    split = data["selection"]["split"]
    return (
        split is not None
        and description.get("split") in split.split(",")
        and plain_settings(description.get("set", {})) == data["settings"]
    )


def fingerprint(table: ArcTable) -> str:
    """Digest of what was observed, by which kept predictions are known to be of these arcs."""
    digest = hashlib.sha256(table.offsets.tobytes())
    for name in ("t_mjd_tdb", "ra_rad", "dec_rad", "sigma_ra_rad", "sigma_dec_rad"):
        digest.update(np.ascontiguousarray(table[name]).tobytes())
    digest.update(np.ascontiguousarray(table["mag"]).tobytes())
    for name in ("stations", "band"):
        digest.update("\n".join(table[name].tolist()).encode())
    return digest.hexdigest()
