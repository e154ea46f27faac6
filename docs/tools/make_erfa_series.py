"""Tabulate the series of ERFA that neoranging ships: the celestial pole and TDB - TT.

The pole by IAU 2006/2000A takes 1,365 + 1,306 terms and 80 microseconds an epoch, TDB - TT another
20. Both are smooth: a polynomial of low degree in each cell of eight days from 1800 to 2200 says
the same, in numbers that are rounded to what a place on the Earth can notice::

    python docs/tools/make_erfa_series.py

Against ERFA at epochs at random the pole is then off by less than 0.7 mm on the surface of the
Earth (0.1 mm rms), TDB - TT by less than 5 ns. The command prints both.

The file is a NumPy archive. ``pole`` holds X, Y and s + XY / 2, which varies more slowly than s;
both hold Chebyshev coefficients as integers, of shape (terms, components, cells), in units of
``pole_unit`` [rad] and ``tdb_tt_unit`` [s]; ``start`` and ``step`` are the grid [MJD], [d].
"""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Callable
from pathlib import Path

import erfa
import numpy as np
from numpy.polynomial import chebyshev

from neoranging.constants import MJD_JD, R_EARTH_M
from neoranging.ephemeris import states
from neoranging.typing import FloatArray

UNITS = {"pole": 2.0e-11, "tdb_tt": 1.0e-9}
DEGREES = {"pole": 8, "tdb_tt": 4}
NODES = 12


def pole(mjd: FloatArray) -> FloatArray:
    """X, Y and s + XY / 2 by ERFA, shape (M, 3) [rad]."""
    x, y, s = erfa.ufunc.xys06a(MJD_JD, mjd)
    return np.stack([x, y, s + 0.5 * x * y], axis=-1)


def tdb_tt(mjd: FloatArray) -> FloatArray:
    """TDB - TT at the geocentre by ERFA, shape (M, 1) [s]."""
    return np.asarray(erfa.ufunc.dtdb(MJD_JD, mjd, 0.0, 0.0, 0.0, 0.0))[:, None]


def tabulate(function: Callable[[FloatArray], FloatArray], degree: int) -> FloatArray:
    """Chebyshev coefficients of a function in all cells, (degree + 1, components, cells)."""
    nodes = chebyshev.chebpts1(NODES)
    cells = np.arange(states.CELLS)[:, None]
    values = function((states.START + states.STEP * (cells + 0.5 * (nodes + 1.0))).ravel())
    # least squares: the nodes outnumber the coefficients
    fit = np.linalg.pinv(chebyshev.chebvander(nodes, degree))
    return np.einsum("kn,mnc->kcm", fit, values.reshape(len(cells), NODES, -1))


def main() -> None:
    """Write the file; print its size, checksum and largest errors."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--output", type=Path, default=states.SERIES)
    output = parser.parse_args().output
    content: dict[str, np.ndarray | float] = {"start": states.START, "step": states.STEP}
    for function in (pole, tdb_tt):
        name = function.__name__
        table = tabulate(function, DEGREES[name]) / UNITS[name]
        content |= {name: np.rint(table).astype(np.int32), f"{name}_unit": UNITS[name]}
    np.savez_compressed(output, **content)  # type: ignore[arg-type]
    bits = output.read_bytes()
    print(f"{output}: {len(bits)} bytes, sha256 {hashlib.sha256(bits).hexdigest()}")
    mjd = np.random.default_rng(0).uniform(*states.EPHEMERIS_SPAN, 20_000)
    metres = np.abs(states._POLE(mjd) - pole(mjd)) * R_EARTH_M
    seconds = np.abs(states._TDB_TT(mjd) - tdb_tt(mjd))
    print(f"pole: largest error {metres.max() * 1e3:.2f} mm, rms {metres.std() * 1e3:.2f} mm")
    print(f"TDB - TT: largest error {seconds.max() * 1e9:.1f} ns")


if __name__ == "__main__":
    main()
