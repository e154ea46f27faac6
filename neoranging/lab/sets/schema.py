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

from neoranging.core.columns import ragged_rows
from neoranging.exceptions import DatasetError
from neoranging.typing import AnyArray, IntArray

SPLITS: Final = ("train", "val", "test", "unseen")
"""Values of the column ``split`` of a divided set; it is empty before."""

TRUE_COLUMNS: Final[Mapping[str, tuple[str, str]]] = {
    "geocenter": ("rho_geo_au", "rho_dot_geo_au_d"),
    "topocenter": ("rho_topo_au", "rho_dot_topo_au_d"),
}
"""Columns of the true range and range-rate, by the origin that they count from."""


class Column(NamedTuple):
    """Type, unit and meaning of the values of a column."""

    dtype: str
    """Type of the array in memory, ``"str"`` for text."""

    unit: str
    """Unit of the values; empty for text, counts and ratios."""

    meaning: str
    """Description that is stored beside the values."""

    fill: Any = None
    """Value of arcs that have none, and of sets stored before the column was; None if a table must
    have the column."""

    per_observation: bool = False
    """Flag of a ragged column: a value for each observation, not for each arc."""


def _number(meaning: str, unit: str = "") -> Column:
    return Column("float64", unit, meaning, np.nan)


COLUMNS: Final[Mapping[str, Column]] = {
    "arc_id": Column("int64", "", "number of the arc in its set, from 0", -1),
    "designation": Column("str", "", "object"),
    "night": Column(
        "int32", "", "night from local noon to noon: floor(MJD UTC + east / 360 - 1/2)"
    ),
    "station": Column("str", "", "MPC code of the observer; empty where an arc has several"),
    "n_obs": Column("int16", "", "observations of the arc"),
    "t_mjd_tdb": Column("float64", "d", "epochs of reception, in order", None, True),
    "ra_rad": Column("float64", "rad", "right ascensions as observed, ICRS", None, True),
    "dec_rad": Column("float64", "rad", "declinations as observed, ICRS", None, True),
    "sigma_ra_rad": Column(
        "float64", "rad", "standard deviations in right ascension, with cos(dec)", None, True
    ),
    "sigma_dec_rad": Column("float64", "rad", "standard deviations in declination", None, True),
    "stations": Column("str", "", "MPC codes; stored where an arc has several", "", True),
    "mag": Column("float32", "mag", "median apparent magnitude", np.nan),
    "band": Column("str", "", "band of that magnitude", ""),
    "t1_mjd_tdb": Column("float64", "d", "epoch of the first observation of the triplet"),
    "t2_mjd_tdb": Column("float64", "d", "epoch of the middle one: the reference epoch"),
    "t3_mjd_tdb": Column("float64", "d", "epoch of the last one"),
    "ra1_rad": Column("float64", "rad", "right ascension at t1"),
    "dec1_rad": Column("float64", "rad", "declination at t1"),
    "ra2_rad": Column("float64", "rad", "right ascension at t2"),
    "dec2_rad": Column("float64", "rad", "declination at t2"),
    "ra3_rad": Column("float64", "rad", "right ascension at t3"),
    "dec3_rad": Column("float64", "rad", "declination at t3"),
    "ra_rate_rad_d": Column("float64", "rad/d", "three-point rate at t2, without cos(dec)"),
    "dec_rate_rad_d": Column("float64", "rad/d", "three-point rate at t2"),
    "proper_motion_rad_d": Column("float64", "rad/d", "speed on the sky at t2"),
    "span_d": Column("float64", "d", "t3 - t1"),
    "rho_geo_au": _number("true light path to the centre of the Earth, received at t2", "au"),
    "rho_dot_geo_au_d": _number("its derivative by the time of reception", "au/d"),
    "rho_topo_au": _number("true light path to the observer, received at t2", "au"),
    "rho_dot_topo_au_d": _number("its derivative by the time of reception", "au/d"),
    "truth_residual_arcsec": _number(
        "largest distance of predicted and observed direction over the arc", "arcsec"
    ),
    "truth_dynamics": Column(
        "str", "", 'motion of the truth: "kepler", "near-earth", "nbody"; empty unknown', ""
    ),
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


def _dtype(name: str) -> Any:
    """Type of the values of a column in memory."""
    return np.str_ if COLUMNS[name].dtype == "str" else np.dtype(COLUMNS[name].dtype)


@dataclass(frozen=True, repr=False)
class ArcTable:
    """M arcs with n observations, as columns; every method returns a new table.

    Attributes
    ----------
    offsets : ndarray of int64, shape (M + 1,)
        Arc ``k`` owns entries ``offsets[k]:offsets[k + 1]`` of the ragged columns.
    columns : mapping of str to ndarray
        Columns of shape (M,), or (n,) if they have a value by observation. ``table[name]`` also
        serves other columns of the schema that have a fill value.
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
        return cls(edges, {}).with_columns(**{"n_obs": np.diff(edges), **columns})

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
        columns = {name: np.concatenate([part[name] for part in parts]) for name in names}
        return cls(np.concatenate([[0], np.cumsum(counts)]), columns)

    def with_columns(self, **columns: npt.ArrayLike) -> ArcTable:
        """Table with more, or other, columns.

        Raises
        ------
        DatasetError
            As `make`.
        """
        checked = {}
        for name, column in columns.items():
            if name not in COLUMNS:
                raise DatasetError(f"no column {name!r} in the schema of arcs; see COLUMNS")
            values, dtype, length = np.asarray(column), _dtype(name), self._length(name)
            array = values.astype(dtype, copy=False)
            if np.issubdtype(dtype, np.integer) and not np.array_equal(array, values):
                raise DatasetError(f"column {name!r} holds values that are no {dtype}")
            if array.ndim == 0:
                array = np.full(length, array)
            if array.shape != (length,):
                raise DatasetError(
                    f"column {name!r} needs the shape ({length},), got {array.shape}"
                )
            checked[name] = array
        return ArcTable(self.offsets, {**self.columns, **checked})

    def _length(self, name: str) -> int:
        return int(self.offsets[-1]) if COLUMNS[name].per_observation else len(self)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __contains__(self, name: str) -> bool:
        return name in self.columns

    def __getitem__(self, name: str) -> AnyArray:
        """Values of a column, or its fill value for every arc.

        Raises
        ------
        DatasetError
            If the table has no such column, and it has no fill value.
        """
        if name in self.columns:
            return self.columns[name]
        if name == "stations":
            return np.repeat(self["station"], self.counts)
        if name not in COLUMNS or COLUMNS[name].fill is None:
            raise DatasetError(
                f"no column {name!r} in this table of arcs; it has {', '.join(self.columns)}"
            )
        return np.full(self._length(name), COLUMNS[name].fill, dtype=_dtype(name))

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
            selected = np.asarray(rows)
            index = index[selected if selected.size else []]
        counts = self.counts[index]
        offsets = np.concatenate([[0], np.cumsum(counts)])
        ragged = ragged_rows(self.offsets[index], counts)
        columns = {
            name: values[ragged if COLUMNS[name].per_observation else index]
            for name, values in self.columns.items()
        }
        return ArcTable(offsets, columns)

    def to_frame(self) -> Any:
        """Columns by arc as a `pandas.DataFrame`, without those by observation."""
        import pandas as pd

        by_arc = [name for name, column in COLUMNS.items() if not column.per_observation]
        return pd.DataFrame({name: self[name] for name in by_arc if name in self})

    def __repr__(self) -> str:
        objects = len(np.unique(self["designation"])) if "designation" in self else 0
        return f"<ArcTable: {len(self)} arcs of {objects} objects, {self.offsets[-1]} observations>"
