"""Affine scalings that travel with a network: fitted on its training arcs, stored as buffers."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from neoranging.exceptions import DatasetError


class Scaling(nn.Module):
    """Scaling ``(value - center) / scale`` column by column, and the range of the training arcs.

    The buffers are double whatever the precision of the network; a module that holds a scaling is
    moved between devices, never converted as a whole to another type.

    Parameters
    ----------
    names : sequence of str
        Names of the F columns.

    Attributes
    ----------
    center, scale : Tensor, shape (F,)
    low, high : Tensor, shape (F,)
        Least and greatest value among the training arcs; infinite before `fit`.
    """

    center: Tensor
    scale: Tensor
    low: Tensor
    high: Tensor

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__()
        self.names = tuple(names)
        start = {"center": 0.0, "scale": 1.0, "low": -torch.inf, "high": torch.inf}
        for name, value in start.items():
            self.register_buffer(name, torch.full((len(names),), value, dtype=torch.float64))

    def fit_range(self, values: Tensor, symmetric: Sequence[int] = ()) -> None:
        """Scale [least, greatest] to [-1, 1]; a column of one value becomes 0.

        Parameters
        ----------
        values : Tensor, shape (N, F)
            Values of the training arcs.
        symmetric : sequence of int
            Columns scaled together by their greatest absolute value, zero staying zero.
        """
        least, most = self._observe(values)
        if symmetric:
            columns = list(symmetric)
            largest = torch.maximum(most[columns].abs().max(), least[columns].abs().max())
            least[columns], most[columns] = -largest, largest
        self._set(0.5 * least + 0.5 * most, 0.5 * most - 0.5 * least)

    def fit_moments(self, values: Tensor) -> None:
        """Scale to mean 0 and standard deviation 1; a column of one value becomes 0."""
        self._observe(values)
        self._set(values.mean(dim=0), values.std(dim=0, correction=0))

    def _observe(self, values: Tensor) -> tuple[Tensor, Tensor]:
        if not len(values) or not bool(torch.isfinite(values).all()):
            wrong = [n for n, v in zip(self.names, values.T, strict=True) if not v.isfinite().all()]
            raise DatasetError(
                f"cannot fit a scaling on {len(values)} arcs with values that are not finite in "
                f"({', '.join(wrong)}); leave such arcs out"
            )
        least, most = values.amin(dim=0), values.amax(dim=0)
        self.low.copy_(least)
        self.high.copy_(most)
        return least.clone(), most.clone()

    def _set(self, center: Tensor, scale: Tensor) -> None:
        # a constant column differs from its own mean by rounding only
        constant = scale <= 1e-12 * torch.maximum(center.abs(), torch.ones_like(center))
        self.center.copy_(center)
        self.scale.copy_(torch.where(constant, torch.ones_like(scale), scale))

    def forward(self, values: Tensor) -> Tensor:
        """Scaled values, shape (..., F), in the precision of ``values``."""
        return (values - self.center.to(values.dtype)) / self.scale.to(values.dtype)

    def rate(self, values: Tensor) -> Tensor:
        """Scaled derivatives: no centre."""
        return values / self.scale.to(values.dtype)

    def restore(self, scaled: Tensor) -> Tensor:
        """Inverse of scaling."""
        return scaled * self.scale.to(scaled.dtype) + self.center.to(scaled.dtype)

    def outside(self, values: Tensor, slack: float = 0.0) -> Tensor:
        """Mask of the values outside the range of training by more than ``slack`` of its extent.

        Parameters
        ----------
        values : Tensor, shape (..., F)
        slack : float
            Fraction of ``high - low`` allowed beyond either end.

        Returns
        -------
        Tensor of bool, shape (..., F)
            True also for values that are not finite.
        """
        margin = slack * (self.high - self.low).nan_to_num(posinf=0.0)
        return ~((values >= self.low - margin) & (values <= self.high + margin))
