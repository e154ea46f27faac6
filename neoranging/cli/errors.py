"""Exit codes, and errors and warnings as single lines on standard error."""

from __future__ import annotations

import errno
import os
import re
import signal
import sys
import warnings
from collections.abc import Iterable
from enum import IntEnum
from importlib.metadata import EntryPoint
from typing import Any, Final

import click

from neoranging.display import visible
from neoranging.exceptions import NeoRangingError, NeoRangingWarning, UnknownMethodError

_ARGUMENT: Final = re.compile(r"\b(method|origin|dynamics|score)='([\w-]+)'")


class ExitCode(IntEnum):
    """Exit codes of the command line."""

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
  5  with --strict: some tracklet has another status than OK
  128 + n  ended by signal n: 130 interrupted, 143 terminated"""


def echo(text: object = "", *, err: bool = False, nl: bool = True) -> None:
    """Write to standard output or standard error; control characters are shown, not obeyed."""
    click.echo(visible(str(text)), err=err, nl=nl)


def in_options(text: str) -> str:
    """Text in which arguments of functions are options: ``--method pinn`` for ``method='pinn'``."""
    return _ARGUMENT.sub(r"--\1 \2", text)


class CommandError(click.ClickException):
    """An error without a traceback, which ends the command.

    Parameters
    ----------
    message : str
    exit_code : ExitCode
    """

    def __init__(self, message: str, exit_code: ExitCode = ExitCode.FAILED) -> None:
        super().__init__(message)
        self.exit_code = exit_code  # type: ignore[misc]  # click sets it by class

    def format_message(self) -> str:
        """The message, fit for a terminal."""
        return visible(in_options(self.message))


def reason(error: OSError) -> str:
    """Complaint of the operating system, with the file if it names one."""
    text = error.strerror or str(error)
    if error.filename is not None:
        return f"{click.format_filename(error.filename)}: {text}"
    return f"the output cannot be written: {text}" if error.errno == errno.ENOSPC else text


class CommandLine(click.Group):
    """Group of commands whose errors, warnings and interrupts reach the user as text.

    Commands given by entry points are imported when they are called or listed. A package that is
    broken or gone costs its own commands alone: each is named in a warning where it would be.

    Parameters
    ----------
    entry_points : iterable of EntryPoint
        Of click commands. A command that was added to the group comes before one of the same name.
    """

    def __init__(
        self, *arguments: Any, entry_points: Iterable[EntryPoint] = (), **attributes: Any
    ) -> None:
        super().__init__(*arguments, **attributes)
        self._entry_points = {point.name: point for point in entry_points}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of all commands, in alphabetical order."""
        return sorted({*super().list_commands(ctx), *self._entry_points})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Command of a name; None, after a warning, where it cannot be loaded."""
        if cmd_name in self.commands or cmd_name not in self._entry_points:
            return super().get_command(ctx, cmd_name)
        point = self._entry_points[cmd_name]
        try:
            command = point.load()
        except Exception as error:  # whatever somebody else's package raises
            problem = f"{type(error).__name__}: {error}"
        else:
            if isinstance(command, click.Command):
                return command
            problem = f"it is no command, but {command!r}"
        text = f"the command {cmd_name!r} cannot be loaded from {point.value} ({problem})"
        echo(f"Warning: {text}", err=True)
        return None

    def main(self, *arguments: Any, **options: Any) -> Any:
        """Run the command line, and end the process."""
        try:
            return super().main(*arguments, **options)
        except OSError as error:  # of the help, say, which comes before any command
            echo(f"Error: {reason(error)}", err=True)
            _discard_output()
            sys.exit(ExitCode.FAILED)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command."""
        with warnings.catch_warnings():
            warnings.filterwarnings("always", category=NeoRangingWarning)
            # old dates: the warning of the package says what it means for the observer's place
            warnings.filterwarnings("ignore", message="ERFA function .*dubious year")
            warnings.showwarning = lambda message, *_, **__: echo(
                f"Warning: {in_options(str(message))}", err=True
            )
            try:
                return super().invoke(ctx)
            except UnknownMethodError as error:
                raise click.UsageError(visible(in_options(str(error)))) from error
            except NeoRangingError as error:
                raise CommandError(str(error)) from error
            except KeyboardInterrupt as error:
                echo("\nInterrupted", err=True)  # below the ^C that a terminal shows
                number = error.args[0] if error.args else signal.SIGINT
                ctx.exit(128 + int(number))
            except OSError as error:
                if error.errno == errno.EPIPE:
                    raise  # the reader has left, and click ends without a word
                _discard_output()
                raise CommandError(reason(error)) from error
            except EOFError as error:
                raise CommandError(f"a file ends too early: {error}") from error
            except MemoryError as error:
                raise CommandError(f"the memory does not suffice: {error}") from error


def _discard_output() -> None:
    """Let what standard output did not take be lost, or Python tries again at its end and fails."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
