"""Hold the clouds of one night against where the next night found the object.

Run ``python docs/tools/next_night.py OBSERVATIONS``, a table or file of observations of near-Earth
objects in whatever form. It writes the parts of the guide's page on the next night. From the first
three observations of a station in a night, and from all of them, ``method="systematic"`` draws
orbits; these are followed to the first observation of the next night, of whatever station, and the
question is in which region of the cloud that lies (`Ephemeris.contains`), and how large these are.

Beside the real nights stand simulated ones, which the ``catalogue`` prior is the truth of: they say
whether the method is right, the real ones whether its priors and its law of errors are. The two are
never mixed. A near-Earth object that is observed was mostly taken for one, so that ``near-earth``
is the prior of real nights; ``population`` gives slow nights to the main belt.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from astropy import units as u
from astropy.time import Time

from neoranging import TrackletSet, read_tracklets
from neoranging.lab.sets import ArcTable
from neoranging.lab.simulation import Twin
from neoranging.orbits import load_catalogue

OUTPUT: Final = Path(__file__).resolve().parents[2] / "docs" / "guide" / "next_night.inc"

LEVELS: Final = (0.68, 0.95, 0.99)
GAPS: Final = {
    "below 1.5 d": (0.5, 1.5),
    "1.5 to 4.5 d": (1.5, 4.5),
    "4.5 to 10 d": (4.5, 10.0),
    "10 to 30 d": (10.0, 30.0),
}
"""Times from the last observation that is used to the first one of the next night [d]."""

CAP: Final = 3
"""Pairs of nights of one object in one class of gaps, at most."""

MOST: Final = 40
"""Observations of a night that is followed, at most: longer series are light curves."""

LEAST_SPAN_D: Final = 1e-3
MAX_U: Final = 3
"""Uncertainty parameter up to which an orbit is well determined."""

PRIORS: Final = ("near-earth", "catalogue", "population", "log-uniform")
DRAWS: Final = 1000
SHORT_D: Final = 4.5


def usable(tracklets: TrackletSet) -> np.ndarray:
    """Flags of nights observed with a CCD and a clock.

    Photographic nights are off by tens of arcseconds; what ZTF reported before 2021 has the start
    of the exposure in place of its middle.
    """
    year = tracklets_first(tracklets).jyear
    ztf = np.array([codes == "I41" for codes in tracklets.stations])
    return (year >= 2000.0) & ~(ztf & (year < 2021.0))


def tracklets_first(tracklets: TrackletSet) -> Time:
    """Instant of the first observation of each tracklet."""
    return Time(tracklets._tdb[tracklets._offsets[:-1]], format="mjd", scale="tdb")


def night_pairs(tracklets: TrackletSet, n_first: int | None, cap: int = CAP) -> pd.DataFrame:
    """Tracklets and the next night of their objects, at most ``cap`` of an object and gap.

    Columns: ``first`` and ``second``, tracklets, ``n`` observations of the first that count,
    ``gap`` [d] and its class. They are drawn by chance, from a seed.
    """
    begin = tracklets_first(tracklets).mjd
    counts = tracklets.counts
    n = np.minimum(counts, n_first or MOST)
    end = tracklets._tdb[tracklets._offsets[:-1] + n - 1]
    good = usable(tracklets)
    starts = good & (n >= 3) & (counts <= MOST) & (end - begin > LEAST_SPAN_D)
    least, most = GAPS[next(iter(GAPS))][0], max(bounds[1] for bounds in GAPS.values())
    rows = []
    for name in np.unique(tracklets.designation):
        own = np.flatnonzero((tracklets.designation == name) & good)
        own = own[np.argsort(begin[own], kind="stable")]
        for first in own[starts[own]]:
            later = own[np.searchsorted(begin[own], end[first] + least) :]
            if len(later) and begin[later[0]] - end[first] < most:
                rows.append((name, first, later[0], n[first], begin[later[0]] - end[first]))
    pairs = pd.DataFrame(rows, columns=["object", "first", "second", "n", "gap"])
    edges = [bounds[0] for bounds in GAPS.values()]
    pairs["class"] = np.array(list(GAPS))[np.searchsorted(edges, pairs["gap"], side="right") - 1]
    shuffled = pairs.sample(frac=1.0, random_state=0)
    few = shuffled.groupby(["object", "class"]).head(cap)
    return few.sort_index().reset_index(drop=True)


def judge(tracklets: TrackletSet, pairs: pd.DataFrame, prior: str) -> pd.DataFrame:
    """The pairs with flags of the regions that hold the next night, and their areas [arcmin2].

    Pairs without an answer, of a misfit, have NaN.
    """
    firsts, row = np.unique(pairs["first"], return_inverse=True)
    n = np.zeros(len(tracklets), dtype=int)
    n[pairs["first"]] = pairs["n"]
    nights = TrackletSet.from_tracklets(tracklets[int(k)][: n[k]] for k in firsts)
    estimate = nights.estimate(method="systematic", prior=prior)
    columns = [*(f"{100 * level:.0f}" for level in LEVELS), "area"]
    judged = np.full((len(pairs), len(columns)), np.nan)
    for k, second in enumerate(pairs["second"]):
        night, one = tracklets[int(second)], estimate[int(row[k])]
        if one.status.name in {"MISFIT", "INADMISSIBLE"}:
            continue
        cloud = one.ephemeris(night.obstime[0], str(night.station[0]), n=DRAWS)
        held = [cloud.contains(night.coord[0], level) for level in LEVELS]
        judged[k] = *held, cloud.area(LEVELS[1]).value
    return pairs.assign(**dict(zip(columns, judged.T, strict=True)))


def simulated_nights(objects: int, seed: int = 0, dynamics: str = "near-earth") -> TrackletSet:
    """Nights of a twin, as stations would have reported them."""
    twin = Twin(seed=seed, objects=objects, group_by="station", dynamics=dynamics)
    return as_tracklets(twin.arcs())


def as_tracklets(table: ArcTable) -> TrackletSet:
    """Arcs of a set as tracklets, one of each."""
    owner = np.repeat(np.arange(len(table)), table["n_obs"])
    sigma = np.stack([table["sigma_ra_rad"], table["sigma_dec_rad"]], axis=1)
    return TrackletSet.from_arrays(
        Time(table["t_mjd_tdb"], format="mjd", scale="tdb"),
        table["ra_rad"] << u.rad,
        table["dec_rad"] << u.rad,
        station=table["stations"],
        tracklet=owner,
        sigma=sigma << u.rad,
        designation=table["designation"][owner],
        mag=table["mag"][owner],
        band=np.full(len(owner), "V"),
    )


def share(flags: pd.Series, objects: pd.Series) -> str:
    """Share [%] with its standard error, objects taken for independent of one another."""
    total = len(flags)
    mean = flags.mean()
    off = (flags - mean).groupby(objects).sum()
    error = np.sqrt(np.sum(off**2)) / total
    return f"{100.0 * mean:.0f} \N{PLUS-MINUS SIGN} {100.0 * error:.0f}"


def figures(judged: pd.DataFrame) -> Iterator[tuple[str, ...]]:
    """Rows of a table: each class of gaps, the short ones and all of them."""
    classes = [(name, judged[judged["class"] == name]) for name in GAPS]
    short = f"below {SHORT_D:g} d", judged[judged["gap"] < SHORT_D]
    for name, rows in [*classes, short, ("all", judged)]:
        answered = rows.dropna(subset=["area"])
        if not len(answered):
            continue
        yield (
            *(name, str(len(rows)), str(rows["object"].nunique())),
            *(share(answered[f"{100 * level:.0f}"], answered["object"]) for level in LEVELS),
            f"{answered['area'].median():.3g}",
            str(len(rows) - len(answered)),
        )


HEADER: Final = (
    *("gap", "pairs", "objects", "68 % holds", "95 % holds", "99 % holds"),
    *("95 %, median area [arcmin2]", "no answer"),
)


def table(title: str, header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """One table in reStructuredText."""
    lines = [", ".join(f'"{cell}"' for cell in row) for row in (header, *rows)]
    options = "   :header-rows: 1\n   :class: numbers\n\n"
    body = "\n".join(f"   {line}" for line in lines)
    return f".. csv-table:: {title}\n{options}{body}\n"


def real_parts(tracklets: TrackletSet, priors: Sequence[str] = PRIORS) -> Iterator[str]:
    """Tables of real nights: the first prior in full, the others in short."""
    catalogue = load_catalogue()
    for title, n_first in (("the first three observations", 3), ("all observations", None)):
        pairs = night_pairs(tracklets, n_first)
        judged = {prior: judge(tracklets, pairs, prior) for prior in priors}
        row = catalogue.find(pairs["object"].to_numpy(str))
        known = (row >= 0) & (catalogue.U[row] >= 0) & (catalogue.U[row] <= MAX_U)
        heading = f"Real nights, {title}, prior {priors[0]}"
        yield table(heading, HEADER, figures(judged[priors[0]]))
        rows = [
            (prior, which, *cells)
            for prior in priors
            for which, part in (("all", judged[prior]), (f"U <= {MAX_U}", judged[prior][known]))
            for cells in list(figures(part))[-2:]
        ]
        yield table(f"Real nights, {title}, by prior", ("prior", "objects of", *HEADER), rows)


def simulated_part(tracklets: TrackletSet) -> str:
    """Table of simulated nights."""
    judged = judge(tracklets, night_pairs(tracklets, 3), "catalogue")
    heading = "Simulated nights, from the first three observations, prior catalogue"
    return table(heading, HEADER, figures(judged))


def main(arguments: list[str] | None = None) -> Any:
    """Write the page part."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("observations", type=Path)
    parser.add_argument("--objects", type=int, default=600, help="of the simulated nights")
    parser.add_argument("--dynamics", default="nbody", help="of the simulated nights")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args(arguments)
    parts = [".. made by docs/tools/next_night.py; do not edit\n"]
    parts += real_parts(read_tracklets(options.observations, kinds=("ground",)))
    parts.append(simulated_part(simulated_nights(options.objects, dynamics=options.dynamics)))
    options.output.write_text("\n".join(parts))
    print(options.output.read_text())


if __name__ == "__main__":
    main()
