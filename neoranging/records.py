"""What was read, what is used, and why the rest is not: counts that add up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from neoranging.exceptions import DatasetError
from neoranging.typing import BoolArray


@dataclass(frozen=True)
class Counts:
    """Counts of one kind of thing; ``n_read == n_used + sum(dropped.values())`` always.

    Attributes
    ----------
    n_read, n_used : int
    dropped : mapping of str to int
        By reason.

    Raises
    ------
    DatasetError
        If they do not add up.
    """

    n_read: int = 0
    n_used: int = 0
    dropped: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        lost = sum(self.dropped.values())
        if self.n_read != self.n_used + lost:
            raise DatasetError(f"{self.n_read} read, but {self.n_used} used and {lost} dropped")

    def __add__(self, other: Counts) -> Counts:
        dropped = Counter(self.dropped) + Counter(other.dropped)
        return Counts(self.n_read + other.n_read, self.n_used + other.n_used, dict(dropped))

    def then(self, step: Counts) -> Counts:
        """Counts of two steps in a row, the second of which takes what this one leaves."""
        dropped = Counter(self.dropped) + Counter(step.dropped)
        return Counts(self.n_read, step.n_used, dict(dropped))

    def __str__(self) -> str:
        lines = [f"{self.n_read} read, {self.n_used} used"]
        ordered = sorted(self.dropped.items(), key=lambda item: -item[1])
        return "\n".join(lines + [f"  {count:8d} dropped: {reason}" for reason, count in ordered])


@dataclass(frozen=True)
class Account:
    """Counts by kind of thing, for example ``"observations"`` and ``"arcs"``."""

    counts: Mapping[str, Counts] = field(default_factory=dict)

    @classmethod
    def total(cls, accounts: Iterable[Account]) -> Account:
        """Sum of accounts."""
        total: dict[str, Counts] = {}
        for account in accounts:
            for kind, counts in account.counts.items():
                total[kind] = total.get(kind, Counts()) + counts
        return cls(total)

    def __add__(self, other: Account) -> Account:
        return self.total([self, other])

    def to_json(self) -> dict[str, Any]:
        """Plain dictionaries, as the manifest of a set has them."""
        return {
            kind: {"n_read": c.n_read, "n_used": c.n_used, "dropped": dict(c.dropped)}
            for kind, c in self.counts.items()
        }

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> Account:
        """Inverse of `to_json`.

        Raises
        ------
        DatasetError
            If it is no account.
        """
        try:
            return cls({kind: Counts(**counts) for kind, counts in plain.items()})
        except (AttributeError, TypeError) as error:
            raise DatasetError(f"no account of what was read and used: {error}") from error

    def __str__(self) -> str:
        return "\n".join(f"{kind}: {counts}" for kind, counts in self.counts.items())


class Sieve:
    """Drop some of n things, reason by reason; the first reason found stands.

    Parameters
    ----------
    n : int
        All kept at first.
    """

    def __init__(self, n: int) -> None:
        self.keep = np.ones(n, dtype=bool)
        self._dropped: dict[str, int] = {}

    def drop(self, reason: str, bad: BoolArray) -> None:
        """Drop those of ``bad`` (n,) that are still kept."""
        count = int(np.sum(bad & self.keep))
        if count:
            self._dropped[reason] = self._dropped.get(reason, 0) + count
            self.keep = self.keep & ~bad

    @property
    def counts(self) -> Counts:
        """How many were read, are kept, and were dropped."""
        return Counts(len(self.keep), int(self.keep.sum()), dict(self._dropped))
