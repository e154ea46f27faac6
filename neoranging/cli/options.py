"""Options that several commands share, each declared once, and their types."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce, wraps
from pathlib import Path
from typing import Any, Final

import click

from neoranging.observations.field_names import SCALES
from neoranging.observations.formats import FORMATS, TABLE_FORMATS

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)
FOLDER: Final = click.Path(exists=True, file_okay=False, path_type=Path)
NEW_FILE: Final = click.Path(dir_okay=False, path_type=Path)
NEW_FOLDER: Final = click.Path(file_okay=False, path_type=Path)

COUNT: Final = click.IntRange(min=1)
COUNT_OR_NONE: Final = click.IntRange(min=0)

GROUPINGS: Final = {"station": ("night", "station"), "night": ("night",)}
"""Values of ``--group-by``, as `neoranging.read_tracklets` takes them."""

OUTPUT_FORMATS: Final = {
    "table": ("", ".txt"),
    "csv": (".csv",),
    "ecsv": (".ecsv",),
    "json": (".json",),
    "parquet": (".parquet",),
    "votable": (".vot", ".votable", ".xml"),
    "fits": (".fits",),
}
"""Formats of rows by name, and the endings of their files."""


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


POSITIVE: Final = Number(min=0.0, min_open=True)


# Of methods --------------------------------------------------------------------------------------


def method_option(**attributes: Any) -> Decorator:
    """Option ``--method``."""
    return click.option(
        "--method",
        metavar="NAME",
        help="Method, as listed by 'neoranging methods': NAME[@REPRESENTATION][@PRIOR][@ORIGIN], "
        "or a file of weights (.safetensors).",
        **attributes,
    )


# Of observations ---------------------------------------------------------------------------------


def group_by_option(thing: str, default: str = "station") -> Decorator:
    """Option ``--group-by``, which says which stations ``thing`` joins; see `GROUPINGS`."""
    return click.option(
        "--group-by",
        type=click.Choice(list(GROUPINGS)),
        default=default,
        show_default=True,
        help=f"{thing} is one object in one night, of one station or of all together.",
    )


_FILES: Final = (
    click.argument(
        "files", metavar="FILE...", nargs=-1, required=True, type=click.Path(allow_dash=True)
    ),
    click.option(
        "--input-format",
        type=click.Choice([*FORMATS, *TABLE_FORMATS]),
        help="Format of the files.  [default: recognised by their content]",
    ),
    click.option(
        "--scale",
        type=click.Choice(SCALES),
        help="Time scale of epochs in tables, where the name of the column does not say it.",
    ),
)

_GROUPS: Final = (
    group_by_option("A tracklet"),
    click.option(
        "--sigma",
        type=POSITIVE,
        metavar="ARCSEC",
        help="Error of positions that carry none.  [default: by station and catalogue]",
    ),
    click.option("--report", is_flag=True, help="Account for every record that was set aside."),
    click.option("-q", "--quiet", is_flag=True, help="No account of the reading at all."),
)


def input_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the argument FILE and the options of `neoranging.cli.reading.read_files`."""
    return input_options_with("--station")(command)


def input_options_with(station: str) -> Decorator:
    """Decorator of `input_options` with another name of the option ``--station``."""
    observed_from = click.option(
        station,
        "station",
        metavar="CODE",
        help="MPC code of all rows of tables without a column of stations.",
    )
    every = (*_FILES, observed_from, *_GROUPS)
    return lambda command: reduce(lambda inner, option: option(inner), reversed(every), command)


def output_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--format`` and ``--out``, of rows; the command is refused before it reads anything."""

    @wraps(command)
    def with_format(*, form: str | None, out: Path | None, **rest: Any) -> Any:
        ending = out.suffix.lower() if out else ""
        form = form or next((f for f, ends in OUTPUT_FORMATS.items() if ending in ends), None)
        if form is None:
            endings = ", ".join(end for ends in OUTPUT_FORMATS.values() for end in ends if end)
            raise click.UsageError(
                f"--out {out}: no format has the ending {ending}; take {endings}, or say --format"
            )
        return command(form=form, out=out, **rest)

    form = click.option(
        "--format",
        "form",
        type=click.Choice(list(OUTPUT_FORMATS)),
        help="How to write the rows.  [default: by the ending of --out; table without one]",
    )
    out = click.option(
        "--out",
        type=NEW_FILE,
        metavar="FILE",
        help="Where to write them; an existing file is replaced once all is done.",
    )
    return form(out(with_format))


# Of sets of labelled arcs, and of what is made of them -------------------------------------------


def data_option(text: str) -> Decorator:
    """Option ``--data``, the folder of a set that is there."""
    return click.option("--data", required=True, type=FOLDER, metavar="DIR", help=text)


def split_option(*more: str, text: str) -> Decorator:
    """Option ``--split``, a part of a set, or one of ``more`` words."""
    return click.option(
        "--split",
        type=click.Choice(["test", "unseen", "val", "train", *more]),
        default="test",
        show_default=True,
        help=text,
    )


def folder_option(text: str, **attributes: Any) -> Decorator:
    """Option ``--out``, the folder that a command fills."""
    return click.option("--out", type=NEW_FOLDER, metavar="DIR", help=text, **attributes)


def seed_option(text: str | None = None) -> Decorator:
    """Option ``--seed``."""
    return click.option("--seed", type=COUNT_OR_NONE, default=0, show_default=True, help=text)


scheduler_option = click.option(
    "--scheduler",
    metavar="ADDRESS",
    help="Scheduler of Dask, as tcp://10.0.0.1:8786, whose workers do the work.",
)


def dynamics_option(default: str, text: str, *others: str) -> Decorator:
    """Option ``--dynamics``, the motion of the truth; ``others`` beside "kepler" and "nbody"."""
    choice = click.Choice([*others, "kepler", "nbody"])
    return click.option("--dynamics", type=choice, default=default, show_default=True, help=text)


gate_option = click.option(
    "--gate",
    type=Number(min=0.0, min_open=True, infinite=True),
    default=10.0,
    show_default=True,
    metavar="ARCSEC",
    help="Labels further than this from an observation are dropped; inf keeps all.",
)
