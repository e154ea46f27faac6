"""Ask methods for arcs that differ from their training in one thing, and count if anyone notices.

Run ``python docs/tools/shift_study.py WORK --twin TWIN --real REAL``: it simulates sets that differ
from the twin in the population, in the errors or in the cadence, in the folder WORK, asks each
method for them, and writes the tables and the figure of the guide's page on shifted populations.
TWIN is the divided set that the networks learnt from, REAL are real nights, of ``neoranging dataset
real --group-by night``.

All objects are of the parts ``test`` and ``unseen`` of the division that the networks of the
package were trained by, or sampled; sets of one population have the same objects and visits. Sets
and answers are kept in WORK, so that an interrupted run goes on where it was, and another one with
other weights asks only these.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import torch

from neoranging import Calibration
from neoranging.constants import ARCSEC
from neoranging.core.answers import Answers
from neoranging.core.geometry import dot, line_of_sight, norm
from neoranging.core.status import RangeStatus
from neoranging.ephemeris import earth_state
from neoranging.estimators import LearnedEstimator
from neoranging.estimators.network_inputs import arc_inputs
from neoranging.files import replacing
from neoranging.lab.sets import ArcTable, label_arcs, to_core
from neoranging.lab.sets.schema import COLUMNS
from neoranging.lab.sets.splits import divide, read_designations
from neoranging.lab.sets.truth import NEAR_EARTH
from neoranging.lab.simulation import Twin
from neoranging.lab.simulation.apparitions import redraw_anomalies
from neoranging.lab.simulation.astrometric_errors import Errors, displaced
from neoranging.lab.simulation.close_approaches import close_passages
from neoranging.lab.simulation.exposures import MOST_EXPOSURES, Visits, observe
from neoranging.lab.simulation.schedule import OBSERVATIONS_PER_VISIT, schedule
from neoranging.lab.simulation.survey import Survey
from neoranging.lab.simulation.twin import USUAL_SLOPE
from neoranging.lab.study import CalibrationSample, Selection, StudyMethod
from neoranging.lab.study.bootstrap import capped
from neoranging.lab.study.methods import ask, study_methods
from neoranging.lab.study.posteriors import PosteriorScores
from neoranging.lab.study.scores import COLUMNS_NEEDED, ArcTruth
from neoranging.orbits import Catalogue, load_catalogue
from neoranging.plotting import style
from neoranging.typing import BoolArray, FloatArray, StrArray

GUIDE: Final = Path(__file__).resolve().parents[1] / "guide"
METHODS: Final = ("gauss", "laplace", "mlp", "pinn", "systematic")
REFERENCE: Final = "reference"
REAL: Final = "real nights"
LEVELS: Final = (0.68, 0.95)
DOMAIN_LEVELS: Final = (0.0001, 0.001, 0.01, 0.1)
DIGEST: Final = 8
"""Digits by which weights are told apart."""

ARCS: Final = 2000
POSTERIOR_ARCS: Final = 600
"""Arcs of a set that methods with posteriors are asked for, which take some 20 ms each."""

CAP: Final = 10
"""Arcs of one object, at most; those of real nights too."""

TWIN_ARCS: Final = 20_000
"""Arcs of the twin that the domain is judged by."""

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
    columns = {name: table[name] for name in (*COLUMNS_NEEDED, "mag", "band", "n_obs")}
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary, temporary.open("wb") as out:
        np.savez_compressed(out, settings=settings, offsets=table.offsets, **columns)
    return ArcTable(table.offsets, columns)


# ---------------------------------------------------------------------- answers


class Share(NamedTuple):
    """Share of some arcs."""

    value: float
    error: float
    """Standard error, objects taken for independent, and at least that of independent arcs."""
    n: int

    @classmethod
    def of(cls, flags: Any, objects: StrArray, among: Any = True) -> Share:
        """Share of the arcs ``among`` which have a flag."""
        rows = np.broadcast_to(among, np.shape(flags))
        flags, objects = np.asarray(flags, dtype=np.float64)[rows], objects[rows]
        n = len(flags)
        if not n:
            return cls(np.nan, np.nan, 0)
        off = np.bincount(np.unique(objects, return_inverse=True)[1], flags - flags.mean())
        # where none or all have it, half an arc more
        p = (flags.sum() + 0.5) / (n + 1.0)
        error = max(np.sqrt(np.sum(off**2)) / n, np.sqrt(p * (1.0 - p) / n))
        return cls(float(flags.mean()), float(error), n)

    def __str__(self) -> str:
        if self.n < LEAST:
            return ""
        digits = 0 if self.value > 0.0995 else 1 if self.value > 0.00995 else 2
        value, error = (f"{100.0 * x:.{digits}f}" for x in (self.value, self.error))
        return f"{value} \N{PLUS-MINUS SIGN} {error}"


LEAST: Final = 20
"""Arcs of which a share is told."""


class Row(NamedTuple):
    """Answers of one method to one set."""

    name: str
    method: str
    is_learned: bool
    n: int
    error: float
    """Median relative error of the answers."""
    answered: Share
    usable: Share
    ok: Share
    misfit: Share
    outside: Share
    """Status OUTSIDE_TRAINING_DOMAIN."""
    inside: dict[float, Share]
    """Truth in the interval, of arcs with an answer, by level."""
    kept: dict[float, Share]
    """The same, of usable answers."""
    trusted: dict[float, Share]
    """The same, of answers without the status OUTSIDE_TRAINING_DOMAIN."""
    own: dict[float, Share]
    """Truth in the interval by the network's own estimate of its errors."""


