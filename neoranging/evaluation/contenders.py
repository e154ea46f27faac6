"""The methods of a study under their labels, asked once and kept."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Self

from neoranging.datasets.schema import ArcTable
from neoranging.estimators.base import RangingEstimator
from neoranging.estimators.classical import ClassicalEstimator
from neoranging.estimators.conformal import ConformalEstimator
from neoranging.estimators.registry import get_estimator
from neoranging.evaluation.predictions import Predictions, predict
from neoranging.evaluation.selection import fingerprint
from neoranging.exceptions import DatasetError, EvaluationError
from neoranging.files import read_json, write_json

__all__ = ["WEIGHTS", "Contender", "ask", "contenders", "pretrained"]

WEIGHTS: Final = ".safetensors"
"""Ending of files of weights, by which they are told from names of methods."""


@dataclass(frozen=True)
class Contender:
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
        """Contender of an estimator, or of its description.

        Parameters
        ----------
        method : str, RangingEstimator or Contender
            ``[LABEL=]NAME[@ORIGIN]`` of a registered method, such as ``gauss@geocenter``; or
            ``[LABEL=]FILE.safetensors[@ORIGIN]`` of a trained network.

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
        name, at, origin = what.rpartition("@")
        if not at or what.endswith(WEIGHTS):  # an @ in the path of a file places nothing
            name, origin = what, ""
        options = {"origin": origin} if origin else {}
        if name.endswith(WEIGHTS):
            estimator = pretrained(name, **options)
            return cls(label or "@".join(filter(None, [estimator.name, origin])), estimator)
        return cls(label or what, get_estimator(name, **options))

    @property
    def is_classical(self) -> bool:
        """Whether it solves for the roots of a polynomial."""
        return isinstance(self._solver, ClassicalEstimator)

    @property
    def _solver(self) -> RangingEstimator:
        """What answers, without the calibration around it."""
        known = self.estimator
        return known.base if isinstance(known, ConformalEstimator) else known

    def from_geocenter(self) -> Self | None:
        """The same method with all observers in the centre of the Earth, as the literature has it.

        None unless it is a classical method that knows where they stood.
        """
        known = self._solver
        if not isinstance(known, ClassicalEstimator) or known.origin == "geocenter":
            return None
        options = {"refine": known.refine, **asdict(known.thresholds)}
        twin = type(known)(origin="geocenter", **options)
        return type(self)(f"{self.label} (geocentre)", twin)

    @property
    def slug(self) -> str:
        """Its label, fit for the name of a file."""
        return re.sub(r"[^\w.-]+", "-", self.label).strip("-.") or "method"


def pretrained(weights: str | os.PathLike[str], **options: Any) -> RangingEstimator:
    """Estimator of a file of weights, of the kind that its model card names.

    Parameters
    ----------
    weights : path-like
    **options
        ``origin``, ``slack``.

    Raises
    ------
    NotTrainedError
        If there is no such file.
    CheckpointError
        If it is damaged or something else.
    """
    from neoranging.estimators.learned import read_card
    from neoranging.estimators.mlp import MLPEstimator
    from neoranging.estimators.pinn import PINNEstimator

    kind = PINNEstimator if read_card(weights)["model"] == "pinn" else MLPEstimator
    return kind.from_pretrained(weights, **options)


def contenders(methods: Sequence[Any]) -> list[Contender]:
    """Contenders of descriptions, ready to be asked; see `Contender.of`.

    Raises
    ------
    EvaluationError
        If there is none, or two have one label.
    """
    found = [Contender.of(method) for method in methods]
    if not found:
        raise EvaluationError("there is no method to judge: name at least one")
    labels = [each.slug for each in found]
    twice = sorted({each.label for each in found if labels.count(each.slug) > 1})
    if twice:
        raise EvaluationError(
            f"several methods are called {', '.join(map(repr, twice))}: label them, as in "
            "first=a.safetensors second=b.safetensors"
        )
    for each in found:
        _ = each.estimator.identity  # missing weights are told now, not after an hour
    return found


def ask(
    contender: Contender,
    table: ArcTable,
    folder: Path | None = None,
    progress: Callable[[int], object] | None = None,
) -> Predictions:
    """Predictions of a contender for all arcs of a table, taken from a folder if they are there.

    Parameters
    ----------
    contender : Contender
    table : ArcTable
    folder : Path, optional
        Where predictions are kept. Those of other arcs, or of a method with other options or
        weights, are made anew.
    progress : callable, optional
        Called with the number of arcs done since it was last called.
    """
    if folder is None:
        return predict(contender.estimator, table, label=contender.label, progress=progress)
    wanted = {"identity": contender.estimator.identity, "arcs": fingerprint(table)}
    kept, key = (folder / f"{contender.slug}{ending}" for ending in (".npz", ".json"))
    if (found := _kept(kept, key, wanted)) is not None and found.method == contender.label:
        if progress is not None:
            progress(len(table))
        return found
    key.unlink(missing_ok=True)
    made = predict(contender.estimator, table, label=contender.label, progress=progress)
    made.save(kept)
    write_json(key, wanted)  # last: where it stands, the predictions are whole
    return made


def _kept(kept: Path, key: Path, wanted: dict[str, Any]) -> Predictions | None:
    try:
        return Predictions.load(kept) if read_json(key) == wanted else None
    except (DatasetError, EvaluationError):  # none there, or a damaged one: ask again
        return None
