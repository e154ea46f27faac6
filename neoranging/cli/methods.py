"""``neoranging methods``: the estimators that are installed."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Final

import click

from neoranging.cli.errors import echo
from neoranging.tables import text_table

if TYPE_CHECKING:
    from neoranging.estimators.base import RangingEstimator


NOTE: Final = """\
Every command and estimate(method=...) take these names. With @geocenter behind it, as in
gauss@geocenter, a method puts the observer at the centre of the Earth, where the paper form of a
network always has it. A network of your own is named by its file: FILE.safetensors. A prior of
your own is named by the file of its table: systematic@FILE.npz."""


@click.command()
def methods() -> None:
    """List the methods that commands and 'estimate(method=...)' take.

    Those of other installed packages are among them.
    """
    from neoranging.estimators.registry import available_methods, estimator_class
    from neoranging.exceptions import UnknownMethodError

    rows: list[tuple[str, str, str, str]] = []
    for name in available_methods():
        try:
            rows += _rows(name, estimator_class(name))
        except UnknownMethodError as error:  # of a plugin: the others must still be listed
            echo(f"Warning: {error}", err=True)
    heads = ("method", "needs", "learned", "what it does")
    echo(text_table(dict(zip(heads, zip(*rows, strict=True), strict=True))))
    click.echo(f"\n{NOTE}")


def _rows(name: str, method: type[RangingEstimator]) -> list[tuple[str, str, str, str]]:
    """One row for the method, one more for each representation and prior that is no default."""
    from neoranging.estimators.registry import get_estimator

    learned = "yes" if method.is_learned else "no"
    summary = (inspect.getdoc(method) or "").partition("\n")[0]
    rows = [(name, f"{method.min_observations} epochs", learned, summary)]
    for representation in method.representations[1:]:
        full = f"{name}@{representation}"
        needs = get_estimator(full).min_observations
        rows.append((full, f"{needs} epochs", learned, f"{name} in its {representation} form."))
    for prior in method.priors[1:]:
        what = f"{name} under the prior {prior}; {method.priors[0]} is the usual one."
        rows.append((f"{name}@{prior}", rows[0][1], learned, what))
    return rows
