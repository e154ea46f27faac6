"""Arcs as inputs of networks."""

from network_fixtures import (  # noqa: F401
    _one_thread,
    night,
    night_inputs,
    night_truth,
    slide,
    to_inputs,
)
