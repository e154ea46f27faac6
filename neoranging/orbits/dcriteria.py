"""D criteria: how far apart two orbits are, as meteor science measures it.

Every function takes orbits as `OrbitalElements`, as an `Orbit` of boinor, poliastro or hapsira, or
as five Quantities ``(q, ecc, inc, raan, argp)`` in one common plane. Arrays broadcast: compare all
pairs with ``d_sh(first[:, None], second)``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from astropy import units as u

from neoranging.arguments import values_in
from neoranging.core import dcriteria as core
from neoranging.exceptions import OrbitError
from neoranging.orbits.elements import OrbitalElements, from_orbit
from neoranging.typing import FloatArray

_UNITS = {"q": u.au, "ecc": u.one, "inc": u.rad, "raan": u.rad, "argp": u.rad}


def _five(orbit: Any) -> list[FloatArray]:
    if hasattr(orbit, "attractor"):
        orbit = OrbitalElements.from_state(*from_orbit(orbit))
    if isinstance(orbit, OrbitalElements):
        orbit = [getattr(orbit, name) for name in _UNITS]
    if not isinstance(orbit, Sequence) or len(orbit) != len(_UNITS):
        raise OrbitError(
            f"got {orbit!r}; needed OrbitalElements, an Orbit of boinor, or the five Quantities "
            "(q, ecc, inc, raan, argp)"
        )
    return [
        values_in(name, x, unit, OrbitError)
        for x, (name, unit) in zip(orbit, _UNITS.items(), strict=True)
    ]


def _distance(
    criterion: Callable[[Any, Any], FloatArray], first: Any, second: Any, elliptic_only: bool
) -> Any:
    one, two = _five(first), _five(second)
    distance = criterion(one, two)
    if elliptic_only:
        distance = np.where((one[1] < 1.0) & (two[1] < 1.0), distance, np.nan)
    return distance if np.ndim(distance) else float(distance)


def d_sh(first: Any, second: Any, *, elliptic_only: bool = False) -> Any:
    """D of Southworth and Hawkins (1963): below 0.2 two orbits are by custom associated.

    Parameters
    ----------
    first, second : OrbitalElements, Orbit, or sequence of 5 Quantity
        The orbits; arrays broadcast.
    elliptic_only : bool
        Mark pairs of which one is unbound with NaN, for statistics over elliptic orbits. By default
        they are compared like the others: the formula asks only for q and e.

    Returns
    -------
    float or ndarray
        Dimensionless (the perihelion distances count in au).

    Raises
    ------
    OrbitError
        If an argument is none of the accepted kinds or lacks a unit.

    Examples
    --------
    >>> from astropy import units as u
    >>> shower = (0.95 * u.au, 0.7457, 30 * u.deg, 45 * u.deg, 152 * u.deg)
    >>> meteor = (0.95 * u.au, 0.9335, 32 * u.deg, 42 * u.deg, 153.694 * u.deg)
    >>> round(d_sh(shower, meteor), 3)
    0.193
    """
    return _distance(core.d_sh, first, second, elliptic_only)


def d_drummond(first: Any, second: Any, *, elliptic_only: bool = False) -> Any:
    """D of Drummond (1981), of relative differences and angles in units of 180 deg.

    Parameters, return value and errors are those of `d_sh`; the custom threshold is 0.105.
    """
    return _distance(core.d_drummond, first, second, elliptic_only)


def d_jopek(first: Any, second: Any, *, elliptic_only: bool = False) -> Any:
    """D of Jopek (1993), a hybrid: that of Southworth and Hawkins, q compared as by Drummond.

    Parameters, return value and errors are those of `d_sh`.
    """
    return _distance(core.d_jopek, first, second, elliptic_only)
