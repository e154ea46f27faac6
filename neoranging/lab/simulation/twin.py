"""The simulated twin: arcs of real orbits as the surveys of four decades would have observed them.

It stands in for the set of the literature where there is no network: as many objects, as many
nights of each, and the same distributions of range and proper motion. Nothing in it was observed by
anybody, and it is not the catalogue of NEODyS.

Arcs are made in blocks of objects, each from random numbers of its own, so that the same seed gives
the same set whatever the number of processes. Another processor may round otherwise, and an arc at
the limit of a selection then comes in or drops out.
"""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Generator
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np

from neoranging.exceptions import DatasetError
from neoranging.lab.sets.schema import ArcTable
from neoranging.lab.sets.store import ArcWriter
from neoranging.lab.sets.truth import DYNAMICS, label_arcs
from neoranging.lab.sets.workers import in_processes
from neoranging.lab.simulation.apparitions import designation_dates, redraw_anomalies
from neoranging.lab.simulation.astrometric_errors import KINDS, Errors
from neoranging.lab.simulation.close_approaches import close_passages
from neoranging.lab.simulation.exposures import draw_cadence, observe
from neoranging.lab.simulation.schedule import Plan, perturbed_motion, replan, schedule
from neoranging.lab.simulation.survey import Survey
from neoranging.orbits.catalogue import Catalogue, load_catalogue
from neoranging.records import Account, RecordCount, Rejections
from neoranging.typing import BoolArray, FloatArray, IntArray

BLOCK: Final = 512
"""Objects made at a time."""

USUAL_SLOPE: Final = 0.15
"""Parameter G of objects for which the catalogue has none."""

_EPOCH_ORIGIN = np.datetime64("1858-11-17", "D")


@dataclass(frozen=True)
class Twin:
    """What a twin holds; the same values give the same arcs.

    Attributes
    ----------
    seed : int
    objects : int, optional
        Number of objects, drawn at random; all by default.
    errors : {"measured", "claimed"}
        How observations err: by less than they claim and those of a visit alike, as real ones do,
        or each on its own and as much as it claims.
    noise : float
        Factor by which the errors of the stations are taken; 0 for exact directions and times.
    limiting_magnitude : float
        Magnitude at which half of the objects are found in 2022.
    stations : tuple of str
        MPC codes; all simulated stations by default.
    first_date, last_date : str
        ISO dates: the first night, and the day after the last.
    dynamics : {"kepler", "nbody"}
        How the objects move: on fixed ellipses, or under the planets and the Moon as well from
        their discovery on, which takes six times as long and needs the extra ``nbody``. Close
        passages are always ellipses.
    close_fraction : float
        Number of further arcs of close passages, relative to the visits. Each is of one station.
    group_by : {"night", "station"}
        An arc is an object in one night, of all stations that saw it, as in the literature on the
        set of NEODyS, or of one station.

    Raises
    ------
    DatasetError
        If a value is out of its range.
    UnknownStationError
        If a station is not simulated.
    """

    seed: int = 0
    objects: int | None = None
    errors: str = "measured"
    noise: float = 1.0
    limiting_magnitude: float = 22.0
    stations: tuple[str, ...] = ()
    first_date: str = "1985-01-01"
    last_date: str = "2025-08-16"
    dynamics: str = "kepler"
    close_fraction: float = 0.0
    group_by: str = "night"

    def __post_init__(self) -> None:
        for name in ("seed", "noise", "close_fraction"):
            value = getattr(self, name)
            if not 0 <= value < math.inf:
                raise DatasetError(f"{name} must be zero or a positive number, got {value}")
        if not math.isfinite(self.limiting_magnitude):
            raise DatasetError(
                f"limiting_magnitude must be a number, got {self.limiting_magnitude}"
            )
        if self.errors not in KINDS:
            raise DatasetError(f"errors must be one of {', '.join(KINDS)}, got {self.errors!r}")
        if self.dynamics not in DYNAMICS:
            raise DatasetError(
                f"dynamics must be one of {', '.join(DYNAMICS)}, got {self.dynamics!r}"
            )
        if self.group_by not in {"night", "station"}:
            raise DatasetError(f"group_by must be 'night' or 'station', got {self.group_by!r}")
        if self.objects is not None and self.objects < 1:
            raise DatasetError(f"objects must be at least 1, got {self.objects}")
        first, last = self.span
        if not first < last:
            raise DatasetError(
                f"the last date must follow the first, got {self.first_date} to {self.last_date}"
            )
        _ = self.survey  # refuses unknown stations

    @property
    def _errors(self) -> Errors:
        return Errors(self.errors, self.noise)

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
    def _selection(self) -> tuple[Catalogue, RecordCount]:
        catalogue = load_catalogue()
        designated = designation_dates(catalogue.principal_designation)
        rejections = Rejections(len(catalogue))
        rejections.reject(~(designated < self.span[1]), f"designated on {self.last_date} or later")
        rejections.reject(~np.isfinite(catalogue.H_mag), "absolute magnitude not known")
        rejections.reject(catalogue.n_obs < 0, "number of observations not known")
        early = (designated < self.span[0]) & (catalogue.n_opp <= 1)
        rejections.reject(early, f"observed before {self.first_date} only")
        chosen = self._rng(0).permutation(np.flatnonzero(rejections.usable))
        if self.objects is not None:
            drawn = np.isin(np.arange(len(catalogue)), chosen[: self.objects])
            rejections.reject(~drawn, "not among the objects drawn")
        taken = catalogue.take(chosen[: self.objects])
        slope = np.nan_to_num(taken.G, nan=USUAL_SLOPE)
        return dataclasses.replace(taken, G=slope), rejections.count

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
        table, visits, arcs = self._observed(block)
        parts = {"visits": visits, "arcs": arcs}
        if block == 0:
            parts = {"objects": self._selection[1], **parts}
        if self.close_fraction > 0.0:
            n = round(self.close_fraction * visits.n_read)
            near, parts["close arcs"] = self._close(n, self._rng(3, block))
            table = ArcTable.concatenate([table, near])
        return table, Account(parts)

    def arcs(self) -> ArcTable:
        """All arcs of all blocks, in memory: for twins of some thousand objects."""
        return ArcTable.concatenate(self.block(k)[0] for k in range(self.n_blocks))

    def _observed(self, block: int) -> tuple[ArcTable, RecordCount, RecordCount]:
        orbits, discovery = self.orbits(block)
        rng = self._rng(2, block)
        plan = schedule(orbits, discovery, self.survey, self.span, rng)
        motion = None
        if self.dynamics == "nbody":
            motion = perturbed_motion(orbits, plan.owner)
            plan = replan(plan, orbits, motion, self.survey, rng)
        possible = np.flatnonzero(plan.possible)
        if self.dynamics == "nbody":
            motion = perturbed_motion(orbits, plan.owner[possible])
        seen = plan.take(possible)
        arc, first = self._joined(seen)
        table, kept, observed = observe(
            seen.visits, seen.cadence, self.survey, self._errors, rng, motion, arc
        )
        table, labelled = self._labelled(table, orbits, seen.owner[first[kept]])
        lost = RecordCount(len(plan.possible), len(possible), _reason(NOT_SEEN, ~plan.possible))
        return table, lost, observed.then(labelled)

    def _joined(self, plan: Plan) -> tuple[IntArray, IntArray]:
        """The arc that each visit belongs to, and the first visit of each arc."""
        visits = plan.visits
        if self.group_by == "station":
            alone = np.arange(len(plan.owner))
            return alone, alone
        key = np.stack([plan.owner, self.survey.night(visits.station, visits.middle)])
        _, first, arc = np.unique(key, axis=1, return_index=True, return_inverse=True)
        return arc, first

    def _close(self, n: int, rng: np.random.Generator) -> tuple[ArcTable, RecordCount]:
        passages = close_passages(self.catalogue, self.survey, n, self.span, rng)
        found = np.flatnonzero(passages.possible)
        visits = passages.visits.take(found)
        cadence = draw_cadence(self.survey, visits.station, passages.rate[found], rng)
        table, arc, observed = observe(visits, cadence, self.survey, self._errors, rng)
        # every arc has an orbit of its own; it bears the name of the object it was turned from
        table, labelled = self._labelled(table, passages.orbits.take(found), arc, "kepler")
        lost = RecordCount(n, len(found), _reason(NOT_SEEN, ~passages.possible))
        return table.with_columns(is_close=True), lost.then(observed).then(labelled)

    def _labelled(
        self, table: ArcTable, orbits: Catalogue, row: IntArray, dynamics: str = ""
    ) -> tuple[ArcTable, RecordCount]:
        """Give arcs the truth of their orbits, found by row while names may occur twice."""
        numbers = np.arange(len(orbits)).astype(np.str_)
        numbered = dataclasses.replace(orbits, designation=numbers, principal_designation=numbers)
        table, counts = label_arcs(
            table.with_columns(designation=numbers[row]),
            numbered,
            dynamics=dynamics or self.dynamics,
            gate=np.inf,
        )
        names = orbits.designation[table["designation"].astype(np.int64)]
        return table.with_columns(designation=names), counts


