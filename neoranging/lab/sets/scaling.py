"""The eleven inputs of the literature and their scaling to [-1, 1].

Inputs are scaled one by one, by the least and greatest value in the training part; the two offsets
in time by the longest half arc, so that the epoch of the middle observation stays at zero. Range
and range-rate are scaled likewise. Nothing but the training part is looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from neoranging import ephemeris
from neoranging.exceptions import DatasetError
from neoranging.files import read_json, write_json
from neoranging.lab.sets.schema import ArcTable
from neoranging.lab.sets.store import read_arcs
from neoranging.typing import FloatArray

INPUTS: Final = (
    *("dt1_d", "ra1_rad", "dec1_rad", "ra2_rad", "dec2_rad", "dt3_d", "ra3_rad", "dec3_rad"),
    *("earth_x_au", "earth_y_au", "earth_z_au"),
)
"""The observed triplet, times counted from the middle one, and where the Earth was then."""

OUTPUTS: Final = ("rho_geo_au", "rho_dot_geo_au_d")
"""What the networks of the literature are to find, seen from the centre of the Earth."""

_NEEDED: Final = (
    *(f"t{k}_mjd_tdb" for k in "123"),
    *(f"{angle}{k}_rad" for k in "123" for angle in ("ra", "dec")),
    *OUTPUTS,
)


def network_inputs(table: ArcTable) -> FloatArray:
    """Columns `INPUTS` of each arc, in physical units, shape (M, 11)."""
    t2 = table["t2_mjd_tdb"]
    earth, _ = ephemeris.earth_state(t2)
    dt = {"dt1_d": table["t1_mjd_tdb"] - t2, "dt3_d": table["t3_mjd_tdb"] - t2}
    columns = [dt[name] if name in dt else table[name] for name in INPUTS[:8]]
    return np.column_stack([*columns, earth])


def network_outputs(table: ArcTable) -> FloatArray:
    """Columns ``OUTPUTS`` of each arc, in physical units, shape (M, 2)."""
    return np.column_stack([table[name] for name in OUTPUTS])


@dataclass(frozen=True)
class AffineScaling:
    """``scaled = (value - center) / half``, column by column.

    Attributes
    ----------
    names : tuple of str
    center, half : tuple of float
        In the unit of the column.
    """

    names: tuple[str, ...]
    center: tuple[float, ...]
    half: tuple[float, ...]

    @classmethod
    def between(
        cls, names: Sequence[str], low: npt.ArrayLike, high: npt.ArrayLike
    ) -> AffineScaling:
        """Scaling of [low, high] to [-1, 1]; a column of one value becomes 0.

        Raises
        ------
        DatasetError
            If a limit is not finite.
        """
        least, most = np.asarray(low, dtype=float), np.asarray(high, dtype=float)
        finite = np.isfinite(least) & np.isfinite(most)
        if not finite.all():
            wrong = [name for name, good in zip(names, finite, strict=True) if not good]
            raise DatasetError(
                f"cannot scale {', '.join(wrong)}: values that are not finite; "
                "leave arcs without truth out"
            )
        half = 0.5 * most - 0.5 * least  # halves first: no overflow
        half = np.where(half > 0.0, half, 1.0)
        center = 0.5 * least + 0.5 * most
        return cls(tuple(names), tuple(center.tolist()), tuple(half.tolist()))

    def scale(self, values: FloatArray) -> FloatArray:
        """Scaled values of shape (M, columns)."""
        return (values - np.array(self.center)) / np.array(self.half)

    def restore(self, scaled: FloatArray) -> FloatArray:
        """Inverse of `scale`."""
        return scaled * np.array(self.half) + np.array(self.center)


@dataclass(frozen=True)
class ArcScaling:
    """Scaling of inputs and outputs, and how many arcs it was fitted on."""

    inputs: AffineScaling
    outputs: AffineScaling
    n_arcs: int

    @classmethod
    def fit(cls, inputs: FloatArray, outputs: FloatArray) -> ArcScaling:
        """Fit on the arcs of the training part.

        Parameters
        ----------
        inputs : ndarray, shape (M, 11)
            Of `network_inputs`.
        outputs : ndarray, shape (M, 2)
            Of `network_outputs`.

        Raises
        ------
        DatasetError
            If there are no arcs, or values that are not finite.
        """
        if not len(inputs):
            raise DatasetError("no arcs to fit a scaling on; divide the set first")
        low, high = inputs.min(axis=0), inputs.max(axis=0)
        times = [INPUTS.index("dt1_d"), INPUTS.index("dt3_d")]
        high[times] = np.abs(inputs[:, times]).max()
        low[times] = -high[times]
        return cls(
            AffineScaling.between(INPUTS, low, high),
            AffineScaling.between(OUTPUTS, outputs.min(axis=0), outputs.max(axis=0)),
            len(inputs),
        )

    def save(self, path: str | Path) -> None:
        """Write as JSON; floating-point numbers keep every bit."""
        write_json(Path(path), asdict(self))

    @classmethod
    def load(cls, path: str | Path) -> ArcScaling:
        """Read what `save` wrote.

        Raises
        ------
        DatasetError
            If the file is not there or is something else.
        """
        plain = read_json(Path(path))
        try:
            parts = {name: _affine(plain[name]) for name in ("inputs", "outputs")}
            return cls(**parts, n_arcs=int(plain["n_arcs"]))
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
            raise DatasetError(
                f"{path} is no scaling of arcs ({error!r}); divide the set once more"
            ) from error


def _affine(plain: dict[str, Any]) -> AffineScaling:
    names = tuple(map(str, plain["names"]))
    center, half = (tuple(map(float, plain[name])) for name in ("center", "half"))
    if not len(names) == len(center) == len(half) or not all(width > 0.0 for width in half):
        raise ValueError("names, centres and half widths do not belong together")
    return AffineScaling(names, center, half)


def fit_scaling(folder: str | Path) -> Path:
    """Fit the scaling of a stored set on its training part and save it as ``scaling.json``."""
    train = read_arcs(folder, _NEEDED, split="train")
    path = Path(folder) / "scaling.json"
    ArcScaling.fit(network_inputs(train), network_outputs(train)).save(path)
    return path
