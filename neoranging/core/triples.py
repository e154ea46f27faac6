"""Vectors of compiled code: tuples of three numbers, which registers hold where arrays would not.

The functions of ``neoranging.core.geometry`` are those of many vectors at once; these are of one.
"""

from __future__ import annotations

import math

from neoranging.core.compiled import compiled
from neoranging.typing import FloatArray

Triple = tuple[float, float, float]


@compiled
def row(array: FloatArray, k: int) -> Triple:
    """Row of an array of vectors."""
    return array[k, 0], array[k, 1], array[k, 2]


@compiled
def dot3(a: Triple, b: Triple) -> float:
    """Scalar product."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@compiled
def cross3(a: Triple, b: Triple) -> Triple:
    """Vector product."""
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


@compiled
def minus3(a: Triple, b: Triple) -> Triple:
    """Difference."""
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]


@compiled
def scaled3(factor: float, a: Triple) -> Triple:
    """Multiple of a vector."""
    return factor * a[0], factor * a[1], factor * a[2]


@compiled
def plus3(a: Triple, factor: float, b: Triple) -> Triple:
    """Sum of a vector and a multiple of another."""
    return a[0] + factor * b[0], a[1] + factor * b[1], a[2] + factor * b[2]


@compiled
def combined3(x: float, a: Triple, y: float, b: Triple) -> Triple:
    """Sum of multiples of two vectors."""
    return x * a[0] + y * b[0], x * a[1] + y * b[1], x * a[2] + y * b[2]


@compiled
def length3(a: Triple) -> float:
    """Euclidean length."""
    return math.sqrt(dot3(a, a))


@compiled
def axes3(direction: Triple) -> tuple[Triple, Triple]:
    """Unit vectors to the east and to the north of a direction of unit length."""
    x, y, z = direction
    cos_dec = math.sqrt(x * x + y * y)
    cos_ra, sin_ra = x / cos_dec, y / cos_dec
    return (-sin_ra, cos_ra, 0.0), (-z * cos_ra, -z * sin_ra, cos_dec)
