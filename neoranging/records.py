"""Account of records: read = used + set aside, with the reasons.

Files, tables, tracklets, arcs and downloads are all accounted for in this form. A step that takes
some of n records judges them with `Rejections`; its result is a `RecordCount`, which refuses to be
built if its sum does not balance. `Account` holds the counts of several kinds of record.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from neoranging.exceptions import DatasetError, NeoRangingError
from neoranging.typing import BoolArray


def many(count: int, thing: str) -> str:
    """Count of things in words, "1 record" or "2 records"."""
    return f"{count} {thing}{'s' * (count != 1)}"


@dataclass(frozen=True)
class RecordCount:
    """Number of records read, used and set aside.

    Attributes
    ----------
    n_read, n_used : int
    reasons : mapping of str to int
        Records set aside for each reason that occurred.

    Raises
    ------
    NeoRangingError
        If ``n_read == n_used + sum(reasons.values())`` does not hold.
    """

    n_read: int = 0
    n_used: int = 0
    reasons: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.n_read != self.n_used + self.n_set_aside:
            raise NeoRangingError(
                f"{self.n_read} records were read but {self.n_used} used and {self.n_set_aside} "
                "set aside: some were lost or counted twice; please report this"
            )

    @property
    def n_set_aside(self) -> int:
        """Number of records that are not used."""
        return sum(self.reasons.values())

    def __add__(self, other: RecordCount) -> RecordCount:
        reasons = Counter(self.reasons) + Counter(other.reasons)
        return RecordCount(self.n_read + other.n_read, self.n_used + other.n_used, dict(reasons))

    def then(self, step: RecordCount) -> RecordCount:
        """Count of two steps, of which the second reads what the first one uses."""
        reasons = Counter(self.reasons) + Counter(step.reasons)
        return RecordCount(self.n_read, step.n_used, dict(reasons))

    def headline(self, thing: str = "record") -> str:
        """Return the count in one line, without the reasons.

        Parameters
        ----------
        thing : str
            One of the things counted.
        """
        return f"{many(self.n_read, thing)}, {self.n_used} used, {self.n_set_aside} set aside"

    def reason_lines(self) -> list[str]:
        """One line for each reason, the most frequent first."""
        ordered = sorted(self.reasons.items(), key=lambda item: -item[1])
        return [f"  {count:6d} set aside: {reason}" for reason, count in ordered]

    def __str__(self) -> str:
        return "\n".join([self.headline(), *self.reason_lines()])


class Rejections:
    """Reasons to set some of n records aside, gathered check by check; the first one stands.

    Parameters
    ----------
    n : int
        Number of records, all usable at first.
    """

    def __init__(self, n: int) -> None:
        self._code = np.zeros(n, dtype=np.int16)  # 0 is usable, else 1 + index into _found
        self._found: list[tuple[str, str]] = []

    @property
    def usable(self) -> BoolArray:
        """Records that no check has rejected, (n,)."""
        return np.asarray(self._code == 0)

    def reject(self, rows: BoolArray, reason: str, detail: str = "") -> None:
        """Set the usable ones among ``rows`` (n,) aside.

        Parameters
        ----------
        rows : ndarray of bool, shape (n,)
        reason : str
            Sentence by which records are counted.
        detail : str
            Defect of these records, where the reason alone does not say it.
        """
        rows = rows & self.usable
        if rows.any():
            self._found.append((reason, detail))
            self._code[rows] = len(self._found)

    def reason(self, row: int) -> tuple[str, str]:
        """Reason and detail of a record that is set aside."""
        return self._found[self._code[row] - 1]

    @property
    def count(self) -> RecordCount:
        """Number of records read, usable, and set aside by reason."""
        n_usable, *rejected = np.bincount(self._code, minlength=len(self._found) + 1).tolist()
        reasons: Counter[str] = Counter()
        for (reason, _), n in zip(self._found, rejected, strict=True):
            reasons[reason] += n
        return RecordCount(len(self._code), n_usable, dict(reasons))


@dataclass(frozen=True)
class Account:
    """Counts by kind of record, for example ``"observations"`` and ``"arcs"``."""

    counts: Mapping[str, RecordCount] = field(default_factory=dict)

    @classmethod
    def total(cls, accounts: Iterable[Account]) -> Account:
        """Sum of accounts."""
        total: dict[str, RecordCount] = {}
        for account in accounts:
            for kind, count in account.counts.items():
                total[kind] = total.get(kind, RecordCount()) + count
        return cls(total)

    def __add__(self, other: Account) -> Account:
        return self.total([self, other])

    def to_json(self) -> dict[str, Any]:
        """Plain dictionaries, as the manifest of a set has them."""
        # the reasons are called "dropped" in the files of all sets that are stored
        return {
            kind: {"n_read": c.n_read, "n_used": c.n_used, "dropped": dict(c.reasons)}
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
            return cls(
                {
                    kind: RecordCount(count["n_read"], count["n_used"], dict(count["dropped"]))
                    for kind, count in plain.items()
                }
            )
        except (AttributeError, KeyError, TypeError, ValueError, NeoRangingError) as error:
            raise DatasetError(f"no account of records read and used: {error}") from error

    def __str__(self) -> str:
        return "\n".join(
            line
            for kind, count in self.counts.items()
            for line in (count.headline(kind.removesuffix("s")), *count.reason_lines())
        )
