"""Tables of a study: every figure of merit of every method, and the figures of the literature."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd
from scipy.stats import binom

from neoranging.core.status import RangeStatus
from neoranging.exceptions import EvaluationError
from neoranging.lab.study.bootstrap import percent, percentiles, resamples
from neoranging.lab.study.classical import classical_comparison
from neoranging.lab.study.methods import StudyMethod
from neoranging.lab.study.metrics import summarise
from neoranging.lab.study.published import PUBLISHED, SOURCE
from neoranging.lab.study.scores import TABLE_LEVELS, select, with_intervals
from neoranging.lab.study.strata import Strata, cross, stratify
from neoranging.tables import number
from neoranging.typing import IntArray

HEADLINE: Final = (
    *("solved", "ok", "mae_rho", "medae_rho", "median_relative_error"),
    *("median_relative_error_by_object", "median_log10_error", "corr_rho", "spread_rho"),
    *("mae_rho_dot", "medae_rho_dot", "corr_rho_dot", "spread_rho_dot", "p_ar", "p_ar_truth"),
    *("elliptic_pseudo", "d_sh_pseudo", "d_sh_pseudo_below", "collapsed"),
)
"""Figures of merit of the first table."""

STRATA_METRICS: Final = (
    *("solved", "medae_rho", "median_relative_error", "median_log10_error", "medae_rho_dot"),
    *("p_ar", "d_sh_pseudo", "d_sh_pseudo_associated", "interval_score_95"),
)
"""Figures of merit by stratum."""

SCORES: Final = (
    *("median_relative_error", "inside_68", "inside_95", "ratio_68", "ratio_95"),
    *("interval_score_68", "interval_score_95", "crps"),
)
"""Figures of merit of intervals, of every method."""

POSTERIORS: Final = (
    *("median_relative_error", "inside_68", "inside_95", "region_68", "region_95", "ratio_68"),
    *("ratio_95", "interval_score_68", "interval_score_95", "crps", "nats", "floored"),
    "nodes_admissible",
)
"""Figures of merit of posteriors, by stratum."""

NEAR_AU: Final = (0.03, 0.1)
"""True ranges [au] below which scores of intervals are also given, for information."""

MEDIAN_OF_ALL: Final = "the median range, always"
"""Label of a method that gives the distribution of all true ranges to every arc."""


def study_tables(
    methods: Sequence[StudyMethod],
    geocentric: Sequence[StudyMethod],
    scored: Mapping[str, pd.DataFrame],
    *,
    n_boot: int,
    rng: int,
    done: Callable[[int], object],
) -> dict[str, pd.DataFrame]:
    """Tables of methods scored on the same arcs.

    Parameters
    ----------
    methods, geocentric : sequence of StudyMethod
        The methods of the study, and the classical ones among them with the observers in the
        centre of the Earth.
    scored : mapping of str to DataFrame
        Scores of both by label.
    n_boot, rng
        As for `neoranging.lab.study.metrics.summarise`.
    done : callable
        Called with numbers of steps that add up to 5.

    Returns
    -------
    dict of str to DataFrame
        ``figures``, ``headline``, ``scores``, ``near`` (the same of near arcs), ``published``,
        ``status``, ``strata``, ``posteriors`` and ``pit``, the last two of methods with posteriors;
        ``cross`` if two methods can be compared, and ``classical`` if there is a classical one.
    """
    options: dict[str, Any] = {"n_boot": n_boot, "rng": rng}
    main = [scored[method.label] for method in methods]
    tables = {
        "figures": pd.concat((summarise(scores, **options) for scores in main), ignore_index=True)
    }
    done(1)
    tables["headline"] = _headline(tables["figures"], main, options)
    parts = [tables["figures"][tables["figures"]["metric"].isin(SCORES)]]
    if main[0].interval_score_95.notna().any():
        parts.append(summarise(_reference(main[0]), metrics=SCORES, **options))
    tables["scores"] = pd.concat(parts, ignore_index=True)
    tables["near"] = pd.DataFrame(
        {"below_au": limit} | row
        for limit in NEAR_AU
        for scores in main
        if (near := scores.rho_true.to_numpy() < limit).any()
        for row in summarise(scores, rows=near, metrics=SCORES, **options).to_dict("records")
    )
    tables["published"] = pd.DataFrame(
        {"origin": "geocenter", "source": SOURCE}
        | {"method": p.method, "subset": p.subset, "n_arcs": p.n_arcs}
        | dict(p.values)
        for p in PUBLISHED
    )
    tables["status"] = pd.concat(map(_statuses, scored.values()), ignore_index=True)
    tables["strata"] = stratify(main, metrics=STRATA_METRICS, **options)
    with_posterior = [scores for scores in main if scores.pit.notna().any()]
    parts = [_posteriors(scores, options) for scores in with_posterior]
    tables["posteriors"] = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
    parts = [pit_deciles(scores, **options) for scores in with_posterior]
    tables["pit"] = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
    done(1)
    if pairs := _pairs(methods):
        differences = (cross(scored[a], scored[b], margins=True, **options) for a, b in pairs)
        tables["cross"] = pd.concat(differences, ignore_index=True)
    done(1)
    classical = [scored[m.label] for m in (*methods, *geocentric) if m.is_classical]
    if classical:
        others = [scored[m.label] for m in methods if not m.is_classical]
        tables["classical"] = classical_comparison(classical, others, **options)
    done(2)
    return tables


def _pairs(methods: Sequence[StudyMethod]) -> list[tuple[str, str]]:
    """Labels of methods to subtract, the second from the first.

    All pairs of learned methods; the one that is learned from each classical one; else the ends.
    """
    learned = [method.label for method in methods if not method.is_classical]
    if len(learned) >= 2:
        return [(b, a) for k, a in enumerate(learned) for b in learned[k + 1 :]]
    labels = [method.label for method in methods]
    if learned:
        return [(learned[0], label) for label in labels if label != learned[0]]
    return [(labels[-1], labels[0])] if len(labels) >= 2 else []


def _headline(
    figures: pd.DataFrame, scored: Sequence[pd.DataFrame], options: dict[str, Any]
) -> pd.DataFrame:
    """One row for each method, a value with bounds and number of arcs for each figure.

    A method that gives the status OK to a part of its answers has a second row, of these.
    """
    rows = []
    for scores in scored:
        of_method = figures[figures["method"] == scores.attrs["method"]]
        rows.append(_headline_row(scores, "all", of_method))
        if 0 < scores.ok.sum() < 0.95 * scores.answered.sum():
            ok = select(scores, scores.ok)
            rows.append(_headline_row(ok, "OK", summarise(ok, metrics=HEADLINE, **options)))
    return pd.DataFrame(rows)


def _headline_row(scored: pd.DataFrame, answers: str, figures: pd.DataFrame) -> dict[str, Any]:
    row: dict[str, Any] = {
        "method": scored.attrs["method"],
        "answers": answers,
        "origin": scored.attrs["origin"],
        "source": "this study",
        "n_arcs": len(scored),
        "n_answered": int(scored.answered.sum()),
        "n_objects": scored.object.nunique(),
        "seconds": scored.attrs["seconds"],
    }
    by_name = figures.set_index("metric")
    for name in HEADLINE:
        row[name] = by_name.at[name, "value"]
        row |= {f"{name}_{end}": by_name.at[name, end] for end in ("low", "high", "n_arcs")}
    return row


# ---------------------------------------------------------------------- intervals and posteriors


def _reference(scored: pd.DataFrame) -> pd.DataFrame:
    """Scores of who knows nothing of an arc and the distribution of all true ranges.

    A method is worth what it has beyond that (Gneiting & Raftery 2007, section 2.3).
    """
    judged = select(scored, scored.interval_score_95.notna())
    true = judged["rho_true"].to_numpy()
    quantiles = {
        level: np.quantile(true, [0.5 - 0.5 * level, 0.5 + 0.5 * level]) for level in TABLE_LEVELS
    }
    bounds = {level: np.tile(ends, (len(true), 1)) for level, ends in quantiles.items()}
    reference = with_intervals(judged, np.arange(len(true)), bounds, bounds[TABLE_LEVELS[0]])
    # of a sample: mean distance from the truth, less half the mean distance within the sample
    dex = np.sort(np.log10(true))
    n, at = len(dex), np.searchsorted(dex, np.log10(true))
    total = np.concatenate([[0.0], np.cumsum(dex)])
    distance = (dex[at] * (2 * at - n) + total[-1] - 2.0 * total[at]) / n
    reference = reference.assign(
        relative_error=np.abs(np.median(true) / true - 1.0),
        crps=distance - 0.5 * distance.mean(),
    )
    reference.attrs = {**scored.attrs, "method": MEDIAN_OF_ALL, "seconds": np.nan}
    return reference


def _posteriors(scored: pd.DataFrame, options: dict[str, Any]) -> pd.DataFrame:
    """Figures of posteriors of all arcs and by stratum.

    ``is_judged`` is false of bins of the true range, in which no posterior is calibrated.
    """
    judged = select(scored, scored.pit.notna())
    strata = [Strata.of(judged, axis) for axis in ("eta", "span")]
    strata += [Strata.half_decades(judged, axis) for axis in ("median", "rho")]
    cells: list[tuple[dict[str, Any], IntArray]] = [
        ({"axis": "all", "stratum": "all"}, np.arange(len(judged)))
    ]
    cells += [(cut.describe(k), cut.rows(k)) for cut in strata for k in cut.cells]
    return pd.DataFrame(
        {**cell, "is_judged": cell["axis"] != "rho"} | row
        for cell, rows in cells
        if len(rows)
        for row in summarise(judged, rows=rows, metrics=POSTERIORS, **options).to_dict("records")
    )


def pit_deciles(
    scored: pd.DataFrame, *, n_boot: int = 200, rng: np.random.Generator | int = 0
) -> pd.DataFrame:
    """Shares of the arcs by decile of the probability integral transform.

    Parameters
    ----------
    scored : DataFrame
        With ``pit``; arcs without one do not count.
    n_boot, rng
        As for `neoranging.lab.study.metrics.summarise`.

    Returns
    -------
    DataFrame
        A row for each decile: ``method``, ``decile`` from 1, ``percent`` with the interval ``low``,
        ``high`` of a bootstrap by object, ``band_low`` and ``band_high`` [%], between which 95 % of
        the shares of calibrated posteriors lie if the arcs are independent, ``n_arcs`` and
        ``n_objects``.
    """
    judged = select(scored, scored.pit.notna())
    n = len(judged)
    decile = np.minimum((10.0 * judged["pit"].to_numpy()).astype(int), 9)
    unit, weights = resamples(judged["object"].to_numpy(), n_boot, np.random.default_rng(rng))
    band = [100.0 * float(binom.ppf(tail, n, 0.1)) / n for tail in (0.025, 0.975)]
    rows = []
    for k in range(10):
        shares = percent((decile == k)[None].astype(float), unit, weights)
        low, high = percentiles(shares[1:], 0.95)
        rows.append(
            {
                "method": scored.attrs["method"],
                "decile": k + 1,
                "percent": float(shares[0]),
                "low": low,
                "high": high,
                "band_low": band[0],
                "band_high": band[1],
                "n_arcs": n,
                "n_objects": weights.shape[1],
            }
        )
    return pd.DataFrame(rows)


def _statuses(scored: pd.DataFrame) -> pd.DataFrame:
    codes, counts = np.unique(scored.status, return_counts=True)
    statuses = [RangeStatus.from_code(code) for code in codes]
    return pd.DataFrame(
        {
            "method": scored.attrs["method"],
            "status": [status.name for status in statuses],
            "n_arcs": counts,
            "percent": 100.0 * counts / len(scored),
            "n_answered": [
                int((scored.answered & (scored.status == code)).sum()) for code in codes
            ],
            "meaning": [status.advice for status in statuses],
        }
    )


# ---------------------------------------------------------------------- to read


def with_interval(row: Any) -> str:
    """Value of a row of figures with its interval, if it has one: ``0.208 [0.201, 0.215]``."""
    if math.isnan(row.low) or math.isnan(row.high):
        return number(row.value)
    return f"{number(row.value)} [{number(row.low)}, {number(row.high)}]"


def side_by_side(
    figures: pd.DataFrame,
    index: Sequence[str] = ("label", "unit"),
    cell: Callable[[Any], str] = with_interval,
) -> pd.DataFrame:
    """Figures to read: one row for each, one column for each method, in the order they occur.

    Parameters
    ----------
    figures : DataFrame
        As of `neoranging.lab.study.metrics.summarise`, of one method or several.
    index : sequence of str
        Columns that name a row of the result.
    cell : callable
        Text of a row, which is a named tuple.

    Returns
    -------
    DataFrame
        Of texts; "" where a method has no such figure.

    Raises
    ------
    EvaluationError
        If two rows claim the same place.
    """
    keys = [*index, "method"]
    if figures.duplicated(keys).any():
        first = figures[figures.duplicated(keys)].iloc[0]
        raise EvaluationError(
            f"several rows of {first['method']!r} are {', '.join(map(str, first[list(index)]))}: "
            "add to the index what tells them apart"
        )
    texts = figures[keys].assign(text=list(map(cell, figures.itertuples())))
    wide = texts.pivot(index=list(index), columns="method", values="text")
    in_order = pd.MultiIndex.from_frame(figures[list(index)].drop_duplicates())
    wide = wide.reindex(index=in_order, columns=figures["method"].unique()).fillna("")
    return wide.reset_index().rename_axis(columns=None)
