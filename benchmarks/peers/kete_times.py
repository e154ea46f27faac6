"""Ranging and initial orbits of kete, asked by ``run.py`` in the environment that has it.

    python kete_times.py OBSERVATIONS.csv KERNELS

The table is that of ``kete_ranging.py``. ``ranging N`` is the posterior of the arc N by 1000 draws,
with the settings of kete; ``orbit N`` its initial orbit.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from kete_ranging import import_kete, read_observations
from serve import serve

DRAWS = 1000


def main() -> None:
    kete = import_kete(Path(sys.argv[2]))

    def ranging(observations: list[Any]) -> int:
        kete.orbit_fitting.fit_orbit_ranging(observations, DRAWS)
        return 1

    def orbit(observations: list[Any]) -> int:
        kete.orbit_fitting.initial_orbit_determination(observations)
        return 1

    cases: dict[str, Callable[[], int]] = {}
    for arc, observations in read_observations(Path(sys.argv[1]), kete).items():
        cases[f"ranging {arc}"] = partial(ranging, observations)
        cases[f"orbit {arc}"] = partial(orbit, observations)
    serve(cases)


if __name__ == "__main__":
    main()
