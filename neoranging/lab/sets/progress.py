"""Progress bars, where there is a terminal to see them."""

from __future__ import annotations

from typing import Any, Self


class NoBar:
    """Progress bar that shows nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def update(self, steps: int = 1) -> None:
        """Show that steps are done: nothing."""

    def set_postfix_str(self, text: str) -> None:
        """Show a text behind the bar: nothing."""


def progress_bar(total: int, description: str, unit: str = "arc", initial: int = 0) -> Any:
    """Progress bar on standard error with the time left: ``bar.update(n)`` after n steps.

    There is none where standard error is no terminal, or where tqdm is not installed.
    ``initial`` of the ``total`` steps were done before.
    """
    try:
        from tqdm import tqdm
    except ImportError:
        return NoBar()
    return tqdm(
        total=total,
        initial=initial,
        desc=description,
        unit=unit,
        unit_scale=total >= 100_000,
        disable=None,
        dynamic_ncols=True,
    )
