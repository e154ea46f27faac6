"""Judging estimators on stored sets of labelled arcs: what they answer, and how far off it is."""

from neoranging.evaluation.calibration import calibrate, cross_conformal
from neoranging.evaluation.metrics import METRICS, compare, summarise
from neoranging.evaluation.predictions import Predictions, predict
from neoranging.evaluation.scores import ScoredArcs, score
from neoranging.evaluation.strata import cross, stratify
from neoranging.evaluation.study import Study, run_study

__all__ = [
    "METRICS",
    "Predictions",
    "ScoredArcs",
    "Study",
    "calibrate",
    "compare",
    "cross",
    "cross_conformal",
    "predict",
    "run_study",
    "score",
    "stratify",
    "summarise",
]
