"""Answers of an estimator: columns over arcs, and the flat list of their candidates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from neoranging.core import columns
from neoranging.core.admissible import is_admissible
from neoranging.core.attributable import Attributables
from neoranging.core.kepler import orbital_energy
from neoranging.core.noise import quantile
from neoranging.core.posterior import Posterior
from neoranging.core.status import RangeStatus, is_usable
from neoranging.typing import AnyArray, BoolArray, CodeArray, FloatArray, IntArray


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

    def of_arcs(self, arc: IntArray) -> Candidates:
        """The same candidates, belonging to the arcs ``arc``, shape (K,)."""
        return self._replace(roots=self.roots._replace(arc=arc))


@dataclass(frozen=True, eq=False)
class Answers:
    """One answer for each of M arcs; NaN where the status says why.

    An estimator makes them with all their columns, or by `of` from a range and a range-rate.

    Attributes
    ----------
    attributables : Attributables
        Of the arcs, seen from the origin: what the answers complete.
    rho, rho_dot : ndarray, shape (M,)
        Range [au] and range-rate [au/d].
    covariance : ndarray, shape (M, 2, 2)
        Of (rho, rho_dot); NaN where the method gives none.
    r, v : ndarray, shape (M, 3)
        Heliocentric state at the emission epoch, ICRS axes [au, au/d].
    epoch : ndarray, shape (M,)
        Emission epoch [MJD TDB].
    status : ndarray of int8, shape (M,)
        `RangeStatus.code`.
    candidates : Candidates, optional
    remarks : ndarray of str or object, shape (M,), optional
        Remarks of the method beside the status; mostly empty. Many are objects: as fixed-width text
        the longest would be paid for in every row.
    posterior : Posterior, optional
        Of a method that gives one: what the night says of range and range-rate.
    method : str
        Name of the method, or its label in a study.
    origin : {"topocenter", "geocenter"}
        Where the ranges count from.
    error_scales : ndarray, shape (M, 10), optional
        Standard errors at the levels of their scale, relative to those that the covariance has:
        the mixture that ``neoranging.core.noise.quantile`` is of. A normal law without.
    seconds : float
        Wall time for all arcs; NaN where nobody looked at the clock.
    """

    attributables: Attributables
    rho: FloatArray
    rho_dot: FloatArray
    covariance: FloatArray
    r: FloatArray
    v: FloatArray
    epoch: FloatArray
    status: CodeArray
    candidates: Candidates | None = None
    remarks: AnyArray | None = None
    posterior: Posterior | None = None
    method: str = ""
    origin: str = "topocenter"
    error_scales: FloatArray | None = None
    seconds: float = float("nan")

    # ------------------------------------------------------------------ made

    @classmethod
    def of(
        cls,
        attributables: Attributables,
        rho: FloatArray,
        rho_dot: FloatArray,
        status: RangeStatus | npt.ArrayLike,
    ) -> Answers:
        """Answers of a method that gives ranges and range-rates, and no errors of them.

        Parameters
        ----------
        attributables : Attributables
            Of M arcs; completed they are the orbits.
        rho, rho_dot : ndarray, shape (M,)
            Range [au] and range-rate [au/d].
        status : RangeStatus or array_like of int, shape (M,)
            One for all, or the code of each.
        """
        orbit = attributables.complete(rho, rho_dot)
        code = status.code if isinstance(status, RangeStatus) else np.asarray(status)
        codes = np.full(len(rho), code, dtype=np.int8)
        nothing = np.full((len(rho), 2, 2), np.nan)
        return cls(attributables, rho, rho_dot, nothing, orbit.r, orbit.v, orbit.epoch, codes)

    @classmethod
    def unsolved(cls, attributables: Attributables, status: npt.ArrayLike) -> Answers:
        """No numbers, only verdicts: the codes of M arcs."""
        codes = np.array(status, dtype=np.int8)
        rho, rho_dot, covariance, r, v, epoch = (
            np.full((len(codes), *shape), np.nan) for shape in ((), (), (2, 2), (3,), (3,), ())
        )
        return cls(attributables, rho, rho_dot, covariance, r, v, epoch, codes)

    def take(self, rows: slice | Sequence[int] | IntArray | BoolArray) -> Answers:
        """Answers to some arcs: a slice, indices in any order, or a mask.

        Candidates are renumbered; ``seconds`` stays that of all.
        """
        index = np.arange(len(self))[rows]
        posterior = None if self.posterior is None else self.posterior.take(index)
        plain = replace(self, candidates=None, posterior=None)
        some = replace(columns.take(plain, index), posterior=posterior)
        if self.candidates is None:
            return some
        arc = self.candidates.roots.arc
        starts = np.searchsorted(arc, index)
        counts = np.searchsorted(arc, index, side="right") - starts
        part = columns.take(self.candidates, columns.ragged_rows(starts, counts))
        return replace(some, candidates=part.of_arcs(np.repeat(np.arange(len(index)), counts)))

    def spread(
        self, index: IntArray, attributables: Attributables, status: npt.ArrayLike
    ) -> Answers:
        """These as arcs ``index`` among others that have only a ``status`` (M,)."""
        among = Answers.unsolved(attributables, status)
        for field in fields(self):
            column = getattr(among, field.name)
            if isinstance(column, np.ndarray):
                column[index] = getattr(self, field.name)
        remarks, candidates = None, None
        if self.remarks is not None:
            remarks = np.full(len(among), "", dtype=self.remarks.dtype)
            remarks[index] = self.remarks
        if self.candidates is not None:
            candidates = self.candidates.of_arcs(index[self.candidates.roots.arc])
        posterior = None if self.posterior is None else self.posterior.spread(index, len(among))
        scales = self.error_scales
        if scales is not None:
            scales = np.ones((len(among), scales.shape[1]))
            scales[index] = self.error_scales
        return replace(
            among,
            remarks=remarks,
            candidates=candidates,
            posterior=posterior,
            error_scales=scales,
        )

    @classmethod
    def join(cls, parts: Iterable[Answers], n: int) -> Answers:
        """Answers to consecutive runs of arcs, n in all, as one; candidates are renumbered.

        Parts that are made as they are asked for are never all held at once.
        """
        listed: list[Candidates] = []
        posteriors: list[Posterior | int] = []
        remarks: npt.NDArray[np.object_] | None = None
        scales: FloatArray | None = None

        def columns_of_each() -> Iterator[Answers]:
            nonlocal remarks, scales
            begin = 0
            for part in parts:
                rows = slice(begin, begin + len(part))
                if part.candidates is not None:
                    arc = part.candidates.roots.arc + begin
                    listed.append(part.candidates.of_arcs(arc))
                if part.remarks is not None:
                    remarks = np.full(n, "", dtype=object) if remarks is None else remarks
                    remarks[rows] = part.remarks
                if part.error_scales is not None:
                    if scales is None:  # a part without answers has none
                        scales = np.ones((n, part.error_scales.shape[1]))
                    scales[rows] = part.error_scales
                posteriors.append(len(part) if part.posterior is None else part.posterior)
                begin = rows.stop
                yield replace(
                    part, candidates=None, remarks=None, posterior=None, error_scales=None
                )

        joined = columns.gather(columns_of_each(), n)
        posterior = None
        if any(isinstance(each, Posterior) for each in posteriors):
            posterior = Posterior.join(
                [p if isinstance(p, Posterior) else Posterior.none(p) for p in posteriors]
            )
        return replace(
            joined,
            candidates=columns.join(listed) if listed else None,
            remarks=remarks,
            posterior=posterior,
            error_scales=scales,
        )

    # ------------------------------------------------------------------ looked at

    def __len__(self) -> int:
        return len(self.rho)

    @property
    def answered(self) -> BoolArray:
        """Flags of arcs with a range, whatever their status, shape (M,)."""
        return np.isfinite(self.rho)

    @property
    def ok(self) -> BoolArray:
        """Flags of the status OK, shape (M,)."""
        return self.status == RangeStatus.OK.code

    @property
    def usable(self) -> BoolArray:
        """Flags of answers that the method stands by, OK or POPULATION, shape (M,)."""
        return is_usable(self.status)

    @property
    def rho_error(self) -> FloatArray:
        """Standard error of the range [au], shape (M,); NaN where there is none."""
        return np.sqrt(self.covariance[:, 0, 0])

    def error_quantile(self, level: float) -> FloatArray:
        """Error of the range that a share ``level`` stays below [au], shape (M,)."""
        if self.error_scales is None:
            return self.rho_error * float(ndtri(0.5 + 0.5 * level))
        return self.rho_error * quantile(self.error_scales, 1.0 - level)

    @property
    def eta(self) -> FloatArray:
        """Proper motion of the arcs [rad/d], shape (M,)."""
        return self.attributables.proper_motion

    @cached_property
    def admissible(self) -> BoolArray:
        """Flags of answers in the admissible region whose orbits are bound, shape (M,)."""
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            energy = orbital_energy(self.r, self.v)
            coefficients = self.attributables.energy_coefficients
            return is_admissible(coefficients, self.rho, self.rho_dot, energy)

    @cached_property
    def limits(self) -> FloatArray:
        """Least and greatest admissible range [au], shape (M, 2); NaN where none is."""
        return self.attributables.range_limits

    @cached_property
    def rate_limits(self) -> FloatArray:
        """Lowest and highest admissible range-rate [au/d], shape (M, 2); NaN where none is."""
        return self.attributables.rate_limits
