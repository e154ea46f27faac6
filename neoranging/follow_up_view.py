"""Consequences of the posterior of a night: the part of an estimate that follows its draws."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from astropy import units as u
from astropy.table import QTable
from astropy.time import Time

from neoranging.arguments import check_count, check_field, value_in
from neoranging.core.posterior import RANGE_POWERS
from neoranging.core.status import RangeStatus
from neoranging.exceptions import EstimationError
from neoranging.orbits.samples import OrbitSamples
from neoranging.posterior_view import PosteriorView
from neoranging.typing import BoolArray

if TYPE_CHECKING:
    from neoranging.followup.ephemeris import Ephemeris, Station
    from neoranging.followup.impacts import Flown, Impacts


class FollowUpView(PosteriorView):
    """Base of estimates: where the draws of their posterior go, and what to do about it.

    A method without a posterior raises an `EstimationError` that names one which has it.
    """

    def ephemeris(
        self,
        times: Time,
        station: Station = None,
        *,
        n: int = 1000,
        rng: np.random.Generator | int = 0,
        dynamics: str = "near-earth",
    ) -> Ephemeris:
        """Where the object will be on the sky: a cloud of directions at each instant.

        Orbits drawn from the posterior are followed under Sun, Earth and Moon.

        Parameters
        ----------
        times : Time, shape () or (T,)
            Instants of reception, in any order, before or after the night.
        station : str, EarthLocation, or sequence of str (T,), optional
            Place of the observer, as an MPC code or a place; the centre of the Earth by default.
        n : int
            Orbits to draw for each tracklet.
        rng : numpy.random.Generator or int
            Source of the random numbers; an int seeds a generator of its own for each tracklet,
            which then has one answer, alone or among many.
        dynamics : {"near-earth", "nbody"}
            Sun, Earth and Moon; or all planets as well, with the extra ``nbody``.

        Returns
        -------
        Ephemeris
            Tracklets without an answer (``MISFIT``, no posterior) have NaN in one of many.

        Raises
        ------
        EstimationError
            If the method gives no posterior, or the estimate is of one tracklet that has no answer
            to go on with: its status says why.
        EphemerisError
            If an instant is outside the ephemeris, 1800 to 2200.
        UnknownStationError
            If a code is unknown or has no fixed place.
        MissingDependencyError
            For "nbody", without the extra.
        """
        from neoranging.followup.ephemeris import Ephemeris

        if isinstance(rng, np.random.Generator) or self._n_rows < 2:
            samples = self._usable_samples(n, rng)
        else:
            rows = (self[[k]] for k in range(self._n_rows))
            samples = OrbitSamples._of_rows([row._usable_samples(n, rng) for row in rows])
        labels = self._tracklets._labels
        return Ephemeris(samples, times, station, labels=labels, dynamics=dynamics)

    def impacts(
        self,
        within: u.Quantity = 30.0 * u.d,
        *,
        prior: str | None = None,
        n: int = 10_000,
        rng: np.random.Generator | int = 0,
        dynamics: str = "near-earth",
    ) -> Impacts:
        """How probably the object meets the Earth, when and where; and how near it comes.

        Orbits drawn from the posterior are followed under Sun, Earth and Moon.

        Parameters
        ----------
        within : Quantity
            Time from the epoch of the estimate until which they are followed.
        prior : {None, "log-uniform", "uniform"}
            None takes the posterior of the estimate. The others put its likelihood under a prior
            uniform in the logarithm of the range, as a watch for impacts wants it, or in the range.
        n : int
            Orbits to draw for each tracklet.
        rng : numpy.random.Generator or int
            Source of the random numbers; an int seeds a generator of its own for each tracklet,
            which then has one answer, alone or among many.
        dynamics : {"near-earth", "nbody"}
            Sun, Earth and Moon; or all planets as well, some hundred times slower, with the extra
            ``nbody``.

        Returns
        -------
        Impacts
            Tracklets without an answer (``MISFIT``, no posterior) have NaN in one of many.

        Raises
        ------
        EstimationError
            If the method gives no posterior, or the estimate is of one tracklet that has no answer
            to go on with: its status says why.
        EphemerisError
            If the flights leave the ephemeris, 1800 to 2200.
        MissingDependencyError
            For "nbody", without the extra.

        Examples
        --------
        >>> import neoranging as nr
        >>> tracklet = nr.read_tracklets(nr.sample("impactors"))[4]
        >>> impacts = tracklet.estimate(method="systematic").impacts()
        >>> impacts.probability
        1.0
        >>> print(impacts.time_quantile(0.5).iso[:13])
        2014-01-02 02
        """
        from neoranging.followup.impacts import Flown, Impacts

        parts = list(self._flights(within, prior, n, rng, dynamics))
        parts.append(Flown.none(0, n))  # for an estimate of no tracklets
        flown = Flown(*(np.concatenate(column) for column in zip(*parts, strict=True)))
        status = np.array([member.name for member in RangeStatus])[self._answers.status]
        return Impacts(flown, within, prior, self._tracklets._labels, status, self._scalar)

    def impact_probability(
        self,
        within: u.Quantity = 30.0 * u.d,
        *,
        prior: str | None = None,
        n: int = 10_000,
        rng: np.random.Generator | int = 0,
        dynamics: str = "near-earth",
    ) -> Any:
        """Probability that the object meets the Earth, the share of draws that do.

        The arguments are those of `impacts`, which also says how exact it is. Nothing is kept of
        the draws: thousands of tracklets take no more memory than one.

        Returns
        -------
        float, or ndarray of shape (M,)
            NaN of those of many tracklets that have no answer.

        Examples
        --------
        >>> import neoranging as nr
        >>> tracklet = nr.read_tracklets(nr.sample("impactors"))[4]
        >>> tracklet.estimate(method="systematic").impact_probability(prior="log-uniform")
        1.0
        """
        flights = self._flights(within, prior, n, rng, dynamics)
        counts = np.array([(one.falls.sum(), one.is_followed.sum()) for one in flights])
        falls, followed = counts.reshape(-1, 2).T
        with np.errstate(invalid="ignore"):
            return self._value(falls / followed)

    def priority(
        self,
        times: Time,
        station: Station = None,
        *,
        field: u.Quantity = 0.5 * u.deg,
        limit: u.Quantity | None = None,
        min_altitude: u.Quantity = 20.0 * u.deg,
        within: u.Quantity = 30.0 * u.d,
        n: int = 1000,
        rng: np.random.Generator | int = 0,
    ) -> QTable:
        """Tracklets in order of what it would teach to observe them once more.

        The worth of a tracklet is the expected drop of the entropy of its range by a second
        position, times the chance that it is a near-Earth object, times the chance to find it.
        Possible impactors come first, whatever their worth.

        Parameters
        ----------
        times : Time, shape () or (T,)
            Instants at which a second position could be observed; of several, each tracklet gets
            the one of greatest worth.
        station : str or EarthLocation, optional
            Place of the telescope, as in `ephemeris`. Altitudes do not count without one.
        field : Quantity
            Side of its square field of view.
        limit : Quantity, optional
            Its magnitude limit, in the band V.
        min_altitude : Quantity
            Least altitude at which it observes.
        within : Quantity
            Time within which an impact counts.
        n : int
            Orbits to draw for each tracklet and prior. Chances below 1 / n are not seen.
        rng : numpy.random.Generator or int
            Source of the random numbers; an int seeds a generator of its own.

        Returns
        -------
        QTable
            One row a tracklet, in order, none left out; those that nothing follows from
            (``MISFIT``, no posterior) come last.

            - ``index``: row of the tracklet in this estimate; ``tracklet``, ``designation``
            - ``time``: the instant; ``ra``, ``dec``: pointing that finds it most probably
            - ``bits``: expected drop of the entropy of the logarithm of the range, down to 1 % of
              the range, by one position with an error of 0.3 arcseconds
            - ``neo``: chance that it is a near-Earth object
            - ``impact``, ``impact_log_uniform``: chances that it hits the Earth, under the prior of
              this estimate and under the log-uniform one; ``possible_impactor``: the first is 0.01
              or more, or the second 0.5 or more
            - ``in_field``: chance that the pointing holds it
            - ``bright``: chance that it is brighter than the limit; 1 without a magnitude
            - ``altitude``, ``sun_altitude``: of the middle of the cloud
            - ``worth``: ``neo * bits * in_field * bright``; 0 below the least altitude or where the
              Sun is above -12 degrees
            - ``status``, ``remark``: why the tracklet stands where it stands

        Raises
        ------
        EstimationError
            If the method gives no posterior, or an argument is not of its kind.
        EphemerisError
            If an instant is outside the ephemeris, 1800 to 2200.
        UnknownStationError
            If a code is unknown or has no fixed place.
        """
        from neoranging.followup.priority import ranking

        side = check_field(field)
        faintest = np.inf if limit is None else value_in("limit", limit, u.mag)
        lowest = value_in("min_altitude", min_altitude, u.deg, between=(-90.0, 90.0))
        many = self._take(np.arange(self._n_rows), scalar=False)
        sky = many.ephemeris(times, station, n=n, rng=rng)
        chances = [
            many.impact_probability(within, prior=prior, n=n, rng=rng)
            for prior in (None, "log-uniform")
        ]
        return ranking(
            many,
            sky,
            np.stack(chances, axis=1),
            field=side,
            limit=faintest,
            min_altitude=lowest,
        )

    def _flights(
        self,
        within: u.Quantity,
        prior: str | None,
        n: int,
        rng: np.random.Generator | int,
        dynamics: str,
    ) -> Iterator[Flown]:
        """Flights of the draws of one tracklet after the other."""
        from neoranging.followup.impacts import flights

        days = value_in("within", within, u.d)
        if days <= 0.0:
            raise EstimationError(f"within must be a positive time, got {within}")
        check_count("n", n)
        estimate = self._under(prior)
        if self._scalar:
            draws: Iterable[OrbitSamples | None] = [estimate._usable_samples(n, rng)]
        else:
            draws = (
                one._usable_samples(n, rng) if is_usable else None
                for one, is_usable in zip(estimate, self._is_usable, strict=True)
            )
        return flights(draws, n, self._answers.attributables.epoch, days, dynamics)

    def _under(self, prior: str | None) -> Self:
        """The estimate with its likelihood under another prior; range and status stay."""
        if prior is None:
            return self
        if prior not in RANGE_POWERS:
            raise EstimationError(
                f"prior must be None, for that of the estimate, or {', '.join(RANGE_POWERS)}; got "
                f"{prior!r}: for another, estimate(method='systematic', prior=...)"
            )
        posterior = self._posterior.under_power(RANGE_POWERS[prior])
        other = self._take(np.arange(self._n_rows), self._scalar)
        other._answers = replace(self._answers, posterior=posterior)
        return other

    @property
    def _is_usable(self) -> BoolArray:
        """Flags of tracklets that something follows from, shape (M,)."""
        return (self._answers.status != RangeStatus.MISFIT.code) & self._posterior.has_any

    def _usable_samples(self, n: int, rng: np.random.Generator | int) -> OrbitSamples:
        """Samples that something may be concluded from, states NaN of a misfit among many."""
        check_count("n", n)
        usable = self._is_usable
        if self._scalar and not usable[0]:
            status = RangeStatus.from_code(self._answers.status[0])
            raise EstimationError(
                f"nothing follows from a tracklet with the status {status.name}: {status.advice}",
                self,
            )
        samples = self.samples(n, rng)
        if not self._scalar:
            samples.r[~usable] = samples.v[~usable] = np.nan
        return samples
