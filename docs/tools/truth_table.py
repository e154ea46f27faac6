"""Set the methods beside JPL's range on real tracklets, and write it as a page part.

One command makes the committed table anew::

    python docs/tools/truth_table.py truth_tracklets.json

The truth file is JSON: for each object a list of tracklets with ``lines`` (MPC 80-column records)
and ``obs``, one entry per line with ``jd_tdb``, ``rho_au`` and ``rhodot_au_d`` (topocentric light
path and its rate from JPL's ephemeris of the object). Estimates from the geocentre are compared
with the truth carried over to the geocentre.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from astropy.table import QTable

import neoranging as nr
from neoranging import RangeEstimate, ephemeris
from neoranging.constants import MJD_JD
from neoranging.core.geometry import line_of_sight, norm
from neoranging.observations import observatories

ROOT = Path(__file__).resolve().parents[2]
OUTPUT = ROOT / "docs" / "guide" / "truth_table.inc"
CLASSICAL, LEARNED = ("gauss", "laplace"), ("mlp", "pinn")
SYSTEMATIC = ("systematic@population", "systematic@log-uniform")
METHODS = {"topocenter": (*CLASSICAL, *LEARNED, *SYSTEMATIC), "geocenter": CLASSICAL}
LEVEL = 0.68
POSTERIOR_LEVELS = (0.68, 0.99)
CLOSE = 0.1  # relative error of the range that the summary counts as right


class Truth(NamedTuple):
    """Ranges by JPL at every observation, shape (n,)."""

    mjd_tdb: np.ndarray
    """Epochs of reception [MJD TDB]."""
    topocenter: np.ndarray
    """Range from the station [au]."""
    geocenter: np.ndarray
    """Range from the centre of the Earth [au]."""

    def at(self, mjd_tdb: np.ndarray, origin: str) -> np.ndarray:
        """Ranges at epochs that are epochs of observations."""
        distance = np.abs(self.mjd_tdb - mjd_tdb[:, None])
        nearest = np.argmin(distance, axis=1)
        if distance.min(axis=1).max() > 1e-6:
            sys.exit("an estimate belongs to no observation of the truth file")
        return np.asarray(getattr(self, origin))[nearest]


def read_truth(path: Path) -> tuple[nr.TrackletSet, Truth]:
    """Tracklets of a truth file and their ranges."""
    tracklets = [t for entry in json.loads(path.read_text()).values() for t in entry["tracklets"]]
    lines = [line for tracklet in tracklets for line in tracklet["lines"]]
    formed = nr.read_tracklets(QTable.read(lines, format="mpc.obs80"))
    rows = [(obs, t["obscode"]) for t in tracklets for obs in t["obs"]]
    mjd = np.array([obs["jd_tdb"] - MJD_JD for obs, _ in rows])
    ra, dec = (np.radians([obs[f"{axis}_true"] for obs, _ in rows]) for axis in ("ra", "dec"))
    rho = np.array([obs["rho_au"] for obs, _ in rows])
    itrf = observatories.itrf_positions([code for _, code in rows])
    site, _ = ephemeris.site_state(itrf, mjd)
    return formed, Truth(mjd, rho, norm(site + rho[:, None] * line_of_sight(ra, dec)))


def _csv_table(title: str, header: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    lines = [f".. csv-table:: {title}", "   :header-rows: 1", "   :class: numbers", ""]
    lines += ["   " + ", ".join(f'"{cell}"' for cell in row) for row in (header, *rows)]
    return [*lines, ""]


def _cells(rho: float, truth: float, status: str) -> tuple[str, str, str]:
    if not np.isfinite(rho):
        return "", "", status
    return f"{rho:#.3g}", f"{rho / truth:#.2g}", status


def comparison(
    tracklets: nr.TrackletSet, estimates: dict[str, RangeEstimate], truth: Truth, origin: str
) -> list[str]:
    """Table of all tracklets for one origin."""
    header = ["object", "station", "n", "arc [min]", "JPL"]
    for method in CLASSICAL:
        header += [method.capitalize(), "ratio", "status"]
    expected = truth.at(estimates[CLASSICAL[0]].epoch.tdb.mjd, origin)
    tables = [estimates[method].to_table() for method in CLASSICAL]
    rows = []
    for k, tracklet in enumerate(tracklets):
        arc = tracklet.arc_length.to_value("min")
        row = [tracklet.designation, tracklet.station[0], str(len(tracklet)), f"{arc:.1f}"]
        row.append(f"{expected[k]:#.3g}")
        for table in tables:
            row += _cells(table["range"][k].value, expected[k], str(table["status"][k]))
        rows.append(row)
    return _csv_table(f"Range [au] from the {origin}", header, rows)


def learned(
    tracklets: nr.TrackletSet, estimates: dict[str, RangeEstimate], truth: Truth
) -> list[str]:
    """Table of all tracklets for the networks, with intervals."""
    header = ["object", "station", "n", "JPL"]
    for method in LEARNED:
        header += [method.upper(), "ratio", f"{100 * LEVEL:g} %"]
    expected = truth.at(estimates[LEARNED[0]].epoch.tdb.mjd, "topocenter")
    bounds = {method: estimates[method].interval(LEVEL).value for method in LEARNED}
    rows = []
    for k, tracklet in enumerate(tracklets):
        row = [tracklet.designation, tracklet.station[0], str(len(tracklet))]
        row.append(f"{expected[k]:#.3g}")
        for method in LEARNED:
            rho = estimates[method].range[k].value
            low, high = bounds[method][k]
            row += [f"{rho:#.3g}", f"{rho / expected[k]:#.2g}", f"{low:.2g} to {high:.2g}"]
        rows.append(row)
    return _csv_table("Range [au] by the networks, from the topocenter", header, rows)


def posteriors(
    tracklets: nr.TrackletSet, estimates: dict[str, RangeEstimate], truth: Truth
) -> list[str]:
    """Table of all tracklets for systematic ranging under two priors, with intervals."""
    header = ["object", "station", "n", "JPL"]
    for method in SYSTEMATIC:
        levels = [f"{100 * level:g} %" for level in POSTERIOR_LEVELS]
        header += [method.partition("@")[2], "ratio", *levels, "status"]
    expected = truth.at(estimates[SYSTEMATIC[0]].epoch.tdb.mjd, "topocenter")
    bounds = {
        method: [estimates[method].interval(level).value for level in POSTERIOR_LEVELS]
        for method in SYSTEMATIC
    }
    rows = []
    for k, tracklet in enumerate(tracklets):
        row = [tracklet.designation, tracklet.station[0], str(len(tracklet))]
        row.append(f"{expected[k]:#.3g}")
        for method in SYSTEMATIC:
            rho = estimates[method].range[k].value
            row += [f"{rho:#.3g}", f"{rho / expected[k]:#.2g}"]
            row += [f"{ends[k, 0]:#.3g} to {ends[k, 1]:#.3g}" for ends in bounds[method]]
            row.append(str(estimates[method].status[k]))
        rows.append(row)
    return _csv_table("Range [au] by systematic ranging under two priors", header, rows)


def summary(estimates: dict[tuple[str, str], RangeEstimate], truth: Truth) -> list[str]:
    """Table of counts for every method and origin."""
    rows = []
    for (method, origin), estimate in estimates.items():
        rho = np.atleast_1d(estimate.range.value)
        error = np.abs(rho / truth.at(estimate.epoch.tdb.mjd, origin) - 1.0)
        ok = np.atleast_1d(estimate.ok)
        worst = f"{error[ok].max():.3f}" if ok.any() else ""
        counts = (np.isfinite(rho), error < CLOSE, ok, ok & (error < CLOSE))
        dex = np.nanmedian(np.abs(np.log10(rho / truth.at(estimate.epoch.tdb.mjd, origin))))
        name = method.upper() if method in LEARNED else method.capitalize().replace("@", ", ")
        cells = [str(np.sum(count)) for count in counts]
        rows.append([name, origin, *cells, worst, f"{dex:.2f}"])
    header = ["method", "origin", "a range", "within 10 %", "OK", "OK and within 10 %"]
    header += ["largest error where OK", "median error [dex]"]
    return _csv_table(f"{len(rho)} tracklets", header, rows)


def page(path: Path) -> str:
    """The whole part."""
    tracklets, truth = read_truth(path)
    estimates = {
        (method, origin): tracklets.estimate(method, origin=origin)
        for origin, methods in METHODS.items()
        for method in methods
    }
    lines = [".. made by docs/tools/truth_table.py; do not edit", ""]
    lines += summary(estimates, truth)
    for origin, methods in METHODS.items():
        chosen = {method: estimates[method, origin] for method in methods}
        lines += comparison(tracklets, chosen, truth, origin)
        if origin == "topocenter":
            lines += learned(tracklets, chosen, truth)
            lines += posteriors(tracklets, chosen, truth)
    return "\n".join(lines)


def main() -> None:
    """Write the tables and print them."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("truth", type=Path, help="JSON, as described above")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args()
    if not options.truth.exists():
        parser.error(f"no truth file at {options.truth}; its layout stands in this module's text")
    text = page(options.truth)
    options.output.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
