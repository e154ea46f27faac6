"""The scalar range equation and the residuals of a network in it.

The object is drawn by the Sun and by the Earth, the observer is carried by whatever carries it;
projected on the line of sight u this is::

    rho'' = rho |u'|^2 + u . (r'' - R''),    r'' = -mu r / r^3 - mu_E d / d^3,

with the object at ``r = R + rho u`` and at d from the centre of the Earth. From the geocentre, with
the Earth itself on a two-body orbit, ``R'' = -mu R / R^3`` and ``d = rho u``: the paper's equation
(PINN_DDOTRHO). From the ground the acceleration of the observer is *measured*, by the same fit as
the motion on the sky: the rotation of the Earth, 1.7e-3 au/d^2, outweighs the pull of the Sun.
Light time is left out, as in the paper; it matters to a part in 1e4.

Planets can pull as well (the paper's future work). Each adds to r'' its own pull on the object less
that on the Sun, which is the origin::

    mu_P ((r_P - r) / |r_P - r|^3 - r_P / r_P^3),

and an Earth that is held to its orbit gets the same, so that only the difference between object
and Earth counts: for Jupiter and near-Earth objects some 1e-9 au/d^2, as much as the Earth pulls an
object at 1 au.

Whatever a network's output, log range or range, these are equations between au, au/d and au/d^2:
residuals are taken of physical quantities and scaled as in the paper. For log range that means
``d rho/dt = rho d(log rho)/dt``, so a near object's fractional error counts as the small velocity
that it is, and no residual grows without bound as rho goes to zero.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

import torch
from torch import Tensor

from neoranging.constants import EARTH_ROTATION_RATE, GM_EARTH, GM_PLANETS, GM_SUN, R_EARTH
from neoranging.nn.geometry import Axes, dot
from neoranging.nn.inputs import ArcInputs

VELOCITY: Final = math.sqrt(GM_SUN)
"""Characteristic velocity V_c = sqrt(mu / 1 au) [au/d] (paper, eq:f_kin)."""
MAX_RESIDUAL: Final = 100.0
"""Bound of the dimensionless residuals (ibid.)."""

_NO_PLANETS: Final[Mapping[str, Tensor]] = MappingProxyType({})


class SightGeometry(NamedTuple):
    """Observer, line of sight and proper motion of an arc at t2."""

    direction: Tensor
    """Line of sight u, (B, 3)."""
    proper_motion_square: Tensor
    """``eta^2 = |u'|^2`` [rad^2/d^2], (B,)."""
    observer: Tensor
    """Heliocentric position of the observer, (B, 3) [au]."""
    observer_acc: Tensor
    """Heliocentric acceleration of the observer, (B, 3) [au/d^2]."""
    from_earth: Tensor
    """Observer relative to the centre of the Earth, (B, 3) [au]."""
    planets: Mapping[str, Tensor] = _NO_PLANETS
    """Heliocentric positions of the planets that pull as well, by name, (B, 3) [au]."""

    @classmethod
    def of(
        cls, inputs: ArcInputs, origin: str, planets: Mapping[str, Tensor] = _NO_PLANETS
    ) -> SightGeometry:
        """Geometry as seen from the "geocenter" or the "topocenter".

        From the geocenter (paper) the middle observation and three-point rates, and the Earth on a
        two-body orbit that the planets bend; otherwise the fit of all observations. Two epochs show
        no acceleration of the observer, who is then held to that orbit of the Earth, and none of
        the path on the sky that would have to be held against it.
        """
        free_fall = _pull(inputs.earth, GM_SUN) + _perturbation(inputs.earth, planets)
        if origin == "geocenter":
            dec, motion = inputs.dec[..., 1], inputs.motion()
            return cls(
                Axes.at(torch.stack([inputs.ra[..., 1], dec], dim=-1)).sight,
                (motion.ra_rate * torch.cos(dec)) ** 2 + motion.dec_rate**2,
                inputs.earth,
                free_fall,
                torch.zeros_like(inputs.earth),
                planets,
            )
        is_straight = inputs.curved[..., None] == 0.0
        return cls(
            Axes.at(inputs.sky).sight,
            dot(inputs.sky_rate, inputs.sky_rate),
            inputs.observer,
            torch.where(is_straight, free_fall, inputs.observer_acc),
            inputs.observer - inputs.earth,
            planets,
        )


def range_acceleration(geometry: SightGeometry, rho: Tensor) -> Tensor:
    """Right-hand side of the range equation at range ``rho`` [au], (B,) [au/d^2].

    The pull of the Earth is held at its value on the ground for estimates inside.
    """
    path = rho[..., None] * geometry.direction
    place = geometry.observer + path
    gravity = _pull(place, GM_SUN)
    gravity = gravity + _pull(geometry.from_earth + path, GM_EARTH, nearest=R_EARTH)
    gravity = gravity + _perturbation(place, geometry.planets)
    relative = dot(geometry.direction, gravity - geometry.observer_acc)
    return rho * geometry.proper_motion_square + relative


class Residuals(NamedTuple):
    """Dimensionless residuals of the two equations, (B,), within ``MAX_RESIDUAL``."""

    kinematic: Tensor
    """``(d rho/dt - rho_dot) / V_c`` (paper, eq:f_kin)."""
    motion: Tensor
    """``(d rho_dot/dt - rho'') / a_c`` with ``a_c = mu + eta^2`` at 1 au (paper, eq:f_eom)."""


