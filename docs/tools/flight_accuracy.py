"""Write a page part: directions of orbits followed over days, against an n-body integration.

One command makes the committed table anew; it needs the extra ``nbody``::

    python docs/tools/flight_accuracy.py

What is drawn from a night is followed under Sun, Earth and Moon (`neoranging.core.flight`). Here
the same is done with orbits of the catalogue as they are at random dates, and, since these are
hardly ever near, with orbits turned so that they pass the Earth. Each is followed from one state by
both, with the planets, relativity and the oblateness of the Earth in the other, and seen from the
centre of the Earth. Rows are by the least distance on the way.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from neoranging import ephemeris
from neoranging.constants import ARCSEC, C_AU_PER_DAY
from neoranging.core.flight import approaches, views
from neoranging.core.geometry import norm
from neoranging.ephemeris.states import almanac
from neoranging.lab.simulation.close_approaches import close_passages
from neoranging.lab.simulation.survey import Survey
from neoranging.orbits import load_catalogue, nbody_states

OUTPUT: Final = Path(__file__).resolve().parents[2] / "docs" / "guide" / "flight_accuracy.inc"

ELAPSED: Final = (1.0, 3.0, 10.0, 30.0)
EDGES: Final = (0.0, 0.0005, 0.002, 0.01, 0.05, 0.2, 1.0, np.inf)
SPAN: Final = (53_000.0, 61_000.0)
"""Dates of the states [MJD TDB], 2004 to 2025."""


class States(NamedTuple):
    """States of objects, each at its epoch."""

    r: np.ndarray
    v: np.ndarray
    epoch: np.ndarray


def drawn_states(n: int, seed: int = 0) -> States:
    """Orbits of the catalogue at random dates, and as many that pass the Earth."""
    rng = np.random.default_rng(seed)
    known = load_catalogue()
    # the brightness of a passage is that of the object
    catalogue = known.take(np.isfinite(known.H_mag))
    some = catalogue.take(rng.choice(len(catalogue), n, replace=False))
    epoch = rng.uniform(*SPAN, n)
    _, visits = close_passages(catalogue, Survey(), n, SPAN, rng)
    return States(
        np.concatenate([some.states(epoch)[0], visits.r]),
        np.concatenate([some.states(epoch)[1], visits.v]),
        np.concatenate([epoch, visits.epoch]),
    )


def differences(states: States) -> tuple[np.ndarray, np.ndarray]:
    """Angles between both directions [arcsec] and least distances on the way [au], shape (n, T).

    NaN of objects that fall.
    """
    n = len(states.epoch)
    apart, nearest = np.full((2, n, len(ELAPSED)), np.nan)
    for k in range(n):
        one = States(*(column[k : k + 1] for column in states))
        times = one.epoch + np.array(ELAPSED)
        earth = ephemeris.earth_state(times)[0]
        days = almanac(float(one.epoch[0]) - 1.0, float(times[-1]) + 1.0)
        line = views(*one, days, times, earth).line[0]
        seen = np.isfinite(line[:, 0])
        if not seen.any():
            continue
        emitted = times - norm(line) / C_AU_PER_DAY
        owner = np.zeros(seen.sum(), dtype=np.int64)
        r, _ = nbody_states(*one, owner, emitted[seen])
        other = r - earth[seen]
        chord = line[seen] / norm(line[seen])[:, None] - other / norm(other)[:, None]
        apart[k, seen] = 2.0 * np.arcsin(0.5 * norm(chord)) / ARCSEC
        for i, end in enumerate(times):
            passage = approaches(*one, days, float(end))
            nearest[k, i] = passage.distance[0] if not passage.falls[0] else np.nan
    return apart, nearest


def rows_of(apart: np.ndarray, nearest: np.ndarray) -> Iterator[tuple[str, ...]]:
    """Rows of the table: for each distance the 99th percentile and the largest, by time."""
    for low, high in itertools.pairwise(EDGES):
        cells = []
        for i in range(len(ELAPSED)):
            rows = (nearest[:, i] >= low) & (nearest[:, i] < high) & np.isfinite(apart[:, i])
            if not rows.any():
                cells.append("")
                continue
            miss = apart[rows, i]
            figures = (*np.quantile(miss, (0.5, 0.99)), miss.max())
            cells.append(" / ".join(map(plain, figures)) + f" ({rows.sum()})")
        yield (f"{low:g} to {high:g}" if high < np.inf else f"beyond {low:g}", *cells)


def plain(value: float) -> str:
    """Two digits, without an exponent."""
    return np.format_float_positional(float(f"{value:.2g}"), trim="-")


def table(n: int) -> str:
    """The table in reStructuredText."""
    apart, nearest = differences(drawn_states(n))
    header = "least distance [au]", *(f"{days:g} d" for days in ELAPSED)
    lines = [", ".join(f'"{cell}"' for cell in row) for row in (header, *rows_of(apart, nearest))]
    title = "Flights against n-body motion: median / 99 % / largest [arcsec] (orbits)"
    options = "   :header-rows: 1\n   :class: numbers\n\n"
    return f".. csv-table:: {title}\n{options}" + "\n".join(f"   {line}" for line in lines) + "\n"


def main(arguments: list[str] | None = None) -> None:
    """Write the page part."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--orbits", type=int, default=300, help="of each kind")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args(arguments)
    head = ".. made by docs/tools/flight_accuracy.py; do not edit\n\n"
    options.output.write_text(head + table(options.orbits))
    print(options.output.read_text())


if __name__ == "__main__":
    main()
