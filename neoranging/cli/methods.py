"""``neoranging methods``: the estimators that are installed."""

from __future__ import annotations

import inspect

import click

from neoranging.cli.errors import echo
from neoranging.cli.listing import TextColumn, text_table

__all__ = ["methods"]


@click.command()
def methods() -> None:
    """List the methods that 'estimate --method' takes.

    Those of other installed packages are among them.
    """
    from neoranging.estimators.registry import available_methods, estimator_class
    from neoranging.exceptions import UnknownMethodError

    names, needs, learned, lines = [], [], [], []
    for name in available_methods():
        try:
            found = estimator_class(name)
        except UnknownMethodError as error:  # of a plugin: the others must still be listed
            echo(f"Warning: {error}", err=True)
            continue
        names.append(name)
        needs.append(f"{found.min_observations} epochs")
        learned.append("yes" if found.is_learned else "no")
        lines.append((inspect.getdoc(found) or "").partition("\n")[0])
    echo(
        text_table(
            [
                TextColumn("method", "", names, "<"),
                TextColumn("needs", "", needs, "<"),
                TextColumn("learned", "", learned, "<"),
                TextColumn("what it does", "", lines, "<"),
            ]
        )
    )
