"""Observations of any table of a user, in memory or in a file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from astropy import units as u

from neoranging.constants import MJD_JD
from neoranging.exceptions import ObservationFormatError
from neoranging.observations.ades.fields import Fields, read_place
from neoranging.observations.ades.scan import AdesRecords
from neoranging.observations.cells import numbers, read_epochs, texts, translated, unit_of
from neoranging.observations.columns import Columns, Observations
from neoranging.observations.containers import Container, from_memory
from neoranging.observations.field_names import FIELDS, SCALES, Field, Naming, name_columns
from neoranging.observations.mpc_codes import CATALOG_CODES
from neoranging.observations.report import Note, ReadReport, Reason
from neoranging.observations.stations import check_stations, station_codes, station_notes
from neoranging.observations.uncertainty import ZERO_WEIGHT, outside_limits, sigma_columns
from neoranging.records import Rejections, many
from neoranging.typing import BoolArray, FloatArray, StrArray

NEEDED: Final = ("obstime", "ra", "dec", "station")
AB_ZERO: Final = 31.4
"""AB magnitude of a flux of 1 nJy."""

RUBIN: Final = "X05"

_REJECTED: Final = ("0", "false", "f", "no", "n")
_AXES: Final = ("pos1", "pos2", "pos3")

_NOT_OPTICAL: Final[Mapping[Reason, tuple[str, ...]]] = {
    Reason.REPLACED: ("X", "x"),
    Reason.RADAR: ("R", "r", "Q", "q"),
    Reason.SPACE_WITHOUT_POSITION: ("S", "s"),
    Reason.ROVING_WITHOUT_POSITION: ("V", "v"),
    Reason.OFFSET: ("O",),
}
"""Codes of column 15 of the 80-column format that tell of something else than a position."""


def user_table(
    source: Any,
    *,
    scale: str | None = None,
    station: str | None = None,
    default_sigma: Any = None,
) -> Observations:
    """Observations of a table with plain columns.

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

    Returns
    -------
    Observations
        With ``tracklet``, ``trkSub`` and ``selected`` besides. Rows without time or position are
        set aside in ``meta["report"]``.

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
    for name, field in naming.fields.items():
        if np.ndim(columns[name]) != 1 and not field.column.startswith("observer_"):
            raise ObservationFormatError(
                f"the column {name} must hold one value a row, got an array of shape "
                f"{np.shape(columns[name])}"
            )
    _require(naming, list(columns), [name for name in NEEDED if name != "station" or not station])
    table = _UserTable(columns, naming, container)
    # a report of an earlier reading stands if this one finds nothing to add
    before = getattr(source, "meta", {}).get("report") if hasattr(source, "meta") else None
    return table.observations(scale, station, default_sigma, before)


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


