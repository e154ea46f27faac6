"""Every error and warning of the package.

A message says what was got, what was needed and what to do. Leaves also inherit the builtin that a
caller would catch anyway, and carry the offending data as attributes where that helps.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

from astropy.utils.exceptions import AstropyUserWarning


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


class CheckpointError(NeoRangingError, ValueError):
    """A file of weights that is damaged, of something else, or lacks its model card."""


class ConformalError(NeoRangingError, ValueError):
    """A calibration that cannot be made, or cannot tell what is asked of it.

    Attributes
    ----------
    needed, available : int or None
        Calibration arcs that the level needs, and those there are, where that is the matter.
    """

    def __init__(
        self, message: str, *, needed: int | None = None, available: int | None = None
    ) -> None:
        super().__init__(message)
        self.needed = needed
        self.available = available


class OrbitError(NeoRangingError, ValueError):
    """Vectors or elements that are no heliocentric orbit, or no orbit of the kind asked for."""


class BusyFolderError(NeoRangingError, BlockingIOError):
    """A folder in which another process is writing."""


class DatasetError(NeoRangingError, ValueError):
    """A set of arcs, or a column of one, that is not what it should be, or not finished."""


class EvaluationError(NeoRangingError, ValueError):
    """Predictions and truth that do not belong together, or too little of them to judge by."""


class EphemerisError(NeoRangingError, ValueError):
    """An epoch or a file that the ephemerides cannot serve."""


class OrbitFormatError(NeoRangingError, ValueError):
    """A file of orbital elements is not what its format promises."""


class DownloadError(NeoRangingError, ConnectionError):
    """A server did not deliver, after as many tries as politeness allows.

    Attributes
    ----------
    url : str
        What was asked for.
    status : int or None
        The last HTTP status; None where the connection itself failed.
    attempts : int
        Requests made.
    """

    def __init__(
        self, message: str, url: str = "", status: int | None = None, attempts: int = 1
    ) -> None:
        super().__init__(message)
        self.url = url
        self.status = status
        self.attempts = attempts


class ResourceNotFoundError(DownloadError, LookupError):
    """The server answered that it has nothing of that name."""


class CorruptFileError(NeoRangingError, ValueError):
    """A file that arrived cut short, as an error page, or otherwise not as what it should be."""


class TrainingError(NeoRangingError, RuntimeError):
    """A training that cannot begin, go on, or has lost its way to values that are not finite."""


class UnknownMethodError(NeoRangingError, ValueError):
    """No estimator of that name is registered."""


class UnknownSampleError(NeoRangingError, ValueError):
    """No sample file of that name comes with the package."""


class NotTrainedError(NeoRangingError, RuntimeError):
    """A network was asked for an estimate, or to be saved, before it was trained or loaded."""


class MissingDependencyError(NeoRangingError, ImportError):
    """An optional package is missing; the message says how to install it."""

    @classmethod
    def of(cls, purpose: str, package: str, extra: str = "", instead: str = "") -> Self:
        """Error for a package without which something cannot be done.

        Parameters
        ----------
        purpose : str
            What needs it, in the plural.
        package : str
            Its name in package indexes.
        extra : str
            The extra of this package that has it, "" if none.
        instead : str
            Another way.
        """
        wanted = f'"neoranging[{extra}]"' if extra else package
        otherwise = f", or {instead}" if instead else ""
        return cls(
            f"{purpose} need the package {package}, which is not installed: "
            f"`pip install {wanted}`{otherwise}"
        )


@contextmanager
def extra(name: str, purpose: str, instead: str = "") -> Iterator[None]:
    """Context in which packages of an extra are imported.

    Parameters
    ----------
    name : str
        The extra, as pyproject.toml declares it.
    purpose, instead : str
        As of `MissingDependencyError.of`.

    Raises
    ------
    MissingDependencyError
        If one of the packages is not installed; it names the extra.

    Examples
    --------
    >>> with extra("data", "files of Parquet", "take another format"):
    ...     from pyarrow import parquet
    """
    try:
        yield
    except ImportError as error:
        package = (error.name or str(error)).partition(".")[0].replace("_", "-")
        raise MissingDependencyError.of(purpose, package, name, instead) from error


class EstimationError(NeoRangingError, RuntimeError):
    """An estimate failed and ``on_failure="raise"`` was asked for, or a method broke its contract.

    Attributes
    ----------
    estimate : RangeEstimate
        The partial result, with the status that says what happened; None of a broken contract.
    """

    def __init__(self, message: str, estimate: Any = None) -> None:
        super().__init__(message)
        self.estimate = estimate


class NeoRangingWarning(AstropyUserWarning):
    """Base of all warnings issued by neoranging."""
