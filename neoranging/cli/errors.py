"""Exit codes, and errors and warnings told in one line on standard error."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import Any

import click

from neoranging.exceptions import NeoRangingError, NeoRangingWarning, UnknownMethodError

__all__ = [
    "EXIT_CODES",
    "CommandError",
    "ExitCode",
    "NoTrackletError",
    "NotOkError",
    "SpeakingGroup",
    "UnreadableError",
]


class ExitCode(IntEnum):
    """What the shell gets to see."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    UNREADABLE = 3
    NO_TRACKLET = 4
    NOT_OK = 5


EXIT_CODES = """\b
Exit codes:
  0  done
  1  any other failure, such as an output file that cannot be written
  2  wrong usage: unknown option or method
  3  a file cannot be read, or holds no observations
  4  the observations form no tracklet
  5  with --strict: some tracklet has another status than OK"""


class CommandError(click.ClickException):
    """An error to be told without a traceback."""

    exit_code = ExitCode.FAILED


class UnreadableError(CommandError):
    """A file that is not there, or holds no observations."""

    exit_code = ExitCode.UNREADABLE


class NoTrackletError(CommandError):
    """Observations of which no two belong together."""

    exit_code = ExitCode.NO_TRACKLET


class NotOkError(CommandError):
    """Estimates that observations do not determine, where the user insists on it."""

    exit_code = ExitCode.NOT_OK


class SpeakingGroup(click.Group):
    """Group of commands in which the errors and warnings of the package reach the user as text."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command."""
        with _warnings_told():
            try:
                return super().invoke(ctx)
            except UnknownMethodError as error:
                raise click.UsageError(str(error)) from error
            except NeoRangingError as error:
                raise CommandError(str(error)) from error


@contextmanager
def _warnings_told() -> Iterator[None]:
    def tell(message: Warning | str, *_: Any, **__: Any) -> None:
        click.echo(f"Warning: {message}", err=True)

    with warnings.catch_warnings():
        warnings.filterwarnings("always", category=NeoRangingWarning)
        # old dates: the warning of the package says what it means for the observer's place
        warnings.filterwarnings("ignore", message="ERFA function .*dubious year")
        warnings.showwarning = tell
        yield
