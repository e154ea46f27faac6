"""Observation files given on the command line, and the account of their reading."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from neoranging.cli.errors import CommandError, ExitCode, echo, reason
from neoranging.cli.options import GROUPINGS
from neoranging.exceptions import MissingDependencyError, ObservationFormatError
from neoranging.records import many

if TYPE_CHECKING:
    from neoranging.tracklet import TrackletSet


class _StandardInput:
    """Standard input with a name that errors and accounts can call it by."""

    name = "standard input"

    def read(self, size: int = -1) -> bytes:
        """Read at most so many bytes; all by default."""
        return sys.stdin.buffer.read(size)


def read_files(
    *,
    files: tuple[str, ...],
    input_format: str | None,
    scale: str | None,
    station: str | None,
    group_by: str,
    sigma: float | None,
    report: bool,
    quiet: bool,
) -> TrackletSet:
    """Read files into tracklets, and write the account to standard error.

    The arguments are `neoranging.cli.options.input_options`; the file ``-`` is standard input.

    Raises
    ------
    CommandError
        If a file cannot be read, or no two observations belong together.
    """
    from neoranging.read import read_tracklets

    if "-" in files and sys.stdin is None:
        raise CommandError("standard input is closed", ExitCode.UNREADABLE)
    try:
        tracklets = read_tracklets(
            [Path(name) if name != "-" else _StandardInput() for name in files],
            format=input_format,
            scale=scale,
            station=station,
            group_by=GROUPINGS[group_by],
            default_sigma=sigma,
        )
    except (ObservationFormatError, MissingDependencyError, OSError) as error:
        raise unreadable(error) from error
    if not quiet:
        echo(str(tracklets.report) if report else _summary(tracklets), err=True)
    if not len(tracklets):
        raise none_formed(report)
    return tracklets


def unreadable(error: Exception) -> CommandError:
    """Error of a file that cannot be read."""
    text = reason(error) if isinstance(error, OSError) else str(error)
    return CommandError(text, ExitCode.UNREADABLE)


def none_formed(report: bool) -> CommandError:
    """Error of observations that form no tracklet; ``report`` if all was accounted for."""
    hint = "" if report else "; --report shows what became of each record"
    text = "no tracklet: it takes two observations of one object in one night"
    return CommandError(text + hint, ExitCode.NO_TRACKLET)


def _summary(tracklets: TrackletSet) -> str:
    """One line per file, and one for the tracklets."""
    account = tracklets.report
    if account is None:  # never of tracklets that were read
        return ""
    lines = [file.headline(reasons=True) for file in account.reading]
    lost = account.n_set_aside
    set_aside = f", {lost} set aside" if lost else ""
    details = any(file.n_set_aside or file.notes for file in account.reading) or account.notes
    hint = "; --report for details" if lost or details else ""
    formed = f"{many(account.n_tracklets, 'tracklet')} of {many(account.n_used, 'observation')}"
    return "\n".join([*lines, formed + set_aside + hint])
