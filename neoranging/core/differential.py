r"""Orbits by least squares through the observations of many nights: differential corrections.

The six parameters are those of a night, whatever the length of the arc: two offsets of the
direction at a reference epoch, two of its rate, the logarithm of the range, and the range-rate. In
these a short arc is nearly linear where Cartesian coordinates are bent, and the range stays
positive. Gauss and Newton's steps are kept inside a region of trust (Branch, Coleman & Li 1999, as
in ``scipy.optimize.least_squares``), so that a poor start cannot throw the orbit away. It is led:
the nights next to the first come in first, and those beyond are added as the arc doubles, for the
orbit of an arc predicts one that is twice as long well enough to go on from.

Observations weigh by the law of the errors of `neoranging.core.noise`, a visit at a time: a
scatter, an offset that the visit shares, and the clock, which displaces along the motion. With r
the residuals of all observations, C their covariance, J the partial derivatives and P the
covariance of the parameters,

.. math::  P = (J^T C^{-1} J)^{-1}, \qquad \Gamma = C - J P J^T ,

and the residuals have the covariance :math:`\Gamma`. An observation is set aside where
:math:`\chi^2 = r_i^T \Gamma_{ii}^{-1} r_i` is too large, and comes back where it is small again
(Carpino, Milani & Chesley 2003, Icarus 166, 248). What is set aside takes no part, so that its own
covariance is :math:`C + J P J^T`. The worst go first: no round sets aside what misses the orbit by
less than half as much as the worst does, since an orbit that one blunder has bent misses the good
ones too.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, solve_triangular
from scipy.optimize import least_squares
from scipy.sparse import block_diag, csr_array

from neoranging.constants import C_AU_PER_DAY
from neoranging.core.arcs import Arcs
from neoranging.core.geometry import dot, norm, radec, sky_basis
from neoranging.core.kepler import propagate
from neoranging.core.noise import TIMING_D, VISIT_TIMING_D, error_law
from neoranging.core.prediction import range_rate, sight, sky_offsets
from neoranging.typing import BoolArray, FloatArray

REJECT: Final = 9.21
"""Chi-square of an observation beyond which it is set aside: one good one in a hundred is."""

READMIT: Final = 8.0
"""Chi-square below which it comes back; smaller, or observations at the limit would go and come."""

_FEW: Final = 400.0, 1.2
"""Chi-square added to the limits, and its decrease with each observation: of few none can be spared
(as in the program OrbFit)."""

_SHARE_OF_WORST: Final = 0.25
"""Least share of the largest chi-square that goes in the same round."""

_MOST_ROUNDS: Final = 20
_MOST_EVALUATIONS: Final = 100
_TOLERANCE: Final = 1e-9
_LOOSE: Final = 1e-4
"""Tolerance of a stage that is not the last: it has to lead on, no more."""


_STEP: Final = 1.0e-5
"""Step of the numerical derivatives, as a displacement on the sky at the end of the arc [rad]. They
are central: what they leave out is the square of this."""

_LEAST_REACH_D: Final = 0.01
_GROWTH: Final = 2.0
"""Growth of the arc from one stage to the next."""

OPEN: Final = 0.5
"""Relative standard error of the range from which on the observations leave an orbit open."""

_LEAST_GAMMA: Final = 0.01
"""Share of the variance of an observation that is left to its residual, at least."""

Prediction = Callable[[FloatArray, FloatArray, FloatArray], tuple[FloatArray, FloatArray]]
"""Lines of sight [au] from the observers to K states (r, v, epoch) and their velocities [au/d] at
emission, both (K, n, 3)."""


class Frame(NamedTuple):
    """Axes and origin of the parameters: a direction at a reference epoch, from its observer."""

    t: float
    """Reference epoch of reception [MJD TDB]."""
    position: FloatArray
    """Heliocentric position of the observer there, shape (3,) [au]."""
    velocity: FloatArray
    """His velocity, shape (3,) [au/d]."""
    axes: FloatArray
    """Direction of the first guess, east and north of it, shape (3, 3)."""
    rate: FloatArray
    """Rate of that direction, shape (3,) [rad/d]."""

    def states(self, x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """States and epochs of emission of parameters, (K, 6) -> (K, 3), (K, 3), (K,)."""
        direction = self.axes[0] + x[:, :2] @ self.axes[1:]
        direction /= norm(direction)[:, None]
        rate = self.rate + x[:, 2:4] @ self.axes[1:]
        rate -= dot(rate, direction)[:, None] * direction
        rho, rho_dot = np.exp(x[:, 4:5]), x[:, 5:]
        v = self.velocity + rho_dot * direction + rho * rate
        epoch = self.t - rho[:, 0] / C_AU_PER_DAY
        return self.position + rho * direction, v / (1.0 - rho_dot / C_AU_PER_DAY), epoch

    def states_at(self, x: FloatArray, epoch: float) -> FloatArray:
        """Heliocentric states at one epoch, a light time from those of `states`, (K, 6)."""
        r, v, own = self.states(x)
        return np.concatenate(propagate(r, v, epoch - own), axis=1)


class Fit(NamedTuple):
    """Least-squares orbit through n observations."""

    frame: Frame
    x: FloatArray
    """Parameters: offsets of direction and rate [rad, rad/d], ln range, range-rate, shape (6,)."""
    covariance: FloatArray
    """Their covariance, shape (6, 6)."""
    residual: FloatArray
    """Observed minus predicted, east and north, shape (n, 2) [rad]."""
    sigma: FloatArray
    """Standard errors that the observations were given, shape (n, 2) [rad]."""
    chi2: FloatArray
    """Square of the residual of each observation by its covariance, shape (n,)."""
    used: BoolArray
    """Flags of observations that are not set aside, shape (n,)."""
    total: float
    """Sum of the squared residuals of what is used, in units of all errors."""
    n_steps: int
    """Steps of the iteration, those of all stages together."""
    converged: bool
    """The iteration came to rest, and so did the rejection."""


def first_guess(
    arcs: Arcs, row: int, r: FloatArray, v: FloatArray, epoch: float
) -> tuple[Frame, FloatArray]:
    """Frame at the observation ``row``, and the parameters (6,) of a state at an epoch."""
    t, place, speed = arcs.t[row], arcs.position[row], arcs.velocity[row]
    seen = sight(r[None], v[None], np.array([epoch]), t[None], place[None], speed[None])
    direction, rho, rho_dot = seen.direction[0], seen.rho[0], seen.rho_dot[0]
    apparent = seen.v[0] * (1.0 - rho_dot / C_AU_PER_DAY) - speed
    rate = (apparent - rho_dot * direction) / rho
    ra, dec = radec(direction)
    east, north = sky_basis(np.asarray(ra), np.asarray(dec))
    frame = Frame(float(t), place, speed, np.stack([direction, east, north]), rate)
    return frame, np.array([0.0, 0.0, 0.0, 0.0, np.log(rho), rho_dot])


class Problem:
    """Observations with what predicts and weighs them.

    Parameters
    ----------
    arcs : Arcs
        Visits: one station in one night each; all observers known.
    frame : Frame
    predict, approximate : callable
        Path that is fitted, and one whose derivatives serve; see `Prediction`.
    by_law : bool
        Weigh by the law of the errors; False takes the claims, independent of one another.
    """

    def __init__(
        self, arcs: Arcs, frame: Frame, predict: Prediction, approximate: Prediction, by_law: bool
    ) -> None:
        self.arcs, self.frame, self.by_law = arcs, frame, by_law
        self._predict, self._approximate = predict, approximate
        self.elapsed = np.abs(arcs.t - frame.t)
        self._claim = np.stack([arcs.sigma_ra, arcs.sigma_dec], axis=1)
        self._law = error_law(arcs) if by_law else None

    def residual(self, x: FloatArray) -> FloatArray:
        """Observed minus predicted offsets of one vector of parameters, shape (n, 2) [rad]."""
        return self._offsets(self._predict, x[None])[0]

    def _offsets(self, predict: Prediction, x: FloatArray) -> FloatArray:
        with np.errstate(all="ignore"):
            line, _ = predict(*self.frame.states(x))
            return sky_offsets(self.arcs.direction, line / norm(line)[..., None])

    def partials(self, x: FloatArray, reach: float) -> FloatArray:
        """Derivatives of the predicted offsets by the parameters, shape (n, 2, 6).

        Parameters
        ----------
        x : ndarray, shape (6,)
        reach : float
            Time from the reference epoch to the farthest observation that counts [d].
        """
        span = max(reach, _LEAST_REACH_D)
        rate = 1.0 / span
        step = _STEP * np.array([1.0, 1.0, rate, rate, 1.0, np.exp(x[4]) * rate])
        both = np.concatenate([x + np.diag(step), x - np.diag(step)])
        offsets = self._offsets(self._approximate, both)
        return np.moveaxis(offsets[6:] - offsets[:6], 0, 2) / (2.0 * step)

    def motion(self, x: FloatArray) -> FloatArray:
        """Predicted rates east and north, shape (n, 2) [rad/d]."""
        arcs = self.arcs
        line, v = (column[0] for column in self._approximate(*self.frame.states(x[None])))
        rho = norm(line)[:, None]
        rho_dot = range_rate(line / rho, v, arcs.velocity)[:, None]
        rate = (v * (1.0 - rho_dot / C_AU_PER_DAY) - arcs.velocity - rho_dot * line / rho) / rho
        east, north = sky_basis(arcs.ra, arcs.dec)
        return np.stack([dot(rate, east), dot(rate, north)], axis=1)

    def errors(self, x: FloatArray, used: BoolArray, rest: FloatArray | None) -> list[FloatArray]:
        """Covariances of the observations of each visit, (2k, 2k) with east and north in turn.

        Parameters
        ----------
        x : ndarray, shape (6,)
            Orbit that the motion is of.
        used : ndarray of bool, shape (n,)
            Observations that tell of the scatter of their visit.
        rest : ndarray, shape (n, 2), optional
            Residuals about an orbit, which tell of it better than those about a parabola.
        """
        bounds = self.arcs.offsets
        rows = [slice(a, b) for a, b in pairwise(bounds)]
        if self._law is None:
            return [np.diag(self._claim[row].ravel() ** 2) for row in rows]
        law, scatter, motion = self._law, self._law.scatter.copy(), self.motion(x)
        if rest is not None:
            scatter[used] = self._scatter(used, rest)
        blocks = []
        for k, row in enumerate(rows):
            t, sigma, offset = self.arcs.t[row], scatter[row], law.offset[row]
            alike = np.exp(-0.5 * ((t[:, None] - t) / law.drift[k]) ** 2)
            block = np.einsum("ia,ij,ja,ab->iajb", offset, alike, offset, np.eye(2))
            clock = VISIT_TIMING_D**2 + TIMING_D**2 * np.eye(len(t))
            block += np.einsum("ia,ij,jb->iajb", motion[row], clock, motion[row])
            blocks.append(block.reshape(2 * len(t), -1) + np.diag(sigma.ravel() ** 2))
        return blocks

    def _scatter(self, used: BoolArray, rest: FloatArray) -> FloatArray:
        """Scatter of the observations in use by their residuals about the mean of their visit."""
        index = np.flatnonzero(used)
        few = self.arcs.observations(index)
        mean = few.sum(rest[index]) / few.counts[:, None]
        return error_law(few, rest[index] - mean[few.owner]).scatter

    def whitening(self, blocks: list[FloatArray], used: BoolArray) -> csr_array:
        """Matrix that makes residuals of what is used independent, of variance one, (2m, 2n)."""
        parts = []
        for k, block in enumerate(blocks):
            row = slice(self.arcs.offsets[k], self.arcs.offsets[k + 1])
            keep = np.flatnonzero(np.repeat(used[row], 2))
            part = np.zeros((len(keep), len(block)))
            root = np.linalg.cholesky(block[np.ix_(keep, keep)])
            part[:, keep] = solve_triangular(root, np.eye(len(keep)), lower=True)
            parts.append(part)
        return csr_array(block_diag(parts, format="csr"))

    def solve(
        self, x: FloatArray, white: csr_array, reach: float, tolerance: float
    ) -> tuple[FloatArray, int, bool, float]:
        """Parameters of the least sum of squares, steps, flag of rest, and that sum."""

        def whitened(y: FloatArray) -> FloatArray:
            return np.asarray(white @ self.residual(y).ravel())

        def slope(y: FloatArray) -> FloatArray:
            return np.asarray(-(white @ self.partials(y, reach).reshape(-1, 6)))

        result: Any = least_squares(
            whitened,
            x,
            slope,
            x_scale="jac",
            ftol=tolerance,
            xtol=tolerance,
            max_nfev=_MOST_EVALUATIONS,
        )
        return result.x, int(result.njev), result.status > 0, 2.0 * float(result.cost)


def stages(elapsed: FloatArray, first: BoolArray) -> list[BoolArray]:
    """Observations of each stage: the first night and what is next to it, then twice the time.

    Parameters
    ----------
    elapsed : ndarray, shape (n,)
        Times from the reference epoch [d], positive.
    first : ndarray of bool, shape (n,)
        Observations that the first guess is of.
    """
    reach = float(elapsed[first].max(initial=0.0))
    parts: list[BoolArray] = []
    while not parts or not parts[-1].all():
        beyond = elapsed[elapsed > reach]
        # half a day more than the nearest: all of its night, and no stage of a single observation
        nearest = beyond.min() + 0.5 if len(beyond) else reach
        reach = max(_GROWTH * reach if parts else 0.0, float(nearest))
        parts.append(elapsed <= reach)
    return parts


def corrected(
    problem: Problem,
    x: FloatArray,
    parts: list[BoolArray],
    *,
    rejecting: bool,
) -> Fit | None:
    """Orbit by differential corrections from a first guess.

    Parameters
    ----------
    problem : Problem
    x : ndarray, shape (6,)
        First guess, by `first_guess`.
    parts : list of ndarray of bool, shape (n,)
        Observations of each stage; the last is of all.
    rejecting : bool
        Set observations aside that do not fit.

    Returns
    -------
    Fit or None
        None where no orbit was reached at all, since the guess predicts nothing, or the
        observations leave a parameter free.
    """
    n_steps = 0
    for part in parts:
        is_last = part is parts[-1]
        try:
            fit = _stage(problem, x, part, rejecting)
        except (ValueError, LinAlgError):  # of a guess that predicts nothing; of a singular matrix
            if is_last:
                return None
            continue
        n_steps += fit.n_steps
        # nights that leave the range open lead anywhere along their valley: the guess is better
        if is_last or (fit.converged and fit.covariance[4, 4] < OPEN**2):
            x = fit.x
    return fit._replace(n_steps=n_steps)


def _stage(problem: Problem, x: FloatArray, part: BoolArray, rejecting: bool) -> Fit:
    """Fit of a part of the observations, and rounds of rejection."""
    is_last = bool(part.all())
    tolerance = _TOLERANCE if is_last else _LOOSE
    used, rest, n_steps = part.copy(), None, 0
    reach = float(problem.elapsed[part].max())
    for number in range(_MOST_ROUNDS):
        blocks = problem.errors(x, used, rest)
        white = problem.whitening(blocks, used)
        x, steps, at_rest, total = problem.solve(x, white, reach, tolerance)
        residual, slope = problem.residual(x), problem.partials(x, reach)
        root = np.linalg.qr(white @ slope.reshape(-1, 6), mode="r")
        inverse = solve_triangular(root, np.eye(6))
        covariance = inverse @ inverse.T
        n_steps += steps
        own = np.concatenate([_diagonal(block) for block in blocks])
        shared = np.einsum("nap,pq,nbq->nab", slope, covariance, slope)
        chi2 = _chi2(residual, own, np.where(used[:, None, None], -shared, shared))
        again = _judged(chi2, used, part) if rejecting else used
        if 2 * number > _MOST_ROUNDS:  # what goes and comes in turn with its weight stays away
            again &= used
        settled = at_rest and (rest is not None or not is_last) and np.array_equal(again, used)
        sigma = np.sqrt(np.einsum("naa->na", own))
        fit = Fit(
            *(problem.frame, x, covariance, residual, sigma, chi2, used, total, n_steps, settled)
        )
        if settled:
            break
        used, rest = again, residual
    return fit


def _diagonal(block: FloatArray) -> FloatArray:
    """Covariances of single observations, shape (k, 2, 2)."""
    k = np.arange(len(block) // 2)
    return block.reshape(len(k), 2, len(k), 2)[k, :, k]


def _chi2(residual: FloatArray, own: FloatArray, change: FloatArray) -> FloatArray:
    """Squares of residuals by the covariance ``own + change``, shape (n,)."""
    gamma = own + change
    # what an orbit follows wherever it lies has no residual to be judged by
    floor = _LEAST_GAMMA * np.einsum("naa->n", own)
    values, vectors = np.linalg.eigh(gamma)
    along = np.einsum("nab,na->nb", vectors, residual)
    return np.asarray(np.sum(along**2 / np.maximum(values, floor[:, None]), axis=1))


def _judged(chi2: FloatArray, used: BoolArray, part: BoolArray) -> BoolArray:
    """Observations to use in the next round."""
    fudge = _FEW[0] * _FEW[1] ** -float(used.sum())
    limit = max(REJECT + fudge, _SHARE_OF_WORST * float(chi2[used].max()))
    return np.where(used, chi2 < limit, part & (chi2 < READMIT + fudge))
