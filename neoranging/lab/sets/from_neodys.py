"""From the files of NEODyS-2 to a set of labelled arcs, with the account of every object."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
from astropy import units as u
from astropy.time import Time

from neoranging.exceptions import DatasetError, NeoRangingError
from neoranging.lab.archive.client import NeodysClient
from neoranging.lab.archive.manifest import Status
from neoranging.lab.archive.oef import KEPLERIAN, OrbitRecord, read_orbit
from neoranging.lab.archive.portal import Epoch, RemoteFile
from neoranging.lab.sets.arcs import form_arcs
from neoranging.lab.sets.schema import ArcTable
from neoranging.lab.sets.store import ArcWriter
from neoranging.lab.sets.truth import DYNAMICS, GATE_ARCSEC, label_arcs
from neoranging.observations.designation import spaced
from neoranging.observations.rwo.read import read_rwo
from neoranging.orbits.catalogue import Catalogue, catalogue_from_columns
from neoranging.records import Account, RecordCount

if TYPE_CHECKING:
    from astropy.table import QTable


Orbits = Literal["middle", "present", "catalogue"]

ORBITS: Final = ("middle", "present", "catalogue")
"""Where orbits come from: a file per object with the epoch in the middle of its observed arc or
near the present, or the one catalogue of all objects near the present."""

OBJECTS_PER_PART: Final = 500


@dataclass(frozen=True, kw_only=True)
class NeodysSet:
    """Recipe of a set from the files of the portal.

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
    gate: float = GATE_ARCSEC
    group_by: str | Collection[str] = ("night", "station")

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

    def files(self, client: NeodysClient) -> list[RemoteFile]:
        """Files that the set is made of: observations and orbit of each object."""
        observations = client.observation_files(self.designations)
        if self.orbits == "catalogue":
            return [*observations, client.portal.catalogue_file()]
        orbits = client.orbit_files(self.designations, epoch=self.orbits)
        return [file for pair in zip(observations, orbits, strict=True) for file in pair]

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
            Whose `NeodysClient.download` fetched the `files` before.
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
        digest = hashlib.sha256()
        for file in self.files(client):
            record = client.store.records.get(file.key)
            digest.update(f"{file.key} {record.sha256 if record else ''}\n".encode())
        settings = {
            "command": "neodys",
            "source": client.portal.url(""),
            "orbits": self.orbits,
            "dynamics": self.dynamics,
            "gate_arcsec": self.gate if math.isfinite(self.gate) else None,
            "group_by": self.group_by,
            "n_objects_asked": len(self.designations),
            "files_sha256": digest.hexdigest(),  # a set is not gone on with after a renewal
        }
        everything = catalogue_of(client.catalogue()) if self.orbits == "catalogue" else None
        starts = range(0, len(self.designations), OBJECTS_PER_PART)
        with ArcWriter(folder, settings=settings, overwrite=overwrite) as writer:
            for number, start in enumerate(starts):
                names = self.designations[start : start + OBJECTS_PER_PART]
                if number >= writer.n_parts:
                    writer.write(*self._part(client, names, everything))
                on_step(len(names))
        return writer.account

    def _part(
        self, client: NeodysClient, names: Sequence[str], everything: Catalogue | None
    ) -> tuple[ArcTable, Account]:
        """Labelled arcs of some objects.

        What the portal sent for an object counts as that object's, whatever name stands inside: a
        number, a principal or an older designation. Should it be another's, the gate stops it.
        """
        dropped: Counter[str] = Counter()
        tables, orbits = [], []
        epoch: Epoch = "present" if self.orbits == "present" else "middle"
        for name in names:
            try:
                if everything is None:
                    file = client.portal.orbit_file(name, epoch=epoch)
                    orbit = _read(client, file, read_orbit, "orbit")
                file = client.portal.observation_file(name)
                table = _read(client, file, read_rwo, "observation")
            except _DroppedError as error:
                dropped[str(error)] += 1
                continue
            if everything is None:
                orbits.append(replace(orbit, designation=spaced(name)))
            table["designation"] = np.full(len(table), spaced(name))
            tables.append(table)
        arcs, account = (
            form_arcs(tables, group_by=self.group_by) if tables else (ArcTable.empty(), Account())
        )
        catalogue = everything or catalogue_of(orbits)
        labelled, labels = label_arcs(arcs, catalogue, dynamics=self.dynamics, gate=self.gate)
        objects = RecordCount(len(names), len(tables), dropped)
        return labelled, Account({"objects": objects, **account.counts, "labels": labels})


class _DroppedError(Exception):
    """Reason why an object is not in the set."""


def _read(client: NeodysClient, file: RemoteFile, reader: Callable[[Path], Any], kind: str) -> Any:
    """Content of a file at hand."""
    record = client.store.records.get(file.key)
    if record is None or record.status is not Status.OK:
        raise _DroppedError(f"no {kind} file: {record.status if record else 'never fetched'}")
    try:
        return reader(client.store.path(file.key))
    except NeoRangingError as error:
        raise _DroppedError(f"{kind} file that cannot be read") from error


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
    if isinstance(orbits, Sequence):
        columns = {name: [getattr(o, name) for o in orbits] for name in (*KEPLERIAN, "H", "G")}
        epochs = Time([o.epoch.mjd for o in orbits], format="mjd", scale="tt")
        designation = [o.designation for o in orbits]
    else:
        columns, epochs, designation = orbits, orbits["epoch"], orbits["designation"]
    angles = {"inc_deg": "inc", "raan_deg": "raan", "argp_deg": "argp", "mean_anomaly_deg": "M"}
    return catalogue_from_columns(
        {
            "designation": np.array(designation, dtype=np.str_),
            "epoch_mjd_tdb": np.asarray(epochs.tdb.mjd),
            "a_au": u.Quantity(columns["a"], u.au).value,
            "ecc": u.Quantity(columns["ecc"], u.one).value,
            **{name: u.Quantity(columns[short], u.deg).value for name, short in angles.items()},
            "H_mag": np.asarray(columns["H"], dtype=float),
            "G": np.asarray(columns["G"], dtype=float),
        }
    )
