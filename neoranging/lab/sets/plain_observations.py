"""Observations of objects with orbits, from a plain table."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from neoranging.exceptions import ObservationFormatError
from neoranging.observations.user_table import read_table

if TYPE_CHECKING:
    from astropy.table import QTable


def read_observation_table(path: str | os.PathLike[str]) -> QTable:
    """Read observations of named objects from a file that holds a table.

    Parameters
    ----------
    path : path-like
        Comma-separated text or another format of `neoranging.read_tracklets`, plain or compressed
        (``.gz``, ``.xz``...), with the columns of its tables; needed is ``designation`` as well,
        by which an orbit is found. Optional are ``selected`` (0 or false: rejected from the orbit)
        and ``note2`` (as in the 80-column format).

    Returns
    -------
    QTable
        Observation table. Rows that are no optical position from the ground, or that lack a number,
        are set aside in ``meta["report"]``. Where a sigma is missing, the default of the station
        is used; 999 stands for no weight.

    Raises
    ------
    ObservationFormatError
        If it is no such table.
    OSError
        If it cannot be read.
    """
    try:
        return read_table(path, named_only=True)
    except ObservationFormatError as error:
        raise ObservationFormatError(f"{path}: {error}") from error
