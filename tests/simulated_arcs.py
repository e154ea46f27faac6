"""Simulated arcs of near-Earth objects: two-body orbits, light time, real stations, seeded noise.

The population is made up but shaped like what surveys see: a median range of 0.25 au, elliptic
and mostly prograde orbits, objects above the horizon and away from the Sun. Everything is drawn
from a seed; nothing is read.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from astropy import units as u
from astropy.time import Time

from neoranging import ephemeris
from neoranging.constants import ARCSEC, C_AU_PER_DAY, GM_SUN
from neoranging.core.arcs import Arcs
from neoranging.core.elements import state_to_elements
from neoranging.core.geometry import (
    cross,
    dot,
    ecliptic_to_equatorial,
    equatorial_to_ecliptic,
    norm,
    radec,
)
from neoranging.core.kepler import propagate
from neoranging.core.prediction import sight
from neoranging.lab.sets.arcs import make_arcs
from neoranging.lab.sets.schema import ArcTable
from neoranging.observations import observatories
from neoranging.tracklet import TrackletSet

STATIONS = ("G96", "703", "F51", "I41", "W68")
FIRST_MJD, LAST_MJD = 59_000.0, 60_500.0


@dataclass(frozen=True)
class SimulatedArcs:
    """Arcs, and the truth behind them at the middle observation of each."""

    arcs: Arcs
    rho: np.ndarray
    rho_dot: np.ndarray
    r: np.ndarray
    v: np.ndarray
    epoch: np.ndarray
    """Epoch of the states r, v [MJD TDB]."""
    station: np.ndarray
    """Code of each observation, shape (n,); "500" is the geocentre."""

    def __len__(self) -> int:
        return len(self.arcs)

    def take(self, index: np.ndarray) -> SimulatedArcs:
        begins, ends = self.arcs.offsets[:-1][index], self.arcs.offsets[1:][index]
        rows = np.concatenate([np.arange(a, b) for a, b in zip(begins, ends, strict=True)])
        columns = (x[index] for x in (self.rho, self.rho_dot, self.r, self.v, self.epoch))
        return SimulatedArcs(self.arcs.take(index), *columns, self.station[rows])

    def labelled(self, arcs_of_object: int = 4) -> ArcTable:
        """The arcs as a table with their truth, named so that each object has as many arcs."""
        a = self.arcs
        table, counts = make_arcs(
            a.offsets,
            a.t,
            a.ra,
            a.dec,
            sigma_ra=a.sigma_ra,
            sigma_dec=a.sigma_dec,
            stations=self.station,
            designation=np.arange(len(self)).astype(str),
            night=a.t[a.offsets[:-1]].astype(np.int64),
        )
        assert counts.n_used > 0.9 * len(self)
        rows = table["designation"].astype(np.int64)
        s, t2 = self.take(rows), table["t2_mjd_tdb"]
        geocentric = sight(s.r, s.v, s.epoch, t2, *ephemeris.earth_state(t2))
        orbit = state_to_elements(*(equatorial_to_ecliptic(x) for x in (s.r, s.v)))
        return table.with_columns(
            designation=np.char.add("S", (rows // arcs_of_object).astype(str)),
            rho_topo_au=s.rho,
            rho_dot_topo_au_d=s.rho_dot,
            rho_geo_au=geocentric.rho,
            rho_dot_geo_au_d=geocentric.rho_dot,
            q_au=orbit.q,
            ecc=orbit.ecc,
            inc_rad=orbit.inc,
            raan_rad=orbit.raan,
            argp_rad=orbit.argp,
            is_simulated=True,
        )

    def tracklets(self, order: np.ndarray | None = None) -> TrackletSet:
        """Observations as the public tracklets, rows in any order."""
        order = np.arange(len(self.arcs.t)) if order is None else order
        a = self.arcs
        return TrackletSet.from_arrays(
            Time(a.t[order], format="mjd", scale="tdb"),
            a.ra[order] << u.rad,
            a.dec[order] << u.rad,
            station=self.station[order],
            tracklet=a.owner[order],
            sigma=np.stack([a.sigma_ra, a.sigma_dec], axis=1)[order] << u.rad,
            designation=np.char.mod("S%06d", a.owner[order]),
        )

    def with_noise(self, rng: np.random.Generator, size: float = 1.0) -> SimulatedArcs:
        """Errors of ``size`` standard deviations added to the directions."""
        a = self.arcs
        east, north = size * rng.standard_normal((2, len(a.t)))
        ra = (a.ra + east * a.sigma_ra / np.cos(a.dec)) % (2.0 * np.pi)
        return self._with(ra, a.dec + north * a.sigma_dec)

    def _with(self, ra: np.ndarray, dec: np.ndarray) -> SimulatedArcs:
        a = self.arcs
        arcs = replace(a, ra=ra, dec=dec)
        return SimulatedArcs(arcs, self.rho, self.rho_dot, self.r, self.v, self.epoch, self.station)


def observe(
    r: np.ndarray,
    v: np.ndarray,
    epoch: np.ndarray,
    t: list[np.ndarray] | np.ndarray,
    station: str | np.ndarray = "500",
    sigma: float = 0.2,
) -> SimulatedArcs:
    """Observe M heliocentric states (ICRS axes, au, au/d) at the times ``t[k]``, noise-free.

    ``station`` is one code, one per arc, or one per observation; ``sigma`` [arcsec] is what the
    observations claim.
    """
    m = len(r)
    counts = np.array([len(times) for times in t])
    offsets = np.concatenate([[0], np.cumsum(counts)])
    times, owner = np.concatenate(list(t)), np.repeat(np.arange(m), counts)
    codes = np.asarray(station)
    if codes.ndim and len(codes) == m != len(times):
        codes = codes[owner]
    codes = np.broadcast_to(codes, len(times)).copy()
    position, velocity = ephemeris.observer_state(observatories.itrf_positions(codes), times)
    path, rho_dot = _light_path(r[owner], v[owner], times - epoch[owner], position, velocity)
    error = np.full(len(times), sigma * ARCSEC)
    arcs = Arcs(offsets, times, *radec(path), error, error, position, velocity)
    middle = arcs.triplet[:, 1]
    return SimulatedArcs(arcs, norm(path)[middle], rho_dot[middle], r, v, epoch, codes)


def _light_path(
    r: np.ndarray, v: np.ndarray, dt: np.ndarray, position: np.ndarray, velocity: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Light paths and range-rates; light time by propagation alone, unlike the library's own."""
    delay = np.zeros(len(r))
    for _ in range(6):
        r_t, v_t = propagate(r, v, dt - delay)
        delay = norm(r_t - position) / C_AU_PER_DAY
    path = r_t - position
    direction = path / norm(path)[:, None]
    along = dot(direction, v_t)
    return path, (along - dot(direction, velocity)) / (1.0 + along / C_AU_PER_DAY)


