"""The columns of a set of arcs, and the table that holds them in memory.

A set has one row per arc. Its numbers are plain arrays with the unit in the name of the column;
what was observed at each of the N epochs of an arc stands in ragged columns, one value after the
other, as in `neoranging.core.arcs.Arcs`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from neoranging.exceptions import DatasetError
from neoranging.typing import AnyArray, IntArray

SPLITS: Final = ("train", "val", "test", "unseen")
"""Values of the column ``split`` of a divided set; it is empty before."""


class Column(NamedTuple):
    """What a column holds."""

    dtype: str
    """Of the array in memory, ``"str"`` for text."""
    unit: str
    meaning: str
    fill: Any = None
    """Value where nobody knows better; None for what has to be given."""
    per_observation: bool = False


def _angle(meaning: str, unit: str = "rad", fill: Any = None) -> Column:
    return Column("float64", unit, meaning, fill)


def _number(meaning: str, unit: str = "") -> Column:
    return Column("float64", unit, meaning, np.nan)


def _observed(meaning: str, unit: str) -> Column:
    return Column("float64", unit, meaning, per_observation=True)


COLUMNS: Final[Mapping[str, Column]] = {
    "arc_id": Column("int64", "", "number of the arc in its set, from 0", -1),
    "designation": Column("str", "", "object"),
    "night": Column(
        "int32", "", "night from local noon to noon: floor(MJD UTC + east / 360 - 1/2)"
    ),
    "station": Column("str", "", "MPC code of the observer; empty where an arc has several"),
    "n_obs": Column("int16", "", "observations of the arc"),
    "t_mjd_tdb": _observed("epochs of reception, in order", "d"),
    "ra_rad": _observed("right ascensions as observed, ICRS", "rad"),
    "dec_rad": _observed("declinations as observed, ICRS", "rad"),
    "sigma_ra_rad": _observed("standard deviations in right ascension, with cos(dec)", "rad"),
    "sigma_dec_rad": _observed("standard deviations in declination", "rad"),
    "stations": Column("str", "", "MPC codes; stored where an arc has several", "", True),
    "mag": Column("float32", "mag", "median apparent magnitude", np.nan),
    "band": Column("str", "", "band of that magnitude", ""),
    "t1_mjd_tdb": _angle("epoch of the first observation of the triplet", "d"),
    "t2_mjd_tdb": _angle("epoch of the middle one: the reference epoch", "d"),
    "t3_mjd_tdb": _angle("epoch of the last one", "d"),
    "ra1_rad": _angle("right ascension at t1"),
    "dec1_rad": _angle("declination at t1"),
    "ra2_rad": _angle("right ascension at t2"),
    "dec2_rad": _angle("declination at t2"),
    "ra3_rad": _angle("right ascension at t3"),
    "dec3_rad": _angle("declination at t3"),
    "ra_rate_rad_d": _angle("three-point rate at t2, without cos(dec)", "rad/d"),
    "dec_rate_rad_d": _angle("three-point rate at t2", "rad/d"),
    "proper_motion_rad_d": _angle("speed on the sky at t2", "rad/d"),
    "span_d": _angle("t3 - t1", "d"),
    "rho_geo_au": _number("true light path to the centre of the Earth, received at t2", "au"),
    "rho_dot_geo_au_d": _number("its derivative by the time of reception", "au/d"),
    "rho_topo_au": _number("true light path to the observer, received at t2", "au"),
    "rho_dot_topo_au_d": _number("its derivative by the time of reception", "au/d"),
    "truth_residual_arcsec": _number(
        "largest distance of predicted and observed direction over the arc", "arcsec"
    ),
    "truth_dynamics": Column("str", "", 'what gave the truth: "kepler", "nbody", "simulated"', ""),
    "q_au": _number("perihelion distance of the catalogue orbit, osculating near t2", "au"),
    "ecc": _number("eccentricity of the catalogue orbit"),
    "inc_rad": _number("inclination to the ecliptic J2000", "rad"),
    "raan_rad": _number("longitude of the ascending node", "rad"),
    "argp_rad": _number("argument of perihelion", "rad"),
    "H_mag": _number("absolute magnitude", "mag"),
    "U": Column("int8", "", "uncertainty parameter of the catalogue orbit, -1 unknown", -1),
    "pseudo_admissible": Column(
        "bool", "", "observed attributable with true geocentric range lies in its region", False
    ),
    "split": Column("str", "", '"train", "val", "test", "unseen", or empty', ""),
    "is_close": Column("bool", "", "an orbit resampled to pass near the Earth", False),
    "is_simulated": Column("bool", "", "observed by nobody", False),
}
"""Every column of a set, in order of storage."""


def _dtype(column: Column) -> Any:
    return np.str_ if column.dtype == "str" else np.dtype(column.dtype)


@dataclass(frozen=True, repr=False)
class ArcTable:
    """M arcs with n observations, as columns.

    Made by `make`, `concatenate`, or by reading a stored set; immutable by convention, every method
    returns a new table.

    Attributes
    ----------
    offsets : ndarray of int64, shape (M + 1,)
        Arc ``k`` owns entries ``offsets[k]:offsets[k + 1]`` of the ragged columns.
    columns : mapping of str to ndarray
        The columns at hand: shape (M,), or (n,) for those by observation. ``table[name]`` also
        serves the others of the schema that have a fill value.
    """

    offsets: IntArray
    columns: Mapping[str, AnyArray]

    @classmethod
    def make(cls, offsets: npt.ArrayLike, **columns: npt.ArrayLike) -> ArcTable:
        """Table of columns, checked against the schema and turned into its types.

        Parameters
        ----------
        offsets : array_like of int, shape (M + 1,)
        **columns
            By name; scalars are spread over the arcs.

        Raises
        ------
        DatasetError
            If a name is not in ``COLUMNS``, or a column has another length.
        """
        edges = np.asarray(offsets, dtype=np.int64)
        made = cls(edges, {})
        return made.with_columns(**{"n_obs": np.diff(edges), **columns})

    @classmethod
    def empty(cls) -> ArcTable:
        """Table of no arcs, with every column."""
        return cls.make([0], **{name: [] for name in COLUMNS})

    @classmethod
    def concatenate(cls, tables: Iterable[ArcTable]) -> ArcTable:
        """Tables one after the other; a column that one of them lacks is filled there."""
        parts = list(tables)
        if not parts:
            return cls.empty()
        names = dict.fromkeys(name for part in parts for name in part.columns)
        counts = np.concatenate([part.counts for part in parts])
        joined = {name: np.concatenate([part[name] for part in parts]) for name in names}
        return cls(np.concatenate([[0], np.cumsum(counts)]), joined)

    def with_columns(self, **columns: npt.ArrayLike) -> ArcTable:
        """Table with more, or other, columns.

        Raises
        ------
        DatasetError
            As `make`.
        """
        checked = {name: self._checked(name, values) for name, values in columns.items()}
        return ArcTable(self.offsets, {**self.columns, **checked})

    def _checked(self, name: str, values: npt.ArrayLike) -> AnyArray:
        if name not in COLUMNS:
            raise DatasetError(f"no column {name!r} in the schema of arcs; see COLUMNS")
        given, dtype = np.asarray(values), _dtype(COLUMNS[name])
        array = given.astype(dtype, copy=False)
        if np.issubdtype(dtype, np.integer) and not np.array_equal(array, given):
            raise DatasetError(f"column {name!r} holds values that are no {COLUMNS[name].dtype}")
        length = self._length(name)
        if array.ndim == 0:
            array = np.full(length, array)
        if array.shape != (length,):
            raise DatasetError(f"column {name!r} needs the shape ({length},), got {array.shape}")
        return array

    def _length(self, name: str) -> int:
        return int(self.offsets[-1]) if COLUMNS[name].per_observation else len(self)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __contains__(self, name: str) -> bool:
        return name in self.columns

    def __getitem__(self, name: str) -> AnyArray:
        """One column; filled where it was never given.

        Raises
        ------
        DatasetError
            If it is not at hand and has no fill value.
        """
        if name in self.columns:
            return self.columns[name]
        if name == "stations":
            return np.repeat(self["station"], self.counts)
        if name not in COLUMNS or COLUMNS[name].fill is None:
            raise DatasetError(
                f"no column {name!r} in this table of arcs; it has {', '.join(self.columns)}"
            )
        column = COLUMNS[name]
        return np.full(self._length(name), column.fill, dtype=_dtype(column))

    @cached_property
    def counts(self) -> IntArray:
        """Observations of each arc, shape (M,)."""
        return np.diff(self.offsets)

    def take(self, rows: slice | npt.ArrayLike) -> ArcTable:
        """Some arcs: a slice, indices in any order, or a mask."""
        index = np.arange(len(self))
        if isinstance(rows, slice):
            index = index[rows]
        else:
            wanted = np.asarray(rows)
            index = index[wanted if wanted.size else []]
        counts = self.counts[index]
        offsets = np.concatenate([[0], np.cumsum(counts)])
        ragged = np.arange(offsets[-1]) + np.repeat(self.offsets[index] - offsets[:-1], counts)
        taken = {
            name: values[ragged if COLUMNS[name].per_observation else index]
            for name, values in self.columns.items()
        }
        return ArcTable(offsets, taken)

    def to_frame(self) -> Any:
        """Columns by arc as a `pandas.DataFrame`, without those by observation."""
        import pandas as pd

        whole = (name for name in COLUMNS if name in self and not COLUMNS[name].per_observation)
        return pd.DataFrame({name: self[name] for name in whole})

    def __repr__(self) -> str:
        objects = len(np.unique(self["designation"])) if "designation" in self else 0
        return f"<ArcTable: {len(self)} arcs of {objects} objects, {self.offsets[-1]} observations>"
