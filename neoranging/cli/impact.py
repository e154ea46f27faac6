"""``neoranging impact``: whether the objects in files of observations may hit the Earth."""

from __future__ import annotations

import math
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from neoranging.cli.errors import EXIT_CODES
from neoranging.cli.listing import TRACK_ALIGN, advice_on, deliver, track_texts
from neoranging.cli.options import (
    COUNT,
    POSITIVE,
    input_options,
    method_option,
    output_options,
    seed_option,
)
from neoranging.cli.pointing import posterior_estimator
from neoranging.cli.reading import read_files
from neoranging.rows import track_rows
from neoranging.tables import text_table

if TYPE_CHECKING:
    from astropy.table import QTable, Row

ADVICE: Final = {
    "REPORT": "A possible impactor: observe again at once, report to the Minor Planet Center and "
    "look for it on its NEO Confirmation Page and on JPL's Scout; ask others to observe.",
    "LONGER ARC": "The night does not exclude an impact, though most objects that move like this "
    "pass far away: another position hours later decides.",
    "NOT SEEN": "No draw of either kind falls, or hardly one: nothing to do because of impacts.",
    "MORE DRAWS": "No draw falls, or hardly one, but they are too few to say more: see the limits, "
    "and give --draws 10000.",
    "NO ANSWER": "Nothing follows from this tracklet: its status says why.",
}
"""Meaning of the column ``advice``, and what to do."""

_NOT_EXCLUDED: Final = 0.001
"""Chance of an impact, under one prior or the other, from which a longer arc is worth while."""

_ALBEDOS: Final = (0.25, 0.05)
"""Of bright and of dark objects, as sizes are quoted for them."""


@click.command(epilog=EXIT_CODES)
@input_options
@click.option(
    "--within",
    type=POSITIVE,
    default=30.0,
    show_default=True,
    metavar="DAYS",
    help="Days from each tracklet until which orbits are followed.",
)
@method_option(default="systematic", show_default=True)
@click.option(
    "--draws",
    type=COUNT,
    default=10_000,
    show_default=True,
    help="Orbits to follow for each tracklet and prior.",
)
@click.option(
    "--dynamics",
    type=click.Choice(["near-earth", "nbody"]),
    default="near-earth",
    show_default=True,
    help="Sun, Earth and Moon; or all planets, hundred times slower (needs the extra nbody).",
)
@seed_option("Seed of the draws.")
@output_options
def impact(
    within: float,
    method: str,
    draws: int,
    dynamics: str,
    seed: int,
    form: str,
    out: Path | None,
    **reading: Any,
) -> None:
    """Say how probably every tracklet in FILE... hits the Earth, when and where.

    Orbits drawn from the posterior of each night are followed under Sun, Earth and Moon, twice:
    under the prior of the method, which knows how many objects there are of which orbits and sizes,
    and under one that takes near objects for as likely as distant ones (log-uniform), which errs on
    the side of alarm. A probability comes with the error that the number of draws leaves, or where
    none falls with the upper limit (95 %).

    Time and place are those of the draws that fall, 5 to 95 % and the radius that holds 95 %, under
    the prior of the method; in brackets, under the other, where none falls under the first. The
    size is that of an albedo of 0.25 to 0.05. The Earth is a sphere without an atmosphere.

    A tracklet without an answer keeps its row, which says why. Exit code 5 does not occur.

    \b
    Examples:
      neoranging impact night.obs80
      neoranging impact night.obs80 --within 7 --draws 100000
      neoranging impact night.obs80 --method systematic@near-earth --out impacts.csv
    """  # noqa: D301 (the character by which click keeps lines apart)
    from astropy import units as u
    from astropy.table import vstack

    estimator = posterior_estimator(method)  # before the files: they may be large
    tracklets = read_files(**reading)
    result = tracklets.estimate(estimator)
    options = {"within": within * u.d, "n": draws, "rng": seed, "dynamics": dynamics}
    # one tracklet after the other, so that the draws of a night need not be kept
    own, alarmed = (
        vstack(
            [result[[k]].impacts(prior=prior, **options).to_table() for k in range(len(tracklets))],
            metadata_conflicts="silent",
        )
        for prior in (None, "log-uniform")
    )
    falls = own["probability"] > 0.0
    columns: dict[str, Any] = {}
    for mark, table in (("", own), ("log_uniform_", alarmed)):
        for name in ("probability", "error", "lower_limit", "upper_limit"):
            columns[f"{mark}{name}"] = table[name]
    columns["falls_under"] = [
        "prior" if first else "log-uniform" if second > 0.0 else ""
        for first, second in zip(falls, alarmed["probability"], strict=True)
    ]
    chosen = [own[k] if falls[k] else alarmed[k] for k in range(len(tracklets))]
    for name in ("time_low", "time_high"):
        columns[name] = [_minute(row[name]) for row in chosen]
    for name in ("longitude", "latitude", "extent", "absolute_magnitude"):
        columns[name] = u.Quantity([row[name] for row in chosen])
    columns["nearest_distance"] = own["nearest_distance"]
    columns["advice"] = [_advice(*rows) for rows in zip(own, alarmed, strict=True)]
    columns["status"] = [status.name for status in result.status]
    meta = {"method": method, "within_d": within, "draws": draws, "dynamics": dynamics}
    rows = track_rows(tracklets, result.epoch, columns, {**meta, "seed": seed})
    deliver(rows, form, out, _as_text)


