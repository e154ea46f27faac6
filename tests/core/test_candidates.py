"""Which root is chosen, and what is said of it."""

import dataclasses
from functools import partial

import numpy as np
import pytest
import simulated_arcs
from claimed_errors import claimed_law
from reference import candidates as reference

from neoranging.constants import AU_KM, DAY_S, GM_SUN
from neoranging.core.attributable import from_fit
from neoranging.core.candidates import Thresholds, solve
from neoranging.core.gauss import gauss
from neoranging.core.geometry import dot, norm
from neoranging.core.laplace import laplace
from neoranging.core.prediction import sky_residuals
from neoranging.core.status import RangeStatus
from neoranging.ephemeris.states import earth_state
from neoranging.lab.simulation.astrometric_errors import Errors, displaced

METHODS = pytest.mark.parametrize("method", [gauss, laplace])


def judged(s, method, **thresholds):
    return solve(s.arcs, from_fit(s.arcs), method(s.arcs), Thresholds(**thresholds))


def is_(solutions, *members):
    return np.isin(solutions.status, [member.code for member in members])


@pytest.fixture(scope="module")
def nights(simulate):
    """Noisy arcs of all lengths from a quarter of an hour to two weeks."""
    spans = (0.01, 0.1, 0.4, 2.0, 14.0)
    return [
        simulate(400, span, seed=40 + k).with_noise(np.random.default_rng(50 + k))
        for k, span in enumerate(spans)
    ]


@METHODS
def test_every_arc_with_roots_has_one_chosen(nights, method):
    for s in nights:
        solved = judged(s, method)
        c = solved.candidates
        with_roots = np.unique(c.roots.arc)
        np.testing.assert_array_equal(c.roots.arc[c.chosen], with_roots)
        np.testing.assert_array_equal(solved.rho[with_roots], c.roots.rho[c.chosen])
        np.testing.assert_array_equal(solved.r[with_roots], c.roots.r[c.chosen])
        assert np.isnan(np.delete(solved.rho, with_roots)).all()
        assert (c.roots.rho > 0.0).all()
        assert (np.diff(c.roots.arc) >= 0).all()


@METHODS
def test_what_each_root_implies(nights, method):
    s = nights[3]
    c = judged(s, method).candidates
    k = c.roots.arc
    energy = 0.5 * norm(c.roots.v) ** 2 - GM_SUN / norm(c.roots.r)
    np.testing.assert_allclose(c.energy, energy, rtol=1e-12)
    part = s.arcs.take(k)
    residuals = sky_residuals(part, c.roots.r, c.roots.v, c.roots.epoch)
    scaled = residuals / np.stack([part.sigma_ra, part.sigma_dec], axis=1)
    np.testing.assert_allclose(c.chi2, part.sum(np.sum(scaled**2, axis=1)), rtol=1e-9)
    mean = part.sum(np.sum(residuals**2, axis=1)) / part.counts
    np.testing.assert_allclose(c.residual, np.sqrt(mean), rtol=1e-9)
    assert not c.plausible[~c.roots.converged].any()
    assert not c.plausible[~c.admissible].any()


def _rank(candidates, best, row):
    roots, chi2 = candidates.roots, candidates.chi2[row]
    known = roots.converged[row] and np.isfinite(chi2)
    excess = chi2 - best if known else np.inf
    return (
        not roots.converged[row],
        not excess <= 16.0,
        not candidates.admissible[row],
        min(np.floor(excess), 17.0),
        -roots.rho[row],
    )


@METHODS
def test_the_rule_of_choice(nights, method):
    """Converged before not, fitting, admissible, better fit first, then the farthest."""
    for s in nights[1:]:
        c = judged(s, method).candidates
        roots = c.roots
        for k in np.unique(roots.arc):
            rows = np.nonzero(roots.arc == k)[0]
            if len(rows) < 2:
                continue
            trusted = rows[roots.converged[rows] & np.isfinite(c.chi2[rows])]
            best = c.chi2[trusted].min() if len(trusted) else np.inf
            assert min(rows, key=partial(_rank, c, best)) == rows[c.chosen[rows]][0]


