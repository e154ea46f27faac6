"""Posterior of range and range-rate of one night, twice: by brute force and by a Markov chain.

The outside judges of `neoranging.core.systematic`: plain numpy and scipy, slow, and written without
it. What all three share is the law of the observations and nothing else:

- an object moves under the Sun, the Earth and the Moon, and is seen with light time;
- an observation is off along and across the motion by normal errors: ``s`` times what it claims,
  with one scale ``s`` of a visit; an offset that the visit shares; along the motion also an error
  of its clock, and one of its own of the times;
- ``ln s`` is normal, cut off at the largest share.

`BruteForce` integrates in closed form what is linear and on grids what is not. The chain of
`markov_chain` samples everything, direction, motion and scales too, and so judges the closed forms.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import ClassVar

import erfa
import numpy as np
from scipy.integrate import solve_ivp
from scipy.interpolate import PchipInterpolator
from simulated_arcs import observe, simulate

from neoranging import ephemeris
from neoranging.constants import C_AU_PER_DAY, GM_EARTH, GM_MOON, GM_SUN, MJD_JD, R_EARTH
from neoranging.core.admissible import is_admissible, range_rate_interval
from neoranging.core.arcs import Arcs, visits
from neoranging.core.attributable import from_fit
from neoranging.core.geometry import line_of_sight, line_of_sight_rate, sky_basis
from neoranging.core.noise import (
    LARGEST_SHARE,
    LEAST_CLAIM_RAD,
    OFFSET,
    SHARE_OF_CLAIM,
    SHARE_SPREAD,
    TIMING_D,
    VISIT_TIMING_D,
)
from neoranging.lab.simulation.astrometric_errors import Errors, displaced

PRIORS = {"log-uniform": -1.0, "uniform": 0.0, "phase space": 4.0}
"""Powers of the range to which prior densities over (rho, rho_dot) are proportional.

