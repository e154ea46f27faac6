"""Options of Gauss's and Laplace's methods, and what geocentric observers do to them."""

import numpy as np
import pytest

import neoranging as nr
from neoranging.core.gauss import gauss
from neoranging.estimators.classical import ClassicalEstimator
from neoranging.estimators.gauss import GaussEstimator
from neoranging.estimators.laplace import LaplaceEstimator
from neoranging.exceptions import TrackletError

METHODS = pytest.mark.parametrize("estimator", [GaussEstimator, LaplaceEstimator])


@pytest.fixture(scope="module")
def nights(simulate):
    """Arcs of half a night from real stations, with noise."""
    s = simulate(600, 0.3, seed=200, sigma=0.25)
    return s.with_noise(np.random.default_rng(200))


@METHODS
def test_options(estimator):
    made = estimator(origin="geocenter", refine=False, exclusion=5.0)
    assert (made.origin, made.refine, made.thresholds.exclusion) == ("geocenter", False, 5.0)
    assert made.min_observations == 3
    assert not made.is_learned
    with pytest.raises(TypeError, match="no option 'no_such': choose from origin, refine, excl"):
        estimator(no_such=1.0)
    for nonsense in (-1.0, 0.0, np.nan, "3"):
        with pytest.raises(TrackletError, match="exclusion must be a positive number"):
            estimator(exclusion=nonsense)
    with pytest.raises(TypeError):
        estimator("geocenter")


def test_the_common_class_is_abstract():
    with pytest.raises(TypeError):
        ClassicalEstimator()


def test_without_refinement_gauss_is_the_series(nights):
    estimate = nights.tracklets().estimate("gauss", refine=False)
    series = gauss(nights.arcs, max_iterations=0).roots
    table = estimate.candidates
    assert table["converged"].all()
    matched = np.isin(np.round(table["range"].value, 9), np.round(series.rho, 9))
    assert matched.mean() > 0.95  # tiny ranges feel the rounding of the way through UTC


@METHODS
def test_refinement_makes_long_arcs_exact(estimator, simulate):
    s = simulate(300, 8.0, seed=201, n_observations=5)
    refined, series = (s.tracklets().estimate(estimator(refine=x)) for x in (True, False))
    ok = refined.ok
    assert ok.sum() > 100
    errors = [np.median(np.abs(e.range.value / s.rho - 1.0)[ok]) for e in (refined, series)]
    assert errors[0] < 1e-6
    assert errors[1] > 1e-3


@METHODS
def test_geocentric_observers_read_parallax_as_motion(estimator, nights):
    """Half of the arcs collapse onto the observer, as the literature has it; none says OK."""
    centre = nights.tracklets().estimate(estimator(origin="geocenter"))
    place = nights.tracklets().estimate(estimator())
    collapsed = (centre.range.value < 1e-3) | ~np.isfinite(centre.range.value)
    assert collapsed.mean() > 0.3
    assert not centre.ok[centre.range.value < 1e-3].any()
    wrong = [(np.abs(e.range.value / nights.rho - 1.0) > 0.5)[e.ok].sum() for e in (centre, place)]
    assert wrong[1] <= 0.02 * place.ok.sum()
    assert (place.range.value < 1e-3).mean() < 0.05


@METHODS
def test_refused_nights_are_the_ones_that_bend_little(estimator, nights):
    estimate = nights.tracklets().estimate(estimator())
    significance = estimate.attributable.curvature_significance
    undetermined = estimate.status == nr.RangeStatus.UNDETERMINED
    undetermined &= estimate.diagnostics == ""  # others bend, by one observation alone
    assert np.median(significance[undetermined]) < 0.2 * np.median(significance[estimate.ok])


@METHODS
def test_the_interval_of_what_is_not_determined_is_the_admissible_range(estimator, nights):
    estimate = nights.tracklets().estimate(estimator())
    interval = estimate.interval(0.68, calibrated=False).value
    low, high = interval[~estimate.ok].T
    known = np.isfinite(low)
    assert known.mean() > 0.9
    assert (high[known] / low[known] > 10.0).mean() > 0.9
    inside = (low <= nights.rho[~estimate.ok]) & (nights.rho[~estimate.ok] <= high)
    assert inside[known].mean() > 0.97


@METHODS
def test_intervals_of_what_is_ok_cover_at_their_level(estimator, nights):
    estimate = nights.tracklets().estimate(estimator())
    ok = estimate.ok
    n = ok.sum()
    assert n > 150
    for level in (0.5, 0.68, 0.9):
        low, high = estimate.interval(level).value[ok].T
        covered = ((low <= nights.rho[ok]) & (nights.rho[ok] <= high)).mean()
        assert abs(covered - level) < 5.0 * np.sqrt(level * (1.0 - level) / n) + 0.02


@METHODS
def test_sigma_decides_what_is_determined(estimator, simulate):
    shares = []
    for sigma in (0.01, 0.2, 3.0):
        s = simulate(300, 0.3, seed=202, sigma=sigma, n_observations=(5, 9)).with_noise(
            np.random.default_rng(1)
        )
        shares.append(s.tracklets().estimate(estimator()).ok.mean())
    assert shares[0] > shares[1] > shares[2]
    assert shares[0] > 0.8
    assert shares[2] < 0.25
