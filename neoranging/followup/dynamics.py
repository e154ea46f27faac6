"""Motions by which draws are followed, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from neoranging.core.flight import Approaches, Views, approaches, views
from neoranging.exceptions import EstimationError


class Dynamics(NamedTuple):
    """Functions of one motion, which have the arguments of those of `neoranging.core.flight`."""

    views: Callable[..., Views]
    approaches: Callable[..., Approaches]


def dynamics_of(name: str) -> Dynamics:
    """Motion of a name.

    Parameters
    ----------
    name : {"near-earth", "nbody"}
        Sun, Earth and Moon; or all planets as well, which needs the extra ``nbody``.

    Raises
    ------
    EstimationError
        If there is none of that name.
    """
    if name == "near-earth":
        return Dynamics(views, approaches)
    if name == "nbody":
        from neoranging.orbits.nbody import nbody_approaches, nbody_views

        return Dynamics(nbody_views, nbody_approaches)
    raise EstimationError(f"dynamics must be 'near-earth' or 'nbody', got {name!r}")