That of phase space belongs to a likelihood flat in the attributable, the others to one flat in the
directions as they are seen.
"""

PROBABILITIES = np.array([0.05, 0.25, 0.5, 0.75, 0.95])


@dataclass(frozen=True)
class Night:
    """One arc and the law of its errors."""

    arc: Arcs
    """Of length one."""

    LONGEST_STEP_D: ClassVar[float] = 0.021

    def __post_init__(self) -> None:
        assert len(self.arc) == 1

    @cached_property
    def middle(self) -> int:
        return int(self.arc.triplet[0, 1])

    @cached_property
    def attributable(self):
        return from_fit(self.arc)

    @cached_property
    def basis(self) -> np.ndarray:
        """East and north at each observation, shape (n, 2, 3)."""
        return np.stack(sky_basis(self.arc.ra, self.arc.dec), axis=1)

    @cached_property
    def motion(self) -> np.ndarray:
        """Motion of the fitted parabola at each observation to east and north, shape (n, 2)."""
        a, arc = self.attributable, self.arc
        t = arc.t - arc.t[self.middle]
        u = line_of_sight(a.ra, a.dec)[0]
        rate = line_of_sight_rate(a.ra, a.dec, a.ra_rate, a.dec_rate)[0]
        along = rate / np.linalg.norm(rate)
        bend = np.nan_to_num(a.curvature[0])
        change = bend[0] * along + bend[1] * np.cross(u, along)
        return np.einsum("nij,nj->ni", self.basis, rate + t[:, None] * change)

    @cached_property
    def turn(self) -> np.ndarray:
        """From (east, north) to (along, across) at each observation, shape (n, 2, 2)."""
        east, north = self.motion.T / np.linalg.norm(self.motion, axis=1)
        return np.moveaxis(np.array([[east, north], [-north, east]]), 2, 0)

    @cached_property
    def sigma(self) -> np.ndarray:
        """Claimed errors along and across, shape (2, n)."""
        claims = np.stack([self.arc.sigma_ra, self.arc.sigma_dec]) ** 2 + LEAST_CLAIM_RAD**2
        return np.sqrt(np.einsum("nab,bn->an", self.turn**2, claims))

    @cached_property
    def visits(self) -> list[np.ndarray]:
        """Rows of each visit."""
        return [np.flatnonzero(self.arc.visit == one) for one in np.unique(self.arc.visit)]

    @cached_property
    def unit(self) -> np.ndarray:
        """Steps of the four corrections of the attributable: claimed errors [rad, rad/d]."""
        step = np.mean(self.sigma)
        return np.array([step, step, step / self.arc.span[0], step / self.arc.span[0]])

    @property
    def earth_reach(self) -> float:
        """Range [au] below which a path may lead through the Earth: at 87 km/s."""
        return 2.0 * R_EARTH + 0.05 * self.arc.span[0]

    def noise(self, axis: int, visit: int) -> tuple[np.ndarray, np.ndarray, float]:
        """Claimed errors, errors of times, and variance of the common offset, of one axis."""
        sigma = self.sigma[axis, self.visits[visit]]
        motion = np.linalg.norm(self.motion[self.visits[visit]], axis=1) * (axis == 0)
        common = OFFSET**2 * np.mean(sigma**2) + np.mean(motion**2) * VISIT_TIMING_D**2
        return sigma, motion * TIMING_D, common

    # ---------------------------------------------------------------- dynamics

    @cached_property
    def _bodies(self) -> np.ndarray:
        """Heliocentric Earth and Moon as polynomials in days after the middle, highest power first.

        Shape (2, 3, 3, degree + 1): bodies; position, its rate and its acceleration; axes; powers.
        """
        epoch, degree = self.arc.t[self.middle], 7
        width = max(0.3, self.arc.span[0])
        x = np.cos(np.pi * (np.arange(16) + 0.5) / 16)
        earth = ephemeris.earth_state(epoch + width * x)[0]
        # the mean pole of J2000 serves: the Moon's place matters to a thousandth of its pull
        moon = earth + erfa.moon98(MJD_JD, epoch + width * x)["p"]
        powers = np.vander(x, degree + 1)
        series = [np.linalg.lstsq(powers, body, rcond=None)[0].T for body in (earth, moon)]
        place = np.stack(series) / width ** np.arange(degree, -1, -1)
        power = np.arange(degree, 0, -1)
        rate = np.zeros_like(place)
        rate[..., 1:] = place[..., :-1] * power
        bend = np.zeros_like(place)
        bend[..., 1:] = rate[..., :-1] * power
        return np.stack([place, rate, bend], axis=1)

    def _pull(self, r: np.ndarray, tau: float, delay: np.ndarray) -> np.ndarray:
        """Acceleration [au/d^2] at heliocentric positions (3, N), ``tau - delay`` after middle."""
        total = -GM_SUN * r / _cube(r)
        bodies = (GM_EARTH, R_EARTH), (GM_MOON, 0.27 * R_EARTH)
        powers = tau ** np.arange(self._bodies.shape[-1] - 1, -1, -1)
        for (gm, radius), series in zip(bodies, self._bodies @ powers, strict=True):
            now, rate, bend = series[..., None]
            # the light time from the farthest is a quarter of an hour: a parabola in it
            body = now - delay * (rate - 0.5 * delay * bend)
            gap = r - body
            # within a body as in a homogeneous one; the Sun is pulled too
            total -= gm * (gap / np.maximum(_cube(gap), radius**3) + now / _cube(now))
        return total

    def _path(self, r: np.ndarray, v: np.ndarray, delay: np.ndarray) -> tuple[np.ndarray, ...]:
        """States (3, N) at as long after their epochs as the observations after the middle one.

        Kutta and Nystrom's step of the fourth order, half an hour at most. With them the least
        distance from the centre of the Earth, shape (N,).
        """
        after = self.arc.t - self.arc.t[self.middle]
        path = np.empty((len(after), 2, *r.shape))
        least = np.linalg.norm(r - self._earth(0.0, delay)[0], axis=0)
        path[self.middle] = r, v
        for rows in (range(self.middle - 1, -1, -1), range(self.middle + 1, len(after))):
            now, tau = path[self.middle], 0.0
            for row in rows:
                count = int(np.ceil(abs(after[row] - tau) / self.LONGEST_STEP_D))
                h = (after[row] - tau) / max(count, 1)
                for _ in range(count):
                    r, v = now
                    first = self._pull(r, tau, delay)
                    half = self._pull(r + 0.5 * h * (v + 0.25 * h * first), tau + 0.5 * h, delay)
                    last = self._pull(r + h * (v + 0.5 * h * half), tau + h, delay)
                    now = np.stack(
                        [
                            r + h * (v + h / 6.0 * (first + 2.0 * half)),
                            v + h / 6.0 * (first + 4.0 * half + last),
                        ]
                    )
                    ends = (r, v, tau), (*now, tau + h)
                    gaps = [np.stack([x, w]) - self._earth(at, delay) for x, w, at in ends]
                    least = np.minimum(least, _least_distance(*gaps, h))
                    tau += h
                path[row] = now
        return path[:, 0], path[:, 1], least

    def _earth(self, tau: float, delay: np.ndarray) -> np.ndarray:
        """Position and velocity of the Earth ``tau - delay`` after the middle, shape (2, 3, N)."""
        powers = tau ** np.arange(self._bodies.shape[-1] - 1, -1, -1)
        now, rate, bend = (self._bodies[0] @ powers)[..., None]
        return np.stack([now - delay * (rate - 0.5 * delay * bend), rate - delay * bend])

    def integrated(
        self, r: np.ndarray, v: np.ndarray, delay: float, after: np.ndarray | None = None
    ) -> np.ndarray:
        """Positions (n, 3) of one path by an integrator of the eighth order, to judge `_path`.

        At the observations, or at times ``after`` the middle one.
        """

        def rate(tau: float, y: np.ndarray) -> np.ndarray:
            return np.concatenate([y[3:], self._pull(y[:3, None], tau, np.array([delay]))[:, 0]])

        after = self.arc.t - self.arc.t[self.middle] if after is None else after
        path = np.empty((len(after), 3))
        for row, tau in enumerate(after):
            options = {"method": "DOP853", "rtol": 1e-13, "atol": 1e-16}
            path[row] = solve_ivp(rate, (0.0, tau), np.concatenate([r, v]), **options).y[:3, -1]
        return path

    def residuals(self, x: np.ndarray, rho: np.ndarray, rho_dot: np.ndarray) -> np.ndarray:
        """Observed minus predicted, along and across, shape (N, 2, n) [rad].

        ``x``, shape (N, 4), corrects the fitted attributable in units of ``unit``: the direction to
        the east and to the north, and the motion.
        """
        arc = self.arc
        r_t, v_t, _ = self._path(*self._states(x, rho, rho_dot), rho / C_AU_PER_DAY)  # (n, 3, N)
        # the light time changes by seconds over a night, in which nothing bends
        shift = np.zeros((len(arc.t), 1, len(rho)))
        for _ in range(3):
            path = r_t + shift * v_t - arc.position[:, :, None]
            distance = np.sqrt(np.sum(path * path, axis=1))[:, None]
            shift = (rho - distance) / C_AU_PER_DAY
        offset = arc.direction[:, :, None] - path / distance
        sky = np.einsum("nij,njk->kin", self.basis, offset)
        return np.einsum("nab,kbn->kan", self.turn, sky)

    def closest(self, x: np.ndarray, rho: np.ndarray, rho_dot: np.ndarray) -> np.ndarray:
        """Least distance from the centre of the Earth between first and last observation, (N,)."""
        return self._path(*self._states(x, rho, rho_dot), rho / C_AU_PER_DAY)[2]

    def _states(
        self, x: np.ndarray, rho: np.ndarray, rho_dot: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """States (3, N) of corrected attributables, as of `residuals`."""
        arc, a = self.arc, self.attributable
        east, north = sky_basis(a.ra, a.dec)
        cos_dec = np.cos(a.dec)
        pole = np.array([cos_dec * np.cos(a.ra), cos_dec * np.sin(a.ra), np.sin(a.dec)])[:, 0]
        dx, dy, vx, vy = (x * self.unit).T[:, :, None]
        direction = pole + dx * east + dy * north
        direction /= np.linalg.norm(direction, axis=1)[:, None]
        motion = (a.ra_rate * cos_dec + vx) * east + (a.dec_rate + vy) * north
        motion -= np.sum(motion * direction, axis=1)[:, None] * direction
        position, velocity = arc.position[self.middle], arc.velocity[self.middle]
        r = position + rho[:, None] * direction
        v = velocity + rho_dot[:, None] * direction + rho[:, None] * motion
        v /= (1.0 - rho_dot / C_AU_PER_DAY)[:, None]
        return r.T, v.T

    def linearised(self, rho: np.ndarray, rho_dot: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Observations about the best attributable of each of K nodes.

        Returns
        -------
        augmented : ndarray, shape (K, 2, n, 5)
            Partial derivatives of the predicted directions by the four corrections, and residuals
            at the best ones.
        x : ndarray, shape (K, 4)
            Best corrections.
        """
        count = len(rho)
        trial = np.concatenate([np.zeros((1, 4)), np.eye(4)]).repeat(count, axis=0)
        found = self.residuals(trial, np.tile(rho, 5), np.tile(rho_dot, 5))
        found = found.reshape(5, count, 2, -1)
        y, design = found[0], np.moveaxis(found[0] - found[1:], 0, -1)
        weight = 1.0 / self.sigma[..., None]
        flat = (weight * design).reshape(count, -1, 4)
        turned = np.swapaxes(flat, 1, 2)
        x = np.zeros((count, 4))
        for fits in range(2):
            if fits:  # the parallax of a node may be far from that of the fitted motion
                y = self.residuals(x, rho, rho_dot)
            right = (weight[..., 0] * y).reshape(count, -1, 1)
            change = np.linalg.solve(turned @ flat, turned @ right)[..., 0]
            x = x + change
        y = y - np.einsum("kant,kt->kan", design, change)
        return np.concatenate([design, y[..., None]], axis=-1), x


