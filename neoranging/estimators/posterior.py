"""Amortised ranging: a network says where to look, the exact likelihood what is there."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np
import torch

from neoranging.core.arcs import Arcs
from neoranging.core.attributable import Attributables
from neoranging.core.posterior import Posterior
from neoranging.core.quantile_nodes import PlaneMixture
from neoranging.ephemeris.states import attractors
from neoranging.estimators.learned import default_weights, load_trained
from neoranging.estimators.network_inputs import arc_inputs
from neoranging.estimators.systematic import Prior, SystematicRangingEstimator
from neoranging.exceptions import NotTrainedError
from neoranging.nn.density import MixtureOutput, Plane
from neoranging.typing import FloatArray, IntArray, StrArray

if TYPE_CHECKING:
    from neoranging.core.priors import PriorTable
    from neoranging.core.sightings import Nights

N_COLUMNS: Final = 40
N_RATES: Final = 16
"""Columns of an arc and nodes of a column."""

_FLOOR: Final = 0.1
_FLOOR_WIDTH: Final = 1.5
"""Share and width, in spreads of the training arcs, of what is proposed in any case."""

_LEAST_NODES: Final = 40.0
_LEAST_COLUMNS: Final = 8.0
"""Effective numbers of nodes and of columns below which a posterior is not resolved."""

_WIDENING: Final = 1.5
"""Widths of the second proposal in standard deviations of the first answer."""


class PosteriorEstimator(SystematicRangingEstimator):
    """The posterior of systematic ranging, on nodes that a network proposes.

    The network is a conditional density of range and range-rate, learnt from simulated nights. Its
    quantiles are where the exact likelihood and the prior are worked out: importance sampling with
    one node to a stratum, so the answer is the posterior under any prior, whatever the network was
    trained on. Where too few nodes carry the posterior they are placed once more by its moments,
    and where that does not help `SystematicRangingEstimator` takes over; ``diagnostics`` says so.

    Parameters
    ----------
    prior : str, path-like or callable
        As of `SystematicRangingEstimator`.
    weights : "default" or path-like
        Those of the package, or a file that training wrote.
    origin : {"topocenter"}
        Observers where they stood: the network knows no other.
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
        path = default_weights("posterior", "invariant") if weights == "default" else Path(weights)
        self._trained = load_trained(path)
        if not isinstance(self._trained.network.output, MixtureOutput):
            raise NotTrainedError(
                f"{path} answers with a range, not with a density: give a file that "
                "'neoranging train --model posterior' wrote"
            )

    @property
    def identity(self) -> dict[str, Any]:
        """Class, origin, prior, and the very weights."""
        return {**super().identity, "weights_sha256": self._trained.digest}

    def _posterior(
        self, arcs: Arcs, attributables: Attributables, night: Nights, table: PriorTable
    ) -> tuple[Posterior, StrArray | None]:
        from neoranging.core.sightings import nights
        from neoranging.core.systematic import systematic

        mixture, plane = self._proposal(arcs)
        every = np.arange(len(arcs))
        first = self._on_nodes(mixture, plane, night, arcs.mean_mag, table, every)
        poor = np.flatnonzero(~_is_resolved(first))
        owners = [np.setdiff1d(every, poor)]
        parts = [first.take(owners[0])]
        if len(poor):
            again = self._moments(first.take(poor), plane, poor)
            second = self._on_nodes(again, plane, night, arcs.mean_mag, table, poor)
            good = _is_resolved(second)
            parts.append(second.take(np.flatnonzero(good)))
            owners.append(poor[good])
            poor = poor[~good]
        remarks = np.full(len(arcs), "", dtype=object)
        if len(poor):
            rest, motion = arcs.take(poor), attributables.take(poor)
            own = nights(rest, motion, attractors(motion.epoch, rest.span))
            parts.append(systematic(own, rest.mean_mag, table))
            owners.append(poor)
            remarks[poor] = "the nodes of the network are too few here: systematic ranging"
        joined = Posterior.join(parts)
        order = np.argsort(np.concatenate(owners), kind="stable")
        return joined.take(order), remarks.astype(np.str_)

    def _proposal(self, arcs: Arcs) -> tuple[PlaneMixture, Plane]:
        """Mixtures in units of the scaling, and the planes."""
        network = self._trained.network
        output = network.output
        assert isinstance(output, MixtureOutput)
        with torch.inference_mode():
            inputs = arc_inputs(arcs)
            heads = output.turned(
                network.raw(network.features(inputs)), network.features.arrow(inputs)
            )
            m = output.mixture(heads)
            plane = Plane.of(inputs, network.origin)
        mixture = PlaneMixture(
            *(x.numpy() for x in (m.log_weight, m.mean, torch.exp(m.log_width), m.slope))
        )
        return mixture.with_floor(_FLOOR, _FLOOR_WIDTH), plane

    def _moments(self, posterior: Posterior, plane: Plane, rows: IntArray) -> PlaneMixture:
        """Normal distributions with the moments of posteriors, widened, in the plane."""
        at = torch.from_numpy(rows[posterior.arc])
        nodes = torch.from_numpy(posterior.rho), torch.from_numpy(posterior.rho_dot)
        scaling = self._trained.network.output.scaling
        point = scaling(Plane(plane.c[at], plane.log_far[at]).forward(*nodes)).numpy()
        mean = posterior.average(point)
        away = point - mean[posterior.arc]
        xx, xy, yy = (
            posterior.average(away[:, i] * away[:, j]) for i, j in ((0, 0), (0, 1), (1, 1))
        )
        # a single node has no extent: that of its cell is the least
        xx = np.maximum(np.nan_to_num(xx), 1e-8)
        slope = np.nan_to_num(xy) / xx
        rest = np.maximum(np.nan_to_num(yy) - slope**2 * xx, 1e-8)
        width = _WIDENING * np.sqrt(np.stack([xx, rest], axis=1))
        one = np.zeros((len(rows), 1))
        return PlaneMixture(one, np.nan_to_num(mean)[:, None], width[:, None], slope[:, None])

    def _on_nodes(
        self,
        mixture: PlaneMixture,
        plane: Plane,
        night: Nights,
        magnitude: FloatArray,
        table: PriorTable,
        rows: IntArray,
    ) -> Posterior:
        """Posteriors of the arcs ``rows`` on nodes at quantiles of their mixtures."""
        from neoranging.core.node_weights import weigh

        scaling = self._trained.network.output.scaling
        (center, scale) = (x.numpy() for x in (scaling.center, scaling.scale))
        x, y = mixture.cells(N_COLUMNS, N_RATES)
        at = torch.from_numpy(rows)
        own = Plane(plane.c[at], plane.log_far[at])
        x = torch.from_numpy(x * scale[0] + center[0])
        many = Plane(own.c[:, None], own.log_far[:, None])
        rho = many.inverse(x, torch.zeros_like(x))[0]
        y = torch.from_numpy(y * scale[1] + center[1])
        cells = Plane(own.c[:, None, None], own.log_far[:, None, None])
        rate = cells.inverse(x[:, 1::2, None].expand_as(y), y)[1].numpy()
        log_rho = np.log(rho.numpy())
        shape = (len(rows), N_COLUMNS, N_RATES)
        arc = np.repeat(np.arange(len(rows)), N_COLUMNS * N_RATES)
        node = np.broadcast_to(np.exp(log_rho[:, 1::2, None]), shape).ravel()
        log_width = np.broadcast_to(np.diff(log_rho[:, ::2], axis=1)[..., None], shape).ravel()
        rho_dot, rate_width = rate[..., 1::2].ravel(), np.diff(rate[..., ::2], axis=2).ravel()
        likelihood, prior = weigh(night, magnitude, table, rows[arc], node, rho_dot)
        good = np.isfinite(likelihood) & np.isfinite(prior) & (rate_width > 0.0) & (log_width > 0.0)
        counts = np.bincount(arc[good], minlength=len(rows))
        values = (node, rho_dot, log_width, rate_width, likelihood, prior)
        offsets = np.concatenate([[0], np.cumsum(counts)])
        return Posterior(offsets, *(column[good] for column in values))


def _is_resolved(posterior: Posterior) -> np.ndarray:
    """Flags of the arcs whose posterior enough nodes and columns carry, (M,)."""
    c = posterior.columns
    mass = np.exp(c.log_density) * c.log_width
    n = len(posterior)
    total = np.bincount(c.arc, mass, n)
    with np.errstate(invalid="ignore", divide="ignore"):
        effective = total**2 / np.bincount(c.arc, mass**2, n)
    enough = posterior.effective_nodes >= _LEAST_NODES
    return enough & (effective >= _LEAST_COLUMNS)
