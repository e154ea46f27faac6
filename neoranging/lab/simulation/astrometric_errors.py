"""Errors of simulated observations: smaller than they claim, and those of one visit alike.

The law that they are drawn from is that of `neoranging.core.noise`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, Self

import numpy as np

from neoranging.core.geometry import radec, sky_basis
from neoranging.core.noise import LARGEST_SHARE, OFFSET, SHARE_OF_CLAIM, SHARE_SPREAD
from neoranging.typing import FloatArray, IntArray

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
