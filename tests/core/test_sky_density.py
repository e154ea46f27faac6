"""Regions of clouds whose density is known: what they hold, and how large they are."""

import numpy as np
import pytest
from scipy.stats import binom, chi2

from neoranging.constants import ARCSEC
from neoranging.core.geometry import equal_area, frame_about, from_equal_area
from neoranging.core.sky_density import SkyDensity, spatial_median

RADIUS = 0.5
"""Radius of the circle that the arcs follow on the plane [rad]."""

POLE = np.array([-0.3, 0.2, 0.9])


def gaussian(rng, n):
    """A strand of 3 deg by 1.5 arcmin standard deviation."""
    return np.radians([3.0, 0.025]) * rng.standard_normal((n, 2))


def arc(rng, n, width=0.005, length=0.3):
    angle = length * rng.standard_normal(n)
    r = RADIUS + width * rng.standard_normal(n)
    return np.stack([r * np.sin(angle), r * np.cos(angle) - RADIUS], axis=1)


def lobes(rng, n):
    """Two rounds, of 70 and 30 %, the second ten times as dense."""
    first, x = rng.random(n) < 0.7, 0.01 * rng.standard_normal((n, 2))
    return np.where(first[:, None], x, 0.2 * x + np.array([0.08, 0.05]))


def density(law, xy):
    """Density of a law at points of the plane."""
    if law is gaussian:
        a, b = np.radians([3.0, 0.025])
        return np.exp(-0.5 * ((xy[:, 0] / a) ** 2 + (xy[:, 1] / b) ** 2)) / (2 * np.pi * a * b)
    if law is arc:
        r = np.hypot(xy[:, 0], xy[:, 1] + RADIUS)
        angle = np.arctan2(xy[:, 0], xy[:, 1] + RADIUS)
        square = (angle / 0.3) ** 2 + ((r - RADIUS) / 0.005) ** 2
        return np.exp(-0.5 * square) / (2 * np.pi * 0.3 * 0.005 * r)
    first, second = (xy, 0.01, 0.7), (xy - np.array([0.08, 0.05]), 0.002, 0.3)
    return sum(
        share * np.exp(-0.5 * np.sum(x**2, axis=1) / s**2) / (2 * np.pi * s**2)
        for x, s, share in (first, second)
    )


def true_area(law, level):
    """Area of the region of highest density, as the mean of the inverse density in it."""
    xy = law(np.random.default_rng(99), 200_000)
    value = density(law, xy)
    return np.mean(np.where(value >= np.quantile(value, 1.0 - level), 1.0 / value, 0.0))


def on_sky(xy):
    return from_equal_area(frame_about(POLE), xy)


LAWS = pytest.mark.parametrize("law", [gaussian, arc, lobes], ids=lambda law: law.__name__)
LEVELS = pytest.mark.parametrize("level", [0.68, 0.95])


