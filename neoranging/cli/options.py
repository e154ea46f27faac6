"""Types of options."""

from __future__ import annotations

import math
from typing import Any

import click


class Number(click.FloatRange):
    """Numbers within a range: never NaN, which compares with no bound, and infinite on request.

    Parameters
    ----------
    infinite : bool
        Take infinity as well.
    **bounds
        Of `click.FloatRange`.
    """

    def __init__(self, *, infinite: bool = False, **bounds: Any) -> None:
        super().__init__(**bounds)
        self._infinite = infinite

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Number of what was given."""
        number = super().convert(value, param, ctx)
        if math.isnan(number) or (math.isinf(number) and not self._infinite):
            self.fail(f"{value} is no number that it takes.", param, ctx)
        return number
