"""Discovery of real objects, their apparitions, and the nights in which they could be observed.

The half-month of the designation of an object, the number of its oppositions and, for objects of
one opposition, the days over which it was observed are those of the Minor Planet Center. The place
of the object on its orbit is not: carried back over decades by two-body motion the anomaly of the
catalogue misses the discovery, for small objects altogether. It is drawn anew, from all anomalies
alike, on the condition that the object was found at the date of its designation. The other figures
are our own.
"""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from neoranging.constants import GM_SUN
from neoranging.core.geometry import ecliptic_to_equatorial
from neoranging.ephemeris.states import earth_state
from neoranging.lab.simulation.survey import Aspect, State, Survey, aspect
from neoranging.orbits.catalogue import Catalogue
from neoranging.typing import AnyArray, BoolArray, FloatArray, IntArray, StrArray

HALF_MONTH_D: Final = 15.2
"""Time in which one letter of designations is given [d]."""

GRID_STEP_D: Final = 2.0
"""Step of the nights of objects of several oppositions [d]; those of one have a step of a day."""

PURSUIT_D: Final = 5.0
"""Time after a discovery in which the interest of followers halves [d]."""

TYPICAL_ARC_D: Final = 11.0
"""Observed arc of objects of one opposition for which the catalogue has none [d]; the median."""

LEAST_CHANCE: Final = 0.1
"""Chance to be measured above which a night belongs to an apparition."""

_TURN: Final = 2.0 * np.pi

_MJD_ZERO = np.datetime64("1858-11-17", "D")
_PROVISIONAL = re.compile(r"^([A-Z]?)(\d{3,4}) ([A-HJ-Y])[A-Z]\d*$")
_LETTERS = "ABCDEFGHJKLMNOPQRSTUVWXY"


def designation_dates(principal: StrArray) -> FloatArray:
    """First day of the half-months of provisional designations, MJD; NaN for other names.

    Designations look like "2024 YR4" or "A898 PA"; those of the Palomar-Leiden surveys are
    of 1960.
    """
    dates = np.array([_half_month(name) for name in principal.tolist()], dtype="datetime64[D]")
    return np.where(np.isnat(dates), np.nan, (dates - _MJD_ZERO).astype(np.float64))


def _half_month(name: str) -> str:
    """First day of the half-month, ISO; "NaT" if it has none."""
    if name.endswith(("P-L", "T-1", "T-2", "T-3")):
        return "1960-09-24"
    match = _PROVISIONAL.match(name)
    if match is None:
        return "NaT"
    year = {"A": "1"}.get(match[1], "") + match[2]
    month, half = divmod(_LETTERS.index(match[3]), 2)
    return f"{year}-{month + 1:02d}-{1 + 15 * half:02d}"


