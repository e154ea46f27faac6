"""Leaving out single observations, against fits made without them."""

import dataclasses

import numpy as np
import pytest
from reference import influence as reference

from neoranging.constants import ARCSEC
from neoranging.core.arcs import Arcs
from neoranging.core.influence import bend_of_arc, deletion, worst_observation


def bend_of_one(arcs, significance):
    """What `bend_of_arc` says of each arc."""
    rows = zip(arcs.offsets[:-1], arcs.offsets[1:], arcs.triplet[:, 1], strict=True)
    return np.array([bend_of_arc(arcs.plain, arcs.direction, *row, significance) for row in rows])


def straight(m, n, seed, noise=0.0):
    """M arcs of n observations about the equator, along right ascension at a degree a day."""
    rng = np.random.default_rng(seed)
    t = 60_000.0 + np.sort(rng.uniform(0.0, 0.2, (m, n)), axis=1)
    ra = 1.0 + np.radians(1.0) * (t - 60_000.0) + noise * ARCSEC * rng.standard_normal((m, n))
    dec = noise * ARCSEC * rng.standard_normal((m, n))
    return t, ra, dec


def arcs_of(t, ra, dec, sigma=0.5):
    m, n = t.shape
    error = np.full(m * n, sigma * ARCSEC)
    nowhere = np.zeros((m * n, 3))
    columns = t.ravel(), ra.ravel(), dec.ravel(), error, error, nowhere, nowhere
    return Arcs(np.arange(0, m * n + 1, n), *columns)


@pytest.mark.parametrize("degree", [1, 2])
def test_deletion_is_the_fit_of_the_others(degree):
    t, ra, dec = straight(20, 7, seed=1, noise=1.0)
    found = deletion(arcs_of(t, ra, dec), degree)
    for k in range(20):
        for i in range(7):
            others = np.arange(7) != i
            x = t[k] - t[k].mean()
            chi2, off = 0.0, []
            for value in (ra[k] - ra[k, 3], dec[k]):  # small angles: the plane is flat enough
                fit = np.polynomial.Polynomial.fit(x[others], value[others], degree)
                chi2 += np.sum(((value - fit(x))[others] / (0.5 * ARCSEC)) ** 2)
                off.append(value[i] - fit(x[i]))
            assert found.rest[7 * k + i] == pytest.approx(chi2, rel=1e-4, abs=1e-6)
            assert found.offset[7 * k + i] == pytest.approx(np.hypot(*off), rel=1e-4)


@pytest.mark.parametrize("degree", [1, 2])
def test_deletion_is_that_of_numpy(simulate, degree):
    arcs = (
        simulate(300, 0.3, seed=4, n_observations=(2, 9)).with_noise(np.random.default_rng(4)).arcs
    )
    t, sigma = (
        arcs.t.copy(),
        arcs.sigma_ra * np.random.default_rng(5).uniform(0.5, 2.0, len(arcs.t)),
    )
    twice = arcs.offsets[1:][arcs.counts > 2] - 1
    t[twice] = t[twice - 1]  # two stations at one instant
    arcs = dataclasses.replace(arcs, t=t, sigma_ra=sigma)
    found, expected = deletion(arcs, degree), reference.deletion(arcs, degree)
    np.testing.assert_allclose(found.offset, expected.offset, rtol=1e-6, atol=1e-6 * ARCSEC)
    np.testing.assert_allclose(found.rest, expected.rest, rtol=1e-6, atol=1e-4)
    np.testing.assert_allclose(
        bend_of_one(arcs, 3.0), reference.bend_of_one(arcs, 3.0), rtol=1e-6, atol=1e-6 * ARCSEC
    )


def test_errors_of_any_size_change_the_units_only():
    t, ra, dec = straight(5, 6, seed=2, noise=1.0)
    one, other = (deletion(arcs_of(t, ra, dec, sigma), 1) for sigma in (1.0, 1e-250))
    np.testing.assert_allclose(other.offset, one.offset, rtol=1e-9)
    assert np.isinf(other.rest).all()


@pytest.mark.parametrize("n", [4, 5, 6, 9])
def test_the_stray_is_the_worst(n):
    t, ra, dec = straight(200, n, seed=n, noise=0.1)
    which = np.random.default_rng(n).integers(0, n, 200)
    dec[np.arange(200), which] += 30.0 * ARCSEC
    row, offset = worst_observation(arcs_of(t, ra, dec))
    # at the end of a parabola a stray is at times as good a bend
    assert np.mean(row == which + n * np.arange(200)) > 0.9
    right = row == which + n * np.arange(200)
    assert np.median(offset[right]) == pytest.approx(30.0 * ARCSEC, rel=0.05)


def test_of_three_observations_none_is_the_worst():
    assert (worst_observation(arcs_of(*straight(3, 3, seed=3)))[0] == -1).all()


def test_what_one_observation_bends():
    t, ra, dec = straight(100, 6, seed=5, noise=0.1)
    assert (bend_of_one(arcs_of(t, ra, dec), 3.0) < 2.0 * ARCSEC).all()
    dec[:, 2] += 40.0 * ARCSEC
    np.testing.assert_allclose(bend_of_one(arcs_of(t, ra, dec), 3.0), 40.0 * ARCSEC, rtol=0.05)
    # a bend that all observations share is not that of one
    bent = dec + 40.0 * ARCSEC * ((t - 60_000.1) / 0.1) ** 2
    bent[:, 2] -= 40.0 * ARCSEC
    assert np.isinf(bend_of_one(arcs_of(t, ra, bent), 3.0)).mean() > 0.9


def test_of_four_the_others_show_nothing():
    """Three positions lie on some orbit whatever they are, bent or not."""
    t, ra, dec = straight(50, 4, seed=6, noise=0.1)
    dec += 40.0 * ARCSEC * np.random.default_rng(6).standard_normal((50, 4))
    bend = bend_of_one(arcs_of(t, ra, dec), 3.0)
    assert np.isfinite(bend).all()
    assert np.median(bend) > 40.0 * ARCSEC
