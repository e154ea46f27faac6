"""`OrbitSolution`: an orbit by least squares through the observations of many nights."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from astropy import units as u
from astropy.table import QTable
from astropy.time import Time

from neoranging.arguments import check_count
from neoranging.constants import ARCSEC
from neoranging.core.differential import OPEN
from neoranging.display import html_table
from neoranging.exceptions import EstimationError
from neoranging.orbits.elements import OrbitalElements, to_orbit
from neoranging.orbits.samples import OrbitSamples
from neoranging.records import many
from neoranging.typing import FloatArray

if TYPE_CHECKING:
    from collections.abc import Mapping

    from neoranging.core.differential import Fit
    from neoranging.followup.ephemeris import Ephemeris, Station


ADVICE: Final[Mapping[str, str]] = {
    "OK": "One orbit, bound to the Sun, fits the observations.",
    "HYPERBOLIC": (
        "The orbit that fits is not bound to the Sun: the arc may be too short to tell, a tracklet "
        "may be of another object, or the object is one of the few that are not."
    ),
    "MISFIT": (
        "No orbit near the first guess fits all nights: many observations were set aside, or those "
        "used miss it by more than their errors. Leave tracklets of another object out, or start "
        "from another guess (start=...)."
    ),
    "UNDETERMINED": (
        "The observations leave the orbit open, since the range is uncertain by half of itself or "
        "more: add a night."
    ),
    "NOT_CONVERGED": (
        "The iteration did not come to rest, or the first guess predicts nothing: leave the "
        "farthest nights out at first, or start from another guess (start=...)."
    ),
    "TOO_FEW_OBSERVATIONS": (
        "An orbit takes three observations of different epochs by observers of known place: add a "
        "tracklet."
    ),
    "NO_FIRST_GUESS": (
        "The estimate has no orbit to start from: take another method, or start from elements "
        "(start=...)."
    ),
}
"""Verdicts on a solution by name, and what to try."""

MISFIT_RMS: Final = 3.0
"""Weighted root mean square beyond which an orbit does not fit."""

MOST_REJECTED: Final = 1.0 / 3.0
"""Share of the observations that may be set aside."""

_ELEMENTS: Final = ("q", "ecc", "inc", "raan", "argp", "nu")
_AU_D: Final = u.au / u.d


class OrbitSolution:
    """Orbit by differential corrections, with its covariance and the residuals of all observations.

    Made by `RangeEstimate.refine`. Look at `status` first: a fit that fails is a solution whose
    status says why, and its numbers are NaN, or those of the last step.

    Examples
    --------
    >>> import neoranging as nr
    >>> nights = nr.read_tracklets(nr.sample("2024YR4"))
    >>> solution = nights[1].estimate(method="mlp").refine(more=nights)
    >>> solution
    <OrbitSolution 2024 YR4: OK, 14 of 14 observations over 3.8 d, near-earth, rms 0.18">
    >>> print(solution.range.round(4), solution.range_error.round(5))
    0.0171 AU 1e-05 AU
    """

    def __init__(
        self,
        fit: Fit | None,
        observations: QTable,
        epoch: Time,
        *,
        dynamics: str,
        designation: str = "",
        failure: str = "",
        absolute_magnitude: float = np.nan,
    ) -> None:
        self._fit, self._observations, self._failure = fit, observations, failure
        self.dynamics, self.designation = dynamics, designation
        self._reference, self._h = epoch, absolute_magnitude

    # ------------------------------------------------------------------ the verdict

    @cached_property
    def status(self) -> str:
        """Name of the verdict: ``"OK"``, or that of a failure; `advice` says what to try."""
        fit = self._fit
        if fit is None:
            return self._failure
        if not fit.converged:
            return "NOT_CONVERGED"
        if self.n_rejected > MOST_REJECTED * self.n_observations or not (
            self.weighted_rms < MISFIT_RMS
        ):
            return "MISFIT"
        if not fit.covariance[4, 4] < OPEN**2:
            return "UNDETERMINED"
        return "OK" if self.elements.is_elliptic else "HYPERBOLIC"

    @property
    def ok(self) -> bool:
        """Flag of the status OK."""
        return self.status == "OK"

    @property
    def advice(self) -> str:
        """Sentence on the status: what happened, and what to try."""
        return ADVICE[self.status]

    @property
    def converged(self) -> bool:
        """Flag of an iteration that came to rest, whether the orbit fits or not."""
        return self._fit is not None and self._fit.converged

    @property
    def n_observations(self) -> int:
        """Number of all observations given, each counted once."""
        return len(self._observations)

    @property
    def n_used(self) -> int:
        """Number of observations that the orbit was fitted to."""
        return int(self._observations["used"].sum())

    @property
    def n_rejected(self) -> int:
        """Number of observations that were set aside."""
        return self.n_observations - self.n_used

    @property
    def n_steps(self) -> int:
        """Steps of the iteration, those of all stages and rounds together."""
        return 0 if self._fit is None else self._fit.n_steps

    # ------------------------------------------------------------------ the orbit

    @property
    def _solved(self) -> Fit:
        if self._fit is None:
            raise EstimationError(f"no orbit: {self.advice}", self)
        return self._fit

    @property
    def range_epoch(self) -> Time:
        """Instant of reception that range and range-rate belong to, that of the estimate, TDB."""
        return self._reference

    @property
    def range(self) -> u.Quantity:
        """Distance along the light path from the observer at `range_epoch`; NaN without orbit."""
        return (np.nan if self._fit is None else float(np.exp(self._fit.x[4]))) * u.au

    @property
    def range_error(self) -> u.Quantity:
        """Standard error of the range."""
        return self.range * (np.nan if self._fit is None else self._fit.covariance[4, 4] ** 0.5)

    @property
    def range_rate(self) -> u.Quantity:
        """Derivative of the range by time of reception."""
        return (np.nan if self._fit is None else float(self._fit.x[5])) * _AU_D

    @property
    def range_rate_error(self) -> u.Quantity:
        """Standard error of the range-rate."""
        return (np.nan if self._fit is None else self._fit.covariance[5, 5] ** 0.5) * _AU_D

    @property
    def epoch(self) -> Time:
        """Epoch of state and elements, of emission, TDB."""
        return Time(self._epoch, format="mjd", scale="tdb")

    @cached_property
    def _epoch(self) -> float:
        return float(self._solved.frame.states(self._solved.x[None])[2][0])

    @property
    def state(self) -> tuple[u.Quantity, u.Quantity, Time]:
        """Heliocentric position and velocity on ICRS axes, and their epoch.

        Raises
        ------
        EstimationError
            If there is no orbit.
        """
        r, v, _ = self._solved.frame.states(self._solved.x[None])
        return r[0] << u.au, v[0] << _AU_D, self.epoch

    @cached_property
    def elements(self) -> OrbitalElements:
        """Osculating elements, ecliptic J2000."""
        return OrbitalElements.from_state(*self.state)

    @property
    def orbit(self) -> Any:
        """Orbit of the poliastro family (boinor) on the ecliptic plane."""
        return to_orbit(*self.state)

    @property
    def covariance(self) -> FloatArray:
        """Covariance of position and velocity at `epoch`, shape (6, 6) [au, au/d]."""
        slope = self._along_axes(lambda x: self._solved.frame.states_at(x, self._epoch))
        return np.asarray(slope @ slope.T)

    @property
    def elements_covariance(self) -> FloatArray:
        """Covariance of q, ecc, inc, raan, argp and nu at `epoch`, shape (6, 6) [au, deg]."""
        slope = self._along_axes(self._elements_of)[:6]
        return np.asarray(slope @ slope.T)

    def _elements_of(self, x: FloatArray) -> FloatArray:
        """Elements [au, deg] of parameters, the last two a and the mean anomaly, shape (K, 8)."""
        r, v = np.split(self._solved.frame.states_at(x, self._epoch), 2, axis=1)
        orbit = OrbitalElements.from_state(r << u.au, v << _AU_D, self.epoch)
        return np.stack([getattr(orbit, name).value for name in (*_ELEMENTS, "a", "M")], axis=1)

    def _along_axes(self, function: Any) -> FloatArray:
        """Change of a function by a standard error along each axis of the covariance, (k, 6)."""
        fit, part = self._solved, 0.01
        # an error that the function bends under is not linear, whatever the step
        axes = part * np.linalg.cholesky(fit.covariance).T
        after, before = function(fit.x + axes), function(fit.x - axes)
        change = after - before
        # angles may pass through the full turn; no vector is as large in au
        change -= 360.0 * np.round(change / 360.0)
        return np.asarray(change.T / (2.0 * part))

    @property
    def absolute_magnitude(self) -> u.Quantity:
        """Absolute magnitude H, G = 0.15: the mean over the observations with a magnitude."""
        return self._h * u.mag

    # ------------------------------------------------------------------ the observations

    @property
    def residuals(self) -> QTable:
        """One row for each observation, in order of time.

        Columns: ``obstime``, ``station``, ``residual_east`` and ``residual_north`` (observed minus
        predicted), ``sigma_east`` and ``sigma_north`` (standard errors that the observation was
        given), ``chi2`` (square of the residual by its covariance), ``used``, and the ``reason`` of
        those that are not.
        """
        return self._observations.copy()

    @property
    def rms(self) -> u.Quantity:
        """Root mean square residual of the observations in use, each axis for itself."""
        rows = self._observations[self._observations["used"]]
        if not len(rows):
            return np.nan * u.arcsec
        square = rows["residual_east"] ** 2 + rows["residual_north"] ** 2
        return np.sqrt(0.5 * square.mean())

    @property
    def weighted_rms(self) -> float:
        """Root mean square residual in units of the errors, one where these are right."""
        if self._fit is None:
            return np.nan
        return float(np.sqrt(self._fit.total / max(2 * self.n_used - 6, 1)))

    @property
    def chi2(self) -> float:
        """Sum of squares of the residuals in use, in units of all errors."""
        return np.nan if self._fit is None else self._fit.total

    # ------------------------------------------------------------------ what follows

    def samples(self, n: int, rng: np.random.Generator | int) -> OrbitSamples:
        """Orbits drawn from the normal law of the covariance.

        Parameters
        ----------
        n : int
        rng : numpy.random.Generator or int
            Source of the random numbers; an int seeds a generator of its own.
        """
        check_count("n", n)
        fit = self._solved
        root = np.linalg.cholesky(fit.covariance)
        x = fit.x + np.random.default_rng(rng).standard_normal((n, 6)) @ root.T
        r, v, epoch = fit.frame.states(x)
        return OrbitSamples(
            np.exp(x[:, 4]) << u.au,
            x[:, 5] << _AU_D,
            r << u.au,
            v << _AU_D,
            Time(epoch, format="mjd", scale="tdb"),
            np.full(n, self._h) << u.mag,
            np.full(n, 1.0 / n),
        )

    def ephemeris(
        self,
        times: Time,
        station: Station = None,
        *,
        n: int = 1000,
        rng: np.random.Generator | int = 0,
        dynamics: str | None = None,
    ) -> Ephemeris:
        """Where the object will be on the sky: a cloud of directions at each instant.

        Parameters
        ----------
        times, station, n, rng
            As of `RangeEstimate.ephemeris`.
        dynamics : {None, "near-earth", "nbody"}
            Sun, Earth and Moon; or all planets as well. None takes that of the fit, but for
            "kepler", which no cloud follows: it takes "near-earth".
        """
        from neoranging.followup.ephemeris import Ephemeris

        own = "nbody" if self.dynamics == "nbody" else "near-earth"
        return Ephemeris(self.samples(n, rng), times, station, dynamics=dynamics or own)

    # ------------------------------------------------------------------ how it shows

    def to_table(self) -> QTable:
        """One row: the verdict, the range and the elements, each with its standard error.

        Columns: ``designation``, ``status``, ``epoch``, ``range``, ``range_rate``, ``a``, ``q``,
        ``ecc``, ``inc``, ``raan``, ``argp``, ``nu`` and ``M``, all of these with a column
        ``..._error`` beside them; ``rms``, ``weighted_rms``, ``n_used``, ``n_rejected`` and
        ``n_steps``. NaN where there is no orbit.
        """
        names = (*_ELEMENTS, "a", "M")
        values, errors = np.full((2, len(names)), np.nan)
        epoch = self.range_epoch
        if self._fit is not None:
            values = self._elements_of(self._fit.x[None])[0]
            errors = np.sqrt(np.sum(self._along_axes(self._elements_of) ** 2, axis=1))
            epoch = self.epoch
        units = dict.fromkeys(names, u.deg) | {"q": u.au, "a": u.au, "ecc": u.one}
        row: dict[str, Any] = {
            "designation": self.designation,
            "status": self.status,
            "epoch": epoch,
            **{name: getattr(self, name) for name in ("range", "range_error")},
            **{name: getattr(self, name) for name in ("range_rate", "range_rate_error")},
        }
        for name in ("a", *_ELEMENTS, "M"):
            k = names.index(name)
            row[name], row[f"{name}_error"] = values[k] * units[name], errors[k] * units[name]
        for name in ("rms", "weighted_rms", "n_used", "n_rejected", "n_steps"):
            row[name] = getattr(self, name)
        return QTable([row], meta={"dynamics": self.dynamics})

    def __astropy_table__(self, cls: type, copy: bool, **kwargs: Any) -> Any:
        return cls(self.to_table(), copy=copy, **kwargs)

    def __repr__(self) -> str:
        name = f" {self.designation}" if self.designation else ""
        n = self.n_observations
        if self._fit is None:
            return f"<OrbitSolution{name}: {self.status}, {many(n, 'observation')}>"
        span = np.ptp(self._observations["obstime"].mjd)
        return (
            f"<OrbitSolution{name}: {self.status}, {self.n_used} of {many(n, 'observation')} over "
            f'{span:.1f} d, {self.dynamics}, rms {self.rms.value:.2f}">'
        )

    def _repr_html_(self) -> str:
        rows = {"solution": repr(self), "advice": self.advice}
        if self._fit is not None:
            rows["range"] = f"{self.range.value:.8g} ± {self.range_error.value:.2g} au"
            rows["range rate"] = (
                f"{self.range_rate.value:.6g} ± {self.range_rate_error.value:.2g} au/d"
            )
            rows["elements"] = repr(self.elements)
            rows["weighted rms"] = f"{self.weighted_rms:.2f}"
        return html_table(rows)


def observation_rows(obstime: Time, station: Any, known: Any, fit: Fit | None) -> QTable:
    """Table of `OrbitSolution.residuals`.

    Parameters
    ----------
    obstime : Time, shape (n,)
    station : ndarray of str, shape (n,)
    known : ndarray of bool, shape (n,)
        Flags of observers whose place is known, which the fit is of.
    fit : Fit or None
    """
    numbers = np.full((len(station), 5), np.nan)
    used = np.zeros(len(station), dtype=bool)
    reason = np.where(known, "no orbit", "the place of the observer is not known").astype("U40")
    if fit is not None:
        sky = np.concatenate([fit.residual, fit.sigma], axis=1) / ARCSEC
        numbers[known] = np.column_stack([sky, fit.chi2])
        used[known] = fit.used
        text = [f"chi-square {value:.3g}" for value in numbers[:, 4]]
        reason = np.where(used, "", np.where(known, text, reason))
    names = ("residual_east", "residual_north", "sigma_east", "sigma_north")
    table = QTable({"obstime": obstime, "station": station})
    for name, column in zip(names, numbers.T, strict=False):
        table[name] = column << u.arcsec
    table["chi2"], table["used"], table["reason"] = numbers[:, 4], used, reason
    table.sort("obstime")
    return table
