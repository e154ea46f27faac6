"""Candidate orbits of the classical methods: judged alike, and chosen by one stated rule.

Neither method picks silently. Every real positive root is kept with what it implies, and the choice
among them is made here, once, in this order:

1. a candidate that converged to an orbit through the observations before one that did not;
2. one that fits all observations of the arc about as well as the best before one that does not;
3. an admissible one (bound to the Sun, not to the Earth, outside it) before one that is not;
4. the one that fits best; fits within one unit of chi-square tie;
5. the farthest. Rivals that fit equally well are mostly the images of a distant object in the
   neighbourhood of the observer, where an exact solution is never far.

The near-observer root is thus dismissed for what is wrong with it (bound to the Earth, misfitting,
or rivalled), never for being near: an imminent impactor has no rival and keeps its root. The fit
comes before admissibility, lest an interstellar object be given a bound orbit that misses it.

What "determined" means is settled here too, without trusting the linearised error alone. The
scalar equation of the method is read as a measurement: at a range that is not a root it fails by so
many standard errors. A root is determined where every range beyond a factor of two fails by three,
other roots excepted, which are candidates and judged as such. That refuses the sharp-looking root
near the observer of an arc whose curvature is noise, because all larger ranges fit that arc too.

Two things that no residual of a three-observation arc can show are reckoned instead. The pull of
the Earth, which two-body orbits about the Sun leave out, is counted as one more error of the
observations; it matters within the distance of the Moon. And where the arc covers so much of the
orbit that the series behind the list of roots no longer converges well, the list may lack the true
one: then three observations never make a determined range.

Neither can residuals tell a strong bend from a wrong position where one observation makes the bend
and the others lie on a line, as with three observations they always do; nor with four, of which any
three lie on some orbit. Such a range is not determined where the bend is larger than a distant
object has in that time and larger than an error that is no blunder.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from neoranging.constants import ARCSEC, GM_EARTH, GM_SUN, R_EARTH
from neoranging.core.admissible import is_inside, set_coefficients, strip
from neoranging.core.answers import Answers, Candidates, Roots
from neoranging.core.arcs import Arcs, Observations
from neoranging.core.attributable import (
    Attributables,
    PathFit,
    TangentFit,
    path_fit,
    tangent_fit,
)
from neoranging.core.compiled import announced, compiled, inlined, plain
from neoranging.core.influence import bend_of_arc
from neoranging.core.noise import (
    N_LEVELS,
    ErrorLaw,
    error_law,
    largest_variance,
    mix,
    quantile_of,
    rate_at,
    squares_of_offsets,
    tail_of_one,
)
from neoranging.core.prediction import light_path, sky_offset
from neoranging.core.range_equation import MOST_ROOTS, RangeEquation
from neoranging.core.status import RangeStatus
from neoranging.core.triples import dot3, length3, row
from neoranging.typing import BoolArray, CodeArray, FloatArray, IntArray


@dataclass(frozen=True)
class Thresholds:
    """When a solution counts as determined.

    Attributes
    ----------
    exclusion : float
        Standard errors by which the scalar equation must fail at every range beyond ``factor``:
        normal ones, as rare as errors of that size are by the law of the errors.
    factor : float
        Ratio to the chosen range within which others need not be excluded.
    relative_error : float
        Largest linearised standard error of the range, relative to the range; the normal one with
        the same tail.
    chi2_excess : float
        How much worse than the best candidate one may fit the observations and still be a rival.
    misfit : float
        Largest reduced chi-square of the observations beyond the three a method satisfies, in
        units of the largest errors that are no blunders (``neoranging.core.noise.largest``).
    """

    exclusion: float = 3.2
    factor: float = 2.0
    relative_error: float = 0.3
    chi2_excess: float = 16.0
    misfit: float = 10.0


_RIVAL_STEP: Final = math.log(1.2)
_RIVAL_RANGES_AU: Final = 0.01 * np.exp(_RIVAL_STEP * np.arange(52))
"""Ranges asked for their fit [au]: from the Earth's Hill sphere to beyond the planets."""


