"""A conditional density of range and range-rate, as the output of a network.

The density is a mixture of normal distributions in coordinates in which the admissible region of
the arc is the plane: so all of it lies in the region, whatever the network answers. ``x`` is the
logit of the place of ln rho between the radius of the Earth and the last range at which an orbit is
bound to the Sun, ``y`` that of the fraction of the admissible range-rates at that range that lie
below, those bound to the Earth cut out.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from array_api_compat import device

from neoranging.constants import R_EARTH
from neoranging.nn.arrays import (
    Array,
    clipped,
    joined,
    log_sum_exp,
    namespace_of,
    sigmoid,
    smallest,
    softplus,
)
from neoranging.nn.inputs import ArcInputs
from neoranging.nn.outputs import Output, Pair
from neoranging.nn.region import energy_coefficients, escape_rate, range_limits, strip_square
from neoranging.typing import FloatArray

_EDGE: Final = 1.0e-5
"""Least distance of a point from the ends of either coordinate, as a fraction: errors of the
attributable put some truths outside."""

_NUMBERS: Final = 6
"""Numbers of a component: weight, two means, and three of the covariance."""

_LOG_WIDTHS: Final = (-7.0, 2.0)
"""Limits of the logarithms of the widths in units of the spread over the training arcs."""


class Plane(NamedTuple):
    """The admissible regions of B arcs, mapped to the plane."""

    c: Array
    """Energy coefficients, (B, 6)."""
    log_far: Array
    """Natural logarithm of the last range [au] at which an orbit is bound to the Sun, (B,)."""

    @classmethod
    def of(cls, inputs: ArcInputs, origin: str) -> Plane:
        """Regions of arcs seen from the "geocenter" or the "topocenter"."""
        c = energy_coefficients(inputs, origin)
        return cls(c, namespace_of(c).log(range_limits(c)[..., 2]))

    def forward(self, rho: Array, rho_dot: Array) -> Array:
        """Coordinates of points, (B, 2); those outside the region are moved to its edge."""
        low, between, start, length = self._strip(rho)
        xp = namespace_of(rho)
        below = xp.where(rho_dot < start, rho_dot - low, between + (rho_dot - start))
        place = (xp.log(rho) - _LOG_NEAR) / (self.log_far - _LOG_NEAR)
        return joined(_logit(place), _logit(below / length))

    def inverse(self, x: Array, y: Array) -> Pair:
        """Range [au] and range-rate [au/d] of coordinates, each (B,)."""
        xp = namespace_of(x)
        rho = xp.exp(_LOG_NEAR + sigmoid(x) * (self.log_far - _LOG_NEAR))
        low, between, start, length = self._strip(rho)
        along = sigmoid(y) * length
        rate = xp.where(along < between, low + along, start + (along - between))
        return rho, rate

    def log_slope(self, rho: Array, rho_dot: Array) -> Array:
        """Logarithm of the area of the plane per unit of ln rho and range-rate [au/d], (B,)."""
        point, length = self.forward(rho, rho_dot), self._strip(rho)[3]
        # the derivative of the logit where it is x is (1 + exp x) (1 + exp -x)
        slopes = softplus(point) + softplus(-point)
        area = (self.log_far - _LOG_NEAR) * length
        return slopes[..., 0] + slopes[..., 1] - namespace_of(rho).log(area)

    def _strip(self, rho: Array) -> tuple[Array, Array, Array, Array]:
        """Least range-rate, length of those that approach, first that recedes, length of all."""
        xp, floor = namespace_of(rho), smallest(rho)
        half = xp.sqrt(xp.maximum(strip_square(self.c, rho), floor))
        low, high = -0.5 * self.c[..., 1] - half, -0.5 * self.c[..., 1] + half
        escape = escape_rate(self.c, rho)
        between = xp.maximum(xp.minimum(high, -escape) - low, 0.0)
        start = xp.maximum(low, escape)
        length = between + xp.maximum(high - start, 0.0)
        return low, between, start, xp.maximum(length, floor)


_LOG_NEAR: Final = math.log(R_EARTH)


def _logit(fraction: Array) -> Array:
    xp = namespace_of(fraction)
    inside = clipped(fraction, _EDGE, 1.0 - _EDGE)
    return xp.log(inside / (1.0 - inside))


class Mixture(NamedTuple):
    """Normal distributions in the plane, K for each of B arcs, in units of its scaling."""

    log_weight: Array
    """Logarithms of the weights, which add up to one; (B, K)."""
    mean: Array
    """(B, K, 2)."""
    log_width: Array
    """Logarithms of the standard deviations of x, and of y given x; (B, K, 2)."""
    slope: Array
    """Derivative of the mean of y by x, (B, K)."""

    def log_density(self, point: Array) -> Array:
        """Logarithm of the density at points (B, 2)."""
        xp = namespace_of(point)
        away, shrink = point[..., None, :] - self.mean, xp.exp(-self.log_width)
        along = away[..., 0] * shrink[..., 0]
        across = (away[..., 1] - self.slope * away[..., 0]) * shrink[..., 1]
        log_area = self.log_width[..., 0] + self.log_width[..., 1]
        log_normal = -0.5 * (along**2 + across**2) - log_area
        return log_sum_exp(self.log_weight + log_normal) - math.log(2.0 * math.pi)

    def draw(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Points drawn from mixtures of numpy's arrays, (B, n, 2)."""
        share = np.cumsum(np.exp(self.log_weight), axis=1)
        share /= share[:, -1:]
        at = rng.random((len(share), n), dtype=share.dtype)
        # how many components end below: as many as the number of the one that it falls in
        which = np.stack(
            [np.searchsorted(*pair, side="right") for pair in zip(share, at, strict=True)]
        )
        which += len(share[0]) * np.arange(len(share))[:, None]
        noise = rng.standard_normal((2, *which.shape), dtype=share.dtype)
        mean, width = (
            column.reshape(-1, 2)[which] for column in (self.mean, np.exp(self.log_width))
        )
        x = width[..., 0] * noise[0]
        y = self.slope.reshape(-1)[which] * x + width[..., 1] * noise[1]
        return mean + np.stack([x, y], axis=-1)


