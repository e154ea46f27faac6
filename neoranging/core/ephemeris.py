"""Series of time as polynomials, one per cell of a grid, and the angle of the Earth's rotation.

What is smooth in time and dear to compute (the place of the Earth, the celestial pole, TDB - TT) is
kept as one polynomial per cell of a uniform grid, filled the first time a cell is visited. A
million epochs then cost a tenth of a second, and three epochs some microseconds.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import ArrayLike

from neoranging.constants import EARTH_ROTATION_RATE, MJD_J2000
from neoranging.exceptions import EphemerisError
from neoranging.typing import FloatArray, IntArray

ATTRACTOR_TERMS: Final = 5
"""Coefficients of the polynomials in time that stand for the paths of Earth and Moon."""


class Pieces(NamedTuple):
    """Polynomials of some cells of a uniform grid, as compiled code takes them."""

    start: float
    """First epoch of the grid [MJD]."""
    step: float
    """Length of a cell [d]."""
    rows: IntArray
    """Row of the polynomials of each cell, -1 where there are none, shape (n_cells,)."""
    coefficients: FloatArray
    """Ascending powers of the place in the cell from -1 to 1, shape (M, n_components, terms)."""


class PiecewiseSeries:
    """A smooth vector function of time, one polynomial per cell of a uniform grid.

    A cell is filled when an epoch first falls into it, from what the source has for that cell
    alone: neighbours never matter, so the order of calls does not change a result, and a
    discontinuity at a cell edge stays at that edge. Filling is guarded by a lock and replaces
    `pieces` as a whole; evaluation takes them as they are at its beginning, in any thread.

    Parameters
    ----------
    source : callable
        Takes numbers of cells ``(M,)`` and returns coefficients ``(M, degree + 1, n_components)``,
        ascending powers of the place in the cell from -1 to 1; such as an `Interpolant`.
    start : float
        First epoch of the grid [MJD].
    step : float
        Length of a cell [d].
    n_cells : int
        Number of cells; the grid ends at ``start + n_cells * step``.
    degree : int
        Degree of the polynomials.
    n_components : int
        Number of components of the function.
    name : str
        The function's name, for error messages.
    """

    def __init__(
        self,
        source: Callable[[IntArray], FloatArray],
        *,
        start: float,
        step: float,
        n_cells: int,
        degree: int,
        n_components: int,
        name: str,
    ) -> None:
        self.name = name
        self.start, self.step, self.n_cells = float(start), float(step), int(n_cells)
        self.degree, self.n_components = int(degree), int(n_components)
        self._source = source
        rows = np.full(self.n_cells, -1, dtype=np.int64)
        nothing = np.empty((0, self.n_components, self.degree + 1))
        self.pieces = Pieces(self.start, self.step, rows, nothing)
        self._lock = threading.Lock()

    @property
    def end(self) -> float:
        """Last epoch of the grid [MJD]."""
        return self.start + self.n_cells * self.step

    @property
    def filled_cells(self) -> IntArray:
        """Numbers of the cells that hold a polynomial, ascending."""
        return np.flatnonzero(self.pieces.rows >= 0).astype(np.int64)

    def __call__(self, epoch: ArrayLike) -> FloatArray:
        """Values ``(N, n_components)`` at the epochs ``(N,)`` [MJD].

        Raises
        ------
        EphemerisError
            If an epoch is not finite or lies outside the grid.
        """
        from neoranging.core.ephemeris_kernel import evaluate

        epoch = self._column(epoch)
        values = np.empty((epoch.size, self.n_components))
        filling(evaluate, epoch, (self,), values)
        return values

    def with_rate(self, epoch: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Values and their time derivatives [1/d], both ``(N, n_components)``, at ``(N,)`` epochs.

        Raises
        ------
        EphemerisError
            If an epoch is not finite or lies outside the grid.
        """
        from neoranging.core.ephemeris_kernel import evaluate_with_rate

        epoch = self._column(epoch)
        values = np.empty((epoch.size, self.n_components))
        rates = np.empty_like(values)
        filling(evaluate_with_rate, epoch, (self,), values, rates)
        return values, rates

    def _column(self, epoch: ArrayLike) -> FloatArray:
        """A copy of the epochs: compiled code is another for arrays that are read-only."""
        column = np.array(epoch, dtype=np.float64)
        if column.ndim != 1:
            raise EphemerisError(f"epochs must have shape (N,), got {column.shape}; use np.ravel")
        return column

    def fill(self, epoch: FloatArray) -> None:
        """Fill the cells of epochs ``(N,)`` that are empty.

        Raises
        ------
        EphemerisError
            If an epoch is not finite or lies outside the grid.
        """
        place = (epoch - self.start) / self.step
        inside = (place >= 0.0) & (place <= self.n_cells)  # False for NaN
        if not inside.all():
            raise EphemerisError(
                f"{self.name} is known from MJD {self.start:.0f} to {self.end:.0f}, got MJD "
                f"{epoch[~inside][0]}; correct or leave out the {np.sum(~inside)} epochs outside"
            )
        cells = np.unique(np.minimum(place.astype(np.int64), self.n_cells - 1))
        with self._lock:
            empty = cells[self.pieces.rows[cells] < 0]  # another thread may have filled some
            if empty.size:
                self._store(empty, self._source(empty))

    def coefficients(self, cells: IntArray) -> FloatArray:
        """Coefficients ``(M, degree + 1, n_components)`` of filled cells, ascending powers."""
        pieces = self.pieces
        return np.ascontiguousarray(np.moveaxis(pieces.coefficients[pieces.rows[cells]], -1, 1))

    def restore(self, cells: IntArray, coefficients: FloatArray) -> None:
        """Take over polynomials that `coefficients` gave earlier; cells already filled stay.

        Raises
        ------
        EphemerisError
            See `require`.
        """
        self.require(cells, coefficients)
        with self._lock:
            new = self.pieces.rows[cells] < 0
            self._store(cells[new], coefficients[new])

    def require(self, cells: IntArray, coefficients: FloatArray) -> None:
        """Check that polynomials can belong to this series.

        Raises
        ------
        EphemerisError
            If shapes, cell numbers or values cannot belong to this series.
        """
        shape = (cells.size, self.degree + 1, self.n_components)
        if coefficients.shape != shape or not np.isfinite(coefficients).all():
            raise EphemerisError(
                f"cached coefficients of {self.name} must be finite with shape {shape}, "
                f"got shape {coefficients.shape}; delete the cache file and save it anew"
            )
        if cells.size and (cells.min() < 0 or cells.max() >= self.n_cells):
            raise EphemerisError(
                f"cached cells of {self.name} must lie in 0..{self.n_cells - 1}, got "
                f"{cells.min()}..{cells.max()}; delete the cache file and save it anew"
            )

    def _store(self, cells: IntArray, coefficients: FloatArray) -> None:
        """Replace the pieces by others that hold these cells too."""
        rows, old = self.pieces.rows.copy(), self.pieces.coefficients
        rows[cells] = len(old) + np.arange(len(cells))
        # components before powers: a polynomial is read in one go
        joined = np.concatenate([old, np.moveaxis(coefficients, -1, 1)])
        self.pieces = Pieces(self.start, self.step, rows, np.ascontiguousarray(joined))


