"""Series of time and the rotation of the Earth, in plain arrays.

What is smooth in time and dear to compute (the place of the Earth, the celestial pole, TDB - TT) is
kept as one polynomial per cell of a uniform grid, filled the first time a cell is visited. A
million epochs then cost some hundredths of a second, and three epochs some hundredths of a
millisecond.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import ArrayLike

from neoranging.constants import AU_M, EARTH_ROTATION_RATE, MJD_J2000
from neoranging.exceptions import EphemerisError
from neoranging.typing import FloatArray, IntArray

ATTRACTOR_TERMS: Final = 5
"""Coefficients of the polynomials in time that stand for the paths of Earth and Moon."""

# Epochs evaluated at once: the working arrays then stay in the processor's second-level cache.
_CHUNK: Final = 8192


class PiecewiseSeries:
    """A smooth vector function of time, one interpolating polynomial per cell of a uniform grid.

    A cell is filled when an epoch first falls into it, from the function's values at the Chebyshev
    points of that cell alone: neighbours never matter, so the order of calls does not change a
    result, and a discontinuity of `function` at a cell edge stays at that edge. Filling is guarded
    by a lock; evaluation is not and may run in many threads.

    Parameters
    ----------
    function : callable
        Takes epochs ``(M,)`` [MJD] and returns values ``(M, n_components)``.
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
        What the function is, for error messages.
    """

    def __init__(
        self,
        function: Callable[[FloatArray], FloatArray],
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
        self._function = function
        self._nodes = chebyshev.chebpts1(self.degree + 1)
        # Powers first and cells last: each step of Horner's rule is one gather over the epochs.
        self._coefficients = np.zeros((self.degree + 1, self.n_components, self.n_cells))
        self._filled = np.zeros(self.n_cells, dtype=bool)
        self._lock = threading.Lock()

    @property
    def end(self) -> float:
        """Last epoch of the grid [MJD]."""
        return self.start + self.n_cells * self.step

    @property
    def filled_cells(self) -> IntArray:
        """Numbers of the cells that hold a polynomial, ascending."""
        return np.flatnonzero(self._filled).astype(np.int64)

    def __call__(self, epoch: ArrayLike) -> FloatArray:
        """Values ``(N, n_components)`` at the epochs ``(N,)`` [MJD].

        Raises
        ------
        EphemerisError
            If an epoch is not finite or lies outside the grid.
        """
        epoch = np.asarray(epoch, dtype=np.float64)
        values = np.empty((epoch.size, self.n_components))
        for part, cell, x in self._chunks(epoch):
            value = self._coefficients[-1].take(cell, axis=1)
            for coefficient in self._coefficients[-2::-1]:
                value *= x
                value += coefficient.take(cell, axis=1)
            values[part] = value.T
        return values

    def with_rate(self, epoch: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Values and their time derivatives [1/d], both ``(N, n_components)``, at ``(N,)`` epochs.

        Raises
        ------
        EphemerisError
            If an epoch is not finite or lies outside the grid.
        """
        epoch = np.asarray(epoch, dtype=np.float64)
        values = np.empty((epoch.size, self.n_components))
        rates = np.empty_like(values)
        for part, cell, x in self._chunks(epoch):
            value = self._coefficients[-1].take(cell, axis=1)
            slope = np.zeros_like(value)
            for coefficient in self._coefficients[-2::-1]:
                slope *= x
                slope += value
                value *= x
                value += coefficient.take(cell, axis=1)
            values[part] = value.T
            rates[part] = slope.T
        rates *= 2.0 / self.step
        return values, rates

    def coefficients(self, cells: IntArray) -> FloatArray:
        """Coefficients ``(M, degree + 1, n_components)`` of filled cells, ascending powers."""
        return np.ascontiguousarray(np.moveaxis(self._coefficients[..., cells], -1, 0))

    def restore(self, cells: IntArray, coefficients: FloatArray) -> None:
        """Take over polynomials that `coefficients` gave earlier; cells already filled stay.

        Raises
        ------
        EphemerisError
            See `require`.
        """
        self.require(cells, coefficients)
        with self._lock:
            new = ~self._filled[cells]
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

    def _chunks(self, epoch: FloatArray) -> list[tuple[slice, IntArray, FloatArray]]:
        """Slices of the epochs with cell numbers and places in the cell [-1, 1], cells filled."""
        cell, x = self._locate(epoch)
        return [
            (slice(first, first + _CHUNK), cell[first : first + _CHUNK], x[first : first + _CHUNK])
            for first in range(0, epoch.size, _CHUNK)
        ]

    def _locate(self, epoch: FloatArray) -> tuple[IntArray, FloatArray]:
        if epoch.ndim != 1:
            raise EphemerisError(f"epochs must have shape (N,), got {epoch.shape}; use np.ravel")
        place = (epoch - self.start) / self.step
        inside = (place >= 0.0) & (place <= self.n_cells)  # False for NaN
        if not inside.all():
            raise EphemerisError(
                f"{self.name} is known from MJD {self.start:.0f} to {self.end:.0f}, got MJD "
                f"{epoch[~inside][0]}; correct or leave out the {np.sum(~inside)} epochs outside"
            )
        cell = np.minimum(place.astype(np.int64), self.n_cells - 1)
        if not self._filled[cell].all():
            with self._lock:
                empty = np.unique(cell[~self._filled[cell]])  # another thread may have filled some
                if empty.size:
                    self._store(empty, self._interpolate(empty))
        return cell, 2.0 * (place - cell) - 1.0

    def _interpolate(self, cells: IntArray) -> FloatArray:
        """Coefficients ``(M, degree + 1, n_components)`` of the cells' interpolants."""
        epoch = self.start + self.step * (cells[:, None] + 0.5 * (self._nodes + 1.0))
        values = self._function(epoch.ravel())
        values = values.reshape(cells.size, self.degree + 1, self.n_components)
        # The Chebyshev points are orthogonal under summation, so no system need be solved; the
        # powers come second because only small numbers are left to be amplified by then.
        to_chebyshev: FloatArray = np.array(chebyshev.chebvander(self._nodes, self.degree).T)
        to_chebyshev *= 2.0 / self._nodes.size
        to_chebyshev[0] *= 0.5
        to_powers = np.zeros((self.degree + 1, self.degree + 1))
        for k, unit in enumerate(np.eye(self.degree + 1)):
            to_powers[: k + 1, k] = chebyshev.cheb2poly(unit[: k + 1])
        return _apply(to_powers, _apply(to_chebyshev, values))

    def _store(self, cells: IntArray, coefficients: FloatArray) -> None:
        self._coefficients[..., cells] = np.moveaxis(coefficients, 0, -1)
        self._filled[cells] = True  # last: an evaluation in another thread trusts it


