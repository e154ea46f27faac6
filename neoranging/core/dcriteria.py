"""Distances between orbits: the D criteria of meteor science.

Each compares five elements ``(q, ecc, inc, raan, argp)``: arrays [au, -, rad, rad, rad] in one
common plane, which broadcast, so that ``[x[:, None] for x in a]`` against ``b`` gives a matrix.
The formulae ask only for q and e and are evaluated for unbound orbits too, although their authors
had elliptic ones in mind. NaN in any element gives NaN.

References
----------
Southworth, R. B. and Hawkins, G. S. 1963, Smithson. Contrib. Astrophys. 7, 261.
Drummond, J. D. 1981, Icarus 45, 545.
Jopek, T. J. 1993, Icarus 106, 603.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from neoranging.typing import BoolArray, FloatArray

OrbitFive = Sequence[FloatArray]
"""Arrays q, ecc, inc, raan, argp."""


def d_sh(first: OrbitFive, second: OrbitFive) -> FloatArray:
    """Southworth and Hawkins' D, in which q counts in au.

    Parameters
    ----------
    first, second : sequence of 5 arrays
        ``q, ecc, inc, raan, argp`` [au, -, rad, rad, rad].

    Returns
    -------
    ndarray
        Dimensionless; the broadcast shape. Below 0.2 by custom "associated".
    """
    q1, q2 = first[0], second[0]
    return np.sqrt((q2 - q1) ** 2 + _eccentricity_and_plane(first, second))


def d_sh_of_ellipses(orbit: FloatArray, reference: FloatArray) -> tuple[FloatArray, BoolArray]:
    """D of Southworth and Hawkins between orbits (M, 5), and flags of pairs of ellipses.

    D is NaN where one of the two is no ellipse.
    """
    both = (orbit[:, 1] < 1.0) & (reference[:, 1] < 1.0)
    # a straight fall into the Sun has no plane: comparable with nothing, like the unbound
    both &= np.isfinite(orbit).all(axis=1) & np.isfinite(reference).all(axis=1)
    distance = np.full(len(both), np.nan)
    distance[both] = d_sh(tuple(orbit[both].T), tuple(reference[both].T))
    return distance, both


def d_jopek(first: OrbitFive, second: OrbitFive) -> FloatArray:
    """Jopek's D_H: Southworth and Hawkins' D with the perihelion term of Drummond.

    Parameters and return value are those of `d_sh`.
    """
    q1, q2 = first[0], second[0]
    return np.sqrt(_contrast(q1, q2) ** 2 + _eccentricity_and_plane(first, second))


def d_drummond(first: OrbitFive, second: OrbitFive) -> FloatArray:
    """Drummond's D: relative differences of q and e, angles between planes and perihelia.

    Parameters and return value are those of `d_sh`. The angle between the directions of perihelion
    is taken from their vectors; the published form by longitude and latitude is the same angle.
    """
    e1, e2 = first[1], second[1]
    mutual = 2.0 * np.arcsin(np.minimum(1.0, np.sqrt(_half_inclination_squared(first, second))))
    apsidal = _perihelion_angle(first, second)
    return np.sqrt(
        _contrast(e1, e2) ** 2
        + _contrast(first[0], second[0]) ** 2
        + (mutual / np.pi) ** 2
        + (0.5 * (e1 + e2) * apsidal / np.pi) ** 2
    )


def _contrast(x1: FloatArray, x2: FloatArray) -> FloatArray:
    """Difference over sum; two circular orbits do not differ."""
    total = np.asarray(x1 + x2, dtype=np.float64)
    return np.asarray(x1 - x2) / np.where(total == 0.0, 1.0, total)


def _half_inclination_squared(first: OrbitFive, second: OrbitFive) -> FloatArray:
    """Squared sine of half the angle between the orbit planes."""
    i1, i2, node = first[2], second[2], second[3] - first[3]
    return np.sin(0.5 * (i2 - i1)) ** 2 + np.sin(i1) * np.sin(i2) * np.sin(0.5 * node) ** 2


def _eccentricity_and_plane(first: OrbitFive, second: OrbitFive) -> FloatArray:
    _, e1, i1, node1, argp1 = first
    _, e2, i2, node2, argp2 = second
    node = node2 - node1
    # Published as an arcsine whose sign flips when the nodes are more than 180 deg apart; the
    # arctangent of the same triangle is right on both sides, and at a mutual angle of 180 deg.
    shift = 2.0 * np.arctan2(
        np.cos(0.5 * (i2 + i1)) * np.sin(0.5 * node), np.cos(0.5 * (i2 - i1)) * np.cos(0.5 * node)
    )
    apsidal = argp2 - argp1 + shift
    return (
        (e2 - e1) ** 2
        + 4.0 * _half_inclination_squared(first, second)
        + ((e1 + e2) * np.sin(0.5 * apsidal)) ** 2
    )


def _perihelion_direction(orbit: OrbitFive) -> tuple[FloatArray, FloatArray, FloatArray]:
    _, _, inc, node, argp = orbit
    along, across = np.cos(argp), np.sin(argp) * np.cos(inc)
    return (
        along * np.cos(node) - across * np.sin(node),
        along * np.sin(node) + across * np.cos(node),
        np.sin(argp) * np.sin(inc),
    )


def _perihelion_angle(first: OrbitFive, second: OrbitFive) -> FloatArray:
    pairs = zip(_perihelion_direction(first), _perihelion_direction(second), strict=True)
    # Half-angle form of the chord and its complement: exact for small and for large angles.
    minus, plus = (np.asarray(0.0), np.asarray(0.0))
    for a, b in pairs:
        minus, plus = minus + (a - b) ** 2, plus + (a + b) ** 2
    return 2.0 * np.arctan2(np.sqrt(minus), np.sqrt(plus))
