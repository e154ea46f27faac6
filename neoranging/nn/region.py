"""The admissible region: `neoranging.core.admissible` once more, differentiable.

Shapes, units and symbols are those of that module; ``c`` is (B, 6). Only the part that networks
need is here: energies, the strip of bound range-rates, and the ranges over which it is open.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from array_api_compat import device

from neoranging.constants import GM_EARTH, GM_SUN, R_EARTH
from neoranging.core.admissible import closing_ranges
from neoranging.nn.arrays import Array, constant, joined, namespace_of, smallest
from neoranging.nn.geometry import Axes, three_point
from neoranging.nn.inputs import ArcInputs

_N_GRID: Final = 64
"""Number of trial ranges, evenly spaced in the logarithm, a fifth apart."""
_N_NEWTON: Final = 8


class Attributable(NamedTuple):
    """Line of sight and its derivative, and the observer at the instant; each (B, 3)."""

    sight: Array
    sight_rate: Array
    position: Array
    velocity: Array

    @classmethod
    def of(cls, inputs: ArcInputs, origin: str) -> Attributable:
        """Attributable of triplet and Earth ("geocenter"), or of fit and observer."""
        if origin == "geocenter":
            sky = joined(inputs.ra[..., 1], inputs.dec[..., 1])
            motion = three_point(inputs.dt1, inputs.dt3, inputs.ra, inputs.dec)
            cos_dec = namespace_of(sky).cos(sky[..., 1])
            rate = joined(motion.ra_rate * cos_dec, motion.dec_rate)
            position, velocity = inputs.earth, inputs.earth_rate
        else:
            sky, rate = inputs.sky, inputs.sky_rate
            position, velocity = inputs.observer, inputs.observer_velocity
        axes = Axes.at(sky)
        return cls(axes.sight, axes.tangential(rate), position, velocity)


def energy_coefficients(inputs: ArcInputs, origin: str) -> Array:
    """Coefficients c0..c5 (Milani & Gronchi 2010, sec. 8.1), (B, 6).

    Parameters
    ----------
    inputs : ArcInputs
    origin : {"geocenter", "topocenter"}
        See `Attributable.of`.
    """
    at = Attributable.of(inputs, origin)
    xp = namespace_of(at.sight)
    rows = xp.concat([vector[..., None, :] for vector in at], axis=-2)
    products = rows @ rows.mT
    u, du, r, v = range(4)
    return joined(
        products[..., r, r],
        2.0 * products[..., v, u],
        products[..., du, du],
        2.0 * products[..., v, du],
        products[..., v, v],
        2.0 * products[..., r, u],
    )


def heliocentric_distance(c: Array, rho: Array) -> Array:
    """Distance from the Sun [au] at range ``rho`` [au]."""
    xp = namespace_of(rho)
    return xp.sqrt(xp.maximum((rho + c[..., 5]) * rho + c[..., 0], smallest(rho)))


def sun_energy(c: Array, rho: Array, rho_dot: Array) -> Array:
    """Heliocentric two-body energy per mass [au^2/d^2]."""
    kinetic = (rho_dot + c[..., 1]) * rho_dot + (c[..., 2] * rho + c[..., 3]) * rho + c[..., 4]
    return 0.5 * kinetic - GM_SUN / heliocentric_distance(c, rho)


def earth_energy(c: Array, rho: Array, rho_dot: Array) -> Array:
    """Geocentric two-body energy per mass [au^2/d^2]."""
    return 0.5 * (rho_dot * rho_dot + c[..., 2] * rho * rho) - GM_EARTH / rho


def is_admissible(c: Array, rho: Array, rho_dot: Array) -> Array:
    """Mask of the points in the region: bound to the Sun, not to the Earth, outside it; (B,)."""
    free = earth_energy(c, rho, rho_dot) >= 0.0
    return (rho > R_EARTH) & (sun_energy(c, rho, rho_dot) <= 0.0) & free


def transverse_square(c: Array, rho: Array) -> Array:
    """Square of the heliocentric velocity across the line of sight [au^2/d^2]."""
    return (c[..., 2] * rho + c[..., 3]) * rho + (c[..., 4] - 0.25 * c[..., 1] ** 2)


def strip_square(c: Array, rho: Array) -> Array:
    """Square of the half-width of the strip of bound range-rates; negative where it is closed."""
    return 2.0 * GM_SUN / heliocentric_distance(c, rho) - transverse_square(c, rho)


def escape_rate(c: Array, rho: Array) -> Array:
    """Least ``|rho_dot|`` [au/d] not bound to the Earth; zero where all escape."""
    xp = namespace_of(rho)
    square = 2.0 * GM_EARTH / rho - c[..., 2] * rho * rho
    bound = square > 0.0
    # the root of zero has no slope: keep it out of the graph
    return xp.where(bound, xp.sqrt(xp.where(bound, square, xp.ones_like(square))), 0.0)


def range_limits(c: Array) -> Array:
    """Ranges [au] at which the strip closes, opens again and closes for good, (B, 3).

    All lie outside the Earth; with one component the three are equal.

    Notes
    -----
    Of numpy's arrays it is the compiled form of the core. Otherwise the zeros are bracketed on a
    grid in log range and refined by Newton's method held within the brackets. A second component
    narrower than the grid, as one arc of some ten thousand has, is then overlooked: the region is
    smaller, never too large. Exact to rounding where the roots are simple; differentiable by the
    coefficients, because the last step of Newton's method is taken with them (implicit function
    theorem).
    """
    if type(c) is np.ndarray:
        return closing_ranges(c)
    xp, plain = namespace_of(c), constant(c)
    edges = _grid(plain)
    closed = strip_square(plain[..., None, :], edges) <= 0.0
    changes = closed[..., 1:] != closed[..., :-1]
    order = xp.cumulative_sum(xp.astype(changes, xp.int64), axis=-1)
    several = order[..., -1:] >= 3
    index = xp.concat(
        [
            xp.argmax(xp.astype(changes & (order == xp.where(several, k, 1)), xp.int64), axis=-1)[
                ..., None
            ]
            for k in (1, 2, 3)
        ],
        axis=-1,
    )
    low, high = (xp.take_along_axis(edges, i, axis=-1) for i in (index, index + 1))
    return _refined(c[..., None, :], low, high)


def _grid(c: Array) -> Array:
    """Ranges from the Earth's radius to beyond all roots, (B, grid)."""
    # Past twice |r| the Sun is farther than rho/2; the two further bounds as in the numeric core.
    xp, floor = namespace_of(c), smallest(c)
    transverse = xp.maximum(c[..., 4] - 0.25 * c[..., 1] ** 2, 0.0)
    rate = xp.maximum(c[..., 2], floor)
    by_rate = xp.maximum(2.0 * xp.sqrt(transverse / rate), (16.0 * GM_SUN / rate) ** (1.0 / 3.0))
    least = transverse - c[..., 3] ** 2 / (4.0 * rate)
    by_velocity = 4.0 * GM_SUN / xp.maximum(least, floor)
    far = xp.maximum(2.0 * xp.sqrt(c[..., 0]), xp.minimum(by_rate, by_velocity)) * 1.001
    step = xp.linspace(0.0, 1.0, _N_GRID, dtype=c.dtype, device=device(c))
    return R_EARTH * xp.exp(step * xp.log(far / R_EARTH)[..., None])


