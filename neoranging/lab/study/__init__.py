"""Judging estimators on stored sets of labelled arcs: what they answer, and how far off it is."""

from neoranging.lab.study.calibration import calibrate, cross_conformal
from neoranging.lab.study.metrics import METRICS, compare, summarise
from neoranging.lab.study.predictions import predict
from neoranging.lab.study.run import Study, run_study
from neoranging.lab.study.scores import score, select
from neoranging.lab.study.strata import cross, stratify

__all__ = [
    "METRICS",
    "Study",
    "calibrate",
    "compare",
    "cross",
    "cross_conformal",
    "predict",
    "run_study",
    "score",
    "select",
    "stratify",
    "summarise",
]
