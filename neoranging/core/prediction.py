"""From heliocentric states to what an observer sees, and back, with light time.

The emission-epoch convention throughout (the light path is the range): an object received at time t
from an observer at R(t) stands at r(t - rho/c) = R(t) + rho L. Differentiating by the time of
reception, its velocity is (V + rho_dot L + rho L_dot) / (1 - rho_dot/c).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from neoranging.constants import C_AU_PER_DAY, GM_SUN
from neoranging.core.arcs import Arcs
from neoranging.core.geometry import dot, line_of_sight, line_of_sight_rate, norm
from neoranging.core.kepler import propagate
from neoranging.typing import FloatArray


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


# an orbit that noise made leads anywhere; residuals that are not finite say so
@np.errstate(all="ignore")
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
    # the light time of the unpropagated state errs by v/c of the arc: good enough to start from
    elapsed = t - epoch
    delay = norm(r - position) / C_AU_PER_DAY
    r_t, v_t = propagate(r, v, elapsed - delay, mu)
    pull = -mu * r_t / norm(r_t)[:, None] ** 3
    for _ in range(3):
        # what remains is minutes at most, over which a parabola is exact to 1e-13 au
        exact = norm(r_t - position) / C_AU_PER_DAY
        shift = (delay - exact)[:, None]
        r_t = r_t + shift * (v_t + 0.5 * shift * pull)
        v_t = v_t + shift * pull
        delay = exact
    path = r_t - position
    rho = norm(path)
    direction = path / rho[:, None]
    return Sighting(direction, rho, range_rate(direction, v_t, velocity), v_t)


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
    along = dot(direction, v)
    return (along - dot(direction, velocity)) / (1.0 + along / C_AU_PER_DAY)


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
    owner = arcs.owner
    predicted = sight(r[owner], v[owner], epoch[owner], arcs.t, arcs.position, arcs.velocity)
    return sky_offsets(arcs.direction, predicted.direction)


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
    # the axes of `sky_basis`, from the direction itself instead of its angles
    x, y, z = observed.T
    cos_dec = np.hypot(x, y)
    east = (x * offset[..., 1] - y * offset[..., 0]) / cos_dec
    meridian = (x * offset[..., 0] + y * offset[..., 1]) / cos_dec
    return np.stack([east, offset[..., 2] * cos_dec - meridian * z], axis=-1)
