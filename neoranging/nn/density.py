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

import torch
from torch import Tensor

from neoranging.constants import R_EARTH
from neoranging.nn.inputs import ArcInputs
from neoranging.nn.outputs import Output, Pair
from neoranging.nn.region import energy_coefficients, escape_rate, range_limits, strip_square

_EDGE: Final = 1.0e-5
"""Least distance of a point from the ends of either coordinate, as a fraction: errors of the
attributable put some truths outside."""

_NUMBERS: Final = 6
"""Numbers of a component: weight, two means, and three of the covariance."""

_LOG_WIDTHS: Final = (-7.0, 2.0)
"""Limits of the logarithms of the widths in units of the spread over the training arcs."""


class Plane(NamedTuple):
    """The admissible regions of B arcs, mapped to the plane."""

    c: Tensor
    """Energy coefficients, (B, 6)."""
    log_far: Tensor
    """Natural logarithm of the last range [au] at which an orbit is bound to the Sun, (B,)."""

    @classmethod
    def of(cls, inputs: ArcInputs, origin: str) -> Plane:
        """Regions of arcs seen from the "geocenter" or the "topocenter"."""
        c = energy_coefficients(inputs, origin)
        return cls(c, torch.log(range_limits(c)[..., 2]))

    def forward(self, rho: Tensor, rho_dot: Tensor) -> Tensor:
        """Coordinates of points, (B, 2); those outside the region are moved to its edge."""
        low, between, start, length = self._strip(rho)
        below = torch.where(rho_dot < start, rho_dot - low, between + (rho_dot - start))
        fraction = below / length
        return torch.stack([_logit(self._place(rho)), _logit(fraction)], dim=-1)

    def inverse(self, x: Tensor, y: Tensor) -> Pair:
        """Range [au] and range-rate [au/d] of coordinates, each (B,)."""
        rho = torch.exp(_LOG_NEAR + torch.sigmoid(x) * (self.log_far - _LOG_NEAR))
        low, between, start, length = self._strip(rho)
        along = torch.sigmoid(y) * length
        rate = torch.where(along < between, low + along, start + (along - between))
        return rho, rate

    def log_slope(self, rho: Tensor, rho_dot: Tensor) -> Tensor:
        """Logarithm of the area of the plane per unit of ln rho and range-rate [au/d], (B,)."""
        x, y = self.forward(rho, rho_dot).unbind(-1)
        length = self._strip(rho)[3]
        return (
            _log_logit_slope(x)
            + _log_logit_slope(y)
            - torch.log((self.log_far - _LOG_NEAR) * length)
        )

    def _place(self, rho: Tensor) -> Tensor:
        return (torch.log(rho) - _LOG_NEAR) / (self.log_far - _LOG_NEAR)

    def _strip(self, rho: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Least range-rate, length of those that approach, first that recedes, length of all."""
        floor = torch.finfo(rho.dtype).tiny
        half = torch.sqrt(strip_square(self.c, rho).clamp_min(floor))
        low, high = -0.5 * self.c[..., 1] - half, -0.5 * self.c[..., 1] + half
        escape = escape_rate(self.c, rho)
        between = (torch.minimum(high, -escape) - low).clamp_min(0.0)
        start = torch.maximum(low, escape)
        length = between + (high - start).clamp_min(0.0)
        return low, between, start, length.clamp_min(floor)


_LOG_NEAR: Final = math.log(R_EARTH)


def _logit(fraction: Tensor) -> Tensor:
    return torch.logit(fraction.clamp(_EDGE, 1.0 - _EDGE))


def _log_logit_slope(x: Tensor) -> Tensor:
    """Logarithm of the derivative of the logit where it is ``x``."""
    return torch.nn.functional.softplus(x) + torch.nn.functional.softplus(-x)


class Mixture(NamedTuple):
    """Normal distributions in the plane, K for each of B arcs, in units of its scaling."""

    log_weight: Tensor
    """Logarithms of the weights, which add up to one; (B, K)."""
    mean: Tensor
    """(B, K, 2)."""
    log_width: Tensor
    """Logarithms of the standard deviations of x, and of y given x; (B, K, 2)."""
    slope: Tensor
    """Derivative of the mean of y by x, (B, K)."""

    def log_density(self, point: Tensor) -> Tensor:
        """Logarithm of the density at points (B, 2)."""
        away = point[..., None, :] - self.mean
        along = away[..., 0] * torch.exp(-self.log_width[..., 0])
        across = (away[..., 1] - self.slope * away[..., 0]) * torch.exp(-self.log_width[..., 1])
        log_normal = -0.5 * (along**2 + across**2) - self.log_width.sum(dim=-1)
        return torch.logsumexp(self.log_weight + log_normal, dim=-1) - math.log(2.0 * math.pi)

    def draw(self, n: int, generator: torch.Generator) -> Tensor:
        """Points drawn from the mixture, (B, n, 2)."""
        weight = torch.exp(self.log_weight)
        which = torch.multinomial(weight, n, replacement=True, generator=generator)
        noise = torch.randn(*which.shape, 2, generator=generator, dtype=self.mean.dtype)
        take = which[..., None].expand(*which.shape, 2)
        mean, width = self.mean.gather(1, take), torch.exp(self.log_width.gather(1, take))
        x = width[..., 0] * noise[..., 0]
        y = self.slope.gather(1, which) * x + width[..., 1] * noise[..., 1]
        return mean + torch.stack([x, y], dim=-1)


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

    def fit(self, inputs: ArcInputs, rho: Tensor, rho_dot: Tensor) -> None:
        """Fit the scaling on the true points of training arcs in the plane."""
        self.scaling.fit_moments(Plane.of(inputs, self.origin).forward(rho, rho_dot))

    def turned(self, heads: Tensor, arrow: Tensor) -> Tensor:
        """Heads of arcs that were shown backwards, with the range-rates as time runs.

        The fraction of the range-rates is then that from above, so y changes its sign.
        """
        weight, mean, width, slope = self._parts(heads)
        center, scale = (x[1].to(heads.dtype) for x in (self.scaling.center, self.scaling.scale))
        sign = arrow[:, None].to(heads.dtype)
        y = mean[..., 1] * sign + (sign - 1.0) * center / scale
        mean = torch.stack([mean[..., 0], y], dim=-1)
        return torch.cat([weight, mean.flatten(1), width.flatten(1), slope * sign], dim=-1)

    def mixture(self, heads: Tensor) -> Mixture:
        """Mixtures of heads (B, 6K)."""
        weight, mean, width, slope = self._parts(heads)
        return Mixture(torch.log_softmax(weight, dim=-1), mean, width.clamp(*_LOG_WIDTHS), slope)

    def log_density(self, heads: Tensor, inputs: ArcInputs, rho: Tensor, rho_dot: Tensor) -> Tensor:
        """Logarithm of the density over (ln rho, rho_dot) [d/au], (B,)."""
        plane = Plane.of(inputs, self.origin)
        point = self.scaling(plane.forward(rho, rho_dot))
        log_scale = torch.log(self.scaling.scale).sum()
        return self.mixture(heads).log_density(point) - log_scale + plane.log_slope(rho, rho_dot)

    def forward(self, heads: Tensor, inputs: ArcInputs) -> Pair:
        """Range and range-rate of the mean in the plane."""
        mixture = self.mixture(heads)
        mean = (torch.exp(mixture.log_weight)[..., None] * mixture.mean).sum(dim=1)
        return Plane.of(inputs, self.origin).inverse(*self.scaling.restore(mean).unbind(-1))

    def _parts(self, heads: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        k = self.n_heads // _NUMBERS
        weight, mean, width, slope = heads.split([k, 2 * k, 2 * k, k], dim=-1)
        return weight, mean.unflatten(1, (k, 2)), width.unflatten(1, (k, 2)), slope
