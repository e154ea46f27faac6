"""The observation table: one layout of columns for all formats."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from astropy import units as u
from astropy.io.misc.yaml import AstropyDumper
from astropy.table import QTable
from astropy.time import Time

from neoranging.observations.report import ReadReport
from neoranging.typing import AnyArray, BoolArray, FloatArray, IntArray, StrArray

# A table with its report can be stored as ECSV; there the report becomes its printed text.
AstropyDumper.add_representer(ReadReport, lambda dumper, report: dumper.represent_str(str(report)))


@dataclass(frozen=True, kw_only=True)
class ObservationColumns:
    """Plain columns of N usable observations, as a reader leaves them.

    Columns left out are filled: no magnitude, no band, no codes, ground-based.

    Parameters
    ----------
    designation, station : ndarray of str, shape (N,)
        Unpacked designation; MPC observatory code.
    mjd_day, mjd_fraction : ndarray, shape (N,)
        Mid exposure, UTC [d]: whole modified Julian date and the rest, apart to keep all digits.
    ra, dec : ndarray, shape (N,)
        ICRS [deg].
    sigma_ra, sigma_dec : ndarray, shape (N,)
        1-sigma [arcsec]; right ascension includes cos(dec).
    sigma_source : ndarray of str, shape (N,)
        ``"default"`` or ``"file"``.
    line : ndarray of int, shape (N,)
        Line of the file, counted from 1.
    mag : ndarray, shape (N,)
        Magnitude, NaN where absent.
    band, note2, program, catalog : ndarray of str, shape (N,)
        As in the source, ``""`` where absent.
    kind : ndarray of str, shape (N,)
        ``"ground"``, ``"roving"`` or ``"space"``.
    observer_itrf : ndarray, shape (N, 3)
        Earth-fixed place of roving observers [m], NaN for the others.
    observer_gcrs : ndarray, shape (N, 3)
        Geocentric place of spacecraft on ICRS axes [km], NaN for the others.
    discovery : ndarray of bool, shape (N,)
        True for the discovery observation.
    extra : mapping of str to column
        Further columns of the format, in order.
    """

    designation: StrArray
    mjd_day: AnyArray
    mjd_fraction: FloatArray
    ra: FloatArray
    dec: FloatArray
    sigma_ra: FloatArray
    sigma_dec: FloatArray
    sigma_source: StrArray
    station: StrArray
    line: IntArray
    mag: FloatArray | None = None
    band: StrArray | None = None
    kind: StrArray | None = None
    observer_itrf: FloatArray | None = None
    observer_gcrs: FloatArray | None = None
    note2: StrArray | None = None
    program: StrArray | None = None
    catalog: StrArray | None = None
    discovery: BoolArray | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.line)


def observation_table(columns: ObservationColumns, report: ReadReport) -> QTable:
    """Dress plain columns with units and time scale.

    Parameters
    ----------
    columns : ObservationColumns
        The N observations in use.
    report : ReadReport
        The account of the reading; kept as ``table.meta["report"]``.

    Returns
    -------
    QTable
        One row per observation; the columns of the class docs with ``obstime`` as `Time` (UTC),
        ``ra`` and ``dec`` in degrees and ICRS, sigmas in arcseconds, then the extra columns.
    """
    n = len(columns)
    nowhere = np.full((n, 3), np.nan)
    data: dict[str, Any] = {
        "designation": columns.designation,
        "obstime": Time(
            columns.mjd_day.astype(float), columns.mjd_fraction, format="mjd", scale="utc"
        ),
        "ra": u.Quantity(columns.ra, u.deg, copy=False),
        "dec": u.Quantity(columns.dec, u.deg, copy=False),
        "sigma_ra": u.Quantity(columns.sigma_ra, u.arcsec, copy=False),
        "sigma_dec": u.Quantity(columns.sigma_dec, u.arcsec, copy=False),
        "sigma_source": columns.sigma_source,
        "mag": np.full(n, np.nan) if columns.mag is None else columns.mag,
        "band": _or_fill(columns.band, n),
        "station": columns.station,
        "kind": _or_fill(columns.kind, n, "ground"),
        "observer_itrf": u.Quantity(_or(columns.observer_itrf, nowhere), u.m),
        "observer_gcrs": u.Quantity(_or(columns.observer_gcrs, nowhere), u.km),
        "note2": _or_fill(columns.note2, n),
        "program": _or_fill(columns.program, n),
        "catalog": _or_fill(columns.catalog, n),
        "discovery": np.zeros(n, dtype=bool) if columns.discovery is None else columns.discovery,
        "line": columns.line,
        **columns.extra,
    }
    return QTable(data, copy=False, meta={"report": report})


def _or(column: FloatArray | None, fallback: FloatArray) -> FloatArray:
    return fallback if column is None else column


def _or_fill(column: StrArray | None, n: int, text: str = "") -> StrArray:
    return np.full(n, text, dtype=f"U{max(len(text), 1)}") if column is None else column
