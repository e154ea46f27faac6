"""Scores of digest2, asked by ``run.py`` in the environment that has it.

    python digest2_times.py OBSERVATIONS.csv OBSCODES

The table is that of ``digest2_score.py``. ``all N`` scores the arc N for all classes of orbits,
``neo N`` for near-Earth objects alone; each several times, for the clock.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from digest2_score import read_observations
from serve import serve

REPEATS = 5


def main() -> None:
    from digest2 import Digest2

    def score(digest2: Any, observations: list[Any], **options: Any) -> int:
        for _ in range(REPEATS):
            digest2.classify_tracklet(observations, **options)
        return REPEATS

    cases: dict[str, Callable[[], int]] = {}
    with Digest2(obscodes_path=sys.argv[2]) as digest2:
        for arc, observations in read_observations(Path(sys.argv[1])).items():
            cases[f"all {arc}"] = partial(score, digest2, observations)
            cases[f"neo {arc}"] = partial(score, digest2, observations, classes=["NEO"])
        serve(cases)


if __name__ == "__main__":
    main()
