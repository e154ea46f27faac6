"""The shell of the D criteria: what it accepts, and what it says otherwise."""

from __future__ import annotations

import numpy as np
import pytest
from astropy import units as u
from astropy.time import Time

from neoranging.core import dcriteria as core
from neoranging.exceptions import OrbitError
from neoranging.orbits.dcriteria import d_drummond, d_jopek, d_sh
from neoranging.orbits.elements import OrbitalElements

EPOCH = Time(60000.0, format="mjd", scale="tdb")
FIRST = (0.9 * u.au, 0.5, 10 * u.deg, 350 * u.deg, 40 * u.deg)
SECOND = (1.4e8 * u.km, 0.6 * u.one, 0.2 * u.rad, 12 * u.deg, 20 * u.deg)


@pytest.mark.parametrize("distance", [d_sh, d_drummond, d_jopek])
def test_kinds_of_orbits_agree(distance):
    want = distance(FIRST, SECOND)
    assert isinstance(want, float)
    first, second = (OrbitalElements(*x, 33.0 * u.deg, EPOCH) for x in (FIRST, SECOND))
    assert distance(first, second) == pytest.approx(want, rel=1e-14)
    assert distance(list(FIRST), second) == pytest.approx(want, rel=1e-14)


def test_orbit_objects_of_the_poliastro_family(orbit_of):
    first, second = (OrbitalElements(*x, 33.0 * u.deg, EPOCH) for x in (FIRST, SECOND))
    assert d_sh(orbit_of(first), second) == pytest.approx(d_sh(first, second), rel=1e-11)


@pytest.fixture
def orbit_of():
    class Named:
        def __init__(self, name):
            self.name = name

    class Duck:
        def __init__(self, elements):
            self.r, self.v = elements.state()
            self.epoch, self.attractor = elements.epoch, Named("Sun")
            self.plane = Named("EARTH_EQUATOR")

    return Duck


def test_pairs_and_units():
    orbits = OrbitalElements(*FIRST[:4], [10, 20, 30] * u.deg, 0 * u.deg, EPOCH)
    matrix = d_sh(orbits[:, None], orbits)
    assert matrix.shape == (3, 3)
    np.testing.assert_allclose(np.diag(matrix), 0.0, atol=1e-15)
    plain = [0.9, 0.5, np.radians(10), np.radians(350)]
    want = core.d_sh([*plain, np.radians(10)], [*plain, np.radians(30)])
    assert matrix[0, 2] == pytest.approx(want, rel=1e-12)


def test_unbound_orbits_are_compared_unless_told_otherwise():
    ecc = [0.5, 1.0, 1.2]
    orbits = OrbitalElements(0.9 * u.au, ecc, *FIRST[2:], 0 * u.deg, EPOCH)
    assert np.isfinite(d_sh(orbits, SECOND)).all()
    np.testing.assert_array_equal(
        np.isnan(d_sh(orbits, SECOND, elliptic_only=True)), [False, True, True]
    )


@pytest.mark.parametrize("bad", [None, 3.0, FIRST[:4], (0.9, 0.5, 10, 350, 40), "2015 RN35"])
def test_what_is_no_orbit(bad):
    with pytest.raises(OrbitError, match=r"q, ecc, inc, raan, argp|q must be a Quantity"):
        d_sh(FIRST, bad)
