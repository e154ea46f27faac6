"""From heliocentric states to what an observer sees, and back, with light time.

The emission-epoch convention throughout (the light path is the range): an object received at time t
from an observer at R(t) stands at r(t - rho/c) = R(t) + rho L. Differentiating by the time of
reception, its velocity is (V + rho_dot L + rho L_dot) / (1 - rho_dot/c).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from neoranging.constants import C_AU_PER_DAY, GM_SUN
from neoranging.core.arcs import Arcs
from neoranging.core.compiled import compiled, formula, plain
from neoranging.core.geometry import dot, line_of_sight, line_of_sight_rate
from neoranging.core.kepler import lagrange_of
from neoranging.core.triples import Triple, combined3, dot3, length3, minus3, plus3, row
from neoranging.typing import FloatArray, IntArray


def object_state(
    ra: FloatArray,
    dec: FloatArray,
    ra_rate: FloatArray,
    dec_rate: FloatArray,
    position: FloatArray,
    velocity: FloatArray,
    rho: FloatArray,
    rho_dot: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Heliocentric state that an attributable and a range imply, at the epoch of emission.

    Parameters
    ----------
    ra, dec, ra_rate, dec_rate : ndarray, shape (...)
        Attributable [rad, rad/d]; coordinate rates.
    position, velocity : ndarray, shape (..., 3)
        State of the observer [au, au/d].
    rho, rho_dot : ndarray, shape (...)
        Range [au] and range-rate [au/d] by time of reception.

    Returns
    -------
    r, v : ndarray, shape (..., 3)
        State at the epoch of reception minus rho/c.
    """
    direction = line_of_sight(ra, dec)
    rate = line_of_sight_rate(ra, dec, ra_rate, dec_rate)
    r = position + rho[..., None] * direction
    apparent = velocity + rho_dot[..., None] * direction + rho[..., None] * rate
    return r, apparent / (1.0 - rho_dot / C_AU_PER_DAY)[..., None]


class Sighting(NamedTuple):
    """Object as an observer sees it; leading shape (...)."""

    direction: FloatArray
    """Unit vector towards the object, shape (..., 3)."""
    rho: FloatArray
    """Length of the light path [au]."""
    rho_dot: FloatArray
    """Derivative of the light path by time of reception [au/d]."""
    v: FloatArray
    """Heliocentric velocity of the object at emission, shape (..., 3) [au/d]."""


def sight(
    r: FloatArray,
    v: FloatArray,
    epoch: FloatArray,
    t: FloatArray,
    position: FloatArray,
    velocity: FloatArray,
    mu: float = GM_SUN,
) -> Sighting:
    """Observe states given at ``epoch`` from an observer at the epochs of reception ``t``.

    Parameters
    ----------
    r, v : ndarray, shape (N, 3)
        Heliocentric states [au, au/d].
    epoch : ndarray, shape (N,)
        Epochs of the states [MJD TDB].
    t : ndarray, shape (N,)
        Epochs of reception [MJD TDB].
    position, velocity : ndarray, shape (N, 3)
        State of the observer at ``t`` [au, au/d].
    """
    seen = _sights(plain(r), plain(v), plain(t - epoch), plain(position), plain(velocity), mu)
    return Sighting(seen[:, :3], seen[:, 3], seen[:, 4], seen[:, 5:])


@compiled
def _sights(
    r: FloatArray,
    v: FloatArray,
    elapsed: FloatArray,
    position: FloatArray,
    velocity: FloatArray,
    mu: float,
) -> FloatArray:
    """Columns of a `Sighting` of all rows, shape (N, 8)."""
    seen = np.empty((len(r), 8))
    for k in range(len(r)):
        path, v_t = light_path(row(r, k), row(v, k), elapsed[k], row(position, k), mu)
        rho = length3(path)
        sight = path[0] / rho, path[1] / rho, path[2] / rho
        rate = range_rate_along(dot3(sight, v_t), dot3(sight, row(velocity, k)))
        seen[k, 0], seen[k, 1], seen[k, 2] = sight
        seen[k, 3], seen[k, 4] = rho, rate
        seen[k, 5], seen[k, 6], seen[k, 7] = v_t
    return seen


