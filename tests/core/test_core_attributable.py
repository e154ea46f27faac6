"""Positions and motions of arcs: three points, weighted parabolas, and their covariance."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import attributable as reference
from reference.attributable import exponential

from neoranging.constants import ARCSEC
from neoranging.core.arcs import Arcs
from neoranging.core.attributable import (
    from_fit,
    from_three_points,
    path_fit,
    plane_point,
    tangent_fit,
    three_point,
)
from neoranging.core.geometry import dot, line_of_sight, radec, sky_basis, wrap_angle


def plane_of(*vectors):
    """Plane coordinates of one direction, given pole, east, north and itself, shape (1, 2)."""
    return np.array([plane_point(*(tuple(vector[0]) for vector in vectors))])


def arcs_of(t, ra, dec, sigma_ra=1e-6, sigma_dec=1e-6):
    """One arc, observer at rest at 1 au."""
    n = len(t)
    return Arcs(
        np.array([0, n]),
        np.asarray(t, dtype=float),
        np.asarray(ra, dtype=float),
        np.asarray(dec, dtype=float),
        *(np.broadcast_to(np.asarray(s, dtype=float), n).copy() for s in (sigma_ra, sigma_dec)),
        np.tile([1.0, 0.0, 0.0], (n, 1)),
        np.zeros((n, 3)),
    )


def parabola_arc(t, ra0, dec0, coefficients, middle, **sigma):
    """Directions whose tangent-plane coordinates are a parabola about observation ``middle``."""
    tau = np.asarray(t) - t[middle]
    powers = np.stack([tau, 0.5 * tau**2], axis=1)
    plane = powers @ np.asarray(coefficients).T
    ra0, dec0 = np.array(ra0), np.array(dec0)
    east, north = sky_basis(ra0, dec0)
    direction = exponential(line_of_sight(ra0, dec0), east, north, plane)
    return arcs_of(t, *radec(direction), **sigma)


class TestThreePoint:
    def test_is_exact_on_parabolas(self):
        t = np.array([[0.0, 0.3, 1.0], [5.0, 5.5, 5.6]])
        tau = t - t[:, 1:2]
        ra, dec = 1.0 + 0.02 * tau - 0.003 * tau**2, 0.4 - 0.01 * tau + 0.002 * tau**2
        motion = three_point(t, ra, dec)
        np.testing.assert_allclose(motion.ra_rate, 0.02, rtol=1e-12)
        np.testing.assert_allclose(motion.dec_rate, -0.01, rtol=1e-12)
        np.testing.assert_allclose(motion.ra_acc, -0.006, rtol=1e-10)
        np.testing.assert_allclose(motion.dec_acc, 0.004, rtol=1e-10)

    def test_does_not_see_the_origin_of_right_ascension(self):
        t = np.array([[0.0, 0.5, 1.0]])
        dec = np.zeros((1, 3))
        ra = np.array([[0.01, 0.0, -0.01]])
        far = three_point(t, ra + 1.0, dec)
        across = three_point(t, ra % (2.0 * np.pi), dec)
        np.testing.assert_allclose(across, far, atol=1e-13)
        assert across.ra_rate[0] == pytest.approx(-0.02)


class TestTangentPlane:
    @given(
        st.floats(0.0, 6.28),
        st.floats(-1.57, 1.57),
        st.floats(0.0, 3.1),
        st.floats(0.0, 6.28),
    )
    def test_logarithm_and_exponential_invert_each_other(self, ra, dec, angle, azimuth):
        ra, dec = np.array([ra]), np.array([dec])
        frame = (line_of_sight(ra, dec), *sky_basis(ra, dec))
        plane = angle * np.array([[np.cos(azimuth), np.sin(azimuth)]])
        direction = exponential(*frame, plane)
        assert dot(direction, direction)[0] == pytest.approx(1.0, abs=1e-15)
        np.testing.assert_allclose(plane_of(*frame, direction), plane, atol=1e-13)

    def test_the_pole_itself(self):
        ra, dec = np.array([1.0]), np.array([0.3])
        frame = (line_of_sight(ra, dec), *sky_basis(ra, dec))
        np.testing.assert_allclose(plane_of(*frame, frame[0]), 0.0, atol=1e-16)
        np.testing.assert_array_equal(exponential(*frame, np.zeros((1, 2))), frame[0])

    def test_small_offsets_keep_their_digits(self):
        ra, dec = np.array([2.0]), np.array([-0.7])
        east, north = sky_basis(ra, dec)
        pole = line_of_sight(ra, dec)
        plane = np.array([[3.0e-9, -4.0e-9]])
        back = plane_of(pole, east, north, exponential(pole, east, north, plane))
        np.testing.assert_allclose(back, plane, atol=2e-16, rtol=0)

    def test_a_great_circle_at_constant_speed_has_no_curvature(self):
        t = np.linspace(0.0, 1.0, 5)
        start, ahead = line_of_sight(np.array(0.4), np.array(1.1)), np.array([0.0, 0.0, 0.0])
        ahead = sky_basis(np.array(0.4), np.array(1.1))[0]
        angle = 0.2 * t[:, None]
        arcs = arcs_of(t, *radec(np.cos(angle) * start + np.sin(angle) * ahead))
        fit = tangent_fit(arcs)
        np.testing.assert_allclose(fit.sky[0, :, 2], 0.0, atol=1e-13)
        assert np.hypot(*fit.sky[0, :, 1]) == pytest.approx(0.2, rel=1e-13)


class TestParabolaFit:
    @settings(max_examples=200, deadline=None)
    @given(
        st.integers(3, 9),
        st.floats(0.01, 30.0),
        st.floats(0.0, 6.28),
        st.floats(-1.5, 1.5),
        st.lists(st.floats(-0.03, 0.03), min_size=4, max_size=4),
        st.integers(0, 10_000),
    )
    def test_recovers_parabolas_exactly(self, n, span, ra, dec, coefficients, seed):
        rng = np.random.default_rng(seed)
        gaps = rng.uniform(0.2, 1.0, n)
        t = 60_000.0 + span * np.cumsum(gaps) / gaps.sum()
        scaled = np.array(coefficients).reshape(2, 2) / [span, span**2]
        sigma = rng.uniform(0.5, 2.0, (2, n)) * 1e-6
        middle = int(arcs_of(t, t, t).triplet[0, 1])
        arcs = parabola_arc(t, ra, dec, scaled, middle, sigma_ra=sigma[0], sigma_dec=sigma[1])
        fit = tangent_fit(arcs)
        # an epoch of 60000 d resolves 7e-12 d, a direction 1e-16 rad
        blur = np.array([1.0, 1.0 / span, 1.0 / span**2]) * (2e-14 + 3e-11 / span)
        expected = np.column_stack([np.zeros(2), scaled])
        assert (np.abs(fit.sky[0] - expected) < 60.0 * blur).all()
        residuals = path_fit(arcs).rest
        assert np.abs(residuals).max() < 1e-12 + 1e-10 / span

    def test_the_operator_is_the_weighted_least_squares_solution(self):
        rng = np.random.default_rng(3)
        t = np.sort(rng.uniform(0.0, 2.0, 8))
        sigma = rng.uniform(1.0, 5.0, 8) * 1e-6
        arcs = arcs_of(t, rng.uniform(0, 0.1, 8), rng.uniform(0, 0.1, 8), sigma, sigma)
        path, fit = path_fit(arcs), tangent_fit(arcs)
        values = rng.standard_normal((8, 2))
        tau = t - fit.epoch[0]
        basis = np.stack([np.ones(8), tau, 0.5 * tau**2], axis=1) / sigma[:, None]
        expected = np.linalg.lstsq(basis, values / sigma[:, None], rcond=None)[0]
        derivatives = values.T @ path.operator / path.scale[0] ** np.arange(3.0)
        np.testing.assert_allclose(derivatives, expected.T, rtol=1e-9)
        covariance = np.linalg.inv(basis.T @ basis)
        np.testing.assert_allclose(fit.covariance[0, 0], covariance, rtol=1e-8)
        np.testing.assert_allclose(fit.covariance[0, 1], covariance, rtol=1e-8)

    def test_covariance_is_the_scatter_of_noisy_fits(self):
        rng = np.random.default_rng(5)
        m, t = 4000, np.array([0.0, 0.02, 0.05, 0.11])
        sigma = np.array([[0.3, 0.5, 0.2, 0.4], [0.6, 0.3, 0.3, 0.2]]) * ARCSEC
        tau = t - t[2]
        dec = 0.9 + 0.02 * tau + rng.standard_normal((m, 4)) * sigma[1]
        ra = 2.0 + 0.05 * tau + rng.standard_normal((m, 4)) * sigma[0] / np.cos(0.9)
        arcs = Arcs(
            np.arange(0, 4 * m + 1, 4),
            np.tile(t, m),
            ra.ravel(),
            dec.ravel(),
            np.tile(sigma[0], m),
            np.tile(sigma[1], m),
            np.ones((4 * m, 3)),
            np.zeros((4 * m, 3)),
        )
        found = from_fit(arcs)
        sample = np.cov(np.stack([found.ra, found.dec, found.ra_rate, found.dec_rate]))
        claimed = found.covariance.mean(axis=0)
        spread = np.sqrt(np.diag(claimed))
        np.testing.assert_allclose(
            sample / np.outer(spread, spread), claimed / np.outer(spread, spread), atol=0.09
        )
        curvature = np.cov(found.curvature.T)
        claimed = found.curvature_covariance.mean(axis=0)
        spread = np.sqrt(np.diag(claimed))
        np.testing.assert_allclose(
            curvature / np.outer(spread, spread), claimed / np.outer(spread, spread), atol=0.09
        )

    def test_repeated_exposures_weigh_like_a_better_one(self):
        t = np.array([0.0, 0.0, 0.5, 1.0])
        twice = arcs_of(t, 0.1 * t, 0.2 - 0.1 * t**2)
        once = arcs_of(
            t[1:], 0.1 * t[1:], 0.2 - 0.1 * t[1:] ** 2, *[np.array([0.5**0.5, 1, 1]) * 1e-6] * 2
        )
        first, second = tangent_fit(twice), tangent_fit(once)
        np.testing.assert_allclose(first.sky, second.sky, rtol=1e-10, atol=1e-14)
        np.testing.assert_allclose(first.covariance, second.covariance, rtol=1e-9)

    def test_two_epochs_make_a_straight_line(self):
        arcs = arcs_of([0.0, 0.5], [0.0, 0.01], [0.1, 0.1])
        fit = tangent_fit(arcs)
        assert (fit.sky[0, :, 2] == 0.0).all()
        assert np.isposinf(fit.covariance[0, :, 2, 2]).all()
        assert np.isfinite(fit.covariance[0, :, :2, :2]).all()
        assert from_fit(arcs).curvature_significance[0] == 0.0
        assert np.isnan(from_fit(arcs).curvature).all()


class TestFromThreePoints:
    @pytest.mark.parametrize("t", [[0.0, 0.5], [0.0, 0.0, 0.5], [0.0, 0.3, 0.3 + 1e-10]])
    def test_of_two_epochs_are_the_straight_line_of_the_fit(self, t):
        """No observation counts twice."""
        t = np.array(t)
        arcs = arcs_of(t, 1.0 + 0.01 * t, 0.5 - 0.02 * t, sigma_ra=1e-6, sigma_dec=2e-6)
        line, points = from_fit(arcs), from_three_points(arcs)
        for name in ("ra", "dec", "ra_rate", "dec_rate", "covariance"):
            np.testing.assert_allclose(getattr(points, name), getattr(line, name), rtol=1e-9)
        assert np.isfinite(points.covariance).all()


class TestFromFit:
    def test_three_observations_agree_with_the_three_point_rates_to_leading_order(self):
        """The difference is the curvature of the coordinates, quadratic in the arc."""
        differences = []
        for span in (0.4, 0.2, 0.1):
            t = span * np.array([-0.5, 0.1, 0.5])
            ra, dec = 1.0 + 0.03 * t + 0.01 * t**2, 0.8 + 0.02 * t - 0.01 * t**2
            arcs = arcs_of(t, ra, dec)
            fit, three = from_fit(arcs), from_three_points(arcs)
            differences.append(abs(fit.ra_rate[0] - three.ra_rate[0]))
            assert fit.ra[0] == pytest.approx(ra[1], abs=1e-15)
            assert fit.dec[0] == pytest.approx(dec[1], abs=1e-15)
            assert three.ra_rate[0] == pytest.approx(0.03 + 0.02 * t[1], rel=1e-10)
        assert differences[0] < 2e-5
        assert differences[2] < differences[1] / 3.5 < differences[0] / 3.5**2

    def test_rates_are_coordinate_rates_without_cos_dec(self):
        t = np.linspace(-0.01, 0.01, 5)
        for dec in (0.0, 1.2, -1.5):
            arcs = arcs_of(t, 1.0 + 0.05 * t, dec + 0.02 * t)
            found = from_fit(arcs)
            assert found.ra_rate[0] == pytest.approx(0.05, rel=1e-4)
            assert found.dec_rate[0] == pytest.approx(0.02, rel=2e-3)

    def test_turning_the_sky_about_the_pole_changes_the_right_ascension_alone(self, simulate):
        arcs = simulate(50, 0.3, seed=11).arcs
        still = from_fit(arcs)
        for turn in (1.0, 2.0 * np.pi - arcs.ra[arcs.triplet[7, 1]]):
            ra = (arcs.ra + turn) % (2.0 * np.pi)
            turned = from_fit(
                Arcs(
                    arcs.offsets,
                    arcs.t,
                    ra,
                    arcs.dec,
                    *(arcs.sigma_ra, arcs.sigma_dec, arcs.position, arcs.velocity),
                )
            )
            assert (turned.ra >= 0.0).all()
            assert (turned.ra < 2.0 * np.pi).all()
            np.testing.assert_allclose(wrap_angle(turned.ra - still.ra - turn), 0.0, atol=1e-14)
            for name in ("dec", "ra_rate", "dec_rate", "curvature", "covariance"):
                np.testing.assert_allclose(
                    getattr(turned, name), getattr(still, name), rtol=1e-6, atol=1e-11
                )

    def test_curvature_is_along_and_across_the_motion(self):
        t = np.linspace(-0.1, 0.1, 7)
        # moving north, bending west, speeding up
        arcs = parabola_arc(t, 1.0, 0.3, [[0.0, -0.004], [0.03, 0.001]], middle=3)
        found = from_fit(arcs)
        np.testing.assert_allclose(found.curvature[0], [0.001, 0.004], rtol=1e-7)
        errors = np.sqrt(np.diag(found.curvature_covariance[0]))
        expected = np.hypot(*(found.curvature[0] / errors))
        assert found.curvature_significance[0] == pytest.approx(expected)

    def test_declination_keeps_its_digits_near_the_pole(self):
        t = np.array([-0.01, 0.0, 0.01])
        arcs = arcs_of(t, [1.0, 1.0, 1.0], np.pi / 2 - 1e-6 + 1e-7 * t)
        assert from_fit(arcs).dec[0] == pytest.approx(np.pi / 2 - 1e-6, abs=1e-15)


def test_fits_do_not_depend_on_the_company(simulate):
    arcs = simulate(30, 0.4, seed=2).arcs
    together = from_fit(arcs)
    for k in (0, 13, 29):
        alone = from_fit(arcs.take(np.array([k])))
        for whole, part in zip(together, alone, strict=True):
            np.testing.assert_allclose(part[0], whole[k], rtol=1e-11, atol=1e-16)


@pytest.mark.parametrize(("span", "n_observations"), [(0.02, (2, 4)), (0.3, (3, 9)), (20.0, 5)])
def test_the_compiled_fit_is_that_of_numpy(simulate, span, n_observations):
    s = simulate(300, span, seed=71, n_observations=n_observations)
    arcs = s.with_noise(np.random.default_rng(3)).arcs
    # the first arc keeps one observation
    arcs = arcs.observations(np.append(0, np.arange(arcs.offsets[1], len(arcs.t))))
    parabola = reference.ParabolaFit(arcs)
    with np.errstate(all="ignore"):
        fit, path = parabola.fit_and_path()
    unit = path.scale[:, None, None] ** np.arange(3.0)
    near = {"rtol": 1e-9, "atol": 1e-15}
    np.testing.assert_allclose(tangent_fit(arcs).sky * unit, fit.sky * unit, **near)
    observer = tangent_fit(arcs).observer * unit, fit.observer * unit
    np.testing.assert_allclose(*observer, rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose(tangent_fit(arcs).covariance, fit.covariance, rtol=1e-9)
    np.testing.assert_allclose(path_fit(arcs).operator, path.operator, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(path_fit(arcs).rest, path.rest, rtol=1e-9, atol=1e-14)
    for vector, of_numpy in zip(tangent_fit(arcs).motion(), reference.motion(fit), strict=True):
        np.testing.assert_allclose(vector, of_numpy, rtol=1e-7, atol=1e-11)
    found, expected = from_fit(arcs), reference.from_fit(arcs)
    for name in ("ra", "dec", "ra_rate", "dec_rate", "curvature", "curvature_significance"):
        column = getattr(found, name), getattr(expected, name)
        np.testing.assert_allclose(*column, rtol=1e-7, atol=1e-11, err_msg=name)
    for name in ("covariance", "curvature_covariance"):
        claimed = getattr(expected, name)
        with np.errstate(invalid="ignore"):
            spread = np.sqrt(np.einsum("mii->mi", claimed))
        size = spread[:, :, None] * spread[:, None, :]
        np.testing.assert_allclose(getattr(found, name) / size, claimed / size, atol=1e-9)
