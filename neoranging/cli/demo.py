"""``neoranging demo``: estimates of real tracklets beside their known range."""

from __future__ import annotations

import math
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from neoranging.cli.errors import echo
from neoranging.cli.listing import in_parentheses, track_rows, track_texts
from neoranging.tables import significant, text_table
from neoranging.typing import FloatArray

if TYPE_CHECKING:
    from neoranging.estimate import RangeEstimate
    from neoranging.tracklet import TrackletSet

    Estimates = Mapping[tuple[str, str], RangeEstimate]


LEVEL = 0.68
METHODS = ("gauss", "laplace")

INTRODUCTION = """\
Real tracklets of two asteroids hours before they fell on the Earth (2014 AA and 2008 TC3), of one
that passed it (2008 EK68), and of 2024 YR4 about its discovery. Ranges in au by Gauss and by
Laplace, from the station and as if from the centre of the Earth, and by a network, beside the true
ones (by JPL; for 2024 YR4 by an orbit fitted to its later observations).
"""

EXPLANATION = """\
1. Numbers of Gauss and Laplace without parentheses have status OK: the observations determine the
   range. The rotation of the Earth carries the station around, and the parallax gives the range.
   Here they are all within {error} % of the truth.
2. Numbers in parentheses have another status. Those of Gauss and Laplace are what the formulae
   print where noise covers the signal, mostly because the arc is short; do not use them. A dash
   means that there is no solution at all.
3. From the centre of the Earth, parallax is mistaken for motion of the asteroid and the solutions
   collapse onto the observer. This is why the station is the default.
4. The network (pinn) always answers, with the range that objects which move like this mostly have:
   quote its interval, not the number. The interval contains the truth for {within} of {n} tracklets
   here, for simulated arcs in {level} of 100 cases, and for real ones in fewer. Objects about to
   hit the Earth are unlike those that it has learnt from.
"""


@click.command()
def demo() -> None:
    """Show the methods at work on real tracklets whose range is known."""
    from neoranging.read import read_tracklets
    from neoranging.samples import sample
    from neoranging.tracklet import ORIGINS

    names = ("2024YR4", "impactors")
    tracklets = read_tracklets([sample(name) for name in names])
    estimates = {
        (method, origin): tracklets.estimate(method, origin=origin)
        for origin in ORIGINS
        for method in METHODS
    }
    network = tracklets.estimate("pinn")
    true = _true_ranges(tracklets, network)
    echo(INTRODUCTION)
    echo(_comparison(tracklets, estimates, network, true))
    echo(f"\n{EXPLANATION.format(**_counts(estimates, network, true))}")
    command = _command()
    echo(f"With errors and intervals:  {command} estimate {_shortest(sample(names[1]))}")
    echo(f"With your own observations: {command} estimate FILE")


def _command() -> str:
    """Command line that calls this command from here; an environment need not be activated."""
    script = Path(sys.executable).with_name("neoranging")
    if shutil.which("neoranging"):
        return "neoranging"
    return _shortest(script) if script.exists() else "python -m neoranging"


def _shortest(path: Path) -> str:
    """Path from the working directory, where it lies below."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def _comparison(
    tracklets: TrackletSet, estimates: Estimates, network: RangeEstimate, true: FloatArray
) -> str:
    """Table of all estimates beside the truth."""
    gauss = estimates["gauss", "topocenter"]
    rows = track_texts(track_rows(tracklets, gauss.epoch, {}, {}))
    columns: dict[tuple[str, str], list[Any]] = {
        ("", "object"): rows["designation"],
        ("", "station"): rows["station"],
        ("", "night"): [epoch[:10] for epoch in rows[("epoch", "UTC")]],
        ("", "n"): rows["n"],
        ("", "arc/h"): rows[("arc", "h")],
        ("", "true"): [significant(rho) for rho in true.tolist()],
    }
    for (method, origin), estimate in estimates.items():
        columns[f"{origin}:", method] = _cells(estimate)
    bounds = [[significant(x, 2) for x in pair] for pair in network.interval(LEVEL).value.tolist()]
    columns |= {
        ("network:", "pinn"): _cells(network),
        ("", f"{100 * LEVEL:g} %"): [" to ".join(pair) for pair in bounds],
        ("", "status (gauss)"): [status.name for status in gauss.status],
    }
    return text_table(columns, align="<<<>>>" + ">" * (len(estimates) + 2) + "<")


def _cells(estimate: RangeEstimate) -> list[str]:
    """Ranges, in parentheses unless the observations determine them."""
    return in_parentheses(map(significant, estimate.range.value.tolist()), estimate.ok)


def _counts(estimates: Estimates, network: RangeEstimate, true: FloatArray) -> dict[str, int]:
    """Figures that the notes below the table quote."""
    errors = [
        abs(estimate.range.value / true - 1.0)[estimate.ok].max(initial=0.0)
        for (_, origin), estimate in estimates.items()
        if origin == "topocenter"
    ]
    low, high = network.interval(LEVEL).value.T
    return {
        "error": math.ceil(100.0 * max(errors)),
        "within": int(((low <= true) & (true <= high)).sum()),
        "n": len(true),
        "level": round(100.0 * LEVEL),
    }


def _true_ranges(tracklets: TrackletSet, estimate: RangeEstimate) -> FloatArray:
    """Reference ranges at the epochs of estimates, each of which is that of an observation."""
    import numpy as np

    from neoranging.samples import reference_ranges

    reference = reference_ranges()
    same = reference["designation"] == tracklets.designation[:, None]
    distance = np.abs(reference["obstime"].mjd - estimate.epoch.utc.mjd[:, None])
    nearest = np.where(same, distance, np.inf).argmin(axis=1)
    return reference["range"].value[nearest]