def _minute(time: Any) -> str:
    """Instant in UTC to the minute, empty if there is none."""
    return "" if time.masked and time.mask else str(time.isot)[:16]


def _advice(own: Row, alarmed: Row) -> str:
    from neoranging.followup.priority import POSSIBLE

    chances = own["probability"], alarmed["probability"]
    if not own["n_draws"]:
        return "NO ANSWER"
    if any(chance >= least for chance, least in zip(chances, POSSIBLE, strict=True)):
        return "REPORT"
    if max(chances) >= _NOT_EXCLUDED:
        return "LONGER ARC"
    # what a few draws do not hit may still be a possible impactor
    limit = max(own["upper_limit"], alarmed["upper_limit"])
    return "MORE DRAWS" if limit >= min(POSSIBLE) else "NOT SEEN"


def _as_text(rows: QTable) -> str:
    from neoranging.core.status import RangeStatus

    within = f"{rows.meta['within_d']:g} d"
    under = rows["falls_under"].tolist()
    table = text_table(
        {
            **track_texts(rows),
            (f"hits within {within}", "by the prior"): _chances(rows, ""),
            (f"hits within {within}", "log-uniform"): _chances(rows, "log_uniform_"),
            ("when", "UTC"): [
                _bracketed(f"{low.replace('T', ' ')} to {high[5:].replace('T', ' ')}", which)
                for low, high, which in zip(rows["time_low"], rows["time_high"], under, strict=True)
            ],
            ("where", "east, north"): [
                _bracketed(
                    f"{lon:+.0f} {lat:+.0f} deg, "
                    + ("few draws" if math.isnan(km) else f"{km:.0f} km"),
                    which,
                )
                for lon, lat, km, which in zip(
                    *(rows[name].value for name in ("longitude", "latitude", "extent")),
                    under,
                    strict=True,
                )
            ],
            "size": [
                _bracketed(_size(h), which)
                for h, which in zip(rows["absolute_magnitude"].value, under, strict=True)
            ],
            "advice": rows["advice"].tolist(),
            "status": rows["status"].tolist(),
        },
        align=TRACK_ALIGN + ">><<<<<",
    )
    meanings = [
        textwrap.fill(f"{word}: {ADVICE[word]}", 98, subsequent_indent="  ")
        for word in ADVICE
        if word in rows["advice"]
    ]
    advice = advice_on(RangeStatus[name] for name in rows["status"])
    return "\n\n".join([table, "\n".join(meanings), advice]).rstrip()


def _chances(rows: QTable, mark: str) -> list[str]:
    """Probabilities with their errors, or the limits where all fall or none does."""
    cells = []
    for row in rows:
        names = ("probability", "error", "lower_limit", "upper_limit")
        chance, error, low, high = (row[f"{mark}{name}"] for name in names)
        if math.isnan(chance):
            cells.append("-")
        elif 0.0 < chance < 1.0:
            cells.append(f"{chance:.4f} +- {error:.4f}")
        else:
            cells.append(f"< {high:.1g}" if chance == 0.0 else f"> {low:.5g}")
    return cells


def _bracketed(text: str, which: str) -> str:
    """Text of a fall: a hyphen without one, in brackets under the prior of alarm."""
    return {"prior": text, "log-uniform": f"[{text}]"}.get(which, "-")


def _size(magnitude: float) -> str:
    """Diameters of an absolute magnitude for bright and dark objects."""
    if math.isnan(magnitude):
        return "unknown, no magnitude"
    bright, dark = (1.329e6 / math.sqrt(albedo) * 10.0 ** (-0.2 * magnitude) for albedo in _ALBEDOS)
    return f"{bright:.2g} to {dark:.2g} m" if dark < 1000.0 else f"{bright:.0f} to {dark:.0f} m"
