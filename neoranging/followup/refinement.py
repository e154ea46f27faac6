"""Differential corrections with the observations of tracklets, from a first guess."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from astropy import units as u
from astropy.time import Time

from neoranging.core.admissible import phase_magnitude
from neoranging.core.arcs import Arcs, visits
from neoranging.core.differential import (
    Fit,
    Prediction,
    Problem,
    corrected,
    first_guess,
    stages,
)
from neoranging.core.geometry import dot, norm
from neoranging.core.prediction import sight
from neoranging.ephemeris.states import almanac
from neoranging.exceptions import EstimationError, NeoRangingWarning
from neoranging.followup.dynamics import dynamics_of
from neoranging.orbits.elements import OrbitalElements
from neoranging.orbits.samples import OrbitSamples
from neoranging.orbits.solution import OrbitSolution, observation_rows
from neoranging.tracklet import Tracklet, TrackletSet
from neoranging.typing import FloatArray

DYNAMICS = ("kepler", "near-earth", "nbody")
ERRORS = ("law", "claimed")

Start = tuple[FloatArray, FloatArray, float]
"""Heliocentric state, (3,) and (3,) [au, au/d], and its epoch [MJD TDB]."""


def joined(tracklets: Iterable[Tracklet]) -> TrackletSet:
    """Observations of all tracklets, each once, as a set of visits of one station in one night."""
    together = TrackletSet.from_tracklets(tracklets)
    c = together._columns
    # the same tracklet may come twice, as the first night among all
    codes = np.unique(c.station, return_inverse=True)[1]
    rows = np.unique(
        np.stack([together._tdb, c.ra, c.dec, codes], axis=1), axis=0, return_index=True
    )[1]
    t, station = together._tdb[rows], c.station[rows]
    label = visits(np.array([0, len(rows)]), t, station)
    order = np.lexsort((t, label))
    offsets = np.concatenate([[0], np.cumsum(np.bincount(label))])
    names = sorted({str(name) for name in together.designation} - {""})
    if len(names) > 1:
        warnings.warn(
            f"tracklets of {', '.join(names)} are fitted as one object; if they are several, "
            f"select one: tracklets[tracklets.designation == {names[0]!r}]",
            NeoRangingWarning,
            stacklevel=4,
        )
    name = np.full(len(offsets) - 1, names[0] if names else "")
    return TrackletSet(c.take(rows[order]), offsets, name)


def starts_of(start: Any) -> Iterator[Start]:
    """States to start from, of elements or of orbits drawn from a posterior."""
    if isinstance(start, OrbitalElements):
        r, v = start.state()
        epoch = start.epoch
    elif isinstance(start, OrbitSamples):
        r, v, epoch = start.r, start.v, start.epoch
    else:
        raise EstimationError(
            f"start must be OrbitalElements or OrbitSamples, got {type(start).__name__}"
        )
    states = (x.to_value(unit).reshape(-1, 3) for x, unit in ((r, u.au), (v, u.au / u.d)))
    every = np.broadcast_to(epoch.tdb.mjd, r.shape[:-1]).ravel()
    for position, velocity, mjd in zip(*states, every, strict=True):
        yield position, velocity, float(mjd)


def refined(
    first: Tracklet,
    more: Any,
    starts: Iterable[Start],
    epoch: Time,
    *,
    dynamics: str,
    errors: str,
    reject: bool,
    by_night: bool,
) -> OrbitSolution:
    """Orbit through the observations of tracklets; see `RangeEstimate.refine`."""
    for name, value, allowed in (("dynamics", dynamics, DYNAMICS), ("errors", errors, ERRORS)):
        if value not in allowed:
            raise EstimationError(f"{name} must be one of {', '.join(allowed)}, got {value!r}")
    others = [more] if isinstance(more, Tracklet) else list(more or ())
    if stray := [one for one in others if not isinstance(one, Tracklet)]:
        raise EstimationError(
            f"more must be a Tracklet, a TrackletSet or a list of tracklets, got {stray[0]!r}"
        )
    every = joined([first, *others])
    all_arcs = every.arcs("topocenter")
    known = np.isfinite(all_arcs.position).all(axis=1)
    arcs = all_arcs.observations(np.flatnonzero(known))
    t0, fit, magnitude = float(epoch.tdb.mjd), None, np.nan
    failure = "TOO_FEW_OBSERVATIONS"
    if len(np.unique(arcs.t)) >= 3:
        # an estimate without an answer has a state of NaN
        guesses = [start for start in starts if np.isfinite(np.hstack(start)).all()]
        failure = "NOT_CONVERGED" if guesses else "NO_FIRST_GUESS"
        first_t = first._set._tdb
        own = (arcs.t >= first_t[0]) & (arcs.t <= first_t[-1])
        fit = _best(arcs, t0, own, guesses, dynamics, errors == "law", reject, by_night)
    if fit is not None:
        magnitude = _absolute_magnitude(arcs, fit)
        epoch = Time(fit.frame.t, format="mjd", scale="tdb")
    return OrbitSolution(
        fit,
        observation_rows(every.obstime, every.station, known, fit),
        epoch,
        dynamics=dynamics,
        designation=str(every.designation[0]),
        failure=failure,
        absolute_magnitude=magnitude,
    )


def _best(
    arcs: Arcs,
    t0: float,
    own: Any,
    starts: Iterable[Start],
    dynamics: str,
    by_law: bool,
    reject: bool,
    by_night: bool,
) -> Fit | None:
    """Fit of the first start that comes to rest, with most observations; else the best of all."""
    # the reference observation is that of the estimate, or next to it where its place is not known
    row = int(np.argmin(np.abs(arcs.t - t0)))
    motions = predictions(arcs, dynamics)
    best = None
    for r, v, start_epoch in starts:
        with np.errstate(all="ignore"):
            frame, x = first_guess(arcs, row, r, v, start_epoch)
        problem = Problem(arcs, frame, *motions, by_law)
        parts = stages(problem.elapsed, own) if by_night else [np.ones(len(arcs.t), dtype=bool)]
        fit = corrected(problem, x, parts, rejecting=reject)
        if fit is None and dynamics != "kepler":
            # a guess too near the Earth falls on it, where two bodies know of no Earth and lead on
            alone = Problem(arcs, frame, *predictions(arcs, "kepler"), by_law)
            lead = corrected(alone, x, parts, rejecting=False)
            fit = None if lead is None else corrected(problem, lead.x, parts, rejecting=reject)
        if fit is not None and (best is None or _rank(fit) > _rank(best)):
            best = fit
        if best is not None and best.converged and best.used.all():
            break
    return best


def _rank(fit: Fit) -> tuple[bool, int, float]:
    """Order of fits: at rest, with most observations, with the least sum of squares."""
    return fit.converged, int(fit.used.sum()), -fit.total


def predictions(arcs: Arcs, dynamics: str) -> tuple[Prediction, Prediction]:
    """Path of a motion as the observers of arcs see it, and one for its derivatives.

    The planets move an object, but hardly the differences between its neighbours: the derivatives
    of "nbody" are those of "near-earth", at a hundredth of the cost.
    """
    n = len(arcs.t)
    if dynamics == "kepler":

        def kepler(r: FloatArray, v: FloatArray, epoch: FloatArray) -> tuple[Any, Any]:
            every, row = np.repeat(np.arange(len(r)), n), np.tile(np.arange(n), len(r))
            observers = arcs.t[row], arcs.position[row], arcs.velocity[row]
            seen = sight(r[every], v[every], epoch[every], *observers)
            line = seen.rho[:, None] * seen.direction
            return line.reshape(-1, n, 3), seen.v.reshape(-1, n, 3)

        return kepler, kepler
    path = almanac(float(arcs.t.min()) - 1.0, float(arcs.t.max()) + 1.0)
    order = np.argsort(arcs.t, kind="stable")
    instants, observers = arcs.t[order], arcs.position[order]

    def under(name: str) -> Prediction:
        follow = dynamics_of(name).views

        def predict(r: FloatArray, v: FloatArray, epoch: FloatArray) -> tuple[Any, Any]:
            line, speed = np.empty((2, len(r), n, 3))
            # an iteration may try an orbit whose light takes longer than the almanac has days
            epoch = np.where(epoch > path.start, epoch, np.nan)
            seen = follow(r, v, epoch, path, instants, observers)
            line[:, order], speed[:, order] = seen.line, seen.velocity
            return line, speed

        return predict

    return under(dynamics), under("near-earth")


def _absolute_magnitude(arcs: Arcs, fit: Fit) -> float:
    """Mean absolute magnitude of the observations with a magnitude; NaN without one."""
    bright = np.flatnonzero(np.isfinite(arcs.mag))
    if not len(bright):
        return np.nan
    r, v, epoch = (np.repeat(x, len(bright), axis=0) for x in fit.frame.states(fit.x[None]))
    place = arcs.position[bright]
    seen = sight(r, v, epoch, arcs.t[bright], place, arcs.velocity[bright])
    heliocentric = place + seen.rho[:, None] * seen.direction
    sun = norm(heliocentric)
    phase = np.clip(dot(heliocentric, seen.direction) / sun, -1.0, 1.0)
    return float(
        np.mean(arcs.mag[bright] - 5.0 * np.log10(seen.rho * sun) - phase_magnitude(phase))
    )
