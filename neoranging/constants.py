"""Physical constants in the units of the numeric core: au, day, radian.

Each value stands beside its source; nothing else in the package writes one down.
"""

from __future__ import annotations

import math
from typing import Final

AU_M: Final = 149_597_870_700.0
"""Metres per astronomical unit; exact (IAU 2012 Resolution B2)."""

DAY_S: Final = 86_400.0
"""Seconds per day; exact."""

AU_KM: Final = AU_M / 1e3
"""Kilometres per astronomical unit."""

C_AU_PER_DAY: Final = 299_792_458.0 * DAY_S / AU_M
"""Speed of light [au/d]; exact (SI second and metre, IAU 2012 B2)."""

GM_SUN: Final = 2.959_122_082_841_195_6e-4
"""Heliocentric gravitational parameter [au^3/d^2] of JPL DE440 (Park et al. 2021, AJ 161, 105).

It differs from the square of Gauss's constant by 5e-12 and from astropy's and poliastro's
TCB-compatible nominal value by 1.5e-8: orbits are exchanged as state vectors, never as elements.
"""

GM_EARTH: Final = 8.887_692_446_706_8e-10
"""Geocentric gravitational parameter [au^3/d^2] of JPL DE440, 398600.435507 km^3/s^2."""

GM_MOON: Final = 1.093_189_461_713_067_4e-11
"""Selenocentric gravitational parameter [au^3/d^2] of JPL DE440, 4902.800118 km^3/s^2."""

GM_PLANETS: Final = {
    name: km3_s2 * DAY_S**2 / AU_KM**3
    for name, km3_s2 in {
        "mercury": 22_031.868_551,
        "venus": 324_858.592,
        "mars": 42_828.375_816,
        "jupiter": 126_712_764.1,
        "saturn": 37_940_584.841_8,
        "uranus": 5_794_556.4,
        "neptune": 6_836_527.100_58,
    }.items()
}
"""Gravitational parameters [au^3/d^2] of the planets but the Earth, with their satellites, of JPL
DE440 (Park et al. 2021, AJ 161, 105, table 2)."""

R_EARTH: Final = 6_378_137.0 / AU_M
"""Equatorial radius of the Earth [au] (GRS 80 / WGS 84)."""

R_EARTH_M: Final = 6_378_137.0
"""Equatorial radius of the Earth [m] (GRS 80 / WGS 84); the unit of the MPC parallax constants."""

OBLIQUITY_J2000: Final = math.radians(84_381.448 / 3600.0)
"""Obliquity of the ecliptic at J2000.0 [rad], IAU 1976: the one of MPC, JPL, OrbFit elements."""

ARCSEC: Final = math.radians(1.0 / 3600.0)
"""One arcsecond [rad]."""

MJD_JD: Final = 2_400_000.5
"""Julian date of MJD 0."""

MJD_J2000: Final = 51_544.5
"""J2000.0 as a modified Julian date (TT, here TDB)."""

EARTH_ROTATION_RATE: Final = 2.0 * math.pi * 1.002_737_811_911_354_48
"""Rotation rate of the Earth [rad/d of UT1] (IERS Conventions 2010, eq. 5.15)."""

TT_TAI_S: Final = 32.184
"""TT - TAI [s]; exact (IAU 1991 Resolution A4)."""
