"""Places of observers on the Earth: geodetic coordinates of records and Earth-fixed metres."""

from __future__ import annotations

from typing import Final

import erfa
import numpy as np

from neoranging.typing import FloatArray

WGS84: Final = 1  # ERFA's number of the ellipsoid
ALTITUDE_LIMITS_M: Final = (-1e3, 1e5)


def geodetic_to_itrf(geodetic: FloatArray) -> FloatArray:
    """Earth-fixed places [m] of geodetic ones, (N, 3), NaN where the latter are none.

    Geodetic are east longitude, latitude [deg] and altitude [m] on WGS 84.
    """
    longitude, latitude, altitude = geodetic.T
    valid = (np.abs(longitude) <= 360.0) & (np.abs(latitude) <= 90.0)
    valid &= (altitude > ALTITUDE_LIMITS_M[0]) & (altitude < ALTITUDE_LIMITS_M[1])
    itrf = np.full(geodetic.shape, np.nan)
    itrf[valid] = erfa.gd2gc(
        WGS84, np.radians(longitude[valid]), np.radians(latitude[valid]), altitude[valid]
    )
    return itrf


def itrf_to_geodetic(itrf: FloatArray) -> FloatArray:
    """East longitude [deg, 0 to 360), latitude [deg] and altitude [m] of Earth-fixed places [m]."""
    finite = np.isfinite(itrf).all(axis=1)
    geodetic = np.full(itrf.shape, np.nan)
    longitude, latitude, altitude = erfa.gc2gd(WGS84, itrf[finite])
    geodetic[finite] = np.stack(
        [np.degrees(longitude) % 360.0, np.degrees(latitude), altitude], axis=1
    )
    return geodetic
