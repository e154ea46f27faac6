"""Times that can be compared on a machine with other work: CPU time, cases in alternation.

Wall times say what else the machine did. The CPU time of a process is stretched less, by shared
caches and clocks, and what stretches it falls on all cases alike when they take turns. So every
benchmark here prints the least and the median of several rounds, and compares cases of one run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

LOOP_STEPS = 10_000


def python_loop() -> int:
    """The unit of single calls: 10,000 steps of integer arithmetic in plain Python."""
    total = 0
    for k in range(LOOP_STEPS):
        total += k & 7
    return total


def cpu_seconds(action: Callable[[], Any], calls: int = 1) -> float:
    """CPU time of one call [s], of all threads of this process."""
    begin = time.process_time()
    for _ in range(calls):
        action()
    return (time.process_time() - begin) / calls


def alternate(
    cases: Mapping[str, Callable[[], Any]], rounds: int = 5, warm: bool = True
) -> dict[str, np.ndarray]:
    """CPU seconds of each case in each round; all cases take turns within a round.

    A round before the first is not counted, in which code is compiled and caches are filled.
    """
    if warm:
        for action in cases.values():
            action()
    seconds = [[cpu_seconds(action) for action in cases.values()] for _ in range(rounds)]
    return dict(zip(cases, np.array(seconds).T, strict=True))


def forget_peak() -> None:
    """Let `peak_megabytes` begin anew, where the system can (Linux)."""
    path = Path("/proc/self/clear_refs")
    if path.exists():
        path.write_text("5")


def megabytes(field: str = "VmRSS") -> float:
    """Resident memory of this process; ``"VmHWM"`` is the most since `forget_peak`."""
    for line in Path("/proc/self/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return int(value.split()[0]) / 1024.0
    raise ValueError(f"no {field} in /proc/self/status")


def peak_megabytes() -> float:
    return megabytes("VmHWM")
