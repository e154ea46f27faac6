"""Where a method is good: figures of merit by proper motion, range, inclination and length of arc.

The degeneracy of one night is severe for slow, distant objects and mild for fast, near ones, so one
number for all arcs mixes what behaves differently. `Strata` cuts the arcs at terciles of something
that is true of them, so that the cells are the same for all methods. Motion and range go together;
the cross of two axes tells which of them carries an effect.

Only posteriors are also judged in bins of what they answer. Nobody is calibrated in bins of the
true range: there the objects that are nearer than they look are all in the near bins, and of those
that look near and are not, none.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, NamedTuple, Self

import numpy as np
import pandas as pd

from neoranging.exceptions import EvaluationError
from neoranging.lab.study.metrics import compare, require_same_arcs, summarise
from neoranging.typing import FloatArray, IntArray


class Axis(NamedTuple):
    """A quantity that arcs are sorted by."""

    label: str
    unit: str
    column: Callable[[pd.DataFrame], FloatArray]
    names: tuple[str, ...]
    """Names of terciles, from low to high."""


AXES: Final[Mapping[str, Axis]] = {
    "eta": Axis("proper motion", "rad/d", lambda s: s.eta.to_numpy(), ("slow", "mid", "fast")),
    "rho": Axis("true range", "au", lambda s: s.rho_true.to_numpy(), ("close", "mid", "far")),
    "inc": Axis(
        "inclination", "deg", lambda s: np.degrees(s.inc.to_numpy()), ("low", "mid", "high")
    ),
    "span": Axis(
        "length of arc", "h", lambda s: 24.0 * s.span.to_numpy(), ("short", "mid", "long")
    ),
    "median": Axis(
        "posterior median", "au", lambda s: s.rho_median.to_numpy(), ("close", "mid", "far")
    ),
}
"""Quantities to stratify by."""

TRUE_AXES: Final = ("eta", "rho", "inc", "span")
"""Those that the literature stratifies by, which no answer changes."""

EVERY: Final = "all"
"""Name of the margins of a cross."""

CROSS_METRICS: Final = ("medae_rho", "median_relative_error", "d_sh_pseudo", "p_ar")
"""Figures that the literature compares on the cross of two axes, and the relative error."""


@dataclass(frozen=True, eq=False)
class Strata:
    """Cells of M arcs along one axis.

    Attributes
    ----------
    axis : str
        Key in ``AXES``.
    names : tuple of str
        Of the n cells, from low to high.
    edges : ndarray, shape (n + 1,)
        Where the cells end, in the unit of the axis; the outer ones are the extremes of the arcs.
        A value on an edge belongs above.
    cell : ndarray of int, shape (M,)
        Number of the cell of each arc; -1 where the value is not known.
    """

    axis: str
    names: tuple[str, ...]
    edges: FloatArray
    cell: IntArray

    @classmethod
    def of(cls, scored: pd.DataFrame, axis: str, n: int = 3) -> Self:
        """Cells of equal numbers of arcs.

        Parameters
        ----------
        scored : DataFrame
            M arcs; their answers are not looked at.
        axis : str
            Key in ``AXES``.
        n : int
            How many: terciles by default.

        Raises
        ------
        EvaluationError
            If there is no such axis, or no arc with a value on it.
        """
        if axis not in AXES:
            raise EvaluationError(f"no axis {axis!r}; there are {', '.join(AXES)}")
        values = AXES[axis].column(scored)
        finite = np.isfinite(values)
        if not finite.any():
            raise EvaluationError(f"no arc has a known {AXES[axis].label}: nothing to stratify by")
        edges = np.quantile(values[finite], np.linspace(0.0, 1.0, n + 1))
        cell = np.where(finite, np.searchsorted(edges[1:-1], values, side="right"), -1)
        names = AXES[axis].names
        if n != len(names):
            names = tuple(f"{k + 1} of {n}" for k in range(n))
        return cls(axis, names, edges, cell)

    @classmethod
    def half_decades(cls, scored: pd.DataFrame, axis: str, least: float = 1e-3) -> Self:
        """Cells of half a decade, as far as the arcs reach, and one of everything below the least.

        Parameters
        ----------
        scored : DataFrame
            M arcs.
        axis : str
            Key in ``AXES``.
        least : float
            Where the first half-decade begins.

        Raises
        ------
        EvaluationError
            If no arc has a value.
        """
        values = AXES[axis].column(scored)
        finite = np.isfinite(values)
        if not finite.any():
            raise EvaluationError(f"no arc has a known {AXES[axis].label}: nothing to stratify by")
        n = max(1, int(np.floor(2.0 * np.log10(values[finite].max() / least))) + 1)
        edges = np.append(0.0, least * 10.0 ** (0.5 * np.arange(n + 1)))
        ends = [f"{edge:.2g}" for edge in edges]
        names = [f"{a} – {b}" for a, b in pairwise(ends[1:])]
        cell = np.where(finite, np.searchsorted(edges[1:-1], values, side="right"), -1)
        return cls(axis, (f"< {ends[1]}", *names), edges, cell)

    def rows(self, k: int) -> IntArray:
        """Indices of the arcs in cell ``k``, or those without a known value for -1."""
        return np.flatnonzero(self.cell == k)

    def describe(self, k: int) -> dict[str, Any]:
        """Name and bounds of a cell, as entries of a table."""
        return {
            "axis": self.axis,
            "stratum": self.names[k] if k >= 0 else "unknown",
            "lower": float(self.edges[k]) if k >= 0 else float("nan"),
            "upper": float(self.edges[k + 1]) if k >= 0 else float("nan"),
            "axis_unit": AXES[self.axis].unit,
        }

    @property
    def cells(self) -> list[int]:
        """Cells in order, and -1 last where some arcs have no known value."""
        unknown = [-1] if (self.cell < 0).any() else []
        return [*range(len(self.names)), *unknown]


def stratify(
    scored: Sequence[pd.DataFrame],
    *,
    axes: Collection[str] = TRUE_AXES,
    metrics: Collection[str] | None = None,
    n: int = 3,
    **options: Any,
) -> pd.DataFrame:
    """Figures of merit of methods along each axis.

    Parameters
    ----------
    scored : sequence of DataFrame
        Of the same arcs; the true ranges of the first decide the cells for all.
    axes : collection of str
        Keys of ``AXES``.
    metrics : collection of str, optional
        Names of `neoranging.lab.study.metrics.METRICS`; all by default.
    n : int
        Cells along an axis.
    **options
        For `neoranging.lab.study.metrics.summarise`.

    Returns
    -------
    DataFrame
        As of `summarise`, with ``axis, stratum, lower, upper, axis_unit`` before. Arcs whose value
        on an axis is not known make a stratum of their own.

    Raises
    ------
    EvaluationError
        If there is no such axis or figure, or the arcs differ.
    """
    if not scored:
        raise EvaluationError("there is no method to stratify: give at least one")
    require_same_arcs(scored)
    return pd.DataFrame(
        strata.describe(k) | row
        for strata in (Strata.of(scored[0], axis, n) for axis in axes)
        for k in strata.cells
        for method in scored
        for row in summarise(method, rows=strata.rows(k), metrics=metrics, **options).to_dict(
            "records"
        )
    )


def cross(
    first: pd.DataFrame,
    second: pd.DataFrame,
    *,
    axes: tuple[str, str] = ("eta", "rho"),
    metrics: Collection[str] = CROSS_METRICS,
    n: int = 3,
    margins: bool = False,
    **options: Any,
) -> pd.DataFrame:
    """Differences of two methods, first minus second, on the cross of two axes.

    In each cell a figure is taken of the arcs that enter it under both methods: those of D_SH, for
    example, are elliptic under both and the truth.

    Parameters
    ----------
    first, second : DataFrame
        Of the same arcs; the true ranges of the first decide the cells.
    axes : tuple of 2 str
        Keys of ``AXES``.
    metrics : collection of str
        Names of `neoranging.lab.study.metrics.METRICS`.
    n : int
        Cells along an axis.
    margins : bool
        Also the arcs of a cell of one axis, whatever their cell of the other, and all arcs.
    **options
        For `neoranging.lab.study.metrics.compare`.

    Returns
    -------
    DataFrame
        As of `compare`, with the names of the cells under ``eta`` and ``rho`` (the axes) before,
        and ``n_cell``, the number of arcs in the cell. Cells without arcs have their rows too. A
        margin is called `EVERY`.

    Raises
    ------
    EvaluationError
        If there is no such axis or figure, or the arcs differ.
    """
    along, across = (
        {
            **{strata.describe(k)["stratum"]: strata.cell == k for k in strata.cells},
            **({EVERY: np.ones(len(first), dtype=bool)} if margins else {}),
        }
        for strata in (Strata.of(first, axis, n) for axis in axes)
    )
    table = []
    for name, in_line in along.items():
        for other, in_column in across.items():
            rows = np.flatnonzero(in_line & in_column)
            where = {axes[0]: name, axes[1]: other, "n_cell": len(rows)}
            differences = compare(first, second, rows=rows, metrics=metrics, **options)
            table += [where | row for row in differences.to_dict("records")]
    return pd.DataFrame(table)
