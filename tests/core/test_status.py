"""The verdicts: codes, advice, and the way back from a code."""

import pickle

import numpy as np
import pytest

from neoranging.core.status import RangeStatus


def test_codes_count_from_zero_and_lead_back():
    assert RangeStatus.OK.code == 0
    assert [member.code for member in RangeStatus] == list(range(len(RangeStatus)))
    for member in RangeStatus:
        assert RangeStatus.from_code(member.code) is member
        assert RangeStatus.from_code(np.int8(member.code)) is member


@pytest.mark.parametrize("code", [-1, len(RangeStatus)])
def test_a_code_that_is_none_is_refused(code):
    with pytest.raises((ValueError, IndexError)):
        RangeStatus.from_code(code)


def test_every_value_is_a_sentence_of_advice():
    for member in RangeStatus:
        assert member.value == member.advice
        assert member.advice.endswith(".")
        assert len(member.advice) > 40
        assert str(member) == member.name
    assert len({member.advice for member in RangeStatus}) == len(RangeStatus)


def test_members_compare_with_their_names_and_are_keys():
    assert RangeStatus.OK == "OK"
    assert RangeStatus.OK != "NO_ROOT"
    assert RangeStatus.OK != RangeStatus.NO_ROOT
    assert RangeStatus.OK != 0
    counts = {member: member.code for member in RangeStatus}
    assert len(counts) == len(RangeStatus)
    assert counts[RangeStatus.NO_ROOT] == counts["NO_ROOT"] == RangeStatus.NO_ROOT.code


def test_members_survive_pickling():
    for member in RangeStatus:
        assert pickle.loads(pickle.dumps(member)) is member
