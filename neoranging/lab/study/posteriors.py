"""Posteriors beside the truth: where it fell in the posterior of its arc, in a few numbers.

The nodes of ten thousand posteriors fill hundreds of megabytes. So a posterior is judged as soon as
it is there, while its nodes are at hand and without an approximation, and only its scores are kept:
about forty numbers an arc. They take the truth, so whoever keeps them has to ask again for arcs
with other labels. Levels need not be chosen beforehand: of every equal-tailed interval the
probability integral transform says if the truth is inside, and of every region of highest density
its depth.

A posterior is judged as a density of ln rho, the range-rates of each range summed over: constant
over the width of a column of nodes, so that its distribution function is linear there and all
integrals are exact.

References
----------
- Gneiting, T., Raftery, A. E. 2007, J. Am. Stat. Assoc. 102, 359: the scores.
- Dawid, A. P. 1984, J. R. Stat. Soc. A 147, 278: the probability integral transform.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import NamedTuple, Self

import numpy as np
import pandas as pd

from neoranging.core import columns
from neoranging.core.admissible import is_admissible
from neoranging.core.answers import Answers
from neoranging.core.posterior import Posterior
from neoranging.lab.study.scores import STUDY_LEVELS
from neoranging.typing import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False, repr=False)
class PosteriorScores:
    """Posteriors of M arcs beside the true ranges; NaN for an arc without a posterior.

    Attributes
    ----------
    rho_median : ndarray, shape (M,)
        Median of the range [au].
    bounds : ndarray, shape (M, L, 2)
        Equal-tailed intervals of the range [au] at the L levels `STUDY_LEVELS`.
    pit : ndarray, shape (M,)
        Probability of ranges below the true one.
    depth : ndarray, shape (M,)
        Probability of ranges of a higher density in ln rho than the true one: the truth lies in
        the region of highest density of every level above it.
    crps : ndarray, shape (M,)
        Continuous ranked probability score of log10 rho [dex]; Gneiting & Raftery, equation 20.
    density : ndarray, shape (M,)
        Density of ln rho at the true range; 0 off the grid.
    nodes_admissible : ndarray, shape (M,)
        Probability of nodes in the admissible region.
    """

    rho_median: FloatArray
    bounds: FloatArray
    pit: FloatArray
    depth: FloatArray
    crps: FloatArray
    density: FloatArray
    nodes_admissible: FloatArray

    @classmethod
    def of(cls, answers: Answers, rho: FloatArray) -> Self | None:
        """Scores of the posteriors of some answers; None of a method that gives none.

        Parameters
        ----------
        answers : Answers
            Of M arcs.
        rho : ndarray, shape (M,)
            Their true ranges [au], from the origin of the method.
        """
        posterior = answers.posterior
        if posterior is None:
            return None
        m = len(answers)
        if not len(posterior.rho):
            return cls.none(m)
        arc = np.repeat(np.arange(m), np.diff(posterior.offsets))
        weight = _weights(posterior, arc)
        marginal = Marginal.of(posterior, arc, weight)
        levels = np.array(STUDY_LEVELS)
        tails = np.stack([0.5 - 0.5 * levels, 0.5 + 0.5 * levels], axis=1)
        ranges = np.exp(marginal.quantiles(np.append(tails, 0.5)))
        coefficients = answers.attributables.energy_coefficients
        is_inside = is_admissible(coefficients[arc], posterior.rho, posterior.rho_dot)
        pit, depth, density = marginal.place(np.log(rho))
        return cls(
            rho_median=ranges[:, -1],
            bounds=ranges[:, :-1].reshape(m, len(levels), 2),
            pit=pit,
            depth=depth,
            crps=marginal.crps(np.log(rho)) / np.log(10.0),
            density=density,
            nodes_admissible=np.where(
                marginal.exists, np.bincount(arc, weight * is_inside, minlength=m), np.nan
            ),
        )

    @classmethod
    def none(cls, m: int) -> Self:
        """Scores of M arcs without a posterior."""
        shapes = {"bounds": (m, len(STUDY_LEVELS), 2)}
        return cls(*(np.full(shapes.get(field.name, (m,)), np.nan) for field in fields(cls)))

    def __len__(self) -> int:
        return len(self.pit)

    def take(self, rows: IntArray) -> Self:
        """Scores of some of the arcs."""
        return columns.take(self, rows)

    def intervals(self, limits: FloatArray) -> dict[float, FloatArray]:
        """Equal-tailed intervals by level, shape (M, 2) [au]; ``limits`` where there is none."""
        without = np.isnan(self.pit)[:, None]
        return {
            level: np.where(without, limits, self.bounds[:, k])
            for k, level in enumerate(STUDY_LEVELS)
        }


def with_posteriors(
    scored: pd.DataFrame, rows: IntArray, posteriors: PosteriorScores
) -> pd.DataFrame:
    """Scores with those of the posteriors of some rows; the posteriors are of all M arcs."""
    values = {}
    for name in ("rho_median", "pit", "depth", "crps", "density", "nodes_admissible"):
        values[name] = np.full(len(scored), np.nan)
        values[name][rows] = getattr(posteriors, name)[rows]
    return scored.assign(**values)


def _weights(posterior: Posterior, arc: IntArray) -> FloatArray:
    """Probabilities of the nodes, shape (K,), which add up to 1 for each arc."""
    cell = posterior.rho * posterior.log_width * posterior.rate_width
    logarithm = posterior.log_likelihood + posterior.log_prior + np.log(cell)
    greatest = np.full(len(posterior), -np.inf)
    np.maximum.at(greatest, arc, logarithm)
    weight = np.exp(logarithm - greatest[arc])
    return weight / np.bincount(arc, weight, minlength=len(posterior))[arc]


class Marginal(NamedTuple):
    """Distributions of ln rho of M arcs on C columns, flat, in order of arc and range."""

    offsets: IntArray
    """Arc ``k`` owns the columns ``offsets[k]:offsets[k + 1]``."""
    arc: IntArray
    """Arc of each column."""
    low: FloatArray
    """Where a column begins [ln au]."""
    high: FloatArray
    """Where it ends."""
    mass: FloatArray
    """Probability of a column."""
    upto: FloatArray
    """Probability of a column and all nearer ones."""

    @classmethod
    def of(cls, posterior: Posterior, arc: IntArray, weight: FloatArray) -> Self:
        """Columns of the nodes, which share range and width."""
        is_first = np.diff(arc, prepend=-1) != 0
        is_first |= np.diff(posterior.rho, prepend=-1.0) != 0.0
        first = np.flatnonzero(is_first)
        middle, width = np.log(posterior.rho[first]), posterior.log_width[first]
        mass, owner = np.add.reduceat(weight, first), arc[first]
        offsets = np.searchsorted(owner, np.arange(len(posterior) + 1))
        total = np.concatenate([[0.0], np.cumsum(mass)])
        upto = total[1:] - total[offsets[owner]]
        return cls(offsets, owner, middle - 0.5 * width, middle + 0.5 * width, mass, upto)

    @property
    def exists(self) -> BoolArray:
        """Flags of arcs with a distribution, shape (M,)."""
        return np.diff(self.offsets) > 0

    def quantiles(self, levels: FloatArray) -> FloatArray:
        """Values of ln rho below which a probability lies, shape (M, L) for L levels."""
        found = np.full((len(self.exists), len(levels)), np.nan)
        for k in np.flatnonzero(self.exists):
            first, end = self.offsets[k : k + 2]
            column = np.searchsorted(self.upto[first:end], levels)
            column = first + np.minimum(column, end - first - 1)
            above = np.maximum(self.upto[column] - levels, 0.0) / self.mass[column]
            found[k] = self.high[column] - above * (self.high[column] - self.low[column])
        return found

    def place(self, x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Where values of ln rho (M,) fall in the distributions.

        Returns
        -------
        pit, depth, density : ndarray, shape (M,)
            Probability of lower values, probability of values of a higher density, and density.
            Values of the same density as ``x``, as those of its own column, count by half, as they
            would on the average over a column.
        """
        value, m = x[self.arc], len(self.exists)
        height = self.mass / (self.high - self.low)
        pit = self._sum(self.mass * self._share_below(value))
        is_here = (self.low <= value) & (value < self.high)
        density = np.bincount(self.arc, height * is_here, minlength=m)
        own = density[self.arc]
        depth = self._sum(self.mass * ((height > own) + 0.5 * (height == own)))
        return pit, depth, np.where(self.exists, density, np.nan)

    def crps(self, x: FloatArray) -> FloatArray:
        """Continuous ranked probability scores of values of ln rho, shape (M,).

        The integral of the square of F below ``x`` and of 1 - F above it, of pieces on which F is
        linear: the two parts of each column, and the gap behind it.
        """
        value, width = x[self.arc], self.high - self.low
        share, lower = self._share_below(value), np.clip(self.upto - self.mass, 0.0, 1.0)
        there = lower + share * self.mass
        upper = np.clip(self.upto, 0.0, 1.0)
        integral = share * _square(lower, there) + (1.0 - share) * _square(1.0 - there, 1.0 - upper)
        scores = self._sum(width * integral)
        is_last = np.diff(self.arc, append=-1) != 0
        end = np.where(is_last, np.maximum(self.high, value), np.roll(self.low, -1))
        below = np.clip(value, self.high, end) - self.high
        scores += self._sum(below * upper**2 + (end - self.high - below) * (1.0 - upper) ** 2)
        is_first = np.diff(self.arc, prepend=-1) != 0
        return scores + self._sum(is_first * np.maximum(self.low - value, 0.0))

    def _share_below(self, value: FloatArray) -> FloatArray:
        """Share of each column below a value."""
        return np.clip((value - self.low) / (self.high - self.low), 0.0, 1.0)

    def _sum(self, of_columns: FloatArray) -> FloatArray:
        """Sums by arc, shape (M,); NaN of no columns."""
        sums = np.bincount(self.arc, of_columns, minlength=len(self.exists))
        return np.where(self.exists, sums, np.nan)


def _square(begin: FloatArray, end: FloatArray) -> FloatArray:
    """Mean square of what goes linearly from one value to another."""
    return (begin**2 + begin * end + end**2) / 3.0