def filling(
    kernel: Callable[..., int], epoch: FloatArray, series: tuple[PiecewiseSeries, ...], *arrays: Any
) -> None:
    """Run a kernel over epochs, and again with more cells filled where it stopped for want of one.

    Parameters
    ----------
    kernel : callable
        Takes the epochs, the pieces of each series and the arrays, and returns the number of epochs
        done before one that has no polynomial.
    epoch : ndarray, shape (N,)
        Epochs [MJD].
    series : tuple of PiecewiseSeries
        Series that the kernel evaluates at these epochs.
    *arrays : ndarray
        All that the kernel takes besides.

    Raises
    ------
    EphemerisError
        If an epoch is not finite or lies outside a grid.
    """
    while kernel(epoch, *(item.pieces for item in series), *arrays) < epoch.size:
        for item in series:
            item.fill(epoch)


class Interpolant:
    """Source of a `PiecewiseSeries`: polynomials through a function's values in each cell.

    Parameters
    ----------
    function : callable
        Takes epochs ``(M,)`` [MJD] and returns values ``(M, n_components)``.
    start, step : float
        Grid of the series [MJD], [d].
    degree : int
        Degree of the polynomials, which agree with the function at the Chebyshev points.
    """

    def __init__(
        self,
        function: Callable[[FloatArray], FloatArray],
        *,
        start: float,
        step: float,
        degree: int,
    ) -> None:
        self._function, self._start, self._step = function, float(start), float(step)
        self._nodes = chebyshev.chebpts1(degree + 1)

    def __call__(self, cells: IntArray) -> FloatArray:
        """Coefficients ``(M, degree + 1, n_components)`` of cells ``(M,)``."""
        epoch = self._start + self._step * (cells[:, None] + 0.5 * (self._nodes + 1.0))
        values = self._function(epoch.ravel())
        values = values.reshape(cells.size, self._nodes.size, -1)
        # The Chebyshev points are orthogonal under summation, so no system need be solved; the
        # powers come second because only small numbers are left to be amplified by then.
        to_chebyshev: FloatArray = np.array(
            chebyshev.chebvander(self._nodes, self._nodes.size - 1).T
        )
        to_chebyshev *= 2.0 / self._nodes.size
        to_chebyshev[0] *= 0.5
        return powers(_apply(to_chebyshev, values))


def powers(series: FloatArray) -> FloatArray:
    """Coefficients of ascending powers from those of Chebyshev polynomials, ``(M, terms, ...)``."""
    return _apply(_to_powers(series.shape[1]), series)


@cache  # to work it out takes longer than to use it
def _to_powers(terms: int) -> FloatArray:
    """Matrix from coefficients of Chebyshev polynomials to those of ascending powers."""
    matrix = np.zeros((terms, terms))
    for k, unit in enumerate(np.eye(terms)):
        matrix[: k + 1, k] = chebyshev.cheb2poly(unit[: k + 1])
    return matrix


def _apply(matrix: FloatArray, values: FloatArray) -> FloatArray:
    """``matrix @ values`` over the middle axis, term by term.

    A library product sums in an order that depends on the number of cells; this one gives the same
    bits whether cells are filled one by one or all at once.
    """
    result = np.zeros_like(values)
    for k in range(matrix.shape[1]):
        result += matrix[:, k, None] * values[:, k, None, :]
    return result


def earth_rotation_angle(mjd_ut1: FloatArray) -> FloatArray:
    """Earth rotation angle [rad], not reduced below one turn per day.

    Parameters
    ----------
    mjd_ut1 : ndarray or float
        Epochs, MJD UT1.

    Returns
    -------
    ndarray or float
        Angle, same shape, in [0, 4 pi).

    Notes
    -----
    IERS Conventions (2010), eq. 5.15. Whole days are dropped from the fast term before it is
    multiplied, as the equation's note asks.
    """
    days = mjd_ut1 - MJD_J2000
    excess = EARTH_ROTATION_RATE / (2.0 * np.pi) - 1.0
    slow = 0.779_057_273_264_0 + excess * days
    return 2.0 * np.pi * ((days - np.floor(days)) + (slow - np.floor(slow)))
