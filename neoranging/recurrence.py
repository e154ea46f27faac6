"""Groups of observations that come again in a later piece of the input, found in little memory.

As long as the names of tracklets rise from piece to piece, as texts or as numbers, none can come
again. Where they do not, every group is held by a number of eight bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from neoranging.grouping import Identities
from neoranging.typing import IntArray

_OF_NIGHT: Final = np.uint64(0x9E3779B97F4A7C15)
"""Odd factor of the number of a night."""


def keys_of(identities: Identities) -> IntArray:
    """Number of 64 bits for each group, the same in every process: sums of products, mod 2^64."""
    key = identities.night.astype(np.uint64) * _OF_NIGHT
    for seed, texts in enumerate((identities.label, identities.station)):
        characters = np.ascontiguousarray(texts).view(np.uint32).reshape(len(texts), -1)
        rng, width = np.random.default_rng(seed), characters.shape[1]
        factor = rng.integers(2**64, size=width, dtype=np.uint64) | np.uint64(1)
        key = key + (characters * factor).sum(axis=1, dtype=np.uint64)
    return key  # type: ignore[return-value]


def bounds_of(identities: Identities) -> dict[str, list[Any]]:
    """The first and the last of the names, in the order of texts and in that of numbers."""
    names = identities.label.tolist()
    if not names:
        return {}
    length = np.strings.str_len(identities.label)
    low, high = int(length.min()), int(length.max())
    return {
        "text": [min(names), max(names)],
        "number": [
            [low, min(identities.label[length == low].tolist())],
            [high, max(identities.label[length == high].tolist())],
        ],
    }


class Seen:
    """Groups of the pieces so far.

    Parameters
    ----------
    keys_of_piece : callable
        `keys_of` a former piece by its number; called if names do not rise.
    """

    def __init__(self, keys_of_piece: Callable[[int], IntArray]) -> None:
        self._keys_of_piece = keys_of_piece
        self._highest: dict[str, Any] = {"text": None, "number": None}
        self._runs: list[IntArray] | None = None  # sorted, each longer than the next

    def add(self, number: int, keys: IntArray, bounds: Mapping[str, Sequence[Any]]) -> int | None:
        """Take the next piece in; the place of a group that was there before, None without one."""
        if not bounds:
            return None
        for order, highest in list(self._highest.items()):
            low, high = bounds[order]
            if highest is None or low > highest:
                self._highest[order] = high
            else:
                del self._highest[order]
        if self._highest:
            return None
        if self._runs is None:
            self._runs = []
            for former in range(number):
                self._keep(self._runs, self._keys_of_piece(former))
        for run in self._runs:
            place = np.minimum(np.searchsorted(run, keys), len(run) - 1)
            again = np.flatnonzero(run[place] == keys)
            if len(again):
                return int(again[0])
        self._keep(self._runs, keys)
        return None

    @staticmethod
    def _keep(runs: list[IntArray], keys: IntArray) -> None:
        """Merge keys into runs, so that there are few of them and each is copied seldom."""
        while runs and len(runs[-1]) <= len(keys):
            keys = np.concatenate([runs.pop(), keys])
        if len(keys):
            runs.append(np.sort(keys))
