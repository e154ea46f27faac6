"""Other nights of simulated arcs, fresh for each epoch: new errors, and some observations left out.

A conditional density is that of the nights it is trained on. Its training prior is

- the population of the simulated twin, with the selection of its surveys: the objects of the
  catalogue where these would have found and followed them;
- the close passages of the set at their share, shapes of orbits of the catalogue turned to pass
  between 0.0001 and 0.1 au from the centre of the Earth, log-uniform in that distance. Some of
  them meet the Earth within days of their arc: these are the impactors, and no others are added;
- arcs of one night, minutes to a day long, with as many observations as the set has them, three
  upwards; of `CUT_SHARE` of them, others in each epoch, two observations or more are left, their
  number log-uniform, either a run of them or any.

Errors are drawn by the law of the twin: scatter and offset of each visit, and the last digits of
times and directions. Arcs that nobody simulated, or whose orbit does not explain them, are shown as
they were observed.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import torch

from neoranging.constants import C_AU_PER_DAY
from neoranging.core.arcs import Arcs
from neoranging.core.geometry import dot, radec, sky_basis
from neoranging.estimators.network_inputs import arc_inputs
from neoranging.exceptions import DatasetError
from neoranging.lab.sets.arcs import LEAST_SPAN_D, to_core
from neoranging.lab.sets.schema import TRUE_COLUMNS, ArcTable
from neoranging.lab.sets.store import read_manifest
from neoranging.lab.simulation.astrometric_errors import Errors, displaced
from neoranging.lab.simulation.exposures import rounded, time_steps
from neoranging.lab.simulation.survey import is_fine
from neoranging.lab.training.data import TrainingArcs, card_facts, labelled_tables
from neoranging.lab.training.noise import explained, redrawn, sightings
from neoranging.typing import BoolArray, FloatArray, IntArray

CUT_SHARE: Final = 0.3
"""Share of the arcs of three observations or more that lose some of them in an epoch."""

_LEAST_CHANGE_D: Final = 0.02
"""Time between the epochs of the triplet that an arc of several visits has to exceed once cut [d].

