"""``neoranging follow-up``: where the tracklets in files of observations will be on the sky."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from neoranging.cli.errors import EXIT_CODES
from neoranging.cli.listing import advice_on, deliver, texts
from neoranging.cli.options import (
    COUNT,
    Number,
    input_options_with,
    method_option,
    output_options,
    seed_option,
)
from neoranging.cli.pointing import (
    at_option,
    field_option,
    known_observatory,
    observer_option,
    posterior_estimator,
    require_in_ephemeris,
)
from neoranging.cli.reading import read_files
from neoranging.records import many
from neoranging.rows import track_rows
from neoranging.tables import text_table

if TYPE_CHECKING:
    from astropy.table import QTable, Row
    from astropy.time import Time
    from astropy.units import Quantity

    from neoranging.estimate import RangeEstimate
    from neoranging.followup import Ephemeris
    from neoranging.tracklet import TrackletSet
    from neoranging.typing import FloatArray

_NIGHT: Final = -18.0
"""Altitude of the Sun below which the night is dark [deg]."""


@click.command(epilog=EXIT_CODES)
@input_options_with("--observed-from")
@at_option
@observer_option
@field_option(": lists where to point.")
@click.option(
    "--coverage",
    type=Number(min=0.0, max=1.0, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
    help="Share of the probability that the fields cover.",
)
@method_option(default="systematic", show_default=True)
@click.option(
    "--draws",
    type=COUNT,
    default=1000,
    show_default=True,
    help="Orbits to follow for each tracklet.",
)
@seed_option("Seed of the draws.")
@output_options
def follow_up(
    instant: Time | float,
    observer: str | None,
    field: Quantity | None,
    coverage: float,
    method: str,
    draws: int,
    seed: int,
    form: str,
    out: Path | None,
    **reading: Any,
) -> None:
    """Say where every tracklet in FILE... will be, and where to point.

    Orbits drawn from the posterior of each night are followed under Sun, Earth and Moon, and make a
    cloud on the sky. A row has its middle, the magnitude V with the limits that hold 90 %, the
    motion and its position angle, the areas that hold 68 and 95 % of the probability, and the
    altitudes of the object and of the Sun. Its worth is what a position there and then is expected
    to teach about the range, in bits, times the chances that it is a near-Earth object and that one
    field (half a degree without --field) finds it; zero with the object below 20 degrees or the Sun
    above -12.

    With --field, squares along right ascension and declination follow, in the order in which to
    observe them: the probability that the object is in this one and in none before, and in all of
    them so far.

    A tracklet without an answer keeps its row, which says why. Exit code 5 does not occur.

    \b
    Examples:
      neoranging follow-up night.obs80
      neoranging follow-up night.obs80 --at 2026-01-31T06:30 --station G96 --field 0.5deg
      neoranging follow-up night.obs80 --at +2d --out tomorrow.csv
    """  # noqa: D301 (the character by which click keeps lines apart)
    import numpy as np
    from astropy import units as u
    from astropy.time import Time

    from neoranging.followup.priority import ranking
    from neoranging.observations import observatories

    # before the files: they may be large
    estimator = posterior_estimator(method)
    if observer is not None:
        observer = known_observatory(observer)
    if isinstance(instant, Time):
        require_in_ephemeris(instant)
    tracklets = read_files(**reading)
    result = tracklets.estimate(estimator)
    futures, observers, notes = [], [], []
    for k, tracklet in enumerate(tracklets):
        after = isinstance(instant, float)
        time = tracklet.obstime[-1].utc + instant * u.d if after else instant
        require_in_ephemeris(time)
        code = tracklets.stations[k].split(",")[0] if observer is None else observer
        nowhere = bool(np.isnan(observatories.itrf_positions(code)).any())
        place = None if nowhere else code
        futures.append(result[[k]].ephemeris(Time([time]), place, n=draws, rng=seed))
        observers.append("500" if nowhere else code)
        note = f"{code or 'the station'} has no fixed place: as from the centre of the Earth"
        notes.append([note] if nowhere else [])
    side = 0.5 * u.deg if field is None else field
    neo = result.probability("neo")
    teaches = [
        ranking(result[[k]], future, field=side.to_value(u.rad), neo=neo[[k]])
        for k, future in enumerate(futures)
    ]
    rows = _rows(tracklets, result, futures, observers, notes)
    for name in ("neo", "bits", "worth"):
        rows[name] = [float(row[name][0]) for row in teaches]
    rows.meta |= {"method": method, "draws": draws, "seed": seed, "field_deg": side.to_value(u.deg)}
    if field is not None:
        rows.meta["coverage"] = coverage
        rows = _with_fields(rows, futures, field, coverage)
    deliver(rows, form, out, _as_text)


def _rows(
    tracklets: TrackletSet,
    result: RangeEstimate,
    futures: list[Ephemeris],
    observers: list[str],
    notes: list[list[str]],
) -> QTable:
    """One row a tracklet, whatever became of it."""
    from astropy.table import vstack

    sky = vstack([future.to_table() for future in futures])
    names = [status.name for status in result.status]
    # which observation is worst; the place of an unknown observer is a warning of the reading
    reasons = [
        f"{name} ({worst})" if name == "MISFIT" and worst else name
        for name, worst in zip(names, result.diagnostics, strict=True)
    ]
    remarks = [
        "; ".join(_remarks(row, reason) + (more if row["fallen"] >= 0.0 else []))
        for row, reason, more in zip(sky, reasons, notes, strict=True)
    ]
    columns = {"observer": observers, **{name: sky[name] for name in sky.colnames[1:]}}
    columns |= {"status": names, "remarks": remarks}
    return track_rows(tracklets, result.epoch, columns, {})


def _with_fields(
    rows: QTable, futures: list[Ephemeris], field: Quantity, coverage: float
) -> QTable:
    """One row for each field of each tracklet, and one for a tracklet without."""
    import numpy as np
    from astropy import units as u
    from astropy.table import QTable, vstack

    none = QTable({"ra": [np.nan] * u.deg, "dec": [np.nan] * u.deg})
    none["probability"] = none["cumulative"] = np.nan
    every, remarks = [], rows["remarks"].tolist()
    for k, future in enumerate(futures):
        fields = none
        if np.isfinite(rows["area_95"][k]):
            fields = future.pointings(field, coverage)
            if not fields.meta["is_covered"]:
                held, count = float(fields["probability"].sum()), many(len(fields), "field")
                wide = (
                    f"too wide: {count} hold {held:.0%}"
                    if len(fields)
                    else "too wide: no field holds any"
                )
                remarks[k] = "; ".join([*filter(None, [remarks[k]]), wide])
        every.append(fields if len(fields) else none)
    rows["remarks"] = remarks
    counts = [len(fields) for fields in every]
    rows = rows[np.repeat(np.arange(len(rows)), counts)]
    pointings = vstack(every, metadata_conflicts="silent")
    number = np.concatenate([np.arange(1, n + 1) for n in counts])
    rows["field"] = np.where(np.isfinite(pointings["probability"]), number, 0)
    for name in ("ra", "dec", "probability", "cumulative"):
        rows[f"field_{name}"] = pointings[name]
    return rows


def _remarks(row: Row, reason: str) -> list[str]:
    """Remarks to an observer on a row of `Ephemeris.to_table`."""
    import numpy as np

    fallen, altitude, sun = row["fallen"], row["altitude"].value, row["sun_altitude"].value
    if np.isnan(fallen):
        return [f"no ephemeris: {reason}"]
    if fallen == 1.0:
        return ["all of its orbits have met the Earth"]
    remarks = {
        f"{fallen:.1%} of its orbits have met the Earth": fallen > 0.0,
        "fewer than ten draws: no area": np.isnan(row["area_95"].value),
        "below the horizon": altitude < 0.0,
        "daylight": sun > 0.0,
        "twilight": _NIGHT < sun <= 0.0,
        "no magnitude, size unknown": np.isnan(row["magnitude"].value),
    }
    return [remark for remark, holds in remarks.items() if holds]


def _as_text(rows: QTable) -> str:
    from neoranging.core.status import RangeStatus

    first = rows[rows["field"] <= 1] if "field" in rows.colnames else rows
    magnitudes = zip(
        *(first[f"magnitude{end}"].value for end in ("", "_low", "_high")), strict=True
    )
    table = text_table(
        {
            "object": _names(first),
            ("time", "UTC"): _minutes(first["time"]),
            "from": first["observer"].tolist(),
            ("ra", "h m s"): _sexagesimal(first["ra"].to_value("hourangle")),
            ("dec", "d m s"): _sexagesimal(first["dec"].value, "+"),
            ("V", "mag"): [
                "-" if math.isnan(v) else f"{v:.1f} ({low:.1f}-{high:.1f})"
                for v, low, high in magnitudes
            ],
            ("motion", '"/min'): texts(first, "proper_motion", 3),
            ("p.a.", "deg"): _rounded(first["position_angle"].value),
            ("68 % area", "arcmin2"): texts(first, "area_68", 2),
            ("95 % area", "arcmin2"): texts(first, "area_95", 2),
            ("alt", "deg"): _rounded(first["altitude"].value),
            ("Sun", "deg"): _rounded(first["sun_altitude"].value),
            "worth": ["-" if math.isnan(x) else f"{x:.1f}" for x in first["worth"]],
            "status": first["status"].tolist(),
            "remarks": first["remarks"].tolist(),
        },
        align="<<<>>>>>>>>>><<",
    )
    parts = [table]
    if "field" in rows.colnames:
        parts.append(_fields_as_text(rows[rows["field"] > 0]))
    statuses = [RangeStatus[name] for name in first["status"]]
    return "\n\n".join([*parts, advice_on(statuses)]).rstrip()


def _fields_as_text(rows: QTable) -> str:
    if not len(rows):
        return "no fields"
    table = text_table(
        {
            "object": _at_first(_names(rows), rows),
            ("time", "UTC"): _at_first(_minutes(rows["time"]), rows),
            "field": rows["field"].tolist(),
            ("ra", "h m s"): _sexagesimal(rows["field_ra"].to_value("hourangle")),
            ("dec", "d m s"): _sexagesimal(rows["field_dec"].value, "+"),
            "probability": [f"{share:.3f}" for share in rows["field_probability"]],
            "in all so far": [f"{share:.3f}" for share in rows["field_cumulative"]],
        },
        align="<<>>>>>",
    )
    return f"Fields of {rows.meta['field_deg']:.4g} deg\n{table}"


def _names(rows: QTable) -> list[str]:
    """Designations, or the ids of tracklets without one."""
    names = rows["designation"].tolist()
    ids = rows["tracklet"].tolist() if "tracklet" in rows.colnames else names
    return [name or own for name, own in zip(names, ids, strict=True)]


def _at_first(cells: list[str], rows: QTable) -> list[str]:
    """Cells in the first row of each tracklet, none in the others."""
    return [cell if field == 1 else "" for cell, field in zip(cells, rows["field"], strict=True)]


def _minutes(times: Time) -> list[str]:
    return [text[:16].replace("T", " ") for text in times.utc.isot]


def _rounded(values: FloatArray) -> list[str]:
    return ["-" if math.isnan(value) else f"{value:.0f}" for value in values.tolist()]


def _sexagesimal(values: FloatArray, sign: str = "") -> list[str]:
    """Hours or degrees with minutes and seconds; a hyphen for NaN."""
    cells = []
    for value in values.tolist():
        if math.isnan(value):
            cells.append("-")
            continue
        minutes, seconds = divmod(round(3600.0 * abs(value)), 60)
        mark = "-" if value < 0.0 else sign
        cells.append(f"{mark}{minutes // 60:02d} {minutes % 60:02d} {seconds:02d}")
    return cells
