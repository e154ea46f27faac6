"""Orbits of many objects as columns: the near-Earth objects in the package, or the user's table.

Elements are heliocentric and osculating, referred to the ecliptic and equinox of J2000.0. Those in
the package are facts of the IAU Minor Planet Center (its file ``nea_extended``, February 2026),
put into ``data/catalogue/near_earth_objects.npz`` by ``docs/tools/make_catalogue.py``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from neoranging.constants import GM_SUN, MJD_JD
from neoranging.core.columns import take
from neoranging.core.elements import elements_to_state
from neoranging.core.geometry import ecliptic_to_equatorial
from neoranging.core.kepler import true_anomaly
from neoranging.exceptions import ObservationFormatError
from neoranging.typing import AnyArray, CodeArray, FloatArray, IntArray, StrArray

if TYPE_CHECKING:
    import pandas as pd


CATALOGUE_FILE: Final = Path(__file__).parents[1] / "data" / "catalogue" / "near_earth_objects.npz"

DECIMALS: Final[Mapping[str, int]] = {
    "a_au": 7,
    "ecc": 7,
    **dict.fromkeys(("inc_deg", "raan_deg", "argp_deg", "mean_anomaly_deg"), 5),
    "epoch_mjd_tdb": 0,
    "H_mag": 2,
    "G": 2,
    "arc_d": 0,
}
"""Decimals of the columns of the Minor Planet Center. The file holds whole numbers in units of the
last one: a quarter of the size, and divided by a power of ten they are the float64 nearest to the
printed number."""

MISSING: Final = -1
"""Whole number in the file, and in columns of whole numbers, that stands for "not given"."""

_ALIASES: Final[Mapping[str, tuple[str, ...]]] = {
    "designation": ("desig", "object", "pdes"),
    "principal_designation": ("principal_desig",),
    "a_au": ("a",),
    "q_au": ("q",),
    "ecc": ("e",),
    "inc_deg": ("i_deg", "inc", "i"),
    "raan_deg": ("Omega_deg", "node_deg", "raan", "Omega", "node", "om"),
    "argp_deg": ("omega_deg", "peri_deg", "argp", "omega", "peri", "w"),
    "mean_anomaly_deg": ("M_deg", "M", "ma"),
    "epoch_mjd_tdb": ("epoch_mjd",),
    "epoch_jd_tdb": ("epoch_jd", "epoch"),
    "H_mag": ("H",),
    "n_obs": ("num_obs",),
    "n_opp": ("num_opps",),
    "arc_d": ("arc_days",),
    "G": (),
    "U": (),
}
"""Other names under which a table may hold a column: those of the Minor Planet Center's files and
of JPL's Small-Body Database."""


