"""``neoranging calibrate``: intervals for a method from labelled arcs that it has not seen."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from neoranging.cli.errors import echo

LEVELS: Final = (0.68, 0.95)
"""At which the arcs judge their own intervals."""


@click.command()
@click.option(
    "--method",
    required=True,
    metavar="NAME",
    help="Method, as listed by 'neoranging methods': NAME[@REPRESENTATION][@ORIGIN], or a file of "
    "weights (.safetensors).",
)
@click.option(
    "--data",
    required=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="A divided set of labelled arcs; see 'neoranging dataset'.",
)
@click.option(
    "--split",
    type=click.Choice(["test", "unseen", "val", "train"]),
    default="test",
    show_default=True,
    help="Arcs that the method was neither trained on nor chosen by: not those of its own 'val'. "
    "For networks of the package take 'unseen'.",
)
@click.option(
    "--out",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="JSON file of the calibration.",
)
@click.option(
    "--score",
    type=click.Choice(["log", "absolute", "standard"]),
    help="What is counted: by default standard errors where the method gives them, else log.",
)
@click.option("--overwrite", is_flag=True, help="Replace the file if there is one.")
def calibrate(
    method: str, data: Path, split: str, out: Path, score: str | None, overwrite: bool
) -> None:
    """Learn from labelled arcs how far off a method is, for intervals that hold.

    Then the same arcs are dealt into folds by object, and the share of truths is counted that
    lie in intervals made of the other folds.

    \b
    Examples:
      neoranging calibrate --method run/network.safetensors --data twin --out mine.json
      neoranging estimate night.obs80 --method run/network.safetensors --calibration mine.json
    """  # noqa: D301 (the character by which click keeps lines apart)
    from neoranging.cli.errors import CommandError
    from neoranging.estimators.registry import get_estimator
    from neoranging.exceptions import ConformalError
    from neoranging.lab.study.calibration import HeldOut, coverage, cross_conformal, provenance
    from neoranging.lab.study.tables import as_text

    if out.exists() and not overwrite:
        raise CommandError(f"{out} is there already: --overwrite replaces it")
    held = HeldOut.read(get_estimator(method), data, split)
    calibration = held.calibration(score, provenance(data, split))
    out.parent.mkdir(parents=True, exist_ok=True)
    calibration.write(out)
    echo(repr(calibration))
    try:
        crosswise = cross_conformal(held, levels=LEVELS, score=score)
    except ConformalError as error:
        echo(f"Warning: the arcs are too few to judge their own intervals: {error}", err=True)
    else:
        rows = [
            {
                "level": f"{100.0 * row['level']:g} %",
                "arcs": row["bin"],
                "n": row["n_arcs"],
                "objects": row["n_objects"],
                "inside, per arc [%]": 100.0 * row["per_arc"],
                "per object [%]": 100.0 * row["per_object"],
                "median upper / lower": row["median_ratio"],
            }
            for row in coverage(held, crosswise)
            if row["stratum"] in ("answered", "verdict")
        ]
        echo(as_text(rows), nl=False)
    echo(str(out))