@METHODS
def test_ok_is_admissible_bound_converged_and_unrivalled(nights, method):
    for s in nights:
        solved = judged(s, method)
        c = solved.candidates
        ok = is_(solved, RangeStatus.OK)
        chosen = c.chosen & ok[c.roots.arc]
        assert c.plausible[chosen].all()
        assert (c.energy[chosen] < 0.0).all()
        rivals = np.bincount(c.roots.arc, weights=c.plausible, minlength=len(s))
        assert (rivals[ok] == 1).all()
        for column in (solved.rho, solved.rho_dot, solved.epoch, solved.r, solved.covariance):
            assert np.isfinite(column[ok]).all()
        relative = np.sqrt(solved.covariance[ok, 0, 0]) / solved.rho[ok]
        assert (relative <= Thresholds().relative_error).all()


@METHODS
def test_minutes_of_a_normal_object_determine_nothing(nights, method):
    solved = judged(nights[0], method)
    assert is_(solved, RangeStatus.UNDETERMINED).mean() > 0.95
    wrong = np.abs(solved.rho / nights[0].rho - 1.0) > 1.0
    assert (wrong & is_(solved, RangeStatus.OK)).sum() <= 2


@METHODS
def test_a_confident_range_is_seldom_wrong(simulate, method):
    """Less than 2 % of OK arcs under noise (one-sided, four sigma) err by more than half."""
    ok_count = wrong = 0
    for seed, span in enumerate((0.05, 0.15, 0.3, 0.6, 1.0, 2.0, 5.0, 10.0)):
        s = simulate(700, span, seed=60 + seed, sigma=0.4)
        s = s.with_noise(np.random.default_rng(seed))
        solved = judged(s, method)
        ok = is_(solved, RangeStatus.OK)
        ok_count += ok.sum()
        wrong += (np.abs(solved.rho / s.rho - 1.0)[ok] > 0.5).sum()
    assert ok_count > 1500
    assert wrong < 0.02 * ok_count - 4.0 * np.sqrt(0.02 * ok_count) + 1.0


def with_errors(s, kind, seed):
    """Arcs with errors of a kind, each arc of one visit."""
    a = s.arcs
    sigma = np.stack([a.sigma_ra, a.sigma_dec])
    drawn = Errors(kind).draw(sigma, a.owner, np.random.default_rng(seed))
    return s._with(*displaced(a.direction, drawn))


@METHODS
@pytest.mark.parametrize("kind", ["measured", "claimed"])
def test_intervals_hold_at_their_level(simulate, method, kind):
    """Errors of OK answers, of one night to three days, below those of a level as often as said."""
    below = {level: [] for level in (0.68, 0.95, 0.99)}
    for seed, span in enumerate((0.3, 1.0, 3.0)):
        s = with_errors(simulate(1000, span, seed=70 + seed, sigma=0.3), kind, 80 + seed)
        solved = judged(s, method)
        ok = is_(solved, RangeStatus.OK)
        error = np.abs(solved.rho - s.rho)
        for level, inside in below.items():
            inside.append((error <= solved.error_quantile(level))[ok])
    for level, parts in below.items():
        inside = np.concatenate(parts)
        n = len(inside)
        assert n > 1000
        # four standard deviations of the binomial
        assert inside.mean() > level - 4.0 * np.sqrt(level * (1.0 - level) / n)
    assert np.concatenate(below[0.68]).mean() < 0.95  # and no wider than it has to be


@METHODS
@pytest.mark.parametrize("kind", ["measured", "claimed"])
@pytest.mark.parametrize("n", [3, 4, 6])
def test_nights_that_determine_nothing_are_not_ok(simulate, method, kind, n):
    """Short arcs of objects beyond 0.1 au: at most one in 300 passes for another range."""
    s = simulate(4000, 0.02, seed=75, n_observations=n)
    s = with_errors(s.take(np.flatnonzero(s.rho > 0.1)), kind, 76)
    solved = judged(s, method)
    wrong = is_(solved, RangeStatus.OK) & (np.abs(np.log(solved.rho / s.rho)) > np.log(2.0))
    assert len(s) > 2500
    expected = len(s) / 300
    assert wrong.sum() <= expected + 4.0 * np.sqrt(expected)


@METHODS
def test_a_smaller_scatter_determines_more(simulate, method):
    """Arcs say how large their errors are."""
    s = simulate(600, 0.25, seed=77, n_observations=(6, 9), sigma=0.4)
    shares = []
    for size in (0.1, 1.0):
        noisy = s.with_noise(np.random.default_rng(78), size)
        shares.append(is_(judged(noisy, method), RangeStatus.OK).mean())
    assert shares[0] > shares[1] + 0.05


