"""Posteriors of ranges and range-rates: weighted nodes of a grid over the admissible region."""

from __future__ import annotations

from dataclasses import dataclass

from neoranging.typing import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Posterior:
    """Posteriors of M arcs on K nodes, flat, in order of arc, then range, then range-rate.

    The nodes of one range are a column: they share ``rho`` and ``log_width``. A node stands for a
    cell of the plane (ln rho, rho_dot), and its weight is

        exp(log_likelihood + log_prior) rho log_width rate_width.

    Attributes
    ----------
    offsets : ndarray of int, shape (M + 1,)
        Arc ``k`` owns the nodes ``offsets[k]:offsets[k + 1]``; an arc without a posterior has none.
    rho, rho_dot : ndarray, shape (K,)
        Range [au] and range-rate [au/d] by time of reception.
    log_width : ndarray, shape (K,)
        Width of the cell in the natural logarithm of the range.
    rate_width : ndarray, shape (K,)
        Width of the cell in range-rate [au/d].
    log_likelihood : ndarray, shape (K,)
        Natural logarithm of the likelihood of range and range-rate, the direction, its motion and
        the size of the errors integrated over; up to a constant of the arc.
    log_prior : ndarray, shape (K,)
        Natural logarithm of the prior density over (rho, rho_dot), up to a constant of the arc.
    """

    offsets: IntArray
    rho: FloatArray
    rho_dot: FloatArray
    log_width: FloatArray
    rate_width: FloatArray
    log_likelihood: FloatArray
    log_prior: FloatArray

    def __len__(self) -> int:
        return len(self.offsets) - 1
