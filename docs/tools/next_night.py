"""Hold the clouds of one night against where the next night found the object.

Run ``python docs/tools/next_night.py OBSERVATIONS``, a table or file of observations of near-Earth
objects in whatever form. It writes the parts of the guide's page on the next night. From one night,
``method="systematic"`` draws orbits; these are followed to the first observation of the next one,
and the question is in which region of the cloud that lies (`Ephemeris.contains`), and how large
these are.

With ``--orbits`` and the extra ``nbody`` it also asks where a miss comes from: how often the
posterior of the range holds the true one, and how often clouds hold the next night that are drawn
*at* the true range and range-rate, with nothing but the errors of the observations.

Beside the real nights stand simulated ones, which the ``catalogue`` prior is the truth of: they say
whether the method is right, the real ones whether its priors and its law of errors are. The two are
never mixed. A near-Earth object that is observed was mostly taken for one, so that ``near-earth``
is the prior of real nights; ``population`` gives slow nights to the main belt.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from astropy import units as u
from astropy.time import Time

from neoranging import TrackletSet, read_tracklets
from neoranging.followup import Ephemeris
from neoranging.lab.sets import ArcTable, form_arcs, label_arcs
from neoranging.lab.simulation import Twin
from neoranging.orbits import OrbitSamples, load_catalogue, read_orbits

OUTPUT: Final = Path(__file__).resolve().parents[2] / "docs" / "guide"

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
WAYS: Final = {
    "three": "three observations of a night: the first, the middle and the last, of any station",
    "all": "all observations of a night, of any station",
    "brief": "the first three observations of one station in a night",
}
"""What is taken of a night."""

DRAWS: Final = 1000
SHORT_D: Final = 4.5


def usable(tracklets: TrackletSet) -> np.ndarray:
    """Flags of nights observed with a CCD and a clock.

    Photographic nights are off by tens of arcseconds; what ZTF reported before 2021 has the start
    of the exposure in place of its middle.
    """
    year = tracklets_first(tracklets).jyear
    ztf = np.char.find(tracklets.stations.astype(str), "I41") >= 0
    return (year >= 2000.0) & ~(ztf & (year < 2021.0))


def tracklets_first(tracklets: TrackletSet) -> Time:
    """Instant of the first observation of each tracklet."""
    return Time(tracklets._tdb[tracklets._offsets[:-1]], format="mjd", scale="tdb")


def taken(n: int, way: str) -> np.ndarray:
    """Observations of a night of n that are used."""
    return {
        "three": np.unique([0, n // 2, n - 1]),
        "all": np.arange(n),
        "brief": np.arange(min(n, 3)),
    }[way]


def first_nights(tracklets: TrackletSet, pairs: pd.DataFrame, way: str) -> tuple[TrackletSet, Any]:
    """What is used of the first nights, each once, and the row of each pair among them."""
    firsts, row = np.unique(pairs["first"], return_inverse=True)
    parts = (tracklets[int(k)] for k in firsts)
    return TrackletSet.from_tracklets(one[taken(len(one), way)] for one in parts), row


def night_pairs(tracklets: TrackletSet, way: str, cap: int = CAP) -> pd.DataFrame:
    """Tracklets and the next night of their objects, at most ``cap`` of an object and gap.

    Columns: ``object``, ``first`` and ``second``, tracklets, the ``gap`` [d] and its class. They
    are drawn by chance, from a seed.
    """
    begin, counts, offsets = tracklets_first(tracklets).mjd, tracklets.counts, tracklets._offsets
    last = [taken(n, way)[-1] for n in counts]
    end = tracklets._tdb[offsets[:-1] + last]
    good = usable(tracklets)
    starts = good & (counts >= 3) & (counts <= MOST) & (end - begin > LEAST_SPAN_D)
    edges = [bounds[0] for bounds in GAPS.values()]
    most = max(bounds[1] for bounds in GAPS.values())
    rows = []
    for name in np.unique(tracklets.designation):
        own = np.flatnonzero((tracklets.designation == name) & good)
        own = own[np.argsort(begin[own], kind="stable")]
        for first in own[starts[own]]:
            later = own[np.searchsorted(begin[own], end[first] + edges[0]) :]
            if len(later) and begin[later[0]] - end[first] < most:
                rows.append((name, first, later[0], begin[later[0]] - end[first]))
    pairs = pd.DataFrame(rows, columns=["object", "first", "second", "gap"])
    pairs["class"] = np.array(list(GAPS))[np.searchsorted(edges, pairs["gap"], side="right") - 1]
    shuffled = pairs.sample(frac=1.0, random_state=0)
    few = shuffled.groupby(["object", "class"]).head(cap)
    return few.sort_index().reset_index(drop=True)


def judge(tracklets: TrackletSet, pairs: pd.DataFrame, prior: str, way: str) -> pd.DataFrame:
    """The pairs with flags of the regions that hold the next night, and their areas [arcmin2].

    Pairs without an answer, of a misfit, have NaN.
    """
    nights, row = first_nights(tracklets, pairs, way)
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
    twin = Twin(seed=seed, objects=objects, dynamics=dynamics)
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
        band=table["band"][owner],
    )


def causes(
    tracklets: TrackletSet, judged: pd.DataFrame, prior: str, way: str, orbits: Path
) -> pd.DataFrame:
    """The pairs whose range is known, with what the posterior and the sky would each hold.

    Columns: ``range``, the least central interval of the posterior of the range that holds the true
    one; and a flag for each level of clouds drawn at the true range.
    """
    nights, row = first_nights(tracklets, judged, way)
    arcs, _ = form_arcs(nights)
    labelled, _ = label_arcs(arcs, read_orbits(orbits), dynamics="nbody", max_u=MAX_U)
    places = {
        key: k for k, key in enumerate(_keys(labelled["designation"], labelled["t1_mjd_tdb"]))
    }
    label = [places.get(key, -1) for key in _keys(nights.designation, tracklets_first(nights).mjd)]
    of_arc = np.array(label)
    rho = np.where(of_arc >= 0, labelled["rho_topo_au"][of_arc], np.nan)
    rho_dot = np.where(of_arc >= 0, labelled["rho_dot_topo_au_d"][of_arc], np.nan)
    estimate = nights.estimate(method="systematic", prior=prior)
    below = estimate.cdf(np.where(of_arc >= 0, rho, 1.0) << u.au)
    attributables, refit = estimate._answers.attributables, estimate._refit
    rng = np.random.default_rng(0)
    columns = [f"{100 * level:.0f} at the true range" for level in LEVELS]
    held = np.full((len(judged), len(columns)), np.nan)
    for k in np.flatnonzero(of_arc[row] >= 0):
        which = np.full(DRAWS, row[k])
        points = which, np.full(DRAWS, rho[row[k]]), np.full(DRAWS, rho_dot[row[k]])
        drawn = attributables.take(which).corrected(refit(*points, rng)).complete(*points[1:])
        samples = OrbitSamples(
            points[1] << u.au,
            points[2] << u.au / u.d,
            drawn.r << u.au,
            drawn.v << u.au / u.d,
            Time(drawn.epoch, format="mjd", scale="tdb"),
            np.full(DRAWS, np.nan) << u.mag,
            np.full(DRAWS, 1.0 / DRAWS),
        )
        night = tracklets[int(judged["second"].iloc[k])]
        cloud = Ephemeris(samples, night.obstime[0], str(night.station[0]))
        held[k] = [cloud.contains(night.coord[0], level) for level in LEVELS]
    found = judged.assign(**dict(zip(columns, held.T, strict=True)))
    return found.assign(range=2.0 * np.abs(below[row] - 0.5))[of_arc[row] >= 0]


def _keys(designation: np.ndarray, begin: np.ndarray) -> list[tuple[str, float]]:
    return [(str(name), round(float(t), 6)) for name, t in zip(designation, begin, strict=True)]


def cause_rows(found: pd.DataFrame) -> Iterator[tuple[str, ...]]:
    """Rows of the table of causes."""
    for name in (*GAPS, "all"):
        rows = found if name == "all" else found[found["class"] == name]
        if not len(rows):
            continue
        objects = rows["object"]
        yield (
            *(name, str(len(rows)), str(objects.nunique())),
            *(share(rows["range"] < level, objects) for level in LEVELS[:2]),
            *(share(rows[f"{100 * level:.0f} at the true range"], objects) for level in LEVELS[:2]),
            *(share(rows[f"{100 * level:.0f}"], objects) for level in LEVELS[:2]),
        )


CAUSES: Final = (
    *("gap", "pairs", "objects", "range, 68 % holds", "range, 95 % holds"),
    *("sky at the true range, 68 % holds", "the same, 95 % holds"),
    *("sky, 68 % holds", "sky, 95 % holds"),
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
            np.format_float_positional(float(f"{answered['area'].median():.2g}"), trim="-"),
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


def real_parts(
    observations: Path, priors: Mapping[str, Sequence[str]], orbits: Path | None = None
) -> Iterator[str]:
    """Tables of real nights: the first prior in full, the others in short."""
    catalogue = load_catalogue()
    for way, named in priors.items():
        grouping = ("night", "station") if way == "brief" else "night"
        tracklets = read_tracklets(observations, kinds=("ground",), group_by=grouping)
        pairs = night_pairs(tracklets, way)
        judged = {prior: judge(tracklets, pairs, prior, way) for prior in named}
        row = catalogue.find(pairs["object"].to_numpy(str))
        known = (row >= 0) & (catalogue.U[row] >= 0) & (catalogue.U[row] <= MAX_U)
        heading = f"Real nights, {WAYS[way]}; prior {named[0]}"
        yield table(heading, HEADER, figures(judged[named[0]]))
        rows = [
            (prior, which, *cells)
            for prior in named
            for which, part in (("all", judged[prior]), (f"U <= {MAX_U}", judged[prior][known]))
            for cells in list(figures(part))[-2:]
        ]
        yield table(f"Real nights, {WAYS[way]}; by prior", ("prior", "orbits", *HEADER), rows)
        if orbits is not None and way == next(iter(priors)):
            found = causes(tracklets, judged[named[0]], named[0], way, orbits)
            heading = f"Real nights of known range, {WAYS[way]}; prior {named[0]}"
            yield table(heading, CAUSES, cause_rows(found))


def simulated_part(tracklets: TrackletSet) -> str:
    """Table of simulated nights."""
    way = next(iter(WAYS))
    judged = judge(tracklets, night_pairs(tracklets, way, cap=1), "catalogue", way)
    heading = f"Simulated nights, {WAYS[way]}; prior catalogue"
    return table(heading, HEADER, figures(judged))


def main(arguments: list[str] | None = None) -> None:
    """Write the page parts."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("observations", type=Path)
    parser.add_argument("--orbits", type=Path, help="table of orbits that true ranges come from")
    parser.add_argument("--objects", type=int, default=400, help="of the simulated nights")
    parser.add_argument("--dynamics", default="nbody", help="of the simulated nights")
    parser.add_argument("--output", type=Path, default=OUTPUT, help="folder of the page parts")
    options = parser.parse_args(arguments)
    priors = {"three": PRIORS, "all": PRIORS[:2], "brief": PRIORS[:2]}
    nights = simulated_nights(options.objects, dynamics=options.dynamics)
    for name, parts in (
        ("next_night.inc", real_parts(options.observations, priors, options.orbits)),
        ("next_night_simulated.inc", [simulated_part(nights)]),
    ):
        text = "\n".join([".. made by docs/tools/next_night.py; do not edit\n", *parts])
        (options.output / name).write_text(text)
        print(text)


if __name__ == "__main__":
    main()
