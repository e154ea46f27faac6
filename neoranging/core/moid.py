"""Least distances between orbits and that of the Earth (MOID), for many orbits at once.

On a grid of true anomalies of an orbit the nearest point of the Earth's, an ellipse that is almost
a circle, lies almost at the same heliocentric longitude. Every local minimum of that distance along
the orbit is then followed in both anomalies by Newton's method. The grid is even in the true
anomaly, so that a comet's orbit is as fine near the Earth's as an asteroid's.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from neoranging.constants import MJD_J2000
from neoranging.core.geometry import dot
from neoranging.typing import FloatArray

_EARTH: Final = {
    "a": (1.00000261, 0.00000562),
    "ecc": (0.01671123, -0.00004392),
    "inc_deg": (-0.00001531, -0.01294668),
    "perihelion_deg": (102.93768193, 0.32327364),
}
"""Mean elements of the barycentre of Earth and Moon, ecliptic J2000, and their change a century:
Standish & Williams, Approximate Positions of the Planets (JPL), table 1, for 1800 to 2050. The node
is at longitude zero. They differ from osculating elements by less than 1e-4 au along the orbit."""

_GRID = 120
"""True anomalies of the first pass: 3 degrees, 0.05 au or a little more where the orbits cross."""

_STEPS = 10
_LONGEST_STEP = 0.1
"""Steps of Newton's method, and the longest of them [rad]."""

_CHUNK = 1024
"""Orbits worked on at once: their grids stay in the processor's cache."""


