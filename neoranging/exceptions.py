"""Every error and warning of the package.

A message says what was got, what was needed and what to do. Leaves also inherit the builtin that a
caller would catch anyway, and carry the offending data as attributes where that helps.
"""

from __future__ import annotations

from typing import Any

from astropy.utils.exceptions import AstropyUserWarning

__all__ = [
    "AdmissibleRegionError",
    "EphemerisError",
    "EstimationError",
    "MissingDependencyError",
    "NeoRangingError",
    "NeoRangingWarning",
    "ObservationFormatError",
    "ObserverError",
    "OrbitError",
    "TrackletError",
    "UnknownMethodError",
    "UnknownSampleError",
    "UnknownStationError",
]


class NeoRangingError(Exception):
    """Base of all errors raised by neoranging."""


class ObservationFormatError(NeoRangingError, ValueError):
    """A file or table is not what its format promises; single odd records never raise this."""


class TrackletError(NeoRangingError, ValueError):
    """Observations that cannot form a tracklet: too few, wrong shape, non-finite, not one night."""


class ObserverError(NeoRangingError, ValueError):
    """The place of an observer is needed and not known."""


class UnknownStationError(ObserverError):
    """An observatory code without a position.

    Attributes
    ----------
    code : str
        The code that was asked for.
    """

    def __init__(self, message: str, code: str = "") -> None:
        super().__init__(message)
        self.code = code


class AdmissibleRegionError(NeoRangingError, ValueError):
    """An admissible region that cannot be built, or an empty one asked for points."""


class OrbitError(NeoRangingError, ValueError):
    """Vectors or elements that are no heliocentric orbit, or no orbit of the kind asked for."""


class EphemerisError(NeoRangingError, ValueError):
    """An epoch or a file that the ephemerides cannot serve."""


class UnknownMethodError(NeoRangingError, ValueError):
    """No estimator of that name is registered."""


class UnknownSampleError(NeoRangingError, ValueError):
    """No sample file of that name comes with the package."""


class MissingDependencyError(NeoRangingError, ImportError):
    """An optional package is missing; the message names the extra that brings it."""


class EstimationError(NeoRangingError, RuntimeError):
    """An estimate failed and ``on_failure="raise"`` was asked for.

    Attributes
    ----------
    estimate : RangeEstimate
        The partial result, with the status that says what happened.
    """

    def __init__(self, message: str, estimate: Any = None) -> None:
        super().__init__(message)
        self.estimate = estimate


class NeoRangingWarning(AstropyUserWarning):
    """Base of all warnings issued by neoranging."""
