"""The compiled formulae of systematic ranging beside those that they stand for."""

from __future__ import annotations

import numpy as np
import pytest
import simulated_arcs
from compiled_nights import prepared

from neoranging.core.admissible import absolute_magnitude
from neoranging.core.attributable import from_fit
from neoranging.core.elements import state_to_elements
from neoranging.core.geometry import equatorial_to_ecliptic
from neoranging.core.priors import PriorTable
from neoranging.core.sightings import magnitude_shift, node_state
from neoranging.core.systematic import log_prior, strip

START = np.array([np.log(1e-3), 0.0, 0.0, 0.0])
STEP = np.array([4.0, 1.0, 1.8, 40.0])


def table_of(axis):
    """Table whose logarithmic density is one of its four coordinates, along all of its axes."""
    index = np.indices((4, 2, 2, 2))[axis]
    values = (START[axis] + STEP[axis] * index).astype(np.float32)
    return PriorTable(values, values, START, STEP)


@pytest.mark.parametrize("rho_dot", [-0.006, 0.002])
@pytest.mark.parametrize("rho", [0.02, 0.4, 1.7])
def test_orbits_and_sizes_are_those_of_the_numeric_core(rho, rho_dot):
    arcs = simulated_arcs.simulate(1, 0.05, seed=3, rho=0.4).arcs
    night, space = prepared(arcs)
    space.fit[:] = 0.0
    node_state(night, 0, rho, rho_dot, space)
    a = from_fit(arcs)
    orbit = a.complete(np.array([rho]), np.array([rho_dot]))
    np.testing.assert_allclose(space.state[:2], [orbit.r[0], orbit.v[0]], rtol=1e-13)
    size = 21.0 - magnitude_shift(night, 0, rho, space)
    assert size == pytest.approx(absolute_magnitude(a.energy_coefficients[0], rho, 21.0), abs=1e-9)
    low, high = strip(night, 0, rho, space)
    inside = a.complete(np.full(4, rho), np.array([low, low, high, high]) + [-3e-5, 3e-5] * 2)
    if low < high:
        np.testing.assert_array_equal(inside.admissible, [False, True, True, False])
    if not orbit.admissible[0]:
        assert log_prior(rho, rho_dot, size, 0.0, table_of(0), space) == -np.inf
        return
    elements = state_to_elements(*(equatorial_to_ecliptic(x) for x in (orbit.r, orbit.v)))
    expected = np.log(elements.q[0]), elements.ecc[0], np.sqrt(elements.inc[0]), size
    for axis, value in enumerate(expected):
        density = log_prior(rho, rho_dot, size, 0.0, table_of(axis), space)
        assert density - 4.0 * np.log(rho) + space.fit[4] == pytest.approx(value, abs=2e-6)
