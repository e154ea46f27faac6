"""Gauss's method against Vallado's example 7-2 and the value Orekit gets for it.

Vallado (2013), Fundamentals of Astrodynamics, 4th edition, example 7-2: an Earth satellite seen
three times from Colorado. The numbers with all digits are those of Orekit's IodGaussTest, whose
observer positions use other Earth-orientation data than the book.
"""

import numpy as np
import pytest

from neoranging.core.gauss import Triplets, gauss_orbits
from neoranging.core.geometry import line_of_sight, norm
from neoranging.core.kepler import propagate

MU = 3.986004418e14  # m^3 / s^2
EPOCHS = np.array([[-480.0, 0.0, 240.0]])  # s after 2012-08-20T11:48:28 UTC
RA = np.radians([0.9399130, 45.025748, 67.886655])
DEC = np.radians([18.667717, 35.664741, 36.996583])
SITE = np.array(
    [
        [4054880.1594, 2748194.4767, 4074236.1653],
        [3956223.5179, 2888232.0864, 4074363.4118],
        [3905072.3452, 2956934.5902, 4074429.3009],
    ]
)
OREKIT = (
    np.array([6313395.577554352, 5247523.665414684, 6467724.780943674]),
    np.array([-4101.302835071493, 4699.692868088214, 1692.5478178378698]),
)
PRINTED = 1e3 * np.array([6356.486034, 5290.5322578, 6511.396979])  # after Vallado's refinement


@pytest.fixture(scope="module")
def triplets():
    return Triplets(EPOCHS, line_of_sight(RA, DEC)[None], SITE[None])


def test_the_series_is_orekits_to_a_micrometre(triplets):
    found = gauss_orbits(triplets, MU, np.inf, max_iterations=0)
    assert len(found.arc) == 1
    np.testing.assert_allclose(found.r[0], OREKIT[0], rtol=0, atol=1e-6)
    np.testing.assert_allclose(found.v[0], OREKIT[1], rtol=0, atol=1e-9)


def test_the_refined_orbit_is_vallados(triplets):
    """His digits of the directions allow for some hundred metres."""
    found = gauss_orbits(triplets, MU, np.inf)
    assert found.converged.all()
    assert norm(found.r[0] - PRINTED) < 100.0


def test_the_refined_orbit_passes_through_the_three_sightings(triplets):
    found = gauss_orbits(triplets, MU, np.inf)
    state = (np.repeat(x, 3, axis=0) for x in (found.r, found.v))
    seen, _ = propagate(*state, EPOCHS[0], MU)
    path = seen - SITE
    np.testing.assert_allclose(
        path / norm(path)[:, None], line_of_sight(RA, DEC), rtol=0, atol=1e-10
    )
    np.testing.assert_allclose(norm(path), found.ranges[0], rtol=1e-10)


def test_light_time_moves_a_satellite_by_metres(triplets):
    still, timed = (gauss_orbits(triplets, MU, c) for c in (np.inf, 299_792_458.0))
    assert 1.0 < norm(still.r - timed.r)[0] < 100.0
