import ctypes
import resource
import sys

import pytest
import torch

from neoranging.training import memory


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks glibc")
def test_freed_memory_is_not_faulted_in_again():
    if not memory.keep_freed_memory():
        pytest.skip("another C library")
    faults = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        tensors = [torch.ones(1 << 20) for _ in range(20)]
        del tensors
        faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
    assert faults[-1] < 1000  # of 20,000 pages


def test_other_systems_are_left_alone(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not memory.keep_freed_memory()
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(ctypes, "CDLL", lambda _: object())
    assert not memory.keep_freed_memory()
