"""Classes of orbits near the Earth, and other statements about elements, by their names.

===============  ================================================================
name             orbit
===============  ================================================================
``"neo"``        perihelion below 1.3 au
``"atira"``      aphelion below 0.983 au
``"aten"``       semimajor axis below 1 au, aphelion beyond 0.983 au
``"apollo"``     semimajor axis above 1 au, perihelion below 1.017 au
``"amor"``       perihelion from 1.017 to 1.3 au
``"main-belt"``  semimajor axis from 2 to 3.2 au, perihelion beyond 1.666 au
``"moid<0.05"``  least distance from the Earth's orbit below so many au; any number
===============  ================================================================

The limits are those of JPL (the pages of CNEOS on NEO groups and of the Small-Body Database on
orbit classes). Atira to Amor divide the elliptic orbits of ``"neo"`` among them.
"""

from __future__ import annotations

import re
from typing import Final

import numpy as np
from astropy import units as u

from neoranging.arguments import did_you_mean
from neoranging.exceptions import OrbitError
from neoranging.orbits.elements import OrbitalElements
from neoranging.typing import BoolArray

_EARTH_PERIHELION, _EARTH_APHELION = 0.983, 1.017
_NEAR_EARTH = 1.3

_NEAREST, _FARTHEST = 0.98, 1.02
"""Distances from the Sun that the Earth keeps within [au]."""

_MOID: Final = re.compile(r"moid\s*<\s*(\d*\.?\d+)(?:\s*au)?")


def statement_holds(statement: str, elements: OrbitalElements) -> BoolArray:
    """Flags of orbits of which a statement is true, in the shape of the elements.

    Parameters
    ----------
    statement : str
        One of the names above; case does not matter.
    elements : OrbitalElements
        Orbits. Of those that are not elliptic all classes but ``"neo"`` are false.

    Raises
    ------
    OrbitError
        If there is no such statement.
    """
    name = statement.strip().casefold()
    moid = _MOID.fullmatch(name)
    q, ecc = elements.q.to_value(u.au), elements.ecc.value
    with np.errstate(divide="ignore", invalid="ignore"):
        a, aphelion = q / (1.0 - ecc), q * (1.0 + ecc) / (1.0 - ecc)
    if moid:
        limit = float(moid[1])
        # most orbits of the main belt are out of reach: no search for their nearest points
        near = (q < _FARTHEST + limit) & ((aphelion > _NEAREST - limit) | (ecc >= 1.0))
        flags = np.atleast_1d(near)
        if flags.any():
            reach = elements[flags] if near.shape else elements
            with np.errstate(invalid="ignore"):
                flags[flags] = reach.earth_moid().to_value(u.au) < limit
        return flags.reshape(near.shape)[()]
    with np.errstate(invalid="ignore"):
        near, bound = q < _NEAR_EARTH, ecc < 1.0
        classes = {
            "neo": near,
            "atira": bound & (aphelion < _EARTH_PERIHELION),
            "aten": bound & (a < 1.0) & (aphelion >= _EARTH_PERIHELION),
            "apollo": bound & (a >= 1.0) & (q < _EARTH_APHELION),
            "amor": bound & near & (q >= _EARTH_APHELION),
            "main-belt": bound & (a > 2.0) & (a < 3.2) & (q > 1.666),
        }
    if name not in classes:
        raise OrbitError(
            f"no statement {statement!r}{did_you_mean(name, classes)}: choose one of "
            f"{', '.join(classes)}, moid<0.05 with any number of au, or give a function of "
            "OrbitalElements"
        )
    return classes[name]
