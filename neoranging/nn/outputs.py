"""Outputs of networks: from the values of two heads to range and range-rate.

Every output maps ``heads (B, 2)`` and the inputs to physical range [au] and range-rate [au/d], and
defines the space in which its errors are measured (`normalise`).

`MinMaxOutput` is the paper's. `LogOutput` gives the logarithm of the range, so that an error is a
fraction of the range whatever the range, and the range-rate as the velocity of the object *in the
heliocentric frame* along the line of sight, in units of the escape velocity at 1 au: what the
observer contributes, ``-v.u``, is known and need not be learnt. `AdmissibleOutput` puts the same
two numbers into the admissible region of the arc, so that no answer is ever unbound from the Sun,
bound to the Earth or inside it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn import functional

from neoranging.constants import GM_SUN, R_EARTH
from neoranging.nn.forward_mode import jvp
from neoranging.nn.geometry import dot
from neoranging.nn.inputs import ArcInputs
from neoranging.nn.region import (
    Attributable,
    energy_coefficients,
    escape_rate,
    range_limits,
    strip_square,
)
from neoranging.nn.scaling import Scaling

Pair = tuple[Tensor, Tensor]

LOG_ERROR_LIMITS: Final = (-9.0, 3.0)
"""Limits of the logarithm of an expected error in the normalised space."""

_ESCAPE: Final = math.sqrt(2.0 * GM_SUN)
"""Escape velocity from the Sun at 1 au [au/d]."""
_MARGIN: Final = 1.0e-3
"""Fraction of the strip, and of the logarithmic range, kept off the border of the region.

