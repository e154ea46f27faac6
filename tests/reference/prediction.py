"""Sightings with light time in numpy: what the compiled functions of one orbit must reproduce."""

from __future__ import annotations

import numpy as np

from neoranging.constants import C_AU_PER_DAY, GM_SUN
from neoranging.core.geometry import norm
from neoranging.core.kepler import propagate
from neoranging.core.prediction import Sighting, range_rate, sky_offsets


@np.errstate(all="ignore")
def sight(r, v, epoch, t, position, velocity, mu=GM_SUN):
    """Observe states given at ``epoch`` from an observer at the epochs of reception ``t``."""
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


def sky_residuals(arcs, r, v, epoch):
    """Observed minus predicted sky offsets (east, north) of one state per arc, shape (n, 2)."""
    owner = arcs.owner
    predicted = sight(r[owner], v[owner], epoch[owner], arcs.t, arcs.position, arcs.velocity)
    return sky_offsets(arcs.direction, predicted.direction)
