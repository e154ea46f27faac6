"""Orbital elements of every conic, and back.

The size of an orbit is carried by its perihelion distance, which every conic has; the semimajor
axis follows (negative on a hyperbola, infinite on a parabola). Angles are in the axes of the
vectors: turn equatorial states with `neoranging.core.geometry.equatorial_to_ecliptic` first to get
the elements that catalogues list.

Where an angle does not exist, the origin of the next one moves to where it still does, so that a
state always survives the round trip:

======================  ==================================================
orbit                   convention
======================  ==================================================
circular                ``argp = 0``, ``nu`` counted from the node
in the reference plane  ``raan = 0``, ``argp`` counted from the x axis
both                    ``raan = argp = 0``, ``nu`` counted from the x axis
rectilinear             ``q = 0``, ``ecc = 1``, all angles NaN
======================  ==================================================

Elements are a poorer carrier than states near ``ecc = 1`` far from perihelion: eccentricity and
true anomaly, rounded to 16 digits, fix the distance to ``1e-16 / (1 + ecc cos nu)`` only. Keep the
state where that matters.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neoranging.constants import GM_SUN
from neoranging.core.geometry import dot, norm
from neoranging.typing import FloatArray

_DEGENERATE = 1e-14
"""Eccentricity, or sine of the inclination, at the level of rounding: its direction is noise."""

_TURN = 2.0 * np.pi


class Elements(NamedTuple):
    """Osculating elements, arrays of one shape; `elements_to_state` takes the first six."""

    q: FloatArray
    """Perihelion distance [au]."""
    ecc: FloatArray
    """Eccentricity."""
    inc: FloatArray
    """Inclination [rad] in [0, pi]."""
    raan: FloatArray
    """Longitude of the ascending node [rad] in [0, 2 pi)."""
    argp: FloatArray
    """Argument of perihelion [rad] in [0, 2 pi)."""
    nu: FloatArray
    """True anomaly [rad] in [-pi, pi]."""
    a: FloatArray
    """Semimajor axis [au]: negative on hyperbolas, infinite on a parabola."""


def state_to_elements(r: npt.ArrayLike, v: npt.ArrayLike, mu: float = GM_SUN) -> Elements:
    """Osculating elements of states.

    Parameters
    ----------
    r, v : array_like, shape (..., 3)
        Positions [au] and velocities [au/d] in the axes to which the angles shall refer.
    mu : float
        Gravitational parameter [au^3/d^2].

    Returns
    -------
    Elements
        Arrays of shape (...); NaN where a state is not finite, see the module for special orbits.
    """
    r, v = np.asarray(r, dtype=np.float64), np.asarray(v, dtype=np.float64)
    with np.errstate(all="ignore"):
        distance, eta = norm(r), dot(r, v)
        h = np.cross(r, v)
        h_norm = norm(h)
        p = h_norm * h_norm / mu
        ecc_cos_nu, ecc_sin_nu = p / distance - 1.0, h_norm * eta / (mu * distance)
        ecc = np.hypot(ecc_cos_nu, ecc_sin_nu)
        inc, raan, latitude = _orientation(r, h, h_norm)
        circular = ecc < _DEGENERATE
        nu = np.where(circular, latitude, np.arctan2(ecc_sin_nu, ecc_cos_nu))
        argp = np.where(circular, 0.0, latitude - nu)
        nu = np.where(np.isfinite(h_norm) & (h_norm > 0.0), nu, np.nan)
        a = mu / (2.0 * mu / distance - dot(v, v))
    return Elements(p / (1.0 + ecc), ecc, inc, _positive(raan), _positive(argp), nu, a)


def _orientation(
    r: FloatArray, h: FloatArray, h_norm: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Inclination, node, and angle in the orbit plane from the node to the position.

    The last comes from components along the node and across it, not from an arc cosine, so that
    ``argp + nu`` keeps all digits whatever the node does.
    """
    h_xy = np.hypot(h[..., 0], h[..., 1])
    in_plane = h_xy <= _DEGENERATE * h_norm
    raan = np.where(in_plane, 0.0, np.arctan2(h[..., 0], -h[..., 1]))
    cos_inc, sin_inc = h[..., 2] / h_norm, h_xy / h_norm
    cos_node, sin_node = np.cos(raan), np.sin(raan)
    along = r[..., 0] * cos_node + r[..., 1] * sin_node
    across = cos_inc * (r[..., 1] * cos_node - r[..., 0] * sin_node) + sin_inc * r[..., 2]
    raan = np.where(np.isfinite(cos_inc), raan, np.nan)
    return np.arctan2(sin_inc, cos_inc), raan, np.arctan2(across, along)