def _closure(c: Array, rho: Array) -> tuple[Array, Array]:
    """``P sqrt(S) - 2 mu``, negative where the strip is open, and its derivative by range."""
    distance, transverse = heliocentric_distance(c, rho), transverse_square(c, rho)
    slope = (2.0 * c[..., 2] * rho + c[..., 3]) * distance
    slope = slope + transverse * (rho + 0.5 * c[..., 5]) / distance
    return transverse * distance - 2.0 * GM_SUN, slope


def _refined(c: Array, low: Array, high: Array) -> Array:
    """Zeros of the closure in brackets."""
    xp, plain = namespace_of(c), constant(c)
    root = xp.sqrt(low * high)
    starts_open = _closure(plain, low)[0] < 0.0
    for _ in range(_N_NEWTON):
        value, slope = _closure(plain, root)
        before = (value < 0.0) == starts_open
        low, high = xp.where(before, root, low), xp.where(before, high, root)
        step = root - value / slope
        inside = (step >= low) & (step <= high)  # a step of nothing stays
        root = xp.where(inside, step, 0.5 * (low + high))
    _, slope = _closure(plain, root)
    # the value alone carries the derivative by c; where the function is flat no step is taken
    value = transverse_square(c, root) * heliocentric_distance(c, root) - 2.0 * GM_SUN
    return root - value / xp.where(slope == 0.0, math.inf, slope)
