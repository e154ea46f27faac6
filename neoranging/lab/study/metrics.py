"""Figures of merit, each with the number of arcs it stands on and an interval by object.

A figure is a statistic of columns of scores, see `neoranging.lab.study.scores.score`. Rows in which
a column is NaN, mostly arcs without an answer, cannot enter; every summary says how many those are
beside how many did.

The intervals are percentiles of a bootstrap by object (`neoranging.lab.study.bootstrap`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
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

ASSOCIATED: Final = 0.2
"""D of Southworth and Hawkins below which two orbits are by custom associated."""


@dataclass(frozen=True)
class Metric:
    """A figure of merit.

    Called with scored arcs, and a mask or indices of some of them, it gives its value.

    Attributes
    ----------
    name : str
        Key in `METRICS`.
    label : str
        What it is, in words.
    unit : str
        Of its values; "" for pure numbers.
    better : {"low", "high", "one", ""}
        Where good values lie; "one" for near 1, "" for figures that describe.
    columns : callable
        Of scored arcs, to one or two arrays of shape (M,) with NaN where undefined.
    statistic : callable
        Of the columns, see `neoranging.lab.study.bootstrap`.
    """

    name: str
    label: str
    unit: str
    better: str
    columns: Callable[[pd.DataFrame], tuple[AnyArray, ...]]
    statistic: Statistic

    def defined(self, scored: pd.DataFrame) -> BoolArray:
        """Arcs that enter it, shape (M,)."""
        return np.asarray(~np.isnan(self._stacked(scored)).any(axis=0))

    def __call__(self, scored: pd.DataFrame, rows: slice | npt.ArrayLike | None = None) -> float:
        """Value for some of the arcs, all by default; NaN where none enters."""
        some = scored if rows is None else select(scored, rows)
        return float(self.resampled(some, *as_it_is(some.object.to_numpy()))[0])

    def resampled(self, scored: pd.DataFrame, unit: IntArray, weights: IntArray) -> FloatArray:
        """Values when objects count as often as ``weights`` says.

        Parameters
        ----------
        scored : DataFrame
            M arcs.
        unit : ndarray of int, shape (M,)
            Their objects, as columns of ``weights``.
        weights : ndarray of int, shape (B, K)

        Returns
        -------
        ndarray, shape (B,)
            NaN where no arc enters.
        """
        columns = self._stacked(scored)
        kept = ~np.isnan(columns).any(axis=0)
        if not kept.any():
            return np.full(len(weights), np.nan)
        return self.statistic(columns[:, kept], unit[kept], weights)

    def _stacked(self, scored: pd.DataFrame) -> FloatArray:
        return np.stack(self.columns(scored)).astype(np.float64, copy=False)


def _pairs(name: str) -> Callable[[pd.DataFrame], tuple[FloatArray, FloatArray]]:
    return lambda s: (getattr(s, name), getattr(s, f"{name}_true"))


def _errors(name: str) -> Callable[[pd.DataFrame], tuple[FloatArray]]:
    return lambda s: (np.abs(getattr(s, name) - getattr(s, f"{name}_true")),)


def _column(name: str) -> Callable[[pd.DataFrame], tuple[FloatArray]]:
    return lambda s: (getattr(s, name),)


def _accuracy(name: str, symbol: str, unit: str) -> list[Metric]:
    return [
        Metric(f"mae_{name}", f"mean |error| of {symbol}", unit, "low", _errors(name), mean),
        Metric(f"medae_{name}", f"median |error| of {symbol}", unit, "low", _errors(name), median),
        Metric(f"corr_{name}", f"correlation of {symbol}", "", "high", _pairs(name), correlation),
        Metric(
            f"spread_{name}", f"spread ratio of {symbol}", "", "one", _pairs(name), spread_ratio
        ),
    ]


def _orbits(which: str, symbol: str) -> list[Metric]:
    distance, elliptic = f"d_sh_{which}", f"elliptic_{which}"

    def close(s: pd.DataFrame) -> tuple[FloatArray]:
        d = getattr(s, distance)
        return (np.where(np.isnan(d), np.nan, d < ASSOCIATED),)

    def associated(s: pd.DataFrame) -> tuple[BoolArray]:
        with np.errstate(invalid="ignore"):
            return (getattr(s, distance) < ASSOCIATED,)

    below = f"{symbol} < {ASSOCIATED:g}"
    return [
        Metric(
            elliptic, f"both orbits of {symbol} elliptic", "%", "high", _column(elliptic), percent
        ),
        Metric(distance, f"median {symbol}", "", "low", _column(distance), median),
        Metric(f"{distance}_below", f"{below}, of elliptic pairs", "%", "high", close, percent),
        Metric(f"{distance}_associated", f"{below}, of all arcs", "%", "high", associated, percent),
    ]


def _by_object(metric: Metric) -> Metric:
    name, label = f"{metric.name}_by_object", f"{metric.label}, median by object"
    return Metric(name, label, metric.unit, metric.better, metric.columns, median_by_object)


def _relative() -> list[Metric]:
    return [
        Metric(
            "median_relative_error",
            "median |error| of rho relative to rho",
            "",
            "low",
            _column("relative_error"),
            median,
        ),
        Metric(
            "median_log10_error",
            "median |error| of log10 rho",
            "dex",
            "low",
            _column("log10_error"),
            median,
        ),
    ]


def _of_answers(
    name: str,
    label: str,
    better: str,
    values: Callable[[pd.DataFrame], Any],
    unit: str = "%",
    statistic: Statistic = percent,
) -> Metric:
    """Figure of something that is known of every arc, for those with an answer."""

    def columns(s: pd.DataFrame) -> tuple[FloatArray]:
        return (np.where(s.answered, values(s), np.nan),)

    return Metric(name, f"{label}, of answered arcs", unit, better, columns, statistic)


def _answers() -> list[Metric]:
    return [
        Metric("median_rho", "median rho", "au", "", _column("rho"), median),
        _of_answers("median_rho_true", "median true rho", "", lambda s: s.rho_true, "au", median),
        _of_answers("collapsed", f"rho < {COLLAPSED:g} au", "low", lambda s: s.rho < COLLAPSED),
        _of_answers("p_ar", "admissible", "high", lambda s: s.admissible),
        _of_answers("p_ar_truth", "true range admissible", "", lambda s: s.pseudo_admissible),
    ]


def _metrics() -> dict[str, Metric]:
    plain = [
        Metric("solved", "arcs with an answer", "%", "high", _column("answered"), percent),
        Metric("ok", "arcs with status OK", "%", "high", _column("ok"), percent),
        *_accuracy("rho", "rho", "au"),
        *_accuracy("rho_dot", "rho_dot", "au/d"),
        *_relative(),
        *_answers(),
        *_orbits("pseudo", "D_SH from the pseudo-truth"),
        *_orbits("catalogue", "D_SH from the catalogue"),
    ]
    of_objects = [_by_object(metric) for metric in plain if metric.statistic is median]
    listed = plain + [each for each in of_objects if each.better]
    return {metric.name: metric for metric in listed}


METRICS: Final[Mapping[str, Metric]] = _metrics()
"""Every figure of merit, in the order of tables.