class ClassicalRoots(NamedTuple):
    """Roots of a classical method for M arcs, with the equation that they solve."""

    roots: Roots
    equation: RangeEquation
    """Scalar equation of each arc, shape (M,)."""
    errors: Callable[[ErrorLaw], tuple[FloatArray, FloatArray]]
    """Variance of the equation as a part of the range, shape (M, 3), and covariance of
    (rho, rho_dot) of each root, shape (K, 3, 2, 2): by scatter, offsets and errors of time."""


_SMALLEST_BLUNDER_RAD: Final = 1.0 * ARCSEC
"""Least offset of a position that was measured on another source, or at another time: about the
width of a star's image. What a smaller one does to an arc its stated errors account for."""

_SERIES_REACH: Final = 0.02
"""Square of half the arc in units of the orbit's time scale up to which the series finds all roots.

On noise-free simulated arcs of three observations and 30 days it removes nine in ten of the wrong
ranges and a third of the right ones; arcs of a night stay a thousandfold below.
"""


_NO_ROOT: Final = RangeStatus.NO_ROOT.code
_UNDETERMINED: Final = RangeStatus.UNDETERMINED.code
_NOT_CONVERGED: Final = RangeStatus.NOT_CONVERGED.code
_MISFIT: Final = RangeStatus.MISFIT.code
_INADMISSIBLE: Final = RangeStatus.INADMISSIBLE.code
_MULTIPLE_ROOTS: Final = RangeStatus.MULTIPLE_ROOTS.code
_OK: Final = RangeStatus.OK.code


def solve(
    arcs: Arcs, attributables: Attributables, classical: ClassicalRoots, thresholds: Thresholds
) -> Answers:
    """Judge the roots of each arc, choose one and say how far to trust it."""
    o, roots = arcs.plain, classical.roots
    columns = o, arcs.direction, attributables, roots, tangent_fit(arcs), path_fit(arcs)
    judged = _judge(*columns, float(thresholds.chi2_excess))
    law = error_law(arcs, judged.rest)
    variance, parts = map(plain, classical.errors(law))
    limits = _Limits(
        float(thresholds.exclusion),
        float(thresholds.factor),
        float(thresholds.relative_error),
        float(thresholds.misfit),
        2.0 * float(ndtr(-thresholds.exclusion)),
    )
    tails = tail_of_one(limits.rare), squares_of_offsets()
    place = o, arcs.direction, arcs.triplet, roots, classical.equation
    chosen = _verdicts(*place, judged, law, variance, parts, limits, *tails)
    candidates = Candidates(
        roots._replace(covariance=chosen.of_roots),
        judged.energy,
        judged.admissible,
        judged.chi2,
        judged.residual,
        judged.plausible,
        judged.chosen,
    )
    return Answers(
        attributables,
        chosen.rho,
        chosen.rho_dot,
        chosen.covariance,
        chosen.r,
        chosen.v,
        chosen.epoch,
        chosen.status,
        candidates,
        _remarks(chosen.off),
        error_scales=chosen.scales,
    )


def _remarks(off: FloatArray) -> npt.NDArray[np.object_] | None:
    """Remarks of arcs whose bend rests on one observation, ``off`` from the others [rad]."""
    alone = np.flatnonzero(np.isfinite(off))
    if not len(alone):
        return None
    remarks = np.full(len(off), "", dtype=object)
    for k, arcsec in zip(alone.tolist(), off[alone] / ARCSEC, strict=True):
        remarks[k] = (
            f"the bend rests on one observation, {arcsec:.3g} arcsec off the line of the others: "
            "if that one is wrong so is the range"
        )
    return remarks


