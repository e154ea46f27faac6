"""From raw inputs to the numbers a trunk sees, with their derivatives along the motion.

`PaperFeatures` are the eleven inputs of the paper. `InvariantFeatures` do not change when the whole
scene is turned: they are measured in the frame of the motion (line of sight, along, across).
"""

from __future__ import annotations

from itertools import product
from typing import Final, Literal

import torch
from torch import Tensor, nn

from neoranging.exceptions import DatasetError
from neoranging.nn.forward_mode import jvp
from neoranging.nn.geometry import MotionFrame, dot, speed
from neoranging.nn.inputs import ArcInputs
from neoranging.nn.scaling import Scaling

_AXES: Final = ("sight", "along", "across")
_PAPER: Final = (
    *("dt1", "ra1", "dec1", "ra2", "dec2", "dt3", "ra3", "dec3"),
    *("earth_x", "earth_y", "earth_z"),
)
_STRAIGHT: Final = (
    *("log_proper_motion", "log_span"),
    *(f"observer_{axis}" for axis in _AXES),
    *(f"observer_rate_{axis}" for axis in _AXES),
)
_CURVED: Final = (
    *("curvature_along", "curvature_across"),
    *("significance_along", "significance_across"),
    *("log_error_along", "log_error_across"),
    *(f"observer_acc_{axis}" for axis in _AXES),
    *("parallax", "significance_parallax", "log_error_parallax"),
)
_ROOT: Final = ("root", "log_error_root", "root_by_error")
_CURVATURE_UNIT_RAD_D2: Final = 1.0e-3
"""Curvature [rad/d^2] below which the feature of its size is linear, and logarithmic above.

The rotation of the Earth alone, 1.7e-3 au/d^2, seen from 1 au.
"""
_PARALLAX_UNIT_PER_AU: Final = 1.0
"""Inverse range [1/au] below which the feature of the parallax is linear."""


class Features(nn.Module):
    """A map from inputs to scaled features and its derivative.

    Attributes
    ----------
    scaling : Scaling
        Scaling of the raw columns, with their names and the domain of training.
    size : int
        Number of features F.
    origin : {"geocenter", "topocenter"}
        Origin of the ranges that belong to these features.
    """

    origin: Literal["geocenter", "topocenter"]

    def __init__(self, scaling: Scaling, size: int) -> None:
        super().__init__()
        self.scaling, self.size = scaling, size

    def fit(self, inputs: ArcInputs) -> None:
        """Fit the scaling on training arcs."""
        raise NotImplementedError

    def raw(self, inputs: ArcInputs) -> Tensor:
        """Columns of the scaling in their own units, (B, F)."""
        raise NotImplementedError

    def forward(self, inputs: ArcInputs) -> Tensor:
        """Scaled features, (B, F), in the precision of the inputs."""
        return self.finish(self.raw(inputs), inputs)

    def with_tangent(
        self, inputs: ArcInputs, tangent: ArcInputs | None = None
    ) -> tuple[Tensor, Tensor]:
        """Scaled features and their derivative by time [1/d], each (B, F).

        Parameters
        ----------
        inputs : ArcInputs
        tangent : ArcInputs, optional
            Derivative of the inputs; `ArcInputs.tangent` where none is given.
        """
        tangent = inputs.tangent() if tangent is None else tangent
        raw, rate = jvp(self.raw, (inputs,), (tangent,))
        return self.finish(raw, inputs), self.finish_rate(rate, inputs)

    def finish(self, raw: Tensor, inputs: ArcInputs) -> Tensor:  # noqa: ARG002
        """Features from columns in their own units."""
        return self.scaling(raw)

    def finish_rate(self, rate: Tensor, inputs: ArcInputs) -> Tensor:  # noqa: ARG002
        """Derivatives of features from those of the columns."""
        return self.scaling.rate(rate)

    def arrow(self, inputs: ArcInputs) -> Tensor:
        """Direction of time, 1 or -1, in which the features present an arc, (B,).

        Range-rates change sign with it. Always 1 but for `InvariantFeatures`.
        """
        return torch.ones_like(inputs.dt1)

    def present(self, inputs: ArcInputs) -> Tensor:
        """1 for every column that an arc has, 0 for one that it lacks, (B, columns)."""
        return torch.ones((len(inputs.dt1), len(self.scaling.names)), dtype=inputs.dt1.dtype)

    @property
    def patterns(self) -> Tensor:
        """Rows that `present` may have, (P, columns); the first has all columns."""
        return torch.ones((1, len(self.scaling.names)), dtype=torch.float64)

    def compared(self, raw: Tensor) -> Tensor:
        """Columns by which the domain compares arcs, under the names of the scaling."""
        return raw

    def outside(
        self,
        inputs: ArcInputs,
        slack: float = 0.0,
        raw: Tensor | None = None,
    ) -> Tensor:
        """Mask of the columns outside the range of training, (B, columns of the scaling).

        ``raw`` are the raw features of the inputs if computed already. What an arc lacks is never
        outside.
        """
        outside = self.scaling.outside(self.raw(inputs) if raw is None else raw, slack)
        return outside & (self.present(inputs) > 0.0)


