"""Objects that a network learnt from or was chosen by, as its model card tells.

Errors on these say nothing of those on new objects. The part of an object follows from its name,
the seed and the ratios, which the card has, so that a network need not be judged on the very set of
its training: a twin made elsewhere, and real arcs of the same objects, are checked alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from neoranging.exceptions import EvaluationError
from neoranging.lab.sets.schema import ArcTable
from neoranging.lab.sets.splits import RULE, digest_of, divide, listed, read_designations
from neoranging.orbits import load_catalogue
from neoranging.typing import BoolArray


@cache
def never_learnt() -> tuple[str, ...]:
    """Objects that no network of the package learnt from: ``data/weights/never_learnt.csv``."""
    path = files("neoranging").joinpath("data", "weights", "never_learnt.csv")
    return tuple(read_designations(str(path)))


def check_learnt(
    card: Mapping[str, Any],
    table: ArcTable,
    division: Mapping[str, Any],
    name: str,
    *,
    allow: bool = False,
) -> str:
    """Remark on arcs whose objects a network learnt from or was chosen by; "" if there are none.

    Real arcs of objects whose simulated arcs a network learnt from are remarked and not refused: it
    has learnt from orbits like theirs, which are catalogued, and from none of their observations.

    Parameters
    ----------
    card : mapping
        Model card of the network.
    table : ArcTable
        M arcs with ``designation``, ``split``, and ``is_simulated``.
    division : mapping
        Division of the set that they are of, `division_of` its manifest.
    name : str
        Name of the network, for messages.
    allow : bool
        Remark all such arcs, and refuse none.

    Raises
    ------
    EvaluationError
        If there are such arcs and they are not allowed.
    """
    facts = card.get("train", {})
    if facts.get("division", {}).get("rule") != RULE:
        return (
            "its card does not tell by which rule the objects were divided that it learnt from: "
            "they may be among these"
        )
    learnt = learnt_arcs(facts, table, division)
    if not learnt.any():
        return ""
    objects, counts = np.unique(table["designation"][learnt], return_counts=True)
    n_objects = len(np.unique(table["designation"]))
    amount = (
        f"{len(objects):,} of {n_objects:,} objects, such as {str(objects[np.argmax(counts)])!r}, "
        f"with {int(learnt.sum()):,} of {len(table):,} arcs"
    )
    is_twin = facts["settings"].get("kind") == "twin"
    if is_twin and not table["is_simulated"][learnt].any():
        return f"learnt from, or was chosen by, simulated arcs of {amount}; these arcs are real"
    if not allow:
        raise EvaluationError(
            f"{name} learnt from, or was chosen by, arcs of {amount}: its errors there are no "
            f"measure of those on new objects. {_remedy(facts['division'])}; or allow it "
            "(--allow-learnt, allow_learnt=True), which is noted beside the figures"
        )
    return (
        f"learnt from, or was chosen by, arcs of {amount}: its errors there are no measure of "
        "those on new objects"
    )


def learnt_arcs(
    facts: Mapping[str, Any], table: ArcTable, division: Mapping[str, Any]
) -> BoolArray:
    """Mask of arcs whose objects are in the parts of training and validation of another set.

    Parameters
    ----------
    facts : mapping
        ``division`` and ``settings`` of that set, as in a model card.
    table, division
        As of `check_learnt`.
    """
    names, row = np.unique(table["designation"], return_inverse=True)
    if facts["settings"].get("kind") == "twin":
        # its objects are named as in the catalogue, where numbered ones have another name as well
        catalogue = load_catalogue()
        found = catalogue.find(names)
        names = np.where(found >= 0, catalogue.designation[found], names)
    own = facts["division"]
    parts = divide(names, ratios=own["ratios"], seed=own["seed"]).of(names)
    learnt: BoolArray = np.isin(parts, ["train", "val"])[row]
    held_back = own["never_train_sha256"]
    if held_back == digest_of(never_learnt()):
        return learnt & ~listed(names, never_learnt())[row]
    if held_back == division.get("never_train_sha256"):
        return learnt & (table["split"] != "unseen")
    return learnt  # another list, of which no more than the digest is at hand


def _remedy(division: Mapping[str, Any]) -> str:
    """Command that makes parts to judge a network on."""
    words = ["neoranging dataset split SET", f"--seed {division['seed']}"]
    words.append("--ratios " + " ".join(f"{x:g}" for x in division["ratios"]))
    if division["never_train_sha256"] == digest_of(never_learnt()):
        words.append("--never-train never_learnt.csv")
    elif division["never_train_listed"]:
        words.append("--never-train LIST (that of its training)")
    return f"Take the parts 'test' and 'unseen' after '{' '.join(words)}', or arcs of other objects"
