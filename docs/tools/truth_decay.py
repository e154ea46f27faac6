"""Write a page part: truth by two-body and by n-body motion beside each other and beside JPL.

One command makes the committed tables anew; it needs the extra ``nbody``::

    python docs/tools/truth_decay.py truth_tracklets.json neodys_orbits.csv.gz

The first file is that of ``truth_table.py``, the second a table of orbits of another authority.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from neoranging import ephemeris
from neoranging.constants import ARCSEC, MJD_JD
from neoranging.core.geometry import norm
from neoranging.core.prediction import sight
from neoranging.observations import observatories
from neoranging.orbits import Catalogue, load_catalogue, nbody_states, read_orbits

OUTPUT = Path(__file__).resolve().parents[2] / "docs" / "guide" / "truth_decay.inc"
ELAPSED = (10, 30, 60, 180, 365, 730, 1826, 3652, 7305)
N_OBJECTS = 500
GATE_ARCSEC = 10.0


def decay(catalogue: Catalogue) -> Iterator[tuple[str, ...]]:
    """Rows of two-body against n-body motion, seen from the Earth before the epoch."""
    good = np.flatnonzero((catalogue.U >= 0) & (catalogue.U <= 2) & (catalogue.epoch_mjd_tdb > 6e4))
    few = catalogue.take(np.random.default_rng(0).choice(good, N_OBJECTS, replace=False))
    states, epoch = few.states(), few.epoch_mjd_tdb
    n, k = N_OBJECTS, len(ELAPSED)
    t = np.repeat(epoch, k) - np.tile(np.array(ELAPSED, dtype=float), n)
    owner = np.repeat(np.arange(n), k)
    earth = ephemeris.earth_state(t)
    two = sight(states[0][owner], states[1][owner], epoch[owner], t, *earth)
    many = sight(*nbody_states(*states, epoch, owner, t), t, t, *earth)
    apart = 2.0 * np.arcsin(0.5 * norm(two.direction - many.direction)) / ARCSEC
    range_error = np.abs(two.rho / many.rho - 1.0)
    for days, miss, error in zip(
        ELAPSED, apart.reshape(n, k).T, range_error.reshape(n, k).T, strict=True
    ):
        share = f"{100.0 * np.mean(miss <= GATE_ARCSEC):.0f} %"
        yield (
            *(str(days), plain(np.median(miss)), plain(np.quantile(miss, 0.9))),
            *(share, f"{np.median(error):.1e}"),
        )


def plain(value: float) -> str:
    """Three digits, without an exponent."""
    return np.format_float_positional(float(f"{value:.3g}"), trim="-")


def against_jpl(truth: Path, catalogues: dict[str, Catalogue]) -> Iterator[tuple[str, ...]]:
    """Rows of ranges against those of JPL, the worst of each tracklet's observations."""
    for name, entry in json.loads(truth.read_text()).items():
        for source, catalogue in catalogues.items():
            (row,) = catalogue.find([name])
            if row >= 0:
                one = catalogue.take(np.array([row]))
                yield from (_tracklet(one, source, tracklet) for tracklet in entry["tracklets"])


def _tracklet(one: Catalogue, source: str, tracklet: dict) -> tuple[str, ...]:
    observed = tracklet["obs"]
    t = np.array([row["jd_tdb"] for row in observed]) - MJD_JD
    jpl = np.array([row["rho_au"] for row in observed])
    itrf = observatories.itrf_positions(np.full(len(t), tracklet["obscode"]))
    observer = ephemeris.observer_state(itrf, t)
    states, epoch, owner = one.states(), one.epoch_mjd_tdb, np.zeros(len(t), dtype=np.int64)
    many = sight(*nbody_states(*states, epoch, owner, t), t, t, *observer)
    two = sight(states[0][owner], states[1][owner], epoch[owner], t, *observer)
    uncertainty = str(one.U[0]) if one.U[0] >= 0 else ""
    return (
        *(one.designation[0], tracklet["obscode"], source, uncertainty),
        *(f"{t[0] - epoch[0]:.1f}", f"{jpl[0]:.4f}"),
        *(f"{np.abs(sighting.rho - jpl).max():.1e}" for sighting in (many, two)),
    )


def table(title: str, header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """One table in reStructuredText."""
    lines = [", ".join(f'"{cell}"' for cell in row) for row in (header, *rows)]
    options = "   :header-rows: 1\n   :class: numbers\n\n"
    body = "\n".join(f"   {line}" for line in lines)
    return f".. csv-table:: {title}\n{options}{body}\n"


def main() -> None:
    """Write the page part."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("truth", type=Path)
    parser.add_argument("orbits", type=Path)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    arguments = parser.parse_args()
    catalogue = load_catalogue()
    catalogues = {"MPC 2026": catalogue, "NEODyS 2022": read_orbits(arguments.orbits)}
    first = table(
        f"Two-body motion against n-body motion, {N_OBJECTS} objects of U <= 2",
        (
            *("days from epoch", "median apart [arcsec]", "90 % within [arcsec]"),
            *("within 10 arcsec", "median relative error of range"),
        ),
        decay(catalogue),
    )
    second = table(
        "Ranges against those of JPL [au]",
        (
            *("object", "station", "orbit", "U", "days from epoch", "range"),
            *("error, n-body", "error, two-body"),
        ),
        against_jpl(arguments.truth, catalogues),
    )
    head = ".. made by docs/tools/truth_decay.py; do not edit\n"
    arguments.output.write_text("\n".join((head, first, second)))
    print(arguments.output)


if __name__ == "__main__":
    main()
