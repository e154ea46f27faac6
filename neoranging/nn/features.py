"""From raw inputs to the numbers a trunk sees.

`PaperFeatures` are the eleven inputs of the paper. `InvariantFeatures` do not change when the whole
scene is turned: they are measured in the frame of the motion (line of sight, along, across).
"""

from __future__ import annotations

from itertools import product
from typing import Final, Literal, NamedTuple

import numpy as np

from neoranging.exceptions import DatasetError
from neoranging.nn.arrays import Array, joined, like, namespace_of, smallest
from neoranging.nn.geometry import dot, in_frame, speed
from neoranging.nn.inputs import ArcInputs
from neoranging.nn.scaling import Scaling
from neoranging.typing import FloatArray

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


class Shown(NamedTuple):
    """Arcs as a network is shown them."""

    raw: Array
    """Columns in their own units, (B, columns of the scaling)."""
    present: Array
    """1 for every column that an arc has, 0 for one that it lacks, (B, columns)."""
    arrow: Array
    """Direction of time, 1, or -1 for arcs that are shown backwards: range-rates change sign; (B,).
    """
    scaled: Array
    """Features, (B, F), in the precision of the inputs."""


class Features:
    """A map from inputs to scaled features.

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
        self.scaling, self.size = scaling, size

    def fit(self, inputs: ArcInputs) -> None:
        """Fit the scaling on training arcs."""
        raise NotImplementedError

    def columns(self, inputs: ArcInputs) -> tuple[Array, Array]:
        """Raw columns (B, F) and direction of time (B,), as `Shown` has them."""
        raise NotImplementedError

    def show(self, inputs: ArcInputs) -> Shown:
        """Arcs as a network is shown them."""
        raw, arrow = self.columns(inputs)
        present = self.present(inputs)
        return Shown(raw, present, arrow, self.finish(raw, present, inputs))

    def __call__(self, inputs: ArcInputs) -> Array:
        """Features, (B, F), in the precision of the inputs."""
        return self.show(inputs).scaled

    def finish(self, raw: Array, present: Array, inputs: ArcInputs) -> Array:  # noqa: ARG002
        """Features from raw columns."""
        return self.scaling(raw)

    def finish_rate(self, rate: Array, inputs: ArcInputs) -> Array:  # noqa: ARG002
        """Derivatives of features from those of the columns."""
        return self.scaling.rate(rate)

    def present(self, inputs: ArcInputs) -> Array:
        """Columns that arcs have, as `Shown` has them."""
        xp = namespace_of(inputs.dt1)
        return xp.ones((len(inputs.dt1), len(self.scaling.names)), dtype=inputs.dt1.dtype)

    @property
    def patterns(self) -> FloatArray:
        """Rows that `present` may have, (P, columns); the first has all columns."""
        return np.ones((1, len(self.scaling.names)))

    def compared(self, raw: Array) -> Array:
        """Columns by which the domain compares arcs, under the names of the scaling."""
        return raw

    def outside(self, shown: Shown, slack: float = 0.0) -> Array:
        """Mask of the columns outside the range of training, (B, columns of the scaling).

        What an arc lacks is never outside.
        """
        return self.scaling.outside(shown.raw, slack) & (shown.present > 0.0)


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
        self.scaling.fit_range(self.columns(inputs)[0], symmetric=times)

    def columns(self, inputs: ArcInputs) -> tuple[Array, Array]:
        """The inputs in days, radians and au, (B, 11), never backwards."""
        xp = namespace_of(inputs.dt1)
        (ra1, ra2, ra3), (dec1, dec2, dec3) = (
            (angle[..., 0], angle[..., 1], angle[..., 2]) for angle in (inputs.ra, inputs.dec)
        )
        times = joined(inputs.dt1, ra1, dec1, ra2, dec2, inputs.dt3, ra3, dec3)
        return xp.concat([times, inputs.earth], axis=-1), xp.ones_like(inputs.dt1)

    def compared(self, raw: Array) -> Array:
        """Columns with the outer directions as differences from the middle one.

        The motion is a thousandth of the directions, and would be no difference beside them.
        """
        middle, rest = raw[:, 3:5], raw[:, 8:]
        columns = [
            raw[:, :1],
            raw[:, 1:3] - middle,
            middle,
            raw[:, 5:6],
            raw[:, 6:8] - middle,
            rest,
        ]
        return namespace_of(raw).concat(columns, axis=-1)


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
        # one row for what every arc has, and one for each kind of columns that it may lack
        sizes = (len(_STRAIGHT), len(_CURVED), *(1,) * magnitude, *(len(_ROOT),) * root)
        self._kinds = np.repeat(np.eye(len(sizes)), sizes, axis=1)

    def fit(self, inputs: ArcInputs) -> None:
        """Fit the scaling on training arcs; those with two epochs are left out."""
        xp = namespace_of(inputs.dt1)
        curved = inputs.map(lambda x: x[inputs.curved > 0.0])
        values, present = self.columns(curved)[0], self.present(curved)
        if self.magnitude and not bool(xp.any(curved.has_magnitude > 0.0)):
            raise DatasetError(
                f"none of {len(values)} arcs has a magnitude: train without (--no-magnitude)"
            )
        if self.root and not bool(xp.any(curved.has_root > 0.0)):
            raise DatasetError(
                f"none of {len(values)} arcs has a root of Gauss's method: make the inputs with "
                "root=True, or train without (--no-root)"
            )
        count = xp.maximum(xp.sum(present, axis=0), 1.0)
        mean = xp.sum(values * present, axis=0) / count
        self.scaling.fit_moments(xp.where(present > 0.0, values, mean))

    def columns(self, inputs: ArcInputs) -> tuple[Array, Array]:
        """All features but the flags, in their own units, (B, columns), and direction of time."""
        xp = namespace_of(inputs.dt1)
        along_path = speed(inputs.sky_rate)
        heading = inputs.sky_rate / along_path[..., None]
        observer = inputs.observer, inputs.observer_rate, inputs.observer_acc
        seen = in_frame(inputs.sky, heading, *observer)
        # the axes point to the side of the observer: see the class
        sides = _sign(seen[..., 1:, 0])
        one = xp.ones_like(sides[..., :1])
        signs, arrow = xp.concat([one, sides], axis=-1), sides[..., :1]
        parallax, error = inputs.parallax, xp.exp(inputs.log_sigma_parallax)
        columns = [
            joined(xp.log(along_path), inputs.log_span),
            signs * seen[..., 0],
            arrow * signs * seen[..., 1],
            *_curvature(inputs, heading, sides),
            signs * seen[..., 2],
            joined(
                xp.asinh(parallax / xp.sqrt(error**2 + _PARALLAX_UNIT_PER_AU**2)),
                xp.asinh(parallax / error),
                inputs.log_sigma_parallax,
            ),
        ]
        if self.magnitude:
            columns.append(inputs.magnitude[..., None])
        if self.root:
            trust = 1.0 / (1.0 + xp.exp(2.0 * inputs.log_error_root))
            columns.append(joined(inputs.root, inputs.log_error_root, trust * inputs.root))
        return xp.concat(columns, axis=-1), arrow[..., 0]

    def finish(self, raw: Array, present: Array, inputs: ArcInputs) -> Array:
        """Scaled features and the flags, (B, F)."""
        flags = 2.0 * joined(*self._flags(inputs)) - 1.0
        return namespace_of(raw).concat([self.scaling(raw) * present, flags], axis=-1)

    def finish_rate(self, rate: Array, inputs: ArcInputs) -> Array:
        """Derivatives of the scaled features; those of the flags are zero."""
        still = 0.0 * joined(*self._flags(inputs))
        scaled = self.scaling.rate(rate) * self.present(inputs)
        return namespace_of(rate).concat([scaled, still], axis=-1)

    def present(self, inputs: ArcInputs) -> Array:
        """Columns that arcs have, as `Shown` has them."""
        flags = self._flags(inputs)
        always = namespace_of(inputs.dt1).ones_like(inputs.dt1)
        return joined(always, *flags) @ like(self._kinds, always)

    @property
    def patterns(self) -> FloatArray:
        """Rows that `present` may have: with and without curvature, magnitude and root."""
        kinds = list(product((1.0, 0.0), repeat=1 + self.magnitude + self.root))
        if self.root:  # which needs three epochs
            kinds = [kind for kind in kinds if kind[0] >= kind[-1]]
        return np.array([(1.0, *kind) for kind in kinds]) @ self._kinds

    def _flags(self, inputs: ArcInputs) -> list[Array]:
        """1 or 0 for every kind of features that an arc may lack, each (B,)."""
        flags = [inputs.curved]
        if self.magnitude:
            flags.append(inputs.has_magnitude)
        if self.root:
            flags.append(inputs.has_root)
        return flags


def _sign(value: Array) -> Array:
    """1 or -1, never 0; constant to all derivatives."""
    return 1.0 - 2.0 * namespace_of(value).astype(value < 0.0, value.dtype)


def _curvature(inputs: ArcInputs, heading: Array, sides: Array) -> tuple[Array, Array, Array]:
    """Size, significance and log error of the curvature, each (B, 2) along and across.

    ``sides`` (B, 2) are the signs of the two axes.
    """
    xp = namespace_of(sides)
    turned = joined(-heading[..., 1], heading[..., 0])
    bend = sides * joined(dot(inputs.sky_acc, heading), dot(inputs.sky_acc, turned))
    square = xp.exp(2.0 * inputs.log_sigma_acc)
    variance = joined(dot(square, heading**2), dot(square, turned**2))
    size = xp.asinh(bend / xp.sqrt(variance + _CURVATURE_UNIT_RAD_D2**2))
    # a motion too slow to have a direction leaves the variance at zero
    error = xp.sqrt(xp.maximum(variance, smallest(variance)))
    return size, xp.asinh(bend / error), xp.log(error)


FEATURES: Final[dict[str, type[PaperFeatures | InvariantFeatures]]] = {
    "paper": PaperFeatures,
    "invariant": InvariantFeatures,
}
"""Representations by name."""
