"""Densities in the plane of the admissible region."""

import math

import numpy as np
import pytest
import torch

from neoranging.nn.density import MixtureOutput, Plane
from neoranging.nn.region import is_admissible


@pytest.fixture
def plane(night_inputs):
    return Plane.of(night_inputs, "topocenter")


@pytest.fixture
def output(night_inputs, night_truth):
    output = MixtureOutput("topocenter", components=3)
    output.fit(night_inputs, *night_truth)
    return output


def test_every_point_of_the_plane_is_admissible_and_comes_back(plane):
    generator = torch.Generator().manual_seed(0)
    n = len(plane.log_far)
    x, y = 2.0 * torch.randn(2, n, generator=generator, dtype=torch.float64)
    rho, rho_dot = plane.inverse(x, y)
    inside = is_admissible(plane.c, rho, rho_dot)
    assert inside.double().mean() > 0.99  # a region in two pieces has a gap
    back = plane.forward(rho, rho_dot)[inside]
    torch.testing.assert_close(back[:, 0], x[inside], rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(back[:, 1], y[inside], rtol=1e-5, atol=1e-5)


def test_the_slope_is_that_of_the_map(plane):
    n = len(plane.log_far)
    x, y = torch.full((2, n), 0.3, dtype=torch.float64)
    rho, rate = plane.inverse(x, y)
    h = 1e-6
    ahead, behind = (plane.forward(rho * math.exp(s * h), rate) for s in (1, -1))
    by_log_rho = (ahead - behind) / (2 * h)
    step = 1e-8
    by_rate = (plane.forward(rho, rate + step) - plane.forward(rho, rate - step)) / (2 * step)
    area = (by_log_rho[:, 0] * by_rate[:, 1] - by_log_rho[:, 1] * by_rate[:, 0]).abs()
    torch.testing.assert_close(torch.log(area), plane.log_slope(rho, rate), rtol=1e-4, atol=1e-4)


def test_the_density_adds_up_to_one(output, night_inputs):
    generator = torch.Generator().manual_seed(1)
    arc = night_inputs.map(lambda v: v[:1])
    heads = 0.5 * torch.randn(1, output.n_heads, generator=generator, dtype=torch.float64)
    plane = Plane.of(arc, "topocenter")
    # midpoints of equal cells of the plane, wide enough for all that has a weight
    edges = torch.linspace(-14.0, 14.0, 401, dtype=torch.float64)
    middle, width = 0.5 * (edges[1:] + edges[:-1]), float(edges[1] - edges[0])
    x, y = (g.reshape(-1) for g in torch.meshgrid(middle, middle, indexing="ij"))
    points = torch.stack([x, y], dim=-1)
    log_density = output.mixture(heads.expand(len(x), -1)).log_density(points)
    assert torch.exp(log_density).sum() * width**2 == pytest.approx(1.0, abs=1e-3)
    # over ln rho and range-rate it is the same mass, cell by cell
    cells = points * output.scaling.scale + output.scaling.center
    near = (cells.abs() < 6.0).all(dim=1)
    many = night_inputs.map(lambda v: v[:1].expand(int(near.sum()), *v.shape[1:]))
    one = plane.c.expand(int(near.sum()), 6), plane.log_far.expand(int(near.sum()))
    rho, rate = Plane(*one).inverse(*cells[near].unbind(-1))
    own = output.log_density(heads.expand(int(near.sum()), -1), many, rho, rate)
    slope = Plane(*one).log_slope(rho, rate) - torch.log(output.scaling.scale).sum()
    torch.testing.assert_close(own, log_density[near] + slope, rtol=1e-6, atol=1e-5)


def test_drawn_points_have_the_moments_of_the_mixture(output):
    rng = np.random.default_rng(2)
    mixture = output.mixture(0.7 * rng.standard_normal((2, output.n_heads)))
    points = mixture.draw(200_000, rng)[0]
    weight = np.exp(mixture.log_weight)[0]
    mean = (weight[:, None] * mixture.mean[0]).sum(axis=0)
    np.testing.assert_allclose(points.mean(axis=0), mean, rtol=0.0, atol=0.03)
    spread = np.exp(mixture.log_width[0])
    variance = (weight * (spread[:, 0] ** 2 + (mixture.mean[0, :, 0] - mean[0]) ** 2)).sum()
    assert points[:, 0].var() == pytest.approx(float(variance), rel=0.03)


def test_a_scene_backwards_has_the_opposite_fraction(output):
    heads = torch.randn(4, output.n_heads, generator=torch.Generator().manual_seed(3)).double()
    arrow = torch.tensor([1.0, -1.0, 1.0, -1.0], dtype=torch.float64)
    turned = output.turned(heads, arrow)
    torch.testing.assert_close(turned[::2], heads[::2])
    torch.testing.assert_close(output.turned(turned, arrow), heads)
    point = torch.randn(4, 2, generator=torch.Generator().manual_seed(4)).double()
    mirrored = output.scaling(output.scaling.restore(point) * torch.stack([arrow.abs(), arrow], 1))
    torch.testing.assert_close(
        output.mixture(heads).log_density(point), output.mixture(turned).log_density(mirrored)
    )