@METHODS
def test_stricter_thresholds_never_make_more_ok(nights, method):
    for name, strict in {
        "exclusion": 6.0,
        "factor": 1.2,
        "relative_error": 0.02,
        "chi2_excess": 100.0,
        "misfit": 2.0,
    }.items():
        for s in nights:
            loose, tight = judged(s, method), judged(s, method, **{name: strict})
            assert (is_(tight, RangeStatus.OK) <= is_(loose, RangeStatus.OK)).mean() > 0.995
        del loose, tight


@METHODS
def test_a_blunder_is_a_misfit(simulate, method):
    s = simulate(300, 1.0, seed=90, n_observations=7)
    dec = s.arcs.dec.copy()
    hit = s.arcs.offsets[:-1] + 1
    assert not np.isin(hit, s.arcs.triplet).any()
    dec[hit] += np.radians(30.0 / 3600.0)
    clean, spoiled = judged(s, method), judged(s._with(s.arcs.ra, dec), method)
    was = is_(clean, RangeStatus.OK)
    assert is_(spoiled, RangeStatus.MISFIT)[was].mean() > 0.6
    assert is_(spoiled, RangeStatus.OK)[was].mean() < 0.02


@METHODS
def test_the_root_near_the_observer_is_kept_as_a_candidate_but_not_chosen(simulate, method):
    """The co-moving root near the Earth, a = 1.0 au, is wrong unless the object is there."""
    s = simulate(3000, 4.0, seed=91).with_noise(np.random.default_rng(1))
    solved = judged(s, method)
    c = solved.candidates
    semimajor = -0.5 * GM_SUN / c.energy
    near = (c.roots.rho < 0.02) & (np.abs(semimajor - 1.0) < 0.1)
    spurious = near & (s.rho[c.roots.arc] > 0.05)
    assert spurious.sum() > 3
    ok = is_(solved, RangeStatus.OK)
    assert not (c.chosen & spurious & ok[c.roots.arc]).any()


@METHODS
def test_real_close_objects_keep_their_root(simulate, method):
    s = simulate(4000, 0.15, seed=92)
    close = np.nonzero(s.rho < 0.02)[0]
    s = s.take(close).with_noise(np.random.default_rng(2))
    assert len(s) > 30
    solved = judged(s, method)
    ok = is_(solved, RangeStatus.OK)
    assert ok.mean() > 0.4
    z = np.abs(solved.rho - s.rho)[ok] / np.sqrt(solved.covariance[ok, 0, 0])
    assert z.max() < 5.0


@METHODS
def test_errors_near_the_earth_hold_the_pull_that_is_left_out(simulate, method, monkeypatch):
    """``GM/rho^2`` by ``R_E/rho`` over half the arc, as one more error of an observation."""
    gm_earth, radius = 398_600.4 * DAY_S**2 / AU_KM**3, 6378.137 / AU_KM
    s = simulate(4000, 0.15, seed=92, n_observations=(5, 9))
    s = s.take(np.nonzero(s.rho < 0.02)[0]).with_noise(np.random.default_rng(2))
    found, solved = method(s.arcs), judged(s, method)
    one = found.errors(claimed_law(s.arcs))[1].sum(axis=1)[:, 0, 0]
    k = found.roots.arc
    shift = 0.5 * gm_earth * radius * (0.5 * s.arcs.span[k]) ** 2 / found.roots.rho**4
    square = s.arcs.sum(0.5 * (s.arcs.sigma_ra**2 + s.arcs.sigma_dec**2))[k] / s.arcs.counts[k]
    variance = solved.candidates.roots.covariance[:, 0, 0]
    monkeypatch.setattr("reference.candidates.GM_EARTH", 0.0)
    bare = reference.solve(s.arcs, from_fit(s.arcs), found, Thresholds())
    without = bare.candidates.roots.covariance[:, 0, 0]
    # what is added does not hang on how large the other errors are
    pull = one * shift**2 / square
    if method is laplace:  # fits all observations, of which more than four are no better than four
        pull = pull * np.maximum(s.arcs.counts[k] / 4.0, 1.0)
    np.testing.assert_allclose((variance - without) / variance, pull / variance, atol=1e-3)
    assert (pull > 0.1 * variance).any()


