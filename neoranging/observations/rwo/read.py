"""OrbFit and NEODyS ``.rwo`` files: observations with weights, biases and residuals.

Every record carries the accuracy of its fields, the a-priori sigma that the error model gives, the
bias of the star catalogue (not applied to the position), the residual of the orbit fit and whether
the fit used it.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from astropy import units as u
from astropy.table import QTable

from neoranging.exceptions import ObservationFormatError
from neoranging.observations.cells import translated
from neoranging.observations.columns import Observations
from neoranging.observations.designation import spaced
from neoranging.observations.fixed_width import field_strings, split_lines
from neoranging.observations.mpc_codes import divide_note1
from neoranging.observations.report import Note, ReadReport, Reason
from neoranging.observations.rwo.fields import parse_fields, parse_places
from neoranging.observations.rwo.layout import OBJECT_WIDTH, scan_rwo
from neoranging.observations.source import JSON_ADVICE, TextSource, is_json, read_text
from neoranging.observations.stations import check_stations, station_notes
from neoranging.observations.uncertainty import fill_sigmas, outside_limits
from neoranging.records import Rejections
from neoranging.typing import AnyArray

_COMMON: Final = (
    *("mjd_day", "mjd_fraction", "ra", "dec", "sigma_ra", "sigma_dec", "sigma_source"),
    *("station", "mag", "band", "kind", "observer_itrf", "observer_gcrs", "note2", "catalog"),
)
"""Common columns as they are parsed."""

_UNITS: Final = {
    "time_accuracy": u.day,
    "ra_accuracy": u.arcsec,
    "ra_bias": u.arcsec,
    "ra_residual": u.arcsec,
    "dec_accuracy": u.arcsec,
    "dec_bias": u.arcsec,
    "dec_residual": u.arcsec,
}
"""Further columns with a unit."""

_PLAIN: Final = (
    *("ra_forced", "dec_forced", "sigma_mag", "mag_residual", "mag_accuracy", "chi"),
    *("selected", "mag_selected"),
)
"""Further columns without a unit."""


def read_rwo(source: TextSource, *, default_sigma: Any = None) -> QTable:
    """Read an OrbFit ``.rwo`` file.

    Parameters
    ----------
    source : str, path-like, bytes or file object
        File or text of version 1, 2 or 3, also compressed; a body without header is measured.
    default_sigma : float, Quantity or mapping, optional
        Uncertainty for records whose RMS fields are blank or zero, see
        ``neoranging.observations.uncertainty.sigma_columns``.

    Returns
    -------
    QTable
        One row per optical observation. Beyond the common columns: ``time_accuracy`` [d],
        ``ra_accuracy``, ``ra_bias``, ``ra_residual`` and the same for ``dec`` [arcsec], with
        cos(dec) in those of right ascension as OrbFit has it; ``ra_forced``, ``dec_forced`` (the
        sigma was set by hand); ``sigma_mag``, ``mag_residual``, ``mag_accuracy`` [mag]; ``chi``;
        ``selected`` and ``mag_selected``, whether the fit of the orbit and of the magnitude used
        the record. Blank fields are NaN. ``meta`` holds the header under its own names
        (``version``, ``errmod``, ``RMSast``, ``RMSmag``) and the ``report``.

    Raises
    ------
    ObservationFormatError
        If the file is no ``.rwo`` file.

    Notes
    -----
    Rejected observations are kept, with ``selected`` False: choose with
    ``table[table["selected"]]``. A sigma of 999 arcsec marks zero weight. Catalogue biases are not
    applied. Times are taken as UTC throughout, also before 1960 when they were universal time.
    Positions of spacecraft are geocentric on the equatorial axes of J2000, taken as ICRS.
    Radar records are set aside.
    """
    return parse_rwo(source, default_sigma=default_sigma).to_table()


def parse_rwo(source: TextSource, *, default_sigma: Any = None) -> Observations:
    """Observations of an OrbFit ``.rwo`` file; see `read_rwo`."""
    content, name = read_text(source)
    if is_json(content):
        raise ObservationFormatError(JSON_ADVICE)
    lines = split_lines(content)
    header, unreadable_names, records = scan_rwo(lines)
    rejections = Rejections(len(records))
    columns = parse_fields(records.matrix) | parse_places(lines, records)
    rejections.reject(records.radar, Reason.RADAR)
    rejections.reject(records.orphan, Reason.ORPHAN_SECOND_LINE)
    rejections.reject(~records.optical, Reason.MALFORMED, "kind of record is none of O, S, R, V")
    _judge(columns, rejections)
    unknown = check_stations(columns["station"], columns["kind"], rejections)
    keep = rejections.usable
    columns = {key: column[keep] for key, column in columns.items()}
    line, unknown = records.line[keep], unknown[keep]
    notes = (
        *(Note(0, f"{key} of the header is no number") for key in unreadable_names),
        *(
            Note(row, "a field that is no number was taken as blank")
            for row in line[columns["is_unreadable"]].tolist()
        ),
        *station_notes(columns["station"], line, unknown),
    )
    report = ReadReport.of(
        rejections,
        records.line,
        records.text,
        notes,
        n_ignored_lines=len(lines.start) - records.n_lines,
        source=name,
    )
    meta = {"report": report, **header}
    if records.name.shape[1] > OBJECT_WIDTH:
        meta["object_width"] = records.name.shape[1]
    fill_sigmas(
        columns,
        default_sigma,
        year=columns["year"].astype(float),
        ra_unit=columns["ra_resolution"],
        dec_unit=columns["dec_resolution"],
    )
    program, column_14 = divide_note1(columns["program"], columns["station"])
    parsed = {
        **{name: columns[name] for name in _COMMON},
        "designation": translated(field_strings(records.name[keep]), spaced),
        "discovery": np.zeros(len(line), dtype=bool),
        "line": line,
        "program": program,
        **{name: u.Quantity(columns[name], unit, copy=False) for name, unit in _UNITS.items()},
        "notes": column_14,
        **{name: columns[name] for name in _PLAIN},
    }
    return Observations.from_reader(parsed, meta)


def _judge(columns: dict[str, AnyArray], rejections: Rejections) -> None:
    """Set aside the optical records whose fields cannot be read or mean nothing."""
    outside = outside_limits(columns["sigma_ra"]) | outside_limits(columns["sigma_dec"])
    for rows, reason, detail in (
        (np.isin(columns["note2"], ("X", "x")), Reason.REPLACED, "type of observation X"),
        (~columns["time_ok"], Reason.MALFORMED, "no valid date"),
        (~columns["sky_ok"], Reason.MALFORMED, "no valid right ascension, declination"),
        (columns["station"] == "", Reason.MALFORMED, "no station"),
        (outside, Reason.MALFORMED, "a sigma beyond all measure"),
    ):
        rejections.reject(rows, reason, detail)
    kind, space, roving = columns["kind"], columns["observer_gcrs"], columns["observer_itrf"]
    nowhere = ~np.isfinite(np.where((kind == "space")[:, None], space, roving)).all(axis=1)
    rejections.reject(nowhere & (kind == "space"), Reason.SPACE_WITHOUT_POSITION)
    rejections.reject(nowhere & (kind == "roving"), Reason.ROVING_WITHOUT_POSITION)