Rounding and the difference between two ways of writing an attributable stay below it.
"""
_SHARPNESS: Final = 20.0
"""Sharpness of the corner at which a log range bends into its limit, per unit of it."""


class Output(nn.Module):
    """A map of two heads to range and range-rate.

    Parameters
    ----------
    origin : {"geocenter", "topocenter"}
        Origin of the range.

    Attributes
    ----------
    scaling : Scaling
        Scaling of the two columns of `normalise`.
    n_heads : int
        Number of values that it takes from the heads of a network.
    """

    n_heads = 2

    def __init__(self, origin: str, names: tuple[str, str]) -> None:
        super().__init__()
        self.origin = origin
        self.scaling = Scaling(names)

    def fit(self, inputs: ArcInputs, rho: Tensor, rho_dot: Tensor) -> None:
        """Fit the scaling on the true ranges and range-rates of training arcs."""
        raise NotImplementedError

    def turned(self, heads: Tensor, arrow: Tensor) -> Tensor:
        """Heads (..., B, 2) with the sign of the second, a velocity, as time runs.

        ``arrow`` (B,) is 1, or -1 for arcs that were shown backwards.
        """
        return torch.stack([heads[..., 0], arrow * heads[..., 1]], dim=-1)

    def forward(self, heads: Tensor, inputs: ArcInputs) -> Pair:
        """Range [au] and range-rate [au/d], each (B,)."""
        raise NotImplementedError

    def normalise(self, rho: Tensor, rho_dot: Tensor) -> Tensor:
        """The space of errors, (B, 2); the same for estimates and truth."""
        raise NotImplementedError

    def deviations(self, log_error: Tensor, rho: Tensor) -> Tensor:  # noqa: ARG002
        """Standard deviations of range [au] and range-rate [au/d], (B, 2).

        Parameters
        ----------
        log_error : Tensor, shape (B, 2)
            Logarithms of the mean absolute errors in the normalised space; those of Laplace's law.
        rho : Tensor, shape (B,)
            Ranges [au] that they are of.
        """
        size = torch.exp(log_error.clamp(*LOG_ERROR_LIMITS))
        return math.sqrt(2.0) * size * self.scaling.scale.to(log_error.dtype)

    def with_tangent(
        self, heads: Tensor, heads_rate: Tensor, inputs: ArcInputs, tangent: ArcInputs
    ) -> tuple[Pair, Pair]:
        """Range and range-rate, and their derivatives by time."""
        return jvp(self, (heads, inputs), (heads_rate, tangent))


class MinMaxOutput(Output):
    """Range and range-rate scaled from their extremes to [-1, 1], as in the paper."""

    def __init__(self, origin: str) -> None:
        super().__init__(origin, ("rho", "rho_dot"))

    def fit(self, inputs: ArcInputs, rho: Tensor, rho_dot: Tensor) -> None:  # noqa: ARG002
        """Fit the scaling on the extremes of training arcs."""
        self.scaling.fit_range(torch.stack([rho, rho_dot], dim=-1))

    def forward(self, heads: Tensor, inputs: ArcInputs) -> Pair:  # noqa: ARG002
        """Range, which nothing keeps positive, and range-rate."""
        rho, rho_dot = self.scaling.restore(heads).unbind(-1)
        return rho, rho_dot

    def normalise(self, rho: Tensor, rho_dot: Tensor) -> Tensor:
        """Scaled range and range-rate."""
        return self.scaling(torch.stack([rho, rho_dot], dim=-1))


class LogOutput(Output):
    """Log range, and the velocity along the line of sight in units of the escape velocity at 1 au.

    ``log rho = center + scale h0`` and ``rho_dot = v_esc h1 - v.u``. Errors are those of the log
    range and of the range-rate, each in units of its standard deviation over the training arcs.
    """

    def __init__(self, origin: str) -> None:
        super().__init__(origin, ("log_rho", "rho_dot"))

    def fit(self, inputs: ArcInputs, rho: Tensor, rho_dot: Tensor) -> None:  # noqa: ARG002
        """Fit the scaling on the moments of training arcs."""
        self.scaling.fit_moments(torch.stack([torch.log(rho), rho_dot], dim=-1))

    def forward(self, heads: Tensor, inputs: ArcInputs) -> Pair:
        """Range, always positive, and range-rate."""
        at = Attributable.of(inputs, self.origin)
        rho_dot = _ESCAPE * heads[..., 1] - dot(at.velocity, at.sight)
        return torch.exp(self._log_rho(heads)), rho_dot

    def normalise(self, rho: Tensor, rho_dot: Tensor) -> Tensor:
        """Scaled log range and range-rate."""
        return self.scaling(torch.stack([torch.log(rho), rho_dot], dim=-1))

    def deviations(self, log_error: Tensor, rho: Tensor) -> Tensor:
        """Standard deviations, that of the range by the one of its logarithm; see `Output`."""
        of_log, of_rate = super().deviations(log_error, rho).unbind(-1)
        return torch.stack([of_log * rho, of_rate], dim=-1)

    def _log_rho(self, heads: Tensor) -> Tensor:
        center, scale = (x[0].to(heads.dtype) for x in (self.scaling.center, self.scaling.scale))
        return center + scale * heads[..., 0]


class AdmissibleOutput(LogOutput):
    """The heads of `LogOutput` led into the admissible region of the arc.

    The log range bends smoothly into its two ends, the radius of the Earth and the last range at
    which an orbit is bound to the Sun; between two components it moves to the nearer end. At that
    range the second head runs through the bound range-rates by a hyperbolic tangent, Earth-bound
    ones cut out: to the middle of the strip, and far from its border, this is `LogOutput` again but
    for the unit, which is the local half-width.
    """

    def forward(self, heads: Tensor, inputs: ArcInputs) -> Pair:
        """Range and range-rate inside the region, each (B,)."""
        c = energy_coefficients(inputs, self.origin)
        rho = torch.exp(_within(self._log_rho(heads), c))
        fraction = 0.5 + 0.5 * torch.tanh(heads[..., 1])
        return rho, _rate_at(fraction, c, rho)


def _within(log_rho: Tensor, c: Tensor) -> Tensor:
    """Log range led into the ranges at which the strip is open; in a gap, to the nearer end."""
    # the three limits, each moved a little into its component
    inward = c.new_tensor([-_MARGIN, _MARGIN, -_MARGIN])
    near_end, far_start, far_end = (torch.log(range_limits(c)) + inward).unbind(-1)
    lowest = math.log(R_EARTH) + _MARGIN
    x = lowest + functional.softplus(log_rho - lowest, beta=_SHARPNESS)
    x = far_end - functional.softplus(far_end - x, beta=_SHARPNESS)
    in_gap = (x > near_end) & (x < far_start)
    nearer = torch.where(x - near_end < far_start - x, near_end, far_start)
    # the slope of the identity is kept, or such an arc could never be learnt
    return torch.where(in_gap, nearer + (x - x.detach()), x)


def _rate_at(fraction: Tensor, c: Tensor, rho: Tensor) -> Tensor:
    """Range-rate that lies ``fraction`` of the way through the admissible ones at ``rho``."""
    floor = torch.finfo(rho.dtype).tiny
    half_width = torch.sqrt(strip_square(c, rho).clamp_min(floor)) * (1.0 - _MARGIN)
    middle = -0.5 * c[..., 1]
    low, high = middle - half_width, middle + half_width
    escape = escape_rate(c, rho) * (1.0 + _MARGIN)
    receding = torch.maximum(low, escape)
    approaching_length = (torch.minimum(high, -escape) - low).clamp_min(0.0)
    receding_length = (high - receding).clamp_min(0.0)
    along = fraction * (approaching_length + receding_length)
    approaches = (along < approaching_length) | (receding_length == 0.0)
    return torch.where(approaches, low + along, receding + (along - approaching_length))


OUTPUTS: Final[dict[str, Callable[[str], Output]]] = {
    "minmax": MinMaxOutput,
    "log": LogOutput,
    "admissible": AdmissibleOutput,
}
"""Outputs by name."""