def judged(
    name: str,
    method: StudyMethod,
    answers: Answers,
    posteriors: PosteriorScores | None,
    truth: ArcTruth,
    calibration: Calibration | None,
) -> Row:
    """Figures of the answers of a method to a set."""
    objects, rho = truth.designation, truth.rho
    answered = answers.answered & (answers.rho > 0.0)
    ratio = np.where(answered, answers.rho, np.nan) / rho
    status = {each: answers.status == each.code for each in RangeStatus}
    outside = status[RangeStatus.OUTSIDE_TRAINING_DOMAIN]
    inside, kept, trusted, own = {}, {}, {}, {}
    with np.errstate(invalid="ignore"):
        off, deviation = np.abs(np.log(ratio)), answers.rho_error / answers.rho
    for level in LEVELS:
        if posteriors is not None:
            low, high = posteriors.intervals(truth.limits)[level].T
        elif calibration is not None:
            bounds = calibration.bounds(answers, truth.span, truth.limits, level, too_few="limits")
            low, high = bounds.T
        else:
            low = high = np.full(len(rho), np.nan)
        has_interval = answered & np.isfinite(low)
        flags = (low <= rho) & (rho <= high)
        inside[level] = Share.of(flags, objects, has_interval)
        kept[level] = Share.of(flags, objects, has_interval & answers.usable)
        trusted[level] = Share.of(flags, objects, has_interval & ~outside)
        # the law that the second output is learnt by is Laplace's, of the logarithm of the range
        half = np.sqrt(0.5) * deviation * np.log(1.0 / (1.0 - level))
        has_own = answered & np.isfinite(half) & _is_learned(method)
        own[level] = Share.of(off <= half, objects, has_own)
    return Row(
        name=name,
        method=method.label,
        is_learned=_is_learned(method),
        n=len(rho),
        error=float(np.nanmedian(np.abs(ratio - 1.0))) if answered.any() else np.nan,
        answered=Share.of(answered, objects),
        usable=Share.of(answers.usable, objects),
        ok=Share.of(answers.ok, objects),
        misfit=Share.of(status[RangeStatus.MISFIT], objects),
        outside=Share.of(outside, objects),
        inside=inside,
        kept=kept,
        trusted=trusted,
        own=own,
    )


def _is_learned(method: StudyMethod) -> bool:
    return bool(method.estimator.is_learned)


