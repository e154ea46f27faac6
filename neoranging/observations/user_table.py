"""Observation tables of any table of a user, in memory or in a file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from astropy import units as u
from astropy.table import QTable

from neoranging.exceptions import ObservationFormatError
from neoranging.observations.ades.fields import Fields, read_place
from neoranging.observations.ades.scan import AdesRecords
from neoranging.observations.cells import numbers, texts, unit_of
from neoranging.observations.containers import (
    Container,
    file_format,
    from_bytes,
    from_memory,
)
from neoranging.observations.epochs import Epochs, read_epochs
from neoranging.observations.field_names import FIELDS, SCALES, Field, Naming, name_columns
from neoranging.observations.mpc_codes import CATALOG_CODES
from neoranging.observations.report import Note, ReadReport, Reason
from neoranging.observations.source import read_source
from neoranging.observations.stations import check_stations, station_codes, station_notes
from neoranging.observations.table import ObservationColumns, observation_table
from neoranging.observations.uncertainty import ZERO_WEIGHT, outside_limits, sigma_columns
from neoranging.observations.utc import utc_days
from neoranging.records import Rejections, many
from neoranging.typing import BoolArray, FloatArray, IntArray, StrArray

NEEDED: Final = ("obstime", "ra", "dec", "station")
AB_ZERO: Final = 31.4
"""AB magnitude of a flux of 1 nJy."""

RUBIN: Final = "X05"

_REJECTED: Final = ("0", "false", "f", "no", "n")

_NOT_OPTICAL: Final[Mapping[Reason, tuple[str, ...]]] = {
    Reason.REPLACED: ("X", "x"),
    Reason.RADAR: ("R", "r", "Q", "q"),
    Reason.SPACE_WITHOUT_POSITION: ("S", "s"),
    Reason.ROVING_WITHOUT_POSITION: ("V", "v"),
    Reason.OFFSET: ("O",),
}
"""Codes of column 15 of the 80-column format that tell of something else than a position."""


def read_table(
    source: str | os.PathLike[str] | bytes,
    form: str | None = None,
    *,
    scale: str | None = None,
    station: str | None = None,
    default_sigma: Any = None,
    named_only: bool = False,
) -> QTable:
    """Read observations from a file that holds a table.

    Parameters
    ----------
    source : path-like or bytes
        Plain or compressed (``.gz``, ``.xz``...).
    form : str, optional
        One of `neoranging.observations.formats.TABLE_FORMATS`; recognised when left out.
    scale, station, default_sigma, named_only
        See `user_table`.

    Returns
    -------
    QTable
        See `user_table`.

    Raises
    ------
    ObservationFormatError
        If it is no such table.
    OSError
        If it cannot be read.
    """
    content, name = read_source(source)
    form = form or file_format(content, name)
    if not form:
        raise ObservationFormatError("no table of observations: no line names its columns")
    return user_table(
        from_bytes(content, form, name),
        scale=scale,
        station=station,
        default_sigma=default_sigma,
        named_only=named_only,
    )


def user_table(
    source: Any,
    *,
    scale: str | None = None,
    station: str | None = None,
    default_sigma: Any = None,
    named_only: bool = False,
) -> QTable:
    """Observation table of a table with plain columns.

    Parameters
    ----------
    source : Container, Table, DataFrame, structured array, mapping or sequence of mappings
        Columns by the names of `neoranging.observations.field_names`. Numbers without a unit have
        that of the documentation: degrees, and arcseconds for errors (with cos(dec)).
    scale : {"utc", "tai", "tt", "tdb"}, optional
        Time scale of numbers, datetimes and text, unless the name of their column says it.
    station : str, optional
        MPC code of all rows of a table without a column of stations.
    default_sigma : None, float, Quantity or mapping
        Error of positions that carry none, as of the readers of files.
    named_only : bool
        Set rows without a designation aside, and refuse a table without designations.

    Returns
    -------
    QTable
        Observation table with ``tracklet``, ``trkSub`` and ``selected`` besides. Rows without time
        or position are set aside in ``meta["report"]``.

    Raises
    ------
    ObservationFormatError
        If columns are missing, clash, or hold what cannot be meant.
    """
    container = source if isinstance(source, Container) else from_memory(source)
    if scale not in (None, *SCALES):
        raise ObservationFormatError(
            f"scale must be one of {', '.join(SCALES)}, or left out, got {scale!r}"
        )
    columns = _of_mixins(container.columns)
    with_unit = [name for name, values in columns.items() if unit_of(values) is not None]
    naming = name_columns(list(columns), with_unit)
    for name in naming.fields:
        if np.ndim(columns[name]) != 1 and not naming.fields[name].column.startswith("observer_"):
            raise ObservationFormatError(
                f"the column {name} must hold one value a row, got an array of shape "
                f"{np.shape(columns[name])}"
            )
    needed = [name for name in NEEDED if name != "station" or not station]
    _require(naming, list(columns), ["designation", *needed] if named_only else needed)
    report = getattr(source, "meta", {}).get("report") if hasattr(source, "meta") else None
    reading = _Reading(columns, naming, container, default_sigma)
    if named_only:
        unnamed = reading.texts("designation") == ""
        reading.rejections.reject(unnamed, Reason.MALFORMED, "no designation")
    return reading.table(scale, station, report)


def _of_mixins(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Columns with coordinates and pairs of days and nanoseconds taken apart or together."""
    result: dict[str, Any] = {}
    for name, values in columns.items():
        if hasattr(values, "icrs") and not ({"ra", "dec"} & set(columns)):
            result |= {"ra": values.icrs.ra, "dec": values.icrs.dec}
        elif name.endswith(".days") and f"{name[:-5]}.nanos" in columns:  # of adam_core
            days, _ = numbers(name, values, "")
            nanos, _ = numbers(name, columns[f"{name[:-5]}.nanos"], "")
            result[name[:-5]] = days + nanos / 86_400e9
        else:
            result[name] = values
    return result


