"""Judging estimators on stored sets of labelled arcs: their answers, and how far off they are."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
