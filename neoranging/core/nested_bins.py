"""Bins of equal numbers along one axis, each cut anew along a second."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from neoranging.core.conformal import bin_of, quantile_edges
from neoranging.typing import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class NestedBins:
    """Cells of the plane: B bins of a first value, each with bins of a second one of its own.

    The second value is cut within each bin of the first, so cells hold equal numbers even where the
    two go together. Cells are numbered bin by bin of the first value, from low to high.

    Attributes
    ----------
    outer : ndarray, shape (B - 1,)
        Inner edges of the bins of the first value, ascending; see `conformal.bin_of`.
    inner : ndarray, shape (B, K - 1)
        Those of the second value in each of them; infinite at the end of rows with fewer than K.
    """

    outer: FloatArray
    inner: FloatArray

    @classmethod
    def fit(
        cls, first: FloatArray, second: FloatArray, n_bins: tuple[int, int], least: int
    ) -> Self:
        """Bins of n points, at most ``n_bins`` along each axis, with ``least`` points or more each.

        Parameters
        ----------
        first, second : ndarray, shape (n,)
        n_bins : tuple of int
            Bins of the first value, and of the second within each.
        least : int
            Points that a bin should hold: fewer bins are made rather than smaller ones. Of less
            points in all there is one bin.
        """
        outer = _edges(first, n_bins[0], least)
        row = bin_of(outer, first)
        rows = range(len(outer) + 1)
        return cls(outer, _padded([_edges(second[row == k], n_bins[1], least) for k in rows]))

    @classmethod
    def from_lists(cls, outer: Sequence[float], inner: Sequence[Sequence[float]]) -> Self:
        """Bins of edges as `inner_lists` gives them.

        Raises
        ------
        ValueError
            If there is not one list of inner edges for each outer bin, or edges do not ascend.
        """
        rows = [np.array(edges, dtype=np.float64) for edges in (outer, *inner)]
        if len(rows) != len(outer) + 2:
            raise ValueError(f"{len(outer)} outer edges do not go with {len(inner)} inner lists")
        if not all(np.isfinite(row).all() and (np.diff(row) > 0.0).all() for row in rows):
            raise ValueError("edges of bins do not ascend")
        return cls(rows[0], _padded(rows[1:]))

    @property
    def inner_lists(self) -> list[list[float]]:
        """Edges of the second value in each bin of the first."""
        return [row[np.isfinite(row)].tolist() for row in self.inner]

    @cached_property
    def sizes(self) -> IntArray:
        """Cells in each bin of the first value, shape (B,)."""
        return np.isfinite(self.inner).sum(axis=1) + 1

    @property
    def n_cells(self) -> int:
        """Cells in all."""
        return int(self.sizes.sum())

    def cell_of(self, first: FloatArray, second: FloatArray) -> IntArray:
        """Number of the cell of each point, shape (n,); outside of all of them, the nearest."""
        row = bin_of(self.outer, first)
        column = (self.inner[row] < second[:, None]).sum(axis=1)
        return (np.cumsum(self.sizes) - self.sizes)[row] + column


def _edges(values: FloatArray, n_bins: int, least: int) -> FloatArray:
    return quantile_edges(values, int(np.clip(len(values) // least, 1, n_bins)))


def _padded(rows: Sequence[FloatArray]) -> FloatArray:
    padded = np.full((len(rows), max(map(len, rows))), np.inf)
    for row, edges in zip(padded, rows, strict=True):
        row[: len(edges)] = edges
    return padded
