"""Ragged columns of many arcs: the one shape in which observations reach the numeric core."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from neoranging.core.columns import ragged_rows
from neoranging.core.compiled import compiled, plain
from neoranging.core.geometry import line_of_sight
from neoranging.typing import FloatArray, IntArray, StrArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_MANY_ARCS = 256  # arcs from which a sparse product beats a reduction

_LONGEST_VISIT_D = 0.5
"""Gap between observations of one station [d] that begins another visit: the next night."""

_SAME_EPOCH_FRACTION = 1.0e-6
"""Gap, relative to the arc, below which two epochs count as one: the curvature between them would
be the difference of numbers that rounding has made equal."""


class Observations(NamedTuple):
    """Columns of `Arcs` as compiled functions take them."""

    offsets: IntArray
    t: FloatArray
    ra: FloatArray
    dec: FloatArray
    sigma_ra: FloatArray
    sigma_dec: FloatArray
    position: FloatArray
    velocity: FloatArray


@dataclass(frozen=True)
class Arcs:
    """Observations of M arcs, one after the other.

    Arc ``k`` owns rows ``offsets[k]:offsets[k + 1]`` of every column; rows are in order of time and
    every arc has at least one.

    Attributes
    ----------
    offsets : ndarray, shape (M + 1,)
        Where each arc begins, and the total number of observations n.
    t : ndarray, shape (n,)
        Epochs of reception, MJD TDB.
    ra, dec : ndarray, shape (n,)
        ICRS direction as observed [rad].
    sigma_ra, sigma_dec : ndarray, shape (n,)
        Standard deviations on the sky [rad]; ``sigma_ra`` includes cos(dec).
    position, velocity : ndarray, shape (n, 3)
        Heliocentric state of the observer, ICRS axes [au, au/d]; NaN where it is not known.
    visit : ndarray of int, shape (n,), optional
        Label of the visit, by ``visits``: observations of an arc with one label share what is wrong
        with their station in their night. One visit to an arc by default.
    mag : ndarray, shape (n,), optional
        Apparent magnitudes in the band V; NaN where there is none, as by default.
    """

    offsets: IntArray
    t: FloatArray
    ra: FloatArray
    dec: FloatArray
    sigma_ra: FloatArray
    sigma_dec: FloatArray
    position: FloatArray
    velocity: FloatArray
    visit: IntArray = None  # type: ignore[assignment]
    mag: FloatArray = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        n = len(self.t)
        if self.visit is None:
            object.__setattr__(self, "visit", np.zeros(n, dtype=np.int64))
        if self.mag is None:
            object.__setattr__(self, "mag", np.full(n, np.nan))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @cached_property
    def plain(self) -> Observations:
        """The same columns for compiled functions: of one layout, and writable."""
        columns = (getattr(self, name) for name in Observations._fields[1:])
        return Observations(plain(self.offsets, np.int64), *map(plain, columns))

    @cached_property
    def counts(self) -> IntArray:
        """Number of observations of each arc, shape (M,)."""
        return np.diff(self.offsets)

    @cached_property
    def owner(self) -> IntArray:
        """Arc that each observation belongs to, shape (n,)."""
        return np.repeat(np.arange(len(self)), self.counts)

    @cached_property
    def direction(self) -> FloatArray:
        """Unit vectors towards the object, shape (n, 3)."""
        return line_of_sight(self.ra, self.dec)

    @cached_property
    def triplet(self) -> IntArray:
        """Rows of the first, the middle and the last observation of each arc, shape (M, 3).

        The middle one is nearest in time to the middle of the arc and neither end where the arc
        has three observations or more; its epoch is the reference epoch of every estimate.
        """
        return _epochs(self.plain.offsets, self.plain.t)[0]

    @cached_property
    def span(self) -> FloatArray:
        """Time from the first to the last observation of each arc [d], shape (M,)."""
        return self.t[self.offsets[1:] - 1] - self.t[self.offsets[:-1]]

    @cached_property
    def visit_number(self) -> IntArray:
        """Number of the visit of each observation, from 0 on in order of the arcs, shape (n,)."""
        owner, changed = self.owner, np.diff(self.visit) != 0
        if not np.any(changed & (np.diff(owner) == 0)):
            return owner
        order = np.lexsort((self.visit, owner))
        new = np.zeros(len(order), dtype=np.int64)
        new[1:] = (np.diff(owner[order]) != 0) | (np.diff(self.visit[order]) != 0)
        number = np.empty_like(new)
        number[order] = np.cumsum(new)
        return number

    @cached_property
    def mean_mag(self) -> FloatArray:
        """Mean of the magnitudes of each arc, shape (M,); NaN where there is none."""
        has_magnitude = np.isfinite(self.mag)
        total = self.sum(np.where(has_magnitude, self.mag, 0.0))
        with np.errstate(invalid="ignore", divide="ignore"):
            return total / self.sum(has_magnitude + 0.0)

    @cached_property
    def n_epochs(self) -> IntArray:
        """Number of distinct epochs of each arc, shape (M,); a millionth of the arc tells apart."""
        return _epochs(self.plain.offsets, self.plain.t)[1]

    def sum(self, values: npt.NDArray) -> npt.NDArray:
        """Add up ``values`` (n, ...) over each arc -> (M, ...)."""
        if values.ndim == 1 or len(self) < _MANY_ARCS:
            return np.add.reduceat(values, self.offsets[:-1], axis=0)
        flat = values.reshape(len(values), -1)
        return (self._summation @ flat).reshape(len(self), *values.shape[1:])

    @cached_property
    def _summation(self) -> csr_array:
        """The sum over each arc as a sparse matrix: four times as fast on many columns."""
        from scipy.sparse import csr_array  # a quarter of a second, for many arcs only

        n = len(self.t)
        return csr_array((np.ones(n), np.arange(n), self.offsets), shape=(len(self), n))

    def chunk(self, start: int, stop: int) -> Arcs:
        """Arcs ``start:stop`` as views of the same columns."""
        rows = slice(self.offsets[start], self.offsets[stop])
        return self._rows(self.offsets[start : stop + 1] - self.offsets[start], rows)

    def take(self, index: IntArray) -> Arcs:
        """Copy of the arcs ``index``, in that order, repeats allowed."""
        offsets = np.concatenate([[0], np.cumsum(self.counts[index])])
        return self._rows(offsets, self.rows_of(index))

    def rows_of(self, index: IntArray) -> IntArray:
        """Rows of the observations of the arcs ``index``, one arc after the other."""
        return ragged_rows(self.offsets[index], self.counts[index])

    def observations(self, rows: IntArray) -> Arcs:
        """Observations ``rows``, in ascending order, of the arcs that have some of them."""
        counts = np.bincount(self.owner[rows], minlength=len(self))
        return self._rows(np.concatenate([[0], np.cumsum(counts[counts > 0])]), rows)

    def _rows(self, offsets: IntArray, rows: slice | IntArray) -> Arcs:
        columns = (getattr(self, one.name)[rows] for one in fields(self)[1:])
        return Arcs(offsets, *columns)

    def chunks(self, size: int) -> Iterator[Arcs]:
        """Consecutive runs of at most ``size`` arcs."""
        for start in range(0, len(self), size):
            yield self.chunk(start, min(start + size, len(self)))


@compiled
def _epochs(offsets: IntArray, t: FloatArray) -> tuple[IntArray, IntArray]:
    """Rows of the triplet and number of distinct epochs of each arc."""
    m = len(offsets) - 1
    triplet, n_epochs = np.empty((m, 3), dtype=np.int64), np.empty(m, dtype=np.int64)
    for k in range(m):
        begin, end = offsets[k], offsets[k + 1]
        triplet[k, 0], triplet[k, 1], triplet[k, 2] = begin, middle_row(t, begin, end), end - 1
        n_epochs[k] = count_epochs(t, begin, end)
    return triplet, n_epochs


@compiled
def middle_row(t: FloatArray, begin: int, end: int) -> int:
    """Row of the middle observation of one arc; see `Arcs.triplet`."""
    centre = 0.5 * (t[begin] + t[end - 1])
    first, last = (begin + 1, end - 1) if end - begin >= 3 else (begin, end)
    row = first
    for i in range(first + 1, last):
        if abs(t[i] - centre) < abs(t[row] - centre):
            row = i
    return row


@compiled
def count_epochs(t: FloatArray, begin: int, end: int) -> int:
    """Number of distinct epochs of one arc; see `Arcs.n_epochs`."""
    least_gap = _SAME_EPOCH_FRACTION * (t[end - 1] - t[begin])
    number = 1
    for i in range(begin + 1, end):
        if t[i] - t[i - 1] > least_gap:
            number += 1
    return number


def visits(offsets: IntArray, t: FloatArray, station: StrArray) -> IntArray:
    """Labels of the visits that observations belong to: one station in one night, shape (n,).

    Parameters
    ----------
    offsets : ndarray of int, shape (M + 1,)
        Bounds of the arcs, rows in order of time within each.
    t : ndarray, shape (n,)
        Epochs [d].
    station : ndarray of str, shape (n,)
        Codes of the stations.
    """
    owner = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    changed = station[1:] != station[:-1]
    order: slice | IntArray = slice(None)
    if np.any(changed & (owner[1:] == owner[:-1])):  # stations may take turns within a night
        code = np.unique(station, return_inverse=True)[1]
        order = np.lexsort((t, code, owner))
        changed = np.diff(code[order]) != 0
    gap = np.diff(t[order]) > _LONGEST_VISIT_D
    label = np.zeros(len(t), dtype=np.int64)
    ordered = np.zeros(len(t), dtype=np.int64)
    np.cumsum(changed | gap | (np.diff(owner[order]) != 0), out=ordered[1:])
    label[order] = ordered
    return label