class _Judged(NamedTuple):
    """Roots with what each implies, and the choice among them; see `Candidates`."""

    energy: FloatArray
    admissible: BoolArray
    chi2: FloatArray
    residual: FloatArray
    plausible: BoolArray
    chosen: BoolArray
    pick: IntArray
    """Row of the root chosen for each arc, -1 where there is none, shape (M,)."""
    first: IntArray
    """Row of the first root of each arc, and the number of all at the end, shape (M + 1,)."""
    coefficients: FloatArray
    """Coefficients of the energy, shape (M, 6)."""
    misses: FloatArray
    """Sum of squares about the chosen orbit, in units of the largest errors that are no blunders,
    shape (M,); NaN where no orbit was reached."""
    rest: FloatArray
    """Residuals about the chosen orbit as a fit to all observations would leave them, shape (n, 2);
    NaN where a parabola fits better, or no orbit was reached."""


@announced("the judging of orbits", 5)
@compiled
def _judge(
    o: Observations,
    direction: FloatArray,
    motion: Attributables,
    roots: Roots,
    fit: TangentFit,
    path: PathFit,
    chi2_excess: float,
) -> _Judged:
    """What the roots of all arcs imply, and the choice among them."""
    m, n = len(fit.epoch), len(roots.rho)
    found = _Judged(
        np.empty(n),
        np.empty(n, dtype=np.bool_),
        np.empty(n),
        np.empty(n),
        np.empty(n, dtype=np.bool_),
        np.zeros(n, dtype=np.bool_),
        np.empty(m, dtype=np.int64),
        np.empty(m + 1, dtype=np.int64),
        np.empty((m, 6)),
        np.empty(m),
        np.empty((len(o.t), 2)),
    )
    about = np.empty((MOST_ROOTS, _longest(o.offsets), 2))
    end = 0
    for k in range(m):
        first = found.first[k] = end
        position, velocity = row(motion.position, k), row(motion.velocity, k)
        rates = motion.ra_rate[k], motion.dec_rate[k]
        c = found.coefficients[k]
        set_coefficients(motion.ra[k], motion.dec[k], rates[0], rates[1], position, velocity, c)
        while end < n and roots.arc[end] == k:
            _weigh(o, direction, k, roots, end, c, about[end - first], found)
            end += 1
        found.pick[k] = pick = _choose(roots, first, end, chi2_excess, found)
        lost = pick < 0 or not roots.converged[pick]
        residuals = about[0 if lost else pick - first]
        _compare(o, k, lost, residuals, fit, path, found)
    found.first[m] = end
    return found


@inlined
def _longest(offsets: IntArray) -> int:
    """Number of observations of the longest arc."""
    longest = 0
    for k in range(len(offsets) - 1):
        longest = max(longest, offsets[k + 1] - offsets[k])
    return longest


@inlined
def _weigh(
    o: Observations,
    direction: FloatArray,
    k: int,
    roots: Roots,
    root: int,
    c: FloatArray,
    about: FloatArray,
    found: _Judged,
) -> None:
    """Energy, admissibility and misfit of one root; ``about`` takes the residuals [rad]."""
    r, v = row(roots.r, root), row(roots.v, root)
    energy = 0.5 * dot3(v, v) - GM_SUN / length3(r)
    found.energy[root] = energy
    found.admissible[root] = is_inside(c, roots.rho[root], roots.rho_dot[root], energy)
    begin, end = o.offsets[k], o.offsets[k + 1]
    chi2, square = 0.0, 0.0
    for i in range(begin, end):
        elapsed = o.t[i] - roots.epoch[root]
        line, _ = light_path(r, v, elapsed, row(o.position, i), GM_SUN)
        east, north = sky_offset(row(direction, i), line)
        about[i - begin, 0], about[i - begin, 1] = east, north
        chi2 += (east / o.sigma_ra[i]) ** 2 + (north / o.sigma_dec[i]) ** 2
        square += east * east + north * north
    found.chi2[root], found.residual[root] = chi2, math.sqrt(square / (end - begin))


