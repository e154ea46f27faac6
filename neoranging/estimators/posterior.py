"""Amortised ranging: a network says where to look, the exact likelihood what is there."""

from __future__ import annotations

import copy
import os
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np
from astropy import units as u
from scipy.special import ndtr

from neoranging.arguments import check_count
from neoranging.core.arcs import Arcs
from neoranging.core.attributable import Attributables
from neoranging.core.posterior import Posterior
from neoranging.ephemeris.states import attractors
from neoranging.estimators.learned import Trained, trained_for
from neoranging.estimators.network_inputs import arc_inputs
from neoranging.estimators.systematic import Prior, SystematicRangingEstimator
from neoranging.nn.density import Mixture, MixtureOutput, Plane
from neoranging.tracklet import Tracklet, TrackletSet
from neoranging.typing import FloatArray, StrArray

if TYPE_CHECKING:
    from neoranging.core.priors import PriorTable
    from neoranging.core.sightings import Nights

_LEVELS: Final = ndtr(np.linspace(2.5, -2.5, 11))
"""Shares of the proposed density that lie nearer than its columns, from far to near."""

_KNOTS: Final = np.linspace(-4.0, 4.0, 17)
"""Standard deviations from the mean of a component at which quantiles are interpolated."""

_FLOOR: Final = np.linspace(2.0, -2.0, 5)
"""Places of further columns, in spreads of the training arcs about their mean.

They are there whatever the network says: no part of the region is left unseen.
"""

_GRID: Final = 2.0**-9
"""Step in ln rho on which columns begin.

The network's single precision, which depends on how many arcs it sees at once, does not show there.
"""

_LEAST_NODES: Final = 8.0
"""Effective number of nodes below which the posterior does not stand on the proposal."""

_ARCS_AT_ONCE: Final = 2048


