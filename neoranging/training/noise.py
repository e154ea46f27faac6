"""Fresh observational noise: the errors of simulated arcs, drawn again whenever one is seen.

The derivatives that an arc's fit finds are a linear function of its observations, so their errors
are Gaussian with the covariance of the fit: nine numbers for either axis stand for any number of
observations, and drawing them costs nothing beside a training step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from neoranging.constants import C_AU_PER_DAY
from neoranging.core.arcs import Arcs
from neoranging.core.attributable import tangent_fit
from neoranging.core.elements import elements_to_state
from neoranging.core.geometry import (
    FloatArray,
    dot,
    ecliptic_to_equatorial,
    equatorial_to_ecliptic,
    line_of_sight,
    norm,
    radec,
    wrap_angle,
)
from neoranging.core.parallax import parallax
from neoranging.core.prediction import sight
from neoranging.datasets.schema import ArcTable
from neoranging.nn.inputs import ArcInputs

__all__ = ["ORBIT", "FreshNoise", "noise_free"]

ORBIT: Final = ("q_au", "ecc", "inc_rad", "raan_rad", "argp_rad")
"""Columns of the orbit that `noise_free` needs."""

_BELIEVED = 6.0
"""Largest error of an observation, in standard deviations, that noise can explain."""


class FreshNoise(NamedTuple):
    """How the inputs of B arcs scatter about those of noise-free observations."""

    factor: Tensor
    """Of the covariance of (value, rate, acceleration) east and north, ``L L^T``, (B, 2, 3, 3)."""
    sigma: Tensor
    """Standard deviations of the triplet, east and north [rad], (B, 2, 3)."""
    parallax: Tensor
    """Standard deviation of the inverse range by parallax [1/au], (B,); it shares no error with the
    fit where both axes weigh alike."""

    @classmethod
    def of(cls, arcs: Arcs, noisy: npt.NDArray[np.bool_]) -> FreshNoise:
        """Noise of arcs; none for those that are not ``noisy`` (M,)."""
        scale = noisy[:, None, None].astype(np.float64)
        factor = _cholesky(tangent_fit(arcs).covariance) * scale[..., None]
        sigma = np.stack([s[arcs.triplet] for s in (arcs.sigma_ra, arcs.sigma_dec)], axis=1)
        seen = parallax(arcs)
        error = np.where(seen.is_determined & noisy, seen.error, 0.0)
        return cls(*map(torch.from_numpy, (factor, sigma * scale, error)))

    def map(self, function: Callable[[Tensor], Tensor]) -> FreshNoise:
        """Apply a function to every column."""
        return FreshNoise(*(function(column) for column in self))

    def add(self, inputs: ArcInputs, generator: torch.Generator, spread: float = 0.0) -> ArcInputs:
        """Inputs as another night with the same weather would have given them.

        Parameters
        ----------
        inputs : ArcInputs
            Of noise-free observations.
        generator : torch.Generator
            On the device of the inputs.
        spread : float
            Scatter of the logarithm of the size of the errors from arc to arc.
        """
        if spread > 0.0:
            size = torch.exp(spread * self._normal(self.parallax.shape, generator))
            return self._scaled(size).add(inputs, generator)
        fit = (self.factor @ self._normal(self.factor.shape[:-1], generator)[..., None])[..., 0]
        triplet = self.sigma * self._normal(self.sigma.shape, generator)
        sky_dec = inputs.sky[..., 1]
        sky = torch.stack([fit[..., 0, 0] / torch.cos(sky_dec), fit[..., 1, 0]], dim=-1)
        return inputs._replace(
            ra=torch.remainder(
                inputs.ra + triplet[..., 0, :] / torch.cos(inputs.dec), 2 * torch.pi
            ),
            dec=inputs.dec + triplet[..., 1, :],
            sky=inputs.sky + sky,
            sky_rate=inputs.sky_rate + fit[..., 1],
            sky_acc=inputs.sky_acc + fit[..., 2],
            parallax=inputs.parallax + self.parallax * self._normal(self.parallax.shape, generator),
        )

    def _scaled(self, size: Tensor) -> FreshNoise:
        """The same noise, each arc's (B,) times as large."""
        return FreshNoise(
            self.factor * size[:, None, None, None],
            self.sigma * size[:, None, None],
            self.parallax * size,
        )

    def _normal(self, shape: torch.Size, generator: torch.Generator) -> Tensor:
        like = self.factor
        return torch.randn(shape, generator=generator, dtype=like.dtype, device=like.device)


