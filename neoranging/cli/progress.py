"""Progress on standard error: one line of a terminal that is replaced, or few lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import click

from neoranging.cli.errors import echo

_SECONDS = 5.0
"""Time between two lines where they do not replace each other."""


def progress_line() -> Callable[[float, str], None]:
    """Function that shows a share of the work that is done, a text and the time left."""
    begin = last = time.monotonic()
    at_first: float | None = None

    def show(share: float, text: str) -> None:
        nonlocal last, at_first
        now = time.monotonic()
        at_first = share if at_first is None else at_first  # what an earlier run had done
        gained = share - at_first
        left = f", {(now - begin) / gained * (1.0 - share):.0f} s left" if gained > 0.0 else ""
        text = f"{text}{left if share < 1.0 else ''}"
        if sys.stderr is not None and sys.stderr.isatty():
            click.echo(f"\r\x1b[K{text}", err=True, nl=share >= 1.0)
        elif share >= 1.0 or now - last > _SECONDS:
            last = now
            echo(text, err=True)

    return show
