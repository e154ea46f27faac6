"""Half widths of intervals of range and range-rate, beside those of the literature.

The paper prints means over the arcs of a tercile of proper motion, as far as can be said: of a
network of its form trained here, the mean half width of all arcs is near its 0.31 au, and the
median is not.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
from astropy import units as u

from neoranging.core import conformal as core
from neoranging.exceptions import ConformalError
from neoranging.lab.study.calibration import CONSTRUCTIONS, CalibrationSample, cross_conformal
from neoranging.lab.study.published import SOURCE
from neoranging.lab.study.scores import TABLE_LEVELS
from neoranging.lab.study.strata import AXES
from neoranging.tables import number

LEVEL: Final = TABLE_LEVELS[0]
"""Confidence level of the published half widths."""

MOTIONS: Final = ("all", *AXES["eta"].names)
"""All arcs, and the terciles of their proper motion."""

UNITS: Final = {"range": "au", "range_rate": "au/d"}


class PublishedWidths(NamedTuple):
    """Half widths of 68 % intervals as they are published."""

    method: str
    of: str
    """``"range"`` [au] or ``"range_rate"`` [au/d]."""
    half_widths: Mapping[str, float]
    """By name in `MOTIONS`."""


PUBLISHED: Final = (
    PublishedWidths("PINN", "range", {"slow": 0.56, "mid": 0.33, "fast": 0.20}),
    PublishedWidths("MLP", "range", {"slow": 0.49, "mid": 0.26, "fast": 0.29}),
    # of "a generic NEO"; which of the two networks is not said
    PublishedWidths("a network", "range", {"all": 0.31}),
    PublishedWidths("a network", "range_rate", {"all": 6.1e-3}),
)


def half_widths(
    sample: CalibrationSample,
    *,
    constructions: Sequence[str] = CONSTRUCTIONS,
    levels: Sequence[float] = TABLE_LEVELS,
    score: str | None = None,
    folds: int = 10,
) -> pd.DataFrame:
    """Half widths of intervals of both numbers, and how often they hold.

    Parameters
    ----------
    sample : CalibrationSample
        M arcs; those without an answer do not count.
    constructions : sequence of str
        Of ``CONSTRUCTIONS``.
    levels : sequence of float
    score, folds
        As for `cross_conformal`.

    Returns
    -------
    DataFrame
        A row for each construction, quantity ``of``, ``level`` and ``motion``: ``n_arcs``,
        ``n_objects``, ``half_width``, the mean over the arcs [au] or [au/d], and the shares of
        truths within crosswise intervals, ``per_arc`` and ``per_object``. In the construction of
        the paper the half widths are calibrated on the very arcs, as there; in that of the package
        they are halves of the crosswise intervals, which end at the limits of what is admissible.

        Levels that the cells of a construction have too few arcs for are left out.

    Raises
    ------
    ConformalError
        If there are fewer objects than folds, or too few arcs for every level.
    """
    answers, truth = sample.answers, sample.truth
    answered = core.answered(answers)
    edges = core.quantile_edges(answers.eta[answered], len(MOTIONS) - 1)
    motion = np.array(MOTIONS[1:])[core.bin_of(edges, answers.eta)]
    rows: list[dict[str, Any]] = []
    why = None
    for construction in constructions:
        calibration = sample.calibration(score, construction=construction)
        for of, level in itertools.product(calibration.quantities, levels):
            options: dict[str, Any] = {"construction": construction, "of": of}
            try:
                crossed = cross_conformal(
                    sample, levels=[level], folds=folds, score=score, **options
                )
            except ConformalError as error:
                why = error
                continue
            bounds = crossed[level]
            width, inside = 0.5 * np.ptp(bounds, axis=1), sample.inside(bounds, of)
            if construction == "paper":
                eta, span = answers.eta * u.rad / u.d, truth.span * u.d
                width = calibration.half_width(eta, span, True, level, of=of)
            for name in MOTIONS:
                k = answered & ((motion == name) | (name == "all")) & np.isfinite(width)
                shares = core.coverage(inside[k], truth.designation[k])
                mean = float(width[k].mean()) if k.any() else np.nan
                key = {**options, "level": level, "motion": name}
                rows.append(key | shares._asdict() | {"half_width": mean})
    if why is not None and not rows:
        raise why
    return pd.DataFrame(rows)


def published_half_widths() -> pd.DataFrame:
    """Half widths of the literature, as rows of `half_widths` with ``method`` and ``source``."""
    return pd.DataFrame(
        {
            "method": row.method,
            "source": SOURCE,
            "construction": "paper",
            "of": row.of,
            "level": LEVEL,
            "motion": motion,
            "half_width": width,
        }
        for row in PUBLISHED
        for motion, width in row.half_widths.items()
    )


def side_by_side(table: pd.DataFrame, *, published: bool = True) -> pd.DataFrame:
    """Half widths to read: a row for each method and construction.

    Parameters
    ----------
    table : DataFrame
        Rows of `half_widths` with ``method`` and ``source``.
    published : bool
        Also the construction of the paper, and below the figures of the literature.

    Returns
    -------
    DataFrame
        Of texts; empty if the table is.
    """
    if table.empty:
        return table
    if published:
        table = pd.concat([table, published_half_widths()], ignore_index=True)
    else:
        table = table[table["construction"] == CONSTRUCTIONS[0]]
    lines = []
    for (method, source, construction), rows in table.groupby(
        ["method", "source", "construction"], sort=False
    ):
        values = rows.set_index(["of", "level", "motion"])
        line = {"method": f"{method}, {SOURCE}" if source == SOURCE else method}
        line["construction"] = construction
        for of, unit in UNITS.items():
            for motion in MOTIONS:
                key = (of, LEVEL, motion)
                width = values["half_width"].get(key, np.nan)
                line[f"{of.replace('_', '-')}, {motion} [{unit}]"] = _text(width)
            for level in TABLE_LEVELS:
                share = 100.0 * values["per_arc"].get((of, level, "all"), np.nan)
                line[f"{of.replace('_', '-')}: inside {100 * level:g} % [%]"] = _text(share)
        lines.append(line)
    return pd.DataFrame(lines)


def _text(value: float) -> str:
    return "" if np.isnan(value) else number(value)