@inlined
def _choose(roots: Roots, first: int, end: int, chi2_excess: float, found: _Judged) -> int:
    """Row of the root chosen among those of one arc, by the rule of the module; -1 of none."""
    best, pick = np.inf, -1
    for root in range(first, end):
        if roots.converged[root] and math.isfinite(found.chi2[root]):
            best = min(best, found.chi2[root])
    kind, fit, rho = -1, np.inf, 0.0
    for root in range(first, end):
        is_trusted = roots.converged[root] and math.isfinite(found.chi2[root])
        excess = found.chi2[root] - best if is_trusted else np.inf
        fits = excess <= chi2_excess
        found.plausible[root] = fits and found.admissible[root]
        this_kind = 4 * roots.converged[root] + 2 * fits + found.admissible[root]
        this_fit = min(math.floor(min(excess, chi2_excess + 1.0)), chi2_excess + 1.0)
        is_better = this_fit < fit or (this_fit == fit and roots.rho[root] > rho)
        if this_kind > kind or (this_kind == kind and is_better):
            pick, kind, fit, rho = root, this_kind, this_fit, roots.rho[root]
    if pick >= 0:
        found.chosen[pick] = True
    return pick


@inlined
def _compare(
    o: Observations,
    k: int,
    is_lost: bool,
    about: FloatArray,
    fit: TangentFit,
    path: PathFit,
    found: _Judged,
) -> None:
    """Misses and rest of one arc from the residuals about its orbit.

    An orbit near the chosen one differs from it by little more than a parabola on the sky.
    """
    begin, end = o.offsets[k], o.offsets[k + 1]
    misses, square, square_of_path = 0.0, 0.0, 0.0
    for axis in range(2):
        c0, c1, c2 = 0.0, 0.0, 0.0
        for i in range(begin, end):
            value = about[i - begin, axis]
            sigma = o.sigma_ra[i] if axis == 0 else o.sigma_dec[i]
            misses += value * value / largest_variance(sigma, rate_at(fit, k, axis, o.t[i]))
            c0 += path.operator[i, 0] * value
            c1 += path.operator[i, 1] * value
            c2 += path.operator[i, 2] * value
        for i in range(begin, end):
            smooth = c0 + c1 * path.basis[i, 1] + c2 * path.basis[i, 2]
            found.rest[i, axis] = about[i - begin, axis] - smooth
            square += found.rest[i, axis] ** 2
            square_of_path += path.rest[i, axis] ** 2
    found.misses[k] = math.nan if is_lost else misses
    if is_lost or not square < square_of_path:
        for i in range(begin, end):
            found.rest[i, 0] = found.rest[i, 1] = math.nan


class _Limits(NamedTuple):
    """Thresholds as compiled functions take them."""

    exclusion: float
    factor: float
    relative_error: float
    misfit: float
    rare: float
    """Probability of a normal error beyond ``exclusion``."""


class _Chosen(NamedTuple):
    """Columns of `Answers`, and what goes into its candidates and remarks."""

    rho: FloatArray
    rho_dot: FloatArray
    covariance: FloatArray
    r: FloatArray
    v: FloatArray
    epoch: FloatArray
    status: CodeArray
    scales: FloatArray
    of_roots: FloatArray
    """Covariance of each root, shape (K, 2, 2)."""
    off: FloatArray
    """Distance of the one observation that a bend rests on from the line of the others [rad], shape
    (M,); NaN where it rests on more."""


