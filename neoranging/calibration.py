"""`Calibration`: how far off a method was on arcs that it never saw, as intervals for new ones.

The counting stands in `neoranging.core.conformal`; what makes calibrations of stored sets in
``neoranging.lab.study.calibration``. A calibration is a small JSON file, so that an estimate needs
neither the arcs nor the truths that it was made of.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from astropy import units as u

from neoranging.arguments import values_in
from neoranging.core import conformal as core
from neoranging.core.answers import Answers
from neoranging.core.conformal import NestedBins
from neoranging.exceptions import ConformalError
from neoranging.files import parse_json, plain, write_file
from neoranging.typing import BoolArray, FloatArray, IntArray

N_BINS: Final = (10, 6)
"""Bins of proper motion, deciles, and of the length of the arc within each of them."""

MIN_PER_BIN: Final = 400
"""Arcs that a bin should hold; fewer bins are made rather than smaller ones.

Three standard errors of a normal law, 0.9973, take 370."""

LEVELS: Final = np.unique(
    np.round(
        [
            *np.arange(0.05, 0.5, 0.05),
            *np.arange(0.5, 0.9, 0.02),
            *np.arange(0.9, 0.99, 0.01),
            *np.arange(0.99, 0.9991, 0.003),
            *(0.55, 0.65, 0.6827, 0.75, 0.85, 0.9545, 0.9973),
        ],
        6,
    )
)
"""Confidence levels that are kept; another takes the width of the next one above."""

CELLS: Final = ("motion, length and verdict", "motion deciles")
"""Arcs that are counted together: those alike in all three, as the package does it; or those of a
decile of proper motion, whatever their length, verdict and number, as the literature does."""

_FORMAT: Final = "neoranging calibration"
_VERSION: Final = 2
_VERDICTS: Final = dict(zip(CELLS, (("ok", "other"), ("any",)), strict=True))
_WIDTHS: Final = dict(zip(core.QUANTITIES, ("half_widths", "range_rate_half_widths"), strict=True))
"""Keys of the half widths in a file; that of the range-rate may be missing."""
_ROUND = Context(prec=5, rounding=ROUND_CEILING)


class _Group(NamedTuple):
    """Half widths of the answers of one verdict, by proper motion and length of arc."""

    bins: NestedBins
    """C cells of proper motion [rad/d] and, within it, length of arc [d]."""
    counts: IntArray
    """Calibration arcs of each cell, shape (C,)."""
    widths: Mapping[str, FloatArray]
    """By quantity, shape (C, L + 1): at each level, infinite where the arcs are too few, and at
    last the largest score, zero of none."""

    @classmethod
    def fit(cls, scores: Mapping[str, FloatArray], bins: NestedBins, cell: IntArray) -> _Group:
        n_cells = bins.n_cells
        widths = {of: _half_widths(of_arcs, cell, n_cells) for of, of_arcs in scores.items()}
        return cls(bins, np.bincount(cell, minlength=n_cells), widths)

    def to_json(self, verdict: str) -> dict[str, Any]:
        return {
            "verdict": verdict,
            "proper_motion_edges_rad_d": self.bins.outer.tolist(),
            "arc_length_edges_d": [edges.tolist() for edges in self.bins.inner],
            "n_arcs": self.counts.tolist(),
        } | {
            _WIDTHS[of]: [[x if np.isfinite(x) else None for x in row] for row in widths.tolist()]
            for of, widths in self.widths.items()
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any], n_levels: int) -> _Group:
        names = ("proper_motion_edges_rad_d", "arc_length_edges_d")
        first, second = (content[name] for name in names)
        outer, *inner = (np.array(edges, dtype=np.float64) for edges in (first, *second))
        if len(inner) != len(outer) + 1:
            raise ValueError(f"{len(outer)} edges do not go with {len(inner)} lists of edges")
        if not all(np.isfinite(x).all() and (np.diff(x) > 0.0).all() for x in (outer, *inner)):
            raise ValueError("edges of bins do not ascend")
        bins = NestedBins(outer, inner)
        counts = np.array(content["n_arcs"], dtype=np.int64)
        by_quantity = {}
        for of, key in _WIDTHS.items():
            if of != "range" and key not in content:
                continue
            rows = [[np.inf if x is None else x for x in row] for row in content[key]]
            widths = by_quantity[of] = np.array(rows, dtype=np.float64)
            if widths.shape != (bins.n_cells, n_levels + 1) or counts.shape != widths.shape[:1]:
                raise ValueError("edges, numbers and widths do not belong together")
            if (counts < 0).any() or not (widths >= 0.0).all():
                raise ValueError("numbers of arcs and half widths must not be negative")
            if (widths[:, 1:-1] < widths[:, :-2]).any():
                raise ValueError("half widths must not fall with the level")
        return cls(bins, counts, by_quantity)


def _half_widths(scores: FloatArray, cell: IntArray, n_cells: int) -> FloatArray:
    """Half widths of cells at all levels, and the largest score of each, shape (C, L + 1)."""
    _, widths = core.quantiles(scores, cell, n_cells, LEVELS)
    largest = np.zeros(n_cells)
    np.maximum.at(largest, cell, scores)
    widths = np.column_stack([widths, largest])
    # five digits, which keep a file small; upwards, so that no interval becomes narrower
    for place in zip(*np.nonzero(np.isfinite(widths)), strict=True):
        widths[place] = float(_ROUND.create_decimal_from_float(float(widths[place])))
    return widths


@dataclass(frozen=True, eq=False, repr=False)
class Calibration:
    """Half widths of intervals, by verdict, proper motion, length of arc and confidence level.

    Made by `fit` of answers whose truth is known, by ``ConformalEstimator.calibrate``, or by
    ``neoranging.lab.study.calibration.calibrate`` of a stored set. Immutable.

    Both the range and the range-rate have half widths; those of the range-rate are missing from
    calibrations of former versions and from those made without true range-rates.

    Usable answers (status OK or POPULATION) and others are counted apart, each by deciles of proper
    motion and, within each of them, by up to six bins of equal numbers of the length of the arc; of
    fewer where a bin would hold less than 400 arcs. So an interval holds among the slow and among
    the fast, minutes of observations do not borrow the narrow intervals of hours, and answers that
    a method does not stand by widen nobody else's. The literature counts by deciles of proper
    motion alone, which ``cells="motion deciles"`` of `fit` asks for.

    Attributes
    ----------
    identity : mapping
        Which method, origin, options and weights it was made for; `RangingEstimator.identity`.
    score : {"log", "absolute", "standard", "log-standard"}
        What is counted of the range: the difference of the logarithms of range and truth; that of
        the ranges [au]; or, where an answer is usable and has a standard error, one of the two in
        units of it, and the logarithmic score elsewhere. Of the range-rate, the difference [au/d],
        in standard errors under the last two.
    cells : {"motion, length and verdict", "motion deciles"}
        Which arcs are counted together.
    levels : ndarray, shape (L,)
        Confidence levels that are kept.
    description : mapping
        Which data it was made of: plain data, for people.
    """

    identity: Mapping[str, Any]
    score: str
    cells: str
    levels: FloatArray
    description: Mapping[str, Any]
    _groups: tuple[_Group, ...]

    @classmethod
    def fit(
        cls,
        answers: Answers,
        span: FloatArray,
        truth: FloatArray,
        *,
        true_rate: FloatArray | None = None,
        score: str | None = None,
        cells: str = CELLS[0],
        is_learned: bool = False,
        identity: Mapping[str, Any] | None = None,
        description: Mapping[str, Any] | None = None,
    ) -> Self:
        """Calibration of answers to arcs that the method was not trained on.

        Parameters
        ----------
        answers : Answers
            To M arcs; those without an answer are counted, no more.
        span : ndarray, shape (M,)
            Time from the first to the last observation [d].
        truth : ndarray, shape (M,)
            True ranges [au] from the same origin.
        true_rate : ndarray, shape (M,), optional
            True range-rates [au/d]; without them the range-rate is not calibrated.
        score : {"log", "absolute", "standard", "log-standard"}, optional
            By default ``"log"``, unless all usable answers have a standard error: then
            ``"log-standard"`` for learned methods and ``"standard"`` for others.
        cells : {"motion, length and verdict", "motion deciles"}
            Which arcs are counted together.
        is_learned : bool
            ``RangingEstimator.is_learned``; it chooses the score.
        identity, description : mapping, optional

        Raises
        ------
        ConformalError
            If no arc has an answer, a true range is not positive, standard errors are asked for
            where a usable answer has none, or there are no such cells.
        """
        if cells not in CELLS:
            raise ConformalError(f"cells must be one of {CELLS}, got {cells!r}")
        rows = np.flatnonzero(core.answered(answers))
        if not len(rows):
            raise ConformalError(
                f"none of the {len(answers)} calibration arcs has an answer: there is nothing to "
                "learn about the errors of the method"
            )
        some, eta, span = answers.take(rows), answers.eta[rows], span[rows]
        usable, with_error = some.usable, core.determined(some, "standard")
        if score is None:
            every = usable.any() and bool((with_error == usable).all())
            score = ("log-standard" if is_learned else "standard") if every else "log"
        if score in core.IN_ERRORS and (usable & ~with_error).any():
            raise ConformalError(
                f"{score} scores need usable answers, each with a standard error: for this "
                "method take score='log' or 'absolute'"
            )
        off = {"range": core.scores(some, truth[rows], score)}
        if true_rate is not None:
            off["range_rate"] = core.scores(some, true_rate[rows], score, "range_rate")
        parts: tuple[BoolArray, ...] = (np.ones(len(eta), dtype=bool),)
        n_bins, least = (N_BINS[0], 1), 1
        if cells == CELLS[0]:
            first = core.determined(some, score)
            parts, n_bins, least = (first, ~first), N_BINS, MIN_PER_BIN
        groups = []
        for k in parts:
            bins = NestedBins.fit(eta[k], span[k], n_bins, least)
            of_part = {of: of_all[k] for of, of_all in off.items()}
            groups.append(_Group.fit(of_part, bins, bins.cell_of(eta[k], span[k])))
        counts = {"n_arcs": len(answers), "n_without_answer": len(answers) - len(rows)}
        description = {**counts, **(description or {})}
        return cls(dict(identity or {}), score, cells, LEVELS, description, tuple(groups))

    @property
    def quantities(self) -> tuple[str, ...]:
        """Numbers of an answer that it has half widths of: ``"range"``, and ``"range_rate"``."""
        return tuple(self._groups[0].widths)

    # ------------------------------------------------------------------ what it says

    def half_width(
        self,
        proper_motion: u.Quantity,
        arc_length: u.Quantity,
        usable: npt.ArrayLike,
        confidence_level: float,
        *,
        of: str = "range",
    ) -> FloatArray:
        """Half width of intervals, in the unit of the score.

        Parameters
        ----------
        proper_motion : Quantity, shape (...)
            Of the fit to all observations.
        arc_length : Quantity, shape (...)
            Time from the first to the last observation. Outside of all that was seen, of either,
            the nearest bin counts.
        usable : array_like of bool, shape (...)
            Whether the status is OK or POPULATION (and, for scores in standard errors, the range
            has one).
        confidence_level : float
        of : {"range", "range_rate"}

        Returns
        -------
        ndarray, shape (...)

        Raises
        ------
        ConformalError
            If there are too few calibration arcs for the level, the message says how many it needs;
            or the range-rate was not calibrated.
        """
        eta = values_in("proper_motion", proper_motion, u.rad / u.d, ConformalError)
        span = values_in("arc_length", arc_length, u.d, ConformalError)
        columns = np.broadcast_arrays(eta, span, np.asarray(usable, dtype=bool))
        eta, span, usable = (column.ravel() for column in columns)
        required = np.ones(len(eta), dtype=bool)
        width = self._half_width(eta, span, usable, confidence_level, required, of)
        return width.reshape(columns[0].shape)

    def interval(
        self,
        answer: u.Quantity,
        proper_motion: u.Quantity,
        arc_length: u.Quantity,
        usable: npt.ArrayLike,
        confidence_level: float,
        *,
        error: u.Quantity | None = None,
        of: str = "range",
    ) -> u.Quantity:
        """Interval around an answer; `RangeEstimate.interval` also heeds admissibility.

        Parameters
        ----------
        answer : Quantity, shape (...)
            Range or range-rate; NaN where there is none.
        proper_motion, arc_length, usable, confidence_level
            As for `half_width`.
        error : Quantity, shape (...), optional
            Its standard error; only scores in standard errors look at it.
        of : {"range", "range_rate"}

        Returns
        -------
        Quantity, shape (..., 2)
            Lower and upper bound; NaN where there is no answer.

        Raises
        ------
        ConformalError
            If there are too few calibration arcs for the level, the message says how many it needs;
            or the range-rate was not calibrated.
        """
        unit = u.au if of == "range" else u.au / u.d
        columns = np.broadcast_arrays(
            values_in("answer", answer, unit, ConformalError),
            values_in("proper_motion", proper_motion, u.rad / u.d, ConformalError),
            values_in("arc_length", arc_length, u.d, ConformalError),
            np.asarray(usable, dtype=bool),
            np.nan if error is None else values_in("error", error, unit),
        )
        value, eta, span, first, sigma = (column.ravel() for column in columns)
        answered = np.isfinite(value) & ((value > 0.0) | (of != "range"))
        if self.score in core.IN_ERRORS:
            first = first & np.isfinite(sigma) & (sigma > 0.0)
        width = self._half_width(eta, span, first, confidence_level, answered, of)
        scale = core.Scale.of(value, sigma, first, self.score, of)
        bounds = scale.around(np.where(answered, value, np.nan), width, of)
        return bounds.reshape(*columns[0].shape, 2) << unit

    def bounds(
        self,
        answers: Answers,
        span: FloatArray,
        limits: FloatArray,
        confidence_level: float,
        *,
        of: str = "range",
        too_few: str = "raise",
    ) -> FloatArray:
        """Intervals within the admissible limits, on plain arrays.

        Parameters
        ----------
        answers : Answers
            Of M arcs.
        span : ndarray, shape (M,)
            Time from the first to the last observation [d].
        limits : ndarray, shape (M, 2)
            Least and greatest admissible range [au], as in `Answers.limits`; or range-rate [au/d].
        confidence_level : float
        of : {"range", "range_rate"}
        too_few : {"raise", "limits"}
            What becomes of usable answers where the calibration arcs are too few for the
            level, and of all where the range-rate was not calibrated.

        Returns
        -------
        ndarray, shape (M, 2) [au] or [au/d]
            Never empty. The limits themselves where there is no answer, and where answers that are
            not usable have too few calibration arcs.
        """
        if of not in self.quantities and too_few == "limits":
            return limits
        eta, usable = answers.eta, core.determined(answers, self.score)
        required = usable & core.answered(answers) & (too_few == "raise")
        width = self._half_width(eta, span, usable, confidence_level, required, of)
        return core.clipped(core.bounds(answers, width, self.score, of), limits)

    def _half_width(
        self,
        eta: FloatArray,
        span: FloatArray,
        usable: BoolArray,
        level: float,
        required: BoolArray,
        of: str,
    ) -> FloatArray:
        """Half widths by arc, infinite where the arcs are too few; an error if it is required."""
        if of not in self.quantities:
            raise ConformalError(
                f"{self!r} has half widths of the {' and the '.join(self.quantities)} and none of "
                f"{of!r}: calibrate anew with true range-rates, as `neoranging calibrate` does, or "
                "ask an estimate for interval(of='range_rate', calibrated=False), which is what "
                "the observations alone say"
            )
        needed = core.arcs_needed(level)
        # the largest score serves levels between the last one that is kept and none at all
        column = min(int(np.searchsorted(self.levels, level)), len(self.levels))
        width = np.empty(len(eta))
        every = np.ones(len(eta), dtype=bool)
        parts = (usable, ~usable) if len(self._groups) == 2 else (every,)
        for group, rows in zip(self._groups, parts, strict=True):
            if not rows.any():
                continue
            cell = group.bins.cell_of(eta[rows], span[rows])
            missing = (group.counts[cell] < needed) & required[rows]
            if missing.any():
                n = int(group.counts[cell[np.argmax(missing)]])
                alike = (
                    "a like proper motion"
                    if rows is every
                    else f"answers that are {'' if rows is usable else 'not '}usable and a like "
                    "proper motion and length"
                )
                raise ConformalError(
                    f"the level {level} needs {needed} calibration arcs with {alike}, there are "
                    f"{n}: ask for a lower level, or calibrate on more arcs",
                    needed=needed,
                    available=n,
                )
            of_group = group.widths[of]
            widths = np.minimum(of_group[:, column], of_group[:, -1])
            width[rows] = np.where(group.counts >= needed, widths, np.inf)[cell]
        return width

    def matches(self, identity: Mapping[str, Any]) -> bool:
        """Flag of a calibration that was made for a method of that identity."""
        return dict(self.identity) == dict(identity)

    # ------------------------------------------------------------------ files

    def to_json(self) -> dict[str, Any]:
        """Plain data from which `from_json` makes the same calibration."""
        groups = zip(self._groups, _VERDICTS[self.cells], strict=True)
        return {
            "format": _FORMAT,
            "version": _VERSION,
            "identity": dict(self.identity),
            "description": dict(self.description),
            "score": self.score,
            "cells": self.cells,
            "levels": self.levels.tolist(),
            "groups": [group.to_json(verdict) for group, verdict in groups],
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Self:
        """Calibration of what `to_json` gave.

        Raises
        ------
        ConformalError
            If it is something else, of another version, or incomplete.
        """
        try:
            if (content["format"], content["version"]) != (_FORMAT, _VERSION):
                raise ValueError(
                    f"it is {content['format']!r}, version {content['version']!r}, and what can be "
                    f"read is {_FORMAT!r}, version {_VERSION}"
                )
            if content["score"] not in core.SCORES:
                raise ValueError(f"it has the score {content['score']!r}")
            # files that are older than the choice have no such entry
            cells = content.get("cells", CELLS[0])
            levels = np.array(content["levels"], dtype=np.float64)
            by_verdict = {group["verdict"]: group for group in content["groups"]}
            groups = tuple(
                _Group.from_json(by_verdict[name], len(levels)) for name in _VERDICTS[cells]
            )
            if len({tuple(group.widths) for group in groups}) > 1:
                raise ValueError("only a part of its groups has half widths of the range-rate")
            if not (np.diff(np.concatenate([[0.0], levels, [1.0]])) > 0.0).all():
                raise ValueError("its levels do not ascend between 0 and 1")
            for name in ("identity", "description"):
                if not isinstance(content[name], Mapping):
                    raise TypeError(f"{name!r} is no object but {type(content[name]).__name__}")
            identity, description = dict(content["identity"]), dict(content["description"])
            return cls(identity, content["score"], cells, levels, description, groups)
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
            raise ConformalError(
                f"this is no calibration of this version of neoranging ({error!r}): make it anew, "
                "as `neoranging calibrate` does"
            ) from error

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write it to a JSON file, whole or not at all."""
        text = json.dumps(plain(self.to_json()), allow_nan=False, separators=(",", ":"))
        write_file(Path(path), text.replace("],[", "],\n[") + "\n")

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """Calibration of a file that `write` wrote.

        Raises
        ------
        ConformalError
            If the file is damaged or is something else.
        OSError
            If it cannot be opened.
        """
        try:
            return cls.from_json(parse_json(Path(path).read_text(encoding="utf-8")))
        except ValueError as error:
            raise ConformalError(f"cannot read {path}: {error}") from error

    def __repr__(self) -> str:
        name = self.identity.get("method", "a method")
        counts = [int(group.counts.sum()) for group in self._groups]
        arcs = f"{counts[0]} arcs OK, {counts[1]} others" if len(counts) == 2 else self.cells
        return f"<Calibration of {name}: {arcs}, score {self.score}>"


@cache
def default_calibration(name: str) -> Calibration | None:
    """Calibration that comes with the package, None if there is none of that name.

    Parameters
    ----------
    name : str
        Such as ``"gauss"`` or ``"mlp-invariant"``.
    """
    path = Path(str(files("neoranging").joinpath("data", "calibration", f"{name}.json")))
    return Calibration.read(path) if path.exists() else None
