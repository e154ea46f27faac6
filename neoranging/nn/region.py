"""The admissible region in torch: `neoranging.core.admissible` once more, differentiable.

Shapes, units and symbols are those of that module; ``c`` is (B, 6). Only the part that networks
need is here: energies, the strip of bound range-rates, and the ranges over which it is open.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import torch
from torch import Tensor

from neoranging.constants import GM_EARTH, GM_SUN, R_EARTH
from neoranging.nn.geometry import dot, line_of_sight, sky_basis, three_point
from neoranging.nn.inputs import ArcInputs

_N_GRID: Final = 64
"""Number of trial ranges, evenly spaced in the logarithm, a fifth apart."""
_N_NEWTON: Final = 8


class Attributable(NamedTuple):
    """Line of sight and its derivative, and the observer at the instant; each (B, 3)."""

    sight: Tensor
    sight_rate: Tensor
    position: Tensor
    velocity: Tensor

    @classmethod
    def of(cls, inputs: ArcInputs, origin: str) -> Attributable:
        """Attributable of triplet and Earth ("geocenter"), or of fit and observer."""
        if origin == "geocenter":
            ra, dec = inputs.ra[..., 1], inputs.dec[..., 1]
            motion = three_point(inputs.dt1, inputs.dt3, inputs.ra, inputs.dec)
            east_rate, north_rate = motion.ra_rate * torch.cos(dec), motion.dec_rate
            position, velocity = inputs.earth, inputs.earth_rate
        else:
            ra, dec = inputs.sky.unbind(-1)
            east_rate, north_rate = inputs.sky_rate.unbind(-1)
            position, velocity = inputs.observer, inputs.observer_velocity
        east, north = sky_basis(ra, dec)
        sight_rate = east_rate[..., None] * east + north_rate[..., None] * north
        return cls(line_of_sight(ra, dec), sight_rate, position, velocity)


def energy_coefficients(inputs: ArcInputs, origin: str) -> Tensor:
    """Coefficients c0..c5 (Milani & Gronchi 2010, sec. 8.1), (B, 6).

    Parameters
    ----------
    inputs : ArcInputs
    origin : {"geocenter", "topocenter"}
        See `Attributable.of`.
    """
    sight, sight_rate, position, velocity = Attributable.of(inputs, origin)
    twice = 2.0 * velocity
    coefficients = (
        dot(position, position),
        dot(twice, sight),
        dot(sight_rate, sight_rate),
        dot(twice, sight_rate),
        dot(velocity, velocity),
        2.0 * dot(position, sight),
    )
    return torch.stack(coefficients, dim=-1)


def heliocentric_distance(c: Tensor, rho: Tensor) -> Tensor:
    """Distance from the Sun [au] at range ``rho`` [au]."""
    floor = torch.finfo(rho.dtype).tiny
    return torch.sqrt(((rho + c[..., 5]) * rho + c[..., 0]).clamp_min(floor))


def sun_energy(c: Tensor, rho: Tensor, rho_dot: Tensor) -> Tensor:
    """Heliocentric two-body energy per mass [au^2/d^2]."""
    kinetic = (rho_dot + c[..., 1]) * rho_dot + (c[..., 2] * rho + c[..., 3]) * rho + c[..., 4]
    return 0.5 * kinetic - GM_SUN / heliocentric_distance(c, rho)


def earth_energy(c: Tensor, rho: Tensor, rho_dot: Tensor) -> Tensor:
    """Geocentric two-body energy per mass [au^2/d^2]."""
    return 0.5 * (rho_dot * rho_dot + c[..., 2] * rho * rho) - GM_EARTH / rho


def is_admissible(c: Tensor, rho: Tensor, rho_dot: Tensor) -> Tensor:
    """Mask of the points in the region: bound to the Sun, not to the Earth, outside it; (B,)."""
    free = earth_energy(c, rho, rho_dot) >= 0.0
    return (rho > R_EARTH) & (sun_energy(c, rho, rho_dot) <= 0.0) & free


def transverse_square(c: Tensor, rho: Tensor) -> Tensor:
    """Square of the heliocentric velocity across the line of sight [au^2/d^2]."""
    return (c[..., 2] * rho + c[..., 3]) * rho + (c[..., 4] - 0.25 * c[..., 1] ** 2)


def strip_square(c: Tensor, rho: Tensor) -> Tensor:
    """Square of the half-width of the strip of bound range-rates; negative where it is closed."""
    return 2.0 * GM_SUN / heliocentric_distance(c, rho) - transverse_square(c, rho)


def escape_rate(c: Tensor, rho: Tensor) -> Tensor:
    """Least ``|rho_dot|`` [au/d] not bound to the Earth; zero where all escape."""
    square = 2.0 * GM_EARTH / rho - c[..., 2] * rho * rho
    bound = square > 0.0
    # the root of zero has no slope: keep it out of the graph
    return torch.where(bound, torch.sqrt(torch.where(bound, square, 1.0)), 0.0)


def range_limits(c: Tensor) -> Tensor:
    """Ranges [au] at which the strip closes, opens again and closes for good, (B, 3).

    All lie outside the Earth; with one component the three are equal.

    The zeros are bracketed on a grid in log range and refined by Newton's method held within the
    brackets. A second component narrower than the grid is overlooked: the region is then smaller,
    never too large.

    Notes
    -----
    Exact to rounding where the roots are simple; differentiable by the coefficients, because the
    last step of Newton's method is taken with them (implicit function theorem).
    """
    plain = c.detach()
    edges = _grid(plain)
    closed = strip_square(plain[..., None, :], edges) <= 0.0
    changes = closed[..., 1:] != closed[..., :-1]
    order = torch.cumsum(changes, dim=-1)
    several = order[..., -1:] >= 3
    number = torch.where(several, torch.arange(1, 4, device=c.device), 1)
    here = changes[..., None, :] & (order[..., None, :] == number[..., None])
    index = here.to(torch.uint8).argmax(dim=-1)
    low, high = edges.gather(-1, index), edges.gather(-1, index + 1)
    return _refined(c[..., None, :], low, high)


def _grid(c: Tensor) -> Tensor:
    """Ranges from the Earth's radius to beyond all roots, (B, grid)."""
    # Past twice |r| the Sun is farther than rho/2; the two further bounds as in the numeric core.
    transverse = (c[..., 4] - 0.25 * c[..., 1] ** 2).clamp_min(0.0)
    floor = torch.finfo(c.dtype).tiny
    rate = c[..., 2].clamp_min(floor)
    by_rate = torch.maximum(
        2.0 * torch.sqrt(transverse / rate), torch.pow(16.0 * GM_SUN / rate, 1.0 / 3.0)
    )
    least = transverse - c[..., 3] ** 2 / (4.0 * rate)
    by_velocity = 4.0 * GM_SUN / least.clamp_min(floor)
    far = torch.maximum(2.0 * torch.sqrt(c[..., 0]), torch.minimum(by_rate, by_velocity)) * 1.001
    near = torch.full_like(far, R_EARTH)
    step = torch.linspace(0.0, 1.0, _N_GRID, dtype=c.dtype, device=c.device)
    return near[..., None] * torch.exp(step * torch.log(far / near)[..., None])


