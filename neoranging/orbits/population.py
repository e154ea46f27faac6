"""Tables of how many objects there are on which orbits: those of the package, and the user's own.

``population`` is the whole solar system as it is, ``near-earth`` the part of it with perihelia
within 1.3 au, ``catalogue`` the near-Earth objects that are known, each once;
`neoranging.core.priors` says what the numbers mean. A fresh tracklet may be of the main belt and
deserves the first, one that was vetted, or is judged by the orbit of a near-Earth object, the
second. A table is an archive of numpy (``.npz``) of the arrays

- ``log_density``: natural logarithm of the number of objects per unit of phase space,
  au^3 (au/d)^3, and magnitude, shape (n_q, n_e, n_i, n_H), finite everywhere;
- ``start``, ``step``: first nodes and distances of the regular grid in ln q [au], eccentricity, the
  square root of the inclination to the ecliptic [rad], and H.

Those of the package also carry the texts ``source``, ``command`` and ``date``; they are made by
``docs/tools/priors.py``.
"""

from __future__ import annotations

import functools
import os
import zipfile
import zlib
from pathlib import Path
from typing import Final

import numpy as np

from neoranging.core.priors import PriorTable, cumulative
from neoranging.exceptions import CorruptFileError, OrbitError
from neoranging.typing import FloatArray

PRIORS_FOLDER: Final = Path(__file__).parents[1] / "data" / "priors"

PRIORS: Final = ("population", "near-earth", "catalogue")
"""Names of the tables that come with the package."""

NEAR_EARTH_AU: Final = 1.3
"""Largest perihelion distance of a near-Earth object."""


@functools.cache
def load_prior(name: str) -> PriorTable:
    """Load a table that comes with the package.

    Parameters
    ----------
    name : {"population", "near-earth", "catalogue"}

    Returns
    -------
    PriorTable
        The same arrays at every call: do not write to them.

    Raises
    ------
    OrbitError
        If there is no such table.
    """
    if name not in PRIORS:
        raise OrbitError(f"there is no table of orbits {name!r}; take one of {', '.join(PRIORS)}")
    if name != "near-earth":
        return read_prior(PRIORS_FOLDER / f"{name}.npz")
    whole = load_prior("population")
    # four times as fine, so that the density ends where near-Earth objects do
    step = whole.step * [0.25, 1.0, 1.0, 1.0]
    n = int((np.log(NEAR_EARTH_AU) - whole.start[0]) / step[0]) + 1
    log_q = np.log(NEAR_EARTH_AU) + step[0] * np.arange(1 - n, 2)
    place = (log_q - whole.start[0]) / whole.step[0]
    cell = place.astype(np.int64)
    part, values = (place - cell)[:, None, None, None], whole.log_density.astype(np.float64)
    density = values[cell] * (1.0 - part) + values[cell + 1] * part
    # interlopers on any orbit remain: the least density is theirs
    density[-1] = whole.log_density.min(axis=(0, 1, 2))
    start = np.array([log_q[0], *whole.start[1:]])
    return _table(density, start, step)


def read_prior(path: str | os.PathLike[str]) -> PriorTable:
    """Read a table of one's own, of the format described above.

    Parameters
    ----------
    path : path-like
        The archive.

    Returns
    -------
    PriorTable

    Raises
    ------
    CorruptFileError
        If the file is damaged, or holds something else.
    OSError
        If it cannot be read.
    """
    try:
        with Path(path).open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            density, start, step = (
                np.asarray(file[name], dtype=np.float64)
                for name in ("log_density", "start", "step")
            )
    except (ValueError, TypeError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise CorruptFileError(
            f"{os.fspath(path)} is no table of orbits, or a damaged one ({error}); a table is an "
            "npz archive of the arrays log_density, start and step"
        ) from error
    problem = None
    if density.ndim != 4 or min(density.shape) < 2:
        problem = f"log_density needs four axes of two nodes or more, got shape {density.shape}"
    elif start.shape != (4,) or step.shape != (4,):
        problem = f"start and step need four numbers, got shapes {start.shape} and {step.shape}"
    elif not (np.isfinite(start).all() and np.isfinite(step).all() and (step > 0.0).all()):
        problem = f"the grid needs finite starts and positive steps, got {start} and {step}"
    elif not np.isfinite(density).all():
        problem = (
            f"{np.sum(~np.isfinite(density))} values of log_density are not finite; put a small "
            "density where there are no objects"
        )
    if problem is not None:
        raise CorruptFileError(f"{os.fspath(path)} is no table of orbits: {problem}")
    return _table(density, start, step)


def _table(density: FloatArray, start: FloatArray, step: FloatArray) -> PriorTable:
    """Table of a density, with the numbers of all brighter objects beside it."""
    brighter = cumulative(density, float(step[3]))
    return PriorTable(density.astype(np.float32), brighter.astype(np.float32), start, step)
