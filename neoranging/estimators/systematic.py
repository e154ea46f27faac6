"""Systematic ranging as a registered method: the posterior of a night under a prior of choice."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np
import numpy.typing as npt
from astropy import units as u
from astropy.time import Time
from scipy.special import chdtri

from neoranging.arguments import did_you_mean
from neoranging.constants import C_AU_PER_DAY
from neoranging.core.answers import Answers
from neoranging.core.arcs import Arcs
from neoranging.core.attributable import Attributables
from neoranging.core.posterior import RANGE_POWERS, Posterior
from neoranging.core.status import RangeStatus
from neoranging.ephemeris.states import attractors
from neoranging.estimators.base import RangingEstimator
from neoranging.exceptions import EstimationError, NeoRangingError
from neoranging.orbits.elements import OrbitalElements
from neoranging.orbits.population import PRIORS, load_prior, read_prior
from neoranging.typing import FloatArray, StrArray

if TYPE_CHECKING:
    from neoranging.core.priors import PriorTable
    from neoranging.core.sightings import Nights

Prior = str | os.PathLike[str] | Callable[[OrbitalElements], npt.ArrayLike]
"""Name of a prior, a file of a table, or a density of orbits in phase space."""

_SIMPLE: Final = tuple(RANGE_POWERS)

_CONFINED: Final = math.log(2.0)
"""Distance of the ends of the 99 % interval in ln rho up to which a range is determined."""

_LEVELS: Final = [0.5, 0.005, 0.995]
"""The answer, and the ends of the interval that decides on the status."""

_IMPROBABLE: Final = 1.0e-4
"""Probability of the misfit of the best orbit, by errors as large as any, below which it is one."""


class SystematicRangingEstimator(RangingEstimator):
    """The posterior of range and range-rate: exact likelihood, a prior, and nothing trained.

    Every range and range-rate of the admissible region is held against all observations
    (``neoranging.core.systematic``), from two observations on, from any station or spacecraft. The
    range that it answers is the median of the posterior; the estimate has the rest, such as
    `RangeEstimate.credible_region` and `RangeEstimate.probability`.

    ``OK`` says that the observations confine the range whatever the prior: the 99 % interval under
    the prior asked for, under one uniform in range, and under one uniform in its logarithm lie
    within a factor of two together. Other answers rest on the prior too and are ``POPULATION``.

    Parameters
    ----------
    prior : str, path-like or callable
        - ``"population"``: all objects of the solar system as they are, corrected for what surveys
          miss; with a magnitude, by their size. What a discovery deserves.
        - ``"near-earth"``: the part of it that comes within 1.3 au of the Sun. For an object that
          is taken for a near-Earth object for other reasons than this night.
        - ``"catalogue"``: the near-Earth objects that are known, each counted once.
        - ``"log-uniform"``: uniform in the logarithm of the range: near objects are taken for as
          likely as distant ones. What a watch for impacts wants.
        - ``"uniform"``: uniform in range and range-rate.
        - a file of a table, see ``neoranging.orbits.population``;
        - a function of `OrbitalElements` (K,) that returns the relative number of objects per unit
          of phase space, position and velocity, shape (K,).
    origin : {"topocenter", "geocenter"}
        Origin of range and range-rate.

    Raises
    ------
    EstimationError
        If there is no such prior.
    CorruptFileError, OSError
        If a file of a table cannot be used.
    """

    name = "systematic"
    min_observations: ClassVar[int] = 2
    priors: ClassVar[tuple[str, ...]] = (*PRIORS, *_SIMPLE)
    chunk_size: ClassVar[int] = 32
    gives_posterior: ClassVar[bool] = True

    def __init__(self, prior: Prior = "population", *, origin: str = "topocenter") -> None:
        super().__init__(origin=origin)
        is_file = isinstance(prior, os.PathLike) or str(prior).endswith(".npz")
        if not (callable(prior) or is_file or prior in self.priors):
            raise EstimationError(
                f"prior must be {', '.join(self.priors)}, a file of a table (.npz) or a function "
                f"of orbits, got {prior!r}{did_you_mean(str(prior), self.priors)}"
            )
        self.prior = prior
        self._table = read_prior(prior) if is_file else None  # type: ignore[arg-type]

    @property
    def identity(self) -> dict[str, Any]:
        """Class, origin and prior; a file of a table by its digest, a function by its name."""
        prior: Any = self.prior
        if self._table is not None:
            # the axes too: the same densities on others are another prior
            columns = b"".join(column.tobytes() for column in self._table)
            prior = hashlib.sha256(columns).hexdigest()
        elif callable(prior):
            # objects that can be called, as partial functions, have the name of their class alone
            home = prior if hasattr(prior, "__qualname__") else type(prior)
            prior = f"{home.__module__}:{home.__qualname__}"
        return {**super().identity, "prior": prior}

    def __repr__(self) -> str:
        return f"{type(self).__name__}(prior={self.prior!r}, origin={self.origin!r})"

    def _estimate(self, arcs: Arcs, attributables: Attributables) -> Answers:
        # modules that no other method needs are read when this one answers
        from neoranging.core.priors import simple_prior
        from neoranging.core.sightings import nights
        from neoranging.core.summaries import summarise
        from neoranging.core.systematic import complete

        night = nights(arcs, attributables, attractors(attributables.epoch, arcs.span))
        if self._table is not None:
            table = self._table
        elif self.prior in PRIORS:
            table = load_prior(str(self.prior))
        else:
            table = simple_prior("phase space" if callable(self.prior) else str(self.prior))
        posterior, remarks = self._posterior(arcs, attributables, night, table)
        if callable(self.prior):
            nodes = complete(night, posterior.arc, posterior.rho, posterior.rho_dot)
            epoch = attributables.epoch[posterior.arc] - posterior.rho / C_AU_PER_DAY
            density = self._density_of(nodes.r, nodes.v, epoch)
            with np.errstate(divide="ignore"):
                posterior = posterior.with_log_prior(posterior.log_prior + np.log(density))
        summary = summarise(posterior, list(RANGE_POWERS.values()), _LEVELS)
        rho = np.exp(summary.quantiles[:, 0, 0])
        solved = np.flatnonzero(np.isfinite(rho))
        orbits = complete(night, solved, rho[solved], summary.rate[solved])
        ends = summary.quantiles[:, :, 1:].reshape(len(rho), -1)
        status = _verdict(ends, arcs, orbits.excess, solved)
        answers = Answers.unsolved(attributables, status)
        for column, values in (
            (answers.rho, rho[solved]),
            (answers.rho_dot, summary.rate[solved]),
            (answers.covariance, summary.covariance[solved]),
            (answers.r, orbits.r),
            (answers.v, orbits.v),
            (answers.epoch, attributables.epoch[solved] - rho[solved] / C_AU_PER_DAY),
        ):
            column[solved] = values
        return replace(answers, posterior=posterior, remarks=remarks)

    def _posterior(
        self,
        arcs: Arcs,
        attributables: Attributables,  # noqa: ARG002 (for those who need the nights of some arcs)
        night: Nights,
        table: PriorTable,
    ) -> tuple[Posterior, StrArray | None]:
        """Posteriors of arcs under a table, and remarks on how they were reached."""
        from neoranging.core.systematic import systematic

        return systematic(night, arcs.mean_mag, table), None

    def _density_of(self, r: FloatArray, v: FloatArray, epoch: FloatArray) -> FloatArray:
        """Density of orbits by the function of the user."""
        states = r << u.au, v << u.au / u.d, Time(epoch, format="mjd", scale="tdb")
        orbits = OrbitalElements.from_state(*states)
        try:
            density = np.asarray(self.prior(orbits), dtype=np.float64)  # type: ignore[operator]
        except NeoRangingError:
            raise
        except Exception as error:  # of whoever wrote the function
            raise EstimationError(
                f"the prior failed ({type(error).__name__}: {error}); it must take OrbitalElements "
                "of many orbits and return an array, the density of each"
            ) from error
        if density.shape != (len(r),) or not ((density >= 0.0) & (density < np.inf)).all():
            least, most = np.min(density, initial=0.0), np.max(density, initial=0.0)
            raise EstimationError(
                f"the prior must give {len(r)} orbits one density each, zero or positive and "
                f"finite; got an array of shape {density.shape} with values from {least} to {most}"
            )
        return density


def _verdict(
    ends: FloatArray, arcs: Arcs, excess: FloatArray, solved: npt.NDArray
) -> npt.NDArray[np.int8]:
    """Status of each arc; ``ends`` are logarithms of ranges of many posteriors, (M, K)."""
    status = np.full(len(ends), RangeStatus.INADMISSIBLE.code, dtype=np.int8)
    status[solved] = RangeStatus.POPULATION.code
    low, high = np.fmin.reduce(ends, axis=1), np.fmax.reduce(ends, axis=1)
    status[solved[(high - low < _CONFINED)[solved]]] = RangeStatus.OK.code
    spare = np.maximum(2.0 * arcs.counts[solved] - 6.0, 1.0)
    misfit = ~(excess <= chdtri(spare, _IMPROBABLE)) & (arcs.n_epochs[solved] > 2)
    status[solved[misfit]] = RangeStatus.MISFIT.code
    return status