def rows_of(
    name: str, table: ArcTable, methods: Sequence[StudyMethod], work: Path, options: Any
) -> Iterator[Row]:
    """Figures of all methods on the arcs of a set, whose answers are kept."""
    for method in methods:
        some = table
        if method.estimator.gives_posterior and len(table) > options.posterior_arcs:
            some = Selection(None, max_arcs=options.posterior_arcs).of(table)
        origins = {"topocenter", method.estimator.origin}
        arcs = {origin: to_core(some, origin) for origin in origins}
        truths = {origin: ArcTruth.of(some, origin, arcs[origin]) for origin in origins}
        begin = time.monotonic()
        folder = work / "answers" / name.replace(" ", "-")
        folder.mkdir(parents=True, exist_ok=True)
        answers, posteriors = ask(method, some, truths, arcs, folder)
        calibration = calibration_of(method, work, options.twin)
        truth = truths[method.estimator.origin]
        yield judged(name, method, answers, posteriors, truth, calibration)
        seconds = time.monotonic() - begin
        print(f"  {name}: {method.label}, {len(some)} arcs, {seconds:.0f} s", flush=True)


def calibration_of(method: StudyMethod, work: Path, twin: Path | None) -> Calibration | None:
    """Calibration that comes with a method, or one by the part ``test`` of a set."""
    estimator = method.estimator
    if estimator.calibration is not None or estimator.gives_posterior or twin is None:
        return estimator.calibration
    path = work / "calibrations" / f"{method.slug}.json"
    if path.exists() and (made := Calibration.read(path)).matches(estimator.identity):
        return made
    path.parent.mkdir(parents=True, exist_ok=True)
    table = Selection("test", cap=CAP).read(twin)
    calibration = CalibrationSample.of(estimator, [table]).calibration()
    calibration.write(path)
    return calibration


# ---------------------------------------------------------------------- the domain


def alarms(method: StudyMethod, table: ArcTable) -> list[Share]:
    """Shares of arcs that are outside: by the range of a feature, and by the density at levels."""
    estimator = method.estimator
    assert isinstance(estimator, LearnedEstimator)
    arcs, network = to_core(table, estimator.origin), estimator.network
    inputs = arc_inputs(arcs, root=network.config.root)
    with torch.inference_mode():
        raw = network.features.raw(inputs)
        by_range = network.features.outside(inputs, estimator.slack, raw).any(dim=1).numpy()
        compared, present = network.features.compared(raw), network.features.present(inputs) > 0.0
        by_density = [
            network.domain.outside(compared, present, level).numpy() for level in DOMAIN_LEVELS
        ]
    return [Share.of(flags, table["designation"]) for flags in (by_range, *by_density)]


def domain_table(methods: Sequence[StudyMethod], sets: dict[str, ArcTable]) -> str:
    """How often arcs are called outside, beside the share that is asked for."""
    # networks that learnt from the same arcs have one domain
    domains: dict[bytes, list[StudyMethod]] = {}
    for method in methods:
        estimator = method.estimator
        if isinstance(estimator, LearnedEstimator) and estimator.network.domain.is_fitted:
            key = estimator.network.domain.quantiles.numpy().tobytes()
            domains.setdefault(key, []).append(method)
    header = [
        *("networks", "set", "a feature beyond its range"),
        *(f"density, level {100.0 * level:g} %" for level in DOMAIN_LEVELS),
    ]
    rows = [
        (", ".join(one.label for one in same) if k == 0 else "", name, *map(str, shares))
        for same in domains.values()
        for k, (name, table) in enumerate(sets.items())
        for shares in [alarms(same[0], table)]
    ]
    return csv_table("Arcs outside the domain [%]", header, rows) if rows else ""


# ---------------------------------------------------------------------- page


def csv_table(title: str, header: Iterable[str], rows: Iterable[Sequence[str]]) -> str:
    """One table in reStructuredText."""
    lines = [", ".join(f'"{cell}"' for cell in row) for row in (header, *rows)]
    body = "\n".join(f"   {line}" for line in lines)
    return f".. csv-table:: {title}\n   :header-rows: 1\n   :class: numbers\n\n{body}\n"


