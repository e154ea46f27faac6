"""Gauss's method: the series against an independent writing, exact orbits, errors."""

import numpy as np
import pytest
import simulated_arcs
from claimed_errors import claimed_errors
from reference import gauss as reference

from neoranging.constants import ARCSEC, C_AU_PER_DAY, GM_SUN
from neoranging.core.attributable import from_fit
from neoranging.core.candidates import Thresholds, solve
from neoranging.core.gauss import Triplets, gauss, gauss_orbits
from neoranging.core.geometry import norm
from neoranging.core.kepler import propagate
from neoranging.core.noise import LEAST_USUAL_SHARE, error_law
from neoranging.core.status import RangeStatus


def textbook_gauss(t, L, R, mu):
    """All roots of one triplet, as textbooks write them (Curtis, algorithm 5.5)."""
    tau1, tau3 = t[0] - t[1], t[2] - t[1]
    tau = tau3 - tau1
    p = [np.cross(L[1], L[2]), np.cross(L[0], L[2]), np.cross(L[0], L[1])]
    d0 = L[0] @ p[0]
    D = np.array([[R[i] @ p[j] for j in range(3)] for i in range(3)])
    A = (-D[0, 1] * tau3 / tau + D[1, 1] + D[2, 1] * tau1 / tau) / d0
    B = (D[0, 1] * (tau3**2 - tau**2) * tau3 / tau + D[2, 1] * (tau**2 - tau1**2) * tau1 / tau) / (
        6.0 * d0
    )
    E, R2 = R[1] @ L[1], R[1] @ R[1]
    roots = np.roots(
        [1, 0, -(A**2 + 2 * A * E + R2), 0, 0, -2 * mu * B * (A + E), 0, 0, -((mu * B) ** 2)]
    )
    found = []
    for x in roots[(np.abs(roots.imag) < 1e-8 * np.abs(roots)) & (roots.real > 0.0)].real:
        u = mu / x**3
        rho2 = A + u * B
        f1, f3 = 1.0 - 0.5 * u * tau1**2, 1.0 - 0.5 * u * tau3**2
        g1, g3 = tau1 - u * tau1**3 / 6.0, tau3 - u * tau3**3 / 6.0
        c1 = tau3 / tau * (1.0 + u / 6.0 * (tau**2 - tau3**2))
        c3 = -tau1 / tau * (1.0 + u / 6.0 * (tau**2 - tau1**2))
        known = R[1] + rho2 * L[1] - c1 * R[0] - c3 * R[2]
        # the part out of the plane of the outer directions vanishes by the choice of rho2
        (a, b), *_ = np.linalg.lstsq(np.stack([L[0], L[2]], axis=1), known, rcond=None)
        r1, r3 = R[0] + a / c1 * L[0], R[2] + b / c3 * L[2]
        if rho2 > 0.0:
            found.append((rho2, (-f3 * r1 + f1 * r3) / (f1 * g3 - f3 * g1)))
    return sorted(found, key=lambda root: root[0])


def triplets_of(arcs):
    rows = arcs.triplet
    return Triplets(arcs.t[rows], arcs.direction[rows], arcs.position[rows])


def volume(arcs):
    """Triple products of the three directions of each arc."""
    return np.linalg.det(arcs.direction[arcs.triplet])


@pytest.fixture(scope="module")
def ten_days(simulate):
    return simulate(300, 10.0, seed=21)


def test_the_series_is_that_of_the_textbooks(ten_days):
    triplets = triplets_of(ten_days.arcs)
    found = gauss_orbits(triplets, light_speed=np.inf, max_iterations=0)
    assert found.converged.all()
    compared = 0
    for k in range(len(ten_days)):
        expected = textbook_gauss(*(x[k] for x in triplets), GM_SUN)
        mine = np.nonzero(found.arc == k)[0]
        mine = mine[np.argsort(found.ranges[mine, 1])]
        if len(mine) != len(expected):
            continue  # a double root that the eigenvalues lose
        for root, (rho, velocity) in zip(mine, expected, strict=True):
            assert found.ranges[root, 1] == pytest.approx(rho, rel=1e-6, abs=1e-9)
            np.testing.assert_allclose(found.v[root], velocity, rtol=1e-5, atol=1e-7)
            compared += 1
    assert compared > 0.98 * len(found.arc)


def test_refined_orbits_pass_through_the_three_sightings(ten_days):
    """Whatever root: the converged orbit is where it was seen, a light time before."""
    triplets = triplets_of(ten_days.arcs)
    found = gauss_orbits(triplets)
    k = np.nonzero(found.converged)[0]
    assert len(k) > 0.6 * len(ten_days)
    t, L, R = (x[found.arc[k]] for x in triplets)
    emission = t - found.ranges[k] / C_AU_PER_DAY
    for i in range(3):
        r, _ = propagate(found.r[k], found.v[k], emission[:, i] - emission[:, 1])
        path = r - R[:, i]
        miss = norm(path - norm(path)[:, None] * L[:, i])
        assert np.percentile(miss, 99.0) < 1e-9
        assert miss.max() < 1e-4  # a bend of nearly nothing leaves few digits
        off = np.abs(norm(path) - found.ranges[k, i])
        assert np.percentile(off, 99.0) < 1e-9