class PaperFeatures(Features):
    """The eleven inputs of the paper (eq:input_vector), each scaled to [-1, 1].

    The two offsets in time share one scale, the longest half arc. Geocentric.
    """

    origin = "geocenter"

    def __init__(self) -> None:
        super().__init__(Scaling(_PAPER), len(_PAPER))

    def fit(self, inputs: ArcInputs) -> None:
        """Fit the scaling on training arcs."""
        times = [_PAPER.index("dt1"), _PAPER.index("dt3")]
        self.scaling.fit_range(self.raw(inputs), symmetric=times)

    def raw(self, inputs: ArcInputs) -> Tensor:
        """The inputs in days, radians and au, (B, 11)."""
        first, middle, last = (
            torch.stack([inputs.ra[..., k], inputs.dec[..., k]], dim=-1) for k in range(3)
        )
        dt1, dt3 = inputs.dt1[..., None], inputs.dt3[..., None]
        return torch.cat([dt1, first, middle, dt3, last, inputs.earth], dim=-1)

    def compared(self, raw: Tensor) -> Tensor:
        """Columns with the outer directions as differences from the middle one.

        The motion is a thousandth of the directions, and would be no difference beside them.
        """
        dt1, first, middle, dt3, last, earth = raw.split([1, 2, 2, 1, 2, 3], dim=-1)
        return torch.cat([dt1, first - middle, middle, dt3, last - middle, earth], dim=-1)


