"""Sets of arcs that differ from the twin in one thing: population, errors or cadence.

All objects are of the parts ``test`` and ``unseen`` of the division that the networks of the
package were trained by, or sampled. Sets of one population have the same objects and visits.
"""

from __future__ import annotations

import dataclasses
import json
import zlib
from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from neoranging.constants import ARCSEC
from neoranging.core.geometry import dot, line_of_sight, norm
from neoranging.ephemeris import earth_state
from neoranging.files import replacing
from neoranging.lab.sets import ArcTable, label_arcs
from neoranging.lab.sets.schema import COLUMNS
from neoranging.lab.sets.splits import divide, read_designations
from neoranging.lab.sets.store import iterate_arcs
from neoranging.lab.sets.truth import NEAR_EARTH
from neoranging.lab.simulation import Twin
from neoranging.lab.simulation.apparitions import redraw_anomalies
from neoranging.lab.simulation.astrometric_errors import Errors, displaced
from neoranging.lab.simulation.close_approaches import close_passages
from neoranging.lab.simulation.exposures import MOST_EXPOSURES, Visits, observe
from neoranging.lab.simulation.schedule import OBSERVATIONS_PER_VISIT, schedule
from neoranging.lab.simulation.survey import Survey
from neoranging.lab.simulation.twin import USUAL_SLOPE
from neoranging.lab.study import Selection
from neoranging.lab.study.bootstrap import capped
from neoranging.lab.study.scores import COLUMNS_NEEDED
from neoranging.orbits import Catalogue, load_catalogue
from neoranging.typing import BoolArray, FloatArray, StrArray

REFERENCE: Final = "reference"

CAP: Final = 10
"""Arcs of one object, at most; those of real nights too."""

OBJECTS_PER_BLOCK: Final = 100
JUPITER_AU: Final = 5.2026

OFFSET_ARCSEC: Final = 2.0
CLOCK_S: Final = 10.0
LEAST_ALTITUDE_DEG: Final = 10.0
SUN_ALTITUDE_DEG: Final = -12.0
MINUTE: Final = 1.0 / 1440.0


# ---------------------------------------------------------------------- populations


def held_out() -> Catalogue:
    """Objects of the catalogue that no network of the package learnt from or was chosen by."""
    catalogue = load_catalogue()
    never = read_designations(str(files("neoranging") / "data" / "weights" / "never_learnt.csv"))
    part = divide(catalogue.designation, never_train=never).of(catalogue.designation)
    good = np.isfinite(catalogue.H_mag) & (catalogue.n_obs > 0)
    few = catalogue.take(np.flatnonzero(np.isin(part, ("test", "unseen")) & good))
    return dataclasses.replace(few, G=np.nan_to_num(few.G, nan=USUAL_SLOPE))


def main_belt(n: int, rng: np.random.Generator) -> Catalogue:
    """Orbits sampled like those of the main belt, with the sizes of those that surveys see."""
    a, turn = rng.uniform(2.1, 3.3, n), 2.0 * np.pi
    ecc = np.minimum(rng.rayleigh(0.11, n), 0.35)
    names = np.array([f"belt {k}" for k in range(n)])
    return Catalogue(
        designation=names,
        principal_designation=names,
        epoch_mjd_tdb=np.full(n, 57_000.0),
        q_au=a * (1.0 - ecc),
        ecc=ecc,
        inc_rad=np.radians(np.minimum(rng.rayleigh(7.0, n), 35.0)),
        raan_rad=rng.uniform(0.0, turn, n),
        argp_rad=rng.uniform(0.0, turn, n),
        mean_anomaly_rad=rng.uniform(0.0, turn, n),
        H_mag=rng.uniform(13.5, 17.5, n),
        G=np.full(n, USUAL_SLOPE),
        U=np.zeros(n, dtype=np.int8),
        n_obs=np.full(n, 60, dtype=np.int32),
        n_opp=np.full(n, 4, dtype=np.int32),
        arc_d=np.full(n, np.nan),
    )


def tisserand(orbits: Catalogue) -> FloatArray:
    """Tisserand parameter with respect to Jupiter."""
    a = orbits.a_au / JUPITER_AU
    return 1.0 / a + 2.0 * np.cos(orbits.inc_rad) * np.sqrt(a * (1.0 - orbits.ecc**2))


# ---------------------------------------------------------------------- errors and cadence


def of_station(codes: StrArray) -> FloatArray:
    """Three standard normal numbers of each station, the same in every arc, shape (n, 3)."""
    names, which = np.unique(codes, return_inverse=True)
    drawn = [np.random.default_rng(zlib.crc32(name.encode())) for name in names.tolist()]
    return np.array([rng.standard_normal(3) for rng in drawn]).reshape(-1, 3)[which]


