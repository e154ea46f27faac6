"""Divisions: by whole objects and their names alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from neoranging.exceptions import DatasetError
from neoranging.lab.sets.schema import SPLITS, ArcTable
from neoranging.lab.sets.splits import (
    check_division,
    digest_of,
    divide,
    read_designations,
    split_set,
)
from neoranging.lab.sets.store import ArcWriter, read_arcs, read_manifest, rewrite_arcs
from neoranging.lab.simulation.twin import Twin, make_twin


def heavy_tailed(n_objects: int = 4000, seed: int = 1) -> np.ndarray:
    """Objects of arcs as uneven as in the catalogue: most have few, one has 2000."""
    rng = np.random.default_rng(seed)
    sizes = np.minimum(np.ceil(rng.pareto(1.1, n_objects) * 4), 2000).astype(int)
    return np.repeat(np.char.mod("2020 A%d", np.arange(n_objects)), sizes)


PARTS = ["train", "test", "train", "train", "train"]
"""Parts of five objects at seed 0, by hand from SHA-256 of "0 433" and so on."""


@pytest.mark.parametrize("seed", range(5))
def test_shares_of_the_objects_are_the_ratios_but_for_chance(seed):
    parts = divide(heavy_tailed(), seed=seed).parts()
    for part, ratio in zip(parts, (0.7, 0.2, 0.1), strict=False):
        low, high = binom.interval(1.0 - 1e-6, 4000, ratio)
        assert low <= part["n_objects"] <= high


@given(st.lists(st.integers(0, 30), min_size=1, max_size=200), st.integers(0, 9))
def test_no_object_stands_in_two_parts(owners, seed):
    names = np.char.mod("%d", owners)
    of_arc = divide(names, seed=seed).of(names)
    assert set(of_arc) <= set(SPLITS)
    for name in set(names.tolist()):
        assert len(set(of_arc[names == name])) == 1


def test_all_parts_get_large_and_small_objects():
    division = divide(heavy_tailed())
    for name in ("train", "val", "test"):
        sizes = division.n_arcs[division.split == name]
        assert (sizes > 100).sum() > 5
        assert abs(np.median(sizes) - np.median(division.n_arcs)) <= 1


def test_same_seed_same_division_whatever_the_order_of_arcs():
    names = heavy_tailed()
    turned = np.random.default_rng(0).permutation(names)
    assert (divide(names, seed=3).split == divide(turned, seed=3).split).all()
    assert (divide(names, seed=3).split != divide(names, seed=4).split).any()


def test_a_set_made_elsewhere_with_other_arcs_has_the_same_parts():
    names = heavy_tailed()
    # another machine leaves out single arcs, and with them objects of one arc
    fewer = np.delete(names, np.random.default_rng(2).choice(len(names), 40, replace=False))
    one, other = divide(names), divide(fewer)
    assert len(other.designation) < len(one.designation)
    assert (other.split == one.of(other.designation)).all()


def test_the_part_of_an_object_is_the_same_on_every_machine():
    names = np.array(["433", "99942", "2024 YR4", "2008 TC3", "1I"])
    assert divide(names).of(names).tolist() == PARTS
    spaced = np.array(["2024yr4", "2008  TC3"])
    assert divide(spaced).of(spaced).tolist() == PARTS[2:4]


def test_objects_never_to_train_on_are_unseen():
    names = heavy_tailed()
    division = divide(names, never_train=["2020 A0", "2020a7", "not there"])
    unseen = division.designation[division.split == "unseen"]
    assert unseen.tolist() == ["2020 A0", "2020 A7"]
    others = division.split != "unseen"
    assert (division.split[others] == divide(names).split[others]).all()


def test_digest_of_the_objects_of_a_part():
    parts = divide(np.array(["a", "b", "b"]), never_train=["B"]).parts()
    assert parts[3]["objects_sha256"] == digest_of(["b"]) == digest_of(["B ", "b"])
    assert digest_of(["a", "b"]) == digest_of(["b", "a"]) != digest_of(["ab"])


def test_a_ratio_of_zero_leaves_a_part_empty():
    division = divide(heavy_tailed(), ratios=(0.8, 0.2, 0.0))
    assert set(division.split) == {"train", "val"}


@pytest.mark.parametrize("ratios", [(0.7, 0.2), (0.7, 0.2, 0.2), (1.1, -0.2, 0.1)])
def test_ratios_have_to_add_up(ratios):
    with pytest.raises(DatasetError, match="add up to 1"):
        divide(np.array(["a"]), ratios=ratios)


def test_an_object_from_elsewhere_is_refused():
    with pytest.raises(DatasetError, match="'b' is not in this division"):
        divide(np.array(["a"])).of(np.array(["b"]))


def test_twins_that_differ_by_dropped_arcs_have_the_same_parts(tmp_path):
    pytest.importorskip("pyarrow")
    make_twin(tmp_path / "twin", Twin(objects=60), workers=1)
    arcs = read_arcs(tmp_path / "twin")
    dropped = np.zeros(len(arcs), dtype=bool)
    dropped[np.random.default_rng(3).choice(len(arcs), 5, replace=False)] = True
    dropped |= arcs["designation"] == arcs["designation"][0]  # of one object all
    with ArcWriter(tmp_path / "remade", settings={}) as writer:
        writer.write(arcs.take(~dropped))
    never = np.unique(arcs["designation"])[:3].tolist()
    one, other = (split_set(tmp_path / x, never_train=never) for x in ("twin", "remade"))
    assert len(other.designation) < len(one.designation)
    assert (other.split == one.of(other.designation)).all()
    assert {"train", "val", "test", "unseen"} == set(other.split)


def stored(folder, n=200, **columns):
    """A stored set in two parts, and its objects."""
    names = heavy_tailed(n)
    m = len(names)
    arcs = ArcTable.make(np.arange(m + 1), designation=names, night=0, station="G96").with_columns(
        **dict.fromkeys(_needed(), 0.0), **columns
    )
    with ArcWriter(folder, settings={}) as writer:
        writer.write(arcs.take(np.arange(m // 2)))
        writer.write(arcs.take(np.arange(m // 2, m)))
    return names


def test_a_stored_set_is_divided_as_often_as_wished(tmp_path):
    pytest.importorskip("pyarrow")
    stored(tmp_path)
    for seed in (0, 1):
        division = split_set(tmp_path, seed=seed)
        columns = read_arcs(tmp_path, ("designation", "split"))
        assert (columns["split"] == division.of(columns["designation"])).all()
        assert read_manifest(tmp_path)["splits"]["seed"] == seed
        assert "train" in str(division)
        check_division(tmp_path)


def test_a_set_that_does_not_follow_its_manifest_is_refused(tmp_path):
    pytest.importorskip("pyarrow")
    names = np.unique(stored(tmp_path))
    test = names[split_set(tmp_path).of(names) == "test"][0]

    def move(table):
        return table.with_columns(
            split=np.where(table["designation"] == test, "train", table["split"])
        )

    rewrite_arcs(tmp_path, move)
    with pytest.raises(DatasetError, match=r"'train' .* other objects than its manifest says"):
        check_division(tmp_path)


def test_a_division_by_an_older_rule_still_loads(tmp_path):
    pytest.importorskip("pyarrow")
    stored(tmp_path)
    split_set(tmp_path)
    old = {"seed": 0, "ratios": [0.7, 0.2, 0.1], "parts": [{"split": "train", "n_arcs": 1}]}
    rewrite_arcs(tmp_path, lambda table: table, splits=old)
    check_division(tmp_path)


def test_an_object_in_two_parts_is_refused(tmp_path):
    pytest.importorskip("pyarrow")
    split = np.where(np.arange(len(heavy_tailed(200))) % 2, "train", "val")
    stored(tmp_path, split=split)
    with pytest.raises(DatasetError, match="in more than one part, such as '2020 A"):
        check_division(tmp_path)


def _needed() -> list[str]:
    from neoranging.lab.sets.schema import COLUMNS

    return [n for n, c in COLUMNS.items() if c.fill is None and c.dtype == "float64"]


def test_list_of_designations(tmp_path):
    path = tmp_path / "list.csv"
    path.write_text("designation,why\n99942,famous\n2024 YR4 ,also\n")
    assert read_designations(path) == ["99942", "2024 YR4"]
    path.write_text("name\n99942\n")
    with pytest.raises(DatasetError, match="no column 'designation'"):
        read_designations(path)
