"""`RangeEstimate`: a range and range-rate that remember how they were obtained."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from astropy import units as u
from astropy.table import QTable
from astropy.time import Time
from scipy.special import ndtri

from neoranging.arguments import check_level
from neoranging.attributable import Attributable
from neoranging.calibration import Calibration
from neoranging.constants import ARCSEC, GM_SUN
from neoranging.core.answers import Answers, Candidates
from neoranging.core.conformal import QUANTITIES
from neoranging.core.prediction import sky_residuals
from neoranging.core.status import RangeStatus
from neoranging.exceptions import EstimationError
from neoranging.follow_up_view import FollowUpView
from neoranging.orbits.elements import OrbitalElements, to_orbit
from neoranging.posterior_view import AU_D, TABLE_LEVEL, tails
from neoranging.records import many
from neoranging.typing import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from collections.abc import Iterable

    from astropy.coordinates import SkyCoord

    from neoranging.orbits.samples import OrbitSamples
    from neoranging.orbits.solution import OrbitSolution
    from neoranging.tracklet import Tracklet, TrackletSet


_STATUSES: Final = np.array(list(RangeStatus), dtype=object)
"""Statuses by their codes."""


class RangeEstimate(FollowUpView):
    """Range and range-rate of one tracklet (scalars) or of M tracklets (arrays), with a verdict.

    Look at `status` first: only ``OK`` means that the observations determine the range.
    ``POPULATION``, the usual status of learned methods and of posteriors, means that the answer
    rests on where objects that move like this mostly are: quote `interval`. Any other status says
    what happened and what to try, and the numbers beside it are what the method printed.

    Made by estimators; immutable. An estimate of M tracklets has a length, can be iterated and
    indexed, and ``QTable(estimate)`` or ``estimate.to_table()`` makes a table of it.
    """

    def __init__(
        self,
        answers: Answers,
        tracklets: TrackletSet,
        calibration: Calibration | None = None,
        *,
        scalar: bool = False,
    ) -> None:
        self._answers, self._tracklets, self._calibration = answers, tracklets, calibration
        self._attributable = Attributable._from_arrays(answers.attributables, scalar)
        self._scalar = scalar

    def _take(self, rows: IntArray, scalar: bool) -> RangeEstimate:
        return RangeEstimate(
            self._answers.take(rows), self._tracklets._take(rows), self.calibration, scalar=scalar
        )

    @property
    def attributable(self) -> Attributable:
        """Direction and motion that were observed, at the epoch of the estimate."""
        return self._attributable

    @property
    def calibration(self) -> Calibration | None:
        """Calibration that `interval` comes from; None if the method was not calibrated."""
        return self._calibration

    # ------------------------------------------------------------------ the numbers

    @property
    def epoch(self) -> Time:
        """Instant of reception that range and range-rate belong to, TDB."""
        return self.attributable.epoch

    @property
    def range(self) -> u.Quantity:
        """Distance along the light path from the origin; NaN only where `status` says why."""
        return self._quantity(self._answers.rho, u.au)

    @property
    def range_rate(self) -> u.Quantity:
        """Derivative of the range by time of reception."""
        return self._quantity(self._answers.rho_dot, AU_D)

    @property
    def coord(self) -> SkyCoord:
        """Direction at the epoch with the range as its distance, ICRS axes; from the origin."""
        from astropy.coordinates import SkyCoord

        a = self.attributable
        return SkyCoord(a.ra, a.dec, distance=self.range, obstime=self.epoch, frame="icrs")

    @property
    def range_error(self) -> u.Quantity:
        """Root mean square error of the range, linearised from the errors of the observations.

        These are as large as the scatter of the arc has them (``neoranging.core.noise``), which is
        mostly less than they claim. Of a network with a second output it is the network's own
        estimate of its error, the range-rate's likewise; of one without, NaN.
        """
        return self._quantity(self._answers.rho_error, u.au)

    @property
    def range_rate_error(self) -> u.Quantity:
        """Standard error of the range-rate, linearised from the errors of the observations."""
        return self._quantity(np.sqrt(self._answers.covariance[:, 1, 1]), AU_D)

    @property
    def status(self) -> Any:
        """`RangeStatus`, or an array of them, shape (M,); ``.advice`` says what to try."""
        return self._value(_STATUSES[self._answers.status])

    @property
    def ok(self) -> Any:
        """Flag of the status OK, bool or shape (M,)."""
        return self._value(self._answers.ok)

    @property
    def diagnostics(self) -> Any:
        """Remarks beside the status, str or shape (M,); mostly empty.

        They name the observation that is worst of a misfit, the station that has no place, the
        range that observations determine where the answer is another, and the features by which a
        tracklet leaves the domain of a training.
        """
        remarks = self._answers.remarks
        if remarks is None:
            remarks = np.full(self._n_rows, "")
        return self._value(remarks.astype(np.str_))

    @property
    def admissible(self) -> Any:
        """Flag of an estimate in the admissible region whose orbit is bound, bool or (M,)."""
        return self._value(self._answers.admissible)

    # ------------------------------------------------------------------ intervals

    def interval(
        self,
        confidence_level: float = TABLE_LEVEL,
        *,
        of: str = "range",
        calibrated: bool = True,
    ) -> u.Quantity:
        """Interval of the range, or of the range-rate, that can be quoted at a level.

        Of a method with a posterior, the quantiles that leave the same probability out on either
        side. Of a calibrated method, the interval that held for this share of arcs of a like proper
        motion and length that it had never seen, whether its answer was OK or not. Otherwise, where
        the status is OK, the propagated errors of the observations: their size is uncertain, so the
        interval of a high level is wider than `range_error` as that of a normal law would have it
        (that of the range-rate is of a normal law). None reaches beyond the admissible region.
        Elsewhere nothing narrower than all that is admissible holds, and that is returned whatever
        the level.

        Parameters
        ----------
        confidence_level : float
            Between 0 and 1.
        of : {"range", "range_rate"}
            Number that the interval is of.
        calibrated : bool
            False asks for what the observations alone say, as of a method without calibration.

        Returns
        -------
        Quantity, shape (..., 2)
            Lower and upper bound; NaN where no range is admissible.

        Raises
        ------
        EstimationError
            If the level does not lie between 0 and 1, or there is no such number.
        ConformalError
            If the method was calibrated on too few arcs for the level, for an answer that is OK;
            or for the range alone, as calibrations of former versions are.

        Examples
        --------
        >>> import neoranging as nr
        >>> night = nr.read_tracklets(nr.sample("2024YR4"))[1]
        >>> estimate = night.estimate(method="systematic")
        >>> print(estimate.interval(0.95).round(2))
        [0.01 0.11] AU
        >>> print(estimate.interval(0.95, of="range_rate").round(2))
        [0.   0.01] AU / d
        """
        check_level("confidence_level", confidence_level)
        if of not in QUANTITIES:
            raise EstimationError(f"of must be one of {QUANTITIES}, got {of!r}")
        calibration = self.calibration if calibrated else None
        bounds = self._bounds(confidence_level, calibration, of)
        return self._quantity(bounds, u.au if of == "range" else AU_D)

    def _bounds(
        self,
        confidence_level: float,
        calibration: Calibration | None,
        of: str = "range",
        too_few: str = "raise",
    ) -> FloatArray:
        """Bounds of `interval`, (M, 2) [au] or [au/d]; ``too_few`` as in `Calibration.bounds`."""
        s, level = self._answers, confidence_level
        is_range = of == "range"
        limits = s.limits if is_range else s.rate_limits
        # a calibration of the range alone leaves the range-rate to the posterior, if there is one
        if calibration is not None and (s.posterior is None or of in calibration.quantities):
            span = self._tracklets._span
            return calibration.bounds(s, span, limits, level, of=of, too_few=too_few)
        quantiles = None
        if (posterior := s.posterior) is not None:
            quantile = posterior.quantile if is_range else posterior.rate_quantile
            quantiles = quantile(tails(level))
        if is_range:
            return _within(limits, s.rho, s.error_quantile(level), s.ok, quantiles)
        half = ndtri(0.5 + 0.5 * level) * np.sqrt(s.covariance[:, 1, 1])
        return _within(limits, s.rho_dot, half, s.ok & np.isfinite(half), quantiles)

    # ------------------------------------------------------------------ what it implies

    @cached_property
    def candidates(self) -> QTable:
        """All roots of a classical method with what each implies, one row each.

        Columns: ``tracklet`` (index; 0 for one tracklet), ``range``, ``range_rate``, their standard
        errors, ``semimajor_axis`` (negative if unbound to the Sun), ``admissible``, ``residual``
        (root mean square over all observations), ``converged``, ``plausible`` and ``chosen``. No
        rows for methods without candidates.
        """
        candidates = self._answers.candidates or Candidates.none()
        roots = candidates.roots
        with np.errstate(divide="ignore"):
            semimajor = -0.5 * GM_SUN / candidates.energy
        return QTable(
            {
                "tracklet": roots.arc,
                "range": roots.rho << u.au,
                "range_error": np.sqrt(roots.covariance[:, 0, 0]) << u.au,
                "range_rate": roots.rho_dot << AU_D,
                "range_rate_error": np.sqrt(roots.covariance[:, 1, 1]) << AU_D,
                "semimajor_axis": semimajor << u.au,
                "admissible": candidates.admissible,
                "residual": (candidates.residual / ARCSEC) << u.arcsec,
                "converged": roots.converged,
                "plausible": candidates.plausible,
                "chosen": candidates.chosen,
            }
        )

    @property
    def state(self) -> tuple[u.Quantity, u.Quantity, Time]:
        """Heliocentric position and velocity on ICRS axes, and their epoch (of emission, TDB).

        Of many tracklets, those without a solution have NaN vectors and the epoch of their
        attributable (of reception, as no distance tells the emission).

        Raises
        ------
        EstimationError
            If the estimate is of one tracklet, and that has no solution.
        """
        s = self._answers
        if self._scalar and not np.isfinite(s.rho[0]):
            raise EstimationError(f"no orbit: {self.status.advice}", self)
        solved = np.isfinite(s.epoch)
        epoch = Time(
            np.where(solved, s.epoch, self.attributable._arrays.epoch), format="mjd", scale="tdb"
        )
        return (
            self._quantity(s.r, u.au),
            self._quantity(s.v, AU_D),
            epoch[0] if self._scalar else epoch,
        )

    @property
    def elements(self) -> OrbitalElements:
        """Osculating elements, ecliptic J2000.

        NaN for those of many tracklets without a solution, at the epoch of their attributable.

        Raises
        ------
        EstimationError
            If the estimate is of one tracklet, and that has no solution.
        """
        return OrbitalElements.from_state(*self.state)

    @property
    def orbit(self) -> Any:
        """Orbit of the poliastro family (boinor) on the ecliptic plane; one tracklet only.

        Raises
        ------
        EstimationError
            If there is no estimate, or there are many: index them, or use `elements`.
        """
        if not self._scalar:
            raise EstimationError(
                f"orbit is for one tracklet, this estimate has {len(self)}: index it, or use "
                ".elements, which takes them all",
                self,
            )
        return to_orbit(*self.state)

    def residuals(self) -> u.Quantity:
        """Observed minus predicted positions, east and north, shape (n, 2); NaN without estimate.

        The orbit of the estimate is propagated to each observation as a two-body orbit with light
        time; n runs over the observations of all tracklets in order.
        """
        s = self._answers
        offsets = sky_residuals(self._tracklets.arcs(self.origin), s.r, s.v, s.epoch)
        return (offsets / ARCSEC) << u.arcsec

    def refine(
        self,
        more: Tracklet | Iterable[Tracklet] | None = None,
        *,
        start: OrbitalElements | OrbitSamples | None = None,
        dynamics: str = "near-earth",
        errors: str = "law",
        reject: bool = True,
        by_night: bool = True,
    ) -> OrbitSolution:
        """Orbit by least squares through all observations of several nights; one tracklet only.

        Differential corrections, from the estimate as the first guess. The nights next to it come
        in first, and those beyond as the arc doubles, so that a poor guess is led to the orbit.
        Observations that do not fit are set aside, and come back where they do.

        Parameters
        ----------
        more : Tracklet, TrackletSet or iterable of Tracklet, optional
            Further tracklets of the object, before or after. That of the estimate may be among
            them.
        start : OrbitalElements or OrbitSamples, optional
            First guess in place of the estimate: elements, or orbits drawn from a posterior, which
            are tried one after the other until one leads to an orbit that fits all observations.
        dynamics : {"near-earth", "kepler", "nbody"}
            Sun, Earth and Moon; the Sun alone; or all planets as well, with the extra ``nbody``,
            as arcs of more than a month need it.
        errors : {"law", "claimed"}
            Weights by the law of the errors, ``neoranging.core.noise``: the scatter of each visit
            as it is seen, an offset that its observations share, and the clock. Or the standard
            deviations that the observations carry, independent of one another.
        reject : bool
            Set observations aside that do not fit.
        by_night : bool
            Add nights one after the other; False takes all of them at once.

        Returns
        -------
        OrbitSolution
            Look at its ``status``: a fit that fails is a solution too.

        Raises
        ------
        EstimationError
            If the estimate is of many tracklets, or an argument is not of its kind.
        MissingDependencyError
            For "nbody", without the extra.

        Warns
        -----
        NeoRangingWarning
            If tracklets have different designations.

        Examples
        --------
        >>> import neoranging as nr
        >>> nights = nr.read_tracklets(nr.sample("2024YR4"))
        >>> solution = nights[1].estimate(method="mlp").refine(more=nights, dynamics="kepler")
        >>> solution.status, solution.n_used
        ('OK', 14)
        """
        from neoranging.followup.refinement import refined, starts_of

        if not self._scalar:
            raise EstimationError(
                f"refine is for one tracklet, this estimate has {len(self)}: index it, and give "
                "the other nights of the object as more=",
                self,
            )
        s = self._answers
        own = [(s.r[0], s.v[0], float(s.epoch[0]))]
        return refined(
            self._tracklets[0],
            more,
            own if start is None else starts_of(start),
            self.epoch,
            dynamics=dynamics,
            errors=errors,
            reject=reject,
            by_night=by_night,
        )

    # ------------------------------------------------------------------ how it shows

    def to_table(self) -> QTable:
        """One row per tracklet: the numbers, the verdict and the motion they come from.

        Columns: ``tracklet`` (its id, or its number), ``designation``, ``station`` (codes with
        commas between), ``epoch``, ``range`` and ``range_rate`` with their standard errors,
        ``range_low`` and ``range_high``, ``range_rate_low`` and ``range_rate_high`` (`interval` at
        the level 0.68), ``status``, ``admissible``, ``proper_motion``, ``curvature_significance``
        and ``n_observations``.
        """
        s, a = self._answers, self.attributable._arrays
        (low, high), (rate_low, rate_high) = (
            self._bounds(TABLE_LEVEL, self.calibration, of, too_few="limits").T for of in QUANTITIES
        )
        return QTable(
            {
                "tracklet": self._tracklets._labels,
                "designation": self._tracklets.designation,
                "station": self._tracklets.stations,
                "epoch": Time(a.epoch, format="mjd", scale="tdb"),
                "range": s.rho << u.au,
                "range_error": s.rho_error << u.au,
                "range_low": low << u.au,
                "range_high": high << u.au,
                "range_rate": s.rho_dot << AU_D,
                "range_rate_error": np.sqrt(s.covariance[:, 1, 1]) << AU_D,
                "range_rate_low": rate_low << AU_D,
                "range_rate_high": rate_high << AU_D,
                "status": np.array([member.name for member in RangeStatus])[s.status],
                "admissible": s.admissible,
                "proper_motion": a.proper_motion << u.rad / u.d,
                "curvature_significance": a.curvature_significance,
                "n_observations": self._tracklets.counts,
            },
            meta={"method": self.method, "origin": self.origin},
        )

    def plot(self, ax: Any = None, **options: Any) -> Any:
        """Draw the admissible region with the posterior and the candidates; one tracklet only.

        See :func:`neoranging.plotting.plot_estimate`.
        """
        from neoranging.plotting.estimate import plot_estimate

        return plot_estimate(self, ax=ax, **options)

    def __repr__(self) -> str:
        if self._scalar:
            return (
                f"<RangeEstimate {self.method}, {self.origin}: {self.range.value:.5g} au, "
                f"{self.range_rate.value:+.4g} au/d, {self.status.name}>"
            )
        names, counts = np.unique(self._answers.status, return_counts=True)
        verdicts = ", ".join(
            f"{RangeStatus.from_code(c).name} {n}" for c, n in zip(names, counts, strict=True)
        )
        summary = f"{self.method}, {self.origin}: {many(len(self), 'tracklet')}"
        return f"<RangeEstimate {summary}{f' ({verdicts})' if verdicts else ''}>"

    def _summary(self) -> dict[str, str]:
        (low, high), (rate_low, rate_high) = (
            self._bounds(TABLE_LEVEL, self.calibration, of, too_few="limits")[0]
            for of in QUANTITIES
        )
        rows = {
            "method": f"{self.method}, {self.origin}",
            "epoch": self.epoch.isot + " TDB",
            "range": f"{self.range.value:.6g} ± {self.range_error.value:.2g} au",
            f"{TABLE_LEVEL:.0%} interval": f"{low:.4g} to {high:.4g} au",
            "range rate": f"{self.range_rate.value:.4g} ± {self.range_rate_error.value:.2g} au/d",
            f"its {TABLE_LEVEL:.0%} interval": f"{rate_low:.4g} to {rate_high:.4g} au/d",
            "status": f"{self.status.name}: {self.status.advice}",
        }
        if self.diagnostics:
            rows["diagnostics"] = self.diagnostics
        return rows


def _within(
    limits: FloatArray,
    value: FloatArray,
    half: FloatArray,
    ok: BoolArray,
    quantiles: FloatArray | None,
) -> FloatArray:
    """Intervals within limits, (M, 2): of quantiles, of half-widths, or the limits."""
    bounds = np.where(ok[:, None], np.stack([value - half, value + half], axis=1), limits)
    if quantiles is not None:
        bounds = np.where(np.isfinite(quantiles), quantiles, bounds)
    low, high = limits.T
    return np.stack([np.fmax(bounds[:, 0], low), np.fmin(bounds[:, 1], high)], axis=1)
