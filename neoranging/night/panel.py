"""Panels of the page of a night: what is said of one tracklet, and its row of the table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from astropy import units as u
from astropy.coordinates import Angle, EarthLocation
from astropy.table import QTable
from astropy.time import Time
from markupsafe import Markup

from neoranging.core.geometry import equal_area, line_of_sight
from neoranging.core.sky_density import SkyDensity
from neoranging.estimate import RangeEstimate
from neoranging.estimators.base import RangingEstimator
from neoranging.followup.ephemeris import Ephemeris, Station
from neoranging.followup.impacts import Impacts
from neoranging.followup.priority import LEAST_ALTITUDE, POSSIBLE, looked_for, remark
from neoranging.night.figures import LEVELS, Cloud, ranks, sky
from neoranging.orbits.samples import OrbitSamples
from neoranging.records import many
from neoranging.tables import number
from neoranging.tracklet import TrackletSet
from neoranging.typing import FloatArray, StrArray

WATCH_PRIOR: Final = "log-uniform"
"""Prior of a watch for impacts, beside that of the method."""

COVERAGE: Final = 0.95
"""Share of the draws that the pointings cover."""

_ARCMIN: Final = float((1.0 * u.rad).to_value(u.arcmin))

_DIAMETER_M: Final = 1329e3 / 0.14**0.5
"""Diameter at H = 0 of an object with the albedo 0.14 [m]."""

_LONGEST_D: Final = 60.0
"""Time from the night to the instant of the pointing beyond which nothing is followed [d]."""

DRAWN: Final = 250
"""Draws that a figure shows; more are seen only of a cloud that takes many fields."""

_SPECK: Final = 0.1
"""Size of a cloud, by that of the field of view, up to which it has no outline to be seen."""

_POINTINGS: Final = 12
"""Fields of view that a panel lists at most."""

_NONE: Final = "–"


@dataclass(frozen=True)
class Settings:
    """Options of a page that its entries depend on."""

    estimator: RangingEstimator
    at: Time | u.Quantity
    """Instant to point at, or the time after the last observation of each tracklet."""
    station: str | EarthLocation | None
    """Observer then; None for that of the last observation."""
    field: u.Quantity
    limit: u.Quantity | None
    within: u.Quantity
    n: int
    rng: int


class Cell(NamedTuple):
    """Cell of the table: its text, what it is sorted by, and whether it calls for attention."""

    text: str
    value: float | None = None
    is_hot: bool = False


COLUMNS: Final[Mapping[str, Mapping[str, tuple[str, str, str]]]] = {
    "tracklet": {
        "object": ("object", "", "designation, or the id of the tracklet"),
        "station": ("station", "", "MPC codes"),
        "first": ("first", "UTC", "first observation"),
        "n": ("n", "", "observations"),
        "arc": ("arc", "h", "from the first to the last observation"),
        "mag": ("V", "mag", "mean magnitude, in the band V"),
        "motion": ("motion", "″/min", "speed on the sky"),
    },
    "what it is": {
        "status": ("status", "", "verdict on the range"),
        "range": ("range", "68 %, au", "interval that holds 68 % of the posterior"),
        "size": ("H", "mag", "absolute magnitude, median"),
        "neo": ("NEO", "%", "chance of a perihelion within 1.3 au"),
        "moid": ("MOID", "< 0.05, %", "chance of an orbit within 0.05 au of that of the Earth"),
        "impact": ("impact", "%", "chance to meet the Earth, by the prior of the method"),
        "watch": ("impact", "log-u., %", "the same under the log-uniform prior"),
    },
    "to be pointed at": {
        "area": ("area", "95 %, ′²", "area of sky that holds 95 % of the draws"),
        "later": ("V", "mag", "predicted magnitude, median"),
        "altitude": ("alt.", "°", "altitude over the horizon"),
        "pointings": ("fields", "95 %", "fields of view that cover 95 % of the draws"),
        "worth": ("worth", "bits", "what a second tracklet would teach of the range of a NEO"),
    },
}
"""Heads of the columns of the table, what stands below them, and what they mean, by group."""


class Entry(NamedTuple):
    """One tracklet on the page."""

    anchor: str
    name: str
    identity: str
    """Its id, stations and time."""
    status: str
    is_usable: bool
    advice: str
    remarks: list[str]
    cells: dict[str, Cell]
    facts: dict[str, list[tuple[str, str]]]
    """Names and values by heading."""
    figures: list[tuple[Markup, str]]
    """Figures and their captions."""
    pointings: list[tuple[str, ...]]
    n_pointings: int
    order: tuple[float, ...]
    """Key by which entries are sorted, ascending."""


class Panel:
    """Panel of one tracklet while it is put together.

    Parameters
    ----------
    tracklets : TrackletSet
    k : int
        Row of the tracklet in it.
    estimate : RangeEstimate
        Of this tracklet.
    chances : dict
        By name; NaN where nothing follows from the tracklet.
    """

    def __init__(
        self,
        tracklets: TrackletSet,
        k: int,
        estimate: RangeEstimate,
        chances: dict[str, float],
    ) -> None:
        self._tracklets, self._k, self._estimate, self._chances = tracklets, k, estimate, chances
        self.facts: dict[str, list[tuple[str, str]]] = {}
        self.cells = {key: Cell(_NONE) for columns in COLUMNS.values() for key in columns}
        self.figures: list[tuple[Markup, str]] = []
        self.remarks = [str(estimate.diagnostics)] if estimate.diagnostics else []
        self._pointings: list[tuple[str, ...]] = []
        self._n_pointings = 0
        self._worth = self._urgency = 0.0
        self._first_falls = np.inf

    def observed(self, isot: StrArray, mjd: FloatArray, mag: float) -> None:
        """Say what was observed; ``isot`` and ``mjd`` are the epochs of all tracklets."""
        tracklets, k = self._tracklets, self._k
        begin, end = tracklets._offsets[k : k + 2].tolist()
        self._last_mjd = float(mjd[end - 1])
        arc, n = float(tracklets._span[k]) * 24.0, int(tracklets.counts[k])
        attributable = self._estimate.attributable
        motion = attributable.proper_motion.to_value(u.arcsec / u.min)
        angle = attributable.position_angle.to_value(u.deg)
        station = str(tracklets.stations[k]) or "a given place"
        when = isot[begin][:16].replace("T", " ")
        self.identity = f"{station}, {when} to {isot[end - 1][11:16]} UTC"
        self.cells |= {
            "station": Cell(station),
            "first": Cell(when, float(mjd[begin])),
            "n": Cell(str(n), n),
            "arc": Cell(f"{arc:.2f}", arc),
            "mag": _cell(mag, f"{mag:.1f}"),
            "motion": _cell(motion, number(motion)),
        }
        self.facts["Observed"] = [
            ("positions", f"{n} in {arc:.2f} h"),
            ("from", station),
            ("motion", f"{number(motion)} ″/min towards {angle:.0f}°"),
            ("magnitude", f"V {mag:.1f}" if np.isfinite(mag) else "none given: size unknown"),
        ]

    def ranged(self, numbers: dict[str, FloatArray]) -> None:
        """Say how far it is, and how large."""
        outer, inner, median, upper, end = (number(x) for x in numbers["range"].tolist())
        low, high = numbers["rate"].tolist()
        is_usable = self._estimate.status.usable
        text = f"{inner} – {upper}" if is_usable else f"({inner} – {upper})"
        self.cells["range"] = Cell(text, float(numbers["range"][2]))
        small, size, large = numbers["size"].tolist()
        facts = [
            ("range", f"{median} au; 68 % {inner} to {upper}, 95 % {outer} to {end}"),
            ("range-rate", f"{low:+.1f} to {high:+.1f} km/s (68 %)".replace("-", "−")),
        ]
        if np.isfinite(size):
            self.cells["size"] = Cell(f"{size:.1f}" if is_usable else f"({size:.1f})", size)
            meters = float(f"{_DIAMETER_M * 10.0 ** (-0.2 * size):.2g}")
            text = f"{meters:g} m" if meters < 1000.0 else f"{1e-3 * meters:g} km"
            facts.append(("H", f"{size:.1f} (68 % {small:.1f} to {large:.1f}), about {text}"))
        else:
            facts.append(("H", "unknown without a magnitude"))
        self.facts["What it is"] = facts

    def judged(self, own: Impacts, watch: Impacts, settings: Settings) -> None:
        """Say whether it is a near-Earth object, and whether it hits."""
        chance, facts = self._chances, self.facts["What it is"]
        for key in ("neo", "moid"):
            self.cells[key] = Cell(percent(chance[key]), chance[key])
        neo, moid = percent(chance["neo"]), percent(chance["moid"])
        facts.append(("chance of", f"NEO {neo} %, MOID below 0.05 au {moid} %"))
        for impacts, key, prior in ((own, "impact", "impact"), (watch, "watch", WATCH_PRIOR)):
            value, n = chance[key], impacts.n_draws
            low, high = (100.0 * float(x()) for x in (impacts.lower_limit, impacts.upper_limit))
            if value == 0.0:
                text = f"none of {n} draws: below {high:.2g} %"
            elif value == 1.0:
                text = f"all of {n} draws: above {low:.4g} %"
            else:
                text = f"{percent(value)} ± {100.0 * float(impacts.error):.2g} %"
            is_hot = value >= POSSIBLE[key == "watch"]
            self.cells[key] = Cell(percent(value), value, is_hot)
            facts.append((prior, f"{text} in {settings.within.to_value(u.d):g} d"))
            if is_hot:
                self._urgency = max(chance["impact"], chance["watch"])
                facts.append(("falls", _fall(impacts)))
                if value > 0.5:
                    falls = float(impacts.time_quantile(0.05).utc.mjd)
                    self._first_falls = min(self._first_falls, falls)

    def pointed(
        self,
        samples: OrbitSamples,
        when: Time,
        settings: Settings,
    ) -> None:
        """Say where it will be; ``samples`` has one row, ``when`` the instant of each tracklet."""
        station, place = self._observer(settings)
        when, reason = when[self._k : self._k + 1], ""
        if isinstance(settings.at, u.Quantity) and when.utc.mjd[0] > self._first_falls:
            sooner = 0.5 * (self._last_mjd + self._first_falls)
            when = Time([sooner], format="mjd", scale="utc")
            reason = ", half way to the first falls"
        facts = [("when", f"{when.isot[0][:16].replace('T', ' ')} UTC{reason}"), ("from", place)]
        self.facts["Where to point"] = facts
        days = abs(when.mjd[0] - self._last_mjd)
        if days > _LONGEST_D:
            text = f"this is {days:,.0f} d from the night: orbits are followed for {_LONGEST_D:g} d"
            facts.append(("no position", text))
            return
        cloud = Ephemeris(samples[:, :DRAWN], when, station)
        fallen = float(cloud.fallen[0, 0])
        if fallen > 0.0:
            facts.append(("fallen", f"{percent(fallen)} % of the draws have met the Earth by then"))
        density = cloud._density(0, 0)
        if density is None:
            facts.append(("no position", "too few draws are left"))
            self.remarks.append("possible impactor, and nothing is left to point at")
            return
        neo = np.array([self._chances["neo"]])
        limit = np.inf if settings.limit is None else settings.limit.to_value(u.mag)
        side = settings.field.to_value(u.rad)
        looks = looked_for(cloud, neo, side, limit, LEAST_ALTITUDE)
        bits, bright, altitude, sun, self._worth = (
            float(column[0, 0])
            for column in (looks.bits, looks.bright, looks.altitude, looks.sun, looks.worth)
        )
        text = remark(
            self._urgency > 0.0,
            fallen,
            bright if looks.has_magnitude[0] else np.nan,
            altitude,
            sun,
            LEAST_ALTITUDE,
        )
        if text:
            self.remarks.append(text)
        facts += self._where(cloud, settings, bright)
        if np.isfinite(altitude):
            text = f"{altitude:.0f}°, Sun at {sun:.0f}°".replace("-", "−")
            facts.append(("altitude", text))
            is_low, shown = altitude < LEAST_ALTITUDE, f"{altitude:.0f}".replace("-", "−")
            self.cells["altitude"] = Cell(shown, altitude, is_low)
        facts.append(("worth", f"{self._worth:.2f}: {bits:.2f} bits of the range if seen"))
        self.cells["worth"] = Cell(f"{self._worth:.2f}", self._worth)
        fields = cloud.pointings(settings.field, COVERAGE)
        few = not fields.meta["is_covered"] and len(fields) <= _POINTINGS
        if few and samples.shape[1] > DRAWN:  # draws are missing, not fields
            cloud = Ephemeris(samples, when, station)
            fields = cloud.pointings(settings.field, COVERAGE)
        self._show(density, fields, settings)

    def _observer(self, settings: Settings) -> tuple[Station, str]:
        """Place to point from, and what to call it."""
        last, columns = self._tracklets._offsets[self._k + 1] - 1, self._tracklets._columns
        if settings.station is not None:
            given = settings.station
            return given, given if isinstance(given, str) else "the place that was given"
        code, itrf = str(columns.station[last]), columns.itrf[last]
        if np.isfinite(itrf).all() and np.any(itrf != 0.0):
            place = EarthLocation.from_geocentric(*itrf, unit=u.m)
            return place, code or "where it was observed"
        reason = "" if code == "500" else f", as {code} has no fixed place"
        return None, f"the centre of the Earth{reason}"

    def _where(self, cloud: Ephemeris, settings: Settings, bright: float) -> list[tuple[str, str]]:
        """Position, motion, magnitude and area of a cloud."""
        ra, dec = cloud.center[0, 0].ra, cloud.center[0, 0].dec
        motion = np.nanmedian(cloud.proper_motion[0, 0].to_value(u.arcsec / u.min))
        angle = cloud.position_angle[0, 0]
        mean = np.arctan2(np.nanmean(np.sin(angle)), np.nanmean(np.cos(angle))).to_value(u.deg)
        areas = (cloud.area(level).to_value(u.arcmin**2)[0, 0] for level in LEVELS)
        outer, inner = (float(area) for area in areas)
        magnitude = cloud.magnitude[0, 0].to_value(u.mag)
        text = "unknown without one in the night"
        if np.isfinite(magnitude).any():
            low, median, high = np.nanquantile(magnitude, [0.16, 0.5, 0.84]).tolist()
            text = f"V {median:.1f} (68 % {low:.1f} to {high:.1f})"
            if settings.limit is not None:
                text += f", brighter than {settings.limit.value:g}: {percent(bright)} %"
            self.cells["later"] = Cell(f"{median:.1f}", median)
        self.cells["area"] = Cell(number(outer), outer)
        return [
            (
                "position",
                f"{Angle(ra).to_string(u.hour, sep=' ', precision=1, pad=True)} "
                f"{Angle(dec).to_string(u.deg, sep=' ', precision=0, pad=True, alwayssign=True)}"
                f" ({ra.deg:.4f}°, {dec.deg:+.4f}°)".replace("-", "−"),
            ),
            ("motion", f"{number(motion)} ″/min towards {mean % 360.0:.0f}°"),
            ("magnitude", text),
            ("area", f"68 % {number(inner)}, 95 % {number(outer)} square arcminutes"),
        ]

    def _show(self, density: SkyDensity, table: QTable, settings: Settings) -> None:
        """Draw the cloud with its fields of view, and list these."""
        self._n_pointings = len(table)
        side, held = settings.field.to_value(u.arcmin), float(table["probability"].sum())
        is_covered = table.meta["is_covered"]
        text = f"{many(len(table), 'field')} of {side:g}′ {'holds' if len(table) == 1 else 'hold'} "
        text += f"{percent(held)} %{'' if is_covered else ': the cloud is too wide for more'}"
        self.facts["Where to point"].append(("fields", text))
        count = str(len(table)) if is_covered else f">{len(table)}"
        self.cells["pointings"] = Cell(count, len(table) + (not is_covered), not is_covered)
        ra, dec = table["ra"].to_value(u.deg), table["dec"].to_value(u.deg)
        self._pointings = [
            (f"{a:.4f}", f"{d:+.4f}".replace("-", "−"), percent(p), percent(c))
            for a, d, p, c in zip(
                ra[:_POINTINGS], dec, table["probability"], table["cumulative"], strict=False
            )
        ]
        east, north = (density.place @ density.axes.T).T * _ARCMIN

        def flat(direction: FloatArray) -> FloatArray:
            return equal_area(density.frame, direction).T * _ARCMIN

        outlines = []
        if np.ptp(east) + np.ptp(north) > _SPECK * side:
            outlines = [tuple(flat(line)) for level in LEVELS for line in density.outline(level)]
        fields = flat(line_of_sight(np.radians(ra), np.radians(dec))).T[:_POINTINGS].tolist()
        caption = f"Sky then: the densest 68 and 95 %, the field of view of {side:g}′"
        cloud = Cloud(east, north, ranks(density.left_out))
        self.figures.append((sky(cloud, outlines, side, fields), caption))

    def entry(self, number_: int) -> Entry:
        """Entry of the page."""
        tracklets, k, status = self._tracklets, self._k, self._estimate.status
        label = str(tracklets.tracklet_id[k])
        name = str(tracklets.designation[k]) or label or f"tracklet {number_ + 1}"
        self.cells |= {"object": Cell(name), "status": Cell(status.name)}
        is_usable = not np.isnan(self._chances["neo"])
        likely = self._chances["neo"] if is_usable else 0.0
        return Entry(
            anchor=f"t{number_ + 1}",
            name=name,
            identity=f"{label}, {self.identity}" if label not in ("", name) else self.identity,
            status=status.name,
            is_usable=is_usable,
            advice=status.advice,
            remarks=self.remarks,
            cells=self.cells,
            facts=self.facts,
            figures=self.figures,
            pointings=self._pointings,
            n_pointings=self._n_pointings,
            order=(not is_usable, -self._urgency, -self._worth, -likely, number_),
        )


def _fall(impacts: Impacts) -> str:
    """Time and place of the falls of one tracklet."""
    low, median, high = (impacts.time_quantile(q).isot[:16] for q in (0.05, 0.5, 0.95))
    place = impacts.center.to_geodetic()
    lat, lon = float(place.lat.deg), float(place.lon.deg)
    extent = impacts.extent.to_value(u.km)
    return (
        f"{median.replace('T', ' ')} UTC (90 % {low[5:].replace('T', ' ')} to "
        f"{high[5:].replace('T', ' ')}), {abs(lat):.1f}° {'NS'[lat < 0.0]} {abs(lon):.1f}° "
        f"{'EW'[lon < 0.0]}, 95 % within {extent:,.0f} km"
    )


def percent(share: float) -> str:
    """Probability in percent, without the sign: what rounds to none or all is a bound."""
    if np.isnan(share):
        return _NONE
    if min(share, 1.0 - share) < 1e-9:  # rounding of a sum
        return f"{100.0 * share:.0f}"
    if share < 1e-3:
        return "<0.1"
    if share > 0.999:
        return ">99.9"
    return f"{100.0 * share:.1f}"


def _cell(value: float, text: str) -> Cell:
    return Cell(text, value) if np.isfinite(value) else Cell(_NONE)