class InvariantFeatures(Features):
    """Motion, curvature and the observer in the frame of the motion. Topocentric.

    The laws of motion know neither left and right nor past and future: a scene and its mirror image
    have the same range, one that runs backwards has it too, and the opposite range-rate. So that no
    network has to learn the same thing four times, the side across the motion is called positive on
    which the observer stands, seen from the Sun, and an arc is shown backwards where the motion
    leads towards the Sun: the observer's components along and across are never negative. Where one
    of them passes through zero, at opposition and for motion in the plane of Sun and sight, the
    scene is exchanged for its image; the answers of a network on either side differ by as much as
    it fails to have learnt that.

    Always: logarithms of proper motion and of arc length; position and velocity of the observer.
    With three epochs or more: the curvature of the path along and across the motion, once in units
    of ``hypot(1e-3 rad/d^2, error)`` and once in units of its error, both by the inverse hyperbolic
    sine; the logarithms of the errors; the acceleration of the observer. On request the apparent
    magnitude, and the range by Gauss's method: its logarithm, that of its relative error, and the
    first weighted by how well it is determined. What an arc has not is zero, the mean of what was
    seen in training, and a flag, -1 instead of 1, says so: one each of curvature, magnitude, root.

    All but the flags are scaled to mean 0 and standard deviation 1.

    Parameters
    ----------
    magnitude : bool
        Show the apparent magnitude.
    root : bool
        Show the range by Gauss's method.
    """

    origin = "topocenter"

    def __init__(self, magnitude: bool = False, root: bool = False) -> None:
        names = (*_STRAIGHT, *_CURVED, *("magnitude",) * magnitude, *_ROOT * root)
        super().__init__(Scaling(names), len(names) + 1 + magnitude + root)
        self.magnitude, self.root = magnitude, root

    def fit(self, inputs: ArcInputs) -> None:
        """Fit the scaling on training arcs; those with two epochs are left out."""
        curved = inputs.map(lambda x: x[inputs.curved > 0.0])
        values, present = self.raw(curved), self.present(curved)
        if self.magnitude and not bool(curved.has_magnitude.any()):
            raise DatasetError(
                f"none of {len(values)} arcs has a magnitude: train without (--no-magnitude)"
            )
        if self.root and not bool(curved.has_root.any()):
            raise DatasetError(
                f"none of {len(values)} arcs has a root of Gauss's method: make the inputs with "
                "root=True, or train without (--no-root)"
            )
        count = present.sum(dim=0).clamp_min(1.0)
        mean = (values * present).sum(dim=0) / count
        self.scaling.fit_moments(torch.where(present > 0.0, values, mean))

    def raw(self, inputs: ArcInputs) -> Tensor:
        """All features but the flags, in their own units, (B, columns of the scaling)."""
        frame = MotionFrame.of(inputs.sky, inputs.sky_rate)
        ahead, aside = (_sign(dot(inputs.observer, axis))[..., None] for axis in frame[1:])
        # the axes point to the side of the observer: see the class
        frame = MotionFrame(frame.sight, ahead * frame.along, aside * frame.across)
        scalars = torch.stack([torch.log(speed(inputs.sky_rate)), inputs.log_span], dim=-1)
        parallax, error = inputs.parallax, torch.exp(inputs.log_sigma_parallax)
        size = torch.asinh(parallax / torch.sqrt(error**2 + _PARALLAX_UNIT_PER_AU**2))
        significance = torch.asinh(parallax / error)
        columns = [
            scalars,
            frame.components(inputs.observer),
            ahead * frame.components(inputs.observer_rate),
            *_curvature(inputs, torch.cat([ahead, aside], dim=-1)),
            frame.components(inputs.observer_acc),
            torch.stack([size, significance, inputs.log_sigma_parallax], dim=-1),
        ]
        if self.magnitude:
            columns.append(inputs.magnitude[..., None])
        if self.root:
            trust = 1.0 / (1.0 + torch.exp(2.0 * inputs.log_error_root))
            root, error = inputs.root, inputs.log_error_root
            columns.append(torch.stack([root, error, trust * root], dim=-1))
        return torch.cat(columns, dim=-1)

    def arrow(self, inputs: ArcInputs) -> Tensor:
        """Direction of time, -1 for arcs that are presented backwards, (B,)."""
        frame = MotionFrame.of(inputs.sky, inputs.sky_rate)
        return _sign(dot(inputs.observer, frame.along))

    def finish(self, raw: Tensor, inputs: ArcInputs) -> Tensor:
        """Scaled features and the flags, (B, F)."""
        flags = (2.0 * flag - 1.0 for flag in self._flags(inputs))
        return torch.cat([self.scaling(raw) * self.present(inputs), *flags], dim=-1)

    def finish_rate(self, rate: Tensor, inputs: ArcInputs) -> Tensor:
        """Derivatives of the scaled features; those of the flags are zero."""
        still = (torch.zeros_like(flag) for flag in self._flags(inputs))
        return torch.cat([self.scaling.rate(rate) * self.present(inputs), *still], dim=-1)

    def present(self, inputs: ArcInputs) -> Tensor:
        """1 for every column that an arc has, 0 for one that it lacks, (B, columns)."""
        return self._columns(self._flags(inputs))

    @property
    def patterns(self) -> Tensor:
        """Rows that `present` may have: with and without curvature, magnitude and root."""
        kinds = list(product((1.0, 0.0), repeat=1 + self.magnitude + self.root))
        if self.root:  # which needs three epochs
            kinds = [kind for kind in kinds if kind[0] >= kind[-1]]
        return self._columns(list(torch.tensor(kinds, dtype=torch.float64).split(1, dim=1)))

    def _flags(self, inputs: ArcInputs) -> list[Tensor]:
        """1 or 0 for every kind of features that an arc may lack, each (B, 1)."""
        flags = [inputs.curved]
        if self.magnitude:
            flags.append(inputs.has_magnitude)
        if self.root:
            flags.append(inputs.has_root)
        return [flag[..., None] for flag in flags]

    def _columns(self, flags: list[Tensor]) -> Tensor:
        """The flag of every column, (B, columns), from those of the kinds of columns."""
        sizes = (len(_CURVED), *(1,) * self.magnitude, *(len(_ROOT),) * self.root)
        always = torch.ones_like(flags[0]).expand(*flags[0].shape[:-1], len(_STRAIGHT))
        others = (flag.expand(*flag.shape[:-1], n) for flag, n in zip(flags, sizes, strict=True))
        return torch.cat([always, *others], dim=-1)


def _sign(value: Tensor) -> Tensor:
    """1 or -1, never 0; constant to all derivatives."""
    return torch.where(value < 0.0, -1.0, 1.0).to(value.dtype)


def _curvature(inputs: ArcInputs, sides: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Size, significance and log error of the curvature, each (B, 2) along and across.

    ``sides`` (B, 2) are the signs of the two axes.
    """
    east, north = (inputs.sky_rate / speed(inputs.sky_rate)[..., None]).unbind(-1)
    acc_east, acc_north = inputs.sky_acc.unbind(-1)
    bend = torch.stack(
        [acc_east * east + acc_north * north, acc_north * east - acc_east * north], dim=-1
    )
    bend = sides * bend
    variance_east, variance_north = torch.exp(inputs.log_sigma_acc).square().unbind(-1)
    variance = torch.stack(
        [
            variance_east * east**2 + variance_north * north**2,
            variance_east * north**2 + variance_north * east**2,
        ],
        dim=-1,
    )
    size = torch.asinh(bend / torch.sqrt(variance + _CURVATURE_UNIT_RAD_D2**2))
    # a motion too slow to have a direction leaves the variance at zero
    error = torch.sqrt(variance.clamp_min(torch.finfo(variance.dtype).tiny))
    return size, torch.asinh(bend / error), torch.log(error)


FEATURES: Final[dict[str, type[PaperFeatures | InvariantFeatures]]] = {
    "paper": PaperFeatures,
    "invariant": InvariantFeatures,
}
"""Representations by name."""
