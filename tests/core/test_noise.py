"""The law of the errors of a night."""

import dataclasses

import numpy as np
import pytest
from reference import noise as reference
from scipy.stats import norm as normal

from neoranging.core.noise import (
    LARGEST_SHARE,
    LEVEL_WEIGHTS,
    N_LEVELS,
    SHARE_OF_CLAIM,
    SHARE_SPREAD,
    _table,
    error_law,
    largest,
    quantile,
    set_scale,
)


def scale_of(freedom, square):
    """Scales of one visit at the levels of their distribution."""
    scale = np.empty(N_LEVELS)
    set_scale(freedom, square, _table(), scale)
    return scale


def test_quantiles_of_one_normal_law():
    for level in (0.5, 0.68, 0.95, 0.99, 0.9999):
        found = quantile(np.full((1, len(LEVEL_WEIGHTS)), 2.0), 1.0 - level)
        np.testing.assert_allclose(found, 2.0 * normal.ppf(0.5 + 0.5 * level), rtol=1e-4)


@pytest.mark.parametrize("probability", [0.32, 0.05, 0.01, 1e-3, 1e-5])
def test_quantiles_of_mixtures_are_exceeded_as_often(probability):
    scales = np.sort(np.exp(np.random.default_rng(1).normal(0.0, 1.0, (50, 10))), axis=1)
    x = quantile(scales, probability)[:, None]
    np.testing.assert_allclose(2.0 * normal.sf(x / scales) @ LEVEL_WEIGHTS, probability, rtol=0.02)


def test_without_residuals_the_law_alone_decides():
    rng = np.random.default_rng(2)
    share = np.minimum(SHARE_OF_CLAIM * np.exp(SHARE_SPREAD * rng.standard_normal(400_000)), 1.5)
    error = np.abs(share * rng.standard_normal(len(share)))
    scales = scale_of(0.0, 0.0)[None]
    for level in (0.68, 0.95, 0.99, 0.999):
        found = quantile(scales, 1.0 - level)[0]
        # at most a tenth more, and no less
        assert 0.99 < found / np.quantile(error, level) < 1.12


def test_many_residuals_decide_it():
    for share in (0.05, 0.3, 1.0):
        scales = scale_of(200.0, 200.0 * share**2)
        np.testing.assert_allclose(scales, share, rtol=0.25)
    assert scale_of(200.0, 5000.0).max() <= LARGEST_SHARE * (1 + 1e-9)


def test_arcs_that_scatter_more_have_larger_errors(simulate):
    s = simulate(300, 0.05, seed=750, n_observations=8)
    sizes = []
    for size in (0.1, 0.3, 1.0):
        law = error_law(s.with_noise(np.random.default_rng(3), size).arcs)
        sizes.append(np.median(law.scatter / np.stack([s.arcs.sigma_ra, s.arcs.sigma_dec], axis=1)))
        assert np.abs(np.log(sizes[-1] / size)) < 0.5
    assert sizes[0] < sizes[1] < sizes[2]


@pytest.mark.parametrize("visits", [1, 3])
def test_the_compiled_law_is_that_of_numpy(simulate, visits):
    s = simulate(300, 0.1, seed=752, n_observations=(4, 9))
    arcs = s.with_noise(np.random.default_rng(5), 0.7).arcs
    arcs = dataclasses.replace(arcs, visit=np.arange(len(arcs.t)) % visits)
    rng = np.random.default_rng(6)
    about_orbits = np.where(rng.random((len(arcs.t), 1)) < 0.3, np.nan, 1e-6)
    about_orbits = about_orbits * rng.standard_normal((len(arcs.t), 2))
    for rest in (None, about_orbits):
        found, expected = error_law(arcs, rest), reference.error_law(arcs, rest)
        for name in ("scatter", "timing", "offset", "drift", "scales"):
            pair = getattr(found, name), getattr(expected, name)
            np.testing.assert_allclose(*pair, rtol=1e-12, err_msg=name)
    np.testing.assert_allclose(largest(arcs), reference.largest(arcs), rtol=1e-12)
    for probability in (0.3, 0.01, 1e-4):
        pair = quantile(found.scales, probability), reference.quantile(found.scales, probability)
        np.testing.assert_allclose(*pair, rtol=1e-12)


def test_the_errors_of_an_arc_do_not_depend_on_its_company(simulate):
    """An arc of one visit beside arcs of several."""
    arcs = simulate(50, 0.1, seed=753, n_observations=6).with_noise(np.random.default_rng(7)).arcs
    alone = error_law(arcs)
    mixed = error_law(
        dataclasses.replace(arcs, visit=np.arange(len(arcs.t)) % 6 * (arcs.owner % 2))
    )
    plain = arcs.owner % 2 == 0
    np.testing.assert_array_equal(mixed.scatter[plain], alone.scatter[plain])
    np.testing.assert_array_equal(mixed.scales[::2], alone.scales[::2])
    assert not np.array_equal(mixed.scales[1::2], alone.scales[1::2])
