"""Where the time of an answer goes, by modules; run by ``run.py``.

    python shares.py METHOD SET.pickle N

Prints calls of functions and CPU seconds for each tracklet in a batch of N, or of single calls
where N is 1, and the share of each module in its own time. Functions of C count for what called
them; so does compiled code, which the profiler does not see.
"""

from __future__ import annotations

import cProfile
import json
import pickle
import pstats
import sys
import time
from collections import Counter
from pathlib import Path

from nights import fresh

SINGLES = 100
WAITING = "kernels in threads"
"""What the profiler sees of threads: that they are waited for, while compiled code runs in them."""


def module(file: str) -> str:
    """Module of ours, or package of others, of a file."""
    parts = Path(file).with_suffix("").parts
    if parts[-1] == "threading" or "concurrent" in parts:
        return WAITING
    if "neoranging" in parts:
        last = len(parts) - 1 - parts[::-1].index("neoranging")
        return ".".join(parts[last + 1 :]).removesuffix(".__init__")
    if "site-packages" in parts:
        return parts[parts.index("site-packages") + 1]
    return "Python"


def shares(profile: cProfile.Profile) -> tuple[int, Counter[str]]:
    """Number of calls, and own time by module."""
    own: Counter[str] = Counter()
    calls = 0
    for (file, _, _), (_, n, seconds, _, callers) in pstats.Stats(profile).stats.items():
        calls += n
        if file != "~":
            own[module(file)] += seconds
            continue
        for (above, _, _), (_, _, part, _) in callers.items():
            own[module(above) if above != "~" else "Python"] += part
    return calls, own


def main() -> None:
    method, path, n = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    tracklets = pickle.loads(path.read_bytes())[: max(n, SINGLES)]
    todo = [tracklets[k] for k in range(SINGLES)] if n == 1 else [tracklets]
    count = len(todo) if n == 1 else n
    for one in todo:  # code is compiled, weights are read, ephemerides of their dates are there
        one.estimate(method)
    if n > 1:
        todo = [fresh(tracklets)]
    profile = cProfile.Profile(time.process_time)
    profile.enable()
    for one in todo:
        one.estimate(method)
    profile.disable()
    calls, own = shares(profile)
    total = sum(own.values())
    parts = {name: seconds / total for name, seconds in own.most_common(8)}
    print(json.dumps({"calls": calls / count, "seconds": total / count, "shares": parts}))


if __name__ == "__main__":
    main()