def _require(naming: Naming, present: list[str], needed: list[str]) -> None:
    if naming.clashes:
        raise ObservationFormatError("; ".join(naming.clashes))
    missing = [name for name in needed if name not in naming]
    if not missing:
        return
    hints = [
        f"; {remark}"
        for remark in naming.remarks
        if "misspelt" in remark or any(name in remark for name in missing)
    ]
    advice = "rename its columns" + "".join(hints)
    if missing == ["station"]:
        code = RUBIN if naming.family.startswith("Rubin") else "G96"
        advice += f'; if all rows are of one station, give station="{code}" (its MPC code)'
    raise ObservationFormatError(
        f"the table lacks the column(s) {', '.join(missing)}; it needs at least "
        f"{', '.join(needed)} and has {', '.join(map(str, present)) or 'no columns'}: {advice}"
    )


class _Reading:
    """Columns of one table on their way to observations."""

    def __init__(
        self, columns: Mapping[str, Any], naming: Naming, container: Container, default_sigma: Any
    ) -> None:
        self.columns = columns
        self.naming = naming
        self.container = container
        self.default_sigma = default_sigma
        self.n = len(next(iter(columns.values())))
        self.line = self._lines()
        self.rejections = Rejections(self.n)
        self.notes = [Note(0, remark) for remark in naming.remarks]

    def table(self, scale: str | None, station: str | None, before: Any) -> QTable:
        """Observation table; ``before`` is the account of an earlier reading."""
        epochs = self._epochs(scale)
        day, fraction = utc_days(epochs.time)
        ra, dec = (self._numbers(name, sexagesimal=True) for name in ("ra", "dec"))
        self.rejections.reject(~epochs.ok, Reason.MALFORMED, "no time")
        own = [self._numbers(name) for name in ("sigma_ra", "sigma_dec")]
        from_file = self.container.source is not None
        if from_file:  # else they are accounted for by tracklet, when these are formed
            for ok, what in (
                (np.isfinite(ra), "no right ascension"),
                (np.isfinite(dec), "no declination"),
                (~(np.abs(dec) > 90.0 * (1.0 + 1e-12)), "declination beyond a pole"),
                (~outside_limits(own[0]), "sigma_ra beyond all measure"),
                (~outside_limits(own[1]), "sigma_dec beyond all measure"),
            ):
                self.rejections.reject(~ok, Reason.MALFORMED, what)
            own = [np.where(one == 0.0, np.nan, one) for one in own]  # not stated, as in ADES
        codes = self._stations(station)
        place = self._place()
        self._screen(place)
        used = self.rejections.usable
        if from_file:
            unknown = check_stations(codes, place["kind"], self.rejections)
            used = self.rejections.usable
            self.notes += station_notes(codes, self.line, unknown & used & (codes != ""))
        columns: dict[str, Any] = {
            "designation": self.texts("designation"),
            "mjd_day": day,
            "mjd_fraction": fraction,
            "ra": ra % 360.0,
            "dec": dec,
            "station": codes,
            "line": self.line,
            "mag": self._magnitudes(),
            "band": self.texts("band"),
            "note2": self.texts("note2"),
            "program": self.texts("program"),
            "catalog": self.texts("catalog"),
            **place,
        }
        columns |= self._sigmas(own, columns, dec)
        extra = {
            "tracklet": self.texts("tracklet"),
            "trkSub": self.texts("trkSub"),
            "selected": self._selected(),
        }
        report = ReadReport.of(
            self.rejections,
            self.line,
            self._shown,
            self.notes,
            source=self.container.source or "",
        )
        if isinstance(before, ReadReport) and not report.set_aside and not report.notes:
            report = before
        return observation_table(
            ObservationColumns(
                **{name: column[used] for name, column in columns.items()},
                extra={name: column[used] for name, column in extra.items()},
            ),
            report,
        )

    # Columns ------------------------------------------------------------------------------------

    def _name(self, column: str) -> str | None:
        names = self.naming.columns.get(column)
        return names[0] if names else None

    def _field(self, column: str) -> Field:
        return self.naming.fields[self.naming.columns[column][0]]

    def texts(self, column: str) -> StrArray:
        """Text of a column; each row from the first of several that has some."""
        text = np.full(self.n, "")
        for name in self.naming.columns.get(column, ()):
            own = texts(self.columns[name])
            if name.lower() == "ssobjectid":  # 0 is Rubin's for none
                own = np.where(own == "0", "", own)
            text = np.where(text == "", own, text)
        return text

    def _numbers(self, column: str, unit: str = "", sexagesimal: bool = False) -> FloatArray:
        """Numbers of a column in the unit of our documentation, NaN where absent."""
        name = self._name(column)
        if name is None:
            return np.full(self.n, np.nan)
        ours = unit or FIELDS[column].unit
        by_name = self._field(column).unit
        values = self.columns[name]
        own = unit_of(values)
        result, bad = numbers(name, values, ours if own is not None else by_name, sexagesimal)
        if own is None and by_name not in (ours, "?"):
            result = u.Quantity(result, by_name).to_value(ours)
        if bad:
            self.notes.append(
                Note(0, f"{many(bad, 'cell')} of {name} hold no number and are taken as absent")
            )
        return result

    def _lines(self) -> IntArray:
        if "line" in self.columns:
            line, _ = numbers("line", self.columns["line"], "")
            if np.isfinite(line).all():
                return line.astype(np.int64)
        return np.arange(self.n, dtype=np.int64) + self.container.first_line

    def _epochs(self, scale: str | None) -> Epochs:
        name = self._name("obstime")
        assert name is not None  # _require has seen to it
        exposure = self._numbers("exposure_time", "s") if "exposure_time" in self.naming else None
        epochs = read_epochs(name, self.columns[name], self._field("obstime"), scale, exposure)
        self.notes += [Note(0, remark) for remark in epochs.remarks]
        return epochs

    def _stations(self, station: str | None) -> StrArray:
        codes = self.texts("station") if "station" in self.naming else np.full(self.n, station)
        return station_codes(codes)

    def _selected(self) -> BoolArray:
        return ~np.isin(np.strings.lower(self.texts("selected")), _REJECTED)

    def _magnitudes(self) -> FloatArray:
        name = self._name("mag")
        if name is None:
            return np.full(self.n, np.nan)
        if self._field("mag").unit != "nJy":
            return self._numbers("mag")
        flux, _ = numbers(name, self.columns[name], "nJy")
        bright = flux > 0.0
        return np.where(bright, AB_ZERO - 2.5 * np.log10(np.where(bright, flux, 1.0)), np.nan)

    def _sigmas(
        self, own: list[FloatArray], columns: Mapping[str, Any], dec: FloatArray
    ) -> dict[str, Any]:
        """Errors of both coordinates: the observer's ``own`` where given, else of the station."""
        if "sigma_ra" in self.naming and not self._field("sigma_ra").cos_dec:
            own = [own[0] * np.cos(np.radians(dec)), own[1]]
        stated = ~(np.isnan(own[0]) | np.isnan(own[1]))
        none = np.zeros(self.n)
        catalog = columns["catalog"]
        letters = np.array([CATALOG_CODES.get(name, name) for name in catalog.tolist()], dtype=str)
        default = sigma_columns(
            self.default_sigma,
            station=columns["station"],
            note2=columns["note2"],
            catalog=letters if self.n else catalog,
            year=2000.0 + (columns["mjd_day"] - 51_544.5) / 365.25,
            resolution=(none, none),
        )
        sigma = [
            np.where(one == ZERO_WEIGHT, np.inf, np.where(np.isnan(one), other, one))
            for one, other in zip(own, default, strict=True)
        ]
        source = np.where(stated, "file", "default")
        return {"sigma_ra": sigma[0], "sigma_dec": sigma[1], "sigma_source": source}

    def _place(self) -> dict[str, Any]:
        """Kind of the observer and the place of a moving one."""
        if "sys" in self.naming:
            named = {name: self.texts(name).tolist() for name in ("sys", "ctr", *_AXES)}
            place = read_place(Fields(AdesRecords(named, self.line.tolist())), self.rejections)
            return {
                "kind": place.kind,
                "observer_itrf": place.itrf,
                "observer_gcrs": place.gcrs,
            }
        itrf, gcrs = (self._vectors(name) for name in ("observer_itrf", "observer_gcrs"))
        kind = self.texts("kind")
        implied = np.select(
            [np.isfinite(gcrs[:, 0]), np.isfinite(itrf[:, 0])], ["space", "roving"], "ground"
        )
        return {
            "kind": np.where(kind == "", implied, kind),
            "observer_itrf": itrf,
            "observer_gcrs": gcrs,
        }

    def _vectors(self, column: str) -> FloatArray:
        """Column of places, (N, 3) in the unit of our documentation."""
        name = self._name(column)
        if name is None:
            return np.full((self.n, 3), np.nan)
        values = self.columns[name]
        if np.ndim(values) != 2 or np.shape(values)[1] != 3:
            raise ObservationFormatError(
                f"the column {name} must hold three coordinates a row, got {np.shape(values)}"
            )
        parts = [numbers(name, values[:, i], FIELDS[column].unit)[0] for i in range(3)]
        return np.stack(parts, axis=1)

    def _screen(self, place: Mapping[str, Any]) -> None:
        """Set aside what the code of column 15 says is no position of its own."""
        note2 = self.texts("note2")
        placed = np.isfinite(place["observer_gcrs"][:, 0]) | np.isfinite(
            place["observer_itrf"][:, 0]
        )
        for reason, codes in _NOT_OPTICAL.items():
            self.rejections.reject(np.isin(note2, codes) & ~placed, reason, "by note2")

    def _shown(self, row: int) -> str:
        columns = {name: self.columns[name] for name in self.naming.fields}
        cells = {name: values for name, values in columns.items() if np.ndim(values) == 1}
        return ", ".join(
            f"{name} {getattr(values, 'iloc', values)[row]}" for name, values in cells.items()
        )


_AXES: Final = ("pos1", "pos2", "pos3")
