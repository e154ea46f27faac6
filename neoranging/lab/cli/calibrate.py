"""``neoranging calibrate``: intervals for a method from labelled arcs that it has not seen."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from neoranging.cli.errors import CommandError, echo
from neoranging.cli.options import (
    NEW_FILE,
    data_option,
    method_option,
    split_option,
)
from neoranging.tables import text_table

if TYPE_CHECKING:
    import pandas as pd

LEVELS: Final = (0.68, 0.95)
"""Confidence levels at which the arcs judge their own intervals."""


@click.command()
@method_option(required=True)
@data_option("A divided set of labelled arcs; see 'neoranging dataset'.")
@split_option(
    text="Arcs of objects that the method was neither trained on nor chosen by; for a network, "
    "others are refused.",
)
@click.option(
    "--out",
    required=True,
    type=NEW_FILE,
    metavar="FILE",
    help="JSON file of the calibration.",
)
@click.option(
    "--score",
    type=click.Choice(["log", "absolute", "standard", "log-standard"]),
    help="What is counted: by default standard errors where the method gives them, else log; "
    "absolute in the construction of the paper.",
)
@click.option(
    "--construction",
    type=click.Choice(["package", "paper"]),
    default="package",
    show_default=True,
    help="How arcs are counted: that of the package; or that of the literature, absolute residuals "
    "of all arcs by decile of proper motion, with the published half widths beside one's own.",
)
@click.option(
    "--allow-learnt",
    is_flag=True,
    help="Take objects that a network learnt from, too; the file says so.",
)
@click.option("--overwrite", is_flag=True, help="Replace the file if there is one.")
def calibrate(
    method: str,
    data: Path,
    split: str,
    out: Path,
    score: str | None,
    construction: str,
    allow_learnt: bool,
    overwrite: bool,
) -> None:
    """Learn from labelled arcs how far off a method is, for intervals that hold.

    Then the same arcs are dealt into folds by object, and the share of truths is counted that
    lie in intervals made of the other folds: of the range by verdict, and of range and range-rate
    by tercile of proper motion, with the mean half width.

    \b
    Examples:
      neoranging calibrate --method run/network.safetensors --data twin --out mine.json
      neoranging calibrate --method pinn@paper --data twin --construction paper --out paper.json
      neoranging estimate night.obs80 --method run/network.safetensors --calibration mine.json
    """  # noqa: D301 (the character by which click keeps lines apart)
    from neoranging.estimators.registry import get_estimator
    from neoranging.exceptions import ConformalError
    from neoranging.lab.study.calibration import (
        CalibrationSample,
        coverage,
        cross_conformal,
        provenance,
    )
    from neoranging.lab.study.half_widths import half_widths

    if out.exists() and not overwrite:
        raise CommandError(f"{out} is there already: --overwrite replaces it")
    estimator = get_estimator(method)
    sample = CalibrationSample.read(estimator, data, split, allow_learnt=allow_learnt)
    description = provenance(estimator, data, split)
    if "learnt" in description:
        echo(f"Warning: {method}: {description['learnt']}", err=True)
    calibration = sample.calibration(score, description, construction=construction)
    out.parent.mkdir(parents=True, exist_ok=True)
    calibration.write(out)
    echo(repr(calibration))
    options: dict[str, Any] = {"levels": LEVELS, "score": score, "construction": construction}
    try:
        widths = half_widths(sample, constructions=[construction], levels=LEVELS, score=score)
        echo(_of_motion(widths, is_paper=construction == "paper"))
        echo("")
        echo(_of_verdicts(coverage(sample, cross_conformal(sample, **options))))
    except ConformalError as error:
        echo(f"Warning: the arcs are too few to judge their own intervals: {error}", err=True)
    echo(out)


def _of_verdicts(rows: pd.DataFrame) -> str:
    """Coverage of the range, to read."""
    rows = rows[rows["stratum"].isin(["answered", "verdict"])]
    return text_table(
        {
            "range, level": [f"{100.0 * level:g} %" for level in rows["level"]],
            "arcs": rows["bin"],
            "n": rows["n_arcs"],
            "objects": rows["n_objects"],
            "inside, per arc [%]": 100.0 * rows["per_arc"],
            "per object [%]": 100.0 * rows["per_object"],
            "median upper / lower": rows["median_ratio"],
        }
    )


def _of_motion(rows: pd.DataFrame, *, is_paper: bool) -> str:
    """Half widths and coverage of range and range-rate by tercile of motion, to read."""
    from neoranging.lab.study.half_widths import LEVEL, UNITS, published_half_widths

    columns: dict[str, Any] = {
        "interval of": rows["of"].str.replace("_", "-"),
        "level": [f"{100.0 * level:g} %" for level in rows["level"]],
        "motion": rows["motion"],
        "n": rows["n_arcs"],
        "inside, per arc [%]": 100.0 * rows["per_arc"],
        "per object [%]": 100.0 * rows["per_object"],
        "mean half width": rows["half_width"],
        "": rows["of"].map(UNITS),
    }
    if is_paper:
        published = published_half_widths()
        keys = zip(rows["of"], rows["level"], rows["motion"], strict=True)
        columns["published"] = [
            ", ".join(
                f"{row.method} {row.half_width:#.2g}"
                for row in published.itertuples()
                if (row.of, row.motion) == (of, motion) and level == LEVEL
            )
            for of, level, motion in keys
        ]
    return text_table(columns)
