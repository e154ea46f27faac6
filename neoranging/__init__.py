"""Range and range-rate of a new near-Earth object from one night of astrometry.

>>> import neoranging as nr
>>> tracklets = nr.read_tracklets(nr.sample("2024YR4"))
>>> estimate = tracklets[0].estimate(method="gauss")

Importing the package registers its observation formats with astropy's tables and costs little: the
names below are loaded when they are first used.
"""

from __future__ import annotations

from neoranging import _interrupts

if _interrupts.is_command():
    _interrupts.end_at_once()  # before the imports that take long

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from neoranging import observations as _formats  # noqa: F401 (registers the table formats)
from neoranging._version import __version__

if TYPE_CHECKING:
    from neoranging.admissible_region import AdmissibleRegion
    from neoranging.attributable import Attributable
    from neoranging.conformal import Calibration
    from neoranging.dcriteria import d_drummond, d_jopek, d_sh
    from neoranging.estimate import RangeEstimate, RangeStatus
    from neoranging.estimators.base import RangingEstimator
    from neoranging.estimators.conformal import ConformalEstimator
    from neoranging.estimators.registry import (
        available_methods,
        get_estimator,
        register_estimator,
        unregister_estimator,
    )
    from neoranging.forming import read_tracklets
    from neoranging.observations.observatories import load_obscodes, register_observatory
    from neoranging.orbit import OrbitalElements
    from neoranging.samples import sample
    from neoranging.tracklet import Tracklet, TrackletSet

_WHERE = {
    "AdmissibleRegion": "admissible_region",
    "Attributable": "attributable",
    "Calibration": "conformal",
    "ConformalEstimator": "estimators.conformal",
    "OrbitalElements": "orbit",
    "RangeEstimate": "estimate",
    "RangeStatus": "estimate",
    "RangingEstimator": "estimators.base",
    "Tracklet": "tracklet",
    "TrackletSet": "tracklet",
    "available_methods": "estimators.registry",
    "d_drummond": "dcriteria",
    "d_jopek": "dcriteria",
    "d_sh": "dcriteria",
    "get_estimator": "estimators.registry",
    "load_obscodes": "observations.observatories",
    "read_tracklets": "forming",
    "register_estimator": "estimators.registry",
    "unregister_estimator": "estimators.registry",
    "register_observatory": "observations.observatories",
    "sample": "samples",
}

__all__ = [
    "AdmissibleRegion",
    "Attributable",
    "Calibration",
    "ConformalEstimator",
    "OrbitalElements",
    "RangeEstimate",
    "RangeStatus",
    "RangingEstimator",
    "Tracklet",
    "TrackletSet",
    "__version__",
    "available_methods",
    "d_drummond",
    "d_jopek",
    "d_sh",
    "get_estimator",
    "load_obscodes",
    "read_tracklets",
    "register_estimator",
    "register_observatory",
    "sample",
    "unregister_estimator",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    parts = {name for name, value in globals().items() if isinstance(value, ModuleType)}
    return sorted({*__all__, *parts} - {"_formats", "_interrupts", "_version"})