def test_a_planted_orbit_is_among_the_roots_in_any_units():
    """A geocentric orbit in metres and seconds, no light time, observer on a small circle."""
    mu = 3.986004418e14
    rng = np.random.default_rng(1)
    m, t = 200, np.array([-40.0, 5.0, 60.0])
    r = np.array([8.0e6, 1.0e6, 2.0e6]) + 1e6 * rng.standard_normal((m, 3))
    v = np.array([-1.0e3, 6.0e3, 3.0e3]) + 5e2 * rng.standard_normal((m, 3))
    angle = 7.29e-5 * t
    site = 6.378e6 * np.stack([np.cos(angle) * 0.9, np.sin(angle) * 0.9, 0 * t + 0.43], axis=1)
    seen = np.stack([propagate(r, v, np.full(m, x), mu)[0] for x in t], axis=1)
    path = seen - site
    ranges = norm(path)
    triplets = Triplets(np.tile(t, (m, 1)), path / ranges[..., None], np.tile(site, (m, 1, 1)))
    found = gauss_orbits(triplets, mu, np.inf)
    best = np.full(m, np.inf)
    k = found.converged
    error = norm(found.r[k] - seen[found.arc[k], 1]) / norm(r)[found.arc[k]]
    np.minimum.at(best, found.arc[k], error)
    assert (best < 1e-8).mean() > 0.97


def test_unconverged_roots_keep_the_series_and_say_so(simulate):
    arcs = simulate(400, 30.0, seed=22).arcs
    series, refined = gauss(arcs, max_iterations=0), gauss(arcs)
    lost = ~refined.roots.converged
    assert 0 < lost.sum() < 0.7 * len(lost)
    np.testing.assert_array_equal(series.roots.arc, refined.roots.arc)
    kept = series.roots.rho[lost] == refined.roots.rho[lost]
    assert kept.mean() > 0.97  # the others settled on ranges behind the observer
    assert series.roots.converged.all()
    assert np.isfinite(refined.roots.rho).all()
    assert np.isfinite(refined.roots.r).all()


def test_arcs_that_bend_less_than_their_noise_are_not_refined(simulate):
    s = simulate(300, 0.03, seed=23)
    found = gauss(s.arcs)
    # a bend within a third of a standard error, as it is claimed
    flat = claimed_errors(s.arcs, found)[0] * LEAST_USUAL_SHARE * 3.0 >= 1.0
    assert flat.mean() > 0.3
    assert not found.roots.converged[flat[found.roots.arc]].any()


def test_noise_is_the_scatter_of_the_bend(simulate):
    s = simulate(40, 0.5, seed=24, n_observations=3)
    rng = np.random.default_rng(2)
    bends = np.stack([volume(s.with_noise(rng).arcs) for _ in range(400)])
    claimed = claimed_errors(s.arcs, gauss(s.arcs))[0] * np.abs(volume(s.arcs))
    np.testing.assert_allclose(bends.std(axis=0) / claimed, 1.0, atol=0.17)


@pytest.mark.parametrize("span", [1.0, 3.0, 10.0, 30.0])
def test_noise_free_arcs_give_back_their_range_or_say_why_not(simulate, span):
    """With four observations or more; three alone cannot tell one exact root from another."""
    s = simulate(1500, span, seed=25, n_observations=(4, 9))
    solved = solve(s.arcs, from_fit(s.arcs), gauss(s.arcs), Thresholds())
    ok = solved.status == RangeStatus.OK.code
    assert ok.mean() > 0.4
    error = np.abs(solved.rho / s.rho - 1.0)[ok]
    # of a few arcs another root fits within the claimed 0.2 arcsec as well as the true one
    assert (error > 1e-6).mean() <= (0.001 if span <= 3.0 else 0.01)
    assert np.percentile(error, 90.0) < 1e-9
    rate = np.abs(solved.rho_dot - s.rho_dot)[ok]
    assert np.percentile(rate, 90.0) < 1e-9


@pytest.mark.parametrize(("rho", "span"), [(0.0005, 0.4), (0.01, 0.15), (0.1, 0.5), (1.0, 8.0)])
def test_covariance_is_the_scatter_of_noisy_ranges(rho, span):
    arcs, found = noisy_ranges(rho, span, gauss)
    assert_calibrated(arcs, found)


def noisy_ranges(rho, span, method, m=400, sigma=0.1):
    """Roots near the truth of one object at range ``rho`` observed with m draws of noise."""
    position, velocity = simulated_arcs.ephemeris.observer_state(
        simulated_arcs.observatories.itrf_positions(np.array(["F51"])), np.array([59_400.4])
    )
    outward = position[0] / norm(position[0])
    aside = np.cross(outward, [0.0, 0.0, 1.0])
    direction = outward + 0.5 * aside + np.array([0.0, 0.0, 0.25])
    r = position + rho * direction / norm(direction)
    v = velocity * np.array([0.97, 1.01, 0.9]) + np.array([0.002, 0.001, 0.0015])
    v *= np.sqrt(norm(position) / norm(r))[:, None]
    repeat = [np.repeat(x, m, axis=0) for x in (r, v, np.array([59_400.4]))]
    times = [59_400.4 + span * np.array([-0.5, -0.2, 0.05, 0.5])] * m
    exact = simulated_arcs.observe(*repeat, times, "F51", sigma)
    noisy = exact.with_noise(np.random.default_rng(int(1000 * rho)))
    classical = method(noisy.arcs)
    found = classical.roots._replace(covariance=claimed_errors(noisy.arcs, classical)[1])
    near = np.abs(found.rho / exact.rho[0] - 1.0) < 0.5
    return exact, type(found)(*(column[near & found.converged] for column in found))


