"""Checks of what a server sent."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neoranging.exceptions import CorruptFileError
from neoranging.lab.archive.validation import check_orbit, check_rwo


@pytest.mark.parametrize("check", [check_orbit, check_rwo])
@given(content=st.binary(max_size=300) | st.text(max_size=100).map(str.encode))
def test_whatever_comes_is_taken_or_refused(check, content):
    with contextlib.suppress(CorruptFileError):
        check(content)


def test_real_files_pass_and_their_beginnings_do_not(shared):
    files = sorted((shared / "data" / "rwo").glob("*.rwo"))
    assert files
    for path in files:
        content = path.read_bytes()
        check_rwo(content)
        for end in range(1, len(content), len(content) // 50):
            if content[end - 1 : end] != b"\n":
                with pytest.raises(CorruptFileError):
                    check_rwo(content[:end])
