import numpy as np
import pytest
import simulated_arcs
import torch
from scipy.integrate import solve_ivp

from neoranging import ephemeris
from neoranging.constants import GM_EARTH, GM_PLANETS, GM_SUN, R_EARTH
from neoranging.core.geometry import norm, radec
from neoranging.core.kepler import propagate
from neoranging.ephemeris.states import planet_position
from neoranging.lab.training.network import TrainableNetwork
from neoranging.lab.training.physics import (
    MAX_RESIDUAL,
    VELOCITY,
    SightGeometry,
    jerks,
    range_acceleration,
    residuals,
)
from neoranging.lab.training.tangents import (
    features_with_tangent,
    heads_with_tangent,
    with_tangent,
)
from neoranging.nn.network import NetworkConfig
from neoranging.observations import observatories

H = 0.004


def derivatives(function, h=H):
    """Value, first and second derivative at 0 by central differences of sixth order."""
    values = [function(k * h) for k in range(-3, 4)]
    first = np.array([-1, 9, -45, 0, 45, -9, 1]) / (60 * h)
    second = np.array([2, -27, 270, -490, 270, -27, 2]) / (180 * h * h)
    return values[3], *(
        sum(w * v for w, v in zip(ws, values, strict=True)) for ws in (first, second)
    )


def seen(simulated, observer):
    """Path from an observer to objects that move about the Sun alone, without light time."""

    def path(s):
        r, _ = propagate(simulated.r, simulated.v, np.full(len(simulated), s))
        return r - observer(s)

    return path


def two_body_earth(simulated):
    earth = ephemeris.earth_state(simulated.epoch)
    return lambda s: propagate(*earth, np.full(len(simulated), s))[0]


def real_station(simulated):
    itrf = observatories.itrf_positions(np.full(len(simulated), "G96"))
    return lambda s: ephemeris.observer_state(itrf, simulated.epoch + s)[0]


OBSERVERS = {"geocenter": two_body_earth, "topocenter": real_station}


@pytest.fixture(scope="module")
def simulated(simulate):
    return simulate(200, 0.05, seed=31, station="G96")


def truth_of(simulated, origin):
    """Geometry and range with two derivatives, all by differences of two-body motion."""
    observer = OBSERVERS[origin](simulated)
    path = seen(simulated, observer)
    direction = lambda s: path(s) / norm(path(s))[:, None]  # noqa: E731
    u, u_rate, _ = derivatives(direction)
    place, _, place_acc = derivatives(observer)
    earth = ephemeris.earth_state(simulated.epoch)[0]
    geometry = SightGeometry(
        *(torch.from_numpy(x) for x in (u, (u_rate**2).sum(-1), place, place_acc, place - earth))
    )
    rho = (torch.from_numpy(x) for x in derivatives(lambda s: norm(path(s))))
    return geometry, *rho


def without_earth(monkeypatch):
    monkeypatch.setattr("neoranging.lab.training.physics.GM_EARTH", 0.0)


@pytest.mark.parametrize("origin", sorted(OBSERVERS))
def test_true_motion_leaves_no_residual(origin, simulated, monkeypatch):
    without_earth(monkeypatch)
    geometry, rho, rho_dot, rho_acc = truth_of(simulated, origin)
    left = residuals(geometry, (rho, rho_dot), (rho_dot, rho_acc))
    assert left.kinematic.abs().max() < 1e-12
    assert left.motion.abs().max() < 1e-6
    # and what is left is nothing beside the terms themselves
    assert (rho_acc / GM_SUN).abs().median() > 0.1


@pytest.mark.parametrize("origin", sorted(OBSERVERS))
def test_wrong_range_leaves_a_residual(origin, simulated, monkeypatch):
    without_earth(monkeypatch)
    geometry, rho, rho_dot, rho_acc = truth_of(simulated, origin)
    left = residuals(geometry, (1.3 * rho, rho_dot), (1.1 * rho_dot, rho_acc))
    assert left.motion.abs().median() > 0.01
    torch.testing.assert_close(left.kinematic, 0.1 * rho_dot / VELOCITY)


