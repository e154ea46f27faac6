"""Is it a near-Earth object? Our probability and the score of digest2, on the same tracklets.

    python benchmarks/peers/neo_score.py --work WORK --out FOLDER

digest2 is asked in an environment of its own in WORK, which is built if it is not there; the model
is the file in its package. Tracklets are simulated: near-Earth objects on orbits of the catalogue
of the package, objects of the main belt on orbits drawn from the bins of the model (its classes
MB1, MB2 and MB3), each at a date and a place in its orbit by chance, observed by the stations,
cadences and errors of the twin. As many are taken of both in each half magnitude, so that
brightness alone tells nothing. Every tracklet is of another object.

Both answers rest on the same model of the solar system: digest2 counts which of its bins can be
reached by orbits through the end points of a tracklet, ours weighs all orbits by likelihood and
density. The area under the curve is the chance that of two tracklets, one of each kind, the
near-Earth object has the higher number; its interval comes from a bootstrap of the objects.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

import nights
import numpy as np
import pandas as pd
from environments import Work, prepared, script
from scipy.stats import rankdata

from neoranging import TrackletSet
from neoranging.lab.sets import ArcTable
from neoranging.lab.simulation.astrometric_errors import Errors
from neoranging.lab.simulation.exposures import observe
from neoranging.lab.simulation.schedule import plan_visits
from neoranging.lab.simulation.survey import Survey
from neoranging.lab.simulation.twin import USUAL_SLOPE
from neoranging.orbits import Catalogue, load_catalogue

sys.path.append(str(Path(__file__).resolve().parents[2] / "docs" / "tools"))
import priors

BELT = ("MB1", "MB2", "MB3")
SPAN = (57_000.0, 60_500.0)
"""Dates of the tracklets [MJD], 2014 to 2024."""

MAGNITUDES = np.arange(17.0, 22.1, 0.5)
CANDIDATES = 40_000
N_BOOT = 2000
METHODS = {
    "neoranging, prior population": "ours",
    "digest2, NEO raw": "raw",
    "digest2, NEO of unknown objects": "noid",
}


def belt_orbits(model: Path, n: int, rng: np.random.Generator) -> Catalogue:
    """Orbits of the main belt, drawn from the bins of the model and evenly within them."""
    counts = sum(priors.read_model(model, kind) for kind in BELT)
    # what is fainter than H 20 no station of the survey sees in the main belt
    counts[..., priors.H_EDGES[1:] > 20.0] = 0.0
    cell = rng.choice(counts.size, n, p=(counts / counts.sum()).ravel())
    edges = priors.Q_EDGES, priors.E_EDGES, np.radians(priors.I_EDGES_DEG), priors.H_EDGES
    drawn = [
        rng.uniform(axis[index], axis[index + 1])
        for axis, index in zip(edges, np.unravel_index(cell, counts.shape), strict=True)
    ]
    names = np.char.add("B", np.arange(n).astype(str))
    nodes = rng.uniform(0.0, 2.0 * np.pi, (3, n))
    none = np.full(n, -1, dtype=np.int32)
    return Catalogue(
        *(names, names, rng.uniform(*SPAN, n), *drawn[:3], *nodes),
        *(drawn[3], np.full(n, USUAL_SLOPE), none.astype(np.int8), none, none, np.full(n, np.nan)),
    )


def near_earth_orbits(n: int, rng: np.random.Generator) -> Catalogue:
    """Orbits of the catalogue, at places in them by chance."""
    known = load_catalogue()
    orbits = known.take(rng.permutation(np.flatnonzero(np.isfinite(known.H_mag)))[:n])
    m = len(orbits)
    columns = vars(orbits) | {
        "epoch_mjd_tdb": rng.uniform(*SPAN, m),
        "mean_anomaly_rad": rng.uniform(0.0, 2.0 * np.pi, m),
        "G": np.full(m, USUAL_SLOPE),
    }
    return Catalogue(**{name: columns[name] for name in Catalogue.__dataclass_fields__})


def tracklets_of(orbits: Catalogue, rng: np.random.Generator) -> ArcTable:
    """One tracklet of each object that a station can observe at the epoch of its orbit."""
    survey = Survey()
    r, v = orbits.states()
    rows = np.arange(len(orbits))
    visits = plan_visits(orbits, rows, r, v, orbits.epoch_mjd_tdb, survey, rng)
    visits = visits.take(np.flatnonzero(visits.possible))
    return observe(visits, orbits, survey, Errors(), rng)[0]


def alike(near: ArcTable, belt: ArcTable, n: int, rng: np.random.Generator) -> ArcTable:
    """As many tracklets of both in each half magnitude, about n of each kind."""
    both = [np.digitize(table["mag"], MAGNITUDES) for table in (near, belt)]
    inside = range(1, len(MAGNITUDES))
    most = np.array([min(np.sum(bins == k) for bins in both) for k in inside])
    most = np.floor(most * min(n / max(most.sum(), 1), 1.0)).astype(int)
    parts = []
    for table, bins, is_near in ((near, both[0], True), (belt, both[1], False)):
        rows = [
            rng.permutation(np.flatnonzero(bins == k))[:m]
            for k, m in zip(inside, most, strict=True)
        ]
        parts.append(table.take(np.concatenate(rows)).with_columns(is_close=is_near))
    return ArcTable.concatenate(parts)


def ask_digest2(tracklets: TrackletSet, work: Work, folder: Path) -> pd.DataFrame:
    """Scores of all arcs by digest2, in its own environment."""
    files = nights.write_sky(tracklets, tracklets.tracklet_id.astype(int), folder)
    scores = folder / "scores.csv"
    command = work.python("digest2"), script("digest2_score.py"), *files, scores
    subprocess.run([str(part) for part in command], check=True)
    return pd.read_csv(scores)


def our_answers(tracklets: TrackletSet) -> pd.DataFrame:
    """Probabilities of a near-Earth object by the posterior."""
    arc = tracklets.tracklet_id.astype(int)
    tracklets[:1].estimate(method="systematic").probability("neo")  # kernels are compiled
    begin = time.process_time()
    probability = tracklets.estimate(method="systematic").probability("neo")
    cpu = 1e3 * (time.process_time() - begin) / len(tracklets)
    return pd.DataFrame({"arc": arc, "ours": probability, "cpu_ours": cpu}).sort_values("arc")


def area_under_curve(value: np.ndarray, is_near: np.ndarray) -> float:
    """Chance that a near-Earth object has the higher value; half of it where they are equal."""
    rank, n = rankdata(value), is_near.sum()
    return (rank[is_near].sum() - 0.5 * n * (n + 1)) / (n * (len(value) - n))


def interval(values: np.ndarray) -> str:
    low, high = np.quantile(values, (0.025, 0.975))
    return f"{low:+.3f} to {high:+.3f}"


def figures(scores: pd.DataFrame, is_near: np.ndarray, seed: int = 0) -> list[tuple[str, ...]]:
    """Rows of the table; differences are those of our area from the other one."""
    rng = np.random.default_rng(seed)
    areas = {name: area_under_curve(scores[name].to_numpy(), is_near) for name in METHODS.values()}
    kinds = np.flatnonzero(is_near), np.flatnonzero(~is_near)
    drawn = {name: np.empty(N_BOOT) for name in areas}
    for k in range(N_BOOT):
        rows = np.concatenate([rng.choice(kind, len(kind)) for kind in kinds])
        for name in areas:
            drawn[name][k] = area_under_curve(scores[name].to_numpy()[rows], is_near[rows])
    table = []
    for label, name in METHODS.items():
        low, high = np.quantile(drawn[name], (0.025, 0.975))
        value = scores[name].to_numpy()
        # share of near-Earth objects above the value that a tenth of the main belt exceeds
        found = np.mean(value[is_near] > np.quantile(value[~is_near], 0.9))
        own = name == "ours"
        cpu = scores["cpu_ours" if own else "cpu_ms"].mean()
        table.append(
            (
                *(label, f"{areas[name]:.3f}", f"{low:.3f} to {high:.3f}"),
                "" if own else interval(drawn["ours"] - drawn[name]),
                *(f"{100.0 * found:.0f}", f"{cpu:.0f}"),
            )
        )
    return table


HEADER = (
    *("", "area under the curve", "95 %", "ours is larger by, 95 %"),
    *("NEOs found at 10 % of the belt [%]", "CPU ms"),
)


def page_part(rows: list[tuple[str, ...]], n: tuple[int, int]) -> str:
    lines = [", ".join(f'"{cell}"' for cell in row) for row in (HEADER, *rows)]
    title = f"{n[0]} simulated near-Earth objects and {n[1]} objects of the main belt"
    return "\n".join(
        [
            ".. made by benchmarks/peers/neo_score.py; do not edit",
            "",
            f".. csv-table:: {title}",
            "   :header-rows: 1",
            "   :class: numbers",
            "",
            *(f"   {line}" for line in lines),
            "",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True, help="folder of environments")
    parser.add_argument("--out", type=Path, required=True, help="folder for answers")
    parser.add_argument("--tracklets", type=int, default=400, help="of each kind, at most")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--table", type=Path, help="also write a part of a page")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    work = Work(options.work.resolve())
    prepared("digest2", work)
    model = next(work.environment("digest2").rglob("digest2.model.csv"))
    rng = np.random.default_rng(options.seed)
    near = tracklets_of(near_earth_orbits(CANDIDATES, rng), rng)
    belt = tracklets_of(belt_orbits(model, CANDIDATES, rng), rng)
    table = alike(near, belt, options.tracklets, rng)
    is_near = table["is_close"]
    print(f"{len(near)} and {len(belt)} tracklets, {is_near.sum()} of each taken", flush=True)
    tracklets = nights.tracklets_of(table)
    scores = ask_digest2(tracklets, work, options.out).merge(our_answers(tracklets), on="arc")
    scores = scores.assign(is_near=is_near[scores["arc"]])
    scores.to_csv(options.out / "answers.csv", index=False, float_format="%.6g")
    answered = scores.dropna(subset=["ours"])
    flags = answered["is_near"].to_numpy(bool)
    part = page_part(figures(answered, flags), (int(flags.sum()), int((~flags).sum())))
    print(part)
    if options.table:
        options.table.write_text(part)


if __name__ == "__main__":
    main()