ANSWERS: Final = (
    *("set", "method", "arcs", "median relative error", "answered [%]", "usable [%]", "OK [%]"),
    *("misfit [%]", "outside domain [%]"),
)
INTERVALS: Final = (
    *("set", "method", "68 % holds [%]", "of usable [%]", "of those in the domain [%]"),
    *("own scale, 68 % [%]", "95 % holds [%]", "of usable [%]", "of those in the domain [%]"),
    "own scale, 95 % [%]",
)


def tables(rows: Sequence[Row]) -> Iterator[str]:
    """Answers and intervals of each group of sets."""
    groups = {name: shift.group for name, shift in SHIFTS.items()} | {REAL: "real"}
    titles = {
        "population": "population",
        "noise": "errors",
        "cadence": "cadence",
        "real": "real nights",
    }
    for group, title in titles.items():
        part = [row for row in rows if groups[row.name] == group]
        if not part:
            continue
        first = {row.name: row.method for row in reversed(part)}
        names = [row.name if first[row.name] == row.method else "" for row in part]
        yield csv_table(
            f"Answers, {title}",
            ANSWERS,
            [
                (
                    *(name, row.method, str(row.n), _error(row), str(row.answered)),
                    *(str(row.usable), str(row.ok), str(row.misfit)),
                    str(row.outside) if row.is_learned else "",
                )
                for name, row in zip(names, part, strict=True)
            ],
        )
        yield csv_table(
            f"Truth within intervals, {title}",
            INTERVALS,
            [
                (name, row.method, *(cell for level in LEVELS for cell in _intervals(row, level)))
                for name, row in zip(names, part, strict=True)
            ],
        )


def _error(row: Row) -> str:
    return f"{row.error:.3f}" if np.isfinite(row.error) else ""


def _intervals(row: Row, level: float) -> tuple[str, ...]:
    trusted = str(row.trusted[level]) if row.is_learned else ""
    return str(row.inside[level]), str(row.kept[level]), trusted, str(row.own[level])


def legend(sets: dict[str, ArcTable]) -> str:
    """What each set is."""
    words = {name: shift.words for name, shift in SHIFTS.items()} | {REAL: "as observed"}
    rows = [
        (
            name,
            words[name],
            str(len(table)),
            str(len(np.unique(table["designation"]))),
            f"{np.median(table['rho_topo_au']):.3f}",
            f"{1440.0 * np.median(to_core(table).span):.0f}",
        )
        for name, table in sets.items()
    ]
    header = ("set", "arcs are", "arcs", "objects", "median range [au]", "median length [min]")
    return csv_table("Sets", header, rows)


@style.print_size()
def figure(rows: Sequence[Row]) -> Any:
    """Coverage and alarms by set, a mark for each method."""
    names = list(dict.fromkeys(row.name for row in rows))
    labels = list(dict.fromkeys(row.method for row in rows))
    groups = {name: shift.group for name, shift in SHIFTS.items()} | {REAL: "real"}
    fig = style.new_figure(style.TWO_COLUMNS, 6.4)
    axes = fig.subplots(3, 1, sharex=True, height_ratios=(1.2, 1.0, 1.0))
    for k, (method, mark) in enumerate(style.marks(labels).items()):
        own = [row for row in rows if row.method == method]
        x = np.array([names.index(row.name) for row in own])
        x = x + 0.7 * ((k + 0.5) / len(labels) - 0.5)
        drawn: list[tuple[Any, list[Share], str]] = [
            (axes[0], [row.inside[0.68] for row in own], mark.color),
            (axes[1], [row.inside[0.95] for row in own], mark.color),
        ]
        if own[0].is_learned:
            drawn += [
                (axes[2], [row.outside for row in own], mark.color),
                (axes[2], [row.misfit for row in own], "white"),
            ]
        for ax, shares, face in drawn:
            value, error = 100.0 * np.array([(s.value, s.error) for s in shares]).T
            ax.errorbar(
                *(x, value, error),
                fmt=mark.marker,
                color=mark.color,
                markerfacecolor=face,
                markersize=3.5,
                elinewidth=0.7,
                label=method if ax is axes[0] else None,
            )
    for ax, level in zip(axes, LEVELS, strict=False):
        ax.axhline(100.0 * level, color=style.BLACK, linewidth=0.8, linestyle="--")
    for ax in axes:
        for k in range(1, len(names)):
            if groups[names[k]] != groups[names[k - 1]]:
                ax.axvline(k - 0.5, color=style.GREY, linewidth=0.8)
    style.dress(axes[0], ylabel="68 % intervals hold [%]")
    style.dress(axes[1], ylabel="95 % intervals hold [%]")
    style.dress(axes[2], ylabel="status [%]", xlim=(-0.6, len(names) - 0.4))
    style.note(axes[2], "filled: outside the training domain; hollow: misfit", (0.01, 0.88))
    axes[2].set_xticks(range(len(names)), names, rotation=35.0, ha="right")
    style.figure_legend(fig, axes[0], "outside upper center")
    return fig


