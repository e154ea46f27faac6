"""Orbits near an answer in numpy: what the compiled fit of one arc must reproduce."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from reference.prediction import sky_residuals

from neoranging.constants import C_AU_PER_DAY
from neoranging.core import columns
from neoranging.core.admissible import range_rate_interval
from neoranging.core.arcs import Arcs
from neoranging.core.attributable import Attributables
from neoranging.core.geometry import line_of_sight, norm, sky_basis
from neoranging.core.orbit_fit import NearestOrbits
from neoranging.typing import FloatArray

_MAX_STEPS: Final = 12
"""Steps at most; those that fit are done after one or two."""

_DERIVATIVE_STEP: Final = 1.0e-5
"""Step of the numerical derivatives, in units of what each parameter is measured by."""

_LEAST_DECREASE: Final = 1.0e-3
"""Relative decrease of chi-square below which a fit has come to rest."""


class _Frame(NamedTuple):
    """Axes, units and bounds of the parameters of M arcs."""

    direction: FloatArray
    """Direction of the attributable, shape (M, 3)."""
    east: FloatArray
    """Unit vector of increasing right ascension there, shape (M, 3)."""
    north: FloatArray
    """Unit vector of increasing declination there, shape (M, 3)."""
    rate: FloatArray
    """Rate of the direction [rad/d], shape (M, 3)."""
    unit: FloatArray
    """Scale of each parameter: offset, rate of the offset, ln range, range-rate, shape (M, 6)."""
    bounds: FloatArray
    """Least and greatest logarithm of the range, shape (M, 2)."""
    coefficients: FloatArray
    """Coefficients c0..c5 of the heliocentric energy, shape (M, 6)."""


def nearest_orbits(
    arcs: Arcs,
    attributables: Attributables,
    rho: FloatArray,
    rho_dot: FloatArray,
    *,
    bounds: FloatArray,
    enough: FloatArray,
) -> NearestOrbits:
    """Best orbits of M arcs with their ranges between bounds."""
    frame = _frame(arcs, attributables, bounds)
    x = np.stack([*np.zeros((4, len(rho))), np.log(rho), rho_dot], axis=1)
    with np.errstate(all="ignore"):
        x = _within(frame, x)
        off, chi2 = _misses(arcs, frame, x)
    damping = np.full(len(rho), 1.0e-3)
    resting = np.zeros(len(rho), dtype=bool)
    for _ in range(_MAX_STEPS):
        k = np.flatnonzero((chi2 > enough) & np.isfinite(chi2) & ~resting)
        if not len(k):
            break
        with np.errstate(all="ignore"):
            part, few = arcs.take(k), columns.take(frame, k)
            rows = arcs.rows_of(k)
            new = _within(few, x[k] + _step(part, few, x[k], off[rows], damping[k]))
            new_off, new_chi2 = _misses(part, few, new)
        better = new_chi2 < chi2[k]
        resting[k] = better & (chi2[k] - new_chi2 < _LEAST_DECREASE * chi2[k]) | (damping[k] > 1e6)
        damping[k] *= np.where(better, 0.1, 10.0)
        x[k[better]], chi2[k[better]] = new[better], new_chi2[better]
        fresh = better[part.owner]
        off[rows[fresh]] = new_off[fresh]
    return NearestOrbits(np.exp(x[:, 4]), chi2)


def _frame(arcs: Arcs, attributables: Attributables, bounds: FloatArray) -> _Frame:
    a = attributables
    east, north = sky_basis(a.ra, a.dec)
    rate = (a.ra_rate * np.cos(a.dec))[:, None] * east + a.dec_rate[:, None] * north
    span = np.maximum(arcs.span, 1.0e-6)
    sky = np.full(len(arcs), 1.0e-2)
    unit = np.stack(
        [sky, sky, sky / span, sky / span, np.ones_like(sky), np.full_like(sky, 1e-2)], axis=1
    )
    direction = line_of_sight(a.ra, a.dec)
    return _Frame(direction, east, north, rate, unit, np.log(bounds), a.energy_coefficients)


def _within(frame: _Frame, x: FloatArray) -> FloatArray:
    """Parameters moved to the nearest bound where they lie beyond one."""
    x = x.copy()
    x[:, 4] = np.clip(x[:, 4], *frame.bounds.T)
    low, high = range_rate_interval(frame.coefficients, np.exp(x[:, 4]))
    bounded = np.isfinite(low)
    x[:, 5] = np.where(bounded, np.clip(x[:, 5], low, high), x[:, 5])
    return x


def _misses(arcs: Arcs, frame: _Frame, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Residuals in units of their errors, shape (n, 2), and their sums of squares, (M,)."""
    middle = arcs.triplet[:, 1]
    direction = frame.direction + x[:, :1] * frame.east + x[:, 1:2] * frame.north
    direction /= norm(direction)[:, None]
    rate = frame.rate + x[:, 2:3] * frame.east + x[:, 3:4] * frame.north
    rho, rho_dot = np.exp(x[:, 4:5]), x[:, 5:6]
    r = arcs.position[middle] + rho * direction
    v = arcs.velocity[middle] + rho_dot * direction + rho * rate
    v /= 1.0 - rho_dot / C_AU_PER_DAY
    epoch = arcs.t[middle] - rho[:, 0] / C_AU_PER_DAY
    off = sky_residuals(arcs, r, v, epoch) / np.stack([arcs.sigma_ra, arcs.sigma_dec], axis=1)
    chi2 = arcs.sum(np.sum(off * off, axis=1))
    return off, np.where(np.isfinite(chi2), chi2, np.inf)


def _step(
    arcs: Arcs, frame: _Frame, x: FloatArray, off: FloatArray, damping: FloatArray
) -> FloatArray:
    """Damped Gauss-Newton step of each arc; a parameter pushed against its bound is held there."""
    slopes = []
    for k in range(6):
        shifted = x.copy()
        shifted[:, k] += _DERIVATIVE_STEP * frame.unit[:, k]
        slopes.append((off - _misses(arcs, frame, shifted)[0]) / _DERIVATIVE_STEP)
    slope = np.stack(slopes, axis=2)
    normal = arcs.sum(np.einsum("ncj,nck->njk", slope, slope).reshape(len(off), 36))
    normal = normal.reshape(-1, 6, 6)
    pull = arcs.sum(np.einsum("ncj,nc->nj", slope, off))
    low, high = range_rate_interval(frame.coefficients, np.exp(x[:, 4]))
    at = np.stack([x[:, 4] <= frame.bounds[:, 0], x[:, 5] <= low], axis=1)
    up = np.stack([x[:, 4] >= frame.bounds[:, 1], x[:, 5] >= high], axis=1)
    held = np.zeros((len(x), 6), dtype=bool)
    held[:, 4:] = (at & (pull[:, 4:] < 0)) | (up & (pull[:, 4:] > 0))
    free = ~held
    normal = np.where(free[:, :, None] & free[:, None, :], normal, 0.0)
    diagonal = np.einsum("mjj->mj", normal)
    diagonal += damping[:, None] * diagonal + 1e-12 * diagonal.max(axis=1, keepdims=True)
    diagonal += np.where(held, 1.0, 0.0) + 1e-300
    return (
        np.where(free, np.linalg.solve(normal, np.where(free, pull, 0.0)[..., None])[..., 0], 0.0)
        * frame.unit
    )
