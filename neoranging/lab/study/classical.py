"""Classical methods beside others: who answers at all, and how good the answers are where all do.

Gauss's and Laplace's methods leave many arcs unsolved. Their solve rate is of all arcs; errors are
compared on the arcs that every one of them solves, where the other methods are asked the same. That
is done once for each origin of the classical methods: from the geocentre, as the literature has it,
the diurnal parallax is read as orbital motion and most roots collapse onto the observer; with the
observer where it stood they do not.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd

from neoranging.exceptions import EvaluationError
from neoranging.lab.study.metrics import require_same_arcs, summarise
from neoranging.typing import BoolArray

WHOLE_METRICS: Final = ("solved", "ok", "collapsed", "p_ar")
"""Figures of the whole set."""

MUTUAL_METRICS: Final = (
    *("mae_rho", "medae_rho", "corr_rho", "spread_rho", "median_rho", "median_rho_true"),
    *("median_relative_error", "median_log10_error", "collapsed"),
    *("p_ar", "d_sh_pseudo", "d_sh_pseudo_associated"),
)
"""Figures of the arcs that all classical methods solve."""


def mutually_solved(scored: Sequence[pd.DataFrame]) -> BoolArray:
    """Arcs that every method answers, shape (M,).

    Raises
    ------
    EvaluationError
        If the methods are scored on different arcs, or there is none.
    """
    if not scored:
        raise EvaluationError("there is no classical method: give at least one")
    require_same_arcs(scored)
    return np.logical_and.reduce([answers.answered.to_numpy() for answers in scored])


def classical_comparison(
    classical: Sequence[pd.DataFrame],
    others: Sequence[pd.DataFrame] = (),
    *,
    metrics: Collection[str] = MUTUAL_METRICS,
    **options: Any,
) -> pd.DataFrame:
    """Figures of classical methods and others, on all arcs and on those solved alike.

    Parameters
    ----------
    classical : sequence of DataFrame
        Answers of classical methods, of one origin or of both.
    others : sequence of DataFrame
        Of the same arcs; each is judged by the truth of its own origin.
    metrics : collection of str
        Figures of the arcs solved alike.
    **options
        For `neoranging.lab.study.metrics.summarise`.

    Returns
    -------
    DataFrame
        As of `summarise`, with ``subset`` before: ``"all"`` with `WHOLE_METRICS` of every method,
        then ``"solved from the geocenter"`` and ``"solved from the topocenter"``, each with
        ``metrics`` of the classical methods of that origin and of all others.

    Raises
    ------
    EvaluationError
        If methods are scored on different arcs, or there is no classical one.
    """
    mutually_solved([*classical, *others])  # of the same arcs, or an error

    def rows_of(subset: str, methods: Sequence[pd.DataFrame], **which: Any) -> list[dict[str, Any]]:
        return [
            {"subset": subset} | row
            for scored in methods
            for row in summarise(scored, **which, **options).to_dict("records")
        ]

    table = rows_of("all", [*classical, *others], metrics=WHOLE_METRICS)
    for origin in dict.fromkeys(scored.attrs["origin"] for scored in classical):
        alike = [scored for scored in classical if scored.attrs["origin"] == origin]
        rows = mutually_solved(alike)
        table += rows_of(f"solved from the {origin}", [*alike, *others], rows=rows, metrics=metrics)
    return pd.DataFrame(table)
