"""Inputs of networks, raw and differentiable, and their derivatives by time.

The time derivative of a network's output is taken along the motion of its own input: the arc is
slid along itself, every observation by the same interval, the offsets between them unchanged. Which
raw number changes how fast is `ArcInputs.tangent`; everything behind it is the chain rule.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from neoranging.constants import GM_SUN
from neoranging.nn.arrays import Array, clipped, joined, namespace_of
from neoranging.nn.geometry import TripletMotion, dot, three_point

MAX_RATE_RAD_D: Final = 1.0
"""Envelope of coordinate rates rebuilt from a triplet [rad/d] (paper, section on the losses)."""

MAX_ACCELERATION_RAD_D2: Final = 0.5
"""Envelope of coordinate accelerations rebuilt from a triplet [rad/d^2] (ibid.)."""


class ArcInputs(NamedTuple):
    """B arcs as arrays; au, day, radian, ICRS equatorial axes, heliocentric.

    The reference epoch t2 is that of the middle observation, and is itself no input.
    """

    dt1: Array
    """First epoch minus t2 [d], (B,); zero where the middle observation is the first."""
    dt3: Array
    """Last epoch minus t2 [d], (B,)."""
    ra: Array
    """Right ascensions of first, middle and last observation, (B, 3)."""
    dec: Array
    """Declinations of the same, (B, 3)."""
    earth: Array
    """Centre of the Earth at t2, (B, 3)."""
    earth_rate: Array
    """Velocity of the centre of the Earth at t2, (B, 3)."""
    sky: Array
    """(ra, dec) at t2 by the weighted fit of all observations, (B, 2)."""
    sky_rate: Array
    """Derivative of the line of sight along (east, north) at ``sky``, cos(dec) included, (B, 2).

    The first derivatives of `neoranging.core.attributable.TangentFit`.
    """
    sky_acc: Array
    """Curvature of the path: second derivative of the line of sight along (east, north), (B, 2)."""
    log_span: Array
    """Natural logarithm of t3 - t1 in days, (B,)."""
    log_sigma_acc: Array
    """Natural logarithms of the standard errors of ``sky_acc`` [rad/d^2], (B, 2)."""
    curved: Array
    """1 with three epochs or more, 0 with two: then accelerations are zero and not used; (B,)."""
    observer: Array
    """Observer at t2 by the same fit as the sky, (B, 3)."""
    observer_rate: Array
    """First derivative by that fit, (B, 3): smoothed exactly as ``sky_rate`` is."""
    observer_acc: Array
    """Second derivative by that fit, (B, 3)."""
    observer_velocity: Array
    """Velocity of the observer at the instant t2, (B, 3): what the admissible region is made of."""
    parallax: Array
    """Inverse range by what the observers' path has beyond a parabola [1/au], (B,); zero where
    that tells nothing."""
    log_sigma_parallax: Array
    """Natural logarithm of its standard error [1/au], (B,)."""
    magnitude: Array
    """Mean of the apparent magnitudes in the band V, (B,); zero where there is none."""
    has_magnitude: Array
    """1 with a magnitude, 0 without, (B,)."""
    root: Array
    """Natural logarithm of the range in au that Gauss's method answers, (B,); zero without."""
    root_rate: Array
    """Its derivative by the motion of the orbit of that answer [1/d], (B,)."""
    log_error_root: Array
    """Natural logarithm of the standard error of ``root``, (B,)."""
    has_root: Array
    """1 where Gauss's method has an answer, 0 elsewhere, (B,)."""

    def map(self, function: Callable[[Array], Array]) -> ArcInputs:
        """Apply a function to every column, as in ``inputs.map(lambda x: x[rows])``."""
        return ArcInputs(*(function(column) for column in self))

    def motion(self) -> TripletMotion:
        """Three-point motion of the triplet within the envelope of the paper."""
        raw = three_point(self.dt1, self.dt3, self.ra, self.dec)
        limits = (MAX_RATE_RAD_D, MAX_RATE_RAD_D, MAX_ACCELERATION_RAD_D2, MAX_ACCELERATION_RAD_D2)
        return TripletMotion(
            *(clipped(value, -limit, limit) for value, limit in zip(raw, limits, strict=True))
        )

    def tangent(
        self,
        sky_jerk: Array | None = None,
        observer_jerk: Array | None = None,
        parallax_rate: Array | None = None,
    ) -> ArcInputs:
        """Derivative of every input by time, the arc sliding along itself.

        Parameters
        ----------
        sky_jerk : Array, shape (B, 2), optional
            Change of ``sky_acc`` beyond the turn of east and north [rad/d^3].
        observer_jerk : Array, shape (B, 3), optional
            Change of ``observer_acc`` [au/d^3]. An arc determines neither third derivative;
            without them it follows its own parabola. Where the range is known, as in training,
            `neoranging.lab.training.physics.jerks` gives all three: give all or none, for they
            cancel.
        parallax_rate : Array, shape (B,), optional
            Change of ``parallax`` [1/au/d]; zero by default. The errors of an arc are carried along
            unchanged.

        Returns
        -------
        ArcInputs
            The same columns per day.

        Notes
        -----
        East and north turn about the line of sight by ``ra_rate sin(dec)`` as the direction moves,
        so components along them change even where the vector is carried along unchanged.
        """
        xp = namespace_of(self.dt1)
        motion, zero = self.motion(), xp.zeros_like(self.dt1)
        dt = joined(self.dt1, zero, self.dt3)
        dec = self.sky[..., 1]
        ra_rate = self.sky_rate[..., 0] / xp.cos(dec)
        turn = ra_rate * xp.sin(dec)
        sky_jerk = xp.zeros_like(self.sky_acc) if sky_jerk is None else sky_jerk
        no_jerk = xp.zeros_like(self.observer_acc)
        distance = xp.sqrt(dot(self.earth, self.earth))[..., None]
        return ArcInputs(
            dt1=zero,
            dt3=zero,
            ra=motion.ra_rate[..., None] + motion.ra_acc[..., None] * dt,
            dec=motion.dec_rate[..., None] + motion.dec_acc[..., None] * dt,
            earth=self.earth_rate,
            earth_rate=-GM_SUN * self.earth / distance**3,
            sky=joined(ra_rate, self.sky_rate[..., 1]),
            sky_rate=self.sky_acc + _turned(self.sky_rate, turn),
            sky_acc=sky_jerk + _turned(self.sky_acc, turn),
            log_span=zero,
            log_sigma_acc=xp.zeros_like(self.log_sigma_acc),
            curved=xp.zeros_like(self.curved),
            observer=self.observer_rate,
            observer_rate=self.observer_acc,
            observer_acc=no_jerk if observer_jerk is None else observer_jerk,
            observer_velocity=self.observer_acc,
            parallax=zero if parallax_rate is None else parallax_rate,
            log_sigma_parallax=zero,
            # an object brightens by hundredths of a magnitude in a night, its rotation aside
            magnitude=zero,
            has_magnitude=zero,
            root=self.root_rate,
            root_rate=zero,
            log_error_root=zero,
            has_root=zero,
        )


def _turned(components: Array, turn: Array) -> Array:
    """Change of (east, north) components of a carried vector by the turn of the axes [1/d]."""
    return joined(components[..., 1] * turn, -components[..., 0] * turn)