@METHODS
def test_verdicts_do_not_depend_on_the_company(nights, method):
    s = nights[2]
    together = judged(s, method)
    rng = np.random.default_rng(7)
    shuffled = rng.permutation(len(s))
    apart = judged(s.take(shuffled), method)
    np.testing.assert_array_equal(apart.status, together.status[shuffled])
    np.testing.assert_allclose(apart.rho, together.rho[shuffled], rtol=1e-9)


@METHODS
def test_an_unbound_object_is_not_given_a_bound_orbit_that_misses_it(method):
    """Objects at 5 to 40 km/s far from the Sun, four observations over three days."""
    rng = np.random.default_rng(93)
    m = 300
    epoch = rng.uniform(59_000.0, 60_500.0, m)
    position, _ = earth_state(epoch)
    heading, line = (x / norm(x)[:, None] for x in rng.standard_normal((2, m, 3)))
    # not towards the Sun
    line = np.where(dot(line, position)[:, None] < 0.0, -line, line)
    r = position + rng.uniform(0.1, 2.5, m)[:, None] * line
    v_infinity = rng.uniform(5.0, 40.0, m) * DAY_S / AU_KM
    v = np.sqrt(v_infinity**2 + 2.0 * GM_SUN / norm(r))[:, None] * heading
    times = epoch[:, None] + np.array([-1.5, -0.6, 0.4, 1.5])
    s = simulated_arcs.observe(r, v, epoch, times, "G96", sigma=0.2)
    s = s.with_noise(np.random.default_rng(94))
    solved = judged(s, method)
    found = np.abs(solved.rho / s.rho - 1.0) < 0.2
    assert found.mean() > 0.8
    assert (is_(solved, RangeStatus.INADMISSIBLE) & found).mean() > 0.65
    assert (is_(solved, RangeStatus.OK) & ~found).mean() < 0.06


def test_no_roots_at_all(nights):
    s = nights[2].take(np.arange(3))
    found = gauss(s.arcs)
    nothing = type(found.roots)(*(column[:0] for column in found.roots))
    variance, covariance = found.errors(claimed_law(s.arcs))
    found = found._replace(roots=nothing, errors=lambda law: (variance, covariance[:0]))
    solved = solve(s.arcs, from_fit(s.arcs), found, Thresholds())
    assert is_(solved, RangeStatus.NO_ROOT, RangeStatus.UNDETERMINED).all()
    assert np.isnan(solved.rho).all()


def test_thresholds_are_frozen_and_named():
    thresholds = Thresholds(exclusion=5.0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        thresholds.exclusion = 1.0
    with pytest.raises(TypeError):
        Thresholds(no_such_threshold=1.0)


def test_energy_coefficients_give_the_energy_of_the_state(nights):
    s = nights[3]
    attributables = from_fit(s.arcs)
    c = judged(s, laplace, exclusion=0.1).candidates
    coefficients = attributables.energy_coefficients
    assert coefficients.shape == (len(s), 6)
    np.testing.assert_allclose(coefficients[:, 0], norm(attributables.position) ** 2)
    assert len(c.energy) == len(c.roots.rho)


@METHODS
def test_the_compiled_verdict_is_that_of_numpy(nights, method):
    for s in nights:
        found, attributables = method(s.arcs), from_fit(s.arcs)
        solved = solve(s.arcs, attributables, found, Thresholds())
        with np.errstate(all="ignore"):
            expected = reference.solve(s.arcs, attributables, found, Thresholds())
        # where a threshold is met to the last digit the rounding decides
        assert (solved.status == expected.status).mean() > 0.995
        same = solved.candidates.chosen == expected.candidates.chosen
        assert same.mean() > 0.995
        for name in ("admissible", "plausible"):
            pair = getattr(solved.candidates, name), getattr(expected.candidates, name)
            assert (pair[0] == pair[1]).mean() > 0.995
        scale = np.maximum(expected.candidates.chi2, 1e-3)
        assert (
            np.percentile(np.abs(solved.candidates.chi2 - expected.candidates.chi2) / scale, 99)
            < 1e-6
        )
        covariance, its = (x.candidates.roots.covariance for x in (solved, expected))
        np.testing.assert_allclose(covariance[:, 0, 0], its[:, 0, 0], rtol=1e-4)
        np.testing.assert_allclose(solved.error_scales, expected.error_scales, rtol=1e-6)