class _Ellipses:
    """Two-body motion of N objects by components, in float32: for charts, not for labels."""

    def __init__(self, orbits: Catalogue) -> None:
        self.orbits = orbits
        a, ecc = orbits.a_au, orbits.ecc
        node, inc, peri = orbits.raan_rad, orbits.inc_rad, orbits.argp_rad
        cos, sin = np.cos(peri), np.sin(peri)
        along = np.stack([np.cos(node), np.sin(node), np.zeros_like(node)], axis=-1)
        across = np.stack(
            [-np.sin(node) * np.cos(inc), np.cos(node) * np.cos(inc), np.sin(inc)], axis=-1
        )
        towards = ecliptic_to_equatorial(cos[:, None] * along + sin[:, None] * across)
        ahead = ecliptic_to_equatorial(cos[:, None] * across - sin[:, None] * along)
        minor = a * np.sqrt(1.0 - ecc * ecc)
        self._x = (a[:, None] * towards).astype(np.float32)
        self._y = (minor[:, None] * ahead).astype(np.float32)
        self._ecc = ecc.astype(np.float32)
        self.motion = np.sqrt(GM_SUN / a**3)

    def mean_anomaly(self, mjd: FloatArray) -> FloatArray:
        """Mean anomalies at epochs (N, T), all objects in their rows."""
        elapsed = mjd - self.orbits.epoch_mjd_tdb[:, None]
        return self.orbits.mean_anomaly_rad[:, None] + self.motion[:, None] * elapsed

    def aspect(self, mean: FloatArray, earth: State) -> Aspect:
        """Aspect at mean anomalies of shape (N, T), from the Earth at the same epochs."""
        e = self._ecc[:, None]
        m = (np.mod(mean + np.pi, _TURN) - np.pi).astype(np.float32)
        E = m + e * np.sin(m) / (1.0 - np.sin(m + e) + np.sin(m))
        for _ in range(4):
            sin, cos = np.sin(E), np.cos(E)
            wrong, slope = E - e * sin - m, 1.0 - e * cos
            E = E - wrong / (slope - 0.5 * wrong * e * sin / slope)
        sin, cos = np.sin(E), np.cos(E)
        pace = self.motion.astype(np.float32)[:, None] / (1.0 - e * cos)
        place, rise, run = cos - e, -sin * pace, cos * pace
        axes = [(self._x[:, k, None], self._y[:, k, None]) for k in range(3)]
        r = tuple(x * place + y * sin for x, y in axes)
        v = tuple(x * rise + y * run for x, y in axes)
        H, G = (x.astype(np.float32)[:, None] for x in (self.orbits.H_mag, self.orbits.G))
        return aspect((r, v), earth, H, G)


def _earth(mjd: FloatArray) -> State:
    """Components of the state of the Earth in float32, of the shape of the epochs."""
    r, v = (np.moveaxis(x.astype(np.float32), -1, 0) for x in earth_state(mjd))
    return tuple(r), tuple(v)


def redraw_anomalies(
    orbits: Catalogue, survey: Survey, first_mjd: float, rng: np.random.Generator
) -> tuple[Catalogue, FloatArray]:
    """Put objects on their orbits such that they are found when they were designated.

    Objects designated before the first night, ``first_mjd``, keep the anomaly of the catalogue.

    Returns
    -------
    orbits : Catalogue
        With the date of discovery as epoch where the anomaly is new.
    discovery : ndarray, shape (N,)
        Date of discovery, MJD; NaN for objects that keep their anomaly.
    """
    date = designation_dates(orbits.principal_designation)
    rows = np.flatnonzero(date >= first_mjd)
    ellipses = _Ellipses(orbits.take(rows))
    # a coarse grid over the half-month and the whole orbit, then a fine one about the choice:
    # the smallest objects are bright enough over hours and a hundredth of the orbit only
    epoch = date[rows, None] + np.linspace(0.0, HALF_MONTH_D, 9)[:-1]
    anomaly = np.arange(240) * (_TURN / 240)
    grid = epoch[:, :, None], np.broadcast_to(anomaly, (len(rows), 8, 240))
    epoch, anomaly = _draw_passage(ellipses, survey, *grid, rng)
    epoch = epoch[:, None] + np.linspace(-0.5, 0.5, 9) * (HALF_MONTH_D / 8)
    # the anomaly goes along with the date, so that the fine grid is centred on one passage
    carried = anomaly[:, None] + ellipses.motion[:, None] * (epoch - epoch.mean(axis=1)[:, None])
    offset = np.linspace(-0.75, 0.75, 49) * (_TURN / 240)
    epoch, anomaly = _draw_passage(
        ellipses, survey, epoch[:, :, None], carried[:, :, None] + offset, rng
    )
    discovery = np.full(len(orbits), np.nan)
    discovery[rows] = epoch
    epochs, means = orbits.epoch_mjd_tdb.copy(), orbits.mean_anomaly_rad.copy()
    epochs[rows], means[rows] = epoch, np.mod(anomaly, _TURN)
    moved = dataclasses.replace(orbits, epoch_mjd_tdb=epochs, mean_anomaly_rad=means)
    return moved, discovery