def test_geocentric_acceleration_is_the_equation_of_the_paper(night_inputs):
    """Term by term in numpy, the Earth's pull included."""
    geometry = SightGeometry.of(night_inputs, "geocenter")
    motion = night_inputs.motion()
    ra_rate, dec_rate = motion.ra_rate.numpy(), motion.dec_rate.numpy()
    ra, dec = night_inputs.ra[:, 1].numpy(), night_inputs.dec[:, 1].numpy()
    sight = np.stack([np.cos(dec) * np.cos(ra), np.cos(dec) * np.sin(ra), np.sin(dec)], axis=1)
    earth = night_inputs.earth.numpy()
    for rho in (0.001, 0.1, 2.0):
        r3 = np.linalg.norm(earth + rho * sight, axis=1) ** 3
        expected = (
            rho * (ra_rate**2 * np.cos(dec) ** 2 + dec_rate**2)
            + GM_SUN * (earth * sight).sum(1) * (np.linalg.norm(earth, axis=1) ** -3 - 1 / r3)
            - GM_SUN / r3 * rho
            - GM_EARTH / rho**2
        )
        found = range_acceleration(geometry, torch.full((500,), rho, dtype=torch.float64))
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-15)


def test_hand_computed_residuals():
    """An object 1 au beyond an Earth at (1, 0, 0), at rest on the sky."""
    x, zero = torch.tensor([[1.0, 0.0, 0.0]], dtype=torch.float64), torch.zeros(1, 3).double()
    geometry = SightGeometry(x, torch.zeros(1).double(), x, -GM_SUN * x, zero)
    one = torch.ones(1, dtype=torch.float64)
    # at 2 au the Sun pulls a quarter as hard: rho'' = -mu/4 + mu - mu_E
    expected = 0.75 * GM_SUN - GM_EARTH
    assert range_acceleration(geometry, one).item() == pytest.approx(expected, rel=1e-14)
    left = residuals(geometry, (one, 0.0 * one), (0.5 * VELOCITY * one, GM_SUN * one))
    assert left.kinematic.item() == pytest.approx(0.5)
    assert left.motion.item() == pytest.approx(0.25 + GM_EARTH / GM_SUN)
    left = residuals(geometry, (one, one), (0.0 * one, one))
    assert left.kinematic.item() == pytest.approx(-1.0 / VELOCITY)
    assert left.motion.item() == MAX_RESIDUAL


def test_residuals_of_the_motion_count_in_the_acceleration_of_their_arc():
    """``a_c = mu + eta^2`` at 1 au: a fast object is allowed more (paper, eq:f_eom)."""
    x, zero = torch.tensor([[1.0, 0.0, 0.0]], dtype=torch.float64), torch.zeros(1, 3).double()
    one, square = torch.ones(1).double(), torch.tensor([0.02**2], dtype=torch.float64)
    geometry = SightGeometry(x, square, x, -GM_SUN * x, zero)
    off = 1e-4
    exact = range_acceleration(geometry, one)
    left = residuals(geometry, (one, 0.0 * one), (0.0 * one, exact + off))
    assert left.motion.item() == pytest.approx(off / (GM_SUN + 0.02**2), rel=1e-9)


@pytest.mark.parametrize("rho", [0.0, -0.5, 1e-12, R_EARTH])
def test_estimates_inside_the_earth_stay_finite(rho, night_inputs):
    for origin in ("geocenter", "topocenter"):
        geometry = SightGeometry.of(night_inputs, origin)
        estimate = torch.full((500,), rho, dtype=torch.float64, requires_grad=True)
        acceleration = range_acceleration(geometry, estimate)
        acceleration.sum().backward()
        assert acceleration.isfinite().all()
        assert estimate.grad.isfinite().all()
        assert acceleration.abs().max() < 10.0


def test_measured_acceleration_of_a_station_satisfies_the_equation(simulate, to_inputs):
    """Geometry from the parabola through noise-free observations of seven minutes."""
    arcs = simulate(300, 0.005, seed=32)
    inputs = to_inputs(arcs.arcs)
    rho, rho_dot = torch.from_numpy(arcs.rho), torch.from_numpy(arcs.rho_dot)
    geometry = SightGeometry.of(inputs, "topocenter")
    h = 0.002
    # the derivative of the true range-rate, from the same station later and earlier
    late, early = (_rate_at(arcs, s * h) for s in (1, -1))
    rho_acc = torch.from_numpy((late - early) / (2 * h))
    left = residuals(geometry, (rho, rho_dot), (rho_dot, rho_acc))
    assert left.motion.abs().quantile(0.9) < 0.05
    frozen = geometry._replace(observer_acc=-GM_SUN * inputs.earth)
    # without the turning Earth the equation fails by the size of its own terms
    assert residuals(frozen, (rho, rho_dot), (rho_dot, rho_acc)).motion.abs().median() > 0.5


