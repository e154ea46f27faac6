"""The network that joins features, trunk, heads and output, and its architecture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal, NamedTuple

import numpy as np

from neoranging.exceptions import DatasetError
from neoranging.nn.arrays import Array, namespace_of
from neoranging.nn.density import MixtureOutput
from neoranging.nn.domain import Domain
from neoranging.nn.features import FEATURES, Features, Shown
from neoranging.nn.inputs import ArcInputs
from neoranging.nn.outputs import OUTPUTS, Output
from neoranging.nn.scaling import Scaling
from neoranging.nn.trunks import ACTIVATIONS, Layer, PaperTrunk, ResidualTrunk

_ROWS: Final = 256
"""Arcs that go through the layers at once: what is between two layers stays in the cache."""


@dataclass(frozen=True)
class NetworkConfig:
    """Architecture of a network; stored with its weights.

    Attributes
    ----------
    representation : {"paper", "invariant"}
    trunk : {"paper", "residual"}
    widths : tuple of int
        Widths of the layers of the paper's trunk.
    width, blocks : int
        Size of the residual trunk; each block has two square matrices. An estimate costs two
        operations per entry: half a million entries are 50,000 estimates a second on a core.
    activation : {"tanh", "silu"}
    output : {"minmax", "log", "admissible", "mixture"}
        All but the last answer with a range and a range-rate; that with a density of both.
    components : int
        Normal distributions of a mixture.
    magnitude, root : bool
        Show the apparent magnitude, and the range by Gauss's method, to a network of the invariant
        representation.
    second_output : bool
        Estimate the size of the errors as well.
    """

    representation: Literal["paper", "invariant"] = "invariant"
    trunk: Literal["paper", "residual"] = "residual"
    widths: tuple[int, ...] = (512, 256, 128, 64, 32)
    width: int = 256
    blocks: int = 3
    activation: Literal["tanh", "silu"] = "silu"
    output: Literal["minmax", "log", "admissible", "mixture"] = "admissible"
    components: int = 12
    magnitude: bool = False
    root: bool = False
    second_output: bool = False

    @classmethod
    def paper(cls) -> NetworkConfig:
        """The network of the paper."""
        return cls("paper", "paper", activation="tanh", output="minmax")


class RangingState(NamedTuple):
    """Range [au] and range-rate [au/d], or their derivatives by time, each (B,)."""

    rho: Array
    rho_dot: Array


class RangingNetwork:
    """Inputs of arcs to range and range-rate in physical units.

    It is made of the arrays that a file of weights holds, or of others of the same names and
    shapes: arrays of numpy for estimates, tensors where gradients or a GPU are wanted. Weights are
    float32; inputs, scalings and what comes out are double.

    Parameters
    ----------
    config : NetworkConfig
    arrays : mapping
        Weights, scalings and domain by name, such as ``"trunk.entry.bias"``. A network that was
        never fitted has weights only, and one of an older file no domain.

    Attributes
    ----------
    features, trunk, heads, output
        In order of use; the heads, those of the second output last, are one `Layer`.
    domain : Domain
        Density of the training arcs.
    """

    def __init__(self, config: NetworkConfig, arrays: Mapping[str, Array]) -> None:
        self.config = config
        self.features, self.output = _parts(config)
        self.weights = _checked_weights(config, arrays)
        for name, scaling in self._scalings.items():
            own = _under(name, arrays)
            if own:
                scaling.arrays = own
        self.domain = Domain(_under("domain.", arrays))
        trunk = PaperTrunk if config.trunk == "paper" else ResidualTrunk
        self.trunk = trunk.of(self.weights)
        layers = (*Layer.numbered(arrays, "heads"), *Layer.numbered(arrays, "error_heads"))
        xp = namespace_of(layers[0].bias)
        self.heads = Layer(*(xp.concat(parts, axis=0) for parts in zip(*layers, strict=True)))

    @property
    def arrays(self) -> dict[str, Array]:
        """Weights, scalings and domain by name, as a file holds them."""
        parts = {name: scaling.arrays for name, scaling in self._scalings.items()}
        parts["domain."] = self.domain.arrays
        named = ((part + name, x) for part, own in parts.items() for name, x in own.items())
        return {**self.weights, **dict(named)}

    @property
    def _scalings(self) -> dict[str, Scaling]:
        return {
            "features.scaling.": self.features.scaling,
            "output.scaling.": self.output.scaling,
        }

    @property
    def origin(self) -> Literal["geocenter", "topocenter"]:
        """Origin of the range."""
        return self.features.origin

    def fit(self, inputs: ArcInputs, rho: Array, rho_dot: Array) -> None:
        """Fit the scalings of features and output, and the domain, on the training arcs.

        Parameters
        ----------
        inputs : ArcInputs
            Inputs of N arcs.
        rho, rho_dot : Array, shape (N,)
            Their true range [au] and range-rate [au/d], from `origin`.
        """
        self.features.fit(inputs)
        self.output.fit(inputs, rho, rho_dot)
        self.fit_domain(inputs)

    def fit_domain(self, inputs: ArcInputs) -> None:
        """Fit the domain on the training arcs, without a change to the answers."""
        shown = self.features.show(inputs)
        whole = namespace_of(shown.raw).all(shown.present > 0.0, axis=1)
        compared = np.asarray(self.features.compared(shown.raw[whole]))
        if not len(compared):
            raise DatasetError(
                f"none of {len(inputs.dt1)} arcs has all features that the network is shown: add "
                "such arcs, or show it fewer"
            )
        self.domain.fit(compared, self.features.patterns)

    def __call__(self, inputs: ArcInputs, shown: Shown | None = None) -> RangingState:
        """Range and range-rate; parameters are those of `estimate`."""
        return self.estimate(inputs, shown)[0]

    def estimate(
        self, inputs: ArcInputs, shown: Shown | None = None
    ) -> tuple[RangingState, Array | None]:
        """Range and range-rate, and the logarithms of the mean absolute errors expected.

        Parameters
        ----------
        inputs : ArcInputs
        shown : Shown, optional
            ``self.features.show(inputs)`` if computed already; features have no parameters.

        Returns
        -------
        state : RangingState
        log_error : Array, shape (B, 2), or None
            In the normalised space of the output; None without the second output.
        """
        shown = self.features.show(inputs) if shown is None else shown
        raw, n = self.raw(shown.scaled), self.output.n_heads
        heads = self.output.turned(raw[..., :n], shown.arrow)
        state = RangingState(*self.output(heads, inputs))
        return state, raw[..., n:] if self.config.second_output else None

    def log_density(self, inputs: ArcInputs, rho: Array, rho_dot: Array) -> Array:
        """Logarithm of the density over (ln rho, rho_dot) [d/au] at a point of each arc, (B,).

        Of a network with the output "mixture".
        """
        assert isinstance(self.output, MixtureOutput)
        shown = self.features.show(inputs)
        heads = self.output.turned(self.raw(shown.scaled), shown.arrow)
        return self.output.log_density(heads, inputs, rho, rho_dot)

    def raw(self, features: Array) -> Array:
        """Values of the heads, and of the second output if there is one; precision as features."""
        xp = namespace_of(features)
        plain = xp.astype(features, self.heads.bias.dtype)
        if not isinstance(plain, np.ndarray):  # gradients keep all layers anyhow
            return xp.astype(self._through(plain), features.dtype)
        result = np.empty((len(features), len(self.heads.bias)))
        for start in range(0, len(plain), _ROWS):
            result[start : start + _ROWS] = self._through(plain[start : start + _ROWS])
        return result

    def _through(self, x: Array) -> Array:
        hidden = self.trunk(x, ACTIVATIONS[self.config.activation])
        return hidden @ self.heads.weight.T + self.heads.bias


def layer_sizes(config: NetworkConfig) -> dict[str, tuple[int, int]]:
    """Widths of input and output of all layers by name, in the order of their initial values."""
    features, output = _parts(config)
    if config.trunk == "paper":
        pairs = pairwise((features.size, *config.widths))
        trunk = {f"trunk.layers.{k}": pair for k, pair in enumerate(pairs)}
        width = config.widths[-1]
    else:
        width = config.width
        trunk = {"trunk.entry": (features.size, width)}
        for side in ("inner", "outer"):
            trunk |= {f"trunk.{side}.{k}": (width, width) for k in range(config.blocks)}
    is_mixture = config.output == "mixture"
    sizes = [output.n_heads] if is_mixture else [1] * output.n_heads
    heads = {f"heads.{k}": (width, size) for k, size in enumerate(sizes)}
    errors = {f"error_heads.{k}": (width, 1) for k in range(2 if config.second_output else 0)}
    return {**trunk, **heads, **errors}


def _parts(config: NetworkConfig) -> tuple[Features, Output]:
    """Features and output, before they are fitted."""
    shown = {name: True for name in ("magnitude", "root") if getattr(config, name)}
    features = FEATURES[config.representation](**shown)
    if config.output == "mixture":
        return features, MixtureOutput(features.origin, config.components)
    return features, OUTPUTS[config.output](features.origin)


def _checked_weights(config: NetworkConfig, arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Weights of all layers; `ValueError` where one is missing or of another shape, or too many."""
    weights = {}
    for name, (n_in, n_out) in layer_sizes(config).items():
        shapes = {"log_scale": (n_out,), "direction": (n_out, n_in), "bias": (n_out,)}
        for factor, shape in shapes.items():
            array = weights[f"{name}.{factor}"] = arrays[f"{name}.{factor}"]
            if tuple(array.shape) != shape:
                raise ValueError(f"{name}.{factor} is {tuple(array.shape)}, not {shape}")
    parts = ("features.", "output.", "domain.")
    if extra := [name for name in arrays if name not in weights and not name.startswith(parts)]:
        raise ValueError(f"{extra[0]} belongs to no layer")
    return weights


def _under(prefix: str, arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Arrays whose names begin so, by the rest of their names."""
    return {
        name.removeprefix(prefix): array
        for name, array in arrays.items()
        if name.startswith(prefix)
    }
