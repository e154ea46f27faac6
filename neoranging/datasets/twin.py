"""The simulated twin: arcs of real orbits as the surveys of four decades would have observed them.

It stands in for the set of the literature where there is no network: as many objects, as many
nights of each, and the same distributions of range and proper motion. Nothing in it was observed by
anybody, and it is not the catalogue of NEODyS.

Arcs are made in blocks of objects, each from random numbers of its own, so that the same seed gives
the same set whatever the number of processes.
"""

from __future__ import annotations

import multiprocessing
import os
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from neoranging.constants import GM_SUN
from neoranging.core.elements import elements_to_state
from neoranging.core.geometry import FloatArray, ecliptic_to_equatorial
from neoranging.core.kepler import true_anomaly
from neoranging.datasets.account import Account, Counts, Sieve
from neoranging.datasets.apparitions import (
    chart_nights,
    designation_dates,
    redraw_anomalies,
)
from neoranging.datasets.catalogue import Catalogue, load_catalogue
from neoranging.datasets.close import close_passages
from neoranging.datasets.exposures import (
    Cadence,
    Visits,
    draw_cadence,
    geocentric_aspect,
    observe,
    plan_visits,
)
from neoranging.datasets.schema import ArcTable
from neoranging.datasets.store import ArcWriter
from neoranging.datasets.survey import Survey
from neoranging.exceptions import DatasetError

__all__ = ["Twin", "make_twin"]

Array = npt.NDArray[Any]
Integers = npt.NDArray[np.int64]

BLOCK: Final = 512
"""Objects made at a time."""

OBSERVATIONS_PER_ARC: Final = 7.8
"""Observations of the catalogue per arc of the literature: 4.47 million for 570,476."""

ATTEMPTS: Final = 30
"""Nights and stations tried for an arc before it is given up."""

_EPOCH_ORIGIN = np.datetime64("1858-11-17", "D")