def with_offsets(table: ArcTable) -> ArcTable:
    """Arcs of which each station is off by the same two arcseconds, in a direction of its own."""
    east, north, _ = of_station(table["stations"]).T
    offset = OFFSET_ARCSEC * ARCSEC * np.stack([east, north]) / np.hypot(east, north)
    ra, dec = displaced(line_of_sight(table["ra_rad"], table["dec_rad"]), offset)
    return table.with_columns(ra_rad=np.mod(ra, 2.0 * np.pi), dec_rad=dec)


def with_wrong_clocks(table: ArcTable) -> ArcTable:
    """Arcs of which each station has a clock that is off by some ten seconds."""
    t = table["t_mjd_tdb"] + CLOCK_S / 86_400.0 * of_station(table["stations"])[:, 2]
    order = np.lexsort((t, np.repeat(np.arange(len(table)), table.counts)))
    ragged = ("ra_rad", "dec_rad", "sigma_ra_rad", "sigma_dec_rad", "stations")
    moved = {name: table[name][order] for name in ragged}
    return table.with_columns(t_mjd_tdb=t[order], **moved)


def first_and_last(table: ArcTable) -> ArcTable:
    """Arcs of two observations."""
    ends = np.stack([table.offsets[:-1], table.offsets[1:] - 1], axis=1).ravel()
    columns = {
        name: values[ends] if COLUMNS[name].per_observation else values
        for name, values in table.columns.items()
    }
    columns["n_obs"] = np.full(len(table), 2, dtype=np.int16)
    return ArcTable(2 * np.arange(len(table.offsets)), columns)


def at_times(visits: Visits, offsets: Sequence[float]) -> Visits:
    """Visits with exposures at these times from their middle [d]."""
    offset = np.zeros((len(visits.epoch), MOST_EXPOSURES))
    offset[:, : len(offsets)] = offsets
    return visits._replace(n_exposures=np.full(len(offset), len(offsets)), offset=offset)


def dark_and_up(visits: Visits, survey: Survey) -> BoolArray:
    """Flags of visits whose first and last exposures are at night and above ten degrees."""
    earth, _ = earth_state(visits.epoch)
    path = visits.r - earth
    last = visits.offset[np.arange(len(path)), visits.n_exposures - 1]
    good = np.ones(len(path), dtype=bool)
    for offset in (visits.offset[:, 0], last):
        up = survey.zenith(visits.station, visits.middle + offset)
        good &= dot(path, up) > norm(path) * np.sin(np.radians(LEAST_ALTITUDE_DEG))
        good &= dot(up, -earth) < norm(earth) * np.sin(np.radians(SUN_ALTITUDE_DEG))
    return good


# ---------------------------------------------------------------------- sets


class Shift(NamedTuple):
    """One thing in which a set differs from the twin."""

    group: str
    words: str
    of: Callable[[Catalogue], BoolArray] | str = "all"
    """Mask of the objects; or "all", "belt", sampled orbits, or "close", small ones turned to pass
    the Earth."""
    errors: Errors = Errors()
    edit: Callable[[ArcTable], ArcTable] | None = None
    """What is done to the arcs; their truth is worked out anew for the new reference epochs."""
    times: tuple[float, ...] = ()
    """Exposures of a visit, from its middle [d]; as in the twin without."""
    by_night: bool = True


_HOURS: Final = (-4.0, -2.0, 0.0, 2.0, 4.0)
_PAIR: Final = 7.5 * MINUTE

SHIFTS: Final = {
    REFERENCE: Shift("population", "as the twin: other nights of the objects not learnt from"),
    "inner orbits": Shift("population", "semimajor axis below 1 au", lambda o: o.a_au < 1.0),
    "distant Amors": Shift("population", "perihelion beyond 1.2 au", lambda o: o.q_au > 1.2),
    "steep orbits": Shift(
        "population", "inclination above 40°", lambda o: np.degrees(o.inc_rad) > 40.0
    ),
    "Jupiter family": Shift(
        "population", "Tisserand parameter below 3", lambda o: tisserand(o) < 3.0
    ),
    "close and small": Shift(
        "population", "fainter than H = 25, within 0.1 au, log-uniform", "close", by_night=False
    ),
    "main belt": Shift("population", "a 2.1 to 3.3 au, as sampled for this study", "belt"),
    "errors 0.3": Shift("noise", "0.3 of what is claimed", errors=Errors("claimed", 0.3)),
    "errors 1": Shift("noise", "as large as claimed", errors=Errors("claimed", 1.0)),
    "errors 3": Shift("noise", "three times what is claimed", errors=Errors("claimed", 3.0)),
    "offsets": Shift("noise", "each station off by 2 arcsec, its own way", edit=with_offsets),
    "clocks": Shift("noise", "each station's clock off by some 10 s", edit=with_wrong_clocks),
    "one station": Shift("cadence", "tracklets of one station, as in the twin", by_night=False),
    "two observations": Shift(
        "cadence", "the first and the last of a tracklet", edit=first_and_last, by_night=False
    ),
    "ten minutes": Shift(
        "cadence",
        "three observations in 10 minutes",
        times=(-5.0 * MINUTE, 0.0, 5.0 * MINUTE),
        by_night=False,
    ),
    "eight hours": Shift(
        "cadence",
        "five observations of one station, two hours apart",
        times=tuple(hour / 24.0 for hour in _HOURS),
        by_night=False,
    ),
    "two nights": Shift(
        "cadence",
        "two observations in 15 minutes on each of two nights, as one arc",
        times=(-0.5 - _PAIR, -0.5 + _PAIR, 0.5 - _PAIR, 0.5 + _PAIR),
        by_night=False,
    ),
}
"""Sets by name; each differs from the first one in what its words say."""


