"""Entries of the page of a night: a row of the table and a panel for each tracklet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from astropy import units as u
from astropy.time import Time
from markupsafe import Markup

from neoranging.core.geometry import norm
from neoranging.core.reach import may_meet
from neoranging.ephemeris.states import earth_state
from neoranging.estimate import RangeEstimate
from neoranging.followup.impacts import Flown, Impacts, flights
from neoranging.night.figures import LEVELS, Cloud, plane, range_curve, ranks
from neoranging.night.panel import DRAWN, WATCH_PRIOR, Entry, Panel, Settings
from neoranging.orbits.samples import OrbitSamples
from neoranging.tracklet import TrackletSet
from neoranging.typing import BoolArray, FloatArray

_KM_S: Final = float((1.0 * u.au / u.d).to_value(u.km / u.s))

_CURVE: Final = 121
"""Points of a density."""

_OUTLINE: Final = 40
"""Points of each stretch of an outline."""


def entries_of(tracklets: TrackletSet, first: int, settings: Settings) -> Iterator[Entry]:
    """Entries of some tracklets, of which the first one has the number ``first`` in its night."""
    estimate = settings.estimator.estimate(tracklets)
    posterior = estimate._posterior
    usable = estimate._is_usable
    samples = estimate._usable_samples(settings.n, settings.rng)
    own, watch = _impacts(estimate, samples, usable, settings)
    chances = {
        "neo": estimate.probability("neo"),
        "moid": estimate.probability("moid<0.05"),
        "impact": own.probability,
        "watch": watch.probability,
    }
    chances = {name: np.where(usable, column, np.nan) for name, column in chances.items()}
    numbers = _numbers(estimate, samples)
    figures = _figures(estimate, samples)
    obstime, last = tracklets.obstime, tracklets._offsets[1:] - 1
    isot, mjd = obstime.isot, obstime.mjd
    at = settings.at
    when = at.utc + np.zeros(len(last)) * u.d if isinstance(at, Time) else obstime[last] + at
    for k in range(len(tracklets)):
        one = estimate[k]
        panel = Panel(tracklets, k, one, {name: float(x[k]) for name, x in chances.items()})
        panel.observed(isot, mjd, numbers["mag"][k])
        panel.figures += figures[k]
        if posterior.has_any[k]:
            panel.ranged({name: column[k] for name, column in numbers.items()})
        if usable[k]:
            panel.judged(own[k], watch[k], settings)
            panel.pointed(samples[k : k + 1], when, settings)
        yield panel.entry(first + k)


def _impacts(
    estimate: RangeEstimate, samples: OrbitSamples, usable: BoolArray, settings: Settings
) -> tuple[Impacts, Impacts]:
    """Impacts under the prior of the method, of the draws at hand, and under that of a watch."""
    days = settings.within.to_value(u.d)
    labels = estimate._tracklets._labels
    status = np.array([one.name for one in estimate.status])

    def impacts_of(draws: OrbitSamples, prior: str | None) -> Impacts:
        parts = [
            _flown(draws[k], days) if usable[k] else Flown.none(1, settings.n)
            for k in range(len(usable))
        ]
        flown = Flown(*(np.concatenate(column) for column in zip(*parts, strict=True)))
        return Impacts(flown, settings.within, prior, labels, status, False)

    own = impacts_of(samples, None)
    if getattr(settings.estimator, "prior", None) == WATCH_PRIOR:
        return own, own
    watched = estimate._under(WATCH_PRIOR)._usable_samples(settings.n, settings.rng)
    return own, impacts_of(watched, WATCH_PRIOR)


def _flown(draws: OrbitSamples, days: float) -> Flown:
    """Flights of the draws of one tracklet; those that cannot come near are not followed."""
    r, v, epoch = draws.r.to_value(u.au), draws.v.to_value(u.au / u.d), draws.epoch.tdb.mjd
    position, velocity = earth_state(np.median(epoch))
    near = may_meet(r - position, v - velocity, norm(r), days)
    flown = Flown.none(1, len(near))._replace(is_followed=np.isfinite(r[None, :, 0]))
    if near.any():
        start = np.array([epoch.max()])
        (part,) = flights([draws[near]], int(near.sum()), start, days, "near-earth")
        whole = []
        for every, some in zip(flown[:4], part[:4], strict=True):
            column = every.copy()
            column[:, near] = some
            whole.append(column)
        flown = Flown._make([*whole, *part[4:]])
    return flown


def _numbers(estimate: RangeEstimate, samples: OrbitSamples) -> dict[str, FloatArray]:
    """Columns of numbers that panels quote, each of M rows."""
    size = samples.absolute_magnitude.to_value(u.mag)
    with np.errstate(invalid="ignore"):
        sizes = np.quantile(size, [0.16, 0.5, 0.84], axis=1).T
    return {
        "mag": estimate._arcs.mean_mag,
        "range": estimate.quantile([0.025, 0.16, 0.5, 0.84, 0.975]).value,
        "rate": estimate.interval(0.68, of="range_rate").value * _KM_S,
        "size": sizes,
    }


def _figures(estimate: RangeEstimate, samples: OrbitSamples) -> list[list[tuple[Markup, str]]]:
    """Figures of the posterior over the admissible region and of the range, of each tracklet."""
    posterior = estimate._posterior
    rho, rate = (x[:, :DRAWN].value for x in (samples.range, samples.range_rate))
    with np.errstate(invalid="ignore"):
        density = posterior.log_pdf(rho, rate)
    ends = np.log(posterior.quantile([5e-4, 1.0 - 5e-4]))
    margin = 0.15 * (ends[:, 1] - ends[:, 0])
    x = np.linspace(ends[:, 0] - margin, ends[:, 1] + margin, _CURVE, axis=1)
    curve = np.exp(posterior.marginal.log_pdf(x))
    parts = {level: estimate.credible_region(level) for level in LEVELS}
    figures: list[list[tuple[Markup, str]]] = []
    for k in range(len(estimate)):
        own: list[tuple[Markup, str]] = []
        region = estimate.attributable[k]
        figures.append(own)
        if not np.isfinite(region.observer_position).all():
            continue
        outlines = [
            (one.range.value, one.range_rate.value)
            for one in region.admissible_region().boundary(_OUTLINE)
        ]
        if not outlines:
            continue
        if not posterior.has_any[k]:
            own.append((plane(outlines, None), "Admissible region; no part of it is probable"))
            continue
        cloud = Cloud(np.log(rho[k]), rate[k], ranks(density[k]))
        own.append((plane(outlines, cloud), "Posterior over the admissible region"))
        regions = {level: np.log(parts[level][k].value) for level in LEVELS}
        text = "Range; shaded: the densest 68 and 95 %"
        own.append((range_curve(x[k], curve[k], regions), text))
    return figures