@dataclass(frozen=True)
class Twin:
    """What a twin holds; the same values give the same arcs.

    Attributes
    ----------
    seed : int
    objects : int, optional
        Number of objects, drawn at random; all by default.
    noise : float
        Size of the errors in standard deviations of the stations; 0 for exact directions.
    limiting_magnitude : float
        Magnitude at which half of the objects are found in 2022.
    stations : tuple of str
        MPC codes; all simulated stations by default.
    first_date, last_date : str
        ISO dates: the first night, and the day after the last.
    close_fraction : float
        Number of further arcs of close passages, relative to the others.

    Raises
    ------
    DatasetError
        If a value is out of its range.
    UnknownStationError
        If a station is not simulated.
    """

    seed: int = 0
    objects: int | None = None
    noise: float = 1.0
    limiting_magnitude: float = 22.0
    stations: tuple[str, ...] = ()
    first_date: str = "1985-01-01"
    last_date: str = "2025-08-16"
    close_fraction: float = 0.0

    def __post_init__(self) -> None:
        if self.noise < 0.0 or self.close_fraction < 0.0 or self.seed < 0:
            raise DatasetError("seed, noise and close_fraction must not be negative")
        if self.objects is not None and self.objects < 1:
            raise DatasetError(f"objects must be at least 1, got {self.objects}")
        first, last = self.span
        if not first < last:
            raise DatasetError(
                f"the last date must follow the first, got {self.first_date} to {self.last_date}"
            )
        _ = self.survey  # refuses unknown stations

    @cached_property
    def span(self) -> tuple[float, float]:
        """First night and end [MJD]."""
        try:
            days = [np.datetime64(date, "D") for date in (self.first_date, self.last_date)]
        except ValueError as error:
            raise DatasetError(f"dates must look like 2025-08-16: {error}") from error
        first, last = (float((day - _EPOCH_ORIGIN).astype(np.int64)) for day in days)
        return first, last

    @cached_property
    def survey(self) -> Survey:
        """Who looks how deep."""
        return Survey(limiting_magnitude=self.limiting_magnitude, codes=self.stations)

    @cached_property
    def _selection(self) -> tuple[Catalogue, Counts]:
        catalogue = load_catalogue()
        designated = designation_dates(catalogue.principal_designation)
        sieve = Sieve(len(catalogue))
        sieve.drop(f"designated on {self.last_date} or later", ~(designated < self.span[1]))
        sieve.drop("absolute magnitude not known", ~np.isfinite(catalogue.H_mag))
        sieve.drop("number of observations not known", catalogue.n_obs < 0)
        early = (designated < self.span[0]) & (catalogue.n_opp <= 1)
        sieve.drop(f"observed before {self.first_date} only", early)
        chosen = self._rng(0).permutation(np.flatnonzero(sieve.keep))
        if self.objects is not None:
            sieve.drop("not among the objects drawn", ~np.isin(
                np.arange(len(catalogue)), chosen[: self.objects]
            ))
        return catalogue.take(chosen[: self.objects]), sieve.counts

    @property
    def catalogue(self) -> Catalogue:
        """The objects taken, in order of simulation, with the anomalies of the catalogue."""
        return self._selection[0]

    @property
    def n_blocks(self) -> int:
        """Number of blocks of objects."""
        return -(-len(self.catalogue) // BLOCK)

    def _rng(self, *key: int) -> np.random.Generator:
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=key))

    def orbits(self, block: int) -> tuple[Catalogue, FloatArray]:
        """The orbits on which the objects of a block move, and the dates of their discovery.

        Returns
        -------
        orbits : Catalogue
            Two-body orbits: exact at any time.
        discovery : ndarray
            MJD; NaN for objects known before the first date.
        """
        mine = np.arange(block * BLOCK, min((block + 1) * BLOCK, len(self.catalogue)))
        orbits = self.catalogue.take(mine)
        return redraw_anomalies(orbits, self.survey, self.span[0], self._rng(1, block))

    def block(self, block: int) -> tuple[ArcTable, Account]:
        """Arcs of a block of objects, and what became of the nights planned."""
        table, counts = self._observed(block)
        parts = {"arcs": counts}
        if block == 0:
            parts = {"objects": self._selection[1], **parts}
        if self.close_fraction > 0.0:
            n = round(self.close_fraction * counts.n_read)
            near, parts["close arcs"] = self._close(n, self._rng(3, block))
            table = ArcTable.concatenate([table, near])
        return table, Account(parts)

    def _observed(self, block: int) -> tuple[ArcTable, Counts]:
        orbits, discovery = self.orbits(block)
        rng = self._rng(2, block)
        owner, possible, visits, cadence = _schedule(orbits, discovery, self.survey, self.span, rng)
        order = np.lexsort((visits.middle, owner))
        order = order[possible[order]]
        visits = Visits(*(column[order] for column in visits))
        cadence = Cadence(*(column[order] for column in cadence))
        owner = owner[order]
        table, kept, counts = observe(visits, cadence, self.survey, self.noise, rng)
        row = owner[kept]
        table = table.with_columns(
            designation=orbits.designation[row],
            **_orbit_columns(orbits, row),
            raan_rad=orbits.raan_rad[row],
            argp_rad=orbits.argp_rad[row],
        )
        lost = int(np.sum(~possible))
        dropped = {**counts.dropped, **({"no station sees it in the dark": lost} if lost else {})}
        return table, Counts(len(possible), counts.n_used, dropped)

    def _close(self, n: int, rng: np.random.Generator) -> tuple[ArcTable, Counts]:
        passages = close_passages(self.catalogue, self.survey, n, self.span, rng)
        found = passages.possible
        visits = Visits(*(column[found] for column in passages.visits))
        cadence = draw_cadence(self.survey, visits.station, passages.rate[found], rng)
        table, kept, counts = observe(visits, cadence, self.survey, self.noise, rng)
        donor = passages.donor[found][kept]
        table = table.with_columns(
            designation=self.catalogue.designation[donor],
            **_orbit_columns(self.catalogue, donor),
            raan_rad=passages.elements.raan[found][kept],
            argp_rad=passages.elements.argp[found][kept],
            is_close=True,
        )
        return table, counts


def _orbit_columns(orbits: Catalogue, row: Integers) -> dict[str, Array]:
    return {
        "q_au": orbits.q_au[row],
        "ecc": orbits.ecc[row],
        "inc_rad": orbits.inc_rad[row],
        "H_mag": orbits.H_mag[row],
        "U": orbits.U[row],
        "truth_dynamics": np.full(len(row), "kepler"),
    }