@announced("the verdict on ranges", 6)
@compiled
def _verdicts(
    o: Observations,
    direction: FloatArray,
    triplet: IntArray,
    roots: Roots,
    equation: RangeEquation,
    judged: _Judged,
    law: ErrorLaw,
    variance: FloatArray,
    parts: FloatArray,
    limits: _Limits,
    tails: FloatArray,
    squares: FloatArray,
) -> _Chosen:
    """Answers to all arcs; ``parts`` is the covariance of each root by each kind of error."""
    m, n = len(triplet), len(roots.rho)
    found = _Chosen(
        np.full(m, np.nan),
        np.full(m, np.nan),
        np.full((m, 2, 2), np.nan),
        np.full((m, 3), np.nan),
        np.full((m, 3), np.nan),
        np.full(m, np.nan),
        np.empty(m, dtype=np.int8),
        np.empty((m, N_LEVELS)),
        np.empty((n, 2, 2)),
        np.full(m, np.nan),
    )
    levels = np.empty(N_LEVELS)
    for k in range(m):
        first, end, pick = judged.first[k], judged.first[k + 1], judged.pick[k]
        _add_errors(o, k, first, end, roots, law, parts, found.of_roots)
        scatter, offset, timing = variance[k, 0], variance[k, 1], variance[k, 2]
        noise, tail = math.sqrt(scatter + offset + timing), 1.0
        if pick < 0:
            mix(0.0, 0.0, 0.0, law.scales[k], squares, found.scales[k])
        else:
            _take_root(roots, pick, k, found)
            part = parts[pick]
            mix(
                part[0, 0, 0], part[1, 0, 0], part[2, 0, 0], law.scales[k], squares, found.scales[k]
            )
            sigma = math.sqrt(found.covariance[k, 0, 0])
            # a mixture's tail is longer: what its root mean square does not determine it does not
            if sigma <= limits.relative_error * found.rho[k] and noise * limits.exclusion < 1.0:
                mix(scatter, offset, timing, law.scales[k], squares, levels)
                tail = quantile_of(levels, limits.rare, tails) / limits.exclusion
        noise *= tail
        # also where the noise is no number: an object that does not move
        if not noise * limits.exclusion <= 1.0:
            found.status[k] = _UNDETERMINED
        elif pick < 0:
            found.status[k] = _NO_ROOT
        elif not roots.converged[pick]:
            found.status[k] = _NOT_CONVERGED
        elif not (
            _is_measured(judged.coefficients[k], k, tail, limits, found)
            and _excludes_rivals(k, found.rho[k], noise, roots, first, end, equation, limits)
        ):
            found.status[k] = _UNDETERMINED
        else:
            found.status[k] = _status_of_determined(o, k, roots, judged, limits)
        if found.status[k] == _OK:
            off = bend_of_arc(
                o, direction, o.offsets[k], o.offsets[k + 1], triplet[k, 1], limits.exclusion
            )
            # the Sun bends the path of any object that much: one at half an au, by GM t^2 / 4
            usual_bend = 0.25 * GM_SUN * _span(o, k) ** 2
            if math.isfinite(off) and off > _SMALLEST_BLUNDER_RAD + usual_bend:
                found.status[k], found.off[k] = _UNDETERMINED, off
    return found


@inlined
def _span(o: Observations, k: int) -> float:
    """Time from the first to the last observation of an arc [d]."""
    return o.t[o.offsets[k + 1] - 1] - o.t[o.offsets[k]]


@inlined
def _take_root(roots: Roots, pick: int, k: int, found: _Chosen) -> None:
    """Columns of the answer to one arc, those of its chosen root."""
    found.rho[k], found.rho_dot[k] = roots.rho[pick], roots.rho_dot[pick]
    found.epoch[k] = roots.epoch[pick]
    for axis in range(3):
        found.r[k, axis], found.v[k, axis] = roots.r[pick, axis], roots.v[pick, axis]
    for a in range(2):
        for b in range(2):
            found.covariance[k, a, b] = found.of_roots[pick, a, b]


