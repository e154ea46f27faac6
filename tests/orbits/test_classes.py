"""Classes of orbits at their limits, and statements by name."""

import numpy as np
import pytest
from astropy import units as u
from astropy.time import Time

from neoranging.exceptions import OrbitError
from neoranging.orbits import OrbitalElements
from neoranging.orbits.classes import statement_holds

EPOCH = Time("2025-11-21", scale="tdb")
CLASSES = ("atira", "aten", "apollo", "amor", "main-belt")


def elements(q, ecc):
    zero = 0.0 * u.deg
    return OrbitalElements(q * u.au, ecc, 10.0 * u.deg, zero, 30.0 * u.deg, zero, EPOCH)


@pytest.mark.parametrize(
    ("a", "ecc", "name"),
    [
        (0.7411, 0.3221, "atira"),  # 163693 Atira, q 0.502, Q 0.980
        (0.9668, 0.1828, "aten"),  # 2062 Aten
        (0.9224, 0.1911, "aten"),  # 99942 Apophis
        (1.4703, 0.5600, "apollo"),  # 1862 Apollo
        (1.9196, 0.4346, "amor"),  # 1221 Amor, q 1.085
        (1.4581, 0.2228, "amor"),  # 433 Eros
        (2.7661, 0.0785, "main-belt"),  # 1 Ceres
    ],
)
def test_well_known_objects(a, ecc, name):
    one = elements(a * (1 - ecc), ecc)
    assert [each for each in CLASSES if statement_holds(each, one)] == [name]
    assert statement_holds("NEO", one) == (name != "main-belt")


def test_near_earth_ellipses_are_of_one_class_each():
    rng = np.random.default_rng(1)
    some = elements(rng.uniform(0.1, 1.5, 3000), rng.uniform(0.0, 0.99, 3000))
    count = sum(statement_holds(name, some).astype(int) for name in CLASSES[:4])
    np.testing.assert_array_equal(count, statement_holds("neo", some))


def test_of_open_orbits_only_the_perihelion_counts():
    comet = elements(np.array([0.9, 0.9]), np.array([1.0, 1.2]))
    assert statement_holds("neo", comet).all()
    assert not any(statement_holds(name, comet).any() for name in CLASSES)


def test_of_the_distance_from_the_orbit_of_the_earth():
    some = elements(np.array([0.95, 1.1, 2.0]), np.array([0.3, 0.3, 0.1]))
    for text in ("moid<0.05", "MOID < 0.05 au", "moid<.05"):
        expected = some.earth_moid() < 0.05 * u.au
        np.testing.assert_array_equal(statement_holds(text, some), expected)
        # of one orbit, in reach of the Earth or not, there is one flag
        one_by_one = [statement_holds(text, some[k]) for k in range(len(expected))]
        np.testing.assert_array_equal(one_by_one, expected)
    assert statement_holds("moid<5", some).all()


@pytest.mark.parametrize("name", ["apolo", "moid", "moid<x", "", "moid<0.05km"])
def test_what_is_no_statement(name):
    with pytest.raises(OrbitError, match=r"no statement .*choose one of neo, atira"):
        statement_holds(name, elements(1.0, 0.1))