def _states(orbits: Catalogue, row: Integers, t: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Heliocentric states of two-body orbits at epochs [MJD TDB], ICRS axes."""
    a, ecc = orbits.a_au[row], orbits.ecc[row]
    mean = orbits.mean_anomaly_rad[row] + np.sqrt(GM_SUN / a**3) * (t - orbits.epoch_mjd_tdb[row])
    r, v = elements_to_state(
        orbits.q_au[row],
        ecc,
        orbits.inc_rad[row],
        orbits.raan_rad[row],
        orbits.argp_rad[row],
        true_anomaly(mean, ecc),
    )
    return ecliptic_to_equatorial(r), ecliptic_to_equatorial(v)


def _schedule(
    orbits: Catalogue,
    discovery: FloatArray,
    survey: Survey,
    span: tuple[float, float],
    rng: np.random.Generator,
) -> tuple[Integers, npt.NDArray[np.bool_], Visits, Cadence]:
    """Nights, stations and times of all arcs of a block: owner, whether possible, what and when."""
    n_arcs = np.maximum(1, np.rint(orbits.n_obs / OBSERVATIONS_PER_ARC)).astype(np.int64)
    parts = []
    for rows, chart in chart_nights(orbits, discovery, survey, span, rng):
        # one night in every apparition, the others where the object was seen best
        each, dates = chart.draw_each(rng)
        rank = np.arange(len(each)) - np.searchsorted(each, each)
        given = rank < n_arcs[rows[each]]
        each, dates = each[given], dates[given]
        left = n_arcs[rows] - np.bincount(each, minlength=len(rows))
        others = np.repeat(np.arange(len(rows)), left)
        owner = np.concatenate([each, others])
        date = np.concatenate([dates, chart.draw(others, rng)])
        parts.append((rows[owner], *_place(orbits.take(rows), owner, date, chart, survey, rng)))
    owner, possible, visits, cadence = zip(*parts, strict=True)
    return (
        np.concatenate(owner),
        np.concatenate(possible),
        Visits(*(np.concatenate(column) for column in zip(*visits, strict=True))),
        Cadence(*(np.concatenate(column) for column in zip(*cadence, strict=True))),
    )


def _place(
    orbits: Catalogue,
    owner: Integers,
    date: FloatArray,
    chart: Any,
    survey: Survey,
    rng: np.random.Generator,
) -> tuple[npt.NDArray[np.bool_], Visits, Cadence]:
    """Try nights and stations until an arc is possible."""
    done = np.zeros(len(owner), dtype=bool)
    visits = cadence = None
    for attempt in range(ATTEMPTS):
        open_ = np.flatnonzero(~done)
        if attempt and not len(open_):
            break
        if attempt:
            date[open_] = chart.draw(owner[open_], rng)
        t, row = np.where(np.isfinite(date[open_]), date[open_], 60_000.0), owner[open_]
        r, v = _states(orbits, row, t)
        seen = geocentric_aspect(r, v, t, orbits.H_mag[row], _slope(orbits)[row])
        possible, new_visits, new_cadence = plan_visits(survey, r, v, t, seen, rng)
        if visits is None or cadence is None:
            visits, cadence = new_visits, new_cadence
        else:
            for old, new in zip((*visits, *cadence), (*new_visits, *new_cadence), strict=True):
                old[open_] = new
        done[open_] = possible & np.isfinite(date[open_])
    return done, visits, cadence


def _slope(orbits: Catalogue) -> FloatArray:
    return np.nan_to_num(orbits.G, nan=0.15)


_WORKER: dict[str, Twin] = {}


def _adopt(twin: Twin) -> None:
    _WORKER["twin"] = twin


def _work(block: int) -> tuple[ArcTable, Account]:
    return _WORKER["twin"].block(block)


def _blocks(twin: Twin, first: int, workers: int) -> Iterator[tuple[ArcTable, Account]]:
    """Blocks in order, made by one process or several."""
    if workers == 1:
        yield from map(twin.block, range(first, twin.n_blocks))
        return
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, context, initializer=_adopt, initargs=(twin,))
    with pool:
        # few at a time: blocks that wait to be written are memory
        running: deque[Future[tuple[ArcTable, Account]]] = deque()
        for block in range(first, twin.n_blocks):
            running.append(pool.submit(_work, block))
            if len(running) > workers + 1:
                yield running.popleft().result()
        while running:
            yield running.popleft().result()


def make_twin(
    folder: str | os.PathLike[str],
    twin: Twin = Twin(),  # noqa: B008 - immutable
    *,
    workers: int | None = None,
    overwrite: bool = False,
) -> dict[str, Any]:
    """Write a twin as a stored set.

    Parameters
    ----------
    folder : path-like
        Of the set. An unfinished set of the same settings is gone on with.
    twin : Twin
        What it shall hold.
    workers : int, optional
        Processes; all cores by default. The set does not depend on it.
    overwrite : bool
        Begin anew whatever the folder holds.

    Returns
    -------
    dict
        The marginals as `neoranging.datasets.marginals.compare` gives them; also in the manifest.
    """
    from neoranging.datasets.marginals import compare, marginals_of_set
    from neoranging.datasets.progress import progress_bar

    n_workers = workers or os.cpu_count() or 1
    settings = {"kind": "twin", **asdict(twin)}
    with ArcWriter(Path(folder), settings=settings, overwrite=overwrite) as writer:
        first = writer.n_parts
        with progress_bar(twin.n_blocks, "twin", unit="block", initial=first) as bar:
            for table, account in _blocks(twin, first, n_workers):
                writer.write(table, account)
                bar.update(1)
        rows = compare(marginals_of_set(folder, partial=True))
        writer.describe(marginals=rows)
    return rows
