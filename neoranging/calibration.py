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

_FORMAT: Final = "neoranging calibration"
_VERSION: Final = 2
_VERDICTS: Final = ("ok", "other")
_ROUND = Context(prec=5, rounding=ROUND_CEILING)


class _Group(NamedTuple):
    """Half widths of the answers of one verdict, by proper motion and length of arc."""

    bins: NestedBins
    """C cells of proper motion [rad/d] and, within it, length of arc [d]."""
    counts: IntArray
    """Calibration arcs of each cell, shape (C,)."""
    widths: FloatArray
    """Shape (C, L + 1): at each level, infinite where the arcs are too few, and at last the largest
    score, zero of none."""

    @classmethod
    def fit(cls, scores: FloatArray, eta: FloatArray, span: FloatArray) -> _Group:
        bins = NestedBins.fit(eta, span, N_BINS, MIN_PER_BIN)
        cell = bins.cell_of(eta, span)
        counts, widths = core.quantiles(scores, cell, bins.n_cells, LEVELS)
        largest = np.zeros(len(counts))
        np.maximum.at(largest, cell, scores)
        widths = np.column_stack([widths, largest])
        # five digits, which keep a file small; upwards, so that no interval becomes narrower
        for place in zip(*np.nonzero(np.isfinite(widths)), strict=True):
            widths[place] = float(_ROUND.create_decimal_from_float(float(widths[place])))
        return cls(bins, counts, widths)

    def to_json(self, verdict: str) -> dict[str, Any]:
        return {
            "verdict": verdict,
            "proper_motion_edges_rad_d": self.bins.outer.tolist(),
            "arc_length_edges_d": [edges.tolist() for edges in self.bins.inner],
            "n_arcs": self.counts.tolist(),
            "half_widths": [
                [x if np.isfinite(x) else None for x in row] for row in self.widths.tolist()
            ],
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
        rows = [[np.inf if x is None else x for x in row] for row in content["half_widths"]]
        widths = np.array(rows, dtype=np.float64)
        if widths.shape != (bins.n_cells, n_levels + 1) or counts.shape != widths.shape[:1]:
            raise ValueError("edges, numbers and widths do not belong together")
        if (counts < 0).any() or not (widths >= 0.0).all():
            raise ValueError("numbers of arcs and half widths must not be negative")
        if (widths[:, 1:-1] < widths[:, :-2]).any():
            raise ValueError("half widths must not fall with the level")
        return cls(bins, counts, widths)


@dataclass(frozen=True, eq=False, repr=False)
class Calibration:
    """Half widths of intervals, by verdict, proper motion, length of arc and confidence level.

    Made by `fit` of answers whose truth is known, by ``ConformalEstimator.calibrate``, or by
    ``neoranging.lab.study.calibration.calibrate`` of a stored set. Immutable.

    Usable answers (status OK or POPULATION) and others are counted apart, each by deciles of proper
    motion and, within each of them, by up to six bins of equal numbers of the length of the arc; of
    fewer where a bin would hold less than 400 arcs. So an interval holds among the slow and among
    the fast, minutes of observations do not borrow the narrow intervals of hours, and answers that
    a method does not stand by widen nobody else's.

    Attributes
    ----------
    identity : mapping
        Which method, origin, options and weights it was made for; `RangingEstimator.identity`.
    score : {"log", "absolute", "standard"}
        What is counted: the difference of the logarithms of range and truth; that of the ranges
        [au]; or that in standard errors where an answer is usable and has one, and the logarithmic
        score elsewhere.
    levels : ndarray, shape (L,)
        Confidence levels that are kept.
    description : mapping
        Which data it was made of: plain data, for people.
    """

    identity: Mapping[str, Any]
    score: str
    levels: FloatArray
    description: Mapping[str, Any]
    _groups: tuple[_Group, _Group]

    @classmethod
    def fit(
        cls,
        answers: Answers,
        span: FloatArray,
        truth: FloatArray,
        *,
        score: str | None = None,
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
        score : {"log", "absolute", "standard"}, optional
            By default ``"standard"`` if all usable answers have a standard error, else
            ``"log"``.
        identity, description : mapping, optional

        Raises
        ------
        ConformalError
            If no arc has an answer, a true range is not positive, or standard scores are asked
            for where a usable answer has no standard error.
        """
        rows = np.flatnonzero(core.answered(answers))
        if not len(rows):
            raise ConformalError(
                f"none of the {len(answers)} calibration arcs has an answer: there is nothing to "
                "learn about the errors of the method"
            )
        some, eta, span, truth = answers.take(rows), answers.eta[rows], span[rows], truth[rows]
        usable, with_error = some.usable, core.determined(some, "standard")
        if score is None:
            every = usable.any() and bool((with_error == usable).all())
            score = "standard" if every else "log"
        if score == "standard" and (usable & ~with_error).any():
            raise ConformalError(
                "standard scores need usable answers, each with a standard error: for this "
                "method take score='log' or 'absolute'"
            )
        off, first = core.scores(some, truth, score), core.determined(some, score)
        ok, other = (_Group.fit(off[k], eta[k], span[k]) for k in (first, ~first))
        counts = {"n_arcs": len(answers), "n_without_answer": len(answers) - len(rows)}
        description = {**counts, **(description or {})}
        return cls(dict(identity or {}), score, LEVELS, description, (ok, other))

    # ------------------------------------------------------------------ what it says

    def half_width(
        self,
        proper_motion: u.Quantity,
        arc_length: u.Quantity,
        usable: npt.ArrayLike,
        confidence_level: float,
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
            Whether the status is OK or POPULATION (and, for standard scores, there is a standard
            error).
        confidence_level : float

        Returns
        -------
        ndarray, shape (...)

        Raises
        ------
        ConformalError
            If there are too few calibration arcs for the level; the message says how many it needs.
        """
        eta = values_in("proper_motion", proper_motion, u.rad / u.d, ConformalError)
        span = values_in("arc_length", arc_length, u.d, ConformalError)
        columns = np.broadcast_arrays(eta, span, np.asarray(usable, dtype=bool))
        eta, span, usable = (column.ravel() for column in columns)
        required = np.ones(len(eta), dtype=bool)
        width = self._half_width(eta, span, usable, confidence_level, required)
        return width.reshape(columns[0].shape)

    def interval(
        self,
        range: u.Quantity,  # noqa: A002 (the name that the package gives it)
        proper_motion: u.Quantity,
        arc_length: u.Quantity,
        usable: npt.ArrayLike,
        confidence_level: float,
        *,
        range_error: u.Quantity | None = None,
    ) -> u.Quantity:
        """Range interval around an answer; `RangeEstimate.interval` also heeds admissibility.

        Parameters
        ----------
        range : Quantity, shape (...)
            The answer; NaN where there is none.
        proper_motion, arc_length, usable, confidence_level
            As for `half_width`.
        range_error : Quantity, shape (...), optional
            Standard error; only standard scores look at it.

        Returns
        -------
        Quantity, shape (..., 2)
            Lower and upper bound; NaN where there is no answer.

        Raises
        ------
        ConformalError
            If there are too few calibration arcs for the level; the message says how many it needs.
        """
        columns = np.broadcast_arrays(
            values_in("range", range, u.au, ConformalError),
            values_in("proper_motion", proper_motion, u.rad / u.d, ConformalError),
            values_in("arc_length", arc_length, u.d, ConformalError),
            np.asarray(usable, dtype=bool),
            np.nan if range_error is None else values_in("range_error", range_error, u.au),
        )
        rho, eta, span, first, error = (column.ravel() for column in columns)
        unit = np.full(len(rho), 1.0 if self.score == "absolute" else np.nan)
        if self.score == "standard":
            first = first & np.isfinite(error) & (error > 0.0)
            unit = np.where(first, error, np.nan)
        answered = np.isfinite(rho) & (rho > 0.0)
        width = self._half_width(eta, span, first, confidence_level, answered)
        bounds = core.interval_around(np.where(answered, rho, np.nan), width, unit)
        return bounds.reshape(*columns[0].shape, 2) << u.au

    def bounds(
        self,
        answers: Answers,
        span: FloatArray,
        limits: FloatArray,
        confidence_level: float,
        *,
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
            Least and greatest admissible range [au], as in `Answers.limits`.
        confidence_level : float
        too_few : {"raise", "limits"}
            What becomes of usable answers where the calibration arcs are too few for the
            level.

        Returns
        -------
        ndarray, shape (M, 2) [au]
            Never empty. The limits themselves where there is no answer, and where answers that are
            not usable have too few calibration arcs.
        """
        eta, usable = answers.eta, core.determined(answers, self.score)
        required = usable & core.answered(answers) & (too_few == "raise")
        width = self._half_width(eta, span, usable, confidence_level, required)
        return core.clipped(core.bounds(answers, width, self.score), limits)

    def _half_width(
        self,
        eta: FloatArray,
        span: FloatArray,
        usable: BoolArray,
        level: float,
        required: BoolArray,
    ) -> FloatArray:
        """Half widths by arc, infinite where the arcs are too few; an error if it is required."""
        needed = core.arcs_needed(level)
        # the largest score serves levels between the last one that is kept and none at all
        column = min(int(np.searchsorted(self.levels, level)), len(self.levels))
        width = np.empty(len(eta))
        for group, rows in zip(self._groups, (usable, ~usable), strict=True):
            cell = group.bins.cell_of(eta[rows], span[rows])
            missing = (group.counts[cell] < needed) & required[rows]
            if missing.any():
                n = int(group.counts[cell[np.argmax(missing)]])
                verdict = "usable" if rows is usable else "not usable"
                raise ConformalError(
                    f"the level {level} needs {needed} calibration arcs with answers that are "
                    f"{verdict} and a like proper motion and length, there are {n}: ask for a "
                    "lower level, or calibrate on more arcs",
                    needed=needed,
                    available=n,
                )
            widths = np.minimum(group.widths[:, column], group.widths[:, -1])
            width[rows] = np.where(group.counts >= needed, widths, np.inf)[cell]
        return width

    def matches(self, identity: Mapping[str, Any]) -> bool:
        """Flag of a calibration that was made for a method of that identity."""
        return dict(self.identity) == dict(identity)

    # ------------------------------------------------------------------ files

    def to_json(self) -> dict[str, Any]:
        """Plain data from which `from_json` makes the same calibration."""
        groups = zip(self._groups, _VERDICTS, strict=True)
        return {
            "format": _FORMAT,
            "version": _VERSION,
            "identity": dict(self.identity),
            "description": dict(self.description),
            "score": self.score,
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
            levels = np.array(content["levels"], dtype=np.float64)
            by_verdict = {group["verdict"]: group for group in content["groups"]}
            ok, other = (_Group.from_json(by_verdict[name], len(levels)) for name in _VERDICTS)
            if not (np.diff(np.concatenate([[0.0], levels, [1.0]])) > 0.0).all():
                raise ValueError("its levels do not ascend between 0 and 1")
            for name in ("identity", "description"):
                if not isinstance(content[name], Mapping):
                    raise TypeError(f"{name!r} is no object but {type(content[name]).__name__}")
            identity, description = dict(content["identity"]), dict(content["description"])
            return cls(identity, content["score"], levels, description, (ok, other))
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
        ok, other = (int(group.counts.sum()) for group in self._groups)
        return f"<Calibration of {name}: {ok} arcs OK, {other} others, score {self.score}>"


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
