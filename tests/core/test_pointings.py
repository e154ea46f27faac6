"""Fields that cover clouds: where they stand, and what they are said to hold."""

import numpy as np
import pytest

from neoranging.core.geometry import frame_about, from_equal_area
from neoranging.core.pointings import MOST_FIELDS, cover, in_field, outline_of_field

SIDE = np.radians(0.5)


def cloud(xy, pole=(1.0, 0.3, 0.4)):
    """Directions of points of the plane [deg] about a pole."""
    return from_equal_area(frame_about(np.array(pole)), np.radians(xy))


def equal(direction):
    return np.ones(len(direction))


class TestFields:
    def test_have_sides_along_ra_and_dec(self):
        middle = np.array([np.cos(0.5), 0.0, np.sin(0.5)])
        east, north = np.array([0.0, 1.0, 0.0]), np.array([-np.sin(0.5), 0.0, np.cos(0.5)])
        half = np.tan(0.5 * SIDE)
        for x, y, inside in ((0.99, 0.99, True), (1.01, 0.0, False), (0.0, -1.01, False)):
            direction = middle + half * (x * east + y * north)
            assert in_field(middle, direction[None] / np.linalg.norm(direction), SIDE)[0] == inside
        assert not in_field(middle, -middle[None], SIDE).any()

    def test_have_outlines_that_divide_in_from_out(self):
        middle = cloud(np.zeros(2))
        line = outline_of_field(middle, SIDE)
        assert line[0] == pytest.approx(line[-1])
        for share, inside in ((0.999, True), (1.001, False)):
            points = middle + share * (line / (line @ middle)[:, None] - middle)
            points /= np.linalg.norm(points, axis=1)[:, None]
            assert np.all(in_field(middle, points, SIDE) == inside)


class TestCover:
    def test_one_field_holds_what_is_smaller(self):
        direction = cloud(0.05 * np.random.default_rng(1).standard_normal((1000, 2)))
        fields = cover(direction, equal(direction), SIDE, 0.95)
        assert fields.direction.shape == (1, 3)
        assert fields.probability == pytest.approx([1.0])

    def test_two_lobes_take_two_fields_the_heavier_first(self):
        rng = np.random.default_rng(2)
        xy = 0.05 * rng.standard_normal((1000, 2))
        xy[rng.random(1000) < 0.3] += [2.0, 1.0]
        direction = cloud(xy)
        fields = cover(direction, equal(direction), SIDE, 0.95)
        assert fields.probability == pytest.approx([0.7, 0.3], abs=0.04)
        assert in_field(fields.direction[0], cloud(np.zeros((1, 2))), SIDE).all()
        assert in_field(fields.direction[1], cloud(np.array([[2.0, 1.0]])), SIDE).all()

    def test_what_they_hold_is_true_of_new_draws(self):
        rng = np.random.default_rng(3)
        shape = np.array([3.0, 0.4])
        said, true = [], []
        for _ in range(8):
            direction = cloud(shape * rng.standard_normal((500, 2)))
            fields = cover(direction, equal(direction), SIDE, 0.5)
            new = cloud(shape * rng.standard_normal((20_000, 2)))
            covered = np.any([in_field(f, new, SIDE) for f in fields.direction], axis=0)
            said.append(fields.probability.sum())
            true.append(covered.mean())
        # each of 250 draws that judge; the choice ends once they say enough
        assert np.mean(said) == pytest.approx(np.mean(true), abs=3.0 * np.sqrt(0.25 / 250 / 8))

    def test_a_cloud_much_wider_than_the_field_does_not_look_covered(self):
        """A choice that counted the draws by which it chose would say ten times as much."""
        xy = np.random.default_rng(4).uniform(-20.0, 20.0, (400, 2))
        direction = cloud(xy)
        fields = cover(direction, equal(direction), SIDE, 0.95)
        truth = len(fields.probability) * 0.25 / 1600.0
        assert len(fields.probability) <= MOST_FIELDS
        assert fields.probability.sum() < truth + 0.02

    def test_never_rise_and_cover_enough(self):
        direction = cloud(
            np.array([3.0, 0.1]) * np.random.default_rng(5).standard_normal((1000, 2))
        )
        fields = cover(direction, equal(direction), SIDE, 0.9)
        assert np.all(np.diff(fields.probability) <= 1e-12)
        assert 0.9 - 1e-9 <= fields.probability.sum() <= 1.0 + 1e-9

    def test_four_fields_tile_a_square(self):
        xy = np.random.default_rng(6).uniform(-0.49, 0.49, (4000, 2))
        direction = cloud(xy, pole=(1.0, 0.0, 0.0))
        fields = cover(direction, equal(direction), SIDE, 0.8)
        assert len(fields.probability) == 4
        assert fields.probability == pytest.approx(0.22, abs=0.05)

    def test_weights_say_what_is_probable(self):
        rng = np.random.default_rng(7)
        xy = 0.05 * rng.standard_normal((1000, 2))
        xy[500:] += [2.0, 0.0]
        direction = cloud(xy)
        weights = np.where(np.arange(1000) < 500, 1.0, 4.0)
        fields = cover(direction, weights, SIDE, 0.95)
        assert fields.probability == pytest.approx([0.8, 0.2], abs=0.02)
        assert in_field(fields.direction[0], cloud(np.array([[2.0, 0.0]])), SIDE).all()

    @pytest.mark.parametrize("pole", [(0.0, 0.0, 1.0), (1e-3, 0.0, -1.0)])
    def test_works_at_the_poles(self, pole):
        direction = cloud(0.2 * np.random.default_rng(8).standard_normal((1000, 2)), pole)
        fields = cover(direction, equal(direction), SIDE, 0.9)
        assert len(fields.probability) < 10
        assert fields.probability.sum() >= 0.9 - 1e-9