@LAWS
class TestRegions:
    @LEVELS
    def test_hold_their_share_of_new_draws(self, law, level):
        rng, held, n_clouds, n_new = np.random.default_rng(3), 0, 12, 400
        for _ in range(n_clouds):
            cloud = SkyDensity.of_cloud(on_sky(law(rng, 500)))
            held += int(cloud.contains(on_sky(law(rng, n_new)), level).sum())
        # the share of a cloud itself scatters as a Beta law of 500 draws
        scatter = np.sqrt(level * (1.0 - level) * (1.0 / 500 + 1.0 / n_new) / n_clouds)
        assert held / (n_clouds * n_new) == pytest.approx(level, abs=3.0 * scatter)

    @LEVELS
    def test_are_hardly_larger_than_they_must_be(self, law, level):
        rng = np.random.default_rng(4)
        areas = [SkyDensity.of_cloud(on_sky(law(rng, 1000))).area(level) for _ in range(6)]
        assert np.mean(areas) / true_area(law, level) == pytest.approx(1.05, abs=0.11)

    def test_the_area_is_that_of_what_they_contain(self, law):
        cloud = SkyDensity.of_cloud(on_sky(law(np.random.default_rng(5), 500)))
        corner = np.abs(cloud.place).max(axis=0)
        place = np.random.default_rng(6).uniform(-1.5 * corner, 1.5 * corner, (40_000, 2))
        inside = cloud.contains(from_equal_area(cloud.frame, place @ cloud.axes.T), 0.95).mean()
        box = 9.0 * np.prod(corner) * abs(np.linalg.det(cloud.axes))
        error = np.sqrt(inside * (1.0 - inside) / len(place)) * box
        assert cloud.area(0.95) == pytest.approx(
            inside * box, abs=3.0 * error + 0.03 * inside * box
        )

    def test_outlines_enclose_the_area(self, law):
        cloud = SkyDensity.of_cloud(on_sky(law(np.random.default_rng(7), 1000)))
        area = 0.0
        for line in cloud.outline(0.95):
            assert np.linalg.norm(line, axis=1) == pytest.approx(1.0)
            assert line[0] == pytest.approx(line[-1])
            x, y = equal_area(cloud.frame, line).T
            area += 0.5 * np.sum(x[:-1] * y[1:] - x[1:] * y[:-1])
        assert abs(area) == pytest.approx(cloud.area(0.95), rel=0.06)

    def test_pieces_are_those_of_the_law(self, law):
        cloud = SkyDensity.of_cloud(on_sky(law(np.random.default_rng(8), 2000)))
        assert len(cloud.outline(0.9)) == (2 if law is lobes else 1)


class TestArea:
    @LEVELS
    def test_of_a_normal_law_is_known(self, level):
        rng = np.random.default_rng(9)
        areas = [SkyDensity.of_cloud(on_sky(gaussian(rng, 2000))).area(level) for _ in range(4)]
        sigma = np.prod(np.radians([3.0, 0.025]))
        truth = -2.0 * np.pi * np.log(1.0 - level) * sigma
        assert np.mean(areas) == pytest.approx(truth, rel=0.05)

    def test_of_what_is_determined_is_that_of_observations(self):
        """A cloud of no size: the region holds positions with the errors of observations."""
        rng = np.random.default_rng(10)
        floor = 0.2 * ARCSEC
        cloud = SkyDensity.of_cloud(on_sky(1e-4 * floor * rng.standard_normal((1000, 2))))
        observed = on_sky(floor * rng.standard_normal((1000, 2)))
        assert cloud.contains(observed, 0.95).mean() == pytest.approx(0.95, abs=0.03)
        truth = -2.0 * np.pi * np.log(0.05) * floor**2
        assert cloud.area(0.95) == pytest.approx(truth, rel=0.15)

    def test_of_equal_draws_is_finite(self):
        cloud = SkyDensity.of_cloud(np.tile(on_sky(np.zeros(2)), (50, 1)))
        assert 0.0 <= cloud.area(0.95) < ARCSEC**2
        assert cloud.contains(on_sky(np.zeros((1, 2))), 0.95).all()
        major, minor, _ = cloud.ellipse(0.95)
        assert 0.0 <= minor <= major < ARCSEC

    def test_few_draws_that_are_far_do_not_change_it(self):
        xy = gaussian(np.random.default_rng(11), 1000)
        alone = SkyDensity.of_cloud(on_sky(xy)).area(0.68)
        xy[:5] = np.random.default_rng(12).uniform(-1.0, 1.0, (5, 2))
        assert SkyDensity.of_cloud(on_sky(xy)).area(0.68) == pytest.approx(alone, rel=0.06)


class TestWeights:
    def test_stand_for_draws(self):
        """Half of a cloud that counts three times moves everything as three quarters would."""
        rng = np.random.default_rng(13)
        xy = np.concatenate([0.01 * rng.standard_normal((1000, 2)), lobes(rng, 0)])
        xy[::2] += np.array([0.1, 0.0])
        weights = np.where(np.arange(1000) % 2 == 0, 3.0, 1.0)
        cloud = SkyDensity.of_cloud(on_sky(xy), weights)
        inside = cloud.contains(on_sky(xy), 0.68)
        assert np.average(inside, weights=weights) == pytest.approx(0.68, abs=0.03)
        assert inside[::2].mean() > inside[1::2].mean() + 0.2

    def test_equal_ones_are_none(self):
        direction = on_sky(arc(np.random.default_rng(14), 300))
        plain = SkyDensity.of_cloud(direction)
        assert SkyDensity.of_cloud(direction, np.full(300, 7.0)).area(0.95) == plain.area(0.95)


