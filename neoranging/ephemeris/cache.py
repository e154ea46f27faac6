"""Files that keep the filled cells of time series, as tensors."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from neoranging.core.ephemeris import PiecewiseSeries
from neoranging.exceptions import EphemerisError, extra
from neoranging.files import replacing
from neoranging.typing import AnyArray

_FORMAT: Final = "neoranging ephemeris cache"
_VERSION: Final = 1


def save(path: Path, series: Sequence[PiecewiseSeries], source: str) -> None:
    """Write the filled cells of series to a file.

    Parameters
    ----------
    path : Path
        The file. It is written beside and then moved into place, so that no process ever reads
        half of it.
    series : sequence of PiecewiseSeries
        What to write; their names tell them apart.
    source : str
        What the series were computed from; `load` insists on the same.
    """
    with extra("lab", "files of the states of the Earth"):
        import torch

    content = _header(source) | {"series": {item.name: _pack(item) for item in series}}
    with replacing(path) as part, part.open("wb") as file:
        torch.save(content, file)


def load(path: Path, series: Sequence[PiecewiseSeries], source: str) -> int:
    """Fill cells of series from a file; those already filled stay as they are.

    Nothing but tensors, numbers and text is accepted from the file, and nothing is taken over
    unless all of it is sound.

    Parameters
    ----------
    path : Path
        A file that `save` wrote.
    series : sequence of PiecewiseSeries
        What to fill.
    source : str
        What the series are computed from.

    Returns
    -------
    int
        Number of cells in the file, over all series.

    Raises
    ------
    EphemerisError
        If the file is damaged, is something else, or was made from another source.
    OSError
        If it cannot be opened.
    """
    with extra("lab", "files of the states of the Earth"):
        import torch

    remedy = f"delete {path} and write it anew with save_cache"
    if path.is_dir():
        raise EphemerisError(f"{path} is a folder: give the file that save_cache wrote")
    with path.open("rb") as file:
        try:
            content = torch.load(file, weights_only=True, map_location="cpu")
        except Exception as error:  # whatever a foreign file makes of the unpickler
            raise EphemerisError(f"{path} is damaged or no ephemeris cache; {remedy}") from error
    expected = _header(source)
    cache = content if isinstance(content, dict) else {}
    got = {key: repr(cache.get(key))[:80] for key in expected}
    if got != {key: repr(value) for key, value in expected.items()}:
        raise EphemerisError(f"{path} holds {got}, needed is {expected}; {remedy}")
    arrays = [_unpack(item, cache.get("series"), remedy) for item in series]
    for item, (cells, values) in zip(series, arrays, strict=True):
        item.require(cells, values)
    for item, (cells, values) in zip(series, arrays, strict=True):
        item.restore(cells, values)
    return sum(int(cells.size) for cells, _ in arrays)


def _header(source: str) -> dict[str, Any]:
    return {"format": _FORMAT, "version": _VERSION, "source": source}


def _grid(item: PiecewiseSeries) -> list[float]:
    return [item.start, item.step, item.n_cells, item.degree, item.n_components]


def _pack(item: PiecewiseSeries) -> dict[str, Any]:
    import torch

    cells = item.filled_cells
    values = item.coefficients(cells)
    return {
        "grid": _grid(item),
        # First and last epoch, for people.
        "span": (item.start + item.step * np.array([*cells[:1], *cells[-1:] + 1])).tolist(),
        "cells": torch.from_numpy(cells),
        "coefficients": torch.from_numpy(values),
        "sha256": _checksum(cells, values),
    }


def _unpack(item: PiecewiseSeries, packs: Any, remedy: str) -> tuple[AnyArray, AnyArray]:
    try:
        pack = _mapping(_mapping(packs)[item.name])
        grid, checksum = repr(pack["grid"]), pack["sha256"]
        cells = _array(pack["cells"], "int64", 1)
        values = _array(pack["coefficients"], "float64", 3)
    except (AttributeError, KeyError, TypeError, RuntimeError) as error:
        raise EphemerisError(f"the cache of {item.name} is incomplete; {remedy}") from error
    if grid != repr(_grid(item)):
        raise EphemerisError(f"{item.name} is on the grid {grid[:80]}, not {_grid(item)}; {remedy}")
    if not isinstance(checksum, str) or checksum != _checksum(cells, values):
        raise EphemerisError(f"the cache of {item.name} has a wrong checksum; {remedy}")
    return cells, values


def _mapping(content: Any) -> dict[Any, Any]:
    if not isinstance(content, dict):
        raise TypeError(f"no dictionary but {type(content).__name__}")
    return content


def _array(tensor: Any, dtype: str, ndim: int) -> AnyArray:
    """Array of a tensor that holds all its numbers; one spread from few would fill the memory."""
    if tensor.is_sparse or not tensor.is_contiguous() or tensor.requires_grad:
        raise TypeError("not a plain tensor")
    array: AnyArray = tensor.numpy()
    if array.dtype != dtype or array.ndim != ndim:
        raise TypeError(f"{array.ndim} dimensions of {array.dtype}, not {ndim} of {dtype}")
    return array


def _checksum(*arrays: AnyArray) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
