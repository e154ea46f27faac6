"""How simulated observations err."""

import numpy as np
import pytest

from neoranging.core.geometry import line_of_sight
from neoranging.core.noise import LARGEST_SHARE, OFFSET, SHARE_OF_CLAIM, SHARE_SPREAD
from neoranging.lab.simulation.astrometric_errors import (
    Errors,
    displaced,
)


@pytest.fixture(scope="module")
def drawn():
    """20,000 visits of 12 observations that claim 1 and 2."""
    visit = np.repeat(np.arange(20_000), 12)
    sigma = np.stack([np.ones(len(visit)), np.full(len(visit), 2.0)])
    return Errors().draw(sigma, visit, np.random.default_rng(1)).reshape(2, -1, 12)


def test_a_visit_errs_alike(drawn):
    mean = drawn.mean(axis=2) / [[1.0], [2.0]]
    # by the median, which the few that scatter widely do not move
    assert 1.4826 * np.median(np.abs(mean)) == pytest.approx(OFFSET, rel=0.1)


def test_scatter_is_a_share_of_what_is_claimed_and_differs_by_visit(drawn):
    share = drawn.std(axis=2, ddof=1) / [[1.0], [2.0]]
    both = np.sqrt(np.mean(share**2, axis=0))
    assert np.median(both) == pytest.approx(SHARE_OF_CLAIM, rel=0.05)
    # twenty-two squares tell the size of a scatter to 15 %
    assert np.std(np.log(both)) == pytest.approx(np.hypot(SHARE_SPREAD, 0.15), rel=0.1)
    assert np.quantile(both, 0.999) < 1.5 * LARGEST_SHARE
    # both axes of a visit have the same
    assert np.corrcoef(np.log(share))[0, 1] > 0.85


def test_no_observations():
    assert (
        Errors().draw(np.empty((2, 0)), np.empty(0, dtype=int), np.random.default_rng(0)).size == 0
    )


def test_displacements_are_to_the_east_and_north():
    ra, dec = np.array([6.28, 1.0]), np.array([0.3, 1.57])
    moved_ra, moved_dec = displaced(line_of_sight(ra, dec), np.array([[1e-6, 0.0], [0.0, 1e-6]]))
    np.testing.assert_allclose((moved_ra - ra) * np.cos(dec), [1e-6, 0.0], atol=1e-12)
    np.testing.assert_allclose(moved_dec - dec, [0.0, 1e-6], atol=1e-12)


def test_errors_as_claimed_are_independent():
    visit = np.repeat(np.arange(2000), 10)
    sigma = np.stack([np.ones(len(visit)), np.full(len(visit), 3.0)])
    drawn = Errors("claimed", 2.0).draw(sigma, visit, np.random.default_rng(2))
    np.testing.assert_allclose(drawn.std(axis=1), [2.0, 6.0], rtol=0.03)
    mean = drawn.reshape(2, -1, 10).mean(axis=2)
    np.testing.assert_allclose(mean.std(axis=1), np.array([2.0, 6.0]) / np.sqrt(10.0), rtol=0.1)


def test_the_errors_of_a_set_are_those_of_its_settings():
    assert Errors.of({"errors": "measured", "noise": 0.5}) == Errors("measured", 0.5)
    assert Errors.of({"noise": 2.0}) == Errors("claimed", 2.0)  # made before there were others
