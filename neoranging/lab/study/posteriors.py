"""Posteriors beside the truth: where it fell in the posterior of its arc, in a few numbers.

The nodes of ten thousand posteriors fill gigabytes. So a posterior is judged as soon as it is
there, while its nodes are at hand, and only its scores are kept: about thirty numbers an arc, none
of them interpolated as they would be in a table of quantiles. They take the truth, so arcs with
other labels are asked for again. Levels need not be chosen beforehand: the probability integral
transform says of every equal-tailed interval if the truth is inside, and the depth of every region
of highest density.

What is judged is the density of ln rho that quantiles and regions of an estimate come from.

References
----------
- Gneiting, T., Raftery, A. E. 2007, J. Am. Stat. Assoc. 102, 359: the scores.
- Dawid, A. P. 1984, J. R. Stat. Soc. A 147, 278: the probability integral transform.
- Laio, F., Tamea, S. 2007, Hydrol. Earth Syst. Sci. 11, 1267, equation 12: CRPS by quantiles.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final, Self

import numpy as np
import pandas as pd

from neoranging.core import columns
from neoranging.core.admissible import is_admissible
from neoranging.core.answers import Answers
from neoranging.lab.study.scores import STUDY_LEVELS
from neoranging.typing import FloatArray, IntArray

_LOSS_LEVELS: Final = (np.arange(500) + 0.5) / 500
"""Levels of the quantiles that make a CRPS: exact to a ten-thousandth."""

_TIE: Final = 1e-9
"""Difference of logarithms up to which densities are the same."""


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
        levels = np.array(STUDY_LEVELS)
        tails = np.stack([0.5 - 0.5 * levels, 0.5 + 0.5 * levels], axis=1)
        log_density = posterior.log_pdf(rho)
        coefficients = answers.attributables.energy_coefficients[posterior.arc]
        # points of the same density, as on a level stretch, count by half: so they do on average
        depth = [posterior.marginal.above(log_density + tie) for tie in (-_TIE, _TIE)]
        # twice the mean loss of the quantiles, each of which is a score of its level
        below = np.log10(rho / posterior.quantile(_LOSS_LEVELS).T)
        loss = below * (_LOSS_LEVELS[:, None] - (below < 0.0))
        return cls(
            rho_median=posterior.quantile(0.5),
            bounds=posterior.quantile(tails.ravel()).reshape(-1, *tails.shape),
            pit=posterior.cdf(rho),
            depth=0.5 * (depth[0] + depth[1]),
            crps=2.0 * loss.mean(axis=0),
            density=np.exp(log_density),
            nodes_admissible=posterior.average(
                is_admissible(coefficients, posterior.rho, posterior.rho_dot)
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
