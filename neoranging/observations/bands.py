"""Photometric bands: from the magnitude that a station reports to the visual one.

The differences are those that the Minor Planet Center applies before it fits absolute magnitudes,
means over asteroids of usual colours (its page "Band conversions"). An unknown band, and a
magnitude without one, stays as it is: within half a magnitude it is visual.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from neoranging.typing import FloatArray, StrArray

TO_VISUAL: Final = {
    "U": -1.3,
    "B": -0.8,
    "V": 0.0,
    "R": 0.4,
    "I": 0.8,
    "J": 1.2,
    "H": 1.4,
    "K": 1.7,
    "u": 2.5,
    "g": -0.35,
    "r": 0.14,
    "i": 0.32,
    "z": 0.26,
    "y": 0.32,
    "w": -0.13,
    "c": -0.05,
    "o": 0.33,
    "G": 0.28,
    "C": 0.4,
    "W": 0.4,
    "L": 0.2,
    "Y": 0.7,
    "v": 0.0,
}
"""Visual magnitude minus that in the band, by the letter of the band."""


def visual(mag: FloatArray, band: StrArray) -> FloatArray:
    """Visual magnitudes of magnitudes (n,) in bands; NaN where there is none."""
    shift = np.zeros(len(mag))
    letter = band.astype("U1")
    for name in np.unique(letter).tolist():
        shift[letter == name] = TO_VISUAL.get(name, 0.0)
    return mag + shift