def _cholesky(covariance: FloatArray) -> FloatArray:
    """Lower factors of 3x3 covariances, which may be singular to rounding; shape (..., 3, 3)."""
    c, factor = covariance, np.zeros_like(covariance)
    for j in range(3):
        known = factor[..., j, :j]
        pivot = c[..., j, j] - np.sum(known**2, axis=-1)
        # what rounding leaves of a determined component is no variance
        root = np.sqrt(np.where(pivot > 1e-12 * c[..., j, j], pivot, 0.0))
        factor[..., j, j] = root
        for i in range(j + 1, 3):
            rest = c[..., i, j] - np.sum(factor[..., i, :j] * known, axis=-1)
            factor[..., i, j] = np.divide(rest, root, out=np.zeros_like(rest), where=root > 0.0)
    return factor


def noise_free(table: ArcTable, arcs: Arcs) -> tuple[Arcs, npt.NDArray[np.bool_]]:
    """Arcs as they would have been observed without errors, where the orbit is known.

    Parameters
    ----------
    table : ArcTable
        M simulated arcs with their truth.
    arcs : Arcs
        The same arcs with the observers where they stood.

    Returns
    -------
    arcs : Arcs
        With other directions.
    exact : ndarray of bool, shape (M,)
        Arcs whose orbit explains all observations by noise alone. The others keep the directions
        that were observed.

    Notes
    -----
    A set holds no anomaly, so the object is put on its orbit where the orbit meets the observed
    line of sight at the true range. That is off by the error of one observation at most, and along
    the orbit only: another instant of the same motion.
    """
    r, v, epoch = _states(table, arcs)
    owner = arcs.owner
    seen = sight(r[owner], v[owner], epoch[owner], arcs.t, arcs.position, arcs.velocity)
    ra, dec = radec(seen.direction)
    east = wrap_angle(arcs.ra - ra) * np.cos(dec) / arcs.sigma_ra
    error = np.hypot(east, (arcs.dec - dec) / arcs.sigma_dec)
    with np.errstate(invalid="ignore"):
        wrong = ~(error < _BELIEVED)
    exact = arcs.sum(wrong.astype(np.int64)) == 0
    ra, dec = (np.where(exact[owner], a, b) for a, b in ((ra, arcs.ra), (dec, arcs.dec)))
    clean = Arcs(
        arcs.offsets,
        arcs.t,
        ra,
        dec,
        arcs.sigma_ra,
        arcs.sigma_dec,
        arcs.position,
        arcs.velocity,
    )
    return clean, exact


def _states(table: ArcTable, arcs: Arcs) -> tuple[FloatArray, FloatArray, FloatArray]:
    """States at emission of the orbits of the table where they meet the observed directions."""
    q, ecc, inc, raan, argp = (table[name] for name in ORBIT)
    rho, middle = table["rho_topo_au"], arcs.triplet[:, 1]
    sighted = rho[:, None] * line_of_sight(arcs.ra[middle], arcs.dec[middle])
    target = equatorial_to_ecliptic(arcs.position[middle] + sighted)
    # perihelion and the motion there span the plane of the orbit
    plane = elements_to_state(q, ecc, inc, raan, argp, np.zeros_like(q))
    x, y = (dot(target, axis) / norm(axis) for axis in plane)
    states = elements_to_state(q, ecc, inc, raan, argp, np.arctan2(y, x))
    r, v = (ecliptic_to_equatorial(vector) for vector in states)
    return r, v, arcs.t[middle] - rho / C_AU_PER_DAY
