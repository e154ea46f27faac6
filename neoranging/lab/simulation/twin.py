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
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from neoranging.exceptions import DatasetError
from neoranging.lab.sets.progress import progress_bar
from neoranging.lab.sets.schema import ArcTable
from neoranging.lab.sets.store import ArcWriter, read_arcs
from neoranging.lab.sets.truth import DYNAMICS, NEAR_EARTH
from neoranging.lab.simulation.apparitions import designation_dates, redraw_anomalies
from neoranging.lab.simulation.astrometric_errors import KINDS, Errors
from neoranging.lab.simulation.close_approaches import close_passages
from neoranging.lab.simulation.exposures import observe
from neoranging.lab.simulation.marginals import COLUMNS_NEEDED, compare, marginals
from neoranging.lab.simulation.schedule import replan, schedule
from neoranging.lab.simulation.survey import Survey
from neoranging.orbits.catalogue import Catalogue, load_catalogue
from neoranging.orbits.nbody import nbody_states
from neoranging.processes import deal
from neoranging.records import Account, RecordCount, Rejections
from neoranging.typing import FloatArray

OBJECTS_PER_BLOCK: Final = 512
"""Objects made at a time."""

USUAL_SLOPE: Final = 0.15
"""Parameter G of objects for which the catalogue has none."""

_EPOCH_ORIGIN = np.datetime64("1858-11-17", "D")


