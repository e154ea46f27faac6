"""`Ephemeris`: where the orbits drawn from a night stand on the sky at other instants."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from astropy import units as u
from astropy.coordinates import EarthLocation, SkyCoord
from astropy.table import QTable
from astropy.time import Time

from neoranging import ephemeris
from neoranging.constants import C_AU_PER_DAY
from neoranging.core.admissible import phase_magnitude
from neoranging.core.geometry import dot, norm, radec, sky_basis
from neoranging.ephemeris.states import almanac
from neoranging.followup.dynamics import dynamics_of
from neoranging.one_or_many import OneOrMany
from neoranging.orbits.samples import OrbitSamples
from neoranging.typing import FloatArray, IntArray, StrArray

Station = EarthLocation | str | Sequence[str] | StrArray | None
"""Place of an observer: an MPC code, a place, or one of them for each instant."""


class Clouds(NamedTuple):
    """Draws of M tracklets as seen at T instants, n of each, leading shape (M, T, n)."""

    direction: FloatArray
    """Unit vectors towards the object, ICRS axes, shape (M, T, n, 3)."""
    rate: FloatArray
    """Their derivatives by time [rad/d], shape (M, T, n, 3)."""
    rho: FloatArray
    """Lengths of the light paths [au], shape (M, T, n)."""
    sun: FloatArray
    """Distances from the Sun [au], shape (M, T, n)."""
    phase: FloatArray
    """Cosines of the phase angle, shape (M, T, n)."""

    def take(self, rows: IntArray) -> Clouds:
        """Those of some tracklets."""
        return Clouds(*(column[rows] for column in self))


class Ephemeris(OneOrMany):
    """Directions of the orbits drawn from the night of one tracklet, or of M, at T instants.

    Made by `RangeEstimate.ephemeris`. The draws of one instant are a cloud on the sky. Shapes below
    are of one tracklet and T instants; those of many tracklets have M in front, and those of a
    single instant lack T. Draws that have met the Earth before are NaN, and so is all of a tracklet
    that has no ephemeris.
    """

    def __init__(
        self,
        samples: OrbitSamples,
        times: Time,
        station: Station = None,
        *,
        dynamics: str = "near-earth",
        clouds: Clouds | None = None,
    ) -> None:
        self._samples, self.times, self.station = samples, times, station
        self._scalar = samples.range.ndim == 1
        instants = np.atleast_1d(ephemeris.tdb_mjd(times))
        self._observer = tuple(
            np.broadcast_to(x.to_value(unit), (len(instants), 3))
            for x, unit in zip(
                ephemeris.observer_posvel(times, station), (u.au, u.au / u.d), strict=True
            )
        )
        self._clouds = clouds or _clouds(samples, instants, dynamics, *self._observer)

    @property
    def _n_rows(self) -> int:
        return len(self._clouds.rho)

    def _take(self, rows: IntArray, scalar: bool) -> Ephemeris:
        samples = self._samples[int(rows[0])] if scalar else self._samples[rows]
        return Ephemeris(samples, self.times, self.station, clouds=self._clouds.take(rows))

    def _shaped(self, column: FloatArray) -> FloatArray:
        """Column (M, T, ...) without the axes of one tracklet and of one instant."""
        if self.times.isscalar:
            column = column[:, 0]
        return column[0] if self._scalar else column

    @cached_property
    def coord(self) -> SkyCoord:
        """Directions and distances of the draws, ICRS axes, from the observer, shape (T, n)."""
        ra, dec = radec(self._shaped(self._clouds.direction))
        return SkyCoord(ra, dec, self._shaped(self._clouds.rho) * u.au, unit=(u.rad, u.rad, u.au))

    @cached_property
    def center(self) -> SkyCoord:
        """Mean directions of the clouds, shape (T,)."""
        ra, dec = radec(self._shaped(self._mean_direction))
        return SkyCoord(ra, dec, unit=u.rad)

    @cached_property
    def _mean_direction(self) -> FloatArray:
        """Unit vectors to the middle of the clouds, shape (M, T, 3)."""
        some = np.isfinite(self._clouds.rho)[..., None]
        mean = np.where(some, self._clouds.direction, 0.0).sum(axis=2)
        with np.errstate(invalid="ignore"):
            return mean / norm(mean)[..., None]

    @property
    def proper_motion(self) -> u.Quantity:
        """Angular speeds of the draws, shape (T, n)."""
        return self._shaped(norm(self._clouds.rate)) << u.rad / u.d

    @property
    def position_angle(self) -> u.Quantity:
        """Directions of their motion, from north to east, shape (T, n)."""
        east, north = sky_basis(*radec(self._clouds.direction))
        rate = self._clouds.rate
        return self._shaped(np.arctan2(dot(rate, east), dot(rate, north)) % (2.0 * np.pi)) << u.rad

    @property
    def magnitude(self) -> u.Quantity:
        """Magnitudes V of the draws, shape (T, n); NaN of a tracklet without a magnitude.

        By the H-G system with G = 0.15 from the absolute magnitude that each draw has.
        """
        c = self._clouds
        size = self._samples.absolute_magnitude.to_value(u.mag)
        size = size.reshape(self._n_rows, 1, -1)
        return (
            self._shaped(size + 5.0 * np.log10(c.rho * c.sun) + phase_magnitude(c.phase)) << u.mag
        )

    def to_table(self) -> QTable:
        """One row a tracklet and instant."""
        raise NotImplementedError

    def _summary(self) -> dict[str, str]:
        return {}


def _clouds(
    samples: OrbitSamples,
    instants: FloatArray,
    dynamics: str,
    position: FloatArray,
    velocity: FloatArray,
) -> Clouds:
    """Draws at instants [MJD TDB] from observers with heliocentric states (T, 3) [au, au/d]."""
    n, views = samples.shape[-1], dynamics_of(dynamics).views
    r = samples.r.to_value(u.au).reshape(-1, n, 3)
    v = samples.v.to_value(u.au / u.d).reshape(-1, n, 3)
    epoch = samples.epoch.tdb.mjd.reshape(-1, n)
    order = np.argsort(instants, kind="stable")
    line, speed = np.empty((2, len(r), len(instants), n, 3))
    for k in range(len(r)):
        # the epochs of draws differ by their light times
        first = min(float(np.nanmin(epoch[k])), instants[order[0]] - 1.0)
        last = max(float(np.nanmax(epoch[k])), instants[order[-1]])
        seen = views(r[k], v[k], epoch[k], almanac(first, last), instants[order], position[order])
        line[k, order] = seen.line.swapaxes(0, 1)
        speed[k, order] = seen.velocity.swapaxes(0, 1)
    rho = norm(line)
    direction = line / rho[..., None]
    along = dot(direction, speed)
    # d(rho)/dt = L . (v (1 - rho_dot/c) - V), solved for rho_dot
    rho_dot = (along - dot(direction, velocity[:, None])) / (1.0 + along / C_AU_PER_DAY)
    apparent = speed * (1.0 - rho_dot / C_AU_PER_DAY)[..., None] - velocity[:, None]
    rate = (apparent - rho_dot[..., None] * direction) / rho[..., None]
    heliocentric = line + position[:, None]
    sun = norm(heliocentric)
    phase = np.clip(dot(heliocentric, direction) / sun, -1.0, 1.0)
    return Clouds(direction, rate, rho, sun, phase)
