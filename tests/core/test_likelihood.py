"""The likelihood of a range and a range-rate: its integrals by hand, and what must not matter."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import simulated_arcs
from compiled_nights import prepared
from scipy.integrate import quad
from scipy.spatial.transform import Rotation

from neoranging.constants import ARCSEC
from neoranging.core.geometry import radec
from neoranging.core.likelihood import LOG_SCALES, begin_arc, fit_node, largest_errors
from neoranging.core.noise import LARGEST_SHARE, SHARE_OF_CLAIM, SHARE_SPREAD
from neoranging.core.priors import simple_prior
from neoranging.core.systematic import complete, systematic
from neoranging.lab.simulation.astrometric_errors import displaced

FOUR = np.int64(4)


def night_of(n, *, visit=None, seed=0, span=0.1, rho=0.3, noise=0.3, sigma=0.3):
    """One arc of n observations, with errors of a part of what they claim."""
    made = simulated_arcs.simulate(
        1, span, seed=seed, n_observations=n, station="G96", rho=rho, sigma=sigma
    )
    arcs = made.with_noise(np.random.default_rng(seed), noise).arcs
    return arcs if visit is None else replace(arcs, visit=np.array(visit))


def moved(arcs, east, north):
    """The same observations, moved on the sky by arcseconds."""
    offset = np.broadcast_to(np.array([east, north]).reshape(2, -1) * ARCSEC, (2, len(arcs.t)))
    ra, dec = displaced(arcs.direction, offset)
    return replace(arcs, ra=ra, dec=dec)


def posterior_of(arcs, kind="log-uniform"):
    night, _ = prepared(arcs)
    return systematic(night, np.full(len(arcs), np.nan), simple_prior(kind))


def covariances(night, scale):
    """Covariance of the observations of one visit along and across, shape (2, n, n)."""
    variance = (scale * night.sigma) ** 2 + night.clock**2
    n = len(variance)
    return variance.T[:, :, None] * np.eye(n) + night.offset[0][:, None, None] * np.ones((n, n))


def by_hand(night, space):
    """Logarithm of the integral over the scale of one visit, attributable integrated over too."""
    n = len(night.time)
    design, y = space.slope[:n, :, :4], space.miss[:n]

    def log_density(log_s):
        normal, right, value = np.zeros((4, 4)), np.zeros(4), 0.0
        for axis, covariance in enumerate(covariances(night, np.exp(log_s))):
            weighted = np.linalg.solve(covariance, np.column_stack([design[:, axis], y[:, axis]]))
            normal += design[:, axis].T @ weighted[:, :4]
            right += design[:, axis].T @ weighted[:, 4]
            value -= y[:, axis] @ weighted[:, 4] + np.linalg.slogdet(covariance)[1]
        value += right @ np.linalg.solve(normal, right) - np.linalg.slogdet(normal)[1]
        return 0.5 * (value - ((log_s - np.log(SHARE_OF_CLAIM)) / SHARE_SPREAD) ** 2)

    # both ends of the scales are those of the kernel
    low, high = np.log(SHARE_OF_CLAIM) - 3.0 * SHARE_SPREAD, np.log(LARGEST_SHARE)
    top = max(log_density(x) for x in np.linspace(low, high, 40))
    total, _ = quad(lambda x: np.exp(log_density(x) - top), low, high, epsrel=1e-8, limit=200)
    a = design.reshape(-1, 4)
    return np.log(total) + top + 0.5 * np.linalg.slogdet(a.T @ a)[1]


class TestScales:
    @pytest.mark.parametrize("n", [3, 4, 8])
    @pytest.mark.parametrize("noise", [0.1, 0.5, 1.0])
    def test_of_one_visit_are_integrated_over(self, n, noise):
        """Between nodes that fit well and such that fit badly."""
        arcs = night_of(n, noise=noise, seed=n, rho=0.1, span=0.15)
        night, space = prepared(arcs)
        begin_arc(night, 0, space)
        values = []
        for rho in (0.05, 0.08, 0.1, 0.12, 0.2):
            space.fit[:] = 0.0
            likelihood, *_ = fit_node(night, 0, rho, 0.0, FOUR, space)
            values.append([likelihood, by_hand(night, space)])
        kernel, expected = np.array(values).T
        assert np.ptp(expected) > 0.05
        near = expected > expected.max() - 12.0
        difference = (kernel - expected)[near]
        # twelve nodes for the scale; eight observations leave it little room
        np.testing.assert_allclose(difference - difference.mean(), 0.0, atol=0.06)

    def test_two_observations_fit_every_orbit_alike(self):
        posterior = posterior_of(night_of(2, rho=0.2))
        np.testing.assert_allclose(posterior.log_likelihood, posterior.log_likelihood[0], atol=1e-6)

    def test_scatter_widens_what_is_left(self):
        """Residuals of larger size say that all errors are larger."""
        widths = []
        for noise in (0.05, 0.3, 1.0):
            arcs = night_of(8, noise=noise, seed=4, span=0.25)
            widths.append(np.ptp(np.log(posterior_of(arcs).quantile([0.05, 0.95])[0])))
        assert widths[0] < widths[1] < widths[2]


class TestOffsets:
    def test_of_a_single_visit_do_not_matter(self):
        arcs = night_of(5)
        plain, shifted = (posterior_of(one) for one in (arcs, moved(arcs, 0.4, -0.3)))
        expected = np.log(plain.quantile([0.05, 0.5, 0.95])[0])
        values = np.log(shifted.quantile([0.05, 0.5, 0.95])[0])
        np.testing.assert_allclose(values, expected, atol=2e-3 * np.ptp(expected))

    def test_common_to_two_visits_do_not_matter(self):
        arcs = night_of(6, visit=[0, 0, 0, 1, 1, 1], span=0.3)
        plain, shifted = (posterior_of(one) for one in (arcs, moved(arcs, -0.3, 0.5)))
        expected = np.log(plain.quantile([0.05, 0.5, 0.95])[0])
        values = np.log(shifted.quantile([0.05, 0.5, 0.95])[0])
        np.testing.assert_allclose(values, expected, atol=5e-3 * np.ptp(expected))

    def test_may_bend_the_path_of_visits_apart(self):
        """Three visits: an offset of the middle one is a bend, and is not taken for one."""
        apart = [0, 0, 1, 1, 2, 2]
        alone, together = (night_of(6, visit=visit, span=0.3, noise=0.1) for visit in (apart, None))
        widths = [
            np.ptp(np.log(posterior_of(arcs).quantile([0.05, 0.95])[0]))
            for arcs in (alone, together)
        ]
        assert widths[0] > 1.5 * widths[1]

    def test_labels_of_visits_do_not_matter(self):
        one, other = (
            night_of(6, visit=v, span=0.3) for v in ([5, 5, 2, 2, 2, 5], [0, 0, 1, 1, 1, 0])
        )
        np.testing.assert_allclose(
            posterior_of(one).quantile([0.1, 0.9]),
            posterior_of(other).quantile([0.1, 0.9]),
            rtol=1e-9,
        )


class TestAxes:
    @pytest.mark.parametrize("seed", [1, 2])
    def test_of_space_may_be_turned(self, seed):
        """A far object, that the Sun alone moves, seen in other axes; also over a pole."""
        arcs = night_of(5, rho=1.5, span=0.2)
        turn = Rotation.random(random_state=seed)
        if seed == 2:
            turn = Rotation.align_vectors([[0.0, 0.0, 1.0]], arcs.direction[2:3])[0]
        ra, dec = radec(turn.apply(arcs.direction))
        turned = replace(
            arcs,
            ra=ra,
            dec=dec,
            position=turn.apply(arcs.position),
            velocity=turn.apply(arcs.velocity),
        )
        posteriors = [far_posterior(one) for one in (arcs, turned)]
        levels = [0.05, 0.25, 0.5, 0.75, 0.95]
        expected, values = (np.log(one.quantile(levels)[0]) for one in posteriors)
        np.testing.assert_allclose(values, expected, atol=1e-3 * np.ptp(expected))
        expected, values = (one.rate_quantile(levels)[0] for one in posteriors)
        np.testing.assert_allclose(values, expected, atol=1e-3 * np.ptp(expected))

    def test_of_claims_may_be_turned_into_each_other(self):
        """Sizes along right ascension and declination, of a motion along either."""
        arcs = night_of(5, rho=1.5, span=0.2)
        wide = replace(arcs, sigma_ra=3.0 * arcs.sigma_ra)
        tall = replace(arcs, sigma_dec=3.0 * arcs.sigma_dec)
        night, other = (prepared(one)[0] for one in (wide, tall))
        assert not np.allclose(night.sigma, other.sigma)
        np.testing.assert_allclose(
            (night.sigma**2).sum(axis=1), (other.sigma**2).sum(axis=1), rtol=1e-12
        )


def far_posterior(arcs):
    """Posterior with the nodes beyond the reach of the Earth alone."""
    posterior = posterior_of(arcs, "uniform")
    far = np.where(posterior.rho > 0.3, posterior.log_prior, -np.inf)
    return posterior.with_log_prior(far)


class TestMisfits:
    def excess(self, arcs):
        night, _ = prepared(arcs)
        rho, rho_dot = (posterior_of(arcs).average(x) for x in posterior_points(arcs))
        return complete(night, np.zeros(1, dtype=np.int64), rho, rho_dot).excess[0]

    def test_are_measured_by_the_largest_errors(self):
        arcs = night_of(5, noise=2.0, seed=3)
        night, space = prepared(arcs)
        begin_arc(night, 0, space)
        space.fit[:] = 0.0
        fit_node(night, 0, 0.3, 0.0, FOUR, space)
        expected = sum(
            space.miss[:5, axis] @ np.linalg.solve(covariance, space.miss[:5, axis])
            for axis, covariance in enumerate(covariances(night, np.exp(LOG_SCALES[-1])))
        )
        assert largest_errors(night, 0, space) == pytest.approx(expected, rel=1e-9)
        assert np.exp(LOG_SCALES[-1]) == pytest.approx(LARGEST_SHARE, rel=0.05)

    def test_of_one_position_grow_as_its_square(self):
        arcs = night_of(6, noise=0.2, span=0.05)
        stray = np.zeros(6)
        stray[2] = 1.0
        chi2 = [self.excess(moved(arcs, np.zeros(6), k * stray)) for k in (0.0, 4.0, 8.0)]
        assert chi2[0] < 8.0
        assert chi2[1] > 40.0
        assert chi2[2] / chi2[1] == pytest.approx(4.0, rel=0.2)

    def test_of_visits_that_do_not_belong_together(self):
        arcs = night_of(9, visit=np.repeat([0, 1, 2], 3), noise=0.2, span=0.1)
        middle = np.repeat([0.0, 1.0, 0.0], 3)
        chi2 = [self.excess(moved(arcs, np.zeros(9), k * middle)) for k in (0.0, 20.0)]
        assert chi2[0] < 12.0
        assert chi2[1] > 100.0


def posterior_points(arcs):
    """Ranges and range-rates of the nodes of `posterior_of`."""
    posterior = posterior_of(arcs)
    return posterior.rho, posterior.rho_dot
