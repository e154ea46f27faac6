"""Observations from a plain table: comma-separated text with named columns."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from neoranging.constants import MJD_JD
from neoranging.core.geometry import FloatArray
from neoranging.exceptions import ObservationFormatError
from neoranging.observations.report import ReadReport, Reason
from neoranging.observations.table import ObservationColumns, observation_table
from neoranging.observations.uncertainty import default_sigma
from neoranging.observations.verdicts import Verdicts, check_stations, station_notes

if TYPE_CHECKING:
    from astropy.table import QTable

__all__ = ["read_observation_table"]

Strings = npt.NDArray[np.str_]

_ALIASES: Final[Mapping[str, tuple[str, ...]]] = {
    "designation": ("desig", "object", "provID"),
    "mjd_utc": ("mjd", "obstime_mjd"),
    "jd_utc": ("jd",),
    "obstime_utc": ("obstime", "obsTime", "time_utc"),
    "ra_deg": ("ra",),
    "dec_deg": ("dec",),
    "station": ("stn", "obscode", "observatory"),
    "sigma_ra_arcsec": ("sigma_ra", "rmsRA"),
    "sigma_dec_arcsec": ("sigma_dec", "rmsDec"),
    "selected": ("selected_flag",),
    "mag": (),
    "band": (),
    "program": ("prog",),
    "catalog": ("astCat",),
    "note2": (),
}
"""Columns, and other names for them; the last are those of ADES where they mean the same."""

_NEEDED: Final = ("designation", "ra_deg", "dec_deg", "station")
_TIMES: Final = ("mjd_utc", "jd_utc", "obstime_utc")

_ZERO_WEIGHT: Final = 999.0
"""OrbFit's sigma for an observation that is not to be used [arcsec]."""

_NOT_OPTICAL: Final[Mapping[Reason, tuple[str, ...]]] = {
    Reason.REPLACED: ("X", "x"),
    Reason.RADAR: ("R", "r", "Q", "q"),
    Reason.SPACE_WITHOUT_POSITION: ("S", "s"),
    Reason.ROVING_WITHOUT_POSITION: ("V", "v"),
    Reason.OFFSET: ("O",),
}
"""Codes of column 15 of the 80-column format that tell of something else than a position."""


def read_observation_table(path: str | os.PathLike[str]) -> QTable:
    """Read observations from comma-separated text.

    Parameters
    ----------
    path : path-like
        Plain or compressed (``.gz``, ``.xz``...), with a line of column names. Needed are
        ``designation``, ``ra_deg``, ``dec_deg`` (ICRS), ``station`` (MPC code), and one of
        ``mjd_utc``, ``jd_utc`` or ``obstime_utc`` (ISO 8601). Optional are ``sigma_ra_arcsec``
        (with cos(dec)), ``sigma_dec_arcsec``, ``selected`` (0 or false: rejected from the orbit),
        ``mag``, ``band``, ``program``, ``catalog``, ``note2`` (as in the 80-column format).

    Returns
    -------
    QTable
        Observation table. Rows that are no optical position from the ground, or that lack a number,
        are set aside in ``meta["report"]``. Where a sigma is missing, the default of the station
        is used; 999 stands for no weight.

    Raises
    ------
    ObservationFormatError
        If it is no such table.
    OSError
        If it cannot be read.
    """
    import pandas as pd

    try:
        frame = pd.read_csv(path, dtype=str, keep_default_na=False, skipinitialspace=True)
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        raise ObservationFormatError(f"{path} is no comma-separated table: {error}") from error
    return _table(_text_columns(frame, str(path)), Path(path).name)


def _text_columns(frame: Any, source: str) -> dict[str, Strings]:
    """Columns under our names, as text; those that are absent are empty."""
    found = {
        ours: next((name for name in (ours, *others) if name in frame.columns), None)
        for ours, others in _ALIASES.items()
    }
    missing = [name for name in _NEEDED if found[name] is None]
    if not any(found[name] for name in _TIMES):
        missing.append(" or ".join(_TIMES))
    if missing:
        raise ObservationFormatError(
            f"{source} lacks the column(s) {', '.join(missing)}; it has {', '.join(frame.columns)}"
        )
    return {
        ours: np.full(len(frame), "")
        if name is None
        else frame[name].str.strip().to_numpy(dtype=np.str_)
        for ours, name in found.items()
    }


