"""What a reader did with every record of a file: used, or set aside with a reason."""

from __future__ import annotations

import enum
from collections import Counter
from dataclasses import dataclass
from typing import Any, Self

from neoranging.exceptions import NeoRangingError

N_SHOWN = 5  # records of one kind that the printed report spells out


class Reason(enum.Enum):
    """Why a record was not used; the value is the sentence shown to the user."""

    RADAR = "radar delay or Doppler, not an optical position"
    REPLACED = "replaced or deleted by its observer"
    SPACE_WITHOUT_POSITION = "space-based, and the position of the spacecraft is missing"
    ROVING_WITHOUT_POSITION = "roving observer, and the place of the observer is missing"
    ORPHAN_SECOND_LINE = "second line of a two-line record without its first line"
    OFFSET = "offset from another body, not a position on the sky"
    UNSUPPORTED_FRAME = "coordinates in a frame that cannot be turned into ICRS here"
    MALFORMED = "cannot be parsed"


def many(count: int, thing: str) -> str:
    """Count of things in words, "1 record" or "2 records"."""
    return f"{count} {thing}{'s' * (count != 1)}"


@dataclass(frozen=True, slots=True)
class SetAside:
    """One record that is not in the table.

    Parameters
    ----------
    line : int
        Line of the file at which the record begins, counted from 1.
    reason : Reason
        Why it was set aside.
    text : str
        The record as it stands in the file.
    detail : str
        What exactly is wrong, where the reason alone does not say it.
    """

    line: int
    reason: Reason
    text: str = ""
    detail: str = ""

    def __str__(self) -> str:
        why = f" ({self.detail})" if self.detail else ""
        return f"line {self.line}: {self.reason.value}{why}: {self.text.rstrip()}"


@dataclass(frozen=True, slots=True)
class Note:
    """A remark on records that were used all the same.

    Parameters
    ----------
    line : int
        Line of the file, counted from 1; 0 stands for the whole file.
    text : str
        The remark.
    """

    line: int
    text: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.text}" if self.line else self.text


@dataclass(frozen=True)
class ReadReport:
    """The account of one reading; nothing in a file is lost without an entry here.

    Parameters
    ----------
    n_records : int
        Observation records found; a record of two lines counts once.
    n_used : int
        Rows of the table.
    set_aside : tuple of SetAside
        The other records, by line.
    notes : tuple of Note
        Remarks on used records: unknown station, unreadable magnitude.
    n_ignored_lines : int
        Lines that are no records: blank lines, headers, comments.
    source : str
        File name, where there was one.

    Raises
    ------
    NeoRangingError
        If the account does not balance, which is a fault of the reader.
    """

    n_records: int
    n_used: int
    set_aside: tuple[SetAside, ...] = ()
    notes: tuple[Note, ...] = ()
    n_ignored_lines: int = 0
    source: str = ""

    def __post_init__(self) -> None:
        if self.n_records != self.n_used + self.n_set_aside:
            raise NeoRangingError(
                f"{self.n_records} records were found but {self.n_used} used and "
                f"{self.n_set_aside} set aside: a reader lost some; please report this file"
            )

    @property
    def n_set_aside(self) -> int:
        """Number of records not in the table."""
        return len(self.set_aside)

    def counts(self) -> dict[Reason, int]:
        """Return how many records were set aside for each reason that occurred."""
        return dict(Counter(entry.reason for entry in self.set_aside))

    def headline(self, *, reasons: bool = False) -> str:
        """Return the account in one line.

        Parameters
        ----------
        reasons : bool
            Count the records set aside by their reason as well.
        """
        counts = ", ".join(f"{count} {reason.name}" for reason, count in self.counts().items())
        why = f" ({counts})" if reasons and counts else ""
        n = self.n_ignored_lines
        other = f", {many(n, 'line')} that {'is no record' if n == 1 else 'are no records'}"
        return (
            f"{self.source + ': ' if self.source else ''}{many(self.n_records, 'record')}, "
            f"{self.n_used} used, {self.n_set_aside} set aside{why}{other if n else ''}"
        )

    def __str__(self) -> str:
        lines = [self.headline(), *self._lines_set_aside()]
        lines += [f"  note: {note}" for note in self.notes[:N_SHOWN]]
        if len(self.notes) > N_SHOWN:
            lines.append(f"  ... and {len(self.notes) - N_SHOWN} more notes")
        return "\n".join(lines)

    def _lines_set_aside(self) -> list[str]:
        lines = []
        for reason, count in self.counts().items():
            lines.append(f"  {count} {reason.name}: {reason.value}")
            shown = [entry for entry in self.set_aside if entry.reason is reason][:N_SHOWN]
            lines += [f"    line {e.line}: {e.detail or e.text.rstrip()}" for e in shown]
            if count > len(shown):
                lines.append(f"    ... and {count - len(shown)} more")
        return lines

    # Tables copy their meta on every slice; an immutable report is its own copy.
    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self
