"""From heliocentric states to what an observer sees, and back, with light time.

The emission-epoch convention throughout (the light path is the range): an object received at time t
from an observer at R(t) stands at r(t - rho/c) = R(t) + rho L. Differentiating by the time of
reception, its velocity is (V + rho_dot L + rho L_dot) / (1 - rho_dot/c).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from neoranging.constants import C_AU_PER_DAY, GM_SUN
from neoranging.core.arcs import Arcs
from neoranging.core.compiled import compiled, formula, plain
from neoranging.core.geometry import dot, line_of_sight, line_of_sight_rate
from neoranging.core.kepler import lagrange_of
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
    rows = np.concatenate([r, v, position, velocity, np.asarray(t - epoch)[:, None]], axis=1)
    seen = _sight_rows(rows, mu)
    return Sighting(seen[:, :3], seen[:, 3], seen[:, 4], seen[:, 5:])


@compiled
def _sight_rows(rows: FloatArray, mu: float) -> FloatArray:
    """Columns of a `Sighting` from state, observer and time between them: (N, 13) to (N, 8)."""
    seen = np.empty((len(rows), 8))
    for k in range(len(rows)):
        r, v, place = triple(rows[k], 0), triple(rows[k], 3), triple(rows[k], 6)
        path, v_t = light_path(r, v, rows[k, 12], place, mu)
        rho = _length(path)
        along, of_observer = 0.0, 0.0
        for axis in range(3):
            seen[k, axis] = path[axis] / rho
            seen[k, 5 + axis] = v_t[axis]
            along += seen[k, axis] * v_t[axis]
            of_observer += seen[k, axis] * rows[k, 9 + axis]
        seen[k, 3], seen[k, 4] = rho, _range_rate(along, of_observer)
    return seen


Triple = tuple[float, float, float]


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
    r0 = _length(r)
    eta = r[0] * v[0] + r[1] * v[1] + r[2] * v[2]
    beta = 2.0 * mu / r0 - (v[0] * v[0] + v[1] * v[1] + v[2] * v[2])
    # the light time of the unpropagated state errs by v/c of the arc: good enough to start from
    delay = _length((r[0] - place[0], r[1] - place[1], r[2] - place[2])) / C_AU_PER_DAY
    f, g, f_rate, g_rate = lagrange_of(r0, eta, beta, elapsed - delay, mu)
    x, y, z = f * r[0] + g * v[0], f * r[1] + g * v[1], f * r[2] + g * v[2]
    vx = f_rate * r[0] + g_rate * v[0]
    vy = f_rate * r[1] + g_rate * v[1]
    vz = f_rate * r[2] + g_rate * v[2]
    pull = -mu / _length((x, y, z)) ** 3
    ax, ay, az = pull * x, pull * y, pull * z
    for _ in range(3):
        # what remains is minutes at most, over which a parabola is exact to 1e-13 au
        exact = _length((x - place[0], y - place[1], z - place[2])) / C_AU_PER_DAY
        shift, delay = delay - exact, exact
        x += shift * (vx + 0.5 * shift * ax)
        y += shift * (vy + 0.5 * shift * ay)
        z += shift * (vz + 0.5 * shift * az)
        vx, vy, vz = vx + shift * ax, vy + shift * ay, vz + shift * az
    return (x - place[0], y - place[1], z - place[2]), (vx, vy, vz)


@compiled
def triple(row: FloatArray, first: int) -> Triple:
    """Three numbers of a row from the ``first`` on: a vector that needs no memory."""
    return row[first], row[first + 1], row[first + 2]


@compiled
def _length(a: Triple) -> float:
    return math.sqrt(a[0] * a[0] + a[1] * a[1] + a[2] * a[2])


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
    return _range_rate(dot(direction, v), dot(direction, velocity))


@formula
def _range_rate(along: Any, of_observer: Any) -> Any:
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
        r_k, v_k = triple(r[k], 0), triple(v[k], 0)
        for i in range(offsets[k], offsets[k + 1]):
            path, _ = light_path(r_k, v_k, t[i] - epoch[k], triple(position[i], 0), GM_SUN)
            residuals[i, 0], residuals[i, 1] = sky_offset(triple(direction[i], 0), path)
    return residuals


@compiled
def sky_offset(observed: Triple, path: Triple) -> tuple[float, float]:
    """Observed minus predicted sky offset (east, north) [rad] of one observation.

    From the observed unit vector and the line to the object, of any length.
    """
    rho = _length(path)
    return _plane_offset(
        *observed,
        observed[0] - path[0] / rho,
        observed[1] - path[1] / rho,
        observed[2] - path[2] / rho,
    )


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