def _rate_at(simulated, h):
    observe = simulated_arcs.observe
    a = simulated.arcs
    times = [a.t[i:j] + h for i, j in zip(a.offsets, a.offsets[1:], strict=False)]
    return observe(simulated.r, simulated.v, simulated.epoch, times, simulated.station).rho_dot


def test_two_epochs_are_held_to_the_orbit_of_the_earth(simulate, to_inputs):
    inputs = to_inputs(simulate(20, 0.04, seed=2, n_observations=2).arcs)
    geometry = SightGeometry.of(inputs, "topocenter")
    distance = torch.linalg.vector_norm(inputs.earth, dim=-1, keepdim=True)
    torch.testing.assert_close(geometry.observer_acc, -GM_SUN * inputs.earth / distance**3)
    sky_jerk, observer_jerk, _ = jerks(inputs, *torch.rand(2, 20).double())
    assert not sky_jerk.any()
    assert not observer_jerk.any()


def test_jerk_of_a_station_is_its_third_derivative(simulated, to_inputs):
    observer = real_station(simulated)
    h = 0.01
    third = (
        sum(
            w * observer(k * h) for k, w in zip((-2, -1, 1, 2), (-0.5, 1.0, -1.0, 0.5), strict=True)
        )
        / h**3
    )
    inputs = to_inputs(simulated.arcs)
    _, _, velocity = (
        None,
        *ephemeris.observer_state(
            observatories.itrf_positions(np.full(len(simulated), "G96")), simulated.epoch
        ),
    )
    earth, earth_rate = ephemeris.earth_state(simulated.epoch)
    inputs = inputs._replace(
        earth=torch.from_numpy(earth),
        earth_rate=torch.from_numpy(earth_rate),
        observer_rate=torch.from_numpy(velocity),
    )
    _, found, _ = jerks(inputs, *torch.rand(2, len(simulated)).double())
    np.testing.assert_allclose(found, third, atol=2e-3 * np.abs(third).max())


@pytest.mark.parametrize("output", ["log", "admissible"])
def test_log_range_is_held_to_the_same_physical_residuals(output, night_inputs, night_truth):
    """d rho/dt of a network that says log rho is rho d(log rho)/dt, in au/d."""
    torch.manual_seed(3)
    network = TrainableNetwork(NetworkConfig(width=32, blocks=1, output=output)).double()
    network.fit(night_inputs, *night_truth)
    view = network.view()
    state, rate, _ = with_tangent(view, night_inputs)
    geometry = SightGeometry.of(night_inputs, view.origin)
    left = residuals(geometry, state, rate)
    features = features_with_tangent(view.features, night_inputs)
    _, said_rate = heads_with_tangent(view, *features)
    if output == "log":
        log_rate = said_rate[:, 0] * view.output.scaling.scale[0]
        expected = (state.rho * log_rate - state.rho_dot) / VELOCITY
        torch.testing.assert_close(left.kinematic, expected.clamp(-MAX_RESIDUAL, MAX_RESIDUAL))
    left.kinematic.square().sum().backward()
    assert all(p.grad.isfinite().all() for p in network.parameters() if p.grad is not None)


def test_directions_agree_with_the_numeric_core(night_inputs):
    geometry = SightGeometry.of(night_inputs, "topocenter")
    ra, dec = radec(geometry.direction.numpy())
    np.testing.assert_allclose(ra, night_inputs.sky[:, 0], rtol=1e-12)
    np.testing.assert_allclose(dec, night_inputs.sky[:, 1], rtol=1e-12, atol=1e-14)


