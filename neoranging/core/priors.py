"""Densities of orbits and sizes in phase space: the prior of a range and a range-rate.

The posterior of one night needs a density over (rho, rho_dot). It follows from the number of
objects per unit of phase space, ``f = dN / (d3x d3v dH)``, in three steps.

*From phase space to the plane.* At a given attributable the heliocentric state is a function of
range and range-rate, and

    d3x d3v = rho^4 cos^2(dec) d(ra) d(dec) d(ra_rate) d(dec_rate) d(rho) d(rho_dot),

so the density over (rho, rho_dot) is ``f rho^4``, and ``f rho^5`` over (ln rho, rho_dot). The
power of rho is what makes slow objects in the neighbourhood rare: their share of phase space is
small.

*From orbits to phase space.* Delaunay's variables l, g, h and L = sqrt(mu a), G = L sqrt(1 - e^2),
H = G cos(inc) are canonical, so they measure the same volume as states do:

    d3x d3v = (1/2) mu^(3/2) sqrt(a) e sin(inc) da de d(inc) dl dg dh.

Objects are spread evenly over the three angles, (2 pi)^3 in all, and ``f`` is a number of objects
divided by the volume of a *cell* of (q, e, inc). A density in elements divided by ``e sin(inc)`` at
a point would diverge on circles and in the ecliptic, where cells are small and not singular.

*What is observed.* An object is in the data because it was detected, and the chance of that depends
on its place on the sky, its motion and its apparent magnitude. These are the same for all orbits
behind one tracklet: the chance cancels, and the population that counts is the one before any
selection, the *debiased* one. Where a sample of objects is judged, each with a few arcs whatever
its share of time in reach, ``f`` is the number of these objects divided by that share.

The magnitude enters by the absolute magnitude of each node, H = V - 5 log10(rho r) + phase; without
a magnitude ``f`` is taken for all objects brighter than the faintest that could have been seen.

A table holds ln f on a regular grid in ``(ln q, e, sqrt(inc), H)``: inclinations crowd near the
ecliptic, and their root does not.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from neoranging.core.compiled import compiled
from neoranging.typing import FloatArray

FAINT_SLOPE: Final = 0.6 * np.log(10.0)
"""Growth of the logarithm of the number of objects per magnitude beyond the faint end of a table:
that of fireballs and of the smallest near-Earth objects, steeper than the 0.35 dex of H below 25
(Harris & Chodas 2021, Icarus 365, 114452; Nesvorny et al. 2024, Icarus 417, 116110)."""

_LEAST_Q: Final = 1e-6
"""Perihelion distance [au] below which orbits count as radial."""


class PriorTable(NamedTuple):
    """Number of objects per unit of phase space, on a grid of orbits and absolute magnitudes."""

    log_density: npt.NDArray[np.float32]
    """Natural logarithm of the number per au^3 (au/d)^3 and magnitude, shape (n_q, n_e, n_i, n_H);
    finite everywhere."""

    log_cumulative: npt.NDArray[np.float32]
    """The same for all objects brighter than H, per au^3 (au/d)^3."""

    start: FloatArray
    """First nodes of the grid in ln q [au], e, the square root of the inclination [rad], and H."""

    step: FloatArray
    """Distances of its nodes."""


def simple_prior(kind: str) -> PriorTable:
    """Prior without a population, the simplest table: it has one node.

    Parameters
    ----------
    kind : {"uniform", "log-uniform", "phase space"}
        Constant in range and range-rate, divided by the range, or constant in phase space.
    """
    node = np.zeros((1, 1, 1, 1), dtype=np.float32)
    powers = {"uniform": (0.0, 0.0), "log-uniform": (-1.0, 0.0), "phase space": (0.0, 1.0)}
    return PriorTable(node, node, np.array([*powers[kind], 0.0, 0.0]), np.ones(4))


def cumulative(log_density: FloatArray, step: float) -> FloatArray:
    """Logarithm of the number of objects brighter than each node of the last axis.

    Between nodes the density is the exponential that `log_density` interpolates; brighter than the
    first it falls as it grows beyond the last.

    Parameters
    ----------
    log_density : ndarray, shape (..., n_H)
    step : float
        Distance of the nodes [mag].
    """
    low, rise = log_density[..., :-1], np.diff(log_density, axis=-1)
    small = np.abs(rise) < 1e-6
    growth = np.where(small, 1.0 + 0.5 * rise, np.expm1(rise) / np.where(small, 1.0, rise))
    first = log_density[..., :1] - np.log(FAINT_SLOPE)
    parts = np.concatenate([first, low + np.log(growth * step)], axis=-1)
    return np.logaddexp.accumulate(parts, axis=-1)


@compiled
def log_density(table, start, step, q, ecc, inc, H):  # type: ignore[no-untyped-def]
    """Logarithm of a density of a `PriorTable` at one orbit and absolute magnitude.

    Linear between the nodes. Beyond the grid an orbit counts as the nearest on its edge, and so
    does an object that is brighter than all nodes. Beyond the faint end the density grows by
    `FAINT_SLOPE`, for there are always more of the small ones.

    Parameters
    ----------
    table : ndarray of float32, shape (n_q, n_e, n_i, n_H)
        ``log_density`` or ``log_cumulative``.
    start, step : ndarray, shape (4,)
        Grid.
    q, ecc, inc, H : float
        Perihelion distance [au], eccentricity, inclination to the ecliptic [rad], and absolute
        magnitude.

    Returns
    -------
    float
        NaN if an argument is.
    """
    x = (np.log(max(q, _LEAST_Q)) - start[0]) / step[0]
    y = (ecc - start[1]) / step[1]
    z = (np.sqrt(max(inc, 0.0)) - start[2]) / step[2]
    h = (H - start[3]) / step[3]
    if not np.isfinite(x + y + z + h):
        return np.nan
    n_q, n_e, n_i, n_H = table.shape
    faint = max(h - (n_H - 1), 0.0) * step[3] * FAINT_SLOPE
    x = min(max(x, 0.0), n_q - 1.0)
    y = min(max(y, 0.0), n_e - 1.0)
    z = min(max(z, 0.0), n_i - 1.0)
    h = min(max(h, 0.0), n_H - 1.0)
    # the last node belongs to the cell before it
    i, j = min(int(x), n_q - 2), min(int(y), n_e - 2)
    k, m = min(int(z), n_i - 2), min(int(h), n_H - 2)
    x, y, z, h = x - i, y - j, z - k, h - m
    total = 0.0
    for di in range(2):
        wx = x if di else 1.0 - x
        for dj in range(2):
            wy = wx * (y if dj else 1.0 - y)
            near = table[i + di, j + dj, k, m] * (1.0 - h) + table[i + di, j + dj, k, m + 1] * h
            k1 = k + 1
            far = table[i + di, j + dj, k1, m] * (1.0 - h) + table[i + di, j + dj, k1, m + 1] * h
            total += wy * (near * (1.0 - z) + far * z)
    return total + faint