Fractions are percentages. ``p_ar`` is of the arcs with an answer, and ``p_ar_truth`` of the same
arcs; the solve rate stands beside them. ``d_sh_*`` is of the arcs on which both orbits are
elliptic, ``elliptic_*`` says how many these are of all, and ``d_sh_*_associated`` counts the others
as not associated. ``*_by_object`` is the median over objects of the median over their arcs.
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
) -> list[dict[str, Any]]:
    """Values of figures of merit with bootstrap intervals by object.

    Parameters
    ----------
    scored : DataFrame
    rows : slice or array_like, optional
        Slice, mask, or indices of the arcs to look at.
    metrics : collection of str, optional
        Names of `METRICS`; all by default.
    n_boot : int
        Resamples; 0 for no intervals.
    level : float
        Confidence level of the intervals.
    rng : Generator or int
        What draws, or its seed. With one seed, all methods on the same arcs are resampled alike.
    cap : int, optional
        Most arcs of an object that count, drawn at random, lest a few objects make the figure.

    Returns
    -------
    list of dict
        One for each figure: ``method, origin, metric, label, unit, better, value, low, high``,
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
    return [_summary(metric, some, unit, weights, level) | {"cap": cap} for metric in chosen]


def _chosen(names: Collection[str] | None) -> list[Metric]:
    unknown = [name for name in names or () if name not in METRICS]
    if unknown:
        raise EvaluationError(f"no metric {', '.join(unknown)}; there are {', '.join(METRICS)}")
    return [METRICS[name] for name in (METRICS if names is None else names)]


def _summary(
    metric: Metric, scored: pd.DataFrame, unit: IntArray, weights: IntArray, level: float
) -> dict[str, Any]:
    entered = metric.defined(scored)
    n_objects = int(np.count_nonzero(np.bincount(unit[entered])))
    value, *resampled = metric.resampled(scored, unit, weights)
    low, high = percentiles(np.array(resampled), level) if n_objects > 1 else (np.nan, np.nan)
    return {
        "method": scored.attrs["method"],
        "origin": scored.attrs["origin"],
        "metric": metric.name,
        "label": metric.label,
        "unit": metric.unit,
        "better": metric.better,
        "value": float(value),
        "low": low,
        "high": high,
        "n_arcs": int(entered.sum()),
        "n_without": int((~entered).sum()),
        "n_objects": n_objects,
    }


def compare(
    first: pd.DataFrame,
    second: pd.DataFrame,
    *,
    rows: slice | npt.ArrayLike | None = None,
    metrics: Collection[str] | None = None,
    n_boot: int = 200,
    level: float = 0.95,
    rng: np.random.Generator | int = 0,
) -> list[dict[str, Any]]:
    """Differences of two methods, first minus second, on the arcs that enter under both.

    Both are resampled alike, so the interval is that of the difference, in which what the two have
    in common cancels.

    Parameters
    ----------
    first, second : DataFrame
        Of the same arcs.
    rows, metrics, n_boot, level, rng
        As for `summarise`.

    Returns
    -------
    list of dict
        One for each figure: ``metric, label, unit, better, first, second`` (names of the methods),
        ``value_first, value_second, difference, low, high, n_arcs, n_without, n_objects``.

    Raises
    ------
    EvaluationError
        If the arcs are not the same, or there is no such figure.
    """
    if not np.array_equal(first.eta, second.eta):
        raise EvaluationError(
            f"{first.attrs['method']!r} and {second.attrs['method']!r} are scored on different "
            "arcs: score both on the same table"
        )
    chosen = _chosen(metrics)
    pair = [scored if rows is None else select(scored, rows) for scored in (first, second)]
    drawn = resamples(pair[0].object.to_numpy(), n_boot, np.random.default_rng(rng))
    return [_difference(metric, pair, *drawn, level) for metric in chosen]


def _difference(
    metric: Metric, pair: list[pd.DataFrame], unit: IntArray, weights: IntArray, level: float
) -> dict[str, Any]:
    entered = metric.defined(pair[0]) & metric.defined(pair[1])
    n_objects = int(np.count_nonzero(np.bincount(unit[entered])))
    values = [metric.resampled(select(s, entered), unit[entered], weights) for s in pair]
    with np.errstate(invalid="ignore"):
        difference = values[0] - values[1]
    known = percentiles(difference[1:], level) if n_objects > 1 else (np.nan, np.nan)
    return {
        "metric": metric.name,
        "label": metric.label,
        "unit": metric.unit,
        "better": metric.better,
        "first": pair[0].attrs["method"],
        "second": pair[1].attrs["method"],
        "value_first": float(values[0][0]),
        "value_second": float(values[1][0]),
        "difference": float(difference[0]),
        "low": known[0],
        "high": known[1],
        "n_arcs": int(entered.sum()),
        "n_without": int((~entered).sum()),
        "n_objects": n_objects,
    }