@dataclass(frozen=True)
class Twin:
    """Settings of a simulated set, and its arcs block by block; the same values give the same arcs.

    Attributes
    ----------
    seed : int
    objects : int, optional
        Number of objects, drawn at random; all by default.
    errors : {"measured", "claimed"}
        Errors of the observations: less than they claim and those of a visit alike, as real ones
        have them, or each on its own and as large as it claims.
    noise : float
        Factor by which the errors of the stations are taken; 0 for exact directions and times.
    limiting_magnitude : float
        Magnitude at which half of the objects are found in 2022.
    stations : tuple of str
        MPC codes; all simulated stations by default.
    first_date, last_date : str
        ISO dates: the first night, and the day after the last.
    dynamics : {"near-earth", "kepler", "nbody"}
        Motion of the objects: on fixed ellipses from night to night, and within a night under the
        Earth and the Moon where these displace them by a milliarcsecond; on fixed ellipses
        throughout, as sets made before had it; or under the planets as well from their discovery
        on, which takes six times as long and needs the extra ``nbody``. Close passages have one
        night each, and "nbody" moves them as "near-earth" does.
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
    dynamics: str = NEAR_EARTH
    close_fraction: float = 0.0
    group_by: str = "night"

    def __post_init__(self) -> None:
        for name in ("seed", "noise", "close_fraction"):
            value = getattr(self, name)
            if not 0 <= value < math.inf:
                raise DatasetError(f"{name} must be zero or a positive number, got {value}")
        for name, choices in (
            ("errors", KINDS),
            ("dynamics", DYNAMICS),
            ("group_by", ("night", "station")),
        ):
            if (value := getattr(self, name)) not in choices:
                raise DatasetError(f"{name} must be one of {', '.join(choices)}, got {value!r}")
        if not math.isfinite(self.limiting_magnitude):
            raise DatasetError(
                f"limiting_magnitude must be a number, got {self.limiting_magnitude}"
            )
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
        """Stations and depth of the search."""
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
        rows = self._rng(0).permutation(np.flatnonzero(rejections.usable))[: self.objects]
        if self.objects is not None:
            others = ~np.isin(np.arange(len(catalogue)), rows)
            rejections.reject(others, "not among the objects drawn")
        selection = catalogue.take(rows)
        slope = np.nan_to_num(selection.G, nan=USUAL_SLOPE)
        return dataclasses.replace(selection, G=slope), rejections.count

    @property
    def catalogue(self) -> Catalogue:
        """The objects of the twin, in order of simulation, with the anomalies of the catalogue."""
        return self._selection[0]

    @property
    def n_blocks(self) -> int:
        """Number of blocks of objects."""
        return -(-len(self.catalogue) // OBJECTS_PER_BLOCK)

    def _rng(self, *key: int) -> np.random.Generator:
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=key))

    def orbits(self, block: int) -> tuple[Catalogue, FloatArray]:
        """The orbits on which the objects of a block move, and the dates of their discovery.

        Returns
        -------
        orbits : Catalogue
            Two-body orbits: exact at any time.
        discovery : ndarray
            MJD; NaN for objects designated before the first date.
        """
        rows = np.arange(
            block * OBJECTS_PER_BLOCK, min((block + 1) * OBJECTS_PER_BLOCK, len(self.catalogue))
        )
        orbits = self.catalogue.take(rows)
        return redraw_anomalies(orbits, self.survey, self.span[0], self._rng(1, block))

    def block(self, block: int) -> tuple[ArcTable, Account]:
        """Arcs of a block of objects, and the account of the visits planned."""
        orbits, discovery = self.orbits(block)
        rng, errors = self._rng(2, block), Errors(self.errors, self.noise)
        visits = schedule(orbits, discovery, self.survey, self.span, rng)
        motion = None
        if self.dynamics == "nbody":
            motion = partial(nbody_states, *orbits.states(), orbits.epoch_mjd_tdb)
            visits = replan(visits, orbits, motion, self.survey, rng)
        n_planned, visits = len(visits.owner), visits.take(np.flatnonzero(visits.possible))
        by_night = self.group_by == "night"
        table, arcs = observe(
            visits,
            orbits,
            self.survey,
            errors,
            rng,
            dynamics=self.dynamics,
            motion=motion,
            by_night=by_night,
        )
        counts = {"visits": _possible(len(visits.owner), n_planned), "arcs": arcs}
        if block == 0:
            counts = {"objects": self._selection[1], **counts}
        if self.close_fraction > 0.0:
            n, rng = round(self.close_fraction * n_planned), self._rng(3, block)
            # every arc has an orbit of its own; it bears the name of the object it was turned from
            turned, visits = close_passages(self.catalogue, self.survey, n, self.span, rng)
            dynamics = "kepler" if self.dynamics == "kepler" else NEAR_EARTH
            close, arcs = observe(visits, turned, self.survey, errors, rng, dynamics=dynamics)
            table = ArcTable.concatenate([table, close.with_columns(is_close=True)])
            counts["close arcs"] = _possible(len(turned), n).then(arcs)
        return table, Account(counts)

    def arcs(self) -> ArcTable:
        """All arcs of all blocks, in memory: for twins of some thousand objects."""
        return ArcTable.concatenate(self.block(k)[0] for k in range(self.n_blocks))


def _possible(n: int, planned: int) -> RecordCount:
    """Count of the n visits planned that were possible."""
    reason = "too faint, not up in the dark, or observed by that station already"
    return RecordCount(planned, n, {reason: planned - n} if n < planned else {})


_loaded = cache(lambda twin: twin)  # one for all blocks of a process, with its catalogue


def _block_of(twin: Twin, number: int) -> tuple[ArcTable, Account]:
    """Block of a twin of these settings."""
    of_process: Twin = _loaded(twin)
    return of_process.block(number)


def make_twin(
    folder: str | Path,
    twin: Twin = Twin(),
    *,
    workers: int | None = None,
    scheduler: str | None = None,
    overwrite: bool = False,
) -> list[dict[str, Any]]:
    """Write a twin as a stored set.

    Parameters
    ----------
    folder : path-like
        Of the set. An unfinished set of the same settings is gone on with.
    twin : Twin
        Settings of the twin.
    workers : int, optional
        Processes; all cores by default. The set does not depend on it.
    scheduler : str, optional
        Address of a scheduler of Dask, whose workers make the blocks instead.
    overwrite : bool
        Begin anew whatever the folder holds.

    Returns
    -------
    list of dict
        The marginals as ``neoranging.lab.simulation.marginals.compare`` gives them; also in the
        manifest.
    """
    settings = {"kind": "twin", **asdict(twin)}
    with ArcWriter(folder, settings=settings, overwrite=overwrite) as writer:
        first = writer.n_parts
        numbers = range(first, twin.n_blocks)
        n_workers = min(workers or os.cpu_count() or 1, len(numbers))
        # a fresh twin: the catalogue that this one holds is long to send, and quick to load
        task = partial(_block_of, dataclasses.replace(twin))
        blocks = deal(task, numbers, n_workers, scheduler)
        with (
            progress_bar(twin.n_blocks, "twin", unit="block", initial=first) as bar,
            closing(blocks),
        ):
            for table, account in blocks:
                writer.write(table, account)
                bar.update(1)
        figures = marginals(read_arcs(folder, COLUMNS_NEEDED, partial=True))
        if twin.objects is not None:  # a part of the objects says nothing about their number
            del figures["n_arcs"], figures["n_objects"]
        rows = compare(figures)
        writer.describe(marginals=rows)
    return rows
