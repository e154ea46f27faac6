"""Figures of merit, each with the number of arcs it stands on and an interval by object.

A figure is a statistic of columns of scores, see `neoranging.lab.study.scores.score`. Rows in which
a column is NaN, mostly arcs without an answer, cannot enter; every summary says how many those are
beside how many did.

The intervals are percentiles of a bootstrap by object (`neoranging.lab.study.bootstrap`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from neoranging.exceptions import EvaluationError
from neoranging.lab.study.bootstrap import (
    Statistic,
    as_it_is,
    capped,
    correlation,
    mean,
    median,
    median_by_object,
    percent,
    percentiles,
    resamples,
    spread_ratio,
)
from neoranging.lab.study.scores import select
from neoranging.typing import AnyArray, BoolArray, FloatArray, IntArray

COLLAPSED: Final = 1e-3
"""Range below which an answer is the degenerate root beside the observer [au]."""

DENSITY_FLOOR: Final = 1e-4
"""Density of ln rho that a posterior has everywhere when its logarithm is taken.

That of a thousandth of the probability spread over ten e-foldings, which admissible ranges span.
Without it a single truth off the grid would make the mean infinite.
"""

ASSOCIATED: Final = 0.2
"""D of Southworth and Hawkins below which two orbits are by custom associated."""


Columns = Callable[[pd.DataFrame], tuple[AnyArray | pd.Series, ...]]
"""Takes one or two columns, with NaN where a row cannot enter, from scores."""


@dataclass(frozen=True)
class Metric:
    """A figure of merit.

    Called with scores, and a mask or indices of some of their rows, it gives its value.

    Attributes
    ----------
    name : str
        Key in `METRICS`.
    label : str
        The figure in words.
    unit : str
        Of its values; "" for pure numbers.
    better : {"low", "high", "one", ""}
        Where good values lie; "one" for near 1, "" for figures that describe.
    columns : callable
        Of scores, to one or two arrays of shape (M,) with NaN where undefined.
    statistic : callable
        Of the columns, see `neoranging.lab.study.bootstrap`.
    """

    name: str
    label: str
    unit: str
    better: str
    columns: Columns
    statistic: Statistic

    def defined(self, scored: pd.DataFrame) -> BoolArray:
        """Arcs that enter it, shape (M,)."""
        return np.asarray(~np.isnan(self._stacked(scored)).any(axis=0))

    def __call__(self, scored: pd.DataFrame, rows: slice | npt.ArrayLike | None = None) -> float:
        """Value for some of the arcs, all by default; NaN where none enters."""
        some = scored if rows is None else select(scored, rows)
        return float(self.resampled(some, *as_it_is(some.object.to_numpy()))[0])

    def resampled(
        self,
        scored: pd.DataFrame,
        unit: IntArray,
        weights: IntArray,
        entering: BoolArray | None = None,
    ) -> FloatArray:
        """Values when objects count as often as ``weights`` says.

        Parameters
        ----------
        scored : DataFrame
            M arcs.
        unit : ndarray of int, shape (M,)
            Their objects, as columns of ``weights``.
        weights : ndarray of int, shape (B, K)
        entering : ndarray of bool, shape (M,), optional
            The arcs that enter; by default all that are defined.

        Returns
        -------
        ndarray, shape (B,)
            NaN where no arc enters.
        """
        columns = self._stacked(scored)
        rows = np.asarray(~np.isnan(columns).any(axis=0) if entering is None else entering)
        if not rows.any():
            return np.full(len(weights), np.nan)
        return self.statistic(columns[:, rows], unit[rows], weights)

    def _stacked(self, scored: pd.DataFrame) -> FloatArray:
        return np.stack(self.columns(scored)).astype(np.float64, copy=False)


def _columns(*names: str) -> Columns:
    return lambda s: tuple(s[name] for name in names)


def _metrics() -> Iterator[Metric]:
    """Every figure of merit but the medians by object."""
    yield Metric("solved", "arcs with an answer", "%", "high", _columns("answered"), percent)
    yield Metric("ok", "arcs with status OK", "%", "high", _columns("ok"), percent)
    for name, unit in (("rho", "au"), ("rho_dot", "au/d")):

        def error(s: pd.DataFrame, name: str = name) -> tuple[Any]:
            return (np.abs(s[name] - s[f"{name}_true"]),)

        pair = _columns(name, f"{name}_true")
        yield Metric(f"mae_{name}", f"mean |error| of {name}", unit, "low", error, mean)
        yield Metric(f"medae_{name}", f"median |error| of {name}", unit, "low", error, median)
        yield Metric(f"corr_{name}", f"correlation of {name}", "", "high", pair, correlation)
        yield Metric(f"spread_{name}", f"spread ratio of {name}", "", "one", pair, spread_ratio)
    for name, label, unit in (
        ("relative_error", "median |error| of rho relative to rho", ""),
        ("log10_error", "median |error| of log10 rho", "dex"),
    ):
        yield Metric(f"median_{name}", label, unit, "low", _columns(name), median)
    yield Metric("median_rho", "median rho", "au", "", _columns("rho"), median)
    values: Callable[[pd.DataFrame], Any]
    for name, label, unit, better, values, statistic in (
        ("median_rho_true", "median true rho", "au", "", lambda s: s.rho_true, median),
        ("collapsed", f"rho < {COLLAPSED:g} au", "%", "low", lambda s: s.rho < COLLAPSED, percent),
        ("p_ar", "admissible", "%", "high", lambda s: s.admissible, percent),
        ("p_ar_truth", "true range admissible", "%", "", lambda s: s.pseudo_admissible, percent),
    ):

        def of_answered(s: pd.DataFrame, values: Any = values) -> tuple[FloatArray]:
            return (np.where(s.answered, values(s), np.nan),)

        yield Metric(name, f"{label}, of answered arcs", unit, better, of_answered, statistic)
    for which, orbit in (("pseudo", "the pseudo-truth"), ("catalogue", "the catalogue")):
        d, elliptic, symbol = f"d_sh_{which}", f"elliptic_{which}", f"D_SH from {orbit}"
        below = f"{symbol} < {ASSOCIATED:g}"

        def of_pairs(s: pd.DataFrame, d: str = d) -> tuple[FloatArray]:
            return (np.where(s[d].isna(), np.nan, s[d] < ASSOCIATED),)

        def of_all(s: pd.DataFrame, d: str = d) -> tuple[pd.Series]:
            return (s[d] < ASSOCIATED,)

        label = f"both orbits of {symbol} elliptic"
        yield Metric(elliptic, label, "%", "high", _columns(elliptic), percent)
        yield Metric(d, f"median {symbol}", "", "low", _columns(d), median)
        yield Metric(f"{d}_below", f"{below}, of elliptic pairs", "%", "high", of_pairs, percent)
        label = f"{below}, of all arcs"
        yield Metric(f"{d}_associated", label, "%", "high", of_all, percent)


def _distribution_metrics() -> Iterator[Metric]:
    """Figures of merit of intervals and posteriors."""
    for level in ("68", "95"):
        label = f"true range in the {level} % interval"
        inside, ratio, score = (f"{name}_{level}" for name in ("inside", "ratio", "interval_score"))
        yield Metric(inside, label, "%", "", _columns(inside), percent)
        label = f"median upper by lower bound of {level} % intervals"
        yield Metric(ratio, label, "", "", _columns(ratio), median)
        label = f"mean interval score of log10 rho at {level} %"
        yield Metric(score, label, "dex", "low", _columns(score), mean)
    for level in ("68", "95"):

        def in_region(s: pd.DataFrame, level: float = 0.01 * int(level)) -> tuple[Any]:
            return (np.where(s.depth.isna(), np.nan, s.depth <= level),)

        label = f"true range in the most probable {level} %"
        yield Metric(f"region_{level}", label, "%", "", in_region, percent)

    def nats(s: pd.DataFrame) -> tuple[Any]:
        return (-np.log(np.maximum(s.density, DENSITY_FLOOR)),)

    def floored(s: pd.DataFrame) -> tuple[Any]:
        return (np.where(s.density.isna(), np.nan, s.density < DENSITY_FLOOR),)

    label = "mean CRPS of log10 rho"
    yield Metric("crps", label, "dex", "low", _columns("crps"), mean)
    yield Metric("nats", "mean -ln p(ln rho) of the true range", "nat", "low", nats, mean)
    yield Metric("floored", "true range off the posterior", "%", "low", floored, percent)
    label, name = "posterior on admissible nodes", "nodes_admissible"
    yield Metric(name, label, "%", "high", _columns(name), percent)


_BY_ARC: Final = (*_metrics(), *_distribution_metrics())

METRICS: Final[Mapping[str, Metric]] = {
    metric.name: metric
    for metric in (
        *_BY_ARC,
        *(
            replace(
                metric,
                name=f"{metric.name}_by_object",
                label=f"{metric.label}, median by object",
                statistic=median_by_object,
            )
            for metric in _BY_ARC
            if metric.statistic is median and metric.better
        ),
    )
}
"""Every figure of merit, in the order of tables.