def _table(text: Mapping[str, Strings], source: str) -> QTable:
    n = len(text["station"])
    line = np.arange(2, n + 2)
    verdicts = Verdicts(n)
    mjd = _mjd(text)
    ra, dec, mag = (_numbers(text[name]) for name in ("ra_deg", "dec_deg", "mag"))
    for values, what in ((mjd, "time"), (ra, "right ascension"), (dec, "declination")):
        verdicts.reject(~np.isfinite(values), Reason.MALFORMED, f"no {what}")
    verdicts.reject(~(np.abs(dec) <= 90.0), Reason.MALFORMED, "declination beyond a pole")
    verdicts.reject(text["designation"] == "", Reason.MALFORMED, "no designation")
    for reason, codes in _NOT_OPTICAL.items():
        verdicts.reject(np.isin(text["note2"], codes), reason, "by note2")
    unknown = check_stations(text["station"], np.full(n, "ground"), verdicts)
    used = verdicts.usable
    entries = verdicts.set_aside(line, lambda row: _shown(text, row))
    notes = station_notes(text["station"], line, unknown & used)
    report = ReadReport(n, int(used.sum()), entries, tuple(notes), 1, source)
    sigma, given = _sigmas(text, mjd)
    day = np.floor(mjd[used])
    return observation_table(
        ObservationColumns(
            designation=text["designation"][used],
            mjd_day=day,
            mjd_fraction=mjd[used] - day,
            ra=ra[used] % 360.0,
            dec=dec[used],
            sigma_ra=sigma[0][used],
            sigma_dec=sigma[1][used],
            sigma_source=np.where(given, "file", "default")[used],
            station=text["station"][used],
            line=line[used],
            mag=mag[used],
            extra={"selected": ~np.isin(np.char.lower(text["selected"]), _REJECTED)[used]},
            band=text["band"][used],
            note2=text["note2"][used],
            program=text["program"][used],
            catalog=text["catalog"][used],
        ),
        report,
    )


_REJECTED: Final = ("0", "0.0", "false", "f", "no")


def _shown(text: Mapping[str, Strings], row: int) -> str:
    return ",".join(str(column[row]) for column in text.values() if column[row])


def _numbers(text: Strings) -> FloatArray:
    """Numbers; NaN where there is none."""
    import pandas as pd

    return np.asarray(pd.to_numeric(pd.Series(text), errors="coerce"), dtype=np.float64)


def _mjd(text: Mapping[str, Strings]) -> FloatArray:
    """UTC as modified Julian dates, from whichever column has it; NaN where none does."""
    from astropy.time import Time

    mjd = _numbers(text["mjd_utc"])
    mjd = np.where(np.isnan(mjd), _numbers(text["jd_utc"]) - MJD_JD, mjd)
    for row in np.flatnonzero(np.isnan(mjd) & (text["obstime_utc"] != "")).tolist():
        try:
            mjd[row] = Time(text["obstime_utc"][row].rstrip("Z"), scale="utc").mjd
        except ValueError:
            continue  # stays NaN, and is set aside as malformed
    return mjd


def _sigmas(text: Mapping[str, Strings], mjd: FloatArray) -> tuple[list[FloatArray], Any]:
    """Sigmas [arcsec] of both coordinates, and which rows bring their own."""
    own = [_numbers(text[name]) for name in ("sigma_ra_arcsec", "sigma_dec_arcsec")]
    given = np.isfinite(own[0]) & np.isfinite(own[1])
    year = 2000.0 + (np.nan_to_num(mjd, nan=51_544.5) - 51_544.5) / 365.25
    default = default_sigma(text["station"], text["note2"], text["catalog"], year)
    # without weight is what the forming of tracklets makes of a sigma that is not finite
    return [
        np.where(one >= _ZERO_WEIGHT, np.inf, np.where(given, one, default)) for one in own
    ], given
