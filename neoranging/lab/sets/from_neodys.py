"""From the files of NEODyS-2 to a set of labelled arcs, with the account of every object."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
from astropy import units as u

from neoranging.exceptions import DatasetError, NeoRangingError
from neoranging.lab.archive.client import Job, NeodysClient
from neoranging.lab.archive.manifest import Status
from neoranging.lab.archive.oef import OrbitRecord, read_orbit, spelled
from neoranging.lab.sets.arcs import form_arcs
from neoranging.lab.sets.schema import ArcTable
from neoranging.lab.sets.store import ArcWriter
from neoranging.lab.sets.truth import DYNAMICS, GATE, label_arcs
from neoranging.observations.rwo.read import read_rwo
from neoranging.orbits.catalogue import Catalogue
from neoranging.records import Account, RecordCount

if TYPE_CHECKING:
    from astropy.table import QTable


Orbits = Literal["middle", "present", "catalogue"]

ORBITS: Final = ("middle", "present", "catalogue")
"""Where orbits come from: a file per object with the epoch in the middle of its observed arc or
near the present, or the one catalogue of all objects near the present."""

OBJECTS_PER_PART: Final = 500
NO_FILE: Final = "no observation file"
NO_ORBIT: Final = "no orbit file"


@dataclass(frozen=True, kw_only=True)
class NeodysSet:
    """How a set is made of the files of the portal.

    Parameters
    ----------
    designations : sequence of str
        Objects, in the order of the set.
    orbits : {"middle", "present", "catalogue"}
        See `ORBITS`. Two-body truth wants the middle of the arc.
    dynamics : {"kepler", "nbody"}
        Of the truth: two bodies, or with the planets.
    gate : float
        Largest residual of a label [arcsec]; infinite for no gate.
    group_by : {"night", "station"} or ("night", "station")
        See `neoranging.lab.sets.arcs.form_arcs`.

    Raises
    ------
    DatasetError
        If ``orbits`` or ``dynamics`` is something else, or an object is named twice.
    """

    designations: Sequence[str]
    orbits: Orbits = "middle"
    dynamics: str = "kepler"
    gate: float = GATE
    group_by: str | Collection[str] = field(default=("night", "station"))

    def __post_init__(self) -> None:
        for name, value, allowed in (
            ("orbits", self.orbits, ORBITS),
            ("dynamics", self.dynamics, DYNAMICS),
        ):
            if value not in allowed:
                raise DatasetError(f"{name} must be one of {', '.join(allowed)}, got {value!r}")
        names = [name.replace(" ", "") for name in self.designations]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise DatasetError(f"the object {twice} is named twice; name each object once")

    def jobs(self, client: NeodysClient) -> list[Job]:
        """Return the files that the set needs, the observations and the orbit of each object."""
        observations = client.observation_files(self.designations)
        if self.orbits == "catalogue":
            return observations
        orbits = client.orbit_files(self.designations, epoch=self.orbits)
        return [job for pair in zip(observations, orbits, strict=True) for job in pair]

    def make(
        self,
        client: NeodysClient,
        folder: str | Path,
        *,
        overwrite: bool = False,
        on_step: Callable[[int], Any] = lambda _: None,
    ) -> Account:
        """Make the set of the files at hand; those that are not are accounted for.

        Parameters
        ----------
        client : NeodysClient
            Whose `NeodysClient.download` fetched the `jobs` before.
        folder : path-like
            Of the set. A set that was interrupted is gone on with.
        overwrite : bool
            Begin anew whatever the folder holds.
        on_step : callable
            Called with the number of objects after each part.

        Returns
        -------
        Account
            Of objects, records, observations, arcs and labels.

        Raises
        ------
        DatasetError
            If the folder holds another set.
        MissingDependencyError
            Without pyarrow (extra ``data``), or without the extra ``nbody`` if that is asked for.
        """
        settings = {
            "command": "neodys",
            "source": client.portal.url(""),
            "orbits": self.orbits,
            "dynamics": self.dynamics,
            "gate_arcsec": self.gate if math.isfinite(self.gate) else None,
            "group_by": self.group_by,
            "n_objects_asked": len(self.designations),
            "files_sha256": self._fingerprint(client),
        }
        everything = _catalogue_at_hand(client) if self.orbits == "catalogue" else None
        with ArcWriter(folder, settings=settings, overwrite=overwrite) as writer:
            for number, names in enumerate(_parts(self.designations)):
                if number >= writer.n_parts:
                    writer.write(*self._part(client, names, everything))
                on_step(len(names))
        return writer.account

    def _fingerprint(self, client: NeodysClient) -> str:
        """Checksum of all that the set is made of: it is not gone on with after a renewal."""
        digest = hashlib.sha256()
        keys = [job.key for job in self.jobs(client)]
        if self.orbits == "catalogue":
            keys.append(client.portal.catalogue)
        for key in keys:
            entry = client.store.get(key)
            digest.update(f"{key} {entry.sha256 if entry else ''}\n".encode())
        return digest.hexdigest()

    def _part(
        self, client: NeodysClient, names: Sequence[str], everything: Catalogue | None
    ) -> tuple[ArcTable, Account]:
        """Labelled arcs of some objects.

        What the portal sent for an object counts as that object's, whatever name stands inside: a
        number, a principal or an older designation. Should it be another's, the gate stops it.
        """
        dropped: dict[str, int] = {}
        tables, orbits = [], []
        for name in names:
            try:
                orbit = None if everything else self._orbit(client, name)
                tables.append(_observations(client, name))
            except _DroppedError as error:
                dropped[str(error)] = dropped.get(str(error), 0) + 1
                continue
            if orbit is not None:
                orbits.append(orbit)
        arcs, account = form_arcs(tables, group_by=self.group_by) if tables else _nothing()
        catalogue = everything or catalogue_of(orbits)
        labelled, labels = label_arcs(arcs, catalogue, dynamics=self.dynamics, gate=self.gate)
        objects = RecordCount(len(names), len(tables), dropped)
        return labelled, Account({"objects": objects, **account.counts, "labels": labels})

    def _orbit(self, client: NeodysClient, name: str) -> OrbitRecord:
        job = client.orbit_files([name], epoch="present" if self.orbits == "present" else "middle")
        path = _path(client, job[0].key, NO_ORBIT)
        try:
            return replace(read_orbit(path), designation=spelled(name))
        except NeoRangingError as error:
            raise _DroppedError("orbit file that cannot be read") from error


class _DroppedError(Exception):
    """Why an object is not in the set."""


def _parts(names: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(names), OBJECTS_PER_PART):
        yield names[start : start + OBJECTS_PER_PART]


def _nothing() -> tuple[ArcTable, Account]:
    return ArcTable.empty(), Account()


def _path(client: NeodysClient, key: str, what: str) -> Path:
    entry = client.store.get(key)
    if entry is None or entry.status is not Status.OK:
        raise _DroppedError(f"{what}: {entry.status if entry else 'never fetched'}")
    return client.store.path(key)


def _observations(client: NeodysClient, name: str) -> QTable:
    """Observations of an object, under the name by which the portal lists it."""
    path = _path(client, client.observation_files([name])[0].key, NO_FILE)
    try:
        table = read_rwo(path)
    except NeoRangingError as error:
        raise _DroppedError("observation file that cannot be read") from error
    table["designation"] = np.full(len(table), spelled(name))
    return table


def _catalogue_at_hand(client: NeodysClient) -> Catalogue:
    return catalogue_of(client.catalogue())


def catalogue_of(orbits: QTable | Sequence[OrbitRecord]) -> Catalogue:
    """Columns of orbits read from files of the portal.

    Parameters
    ----------
    orbits : QTable or sequence of OrbitRecord
        From `neoranging.lab.archive.oef.read_catalogue` or `neoranging.lab.archive.oef.read_orbit`.

    Returns
    -------
    Catalogue
        Epochs on the scale TDB; what the portal does not give is missing there too.
    """
    from astropy.time import Time

    names = ("a", "ecc", "inc", "raan", "argp", "M", "H", "G")
    if isinstance(orbits, Sequence):
        values = {name: [getattr(orbit, name) for orbit in orbits] for name in names}
        epochs = Time([o.epoch.mjd for o in orbits], format="mjd", scale="tt")
        designation = np.array([orbit.designation for orbit in orbits], dtype=np.str_)
    else:
        values = {name: orbits[name] for name in names}
        epochs = orbits["epoch"]
        designation = np.array(orbits["designation"], dtype=np.str_)
    n = len(designation)
    angle = {name: u.Quantity(values[name], u.deg).to_value(u.rad) for name in names[2:6]}
    ecc = u.Quantity(values["ecc"], u.one).to_value(u.one)
    unknown = np.full(n, -1)
    return Catalogue(
        designation=designation,
        principal_designation=designation,
        epoch_mjd_tdb=np.asarray(epochs.tdb.mjd),
        q_au=u.Quantity(values["a"], u.au).to_value(u.au) * (1.0 - ecc),
        ecc=ecc,
        inc_rad=angle["inc"],
        raan_rad=angle["raan"],
        argp_rad=angle["argp"],
        mean_anomaly_rad=angle["M"],
        H_mag=np.asarray(values["H"], dtype=float),
        G=np.asarray(values["G"], dtype=float),
        U=unknown.astype(np.int8),
        n_obs=unknown.astype(np.int32),
        n_opp=unknown.astype(np.int32),
        arc_d=np.full(n, np.nan),
    )
