"""What estimators hand back: columns over arcs, and the flat list of their candidates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from neoranging.typing import AnyArray, BoolArray, CodeArray, FloatArray, IntArray, StrArray

_COLUMNS: Final = 7  # of `Solutions` that are never None


class Roots(NamedTuple):
    """Roots of a method as orbits: K of them, flat, ordered by arc."""

    arc: IntArray
    """The arc that each belongs to."""
    rho: FloatArray
    rho_dot: FloatArray
    covariance: FloatArray
    """Of (rho, rho_dot) from the observational noise, linearised; shape (K, 2, 2)."""
    r: FloatArray
    """Heliocentric position at the emission epoch, shape (K, 3) [au]."""
    v: FloatArray
    epoch: FloatArray
    """Emission epoch [MJD TDB]."""
    converged: BoolArray
    """An orbit through the observations was reached; false where none was tried either."""


class Candidates(NamedTuple):
    """Roots with what each implies, and which one was chosen."""

    roots: Roots
    energy: FloatArray
    """Heliocentric two-body energy [au^2/d^2]."""
    admissible: BoolArray
    chi2: FloatArray
    """Weighted sum of squared residuals of all observations of the arc."""
    residual: FloatArray
    """Root mean square residual of the arc's observations [rad]."""
    plausible: BoolArray
    """Converged, admissible and fitting: a rival of the chosen one."""
    chosen: BoolArray

    @classmethod
    def none(cls) -> Candidates:
        """No candidates, as of no arcs or of a method without roots."""
        number, flag = np.zeros(0), np.zeros(0, dtype=bool)
        vector, matrix = np.zeros((0, 3)), np.zeros((0, 2, 2))
        arc = np.zeros(0, dtype=np.int64)
        roots = Roots(arc, number, number, matrix, vector, vector, number, flag)
        return cls(roots, number, flag, number, number, flag, flag)

    def select(self, rows: IntArray, arc: IntArray) -> Candidates:
        """Rows ``rows``, said to belong to the arcs ``arc``."""
        roots = Roots._make(column[rows] for column in self.roots)._replace(arc=arc)
        return Candidates._make([roots, *(column[rows] for column in self[1:])])


class Solutions(NamedTuple):
    """One answer for each of M arcs; NaN where the status says why."""

    rho: FloatArray
    rho_dot: FloatArray
    covariance: FloatArray
    """Of (rho, rho_dot), shape (M, 2, 2)."""
    r: FloatArray
    """Heliocentric position at the emission epoch, shape (M, 3) [au]."""
    v: FloatArray
    epoch: FloatArray
    """Emission epoch [MJD TDB]."""
    status: CodeArray
    """`RangeStatus.code`."""
    candidates: Candidates | None = None
    remarks: StrArray | None = None
    """What the method has to say of an arc beside the status, shape (M,); mostly empty."""

    @property
    def _columns(self) -> tuple[AnyArray, ...]:
        """What every method gives, one row per arc."""
        return self[:_COLUMNS]

    @classmethod
    def unsolved(cls, status: npt.ArrayLike) -> Solutions:
        """No numbers, only verdicts."""
        codes = np.array(status, dtype=np.int8)
        shapes = ((), (), (2, 2), (3,), (3,), ())
        numbers = (np.full((len(codes), *shape), np.nan) for shape in shapes)
        return cls._make([*numbers, codes, None, None])

    def take(self, index: IntArray) -> Solutions:
        """Solutions of some arcs, in that order; their candidates are renumbered."""
        columns = [column[index] for column in self._columns]
        remarks = None if self.remarks is None else self.remarks[index]
        if self.candidates is None:
            return Solutions._make([*columns, None, remarks])
        arc = self.candidates.roots.arc
        starts = np.searchsorted(arc, index)
        counts = np.searchsorted(arc, index, side="right") - starts
        owner = np.repeat(np.arange(len(index)), counts)
        rows = np.arange(len(owner)) + np.repeat(starts - np.cumsum(counts) + counts, counts)
        return Solutions._make([*columns, self.candidates.select(rows, owner), remarks])

    def spread(self, index: IntArray, status: npt.ArrayLike) -> Solutions:
        """These as arcs ``index`` among others that have only a ``status`` (M,)."""
        whole = Solutions.unsolved(status)
        for column, mine in zip(whole._columns, self._columns, strict=True):
            column[index] = mine
        if self.remarks is not None:
            remarks = np.full(len(whole.rho), "", dtype=self.remarks.dtype)
            remarks[index] = self.remarks
            whole = whole._replace(remarks=remarks)
        if self.candidates is None:
            return whole
        arc = self.candidates.roots.arc
        return whole._replace(candidates=self.candidates.select(np.arange(len(arc)), index[arc]))

    @classmethod
    def join(cls, parts: Sequence[Solutions]) -> Solutions:
        """Solutions of consecutive runs of arcs as one."""
        columns = [np.concatenate(c) for c in zip(*(p._columns for p in parts), strict=True)]
        remarks = None
        if any(part.remarks is not None for part in parts):
            remarks = np.concatenate(
                [np.full(len(p.rho), "") if p.remarks is None else p.remarks for p in parts]
            )
        starts = np.cumsum([0, *(len(part.rho) for part in parts[:-1])])
        listed = [
            (part.candidates, start)
            for part, start in zip(parts, starts, strict=True)
            if part.candidates is not None
        ]
        if not listed:
            return cls._make([*columns, None, remarks])
        roots = Roots._make(
            np.concatenate(c) for c in zip(*(c.roots for c, _ in listed), strict=True)
        )
        arc = np.concatenate([c.roots.arc + start for c, start in listed])
        rest = [np.concatenate(c) for c in zip(*(c[1:] for c, _ in listed), strict=True)]
        candidates = Candidates._make([roots._replace(arc=arc), *rest])
        return cls._make([*columns, candidates, remarks])
