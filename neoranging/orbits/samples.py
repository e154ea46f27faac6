"""Orbits drawn from the posterior of a night."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from astropy import units as u
from astropy.table import QTable
from astropy.time import Time

from neoranging.display import html_table
from neoranging.orbits.elements import OrbitalElements
from neoranging.records import many
from neoranging.typing import FloatArray


@dataclass(frozen=True, eq=False, repr=False)
class OrbitSamples:
    """Orbits drawn from the posterior of one tracklet, shape (n,), or of M of them, (M, n).

    Each is a state with its own epoch, that of emission: what follows from the night follows by
    propagating ``r``, ``v`` and ``epoch`` at once. An index takes tracklets, or samples of one
    tracklet. Samples are NaN where a tracklet has no posterior.

    Attributes
    ----------
    range, range_rate : Quantity
        From the origin of the estimate, by time of reception.
    r, v : Quantity, shape (..., n, 3)
        Heliocentric position and velocity, ICRS axes.
    epoch : Time
        Epochs of emission, TDB.
    absolute_magnitude : Quantity
        H of the H-G system with G = 0.15, from the magnitude of the tracklet; NaN without one.
    weights : ndarray
        Probability of each sample, adding up to one over the samples of a tracklet: equal, unless
        they are replaced.
    """

    range: u.Quantity
    range_rate: u.Quantity
    r: u.Quantity
    v: u.Quantity
    epoch: Time
    absolute_magnitude: u.Quantity
    weights: FloatArray

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of every column but the vectors."""
        return self.range.shape

    @cached_property
    def elements(self) -> OrbitalElements:
        """Osculating elements, ecliptic J2000."""
        return OrbitalElements.from_state(self.r, self.v, self.epoch)

    @classmethod
    def _of_rows(cls, rows: Sequence[OrbitSamples]) -> OrbitSamples:
        """Samples of M tracklets from those of each, shape (1, n)."""
        columns = {
            name: np.concatenate([getattr(row, name) for row in rows])
            for name in (column.name for column in fields(cls))
            if name != "epoch"
        }
        epoch = np.concatenate([row.epoch.tdb.mjd for row in rows])
        return cls(epoch=Time(epoch, format="mjd", scale="tdb"), **columns)

    def __len__(self) -> int:
        return len(self.range)

    def __getitem__(self, item: Any) -> OrbitSamples:
        index = np.arange(self.range.size).reshape(self.shape)[item]
        flat = (-1,), (-1, 3)
        return OrbitSamples(
            **{
                name: getattr(self, name).reshape(flat[name in {"r", "v"}])[index]
                for name in (column.name for column in fields(self))
            }
        )

    def to_table(self) -> QTable:
        """One row per sample: the tracklet it is of, and all columns; a table of states.

        Columns: ``tracklet`` (index; 0 of one tracklet), ``epoch``, ``range``, ``range_rate``,
        ``position``, ``velocity``, ``absolute_magnitude`` and ``weight``.
        """
        owner = np.indices(self.shape)[0] if len(self.shape) > 1 else np.zeros(self.shape, int)
        vectors = (vector.reshape(-1, 3) for vector in (self.r, self.v))
        position, velocity = vectors
        return QTable(
            {
                "tracklet": owner.ravel(),
                "epoch": Time(self.epoch.mjd.ravel(), format="mjd", scale="tdb"),
                "range": self.range.ravel(),
                "range_rate": self.range_rate.ravel(),
                "position": position,
                "velocity": velocity,
                "absolute_magnitude": self.absolute_magnitude.ravel(),
                "weight": np.asarray(self.weights).ravel(),
            }
        )

    def __astropy_table__(self, cls: type, copy: bool, **kwargs: Any) -> Any:
        return cls(self.to_table(), copy=copy, **kwargs)

    def __repr__(self) -> str:
        if not self.shape:
            return f"<OrbitSamples: {self.elements!r}>"
        of = f" of each of {many(self.shape[0], 'tracklet')}" if len(self.shape) > 1 else ""
        return f"<OrbitSamples: {many(self.shape[-1], 'orbit')}{of}>"

    def _repr_html_(self) -> str:
        return html_table({"samples": repr(self)})
