"""Report of the reading of a file: records used, and those set aside with line and reason."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from neoranging.records import RecordCount, Rejections, many
from neoranging.typing import IntArray

N_SHOWN = 5  # records of one kind that the printed report spells out


class Reason(enum.StrEnum):
    """Reason to set a record aside; the value is the sentence shown to the user."""

    RADAR = "radar delay or Doppler, not an optical position"
    REPLACED = "replaced or deleted by its observer"
    SPACE_WITHOUT_POSITION = "space-based, and the position of the spacecraft is missing"
    ROVING_WITHOUT_POSITION = "roving observer, and the place of the observer is missing"
    ORPHAN_SECOND_LINE = "second line of a two-line record without its first line"
    OFFSET = "offset from another body, not a position on the sky"
    UNSUPPORTED_FRAME = "coordinates in a frame that cannot be turned into ICRS here"
    MALFORMED = "cannot be parsed"


@dataclass(frozen=True, slots=True)
class SetAside:
    """One record that is not in the table.

    Parameters
    ----------
    line : int
        Line of the file at which the record begins, counted from 1.
    reason : Reason
        Reason that it was set aside for.
    text : str
        The record as it stands in the file.
    detail : str
        Defect of the record, where the reason alone does not say it.
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
class ReadReport(RecordCount):
    """Account of the reading of one file; no record of a file is lost without an entry here.

    Parameters
    ----------
    n_read : int
        Observation records of the file; a record of two lines counts once.
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

    Attributes
    ----------
    reasons : mapping of Reason to int
        Records set aside for each reason that occurred.

    Raises
    ------
    NeoRangingError
        If the account does not balance, which is a fault of the reader.
    """

    reasons: Mapping[str, int] = field(init=False, repr=False)
    set_aside: tuple[SetAside, ...] = ()
    notes: tuple[Note, ...] = ()
    n_ignored_lines: int = 0
    source: str = ""

    def __post_init__(self) -> None:
        reasons = Counter(entry.reason for entry in self.set_aside)
        object.__setattr__(self, "reasons", dict(reasons))
        super().__post_init__()

    @classmethod
    def of(
        cls,
        rejections: Rejections,
        line: IntArray,
        text: Callable[[int], str],
        notes: Iterable[Note],
        *,
        unreadable: Iterable[SetAside] = (),
        n_ignored_lines: int = 0,
        source: str = "",
    ) -> Self:
        """Report of the reading of n records that were judged.

        ``line`` is the line of each, counted from 1, ``text`` gives the text of one by its index,
        and ``unreadable`` are records besides, which could not even be judged.
        """
        usable = rejections.usable
        entries = list(unreadable)
        n_read = len(usable) + len(entries)
        for row in np.flatnonzero(~usable).tolist():
            reason, detail = rejections.reason(row)
            entries.append(SetAside(int(line[row]), Reason(reason), text(row), detail))
        return cls(
            n_read,
            int(usable.sum()),
            tuple(sorted(entries, key=lambda entry: entry.line)),
            tuple(sorted(notes, key=lambda note: note.line)),
            n_ignored_lines,
            source,
        )

    def headline(self, thing: str = "record", *, reasons: bool = False) -> str:
        """Return the account in one line.

        Parameters
        ----------
        thing : str
            One of the things counted.
        reasons : bool
            Count the records set aside by their reason as well.
        """
        counts = ", ".join(f"{n} {Reason(reason).name}" for reason, n in self.reasons.items())
        n = self.n_ignored_lines
        other = f", {many(n, 'line')} that {'is no record' if n == 1 else 'are no records'}"
        return (
            f"{self.source + ': ' if self.source else ''}{super().headline(thing)}"
            f"{f' ({counts})' if reasons and counts else ''}{other if n else ''}"
        )

    def reason_lines(self) -> list[str]:
        """Lines for each reason, with the first records that were set aside for it."""
        lines = []
        for reason, count in self.reasons.items():
            lines.append(f"  {count} {Reason(reason).name}: {reason}")
            entries = [entry for entry in self.set_aside if entry.reason == reason][:N_SHOWN]
            lines += [f"    line {e.line}: {e.detail or e.text.rstrip()}" for e in entries]
            if count > len(entries):
                lines.append(f"    ... and {count - len(entries)} more")
        return lines

    def __str__(self) -> str:
        lines = [super().__str__(), *(f"  note: {note}" for note in self.notes[:N_SHOWN])]
        if len(self.notes) > N_SHOWN:
            lines.append(f"  ... and {len(self.notes) - N_SHOWN} more notes")
        return "\n".join(lines)

    # Tables copy their meta on every slice; an immutable report is its own copy.
    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self