class _Orbits(NamedTuple):
    """Conics as points of their true anomaly: N of them."""

    p: FloatArray
    """Semilatus rectum [au]."""
    ecc: FloatArray
    x: FloatArray
    """Unit vector to the perihelion, shape (N, 3)."""
    y: FloatArray
    """Unit vector in the plane, a quarter of a turn on."""

    @classmethod
    def of(
        cls, q: FloatArray, ecc: FloatArray, inc: FloatArray, raan: FloatArray, argp: FloatArray
    ) -> _Orbits:
        cos_i, sin_i, cos_n, sin_n = np.cos(inc), np.sin(inc), np.cos(raan), np.sin(raan)
        node = np.stack([cos_n, sin_n, np.zeros_like(cos_n)], axis=-1)
        across = np.stack([-sin_n * cos_i, cos_n * cos_i, sin_i], axis=-1)
        cos_w, sin_w = np.cos(argp)[..., None], np.sin(argp)[..., None]
        return cls(
            q * (1.0 + ecc), ecc, cos_w * node + sin_w * across, cos_w * across - sin_w * node
        )

    def take(self, row: npt.NDArray) -> _Orbits:
        return _Orbits._make(column[row] for column in self)

    def point(self, nu: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Position at a true anomaly (N,) and its first two derivatives by it, each (N, 3)."""
        c, s = np.cos(nu)[:, None], np.sin(nu)[:, None]
        p, ecc = self.p[:, None], self.ecc[:, None]
        g = 1.0 / (1.0 + ecc * c)
        outward = c * self.x + s * self.y
        turned = (ecc + c) * self.y - s * self.x
        bent = 2.0 * ecc * s * g * turned - outward
        return p * g * outward, p * g * g * turned, p * g * g * bent


def earth_moid(
    q: npt.ArrayLike,
    ecc: npt.ArrayLike,
    inc: npt.ArrayLike,
    raan: npt.ArrayLike,
    argp: npt.ArrayLike,
    epoch: npt.ArrayLike,
) -> FloatArray:
    """Least distance between orbits and that of the Earth [au], good to some 1e-5 au.

    Parameters
    ----------
    q : array_like, shape (...)
        Perihelion distances [au], of any conic.
    ecc : array_like
        Eccentricities.
    inc, raan, argp : array_like
        Angles [rad], ecliptic J2000.
    epoch : array_like
        Epochs of the Earth's orbit [MJD TDB].

    Returns
    -------
    ndarray, shape (...)
        NaN where an element is not finite.
    """
    arrays = (np.asarray(x, dtype=np.float64) for x in (q, ecc, inc, raan, argp, epoch))
    columns = np.broadcast_arrays(*arrays)
    shape = columns[0].shape
    flat = [column.ravel() for column in columns]
    out = np.full(flat[0].size, np.nan)
    finite = np.flatnonzero(np.isfinite(flat).all(axis=0))
    for start in range(0, len(finite), _CHUNK):
        rows = finite[start : start + _CHUNK]
        out[rows] = _least_distance(
            _Orbits.of(*(column[rows] for column in flat[:5])), _earth(flat[5][rows])
        )
    return out.reshape(shape)


def _earth(epoch: FloatArray) -> _Orbits:
    century = (epoch - MJD_J2000) / 36525.0
    a, ecc, inc, perihelion = (start + change * century for start, change in _EARTH.values())
    angles = np.radians(inc), np.zeros_like(inc), np.radians(perihelion)
    return _Orbits.of(a * (1.0 - ecc), ecc, *angles)


# an open conic does not reach all true anomalies; what is not finite is no minimum
@np.errstate(all="ignore")
def _least_distance(orbits: _Orbits, earth: _Orbits) -> FloatArray:
    nu = np.linspace(-np.pi, np.pi, _GRID, endpoint=False)
    r = orbits.p[:, None] / (1.0 + orbits.ecc[:, None] * np.cos(nu))
    r = np.where(r > 0.0, r, np.inf)
    # position in the axes of the Earth's orbit
    axes = (earth.x, earth.y, np.cross(earth.x, earth.y))
    x, y, z = (
        r * (dot(orbits.x, axis)[:, None] * np.cos(nu) + dot(orbits.y, axis)[:, None] * np.sin(nu))
        for axis in axes
    )
    # cosine and sine of the longitude, turned without ever computing the angle: it is of a grid
    far = np.sqrt(x * x + y * y)
    cos, sin = x / far, y / far
    p, ecc = earth.p[:, None], earth.ecc[:, None]
    for _ in range(2):  # the foot on a circle about the point where the ellipse is
        radius = p / (1.0 + ecc * cos)
        # of an almost circular ellipse the normal leans by ecc sin(longitude)
        along, across = x * cos + y * sin, y * cos - x * sin
        across -= ecc * sin * (radius - along)
        turn = np.sqrt(along * along + across * across)
        cos, sin = (cos * along - sin * across) / turn, (sin * along + cos * across) / turn
    radius = p / (1.0 + ecc * cos)
    square = (x - radius * cos) ** 2 + (y - radius * sin) ** 2 + z**2
    square = np.where(np.isfinite(square), square, np.inf)
    lowest = (square <= np.roll(square, 1, axis=1)) & (square <= np.roll(square, -1, axis=1))
    row, place = np.nonzero(lowest & np.isfinite(square))
    longitude = np.arctan2(sin[row, place], cos[row, place])
    least = _descended(orbits.take(row), earth.take(row), nu[place], longitude)
    return np.sqrt(np.minimum.reduceat(least, np.flatnonzero(np.diff(row, prepend=-1))))


def _descended(
    orbits: _Orbits, earth: _Orbits, nu: FloatArray, longitude: FloatArray
) -> FloatArray:
    """Square of the distance at the minimum near two true anomalies."""
    best = np.full(len(nu), np.inf)
    for _ in range(_STEPS):
        p, p1, p2 = orbits.point(nu)
        e, e1, e2 = earth.point(longitude)
        gap = p - e
        best = np.fmin(best, dot(gap, gap))
        slope = dot(gap, p1), -dot(gap, e1)
        bend = dot(p1, p1), -dot(p1, e1), dot(e1, e1)
        first, last = bend[0] + dot(gap, p2), bend[2] - dot(gap, e2)
        # near a saddle the second derivatives of the paths are left out, and all steps lead down
        convex = (first > 0.0) & (first * last > bend[1] ** 2)
        first, last = np.where(convex, first, bend[0]), np.where(convex, last, bend[2])
        determinant = first * last - bend[1] ** 2 + 1e-14 * first * last
        steps = (
            (bend[1] * slope[1] - last * slope[0]) / determinant,
            (bend[1] * slope[0] - first * slope[1]) / determinant,
        )
        length = np.hypot(*steps)
        shorter = np.minimum(1.0, _LONGEST_STEP / length)
        shorter = np.where(np.isfinite(length), shorter, 0.0)
        nu = nu + np.where(shorter > 0.0, steps[0], 0.0) * shorter
        longitude = longitude + np.where(shorter > 0.0, steps[1], 0.0) * shorter
    return best