def _least_distance(first: np.ndarray, last: np.ndarray, h: float) -> np.ndarray:
    """Least length of a vector that runs from one state (2, 3, N) to another in ``h``, (N,).

    A cubic in time, and straight between nine of its points.
    """
    s = np.linspace(0.0, 1.0, 9)[:, None, None]
    way = (1.0 + 2.0 * s) * (1.0 - s) ** 2 * first[0] + s**2 * (3.0 - 2.0 * s) * last[0]
    way += h * s * (1.0 - s) * ((1.0 - s) * first[1] - s * last[1])
    piece = np.diff(way, axis=0)
    share = -np.sum(way[:-1] * piece, axis=1) / np.sum(piece**2, axis=1)
    nearest = way[:-1] + np.clip(share, 0.0, 1.0)[:, None] * piece
    return np.sqrt(np.sum(nearest**2, axis=1)).min(axis=0)


def _cube(r: np.ndarray) -> np.ndarray:
    """Third powers of the lengths of vectors (3, N)."""
    square = r[0] * r[0] + r[1] * r[1] + r[2] * r[2]
    return square * np.sqrt(square)


# -------------------------------------------------------------------- scales


def scale_nodes(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Values of ln s and their weights, by Gauss and Legendre between five spreads and the end."""
    low, high = np.log(SHARE_OF_CLAIM) - 5.0 * SHARE_SPREAD, np.log(LARGEST_SHARE)
    x, w = np.polynomial.legendre.leggauss(count)
    ln_s = 0.5 * (low + high) + 0.5 * (high - low) * x
    weight = w * np.exp(-0.5 * ((ln_s - np.log(SHARE_OF_CLAIM)) / SHARE_SPREAD) ** 2)
    return ln_s, weight / weight.sum()


class BruteForce:
    """Posterior on columns of equal range, each with nodes in range-rate of its own.

    Given range, range-rate and the scales the observations are linear in the attributable to high
    accuracy, so the integral over it is ``|N|^(-1/2) exp(-chi2/2)``. The scales of all visits are
    summed over their product grid, range-rates over a grid that zooms in to where the likelihood
    is, ranges over columns that are added until neighbours are alike.
    """

    COUNTS: ClassVar = {1: 24, 2: 16, 3: 10}
    """Nodes in each scale, by the number of visits."""

    def __init__(self, night: Night, scales: int | None = None, rates: int = 41) -> None:
        self.night, self.rates = night, rates
        self.scales = scales or self.COUNTS[len(night.visits)]
        self.columns: dict[float, tuple[np.ndarray, np.ndarray]] = {}
        """By ln rho: range-rates, shape (J,), and logarithms of the likelihood, shape (2, J): flat
        in the directions as they are seen, and flat in the attributable."""

    # ---------------------------------------------------------------- likelihood

    def _inverses(self, scales: int) -> tuple[np.ndarray, list[tuple[np.ndarray, np.ndarray]]]:
        """Weights of the scales (S,), inverse covariance (S, 2, m, m) and log-determinant (S,)."""
        ln_s, scale_weight = scale_nodes(scales)
        visits = []
        for visit in range(len(self.night.visits)):
            inverse, log_det = [], np.zeros(scales)
            for axis in range(2):
                sigma, times, common = self.night.noise(axis, visit)
                variance = np.exp(2.0 * ln_s)[:, None] * sigma**2 + times**2
                covariance = variance[:, :, None] * np.eye(len(sigma)) + common
                inverse.append(np.linalg.inv(covariance))
                log_det += np.linalg.slogdet(covariance)[1]
            visits.append((np.stack(inverse, axis=1), log_det))
        return np.log(scale_weight), visits

    def log_likelihood(self, rho: np.ndarray, rho_dot: np.ndarray, scales: int) -> np.ndarray:
        """Logarithms of the likelihood of nodes (K,), attributable and scales integrated over.

        Shape (2, K), as in ``columns``; none where the path leads through the Earth.
        """
        result = np.empty((2, len(rho)))
        log_weight, inverses = self._inverses(scales)
        # those of like range take like steps through time
        order = np.argsort(rho)
        cuts = np.flatnonzero(np.diff(np.floor(np.log(rho[order])))) + 1
        cuts = np.union1d(cuts, np.arange(400, len(rho), 400))
        for rows in np.split(order, cuts):
            augmented, x = self.night.linearised(rho[rows], rho_dot[rows])
            parts = []
            for visit, (inverse, log_det) in zip(self.night.visits, inverses, strict=True):
                some = augmented[:, None, :, visit]
                square = (np.swapaxes(some, -1, -2) @ (inverse @ some)).sum(axis=2)
                parts.append((square, log_weight - 0.5 * log_det))
            total = np.full(len(rows), -np.inf)
            last, last_log = parts.pop()
            for choice in product(range(scales), repeat=len(parts)):
                square, log_l = last.copy(), last_log
                for (matrix, constant), s in zip(parts, choice, strict=True):
                    square += matrix[:, s, None]
                    log_l = log_l + constant[s]
                normal, right = square[..., :4, :4], square[..., :4, 4:]
                best = (right * np.linalg.solve(normal, right)).sum(axis=(-2, -1))
                chi2 = np.maximum(square[..., 4, 4] - best, 0.0)
                log_l = log_l - 0.5 * (np.linalg.slogdet(normal)[1] + chi2)
                total = np.logaddexp(total, np.logaddexp.reduce(log_l, axis=1))
            if rho[rows].min() < self.night.earth_reach:
                total[self.night.closest(x, rho[rows], rho_dot[rows]) < R_EARTH] = -np.inf
            design = augmented[..., :4].reshape(len(rows), -1, 4)
            measure = 0.5 * np.linalg.slogdet(np.swapaxes(design, 1, 2) @ design)[1]
            result[:, rows] = total + measure, total
        return result

    # ---------------------------------------------------------------- grids

    def _measure(self, ln_rho: np.ndarray) -> None:
        """Add columns: range-rates, their weights, and the logarithm of the integral.

        Each zooms in from the whole admissible interval until its likelihood fills it; one between
        two others begins where theirs are.
        """
        c = self.night.attributable.energy_coefficients
        rho = np.exp(ln_rho)
        limits = np.stack(range_rate_interval(c, rho), axis=-1)
        for one in ln_rho[np.isnan(limits[:, 0])]:
            self.columns[one] = (np.zeros(0), np.zeros((2, 0)))
        bounds = limits.copy()
        known = np.array(sorted(k for k, column in self.columns.items() if len(column[0])))
        after = np.searchsorted(known, ln_rho)
        for k in np.flatnonzero((after > 0) & (after < len(known))):
            both = [self.columns[one][0] for one in known[after[k] - 1 : after[k] + 1]]
            low, high = min(x[0] for x in both), max(x[-1] for x in both)
            wider = 0.2 * (high - low)
            bounds[k] = np.clip([low - wider, high + wider], *limits[k])
        todo = np.flatnonzero(bounds[:, 1] > bounds[:, 0])
        for stage in range(12):
            if not len(todo):
                return
            rate, log_l = self._column(rho[todo], bounds[todo], 11, 6)
            log_l = log_l[0]
            gone = ~np.isfinite(log_l.max(axis=1))
            for one in ln_rho[todo[gone]]:
                self.columns[one] = (np.zeros(0), np.zeros((2, 0)))
            todo, rate, log_l = todo[~gone], rate[~gone], log_l[~gone]
            width = bounds[todo, 1] - bounds[todo, 0]
            near = log_l > log_l.max(axis=1)[:, None] - 15.0
            low = np.where(near, rate, np.inf).min(axis=1) - width / 11
            high = np.where(near, rate, -np.inf).max(axis=1) + width / 11
            # likelihood at an end that is not that of the region: look there too
            low -= np.where(near[:, 0], width, 0.0)
            high += np.where(near[:, -1], width, 0.0)
            low, high = np.maximum(low, limits[todo, 0]), np.minimum(high, limits[todo, 1])
            good = np.abs(np.log((high - low) / width)) < 0.6
            good |= stage == 11
            bounds[todo] = np.stack([low, high], axis=1)
            self._finish(ln_rho[todo[good]], bounds[todo[good]])
            todo = todo[~good]

    def _finish(self, ln_rho: np.ndarray, bounds: np.ndarray) -> None:
        if not len(ln_rho):
            return
        rho, c = np.exp(ln_rho), self.night.attributable.energy_coefficients
        rate, log_l = self._column(rho, bounds, self.rates, self.scales)
        log_l[:, ~is_admissible(c, rho[:, None], rate)] = -np.inf
        for k, one in enumerate(ln_rho):
            self.columns[one] = (rate[k], log_l[:, k])

    def _column(
        self, rho: np.ndarray, bounds: np.ndarray, count: int, scales: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Range-rates at the middles of equal cells, (J, count), and likelihoods, (2, J, count)."""
        share = (np.arange(count) + 0.5) / count
        rate = bounds[:, :1] + share * (bounds[:, 1:] - bounds[:, :1])
        flat = self.log_likelihood(np.repeat(rho, count), rate.ravel(), scales)
        return rate, flat.reshape(2, *rate.shape)

    def run(self, start: int = 48, step: float = 0.2, rounds: int = 16) -> BruteForce:
        """Add columns until the marginal density changes by ``step`` from one to the next."""
        low, high = self.night.attributable.range_limits[0]
        low = max(low, 4.3e-5)
        self._measure(np.linspace(np.log(low) + 1e-9, np.log(high) - 1e-9, start))
        for turn in range(rounds):
            gap = np.diff(sorted(self.columns))
            wanted = np.zeros(len(gap), dtype=bool)
            for prior in PRIORS:
                at, log_density = self.marginal(prior)
                upper = np.maximum(log_density[1:], log_density[:-1])
                with np.errstate(invalid="ignore"):
                    change = np.nan_to_num(np.abs(np.diff(log_density)), nan=0.0, posinf=1e9)
                mass = upper + np.log(gap)
                wanted |= (change > step) & (mass > np.logaddexp.reduce(mass) - 9.0)
                # beside a maximum a higher one may lie between the columns; halving the gap takes
                # three quarters of what it rises above them
                padded = np.concatenate([[-np.inf], log_density, [-np.inf]])
                peak = (padded[1:-1] >= padded[:-2]) & (padded[1:-1] >= padded[2:])
                peak &= log_density > log_density.max() - 15.0 - 1e4 / 4.0**turn
                wanted |= (peak[1:] | peak[:-1]) & (change > step)
            wanted &= gap > 1e-7
            if not wanted.any():
                break
            self._measure(0.5 * (at[1:] + at[:-1])[wanted])
        return self

    def marginal(self, prior: str) -> tuple[np.ndarray, np.ndarray]:
        """Values of ln rho in order, and the logarithm of the density there."""
        at = np.array(sorted(self.columns))
        integral = np.full(len(at), -np.inf)
        for k, one in enumerate(at):
            rate, log_l = self.columns[one]
            if len(rate):
                step = np.log(rate[1] - rate[0])
                integral[k] = step + np.logaddexp.reduce(log_l[int(prior == "phase space")])
        return at, integral + (PRIORS[prior] + 1.0) * at

    def points(self, prior: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Points (ln rho, rho_dot) and weights that stand for the posterior.

        Between columns the logarithm of the marginal density and the quantiles of the range-rate
        are interpolated.
        """
        at, log_density = self.marginal(prior)
        good = log_density > log_density.max() - 40.0
        inner, log_density = at[good], log_density[good]
        # lobes are not joined: an interval between columns far apart in the list has no mass
        joined = np.diff(np.flatnonzero(good)) == 1
        curve = PchipInterpolator(inner, log_density)
        share = (np.arange(101) + 0.5) / 101
        quantiles = np.empty((len(inner), len(share)))
        for k, one in enumerate(inner):
            rate, log_l = self.columns[one]
            log_l = log_l[int(prior == "phase space")]
            weight = np.exp(log_l - log_l.max())
            below = np.concatenate([[0.0], np.cumsum(weight)])
            edges = np.concatenate([[1.5 * rate[0] - 0.5 * rate[1]], 0.5 * (rate[1:] + rate[:-1])])
            edges = np.append(edges, 1.5 * rate[-1] - 0.5 * rate[-2])
            quantiles[k] = np.interp(share, below / below[-1], edges)
        part = (np.arange(12) + 0.5) / 12
        fine = (inner[:-1, None] + np.diff(inner)[:, None] * part)[joined]
        mass = np.exp(curve(fine) - log_density.max()) * np.diff(inner)[joined][:, None] / 12
        rho_dot = PchipInterpolator(inner, quantiles, axis=0)(fine)
        # the points of one range are spread over its part of the gap, so that none is a lump
        spread = (np.arange(101) * 0.618034) % 1.0 - 0.5
        ln_rho = fine[..., None] + np.diff(inner)[joined][:, None, None] / 12 * spread
        weights = np.broadcast_to(mass[..., None], rho_dot.shape)
        return ln_rho.ravel(), rho_dot.ravel(), weights.ravel()

    def quantiles(self, prior: str) -> np.ndarray:
        """Quantiles `PROBABILITIES` of ln rho and of rho_dot, shape (2, 5)."""
        ln_rho, rho_dot, weight = self.points(prior)
        return np.stack([weighted_quantiles(x, weight) for x in (ln_rho, rho_dot)])


def weighted_quantiles(
    x: np.ndarray, weight: np.ndarray, probabilities: np.ndarray = PROBABILITIES
) -> np.ndarray:
    """Quantiles of weighted points, half of a point's weight below it."""
    order = np.argsort(x)
    below = np.cumsum(weight[order]) - 0.5 * weight[order]
    return np.interp(probabilities, below / weight.sum(), x[order])


# -------------------------------------------------------------------- chain


def log_posterior(night: Night, z: np.ndarray, power: float) -> np.ndarray:
    """Logarithm of the joint density of walkers, shape (N,).

    ``z``, shape (N, 6 + V): corrections of the attributable, ln rho, rho_dot, and ln s of each
    visit. ``power`` is that of the prior, of `PRIORS`.
    """
    ln_rho, rho_dot, ln_s = z[:, 4], z[:, 5], z[:, 6:]
    c = night.attributable.energy_coefficients
    with np.errstate(all="ignore"):
        inside = is_admissible(c, np.exp(ln_rho), rho_dot)
    inside &= np.all(
        (ln_s < np.log(LARGEST_SHARE)) & (ln_s > np.log(SHARE_OF_CLAIM) - 5.0 * SHARE_SPREAD),
        axis=1,
    )
    result = np.full(len(z), -np.inf)
    z, ln_rho, rho_dot, ln_s = z[inside], ln_rho[inside], rho_dot[inside], ln_s[inside]
    if not len(z):
        return result
    y = night.residuals(z[:, :4], np.exp(ln_rho), rho_dot)
    total = (power + 1.0) * ln_rho
    for visit, rows in enumerate(night.visits):
        total -= 0.5 * ((ln_s[:, visit] - np.log(SHARE_OF_CLAIM)) / SHARE_SPREAD) ** 2
        for axis in range(2):
            sigma, times, common = night.noise(axis, visit)
            variance = np.exp(2.0 * ln_s[:, visit, None]) * sigma**2 + times**2
            part = y[:, axis, rows]
            # the offset of the visit is a normal number too, and integrated over by hand
            information = 1.0 / common + (1.0 / variance).sum(axis=1)
            square = (part**2 / variance).sum(axis=1)
            square -= (part / variance).sum(axis=1) ** 2 / information
            total -= 0.5 * (square + np.log(variance).sum(axis=1) + np.log(information))
    near = np.flatnonzero(np.exp(ln_rho) < night.earth_reach)
    closest = night.closest(z[near, :4], np.exp(ln_rho[near]), rho_dot[near])
    total[near[closest < R_EARTH]] = -np.inf
    result[inside] = total
    return result


def markov_chain(
    night: Night,
    start: np.ndarray,
    power: float,
    steps: int,
    rng: np.random.Generator,
    keep: int = 5,
) -> np.ndarray:
    """States of an ensemble of walkers, shape (steps / keep, N, 6 + V).

    Each half of the ensemble moves by differences of pairs of the other (ter Braak 2006, Stat.
    Comput. 16, 239), which needs no scale and no direction to be given.
    """
    z, chain = start.copy(), []
    n, d = z.shape
    value = log_posterior(night, z, power)
    halves = np.arange(n) < n // 2
    for step in range(steps):
        for half in (halves, ~halves):
            other = z[~half]
            count = int(half.sum())
            first, second = rng.integers(0, len(other), (2, count))
            # now and then a full difference, which leads from one lobe to another
            size = np.where(rng.random(count) < 0.1, 1.0, 2.38 / np.sqrt(2.0 * d))
            size = size * np.where(rng.random(count) < 0.5, 1.0, rng.uniform(0.1, 1.0, count))
            trial = z[half] + size[:, None] * (other[first] - other[second])
            trial += 1e-7 * np.std(other, axis=0) * rng.standard_normal(trial.shape)
            proposed = log_posterior(night, trial, power)
            taken = np.log(rng.random(count)) < proposed - value[half]
            z[half] = np.where(taken[:, None], trial, z[half])
            value[half] = np.where(taken, proposed, value[half])
        if step % keep == keep - 1:
            chain.append(z.copy())
    return np.array(chain)


def first_walkers(
    force: BruteForce, prior: str, count: int, rng: np.random.Generator
) -> np.ndarray:
    """Walkers spread about the brute-force posterior, wider than it."""
    ln_rho, rho_dot, weight = force.points(prior)
    pick = rng.choice(len(weight), count, p=weight / weight.sum())
    walkers = np.zeros((count, 6 + len(force.night.visits)))
    walkers[:, 4], walkers[:, 5] = ln_rho[pick], rho_dot[pick]
    night, rho = force.night, np.exp(ln_rho[pick])
    augmented, x = night.linearised(rho, walkers[:, 5])
    flat = (augmented[..., :4] / night.sigma[..., None]).reshape(count, -1, 4)
    cholesky = np.linalg.cholesky(np.linalg.inv(np.swapaxes(flat, 1, 2) @ flat))
    walkers[:, :4] = x + (cholesky @ rng.standard_normal((count, 4, 1)))[..., 0]
    scale = np.log(SHARE_OF_CLAIM) + SHARE_SPREAD * rng.standard_normal((count, len(night.visits)))
    walkers[:, 6:] = np.minimum(scale, np.log(LARGEST_SHARE) - 0.01)
    return walkers


# -------------------------------------------------------------------- nights


@dataclass(frozen=True)
class Case:
    """A night to judge by: how an object was observed, and a seed."""

    rho: float
    hours: float
    counts: tuple[int, ...]
    """Observations of each visit."""
    sigma: float = 0.3
    seed: int = 0

    def night(self) -> Night:
        """The night with its errors, moved as `Night` moves objects."""
        rng = np.random.default_rng(self.seed)
        n, stations = sum(self.counts), ("G96", "703", "I41")[: len(self.counts)]
        span = self.hours / 24.0
        made = simulate(
            1, span, seed=self.seed, n_observations=n, sigma=self.sigma, station="G96", rho=self.rho
        )
        codes = np.repeat(stations, self.counts)
        if len(stations) > 1:
            made = observe(made.r, made.v, made.epoch, [made.arcs.t], codes, self.sigma)
        offsets = made.arcs.offsets
        arc = replace(made.arcs, visit=visits(offsets, made.arcs.t, codes))
        night = Night(arc)
        # simulated arcs are of two bodies: what the others add is taken from the residuals
        gone = night.residuals(np.zeros((1, 4)), made.rho, made.rho_dot)[0]
        sigma = np.stack([arc.sigma_ra, arc.sigma_dec])
        error = Errors("measured").draw(sigma, arc.visit, rng)
        ra, dec = displaced(arc.direction, error - np.einsum("nab,an->bn", night.turn, gone))
        return Night(replace(arc, ra=ra, dec=dec))


CASES = {
    "three in twenty minutes": Case(0.3, 0.33, (3,), seed=1),
    "a pair": Case(0.05, 0.5, (2,), seed=2),
    "near, an hour": Case(0.02, 1.0, (4,), seed=3),
    "near, two stations, eight hours": Case(0.01, 8.0, (4, 4), seed=4),
    "within the sphere of the Earth": Case(0.002, 0.3, (3,), seed=5),
    "two hours": Case(0.15, 2.0, (5,), seed=6),
    "main belt": Case(2.0, 0.7, (4,), seed=7),
    "three stations": Case(0.08, 6.0, (2, 2, 2), seed=8),
    "claimed large": Case(0.1, 1.5, (4,), sigma=1.0, seed=9),
    "four hours": Case(0.8, 4.0, (4,), seed=10),
}
