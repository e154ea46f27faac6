"""What the posterior of a night says, with units: the part of an estimate that follows from it."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from astropy import units as u
from astropy.time import Time

from neoranging.arguments import check_level, values_in
from neoranging.core.admissible import absolute_magnitude
from neoranging.core.answers import Answers
from neoranging.core.arcs import Arcs
from neoranging.core.posterior import Posterior
from neoranging.core.posterior_orbits import Refit, drawn, orbits_of_nodes
from neoranging.ephemeris.states import attractors
from neoranging.exceptions import EstimationError
from neoranging.one_or_many import OneOrMany
from neoranging.orbits.classes import statement_holds
from neoranging.orbits.elements import OrbitalElements
from neoranging.orbits.samples import OrbitSamples
from neoranging.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from neoranging.tracklet import TrackletSet


TABLE_LEVEL = 0.68
"""Confidence level of the interval in tables, and of any where none is asked for."""

AU_D = u.au / u.d

_FITTED = ("systematic", "posterior")
"""Methods whose nodes are fits to all observations: their orbits have the errors of the night."""


class PosteriorView(OneOrMany):
    """Base of estimates: answers to tracklets, and what their posterior says where they have one.

    A method without a posterior raises an `EstimationError` that names one which has it.
    """

    _answers: Answers
    _tracklets: TrackletSet

    @property
    def _n_rows(self) -> int:
        return len(self._answers)

    @property
    def method(self) -> str:
        """Name of the estimator."""
        return self._answers.method

    @property
    def origin(self) -> str:
        """Origin of range and range-rate, ``"topocenter"`` or ``"geocenter"``."""
        return self._answers.origin

    @property
    def _posterior(self) -> Posterior:
        """Posterior of the method, or an error that names those that have one."""
        if self._answers.posterior is None:
            raise EstimationError(
                f"the method {self.method!r} gives no posterior: estimate with "
                'method="systematic", or quote .interval(), which has the range-rate too',
                self,
            )
        return self._answers.posterior

    @property
    def _refit(self) -> Refit | None:
        """Fit of the attributable to all observations at a range and range-rate, if there is."""
        if self.method not in _FITTED:
            return None
        from neoranging.core.error_draws import drawn_corrections
        from neoranging.core.sightings import nights
        from neoranging.core.systematic import complete

        # of arcs that were not ranged the place of the observer may be missing
        ranged = np.flatnonzero(self._posterior.has_any)
        arcs, attributables = self._arcs.take(ranged), self._answers.attributables.take(ranged)
        night = nights(arcs, attributables, attractors(attributables.epoch, arcs.span))

        def refit(
            row: IntArray,
            rho: FloatArray,
            rho_dot: FloatArray,
            rng: np.random.Generator | None,
        ) -> FloatArray:
            change, some = np.full((len(row), 4), np.nan), np.isfinite(rho)
            points = np.searchsorted(ranged, row[some]), rho[some], rho_dot[some]
            if rng is None:
                change[some] = complete(night, *points).fit
            else:
                change[some] = drawn_corrections(night, *points, rng)
            return change

        return refit

    def samples(self, n: int, rng: np.random.Generator | int) -> OrbitSamples:
        """Orbits drawn from the posterior, all of them admissible.

        Parameters
        ----------
        n : int
            Number for each tracklet.
        rng : numpy.random.Generator or int
            Source of the random numbers; an int seeds a generator of its own.

        Returns
        -------
        OrbitSamples
            Of shape (n,), or (M, n) of M tracklets; NaN where there is no posterior.

        Raises
        ------
        EstimationError
            If the method gives no posterior.

        Examples
        --------
        >>> import neoranging as nr
        >>> night = nr.read_tracklets(nr.sample("2024YR4"))[1]
        >>> estimate = night.estimate(method="systematic")
        >>> orbits = estimate.samples(1000, rng=1)
        >>> orbits
        <OrbitSamples: 1000 orbits>
        >>> orbits.elements
        <OrbitalElements of 1000 orbits, 1000 elliptic, ecliptic J2000>
        """
        s, posterior = self._answers, self._posterior
        generator = np.random.default_rng(rng)
        rho, rho_dot, orbits = drawn(s, posterior, n, generator, self._refit)
        shape = rho.shape[1:] if self._scalar else rho.shape
        # a tracklet without a posterior keeps the epoch of its attributable, as in `state`
        reception = np.broadcast_to(s.attributables.epoch[:, None], rho.shape).ravel()
        epoch = np.where(np.isfinite(orbits.epoch), orbits.epoch, reception)
        return OrbitSamples(
            rho.reshape(shape) << u.au,
            rho_dot.reshape(shape) << AU_D,
            orbits.r.reshape(*shape, 3) << u.au,
            orbits.v.reshape(*shape, 3) << AU_D,
            Time(epoch.reshape(shape), format="mjd", scale="tdb"),
            self._magnitude_at(rho).reshape(shape) << u.mag,
            np.full(shape, 1.0 / max(n, 1)),
        )

    def pdf(self, rho: u.Quantity) -> u.Quantity:
        """Posterior density of the range, per au.

        Parameters
        ----------
        rho : Quantity
            Ranges: any shape for one tracklet; for M tracklets a scalar, or shape (M, ...), a row
            for each.

        Examples
        --------
        >>> import neoranging as nr
        >>> night = nr.read_tracklets(nr.sample("2024YR4"))[1]
        >>> estimate = night.estimate(method="systematic")
        >>> from astropy import units as u
        >>> print(estimate.pdf([0.02, 0.2] * u.au).round(-1))
        [10.  0.] 1 / AU
        """
        au = self._of_each(rho)
        with np.errstate(divide="ignore", invalid="ignore"):
            return self._quantity(np.exp(self._posterior.log_pdf(au)) / au, 1.0 / u.au)

    def cdf(self, rho: u.Quantity) -> Any:
        """Posterior probability of a shorter range.

        Parameters
        ----------
        rho : Quantity
            As for `pdf`.

        Examples
        --------
        >>> import neoranging as nr
        >>> night = nr.read_tracklets(nr.sample("2024YR4"))[1]
        >>> estimate = night.estimate(method="systematic")
        >>> from astropy import units as u
        >>> print(estimate.cdf([0.01, 0.1] * u.au).round(1))
        [0. 1.]
        """
        below = self._posterior.cdf(self._of_each(rho))
        return below[0] if self._scalar else below

    def quantile(self, q: npt.ArrayLike) -> u.Quantity:
        """Ranges below which shares of the probability lie.

        Parameters
        ----------
        q : array_like
            Between 0 and 1.

        Returns
        -------
        Quantity, shape (...) or (M, ...)

        Examples
        --------
        >>> import neoranging as nr
        >>> night = nr.read_tracklets(nr.sample("2024YR4"))[1]
        >>> estimate = night.estimate(method="systematic")
        >>> print(estimate.quantile([0.05, 0.5, 0.95]).round(2))
        [0.02 0.05 0.1 ] AU
        """
        q = np.asarray(q, dtype=np.float64)
        if not ((q >= 0.0) & (q <= 1.0)).all():
            raise EstimationError(f"q must lie between 0 and 1, got {q}")
        return self._quantity(self._posterior.quantile(q), u.au)

    @property
    def mode(self) -> tuple[u.Quantity, u.Quantity]:
        """Range and range-rate where the posterior density in their plane is highest."""
        rho, rho_dot = self._posterior.mode.T
        return self._quantity(rho, u.au), self._quantity(rho_dot, AU_D)

    @property
    def evidence(self) -> Any:
        """Natural logarithm of the evidence: of the integral of likelihood times prior.

        It has a constant of the prior and of the number of observations: under one prior its
        differences count, as between two ways to take as many observations for one object.
        """
        return self._value(self._posterior.log_evidence)

    def probability(self, statement: str | Callable[[OrbitalElements], Any]) -> Any:
        """Posterior probability of a statement about the orbit.

        A sum over the nodes of the posterior, not over draws: it has no error of chance.

        Parameters
        ----------
        statement : str or callable
            ``"neo"``, ``"atira"``, ``"aten"``, ``"apollo"``, ``"amor"``, ``"main-belt"``, with the
            limits of JPL; ``"moid<0.05"`` of the least distance from the Earth's orbit, with any
            number of au; or a function that takes `OrbitalElements` of many orbits and returns a
            flag, or a probability, for each.

        Returns
        -------
        float, or ndarray of shape (M,)
            NaN where there is no posterior.

        Raises
        ------
        EstimationError
            If the method gives no posterior, or the function does not return one value per orbit.
        OrbitError
            If there is no statement of that name.

        Examples
        --------
        >>> import neoranging as nr
        >>> night = nr.read_tracklets(nr.sample("2024YR4"))[1]
        >>> estimate = night.estimate(method="systematic")
        >>> round(estimate.probability("apollo"), 1)
        0.8
        >>> round(estimate.probability(lambda orbit: orbit.ecc > 0.5), 1)
        0.8
        """
        s, posterior = self._answers, self._posterior
        holds = np.zeros(len(posterior.rho))
        for nodes, orbits in orbits_of_nodes(s, posterior, self._refit):
            epoch = Time(orbits.epoch, format="mjd", scale="tdb")
            elements = OrbitalElements.from_state(orbits.r << u.au, orbits.v << AU_D, epoch)
            if isinstance(statement, str):
                holds[nodes] = statement_holds(statement, elements)
                continue
            values = np.asarray(statement(elements), dtype=np.float64)
            if values.shape not in {(), nodes.shape}:
                raise EstimationError(
                    f"the statement must return a flag for each of {len(nodes)} orbits, got shape "
                    f"{values.shape}",
                    self,
                )
            holds[nodes] = values
        return self._value(posterior.average(holds))

    @property
    def absolute_magnitude(self) -> u.Quantity:
        """Absolute magnitude H, G = 0.15: the median of the posterior, or that at the range.

        From the mean magnitude of the tracklet in the band V; NaN without one. `samples` has its
        distribution.
        """
        s = self._answers
        rho = s.rho[:, None]
        if s.posterior is not None:
            rho = s.posterior.quantile((np.arange(200) + 0.5) / 200.0)
        return self._quantity(np.median(self._magnitude_at(rho), axis=1), u.mag)

    @property
    def _arcs(self) -> Arcs:
        return self._tracklets.arcs(self.origin)

    def _magnitude_at(self, rho: FloatArray) -> FloatArray:
        """Absolute magnitudes at ranges [au] of each tracklet, (M, n) -> (M, n)."""
        c = self._answers.attributables.energy_coefficients
        return absolute_magnitude(c[:, None], rho, self._arcs.mean_mag[:, None])

    def _of_each(self, rho: u.Quantity) -> FloatArray:
        """Ranges [au] as rows of the tracklets, shape (M, ...)."""
        au = values_in("rho", rho, u.au, EstimationError)
        if self._scalar or not au.ndim:
            return np.broadcast_to(au, (self._n_rows, *au.shape))
        if len(au) != self._n_rows:
            raise EstimationError(
                f"got ranges of shape {au.shape} for {self._n_rows} tracklets: give one for all, "
                "or a row for each",
                self,
            )
        return au

    def credible_region(self, level: float = TABLE_LEVEL) -> Any:
        """Ranges of highest posterior density which hold a share of the probability.

        The density is that in the logarithm of the range, as figures show it: it does not depend on
        a unit. Two lobes make two intervals. `interval` is one in any case, and leaves out the same
        probability on either side.

        Parameters
        ----------
        level : float
            Share, between 0 and 1.

        Returns
        -------
        Quantity, shape (k, 2), or list of them
            The k intervals of one tracklet, ascending; of many a list, with none for a tracklet
            that has no posterior.

        Raises
        ------
        EstimationError
            If the method gives no posterior.

        Examples
        --------
        >>> import neoranging as nr
        >>> night = nr.read_tracklets(nr.sample("2024YR4"))[1]
        >>> estimate = night.estimate(method="systematic")
        >>> print(estimate.credible_region(0.95).round(2))
        [[0.01 0.11]] AU
        """
        check_level("level", level)
        arc, bounds = self._posterior.region(level)
        ends = np.searchsorted(arc, np.arange(self._n_rows + 1))
        pieces = [bounds[a:b] << u.au for a, b in itertools.pairwise(ends.tolist())]
        return pieces[0] if self._scalar else pieces


def tails(confidence_level: float) -> FloatArray:
    """Shares of the probability below the two ends of an interval, shape (2,)."""
    return np.array([0.5 - 0.5 * confidence_level, 0.5 + 0.5 * confidence_level])