@dataclass(frozen=True, eq=False, repr=False)
class Catalogue:
    """Orbits of N objects; immutable columns of length N.

    Attributes
    ----------
    designation, principal_designation : ndarray of str
        Unpacked: the number if there is one, and the provisional designation that stands for all
        others of the object.
    epoch_mjd_tdb : ndarray
        Epoch of osculation.
    q_au, ecc, inc_rad, raan_rad, argp_rad, mean_anomaly_rad : ndarray
        Elements, ecliptic J2000.0. NaN where the table has none: such orbits predict nothing.
    H_mag, G : ndarray
        Absolute magnitude and slope parameter; NaN where not given.
    U : ndarray of int8
        Uncertainty parameter of the Minor Planet Center, 0 (best) to 9; -1 where it is not given or
        no figure.
    n_obs, n_opp : ndarray of int32
        Observations and oppositions; -1 where not given.
    arc_d : ndarray
        Observed arc [d] of most objects of a single opposition; NaN for all others.
    """

    designation: StrArray
    principal_designation: StrArray
    epoch_mjd_tdb: FloatArray
    q_au: FloatArray
    ecc: FloatArray
    inc_rad: FloatArray
    raan_rad: FloatArray
    argp_rad: FloatArray
    mean_anomaly_rad: FloatArray
    H_mag: FloatArray
    G: FloatArray
    U: CodeArray
    n_obs: npt.NDArray[np.int32]
    n_opp: npt.NDArray[np.int32]
    arc_d: FloatArray

    def __len__(self) -> int:
        return len(self.designation)

    def __repr__(self) -> str:
        return f"<Catalogue: {len(self)} orbits of {len(self._rows)} objects>"

    @property
    def a_au(self) -> FloatArray:
        """Semimajor axis [au]; negative on hyperbolas, infinite on parabolas."""
        with np.errstate(divide="ignore"):
            return self.q_au / (1.0 - self.ecc)

    def take(self, index: AnyArray) -> Catalogue:
        """Orbits ``index`` (numbers or a mask), in that order."""
        return take(self, index)

    def states(self, epoch_mjd_tdb: FloatArray | None = None) -> tuple[FloatArray, FloatArray]:
        """Heliocentric states, ICRS axes.

        Parameters
        ----------
        epoch_mjd_tdb : ndarray, shape (N,), optional
            Epochs to which ellipses are followed by two-body motion; those of osculation by
            default.

        Returns
        -------
        r, v : ndarray, shape (N, 3)
            [au], [au/d]; NaN where an element is.
        """
        mean = self.mean_anomaly_rad
        if epoch_mjd_tdb is not None:
            motion = np.sqrt(GM_SUN / self.a_au**3)
            mean = mean + motion * (epoch_mjd_tdb - self.epoch_mjd_tdb)
        nu = true_anomaly(mean, self.ecc)
        r, v = elements_to_state(
            self.q_au, self.ecc, self.inc_rad, self.raan_rad, self.argp_rad, nu
        )
        return ecliptic_to_equatorial(r), ecliptic_to_equatorial(v)

    def find(self, designation: npt.ArrayLike, epoch_mjd_tdb: npt.ArrayLike = np.nan) -> IntArray:
        """Rows of objects; -1 for objects that are not in the table.

        Parameters
        ----------
        designation : array_like of str, shape (M,)
            Number or principal designation, with or without the blank ("2024 YR4", "2024YR4").
        epoch_mjd_tdb : array_like, shape (M,) or ()
            Where the table has several orbits of an object, the one osculating nearest to this
            epoch is meant; the first of them without it.
        """
        names, owner = np.unique(np.asarray(designation, dtype=np.str_), return_inverse=True)
        owner = owner.reshape(np.shape(designation))
        epoch = np.broadcast_to(np.asarray(epoch_mjd_tdb, dtype=np.float64), owner.shape)
        candidates = [self._rows.get(_key(name), ()) for name in names.tolist()]
        row = np.array([rows[0] if rows else -1 for rows in candidates], dtype=np.int64)[owner]
        for k in [k for k, rows in enumerate(candidates) if len(rows) > 1]:
            rows, of_k = np.array(candidates[k]), owner == k
            distance = np.abs(epoch[of_k][:, None] - self.epoch_mjd_tdb[rows])
            row[of_k] = rows[np.argmin(np.nan_to_num(distance), axis=1)]
        return row

    @cached_property
    def _rows(self) -> dict[str, tuple[int, ...]]:
        """Rows of each name. A name borne by two objects belongs to the one numbered so."""
        rows: dict[str, tuple[int, ...]] = {}
        for k, name in enumerate(map(_key, self.designation.tolist())):
            rows[name] = (*rows.get(name, ()), k)
        numbered = rows.copy()
        for k, name in enumerate(map(_key, self.principal_designation.tolist())):
            if name and name not in numbered:
                rows[name] = (*rows.get(name, ()), k)
        return rows


def _key(name: str) -> str:
    return name.replace(" ", "")


def load_catalogue(path: str | os.PathLike[str] = CATALOGUE_FILE) -> Catalogue:
    """Load the near-Earth objects that come with the package.

    Parameters
    ----------
    path : path-like
        Another file of the same make.

    Returns
    -------
    Catalogue
        40,874 objects; elements at MJD 61000.0 for all but 61 that struck the Earth or were lost.

    Notes
    -----
    Single-opposition objects are three of four: fine as a population, but as truth for real
    observations take those of small ``U`` only.

    Examples
    --------
    >>> catalogue = load_catalogue()
    >>> catalogue
    <Catalogue: 40874 orbits of 44547 objects>
    """
    with np.load(path, allow_pickle=False) as file:
        columns: dict[str, Any] = {name: file[name] for name in file.files}
    for name, decimals in DECIMALS.items():
        units = columns[name]
        columns[name] = np.where(units == MISSING, np.nan, units / 10.0**decimals)
    for name in ("designation", "principal_designation"):
        columns[name] = columns[name].astype(np.str_)
    return catalogue_from_columns(columns)