Fractions are percentages. ``p_ar`` is of the arcs with an answer, and ``p_ar_truth`` of the same
arcs; the solve rate stands beside them. ``d_sh_*`` is of the arcs on which both orbits are
elliptic, ``elliptic_*`` says how many these are of all, and ``d_sh_*_associated`` counts the others
as not associated. ``inside_*``, ``ratio_*`` and ``interval_score_*`` are of all arcs: one without
an interval has the admissible range. ``region_*``, ``crps``, ``nats``, ``floored`` and
``nodes_admissible`` are of posteriors; the density of ``nats`` is at least `DENSITY_FLOOR`, and
``floored`` is the share that this concerns. ``*_by_object`` is the median over objects of the
median over their arcs.
"""


def summarise(
    scored: pd.DataFrame,
    *,
    rows: slice | npt.ArrayLike | None = None,
    metrics: Collection[str] | None = None,
    n_boot: int = 200,
    level: float = 0.95,
    rng: np.random.Generator | int = 0,
    cap: int | None = None,
) -> pd.DataFrame:
    """Values of figures of merit with bootstrap intervals by object.

    Parameters
    ----------
    scored : DataFrame
        As of `neoranging.lab.study.scores.score`.
    rows : slice or array_like, optional
        Slice, mask, or indices of the arcs to look at.
    metrics : collection of str, optional
        Names of `METRICS`; all by default.
    n_boot : int
        Resamples; 0 for no intervals.
    level : float
        Confidence level of the intervals.
    rng : Generator or int
        Source of the resamples, or its seed. With one seed, all methods on the same arcs are
        resampled alike.
    cap : int, optional
        Most arcs of an object that count, drawn at random, lest a few objects make the figure.

    Returns
    -------
    DataFrame
        A row for each figure: ``method, origin, metric, label, unit, better, value, low, high``,
        ``n_arcs`` that entered, ``n_without`` that did not, ``n_objects`` that the former belong
        to, and ``cap``. ``low`` and ``high`` are NaN with fewer than two objects.

    Raises
    ------
    EvaluationError
        If there is no such figure.
    """
    chosen = _chosen(metrics)
    generator = np.random.default_rng(rng)
    some = scored if rows is None else select(scored, rows)
    if cap is not None:
        some = select(some, capped(some.object.to_numpy(), cap, generator))
    unit, weights = resamples(some.object.to_numpy(), n_boot, generator)
    table = []
    for metric in chosen:
        entering = metric.defined(some)
        values = metric.resampled(some, unit, weights, entering)
        bounds = _bounds(values[1:], unit[entering], level)
        table.append(
            {
                "method": scored.attrs["method"],
                "origin": scored.attrs["origin"],
                **_described(metric),
                "value": float(values[0]),
                **bounds,
                **_counts(entering, unit),
                "cap": cap,
            }
        )
    return pd.DataFrame(table)


def compare(
    first: pd.DataFrame,
    second: pd.DataFrame,
    *,
    rows: slice | npt.ArrayLike | None = None,
    metrics: Collection[str] | None = None,
    n_boot: int = 200,
    level: float = 0.95,
    rng: np.random.Generator | int = 0,
) -> pd.DataFrame:
    """Differences of two methods, first minus second, on the arcs that enter under both.

    Both are resampled alike, so the interval is that of the difference, in which what the two have
    in common cancels.

    Parameters
    ----------
    first, second : DataFrame
        Scores of the same arcs.
    rows, metrics, n_boot, level, rng
        As for `summarise`.

    Returns
    -------
    DataFrame
        A row for each figure: ``metric, label, unit, better, first, second`` (names of the
        methods), ``value_first, value_second, difference, low, high, n_arcs, n_without,
        n_objects``.

    Raises
    ------
    EvaluationError
        If the arcs are not the same, or there is no such figure.
    """
    require_same_arcs([first, second])
    pair = [scored if rows is None else select(scored, rows) for scored in (first, second)]
    unit, weights = resamples(pair[0].object.to_numpy(), n_boot, np.random.default_rng(rng))
    table = []
    for metric in _chosen(metrics):
        entering = metric.defined(pair[0]) & metric.defined(pair[1])
        values = [metric.resampled(scored, unit, weights, entering) for scored in pair]
        with np.errstate(invalid="ignore"):
            difference = values[0] - values[1]
        table.append(
            {
                **_described(metric),
                "first": first.attrs["method"],
                "second": second.attrs["method"],
                "value_first": float(values[0][0]),
                "value_second": float(values[1][0]),
                "difference": float(difference[0]),
                **_bounds(difference[1:], unit[entering], level),
                **_counts(entering, unit),
            }
        )
    return pd.DataFrame(table)


def require_same_arcs(scored: Sequence[pd.DataFrame]) -> None:
    """Refuse scores of different arcs; the proper motion of an arc is as good as its name.

    Raises
    ------
    EvaluationError
    """
    for other in scored[1:]:
        if not np.array_equal(scored[0].eta, other.eta):
            raise EvaluationError(
                f"{scored[0].attrs['method']!r} and {other.attrs['method']!r} are scored on "
                "different arcs: score all on the same table"
            )


def _chosen(names: Collection[str] | None) -> list[Metric]:
    unknown = [name for name in names or () if name not in METRICS]
    if unknown:
        raise EvaluationError(f"no metric {', '.join(unknown)}; there are {', '.join(METRICS)}")
    return [METRICS[name] for name in (METRICS if names is None else names)]


def _described(metric: Metric) -> dict[str, str]:
    return {
        "metric": metric.name,
        "label": metric.label,
        "unit": metric.unit,
        "better": metric.better,
    }


def _bounds(resampled: FloatArray, objects: IntArray, level: float) -> dict[str, float]:
    """Interval of a figure; none of a single object, which tells nothing of others."""
    several = len(objects) > 0 and bool((objects != objects[0]).any())
    low, high = percentiles(resampled, level) if several else (np.nan, np.nan)
    return {"low": low, "high": high}


def _counts(entering: BoolArray, unit: IntArray) -> dict[str, int]:
    return {
        "n_arcs": int(entering.sum()),
        "n_without": int((~entering).sum()),
        "n_objects": int(np.count_nonzero(np.bincount(unit[entering]))),
    }
