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

from neoranging.constants import GM_SUN, R_EARTH
from neoranging.nn.arrays import Array, clipped, constant, joined, namespace_of, smallest, softplus
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

Pair = tuple[Array, Array]

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


class Output:
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
        self.origin = origin
        self.scaling = Scaling(names)

    def fit(self, inputs: ArcInputs, rho: Array, rho_dot: Array) -> None:
        """Fit the scaling on the true ranges and range-rates of training arcs."""
        raise NotImplementedError

    def turned(self, heads: Array, arrow: Array) -> Array:
        """Heads (..., B, 2) with the sign of the second, a velocity, as time runs.

        ``arrow`` (B,) is 1, or -1 for arcs that were shown backwards.
        """
        return joined(heads[..., 0], arrow * heads[..., 1])

    def __call__(self, heads: Array, inputs: ArcInputs) -> Pair:
        """Range [au] and range-rate [au/d], each (B,)."""
        raise NotImplementedError

    def normalise(self, rho: Array, rho_dot: Array) -> Array:
        """The space of errors, (B, 2); the same for estimates and truth."""
        raise NotImplementedError

    def deviations(self, log_error: Array, rho: Array) -> Array:  # noqa: ARG002
        """Standard deviations of range [au] and range-rate [au/d], (B, 2).

        Parameters
        ----------
        log_error : Array, shape (B, 2)
            Logarithms of the mean absolute errors in the normalised space; those of Laplace's law.
        rho : Array, shape (B,)
            Ranges [au] that they are of.
        """
        size = namespace_of(log_error).exp(clipped(log_error, *LOG_ERROR_LIMITS))
        return math.sqrt(2.0) * self.scaling.spread(size)


class MinMaxOutput(Output):
    """Range and range-rate scaled from their extremes to [-1, 1], as in the paper."""

    def __init__(self, origin: str) -> None:
        super().__init__(origin, ("rho", "rho_dot"))

    def fit(self, inputs: ArcInputs, rho: Array, rho_dot: Array) -> None:  # noqa: ARG002
        """Fit the scaling on the extremes of training arcs."""
        self.scaling.fit_range(joined(rho, rho_dot))

    def __call__(self, heads: Array, inputs: ArcInputs) -> Pair:  # noqa: ARG002
        """Range, which nothing keeps positive, and range-rate."""
        state = self.scaling.restore(heads)
        return state[..., 0], state[..., 1]

    def normalise(self, rho: Array, rho_dot: Array) -> Array:
        """Scaled range and range-rate."""
        return self.scaling(joined(rho, rho_dot))


class LogOutput(Output):
    """Log range, and the velocity along the line of sight in units of the escape velocity at 1 au.

    ``log rho = center + scale h0`` and ``rho_dot = v_esc h1 - v.u``. Errors are those of the log
    range and of the range-rate, each in units of its standard deviation over the training arcs.
    """

    def __init__(self, origin: str) -> None:
        super().__init__(origin, ("log_rho", "rho_dot"))

    def fit(self, inputs: ArcInputs, rho: Array, rho_dot: Array) -> None:  # noqa: ARG002
        """Fit the scaling on the moments of training arcs."""
        self.scaling.fit_moments(joined(namespace_of(rho).log(rho), rho_dot))

    def __call__(self, heads: Array, inputs: ArcInputs) -> Pair:
        """Range, always positive, and range-rate."""
        at = Attributable.of(inputs, self.origin)
        rho_dot = _ESCAPE * heads[..., 1] - dot(at.velocity, at.sight)
        return namespace_of(heads).exp(self._log_rho(heads)), rho_dot

    def normalise(self, rho: Array, rho_dot: Array) -> Array:
        """Scaled log range and range-rate."""
        return self.scaling(joined(namespace_of(rho).log(rho), rho_dot))

    def deviations(self, log_error: Array, rho: Array) -> Array:
        """Standard deviations, that of the range by the one of its logarithm; see `Output`."""
        relative = super().deviations(log_error, rho)
        return joined(relative[..., 0] * rho, relative[..., 1])

    def _log_rho(self, heads: Array) -> Array:
        return self.scaling.restore(heads)[..., 0]


class AdmissibleOutput(LogOutput):
    """The heads of `LogOutput` led into the admissible region of the arc.

    The log range bends smoothly into its two ends, the radius of the Earth and the last range at
    which an orbit is bound to the Sun; between two components it moves to the nearer end. At that
    range the second head runs through the bound range-rates by a hyperbolic tangent, Earth-bound
    ones cut out: to the middle of the strip, and far from its border, this is `LogOutput` again but
    for the unit, which is the local half-width.
    """

    def __call__(self, heads: Array, inputs: ArcInputs) -> Pair:
        """Range and range-rate inside the region, each (B,)."""
        xp = namespace_of(heads)
        c = energy_coefficients(inputs, self.origin)
        rho = xp.exp(_within(self._log_rho(heads), c))
        fraction = 0.5 + 0.5 * xp.tanh(heads[..., 1])
        return rho, _rate_at(fraction, c, rho)


def _within(log_rho: Array, c: Array) -> Array:
    """Log range led into the ranges at which the strip is open; in a gap, to the nearer end."""
    # the three limits, each moved a little into its component
    xp = namespace_of(c)
    limits = xp.log(range_limits(c))
    near_end, far_start = limits[..., 0] - _MARGIN, limits[..., 1] + _MARGIN
    far_end = limits[..., 2] - _MARGIN
    lowest = math.log(R_EARTH) + _MARGIN
    x = lowest + softplus(log_rho - lowest, _SHARPNESS)
    x = far_end - softplus(far_end - x, _SHARPNESS)
    in_gap = (x > near_end) & (x < far_start)
    nearer = xp.where(x - near_end < far_start - x, near_end, far_start)
    # the slope of the identity is kept, or such an arc could never be learnt
    return xp.where(in_gap, nearer + (x - constant(x)), x)


def _rate_at(fraction: Array, c: Array, rho: Array) -> Array:
    """Range-rate that lies ``fraction`` of the way through the admissible ones at ``rho``."""
    xp = namespace_of(rho)
    half_width = xp.sqrt(xp.maximum(strip_square(c, rho), smallest(rho))) * (1.0 - _MARGIN)
    middle = -0.5 * c[..., 1]
    low, high = middle - half_width, middle + half_width
    escape = escape_rate(c, rho) * (1.0 + _MARGIN)
    receding = xp.maximum(low, escape)
    approaching_length = xp.maximum(xp.minimum(high, -escape) - low, 0.0)
    receding_length = xp.maximum(high - receding, 0.0)
    along = fraction * (approaching_length + receding_length)
    approaches = (along < approaching_length) | (receding_length == 0.0)
    return xp.where(approaches, low + along, receding + (along - approaching_length))


OUTPUTS: Final[dict[str, Callable[[str], Output]]] = {
    "minmax": MinMaxOutput,
    "log": LogOutput,
    "admissible": AdmissibleOutput,
}
"""Outputs by name."""