def test_the_parallax_changes_as_the_inverse_range_does(simulate, to_inputs):
    h, simulated = 1e-3, simulate(60, 0.06, seed=14)
    inputs = to_inputs(simulated.arcs)
    truth = torch.from_numpy(simulated.rho), torch.from_numpy(simulated.rho_dot)
    _, _, found = jerks(inputs, *truth)
    determined = inputs.parallax != 0.0
    assert determined.double().mean() > 0.3
    ahead, behind = (1.0 / (truth[0] + s * h * truth[1]) for s in (1, -1))
    expected = torch.where(determined, (ahead - behind) / (2.0 * h), 0.0)
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-9)


# Derivatives of paths under planets: steps of half an hour leave 1e-12 au/d^2 of noise.
PLANET_H = 0.02
EPOCH = 60_200.0


def pull(r, mu):
    return -mu * r / norm(r)[:, None] ** 3


def jupiter_on(r, s):
    """Heliocentric acceleration by Jupiter, ``s`` days after the epoch."""
    jupiter = np.broadcast_to(planet_position("jupiter", EPOCH + s), r.shape)
    return pull(r - jupiter, GM_PLANETS["jupiter"]) + pull(jupiter, GM_PLANETS["jupiter"])


def flown(r, v, acceleration):
    """Path of M objects whose acceleration is a function of place and time, integrated."""
    shape = r.shape

    def slope(s, state):
        r, v = state.reshape(2, *shape)
        return np.stack([v, acceleration(r, s)]).ravel()

    steps = np.arange(1, 4) * PLANET_H
    places = {0: r}
    for sign in (-1, 1):
        done = solve_ivp(
            slope,
            (0.0, sign * steps[-1]),
            np.stack([r, v]).ravel(),
            "DOP853",
            sign * steps,
            rtol=1e-13,
            atol=1e-18,
            max_step=PLANET_H,
        )
        places |= {sign * (k + 1): done.y[:, k].reshape(2, *shape)[0] for k in range(3)}
    return lambda s: places[round(s / PLANET_H)]


def under_jupiter(origin, r, v):
    """Geometry, range and its two derivatives of objects under Sun, Earth and Jupiter.

    From the geocenter the Earth is a particle under Sun and Jupiter, as the equation has it; from
    the ground a real station looks on, and the Earth pulls the Sun as well.
    """
    m = len(r)
    earth, earth_rate = (np.repeat(x, m, 0) for x in ephemeris.earth_state(np.array([EPOCH])))
    own = lambda r, s: pull(r, GM_SUN) + jupiter_on(r, s)  # noqa: E731
    drift = flown(earth, earth_rate, own)
    if origin == "geocenter":
        acceleration = lambda r, s: own(r, s) + pull(r - earth - s * earth_rate, GM_EARTH)  # noqa: E731
        observer = drift
    else:
        itrf = observatories.itrf_positions(np.full(m, "G96"))

        def acceleration(r, s):
            centre = ephemeris.earth_state(np.full(m, EPOCH + s))[0]
            return own(r, s) + pull(r - centre, GM_EARTH) + pull(centre, GM_EARTH)

        observer = lambda s: ephemeris.observer_state(itrf, np.full(m, EPOCH + s))[0]  # noqa: E731
    orbit = flown(r, v, acceleration)
    path = lambda s: orbit(s) - observer(s)  # noqa: E731
    u, u_rate, _ = derivatives(lambda s: path(s) / norm(path(s))[:, None], PLANET_H)
    place, _, place_acc = derivatives(observer, PLANET_H)
    if origin == "geocenter":  # what `SightGeometry.of` takes for it
        place_acc = own(place, 0.0)
    columns = (u, (u_rate**2).sum(-1), place, place_acc, place - earth)
    jupiter = torch.from_numpy(np.repeat(planet_position("jupiter", np.array([EPOCH])), m, 0))
    geometry = SightGeometry(*map(torch.from_numpy, columns), {"jupiter": jupiter})
    rho = derivatives(lambda s: norm(path(s)), PLANET_H)
    return geometry, *map(torch.from_numpy, rho)


