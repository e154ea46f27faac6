"""Commands that are imported only when they are called or listed."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import EntryPoint
from typing import Any

import click

from neoranging.cli.errors import echo


class LazyGroup(click.Group):
    """Group of commands, some of them given by entry points.

    A package that is broken or gone costs its own commands alone: each is named in a warning where
    it would be listed or called.

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