@compiled
def light_path(
    r: Triple, v: Triple, elapsed: float, place: Triple, mu: float
) -> tuple[Triple, Triple]:
    """Line from an observer to where an object was when its light left, and its velocity there.

    Parameters
    ----------
    r, v : tuple of float
        Heliocentric state of the object [au, au/d].
    elapsed : float
        Time of reception minus that of the state [d].
    place : tuple of float
        Heliocentric position of the observer [au].
    mu : float
        Gravitational parameter of the Sun [au^3/d^2].
    """
    r0 = length3(r)
    # the light time of the unpropagated state errs by v/c of the arc: good enough to start from
    delay = length3(minus3(r, place)) / C_AU_PER_DAY
    beta = 2.0 * mu / r0 - dot3(v, v)
    f, g, f_rate, g_rate = lagrange_of(r0, dot3(r, v), beta, elapsed - delay, mu)
    there, velocity = combined3(f, r, g, v), combined3(f_rate, r, g_rate, v)
    pull, start = -mu / length3(there) ** 3, there
    for _ in range(3):
        # what remains is minutes at most, over which a parabola is exact to 1e-13 au
        exact = length3(minus3(there, place)) / C_AU_PER_DAY
        shift, delay = delay - exact, exact
        there = plus3(there, shift, plus3(velocity, 0.5 * shift * pull, start))
        velocity = plus3(velocity, shift * pull, start)
    return minus3(there, place), velocity


def range_rate(direction: FloatArray, v: FloatArray, velocity: FloatArray) -> FloatArray:
    """Derivative of the light path by time of reception [au/d].

    Parameters
    ----------
    direction : ndarray, shape (..., 3)
        Unit vectors from the observer to the object.
    v, velocity : ndarray, shape (..., 3)
        Velocities of the object at emission and of the observer at reception [au/d].
    """
    # d(rho)/dt = L . (v (1 - rho_dot/c) - V), solved for rho_dot
    return range_rate_along(dot(direction, v), dot(direction, velocity))


@formula
def range_rate_along(along: Any, of_observer: Any) -> Any:
    """`range_rate` from the velocities of object and observer along the line of sight."""
    return (along - of_observer) / (1.0 + along / C_AU_PER_DAY)


def sky_residuals(arcs: Arcs, r: FloatArray, v: FloatArray, epoch: FloatArray) -> FloatArray:
    """Observed minus predicted sky offsets (east, north) [rad] of one state per arc, shape (n, 2).

    Parameters
    ----------
    arcs : Arcs
        Observations of M arcs.
    r, v : ndarray, shape (M, 3)
        Heliocentric states [au, au/d].
    epoch : ndarray, shape (M,)
        Their epochs [MJD TDB].
    """
    columns = arcs.t, arcs.direction, arcs.position, r, v, epoch
    return _residuals_of_arcs(arcs.offsets, *map(plain, columns))


@compiled
def _residuals_of_arcs(
    offsets: IntArray,
    t: FloatArray,
    direction: FloatArray,
    position: FloatArray,
    r: FloatArray,
    v: FloatArray,
    epoch: FloatArray,
) -> FloatArray:
    """`sky_residuals` of all arcs."""
    residuals = np.empty((len(t), 2))
    for k in range(len(r)):
        r_k, v_k = row(r, k), row(v, k)
        for i in range(offsets[k], offsets[k + 1]):
            path, _ = light_path(r_k, v_k, t[i] - epoch[k], row(position, i), GM_SUN)
            residuals[i, 0], residuals[i, 1] = sky_offset(row(direction, i), path)
    return residuals


@compiled
def sky_offset(observed: Triple, path: Triple) -> tuple[float, float]:
    """Observed minus predicted sky offset (east, north) [rad] of one observation.

    From the observed unit vector and the line to the object, of any length.
    """
    offset = plus3(observed, -1.0 / length3(path), path)
    return _plane_offset(*observed, *offset)


@formula
def _plane_offset(x: Any, y: Any, z: Any, dx: Any, dy: Any, dz: Any) -> Any:
    """Components to the east and to the north of a small displacement of a unit vector."""
    # the axes of `sky_basis`, from the direction itself instead of its angles
    cos_dec = np.hypot(x, y)
    return (x * dy - y * dx) / cos_dec, dz * cos_dec - (x * dx + y * dy) / cos_dec * z


def sky_offsets(observed: FloatArray, predicted: FloatArray) -> FloatArray:
    """Observed minus predicted sky offsets (east, north) [rad], shape (..., n, 2).

    Parameters
    ----------
    observed : ndarray, shape (n, 3)
        Unit vectors.
    predicted : ndarray, shape (..., n, 3)
        Unit vectors.
    """
    offset = observed - predicted
    return np.stack(_plane_offset(*observed.T, *np.moveaxis(offset, -1, 0)), axis=-1)
