"""Objects that a network learnt from, told by its card alone."""

from __future__ import annotations

import numpy as np
import pytest

from neoranging.lab.sets.learnt import never_learnt, overlap, parts_of
from neoranging.lab.sets.schema import ArcTable
from neoranging.lab.sets.splits import RULE, digest_of, divide
from neoranging.orbits import load_catalogue

NAMES = np.char.mod("2020 A%d", np.arange(400))


def table_of(names, split=""):
    names = np.asarray(names, dtype=np.str_)
    return ArcTable.make(np.arange(len(names) + 1), designation=names, split=split)


def card(seed=0, listed=(), kind="real", **changes):
    division = {
        "rule": RULE,
        "seed": seed,
        "ratios": [0.7, 0.2, 0.1],
        "never_train_listed": len(listed),
        "never_train_sha256": digest_of(listed),
        **changes,
    }
    facts = {"division": division, "settings": {"kind": kind}}
    return {"train": facts, "validation": facts}


def learnt(card, table, division=None):
    return overlap(card, table, division or {}).learnt


def test_objects_of_training_and_validation_by_the_rule():
    split = divide(NAMES, seed=3).of(NAMES)
    np.testing.assert_array_equal(learnt(card(3), table_of(NAMES)), np.isin(split, ["train", "val"]))


def test_counts_and_words():
    parts = divide(NAMES).of(NAMES)
    train, test = NAMES[parts == "train"][0], NAMES[parts == "test"][0]
    found = overlap(card(), table_of([test, train, train, test]), {})
    assert (found.n_objects, found.of_objects, found.example) == (1, 2, train)
    assert str(found) == f"2 of the 4 arcs, those of 1 of 2 objects ({str(train)!r} for one)"
    assert overlap(card(), table_of([test]), {}).example == ""


def test_the_list_of_the_package_is_known_by_its_digest():
    table = table_of([*never_learnt(), *NAMES])
    n = len(never_learnt())
    assert not learnt(card(listed=never_learnt()), table)[:n].any()
    assert learnt(card(), table)[:n].any()


def test_a_list_of_its_own_is_taken_from_a_set_divided_with_it():
    mine = NAMES[divide(NAMES).of(NAMES) == "train"][:20].tolist()
    table = table_of(mine, split="unseen")
    assert learnt(card(listed=mine), table).all()
    assert not learnt(card(listed=mine), table, {"never_train_sha256": digest_of(mine)}).any()
    assert learnt(card(listed=mine), table, {"never_train_sha256": digest_of(mine[1:])}).all()


def test_of_a_division_that_cannot_be_made_again_only_the_list_is_clean():
    old = card(rule=None, never_train_listed=len(never_learnt()), never_train_sha256=None)
    found = overlap(old, table_of([*NAMES, never_learnt()[0]]), {})
    assert found.learnt[:-1].all()
    assert not found.learnt[-1]
    assert "the part 'unseen'" in found.advice


def test_a_card_that_tells_no_division():
    for nothing in ({}, {"train": {}}, {"train": {"division": {}}, "validation": {"division": {}}}):
        assert overlap(nothing, table_of(NAMES), {}) is None


def test_numbered_objects_go_by_their_name_in_the_twin():
    catalogue = load_catalogue()
    number, name = catalogue.designation, catalogue.principal_designation
    rows = np.flatnonzero((number != name) & (name != ""))[:300]
    facts = card(kind="twin")["train"]
    by_number = parts_of(facts, table_of(number[rows]), {})
    np.testing.assert_array_equal(by_number, divide(number[rows]).of(number[rows]))
    np.testing.assert_array_equal(parts_of(facts, table_of(name[rows]), {}), by_number)


@pytest.mark.parametrize("split", ["train", "test"])
def test_a_network_may_have_learnt_from_any_part(split):
    odd = card()
    odd["train"] = {**odd["train"], "split": split}
    parts = divide(NAMES).of(NAMES)
    np.testing.assert_array_equal(learnt(odd, table_of(NAMES)), np.isin(parts, [split, "val"]))
