"""Compiled predictions of a node: against other integrators, and their partial derivatives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import simulated_arcs
from compiled_nights import prepared
from scipy.integrate import solve_ivp

from neoranging.constants import ARCSEC, C_AU_PER_DAY, GM_EARTH, GM_MOON, GM_SUN
from neoranging.core.geometry import cross, dot, norm
from neoranging.core.noise import LEAST_CLAIM_RAD, OFFSET, TIMING_D, VISIT_TIMING_D
from neoranging.core.prediction import sight
from neoranging.core.sightings import (
    differentiate,
    differentiate_paths,
    node_state,
    predict_by_sun,
    predict_in_steps,
)


def predicted(night, space, rho, rho_dot, n_bodies, fit=(0.0, 0.0, 0.0, 0.0, 0.0)):
    """Directions and distances of a node of the first arc; 0 bodies for the series of the Sun."""
    space.fit[:] = fit
    node_state(night, 0, rho, rho_dot + fit[4], space)
    if n_bodies:
        assert predict_in_steps(night, 0, rho, rho_dot + fit[4], n_bodies, space)
    else:
        predict_by_sun(night, 0, rho, rho_dot + fit[4], space)
    n = night.offsets[1]
    return space.sight[:n, :3].copy(), space.sight[:n, 3].copy()


def one_arc(simulate, span, rho, seed=0, n=7):
    return simulate(1, span, seed=seed, n_observations=n, station="G96", rho=rho).arcs


class TestNights:
    @pytest.fixture(scope="class")
    @classmethod
    def arcs(cls):
        arcs = simulated_arcs.simulate(5, 0.2, seed=3, n_observations=4).arcs
        rng = np.random.default_rng(3)
        sigma = rng.uniform(0.1, 1.0, (2, 20)) * ARCSEC
        return replace(arcs, sigma_ra=sigma[0], sigma_dec=sigma[1], visit=np.tile([7, 3, 3, 7], 5))

    def test_axes_are_along_and_across_the_motion(self, arcs):
        night, _ = prepared(arcs)
        along, across = night.axes[:, 0], night.axes[:, 1]
        for one, other in ((along, across), (along, arcs.direction), (across, arcs.direction)):
            np.testing.assert_allclose(dot(one, other), 0.0, atol=1e-14)
        np.testing.assert_allclose(across, cross(arcs.direction, along), atol=1e-14)
        middle = arcs.triplet[:, 1]
        way = arcs.direction[middle + 1] - arcs.direction[middle - 1]
        cosine = dot(way, along[middle]) / norm(way)
        assert (cosine > 0.999).all()

    def test_claims_are_turned_to_the_axes(self, arcs):
        night, _ = prepared(arcs)
        total = arcs.sigma_ra**2 + arcs.sigma_dec**2 + 2.0 * LEAST_CLAIM_RAD**2
        np.testing.assert_allclose(np.sum(night.sigma**2, axis=1), total, rtol=1e-12)
        round_claims = replace(arcs, sigma_ra=arcs.sigma_dec)
        expected = np.hypot(arcs.sigma_dec, LEAST_CLAIM_RAD)
        for axis in prepared(round_claims)[0].sigma.T:
            np.testing.assert_allclose(axis, expected, rtol=1e-12)

    def test_visits_share_offsets_and_clocks(self, arcs):
        night, _ = prepared(arcs)
        np.testing.assert_array_equal(night.n_visits, 2)
        np.testing.assert_array_equal(night.visit, np.tile([1, 0, 0, 1], 5))
        speed = night.clock[:, 0] / TIMING_D
        expected = OFFSET**2 * night.sigma**2
        expected[:, 0] += (VISIT_TIMING_D * speed) ** 2
        for rows in ([0, 3], [1, 2], [16, 19]):
            mean = expected[rows].mean(axis=0)
            np.testing.assert_allclose(night.offset[rows], np.tile(mean, (2, 1)), rtol=1e-12)
        np.testing.assert_array_equal(night.clock[:, 1], 0.0)

    def test_a_still_object_has_axes_too(self):
        arcs = simulated_arcs.simulate(1, 0.1, seed=4, n_observations=3).arcs
        night, _ = prepared(replace(arcs, ra=np.full(3, 1.0), dec=np.full(3, 0.5)))
        np.testing.assert_allclose(norm(night.axes), 1.0)
        assert np.isfinite(night.sigma).all()


class TestPredictions:
    @pytest.mark.parametrize("rho", [0.3, 1.0, 4.0])
    @pytest.mark.parametrize("span", [0.02, 0.3, 1.0])
    @pytest.mark.parametrize("n_bodies", [0, 1])
    def test_far_away_are_two_body_motion(self, simulate, rho, span, n_bodies):
        arcs = one_arc(simulate, span, rho)
        night, space = prepared(arcs)
        rho_dot = 0.01
        direction, distance = predicted(night, space, rho, rho_dot, n_bodies)
        n, middle = len(arcs.t), arcs.triplet[0, 1]
        r, v = (np.tile(x, (n, 1)) for x in space.state[:2])
        epoch = np.full(n, arcs.t[middle] - rho / C_AU_PER_DAY)
        exact = sight(r, v, epoch, arcs.t, arcs.position, arcs.velocity)
        # a ten-thousandth of a claim of 0.2"
        assert norm(direction - exact.direction).max() < 1e-4 * 0.2 * ARCSEC
        np.testing.assert_allclose(distance, exact.rho, rtol=1e-8)

    @pytest.mark.parametrize(("rho", "span"), [(2e-4, 0.02), (0.001, 0.1), (0.01, 0.4), (0.05, 1)])
    @pytest.mark.parametrize("rho_dot", [-0.004, 0.006])
    def test_near_the_earth_are_those_of_an_integrator(self, simulate, rho, span, rho_dot):
        arcs = one_arc(simulate, span, rho, seed=5)
        night, space = prepared(arcs)
        space.fit[:] = 0.0
        node_state(night, 0, rho, rho_dot, space)
        assert predict_in_steps(night, 0, rho, rho_dot, 3, space)
        direction, distance = space.sight[:, :3].copy(), space.sight[:, 3].copy()
        start = np.concatenate([space.state[0], space.state[1]])
        begun = -rho / C_AU_PER_DAY
        for i, time in enumerate(night.time):
            emitted = time - distance[i] / C_AU_PER_DAY
            path = integrated(night.attractors[0], start, begun, emitted) - arcs.position[i]
            assert abs(norm(path) - distance[i]) < 1e-7 * rho
            # a path that the Earth hardly bends is a series of few terms; next to the Earth,
            # 30 000 km away, steps are of the size of the change
            allowed = 2e-3 if rho > 5e-4 else 3e-3
            assert norm(path / norm(path) - direction[i]) < allowed * ARCSEC

    def test_a_path_into_the_earth_is_none(self, simulate):
        night, space = prepared(one_arc(simulate, 0.5, 0.001, seed=5))
        space.fit[:] = 0.0
        earth = night.attractors[0, 0, :, 0]
        # straight down from above, at rest far away
        down = earth - night.place[0, 0]
        night.frame[0, 0] = -down / norm(down)
        night.frame[0, 1] = 0.0
        node_state(night, 0, 0.001, -0.006, space)
        assert not predict_in_steps(night, 0, 0.001, -0.006, 3, space)


def integrated(paths, start, begun, end):
    """Position under Sun, Earth and Moon, the last two on given polynomials, by DOP853."""
    powers = np.arange(paths.shape[-1])

    def bodies(t):
        return paths @ t**powers

    def tide():
        """Pull of the other bodies on the barycentre: what is left of its acceleration."""
        share = GM_EARTH / (GM_EARTH + GM_MOON)
        place = share * paths[0] + (1.0 - share) * paths[1]
        return 2.0 * place[:, 2] + GM_SUN * place[:, 0] / norm(place[:, 0]) ** 3

    others = tide()

    def rate(t, y):
        pull = others - GM_SUN * y[:3] / norm(y[:3]) ** 3
        for gm, body in zip((GM_EARTH, GM_MOON), bodies(t), strict=True):
            pull = pull - gm * (y[:3] - body) / norm(y[:3] - body) ** 3
        return np.concatenate([y[3:], pull])

    return solve_ivp(rate, (begun, end), start, method="DOP853", rtol=1e-13, atol=1e-16).y[:3, -1]


class TestDerivatives:
    def by_differences(self, night, space, rho, rho_dot, n_bodies):
        """Derivatives of the predicted directions along the axes, shape (n, 2, 5)."""
        span = night.time[-1] - night.time[0]
        steps = np.array([1e-5, 1e-5, 1e-5 / span, 1e-5 / span, 1e-5 * rho / span])
        slopes = []
        for p, step in enumerate(steps):
            ends = [
                predicted(night, space, rho, rho_dot, n_bodies, sign * step * np.eye(5)[p])[0]
                for sign in (1.0, -1.0)
            ]
            slopes.append(np.einsum("nai,ni->na", night.axes, (ends[0] - ends[1]) / (2.0 * step)))
        return np.stack(slopes, axis=-1)

    def assert_alike(self, slope, expected, tolerance):
        """Each column relative to its largest element."""
        size = np.abs(expected).max(axis=(0, 1))
        assert (np.abs(slope - expected).max(axis=(0, 1)) < tolerance * size).all()

    @pytest.mark.parametrize(("rho", "span"), [(1.0, 0.02), (0.3, 0.3), (0.05, 0.1), (0.005, 0.02)])
    def test_of_straight_motion(self, simulate, rho, span):
        night, space = prepared(one_arc(simulate, span, rho, seed=6))
        rho_dot = -0.003
        expected = self.by_differences(night, space, rho, rho_dot, 1)
        predicted(night, space, rho, rho_dot, 1)
        differentiate(night, 0, rho, rho_dot, space)
        self.assert_alike(space.slope, expected, 1e-3)
        # residuals are observed minus predicted
        off = np.einsum("nai,ni->na", night.axes, night.direction - space.sight[:, :3])
        np.testing.assert_allclose(space.miss, off, atol=1e-16)

    @pytest.mark.parametrize(("rho", "span"), [(5e-4, 0.02), (0.002, 0.1)])
    def test_where_the_earth_bends_the_path(self, simulate, rho, span):
        night, space = prepared(one_arc(simulate, span, rho, seed=5))
        rho_dot = 0.004
        expected = self.by_differences(night, space, rho, rho_dot, 3)
        predicted(night, space, rho, rho_dot, 3)
        differentiate(night, 0, rho, rho_dot, space)
        differentiate_paths(night, 0, rho, rho_dot, 3, np.int64(5), space)
        self.assert_alike(space.slope, expected, 1e-3)
