"""Judging estimators on stored sets of labelled arcs: what they answer, and how far off it is."""
