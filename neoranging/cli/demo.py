"""``neoranging demo``: what one night tells about real objects, beside the truth."""

from __future__ import annotations

import shutil
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import click

from neoranging.cli.errors import echo
from neoranging.rows import track_rows
from neoranging.tables import significant, text_table
from neoranging.typing import BoolArray, FloatArray

if TYPE_CHECKING:
    from neoranging.estimate import RangeEstimate
    from neoranging.tracklet import TrackletSet


LEVEL = 0.95
DRAWS = 2000
"""Orbits drawn for the chance of an impact."""

FALLS = {
    "2008 TC3": "on 2008-10-07 at 02:46 over Sudan, latitude 21, longitude 32",
    "2014 AA": "on 2014-01-02 at about 03:00 into the Atlantic",
}
"""Where and when the objects fell (Jenniskens et al. 2009; Farnocchia et al. 2016)."""

INTRODUCTION = """\
Real tracklets of two asteroids hours before they fell on the Earth (2008 TC3 and 2014 AA), of one
that passed it (2008 EK68), and of 2024 YR4 about its discovery. Each is ranged from its own
observations alone: the range that holds 95 % of the probability beside the true one, in au, and
the chances in per cent that the object is a near-Earth object and that it hits the Earth within
30 days.
"""

NOTES = (
    "The region holds the true range of {inside} of {n} tracklets. It may be in several pieces. "
    "These objects are famous for coming near, as few that move like them do: a prior of what "
    "objects there are expects them farther away. Under the log-uniform one it holds "
    "{inside_watch}.",
    "OK ({n_ok} tracklets) means that the observations determine the range, whatever one assumes. "
    "POPULATION means that the answer rests on what objects there are, too: a region, and no "
    "number.",
    "The chance of a hit stands under two priors: how many objects there are on every orbit, and "
    "one that takes near objects for as likely as distant ones (hits*). Where both agree, the "
    "observations tell. Short arcs of an object about to fall look like those of many distant "
    "objects, and a watch for impacts looks at the second.",
    "Gauss's method has the status OK for {n_gauss} tracklets, with errors up to {error} %. What "
    "it prints for the others, with another status, is off by up to a factor of {factor}. Of an "
    "observer at the centre of the Earth it is OK for {n_geocenter}: a night shows the range by "
    "the parallax of the station, which the rotation of the Earth carries around.",
)


@click.command()
def demo() -> None:
    """Show what follows from real tracklets whose range, orbit and fate are known."""
    from neoranging.read import read_tracklets
    from neoranging.samples import sample

    names = ("2024YR4", "impactors")
    tracklets = read_tracklets([sample(name) for name in names])
    echo(INTRODUCTION)
    estimate = tracklets.estimate("systematic")
    true = _true_ranges(tracklets, estimate)
    regions = [region.value for region in estimate.credible_region(LEVEL)]
    impacts = estimate.impacts(n=DRAWS)
    rows = track_rows(tracklets, estimate.epoch, {}, {})
    chances = {
        "NEO": estimate.probability("neo"),
        "hits": impacts.probability,
        "hits*": estimate.impact_probability(n=DRAWS, prior="log-uniform"),
    }
    table = {
        "object": rows["designation"].tolist(),
        ("seen", "from"): rows["stations"].tolist(),
        "night": [epoch[:10] for epoch in rows["epoch"].isot],
        "n": rows["n_observations"].tolist(),
        ("arc", "min"): [f"{hours * 60.0:.0f}" for hours in rows["arc"].value],
        "true": [significant(rho, 3) for rho in true.tolist()],
        "95 % region": [
            ", ".join(" to ".join(significant(end, 3) for end in piece) for piece in pieces)
            for pieces in regions
        ],
        "status": [status.name for status in estimate.status],
    } | {(name, "%"): [f"{100.0 * p:.1f}" for p in column] for name, column in chances.items()}
    echo(text_table(table, align="<<<>>><<>>>"))
    echo("")
    counts = _counts(tracklets, regions, true, estimate.ok)
    for number, note in enumerate(NOTES, 1):
        text = f"{number}. {note.format(**counts)}"
        echo(textwrap.fill(text, 98, subsequent_indent="   "))
    echo("")
    for k in (impacts.probability > 0.5).nonzero()[0].tolist():
        one, name, station = impacts[k], str(rows["designation"][k]), rows["stations"][k]
        early, late = (one.time_quantile(q).iso[:16] for q in (0.01, 0.99))
        lon, lat = one.center.lon.deg, one.center.lat.deg
        echo(
            f"{name} as seen from {station} falls from {early} to {late} UTC (98 %), within\n"
            f"   {one.extent.value:.0f} km of latitude {lat:.0f}, longitude {lon:.0f} (95 %).\n"
            f"   It fell {FALLS[name]}."
        )
    command = _command()
    echo(f"\nWith your own observations: {command} estimate FILE --method systematic")
    echo(f"Every tracklet of a night:  {command} report FILE --out night.html")


def _command() -> str:
    """Command line that calls this command from here; an environment need not be activated."""
    script = Path(sys.executable).with_name("neoranging")
    if shutil.which("neoranging"):
        return "neoranging"
    if not script.exists():
        return "python -m neoranging"
    here = Path.cwd()
    return str(script.relative_to(here) if script.is_relative_to(here) else script)


def _counts(
    tracklets: TrackletSet, regions: list[FloatArray], true: FloatArray, ok: BoolArray
) -> dict[str, str]:
    """Figures that the notes below the table quote."""
    import numpy as np

    def held(regions: list[FloatArray]) -> str:
        inside = (
            bool(((low <= rho) & (rho <= high)).any())
            for (low, high), rho in zip((region.T for region in regions), true, strict=True)
        )
        return str(sum(inside))

    watch = tracklets.estimate("systematic@log-uniform").credible_region(LEVEL)
    gauss = tracklets.estimate("gauss")
    ratio = gauss.range.value / true
    others = np.abs(np.log(ratio[~gauss.ok & np.isfinite(ratio)])).max(initial=0.0)
    return {
        "inside": held(regions),
        "inside_watch": held([region.value for region in watch]),
        "n": str(len(true)),
        "n_ok": str(ok.sum()),
        "n_gauss": str(gauss.ok.sum()),
        "error": f"{100.0 * np.abs(ratio[gauss.ok] - 1.0).max(initial=0.0):.1f}",
        "factor": f"{float(f'{np.exp(others):.1g}'):g}",
        "n_geocenter": str(tracklets.estimate("gauss", origin="geocenter").ok.sum()),
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