def simulate(shift: Shift, n_arcs: int, seed: int) -> ArcTable:
    """Labelled arcs of a shift: at most ``n_arcs``, and at most ten of an object."""
    survey, span = Survey(), Twin().span
    objects = held_out()
    if shift.of == "belt":
        objects = main_belt(n_arcs, np.random.default_rng(seed))
    elif shift.of == "close":
        objects = objects.take(objects.H_mag > 25.0)
    elif callable(shift.of):
        objects = objects.take(shift.of(objects))
    objects = objects.take(np.random.default_rng(seed).permutation(len(objects)))
    tables: list[ArcTable] = []
    n = 0
    for block, start in enumerate(range(0, len(objects), OBJECTS_PER_BLOCK)):
        rng = np.random.default_rng([seed, block])
        few = objects.take(np.arange(start, min(start + OBJECTS_PER_BLOCK, len(objects))))
        table = block_of_arcs(shift, few, survey, span, rng)
        # by the seed alone: sets of the same visits keep the same arcs, unless errors drop some
        rows = capped(np.unique(table["designation"], return_inverse=True)[1], CAP, seed)
        tables.append(table.take(rows))
        n += len(rows)
        if n >= n_arcs:
            break
    return ArcTable.concatenate(tables).take(slice(n_arcs))


def block_of_arcs(
    shift: Shift,
    objects: Catalogue,
    survey: Survey,
    span: tuple[float, float],
    rng: np.random.Generator,
) -> ArcTable:
    """Arcs of some objects, with their truth."""
    if shift.of == "close":
        orbits, visits = close_passages(objects, survey, CAP * len(objects), span, rng)
    else:
        # no more visits than are taken of a night or two: the others would be thrown away
        most = np.rint(2.0 * CAP * OBSERVATIONS_PER_VISIT)
        n_obs = np.minimum(objects.n_obs, most).astype(np.int32)
        objects = dataclasses.replace(objects, n_obs=n_obs)
        # sampled orbits were found at no date, and keep their anomalies
        orbits, discovery = objects, np.full(len(objects), np.nan)
        if shift.of != "belt":
            orbits, discovery = redraw_anomalies(objects, survey, span[0], rng)
        visits = schedule(orbits, discovery, survey, span, rng)
    good = visits.possible
    if shift.times:
        visits = at_times(visits, shift.times)
        if max(shift.times) - min(shift.times) < 0.5:
            good = good & dark_and_up(visits, survey)
    visits = visits.take(np.flatnonzero(good))
    table, _ = observe(visits, orbits, survey, shift.errors, rng, by_night=shift.by_night)
    if shift.edit is None:
        return table
    edited = shift.edit(table)
    labelled, _ = label_arcs(edited, orbits, dynamics=NEAR_EARTH, gate=np.inf)
    return labelled


KEPT: Final = (*COLUMNS_NEEDED, "mag", "band", "n_obs", "is_close", "truth_residual_arcsec")
"""Columns that are kept of a set."""


def read_set(folder: Path, split: str | None = None, most: int | None = None) -> ArcTable:
    """Arcs of a stored set without close passages, at most ten of an object."""
    table = ArcTable.concatenate(
        part.take(~part["is_close"]) for part in iterate_arcs(folder, KEPT, split)
    )
    return Selection(split, cap=CAP, max_arcs=most).of(table)


def stored(path: Path, name: str, n_arcs: int, seed: int) -> ArcTable:
    """Arcs of a shift, of a file if they are there."""
    shift = SHIFTS[name]
    settings = json.dumps([name, shift.words, n_arcs, seed, CAP])
    if path.exists():
        with np.load(path, allow_pickle=False) as file:
            if file["settings"].item() == settings:
                columns = {key: file[key] for key in file.files}
                columns.pop("settings")
                return ArcTable(columns.pop("offsets"), columns)
    table = simulate(shift, n_arcs, seed)
    columns = {name: table[name] for name in KEPT}
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary, temporary.open("wb") as out:
        np.savez_compressed(out, settings=settings, offsets=table.offsets, **columns)
    return ArcTable(table.offsets, columns)