def assert_calibrated(exact, found):
    m = len(exact)
    assert len(np.unique(found.arc)) > 0.9 * m
    assert len(found.arc) <= m
    offsets = np.stack([found.rho - exact.rho[0], found.rho_dot - exact.rho_dot[0]])
    claimed = np.median(found.covariance, axis=0)
    spread = np.sqrt(np.diag(claimed))
    assert spread[0] < 0.12 * exact.rho[0]  # linear enough
    sample = np.mean(offsets[:, None] * offsets[None], axis=-1)
    # four sigma of a variance from m draws is 4 sqrt(2 / m) = 0.28
    scaled = (sample - claimed) / np.outer(spread, spread)
    assert np.abs(scaled).max() < 0.3


def test_sigma_sets_the_scale_of_the_errors(simulate):
    s = simulate(100, 0.5, seed=26, sigma=0.2)
    t = simulate(100, 0.5, seed=26, sigma=0.4)
    first, second = gauss(s.arcs, max_iterations=0), gauss(t.arcs, max_iterations=0)
    (noise, covariance), (twice, four_times) = (
        claimed_errors(some.arcs, found) for some, found in ((s, first), (t, second))
    )
    np.testing.assert_allclose(four_times, 4.0 * covariance, rtol=1e-9)
    np.testing.assert_allclose(twice, 2.0 * noise, rtol=1e-9)


def test_a_single_arcsecond_moves_a_distant_range_by_what_it_claims(simulate):
    """Numerical derivative of the range by one direction against the linearised one."""
    s = simulate(60, 3.0, seed=27, n_observations=3)
    step = 1e-3 * ARCSEC
    found = gauss(s.arcs)
    base = found.roots._replace(covariance=claimed_errors(s.arcs, found)[1])
    dec = s.arcs.dec.copy()
    total = np.zeros(len(base.rho))
    for k in range(3):
        for axis in range(2):
            shifted = [s.arcs.ra.copy(), dec.copy()]
            rows = s.arcs.triplet[:, k]
            shifted[axis][rows] += step / (np.cos(dec[rows]) if axis == 0 else 1.0)
            moved = gauss(s._with(*shifted).arcs).roots
            if len(moved.rho) != len(base.rho):
                pytest.skip("a root vanished under the step")
            total += ((moved.rho - base.rho) / step * 0.2 * ARCSEC) ** 2
    k = base.converged & (np.abs(base.rho / s.rho[base.arc] - 1.0) < 1e-6)
    assert k.sum() > 20
    ratio = np.sqrt(base.covariance[k, 0, 0] / total[k])
    # the claim uses the series where the root uses the exact motion
    assert np.percentile(np.abs(ratio - 1.0), 80.0) < 0.1


@pytest.mark.parametrize(
    ("span", "n_observations"), [(0.05, (3, 5)), (0.3, (3, 9)), (3.0, (3, 8)), (30.0, 3)]
)
def test_the_compiled_method_is_that_of_numpy(simulate, span, n_observations):
    s = simulate(800, span, seed=28, n_observations=n_observations)
    arcs = s.with_noise(np.random.default_rng(4), 0.4).arcs
    found = gauss(arcs)
    with np.errstate(all="ignore"):
        expected = reference.gauss(arcs)
    np.testing.assert_array_equal(found.roots.arc, expected.roots.arc)
    np.testing.assert_allclose(found.equation[:4], expected.equation[:4], rtol=1e-9, atol=1e-12)
    # orbits that nearly escape the iteration may do so with one rounding and not with another
    same = found.roots.converged == expected.roots.converged
    assert same.mean() > 0.995
    for name, tolerance in {"rho": 2e-8, "rho_dot": 2e-6, "r": 2e-8, "v": 2e-6}.items():
        pair = getattr(found.roots, name)[same], getattr(expected.roots, name)[same]
        np.testing.assert_allclose(*pair, rtol=tolerance, atol=1e-9, err_msg=name)
        assert np.median(np.abs(pair[0] / pair[1] - 1.0)) < 1e-9
    law = error_law(arcs)
    (noise, covariance), (its_noise, its_covariance) = found.errors(law), expected.errors(law)
    np.testing.assert_allclose(noise, its_noise, rtol=1e-7)
    spread = np.sqrt(np.einsum("kpii->kpi", its_covariance))
    size = spread[..., :, None] * spread[..., None, :] + 1e-300
    np.testing.assert_allclose((covariance / size)[same], (its_covariance / size)[same], atol=1e-4)