NOT_SEEN: Final = "too faint, not up in the dark, or observed by that station already"


def _reason(name: str, bad: BoolArray) -> dict[str, int]:
    return {name: int(bad.sum())} if bad.any() else {}


def _blocks(
    twin: Twin, first: int, workers: int
) -> Generator[tuple[ArcTable, Account], None, None]:
    """Blocks in order, made by one process or several."""
    numbers = range(first, twin.n_blocks)
    if workers == 1 or len(numbers) <= 1:
        yield from map(twin.block, numbers)
    else:
        # a fresh one: the catalogue that this one holds is long to send, and quick to load
        fresh = dataclasses.replace(twin)
        yield from in_processes(fresh.block, numbers, min(workers, len(numbers)))


def make_twin(
    folder: str | os.PathLike[str],
    twin: Twin = Twin(),
    *,
    workers: int | None = None,
    overwrite: bool = False,
) -> list[dict[str, Any]]:
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
    list of dict
        The marginals as `neoranging.lab.simulation.marginals.compare` gives them; also in the
        manifest.
    """
    from neoranging.lab.sets.progress import progress_bar
    from neoranging.lab.simulation.marginals import compare, marginals_of_set

    n_workers = workers or os.cpu_count() or 1
    settings = {"kind": "twin", **asdict(twin)}
    with ArcWriter(Path(folder), settings=settings, overwrite=overwrite) as writer:
        first = writer.n_parts
        with (
            progress_bar(twin.n_blocks, "twin", unit="block", initial=first) as bar,
            closing(_blocks(twin, first, n_workers)) as blocks,
        ):
            for table, account in blocks:
                writer.write(table, account)
                bar.update(1)
        figures = marginals_of_set(folder, partial=True)
        if twin.objects is not None:  # a part of the objects says nothing about their number
            del figures["n_arcs"], figures["n_objects"]
        rows = compare(figures)
        writer.describe(marginals=rows)
    return rows