def _positive(angle: FloatArray) -> FloatArray:
    """Reduce to [0, 2 pi); a tiny negative angle would round up to 2 pi itself."""
    with np.errstate(invalid="ignore"):
        reduced = np.mod(angle, _TURN)
    return np.where(reduced >= _TURN, 0.0, reduced)


def elements_to_state(
    q: npt.ArrayLike,
    ecc: npt.ArrayLike,
    inc: npt.ArrayLike,
    raan: npt.ArrayLike,
    argp: npt.ArrayLike,
    nu: npt.ArrayLike,
    mu: float = GM_SUN,
) -> tuple[FloatArray, FloatArray]:
    """States of elements; arguments broadcast.

    Parameters
    ----------
    q : array_like
        Perihelion distance [au].
    ecc : array_like
        Eccentricity; ellipses, parabolas and hyperbolas alike.
    inc, raan, argp : array_like
        Inclination, longitude of the ascending node, argument of perihelion [rad].
    nu : array_like
        True anomaly [rad]; see `neoranging.core.kepler.true_anomaly` for mean anomalies.
    mu : float
        Gravitational parameter [au^3/d^2].

    Returns
    -------
    r, v : ndarray, shape (..., 3)
        Positions [au] and velocities [au/d] in the axes to which the angles refer. NaN where an
        element is not finite, ``q <= 0``, ``ecc < 0``, or a hyperbola does not reach ``nu``.
    """
    q, ecc, inc, raan, argp, nu = np.broadcast_arrays(
        *(np.asarray(x, dtype=np.float64) for x in (q, ecc, inc, raan, argp, nu))
    )
    with np.errstate(all="ignore"):
        p = np.where((q > 0.0) & (ecc >= 0.0), q * (1.0 + ecc), np.nan)
        # Sums near zero at the aphelion of a near-parabolic orbit: written without cancellation.
        double = 2.0 * np.square(np.cos(0.5 * nu))
        reach = (1.0 - ecc) + ecc * double
        distance = p / np.where(reach > 0.0, reach, np.nan)
        speed = np.sqrt(mu / p)
        towards, ahead = _plane_basis(inc, raan, argp)
        cos_nu, sin_nu = np.cos(nu), np.sin(nu)
        r = (distance * cos_nu)[..., None] * towards + (distance * sin_nu)[..., None] * ahead
        v_ahead = speed * ((ecc - 1.0) + double)
        v = (-speed * sin_nu)[..., None] * towards + v_ahead[..., None] * ahead
    return r, np.where(np.isfinite(r), v, np.nan)


def _plane_basis(
    inc: FloatArray, raan: FloatArray, argp: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Unit vectors in the orbit plane: towards perihelion, and 90 degrees ahead of it."""
    cos_node, sin_node = np.cos(raan), np.sin(raan)
    cos_inc, sin_inc = np.cos(inc), np.sin(inc)
    cos_argp, sin_argp = np.cos(argp), np.sin(argp)
    node = np.stack([cos_node, sin_node, np.zeros_like(sin_node)], axis=-1)
    across = np.stack([-cos_inc * sin_node, cos_inc * cos_node, sin_inc], axis=-1)
    towards = cos_argp[..., None] * node + sin_argp[..., None] * across
    ahead = cos_argp[..., None] * across - sin_argp[..., None] * node
    return towards, ahead