def residuals(
    geometry: SightGeometry, state: tuple[Tensor, Tensor], rate: tuple[Tensor, Tensor]
) -> Residuals:
    """Residuals of an estimate and its derivative along the arc in the equations.

    Parameters
    ----------
    geometry : SightGeometry
        From the origin of the estimate.
    state : tuple of Tensor
        Range [au] and range-rate [au/d], each (B,).
    rate : tuple of Tensor
        Their derivatives by time.
    """
    (rho, rho_dot), (rho_rate, rho_dot_rate) = state, rate
    scale = GM_SUN + geometry.proper_motion_square
    kinematic = (rho_rate - rho_dot) / VELOCITY
    motion = (rho_dot_rate - range_acceleration(geometry, rho)) / scale
    return Residuals(
        kinematic.clamp(-MAX_RESIDUAL, MAX_RESIDUAL), motion.clamp(-MAX_RESIDUAL, MAX_RESIDUAL)
    )


def jerks(inputs: ArcInputs, rho: Tensor, rho_dot: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Third derivatives of the path on the sky and of the observer where the range is known.

    An arc of minutes to hours shows its curvature but not how that changes, and the change is
    large: seen from the ground the curvature is mostly parallax, which turns once a day. The true
    range of a training arc supplies it, and the change of the parallax. Given to
    `ArcInputs.tangent`, the three make the motion of the input that of the true orbit.

    Parameters
    ----------
    inputs : ArcInputs
    rho, rho_dot : Tensor, shape (B,)
        True topocentric range [au] and range-rate [au/d].

    Returns
    -------
    sky_jerk : Tensor, shape (B, 2)
        Along (east, north) as `ArcInputs.tangent` takes it [rad/d^3]; zero with two epochs.
    observer_jerk : Tensor, shape (B, 3)
        [au/d^3]; zero with two epochs.
    parallax_rate : Tensor, shape (B,)
        [1/au/d]; zero where the parallax is not determined.

    Notes
    -----
    The station turns with the Earth, so its third derivative is ``-omega^2`` times its velocity
    relative to the centre; geocentric and orbiting observers are not told apart from stations,
    the former having no such velocity. The rest is the third derivative of ``r = R + rho u``,
    without planets, of which a training arc's own motion knows nothing either.
    """
    geometry = SightGeometry.of(inputs, "topocenter")
    parallax_rate = torch.where(inputs.parallax != 0.0, -rho_dot / rho**2, 0.0)
    sight, rho, rho_dot = geometry.direction, rho[..., None], rho_dot[..., None]
    axes = Axes.at(inputs.sky)
    rate, bend = axes.tangential(inputs.sky_rate), axes.tangential(inputs.sky_acc)
    station_velocity = inputs.observer_rate - inputs.earth_rate
    observer_jerk = -(EARTH_ROTATION_RATE**2) * station_velocity
    observer_jerk = observer_jerk + _tide(inputs.earth, inputs.earth_rate, GM_SUN)
    path, path_rate = rho * sight, rho_dot * sight + rho * rate
    object_jerk = _tide(inputs.observer + path, inputs.observer_rate + path_rate, GM_SUN)
    object_jerk = object_jerk + _tide(
        geometry.from_earth + path, station_velocity + path_rate, GM_EARTH, nearest=R_EARTH
    )
    range_acc = range_acceleration(geometry, rho[..., 0])[..., None]
    # Across the line of sight; the covariant derivative of the curvature has one term more.
    third = object_jerk - observer_jerk - 3.0 * rho_dot * bend - 3.0 * range_acc * rate
    third = third / rho + geometry.proper_motion_square[..., None] * rate
    curved = inputs.curved[..., None]
    sky_jerk = torch.stack([dot(third, axes.east), dot(third, axes.north)], dim=-1)
    return sky_jerk * curved, observer_jerk * curved, parallax_rate


def _pull(position: Tensor, mu: float, nearest: float = 0.0) -> Tensor:
    """Acceleration [au/d^2] by a mass at the origin, no stronger than at ``nearest`` [au]."""
    distance = torch.linalg.vector_norm(position, dim=-1, keepdim=True)
    floor = max(nearest, torch.finfo(position.dtype).tiny ** 0.25)
    return -mu * position / distance.clamp_min(floor) ** 3


def _perturbation(position: Tensor, planets: Mapping[str, Tensor]) -> Tensor:
    """Heliocentric acceleration [au/d^2] by planets, that of the Sun by them taken off."""
    total = torch.zeros_like(position)
    for name, planet in planets.items():
        gm = GM_PLANETS[name]
        total = total + _pull(position - planet, gm) + _pull(planet, gm)
    return total


def _tide(position: Tensor, velocity: Tensor, mu: float, nearest: float = 0.0) -> Tensor:
    """Derivative of `_pull` by time [au/d^3] along a motion."""
    distance = torch.linalg.vector_norm(position, dim=-1, keepdim=True)
    floor = max(nearest, torch.finfo(position.dtype).tiny ** 0.25)
    distance = distance.clamp_min(floor)
    radial = dot(position, velocity)[..., None]
    return -mu * (velocity - 3.0 * radial / distance**2 * position) / distance**3