class _UserTable:
    """Columns of one table on their way to observations, with what is said against rows."""

    def __init__(self, columns: Mapping[str, Any], naming: Naming, container: Container) -> None:
        self.columns = columns
        self.naming = naming
        self.source = container.source
        self.n = len(next(iter(columns.values())))
        self.line = np.arange(self.n, dtype=np.int64) + container.first_line
        if "line" in columns:
            line, _ = numbers("line", columns["line"], "")
            self.line = line.astype(np.int64) if np.isfinite(line).all() else self.line
        self.rejections = Rejections(self.n)
        self.notes = [Note(0, remark) for remark in naming.remarks]

    def observations(
        self, scale: str | None, station: str | None, default_sigma: Any, before: Any
    ) -> Observations:
        """Usable rows; ``before`` is the report of an earlier reading."""
        jd1, jd2 = self._julian_date(scale)
        ra, dec = (self._numbers(name, sexagesimal=True) for name in ("ra", "dec"))
        own = [self._numbers(name) for name in ("sigma_ra", "sigma_dec")]
        if self.source is not None:  # rows in memory are judged when tracklets are formed
            for bad, defect in (
                (~np.isfinite(ra), "no right ascension"),
                (~np.isfinite(dec), "no declination"),
                (np.abs(dec) > 90.0 * (1.0 + 1e-12), "declination beyond a pole"),
                (outside_limits(own[0]), "sigma_ra beyond all measure"),
                (outside_limits(own[1]), "sigma_dec beyond all measure"),
            ):
                self.rejections.reject(bad, Reason.MALFORMED, defect)
            own = [np.where(one == 0.0, np.nan, one) for one in own]  # not stated, as in ADES
        codes = station_codes(
            self.texts("station") if "station" in self.naming else np.full(self.n, station)
        )
        mag = self._magnitudes()
        kind, itrf, gcrs = self._place()
        note2, catalog = self.texts("note2"), self.texts("catalog")
        placed = np.isfinite(gcrs[:, 0]) | np.isfinite(itrf[:, 0])
        for reason, not_optical in _NOT_OPTICAL.items():
            self.rejections.reject(np.isin(note2, not_optical) & ~placed, reason, "by note2")
        if self.source is not None:
            unknown = check_stations(codes, kind, self.rejections)
            noted = unknown & self.rejections.usable & (codes != "")
            self.notes += station_notes(codes, self.line, noted)
        year = 2000.0 + (np.floor(jd1 - MJD_JD + jd2) - 51_544.5) / 365.25
        sigma, stated = self._sigmas(own, dec, default_sigma, codes, note2, catalog, year)
        selected = ~np.isin(np.strings.lower(self.texts("selected")), _REJECTED)
        used = self.rejections.usable
        report = ReadReport.of(
            self.rejections, self.line, self._row_text, self.notes, source=self.source or ""
        )
        if isinstance(before, ReadReport) and not report.set_aside and not report.notes:
            report = before
        band = self.texts("band")
        columns = Columns(jd1, jd2, ra % 360.0, dec, sigma, codes, itrf, gcrs, mag, band, note2)
        return Observations(
            columns=columns.take(used),
            designation=self.texts("designation")[used],
            kind=kind[used],
            extra={
                "sigma_source": np.where(stated, "file", "default")[used],
                "program": self.texts("program")[used],
                "catalog": catalog[used],
                "discovery": np.zeros(int(used.sum()), dtype=bool),
                "line": self.line[used],
                "tracklet": self.texts("tracklet")[used],
                "trkSub": self.texts("trkSub")[used],
                "selected": selected[used],
            },
            meta={"report": report},
        )

    def _julian_date(self, scale: str | None) -> tuple[FloatArray, FloatArray]:
        name = self.naming.columns["obstime"][0]
        exposure = self._numbers("exposure_time", "s") if "exposure_time" in self.naming else None
        field = self.naming.fields[name]
        epochs = read_epochs(name, self.columns[name], field, scale, exposure)
        self.notes += [Note(0, remark) for remark in epochs.remarks]
        self.rejections.reject(~epochs.ok, Reason.MALFORMED, "no time")
        return epochs.time.jd1, epochs.time.jd2

    def _sigmas(
        self,
        own: list[FloatArray],
        dec: FloatArray,
        default_sigma: Any,
        station: StrArray,
        note2: StrArray,
        catalog: StrArray,
        year: FloatArray,
    ) -> tuple[FloatArray, BoolArray]:
        """Errors, the observer's ``own`` or else of the station, and True where they are stated."""
        if "sigma_ra" in self.naming and not self._field("sigma_ra").cos_dec:
            own = [own[0] * np.cos(np.radians(dec)), own[1]]
        letters = translated(catalog, lambda name: CATALOG_CODES.get(name, name))
        default = sigma_columns(
            default_sigma,
            station=station,
            note2=note2,
            catalog=letters,
            year=year,
            resolution=(np.zeros(self.n), np.zeros(self.n)),
        )
        sigma = [
            np.where(one == ZERO_WEIGHT, np.inf, np.where(np.isnan(one), other, one))
            for one, other in zip(own, default, strict=True)
        ]
        return np.stack(sigma, axis=1), ~(np.isnan(own[0]) | np.isnan(own[1]))

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
        if column not in self.naming:
            return np.full(self.n, np.nan)
        name = self.naming.columns[column][0]
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

    def _magnitudes(self) -> FloatArray:
        if "mag" not in self.naming or self._field("mag").unit != "nJy":
            return self._numbers("mag")
        name = self.naming.columns["mag"][0]
        flux, _ = numbers(name, self.columns[name], "nJy")
        bright = flux > 0.0
        return np.where(bright, AB_ZERO - 2.5 * np.log10(np.where(bright, flux, 1.0)), np.nan)

    def _place(self) -> tuple[StrArray, FloatArray, FloatArray]:
        """Kind of the observer, and the Earth-fixed or geocentric place of a moving one."""
        if "sys" in self.naming:  # as in ADES
            named = {name: self.texts(name).tolist() for name in ("sys", "ctr", *_AXES)}
            place = read_place(Fields(AdesRecords(named, self.line.tolist())), self.rejections)
            return place["kind"], place["observer_itrf"], place["observer_gcrs"]
        itrf, gcrs = (self._vectors(name) for name in ("observer_itrf", "observer_gcrs"))
        in_space, roving = np.isfinite(gcrs[:, 0]), np.isfinite(itrf[:, 0])
        implied = np.select([in_space, roving], ["space", "roving"], "ground")
        kind = self.texts("kind")
        return np.where(kind == "", implied, kind), itrf, gcrs

    def _vectors(self, column: str) -> FloatArray:
        """Column of places, (N, 3) in the unit of our documentation."""
        if column not in self.naming:
            return np.full((self.n, 3), np.nan)
        name = self.naming.columns[column][0]
        values = self.columns[name]
        if np.ndim(values) != 2 or np.shape(values)[1] != 3:
            raise ObservationFormatError(
                f"the column {name} must hold three coordinates a row, got {np.shape(values)}"
            )
        parts = [numbers(name, values[:, i], FIELDS[column].unit)[0] for i in range(3)]
        return np.stack(parts, axis=1)

    def _row_text(self, row: int) -> str:
        """Cells of a row as the report quotes them."""
        columns = {name: self.columns[name] for name in self.naming.fields}
        return ", ".join(
            f"{name} {getattr(values, 'iloc', values)[row]}"
            for name, values in columns.items()
            if np.ndim(values) == 1
        )