def simulate(
    m: int,
    span: float,
    *,
    seed: int,
    n_observations: int | tuple[int, int] = (3, 8),
    sigma: float = 0.2,
    station: str | None = None,
    rho: float | None = None,
) -> SimulatedArcs:
    """M noise-free arcs of ``span`` days, observed as a survey would.

    Parameters
    ----------
    n_observations
        Of each arc, or the range (inclusive, exclusive) they are drawn from.
    station
        One code for all; by default each arc has one of `STATIONS`.
    rho
        Range of all [au]; by default one of each is drawn.
    """
    rng = np.random.default_rng(seed)
    epoch = rng.uniform(FIRST_MJD, LAST_MJD, m)
    codes = np.full(m, station) if station else rng.choice(STATIONS, m)
    lines = _lines_of_sight(m, rng, epoch, observatories.itrf_positions(codes))
    r, v = _near_earth_state(*lines, rng, None if rho is None else np.full(m, rho))
    few, many = np.broadcast_to(n_observations, 2) + np.array([0, np.isscalar(n_observations)])
    counts = rng.integers(few, many, m)
    times = [at + span * _cadence(rng, n) for at, n in zip(epoch, counts, strict=True)]
    return observe(r, v, epoch, times, codes, sigma)


def _cadence(rng: np.random.Generator, n: int) -> np.ndarray:
    """n times from -1/2 to 1/2, unevenly spaced."""
    gaps = rng.uniform(0.5, 1.5, n - 1)
    return np.concatenate([[0.0], np.cumsum(gaps)]) / gaps.sum() - 0.5


def _near_earth_state(
    position: np.ndarray,
    direction: np.ndarray,
    rng: np.random.Generator,
    rho: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Elliptic, mostly prograde orbits through points on given lines of sight."""
    m = len(position)
    if rho is None:
        rho = np.clip(0.25 * np.exp(1.1 * rng.standard_normal(m)), 0.003, 2.5)
    r = position + rho[:, None] * direction
    distance = norm(r)
    radial = r / distance[:, None]
    a = rng.uniform(np.maximum(0.7, 0.55 * distance), np.maximum(3.2, distance))
    speed = np.sqrt(GM_SUN * (2.0 / distance - 1.0 / a))
    pole = ecliptic_to_equatorial(np.array([0.0, 0.0, 1.0]))
    prograde = cross(np.broadcast_to(pole, r.shape), radial)
    prograde /= norm(prograde)[:, None]
    flight, tilt = np.radians([[20.0], [12.0]]) * rng.standard_normal((2, m))
    across = np.cos(tilt)[:, None] * prograde + np.sin(tilt)[:, None] * cross(radial, prograde)
    heading = np.cos(flight)[:, None] * across + np.sin(flight)[:, None] * radial
    return r, speed[:, None] * heading


def _lines_of_sight(
    m: int, rng: np.random.Generator, epoch: np.ndarray, itrf: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Observers, and random directions 25 deg above their horizon and 60 deg from the Sun."""
    position, _ = ephemeris.observer_state(itrf, epoch)
    up, _ = ephemeris.site_state(itrf, epoch)
    direction = np.zeros((m, 3))
    missing = np.arange(m)
    for _ in range(60):
        trial = rng.standard_normal((len(missing), 3))
        trial /= norm(trial)[:, None]
        direction[missing] = trial
        low = dot(trial, up[missing]) < 0.42 * norm(up[missing])
        sunny = dot(trial, position[missing]) < -0.5 * norm(position[missing])
        missing = missing[low | sunny]
    # by day some sites see no such direction; there the point opposite to the Sun has to do
    direction[missing] = position[missing] / norm(position[missing])[:, None]
    return position, direction
