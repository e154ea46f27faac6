"""Counts of records: they add up, by step and by kind."""

from __future__ import annotations

import numpy as np
import pytest

from neoranging.exceptions import NeoRangingError
from neoranging.records import Account, RecordCount, Rejections


def test_counts_have_to_add_up():
    with pytest.raises(NeoRangingError, match="3 records were read but 1 used and 1 set aside"):
        RecordCount(3, 1, {"late": 1})


def test_sieve_counts_each_thing_once_under_its_first_reason():
    rejections = Rejections(4)
    rejections.reject(np.array([True, True, False, False]), "one")
    rejections.reject(np.array([True, False, True, False]), "two")
    rejections.reject(np.zeros(4, dtype=bool), "never")
    assert rejections.count == RecordCount(4, 1, {"one": 2, "two": 1})


def test_accounts_add_and_survive_json():
    one = Account({"arcs": RecordCount(3, 2, {"late": 1})})
    total = one + one + Account({"objects": RecordCount(1, 1)})
    assert total.counts["arcs"] == RecordCount(6, 4, {"late": 2})
    assert Account.from_json(total.to_json()) == total
    assert "2 set aside: late" in str(total)