class TestEllipse:
    def test_of_a_normal_law_has_its_axes(self):
        rng = np.random.default_rng(15)
        angle = np.radians(30.0)  # from north to east
        along = np.array([np.sin(angle), np.cos(angle)])
        across = np.array([-np.cos(angle), np.sin(angle)])
        x = rng.standard_normal((4000, 2)) * np.array([4e-3, 1e-3])
        cloud = SkyDensity.of_cloud(on_sky(x[:, :1] * along + x[:, 1:] * across))
        major, minor, position_angle = cloud.ellipse(0.95)
        scale = np.sqrt(chi2(2).ppf(0.95))
        assert (major, minor) == pytest.approx((4e-3 * scale, 1e-3 * scale), rel=0.04)
        assert np.degrees(position_angle) == pytest.approx(30.0, abs=1.0)

    @LAWS
    def test_holds_exactly_its_share_of_the_draws(self, law):
        xy = law(np.random.default_rng(16), 700)
        cloud = SkyDensity.of_cloud(on_sky(xy))
        major, minor, angle = cloud.ellipse(0.68)
        east, north = (cloud.place @ cloud.axes.T).T
        along = east * np.sin(angle) + north * np.cos(angle)
        across = north * np.sin(angle) - east * np.cos(angle)
        # an axis of the plane is the chord of an angle
        a, b = (2.0 * np.sin(0.5 * axis) for axis in (major, minor))
        inside = (along / a) ** 2 + (across / b) ** 2 <= 1.0 + 1e-9
        assert inside.sum() == 476


def test_the_median_is_not_moved_by_few_draws():
    rng = np.random.default_rng(17)
    xy = 1e-3 * rng.standard_normal((1000, 2))
    xy[:30] = [0.5, 0.5]
    middle = spatial_median(on_sky(xy), np.ones(1000))
    assert np.linalg.norm(equal_area(frame_about(POLE), middle)) < 2e-4


def test_levels_are_nested_and_never_everything():
    cloud = SkyDensity.of_cloud(on_sky(arc(np.random.default_rng(18), 400)))
    areas = [cloud.area(level) for level in (0.1, 0.5, 0.9, 0.99, 0.9999)]
    assert np.all(np.diff(areas) > 0.0)
    assert areas[-1] < 1.0
    far = on_sky(np.array([[1.5, -1.0]]))
    assert not cloud.contains(far, 0.9999).any()
    assert not cloud.contains(-on_sky(np.zeros((1, 2))), 0.9999).any()


def test_ten_draws_are_enough_to_answer():
    rng, held = np.random.default_rng(19), 0
    for _ in range(200):
        cloud = SkyDensity.of_cloud(on_sky(gaussian(rng, 10)))
        held += int(cloud.contains(on_sky(gaussian(rng, 1)), 0.68)[0])
    low, high = binom(200, 0.68).interval(0.999)
    assert low <= held <= high + 0.1 * 200  # ten draws have ten levels


@pytest.mark.parametrize("n", [10, 40])
@pytest.mark.parametrize("scale", [1e-12, 1e-6, 1e-3, 0.3, 2.0])
def test_clouds_of_any_size_have_finite_answers(n, scale):
    """From less than the errors of observations to all over the sky."""
    spread = np.random.default_rng(20).standard_normal((n, 3)) * [1.0, 0.01, 1.0]
    direction = np.array([0.0, 0.0, 1.0]) + scale * spread
    direction /= np.linalg.norm(direction, axis=1)[:, None]
    cloud = SkyDensity.of_cloud(direction)
    areas = [cloud.area(level) for level in (0.1, 0.68, 0.95, 0.999)]
    assert np.all(np.array(areas) > 0.0)
    assert areas[-1] < 4.4 * np.pi  # the sphere, and the error of the measurement
    assert cloud.outline(0.68)
    assert cloud.outline(0.95)
    assert np.isfinite(cloud.ellipse(0.95)).all()
