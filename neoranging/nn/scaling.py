"""Affine scalings that travel with a network: fitted on its training arcs, stored with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from neoranging.exceptions import DatasetError
from neoranging.nn.arrays import Array, like, namespace_of

ARRAYS: Final = ("center", "scale", "low", "high")
"""Names of the numbers of a scaling in files of weights."""


class Scaling:
    """Scaling ``(value - center) / scale`` column by column, and the range of the training arcs.

    Its numbers are double whatever the precision of the network.

    Parameters
    ----------
    names : sequence of str
        Names of the F columns.

    Attributes
    ----------
    center, scale : Array, shape (F,)
    low, high : Array, shape (F,)
        Least and greatest value among the training arcs; infinite before `fit`.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        start = {"center": 0.0, "scale": 1.0, "low": -np.inf, "high": np.inf}
        self.center, self.scale, self.low, self.high = (
            np.full(len(self.names), value) for value in start.values()
        )

    @property
    def arrays(self) -> dict[str, Array]:
        """All numbers by name."""
        return {name: getattr(self, name) for name in ARRAYS}

    @arrays.setter
    def arrays(self, given: Mapping[str, Array]) -> None:
        for name in ARRAYS:
            if given[name].shape != (len(self.names),):
                raise ValueError(
                    f"{name} of shape {given[name].shape} for {len(self.names)} columns"
                )
            setattr(self, name, given[name])

    def fit_range(self, values: Array, symmetric: Sequence[int] = ()) -> None:
        """Scale [least, greatest] to [-1, 1]; a column of one value becomes 0.

        Parameters
        ----------
        values : Array, shape (N, F)
            Values of the training arcs.
        symmetric : sequence of int
            Columns scaled together by their greatest absolute value, zero staying zero.
        """
        xp = namespace_of(values)
        self._observe(values)
        least, most = self.low, self.high
        if symmetric:
            rows = xp.asarray([k in symmetric for k in range(len(self.names))])
            largest = xp.max(xp.where(rows, xp.maximum(xp.abs(least), xp.abs(most)), 0.0))
            least, most = xp.where(rows, -largest, least), xp.where(rows, largest, most)
        self._set(0.5 * least + 0.5 * most, 0.5 * most - 0.5 * least)

    def fit_moments(self, values: Array) -> None:
        """Scale to mean 0 and standard deviation 1; a column of one value becomes 0."""
        xp = namespace_of(values)
        self._observe(values)
        self._set(xp.mean(values, axis=0), xp.std(values, axis=0))

    def _observe(self, values: Array) -> None:
        """Keep the least and the greatest value of each column."""
        xp = namespace_of(values)
        finite = xp.all(xp.isfinite(values), axis=0)
        if not len(values) or not bool(xp.all(finite)):
            wrong = [name for name, good in zip(self.names, finite, strict=True) if not good]
            raise DatasetError(
                f"cannot fit a scaling on {len(values)} arcs with values that are not finite in "
                f"({', '.join(wrong)}); leave such arcs out"
            )
        self.low, self.high = xp.min(values, axis=0), xp.max(values, axis=0)

    def _set(self, center: Array, scale: Array) -> None:
        xp = namespace_of(center)
        # a constant column differs from its own mean by rounding only
        constant = scale <= 1e-12 * xp.maximum(xp.abs(center), 1.0)
        self.center, self.scale = center, xp.where(constant, xp.ones_like(scale), scale)

    def __call__(self, values: Array) -> Array:
        """Scaled values, shape (..., F), in the precision of ``values``."""
        return (values - like(self.center, values)) / like(self.scale, values)

    def rate(self, values: Array) -> Array:
        """Scaled derivatives: no centre."""
        return values / like(self.scale, values)

    def spread(self, scaled: Array) -> Array:
        """Inverse of scaling of differences: no centre."""
        return scaled * like(self.scale, scaled)

    def restore(self, scaled: Array) -> Array:
        """Inverse of scaling."""
        return scaled * like(self.scale, scaled) + like(self.center, scaled)

    def outside(self, values: Array, slack: float = 0.0) -> Array:
        """Mask of the values outside the range of training by more than ``slack`` of its extent.

        Parameters
        ----------
        values : Array, shape (..., F)
        slack : float
            Fraction of ``high - low`` allowed beyond either end.

        Returns
        -------
        Array of bool, shape (..., F)
            True also for values that are not finite.
        """
        xp = namespace_of(values)
        low, high = like(self.low, values), like(self.high, values)
        extent = high - low
        margin = slack * xp.where(xp.isfinite(extent), extent, 0.0)
        return ~((values >= low - margin) & (values <= high + margin))
