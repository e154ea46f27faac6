"""Errors of simulated observations: smaller than they claim, and those of one visit alike.

The sigmas that stations claim serve the fit of orbits over years, where the errors of a catalogue
and of a clock count. Within a visit, that is one station in one night, directions scatter by a
fraction of them that differs from visit to visit, about an offset which they share. The figures are
our own measurements of real arcs, made with ``docs/tools/noise_profile.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, Self

import numpy as np

from neoranging.constants import SHARE_OF_CLAIM
from neoranging.core.geometry import radec, sky_basis
from neoranging.typing import FloatArray, IntArray

SHARE_SPREAD: Final = 0.85
"""Scatter of the natural logarithm of the share `SHARE_OF_CLAIM` from visit to visit."""

LARGEST_SHARE: Final = 1.5
"""Largest share; with more a tracklet would not have been reported, or would have been removed."""

OFFSET: Final = 0.25
"""Standard deviation of the offset of a visit, in units of the claimed sigma."""

KINDS: Final = ("measured", "claimed")
"""Errors as real observations have them, or as large as they claim and each on its own."""


class Errors(NamedTuple):
    """Kind and size of the errors of simulated observations."""

    kind: str = "measured"
    """One of `KINDS`."""
    size: float = 1.0
    """Factor by which errors are taken; at 0 directions and times are exact, not even rounded."""

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Self:
        """Errors of a stored set, by the settings in its manifest."""
        return cls(settings.get("errors", "claimed"), settings.get("noise", 1.0))

    def draw(self, sigma: FloatArray, visit: IntArray, rng: np.random.Generator) -> FloatArray:
        """Errors of observations.

        Parameters
        ----------
        sigma : ndarray, shape (2, n)
            Claimed standard deviations, east and north.
        visit : ndarray of int, shape (n,)
            Number of the visit that each observation belongs to, from 0 on.
        rng : numpy.random.Generator

        Returns
        -------
        ndarray, shape (2, n)
            In the unit of ``sigma``.
        """
        if self.kind == "claimed":
            return self.size * sigma * rng.standard_normal(sigma.shape)
        n_visits = int(visit.max(initial=-1)) + 1
        share = SHARE_OF_CLAIM * np.exp(SHARE_SPREAD * rng.standard_normal(n_visits))
        share = np.minimum(share, LARGEST_SHARE)
        offset = OFFSET * rng.standard_normal((2, n_visits))
        scatter = share[visit] * rng.standard_normal(sigma.shape)
        return self.size * sigma * (scatter + offset[:, visit])


def displaced(direction: FloatArray, offset: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Right ascension and declination of unit vectors (n, 3) moved on the sky, also at the poles.

    The offset, shape (2, n), is to the east and to the north [rad].
    """
    east, north = sky_basis(*radec(direction))
    return radec(direction + offset[0][:, None] * east + offset[1][:, None] * north)
