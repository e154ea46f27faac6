"""Cost of a method by the number of tracklets, in a process of its own; run by ``run.py``.

    python cost.py METHOD SET.pickle N [N ...]

The set is a pickled `TrackletSet`; more tracklets than it holds are repeats. Each line that is
printed is one N: CPU seconds of the rounds, on a set whose observers are not yet placed, resident
memory before [MB], with the tracklets in it, and the most while it ran.
"""

from __future__ import annotations

import json
import pickle
import sys
from functools import partial
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).resolve().parents[1]))
from timing import cpu_seconds, forget_peak, megabytes, peak_megabytes

BUDGET = 8.0
"""CPU seconds after which no further round begins."""


def main() -> None:
    method, path = sys.argv[1:3]
    distinct = pickle.loads(Path(path).read_bytes())
    distinct[:2000].estimate(method)  # code is compiled, weights are read
    for n in map(int, sys.argv[3:]):
        seconds: list[float] = []
        while len(seconds) < (50 if n == 1 else 5) and sum(seconds) < BUDGET:
            tracklets = distinct[np.arange(n) % len(distinct)]  # nothing of it is worked out yet
            before = megabytes()
            forget_peak()
            seconds.append(cpu_seconds(partial(tracklets.estimate, method)))
            memory = {"before": before, "peak": peak_megabytes()}
            del tracklets
        print(json.dumps({"n": n, "seconds": seconds, **memory}), flush=True)


if __name__ == "__main__":
    main()
