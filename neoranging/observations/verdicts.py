"""Which records a reader uses, and why it sets the others aside."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Final

import numpy as np

from neoranging.exceptions import NeoRangingWarning
from neoranging.observations.observatories import is_known, itrf_positions
from neoranging.observations.report import Note, Reason, SetAside, many
from neoranging.typing import BoolArray, IntArray, StrArray

UNKNOWN_STATION: Final = "unknown station"
"""Beginning of the notes on stations of which readers have warned."""

ROVING_CODES: Final = ("247", "270")
"""MPC codes of observers without a fixed place on the ground; the others are spacecraft."""


class Verdicts:
    """Reasons to set records aside, gathered check by check; the first one found stands.

    Parameters
    ----------
    n : int
        Number of records, all usable at first.
    """

    def __init__(self, n: int) -> None:
        self._code = np.zeros(n, dtype=np.int16)  # 0 is usable, else 1 + index into _found
        self._found: list[tuple[Reason, str]] = []

    @property
    def usable(self) -> BoolArray:
        """Records nothing was found against, (N,)."""
        mask: BoolArray = self._code == 0
        return mask

    def reject(self, rows: BoolArray, reason: Reason, detail: str = "") -> None:
        """Set the usable ones among ``rows`` (N,) aside."""
        rows = rows & self.usable
        if rows.any():
            self._found.append((reason, detail))
            self._code[rows] = len(self._found)

    def set_aside(self, line: IntArray, text: Callable[[int], str]) -> tuple[SetAside, ...]:
        """Return the entries of the report.

        Parameters
        ----------
        line : ndarray of int, shape (N,)
            Line of each record, counted from 1.
        text : callable
            Text of a record by its index.
        """
        entries = []
        for row in np.flatnonzero(self._code):
            reason, detail = self._found[self._code[row] - 1]
            entries.append(SetAside(int(line[row]), reason, text(int(row)), detail))
        return tuple(entries)


def check_stations(station: StrArray, kind: StrArray, verdicts: Verdicts) -> BoolArray:
    """Set aside records of codes without a fixed place that brought no position of their own.

    Parameters
    ----------
    station, kind : ndarray of str, shape (N,)
        MPC codes; ``"ground"`` for records without an own position.
    verdicts : Verdicts
        Where the reasons go.

    Returns
    -------
    ndarray of bool
        Ground-based records of codes that are in no list, (N,).
    """
    if not len(station):
        return np.zeros(0, dtype=bool)
    codes, row = np.unique(station, return_inverse=True)
    known = is_known(codes)
    nowhere = (known & np.isnan(itrf_positions(codes)[:, 0]))[row] & (kind == "ground")
    verdicts.reject(
        nowhere & np.isin(station, ROVING_CODES), Reason.ROVING_WITHOUT_POSITION, "no fixed place"
    )
    verdicts.reject(nowhere, Reason.SPACE_WITHOUT_POSITION, "no fixed place")
    unknown: BoolArray = ~known[row] & (kind == "ground")
    return unknown


def station_notes(station: StrArray, line: IntArray, unknown: BoolArray) -> list[Note]:
    """Note each unknown station once, with its first line, and warn of all of them together.

    Warns
    -----
    NeoRangingWarning
        If any record comes from a station in no list.
    """
    codes, first, count = np.unique(station[unknown], return_index=True, return_counts=True)
    if len(codes):
        message = (
            f"no list of observatories has {', '.join(codes.tolist())}: "
            f"{many(int(count.sum()), 'observation')} without the place of the observer. Give it "
            "with neoranging.register_observatory, or a newer list with neoranging.load_obscodes "
            "or in the environment variable NEORANGING_OBSCODES"
        )
        warnings.warn(message, NeoRangingWarning, stacklevel=2)
    return [
        Note(int(line[unknown][row]), f"{UNKNOWN_STATION} {code!r} ({many(n, 'observation')})")
        for code, row, n in zip(codes.tolist(), first.tolist(), count.tolist(), strict=True)
    ]
