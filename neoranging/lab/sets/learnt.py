"""Objects that a network learnt from or was chosen by, as its model card tells.

Errors on these say nothing of those on new objects. The part of an object follows from its name and
from what the card says of the division (seed, ratios, list never to train on), so the network need
not be judged on the set it learnt from: a twin made elsewhere, or real arcs of the same objects, are
checked alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final, NamedTuple

import numpy as np

from neoranging.lab.sets.schema import ArcTable
from neoranging.lab.sets.splits import RULE, digest_of, divide, listed, read_designations
from neoranging.orbits import load_catalogue
from neoranging.typing import BoolArray, StrArray

PACKAGE_DIVISION: Final = {"never_train_listed": 704}
"""Division of calibrations that do not tell any: they are older than the rule."""


@cache
def never_learnt() -> tuple[str, ...]:
    """Objects that no network of the package learnt from: ``data/weights/never_learnt.csv``."""
    path = files("neoranging").joinpath("data", "weights", "never_learnt.csv")
    return tuple(read_designations(str(path)))


class Overlap(NamedTuple):
    """Arcs of a table whose objects a network learnt from or was chosen by."""

    learnt: BoolArray
    """Mask of these arcs."""
    n_objects: int
    """Their objects."""
    of_objects: int
    """Objects of the table."""
    example: str
    """One of them, that of most arcs; "" if there is none."""
    advice: str
    """Arcs that the network can be judged on."""

    def __str__(self) -> str:
        return (
            f"{int(self.learnt.sum()):,} of the {len(self.learnt):,} arcs, those of "
            f"{self.n_objects:,} of {self.of_objects:,} objects ({self.example!r} for one)"
        )

    def to_json(self) -> dict[str, Any]:
        """Plain data for the description of a study."""
        return {
            "n_arcs": int(self.learnt.sum()),
            "n_objects": self.n_objects,
            "example": self.example,
        }


def overlap(
    card: Mapping[str, Any], table: ArcTable, division: Mapping[str, Any]
) -> Overlap | None:
    """Arcs whose objects a network learnt from or was chosen by.

    An object whose part cannot be told counts as one that it learnt from: every object outside
    ``never_learnt.csv`` for a network of a division that cannot be made again, and, for a network
    with a list of its own never to train on, the objects of that list, unless the set at hand was
    divided with it.

    Parameters
    ----------
    card : mapping
        Model card of the network.
    table : ArcTable
        M arcs with ``designation`` and ``split``.
    division : mapping
        Division of the set that they are of, `division_of` its manifest.

    Returns
    -------
    Overlap or None
        None where the card does not tell how the arcs were divided.
    """
    facts = [card.get(name) or {} for name in ("train", "validation")]
    divisions = [part.get("division") for part in facts]
    if not all(divisions):
        return None
    learnt = np.zeros(len(table), dtype=bool)
    for part, split in zip(facts, ("train", "val"), strict=True):
        parts = parts_of(part, table, division)
        learnt |= np.isin(parts, ["", part.get("split", split)])
    objects, counts = np.unique(table["designation"][learnt], return_counts=True)
    return Overlap(
        learnt=learnt,
        n_objects=len(objects),
        of_objects=len(np.unique(table["designation"])),
        example=str(objects[np.argmax(counts)]) if len(objects) else "",
        advice=_advice(divisions[0] or {}),
    )


def parts_of(
    facts: Mapping[str, Any], table: ArcTable, division: Mapping[str, Any]
) -> StrArray:
    """Part of each arc's object under the division of another set; "" where nobody can tell.

    Parameters
    ----------
    facts : mapping
        ``division`` of that set, and its ``settings`` if need be.
    table : ArcTable
        M arcs with ``designation`` and ``split``.
    division : mapping
        Division of the set that the arcs are of, `division_of` its manifest.
    """
    other = facts.get("division") or {}
    names, row = np.unique(table["designation"], return_inverse=True)
    if facts.get("settings", {}).get("kind") == "twin":
        # its objects are named as in the catalogue, where numbered ones have another name as well
        catalogue = load_catalogue()
        found = catalogue.find(names)
        names = np.where(found >= 0, catalogue.designation[found], names)
    held_back = np.zeros(len(names), dtype=bool)
    digest = other.get("never_train_sha256")
    if _is_of_package(other):
        held_back = listed(names, never_learnt())
    elif digest and digest == division.get("never_train_sha256"):
        np.logical_or.at(held_back, row, table["split"] == "unseen")
    if other.get("rule") == RULE:
        hashed = divide(names, ratios=other["ratios"], seed=other["seed"])
        parts = hashed.of(names)
    else:  # dealt by the numbers of all arcs: one arc more, and most objects are elsewhere
        parts = np.full(len(names), "", dtype="U6")
    return np.where(held_back, "unseen", parts)[row]


def _is_of_package(division: Mapping[str, Any]) -> bool:
    """Flag of a division whose list never to train on is that of the package."""
    if (digest := division.get("never_train_sha256")) is not None:
        return bool(digest == digest_of(never_learnt()))
    return bool(division.get("never_train_listed") == len(never_learnt()))


def _advice(division: Mapping[str, Any]) -> str:
    """Arcs to judge a network of a division on, and how to come by them."""
    list_file = "never_learnt.csv" if _is_of_package(division) else "the list that it was given"
    words = ["neoranging dataset split SET"]
    if division.get("rule") == RULE:
        ratios = tuple(division["ratios"])
        words += [f"--seed {division['seed']}", "--ratios " + " ".join(f"{x:g}" for x in ratios)]
        part = "the parts 'test' and 'unseen'"
    else:
        part = "the part 'unseen'"
    if division.get("never_train_listed"):
        words.append(f"--never-train {list_file}")
    return f"take {part} of a set divided with '{' '.join(words)}', or arcs of other objects"