def _draw_passage(
    ellipses: _Ellipses,
    survey: Survey,
    epoch: FloatArray,
    anomaly: AnyArray,
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray]:
    """One epoch and anomaly of a grid (N, T, K), by the chance to be found then and there."""
    n, n_epochs, n_anomalies = anomaly.shape
    epochs = np.broadcast_to(epoch, anomaly.shape).reshape(n, -1)
    anomalies = anomaly.reshape(n, n_epochs * n_anomalies)
    # the Earth once per epoch, not once per anomaly
    position, velocity = (
        tuple(np.repeat(x, n_anomalies, axis=1) for x in vector)
        for vector in _earth(epoch[:, :, 0])
    )
    view = ellipses.aspect(anomalies, (position, velocity))
    log_weight = survey.log_detection(view, epochs)
    # the first to be found of all, each with its rate; float32 draws may be zero
    waiting = np.maximum(rng.standard_exponential(log_weight.shape, dtype=np.float32), 1e-30)
    choice = np.argmax(log_weight - np.log(waiting), axis=1)
    rows = np.arange(n)
    return epochs[rows, choice], anomalies[rows, choice]


@dataclass(frozen=True, eq=False)
class NightChart:
    """Chance of each object to be observed on each night.

    Attributes
    ----------
    mjd : ndarray, shape (N, T)
        Grid of nights of each object.
    weight : ndarray, shape (N, T)
        Relative; zero where it is not observed.
    window : ndarray of int, shape (N, T)
        Number of the apparition, counted over all objects; -1 outside.
    step : float
        Of the grid [d].
    """

    mjd: FloatArray
    weight: FloatArray
    window: IntArray
    step: float

    @cached_property
    def _cumulated(self) -> FloatArray:
        """Sums of the weights up to every cell of the flat grid."""
        return np.cumsum(self.weight, axis=None)

    def draw(self, owner: IntArray, rng: np.random.Generator) -> FloatArray:
        """A night for each of M arcs of the objects ``owner``, MJD; NaN for objects without one."""
        n_nights = self.mjd.shape[1]
        return self._draw(owner * n_nights, (owner + 1) * n_nights, rng)

    def draw_each(self, rng: np.random.Generator) -> tuple[IntArray, FloatArray]:
        """One night in every apparition: the objects and the nights, in order of object."""
        flat = self.window.ravel()
        inside = np.flatnonzero(flat >= 0)
        change = np.diff(flat[inside]) > 0
        starts = inside[np.r_[True, change][: len(inside)]]
        stops = inside[np.r_[change, True][: len(inside)]] + 1
        return starts // self.mjd.shape[1], self._draw(starts, stops, rng)

    def _draw(self, start: IntArray, stop: IntArray, rng: np.random.Generator) -> FloatArray:
        """A night within stretches of the flat grid."""
        before = np.r_[0.0, self._cumulated]
        low, high = before[start], before[stop]
        u, jitter = rng.random((2, len(start)))
        cell = np.searchsorted(self._cumulated, low + u * (high - low), side="right")
        cell = np.clip(cell, start, stop - 1)
        night = self.mjd.ravel()[cell] + self.step * (jitter - 0.5)
        return np.where(high > low, night, np.nan)


def chart_nights(
    orbits: Catalogue,
    discovery: FloatArray,
    survey: Survey,
    span: tuple[float, float],
    rng: np.random.Generator,
) -> tuple[tuple[IntArray, NightChart], ...]:
    """Rows and charts of the objects of one opposition, and of the others.

    Orbits and discovery are those of `redraw_anomalies`, the span is of the first and the last
    night [MJD].
    """
    single = np.isfinite(discovery) & (orbits.n_opp <= 1)
    one, more = np.flatnonzero(single), np.flatnonzero(~single)
    return (
        (one, _chart_single(orbits.take(one), discovery[one], survey, span[1])),
        (more, _chart_several(orbits.take(more), discovery[more], survey, span, rng)),
    )