def _apply(matrix: FloatArray, values: FloatArray) -> FloatArray:
    """``matrix @ values`` over the middle axis, term by term.

    A library product sums in an order that depends on the number of cells; this one gives the same
    bits whether cells are filled one by one or all at once.
    """
    result = np.zeros_like(values)
    for k in range(matrix.shape[1]):
        result += matrix[:, k, None] * values[:, k, None, :]
    return result


def earth_rotation_angle(mjd_ut1: ArrayLike) -> FloatArray:
    """Earth rotation angle [rad], not reduced below one turn per day.

    Parameters
    ----------
    mjd_ut1 : array_like
        Epochs, MJD UT1.

    Returns
    -------
    ndarray
        Angle, same shape, in [0, 4 pi).

    Notes
    -----
    IERS Conventions (2010), eq. 5.15. Whole days are dropped from the fast term before it is
    multiplied, as the equation's note asks.
    """
    mjd_ut1 = np.asarray(mjd_ut1, dtype=np.float64)
    days = mjd_ut1 - MJD_J2000
    excess = EARTH_ROTATION_RATE / (2.0 * np.pi) - 1.0
    turns = np.mod(days, 1.0) + np.mod(0.779_057_273_264_0 + excess * days, 1.0)
    return 2.0 * np.pi * turns


def site_state(
    itrf: FloatArray, rotation: FloatArray, pole: FloatArray, polar_motion: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Geocentric celestial state of Earth-fixed sites.

    Parameters
    ----------
    itrf : ndarray
        Earth-fixed positions, ``(N, 3)`` [m].
    rotation : ndarray
        Earth rotation angle, ``(N,)`` [rad].
    pole : ndarray
        Coordinates X, Y of the celestial intermediate pole and the CIO locator s, ``(N, 3)``
        [rad].
    polar_motion : ndarray
        Coordinates x_p, y_p of the pole, ``(N, 2)`` [rad].

    Returns
    -------
    position, velocity : ndarray
        GCRS axes (those of the ICRS), ``(N, 3)`` each [au], [au/d].

    Notes
    -----
    IERS Conventions (2010), eqs. 5.1, 5.3 and 5.10. The polar motion is taken to first order and
    the locator s' is left out: together below 2 mm. The velocity is that of rigid rotation about
    the pole.
    """
    x, y, z = itrf.T / AU_M
    xp, yp = polar_motion.T
    cip_x, cip_y, locator = pole.T
    # Terrestrial intermediate frame, eq. 5.3.
    x, y, z = x - xp * z, y + yp * z, z + xp * x - yp * y
    # One turn takes in both the rotation of the Earth and the locator of the origin.
    cos, sin = np.cos(rotation - locator), np.sin(rotation - locator)
    x, y = cos * x - sin * y, sin * x + cos * y
    position = _tilt(x, y, z, cip_x, cip_y)
    velocity = EARTH_ROTATION_RATE * _tilt(-y, x, np.zeros_like(x), cip_x, cip_y)
    return position, velocity


def _tilt(
    x: FloatArray, y: FloatArray, z: FloatArray, cip_x: FloatArray, cip_y: FloatArray
) -> FloatArray:
    """Turn intermediate axes into celestial ones, ``(N, 3)``; IERS Conventions eq. 5.10."""
    sine2 = cip_x * cip_x + cip_y * cip_y
    a = 1.0 / (1.0 + np.sqrt(1.0 - sine2))
    along = cip_x * x + cip_y * y
    lifted = z - a * along
    result = np.empty((x.size, 3))
    result[:, 0] = x + cip_x * lifted
    result[:, 1] = y + cip_y * lifted
    result[:, 2] = z - along - a * sine2 * z
    return result
