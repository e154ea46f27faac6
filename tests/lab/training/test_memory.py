"""Memory that a step frees, in a process of its own: the setting is of the whole process."""

import ctypes
import subprocess
import sys

import pytest

from neoranging.lab.training import memory

STEPS = """
import resource, torch
from neoranging.lab.training.memory import keep_freed_memory
kept = keep_freed_memory()
for _ in range(3):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    tensors = [torch.ones(1 << 20) for _ in range(20)]
    del tensors
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
print(kept, faults)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks glibc")
def test_freed_memory_is_not_faulted_in_again():
    ran = subprocess.run([sys.executable, "-c", STEPS], capture_output=True, text=True, check=True)
    kept, faults = ran.stdout.split()
    if kept == "False":
        pytest.skip("another C library")
    assert int(faults) < 5000  # of 20,000 pages


def test_other_systems_are_left_alone(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not memory.keep_freed_memory()
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(ctypes, "CDLL", lambda _: object())
    assert not memory.keep_freed_memory()
