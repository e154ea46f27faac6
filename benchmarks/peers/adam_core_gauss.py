"""Gauss's method of adam_core, asked by ``run.py`` in the environment that has it.

    python adam_core_gauss.py OBSERVATIONS.csv

One row of the table is an observation: arc, MJD TDB, direction [rad], heliocentric place of the
observer in ICRS axes [au]; ``gaussIOD`` takes it in axes of the ecliptic. ``whole`` is ``gaussIOD``
with the table of orbits that it returns, ``kernel`` its compiled part alone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
from serve import serve

OBLIQUITY = np.radians(84381.448 / 3600.0)


def main() -> None:
    from adam_core._rust import gauss_iod_orbits_arrow
    from adam_core.constants import Constants
    from adam_core.orbit_determination.gauss import gaussIOD

    table = np.genfromtxt(sys.argv[1], delimiter=",", names=True)
    sky = np.degrees(np.stack([table["ra"], table["dec"]], axis=1)).reshape(-1, 3, 2)
    t = table["t_mjd_tdb"].reshape(-1, 3)
    c, s = np.cos(OBLIQUITY), np.sin(OBLIQUITY)
    x, y, z = (table[name] for name in ("x", "y", "z"))
    place = np.stack([x, c * y + s * z, c * z - s * y], axis=1).reshape(-1, 3, 3)
    columns = [
        tuple(np.ascontiguousarray(part) for part in (q[:, 0], q[:, 1], at, o))
        for q, at, o in zip(sky, t, place, strict=True)
    ]
    constants = "gibbs", True, float(Constants.MU), float(Constants.C)

    def whole() -> int:
        for q, at, o in zip(sky, t, place, strict=True):
            gaussIOD(q, at, o)
        return len(t)

    def kernel() -> int:
        for ra, dec, at, o in columns:
            gauss_iod_orbits_arrow(ra, dec, at, o, *constants)
        return len(t)

    cases: dict[str, Callable[[], int]] = {"whole": whole, "kernel": kernel}
    serve(cases)


if __name__ == "__main__":
    main()
