"""Objects that a network learnt from, as its card alone tells."""

from __future__ import annotations

import numpy as np
import pytest

from neoranging.exceptions import EvaluationError
from neoranging.lab.sets.learnt import check_learnt, learnt_arcs, never_learnt
from neoranging.lab.sets.schema import ArcTable
from neoranging.lab.sets.splits import RULE, digest_of, divide
from neoranging.orbits import load_catalogue

NAMES = np.char.mod("2020 A%d", np.arange(400))


def table_of(names, split="", is_simulated=True):
    names = np.asarray(names, dtype=np.str_)
    offsets = np.arange(len(names) + 1)
    return ArcTable.make(offsets, designation=names, split=split, is_simulated=is_simulated)


def card_of(seed=0, held_back=(), kind="twin", **changes):
    division = {
        "rule": RULE,
        "seed": seed,
        "ratios": [0.7, 0.2, 0.1],
        "never_train_listed": len(held_back),
        "never_train_sha256": digest_of(held_back),
    }
    return {"train": {"division": division | changes, "settings": {"kind": kind}}}


def clean(names, card, division=None, **columns):
    """Names that the network of a card did not learn from."""
    mask = learnt_arcs(card["train"], table_of(names, **columns), division or {})
    return np.asarray(names)[~mask].tolist()


def test_objects_of_training_and_validation_are_told():
    parts = divide(NAMES, seed=3).of(NAMES)
    assert clean(NAMES, card_of(3)) == NAMES[parts == "test"].tolist()
    assert check_learnt(card_of(3), table_of(NAMES[parts == "test"]), {}, "mlp") == ""


def test_the_message_counts_and_tells_what_to_take():
    parts = divide(NAMES).of(NAMES)
    train, test = NAMES[parts == "train"][0], NAMES[parts == "test"][0]
    table = table_of([test, train, train, test])
    pattern = (
        rf"^mlp learnt .*1 of 2 objects, such as '{train}', with 2 of 4 arcs.*'test' and 'unseen'"
        r".*dataset split SET --seed 0 --ratios 0.7 0.2 0.1'.*--allow-learnt"
    )
    with pytest.raises(EvaluationError, match=pattern):
        check_learnt(card_of(), table, {}, "mlp")
    assert "1 of 2 objects" in check_learnt(card_of(), table, {}, "mlp", allow=True)
    with pytest.raises(EvaluationError, match=r"--never-train never_learnt.csv'"):
        check_learnt(card_of(held_back=never_learnt()), table, {}, "mlp")


def test_the_list_of_the_package_is_known_by_its_digest():
    names = never_learnt()[:50]
    assert clean(names, card_of(held_back=never_learnt())) == list(names)
    assert len(clean(names, card_of())) < 20


def test_another_list_is_taken_from_a_set_divided_with_it():
    held_back = NAMES[divide(NAMES).of(NAMES) == "train"][:20].tolist()
    card = card_of(held_back=held_back)
    same = {"never_train_sha256": digest_of(held_back)}
    assert clean(held_back, card, same, split="unseen") == held_back
    other = {"never_train_sha256": digest_of(held_back[1:])}
    assert clean(held_back, card, other, split="unseen") == []


def test_real_arcs_are_remarked_where_simulated_ones_were_learnt():
    table = table_of(NAMES, is_simulated=False)
    n = int(np.sum(divide(NAMES).of(NAMES) != "test"))
    remark = check_learnt(card_of(), table, {}, "mlp")
    assert f"simulated arcs of {n} of 400 objects" in remark
    assert "these arcs are real" in remark
    with pytest.raises(EvaluationError, match=f"{n} of 400 objects"):
        check_learnt(card_of(kind="neodys"), table, {}, "mlp")


def test_of_an_older_division_nobody_can_tell():
    older = card_of()
    del older["train"]["division"]["rule"]
    for card in ({}, {"train": {"division": {}}}, older):
        assert "does not tell" in check_learnt(card, table_of(NAMES), {}, "mlp")


def test_numbered_objects_go_by_their_name_in_the_twin():
    catalogue = load_catalogue()
    number, name = catalogue.designation, catalogue.principal_designation
    rows = np.flatnonzero((number != name) & (name != ""))[:40]
    in_test = number[rows][divide(number[rows]).of(number[rows]) == "test"]
    by_name = name[rows][np.isin(number[rows], in_test)]
    assert clean(name[rows], card_of()) == by_name.tolist()
    # and those of a set that is no twin go by the name that they have there
    assert clean(by_name, card_of(kind="neodys")) != by_name.tolist()
