"""Judging estimators on sets of labelled arcs: answers, errors, intervals, figures, report."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
