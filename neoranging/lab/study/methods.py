"""The methods of a study under their labels, asked once and kept."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Self

from neoranging.core.answers import Answers
from neoranging.core.arcs import Arcs
from neoranging.estimators.base import RangingEstimator
from neoranging.estimators.classical import ClassicalEstimator
from neoranging.estimators.conformal import ConformalEstimator
from neoranging.estimators.registry import WEIGHTS, get_estimator
from neoranging.exceptions import DatasetError, EvaluationError
from neoranging.files import read_json, write_json
from neoranging.lab.sets.learnt import check_learnt
from neoranging.lab.sets.schema import ArcTable
from neoranging.lab.study.posteriors import PosteriorScores
from neoranging.lab.study.predictions import ask_arcs, load_answers, save_answers
from neoranging.lab.study.scores import ArcTruth
from neoranging.lab.study.selection import fingerprint


@dataclass(frozen=True)
class StudyMethod:
    """A method of a study.

    Attributes
    ----------
    label : str
        What the study calls it.
    estimator : RangingEstimator
    """

    label: str
    estimator: RangingEstimator

    @classmethod
    def of(cls, method: Any) -> Self:
        """Method of an estimator, or of its description.

        Parameters
        ----------
        method : str, RangingEstimator or StudyMethod
            ``[LABEL=]METHOD``, where METHOD is what `neoranging.get_estimator` takes: a name such
            as ``gauss``, ``gauss@geocenter``, ``mlp@paper`` or ``systematic@catalogue``, or a file
            of weights.

        Raises
        ------
        UnknownMethodError
            If no such method is registered.
        NotTrainedError
            If there are no weights.
        """
        if isinstance(method, cls):
            return method
        if isinstance(method, RangingEstimator):
            return cls(method.name, method)
        label, _, what = str(method).rpartition("=")
        estimator = get_estimator(what)
        _, is_file, words = what.rpartition(WEIGHTS)
        name = f"{estimator.name}{words}" if is_file else what  # a path is no label
        return cls(label or name, estimator)

    @property
    def is_classical(self) -> bool:
        """Flag of a method that solves for the roots of a polynomial."""
        return isinstance(self._solver, ClassicalEstimator)

    @property
    def _solver(self) -> RangingEstimator:
        """Estimator that answers, without the calibration around it."""
        outer = self.estimator
        return outer.base if isinstance(outer, ConformalEstimator) else outer

    def from_geocenter(self) -> Self | None:
        """The same method with all observers in the centre of the Earth, as the literature has it.

        None unless it is a classical method that knows where they stood.
        """
        solver = self._solver
        if not isinstance(solver, ClassicalEstimator) or solver.origin == "geocenter":
            return None
        options = {"refine": solver.refine, **asdict(solver.thresholds)}
        return type(self)(f"{self.label} (geocentre)", type(solver)(origin="geocenter", **options))

    @property
    def slug(self) -> str:
        """Its label, fit for the name of a file."""
        return re.sub(r"[^\w.-]+", "-", self.label).strip("-.") or "method"


def study_methods(methods: Sequence[Any]) -> list[StudyMethod]:
    """Methods of descriptions, ready to be asked; see `StudyMethod.of`.

    Raises
    ------
    EvaluationError
        If there is none, or two have one label.
    """
    labelled = [StudyMethod.of(method) for method in methods]
    if not labelled:
        raise EvaluationError("there is no method to judge: name at least one")
    slugs = [method.slug for method in labelled]
    twice = sorted({method.label for method in labelled if slugs.count(method.slug) > 1})
    if twice:
        raise EvaluationError(
            f"several methods are called {', '.join(map(repr, twice))}: label them, as in "
            "first=a.safetensors second=b.safetensors"
        )
    for method in labelled:
        _ = method.estimator.identity  # missing weights are told now, not after an hour
    return labelled


def learnt_remarks(
    methods: Sequence[StudyMethod],
    table: ArcTable,
    division: Mapping[str, Any],
    *,
    allow: bool = False,
) -> dict[str, str]:
    """Remarks on networks that are asked for objects that they learnt from, by label.

    Parameters and errors are those of `check_learnt`.
    """
    remarks = {
        method.label: check_learnt(
            getattr(method._solver, "card", {}), table, division, method.label, allow=allow
        )
        for method in methods
        if method.estimator.is_learned
    }
    return {label: text for label, text in remarks.items() if text}


def ask(
    method: StudyMethod,
    table: ArcTable,
    truths: Mapping[str, ArcTruth],
    arcs: Mapping[str, Arcs],
    folder: Path | None = None,
    progress: Callable[[int], object] | None = None,
    scheduler: str | None = None,
) -> tuple[Answers, PosteriorScores | None]:
    """Answers of a method to all arcs of a table, taken from a folder if they are there.

    Its posteriors, if it gives some, are held against the truth at once, and their scores come with
    the answers.

    Parameters
    ----------
    method : StudyMethod
    table : ArcTable
    truths, arcs : mapping
        By origin: the truth of these arcs, whose attributables the answers get, and the arcs
        themselves, those from the topocentre among them.
    folder : Path, optional
        Where answers are kept. Those to other arcs, of a method with other options or weights, or
        scored by another truth, are made anew.
    progress : callable, optional
        Called with the number of arcs done since it was last called.
    scheduler : str, optional
        Address of a scheduler of Dask, whose workers do it.
    """
    estimator, label = method.estimator, method.label
    truth = truths[estimator.origin]
    identity = {
        "identity": estimator.identity,
        "arcs": fingerprint(table),
        "truth": hashlib.sha256(truth.rho.tobytes()).hexdigest(),
    }
    if folder is not None:
        file, key = (folder / f"{method.slug}{ending}" for ending in (".npz", ".json"))
        stored = None
        # none there, or a damaged one: ask again
        with suppress(DatasetError, EvaluationError):
            if read_json(key) == identity:
                stored = load_answers(file, truth.attributables)
        if stored is not None and stored[0].method == label:
            if progress is not None:
                progress(len(table))
            return stored
        key.unlink(missing_ok=True)
    own_arcs, topocentric = arcs[estimator.origin], arcs["topocenter"]
    answers, scores = ask_arcs(
        estimator,
        own_arcs,
        topocentric,
        label,
        rho=truth.rho,
        progress=progress,
        scheduler=scheduler,
    )
    # the same to rounding, and held once for all methods of the origin
    answers = replace(answers, attributables=truth.attributables)
    if folder is not None:
        save_answers(answers, file, scores)
        write_json(key, identity)  # last: where it stands, the answers are whole
    return answers, scores