class MixtureOutput(Output):
    """The heads of a network as a mixture of normal distributions in the plane of the region.

    Parameters
    ----------
    origin : {"geocenter", "topocenter"}
    components : int
        Number K of normal distributions.
    """

    def __init__(self, origin: str, components: int = 12) -> None:
        super().__init__(origin, ("x", "y"))
        self.n_heads = _NUMBERS * components

    def fit(self, inputs: ArcInputs, rho: Array, rho_dot: Array) -> None:
        """Fit the scaling on the true points of training arcs in the plane."""
        self.scaling.fit_moments(Plane.of(inputs, self.origin).forward(rho, rho_dot))

    def turned(self, heads: Array, arrow: Array) -> Array:
        """Heads of arcs that were shown backwards, with the range-rates as time runs.

        The fraction of the range-rates is then that from above, so y changes its sign.
        """
        weight, mean, width, slope = self._parts(heads)
        xp = namespace_of(heads)
        sign, zero = arrow[:, None], xp.zeros((1, 2), dtype=heads.dtype, device=device(heads))
        y = mean[..., 1] * sign + (1.0 - sign) * self.scaling(zero)[:, 1:]
        flat = (xp.reshape(x, (len(x), -1)) for x in (joined(mean[..., 0], y), width))
        return xp.concat([weight, *flat, slope * sign], axis=-1)

    def mixture(self, heads: Array) -> Mixture:
        """Mixtures of heads (B, 6K)."""
        weight, mean, width, slope = self._parts(heads)
        log_weight = weight - log_sum_exp(weight)[..., None]
        return Mixture(log_weight, mean, clipped(width, *_LOG_WIDTHS), slope)

    def log_density(self, heads: Array, inputs: ArcInputs, rho: Array, rho_dot: Array) -> Array:
        """Logarithm of the density over (ln rho, rho_dot) [d/au], (B,)."""
        plane = Plane.of(inputs, self.origin)
        point = self.scaling(plane.forward(rho, rho_dot))
        xp = namespace_of(heads)
        log_scale = xp.sum(xp.log(self.scaling.spread(xp.ones_like(point[:1]))))
        return self.mixture(heads).log_density(point) - log_scale + plane.log_slope(rho, rho_dot)

    def __call__(self, heads: Array, inputs: ArcInputs) -> Pair:
        """Range and range-rate of the mean in the plane."""
        xp, mixture = namespace_of(heads), self.mixture(heads)
        mean = xp.sum(xp.exp(mixture.log_weight)[..., None] * mixture.mean, axis=1)
        point = self.scaling.restore(mean)
        return Plane.of(inputs, self.origin).inverse(point[..., 0], point[..., 1])

    def _parts(self, heads: Array) -> tuple[Array, Array, Array, Array]:
        """Weights, means, widths and slopes of the components, unscaled."""
        xp, n, k = namespace_of(heads), len(heads), self.n_heads // _NUMBERS
        mean, width = (xp.reshape(heads[:, i * k : (i + 2) * k], (n, k, 2)) for i in (1, 3))
        return heads[:, :k], mean, width, heads[:, 5 * k :]