Two stations at once are an observer that moves within seconds by the radius of the Earth: an
acceleration a hundred times that of its rotation, which would set the scale of that feature.
"""

TRAINING_PRIOR: Final = (
    "population of the twin with the selection of its surveys, and its close passages, log-uniform "
    "in the distance and some of them impactors, at their share in the set; arcs of one night as "
    "they are in the set, but for the share that is cut to two observations or more; errors drawn "
    "anew in each epoch by the law of the twin"
)
"""Words for the model card."""


class ExactArcs(NamedTuple):
    """Some arcs without the errors of their observations."""

    arcs: Arcs
    """M arcs with n observations. Directions are those without errors, or of arcs that keep their
    errors the observed ones."""
    is_drawn: BoolArray
    """Flags of the arcs whose errors are drawn, shape (M,)."""
    motion: FloatArray
    """Velocity on the sky to the east and to the north, shape (2, n) [rad/d]."""
    fine: BoolArray
    """Flags of the observations with one digit more, shape (n,)."""
    rho: FloatArray
    """True range at each observation, shape (n,) [au]; of arcs that keep their errors it holds at
    the reference epoch alone."""
    rho_dot: FloatArray
    """Its derivative by the time of reception, shape (n,) [au/d]."""

    @classmethod
    def of(cls, table: ArcTable, errors: Errors) -> ExactArcs:
        """Arcs of a table, put on their orbits."""
        arcs = to_core(table)
        sighting = sightings(table, arcs)
        ra, dec = radec(sighting.direction)
        away = sighting.v * (1.0 - sighting.rho_dot / C_AU_PER_DAY)[:, None] - arcs.velocity
        with np.errstate(all="ignore"):  # orbits that predict nothing are not believed below
            motion = np.stack([dot(away, axis) / sighting.rho for axis in sky_basis(ra, dec)])
        fine = is_fine(table["stations"], arcs.t)
        # fast objects are displaced along their way by the last digit of the time
        late = np.hypot(*motion) * time_steps(fine) if errors.size > 0.0 else 0.0
        is_drawn = explained(arcs, ra, dec, late) & table["is_simulated"]
        owner, middle = arcs.owner, arcs.triplet[:, 1]
        rows = is_drawn[owner]
        ra, dec = (np.where(rows, *pair) for pair in ((ra, arcs.ra), (dec, arcs.dec)))
        # the stored truth, carried to the other epochs: the object may be an instant off
        pairs = zip((sighting.rho, sighting.rho_dot), TRUE_COLUMNS["topocenter"], strict=True)
        rho, rho_dot = (
            np.where(rows, x + (table[name] - x[middle])[owner], table[name][owner])
            for x, name in pairs
        )
        return cls(replace(arcs, ra=ra, dec=dec), is_drawn, motion, fine, rho, rho_dot)

    def night(
        self, errors: Errors, rng: np.random.Generator
    ) -> tuple[Arcs, FloatArray, FloatArray]:
        """Arcs with errors, some of them cut; and their true ranges and range-rates, (M,) each."""
        rows = self._rows_left(rng)
        arcs, fine = self.arcs.observations(rows), self.fine[rows]
        middle = rows[arcs.triplet[:, 1]]
        if errors.size > 0.0:
            late = time_steps(fine) * (rng.random(len(rows)) - 0.5)
            noisy = self.is_drawn[arcs.owner]
            offset = np.where(noisy, late * self.motion[:, rows], 0.0)
            ra, dec = displaced(arcs.direction, offset)
            again = redrawn(replace(arcs, ra=ra, dec=dec), self.is_drawn, errors, rng)
            pairs = zip(rounded(again.ra, again.dec, fine), (arcs.ra, arcs.dec), strict=True)
            ra, dec = (np.where(noisy, *pair) for pair in pairs)
            arcs = replace(arcs, ra=ra, dec=dec)
        return arcs, self.rho[middle], self.rho_dot[middle]

    def _rows_left(self, rng: np.random.Generator) -> IntArray:
        """Observations of an epoch, at least two of each arc, in ascending order."""
        arcs = self.arcs
        counts, owner = arcs.counts, arcs.owner
        m = len(arcs)
        cut = self.is_drawn & (counts >= 3) & (rng.random(m) < CUT_SHARE)
        number = np.floor(2.0 * (0.5 * counts) ** rng.random(m)).astype(np.int64)
        # the observations of an arc that come first by ``turn`` are left
        start = np.floor(rng.random(m) * (counts - number + 1)).astype(np.int64)
        turn = np.arange(len(owner)) - (arcs.offsets[:-1] + start)[owner]
        turn = np.where(turn < 0, turn + counts[owner], turn).astype(np.float64)
        is_run = rng.random(m) < 0.5
        turn = np.where(is_run[owner], turn, rng.random(len(owner)))
        place = np.empty(len(owner), dtype=np.int64)
        place[np.lexsort((turn, owner))] = np.arange(len(owner)) - arcs.offsets[owner]
        is_left = ~cut[owner] | (place < number[owner])
        # as short as no arc of a set is, or without a middle: such arcs stay as they are
        some = arcs.observations(np.flatnonzero(is_left))
        first, middle, last = some.t[some.triplet].T
        gap = np.where(some.counts > 2, np.minimum(middle - first, last - middle), last - first)
        is_shared = some.sum(some.visit != some.visit[some.offsets[:-1]][some.owner]) > 0
        bad = (last - first <= LEAST_SPAN_D) | (gap <= np.where(is_shared, _LEAST_CHANGE_D, 0.0))
        return np.flatnonzero(is_left | bad[owner])


@dataclass(frozen=True)
class Nights:
    """Arcs of the training part of a set, another night of them for each epoch.

    Attributes
    ----------
    parts : tuple of ExactArcs
        The arcs, a few thousand at a time.
    errors : Errors
        Kind of the errors.
    seed : int
        Seed of all nights; the same seed and number give the same night.
    root : bool
        Solve for the root of Gauss's method.
    facts : dict
        Entries for the model card.
    """

    parts: tuple[ExactArcs, ...]
    errors: Errors
    seed: int = 0
    root: bool = False
    facts: dict[str, Any] = field(default_factory=dict)

    def drawn(self, number: int) -> TrainingArcs:
        """Inputs and truth of the night of a number."""
        night = []
        for k, part in enumerate(self.parts):
            rng = np.random.default_rng((self.seed, number, k))
            arcs, *truth = part.night(self.errors, rng)
            inputs = arc_inputs(arcs, root=self.root).map(torch.from_numpy)
            night.append(TrainingArcs(inputs, *map(torch.from_numpy, truth)))
        return replace(TrainingArcs.concatenate(night), facts=self.facts)


def load_nights(
    folder: str | Path,
    split: str,
    *,
    root: bool = False,
    seed: int = 0,
    close_passages: bool = True,
) -> Nights:
    """Nights of one part of a stored set of simulated arcs.

    The parameters are those of `neoranging.lab.training.data.load_arcs`.

    Raises
    ------
    DatasetError
        If the set is not finished, was not divided, or the part has no arcs; if there are no
        simulated arcs in it whose orbits explain them.
    """
    errors = Errors.of(read_manifest(folder).get("settings", {}))
    parts, objects, n_close = [], set(), 0
    for table in labelled_tables(folder, split, close_passages):
        parts.append(ExactArcs.of(table, errors))
        objects.update(np.unique(table["designation"]).tolist())
        n_close += int(table["is_close"].sum())
    n, n_drawn = sum(len(part.arcs) for part in parts), sum(int(p.is_drawn.sum()) for p in parts)
    if not n_drawn:
        raise DatasetError(
            f"no arc of the part {split!r} of {folder} is simulated on the orbit that is stored "
            "with it, so no other night of it can be drawn: train without fresh nights"
        )
    prior = {
        "prior": TRAINING_PRIOR,
        "close_share": round(n_close / n, 6),
        "cut_share": CUT_SHARE,
        "drawn_share": round(n_drawn / n, 6),
    }
    facts = {**card_facts(folder, n, objects, close_passages), "training_prior": prior}
    return Nights(tuple(parts), errors, seed, root, facts)