@inlined
def _add_errors(
    o: Observations,
    k: int,
    first: int,
    end: int,
    roots: Roots,
    law: ErrorLaw,
    parts: FloatArray,
    covariance: FloatArray,
) -> None:
    """Covariance of the roots of one arc, the sum of its parts and of the pull of the Earth.

    The pull GM/rho^2 points at the centre of the Earth and bends the path seen from its surface
    where the two directions part, by R_EARTH/rho. Over half the arc that displaces the object on
    the sky by so many standard errors of an observation. It joins the errors of time, which are
    neither scatter nor offset.
    """
    reach, square = 0.5 * _span(o, k), 0.0
    for i in range(o.offsets[k], o.offsets[k + 1]):
        square += law.scatter[i, 0] ** 2 + law.scatter[i, 1] ** 2
    square /= 2.0 * (o.offsets[k + 1] - o.offsets[k])
    for root in range(first, end):
        shift = 0.5 * GM_EARTH * R_EARTH * reach * reach / roots.rho[root] ** 4
        part = parts[root]
        for a in range(2):
            for b in range(2):
                part[2, a, b] += part[0, a, b] * (shift * shift / square)
                covariance[root, a, b] = part[0, a, b] + part[1, a, b] + part[2, a, b]


@inlined
def _is_measured(c: FloatArray, k: int, tail: float, limits: _Limits, found: _Chosen) -> bool:
    """Flag of a chosen root whose range and range-rate have errors that leave something of them."""
    rho = found.rho[k]
    sigma, of_rate = math.sqrt(found.covariance[k, 0, 0]), math.sqrt(found.covariance[k, 1, 1])
    low, high = strip(c, rho, GM_SUN)
    # a range-rate known no better than boundness alone would have it was not measured
    return not of_rate * tail > 0.5 * (high - low) and sigma * tail <= limits.relative_error * rho


@inlined
def _excludes_rivals(
    k: int,
    rho: float,
    noise: float,
    roots: Roots,
    first: int,
    end: int,
    equation: RangeEquation,
    limits: _Limits,
) -> bool:
    """Flag of a root whose arc excludes every range beyond a factor, other roots excepted."""
    P, pull, E = equation.P[k], equation.Q[k] * equation.mu, equation.E[k]
    square_of_observer, least = equation.R[k] * equation.R[k], limits.exclusion * noise
    for step in range(len(_RIVAL_RANGES_AU)):
        rival = _RIVAL_RANGES_AU[step]
        if not (rival > rho * limits.factor or rival < rho / limits.factor):
            continue
        # the equation fails by a part of the range, here times the cube of the distance
        square = rival * (rival + 2.0 * E) + square_of_observer
        cube = square * math.sqrt(square)
        if not abs((rival - P) * cube - pull) > least * rival * cube:
            is_root = False
            for root in range(first, end):
                nearest = np.rint(math.log(roots.rho[root] / _RIVAL_RANGES_AU[0]) / _RIVAL_STEP)
                is_root = is_root or nearest == step
            if not is_root:
                return False
    return True


@inlined
def _status_of_determined(
    o: Observations, k: int, roots: Roots, judged: _Judged, limits: _Limits
) -> int:
    """Status of an arc whose chosen root the errors leave no rival among other ranges."""
    first, end, pick = judged.first[k], judged.first[k + 1], judged.pick[k]
    spare = 2.0 * (o.offsets[k + 1] - o.offsets[k]) - 6.0
    if judged.misses[k] > limits.misfit * max(spare, 1.0):
        return _MISFIT
    if not judged.admissible[pick]:
        return _INADMISSIBLE
    lost, rivals = 0, 0
    for root in range(first, end):
        lost += not roots.converged[root]
        rivals += judged.plausible[root]
    reach = GM_SUN * (0.5 * _span(o, k)) ** 2 / length3(row(roots.r, pick)) ** 3
    # three observations cannot tell whether a root that was lost is the true one
    if rivals > 1 or (spare == 0.0 and (lost > 0 or reach > _SERIES_REACH)):
        return _MULTIPLE_ROOTS
    return _OK
