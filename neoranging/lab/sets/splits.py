"""Training, validation and test: whole objects, so that no arc of one tells about another."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from neoranging.exceptions import DatasetError
from neoranging.lab.sets.schema import SPLITS
from neoranging.lab.sets.store import read_arcs, read_manifest, rewrite_arcs
from neoranging.typing import BoolArray, FloatArray, IntArray, StrArray

RATIOS: Final = (0.7, 0.2, 0.1)
"""Shares of the objects in training, validation and test."""

RULE: Final = "SHA-256 of seed and designation"
"""Rule of the division, as noted in the manifest of a set."""


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
        """Arcs, objects and their digest of each part.

        ``share`` is that of the arcs not held back.
        """
        divided = max(int(self.n_arcs[self.split != "unseen"].sum()), 1)
        parts = []
        for name in SPLITS:
            rows = self.split == name
            n = int(self.n_arcs[rows].sum())
            parts.append(
                {
                    "split": name,
                    "n_arcs": n,
                    "n_objects": int(rows.sum()),
                    "objects_sha256": digest_of(self.designation[rows]),
                    "share": 0.0 if name == "unseen" else round(n / divided, 6),
                }
            )
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
) -> Division:
    """Divide objects by a hash of seed and designation.

    The part of an object depends on nothing but its name, the seed and the ratios: a set that was
    made elsewhere, with a few arcs or objects more, has the same objects in its parts. The shares
    of the *objects* are the ratios but for chance; those of the arcs differ more, since a few
    objects own many.

    Parameters
    ----------
    designation : ndarray of str, shape (M,)
        Object of every arc; spaces and case do not count.
    ratios : sequence of 3 floats
        Shares of training, validation and test; they add up to 1.
    seed : int
        Of the hash.
    never_train : collection of str
        Objects that go to ``"unseen"``; spaces and case do not count.

    Returns
    -------
    Division

    Raises
    ------
    DatasetError
        If the ratios do not add up to 1.
    """
    if len(ratios) != 3 or min(ratios) < 0.0 or not math.isclose(sum(ratios), 1.0, abs_tol=1e-9):
        raise DatasetError(f"ratios must be three shares that add up to 1, got {tuple(ratios)}")
    names, n_arcs = np.unique(np.asarray(designation, dtype=np.str_), return_counts=True)
    shown = [(share, name) for share, name in zip(ratios, SPLITS, strict=False) if share > 0.0]
    ends = np.cumsum([share for share, _ in shown])[:-1]
    parts = np.array([name for _, name in shown], dtype="U6")
    split = parts[np.searchsorted(ends, _uniform(names, seed), side="right")]
    split[listed(names, never_train)] = "unseen"
    return Division(names, split, n_arcs)


def plain_name(designation: str) -> str:
    """Designation without spaces, in capitals: 2024yr4 is 2024 YR4."""
    return designation.replace(" ", "").upper()


def listed(designation: StrArray, objects: Collection[str]) -> BoolArray:
    """Mask of the designations in a list, however they are spaced."""
    names = [plain_name(name) for name in designation.tolist()]
    return np.isin(names, [plain_name(name) for name in objects])


def digest_of(designation: Collection[str]) -> str:
    """SHA-256 of a set of objects, whatever their order and spacing."""
    names = sorted({plain_name(str(name)) for name in designation})
    return hashlib.sha256("\n".join(names).encode()).hexdigest()


def _uniform(designation: StrArray, seed: int) -> FloatArray:
    """Number in [0, 1) of each object, the first eight bytes of SHA-256 of seed and name."""
    digests = (
        hashlib.sha256(f"{seed} {plain_name(name)}".encode()).digest()
        for name in designation.tolist()
    )
    # 53 bits are a float exactly, so none is rounded up to 1
    whole = [int.from_bytes(digest[:8], "big") >> 11 for digest in digests]
    return np.array(whole, dtype=np.float64) * 2.0**-53


def split_set(
    folder: str | Path,
    *,
    ratios: Sequence[float] = RATIOS,
    seed: int = 0,
    never_train: Collection[str] = (),
) -> Division:
    """Divide a stored set and write the column ``split``; parameters are those of ``divide``.

    The settings and the parts, with the digests of their objects, are noted in the manifest. May be
    repeated.
    """
    designation = read_arcs(folder, ("designation",), partial=True)["designation"]
    division = divide(designation, ratios=ratios, seed=seed, never_train=never_train)
    note = {
        "rule": RULE,
        "seed": seed,
        "ratios": list(ratios),
        "never_train_listed": len(never_train),
        "never_train_sha256": digest_of(never_train),
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


def check_division(folder: str | Path) -> None:
    """Raise if the parts of a stored set are not those that its manifest notes.

    Raises
    ------
    DatasetError
        If an object stands in two parts, or a part holds other objects than the manifest says. Sets
        of an older rule, and those marked by their maker, note no objects.
    """
    table = read_arcs(folder, ("designation", "split"))
    again = "divide it once more with 'neoranging dataset split'"
    names, first, row = np.unique(table["designation"], return_index=True, return_inverse=True)
    split = table["split"][first]
    if len(twice := np.unique(row[table["split"] != split[row]])):
        raise DatasetError(
            f"{len(twice)} objects of the set in {folder} stand in more than one part, such as "
            f"{str(names[twice[0]])!r}: {again}"
        )
    for part in read_manifest(folder).get("splits", {}).get("parts", []):
        noted = part.get("objects_sha256")
        if noted is not None and noted != digest_of(names[split == part["split"]]):
            raise DatasetError(
                f"the part {part['split']!r} of the set in {folder} holds other objects than its "
                f"manifest says: {again}"
            )


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
