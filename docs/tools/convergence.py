"""Hold differential corrections from many first guesses against the orbits of real objects.

Run ``python docs/tools/convergence.py OBSERVATIONS ORBITS``: a table of observations of near-Earth
objects, and one of their orbits. It needs the extra ``nbody``, for the truth, and writes the table
of the guide's page on differential corrections.

An arc is a night and the next ones of the same object within 30 days: 2, 3 or 7 nights. Each method
estimates from the first night alone, and the orbit is corrected with all nights. The last row
starts from the orbit of the table: what it does not reach, no guess can.

Every arc that is done is kept in ``--rows``, so that an interrupted run goes on where it was.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from astropy import units as u
from astropy.time import Time
from next_night import OUTPUT, share, table, tracklets_first, usable

from neoranging import RangeEstimate, Tracklet, TrackletSet, d_sh, read_tracklets
from neoranging.constants import ARCSEC
from neoranging.core.geometry import norm
from neoranging.core.prediction import sight
from neoranging.orbits import Catalogue, OrbitalElements, OrbitSolution, nbody_states, read_orbits

METHODS: Final = (
    *("gauss", "laplace", "mlp", "pinn", "posterior"),
    *("systematic", "systematic:10"),
)
"""First guesses; a number asks for so many draws of the posterior, tried one after the other."""

TRUTH: Final = "catalogue orbit"
NIGHTS: Final = (2, 3, 7)
WITHIN_D: Final = 30.0
CAP: Final = 2
"""Arcs of one object, at most; they begin on nights drawn by chance, from a seed."""

MOST: Final = 10
"""Observations of a night: longer series are thinned evenly."""

LEAST_SPAN_D: Final = 1e-3
MAX_U: Final = 3
GATE_ARCSEC: Final = 10.0
SAME_ORBIT: Final = 0.05
"""D of Southworth and Hawkins below which two orbits are one."""

SAME_RANGE: Final = 0.01
HEADER: Final = (
    *("nights", "first guess", "arcs", "has a guess [%]", "converges [%]"),
    *("D below 0.05 [%]", "range right [%]", "as from the truth [%]"),
    *("steps, median", "weighted rms, median"),
)


def thinned(tracklet: Tracklet) -> Tracklet:
    """The night with few observations, evenly chosen."""
    n = len(tracklet)
    return tracklet[np.unique(np.linspace(0, n - 1, min(n, MOST)).astype(int))]


def arcs_of(tracklets: TrackletSet, catalogue: Catalogue, cap: int = CAP) -> Iterator[list[int]]:
    """Nights of each arc of seven nights, or as many as there are, the first one first.

    Objects that have a good orbit, and that no network has learnt from.
    """
    listed = pd.read_csv(files("neoranging") / "data" / "weights" / "never_learnt.csv", dtype=str)
    begin, good = tracklets_first(tracklets).mjd, usable(tracklets)
    span = tracklets.arc_length.to_value(u.d)
    starts = good & (tracklets.counts >= 3) & (span > LEAST_SPAN_D) & (span < 0.5)
    rng = np.random.default_rng(0)
    for name in np.unique(tracklets.designation):
        (row,) = catalogue.find(np.array([name]))
        if row < 0 or not 0 <= catalogue.U[row] <= MAX_U or name not in set(listed["designation"]):
            continue
        own = np.flatnonzero((tracklets.designation == name) & good)
        own = own[np.argsort(begin[own], kind="stable")]
        arcs = [own[(begin[own] >= begin[k]) & (begin[own] < begin[k] + WITHIN_D)] for k in own]
        arcs = [arc[: max(NIGHTS)].tolist() for arc in arcs if len(arc) > 1 and starts[arc[0]]]
        for k in sorted(rng.permutation(len(arcs))[:cap].tolist()):
            yield arcs[k]


def true_orbit(nights: TrackletSet, catalogue: Catalogue, epoch: Time) -> dict[str, Any] | None:
    """Elements at an epoch, and range there; None where the orbit misses an observation."""
    (row,) = catalogue.find(nights.designation[:1])
    one = catalogue.take(np.array([row]))
    arcs = nights.arcs("topocenter")
    t = np.append(arcs.t, epoch.tdb.mjd)
    owner = np.zeros(len(t), dtype=np.int64)
    states = nbody_states(*one.states(), one.epoch_mjd_tdb, owner, t)
    r, v = (column[:-1] for column in states)
    seen = sight(r, v, arcs.t, arcs.t, arcs.position, arcs.velocity)
    if not (norm(seen.direction - arcs.direction) < GATE_ARCSEC * ARCSEC).all():
        return None
    k = int(np.argmin(np.abs(arcs.t - epoch.tdb.mjd)))
    elements = OrbitalElements.from_state(states[0][-1] << u.au, states[1][-1] << u.au / u.d, epoch)
    return {"elements": elements, "rho": float(seen.rho[k])}


def five(orbit: OrbitalElements) -> tuple[Any, ...]:
    """Elements that `d_sh` takes."""
    return orbit.q, orbit.ecc, orbit.inc, orbit.raan, orbit.argp


def solutions(
    estimates: dict[str, RangeEstimate],
    later: list[Tracklet],
    truth: OrbitalElements,
    dynamics: str,
) -> Iterator[tuple[str, OrbitSolution, bool]]:
    """Solution from each first guess, and whether there was one; that from the truth first."""
    any_estimate = next(iter(estimates.values()))
    yield TRUTH, any_estimate.refine(later, start=truth, dynamics=dynamics), True
    for method, estimate in estimates.items():
        _, _, draws = method.partition(":")
        start = None
        if draws and np.isfinite(estimate.range.value):
            start = estimate.samples(int(draws), rng=0)
        solution = estimate.refine(later, start=start, dynamics=dynamics)
        yield method, solution, bool(np.isfinite(estimate.range.value))


def judged(
    nights: list[Tracklet], catalogue: Catalogue, methods: Sequence[str], dynamics: str
) -> list[dict[str, Any]]:
    """Rows of one arc: a row for each number of nights and first guess."""
    names = {method.partition(":")[0] for method in methods}
    by_name = {name: nights[0].estimate(method=name) for name in names}
    estimates = {method: by_name[method.partition(":")[0]] for method in methods}
    epoch = next(iter(by_name.values())).epoch
    rows = []
    for count in (count for count in NIGHTS if count <= len(nights)):
        part = nights[:count]
        truth = true_orbit(TrackletSet.from_tracklets(part), catalogue, epoch)
        if truth is None:
            continue
        best = None
        for method, solution, guess in solutions(estimates, part[1:], truth["elements"], dynamics):
            row = {
                "object": nights[0].designation,
                "first": nights[0].obstime[0].mjd,
                "nights": count,
                "method": method,
                "guess": guess,
                "status": solution.status,
                "steps": solution.n_steps,
                "rms": solution.weighted_rms,
                "rejected": solution.n_rejected,
                "rho": solution.range.value,
                "rho_error": solution.range_error.value,
                "rho_true": truth["rho"],
                "d_sh": np.nan,
            }
            if np.isfinite(solution.range.value):
                row["d_sh"] = float(d_sh(five(solution.elements), five(truth["elements"])))
            best = best or row
            # another minimum is farther away than a hundredth of the range or of its error
            apart = abs(row["rho"] - best["rho"])
            row["as_truth"] = apart < max(1e-4 * best["rho"], 0.1 * best["rho_error"])
            rows.append(row)
    return rows


def summary(rows: pd.DataFrame) -> Iterator[tuple[str, ...]]:
    """Rows of the table: by number of nights and first guess."""
    off = np.abs(rows["rho"] - rows["rho_true"])
    ok = rows["status"] == "OK"
    rows = rows.assign(
        ok=ok,
        same=ok & (rows["d_sh"] < SAME_ORBIT),
        right=ok & (off < np.maximum(3.0 * rows["rho_error"], SAME_RANGE * rows["rho_true"])),
        as_truth=ok & rows["as_truth"],
    )
    for (count, method), part in rows.groupby(["nights", "method"], sort=False):
        shares = (share(part[name], part["object"]) for name in SHARES)
        converged = part[part["ok"]]
        yield (
            *(str(count), method, str(len(part)), *shares),
            f"{converged['steps'].median():.0f}",
            f"{converged['rms'].median():.2f}",
        )


SHARES: Final = ("guess", "ok", "same", "right", "as_truth")


def main(arguments: list[str] | None = None) -> None:
    """Write the page part."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("observations", type=Path)
    parser.add_argument("orbits", type=Path, help="table of orbits that count as the truth")
    parser.add_argument("--methods", nargs="+", default=METHODS)
    parser.add_argument("--dynamics", default="near-earth")
    parser.add_argument("--cap", type=int, default=CAP, help="arcs of one object, at most")
    parser.add_argument("--rows", type=Path, default=Path("convergence.csv"), help="arcs done")
    parser.add_argument("--output", type=Path, default=OUTPUT, help="folder of the page part")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")  # what is wrong with records of long ago is known
    tracklets = read_tracklets(options.observations, kinds=("ground",), group_by="night")
    catalogue = read_orbits(options.orbits)
    done = pd.read_csv(options.rows, dtype={"object": str}) if options.rows.exists() else None
    keys = set() if done is None else set(zip(done["object"], done["first"].round(6), strict=True))
    begin = time.monotonic()
    for arc in arcs_of(tracklets, catalogue, options.cap):
        nights = [thinned(tracklets[k]) for k in arc]
        if (nights[0].designation, round(nights[0].obstime[0].mjd, 6)) in keys:
            continue
        rows = judged(nights, catalogue, options.methods, options.dynamics)
        pd.DataFrame(rows).to_csv(
            options.rows, mode="a", index=False, header=not options.rows.exists()
        )
        print(nights[0].designation, len(nights), f"{time.monotonic() - begin:.0f} s", flush=True)
    rows = pd.read_csv(options.rows, dtype={"object": str})
    order = [*options.methods, TRUTH]
    rows["method"] = pd.Categorical(rows["method"], order, ordered=True)
    rows = rows.dropna(subset=["method"]).sort_values(["nights", "method"], kind="stable")
    rows["method"] = rows["method"].astype(str)
    title = f"Differential corrections of {rows['object'].nunique()} objects, {options.dynamics}"
    text = ".. made by docs/tools/convergence.py; do not edit\n\n" + table(
        title, HEADER, summary(rows)
    )
    (options.output / "convergence.inc").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