def _closure(c: Tensor, rho: Tensor) -> tuple[Tensor, Tensor]:
    """``P sqrt(S) - 2 mu``, negative where the strip is open, and its derivative by range."""
    distance, transverse = heliocentric_distance(c, rho), transverse_square(c, rho)
    slope = (2.0 * c[..., 2] * rho + c[..., 3]) * distance
    slope = slope + transverse * (rho + 0.5 * c[..., 5]) / distance
    return transverse * distance - 2.0 * GM_SUN, slope


def _refined(c: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """Zeros of the closure in brackets."""
    plain, root = c.detach(), torch.sqrt(low * high)
    starts_open = _closure(plain, low)[0] < 0.0
    for _ in range(_N_NEWTON):
        value, slope = _closure(plain, root)
        before = (value < 0.0) == starts_open
        low, high = torch.where(before, root, low), torch.where(before, high, root)
        step = root - value / slope
        inside = (step >= low) & (step <= high)  # a step of nothing stays
        root = torch.where(inside, step, 0.5 * (low + high))
    _, slope = _closure(plain, root)
    # the value alone carries the derivative by c; where the function is flat no step is taken
    value = transverse_square(c, root) * heliocentric_distance(c, root) - 2.0 * GM_SUN
    return root - value / torch.where(slope == 0.0, torch.inf, slope)
