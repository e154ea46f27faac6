"""``neoranging demo``: what the methods make of real tracklets of known range."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from neoranging.cli.errors import echo
from neoranging.cli.listing import TextColumn, number, text_table, tracks

if TYPE_CHECKING:
    from neoranging.estimate import RangeEstimate
    from neoranging.tracklet import TrackletSet

__all__ = ["demo"]

LEVEL = 0.68
METHODS = ("gauss", "laplace")
ORIGINS = ("topocenter", "geocenter")

INTRODUCTION = """\
Real tracklets of two asteroids hours before they fell on the Earth (2014 AA and 2008 TC3), of one
that passed it (2008 EK68), and of 2024 YR4 about its discovery. Ranges in au by Gauss and by
Laplace, from the station and as if from the centre of the Earth, and by a network, beside the true
ones (by JPL; for 2024 YR4 by an orbit fitted to its later observations).
"""

EXPLANATION = """\
1. Plain numbers have status OK and agree with the truth within their errors: the rotation of the
   Earth carries the station around, and the parallax gives the range.
2. Numbers in parentheses are what the formulae print where noise covers the signal, mostly because
   the arc is short. The status says so; a dash means that there is no solution at all.
3. From the centre of the Earth, parallax is mistaken for motion of the asteroid and the solutions
   collapse onto the observer. This is why the station is the default.
4. The network (pinn) always answers: with the range that objects which move like this mostly have.
   Its interval held in 68 of 100 simulated cases; of real ones fewer, and objects about to hit are
   like none it has seen.
"""


@click.command()
def demo() -> None:
    """Show the methods at work on real tracklets whose range is known."""
    from neoranging.forming import read_tracklets
    from neoranging.samples import sample

    names = ("2024YR4", "impactors")
    tracklets = read_tracklets([sample(name) for name in names])
    echo(INTRODUCTION)
    echo(_comparison(tracklets))
    echo(f"\n{EXPLANATION}")
    command = _command()
    echo(f"With errors and intervals:  {command} estimate {_shortest(sample(names[1]))}")
    echo(f"With your own observations: {command} estimate FILE")


def _command() -> str:
    """How to call this command from here; an environment need not be activated."""
    script = Path(sys.executable).with_name("neoranging")
    if shutil.which("neoranging"):
        return "neoranging"
    return _shortest(script) if script.exists() else "python -m neoranging"


def _shortest(path: Path) -> str:
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def _comparison(tracklets: TrackletSet) -> str:
    track = tracks(tracklets)
    estimates = {
        (method, origin): tracklets.estimate(method, origin=origin)
        for origin in ORIGINS
        for method in METHODS
    }
    best = estimates["gauss", "topocenter"]
    columns = [
        TextColumn("", "object", track["designation"].tolist(), "<"),
        TextColumn("", "station", track["stations"], "<"),
        TextColumn("", "night", [epoch[:10] for epoch in best.epoch.utc.iso], "<"),
        TextColumn("", "n", [str(n) for n in track["n_observations"]]),
        TextColumn("", "arc/h", [f"{arc:.2f}" for arc in track["arc"].value]),
        TextColumn("", "true", [number(rho) for rho in _true_ranges(tracklets, best)]),
    ]
    for (method, origin), estimate in estimates.items():
        head = f"{origin}:" if method == METHODS[0] else ""
        columns.append(TextColumn(head, method, _cells(estimate)))
    network = tracklets.estimate("pinn")
    columns.append(TextColumn("network:", "pinn", _cells(network)))
    bounds = [[number(x, 2) for x in pair] for pair in network.interval(LEVEL).value.tolist()]
    columns.append(TextColumn("", f"{100 * LEVEL:g} %", [" to ".join(pair) for pair in bounds]))
    columns.append(TextColumn("", "status (gauss)", [s.name for s in best.status], "<"))
    return text_table(columns)


def _cells(estimate: RangeEstimate) -> list[str]:
    texts = [number(rho) for rho in estimate.range.value.tolist()]
    return [
        text if ok or text == "-" else f"({text})"
        for text, ok in zip(texts, estimate.ok, strict=True)
    ]


def _true_ranges(tracklets: TrackletSet, estimate: RangeEstimate) -> list[float]:
    """Reference ranges at the epochs of estimates, each of which is that of an observation."""
    import numpy as np

    from neoranging.samples import reference_ranges

    known = reference_ranges()
    same = known["designation"] == tracklets.designation[:, None]
    distance = np.abs(known["obstime"].mjd - estimate.epoch.utc.mjd[:, None])
    nearest = np.where(same, distance, np.inf).argmin(axis=1)
    return [float(rho) for rho in known["range"].value[nearest]]
