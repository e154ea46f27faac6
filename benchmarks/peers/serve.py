"""Cases of a program that waits to be asked, so that programs can take turns.

Each peer runs in an environment of its own and stays there between turns: what it imports, reads
and compiles is no part of a time. It answers every line of its standard input, the name of a case,
with one line, ``cpu`` and the CPU seconds that the case took for each tracklet. This file needs
nothing but Python.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping


def serve(cases: Mapping[str, Callable[[], int]]) -> None:
    """Run a case for each line that comes in; it returns how many tracklets it went through."""
    print("cpu ready", flush=True)
    for line in sys.stdin:
        action = cases[line.strip()]
        begin = time.process_time()
        count = action()
        print("cpu", repr((time.process_time() - begin) / count), flush=True)