class PosteriorEstimator(SystematicRangingEstimator):
    """The posterior of systematic ranging, begun where a network expects it.

    The network is a conditional density of range and range-rate, a mixture of normal distributions
    in coordinates that map the admissible region to the plane (``neoranging.nn.density``), learnt
    from simulated nights. Its quantiles are the ranges at which exact likelihood and prior are
    worked out, with more ranges between and beyond wherever the posterior asks for them. So the
    answer is the posterior under any prior of `SystematicRangingEstimator`, mostly within a few
    percent of probability and in half the time, whatever the network was trained on; a
    network that is wrong costs time. Where the weights of the nodes are so uneven that fewer than 8
    would do as well, `SystematicRangingEstimator` takes over, and ``diagnostics`` says so. Statuses
    mean the same as there.

    Parameters
    ----------
    prior : str, path-like or callable
        As of `SystematicRangingEstimator`, whose columns those of a function are: it is asked for
        orbits only when the columns stand.
    weights : "default" or path-like
        Those of the package, or a file that ``neoranging train --model posterior`` wrote.
    origin : {"topocenter", "geocenter"}
        Origin of range and range-rate. The network has learnt the parallax of stations, so its
        proposals for an observer at the centre of the Earth are poor; the answers are exact.

    Raises
    ------
    EstimationError
        If there is no such prior.

    See Also
    --------
    PosteriorEstimator.draw : Samples of the density itself, without any likelihood.
    """

    name = "posterior"
    chunk_size: ClassVar[int] = 256

    def __init__(
        self,
        prior: Prior = "population",
        *,
        weights: str | os.PathLike[str] = "default",
        origin: str = "topocenter",
    ) -> None:
        super().__init__(prior, origin=origin)
        self.weights = weights

    @classmethod
    def from_pretrained(cls, weights: str | os.PathLike[str], **options: Any) -> PosteriorEstimator:
        """Estimator of a file of weights, with its other options."""
        return cls(weights=weights, **options)

    @property
    def card(self) -> dict[str, Any]:
        """Model card: what trained the network, under which prior, with what result."""
        return copy.deepcopy(self._trained.card)

    @property
    def identity(self) -> dict[str, Any]:
        """Class, origin, prior, and the very weights."""
        return {**super().identity, "weights_sha256": self._trained.digest}

    @cached_property
    def _trained(self) -> Trained:
        return trained_for(type(self), self.weights, "invariant")

    def draw(
        self,
        tracklets: Tracklet | TrackletSet,
        n: int,
        rng: np.random.Generator | int,
    ) -> tuple[u.Quantity, u.Quantity]:
        """Ranges and range-rates drawn from the density that the network proposes.

        They follow from the network alone: the prior is that of its training, which `card` states,
        and the observations count for as much as the network has learnt. It is the quick look at
        very many tracklets; what `estimate` answers is exact.

        Parameters
        ----------
        tracklets : Tracklet or TrackletSet
        n : int
            Samples of each.
        rng : numpy.random.Generator or int
            Source of the random numbers, or its seed.

        Returns
        -------
        rho, rho_dot : Quantity, shape (n,) or (M, n)
            From the origin, in au and au / d; NaN of tracklets with fewer than two epochs or
            without the place of an observer.
        """
        one_set = tracklets._set if isinstance(tracklets, Tracklet) else tracklets
        arcs = one_set.arcs(self.origin)
        check_count("n", n)
        rng = np.random.default_rng(rng)
        samples = np.full((2, len(arcs), n), np.nan)
        usable = np.flatnonzero(np.logical_and(*self._conditions(arcs)))
        for first in range(0, len(usable), _ARCS_AT_ONCE):
            rows = usable[first : first + _ARCS_AT_ONCE]
            mixture, plane = self._proposal(arcs.take(rows))
            # single precision is finer than what is drawn at random, and half the time
            single = Mixture(*(column.astype(np.float32) for column in mixture))
            point = self._output.scaling.restore(single.draw(n, rng))
            many = Plane(*(x[:, None].astype(np.float32) for x in plane))
            samples[0, rows], samples[1, rows] = many.inverse(point[..., 0], point[..., 1])
        rho, rho_dot = samples[:, 0] if isinstance(tracklets, Tracklet) else samples
        return rho << u.au, rho_dot << u.au / u.d

    @property
    def _output(self) -> MixtureOutput:
        output = self._trained.network.output
        assert isinstance(output, MixtureOutput)  # as the model of the card says
        return output

    def _posterior(
        self, arcs: Arcs, attributables: Attributables, night: Nights, table: PriorTable
    ) -> tuple[Posterior, StrArray | None]:
        from neoranging.core.sightings import nights
        from neoranging.core.systematic import systematic

        if callable(self.prior):
            # few columns, set for the table alone, may miss where a function has its mass
            return super()._posterior(arcs, attributables, night, table)
        posterior = systematic(night, arcs.mean_mag, table, self._columns(arcs))
        poor = ~(posterior.effective_nodes >= _LEAST_NODES)
        remarks = np.where(poor, "the proposal was of no use: systematic ranging took over", "")
        if len(rows := np.flatnonzero(poor)):
            few, of_few = arcs.take(rows), attributables.take(rows)
            night = nights(few, of_few, attractors(of_few.epoch, few.span))
            posteriors = [posterior, systematic(night, few.mean_mag, table)]
            order = np.arange(len(arcs))
            order[rows] = len(arcs) + np.arange(len(rows))
            posterior = Posterior.join(posteriors).take(order)
        return posterior, remarks

    def _proposal(self, arcs: Arcs) -> tuple[Mixture, Plane]:
        """Mixtures in units of the scaling, and the regions that they are mapped from."""
        network = self._trained.network
        inputs = arc_inputs(arcs, root=network.config.root)
        shown = network.features.show(inputs)
        turned = self._output.turned(network.raw(shown.scaled), shown.arrow)
        return self._output.mixture(turned), Plane.of(inputs, network.origin)

    def _columns(self, arcs: Arcs) -> FloatArray:
        """Logarithms of the ranges at which columns begin, from far to near, (M, C)."""
        mixture, plane = self._proposal(arcs)
        scaling = self._output.scaling
        floor = np.broadcast_to(_FLOOR, (len(arcs), len(_FLOOR)))
        scaled = np.concatenate([_quantiles(mixture), floor], axis=1)
        x = -np.sort(-(scaled * scaling.scale[0] + scaling.center[0]), axis=1)
        many = Plane(plane.c[:, None], plane.log_far[:, None])
        log_rho = np.log(many.inverse(x, np.zeros_like(x))[0])
        return np.round(log_rho / _GRID) * _GRID


def _quantiles(mixture: Mixture) -> FloatArray:
    """Quantiles in x at the levels of the columns, shape (M, C)."""
    log_weight, mean, log_width = mixture.log_weight, mixture.mean[..., 0], mixture.log_width
    weight, width = np.exp(log_weight), np.exp(log_width[..., 0])
    knots = np.sort((mean[..., None] + width[..., None] * _KNOTS).reshape(len(mean), -1), axis=1)
    away = (knots[:, :, None] - mean[:, None]) / width[:, None]
    below = np.einsum("mkc,mc->mk", ndtr(away), weight)
    return np.stack([np.interp(_LEVELS, *pair) for pair in zip(below, knots, strict=True)])