def weights(methods: Sequence[StudyMethod]) -> str:
    """Weights of the networks by the first digits of their SHA-256."""
    identities = {method.label: method.estimator.identity for method in methods}
    digests = [
        f"``{label}`` ``{identity['weights_sha256'][:DIGEST]}``"
        for label, identity in identities.items()
        if "weights_sha256" in identity
    ]
    return f"Weights: {', '.join(digests)}.\n" if digests else ""


def main(arguments: list[str] | None = None) -> None:
    """Write the page part and the figure."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("work", type=Path, help="folder of the sets and the answers")
    parser.add_argument("--methods", nargs="+", default=METHODS, help="[LABEL=]NAME or weights")
    parser.add_argument(
        "--weights", nargs="*", default=[], metavar="LABEL=FILE", help="in place of a method"
    )
    parser.add_argument("--sets", nargs="+", default=list(SHIFTS), choices=list(SHIFTS))
    parser.add_argument("--real", type=Path, help="set of real nights")
    parser.add_argument("--arcs", type=int, default=ARCS, help="of each set")
    parser.add_argument("--posterior-arcs", type=int, default=POSTERIOR_ARCS)
    parser.add_argument(
        "--twin",
        type=Path,
        help="divided twin, whose part test shows how often the domain errs, and calibrates methods "
        "that come without a calibration",
    )
    parser.add_argument("--seed", type=int, default=20)
    parser.add_argument("--output", type=Path, default=GUIDE, help="folder of the page part")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    own = dict(text.split("=", 1) for text in options.weights)
    named = [f"{name}={own.pop(name)}" if name in own else name for name in options.methods]
    methods = study_methods(named + [f"{label}={file}" for label, file in own.items()])
    sets, rows = {}, []
    for k, name in enumerate(options.sets):
        print(f"{k + 1} of {len(options.sets)}: {name}", file=sys.stderr, flush=True)
        path = options.work / "sets" / f"{name.replace(' ', '-')}.npz"
        sets[name] = stored(path, name, options.arcs, options.seed)
        rows += rows_of(name, sets[name], methods, options.work, options)
    if options.real is not None:
        sets[REAL] = Selection(None, cap=CAP).read(options.real)
        rows += rows_of(REAL, sets[REAL], methods, options.work, options)
    of_domain = dict(sets)
    if options.twin is not None:
        selection = Selection("test", cap=CAP, max_arcs=TWIN_ARCS)
        of_domain = {"twin, part test": selection.read(options.twin), **sets}
    parts = [
        ".. made by docs/tools/shift_study.py; do not edit\n",
        weights(methods),
        legend(sets),
        domain_table(methods, of_domain),
        *tables(rows),
    ]
    text = "\n".join(part for part in parts if part)
    (options.output / "shift.inc").write_text(text, encoding="utf-8")
    drawing = figure(rows)
    drawing.savefig(options.output / "shift.png", dpi=160, metadata={"Software": None})


if __name__ == "__main__":
    main()
