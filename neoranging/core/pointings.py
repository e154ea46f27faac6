"""Fields of a telescope that cover a cloud of directions, by the greedy rule of maximum coverage.

The first field is where a square holds most of the draws, the next where it holds most of the rest,
and so on: no rule that is as quick covers more (Nemhauser, Wolsey & Fisher 1978: at least 63 % of
what the best choice of as many fields does, in practice nearly all). One half of the draws places
the fields and the other says what they hold. A cloud that is much wider than a field then does not
look covered because single draws are. What they say is pooled where it does not fall from field to
field, as the counts of a few draws scatter.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from scipy.optimize import isotonic_regression

from neoranging.core.compiled import announced, compiled
from neoranging.core.geometry import frame_about, norm
from neoranging.typing import BoolArray, FloatArray

MOST_FIELDS: Final = 50
"""Fields at most: a cloud that takes more is too wide for them."""

_ROUNDING: Final = 1e-12
"""A draw on the side of a square is in it."""


class Pointings(NamedTuple):
    """Square fields in the order in which to observe them."""

    direction: FloatArray
    """Unit vectors to the middles of F fields, shape (F, 3)."""
    probability: FloatArray
    """Probability that the object is in each and in none before, shape (F,); never rising."""


@announced("the choice of fields", 5)
@compiled
def _best_square(
    direction: FloatArray,
    east: FloatArray,
    north: FloatArray,
    weights: FloatArray,
    side: float,
    middle: FloatArray,
) -> None:
    """Middle of the square that holds most draws, each draw in turn on its western side."""
    n, most = len(direction), 0.0
    x, y, row = np.empty(n), np.empty(n), np.empty(n, dtype=np.int64)
    for i in range(n):
        if weights[i] == 0.0:
            continue
        count = 0
        for j in range(n):
            along = np.dot(direction[j], direction[i])
            if weights[j] == 0.0 or along <= 0.0:
                continue
            to_east = np.dot(direction[j], east[i]) / along
            to_north = np.dot(direction[j], north[i]) / along
            if -_ROUNDING <= to_east <= side and abs(to_north) <= side:
                x[count], y[count], row[count] = to_east, to_north, j
                count += 1
        order = np.argsort(y[:count])
        held, last = 0.0, 0
        for first in range(count):
            while last < count and y[order[last]] - y[order[first]] <= side:
                held += weights[row[order[last]]]
                last += 1
            if held > most:
                most = held
                east_end = 0.0
                for k in range(first, last):
                    east_end = max(east_end, x[order[k]])
                # the draws stand in the middle of their field
                to_east = 0.5 * east_end
                to_north = 0.5 * (y[order[first]] + y[order[last - 1]])
                for axis in range(3):
                    middle[axis] = (
                        direction[i, axis] + to_east * east[i, axis] + to_north * north[i, axis]
                    )
            held -= weights[row[order[first]]]


def in_field(middle: FloatArray, direction: FloatArray, side: float) -> BoolArray:
    """Flags of directions (n, 3) in a square field, whose sides run along ra and dec.

    Parameters
    ----------
    middle : ndarray, shape (3,)
        Unit vector to the middle of the field.
    direction : ndarray, shape (n, 3)
    side : float
        Length of a side [rad].
    """
    along, east, north = frame_about(middle) @ direction.T
    half = math.tan(0.5 * side) * along
    return np.asarray((along > 0.0) & (np.abs(east) <= half) & (np.abs(north) <= half))


def outline_of_field(middle: FloatArray, side: float) -> FloatArray:
    """Closed line around a square field, unit vectors, shape (K, 3); sides as of `in_field`."""
    edge = math.tan(0.5 * side) * np.linspace(-1.0, 1.0, 9)
    end = np.full(9, edge[-1])
    plane = [(edge, -end), (end, edge), (-edge, end), (-end, -edge)]
    east, north = np.concatenate(plane, axis=1)
    line = np.stack([np.ones(len(east)), east, north], axis=1) @ frame_about(middle)
    return np.asarray(line / norm(line)[:, None])


def cover(direction: FloatArray, weights: FloatArray, side: float, coverage: float) -> Pointings:
    """Fields that hold a share of the probability, as far as `MOST_FIELDS` do.

    They end as well where no field holds two draws of those that are left.

    Parameters
    ----------
    direction : ndarray, shape (n, 3)
        Draws, unit vectors, none NaN.
    weights : ndarray, shape (n,)
        Their probabilities, up to a factor.
    side : float
        Length of a side of a field [rad].
    coverage : float
        Share, between 0 and 1.
    """
    draws = np.ascontiguousarray(direction[::2])
    _, east, north = (np.ascontiguousarray(x) for x in np.moveaxis(frame_about(draws), 1, 0))
    rest, judges = weights[::2].copy(), direction[1::2]
    rest_of_judges = weights[1::2] / weights[1::2].sum()
    fields: list[FloatArray] = []
    shares: list[float] = []
    while rest.any() and len(fields) < MOST_FIELDS and sum(shares) < coverage:
        middle = np.empty(3)
        _best_square(draws, east, north, rest, 2.0 * math.tan(0.5 * side), middle)
        middle /= norm(middle)
        inside = in_field(middle, draws, side)
        if np.count_nonzero(rest[inside]) < 2:
            break  # a single draw says nothing of where the next ones are
        rest[inside] = 0.0
        fields.append(middle)
        inside = in_field(middle, judges, side)
        shares.append(float(rest_of_judges[inside].sum()))
        rest_of_judges[inside] = 0.0
    if fields:
        shares = isotonic_regression(shares, increasing=False).x.tolist()
    return Pointings(np.reshape(fields, (-1, 3)), np.array(shares))
