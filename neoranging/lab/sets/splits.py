"""Training, validation and test: whole objects, so that no arc of one tells about another."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from neoranging.exceptions import DatasetError
from neoranging.lab.sets.schema import SPLITS
from neoranging.lab.sets.store import read_arcs, rewrite_arcs
from neoranging.typing import BoolArray, IntArray, StrArray

RATIOS: Final = (0.7, 0.2, 0.1)
"""Shares of the arcs in training, validation and test."""

_FEW_ARCS: Final = 16
"""Arcs of an object that waits until those with more are dealt out."""


@dataclass(frozen=True)
class Division:
    """Part of the set that each object belongs to.

    Attributes
    ----------
    designation, split : ndarray of str, shape (K,)
        Object and its part.
    n_arcs : ndarray of int, shape (K,)
        Arcs of the object.
    """

    designation: StrArray
    split: StrArray
    n_arcs: IntArray

    def of(self, designation: StrArray) -> StrArray:
        """Part of each arc, given its object; shape (M,).

        Raises
        ------
        DatasetError
            If an object is not in this division.
        """
        row = np.searchsorted(self.designation, designation)
        row = np.minimum(row, len(self.designation) - 1)
        unknown = self.designation[row] != designation
        if unknown.any():
            raise DatasetError(f"object {str(designation[unknown][0])!r} is not in this division")
        return self.split[row]

    def parts(self) -> list[dict[str, Any]]:
        """Arcs and objects of each part; ``share`` is that of the arcs not held back."""
        divided = max(int(self.n_arcs[self.split != "unseen"].sum()), 1)
        parts = []
        for name in SPLITS:
            n_arcs = self.n_arcs[self.split == name]
            n = int(n_arcs.sum())
            share = 0.0 if name == "unseen" else round(n / divided, 6)
            parts.append({"split": name, "n_arcs": n, "n_objects": len(n_arcs), "share": share})
        return parts

    def __str__(self) -> str:
        return "\n".join(
            "{split:6s} {n_arcs:8d} arcs of {n_objects:6d} objects".format(**part)
            + (f"  {part['share']:8.2%}" if part["share"] else "")
            for part in self.parts()
        )


def divide(
    designation: StrArray,
    *,
    ratios: Sequence[float] = RATIOS,
    seed: int = 0,
    never_train: Collection[str] = (),
    unseen: int = 0,
) -> Division:
    """Divide objects so that the shares of their arcs come close to given ratios.

    Objects are dealt out one by one in random order, each to the part that is furthest behind its
    share. Whose turn it is does not depend on the object, so that all parts are of one kind: dealt
    by size, a small part gets few of the objects with many arcs, which are seen farther away. Only
    objects of few arcs wait until the end, where they close the gaps.

    Parameters
    ----------
    designation : ndarray of str, shape (M,)
        Object of every arc.
    ratios : sequence of 3 floats
        Shares of training, validation and test; they add up to 1.
    seed : int
        Of the order; the same seed and set give the same division.
    never_train : collection of str
        Objects that go to ``"unseen"``; spaces and case do not count.
    unseen : int
        Number of further objects, drawn at random, that go there too.

    Returns
    -------
    Division

    Raises
    ------
    DatasetError
        If the ratios do not add up to 1, or more objects are to be unseen than there are.
    """
    if len(ratios) != 3 or min(ratios) < 0.0 or not math.isclose(sum(ratios), 1.0, abs_tol=1e-9):
        raise DatasetError(f"ratios must be three shares that add up to 1, got {tuple(ratios)}")
    names, n_arcs = np.unique(np.asarray(designation, dtype=np.str_), return_counts=True)
    rng = np.random.default_rng(seed)
    held_back = listed(names, never_train)
    others = np.flatnonzero(~held_back)
    if unseen > len(others):
        raise DatasetError(f"{unseen} objects to be unseen, but only {len(others)} to choose from")
    held_back[rng.choice(others, unseen, replace=False)] = True
    split = np.full(len(names), "unseen", dtype="U6")
    parts = [(share, name) for share, name in zip(ratios, SPLITS, strict=False) if share > 0.0]
    filled = [0] * len(parts)
    order = rng.permutation(np.flatnonzero(~held_back))
    order = order[np.argsort(n_arcs[order] <= _FEW_ARCS, kind="stable")]
    for row, size in zip(order.tolist(), n_arcs[order].tolist(), strict=True):
        k = min(range(len(parts)), key=lambda j: filled[j] / parts[j][0])
        filled[k] += size
        split[row] = parts[k][1]
    return Division(names, split, n_arcs)


def listed(designation: StrArray, objects: Collection[str]) -> BoolArray:
    """Mask of the designations in a list, however they are spaced: 2024YR4 is 2024 YR4."""
    plain = np.char.upper(np.char.replace(designation, " ", ""))
    return np.isin(plain, [name.replace(" ", "").upper() for name in objects])


def split_set(
    folder: str | Path,
    *,
    ratios: Sequence[float] = RATIOS,
    seed: int = 0,
    never_train: Collection[str] = (),
    unseen: int = 0,
) -> Division:
    """Divide a stored set and write the column ``split``; parameters are those of ``divide``.

    The settings and the sizes of the parts are noted in the manifest. May be repeated.
    """
    designation = read_arcs(folder, ("designation",), partial=True)["designation"]
    division = divide(designation, ratios=ratios, seed=seed, never_train=never_train, unseen=unseen)
    note = {
        "seed": seed,
        "ratios": list(ratios),
        "unseen": unseen,
        "never_train_listed": len(never_train),
        "never_train_found": int(listed(division.designation, never_train).sum()),
        "parts": division.parts(),
    }
    rewrite_arcs(
        folder,
        lambda table: table.with_columns(split=division.of(table["designation"])),
        splits=note,
    )
    return division


def division_of(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of the division of a set, by its manifest; empty if it was not divided."""
    return {name: value for name, value in manifest.get("splits", {}).items() if name != "parts"}


def read_designations(path: str | Path) -> list[str]:
    """Read a list of objects: a CSV file with a column ``designation``, one object a row.

    Raises
    ------
    DatasetError
        If there is no such column.
    """
    import pandas as pd

    frame = pd.read_csv(path, dtype=str, keep_default_na=False)
    if "designation" not in frame.columns:
        raise DatasetError(f"{path} has no column 'designation', only {list(frame.columns)}")
    return [name.strip() for name in frame["designation"].tolist()]