@pytest.fixture(scope="module")
def near_jupiter():
    """States of 30 objects 0.05 to 0.5 au from Jupiter, slow beside it."""
    rng = np.random.default_rng(8)
    jupiter = planet_position("jupiter", EPOCH + np.array([-1.0, 0.0, 1.0]))
    away = rng.standard_normal((30, 3))
    away *= np.geomspace(0.05, 0.5, 30)[:, None] / norm(away)[:, None]
    velocity = 0.5 * (jupiter[2] - jupiter[0]) + 5e-4 * rng.standard_normal((30, 3))
    return jupiter[1] + away, velocity


@pytest.mark.parametrize("origin", sorted(OBSERVERS))
@pytest.mark.parametrize("where", ["near Jupiter", "near the Earth"])
def test_a_planet_takes_its_pull_out_of_the_residual(origin, where, near_jupiter, simulated):
    r, v = near_jupiter if where == "near Jupiter" else (simulated.r[:30], simulated.v[:30])
    geometry, rho, rho_dot, rho_acc = under_jupiter(origin, r, v)
    motion = ((rho, rho_dot), (rho_dot, rho_acc))
    sun = geometry._replace(planets={})
    if origin == "geocenter":  # without planets the Earth keeps to its two-body orbit
        sun = sun._replace(observer_acc=torch.from_numpy(pull(geometry.observer.numpy(), GM_SUN)))
    with_jupiter, without = (residuals(one, *motion).motion for one in (geometry, sun))
    # from the ground the Earth's pull on the Sun is measured with the observer, and not modelled
    assert with_jupiter.abs().max() < (1e-7 if origin == "geocenter" else GM_EARTH / GM_SUN * 1.1)
    pulls = jupiter_on(r, 0.0)
    if origin == "geocenter":
        pulls = pulls - jupiter_on(geometry.observer.numpy(), 0.0)
    scale = GM_SUN + geometry.proper_motion_square.numpy()
    expected = (geometry.direction.numpy() * pulls).sum(1) / scale
    np.testing.assert_allclose(without - with_jupiter, expected, rtol=1e-7, atol=1e-13)
    if where == "near Jupiter":
        assert np.median(np.abs(expected)) > 2e-3
        assert (without.abs() > 20.0 * with_jupiter.abs()).double().mean() > 0.9


def test_the_earth_is_drawn_by_the_planets_as_well(night_inputs):
    """At zero range only the difference between object and Earth is left: nothing."""
    jupiter = torch.from_numpy(planet_position("jupiter", np.full(500, EPOCH)))
    zero = torch.zeros(500, dtype=torch.float64)
    for planets in ({}, {"jupiter": jupiter}):
        geometry = SightGeometry.of(night_inputs, "geocenter", planets)
        left = range_acceleration(geometry, zero)
        torch.testing.assert_close(left, zero, rtol=0.0, atol=1e-18)
    expected = jupiter_on(night_inputs.earth.numpy(), 0.0)
    alone = SightGeometry.of(night_inputs, "geocenter").observer_acc
    np.testing.assert_allclose(geometry.observer_acc - alone, expected, rtol=1e-6)
    # the tide of Jupiter on the orbit of the Earth, 2 mu / d^3 at most
    assert 1e-10 < norm(expected).max() < 2.0 * GM_PLANETS["jupiter"] / 3.9**3


def test_the_gradient_knows_the_planets(night_inputs):
    """Of a range of 5 au, by differences: Jupiter's field bends along the line of sight."""
    geometry = SightGeometry.of(night_inputs, "topocenter")
    rho = torch.full((500,), 5.0, dtype=torch.float64, requires_grad=True)
    beside = geometry.observer + 5.3 * geometry.direction
    with_planet = geometry._replace(planets={"jupiter": beside})

    def difference(rho):
        return range_acceleration(with_planet, rho) - range_acceleration(geometry, rho)

    (slope,) = torch.autograd.grad(difference(rho).sum(), rho)
    h = 1e-3
    with torch.no_grad():
        by_steps = (difference(rho + h) - difference(rho - h)) / (2.0 * h)
    torch.testing.assert_close(slope, by_steps, rtol=1e-3, atol=0.0)
    # a planet 0.3 au behind the object draws it away, the more so the nearer it is
    torch.testing.assert_close(
        slope, torch.full_like(slope, 2.0 * GM_PLANETS["jupiter"] / 0.3**3), rtol=1e-6, atol=0.0
    )