def _chart_single(
    orbits: Catalogue, discovery: FloatArray, survey: Survey, end: float
) -> NightChart:
    """Nights of objects of one opposition: those of the observed arc from the discovery on."""
    arc = np.where(np.isfinite(orbits.arc_d), orbits.arc_d, TYPICAL_ARC_D)
    days = np.arange(max(1, int(arc.max(initial=0.0)) + 1), dtype=np.float64)
    mjd = discovery[:, None] + days
    ellipses = _Ellipses(orbits)
    view = ellipses.aspect(ellipses.mean_anomaly(mjd), _earth(mjd))
    log_weight = survey.log_effort(view, mjd).astype(np.float64)
    log_weight -= np.log1p(days / PURSUIT_D)
    outside = (days > arc[:, None]) | (mjd > end)
    outside[:, 0] = False
    weight = _relative(np.where(outside, -np.inf, log_weight))
    window = np.where(weight > 0.0, np.arange(len(orbits))[:, None], -1)
    return NightChart(mjd, weight, window, 1.0)


def _chart_several(
    orbits: Catalogue,
    discovery: FloatArray,
    survey: Survey,
    span: tuple[float, float],
    rng: np.random.Generator,
) -> NightChart:
    """Nights of objects of several oppositions: as many apparitions as there were."""
    nights = np.arange(span[0], span[1], GRID_STEP_D)
    mjd = np.broadcast_to(nights, (len(orbits), len(nights)))
    position, velocity = (tuple(x[None] for x in vector) for vector in _earth(nights))
    ellipses = _Ellipses(orbits)
    view = ellipses.aspect(ellipses.mean_anomaly(mjd), (position, velocity))
    chance = survey.log_detection(view, nights, survey.follow_up_depth)
    first = np.nan_to_num(discovery, nan=span[0])[:, None]
    visible = (chance > np.log(LEAST_CHANCE)) & (nights > first - GRID_STEP_D)
    # the discovery itself is an apparition however faint the rest of it
    at_discovery = np.abs(nights - first) <= 0.5 * GRID_STEP_D
    visible |= at_discovery & np.isfinite(discovery)[:, None]
    log_weight = survey.log_effort(view, mjd).astype(np.float64)
    weight = _relative(np.where(visible, log_weight, -np.inf))
    # number the runs of visible nights, counted over all objects
    begins = visible.copy()
    begins[:, 1:] &= ~visible[:, :-1]
    runs = np.cumsum(begins, axis=None).reshape(visible.shape) - 1
    window = _select_windows(np.where(visible, runs, -1), weight, at_discovery, orbits.n_opp, rng)
    return NightChart(mjd, np.where(window >= 0, weight, 0.0), window, GRID_STEP_D)


def _relative(log_weight: FloatArray) -> FloatArray:
    """Weights scaled by the largest of each object; zeros where there is none."""
    top = np.max(log_weight, axis=1, keepdims=True)
    return np.exp(log_weight - np.where(np.isfinite(top), top, 0.0))


def _select_windows(
    window: IntArray,
    weight: FloatArray,
    at_discovery: BoolArray,
    n_opp: AnyArray,
    rng: np.random.Generator,
) -> IntArray:
    """Drop all windows but as many as an object had oppositions; the discovery always stays."""
    inside = window >= 0
    n_windows = int(window.max(initial=-1)) + 1
    owner = np.zeros(n_windows, dtype=np.int64)
    owner[window[inside]] = np.nonzero(inside)[0]
    total = np.bincount(window[inside], weight[inside], n_windows)
    with np.errstate(divide="ignore"):
        key = np.log(total) + rng.gumbel(size=n_windows)
    key[window[inside & at_discovery]] = np.inf
    order = np.lexsort((-key, owner))
    first = np.searchsorted(owner[order], owner[order])
    selected = np.zeros(n_windows, dtype=bool)
    selected[order] = np.arange(n_windows) - first < np.maximum(n_opp, 1)[owner[order]]
    return np.where(inside & selected[window], window, -1)