def read_orbits(path: str | os.PathLike[str]) -> Catalogue:
    """Read a table of orbital elements.

    Parameters
    ----------
    path : path-like
        Comma-separated text with a line of column names, plain or compressed (``.gz``, ``.xz``...).
        Needed are ``designation``; ``a_au`` or ``q_au``; ``ecc``; ``inc_deg``, ``raan_deg``,
        ``argp_deg``, ``mean_anomaly_deg``; ``epoch_mjd_tdb`` or ``epoch_jd_tdb``. The names of the
        Minor Planet Center's files (``e``, ``i_deg``, ``Omega_deg``...) and of JPL's Small-Body
        Database (``om``, ``w``, ``ma``, ``epoch``...) do as well. Optional are
        ``principal_designation``, ``H_mag``, ``G``, ``U``, ``n_obs``, ``n_opp``, ``arc_d``. An
        object may have several orbits, at different epochs: each arc is judged by the nearest.

    Returns
    -------
    Catalogue
        All rows of the table, in order.

    Raises
    ------
    ObservationFormatError
        If a column is missing or holds what is no number.
    OSError
        If the file cannot be read.
    """
    import pandas as pd

    try:
        frame = pd.read_csv(path, dtype=str, keep_default_na=False, skipinitialspace=True)
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        raise ObservationFormatError(f"{path} is no comma-separated table: {error}") from error
    return catalogue_from_columns(_columns(frame, str(path)))


def _columns(frame: pd.DataFrame, source: str) -> dict[str, Any]:
    """Columns under our names, numbers as float64, NaN where a cell is empty."""
    columns: dict[str, Any] = {}
    for ours, others in _ALIASES.items():
        present = next((name for name in (ours, *others) if name in frame.columns), None)
        if present is None:
            continue
        text = frame[present].str.strip().to_numpy(dtype=np.str_)
        if ours in {"designation", "principal_designation", "U"}:
            columns[ours] = text
            continue
        try:
            columns[ours] = np.where(text == "", "nan", text).astype(np.float64)
        except ValueError as error:
            raise ObservationFormatError(
                f"the column {ours} of {source} must hold numbers or nothing: {error}"
            ) from error
    if "epoch_mjd_tdb" not in columns and "epoch_jd_tdb" in columns:
        columns["epoch_mjd_tdb"] = columns["epoch_jd_tdb"] - MJD_JD
    needed = ("designation", "ecc", "inc_deg", "raan_deg", "argp_deg", "mean_anomaly_deg")
    missing = [name for name in (*needed, "epoch_mjd_tdb") if name not in columns]
    if "a_au" not in columns and "q_au" not in columns:
        missing.append("a_au or q_au")
    if missing:
        raise ObservationFormatError(
            f"{source} lacks the column(s) {', '.join(missing)}; a table of orbits needs a "
            "designation, six elements (au, degrees, ecliptic J2000) and their epoch"
        )
    return columns


def catalogue_from_columns(columns: Mapping[str, Any]) -> Catalogue:
    """Catalogue of columns under the names that `read_orbits` needs; others may be missing."""
    name, ecc = columns["designation"], columns["ecc"]
    missing = np.full(len(name), np.nan)
    U = columns.get("U", np.full(len(name), str(MISSING)))
    if U.dtype.kind == "U" and len(U):
        # the Minor Planet Center also gives letters, for orbits of assumed elements
        figure = np.char.partition(U, ".")[:, 0]
        U = np.where(np.char.isdigit(figure), figure, str(MISSING))
    n_obs, n_opp = (columns.get(key, missing) for key in ("n_obs", "n_opp"))
    return Catalogue(
        designation=name,
        principal_designation=columns.get("principal_designation", name),
        epoch_mjd_tdb=columns["epoch_mjd_tdb"],
        q_au=columns["a_au"] * (1.0 - ecc) if "a_au" in columns else columns["q_au"],
        ecc=ecc,
        inc_rad=np.radians(columns["inc_deg"]),
        raan_rad=np.radians(columns["raan_deg"]),
        argp_rad=np.radians(columns["argp_deg"]),
        mean_anomaly_rad=np.radians(columns["mean_anomaly_deg"]),
        H_mag=columns.get("H_mag", missing),
        G=columns.get("G", missing),
        U=U.astype(np.int8),
        n_obs=np.where(np.isfinite(n_obs), n_obs, MISSING).astype(np.int32),
        n_opp=np.where(np.isfinite(n_opp), n_opp, MISSING).astype(np.int32),
        arc_d=columns.get("arc_d", missing),
    )
