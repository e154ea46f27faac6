"""Least distances from the Earth's orbit: against JPL, geometry and a search by brute force."""

import numpy as np
import pytest
from scipy.optimize import minimize

from neoranging.core.elements import elements_to_state
from neoranging.core.moid import earth_moid
from neoranging.orbits import load_catalogue

J2000 = 51544.5
EARTH = 0.01671123, np.radians(102.93768193)


@pytest.fixture(scope="module")
def catalogue():
    return load_catalogue()


def of(c):
    angles = c.inc_rad, c.raan_rad, c.argp_rad
    return earth_moid(c.q_au, c.ecc, *angles, c.epoch_mjd_tdb)


@pytest.mark.parametrize(
    ("number", "jpl"),
    [
        ("99942", 0.00026),  # Apophis
        ("101955", 0.0032),  # Bennu
        ("433", 0.149),  # Eros
        ("4179", 0.0064),  # Toutatis
        ("1566", 0.0336),  # Icarus
        ("1862", 0.0257),  # Apollo
    ],
)
def test_published_by_jpl(catalogue, number, jpl):
    """Small-Body Database; its orbits are of other epochs, a decade moves a MOID by some 1e-4."""
    assert of(catalogue.take(catalogue.find([number]))) == pytest.approx(jpl, abs=6e-4)


def test_circles():
    """In the plane of the Earth a circle comes nearest at the aphelion or the perihelion."""
    ecc, a = EARTH[0], 1.00000261
    q = np.array([0.5, 0.9, 1.1, 3.0])
    nearest = np.where(q < 1.0, a * (1 - ecc) - q, q - a * (1 + ecc))
    zero = np.zeros(4)
    np.testing.assert_allclose(earth_moid(q, zero, zero, zero, zero, J2000), nearest, atol=1e-7)


def test_itself():
    ecc, perihelion = EARTH
    q = 1.00000261 * (1 - ecc)
    assert earth_moid(q, ecc, 0.0, 0.0, perihelion, J2000) < 1e-6


def test_polar_orbits_at_their_nodes():
    """An orbit square to the ecliptic, whose nodes are its apsides, is nearest near a node."""
    longitude = EARTH[1] + 0.5 * np.pi  # the Earth at its semilatus rectum
    r = 1.00000261 * (1 - EARTH[0] ** 2)
    q = np.array([0.7, 0.9, r, 1.05])
    found = earth_moid(q, 0.9, 0.5 * np.pi, longitude, 0.0, J2000)
    assert found[2] < 1e-6
    assert (found <= np.abs(q - r) + 1e-9).all()


def test_brute_force(catalogue):
    rng = np.random.default_rng(12)
    some = catalogue.take(rng.choice(len(catalogue), 40, replace=False))
    some.epoch_mjd_tdb[:] = J2000
    found = of(some)
    ecc, perihelion = EARTH
    nu = np.linspace(-np.pi, np.pi, 500)
    q_earth = 1.00000261 * (1 - ecc)
    inc = np.radians(-0.00001531)
    earth, _ = elements_to_state(q_earth, ecc, inc, 0.0, perihelion, nu)
    for k in range(len(some)):
        five = [x[k] for x in (some.q_au, some.ecc, some.inc_rad, some.raan_rad, some.argp_rad)]
        path, _ = elements_to_state(*five, nu)
        square = np.sum((path[:, None] - earth) ** 2, axis=2)
        i, j = np.unravel_index(np.argmin(square), square.shape)

        def gap(z, five=five):
            one, _ = elements_to_state(*five, z[0])
            two, _ = elements_to_state(q_earth, ecc, inc, 0.0, perihelion, z[1])
            return np.sum((one - two) ** 2)

        best = minimize(gap, [nu[i], nu[j]], method="Nelder-Mead", options={"fatol": 1e-16}).fun
        assert found[k] == pytest.approx(np.sqrt(best), abs=1e-5)


def test_open_and_very_long_orbits():
    """A parabola and a hyperbola that cross the Earth's orbit at a node, a comet that passes it."""
    longitude = EARTH[1] + 0.5 * np.pi
    r = 1.00000261 * (1 - EARTH[0] ** 2)
    for ecc in (0.999, 1.0, 1.5):
        # with its perihelion a quarter of a turn before the node it is at q (1 + ecc) there
        q = r / (1 + ecc)
        assert earth_moid(q, ecc, 1.0, longitude, -0.5 * np.pi, J2000) < 1e-6


def test_shapes_and_what_is_no_orbit():
    q = np.array([[0.9, np.nan], [1.1, 0.5]])
    found = earth_moid(q, 0.2, 0.1, 0.0, 0.0, J2000)
    assert found.shape == (2, 2)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(q))
    assert earth_moid(0.9, 0.2, 0.1, 0.0, 0.0, J2000).shape == ()
    assert earth_moid(np.zeros(0), 0.2, 0.1, 0.0, 0.0, J2000).shape == (0,)
