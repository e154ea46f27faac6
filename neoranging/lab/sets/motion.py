"""Motion of objects over one night: about the Sun, and near the Earth under Earth and Moon as well.

The Earth pulls an object at the distance d off its ellipse by ``GM t^2 / (2 d^2)`` in the time t,
which an observer on the Earth sees as ``GM t^2 / (2 d^3)`` at most. Where that exceeds
``NEGLIGIBLE_ARCSEC`` at any observation, the path of the night goes through the heliocentric state
at the reference epoch of the arc under Sun, Earth and Moon; elsewhere the ellipse serves. With a
limit of a milliarcsecond it is 0.22 au within eight hours of the epoch, and 0.016 au within ten
minutes.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from neoranging import ephemeris
from neoranging.constants import ARCSEC, GM_EARTH
from neoranging.core.geometry import norm
from neoranging.core.motion import move_near_earth
from neoranging.ephemeris.states import attractors
from neoranging.typing import FloatArray, IntArray

NEGLIGIBLE_ARCSEC: Final = 1e-3
"""Displacement by the Earth up to which an object is left on its ellipse [arcsec]."""


def near_earth_states(
    r: FloatArray, v: FloatArray, epoch: FloatArray, owner: IntArray, t: FloatArray
) -> tuple[IntArray, FloatArray, FloatArray]:
    """States at those of n times at which the Earth has moved M objects off their ellipses.

    Parameters
    ----------
    r, v : ndarray, shape (M, 3)
        Heliocentric states [au, au/d].
    epoch : ndarray, shape (M,)
        Their epochs [MJD TDB].
    owner : ndarray of int, shape (n,)
        Object that each time belongs to.
    t : ndarray, shape (n,)
        Times within a day or two of the epoch, in any order [MJD TDB].

    Returns
    -------
    rows : ndarray of int, shape (k,)
        All times of the objects that come near enough.
    positions, velocities : ndarray, shape (k, 3)
        Heliocentric states at these times; NaN where the path has led into the Earth.
    """
    earth, earth_velocity = ephemeris.earth_state(epoch)
    elapsed = t - epoch[owner]
    # as seen from the Earth, straight lines tell well enough how near an object comes
    distance = norm((r - earth)[owner] + elapsed[:, None] * (v - earth_velocity)[owner])
    nearest, longest = norm(r - earth), np.zeros(len(epoch))
    np.maximum.at(longest, owner, np.abs(elapsed))
    with np.errstate(invalid="ignore"):  # orbits that predict nothing are not near
        np.minimum.at(nearest, owner, distance)
        near = GM_EARTH * longest**2 > 2.0 * NEGLIGIBLE_ARCSEC * ARCSEC * nearest**3
    rows = np.flatnonzero(near[owner])
    if not len(rows):
        return rows, np.empty((0, 3)), np.empty((0, 3))
    rows = rows[np.lexsort((t[rows], owner[rows]))]
    objects, which = np.unique(owner[rows], return_inverse=True)
    paths = attractors(epoch[objects], longest[objects])
    states = move_near_earth(r[objects], v[objects], which, elapsed[rows], paths)
    return rows, *states
